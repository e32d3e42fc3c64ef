// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parser of wire messages: each field of each kind at and beyond its limits, every length, and
 * random damage. Connection requests and replies: test_wire_hello.c. SWC_TEST_WIRE_ROUNDS is the number
 * of damaged messages, SWC_TEST_SEED the seed. TAP on stdout.
 */
#include "kmod/core/blocks.h"
#include "random.h"
#include "tap.h"
#include "wire_fields.h"
#include "kmod/core/wire.h"

#define HEADER sizeof(struct swc_wire_header)
#define HEAD(field) FIELD(swc_wire_header, field)
#define RTR(field) HEADER + offsetof(struct swc_wire_rtr, field), sizeof(__le32)

static const char *const kinds[SWC_WIRE_KIND_NR] = {
	[SWC_WIRE_DATA] = "DATA",	    [SWC_WIRE_RTR] = "RTR",
	[SWC_WIRE_CREDIT] = "CREDIT",	    [SWC_WIRE_AUTH] = "AUTH",
	[SWC_WIRE_ABORT] = "ABORT",	    [SWC_WIRE_FIN] = "FIN",
	[SWC_WIRE_HEARTBEAT] = "HEARTBEAT", [SWC_WIRE_RTS] = "RTS",
	[SWC_WIRE_WRITE] = "WRITE",	    [SWC_WIRE_WRITTEN] = "WRITTEN",
	[SWC_WIRE_GROWN] = "GROWN",
};

/* A valid message with a value in every field that its kind has; returns its size. */
static size_t good_message(enum swc_wire_kind kind, uint8_t *to)
{
	struct swc_wire_header *h = (void *)to;
	struct swc_wire_rtr *r = (void *)(h + 1);
	struct swc_wire_abort *a = (void *)(h + 1);

	memset(to, 0, ROOM);
	h->kind = (uint8_t)kind;
	h->credits = cpu_to_le16(3);
	if (kind != SWC_WIRE_HEARTBEAT && kind != SWC_WIRE_WRITE && kind != SWC_WIRE_WRITTEN &&
	    kind != SWC_WIRE_GROWN)
		h->seq = cpu_to_le64(0x123456789abcull);
	switch (kind) {
	case SWC_WIRE_DATA:
		h->ordinal = cpu_to_le32(9);
		h->offset = cpu_to_le64(4096);
		h->total = cpu_to_le64(4096 + 512);
		h->bytes = cpu_to_le32(100);
		h->root = cpu_to_le32(2);
		h->count = cpu_to_le64(1152);
		h->family = cpu_to_le64(0xfedcba9876543210ull);
		h->shard_blocks = cpu_to_le32(3);
		h->coll = SWC_ALLREDUCE;
		h->dtype = SWC_F32;
		h->redop = SWC_MAX;
		for (int i = 0; i < 100; i++)
			to[HEADER + i] = (uint8_t)(i + 1);
		return HEADER + 100;
	case SWC_WIRE_RTR:
		h->ordinal = cpu_to_le32(9);
		h->offset = cpu_to_le64(1 << 20);
		h->total = cpu_to_le64(2 << 20);
		h->bytes = cpu_to_le32(1 << 20);
		r->addr = cpu_to_le64(0xffff888012345678ull);
		r->rkey = cpu_to_le32(0x1234);
		r->chunk = cpu_to_le32(SWC_WIRE_CHUNKS - 1);
		return HEADER + sizeof(*r);
	case SWC_WIRE_RTS:
		h->ordinal = cpu_to_le32(9);
		h->total = cpu_to_le64(2 << 20);
		return HEADER;
	case SWC_WIRE_AUTH:
		memset(h + 1, 0xa5, SWC_WIRE_MAC);
		return HEADER + SWC_WIRE_MAC;
	case SWC_WIRE_ABORT:
		a->error = cpu_to_le32(ETIMEDOUT);
		a->culprit = cpu_to_le32(4);
		memset(a->text, 'x', sizeof(a->text)); /* not terminated */
		return HEADER + sizeof(*a);
	case SWC_WIRE_WRITE:
		h->ordinal = cpu_to_le32(SWC_WIRE_CHUNKS - 1);
		h->offset = cpu_to_le64(1 << 20);
		h->bytes = cpu_to_le32(100);
		memset(h + 1, 0x5a, 100);
		return HEADER + 100;
	case SWC_WIRE_WRITTEN:
		h->ordinal = cpu_to_le32(SWC_WIRE_CHUNKS - 1);
		return HEADER;
	case SWC_WIRE_GROWN:
		h->bytes = cpu_to_le32(32 << 10);
		return HEADER;
	default:
		return HEADER;
	}
}

/* All of them lie before their sizes. */
static bool sane_several(struct swc_wire_msg m, const uint8_t *data, size_t rest)
{
	size_t n = m.nmore + 1ull, at = 0;

	do {
		if (m.payload != data + HEADER + at || m.offset || m.bytes != m.total)
			return false;
		at += m.bytes;
	} while (swc_wire_next(&m));
	return n > 1 && at + n * sizeof(__le32) == rest && !m.sig.partitioned;
}

/* What users of a parsed message rely on. */
static bool sane(const struct swc_wire_msg *m, const uint8_t *data, size_t bytes)
{
	const struct swc_wire_header *h = (const void *)data;
	const struct swc_wire_rtr *r = m->payload;
	size_t rest = bytes - HEADER;

	if (m->payload != data + HEADER || m->credits > 0xffff)
		return false;
	switch (m->kind) {
	case SWC_WIRE_DATA:
		if (h->flags & SWC_WIRE_BATCH)
			return sane_several(*m, data, rest);
		return m->bytes == rest && m->total <= SWC_MAX_VECTOR_BYTES &&
		       m->offset <= m->total && m->bytes <= m->total - m->offset &&
		       (m->bytes || !m->total) && m->sig.coll < SWC_COLL_NR &&
		       m->sig.dtype < SWC_DTYPE_NR && m->sig.redop < SWC_REDOP_NR;
	case SWC_WIRE_RTR:
		return rest == sizeof(*r) && m->total <= SWC_MAX_VECTOR_BYTES &&
		       m->total >= SWC_WIRE_DIRECT && m->offset < m->total && m->bytes &&
		       m->bytes <= m->total - m->offset && le32_to_cpu(r->chunk) < SWC_WIRE_CHUNKS;
	case SWC_WIRE_AUTH:
		return rest == SWC_WIRE_MAC;
	case SWC_WIRE_ABORT:
		return rest == sizeof(struct swc_wire_abort);
	case SWC_WIRE_RTS:
		return !rest && m->total >= SWC_WIRE_DIRECT && m->total <= SWC_MAX_VECTOR_BYTES &&
		       m->sig.coll < SWC_COLL_NR && m->sig.dtype < SWC_DTYPE_NR &&
		       m->sig.redop < SWC_REDOP_NR;
	case SWC_WIRE_WRITE:
		return m->bytes == rest && m->bytes && m->ordinal < SWC_WIRE_CHUNKS &&
		       m->offset < SWC_MAX_VECTOR_BYTES;
	case SWC_WIRE_WRITTEN:
		return !rest && m->ordinal < SWC_WIRE_CHUNKS;
	case SWC_WIRE_GROWN:
		return !rest && m->bytes >= SWC_WIRE_MIN_RX_BUF &&
		       m->bytes <= SWC_WIRE_MAX_RX_BUF && !(m->bytes % 1024);
	case SWC_WIRE_CREDIT:
	case SWC_WIRE_HEARTBEAT:
	case SWC_WIRE_FIN:
		return !rest;
	default:
		return false;
	}
}

/* The result of the parser, 0 or -EPROTO; 1: another result, or an invalid message was accepted. */
static int parse(const uint8_t *data, size_t bytes, struct swc_wire_msg *m)
{
	uint8_t *copy = exactly(data, bytes);
	int ret = swc_wire_parse((void *)copy, copy + HEADER, (u32)bytes, m);

	if (ret ? ret != -EPROTO : !sane(m, copy, bytes))
		ret = 1;
	free(copy);
	return ret;
}

static void test_fields(void)
{
	struct swc_wire_msg m;
	uint8_t data[ROOM];
	size_t bytes = good_message(SWC_WIRE_DATA, data);

	ok(!parse(data, bytes, &m) && m.kind == SWC_WIRE_DATA && m.credits == 3 && m.ordinal == 9 &&
		   m.seq == 0x123456789abcull && m.offset == 4096 && m.total == 4608 &&
		   m.bytes == 100 && m.sig.root == 2 && m.sig.count == 1152 &&
		   m.sig.family == 0xfedcba9876543210ull && m.sig.coll == SWC_ALLREDUCE &&
		   m.sig.dtype == SWC_F32 && m.sig.redop == SWC_MAX,
	   "DATA: all fields are parsed");
	ok(m.sig.shard_blocks == 3 && !m.sig.partitioned, "DATA: no other field is set");
	ok(HEADER == 64, "a header has 64 bytes, so the payload is aligned");
}

static void test_sign(void)
{
	struct swc_wire_header h = { .kind = SWC_WIRE_RTS, .total = cpu_to_le64(SWC_WIRE_DIRECT) };
	struct swc_signature sig = { .count = 1152,
				     .family = 0xfedcba9876543210ull,
				     .root = 2,
				     .shard_blocks = 3,
				     .coll = SWC_BROADCAST,
				     .dtype = SWC_F32,
				     .redop = SWC_MAX };
	struct swc_wire_msg m;

	swc_wire_sign(&h, 7, &sig);
	ok(!parse((const void *)&h, sizeof(h), &m) && m.seq == 7 &&
		   swc_signature_equal(&m.sig, &sig),
	   "a signature is the same after parsing");
	h.kind = SWC_WIRE_DATA;
	h.total = 0;
	sig.partitioned = true;
	swc_wire_sign(&h, 7, &sig);
	ok(!parse((const void *)&h, sizeof(h), &m) && swc_signature_equal(&m.sig, &sig),
	   "a partition's signature is the same after parsing");
}

/* Each kind with its payload, and with every other length. */
static void test_lengths(void)
{
	struct swc_wire_msg m;
	uint8_t data[ROOM];
	char text[100];

	for (int kind = 1; kind < SWC_WIRE_KIND_NR; kind++) {
		size_t bytes = good_message(kind, data);
		bool cut = true, padded = true;

		snprintf(text, sizeof(text), "%s: valid", kinds[kind]);
		ok(!parse(data, bytes, &m) && m.kind == (enum swc_wire_kind)kind, text);
		for (size_t i = 0; i < bytes; i++)
			cut &= parse(data, i, &m) == -EPROTO;
		snprintf(text, sizeof(text), "%s: truncated at any byte", kinds[kind]);
		ok(cut, text);
		for (size_t i = bytes + 1; i < bytes + 600; i++)
			padded &= parse(data, i, &m) == -EPROTO;
		snprintf(text, sizeof(text), "%s: with trailing bytes", kinds[kind]);
		ok(padded, text);
	}
}

static void test_kinds(void)
{
	struct swc_wire_msg m;
	uint8_t data[ROOM];
	bool fine = true;

	/* With the payload of each kind. */
	for (int kind = 1; kind < SWC_WIRE_KIND_NR; kind++) {
		size_t bytes = good_message(kind, data);

		for (int other = 0; other < 256; other++) {
			data[0] = (uint8_t)other;
			if (!other || other >= SWC_WIRE_KIND_NR)
				fine &= parse(data, bytes, &m) == -EPROTO;
			else
				fine &= parse(data, bytes, &m) <= 0;
		}
	}
	ok(fine, "unknown kinds, and kinds with the payload of another");
}

#define OF_OPERATIONS (1 << SWC_WIRE_DATA | 1 << SWC_WIRE_RTR | 1 << SWC_WIRE_RTS)
#define CHUNKS (1 << SWC_WIRE_WRITE | 1 << SWC_WIRE_WRITTEN)
#define PIECES (1 << SWC_WIRE_DATA | 1 << SWC_WIRE_RTR | 1 << SWC_WIRE_WRITE)

/* Every bit of the header that a kind does not use must be 0. */
static void test_unused(void)
{
	static const struct {
		const char *name;
		size_t at, size;
		unsigned int users; /* bitmap of kinds */
	} fields[] = {
		{ "flags", HEAD(flags), 1 << SWC_WIRE_DATA | 1 << SWC_WIRE_CREDIT },
		{ "ordinal", HEAD(ordinal), OF_OPERATIONS | CHUNKS },
		{ "seq", HEAD(seq),
		  OF_OPERATIONS | 1 << SWC_WIRE_CREDIT | 1 << SWC_WIRE_ABORT | 1 << SWC_WIRE_FIN |
			  1 << SWC_WIRE_AUTH },
		{ "offset", HEAD(offset), PIECES },
		{ "total", HEAD(total), OF_OPERATIONS },
		{ "bytes", HEAD(bytes), PIECES | 1 << SWC_WIRE_GROWN },
		{ "root", HEAD(root), OF_OPERATIONS },
		{ "count", HEAD(count), OF_OPERATIONS },
		{ "family", HEAD(family), OF_OPERATIONS },
		{ "coll", HEAD(coll), OF_OPERATIONS },
		{ "dtype", HEAD(dtype), OF_OPERATIONS },
		{ "redop", HEAD(redop), OF_OPERATIONS },
		{ "shard_blocks", HEAD(shard_blocks), OF_OPERATIONS },
		{ "resv1", HEAD(resv1), 0 },
	};
	struct swc_wire_msg m;
	uint8_t data[ROOM];
	char text[100];

	for (int kind = 1; kind < SWC_WIRE_KIND_NR; kind++) {
		size_t bytes = good_message(kind, data);

		for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++) {
			bool fine = true;

			if (fields[f].users & 1u << kind)
				continue;
			for (size_t bit = 0; bit < 8 * fields[f].size; bit++) {
				data[fields[f].at + bit / 8] ^= (uint8_t)(1 << bit % 8);
				fine &= parse(data, bytes, &m) == -EPROTO;
				data[fields[f].at + bit / 8] ^= (uint8_t)(1 << bit % 8);
			}
			snprintf(text, sizeof(text), "%s: any bit of %s", kinds[kind],
				 fields[f].name);
			ok(fine, text);
		}
	}
}

/* Each kind has flags of its own, or none. The payload of DATA is one message here, not several. */
static void test_flags(void)
{
	struct swc_wire_msg m;
	uint8_t data[ROOM];
	struct swc_wire_header *h = (void *)data;
	size_t bytes = good_message(SWC_WIRE_DATA, data);
	bool fine = true;

	for (int flags = 0; flags < 256; flags++) {
		bool known = flags == 0 || flags == SWC_WIRE_PARTITION;

		h->flags = (uint8_t)flags;
		fine &= parse(data, bytes, &m) == (known ? 0 : -EPROTO);
		fine &= !known || m.sig.partitioned == !!flags;
	}
	ok(fine, "DATA: any flags");
	fine = true;
	for (int kind = 1; kind < SWC_WIRE_KIND_NR; kind++) {
		if (kind == SWC_WIRE_DATA)
			continue;
		bytes = good_message((enum swc_wire_kind)kind, data);
		for (int flags = 1; flags < 256; flags++) {
			bool reply = kind == SWC_WIRE_CREDIT && flags == SWC_WIRE_REPLY;

			h->flags = (uint8_t)flags;
			fine &= parse(data, bytes, &m) == (reply ? 0 : -EPROTO);
			fine &= !reply || m.is_reply;
		}
	}
	ok(fine, "other kinds: any flags");
	bytes = good_message(SWC_WIRE_CREDIT, data);
	ok(!parse(data, bytes, &m) && !m.is_reply, "CREDIT: not a reply");
}

static void test_ranges(enum swc_wire_kind kind, const struct trial *t, size_t n)
{
	uint8_t good[ROOM], bad[ROOM];
	size_t bytes = good_message(kind, good);
	struct swc_wire_msg m;
	char text[100];

	for (size_t i = 0; i < n; i++) {
		int got;

		memcpy(bad, good, bytes);
		put(bad, &t[i]);
		got = parse(bad, bytes, &m);
		snprintf(text, sizeof(text), "%s: %s", kinds[kind], t[i].what);
		if (!ok(got == t[i].want, text))
			printf("# got %d, not %d\n", got, t[i].want);
	}
}

static void test_data(void)
{
	/* Offset 4096, total 4608, 100 bytes. */
	static const struct trial trials[] = {
		{ "at the end", HEAD(offset), 4508, 0 },
		{ "a byte beyond the end", HEAD(offset), 4509, -EPROTO },
		{ "beyond the end", HEAD(offset), 4609, -EPROTO },
		{ "at offset -1", HEAD(offset), -1ull, -EPROTO },
		{ "at an offset that overflows with the bytes", HEAD(offset), -100ull, -EPROTO },
		{ "of a message of just that size", HEAD(total), 4196, 0 },
		{ "of a shorter message", HEAD(total), 4195, -EPROTO },
		{ "of an empty message", HEAD(total), 0, -EPROTO },
		{ "of the longest message", HEAD(total), SWC_MAX_VECTOR_BYTES, 0 },
		{ "of a longer message", HEAD(total), SWC_MAX_VECTOR_BYTES + 1, -EPROTO },
		{ "of a message of -1 bytes", HEAD(total), -1ull, -EPROTO },
		{ "no bytes announced", HEAD(bytes), 0, -EPROTO },
		{ "too few bytes announced", HEAD(bytes), 99, -EPROTO },
		{ "too many bytes announced", HEAD(bytes), 101, -EPROTO },
		{ "-1 bytes announced", HEAD(bytes), 0xffffffff, -EPROTO },
		{ "bytes and header overflow", HEAD(bytes), 0xffffffc0 + 36, -EPROTO },
		{ "the last collective", HEAD(coll), SWC_COLL_NR - 1, 0 },
		{ "a collective too many", HEAD(coll), SWC_COLL_NR, -EPROTO },
		{ "collective 255", HEAD(coll), 255, -EPROTO },
		{ "the last type", HEAD(dtype), SWC_DTYPE_NR - 1, 0 },
		{ "a type too many", HEAD(dtype), SWC_DTYPE_NR, -EPROTO },
		{ "type 255", HEAD(dtype), 255, -EPROTO },
		{ "the last operation", HEAD(redop), SWC_REDOP_NR - 1, 0 },
		{ "an operation too many", HEAD(redop), SWC_REDOP_NR, -EPROTO },
		{ "operation 255", HEAD(redop), 255, -EPROTO },
		/* The receiver compares these with its own operation: the parser accepts any value. */
		{ "the last ordinal", HEAD(ordinal), 0xffffffff, 0 },
		{ "the last number", HEAD(seq), -1ull, 0 },
		{ "any root", HEAD(root), 0xffffffff, 0 },
		{ "any count", HEAD(count), -1ull, 0 },
		{ "any family", HEAD(family), -1ull, 0 },
		{ "any credits", HEAD(credits), 0xffff, 0 },
	};
	struct swc_wire_header empty = { .kind = SWC_WIRE_DATA };
	struct swc_wire_msg m;

	test_ranges(SWC_WIRE_DATA, trials, sizeof(trials) / sizeof(trials[0]));
	ok(!parse((const void *)&empty, sizeof(empty), &m) && !m.bytes, "DATA: an empty message");
	empty.total = cpu_to_le64(1);
	ok(parse((const void *)&empty, sizeof(empty), &m) == -EPROTO,
	   "DATA: an empty segment of a message that is not empty");
	empty.total = 0;
	empty.offset = cpu_to_le64(1);
	ok(parse((const void *)&empty, sizeof(empty), &m) == -EPROTO,
	   "DATA: beyond an empty message");
}

#define SEVERAL 5

/* Several messages of these sizes; returns its size. */
static size_t good_several(const uint32_t *size, uint32_t n, uint8_t *to)
{
	struct swc_wire_header *h = (void *)to;
	uint32_t total = 0;

	good_message(SWC_WIRE_DATA, to);
	for (uint32_t i = 0; i < n; i++)
		total += size[i];
	h->flags = SWC_WIRE_BATCH;
	h->offset = cpu_to_le64(n);
	h->total = cpu_to_le64(total);
	h->bytes = cpu_to_le32(total + 4 * n);
	for (uint32_t i = 0; i < n; i++) {
		__le32 s = cpu_to_le32(size[i]);

		memcpy(to + HEADER + total + 4 * i, &s, sizeof(s));
	}
	return HEADER + total + 4 * n;
}

/* Each message in turn; sizes need not be multiples of anything, or may be 0. */
static void test_several(void)
{
	static const uint32_t size[SEVERAL] = { 33, 0, 7, 100, 1 };
	static const struct trial trials[] = {
		{ "none", HEAD(offset), 0, -EPROTO },
		{ "one", HEAD(offset), 1, -EPROTO },
		{ "one less", HEAD(offset), SEVERAL - 1, -EPROTO },
		{ "one more", HEAD(offset), SEVERAL + 1, -EPROTO },
		{ "as many as there are bytes", HEAD(offset), 141 + 4 * SEVERAL, -EPROTO },
		{ "2^62 + 5", HEAD(offset), (1ull << 62) + SEVERAL, -EPROTO },
		{ "-1", HEAD(offset), -1ull, -EPROTO },
		{ "a byte less", HEAD(total), 140, -EPROTO },
		{ "a byte more", HEAD(total), 142, -EPROTO },
		{ "2^32 bytes more", HEAD(total), (1ull << 32) + 141, -EPROTO },
		{ "-1 bytes", HEAD(total), -1ull, -EPROTO },
		{ "of any ordinal", HEAD(ordinal), 0xffffffff, 0 },
		{ "a type too many", HEAD(dtype), SWC_DTYPE_NR, -EPROTO },
		{ "partitions", HEAD(flags), SWC_WIRE_BATCH | SWC_WIRE_PARTITION, -EPROTO },
		{ "of kind RTR", HEAD(kind), SWC_WIRE_RTR, -EPROTO },
		{ "of kind WRITE", HEAD(kind), SWC_WIRE_WRITE, -EPROTO },
	};
	uint8_t data[ROOM], bad[ROOM], *copy;
	size_t bytes = good_several(size, SEVERAL, data);
	struct swc_wire_msg m;
	uint32_t at = 0;
	bool fine = true;
	char text[100];

	copy = exactly(data, bytes);
	ok(!swc_wire_parse((void *)copy, copy + HEADER, (u32)bytes, &m), "several: valid");
	for (uint32_t i = 0; i < SEVERAL; i++) {
		fine &= m.ordinal == 9 + i && m.bytes == size[i] && m.total == size[i] &&
			!m.offset && m.payload == copy + HEADER + at && m.seq == 0x123456789abcull;
		at += size[i];
		fine &= swc_wire_next(&m) == (i + 1 < SEVERAL);
	}
	ok(fine, "several: one after the other");
	free(copy);
	for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
		memcpy(bad, data, bytes);
		put(bad, &trials[i]);
		snprintf(text, sizeof(text), "several: %s", trials[i].what);
		ok(parse(bad, bytes, &m) == trials[i].want, text);
	}
	fine = true;
	for (size_t i = 0; i < bytes; i++)
		fine &= parse(data, i, &m) == -EPROTO;
	ok(fine, "several: truncated at any byte");
	fine = true;
	for (size_t i = bytes - sizeof(__le32) * SEVERAL; i < bytes; i++)
		for (int bit = 0; bit < 8; bit++) {
			data[i] ^= (uint8_t)(1 << bit);
			fine &= parse(data, bytes, &m) == -EPROTO;
			data[i] ^= (uint8_t)(1 << bit);
		}
	ok(fine, "several: any bit of their sizes");
}

static void test_rts(void)
{
	static const struct trial trials[] = {
		{ "a small message", HEAD(total), SWC_WIRE_DIRECT - 1, -EPROTO },
		{ "the smallest message", HEAD(total), SWC_WIRE_DIRECT, 0 },
		{ "the longest message", HEAD(total), SWC_MAX_VECTOR_BYTES, 0 },
		{ "a longer message", HEAD(total), SWC_MAX_VECTOR_BYTES + 1, -EPROTO },
		{ "the last collective", HEAD(coll), SWC_COLL_NR - 1, 0 },
		{ "a collective too many", HEAD(coll), SWC_COLL_NR, -EPROTO },
		{ "a type too many", HEAD(dtype), SWC_DTYPE_NR, -EPROTO },
		{ "an operation too many", HEAD(redop), SWC_REDOP_NR, -EPROTO },
		{ "any root", HEAD(root), 0xffffffff, 0 },
		{ "any count", HEAD(count), -1ull, 0 },
	};

	test_ranges(SWC_WIRE_RTS, trials, sizeof(trials) / sizeof(trials[0]));
}

static void test_write(void)
{
	static const struct trial trials[] = {
		{ "chunk 0", HEAD(ordinal), 0, 0 },
		{ "the last chunk", HEAD(ordinal), SWC_WIRE_CHUNKS - 1, 0 },
		{ "a chunk too many", HEAD(ordinal), SWC_WIRE_CHUNKS, -EPROTO },
		{ "chunk 0xffffffff", HEAD(ordinal), 0xffffffff, -EPROTO },
		{ "from the beginning", HEAD(offset), 0, 0 },
		{ "the last offset", HEAD(offset), SWC_MAX_VECTOR_BYTES - 1, 0 },
		{ "beyond the largest vector", HEAD(offset), SWC_MAX_VECTOR_BYTES, -EPROTO },
		{ "an offset of -1", HEAD(offset), ~0ull, -EPROTO },
		{ "no payload", HEAD(bytes), 0, -EPROTO },
		{ "more payload than follows", HEAD(bytes), 101, -EPROTO },
	};

	test_ranges(SWC_WIRE_WRITE, trials, sizeof(trials) / sizeof(trials[0]));
	/* The chunks alone. */
	test_ranges(SWC_WIRE_WRITTEN, trials, 4);
}

static void test_grown(void)
{
	static const struct trial trials[] = {
		{ "the smallest buffers", HEAD(bytes), SWC_WIRE_MIN_RX_BUF, 0 },
		{ "smaller buffers", HEAD(bytes), SWC_WIRE_MIN_RX_BUF - 1024, -EPROTO },
		{ "no buffers", HEAD(bytes), 0, -EPROTO },
		{ "the largest buffers", HEAD(bytes), SWC_WIRE_MAX_RX_BUF, 0 },
		{ "larger buffers", HEAD(bytes), SWC_WIRE_MAX_RX_BUF + 1024, -EPROTO },
		{ "half a KiB too much", HEAD(bytes), SWC_WIRE_MIN_RX_BUF + 512, -EPROTO },
		{ "all bits", HEAD(bytes), 0xffffffff, -EPROTO },
	};

	test_ranges(SWC_WIRE_GROWN, trials, sizeof(trials) / sizeof(trials[0]));
}

static void test_rtr(void)
{
	/* Offset 1 MiB, total 2 MiB, 1 MiB. */
	static const struct trial trials[] = {
		{ "a byte beyond the end", HEAD(offset), (1 << 20) + 1, -EPROTO },
		{ "at the end", HEAD(offset), 2 << 20, -EPROTO },
		{ "at offset -1", HEAD(offset), -1ull, -EPROTO },
		{ "at an offset that overflows with the bytes", HEAD(offset), -(1ull << 20),
		  -EPROTO },
		{ "of a shorter message", HEAD(total), (2 << 20) - 1, -EPROTO },
		{ "of a small message", HEAD(total), SWC_WIRE_DIRECT - 1, -EPROTO },
		{ "of the longest message", HEAD(total), SWC_MAX_VECTOR_BYTES, 0 },
		{ "of a longer message", HEAD(total), SWC_MAX_VECTOR_BYTES + 1, -EPROTO },
		{ "no memory", HEAD(bytes), 0, -EPROTO },
		{ "a byte of memory", HEAD(bytes), 1, 0 },
		{ "too much memory", HEAD(bytes), (1 << 20) + 1, -EPROTO },
		{ "4 GiB - 1 of memory", HEAD(bytes), 0xffffffff, -EPROTO },
		{ "the first chunk", RTR(chunk), 0, 0 },
		{ "a chunk too many", RTR(chunk), SWC_WIRE_CHUNKS, -EPROTO },
		{ "chunk -1", RTR(chunk), 0xffffffff, -EPROTO },
		{ "any key", RTR(rkey), 0xffffffff, 0 },
		{ "the last collective", HEAD(coll), SWC_COLL_NR - 1, 0 },
		{ "a collective too many", HEAD(coll), SWC_COLL_NR, -EPROTO },
		{ "the last type", HEAD(dtype), SWC_DTYPE_NR - 1, 0 },
		{ "a type too many", HEAD(dtype), SWC_DTYPE_NR, -EPROTO },
		{ "the last operation", HEAD(redop), SWC_REDOP_NR - 1, 0 },
		{ "an operation too many", HEAD(redop), SWC_REDOP_NR, -EPROTO },
		{ "any root", HEAD(root), 0xffffffff, 0 },
		{ "any count", HEAD(count), -1ull, 0 },
		{ "any family", HEAD(family), -1ull, 0 },
	};
	struct trial small[] = {
		{ "", HEAD(offset), 0, 0 },
		{ "", HEAD(total), SWC_WIRE_DIRECT, 0 },
		{ "", HEAD(bytes), SWC_WIRE_DIRECT, 0 },
	};
	struct swc_wire_msg m;
	uint8_t data[ROOM];
	size_t bytes = good_message(SWC_WIRE_RTR, data);

	test_ranges(SWC_WIRE_RTR, trials, sizeof(trials) / sizeof(trials[0]));
	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
		put(data, &small[i]);
	ok(!parse(data, bytes, &m), "RTR: for the smallest message of a rendezvous");
}

static void test_damage(void)
{
	const char *rounds = getenv("SWC_TEST_WIRE_ROUNDS");
	unsigned long n = rounds ? strtoul(rounds, NULL, 0) : 2000000, refused = 0, mad = 0;
	struct swc_wire_msg m;
	uint8_t data[ROOM];
	char text[100];

	for (unsigned long i = 0; i < n; i++) {
		uint32_t size[] = { rnd(30), rnd(30), rnd(30) }, kind = rnd(SWC_WIRE_KIND_NR);
		size_t bytes = kind ? good_message(kind, data) : good_several(size, 3, data);
		int ret;

		/* Mostly in the header. */
		for (uint32_t k = rnd(4); k; k--)
			damage(data, rnd(8) ? HEADER : bytes);
		if (!rnd(6))
			bytes = rnd((uint32_t)bytes + 80);
		ret = parse(data, bytes, &m);
		refused += ret == -EPROTO;
		mad += ret == 1;
	}
	snprintf(text, sizeof(text), "damage: %lu messages, %lu refused, the rest consistent", n,
		 refused);
	ok(!mad && refused > n / 4 && refused < n, text);
}

int main(void)
{
	printf("TAP version 13\n");
	seed_rnd();
	test_fields();
	test_sign();
	test_lengths();
	test_kinds();
	test_unused();
	test_flags();
	test_data();
	test_several();
	test_rtr();
	test_rts();
	test_write();
	test_grown();
	test_damage();
	return done();
}

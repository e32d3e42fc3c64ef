// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parser of wire messages under the kernel's compiler and checkers. The full list of cases is in
 * userlib/tests/test_wire.c and test_wire_hello.c.
 */
#include <linux/prandom.h>
#include <linux/slab.h>

#include "core/wire.h"
#include "kunit/harness.h"

#define ROUNDS	20000
#define ROOM	512

struct any_message {
	struct swc_wire_header h;
	union {
		u8 data[ROOM];
		struct swc_wire_rtr rtr;
		struct swc_wire_abort abort;
	};
};

/* A valid message of a kind; returns its size. */
static u32 good(enum swc_wire_kind kind, struct any_message *m)
{
	memset(m, 0, sizeof(*m));
	m->h.kind = kind;
	m->h.credits = cpu_to_le16(2);
	switch (kind) {
	case SWC_WIRE_DATA:
		m->h.ordinal = cpu_to_le32(5);
		m->h.seq = cpu_to_le64(7);
		m->h.offset = cpu_to_le64(4032);
		m->h.total = cpu_to_le64(4132);
		m->h.bytes = cpu_to_le32(100);
		m->h.count = cpu_to_le64(1033);
		m->h.family = cpu_to_le64(42);
		m->h.dtype = SWC_F32;
		return sizeof(m->h) + 100;
	case SWC_WIRE_RTR:
		m->h.total = cpu_to_le64(SWC_WIRE_DIRECT);
		m->h.bytes = cpu_to_le32(SWC_WIRE_DIRECT);
		m->rtr.addr = cpu_to_le64(~0ull);
		m->rtr.chunk = cpu_to_le32(1);
		return sizeof(m->h) + sizeof(m->rtr);
	case SWC_WIRE_RTS:
		m->h.seq = cpu_to_le64(7);
		m->h.total = cpu_to_le64(SWC_WIRE_DIRECT);
		m->h.dtype = SWC_F32;
		return sizeof(m->h);
	case SWC_WIRE_AUTH:
		m->h.seq = cpu_to_le64(7);
		return sizeof(m->h) + SWC_WIRE_MAC;
	case SWC_WIRE_ABORT:
		m->h.seq = cpu_to_le64(7);
		m->abort.error = cpu_to_le32(EIO);
		memset(m->abort.text, 'x', sizeof(m->abort.text));
		return sizeof(m->h) + sizeof(m->abort);
	case SWC_WIRE_FIN:
		m->h.seq = cpu_to_le64(7);
		return sizeof(m->h);
	case SWC_WIRE_WRITE:
		m->h.ordinal = cpu_to_le32(SWC_WIRE_CHUNKS - 1);
		m->h.offset = cpu_to_le64(4096);
		m->h.bytes = cpu_to_le32(100);
		return sizeof(m->h) + 100;
	case SWC_WIRE_WRITTEN:
		m->h.ordinal = cpu_to_le32(SWC_WIRE_CHUNKS - 1);
		return sizeof(m->h);
	case SWC_WIRE_GROWN:
		m->h.bytes = cpu_to_le32(SWC_WIRE_MAX_RX_BUF);
		return sizeof(m->h);
	default:
		return sizeof(m->h);
	}
}

/* Parse in memory of exactly that size, so that KASAN sees a read beyond the end. */
static int parse(struct kunit *test, const struct any_message *m, u32 bytes, struct swc_wire_msg *msg)
{
	struct swc_wire_header *copy = kmemdup(m, bytes, GFP_KERNEL);
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, copy);
	ret = swc_wire_parse(copy, copy + 1, bytes, msg);
	if (!ret) {
		KUNIT_EXPECT_PTR_EQ(test, msg->payload, (const void *)(copy + 1));
		if (msg->kind == SWC_WIRE_WRITE || msg->kind == SWC_WIRE_WRITTEN)
			KUNIT_EXPECT_LT(test, msg->ordinal, SWC_WIRE_CHUNKS);
		else if (msg->kind != SWC_WIRE_GROWN)
			KUNIT_EXPECT_LE(test, msg->offset + msg->bytes, msg->total);
		if (msg->kind == SWC_WIRE_DATA || msg->kind == SWC_WIRE_WRITE)
			KUNIT_EXPECT_EQ(test, (size_t)bytes, sizeof(m->h) + msg->bytes);
		KUNIT_EXPECT_LT(test, (int)msg->sig.coll, (int)SWC_COLL_NR);
		KUNIT_EXPECT_LT(test, (int)msg->sig.dtype, (int)SWC_DTYPE_NR);
		KUNIT_EXPECT_LT(test, (int)msg->sig.redop, (int)SWC_REDOP_NR);
	} else {
		KUNIT_EXPECT_EQ(test, ret, -EPROTO);
	}
	kfree(copy);
	return ret;
}

static void wire_lengths(struct kunit *test)
{
	struct any_message *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct swc_wire_msg msg;
	u32 bytes, i;
	int kind;

	KUNIT_ASSERT_NOT_NULL(test, m);
	for (kind = 1; kind < SWC_WIRE_KIND_NR; kind++) {
		bytes = good(kind, m);
		KUNIT_EXPECT_EQ_MSG(test, parse(test, m, bytes, &msg), 0, "kind %d", kind);
		KUNIT_EXPECT_EQ(test, (int)msg.kind, kind);
		for (i = 1; i < sizeof(*m); i++)
			if (i != bytes)
				KUNIT_EXPECT_EQ_MSG(test, parse(test, m, i, &msg), -EPROTO,
						    "kind %d, %u of %u bytes", kind, i, bytes);
	}
}

static void wire_fields(struct kunit *test)
{
	struct any_message *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct swc_wire_msg msg;
	u32 bytes;

	KUNIT_ASSERT_NOT_NULL(test, m);
#define EXPECT_REFUSED(kind, ...) do {							\
	bytes = good(kind, m);								\
	__VA_ARGS__;									\
	KUNIT_EXPECT_EQ_MSG(test, parse(test, m, bytes, &msg), -EPROTO, #__VA_ARGS__);	\
} while (0)
	EXPECT_REFUSED(SWC_WIRE_DATA, m->h.kind = 0);
	EXPECT_REFUSED(SWC_WIRE_CREDIT, m->h.kind = SWC_WIRE_KIND_NR);
	EXPECT_REFUSED(SWC_WIRE_DATA, m->h.flags = 2 * SWC_WIRE_PARTITION);
	EXPECT_REFUSED(SWC_WIRE_RTR, m->h.flags = SWC_WIRE_PARTITION);
	EXPECT_REFUSED(SWC_WIRE_CREDIT, m->h.flags = SWC_WIRE_PARTITION);
	EXPECT_REFUSED(SWC_WIRE_CREDIT, m->h.flags = SWC_WIRE_REPLY | SWC_WIRE_BATCH);
	EXPECT_REFUSED(SWC_WIRE_HEARTBEAT, m->h.flags = SWC_WIRE_REPLY);
	EXPECT_REFUSED(SWC_WIRE_DATA, m->h.resv1 = 1);
	EXPECT_REFUSED(SWC_WIRE_DATA, m->h.bytes = cpu_to_le32(101));
	EXPECT_REFUSED(SWC_WIRE_DATA, m->h.bytes = cpu_to_le32(U32_MAX));
	EXPECT_REFUSED(SWC_WIRE_DATA, m->h.offset = cpu_to_le64(4033));
	EXPECT_REFUSED(SWC_WIRE_DATA, m->h.offset = cpu_to_le64(-100ull));
	EXPECT_REFUSED(SWC_WIRE_DATA, m->h.total = cpu_to_le64(SWC_MAX_VECTOR_BYTES + 1));
	EXPECT_REFUSED(SWC_WIRE_DATA, m->h.coll = SWC_COLL_NR);
	EXPECT_REFUSED(SWC_WIRE_DATA, m->h.dtype = SWC_DTYPE_NR);
	EXPECT_REFUSED(SWC_WIRE_DATA, m->h.redop = SWC_REDOP_NR);
	EXPECT_REFUSED(SWC_WIRE_RTR, m->h.total = cpu_to_le64(SWC_WIRE_DIRECT - 1));
	EXPECT_REFUSED(SWC_WIRE_RTR, m->h.bytes = 0);
	EXPECT_REFUSED(SWC_WIRE_RTR, m->h.offset = cpu_to_le64(1));
	EXPECT_REFUSED(SWC_WIRE_RTR, m->h.coll = SWC_COLL_NR);
	EXPECT_REFUSED(SWC_WIRE_RTR, m->h.dtype = SWC_DTYPE_NR);
	EXPECT_REFUSED(SWC_WIRE_RTR, m->h.redop = SWC_REDOP_NR);
	EXPECT_REFUSED(SWC_WIRE_RTR, m->rtr.chunk = cpu_to_le32(SWC_WIRE_CHUNKS));
	EXPECT_REFUSED(SWC_WIRE_RTS, m->h.total = cpu_to_le64(SWC_WIRE_DIRECT - 1));
	EXPECT_REFUSED(SWC_WIRE_RTS, m->h.bytes = cpu_to_le32(1));
	EXPECT_REFUSED(SWC_WIRE_RTS, m->h.offset = cpu_to_le64(1));
	EXPECT_REFUSED(SWC_WIRE_RTS, m->h.coll = SWC_COLL_NR);
	EXPECT_REFUSED(SWC_WIRE_HEARTBEAT, m->h.seq = cpu_to_le64(1));
	EXPECT_REFUSED(SWC_WIRE_AUTH, m->h.ordinal = cpu_to_le32(1));
	EXPECT_REFUSED(SWC_WIRE_ABORT, m->h.bytes = cpu_to_le32(1));
	EXPECT_REFUSED(SWC_WIRE_FIN, m->h.family = cpu_to_le64(1));
	EXPECT_REFUSED(SWC_WIRE_WRITE, m->h.ordinal = cpu_to_le32(SWC_WIRE_CHUNKS));
	EXPECT_REFUSED(SWC_WIRE_WRITE, m->h.bytes = 0; bytes = sizeof(m->h));
	EXPECT_REFUSED(SWC_WIRE_WRITE, m->h.offset = cpu_to_le64(SWC_MAX_VECTOR_BYTES));
	EXPECT_REFUSED(SWC_WIRE_WRITE, m->h.seq = cpu_to_le64(1));
	EXPECT_REFUSED(SWC_WIRE_WRITE, m->h.total = cpu_to_le64(1));
	EXPECT_REFUSED(SWC_WIRE_WRITTEN, m->h.ordinal = cpu_to_le32(SWC_WIRE_CHUNKS));
	EXPECT_REFUSED(SWC_WIRE_WRITTEN, m->h.bytes = cpu_to_le32(1));
	EXPECT_REFUSED(SWC_WIRE_WRITTEN, m->h.seq = cpu_to_le64(1));
	EXPECT_REFUSED(SWC_WIRE_GROWN, m->h.bytes = cpu_to_le32(SWC_WIRE_MAX_RX_BUF + 1024));
	EXPECT_REFUSED(SWC_WIRE_GROWN, m->h.bytes = 0);
	EXPECT_REFUSED(SWC_WIRE_GROWN, m->h.seq = cpu_to_le64(1));
}

static void wire_damage(struct kunit *test)
{
	struct any_message *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	u32 round, refused = 0, k;
	struct swc_wire_msg msg;
	struct rnd_state rnd;

	KUNIT_ASSERT_NOT_NULL(test, m);
	prandom_seed_state(&rnd, 20250701);
	for (round = 0; round < ROUNDS; round++) {
		u32 bytes = good(1 + prandom_u32_state(&rnd) % (SWC_WIRE_KIND_NR - 1), m);

		for (k = prandom_u32_state(&rnd) % 4; k; k--)
			((u8 *)m)[prandom_u32_state(&rnd) % sizeof(m->h)] ^=
				1 << prandom_u32_state(&rnd) % 8;
		if (prandom_u32_state(&rnd) % 8 == 0)
			bytes = 1 + prandom_u32_state(&rnd) % (sizeof(*m) - 1);
		refused += !!parse(test, m, bytes, &msg);
	}
	KUNIT_EXPECT_GT(test, refused, ROUNDS / 4u);
	KUNIT_EXPECT_LT(test, refused, (u32)ROUNDS);
}

static void wire_handshake(struct kunit *test)
{
	struct swc_wire_hello h = {
		.magic = cpu_to_le32(SWC_WIRE_MAGIC), .version = cpu_to_le16(SWC_WIRE_VERSION),
		.dst = cpu_to_le16(1), .attempt = cpu_to_le32(1),
		.rx_bufs = cpu_to_le16(SWC_WIRE_MIN_RX_BUFS),
		.rx_buf_kib = cpu_to_le16(SWC_WIRE_MIN_RX_BUF >> 10),
	}, bad;
	struct swc_wire_accept a = {
		.magic = h.magic, .version = h.version, .rx_bufs = h.rx_bufs, .rx_buf_kib = h.rx_buf_kib,
	};

	KUNIT_EXPECT_EQ(test, swc_wire_hello_check(&h, sizeof(h)), 0);
	KUNIT_EXPECT_EQ(test, swc_wire_accept_check(&a, sizeof(a)), 0);
	KUNIT_EXPECT_EQ(test, swc_wire_hello_check(&h, sizeof(h) - 1), SWC_WIRE_BAD);
	KUNIT_EXPECT_EQ(test, swc_wire_accept_check(&a, sizeof(a) - 1), SWC_WIRE_BAD);
	bad = h;
	bad.version = cpu_to_le16(SWC_WIRE_VERSION + 1);
	KUNIT_EXPECT_EQ(test, swc_wire_hello_check(&bad, sizeof(h)), SWC_WIRE_VERSION_DIFFERS);
	KUNIT_EXPECT_EQ(test, swc_wire_hello_check(&bad, 8), SWC_WIRE_VERSION_DIFFERS);
	KUNIT_EXPECT_EQ(test, swc_wire_hello_check(&bad, 7), SWC_WIRE_BAD);
	bad = h;
	bad.src = bad.dst;
	KUNIT_EXPECT_EQ(test, swc_wire_hello_check(&bad, sizeof(h)), SWC_WIRE_BAD);
	bad = h;
	/* The higher rank asks to be connected to. */
	bad.src = cpu_to_le16(2);
	KUNIT_EXPECT_EQ(test, swc_wire_hello_check(&bad, sizeof(h)), 0);
	bad = h;
	bad.attempt = 0;
	KUNIT_EXPECT_EQ(test, swc_wire_hello_check(&bad, sizeof(h)), SWC_WIRE_BAD);
	a.received = cpu_to_le64(U64_MAX);
	KUNIT_EXPECT_EQ(test, swc_wire_accept_check(&a, sizeof(a)), 0);
	a.flags = cpu_to_le32(SWC_WIRE_RESUMABLE);
	KUNIT_EXPECT_EQ(test, swc_wire_accept_check(&a, sizeof(a)), 0);
	a.flags = cpu_to_le32(SWC_WIRE_RESUMABLE << 1);
	KUNIT_EXPECT_EQ(test, swc_wire_accept_check(&a, sizeof(a)), SWC_WIRE_BAD);
	a.flags = 0;
	a.resv = cpu_to_le16(1);
	KUNIT_EXPECT_EQ(test, swc_wire_accept_check(&a, sizeof(a)), SWC_WIRE_BAD);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(wire_lengths),
	KUNIT_CASE(wire_fields),
	KUNIT_CASE(wire_damage),
	KUNIT_CASE(wire_handshake),
	{}
};

struct kunit_suite swc_wire_suite = { .name = "swc_wire", .test_cases = cases };

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Strangers and liars: requests that are refused, peers that cannot prove anything, and peers that can, but
 * break the rules. The communicator goes on as if nothing had been, or ends with the right error.
 */
#include "rdma/rdma.h"
#include "kunit/harness.h"
#include "net_harness.h"
#include "kunit/rdma/raw_peer.h"

/* ------------------------------------------------------------------ who is refused */

/* Of the same name, but another id: who connects is told, and the other never believes it. */
static void lies_secret(struct kunit *test)
{
	u64 opened = swc_stat_read(SWC_STAT_CONNS_OPENED), refused = swc_stat_read(SWC_STAT_CONNS_REFUSED);
	struct swc_t_comm *c = swc_t_comm_on(test, 2, 20000, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_done late;
	int ret;

	swc_t_of(c, 1)->id[SWC_ID_BYTES - 1] ^= 1;
	swc_t_job_init(job, c, swc_t_ring, 300, false);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), 0);
	/* It may hear of the refusal before it is through with submitting. */
	ret = swc_t_job_submit(job, 0, true) ?: swc_t_result(&job->done[0]);
	if (ret != -ECONNABORTED)
		KUNIT_EXPECT_EQ(test, ret, -EPROTO);
	KUNIT_EXPECT_EQ(test, swc_t_of(c, 0)->error, -EPROTO);
	KUNIT_EXPECT_TRUE_MSG(test, strstr(swc_t_of(c, 0)->text, "believe"), "%s", swc_t_of(c, 0)->text);
	/* A deadline only now: before, it could pass while they meet. */
	job->desc[1].timeout_ms = 500;
	KUNIT_EXPECT_EQ(test, swc_t_submit(c, 1, &job->desc[1], &late, true), 0);
	KUNIT_EXPECT_EQ(test, swc_t_result(&late), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[1]), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_CONNS_REFUSED) - refused, 1ull);
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_CONNS_OPENED), opened);
	swc_t_comm_end(c);
}

/* Requests that are refused, each for its own reason; the communicator goes on as if nothing had been. */
static void lies_strangers(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, 20000, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	const struct swc_comm *comm = swc_t_of(c, 1);
	struct swc_wire_hello h;

#define EXPECT_REASON(reason, ...) do {							\
	swc_t_hello(comm, 0, 1, &h);							\
	__VA_ARGS__;									\
	KUNIT_EXPECT_EQ_MSG(test, swc_t_refused(test, &h, sizeof(h)), (int)(reason),	\
			    #__VA_ARGS__);						\
} while (0)
	EXPECT_REASON(SWC_WIRE_BAD, memset(&h, 0, sizeof(h)));
	EXPECT_REASON(SWC_WIRE_BAD, h.magic ^= cpu_to_le32(1));
	EXPECT_REASON(SWC_WIRE_VERSION_DIFFERS, h.version = cpu_to_le16(SWC_WIRE_VERSION + 1));
	EXPECT_REASON(SWC_WIRE_BAD, h.slots = 0);
	EXPECT_REASON(SWC_WIRE_UNKNOWN, h.name[7] ^= 1);
	EXPECT_REASON(SWC_WIRE_DENIED, h.mac[0] ^= 1);
	EXPECT_REASON(SWC_WIRE_DENIED, h.mac[15] ^= 0x80);
	EXPECT_REASON(SWC_WIRE_DENIED, h.nonce[0] ^= 1);
	EXPECT_REASON(SWC_WIRE_DENIED, h.channel ^= 1);
	EXPECT_REASON(SWC_WIRE_DENIED, h.slot_kib = cpu_to_le16(64));
	/* From here on by somebody who knows the id. */
	EXPECT_REASON(SWC_WIRE_BAD, h.places ^= cpu_to_le32(1); swc_t_sign(comm, &h));
	EXPECT_REASON(SWC_WIRE_BAD, h.dst = cpu_to_le32(2); swc_t_sign(comm, &h));
	EXPECT_REASON(SWC_WIRE_BAD, h.path = 1; swc_t_sign(comm, &h));
	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	/* It is there already. */
	EXPECT_REASON(SWC_WIRE_BUSY, (void)h);
	swc_t_job_run(job, 1, true);
	swc_comm_abort(swc_t_of(c, 1), -EIO, -1, 0, "enough");
	EXPECT_REASON(SWC_WIRE_ENDED, (void)h);
	swc_t_comm_end(c);
}

/*
 * Somebody has heard a request and repeats it, but cannot prove anything: it spoils its own attempt, and the
 * right one gets through after that.
 */
static void lies_replay(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	u32 how;

	for (how = 0; how < 6; how++) {
		struct swc_t_comm *c = swc_t_comm_on(test, 2, 60000, &swc_t_two_nodes);
		struct swc_t_stranger *s = swc_t_stranger(test);
		struct swc_wire_header *m = s->out;
		struct swc_wire_hello h;

		swc_t_hello(swc_t_of(c, 1), 0, 1, &h);
		KUNIT_EXPECT_EQ(test, swc_t_connect(s, &h, sizeof(h)), RDMA_CM_EVENT_ESTABLISHED);
		memset(m, 0, PAGE_SIZE);
		switch (how) {
		case 0: /* a wrong proof */
			m->kind = SWC_WIRE_PROOF;
			swc_t_send_raw(s, SWC_HEADER + SWC_WIRE_MAC);
			break;
		case 1: /* something else than a proof */
			m->kind = SWC_WIRE_ABORT;
			swc_t_send_raw(s, SWC_HEADER + sizeof(struct swc_wire_abort));
			break;
		case 2: /* nothing that makes sense */
			memset(m, 0xff, PAGE_SIZE);
			swc_t_send_raw(s, PAGE_SIZE);
			break;
		case 3: /* a chunk that is written */
			swc_t_write_raw(s, 0, 0, 0);
			break;
		case 4: /* memory that it was given no key to */
			swc_t_write_raw(s, (uintptr_t)s->out, 64, 0);
			break;
		default: /* not a word */
			break;
		}
		swc_t_job_init(job, c, swc_t_ring, 300, false);
		swc_t_job_run(job, how, true);
		KUNIT_EXPECT_EQ(test, swc_t_of(c, 1)->status, SWC_COMM_LIVE);
		swc_t_stranger_end(s);
		swc_t_comm_end(c);
	}
}

/* ------------------------------------------------------------------ who is let in */

/* What a peer that has proven itself can do wrong. */
struct lie {
	const char *name;
	int error;
	void (*tell)(struct swc_t_stranger *s, struct swc_wire_header *h);
};

static void lie_kind(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	h->kind = 99;
	swc_t_send_raw(s, SWC_HEADER);
}

static void lie_short(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	swc_t_send_raw(s, 1);
}

static void lie_nothing(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	swc_t_send_raw(s, 0);
}

static void lie_proof(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	h->kind = SWC_WIRE_PROOF;
	swc_t_prove(s, h + 1);
	swc_t_send_raw(s, SWC_HEADER + SWC_WIRE_MAC);
}

static void lie_credits(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	h->kind = SWC_WIRE_CREDIT;
	h->credits = cpu_to_le16(0xffff);
	swc_t_send_raw(s, SWC_HEADER);
}

/* All that the other side knows of are offered; a chunk twice. */
static void lie_offer(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	struct swc_wire_ready *r = (void *)(h + 1);

	h->kind = SWC_WIRE_READY;
	h->total = cpu_to_le64(1 << 20);
	h->bytes = cpu_to_le32(1 << 20);
	r->chunk = cpu_to_le32(SWC_WIRE_CHUNKS - 1);
	swc_t_send_raw(s, SWC_HEADER + sizeof(*r));
	swc_t_send_raw(s, SWC_HEADER + sizeof(*r));
}

static void lie_written(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	swc_t_write_raw(s, 0, 0, 1);
}

static void lie_written_where(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	swc_t_write_raw(s, 0, 0, 0xdeadbeef);
}

/* Memory that it was given no key to. */
static void lie_write(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	swc_t_write_raw(s, (uintptr_t)s->out, 64, 0);
}

/* The same, without a word. */
static void lie_write_quietly(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	swc_t_write_quietly(s, (uintptr_t)s->out, 64);
}

static void data(struct swc_t_stranger *s, struct swc_wire_header *h, u64 seq, u32 ordinal, u64 total)
{
	h->kind = SWC_WIRE_DATA;
	h->seq = cpu_to_le64(seq);
	h->ordinal = cpu_to_le32(ordinal);
	h->total = cpu_to_le64(total);
	h->bytes = cpu_to_le32(min_t(u64, total, 64));
	h->count = cpu_to_le64(300);
	h->family = cpu_to_le64(42);
	h->dtype = SWC_U64;
	swc_t_send_raw(s, SWC_HEADER + min_t(u64, total, 64));
}

static void lie_past(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	data(s, h, 0, 0, 64);
}

static void lie_size(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	data(s, h, 1, 0, 64);
}

static void lie_call(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	h->root = cpu_to_le32(1);
	data(s, h, 1, 0, 1200);
}

static void lie_gap(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	h->offset = cpu_to_le64(64);
	data(s, h, 1, 0, 1200);
}

/* The same as often as there are slots: what nobody takes must not keep the end away. */
static void lie_flood(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	u32 i;

	for (i = 0; i < 16; i++)
		data(s, h, 1, 1000 + i, 64);
	h->kind = 99;
	swc_t_send_raw(s, SWC_HEADER);
}

static void lie_bye(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	h->kind = SWC_WIRE_BYE;
	swc_t_send_raw(s, SWC_HEADER);
}

static void lie_abort(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	struct swc_wire_abort *a = (void *)(h + 1);

	h->kind = SWC_WIRE_ABORT;
	a->error = cpu_to_le32(0x80000000);
	a->culprit = cpu_to_le32(0xffffffff);
	memset(a->text, '\n', sizeof(a->text));
	swc_t_send_raw(s, SWC_HEADER + sizeof(*a));
}

/* Only by asking is it found out. */
static void lie_silence(struct swc_t_stranger *s, struct swc_wire_header *h)
{
	swc_t_fall_silent(s);
}

static const struct lie lies[] = {
	{ "an unknown kind", -EPROTO, lie_kind },
	{ "one byte", -EPROTO, lie_short },
	{ "no bytes", -EPROTO, lie_nothing },
	{ "another proof", -EPROTO, lie_proof },
	{ "credits that it was not given", -EPROTO, lie_credits },
	{ "a chunk offered twice", -EPROTO, lie_offer },
	{ "a chunk written that was not offered", -EPROTO, lie_written },
	{ "a chunk written that is none", -EPROTO, lie_written_where },
	{ "a write to memory that is not its own", -ECONNRESET, lie_write },
	{ "such a write without notice", -ECONNRESET, lie_write_quietly },
	{ "data of an operation that is over", -EPROTO, lie_past },
	{ "a message of another size", -EPROTO, lie_size },
	{ "a message of another call", -EPROTO, lie_call },
	{ "a message with a gap", -EPROTO, lie_gap },
	{ "messages that nobody receives", -EPROTO, lie_flood },
	{ "good-bye before the operation", -ECONNRESET, lie_bye },
	{ "an abort of nonsense", -ECONNABORTED, lie_abort },
	{ "silence", -ECONNRESET, lie_silence },
};

static void lie_desc(const struct lie *lie, char *desc)
{
	strscpy(desc, lie->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(lie, lies, lie_desc);

/* A stranger that knows the id plays rank 0, while rank 1 waits for rank 0's part in its second operation. */
static void lies_told(struct kunit *test)
{
	const struct lie *lie = test->param_value;
	struct swc_t_comm *c = swc_t_comm_on(test, 2, 20000, &swc_t_two_nodes);
	struct swc_t_stranger *s = swc_t_stranger(test);
	struct swc_t_job *first = swc_t_job_new(test), *job = swc_t_job_new(test);
	struct swc_wire_header *m = s->out;
	struct swc_wire_hello h;
	const char *text;

	s->comm = swc_t_of(c, 1);
	swc_t_hello(s->comm, 0, 1, &h);
	KUNIT_EXPECT_EQ(test, swc_t_connect(s, &h, sizeof(h)), RDMA_CM_EVENT_ESTABLISHED);
	memset(m, 0, PAGE_SIZE);
	m->kind = SWC_WIRE_PROOF;
	swc_t_prove(s, m + 1);
	swc_t_send_raw(s, SWC_HEADER + SWC_WIRE_MAC);

	/* Operation 0 is a gift, which it gives. */
	swc_t_job_init(first, c, swc_t_gift_of_0, 300, false);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(first, 1, true), 0);
	memset(m, 0, PAGE_SIZE);
	m->kind = SWC_WIRE_DATA;
	m->total = cpu_to_le64(2400);
	m->bytes = cpu_to_le32(2400);
	m->count = cpu_to_le64(300);
	m->family = cpu_to_le64(42);
	m->dtype = SWC_U64;
	swc_t_send_raw(s, SWC_HEADER + 2400);
	KUNIT_EXPECT_EQ(test, swc_t_result(&first->done[1]), 0);

	swc_t_job_init(job, c, swc_t_ring, 300, false);
	/* That there is silence, a device finds out late. */
	job->desc[1].timeout_ms = 90000;
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), 0);
	memset(m, 0, PAGE_SIZE);
	lie->tell(s, m);
	KUNIT_EXPECT_EQ_MSG(test, swc_t_result(&job->done[1]), lie->error, "%s", swc_t_of(c, 1)->text);
	KUNIT_EXPECT_EQ(test, swc_t_of(c, 1)->status, SWC_COMM_ABORTED);
	KUNIT_EXPECT_GE(test, swc_t_of(c, 1)->culprit, -1);
	KUNIT_EXPECT_LT(test, swc_t_of(c, 1)->culprit, 2);
	for (text = swc_t_of(c, 1)->text; *text; text++)
		KUNIT_EXPECT_TRUE(test, *text >= ' ' && *text <= '~');
	swc_t_stranger_end(s);
	swc_t_comm_end(c);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_SLOW(lies_secret),
	KUNIT_CASE_SLOW(lies_strangers),
	KUNIT_CASE_SLOW(lies_replay),
	KUNIT_CASE_PARAM(lies_told, lie_gen_params),
	{}
};

struct kunit_suite swc_lies_suite = {
	.name = "swc_lies", .init = swc_t_net_init, .exit = swc_t_net_exit, .test_cases = cases,
};

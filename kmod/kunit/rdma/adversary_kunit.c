// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hostile peers: invalid requests, peers that cannot authenticate themselves, and authenticated peers that
 * violate the protocol. The communicator is not affected, or is aborted with the right error.
 */
#include <linux/delay.h>
#include <net/net_namespace.h>

#include "core/text.h"
#include "mem/account.h"
#include "net/tombstone.h"
#include "rdma/rdma.h"
#include "kunit/harness.h"
#include "kunit/rdma/net_harness.h"
#include "kunit/rdma/raw_peer.h"

/* ------------------------------------------------------------------ not authenticated */

/* Two ranks with the same name, but another id, call a collective. Rank 0, which connects, is refused. */
static struct swc_t_comm *call_with_wrong_id(struct kunit *test, struct swc_t_job *job, u32 timeout_ms)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, timeout_ms, &swc_t_two_nodes);

	swc_t_rank_comm(c, 1)->id[SWC_ID_BYTES - 1] ^= 1;
	swc_t_job_init(job, c, swc_t_ring, 300, false);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), 0);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), 0);
	return c;
}

/*
 * The rank that is refused cannot know that a member has refused it, so it tries again until the deadline,
 * and then says why. The other one sees no connection.
 */
static void adversary_wrong_id(struct kunit *test)
{
	u64 opened = swc_stat_read(SWC_STAT_CONNS_OPENED), refused = swc_stat_read(SWC_STAT_CONNS_REFUSED);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_comm *c;
	u32 i;

	c = call_with_wrong_id(test, job, SWC_T_NO_DEADLINE);
	for (i = 0; i < SWC_T_NO_DEADLINE / 40 && swc_stat_read(SWC_STAT_CONNS_REFUSED) - refused < 3; i++)
		msleep(20);
	KUNIT_EXPECT_GE(test, swc_stat_read(SWC_STAT_CONNS_REFUSED) - refused, 3ull);
	KUNIT_EXPECT_EQ(test, READ_ONCE(swc_t_rank_comm(c, 0)->status), SWC_COMM_LIVE);
	for (i = 0; i < 2; i++)
		swc_comm_abort(swc_t_rank_comm(c, i), -ECANCELED, i, 0, "enough");
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[i]), -ECANCELED);
	swc_t_comm_end(c);

	c = call_with_wrong_id(test, job, 5000);
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[0]), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, swc_t_rank_comm(c, 0)->error, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, swc_t_rank_comm(c, 0)->culprit, 1);
	KUNIT_EXPECT_TRUE_MSG(test, strstr(swc_t_rank_comm(c, 0)->text, "proof"), "%s",
			      swc_t_rank_comm(c, 0)->text);
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[1]), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_CONNS_OPENED), opened);
	swc_t_comm_end(c);
}

/* Requests that are refused, each for its own reason; the communicator is not affected. */
static void adversary_requests(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, 20000, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	const struct swc_comm *comm = swc_t_rank_comm(c, 1);
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
	EXPECT_REASON(SWC_WIRE_BAD, h.rx_bufs = 0);
	EXPECT_REASON(SWC_WIRE_UNKNOWN, h.name[7] ^= 1);
	EXPECT_REASON(SWC_WIRE_DENIED, h.mac[0] ^= 1);
	EXPECT_REASON(SWC_WIRE_DENIED, h.mac[15] ^= 0x80);
	EXPECT_REASON(SWC_WIRE_DENIED, h.nonce[0] ^= 1);
	EXPECT_REASON(SWC_WIRE_DENIED, h.channel ^= 1);
	EXPECT_REASON(SWC_WIRE_DENIED, h.rx_buf_kib = cpu_to_le16(64));
	/* From here on with the right MAC. */
	EXPECT_REASON(SWC_WIRE_BAD, h.places ^= cpu_to_le32(1); swc_t_sign(comm, &h));
	EXPECT_REASON(SWC_WIRE_BAD, h.dst = cpu_to_le16(2); swc_t_sign(comm, &h));
	EXPECT_REASON(SWC_WIRE_BAD, h.src = cpu_to_le16(2); swc_t_sign(comm, &h));
	EXPECT_REASON(SWC_WIRE_BAD, h.src = cpu_to_le16(U16_MAX); swc_t_sign(comm, &h));
	EXPECT_REASON(SWC_WIRE_BAD, h.path = 1; swc_t_sign(comm, &h));
	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	/* The connection exists. */
	EXPECT_REASON(SWC_WIRE_BUSY, (void)h);
	swc_t_job_run(job, 1, true);
	swc_comm_abort(swc_t_rank_comm(c, 1), -EIO, -1, 0, "enough");
	EXPECT_REASON(SWC_WIRE_ENDED, (void)h);
	swc_t_comm_end(c);
}

/* How a communicator has ended is told in its own network namespace only. */
static void adversary_namespace(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct net *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct swc_tombstone end = {};
	u8 name[SWC_WIRE_NAME];
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, other);
	other->net_cookie = ~init_net.net_cookie;
	memcpy(name, swc_t_net(c, 0)->name, sizeof(name));
	swc_t_comm_end(c);
	/* A work item frees it. */
	for (i = 0; i < 500 && !swc_tombstone_find(&init_net, name, NULL, 0, &end); i++)
		msleep(20);
	KUNIT_EXPECT_TRUE(test, swc_tombstone_find(&init_net, name, NULL, 0, &end));
	KUNIT_EXPECT_FALSE(test, swc_tombstone_find(other, name, NULL, 0, &end));
}

static void bury(struct swc_net *net, u32 number)
{
	memcpy(net->name, &number, sizeof(number));
	swc_tombstone_add(net);
}

/* Whoever ends many communicators displaces no record of another user, once they have their share. */
static void adversary_tombstones(struct kunit *test)
{
	struct swc_net *mine = kunit_kzalloc(test, sizeof(*mine), GFP_KERNEL);
	struct swc_net *theirs = kunit_kzalloc(test, sizeof(*theirs), GFP_KERNEL);
	struct swc_account me = { .uid = KUIDT_INIT(54321) }, they = { .uid = KUIDT_INIT(54322) };
	struct swc_tombstone end;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, mine);
	KUNIT_ASSERT_NOT_NULL(test, theirs);
	mine->ns = &init_net;
	theirs->ns = &init_net;
	mine->params.account = &me;
	theirs->params.account = &they;
	memset(mine->name, 0x11, sizeof(mine->name));
	memset(theirs->name, 0x22, sizeof(theirs->name));
	for (i = 0; i < 300; i++)
		bury(theirs, i);
	bury(mine, 0);
	for (i = 300; i < 900; i++)
		bury(theirs, i);
	KUNIT_EXPECT_TRUE(test, swc_tombstone_find(&init_net, mine->name, NULL, 0, &end));
	KUNIT_EXPECT_TRUE(test, swc_tombstone_find(&init_net, theirs->name, NULL, 0, &end));
	/* Their oldest are gone. */
	memcpy(theirs->name, &(u32){ 0 }, sizeof(u32));
	KUNIT_EXPECT_FALSE(test, swc_tombstone_find(&init_net, theirs->name, NULL, 0, &end));
}

/*
 * A replayed request is accepted, but its sender cannot authenticate itself: its attempt fails, at the latest
 * when the member's own request arrives, and one of the member's succeeds after that.
 */
static void adversary_replay(struct kunit *test)
{
	struct swc_t_job *job = swc_t_job_new(test);
	u32 how;

	/* A sender that does nothing would hold the connection beyond all deadlines. */
	swc_auth_ms = 10 * SWC_T_HANG;
	for (how = 0; how < 6; how++) {
		struct swc_t_comm *c = swc_t_comm_on(test, 2, 60000, &swc_t_two_nodes);
		struct swc_t_raw_peer *peer = swc_t_raw_peer(test);
		struct swc_wire_header *m = peer->out;
		struct swc_wire_hello h;

		swc_t_hello(swc_t_rank_comm(c, 1), 0, 1, &h);
		KUNIT_EXPECT_EQ(test, swc_t_connect(peer, &h, sizeof(h)), RDMA_CM_EVENT_ESTABLISHED);
		memset(m, 0, PAGE_SIZE);
		switch (how) {
		case 0: /* a wrong MAC */
			m->kind = SWC_WIRE_AUTH;
			swc_t_send_raw(peer, SWC_HEADER + SWC_WIRE_MAC);
			break;
		case 1: /* another message than AUTH */
			m->kind = SWC_WIRE_ABORT;
			swc_t_send_raw(peer, SWC_HEADER + sizeof(struct swc_wire_abort));
			break;
		case 2: /* an invalid message */
			memset(m, 0xff, PAGE_SIZE);
			swc_t_send_raw(peer, PAGE_SIZE);
			break;
		case 3: /* immediate data */
			swc_t_write_raw(peer, 0, 0, 0);
			break;
		case 4: /* a write without a key */
			swc_t_write_raw(peer, (uintptr_t)peer->out, 64, 0);
			break;
		default: /* nothing */
			break;
		}
		swc_t_job_init(job, c, swc_t_ring, 300, false);
		swc_t_job_run(job, how, true);
		KUNIT_EXPECT_EQ(test, swc_t_rank_comm(c, 1)->status, SWC_COMM_LIVE);
		swc_t_raw_peer_end(peer);
		swc_t_comm_end(c);
	}
}

/* The state of rank 1's only connection. */
static enum swc_conn_state state_of_1(struct swc_t_comm *c)
{
	unsigned long key = 0;
	struct swc_conn *conn = xa_find(&swc_t_net(c, 1)->conns, &key, ULONG_MAX, XA_PRESENT);

	KUNIT_ASSERT_NOT_NULL(c->test, conn);
	return READ_ONCE(conn->state);
}

/*
 * A request that is not newer than those before is refused, whatever state the connection is in; a newer one
 * ends an attempt that waits for AUTH.
 */
static void adversary_old_request(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_raw_peer *peer = swc_t_raw_peer(test);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_wire_hello first, second, third;
	u32 i;

	swc_auth_ms = 10 * SWC_T_HANG;
	swc_t_hello(swc_t_rank_comm(c, 1), 0, 1, &first);
	second = first;
	second.attempt = cpu_to_le32(2);
	swc_t_sign(swc_t_rank_comm(c, 1), &second);
	third = first;
	third.attempt = cpu_to_le32(3);
	swc_t_sign(swc_t_rank_comm(c, 1), &third);
	KUNIT_EXPECT_EQ(test, swc_t_connect(peer, &second, sizeof(second)), RDMA_CM_EVENT_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, swc_t_refused(test, &first, sizeof(first)), SWC_WIRE_BUSY);
	KUNIT_EXPECT_EQ(test, swc_t_refused(test, &second, sizeof(second)), SWC_WIRE_BUSY);
	KUNIT_EXPECT_EQ(test, state_of_1(c), SWC_CONN_CONNECTING);
	KUNIT_EXPECT_EQ(test, swc_t_refused(test, &third, sizeof(third)), SWC_WIRE_BUSY);
	for (i = 0; i < SWC_T_HANG / 20 && state_of_1(c) != SWC_CONN_IDLE; i++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, state_of_1(c), SWC_CONN_IDLE);
	KUNIT_EXPECT_EQ(test, swc_t_refused(test, &first, sizeof(first)), SWC_WIRE_BUSY);
	KUNIT_EXPECT_EQ(test, swc_t_refused(test, &second, sizeof(second)), SWC_WIRE_BUSY);
	KUNIT_EXPECT_EQ(test, swc_t_refused(test, &third, sizeof(third)), SWC_WIRE_BUSY);
	swc_t_job_init(job, c, swc_t_ring, 300, false);
	swc_t_job_run(job, 0, true);
	swc_t_raw_peer_end(peer);
	swc_t_comm_end(c);
}

/* An operation whose connection is first answered by @forger; it succeeds. Ends @c. */
static void run_beside(struct swc_t_forger *forger, struct swc_t_job *job, struct swc_t_comm *c)
{
	struct swc_comm *comm = swc_t_rank_comm(c, 0);
	struct kunit *test = c->test;

	swc_t_forge(forger, test, comm, 1);
	swc_t_job_init(job, c, swc_t_ring, 300, false);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), 0);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 0, true), 0);
	KUNIT_EXPECT_GT(test, wait_for_completion_timeout(&forger->done, msecs_to_jiffies(SWC_T_NO_DEADLINE)),
			0ul);
	KUNIT_EXPECT_EQ(test, forger->error, 0);
	KUNIT_EXPECT_EQ_MSG(test, comm->status, SWC_COMM_LIVE, "after %u answers: %s", forger->sent,
			    comm->text);
	swc_t_forge_end(forger, comm, 1);
	swc_t_job_expect(job, 0);
	swc_t_job_check_sum(job);
	swc_t_comm_end(c);
}

/*
 * Refusals that no member has made, or that answer another request: the rank that connects tries again, and
 * reaches its peer in the end.
 */
static void adversary_forged_refusal(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_raw_peer *peer = swc_t_raw_peer(test);
	struct swc_wire_reject refusal[6];
	struct swc_t_forger forger = { .refusal = refusal, .n = ARRAY_SIZE(refusal) };
	static const u8 reason[] = {
		SWC_WIRE_VERSION_DIFFERS, SWC_WIRE_BAD, SWC_WIRE_DENIED, SWC_WIRE_ENDED, SWC_WIRE_ENDED,
	};
	struct swc_wire_hello h;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(reason); i++)
		refusal[i] = (struct swc_wire_reject){
			.magic = cpu_to_le32(SWC_WIRE_MAGIC),
			.version = cpu_to_le16(SWC_WIRE_VERSION),
			.reason = cpu_to_le16(reason[i]),
			.mac = { i },
		};
	refusal[4].error = cpu_to_le32(EIO);
	refusal[4].culprit = cpu_to_le32(1);
	/* A member has made the last one, for another request. */
	swc_t_hello(swc_t_rank_comm(c, 1), 0, 1, &h);
	h.places ^= cpu_to_le32(1);
	swc_t_sign(swc_t_rank_comm(c, 1), &h);
	KUNIT_EXPECT_EQ(test, swc_t_connect(peer, &h, sizeof(h)), RDMA_CM_EVENT_REJECTED);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(peer->reject.reason), SWC_WIRE_BAD);
	KUNIT_EXPECT_NOT_NULL(test, memchr_inv(peer->reject.mac, 0, SWC_WIRE_MAC));
	refusal[5] = peer->reject;
	swc_t_raw_peer_end(peer);

	run_beside(&forger, job, c);
}

/*
 * Acceptances by a host that does not know the id, the last of them made by the member for another request:
 * the connection is made by the attempt after them.
 */
static void adversary_forged_accept(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_raw_peer *peer = swc_t_raw_peer(test);
	struct swc_wire_accept accept[6];
	struct swc_t_forger forger = { .accept = accept, .accepts = ARRAY_SIZE(accept) };
	struct swc_wire_hello h;
	u32 i;

	swc_t_hello(swc_t_rank_comm(c, 1), 0, 1, &h);
	KUNIT_EXPECT_EQ(test, swc_t_connect(peer, &h, sizeof(h)), RDMA_CM_EVENT_ESTABLISHED);
	KUNIT_EXPECT_NOT_NULL(test, memchr_inv(peer->accept.mac, 0, SWC_WIRE_MAC));
	for (i = 0; i < ARRAY_SIZE(accept); i++)
		accept[i] = peer->accept;
	swc_t_raw_peer_end(peer);
	memset(accept[0].mac, 0, SWC_WIRE_MAC);
	accept[1].mac[SWC_WIRE_MAC - 1] ^= 1;
	accept[2].magic ^= cpu_to_le32(1);
	accept[3].version = cpu_to_le16(SWC_WIRE_VERSION + 1);
	accept[4].rx_bufs = 0;

	run_beside(&forger, job, c);
}

/* ------------------------------------------------------------------ authenticated */

static void authenticate(struct swc_t_raw_peer *peer)
{
	struct swc_wire_header *m = peer->out;

	memset(m, 0, PAGE_SIZE);
	m->kind = SWC_WIRE_AUTH;
	swc_t_auth(peer, m + 1);
	swc_t_send_raw(peer, SWC_HEADER + SWC_WIRE_MAC);
}

/* A violation of the protocol by an authenticated peer; @h is the header of the message to send, zeroed. */
struct violation {
	const char *name;
	int error;
	void (*commit)(struct swc_t_raw_peer *peer, struct swc_wire_header *h);
};

static void bad_kind(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	h->kind = 99;
	swc_t_send_raw(peer, SWC_HEADER);
}

static void bad_short(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	swc_t_send_raw(peer, 1);
}

static void bad_empty(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	swc_t_send_raw(peer, 0);
}

static void bad_second_auth(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	h->kind = SWC_WIRE_AUTH;
	swc_t_auth(peer, h + 1);
	swc_t_send_raw(peer, SWC_HEADER + SWC_WIRE_MAC);
}

static void bad_credits(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	h->kind = SWC_WIRE_CREDIT;
	h->credits = cpu_to_le16(0xffff);
	swc_t_send_raw(peer, SWC_HEADER);
}

/* The same chunk is offered twice. */
static void bad_offer(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	struct swc_wire_rtr *r = (void *)(h + 1);

	h->kind = SWC_WIRE_RTR;
	h->total = cpu_to_le64(1 << 20);
	h->bytes = cpu_to_le32(1 << 20);
	r->chunk = cpu_to_le32(SWC_WIRE_CHUNKS - 1);
	swc_t_send_raw(peer, SWC_HEADER + sizeof(*r));
	swc_t_send_raw(peer, SWC_HEADER + sizeof(*r));
}

static void bad_immediate(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	swc_t_write_raw(peer, 0, 0, 1);
}

static void bad_written(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	h->kind = SWC_WIRE_WRITTEN;
	swc_t_send_raw(peer, SWC_HEADER);
}

/* The device refuses the key. */
static void bad_key(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	h->kind = SWC_WIRE_WRITTEN;
	swc_t_send_invalidating(peer, SWC_HEADER, 0x1234);
}

/* To memory that it has no key for. */
static void bad_write(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	swc_t_write_raw(peer, (uintptr_t)peer->out, 64, 0);
}

/* The same without immediate data. */
static void bad_quiet_write(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	swc_t_write_quietly(peer, (uintptr_t)peer->out, 64);
}

/* The beginning of a message of rank 0 in the ring. */
static void data(struct swc_t_raw_peer *peer, struct swc_wire_header *h, u64 seq, u32 ordinal, u64 total)
{
	h->kind = SWC_WIRE_DATA;
	h->seq = cpu_to_le64(seq);
	h->ordinal = cpu_to_le32(ordinal);
	h->total = cpu_to_le64(total);
	h->bytes = cpu_to_le32(min_t(u64, total, 64));
	h->count = cpu_to_le64(300);
	h->family = cpu_to_le64(42);
	h->shard_blocks = cpu_to_le32(2);
	h->dtype = SWC_U64;
	swc_t_send_raw(peer, SWC_HEADER + min_t(u64, total, 64));
}

static void bad_past(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	data(peer, h, 0, 0, 64);
}

static void bad_size(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	data(peer, h, 1, 0, 64);
}

static void bad_call(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	h->root = cpu_to_le32(1);
	data(peer, h, 1, 0, 1200);
}

static void bad_gap(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	h->offset = cpu_to_le64(64);
	data(peer, h, 1, 0, 1200);
}

/* Two messages in a segment: the first is the one that is waited for, the second one is of another size. */
static void bad_several(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	__le32 size[] = { cpu_to_le32(1200), cpu_to_le32(1192) };

	h->kind = SWC_WIRE_DATA;
	h->flags = SWC_WIRE_BATCH;
	h->seq = cpu_to_le64(1);
	h->offset = cpu_to_le64(2);
	h->total = cpu_to_le64(2392);
	h->bytes = cpu_to_le32(2392 + sizeof(size));
	h->count = cpu_to_le64(300);
	h->family = cpu_to_le64(42);
	h->shard_blocks = cpu_to_le32(2);
	h->dtype = SWC_U64;
	memcpy((void *)(h + 1) + 2392, size, sizeof(size));
	swc_t_send_raw(peer, SWC_HEADER + 2392 + sizeof(size));
}

/* As many as there are receive buffers: segments that no task takes must not delay the abort. */
static void bad_flood(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	u32 i;

	for (i = 0; i < 16; i++)
		data(peer, h, 1, 1000 + i, 64);
	h->kind = 99;
	swc_t_send_raw(peer, SWC_HEADER);
}

static void bad_fin(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	h->kind = SWC_WIRE_FIN;
	swc_t_send_raw(peer, SWC_HEADER);
}

static void bad_abort(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	struct swc_wire_abort *a = (void *)(h + 1);

	h->kind = SWC_WIRE_ABORT;
	a->error = cpu_to_le32(0x80000000);
	a->culprit = cpu_to_le32(0xffffffff);
	memset(a->text, '\n', sizeof(a->text));
	swc_t_send_raw(peer, SWC_HEADER + sizeof(*a));
}

/* Only a probe detects it. */
static void bad_silence(struct swc_t_raw_peer *peer, struct swc_wire_header *h)
{
	swc_t_fall_silent(peer);
}

static const struct violation violations[] = {
	{ "an unknown kind", -EPROTO, bad_kind },
	{ "one byte", -EPROTO, bad_short },
	{ "no bytes", -EPROTO, bad_empty },
	{ "a second AUTH", -EPROTO, bad_second_auth },
	{ "credits that it was not granted", -EPROTO, bad_credits },
	{ "a chunk offered twice", -EPROTO, bad_offer },
	{ "immediate data", -EPROTO, bad_immediate },
	{ "a chunk written that was not offered", -EPROTO, bad_written },
	{ "a key that was never valid", -ECONNRESET, bad_key },
	{ "a write to memory that was not offered", -ECONNRESET, bad_write },
	{ "the same without immediate data", -ECONNRESET, bad_quiet_write },
	{ "data of an operation that has ended", -EPROTO, bad_past },
	{ "a message of another size", -EPROTO, bad_size },
	{ "a message of another call", -EPROTO, bad_call },
	{ "a message with a gap", -EPROTO, bad_gap },
	{ "two messages, the second of another size", -EPROTO, bad_several },
	{ "messages that no plan receives", -EPROTO, bad_flood },
	{ "FIN before the operation", -ECONNRESET, bad_fin },
	{ "ABORT with invalid fields", -ECONNABORTED, bad_abort },
	{ "silence", -ECONNRESET, bad_silence },
};

static void violation_desc(const struct violation *violation, char *desc)
{
	strscpy(desc, violation->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(violation, violations, violation_desc);

/*
 * The raw peer knows the id and acts as rank 0: it sends the data of operation 0 correctly, and violates
 * the protocol while rank 1 waits in operation 1.
 */
static void adversary_violation(struct kunit *test)
{
	const struct violation *violation = test->param_value;
	struct swc_t_comm *c = swc_t_comm_on(test, 2, 20000, &swc_t_two_nodes);
	struct swc_t_raw_peer *peer = swc_t_raw_peer(test);
	struct swc_t_job *first = swc_t_job_new(test), *job = swc_t_job_new(test);
	struct swc_wire_header *m = peer->out;
	char text[SWC_TEXT_BYTES];
	struct swc_wire_hello h;
	u32 i;

	peer->comm = swc_t_rank_comm(c, 1);
	swc_t_hello(peer->comm, 0, 1, &h);
	KUNIT_EXPECT_EQ(test, swc_t_connect(peer, &h, sizeof(h)), RDMA_CM_EVENT_ESTABLISHED);
	authenticate(peer);

	/* Operation 0: rank 0 gives its vector to rank 1. */
	swc_t_job_init(first, c, swc_t_send_from_0, 300, false);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(first, 1, true), 0);
	memset(m, 0, PAGE_SIZE);
	m->kind = SWC_WIRE_DATA;
	m->total = cpu_to_le64(2400);
	m->bytes = cpu_to_le32(2400);
	m->count = cpu_to_le64(300);
	m->family = cpu_to_le64(42);
	m->shard_blocks = cpu_to_le32(1);
	m->dtype = SWC_U64;
	swc_t_send_raw(peer, SWC_HEADER + 2400);
	KUNIT_EXPECT_EQ(test, swc_t_result(&first->done[1]), 0);

	swc_t_job_init(job, c, swc_t_ring, 300, false);
	/* The device reports silence late. */
	job->desc[1].timeout_ms = 90000;
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), 0);
	memset(m, 0, PAGE_SIZE);
	violation->commit(peer, m);
	KUNIT_EXPECT_EQ_MSG(test, swc_t_result(&job->done[1]), violation->error, "%s",
			    swc_t_rank_comm(c, 1)->text);
	KUNIT_EXPECT_EQ(test, swc_t_rank_comm(c, 1)->status, SWC_COMM_ABORTED);
	KUNIT_EXPECT_GE(test, swc_t_rank_comm(c, 1)->culprit, -1);
	KUNIT_EXPECT_LT(test, swc_t_rank_comm(c, 1)->culprit, 2);
	swc_text_read(text, swc_t_rank_comm(c, 1)->text, 0);
	for (i = 0; text[i]; i++)
		KUNIT_EXPECT_TRUE(test, text[i] >= ' ' && text[i] <= '~');
	swc_t_raw_peer_end(peer);
	swc_t_comm_end(c);
}

/* ------------------------------------------------------------------ what a peer learns */

static bool is_kernel_address(__le64 v)
{
	return virt_addr_valid((void *)(uintptr_t)le64_to_cpu(v));
}

/* Two fields of 4 bytes may look like an address where memory lies as low as under User-Mode Linux. */
static bool has_kernel_address(const void *data, u32 bytes)
{
	static const size_t wide[] = {
		offsetof(struct swc_wire_header, seq), offsetof(struct swc_wire_header, offset),
		offsetof(struct swc_wire_header, total), offsetof(struct swc_wire_header, count),
		offsetof(struct swc_wire_header, family),
		sizeof(struct swc_wire_header) + offsetof(struct swc_wire_rtr, addr),
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(wide); i++)
		if (wide[i] + 8 <= bytes && is_kernel_address(*(const __le64 *)(data + wide[i])))
			return true;
	return false;
}

/*
 * The raw peer is to send rank 1 a vector of two chunks, which rank 1 offers to it: @rtr. No address of this
 * kernel comes with the messages of rank 1.
 */
static struct swc_t_raw_peer *take_offers(struct swc_t_comm *c, struct swc_t_job *job,
					  struct swc_wire_rtr rtr[2])
{
	struct kunit *test = c->test;
	struct swc_t_raw_peer *peer = swc_t_raw_peer(test);
	struct swc_wire_hello h;
	u32 i, bytes, n = 0;

	/* The test would see the addresses of rank 1's memory, if they came. */
	KUNIT_EXPECT_TRUE(test, is_kernel_address(cpu_to_le64((uintptr_t)peer->out)));
	peer->comm = swc_t_rank_comm(c, 1);
	swc_t_hello(peer->comm, 0, 1, &h);
	KUNIT_EXPECT_EQ(test, swc_t_connect(peer, &h, sizeof(h)), RDMA_CM_EVENT_ESTABLISHED);
	authenticate(peer);
	swc_t_job_init_for(job, c, 1, swc_t_send_from_0, 140000);
	KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, 1, true), 0);
	for (i = 0; n < 2; i++) {
		const void *data = swc_t_received(peer, i, &bytes);
		struct swc_wire_msg msg;

		KUNIT_ASSERT_EQ(test, swc_wire_parse(data, data + SWC_HEADER, bytes, &msg), 0);
		KUNIT_EXPECT_FALSE_MSG(test, has_kernel_address(data, bytes), "message %u", i);
		if (msg.kind == SWC_WIRE_RTR)
			rtr[n++] = *(const struct swc_wire_rtr *)msg.payload;
	}
	return peer;
}

/* Where a peer may write cannot be guessed. */
static void adversary_addresses(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, 20000, &swc_t_two_nodes);
	struct swc_t_job *job = swc_t_job_new(test);
	struct swc_t_raw_peer *peer;
	struct swc_wire_rtr rtr[2];
	u64 first, second;

	peer = take_offers(c, job, rtr);
	first = le64_to_cpu(rtr[0].addr);
	second = le64_to_cpu(rtr[1].addr);
	/* The second chunk is not behind the first. */
	KUNIT_EXPECT_GT(test, max(first, second) - min(first, second), 140000 * 8ull);
	KUNIT_EXPECT_LT(test, max(first, second), 1ull << 63);
	swc_t_raw_peer_end(peer);
	KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[1]), -ECONNRESET);
	swc_t_comm_end(c);
}

/* A peer that was offered chunks reports one with the key of the other, or without any, or keeps neither. */
static void adversary_written(struct kunit *test)
{
	u32 how;

	for (how = 0; how < 3; how++) {
		struct swc_t_comm *c = swc_t_comm_on(test, 2, 20000, &swc_t_two_nodes);
		struct swc_t_job *job = swc_t_job_new(test);
		struct swc_t_raw_peer *peer;
		struct swc_wire_header *m;
		struct swc_wire_rtr rtr[2];

		peer = take_offers(c, job, rtr);
		m = peer->out;
		memset(m, 0, PAGE_SIZE);
		m->kind = how == 2 ? SWC_WIRE_HEARTBEAT : SWC_WIRE_WRITTEN;
		m->ordinal = how == 2 ? 0 : rtr[0].chunk;
		if (how == 1)
			swc_t_send_raw(peer, SWC_HEADER);
		else
			swc_t_send_invalidating(peer, SWC_HEADER, le32_to_cpu(rtr[1].rkey));
		KUNIT_EXPECT_EQ(test, swc_t_result(&job->done[1]), -EPROTO);
		swc_t_raw_peer_end(peer);
		swc_t_comm_end(c);
	}
}

/* ------------------------------------------------------------------ questions */

static void say(struct swc_t_raw_peer *peer, enum swc_wire_kind kind, u8 flags)
{
	struct swc_wire_header *m = peer->out;

	memset(m, 0, SWC_HEADER);
	m->kind = kind;
	m->flags = flags;
	swc_t_send_raw(peer, SWC_HEADER);
}

static void expect_message(struct swc_t_raw_peer *peer, u32 i, enum swc_wire_kind kind, bool is_reply)
{
	struct kunit *test = peer->test;
	struct swc_wire_msg msg;
	const void *data;
	u32 bytes;

	data = swc_t_received(peer, i, &bytes);
	KUNIT_ASSERT_EQ(test, swc_wire_parse(data, data + SWC_HEADER, bytes, &msg), 0);
	KUNIT_EXPECT_EQ_MSG(test, (int)msg.kind, (int)kind, "message %u", i);
	KUNIT_EXPECT_EQ_MSG(test, msg.is_reply, is_reply, "message %u", i);
}

/* Ask the peer for its progress, at once. */
static void ask(struct swc_conn *conn)
{
	swc_net_heartbeat(conn->net, conn->peer);
	conn->transport->pump(conn, false);
}

/* A rank answers each question; its own next one waits for the answer to the one before. */
static void adversary_questions(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, 20000, &swc_t_two_nodes);
	struct swc_t_raw_peer *peer = swc_t_raw_peer(test);
	struct swc_wire_hello h;
	struct swc_conn *conn;

	peer->comm = swc_t_rank_comm(c, 1);
	swc_t_hello(peer->comm, 0, 1, &h);
	KUNIT_EXPECT_EQ(test, swc_t_connect(peer, &h, sizeof(h)), RDMA_CM_EVENT_ESTABLISHED);
	authenticate(peer);
	say(peer, SWC_WIRE_HEARTBEAT, 0);
	expect_message(peer, 0, SWC_WIRE_CREDIT, true);
	conn = swc_net_known_conn(peer->comm->net, 1, 0, 0, 0);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	ask(conn);
	expect_message(peer, 1, SWC_WIRE_HEARTBEAT, false);
	ask(conn);
	say(peer, SWC_WIRE_CREDIT, 0);
	say(peer, SWC_WIRE_HEARTBEAT, 0);
	expect_message(peer, 2, SWC_WIRE_CREDIT, true);
	say(peer, SWC_WIRE_CREDIT, SWC_WIRE_REPLY);
	expect_message(peer, 3, SWC_WIRE_HEARTBEAT, false);
	swc_conn_put(conn);
	swc_t_raw_peer_end(peer);
	swc_t_comm_end(c);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_SLOW(adversary_wrong_id),
	KUNIT_CASE_SLOW(adversary_requests),
	KUNIT_CASE(adversary_namespace),
	KUNIT_CASE(adversary_tombstones),
	KUNIT_CASE_SLOW(adversary_replay),
	KUNIT_CASE_SLOW(adversary_old_request),
	KUNIT_CASE_SLOW(adversary_forged_refusal),
	KUNIT_CASE_SLOW(adversary_forged_accept),
	KUNIT_CASE_PARAM(adversary_violation, violation_gen_params),
	KUNIT_CASE_SLOW(adversary_addresses),
	KUNIT_CASE_SLOW(adversary_written),
	KUNIT_CASE_SLOW(adversary_questions),
	{}
};

struct kunit_suite swc_adversary_suite = {
	.name = "swc_adversary", .init = swc_t_net_init, .exit = swc_t_net_exit, .test_cases = cases,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is sent again when a queue pair is lost: after any number of messages that the peer has received, on a
 * device that only notes what is posted.
 */
#include <linux/slab.h>

#include "rdma/rdma.h"
#include "kunit/harness.h"

/* The message that was posted as number @n. */
#define TAG(n)		(1000 + (n))
#define BYTES(n)	(SWC_HEADER + (n))
#define CREDITS(n)	((n) + 1)
#define PART		5000

/* What is in the send queue, for two messages: A is written in two chunks, B is sent in two segments. */
enum what { IS_COPIED, IS_REG, IS_RTR, IS_WRITE, IS_WRITTEN_A, IS_DATA_B, IS_AUTH };

static const enum what queue[] = {
	IS_AUTH, IS_COPIED, IS_REG, IS_RTR, IS_COPIED, IS_WRITE, IS_WRITTEN_A, IS_DATA_B, IS_COPIED,
	IS_COPIED, IS_DATA_B, IS_WRITE, IS_WRITE, IS_WRITTEN_A, IS_COPIED,
};

static const enum swc_sq_kind kinds[] = {
	[IS_COPIED] = SWC_SQ_COPIED, [IS_REG] = SWC_SQ_NONE, [IS_RTR] = SWC_SQ_RTR, [IS_WRITE] = SWC_SQ_NONE,
	[IS_WRITTEN_A] = SWC_SQ_WRITTEN, [IS_DATA_B] = SWC_SQ_DATA, [IS_AUTH] = SWC_SQ_AUTH,
};

/* @acked: so many were received by what the device has reported; the send queue begins behind them. */
#define ACKED		40u
#define RX_BUFS		16u

static struct {
	u32 nposted;
	u32 posted[SWC_SQ_DEPTH];
	u32 nreads;
	u32 nsignaled;
	u32 ndone;
	const struct swc_send *done[2];
} seen;

static int note_post(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	const struct swc_sq_entry *entry = container_of(wr->wr_cqe, struct swc_sq_entry, cqe);
	const struct swc_wire_header *h;

	if (wr->opcode == IB_WR_RDMA_READ) {
		seen.nreads++;
		return 0;
	}
	seen.nsignaled += !!(wr->send_flags & IB_SEND_SIGNALED);
	h = entry->page.data;
	seen.posted[seen.nposted++ % SWC_SQ_DEPTH] = le32_to_cpu(h->ordinal);
	return 0;
}

static void note_done(struct swc_send *send, int error, bool nested)
{
	seen.done[seen.ndone++ % 2] = send;
}

struct fake {
	struct ib_device ib;
	struct ib_qp qp;
	struct rdma_cm_id id;
	struct ib_pd pd;
	struct swc_rdma_dev dev;
	struct swc_net net;
	struct swc_rdma_conn conn;
	struct swc_send a;
	struct swc_send b;
	u32 npages;
};

static struct fake *fake_new(struct kunit *test)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct swc_rdma_conn *conn;

	KUNIT_ASSERT_NOT_NULL(test, f);
	conn = &f->conn;
	conn->sq.entry = kunit_kcalloc(test, SWC_SQ_DEPTH, sizeof(*conn->sq.entry), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, conn->sq.entry);
	f->ib.ops.post_send = note_post;
	f->qp.device = &f->ib;
	f->id.qp = &f->qp;
	f->dev.ib = &f->ib;
	conn->dev = &f->dev;
	conn->id = &f->id;
	conn->pd = &f->pd;
	conn->base.net = &f->net;
	conn->base.resumable = true;
	conn->base.peer_rx_bufs = RX_BUFS;
	conn->base.credits = RX_BUFS - 8;
	init_waitqueue_head(&f->net.abort_wq);
	spin_lock_init(&conn->base.lock);
	INIT_LIST_HEAD(&conn->base.outq);
	INIT_LIST_HEAD(&conn->base.inflight);
	INIT_LIST_HEAD(&conn->base.rndvs);
	conn->sent = ACKED;
	conn->acked = ACKED;
	f->a = (struct swc_send){ .seq = 1, .ordinal = 1, .bytes = 2 * PART, .posted = 2 * PART };
	f->b = (struct swc_send){ .seq = 1, .ordinal = 2, .bytes = 2 * PART, .posted = 2 * PART };
	/* In the order in which their last pieces were posted. */
	list_add_tail(&f->b.node, &conn->base.inflight);
	list_add_tail(&f->a.node, &conn->base.inflight);
	return f;
}

/* Fill the send queue as the pump does. */
static void post_queue(struct kunit *test, struct fake *f)
{
	struct swc_sq *sq = &f->conn.sq;
	u32 i, left[2] = { 2, 2 };

	for (i = 0; i < ARRAY_SIZE(queue); i++) {
		struct swc_sq_entry *entry = &sq->entry[sq->head++ % SWC_SQ_DEPTH];
		struct swc_wire_header *h = kunit_kzalloc(test, SWC_ENTRY_BYTES, GFP_KERNEL);
		bool is_b = queue[i] == IS_DATA_B;

		KUNIT_ASSERT_NOT_NULL(test, h);
		f->npages++;
		*entry = (struct swc_sq_entry){ .page.data = h, .conn = &f->conn, .kind = kinds[queue[i]] };
		if (entry->kind < SWC_SQ_COPIED)
			continue;
		entry->number = f->conn.sent++;
		h->ordinal = cpu_to_le32(TAG(entry->number));
		h->credits = cpu_to_le16(CREDITS(entry->number - ACKED));
		entry->bytes = BYTES(entry->number - ACKED);
		if (queue[i] != IS_WRITTEN_A && !is_b)
			continue;
		entry->owner = is_b ? &f->b : &f->a;
		entry->bytes = PART;
		if (!--left[is_b])
			entry->send = entry->owner;
	}
}

/* What the peer lacks that has received messages below @received. */
struct lacks {
	u32 copied[ARRAY_SIZE(queue)];
	u32 ncopied;
	u64 of_a;
	u64 of_b;
	u32 credits;
	u32 to_return;
};

static struct lacks what_lacks(u64 received)
{
	struct lacks l = {};
	u64 number = ACKED;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(queue); i++) {
		if (kinds[queue[i]] < SWC_SQ_COPIED || number++ < received)
			continue;
		if (queue[i] == IS_COPIED) {
			l.copied[l.ncopied++] = TAG(number - 1);
			continue;
		}
		l.of_a += queue[i] == IS_WRITTEN_A ? PART : 0;
		l.of_b += queue[i] == IS_DATA_B ? PART : 0;
		l.credits += queue[i] == IS_DATA_B;
		l.to_return += CREDITS(number - 1 - ACKED);
	}
	return l;
}

static u32 pages_of(const struct swc_sq *sq)
{
	u32 i, n = sq->npages + sq->nreplay;

	for (i = 0; i < SWC_SQ_DEPTH; i++)
		n += sq->entry[i].page.data ? 1 : 0;
	return n;
}

/* Post the next @n messages that are to be sent again, which must be these. */
static void expect_replay(struct kunit *test, struct fake *f, const u32 *tags, u32 n)
{
	u32 i;

	seen.nposted = 0;
	spin_lock(&f->conn.base.lock);
	for (i = 0; i < n; i++)
		swc_replay_post(&f->conn);
	spin_unlock(&f->conn.base.lock);
	KUNIT_ASSERT_EQ(test, seen.nposted, n);
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, seen.posted[i], tags[i]);
	KUNIT_EXPECT_EQ(test, pages_of(&f->conn.sq), f->npages);
}

static void expect_taken_back(struct kunit *test, const struct fake *f, const struct lacks *l)
{
	const struct swc_conn *base = &f->conn.base;

	KUNIT_EXPECT_EQ(test, f->a.posted, 2 * PART - l->of_a);
	KUNIT_EXPECT_EQ(test, f->b.posted, 2 * PART - l->of_b);
	KUNIT_EXPECT_EQ(test, base->credits, RX_BUFS - 8 + l->credits);
	KUNIT_EXPECT_EQ(test, base->to_return, l->to_return);
	KUNIT_EXPECT_EQ(test, base->pending, l->to_return ? SWC_PEND_CREDIT : 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&base->inflight));
	KUNIT_EXPECT_EQ(test, seen.ndone, !l->of_a + !l->of_b);
	KUNIT_EXPECT_EQ(test, list_count_nodes((struct list_head *)&base->outq), !!l->of_a + !!l->of_b);
	if (l->of_a && l->of_b)
		KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&base->outq, struct swc_send, node), &f->b);
}

/* The device reports the last request of the queue to be done, and so all. */
static void report_done(struct fake *f)
{
	struct swc_sq *sq = &f->conn.sq;
	struct swc_sq_entry *last = &sq->entry[(sq->head - 1) % SWC_SQ_DEPTH];
	struct ib_wc wc = { .wr_cqe = &last->cqe, .status = IB_WC_SUCCESS };

	swc_rdma_tx_done(NULL, &wc);
}

/*
 * From any number that the peer may name; others are refused, and change nothing. @kept: by iWARP, whose
 * device has reported all to be done, which says nothing.
 */
static void check_from_any(struct kunit *test, bool kept)
{
	struct swc_net_ops ops = *swc_net_ops;
	const struct swc_net_ops *before = swc_net_ops;
	u64 received, sent = ACKED;

	ops.send_done = note_done;
	WRITE_ONCE(swc_net_ops, &ops);
	for (received = ACKED; received <= sent; received++) {
		struct lacks l = what_lacks(received);
		struct fake *f = fake_new(test);

		post_queue(test, f);
		sent = f->conn.sent;
		memset(&seen, 0, sizeof(seen));
		f->conn.iwarp = kept;
		if (kept)
			report_done(f);
		KUNIT_EXPECT_EQ(test, swc_rdma_resume(&f->conn.base, ACKED - 1), -EPROTO);
		KUNIT_EXPECT_EQ(test, swc_rdma_resume(&f->conn.base, sent + 1), -EPROTO);
		KUNIT_EXPECT_EQ(test, f->conn.sq.head, ARRAY_SIZE(queue));
		KUNIT_ASSERT_EQ(test, swc_rdma_resume(&f->conn.base, received), 0);
		expect_taken_back(test, f, &l);
		KUNIT_EXPECT_EQ(test, f->conn.sent, received);
		KUNIT_EXPECT_EQ(test, swc_sq_is_idle(&f->conn.sq), !l.ncopied);
		KUNIT_EXPECT_EQ(test, pages_of(&f->conn.sq), f->npages);
		KUNIT_ASSERT_EQ(test, f->conn.sq.nreplay, l.ncopied);
		expect_replay(test, f, l.copied, l.ncopied);
		KUNIT_EXPECT_EQ(test, f->conn.sent, received + l.ncopied);
	}
	KUNIT_EXPECT_GT(test, sent, (u64)ACKED + 8);
	WRITE_ONCE(swc_net_ops, before);
}

static void replay_from_any(struct kunit *test)
{
	check_from_any(test, false);
}

static void replay_kept_from_any(struct kunit *test)
{
	check_from_any(test, true);
}

/*
 * The queue pair is lost again, and again, while messages are sent again: none is left out or comes twice,
 * and they keep their order.
 */
static void replay_again(struct kunit *test)
{
	struct swc_net_ops ops = *swc_net_ops;
	const struct swc_net_ops *before = swc_net_ops;
	struct lacks l = what_lacks(ACKED);
	u32 posted, got;

	ops.send_done = note_done;
	WRITE_ONCE(swc_net_ops, &ops);
	for (posted = 0; posted <= l.ncopied; posted++) {
		for (got = 0; got <= posted; got++) {
			struct fake *f = fake_new(test);

			post_queue(test, f);
			KUNIT_ASSERT_EQ(test, swc_rdma_resume(&f->conn.base, ACKED), 0);
			expect_replay(test, f, l.copied, posted);
			KUNIT_ASSERT_EQ(test, swc_rdma_resume(&f->conn.base, ACKED + got), 0);
			KUNIT_ASSERT_EQ(test, f->conn.sq.nreplay, l.ncopied - got);
			expect_replay(test, f, l.copied + got, l.ncopied - got);
			/* The end, with and without messages to be sent again: all pages are free. */
			if (got & 1)
				KUNIT_ASSERT_EQ(test, swc_rdma_resume(&f->conn.base, ACKED + got), 0);
			spin_lock(&f->conn.base.lock);
			swc_sq_reset(&f->conn);
			spin_unlock(&f->conn.base.lock);
			KUNIT_EXPECT_EQ(test, f->conn.sq.npages, f->npages);
			KUNIT_EXPECT_TRUE(test, swc_sq_is_idle(&f->conn.sq));
		}
	}
	WRITE_ONCE(swc_net_ops, before);
}

/* The peer has returned the credits of segments that it says it does not have. */
static void replay_credits(struct kunit *test)
{
	struct fake *f = fake_new(test);
	struct swc_conn *base = &f->conn.base;
	struct lacks l = what_lacks(ACKED);

	post_queue(test, f);
	base->credits = RX_BUFS - l.credits + 1;
	KUNIT_EXPECT_EQ(test, swc_rdma_resume(base, ACKED), -EPROTO);
	KUNIT_EXPECT_EQ(test, f->conn.sq.head, ARRAY_SIZE(queue));
	base->credits--;
	KUNIT_EXPECT_EQ(test, swc_rdma_resume(base, ACKED), 0);
	KUNIT_EXPECT_EQ(test, base->credits, RX_BUFS);
}

/* The queue pair is lost while a chunk is written: of offers, nothing is left, and all of the chunk lacks. */
static void replay_offers(struct kunit *test)
{
	struct fake *f = fake_new(test);
	struct swc_conn *base = &f->conn.base;
	struct swc_wire_msg msg = { .seq = 1, .ordinal = 1, .offset = PART, .bytes = PART };
	struct swc_rndv rndv = { .bytes = 9 * PART, .offered = 7 * PART, .received = PART, .closed = PART };
	u32 i;

	/* A chunk of A is written and reported to be done; of the next one, a part is. */
	list_move(&f->a.node, &base->outq);
	f->a.bytes = 3 * PART;
	f->a.posted = PART + 100;
	base->offer[1] = (struct swc_offer){ .valid = true, .posted = 100, .msg = msg };
	msg.offset += PART;
	base->offer[2] = (struct swc_offer){ .valid = true, .msg = msg };
	list_add(&rndv.node, &base->rndvs);
	swc_replay_suspend(&f->conn);
	KUNIT_EXPECT_EQ(test, f->a.posted, PART);
	for (i = 0; i < SWC_WIRE_CHUNKS; i++)
		KUNIT_EXPECT_FALSE(test, base->offer[i].valid);
	KUNIT_EXPECT_EQ(test, rndv.offered, PART);
	/* Once more before it is live: nothing changes. */
	swc_replay_suspend(&f->conn);
	KUNIT_EXPECT_EQ(test, f->a.posted, PART);
	KUNIT_EXPECT_EQ(test, rndv.offered, PART);
}

/* ------------------------------------------------------------------ iWARP */

/* A connection that is live, and only sends what the case posts. */
static struct fake *fake_iwarp(struct kunit *test)
{
	struct fake *f = fake_new(test);

	f->conn.iwarp = true;
	f->conn.base.state = SWC_CONN_LIVE;
	set_bit(SWC_CONN_F_UNHEARD, &f->conn.base.flags);
	memset(&seen, 0, sizeof(seen));
	return f;
}

static void answer_read(struct fake *f)
{
	struct ib_wc wc = { .wr_cqe = &f->conn.ack.cqe, .status = IB_WC_SUCCESS };

	swc_rdma_tx_read_done(NULL, &wc);
}

static void want_read(struct fake *f)
{
	f->conn.ack.wanted = true;
	swc_rdma_pump(&f->conn.base, false);
}

/*
 * What is kept is free when a read behind it is answered, and not before; what was posted after the read
 * stays. There is one read at a time.
 */
static void iwarp_answered(struct kunit *test)
{
	struct swc_net_ops ops = *swc_net_ops;
	const struct swc_net_ops *before = swc_net_ops;
	struct fake *f = fake_iwarp(test);
	struct swc_sq *sq = &f->conn.sq;
	u64 sent;

	ops.send_done = note_done;
	WRITE_ONCE(swc_net_ops, &ops);
	post_queue(test, f);
	sent = f->conn.sent;
	want_read(f);
	want_read(f);
	KUNIT_EXPECT_EQ(test, seen.nreads, 1);
	/* One more, behind the read. */
	sq->entry[sq->head++ % SWC_SQ_DEPTH] = (struct swc_sq_entry){ .conn = &f->conn, .kind = SWC_SQ_COPIED,
								      .number = f->conn.sent++ };
	report_done(f);
	KUNIT_EXPECT_EQ(test, sq->tail, 0);
	KUNIT_EXPECT_EQ(test, f->conn.acked, ACKED);
	KUNIT_EXPECT_EQ(test, seen.ndone, 0);
	KUNIT_EXPECT_FALSE(test, swc_rdma_all_received(&f->conn.base));
	answer_read(f);
	KUNIT_EXPECT_EQ(test, sq->tail, ARRAY_SIZE(queue));
	KUNIT_EXPECT_EQ(test, f->conn.acked, sent);
	KUNIT_EXPECT_EQ(test, seen.ndone, 2);
	/* The second was wanted all the time. */
	KUNIT_EXPECT_EQ(test, seen.nreads, 2);
	KUNIT_EXPECT_FALSE(test, swc_rdma_all_received(&f->conn.base));
	answer_read(f);
	KUNIT_EXPECT_EQ(test, sq->tail, sq->head);
	KUNIT_EXPECT_TRUE(test, swc_rdma_all_received(&f->conn.base));
	/* What is to be sent again has not been received. */
	sq->nreplay = 1;
	KUNIT_EXPECT_FALSE(test, swc_rdma_all_received(&f->conn.base));
	WRITE_ONCE(swc_net_ops, before);
}

/* A peer that has left answers no read: what the device has reported is done, and nothing else. */
static void iwarp_peer_left(struct kunit *test)
{
	struct swc_net_ops ops = *swc_net_ops;
	const struct swc_net_ops *before = swc_net_ops;
	struct fake *f = fake_iwarp(test);
	struct swc_sq *sq = &f->conn.sq;

	ops.send_done = note_done;
	WRITE_ONCE(swc_net_ops, &ops);
	/* So that it does not close. */
	f->conn.base.state = SWC_CONN_RESETTING;
	post_queue(test, f);
	report_done(f);
	sq->entry[sq->head++ % SWC_SQ_DEPTH] = (struct swc_sq_entry){ .conn = &f->conn };
	swc_rdma_pump(&f->conn.base, false);
	KUNIT_EXPECT_EQ(test, seen.ndone, 0);
	set_bit(SWC_CONN_F_PEER_LEFT, &f->conn.base.flags);
	swc_rdma_pump(&f->conn.base, false);
	KUNIT_EXPECT_EQ(test, seen.ndone, 2);
	KUNIT_EXPECT_EQ(test, sq->tail, ARRAY_SIZE(queue));
	KUNIT_EXPECT_EQ(test, sq->head, ARRAY_SIZE(queue) + 1);
	/* And then at once. */
	report_done(f);
	KUNIT_EXPECT_EQ(test, sq->tail, sq->head);
	WRITE_ONCE(swc_net_ops, before);
}

/* Post a small message; @signal: something waits for it. */
static void post_small(struct fake *f, bool signal)
{
	struct swc_sq_entry *entry;
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .num_sge = 1 };

	spin_lock(&f->conn.base.lock);
	entry = swc_sq_next(&f->conn);
	entry->conn = &f->conn;
	entry->kind = SWC_SQ_COPIED;
	entry->bytes = SWC_HEADER;
	swc_sq_message(&f->conn, entry, entry->bytes);
	wr.sg_list = entry->sge;
	swc_sq_post(&f->conn, entry, &wr, signal);
	spin_unlock(&f->conn.base.lock);
	swc_rdma_pump(&f->conn.base, false);
}

static void give_pages(struct kunit *test, struct swc_sq *sq)
{
	for (sq->npages = 0; sq->npages < SWC_SQ_PAGES; sq->npages++) {
		sq->page[sq->npages].data = kunit_kzalloc(test, SWC_ENTRY_BYTES, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, sq->page[sq->npages].data);
	}
}

#define MESSAGES	400u

/*
 * With few pages: none waits for a read that nobody posts, nor a message that something waits for; but most
 * need none of their own.
 */
static void iwarp_reads(struct kunit *test)
{
	struct fake *f = fake_iwarp(test);
	struct swc_sq *sq = &f->conn.sq;
	u32 i;

	give_pages(test, sq);
	for (i = 0; i < MESSAGES; i++) {
		post_small(f, false);
		/* As swc_sq_has_room() asks, for the two requests of a chunk, too. */
		if (sq->npages > 2)
			continue;
		KUNIT_ASSERT_TRUE(test, f->conn.ack.is_posted);
		answer_read(f);
		KUNIT_ASSERT_GT(test, sq->npages, 2);
	}
	KUNIT_EXPECT_EQ(test, seen.nposted, MESSAGES);
	KUNIT_EXPECT_LE(test, seen.nreads, MESSAGES / 3);
	while (f->conn.ack.is_posted)
		answer_read(f);
	for (i = 0; i < SWC_SQ_DEPTH; i++) {
		u32 nreads = seen.nreads;

		post_small(f, true);
		KUNIT_ASSERT_EQ(test, seen.nreads, nreads + 1);
		answer_read(f);
		KUNIT_ASSERT_EQ(test, sq->tail, sq->head);
		/* Both run free: what stays behind would be ahead in the end. */
		KUNIT_ASSERT_EQ(test, sq->reported, sq->tail);
	}
}

/*
 * A connection that can be resumed keeps a page, and the two requests of a chunk need two: before there are
 * fewer, a request is signaled, which brings pages back.
 */
static void replay_last_pages(struct kunit *test)
{
	struct fake *f = fake_iwarp(test);
	struct swc_sq *sq = &f->conn.sq;

	f->conn.iwarp = false;
	give_pages(test, sq);
	while (sq->npages > 3) {
		post_small(f, false);
		KUNIT_ASSERT_EQ(test, seen.nsignaled, 0);
	}
	post_small(f, false);
	KUNIT_EXPECT_EQ(test, seen.nsignaled, 1);
}

/* Half of a long queue is asked for while the other half is sent. */
static void iwarp_early(struct kunit *test)
{
	struct fake *f = fake_iwarp(test);

	f->conn.sq.head = SWC_SQ_DEPTH / 2 - 1;
	f->conn.ack.wanted = true;
	spin_lock(&f->conn.base.lock);
	swc_iwarp_ask_early(&f->conn);
	KUNIT_EXPECT_EQ(test, seen.nreads, 0);
	f->conn.sq.head++;
	swc_iwarp_ask_early(&f->conn);
	KUNIT_EXPECT_EQ(test, seen.nreads, 1);
	f->conn.ack.wanted = true;
	f->conn.sq.head++;
	swc_iwarp_ask_early(&f->conn);
	spin_unlock(&f->conn.base.lock);
	KUNIT_EXPECT_EQ(test, seen.nreads, 1);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(replay_from_any),
	KUNIT_CASE(replay_kept_from_any),
	KUNIT_CASE(iwarp_answered),
	KUNIT_CASE(iwarp_peer_left),
	KUNIT_CASE(iwarp_reads),
	KUNIT_CASE(iwarp_early),
	KUNIT_CASE(replay_again),
	KUNIT_CASE(replay_offers),
	KUNIT_CASE(replay_credits),
	KUNIT_CASE(replay_last_pages),
	{}
};

struct kunit_suite swc_replay_suite = { .name = "swc_replay", .test_cases = cases };

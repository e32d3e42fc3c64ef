// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plans for the suites, written step by step.
 */
#include "kunit/harness.h"

/* A writer and its tables. */
struct plan {
	struct swc_plan_writer writer;
	struct swc_plan_channel channels[SWC_T_CHANNELS];
	struct swc_plan_step steps[SWC_T_STEPS];
	struct swc_plan_xfer xfers[SWC_T_XFERS];
};

struct swc_plan_writer *swc_t_plan(struct kunit *test, u8 coll, u32 nranks, u32 rank, u32 shard_blocks)
{
	struct plan *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct swc_plan_writer *w;

	KUNIT_ASSERT_NOT_NULL(test, p);
	w = &p->writer;
	w->channels = p->channels;
	w->max_channels = SWC_T_CHANNELS;
	w->steps = p->steps;
	w->max_steps = SWC_T_STEPS;
	w->xfers = p->xfers;
	w->max_xfers = SWC_T_XFERS;
	swc_plan_write_begin(w, coll, nranks, rank, 0);
	swc_plan_write_blocks(w, shard_blocks);
	w->hdr.family = 42;
	strscpy(w->hdr.name, "test", sizeof(w->hdr.name));
	return w;
}

static struct swc_plan_xfer xfer(u32 rank, u32 block, u32 n, u8 buf)
{
	return (struct swc_plan_xfer){ .rank = rank, .first_block = block, .nblocks = n, .buf = buf };
}

void swc_t_send(struct swc_plan_writer *p, u32 rank, u32 block, u32 n, u8 buf)
{
	struct swc_plan_xfer x = xfer(rank, block, n, buf);

	swc_plan_write_send(p, &x);
}

/* The matching receive does not reduce. */
void swc_t_send_stored(struct swc_plan_writer *p, u32 rank, u32 block, u32 n, u8 buf)
{
	struct swc_plan_xfer x = xfer(rank, block, n, buf);

	x.flags = SWC_XFER_STORED;
	swc_plan_write_send(p, &x);
}

void swc_t_recv(struct swc_plan_writer *p, u32 rank, u32 block, u32 n, u8 buf, u8 operand, u8 flags)
{
	struct swc_plan_xfer x = xfer(rank, block, n, buf);

	x.operand = operand;
	x.flags = flags;
	swc_plan_write_recv(p, &x);
}

void swc_t_copy(struct swc_plan_writer *p, u8 from, u32 from_block, u8 to, u32 to_block, u32 n, u8 flags)
{
	struct swc_plan_step *s = swc_plan_write_open_step(p);
	struct swc_plan_xfer x = xfer(p->hdr.rank, to_block, n, to);
	u32 i;

	x.flags = flags;
	swc_plan_write_recv(p, &x);
	p->full |= p->hdr.nxfers == p->max_xfers;
	if (p->full)
		return;
	/* The source goes before the destinations. */
	x = xfer(p->hdr.rank, from_block, n, from);
	for (i = p->hdr.nxfers++; i > s->first_xfer + s->nsend; i--)
		p->xfers[i] = p->xfers[i - 1];
	p->xfers[i] = x;
	s->nsend++;
}

/* Sets the path of the transfer added last. */
void swc_t_path(struct swc_plan_writer *p, u8 path)
{
	p->xfers[p->hdr.nxfers - 1].path = path;
}

void *swc_t_pack(struct kunit *test, struct swc_plan_writer *p, u32 *bytes)
{
	u8 *data;

	*bytes = swc_plan_write_bytes(p);
	/* No larger than the plan, so that KASAN sees an access beyond its end. */
	data = kunit_kzalloc(test, *bytes, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, data);
	KUNIT_ASSERT_EQ(test, swc_plan_write_pack(p, data, *bytes), 0);
	return data;
}

/* Each rank reduces its block from all members to all members. */
struct swc_plan_writer *swc_t_direct(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, nranks);
	u32 i;

	swc_plan_write_channel(p);
	swc_plan_write_step(p, SWC_STEP_LOCAL);
	for (i = 0; i < nranks; i++)
		swc_t_send(p, i, rank, 1, SWC_BUF_SEND);
	for (i = 0; i < nranks; i++)
		swc_t_recv(p, i, rank, 1, SWC_BUF_RECV, 0, i ? 0 : SWC_XFER_FINAL);
	return p;
}

/* Reduce-scatter and allgather around the ring; each channel has nranks blocks and its own path. */
static struct swc_plan_writer *ring(struct kunit *test, u32 nranks, u32 rank, u32 channels)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, nranks * channels);
	u32 n = nranks, to = (rank + 1) % n, from = (rank + n - 1) % n, c, s;

	for (c = 0; c < channels; c++) {
		swc_plan_write_channel(p);
		for (s = 0; s < n - 1; s++) {
			u8 flags = SWC_XFER_REDUCE | (s == n - 2 ? SWC_XFER_FINAL : 0);

			swc_plan_write_step(p, SWC_STEP_NET);
			swc_t_send(p, to, c * n + (rank + n - s) % n, 1,
				   s ? SWC_BUF_RECV : SWC_BUF_SEND);
			swc_t_path(p, c);
			swc_t_recv(p, from, c * n + (rank + 2 * n - s - 1) % n, 1, SWC_BUF_RECV,
				   SWC_BUF_SEND, flags);
			swc_t_path(p, c);
		}
		for (s = 0; s < n - 1; s++) {
			swc_plan_write_step(p, SWC_STEP_NET);
			swc_t_send_stored(p, to, c * n + (rank + 1 + n - s) % n, 1, SWC_BUF_RECV);
			swc_t_path(p, c);
			swc_t_recv(p, from, c * n + (rank + n - s) % n, 1, SWC_BUF_RECV, 0, 0);
			swc_t_path(p, c);
		}
	}
	return p;
}

struct swc_plan_writer *swc_t_ring(struct kunit *test, u32 nranks, u32 rank)
{
	return ring(test, nranks, rank, 1);
}

struct swc_plan_writer *swc_t_ring3(struct kunit *test, u32 nranks, u32 rank)
{
	return ring(test, nranks, rank, 3);
}

/* Rank @sender sends its vector to the other rank. */
static struct swc_plan_writer *send_from(struct kunit *test, u32 rank, u32 sender, bool stored)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, 2, rank, 1);

	swc_plan_write_channel(p);
	swc_plan_write_step(p, SWC_STEP_NET);
	if (rank != sender)
		swc_t_recv(p, sender, 0, 1, SWC_BUF_RECV, 0, 0);
	else if (stored)
		swc_t_send_stored(p, !sender, 0, 1, SWC_BUF_SEND);
	else
		swc_t_send(p, !sender, 0, 1, SWC_BUF_SEND);
	return p;
}

struct swc_plan_writer *swc_t_send_from_0(struct kunit *test, u32 nranks, u32 rank)
{
	return send_from(test, rank, 0, true);
}

struct swc_plan_writer *swc_t_send_from_1(struct kunit *test, u32 nranks, u32 rank)
{
	return send_from(test, rank, 1, true);
}

struct swc_plan_writer *swc_t_send_parts(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, 2, rank, SWC_T_PARTS);
	u32 i;

	swc_plan_write_channel(p);
	for (i = 0; i < SWC_T_PARTS; i++) {
		if (!i || (rank && i == SWC_T_PARTS / 2))
			swc_plan_write_step(p, SWC_STEP_NET);
		if (rank)
			swc_t_recv(p, 0, i, 1, SWC_BUF_RECV, 0, 0);
		else
			swc_t_send_stored(p, 1, i, 1, SWC_BUF_SEND);
	}
	return p;
}

struct swc_plan_writer *swc_t_send_unmarked(struct kunit *test, u32 nranks, u32 rank)
{
	return send_from(test, rank, 0, false);
}

struct swc_plan_writer *swc_t_messages(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, SWC_T_MESSAGES);
	u32 i;

	swc_plan_write_channel(p);
	swc_plan_write_step(p, SWC_STEP_NET);
	for (i = 0; i < SWC_T_MESSAGES; i++) {
		if (rank)
			swc_t_recv(p, 0, i, 1, SWC_BUF_RECV, 0, 0);
		else
			swc_t_send(p, 1, i, 1, SWC_BUF_SEND);
	}
	return p;
}

/* Each rank copies its vector to scratch memory; after a barrier each rank reduces all of them. */
struct swc_plan_writer *swc_t_staged(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, 2);
	u32 i;

	p->hdr.window[SWC_BUF_SCRATCH].nblocks = 2;
	swc_plan_write_channel(p);
	swc_plan_write_step(p, SWC_STEP_LOCAL);
	swc_t_send(p, rank, 0, 2, SWC_BUF_SEND);
	swc_t_recv(p, rank, 0, 2, SWC_BUF_SCRATCH, 0, 0);
	swc_plan_write_step(p, SWC_STEP_SYNC);
	swc_plan_write_step(p, SWC_STEP_LOCAL);
	for (i = 0; i < nranks; i++)
		swc_t_send(p, i, 0, 2, SWC_BUF_SCRATCH);
	swc_t_recv(p, rank, 0, 2, SWC_BUF_RECV, 0, SWC_XFER_FINAL);
	swc_plan_write_step(p, SWC_STEP_SYNC);
	return p;
}

/* One copy step for all blocks, in any order. */
static void copy_blocks(struct swc_plan_writer *p, u8 from, u8 to, u8 flags)
{
	static const u32 order[] = { 3, 0, 2, 1 };
	u32 i;

	swc_plan_write_step(p, SWC_STEP_COPY);
	for (i = 0; i < ARRAY_SIZE(order); i++)
		swc_t_copy(p, from, order[i], to, order[i], 1, flags);
}

/* As staged, but block by block, and the sum goes to scratch memory and back. */
struct swc_plan_writer *swc_t_copied(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_plan_writer *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, 4);
	u32 i;

	p->hdr.window[SWC_BUF_SCRATCH].nblocks = 4;
	swc_plan_write_channel(p);
	copy_blocks(p, SWC_BUF_SEND, SWC_BUF_SCRATCH, 0);
	swc_plan_write_step(p, SWC_STEP_SYNC);
	swc_plan_write_step(p, SWC_STEP_LOCAL);
	for (i = 0; i < nranks; i++)
		swc_t_send(p, i, 0, 4, SWC_BUF_SCRATCH);
	swc_t_recv(p, rank, 0, 4, SWC_BUF_RECV, 0, 0);
	swc_plan_write_step(p, SWC_STEP_SYNC);
	copy_blocks(p, SWC_BUF_RECV, SWC_BUF_SCRATCH, 0);
	copy_blocks(p, SWC_BUF_SCRATCH, SWC_BUF_RECV, SWC_XFER_FINAL);
	return p;
}

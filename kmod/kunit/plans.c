// SPDX-License-Identifier: GPL-2.0-only
/*
 * A builder of plans for the suites, and some plans made with it.
 */
#include "harness.h"

struct swc_t_plan *swc_t_plan(struct kunit *test, u8 coll, u32 nranks, u32 rank, u32 part_blocks)
{
	struct swc_t_plan *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct swc_plan_header *h;
	u32 nblocks, buf;

	KUNIT_ASSERT_NOT_NULL(test, p);
	h = &p->hdr;
	h->magic = SWC_PLAN_MAGIC;
	h->version = SWC_PLAN_VERSION;
	h->header_bytes = sizeof(*h);
	h->nranks = nranks;
	h->rank = rank;
	h->nparts = swc_coll_nparts(coll, nranks);
	h->part_blocks = part_blocks;
	h->coll = coll;
	h->family = 42;
	nblocks = h->nparts * part_blocks;
	for (buf = SWC_BUF_SEND; buf <= SWC_BUF_RECV; buf++)
		h->window[buf] = swc_plan_window_of(coll, buf, rank, 0, part_blocks, nblocks);
	strscpy(h->name, "test", sizeof(h->name));
	return p;
}

void swc_t_channel(struct swc_t_plan *p)
{
	p->channels[p->hdr.nchannels++].first_step = p->hdr.nsteps;
}

void swc_t_step(struct swc_t_plan *p, u8 kind)
{
	struct swc_plan_step *s = &p->steps[p->hdr.nsteps++];

	s->kind = kind;
	s->first_xfer = p->hdr.nxfers;
	p->channels[p->hdr.nchannels - 1].nsteps++;
}

static struct swc_plan_xfer *add_xfer(struct swc_t_plan *p, u32 rank, u32 block, u32 n, u8 buf)
{
	struct swc_plan_xfer *x = &p->xfers[p->hdr.nxfers++];

	x->rank = rank;
	x->first_block = block;
	x->nblocks = n;
	x->buf = buf;
	return x;
}

void swc_t_send(struct swc_t_plan *p, u32 rank, u32 block, u32 n, u8 buf)
{
	add_xfer(p, rank, block, n, buf);
	p->steps[p->hdr.nsteps - 1].nsend++;
}

/* The receive that it meets does not reduce. */
void swc_t_send_stored(struct swc_t_plan *p, u32 rank, u32 block, u32 n, u8 buf)
{
	add_xfer(p, rank, block, n, buf)->flags = SWC_XFER_STORED;
	p->steps[p->hdr.nsteps - 1].nsend++;
}

void swc_t_recv(struct swc_t_plan *p, u32 rank, u32 block, u32 n, u8 buf, u8 operand, u8 flags)
{
	struct swc_plan_xfer *x = add_xfer(p, rank, block, n, buf);

	x->operand = operand;
	x->flags = flags;
	p->steps[p->hdr.nsteps - 1].nrecv++;
}

/* The newest transfer goes that way. */
void swc_t_path(struct swc_t_plan *p, u8 path)
{
	p->xfers[p->hdr.nxfers - 1].path = path;
}

void *swc_t_pack(struct kunit *test, struct swc_t_plan *p, u32 *bytes)
{
	struct swc_plan_header *h = &p->hdr;
	size_t nc = h->nchannels * sizeof(p->channels[0]), ns = h->nsteps * sizeof(p->steps[0]);
	size_t nx = h->nxfers * sizeof(p->xfers[0]);
	u8 *data;

	KUNIT_ASSERT_LE(test, h->nchannels, SWC_T_CHANNELS);
	KUNIT_ASSERT_LE(test, h->nsteps, SWC_T_STEPS);
	KUNIT_ASSERT_LE(test, h->nxfers, SWC_T_XFERS);
	*bytes = sizeof(*h) + nc + ns + nx;
	h->total_bytes = *bytes;
	/* Exactly as large as it is, so that KASAN sees a step beyond the end. */
	data = kunit_kzalloc(test, *bytes, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, data);
	memcpy(data, h, sizeof(*h));
	memcpy(data + sizeof(*h), p->channels, nc);
	memcpy(data + sizeof(*h) + nc, p->steps, ns);
	memcpy(data + sizeof(*h) + nc + ns, p->xfers, nx);
	return data;
}

/* Each rank reduces its block from all members to all members. */
struct swc_t_plan *swc_t_direct(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_t_plan *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, nranks);
	u32 i;

	swc_t_channel(p);
	swc_t_step(p, SWC_STEP_LOCAL);
	for (i = 0; i < nranks; i++)
		swc_t_send(p, i, rank, 1, SWC_BUF_SEND);
	for (i = 0; i < nranks; i++)
		swc_t_recv(p, i, rank, 1, SWC_BUF_RECV, 0, i ? 0 : SWC_XFER_FINAL);
	return p;
}

/* Reduce-scatter and allgather round the ring; each channel has nranks blocks and a path of its own. */
static struct swc_t_plan *ring(struct kunit *test, u32 nranks, u32 rank, u32 channels)
{
	struct swc_t_plan *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, nranks * channels);
	u32 n = nranks, to = (rank + 1) % n, from = (rank + n - 1) % n, c, s;

	for (c = 0; c < channels; c++) {
		swc_t_channel(p);
		for (s = 0; s < n - 1; s++) {
			u8 flags = SWC_XFER_REDUCE | (s == n - 2 ? SWC_XFER_FINAL : 0);

			swc_t_step(p, SWC_STEP_NET);
			swc_t_send(p, to, c * n + (rank + n - s) % n, 1,
				   s ? SWC_BUF_RECV : SWC_BUF_SEND);
			swc_t_path(p, c);
			swc_t_recv(p, from, c * n + (rank + 2 * n - s - 1) % n, 1, SWC_BUF_RECV,
				   SWC_BUF_SEND, flags);
			swc_t_path(p, c);
		}
		for (s = 0; s < n - 1; s++) {
			swc_t_step(p, SWC_STEP_NET);
			swc_t_send_stored(p, to, c * n + (rank + 1 + n - s) % n, 1, SWC_BUF_RECV);
			swc_t_path(p, c);
			swc_t_recv(p, from, c * n + (rank + n - s) % n, 1, SWC_BUF_RECV, 0, 0);
			swc_t_path(p, c);
		}
	}
	return p;
}

struct swc_t_plan *swc_t_ring(struct kunit *test, u32 nranks, u32 rank)
{
	return ring(test, nranks, rank, 1);
}

struct swc_t_plan *swc_t_ring3(struct kunit *test, u32 nranks, u32 rank)
{
	return ring(test, nranks, rank, 3);
}

static struct swc_t_plan *gift(struct kunit *test, u32 rank, u32 giver, bool marked)
{
	struct swc_t_plan *p = swc_t_plan(test, SWC_ALLREDUCE, 2, rank, 1);

	swc_t_channel(p);
	swc_t_step(p, SWC_STEP_NET);
	if (rank != giver)
		swc_t_recv(p, giver, 0, 1, SWC_BUF_RECV, 0, 0);
	else if (marked)
		swc_t_send_stored(p, !giver, 0, 1, SWC_BUF_SEND);
	else
		swc_t_send(p, !giver, 0, 1, SWC_BUF_SEND);
	return p;
}

struct swc_t_plan *swc_t_gift_of_0(struct kunit *test, u32 nranks, u32 rank)
{
	return gift(test, rank, 0, true);
}

struct swc_t_plan *swc_t_gift_of_1(struct kunit *test, u32 nranks, u32 rank)
{
	return gift(test, rank, 1, true);
}

struct swc_t_plan *swc_t_gift_unmarked(struct kunit *test, u32 nranks, u32 rank)
{
	return gift(test, rank, 0, false);
}

/* Everybody copies its vector to scratch memory; after a barrier everybody reduces all of them for itself. */
struct swc_t_plan *swc_t_staged(struct kunit *test, u32 nranks, u32 rank)
{
	struct swc_t_plan *p = swc_t_plan(test, SWC_ALLREDUCE, nranks, rank, 2);
	u32 i;

	p->hdr.window[SWC_BUF_SCRATCH].nblocks = 2;
	swc_t_channel(p);
	swc_t_step(p, SWC_STEP_LOCAL);
	swc_t_send(p, rank, 0, 2, SWC_BUF_SEND);
	swc_t_recv(p, rank, 0, 2, SWC_BUF_SCRATCH, 0, 0);
	swc_t_step(p, SWC_STEP_SYNC);
	swc_t_step(p, SWC_STEP_LOCAL);
	for (i = 0; i < nranks; i++)
		swc_t_send(p, i, 0, 2, SWC_BUF_SCRATCH);
	swc_t_recv(p, rank, 0, 2, SWC_BUF_RECV, 0, SWC_XFER_FINAL);
	swc_t_step(p, SWC_STEP_SYNC);
	return p;
}

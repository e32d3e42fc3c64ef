// SPDX-License-Identifier: GPL-2.0-only
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

/* Room for element n, zeroed. Out of memory ends in a fault: it is a test. */
#define GROW(p, n)                                                                                 \
	(p = realloc(p, ((size_t)(n) + 1) * sizeof(*(p))), memset(&(p)[n], 0, sizeof(*(p))))

void testlib_plan_init(struct testlib_plan *p, int coll, uint32_t nranks, uint32_t rank,
		       uint32_t root, uint32_t shard_blocks)
{
	struct swc_plan_header *h = &p->h;
	bool sharded = coll == SWC_REDUCE_SCATTER || coll == SWC_ALLGATHER || coll == SWC_GATHER ||
		       coll == SWC_SCATTER;
	uint32_t all;

	memset(p, 0, sizeof(*p));
	h->magic = SWC_PLAN_MAGIC;
	h->version = SWC_PLAN_VERSION;
	h->header_bytes = sizeof(*h);
	h->nranks = nranks;
	h->rank = rank;
	h->root = root;
	h->nshards = sharded ? nranks : 1;
	h->shard_blocks = shard_blocks;
	h->coll = coll;
	h->family = 77 + coll;
	strcpy(h->name, "selftest");
	all = h->nshards * shard_blocks;
	if (coll == SWC_BARRIER)
		return;
	h->window[SWC_BUF_SEND].nblocks = all;
	h->window[SWC_BUF_RECV].nblocks = all;
	if (coll == SWC_REDUCE_SCATTER || coll == SWC_SCATTER)
		h->window[SWC_BUF_RECV] = (struct swc_plan_window){ rank * shard_blocks,
								    shard_blocks };
	if (coll == SWC_ALLGATHER || coll == SWC_GATHER)
		h->window[SWC_BUF_SEND] = (struct swc_plan_window){ rank * shard_blocks,
								    shard_blocks };
	if ((coll == SWC_BROADCAST || coll == SWC_SCATTER) && rank != root)
		h->window[SWC_BUF_SEND].nblocks = 0;
	if ((coll == SWC_REDUCE || coll == SWC_GATHER) && rank != root)
		h->window[SWC_BUF_RECV].nblocks = 0;
}

void testlib_plan_channel(struct testlib_plan *p)
{
	GROW(p->chan, p->h.nchannels);
	p->chan[p->h.nchannels++].first_step = p->h.nsteps;
}

void testlib_plan_step(struct testlib_plan *p, int kind)
{
	GROW(p->step, p->h.nsteps);
	p->step[p->h.nsteps].kind = kind;
	p->step[p->h.nsteps++].first_xfer = p->h.nxfers;
	p->chan[p->h.nchannels - 1].nsteps++;
}

static struct swc_plan_xfer *add_xfer(struct testlib_plan *p, uint32_t rank, int buf,
				      uint32_t first, uint32_t n)
{
	struct swc_plan_xfer *x;

	GROW(p->xfer, p->h.nxfers);
	x = &p->xfer[p->h.nxfers++];
	x->rank = rank;
	x->buf = buf;
	x->first_block = first;
	x->nblocks = n;
	return x;
}

void testlib_plan_send(struct testlib_plan *p, uint32_t rank, int buf, uint32_t first, uint32_t n)
{
	add_xfer(p, rank, buf, first, n);
	p->step[p->h.nsteps - 1].nsend++;
}

void testlib_plan_send_stored(struct testlib_plan *p, uint32_t rank, int buf, uint32_t first,
			      uint32_t n)
{
	add_xfer(p, rank, buf, first, n)->flags = SWC_XFER_STORED;
	p->step[p->h.nsteps - 1].nsend++;
}

void testlib_plan_recv(struct testlib_plan *p, uint32_t rank, int buf, uint32_t first, uint32_t n,
		       int operand, uint32_t flags)
{
	struct swc_plan_xfer *x = add_xfer(p, rank, buf, first, n);

	x->operand = operand;
	x->flags = flags;
	p->step[p->h.nsteps - 1].nrecv++;
}

void testlib_plan_pack(struct testlib_plan *p)
{
	size_t a = p->h.nchannels * sizeof(*p->chan), b = p->h.nsteps * sizeof(*p->step),
	       c = p->h.nxfers * sizeof(*p->xfer);
	char *at;

	p->bytes = sizeof(p->h) + a + b + c;
	p->h.total_bytes = p->bytes;
	free(p->data);
	p->data = at = malloc(p->bytes);
	memcpy(at, &p->h, sizeof(p->h));
	at += sizeof(p->h);
	if (a)
		memcpy(at, p->chan, a);
	if (b)
		memcpy(at + a, p->step, b);
	if (c)
		memcpy(at + a + b, p->xfer, c);
}

void testlib_plan_free(struct testlib_plan *p)
{
	free(p->chan);
	free(p->step);
	free(p->xfer);
	free(p->data);
}

void testlib_plan_direct(struct testlib_plan *p, uint32_t nranks, uint32_t rank)
{
	testlib_plan_init(p, SWC_ALLREDUCE, nranks, rank, 0, 1);
	p->h.window[SWC_BUF_SCRATCH].nblocks = 1;
	testlib_plan_channel(p);
	testlib_plan_step(p, SWC_STEP_LOCAL);
	for (uint32_t r = 0; r < nranks; r++)
		testlib_plan_send(p, r, SWC_BUF_SEND, 0, 1);
	testlib_plan_recv(p, rank, SWC_BUF_SCRATCH, 0, 1, 0, SWC_XFER_FINAL);
	testlib_plan_step(p, SWC_STEP_SYNC);
	testlib_plan_step(p, SWC_STEP_LOCAL);
	testlib_plan_send(p, rank, SWC_BUF_SCRATCH, 0, 1);
	testlib_plan_recv(p, rank, SWC_BUF_RECV, 0, 1, 0, 0);
	testlib_plan_pack(p);
}

void testlib_plan_ring(struct testlib_plan *p, uint32_t n, uint32_t rank)
{
	uint32_t next = (rank + 1) % n, prev = (rank + n - 1) % n;

	testlib_plan_init(p, SWC_ALLREDUCE, n, rank, 0, n);
	p->h.family = 1234;
	testlib_plan_channel(p);
	for (uint32_t k = 0; k + 1 < n; k++) {
		uint32_t out = (rank + n - k) % n, in = (prev + n - k) % n;

		testlib_plan_step(p, SWC_STEP_NET);
		testlib_plan_send(p, next, k ? SWC_BUF_RECV : SWC_BUF_SEND, out, 1);
		testlib_plan_recv(p, prev, SWC_BUF_RECV, in, 1, SWC_BUF_SEND,
				  SWC_XFER_REDUCE | (k + 2 == n ? SWC_XFER_FINAL : 0));
	}
	for (uint32_t k = 0; k + 1 < n; k++) {
		testlib_plan_step(p, SWC_STEP_NET);
		testlib_plan_send_stored(p, next, SWC_BUF_RECV, (rank + 1 + n - k) % n, 1);
		testlib_plan_recv(p, prev, SWC_BUF_RECV, (prev + 1 + n - k) % n, 1, 0, 0);
	}
	testlib_plan_pack(p);
}

void testlib_plan_scratch(struct testlib_plan *p)
{
	testlib_plan_init(p, SWC_ALLREDUCE, 1, 0, 0, 1);
	p->h.window[SWC_BUF_SEND].nblocks = 0;
	p->h.window[SWC_BUF_RECV].nblocks = 0;
	p->h.window[SWC_BUF_SCRATCH].nblocks = 1;
	testlib_plan_channel(p);
	testlib_plan_step(p, SWC_STEP_SYNC);
	testlib_plan_pack(p);
}

static void barrier(struct testlib_plan *p, uint32_t nranks, uint32_t rank, size_t nsteps)
{
	testlib_plan_init(p, SWC_BARRIER, nranks, rank, 0, 1);
	testlib_plan_channel(p);
	for (size_t i = 0; i < nsteps; i++)
		testlib_plan_step(p, SWC_STEP_SYNC);
	testlib_plan_pack(p);
}

void testlib_plan_barrier(struct testlib_plan *p, uint32_t nranks, uint32_t rank)
{
	barrier(p, nranks, rank, 1);
}

void testlib_plan_longest(struct testlib_plan *p, uint32_t nranks, uint32_t rank)
{
	barrier(p, nranks, rank, TESTLIB_LONGEST_STEPS);
}

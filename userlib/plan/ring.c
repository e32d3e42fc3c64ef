// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The ring: every rank sends to its right neighbour and receives from its left one, one part or
 * share per step, p - 1 steps to reduce and p - 1 steps to spread. Bandwidth optimal, latency 2(p -
 * 1) steps. Each block is reduced along one way round and then copied, so all ranks get the same
 * bits. (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations", 2009.)
 */
#include <errno.h>

#include "build.h"

/* One channel's view of the ring: share i of p is block i * stride + at. */
struct ring {
	struct swc_builder *b;
	uint32_t p, rank, right, left;
	uint32_t stride, at;
};

static uint32_t block(const struct ring *g, uint32_t share)
{
	return share % g->p * g->stride + g->at;
}

/*
 * Reduce: share `last` ends complete on this rank, in `out`. In step s, rank r sends share last - 1
 * - s (the sum of s + 1 ranks so far) and adds its own contribution to share last - 2 - s, counted
 * modulo p.
 *
 * The first step sends straight from SEND, and every receive takes SEND as its operand, so nothing
 * is copied beforehand. A step writes a share other than the one it sends, and the share it adds to
 * has never been sent, so in place is safe.
 */
static void reduce(const struct ring *g, uint32_t last, enum swc_buf between, enum swc_buf out)
{
	for (uint32_t s = 0; s + 1 < g->p; s++) {
		bool final = s + 2 == g->p;

		swc_build_step(g->b, SWC_STEP_NET);
		swc_build_send(g->b, g->right, s ? between : SWC_BUF_SEND,
			       block(g, last + 2 * g->p - 1 - s), 1);
		swc_build_recv_reduce(g->b, g->left, final ? out : between, SWC_BUF_SEND,
				      block(g, last + 2 * g->p - 2 - s), 1,
				      final ? SWC_XFER_FINAL : 0);
	}
}

/* Spread: share `own` is complete in RECV; pass it on, and then each share that arrived last. */
static void spread(const struct ring *g, uint32_t own)
{
	for (uint32_t s = 0; s + 1 < g->p; s++) {
		swc_build_step(g->b, SWC_STEP_NET);
		swc_build_send(g->b, g->right, SWC_BUF_RECV, block(g, own + g->p - s), 1);
		swc_build_recv(g->b, g->left, SWC_BUF_RECV, block(g, own + g->p - 1 - s), 1, 0);
	}
}

/*
 * Allgather: the first step sends from SEND and marks what arrives as final, so that it need not
 * wait for the copy of the own part, which comes second and, in place, is a copy onto itself.
 */
static void gather(const struct ring *g)
{
	swc_build_step(g->b, SWC_STEP_NET);
	swc_build_send(g->b, g->right, SWC_BUF_SEND, block(g, g->rank), 1);
	swc_build_recv(g->b, g->left, SWC_BUF_RECV, block(g, g->left), 1, SWC_XFER_FINAL);
	swc_build_step(g->b, SWC_STEP_LOCAL);
	swc_build_send(g->b, g->rank, SWC_BUF_SEND, block(g, g->rank), 1);
	swc_build_recv(g->b, g->rank, SWC_BUF_RECV, block(g, g->rank), 1, SWC_XFER_FINAL);
	for (uint32_t s = 1; s + 1 < g->p; s++) {
		swc_build_step(g->b, SWC_STEP_NET);
		swc_build_send(g->b, g->right, SWC_BUF_RECV, block(g, g->rank + g->p - s), 1);
		swc_build_recv(g->b, g->left, SWC_BUF_RECV, block(g, g->rank + g->p - 1 - s), 1, 0);
	}
}

int swc_ring_build(struct swc_builder *b)
{
	const struct swc_plan_args *a = b->args;
	uint32_t p = a->nranks, nch = a->channels ? a->channels : 1;
	struct ring g = {
		.b = b,
		.p = p,
		.rank = a->rank,
		.right = (a->rank + 1) % p,
		.left = (a->rank + p - 1) % p,
		.stride = nch,
	};

	if (a->coll != SWC_ALLREDUCE && a->coll != SWC_REDUCE_SCATTER && a->coll != SWC_ALLGATHER)
		return -EOPNOTSUPP;
	if (p == 1) {
		swc_build_alone(b);
		return 0;
	}
	swc_build_blocks(b, a->coll == SWC_ALLREDUCE ? nch * p : nch);
	/* RECV has no room for sums on their way to others. */
	if (a->coll == SWC_REDUCE_SCATTER && p > 2)
		swc_build_scratch(b, 0, nch * p);

	for (g.at = 0; g.at < nch; g.at++) {
		swc_build_channel(b);
		switch (a->coll) {
		case SWC_ALLREDUCE:
			reduce(&g, a->rank + 1, SWC_BUF_RECV, SWC_BUF_RECV);
			spread(&g, a->rank + 1);
			break;
		case SWC_REDUCE_SCATTER:
			reduce(&g, a->rank, SWC_BUF_SCRATCH, SWC_BUF_RECV);
			break;
		default:
			gather(&g);
			break;
		}
	}
	return 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Circulant graphs: reduce-scatter, allgather and allreduce in ceil(log2 p) rounds per half with p
 * - 1 blocks sent and received, for any number of members. (Traeff, "Optimal, non-pipelined
 * reduce-scatter and allreduce algorithms", arXiv 2410.14234, 2024.)
 *
 * Member r counts blocks from its own: its block i is block r + i modulo p. It is responsible for
 * blocks 0 to m - 1, at first all p. A round halves that: with s = ceil(m / 2), it sends its blocks
 * s to m - 1 to member r + s, which counts them as 0 to m - 1 - s, receives as many from r - s,
 * adds them to its first ones and continues with m = s, down to 1. The allgather is the same
 * backwards.
 *
 * Consecutive blocks stay consecutive except at the wrap-around: a message is one run or two. Each
 * block is reduced in one tree and then copied, so all ranks get the same bits.
 */
#include "plan/algo/builder.h"

#define MAX_ROUNDS 32

/* One channel: block i, counted from member 0, is at + i * stride. */
struct circulant {
	struct swc_builder *b;
	uint32_t p, at, stride;
	uint32_t rounds;
	uint32_t m[MAX_ROUNDS + 1]; /* before each round; 1 after the last */
};

/* The run at the start of n own blocks from i on. */
static uint32_t run(const struct circulant *g, uint32_t i, uint32_t n, uint32_t *block)
{
	uint32_t first = (g->b->me + i) % g->p;

	*block = g->at + first * g->stride;
	if (g->stride > 1)
		return 1;
	return n < g->p - first ? n : g->p - first;
}

static void send(const struct circulant *g, uint32_t to, enum swc_buf buf, uint32_t i, uint32_t end,
		 bool stored)
{
	uint32_t block;

	for (uint32_t n; i < end; i += n) {
		n = run(g, i, end - i, &block);
		if (stored)
			swc_build_send_stored(g->b, to, buf, block, n);
		else
			swc_build_send(g->b, to, buf, block, n);
	}
}

static void recv(const struct circulant *g, uint32_t from, uint32_t i, uint32_t end, uint32_t flags)
{
	uint32_t block;

	for (uint32_t n; i < end; i += n) {
		n = run(g, i, end - i, &block);
		swc_build_recv(g->b, from, SWC_BUF_RECV, block, n, flags);
	}
}

static void recv_reduce(const struct circulant *g, uint32_t from, enum swc_buf buf,
			enum swc_buf operand, uint32_t i, uint32_t end, uint32_t flags)
{
	uint32_t block;

	for (uint32_t n; i < end; i += n) {
		n = run(g, i, end - i, &block);
		swc_build_recv_reduce(g->b, from, buf, operand, block, n, flags);
	}
}

/*
 * Own blocks 0 to sums - 1 have sums, in `between`; the others are still in SEND: before the first
 * round all, before the second the last one if p is odd. That one is a message of its own.
 *
 * A round writes blocks before s and sends blocks from s on, so in place is safe.
 */
static void reduce(const struct circulant *g, enum swc_buf between)
{
	uint32_t sums = 0;

	for (uint32_t k = 0; k < g->rounds; k++) {
		uint32_t m = g->m[k], s = g->m[k + 1], cut = sums > s ? sums : s;
		uint32_t to = (g->b->me + s) % g->p, from = (g->b->me + g->p - s) % g->p;
		enum swc_buf operand = k ? between : SWC_BUF_SEND,
			     buf = s == 1 ? SWC_BUF_RECV : between;
		uint32_t flags = s == 1 ? SWC_XFER_FINAL : 0;

		swc_build_step(g->b, SWC_STEP_NET);
		send(g, to, between, s, cut, false);
		send(g, to, SWC_BUF_SEND, cut, m, false);
		recv_reduce(g, from, buf, operand, 0, cut - s, flags);
		recv_reduce(g, from, buf, operand, cut - s, m - s, flags);
		sums = k ? s : m - s;
	}
}

/*
 * The first round of ALLGATHER sends from SEND and marks what arrives as final, so that it does not
 * wait for the copy of the own shard, which comes second and, in place, is a copy onto itself.
 */
static void spread(const struct circulant *g, bool gather)
{
	uint32_t me = g->b->me;

	for (uint32_t k = g->rounds; k-- > 0;) {
		uint32_t m = g->m[k], s = g->m[k + 1];
		bool first = gather && s == 1;

		swc_build_step(g->b, SWC_STEP_NET);
		send(g, (me + g->p - s) % g->p, first ? SWC_BUF_SEND : SWC_BUF_RECV, 0, m - s,
		     true);
		recv(g, (me + s) % g->p, s, m, first ? SWC_XFER_FINAL : 0);
		if (!first)
			continue;
		swc_build_step(g->b, SWC_STEP_LOCAL);
		swc_build_send(g->b, me, SWC_BUF_SEND, g->at + me * g->stride, 1);
		swc_build_recv(g->b, me, SWC_BUF_RECV, g->at + me * g->stride, 1, SWC_XFER_FINAL);
	}
}

int swc_circulant_build(struct swc_builder *b)
{
	uint32_t p = b->n, nch = b->args->channels ? b->args->channels : 1;
	bool shares = b->args->coll == SWC_ALLREDUCE;
	struct circulant g = { .b = b, .p = p, .stride = shares ? 1 : nch };

	for (g.m[0] = p; g.m[g.rounds] > 1; g.rounds++)
		g.m[g.rounds + 1] = (g.m[g.rounds] + 1) / 2;
	swc_build_blocks(b, shares ? nch * p : nch);
	/* RECV has no room for sums that go to other members. */
	if (b->args->coll == SWC_REDUCE_SCATTER && p > 2)
		swc_build_scratch(b, 0, nch * p);

	for (uint32_t c = 0; c < nch; c++) {
		g.at = shares ? c * p : c;
		swc_build_channel(b, c * p, p);
		if (b->args->coll != SWC_ALLGATHER)
			reduce(&g, shares ? SWC_BUF_RECV : SWC_BUF_SCRATCH);
		if (b->args->coll != SWC_REDUCE_SCATTER)
			spread(&g, !shares);
	}
	return 0;
}

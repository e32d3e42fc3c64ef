// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Split: bucket2 for tori whose dimensions differ in size or in rate. The vector is split among
 * orders of dimensions such that all of it takes least time (see select/orders.c). Each order has
 * a channel, or several, and their mirror images.
 *
 * For that, all dimensions must be busy all the time, though a channel's share goes through one
 * dimension after the other. So the share is cut into pieces, each of which begins one step after
 * the one before it. After a piece has come to its last step, each step has messages of every step
 * of a piece, that is, of every dimension, in the proportion in which the order loads them. With
 * N pieces of S steps each, that is so in N - S + 1 of the N + S - 1 steps; fewer pieces take fewer
 * steps, more pieces come closer to the least time.
 *
 * Shares are whole numbers of blocks. The smallest numbers are taken whose time is within half a
 * percent of the best ones.
 */
#include "plan/algo/bucket.h"
#include "plan/orders.h"

#include <math.h>
#include <string.h>

#define DEFAULT_PIECES 32
#define MAX_WEIGHTS 64 /* sum of the blocks of all channels, but for their mirror images */
#define MAX_BLOCKS (1u << 20)
#define NEARLY 1.005

/**
 * struct split - how the channels share the vector
 * @ndims: dimensions with more than one member
 * @dim: their numbers
 * @load: by channel and dimension: time that the whole vector would take there
 * @order: by channel: the order of its dimensions
 * @share: by channel, as it should be
 * @n: channels, but for mirror images
 * @weight: by channel: blocks of a piece for each member
 */
struct split {
	uint32_t ndims;
	uint8_t dim[SWC_TOPO_DIMS];
	double load[SWC_TOPO_DIMS][SWC_TOPO_DIMS];
	uint8_t order[SWC_TOPO_DIMS][SWC_TOPO_DIMS];
	double share[SWC_TOPO_DIMS];
	uint32_t n;
	uint32_t weight[SWC_TOPO_DIMS];
};

/* The orders of @n channels: as many for each order as for the others, or one more. */
static void find_orders(struct split *s, const struct swc_topo *t, uint32_t n)
{
	uint32_t size[SWC_TOPO_DIMS];
	double rate[SWC_TOPO_DIMS], sum = 0;
	struct swc_orders o;

	s->n = n;
	for (uint32_t i = 0; i < s->ndims; i++) {
		size[i] = t->dim[s->dim[i]];
		rate[i] = 1 / swc_topo_slowness(t, s->dim[i]);
	}
	swc_orders_find(&o, size, rate, s->ndims, 1);
	for (uint32_t c = 0; c < n; c++) {
		const struct swc_order *order = &o.order[c % o.n];

		s->share[c] = order->fraction / ((n - c % o.n + o.n - 1) / o.n);
		sum += s->share[c];
		swc_order_loads(size, rate, s->ndims, order->dim, s->load[c]);
		for (uint32_t i = 0; i < s->ndims; i++)
			s->order[c][i] = s->dim[order->dim[i]];
	}
	for (uint32_t c = 0; c < n; c++)
		s->share[c] /= sum;
}

/* Give @sum blocks to the channels, each at least one. Returns the time. */
static double weigh(struct split *s, uint32_t sum)
{
	uint32_t given = 0;
	double most = 0;

	for (uint32_t c = 0; c < s->n; c++) {
		s->weight[c] = (uint32_t)fmax(1, floor(s->share[c] * sum));
		given += s->weight[c];
	}
	for (; given < sum; given++) {
		uint32_t next = 0;

		for (uint32_t c = 1; c < s->n; c++)
			if (s->share[c] * sum - s->weight[c] >
			    s->share[next] * sum - s->weight[next] + 1e-9)
				next = c;
		s->weight[next]++;
	}
	for (uint32_t i = 0; i < s->ndims; i++) {
		double load = 0;

		for (uint32_t c = 0; c < s->n; c++)
			load += s->load[c][i] * s->weight[c] / given;
		most = fmax(most, load);
	}
	return most;
}

/* Blocks of a piece for each member, at most, of all channels but for their mirror images. */
static uint32_t most_blocks(uint32_t members, uint32_t pieces)
{
	uint32_t max = MAX_BLOCKS / 2 / members / pieces;

	return max < MAX_WEIGHTS ? max : MAX_WEIGHTS;
}

/* The fewest blocks, at most @max, whose time is nearly the best. */
static void find_weights(struct split *s, uint32_t max)
{
	double best = INFINITY;

	for (uint32_t sum = s->n; sum <= max; sum++)
		best = fmin(best, weigh(s, sum));
	for (uint32_t sum = s->n; sum <= max && weigh(s, sum) > best * NEARLY; sum++)
		;
}

/*
 * The plan has no fewer bytes: in each half, which comes in from both sides, each piece crosses each
 * link of a line, and is received there.
 */
static double least_bytes(const struct swc_builder *b, const struct split *s, uint32_t channels,
			  uint32_t pieces)
{
	double halves = b->args->coll == SWC_ALLREDUCE ? 2 : 1, links = 0, steps = 0;

	for (uint32_t i = 0; i < s->ndims; i++) {
		links += b->topo->dim[s->dim[i]] - 1;
		steps += b->topo->dim[s->dim[i]] / 2;
	}
	return channels * halves *
	       (steps * sizeof(struct swc_plan_step) +
		2 * links * pieces * sizeof(struct swc_plan_xfer));
}

int swc_split_build(struct swc_builder *b)
{
	const struct swc_topo *t = b->topo;
	struct swc_bucket g = { .b = b, .two_sided = true, .pieces = DEFAULT_PIECES };
	bool shares = b->args->coll == SWC_ALLREDUCE;
	uint32_t ports = swc_build_ports(b), nch, max, sum = 0, at = 0;
	struct split s;

	if (b->args->param >= 0)
		g.pieces = (uint32_t)b->args->param;
	if (!g.pieces)
		return swc_build_refuse(b, "split needs at least one piece: split:1");
	s.ndims = swc_bucket_dims(t, s.dim);
	if (t->kind != SWC_TOPO_TORUS || s.ndims < 2)
		return swc_build_refuse(b, "needs a torus with two dimensions or more, as bucket2 "
					   "keeps the links of a ring busy");
	nch = b->args->channels ? b->args->channels : ports;
	max = most_blocks(b->n, g.pieces);
	find_orders(&s, t, ports < t->ndims ? ports : t->ndims);
	if (max < s.n)
		return swc_build_refuse(b, "%u pieces on %u nodes are too many blocks: take fewer",
					g.pieces, b->n);
	if (least_bytes(b, &s, nch, g.pieces) > SWC_MAX_PLAN_BYTES)
		return swc_build_refuse(b,
					"%u pieces need a plan of more than %u bytes: take fewer",
					g.pieces, SWC_MAX_PLAN_BYTES);
	find_weights(&s, max);
	for (uint32_t c = 0; c < nch; c++)
		sum += g.pieces * s.weight[c % ports % t->ndims];
	swc_build_blocks(b, shares ? sum * b->n : sum);
	if (b->args->coll == SWC_REDUCE_SCATTER && b->n > 2)
		swc_build_scratch(b, 0, sum * b->n);
	for (uint32_t c = 0; c < nch; c++) {
		uint32_t k = c % ports % t->ndims, n = g.pieces * s.weight[k];

		swc_bucket_order(&g, s.order[k], s.ndims);
		g.mirrored = c % ports >= t->ndims;
		g.weight = s.weight[k];
		g.at = shares ? at * b->n : at;
		g.shard_blocks = shares ? 0 : sum;
		swc_build_channel(b, at * b->n, n * b->n);
		swc_bucket_channel(&g);
		at += n;
	}
	return 0;
}

bool swc_split_shares(struct swc_bucket_shares *shares, const struct swc_topo *t, uint32_t pieces)
{
	struct split s = { .ndims = 0 };
	uint32_t max = most_blocks(t->nnodes, pieces);

	s.ndims = swc_bucket_dims(t, s.dim);
	if (t->kind != SWC_TOPO_TORUS || s.ndims < 2 || max < t->ndims)
		return false;
	find_orders(&s, t, t->ndims);
	find_weights(&s, max);
	*shares = (struct swc_bucket_shares){
		.two_sided = true, .pieces = pieces, .ndims = s.ndims, .n = s.n
	};
	memcpy(shares->order, s.order, sizeof(s.order));
	memcpy(shares->weight, s.weight, sizeof(s.weight));
	return true;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The cost of the bucket algorithms without their plans. All ranks send the same, over one hop in
 * each step, so one list of the steps of a piece for each order of dimensions is enough. It is the
 * cost that the step model finds in the plans; see there for the two ways to count steps.
 */
#include "plan/model/bucket_cost.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SENDS 2 /* of a step of a piece: up and down */
#define KINDS (2 * SENDS * SWC_TOPO_DIMS)

/**
 * struct moved - what a step of a piece of a channel and its mirror image sends
 * @dim: along which dimension
 * @kind: of its first message: messages of one kind differ in their blocks only
 * @sends: by a member, to one neighbour or to both, on each channel
 * @blocks: on a link, in all
 */
struct moved {
	uint32_t dim, kind, sends;
	uint64_t blocks;
};

/**
 * struct pace - the steps of all pieces of a channel together
 * @sum: by dimension: blocks on a link in this step
 * @count: by kind: messages in this step
 * @kinds: bits of the kinds that there are
 * @phase: its number, as phases.c has it
 * @length: by phase: steps
 */
struct pace {
	uint64_t sum[SWC_TOPO_DIMS];
	uint32_t count[KINDS], kinds, phase;
	uint32_t *length;
};

/**
 * struct sums - results of all steps, in blocks
 * @steps: of a channel, @of_piece of each piece
 * @moved: by channel and step of a piece
 * @pace: by channel
 * @length: by channel and phase
 * @by_phase: by phase and dimension
 * @eager: if all channels take step k together
 */
struct sums {
	uint32_t steps, of_piece;
	struct moved *moved;
	struct pace pace[SWC_TOPO_DIMS];
	uint32_t *length;
	double *by_phase, eager;
};

static uint32_t above(const struct swc_bucket_shares *s, uint32_t d)
{
	return s->two_sided ? d / 2 : d - 1;
}

/* The allgather, @back, is the reduce-scatter backwards. */
static void list_moved(const struct swc_bucket_shares *s, const struct swc_topo *t, uint32_t chan,
		       bool back, struct moved *out, uint32_t n)
{
	uint64_t places = t->nnodes;
	uint32_t at = 0;

	for (uint32_t i = 0; i < s->ndims; i++) {
		uint32_t dim = s->order[chan][i], d = t->dim[dim];
		uint32_t below = d - 1 - above(s, d);

		places /= d;
		for (uint32_t k = above(s, d); k > 0; k--, at++) {
			uint32_t sends = k <= below ? 2 : 1;

			out[back ? n - 1 - at : at] = (struct moved){
				.dim = dim,
				.kind = (2 * i + back) * SENDS,
				.sends = sends,
				.blocks = places * s->weight[chan] * sends
			};
		}
	}
}

/* Go to a step: the first pieces begin a step of theirs, the last ones have left one. */
static void advance(struct pace *p, const struct moved *m, uint32_t of_piece, uint32_t pieces,
		    uint32_t step)
{
	const struct moved *begun = step < of_piece ? &m[step] : NULL;
	const struct moved *left = step >= pieces ? &m[step - pieces] : NULL;
	uint32_t before = p->kinds;

	for (uint32_t i = 0; begun && i < begun->sends; i++) {
		p->count[begun->kind + i]++;
		p->kinds |= 1u << (begun->kind + i);
	}
	for (uint32_t i = 0; left && i < left->sends; i++)
		if (!--p->count[left->kind + i])
			p->kinds &= ~(1u << (left->kind + i));
	if (begun)
		p->sum[begun->dim] += begun->blocks;
	if (left)
		p->sum[left->dim] -= left->blocks;
	if (step && before & ~p->kinds && p->kinds & ~before)
		p->phase++;
	p->length[p->phase]++;
}

static void add_up(struct sums *u, const struct swc_bucket_shares *s, const struct swc_topo *t)
{
	for (uint32_t k = 0; k < u->steps; k++) {
		double sum[SWC_TOPO_DIMS] = { 0 }, most = 0;

		for (uint32_t c = 0; c < s->n; c++) {
			struct pace *p = &u->pace[c];

			advance(p, u->moved + c * u->of_piece, u->of_piece, s->pieces, k);
			for (uint32_t i = 0; i < t->ndims; i++) {
				double x = (double)p->sum[i] * swc_topo_slowness(t, i);

				u->by_phase[p->phase * t->ndims + i] += x;
				sum[i] += x;
				most = sum[i] > most ? sum[i] : most;
			}
		}
		u->eager += most;
	}
}

/* Are there as many phases on all channels, of different length? */
static bool has_phases(const struct sums *u, uint32_t n)
{
	bool differ = false;

	for (uint32_t c = 1; c < n; c++) {
		if (u->pace[c].phase != u->pace[0].phase)
			return false;
		for (uint32_t i = 0; i <= u->pace[0].phase; i++)
			differ |= u->pace[c].length[i] != u->pace[0].length[i];
	}
	return differ;
}

/* Phases begin together: the longest channel's steps of each, and its busiest link. */
static struct swc_timing phased(const struct sums *u, const struct swc_bucket_shares *s,
				const struct swc_topo *t)
{
	struct swc_timing timing = { 0 };

	for (uint32_t k = 0; k <= u->pace[0].phase; k++) {
		uint32_t length = 0;
		double most = 0;

		for (uint32_t c = 0; c < s->n; c++)
			length = u->pace[c].length[k] > length ? u->pace[c].length[k] : length;
		for (uint32_t i = 0; i < t->ndims; i++)
			most = fmax(most, u->by_phase[k * t->ndims + i]);
		timing.load += most;
		timing.steps += length;
	}
	timing.hops = timing.steps;
	return timing;
}

/* Where nodes are ahead of others, all that is known is what a link carries in the end. */
static double least_load(const struct sums *u, const struct swc_topo *t)
{
	double least = 0;

	for (uint32_t i = 0; i < t->ndims; i++) {
		double sum = 0;

		for (uint32_t k = 0; k < u->steps; k++)
			sum += u->by_phase[k * t->ndims + i];
		least = fmax(least, sum);
	}
	return least;
}

/* In an ALLREDUCE each message is one transfer, of each channel and its mirror image. */
static uint64_t bytes_of_plan(const struct sums *u, const struct swc_bucket_shares *s)
{
	uint64_t xfers = 0;

	for (uint32_t i = 0; i < s->n * u->of_piece; i++)
		xfers += 2 * 2 * u->moved[i].sends * s->pieces;
	return sizeof(struct swc_plan_header) + 2 * s->n * sizeof(struct swc_plan_channel) +
	       2ull * s->n * u->steps * sizeof(struct swc_plan_step) +
	       xfers * sizeof(struct swc_plan_xfer);
}

static void list_all(struct sums *u, const struct swc_bucket_shares *s, const struct swc_topo *t,
		     enum swc_coll coll)
{
	uint32_t one_way = u->of_piece / (coll == SWC_ALLREDUCE ? 2 : 1);

	for (uint32_t c = 0; c < s->n; c++) {
		struct moved *at = u->moved + c * u->of_piece;

		if (coll != SWC_ALLGATHER)
			list_moved(s, t, c, false, at, one_way);
		if (coll != SWC_REDUCE_SCATTER)
			list_moved(s, t, c, true, at + u->of_piece - one_way, one_way);
		u->pace[c].length = u->length + c * u->steps;
	}
}

/* With the mirror images. */
static double blocks_of(const struct swc_bucket_shares *s, const struct swc_topo *t)
{
	double sum = 0;

	for (uint32_t c = 0; c < s->n; c++)
		sum += s->weight[c];
	return 2 * sum * s->pieces * t->nnodes;
}

static void compute(struct sums *u, const struct swc_bucket_shares *s, const struct swc_topo *t,
		    enum swc_coll coll, struct swc_bucket_cost *cost)
{
	uint32_t sum = 0, max = 0;
	bool alone = t->nlocal == 1;
	double nblocks = blocks_of(s, t);

	for (uint32_t c = 0; c < s->n; c++) {
		sum += s->weight[c];
		max = s->weight[c] > max ? s->weight[c] : max;
	}
	list_all(u, s, t, coll);
	add_up(u, s, t);
	*cost = (struct swc_bucket_cost){
		.eager = { .steps = u->steps,
			   .hops = u->steps,
			   .load = alone ? u->eager : least_load(u, t) },
		.reduced = coll == SWC_ALLGATHER || !alone
				   ? 0
				   : max / (2.0 * sum) * (1 - 1.0 / t->nnodes),
		.connections = alone ? 2 * s->n * 2 * s->ndims : 0,
		.plan_bytes = alone && coll == SWC_ALLREDUCE ? bytes_of_plan(u, s) : 0,
	};
	cost->phased = alone && has_phases(u, s->n) ? phased(u, s, t) : cost->eager;
	cost->eager.load /= nblocks;
	cost->phased.load /= nblocks;
}

/* bucket and bucket2 have an order for each dimension that is reduced first. */
static bool find_shares(struct swc_bucket_shares *s, const struct swc_topo *t, enum swc_algo algo,
			int32_t param)
{
	uint8_t dims[SWC_TOPO_DIMS];

	if (t->kind != SWC_TOPO_TORUS)
		return false;
	if (algo == SWC_ALGO_SPLIT)
		return param > 0 && swc_split_shares(s, t, (uint32_t)param);
	*s = (struct swc_bucket_shares){ .two_sided = algo == SWC_ALGO_BUCKET2, .pieces = 1 };
	s->n = s->ndims = swc_bucket_dims(t, dims);
	for (uint32_t c = 0; c < s->n; c++) {
		s->weight[c] = 1;
		for (uint32_t i = 0; i < s->n; i++)
			s->order[c][i] = dims[(c + i) % s->n];
	}
	return s->n && (algo == SWC_ALGO_BUCKET || algo == SWC_ALGO_BUCKET2);
}

int swc_bucket_cost(struct swc_bucket_cost *cost, const struct swc_topo *t, enum swc_coll coll,
		    enum swc_algo algo, int32_t param)
{
	struct swc_bucket_shares s;
	struct sums u = { .steps = 0 };
	bool memory;

	if (!find_shares(&s, t, algo, param) ||
	    (coll != SWC_ALLREDUCE && coll != SWC_REDUCE_SCATTER && coll != SWC_ALLGATHER))
		return -EOPNOTSUPP;
	if (2 * s.n > SWC_MAX_CHANNELS || blocks_of(&s, t) > SWC_PLAN_MAX_BLOCKS)
		return -EOPNOTSUPP;
	for (uint32_t i = 0; i < s.ndims; i++)
		u.of_piece += above(&s, t->dim[s.order[0][i]]) * (coll == SWC_ALLREDUCE ? 2 : 1);
	u.steps = u.of_piece + s.pieces - 1;
	u.moved = calloc((size_t)s.n * u.of_piece, sizeof(*u.moved));
	u.length = calloc((size_t)s.n * u.steps, sizeof(*u.length));
	u.by_phase = calloc((size_t)t->ndims * u.steps, sizeof(*u.by_phase));
	memory = u.moved && u.length && u.by_phase;
	if (memory)
		compute(&u, &s, t, coll, cost);
	free(u.moved);
	free(u.length);
	free(u.by_phase);
	return memory ? 0 : -ENOMEM;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The automatic choice. Candidates are all algorithms that have a plan for rank 0, or whose plan
 * would be long, hybrids with every number of steps. Of those whose time by the model is within 2 %
 * of the least one, the one with the fewest connections of a rank wins: the model is no more exact
 * than that, and each connection takes more than a megabyte of kernel memory. Of equal ones the
 * fastest wins.
 *
 * Computing a cost takes time on large networks, so candidates come in the order of their steps, and
 * those are skipped whose steps and messages of one rank alone take longer than that.
 */
#include <stdlib.h>

#include "plan/model/walk.h"
#include "plan/select/choose.h"
#include "plan/orders.h"
#include "kmod/core/plan_check.h"
#include "kmod/core/reduce.h"

/*
 * On one node, up to this size it is faster if every rank reads all vectors than if it waits for
 * the others' results.
 */
#define DIRECT1_MAX_BYTES 4096
/* Plans that are built for the cost of a candidate whose ranks are not alike. */
#define MOST_RANKS 512
/* Times that differ by less count as equal. */
#define NEARLY 1.02

void swc_choices_init(struct swc_choices *c, const struct swc_topo *topo, bool reorder)
{
	*c = (struct swc_choices){ .topo = topo,
				   .net = swc_network_in_kernel(topo),
				   .reorder = reorder };
}

void swc_choices_free(struct swc_choices *c)
{
	for (int i = 0; i < SWC_COLL_NR; i++)
		free(c->coll[i].cand);
	swc_tuning_free(&c->tuning);
}

enum swc_algo swc_choices_fallback(const struct swc_topo *topo, enum swc_coll coll)
{
	if (topo->nnodes == 1)
		return coll == SWC_ALLTOALL ? SWC_ALGO_DIRECT1 : SWC_ALGO_DIRECT2;
	switch (coll) {
	case SWC_REDUCE_SCATTER:
	case SWC_ALLGATHER:
		return SWC_ALGO_RING;
	case SWC_BARRIER:
	case SWC_ALLTOALL:
		return SWC_ALGO_ROTATE;
	default:
		return SWC_ALGO_TREE;
	}
}

static uint64_t reduced(const struct swc_plan_view *v, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *x = &v->xfers[s->first_xfer + s->nsend];
	uint64_t sum = 0;

	for (uint32_t i = 0; s->kind == SWC_STEP_NET && i < s->nrecv; i++)
		sum += x[i].flags & SWC_XFER_REDUCE ? x[i].nblocks : 0;
	return sum;
}

/* The most blocks that a step sends to one peer. What goes to a peer stands together. */
static uint64_t largest(const struct swc_plan_view *v, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *x = &v->xfers[s->first_xfer];
	uint64_t most = 0, sum = 0;

	for (uint32_t i = 0; s->kind == SWC_STEP_NET && i < s->nsend; i++) {
		sum = (i && x[i].rank == x[i - 1].rank ? sum : 0) + x[i].nblocks;
		most = sum > most ? sum : most;
	}
	return most;
}

/* The least cost of rank 0's plan: its steps, and its largest messages where all cross links. */
static void measure(const struct swc_choices *c, const void *plan, struct swc_candidate *cand)
{
	struct swc_plan_view v = swc_walk_view(plan);

	for (uint32_t i = 0; i < v.hdr->nchannels; i++) {
		const struct swc_plan_channel *chan = &v.channels[i];
		uint64_t blocks = 0, sums = 0;
		uint32_t steps = 0;

		for (uint32_t k = 0; k < chan->nsteps; k++) {
			blocks += largest(&v, &v.steps[chan->first_step + k]);
			sums += reduced(&v, &v.steps[chan->first_step + k]);
			steps += v.steps[chan->first_step + k].kind == SWC_STEP_NET;
		}
		cand->steps = steps > cand->steps ? steps : cand->steps;
		if ((double)sums / v.nblocks > cand->reduced)
			cand->reduced = (double)sums / v.nblocks;
		if (c->topo->nlocal == 1 && (double)blocks / v.nblocks > cand->load)
			cand->load = (double)blocks / v.nblocks;
	}
}

static struct swc_plan_args args_of(const struct swc_choices *c, enum swc_coll coll,
				    enum swc_algo algo, int32_t param)
{
	return (struct swc_plan_args){ .coll = coll,
				       .algo = algo,
				       .param = param,
				       .topo = c->topo,
				       .nranks = c->topo->nranks,
				       .nlocal = c->nlocal };
}

/* Long plans are built if they can matter. Each member has its turn, in one to four rings at once. */
static struct swc_candidate serial(const struct swc_choices *c, enum swc_coll coll,
				   enum swc_algo algo)
{
	uint32_t halves = coll == SWC_ALLREDUCE ? 2 : 1, others = c->topo->nnodes - 1;
	uint32_t rings = algo == SWC_ALGO_RING ? 1 : algo == SWC_ALGO_RING2 ? 2 : 4;
	double share = 0.999 * others / c->topo->nnodes / rings;
	bool alone = c->topo->nlocal == 1;

	return (struct swc_candidate){ .algo = algo,
				       .param = SWC_PARAM_DEFAULT,
				       .steps = halves * others,
				       .load = alone ? halves * share : 0,
				       .reduced = alone && coll != SWC_ALLGATHER ? share : 0 };
}

/*
 * split in more pieces: a long plan too, so only bounds are known. Each piece more takes one step
 * more. No link carries less than the closed form, and some channel reduces its part of the vector.
 */
static struct swc_candidate more_pieces(const struct swc_choices *c, enum swc_coll coll,
					const struct swc_candidate *few, int32_t param)
{
	const struct swc_topo *t = c->topo;
	struct swc_candidate more = *few;
	double rate[SWC_TOPO_DIMS];

	for (uint32_t i = 0; i < t->ndims; i++)
		rate[i] = 1 / swc_topo_slowness(t, i);
	more.param = param;
	more.steps += (uint32_t)(param - few->param);
	more.load = 0.999 *
		    swc_orders_time(t->dim, rate, t->ndims, coll == SWC_ALLREDUCE ? 1 : 0.5);
	more.reduced = coll == SWC_ALLGATHER || t->nlocal != 1
			       ? 0
			       : 0.999 * (1 - 1.0 / t->nnodes) / (2 * t->ndims);
	return more;
}

/* Add a candidate if it has a plan for rank 0; false if it has not. */
static bool consider(struct swc_choices *c, enum swc_coll coll, enum swc_algo algo, int32_t param)
{
	struct swc_plan_args args = args_of(c, coll, algo, param);
	struct swc_candidate *to = &c->coll[coll].cand[c->coll[coll].n];
	struct swc_plan_header *h;
	size_t bytes;
	void *plan;

	if (swc_algo_info(algo)->serial) {
		*to = serial(c, coll, algo);
		c->coll[coll].n++;
		return true;
	}
	if (swc_algo_info(algo)->pieces && param > 1) {
		*to = more_pieces(c, coll, &to[-1], param);
		c->coll[coll].n++;
		return true;
	}
	if (swc_plan_build(&args, &plan, &bytes, NULL, 0))
		return false;
	h = plan;
	*to = (struct swc_candidate){ .algo = algo,
				      .param = param,
				      .order_varies = h->flags & SWC_PLAN_ORDER_VARIES };
	measure(c, plan, to);
	free(plan);
	c->coll[coll].n++;
	return true;
}

static int by_steps(const void *a, const void *b)
{
	const struct swc_candidate *x = a, *y = b;

	if (x->steps != y->steps)
		return x->steps < y->steps ? -1 : 1;
	if (x->algo != y->algo)
		return x->algo < y->algo ? -1 : 1;
	return x->param - y->param;
}

/* Are all dimensions alike in size and rate? Then split has nothing to balance. */
static bool is_cube(const struct swc_topo *t)
{
	for (uint32_t i = 1; i < t->ndims; i++)
		if (t->dim[i] != t->dim[0] || swc_topo_slowness(t, i) != swc_topo_slowness(t, 0))
			return false;
	return true;
}

static void find_candidates(struct swc_choices *c, enum swc_coll coll)
{
	c->coll[coll].cand = calloc(SWC_ALGO_NR * SWC_ALGO_PARAMS, sizeof(struct swc_candidate));
	if (!c->coll[coll].cand)
		return;
	for (enum swc_algo algo = 0; algo < SWC_ALGO_NR; algo++) {
		int32_t param;

		if (!(swc_algo_info(algo)->colls & 1u << coll) || swc_algo_info(algo)->one_node ||
		    (algo == SWC_ALGO_SPLIT && is_cube(c->topo)))
			continue;
		for (uint32_t i = 0; swc_algo_param(algo, coll, i, &param); i++)
			if (!consider(c, coll, algo, param))
				break;
	}
	qsort(c->coll[coll].cand, c->coll[coll].n, sizeof(struct swc_candidate), by_steps);
}

/* A candidate has no plan after all; nor have those of the algorithm with more pieces. */
static void refuse(struct swc_choices *c, enum swc_coll coll, struct swc_candidate *cand)
{
	cand->refused = true;
	for (unsigned int i = 0; swc_algo_info(cand->algo)->pieces && i < c->coll[coll].n; i++) {
		struct swc_candidate *other = &c->coll[coll].cand[i];

		other->refused |= other->algo == cand->algo && other->param > cand->param;
	}
}

/* The candidate's time by the model, or a negative number if it has none. */
static double time_of(struct swc_choices *c, enum swc_coll coll, struct swc_candidate *cand,
		      uint64_t bytes)
{
	struct swc_plan_args args = args_of(c, coll, cand->algo, cand->param);

	if (!cand->known &&
	    swc_cost_estimate(&args, MOST_RANKS, &cand->cost, NULL, NULL, NULL, 0)) {
		refuse(c, coll, cand);
		return -1;
	}
	cand->known = true;
	return swc_cost_time(&cand->cost, (double)bytes, &c->net, NULL);
}

/* The least times so far, ascending. */
struct best {
	double ns[SWC_CHOICES_BEST];
	unsigned int n, max;
};

static void keep(struct best *b, double ns)
{
	unsigned int i;

	if (b->n == b->max && b->ns[b->max - 1] <= ns)
		return;
	i = b->n < b->max ? b->n++ : b->max - 1;
	for (; i && b->ns[i - 1] > ns; i--)
		b->ns[i] = b->ns[i - 1];
	b->ns[i] = ns;
}

/* Can a candidate be among the best? */
static bool can_matter(const struct swc_choices *c, const struct swc_candidate *cand,
		       const struct best *b, uint64_t bytes)
{
	double least = cand->steps * c->net.step_ns + cand->load * (double)bytes * 8 / c->net.gbps;

	if (c->net.reduce_gbps > 0)
		least += cand->reduced * (double)bytes * 8 / c->net.reduce_gbps;

	return b->n < b->max || least <= b->ns[b->max - 1] || least <= b->ns[0] * NEARLY;
}

/*
 * The steps of a tree follow from one rank to the next; of that a sample shows nothing, so the tree
 * would seem too cheap.
 */
static bool is_guessed(const struct swc_choices *c, const struct swc_candidate *cand)
{
	return c->topo->nranks > MOST_RANKS && (!cand->known || cand->cost.sampled) &&
	       (cand->algo == SWC_ALGO_TREE || cand->algo == SWC_ALGO_DTREE);
}

/* @guessed: take those that are guessed, or the others. */
static struct swc_choice best_of(struct swc_choices *c, enum swc_coll coll, bool in_order,
				 uint64_t bytes, unsigned int nbest, bool guessed)
{
	struct swc_choice choice = { swc_choices_fallback(c->topo, coll), SWC_PARAM_DEFAULT,
				     SWC_REASON_ONLY, 0 };
	struct best best = { .max = nbest < SWC_CHOICES_BEST ? nbest : SWC_CHOICES_BEST };
	uint32_t connections = UINT32_MAX;

	if (!c->coll[coll].cand)
		find_candidates(c, coll);
	for (unsigned int i = 0; i < c->coll[coll].n; i++) {
		struct swc_candidate *cand = &c->coll[coll].cand[i];

		cand->ns = -1;
		if ((in_order && cand->order_varies) || cand->refused ||
		    is_guessed(c, cand) != guessed || !can_matter(c, cand, &best, bytes))
			continue;
		cand->ns = time_of(c, coll, cand, bytes);
		if (cand->ns >= 0)
			keep(&best, cand->ns);
	}
	for (unsigned int i = 0; i < c->coll[coll].n; i++) {
		const struct swc_candidate *cand = &c->coll[coll].cand[i];
		uint32_t n = cand->cost.connections;

		if (cand->ns < 0 || cand->ns > best.ns[0] * NEARLY || n > connections ||
		    (n == connections && cand->ns >= choice.ns))
			continue;
		connections = n;
		choice = (struct swc_choice){ cand->algo, cand->param, SWC_REASON_MODEL, cand->ns };
	}
	return choice;
}

static struct swc_choice by_model(struct swc_choices *c, enum swc_coll coll, bool in_order,
				  uint64_t bytes, unsigned int nbest)
{
	struct swc_choice choice = best_of(c, coll, in_order, bytes, nbest, false);

	return choice.reason == SWC_REASON_MODEL ? choice
						 : best_of(c, coll, in_order, bytes, nbest, true);
}

struct usable {
	const struct swc_choices *c;
	enum swc_coll coll;
	bool in_order;
};

/* Has a measured algorithm a plan on this topology, which may be used for the type? */
static bool usable(const struct swc_tuned *e, void *arg)
{
	const struct usable *u = arg;
	struct swc_plan_args args = args_of(u->c, u->coll, e->algo, e->param);
	struct swc_plan_header *h;
	bool varies;
	size_t bytes;
	void *plan;

	if (swc_plan_build(&args, &plan, &bytes, NULL, 0))
		return false;
	h = plan;
	varies = h->flags & SWC_PLAN_ORDER_VARIES;
	free(plan);
	return !(varies && u->in_order);
}

static struct swc_choice choose(struct swc_choices *c, enum swc_coll coll, enum swc_dtype dtype,
				enum swc_redop redop, uint64_t bytes, unsigned int best)
{
	bool in_order = !c->reorder && swc_coll_reduces(coll) &&
			swc_reduce_order_matters(dtype, redop);
	struct usable u = { c, coll, in_order };
	const struct swc_tuned *measured = swc_tuning_best(&c->tuning, coll, dtype, bytes, usable,
							   &u);

	if (measured)
		return (struct swc_choice){ measured->algo, measured->param, SWC_REASON_MEASURED,
					    measured->us * 1e3 };
	if (c->topo->nnodes == 1)
		return (struct swc_choice){ bytes <= DIRECT1_MAX_BYTES || coll == SWC_ALLTOALL
						    ? SWC_ALGO_DIRECT1
						    : SWC_ALGO_DIRECT2,
					    SWC_PARAM_DEFAULT, SWC_REASON_ONE_NODE, 0 };
	return by_model(c, coll, in_order, bytes, best);
}

struct swc_choice swc_choices_take(struct swc_choices *c, enum swc_coll coll, enum swc_dtype dtype,
				   enum swc_redop redop, uint64_t bytes, unsigned int best)
{
	uint64_t hash = (bytes ^ (uint64_t)coll << 56 ^ (uint64_t)dtype << 48 ^
			 (uint64_t)redop << 40) *
			0x9e3779b97f4a7c15;
	unsigned int i = (unsigned int)(hash >> 58) % SWC_CHOICES_KEPT;

	if (best > 1 || !c->kept[i].there || c->kept[i].coll != coll || c->kept[i].dtype != dtype ||
	    c->kept[i].redop != redop || c->kept[i].bytes != bytes) {
		c->kept[i].choice = choose(c, coll, dtype, redop, bytes, best);
		c->kept[i].there = true;
		c->kept[i].coll = (uint8_t)coll;
		c->kept[i].dtype = (uint8_t)dtype;
		c->kept[i].redop = (uint8_t)redop;
		c->kept[i].bytes = bytes;
	}
	return c->kept[i].choice;
}

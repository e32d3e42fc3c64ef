// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The automatic choice. Candidates are all algorithms that have a plan for rank 0, or whose plan
 * would be long, hybrids with every number of steps. Of those whose time by the model is within 2 %
 * of the least one, the one with the fewest connections of a rank wins: the model is no more exact
 * than that, and each connection takes more than a megabyte of kernel memory. Of equal ones the
 * fastest wins.
 *
 * Computing a cost takes time on large networks, so the least time of each candidate is computed from
 * the steps, routes and messages of one rank. The most promising candidate comes first, until the
 * least time of the next one is longer than that of those that are known.
 */
#include <math.h>
#include <stdlib.h>

#include "plan/model/bucket_cost.h"
#include "plan/model/walk.h"
#include "plan/select/choose.h"
#include "kmod/core/plan_check.h"
#include "kmod/core/reduce.h"

/*
 * On one node, up to this size it is faster if every rank reads all vectors than if it waits for
 * the others' results.
 */
#define DIRECT1_MAX_BYTES 4096
/*
 * With more ranks than CPUs, the time is the work of all ranks. direct1 reads p vectors for each of
 * p ranks; direct2 with m owners, of all ranks together, p vectors, and names 2p ranges for each
 * owner. So few owners are best; more, up to this number for each CPU, where their shares are not
 * smaller than this, so that CPUs that are slowed down get fewer shares.
 */
#define OWNERS_PER_CPU 8
#define SHARE_MIN_BYTES 2048
/* A rail that carries less than this of a vector is not worth messages of its own. */
#define RAIL_MIN_BYTES 8192
/* Plans that are built for the cost of a candidate whose ranks are not alike. */
#define MOST_RANKS 512
/* Times that differ by less count as equal. */
#define NEARLY 1.02
/* The model adds up numbers of type float: what differs by less is equal. */
#define EXACT 0.999999

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

uint32_t swc_choices_ports(const struct swc_topo *topo, uint64_t bytes)
{
	return topo->rails > 1 && bytes < (uint64_t)topo->rails * RAIL_MIN_BYTES;
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

/* A route, kept for the next message. */
struct last_route {
	uint32_t path, from, to, hops;
	double slowness;
};

/* The links that a message to a node crosses, and how slow the slowest of them is. */
static void find_route(const struct swc_topo *t, struct last_route *r, uint32_t path, uint32_t from,
		       uint32_t to)
{
	struct swc_topo_leg leg[SWC_TOPO_DIMS];
	uint32_t n;

	if (r->hops && r->path == path && r->from == from && r->to == to)
		return;
	*r = (struct last_route){ path, from, to, from != to, 1 };
	if (t->kind == SWC_TOPO_SWITCH || from == to)
		return;
	n = swc_topo_route(t, path, from, to, leg);
	r->hops = 0;
	for (uint32_t i = 0; i < n; i++) {
		r->hops += leg[i].hops;
		r->slowness = fmax(r->slowness, swc_topo_slowness(t, leg[i].dim));
	}
}

/*
 * Of what a step sends: the longest route, and the most blocks to one peer, in units of the fastest
 * links. What goes to a peer stands together.
 */
static double largest(const struct swc_topo *t, const struct swc_plan_view *v,
		      const struct swc_plan_step *s, struct last_route *route, uint32_t *hops)
{
	const struct swc_plan_xfer *x = &v->xfers[s->first_xfer];
	uint32_t from = swc_topo_node_of(t, v->hdr->rank);
	uint64_t sum = 0;
	double most = 0;

	*hops = 0;
	for (uint32_t i = 0; s->kind == SWC_STEP_NET && i < s->nsend; i++) {
		uint32_t to = swc_topo_node_of(t, x[i].rank);
		struct last_route *r = &route[swc_topo_pair(from, to)];

		find_route(t, r, x[i].path, from, to);
		sum = (i && x[i].rank == x[i - 1].rank ? sum : 0) + x[i].nblocks;
		most = fmax(most, (double)sum * r->slowness);
		*hops = r->hops > *hops ? r->hops : *hops;
	}
	return most;
}

/* The least cost of rank 0's plan: its steps, and its largest messages where all cross links. */
static void measure(const struct swc_choices *c, const void *plan, struct swc_candidate *cand)
{
	struct swc_plan_view v = swc_walk_view(plan);
	struct last_route route[SWC_TOPO_PAIRS] = { 0 };

	for (uint32_t i = 0; i < v.hdr->nchannels; i++) {
		const struct swc_plan_channel *chan = &v.channels[i];
		uint32_t steps = 0, longest;
		uint64_t sums = 0, hops = 0;
		double blocks = 0;

		for (uint32_t k = 0; k < chan->nsteps; k++) {
			const struct swc_plan_step *s = &v.steps[chan->first_step + k];

			blocks += largest(c->topo, &v, s, route, &longest);
			hops += longest;
			sums += reduced(&v, s);
			steps += s->kind == SWC_STEP_NET;
		}
		cand->steps = steps > cand->steps ? steps : cand->steps;
		cand->hops = hops > cand->hops ? hops : cand->hops;
		if ((double)sums / v.nblocks > cand->reduced)
			cand->reduced = (double)sums / v.nblocks;
		if (c->topo->nlocal == 1 && 0.999 * blocks / v.nblocks > cand->load)
			cand->load = 0.999 * blocks / v.nblocks;
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
	double share = 0.999 * others / c->topo->nnodes / rings / swc_topo_rails(c->topo);
	bool alone = c->topo->nlocal == 1;

	return (struct swc_candidate){ .algo = algo,
				       .param = SWC_PARAM_DEFAULT,
				       .steps = halves * others,
				       .load = alone ? halves * share : 0,
				       .reduced = alone && coll != SWC_ALLGATHER ? share : 0 };
}

/*
 * Long plans too, whose cost is known without them; false if it is not. *none: there is no plan.
 */
static bool bucket(const struct swc_choices *c, enum swc_coll coll, enum swc_algo algo,
		   int32_t param, struct swc_candidate *cand, bool *none)
{
	struct swc_bucket_cost cost;

	if (swc_bucket_cost(&cost, c->topo, coll, algo, param))
		return false;
	*none = cost.plan_bytes > SWC_MAX_PLAN_BYTES;
	*cand = (struct swc_candidate){ .algo = algo,
					.param = param,
					.steps = cost.eager.steps,
					.hops = cost.eager.steps,
					.load = EXACT * fmin(cost.eager.load, cost.phased.load),
					.reduced = EXACT * cost.reduced,
					.connections = cost.connections };
	/* All that is not known is the last transfer, for acknowledgements. */
	cand->known = cost.plan_bytes && !(c->net.ack_bytes > 0);
	cand->cost = (struct swc_cost){ .eager = cost.eager,
					.phased = cost.phased,
					.reduced = cost.reduced,
					.connections = cost.connections };
	return true;
}

/* Add a candidate if it has a plan for rank 0; false if it has not. */
static bool consider(struct swc_choices *c, enum swc_coll coll, enum swc_algo algo, int32_t param)
{
	struct swc_plan_args args = args_of(c, coll, algo, param);
	struct swc_candidate *to = &c->coll[coll].cand[c->coll[coll].n];
	struct swc_plan_header *h;
	size_t bytes;
	void *plan;
	bool none;

	if (swc_algo_info(algo)->serial) {
		*to = serial(c, coll, algo);
		c->coll[coll].n++;
		return true;
	}
	if (bucket(c, coll, algo, param, to, &none)) {
		c->coll[coll].n += !none;
		return !none;
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

/*
 * Between nodes that have 2^k ranks each, messages of Bine trees leave a node twice as often as those of
 * tree. Where there is nothing but a switch, all-to-all over a butterfly saves no hops, but sends each
 * piece log2 p / 2 times.
 */
bool swc_choices_suit(const struct swc_topo *t, enum swc_coll coll, enum swc_algo algo)
{
	bool groups = t->nlocal > 1 && !(t->nlocal & (t->nlocal - 1));

	if (algo == SWC_ALGO_BINE && coll == SWC_ALLTOALL)
		return t->kind != SWC_TOPO_SWITCH;
	return !(groups && (algo == SWC_ALGO_BINE || algo == SWC_ALGO_BINE_SAG));
}

static void find_candidates(struct swc_choices *c, enum swc_coll coll)
{
	c->coll[coll].cand = calloc(SWC_ALGO_NR * SWC_ALGO_PARAMS, sizeof(struct swc_candidate));
	if (!c->coll[coll].cand)
		return;
	for (enum swc_algo algo = 0; algo < SWC_ALGO_NR; algo++) {
		int32_t param;

		if (!(swc_algo_info(algo)->colls & 1u << coll) || swc_algo_info(algo)->one_node ||
		    (algo == SWC_ALGO_SPLIT && is_cube(c->topo)) ||
		    !swc_choices_suit(c->topo, coll, algo))
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

/* The least time that a candidate can take. */
static double least_time(const struct swc_choices *c, const struct swc_candidate *cand,
			 uint64_t bytes)
{
	double bits = (double)bytes * 8, reduce = c->net.reduce_gbps;

	return cand->steps * c->net.step_ns + (double)cand->hops * c->net.hop_ns +
	       cand->load * bits / c->net.gbps + (reduce > 0 ? cand->reduced * bits / reduce : 0);
}

/* Can a candidate that takes so long at least be among the best? */
static bool can_matter(const struct best *b, double least)
{
	return b->n < b->max || least <= b->ns[b->max - 1] || least <= b->ns[0] * NEARLY;
}

/*
 * The steps of a tree follow from one rank to the next; of that a sample shows nothing, so the tree
 * would seem too cheap.
 */
static bool is_guessed(const struct swc_choices *c, enum swc_coll coll,
		       const struct swc_candidate *cand)
{
	return c->topo->nranks > MOST_RANKS && (!cand->known || cand->cost.sampled) &&
	       (cand->algo == SWC_ALGO_TREE || cand->algo == SWC_ALGO_DTREE ||
		cand->algo == SWC_ALGO_BINE_SAG || cand->algo == SWC_ALGO_LINEAR ||
		(cand->algo == SWC_ALGO_BINE && swc_coll_has_root(coll)));
}

/* Of the candidates that may be used and have not been looked at, the one with the least time. */
static struct swc_candidate *next_candidate(struct swc_choices *c, enum swc_coll coll)
{
	struct swc_candidate *next = NULL;

	for (unsigned int i = 0; i < c->coll[coll].n; i++) {
		struct swc_candidate *cand = &c->coll[coll].cand[i];

		if (cand->waits && !cand->refused && (!next || cand->least < next->least))
			next = cand;
	}
	if (next)
		next->waits = false;
	return next;
}

/* Of the candidates whose times are nearly the best, the one with the fewest connections. */
static const struct swc_candidate *winner(const struct swc_choices *c, enum swc_coll coll,
					  const struct best *best)
{
	const struct swc_candidate *won = NULL;

	for (unsigned int i = 0; i < c->coll[coll].n; i++) {
		const struct swc_candidate *cand = &c->coll[coll].cand[i];

		if (cand->ns < 0 || cand->ns > best->ns[0] * NEARLY ||
		    (won && (cand->cost.connections > won->cost.connections ||
			     (cand->cost.connections == won->cost.connections &&
			      cand->ns >= EXACT * won->ns))))
			continue;
		won = cand;
	}
	return won;
}

/*
 * Is it certain that the winner so far remains? No candidate from here on is faster than the best
 * one, as none has less than the least time of this one.
 */
static bool is_beaten(const struct swc_choices *c, enum swc_coll coll, const struct best *best,
		      const struct swc_candidate *next)
{
	const struct swc_candidate *won;

	if (best->max > 1 || !best->n || next->least < best->ns[0])
		return false;
	won = winner(c, coll, best);
	return next->connections > won->cost.connections ||
	       (next->connections == won->cost.connections && next->least > won->ns);
}

/* @guessed: take those that are guessed, or the others. */
static struct swc_choice best_of(struct swc_choices *c, enum swc_coll coll, bool in_order,
				 uint64_t bytes, unsigned int nbest, bool guessed)
{
	struct best best = { .max = nbest < SWC_CHOICES_BEST ? nbest : SWC_CHOICES_BEST };
	const struct swc_candidate *won;
	struct swc_candidate *next;

	if (!c->coll[coll].cand)
		find_candidates(c, coll);
	for (unsigned int i = 0; i < c->coll[coll].n; i++) {
		struct swc_candidate *cand = &c->coll[coll].cand[i];

		cand->ns = -1;
		cand->waits = !(in_order && cand->order_varies) &&
			      is_guessed(c, coll, cand) == guessed;
		cand->least = least_time(c, cand, bytes);
	}
	while ((next = next_candidate(c, coll)) && can_matter(&best, next->least)) {
		if (is_beaten(c, coll, &best, next))
			continue;
		next->ns = time_of(c, coll, next, bytes);
		if (next->ns >= 0)
			keep(&best, next->ns);
	}
	won = winner(c, coll, &best);
	if (!won)
		return (struct swc_choice){ swc_choices_fallback(c->topo, coll), SWC_PARAM_DEFAULT,
					    SWC_REASON_ONLY, 0 };
	return (struct swc_choice){ won->algo, won->param, SWC_REASON_MODEL, won->ns };
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

/* The parameter of direct2, with more ranks than CPUs. */
static int32_t owners(const struct swc_choices *c, uint64_t bytes)
{
	uint32_t per_cpu = 1;

	while (per_cpu < OWNERS_PER_CPU && bytes >= 2ull * per_cpu * c->ncpus * SHARE_MIN_BYTES)
		per_cpu *= 2;
	return per_cpu * c->ncpus < c->topo->nranks ? (int32_t)(per_cpu * c->ncpus)
						    : SWC_PARAM_DEFAULT;
}

static struct swc_choice on_one_node(const struct swc_choices *c, enum swc_coll coll,
				     uint64_t bytes)
{
	bool crowded = c->ncpus && c->ncpus < c->topo->nranks;
	struct swc_choice choice = { SWC_ALGO_DIRECT1, SWC_PARAM_DEFAULT, SWC_REASON_ONE_NODE, 0 };

	if (coll == SWC_ALLTOALL ||
	    (bytes <= DIRECT1_MAX_BYTES && !(crowded && coll == SWC_ALLREDUCE)))
		return choice;
	choice.algo = SWC_ALGO_DIRECT2;
	if (crowded && (coll == SWC_ALLREDUCE || coll == SWC_REDUCE || coll == SWC_BROADCAST))
		choice.param = owners(c, bytes);
	return choice;
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
		return on_one_node(c, coll, bytes);
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

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The automatic choice. Candidates are all algorithms that have a plan for rank 0, or whose plan
 * would be long, hybrids with every number of steps. Of those whose time by the model is within 2 %
 * of the least one, the one with the fewest connections of a rank wins: the model is no more exact
 * than that, and each connection takes some 200 KiB of kernel memory, and more than a megabyte once long
 * messages have come. Of equal ones the fastest wins.
 *
 * Computing a cost takes time on large networks, unless one plan shows it or it is known without plans. Else
 * the least time of each candidate is computed from the steps, routes and messages of a few ranks. The most
 * promising candidate comes first, until the least time of the next one is longer than that of those that
 * are known.
 *
 * An all-to-all in which all ranks of large nodes connect with all others is not taken at all if one by nodes
 * has memory enough for its segments.
 *
 * A forest comes last, as finding its trees takes up to seconds of CPU time: first the least time that any
 * trees can take is compared with the best algorithm's, and only where a forest can be clearly faster are
 * its trees found, once for each collective of a communicator. On tori and switches with links of one rate
 * that never happens: other algorithms keep all links busy there.
 */
#include <math.h>
#include <stdlib.h>

#include "plan/algo/butterfly_peers.h"
#include "plan/algo/by_nodes.h"
#include "plan/model/bruck_cost.h"
#include "plan/model/bucket_cost.h"
#include "plan/model/butterfly_cost.h"
#include "plan/model/by_nodes_cost.h"
#include "plan/model/rotate_cost.h"
#include "plan/model/tree_cost.h"
#include "plan/select/choose.h"
#include "plan/select/least.h"
#include "plan/select/one_node.h"
#include "kmod/core/plan_check.h"
#include "kmod/core/reduce.h"

/* A rail that carries less than this of a vector is not worth messages of its own. */
#define RAIL_MIN_BYTES 8192
/* Plans that are built for the cost of a candidate whose ranks are not alike, and if they are short. */
#define MOST_RANKS 512
#define MOST_SHORT_RANKS 640
#define SHORT_PLAN_BYTES 8192
/* A forest must be so much faster: its trees have to be found, and its plans are long. */
#define FOREST_GAIN 1.1
/* Of a node, at most. The trees of a switch connect all nodes with all. */
#define FOREST_CONNECTIONS 64
/* Times that differ by less count as equal. */
#define NEARLY 1.02
/*
 * Of the connections that a user may have on a node, those of its ranks, each with all ranks of other nodes,
 * take this part at most if there is another way: the rest is for other plans and communicators.
 */
#define CONNECTIONS_PART 4
/* Scratch memory of a rank for an all-to-all by nodes, which has it all the time. */
#define BY_NODES_SCRATCH (16u << 20)
/* The model adds up numbers of type float: what differs by less is equal. */
#define EXACT 0.999999

void swc_choices_init(struct swc_choices *c, const struct swc_topo *topo, bool reorder)
{
	*c = (struct swc_choices){
		.topo = topo,
		.net = swc_network_in_kernel(topo),
		.connections = SWC_CHOICES_CONNECTIONS,
		.reorder = reorder,
		.forest = true,
	};
}

void swc_choices_free(struct swc_choices *c)
{
	for (int i = 0; i < SWC_COLL_NR; i++) {
		free(c->coll[i].cand);
		swc_trees_free(&c->trees[i].trees);
	}
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
	/* All that is not known is the last transfer, for acknowledgements, and what slow links do. */
	cand->known = cost.plan_bytes && !(c->net.ack_bytes > 0) && !c->topo->nslow;
	cand->cost = (struct swc_cost){ .eager = cost.eager,
					.phased = cost.phased,
					.reduced = cost.reduced,
					.connections = cost.connections };
	return true;
}

/* Butterflies, trees and all-to-alls, whose cost is known without plans; false if it is not. */
static bool without_plans(const struct swc_choices *c, const struct swc_plan_args *args,
			  struct swc_cost *cost)
{
	return !(c->net.ack_bytes > 0) &&
	       (!swc_butterfly_cost(args, cost) || !swc_tree_cost(args, cost) ||
		!swc_bruck_cost(args, cost) || !swc_rotate_cost(args, cost) ||
		!swc_by_nodes_cost(args, cost));
}

/*
 * Bruck's all-to-all: its copies, which take most of its time, are known soon, and where its messages go if
 * that matters. False if it is something else.
 */
static bool bruck(const struct swc_choices *c, const struct swc_plan_args *args,
		  struct swc_candidate *cand)
{
	uint32_t links = c->topo->kind == SWC_TOPO_SWITCH ? 1 : 2 * c->topo->ndims;

	if (swc_bruck_pieces(args, &cand->cost))
		return false;
	cand->steps = cand->cost.eager.steps;
	cand->hops = cand->steps;
	if (c->topo->nlocal == 1)
		cand->load = EXACT * cand->cost.sent / links;
	return true;
}

/* Are its plans long? */
static bool has_sets(const struct swc_choices *c, const struct swc_plan_args *args)
{
	struct swc_butterfly k;

	return args->coll == SWC_ALLTOALL ||
	       (swc_butterfly_find(&k, args, c->topo) && !k.in_ranges);
}

/* Add a candidate if it has plans; false if it has none. */
static bool consider(struct swc_choices *c, enum swc_coll coll, enum swc_algo algo, int32_t param)
{
	struct swc_plan_args args = args_of(c, coll, algo, param);
	struct swc_candidate *to = &c->coll[coll].cand[c->coll[coll].n];
	bool none, alike;

	if (swc_algo_info(algo)->serial) {
		*to = serial(c, coll, algo);
		c->coll[coll].n++;
		return true;
	}
	if (bucket(c, coll, algo, param, to, &none)) {
		c->coll[coll].n += !none;
		return !none;
	}
	*to = (struct swc_candidate){ .algo = algo, .param = param };
	if (bruck(c, &args, to)) {
		c->coll[coll].n++;
		return true;
	}
	/* Else it needs all plans, which are long. */
	if (algo == SWC_ALGO_BRUCK && args.nranks > MOST_RANKS)
		return false;
	alike = swc_cost_plans(&args, MOST_RANKS) == 1;
	if ((!alike || coll == SWC_ALLTOALL) && has_sets(c, &args))
		to->known = without_plans(c, &args, &to->cost);
	if (!to->known && !alike) {
		if (!swc_least_measure(c, &args, to))
			return false;
		to->load = fmax(to->load, EXACT * swc_butterfly_folds(&args));
	} else {
		if (!to->known &&
		    swc_cost_estimate(&args, MOST_RANKS, &to->cost, NULL, NULL, NULL, 0))
			return false;
		to->known = true;
		to->steps = to->cost.eager.steps;
		to->order_varies = to->cost.order_varies;
	}
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
 * Where there is nothing but a switch, all-to-all over a butterfly saves no hops, but sends each piece
 * log2 p / 2 times.
 */
static bool suits(const struct swc_topo *t, enum swc_coll coll, enum swc_algo algo)
{
	return !(algo == SWC_ALGO_BINE && coll == SWC_ALLTOALL && t->kind == SWC_TOPO_SWITCH);
}

static void find_candidates(struct swc_choices *c, enum swc_coll coll)
{
	c->coll[coll].cand = calloc(SWC_ALGO_NR * SWC_ALGO_PARAMS, sizeof(struct swc_candidate));
	if (!c->coll[coll].cand)
		return;
	for (enum swc_algo algo = 0; algo < SWC_ALGO_NR; algo++) {
		int32_t param;

		if (!(swc_algo_info(algo)->colls & 1u << coll) || swc_algo_info(algo)->one_node ||
		    (algo == SWC_ALGO_SPLIT && is_cube(c->topo)) || !suits(c->topo, coll, algo))
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

/* How many plans may be built for its cost. */
static uint32_t most_ranks(const struct swc_candidate *cand)
{
	return cand->bytes && cand->bytes <= SHORT_PLAN_BYTES ? MOST_SHORT_RANKS : MOST_RANKS;
}

/*
 * The cost from plans. Where nodes have one rank, each rail of a switch has its share of every message: plans
 * for one rail show the cost of all.
 */
static int estimate(const struct swc_choices *c, const struct swc_plan_args *args,
		    uint32_t most_plans, struct swc_cost *cost)
{
	const struct swc_topo *t = c->topo;
	struct swc_topo one = *t;
	struct swc_plan_args a = *args;
	int ret;

	if (t->rails < 2 || t->nlocal != 1 || t->nslow || args->coll == SWC_BARRIER ||
	    c->net.ack_bytes > 0)
		return swc_cost_estimate(args, most_plans, cost, NULL, NULL, NULL, 0);
	one.rails = 1;
	a.topo = &one;
	ret = swc_cost_estimate(&a, most_plans, cost, NULL, NULL, NULL, 0);
	cost->eager.load /= t->rails;
	cost->phased.load /= t->rails;
	cost->reduced /= t->rails;
	cost->connections *= t->rails;
	return ret;
}

/* The candidate's time by the model, or a negative number if it has none. */
static double time_of(struct swc_choices *c, enum swc_coll coll, struct swc_candidate *cand,
		      uint64_t bytes)
{
	struct swc_plan_args args = args_of(c, coll, cand->algo, cand->param);

	if (!cand->known && !without_plans(c, &args, &cand->cost) &&
	    estimate(c, &args, most_ranks(cand), &cand->cost)) {
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

/* The least time that a candidate can take. What is known of its cost is so before it is all known. */
static double least_time(const struct swc_choices *c, const struct swc_candidate *cand,
			 uint64_t bytes)
{
	double bits = (double)bytes * 8, reduce = c->net.reduce_gbps, small;

	if (cand->known)
		return swc_cost_time(&cand->cost, (double)bytes, &c->net, NULL);
	small = (double)cand->cost.extra * c->net.message_ns +
		(double)cand->cost.copy_steps * c->net.copy_step_ns +
		(double)cand->cost.copies * c->net.copy_ns;
	return small + cand->steps * c->net.step_ns + (double)cand->hops * c->net.hop_ns +
	       cand->load * bits / c->net.gbps +
	       (reduce > 0 ? (cand->reduced + cand->cost.copied) * bits / reduce : 0);
}

/* Can a candidate that takes so long at least be among the best? */
static bool can_matter(const struct best *b, double least)
{
	return b->n < b->max || least <= b->ns[b->max - 1] || least <= b->ns[0] * NEARLY;
}

/*
 * The steps of a tree follow from one rank to the next, which a sample does not show. Among nodes of several
 * ranks the model does not know them, so the tree would seem too cheap.
 */
static bool is_guessed(const struct swc_choices *c, enum swc_coll coll,
		       const struct swc_candidate *cand)
{
	return c->topo->nranks > MOST_RANKS && (!cand->known || cand->cost.sampled) &&
	       c->topo->nnodes != c->topo->nranks && coll == SWC_ALLREDUCE &&
	       (cand->algo == SWC_ALGO_TREE || cand->algo == SWC_ALGO_DTREE);
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

/*
 * What a hybrid takes tells about those that scatter for more steps: each of them goes back again, so they
 * have no fewer steps and hops. Of butterflies only: others have other stages then.
 */
static void raise_others(struct swc_choices *c, enum swc_coll coll,
			 const struct swc_candidate *known, uint64_t bytes)
{
	if (coll != SWC_ALLREDUCE || known->cost.sampled ||
	    (known->algo != SWC_ALGO_MIRRORED && known->algo != SWC_ALGO_SWING_H))
		return;
	for (unsigned int i = 0; i < c->coll[coll].n; i++) {
		struct swc_candidate *cand = &c->coll[coll].cand[i];

		if (cand->algo != known->algo || cand->param <= known->param || cand->known)
			continue;
		if (known->cost.eager.steps > cand->steps)
			cand->steps = known->cost.eager.steps;
		if (known->cost.eager.hops > cand->hops)
			cand->hops = known->cost.eager.hops;
		cand->least = least_time(c, cand, bytes);
	}
}

static bool has_scratch(const struct swc_topo *t, int32_t param, uint64_t bytes)
{
	struct swc_by_nodes k;

	return swc_by_nodes_find(&k, t, param) &&
	       swc_by_nodes_scratch(&k) * (double)bytes <= BY_NODES_SCRATCH;
}

bool swc_choices_has_room(const struct swc_choices *c, enum swc_coll coll, enum swc_algo algo,
			  int32_t param, uint64_t bytes)
{
	const struct swc_topo *t = c->topo;

	if (algo == SWC_ALGO_BY_NODES)
		return has_scratch(t, param, bytes);
	if (coll != SWC_ALLTOALL || algo != SWC_ALGO_ROTATE ||
	    (uint64_t)t->nlocal * (t->nranks - t->nlocal) <= c->connections / CONNECTIONS_PART)
		return true;
	for (uint32_t i = 0; swc_algo_param(SWC_ALGO_BY_NODES, coll, i, &param); i++)
		if (has_scratch(t, param, bytes))
			return false;
	return true;
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
			      is_guessed(c, coll, cand) == guessed &&
			      swc_choices_has_room(c, coll, cand->algo, cand->param, bytes);
		cand->least = least_time(c, cand, bytes);
	}
	while ((next = next_candidate(c, coll)) && can_matter(&best, next->least)) {
		if (is_beaten(c, coll, &best, next))
			continue;
		next->ns = time_of(c, coll, next, bytes);
		if (next->ns < 0)
			continue;
		keep(&best, next->ns);
		raise_others(c, coll, next, bytes);
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

/* ---- forests ---- */

const struct swc_trees *swc_choices_trees(struct swc_choices *c, enum swc_coll coll, uint32_t root)
{
	struct swc_kept_trees *k = &c->trees[coll];

	if (k->tried && k->trees.root != root) {
		swc_trees_free(&k->trees);
		k->tried = false;
	}
	if (!k->tried) {
		k->there = !swc_forest_find(&k->trees, c->topo, coll, root, NULL, 0);
		k->trees.root = root;
		k->tried = true;
	}
	return k->there ? &k->trees : NULL;
}

uint32_t swc_choices_pieces(const struct swc_choices *c, const struct swc_trees *t, uint64_t bytes)
{
	double size = 1;

	while (size * 2 < (double)bytes)
		size *= 4;
	return swc_trees_pieces(t, c->topo, size, &c->net);
}

/* Where all links have one rate, and no end of a mesh has fewer, other algorithms keep them busy. */
static bool forest_can_win(const struct swc_topo *t, enum swc_coll coll)
{
	/* Trees of a root are of use to no other one. */
	return (t->kind == SWC_TOPO_MESH || t->nslow || t->dim_gbps[0] > 0) &&
	       t->nnodes <= SWC_FOREST_MAX_NODES && !swc_coll_has_root(coll) &&
	       swc_forest_colls(t) & 1u << coll;
}

/* The time of a forest, and its segments; negative if there is none that is so fast. */
static double forest_time(struct swc_choices *c, enum swc_coll coll, uint64_t bytes, double limit,
			  uint32_t *pieces)
{
	const struct swc_trees *t;
	double ns;

	if (!c->forest || !forest_can_win(c->topo, coll) ||
	    swc_trees_least(c->topo, coll, (double)bytes, &c->net) >= limit)
		return -1;
	t = swc_choices_trees(c, coll, 0);
	if (!t)
		return -1;
	*pieces = swc_choices_pieces(c, t, bytes);
	ns = swc_trees_time(t, (double)bytes, *pieces, &c->net);
	return ns < limit && swc_trees_connections(t, *pieces) <= FOREST_CONNECTIONS ? ns : -1;
}

/* A choice, or a forest if that is faster. */
static struct swc_choice or_forest(struct swc_choices *c, enum swc_coll coll, uint64_t bytes,
				   struct swc_choice choice)
{
	uint32_t pieces;
	double ns = forest_time(c, coll, bytes, choice.ns / FOREST_GAIN, &pieces);

	if (ns < 0)
		return choice;
	return (struct swc_choice){ SWC_ALGO_FOREST, (int32_t)pieces, SWC_REASON_MODEL, ns };
}

/* ---- choosing ---- */

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

	if (e->algo == SWC_ALGO_FOREST)
		return u->c->topo->nnodes <= SWC_FOREST_MAX_NODES &&
		       swc_forest_colls(u->c->topo) & 1u << u->coll;
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
		return swc_choose_on_node(c, coll, bytes);
	return or_forest(c, coll, bytes, by_model(c, coll, in_order, bytes, best));
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

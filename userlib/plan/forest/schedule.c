// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Schedules. Each tree carries a part of the vector, in proportion to its weight; segments of it follow
 * one another, one step apart: in step s + d segment s crosses the edges whose data has come d steps
 * after the segment began. A tree that goes up begins with its farthest leaves, and a node sends its
 * sum one step after it has received from all its children; then the segment goes down. So in each
 * step, once the trees are filled, every edge of every tree carries a segment, and links are loaded as
 * the forest says. Ranks do not wait for others than those that they exchange messages with.
 *
 * A step ends when all its messages are complete; several channels keep links busy meanwhile. Few trees have
 * channels of their own: then none waits for those that are deeper or whose links are slower. Many trees
 * are in each channel, which has a part of their segments, so that those that use a link go in one message.
 *
 * Parts are whole numbers of blocks: the smallest are taken by which each phase is within half a percent of
 * its best time.
 */
#include "plan/forest/schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/text.h"

#define MOST_BLOCKS 1024 /* of a segment of all trees of a shard */
#define NEARLY 1.005
#define TINY 1e-12 /* share of a root */
#define FEW_FLOWS 4

/* ---- trees to flows ---- */

static void add_flow(struct swc_schedule *s, const struct swc_tree *up, const struct swc_tree *down,
		     double share)
{
	s->flow[s->nflows++] = (struct swc_flow_tree){ .up = up, .down = down, .share = share };
}

static double weight_of(const struct swc_tree *t, uint32_t n)
{
	double all = 0;

	for (uint32_t i = 0; i < n; i++)
		all += (double)t[i].weight;
	return all;
}

static uint32_t end_of_root(const struct swc_forest *f, uint32_t from)
{
	uint32_t end = from;

	while (end < f->ntrees && f->tree[end].root == f->tree[from].root)
		end++;
	return end;
}

static void one_way(struct swc_schedule *s, const struct swc_forest *f, bool up)
{
	for (uint32_t i = 0, end; i < f->ntrees; i = end) {
		end = end_of_root(f, i);
		for (uint32_t k = i; k < end; k++)
			add_flow(s, up ? &f->tree[k] : NULL, up ? NULL : &f->tree[k],
				 (double)f->tree[k].weight / weight_of(&f->tree[i], end - i));
	}
}

/*
 * Pair the trees of a root, which has @share: shallow ones up with deep ones down. Both phases carry the
 * same, though it may be in different numbers of trees.
 */
static void pair_root(struct swc_schedule *s, const struct swc_tree *up, uint32_t nup,
		      const struct swc_tree *down, uint32_t ndown, double share)
{
	double all_up = weight_of(up, nup), all_down = weight_of(down, ndown), d;
	double left_up = 0, left_down = 0;
	uint32_t i = 0, j = ndown;

	for (;;) {
		if (left_up < TINY && i < nup)
			left_up = (double)up[i++].weight / all_up;
		if (left_down < TINY && j)
			left_down = (double)down[--j].weight / all_down;
		d = fmin(left_up, left_down);
		if (d < TINY)
			return;
		add_flow(s, &up[i - 1], &down[j], d * share);
		left_up -= d;
		left_down -= d;
	}
}

static void both_ways(struct swc_schedule *s, const struct swc_forest *up,
		      const struct swc_forest *down)
{
	double all = weight_of(down->tree, down->ntrees);

	for (uint32_t i = 0, j = 0; i < up->ntrees && j < down->ntrees;) {
		uint32_t iend = end_of_root(up, i), jend = end_of_root(down, j);

		pair_root(s, &up->tree[i], iend - i, &down->tree[j], jend - j,
			  weight_of(&down->tree[j], jend - j) / all);
		i = iend;
		j = jend;
	}
}

static uint32_t depth_of(const struct swc_tree *t)
{
	return t ? t->depth : 0;
}

uint32_t swc_schedule_depth(const struct swc_phase *up, const struct swc_phase *down)
{
	uint32_t most[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		const struct swc_phase *p = i ? up : down;

		for (uint32_t k = 0; p && k < p->forest.ntrees; k++)
			if (p->forest.tree[k].depth > most[i])
				most[i] = p->forest.tree[k].depth;
	}
	return most[0] + most[1];
}

/* ---- flows to blocks ---- */

static bool has_shards(enum swc_coll coll)
{
	return coll == SWC_ALLGATHER || coll == SWC_REDUCE_SCATTER;
}

static uint32_t root_of(const struct swc_flow_tree *f)
{
	return f->up ? f->up->root : f->down->root;
}

/* Behind the last flow of the same shard. */
static uint32_t end_of_shard(const struct swc_schedule *s, uint32_t from)
{
	uint32_t end = from;

	while (end < s->nflows &&
	       (!has_shards(s->args.coll) || root_of(&s->flow[end]) == root_of(&s->flow[from])))
		end++;
	return end;
}

/* Give @n blocks to the flows of a shard, by largest remainders. */
static void apportion(struct swc_flow_tree *flow, uint32_t nflows, uint32_t n)
{
	uint32_t given = 0;

	for (uint32_t i = 0; i < nflows; i++) {
		flow[i].blocks = (uint32_t)(n * flow[i].share + 1e-6);
		given += flow[i].blocks;
	}
	for (; given < n; given++) {
		uint32_t next = 0;
		double most = -INFINITY;

		for (uint32_t i = 0; i < nflows; i++) {
			double rest = n * flow[i].share - flow[i].blocks;

			if (rest > most + 1e-9) {
				most = rest;
				next = i;
			}
		}
		flow[next].blocks++;
	}
}

static void apportion_all(struct swc_schedule *s, uint32_t n)
{
	for (uint32_t i = 0, end; i < s->nflows; i = end) {
		end = end_of_shard(s, i);
		apportion(&s->flow[i], end - i, n);
	}
}

static void add_loads(const struct swc_phase *p, const struct swc_tree *t, double share,
		      double *load)
{
	for (uint32_t i = 1; i < p->forest.nranks; i++) {
		uint32_t v = t->order[i];

		load[swc_graph_find(&p->splitting.direct, t->parent[v], v)] += share;
	}
}

/*
 * The time of a segment over its share of a shard, in a unit of the phase's own: its capacities count trees.
 * @n: blocks of a segment of a shard, or 0 for shares that are not rounded.
 */
static double time_of(const struct swc_schedule *s, bool up, uint32_t n, double *load)
{
	const struct swc_phase *p = up ? s->args.up : s->args.down;
	double most = 0;

	memset(load, 0, p->splitting.direct.nlinks * sizeof(*load));
	for (uint32_t i = 0; i < s->nflows; i++) {
		const struct swc_flow_tree *f = &s->flow[i];

		if (!n || f->blocks)
			add_loads(p, up ? f->up : f->down, n ? (double)f->blocks / n : f->share,
				  load);
	}
	for (uint32_t i = 0; i < p->splitting.direct.nlinks; i++)
		most = fmax(most, load[i] / (double)p->splitting.direct.link[i].capacity);
	return most;
}

/* How many times its best time, @least, the phase takes for which that is more. */
static double slowdown_of(const struct swc_schedule *s, uint32_t n, const double *least,
			  double *load)
{
	double most = 0;

	if (s->args.down)
		most = time_of(s, false, n, load) / least[0];
	if (s->args.up)
		most = fmax(most, time_of(s, true, n, load) / least[1]);
	return most;
}

/* Returns the blocks of a segment of a shard, 0 without memory. */
static uint32_t find_blocks(struct swc_schedule *s, uint32_t most)
{
	uint32_t links = 1, best = 0;
	double *load, least[2] = { 0 }, slowdown, best_slowdown = INFINITY;

	for (int k = 0; k < 2; k++) {
		const struct swc_phase *p = k ? s->args.up : s->args.down;

		if (p && p->splitting.direct.nlinks > links)
			links = p->splitting.direct.nlinks;
	}
	load = calloc(links, sizeof(*load));
	if (!load)
		return 0;
	for (int up = 0; up < 2; up++)
		if (up ? s->args.up : s->args.down)
			least[up] = time_of(s, up, 0, load);
	for (uint32_t n = 1; n <= most && best_slowdown > NEARLY; n++) {
		apportion_all(s, n);
		slowdown = slowdown_of(s, n, least, load);
		if (slowdown < best_slowdown - 1e-12) {
			best_slowdown = slowdown;
			best = n;
		}
	}
	apportion_all(s, best);
	free(load);
	return best;
}

/* As many as the node with the fewest ranks has; 0 if a node has too many for one pass over them. */
static uint32_t count_owners(const struct swc_topo *t)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t i = 0; t && i < t->nnodes; i++) {
		uint32_t n = swc_topo_local(t, i);

		if (n > SWC_MAX_FANIN)
			return 0;
		least = n < least ? n : least;
	}
	return t ? least : 1;
}

static void place(struct swc_schedule *s)
{
	for (uint32_t i = 0, end; i < s->nflows; i = end) {
		uint32_t at = has_shards(s->args.coll) ? root_of(&s->flow[i]) * s->shard_blocks : 0;

		end = end_of_shard(s, i);
		for (uint32_t k = i; k < end; k++) {
			s->flow[k].first = at;
			at += s->flow[k].blocks * s->args.pieces;
		}
	}
}

/* Each flow has channels of its own, if there are enough. */
static void group(struct swc_schedule *s)
{
	s->groups = s->nflows <= s->args.channels ? s->nflows : 1;
	s->parts = s->args.channels / s->groups;
	for (uint32_t i = 0; i < s->nflows; i++)
		s->flow[i].group = i % s->groups;
}

int swc_schedule_flows(struct swc_schedule *s, const struct swc_schedule_args *a)
{
	const struct swc_forest *up = a->up ? &a->up->forest : NULL;
	const struct swc_forest *down = a->down ? &a->down->forest : NULL;

	*s = (struct swc_schedule){ .args = *a, .nranks = up ? up->nranks : down->nranks };
	s->flow = calloc((up ? up->ntrees : 0u) + (down ? down->ntrees : 0u) + 1, sizeof(*s->flow));
	if (!s->flow)
		return -ENOMEM;
	if (up && down)
		both_ways(s, up, down);
	else
		one_way(s, up ? up : down, up);
	group(s);
	return 0;
}

uint32_t swc_schedule_channels(const struct swc_schedule_args *a, uint32_t usual)
{
	struct swc_schedule s;
	uint32_t n;

	if (swc_schedule_flows(&s, a))
		return usual;
	n = s.nflows;
	swc_schedule_free(&s);
	return n > FEW_FLOWS ? usual : n > usual ? n : usual / n * n;
}

int swc_schedule_make(struct swc_schedule *s, const struct swc_schedule_args *a, char *why,
		      size_t why_bytes)
{
	uint32_t shards, most, n, deepest = 0;

	if (swc_schedule_flows(s, a))
		return -ENOMEM;
	s->owners = count_owners(a->topo);
	if (!s->owners) {
		swc_schedule_free(s);
		return swc_text_refuse(why, why_bytes, "a node may have up to %u ranks",
				       SWC_MAX_FANIN);
	}
	shards = has_shards(a->coll) ? s->nranks : s->owners;
	most = SWC_PLAN_MAX_BLOCKS / shards / a->pieces;
	if (!most) {
		swc_schedule_free(s);
		return swc_text_refuse(why, why_bytes, "%u segments are too many: take fewer",
				       a->pieces);
	}
	n = find_blocks(s, most < MOST_BLOCKS ? most : MOST_BLOCKS);
	if (!n) {
		swc_schedule_free(s);
		return -ENOMEM;
	}
	s->shard_blocks = n * a->pieces;
	place(s);
	for (uint32_t i = 0; i < s->nflows; i++) {
		uint32_t d = depth_of(s->flow[i].up) + depth_of(s->flow[i].down);

		deepest = d > deepest ? d : deepest;
	}
	s->steps = (a->pieces + s->parts - 1) / s->parts - 1 + deepest;
	return 0;
}

void swc_schedule_free(struct swc_schedule *s)
{
	free(s->flow);
	s->flow = NULL;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Trees of topologies. With equal roots, trees are shallower. So an allreduce is by any roots only where
 * that is clearly faster: on meshes, and where some links are slow.
 */
#include "plan/forest/trees.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/forest/roots.h"
#include "plan/forest/simplex.h"
#include "plan/text.h"

#define DEFAULT_GBPS 400
#define ANY_GAIN 1.15
/*
 * With fewer channels links carry fewer messages, with more of them more CPUs add. For many trees: few have
 * one each.
 */
#define FEW_CHANNELS 2
#define MANY_CHANNELS 4
#define MANY_PIECES 256
/* Of a rank's plan, about. */
#define PLAN_BYTES (2.0 * (1 << 20))
/* Of a message, on average: headers are less than a tenth of so many. */
#define LEAST_MESSAGE 1024.0

static double step_of(const struct swc_network *net)
{
	return fmax(net->step_ns + net->hop_ns, 1);
}

/* Gbit/s of a unit of capacity */
static double rate_of(double unit, const struct swc_network *net)
{
	return unit > 0 ? unit : net->gbps > 0 ? net->gbps : DEFAULT_GBPS;
}

/* Of units of capacity: what leaves a node, what enters it, and all links. */
struct sums {
	double least_out, least_in, all;
};

static int add_up(struct sums *s, const struct swc_graph *g)
{
	double *out = calloc(2ull * g->nnodes, sizeof(*out)), *in = out ? out + g->nnodes : NULL;

	if (!out)
		return -ENOMEM;
	*s = (struct sums){ .least_out = INFINITY, .least_in = INFINITY };
	for (uint32_t i = 0; i < g->nlinks; i++) {
		double c = (double)g->link[i].capacity;

		out[g->link[i].from] += c;
		in[g->link[i].to] += c;
		/* Through a switch a message takes two links. */
		s->all += g->link[i].from < g->nranks ? c : 0;
	}
	for (uint32_t r = 0; r < g->nranks; r++) {
		s->least_out = fmin(s->least_out, out[r]);
		s->least_in = fmin(s->least_in, in[r]);
	}
	free(out);
	return 0;
}

/* Of the vector, over a unit of capacity. */
static double least_time(const struct swc_graph *g, enum swc_coll coll)
{
	double n = g->nranks, others = n - 1;
	struct sums s;

	if (add_up(&s, g))
		return 0;
	switch (coll) {
	case SWC_ALLREDUCE:
		/* Each part of the vector enters and leaves each node, and takes n - 1 links up, and down. */
		return fmax(1 / fmin(s.least_in, s.least_out), 2 * others / s.all);
	case SWC_ALLGATHER:
		return fmax(others / n / s.least_in, others / s.all);
	case SWC_REDUCE_SCATTER:
		return fmax(others / n / s.least_out, others / s.all);
	default:
		return 1 / (coll == SWC_BROADCAST ? s.least_in : s.least_out);
	}
}

/* ---- finding them ---- */

/* The trees of the other phase turned round, if the network is the same both ways. */
static int add_phase(struct swc_trees *t, bool up, const struct swc_graph *g,
		     struct swc_fraction slots, const int64_t *weight)
{
	int ret = t->has[!up] && swc_graph_symmetric(g)
			  ? swc_phase_mirror(&t->phase[up], &t->phase[!up])
			  : swc_phase_make(&t->phase[up], g, up, slots, weight, NULL, NULL);

	t->has[up] = !ret;
	return ret;
}

/* As many trees from each rank. */
static int add_equal(struct swc_trees *t, bool up, const struct swc_graph *g,
		     const struct swc_bound *bound)
{
	int64_t *weight = calloc(g->nranks, sizeof(*weight));
	int ret;

	if (!weight)
		return -ENOMEM;
	for (uint32_t r = 0; r < g->nranks; r++)
		weight[r] = bound->k;
	ret = add_phase(t, up, g, bound->slots, weight);
	free(weight);
	return ret;
}

/* @equal: time with equal roots. -EAGAIN: these are nearly as fast. */
static int find_any(struct swc_trees *t, const struct swc_graph *g, double equal)
{
	struct swc_lp *lp = swc_simplex_new();
	struct swc_roots r = { 0 };
	int ret = lp ? swc_roots_find(&r, g, lp, NULL, NULL) : -ENOMEM;

	swc_simplex_free(lp);
	if (ret)
		return ret;
	if (equal * r.rate < ANY_GAIN) {
		swc_roots_free(&r);
		return -EAGAIN;
	}
	t->time = 1 / r.rate;
	ret = swc_phase_make_slots(&t->phase[0], &r.down, false, r.weight, NULL, NULL);
	t->has[0] = !ret;
	if (!ret)
		ret = r.mirrored ? swc_phase_mirror(&t->phase[1], &t->phase[0])
				 : swc_phase_make_slots(&t->phase[1], &r.up, true, r.weight, NULL,
							NULL);
	t->has[1] = !ret;
	swc_roots_free(&r);
	return ret;
}

/* Of phases down and up: by equal roots, or for an allreduce by any. */
static int find_unrooted(struct swc_trees *t, const struct swc_graph *g,
			 const struct swc_graph *reverse)
{
	struct swc_bound bound[2] = { 0 };
	bool wanted[2] = { t->coll != SWC_REDUCE_SCATTER, t->coll != SWC_ALLGATHER };
	double equal = 0;
	int ret = 0;

	for (int up = 0; up < 2 && !ret; up++) {
		if (!wanted[up])
			continue;
		ret = swc_bound_find(&bound[up], up ? reverse : g);
		if (!ret)
			equal += (double)bound[up].inv_x.p / (double)bound[up].inv_x.q / g->nranks;
	}
	t->time = equal;
	/* The program is solved where it can be worth it. */
	if (!ret)
		ret = t->coll == SWC_ALLREDUCE && equal > ANY_GAIN * least_time(g, t->coll)
			      ? find_any(t, g, equal)
			      : -EAGAIN;
	if (ret == -EAGAIN) {
		ret = 0;
		for (int up = 0; up < 2 && !ret; up++)
			ret = wanted[up] ? add_equal(t, up, g, &bound[up]) : 0;
	}
	swc_bound_free(&bound[0]);
	swc_bound_free(&bound[1]);
	return ret;
}

static int find_rooted(struct swc_trees *t, const struct swc_graph *g,
		       const struct swc_graph *reverse)
{
	bool up = t->coll == SWC_REDUCE;
	int64_t *weight = calloc(g->nranks, sizeof(*weight)), rate = 0, d;
	int ret = weight ? swc_bound_broadcast(up ? reverse : g, t->root, &rate) : -ENOMEM;

	d = rate;
	for (uint32_t i = 0; i < g->nlinks; i++)
		d = swc_gcd(d, g->link[i].capacity);
	if (!ret) {
		weight[t->root] = rate / d;
		t->time = 1 / (double)rate;
		ret = add_phase(t, up, g, swc_fraction_of(1, d), weight);
	}
	free(weight);
	return ret;
}

int swc_trees_find(struct swc_trees *t, const struct swc_topo *topo, enum swc_coll coll,
		   uint32_t root, char *why, size_t why_bytes)
{
	struct swc_graph_use use = { coll, root };
	struct swc_graph reverse;
	int ret;

	*t = (struct swc_trees){ .coll = coll, .root = root };
	ret = swc_graph_of_topo(&t->g, topo, &use, &t->unit, why, why_bytes);
	if (ret)
		return ret;
	ret = swc_graph_reverse(&reverse, &t->g);
	if (!ret) {
		ret = swc_coll_has_root(coll) ? find_rooted(t, &t->g, &reverse)
					      : find_unrooted(t, &t->g, &reverse);
		swc_graph_free(&reverse);
	}
	if (ret == -EINVAL || ret == -EIO)
		ret = swc_text_refuse(why, why_bytes,
				      "no trees were found: choose another algorithm");
	if (ret)
		swc_trees_free(t);
	return ret;
}

void swc_trees_free(struct swc_trees *t)
{
	for (int i = 0; i < 2; i++) {
		swc_phase_free(&t->phase[i]);
		t->has[i] = false;
	}
	swc_graph_free(&t->g);
}

/* ---- bounds ---- */

/* Links from the middle to the farthest node. */
static double radius(const struct swc_topo *t)
{
	uint32_t r = 0;

	for (uint32_t i = 0; i < t->ndims; i++)
		r += t->dim[i] / 2;
	return t->kind == SWC_TOPO_SWITCH ? 1 : r;
}

double swc_trees_least(const struct swc_topo *topo, enum swc_coll coll, double bytes,
		       const struct swc_network *net)
{
	double unit, depth = radius(topo) * (coll == SWC_ALLREDUCE ? 2 : 1), time;
	struct swc_graph_use use = { coll, 0 };
	struct swc_graph g;

	if (swc_graph_of_topo(&g, topo, &use, &unit, NULL, 0))
		return 0;
	time = least_time(&g, coll) * bytes * 8 / rate_of(unit, net);
	swc_graph_free(&g);
	return time + depth * step_of(net);
}

/* ---- costs ---- */

static double depth_of(const struct swc_trees *t)
{
	return swc_schedule_depth(t->has[1] ? &t->phase[1] : NULL, t->has[0] ? &t->phase[0] : NULL);
}

/* ns of all bytes */
static double bytes_time(const struct swc_trees *t, double bytes, const struct swc_network *net)
{
	return t->time * bytes * 8 / rate_of(t->unit, net);
}

/* What the busiest node adds to its own, as a share of the vector. */
static double most_reduced(const struct swc_trees *t)
{
	const struct swc_forest *f = &t->phase[1].forest;
	double *sum = t->has[1] ? calloc(f->nranks, sizeof(*sum)) : NULL, all = 0, most = 0;

	if (!sum)
		return 0;
	for (uint32_t k = 0; k < f->ntrees; k++) {
		all += (double)f->tree[k].weight;
		for (uint32_t i = 1; i < f->nranks; i++)
			sum[f->tree[k].parent[f->tree[k].order[i]]] += (double)f->tree[k].weight;
	}
	for (uint32_t r = 0; r < f->nranks; r++)
		most = fmax(most, sum[r] / all);
	free(sum);
	return most;
}

/* @usual: channels for many trees */
static struct swc_schedule_args args_for(const struct swc_trees *t, uint32_t pieces, uint32_t usual)
{
	struct swc_schedule_args args = { .coll = t->coll,
					  .root = t->root,
					  .down = t->has[0] ? &t->phase[0] : NULL,
					  .up = t->has[1] ? &t->phase[1] : NULL,
					  .pieces = pieces,
					  .channels = usual };

	args.channels = swc_schedule_channels(&args, usual);
	if (args.channels > pieces)
		args.channels = pieces;
	return args;
}

static struct swc_schedule_args args_of(const struct swc_trees *t, uint32_t pieces)
{
	return args_for(t, pieces, pieces < MANY_PIECES ? FEW_CHANNELS : MANY_CHANNELS);
}

/* As in struct swc_schedule. */
struct channels {
	uint32_t groups, parts;
};

static struct channels channels_of(const struct swc_schedule_args *args)
{
	struct channels c = { 1, args->channels };
	struct swc_schedule s;

	if (swc_schedule_flows(&s, args))
		return c;
	c = (struct channels){ s.groups, s.parts };
	swc_schedule_free(&s);
	return c;
}

/* Segments whose messages are large enough. A message has what all trees of a group send over a link. */
static double most_pieces(const struct swc_trees *t, double bytes, uint32_t groups)
{
	double messages = 0, shares = 0;

	for (int i = 0; i < 2; i++) {
		const struct swc_phase *p = &t->phase[i];

		if (!t->has[i])
			continue;
		messages = fmax(messages, p->splitting.direct.nlinks);
		shares += p->forest.nranks - 1;
	}
	return bytes * shares / messages / groups / LEAST_MESSAGE;
}

/* As many as take least time: N + D - 1 steps of a channel, each of which costs a + T / N. */
static uint32_t pieces_of(const struct swc_trees *t, const struct swc_topo *topo, double bytes,
			  uint32_t usual, const struct swc_network *net)
{
	struct swc_schedule_args args = args_for(t, SWC_FOREST_MOST_PIECES, usual);
	struct channels c = channels_of(&args);
	double n = sqrt((depth_of(t) - 1) * bytes_time(t, bytes, net) / step_of(net)) * c.parts;
	double trees = 0, most;

	/* In each tree a rank receives once and sends about once; pairs of trees are a few more. */
	for (int i = 0; i < 2; i++)
		trees += t->has[i] ? t->phase[i].forest.ntrees : 0;
	most = fmin(SWC_FOREST_MOST_PIECES, PLAN_BYTES / sizeof(struct swc_plan_xfer) / 4 / trees);
	most = fmin(most, most_pieces(t, bytes, c.groups));
	if (topo->nlocal != 1)
		most = fmin(most, SWC_PLAN_MAX_BLOCKS / topo->nranks);
	return (uint32_t)fmax(args.channels, fmin(round(n), most));
}

uint32_t swc_trees_pieces(const struct swc_trees *t, const struct swc_topo *topo, double bytes,
			  const struct swc_network *net)
{
	uint32_t few = pieces_of(t, topo, bytes, FEW_CHANNELS, net);
	uint32_t many = pieces_of(t, topo, bytes, MANY_CHANNELS, net);

	if (many < MANY_PIECES)
		return few;
	few = few < MANY_PIECES ? few : MANY_PIECES - 1;
	return swc_trees_time(t, bytes, many, net) < swc_trees_time(t, bytes, few, net) ? many
											: few;
}

/**
 * struct loads - what links carry, by when a segment crosses them
 * @n, @depth: links, and steps from the first that a segment crosses to the last
 * @sum: by link, then step: of a segment up to that step, as shares of the vector over the capacity
 */
struct loads {
	const struct swc_graph *g;
	uint32_t n, depth;
	double *sum;
};

static void add_load(struct loads *l, uint32_t link, uint32_t step, double share)
{
	l->sum[(size_t)link * l->depth + step] += share / (double)l->g->link[link].capacity;
}

/* A segment from one node to the next: over their link, or through the switch, which is the last node. */
static void add_edge(struct loads *l, uint32_t from, uint32_t to, uint32_t step, double share)
{
	uint32_t hub = l->g->nnodes - 1;

	if (l->g->nnodes == l->g->nranks) {
		add_load(l, swc_graph_find(l->g, from, to), step, share);
		return;
	}
	add_load(l, swc_graph_find(l->g, from, hub), step, share);
	add_load(l, swc_graph_find(l->g, hub, to), step, share);
}

/* @depth_in: room for the depth of each rank. */
static void add_tree(struct loads *l, const struct swc_tree *t, uint32_t nranks, bool up,
		     uint32_t after, double share, uint32_t *depth_in)
{
	depth_in[t->root] = 0;
	for (uint32_t i = 1; i < nranks; i++) {
		uint32_t v = t->order[i], u = t->parent[v];

		depth_in[v] = depth_in[u] + 1;
		if (up)
			add_edge(l, v, u, t->depth - depth_in[v], share);
		else
			add_edge(l, u, v, after + depth_in[u], share);
	}
}

static bool add_flows(struct loads *l, const struct swc_schedule *s)
{
	bool shards = s->args.coll == SWC_ALLGATHER || s->args.coll == SWC_REDUCE_SCATTER;
	uint32_t *depth_in = calloc(s->nranks, sizeof(*depth_in));

	for (uint32_t i = 0; depth_in && i < s->nflows; i++) {
		const struct swc_flow_tree *f = &s->flow[i];
		double share = f->share / (shards ? s->nranks : 1);

		if (f->up)
			add_tree(l, f->up, s->nranks, true, 0, share, depth_in);
		if (f->down)
			add_tree(l, f->down, s->nranks, false, f->up ? f->up->depth : 0, share,
				 depth_in);
	}
	for (uint32_t i = 0; i < l->n; i++)
		for (uint32_t k = 1; k < l->depth; k++)
			l->sum[(size_t)i * l->depth + k] += l->sum[(size_t)i * l->depth + k - 1];
	free(depth_in);
	return depth_in;
}

/* The largest load of a step in which segments are from @first to @last steps behind their beginning. */
static double peak(const struct loads *l, uint32_t first, uint32_t last)
{
	double most = 0;

	for (uint32_t i = 0; i < l->n; i++) {
		const double *sum = l->sum + (size_t)i * l->depth;

		most = fmax(most, sum[last] - (first ? sum[first - 1] : 0));
	}
	return most;
}

/* The sum over all steps of N segments; while all trees are full, steps are alike. */
static double sum_of_steps(const struct loads *l, double segments)
{
	uint32_t n = (uint32_t)ceil(segments), least = n < l->depth ? n : l->depth;
	double sum = 0;

	for (uint32_t s = 0; s + 1 < n + l->depth; s++) {
		uint32_t first = s + 1 > n ? s + 1 - n : 0, last = s < l->depth ? s : l->depth - 1;

		if (s + 1 == least && n > l->depth) {
			sum += (n - l->depth + 1) * peak(l, 0, l->depth - 1);
			s += n - l->depth;
		} else {
			sum += peak(l, first, last);
		}
	}
	return sum / segments;
}

static double loads_of_steps(const struct swc_trees *t, uint32_t pieces, double segments)
{
	struct swc_schedule_args args = args_of(t, pieces);
	struct loads l = { .g = &t->g, .n = t->g.nlinks, .depth = (uint32_t)depth_of(t) };
	struct swc_schedule s;
	double sum = INFINITY;

	if (swc_schedule_flows(&s, &args))
		return sum;
	l.sum = calloc((size_t)l.n * l.depth, sizeof(*l.sum));
	if (l.sum && add_flows(&l, &s))
		sum = sum_of_steps(&l, segments);
	free(l.sum);
	swc_schedule_free(&s);
	return sum;
}

double swc_trees_time(const struct swc_trees *t, double bytes, uint32_t pieces,
		      const struct swc_network *net)
{
	struct swc_schedule_args args = args_of(t, pieces);
	struct channels c = channels_of(&args);
	double segments = (double)pieces / c.parts, reduce = 0;
	double steps = ceil(segments) - 1 + depth_of(t);

	if (net->reduce_gbps > 0)
		reduce = most_reduced(t) * bytes * 8 / net->reduce_gbps / (c.groups * c.parts);
	return steps * step_of(net) + reduce +
	       loads_of_steps(t, pieces, segments) * bytes * 8 / rate_of(t->unit, net);
}

uint32_t swc_trees_connections(const struct swc_trees *t, uint32_t pieces)
{
	uint32_t n = t->phase[t->has[1]].forest.nranks, most = 0;
	bool *pair = calloc((size_t)n * n, sizeof(*pair));

	for (int i = 0; i < 2 && pair; i++)
		for (uint32_t k = 0; t->has[i] && k < t->phase[i].forest.ntrees; k++)
			for (uint32_t v = 0; v < n; v++) {
				uint32_t u = t->phase[i].forest.tree[k].parent[v];

				pair[u * n + v] = pair[v * n + u] = true;
			}
	for (uint32_t v = 0; v < n && pair; v++) {
		uint32_t peers = 0;

		for (uint32_t u = 0; u < n; u++)
			peers += u != v && pair[v * n + u];
		most = peers > most ? peers : most;
	}
	free(pair);
	return most * args_of(t, pieces).channels;
}

int swc_trees_schedule(const struct swc_trees *t, const struct swc_topo *topo, uint32_t pieces,
		       struct swc_schedule *s, char *why, size_t why_bytes)
{
	struct swc_schedule_args args = args_of(t, pieces);

	args.topo = topo;
	return swc_schedule_make(s, &args, why, why_bytes);
}

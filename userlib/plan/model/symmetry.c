// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The load of links by symmetry. What a rank of a line (the ranks along one dimension) sends along
 * it is one of these:
 *
 * shift: every rank sends over the same offset. A link carries as many messages as one is long.
 * swing: ranks with an even coordinate send over an offset, those with an odd one over its
 *	opposite. A link carries half of them, rounded up or down by its own parity.
 * xor: ranks whose bit k is 0 send 2^k up, the others down (or the reverse, mirrored). Along the
 *	links the load grows from 0 to 2^k and falls again, with period 2^(k+1).
 * lines: what a rank sends along a dimension depends on its coordinate there. The plans of the
 *	ranks on the axes of the torus give the load of one line of each dimension.
 *
 * The first three need the plan of one rank only. Their loads are kept as terms, and added up at the
 * links where one of them has its maximum. On a switch, and where a message goes half the way round
 * (all those of a channel go the same way), all are shifts.
 *
 * A mesh has the peers of a torus, but messages that went round the end go back along the line. A shift
 * by h of d then loads a link with up to min(h, d - h) messages either way, all shifts most in the
 * middle. What else there is, is counted at the links where that may be.
 *
 * ring: in every step of a channel each rank sends a block to the same peer. The plan of one rank tells
 * the steps, and whether there are plans at all: of a million ranks they are too long. Then the routes of
 * one step are counted, for all ranks.
 *
 * odd: Swing where a side is odd. The last coordinate of such a side exchanges with all others, each
 * of which does that in one step; apart from it they do as in swing. So rank 0 shows the mean load of
 * a line, both ways alike. The last rank, which is last in all dimensions, shows what else there is
 * beside the last coordinate: half of what it sends in a step is added. (Steps in which the others
 * exchange with it are not the same for all of them: in steps with many such the rest is less.) From
 * 0.9 to 1.05 of the load by all plans on tori of one and two dimensions, 0.7 on cubes.
 *
 * sample: the plans of some ranks. The load of a link is at least their mean, and at least what one of
 * them sends or receives there; hops are at least their largest. These are estimates: lower bounds where
 * all ranks take their steps together. The root, if there is one, stands for itself only. In butterflies
 * that are folded, the ranks around one do the same as in xor or swing. Of the double tree, ranks of each
 * height are visited: evenly spaced ones would miss those near the top, whose messages have the longest way.
 */
#include "plan/model/symmetry.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/algo/tree.h"
#include "plan/table.h"
#include "kmod/core/plan_check.h"

#define SAMPLE 8
/* Plans of trees are small, and those of their inner members differ much. */
#define SAMPLE_OF_TREE 128
/* Ranks, or those of a line for a Bine tree, of which a plan takes long: then a quarter of the sample. */
#define MANY_RANKS (1u << 18)

/**
 * struct swc_term - what one message of one rank stands for
 * @next: of the same step, plus one; 0: none
 * @up: it goes up; which ranks do the same, and which the opposite, the kind says
 * @hops: its length; on a mesh, that on a torus
 * @longest: the longest route of all ranks' messages
 * @base: xor: coordinates count from here; on a switch, the rail
 */
struct swc_term {
	uint32_t next;
	uint8_t dim;
	bool up;
	enum swc_symmetry kind;
	uint32_t hops, longest, base;
	double blocks;
};

/* What the latest rank of a sample puts on one of its own links, by node and one more. */
struct swc_symmetric_end {
	uint32_t node;
	float blocks;
};

/* A route, kept for the next messages: many have one of the latest. */
struct swc_symmetric_route {
	uint32_t path, from, to, n;
	struct swc_topo_leg leg[SWC_TOPO_DIMS];
};

static bool is_tree(const struct swc_plan_args *a)
{
	return a->algo == SWC_ALGO_TREE || a->algo == SWC_ALGO_DTREE ||
	       (a->algo == SWC_ALGO_BINE && swc_coll_has_root(a->coll));
}

/* Does a plan of a sample take milliseconds, or up to half a second, to build? */
static bool takes_long(const struct swc_plan_args *a, const struct swc_topo *topo)
{
	if (is_tree(a) && a->algo != SWC_ALGO_BINE)
		return false;
	for (uint32_t i = 0; i < topo->ndims; i++)
		if (is_tree(a) && topo->dim[i] > MANY_RANKS)
			return true;
	return !is_tree(a) && topo->nranks > MANY_RANKS;
}

/* Is it a double tree of ranks? Then some of each height stand for the others. */
static bool has_heights(const struct swc_plan_args *a, const struct swc_topo *topo)
{
	return a->algo == SWC_ALGO_DTREE && !a->given &&
	       (a->coll != SWC_ALLREDUCE || topo->nnodes == topo->nranks);
}

void swc_symmetric_begin(struct swc_symmetric *s, const struct swc_plan_args *args,
			 const struct swc_topo *topo, enum swc_symmetry kind, uint32_t most_ranks)
{
	uint32_t stride = 1, axes = 1, visits;

	*s = (struct swc_symmetric){ .kind = kind, .topo = topo, .root = args->root };
	for (uint32_t i = topo->ndims; i-- > 0; stride *= topo->dim[i]) {
		s->stride[i] = stride;
		axes += topo->dim[i] - 1;
	}
	for (uint32_t i = 0; i < topo->ndims; i++)
		s->line_at[i + 1] = s->line_at[i] + topo->dim[i];
	/* The lines of all rails would have to be told apart. */
	if (s->kind == SWC_SYMMETRY_LINES && topo->rails > 1)
		s->kind = SWC_SYMMETRY_NONE;
	visits = s->kind == SWC_SYMMETRY_NONE	 ? topo->nranks
		 : s->kind == SWC_SYMMETRY_LINES ? axes
						 : 1;
	if (visits > most_ranks && args->algo == SWC_ALGO_SWING_B && topo->nlocal == 1 &&
	    topo->kind == SWC_TOPO_TORUS) {
		s->kind = SWC_SYMMETRY_ODD;
		visits = 2;
	} else if (visits > most_ranks) {
		s->kind = SWC_SYMMETRY_SAMPLE;
		visits = is_tree(args) ? SAMPLE_OF_TREE : SAMPLE;
		visits /= takes_long(args, topo) ? 4 : 1;
		visits = visits < topo->nranks ? visits : topo->nranks;
		s->rooted = swc_coll_has_root(args->coll);
		s->pattern = topo->kind == SWC_TOPO_SWITCH ? SWC_SYMMETRY_NONE
							   : swc_algo_pattern(args);
		s->by_height = has_heights(args, topo) ? args : NULL;
		visits = s->by_height ? swc_dtree_sample_size(args) : visits;
	}
	s->nvisits = visits;
}

bool swc_symmetric_estimates(const struct swc_symmetric *s)
{
	return s->kind == SWC_SYMMETRY_SAMPLE || s->kind == SWC_SYMMETRY_ODD;
}

/* How many ranks one of a sample stands for. */
static double alike_of(const struct swc_symmetric *s, uint32_t rank)
{
	if (!s->rooted || s->nvisits == 1)
		return (double)s->topo->nranks / s->nvisits;
	return rank == s->root ? 1 : (s->topo->nranks - 1.0) / (s->nvisits - 1.0);
}

uint32_t swc_symmetric_visit(struct swc_symmetric *s, uint32_t visit)
{
	uint32_t rank = swc_symmetric_rank(s, visit);

	s->alike = alike_of(s, rank);
	if (s->by_height)
		swc_dtree_sample(s->by_height, visit, &s->alike);
	return rank;
}

uint32_t swc_symmetric_rank(const struct swc_symmetric *s, uint32_t visit)
{
	uint32_t n = s->topo->nranks;
	double alike;

	if (s->by_height)
		return swc_dtree_sample(s->by_height, visit, &alike);
	if (s->kind == SWC_SYMMETRY_SAMPLE && s->nvisits > 1)
		return (uint32_t)((s->root + (uint64_t)visit * (n - 1) / (s->nvisits - 1)) % n);
	if (s->kind == SWC_SYMMETRY_ODD && visit)
		return n - 1;
	if (s->kind != SWC_SYMMETRY_LINES)
		return visit;
	for (uint32_t i = 0; visit && i < s->topo->ndims; i++) {
		if (visit < s->topo->dim[i])
			return visit * s->stride[i];
		visit -= s->topo->dim[i] - 1;
	}
	return 0;
}

uint32_t swc_symmetric_axis(const struct swc_symmetric *s, uint32_t rank)
{
	uint32_t i = 0;

	while (i + 1 < s->topo->ndims && rank < s->stride[i])
		i++;
	return i;
}

/* Is a rank on this axis? That is one along which the highest of its coordinates that are not 0 may be. */
static bool is_on_axis(const struct swc_symmetric *s, uint32_t axis, uint32_t rank)
{
	return rank < s->stride[axis] * s->topo->dim[axis] && !(rank % s->stride[axis]);
}

bool swc_symmetric_visited(const struct swc_symmetric *s, uint32_t rank)
{
	if (s->kind != SWC_SYMMETRY_LINES)
		return s->kind == SWC_SYMMETRY_NONE;
	return is_on_axis(s, swc_symmetric_axis(s, rank), rank);
}

void swc_symmetric_free(struct swc_symmetric *s)
{
	free(s->head);
	free(s->term);
	free(s->line);
	free(s->mean);
	free(s->single);
	free(s->route);
	s->head = NULL;
	s->route = NULL;
	s->term = NULL;
	free(s->end);
	s->mean = s->single = NULL;
	s->line = NULL;
	s->end = NULL;
	s->nterms = s->room = 0;
}

int swc_symmetric_open(struct swc_symmetric *s, const struct swc_plan_args *args, uint32_t nsteps)
{
	size_t n = nsteps ? nsteps : 1, links = 2 * (size_t)s->line_at[s->topo->ndims];

	swc_symmetric_free(s);
	if (s->kind == SWC_SYMMETRY_RING && !s->ring_hops && !swc_symmetric_count_ring(s, args))
		return -ENOMEM;
	s->nsteps = nsteps;
	s->head = calloc(n, sizeof(*s->head));
	if (s->kind == SWC_SYMMETRY_LINES)
		s->line = calloc(n * links, sizeof(*s->line));
	s->mean = calloc(n * 2 * s->topo->ndims, sizeof(*s->mean));
	s->single = calloc(n, sizeof(*s->single));
	s->route = calloc(SWC_TOPO_PAIRS, sizeof(*s->route));
	s->nends = 2 * (s->topo->kind == SWC_TOPO_SWITCH ? swc_topo_rails(s->topo)
							 : 2 * s->topo->ndims);
	if (s->kind == SWC_SYMMETRY_SAMPLE)
		s->end = calloc(n * s->nends, sizeof(*s->end));
	return s->head && s->mean && s->single && s->route &&
			       (s->line || s->kind != SWC_SYMMETRY_LINES) &&
			       (s->end || s->kind != SWC_SYMMETRY_SAMPLE)
		       ? 0
		       : -ENOMEM;
}

/* ---- adding ---- */

double *swc_symmetric_lines(struct swc_symmetric *s, uint32_t step)
{
	return s->line + (size_t)step * 2 * s->line_at[s->topo->ndims];
}

/* Coordinates of one parity, 0 or 1, from 0 to x; x may be -1 or more. */
static int64_t count_parity(int64_t x, uint32_t parity)
{
	return x < (int64_t)parity ? 0 : (x - parity) / 2 + 1;
}

/* Of the numbers below @end, how many are in an odd (or even) one of the ranges of @h. */
static uint64_t count_ranges(uint64_t end, uint64_t h, bool odd)
{
	uint64_t rest = end % (2 * h), from = odd ? h : 0;

	rest = rest < from ? 0 : rest - from;
	return end / (2 * h) * h + (rest < h ? rest : h);
}

/* How many of the messages of coordinates @first to @last, which may be none, go up, or down. */
static uint32_t count_way(const struct swc_term *t, uint32_t d, int64_t first, int64_t last,
			  bool up)
{
	uint64_t shift = d - t->base;
	bool like_zero = up == t->up, odd;

	if (first > last)
		return 0;
	switch (t->kind) {
	case SWC_SYMMETRY_SWING:
		return (uint32_t)(count_parity(last, !like_zero) -
				  count_parity(first - 1, !like_zero));
	case SWC_SYMMETRY_XOR:
		odd = (shift / t->hops % 2 != 0) == like_zero;
		return (uint32_t)(count_ranges((uint64_t)last + 1 + shift, t->hops, odd) -
				  count_ranges((uint64_t)first + shift, t->hops, odd));
	default:
		return like_zero ? (uint32_t)(last - first + 1) : 0;
	}
}

/* The longest route of a term on a mesh: that of messages that go back along the line, if there are any. */
static uint32_t longest_on_mesh(const struct swc_term *t, uint32_t d)
{
	uint32_t wrapped = count_way(t, d, (int64_t)d - t->hops, (int64_t)d - 1, true) +
			   count_way(t, d, 0, (int64_t)t->hops - 1, false);

	return wrapped ? d - t->hops : t->hops;
}

/* Add to a term of the step that is alike, if there is one: a message may consist of many ranges. */
static int add_term(struct swc_symmetric *s, uint32_t step, struct swc_term *t)
{
	for (uint32_t i = s->head[step]; i; i = s->term[i - 1].next) {
		struct swc_term *old = &s->term[i - 1];

		if (old->dim == t->dim && old->up == t->up && old->kind == t->kind &&
		    old->hops == t->hops && old->base == t->base) {
			old->blocks += t->blocks;
			t->longest = old->longest;
			return 0;
		}
	}
	if (s->topo->kind == SWC_TOPO_MESH)
		t->longest = longest_on_mesh(t, s->topo->dim[t->dim]);
	if (!swc_table_reserve(&s->term, s->nterms, &s->room, sizeof(*s->term)))
		return -ENOMEM;
	s->term[s->nterms] = *t;
	s->term[s->nterms].next = s->head[step];
	s->head[step] = ++s->nterms;
	return 0;
}

/*
 * The links of the axis that a message crosses; others have their like there. Kept is by how much each
 * link has more than the one below it, as messages may cross thousands.
 */
static void add_line(struct swc_symmetric *s, uint32_t step, uint32_t from,
		     const struct swc_term *t)
{
	uint32_t d = s->topo->dim[t->dim], x = from / s->stride[t->dim] % d;
	uint32_t begin = t->up ? x : (x + d + 1 - t->hops) % d, end = begin + t->hops;
	double *line = swc_symmetric_lines(s, step) + 2 * s->line_at[t->dim] + !t->up;

	if (from != x * s->stride[t->dim])
		return;
	line[2 * begin] += t->blocks;
	if (end > d)
		line[0] += t->blocks;
	if (end != d)
		line[2 * (end % d)] -= t->blocks;
}

/* Of the last rank, only what begins at an odd coordinate. */
static void add_odd(struct swc_symmetric *s, uint32_t step, uint32_t from, const struct swc_term *t)
{
	float *mean = s->mean + ((size_t)step * s->topo->ndims + t->dim) * 2;

	if (from && s->topo->dim[t->dim] % 2)
		mean[!t->up] += (float)t->blocks / 2;
	for (int way = 0; !from && way < 2; way++)
		mean[way] += (float)t->blocks * (float)t->hops / 2;
}

/*
 * Add to what a node sends, or receives, on its first or last link. Ranks are visited one after the
 * other.
 */
static void add_end(struct swc_symmetric *s, uint32_t step, uint32_t link, uint32_t node,
		    double blocks)
{
	struct swc_symmetric_end *end = &s->end[(size_t)step * s->nends + link];

	if (end->node != node + 1)
		*end = (struct swc_symmetric_end){ .node = node + 1 };
	end->blocks += (float)blocks;
	if (end->blocks > s->single[step])
		s->single[step] = end->blocks;
}

/*
 * How many messages of its like one of a sample meets on a link: where a side does not suit a butterfly,
 * most ranks still do as their neighbours, as in XOR or SWING.
 */
static double crowd_of(const struct swc_symmetric *s, uint32_t hops)
{
	return s->pattern == SWC_SYMMETRY_XOR	  ? hops
	       : s->pattern == SWC_SYMMETRY_SWING ? (hops + 1) / 2
						  : 1;
}

/*
 * How many times the mean of a step the most loaded link has. In a double tree, the messages of a height cross a
 * quarter of the links of a line one way, and those of the next height others. Where long messages go along another
 * dimension than short ones, they meet more often. With these figures, which were found by comparing, loads are
 * from 0.85 to 1.2 of those by all plans on tori of 30000 ranks and more. On a mesh, shifts load the middle most.
 */
static double above_mean(const struct swc_symmetric *s, const struct swc_term *t)
{
	uint32_t d = s->topo->dim[t->dim];

	if (s->topo->kind == SWC_TOPO_SWITCH)
		return 1;
	if (s->topo->kind == SWC_TOPO_MESH && s->pattern == SWC_SYMMETRY_SHIFT)
		return (double)d / (2 * t->hops > d ? t->hops : d - t->hops);
	return !s->by_height ? 1 : s->topo->ndims > 1 ? 2.5 : 2;
}

/* A message along one dimension. */
static int add(struct swc_symmetric *s, uint32_t step, uint32_t from, struct swc_term *t)
{
	size_t at = ((size_t)step * s->topo->ndims + t->dim) * 2 + !t->up;

	if (s->kind == SWC_SYMMETRY_LINES)
		add_line(s, step, from, t);
	else if (s->kind == SWC_SYMMETRY_ODD)
		add_odd(s, step, from, t);
	else if (s->kind == SWC_SYMMETRY_SAMPLE)
		s->mean[at] += (float)(t->blocks * t->hops * s->alike * above_mean(s, t) /
				       s->topo->nnodes / swc_topo_rails(s->topo));
	else
		return add_term(s, step, t);
	return 0;
}

/* On a switch a message loads a link in and a link out. */
static int add_switched(struct swc_symmetric *s, uint32_t step, uint32_t path, uint32_t from,
			uint32_t to, uint64_t blocks)
{
	double *line = s->line ? s->line + (size_t)step * s->topo->nnodes * 2 : NULL;
	int ret = 0;

	if (line) {
		line[2 * from] += (double)blocks;
		line[2 * to + 1] += (double)blocks;
		return 0;
	}
	for (int up = 0; up < 2 && !ret; up++)
		ret = add(s, step, 0,
			  &(struct swc_term){ .up = up,
					      .kind = SWC_SYMMETRY_SHIFT,
					      .hops = 1,
					      .base = path % swc_topo_rails(s->topo),
					      .blocks = (double)blocks });
	return ret;
}

static const struct swc_symmetric_route *route_of(struct swc_symmetric *s, uint32_t path,
						  uint32_t from, uint32_t to)
{
	struct swc_symmetric_route *r = &s->route[swc_topo_pair(from, to)];

	if (r->n && r->path == path && r->from == from && r->to == to)
		return r;
	r->path = path;
	r->from = from;
	r->to = to;
	r->n = swc_topo_route(s->topo, path, from, to, r->leg);
	return r;
}

/* Do terms stand for the messages of all ranks of a mesh? */
static bool is_mesh_term(const struct swc_symmetric *s)
{
	return s->topo->kind == SWC_TOPO_MESH && !swc_symmetric_estimates(s) &&
	       s->kind != SWC_SYMMETRY_LINES;
}

int swc_symmetric_add(struct swc_symmetric *s, uint32_t step, uint32_t chan, uint32_t path,
		      uint32_t from, uint32_t to, uint64_t blocks, bool swap, uint32_t *hops)
{
	const struct swc_topo *t = s->topo;
	bool mirrored = swc_topo_mirrored(t, chan);
	uint32_t a = swc_topo_node_of(t, from), b = swc_topo_node_of(t, to);
	const struct swc_symmetric_route *route;
	int ret = 0;

	*hops = s->ring_hops;
	if (s->kind == SWC_SYMMETRY_RING && (float)blocks > s->single[step])
		s->single[step] = (float)blocks;
	if (s->kind == SWC_SYMMETRY_RING)
		return 0;
	if (a == b)
		return 0;
	if (t->kind == SWC_TOPO_SWITCH) {
		*hops = 1;
		if (s->end)
			add_end(s, step, path % swc_topo_rails(t), a, (double)blocks);
		return add_switched(s, step, path, a, b, blocks);
	}
	/* Along another dimension, rank 0 sends the same. */
	if (s->kind == SWC_SYMMETRY_LINES && a && !is_on_axis(s, swc_symmetric_axis(s, a), b))
		return 0;
	route = route_of(s, path, a, b);
	if (s->end)
		add_end(s, step, 2u * route->leg[0].dim + route->leg[0].down, a,
			(double)blocks * crowd_of(s, route->leg[0].hops) *
				swc_topo_slowness(t, route->leg[0].dim));
	for (uint32_t i = 0; i < route->n && !ret; i++) {
		const struct swc_topo_leg *leg = &route->leg[i];
		uint32_t dim = leg->dim, d = t->dim[dim];
		/* On a mesh, what rank 0 sends round the end. */
		bool round = is_mesh_term(s) && 2 * leg->hops > d;
		struct swc_term term = { .dim = leg->dim,
					 .kind = 2 * leg->hops == d ? SWC_SYMMETRY_SHIFT : s->kind,
					 .up = leg->down == round,
					 .hops = round ? d - leg->hops : leg->hops,
					 .longest = leg->hops,
					 .base = swap && mirrored ? d / 3 : 0,
					 .blocks = (double)blocks * swc_topo_slowness(t, dim) };

		ret = add(s, step, a, &term);
		*hops += term.longest;
	}
	return ret;
}

uint32_t swc_symmetric_receive(struct swc_symmetric *s, uint32_t step, uint32_t path, uint32_t from,
			       uint32_t to, uint64_t blocks)
{
	const struct swc_topo *t = s->topo;
	uint32_t a = swc_topo_node_of(t, from), b = swc_topo_node_of(t, to), hops = 0;
	const struct swc_symmetric_route *route;
	const struct swc_topo_leg *last;

	if (a == b)
		return 0;
	if (t->kind == SWC_TOPO_SWITCH) {
		add_end(s, step, s->nends / 2 + path % swc_topo_rails(t), b, (double)blocks);
		return 1;
	}
	route = route_of(s, path, a, b);
	last = &route->leg[route->n - 1];
	add_end(s, step, s->nends / 2 + 2u * last->dim + last->down, b,
		(double)blocks * swc_topo_slowness(t, last->dim));
	for (uint32_t i = 0; i < route->n; i++)
		hops += route->leg[i].hops;
	return hops;
}

/* ---- adding up ---- */

/* Blocks of a term on the link that leads up, or down, from coordinate x. */
static double load_at(const struct swc_term *t, uint32_t d, uint32_t x, bool up)
{
	uint64_t h = t->hops, low, at;
	bool zero_goes_up;

	switch (t->kind) {
	case SWC_SYMMETRY_SWING:
		/* Those that go this way have this parity, and begin within h behind the link. */
		low = up ? (uint64_t)x + d + 1 - h : x;
		return t->blocks * (double)(count_parity((int64_t)(low + h) - 1, up != t->up) -
					    count_parity((int64_t)low - 1, up != t->up));
	case SWC_SYMMETRY_XOR:
		/* Of 2 h coordinates the first h go up, or the others; the rest goes down. */
		at = ((uint64_t)x + d - t->base) % (2 * h);
		zero_goes_up = t->up != (((d - t->base) % (2 * h)) / h % 2);
		at += (zero_goes_up ? 0 : h) + (up ? 0 : 2 * h - 1);
		at %= 2 * h;
		return t->blocks * (double)(at < h ? at + 1 : 2 * h - 1 - at);
	default:
		return up == t->up ? t->blocks * (double)h : 0;
	}
}

/* The load of one way along a dimension at a link. */
static double sum_at(const struct swc_symmetric *s, uint32_t step, uint32_t dim, bool up,
		     uint32_t x)
{
	double sum = 0;

	for (uint32_t i = s->head[step]; i; i = s->term[i - 1].next)
		if (s->term[i - 1].dim == dim)
			sum += load_at(&s->term[i - 1], s->topo->dim[dim], x, up);
	return sum;
}

/* On a switch, the largest sum of a rail. */
static double peak_of_rails(const struct swc_symmetric *s, uint32_t step)
{
	double sum[SWC_TOPO_RAILS][2] = { 0 }, most = 0;

	for (uint32_t i = s->head[step]; i; i = s->term[i - 1].next) {
		const struct swc_term *t = &s->term[i - 1];

		sum[t->base][t->up] += t->blocks;
		most = sum[t->base][t->up] > most ? sum[t->base][t->up] : most;
	}
	return most;
}

/* The largest sum: at a link where a term has its maximum or its minimum. */
static double peak_of_terms(const struct swc_symmetric *s, uint32_t step, uint32_t dim, bool up)
{
	uint32_t d = s->topo->dim[dim], period = d > 1 ? 2 : 1;
	double most = 0, sum;

	for (uint32_t i = s->head[step]; i; i = s->term[i - 1].next) {
		const struct swc_term *t = &s->term[i - 1];

		if (t->dim == dim && t->kind == SWC_SYMMETRY_XOR && 2 * t->hops > period)
			period = 2 * t->hops;
	}
	for (uint32_t x = 0; x < 2 && x < d; x++) {
		sum = sum_at(s, step, dim, up, x);
		most = sum > most ? sum : most;
	}
	for (uint32_t i = s->head[step]; i; i = s->term[i - 1].next) {
		const struct swc_term *t = &s->term[i - 1];

		if (t->dim != dim || t->kind != SWC_SYMMETRY_XOR)
			continue;
		for (uint32_t x = 0; x < period; x += t->hops)
			for (uint32_t k = 0; k < 2; k++) {
				sum = sum_at(s, step, dim, up, (x + t->base + d - k) % d);
				most = sum > most ? sum : most;
			}
	}
	return most;
}

/*
 * On a mesh, messages of a term on the link between x and the next coordinate, one way: those that begin
 * within reach, and those that would go round the end the other way.
 */
static uint32_t count_on_mesh(const struct swc_term *t, uint32_t d, int64_t x, bool up)
{
	int64_t h = t->hops, back = (int64_t)d - h;

	if (up)
		return count_way(t, d, x < h ? 0 : x - h + 1, x < back ? x : back - 1, true) +
		       count_way(t, d, x < back ? 0 : x - back + 1, x < h ? x : h - 1, false);
	return count_way(t, d, x < h ? h : x + 1, x < back ? x + h : (int64_t)d - 1, false) +
	       count_way(t, d, x < back ? back : x + 1, x < h ? x + back : (int64_t)d - 1, true);
}

/* The larger sum of the two ways at a link; 0 if there is no such link. */
static double sum_on_mesh(const struct swc_symmetric *s, uint32_t step, uint32_t dim, int64_t x)
{
	double up = 0, down = 0;
	uint32_t d = s->topo->dim[dim];

	for (uint32_t i = s->head[step]; i && x >= 0 && x + 1 < d; i = s->term[i - 1].next) {
		const struct swc_term *t = &s->term[i - 1];

		if (t->dim != dim)
			continue;
		up += t->blocks * count_on_mesh(t, d, x, true);
		down += t->blocks * count_on_mesh(t, d, x, false);
	}
	return up > down ? up : down;
}

/* The largest sum at the links around a coordinate: odd and even ones may do different things. */
static double peak_around(const struct swc_symmetric *s, uint32_t step, uint32_t dim, int64_t x)
{
	double most = 0;

	for (int64_t k = -2; k < 2; k++)
		most = fmax(most, sum_on_mesh(s, step, dim, x + k));
	return most;
}

/*
 * The largest sum on a mesh, where shifts have theirs in the middle of the line. Further from both ends than
 * the longest messages are, loads are periodic. They grow and fall between coordinates that are multiples of
 * a term's hops away from an end, or from where its coordinates count from.
 */
static double peak_on_mesh(const struct swc_symmetric *s, uint32_t step, uint32_t dim)
{
	uint32_t d = s->topo->dim[dim], longest = 0;
	double sum = 0, most = 0;
	bool shifts = true;

	for (uint32_t i = s->head[step]; i; i = s->term[i - 1].next) {
		const struct swc_term *t = &s->term[i - 1];

		if (t->dim != dim)
			continue;
		sum += t->blocks * t->hops;
		shifts = shifts && t->kind == SWC_SYMMETRY_SHIFT;
		longest = t->hops > longest ? t->hops : longest;
	}
	if (shifts)
		return sum;
	for (uint32_t i = s->head[step]; i; i = s->term[i - 1].next) {
		const struct swc_term *t = &s->term[i - 1];
		uint32_t from = t->base % t->hops;

		for (uint32_t x = 0; t->dim == dim && x <= d && x <= 4 * longest; x += t->hops) {
			most = fmax(most, peak_around(s, step, dim, x));
			most = fmax(most, peak_around(s, step, dim, (int64_t)d - x));
			if (!from)
				continue;
			most = fmax(most, peak_around(s, step, dim, (int64_t)x + from));
			most = fmax(most, peak_around(s, step, dim, (int64_t)d - x + from));
		}
	}
	return most;
}

/* The largest sum of the links of an axis; on a switch each link is by itself. */
static double peak_of_lines(const struct swc_symmetric *s, uint32_t step)
{
	const double *line = s->line + (size_t)step * 2 * s->line_at[s->topo->ndims];
	double most = 0;

	for (uint32_t i = 0; i < s->topo->ndims; i++) {
		double sum[2] = { 0 };

		for (uint32_t k = 0; k < 2 * s->topo->dim[i]; k++, line++) {
			bool alone = s->topo->kind == SWC_TOPO_SWITCH;

			sum[k % 2] = *line + (alone ? 0 : sum[k % 2]);
			most = fmax(most, sum[k % 2]);
		}
	}
	return most;
}

double swc_symmetric_peak(const struct swc_symmetric *s, uint32_t step)
{
	uint32_t ndims = s->topo->ndims;
	double most = s->kind == SWC_SYMMETRY_SAMPLE ? (double)s->single[step]
		      : s->kind == SWC_SYMMETRY_RING ? (double)s->single[step] * s->ring_load
						     : 0;

	if (s->line)
		most = peak_of_lines(s, step);
	for (uint32_t i = 0; swc_symmetric_estimates(s) && i < 2 * ndims; i++)
		if ((double)s->mean[(size_t)step * 2 * ndims + i] > most)
			most = (double)s->mean[(size_t)step * 2 * ndims + i];
	for (uint32_t i = 0; s->head[step] && i < 2 * ndims; i++) {
		bool mesh = s->topo->kind == SWC_TOPO_MESH;
		double sum = s->topo->rails > 1 ? peak_of_rails(s, step)
			     : !mesh		? peak_of_terms(s, step, i / 2, i % 2)
			     : i % 2		? 0
						: peak_on_mesh(s, step, i / 2);

		most = sum > most ? sum : most;
	}
	return most;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The ranks on the axes, without their plans. Rank 0's plan tells which step of which dimension each channel
 * takes when, and the size of its messages. The algorithm tells the peers of each coordinate in that step
 * (line_messages.h), which are the same in all channels that are mirrored alike: so they are counted once,
 * as a group. This takes time by the sides of the torus, whereas plans have all channels and dimensions.
 */
#include "plan/model/axes.h"

#include <errno.h>
#include <stdlib.h>

#include "plan/algo/line_messages.h"
#include "plan/table.h"

/**
 * struct coord - what a coordinate does in a step of its dimension
 * @conns: connections that it needs there and in none of the steps before
 */
struct coord {
	uint8_t messages, sends, reduced, conns;
};

/**
 * struct swc_axes_group - a step of a dimension, in channels that are mirrored alike
 * @line: number of the dimension among those with several members
 * @s: number of the step
 * @mirrored, @other_way: by the algorithm, and where both ways round are equally long
 * @coord: by coordinate
 * @links: by link and way: messages, but those of coordinate 0; differences as in swc_axes_add()
 */
struct swc_axes_group {
	uint32_t dim, line, s;
	bool mirrored, other_way;
	struct coord *coord;
	int32_t *links;
	uint32_t hops, max_runs;
};

#define MAX_STEPS 64 /* of a dimension */

/* Of one coordinate: the peers that it has a connection to by now, by path. */
struct linked {
	uint32_t n, peer[2 * SWC_LINE_PEERS * MAX_STEPS];
	uint8_t path[2 * SWC_LINE_PEERS * MAX_STEPS];
};

/* ---- steps that are left out ---- */

/*
 * One dimension. Plans leave out steps without messages, and then a rank may take its k-th step when others
 * take another one. 0 if no coordinate leaves out steps, -EOPNOTSUPP if some do, and -EAGAIN if the ends of a
 * message count it as different steps. On a mirrored line coordinates do as their images.
 */
static int check_line(const struct swc_line_messages *l, uint32_t line, uint32_t size,
		      uint8_t *left_out)
{
	uint8_t *now = left_out + size;
	struct swc_line_peers p;
	int ret = 0;

	for (uint32_t s = 0; s < l->count(l->lines, line); s++) {
		for (uint32_t x = 0; x < size; x++) {
			l->peers(l->lines, line, s, false, x, &p);
			for (uint32_t i = 0; i < p.nsend; i++)
				if (left_out[p.to[i]] != left_out[x])
					return -EAGAIN;
			now[x] = !p.nsend && !p.nrecv;
			ret = now[x] ? -EOPNOTSUPP : ret;
		}
		for (uint32_t x = 0; x < size; x++)
			left_out[x] = (uint8_t)(left_out[x] + now[x]);
	}
	return ret;
}

/* The worst of all dimensions. */
static int check_lines(const struct swc_topo *t, const struct swc_line_messages *l)
{
	uint32_t line = 0;
	int ret = 0, now;

	for (uint32_t i = 0; i < t->ndims && (!ret || ret == -EOPNOTSUPP); i++) {
		uint8_t *left_out = calloc(t->dim[i], 2);

		if (!left_out)
			return -ENOMEM;
		now = t->dim[i] > 1 ? check_line(l, line++, t->dim[i], left_out) : 0;
		ret = now ? now : ret;
		free(left_out);
	}
	return ret;
}

/* ---- groups ---- */

static void add_message(const struct swc_axes *a, struct swc_axes_group *g, uint32_t x, uint32_t y)
{
	uint32_t d = a->topo->dim[g->dim], begin, end;
	struct swc_topo_leg leg;
	int32_t *links;

	swc_topo_path_on_line(a->topo, g->other_way ? a->topo->ndims : 0, g->dim, x, y, &leg);
	begin = leg.down ? (x + d + 1 - leg.hops) % d : x;
	end = begin + leg.hops;
	links = g->links + leg.down;
	g->hops = leg.hops > g->hops ? leg.hops : g->hops;
	links[2 * begin]++;
	if (end > d)
		links[0]++;
	if (end != d)
		links[2 * (end % d)]--;
}

static void add_coord(const struct swc_axes *a, struct swc_axes_group *g, uint32_t x,
		      const struct swc_line_peers *p)
{
	struct coord *c = &g->coord[x];

	c->sends = (uint8_t)p->nsend;
	c->reduced = (uint8_t)p->nreduced;
	for (uint32_t i = 0; i < p->nsend; i++) {
		uint32_t runs = 0, before = 0;

		for (uint32_t j = 0; j < p->nsend; j++) {
			runs += p->to[j] == p->to[i];
			before += j < i && p->to[j] == p->to[i];
		}
		c->messages = (uint8_t)(c->messages + !before);
		g->max_runs = runs > g->max_runs ? runs : g->max_runs;
		if (x)
			add_message(a, g, x, p->to[i]);
	}
}

static int open_group(struct swc_axes *a, const struct swc_line_messages *l,
		      struct swc_axes_group *g)
{
	uint32_t d = a->topo->dim[g->dim];
	struct swc_line_peers peers;

	g->coord = calloc(d, sizeof(*g->coord));
	g->links = calloc(2 * (size_t)d, sizeof(*g->links));
	if (!g->coord || !g->links)
		return -ENOMEM;
	for (uint32_t x = 0; x < d; x++) {
		l->peers(l->lines, g->line, g->s, g->mirrored, x, &peers);
		add_coord(a, g, x, &peers);
	}
	return 0;
}

/* The group of a step, found or made. 0, -ENOMEM or -EOPNOTSUPP. */
static int find_group(struct swc_axes *a, const struct swc_line_messages *l,
		      const struct swc_axes_group *like, uint32_t *group)
{
	struct swc_axes_group *g;

	for (uint32_t i = 0; i < a->ngroups; i++) {
		g = &a->group[i];
		*group = i;
		if (g->line == like->line && g->s == like->s && g->mirrored == like->mirrored &&
		    g->other_way == like->other_way)
			return 0;
	}
	if (!swc_table_reserve(&a->group, a->ngroups, &a->room, sizeof(*a->group)))
		return -ENOMEM;
	*group = a->ngroups++;
	g = &a->group[*group];
	*g = *like;
	return open_group(a, l, g);
}

/* ---- connections ---- */

static uint8_t path_of(const struct swc_axes *a, const struct swc_axes_group *g, uint32_t from,
		       uint32_t to)
{
	struct swc_topo_leg leg;

	return (uint8_t)swc_topo_path_on_line(a->topo, g->other_way ? a->topo->ndims : 0, g->dim,
					      from, to, &leg);
}

/* Is it a new one? */
static bool connect(struct linked *l, uint32_t peer, uint8_t path)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->peer[i] == peer && l->path[i] == path)
			return false;
	l->peer[l->n] = peer;
	l->path[l->n++] = path;
	return true;
}

/* Of group @first and all others of the same channels and dimension. */
static void count_conns(struct swc_axes *a, const struct swc_line_messages *l, uint32_t first)
{
	const struct swc_axes_group *f = &a->group[first];
	struct swc_line_peers p;
	struct linked linked;

	for (uint32_t x = 0; x < a->topo->dim[f->dim]; x++) {
		linked.n = 0;
		for (struct swc_axes_group *g = &a->group[first]; g < a->group + a->ngroups; g++) {
			uint32_t n = 0;

			if (g->line != f->line || g->mirrored != f->mirrored ||
			    g->other_way != f->other_way)
				continue;
			l->peers(l->lines, g->line, g->s, g->mirrored, x, &p);
			for (uint32_t i = 0; i < p.nsend; i++)
				n += connect(&linked, p.to[i], path_of(a, g, x, p.to[i]));
			for (uint32_t i = 0; i < p.nrecv; i++)
				n += connect(&linked, p.from[i], path_of(a, g, p.from[i], x));
			g->coord[x].conns = (uint8_t)n;
		}
	}
}

/* ---- rank 0's plan ---- */

/* The dimension along which rank 0 and a peer differ, and its number among those with several members. */
static uint32_t dim_of(const struct swc_topo *t, uint32_t peer, uint32_t *line)
{
	uint32_t stride = t->nnodes, dim = 0;

	*line = 0;
	for (; dim + 1 < t->ndims; dim++) {
		stride /= t->dim[dim];
		if (peer >= stride)
			break;
		*line += t->dim[dim] > 1;
	}
	return dim;
}

static int find_channel(struct swc_axes *a, const struct swc_line_messages *l,
			const struct swc_plan_view *v, uint32_t chan)
{
	const struct swc_plan_channel *c = &v->channels[chan];
	uint32_t taken[SWC_TOPO_DIMS] = { 0 };
	int ret = 0;

	a->step[chan] = calloc(c->nsteps + 1u, sizeof(**a->step));
	if (!a->step[chan])
		return -ENOMEM;
	for (uint32_t i = 0; i < c->nsteps && !ret; i++) {
		const struct swc_plan_step *s = &v->steps[c->first_step + i];
		const struct swc_plan_xfer *x = &v->xfers[s->first_xfer];
		struct swc_axes_step *step = &a->step[chan][a->nsteps[chan]];
		struct swc_axes_group g = { 0 };

		if (s->kind != SWC_STEP_NET)
			continue;
		g.dim = dim_of(a->topo, x->rank, &g.line);
		g.s = taken[g.line]++;
		g.mirrored = swc_line_mirrored(l, chan);
		g.other_way = swc_topo_mirrored(a->topo, chan);
		if (g.s >= l->count(l->lines, g.line) || g.s >= MAX_STEPS)
			return -EOPNOTSUPP;
		ret = find_group(a, l, &g, &step->group);
		step->blocks = x->nblocks;
		a->nsteps[chan]++;
	}
	for (uint32_t i = 0; i < l->nlines && !ret; i++)
		if (taken[i] != l->count(l->lines, i))
			return -EOPNOTSUPP;
	return ret;
}

/* Is it the first group of its channels and dimension? */
static bool is_first(const struct swc_axes *a, uint32_t group)
{
	const struct swc_axes_group *g = &a->group[group];

	for (uint32_t i = 0; i < group; i++)
		if (a->group[i].line == g->line && a->group[i].mirrored == g->mirrored &&
		    a->group[i].other_way == g->other_way)
			return false;
	return true;
}

int swc_axes_find(struct swc_axes *a, const struct swc_plan_args *args, const struct swc_topo *topo,
		  const struct swc_plan_view *view)
{
	struct swc_line_messages steps;
	int ret;

	*a = (struct swc_axes){ .topo = topo, .nchannels = view->hdr->nchannels };
	if (topo->kind == SWC_TOPO_SWITCH || topo->nranks != topo->nnodes)
		return -EOPNOTSUPP;
	ret = swc_algo_lines(args, topo, &steps);
	if (ret)
		return ret;
	ret = check_lines(topo, &steps);
	for (uint32_t chan = 0; chan < a->nchannels && !ret; chan++)
		ret = find_channel(a, &steps, view, chan);
	for (uint32_t i = 0; i < a->ngroups && !ret; i++)
		if (is_first(a, i))
			count_conns(a, &steps, i);
	free(steps.lines);
	return ret;
}

void swc_axes_free(struct swc_axes *a)
{
	for (uint32_t i = 0; i < a->ngroups; i++) {
		free(a->group[i].coord);
		free(a->group[i].links);
	}
	for (uint32_t chan = 0; chan < a->nchannels; chan++)
		free(a->step[chan]);
	free(a->group);
	*a = (struct swc_axes){ 0 };
}

/* ---- results ---- */

uint32_t swc_axes_max_runs(const struct swc_axes *a)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < a->ngroups; i++)
		most = a->group[i].max_runs > most ? a->group[i].max_runs : most;
	return most;
}

/* Add what coordinate x does along a dimension. */
static void add_line(const struct swc_axes *a, uint32_t dim, uint32_t x, struct swc_axes_rank *does)
{
	for (uint32_t chan = 0; chan < a->nchannels; chan++)
		for (uint32_t k = 0; k < a->nsteps[chan]; k++) {
			const struct swc_axes_step *s = &a->step[chan][k];
			const struct swc_axes_group *g = &a->group[s->group];

			if (g->dim != dim)
				continue;
			does->messages += g->coord[x].messages;
			does->conns += g->coord[x].conns;
			does->blocks += (uint64_t)g->coord[x].sends * s->blocks;
			does->reduced[chan] += (uint64_t)g->coord[x].reduced * s->blocks;
		}
}

void swc_axes_each(const struct swc_axes *a, swc_axes_fn *fn, void *arg)
{
	uint32_t stride = a->topo->nnodes;

	for (uint32_t dim = 0; dim < a->topo->ndims; dim++) {
		struct swc_axes_rank others = { 0 };

		stride /= a->topo->dim[dim];
		for (uint32_t other = 0; other < a->topo->ndims; other++)
			if (other != dim)
				add_line(a, other, 0, &others);
		for (uint32_t x = 1; x < a->topo->dim[dim]; x++) {
			struct swc_axes_rank does = others;

			add_line(a, dim, x, &does);
			fn(arg, x * stride, &does);
		}
	}
}

uint32_t swc_axes_add(const struct swc_axes *a, uint32_t chan, uint32_t k, double *line,
		      const uint32_t *at)
{
	const struct swc_axes_step *s = &a->step[chan][k];
	const struct swc_axes_group *g = &a->group[s->group];
	double blocks = s->blocks * swc_topo_slowness(a->topo, g->dim);

	line += 2 * (size_t)at[g->dim];
	for (uint32_t i = 0; i < 2 * a->topo->dim[g->dim]; i++)
		line[i] += blocks * g->links[i];
	return g->hops;
}

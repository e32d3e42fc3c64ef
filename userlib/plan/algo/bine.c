// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bine trees: binomial trees whose edges have distance 1, 1, 3, 5, 11... instead of 1, 2, 4, 8, 16,
 * those of Swing, with the farthest first on the way down. A broadcast sends whole vectors away from
 * the root, a reduction the same messages backwards. Every sum is computed by one member, so all
 * ranks get the same bits.
 *
 * In one dimension, coordinates are counted from the root's and written in base -2, in which digits
 * 0 and 1 are enough for negative numbers, too. A coordinate whose lowest j digits are equal is a
 * child of the one that has these j digits inverted, at distance (2^j +- 1) / 3. It receives the
 * vector in the j-th step from the end, and serves its own children, which invert fewer digits, in
 * the steps that remain. S digits are 2^S consecutive numbers, from -(2 + 8 + 32...) to 1 + 4 + 16...:
 * so on 2^S coordinates that is a tree of all of them. On fewer, it is a tree of any d consecutive
 * numbers that have 0 and the parents of all of them. There are such numbers for all d up to 20000 at
 * least. Those with the least sum of distances are taken.
 *
 * Trees of the dimensions multiply on a torus. Port c takes the dimensions in Swing's order,
 * backwards: in each step, all members that have the vector send along the dimension at hand. Ports
 * D and up are the mirror images. Each port works on its own share of the vector.
 *
 * De Sensi et al., "Bine trees: enhancing collective operations by optimizing communication locality",
 * SC 2025, for powers of two.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/algo/bine.h"
#include "plan/algo/gather.h"
#include "plan/algo/tree_bufs.h"

/* Digits of numbers in base -2: the odd ones are worth less than nothing. */
#define ODD_DIGITS 0xaaaaaaaau

/* ---- numbers in base -2 ---- */

static uint32_t digits_of(int32_t v)
{
	return ((uint32_t)v + ODD_DIGITS) ^ ODD_DIGITS;
}

static int32_t number_of(uint32_t digits)
{
	return (int32_t)((digits ^ ODD_DIGITS) - ODD_DIGITS);
}

/* The number with the lowest n digits inverted. */
static int32_t inverted(int32_t v, uint32_t n)
{
	return number_of(digits_of(v) ^ ((1u << n) - 1));
}

/* How many of the lowest of @log digits are equal, at least 1; of 0, all. */
static uint32_t equal_digits(int32_t v, uint32_t log)
{
	uint32_t digits = digits_of(v), last = 1u << log >> !!log;

	return 1 + (uint32_t)__builtin_ctz((digits >> 1 ^ digits) | last);
}

/* ---- one dimension ---- */

static bool is_in(const struct swc_bine_line *l, int32_t v)
{
	return v >= l->first && v - l->first < (int32_t)l->d;
}

/**
 * struct edges - of numbers to their parents
 * @up: by how many of the lowest digits are equal: what is added to invert them, if they are 0
 * @distance: of that
 */
struct edges {
	int32_t up[32];
	uint32_t distance[32];
};

static void find_edges(const struct swc_bine_line *l, struct edges *e)
{
	for (uint32_t n = 1; n <= l->log; n++) {
		uint32_t far;

		e->up[n] = inverted(0, n);
		far = (uint32_t)abs(e->up[n]); /* (2^log + 1) / 3 at most, which is less than d */
		e->distance[n] = far < l->d - far ? far : l->d - far;
	}
}

/* For the numbers from one end to 0: the least and the largest parent, and the sum of distances. */
struct span {
	int32_t low, high;
	uint64_t distance;
};

static inline void extend(const struct edges *e, uint32_t log, struct span *s, int32_t v)
{
	uint32_t n = equal_digits(v, log);
	int32_t parent = v % 2 ? v - e->up[n] : v + e->up[n];

	s->low = parent < s->low ? parent : s->low;
	s->high = parent > s->high ? parent : s->high;
	s->distance += e->distance[n];
}

/* Find the best d numbers, of equal ones the lowest; all numbers with @log digits are from @low to @high. */
static int find_first(struct swc_bine_line *l, int32_t low, int32_t high)
{
	int32_t d = (int32_t)l->d, least = low + d - 1 > 0 ? low + d - 1 : 0; /* last number */
	struct span *last = calloc((size_t)(high - least) + 1, sizeof(*last)), s = { 0 };
	uint64_t best = UINT64_MAX;
	uint32_t log = l->log;
	struct edges e;

	if (!last)
		return -ENOMEM;
	find_edges(l, &e);
	for (int32_t v = 1; v <= high; v++) {
		extend(&e, log, &s, v);
		if (v >= least)
			last[v - least] = s;
	}
	s = (struct span){ 0 };
	for (int32_t a = 0; a >= low && a + d - 1 >= least; a--) {
		int32_t z = a + d - 1;
		const struct span *to;

		if (a < 0)
			extend(&e, log, &s, a);
		if (z > high)
			continue;
		to = &last[z - least];
		if (s.low < a || s.high > z || to->low < a || to->high > z ||
		    s.distance + to->distance > best)
			continue;
		best = s.distance + to->distance;
		l->first = a;
	}
	free(last);
	return best == UINT64_MAX ? -ERANGE : 0;
}

/*
 * The search takes milliseconds for a million numbers, and models build the plans of many ranks, one after the
 * other. So a thread keeps the last ones that it found. They depend on the size alone.
 */
#define KEPT 4

static int find_line(struct swc_bine_line *l, int32_t low, int32_t high)
{
	static __thread struct {
		struct swc_bine_line line[KEPT];
		uint32_t next;
	} kept;
	int ret;

	for (uint32_t i = 0; i < KEPT; i++)
		if (kept.line[i].d == l->d) {
			*l = kept.line[i];
			return 0;
		}
	ret = find_first(l, low, high);
	if (!ret)
		kept.line[kept.next++ % KEPT] = *l;
	return ret;
}

static int open_line(struct swc_bine_line *l, uint32_t d)
{
	int32_t low = 0, high = 0;

	l->d = d;
	for (l->log = 0; 1u << l->log < d; l->log++)
		*(l->log % 2 ? &low : &high) += (l->log % 2 ? -1 : 1) * (1 << l->log);
	l->first = low;
	return 1u << l->log == d ? 0 : find_line(l, low, high);
}

/* The number of a coordinate, and the coordinate of a number; @root: coordinate of 0. */
static int32_t number_at(const struct swc_bine_line *l, uint32_t x, uint32_t root, bool mirror)
{
	uint32_t v = mirror ? root + l->d - x : x + l->d - root;

	v %= l->d;
	return is_in(l, (int32_t)v) ? (int32_t)v : (int32_t)v - (int32_t)l->d;
}

static uint32_t coord_of(const struct swc_bine_line *l, int32_t v, uint32_t root, bool mirror)
{
	uint32_t d = l->d, ahead = (uint32_t)(v < 0 ? v + (int32_t)d : v);

	return (mirror ? root + d - ahead : root + ahead) % d;
}

/* ---- all dimensions ---- */

int swc_bine_find(struct swc_bine *t, const struct swc_topo *topo, uint32_t root, uint32_t *dim)
{
	int ret = 0;

	t->topo = topo;
	t->steps = 0;
	swc_topo_coords(topo, root, t->root);
	for (*dim = 0; *dim < topo->ndims; ++*dim) {
		ret = open_line(&t->line[*dim], topo->dim[*dim]);
		if (ret)
			break;
		t->steps += t->line[*dim].log;
	}
	return ret;
}

void swc_bine_place(const struct swc_bine *t, uint32_t port, uint32_t member,
		    struct swc_bine_member *m)
{
	uint32_t ndims = t->topo->ndims, nsteps[SWC_TOPO_DIMS], coord[SWC_TOPO_DIMS];

	swc_topo_coords(t->topo, member, coord);
	m->mirror = port >= ndims;
	for (uint32_t i = 0; i < ndims; i++) {
		nsteps[i] = t->line[i].log;
		m->v[i] = number_at(&t->line[i], coord[i], t->root[i], m->mirror);
	}
	swc_butterfly_turns(nsteps, ndims, port, m->turn);
	/* The first step of a dimension in which the member is a child. */
	for (m->up = 0; m->up < t->steps; m->up++) {
		uint32_t dim = m->turn[m->up].dim;

		if (m->v[dim] &&
		    equal_digits(m->v[dim], t->line[dim].log) == m->turn[m->up].step + 1)
			break;
	}
}

uint32_t swc_bine_parent(const struct swc_bine *t, uint32_t member, const struct swc_bine_member *m)
{
	uint32_t stride = 1, dim, from, to;
	int32_t v;

	if (m->up == t->steps)
		return member;
	dim = m->turn[m->up].dim;
	v = inverted(m->v[dim], m->turn[m->up].step + 1);
	from = coord_of(&t->line[dim], m->v[dim], t->root[dim], m->mirror);
	to = coord_of(&t->line[dim], v, t->root[dim], m->mirror);
	for (uint32_t i = dim + 1; i < t->topo->ndims; i++)
		stride *= t->topo->dim[i];
	return member + (to - from) * stride;
}

/* ---- the plan ---- */

/* One port's tree, as the member sees it that the plan is for. */
struct port {
	struct swc_builder *b;
	struct swc_bine tree;
	struct swc_bine_member me;
};

static uint32_t member_at(const struct port *p, uint32_t dim, int32_t v)
{
	const struct swc_bine_line *l = &p->tree.line[dim];
	uint32_t root = p->tree.root[dim];

	return swc_butterfly_member(p->b, dim, coord_of(l, p->me.v[dim], root, p->me.mirror),
				    coord_of(l, v, root, p->me.mirror));
}

static bool is_root(const struct port *p)
{
	return p->me.up == p->tree.steps;
}

static uint32_t parent(const struct port *p)
{
	return swc_bine_parent(&p->tree, p->b->me, &p->me);
}

/* The child of a step before @up; false if there is none. */
static bool child(const struct port *p, uint32_t s, uint32_t *member)
{
	struct swc_turn t = p->me.turn[s];
	int32_t v = inverted(p->me.v[t.dim], t.step + 1);

	if (!is_in(&p->tree.line[t.dim], v))
		return false;
	*member = member_at(p, t.dim, v);
	return true;
}

static void reduce(const struct port *p, uint32_t block)
{
	enum swc_buf at = SWC_BUF_SEND, sums = swc_tree_sums(p->b);
	uint32_t member, last = 0;

	for (uint32_t s = 0; s < p->me.up; s++)
		last = child(p, s, &member) ? s : last;
	swc_build_step(p->b, SWC_STEP_NET);
	for (uint32_t s = 0; s < p->me.up; s++) {
		if (!child(p, s, &member))
			continue;
		if (sums == SWC_BUF_SCRATCH)
			swc_build_scratch(p->b, block, 1);
		swc_build_recv_reduce(p->b, member, sums, at, block, 1,
				      is_root(p) && s == last ? SWC_XFER_FINAL : 0);
		at = sums;
	}
	swc_build_step(p->b, SWC_STEP_NET);
	if (!is_root(p))
		swc_build_send(p->b, parent(p), at, block, 1);
}

static void broadcast(const struct port *p, uint32_t block)
{
	uint32_t member;

	swc_build_step(p->b, SWC_STEP_NET);
	if (!is_root(p))
		swc_build_recv(p->b, parent(p), SWC_BUF_RECV, block, 1,
			       swc_tree_down_flags(p->b, parent(p)));
	for (uint32_t s = p->me.up; s-- > 0;) {
		if (!child(p, s, &member))
			continue;
		swc_build_step(p->b, SWC_STEP_NET);
		swc_build_send_stored(p->b, member, swc_tree_down(p->b), block, 1);
	}
	swc_tree_copy_at_root(p->b, block, 1);
}

/* ---- gather and scatter ---- */

/* The numbers of one dimension that are reached from v by inverting the lowest n digits or fewer. */
static void reach(const struct port *p, struct swc_box *box, uint32_t dim, int32_t v, uint32_t n)
{
	const struct swc_bine_line *l = &p->tree.line[dim];
	uint32_t zeros = digits_of(v) & ~((1u << n) - 1), ones = (1u << n) - 1;
	int32_t low = number_of(zeros | (ones & ODD_DIGITS)), end = l->first + (int32_t)l->d - 1;
	int32_t high = number_of(zeros | (ones & ~ODD_DIGITS));

	low = low < l->first ? l->first : low;
	high = high > end ? end : high;
	box->d[dim] = l->d;
	box->start[dim] = coord_of(l, p->me.mirror ? high : low, p->tree.root[dim], p->me.mirror);
	box->len[dim] = (uint32_t)(high - low) + 1;
}

/*
 * The member whose numbers are v, and all below it, if it has @steps steps for them. A dimension has
 * its steps in ascending order.
 */
static void find_box(const struct port *p, const int32_t *v, uint32_t steps, struct swc_box *box)
{
	uint32_t n[SWC_TOPO_DIMS] = { 0 };

	for (uint32_t s = 0; s < steps; s++)
		n[p->me.turn[s].dim]++;
	box->ndims = p->tree.topo->ndims;
	for (uint32_t i = 0; i < box->ndims; i++)
		reach(p, box, i, v[i], n[i]);
}

static void gather(const struct port *p, uint32_t port, uint32_t ports)
{
	struct swc_gather g = { .port = port, .ports = ports, .root = is_root(p) };

	if (!g.root)
		g.parent = parent(p);
	find_box(p, p->me.v, p->me.up, &g.mine);
	for (uint32_t s = p->me.up; s-- > 0;) {
		struct swc_turn t = p->me.turn[s];
		int32_t v[SWC_TOPO_DIMS];

		if (!child(p, s, &g.child[g.nchildren]))
			continue;
		memcpy(v, p->me.v, sizeof(v));
		v[t.dim] = inverted(v[t.dim], t.step + 1);
		find_box(p, v, s, &g.below[g.nchildren++]);
	}
	swc_gather_channel(p->b, &g);
}

int swc_bine_build(struct swc_builder *b)
{
	uint32_t ports = swc_build_ports(b), dim;
	struct port p = { .b = b };
	int ret;

	if (b->args->coll == SWC_ALLTOALL)
		return swc_bine_alltoall(b);
	ret = swc_bine_find(&p.tree, b->topo, b->root, &dim);
	if (ret == -ERANGE)
		return swc_build_refuse(b, "no Bine tree of %u members is known: use tree",
					b->topo->dim[dim]);
	if (ret) {
		b->error = ret;
		return 0;
	}
	swc_build_blocks(b, ports);
	for (uint32_t c = 0; c < ports; c++) {
		swc_bine_place(&p.tree, c, b->me, &p.me);
		if (swc_is_gather(b->args->coll)) {
			gather(&p, c, ports);
			continue;
		}
		swc_build_channel(b, c, 1);
		if (swc_tree_goes_up(b))
			reduce(&p, c);
		else
			broadcast(&p, c);
	}
	return 0;
}

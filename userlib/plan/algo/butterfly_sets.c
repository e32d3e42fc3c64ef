// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Butterflies whose messages are sets of blocks: Swing on any torus, and all butterflies in which
 * blocks belong to members by number (reduce-scatter, allgather).
 *
 * Block b ends at member b. A line is the schedule of one dimension alone: in which step coordinate
 * x sends its sum of block b, and to which coordinate. All coordinates but b send it once, to b or
 * to one that sends it later; so all that x receives of b has arrived by then, and nothing counts
 * twice. Such schedules multiply: on a torus, a member sends a block along the dimension where that
 * comes first among those in which it differs from the block's owner. So the set of a message is a
 * product: in the dimension of the step, what the line says; in each other one, the coordinates
 * whose blocks have not been sent.
 *
 * The way of the root's contribution to block b, from the root to member b, is a path of these
 * schedules. BROADCAST sends each block along its path, a scatter, and goes on with an allgather in
 * which nobody gets what came past on a path. REDUCE is a reduce-scatter, and then each block goes
 * back along its path. (De Sensi et al., "Bine trees", SC 2025.)
 *
 * De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth allreduce",
 * NSDI 2024.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "plan/algo/butterfly_numbers.h"
#include "plan/algo/butterfly_sets.h"
#include "plan/algo/tree_bufs.h"
#include "plan/table.h"

/*
 * Consecutive blocks of a message to or from @peer, by their numbers within the port.
 */
struct run {
	uint32_t peer, first, nblocks;
	uint8_t step;
	bool recv;
	uint8_t from; /* enum swc_buf: the sum so far of this member */
};

/**
 * struct stay - how long the path of a line is at this member's coordinate
 * @before: the coordinate before; NOBODY: it does not come here
 * @from, @to: from this step of the plan on; it leaves in that one
 */
struct stay {
	uint32_t before;
	uint8_t from, to;
};

#define NOBODY UINT32_MAX

/**
 * struct sets - one port's plan
 * @held: by dimension, coordinates whose blocks this member has not sent along it, in the order of
 *	their numbers in this dimension alone; and paths along it
 * @at, @stride: number n of the port is block at + n * stride
 * @sums: buffer with the sums, once something was added
 * @result: buffer with the own block
 * @number: of blocks; NULL: as the member's
 * @before: BROADCAST and REDUCE: by number, the member before this one on the block's path from the
 *	root; of the root itself, the root; NOBODY if it is not on the path
 * @halves: all sides are powers of two, so that each message is half of the range that a member has
 * @passed: of @halves, in place of @before: the range of the blocks whose paths come here, and who is
 *	before this member on all of them
 * @fresh: by number: nothing was added yet, the contribution is in SEND; before that, room for marks
 * @set: room for the blocks of a message
 */
struct sets {
	struct swc_builder *b;
	struct swc_lines lines;
	struct held {
		uint32_t *coord, n;
		struct stay *stay;
	} held[SWC_TOPO_DIMS];
	uint32_t at, stride;
	enum swc_buf sums, result;
	struct swc_numbers *number;
	uint32_t *set, *before;
	bool halves;
	struct {
		uint32_t first, nblocks, who;
	} passed;
	bool *fresh;
	struct run *run;
	uint32_t nruns, room;
};

/* ---- the blocks of a message ---- */

/* The blocks that x sends to y in step k, in the order of held; x or y is this member. Returns how many. */
static uint32_t blocks_sent(const struct sets *p, uint32_t dim, uint32_t x, uint32_t y, uint32_t k,
			    uint32_t *out)
{
	const struct swc_line *l = &p->lines.line[dim];
	const struct held *h = &p->held[dim];
	uint32_t nsent, n = 0;
	bool only;

	if (swc_line_odd_one(l, x) || swc_line_odd_one(l, y)) {
		*out = y;
		return 1;
	}
	nsent = swc_line_sent(l, x, k, h->coord, h->n, out);
	/* Swing: all that x sends in a step goes to one other, except to the last coordinate. */
	only = l->swing && swc_swing_peer(l->m, x, k, l->mirror) == y;
	if (only && l->d == l->m)
		return nsent;
	for (uint32_t i = 0; i < nsent; i++)
		if ((only && out[i] < l->m) || swc_line_receiver(l, x, out[i], k) == y)
			out[n++] = out[i];
	return n;
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/*
 * Sort different numbers of blocks. Most are in order or all there are in between, others close together: then by
 * marks.
 */
static void sort_set(struct sets *p, uint32_t n)
{
	uint32_t low = UINT32_MAX, high = 0;
	bool sorted = true;

	for (uint32_t i = 0; i < n; i++) {
		sorted &= !i || high < p->set[i];
		low = p->set[i] < low ? p->set[i] : low;
		high = p->set[i] > high ? p->set[i] : high;
	}
	if (sorted)
		return;
	if (high - low == n - 1) {
		for (uint32_t i = 0; i < n; i++)
			p->set[i] = low + i;
		return;
	}
	if (n < (high - low) / 128) {
		qsort(p->set, n, sizeof(*p->set), ascending);
		return;
	}
	memset(p->fresh + low, false, (high - low + 1) * sizeof(*p->fresh));
	for (uint32_t i = 0; i < n; i++)
		p->fresh[p->set[i]] = true;
	n = 0;
	for (uint32_t i = low; i <= high; i++)
		if (p->fresh[i])
			p->set[n++] = i;
}

/*
 * All blocks that are in line_set along dimension dim and held along the others, ascending by
 * number.
 */
static uint32_t multiply(struct sets *p, uint32_t dim, const uint32_t *line_set, uint32_t nline)
{
	uint32_t n = 1;

	p->set[0] = 0;
	for (uint32_t j = 0; j < p->lines.ndims; j++) {
		const uint32_t *with = j == dim ? line_set : p->held[j].coord;
		uint32_t nwith = j == dim ? nline : p->held[j].n;

		for (uint32_t i = n; i-- > 0;) {
			uint32_t base = p->set[i] * p->lines.line[j].d;

			for (uint32_t k = nwith; k-- > 0;)
				p->set[i * nwith + k] = base + with[k];
		}
		n *= nwith;
	}
	if (p->number) {
		for (uint32_t i = 0; i < n; i++)
			p->set[i] = p->number->of_member[p->set[i]];
		sort_set(p, n);
	}
	return n;
}

static void add_run(struct sets *p, const struct run *r)
{
	struct run *last = p->nruns ? &p->run[p->nruns - 1] : NULL;

	if (last && p->stride == 1 && last->step == r->step && last->peer == r->peer &&
	    last->recv == r->recv && last->first + last->nblocks == r->first) {
		last->nblocks += r->nblocks;
		return;
	}
	/* Each becomes a transfer at least: refuse here what would need too much memory before. */
	if (p->nruns >= SWC_MAX_PLAN_BYTES / sizeof(struct swc_plan_xfer))
		p->b->error = swc_build_refuse(p->b, "the plan would have more than %u bytes",
					       SWC_MAX_PLAN_BYTES);
	else if (!swc_table_reserve(&p->run, p->nruns, &p->room, sizeof(*p->run)))
		p->b->error = -ENOMEM;
	if (p->b->error)
		return;
	p->run[p->nruns++] = *r;
}

/* The messages of turn s, sent or received. */
static void list_turn(struct sets *p, uint32_t s, bool recv, const uint32_t *coord)
{
	uint32_t dim = p->lines.turn[s].dim, k = p->lines.turn[s].step, x = coord[dim], q, n;
	const struct swc_line *l = &p->lines.line[dim];
	uint32_t *line_set = p->set + p->b->n;

	for (uint32_t i = 0; (q = swc_line_peer(l, x, k, i)) < l->d && !p->b->error; i++) {
		struct run r = { .step = (uint8_t)s,
				 .peer = swc_butterfly_member(p->b, dim, x, q),
				 .recv = recv };

		n = blocks_sent(p, dim, recv ? q : x, recv ? x : q, k, line_set);
		n = multiply(p, dim, line_set, n);
		for (uint32_t j = 0; !p->b->error && j < n; j += r.nblocks) {
			r.first = p->set[j];
			r.nblocks = 1;
			while (p->stride == 1 && j + r.nblocks < n &&
			       p->set[j + r.nblocks] == r.first + r.nblocks)
				r.nblocks++;
			add_run(p, &r);
		}
	}
}

static void list_runs(struct sets *p, const uint32_t *coord)
{
	p->nruns = 0;
	for (uint32_t j = 0; j < p->lines.ndims; j++) {
		struct held *h = &p->held[j];

		for (h->n = 0; h->n < p->lines.line[j].d; h->n++)
			h->coord[h->n] = p->number ? p->number->coord[j][h->n] : h->n;
	}
	for (uint32_t s = 0; s < p->lines.steps; s++) {
		struct swc_turn t = p->lines.turn[s];
		struct held *h = &p->held[t.dim];
		uint32_t *sent = p->set, kept = 0, nsent;

		list_turn(p, s, false, coord);
		/* What comes in a step is not sent in it. */
		nsent = swc_line_sent(&p->lines.line[t.dim], coord[t.dim], t.step, h->coord, h->n,
				      sent);
		for (uint32_t i = 0; i < h->n; i++) {
			if (nsent && h->coord[i] == *sent) {
				sent++;
				nsent--;
			} else {
				h->coord[kept++] = h->coord[i];
			}
		}
		h->n = kept;
		list_turn(p, s, true, coord);
	}
}

/* ---- powers of two: halves ---- */

/* The range that the member with a number has before a step. */
static uint32_t range_before(const struct sets *p, uint32_t s, uint32_t number, uint32_t *nblocks)
{
	*nblocks = 1u << (p->lines.steps - s);
	return number & ~(*nblocks - 1);
}

static uint32_t peer_in(const struct sets *p, uint32_t s, const uint32_t *coord)
{
	const struct swc_line *l = &p->lines.line[p->lines.turn[s].dim];

	return swc_swing_peer(l->m, coord[p->lines.turn[s].dim], p->lines.turn[s].step, l->mirror);
}

static void list_halves(struct sets *p, const uint32_t *coord, uint32_t own)
{
	p->nruns = 0;
	for (uint32_t s = 0; s < p->lines.steps; s++) {
		uint32_t dim = p->lines.turn[s].dim, n, kept = range_before(p, s + 1, own, &n);
		struct run r = { .step = (uint8_t)s,
				 .peer = swc_butterfly_member(p->b, dim, coord[dim],
							      peer_in(p, s, coord)),
				 .first = kept ^ n,
				 .nblocks = n };

		add_run(p, &r);
		r.first = kept;
		r.recv = true;
		add_run(p, &r);
	}
}

/* The path from the root to this member's block: paths to others come here if they are the same so far. */
static void follow_halves(struct sets *p, uint32_t own)
{
	uint32_t at[SWC_TOPO_DIMS], from = 0;

	swc_topo_coords(p->b->topo, p->b->root, at);
	p->passed.who = p->b->root;
	for (uint32_t s = 0; s < p->lines.steps; s++) {
		uint32_t bit = 1u << (p->lines.steps - 1 - s);

		if (!((swc_numbers_one(&p->lines, at) ^ own) & bit))
			continue;
		p->passed.who = swc_topo_node_at(p->b->topo, at);
		at[p->lines.turn[s].dim] = peer_in(p, s, at);
		from = s + 1;
	}
	p->passed.first = range_before(p, from, own, &p->passed.nblocks);
}

/* ---- paths from the root ---- */

/**
 * struct search - for the paths along one dimension that come to this member's coordinate
 * @root, @me: coordinates
 * @turned: coordinates are counted from the root's downwards; else upwards
 * @target: this member's, counted so
 */
struct search {
	const struct sets *p;
	const struct swc_line *l;
	uint32_t dim, root, me, target;
	bool turned;
	struct stay *stay;
};

/* Count a coordinate from the root's, or back. */
static uint32_t counted(const struct search *f, uint32_t x)
{
	uint32_t v = f->turned ? f->root + f->l->m - x : x + f->l->m - f->root;

	return v < f->l->m ? v : v - f->l->m;
}

static uint32_t counted_back(const struct search *f, uint32_t v)
{
	uint32_t x = f->turned ? f->root + f->l->m - v : f->root + v;

	return x < f->l->m ? x : x - f->l->m;
}

/* The path to y is here from this step on. */
static void arrive(const struct search *f, uint32_t y, uint32_t before, uint32_t from)
{
	uint32_t to = f->p->lines.steps;

	if (y != f->me)
		to = f->p->lines.turn_at[f->dim][swc_line_when(f->l, f->me, y)];
	f->stay[y] = (struct stay){ .before = before, .from = (uint8_t)from, .to = (uint8_t)to };
}

/*
 * The paths along @n ways of the line, from the @first on, were at the counted coordinate @before, and
 * are at @x from step @from of the plan on. Ways that are equal up to a step lead to one coordinate
 * there.
 */
static void follow(const struct search *f, uint32_t first, uint32_t n, uint32_t before, uint32_t x,
		   uint32_t from)
{
	const struct swc_lines *lines = &f->p->lines;
	uint32_t without;

	if (x == f->target) {
		for (uint32_t i = first; i < first + n; i++) {
			uint32_t y = f->p->number->coord[f->dim][i];

			if (!swc_line_odd_one(f->l, y))
				arrive(f, counted_back(f, y), counted_back(f, before), from);
		}
		return;
	}
	for (uint32_t s = from; n && s < lines->steps; s++, n = without) {
		uint32_t k = lines->turn[s].step;

		without = n;
		if (lines->turn[s].dim != f->dim)
			continue;
		without = swc_ways_without(f->l->way + first, n, k);
		if (without < n)
			follow(f, first + without, n - without, x,
			       swc_swing_peer(f->l->m, x, k, f->l->mirror), s + 1);
	}
}

/*
 * How long the path of a line to each coordinate stays at this member's coordinate, in steps of the
 * plan; the lines of a path do not depend on each other. Ways from the root are those from 0, counted
 * from the root, or their mirror images. The last coordinate of odd d exchanges blocks directly.
 */
static void find_stays(const struct sets *p, uint32_t dim, uint32_t root, uint32_t me)
{
	const struct held *h = &p->held[dim];
	struct search f = { .p = p,
			    .l = &p->lines.line[dim],
			    .dim = dim,
			    .root = root,
			    .me = me,
			    .turned = root % 2,
			    .stay = h->stay };
	bool direct = swc_line_odd_one(f.l, root);

	for (uint32_t y = 0; y < f.l->d; y++) {
		h->stay[y].before = NOBODY;
		if (!direct && !swc_line_odd_one(f.l, y))
			continue;
		if (root == me)
			arrive(&f, y, root, 0);
		else if (y == me)
			arrive(&f, y, root, p->lines.turn_at[dim][swc_line_when(f.l, root, y)] + 1);
	}
	if (direct || swc_line_odd_one(f.l, me))
		return;
	f.target = counted(&f, me);
	follow(&f, 0, f.l->d, 0, 0, 0);
}

/* What the dimensions before one tell about the paths of blocks; @who: the member before this one */
struct passing {
	uint32_t from, to, who;
};

/* Blocks with the same coordinates up to a dimension: who is before this member on their paths? */
static void find_before(struct sets *p, const uint32_t *me, uint32_t dim, uint32_t block,
			struct passing so_far)
{
	const struct stay *v = p->held[dim].stay;

	block *= p->lines.line[dim].d;
	for (uint32_t y = 0; y < p->lines.line[dim].d; y++, v++) {
		struct passing now = so_far;

		if (v->before == NOBODY)
			continue;
		if (v->from > now.from || !dim) {
			now.from = v->from;
			now.who = swc_butterfly_member(p->b, dim, me[dim], v->before);
		}
		now.to = v->to < now.to ? v->to : now.to;
		if (now.from > now.to)
			continue;
		if (dim + 1 < p->lines.ndims)
			find_before(p, me, dim + 1, block + y, now);
		else
			p->before[p->number->of_member[block + y]] = now.who;
	}
}

static void find_paths(struct sets *p, const uint32_t *me)
{
	uint32_t root[SWC_TOPO_DIMS];

	swc_topo_coords(p->b->topo, p->b->root, root);
	for (uint32_t i = 0; i < p->lines.ndims; i++)
		find_stays(p, i, root[i], me[i]);
	memset(p->before, 0xff, p->b->n * sizeof(*p->before)); /* NOBODY */
	find_before(p, me, 0, 0, (struct passing){ .to = p->lines.steps });
}

/* ---- the plan ---- */

static void copy(struct sets *p, uint32_t number, uint32_t n, enum swc_buf from, enum swc_buf to,
		 uint32_t flags)
{
	/* Blocks of several shards may not stand together, and a local step has one range. */
	uint32_t each = p->b->rails.n ? 1 : n;

	for (uint32_t end = number + n; number < end; number += each) {
		swc_build_step(p->b, SWC_STEP_LOCAL);
		swc_build_send(p->b, p->b->me, from, p->at + number * p->stride, each);
		swc_build_recv(p->b, p->b->me, to, p->at + number * p->stride, each, flags);
	}
}

/* Sums of these blocks are stored: they need SCRATCH if that is the buffer for sums. */
static void need_sums(struct sets *p, const struct run *r)
{
	if (p->sums == SWC_BUF_SCRATCH)
		swc_build_scratch(p->b, p->at + r->first * p->stride,
				  (r->nblocks - 1) * p->stride + 1);
}

/*
 * The buffer with the blocks of a run: SEND, or the sums; contributions of a mixed run are copied
 * to the sums. So no member needs to know what is fresh at its partner.
 */
static enum swc_buf settle(struct sets *p, const struct run *r)
{
	uint32_t end = r->first + r->nblocks, nfresh = 0;

	for (uint32_t i = r->first; i < end; i++)
		nfresh += p->fresh[i];
	if (nfresh == r->nblocks)
		return SWC_BUF_SEND;
	need_sums(p, r);
	for (uint32_t i = r->first, n; i < end; i += n + 1) {
		for (n = 0; i + n < end && p->fresh[i + n]; n++)
			p->fresh[i + n] = false;
		if (n)
			copy(p, i, n, SWC_BUF_SEND, p->sums, 0);
	}
	return p->sums;
}

static void reduce_scatter(struct sets *p, uint32_t own)
{
	uint32_t last = p->nruns - 1;
	bool in_sums;

	memset(p->fresh, true, p->b->n * sizeof(*p->fresh));
	/* The last receive is the own block alone, except after folds. */
	while (!p->run[last].recv)
		last--;
	in_sums = p->run[last].first != own || p->run[last].nblocks > 1;
	for (uint32_t i = 0, end; i < p->nruns; i = end) {
		for (end = i; end < p->nruns && p->run[end].step == p->run[i].step; end++) {
			struct run *r = &p->run[end];

			r->from = (uint8_t)settle(p, r);
			if (!r->recv)
				continue;
			memset(p->fresh + r->first, false, r->nblocks);
			if (end != last || in_sums || p->result == p->sums)
				need_sums(p, r);
		}
		swc_build_step(p->b, SWC_STEP_NET);
		for (uint32_t j = i; j < end; j++) {
			const struct run *r = &p->run[j];
			uint32_t first = p->at + r->first * p->stride;
			bool final = j == last && !in_sums;

			if (r->recv)
				swc_build_recv_reduce(p->b, r->peer, final ? p->result : p->sums,
						      r->from, first, r->nblocks,
						      final ? SWC_XFER_FINAL : 0);
			else
				swc_build_send(p->b, r->peer, r->from, first, r->nblocks);
		}
	}
	if (in_sums)
		copy(p, own, 1, p->sums, p->result, SWC_XFER_FINAL);
}

/* Messages of a reduce-scatter that carry complete blocks: which of them, and in which direction? */
enum part {
	ALL_BACK,	/* an allgather: what was received is sent */
	OFF_PATHS_BACK, /* without what came past on the paths from the root */
	ON_PATHS,	/* on these paths only */
	ON_PATHS_BACK
};

/* The first of the numbers up to @end that is, or is not, in the range of paths that come here; else @end. */
static uint32_t next_passed(const struct sets *p, bool in, uint32_t number, uint32_t end)
{
	uint32_t first = p->passed.first, behind = first + p->passed.nblocks;

	if (in)
		number = number < first ? first : number < behind ? number : end;
	else if (number >= first && number < behind)
		number = behind;
	return number < end ? number : end;
}

/* The first of the numbers up to @end, and @end otherwise, that is (or, without @in, is not) in the part. */
static uint32_t next_in_part(const struct sets *p, const struct run *r, enum part part, bool in,
			     uint32_t number, uint32_t end)
{
	/* On the paths: those that come from the peer, or from anybody. */
	uint32_t who = r->recv ? r->peer : NOBODY;
	bool equal = r->recv == ((part != OFF_PATHS_BACK) == in);

	if (part == ALL_BACK)
		return in ? number : end;
	if (p->halves && r->recv && who != p->passed.who)
		return equal ? end : number;
	if (p->halves)
		return next_passed(p, equal == r->recv, number, end);
	while (number < end && (p->before[number] == who) != equal)
		number++;
	return number;
}

static void pass(struct sets *p, const struct run *r, bool send, uint32_t number, uint32_t n)
{
	uint32_t first = p->at + number * p->stride;

	if (send) {
		swc_build_send_stored(p->b, r->peer,
				      p->b->args->coll == SWC_BROADCAST ? swc_tree_down(p->b)
									: p->result,
				      first, n);
		return;
	}
	if (p->result == SWC_BUF_SCRATCH)
		swc_build_scratch(p->b, first, (n - 1) * p->stride + 1);
	swc_build_recv(p->b, r->peer, p->result, first, n, swc_tree_down_flags(p->b, r->peer));
}

static void pass_part(struct sets *p, const struct run *r, enum part part)
{
	bool send = r->recv == (part != ON_PATHS);

	uint32_t end = r->first + r->nblocks, first = r->first, next;

	for (; (first = next_in_part(p, r, part, true, first, end)) < end; first = next) {
		next = next_in_part(p, r, part, false, first, end);
		pass(p, r, send, first, next - first);
	}
}

static void pass_on(struct sets *p, enum part part)
{
	bool back = part != ON_PATHS;

	for (uint32_t done = 0, n; done < p->nruns; done += n) {
		const struct run *r = &p->run[back ? p->nruns - 1 - done : done];

		for (n = 1; done + n < p->nruns && (back ? r[-(int32_t)n] : r[n]).step == r->step;)
			n++;
		r -= back ? n - 1 : 0;
		swc_build_step(p->b, SWC_STEP_NET);
		for (int recv = 0; recv <= 1; recv++)
			for (uint32_t i = 0; i < n; i++)
				if (r[i].recv == (recv != back))
					pass_part(p, &r[i], part);
	}
}

static void build_port(struct sets *p)
{
	uint32_t coord[SWC_TOPO_DIMS];
	struct swc_builder *b = p->b;
	enum swc_coll coll = b->args->coll;
	uint32_t own = b->me;

	swc_topo_coords(b->topo, b->me, coord);
	if (p->halves) {
		own = swc_numbers_one(&p->lines, coord);
		list_halves(p, coord, own);
	} else {
		if (p->number) {
			swc_numbers_find(p->number, &p->lines);
			own = p->number->of_member[own];
		}
		list_runs(p, coord);
	}
	if (b->error)
		return;
	if (p->before && p->halves)
		follow_halves(p, own);
	else if (p->before)
		find_paths(p, coord);
	if (coll == SWC_ALLGATHER)
		copy(p, own, 1, SWC_BUF_SEND, SWC_BUF_RECV, SWC_XFER_FINAL);
	else if (coll == SWC_BROADCAST)
		pass_on(p, ON_PATHS);
	else
		reduce_scatter(p, own);
	if (coll == SWC_BROADCAST)
		pass_on(p, OFF_PATHS_BACK);
	else if (coll == SWC_REDUCE)
		pass_on(p, ON_PATHS_BACK);
	else if (coll != SWC_REDUCE_SCATTER)
		pass_on(p, ALL_BACK);
	swc_tree_copy_at_root(b, p->at, b->n);
}

int swc_butterfly_sets_build(struct swc_builder *b, bool swing, uint32_t ports)
{
	enum swc_coll coll = b->args->coll;
	bool shares = coll != SWC_REDUCE_SCATTER && coll != SWC_ALLGATHER, ready = true;
	struct swc_numbers numbers;
	struct sets p;

	/* A member sends each block but its own, one by one if they do not stand together. */
	if (!shares && ports > 1 &&
	    (b->n - 1ull) * ports > SWC_MAX_PLAN_BYTES / sizeof(struct swc_plan_xfer))
		return swc_build_refuse(b, "the plan would have more than %u bytes",
					SWC_MAX_PLAN_BYTES);
	p = (struct sets){
		.b = b,
		.stride = shares ? 1 : ports,
		.sums = shares ? swc_tree_sums(b) : SWC_BUF_SCRATCH,
		.result = swc_tree_sums(b),
		.number = shares ? &numbers : NULL,
		.set = calloc(b->n, 2 * sizeof(*p.set)),
		.before = swc_coll_has_root(coll) ? malloc(b->n * sizeof(*p.before)) : NULL,
		.fresh = malloc(b->n * sizeof(*p.fresh)),
	};

	for (uint32_t i = 0; i < b->topo->ndims; i++) {
		struct held *h = &p.held[i];

		h->coord = malloc(b->topo->dim[i] * sizeof(*h->coord));
		h->stay = malloc(b->topo->dim[i] * sizeof(*h->stay));
		ready &= h->coord && h->stay;
	}
	if (shares)
		ready &= !swc_numbers_open(&numbers, b->topo);
	if (swc_lines_open(&p.lines, b->topo, swing) || !ready || !p.set ||
	    (swc_coll_has_root(coll) && !p.before) || !p.fresh)
		b->error = -ENOMEM;
	swc_build_blocks(b, ports * (shares ? b->n : 1));
	for (uint32_t c = 0; c < ports && !b->error; c++) {
		swc_lines_set_port(&p.lines, c);
		p.halves = shares && swc_numbers_separate(&p.lines);
		p.at = shares ? c * b->n : c;
		swc_build_channel(b, c * b->n, b->n);
		build_port(&p);
	}
	swc_lines_free(&p.lines);
	for (uint32_t i = 0; i < b->topo->ndims; i++) {
		free(p.held[i].coord);
		free(p.held[i].stay);
	}
	if (shares)
		swc_numbers_free(&numbers);
	free(p.set);
	free(p.before);
	free(p.fresh);
	free(p.run);
	return 0;
}

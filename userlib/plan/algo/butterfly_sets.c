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
 * Swing, even d: a block that could be sent in several steps is sent in the last of them, so that
 * its receivers can still send it on. All coordinates look alike except for the sign, and one table
 * serves all: even x sends block b when 0 sends b - x, odd x when 0 sends x - b. Odd d: d - 1
 * coordinates do the same. The last one exchanges with each of them once, half of them in the first
 * step, half of the rest in the second and so on, and they swap their sums of their own two blocks.
 *
 * Recursive doubling: x sends block b in the step of the lowest bit in which they differ. Other
 * sizes are folded as in butterfly.c, but a folded coordinate keeps its own block, and gets the
 * rest of it in one more step.
 *
 * De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth allreduce",
 * NSDI 2024.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/algo/butterfly_peers.h"
#include "plan/algo/butterfly_sets.h"
#include "plan/table.h"

/**
 * struct line - schedule of a dimension
 * @d: its size
 * @m: coordinates that take part: an even number, or a power of two
 * @log: steps among these
 * @nsteps: steps with folds
 * @when: Swing: the step in which coordinate 0 sends block b
 * @held: coordinates whose blocks this member has not sent along this dimension, ascending
 */
struct line {
	uint32_t d, m, log, nsteps;
	uint8_t *when;
	uint32_t *held, nheld;
};

/*
 * Consecutive blocks of a message to or from @peer, by their numbers within the port.
 */
struct run {
	uint32_t step, peer, first, nblocks;
	bool recv;
	enum swc_buf from; /* the sum so far of this member */
};

/**
 * struct sets - one port's plan
 * @at, @stride: number n of the port is block at + n * stride
 * @sums: buffer with the sums, once something was added
 * @number: of the block of each member; NULL: as the member
 * @fresh: by number: nothing was added yet, the contribution is in SEND; before that, room for marks
 * @set: room for the blocks of a message
 */
struct sets {
	struct swc_builder *b;
	bool swing, mirror;
	uint32_t ndims;
	struct line line[SWC_TOPO_DIMS];
	struct swc_turn turn[SWC_BUTTERFLY_STEPS];
	uint32_t steps;
	uint32_t at, stride;
	enum swc_buf sums;
	uint32_t *number, *set;
	bool *fresh;
	struct run *run;
	uint32_t nruns, room;
};

/* ---- lines ---- */

/* The coordinate that x has in the schedule that is not mirrored. */
static uint32_t reflect(const struct sets *p, const struct line *l, uint32_t x)
{
	return p->mirror && x && x < l->m ? l->m - x : x;
}

/*
 * Odd d: the last coordinate exchanges with *n others in step k; the first of them, reflected, is
 * returned.
 */
static uint32_t met_from(const struct line *l, uint32_t k, uint32_t *n)
{
	uint32_t first = 0, left = l->m;

	for (uint32_t i = 0; i < k; i++) {
		first += (left + 1) / 2;
		left /= 2;
	}
	*n = k + 1 == l->log ? left : (left + 1) / 2;
	return first;
}

/* Odd d: the step in which the last coordinate exchanges with x. */
static uint32_t met_in(const struct sets *p, const struct line *l, uint32_t x)
{
	uint32_t k = 0, n;

	while (reflect(p, l, x) >= met_from(l, k, &n) + n)
		k++;
	return k;
}

static bool odd_one(const struct sets *p, const struct line *l, uint32_t x)
{
	return p->swing && x == l->m;
}

/* The step in which x sends block y, x != y. */
static uint32_t when(const struct sets *p, const struct line *l, uint32_t x, uint32_t y)
{
	uint32_t k = 0;

	if (odd_one(p, l, x) || odd_one(p, l, y))
		return met_in(p, l, x == l->m ? y : x);
	if (p->swing) {
		x = reflect(p, l, x);
		y = reflect(p, l, y);
		x = x % 2 ? x + l->m - y : y + l->m - x;
		return l->when[x < l->m ? x : x - l->m];
	}
	if (x >= l->m)
		return 0;
	y -= y >= l->m ? l->d - l->m : 0;
	if (x == y)
		return l->log + 1;
	while (!((x ^ y) >> k & 1))
		k++;
	return k + (l->d > l->m);
}

/* The coordinate that x sends block y to in step k. */
static uint32_t receiver(const struct sets *p, const struct line *l, uint32_t x, uint32_t y,
			 uint32_t k)
{
	uint32_t fold = l->d > l->m;

	if (p->swing)
		return odd_one(p, l, x) || odd_one(p, l, y) ? y
							    : swc_swing_peer(l->m, x, k, p->mirror);
	if (x >= l->m)
		return x - (l->d - l->m);
	return k > l->log ? y : swc_doubling_peer(l->m, x, k - fold, p->mirror);
}

/* The i-th coordinate that x exchanges with in step k; l->d if there are fewer. */
static uint32_t peer(const struct sets *p, const struct line *l, uint32_t x, uint32_t k, uint32_t i)
{
	uint32_t fold = l->d - l->m, first, n;

	if (odd_one(p, l, x)) {
		first = met_from(l, k, &n);
		return i < n ? reflect(p, l, first + i) : l->d;
	}
	if (p->swing && i == 1 && fold && met_in(p, l, x) == k)
		return l->m;
	if (i)
		return l->d;
	if (p->swing)
		return swc_swing_peer(l->m, x, k, p->mirror);
	if (fold && (k == 0 || k > l->log))
		return x >= l->m ? x - fold : x + fold >= l->m ? x + fold : l->d;
	return x < l->m ? swc_doubling_peer(l->m, x, k - !!fold, p->mirror) : l->d;
}

/* The blocks that x sends to y in step k, ascending; x or y is this member. Returns how many. */
static uint32_t blocks_sent(const struct sets *p, const struct line *l, uint32_t x, uint32_t y,
			    uint32_t k, uint32_t *out)
{
	uint32_t n = 0;
	bool only;

	if (odd_one(p, l, x) || odd_one(p, l, y)) {
		*out = y;
		return 1;
	}
	/* Swing: all that x sends in a step goes to one other, except to the last coordinate. */
	only = p->swing && swc_swing_peer(l->m, x, k, p->mirror) == y;
	for (uint32_t i = 0; i < l->nheld; i++) {
		uint32_t z = l->held[i];

		if (z != x && when(p, l, x, z) == k &&
		    ((only && z < l->m) || receiver(p, l, x, z, k) == y))
			out[n++] = z;
	}
	return n;
}

/*
 * Swing's table, backwards from what 0 has after the last step: its own block. Before a step, it
 * also has what its partner has after it, which is the mirror image of what 0 has.
 */
static void fill_when(const struct line *l, uint32_t *held)
{
	uint32_t n = 1;

	memset(l->when, UINT8_MAX, l->m);
	l->when[0] = 0;
	held[0] = 0;
	for (uint32_t k = l->log; k-- > 0;) {
		uint32_t q = swc_swing_peer(l->m, 0, k, false);

		for (uint32_t i = n; i-- > 0;) {
			uint32_t y = (q + l->m - held[i]) % l->m;

			if (l->when[y] != UINT8_MAX)
				continue;
			l->when[y] = (uint8_t)k;
			held[n++] = y;
		}
	}
}

static void open_line(struct sets *p, struct line *l, uint32_t d)
{
	l->d = d;
	l->m = d - d % 2;
	if (p->swing) {
		while (1u << l->log < l->m)
			l->log++;
		l->nsteps = l->log;
	} else {
		while (d >> l->log > 1)
			l->log++;
		l->m = 1u << l->log;
		l->nsteps = l->log + (d > l->m ? 2 : 0);
	}
	l->held = malloc(d * sizeof(*l->held));
	l->when = malloc(d);
	if (!l->held || !l->when)
		p->b->error = -ENOMEM;
	else if (p->swing && l->m)
		fill_when(l, l->held);
}

/* ---- the blocks of a message ---- */

static int ascending64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Sort numbers of blocks, many of them by marks. */
static void sort_set(struct sets *p, uint32_t n)
{
	if (n < p->b->n / 32) {
		qsort(p->set, n, sizeof(*p->set), ascending);
		return;
	}
	memset(p->fresh, false, p->b->n * sizeof(*p->fresh));
	for (uint32_t i = 0; i < n; i++)
		p->fresh[p->set[i]] = true;
	n = 0;
	for (uint32_t i = 0; i < p->b->n; i++)
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
	for (uint32_t j = 0; j < p->ndims; j++) {
		const struct line *l = &p->line[j];
		const uint32_t *with = j == dim ? line_set : l->held;
		uint32_t nwith = j == dim ? nline : l->nheld;

		for (uint32_t i = n; i-- > 0;) {
			uint32_t base = p->set[i] * l->d;

			for (uint32_t k = nwith; k-- > 0;)
				p->set[i * nwith + k] = base + with[k];
		}
		n *= nwith;
	}
	if (p->number) {
		for (uint32_t i = 0; i < n; i++)
			p->set[i] = p->number[p->set[i]];
		sort_set(p, n);
	}
	return n;
}

static void add_run(struct sets *p, const struct run *r)
{
	struct run *last = p->nruns ? &p->run[p->nruns - 1] : NULL;

	if (last && p->stride == 1 && last->step == r->step && last->peer == r->peer &&
	    last->recv == r->recv && last->first + last->nblocks == r->first) {
		last->nblocks++;
		return;
	}
	if (!swc_table_reserve(&p->run, p->nruns, &p->room, sizeof(*p->run))) {
		p->b->error = -ENOMEM;
		return;
	}
	p->run[p->nruns++] = *r;
}

/* The messages of turn s, sent or received. */
static void list_turn(struct sets *p, uint32_t s, bool recv, const uint32_t *coord)
{
	uint32_t dim = p->turn[s].dim, k = p->turn[s].step, x = coord[dim], q, n;
	const struct line *l = &p->line[dim];
	uint32_t *line_set = p->set + p->b->n;

	for (uint32_t i = 0; (q = peer(p, l, x, k, i)) < l->d && !p->b->error; i++) {
		struct run r = { .step = s,
				 .peer = swc_butterfly_member(p->b, dim, x, q),
				 .nblocks = 1,
				 .recv = recv };

		n = blocks_sent(p, l, recv ? q : x, recv ? x : q, k, line_set);
		n = multiply(p, dim, line_set, n);
		for (uint32_t j = 0; !p->b->error && j < n; j++) {
			r.first = p->set[j];
			add_run(p, &r);
		}
	}
}

static void list_runs(struct sets *p, const uint32_t *coord)
{
	p->nruns = 0;
	for (uint32_t j = 0; j < p->ndims; j++) {
		struct line *l = &p->line[j];

		for (l->nheld = 0; l->nheld < l->d; l->nheld++)
			l->held[l->nheld] = l->nheld;
	}
	for (uint32_t s = 0; s < p->steps; s++) {
		uint32_t x = coord[p->turn[s].dim], kept = 0;
		struct line *l = &p->line[p->turn[s].dim];

		list_turn(p, s, false, coord);
		list_turn(p, s, true, coord);
		for (uint32_t i = 0; i < l->nheld; i++)
			if (l->held[i] == x || when(p, l, x, l->held[i]) != p->turn[s].step)
				l->held[kept++] = l->held[i];
		l->nheld = kept;
	}
}

/*
 * The steps on the way from coordinate 0 of a line to each coordinate, as bits, the first step of the
 * plan highest. @turn_at: by step of the line, its step in the plan
 *
 * The way from an odd coordinate is the mirror image of one from 0, which is a later step's: so ways
 * with one step less are known.
 */
static void find_ways(const struct sets *p, const struct line *l, const uint32_t *turn_at,
		      uint64_t *way)
{
	way[0] = 0;
	for (uint32_t k = l->log; k-- > 0;) {
		uint32_t q = swc_swing_peer(l->m, 0, k, p->mirror);

		for (uint32_t y = 1; y < l->m; y++)
			if (when(p, l, 0, y) == k)
				way[y] = 1ull << (63 - turn_at[k]) | way[(q + l->m - y) % l->m];
	}
	if (l->d > l->m && l->m)
		way[l->m] = 1ull << (63 - turn_at[met_in(p, l, 0)]);
}

/* Sort n numbers, ascending up to the bits of steps, by counting if these are few. */
static void sort_ways(const struct sets *p, const uint64_t *way, uint32_t n, uint64_t *sorted)
{
	uint32_t shift = 64 - p->steps, *at;

	at = p->steps && p->steps <= 16 ? calloc((1u << p->steps) + 1, sizeof(*at)) : NULL;
	if (!at) {
		memcpy(sorted, way, n * sizeof(*way));
		qsort(sorted, n, sizeof(*sorted), ascending64);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		at[(way[i] >> shift) + 1]++;
	for (uint32_t k = 0; k < 1u << p->steps; k++)
		at[k + 1] += at[k];
	for (uint32_t i = 0; i < n; i++)
		sorted[at[way[i] >> shift]++] = way[i];
	free(at);
}

/*
 * Number the blocks in the order of the tree along which member 0 sends them, those that are sent
 * first last. A member exchanges with one other in a step (except the last coordinate of odd d), so
 * the steps on the way to a block identify it; those of each dimension do not depend on the others.
 * On powers of two this makes every message one run, elsewhere nearly so.
 */
static void number_blocks(struct sets *p)
{
	uint32_t n = p->b->n, turn_at[SWC_TOPO_DIMS][SWC_BUTTERFLY_STEPS], have = 1;
	uint64_t *way = calloc(n + 1ull, sizeof(*way)),
		 *of_line = calloc(n + 1ull, sizeof(*of_line));

	if (!way || !of_line) {
		p->b->error = -ENOMEM;
		goto out;
	}
	for (uint32_t s = 0; s < p->steps; s++)
		turn_at[p->turn[s].dim][p->turn[s].step] = s;
	for (uint32_t j = 0; j < p->ndims; j++) {
		uint32_t d = p->line[j].d;

		find_ways(p, &p->line[j], turn_at[j], of_line);
		for (uint32_t i = have; i-- > 0;)
			for (uint32_t y = d; y-- > 0;)
				way[i * d + y] = way[i] | of_line[y];
		have *= d;
	}
	for (uint32_t y = 0; y < n; y++)
		way[y] |= y;
	sort_ways(p, way, n, of_line);
	for (uint32_t i = 0; i < n; i++)
		p->number[(uint32_t)of_line[i]] = i;
out:
	free(way);
	free(of_line);
}

/* ---- the plan ---- */

static void copy(struct sets *p, uint32_t number, uint32_t n, enum swc_buf from, enum swc_buf to,
		 uint32_t flags)
{
	swc_build_step(p->b, SWC_STEP_LOCAL);
	swc_build_send(p->b, p->b->me, from, p->at + number * p->stride, n);
	swc_build_recv(p->b, p->b->me, to, p->at + number * p->stride, n, flags);
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

			r->from = settle(p, r);
			if (!r->recv)
				continue;
			memset(p->fresh + r->first, false, r->nblocks);
			if (end != last || in_sums)
				need_sums(p, r);
		}
		swc_build_step(p->b, SWC_STEP_NET);
		for (uint32_t j = i; j < end; j++) {
			const struct run *r = &p->run[j];
			uint32_t first = p->at + r->first * p->stride;
			bool final = j == last && !in_sums;

			if (r->recv)
				swc_build_recv_reduce(p->b, r->peer, final ? SWC_BUF_RECV : p->sums,
						      r->from, first, r->nblocks,
						      final ? SWC_XFER_FINAL : 0);
			else
				swc_build_send(p->b, r->peer, r->from, first, r->nblocks);
		}
	}
	if (in_sums)
		copy(p, own, 1, p->sums, SWC_BUF_RECV, SWC_XFER_FINAL);
}

/* The allgather is the reduce-scatter backwards: what was received is sent. */
static void allgather(struct sets *p)
{
	for (uint32_t i = p->nruns, end; i > 0;) {
		for (end = i; i > 0 && p->run[i - 1].step == p->run[end - 1].step;)
			i--;
		swc_build_step(p->b, SWC_STEP_NET);
		for (int send = 1; send >= 0; send--)
			for (uint32_t j = i; j < end; j++) {
				const struct run *r = &p->run[j];
				uint32_t first = p->at + r->first * p->stride;

				if (r->recv && send)
					swc_build_send_stored(p->b, r->peer, SWC_BUF_RECV, first,
							      r->nblocks);
				if (!r->recv && !send)
					swc_build_recv(p->b, r->peer, SWC_BUF_RECV, first,
						       r->nblocks, 0);
			}
	}
}

static void build_port(struct sets *p)
{
	uint32_t coord[SWC_TOPO_DIMS];
	struct swc_builder *b = p->b;
	enum swc_coll coll = b->args->coll;
	uint32_t own = b->me;

	swc_topo_coords(b->topo, b->me, coord);
	if (p->number) {
		number_blocks(p);
		own = p->number[own];
	}
	if (!b->error)
		list_runs(p, coord);
	if (b->error)
		return;
	if (coll == SWC_ALLGATHER)
		copy(p, own, 1, SWC_BUF_SEND, SWC_BUF_RECV, SWC_XFER_FINAL);
	else
		reduce_scatter(p, own);
	if (coll != SWC_REDUCE_SCATTER)
		allgather(p);
}

int swc_butterfly_sets_build(struct swc_builder *b, bool swing, uint32_t ports)
{
	bool shares = b->args->coll == SWC_ALLREDUCE;
	struct sets p = {
		.b = b,
		.swing = swing,
		.ndims = b->topo->ndims,
		.stride = shares ? 1 : ports,
		.sums = shares ? SWC_BUF_RECV : SWC_BUF_SCRATCH,
		.number = shares ? malloc(b->n * sizeof(*p.number)) : NULL,
		.set = calloc(b->n, 2 * sizeof(*p.set)),
		.fresh = malloc(b->n * sizeof(*p.fresh)),
	};
	uint32_t nsteps[SWC_TOPO_DIMS];

	if ((shares && !p.number) || !p.set || !p.fresh)
		b->error = -ENOMEM;
	for (uint32_t i = 0; i < p.ndims; i++) {
		open_line(&p, &p.line[i], b->topo->dim[i]);
		nsteps[i] = p.line[i].nsteps;
	}
	swc_build_blocks(b, ports * (shares ? b->n : 1));
	for (uint32_t c = 0; c < ports && !b->error; c++) {
		p.mirror = c >= p.ndims;
		p.at = shares ? c * b->n : c;
		p.steps = swc_butterfly_turns(nsteps, p.ndims, c, p.turn);
		swc_build_channel(b, c * b->n, b->n);
		build_port(&p);
	}
	for (uint32_t i = 0; i < p.ndims; i++) {
		free(p.line[i].when);
		free(p.line[i].held);
	}
	free(p.number);
	free(p.set);
	free(p.fresh);
	free(p.run);
	return 0;
}

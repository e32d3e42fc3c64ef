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

/**
 * struct run - consecutive blocks of a message, by their numbers within the port
 * @path, @npaths: stretches of them that are on paths from the root; if they are received, on paths that
 *	come from @peer
 * @from: enum swc_buf: the sum so far of this member
 */
struct run {
	uint32_t peer, first, nblocks;
	uint32_t path, npaths;
	uint8_t step;
	bool recv;
	uint8_t from;
};

/* The coordinates of a product of blocks, by dimension. */
struct parts {
	struct swc_stretches dim[SWC_TOPO_DIMS];
};

/**
 * struct sets - one port's plan
 * @axis: by dimension
 * @at, @stride: number n of the port is block at + n * stride
 * @sums: buffer with the sums, once something was added
 * @result: buffer with the own block
 * @numbered: by ways; else blocks have the numbers of members
 * @rooted: BROADCAST and REDUCE: there are paths from the root
 * @halves: all sides are powers of two, so that each message is half of the range that a member has
 * @passed: of @halves: the range of the blocks whose paths come here, and who is before this member on all of
 *	them
 * @all, @on_paths: of the message that is being listed: its blocks, and those that are on paths
 * @now: a run of it without blocks
 * @message: its first run; then the first that may have blocks on paths which are not listed yet
 * @each: transfers that a run becomes at least: two in an allreduce, there and back
 * @fresh: a bit by number: nothing was added yet, the contribution is in SEND
 */
struct sets {
	struct swc_builder *b;
	struct swc_lines lines;
	struct swc_axis axis[SWC_TOPO_DIMS];
	uint32_t at, stride;
	enum swc_buf sums, result;
	bool numbered, rooted, halves;
	struct {
		uint32_t first, nblocks, who;
	} passed;
	struct parts all, on_paths;
	struct run now;
	uint32_t message, each;
	uint64_t *fresh;
	struct run *run;
	struct swc_stretch *path;
	uint32_t nruns, room, npaths, path_room;
};

/* ---- the blocks of a message ---- */

static bool add_run(struct sets *p, uint32_t first, uint32_t n)
{
	struct run *last = p->nruns > p->message ? &p->run[p->nruns - 1] : NULL;

	if (last && p->stride == 1 && last->first + last->nblocks == first) {
		last->nblocks += n;
		return true;
	}
	/* Each becomes a transfer at least: refuse here what would need too much memory before. */
	if (p->nruns * p->each + p->b->w.hdr.nxfers >=
	    SWC_MAX_PLAN_BYTES / sizeof(struct swc_plan_xfer))
		p->b->error = swc_build_refuse(p->b, "the plan would have more than %u bytes",
					       SWC_MAX_PLAN_BYTES);
	else if (!swc_table_reserve(&p->run, p->nruns, &p->room, sizeof(*p->run)))
		p->b->error = -ENOMEM;
	if (p->b->error)
		return false;
	p->run[p->nruns] = p->now;
	p->run[p->nruns].first = first;
	p->run[p->nruns++].nblocks = n;
	return true;
}

/* Blocks of the message; those that do not stand together are runs of their own. */
static bool add_blocks(void *arg, uint32_t first, uint32_t n)
{
	struct sets *p = arg;
	uint32_t each = p->stride == 1 ? n : 1;
	bool good = true;

	for (uint32_t end = first + n; first < end && good; first += each)
		good = add_run(p, first, each);
	return good;
}

/* Blocks of the message that are on paths, in ascending order. */
static bool add_on_path(void *arg, uint32_t first, uint32_t n)
{
	struct sets *p = arg;
	struct run *r;
	struct swc_stretch *last;

	while (first >= p->run[p->message].first + p->run[p->message].nblocks)
		p->message++;
	r = &p->run[p->message];
	last = r->npaths ? &p->path[p->npaths - 1] : NULL;
	if (last && last->first + last->n == first) {
		last->n += n;
		return true;
	}
	if (!swc_table_reserve(&p->path, p->npaths, &p->path_room, sizeof(*p->path))) {
		p->b->error = -ENOMEM;
		return false;
	}
	r->path = r->npaths++ ? r->path : p->npaths;
	p->path[p->npaths++] = (struct swc_stretch){ first, n };
	return true;
}

static void begin_message(struct sets *p, uint32_t s, bool recv, uint32_t peer)
{
	p->now = (struct run){ .peer = peer, .step = (uint8_t)s, .recv = recv };
	p->message = p->nruns;
}

/* The message with coordinate q in a step; the other dimensions' coordinates are known. */
static bool list_message(struct sets *p, uint32_t dim, uint32_t q)
{
	struct swc_stretches *all = &p->all.dim[dim], *on_paths = &p->on_paths.dim[dim];
	struct swc_axis *a = &p->axis[dim];
	uint32_t s = p->now.step;

	if (p->now.recv ? !swc_axis_receive(a, s, q, false, all)
			: !swc_axis_send(a, s, q, SWC_AXIS_ANY, all))
		return false;
	swc_numbers_each(&p->lines, p->numbered, p->all.dim, add_blocks, p);
	if (!p->rooted || p->b->error)
		return true;
	if (p->now.recv ? !swc_axis_receive(a, s, q, true, on_paths)
			: !swc_axis_send(a, s, q, s, on_paths))
		return false;
	swc_numbers_each(&p->lines, p->numbered, p->on_paths.dim, add_on_path, p);
	return true;
}

/* The messages of turn s, sent or received. */
static bool list_turn(struct sets *p, uint32_t s, bool recv)
{
	uint32_t dim = p->lines.turn[s].dim, k = p->lines.turn[s].step, q;
	const struct swc_line *l = &p->lines.line[dim];
	uint32_t me = p->axis[dim].me;
	bool good = true;

	for (uint32_t j = 0; j < p->lines.ndims && good; j++) {
		if (j == dim)
			continue;
		good = swc_axis_hold(&p->axis[j], SWC_AXIS_ANY, &p->all.dim[j]) &&
		       (!p->rooted || swc_axis_hold(&p->axis[j], s, &p->on_paths.dim[j]));
	}
	for (uint32_t i = 0; good && !p->b->error && (q = swc_line_peer(l, me, k, i)) < l->d; i++) {
		begin_message(p, s, recv, swc_butterfly_member(p->b, dim, me, q));
		good = list_message(p, dim, q);
	}
	return good;
}

static bool set_own(void *arg, uint32_t first, uint32_t n)
{
	*(uint32_t *)arg = first;
	return n > 1;
}

/* All messages of the port; *own: the number of this member's block. */
static void list_runs(struct sets *p, const uint32_t *coord, uint32_t *own)
{
	uint32_t root[SWC_TOPO_DIMS];
	bool good = true;

	swc_topo_coords(p->b->topo, p->b->root, root);
	for (uint32_t j = 0; j < p->lines.ndims && good; j++)
		good = swc_axis_find(&p->axis[j], coord[j], root[j]);
	for (uint32_t s = 0; s < p->lines.steps && good && !p->b->error; s++) {
		good = list_turn(p, s, false);
		/* What comes in a step is not sent in it. */
		swc_axis_sent(&p->axis[p->lines.turn[s].dim], s);
		good = good && list_turn(p, s, true);
	}
	for (uint32_t j = 0; j < p->lines.ndims && good; j++)
		good = swc_axis_own(&p->axis[j], &p->all.dim[j]);
	if (good)
		swc_numbers_each(&p->lines, p->numbered, p->all.dim, set_own, own);
	else
		p->b->error = -ENOMEM;
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

static void add_half(struct sets *p, uint32_t first, uint32_t n)
{
	uint32_t end = first + n, passed_end = p->passed.first + p->passed.nblocks;

	add_run(p, first, n);
	if (!p->rooted || p->b->error || (p->now.recv && p->now.peer != p->passed.who))
		return;
	first = first > p->passed.first ? first : p->passed.first;
	end = end < passed_end ? end : passed_end;
	if (first < end)
		add_on_path(p, first, end - first);
}

static void list_halves(struct sets *p, const uint32_t *coord, uint32_t own)
{
	for (uint32_t s = 0; s < p->lines.steps; s++) {
		uint32_t dim = p->lines.turn[s].dim, n, kept = range_before(p, s + 1, own, &n);
		uint32_t peer = swc_butterfly_member(p->b, dim, coord[dim], peer_in(p, s, coord));

		begin_message(p, s, false, peer);
		add_half(p, kept ^ n, n);
		begin_message(p, s, true, peer);
		add_half(p, kept, n);
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

/* ---- marks by number ---- */

/* The first number from @number on that is (or, without @fresh, is not) fresh; @end if none is before it. */
static uint32_t next_fresh(const struct sets *p, bool fresh, uint32_t number, uint32_t end)
{
	while (number < end) {
		uint64_t marks = fresh ? p->fresh[number / 64] : ~p->fresh[number / 64];

		marks >>= number % 64;
		if (marks) {
			number += (uint32_t)__builtin_ctzll(marks);
			break;
		}
		number += 64 - number % 64;
	}
	return number < end ? number : end;
}

static void set_not_fresh(struct sets *p, uint32_t first, uint32_t n)
{
	for (uint32_t end = first + n, next; first < end; first = next) {
		uint64_t marks = UINT64_MAX << first % 64;

		next = first + 64 - first % 64;
		if (next > end)
			marks &= UINT64_MAX >> (next - end);
		p->fresh[first / 64] &= ~marks;
	}
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
	uint32_t end = r->first + r->nblocks;

	if (next_fresh(p, false, r->first, end) == end)
		return SWC_BUF_SEND;
	need_sums(p, r);
	for (uint32_t i = r->first, n; (i = next_fresh(p, true, i, end)) < end; i += n) {
		n = next_fresh(p, false, i, end) - i;
		copy(p, i, n, SWC_BUF_SEND, p->sums, 0);
	}
	set_not_fresh(p, r->first, r->nblocks);
	return p->sums;
}

static void reduce_scatter(struct sets *p, uint32_t own)
{
	uint32_t last = p->nruns - 1;
	bool in_sums;

	memset(p->fresh, 0xff, (p->b->n / 64 + 1) * sizeof(*p->fresh));
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
			set_not_fresh(p, r->first, r->nblocks);
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
	uint32_t end = r->first + r->nblocks, first = r->first;

	if (part == ALL_BACK) {
		pass(p, r, send, first, r->nblocks);
		return;
	}
	for (uint32_t i = 0; i < r->npaths; i++) {
		const struct swc_stretch *path = &p->path[r->path + i];

		if (part != OFF_PATHS_BACK)
			pass(p, r, send, path->first, path->n);
		else if (first < path->first)
			pass(p, r, send, first, path->first - first);
		first = path->first + path->n;
	}
	if (part == OFF_PATHS_BACK && first < end)
		pass(p, r, send, first, end - first);
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
	uint32_t own;

	swc_topo_coords(b->topo, b->me, coord);
	p->nruns = p->npaths = 0;
	if (p->halves) {
		own = swc_numbers_one(&p->lines, coord);
		if (p->rooted)
			follow_halves(p, own);
		list_halves(p, coord, own);
	} else {
		list_runs(p, coord, &own);
	}
	if (b->error)
		return;
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

static bool open_axes(struct sets *p, bool swing)
{
	bool good = !swc_lines_open(&p->lines, p->b->topo, swing);

	for (uint32_t j = 0; j < p->lines.ndims && good; j++)
		good = !swc_axis_open(&p->axis[j], &p->lines, j, p->numbered, p->rooted);
	return good;
}

static void close_axes(struct sets *p)
{
	for (uint32_t j = 0; j < p->lines.ndims; j++) {
		swc_axis_free(&p->axis[j]);
		free(p->all.dim[j].stretch);
		free(p->on_paths.dim[j].stretch);
	}
	swc_lines_free(&p->lines);
}

/* How many transfers a port has at least, so that those with too many are refused before they are listed. */
static uint64_t least_transfers(const struct swc_builder *b, bool swing, uint32_t stride)
{
	uint32_t coord[SWC_TOPO_DIMS];
	uint64_t n = 0;

	/* A member sends each block but its own, one by one if they do not stand together. */
	if (stride > 1)
		return b->n - 1;
	/* The last coordinate of an odd side sends to each other one and receives from it. */
	swc_topo_coords(b->topo, b->me, coord);
	for (uint32_t j = 0; j < b->topo->ndims; j++) {
		uint32_t d = b->topo->dim[j];

		if (swing && d % 2 && coord[j] == d - 1)
			n += 2ull * (d - 1);
	}
	return n;
}

int swc_butterfly_sets_build(struct swc_builder *b, bool swing, uint32_t ports)
{
	enum swc_coll coll = b->args->coll;
	bool shares = coll != SWC_REDUCE_SCATTER && coll != SWC_ALLGATHER;
	struct sets p;

	if (least_transfers(b, swing, shares ? 1 : ports) * ports >
	    SWC_MAX_PLAN_BYTES / sizeof(struct swc_plan_xfer))
		return swc_build_refuse(b, "the plan would have more than %u bytes",
					SWC_MAX_PLAN_BYTES);
	p = (struct sets){
		.b = b,
		.stride = shares ? 1 : ports,
		.sums = shares ? swc_tree_sums(b) : SWC_BUF_SCRATCH,
		.result = swc_tree_sums(b),
		.numbered = shares,
		.rooted = swc_coll_has_root(coll),
		.each = coll == SWC_ALLREDUCE ? 2 : 1,
		.fresh = malloc((b->n / 64 + 1) * sizeof(*p.fresh)),
	};

	if (!p.fresh || !open_axes(&p, swing))
		b->error = -ENOMEM;
	swc_build_blocks(b, ports * (shares ? b->n : 1));
	for (uint32_t c = 0; c < ports && !b->error; c++) {
		swc_lines_set_port(&p.lines, c);
		p.halves = shares && swc_numbers_separate(&p.lines);
		p.at = shares ? c * b->n : c;
		swc_build_channel(b, c * b->n, b->n);
		build_port(&p);
	}
	close_axes(&p);
	free(p.fresh);
	free(p.run);
	free(p.path);
	return 0;
}

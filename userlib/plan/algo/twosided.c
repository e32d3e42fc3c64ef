// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Two-sided allreduce: members receive from both sides of a dimension at once, so that a sum grows
 * up to threefold in a step.
 *
 * twosided sends the whole vector in each step: ceil(log3 d) steps for each dimension of d members,
 * for small vectors. sides.c has the schedules. twosided:4 has fewer steps, such as 2 instead of 3 for 16
 * members: members receive up to four messages in each.
 *
 * radix:J begins with J reduce-scatter stages and ends with them backwards as allgather, like
 * swing-h; in between, members that have the same range exchange it as a whole. The sizes of the
 * stages of a dimension are factors of its size: 2, 3, 5, 7, and 4 in two steps. A stage of n works
 * on rings of n members that are `stride` apart, the product of the factors before it. Of a range,
 * cut into n, each member keeps the part with the number of its place in its ring, sends each
 * other part to the member with that place next to it, and receives its own part from as many. So
 * after the stage it has its part of the sum over the n members around it, and the parts of
 * members that are n * stride apart are equal: the stages that follow never count anything twice.
 * Near members exchange the largest parts. (For powers of three this is the bandwidth variant of
 * "Trivance", arXiv 2602.17254.) The stage of four is Swing's: pairs 0-1 and 2-3, then 1-2 and
 * 3-0, at distance 1 each.
 *
 * Memory: there are two places for sums (places.h), and the only earlier sum that a step can still
 * use is the one in the place that it writes next. One vector of scratch is enough.
 *
 * Several dimensions: in turn, see turns.h. There are as many channels as dimensions, each with its
 * share of the vector and both directions of a dimension. With reduce-scatter stages there are twice
 * as many, the second half mirrored, as some stages use one direction only; and where none does, two
 * channels reduce at the same time what one would. On a switch, too, that is why there are two.
 *
 * Members add the same sums in different order, so floats may differ in their last bits, unless
 * all stages with whole ranges are of 2 and 4, where sums are added in pairs. A part that has been
 * scattered to the end is reduced by one member.
 */
#include "plan/algo/line_messages.h"
#include "plan/algo/places.h"
#include "plan/algo/sides.h"
#include "plan/algo/turns.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_SCATTERS 20

/* A reduce-scatter step: of a stage of n, or half of a stage of 4. */
struct scatter {
	uint32_t n, stride, half; /* half: 1 or 2 in a stage of 4, else 0 */
};

/* One dimension, its reduce-scatter steps, and the schedule among members that are `rest` apart. */
struct line {
	uint32_t size, unit, at; /* unit: between member numbers; at: coordinate */
	uint32_t nscatters, rest;
	struct scatter scatter[MAX_SCATTERS];
	struct swc_sides whole;
};

/**
 * struct port - one channel
 * @first, @nblocks: the range that this member has
 */
struct port {
	struct swc_builder *b;
	const struct line *line;
	uint32_t ndims;
	bool mirror;
	uint32_t nscatters, nwholes;
	struct swc_turn scatter[SWC_BUTTERFLY_STEPS], whole[SWC_BUTTERFLY_STEPS];
	uint32_t first, nblocks;
	struct swc_places places;
};

/* ---- members ---- */

static uint32_t at_of(const struct port *p, const struct line *l)
{
	return p->mirror ? (l->size - l->at) % l->size : l->at;
}

/* The member at an offset along a dimension, which is less than its size. */
static uint32_t member(const struct port *p, const struct line *l, int64_t offset)
{
	int64_t to = (int64_t)l->at + (p->mirror ? -offset : offset);

	to += to < 0 ? l->size : 0;
	to -= to < l->size ? 0 : l->size;
	return (uint32_t)(p->b->me + (to - l->at) * l->unit);
}

/* ---- steps with whole ranges ---- */

static uint32_t peers(const struct port *p, const struct swc_turn *t, bool send, uint32_t *peer)
{
	const struct line *l = &p->line[t->dim];
	int64_t offset[SWC_SIDES_PEERS];
	uint32_t n = swc_sides_peers(&l->whole, t->step, at_of(p, l) / l->rest, send, offset);

	for (uint32_t i = 0; i < n; i++)
		peer[i] = member(p, l, offset[i] * l->rest);
	return n;
}

static void whole_step(struct port *p, const struct swc_turn *t, bool last)
{
	enum swc_sides_base base = swc_sides_base(&p->line[t->dim].whole, t->step);
	struct swc_places *s = &p->places;
	enum swc_buf operand = s->hold[base == SWC_SIDES_BEFORE ? !s->now : s->now], to;
	uint32_t peer[SWC_SIDES_PEERS], n;

	swc_build_step(p->b, SWC_STEP_NET);
	n = peers(p, t, true, peer);
	for (uint32_t i = 0; i < n; i++)
		if (!i && base == SWC_SIDES_NONE)
			swc_build_send_stored(p->b, peer[i], s->hold[s->now], p->first, p->nblocks);
		else
			swc_build_send(p->b, peer[i], s->hold[s->now], p->first, p->nblocks);
	n = peers(p, t, false, peer);
	if (!n)
		return;
	to = swc_places_next(s, p->b, p->first, p->nblocks);
	for (uint32_t i = 0; i < n; i++, operand = to) {
		uint32_t flags = last && i + 1 == n ? SWC_XFER_FINAL : 0;

		if (!i && base == SWC_SIDES_NONE)
			swc_build_recv(p->b, peer[i], to, p->first, p->nblocks, flags);
		else
			swc_build_recv_reduce(p->b, peer[i], to, operand, p->first, p->nblocks,
					      flags);
	}
	swc_places_turn(s);
}

/* The place of the last sum: the number of steps in which this member receives, modulo 2. */
static uint32_t last_place(const struct port *p)
{
	uint32_t place = 0, peer[SWC_SIDES_PEERS];

	for (uint32_t i = 0; i < p->nwholes; i++)
		place ^= !!peers(p, &p->whole[i], false, peer);
	return place;
}

/* ---- reduce-scatter and allgather ---- */

/*
 * The parts of a step: their number, the one that this member keeps, and for each of the others
 * the offset of the member that it is sent to; the own part comes from the opposite offsets.
 */
struct parts {
	uint32_t n, keep, npeers;
	uint32_t part[SWC_SIDES_PEERS];
	int32_t to[SWC_SIDES_PEERS];
};

static struct parts parts_of(const struct port *p, const struct line *l, const struct scatter *s)
{
	uint32_t j = at_of(p, l) / s->stride % s->n;
	struct parts x = { .n = s->n, .keep = j };

	if (s->half) {
		/* 0 and 3 keep the lower half first; then 0 and 1 keep the lower one. */
		x.n = 2;
		x.keep = s->half == 1 ? j == 1 || j == 2 : j == 2 || j == 3;
		x.part[x.npeers] = !x.keep;
		x.to[x.npeers++] = (j % 2 == 0) == (s->half == 1) ? 1 : -1;
		return x;
	}
	for (int32_t o = 1; o < (int32_t)s->n; o++) {
		x.part[x.npeers] = (j + (uint32_t)o) % s->n;
		x.to[x.npeers++] = 2 * o > (int32_t)s->n ? o - (int32_t)s->n : o;
	}
	return x;
}

/* Where the own part of a step comes from: partners swap, others pass on. */
static uint32_t source(const struct port *p, const struct line *l, const struct scatter *s,
		       int32_t to)
{
	return member(p, l, (int64_t)(s->half ? to : -to) * s->stride);
}

static void scatter_step(struct port *p, const struct swc_turn *t, enum swc_buf at, enum swc_buf to,
			 bool last)
{
	const struct line *l = &p->line[t->dim];
	const struct scatter *s = &l->scatter[t->step];
	struct parts x = parts_of(p, l, s);
	uint32_t n = p->nblocks / x.n, mine = p->first + x.keep * n;

	swc_build_step(p->b, SWC_STEP_NET);
	for (uint32_t i = 0; i < x.npeers; i++)
		swc_build_send(p->b, member(p, l, (int64_t)x.to[i] * s->stride), at,
			       p->first + x.part[i] * n, n);
	if (to == SWC_BUF_SCRATCH)
		swc_build_scratch(p->b, mine, n);
	for (uint32_t i = 0; i < x.npeers; i++)
		swc_build_recv_reduce(p->b, source(p, l, s, x.to[i]), to, i ? to : at, mine, n,
				      last && i + 1 == x.npeers ? SWC_XFER_FINAL : 0);
	p->first = mine;
	p->nblocks = n;
}

/* The way back of what a step has scattered: *p has the range that it had then. */
static void gather_step(struct port *p, const struct swc_turn *t)
{
	const struct line *l = &p->line[t->dim];
	const struct scatter *s = &l->scatter[t->step];
	struct parts x = parts_of(p, l, s);
	uint32_t n = p->nblocks / x.n, mine = p->first + x.keep * n;

	swc_build_step(p->b, SWC_STEP_NET);
	for (uint32_t i = 0; i < x.npeers; i++)
		swc_build_send_stored(p->b, source(p, l, s, x.to[i]), SWC_BUF_RECV, mine, n);
	for (uint32_t i = 0; i < x.npeers; i++)
		swc_build_recv(p->b, member(p, l, (int64_t)x.to[i] * s->stride), SWC_BUF_RECV,
			       p->first + x.part[i] * n, n, 0);
}

/* The last reduce-scatter step leaves the sums where that suits what follows. */
static void run(struct port *p)
{
	uint32_t first[SWC_BUTTERFLY_STEPS], nblocks[SWC_BUTTERFLY_STEPS], n = p->nscatters;
	uint32_t last = last_place(p);
	enum swc_buf at = SWC_BUF_SEND;

	swc_build_channel(p->b, p->first, p->nblocks);
	for (uint32_t i = 0; i < n; i++) {
		enum swc_buf to = i + 1 < n || !last ? SWC_BUF_RECV : SWC_BUF_SCRATCH;

		first[i] = p->first;
		nblocks[i] = p->nblocks;
		scatter_step(p, &p->scatter[i], at, to, i + 1 == n && !p->nwholes);
		at = to;
	}
	swc_places_begin(&p->places, p->b, at, last, p->first, p->nblocks);
	for (uint32_t i = 0; i < p->nwholes; i++)
		whole_step(p, &p->whole[i], i + 1 == p->nwholes);
	while (n-- > 0) {
		p->first = first[n];
		p->nblocks = nblocks[n];
		gather_step(p, &p->scatter[n]);
	}
}

/* ---- dimensions ---- */

/* Take the next factor of a dimension as a reduce-scatter stage; false if there is none. */
static bool add_scatter(struct line *l, uint32_t *parts)
{
	static const uint32_t sizes[] = { 4, 2, 3, 5, 7 };
	uint32_t left = l->size / l->rest, i = 0;

	while (i < 5 && left % sizes[i])
		i++;
	if (left == 1 || i == 5 || l->nscatters + 2 > MAX_SCATTERS)
		return false;
	for (uint32_t half = sizes[i] == 4; half <= 2u * (sizes[i] == 4); half++)
		l->scatter[l->nscatters++] = (struct scatter){ sizes[i], l->rest, half };
	l->rest *= sizes[i];
	*parts *= sizes[i];
	return true;
}

/* The dimensions with more than one member. @line: zeros, of some KiB each */
static uint32_t find_lines(const struct swc_topo *topo, uint32_t me, struct line *line)
{
	struct swc_topo_line in[SWC_TOPO_DIMS];
	uint32_t ndims = swc_topo_lines(topo, me, in);

	for (uint32_t i = 0; i < ndims; i++) {
		line[i].size = in[i].size;
		line[i].unit = in[i].unit;
		line[i].at = in[i].at;
		line[i].rest = 1;
	}
	return ndims;
}

/*
 * Up to @stages reduce-scatter stages, one of each dimension in turn. Returns how many; *parts:
 * their product.
 */
static uint32_t find_scatters(struct line *line, uint32_t ndims, uint32_t stages, uint32_t *parts)
{
	uint32_t n = 0;
	bool more = true;

	*parts = 1;
	while (more) {
		more = false;
		for (uint32_t i = 0; i < ndims && n < stages; i++)
			if (add_scatter(&line[i], parts)) {
				more = true;
				n++;
			}
	}
	return n;
}

/* The schedules of what is left; the same for dimensions that are alike. @few: as in sides.h. 0, -ENOMEM. */
static int find_wholes(struct line *line, uint32_t ndims, bool few)
{
	for (struct line *l = line; l < line + ndims; l++) {
		uint32_t size = l->size / l->rest;

		if (l > line && l[-1].whole.size == size)
			l->whole = l[-1].whole;
		else if (swc_sides_find(&l->whole, size, few))
			return -ENOMEM;
	}
	return 0;
}

/* Has a dimension fewer steps with four messages than without? Or no memory. */
static int has_fewer(const struct line *line, uint32_t ndims)
{
	struct swc_sides usual;
	bool fewer = false;

	for (uint32_t i = 0; i < ndims && !fewer; i++) {
		if (swc_sides_find(&usual, line[i].size, false))
			return -ENOMEM;
		fewer = line[i].whole.nsteps < usual.nsteps;
	}
	return fewer;
}

/* Is a stage one in which two members swap sums in each step? */
static bool is_paired(const struct swc_sides_stage *s)
{
	return s->n == 2 || (s->n == 4 && s->kind == SWC_SIDES_TABLE);
}

/* May members add in different order? */
static bool order_varies(const struct line *line, uint32_t ndims)
{
	for (uint32_t i = 0; i < ndims; i++)
		for (uint32_t k = 0; k < line[i].whole.nstages; k++)
			if (!is_paired(&line[i].whole.stage[k]))
				return true;
	return false;
}

static void align(struct port *p, uint32_t chan)
{
	struct swc_turn_hops scatter[SWC_TOPO_DIMS] = { 0 }, whole[SWC_TOPO_DIMS] = { 0 };

	for (uint32_t i = 0; i < p->ndims; i++) {
		const struct line *l = &p->line[i];

		scatter[i].nsteps = l->nscatters;
		for (uint32_t k = 0; k < l->nscatters; k++)
			scatter[i].hops[k] = l->scatter[k].half
						     ? l->scatter[k].stride
						     : l->scatter[k].n / 2 * l->scatter[k].stride;
		whole[i].nsteps = l->whole.nsteps;
		for (uint32_t k = 0; k < l->whole.nsteps; k++) {
			whole[i].hops[k] = l->rest * swc_sides_hops(&l->whole, k);
			/* Not this dimension's sum otherwise. */
			whole[i].glued[k] = swc_sides_base(&l->whole, k) == SWC_SIDES_BEFORE;
		}
	}
	p->nscatters = swc_turns_align(scatter, p->ndims, chan, p->scatter);
	p->nwholes = swc_turns_align(whole, p->ndims, chan, p->whole);
}

/* Does a reduce-scatter stage use one direction only? */
static bool one_way(const struct line *line, uint32_t ndims)
{
	for (uint32_t i = 0; i < ndims; i++)
		for (uint32_t k = 0; k < line[i].nscatters; k++)
			if (line[i].scatter[k].n % 2 == 0)
				return true;
	return false;
}

static uint32_t channels_of(const struct swc_builder *b, const struct line *line, uint32_t ndims,
			    bool scatters)
{
	uint32_t ports = swc_build_ports(b), most = 2 * ndims;

	if (b->topo->kind == SWC_TOPO_SWITCH)
		return scatters && b->args->ports != 1 ? 2 : 1;
	if (one_way(line, ndims) || (scatters && ports >= most))
		return ports < most ? ports : most;
	/* A channel takes both directions of a dimension: two ports. */
	ports = (ports + 1) / 2;
	return ports < ndims ? ports : ndims;
}

static int build(struct swc_builder *b, uint32_t stages, bool all, bool few)
{
	struct line *line = calloc(b->topo->ndims, sizeof(*line));
	uint32_t ndims, nch, parts, found;
	int fewer;

	if (!line) {
		b->error = -ENOMEM;
		return 0;
	}
	ndims = find_lines(b->topo, b->me, line);
	found = find_scatters(line, ndims, stages, &parts);
	if (found < stages && !(all && found)) {
		free(line);
		return swc_build_refuse(
			b,
			"the sides have %u factors of 4, 2, 3, 5 and 7: give a number from 0 to %u",
			found, found);
	}
	b->error = find_wholes(line, ndims, few);
	fewer = few && !b->error ? has_fewer(line, ndims) : 1;
	if (fewer <= 0) {
		free(line);
		return fewer ? fewer
			     : swc_build_refuse(
				       b, "four messages in a step save no step: take twosided");
	}
	if (order_varies(line, ndims))
		b->w.hdr.flags |= SWC_PLAN_ORDER_VARIES;
	nch = b->args->channels ? b->args->channels : channels_of(b, line, ndims, found > 0);
	swc_build_blocks(b, nch * parts);
	for (uint32_t c = 0; c < nch && !b->error; c++) {
		struct port p = { .b = b,
				  .line = line,
				  .ndims = ndims,
				  .mirror = c % (2 * ndims) >= ndims,
				  .first = c * parts,
				  .nblocks = parts };

		align(&p, c);
		run(&p);
	}
	free(line);
	return 0;
}

/* How many reduce-scatter stages these plans have at most; *all: as many as there are, but one at least. */
static uint32_t stages_of(const struct swc_plan_args *args, bool *all)
{
	*all = args->algo == SWC_ALGO_RADIX && args->param == SWC_PARAM_DEFAULT;
	if (*all)
		return MAX_SCATTERS * SWC_TOPO_DIMS;
	return args->algo == SWC_ALGO_RADIX ? (uint32_t)args->param : 0;
}

/* Are members to receive up to four messages in a step? */
static bool is_few(const struct swc_plan_args *args)
{
	return args->algo == SWC_ALGO_TWOSIDED && args->param == SWC_SIDES_SHIFTS_MOST;
}

int swc_twosided_build(struct swc_builder *b)
{
	bool all;
	uint32_t stages = stages_of(b->args, &all);

	if (b->args->algo == SWC_ALGO_TWOSIDED && b->args->param >= 0 && !is_few(b->args))
		return swc_build_refuse(b, "the number must be %u", SWC_SIDES_SHIFTS_MOST);
	return build(b, stages, all, is_few(b->args));
}

/* ---- the steps of lines ---- */

static uint32_t count_steps(const void *lines, uint32_t i)
{
	const struct line *l = (const struct line *)lines + i;

	return 2 * l->nscatters + l->whole.nsteps;
}

/* The coordinate at an offset, which is less than the size. */
static uint32_t coord_at(const struct line *l, bool mirrored, int64_t offset)
{
	int64_t to = (int64_t)l->at + (mirrored ? -offset : offset);

	to += to < 0 ? l->size : 0;
	return (uint32_t)(to < l->size ? to : to - l->size);
}

static void find_peers(void *lines, uint32_t i, uint32_t s, bool mirrored, uint32_t x,
		       struct swc_line_peers *peers)
{
	struct line *l = (struct line *)lines + i;
	struct port p = { .mirror = mirrored };
	uint32_t back = count_steps(lines, i) - 1 - s;
	const struct scatter *scatter = &l->scatter[s < l->nscatters ? s : back];
	int64_t to[SWC_SIDES_PEERS], from[SWC_SIDES_PEERS];
	struct parts parts;

	l->at = x;
	if (s >= l->nscatters && back >= l->nscatters) {
		s -= l->nscatters;
		x = at_of(&p, l) / l->rest;
		peers->nsend = swc_sides_peers(&l->whole, s, x, true, to);
		peers->nrecv = swc_sides_peers(&l->whole, s, x, false, from);
		peers->nreduced = peers->nrecv -
				  (peers->nrecv && swc_sides_base(&l->whole, s) == SWC_SIDES_NONE);
		for (uint32_t k = 0; k < peers->nsend; k++)
			peers->to[k] = coord_at(l, mirrored, to[k] * l->rest);
		for (uint32_t k = 0; k < peers->nrecv; k++)
			peers->from[k] = coord_at(l, mirrored, from[k] * l->rest);
		return;
	}
	parts = parts_of(&p, l, scatter);
	peers->nsend = peers->nrecv = parts.npeers;
	peers->nreduced = s < l->nscatters ? parts.npeers : 0;
	for (uint32_t k = 0; k < parts.npeers; k++) {
		int64_t offset = (int64_t)parts.to[k] * scatter->stride;
		uint32_t target = coord_at(l, mirrored, offset);
		uint32_t source = coord_at(l, mirrored, scatter->half ? offset : -offset);

		peers->to[k] = s < l->nscatters ? target : source;
		peers->from[k] = s < l->nscatters ? source : target;
	}
}

int swc_twosided_lines(const struct swc_plan_args *args, const struct swc_topo *topo,
		       struct swc_line_messages *steps)
{
	struct line *line = calloc(topo->ndims, sizeof(*line));
	uint32_t stages, parts, found;
	bool all;

	if (!line)
		return -ENOMEM;
	stages = stages_of(args, &all);
	*steps = (struct swc_line_messages){ .nlines = find_lines(topo, 0, line),
					     .mirrors = true,
					     .lines = line,
					     .count = count_steps,
					     .peers = find_peers };
	found = find_scatters(line, steps->nlines, stages, &parts);
	if ((found < stages && !(all && found)) || find_wholes(line, steps->nlines, is_few(args))) {
		free(line);
		return found < stages ? -EOPNOTSUPP : -ENOMEM;
	}
	return 0;
}

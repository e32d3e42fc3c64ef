// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bucket: on a torus, reduce-scatter along one dimension after the other, each time on what is left
 * of the vector, then allgather in the opposite order. With D dimensions there are 2D channels with
 * a share of the vector each: channel c < D starts in dimension c and goes round robin, channel D +
 * c is its mirror image, so that all 2D links of a node are busy. 2 sum(d_i - 1) steps, bandwidth
 * optimal on square tori. (Sack and Gropp, "Collective algorithms for multiported torus networks",
 * ACM TOPC 1(2), 2015.)
 *
 * bucket2 moves the sums to their owner from both sides of the dimension at once, and the results
 * out again: floor(d_i / 2) steps instead of d_i - 1. If d_i is even, the member opposite the owner
 * belongs to one side only; the mirror image has it on the other side, so the links carry the same
 * as in bucket. (As many steps as the diameter, like the breadth-first schedules of Zhao et al.,
 * "Efficient direct-connect topologies for collective communications", NSDI 2025.)
 *
 * Both are one engine: along a dimension, a share is summed over `above` members on one side of its
 * owner and `below` on the other, above + below = d - 1; in bucket below = 0.
 *
 * Each block is reduced along fixed routes to one owner and then copied: all ranks get the same
 * bits.
 */
#include "plan/algo/builder.h"

/**
 * struct bucket - one channel's view of the torus
 *
 * Members have places: their coordinates (mirrored ones in a mirror image) read as one number, in
 * which the dimension that is reduced first is the most significant. So what is left of the vector
 * is always a range of places. In ALLREDUCE place i is block at + i, in other collectives it is the
 * channel's block of that member's shard.
 *
 * @ndims: dimensions with more than one member
 * @dim: their sizes, in the order in which they are reduced
 * @stride: between the numbers of neighbours along them
 * @own: this member's place
 */
struct bucket {
	struct swc_builder *b;
	bool two_sided, mirrored;
	uint32_t ndims;
	uint32_t dim[SWC_TOPO_DIMS], stride[SWC_TOPO_DIMS];
	uint32_t own;
	uint32_t at, shard_blocks;
};

/**
 * struct phase - the reduction or spreading along one dimension
 * @d: members along it
 * @x: own coordinate
 * @base: first place of the range that the members along it share; share i of d is that of
 *	coordinate i
 * @places: per share
 * @up, @down: neighbours at x + 1 and x - 1
 * @above, @below: members whose sums come to an owner from either side
 */
struct phase {
	const struct bucket *g;
	uint32_t d, x, base, places;
	uint32_t up, down;
	uint32_t above, below;
};

static uint32_t member_at(const struct bucket *g, uint32_t place)
{
	uint32_t member = 0;

	for (uint32_t i = g->ndims; i-- > 0; place /= g->dim[i]) {
		uint32_t x = place % g->dim[i];

		member += (g->mirrored ? g->dim[i] - 1 - x : x) * g->stride[i];
	}
	return member;
}

static uint32_t place_of(const struct bucket *g, uint32_t member)
{
	uint32_t place = 0;

	for (uint32_t i = 0; i < g->ndims; i++) {
		uint32_t x = member / g->stride[i] % g->dim[i];

		place = place * g->dim[i] + (g->mirrored ? g->dim[i] - 1 - x : x);
	}
	return place;
}

static struct phase phase_of(const struct bucket *g, uint32_t i)
{
	struct phase f = { .g = g, .d = g->dim[i], .places = 1 };
	uint32_t first;

	for (uint32_t k = i + 1; k < g->ndims; k++)
		f.places *= g->dim[k];
	f.x = g->own / f.places % f.d;
	f.base = g->own - g->own % (f.places * f.d);
	first = g->own - f.x * f.places;
	f.up = member_at(g, first + (f.x + 1) % f.d * f.places);
	f.down = member_at(g, first + (f.x + f.d - 1) % f.d * f.places);
	f.above = g->two_sided ? f.d / 2 : f.d - 1;
	f.below = f.d - 1 - f.above;
	return f;
}

/* The longest run of blocks from a place on; *place moves behind it. */
static uint32_t next_run(const struct bucket *g, uint32_t *place, uint32_t end, uint32_t *block)
{
	uint32_t n = 1;

	if (!g->shard_blocks) {
		*block = g->at + *place;
		n = end - *place;
		*place = end;
		return n;
	}
	*block = g->at + member_at(g, *place) * g->shard_blocks;
	while (++*place < end && g->at + member_at(g, *place) * g->shard_blocks == *block + n)
		n++;
	return n;
}

static void send(const struct phase *f, uint32_t to, uint32_t share, enum swc_buf buf, bool stored)
{
	uint32_t place = f->base + share % f->d * f->places, end = place + f->places, block;

	while (place < end) {
		uint32_t n = next_run(f->g, &place, end, &block);

		if (stored)
			swc_build_send_stored(f->g->b, to, buf, block, n);
		else
			swc_build_send(f->g->b, to, buf, block, n);
	}
}

static void recv(const struct phase *f, uint32_t from, uint32_t share, enum swc_buf buf,
		 uint32_t flags)
{
	uint32_t place = f->base + share % f->d * f->places, end = place + f->places, block;

	while (place < end) {
		uint32_t n = next_run(f->g, &place, end, &block);

		swc_build_recv(f->g->b, from, buf, block, n, flags);
	}
}

static void recv_reduce(const struct phase *f, uint32_t from, uint32_t share, enum swc_buf buf,
			enum swc_buf operand, uint32_t flags)
{
	uint32_t place = f->base + share % f->d * f->places, end = place + f->places, block;

	while (place < end) {
		uint32_t n = next_run(f->g, &place, end, &block);

		swc_build_recv_reduce(f->g->b, from, buf, operand, block, n, flags);
	}
}

/*
 * Reduce along a dimension. `own` has this member's contribution, `between` holds sums on their
 * way, `out` gets the own share, which is `final` if this dimension is the last. With t counting
 * down to 1, the sums that are t away from their owners move one closer: down for owners below, up
 * for owners above. The last ones of both sides arrive in the same step and are added one after the
 * other.
 *
 * The shares accessed in a step are t and t - 1 away on either side. They are all different except
 * the owner's, so in place is safe.
 */
static void reduce(const struct phase *f, enum swc_buf own, enum swc_buf between, enum swc_buf out,
		   uint32_t final)
{
	for (uint32_t t = f->above; t; t--) {
		enum swc_buf to = t == 1 ? out : between;

		swc_build_step(f->g->b, SWC_STEP_NET);
		send(f, f->down, f->x + f->d - t, t == f->above ? own : between, false);
		if (t <= f->below)
			send(f, f->up, f->x + t, t == f->below ? own : between, false);
		recv_reduce(f, f->up, f->x + f->d - (t - 1), to, own,
			    t == 1 && !f->below ? final : 0);
		if (t <= f->below)
			recv_reduce(f, f->down, f->x + t - 1, to, t == 1 ? to : own,
				    t == 1 ? final : 0);
	}
}

/*
 * Spread along a dimension: the same routes back. Step t moves shares from distance t - 1 to
 * distance t of their owners.
 */
static void spread_step(const struct phase *f, uint32_t t, enum swc_buf from, uint32_t flags)
{
	swc_build_step(f->g->b, SWC_STEP_NET);
	send(f, f->up, f->x + f->d - (t - 1), from, true);
	if (t <= f->below)
		send(f, f->down, f->x + t - 1, from, true);
	recv(f, f->down, f->x + f->d - t, SWC_BUF_RECV, flags);
	if (t <= f->below)
		recv(f, f->up, f->x + t, SWC_BUF_RECV, flags);
}

static void reduce_all(const struct bucket *g, enum swc_buf between)
{
	for (uint32_t i = 0; i < g->ndims; i++) {
		struct phase f = phase_of(g, i);
		bool last = i + 1 == g->ndims;

		reduce(&f, i ? between : SWC_BUF_SEND, between, last ? SWC_BUF_RECV : between,
		       last ? SWC_XFER_FINAL : 0);
	}
}

/*
 * The first step of ALLGATHER sends from SEND and marks what arrives as final, so that it does not
 * wait for the copy of the own shard, which comes second and, in place, is a copy onto itself.
 */
static void spread_all(const struct bucket *g, bool gather)
{
	struct swc_builder *b = g->b;

	for (uint32_t i = g->ndims; i-- > 0;) {
		struct phase f = phase_of(g, i);
		uint32_t t = 1;

		if (gather && i + 1 == g->ndims) {
			uint32_t block = g->at + b->me * g->shard_blocks;

			spread_step(&f, t++, SWC_BUF_SEND, SWC_XFER_FINAL);
			swc_build_step(b, SWC_STEP_LOCAL);
			swc_build_send(b, b->me, SWC_BUF_SEND, block, 1);
			swc_build_recv(b, b->me, SWC_BUF_RECV, block, 1, SWC_XFER_FINAL);
		}
		for (; t <= f.above; t++)
			spread_step(&f, t, SWC_BUF_RECV, 0);
	}
}

/* Order the dimensions from `start` on, round robin. */
static void order_dims(struct bucket *g, uint32_t start)
{
	const struct swc_topo *t = g->b->topo;
	uint32_t dim[SWC_TOPO_DIMS], stride[SWC_TOPO_DIMS], n = 0;

	for (uint32_t i = t->ndims, s = 1; i-- > 0; s *= t->dim[i]) {
		if (t->dim[i] == 1)
			continue;
		dim[n] = t->dim[i];
		stride[n++] = s;
	}
	g->ndims = n;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t from = n - 1 - (start + i) % n;

		g->dim[i] = dim[from];
		g->stride[i] = stride[from];
	}
}

static int build(struct swc_builder *b, bool two_sided)
{
	struct bucket g = { .b = b, .two_sided = two_sided };
	uint32_t p = b->n, ports = swc_build_ports(b), nch;
	bool shares = b->args->coll == SWC_ALLREDUCE;

	order_dims(&g, 0);
	if (ports > 2 * g.ndims)
		ports = 2 * g.ndims;
	nch = b->args->channels ? b->args->channels : ports;
	swc_build_blocks(b, shares ? nch * p : nch);
	/* RECV has no room for sums that go to other members. */
	if (b->args->coll == SWC_REDUCE_SCATTER && p > 2)
		swc_build_scratch(b, 0, nch * p);

	for (uint32_t c = 0; c < nch; c++) {
		order_dims(&g, c % ports);
		g.mirrored = c % ports >= g.ndims;
		g.own = place_of(&g, b->me);
		g.at = shares ? c * p : c;
		g.shard_blocks = shares ? 0 : nch;
		swc_build_channel(b, c * p, p);
		if (b->args->coll != SWC_ALLGATHER)
			reduce_all(&g, shares ? SWC_BUF_RECV : SWC_BUF_SCRATCH);
		if (b->args->coll != SWC_REDUCE_SCATTER)
			spread_all(&g, !shares);
	}
	return 0;
}

int swc_bucket_build(struct swc_builder *b)
{
	return build(b, false);
}

int swc_bucket2_build(struct swc_builder *b)
{
	return build(b, true);
}

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
 * A channel may take its share in pieces, each of which begins one step after the one before: then
 * most steps have messages along all dimensions; see split.c.
 *
 * Each block is reduced along fixed routes to one owner and then copied: all ranks get the same
 * bits.
 */
#include "plan/algo/bucket.h"

/**
 * struct phase - the reduction or spreading along one dimension
 * @d: members along it
 * @x: own coordinate
 * @base: first place of the range that the members along it share; share i of d is that of
 *	coordinate i
 * @places: per share
 * @up, @down: neighbours at x + 1 and x - 1
 * @above, @below: members whose sums come to an owner from either side
 * @at: first block of the piece
 */
struct phase {
	const struct swc_bucket *g;
	uint32_t d, x, base, places;
	uint32_t up, down;
	uint32_t above, below;
	uint32_t at;
};

static uint32_t member_at(const struct swc_bucket *g, uint32_t place)
{
	uint32_t member = 0;

	for (uint32_t i = g->ndims; i-- > 0; place /= g->dim[i]) {
		uint32_t x = place % g->dim[i];

		member += (g->mirrored ? g->dim[i] - 1 - x : x) * g->stride[i];
	}
	return member;
}

static uint32_t place_of(const struct swc_bucket *g, uint32_t member)
{
	uint32_t place = 0;

	for (uint32_t i = 0; i < g->ndims; i++) {
		uint32_t x = member / g->stride[i] % g->dim[i];

		place = place * g->dim[i] + (g->mirrored ? g->dim[i] - 1 - x : x);
	}
	return place;
}

static uint32_t above(const struct swc_bucket *g, uint32_t i)
{
	return g->two_sided ? g->dim[i] / 2 : g->dim[i] - 1;
}

static struct phase phase_of(const struct swc_bucket *g, uint32_t i, uint32_t piece)
{
	struct phase f = { .g = g, .d = g->dim[i], .places = 1 };
	uint32_t own = place_of(g, g->b->me), first;

	for (uint32_t k = i + 1; k < g->ndims; k++)
		f.places *= g->dim[k];
	f.x = own / f.places % f.d;
	f.base = own - own % (f.places * f.d);
	first = own - f.x * f.places;
	f.up = member_at(g, first + (f.x + 1) % f.d * f.places);
	f.down = member_at(g, first + (f.x + f.d - 1) % f.d * f.places);
	f.above = above(g, i);
	f.below = f.d - 1 - f.above;
	f.at = g->at + piece * g->weight * (g->shard_blocks ? 1 : g->b->n);
	return f;
}

/* The longest run of blocks from a place on; *place moves behind it. */
static uint32_t next_run(const struct phase *f, uint32_t *place, uint32_t end, uint32_t *block)
{
	const struct swc_bucket *g = f->g;
	uint32_t n = g->weight;

	if (!g->shard_blocks) {
		*block = f->at + *place * n;
		n *= end - *place;
		*place = end;
		return n;
	}
	*block = f->at + member_at(g, *place) * g->shard_blocks;
	while (++*place < end && f->at + member_at(g, *place) * g->shard_blocks == *block + n)
		n += g->weight;
	return n;
}

static void send(const struct phase *f, uint32_t to, uint32_t share, enum swc_buf buf, bool stored)
{
	uint32_t place = f->base + share % f->d * f->places, end = place + f->places, block;

	while (place < end) {
		uint32_t n = next_run(f, &place, end, &block);

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
		uint32_t n = next_run(f, &place, end, &block);

		swc_build_recv(f->g->b, from, buf, block, n, flags);
	}
}

static void recv_reduce(const struct phase *f, uint32_t from, uint32_t share, enum swc_buf buf,
			enum swc_buf operand, uint32_t flags)
{
	uint32_t place = f->base + share % f->d * f->places, end = place + f->places, block;

	while (place < end) {
		uint32_t n = next_run(f, &place, end, &block);

		swc_build_recv_reduce(f->g->b, from, buf, operand, block, n, flags);
	}
}

/* What a step of a piece does: it appends sends, or receives. */
enum part {
	SENDS,
	RECVS
};

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
static void reduce(const struct phase *f, uint32_t i, uint32_t t, enum part part)
{
	bool shares = f->g->b->args->coll == SWC_ALLREDUCE, last = i + 1 == f->g->ndims;
	enum swc_buf between = shares ? SWC_BUF_RECV : SWC_BUF_SCRATCH;
	enum swc_buf own = i ? between : SWC_BUF_SEND, out = last ? SWC_BUF_RECV : between;
	enum swc_buf to = t == 1 ? out : between;
	uint32_t final = last && t == 1 ? SWC_XFER_FINAL : 0;

	if (part == SENDS) {
		send(f, f->down, f->x + f->d - t, t == f->above ? own : between, false);
		if (t <= f->below)
			send(f, f->up, f->x + t, t == f->below ? own : between, false);
		return;
	}
	recv_reduce(f, f->up, f->x + f->d - (t - 1), to, own, f->below ? 0 : final);
	if (t <= f->below)
		recv_reduce(f, f->down, f->x + t - 1, to, t == 1 ? to : own, final);
}

/*
 * Spread along a dimension: the same routes back. Step t moves shares from distance t - 1 to
 * distance t of their owners.
 */
static void spread(const struct phase *f, uint32_t t, enum swc_buf from, uint32_t flags,
		   enum part part)
{
	if (part == SENDS) {
		send(f, f->up, f->x + f->d - (t - 1), from, true);
		if (t <= f->below)
			send(f, f->down, f->x + t - 1, from, true);
		return;
	}
	recv(f, f->down, f->x + f->d - t, SWC_BUF_RECV, flags);
	if (t <= f->below)
		recv(f, f->up, f->x + t, SWC_BUF_RECV, flags);
}

static uint32_t one_way(const struct swc_bucket *g)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->ndims; i++)
		n += above(g, i);
	return n;
}

uint32_t swc_bucket_steps(const struct swc_bucket *g)
{
	return one_way(g) * (g->b->args->coll == SWC_ALLREDUCE ? 2 : 1) + g->pieces - 1;
}

/*
 * A step of a piece. The first step of ALLGATHER sends from SEND and marks what arrives as final, so
 * that it does not wait for the copy of the own shard, which comes second and, in place, is a copy
 * onto itself.
 */
static void piece_step(const struct swc_bucket *g, uint32_t piece, uint32_t step, enum part part)
{
	bool gather = g->b->args->coll == SWC_ALLGATHER, first = gather && !step && !piece;
	struct phase f;
	uint32_t i = 0;

	if (!gather && step < one_way(g)) {
		for (; step >= above(g, i); i++)
			step -= above(g, i);
		f = phase_of(g, i, piece);
		reduce(&f, i, f.above - step, part);
		return;
	}
	step -= gather ? 0 : one_way(g);
	for (i = g->ndims - 1; step >= above(g, i); i--)
		step -= above(g, i);
	f = phase_of(g, i, piece);
	spread(&f, step + 1, first ? SWC_BUF_SEND : SWC_BUF_RECV, first ? SWC_XFER_FINAL : 0, part);
}

void swc_bucket_channel(const struct swc_bucket *g)
{
	struct swc_builder *b = g->b;
	uint32_t steps = swc_bucket_steps(g), of_piece = steps - (g->pieces - 1);

	for (uint32_t s = 0; s < steps && !b->error; s++) {
		swc_build_step(b, SWC_STEP_NET);
		for (enum part part = SENDS; part <= RECVS; part++)
			for (uint32_t piece = s < of_piece ? 0 : s - of_piece + 1;
			     piece <= s && piece < g->pieces; piece++)
				piece_step(g, piece, s - piece, part);
		if (!s && b->args->coll == SWC_ALLGATHER) {
			uint32_t block = g->at + b->me * g->shard_blocks, n = g->pieces * g->weight;

			swc_build_step(b, SWC_STEP_LOCAL);
			swc_build_send(b, b->me, SWC_BUF_SEND, block, n);
			swc_build_recv(b, b->me, SWC_BUF_RECV, block, n, SWC_XFER_FINAL);
		}
	}
}

uint32_t swc_bucket_dims(const struct swc_topo *t, uint8_t *dim)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->ndims; i++)
		if (t->dim[i] > 1)
			dim[n++] = (uint8_t)i;
	return n;
}

void swc_bucket_order(struct swc_bucket *g, const uint8_t *dim, uint32_t ndims)
{
	const struct swc_topo *t = g->b->topo;

	g->ndims = ndims;
	for (uint32_t i = 0; i < ndims; i++) {
		g->dim[i] = t->dim[dim[i]];
		g->stride[i] = 1;
		for (uint32_t k = dim[i] + 1u; k < t->ndims; k++)
			g->stride[i] *= t->dim[k];
	}
}

static int build(struct swc_builder *b, bool two_sided)
{
	struct swc_bucket g = { .b = b, .two_sided = two_sided, .pieces = 1, .weight = 1 };
	uint32_t p = b->n, ports = swc_build_ports(b), n, nch;
	bool shares = b->args->coll == SWC_ALLREDUCE;
	uint8_t dims[SWC_TOPO_DIMS], order[SWC_TOPO_DIMS];

	n = swc_bucket_dims(b->topo, dims);
	if (ports > 2 * n)
		ports = 2 * n;
	nch = b->args->channels ? b->args->channels : ports;
	swc_build_blocks(b, shares ? nch * p : nch);
	/* RECV has no room for sums that go to other members. */
	if (b->args->coll == SWC_REDUCE_SCATTER && p > 2)
		swc_build_scratch(b, 0, nch * p);

	for (uint32_t c = 0; c < nch; c++) {
		for (uint32_t i = 0; i < n; i++)
			order[i] = dims[(c % ports + i) % n];
		swc_bucket_order(&g, order, n);
		g.mirrored = c % ports >= n;
		g.at = shares ? c * p : c;
		g.shard_blocks = shares ? 0 : nch;
		swc_build_channel(b, c * p, p);
		swc_bucket_channel(&g);
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

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rings: every member sends to the next one of a cycle and receives from the one before, one shard
 * or share per step, p - 1 steps to reduce and p - 1 steps to spread. Bandwidth optimal, latency
 * 2(p - 1) steps. Each block is reduced along one way round and then copied, so all ranks get the
 * same bits. (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations", 2009.)
 *
 * ring goes through the members by number, ring2 both ways with half the vector each, hamiltonian
 * both ways along two edge-disjoint Hamiltonian cycles of a 2D torus, so that every link of a node
 * is busy in both directions in every step.
 *
 * The two cycles. Let the torus have R rows and C columns, and call (row + column) mod C a member's
 * diagonal; C divides R, so each step to the right or down leads to the next diagonal. The first
 * cycle goes right, and down from the last diagonal only; the second goes down, and right from the
 * last diagonal only. So every link belongs to exactly one of them. C steps are a lap. Lap k of the
 * first begins in row k, column -k, and covers that row; R laps are the torus. Lap k of the second
 * begins in row k(C - 1), column k, on diagonal 0; the rows of all laps differ, and the cycle is
 * one, if and only if C - 1 and R have no common factor. (For other ways to such cycles see Bae,
 * AlBdaiwi and Bose, "Edge-disjoint Hamiltonian cycles in two-dimensional torus", IJMMS 2004.)
 */
#include "plan/algo/builder.h"
#include "plan/algo/ring.h"

/**
 * struct cycle - an order of the members
 * @p: members
 * @backward: the order is turned round
 * @second: second Hamiltonian cycle
 * @rows, @cols: of the torus as the Hamiltonian cycles see it; 0: in the order of numbers
 * @row_stride, @col_stride: between the numbers of neighbours
 * @inverse: of @cols - 1 modulo @rows
 */
struct cycle {
	uint32_t p;
	bool backward, second;
	uint32_t rows, cols;
	uint32_t row_stride, col_stride;
	uint32_t inverse;
};

static uint32_t member_at(const struct cycle *y, uint32_t pos)
{
	uint32_t lap, j, row, col;

	pos %= y->p;
	if (y->backward)
		pos = y->p - 1 - pos;
	if (!y->cols)
		return pos;
	lap = pos / y->cols;
	j = pos % y->cols;
	row = y->second ? (lap * (y->cols - 1) + j) % y->rows : lap;
	col = (y->second ? lap : j + y->rows - lap) % y->cols;
	return row * y->row_stride + col * y->col_stride;
}

static uint32_t position_of(const struct cycle *y, uint32_t member)
{
	uint32_t pos = member;

	if (y->cols) {
		uint32_t row = member / y->row_stride % y->rows;
		uint32_t col = member / y->col_stride % y->cols;
		uint32_t j = (row + col) % y->cols;
		uint64_t lap = y->second ? (uint64_t)(row + y->rows - j) * y->inverse % y->rows
					 : row;

		pos = (uint32_t)lap * y->cols + j;
	}
	return y->backward ? y->p - 1 - pos : pos;
}

/*
 * One channel's way round. Shares are counted by position on the cycle: share i of ALLREDUCE is
 * block at + i; in other collectives it is the channel's block of the shard of the member there.
 */
struct ring {
	struct swc_builder *b;
	struct cycle cycle;
	uint32_t p, pos, right, left;
	uint32_t at, shard_blocks;
};

static uint32_t block(const struct ring *g, uint32_t share)
{
	if (g->shard_blocks)
		return g->at + member_at(&g->cycle, share) * g->shard_blocks;
	return g->at + share % g->p;
}

/*
 * Reduce: share `last` ends complete on this member, in `out`. In step s it sends share last - 1
 * - s (the sum of s + 1 ranks so far) and adds its own contribution to share last - 2 - s, counted
 * modulo p.
 *
 * The first step sends from SEND, and every receive has SEND as its operand, so nothing is copied
 * beforehand. A step writes a share other than the one it sends, and the share it adds to has never
 * been sent, so in place is safe.
 */
static void reduce(const struct ring *g, uint32_t last, enum swc_buf between, enum swc_buf out)
{
	for (uint32_t s = 0; s + 1 < g->p && !g->b->error; s++) {
		bool final = s + 2 == g->p;

		swc_build_step(g->b, SWC_STEP_NET);
		swc_build_send(g->b, g->right, s ? between : SWC_BUF_SEND,
			       block(g, last + 2 * g->p - 1 - s), 1);
		swc_build_recv_reduce(g->b, g->left, final ? out : between, SWC_BUF_SEND,
				      block(g, last + 2 * g->p - 2 - s), 1,
				      final ? SWC_XFER_FINAL : 0);
	}
}

/* Spread: share `own` is complete in RECV; send it, and then each share that arrived last. */
static void spread(const struct ring *g, uint32_t own)
{
	for (uint32_t s = 0; s + 1 < g->p && !g->b->error; s++) {
		swc_build_step(g->b, SWC_STEP_NET);
		swc_build_send_stored(g->b, g->right, SWC_BUF_RECV, block(g, own + g->p - s), 1);
		swc_build_recv(g->b, g->left, SWC_BUF_RECV, block(g, own + g->p - 1 - s), 1, 0);
	}
}

/*
 * Allgather: the first step sends from SEND and marks what arrives as final, so that it does not
 * wait for the copy of the own shard, which comes second and, in place, is a copy onto itself.
 */
static void gather(const struct ring *g)
{
	uint32_t me = g->b->me;

	swc_build_step(g->b, SWC_STEP_NET);
	swc_build_send_stored(g->b, g->right, SWC_BUF_SEND, block(g, g->pos), 1);
	swc_build_recv(g->b, g->left, SWC_BUF_RECV, block(g, g->pos + g->p - 1), 1, SWC_XFER_FINAL);
	swc_build_step(g->b, SWC_STEP_LOCAL);
	swc_build_send(g->b, me, SWC_BUF_SEND, block(g, g->pos), 1);
	swc_build_recv(g->b, me, SWC_BUF_RECV, block(g, g->pos), 1, SWC_XFER_FINAL);
	for (uint32_t s = 1; s + 1 < g->p && !g->b->error; s++) {
		swc_build_step(g->b, SWC_STEP_NET);
		swc_build_send_stored(g->b, g->right, SWC_BUF_RECV, block(g, g->pos + g->p - s), 1);
		swc_build_recv(g->b, g->left, SWC_BUF_RECV, block(g, g->pos + g->p - 1 - s), 1, 0);
	}
}

/*
 * Channels take the ways in turn: way 0 is the first cycle, 1 the same backward, 2 and 3 the
 * second.
 */
static void turn(struct cycle *cycle, uint32_t way)
{
	cycle->backward = way % 2;
	cycle->second = way / 2;
}

static int build(struct swc_builder *b, struct cycle cycle, uint32_t ways)
{
	uint32_t p = b->n, nch = b->args->channels ? b->args->channels : ways;
	bool shares = b->args->coll == SWC_ALLREDUCE;

	swc_build_blocks(b, shares ? nch * p : nch);
	/* RECV has no room for sums that go to other members. */
	if (b->args->coll == SWC_REDUCE_SCATTER && p > 2)
		swc_build_scratch(b, 0, nch * p);

	for (uint32_t c = 0; c < nch; c++) {
		struct ring g = { .b = b, .p = p };

		cycle.p = p;
		turn(&cycle, c % ways);
		g.cycle = cycle;
		g.pos = position_of(&cycle, b->me);
		g.right = member_at(&cycle, g.pos + 1);
		g.left = member_at(&cycle, g.pos + p - 1);
		g.at = shares ? c * p : c;
		g.shard_blocks = shares ? 0 : nch;
		swc_build_channel(b, c * p, p);
		switch (b->args->coll) {
		case SWC_ALLREDUCE:
			reduce(&g, g.pos + 1, SWC_BUF_RECV, SWC_BUF_RECV);
			spread(&g, g.pos + 1);
			break;
		case SWC_REDUCE_SCATTER:
			reduce(&g, g.pos, SWC_BUF_SCRATCH, SWC_BUF_RECV);
			break;
		default:
			gather(&g);
			break;
		}
	}
	return 0;
}

int swc_ring_build(struct swc_builder *b)
{
	return build(b, (struct cycle){ 0 }, 1);
}

/* It pays on a switch, too: a link carries traffic both ways. */
static uint32_t ways_of_ring2(const struct swc_plan_args *a)
{
	return a->ports == 1 ? 1 : 2;
}

int swc_ring2_build(struct swc_builder *b)
{
	return build(b, (struct cycle){ 0 }, ways_of_ring2(b->args));
}

/* x with x * a = 1 modulo n, 0 if there is none. */
static uint32_t inverse(uint32_t a, uint32_t n)
{
	for (uint32_t x = 1; x < n; x++)
		if ((uint64_t)x * a % n == 1)
			return x;
	return 0;
}

static bool fits(struct cycle *y, uint32_t rows, uint32_t cols)
{
	y->rows = rows;
	y->cols = cols;
	y->inverse = cols > 1 && rows % cols == 0 ? inverse(cols - 1, rows) : 0;
	return y->inverse;
}

/* The Hamiltonian cycles of a torus of two dimensions, if it has them. */
static bool find_cycles(struct cycle *y, const struct swc_topo *t)
{
	*y = (struct cycle){ .row_stride = t->dim[1], .col_stride = 1 };
	if (fits(y, t->dim[0], t->dim[1]))
		return true;
	y->row_stride = 1;
	y->col_stride = t->dim[1];
	return fits(y, t->dim[1], t->dim[0]);
}

int swc_hamiltonian_build(struct swc_builder *b)
{
	const struct swc_topo *t = b->topo;
	struct cycle y;

	if (t->kind == SWC_TOPO_SWITCH || t->ndims != 2)
		return swc_build_refuse(
			b, "hamiltonian is for tori of two dimensions, such as torus:4x4");
	if (!find_cycles(&y, t))
		return swc_build_refuse(b, "hamiltonian needs a torus of RxC or CxR where C > 1 "
					   "divides R and C - 1 has no common factor with R, "
					   "such as 8x8 or 16x4");
	return build(b, y, swc_build_ports(b));
}

void swc_ring_each(const struct swc_plan_args *a, const struct swc_topo *t, swc_ring_fn *each,
		   void *arg)
{
	struct swc_builder b = { .args = a, .topo = t };
	struct cycle y = { .p = t->nnodes };
	uint32_t ways = a->algo == SWC_ALGO_RING ? 1 : ways_of_ring2(a);
	uint32_t nch;

	if (a->algo == SWC_ALGO_HAMILTONIAN) {
		find_cycles(&y, t);
		y.p = t->nnodes;
		ways = swc_build_ports(&b);
	}
	nch = a->channels ? a->channels : ways;
	for (uint32_t c = 0; c < nch; c++) {
		uint32_t first, from, to;

		turn(&y, c % ways);
		first = from = member_at(&y, 0);
		for (uint32_t pos = 1; pos <= y.p; pos++, from = to) {
			to = pos < y.p ? member_at(&y, pos) : first;
			each(arg, c, from, to);
		}
	}
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * ALLTOALL among nodes of L ranks each. What one node has for another goes as a whole, in one message
 * instead of L * L: by a local rank that has gathered it from its node, to the same local rank of the other
 * node, from which the ranks there take what is theirs. So a pair of nodes needs one connection.
 *
 * Which local rank carries depends on the sum of the two nodes, modulo the number of nodes: that is the same
 * at both ends, and nodes that each take the same sum form pairs. (With the sum 2 a, node a is its own
 * peer.) What nodes a and b exchange is a row for each rank of the sender: its L shards for the other node,
 * which are consecutive in SEND. All rows, by sum and rank, are dealt out evenly to the local ranks, as many
 * to each as there are sums. That spreads the work exactly, and what a rank carries is as large as its own
 * vector. Pairs of nodes are shared by several ranks only at the ends of these shares, or where there are
 * fewer nodes than local ranks.
 *
 *	gather		the carrier copies the rows of a pair from the SEND of its node's ranks
 *	exchange	it sends them, and receives as many
 *	distribute	each rank copies its columns of what has arrived from all carriers of its node
 *
 * With a barrier of the node's ranks after gathering, before and after distributing.
 *
 * In one segment all SEND has been read after gathering. Then RECV holds what arrives, and from there it is
 * transposed into SCRATCH, so that a rank takes what is for it from a pair of nodes as one range: that is for
 * small shards. For large vectors, sums are taken in several segments, as many at a time as fit in half
 * of SCRATCH, and the other half is for what arrives; there, each shard is copied by itself. The sums
 * of a segment are those of whole pairs of nodes. So in place, too, a rank only overwrites what its node has
 * read.
 */
#include "plan/algo/by_nodes.h"

#include <errno.h>
#include <stdlib.h>

#include "plan/algo/builder.h"

/* ---- who carries what ---- */

bool swc_by_nodes_find(struct swc_by_nodes *k, const struct swc_topo *t, int32_t param)
{
	uint32_t segments = param == SWC_PARAM_DEFAULT ? 1 : (uint32_t)param;

	if (!t || t->nnodes < 2 || t->nlocal < 2 || !segments ||
	    (segments > 1 && t->nnodes / segments < 2))
		return false;
	*k = (struct swc_by_nodes){ .nodes = t->nnodes,
				    .local = t->nlocal,
				    .sums = t->nnodes / segments };
	/* Then each pair of nodes is one local rank's. */
	if (segments > 1 && k->sums > k->local)
		k->sums -= k->sums % k->local;
	k->segments = (k->nodes + k->sums - 1) / k->sums;
	return true;
}

bool swc_by_nodes_next(const struct swc_by_nodes *k, uint32_t segment, uint32_t local,
		       struct swc_by_nodes_part *part)
{
	uint32_t sums = swc_by_nodes_sums(k, segment), at = part->at + part->n;
	uint64_t row = (uint64_t)local * sums + at;

	if (at == sums)
		return false;
	*part = (struct swc_by_nodes_part){ .sum = segment * k->sums + (uint32_t)(row / k->local),
					    .rank = (uint32_t)(row % k->local),
					    .at = at };
	part->n = k->local - part->rank;
	part->n = part->n < sums - at ? part->n : sums - at;
	return true;
}

/* ---- the plan ---- */

/**
 * struct by_nodes - a segment of a plan
 * @first: rank of the node
 * @in: what arrives is there, from block @in_at on
 */
struct by_nodes {
	struct swc_builder *b;
	struct swc_by_nodes k;
	uint32_t segment, node, first;
	enum swc_buf in;
	uint32_t in_at;
};

static void copy(const struct by_nodes *u, uint32_t rank, enum swc_buf buf, uint32_t from,
		 enum swc_buf to_buf, uint32_t to, uint32_t n)
{
	swc_build_step(u->b, SWC_STEP_LOCAL);
	swc_build_send(u->b, rank, buf, from, n);
	swc_build_recv(u->b, u->b->me, to_buf, to, n, to_buf == SWC_BUF_RECV ? SWC_XFER_FINAL : 0);
}

static void gather(const struct by_nodes *u)
{
	uint32_t local = u->k.local;
	struct swc_by_nodes_part p = { 0 };

	while (swc_by_nodes_next(&u->k, u->segment, u->b->me - u->first, &p)) {
		uint32_t peer = swc_by_nodes_peer(&u->k, p.sum, u->node);

		for (uint32_t i = 0; i < p.n; i++)
			copy(u, u->first + p.rank + i, SWC_BUF_SEND, peer * local, SWC_BUF_SCRATCH,
			     (p.at + i) * local, local);
	}
}

static void exchange(const struct by_nodes *u)
{
	uint32_t local = u->k.local, me = u->b->me - u->first;

	swc_build_step(u->b, SWC_STEP_NET);
	for (int recv = 0; recv < 2; recv++) {
		struct swc_by_nodes_part p = { 0 };

		while (swc_by_nodes_next(&u->k, u->segment, me, &p)) {
			uint32_t peer = swc_by_nodes_peer(&u->k, p.sum, u->node);
			uint32_t rank = peer * local + me, n = p.n * local;

			if (peer == u->node)
				continue;
			if (recv)
				swc_build_recv(u->b, rank, u->in, u->in_at + p.at * local, n, 0);
			else
				swc_build_send_stored(u->b, rank, SWC_BUF_SCRATCH, p.at * local, n);
		}
	}
}

/* From RECV to SCRATCH: of each part the columns, one after the other. A single row is its columns. */
static void transpose(const struct by_nodes *u)
{
	uint32_t local = u->k.local, n = 0;
	struct swc_by_nodes_part p = { 0 };
	struct swc_copy *at = calloc((size_t)u->k.nodes * local, sizeof(*at));

	if (!at) {
		u->b->error = u->b->error ? u->b->error : -ENOMEM;
		return;
	}
	while (swc_by_nodes_next(&u->k, u->segment, u->b->me - u->first, &p)) {
		uint32_t first = p.at * local, each = p.n == 1 ? local : 1;

		if (swc_by_nodes_peer(&u->k, p.sum, u->node) == u->node)
			continue;
		for (uint32_t i = 0; i < p.n * local; i += each)
			at[n++] = (struct swc_copy){
				.from = first + i,
				.to = first + (p.n == 1 ? 0 : i % local * p.n + i / local),
				.n = each,
				.from_buf = SWC_BUF_RECV,
				.to_buf = SWC_BUF_SCRATCH,
			};
	}
	swc_build_copies(u->b, at, n);
	free(at);
}

/* Take what is for this rank from what a rank of the node carries. */
static void take_part(const struct by_nodes *u, uint32_t carrier, const struct swc_by_nodes_part *p)
{
	uint32_t local = u->k.local, me = u->b->me - u->first, first = p->at * local;
	uint32_t peer = swc_by_nodes_peer(&u->k, p->sum, u->node), to = peer * local + p->rank;
	bool own = peer == u->node;

	if (u->in == SWC_BUF_RECV && !own) {
		copy(u, carrier, SWC_BUF_SCRATCH, first + me * p->n, SWC_BUF_RECV, to, p->n);
		return;
	}
	for (uint32_t i = 0; i < p->n; i++)
		copy(u, carrier, SWC_BUF_SCRATCH, (own ? 0 : u->in_at) + first + i * local + me,
		     SWC_BUF_RECV, to + i, 1);
}

/* Each rank begins with its own, so that not all read the same one's memory. */
static void distribute(const struct by_nodes *u)
{
	for (uint32_t i = 0; i < u->k.local; i++) {
		uint32_t carrier = (u->b->me - u->first + i) % u->k.local;
		struct swc_by_nodes_part p = { 0 };

		while (swc_by_nodes_next(&u->k, u->segment, carrier, &p))
			take_part(u, u->first + carrier, &p);
	}
}

static void build_segment(struct by_nodes *u)
{
	bool one = u->k.segments == 1;

	u->in = one ? SWC_BUF_RECV : SWC_BUF_SCRATCH;
	u->in_at = one ? 0 : u->k.sums * u->k.local;
	gather(u);
	swc_build_step(u->b, SWC_STEP_SYNC);
	exchange(u);
	if (one)
		transpose(u);
	swc_build_step(u->b, SWC_STEP_SYNC);
	distribute(u);
	swc_build_step(u->b, SWC_STEP_SYNC);
}

int swc_by_nodes_build(struct swc_builder *b)
{
	const struct swc_topo *t = b->args->topo;
	struct by_nodes u = { .b = b };
	uint64_t least;

	if (!b->places || !swc_by_nodes_find(&u.k, t, b->args->param))
		return swc_build_refuse(
			b, "by-nodes is for nodes with two ranks each or more, all with"
			   " as many, and at most half as many segments as nodes");
	least = (u.k.segments == 1 ? 2 : 3) * sizeof(struct swc_plan_xfer) * b->n;
	if (least > SWC_MAX_PLAN_BYTES)
		return swc_build_refuse(b, "the plan would have more than %u bytes",
					SWC_MAX_PLAN_BYTES);
	u.node = swc_topo_node_of(t, b->args->rank);
	u.first = swc_topo_first(t, u.node);
	swc_build_blocks(b, 1);
	swc_build_scratch(b, 0, (u.k.segments == 1 ? 1 : 2) * u.k.sums * u.k.local);
	swc_build_channel(b, 0, b->n);
	for (; u.segment < u.k.segments && !b->error; u.segment++)
		build_segment(&u);
	return 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Neighbours along one dimension exchange their shards, in one step: all links of that dimension are
 * busy in both directions, and no others. It has the form of an ALLGATHER, but not its result, so it
 * is no algorithm of the table: it is for measuring the rates of links.
 *
 * The first rank of each node sends; links are the nodes'. Two nodes with two links between them send
 * half of the shard over each. On a switch a node sends to the next one only, as it has one link.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/algo/exchange.h"
#include "plan/plan_tables.h"

/* Blocks of a shard, so that it can be halved. */
#define BLOCKS 2

/* A message of a node: part of its shard, to the next node up or down. */
struct message {
	bool down;
	uint8_t path;
	uint32_t first, nblocks;
};

static bool has_two_links(const struct swc_topo *t, uint32_t dim)
{
	return t->kind == SWC_TOPO_TORUS && t->dim[dim] == 2;
}

double swc_exchange_share(const struct swc_topo *t, uint32_t dim)
{
	return has_two_links(t, dim) ? 1.0 / BLOCKS : 1;
}

static uint32_t messages_of(const struct swc_topo *t, uint32_t dim, struct message out[2])
{
	out[0] = (struct message){ .nblocks = BLOCKS };
	out[1] = (struct message){ .down = true, .nblocks = BLOCKS };
	if (has_two_links(t, dim))
		for (uint8_t i = 0; i < 2; i++)
			out[i] = (struct message){ .path = i, .first = i, .nblocks = 1 };
	return t->kind == SWC_TOPO_SWITCH ? 1 : 2;
}

/* The node that a node sends a message to, or receives its like from. */
static bool neighbour(const struct swc_topo *t, uint32_t dim, uint32_t node, bool down,
		      uint32_t *to)
{
	uint32_t coord[SWC_TOPO_DIMS], d = t->dim[dim];

	swc_topo_coords(t, node, coord);
	if (t->kind == SWC_TOPO_MESH && coord[dim] == (down ? 0 : d - 1))
		return false;
	coord[dim] = (coord[dim] + (down ? d - 1 : 1)) % d;
	*to = swc_topo_node_at(t, coord);
	return true;
}

static bool add(struct swc_plan_writer *w, const struct swc_topo *t, uint32_t node, uint32_t owner,
		const struct message *m, bool recv)
{
	struct swc_plan_xfer x = {
		.rank = swc_topo_first(t, node),
		.first_block = swc_topo_first(t, owner) * BLOCKS + m->first,
		.nblocks = m->nblocks,
		.buf = recv ? SWC_BUF_RECV : SWC_BUF_SEND,
		.flags = recv ? SWC_XFER_FINAL : SWC_XFER_STORED,
		.path = m->path,
	};

	if (!swc_plan_tables_reserve(w))
		return false;
	if (recv)
		swc_plan_write_recv(w, &x);
	else
		swc_plan_write_send(w, &x);
	return true;
}

static bool exchange(struct swc_plan_writer *w, const struct swc_topo *t, uint32_t dim,
		     uint32_t node)
{
	struct message m[2];
	uint32_t n = messages_of(t, dim, m), other;
	bool good = true;

	for (uint32_t i = 0; i < n; i++)
		if (neighbour(t, dim, node, m[i].down, &other))
			good &= add(w, t, other, node, &m[i], false);
	for (uint32_t i = 0; i < n; i++)
		if (neighbour(t, dim, node, !m[i].down, &other))
			good &= add(w, t, other, other, &m[i], true);
	return good;
}

/* A rank that does not send has its own shard in the result. */
static bool copy(struct swc_plan_writer *w, uint32_t rank)
{
	struct swc_plan_xfer x = {
		.rank = rank, .first_block = rank * BLOCKS, .nblocks = BLOCKS, .buf = SWC_BUF_SEND
	};

	if (!swc_plan_tables_reserve(w))
		return false;
	swc_plan_write_send(w, &x);
	x.buf = SWC_BUF_RECV;
	x.flags = SWC_XFER_FINAL;
	if (!swc_plan_tables_reserve(w))
		return false;
	swc_plan_write_recv(w, &x);
	return true;
}

int swc_exchange_build(const struct swc_topo *t, uint32_t dim, uint32_t rank, void **plan,
		       size_t *bytes)
{
	uint32_t node = swc_topo_node_of(t, rank);
	bool sends = rank == swc_topo_first(t, node);
	struct swc_plan_writer w = { 0 };
	int ret = -ENOMEM;

	if (dim >= t->ndims || t->dim[dim] < 2)
		return -EOPNOTSUPP;
	swc_plan_write_begin(&w, SWC_ALLGATHER, t->nranks, rank, 0);
	memcpy(w.hdr.name, "exchange", sizeof("exchange"));
	w.hdr.flags = SWC_PLAN_NOT_IN_PLACE;
	if (swc_plan_write_blocks(&w, BLOCKS) <= SWC_PLAN_MAX_BLOCKS &&
	    swc_plan_tables_reserve(&w)) {
		swc_plan_write_channel(&w);
		swc_plan_write_step(&w, sends ? SWC_STEP_NET : SWC_STEP_LOCAL);
		if (sends ? exchange(&w, t, dim, node) : copy(&w, rank))
			ret = swc_plan_tables_pack(&w, plan, bytes);
	}
	swc_plan_tables_free(&w);
	return ret;
}

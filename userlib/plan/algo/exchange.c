// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Links one by one: a node sends its shard over one link, in one step, and so do others that share no end
 * with it. It has the form of an ALLGATHER, but not its result, so it is no algorithm of the table: it is
 * for measuring the rates of links. Since a node is at one end of one link only, how long it takes tells
 * the rate of that link.
 *
 * Rounds have all links in turn: of each dimension both ways, every second one, and where a ring is odd
 * the last one by itself. Two nodes with two links between them send half of the shard over each. On a
 * switch all nodes go in pairs that differ from round to round, as a transfer is as slow as the slower one
 * of two ends.
 *
 * The first rank of each node sends; links are the nodes'.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/algo/exchange.h"
#include "plan/plan_tables.h"

/* Blocks of a shard, so that it can be halved. */
#define BLOCKS 2
/* Pairs of a switch's nodes; in one of them a node may be left over. */
#define PAIRINGS 4

/* @color: which links of the dimension, or which pairing */
struct round {
	uint32_t dim, color;
	bool down;
};

static bool has_two_links(const struct swc_topo *t, uint32_t dim)
{
	return t->kind == SWC_TOPO_TORUS && t->dim[dim] == 2;
}

/* Links of a line of nodes, one way. */
static uint32_t links_of(const struct swc_topo *t, uint32_t dim)
{
	return t->dim[dim] - (t->kind == SWC_TOPO_MESH || t->dim[dim] <= 2);
}

static uint32_t colors_of(const struct swc_topo *t, uint32_t dim)
{
	uint32_t n = links_of(t, dim);

	if (t->kind == SWC_TOPO_SWITCH)
		return t->nnodes < 2 ? 0 : PAIRINGS;
	if (t->dim[dim] < 2)
		return 0;
	return n < 2 ? 1 : n == t->dim[dim] && n % 2 ? 3 : 2;
}

uint32_t swc_exchange_rounds(const struct swc_topo *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->ndims; i++)
		n += 2 * colors_of(t, i);
	return n;
}

static struct round round_of(const struct swc_topo *t, uint32_t number)
{
	struct round r = { 0 };

	while (number >= 2 * colors_of(t, r.dim))
		number -= 2 * colors_of(t, r.dim++);
	r.color = number / 2;
	r.down = number % 2;
	return r;
}

double swc_exchange_share(const struct swc_topo *t, uint32_t number)
{
	return has_two_links(t, round_of(t, number).dim) ? 1.0 / BLOCKS : 1;
}

/* The link of a line that a node is at the lower or higher end of, if it has its turn. */
static bool at_end(const struct swc_topo *t, const struct round *r, uint32_t x, bool higher,
		   uint32_t *link)
{
	uint32_t d = t->dim[r->dim], n = links_of(t, r->dim), color;

	*link = higher ? (x + d - 1) % d : x;
	color = n == d && n % 2 && *link == d - 1 ? 2 : *link % 2;
	return *link < n && color == r->color;
}

/* Both ends of the link that a node is at, in this round; false: none. */
static bool find_ends(const struct swc_topo *t, const struct round *r, uint32_t node,
		      uint32_t *from, uint32_t *to)
{
	uint32_t coord[SWC_TOPO_DIMS], low, high, link;

	if (t->kind == SWC_TOPO_SWITCH) {
		uint32_t other = (r->color + t->nnodes - node) % t->nnodes;

		*from = (other < node) == r->down ? node : other;
		*to = *from == node ? other : node;
		return other != node;
	}
	swc_topo_coords(t, node, coord);
	if (!at_end(t, r, coord[r->dim], false, &link) && !at_end(t, r, coord[r->dim], true, &link))
		return false;
	coord[r->dim] = link;
	low = swc_topo_node_at(t, coord);
	coord[r->dim] = (link + 1) % t->dim[r->dim];
	high = swc_topo_node_at(t, coord);
	*from = r->down ? high : low;
	*to = r->down ? low : high;
	return true;
}

bool swc_exchange_link(const struct swc_topo *t, uint32_t number, uint32_t node, uint32_t *from,
		       uint32_t *to)
{
	struct round r = round_of(t, number);

	return find_ends(t, &r, node, from, to);
}

/* A transfer of a shard, or of half of it. */
static bool add(struct swc_plan_writer *w, const struct swc_topo *t, uint32_t node, uint32_t owner,
		uint32_t first, uint32_t nblocks, bool recv)
{
	struct swc_plan_xfer x = {
		.rank = swc_topo_first(t, node),
		.first_block = swc_topo_first(t, owner) * BLOCKS + first,
		.nblocks = nblocks,
		.buf = recv ? SWC_BUF_RECV : SWC_BUF_SEND,
		.flags = recv ? SWC_XFER_FINAL : SWC_XFER_STORED,
		.path = (uint8_t)first,
	};

	if (!swc_plan_tables_reserve(w))
		return false;
	if (recv)
		swc_plan_write_recv(w, &x);
	else
		swc_plan_write_send(w, &x);
	return true;
}

static bool exchange(struct swc_plan_writer *w, const struct swc_topo *t, const struct round *r,
		     uint32_t node, uint32_t from, uint32_t to)
{
	uint32_t parts = has_two_links(t, r->dim) ? BLOCKS : 1, each = BLOCKS / parts;
	bool recv = node == to, good = true;

	for (uint32_t i = 0; i < parts; i++)
		good &= add(w, t, recv ? from : to, from, i * each, each, recv);
	return good;
}

/* A rank that takes no part has its own shard in the result. */
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

int swc_exchange_build(const struct swc_topo *t, uint32_t number, uint32_t rank, void **plan,
		       size_t *bytes)
{
	struct round r = round_of(t, number);
	uint32_t node = swc_topo_node_of(t, rank), from, to;
	bool takes_part = rank == swc_topo_first(t, node) && find_ends(t, &r, node, &from, &to);
	struct swc_plan_writer w = { 0 };
	int ret = -ENOMEM;

	swc_plan_write_begin(&w, SWC_ALLGATHER, t->nranks, rank, 0);
	memcpy(w.hdr.name, "exchange", sizeof("exchange"));
	w.hdr.flags = SWC_PLAN_NOT_IN_PLACE;
	if (swc_plan_write_blocks(&w, BLOCKS) <= SWC_PLAN_MAX_BLOCKS &&
	    swc_plan_tables_reserve(&w)) {
		swc_plan_write_channel(&w);
		swc_plan_write_step(&w, takes_part ? SWC_STEP_NET : SWC_STEP_LOCAL);
		if (takes_part ? exchange(&w, t, &r, node, from, to) : copy(&w, rank))
			ret = swc_plan_tables_pack(&w, plan, bytes);
	}
	swc_plan_tables_free(&w);
	return ret;
}

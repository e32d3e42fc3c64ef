// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Hierarchy: an allreduce among nodes with several ranks each. The vector is cut into shards. On
 * every node each shard has an owner, which first sums the shard over the ranks of the node in one
 * pass over memory, then runs the network's algorithm for that shard with its other owners, and
 * last writes the result to all ranks of the node in one pass. So each element crosses the network
 * as if there were one rank per node, and the ranks of a node share the work.
 *
 * With Lmin and Lmax the smallest and largest number of ranks of a node, there are G = ceil(Lmax /
 * Lmin) groups of Lmin shards. Shard s belongs to local rank s mod L of a node with L ranks. The
 * owners within a group are distinct on every node, so its shards may share channels: messages are
 * matched by channel and pair of ranks. Each group has channels of its own, and every rank has all
 * channels, if only to wait in the barrier at the end for results that others write to it. There
 * are at most MAX_GROUPS groups: where nodes differ more than that, the ranks beyond the last shard
 * only wait, as the smallest node is the slowest anyway. On a switch with more rails than ranks there are
 * as many groups as a rank has rails.
 */
#include <errno.h>
#include <stdlib.h>

#include "plan/algo/builder.h"

#define MAX_GROUPS 8 /* with 8 ports in use that is SWC_MAX_CHANNELS */

/* Suspend the translation, so that what is appended counts ranks and blocks of the plan itself. */
static struct swc_hierarchy *suspend(struct swc_builder *b)
{
	struct swc_hierarchy *h = b->hier;

	b->hier = NULL;
	return h;
}

static void open_channel(struct swc_builder *b, uint32_t first, uint32_t nblocks)
{
	struct swc_hierarchy *h = b->hier;
	uint32_t at = h->shard * h->shard_blocks + first;

	h->open = true;
	h->first = first;
	h->nblocks = nblocks;
	if (h->muted)
		return;
	suspend(b);
	swc_build_step(b, SWC_STEP_LOCAL);
	for (uint32_t i = 0; i < swc_topo_local(h->topo, h->node); i++)
		swc_build_send(b, swc_topo_first(h->topo, h->node) + i, SWC_BUF_SEND, at, nblocks);
	swc_build_recv(b, b->args->rank, SWC_BUF_RECV, at, nblocks, 0);
	b->hier = h;
}

static void close_channel(struct swc_builder *b)
{
	struct swc_hierarchy *h = suspend(b);
	uint32_t at = h->shard * h->shard_blocks + h->first;
	uint32_t mine = b->args->rank, first = swc_topo_first(h->topo, h->node);

	if (h->open && !h->muted && swc_topo_local(h->topo, h->node) > 1) {
		swc_build_step(b, SWC_STEP_LOCAL);
		swc_build_send(b, mine, SWC_BUF_RECV, at, h->nblocks);
		for (uint32_t i = 0; i < swc_topo_local(h->topo, h->node); i++)
			if (first + i != mine)
				swc_build_recv(b, first + i, SWC_BUF_RECV, at, h->nblocks, 0);
	}
	if (h->open)
		swc_build_step(b, SWC_STEP_SYNC);
	h->open = false;
	b->hier = h;
}

int swc_hierarchy_build(struct swc_builder *b, swc_build_fn *build, uint32_t rails)
{
	const struct swc_topo *t = b->topo;
	uint32_t least = UINT32_MAX, most = 0, groups, mine;
	struct swc_hierarchy h = {
		.topo = t,
		.node = swc_topo_node_of(t, b->args->rank),
		.open_channel = open_channel,
		.close_channel = close_channel,
	};
	int ret = 0;

	for (uint32_t node = 0; node < (t->first ? t->nnodes : 1); node++) {
		uint32_t n = swc_topo_local(t, node);

		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	if (most > SWC_MAX_FANIN)
		return swc_build_refuse(b, "a node may have up to %u ranks", SWC_MAX_FANIN);
	groups = (most + least - 1) / least;
	groups = groups < rails ? rails : groups;
	groups = groups < MAX_GROUPS ? groups : MAX_GROUPS;
	h.shards = groups * least;
	mine = b->args->rank - swc_topo_first(t, h.node);
	b->hier = &h;
	b->n = t->nnodes;
	b->me = h.node;
	/* The node's sum is in RECV, where the result goes. */
	b->in_place = true;
	for (uint32_t g = 0; !ret && !b->error && g < groups; g++) {
		uint32_t local = swc_topo_local(t, h.node), s = g * least;

		b->rails.part = g;
		h.muted = true;
		for (h.shard = s; h.shard < s + least; h.shard++) {
			h.muted = h.shard % local != mine;
			if (!h.muted)
				break;
		}
		if (h.muted)
			h.shard = s;
		ret = build(b);
		if (!ret)
			close_channel(b);
	}
	b->hier = NULL;
	return ret;
}

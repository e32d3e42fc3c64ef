/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
#ifndef SWC_CORE_PLAN_CHECK_H
#define SWC_CORE_PLAN_CHECK_H

#include <linux/swingcoll.h>

#include "types.h"

/* A verified plan: pointers into the caller's copy, and the room that the executor needs for it. */
struct swc_plan_view {
	const struct swc_plan_header *hdr;
	const struct swc_plan_channel *channels;
	const struct swc_plan_step *steps;
	const struct swc_plan_xfer *xfers;
	u32 max_sends;		/* of a network step */
	u32 max_recvs;		/* of a network step */
	u32 max_fan;		/* sources plus destinations of a step */
	u32 nblocks;		/* of the vector */
};

/**
 * swc_plan_check() - verify a plan
 * @data: the plan; must not change, and must outlive @view
 * @bytes: its size
 * @view: filled in on success
 * @why: on failure, where the plan is wrong and how
 * @why_bytes: room at @why
 *
 * Accepts only plans whose every reference (peer, channel, step, transfer, block, window) is in bounds.
 * Takes time linear in @bytes. What depends on other ranks' plans is checked at run time.
 *
 * Return: 0 or -EINVAL.
 */
int swc_plan_check(const void *data, size_t bytes, struct swc_plan_view *view, char *why,
		   size_t why_bytes);

/* The blocks of the vector that a rank's SEND or RECV buffer holds, by collective. */
static inline struct swc_plan_window swc_plan_window_of(enum swc_coll coll, enum swc_buf buf, u32 rank,
							u32 root, u32 shard_blocks, u32 nblocks)
{
	const struct swc_plan_window none = { 0, 0 }, all = { 0, nblocks };
	const struct swc_plan_window own = { rank * shard_blocks, shard_blocks };

	switch (coll) {
	case SWC_REDUCE_SCATTER:
		return buf == SWC_BUF_RECV ? own : all;
	case SWC_ALLGATHER:
		return buf == SWC_BUF_SEND ? own : all;
	case SWC_BROADCAST:
		return buf == SWC_BUF_SEND && rank != root ? none : all;
	case SWC_REDUCE:
		return buf == SWC_BUF_RECV && rank != root ? none : all;
	case SWC_GATHER:
		if (buf == SWC_BUF_SEND)
			return own;
		return rank == root ? all : none;
	case SWC_SCATTER:
		if (buf == SWC_BUF_RECV)
			return own;
		return rank == root ? all : none;
	case SWC_BARRIER:
		return none;
	default:
		return all;
	}
}

static inline bool swc_coll_has_root(u8 coll)
{
	return coll == SWC_BROADCAST || coll == SWC_REDUCE || coll == SWC_GATHER || coll == SWC_SCATTER;
}

static inline bool swc_coll_reduces(u8 coll)
{
	return coll == SWC_ALLREDUCE || coll == SWC_REDUCE_SCATTER || coll == SWC_REDUCE;
}

/* May each rank's shard have its own size? */
static inline bool swc_coll_takes_counts(u8 coll)
{
	return coll == SWC_GATHER || coll == SWC_SCATTER;
}

/* Shards of the vector: the descriptor's count is the size of one. */
static inline u32 swc_coll_nshards(u8 coll, u32 nranks)
{
	return coll == SWC_REDUCE_SCATTER || coll == SWC_ALLGATHER || coll == SWC_ALLTOALL ||
	       coll == SWC_GATHER || coll == SWC_SCATTER ? nranks : 1;
}

#endif /* SWC_CORE_PLAN_CHECK_H */

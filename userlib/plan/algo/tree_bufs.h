/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The buffers of trees: sums go up, results go down.
 */
#ifndef SWC_PLAN_ALGO_TREE_BUFS_H
#define SWC_PLAN_ALGO_TREE_BUFS_H

#include "plan/algo/builder.h"

/* Does the collective have a phase that goes up, and one that goes down? */
static inline bool swc_tree_goes_up(const struct swc_builder *b)
{
	return b->args->coll != SWC_BROADCAST;
}

static inline bool swc_tree_goes_down(const struct swc_builder *b)
{
	return b->args->coll != SWC_REDUCE;
}

/* The buffer for sums: in REDUCE only root has a RECV buffer. */
static inline enum swc_buf swc_tree_sums(const struct swc_builder *b)
{
	return b->args->coll == SWC_REDUCE && b->me != b->root ? SWC_BUF_SCRATCH : SWC_BUF_RECV;
}

/*
 * The buffer that a member sends down from: RECV, but the root of a broadcast has the vector in
 * SEND.
 */
static inline enum swc_buf swc_tree_down(const struct swc_builder *b)
{
	return b->args->coll == SWC_BROADCAST && b->me == b->root ? SWC_BUF_SEND : SWC_BUF_RECV;
}

/* A broadcast vector is complete from the start: the copies from the root carry the FINAL mark. */
static inline uint32_t swc_tree_down_flags(const struct swc_builder *b, uint32_t from)
{
	return b->args->coll == SWC_BROADCAST && from == b->root ? SWC_XFER_FINAL : 0;
}

/* The root of a broadcast needs the result, too. In place this is a copy onto itself. */
static inline void swc_tree_copy_at_root(struct swc_builder *b, uint32_t first, uint32_t nblocks)
{
	if (b->args->coll != SWC_BROADCAST || b->me != b->root)
		return;
	swc_build_step(b, SWC_STEP_LOCAL);
	swc_build_send(b, b->me, SWC_BUF_SEND, first, nblocks);
	swc_build_recv(b, b->me, SWC_BUF_RECV, first, nblocks, SWC_XFER_FINAL);
}

#endif /* SWC_PLAN_ALGO_TREE_BUFS_H */

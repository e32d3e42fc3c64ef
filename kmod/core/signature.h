/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * The signature of a call: what all ranks of an operation must agree on. MPI leaves a mismatch undefined;
 * here it is an error on all ranks. Compared by swc_signature_equal() only.
 */
#ifndef SWC_CORE_SIGNATURE_H
#define SWC_CORE_SIGNATURE_H

#include "types.h"

/**
 * struct swc_signature - what all ranks of an operation must agree on
 * @count: elements, see enum swc_coll
 * @family: of the plan, see struct swc_plan_header
 * @root: root rank
 * @shard_blocks: blocks of a shard in the plan; with @coll and the number of ranks, the geometry
 * @coll: enum swc_coll
 * @dtype: enum swc_dtype
 * @redop: enum swc_redop
 * @partitioned: a partition of a partitioned operation
 */
struct swc_signature {
	u64 count;
	u64 family;
	u32 root;
	u32 shard_blocks;
	u8 coll;
	u8 dtype;
	u8 redop;
	bool partitioned;
};

static inline bool swc_signature_equal(const struct swc_signature *a, const struct swc_signature *b)
{
	return a->count == b->count && a->family == b->family && a->root == b->root &&
	       a->shard_blocks == b->shard_blocks && a->coll == b->coll && a->dtype == b->dtype &&
	       a->redop == b->redop && a->partitioned == b->partitioned;
}

#endif /* SWC_CORE_SIGNATURE_H */

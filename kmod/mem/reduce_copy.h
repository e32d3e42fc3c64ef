/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_MOVE_H
#define SWC_MOVE_H

#include "core/reduce.h"
#include "swingcoll.h"

/* A range of one region. */
struct swc_span {
	struct swc_region *region;
	u64 offset;
};

/* Where a range is being read or written; scratch space of swc_move(). */
struct swc_cursor {
	const struct swc_extent *extent;
	u64 offset;
	void *at;
};

/**
 * struct swc_move - one pass over memory
 *
 * @nsrc: sources, reduced in this order; with one source and no division it is a copy
 * @ndst: destinations
 * @span: nsrc sources, then ndst destinations
 * @cursor: room for nsrc + ndst
 * @ptr: room for nsrc + ndst
 * @bytes: length of every range
 * @done: bytes done so far; swc_move() goes on from there
 * @dtype: element type
 * @redop: operation
 * @div: divide by this at the end (SWC_AVG), 0: do not
 */
struct swc_move {
	u32 nsrc;
	u32 ndst;
	struct swc_span *span;
	struct swc_cursor *cursor;
	void **ptr;
	u64 bytes;
	u64 done;
	u8 dtype;
	u8 redop;
	u32 div;
};

int swc_move(struct swc_move *m, const int *stop);

#endif /* SWC_MOVE_H */

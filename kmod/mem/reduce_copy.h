/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_REDUCE_COPY_H
#define SWC_REDUCE_COPY_H

#include <linux/ktime.h>

#include "core/reduce.h"
#include "mem/extents.h"
#include "swingcoll.h"

/* A range of memory, which begins at @offset of @extents. */
struct swc_span {
	const struct swc_extents *extents;
	u64 offset;
};

/* Position in a range; scratch space of swc_reduce_copy(). */
struct swc_cursor {
	const struct swc_extent *extent;
	u64 end;	/* of @extent, in the range */
};

/**
 * struct swc_reduce_copy - one pass over memory
 * @nsrc: sources, reduced in this order; one source and no division make a copy
 * @ndst: destinations
 * @span: nsrc sources, then ndst destinations
 * @cursor: room for nsrc + ndst
 * @ptr: room for nsrc + ndst: addresses of the next bytes
 * @bytes: length of each range
 * @done: bytes of each range that are done; swc_reduce_copy() continues from there
 * @dtype: element type
 * @redop: operation
 * @div: divide by this at the end (SWC_AVG); 0: do not
 * @slice_end: give way at this time, of swc_slice_clock_ns(); 0: no need
 */
struct swc_reduce_copy {
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
	u64 slice_end;
};

#ifdef SWC_KUNIT
/* The tests' clock. */
u64 swc_t_slice_clock_ns(void);
#define swc_slice_clock_ns()	swc_t_slice_clock_ns()
#else
#define swc_slice_clock_ns()	ktime_get_ns()
#endif

/* Is a time slice over? */
static inline bool swc_slice_over(u64 slice_end)
{
	return slice_end && swc_slice_clock_ns() >= slice_end;
}

int swc_reduce_copy(struct swc_reduce_copy *m, const int *stop);

#endif /* SWC_REDUCE_COPY_H */

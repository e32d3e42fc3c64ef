/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_EXTENTS_H
#define SWC_EXTENTS_H

#include <linux/types.h>

/* A stretch of physically contiguous memory, reached through the linear map. */
struct swc_extent {
	void *kaddr;
	u64 offset;		/* in the whole */
};

/**
 * struct swc_extents - memory in stretches: that of a region, of receive buffers, or of a copy of a segment
 * @nextents: entries of @extent; one more closes the table: its offset is the length of the whole
 * @extent: ordered by offset
 */
struct swc_extents {
	u32 nextents;
	struct swc_extent *extent;
};

/* The last extent that starts at or before @offset. */
static inline const struct swc_extent *swc_extents_find(const struct swc_extents *extents, u64 offset)
{
	u32 lo = 0, hi = extents->nextents - 1;

	while (lo < hi) {
		u32 mid = lo + (hi - lo + 1) / 2;

		if (extents->extent[mid].offset <= offset)
			lo = mid;
		else
			hi = mid - 1;
	}
	return &extents->extent[lo];
}

/* The entry behind the last extent says where it ends. */
static inline void swc_extents_close(struct swc_extents *extents, u64 bytes)
{
	extents->extent[extents->nextents] = (struct swc_extent){ .offset = bytes };
}

#endif /* SWC_EXTENTS_H */

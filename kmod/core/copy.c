// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Copies, the reductions of one source; see reduce.h. Apart from reduce.c, because its
 * implementations, which reduce.c chooses from, copy too.
 */
#include "reduce.h"
#include "types.h"

/* A piece that stays in the first-level cache while it is copied to several places. */
#define SWC_COPY_PIECE 8192

void swc_copy(void *const *dst, unsigned int ndst, const void *src, size_t bytes)
{
	/* One destination needs no second look at the source: let memcpy() see the whole of it. */
	size_t piece = ndst > 1 ? SWC_COPY_PIECE : bytes;
	size_t done, now;
	unsigned int d;

	for (done = 0; done < bytes; done += now) {
		now = bytes - done < piece ? bytes - done : piece;
		for (d = 0; d < ndst; d++) {
			if (dst[d] != src)
				memcpy((u8 *)dst[d] + done, (const u8 *)src + done, now);
		}
	}
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies and reductions by the CPU: one pass from n sources to m destinations.
 *
 * Works on the linear-map addresses of pinned pages, in stretches that are contiguous in all ranges, cut
 * into pieces small enough for one FPU section (nothing inside may fault or sleep). Between pieces it
 * yields the CPU and checks whether the operation has been aborted. Process context only.
 */
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "compat.h"
#include "mem/reduce_copy.h"
#include "mem/region.h"

/*
 * Bytes of each range in one FPU section: some microseconds of work, well above the cost of begin and end.
 * Fewer if there are many ranges, because nothing else can run on the CPU meanwhile.
 */
#define PIECE_BYTES	(16u << 10)
#define PIECE_MIN	(1u << 10)
/* Bytes of all ranges together between two yields, and the maximum of a piece. */
#define YIELD_BYTES	(128u << 10)

/* Point a cursor at a byte of its region. Returns the bytes from there to the end of the extent. */
static u64 cursor_seek(struct swc_cursor *cur, u64 offset)
{
	while (cur->extent[1].offset <= offset)
		cur->extent++;
	cur->at = cur->extent->kaddr + (offset - cur->extent->offset);
	return cur->extent[1].offset - offset;
}

static void copy_piece(const struct swc_reduce_copy *m, swc_reduce_fn fn, bool fpu, u64 at, u64 bytes)
{
	u32 i, n = m->nsrc + m->ndst;

	for (i = 0; i < n; i++)
		m->ptr[i] = m->cursor[i].at + at;
	if (!fn) {
		swc_copy(m->ptr + 1, m->ndst, m->ptr[0], bytes);
		return;
	}
	if (fpu)
		kernel_fpu_begin();
	fn(m->ptr + m->nsrc, m->ndst, (const void *const *)m->ptr, m->nsrc,
	   bytes / swc_dtype_size(m->dtype), m->div);
	if (fpu)
		kernel_fpu_end();
}

/**
 * swc_reduce_copy() - carry out, or continue, one pass
 * @m: the pass; @m->done counts the bytes that are done
 * @stop: becomes non-zero when the operation is aborted
 *
 * Return: 0 when all is done; -ECANCELED if @stop is set; -EINTR if the caller is being killed, or its time
 * slice is over, and another worker has to continue.
 */
int swc_reduce_copy(struct swc_reduce_copy *m, const int *stop)
{
	swc_reduce_fn fn = NULL;
	u32 i, n = m->nsrc + m->ndst;
	enum swc_stat stat = SWC_STAT_BYTES_COPIED;
	u64 since = 0, from = m->done, most = clamp(round_down(YIELD_BYTES / n, 64), PIECE_MIN, PIECE_BYTES);
	bool fpu = false;
	int ret = 0;

	if (m->done == m->bytes)
		return 0;
	if (m->nsrc > 1 || m->div) {
		fn = swc_reduce_get(m->dtype, m->div ? SWC_AVG :
				    m->redop == SWC_AVG ? SWC_SUM : m->redop);
		fpu = swc_reduce_needs_fpu(m->dtype);
		stat = SWC_STAT_BYTES_REDUCED;
	}
	for (i = 0; i < n; i++)
		m->cursor[i].extent = swc_region_find(m->span[i].region, m->span[i].offset + m->done);

	while (m->done < m->bytes && !ret) {
		u64 len = m->bytes - m->done, at;

		for (i = 0; i < n; i++)
			len = min(len, cursor_seek(&m->cursor[i], m->span[i].offset + m->done));
		for (at = 0; at < len && !ret; ) {
			u64 piece = min(len - at, most);

			copy_piece(m, fn, fpu, at, piece);
			at += piece;
			since += piece * n;
			if (since < YIELD_BYTES)
				continue;
			since = 0;
			cond_resched();
			if (READ_ONCE(*stop))
				ret = -ECANCELED;
			else if (fatal_signal_pending(current) || swc_slice_over(m->slice_end))
				ret = -EINTR;
		}
		m->done += at;
	}
	swc_stat_add(stat, m->done - from);
	return ret == -EINTR && m->done == m->bytes ? 0 : ret;
}

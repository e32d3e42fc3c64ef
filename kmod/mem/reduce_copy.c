// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies and reductions by the CPU: one pass from n sources to m destinations.
 *
 * Works on the linear-map addresses of pinned pages, in pieces that are contiguous in all ranges; several of
 * them make an FPU section (nothing inside may fault or sleep). Between sections it yields the CPU and checks
 * whether the operation has been aborted. Process context only.
 */
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "compat.h"
#include "mem/reduce_copy.h"

/*
 * Bytes of each range that one call adds, at most: some microseconds of work. Fewer if there are many ranges,
 * because nothing else can run on the CPU meanwhile.
 */
#define PIECE_BYTES	(16u << 10)
#define PIECE_MIN	(1u << 10)
/* Bytes of all ranges together between two yields, which is the length of an FPU section, too. */
#define YIELD_BYTES	(128u << 10)

/* Go to the first byte that is not done. Return: bytes from there that are contiguous in all ranges. */
static u64 seek(struct swc_reduce_copy *m)
{
	u64 end = U64_MAX;
	u32 i;

	for (i = 0; i < m->nsrc + m->ndst; i++) {
		struct swc_cursor *cur = &m->cursor[i];
		u64 offset = m->span[i].offset + m->done;

		cur->extent = swc_extents_find(m->span[i].extents, offset);
		cur->end = cur->extent[1].offset - m->span[i].offset;
		m->ptr[i] = cur->extent->kaddr + (offset - cur->extent->offset);
		end = min(end, cur->end);
	}
	return end - m->done;
}

/* Go to the extent behind the one that ends here. Return: its address. */
static noinline void *next_extent(struct swc_cursor *cur)
{
	cur->extent++;
	cur->end += cur->extent[1].offset - cur->extent->offset;
	return cur->extent->kaddr;
}

/*
 * Go on by @len bytes, of those that are contiguous, to @m->done; there are more behind them. Buffers lie
 * differently in their pages, so this happens up to once a page and range, and is as much as a quarter of a
 * pass: so little is done for each range whose extent goes on.
 */
static u64 advance(struct swc_reduce_copy *m, u32 n, u64 len)
{
	struct swc_cursor *cur = m->cursor, *last = cur + n;
	u64 done = m->done, end = U64_MAX;
	void **ptr = m->ptr;

	for (; cur < last; cur++, ptr++) {
		*ptr += len;
		if (cur->end == done)
			*ptr = next_extent(cur);
		end = min(end, cur->end);
	}
	return end - done;
}

/*
 * Piece by piece, until all is done or others are to get their turn. @contiguous: bytes that are so where the
 * pass has come. Return: the same for the next section.
 */
static u64 run_section(struct swc_reduce_copy *m, swc_reduce_fn fn, u64 contiguous)
{
	u32 n = m->nsrc + m->ndst, shift = ilog2(swc_dtype_size(m->dtype));
	u64 most = clamp(round_down(YIELD_BYTES / n, 64), PIECE_MIN, PIECE_BYTES);
	u64 bytes, sum;

	for (sum = 0; sum < YIELD_BYTES; sum += bytes * n) {
		bytes = min3(contiguous, m->bytes - m->done, most);
		if (fn)
			fn(m->ptr + m->nsrc, m->ndst, (const void *const *)m->ptr, m->nsrc, bytes >> shift,
			   m->div);
		else
			swc_copy(m->ptr + 1, m->ndst, m->ptr[0], bytes);
		m->done += bytes;
		if (m->done == m->bytes)
			return 0;
		contiguous = advance(m, n, bytes);
	}
	return contiguous;
}

/* Between sections. */
static int pause(const struct swc_reduce_copy *m, const int *stop)
{
	cond_resched();
	if (READ_ONCE(*stop))
		return -ECANCELED;
	return fatal_signal_pending(current) || swc_slice_over(m->slice_end) ? -EINTR : 0;
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
	enum swc_stat stat = SWC_STAT_BYTES_COPIED;
	u64 from = m->done, contiguous;
	swc_reduce_fn fn = NULL;
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
	contiguous = seek(m);
	do {
		if (fpu)
			swc_fpu_begin();
		contiguous = run_section(m, fn, contiguous);
		if (fpu)
			swc_fpu_end();
		if (m->done < m->bytes)
			ret = pause(m, stop);
	} while (m->done < m->bytes && !ret);
	swc_stat_add(stat, m->done - from);
	return ret;
}

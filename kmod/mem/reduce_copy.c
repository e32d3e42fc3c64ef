// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPU's way of moving data: one pass from n sources to m destinations, reducing on the way.
 *
 * Works on the linear-map addresses of pinned pages, in stretches that are contiguous in all ranges, cut into
 * pieces small enough for one FPU section (nothing inside may fault or sleep). Between pieces it lets others
 * run and looks whether the operation has been given up. Process context only.
 */
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "compat.h"
#include "mem/reduce_copy.h"
#include "region.h"

/*
 * One FPU section: some microseconds of work, well above what begin and end cost. Of one range; but wide
 * steps take less of each, because nobody else runs meanwhile.
 */
#define PIECE_BYTES	(16u << 10)
#define PIECE_MIN	(1u << 10)
/* Between looks at the scheduler and at the operation's state, and the most of a piece; of all ranges. */
#define BREATH_BYTES	(128u << 10)

/* Point the cursor at its range's byte @m->done + offset; bytes up to the end of the extent. */
static u64 cursor_seek(struct swc_cursor *cur, u64 offset)
{
	while (cur->extent[1].offset <= offset)
		cur->extent++;
	cur->offset = offset;
	cur->at = cur->extent->kaddr + (offset - cur->extent->offset);
	return cur->extent[1].offset - offset;
}

static void move_piece(const struct swc_move *m, swc_reduce_fn fn, bool fpu, u64 at, u64 bytes)
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
 * swc_move() - carry out, or carry on, one pass
 * @m: what to move; @m->done tells afterwards how far it came
 * @stop: becomes non-zero when the operation is given up
 *
 * Return: 0 when all is moved; -ECANCELED if @stop was set; -EINTR if the caller is being killed, so that
 * somebody else has to go on.
 */
int swc_move(struct swc_move *m, const int *stop)
{
	swc_reduce_fn fn = NULL;
	u32 i, n = m->nsrc + m->ndst;
	enum swc_stat stat = SWC_STAT_BYTES_COPIED;
	u64 since = 0, from = m->done, most = clamp(round_down(BREATH_BYTES / n, 64), PIECE_MIN, PIECE_BYTES);
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

			move_piece(m, fn, fpu, at, piece);
			at += piece;
			since += piece * n;
			if (since < BREATH_BYTES)
				continue;
			since = 0;
			cond_resched();
			if (READ_ONCE(*stop))
				ret = -ECANCELED;
			else if (fatal_signal_pending(current))
				ret = -EINTR;
		}
		m->done += at;
	}
	swc_stat_add(stat, m->done - from);
	return ret == -EINTR && m->done == m->bytes ? 0 : ret;
}

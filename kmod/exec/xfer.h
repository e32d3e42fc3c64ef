/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_XFER_H
#define SWC_XFER_H

#include "exec/operation.h"
#include "mem/region.h"

/**
 * swc_xfer_find() - where the blocks of a transfer lie in one of a rank's buffers
 * @req: request of the rank that owns the buffer
 * @x: transfer
 * @buf: enum swc_buf
 * @span: filled in
 * @bytes: gets the size of the blocks, in any case
 *
 * Return: false if the buffer's window does not hold the blocks.
 */
static inline bool swc_xfer_find(const struct swc_req *req, const struct swc_plan_xfer *x, u8 buf,
				 struct swc_span *span, u64 *bytes)
{
	const struct swc_req_buf *b = &req->buf[buf];
	u64 at = swc_blocks_offset(&req->blocks, x->first_block);

	*bytes = swc_blocks_offset(&req->blocks, x->first_block + x->nblocks) - at;
	if (at < b->start || at - b->start > b->bytes || *bytes > b->bytes - (at - b->start))
		return false;
	/* A window of no bytes has no region. */
	span->extents = b->region ? &b->region->extents : NULL;
	span->offset = b->offset + at - b->start;
	return true;
}

bool swc_xfer_span(const struct swc_req *req, const struct swc_plan_xfer *x, u8 buf, struct swc_span *span);
u64 swc_xfer_bytes(const struct swc_req *req, const struct swc_plan_xfer *x);
u32 swc_xfer_divisor(const struct swc_task *task, const struct swc_plan_xfer *x);
enum swc_step_status swc_xfer_mismatch(struct swc_task *task, u32 peer, const char *what);

#endif /* SWC_XFER_H */

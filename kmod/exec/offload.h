/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_OFFLOAD_H
#define SWC_OFFLOAD_H

#include "exec/operation.h"

enum swc_step_status swc_offload_copy(struct swc_task *task);
bool swc_offload_wanted(const struct swc_reduce_copy *m, u32 copies, u32 workers);
bool swc_offload_flush_batch(struct swc_op *op);

/**
 * swc_offload_flush() - give engines the batch of copies, if there is one
 *
 * The caller is a worker of the operation. It flushes what it has added itself, so it need not see another
 * one's addition.
 *
 * Return: false if there was no batch.
 */
static inline bool swc_offload_flush(struct swc_op *op)
{
	return !list_empty_careful(&op->offload_batch) && swc_offload_flush_batch(op);
}

#endif /* SWC_OFFLOAD_H */

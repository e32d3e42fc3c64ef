/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_READY_H
#define SWC_READY_H

#include "exec/task.h"

bool swc_run_queue(struct swc_part *part);
void swc_run_summon(struct swc_op *op);
void swc_run_summon_all(struct swc_op *op);
void swc_run_return(struct swc_op *op, struct swc_run *run);
void swc_run_make_ready(struct swc_op *op, struct swc_run *run);
bool swc_run_resume(struct swc_op *op, struct swc_run *run);
void swc_run_call(struct swc_op *op, struct swc_run *run);

/* NULL: the rank is on another node, or its plan has fewer channels. */
static inline struct swc_run *swc_run_of(struct swc_op *op, u32 rank, u16 channel)
{
	struct swc_part *part = op->part[rank];

	return part && channel < part->nruns ? &part->runs[channel] : NULL;
}

#endif /* SWC_READY_H */

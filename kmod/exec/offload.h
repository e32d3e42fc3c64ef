/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_CARRY_H
#define SWC_CARRY_H

#include "exec/task.h"

/* How far a worker has come with a run. */
enum swc_walk {
	SWC_WALK_ON,		/* the step is done */
	SWC_WALK_WAIT,		/* for a peer or an engine, which makes the run ready */
	SWC_WALK_DONE,		/* there are no more steps */
	SWC_WALK_STOP,		/* this worker is being killed; the next one goes on */
	SWC_WALK_BROKEN,	/* the operation cannot go on */
};

enum swc_walk swc_carry_on(struct swc_run *run);
void swc_carry_gathered(struct swc_op *op);
bool swc_carry_is_last(const struct swc_run *run);

#endif /* SWC_CARRY_H */

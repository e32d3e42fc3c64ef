/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_OP_H
#define SWC_OP_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "comm.h"
#include "core/blocks.h"
#include "move.h"
#include "plan.h"
#include "swingcoll.h"

enum swc_run_state {
	SWC_RUN_READY,		/* on op->ready, nobody has it */
	SWC_RUN_ACTIVE,		/* a worker has it */
	SWC_RUN_WAIT_RECV,	/* until the peer @wait_rank posts its send */
	SWC_RUN_WAIT_SENDS,	/* until the peers have taken what was sent */
	SWC_RUN_WAIT_SYNC,	/* in a barrier */
	SWC_RUN_DONE,
};

/**
 * struct swc_run - one channel of one rank's plan on its way through an operation
 *
 * Belongs to its part. While ACTIVE, the fields belong to the worker, except those marked (L), which
 * op->lock guards always: peers look at them.
 *
 * @node: in op->ready (L)
 * @part: whose
 * @state: enum swc_run_state (L)
 * @channel: index
 * @step: current step in the plan's table (L)
 * @end: step behind the channel's last one
 * @posted: the current step is a network step and its sends may be taken (L)
 * @sends_left: of them not taken and read yet (L)
 * @taken: bitmap of sends that a peer has claimed (L)
 * @wait_rank: see SWC_RUN_WAIT_RECV (L)
 * @recv: receives done in the current network step
 * @sender: run whose send the current receive has claimed, or NULL
 * @moving: @move is set up and not complete
 * @move: the pass over memory in progress
 */
struct swc_run {
	struct list_head node;
	struct swc_part *part;
	u8 state;
	bool posted;
	u16 channel;
	u32 step;
	u32 end;
	u32 sends_left;
	unsigned long *taken;
	u32 wait_rank;
	u32 recv;
	struct swc_run *sender;
	bool moving;
	struct swc_move move;
};

/* One buffer of a part: where the window of the vector that it holds lies in memory. */
struct swc_part_buf {
	struct swc_region *region;
	u64 offset;		/* of the window's first byte in the region */
	u64 start;		/* of the window in the vector */
	u64 bytes;		/* of the window */
};

/**
 * struct swc_part - one rank's share of an operation: what it submitted, and how it is told
 *
 * Made by swc_part_create(). The submitter's reference ends after it has been told; a queued work item
 * holds one. Freed after an RCU grace period, because io_uring's cancel path may look at one that is just
 * being completed.
 *
 * @ref: references
 * @op: the operation; set by swc_op_submit(), holds a reference from then on
 * @member: whose; holds the communicator
 * @ctx: context that submitted it; waits for its parts before it goes
 * @plan: reference, until completion
 * @desc: the kernel's copy
 * @blocks: geometry
 * @buf: by enum swc_buf; references to regions, until completion
 * @refused: errno because of which this rank cannot take part, or 0. The part is submitted all the same: it
 *	has its place in the order, and the operation fails on all ranks at once.
 * @complete: tells the submitter; called exactly once, when @result is final. Process context, no locks.
 * @summon: makes the submitter's task call swc_exec_help(); NULL: use @work. Called under op->lock.
 * @work: runs swc_exec_help() on swc_wq
 * @cmd: io_uring command, for uring.c
 * @flags: SWC_PART_*, for uring.c
 * @result, @culprit: outcome
 * @submitted_at, @finished_at: ktime
 * @ring_reserved: an entry of the completion ring is promised
 * @nruns: channels
 * @runs: one per channel
 */
struct swc_part {
	refcount_t ref;
	struct rcu_head rcu;
	struct swc_op *op;
	struct swc_member *member;
	struct swc_ctx *ctx;
	struct swc_plan *plan;
	struct swc_desc desc;
	struct swc_blocks blocks;
	struct swc_part_buf buf[SWC_BUF_NR];
	int refused;
	void (*complete)(struct swc_part *part);
	bool (*summon)(struct swc_part *part);
	struct work_struct work;
	struct io_uring_cmd *cmd;
	unsigned long flags;
	int result;
	int culprit;
	u64 submitted_at;
	u64 finished_at;
	bool ring_reserved;
	u32 nruns;
	struct swc_run *runs;
};

/**
 * struct swc_op - one collective in flight, where the parts of all ranks meet
 *
 * Made by the first rank to arrive. References: each part, the communicator's window until all ranks have
 * arrived, its list until the operation has finished.
 *
 * @ref: references
 * @comm: reference
 * @seq: number on the communicator
 * @node: in comm->ops; comm->lock
 * @opened_at: ktime when the first rank arrived
 * @deadline: ktime, the earliest of all parts; comm->lock
 * @desc, @algo, @family, @nparts, @part_blocks: of the first to arrive; all others must be the same
 * @lock: guards all below
 * @narrived: parts here
 * @started_at: ktime when the last rank arrived, 0 before
 * @status: 0, or the negative errno it has failed with
 * @culprit: rank at fault or -1
 * @finished: status is final and parts are being completed
 * @ready: runs that a worker may take
 * @runs_left: runs not done
 * @nactive: workers inside
 * @nsummoned: helpers called and not yet inside
 * @max_workers: useful number of workers
 * @sync_arrived: by channel, runs waiting in the barrier
 * @part: by rank; NULL until that rank arrives
 */
struct swc_op {
	struct kref ref;
	struct swc_comm *comm;
	u64 seq;
	struct list_head node;
	u64 opened_at;
	u64 deadline;
	struct swc_desc desc;
	char algo[SWC_NAME_BYTES];
	u64 family;
	u32 nparts;
	u32 part_blocks;
	u64 bytes;

	spinlock_t lock;
	u32 narrived;
	u64 started_at;
	int status;
	int culprit;
	bool finished;
	struct list_head ready;
	u32 runs_left;
	u32 nactive;
	u32 nsummoned;
	u32 max_workers;
	u32 sync_arrived[SWC_MAX_CHANNELS];
	struct swc_part *part[];
};

/* part.c */
struct swc_part *swc_part_create(struct swc_ctx *ctx, struct swc_member *member,
				 const struct swc_desc *desc);
void swc_part_drop(struct swc_part *part);
void swc_part_finish(struct swc_part *part, int result, int culprit);
void swc_part_put(struct swc_part *part);
u64 swc_part_cqe_word(const struct swc_part *part);

/* op.c */
int swc_op_submit(struct swc_part *part, bool inline_ok);
void swc_op_fail(struct swc_op *op, int error, int culprit);
void swc_op_finish(struct swc_op *op);
void swc_op_put(struct swc_op *op);
void swc_op_expire(struct swc_op *op, u64 now);

/* exec.c */
void swc_exec_start(struct swc_op *op, struct swc_part *self, bool inline_ok);
bool swc_exec_enter(struct swc_op *op);
void swc_exec_help(struct swc_op *op, enum swc_stat where);
void swc_exec_leave(struct swc_op *op);
void swc_exec_attend(struct swc_op *op, int done, const unsigned long *flags);
void swc_exec_work(struct work_struct *work);

#endif /* SWC_OP_H */

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_REQUEST_H
#define SWC_REQUEST_H

#include <linux/refcount.h>
#include <linux/workqueue.h>

#include "core/blocks.h"
#include "core/signature.h"
#include "exec/task.h"
#include "swingcoll.h"

/* One buffer of a request: where the window of the vector that it holds lies in memory. */
struct swc_req_buf {
	struct swc_region *region;
	u64 offset;		/* of the window's first byte in the region */
	u64 start;		/* of the window in the vector */
	u64 bytes;		/* of the window */
};

/**
 * struct swc_req - one rank's call of an operation: what it submitted, and how it is completed
 *
 * Made by swc_req_create(). The submitter's reference ends after @complete; a queued work item holds one.
 *
 * The last put keeps the memory as member->spare, for the next request of the member, or frees it after an
 * RCU grace period. io_uring's cancel path may look at a request that is just being completed: under RCU it
 * finds the memory of a request, but not always of the same one. So once it has its reference it checks that
 * its command still has this request.
 *
 * @ref: references
 * @rcu: for kfree_rcu()
 * @account: of @ctx; holds a reference. Charged for @room and @charged
 * @tasks: one per channel, and their tables
 * @room: bytes of memory at @tasks
 * @op: the operation; set when the request is matched, holds a reference from then on
 * @member: the rank; holds the communicator
 * @ctx: context that submitted it; waits for its requests before it goes
 * @plan: reference, until completion
 * @desc: the kernel's copy
 * @sig: what the other ranks must call too
 * @blocks: geometry
 * @buf: by enum swc_buf; references to regions, until completion
 * @refused: errno for which this rank cannot take part, or 0. The request is matched all the same: it has its
 *	place in the order, and the operation fails on all ranks at once.
 * @complete: completes the call; called exactly once, when @result is final. Process context, no locks.
 * @started: if not NULL, called when the operation starts; under op->lock
 * @wake_worker: makes the submitter's process call swc_worker_run(); NULL: use @work. Called under op->lock.
 * @work: runs swc_worker_run() on the communicator's work queue
 * @partitioned, @index: the partitioned operation that it is a partition of, for partitioned.c
 * @cmd: io_uring command, for uring_cmd.c
 * @uring_state: for uring_cmd.c
 * @cpu: where its process last ran before it slept, if it has @wake_worker
 * @waiter: its process, if it sleeps until a message of another node arrives
 * @is_poller: its process polls the net of the communicator; set by uring_cmd.c
 * @polled_at: ktime at which its process began to poll, before it slept; for worker.c
 * @result, @culprit: outcome
 * @submitted_at, @finished_at: ktime
 * @ring_reserved: an entry of the completion ring is reserved
 * @ntasks: channels; 0 before swc_tasks_create() and after completion
 * @starts: of @blocks, where shards have different sizes; until completion
 * @charged: bytes of memory charged for @starts
 */
struct swc_req {
	/* These outlive the request, with a spare. The others begin as zeros. */
	refcount_t ref;
	struct rcu_head rcu;
	struct swc_account *account;
	struct swc_task *tasks;
	size_t room;

	struct swc_op *op;
	struct swc_member *member;
	struct swc_ctx *ctx;
	struct swc_plan *plan;
	struct swc_desc desc;
	struct swc_signature sig;
	struct swc_blocks blocks;
	struct swc_req_buf buf[SWC_BUF_NR];
	int refused;
	void (*complete)(struct swc_req *req);
	void (*started)(struct swc_req *req);
	bool (*wake_worker)(struct swc_req *req);
	struct work_struct work;
	struct swc_partitioned *partitioned;
	u32 index;
	struct io_uring_cmd *cmd;
	unsigned long uring_state;
	unsigned int cpu;
	struct swc_net_waiter waiter;
	bool is_poller;
	u64 polled_at;
	int result;
	int culprit;
	u64 submitted_at;
	u64 finished_at;
	bool ring_reserved;
	u32 ntasks;
	u64 *starts;
	u64 charged;
};

struct swc_req *swc_req_create(struct swc_ctx *ctx, struct swc_member *member,
				 const struct swc_desc *desc, struct swc_plan *plan);
void swc_req_drop(struct swc_req *req);
void swc_req_drop_prepared(struct swc_req *req);
void swc_req_complete(struct swc_req *req, int result, int culprit, u64 now);
void swc_req_put(struct swc_req *req);
void swc_req_free_spare(struct swc_member *member);
u64 swc_req_cqe_word(const struct swc_req *req);

#endif /* SWC_REQUEST_H */

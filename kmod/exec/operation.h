/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_OPERATION_H
#define SWC_OPERATION_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "comm/comm.h"
#include "core/signature.h"
#include "exec/request.h"
#include "mem/account.h"
#include "swingcoll.h"

/**
 * struct swc_op - one collective in flight, where the requests of all ranks of this node meet
 *
 * Made by the first rank to arrive, or to reserve its number. References: each request, the communicator's
 * table until all ranks have arrived and the operation has finished, its list until it has finished.
 *
 * The last put keeps the memory as comm->spare_op, for the next operation, or frees it.
 *
 * @account, @charged: who is charged for its memory, and for how many bytes
 * @ref: references
 * @comm: valid for holders of a request, or of another reference to it
 * @seq: number on the communicator
 * @node: in comm->ops; comm->lock
 * @call: in comm->calls, or empty; comm->lock
 * @hash_node: in comm->by_seq; comm->lock
 * @reserved: a rank has reserved the number for a partition; set for life
 * @opened_at: ktime when the first rank arrived
 * @deadline: ktime, the earliest of all requests; comm->lock
 * @next_check, @heartbeat_rank: when the watchdog looks next, and the remote rank that it has asked for its
 *	progress, or -1; comm->lock
 * @sig: signature of the first request to arrive; all others must have the same
 * @algo: its algorithm
 * @bytes: of its vector
 * @lock: guards all below
 * @narrived: requests here
 * @started_at: ktime when the last rank arrived, 0 before
 * @status: 0, or the errno that the operation fails with; written by swc_op_set_error() only
 * @culprit: rank at fault or -1; likewise
 * @finished: status is final and requests are being completed; set by swc_op_claim_finish() only
 * @runq: tasks that a worker may run
 * @offload_batch: tasks whose copies are given to engines together
 * @ntasks: tasks of all ranks here
 * @tasks_left: of them, those not DONE
 * @nactive: workers inside
 * @nposted: messages and offers that connections hold, and copies that engines hold
 * @nwoken: workers woken and not yet inside
 * @max_workers: useful number of workers
 * @single_worker: only one worker has been woken, because engines are expected to do it all
 * @sync_arrived: by channel, tasks waiting in the barrier
 * @req: of the ranks of this node, as in comm->local; NULL until that rank arrives
 */
struct swc_op {
	/* These outlive the operation, with a spare. The others begin as zeros. */
	struct swc_account *account;
	u64 charged;

	struct kref ref;
	struct swc_comm *comm;
	u64 seq;
	struct list_head node;
	struct list_head call;
	struct hlist_node hash_node;
	bool reserved;
	u64 opened_at;
	u64 deadline;
	u64 next_check;
	int heartbeat_rank;
	struct swc_signature sig;
	char algo[SWC_NAME_BYTES];
	u64 bytes;

	spinlock_t lock;
	u32 narrived;
	u64 started_at;
	int status;
	int culprit;
	bool finished;
	struct list_head runq;
	struct list_head offload_batch;
	u32 ntasks;
	u32 tasks_left;
	u32 nactive;
	u32 nposted;
	u32 nwoken;
	u32 max_workers;
	bool single_worker;
	u32 sync_arrived[SWC_MAX_CHANNELS];
	struct swc_req *req[];
};

void swc_op_release(struct kref *ref);

/* The caller holds the communicator as well. */
static inline void swc_op_put(struct swc_op *op)
{
	kref_put(&op->ref, swc_op_release);
}

/* The request of a rank. NULL: it has not arrived, or is on another node. */
static inline struct swc_req *swc_op_req(struct swc_op *op, u32 rank)
{
	u32 i = swc_comm_local_index(op->comm, rank);

	return i < op->comm->nlocal ? op->req[i] : NULL;
}

/* The task of a rank's channel. NULL: the rank is on another node, or its plan has fewer channels. */
static inline struct swc_task *swc_op_task(struct swc_op *op, u32 rank, u16 channel)
{
	struct swc_req *req = swc_op_req(op, rank);

	return req && channel < req->ntasks ? &req->tasks[channel] : NULL;
}

struct swc_op *swc_op_alloc(struct swc_comm *comm, struct swc_ctx *ctx);
void swc_op_free_spare(struct swc_comm *comm);
struct swc_op *swc_op_find(struct swc_comm *comm, u64 seq);
struct swc_op *swc_op_get_started(struct swc_comm *comm, u64 seq);
void swc_op_insert(struct swc_op *op, u64 seq);
void swc_op_retire(struct swc_op *op);
void swc_op_set_error(struct swc_op *op, int error, int culprit);
bool swc_op_claim_finish(struct swc_op *op);
void swc_op_finish(struct swc_op *op);
int swc_op_awaited_peer(struct swc_op *op);
int swc_op_list_missing(struct swc_op *op, char *text, size_t bytes);
void swc_ops_fail(struct swc_comm *comm);
void swc_ops_finish_failed(struct swc_comm *comm);
u64 swc_ops_first_from(const struct swc_comm *comm, u64 seq);
void swc_ops_free(struct swc_comm *comm);

#endif /* SWC_OPERATION_H */

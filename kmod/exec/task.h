/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What everything is about: communicators with their members, and the operations on them with the parts of
 * all ranks.
 */
#ifndef SWC_COLLECTIVE_H
#define SWC_COLLECTIVE_H

#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "core/blocks.h"
#include "plan/plan_conn.h"
#include "mem/reduce_copy.h"
#include "net.h"
#include "swingcoll.h"

struct swc_shared;

/**
 * struct swc_member - one rank of a communicator; embedded in it
 *
 * @comm: the communicator
 * @ctx: the context it belongs to; NULL before it joined and after it left
 * @state: enum swc_member_state; changes under comm->lock, only forward
 * @rank: rank
 * @submitted: operations submitted so far = number of the next one; of a member of another node: as it said
 *	last; comm->lock
 * @inflight: operations submitted and not finished; comm->lock
 * @reserved: numbers taken for partitions that are not ready yet, part of @submitted; comm->lock
 * @last_submit: ktime of the last submission
 * @pid: process that joined
 * @name: its command name
 * @plans: plan handle -> struct swc_plan
 * @nplans: entries of @plans
 */
struct swc_member {
	struct swc_comm *comm;
	struct swc_ctx *ctx;
	int state;
	u32 rank;
	u64 submitted;
	u32 inflight;
	u32 reserved;
	u64 last_submit;
	struct pid *pid;
	char name[TASK_COMM_LEN];
	struct xarray plans;
	atomic_t nplans;
};

#define SWC_EARLY	64

/**
 * struct swc_comm - a communicator
 *
 * Made by the first rank to join. One reference each for: every context's handle, every part of an operation,
 * every call in progress. The last put may come from anywhere; freeing happens on swc_wq.
 *
 * @ref: references
 * @node: in the list of all communicators; swc_comms_mutex
 * @number: position in that list for queries, never reused
 * @id: the shared secret
 * @nranks: members
 * @flags: SWC_JOIN_*
 * @timeout_ms: default deadline
 * @slot_bytes: size of @slots
 * @name, @places: what other nodes know it by: derived from @id, and from who is where
 * @nlocal, @local: members on this node, ascending
 * @rank_node, @here: node of each rank, and this one; NULL and 0 if all are here
 * @net: connections to other nodes, NULL if all members are here
 * @owner, @user_ns: who may join
 * @lock: guards all below but the wait queues
 * @status: enum swc_comm_status; changes only in set_status() of comm.c
 * @njoined, @nleft: members of this node that have joined, and that have left
 * @gone_at: the first operation that a member of another node which has left did not take part in
 * @by_seq: operations that not all members have reached yet, or that have not finished
 * @nwaiting: of them, those that not all members have reached; without reserved ones
 * @ops: operations that have not finished
 * @oldest: number of the first of them, U64_MAX: none
 * @calls: of them, those whose numbers nobody had reserved when they were made
 * @favoured: number of the first of those, U64_MAX: none
 * @nparted: how many others there are
 * @early: segments for operations that have not started here; by number, modulo SWC_EARLY
 * @parteds: partitioned operations of members of this node
 * @error, @culprit, @error_seq, @text: the last failure
 * @completed, @failed, @bytes: totals
 * @algo: algorithm of the last operation that ended
 * @next_check: when the watchdog runs next, 0: it is not armed
 * @watchdog: finds operations past their deadline
 * @join_wq: ranks that wait for the others to join
 * @slot_wq: ranks that wait for a word of the slots
 * @part_wq: ranks that wait for partitions
 * @slot_mem, @slots: memory shared by the members, charged to the first of them; the kernel only compares
 *	words of it
 * @state_mem, @state_page: what members poll, see struct swc_comm_state
 */
struct swc_comm {
	struct kref ref;
	struct list_head node;
	u64 number;
	u8 id[SWC_ID_BYTES];
	u32 nranks;
	u32 flags;
	u32 timeout_ms;
	u32 slot_bytes;
	u8 name[SWC_WIRE_NAME];
	__le32 places;
	u32 nlocal;
	u32 *local;
	u32 here;
	u32 *rank_node;
	struct swc_net *net;
	kuid_t owner;
	struct user_namespace *user_ns;

	spinlock_t lock;
	int status;
	u32 njoined;
	u32 nleft;
	u64 gone_at;
	DECLARE_HASHTABLE(by_seq, 8);
	u32 nwaiting;
	struct list_head ops;
	u64 oldest;
	struct list_head calls;
	u64 favoured;
	u32 nparted;
	struct list_head early[SWC_EARLY];
	struct list_head parteds;
	int error;
	int culprit;
	u64 error_seq;
	char text[SWC_TEXT_BYTES];
	u64 completed;
	u64 failed;
	u64 bytes;
	char algo[SWC_NAME_BYTES];
	u64 next_check;
	struct delayed_work watchdog;
	struct work_struct free_work;

	wait_queue_head_t join_wq;
	wait_queue_head_t slot_wq;
	wait_queue_head_t part_wq;
	struct swc_shared *slot_mem;
	void *slots;
	struct swc_shared *state_mem;
	struct swc_comm_state *state_page;

	struct swc_member member[];
};

/* Where its operations go on. */
static inline struct workqueue_struct *swc_comm_wq(const struct swc_comm *comm)
{
	return comm->flags & SWC_JOIN_URGENT ? swc_urgent_wq : swc_wq;
}

/* Is the rank one of this node? */
static inline bool swc_comm_is_local(const struct swc_comm *comm, u32 rank)
{
	return !comm->rank_node || comm->rank_node[rank] == comm->here;
}

/* Freeing sleeps and may be the watchdog's own doing: it is left to a work item. */
static inline void swc_comm_release(struct kref *ref)
{
	queue_work(swc_wq, &container_of(ref, struct swc_comm, ref)->free_work);
}

static inline void swc_comm_put(struct swc_comm *comm)
{
	kref_put(&comm->ref, swc_comm_release);
}

static inline void swc_member_put(struct swc_member *member)
{
	swc_comm_put(member->comm);
}

enum swc_run_state {
	SWC_RUN_READY,		/* on op->ready, nobody has it */
	SWC_RUN_ACTIVE,		/* a worker has it */
	SWC_RUN_WAIT_RECV,	/* until the peer @wait_rank posts its send, of another node: @wait_ordinal */
	SWC_RUN_WAIT_SENDS,	/* until the peers of this node have taken what was sent */
	SWC_RUN_WAIT_FENCE,	/* until messages of earlier steps have left their memory */
	SWC_RUN_WAIT_SYNC,	/* in a barrier */
	SWC_RUN_WAIT_DMA,	/* for an engine that carries out @move */
	SWC_RUN_DONE,
};

/**
 * struct swc_run - one channel of one rank's plan on its way through an operation
 *
 * Belongs to its part. While ACTIVE, the fields belong to the worker, except those marked (L), which
 * op->lock guards always: peers look at them.
 *
 * @node: in op->ready or op->gathered (L)
 * @part: whose
 * @state: enum swc_run_state (L)
 * @channel: index
 * @step: current step in the plan's table (L)
 * @end: step behind the channel's last one
 * @posted: the current step is a network step and its sends may be taken (L)
 * @cleared: and what it receives into may be overwritten
 * @sends_left: of them, to peers of this node, not taken and read yet (L)
 * @taken: bitmap of sends that a peer has claimed (L)
 * @wait_rank, @wait_ordinal: see SWC_RUN_WAIT_RECV (L)
 * @recv: receives done in the current network step
 * @sender: run whose send the current receive has claimed, or NULL
 * @seg: segment of another node that the current receive is taking, or NULL
 * @got: bytes of the current receive taken so far, from another node
 * @inbox: segments of other nodes, in the order of their arrival (L)
 * @unsent: by step modulo links->ahead: messages to other nodes that have not left their memory (L)
 * @out: those messages, links->ahead times the most that a step sends; NULL if all members are here
 * @offered: for the steps of the channel before this one memory has been offered, if they want that
 * @exposed: by step modulo links->kept: landings that are with their connections (L)
 * @land: by step modulo links->kept, by receive: memory that other nodes write into; likewise
 * @moving: @move is set up and not complete
 * @by_cpu: an engine has failed with it
 * @move: the pass over memory in progress
 * @prepared: the next local step's, ready for engines
 * @whole: bytes of it, if its end has been given to an engine while the CPU moves the rest; else 0 (L)
 * @engine_over: the engine is done (L)
 * @engine_moved: and has moved so many bytes; 0: it has failed (L)
 */
struct swc_run {
	struct list_head node;
	struct swc_part *part;
	u8 state;
	bool posted;
	bool cleared;
	u16 channel;
	u32 step;
	u32 end;
	u32 sends_left;
	unsigned long *taken;
	u32 wait_rank;
	u32 wait_ordinal;
	u32 recv;
	struct swc_run *sender;
	struct swc_seg *seg;
	u64 got;
	struct list_head inbox;
	u32 unsent[SWC_MAX_AHEAD];
	struct swc_out *out;
	u32 offered;
	u32 exposed[SWC_MAX_KEPT];
	struct swc_landing *land;
	bool moving;
	bool by_cpu;
	bool engine_over;
	struct swc_move move;
	struct swc_dma_job *prepared;
	u64 whole;
	u64 engine_moved;
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
 * @op: the operation; set by swc_submit(), holds a reference from then on
 * @member: whose; holds the communicator
 * @ctx: context that submitted it; waits for its parts before it goes
 * @plan: reference, until completion
 * @desc: the kernel's copy
 * @blocks: geometry
 * @buf: by enum swc_buf; references to regions, until completion
 * @refused: errno because of which this rank cannot take part, or 0. The part is submitted all the same: it
 *	has its place in the order, and the operation fails on all ranks at once.
 * @complete: tells the submitter; called exactly once, when @result is final. Process context, no locks.
 * @started: if not NULL, called when the operation starts; under op->lock
 * @summon: makes the submitter's task call swc_exec_help(); NULL: use @work. Called under op->lock.
 * @work: runs swc_exec_help() on swc_wq
 * @parted, @index: partitioned operation that it is a partition of, for parted.c
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
	void (*started)(struct swc_part *part);
	bool (*summon)(struct swc_part *part);
	struct work_struct work;
	struct swc_parted *parted;
	u32 index;
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
 * Made by the first rank to arrive, or to reserve its number. References: each part, the communicator's table
 * until all ranks have arrived and the operation has finished, its list until it has finished.
 *
 * @ref: references
 * @comm: valid for those who hold it by other means, such as a part
 * @seq: number on the communicator
 * @node: in comm->ops; comm->lock
 * @call: in comm->calls, or empty; comm->lock
 * @slot: in comm->by_seq; comm->lock
 * @reserved: somebody has reserved its number; set for life
 * @opened_at: ktime when the first rank arrived
 * @deadline: ktime, the earliest of all parts; comm->lock
 * @look, @asked: when the watchdog looks next, and whom it has asked how far it is, or -1; comm->lock
 * @desc, @algo, @family, @nparts, @part_blocks: of the first to arrive; all others must be the same
 * @parted: so is whether it is a partition
 * @lock: guards all below
 * @narrived: parts here
 * @started_at: ktime when the last rank arrived, 0 before
 * @status: 0, or the negative errno it has failed with
 * @culprit: rank at fault or -1
 * @finished: status is final and parts are being completed
 * @ready: runs that a worker may take
 * @gathered: runs with moves that are to be given to engines together
 * @nruns: runs of all ranks here
 * @runs_left: of them, those not done
 * @nactive: workers inside
 * @nposted: messages and landings that connections have, and moves that engines have
 * @nsummoned: helpers called and not yet inside
 * @max_workers: useful number of workers
 * @alone: only one has been called, for engines were to do it all
 * @sync_arrived: by channel, runs waiting in the barrier
 * @part: by rank; NULL until that rank arrives
 */
struct swc_op {
	struct kref ref;
	struct swc_comm *comm;
	u64 seq;
	struct list_head node;
	struct list_head call;
	struct hlist_node slot;
	bool reserved;
	u64 opened_at;
	u64 deadline;
	u64 look;
	int asked;
	struct swc_desc desc;
	char algo[SWC_NAME_BYTES];
	u64 family;
	u32 nparts;
	u32 part_blocks;
	bool parted;
	u64 bytes;

	spinlock_t lock;
	u32 narrived;
	u64 started_at;
	int status;
	int culprit;
	bool finished;
	struct list_head ready;
	struct list_head gathered;
	u32 nruns;
	u32 runs_left;
	u32 nactive;
	u32 nposted;
	u32 nsummoned;
	u32 max_workers;
	bool alone;
	u32 sync_arrived[SWC_MAX_CHANNELS];
	struct swc_part *part[];
};

/* Is a message of this operation, as its sender sees it? */
static inline bool swc_op_is_call(const struct swc_op *op, const struct swc_wire_msg *msg)
{
	const struct swc_desc *a = &op->desc, *b = &msg->sig;

	return a->coll == b->coll && a->dtype == b->dtype && a->redop == b->redop &&
	       a->count == b->count && a->root == b->root && op->family == msg->family &&
	       op->parted == msg->partition;
}

static inline void swc_op_release(struct kref *ref)
{
	kfree(container_of(ref, struct swc_op, ref));
}

static inline void swc_op_put(struct swc_op *op)
{
	kref_put(&op->ref, swc_op_release);
}

#endif /* SWC_COLLECTIVE_H */

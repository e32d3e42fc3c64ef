/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_COMM_H
#define SWC_COMM_H

#include <linux/mutex.h>

#include <linux/cpumask.h>
#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/pid_namespace.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "comm/user.h"
#include "core/text.h"
#include "net.h"
#include "swingcoll.h"

struct swc_account;
struct swc_op;
struct swc_recorder;
struct swc_shared;

/**
 * struct swc_member - one rank of a communicator; embedded in it
 *
 * @comm: the communicator
 * @ctx: the context it belongs to; NULL before it joined and after it left
 * @state: enum swc_member_state; changes under comm->lock, only forward
 * @rank: rank
 * @next_seq: number of the operation that it calls next, as far as this node knows: of a member of another
 *	node, as it last reported; comm->lock
 * @inflight: operations submitted and not finished; comm->lock
 * @ready_partitions: of them, partitions, which do not count against SWC_MAX_INFLIGHT; comm->lock
 * @reserved: numbers reserved for partitions that are not ready yet, all below @next_seq; comm->lock
 * @last_submit: ktime of the last submission
 * @pid: process that joined
 * @name: its command name; printable
 * @plans: plan handle -> struct swc_plan
 * @nplans: entries of @plans
 * @poll_ns: how long its process polls before it sleeps, as exec/worker.c has learned; 0: nothing yet
 * @spare: memory for the next request of this rank, or NULL; taken and put by exec/request.c, with xchg()
 */
struct swc_member {
	struct swc_comm *comm;
	struct swc_ctx *ctx;
	int state;
	u32 rank;
	u64 next_seq;
	u32 inflight;
	u32 ready_partitions;
	u32 reserved;
	u64 last_submit;
	struct pid *pid;
	char name[TASK_COMM_LEN];
	struct xarray plans;
	atomic_t nplans;
	u64 poll_ns;
	struct swc_req *spare;
};

/* For messages that name a member of this node. */
#define SWC_MEMBER_FMT		"rank %u (" SWC_TEXT_PID ", %s)"
#define SWC_MEMBER_ARGS(m)	(m)->rank, swc_own_pid((m)->pid), swc_pid_ns((m)->pid), (m)->name

/* The same for lines that have more to say. */
#define SWC_RANK_FMT		"rank %u (" SWC_TEXT_PID ")"
#define SWC_RANK_ARGS(m)	(m)->rank, swc_own_pid((m)->pid), swc_pid_ns((m)->pid)

/* The pid that the process itself sees, and the number of its pid namespace; 0 for no process. */
static inline pid_t swc_own_pid(struct pid *pid)
{
	return pid ? pid_nr_ns(pid, ns_of_pid(pid)) : 0;
}

static inline u32 swc_pid_ns(struct pid *pid)
{
	return pid ? ns_of_pid(pid)->ns.inum : 0;
}

/* For swc_text_read(): that of the caller. */
static inline u32 swc_reader_pid_ns(void)
{
	return task_active_pid_ns(current)->ns.inum;
}

/**
 * struct swc_comm_notifier - hears that a communicator is aborted
 * @node: in comm->notifiers; comm->lock
 * @aborted: called once, under comm->lock; must not sleep nor take other locks of the module
 */
struct swc_comm_notifier {
	struct list_head node;
	void (*aborted)(struct swc_comm_notifier *notifier);
};

/**
 * struct swc_comm_ops - what communicators call in plan/ and exec/, which are above them
 * @fail: fail all operations of a communicator that is being aborted; comm->lock is held
 * @finish_failed: end those of them that nothing keeps; no locks held
 * @first_from: the lowest number from @seq on of operations in flight, U64_MAX: none; comm->lock is held
 * @free: drop what is left of operations and requests; the communicator is being freed
 * @unload_plans: the member leaves; may sleep
 * @watchdog: work function of comm->watchdog
 */
struct swc_comm_ops {
	void (*fail)(struct swc_comm *comm);
	void (*finish_failed)(struct swc_comm *comm);
	u64 (*first_from)(const struct swc_comm *comm, u64 seq);
	void (*free)(struct swc_comm *comm);
	void (*unload_plans)(struct swc_member *member);
	work_func_t watchdog;
};

/* Lists of unexpected messages, by operation number modulo this. */
#define SWC_UNEXPECTED_LISTS	64

/**
 * struct swc_comm - a communicator
 *
 * Made by the first rank to join. One reference each for: every context's handle, every request, every call
 * in progress. The last put may come from anywhere; freeing happens on swc_free_wq.
 *
 * @ref: references
 * @by_id, @by_name: in the tables of comm.c; swc_comms_mutex
 * @number: position in the order of all communicators, never reused
 * @id: the shared secret
 * @nranks: members
 * @flags: SWC_COMM_F_*
 * @timeout_ms: default deadline
 * @slot_bytes: size of @slots
 * @nlocal, @local: members on this node, ascending
 * @rank_node, @here: node of each rank, and this one; NULL and 0 if all are here
 * @net: connections to other nodes, NULL if all members are here
 * @owner, @user_ns: who may join
 * @account: of @owner; charged for the communicator, its slots, operations and connections
 * @charged: bytes of memory charged for its own structs
 * @user: of @owner, with the work queues for operations
 * @recorder: its last events, or NULL; holds a reference
 * @lock: guards all below but @spare_op, @free_work and the wait queues
 * @status: enum swc_comm_status; changes only in swc_comm_set_status()
 * @njoined, @nleft: members of this node that have joined, and that have left
 * @cpus: where members of this node may run, each by its mask when it joined
 * @gone_at: the first operation that a member of another node which has left did not take part in
 * @by_seq: operations that not all members have reached yet, or that have not finished
 * @nwaiting: of them, those that not all members have reached; without reserved ones
 * @ops: operations that have not finished
 * @calls: of them, those whose numbers were not reserved when they were made
 * @spare_op: memory for the next operation, or NULL; taken and put by exec/op_memory.c, with xchg()
 * @window: the oldest of @ops and of @calls, for transports
 * @unexpected: segments for operations that have not started here; by number, modulo SWC_UNEXPECTED_LISTS
 * @notifiers: hear of the abort
 * @error, @culprit, @error_seq, @text: the last failure
 * @completed, @failed, @bytes: totals
 * @algo: algorithm of the last operation that ended
 * @next_check: when the watchdog runs next, 0: it is not armed
 * @watchdog: finds operations past their deadline
 * @free_work: frees the communicator after the last put
 * @create_wq: ranks that wait for the others to join
 * @slot_wq: ranks that wait for a word of the slots
 * @part_wq: ranks that wait for partitions
 * @slot_mem, @slots: memory shared by the members, charged to the first of them; the kernel only compares
 *	words of it
 * @state_mem, @state_page: what members poll, see struct swc_comm_state
 */
struct swc_comm {
	struct kref ref;
	struct hlist_node by_id;
	struct hlist_node by_name;
	u64 number;
	u8 id[SWC_ID_BYTES];
	u32 nranks;
	u32 flags;
	u32 timeout_ms;
	u32 slot_bytes;
	u32 nlocal;
	u32 *local;
	u32 here;
	u32 *rank_node;
	struct swc_net *net;
	kuid_t owner;
	struct user_namespace *user_ns;
	struct swc_account *account;
	u64 charged;
	struct swc_user *user;
	struct swc_recorder *recorder;

	spinlock_t lock;
	int status;
	u32 njoined;
	u32 nleft;
	cpumask_var_t cpus;
	u64 gone_at;
	DECLARE_HASHTABLE(by_seq, 8);
	u32 nwaiting;
	struct list_head ops;
	struct swc_op *spare_op;
	struct list_head calls;
	struct swc_net_window window;
	struct list_head unexpected[SWC_UNEXPECTED_LISTS];
	struct list_head notifiers;
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

	wait_queue_head_t create_wq;
	wait_queue_head_t slot_wq;
	wait_queue_head_t part_wq;
	struct swc_shared *slot_mem;
	void *slots;
	struct swc_shared *state_mem;
	struct swc_comm_state *state_page;

	struct swc_member member[];
};

/* The work queue of its operations; anything else would wait behind them there. */
static inline struct workqueue_struct *swc_comm_wq(const struct swc_comm *comm)
{
	return comm->user->wq[comm->flags & SWC_COMM_F_URGENT ? SWC_QUEUE_URGENT : SWC_QUEUE_OPS];
}

/* Is the rank on this node? */
static inline bool swc_comm_is_local(const struct swc_comm *comm, u32 rank)
{
	return !comm->rank_node || comm->rank_node[rank] == comm->here;
}

/* The place of a rank in @local; @nlocal: it is on another node. */
static inline u32 swc_comm_local_index(const struct swc_comm *comm, u32 rank)
{
	u32 low = 0, high = comm->nlocal, i = rank - comm->local[0];

	/* Mostly ranks are numbered node by node. */
	if (i < comm->nlocal && comm->local[i] == rank)
		return i;
	while (low < high) {
		u32 mid = (low + high) / 2;

		if (comm->local[mid] < rank)
			low = mid + 1;
		else
			high = mid;
	}
	return low < comm->nlocal && comm->local[low] == rank ? low : comm->nlocal;
}

/* Freeing sleeps, and the last put may be the watchdog's: a work item frees. */
static inline void swc_comm_release(struct kref *ref)
{
	queue_work(swc_free_wq, &container_of(ref, struct swc_comm, ref)->free_work);
}

static inline void swc_comm_put(struct swc_comm *comm)
{
	kref_put(&comm->ref, swc_comm_release);
}

static inline void swc_member_put(struct swc_member *member)
{
	swc_comm_put(member->comm);
}

extern const struct swc_comm_ops *swc_comm_ops;

void swc_comm_init(const struct swc_comm_ops *ops);
int swc_comm_leave(struct swc_ctx *ctx, u32 handle);
bool swc_comm_abort_forming(struct swc_comm *comm, int error, const char *fmt, ...) __printf(3, 4);
void swc_comm_abort(struct swc_comm *comm, int error, int culprit, u64 seq, const char *fmt, ...)
	__printf(5, 6);
void swc_comms_drain(void);
struct swc_net *swc_comm_find_net(const u8 *name, u32 rank);
void swc_comm_net_get(struct swc_comm *comm);
void swc_comm_net_put(struct swc_comm *comm);
u64 swc_comm_progress(const struct swc_comm *comm, u32 rank);
void swc_comm_peer_lost(struct swc_comm *comm, int error, int culprit, u64 seq, const char *text);
void swc_comm_peer_left(struct swc_comm *comm, u32 rank, u64 seq);
void swc_comm_peer_progress(struct swc_comm *comm, u32 rank, u64 next_seq);
void swc_comm_path_changed(struct swc_comm *comm, u32 rank, u32 channel, u32 peer, u32 path, bool taken);
struct swc_member *swc_member_get(struct swc_ctx *ctx, u32 handle);
void swc_member_died(struct swc_member *member, const char *how);
void swc_comm_report_left(struct swc_comm *comm, u64 seq);
void swc_comm_ctx_died(struct swc_ctx *ctx, const char *how);
void swc_comm_ctx_drop(struct swc_ctx *ctx);

/* create.c looks for one, and adds another, under the mutex. */
extern struct mutex swc_comms_mutex;
struct hlist_head *swc_comms_with_id(const u8 *id);
int swc_comm_reserve(struct swc_comm *comm);
void swc_comm_unreserve(struct swc_comm *comm);
void swc_comm_publish(struct swc_comm *comm);
void swc_comm_uncharge(struct swc_comm *comm);
bool swc_comm_set_status(struct swc_comm *comm, int from, int to);
void swc_comm_free(struct work_struct *work);

/* query.c goes through all communicators under the mutex of comm.c. */
struct swc_comm *swc_comm_after(u64 *cursor);
bool swc_comm_visible(const struct swc_comm *comm);

#endif /* SWC_COMM_H */

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_COMM_H
#define SWC_COMM_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "swingcoll.h"

/**
 * struct swc_member - one rank of a communicator; embedded in it
 *
 * @comm: the communicator
 * @ctx: the context it belongs to; NULL before it joined and after it left
 * @state: enum swc_member_state; changes under comm->lock, only forward
 * @rank: rank
 * @submitted: operations submitted so far = number of the next one; comm->lock
 * @inflight: operations submitted and not finished; comm->lock
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
	u64 last_submit;
	struct pid *pid;
	char name[TASK_COMM_LEN];
	struct xarray plans;
	atomic_t nplans;
};

/**
 * struct swc_comm - a communicator
 *
 * Made by the first rank to join. One reference each for: every context's handle, every operation, every
 * call in progress. The last put may come from any process context; freeing happens on swc_wq.
 *
 * @ref: references
 * @node: in the list of all communicators; swc_comms_mutex
 * @number: position in that list for queries, never reused
 * @id: the shared secret
 * @nranks: members
 * @flags: SWC_JOIN_*
 * @timeout_ms: default deadline
 * @slot_bytes: size of @slots
 * @owner, @user_ns: who may join
 * @lock: guards all below but the wait queues
 * @status: enum swc_comm_status; changes only in set_status() of comm.c
 * @njoined, @nleft: members that have joined, and that have left
 * @window: operations that not all members have reached yet, by sequence number
 * @ops: operations that have not finished
 * @error, @culprit, @error_seq, @text: the last failure
 * @completed, @failed, @bytes: totals
 * @next_check: when the watchdog runs next, 0: it is not armed
 * @watchdog: finds operations past their deadline
 * @join_wq: ranks that wait for the others to join
 * @slot_wq: ranks that wait for a word of the slots
 * @slots: memory shared by the members; the kernel only compares words of it
 * @slots_mm: address space that @slots is charged to, the first member's
 * @state_page: what members poll, see struct swc_comm_state
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
	kuid_t owner;
	struct user_namespace *user_ns;

	spinlock_t lock;
	int status;
	u32 njoined;
	u32 nleft;
	struct swc_op *window[SWC_MAX_INFLIGHT];
	struct list_head ops;
	int error;
	int culprit;
	u64 error_seq;
	char text[SWC_TEXT_BYTES];
	u64 completed;
	u64 failed;
	u64 bytes;
	u64 next_check;
	struct delayed_work watchdog;
	struct work_struct free_work;

	wait_queue_head_t join_wq;
	wait_queue_head_t slot_wq;
	void *slots;
	struct mm_struct *slots_mm;
	struct swc_comm_state *state_page;

	struct swc_member member[];
};

int swc_comm_join(struct swc_ctx *ctx, struct swc_comm_join *join);
int swc_comm_leave(struct swc_ctx *ctx, u32 handle);
void swc_comm_abort(struct swc_comm *comm, int error, int culprit, u64 seq, const char *fmt, ...)
	__printf(5, 6);
void swc_comm_note(struct swc_comm *comm, int error, int culprit, u64 seq, const char *fmt, ...)
	__printf(5, 6);
void swc_comm_put(struct swc_comm *comm);
struct swc_member *swc_member_get(struct swc_ctx *ctx, u32 handle);
void swc_member_put(struct swc_member *member);
void swc_comm_watch(struct swc_comm *comm, u64 deadline);
void swc_comms_of_ctx_died(struct swc_ctx *ctx, const char *how);
void swc_comms_of_ctx_drop(struct swc_ctx *ctx);

/* query.c goes through all communicators under the mutex of comm.c. */
struct swc_comm *swc_comm_after(u64 *cursor);
bool swc_comm_visible(const struct swc_comm *comm);

/* slots.c */
int swc_slot_wait(struct swc_member *member, const struct swc_slot_wait *wait);
void swc_slot_wake(struct swc_comm *comm);
int swc_slots_mmap(struct swc_comm *comm, struct vm_area_struct *vma);
int swc_state_mmap(struct swc_comm *comm, struct vm_area_struct *vma);

#endif /* SWC_COMM_H */

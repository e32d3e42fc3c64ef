// SPDX-License-Identifier: GPL-2.0-only
/*
 * The io_uring door: one command, one collective, one CQE; or one partition that is waited for.
 *
 * A command's CQE is posted by its own task (task work), whoever finishes the operation. SWC_PART_BUSY says
 * that the task is inside, or on its way to, this part's code; who sets it owns the next look at the part:
 *
 *	finish:	set DONE, then try to set BUSY; who gets it queues the task work
 *	task:	while BUSY: help if the operation runs; if DONE post the CQE; else clear BUSY, look at DONE
 *		again, and go on only if BUSY can be set anew
 *
 * So exactly one of them posts, and a DONE is never missed. With SWC_OP_WAITING the same task work also
 * brings the waiting task into the operation as a worker: one wake-up serves both.
 */
#include <linux/bitops.h>
#include <linux/fs.h>
#include <linux/pid.h>

#include "comm/comm.h"
#include "compat.h"
#include "mem/context.h"
#include "exec/worker.h"
#include "exec/request.h"
#include "exec/partitioned.h"
#include "exec/match.h"
#include "trace.h"

#define SWC_PART_BUSY	0
#define SWC_PART_DONE	1

/* What a command remembers; in the command's own room. */
struct swc_pdu {
	struct swc_part *part;
};

static struct swc_pdu *pdu_of(struct io_uring_cmd *cmd)
{
	BUILD_BUG_ON(sizeof(struct swc_pdu) > sizeof(cmd->pdu));
	return (struct swc_pdu *)cmd->pdu;
}

/* Post the CQE. The caller owns BUSY and has seen DONE; cmd and part are gone after this. */
static void post_cqe(struct io_uring_cmd *cmd, struct swc_part *part, unsigned int issue_flags)
{
	u64 word;
	int result;

	smp_rmb(); /* pairs with uring_complete(): the outcome was there before DONE */
	result = part->result;
	word = swc_part_cqe_word(part);
	/* Hide it from the cancel path, which may come until the command is done. */
	WRITE_ONCE(pdu_of(cmd)->part, NULL);
	/* Before the CQE: the done call must be the last thing this module does for the command. */
	swc_part_put(part);
	io_uring_cmd_done32(cmd, result, word, issue_flags);
}

/*
 * Stop looking after the part. True: it was finished meanwhile by somebody who saw BUSY, so it is the
 * caller's again, to be told. Otherwise the next one to look may be anybody, and the part may be gone.
 */
static bool let_go(struct swc_part *part)
{
	bool again;

	rcu_read_lock();	/* keeps the flags in memory, see struct swc_part */
	clear_bit_unlock(SWC_PART_BUSY, &part->flags);
	smp_mb__after_atomic();	/* pairs with uring_complete(): one of the two sees the other's bit */
	again = test_bit(SWC_PART_DONE, &part->flags) &&
		!test_and_set_bit(SWC_PART_BUSY, &part->flags);
	rcu_read_unlock();
	return again;
}

static void part_task_body(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct swc_part *part = pdu_of(cmd)->part;

	do {
		if (!test_bit(SWC_PART_DONE, &part->flags) && swc_exec_enter(part->op)) {
			swc_exec_help(part->op, SWC_STAT_RUN_TASK);
			swc_exec_attend(part->op, SWC_PART_DONE, &part->flags);
		}
		if (test_bit(SWC_PART_DONE, &part->flags)) {
			post_cqe(cmd, part, issue_flags);
			return;
		}
	} while (let_go(part));
}

SWC_TASK_WORK(part_task)

/* The operation is over for this part; from any process context. */
static void uring_complete(struct swc_part *part)
{
	bool ours;

	/* From DONE on, whoever has BUSY may drop the last reference: RCU keeps the memory. */
	rcu_read_lock();
	smp_mb__before_atomic(); /* pairs with post_cqe() */
	set_bit(SWC_PART_DONE, &part->flags);
	smp_mb__after_atomic(); /* pairs with let_go(): one of the two sees the other's bit */
	ours = !test_and_set_bit(SWC_PART_BUSY, &part->flags);
	rcu_read_unlock();
	if (ours)
		io_uring_cmd_complete_in_task(part->cmd, part_task);
}

/* Call the waiting task in as a worker; under op->lock. */
static bool uring_summon(struct swc_part *part)
{
	if (test_and_set_bit(SWC_PART_BUSY, &part->flags))
		return false;
	io_uring_cmd_complete_in_task(part->cmd, part_task);
	return true;
}

/* The ring, or the process, is going while the command is in flight (6.7 and later). */
static void uring_cancel(struct io_uring_cmd *cmd)
{
	struct swc_part *part;
	struct swc_comm *comm;

	/*
	 * The part may be completing at this moment. It is taken out of the command before its reference is
	 * put, and its memory stays for an RCU grace period after the last one.
	 */
	rcu_read_lock();
	part = READ_ONCE(pdu_of(cmd)->part);
	if (part && !refcount_inc_not_zero(&part->ref))
		part = NULL;
	rcu_read_unlock();
	if (!part)
		return;
	comm = part->member->comm;
	/* If it is done and only its CQE has not been posted yet, nobody needs to suffer. */
	if (!test_bit(SWC_PART_DONE, &part->flags))
		swc_comm_abort(comm, -ECONNRESET, part->member->rank, part->op ? part->op->seq : 0,
			       "rank %u (pid %d, %s) closed its io_uring with operations in flight",
			       part->member->rank, pid_nr(part->member->pid), part->member->name);
	swc_part_put(part);
}

static int submit(struct io_uring_cmd *cmd, struct swc_ctx *ctx, const struct swc_desc *desc,
		  unsigned int issue_flags)
{
	bool waiting = desc->flags & SWC_OP_WAITING;
	struct swc_member *member = swc_member_get(ctx, desc->comm);
	struct swc_part *part;
	int ret;

	pdu_of(cmd)->part = NULL;
	if (!member)
		return -ENOENT;
	part = swc_part_create(ctx, member, desc, NULL);
	if (IS_ERR(part))
		return PTR_ERR(part);
	part->cmd = cmd;
	part->complete = uring_complete;
	part->summon = waiting ? uring_summon : NULL;
	/* This task is inside until it leaves below. */
	set_bit(SWC_PART_BUSY, &part->flags);
	pdu_of(cmd)->part = part;
	/* First the pointer, then the mark: from here on the cancel path may come. */
	io_uring_cmd_mark_cancelable(cmd, issue_flags);

	ret = swc_submit(part, waiting);
	if (ret) {
		/* Marked commands are unmarked only by the done call. */
		WRITE_ONCE(pdu_of(cmd)->part, NULL);
		swc_part_drop(part);
		io_uring_cmd_done32(cmd, ret, 0, issue_flags);
		return -EIOCBQUEUED;
	}
	if (waiting)
		swc_exec_attend(part->op, SWC_PART_DONE, &part->flags);
	if (test_bit(SWC_PART_DONE, &part->flags)) {
		post_cqe(cmd, part, issue_flags);
		return -EIOCBQUEUED;
	}
	if (let_go(part))
		io_uring_cmd_complete_in_task(cmd, part_task);
	return -EIOCBQUEUED;
}

/* ------------------------------------------------------------------ partitions */

static struct swc_waiter *waiter_of(struct io_uring_cmd *cmd)
{
	BUILD_BUG_ON(sizeof(struct swc_waiter) > sizeof(cmd->pdu));
	return (struct swc_waiter *)cmd->pdu;
}

/* Post the CQE of a wait that is over. */
static void waited_body(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct swc_waiter *waiter = waiter_of(cmd);
	struct swc_parted *parted = waiter->parted;
	int result = waiter->result;

	/* Both as in post_cqe(). */
	WRITE_ONCE(waiter->parted, NULL);
	swc_parted_put(parted);
	io_uring_cmd_done32(cmd, result, 0, issue_flags);
}

SWC_TASK_WORK(waited)

void swc_uring_waited(struct swc_waiter *waiter)
{
	io_uring_cmd_complete_in_task(container_of((void *)waiter, struct io_uring_cmd, pdu), waited);
}

/* Nobody else is hurt by a wait that ends before its partition. */
static void cancel_wait(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct swc_waiter *waiter = waiter_of(cmd);

	if (!swc_parted_unwatch(waiter))
		return;
	waiter->result = -ECANCELED;
	waited_body(cmd, issue_flags);
}

static int wait_for_partition(struct io_uring_cmd *cmd, struct swc_ctx *ctx, const struct swc_part_ref *ref,
			      unsigned int issue_flags)
{
	struct swc_waiter *waiter = waiter_of(cmd);
	int ret;

	if (ref->timeout_ms || ref->resv)
		return -EINVAL;
	INIT_HLIST_NODE(&waiter->node);
	waiter->parted = swc_parted_get(ctx, ref->handle);
	if (!waiter->parted)
		return -ENOENT;
	io_uring_cmd_mark_cancelable(cmd, issue_flags);
	ret = swc_parted_watch(waiter, ref->partition);
	/* One that waits may be over already, and gone. */
	if (ret != -EIOCBQUEUED) {
		waiter->result = ret;
		waited_body(cmd, issue_flags);
	}
	return -EIOCBQUEUED;
}

/* ------------------------------------------------------------------ commands */

int swc_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct swc_ctx *ctx = cmd->file->private_data;
	bool waits = cmd->cmd_op == SWC_CMD_PART_WAIT;
	struct swc_part_ref ref;
	struct swc_desc desc;

	if (swc_compat_is_cancel(issue_flags)) {
		if (waits)
			cancel_wait(cmd, issue_flags);
		else
			uring_cancel(cmd);
		return 0;
	}
	if (cmd->cmd_op != SWC_CMD_COLLECTIVE && !waits)
		return -ENOTTY;
	/* The payload of a collective is 80 bytes, and big_cqe carries its second word. */
	if (!waits && (issue_flags & (IO_URING_F_SQE128 | IO_URING_F_CQE32)) !=
		      (IO_URING_F_SQE128 | IO_URING_F_CQE32))
		return -EINVAL;
	if (current->mm != ctx->mm)
		return -EPERM;
	/* The one and only read of memory that the user can change meanwhile. */
	if (waits) {
		memcpy(&ref, swc_compat_cmd_payload(cmd), sizeof(ref));
		barrier_data(&ref);
		return wait_for_partition(cmd, ctx, &ref, issue_flags);
	}
	memcpy(&desc, swc_compat_cmd_payload(cmd), sizeof(desc));
	barrier_data(&desc);
	return submit(cmd, ctx, &desc, issue_flags);
}

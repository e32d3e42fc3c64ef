// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring commands: one command is one collective, or one wait for partitions, and gets one CQE.
 *
 * The CQE of a collective is posted by the task that submitted it (in task work), whichever context finishes
 * the operation. With SWC_OP_WAITING the same task work also makes the waiting task a worker of the
 * operation, so that one wake-up serves both; or, when it waits for a message of another node, handles what
 * arrives. A CQE of a wait is posted by task work too.
 */
#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/fs.h>
#include <linux/pid.h>

#include "comm/comm.h"
#include "comm/exit_text.h"
#include "compat.h"
#include "dev/chrdev.h"
#include "exec/match.h"
#include "exec/partitioned.h"
#include "exec/request.h"
#include "exec/step.h"
#include "exec/worker.h"
#include "mem/context.h"
#include "trace.h"

/* ------------------------------------------------------------------ state of a collective */

/*
 * The state of a command is the word req->uring_state. The owner of a command is the one context that may
 * touch the command and post its CQE. No command has two owners at a time.
 *
 *	state	meaning						owner
 *	IDLE	in flight					none
 *	BUSY	in flight, its task works on it or will		issue path, or task work (queued or running)
 *	DONE	outcome final, CQE not posted			likewise; this state is never left
 *
 *	from	to	changed by		what follows
 *	-	BUSY	issue_collective()	the issue path is the owner
 *	IDLE	BUSY	uring_wake_worker()	queues task work, which is the owner
 *	IDLE	DONE	uring_complete()	queues task work, which is the owner and posts the CQE
 *	BUSY	DONE	uring_complete()	nothing: the owner finds DONE when it tries to release
 *	BUSY	IDLE	uring_release()		no owner; the request may be freed from here on
 *
 * uring_release() finds BUSY or DONE, uring_wake_worker() any state (it does nothing but on IDLE), and
 * uring_complete(), which is called once, IDLE or BUSY. Each of them is one atomic operation:
 *
 * - Exactly one CQE: DONE is entered once, and the owner at that moment is the only one there will ever be.
 * - DONE is never missed: BUSY ends only by uring_release(), which fails if DONE came first.
 * - None touches the request afterwards, unless it has become the owner: an owner that finds DONE may put the
 *   last reference at any time.
 *
 * The cancel path only reads the word and owns nothing. It may run beside all of this: see
 * cancel_collective().
 *
 * Memory ordering. A: the xchg() of uring_complete() is a full barrier after the stores of the outcome, and
 * pairs with the acquire in uring_release() after a failed cmpxchg(), which by itself orders nothing. B: the
 * successful cmpxchg() of uring_release() is a full barrier after all that the owner has done, and pairs with
 * the xchg() or cmpxchg() that finds IDLE and so begins the next ownership. C: the barrier between taking a
 * reference and reading the pointer again, in cancel_collective(), pairs with those through which the memory
 * of a request becomes that of another one, see req_keep_or_free() in exec/request.c.
 */
#define URING_DONE_BIT	1

enum uring_state {
	URING_IDLE = 0,
	URING_BUSY = 1,
	URING_DONE = BIT(URING_DONE_BIT),
};

/* What a command remembers, in the space that io_uring gives it. */
struct swc_pdu {
	struct swc_req *req;
};

static struct swc_pdu *pdu_of(struct io_uring_cmd *cmd)
{
	BUILD_BUG_ON(sizeof(struct swc_pdu) > sizeof(cmd->pdu));
	return (struct swc_pdu *)cmd->pdu;
}

SWC_DECLARE_TASK_WORK(req_task_work);

/* The outcome of the request is final. Process context, no locks; called once. */
static void uring_complete(struct swc_req *req)
{
	if (xchg(&req->uring_state, URING_DONE) == URING_IDLE)	/* A, B */
		io_uring_cmd_complete_in_task(req->cmd, req_task_work);
}

/*
 * Make the waiting task a worker, or have it handle what req->waiter is given. False: it has been called
 * already, or is at work. Under op->lock, or in an interrupt.
 */
static bool uring_wake_worker(struct swc_req *req)
{
	if (cmpxchg(&req->uring_state, URING_IDLE, URING_BUSY) != URING_IDLE)	/* B */
		return false;
	io_uring_cmd_complete_in_task(req->cmd, req_task_work);
	return true;
}

/* Event: a message has arrived. */
static bool uring_wake_waiter(struct swc_net_waiter *waiter)
{
	return uring_wake_worker(container_of(waiter, struct swc_req, waiter));
}

/*
 * The owner has nothing more to do. Returns true if it is not the owner any more. Returns false if the
 * outcome is final: then the caller is still the owner, sees the outcome, and posts the CQE.
 */
static bool uring_release(struct swc_req *req)
{
	WRITE_ONCE(req->cpu, raw_smp_processor_id());
	if (cmpxchg(&req->uring_state, URING_BUSY, URING_IDLE) == URING_BUSY)	/* B */
		return true;
	smp_acquire__after_ctrl_dep();	/* A */
	return false;
}

/* ------------------------------------------------------------------ collectives */

/* An operation of so few bytes is over so soon that what arrives meanwhile can be left for its process. */
#define BRIEF_BYTES	(16u << 10)

/* Not beside an older operation, whose messages this process would be given as well: they may be large. */
static bool may_poll(const struct swc_req *req)
{
	const struct swc_member *member = req->member;

	return member->comm->net && swc_blocks_total_bytes(&req->blocks) <= BRIEF_BYTES &&
	       READ_ONCE(member->comm->window.oldest) >= READ_ONCE(member->next_seq);
}

/* Until it sleeps, the process looks after messages of other nodes itself. */
static void begin_polling(struct swc_req *req)
{
	if (req->is_poller)
		swc_net_poller_begin(req->member->comm->net);
}

static void end_polling(struct swc_req *req)
{
	if (req->is_poller)
		swc_net_poller_end(req->member->comm->net);
}

static bool is_done(const struct swc_req *req)
{
	return READ_ONCE(req->uring_state) == URING_DONE;
}

/*
 * The owner is going to release the request: until it is complete, messages that it waits for wake the task.
 * For tasks that wait in the kernel.
 */
static void begin_wait(struct swc_req *req)
{
	if (req->op->comm->net && req->waiter.wake && !is_done(req))
		swc_remote_wait(req);
}

/* The caller is the owner again. Return: true if a message has woken the task, which has handled it. */
static bool end_wait(struct swc_req *req)
{
	struct swc_net_poll *given = swc_net_wait_end(&req->waiter);

	if (given)
		given->poll(given);
	return given;
}

/* Post the CQE. The caller is the owner and has found DONE. Command and request are gone after this. */
static void post_cqe(struct io_uring_cmd *cmd, struct swc_req *req, unsigned int issue_flags)
{
	int result = req->result;
	u64 word = swc_req_cqe_word(req);

	end_wait(req);
	/* Hide it from the cancel path, which may come until the command is done. */
	WRITE_ONCE(pdu_of(cmd)->req, NULL);
	/* Before the CQE: the done call must be the last thing this module does for the command. */
	swc_req_put(req);
	io_uring_cmd_done32(cmd, result, word, issue_flags);
}

/* The process has been woken: it handles what it was given, or is a worker. Is it worth polling for more? */
static bool work(struct swc_req *req)
{
	/* If it does not poll, what follows comes to it when it sleeps. */
	if (end_wait(req))
		return req->is_poller && !is_done(req);
	if (is_done(req) || !swc_worker_enter(req->op))
		return false;
	swc_worker_run(req->op, SWC_STAT_WORKER_TASK);
	return !is_done(req);
}

static void woken(struct swc_req *req)
{
	swc_worker_woken(req);
	begin_polling(req);
	if (work(req))
		swc_worker_busy_poll(req, URING_DONE_BIT, &req->uring_state);
	end_polling(req);
}

static void req_task_work_body(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct swc_req *req = pdu_of(cmd)->req;

	if (req->waiter.wake)
		woken(req);
	begin_wait(req);
	if (!uring_release(req))
		post_cqe(cmd, req, issue_flags);
}

SWC_TASK_WORK(req_task_work)

/* The ring, or the process, goes away while the command is in flight (6.7 and later). */
static void cancel_collective(struct io_uring_cmd *cmd)
{
	char how[SWC_EXIT_TEXT] = "closed its io_uring with operations in flight";
	struct swc_member *member;
	struct swc_req *req;
	struct swc_op *op;

	/*
	 * The owner may be posting the CQE now. It clears the pointer before it puts its reference, and
	 * after the last put the memory stays that of a request for an RCU grace period: of this one, or of
	 * the member's next one.
	 */
	rcu_read_lock();
	req = READ_ONCE(pdu_of(cmd)->req);
	if (req && !refcount_inc_not_zero(&req->ref))
		req = NULL;
	rcu_read_unlock();
	if (!req)
		return;
	/* C: if the reference is to another request, the command is seen to have none any more. */
	smp_mb__after_atomic();
	if (READ_ONCE(pdu_of(cmd)->req) != req) {
		swc_req_put(req);
		return;
	}
	member = req->member;
	op = READ_ONCE(req->op);
	/* Once it is DONE only its CQE is missing: no reason to abort the others. */
	if (READ_ONCE(req->uring_state) != URING_DONE) {
		swc_exit_text(current, how);
		swc_comm_abort(member->comm, -ECONNRESET, member->rank, op ? op->seq : 0,
			       SWC_MEMBER_FMT " %s", SWC_MEMBER_ARGS(member), how);
	}
	swc_req_put(req);
}

/*
 * A request could not be made. Those behind it may be in the ring already, and each would be matched with
 * what the other ranks have called one place before. So what has no effect if an ioctl returns it aborts the
 * communicator here, unless the caller could know it in advance.
 */
static void lose_turn(struct swc_ctx *ctx, const struct swc_desc *desc, int error)
{
	struct swc_member *member;
	u64 seq;

	if (error != -ENOMEM && error != -EDQUOT)
		return;
	member = swc_member_get(ctx, desc->comm);
	if (!member)
		return;
	seq = READ_ONCE(member->next_seq);
	/* The text of a quota has been recorded. */
	if (error == -EDQUOT)
		swc_comm_abort(member->comm, error, member->rank, seq, NULL);
	else
		swc_comm_abort(member->comm, error, member->rank, seq,
			       SWC_MEMBER_FMT " could not submit operation %llu by io_uring: no memory",
			       SWC_MEMBER_ARGS(member), seq);
	swc_member_put(member);
}

static int issue_collective(struct io_uring_cmd *cmd, struct swc_ctx *ctx, const struct swc_desc *desc,
			    unsigned int issue_flags)
{
	bool waiting = desc->flags & SWC_OP_WAITING;
	struct swc_member *member = swc_member_get(ctx, desc->comm);
	struct swc_req *req;
	int ret;

	pdu_of(cmd)->req = NULL;
	if (!member)
		return -ENOENT;
	req = swc_req_create(ctx, member, desc, NULL);
	if (IS_ERR(req)) {
		lose_turn(ctx, desc, PTR_ERR(req));
		return PTR_ERR(req);
	}
	req->cmd = cmd;
	req->complete = uring_complete;
	req->wake_worker = waiting ? uring_wake_worker : NULL;
	req->waiter.wake = waiting ? uring_wake_waiter : NULL;
	/* Nothing else knows the request until swc_match(), whose locks publish this. */
	req->uring_state = URING_BUSY;
	pdu_of(cmd)->req = req;
	/* Not before the pointer is set: from here on the cancel path may come. */
	io_uring_cmd_mark_cancelable(cmd, issue_flags);

	req->is_poller = waiting && may_poll(req);
	begin_polling(req);
	ret = swc_match(req, waiting);
	if (waiting && !ret)
		swc_worker_busy_poll(req, URING_DONE_BIT, &req->uring_state);
	end_polling(req);
	if (ret) {
		lose_turn(ctx, desc, ret);
		/* Not matched, so never completed. Only the done call unmarks a command. */
		WRITE_ONCE(pdu_of(cmd)->req, NULL);
		swc_req_drop(req);
		io_uring_cmd_done32(cmd, ret, 0, issue_flags);
		return -EIOCBQUEUED;
	}
	if (waiting)
		begin_wait(req);
	if (!uring_release(req))
		post_cqe(cmd, req, issue_flags);
	return -EIOCBQUEUED;
}

/* ------------------------------------------------------------------ waits for partitions */

/*
 * A wait is completed either by exec/partitioned.c, which calls complete_wait(), or by the cancel path:
 * the one that takes the waiter out of its list, under the lock there.
 */
static struct swc_waiter *waiter_of(struct io_uring_cmd *cmd)
{
	BUILD_BUG_ON(sizeof(struct swc_waiter) > sizeof(cmd->pdu));
	return (struct swc_waiter *)cmd->pdu;
}

/* Post the CQE of a wait that is over. */
static void wait_task_work_body(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct swc_waiter *waiter = waiter_of(cmd);
	struct swc_partitioned *partitioned = waiter->partitioned;
	int result = waiter->result;

	/* Both as in post_cqe(). */
	WRITE_ONCE(waiter->partitioned, NULL);
	swc_partitioned_put(partitioned);
	io_uring_cmd_done32(cmd, result, 0, issue_flags);
}

SWC_TASK_WORK(wait_task_work)

static void complete_wait(struct swc_waiter *waiter)
{
	io_uring_cmd_complete_in_task(container_of((void *)waiter, struct io_uring_cmd, pdu), wait_task_work);
}

/* A wait that ends before its partition harms no other rank. */
static void cancel_wait(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct swc_waiter *waiter = waiter_of(cmd);

	if (!swc_partitioned_del_waiter(waiter))
		return;
	waiter->result = -ECANCELED;
	wait_task_work_body(cmd, issue_flags);
}

static int issue_wait(struct io_uring_cmd *cmd, struct swc_ctx *ctx, const struct swc_partitioned_ref *ref,
		      unsigned int issue_flags)
{
	struct swc_waiter *waiter = waiter_of(cmd);
	int ret;

	if (ref->timeout_ms || ref->resv)
		return -EINVAL;
	INIT_HLIST_NODE(&waiter->node);
	waiter->complete = complete_wait;
	waiter->partitioned = swc_partitioned_get(ctx, ref->handle);
	if (!waiter->partitioned)
		return -ENOENT;
	io_uring_cmd_mark_cancelable(cmd, issue_flags);
	ret = swc_partitioned_add_waiter(waiter, ref->partition);
	/* Once it is in the list it may be completed, and gone. */
	if (ret != -EIOCBQUEUED) {
		waiter->result = ret;
		wait_task_work_body(cmd, issue_flags);
	}
	return -EIOCBQUEUED;
}

/* ------------------------------------------------------------------ entry */

int swc_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct swc_ctx *ctx = cmd->file->private_data;
	bool is_wait = cmd->cmd_op == SWC_CMD_PARTITIONED_WAIT;
	struct swc_partitioned_ref ref;
	struct swc_desc desc;
	int ret;

	if (swc_compat_is_cancel(issue_flags)) {
		if (is_wait)
			cancel_wait(cmd, issue_flags);
		else
			cancel_collective(cmd);
		return 0;
	}
	if (cmd->cmd_op != SWC_CMD_COLLECTIVE && !is_wait)
		return -ENOTTY;
	/* The payload of a collective is 80 bytes, and big_cqe carries its second word. */
	if (!is_wait && (issue_flags & (IO_URING_F_SQE128 | IO_URING_F_CQE32)) !=
			(IO_URING_F_SQE128 | IO_URING_F_CQE32))
		return -EINVAL;
	ret = swc_ctx_enter(ctx);
	if (ret)
		return ret;
	/* Copied once, then checked: user space can change the SQE meanwhile. */
	if (is_wait) {
		memcpy(&ref, swc_compat_cmd_payload(cmd), sizeof(ref));
		barrier_data(&ref);
		ret = issue_wait(cmd, ctx, &ref, issue_flags);
	} else {
		memcpy(&desc, swc_compat_cmd_payload(cmd), sizeof(desc));
		barrier_data(&desc);
		ret = issue_collective(cmd, ctx, &desc, issue_flags);
	}
	swc_ctx_put(ctx);
	return ret;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Workers: they run the tasks of an operation, step by step.
 *
 * A worker takes a ready task, runs it until it has to wait for a peer, and takes the next one. Workers are
 * the submitter that completed the set of requests, processes that wait for their completion anyway, work
 * items, and the contexts in which connections and engines report what a task waited for. A worker never
 * leaves while a task is ready, so further workers make an operation faster but are never needed to make it
 * end; or it gives way, and has a work item come in its place. The last one to leave may end the operation.
 *
 * Processes work in their own time. Kernel threads, which all operations of a user share, give way after a
 * time slice. Contexts that report events serve all users: they do what is soon done, for a work item in
 * between would take longer, and give way after a much shorter slice.
 */
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>

#include "comm/comm.h"
#include "exec/event.h"
#include "exec/offload.h"
#include "exec/runq.h"
#include "exec/step.h"
#include "exec/worker.h"
#include "exec/xfer.h"
#include "plan/plan.h"

/* A worker without work polls for this long before it leaves: a sleep and a wake-up cost more. */
#define IDLE_POLL_NS	(10 * NSEC_PER_USEC)
/* So does a submitter that would sleep next. */
#define BUSY_POLL_NS	(50 * NSEC_PER_USEC)
/* Or, if it polls the net, as long as its operations mostly take, up to this. */
#define MESSAGE_POLL_NS	NSEC_PER_MSEC

/* Time slice of a kernel thread: so long that giving way costs next to nothing. */
#define KTHREAD_SLICE_NS	(4 * NSEC_PER_MSEC)
/* Of a context that reports an event: about what the wake-up of a work item takes on a busy machine. */
#define EVENT_SLICE_NS		(50 * NSEC_PER_USEC)

/* ------------------------------------------------------------------ running tasks */

/* When a worker of this kind gives way: by swc_slice_clock_ns(), 0: never. */
static u64 slice_end(enum swc_stat where)
{
	switch (where) {
	case SWC_STAT_WORKER_KTHREAD:
		return swc_slice_clock_ns() + KTHREAD_SLICE_NS;
	case SWC_STAT_WORKER_EVENT:
		return swc_slice_clock_ns() + EVENT_SLICE_NS;
	default:
		return 0;
	}
}

/* Must the worker leave the rest to others? A process that is being killed must. */
static bool must_give_way(u64 slice_end)
{
	return swc_slice_over(slice_end) || fatal_signal_pending(current);
}

static enum swc_step_status run_step(struct swc_task *task)
{
	const struct swc_plan_step *s = &task->req->plan->view.steps[task->step];

	swc_event_step(task, s->kind);
	switch (s->kind) {
	case SWC_STEP_LOCAL:
		return swc_step_local(task, s);
	case SWC_STEP_SYNC:
		return swc_step_sync(task);
	case SWC_STEP_COPY:
		return swc_step_copy(task, s);
	default:
		return swc_step_net(task, s);
	}
}

/* Run a task until it waits or ends, the worker must give way, or the operation fails. */
static enum swc_step_status run_task(struct swc_task *task)
{
	struct swc_op *op = task->req->op;
	bool is_net = task->req->plan->net;
	enum swc_step_status status;

	while (task->step < task->end) {
		if (READ_ONCE(op->status))
			return SWC_STATUS_ERROR;
		/* Steps may be many and move nothing. */
		cond_resched();
		/* A step that has not begun may have to wait for messages of earlier ones. */
		if (is_net && task->phase == SWC_NET_SEND && !task->copying &&
		    swc_remote_fence(task) != SWC_STATUS_OK)
			return SWC_STATUS_WAIT;
		status = run_step(task);
		if (status != SWC_STATUS_OK)
			return status;
		spin_lock(&op->lock);
		task->step++;
		spin_unlock(&op->lock);
		/* After a step: each worker makes progress. */
		if (task->step < task->end && must_give_way(task->copy.slice_end))
			return SWC_STATUS_YIELD;
	}
	return SWC_STATUS_END;
}

/*
 * Record how far @prev has come, if there is one, and take the next task. NULL if there is none, or if the
 * worker has worked and must give way; then another one comes for the tasks that are ready.
 */
static struct swc_task *take_next(struct swc_op *op, struct swc_task *prev, enum swc_step_status status,
				  u64 slice_end)
{
	bool leaves = status == SWC_STATUS_YIELD || (prev && must_give_way(slice_end));
	struct swc_task *next = NULL;

	spin_lock(&op->lock);
	if (status == SWC_STATUS_END)
		swc_task_set_state(prev, SWC_TASK_DONE);
	else if (status == SWC_STATUS_YIELD)
		swc_runq_put_back(op, prev);
	else if (status == SWC_STATUS_ERROR)
		swc_op_set_error(op, -EPROTO, prev->req->member->rank);
	if (!op->status && leaves)
		swc_runq_hand_over(op);
	else if (!op->status)
		next = swc_runq_take(op);
	spin_unlock(&op->lock);
	return next;
}

/* Run tasks until none is ready, or the worker must give way. The caller is a worker. */
static void run_tasks(struct swc_op *op, u64 slice_end)
{
	enum swc_step_status status = SWC_STATUS_OK;
	struct swc_task *task = NULL;

	do {
		task = take_next(op, task, status, slice_end);
		status = SWC_STATUS_OK;
		if (task) {
			task->copy.slice_end = slice_end;
			status = run_task(task);
		}
		/* A worker that gives way flushes its own batch, too: nobody else looks at it. */
	} while (task || swc_offload_flush(op));
}

/* Is another look at the run queue worth a while, instead of leaving? */
static bool may_idle(struct swc_op *op, u64 slice_end)
{
	/* The last worker has nobody to wait for. */
	return !READ_ONCE(op->status) && READ_ONCE(op->tasks_left) && READ_ONCE(op->nactive) > 1 &&
	       !must_give_way(slice_end);
}

/* Poll for work. Return: false if none came in time. */
static bool idle_poll(struct swc_op *op)
{
	u64 until = ktime_get_ns() + IDLE_POLL_NS;

	while (ktime_get_ns() < until && !need_resched()) {
		if (READ_ONCE(op->status) || !READ_ONCE(op->tasks_left))
			return false;
		if (!list_empty_careful(&op->runq))
			return true;
		cpu_relax();
	}
	return false;
}

/* ------------------------------------------------------------------ leaving */

/*
 * Is this worker, about to leave, the last one, with plans that wait for each other? What other nodes will
 * send is not known here: then only the deadline tells.
 */
static bool is_deadlocked(const struct swc_op *op)
{
	lockdep_assert_held(&op->lock);
	return op->nactive == 1 && !op->status && op->tasks_left && list_empty(&op->runq) &&
	       !op->comm->net && !op->nposted;
}

static const char *why_stuck(const struct swc_task *task)
{
	switch (task->state) {
	case SWC_TASK_WAIT_RECV:
		return "waits for ever for a send";
	case SWC_TASK_WAIT_SENDS:
		return "what it sends is never received";
	default:
		return "waits for ever in a barrier";
	}
}

/* Report the first task that waits for ever. The caller is the only worker. */
static void report_deadlock(struct swc_op *op)
{
	u32 i, c;

	for (i = 0; i < op->comm->nlocal; i++) {
		struct swc_req *req = op->req[i];

		for (c = 0; c < req->ntasks; c++) {
			struct swc_task *task = &req->tasks[c];
			bool recv = task->state == SWC_TASK_WAIT_RECV;

			if (task->state == SWC_TASK_DONE)
				continue;
			swc_xfer_mismatch(task, recv ? task->wait_rank : req->member->rank, why_stuck(task));
			return;
		}
	}
}

/* Return: true if the caller must call swc_op_finish(). */
static bool drop_worker(struct swc_op *op)
{
	lockdep_assert_held(&op->lock);
	op->nactive--;
	return swc_op_claim_finish(op);
}

/**
 * swc_worker_leave() - a worker, counted in op->nactive, leaves; the last one may end the operation
 *
 * The check for a deadlock and leaving are one critical section: of two workers that check first and leave
 * later, each could take the other for one that goes on.
 */
void swc_worker_leave(struct swc_op *op)
{
	bool deadlocked, failed, finish = false;

	spin_lock(&op->lock);
	deadlocked = is_deadlocked(op);
	if (deadlocked)
		swc_op_set_error(op, -EPROTO, -1);
	/* Other nodes wait for this one, and connections must release the operation's memory. */
	failed = deadlocked || (op->status && op->comm->net);
	if (!failed)
		finish = drop_worker(op);
	spin_unlock(&op->lock);
	if (failed) {
		if (deadlocked)
			report_deadlock(op);
		else
			swc_comm_abort(op->comm, op->status, op->culprit, op->seq, NULL);
		spin_lock(&op->lock);
		finish = drop_worker(op);
		spin_unlock(&op->lock);
	}
	if (finish)
		swc_op_finish(op);
}

/**
 * swc_worker_run() - be a worker of an operation that has started
 * @op: operation; the caller has a reference and is counted in op->nactive
 * @where: counter of this kind of worker
 *
 * Returns when there is nothing to do, or when the time slice of this kind of worker is over; then the caller
 * has left the operation.
 */
void swc_worker_run(struct swc_op *op, enum swc_stat where)
{
	u64 end = slice_end(where);
	bool again = true;

	swc_stat_inc(where);
	run_tasks(op, end);
	while (again && may_idle(op, end)) {
		/* Look once more after a poll in vain: a task may have become ready just then. */
		again = idle_poll(op);
		run_tasks(op, end);
	}
	swc_worker_leave(op);
}

/* ------------------------------------------------------------------ entering */

/**
 * swc_worker_enter() - become a worker that has been woken; false if the operation is over
 */
bool swc_worker_enter(struct swc_op *op)
{
	bool in;

	spin_lock(&op->lock);
	in = !op->finished;
	if (op->nwoken)
		op->nwoken--;
	if (in)
		op->nactive++;
	spin_unlock(&op->lock);
	return in;
}

/* Are engines all that is at work, for longer than polling is worth? */
static bool only_engines_busy(const struct swc_op *op)
{
	return !op->comm->net && READ_ONCE(op->nposted) && !READ_ONCE(op->nactive) &&
	       list_empty_careful(&op->runq);
}

/* May all that is left of the operation be messages of other nodes? Then nobody is busy with its tasks. */
static bool only_messages_awaited(const struct swc_op *op)
{
	return op->comm->net && READ_ONCE(op->started_at) && !READ_ONCE(op->nactive);
}

/* How long to poll before the next sleep. Task work, of other operations too, does not wait for long. */
static u64 poll_time(const struct swc_req *req)
{
	if (!req->is_poller || signal_pending(current))
		return BUSY_POLL_NS;
	return max_t(u64, READ_ONCE(req->member->poll_ns), BUSY_POLL_NS);
}

static void end_look(struct swc_net_poll **poll)
{
	if (*poll)
		(*poll)->end(*poll);
	*poll = NULL;
}

/**
 * swc_worker_busy_poll() - poll an operation instead of going to sleep
 * @req: request of the operation; the caller has a reference
 * @done: bit that is set when the caller need not wait any more
 * @flags: word with that bit
 *
 * For a submitter that is going to wait: ranks mostly arrive within microseconds of one another, and a sleep
 * and a wake-up take longer. The caller works as soon as the operation starts, and handles the message of
 * another node that its request waits for. Polls only while nothing else wants this CPU, and for a bounded
 * time without work, see swc_worker_woken().
 */
void swc_worker_busy_poll(struct swc_req *req, int done, const unsigned long *flags)
{
	u64 poll_ns = poll_time(req), until;
	struct swc_net_poll *poll = NULL;
	struct swc_op *op = req->op;
	struct swc_net *net = op->comm->net;

	if (net) {
		/* After the operation has begun; pairs with that of defer() in net/waiter.c. */
		smp_mb();
		swc_net_handle_deferred(net);
	}
	req->polled_at = ktime_get_ns();
	until = req->polled_at + poll_ns;

	while (!test_bit(done, flags) && !READ_ONCE(op->status) && single_task_running() &&
	       !need_resched() && !fatal_signal_pending(current) && ktime_get_ns() < until &&
	       !only_engines_busy(op)) {
		if (READ_ONCE(op->started_at) && !list_empty_careful(&op->runq)) {
			/* That may take long, and nobody else would handle what arrives. */
			end_look(&poll);
			if (swc_worker_enter(op)) {
				swc_worker_run(op, SWC_STAT_WORKER_INLINE);
				until = ktime_get_ns() + poll_ns;
			}
		} else if (net && swc_net_handle_deferred(net)) {
			if (!signal_pending(current))
				until = ktime_get_ns() + poll_ns;
		} else if (!poll && only_messages_awaited(op)) {
			poll = swc_remote_poll(req);
		} else if (poll && poll->look(poll)) {
			/* The next message may come by another connection. */
			end_look(&poll);
			/* Other operations of this rank can make it go on for long. */
			if (!signal_pending(current))
				until = ktime_get_ns() + poll_ns;
		}
		cpu_relax();
	}
	end_look(&poll);
}

/**
 * swc_worker_woken() - the process that waits for a request polled in vain, slept, and has been woken
 *
 * Learns from that how long to poll for a small operation between nodes: if it is over soon enough to be
 * worth it, longer next time, up to as long as it takes; otherwise shorter. This is how the kernel's haltpoll
 * governor does it.
 */
void swc_worker_woken(struct swc_req *req)
{
	u64 poll_ns = poll_time(req), waited;

	if (!req->is_poller)
		return;
	waited = ktime_get_ns() - req->polled_at;
	if (waited > MESSAGE_POLL_NS)
		poll_ns /= 2;
	else if (waited > poll_ns)
		poll_ns = min_t(u64, 2 * poll_ns, MESSAGE_POLL_NS);
	WRITE_ONCE(req->member->poll_ns, poll_ns);
}

/* Work item of a request. */
void swc_worker_fn(struct work_struct *work)
{
	struct swc_req *req = container_of(work, struct swc_req, work);

	if (swc_worker_enter(req->op))
		swc_worker_run(req->op, SWC_STAT_WORKER_KTHREAD);
	swc_req_put(req);
}

/* ------------------------------------------------------------------ starting */

/* Will all tasks, none of which has begun, only give their data to engines? */
static bool all_offloadable(struct swc_op *op)
{
	u32 i, c;

	for (i = 0; i < op->comm->nlocal; i++) {
		struct swc_req *req = op->req[i];

		cond_resched();
		for (c = 0; c < req->ntasks; c++)
			if (!swc_step_is_offloadable(&req->tasks[c]))
				return false;
	}
	return true;
}

/**
 * swc_worker_start() - run an operation whose ranks have all arrived
 * @op: the operation; the caller is its first worker and is counted in op->nactive
 * @self: the request that arrived last
 * @inline_ok: the caller may be used to run tasks
 */
void swc_worker_start(struct swc_op *op, struct swc_req *self, bool inline_ok)
{
	bool single_worker = all_offloadable(op), left = false;
	u32 i;

	trace_swc_start(op);
	spin_lock(&op->lock);
	swc_runq_add_all(op);
	for (i = 0; i < op->comm->nlocal; i++) {
		struct swc_req *req = op->req[i];

		if (req->started)
			req->started(req);
	}
	/* Waiting processes may be slow to come or be stopped; a work item always comes. */
	if (!inline_ok && swc_runq_queue_work(self)) {
		op->nwoken++;
		/* It ends the operation, too: the submitter may be inside the end of another one. */
		left = !op->status && op->tasks_left;
	}
	/* One worker is enough to give all to engines; what they refuse wakes others. */
	op->single_worker = single_worker;
	if (!single_worker)
		swc_runq_wake_workers(op);
	if (left)
		op->nactive--;
	spin_unlock(&op->lock);
	if (inline_ok)
		swc_worker_run(op, SWC_STAT_WORKER_INLINE);
	else if (!left)
		swc_worker_leave(op);
}

/* ------------------------------------------------------------------ events */

/**
 * swc_worker_returned() - a connection or an engine has returned something of an operation; op->lock is held
 * @op: operation; a reference is taken, unless the result is SWC_ACTION_NONE
 * @task: task that can go on now, or NULL
 * @error: 0, or a negative errno that fails the operation
 * @nested: the caller is inside a worker already: another worker runs the task
 *
 * Return: what the caller gives to swc_worker_do() when it has dropped the lock.
 */
enum swc_worker_action swc_worker_returned(struct swc_op *op, struct swc_task *task, int error, bool nested)
{
	enum swc_worker_action action = SWC_ACTION_NONE;

	op->nposted--;
	if (error)
		swc_op_set_error(op, error, -1);
	if (task && nested)
		swc_runq_defer(op, task);
	else if (task && swc_runq_resume(op, task))
		action = SWC_ACTION_RUN;
	if (swc_op_claim_finish(op))
		action = SWC_ACTION_FINISH;
	if (action != SWC_ACTION_NONE)
		kref_get(&op->ref);
	return action;
}

/**
 * swc_worker_do() - do what swc_worker_returned() said; drops its reference
 */
void swc_worker_do(struct swc_op *op, enum swc_worker_action action)
{
	struct swc_comm *comm;

	if (action == SWC_ACTION_NONE)
		return;
	/* The operation gives its own reference up when it finishes. */
	comm = op->comm;
	kref_get(&comm->ref);
	if (action == SWC_ACTION_RUN)
		swc_worker_run(op, SWC_STAT_WORKER_EVENT);
	else
		swc_op_finish(op);
	swc_op_put(op);
	swc_comm_put(comm);
}

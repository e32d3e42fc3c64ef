// SPDX-License-Identifier: GPL-2.0-only
/*
 * The run queue of an operation: tasks that are ready, and waking workers for them. Everything here is called
 * under op->lock.
 */
#include <linux/bits.h>
#include <linux/smp.h>

#include "comm/comm.h"
#include "exec/request.h"
#include "exec/runq.h"

/* ------------------------------------------------------------------ workers */

/* Queue the request's work item. False if it is queued already. */
bool swc_runq_queue_work(struct swc_req *req)
{
	refcount_inc(&req->ref);
	if (queue_work(swc_comm_wq(req->op->comm), &req->work))
		return true;
	/* Never the last reference: the operation has not completed the request yet. */
	refcount_dec(&req->ref);
	return false;
}

/* A CPU in a set of CPUs, on machines with more than 64 together with others. */
static u64 cpu_bit(unsigned int cpu)
{
	return BIT_ULL(cpu % 64);
}

/* Wake a worker other than the processes that slept on one of these CPUs. Return: NULL if there is none. */
static struct swc_req *wake_off(struct swc_op *op, u64 cpus)
{
	u32 i;

	for (i = 0; i < op->comm->nlocal; i++) {
		struct swc_req *req = op->req[i];

		if (!req->wake_worker && swc_runq_queue_work(req))
			return req;
		if (req->wake_worker && !(cpu_bit(READ_ONCE(req->cpu)) & cpus) && req->wake_worker(req))
			return req;
	}
	return NULL;
}

/*
 * Wake one more worker, if there is work for it, and add its CPU to @cpus, those that have a worker. The
 * scheduler mostly leaves a process where it slept unless it finds an idle CPU; on the CPU of a worker it
 * would take that worker's time, while another CPU has nothing to do as soon as its process waits, too.
 */
static void wake_worker(struct swc_op *op, u64 *cpus)
{
	struct swc_req *req;

	lockdep_assert_held(&op->lock);
	if (list_empty(&op->runq) || op->nactive + op->nwoken >= op->max_workers)
		return;
	req = wake_off(op, *cpus) ?: wake_off(op, 0);
	if (!req)
		return;
	op->nwoken++;
	if (req->wake_worker)
		*cpus |= cpu_bit(READ_ONCE(req->cpu));
}

/* Wake one more worker, if there is work for it. */
void swc_runq_wake_worker(struct swc_op *op)
{
	u64 cpus = cpu_bit(raw_smp_processor_id());

	wake_worker(op, &cpus);
}

/* Wake as many workers as are useful. */
void swc_runq_wake_workers(struct swc_op *op)
{
	u64 cpus = cpu_bit(raw_smp_processor_id());
	u32 i;

	for (i = 1; i < op->max_workers; i++)
		wake_worker(op, &cpus);
}

/* ------------------------------------------------------------------ tasks */

static void enqueue(struct swc_op *op, struct swc_task *task)
{
	swc_task_set_state(task, SWC_TASK_READY);
	list_add_tail(&task->node, &op->runq);
}

/**
 * swc_runq_add() - make a task ready and wake a worker for it
 */
void swc_runq_add(struct swc_op *op, struct swc_task *task)
{
	enqueue(op, task);
	swc_runq_wake_worker(op);
}

/**
 * swc_runq_add_all() - make all tasks of an operation that starts ready; the caller wakes workers
 */
void swc_runq_add_all(struct swc_op *op)
{
	u32 i, c;

	for (i = 0; i < op->comm->nlocal; i++) {
		struct swc_req *req = op->req[i];

		for (c = 0; c < req->ntasks; c++)
			enqueue(op, &req->tasks[c]);
	}
}

/**
 * swc_runq_add_offloaded() - make a task ready that waited for an engine
 *
 * If there is nothing left to copy, the caller, who becomes a worker, is enough.
 */
void swc_runq_add_offloaded(struct swc_op *op, struct swc_task *task)
{
	enqueue(op, task);
	if (task->copy.done < task->copy.bytes)
		swc_runq_wake_worker(op);
}

/**
 * swc_runq_put_back() - the caller does not go on with its task, which becomes the next one to be taken
 */
void swc_runq_put_back(struct swc_op *op, struct swc_task *task)
{
	swc_task_set_state(task, SWC_TASK_READY);
	list_add(&task->node, &op->runq);
}

/**
 * swc_runq_hand_over() - the caller takes no more tasks: if one is ready, another worker comes in its place
 *
 * A work item is queued, which always comes; by another request if one has handed over this one's already.
 */
void swc_runq_hand_over(struct swc_op *op)
{
	struct swc_task *task;

	lockdep_assert_held(&op->lock);
	list_for_each_entry(task, &op->runq, node) {
		if (swc_runq_queue_work(task->req)) {
			op->nwoken++;
			return;
		}
	}
}

/**
 * swc_runq_resume() - make a task ready and become a worker for it
 *
 * The task continues in the context of the event that it waited for, because waking a worker costs more than
 * most steps.
 *
 * Return: true if the caller, now counted in op->nactive, must call swc_worker_run() without the lock.
 */
bool swc_runq_resume(struct swc_op *op, struct swc_task *task)
{
	lockdep_assert_held(&op->lock);
	if (op->finished || op->status)
		return false;
	enqueue(op, task);
	op->nactive++;
	return true;
}

/**
 * swc_runq_defer() - the same by a work item, for callers inside a worker, which would nest without bound
 */
void swc_runq_defer(struct swc_op *op, struct swc_task *task)
{
	lockdep_assert_held(&op->lock);
	if (op->finished || op->status)
		return;
	enqueue(op, task);
	if (swc_runq_queue_work(task->req))
		op->nwoken++;
}

/**
 * swc_runq_take() - take the first ready task to run it; NULL if there is none
 */
struct swc_task *swc_runq_take(struct swc_op *op)
{
	struct swc_task *task = list_first_entry_or_null(&op->runq, struct swc_task, node);

	lockdep_assert_held(&op->lock);
	if (!task)
		return NULL;
	list_del_init(&task->node);
	swc_task_set_state(task, SWC_TASK_ACTIVE);
	return task;
}

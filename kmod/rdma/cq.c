// SPDX-License-Identifier: GPL-2.0-only
/*
 * The completion queue of a connection, and who handles its completions: a process that sleeps until a
 * message of the connection arrives (net/waiter.c), or else a work item.
 *
 * The queue raises one event each time it is armed. Who has that event polls the queue and arms it again, so
 * completions are handled one at a time, in their order:
 *
 *	from	to
 *	ARMED	GIVEN	event(): a process has been woken
 *	GIVEN	POLLED	it runs; or it has not run for too long, and the work item takes its place
 *	POLLED	ARMED	nothing was left
 *
 * An event in another state than ARMED is one that the device need not have raised: who polls looks again
 * after the queue has been armed.
 */
#include <linux/slab.h>

#include "rdma/rdma.h"

#define BATCH	16
/* Completions after which others get their turn. */
#define BUDGET	1024

enum cq_state {
	CQ_ARMED,
	CQ_GIVEN,
	CQ_POLLED,
};

/**
 * struct swc_cq - the completion queue of one queue pair
 * @poll: what a process is given
 * @ref: of the connection, and of a process that has been given it
 * @conn: connection; outlives @ib
 * @ib: the queue
 * @work: polls
 * @lock: held while it is polled; handlers of completions run under it
 * @state: see above
 * @stopping: no process is given it any more
 * @freed: @ib is gone, or about to; @lock
 * @wc: completions; @lock
 */
struct swc_cq {
	struct swc_net_poll poll;
	struct kref ref;
	struct swc_conn *conn;
	struct ib_cq *ib;
	struct work_struct work;
	struct mutex lock;
	int state;
	bool stopping;
	bool freed;
	struct ib_wc wc[BATCH];
};

/* Like the one of ib_alloc_cq_any(), which keeps it to itself. */
static struct workqueue_struct *cq_wq;

static void cq_release(struct kref *ref)
{
	kfree(container_of(ref, struct swc_cq, ref));
}

/* ------------------------------------------------------------------ polling */

/* False: the state is another one. Successful, it is a full barrier. */
static bool change_state(struct swc_cq *cq, enum cq_state from, enum cq_state to)
{
	return cmpxchg(&cq->state, from, to) == from;
}

static int handle_batch(struct swc_cq *cq)
{
	int i, n = ib_poll_cq(cq->ib, BATCH, cq->wc);

	for (i = 0; i < n; i++)
		cq->wc[i].wr_cqe->done(cq->ib, &cq->wc[i]);
	return max(n, 0);
}

/* Handle what there is, and arm the queue. The caller has the event. */
static void poll_queue(struct swc_cq *cq)
{
	int n, handled = 0;

	lockdep_assert_held(&cq->lock);
	do {
		do {
			n = handle_batch(cq);
			handled += n;
		} while (n == BATCH && handled < BUDGET);
		if (handled >= BUDGET) {
			queue_work(cq_wq, &cq->work);
			return;
		}
		/* Before it is armed: from then on there may be an event. Pairs with that in event(). */
		smp_store_release(&cq->state, CQ_ARMED);
		if (ib_req_notify_cq(cq->ib, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) <= 0)
			return;
		/* More has arrived; if there was an event as well, that has it. */
	} while (change_state(cq, CQ_ARMED, CQ_POLLED));
}

static void poll_work(struct work_struct *work)
{
	struct swc_cq *cq = container_of(work, struct swc_cq, work);

	mutex_lock(&cq->lock);
	if (!cq->freed && READ_ONCE(cq->state) == CQ_POLLED)
		poll_queue(cq);
	mutex_unlock(&cq->lock);
}

/* A process has been given the queue, and runs. */
static void poll_given(struct swc_net_poll *poll)
{
	struct swc_cq *cq = container_of(poll, struct swc_cq, poll);

	mutex_lock(&cq->lock);
	if (!cq->freed && change_state(cq, CQ_GIVEN, CQ_POLLED))
		poll_queue(cq);
	mutex_unlock(&cq->lock);
	kref_put(&cq->ref, cq_release);
}

/**
 * swc_cq_take_back() - have a work item poll a queue that a process was given and has not polled yet
 *
 * That process may be stopped. Any context.
 */
void swc_cq_take_back(struct swc_cq *cq)
{
	if (change_state(cq, CQ_GIVEN, CQ_POLLED))
		queue_work(cq_wq, &cq->work);
}

/* The device has completed something. Interrupts, or any context. */
static void event(struct ib_cq *ib, void *context)
{
	struct swc_cq *cq = context;

	if (!change_state(cq, CQ_ARMED, CQ_GIVEN))
		return;
	kref_get(&cq->ref);
	/* Read after the change: either this finds @stopping, or swc_cq_stop() finds GIVEN. */
	if (!READ_ONCE(cq->stopping) && swc_conn_give(cq->conn, &cq->poll))
		return;
	swc_cq_take_back(cq);
	/* Not the last one: the connection has its own until the queue is destroyed. */
	kref_put(&cq->ref, cq_release);
}

/* ------------------------------------------------------------------ life */

/**
 * swc_cq_create() - make a completion queue of @n entries, and arm it
 *
 * Return: it, or an ERR_PTR.
 */
struct swc_cq *swc_cq_create(struct swc_conn *conn, struct ib_device *ib, u32 n)
{
	static atomic_t counter = ATOMIC_INIT(0);
	struct swc_cq *cq = kzalloc(sizeof(*cq), GFP_KERNEL_ACCOUNT);
	struct ib_cq_init_attr attr = {
		.cqe = n,
		/* Spread over the CPUs that the device can interrupt. */
		.comp_vector = (u32)atomic_inc_return(&counter) %
			       min_t(u32, ib->num_comp_vectors, num_online_cpus()),
	};

	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->poll.poll = poll_given;
	kref_init(&cq->ref);
	cq->conn = conn;
	INIT_WORK(&cq->work, poll_work);
	mutex_init(&cq->lock);
	cq->ib = ib_create_cq(ib, event, NULL, cq, &attr);
	if (IS_ERR(cq->ib)) {
		void *error = cq->ib;

		kfree(cq);
		return error;
	}
	ib_req_notify_cq(cq->ib, IB_CQ_NEXT_COMP);
	return cq;
}

/* For queue pairs. */
struct ib_cq *swc_cq_ib(const struct swc_cq *cq)
{
	return cq->ib;
}

/**
 * swc_cq_stop() - the queue is going to be drained: have work items handle the rest
 */
void swc_cq_stop(struct swc_cq *cq)
{
	WRITE_ONCE(cq->stopping, true);
	/* Pairs with the change of state in event(). */
	smp_mb();
	swc_cq_take_back(cq);
}

/**
 * swc_cq_free() - free the queue, whose queue pair is gone; waits for handlers of its completions
 */
void swc_cq_free(struct swc_cq *cq)
{
	mutex_lock(&cq->lock);
	cq->freed = true;
	/* No event has a consequence any more. */
	xchg(&cq->state, CQ_POLLED);
	mutex_unlock(&cq->lock);
	ib_destroy_cq(cq->ib);
	cancel_work_sync(&cq->work);
	kref_put(&cq->ref, cq_release);
}

int swc_cq_init(void)
{
	cq_wq = alloc_workqueue("swingcoll-cq", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	return cq_wq ? 0 : -ENOMEM;
}

void swc_cq_exit(void)
{
	destroy_workqueue(cq_wq);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The completion queue of a connection, and who handles its completions: a process that waits for a message
 * of the connection (net/waiter.c), asleep or polling, or else a work item.
 *
 * The queue raises one event each time it is armed. Who has that event polls the queue and arms it again:
 *
 *	from	to
 *	ARMED	GIVEN	event(): a process has been woken
 *	ARMED	CLAIMED	(L) the poller has come: a process that looks for completions before an event
 *	CLAIMED	ARMED	the poller goes, and there has been no event
 *	CLAIMED	GIVEN	event(): the poller will see it when it looks next, or goes
 *	GIVEN	POLLED	(L) the process runs, or the poller sees the event
 *	GIVEN	POLLED	neither has for too long, or the queue is going to be drained: the work item comes
 *	POLLED	ARMED	(L) nothing was left
 *
 * (L): under cq->lock, as are handlers of completions, always: so completions are handled once, one at a
 * time, in the order of the queue, whoever polls it.
 *
 * No completion is left behind. In ARMED and CLAIMED, while nobody has cq->lock, the queue is armed, and what
 * is in it has an event that is still to come: poll_queue() leaves ARMED only so; the poller cannot interfere
 * before, without the lock, and afterwards takes completions out without arming. That event finds ARMED or
 * CLAIMED, and makes it GIVEN, which only polling ends. One that finds another state need not have been
 * raised: who polls looks again after the queue has been armed. And GIVEN is always polled: from ARMED by the
 * woken process, from CLAIMED by the poller. There is one poller at a time, only it makes the state CLAIMED,
 * and before it goes it makes that ARMED again, or finds GIVEN and polls. Whether GIVEN is its own or a
 * process's does not matter: who comes second finds another state, and does nothing.
 *
 * A poller that does not run holds nobody up. Without an event there is nothing to handle; after one the
 * state is GIVEN, and the work item takes its place as that of a woken process that does not run
 * (swc_cq_take_back()). It holds cq->lock only while it handles what it has found.
 *
 * An event may come after the poller has handled its completion, and has gone: it wakes somebody in vain.
 */
#include <linux/slab.h>

#include "rdma/rdma.h"

#define BATCH	16
/* Completions after which others get their turn. */
#define BUDGET	1024

enum cq_state {
	CQ_ARMED,
	CQ_CLAIMED,
	CQ_GIVEN,
	CQ_POLLED,
};

/**
 * struct swc_cq - the completion queue of one queue pair
 * @poll: for processes
 * @ref: of the connection, of a process that has been given it, and of the poller
 * @conn: connection; outlives @ib
 * @ib: the queue
 * @work: polls
 * @lock: held while it is polled; handlers of completions run under it
 * @state: see above
 * @npollers: 1 if there is a poller, else 0
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
	atomic_t npollers;
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

/* Handle what there is, and arm the queue. The caller has the event. Return: the number of completions. */
static int poll_queue(struct swc_cq *cq)
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
			return handled;
		}
		/* Before it is armed: from then on there may be an event. Pairs with that in event(). */
		smp_store_release(&cq->state, CQ_ARMED);
		if (ib_req_notify_cq(cq->ib, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) <= 0)
			return handled;
		/* More has arrived; if there was an event as well, that has it. */
	} while (change_state(cq, CQ_ARMED, CQ_POLLED));
	return handled;
}

static void poll_work(struct work_struct *work)
{
	struct swc_cq *cq = container_of(work, struct swc_cq, work);

	mutex_lock(&cq->lock);
	if (!cq->freed && READ_ONCE(cq->state) == CQ_POLLED)
		poll_queue(cq);
	mutex_unlock(&cq->lock);
}

/* Poll the queue if it is given to a process, and has not been polled since. */
static void take_given(struct swc_cq *cq)
{
	mutex_lock(&cq->lock);
	if (!cq->freed && change_state(cq, CQ_GIVEN, CQ_POLLED))
		poll_queue(cq);
	mutex_unlock(&cq->lock);
}

/* A process has been given the queue, and runs. */
static void poll_given(struct swc_net_poll *poll)
{
	struct swc_cq *cq = container_of(poll, struct swc_cq, poll);

	take_given(cq);
	kref_put(&cq->ref, cq_release);
}

/**
 * swc_cq_take_back() - have a work item poll a queue that a process was given and has not polled yet
 *
 * That process may be stopped. One that polls right now does no harm. Any context.
 */
void swc_cq_take_back(struct swc_cq *cq)
{
	if (change_state(cq, CQ_GIVEN, CQ_POLLED))
		queue_work(cq_wq, &cq->work);
}

/**
 * swc_cq_settle() - handle what is in the queue now, or wait until who does it has done so
 *
 * As the poller does it, without arming the queue: whoever has its event finds nothing left. Process context.
 */
void swc_cq_settle(struct swc_cq *cq)
{
	int handled = 0, n = BATCH;

	mutex_lock(&cq->lock);
	while (!cq->freed && n == BATCH && handled < BUDGET) {
		n = handle_batch(cq);
		handled += n;
	}
	mutex_unlock(&cq->lock);
}

/* The device has completed something. Interrupts, or any context. */
static void event(struct ib_cq *ib, void *context)
{
	struct swc_cq *cq = context;
	int from = READ_ONCE(cq->state);

	/* The poller may come or go meanwhile. */
	do {
		if (from != CQ_ARMED && from != CQ_CLAIMED)
			return;
	} while (!try_cmpxchg(&cq->state, &from, CQ_GIVEN));
	/* Read after the change: either this finds @stopping, or swc_cq_stop() finds GIVEN. */
	if (from == CQ_CLAIMED && !READ_ONCE(cq->stopping))
		return;
	kref_get(&cq->ref);
	if (!READ_ONCE(cq->stopping) && swc_conn_give(cq->conn, &cq->poll))
		return;
	swc_cq_take_back(cq);
	/* Not the last one: the connection has its own until the queue is destroyed. */
	kref_put(&cq->ref, cq_release);
}

/* ------------------------------------------------------------------ the poller */

static bool begin_look(struct swc_net_poll *poll)
{
	struct swc_cq *cq = container_of(poll, struct swc_cq, poll);

	if (atomic_cmpxchg_acquire(&cq->npollers, 0, 1))
		return false;
	kref_get(&cq->ref);
	return true;
}

/* Return: the number of completions. */
static int look_locked(struct swc_cq *cq)
{
	int n = 0;

	lockdep_assert_held(&cq->lock);
	switch ((enum cq_state)READ_ONCE(cq->state)) {
	case CQ_GIVEN:
		if (change_state(cq, CQ_GIVEN, CQ_POLLED))
			n = poll_queue(cq);
		fallthrough;
	case CQ_ARMED:
		change_state(cq, CQ_ARMED, CQ_CLAIMED);
		break;
	case CQ_CLAIMED:
		n = handle_batch(cq);
		break;
	case CQ_POLLED:
		break;
	}
	return n;
}

static bool look(struct swc_net_poll *poll)
{
	struct swc_cq *cq = container_of(poll, struct swc_cq, poll);
	int n = 0;

	/* Otherwise somebody else handles completions now. */
	if (mutex_trylock(&cq->lock)) {
		if (!cq->freed)
			n = look_locked(cq);
		mutex_unlock(&cq->lock);
	}
	return n;
}

static void end_look(struct swc_net_poll *poll)
{
	struct swc_cq *cq = container_of(poll, struct swc_cq, poll);

	if (!change_state(cq, CQ_CLAIMED, CQ_ARMED) && READ_ONCE(cq->state) == CQ_GIVEN)
		take_given(cq);
	atomic_set_release(&cq->npollers, 0);
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
	swc_net_poll_init(&cq->poll, poll_given);
	cq->poll.begin = begin_look;
	cq->poll.look = look;
	cq->poll.end = end_look;
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
	swc_conn_offer_poll(conn, &cq->poll);
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
	swc_conn_withdraw_poll(cq->conn, &cq->poll);
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
	swc_conn_withdraw_poll(cq->conn, &cq->poll);
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

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who handles completions: a process that sleeps until a message arrives, or a work item; and a process that
 * has been woken for that and does not run holds nobody up.
 */
#include "net/conn.h"
#include "kunit/harness.h"
#include "kunit/rdma/net_harness.h"

/* ------------------------------------------------------------------ waiters */

struct sleeper {
	struct swc_net_waiter waiter;
	bool sleeps;
	u32 woken;
};

static bool wake(struct swc_net_waiter *waiter)
{
	struct sleeper *s = container_of(waiter, struct sleeper, waiter);

	s->woken += s->sleeps;
	return s->sleeps;
}

static void no_poll(struct swc_net_poll *poll)
{
}

static void cq_waiter(struct kunit *test)
{
	struct sleeper first = { .waiter.wake = wake }, second = { .waiter.wake = wake, .sleeps = true };
	struct swc_conn *conn = kunit_kzalloc(test, sizeof(*conn), GFP_KERNEL);
	struct swc_net_poll poll = { no_poll };

	KUNIT_ASSERT_NOT_NULL(test, conn);
	kref_init(&conn->ref);
	spin_lock_init(&conn->waiter_lock);
	KUNIT_EXPECT_FALSE(test, swc_conn_give(conn, &poll));

	swc_net_wait(&first.waiter, conn);
	KUNIT_EXPECT_EQ(test, kref_read(&conn->ref), 2u);
	/* One at a time. */
	swc_net_wait(&second.waiter, conn);
	KUNIT_EXPECT_NULL(test, swc_net_wait_end(&second.waiter));
	/* It does not sleep yet. */
	KUNIT_EXPECT_FALSE(test, swc_conn_give(conn, &poll));
	first.sleeps = true;
	KUNIT_EXPECT_TRUE(test, swc_conn_give(conn, &poll));
	KUNIT_EXPECT_EQ(test, first.woken, 1u);
	KUNIT_EXPECT_EQ(test, second.woken, 0u);
	/* It is given one thing at a time. */
	KUNIT_EXPECT_FALSE(test, swc_conn_give(conn, &poll));
	KUNIT_EXPECT_PTR_EQ(test, swc_net_wait_end(&first.waiter), &poll);
	KUNIT_EXPECT_NULL(test, swc_net_wait_end(&first.waiter));
	KUNIT_EXPECT_EQ(test, kref_read(&conn->ref), 1u);

	/* Not woken before the wait ends. */
	swc_net_wait(&second.waiter, conn);
	KUNIT_EXPECT_NULL(test, swc_net_wait_end(&second.waiter));
	KUNIT_EXPECT_FALSE(test, swc_conn_give(conn, &poll));
	KUNIT_EXPECT_EQ(test, second.woken, 0u);
	KUNIT_EXPECT_EQ(test, kref_read(&conn->ref), 1u);
}

/* ------------------------------------------------------------------ completions */

/* In place of a process that has submitted an operation. */
struct process {
	struct swc_net_waiter waiter;
	struct work_struct work;
	atomic_t woken;
	bool stopped;
};

static void process_work(struct work_struct *work)
{
	struct process *p = container_of(work, struct process, work);
	struct swc_net_poll *given = swc_net_wait_end(&p->waiter);

	if (given)
		given->poll(given);
}

static bool wake_process(struct swc_net_waiter *waiter)
{
	struct process *p = container_of(waiter, struct process, waiter);

	atomic_inc(&p->woken);
	if (!p->stopped)
		schedule_work(&p->work);
	return true;
}

/* Wait on the only connection of a rank. */
static void begin_wait(struct process *p, struct swc_t_comm *c, u32 rank, bool stopped)
{
	struct swc_net *net = swc_t_net(c, rank);

	p->waiter.wake = wake_process;
	p->stopped = stopped;
	INIT_WORK(&p->work, process_work);
	mutex_lock(&net->lock);
	KUNIT_EXPECT_TRUE(c->test, list_is_singular(&net->all));
	swc_net_wait(&p->waiter, list_first_entry(&net->all, struct swc_conn, node));
	mutex_unlock(&net->lock);
}

/* A ring of two nodes, one sum for each time that a process waits on every connection. */
static void run_with_processes(struct kunit *test, u32 rounds, bool stopped)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct process *p = kunit_kcalloc(test, 2, sizeof(*p), GFP_KERNEL);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 i, r, woken = 0;

	KUNIT_ASSERT_NOT_NULL(test, p);
	swc_t_job_init(job, c, swc_t_ring, 1000, false);
	swc_t_job_run(job, 0, false);
	for (i = 0; i < rounds; i++) {
		for (r = 0; r < 2; r++)
			begin_wait(&p[r], c, r, stopped);
		swc_t_job_run(job, i & 1, false);
		for (r = 0; r < 2; r++) {
			flush_work(&p[r].work);
			process_work(&p[r].work);
			woken += atomic_xchg(&p[r].woken, 0);
		}
	}
	/* Each rank has received at least one message while its process slept. */
	KUNIT_EXPECT_EQ(test, woken, 2 * rounds);
	swc_t_expect_credits(c);
	swc_t_comm_end(c);
}

static void cq_given(struct kunit *test)
{
	run_with_processes(test, 50, false);
}

/* A work item takes what it was given, within about a second. */
static void cq_process_stopped(struct kunit *test)
{
	run_with_processes(test, 2, true);
}

/* Closing a connection does not wait for a process, which polls later. */
static void cq_given_too_late(struct kunit *test)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct process *p = kunit_kcalloc(test, 2, sizeof(*p), GFP_KERNEL);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 r;

	KUNIT_ASSERT_NOT_NULL(test, p);
	swc_t_job_init(job, c, swc_t_ring, 1000, false);
	swc_t_job_run(job, 0, false);
	for (r = 0; r < 2; r++)
		begin_wait(&p[r], c, r, true);
	/* The FIN of the other rank wakes them, if nothing else does. */
	swc_t_comm_end(c);
	for (r = 0; r < 2; r++)
		process_work(&p[r].work);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(cq_waiter),
	KUNIT_CASE(cq_given),
	KUNIT_CASE_SLOW(cq_process_stopped),
	KUNIT_CASE_SLOW(cq_given_too_late),
	{}
};

struct kunit_suite swc_cq_suite = {
	.name = "swc_cq", .init = swc_t_net_init, .exit = swc_t_net_exit, .test_cases = cases,
};

/* The same processes receive from a socket. */
static struct kunit_case tcp_cases[] = {
	KUNIT_CASE(cq_given),
	KUNIT_CASE_SLOW(cq_process_stopped),
	KUNIT_CASE_SLOW(cq_given_too_late),
	{}
};

struct kunit_suite swc_waiter_tcp_suite = {
	.name = "swc_waiter_tcp", .init = swc_t_tcp_init, .exit = swc_t_tcp_exit, .test_cases = tcp_cases,
};

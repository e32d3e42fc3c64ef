// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who handles completions: a process that sleeps until a message arrives, one that looks for it, or a work
 * item; and a process that has been woken for that, or looks, and does not run holds nobody up.
 */
#include <linux/sched.h>
#include <linux/tcp.h>
#include <net/sock.h>

#include "rdma/rdma.h"
#include "tcp/tcp.h"
#include "kunit/harness.h"
#include "kunit/rdma/net_harness.h"

/* Of a race that mostly ends one way: after so many rounds it is not the machine's load. */
#define MOST_ROUNDS	1000

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

/* A connection whose net has nothing else. */
static struct swc_conn *lone_conn(struct kunit *test, const struct swc_net_window *window)
{
	struct swc_net *net = kunit_kzalloc(test, sizeof(*net), GFP_KERNEL);
	struct swc_conn *conn = kunit_kzalloc(test, sizeof(*conn), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, net);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	net->params.window = window;
	net->params.wq = system_wq;
	swc_net_init_deferred(net);
	kref_init(&conn->ref);
	spin_lock_init(&conn->waiter_lock);
	conn->net = net;
	return conn;
}

static void cq_waiter(struct kunit *test)
{
	struct sleeper first = { .waiter.wake = wake }, second = { .waiter.wake = wake, .sleeps = true };
	struct swc_net_window window = { .oldest = 0 };
	struct swc_conn *conn = lone_conn(test, &window);
	struct swc_net_poll poll;

	swc_net_poll_init(&poll, no_poll);
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

struct counter {
	struct swc_net_poll poll;
	struct completion done;
	u32 n;
};

static void count(struct swc_net_poll *poll)
{
	struct counter *c = container_of(poll, struct counter, poll);

	c->n++;
	complete(&c->done);
}

static void init_counter(struct counter *c)
{
	swc_net_poll_init(&c->poll, count);
	init_completion(&c->done);
	c->n = 0;
}

/* What arrives is left for a process that polls, as long as one does. */
static void cq_poller(struct kunit *test)
{
	struct swc_net_window window = { .oldest = 0 };
	struct swc_conn *conn = lone_conn(test, &window);
	struct swc_net *net = conn->net;
	struct counter c;

	init_counter(&c);
	KUNIT_EXPECT_FALSE(test, swc_conn_give(conn, &c.poll));
	swc_net_poller_begin(net);
	KUNIT_EXPECT_FALSE(test, swc_net_handle_deferred(net));
	swc_net_poller_begin(net);
	KUNIT_EXPECT_TRUE(test, swc_conn_give(conn, &c.poll));
	/* It was taken back meanwhile, and something else has arrived. */
	KUNIT_EXPECT_FALSE(test, swc_conn_give(conn, &c.poll));
	KUNIT_EXPECT_TRUE(test, swc_net_handle_deferred(net));
	KUNIT_EXPECT_EQ(test, c.n, 1u);
	KUNIT_EXPECT_TRUE(test, swc_conn_give(conn, &c.poll));
	swc_net_poller_end(net);
	KUNIT_EXPECT_EQ(test, c.n, 2u);
	/* Another process still does. */
	KUNIT_EXPECT_TRUE(test, swc_conn_give(conn, &c.poll));
	swc_net_poller_end(net);
	KUNIT_EXPECT_EQ(test, c.n, 3u);
	KUNIT_EXPECT_FALSE(test, swc_conn_give(conn, &c.poll));
	swc_net_stop_deferred(net);
	KUNIT_EXPECT_EQ(test, c.n, 3u);
}

/* Without an operation it is left; a kernel thread comes after a while, or when an operation wants it. */
static void cq_deferred(struct kunit *test)
{
	struct swc_net_window window = { .oldest = U64_MAX };
	struct swc_conn *conn = lone_conn(test, &window);
	struct swc_net *net = conn->net;
	struct counter c;

	init_counter(&c);
	swc_net_expedite(net);
	KUNIT_EXPECT_TRUE(test, swc_conn_give(conn, &c.poll));
	wait_for_completion(&c.done);
	flush_work(&net->deferred_work);
	KUNIT_EXPECT_EQ(test, c.n, 1u);

	KUNIT_EXPECT_TRUE(test, swc_conn_give(conn, &c.poll));
	window.oldest = 0;
	swc_net_expedite(net);
	wait_for_completion(&c.done);
	KUNIT_EXPECT_FALSE(test, swc_conn_give(conn, &c.poll));

	window.oldest = U64_MAX;
	KUNIT_EXPECT_TRUE(test, swc_conn_give(conn, &c.poll));
	swc_net_stop_deferred(net);
	KUNIT_EXPECT_EQ(test, c.n, 3u);
	KUNIT_EXPECT_TRUE(test, list_empty(&c.poll.node));
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
	p->waiter.wake = wake_process;
	p->stopped = stopped;
	INIT_WORK(&p->work, process_work);
	swc_net_wait(&p->waiter, swc_t_only_conn(c, rank));
}

/*
 * A ring of two nodes, sums during which a process waits on every connection, until @wanted have been woken.
 * A work item that still handles what came before handles what comes next as well: then none is.
 */
static void run_with_processes(struct kunit *test, u32 wanted, bool stopped)
{
	struct swc_t_comm *c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	struct process *p = kunit_kcalloc(test, 2, sizeof(*p), GFP_KERNEL);
	struct swc_t_job *job = swc_t_job_new(test);
	u32 i, r, woken = 0;

	KUNIT_ASSERT_NOT_NULL(test, p);
	swc_t_job_init(job, c, swc_t_ring, 1000, false);
	swc_t_job_run(job, 0, false);
	for (i = 0; i < MOST_ROUNDS && woken < wanted; i++) {
		for (r = 0; r < 2; r++)
			begin_wait(&p[r], c, r, stopped);
		swc_t_job_run(job, i & 1, false);
		for (r = 0; r < 2; r++) {
			flush_work(&p[r].work);
			process_work(&p[r].work);
			woken += atomic_xchg(&p[r].woken, 0);
		}
	}
	KUNIT_EXPECT_GE(test, woken, wanted);
	swc_t_expect_credits(c);
	swc_t_comm_end(c);
}

static void cq_given(struct kunit *test)
{
	run_with_processes(test, 100, false);
}

/* A work item takes what it was given, within about a second. */
static void cq_process_stopped(struct kunit *test)
{
	run_with_processes(test, 4, true);
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

/* ------------------------------------------------------------------ pollers */

/* Two nodes of one rank each, and a process of each that polls. */
struct pollers {
	struct swc_t_comm *c;
	struct swc_t_job *job;
	struct process *process;
	struct swc_net_poll *poll[2];
	u32 found, woken;
};

static void begin_polls(struct pollers *p)
{
	u32 r;

	for (r = 0; r < 2; r++) {
		p->poll[r] = swc_net_poll_begin(swc_t_only_conn(p->c, r));
		KUNIT_ASSERT_NOT_NULL(p->c->test, p->poll[r]);
	}
}

static void look(struct pollers *p)
{
	u32 r;

	for (r = 0; r < 2; r++)
		p->found += p->poll[r]->look(p->poll[r]);
	/* There may be one CPU, and the test's clock jumps to the next timer when it is idle. */
	schedule_timeout_uninterruptible(1);
}

static void end_polls(struct pollers *p)
{
	u32 r;

	for (r = 0; r < 2; r++)
		p->poll[r]->end(p->poll[r]);
}

/* Let processes sleep, too, to see whether an event comes to anybody but the pollers. */
static void begin_waits(struct pollers *p)
{
	u32 r;

	for (r = 0; r < 2; r++)
		begin_wait(&p->process[r], p->c, r, false);
}

static void end_waits(struct pollers *p)
{
	u32 r;

	for (r = 0; r < 2; r++) {
		flush_work(&p->process[r].work);
		process_work(&p->process[r].work);
		p->woken += atomic_xchg(&p->process[r].woken, 0);
	}
}

static bool is_done(const struct pollers *p)
{
	return completion_done(&p->job->done[0].done) && completion_done(&p->job->done[1].done);
}

/* A sum during which nobody else looks. @turns: the pollers come and go all the time. */
static void run_polled(struct pollers *p, bool turns)
{
	u32 r;

	for (r = 0; r < 2; r++)
		KUNIT_EXPECT_EQ(p->c->test, swc_t_job_submit(p->job, r, false), 0);
	/* The operation's deadline ends this if need be. */
	while (!is_done(p)) {
		look(p);
		if (turns) {
			end_polls(p);
			schedule_timeout_uninterruptible(1);
			begin_polls(p);
		}
	}
	swc_t_job_expect(p->job, 0);
	swc_t_job_check_sum(p->job);
}

static struct pollers *start_polls(struct kunit *test)
{
	struct pollers *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	p->process = kunit_kcalloc(test, 2, sizeof(*p->process), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p->process);
	p->c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	p->job = swc_t_job_new(test);
	swc_t_job_init(p->job, p->c, swc_t_ring, 1000, false);
	swc_t_job_run(p->job, 0, false);
	begin_polls(p);
	run_polled(p, false);
	/* Work items have done what they had begun before: now the queues are the pollers'. */
	look(p);
	look(p);
	p->found = 0;
	return p;
}

static void cq_poller_finds(struct kunit *test)
{
	struct pollers *p = start_polls(test);
	unsigned long start = jiffies;
	u32 i, rounds = 50, looks;

	for (i = 0; i < rounds; i++) {
		begin_waits(p);
		run_polled(p, false);
		end_waits(p);
	}
	looks = 1 + (jiffies - start) / HZ;
	/* Each rank has received at least one message. */
	KUNIT_EXPECT_GE(test, p->found, 2 * rounds);
	/* No event has come to another one, unless the watch has taken it back, which looks once a second. */
	KUNIT_EXPECT_LT(test, p->woken, rounds / 10 + 2 * looks);
	end_polls(p);
	swc_t_expect_credits(p->c);
	swc_t_comm_end(p->c);
}

/* Pollers come and go, and events find one, or none and wake a process. */
static void cq_poller_and_events(struct kunit *test)
{
	struct pollers *p = start_polls(test);
	u32 i;

	for (i = 0; i < 50; i++) {
		begin_waits(p);
		run_polled(p, true);
		end_waits(p);
	}
	end_polls(p);
	/* Now there are none. */
	for (i = 0; i < 10; i++)
		swc_t_job_run(p->job, i & 1, false);
	swc_t_expect_credits(p->c);
	swc_t_comm_end(p->c);
}

static u32 nreceived(struct swc_t_comm *c, u32 rank)
{
	return swc_rdma_conn(swc_t_only_conn(c, rank))->nreceived;
}

/* A poller that goes handles what has come since it looked. */
static void cq_poller_goes(struct kunit *test)
{
	struct pollers *p = start_polls(test);
	u32 i, r, before[2], wanted = 20, handled = 0;

	/* It may not have come yet. */
	for (i = 0; i < MOST_ROUNDS && handled < wanted; i++) {
		look(p);
		look(p);
		for (r = 0; r < 2; r++)
			KUNIT_EXPECT_EQ(test, swc_t_job_submit(p->job, r, false), 0);
		schedule_timeout_uninterruptible(1);
		for (r = 0; r < 2; r++)
			before[r] = nreceived(p->c, r);
		end_polls(p);
		for (r = 0; r < 2; r++)
			handled += nreceived(p->c, r) != before[r];
		swc_t_job_expect(p->job, 0);
		swc_t_job_check_sum(p->job);
		begin_polls(p);
	}
	KUNIT_EXPECT_GE(test, handled, wanted);
	end_polls(p);
	swc_t_expect_credits(p->c);
	swc_t_comm_end(p->c);
}

static void cq_second_poller(struct kunit *test)
{
	struct pollers *p = start_polls(test);
	struct swc_conn *conn = swc_t_only_conn(p->c, 0);

	KUNIT_EXPECT_NULL(test, swc_net_poll_begin(conn));
	end_polls(p);
	begin_polls(p);
	KUNIT_EXPECT_NULL(test, swc_net_poll_begin(conn));
	end_polls(p);
	swc_t_comm_end(p->c);
}

/* A work item takes what a poller does not handle, within about a second. */
static void cq_poller_stopped(struct kunit *test)
{
	struct pollers *p = start_polls(test);

	swc_t_job_run(p->job, 0, false);
	end_polls(p);
	swc_t_expect_credits(p->c);
	swc_t_comm_end(p->c);
}

/* Closing a connection does not wait for a poller, which finds nothing afterwards. */
static void cq_poller_closing(struct kunit *test)
{
	struct pollers *p = start_polls(test);

	swc_t_comm_end(p->c);
	p->found = 0;
	look(p);
	KUNIT_EXPECT_EQ(test, p->found, 0u);
	end_polls(p);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(cq_waiter),
	KUNIT_CASE(cq_poller),
	KUNIT_CASE(cq_deferred),
	KUNIT_CASE(cq_given),
	KUNIT_CASE_SLOW(cq_process_stopped),
	KUNIT_CASE_SLOW(cq_given_too_late),
	KUNIT_CASE_SLOW(cq_poller_finds),
	KUNIT_CASE(cq_poller_and_events),
	KUNIT_CASE(cq_poller_goes),
	KUNIT_CASE(cq_second_poller),
	KUNIT_CASE_SLOW(cq_poller_stopped),
	KUNIT_CASE_SLOW(cq_poller_closing),
	{}
};

struct kunit_suite swc_cq_suite = {
	.name = "swc_cq", .init = swc_t_net_init, .exit = swc_t_net_exit, .test_cases = cases,
};

/* ------------------------------------------------------------------ TCP: a connection is being closed */

/* Operations whose messages are more than anybody receives at once. */
#define MANY		32
#define MANY_BYTES	(MANY * SWC_T_PARTS * (SWC_HEADER + 8))

/* What waits in the socket for the one who receives. */
static u32 arrived(const struct swc_tcp_conn *conn)
{
	struct tcp_sock *tp = tcp_sk(conn->sock->sk);

	return READ_ONCE(tp->rcv_nxt) - READ_ONCE(tp->copied_seq);
}

/* As tcp/conn.c does it. */
static void set_detaching(struct swc_tcp_conn *conn, bool detaching)
{
	spin_lock(&conn->base.lock);
	conn->detaching = detaching;
	spin_unlock(&conn->base.lock);
}

/*
 * Close the connection under a process that receives from it, which waits for the socket, and then leaves
 * the rest of what has arrived to the work item. conn->rx_mutex is held, and released.
 */
static void stop_receiver(struct swc_tcp_conn *conn)
{
	struct sock *sk = conn->sock->sk;

	mutex_lock(&conn->tx_mutex);
	lock_sock(sk);
	mutex_unlock(&conn->rx_mutex);
	/* The process waits until that is released, so this is seen sooner or later. */
	while (!waitqueue_active(&sk->sk_lock.wq))
		schedule_timeout_uninterruptible(1);
	set_detaching(conn, true);
	swc_tcp_restore_callbacks(conn->sock, &conn->callbacks);
	/* On one CPU this thread comes before the work item then. */
	sched_set_fifo_low(current);
	release_sock(sk);
	mutex_unlock(&conn->tx_mutex);
	swc_tcp_rx_stop(conn);
	sched_set_normal(current, 0);
}

/* Return: true if more had arrived than was received. */
static bool close_once(struct swc_t_job *job, struct process *p, struct swc_tcp_conn *conn)
{
	struct swc_tcp_callbacks callbacks;
	struct kunit *test = job->c->test;
	u64 before, received;
	u32 i;

	swc_tcp_save_callbacks(conn->sock, &callbacks);
	mutex_lock(&conn->rx_mutex);
	before = conn->received;
	begin_wait(p, job->c, 1, false);
	for (i = 0; i < MANY; i++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(&job[i], 0, false), 0);
	while (arrived(conn) < MANY_BYTES)
		schedule_timeout_uninterruptible(1);
	stop_receiver(conn);
	received = conn->received;
	flush_work(&p->work);
	flush_delayed_work(&conn->rx_work);
	KUNIT_EXPECT_EQ(test, conn->received, received);

	/* It goes on as if it had not been closed. */
	mutex_lock(&conn->tx_mutex);
	set_detaching(conn, false);
	swc_tcp_set_callbacks(conn->sock, &callbacks, conn);
	mutex_unlock(&conn->tx_mutex);
	mod_delayed_work(swc_conn_wq(&conn->base), &conn->rx_work, 0);
	swc_conn_pump_later(&conn->base);
	for (i = 0; i < MANY; i++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(&job[i], 1, false), 0);
	for (i = 0; i < MANY; i++)
		swc_t_job_expect(&job[i], 0);
	swc_t_expect_sent(job, 0);
	process_work(&p->work);
	return received - before < MANY_BYTES;
}

/* When a connection has been closed nobody receives, neither a process nor whom it leaves the rest to. */
static void waiter_closing(struct kunit *test)
{
	struct swc_t_job *job = kunit_kcalloc(test, MANY, sizeof(*job), GFP_KERNEL);
	struct process *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	unsigned int bufs = swc_tcp_rx_bufs;
	struct swc_t_comm *c;
	bool left = false;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_ASSERT_NOT_NULL(test, job);
	/* No message waits for a credit. */
	swc_tcp_rx_bufs = 2 * MANY * SWC_T_PARTS;
	c = swc_t_comm_on(test, 2, SWC_T_NO_DEADLINE, &swc_t_two_nodes);
	swc_t_job_init(job, c, swc_t_send_parts, SWC_T_PARTS, false);
	/* It connects. */
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, swc_t_job_submit(job, i, false), 0);
	swc_t_job_expect(job, 0);
	for (i = 1; i < MANY; i++)
		job[i] = job[0];
	/* The watch, once a second, has the work item receive as well: then nothing may be left. */
	for (i = 0; i < 20 && !left; i++)
		left = close_once(job, p, swc_tcp_conn(swc_t_only_conn(c, 1)));
	KUNIT_EXPECT_TRUE(test, left);
	swc_t_comm_end(c);
	swc_tcp_rx_bufs = bufs;
}

/* The same processes receive from a socket. */
static struct kunit_case tcp_cases[] = {
	KUNIT_CASE(cq_given),
	KUNIT_CASE_SLOW(cq_process_stopped),
	KUNIT_CASE_SLOW(cq_given_too_late),
	KUNIT_CASE(waiter_closing),
	{}
};

struct kunit_suite swc_waiter_tcp_suite = {
	.name = "swc_waiter_tcp", .init = swc_t_tcp_init, .exit = swc_t_tcp_exit, .test_cases = tcp_cases,
};

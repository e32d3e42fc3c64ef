// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collecting completions with many threads: no completion is lost, and no thread whose request is
 * done stays asleep because another's is not. A queue under a mutex stands for the kernel. TAP on
 * stdout.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/priv.h"
#include "tap.h"

#define THREADS 4
#define ROUNDS 3000

/* The kernel: completions that have not been collected. */
struct kernel {
	struct swc_reaper reaper; /* first */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct swingcoll_req *completed[THREADS * 2];
	unsigned int n;
	bool broken;

	/* A collective: done for all when the last of THREADS has called it. */
	struct swingcoll_req *arrived[THREADS];
	unsigned int narrived;
};

static bool collect(struct swc_reaper *r)
{
	struct kernel *k = (struct kernel *)r;
	struct swingcoll_req *req[THREADS * 2];
	unsigned int n;

	pthread_mutex_lock(&k->lock);
	n = k->n;
	for (unsigned int i = 0; i < n; i++)
		req[i] = k->completed[i];
	k->n = 0;
	pthread_mutex_unlock(&k->lock);
	for (unsigned int i = 0; i < n; i++)
		swc_req_complete(req[i], 0, -1, 1);
	return n;
}

static int sleep_once(struct swc_reaper *r, unsigned int ms)
{
	struct kernel *k = (struct kernel *)r;
	int ret;

	(void)ms;
	pthread_mutex_lock(&k->lock);
	while (!k->n && !k->broken)
		pthread_cond_wait(&k->cond, &k->lock);
	ret = k->broken ? -EBADF : 0;
	pthread_mutex_unlock(&k->lock);
	return ret;
}

static void complete(struct kernel *k, struct swingcoll_req *req)
{
	k->completed[k->n++] = req;
	pthread_cond_broadcast(&k->cond);
}

static void setup(struct kernel *k)
{
	*k = (struct kernel){ .reaper.collect = collect, .reaper.sleep = sleep_once };
	swc_reaper_init(&k->reaper);
	pthread_mutex_init(&k->lock, NULL);
	pthread_cond_init(&k->cond, NULL);
}

/*
 * All threads take part in collectives, which complete one after the other and in various orders.
 */
static void *rank_main(void *arg)
{
	struct kernel *k = arg;
	struct swingcoll_req req;

	for (int i = 0; i < ROUNDS; i++) {
		req.done = 0;
		pthread_mutex_lock(&k->lock);
		k->arrived[k->narrived++] = &req;
		if (k->narrived == THREADS) {
			for (int t = 0; t < THREADS; t++)
				complete(k, k->arrived[(t + i) % THREADS]);
			k->narrived = 0;
		}
		pthread_mutex_unlock(&k->lock);
		if (i % 3 == 0)
			swc_reaper_poll(&k->reaper);
		if (swc_reaper_wait(&k->reaper, &req, NULL))
			return (void *)1;
	}
	return NULL;
}

static void test_collectives(void)
{
	pthread_t thread[THREADS];
	struct kernel k;
	bool bad = false;
	void *ret;

	setup(&k);
	for (int t = 0; t < THREADS; t++)
		pthread_create(&thread[t], NULL, rank_main, &k);
	for (int t = 0; t < THREADS; t++) {
		pthread_join(thread[t], &ret);
		bad |= ret != NULL;
	}
	ok(!bad, "threads as ranks: all requests complete");
}

struct waiter {
	struct kernel *k;
	struct swingcoll_req req;
	int ret;
};

static void *waiter_main(void *arg)
{
	struct waiter *w = arg;

	w->ret = swc_reaper_wait(&w->k->reaper, &w->req, NULL);
	return NULL;
}

/*
 * The first thread stays the reaper. The second one must notice its completion, because the first
 * one's completion follows only then.
 */
static void test_dependence(void)
{
	struct kernel k;
	struct waiter a = { .k = &k }, b = { .k = &k };
	pthread_t ta, tb;

	setup(&k);
	pthread_create(&ta, NULL, waiter_main, &a);
	usleep(20000);
	pthread_create(&tb, NULL, waiter_main, &b);
	usleep(20000);
	pthread_mutex_lock(&k.lock);
	complete(&k, &b.req);
	pthread_mutex_unlock(&k.lock);
	pthread_join(tb, NULL);
	pthread_mutex_lock(&k.lock);
	complete(&k, &a.req);
	pthread_mutex_unlock(&k.lock);
	pthread_join(ta, NULL);
	ok(!a.ret && !b.ret, "a waiter is woken while another thread stays the reaper");
}

static void test_broken(void)
{
	struct kernel k;
	struct waiter a = { .k = &k }, b = { .k = &k };
	pthread_t ta, tb;

	setup(&k);
	pthread_create(&ta, NULL, waiter_main, &a);
	pthread_create(&tb, NULL, waiter_main, &b);
	usleep(20000);
	pthread_mutex_lock(&k.lock);
	k.broken = true;
	pthread_cond_broadcast(&k.cond);
	pthread_mutex_unlock(&k.lock);
	pthread_join(ta, NULL);
	pthread_join(tb, NULL);
	ok(a.ret == -EBADF && b.ret == -EBADF, "a final error ends all waits");
	swc_reaper_poll(&k.reaper);
	ok(swc_reaper_wait(&k.reaper, &a.req, NULL) == -EBADF, "a final error stays");
}

int main(void)
{
	printf("TAP version 13\n");
	alarm(120);
	test_collectives();
	test_dependence();
	test_broken();
	return done();
}

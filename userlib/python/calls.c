// SPDX-License-Identifier: LGPL-2.1-or-later
/* Calls of the library that record their outcome before they return to the interpreter: see calls.h. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include "calls.h"

/* ---- forks ---- */

static unsigned int forks;

static void in_child(void)
{
	forks++;
}

static void __attribute__((constructor)) watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

unsigned int swc_py_generation(void)
{
	return forks;
}

/* ---- requests ---- */

static void finish(struct swc_py_request *r, int error, int culprit)
{
	r->req = NULL;
	r->error = error;
	r->culprit = culprit;
	if (!error && r->move_bytes)
		memmove(r->move_to, r->move_from, r->move_bytes);
}

int swc_py_wait(struct swc_py_request *r)
{
	struct swingcoll_result result = { .culprit = -1 };
	int error;

	if (r->generation != forks) {
		if (r->req)
			finish(r, -EBADF, -1);
		return r->error;
	}
	pthread_mutex_lock(&r->lock);
	if (r->req) {
		error = swingcoll_wait(r->req, &result);
		finish(r, error, result.culprit);
	}
	error = r->error;
	pthread_mutex_unlock(&r->lock);
	return error;
}

int swc_py_test(struct swc_py_request *r)
{
	struct swingcoll_result result = { .culprit = -1 };
	int error;

	if (r->generation != forks)
		return swc_py_wait(r);
	if (pthread_mutex_trylock(&r->lock))
		return -EINPROGRESS;
	error = r->error;
	if (r->req) {
		error = swingcoll_test(r->req, &result);
		if (error != -EINPROGRESS)
			finish(r, error, result.culprit);
	}
	pthread_mutex_unlock(&r->lock);
	return error;
}

/* ---- partitioned ---- */

int swc_py_pstart(struct swc_py_partitioned *p)
{
	int ret;

	if (p->generation != forks)
		return -EBADF;
	/* A thread that marks a partition of the new round waits until it is set here. */
	pthread_mutex_lock(&p->lock);
	ret = swingcoll_pstart(p->p);
	if (!ret) {
		memset(p->lacks, 1, (size_t)p->partitions);
		p->unmarked = p->partitions;
	}
	pthread_mutex_unlock(&p->lock);
	return ret;
}

int swc_py_pready(struct swc_py_partitioned *p, int partition)
{
	int ret = swingcoll_pready(p->p, partition);

	if (ret)
		return ret;
	pthread_mutex_lock(&p->lock);
	p->unmarked -= p->lacks[partition];
	p->lacks[partition] = 0;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

/* Whether there is something to wait for that only this rank's marks can bring about. */
static bool lacks(const struct swc_py_partitioned *p, int partition)
{
	const unsigned char *first = NULL;

	if (partition == SWINGCOLL_ALL_PARTITIONS)
		first = memchr(p->lacks, 1, (size_t)p->partitions);
	else if (partition >= 0 && partition < p->partitions && p->lacks[partition])
		first = p->lacks + partition;
	return first && !swingcoll_parrived(p->p, (int)(first - p->lacks));
}

int swc_py_pmarked(struct swc_py_partitioned *p, int partition, int timeout_ms)
{
	struct timespec until;
	int ret;

	if (p->generation != forks)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += timeout_ms * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&p->lock);
	if (lacks(p, partition))
		pthread_cond_clockwait(&p->changed, &p->lock, CLOCK_MONOTONIC, &until);
	ret = !lacks(p, partition);
	pthread_mutex_unlock(&p->lock);
	return ret;
}

int swc_py_pfree(struct swc_py_partitioned *p)
{
	bool inherited = p->generation != forks;
	int ret;

	if (!inherited)
		pthread_mutex_lock(&p->lock);
	ret = swingcoll_pfree(p->p);
	if (ret != -EBUSY) {
		p->p = NULL;
		p->unmarked = 0;
		memset(p->lacks, 0, (size_t)p->partitions);
	}
	if (inherited)
		return ret;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return ret;
}

/* ---- communicators ---- */

void swc_py_destroy(struct swingcoll_comm **comm)
{
	swingcoll_comm_destroy(__atomic_exchange_n(comm, NULL, __ATOMIC_ACQ_REL));
}

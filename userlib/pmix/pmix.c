// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bootstrap by PMIx: each rank puts its data under a key, a fence distributes all data, and then
 * each rank gets the others'. Keys are numbered through the life of the process, as a key can be
 * put only once.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pmix.h>

#include "swingcoll_pmix.h"

#define DEFAULT_CREATION_MS 30000 /* as swingcoll.h says */

#define PUBLIC __attribute__((visibility("default")))

struct by_pmix {
	struct swingcoll_bootstrap boot;
	pmix_proc_t me;
	uint32_t timeout_ms;
};

static atomic_uint exchanges;
static atomic_bool abandoned; /* a fence was given up: later ones might meet it on other ranks */

static int failed(const char *what, pmix_status_t status)
{
	int error = status == PMIX_ERR_TIMEOUT ? -ETIMEDOUT
		    : status == PMIX_ERR_NOMEM ? -ENOMEM
					       : -EIO;

	return swingcoll_bootstrap_fail(error, "%s: %s", what, PMIx_Error_string(status));
}

static int put(const char *key, const void *mine, size_t bytes)
{
	pmix_value_t v;
	pmix_status_t ret;

	memset(&v, 0, sizeof(v));
	v.type = PMIX_BYTE_OBJECT;
	v.data.bo.bytes = (char *)mine;
	v.data.bo.size = bytes;
	ret = PMIx_Put(PMIX_GLOBAL, key, &v);
	if (ret == PMIX_SUCCESS)
		ret = PMIx_Commit();
	return ret == PMIX_SUCCESS ? 0 : failed("PMIx_Put", ret);
}

/*
 * A fence. It lives until both its caller and PMIx are done with it, as no fence can be cancelled.
 */
struct fence {
	pthread_mutex_t lock;
	pthread_cond_t over;
	pmix_info_t info[2];
	pmix_proc_t all;
	pmix_status_t status;
	bool done;
	bool left; /* by the caller: PMIx frees it */
};

static void fence_free(struct fence *f)
{
	pthread_cond_destroy(&f->over);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* Called by a thread of PMIx. */
static void fence_done(pmix_status_t status, void *arg)
{
	struct fence *f = arg;
	bool left;

	pthread_mutex_lock(&f->lock);
	f->status = status;
	f->done = true;
	left = f->left;
	pthread_cond_signal(&f->over);
	pthread_mutex_unlock(&f->lock);
	if (left)
		fence_free(f);
}

static struct fence *fence_new(const struct by_pmix *p)
{
	struct fence *f = calloc(1, sizeof(*f));
	pthread_condattr_t attr;

	if (!f)
		return NULL;
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->over, &attr);
	pthread_condattr_destroy(&attr);
	f->all = p->me;
	f->all.rank = PMIX_RANK_WILDCARD;
	f->info[0] = (pmix_info_t){
		.key = PMIX_COLLECT_DATA,
		.value = { .type = PMIX_BOOL, .data.flag = true },
	};
	f->info[1] = (pmix_info_t){
		.key = PMIX_TIMEOUT,
		.value = { .type = PMIX_INT, .data.integer = (int)(p->timeout_ms / 1000) },
	};
	return f;
}

/* 0, or -ETIMEDOUT: then the fence belongs to PMIx. */
static int fence_wait(struct fence *f, uint32_t timeout_ms)
{
	struct timespec until;
	int ret = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&f->lock);
	while (!f->done && !ret)
		ret = pthread_cond_timedwait(&f->over, &f->lock, &until);
	f->left = !f->done;
	ret = f->left ? -ETIMEDOUT : 0;
	pthread_mutex_unlock(&f->lock);
	return ret;
}

static int out_of_time(const struct by_pmix *p)
{
	/* The launcher may count this rank as arrived at the next fence. */
	atomic_store(&abandoned, true);
	return swingcoll_bootstrap_fail(
		-ETIMEDOUT,
		"not all %d ranks arrived within %u s: check that all "
		"ranks create this communicator, or raise SWINGCOLL_BOOT_TIMEOUT",
		p->boot.nranks, p->timeout_ms / 1000);
}

/* Waits with a timeout of its own, as not all launchers honour PMIX_TIMEOUT (Slurm's does not). */
static int fence(const struct by_pmix *p)
{
	struct fence *f;
	pmix_status_t status;

	if (atomic_load(&abandoned))
		return swingcoll_bootstrap_fail(
			-ECONNABORTED, "an earlier exchange by PMIx timed out in this process and "
				       "cannot be cancelled: start the job again");
	f = fence_new(p);
	if (!f)
		return swingcoll_bootstrap_fail(-ENOMEM, "out of memory");
	status = PMIx_Fence_nb(&f->all, 1, f->info, 2, fence_done, f);
	if (status == PMIX_SUCCESS) {
		if (fence_wait(f, p->timeout_ms))
			return out_of_time(p);
		status = f->status;
	} else if (status == PMIX_OPERATION_SUCCEEDED) {
		status = PMIX_SUCCESS;
	}
	fence_free(f);
	if (status == PMIX_ERR_TIMEOUT)
		return out_of_time(p);
	return status == PMIX_SUCCESS ? 0 : failed("PMIx_Fence_nb", status);
}

static int get(const struct by_pmix *p, const char *key, int rank, void *to, size_t bytes)
{
	pmix_value_t *v = NULL;
	pmix_proc_t from = p->me;
	pmix_status_t ret;

	from.rank = (pmix_rank_t)rank;
	ret = PMIx_Get(&from, key, NULL, 0, &v);
	if (ret != PMIX_SUCCESS)
		return failed("PMIx_Get", ret);
	if (v->type == PMIX_BYTE_OBJECT && v->data.bo.size == bytes)
		memcpy(to, v->data.bo.bytes, bytes);
	else
		ret = PMIX_ERROR;
	PMIX_VALUE_RELEASE(v);
	if (ret == PMIX_SUCCESS)
		return 0;
	return swingcoll_bootstrap_fail(
		-EPROTO, "rank %d sent data of another size: run the same program on all ranks",
		rank);
}

static int allgather(void *arg, const void *mine, void *all, size_t bytes)
{
	struct by_pmix *p = arg;
	char key[64];
	int ret;

	snprintf(key, sizeof(key), "swingcoll.%u", atomic_fetch_add(&exchanges, 1));
	ret = put(key, mine, bytes);
	if (!ret)
		ret = fence(p);
	for (int i = 0; !ret && i < p->boot.nranks; i++) {
		char *to = (char *)all + bytes * (size_t)i;

		if (i == p->boot.rank)
			memcpy(to, mine, bytes);
		else
			ret = get(p, key, i, to, bytes);
	}
	return ret;
}

static void release(struct swingcoll_bootstrap *boot)
{
	PMIx_Finalize(NULL, 0);
	free(boot->arg);
}

static int find_size(struct by_pmix *p)
{
	pmix_value_t *v = NULL;
	pmix_proc_t job = p->me;
	pmix_status_t ret;

	job.rank = PMIX_RANK_WILDCARD;
	ret = PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &v);
	if (ret != PMIX_SUCCESS)
		return failed("PMIx_Get of the job's size", ret);
	p->boot.nranks = v->type == PMIX_UINT32 ? (int)v->data.uint32 : 0;
	PMIX_VALUE_RELEASE(v);
	return p->boot.nranks > 0
		       ? 0
		       : swingcoll_bootstrap_fail(
				 -EPROTO,
				 "PMIx does not know the size of the job: start it with another launcher, or set SWINGCOLL_ROOT=HOST:PORT");
}

PUBLIC int swingcoll_bootstrap_pmix(struct swingcoll_bootstrap **boot)
{
	struct by_pmix *p = calloc(1, sizeof(*p));
	pmix_status_t status;
	int ret;

	*boot = NULL;
	if (!p)
		return swingcoll_bootstrap_fail(-ENOMEM, "out of memory");
	status = PMIx_Init(&p->me, NULL, 0);
	if (status != PMIX_SUCCESS) {
		free(p);
		return failed("PMIx_Init", status);
	}
	p->boot.rank = (int)p->me.rank;
	p->boot.allgather = allgather;
	p->boot.arg = p;
	p->boot.release = release;
	ret = swingcoll_bootstrap_timeout(&p->timeout_ms);
	if (!ret)
		ret = find_size(p);
	if (ret) {
		release(&p->boot);
		return ret;
	}
	*boot = &p->boot;
	return swingcoll_bootstrap_fail(0, "%s", "");
}

PUBLIC void swingcoll_bootstrap_pmix_min_timeout(struct swingcoll_bootstrap *boot,
						 uint32_t timeout_ms)
{
	struct by_pmix *p = boot->arg;

	if (boot->allgather == allgather && p->timeout_ms < timeout_ms)
		p->timeout_ms = timeout_ms;
}

PUBLIC int swingcoll_comm_create_pmix(struct swingcoll_comm **comm,
				      const struct swingcoll_comm_opts *opts)
{
	uint32_t timeout_ms = opts && opts->timeout_ms ? opts->timeout_ms : DEFAULT_CREATION_MS;
	struct swingcoll_bootstrap *boot;
	int ret;

	if (!comm)
		return swingcoll_bootstrap_fail(-EINVAL, "comm is NULL");
	*comm = NULL;
	ret = swingcoll_bootstrap_pmix(&boot);
	if (ret)
		return ret;
	/* Creation may take so long on one rank, and the others wait for it in the last exchange. */
	swingcoll_bootstrap_pmix_min_timeout(boot, timeout_ms + 5000);
	ret = swingcoll_comm_create_from(comm, boot, opts);
	swingcoll_bootstrap_free(boot);
	return ret;
}

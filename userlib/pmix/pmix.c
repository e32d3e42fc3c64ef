// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bootstrap by PMIx: each rank puts what it has under a key, a fence hands everything round, and then each
 * gets the others'. Keys are numbered through the life of the process, as a key can be put only once.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pmix.h>

#include "swingcoll_pmix.h"

#define PUBLIC __attribute__((visibility("default")))

struct by_pmix {
	struct swingcoll_bootstrap boot;
	pmix_proc_t me;
	uint32_t timeout_ms;
};

static atomic_uint exchanges;

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

static int fence(const struct by_pmix *p)
{
	pmix_info_t info[2];
	pmix_proc_t all;
	pmix_status_t ret;

	memset(&all, 0, sizeof(all));
	memcpy(all.nspace, p->me.nspace, sizeof(all.nspace));
	all.rank = PMIX_RANK_WILDCARD;
	memset(info, 0, sizeof(info));
	snprintf(info[0].key, sizeof(info[0].key), "%s", PMIX_COLLECT_DATA);
	info[0].value.type = PMIX_BOOL;
	info[0].value.data.flag = true;
	snprintf(info[1].key, sizeof(info[1].key), "%s", PMIX_TIMEOUT);
	info[1].value.type = PMIX_INT;
	info[1].value.data.integer = (int)(p->timeout_ms / 1000);
	ret = PMIx_Fence(&all, 1, info, 2);
	if (ret == PMIX_ERR_TIMEOUT)
		return swingcoll_bootstrap_fail(
			-ETIMEDOUT,
			"not all %d ranks came within %u s: do all make this "
			"communicator? SWINGCOLL_BOOT_TIMEOUT gives them longer",
			p->boot.nranks, p->timeout_ms / 1000);
	return ret == PMIX_SUCCESS ? 0 : failed("PMIx_Fence", ret);
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
		-EPROTO, "rank %d exchanges something else: do all ranks run the same program?",
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
	return p->boot.nranks > 0 ? 0 : swingcoll_bootstrap_fail(-EPROTO, "PMIx knows no job size");
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
	if (ret)
		release(&p->boot);
	else
		*boot = &p->boot;
	return ret;
}

PUBLIC int swingcoll_comm_create_pmix(struct swingcoll_comm **comm,
				      const struct swingcoll_comm_opts *opts)
{
	struct swingcoll_bootstrap *boot;
	int ret;

	if (!comm)
		return swingcoll_bootstrap_fail(-EINVAL, "an argument is wrong");
	*comm = NULL;
	ret = swingcoll_bootstrap_pmix(&boot);
	if (ret)
		return ret;
	ret = swingcoll_comm_create_from(comm, boot, opts);
	swingcoll_bootstrap_free(boot);
	return ret;
}

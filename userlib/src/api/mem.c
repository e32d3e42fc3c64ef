// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory registered by the application: a process-wide list of ranges with their region handles,
 * which descriptors then name instead of addresses. Under its own lock, a leaf; read without the
 * lock as long as nothing is registered. The kernel registers all other memory on first use.
 */
#include <errno.h>
#include <stdlib.h>

#include "src/priv.h"

struct range {
	struct range *next;
	uintptr_t addr;
	uint64_t bytes;
	uint32_t region;
	struct swc_context *ctx; /* reference */
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct range *ranges;

/*
 * The child of a fork has no registrations. It is the only thread, so the lock can be made anew, in
 * whatever state another thread of the parent left it. The list's memory is abandoned, for it may
 * be half changed.
 */
static void in_child(void)
{
	lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	ranges = NULL;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

SWC_PUBLIC int swingcoll_mem_register(void *addr, size_t bytes)
{
	struct swc_mem_reg reg = { .addr = (uintptr_t)addr, .bytes = bytes };
	struct range *r;
	int ret;

	if (!addr || !bytes)
		return -EINVAL;
	pthread_once(&once, watch_forks);
	r = malloc(sizeof(*r));
	if (!r)
		return -ENOMEM;
	ret = swc_context_get(&r->ctx);
	if (ret)
		goto err_free;
	ret = swc_context_ioctl(r->ctx, SWC_IOC_MEM_REG, &reg);
	if (ret)
		goto err_put;
	r->addr = (uintptr_t)addr;
	r->bytes = bytes;
	r->region = reg.region;
	pthread_rwlock_wrlock(&lock);
	r->next = ranges;
	__atomic_store_n(&ranges, r, __ATOMIC_RELEASE);
	pthread_rwlock_unlock(&lock);
	return 0;

err_put:
	swc_context_put(r->ctx);
err_free:
	free(r);
	return ret;
}

SWC_PUBLIC int swingcoll_mem_unregister(void *addr)
{
	struct swc_mem_unreg unreg = { 0 };
	struct range *r, **prev;
	int ret;

	pthread_rwlock_wrlock(&lock);
	for (prev = &ranges; (r = *prev); prev = &r->next)
		if (r->addr == (uintptr_t)addr)
			break;
	if (r)
		__atomic_store_n(prev, r->next, __ATOMIC_RELEASE);
	pthread_rwlock_unlock(&lock);
	if (!r)
		return -EINVAL;
	unreg.region = r->region;
	ret = swc_context_ioctl(r->ctx, SWC_IOC_MEM_UNREG, &unreg);
	swc_context_put(r->ctx);
	free(r);
	return ret;
}

/* The registration that holds all of a buffer. Under the lock. */
static const struct range *find(const void *p, uint64_t bytes)
{
	uintptr_t a = (uintptr_t)p;

	for (const struct range *r = ranges; r; r = r->next)
		if (a >= r->addr && a - r->addr <= r->bytes && bytes <= r->bytes - (a - r->addr))
			return r;
	return NULL;
}

void swc_mem_resolve(struct swc_desc *desc, const void *send, uint64_t send_bytes, const void *recv,
		     uint64_t recv_bytes)
{
	const struct range *r;

	desc->send = (uintptr_t)send;
	desc->recv = (uintptr_t)recv;
	if (!__atomic_load_n(&ranges, __ATOMIC_ACQUIRE))
		return;
	pthread_rwlock_rdlock(&lock);
	r = send ? find(send, send_bytes) : NULL;
	if (r) {
		desc->send_region = r->region;
		desc->send -= r->addr;
	}
	r = recv ? find(recv, recv_bytes) : NULL;
	if (r) {
		desc->recv_region = r->region;
		desc->recv -= r->addr;
	}
	pthread_rwlock_unlock(&lock);
}

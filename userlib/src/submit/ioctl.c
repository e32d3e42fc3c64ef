// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Submission by ioctl, where io_uring is not allowed or not wanted: one system call to submit, and
 * one to sleep on the completion ring that the kernel maps into the process. The ring belongs to
 * the context, so all communicators that submit in this way share it and one reaper.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "src/priv.h"

/*
 * Made by the first communicator that needs it, freed with the last. The lock guards @refs and
 * ctx->ring.
 */
struct swc_ring {
	struct swc_reaper reaper; /* first */
	struct swc_context *ctx;  /* outlives this: every user holds a reference */
	unsigned int refs;
	const struct swc_ring_header *shared;
	size_t shared_bytes;
	struct swc_ring_user *user;
	uint32_t entries;
	uint32_t head; /* reaper only */
	uint32_t seen; /* tail when last read; reaper only */
};

#define USER_BYTES 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool collect(struct swc_reaper *r)
{
	struct swc_ring *ring = (struct swc_ring *)r;
	const struct swc_completion *entries = (const void *)((const char *)ring->shared +
							      SWC_RING_ENTRIES_OFFSET);

	/* Pairs with the kernel's release: the entries before it are written. */
	ring->seen = __atomic_load_n(&ring->shared->tail, __ATOMIC_ACQUIRE);
	if (ring->head == ring->seen)
		return false;
	while (ring->head != ring->seen) {
		const struct swc_completion *c = &entries[ring->head & (ring->entries - 1)];
		struct swingcoll_req *req = (void *)(uintptr_t)c->user_data;

		swc_req_complete(req, c->res, c->culprit, c->res ? 0 : c->wait_ns + c->run_ns);
		ring->head++;
	}
	__atomic_store_n(&ring->user->head, ring->head, __ATOMIC_RELEASE);
	return true;
}

static int sleep_once(struct swc_reaper *r, unsigned int ms)
{
	struct swc_ring *ring = (struct swc_ring *)r;
	struct swc_ring_wait wait = { .tail = ring->seen, .timeout_ms = ms };
	int ret = swc_context_ioctl(ring->ctx, SWC_IOC_RING_WAIT, &wait);

	return ret == -ETIME ? -EINTR : ret;
}

static void ring_free(struct swc_ring *ring)
{
	swc_context_munmap((void *)ring->shared, ring->shared_bytes);
	swc_context_munmap(ring->user, USER_BYTES);
	free(ring);
}

static struct swc_ring *ring_create(struct swc_context *ctx)
{
	struct swc_ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	ring->ctx = ctx;
	ring->entries = ctx->info.ring_entries;
	ring->shared_bytes = SWC_RING_ENTRIES_OFFSET +
			     ring->entries * sizeof(struct swc_completion);
	ring->shared_bytes = (ring->shared_bytes + 4095) / 4096 * 4096;
	ring->shared = swc_context_mmap(ctx, SWC_MMAP_RING, ring->shared_bytes, false);
	ring->user = swc_context_mmap(ctx, SWC_MMAP_RING_USER, USER_BYTES, true);
	if (!ring->shared || !ring->user) {
		ring_free(ring);
		return NULL;
	}
	/* An earlier user of the context may have moved the head. */
	ring->head = ring->user->head;
	swc_reaper_init(&ring->reaper);
	ring->reaper.collect = collect;
	ring->reaper.sleep = sleep_once;
	return ring;
}

static int ioctl_open(struct swingcoll_comm *comm)
{
	struct swc_context *ctx = comm->ctx;
	int ret = 0;

	pthread_mutex_lock(&lock);
	if (!ctx->ring)
		ctx->ring = ring_create(ctx);
	if (ctx->ring) {
		ctx->ring->refs++;
		comm->submitter = ctx->ring;
		comm->reaper = &ctx->ring->reaper;
	} else {
		ret = -ENOMEM;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

static void ioctl_close(struct swingcoll_comm *comm)
{
	struct swc_ring *ring = comm->submitter;

	/*
	 * In the child of a fork the mappings do not exist, and the lock may be held by a thread
	 * that does not exist.
	 */
	if (comm->forked)
		return;
	pthread_mutex_lock(&lock);
	if (!--ring->refs) {
		ring->ctx->ring = NULL;
		swc_reaper_destroy(&ring->reaper);
		ring_free(ring);
	}
	pthread_mutex_unlock(&lock);
}

static int ioctl_queue(struct swingcoll_comm *comm, const struct swc_desc *desc,
		       struct swingcoll_req *req)
{
	struct swc_ring *ring = comm->submitter;
	struct swc_desc d = *desc;
	int ret;

	d.user_data = (uintptr_t)req;
	for (;;) {
		ret = swc_context_ioctl(comm->ctx, SWC_IOC_SUBMIT, &d);
		if (ret != -EBUSY)
			return ret;
		/*
		 * The completion ring is full: collect what has arrived. Operations in flight end
		 * by their deadline.
		 */
		swc_reaper_poll(&ring->reaper);
		sched_yield();
	}
}

static void ioctl_forked(struct swingcoll_comm *comm)
{
	comm->ctx->ring = NULL;
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

const struct swc_submit_ops swc_submit_ioctl = {
	.name = "ioctl",
	.open = ioctl_open,
	.close = ioctl_close,
	.queue = ioctl_queue,
	.forked = ioctl_forked,
};

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Partitioned collectives: the producer's side of struct swc_progress (see linux/swingcoll.h). The
 * kernel runs the partitions.
 */
#include <errno.h>
#include <stdlib.h>

#include "kmod/core/blocks.h"
#include "src/priv.h"

/**
 * struct swingcoll_partitioned - a partitioned collective of this rank
 *
 * @handle: of the kernel's object
 * @n: number of partitions
 * @shared, @queue, @done: the mapping, of @bytes
 * @region: regions of the send and the receive buffer that were registered for it; 0: none
 */
struct swingcoll_partitioned {
	struct swingcoll_comm *comm;
	uint32_t handle;
	uint32_t n;
	uint64_t bytes;
	struct swc_progress *shared;
	uint32_t *queue;
	const uint32_t *done;
	uint32_t region[2];
};

static int call(const struct swingcoll_partitioned *p, unsigned long cmd, uint32_t partition)
{
	struct swc_partitioned_ref ref = { .handle = p->handle, .partition = partition };

	return swc_context_ioctl(p->comm->ctx, cmd, &ref);
}

/* ---- making ---- */

/* Register a buffer, unless a registration holds it already. */
static int pin(struct swingcoll_partitioned *p, int which, __u64 *addr, uint64_t bytes,
	       uint32_t *region)
{
	struct swc_mem_reg reg = { .addr = *addr, .bytes = bytes };
	int ret;

	if (*region || !bytes)
		return 0;
	ret = swc_context_ioctl(p->comm->ctx, SWC_IOC_MEM_REG, &reg);
	if (ret)
		return ret;
	p->region[which] = *region = reg.region;
	*addr = 0;
	return 0;
}

static void unpin(const struct swingcoll_partitioned *p)
{
	for (int i = 0; i < 2; i++) {
		struct swc_mem_unreg unreg = { .region = p->region[i] };

		if (unreg.region)
			swc_context_ioctl(p->comm->ctx, SWC_IOC_MEM_UNREG, &unreg);
	}
}

/*
 * Check the buffers of all partitions together: disjoint, or the same memory if the collective
 * allows that.
 */
static int check_whole(const struct swc_coll_op *op, const struct swingcoll_call *c, uint32_t n)
{
	uintptr_t s = (uintptr_t)c->send, r = (uintptr_t)c->recv;

	if (op->send_bytes > SWC_MAX_VECTOR_BYTES / n || op->recv_bytes > SWC_MAX_VECTOR_BYTES / n)
		return -EOVERFLOW;
	if (s >= r + n * op->recv_bytes || r >= s + n * op->send_bytes)
		return 0;
	return s == r && c->coll == SWINGCOLL_ALLREDUCE ? 0 : -EINVAL;
}

static int create_in_kernel(struct swingcoll_partitioned *p, const struct swingcoll_call *c,
			    struct swc_coll_op *op)
{
	struct swc_partitioned_init init = { .partitions = p->n,
					     .send_stride = op->send_bytes,
					     .recv_stride = op->recv_bytes };
	int ret;

	swc_mem_resolve(&op->desc, op->send_bytes ? c->send : NULL, p->n * op->send_bytes,
			op->recv_bytes ? c->recv : NULL, p->n * op->recv_bytes);
	ret = pin(p, 0, &op->desc.send, p->n * op->send_bytes, &op->desc.send_region);
	if (!ret && op->variant == SWC_IN_PLACE) {
		op->desc.recv = op->desc.send;
		op->desc.recv_region = op->desc.send_region;
	} else if (!ret) {
		ret = pin(p, 1, &op->desc.recv, p->n * op->recv_bytes, &op->desc.recv_region);
	}
	if (ret)
		return ret;
	init.desc = op->desc;
	ret = swc_context_ioctl(p->comm->ctx, SWC_IOC_PARTITIONED_INIT, &init);
	if (ret)
		return ret;
	p->handle = init.handle;
	p->bytes = init.map_bytes;
	p->shared = swc_context_mmap(p->comm->ctx, SWC_MMAP_PROGRESS(p->handle), p->bytes, true);
	if (!p->shared) {
		call(p, SWC_IOC_PARTITIONED_FREE, 0);
		return -ENOMEM;
	}
	p->queue = (uint32_t *)((char *)p->shared + p->shared->queue);
	p->done = (const uint32_t *)((char *)p->shared + p->shared->done);
	return 0;
}

static int init(struct swingcoll_comm *comm, const struct swingcoll_call *c, int partitions,
		struct swingcoll_partitioned **out)
{
	struct swingcoll_partitioned *p;
	struct swc_coll_op op;
	int ret;

	if (!out)
		return -EINVAL;
	*out = NULL;
	if (partitions < 1 || partitions > SWC_MAX_PARTITIONS)
		return -EINVAL;
	ret = swc_coll_prepare(comm, c, &op);
	if (!ret)
		ret = check_whole(&op, c, (uint32_t)partitions);
	if (ret)
		return ret;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->comm = comm;
	p->n = (uint32_t)partitions;
	pthread_mutex_lock(&comm->order);
	ret = swc_plans_get(comm, &op.desc, &op.variant, op.bytes);
	if (!ret)
		ret = create_in_kernel(p, c, &op);
	pthread_mutex_unlock(&comm->order);
	if (ret) {
		unpin(p);
		free(p);
		return ret;
	}
	*out = p;
	return 0;
}

#define CALL(k, s, r, n, t, o)                                                                     \
	(&(const struct swingcoll_call){ .coll = SWINGCOLL_##k,                                    \
					 .dtype = (t),                                             \
					 .op = (o),                                                \
					 .send = (s),                                              \
					 .recv = (r),                                              \
					 .count = (n) })

SWC_PUBLIC int swingcoll_pallreduce_init(const void *send, void *recv, int partitions, size_t count,
					 enum swingcoll_dtype dtype, enum swingcoll_redop op,
					 struct swingcoll_comm *comm,
					 struct swingcoll_partitioned **p)
{
	return init(comm, CALL(ALLREDUCE, send, recv, count, dtype, op), partitions, p);
}

SWC_PUBLIC int swingcoll_preduce_scatter_init(const void *send, void *recv, int partitions,
					      size_t count, enum swingcoll_dtype dtype,
					      enum swingcoll_redop op, struct swingcoll_comm *comm,
					      struct swingcoll_partitioned **p)
{
	return init(comm, CALL(REDUCE_SCATTER, send, recv, count, dtype, op), partitions, p);
}

SWC_PUBLIC int swingcoll_pallgather_init(const void *send, void *recv, int partitions, size_t count,
					 enum swingcoll_dtype dtype, struct swingcoll_comm *comm,
					 struct swingcoll_partitioned **p)
{
	return init(comm, CALL(ALLGATHER, send, recv, count, dtype, 0), partitions, p);
}

SWC_PUBLIC int swingcoll_pfree(struct swingcoll_partitioned *p)
{
	int ret;

	if (!p)
		return 0;
	if (!p->comm->forked) {
		ret = call(p, SWC_IOC_PARTITIONED_FREE, 0);
		if (ret)
			return ret;
		unpin(p);
		/* A child of a fork does not have it, and may have something else there. */
		swc_context_munmap(p->shared, p->bytes);
	}
	free(p);
	return 0;
}

/* ---- rounds ---- */

/*
 * 0 if a round has begun and has this partition. A child of a fork does not have the shared memory.
 */
static int check(const struct swingcoll_partitioned *p, int partition)
{
	if (!p)
		return -EINVAL;
	if (p->comm->forked)
		return -EBADF;
	return (uint32_t)partition >= p->n || !p->shared->round ? -EINVAL : 0;
}

SWC_PUBLIC int swingcoll_pstart(struct swingcoll_partitioned *p)
{
	int ret;

	if (!p)
		return -EINVAL;
	if (p->comm->forked)
		return -EBADF;
	pthread_mutex_lock(&p->comm->order);
	/* The kernel must have the operations that were called before. */
	ret = swc_reaper_push(p->comm->reaper);
	if (!ret)
		ret = swc_slots_may_pass(&p->comm->slots);
	if (!ret)
		ret = call(p, SWC_IOC_PARTITIONED_START, 0);
	if (!ret)
		swc_slots_pass(&p->comm->slots);
	pthread_mutex_unlock(&p->comm->order);
	return ret;
}

SWC_PUBLIC int swingcoll_pready(struct swingcoll_partitioned *p, int partition)
{
	int ret = check(p, partition);
	uint32_t at;

	if (ret)
		return ret;
	at = __atomic_fetch_add(&p->shared->tail, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&p->queue[at & (p->shared->entries - 1)], (uint32_t)partition + 1,
			 __ATOMIC_RELEASE);
	/*
	 * Either this thread sees that the kernel sleeps, or the kernel sees the entry before it
	 * sleeps.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&p->shared->flags, __ATOMIC_RELAXED) & SWC_PROGRESS_KICK)
		return call(p, SWC_IOC_PARTITIONED_KICK, 0);
	return 0;
}

SWC_PUBLIC int swingcoll_parrived(struct swingcoll_partitioned *p, int partition)
{
	int ret = check(p, partition), error;

	if (ret)
		return ret;
	if (__atomic_load_n(&p->done[partition], __ATOMIC_ACQUIRE) == p->shared->round) {
		error = __atomic_load_n(&p->shared->error, __ATOMIC_RELAXED);
		return error ? error : 1;
	}
	/* A partition that has not begun when the communicator is aborted is never done. */
	if (__atomic_load_n(&p->comm->state->aborted, __ATOMIC_ACQUIRE))
		return p->comm->state->error;
	return 0;
}

/* The kernel has the same number for all partitions, -1. */
static int check_wait(const struct swingcoll_partitioned *p, int partition)
{
	_Static_assert((uint32_t)SWINGCOLL_ALL_PARTITIONS == SWC_ALL_PARTITIONS,
		       "by their numbers");
	return check(p, partition == SWINGCOLL_ALL_PARTITIONS ? 0 : partition);
}

SWC_PUBLIC int swingcoll_pwait(struct swingcoll_partitioned *p, int partition)
{
	int ret = check_wait(p, partition);

	if (ret)
		return ret;
	if (partition != SWINGCOLL_ALL_PARTITIONS && swingcoll_parrived(p, partition) == 1)
		return 0;
	do
		ret = call(p, SWC_IOC_PARTITIONED_WAIT, (uint32_t)partition);
	while (ret == -EINTR);
	return swc_debug_failed(p->comm, ret);
}

SWC_PUBLIC int swingcoll_prep_pwait(struct io_uring_sqe *sqe, struct swingcoll_partitioned *p,
				    int partition)
{
	int ret = sqe ? check_wait(p, partition) : -EINVAL;

	if (!ret)
		swc_uring_fill_wait(
			sqe, p->comm->ctx->fd,
			&(const struct swc_partitioned_ref){ .handle = p->handle,
							     .partition = (uint32_t)partition });
	return ret;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Collectives: every public call becomes one struct swingcoll_call, is checked once, and goes
 * either through the slots (blocking and small) or to the kernel.
 *
 * comm->order is held from the moment a collective gets its number until it is submitted. One that
 * goes through the slots holds it until its outcome is known, because it may still have to go to
 * the kernel under that number. This cannot deadlock: the outcome of a collective never depends on
 * a later one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/blocks.h"
#include "kmod/core/plan_check.h"
#include "src/api/for_overlap.h"
#include "src/priv.h"
#include "kmod/core/reduce.h"

/* ---- checks ---- */

/* Sizes in bytes: of the vector, and of this rank's shard, which is the vector if that has no shards. */
struct sizes {
	uint64_t all, own;
	uint64_t before; /* the shards before this rank's */
};

/* Return: 0 or -EOVERFLOW. */
static int find_sizes(const struct swingcoll_comm *comm, const struct swingcoll_call *c,
		      size_t elem, struct sizes *s)
{
	uint32_t nshards = swc_coll_nshards((uint8_t)c->coll, comm->nranks);

	if (!c->counts && c->count > SWC_MAX_VECTOR_BYTES / elem / nshards)
		return -EOVERFLOW;
	*s = (struct sizes){ .all = c->count * elem * nshards,
			     .own = c->count * elem,
			     .before = nshards > 1 ? comm->rank * c->count * elem : 0 };
	for (uint32_t r = 0; c->counts && r < comm->nranks; r++) {
		if (c->counts[r] > (SWC_MAX_VECTOR_BYTES - s->all) / elem)
			return -EOVERFLOW;
		s->before = r == comm->rank ? s->all : s->before;
		s->own = r == comm->rank ? c->counts[r] * elem : s->own;
		s->all += c->counts[r] * elem;
	}
	return 0;
}

/* Bytes of a buffer on this rank; 0 if it is not used. */
static uint64_t buffer_bytes(const struct swingcoll_comm *comm, const struct swingcoll_call *c,
			     enum swc_buf buf, const struct sizes *s)
{
	uint32_t nshards = swc_coll_nshards((uint8_t)c->coll, comm->nranks);
	struct swc_plan_window w = swc_plan_window_of((enum swc_coll)c->coll, buf, comm->rank,
						      (uint32_t)c->root, 1, nshards);

	return w.nblocks == nshards ? s->all : w.nblocks ? s->own : 0;
}

/*
 * In place: the shard that both buffers hold is at the same address. Any other overlap is an error.
 */
static int check_overlap(const struct swingcoll_call *c, const struct sizes *size,
			 uint64_t send_bytes, uint64_t recv_bytes, enum swc_variant *variant)
{
	uintptr_t s = (uintptr_t)c->send, r = (uintptr_t)c->recv;

	*variant = SWC_DISJOINT;
	if (!send_bytes || !recv_bytes || s >= r + recv_bytes || r >= s + send_bytes)
		return 0;
	if (c->coll == SWINGCOLL_REDUCE_SCATTER || c->coll == SWINGCOLL_SCATTER)
		s += size->before;
	else if (c->coll == SWINGCOLL_ALLGATHER || c->coll == SWINGCOLL_GATHER)
		r += size->before;
	*variant = SWC_IN_PLACE;
	return s == r ? 0 : -EINVAL;
}

/* How send and recv must lie if they overlap. */
static const char *in_place_text(enum swingcoll_coll coll)
{
	switch (coll) {
	case SWINGCOLL_REDUCE_SCATTER:
		return "recv == send + rank * count elements";
	case SWINGCOLL_ALLGATHER:
		return "send == recv + rank * count elements";
	case SWINGCOLL_GATHER:
		return "send == recv + root * count elements";
	case SWINGCOLL_SCATTER:
		return "recv == send + root * count elements";
	default:
		return "send == recv";
	}
}

/* For messages. */
static const char *name_of(const struct swingcoll_call *c)
{
	return swingcoll_coll_name(c->coll);
}

/* Check everything but the buffers. *size: of an element, 1 if nothing moves. */
static int check_kind(struct swingcoll_comm *comm, const struct swingcoll_call *c, size_t *size)
{
	bool moves = c->coll != SWINGCOLL_BARRIER;

	if ((unsigned int)c->coll > SWINGCOLL_SCATTER)
		return swc_comm_fail(comm, -EINVAL,
				     "collective %d does not exist: they are 0 to %d", (int)c->coll,
				     SWINGCOLL_SCATTER);
	*size = moves ? swc_dtype_size((enum swc_dtype)c->dtype) : 1;
	if (!*size)
		return swc_comm_fail(comm, -EINVAL,
				     "%s: element type %d does not exist: they are 0 to %d "
				     "(enum swingcoll_dtype)",
				     name_of(c), (int)c->dtype, SWINGCOLL_F64);
	if (c->counts && !swc_coll_takes_counts((uint8_t)c->coll))
		return swc_comm_fail(comm, -EINVAL,
				     "%s has one count: counts must be NULL, except for gather "
				     "and scatter",
				     name_of(c));
	if (c->counts && c->count)
		return swc_comm_fail(comm, -EINVAL,
				     "%s: count is %zu, but counts has one for each rank: count "
				     "must be 0",
				     name_of(c), c->count);
	if (!moves && c->count)
		return swc_comm_fail(comm, -EINVAL, "%s moves no data: count must be 0",
				     name_of(c));
	if (c->root && !swc_coll_has_root((uint8_t)c->coll))
		return swc_comm_fail(comm, -EINVAL, "%s has no root: root must be 0, not %d",
				     name_of(c), c->root);
	if (c->root < 0 || (uint32_t)c->root >= comm->nranks)
		return swc_comm_fail(comm, -EINVAL, "%s: root %d: the ranks are 0 to %u",
				     name_of(c), c->root, comm->nranks - 1);
	if (!swc_coll_reduces((uint8_t)c->coll) ||
	    swc_reduce_supported((enum swc_dtype)c->dtype, (enum swc_redop)c->op))
		return 0;
	if ((unsigned int)c->op > SWINGCOLL_BXOR)
		return swc_comm_fail(comm, -EINVAL,
				     "%s: reduction %d does not exist: they are 0 to %d "
				     "(enum swingcoll_redop)",
				     name_of(c), (int)c->op, SWINGCOLL_BXOR);
	return swc_comm_fail(comm, -EINVAL,
			     "%s: %s is not defined for %s: it takes integer types only, from i8 "
			     "to u64; floating-point types take sum, prod, min, max and avg",
			     name_of(c), swingcoll_redop_name(c->op),
			     swingcoll_dtype_name(c->dtype));
}

/* Check one buffer, of @bytes bytes. */
static int check_buffer(struct swingcoll_comm *comm, const struct swingcoll_call *c,
			const char *name, const void *buf, uint64_t bytes, size_t size)
{
	if (!bytes)
		return 0;
	if (!buf)
		return swc_comm_fail(comm, -EINVAL,
				     "%s: %s is NULL, and count is %zu: pass a buffer of %llu "
				     "bytes, or count 0",
				     name_of(c), name, c->count, (unsigned long long)bytes);
	if ((uintptr_t)buf & (size - 1))
		return swc_comm_fail(
			comm, -EINVAL,
			"%s: %s is %p, which is not aligned: %s needs a multiple of %zu",
			name_of(c), name, buf, swingcoll_dtype_name(c->dtype), size);
	return 0;
}

/* Does a rank send a shard for each of the ranks? */
static bool contributes_shards(enum swingcoll_coll coll)
{
	return coll == SWINGCOLL_REDUCE_SCATTER || coll == SWINGCOLL_SCATTER ||
	       coll == SWINGCOLL_ALLTOALL;
}

int swc_coll_prepare(struct swingcoll_comm *comm, const struct swingcoll_call *c,
		     struct swc_coll_op *op)
{
	uint64_t send_bytes, recv_bytes;
	struct sizes sizes;
	bool reduces, moves;
	const void *send;
	size_t size = 0;
	void *recv;
	int ret;

	if (!comm)
		return -EINVAL;
	if (comm->forked)
		return -EBADF;
	ret = check_kind(comm, c, &size);
	if (ret)
		return ret;
	reduces = swc_coll_reduces((uint8_t)c->coll);
	moves = c->coll != SWINGCOLL_BARRIER;
	ret = find_sizes(comm, c, size, &sizes);
	if (ret && c->counts)
		return swc_comm_fail(comm, ret,
				     "%s: counts are too large: all together are elements of %zu "
				     "bytes, and 64 TiB at most",
				     name_of(c), size);
	if (ret)
		return swc_comm_fail(
			comm, ret,
			"%s: count %zu is too large: the vector has %u * count elements "
			"of %zu bytes, and 64 TiB at most",
			name_of(c), c->count, swc_coll_nshards((uint8_t)c->coll, comm->nranks),
			size);
	send_bytes = buffer_bytes(comm, c, SWC_BUF_SEND, &sizes);
	recv_bytes = buffer_bytes(comm, c, SWC_BUF_RECV, &sizes);
	ret = check_buffer(comm, c, "send", c->send, send_bytes, size);
	if (!ret)
		ret = check_buffer(comm, c, "recv", c->recv, recv_bytes, size);
	if (ret)
		return ret;
	send = send_bytes ? c->send : NULL;
	recv = recv_bytes ? c->recv : NULL;
	ret = check_overlap(c, &sizes, send_bytes, recv_bytes, &op->variant);
	if (ret)
		return swc_comm_fail(
			comm, ret, "%s: send and recv overlap: they must be apart, or in place: %s",
			name_of(c), in_place_text(c->coll));

	op->counts = c->counts;
	op->bytes = sizes.all;
	op->send_bytes = send_bytes;
	op->recv_bytes = recv_bytes;
	op->desc = (struct swc_desc){
		.comm = comm->handle,
		.count = c->count,
		.coll = (uint8_t)c->coll,
		.dtype = moves ? (uint8_t)c->dtype : 0,
		.redop = reduces ? (uint8_t)c->op : 0,
		.root = (uint32_t)c->root,
		.timeout_ms = c->timeout_ms ? c->timeout_ms : comm->op_timeout_ms,
		.counts = (uintptr_t)c->counts,
	};
	swc_mem_resolve(&op->desc, send, send_bytes, recv, recv_bytes);
	op->slots = (struct swc_slots_op){
		.coll = op->desc.coll,
		.dtype = op->desc.dtype,
		.redop = op->desc.redop,
		.root = op->desc.root,
		.send = send,
		.recv = recv,
		.count = c->count,
		.bytes = contributes_shards(c->coll) ? sizes.all : sizes.own,
	};
	return 0;
}

/* ---- submission ---- */

/* Free requests, as bits. No more are in use than the kernel allows in flight. */
static uint64_t free_reqs(const struct swingcoll_comm *comm)
{
	uint32_t max = comm->ctx->info.max_inflight;

	/* Pairs with the release in return_req(). */
	return ~__atomic_load_n(&comm->busy, __ATOMIC_ACQUIRE) &
	       ~0ull >> (max && max < SWC_POOL ? SWC_POOL - max : 0);
}

/* Under comm->order; others only clear bits. */
static struct swingcoll_req *take_req(struct swingcoll_comm *comm)
{
	uint64_t free_bits = free_reqs(comm);
	unsigned int i;

	if (!free_bits)
		return NULL;
	i = (unsigned int)__builtin_ctzll(free_bits);
	__atomic_fetch_or(&comm->busy, 1ull << i, __ATOMIC_RELAXED);
	comm->req[i].done = 0;
	return &comm->req[i];
}

static void return_req(struct swingcoll_req *req)
{
	struct swingcoll_comm *comm = req->comm;

	/* Pairs with the acquire in free_reqs(): this request is not touched any more. */
	__atomic_fetch_and(&comm->busy, ~(1ull << (req - comm->req)), __ATOMIC_RELEASE);
}

/* The kernel reads counts when the request is submitted, which may be after the call. */
static int take_counts(const struct swingcoll_comm *comm, struct swc_coll_op *op,
		       struct swingcoll_req *req)
{
	if (!op->counts)
		return 0;
	if (!req->counts)
		req->counts = malloc(comm->nranks * sizeof(*req->counts));
	if (!req->counts)
		return -ENOMEM;
	memcpy(req->counts, op->counts, comm->nranks * sizeof(*req->counts));
	op->desc.counts = (uintptr_t)req->counts;
	return 0;
}

/*
 * Submit a collective to the kernel, behind the ones before. Under comm->order. @announced: the
 * other ranks know from the slots that this collective has been called.
 */
static int queue(struct swingcoll_comm *comm, struct swc_coll_op *op, uint32_t flags,
		 bool announced, struct swingcoll_req **out)
{
	struct swingcoll_req *req;
	int ret;

	ret = swc_plans_get(comm, &op->desc, &op->variant, op->bytes);
	if (ret)
		return ret;
	req = take_req(comm);
	if (!req)
		return -EAGAIN;
	ret = announced ? 0 : swc_slots_may_pass(&comm->slots);
	if (ret)
		goto err_return;
	ret = take_counts(comm, op, req);
	if (ret)
		goto err_return;
	op->desc.flags = flags;
	req->algo = swc_plans_algo(&comm->plans, op->desc.plan);
	ret = comm->submit->queue(comm, &op->desc, req);
	if (ret)
		goto err_return;
	if (!announced)
		swc_slots_pass(&comm->slots);
	*out = req;
	return 0;

err_return:
	return_req(req);
	return ret;
}

static void note_algo(struct swingcoll_comm *comm, const char *algo)
{
	__atomic_store_n(&comm->last_algo, algo, __ATOMIC_RELAXED);
}

/* Read the outcome of a request that is done, and return it to the pool. */
static int outcome(struct swingcoll_req *req, struct swingcoll_result *result)
{
	struct swingcoll_comm *comm = req->comm;
	int error = req->error;

	if (!error)
		note_algo(comm, req->algo);
	if (result)
		*result = (struct swingcoll_result){
			.error = error,
			.culprit = req->culprit,
			.time_ns = req->time_ns,
			.algo = req->algo,
		};
	return_req(req);
	return swc_debug_failed(comm, error);
}

/*
 * Run a small blocking collective without the kernel. Under comm->order. 1: it must go to the
 * kernel; this includes SWC_SLOTS_FALLBACK.
 */
static int run_slots(struct swingcoll_comm *comm, const struct swc_coll_op *op, bool *announced)
{
	int ret;

	*announced = false;
	if (!comm->slots.base || op->slots.bytes > comm->slot_max || op->counts)
		return 1;
	/* It may have to go to the kernel after the slots, and then needs a request. */
	if (!free_reqs(comm))
		return -EAGAIN;
	ret = swc_slots_run(&comm->slots, &op->slots);
	if (!ret)
		note_algo(comm, "slots");
	*announced = ret == SWC_SLOTS_FALLBACK;
	return ret;
}

static int run(struct swingcoll_comm *comm, const struct swingcoll_call *call)
{
	struct swingcoll_req *req = NULL;
	bool announced;
	struct swc_coll_op op;
	int ret = swc_coll_prepare(comm, call, &op);

	if (ret)
		return ret;
	pthread_mutex_lock(&comm->order);
	ret = run_slots(comm, &op, &announced);
	if (ret > 0)
		ret = queue(comm, &op, SWC_OP_WAITING, announced, &req);
	pthread_mutex_unlock(&comm->order);
	if (ret || !req)
		return swc_debug_failed(comm, ret);
	ret = swc_reaper_wait(comm->reaper, req, &comm->hook);
	return ret ? ret : outcome(req, NULL);
}

static int start_op(struct swingcoll_comm *comm, struct swc_coll_op *op, struct swingcoll_req **req)
{
	int ret;

	pthread_mutex_lock(&comm->order);
	ret = queue(comm, op, 0, false, req);
	pthread_mutex_unlock(&comm->order);
	return ret ? swc_debug_failed(comm, ret) : swc_reaper_push(comm->reaper);
}

static int start(struct swingcoll_comm *comm, const struct swingcoll_call *call,
		 struct swingcoll_req **req)
{
	struct swc_coll_op op;
	int ret;

	if (!req)
		return -EINVAL;
	*req = NULL;
	ret = swc_coll_prepare(comm, call, &op);
	return ret ? ret : start_op(comm, &op, req);
}

int swc_start_others(struct swingcoll_comm *comm, enum swingcoll_coll coll, const void *send,
		     void *recv, size_t bytes, int root, bool *left_out, struct swingcoll_req **req)
{
	const struct swingcoll_call call = {
		.coll = coll,
		.dtype = SWINGCOLL_U8,
		.root = root,
		.send = send,
		.recv = recv,
		.count = bytes,
	};
	struct swc_coll_op op;
	int ret = swc_coll_prepare(comm, &call, &op);

	if (ret)
		return ret;
	op.variant = SWC_OTHERS;
	ret = start_op(comm, &op, req);
	if (left_out)
		*left_out = op.variant == SWC_OTHERS;
	return ret;
}

SWC_PUBLIC int swingcoll_wait(struct swingcoll_req *req, struct swingcoll_result *result)
{
	int ret;

	if (!req)
		return -EINVAL;
	if (req->comm->forked)
		return -EBADF;
	ret = swc_reaper_wait(req->comm->reaper, req, &req->comm->hook);
	return ret ? ret : outcome(req, result);
}

SWC_PUBLIC int swingcoll_test(struct swingcoll_req *req, struct swingcoll_result *result)
{
	if (!req)
		return -EINVAL;
	if (req->comm->forked)
		return -EBADF;
	if (!__atomic_load_n(&req->done, __ATOMIC_ACQUIRE))
		swc_reaper_poll(req->comm->reaper);
	if (!__atomic_load_n(&req->done, __ATOMIC_ACQUIRE))
		return req->comm->reaper->error ? req->comm->reaper->error : -EINPROGRESS;
	return outcome(req, result);
}

/* ---- the caller's own ring ---- */

SWC_PUBLIC int swingcoll_prep(struct io_uring_sqe *sqe, struct swingcoll_comm *comm,
			      const struct swingcoll_call *call)
{
	struct swc_coll_op op;
	int ret;

	if (!sqe || !call || call->reserved)
		return -EINVAL;
	ret = swc_coll_prepare(comm, call, &op);
	if (ret)
		return ret;
	pthread_mutex_lock(&comm->order);
	ret = swc_plans_get(comm, &op.desc, &op.variant, op.bytes);
	if (!ret)
		ret = swc_slots_pass(&comm->slots);
	pthread_mutex_unlock(&comm->order);
	if (!ret)
		swc_uring_fill(sqe, comm->ctx->fd, &op.desc);
	return ret;
}

SWC_PUBLIC int swingcoll_cqe_result(struct swingcoll_comm *comm, const struct io_uring_cqe *cqe,
				    struct swingcoll_result *result)
{
	uint64_t word;
	int error;

	if (!comm || !cqe)
		return -EINVAL;
	error = swc_uring_read(cqe, &word);
	if (!error)
		note_algo(comm, swc_plans_algo(&comm->plans, SWC_CQE_PLAN(word)));
	if (result)
		*result = (struct swingcoll_result){
			.error = error,
			.culprit = error ? SWC_CQE_CULPRIT(word) : -1,
			.time_ns = error ? 0 : SWC_CQE_TIME_NS(word),
			.algo = error ? "?" : swc_plans_algo(&comm->plans, SWC_CQE_PLAN(word)),
		};
	return error;
}

/* ---- the public calls ---- */

#define CALL(c, s, r, n, t, o, root_rank)                                                          \
	(&(const struct swingcoll_call){ .coll = SWINGCOLL_##c,                                    \
					 .dtype = (t),                                             \
					 .op = (o),                                                \
					 .root = (root_rank),                                      \
					 .send = (s),                                              \
					 .recv = (r),                                              \
					 .count = (n) })

#define CALL_V(c, s, r, n, t, root_rank)                                                           \
	(&(const struct swingcoll_call){ .coll = SWINGCOLL_##c,                                    \
					 .dtype = (t),                                             \
					 .root = (root_rank),                                      \
					 .send = (s),                                              \
					 .recv = (r),                                              \
					 .counts = (n) })

int swc_allreduce(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
		  enum swingcoll_redop op, struct swingcoll_comm *comm)
{
	return run(comm, CALL(ALLREDUCE, send, recv, count, dtype, op, 0));
}

SWC_PUBLIC int swingcoll_reduce_scatter(const void *send, void *recv, size_t count,
					enum swingcoll_dtype dtype, enum swingcoll_redop op,
					struct swingcoll_comm *comm)
{
	return run(comm, CALL(REDUCE_SCATTER, send, recv, count, dtype, op, 0));
}

SWC_PUBLIC int swingcoll_allgather(const void *send, void *recv, size_t count,
				   enum swingcoll_dtype dtype, struct swingcoll_comm *comm)
{
	return run(comm, CALL(ALLGATHER, send, recv, count, dtype, 0, 0));
}

SWC_PUBLIC int swingcoll_broadcast(const void *send, void *recv, size_t count,
				   enum swingcoll_dtype dtype, int root,
				   struct swingcoll_comm *comm)
{
	return run(comm, CALL(BROADCAST, send, recv, count, dtype, 0, root));
}

SWC_PUBLIC int swingcoll_reduce(const void *send, void *recv, size_t count,
				enum swingcoll_dtype dtype, enum swingcoll_redop op, int root,
				struct swingcoll_comm *comm)
{
	return run(comm, CALL(REDUCE, send, recv, count, dtype, op, root));
}

SWC_PUBLIC int swingcoll_barrier(struct swingcoll_comm *comm)
{
	return run(comm, CALL(BARRIER, NULL, NULL, 0, 0, 0, 0));
}

SWC_PUBLIC int swingcoll_alltoall(const void *send, void *recv, size_t count,
				  enum swingcoll_dtype dtype, struct swingcoll_comm *comm)
{
	return run(comm, CALL(ALLTOALL, send, recv, count, dtype, 0, 0));
}

SWC_PUBLIC int swingcoll_gather(const void *send, void *recv, size_t count,
				enum swingcoll_dtype dtype, int root, struct swingcoll_comm *comm)
{
	return run(comm, CALL(GATHER, send, recv, count, dtype, 0, root));
}

SWC_PUBLIC int swingcoll_scatter(const void *send, void *recv, size_t count,
				 enum swingcoll_dtype dtype, int root, struct swingcoll_comm *comm)
{
	return run(comm, CALL(SCATTER, send, recv, count, dtype, 0, root));
}

SWC_PUBLIC int swingcoll_iallreduce(const void *send, void *recv, size_t count,
				    enum swingcoll_dtype dtype, enum swingcoll_redop op,
				    struct swingcoll_comm *comm, struct swingcoll_req **req)
{
	return start(comm, CALL(ALLREDUCE, send, recv, count, dtype, op, 0), req);
}

SWC_PUBLIC int swingcoll_ireduce_scatter(const void *send, void *recv, size_t count,
					 enum swingcoll_dtype dtype, enum swingcoll_redop op,
					 struct swingcoll_comm *comm, struct swingcoll_req **req)
{
	return start(comm, CALL(REDUCE_SCATTER, send, recv, count, dtype, op, 0), req);
}

SWC_PUBLIC int swingcoll_iallgather(const void *send, void *recv, size_t count,
				    enum swingcoll_dtype dtype, struct swingcoll_comm *comm,
				    struct swingcoll_req **req)
{
	return start(comm, CALL(ALLGATHER, send, recv, count, dtype, 0, 0), req);
}

SWC_PUBLIC int swingcoll_ibroadcast(const void *send, void *recv, size_t count,
				    enum swingcoll_dtype dtype, int root,
				    struct swingcoll_comm *comm, struct swingcoll_req **req)
{
	return start(comm, CALL(BROADCAST, send, recv, count, dtype, 0, root), req);
}

SWC_PUBLIC int swingcoll_ireduce(const void *send, void *recv, size_t count,
				 enum swingcoll_dtype dtype, enum swingcoll_redop op, int root,
				 struct swingcoll_comm *comm, struct swingcoll_req **req)
{
	return start(comm, CALL(REDUCE, send, recv, count, dtype, op, root), req);
}

SWC_PUBLIC int swingcoll_ibarrier(struct swingcoll_comm *comm, struct swingcoll_req **req)
{
	return start(comm, CALL(BARRIER, NULL, NULL, 0, 0, 0, 0), req);
}

SWC_PUBLIC int swingcoll_ialltoall(const void *send, void *recv, size_t count,
				   enum swingcoll_dtype dtype, struct swingcoll_comm *comm,
				   struct swingcoll_req **req)
{
	return start(comm, CALL(ALLTOALL, send, recv, count, dtype, 0, 0), req);
}

SWC_PUBLIC int swingcoll_igather(const void *send, void *recv, size_t count,
				 enum swingcoll_dtype dtype, int root, struct swingcoll_comm *comm,
				 struct swingcoll_req **req)
{
	return start(comm, CALL(GATHER, send, recv, count, dtype, 0, root), req);
}

SWC_PUBLIC int swingcoll_iscatter(const void *send, void *recv, size_t count,
				  enum swingcoll_dtype dtype, int root, struct swingcoll_comm *comm,
				  struct swingcoll_req **req)
{
	return start(comm, CALL(SCATTER, send, recv, count, dtype, 0, root), req);
}

static int no_counts(struct swingcoll_comm *comm)
{
	return comm ? swc_comm_fail(comm, -EINVAL, "counts is NULL: pass a count for each rank")
		    : -EINVAL;
}

SWC_PUBLIC int swingcoll_gatherv(const void *send, void *recv, const uint64_t *counts,
				 enum swingcoll_dtype dtype, int root, struct swingcoll_comm *comm)
{
	return counts ? run(comm, CALL_V(GATHER, send, recv, counts, dtype, root))
		      : no_counts(comm);
}

SWC_PUBLIC int swingcoll_scatterv(const void *send, void *recv, const uint64_t *counts,
				  enum swingcoll_dtype dtype, int root, struct swingcoll_comm *comm)
{
	return counts ? run(comm, CALL_V(SCATTER, send, recv, counts, dtype, root))
		      : no_counts(comm);
}

SWC_PUBLIC int swingcoll_igatherv(const void *send, void *recv, const uint64_t *counts,
				  enum swingcoll_dtype dtype, int root, struct swingcoll_comm *comm,
				  struct swingcoll_req **req)
{
	return counts ? start(comm, CALL_V(GATHER, send, recv, counts, dtype, root), req)
		      : no_counts(comm);
}

SWC_PUBLIC int swingcoll_iscatterv(const void *send, void *recv, const uint64_t *counts,
				   enum swingcoll_dtype dtype, int root,
				   struct swingcoll_comm *comm, struct swingcoll_req **req)
{
	return counts ? start(comm, CALL_V(SCATTER, send, recv, counts, dtype, root), req)
		      : no_counts(comm);
}

SWC_PUBLIC const char *swingcoll_comm_algo(const struct swingcoll_comm *comm)
{
	const char *algo = __atomic_load_n(&comm->last_algo, __ATOMIC_RELAXED);

	return algo ? algo : "?";
}

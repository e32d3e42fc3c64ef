// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Collectives: every public call becomes one struct swingcoll_call, is checked once, and goes
 * either through the slots (blocking and small) or to the kernel (submission.c).
 *
 * comm->order is held from the moment a collective gets its number until it is submitted. One that
 * goes through the slots holds it until its outcome is known, because it may still have to go to
 * the kernel under that number. This cannot deadlock: the outcome of a collective never depends on
 * a later one.
 */
#include <errno.h>

#include "kmod/core/blocks.h"
#include "kmod/core/plan_check.h"
#include "src/api/for_overlap.h"
#include "src/priv.h"
#include "kmod/core/reduce.h"

/* ---- checks ---- */

/*
 * They are compiled once for each blocking collective, whose calls know what it is, and once for all others.
 * So they only find out what is wrong; explain() words it.
 */
#define CHECK static inline __attribute__((always_inline))

enum fault {
	FAULT_NONE,
	FAULT_COLL,
	FAULT_DTYPE,
	FAULT_COUNTS,
	FAULT_TWO_COUNTS,
	FAULT_MOVES_NOTHING,
	FAULT_ROOTLESS,
	FAULT_ROOT,
	FAULT_REDOP,
	FAULT_TOO_MANY,
	FAULT_SEND_NULL,
	FAULT_SEND_ALIGNMENT,
	FAULT_RECV_NULL,
	FAULT_RECV_ALIGNMENT,
	FAULT_OVERLAP,
};

/* Sizes in bytes: of the vector, and of this rank's shard, which is the vector if that has no shards. */
struct sizes {
	uint64_t all, own;
	uint64_t before; /* the shards before this rank's */
};

/* For the sizes of shards: see there. */
static enum fault add_sizes(const struct swingcoll_comm *comm, const struct swingcoll_call *c,
			    size_t elem, struct sizes *s)
{
	for (uint32_t r = 0; r < comm->nranks; r++) {
		if (c->counts[r] > (SWC_MAX_VECTOR_BYTES - s->all) / elem)
			return FAULT_TOO_MANY;
		s->before = r == comm->rank ? s->all : s->before;
		s->own = r == comm->rank ? c->counts[r] * elem : s->own;
		s->all += c->counts[r] * elem;
	}
	return FAULT_NONE;
}

CHECK enum fault find_sizes(const struct swingcoll_comm *comm, const struct swingcoll_call *c,
			    size_t elem, struct sizes *s)
{
	uint32_t nshards = swc_coll_nshards((uint8_t)c->coll, comm->nranks);
	uint64_t own, all;

	if (__builtin_mul_overflow(c->count, elem, &own) ||
	    __builtin_mul_overflow(own, (uint64_t)nshards, &all) || all > SWC_MAX_VECTOR_BYTES)
		return FAULT_TOO_MANY;
	*s = (struct sizes){ .all = all, .own = own, .before = nshards > 1 ? comm->rank * own : 0 };
	return c->counts ? add_sizes(comm, c, elem, s) : FAULT_NONE;
}

/* Bytes of a buffer on this rank; 0 if it is not used. */
CHECK uint64_t buffer_bytes(const struct swingcoll_comm *comm, const struct swingcoll_call *c,
			    enum swc_buf buf, const struct sizes *s)
{
	/* With two blocks to a vector of one shard, all differs from one's own. */
	struct swc_plan_window w = swc_plan_window_of((enum swc_coll)c->coll, buf, comm->rank,
						      (uint32_t)c->root, 1, 2);

	return w.nblocks == 2 ? s->all : w.nblocks ? s->own : 0;
}

/*
 * In place: the shard that both buffers hold is at the same address. Any other overlap is an error.
 */
CHECK enum fault check_overlap(const struct swingcoll_call *c, const struct sizes *size,
			       uint64_t send_bytes, uint64_t recv_bytes, enum swc_variant *variant)
{
	uintptr_t s = (uintptr_t)c->send, r = (uintptr_t)c->recv;

	*variant = SWC_DISJOINT;
	if (!send_bytes || !recv_bytes || s >= r + recv_bytes || r >= s + send_bytes)
		return FAULT_NONE;
	if (c->coll == SWINGCOLL_REDUCE_SCATTER || c->coll == SWINGCOLL_SCATTER)
		s += size->before;
	else if (c->coll == SWINGCOLL_ALLGATHER || c->coll == SWINGCOLL_GATHER)
		r += size->before;
	*variant = SWC_IN_PLACE;
	return s == r ? FAULT_NONE : FAULT_OVERLAP;
}

/* Check everything but the buffers. *size: of an element, 1 if nothing moves. */
CHECK enum fault check_kind(const struct swingcoll_comm *comm, const struct swingcoll_call *c,
			    size_t *size)
{
	bool moves = c->coll != SWINGCOLL_BARRIER;

	if ((unsigned int)c->coll > SWINGCOLL_SCATTER)
		return FAULT_COLL;
	*size = moves ? swc_dtype_size((enum swc_dtype)c->dtype) : 1;
	if (!*size)
		return FAULT_DTYPE;
	if (c->counts && !swc_coll_takes_counts((uint8_t)c->coll))
		return FAULT_COUNTS;
	if (c->counts && c->count)
		return FAULT_TWO_COUNTS;
	if (!moves && c->count)
		return FAULT_MOVES_NOTHING;
	if (c->root && !swc_coll_has_root((uint8_t)c->coll))
		return FAULT_ROOTLESS;
	if ((uint32_t)c->root >= comm->nranks)
		return FAULT_ROOT;
	if (swc_coll_reduces((uint8_t)c->coll) &&
	    !swc_reduce_supported((enum swc_dtype)c->dtype, (enum swc_redop)c->op))
		return FAULT_REDOP;
	return FAULT_NONE;
}

/* Does a rank send a shard for each of the ranks? */
CHECK bool contributes_shards(enum swingcoll_coll coll)
{
	return coll == SWINGCOLL_REDUCE_SCATTER || coll == SWINGCOLL_SCATTER ||
	       coll == SWINGCOLL_ALLTOALL;
}

/* All but op->desc, which what goes through the slots does not need. *size: of an element. */
CHECK enum fault check(const struct swingcoll_comm *comm, const struct swingcoll_call *c,
		       struct swc_coll_op *op, size_t *size)
{
	bool moves = c->coll != SWINGCOLL_BARRIER;
	struct sizes sizes;
	enum fault fault;

	fault = check_kind(comm, c, size);
	if (!fault)
		fault = find_sizes(comm, c, *size, &sizes);
	if (fault)
		return fault;
	op->counts = c->counts;
	op->bytes = sizes.all;
	op->send_bytes = buffer_bytes(comm, c, SWC_BUF_SEND, &sizes);
	op->recv_bytes = buffer_bytes(comm, c, SWC_BUF_RECV, &sizes);
	op->slots = (struct swc_slots_op){
		.coll = (enum swc_coll)c->coll,
		.dtype = moves ? (enum swc_dtype)c->dtype : 0,
		.redop = swc_coll_reduces((uint8_t)c->coll) ? (enum swc_redop)c->op : 0,
		.root = (uint32_t)c->root,
		.send = op->send_bytes ? c->send : NULL,
		.recv = op->recv_bytes ? c->recv : NULL,
		.count = c->count,
		.bytes = contributes_shards(c->coll) ? sizes.all : sizes.own,
	};
	if (op->send_bytes && !c->send)
		return FAULT_SEND_NULL;
	if ((uintptr_t)op->slots.send & (*size - 1))
		return FAULT_SEND_ALIGNMENT;
	if (op->recv_bytes && !c->recv)
		return FAULT_RECV_NULL;
	if ((uintptr_t)op->slots.recv & (*size - 1))
		return FAULT_RECV_ALIGNMENT;
	return check_overlap(c, &sizes, op->send_bytes, op->recv_bytes, &op->variant);
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

static int explain_null(struct swingcoll_comm *comm, const struct swingcoll_call *c,
			const char *name, uint64_t bytes)
{
	return swc_comm_fail(
		comm, -EINVAL,
		"%s: %s is NULL, and count is %zu: pass a buffer of %llu bytes, or count 0",
		swingcoll_coll_name(c->coll), name, c->count, (unsigned long long)bytes);
}

static int explain_alignment(struct swingcoll_comm *comm, const struct swingcoll_call *c,
			     const char *name, const void *buf, size_t size)
{
	return swc_comm_fail(comm, -EINVAL,
			     "%s: %s is %p, which is not aligned: %s needs a multiple of %zu",
			     swingcoll_coll_name(c->coll), name, buf,
			     swingcoll_dtype_name(c->dtype), size);
}

static int explain_redop(struct swingcoll_comm *comm, const struct swingcoll_call *c)
{
	const char *name = swingcoll_coll_name(c->coll);

	if ((unsigned int)c->op > SWINGCOLL_BXOR)
		return swc_comm_fail(comm, -EINVAL,
				     "%s: reduction %d does not exist: they are 0 to %d "
				     "(enum swingcoll_redop)",
				     name, (int)c->op, SWINGCOLL_BXOR);
	return swc_comm_fail(comm, -EINVAL,
			     "%s: %s is not defined for %s: it takes integer types only, from i8 "
			     "to u64; floating-point types take sum, prod, min, max and avg",
			     name, swingcoll_redop_name(c->op), swingcoll_dtype_name(c->dtype));
}

static int explain_size(struct swingcoll_comm *comm, const struct swingcoll_call *c, size_t size)
{
	const char *name = swingcoll_coll_name(c->coll);

	if (c->counts)
		return swc_comm_fail(comm, -EOVERFLOW,
				     "%s: counts are too large: all together are elements of %zu "
				     "bytes, and 64 TiB at most",
				     name, size);
	return swc_comm_fail(comm, -EOVERFLOW,
			     "%s: count %zu is too large: the vector has %u * count elements "
			     "of %zu bytes, and 64 TiB at most",
			     name, c->count, swc_coll_nshards((uint8_t)c->coll, comm->nranks),
			     size);
}

/* What is wrong with a call, for swingcoll_comm_error(). Returns what the call returns. */
static __attribute__((cold, noinline)) int explain(struct swingcoll_comm *comm,
						   const struct swingcoll_call *c)
{
	const char *name = swingcoll_coll_name(c->coll);
	struct swc_coll_op op = { 0 };
	size_t size = 0;

	switch (check(comm, c, &op, &size)) {
	case FAULT_COLL:
		return swc_comm_fail(comm, -EINVAL,
				     "collective %d does not exist: they are 0 to %d", (int)c->coll,
				     SWINGCOLL_SCATTER);
	case FAULT_DTYPE:
		return swc_comm_fail(comm, -EINVAL,
				     "%s: element type %d does not exist: they are 0 to %d "
				     "(enum swingcoll_dtype)",
				     name, (int)c->dtype, SWINGCOLL_F64);
	case FAULT_COUNTS:
		return swc_comm_fail(comm, -EINVAL,
				     "%s has one count: counts must be NULL, except for gather "
				     "and scatter",
				     name);
	case FAULT_TWO_COUNTS:
		return swc_comm_fail(comm, -EINVAL,
				     "%s: count is %zu, but counts has one for each rank: count "
				     "must be 0",
				     name, c->count);
	case FAULT_MOVES_NOTHING:
		return swc_comm_fail(comm, -EINVAL, "%s moves no data: count must be 0", name);
	case FAULT_ROOTLESS:
		return swc_comm_fail(comm, -EINVAL, "%s has no root: root must be 0, not %d", name,
				     c->root);
	case FAULT_ROOT:
		return swc_comm_fail(comm, -EINVAL, "%s: root %d: the ranks are 0 to %u", name,
				     c->root, comm->nranks - 1);
	case FAULT_REDOP:
		return explain_redop(comm, c);
	case FAULT_TOO_MANY:
		return explain_size(comm, c, size);
	case FAULT_SEND_NULL:
		return explain_null(comm, c, "send", op.send_bytes);
	case FAULT_SEND_ALIGNMENT:
		return explain_alignment(comm, c, "send", c->send, size);
	case FAULT_RECV_NULL:
		return explain_null(comm, c, "recv", op.recv_bytes);
	case FAULT_RECV_ALIGNMENT:
		return explain_alignment(comm, c, "recv", c->recv, size);
	case FAULT_OVERLAP:
		return swc_comm_fail(
			comm, -EINVAL,
			"%s: send and recv overlap: they must be apart, or in place: %s", name,
			in_place_text(c->coll));
	case FAULT_NONE:
		break;
	}
	return 0;
}

/* Check a call, all but op->desc. 0, or the error that the call returns. */
CHECK int prepare(struct swingcoll_comm *comm, const struct swingcoll_call *c,
		  struct swc_coll_op *op)
{
	size_t size;

	if (!comm)
		return -EINVAL;
	if (comm->forked)
		return -EBADF;
	if (__builtin_expect(check(comm, c, op, &size) != FAULT_NONE, 0)) {
		/* Of a copy, so that the fields of c itself need not be in memory. */
		const struct swingcoll_call copy = *c;

		return explain(comm, &copy);
	}
	return 0;
}

/* Describe to the kernel what has been checked. */
static void describe(const struct swingcoll_comm *comm, uint32_t timeout_ms, struct swc_coll_op *op)
{
	op->desc = (struct swc_desc){
		.comm = comm->handle,
		.count = op->slots.count,
		.coll = (uint8_t)op->slots.coll,
		.dtype = (uint8_t)op->slots.dtype,
		.redop = (uint8_t)op->slots.redop,
		.root = op->slots.root,
		.timeout_ms = timeout_ms ? timeout_ms : comm->op_timeout_ms,
		.counts = (uintptr_t)op->counts,
	};
	swc_mem_resolve(&op->desc, op->slots.send, op->send_bytes, op->slots.recv, op->recv_bytes);
}

int swc_coll_prepare(struct swingcoll_comm *comm, const struct swingcoll_call *c,
		     struct swc_coll_op *op)
{
	int ret = prepare(comm, c, op);

	if (!ret)
		describe(comm, c->timeout_ms, op);
	return ret;
}

/* ---- blocking and nonblocking ---- */

/*
 * Run a small blocking collective without the kernel. Under comm->order. 1: it must go to the
 * kernel; this includes SWC_SLOTS_FALLBACK.
 */
CHECK int run_slots(struct swingcoll_comm *comm, const struct swc_coll_op *op, bool *announced)
{
	int ret;

	*announced = false;
	if (!comm->slots.base || op->slots.bytes > comm->slot_max || op->counts)
		return 1;
	/* It may have to go to the kernel after the slots, and then needs a request. */
	if (__atomic_load_n(&comm->busy, __ATOMIC_RELAXED) && !swc_submission_has_room(comm))
		return -EAGAIN;
	ret = swc_slots_run(&comm->slots, &op->slots);
	*announced = ret == SWC_SLOTS_FALLBACK;
	return ret;
}

/*
 * Go on where run_slots() has returned @ret, which is not 0. Under comm->order, which is released.
 */
static __attribute__((noinline)) int run_kernel(struct swingcoll_comm *comm, struct swc_coll_op *op,
						bool announced, int ret)
{
	if (ret > 0) {
		describe(comm, 0, op);
		return swc_submission_wait(comm, op, announced);
	}
	pthread_mutex_unlock(&comm->order);
	return swc_debug_failed(comm, ret);
}

/* @call has no deadline of its own. */
CHECK int run(struct swingcoll_comm *comm, const struct swingcoll_call *call)
{
	struct swc_coll_op op;
	bool announced;
	int ret = prepare(comm, call, &op);

	if (ret)
		return ret;
	pthread_mutex_lock(&comm->order);
	ret = run_slots(comm, &op, &announced);
	if (__builtin_expect(ret, 0))
		return run_kernel(comm, &op, announced, ret);
	swc_submission_note(comm, "slots");
	pthread_mutex_unlock(&comm->order);
	return 0;
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
	return ret ? ret : swc_submission_start(comm, &op, req);
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
	ret = swc_submission_start(comm, &op, req);
	if (left_out)
		*left_out = op.variant == SWC_OTHERS;
	return ret;
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
	comm->plans.prepared = true;
	if (!ret)
		ret = swc_slots_pass(&comm->slots);
	pthread_mutex_unlock(&comm->order);
	if (!ret)
		swc_uring_fill(sqe, comm->ctx->fd, &op.desc);
	return ret;
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

static int start_no_counts(struct swingcoll_comm *comm, struct swingcoll_req **req)
{
	if (req)
		*req = NULL;
	return no_counts(comm);
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
		      : start_no_counts(comm, req);
}

SWC_PUBLIC int swingcoll_iscatterv(const void *send, void *recv, const uint64_t *counts,
				   enum swingcoll_dtype dtype, int root,
				   struct swingcoll_comm *comm, struct swingcoll_req **req)
{
	return counts ? start(comm, CALL_V(SCATTER, send, recv, counts, dtype, root), req)
		      : start_no_counts(comm, req);
}

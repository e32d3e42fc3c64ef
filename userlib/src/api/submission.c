// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What becomes of a checked collective that goes to the kernel: its plan, a request from the communicator's pool, its
 * submission, and its outcome; and outcomes that come by the caller's own ring.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/priv.h"

/* ---- requests ---- */

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

bool swc_submission_has_room(const struct swingcoll_comm *comm)
{
	return free_reqs(comm);
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

/* ---- submission ---- */

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

/*
 * A collective could not be submitted. The other ranks may have submitted it: without a deadline they would
 * wait for this one for ever, so for lack of memory it ends the communicator, for all.
 */
static int lose_turn(struct swingcoll_comm *comm, int error)
{
	struct swc_comm_ref ref = { .comm = comm->handle };

	if ((error != -ENOMEM && error != -EDQUOT) || comm->op_timeout_ms != SWINGCOLL_NO_DEADLINE)
		return error;
	swc_context_ioctl(comm->ctx, SWC_IOC_COMM_ABORT, &ref);
	return -ECONNABORTED;
}

/* Read the outcome of a request that is done, and return it to the pool. */
static int outcome(struct swingcoll_req *req, struct swingcoll_result *result)
{
	struct swingcoll_comm *comm = req->comm;
	int error = req->error;

	if (!error)
		swc_submission_note(comm, req->algo);
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

int swc_submission_wait(struct swingcoll_comm *comm, struct swc_coll_op *op, bool announced)
{
	struct swingcoll_req *req;
	int ret = queue(comm, op, SWC_OP_WAITING, announced, &req);

	if (ret)
		ret = lose_turn(comm, ret);
	pthread_mutex_unlock(&comm->order);
	if (ret)
		return swc_debug_failed(comm, ret);
	ret = swc_reaper_wait(comm->reaper, req, &comm->hook);
	return ret ? ret : outcome(req, NULL);
}

int swc_submission_start(struct swingcoll_comm *comm, struct swc_coll_op *op,
			 struct swingcoll_req **req)
{
	int ret;

	pthread_mutex_lock(&comm->order);
	ret = queue(comm, op, 0, false, req);
	if (ret)
		ret = lose_turn(comm, ret);
	pthread_mutex_unlock(&comm->order);
	return ret ? swc_debug_failed(comm, ret) : swc_reaper_push(comm->reaper);
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

SWC_PUBLIC int swingcoll_cqe_result(struct swingcoll_comm *comm, const struct io_uring_cqe *cqe,
				    struct swingcoll_result *result)
{
	uint64_t word;
	int error;

	if (!comm || !cqe)
		return -EINVAL;
	error = swc_uring_read(cqe, &word);
	if (!error)
		swc_submission_note(comm, swc_plans_algo(&comm->plans, SWC_CQE_PLAN(word)));
	if (result)
		*result = (struct swingcoll_result){
			.error = error,
			.culprit = error ? SWC_CQE_CULPRIT(word) : -1,
			.time_ns = error ? 0 : SWC_CQE_TIME_NS(word),
			.algo = error ? "?" : swc_plans_algo(&comm->plans, SWC_CQE_PLAN(word)),
		};
	return error;
}

SWC_PUBLIC const char *swingcoll_comm_algo(const struct swingcoll_comm *comm)
{
	const char *algo = __atomic_load_n(&comm->last_algo, __ATOMIC_RELAXED);

	return algo ? algo : "?";
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Nonblocking calls: each is a generalized request of MPI, which all of MPI's calls for requests
 * understand, mixed with MPI's own. It is completed by progress.c, which Open MPI calls from its
 * progress engine; MPICH has an extension by which it polls.
 *
 * swingcoll takes a limited number of operations at once, while MPI has no such limit and may not
 * wait in a nonblocking call. So requests that do not fit are queued at the communicator, in order,
 * and whatever comes later on it waits behind them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "pmpi/requests.h"

enum state {
	RUNNING,
	DONE,
	RELEASED, /* MPI's request is gone, or will be with its completion */
};

/**
 * struct pmpi_request - a nonblocking call
 *
 * Freed by whichever comes last, the end of the call or MPI's release of the request.
 *
 * @req: NULL while queued, and when done
 * @next: in the queue
 * @error: of MPI
 */
struct pmpi_request {
	struct pmpi_pollable pollable; /* first */
	struct pmpi_call call;
	struct pmpi_stage stage;
	struct swingcoll_req *req;
	struct pmpi_request *next;
	MPI_Request mpi;
	int error;
	enum state state; /* atomic */
};

static pthread_mutex_t lock =
	PTHREAD_MUTEX_INITIALIZER; /* of all queues; nothing is called under it */

/* ---- what MPI calls ---- */

static int query(void *extra, MPI_Status *status)
{
	struct pmpi_request *r = extra;

	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = MPI_UNDEFINED;
	status->MPI_TAG = MPI_UNDEFINED;
	return r->error;
}

/* MPICH calls this at once when the program frees the request of a running call. */
static int release(void *extra)
{
	struct pmpi_request *r = extra;

	if (__atomic_exchange_n(&r->state, RELEASED, __ATOMIC_ACQ_REL) == DONE)
		free(r);
	return MPI_SUCCESS;
}

/* Collectives cannot be cancelled. */
static int cancel(void *extra, int complete)
{
	(void)extra;
	(void)complete;
	return MPI_SUCCESS;
}

#ifdef OPEN_MPI
static int start_mpi_request(struct pmpi_request *r)
{
	return PMPI_Grequest_start(query, release, cancel, r, &r->mpi);
}
#else
static int poll_mpi_request(void *extra, MPI_Status *status)
{
	(void)extra;
	(void)status;
	pmpi_progress_poll();
	return MPI_SUCCESS;
}

static int wait_for_mpi_requests(int n, void **extra, double timeout, MPI_Status *status)
{
	(void)timeout;
	(void)status;
	for (int i = 0; i < n; i++)
		while (__atomic_load_n(&((struct pmpi_request *)extra[i])->state,
				       __ATOMIC_ACQUIRE) == RUNNING)
			pmpi_progress(NULL);
	return MPI_SUCCESS;
}

static int start_mpi_request(struct pmpi_request *r)
{
	return PMPIX_Grequest_start(query, release, cancel, poll_mpi_request, wait_for_mpi_requests,
				    r, &r->mpi);
}
#endif

/* ---- queues ---- */

static bool is_queued(struct pmpi_comm *comm)
{
	return __atomic_load_n(&comm->queue, __ATOMIC_ACQUIRE);
}

static void append(struct pmpi_request *r)
{
	struct pmpi_request **link = &r->call.comm->queue;

	pthread_mutex_lock(&lock);
	while (*link)
		link = &(*link)->next;
	__atomic_store_n(link, r, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

static void remove_first(struct pmpi_comm *comm)
{
	pthread_mutex_lock(&lock);
	__atomic_store_n(&comm->queue, comm->queue->next, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

/* ---- completion ---- */

static void finish(struct pmpi_request *r, int error)
{
	const struct pmpi_call *c = &r->call;
	MPI_Request mpi = r->mpi;

	r->error = pmpi_stage_end(&r->stage, c, !error);
	if (error)
		r->error = pmpi_error_class(c, error);
	if (r->call.held != MPI_DATATYPE_NULL)
		PMPI_Type_free(&r->call.held);
	pmpi_comm_put(c->comm);
	if (__atomic_exchange_n(&r->state, DONE, __ATOMIC_ACQ_REL) == RELEASED)
		free(r);
	else
		PMPI_Grequest_complete(mpi); /* r may be gone after this */
}

static bool poll(struct pmpi_pollable *p)
{
	struct pmpi_request *r = (struct pmpi_request *)p;
	struct pmpi_comm *comm = r->call.comm;
	int ret;

	if (!r->req) {
		if (comm->queue != r)
			return false;
		ret = pmpi_start(&r->call, &r->stage, &r->req);
		if (ret == -EAGAIN)
			return false;
		remove_first(comm);
		if (ret) {
			finish(r, ret);
			return true;
		}
	}
	ret = swingcoll_test(r->req, NULL);
	if (ret == -EINPROGRESS)
		return false;
	finish(r, ret);
	return true;
}

/* ---- start ---- */

/* The program may free the type while the call runs. */
static int hold_type(struct pmpi_call *c)
{
	int ret = PMPI_Type_dup(c->recv_type, &c->held);

	if (ret == MPI_SUCCESS)
		c->recv_type = c->held;
	return ret;
}

bool pmpi_begin(struct pmpi_call *c, MPI_Request *request, int *ret)
{
	struct pmpi_request *r;
	int error = -EAGAIN;

	if (!pmpi_decide(c, false))
		return false;
	pmpi_count(&pmpi_counts[c->name].offloaded);
	*ret = MPI_ERR_NO_MEM;
	r = calloc(1, sizeof(*r));
	if (!r)
		goto err;
	r->call = *c;
	r->call.keep = true;
	r->call.held = MPI_DATATYPE_NULL;
	*ret = pmpi_stage_begin(&r->stage, &r->call);
	if (*ret == MPI_SUCCESS && r->stage.recv_copy && !pmpi_type_find(c->recv_type))
		*ret = hold_type(&r->call);
	if (*ret == MPI_SUCCESS)
		*ret = start_mpi_request(r);
	if (*ret != MPI_SUCCESS)
		goto err_end;
	pmpi_comm_get(c->comm);
	*request = r->mpi;
	r->pollable.poll = poll;
	if (!is_queued(c->comm))
		error = pmpi_start(&r->call, &r->stage, &r->req);
	if (error == -EAGAIN)
		append(r);
	if (error && error != -EAGAIN)
		finish(r, error);
	else
		pmpi_progress_add(&r->pollable);
	return true;

err_end:
	pmpi_stage_end(&r->stage, &r->call, false);
	free(r);
err:
	*ret = pmpi_error(c, *ret);
	return true;
}

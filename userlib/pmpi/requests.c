// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Nonblocking calls: each is a generalized request of MPI, which all of MPI's calls for requests
 * understand, mixed with MPI's own. It is completed by progress.c, which is called from MPI's progress
 * engine; MPICH has an extension by which it polls as well, whatever its engine.
 *
 * Persistent calls: a generalized request ends with its first completion, so each is a persistent
 * receive of an empty message, which this rank sends to itself when the call has ended. Only the
 * functions that start and free requests have to know that there is more to it, and those that complete
 * them, if there has been an error (completions.c).
 *
 * swingcoll takes a limited number of operations at once, while MPI has no such limit and may not
 * wait in a nonblocking call. So requests that do not fit are queued at the communicator, in order,
 * and whatever comes later on it waits behind them. So do the calls of vector.c, which swingcoll gets
 * in two parts: they stay first in the queue until it has both.
 *
 * swingcoll matches the calls of a communicator in the order in which they come. MPI demands this of
 * persistent requests only where they are made: ranks may start them in different orders, among each other
 * and among other calls. So each has a communicator of swingcoll, with a queue, of its own (slots in comm.c).
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/requests.h"

enum state {
	RUNNING,
	DONE,
	RELEASED, /* MPI's request is gone, or will be with its completion */
};

struct copy {
	struct copy *next;
	char bytes[];
};

/**
 * struct pmpi_request - a nonblocking or persistent call
 *
 * Freed by whichever comes last, the end of the call or MPI's release of the request. A persistent
 * one that is inactive is DONE.
 *
 * @req: NULL while queued, and when done
 * @next: in the queue
 * @steps: of a call of vector.c; swingcoll's request is there
 * @error: of MPI; of a persistent one, until somebody asks for it: atomic, and counted in pmpi_nerrors
 * @again: of a persistent one of vector.c, what its starts begin
 * @types: copies of its arrays of types, or NULL
 * @held: duplicates of types that are used later, when the program may have freed them
 * @copies: of arrays of counts and displacements, likewise
 * @tag: of the message that completes a persistent one, else 0
 * @next_persistent: in the same bucket
 */
struct pmpi_request {
	struct pmpi_pollable pollable; /* first */
	struct pmpi_call call;
	struct pmpi_stage stage;
	struct swingcoll_req *req;
	struct pmpi_request *next;
	struct pmpi_steps *steps;
	struct pmpi_vector *again;
	bool queued; /* with @steps */
	MPI_Request mpi;
	int error;
	enum state state; /* atomic */
	MPI_Datatype *types;
	MPI_Datatype *held;
	int nheld;
	struct copy *copies;
	int tag;
	struct pmpi_request *next_persistent;
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

	r->next = NULL; /* a persistent one may have been there before */
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

int pmpi_nerrors;

/* Returns the error before. */
static int set_error(struct pmpi_request *r, int error)
{
	int before = __atomic_exchange_n(&r->error, error, __ATOMIC_ACQ_REL);

	__atomic_fetch_add(&pmpi_nerrors, (error != MPI_SUCCESS) - (before != MPI_SUCCESS),
			   __ATOMIC_ACQ_REL);
	return before;
}

static void let_go(struct pmpi_request *r)
{
	struct copy *copy;

	while ((copy = r->copies)) {
		r->copies = copy->next;
		free(copy);
	}
	while (r->nheld)
		PMPI_Type_free(&r->held[--r->nheld]);
	free(r->held);
	free(r->types);
	r->held = r->types = NULL;
}

static void destroy(struct pmpi_request *r)
{
	if (r->tag)
		set_error(r, MPI_SUCCESS);
	let_go(r);
	if (r->call.comm)
		pmpi_comm_put(r->call.comm);
	free(r->again);
	free(r);
}

/*
 * As soon as it has its message, the request may be started again. If the program has freed it, MPI's request is freed
 * now: MPICH 4.0 writes to a persistent one that is freed while it is active.
 */
static void finish_persistent(struct pmpi_request *r, int error)
{
	MPI_Request mpi = r->mpi;
	int tag = r->tag;
	bool released;

	set_error(r, error);
	r->req = NULL;
	released = __atomic_exchange_n(&r->state, DONE, __ATOMIC_ACQ_REL) == RELEASED;
	if (released)
		destroy(r);
	pmpi_progress_send(tag);
	if (released) {
		PMPI_Wait(&mpi, MPI_STATUS_IGNORE);
		PMPI_Request_free(&mpi);
	}
}

static void finish_nonblocking(struct pmpi_request *r, int error)
{
	MPI_Request mpi = r->mpi;

	r->error = error;
	let_go(r);
	pmpi_comm_put(r->call.comm);
	if (__atomic_exchange_n(&r->state, DONE, __ATOMIC_ACQ_REL) == RELEASED)
		free(r);
	else
		PMPI_Grequest_complete(mpi); /* r may be gone after this */
}

/* With an error of MPI. */
static void finish_with(struct pmpi_request *r, int error)
{
	pmpi_owe();
	if (r->tag)
		finish_persistent(r, error);
	else
		finish_nonblocking(r, error);
}

static void finish(struct pmpi_request *r, int error)
{
	int ret = pmpi_buffers_end(&r->stage, &r->call, !error);

	if (error)
		ret = pmpi_error_class(&r->call, error);
	finish_with(r, ret);
}

/* Whatever comes later on the communicator may go to swingcoll when both parts of this have. */
static bool poll_steps(struct pmpi_pollable *p)
{
	struct pmpi_request *r = (struct pmpi_request *)p;
	struct pmpi_comm *comm = r->call.comm;
	int ret, error;

	if (r->queued && comm->queue != r)
		return false;
	ret = pmpi_steps_poll(r->steps, &error);
	if (r->queued && (ret != -EINPROGRESS || pmpi_steps_moving(r->steps))) {
		r->queued = false;
		remove_first(comm);
	}
	if (ret == -EINPROGRESS)
		return false;
	if (ret)
		error = pmpi_error_class(&r->call, ret);
	pmpi_steps_end(r->steps);
	r->steps = NULL;
	finish_with(r, error);
	return true;
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

/* The program may free the type while the call runs, or before it is started again. */
static int hold(struct pmpi_request *r, MPI_Datatype *type)
{
	MPI_Datatype *more;
	int ret;

	if (pmpi_type_find(*type))
		return MPI_SUCCESS;
	more = realloc(r->held, ((size_t)r->nheld + 1) * sizeof(*more));
	if (!more)
		return MPI_ERR_NO_MEM;
	r->held = more;
	/* A duplicate would have the attributes, too, and call the program's functions for them. */
	ret = PMPI_Type_contiguous(1, *type, &r->held[r->nheld]);
	if (ret != MPI_SUCCESS)
		return ret;
	*type = r->held[r->nheld++];
	return PMPI_Type_commit(type);
}

static const void *copy_of(struct pmpi_request *r, const void *array, size_t bytes)
{
	struct copy *copy = malloc(sizeof(*copy) + bytes);

	if (!copy)
		return NULL;
	copy->next = r->copies;
	r->copies = copy;
	return memcpy(copy->bytes, array, bytes);
}

#define HOLD_ARRAY(r, array, n)                                                                    \
	(!(array) || ((array) = copy_of(r, array, (size_t)(n) * sizeof(*(array)))) != NULL)

/*
 * Likewise the arrays of a call or a side, with an entry for each rank. MPI demands that they remain, but takes what
 * it needs of them at once, and there are programs that rely on it: mpi4py 3.1.
 */
#define HOLD_ARRAYS(r, s, n)                                                                       \
	(HOLD_ARRAY(r, (s)->counts, n) && HOLD_ARRAY(r, (s)->displs, n) &&                         \
			 HOLD_ARRAY(r, (s)->large_counts, n) &&                                    \
			 HOLD_ARRAY(r, (s)->large_displs, n)                                       \
		 ? MPI_SUCCESS                                                                     \
		 : MPI_ERR_NO_MEM)

/* The type of the buffer to which results are copied when the call ends. */
static MPI_Datatype *result_type(struct pmpi_call *c)
{
	return c->coll == SWINGCOLL_GATHER ? &c->root_type : &c->recv_type;
}

/* Hand the call to swingcoll, now or when the calls before it have been taken. */
static void start(struct pmpi_request *r)
{
	int error = -EAGAIN;

	r->pollable.poll = poll;
	if (!is_queued(r->call.comm))
		error = pmpi_start(&r->call, &r->stage, &r->req);
	if (error == -EAGAIN)
		append(r);
	if (error && error != -EAGAIN)
		finish(r, error);
	else
		pmpi_progress_add(&r->pollable);
}

bool pmpi_begin(struct pmpi_call *c, MPI_Request *request, int *ret)
{
	struct pmpi_request *r;

	if (!pmpi_decide(c, PMPI_FORM_NONBLOCKING))
		return false;
	pmpi_count(&pmpi_counts[c->name].offloaded);
	*ret = MPI_ERR_NO_MEM;
	r = calloc(1, sizeof(*r));
	if (!r)
		goto err;
	r->call = *c;
	r->call.keep = true;
	*ret = pmpi_buffers_begin(&r->stage, &r->call);
	if (*ret == MPI_SUCCESS && r->stage.recv_copy)
		*ret = hold(r, result_type(&r->call));
	if (*ret == MPI_SUCCESS && r->stage.recv_copy)
		*ret = HOLD_ARRAYS(r, &r->call, c->comm->size);
	if (*ret == MPI_SUCCESS)
		*ret = start_mpi_request(r);
	if (*ret != MPI_SUCCESS)
		goto err_end;
	pmpi_comm_get(c->comm);
	*request = r->mpi;
	start(r);
	return true;

err_end:
	pmpi_buffers_end(&r->stage, &r->call, false);
	r->call.comm = NULL;
	destroy(r);
err:
	*ret = pmpi_error(c, *ret);
	return true;
}

static int hold_side(struct pmpi_request *r, struct pmpi_side *s, MPI_Datatype *copies, int n)
{
	int ret = HOLD_ARRAYS(r, s, n);

	if (ret != MPI_SUCCESS)
		return ret;
	if (!s->types)
		return hold(r, &s->type);
	for (int i = 0; i < n && ret == MPI_SUCCESS; i++) {
		/* The type of an empty share may be anything. */
		copies[i] = pmpi_count_of(s, i) ? s->types[i] : MPI_BYTE;
		ret = hold(r, &copies[i]);
	}
	s->types = copies;
	return ret;
}

/* The types and arrays that this rank gives; those of a side that it does not have may be anything. */
static int hold_sides(struct pmpi_request *r, struct pmpi_vector *v)
{
	const struct pmpi_call *c = &v->call;
	bool root = c->comm->rank == c->root;
	int ret = MPI_SUCCESS, n = c->comm->size;

	if (v->recv.types) {
		r->types = malloc(2 * (size_t)n * sizeof(*r->types));
		if (!r->types)
			return MPI_ERR_NO_MEM;
	}
	if (v->send.buf != MPI_IN_PLACE && (root || c->coll != SWINGCOLL_SCATTER))
		ret = hold_side(r, &v->send, r->types, n);
	if (ret == MPI_SUCCESS && v->recv.buf != MPI_IN_PLACE &&
	    (root || c->coll != SWINGCOLL_GATHER))
		ret = hold_side(r, &v->recv, r->types ? r->types + n : NULL, n);
	return ret;
}

/* Its steps stand first in the queue, or behind the calls before. */
static void start_steps(struct pmpi_request *r)
{
	r->pollable.poll = poll_steps;
	r->queued = true;
	append(r);
	pmpi_progress_add(&r->pollable);
	pmpi_progress_poll();
}

/* Begin the first steps of such a call; NULL: *why, or MPI_SUCCESS if MPI has to refuse it. */
static struct pmpi_request *make_vector_request(struct pmpi_vector *v, int *why)
{
	struct pmpi_request *r = calloc(1, sizeof(*r));
	bool refused = false;

	*why = MPI_ERR_NO_MEM;
	if (!r)
		return NULL;
	v->call.keep = true;
	r->steps = pmpi_steps_begin(v, &refused);
	if (r->steps && !refused) {
		r->call = v->call;
		pmpi_comm_get(r->call.comm);
		return r;
	}
	if (refused) {
		*why = MPI_SUCCESS;
		pmpi_count_fallback(v->call.name, PMPI_WHY_COUNTS);
	}
	if (r->steps)
		pmpi_steps_end(r->steps);
	free(r);
	return NULL;
}

static void destroy_vector_request(struct pmpi_request *r)
{
	if (r->steps)
		pmpi_steps_end(r->steps);
	destroy(r);
}

bool pmpi_begin_vector(struct pmpi_vector *v, MPI_Request *request, int *ret)
{
	struct pmpi_request *r;

	if (!pmpi_decide(&v->call, PMPI_FORM_NONBLOCKING))
		return false;
	r = make_vector_request(v, ret);
	if (!r && *ret == MPI_SUCCESS)
		return false;
	if (!r)
		goto err;
	*ret = hold_sides(r, pmpi_steps_vector(r->steps));
	if (*ret == MPI_SUCCESS)
		*ret = start_mpi_request(r);
	if (*ret != MPI_SUCCESS)
		goto err_destroy;
	*request = r->mpi;
	start_steps(r);
	return true;

err_destroy:
	destroy_vector_request(r);
err:
	*ret = pmpi_error(&v->call, *ret);
	return true;
}

/* ---- persistent requests ---- */

#define BUCKETS 64

static struct pmpi_request *persistent[BUCKETS];
unsigned int pmpi_npersistent; /* in them; read without the lock */
static pthread_mutex_t persistent_lock = PTHREAD_MUTEX_INITIALIZER; /* of the two */

static struct pmpi_request **bucket_of(MPI_Request mpi)
{
	return &persistent[(uint64_t)(uintptr_t)mpi * 0x9e3779b97f4a7c15 >> 58];
}

static void remember(struct pmpi_request *r)
{
	struct pmpi_request **bucket = bucket_of(r->mpi);

	pthread_mutex_lock(&persistent_lock);
	r->next_persistent = *bucket;
	*bucket = r;
	__atomic_store_n(&pmpi_npersistent, pmpi_npersistent + 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&persistent_lock);
}

/* NULL: the request is MPI's own. */
static struct pmpi_request *find(MPI_Request mpi, bool forget)
{
	struct pmpi_request **link, *r;

	if (__builtin_expect(!pmpi_has_persistent(), 1))
		return NULL;
	pthread_mutex_lock(&persistent_lock);
	for (link = bucket_of(mpi); *link && (*link)->mpi != mpi;)
		link = &(*link)->next_persistent;
	r = *link;
	if (r && forget) {
		*link = r->next_persistent;
		__atomic_store_n(&pmpi_npersistent, pmpi_npersistent - 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&persistent_lock);
	return r;
}

int pmpi_take_error(MPI_Request mpi)
{
	struct pmpi_request *r = find(mpi, false);

	return r ? set_error(r, MPI_SUCCESS) : MPI_SUCCESS;
}

/* All types and arrays that the call's starts will use; those of a side that it does not have may be anything. */
static int hold_all(struct pmpi_request *r)
{
	struct pmpi_call *c = &r->call;
	bool moves = (c->coll == SWINGCOLL_ALLGATHER && !pmpi_is_prefix(c)) ||
		     c->coll == SWINGCOLL_ALLTOALL;
	bool rooted = c->coll == SWINGCOLL_GATHER || c->coll == SWINGCOLL_SCATTER;
	int ret = HOLD_ARRAYS(r, c, c->comm->size);

	if (ret == MPI_SUCCESS)
		ret = hold(r, &c->recv_type);
	if (ret == MPI_SUCCESS && moves && c->send != MPI_IN_PLACE)
		ret = hold(r, &c->send_type);
	if (ret == MPI_SUCCESS && rooted && c->comm->rank == c->root)
		ret = hold(r, &c->root_type);
	return ret;
}

/*
 * Whether swingcoll is to carry it out, by a slot, which is c->comm then; the request must get a reference.
 * That is so, too, if the ranks could not agree on one: *error of swingcoll.
 */
static bool decide_persistent(struct pmpi_call *c, int *error)
{
	enum pmpi_reason why = PMPI_WHY_PERSISTENT;
	struct pmpi_comm *slot;

	if (!pmpi_decide(c, PMPI_FORM_PERSISTENT))
		return false;
	pmpi_wait_for_queue(c);
	*error = pmpi_comm_find_slot(c->comm, &slot);
	if (*error && pmpi_was_refused(c, *error))
		why = PMPI_WHY_REFUSED;
	else if (*error)
		return true;
	else if (slot && c->tells && !slot->peers) /* on all ranks, or none */
		why = PMPI_WHY_COMM;
	else if (slot) {
		c->comm = slot;
		return true;
	}
	pmpi_count_fallback(c->name, why);
	return false;
}

bool pmpi_begin_persistent(struct pmpi_call *c, MPI_Request *request, int *ret)
{
	struct pmpi_request *r;

	if (!decide_persistent(c, ret))
		return false;
	if (*ret)
		goto err;
	pmpi_count(&pmpi_counts[c->name].offloaded);
	*ret = MPI_ERR_NO_MEM;
	r = calloc(1, sizeof(*r));
	if (!r)
		goto err;
	r->call = *c;
	r->call.keep = true;
	r->state = DONE;
	pmpi_comm_get(c->comm);
	r->tag = pmpi_progress_tag();
	*ret = hold_all(r);
	if (*ret == MPI_SUCCESS)
		*ret = pmpi_progress_receive(r->tag, &r->mpi);
	if (*ret != MPI_SUCCESS)
		goto err_destroy;
	remember(r);
	*request = r->mpi;
	return true;

err_destroy:
	destroy(r);
err:
	*ret = pmpi_error(c, *ret);
	return true;
}

/* What follows is begun anew by each start. */
bool pmpi_begin_persistent_vector(struct pmpi_vector *v, MPI_Request *request, int *ret)
{
	struct pmpi_request *r;

	if (!decide_persistent(&v->call, ret))
		return false;
	if (*ret)
		goto err;
	r = make_vector_request(v, ret);
	if (!r && *ret == MPI_SUCCESS)
		return false;
	pmpi_count(&pmpi_counts[v->call.name].offloaded);
	if (!r)
		goto err;
	r->state = DONE;
	r->tag = pmpi_progress_tag();
	*ret = MPI_ERR_NO_MEM;
	r->again = malloc(sizeof(*r->again));
	if (r->again) {
		*r->again = *v;
		*ret = hold_sides(r, r->again);
	}
	if (*ret == MPI_SUCCESS)
		*ret = pmpi_progress_receive(r->tag, &r->mpi);
	if (*ret != MPI_SUCCESS)
		goto err_destroy;
	pmpi_steps_end(r->steps);
	r->steps = NULL;
	remember(r);
	*request = r->mpi;
	return true;

err_destroy:
	destroy_vector_request(r);
err:
	*ret = pmpi_error(&v->call, *ret);
	return true;
}

/* The buffers, or the first steps. */
static int prepare_again(struct pmpi_request *r)
{
	bool refused = false;

	if (!r->again)
		return pmpi_buffers_begin(&r->stage, &r->call);
	r->steps = pmpi_steps_begin(r->again, &refused);
	if (!r->steps)
		return MPI_ERR_NO_MEM;
	/* What was checked when the request was made has changed. */
	return refused ? MPI_ERR_ARG : MPI_SUCCESS;
}

/* As if it had never been started. */
static void unprepare(struct pmpi_request *r)
{
	if (!r->again)
		pmpi_buffers_end(&r->stage, &r->call, false);
	else if (r->steps)
		pmpi_steps_end(r->steps);
	r->steps = NULL;
}

/* The communicator's error handler may have gone with it: as in completions.c, that of MPI_COMM_WORLD. */
static int start_again(struct pmpi_request *r)
{
	int ret = MPI_ERR_REQUEST;

	if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == RUNNING)
		goto err;
	ret = prepare_again(r);
	if (ret == MPI_SUCCESS)
		ret = PMPI_Start(&r->mpi);
	if (ret != MPI_SUCCESS)
		goto err_unprepare;
	set_error(r, MPI_SUCCESS);
	__atomic_store_n(&r->state, RUNNING, __ATOMIC_RELEASE);
	if (r->again)
		start_steps(r);
	else
		start(r);
	return MPI_SUCCESS;

err_unprepare:
	unprepare(r);
err:
	PMPI_Comm_call_errhandler(MPI_COMM_WORLD, ret);
	return ret;
}

int pmpi_Start(MPI_Request *request)
{
	struct pmpi_request *r = find(*request, false);

	return r ? start_again(r) : PMPI_Start(request);
}

int pmpi_Startall(int n, MPI_Request *requests)
{
	int ret = MPI_SUCCESS, first = 0;

	/* Those between two of swingcoll are started together. */
	for (int i = 0; i < n && ret == MPI_SUCCESS; i++) {
		struct pmpi_request *r = find(requests[i], false);

		if (!r)
			continue;
		if (i > first)
			ret = PMPI_Startall(i - first, requests + first);
		if (ret == MPI_SUCCESS)
			ret = start_again(r);
		first = i + 1;
	}
	if (ret == MPI_SUCCESS && (n > first || !n))
		ret = PMPI_Startall(n - first, requests + first);
	return ret;
}

int pmpi_Request_free(MPI_Request *request)
{
	struct pmpi_request *r = find(*request, true);

	if (!r)
		return PMPI_Request_free(request);
	if (__atomic_exchange_n(&r->state, RELEASED, __ATOMIC_ACQ_REL) == RUNNING) {
		*request = MPI_REQUEST_NULL;
		return MPI_SUCCESS;
	}
	destroy(r);
	return PMPI_Request_free(request);
}

/* As a nonblocking one: it goes on, and what waits for it in MPI must not be cancelled either. */
int pmpi_Cancel(MPI_Request *request)
{
	return find(*request, false) ? MPI_SUCCESS : PMPI_Cancel(request);
}

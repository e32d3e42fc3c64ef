// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * While a rank waits in swingcoll, MPI must go on: a peer may need it to move a message before it
 * can come to the same collective. And while a rank waits in MPI, requests of swingcoll that have
 * completed must be noticed. Open MPI calls us for that from its own progress engine. MPICH polls
 * each generalized request by itself (requests.c); its engine has no such list, but if it moves messages
 * by UCX, it calls a function of that library in each turn, which is defined here as well.
 *
 * The lock guards the list. Whoever finds it held leaves the work to the holder, so nothing waits
 * for it that runs inside MPI; adding waits, but holders do not block.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "pmpi/pmpi.h"

/* So long MPI_Finalize() waits for the next of the requests that still run. */
#define PATIENCE_S 60

/*
 * A message that nobody sends. Asking for it makes MPI progress, and unlike a test, any number of
 * threads may ask. A probe would not do: MPICH looks for messages to oneself without progressing.
 */
static MPI_Comm self = MPI_COMM_NULL;
static MPI_Request never = MPI_REQUEST_NULL;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pmpi_pollable *list;
static unsigned int nended;  /* of those that have been in the list */
static bool some;	     /* whether the list has any; read without the lock */
static bool in_engines_list; /* MPI's engine knows of us, or is about to */

/*
 * A callback of poll() may lead back here: MPI completes a request, and runs its engine. The lock
 * is then held by this thread, and the inner call does nothing.
 */
void pmpi_progress_poll(void)
{
	struct pmpi_pollable **link = &list;

	if (!__atomic_load_n(&some, __ATOMIC_RELAXED) || pthread_mutex_trylock(&lock))
		return;
	while (*link) {
		struct pmpi_pollable *p = *link, *next = p->next;

		if (p->poll(p)) {
			*link = next;
			nended++;
		} else {
			link = &p->next;
		}
	}
	__atomic_store_n(&some, list != NULL, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}

void pmpi_progress(void *unused)
{
	int done;

	(void)unused;
	PMPI_Request_get_status(never, &done, MPI_STATUS_IGNORE);
	pmpi_progress_poll();
}

#ifdef OPEN_MPI
static int in_engine(void)
{
	pmpi_progress_poll();
	return 0;
}

typedef int (*engine_call)(int (*callback)(void));

static void call_engine(const char *name)
{
	engine_call call = (engine_call)dlsym(RTLD_DEFAULT, name);

	if (call)
		call(in_engine);
}

bool pmpi_progress_has_engine(void)
{
	return dlsym(RTLD_DEFAULT, "opal_progress_register");
}
#else
static bool turned;  /* MPI's engine, while @watched */
static bool usable;  /* for polls */
static bool watched; /* by us: whether that is so, or with pollables */

static void call_engine(const char *name)
{
	(void)name;
	watched = usable;
}

typedef unsigned int (*turn)(void *worker);
static unsigned int find_and_turn(void *worker);
static turn ucx = find_and_turn; /* atomic */

/*
 * UCX's own. It is loaded, as somebody has called its function; but a library that was loaded with
 * RTLD_LOCAL may have brought it, where only that sees it. The reference is kept, as @ucx is.
 */
static turn find_turn(void)
{
	turn found = (turn)dlsym(RTLD_NEXT, "ucp_worker_progress");
	void *lib = found ? NULL : dlopen("libucp.so.0", RTLD_NOLOAD | RTLD_LAZY);

	return lib ? (turn)dlsym(lib, "ucp_worker_progress") : found;
}

static unsigned int find_and_turn(void *worker)
{
	turn found = find_turn();

	if (!found)
		abort();
	__atomic_store_n(&ucx, found, __ATOMIC_RELAXED);
	return found(worker);
}

/*
 * MPICH holds a lock here, if it has threads, that it needs for what polling calls. Without them it has
 * none. It calls this in each turn of a wait, so programs without pollables take the short way.
 */
PMPI_PUBLIC unsigned int ucp_worker_progress(void *worker)
{
	turn progress = __atomic_load_n(&ucx, __ATOMIC_RELAXED);
	unsigned int events;

	if (__builtin_expect(!watched, 1))
		return progress(worker);
	events = progress(worker);
	turned = true;
	if (in_engines_list)
		pmpi_progress_poll();
	return events;
}

/* Does it turn there when MPI is asked for a message that nobody sends? */
bool pmpi_progress_has_engine(void)
{
	int level = MPI_THREAD_MULTIPLE, done;
	MPI_Request req;

	PMPI_Query_thread(&level);
	if (level == MPI_THREAD_MULTIPLE ||
	    PMPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, &req) != MPI_SUCCESS)
		return false;
	turned = false;
	watched = true;
	PMPI_Request_get_status(req, &done, MPI_STATUS_IGNORE);
	watched = false;
	PMPI_Cancel(&req);
	PMPI_Wait(&req, MPI_STATUS_IGNORE);
	usable = turned;
	return usable;
}
#endif

/*
 * At the end, as requests of one communicator complete in order. MPI's engine looks at the list from
 * the first entry on: programs that wait for nothing but MPI's own requests do not pay for it.
 */
void pmpi_progress_add(struct pmpi_pollable *p)
{
	struct pmpi_pollable **link = &list;
	bool first;

	p->next = NULL;
	pthread_mutex_lock(&lock);
	while (*link)
		link = &(*link)->next;
	*link = p;
	__atomic_store_n(&some, true, __ATOMIC_RELAXED);
	first = !in_engines_list;
	in_engines_list = true;
	pthread_mutex_unlock(&lock);
	if (first)
		call_engine("opal_progress_register");
}

/* ---- messages to this rank itself ---- */

static int last_tag = 32767; /* MPI guarantees so many */

#ifdef OPEN_MPI
static void wake_waiter(void)
{
}
#else
static int query(void *extra, MPI_Status *status)
{
	(void)extra;
	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	return MPI_SUCCESS;
}

static int release(void *extra)
{
	(void)extra;
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	(void)extra;
	(void)complete;
	return MPI_SUCCESS;
}

/*
 * MPICH's waits look at their requests again when the engine has counted something, and it does not
 * count messages to oneself. But it does what ends a generalized request.
 */
static void wake_waiter(void)
{
	MPI_Request req;

	if (PMPI_Grequest_start(query, release, cancel, NULL, &req) != MPI_SUCCESS)
		return;
	PMPI_Grequest_complete(req);
	PMPI_Wait(&req, MPI_STATUS_IGNORE);
}
#endif

/* From 1 on. */
int pmpi_progress_tag(void)
{
	static unsigned int last; /* atomic */

	return (int)(__atomic_fetch_add(&last, 1, __ATOMIC_RELAXED) % (unsigned int)last_tag) + 1;
}

int pmpi_progress_last_tag(void)
{
	return last_tag;
}

int pmpi_progress_receive(int tag, MPI_Request *request)
{
	return PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, tag, self, request);
}

void pmpi_progress_send(int tag)
{
	PMPI_Send(NULL, 0, MPI_BYTE, 0, tag, self);
	wake_waiter();
}

/* It may run inside MPI, where a wait of one thread could be for itself: so no waits. */
int pmpi_progress_copy(const void *from, MPI_Datatype from_type, void *to, MPI_Datatype to_type)
{
	int tag = pmpi_progress_tag(), done = 0, ret;
	MPI_Request req[2];

	ret = PMPI_Irecv(to, 1, to_type, 0, tag, self, &req[0]);
	if (ret != MPI_SUCCESS)
		return ret;
	ret = PMPI_Isend(from, 1, from_type, 0, tag, self, &req[1]);
	if (ret != MPI_SUCCESS) {
		PMPI_Cancel(&req[0]);
		PMPI_Wait(&req[0], MPI_STATUS_IGNORE);
	}
	while (ret == MPI_SUCCESS && !done)
		ret = PMPI_Testall(2, req, &done, MPI_STATUSES_IGNORE);
	return ret;
}

/* ---- begin and end ---- */

int pmpi_progress_init(void)
{
	int ret = PMPI_Comm_dup(MPI_COMM_SELF, &self), *most, found = 0;

	if (PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found) == MPI_SUCCESS && found)
		last_tag = *most;
	if (ret == MPI_SUCCESS)
		ret = PMPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, self, &never);
	return ret;
}

/* The last thread. If a rank has died, messages of MPI may never come, so the time has a limit. */
bool pmpi_progress_drain(void)
{
	unsigned int before = nended;
	double end = PMPI_Wtime() + PATIENCE_S;

	while (__atomic_load_n(&some, __ATOMIC_RELAXED)) {
		pmpi_progress(NULL);
		if (nended == before && PMPI_Wtime() > end)
			return false;
		if (nended != before)
			end = PMPI_Wtime() + PATIENCE_S;
		before = nended;
	}
	return true;
}

void pmpi_progress_exit(void)
{
	if (in_engines_list)
		call_engine("opal_progress_unregister");
	in_engines_list = false;
	if (never != MPI_REQUEST_NULL) {
		PMPI_Cancel(&never);
		PMPI_Wait(&never, MPI_STATUS_IGNORE);
	}
	if (self != MPI_COMM_NULL)
		PMPI_Comm_free(&self);
}

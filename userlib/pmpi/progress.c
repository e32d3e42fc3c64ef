// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * While a rank waits in swingcoll, MPI must go on: a peer may need it to move a message before it
 * can come to the same collective. And while a rank waits in MPI, requests of swingcoll that have
 * completed must be noticed. Open MPI calls us for that from its own progress engine; MPICH polls
 * each request by itself (requests.c).
 *
 * The lock guards the list. Whoever finds it held leaves the work to the holder, so nothing waits
 * for it that runs inside MPI; adding waits, but holders do not block.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "pmpi/pmpi.h"

/*
 * A message that nobody sends. Asking for it makes MPI progress, and unlike a test, any number of
 * threads may ask. A probe would not do: MPICH looks for messages to oneself without progressing.
 */
static MPI_Comm self = MPI_COMM_NULL;
static MPI_Request never = MPI_REQUEST_NULL;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pmpi_pollable *list;
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

		if (p->poll(p))
			*link = next;
		else
			link = &p->next;
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
#else
static void call_engine(const char *name)
{
	(void)name;
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

static MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
static int last_error = MPI_ERR_OTHER; /* atomic */

/* MPI calls this in the program's wait for a message that was too long. */
static void failed(MPI_Comm *comm, int *error, ...)
{
	(void)comm;
	(void)error;
	PMPI_Comm_call_errhandler(MPI_COMM_WORLD, __atomic_load_n(&last_error, __ATOMIC_RELAXED));
}

int pmpi_progress_receive(int tag, MPI_Request *request)
{
	return PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, tag, self, request);
}

void pmpi_progress_send(int tag, int error)
{
	char too_long = 0;

	if (error != MPI_SUCCESS)
		__atomic_store_n(&last_error, error, __ATOMIC_RELAXED);
	PMPI_Send(&too_long, error != MPI_SUCCESS, MPI_BYTE, 0, tag, self);
}

/* ---- begin and end ---- */

int pmpi_progress_init(void)
{
	int ret = PMPI_Comm_dup(MPI_COMM_SELF, &self);

	if (ret == MPI_SUCCESS)
		ret = PMPI_Comm_create_errhandler(failed, &handler);
	if (ret == MPI_SUCCESS)
		ret = PMPI_Comm_set_errhandler(self, handler);
	if (ret == MPI_SUCCESS)
		ret = PMPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, self, &never);
	return ret;
}

void pmpi_progress_exit(void)
{
	if (in_engines_list)
		call_engine("opal_progress_unregister");
	if (never != MPI_REQUEST_NULL) {
		PMPI_Cancel(&never);
		PMPI_Wait(&never, MPI_STATUS_IGNORE);
	}
	if (handler != MPI_ERRHANDLER_NULL)
		PMPI_Errhandler_free(&handler);
	if (self != MPI_COMM_NULL)
		PMPI_Comm_free(&self);
}

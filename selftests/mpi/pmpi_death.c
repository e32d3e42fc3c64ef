// SPDX-License-Identifier: GPL-2.0-only
/*
 * The last rank dies in the middle of MPI collectives: each other one must get an error of the right class. Each survivor
 * prints a line for itself and leaves without MPI_Finalize, in which MPI would wait for the dead. pmpi_faults.sh runs it,
 * with an argument for a persistent request instead of a blocking call: the name of the function that waits for it when
 * the rank dies. It is started again then, which fails at once, and completed by each of the others.
 */
#include <signal.h>

#include "pmpi_test.h"

#ifdef MPIX_ERR_PROC_FAILED
#define DIED MPIX_ERR_PROC_FAILED
#else
#define DIED MPI_ERR_OTHER
#endif

static int class_of(int error)
{
	int class = MPI_SUCCESS;

	MPI_Error_class(error, &class);
	return class;
}

/* What the error handler has got last. */
static int handled;

static void handle(MPI_Comm *comm, int *error, ...)
{
	(void)comm;
	handled = class_of(*error);
}

enum way {
	WAIT,
	TEST,
	WAITANY,
	TESTANY,
	WAITALL,
	WAITALL_IGNORE,
	TESTALL,
	WAITSOME,
	TESTSOME,
	WAYS,
	BLOCKING /* no persistent request */
};
static const char *const ways[WAYS] = { "wait",	   "test",     "waitany",
					"testany", "waitall",  "waitall-ignore",
					"testall", "waitsome", "testsome" };

/* The request is the second of three, of which the first is none, and the third completes by itself. */
#define REQUESTS 3

static int by_one(enum way way, MPI_Request *all)
{
	int error = MPI_SUCCESS, flag = 0, index = -1;

	if (way == WAIT)
		return MPI_Wait(&all[1], MPI_STATUS_IGNORE);
	while (way == TEST && !flag && error == MPI_SUCCESS)
		error = MPI_Test(&all[1], &flag, MPI_STATUS_IGNORE);
	while (way == WAITANY && index != 1 && error == MPI_SUCCESS)
		error = MPI_Waitany(REQUESTS, all, &index, MPI_STATUS_IGNORE);
	while (way == TESTANY && index != 1 && error == MPI_SUCCESS)
		error = MPI_Testany(REQUESTS, all, &index, &flag, MPI_STATUS_IGNORE);
	return error;
}

/* Of the request; an error of the call itself must be MPI_ERR_IN_STATUS, and only with an error in a status. */
static int in_status(int error, MPI_Status *status)
{
	if (error == MPI_SUCCESS)
		return error;
	if (class_of(error) != MPI_ERR_IN_STATUS || handled != MPI_ERR_IN_STATUS)
		return MPI_ERR_INTERN;
	handled = class_of(status->MPI_ERROR);
	return status->MPI_ERROR;
}

static int by_all(enum way way, MPI_Request *all)
{
	MPI_Status statuses[REQUESTS];
	int error = MPI_SUCCESS, flag = 0;

	for (int i = 0; i < REQUESTS; i++)
		statuses[i].MPI_ERROR = MPI_ERR_INTERN;
	if (way == WAITALL)
		error = MPI_Waitall(REQUESTS, all, statuses);
	while (way == TESTALL && !flag && error == MPI_SUCCESS)
		error = MPI_Testall(REQUESTS, all, &flag, statuses);
	if (error != MPI_SUCCESS &&
	    (statuses[0].MPI_ERROR != MPI_SUCCESS || statuses[2].MPI_ERROR != MPI_SUCCESS))
		return MPI_ERR_INTERN;
	return in_status(error, &statuses[1]);
}

static int by_some(enum way way, MPI_Request *all)
{
	MPI_Status statuses[REQUESTS];
	int error = MPI_SUCCESS, done = 0, places[REQUESTS], found = -1;

	while (found < 0 && error == MPI_SUCCESS) {
		for (int i = 0; i < REQUESTS; i++)
			statuses[i].MPI_ERROR = MPI_ERR_INTERN;
		if (way == WAITSOME)
			error = MPI_Waitsome(REQUESTS, all, &done, places, statuses);
		else
			error = MPI_Testsome(REQUESTS, all, &done, places, statuses);
		for (int i = 0; i < done; i++)
			if (places[i] == 1)
				found = i;
			else if (error != MPI_SUCCESS && statuses[i].MPI_ERROR != MPI_SUCCESS)
				return MPI_ERR_INTERN;
	}
	return found < 0 ? MPI_ERR_INTERN : in_status(error, &statuses[found]);
}

static int complete(enum way way, MPI_Request *all)
{
	int error;

	if (way < WAITALL)
		return by_one(way, all);
	if (way == WAITALL || way == TESTALL)
		return by_all(way, all);
	if (way != WAITALL_IGNORE)
		return by_some(way, all);
	error = MPI_Waitall(REQUESTS, all, MPI_STATUSES_IGNORE);
	if (error == MPI_SUCCESS)
		return error;
	if (class_of(error) != MPI_ERR_IN_STATUS || handled != MPI_ERR_IN_STATUS)
		return MPI_ERR_INTERN;
	handled = DIED;
	return DIED;
}

static int sum_persistent(MPI_Request *req, enum way way)
{
	MPI_Request all[REQUESTS] = { MPI_REQUEST_NULL, *req, MPI_REQUEST_NULL };
	int error;

	handled = MPI_SUCCESS;
	error = MPI_Start(&all[1]);
	if (error != MPI_SUCCESS)
		return MPI_ERR_INTERN;
	MPI_Irecv(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_SELF, &all[2]);
	MPI_Send(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_SELF);
	error = complete(way, all);
	/* It can be started again, and MPI has completed the other one. */
	if (all[1] != *req || MPI_Wait(&all[2], MPI_STATUS_IGNORE) != MPI_SUCCESS)
		return MPI_ERR_INTERN;
	return error;
}

static int init_persistent(int *sum, MPI_Request *req)
{
	return PERSISTENT(Allreduce_init)(&rank, sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
					  MPI_INFO_NULL, req);
}

static enum way way_of(const char *name)
{
	for (int i = 0; i < WAYS; i++)
		if (!strcmp(name, ways[i]))
			return (enum way)i;
	_exit(2);
}

/* What a call has returned after the death. */
static bool is_told(const char *how, int error)
{
	if (class_of(error) == DIED && handled == DIED)
		return true;
	printf("survivor %d: %s: class %d, handler %d, but not %d\n", rank, how, class_of(error),
	       handled, DIED);
	return false;
}

int main(int argc, char **argv)
{
	enum way way = argc > 1 ? way_of(argv[1]) : BLOCKING;
	MPI_Request req = MPI_REQUEST_NULL;
	MPI_Errhandler handler;
	int sum = 0;
	bool good;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	MPI_Comm_create_errhandler(handle, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	for (int i = 0; i < 20; i++)
		if (MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) !=
			    MPI_SUCCESS ||
		    sum != nranks * (nranks - 1) / 2)
			_exit(2);
	if (way != BLOCKING && init_persistent(&sum, &req) != MPI_SUCCESS)
		_exit(2);
	for (int i = 0; i < WAYS && way != BLOCKING; i++) {
		sum = 0;
		if (sum_persistent(&req, (enum way)i) != MPI_SUCCESS ||
		    sum != nranks * (nranks - 1) / 2)
			_exit(2);
	}
	if (rank == nranks - 1)
		raise(SIGKILL);
	if (way == BLOCKING) {
		good = is_told("MPI_Allreduce",
			       MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	} else {
		good = is_told(ways[way], sum_persistent(&req, way));
		for (int i = 0; i < WAYS; i++)
			good &= is_told(ways[i], sum_persistent(&req, (enum way)i));
		if (MPI_Request_free(&req) != MPI_SUCCESS || req != MPI_REQUEST_NULL) {
			printf("survivor %d: MPI_Request_free fails\n", rank);
			good = false;
		}
	}
	if (good)
		printf("survivor %d: error\n", rank);
	fflush(stdout);
	/* A launcher may end the others when one leaves: what they say must be out then. */
	PMPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + 1) % (nranks - 1), 8, NULL, 0, MPI_BYTE,
		      (rank + nranks - 2) % (nranks - 1), 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	_exit(!good);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The last rank dies in the middle of MPI collectives: each other one must get an error of the right class. Each survivor
 * prints a line for itself and leaves without MPI_Finalize, in which MPI would wait for the dead. pmpi_faults.sh runs it,
 * with an argument for a persistent request instead of a blocking call: "one", or "all" to wait for others with it.
 */
#include <signal.h>

#include "pmpi_test.h"

#if MPI_VERSION >= 4
#define PERSISTENT(name) MPI_##name##_init
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#endif

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

/* Among other requests, one of them of another kind. */
static int wait_for_all(MPI_Request *req)
{
	MPI_Request all[3] = { MPI_REQUEST_NULL, *req, MPI_REQUEST_NULL };
	MPI_Status statuses[3] = { 0 };
	int error;

	MPI_Irecv(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_SELF, &all[2]);
	MPI_Send(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_SELF);
	error = MPI_Waitall(3, all, statuses);
	if (error == MPI_SUCCESS)
		return error;
	/* After an error MPI need not wait for the others, and Open MPI's handlers get the request's error. */
	if (class_of(error) != MPI_ERR_IN_STATUS ||
	    (handled != MPI_ERR_IN_STATUS && handled != DIED) ||
	    statuses[0].MPI_ERROR != MPI_SUCCESS ||
	    (statuses[2].MPI_ERROR != MPI_SUCCESS && statuses[2].MPI_ERROR != MPI_ERR_PENDING))
		return MPI_ERR_INTERN;
	handled = class_of(statuses[1].MPI_ERROR);
	return statuses[1].MPI_ERROR;
}

static int sum_persistent(MPI_Request *req, bool all)
{
	int error = MPI_Start(req);

	if (error != MPI_SUCCESS)
		return error;
	return all ? wait_for_all(req) : MPI_Wait(req, MPI_STATUS_IGNORE);
}

static int init_persistent(int *sum, MPI_Request *req)
{
	return PERSISTENT(Allreduce)(&rank, sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
				     req);
}

int main(int argc, char **argv)
{
	bool persistent = argc > 1, all = persistent && !strcmp(argv[1], "all");
	MPI_Request req = MPI_REQUEST_NULL;
	MPI_Errhandler handler;
	int sum = 0, error;

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
	for (int i = 0; i < 3 && persistent; i++) {
		sum = 0;
		if ((!i && init_persistent(&sum, &req) != MPI_SUCCESS) ||
		    sum_persistent(&req, all) != MPI_SUCCESS || sum != nranks * (nranks - 1) / 2)
			_exit(2);
	}
	if (rank == nranks - 1)
		raise(SIGKILL);
	if (persistent)
		error = sum_persistent(&req, all);
	else
		error = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (error == MPI_SUCCESS)
		printf("survivor %d: no error\n", rank);
	else if (class_of(error) != DIED || handled != DIED)
		printf("survivor %d: class %d, handler %d, but not %d\n", rank, class_of(error),
		       handled, DIED);
	else
		printf("survivor %d: error\n", rank);
	fflush(stdout);
	_exit(error == MPI_SUCCESS);
}

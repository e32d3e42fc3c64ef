// SPDX-License-Identifier: GPL-2.0-only
/*
 * The last rank dies in the middle of MPI collectives: each other one must get an error. Each survivor prints a line for
 * itself and leaves without MPI_Finalize, in which MPI would wait for the dead. pmpi_faults.sh runs it, with an argument
 * for a persistent request instead of a blocking call.
 */
#include <signal.h>

#include "pmpi_test.h"

#if MPI_VERSION >= 4
#define PERSISTENT(name) MPI_##name##_init
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#endif

static int sum_persistent(MPI_Request *req)
{
	int error = MPI_Start(req);

	return error == MPI_SUCCESS ? MPI_Wait(req, MPI_STATUS_IGNORE) : error;
}

static int init_persistent(int *sum, MPI_Request *req)
{
	return PERSISTENT(Allreduce)(&rank, sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
				     req);
}

int main(int argc, char **argv)
{
	MPI_Request req = MPI_REQUEST_NULL;
	int sum = 0, error;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; i < 20; i++)
		if (MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) !=
			    MPI_SUCCESS ||
		    sum != nranks * (nranks - 1) / 2)
			_exit(2);
	for (int i = 0; i < 3 && argc > 1; i++) {
		sum = 0;
		if ((!i && init_persistent(&sum, &req) != MPI_SUCCESS) ||
		    sum_persistent(&req) != MPI_SUCCESS || sum != nranks * (nranks - 1) / 2)
			_exit(2);
	}
	if (rank == nranks - 1)
		raise(SIGKILL);
	if (argc > 1)
		error = sum_persistent(&req);
	else
		error = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("survivor %d: %s\n", rank, error == MPI_SUCCESS ? "no error" : "error");
	fflush(stdout);
	_exit(error == MPI_SUCCESS);
}

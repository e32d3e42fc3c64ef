// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program with a tool of MPI's profiling interface, which comes before the preload library and so hides from
 * it that requests are started, and all barriers. Rank 0 prints TAP. pmpi.sh runs it.
 *
 *	pmpi_tool [barriers]	barriers: with another program, which has no tool
 */
#include "pmpi_test.h"

static int starts, waits;

int MPI_Start(MPI_Request *req)
{
	starts++;
	return PMPI_Start(req);
}

int MPI_Startall(int n, MPI_Request *req)
{
	starts += n;
	return PMPI_Startall(n, req);
}

int MPI_Wait(MPI_Request *req, MPI_Status *status)
{
	waits++;
	return PMPI_Wait(req, status);
}

int MPI_Barrier(MPI_Comm comm)
{
	return PMPI_Barrier(comm);
}

int main(int argc, char **argv)
{
	int v = 0, sum = 0;
	MPI_Request req;

	begin_mpi(argc, argv);
	if (is_asked(argc, argv, "barriers"))
		return test_barriers();
	begin_tests(2);
	try_comm(MPI_COMM_WORLD);
	PERSISTENT(Allreduce_init)
	(&v, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &req);
	for (v = 1; v <= 4; v++) {
		if (v & 1)
			GOOD(MPI_Start(&req) == MPI_SUCCESS);
		else
			GOOD(MPI_Startall(1, &req) == MPI_SUCCESS);
		GOOD(MPI_Wait(&req, MPI_STATUS_IGNORE) == MPI_SUCCESS);
		GOOD(sum == nranks * v);
	}
	GOOD(MPI_Request_free(&req) == MPI_SUCCESS);
	report("a tool sees persistent requests");
	MPI_Iallreduce(&v, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req);
	GOOD(MPI_Wait(&req, MPI_STATUS_IGNORE) == MPI_SUCCESS);
	GOOD(sum == nranks * v && starts == 4 && waits == 5);
	report("a tool sees nonblocking ones");
	return end_tests();
}

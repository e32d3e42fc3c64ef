// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages from any rank, with any tag: the program gets its own ones, and no others. Rank 0 prints TAP. pmpi_faults.sh
 * runs it, with the preload library on all ranks but the first.
 */
#include "pmpi_test.h"

int main(int argc, char **argv)
{
	MPI_Status status;
	int value, count;

	begin_mpi(argc, argv);
	begin_tests(1);
	if (rank)
		MPI_Send(&rank, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
	for (int i = 1; !rank && i < nranks; i++) {
		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_INT, &count);
		GOOD(status.MPI_TAG == 7 && count == 1);
		MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		GOOD(value == status.MPI_SOURCE && status.MPI_TAG == 7);
	}
	try_comm(MPI_COMM_WORLD);
	report("messages from any rank");
	return end_tests();
}

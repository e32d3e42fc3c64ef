// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes communicators until MPI has no more, and calls collectives on some of them, the last one among these, when
 * none is left for anybody. Rank 0 prints how many there were. pmpi.sh runs it with and without the preload library,
 * with MPICH, which has some 2000.
 */
#include "pmpi_test.h"

#define MOST 100000
#define USED 40

static MPI_Comm comms[MOST];

/* All data is rank 0's: with the library, ranks tell each other so, and then leave it to MPI. */
static void use(MPI_Comm comm)
{
	int counts[2] = { 0 }, displs[2] = { 0, 50 }, sum = 0;
	int mine[100], ours[100] = { 0 };
	MPI_Request req;

	if (!rank)
		counts[0] = 50;
	for (int i = 0; i < 100; i++)
		mine[i] = i + 1;
	GOOD(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == 1);
	GOOD(MPI_Ialltoallv(mine, counts, displs, MPI_INT, ours, counts, displs, MPI_INT, comm,
			    &req) == MPI_SUCCESS);
	GOOD(MPI_Wait(&req, MPI_STATUS_IGNORE) == MPI_SUCCESS);
	for (int i = 0; i < 100; i++)
		GOOD(ours[i] == (!rank && i < 50 ? i + 1 : 0));
}

int main(int argc, char **argv)
{
	int n, ret = MPI_SUCCESS, class = 0;

	MPI_Init(&argc, &argv);
	begin_tests(1);
	if (nranks != 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (n = 0; n < MOST; n++) {
		ret = MPI_Comm_dup(MPI_COMM_WORLD, &comms[n]);
		if (ret != MPI_SUCCESS)
			break;
		if (n < USED)
			use(comms[n]);
	}
	MPI_Error_class(ret, &class);
	GOOD(n > USED && n < MOST);
	use(comms[n - 1]);
	report("no errors but the last one's");
	if (!rank)
		printf("# made %d communicators, then class %d\n", n, class);
	while (n)
		MPI_Comm_free(&comms[--n]);
	return end_tests();
}

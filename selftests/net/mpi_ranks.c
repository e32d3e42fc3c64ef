// SPDX-License-Identifier: GPL-2.0-only
/*
 * An MPI program that uses communicators of libswingcoll_mpi. Rank 0 prints "all good" if all results are right on all
 * ranks. net_mpirun.sh runs it under each installed MPI.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <swingcoll_mpi.h>

#define COUNT 100003

static int rank, nbad;

#define GOOD(what)                                                                                 \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "rank %d, line %d: failed: %s (%s)\n", rank, __LINE__,     \
				#what, swingcoll_bootstrap_error());                               \
			nbad++;                                                                    \
		}                                                                                  \
	} while (0)

/* Compare an allreduce with that of MPI. */
static void compare_sums(struct swingcoll_comm *comm, MPI_Comm mpi)
{
	int64_t *mine = malloc(COUNT * sizeof(*mine)), *ours = calloc(COUNT, sizeof(*ours));
	int64_t *theirs = malloc(COUNT * sizeof(*theirs));

	for (int64_t i = 0; i < COUNT; i++)
		mine[i] = (rank + 1) * i - 7 * rank;
	GOOD(swingcoll_allreduce(mine, ours, COUNT, SWINGCOLL_I64, SWINGCOLL_SUM, comm) == 0);
	GOOD(MPI_Allreduce(mine, theirs, COUNT, MPI_INT64_T, MPI_SUM, mpi) == MPI_SUCCESS);
	GOOD(memcmp(ours, theirs, COUNT * sizeof(*ours)) == 0);
	free(mine);
	free(ours);
	free(theirs);
}

/* A communicator of swingcoll with the ranks of one of MPI. */
static void same_ranks(MPI_Comm mpi)
{
	struct swingcoll_comm *comm;
	int n, me;

	MPI_Comm_size(mpi, &n);
	MPI_Comm_rank(mpi, &me);
	GOOD(swingcoll_comm_create_mpi(&comm, mpi, NULL) == 0);
	if (!comm)
		return;
	GOOD(swingcoll_comm_size(comm) == n && swingcoll_comm_rank(comm) == me);
	compare_sums(comm, mpi);
	GOOD(swingcoll_comm_destroy(comm) == 0);
}

int main(int argc, char **argv)
{
	const char *limit = getenv("FINALIZE_SECONDS");
	struct swingcoll_bootstrap *boot;
	MPI_Comm half, between;
	int n, all;

	GOOD(swingcoll_bootstrap_mpi(&boot, MPI_COMM_NULL) == -EINVAL);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	same_ranks(MPI_COMM_WORLD);
	/* The even and the odd ranks, in reverse order. */
	MPI_Comm_split(MPI_COMM_WORLD, rank & 1, -rank, &half);
	same_ranks(half);
	if (n > 1) {
		MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank & 1 ? (n - 1) & ~1 : (n - 2) | 1,
				     0, &between);
		GOOD(swingcoll_bootstrap_mpi(&boot, between) == -EINVAL);
		MPI_Comm_free(&between);
	}
	MPI_Comm_free(&half);
	MPI_Allreduce(&nbad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (!rank && !all) {
		printf("all good: %d ranks\n", n);
		fflush(stdout);
	}
	/* MPICH 4.0 with UCX over TCP may wait for ever in MPI_Finalize for a rank that has left it. */
	alarm(limit ? (unsigned int)atoi(limit) : 90);
	MPI_Finalize();
	return !!all;
}

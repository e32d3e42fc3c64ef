/* SPDX-License-Identifier: GPL-2.0-only */
/* TAP by an MPI program: a test is good if it is on all ranks, and rank 0 prints it. And what several programs need. */
#ifndef PMPI_TEST_H
#define PMPI_TEST_H

#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Persistent collectives: of MPI 4, or an extension. */
#if MPI_VERSION >= 4
#define PERSISTENT(name) MPI_##name
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name
#endif

static int rank, nranks, next_rank, last_rank, number, bad, failed;

#define GOOD(what)                                                                                 \
	do {                                                                                       \
		if (!(what) && bad++ < 3)                                                          \
			fprintf(stderr, "# rank %d, line %d: failed: %s\n", rank, __LINE__,        \
				#what);                                                            \
	} while (0)

/* Is the word among the program's arguments? */
static inline bool is_asked(int argc, char **argv, const char *word)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], word))
			return true;
	return false;
}

/* MPI_Init(), or with threads if they are asked for. The level that MPI has given. */
static inline int begin_mpi(int argc, char **argv)
{
	int level = MPI_THREAD_SINGLE;

	if (is_asked(argc, argv, "threads"))
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	else
		MPI_Init(&argc, &argv);
	return level;
}

static inline void begin_tests(int n)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &nranks);
	next_rank = (rank + 1) % nranks;
	last_rank = (rank + nranks - 1) % nranks;
	if (!rank)
		printf("1..%d\n", n);
}

__attribute__((format(printf, 1, 2))) static inline void report(const char *format, ...)
{
	int all = 0;
	va_list args;

	PMPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	failed += !!all;
	bad = 0;
	number++;
	if (rank)
		return;
	printf("%sok %d ", all ? "not " : "", number);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

static inline void skip(const char *name, const char *why)
{
	number++;
	if (!rank)
		printf("ok %d # SKIP %s: %s\n", number, name, why);
}

static inline void try_comm(MPI_Comm comm)
{
	int n, me, sum = 0;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	GOOD(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
	GOOD(sum == n * (n - 1) / 2);
}

static inline int end_tests(void)
{
	const char *limit = getenv("FINALIZE_SECONDS");

	/* MPICH 4.0 with UCX over TCP may wait for ever in MPI_Finalize for a rank that has left it. */
	alarm(limit ? (unsigned int)atoi(limit) : 90);
	MPI_Finalize();
	return !!failed;
}

/* Of two programs that run together: the whole test of each. */
static inline int test_barriers(void)
{
	begin_tests(1);
	for (int i = 0; i < 20; i++)
		GOOD(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
	report("barriers with another program");
	return end_tests();
}

/* Before a call whose trial is counted: calls that are long are tried in one round. */
static inline void be_late(bool late)
{
	if (late)
		usleep(10000);
}

#endif /* PMPI_TEST_H */

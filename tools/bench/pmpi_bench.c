// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the MPI preload library gains and costs: each collective of MPI beside the same one by its PMPI_ name, which is
 * MPI's own, in one process and in turn. Rank 0 prints a table of medians and their ratio, and what a call costs that
 * the library leaves to MPI: on a communicator of one rank, where MPI itself has little to do. MPI's own is measured
 * twice: the ratio of the two tells what ratio is none.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (4 << 20)
#define MOST 64	  /* ranks */
#define ROUNDS 15 /* a multiple of WAYS */
#define WARMUP 80 /* more than the library needs for its own measurements */

enum way {
	PRELOAD,
	MPI,
	MPI_AGAIN,
	WAYS
};

static char *send, *recv;
static int rank, nranks;
static int cells, below,
	control_below; /* cells with a ratio below 0.995, and such of MPI to itself */

struct collective {
	const char *name;
	void (*run)(int pmpi, int bytes);
	int shares; /* buffers have a share for each rank */
};

#define EITHER(call) (pmpi ? P##call : call)

static void allreduce(int pmpi, int bytes)
{
	EITHER(MPI_Allreduce(send, recv, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
}

static void reduce(int pmpi, int bytes)
{
	EITHER(MPI_Reduce(send, recv, bytes / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD));
}

static void bcast(int pmpi, int bytes)
{
	EITHER(MPI_Bcast(recv, bytes, MPI_BYTE, 0, MPI_COMM_WORLD));
}

static void barrier(int pmpi, int bytes)
{
	(void)bytes;
	EITHER(MPI_Barrier(MPI_COMM_WORLD));
}

static void allgather(int pmpi, int bytes)
{
	EITHER(MPI_Allgather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD));
}

static void alltoall(int pmpi, int bytes)
{
	EITHER(MPI_Alltoall(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD));
}

static void reduce_scatter(int pmpi, int bytes)
{
	EITHER(MPI_Reduce_scatter_block(send, recv, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
}

static void gather(int pmpi, int bytes)
{
	EITHER(MPI_Gather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, 0, MPI_COMM_WORLD));
}

static void scatter(int pmpi, int bytes)
{
	EITHER(MPI_Scatter(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, 0, MPI_COMM_WORLD));
}

/* The last share is smaller, as when elements are dealt out to ranks whose number does not divide theirs. */
static void uneven(int bytes, int *counts, int *displs)
{
	for (int r = 0; r < nranks; r++) {
		counts[r] = bytes - (r == nranks - 1 ? bytes / 4 : 0);
		displs[r] = r * bytes;
	}
}

static void allgatherv(int pmpi, int bytes)
{
	int counts[MOST], displs[MOST];

	uneven(bytes, counts, displs);
	EITHER(MPI_Allgatherv(send, counts[rank], MPI_BYTE, recv, counts, displs, MPI_BYTE,
			      MPI_COMM_WORLD));
}

/* Only the root knows that the last share is smaller. */
static void gatherv(int pmpi, int bytes)
{
	int counts[MOST], displs[MOST];

	uneven(bytes, counts, displs);
	EITHER(MPI_Gatherv(send, counts[rank], MPI_BYTE, recv, counts, displs, MPI_BYTE, 0,
			   MPI_COMM_WORLD));
}

static void scatterv(int pmpi, int bytes)
{
	int counts[MOST], displs[MOST];

	uneven(bytes, counts, displs);
	EITHER(MPI_Scatterv(send, counts, displs, MPI_BYTE, recv, counts[rank], MPI_BYTE, 0,
			    MPI_COMM_WORLD));
}

/* All get less from the last rank. */
static void alltoallv(int pmpi, int bytes)
{
	int counts[MOST], displs[MOST], sent[MOST];

	uneven(bytes, counts, displs);
	for (int r = 0; r < nranks; r++)
		sent[r] = counts[rank];
	EITHER(MPI_Alltoallv(send, sent, displs, MPI_BYTE, recv, counts, displs, MPI_BYTE,
			     MPI_COMM_WORLD));
}

static const struct collective collectives[] = {
	{ "allreduce", allreduce, 0 }, { "reduce", reduce, 0 },
	{ "bcast", bcast, 0 },	       { "allgather", allgather, 1 },
	{ "alltoall", alltoall, 1 },   { "reduce_scatter", reduce_scatter, 1 },
	{ "gather", gather, 1 },       { "scatter", scatter, 1 },
	{ "barrier", barrier, 0 },     { "allgatherv", allgatherv, 1 },
	{ "gatherv", gatherv, 1 },     { "scatterv", scatterv, 1 },
	{ "alltoallv", alltoallv, 1 },
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Time of a call in us, the mean of a burst of n on the slowest rank. */
static double burst(const struct collective *c, int pmpi, int bytes, int n)
{
	double t, slowest;

	PMPI_Barrier(MPI_COMM_WORLD);
	t = PMPI_Wtime();
	for (int i = 0; i < n; i++)
		c->run(pmpi, bytes);
	t = (PMPI_Wtime() - t) / n * 1e6;
	PMPI_Allreduce(&t, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return slowest;
}

static double median(double *t)
{
	qsort(t, ROUNDS, sizeof(*t), compare);
	return t[ROUNDS / 2];
}

static void measure(const struct collective *c, int bytes)
{
	double t[WAYS][ROUNDS], us[WAYS], guess;
	int n;

	for (int i = 0; i < WARMUP; i++)
		c->run(0, bytes);
	guess = burst(c, 1, bytes, 2);
	n = guess > 5000 ? 1 : (int)(5000 / guess) + 1;
	n = n > 500 ? 500 : n;
	PMPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
	/* The order changes, so that none is always first. */
	for (int i = 0; i < ROUNDS; i++)
		for (int k = 0; k < WAYS; k++) {
			int way = (k + i) % WAYS;

			t[way][i] = burst(c, way != PRELOAD, bytes, n);
		}
	for (int way = 0; way < WAYS; way++)
		us[way] = median(t[way]);
	cells++;
	below += us[MPI] / us[PRELOAD] < 0.995;
	control_below += us[MPI] / us[MPI_AGAIN] < 0.995;
	if (!rank)
		printf("%-15s %8d %12.2f %12.2f %7.2f %9.2f\n", c->name, bytes, us[MPI],
		       us[PRELOAD], us[MPI] / us[PRELOAD], us[MPI] / us[MPI_AGAIN]);
}

static void allreduce_alone(int pmpi)
{
	double v = 0, w;

	EITHER(MPI_Allreduce(&v, &w, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF));
}

static void wait_for_nothing(int pmpi)
{
	MPI_Request none = MPI_REQUEST_NULL;

	EITHER(MPI_Wait(&none, MPI_STATUS_IGNORE));
}

static void wait_for_all_of_nothing(int pmpi)
{
	MPI_Request none[2] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL };

	EITHER(MPI_Waitall(2, none, MPI_STATUSES_IGNORE));
}

/* MPICH looks at its engine, and so calls ucp_worker_progress(), which the library defines as well. */
static void look_for_message(int pmpi)
{
	int flag;

	EITHER(MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
}

/* What the library adds to a call of MPI's, in us. */
static void measure_passed(const char *what, void (*call)(int pmpi))
{
	double t[2][ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		for (int pmpi = 0; pmpi < 2; pmpi++) {
			double start = PMPI_Wtime();

			for (int k = 0; k < 2000; k++)
				call(pmpi);
			t[pmpi][i] = (PMPI_Wtime() - start) / 2000 * 1e6;
		}
	if (!rank)
		printf("# %s: %.3f us, by PMPI_ %.3f us\n", what, median(t[0]), median(t[1]));
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	if (nranks > MOST)
		MPI_Abort(MPI_COMM_WORLD, 2);
	send = calloc((size_t)nranks, LARGEST);
	recv = calloc((size_t)nranks, LARGEST);
	memset(send, 0, (size_t)nranks * LARGEST);
	memset(recv, 0, (size_t)nranks * LARGEST);
	if (!rank)
		printf("%-15s %8s %12s %12s %7s %9s\n", "# collective", "bytes", "MPI us",
		       "preload us", "ratio", "MPI/MPI");
	measure_passed("a call that is left to MPI", allreduce_alone);
	measure_passed("MPI_Wait for nothing", wait_for_nothing);
	measure_passed("MPI_Waitall for nothing", wait_for_all_of_nothing);
	/* Run once with the library, and once without: PMPI_ goes through ucp_worker_progress(), too. */
	measure_passed("MPI_Iprobe", look_for_message);
	for (size_t i = 0; i < sizeof(collectives) / sizeof(*collectives); i++) {
		const struct collective *c = &collectives[i];
		int least = argc > 2 ? atoi(argv[2]) : 4, most = argc > 3 ? atoi(argv[3]) : LARGEST;

		if (argc > 1 && strcmp(argv[1], "all") && strcmp(argv[1], c->name))
			continue;
		if (c->run == barrier)
			least = most = 0;
		for (int bytes = least; bytes <= most; bytes = bytes ? bytes * 8 : 1)
			measure(c, bytes);
	}
	if (!rank)
		printf("# ratio below 1.00 in %d of %d cells; that of MPI to itself in %d\n", below,
		       cells, control_below);
	free(send);
	free(recv);
	MPI_Finalize();
	return 0;
}

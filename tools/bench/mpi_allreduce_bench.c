// SPDX-License-Identifier: GPL-2.0-only
/*
 * MPI_Allreduce timed by the loop that swingperf uses: same buffers, same iteration rule, same
 * statistics. Prints one JSON object per size, with the field names of swingperf --json.
 *
 *	mpirun -n RANKS mpi_allreduce_bench DTYPE BUFFERS TIME_MS BYTES...
 */
#include "common/perfloop.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BUFFERS 64

struct bench {
	void *send[MAX_BUFFERS];
	void *recv[MAX_BUFFERS];
	int count;
	MPI_Datatype type;
};

static int start(void *arg, unsigned int buf)
{
	struct bench *b = arg;

	return MPI_Allreduce(b->send[buf], b->recv[buf], b->count, b->type, MPI_SUM,
			     MPI_COMM_WORLD);
}

static int sync_ranks(void *arg)
{
	(void)arg;
	return MPI_Barrier(MPI_COMM_WORLD);
}

static int max_ranks(void *arg, double *v)
{
	(void)arg;
	return MPI_Allreduce(MPI_IN_PLACE, v, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static const struct perf_ops ops = { .start = start, .sync = sync_ranks, .max = max_ranks };

/* Small integers: exact sums in both types. */
static unsigned long check(struct bench *b, int rank, int ranks)
{
	int is_float = b->type == MPI_FLOAT, i, want;
	unsigned long wrong = 0;
	float *sf = b->send[0], *rf = b->recv[0];
	int32_t *si = b->send[0], *ri = b->recv[0];

	for (i = 0; i < b->count; i++) {
		if (is_float)
			sf[i] = (float)(i % 1021 + rank);
		else
			si[i] = i % 1021 + rank;
	}
	if (start(b, 0))
		return 1;
	for (i = 0; i < b->count; i++) {
		want = i % 1021 * ranks + ranks * (ranks - 1) / 2;
		wrong += is_float ? rf[i] != (float)want : ri[i] != want;
	}
	return wrong;
}

int main(int argc, char **argv)
{
	struct perf_rule rule = { .warmup = 3, .repeats = 5 };
	struct bench b = { 0 };
	unsigned long bad = 0, wrong;
	int rank, ranks, i;
	size_t max = 0, bytes;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	rule.buffers = argc > 2 ? (unsigned int)atoi(argv[2]) : 0;
	rule.budget_s = argc > 3 ? atof(argv[3]) * 1e-3 : 0;
	if (argc < 5 || (strcmp(argv[1], "f32") && strcmp(argv[1], "i32")) || !rule.buffers ||
	    rule.buffers > MAX_BUFFERS || rule.budget_s <= 0) {
		if (!rank)
			fprintf(stderr,
				"Usage: mpi_allreduce_bench f32|i32 BUFFERS TIME_MS BYTES...\n");
		MPI_Finalize();
		return 2;
	}
	b.type = strcmp(argv[1], "f32") ? MPI_INT32_T : MPI_FLOAT;
	for (i = 4; i < argc; i++)
		if (strtoull(argv[i], NULL, 10) > max)
			max = strtoull(argv[i], NULL, 10);
	for (i = 0; i < (int)rule.buffers; i++) {
		b.send[i] = perf_alloc(max, 2 * rank);
		b.recv[i] = perf_alloc(max, 2 * rank + 1);
		if (!b.send[i] || !b.recv[i]) {
			fprintf(stderr, "mpi_allreduce_bench: no memory\n");
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
	}
	for (i = 4; i < argc; i++) {
		struct perf_time t;

		bytes = strtoull(argv[i], NULL, 10);
		b.count = (int)(bytes / 4);
		memset(b.send[0], 0, bytes);
		if (perf_measure(&ops, &b, &rule, &t))
			MPI_Abort(MPI_COMM_WORLD, 2);
		wrong = check(&b, rank, ranks);
		MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
		bad += wrong;
		if (rank)
			continue;
		printf("{\"op\":\"allreduce\",\"bytes\":%zu,\"count\":%d,\"dtype\":\"%s\",\"redop\":\"sum\","
		       "\"ranks\":%d,\"inplace\":false,\"time_us\":%.4f,\"iqr_us\":%.4f,\"min_us\":%.4f,"
		       "\"median_us\":%.4f,\"p99_us\":%.4f,\"cpu_us\":%.4f,"
		       "\"busy_us\":%.4f,\"iters\":%lu,\"repeats\":%u,"
		       "\"errors\":%lu}\n",
		       bytes, b.count, argv[1], ranks, t.time_us, t.iqr_us, t.min_us, t.median_us,
		       t.p99_us, t.cpu_us, t.busy_us, t.iters, t.repeats, wrong);
		fflush(stdout);
	}
	MPI_Finalize();
	return bad ? 1 : 0;
}

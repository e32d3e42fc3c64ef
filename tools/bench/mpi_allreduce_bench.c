// SPDX-License-Identifier: GPL-2.0-only
/* MPI_Allreduce in the frame of bench/peer.h: mpirun -n RANKS mpi_allreduce_bench i32|f32 BUFFERS TIME_MS BYTES... */
#include "bench/peer.h"

#include <mpi.h>

static int start(void *arg, unsigned int buf)
{
	struct peer *p = arg;

	return MPI_Allreduce(p->send[buf], p->recv[buf], (int)p->count,
			     p->opt->is_float ? MPI_FLOAT : MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
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

int main(int argc, char **argv)
{
	static const struct perf_ops ops = { .start = start, .sync = sync_ranks, .max = max_ranks };
	static struct peer_options opt;
	struct peer p = { .opt = &opt };
	int status;

	peer_parse(&opt, "mpi_allreduce_bench", NULL, argc, argv);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &p.nranks);
	status = peer_run(&p, &ops);
	if (status > 1)
		MPI_Abort(MPI_COMM_WORLD, status);
	MPI_Finalize();
	return status;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests, communicators and progress of MPI under the preload library. Rank 0 prints TAP. pmpi.sh runs it.
 */
#include <pthread.h>
#include <time.h>

#include "pmpi_test.h"

/* Persistent collectives: of MPI 4, or an extension. */
#if MPI_VERSION >= 4
#define PERSISTENT(name) MPI_##name##_init
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#endif

#define MANY 200
#define LARGE 200000

static int next_rank, last_rank;

/* ---- requests ---- */

/* As many collectives at once as swingcoll does not take, beside messages, waited for in one array. */
static void test_mixed(void)
{
	static int v[MANY], sum[MANY], got;
	MPI_Request req[MANY + 2];

	for (int i = 0; i < MANY; i++) {
		v[i] = rank + i;
		GOOD(MPI_Iallreduce(&v[i], &sum[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req[i]) ==
		     MPI_SUCCESS);
	}
	MPI_Irecv(&got, 1, MPI_INT, last_rank, 1, MPI_COMM_WORLD, &req[MANY]);
	MPI_Isend(&rank, 1, MPI_INT, next_rank, 1, MPI_COMM_WORLD, &req[MANY + 1]);
	GOOD(MPI_Waitall(MANY + 2, req, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
	for (int i = 0; i < MANY; i++)
		GOOD(req[i] == MPI_REQUEST_NULL &&
		     sum[i] == nranks * (nranks - 1) / 2 + i * nranks);
	GOOD(got == last_rank);
	report("%d collectives and messages in one MPI_Waitall", MANY);
}

/* A blocking call waits behind those before it, and in the same order on all ranks. */
static void test_order(void)
{
	static int v[MANY];
	MPI_Request req[MANY];
	int sum = 0;

	for (int i = 0; i < MANY; i++) {
		v[i] = i;
		MPI_Iallreduce(MPI_IN_PLACE, &v[i], 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &req[i]);
	}
	GOOD(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
	GOOD(sum == nranks * (nranks - 1) / 2);
	MPI_Waitall(MANY, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MANY; i++)
		GOOD(v[i] == i);
	report("a blocking call behind %d nonblocking ones", MANY);
}

static void start_all(int *v, MPI_Request req[7])
{
	int *at = v + LARGE;

	MPI_Iallreduce(MPI_IN_PLACE, v, LARGE, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req[0]);
	MPI_Ibcast(at, 100, MPI_INT, nranks - 1, MPI_COMM_WORLD, &req[1]);
	MPI_Ireduce(&rank, at + 100, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, &req[2]);
	MPI_Iallgather(&rank, 1, MPI_INT, at + 200, 1, MPI_INT, MPI_COMM_WORLD, &req[3]);
	MPI_Ialltoall(at + 300, 1, MPI_INT, at + 400, 1, MPI_INT, MPI_COMM_WORLD, &req[4]);
	MPI_Ireduce_scatter_block(at + 300, at + 500, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req[5]);
	MPI_Ibarrier(MPI_COMM_WORLD, &req[6]);
}

static void test_completion(void)
{
	int *v = calloc(LARGE + 1000, sizeof(*v)), *at = v + LARGE, done, index, n, indices[7];
	MPI_Status status, statuses[7];
	MPI_Request req[7];

	for (int way = 0; way < 5; way++) {
		for (int i = 0; i < LARGE; i++)
			v[i] = rank + i;
		memset(at, 0, 1000 * sizeof(*at));
		for (int i = 0; i < 100; i++)
			at[i] = rank == nranks - 1 ? i : -1;
		for (int i = 0; i < nranks; i++)
			at[300 + i] = 10 * rank + i;
		start_all(v, req);
		for (int left = 7; left && way == 0; left--)
			GOOD(MPI_Waitany(7, req, &index, &status) == MPI_SUCCESS &&
			     index != MPI_UNDEFINED);
		for (int left = 7; left && way == 1; left -= n)
			GOOD(MPI_Waitsome(7, req, &n, indices, statuses) == MPI_SUCCESS && n > 0);
		for (int left = 7; left && way == 2; left -= n)
			GOOD(MPI_Testsome(7, req, &n, indices, statuses) == MPI_SUCCESS);
		for (done = 0; !done && way == 3;)
			GOOD(MPI_Testall(7, req, &done, statuses) == MPI_SUCCESS);
		for (int i = 0; i < 7 && way == 4; i++) {
			for (done = 0; !done;)
				MPI_Request_get_status(req[i], &done, &status);
			GOOD(MPI_Test(&req[i], &done, &status) == MPI_SUCCESS && done);
		}
		for (int i = 0; i < 7; i++)
			GOOD(req[i] == MPI_REQUEST_NULL);
		for (int i = 0; i < LARGE; i++)
			if (v[i] != nranks * (nranks - 1) / 2 + nranks * i) {
				GOOD(!"sum");
				break;
			}
		GOOD(at[7] == 7 && at[99] == 99 && (rank || at[100] == nranks * (nranks - 1) / 2));
		for (int i = 0; i < nranks; i++)
			GOOD(at[200 + i] == i && at[400 + i] == 10 * i + rank);
		GOOD(at[500] == 5 * nranks * (nranks - 1) + nranks * rank);
	}
	free(v);
	report("all nonblocking calls by Waitany, Waitsome, Testsome, Testall, Request_get_status");
}

static void test_free(void)
{
	static int v[8], sum[8];
	MPI_Request req;

	for (int i = 0; i < 8; i++) {
		v[i] = i;
		MPI_Iallreduce(&v[i], &sum[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req);
		GOOD(MPI_Request_free(&req) == MPI_SUCCESS && req == MPI_REQUEST_NULL);
	}
	for (int i = 0; i < 3; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	while (!*(volatile int *)&sum[7])
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &(int){ 0 },
			   MPI_STATUS_IGNORE);
	GOOD(sum[7] == 7 * nranks);
	report("MPI_Request_free on running calls");
}

/* The type is freed while the call runs. */
static void test_freed_type(void)
{
	int v[20] = { 0 }, bad_values = 0;
	MPI_Request req;
	MPI_Datatype t;

	for (int i = 0; i < 10 && !rank; i++)
		v[2 * i] = i;
	MPI_Type_vector(10, 1, 2, MPI_INT, &t);
	MPI_Type_commit(&t);
	MPI_Ibcast(v, 1, t, 0, MPI_COMM_WORLD, &req);
	MPI_Type_free(&t);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	for (int i = 0; i < 10; i++)
		bad_values += v[2 * i] != i || v[2 * i + 1];
	GOOD(!bad_values);
	report("a type with gaps, freed while the call runs");
}

/* ---- communicators ---- */

static void try_comm(MPI_Comm comm)
{
	int n, me, sum = 0;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	GOOD(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
	GOOD(sum == n * (n - 1) / 2);
}

static void test_comms(void)
{
	MPI_Comm comm, half, inter;
	int v = rank + 1, w = 0;

	try_comm(MPI_COMM_SELF);
	for (int i = 0; i < 20; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		try_comm(comm);
		MPI_Comm_split(comm, rank & 1, -rank, &half);
		try_comm(half);
		MPI_Comm_free(&comm);
		try_comm(half);
		MPI_Comm_free(&half);
	}
	MPI_Comm_split(MPI_COMM_WORLD, rank & 1, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !(rank & 1), 0, &inter);
	GOOD(MPI_Allreduce(&v, &w, 1, MPI_INT, MPI_MAX, inter) == MPI_SUCCESS);
	GOOD(w == ((nranks & 1) == (rank & 1) ? nranks : nranks - 1));
	MPI_Intercomm_merge(inter, rank & 1, &comm);
	try_comm(comm);
	MPI_Comm_free(&comm);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
	try_comm(MPI_COMM_WORLD);
	report("dup, split, free, intercommunicator, merge");
}

/* Open MPI 4.1 crashes itself in that case; there the request is the library's. */
static void test_freed_comm(void)
{
	int v = 1, sum = 0;
	MPI_Request req;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	try_comm(comm);
	MPI_Iallreduce(&v, &sum, 1, MPI_INT, MPI_SUM, comm, &req);
	MPI_Comm_free(&comm);
	GOOD(MPI_Wait(&req, MPI_STATUS_IGNORE) == MPI_SUCCESS && sum == nranks);
	report("a communicator freed while a call runs");
}

/* ---- progress ---- */

/* A message that needs the sender's help, while the sender is in a collective that the receiver has not come to. */
static void test_progress(void)
{
	char *big = calloc(1, 4 << 20);
	MPI_Request req = MPI_REQUEST_NULL;
	MPI_Comm other;
	int sum;

	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	for (int i = 0; i < 4; i++) {
		int count = i & 1 ? LARGE : 1, *v = calloc((size_t)count, sizeof(*v));

		if (!rank)
			MPI_Isend(big, 4 << 20, MPI_BYTE, 1, 3, other, &req);
		else if (rank == 1)
			MPI_Recv(big, 4 << 20, MPI_BYTE, 0, 3, other, MPI_STATUS_IGNORE);
		GOOD(MPI_Allreduce(MPI_IN_PLACE, v, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD) ==
		     MPI_SUCCESS);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		free(v);
	}
	/* The same with a nonblocking collective, while the sender waits for something else. */
	if (!rank)
		MPI_Isend(big, 4 << 20, MPI_BYTE, 1, 3, other, &req);
	else if (rank == 1)
		MPI_Recv(big, 4 << 20, MPI_BYTE, 0, 3, other, MPI_STATUS_IGNORE);
	GOOD(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, other);
	MPI_Comm_free(&other);
	free(big);
	report("a large message progresses while its sender waits in a collective");
}

/* Later than any rank polls or naps between two looks. */
static void test_late(void)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	int *v = calloc(LARGE, sizeof(*v));

	for (int i = 0; i < 2; i++) {
		if (rank == i % nranks)
			nanosleep(&pause, NULL);
		try_comm(MPI_COMM_WORLD);
		GOOD(MPI_Allreduce(MPI_IN_PLACE, v, LARGE, MPI_INT, MPI_SUM, MPI_COMM_WORLD) ==
		     MPI_SUCCESS);
	}
	free(v);
	report("a rank is late");
}

/* ---- persistent requests ---- */

/*
 * MPI's own, started again and again, in one array with a request that is offloaded and a message. No allgather:
 * MPICH 4.0 sends at each start what was there at the first.
 */
static void test_persistent(void)
{
	int v = 0, sum = 0, sent = 0, other = 0, got = -1;
	MPI_Request req[4];

	PERSISTENT(Allreduce)
	(&v, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &req[0]);
	PERSISTENT(Bcast)(&sent, 1, MPI_INT, nranks - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &req[1]);
	for (int round = 1; round <= 20; round++) {
		v = round * (rank + 1);
		sent = v;
		GOOD(MPI_Startall(2, req) == MPI_SUCCESS);
		MPI_Iallreduce(&round, &other, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &req[2]);
		MPI_Irecv(&got, 1, MPI_INT, last_rank, 2, MPI_COMM_WORLD, &req[3]);
		MPI_Send(&round, 1, MPI_INT, next_rank, 2, MPI_COMM_WORLD);
		GOOD(MPI_Waitall(4, req, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
		GOOD(req[0] != MPI_REQUEST_NULL && req[1] != MPI_REQUEST_NULL &&
		     req[2] == MPI_REQUEST_NULL && req[3] == MPI_REQUEST_NULL);
		GOOD(sum == round * nranks * (nranks + 1) / 2 && sent == round * nranks);
		GOOD(other == round && got == round);
	}
	GOOD(MPI_Request_free(&req[0]) == MPI_SUCCESS && MPI_Request_free(&req[1]) == MPI_SUCCESS);
	report("persistent requests beside others");
}

/* ---- threads ---- */

static void *use_comm(void *arg)
{
	MPI_Request req;

	for (int i = 0; i < 200; i++) {
		int v = i, sum = 0;

		try_comm(*(MPI_Comm *)arg);
		MPI_Iallreduce(&v, &sum, 1, MPI_INT, MPI_SUM, *(MPI_Comm *)arg, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		GOOD(sum == nranks * i);
	}
	return NULL;
}

static void test_threads(int level)
{
	pthread_t thread[3];
	MPI_Comm comm[3];

	if (level != MPI_THREAD_MULTIPLE) {
		skip("threads", "MPI has none, or none were asked for");
		return;
	}
	for (int i = 0; i < 3; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, use_comm, &comm[i]);
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], NULL);
		MPI_Comm_free(&comm[i]);
	}
	report("three threads, each on its communicator");
}

int main(int argc, char **argv)
{
	int level, wanted = argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;

	if (argc > 1)
		MPI_Init_thread(&argc, &argv, wanted, &level);
	else
		MPI_Init(&argc, &argv);
	begin_tests(11);
	next_rank = (rank + 1) % nranks;
	last_rank = (rank + nranks - 1) % nranks;
	test_mixed();
	test_order();
	test_completion();
	test_free();
	test_freed_type();
	test_comms();
	test_freed_comm();
	test_progress();
	test_late();
	test_persistent();
	test_threads(argc > 1 ? level : MPI_THREAD_SINGLE);
	return end_tests();
}

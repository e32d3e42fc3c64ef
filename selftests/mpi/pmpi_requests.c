// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests, communicators and progress of MPI under the preload library. Rank 0 prints TAP. pmpi.sh runs it, with
 * "threads" for MPI_THREAD_MULTIPLE or "end" for calls that run when MPI ends, and pmpi_faults.sh with "own" where the
 * library leaves calls to MPI.
 */
#include <pthread.h>
#include <time.h>

#include "pmpi_test.h"

#define MANY 200
#define QUEUED 70
#define LARGE 200000

static int level;

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

/*
 * A nonblocking call returns although another rank has not come: that one waits for a message, which is sent after the
 * call. On a new communicator, with which nothing has been done yet.
 */
static void test_local(void)
{
	int sum = -1, token = 0;
	MPI_Request req;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	if (rank)
		MPI_Recv(&token, 1, MPI_INT, rank - 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	GOOD(MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &req) == MPI_SUCCESS);
	if (rank < nranks - 1)
		MPI_Send(&token, 1, MPI_INT, rank + 1, 4, MPI_COMM_WORLD);
	GOOD(MPI_Wait(&req, MPI_STATUS_IGNORE) == MPI_SUCCESS);
	GOOD(sum == nranks * (nranks - 1) / 2);
	MPI_Comm_free(&comm);
	report("the first call on a communicator is nonblocking, and returns at once");
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

/*
 * More than swingcoll takes at once. The first rank then waits for a message, which comes when the second one has all
 * results.
 */
static void test_message(void)
{
	static int v[QUEUED], sum[QUEUED];
	MPI_Request req[QUEUED];
	int token = 0;

	for (int i = 0; i < QUEUED; i++) {
		v[i] = rank + i;
		MPI_Iallreduce(&v[i], &sum[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req[i]);
	}
	if (!rank)
		MPI_Recv(&token, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	GOOD(MPI_Waitall(QUEUED, req, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
	if (rank == 1)
		MPI_Send(&rank, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
	GOOD(rank || token == 1);
	for (int i = 0; i < QUEUED; i++)
		GOOD(sum[i] == nranks * (nranks - 1) / 2 + nranks * i);
	report("a message waits for %d nonblocking calls", QUEUED);
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

/* Shares to and from one rank, with gaps there; and of different sizes for all. The types are freed meanwhile. */
static void test_shares(void)
{
	int *all = calloc(8 * (size_t)nranks, sizeof(*all)), *back = all + 4 * nranks, mine[2],
	    got[3];
	int *shares = calloc(5 * (size_t)nranks + 1, sizeof(*shares)), *displs = shares + nranks;
	int *gathered = displs + nranks, *given = gathered + nranks + 1, root = nranks - 1;
	MPI_Request req[4];
	MPI_Datatype t;

	for (int i = 0; i < 20; i++) {
		bool here = rank == root;

		MPI_Type_vector(2, 1, 2, MPI_INT, &t);
		MPI_Type_create_resized(t, 0, 4 * sizeof(int), &t);
		MPI_Type_commit(&t);
		memset(all, 0, 8 * (size_t)nranks * sizeof(*all));
		mine[0] = 10 * rank + i;
		mine[1] = -mine[0];
		for (int r = 0; r < nranks; r++) {
			back[4 * r] = r - i;
			back[4 * r + 2] = i - r;
			shares[r] = 1 + !r;
			displs[r] = r ? r + 1 : 0;
		}
		MPI_Igather(mine, 2, MPI_INT, all, 1, here ? t : MPI_DATATYPE_NULL, root,
			    MPI_COMM_WORLD, &req[0]);
		MPI_Iscatter(back, 1, here ? t : MPI_DATATYPE_NULL, got, 2, MPI_INT, root,
			     MPI_COMM_WORLD, &req[1]);
		/* As MPI does, the library bears that the arrays are gone when the call ends. */
		memcpy(given, shares, 2 * (size_t)nranks * sizeof(*given));
		MPI_Iallgatherv(mine, shares[rank], MPI_INT, gathered, given, given + nranks,
				MPI_INT, MPI_COMM_WORLD, &req[2]);
		memset(given, 0x5a, 2 * (size_t)nranks * sizeof(*given));
		MPI_Iexscan(&rank, &got[2], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req[3]);
		MPI_Type_free(&t);
		GOOD(MPI_Waitall(4, req, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
		for (int r = 0; here && r < nranks; r++)
			GOOD(all[4 * r] == 10 * r + i && all[4 * r + 2] == -10 * r - i &&
			     !all[4 * r + 1] && !all[4 * r + 3]);
		for (int r = 0; r < nranks; r++)
			GOOD(gathered[displs[r]] == 10 * r + i);
		GOOD(gathered[1] == -i);
		GOOD(got[0] == rank - i && got[1] == i - rank &&
		     (!rank || got[2] == rank * (rank - 1) / 2));
	}
	free(all);
	free(shares);
	report("Igather, Iscatter, Iallgatherv");
}

/*
 * Sums of floats whose every bit depends on the order: that of the ranks, as blocking calls have it. In place, and with
 * the buffer of rank 0 left alone by MPI_Iexscan.
 */
static void test_scans(void)
{
	enum {
		N = 300
	};
	float *parts = calloc(N * (size_t)nranks, sizeof(*parts)), want[2][N], got[4][N];
	MPI_Request req[4];

	for (int i = 0; i < 20; i++) {
		float *mine = parts + rank * N;

		for (int r = 0; r < nranks; r++)
			for (int k = 0; k < N; k++)
				parts[r * N + k] = (float)(k + i) / (float)(3 + r) +
						   (float)r * 1e6f;
		for (int k = 0; k < N; k++) {
			float sum = parts[k];

			for (int r = 1; r <= rank; r++) {
				want[0][k] = sum;
				sum += parts[r * N + k];
			}
			if (!rank)
				want[0][k] = -1;
			want[1][k] = sum;
			got[0][k] = -1;
			got[1][k] = got[2][k] = mine[k];
			got[3][k] = 0;
		}
		MPI_Iexscan(mine, got[0], N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &req[0]);
		MPI_Iscan(MPI_IN_PLACE, got[1], N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &req[1]);
		MPI_Iexscan(MPI_IN_PLACE, got[2], N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &req[2]);
		MPI_Iscan(mine, got[3], N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &req[3]);
		GOOD(MPI_Waitall(4, req, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
		GOOD(!memcmp(got[0], want[0], sizeof(want[0])));
		GOOD(!memcmp(got[2], rank ? want[0] : mine, sizeof(want[0])));
		GOOD(!memcmp(got[1], want[1], sizeof(want[1])));
		GOOD(!memcmp(got[3], want[1], sizeof(want[1])));
	}
	free(parts);
	report("Iscan, Iexscan");
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

/* Open MPI 4.1 crashes itself in that case; there the request must be the library's. */
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

/* Requests on two communicators, freed while they run; the last rank comes when the others are in MPI_Finalize(). */
static int test_end(void)
{
	MPI_Request req;
	MPI_Comm comm[2];

	begin_tests(1);
	for (int i = 0; i < 2; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
		try_comm(comm[i]);
	}
	report("communicators for calls that run when MPI ends");
	if (rank == nranks - 1)
		usleep(200000);
	for (int i = 0; i < 16; i++) {
		MPI_Ibarrier(comm[i & 1], &req);
		MPI_Request_free(&req);
	}
	return end_tests();
}

/* ---- threads ---- */

static void *use_comm(void *arg)
{
	int *from = calloc(4 * (size_t)nranks, sizeof(*from)), *to = from + nranks;
	int *counts = to + nranks, *displs = counts + nranks;
	MPI_Request req;

	for (int i = 0; i < 200; i++) {
		int v = i, sum = 0;

		for (int r = 0; r < nranks; r++) {
			from[r] = i + rank * 3;
			counts[r] = 1;
			displs[r] = r;
		}
		try_comm(*(MPI_Comm *)arg);
		MPI_Iallreduce(&v, &sum, 1, MPI_INT, MPI_SUM, *(MPI_Comm *)arg, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		GOOD(sum == nranks * i);
		MPI_Ialltoallv(from, counts, displs, MPI_INT, to, counts, displs, MPI_INT,
			       *(MPI_Comm *)arg, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		for (int r = 0; r < nranks; r++)
			GOOD(to[r] == i + r * 3);
	}
	free(from);
	return NULL;
}

static void test_threads(void)
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
	bool own = is_asked(argc, argv, "own");

	level = begin_mpi(argc, argv);
	if (is_asked(argc, argv, "end"))
		return test_end();
#ifndef OPEN_MPI
	/* MPICH takes its own requests with threads. */
	own |= level == MPI_THREAD_MULTIPLE;
#endif
	begin_tests(14);
	/* Calls that wait for all ranks make the library's communicator; nonblocking ones do not. */
	MPI_Barrier(MPI_COMM_WORLD);
	test_mixed();
	test_local();
	test_order();
	test_message();
	test_completion();
	if (!own)
		test_free();
	else
		skip("MPI_Request_free on running calls", "MPI has none such for its own calls");
	test_shares();
	test_scans();
	test_freed_type();
	test_comms();
	if (!own)
		test_freed_comm();
	else
		skip("a communicator freed while a call runs", "MPI has faults with its own calls");
	test_progress();
	test_late();
	test_threads();
	return end_tests();
}

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
#define POOL 12
#define FEW 3

static int next_rank, last_rank;
static int level;

/* MPICH's own persistent collectives, which it has with threads, are not what is tested here, and have faults. */
static bool are_own(void)
{
#ifdef OPEN_MPI
	return false;
#else
	return level == MPI_THREAD_MULTIPLE;
#endif
}

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
	int *shares = calloc(3 * (size_t)nranks + 1, sizeof(*shares)), *displs = shares + nranks;
	int *gathered = displs + nranks, root = nranks - 1;
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
		MPI_Iallgatherv(mine, shares[rank], MPI_INT, gathered, shares, displs, MPI_INT,
				MPI_COMM_WORLD, &req[2]);
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
 * Started again and again, in one array with a nonblocking call and a message. No allgather with MPICH: 4.0 sends at
 * each start what was there at the first.
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

/*
 * By every call for requests, with persistent messages among them. Types and the communicator are freed before the
 * first start, and each request is freed while it is active, so the buffers stay.
 */
static void test_restart(void)
{
	static int v[LARGE + 1000];
	int *at = v + LARGE, *gathered = at + 200, token[2] = { 0 };
	int indices[6], n, done;
	MPI_Request req[6];
	MPI_Datatype t;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	try_comm(comm);
	MPI_Type_vector(10, 1, 2, MPI_INT, &t);
	MPI_Type_commit(&t);
	PERSISTENT(Allreduce)
	(MPI_IN_PLACE, v, LARGE, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &req[0]);
	PERSISTENT(Bcast)(at, 1, t, 0, comm, MPI_INFO_NULL, &req[1]);
	PERSISTENT(Gather)
	(&rank, 1, MPI_INT, gathered, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &req[2]);
	PERSISTENT(Barrier)(comm, MPI_INFO_NULL, &req[3]);
	MPI_Send_init(&token[0], 1, MPI_INT, next_rank, 5, MPI_COMM_WORLD, &req[4]);
	MPI_Recv_init(&token[1], 1, MPI_INT, last_rank, 5, MPI_COMM_WORLD, &req[5]);
	MPI_Type_free(&t);
	MPI_Comm_free(&comm);
	for (int way = 0; way < 6; way++) {
		for (int i = 0; i < LARGE; i++)
			v[i] = rank + way;
		for (int i = 0; i < 20; i++)
			at[i] = rank ? -1 : way + i;
		token[0] = rank + way;
		if (way & 1)
			for (int i = 0; i < 6; i++)
				GOOD(MPI_Start(&req[i]) == MPI_SUCCESS);
		else
			GOOD(MPI_Startall(6, req) == MPI_SUCCESS);
		for (int left = 6; left && way == 0; left--)
			GOOD(MPI_Waitany(6, req, &n, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
			     n != MPI_UNDEFINED);
		for (int left = 6; left && way == 1; left -= n)
			GOOD(MPI_Waitsome(6, req, &n, indices, MPI_STATUSES_IGNORE) ==
				     MPI_SUCCESS &&
			     n > 0);
		for (int left = 6; left && way == 2; left -= n)
			GOOD(MPI_Testsome(6, req, &n, indices, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
		for (done = 0; !done && way == 3;)
			GOOD(MPI_Testall(6, req, &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
		for (int i = 0; i < 6 && way >= 4; i++) {
			for (done = way != 4; !done;)
				MPI_Request_get_status(req[i], &done, MPI_STATUS_IGNORE);
			GOOD(MPI_Wait(&req[i], MPI_STATUS_IGNORE) == MPI_SUCCESS);
		}
		/* They are inactive. */
		GOOD(MPI_Waitany(6, req, &n, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
		     n == MPI_UNDEFINED);
		for (int i = 0; i < LARGE; i++)
			if (v[i] != nranks * (nranks - 1) / 2 + nranks * way) {
				GOOD(!"sum");
				break;
			}
		for (int i = 0; i < 20; i++)
			GOOD(at[i] == (rank && i & 1 ? -1 : way + i));
		for (int r = 0; !rank && r < nranks; r++)
			GOOD(gathered[r] == r);
		GOOD(token[1] == last_rank + way);
	}
	at[0] = rank ? -1 : 77;
	MPI_Startall(4, req);
	for (int i = 0; i < 6; i++)
		GOOD(MPI_Request_free(&req[i]) == MPI_SUCCESS && req[i] == MPI_REQUEST_NULL);
	while (*(volatile int *)at != 77)
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &(int){ 0 },
			   MPI_STATUS_IGNORE);
	report("persistent requests, started again in all ways");
}

/* The functions with counts of MPI_Count. */
static void test_persistent_large(void)
{
#if MPI_VERSION >= 4
	int *all = calloc(3 * (size_t)nranks, sizeof(*all)), *sums = all + nranks,
	    *parts = sums + nranks;
	MPI_Count *counts = calloc((size_t)nranks, sizeof(*counts));
	MPI_Aint *displs = calloc((size_t)nranks, sizeof(*displs));
	int mine = 0, part = 0, prefix = -1;
	MPI_Request req[5];

	for (int r = 0; r < nranks; r++) {
		counts[r] = 1;
		displs[r] = nranks - 1 - r;
	}
	MPI_Alltoall_init_c(all, 1, MPI_INT, sums, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
			    &req[0]);
	MPI_Scatter_init_c(all, 1, MPI_INT, &part, 1, MPI_INT, nranks - 1, MPI_COMM_WORLD,
			   MPI_INFO_NULL, &req[1]);
	MPI_Allgatherv_init_c(&mine, 1, MPI_INT, parts, counts, displs, MPI_INT, MPI_COMM_WORLD,
			      MPI_INFO_NULL, &req[2]);
	MPI_Scan_init_c(&mine, &prefix, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
			&req[3]);
	for (int round = 0; round < 50; round++) {
		mine = rank + round;
		for (int r = 0; r < nranks; r++)
			all[r] = 100 * rank + r + round;
		GOOD(MPI_Startall(4, req) == MPI_SUCCESS);
		MPI_Ibarrier(MPI_COMM_WORLD, &req[4]);
		GOOD(MPI_Waitall(5, req, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
		GOOD(part == 100 * (nranks - 1) + rank + round);
		GOOD(prefix == rank * (rank + 1) / 2 + round * (rank + 1));
		for (int r = 0; r < nranks; r++)
			GOOD(sums[r] == 100 * r + rank + round &&
			     parts[nranks - 1 - r] == r + round);
	}
	for (int i = 0; i < 4; i++)
		GOOD(MPI_Request_free(&req[i]) == MPI_SUCCESS);
	free(all);
	free(counts);
	free(displs);
	report("persistent requests with counts of MPI_Count");
#else
	skip("persistent requests with counts of MPI_Count", "MPI 3 has none");
#endif
}

/*
 * More at once than swingcoll takes, while rank 0 waits in a receive for a message that others send when theirs have
 * ended.
 */
static void test_persistent_progress(void)
{
	static int v[MANY], sum[MANY];
	MPI_Request req[MANY];
	int token = 0;

	for (int i = 0; i < MANY; i++)
		GOOD(PERSISTENT(Allreduce)(&v[i], &sum[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
					   MPI_INFO_NULL, &req[i]) == MPI_SUCCESS);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++)
			v[i] = rank + i * round;
		GOOD(MPI_Startall(MANY, req) == MPI_SUCCESS);
		for (int r = 1; r < nranks && !rank; r++)
			MPI_Recv(&token, 1, MPI_INT, r, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		GOOD(MPI_Waitall(MANY, req, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
		if (rank)
			MPI_Send(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
		for (int i = 0; i < MANY; i++)
			GOOD(sum[i] == nranks * (nranks - 1) / 2 + i * round * nranks);
	}
	for (int i = 0; i < MANY; i++)
		GOOD(MPI_Request_free(&req[i]) == MPI_SUCCESS);
	report("%d persistent requests at once, while a rank waits for a message", MANY);
}

/* Odd ranks go through them backwards. */
static int turn(int i, int n)
{
	return rank & 1 ? n - 1 - i : i;
}

/*
 * MPI demands one order of the calls that make requests, and none of those that start them. Among them an all-to-all
 * whose only share is of the last rank to rank 0, so that MPI carries it out.
 */
static void test_persistent_order(void)
{
	int *all = calloc(7 * (size_t)nranks, sizeof(*all)), *shares = all + 2 * nranks;
	int *from = shares + nranks, *to = from + nranks, *displs = to + nranks,
	    *none = displs + nranks;
	int v[2] = { 0 }, sum[2] = { 0 }, sent = 0, late = 0, last = nranks - 1;
	MPI_Request req[5], other;

	for (int r = 0; r < nranks; r++) {
		shares[r] = 1;
		displs[r] = r;
	}
	from[0] = rank == last;
	to[last] = !rank;
	for (int i = 0; i < 2; i++)
		PERSISTENT(Allreduce)
	(&v[i], &sum[i], 1, MPI_INT, i ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &req[i]);
	PERSISTENT(Bcast)(&sent, 1, MPI_INT, last, MPI_COMM_WORLD, MPI_INFO_NULL, &req[2]);
	PERSISTENT(Alltoallv)
	(all, shares, displs, MPI_INT, all + nranks, shares, displs, MPI_INT, MPI_COMM_WORLD,
	 MPI_INFO_NULL, &req[3]);
	PERSISTENT(Alltoallv)
	(v, from, none, MPI_INT, &late, to, none, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &req[4]);
	for (int round = 1; round <= 20; round++) {
		int first = round, max = 0;

		v[0] = v[1] = round * (rank + 1);
		sent = rank == last ? round : -1;
		for (int r = 0; r < nranks; r++)
			all[r] = 100 * rank + r + round;
		for (int i = 0; i < 5; i++)
			GOOD(MPI_Start(&req[turn(i, 5)]) == MPI_SUCCESS);
		for (int i = 0; i < 5; i++)
			GOOD(MPI_Wait(&req[turn(i, 5)], MPI_STATUS_IGNORE) == MPI_SUCCESS);
		GOOD(sum[0] == round * nranks * (nranks + 1) / 2 && sum[1] == round * nranks);
		GOOD(sent == round && (rank || late == round * nranks));
		for (int r = 0; r < nranks; r++)
			GOOD(all[nranks + r] == 100 * r + rank + round);
		/* Before other calls, and behind them. */
		sum[0] = sum[1] = 0;
		if (rank & 1)
			GOOD(MPI_Startall(2, req) == MPI_SUCCESS);
		MPI_Iallreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &other);
		GOOD(MPI_Allreduce(&v[0], &max, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD) ==
		     MPI_SUCCESS);
		if (!(rank & 1))
			GOOD(MPI_Startall(2, req) == MPI_SUCCESS);
		GOOD(MPI_Waitall(2, req, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
		GOOD(MPI_Wait(&other, MPI_STATUS_IGNORE) == MPI_SUCCESS);
		GOOD(sum[0] == round * nranks * (nranks + 1) / 2 && sum[1] == round * nranks);
		GOOD(first == round * nranks && max == round * nranks);
	}
	for (int i = 0; i < 5; i++)
		GOOD(MPI_Request_free(&req[i]) == MPI_SUCCESS);
	free(all);
	report("persistent requests, started in another order on odd ranks");
}

/*
 * More than swingcoll carries out at once, made and freed one after the other. The first few are freed while they are
 * active, and last on some ranks longer than on others; no more of them than are swingcoll's, as Open MPI fails with its
 * own ones then.
 */
static void test_persistent_pool(void)
{
	static int v[4 * POOL], sum[4 * POOL];
	static int few[FEW], last[FEW];
	MPI_Request req[4 * POOL];

	for (int i = 0; i < FEW; i++) {
		few[i] = i + 1;
		PERSISTENT(Allreduce)
		(&few[i], &last[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &req[i]);
		GOOD(MPI_Start(&req[i]) == MPI_SUCCESS);
		GOOD(MPI_Request_free(&req[i]) == MPI_SUCCESS && req[i] == MPI_REQUEST_NULL);
	}
	for (int i = 0; i < POOL; i++)
		PERSISTENT(Allreduce)
	(&v[i], &sum[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &req[i]);
	for (int round = 0; round < 3 * POOL; round++) {
		int next = round + POOL;

		for (int i = round; i < next; i++)
			v[i] = rank + i * round;
		for (int i = 0; i < POOL; i++)
			GOOD(MPI_Start(&req[round + turn(i, POOL)]) == MPI_SUCCESS);
		for (int i = round; i < next; i++) {
			GOOD(MPI_Wait(&req[i], MPI_STATUS_IGNORE) == MPI_SUCCESS);
			GOOD(sum[i] == nranks * (nranks - 1) / 2 + i * round * nranks);
		}
		GOOD(MPI_Request_free(&req[round]) == MPI_SUCCESS);
		PERSISTENT(Allreduce)
		(&v[next], &sum[next], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
		 &req[next]);
	}
	for (int i = 3 * POOL; i < 4 * POOL; i++)
		GOOD(MPI_Request_free(&req[i]) == MPI_SUCCESS);
	for (int i = 0; i < FEW; i++)
		while (*(volatile int *)&last[i] != (i + 1) * nranks)
			MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &(int){ 0 },
				   MPI_STATUS_IGNORE);
	report("%d persistent requests at once, made and freed in turn", POOL);
}

static bool is_error(int ret, int want)
{
	int class;

	return ret != MPI_SUCCESS && MPI_Error_class(ret, &class) == MPI_SUCCESS && class == want;
}

/* Rank 0's call cannot end before the others have had its message, which it sends after it has tried to start it again. */
static void test_persistent_errors(void)
{
	int sum = 0, token = 0;
	MPI_Request req = MPI_REQUEST_NULL;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
#ifdef OPEN_MPI /* MPICH of Debian does not look at arguments */
	GOOD(is_error(PERSISTENT(Allreduce)(&rank, &sum, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
					    MPI_INFO_NULL, &req),
		      MPI_ERR_COUNT));
	GOOD(is_error(PERSISTENT(Bcast)(&token, 1, MPI_INT, nranks, MPI_COMM_WORLD, MPI_INFO_NULL,
					&req),
		      MPI_ERR_ROOT));
	GOOD(req == MPI_REQUEST_NULL);
#endif
	GOOD(PERSISTENT(Allreduce)(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
				   &req) == MPI_SUCCESS);
	for (int i = 0; i < 2; i++) {
		sum = 0;
		if (rank)
			MPI_Recv(&token, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		GOOD(MPI_Start(&req) == MPI_SUCCESS);
		if (!rank) {
			GOOD(is_error(MPI_Start(&req), MPI_ERR_REQUEST));
			GOOD(is_error(MPI_Startall(1, &req), MPI_ERR_REQUEST));
		}
		for (int r = 1; r < nranks && !rank; r++)
			MPI_Send(&token, 1, MPI_INT, r, 6, MPI_COMM_WORLD);
		GOOD(MPI_Wait(&req, MPI_STATUS_IGNORE) == MPI_SUCCESS);
		GOOD(sum == nranks * (nranks - 1) / 2);
	}
	GOOD(MPI_Request_free(&req) == MPI_SUCCESS);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	report("persistent requests: wrong arguments, and a start of an active one");
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
	level = MPI_THREAD_SINGLE;
	if (argc > 1)
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	else
		MPI_Init(&argc, &argv);
	begin_tests(20);
	next_rank = (rank + 1) % nranks;
	last_rank = (rank + nranks - 1) % nranks;
	/* Calls that wait for all ranks make the library's communicator; nonblocking ones do not. */
	MPI_Barrier(MPI_COMM_WORLD);
	test_mixed();
	test_local();
	test_order();
	test_completion();
	test_free();
	test_shares();
	test_scans();
	test_freed_type();
	test_comms();
	test_freed_comm();
	test_progress();
	test_late();
	test_persistent();
	if (are_own()) {
		for (int i = 0; i < 6; i++)
			skip("persistent requests", "with threads they are MPICH's own");
	} else {
		test_restart();
		test_persistent_large();
		test_persistent_progress();
		test_persistent_order();
		test_persistent_pool();
		test_persistent_errors();
	}
	test_threads();
	return end_tests();
}

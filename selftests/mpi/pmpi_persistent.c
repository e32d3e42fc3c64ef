// SPDX-License-Identifier: GPL-2.0-only
/*
 * Persistent collectives under the preload library. Rank 0 prints TAP. pmpi.sh runs it, with "threads" for
 * MPI_THREAD_MULTIPLE, with "end" for what is called while MPI ends, and pmpi_faults.sh with "own" where the
 * library leaves them to MPI.
 */
#include "pmpi_test.h"

#define MANY 200
#define LARGE 200000
#define POOL 12
#define FEW 3
#define COMMS 4

/*
 * Started again and again, in one array with a nonblocking call and a message. No allgather with MPICH: 4.0 sends at
 * each start what was there at the first.
 */
static void test_persistent(void)
{
	int v = 0, sum = 0, sent = 0, other = 0, got = -1;
	MPI_Request req[4];

	PERSISTENT(Allreduce_init)
	(&v, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &req[0]);
	PERSISTENT(Bcast_init)
	(&sent, 1, MPI_INT, nranks - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &req[1]);
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

/* Several on each of several communicators, made and freed while those of the ones before exist. */
static void test_many_comms(void)
{
	static int v[COMMS][FEW], sum[COMMS][FEW];
	MPI_Request req[COMMS][FEW];
	MPI_Comm comm[COMMS];

	for (int i = 0; i < 2 * COMMS; i++) {
		int at = i % COMMS;

		for (int k = 0; k < FEW && i >= COMMS; k++)
			GOOD(MPI_Request_free(&req[at][k]) == MPI_SUCCESS);
		if (i >= COMMS)
			MPI_Comm_free(&comm[at]);
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[at]);
		try_comm(comm[at]);
		for (int k = 0; k < FEW; k++)
			GOOD(PERSISTENT(Allreduce_init)(&v[at][k], &sum[at][k], 1, MPI_INT,
							k ? MPI_SUM : MPI_MAX, comm[at],
							MPI_INFO_NULL, &req[at][k]) == MPI_SUCCESS);
		for (int c = 0; c <= (i < COMMS ? i : COMMS - 1); c++)
			for (int k = 0; k < FEW; k++)
				v[c][k] = rank + i * c + k;
		for (int c = 0; c <= (i < COMMS ? i : COMMS - 1); c++) {
			GOOD(MPI_Startall(FEW, req[c]) == MPI_SUCCESS);
			GOOD(MPI_Waitall(FEW, req[c], MPI_STATUSES_IGNORE) == MPI_SUCCESS);
			GOOD(sum[c][0] == nranks - 1 + i * c);
			for (int k = 1; k < FEW; k++)
				GOOD(sum[c][k] == nranks * (nranks - 1) / 2 + nranks * (i * c + k));
		}
	}
	for (int c = 0; c < COMMS; c++) {
		for (int k = 0; k < FEW; k++)
			GOOD(MPI_Request_free(&req[c][k]) == MPI_SUCCESS);
		MPI_Comm_free(&comm[c]);
	}
	report("persistent requests on %d communicators at once", COMMS);
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
	PERSISTENT(Allreduce_init)
	(MPI_IN_PLACE, v, LARGE, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &req[0]);
	PERSISTENT(Bcast_init)(at, 1, t, 0, comm, MPI_INFO_NULL, &req[1]);
	PERSISTENT(Gather_init)
	(&rank, 1, MPI_INT, gathered, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &req[2]);
	PERSISTENT(Barrier_init)(comm, MPI_INFO_NULL, &req[3]);
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
		GOOD(PERSISTENT(Allreduce_init)(&v[i], &sum[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
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
		PERSISTENT(Allreduce_init)
	(&v[i], &sum[i], 1, MPI_INT, i ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &req[i]);
	PERSISTENT(Bcast_init)(&sent, 1, MPI_INT, last, MPI_COMM_WORLD, MPI_INFO_NULL, &req[2]);
	PERSISTENT(Alltoallv_init)
	(all, shares, displs, MPI_INT, all + nranks, shares, displs, MPI_INT, MPI_COMM_WORLD,
	 MPI_INFO_NULL, &req[3]);
	PERSISTENT(Alltoallv_init)
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
		PERSISTENT(Allreduce_init)
		(&few[i], &last[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &req[i]);
		GOOD(MPI_Start(&req[i]) == MPI_SUCCESS);
		GOOD(MPI_Request_free(&req[i]) == MPI_SUCCESS && req[i] == MPI_REQUEST_NULL);
	}
	for (int i = 0; i < POOL; i++)
		PERSISTENT(Allreduce_init)
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
		PERSISTENT(Allreduce_init)
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
	GOOD(is_error(PERSISTENT(Allreduce_init)(&rank, &sum, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
						 MPI_INFO_NULL, &req),
		      MPI_ERR_COUNT));
	GOOD(is_error(PERSISTENT(Bcast_init)(&token, 1, MPI_INT, nranks, MPI_COMM_WORLD,
					     MPI_INFO_NULL, &req),
		      MPI_ERR_ROOT));
	GOOD(req == MPI_REQUEST_NULL);
#endif
	GOOD(PERSISTENT(Allreduce_init)(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
					MPI_INFO_NULL, &req) == MPI_SUCCESS);
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

/*
 * A collective cannot be cancelled: it ends, and so does the next. All ranks but the last one try while it runs, as
 * the last one starts it after their messages.
 */
static void test_cancel(void)
{
	int v = 0, sum = 0, token = 0, cancelled;
	MPI_Request req;
	MPI_Status status;

	PERSISTENT(Allreduce_init)
	(&v, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &req);
	for (int round = 1; round <= 2; round++) {
		v = round * (rank + 1);
		for (int r = 0; r < nranks - 1 && rank == nranks - 1; r++)
			MPI_Recv(&token, 1, MPI_INT, r, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		GOOD(MPI_Start(&req) == MPI_SUCCESS);
		GOOD(MPI_Cancel(&req) == MPI_SUCCESS && req != MPI_REQUEST_NULL);
		if (rank < nranks - 1)
			MPI_Send(&token, 1, MPI_INT, nranks - 1, 8, MPI_COMM_WORLD);
		GOOD(MPI_Wait(&req, &status) == MPI_SUCCESS);
		cancelled = -1;
		GOOD(MPI_Test_cancelled(&status, &cancelled) == MPI_SUCCESS && !cancelled);
		GOOD(sum == round * nranks * (nranks + 1) / 2);
	}
	GOOD(MPI_Request_free(&req) == MPI_SUCCESS);
	report("MPI_Cancel on a persistent request");
}

/* What MPIs have faults with: these cases are for persistent requests of the library. */
static void test_ours(void)
{
	test_restart();
	test_persistent_large();
	test_persistent_progress();
	test_persistent_order();
	test_persistent_pool();
	test_persistent_errors();
	test_cancel();
}

/* MPI ends with the attributes of MPI_COMM_SELF: all of it works until they are deleted. */
static MPI_Request at_end;
static MPI_Comm comm_at_end;
static int value, sum_at_end;

static int use_at_end(MPI_Comm comm, int key, void *attribute, void *extra)
{
	static int v[LARGE], sum[LARGE];
	MPI_Request req;

	(void)comm;
	(void)key;
	(void)attribute;
	(void)extra;
	for (value = 1; value < 4; value++) {
		GOOD(MPI_Start(&at_end) == MPI_SUCCESS);
		GOOD(MPI_Wait(&at_end, MPI_STATUS_IGNORE) == MPI_SUCCESS);
		GOOD(sum_at_end == nranks * value);
		try_comm(comm_at_end);
		v[LARGE - 1] = value;
		MPI_Iallreduce(v, sum, LARGE, MPI_INT, MPI_SUM, comm_at_end, &req);
		GOOD(MPI_Wait(&req, MPI_STATUS_IGNORE) == MPI_SUCCESS);
		GOOD(sum[LARGE - 1] == nranks * value);
	}
	GOOD(MPI_Request_free(&at_end) == MPI_SUCCESS);
	MPI_Comm_free(&comm_at_end);
	report("calls by a function that deletes an attribute of MPI_COMM_SELF");
	return MPI_SUCCESS;
}

static int test_end(void)
{
	int key;

	begin_tests(1);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, use_at_end, &key, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm_at_end);
	try_comm(comm_at_end);
	PERSISTENT(Allreduce_init)
	(&value, &sum_at_end, 1, MPI_INT, MPI_SUM, comm_at_end, MPI_INFO_NULL, &at_end);
	return end_tests();
}

int main(int argc, char **argv)
{
	bool own = is_asked(argc, argv, "own");

	/* MPICH has none of the library's with threads. */
#ifdef OPEN_MPI
	begin_mpi(argc, argv);
#else
	own |= begin_mpi(argc, argv) == MPI_THREAD_MULTIPLE;
#endif
	if (is_asked(argc, argv, "end"))
		return test_end();
	begin_tests(9);
	test_persistent();
	test_many_comms();
	if (own)
		for (int i = 0; i < 7; i++)
			skip("persistent requests", "MPI has faults with its own ones");
	else
		test_ours();
	return end_tests();
}

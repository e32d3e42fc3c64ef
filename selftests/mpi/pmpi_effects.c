// SPDX-License-Identifier: GPL-2.0-only
/*
 * What programs rely on beside the results of collectives: that MPI handles messages meanwhile, does not look at arguments
 * that do not matter, and calls no function of theirs. Rank 0 prints TAP. pmpi.sh runs it.
 *
 *	pmpi_effects [barriers | lives]		barriers: with another program, which has a tool; lives: only communicators
 *						that are soon freed
 */
#include <fcntl.h>
#include <sys/resource.h>

#include "pmpi_test.h"

/* ---- messages ---- */

#define NBUFFERED 8
/* Of 40 KB MPICH's own barrier does not always free the buffer. */
#define BUFFERED_BYTES 8192

static char from[NBUFFERED * BUFFERED_BYTES], to[NBUFFERED * BUFFERED_BYTES];

static void end_round(int i)
{
	MPI_Request request;

	if (i % 2) {
		MPI_Barrier(MPI_COMM_WORLD);
		return;
	}
	MPI_Ibarrier(MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Neighbours fill the buffer of MPI_Bsend(), and know by a barrier that it is free again. */
static void test_buffered(void)
{
	MPI_Request request[NBUFFERED];
	int size;
	void *room;

	MPI_Pack_size(BUFFERED_BYTES, MPI_BYTE, MPI_COMM_WORLD, &size);
	size = NBUFFERED * (size + MPI_BSEND_OVERHEAD);
	room = malloc((size_t)size);
	MPI_Buffer_attach(room, size);
	for (int i = 0; i < 50; i++) {
		for (int k = 0; k < NBUFFERED; k++)
			MPI_Irecv(to + k * BUFFERED_BYTES, BUFFERED_BYTES, MPI_BYTE, last_rank, k,
				  MPI_COMM_WORLD, &request[k]);
		memset(from, rank + i, sizeof(from));
		for (int k = 0; k < NBUFFERED; k++)
			MPI_Bsend(from + k * BUFFERED_BYTES, BUFFERED_BYTES, MPI_BYTE, next_rank, k,
				  MPI_COMM_WORLD);
		MPI_Waitall(NBUFFERED, request, MPI_STATUSES_IGNORE);
		for (int k = 0; k < NBUFFERED; k++)
			GOOD(to[k * BUFFERED_BYTES] == (char)(last_rank + i) &&
			     to[(k + 1) * BUFFERED_BYTES - 1] == (char)(last_rank + i));
		end_round(i);
	}
	MPI_Buffer_detach(&room, &size);
	free(room);
	report("Bsend with room for the messages between two barriers");
}

/* What was sent before a barrier is found after it. */
static void test_probes(void)
{
	int found = 0, probed = 0, sent, got;
	MPI_Message message;

	for (int i = 0; i < 50; i++) {
		sent = 1000 * rank + i;
		MPI_Send(&sent, 1, MPI_INT, next_rank, 1, MPI_COMM_WORLD);
		MPI_Send(&sent, 1, MPI_INT, next_rank, 2, MPI_COMM_WORLD);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Iprobe(last_rank, 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
		MPI_Improbe(last_rank, 2, MPI_COMM_WORLD, &probed, &message, MPI_STATUS_IGNORE);
		GOOD(found && probed);
		MPI_Recv(&got, 1, MPI_INT, last_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		GOOD(got == 1000 * last_rank + i);
		if (probed)
			MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
		else
			MPI_Recv(&got, 1, MPI_INT, last_rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	report("probes after a barrier find what was sent before it");
}

#define MOST_ROUNDS 400

/* Rank 0 comes last to all collectives, and has to answer rank 1 meanwhile. */
static void test_progress(void)
{
	int done = rank != 1, all = 0, rounds = 0;
	long cell = 40 + rank, one = 2, before = 0;
	MPI_Request request;
	MPI_Win win;

	MPI_Win_create(&cell, sizeof(cell), sizeof(cell), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	for (int i = 0; i < 20; i++)
		try_comm(MPI_COMM_WORLD);
	if (rank == 1) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		MPI_Rget_accumulate(&one, 1, MPI_LONG, &before, 1, MPI_LONG, 0, 0, 1, MPI_LONG,
				    MPI_SUM, win, &request);
	}
	for (; !all && rounds < MOST_ROUNDS; rounds++) {
		if (!done)
			MPI_Test(&request, &done, MPI_STATUS_IGNORE);
		if (!rank)
			usleep(5000);
		MPI_Allreduce(&done, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	}
	GOOD(all);
	if (rank == 1) {
		if (!done)
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Win_unlock(0, win);
		GOOD(before == 40);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	GOOD(rank || cell == 42);
	MPI_Win_free(&win);
	report("a rank that comes last to all collectives answers others");
}

/* ---- functions of the program's ---- */

static int ncollectives;

static int call_collective(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)key;
	(void)value;
	(void)extra;
	try_comm(comm);
	ncollectives++;
	return MPI_SUCCESS;
}

/* The next communicator may have the same handle, and other ranks. */
static void test_deleted_attributes(void)
{
	int key, value = 0;
	MPI_Comm first, second;

	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, call_collective, &key, NULL);
	for (int i = 0; i < 6; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &first);
		/* The library's attribute comes after this one, before it, or in its function. */
		if (i % 3 == 0)
			MPI_Comm_set_attr(first, key, &value);
		if (i % 3 < 2)
			try_comm(first);
		if (i % 3)
			MPI_Comm_set_attr(first, key, &value);
		if (i < 3)
			MPI_Comm_free(&first);
		else
			MPI_Comm_disconnect(&first);
		GOOD(first == MPI_COMM_NULL);
		MPI_Comm_split(MPI_COMM_WORLD, rank == nranks - 1, -rank, &second);
		try_comm(second);
		MPI_Barrier(second);
		MPI_Comm_free(&second);
	}
	GOOD(ncollectives == 6);
	MPI_Comm_free_keyval(&key);
	report("collectives in functions that delete a communicator's attributes");
}

static int ncopied;

static int refuse_copy(MPI_Datatype type, int key, void *extra, void *in, void *out, int *flag)
{
	(void)type;
	(void)key;
	(void)extra;
	(void)in;
	(void)out;
	*flag = 0;
	ncopied++;
	return MPI_ERR_OTHER;
}

/* Nonblocking calls keep the type. */
static void test_type_attributes(void)
{
	int key, mine[2] = { rank, -rank }, *all = calloc((size_t)nranks, 4 * sizeof(*all));
	MPI_Datatype pairs, spread;
	MPI_Request request;

	MPI_Type_create_keyval(refuse_copy, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
	MPI_Type_vector(2, 1, 2, MPI_INT, &pairs);
	MPI_Type_create_resized(pairs, 0, 4 * sizeof(*all), &spread);
	MPI_Type_commit(&spread);
	MPI_Type_set_attr(spread, key, &key);
	MPI_Iallgather(mine, 2, MPI_INT, all, 1, spread, MPI_COMM_WORLD, &request);
	MPI_Type_free(&spread);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int r = 0; r < nranks; r++)
		GOOD(all[4 * r] == r && !all[4 * r + 1] && all[4 * r + 2] == -r && !all[4 * r + 3]);
	GOOD(!ncopied);
	MPI_Type_free(&pairs);
	MPI_Type_free_keyval(&key);
	free(all);
	report("a nonblocking call does not copy a type's attributes");
}

/* ---- arguments ---- */

/* In an intercommunicator of the first rank and all others, some arguments of both sides do not matter. */
static void test_intercommunicators(void)
{
	int mine = rank, *all = calloc((size_t)nranks, sizeof(*all)), remote = rank ? 0 : 1;
	MPI_Datatype none = MPI_DATATYPE_NULL;
	MPI_Comm local, inter;

	MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &local);
	MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, remote, 9, &inter);
	/* No handle of either MPI. */
	memset(&none, 0, sizeof(none));
	if (rank)
		MPI_Gather(&mine, 1, MPI_INT, NULL, 7, none, 0, inter);
	else
		MPI_Gather(NULL, 7, none, all, 1, MPI_INT, MPI_ROOT, inter);
	for (int r = 1; r < nranks && !rank; r++)
		GOOD(all[r - 1] == r);
	if (rank)
		MPI_Scatter(NULL, 7, none, &mine, 1, MPI_INT, 0, inter);
	else
		MPI_Scatter(all, 1, MPI_INT, NULL, 7, none, MPI_ROOT, inter);
	GOOD(mine == rank);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&local);
	free(all);
	report("arguments that do not matter with an intercommunicator");
}

/* A type that begins at address 0. */
static void test_bottom(void)
{
	int value = rank ? -1 : 5, one = 1, *all = calloc((size_t)nranks, sizeof(*all));
	MPI_Request request;
	MPI_Datatype type;
	MPI_Aint at;

	MPI_Get_address(&value, &at);
	MPI_Type_create_hindexed(1, &one, &at, MPI_INT, &type);
	MPI_Type_commit(&type);
	MPI_Bcast(MPI_BOTTOM, 1, type, 0, MPI_COMM_WORLD);
	GOOD(value == 5);
	value += rank;
	MPI_Gather(MPI_BOTTOM, 1, type, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Iallgather(MPI_BOTTOM, 1, type, all, 1, MPI_INT, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int r = 0; r < nranks; r++)
		GOOD(all[r] == 5 + r);
	MPI_Scatter(all, 1, MPI_INT, MPI_BOTTOM, 1, type, nranks - 1, MPI_COMM_WORLD);
	GOOD(value == 5 + rank);
	MPI_Type_free(&type);
	free(all);
	report("MPI_BOTTOM");
}

/* Errors of all ranks are told by MPI, and nothing else happens. */
static void test_errors(void)
{
	int mine = rank, *all = calloc((size_t)nranks, sizeof(*all));

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	try_comm(MPI_COMM_WORLD);
	GOOD(MPI_Allgather(&mine, 1, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD) !=
	     MPI_SUCCESS);
	GOOD(MPI_Allgather(&mine, -1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD) != MPI_SUCCESS);
#ifdef OPEN_MPI
	/* MPICH 4.0 crashes itself. */
	GOOD(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
#endif
	GOOD(MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
	for (int r = 0; r < nranks; r++)
		GOOD(all[r] == r);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	free(all);
	report("arguments that are wrong on all ranks");
}

#define NCOMMS 60

/* With few of them left, communicators do not take all. */
static void test_open_files(void)
{
	int first = open("/dev/null", O_RDONLY), last;
	struct rlimit before, few;
	MPI_Comm comm[NCOMMS];

	getrlimit(RLIMIT_NOFILE, &before);
	few = before;
	few.rlim_cur = (rlim_t)(2 * first + 40);
	GOOD(!setrlimit(RLIMIT_NOFILE, &few));
	for (int i = 0; i < NCOMMS; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
		try_comm(comm[i]);
	}
	last = open("/dev/null", O_RDONLY);
	GOOD(last >= 0);
	for (int i = 0; i < NCOMMS; i++) {
		try_comm(comm[i]);
		MPI_Comm_free(&comm[i]);
	}
	setrlimit(RLIMIT_NOFILE, &before);
	close(first);
	close(last);
	report("communicators leave open files to the program");
}

/* Libraries make communicators for a few calls. */
static int test_lives(void)
{
	begin_tests(1);
	for (int i = 0; i < 40; i++) {
		MPI_Comm comm;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		for (int k = 0; k < 50; k++) {
			int mine = rank + i + k, most = -1;

			MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, comm);
			GOOD(most == nranks - 1 + i + k);
		}
		MPI_Comm_free(&comm);
	}
	report("40 communicators of 50 calls each");
	return end_tests();
}

int main(int argc, char **argv)
{
	begin_mpi(argc, argv);
	if (is_asked(argc, argv, "lives"))
		return test_lives();
	if (is_asked(argc, argv, "barriers"))
		return test_barriers();
	begin_tests(9);
	test_buffered();
	test_probes();
	test_progress();
	test_deleted_attributes();
	test_type_attributes();
	test_intercommunicators();
	test_bottom();
	test_errors();
	test_open_files();
	return end_tests();
}

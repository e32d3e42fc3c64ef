// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collectives whose counts not all ranks know, blocking, nonblocking and persistent, and those whose counts are
 * MPI_Count, under the preload library; each beside the same call by its PMPI_ name, in buffers that must be alike to the last gap.
 * Rank 0 prints TAP. pmpi.sh runs it, and looks at what the library says it has offloaded.
 */
#include "pmpi_test.h"

#define LARGE 20000 /* elements: more than goes through shared memory */
#define ROOM (2 * LARGE + 64)
#define SMALL_ROOM 256 /* for all shares but large ones */
#define MOST 8	       /* ranks */
#define TYPES 3

static MPI_Datatype types[TYPES]; /* MPI_INT; two of them; two, with a gap between */
static int *mine, *ours, *theirs;

/* ---- shares ---- */

enum shape {
	EQUAL,
	UNEVEN,
	ONE,   /* has all */
	HOLES, /* some have none */
	NONE,
	BIG,
	SHAPES
};

/* In pairs of integers, so that each type can have them. Symmetric, as all-to-all in place wants it. */
static int share(enum shape shape, int a, int b)
{
	switch (shape) {
	case EQUAL:
		return 50;
	case UNEVEN:
		return 50 + (a * b + 3 * (a + b)) % 13;
	case ONE:
		return a + b ? 0 : 70;
	case HOLES:
		return (a + b) % 2 ? 0 : 9;
	case BIG:
		return LARGE / 2 - (a * b + a + b) % 5;
	default:
		return 0;
	}
}

static int size_of(enum shape shape, int a, int b, int type)
{
	return share(shape, a, b) * (type ? 1 : 2);
}

static int extent_of(int type)
{
	return type + 1;
}

/* One after the other, or backwards with gaps; in elements, or in bytes for MPI_Alltoallw. */
static void lay_out(const int *counts, const int *kinds, bool bytes, bool back, int *displs)
{
	int at = 0;

	for (int i = 0; i < nranks; i++) {
		int r = back ? nranks - 1 - i : i;
		int unit = bytes ? extent_of(kinds[r]) * 4 : 1;

		displs[r] = at;
		at += (counts[r] + back) * unit;
	}
}

static void fill_first(int n)
{
	for (int i = 0; i < n; i++) {
		mine[i] = i * 31 + rank * 1000003;
		ours[i] = theirs[i] = -i - rank * 7919;
	}
}

static void fill(void)
{
	fill_first(nranks * ROOM);
}

/* As much as a call with such shares reaches: what is behind it is the same in both buffers. */
static void fill_for(enum shape shape)
{
	fill_first(nranks * (shape == BIG ? ROOM : SMALL_ROOM));
}

/* Nonblocking calls, and starts of persistent ones, are waited for in all ways in turn. */
static enum form {
	BLOCKING,
	NONBLOCKING,
	PERSISTENT
} form;

static int wait_for(int ret, MPI_Request *req)
{
	static int way;
	int done, index, n;

	if (ret != MPI_SUCCESS)
		return ret;
	switch (way++ % 6) {
	case 0:
		ret = MPI_Wait(req, MPI_STATUS_IGNORE);
		break;
	case 1:
		for (done = 0; !done && ret == MPI_SUCCESS;)
			ret = MPI_Test(req, &done, MPI_STATUS_IGNORE);
		break;
	case 2:
		ret = MPI_Waitany(1, req, &index, MPI_STATUS_IGNORE);
		break;
	case 3:
		for (n = 0; !n && ret == MPI_SUCCESS;)
			ret = MPI_Testsome(1, req, &n, &index, MPI_STATUSES_IGNORE);
		break;
	case 4:
		for (done = 0; !done && ret == MPI_SUCCESS;)
			ret = MPI_Testall(1, req, &done, MPI_STATUSES_IGNORE);
		break;
	default:
		for (done = 0; !done && ret == MPI_SUCCESS;)
			ret = MPI_Request_get_status(*req, &done, MPI_STATUS_IGNORE);
		if (ret == MPI_SUCCESS)
			ret = MPI_Waitall(1, req, MPI_STATUSES_IGNORE);
		break;
	}
	GOOD((*req == MPI_REQUEST_NULL) == (form == NONBLOCKING));
	return ret;
}

/* Three times, after which an all-to-all in place has exchanged the same as after one. */
static int start_and_wait(int ret, MPI_Request *req)
{
	for (int i = 0; i < 3 && ret == MPI_SUCCESS; i++)
		ret = wait_for(MPI_Start(req), req);
	if (ret == MPI_SUCCESS)
		ret = MPI_Request_free(req);
	GOOD(*req == MPI_REQUEST_NULL);
	return ret;
}

#define CALL(blocking, nonblocking, persistent, ...)                                               \
	(form == PERSISTENT                                                                        \
		 ? start_and_wait(PERSISTENT(persistent)(__VA_ARGS__, MPI_INFO_NULL, &request),    \
				  &request)                                                        \
	 : form == NONBLOCKING ? wait_for(MPI_##nonblocking(__VA_ARGS__, &request), &request)      \
			       : MPI_##blocking(__VA_ARGS__))
static MPI_Request request;

/* Of a function, for reports. */
static const char *name_of(const char *blocking, bool large)
{
	static char name[64];

	if (form == NONBLOCKING)
		snprintf(name, sizeof(name), "I%c%s%s", blocking[0] + 'a' - 'A', blocking + 1,
			 large ? "_c" : "");
	else
		snprintf(name, sizeof(name), "%s%s%s", blocking, form == PERSISTENT ? "_init" : "",
			 large ? "_c" : "");
	return name;
}

static void compare(int ret, int want)
{
	GOOD(ret == MPI_SUCCESS && want == MPI_SUCCESS);
	GOOD(!memcmp(ours, theirs, (size_t)nranks * ROOM * sizeof(int)));
}

/* With counts of int, or of MPI_Count, from the same arrays. */
#if MPI_VERSION >= 4
#define WIDEN(array)                                                                               \
	MPI_Count array##_c[MOST];                                                                 \
	for (int i_ = 0; i_ < nranks; i_++)                                                        \
	array##_c[i_] = array[i_]
#define PLACES(array)                                                                              \
	MPI_Aint array##_c[MOST];                                                                  \
	for (int i_ = 0; i_ < nranks; i_++)                                                        \
	array##_c[i_] = array[i_]
#endif

/* ---- gatherv and scatterv ---- */

static void try_gatherv(enum shape shape, int root, bool back, bool in_place, bool large)
{
	int counts[MOST], displs[MOST], kinds[MOST], ret = -1, kind = (rank + back) % TYPES;
	bool here = rank == root;

	for (int r = 0; r < nranks; r++) {
		kinds[r] = (root + (int)shape) % TYPES;
		counts[r] = size_of(shape, r, r, kinds[r]);
	}
	lay_out(counts, kinds, false, back, displs);
	fill_for(shape);
	if (!large)
		ret = CALL(Gatherv, Igatherv, Gatherv_init, here && in_place ? MPI_IN_PLACE : mine,
			   size_of(shape, rank, rank, kind), types[kind], here ? ours : NULL,
			   here ? counts : NULL, here ? displs : NULL,
			   here ? types[kinds[0]] : MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
#if MPI_VERSION >= 4
	WIDEN(counts);
	PLACES(displs);
	if (large)
		ret = CALL(Gatherv_c, Igatherv_c, Gatherv_init_c,
			   here && in_place ? MPI_IN_PLACE : mine, size_of(shape, rank, rank, kind),
			   types[kind], ours, counts_c, displs_c, types[kinds[0]], root,
			   MPI_COMM_WORLD);
#endif
	compare(ret, PMPI_Gatherv(here && in_place ? MPI_IN_PLACE : mine,
				  size_of(shape, rank, rank, kind), types[kind], theirs, counts,
				  displs, types[kinds[0]], root, MPI_COMM_WORLD));
}

static void try_scatterv(enum shape shape, int root, bool back, bool in_place, bool large)
{
	int counts[MOST], displs[MOST], kinds[MOST], ret = -1, kind = (rank + back) % TYPES;
	bool here = rank == root;

	for (int r = 0; r < nranks; r++) {
		kinds[r] = (root + (int)shape) % TYPES;
		counts[r] = size_of(shape, r, r, kinds[r]);
	}
	lay_out(counts, kinds, false, back, displs);
	fill_for(shape);
	if (!large)
		ret = CALL(Scatterv, Iscatterv, Scatterv_init, here ? mine : NULL,
			   here ? counts : NULL, here ? displs : NULL,
			   here ? types[kinds[0]] : MPI_DATATYPE_NULL,
			   here && in_place ? MPI_IN_PLACE : ours, size_of(shape, rank, rank, kind),
			   types[kind], root, MPI_COMM_WORLD);
#if MPI_VERSION >= 4
	WIDEN(counts);
	PLACES(displs);
	if (large)
		ret = CALL(Scatterv_c, Iscatterv_c, Scatterv_init_c, mine, counts_c, displs_c,
			   types[kinds[0]], here && in_place ? MPI_IN_PLACE : ours,
			   size_of(shape, rank, rank, kind), types[kind], root, MPI_COMM_WORLD);
#endif
	compare(ret,
		PMPI_Scatterv(mine, counts, displs, types[kinds[0]],
			      here && in_place ? MPI_IN_PLACE : theirs,
			      size_of(shape, rank, rank, kind), types[kind], root, MPI_COMM_WORLD));
}

static void test_rooted(bool large)
{
	for (int shape = 0; shape < SHAPES; shape++)
		for (int root = 0; root < nranks; root++)
			for (int how = 0; how < 4; how++)
				try_gatherv((enum shape)shape, root, how & 1, how & 2, large);
	report("MPI_%s: mixed types, uneven and zero counts, gaps, in place",
	       name_of("Gatherv", large));
	for (int shape = 0; shape < SHAPES; shape++)
		for (int root = 0; root < nranks; root++)
			for (int how = 0; how < 4; how++)
				try_scatterv((enum shape)shape, root, how & 1, how & 2, large);
	report("MPI_%s: mixed types, uneven and zero counts, gaps, in place",
	       name_of("Scatterv", large));
}

/* ---- all-to-all ---- */

static void try_alltoallv(enum shape shape, bool back, bool in_place, bool large)
{
	int sends[MOST], from[MOST], recvs[MOST], to[MOST], send_kinds[MOST], recv_kinds[MOST];
	int ret = -1, kind = (rank + back) % TYPES, kind2 = (rank + (int)shape) % TYPES;

	for (int r = 0; r < nranks; r++) {
		send_kinds[r] = kind;
		recv_kinds[r] = kind2;
		sends[r] = size_of(shape, rank, r, kind);
		recvs[r] = size_of(shape, r, rank, kind2);
	}
	lay_out(sends, send_kinds, false, !back, from);
	lay_out(recvs, recv_kinds, false, back, to);
	fill_for(shape);
	if (!large)
		ret = CALL(Alltoallv, Ialltoallv, Alltoallv_init, in_place ? MPI_IN_PLACE : mine,
			   in_place ? NULL : sends, in_place ? NULL : from,
			   in_place ? MPI_DATATYPE_NULL : types[kind], ours, recvs, to,
			   types[kind2], MPI_COMM_WORLD);
#if MPI_VERSION >= 4
	WIDEN(sends);
	WIDEN(recvs);
	PLACES(from);
	PLACES(to);
	if (large)
		ret = CALL(Alltoallv_c, Ialltoallv_c, Alltoallv_init_c,
			   in_place ? MPI_IN_PLACE : mine, sends_c, from_c, types[kind], ours,
			   recvs_c, to_c, types[kind2], MPI_COMM_WORLD);
#endif
	compare(ret, PMPI_Alltoallv(in_place ? MPI_IN_PLACE : mine, sends, from, types[kind],
				    theirs, recvs, to, types[kind2], MPI_COMM_WORLD));
}

static void try_alltoallw(enum shape shape, bool back, bool in_place, bool large)
{
	int sends[MOST], from[MOST], recvs[MOST], to[MOST], send_kinds[MOST], recv_kinds[MOST];
	MPI_Datatype send_types[MOST], recv_types[MOST];
	int ret = -1;

	for (int r = 0; r < nranks; r++) {
		send_kinds[r] = (rank + r) % TYPES;
		recv_kinds[r] = in_place ? 1 : (rank + 2 * r + (int)shape) % TYPES;
		send_types[r] = types[send_kinds[r]];
		recv_types[r] = types[recv_kinds[r]];
		sends[r] = size_of(shape, rank, r, send_kinds[r]);
		recvs[r] = size_of(shape, r, rank, recv_kinds[r]);
	}
#ifndef OPEN_MPI
	/* MPICH does not look at the types of empty shares, unless in place. */
	for (int r = 0; r < nranks && !in_place; r++) {
		if (!sends[r])
			send_types[r] = MPI_DATATYPE_NULL;
		if (!recvs[r])
			recv_types[r] = MPI_DATATYPE_NULL;
	}
#endif
	lay_out(sends, send_kinds, true, !back, from);
	lay_out(recvs, recv_kinds, true, back, to);
	fill_for(shape);
	if (!large)
		ret = CALL(Alltoallw, Ialltoallw, Alltoallw_init, in_place ? MPI_IN_PLACE : mine,
			   sends, from, send_types, ours, recvs, to, recv_types, MPI_COMM_WORLD);
#if MPI_VERSION >= 4
	WIDEN(sends);
	WIDEN(recvs);
	PLACES(from);
	PLACES(to);
	if (large)
		ret = CALL(Alltoallw_c, Ialltoallw_c, Alltoallw_init_c,
			   in_place ? MPI_IN_PLACE : mine, sends_c, from_c, send_types, ours,
			   recvs_c, to_c, recv_types, MPI_COMM_WORLD);
#endif
	compare(ret, PMPI_Alltoallw(in_place ? MPI_IN_PLACE : mine, sends, from, send_types, theirs,
				    recvs, to, recv_types, MPI_COMM_WORLD));
}

static void test_alltoall(bool large)
{
	for (int shape = 0; shape < SHAPES; shape++)
		for (int how = 0; how < 4; how++)
			try_alltoallv((enum shape)shape, how & 1, how & 2, large);
	report("MPI_%s: mixed types, uneven and zero counts, gaps, in place",
	       name_of("Alltoallv", large));
	for (int shape = 0; shape < SHAPES; shape++)
		for (int how = 0; how < 4; how++)
			try_alltoallw((enum shape)shape, how & 1, how & 2, large);
	report("MPI_%s: another type for each share, in place", name_of("Alltoallw", large));
}

/* ---- what is wrong, and what only looks so ---- */

static int last_class(int ret)
{
	int class = MPI_SUCCESS;

	MPI_Error_class(ret, &class);
	return class;
}

/* Rank 0 has room for less than the last rank sends, in the part of it that it gives; all others are well. */
static void test_truncation(void)
{
	int counts[MOST], displs[MOST], last = nranks - 1, ret;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (int r = 0; r < nranks; r++) {
		counts[r] = r == last ? 9 : 10;
		displs[r] = r * 10;
	}
	fill();
	ret = MPI_Gatherv(mine, 10, MPI_INT, ours, counts, displs, MPI_INT, 0, comm);
	GOOD(last_class(ret) == (rank ? MPI_SUCCESS : MPI_ERR_TRUNCATE));
	GOOD(rank || ours[displs[last] + 9] == theirs[displs[last] + 9]);
	counts[last] = 10;
	ret = MPI_Scatterv(mine, counts, displs, MPI_INT, ours, rank == last ? 9 : 10, MPI_INT, 0,
			   comm);
	GOOD(last_class(ret) == (rank == last ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
	GOOD(rank != last || ours[9] == theirs[9]);
	/* Room for more than what comes: the rest stays as it is. */
	fill();
	for (int r = 0; r < nranks; r++)
		counts[r] = 10;
	GOOD(MPI_Gatherv(mine, 8, MPI_INT, ours, counts, displs, MPI_INT, 0, comm) == MPI_SUCCESS);
	GOOD(rank || (ours[displs[last] + 7] == 7 * 31 + last * 1000003 &&
		      ours[displs[last] + 8] == theirs[displs[last] + 8]));
	fill();
	GOOD(MPI_Scatterv(mine, counts, displs, MPI_INT, ours, 12, MPI_INT, 0, comm) ==
	     MPI_SUCCESS);
	GOOD(ours[9] == (displs[rank] + 9) * 31 && ours[10] == theirs[10]);
	MPI_Comm_free(&comm);
	report("too little room is MPI_ERR_TRUNCATE where it is, more than needed is none");
}

/* Both MPIs go on after an argument that they refuse; MPICH of Debian does not look at them. */
static void test_refused(void)
{
#ifdef OPEN_MPI
	int counts[MOST], displs[MOST] = { 0 };
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (int r = 0; r < nranks; r++)
		counts[r] = -1;
	GOOD(last_class(MPI_Gatherv(mine, -1, MPI_INT, ours, counts, displs, MPI_INT, 0, comm)) ==
	     MPI_ERR_COUNT);
	GOOD(last_class(MPI_Scatterv(mine, counts, displs, MPI_INT, ours, -1, MPI_INT, 0, comm)) ==
	     MPI_ERR_COUNT);
	GOOD(MPI_Alltoallv(mine, counts, displs, MPI_INT, ours, counts, displs, MPI_INT, comm) !=
	     MPI_SUCCESS);
	GOOD(MPI_Gatherv(mine, 1, MPI_INT, ours, counts, displs, MPI_INT, nranks, comm) !=
	     MPI_SUCCESS);
	/* Only one rank's, which then calls again. */
	if (!rank)
		GOOD(last_class(MPI_Igatherv(mine, -1, MPI_INT, ours, counts, displs, MPI_INT, 0,
					     comm, &request)) == MPI_ERR_COUNT);
	for (int r = 0; r < nranks; r++) {
		counts[r] = 1;
		displs[r] = r;
	}
	GOOD(MPI_Igatherv(&rank, 1, MPI_INT, ours, counts, displs, MPI_INT, 0, comm, &request) ==
	     MPI_SUCCESS);
	GOOD(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
	for (int r = 0; r < nranks && !rank; r++)
		GOOD(ours[r] == r);
	MPI_Comm_free(&comm);
	report("negative counts and a wrong root are MPI's to refuse");
#else
	skip("negative counts and a wrong root", "this MPI does not look at arguments");
#endif
}

/* A communicator of some ranks, in another order, that is freed and made again; requests beside. */
static void test_comms(void)
{
	int counts[MOST], displs[MOST], n, me;

	for (int i = 0; i < 3; i++) {
		MPI_Comm comm;
		MPI_Request requests[2];

		MPI_Comm_split(MPI_COMM_WORLD, i == 2 && rank == 0, -rank, &comm);
		MPI_Comm_size(comm, &n);
		MPI_Comm_rank(comm, &me);
		for (int r = 0; r < n; r++) {
			counts[r] = 1 + r;
			displs[r] = r * (r + 1) / 2;
		}
		fill();
		GOOD(MPI_Gatherv(mine, 1 + me, MPI_INT, ours, counts, displs, MPI_INT, n - 1,
				 comm) == MPI_SUCCESS);
		PMPI_Gatherv(mine, 1 + me, MPI_INT, theirs, counts, displs, MPI_INT, n - 1, comm);
		GOOD(!memcmp(ours, theirs, sizeof(int) * 64));
		GOOD(MPI_Igatherv(mine, 1 + me, MPI_INT, ours, counts, displs, MPI_INT, 0, comm,
				  &requests[0]) == MPI_SUCCESS);
		GOOD(MPI_Iallreduce(mine, ours + 64, 5, MPI_INT, MPI_MAX, comm, &requests[1]) ==
		     MPI_SUCCESS);
		GOOD(MPI_Scatterv(mine, counts, displs, MPI_INT, ours + 128, 1 + me, MPI_INT, 0,
				  comm) == MPI_SUCCESS);
		PMPI_Scatterv(mine, counts, displs, MPI_INT, theirs + 128, 1 + me, MPI_INT, 0,
			      comm);
		GOOD(!memcmp(ours + 128, theirs + 128, sizeof(int) * 64));
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		MPI_Comm_free(&comm);
	}
	report("communicators of some ranks, beside requests");
}

/* ---- several at once ---- */

/* What is wanted of a rank's own calls in a row: shares that swingcoll takes, and some that it leaves to MPI. */
static const enum shape row[] = { UNEVEN, ONE, EQUAL, ONE, ONE, UNEVEN };
#define ROW 6
#define SPAN 1200 /* elements of the buffers for one of them */

/*
 * Many at once, among other collectives, persistent messages and messages, with types that are freed meanwhile, and
 * behind them a blocking collective.
 */
static void test_many(void)
{
	static int sends[ROW][MOST], from[ROW][MOST], recvs[ROW][MOST], to[ROW][MOST];
	int kinds[MOST] = { 0 }, counts[MOST], displs[MOST], sum = 0, late = 0, token = -1;
	MPI_Request req[ROW + 4];
	MPI_Datatype t;

	for (int round = 0; round < 10; round++) {
		fill();
		for (int i = 0; i < ROW; i++) {
			for (int r = 0; r < nranks; r++) {
				sends[i][r] = size_of(row[i], rank, r, 0);
				recvs[i][r] = size_of(row[i], r, rank, 0);
			}
			lay_out(sends[i], kinds, false, false, from[i]);
			lay_out(recvs[i], kinds, false, true, to[i]);
			MPI_Type_contiguous(1, MPI_INT, &t);
			MPI_Type_commit(&t);
			GOOD(MPI_Ialltoallv(mine + i * SPAN, sends[i], from[i], t, ours + i * SPAN,
					    recvs[i], to[i], t, MPI_COMM_WORLD,
					    &req[i]) == MPI_SUCCESS);
			MPI_Type_free(&t);
		}
		for (int r = 0; r < nranks; r++) {
			counts[r] = 10 + r;
			displs[r] = 20 * r;
		}
		MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req[ROW]);
		MPI_Igatherv(mine, 10 + rank, MPI_INT, ours + ROW * SPAN, counts, displs, MPI_INT,
			     round % nranks, MPI_COMM_WORLD, &req[ROW + 1]);
		MPI_Irecv(&token, 1, MPI_INT, (rank + 1) % nranks, 9, MPI_COMM_WORLD,
			  &req[ROW + 2]);
		MPI_Isend(&rank, 1, MPI_INT, (rank + nranks - 1) % nranks, 9, MPI_COMM_WORLD,
			  &req[ROW + 3]);
		GOOD(MPI_Allreduce(&rank, &late, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD) ==
		     MPI_SUCCESS);
		GOOD(MPI_Waitall(ROW + 4, req, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
		for (int i = 0; i < ROW; i++)
			PMPI_Alltoallv(mine + i * SPAN, sends[i], from[i], MPI_INT,
				       theirs + i * SPAN, recvs[i], to[i], MPI_INT, MPI_COMM_WORLD);
		PMPI_Gatherv(mine, 10 + rank, MPI_INT, theirs + ROW * SPAN, counts, displs, MPI_INT,
			     round % nranks, MPI_COMM_WORLD);
		compare(MPI_SUCCESS, MPI_SUCCESS);
		GOOD(sum == nranks * (nranks - 1) / 2 && late == nranks - 1 &&
		     token == (rank + 1) % nranks);
	}
	report("many nonblocking ones, among others");
}

static void share_alike(int n, int *counts, int *displs)
{
	for (int r = 0; r < nranks; r++) {
		counts[r] = n;
		displs[r] = n * r;
	}
}

/* A program must not do this while a call runs. MPI bears it, and there are programs that free their arrays. */
static void spoil(int *counts, int *displs)
{
	memset(counts, 0x5a, MOST * sizeof(*counts));
	memset(displs, 0x5a, MOST * sizeof(*displs));
}

/* The others' calls need rank 0, which waits for a message that they send afterwards; then all are freed while active. */
static void test_idle(void)
{
	int counts[MOST], displs[MOST], token = 0, parts[MOST] = { 0 };
	MPI_Request req[4];

	for (int round = 0; round < 5; round++) {
		fill();
		share_alike(100, counts, displs);
		for (int i = 0; i < 4; i++)
			MPI_Ialltoallv(mine, counts, displs, MPI_INT, ours + i * 100 * nranks,
				       counts, displs, MPI_INT, MPI_COMM_WORLD, &req[i]);
		spoil(counts, displs);
		for (int r = 1; r < nranks && !rank; r++)
			MPI_Recv(&token, 1, MPI_INT, r, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		GOOD(MPI_Waitall(4, req, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
		if (rank)
			MPI_Send(&token, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
		share_alike(100, counts, displs);
		for (int i = 0; i < 4; i++)
			PMPI_Alltoallv(mine, counts, displs, MPI_INT, theirs + i * 100 * nranks,
				       counts, displs, MPI_INT, MPI_COMM_WORLD);
		compare(MPI_SUCCESS, MPI_SUCCESS);
	}
	report("nonblocking ones go on while a rank waits for a message");
	for (int i = 0; i < 8; i++) {
		share_alike(1, counts, displs);
		token = 100 * (i + 1) + rank;
		for (int r = 0; r < nranks; r++)
			parts[r] = 0;
		MPI_Igatherv(&token, 1, MPI_INT, parts, counts, displs, MPI_INT, 0, MPI_COMM_WORLD,
			     &req[0]);
		spoil(counts, displs);
		GOOD(MPI_Request_free(&req[0]) == MPI_SUCCESS && req[0] == MPI_REQUEST_NULL);
		for (int r = 0; r < nranks && !rank; r++)
			while (*(volatile int *)&parts[r] != 100 * (i + 1) + r)
				MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &(int){ 0 },
					   MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	report("MPI_Request_free on running ones");
}

/* ---- measurements ---- */

/* Whether swingcoll carries them out is measured, and anew when shares become smaller. */
static void test_trials(void)
{
	for (int n = 4000; n; n /= 20) {
		int counts[MOST], displs[MOST];

		for (int r = 0; r < nranks; r++) {
			counts[r] = n - (r == nranks - 1 ? n / 4 : 0);
			displs[r] = r * n;
		}
		for (int i = 0; i < 20; i++) {
			fill();
			be_late(rank != i % nranks);
			compare(MPI_Gatherv(mine, counts[rank], MPI_INT, ours, counts, displs,
					    MPI_INT, i % nranks, MPI_COMM_WORLD),
				PMPI_Gatherv(mine, counts[rank], MPI_INT, theirs, counts, displs,
					     MPI_INT, i % nranks, MPI_COMM_WORLD));
			form = NONBLOCKING;
			compare(CALL(Gatherv, Igatherv, Gatherv_init, mine, counts[rank], MPI_INT,
				     ours, counts, displs, MPI_INT, i % nranks, MPI_COMM_WORLD),
				MPI_SUCCESS);
			form = BLOCKING;
		}
		report("MPI_Gatherv of %d elements, many times", n);
	}
}

/* Each _c function has the classes of the one without. */
static void test_large_trials(void)
{
#if MPI_VERSION >= 4
	MPI_Count counts[MOST];
	MPI_Aint displs[MOST];

	for (int i = 0; i < 20; i++) {
		for (int r = 0; r < nranks; r++) {
			counts[r] = 300 - 10 * !r;
			displs[r] = r * 300;
		}
		fill();
		be_late(rank > 0);
		compare(MPI_Allreduce_c(mine, ours, 1000, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
			PMPI_Allreduce(mine, theirs, 1000, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
		be_late(rank == i % nranks);
		compare(MPI_Bcast_c(ours, 500, MPI_INT, i % nranks, MPI_COMM_WORLD),
			PMPI_Bcast(theirs, 500, MPI_INT, i % nranks, MPI_COMM_WORLD));
		be_late(rank > 0);
		compare(MPI_Allgather_c(mine, 200, MPI_INT, ours, 200, MPI_INT, MPI_COMM_WORLD),
			PMPI_Allgather(mine, 200, MPI_INT, theirs, 200, MPI_INT, MPI_COMM_WORLD));
		be_late(rank > 0);
		compare(MPI_Allgatherv_c(mine, counts[rank], MPI_INT, ours, counts, displs, MPI_INT,
					 MPI_COMM_WORLD),
			PMPI_Allgatherv_c(mine, counts[rank], MPI_INT, theirs, counts, displs,
					  MPI_INT, MPI_COMM_WORLD));
		be_late(rank > 0);
		compare(MPI_Reduce_scatter_block_c(mine, ours, 100, MPI_INT, MPI_MAX,
						   MPI_COMM_WORLD),
			PMPI_Reduce_scatter_block(mine, theirs, 100, MPI_INT, MPI_MAX,
						  MPI_COMM_WORLD));
		be_late(rank > 0);
		compare(MPI_Gatherv_c(mine, counts[rank], MPI_INT, ours, counts, displs, MPI_INT, 0,
				      MPI_COMM_WORLD),
			PMPI_Gatherv_c(mine, counts[rank], MPI_INT, theirs, counts, displs, MPI_INT,
				       0, MPI_COMM_WORLD));
	}
	report("MPI_Allreduce_c and others with counts of MPI_Count, many times");
#else
	skip("MPI_Allreduce_c and others with counts of MPI_Count", "MPI 3 has none");
#endif
}

int main(int argc, char **argv)
{
	bool trials = argc > 1 && !strcmp(argv[1], "trials");
	bool large = MPI_VERSION >= 4;

	MPI_Init(&argc, &argv);
	begin_tests(trials ? 4 : 30);
	if (nranks > MOST)
		MPI_Abort(MPI_COMM_WORLD, 2);
	types[0] = MPI_INT;
	MPI_Type_contiguous(2, MPI_INT, &types[1]);
	MPI_Type_vector(2, 1, 2, MPI_INT, &types[2]);
	MPI_Type_commit(&types[1]);
	MPI_Type_commit(&types[2]);
	mine = calloc((size_t)nranks * ROOM, sizeof(int));
	ours = calloc((size_t)nranks * ROOM, sizeof(int));
	theirs = calloc((size_t)nranks * ROOM, sizeof(int));
	if (trials) {
		test_trials();
		test_large_trials();
	} else {
		for (int f = BLOCKING; f <= PERSISTENT; f++)
			for (int l = 0; l < 2; l++) {
				form = (enum form)f;
				if (l <= large) {
					test_rooted(l);
					test_alltoall(l);
				} else {
					skip(name_of("Gatherv", true), "MPI 3 has none");
					skip(name_of("Scatterv", true), "MPI 3 has none");
					skip(name_of("Alltoallv", true), "MPI 3 has none");
					skip(name_of("Alltoallw", true), "MPI 3 has none");
				}
			}
		form = BLOCKING;
		test_many();
		test_idle();
		test_truncation();
		test_refused();
		test_comms();
	}
	MPI_Type_free(&types[1]);
	MPI_Type_free(&types[2]);
	free(mine);
	free(ours);
	free(theirs);
	return end_tests();
}

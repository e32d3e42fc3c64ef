// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that is missing on one rank while a communicator is used for the first time and persistent requests are made:
 * the ranks must go on alike, with the library or with MPI, or the call must return an error of MPI. Each allocation of
 * the preload library fails in turn, on the first rank and on the last; with the word "first" or "last", on that one only.
 * Rank 0 prints TAP. pmpi.sh runs it.
 */
#include <dlfcn.h>
#include <errno.h>

#include "pmpi_test.h"

#define REQUESTS 3
#define LEAST                                                                                      \
	12 /* allocations that must have failed on a rank: those of the slots, of a request, of a vector's steps */
#define MOST 1000

/* ---- allocations of the library ---- */

/* The C library's own. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static __thread bool counting;
static int left; /* allocations until one fails; negative: it has */

static bool fails(const void *caller)
{
	Dl_info at;

	if (!counting || !dladdr(caller, &at) || !strstr(at.dli_fname, "libswingcoll_pmpi_"))
		return false;
	if (left--)
		return false;
	errno = ENOMEM;
	return true;
}

#define FAILS fails(__builtin_extract_return_addr(__builtin_return_address(0)))

/* They stand in front of the C library's. */
void *malloc(size_t bytes)
{
	return FAILS ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	return FAILS ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
	return FAILS ? NULL : __libc_realloc(old, bytes);
}

/* ---- calls ---- */

static int victim;

/* A call in which the allocation may fail on the victim. True: it has succeeded on all ranks. */
#define TRY(call)                                                                                  \
	({                                                                                         \
		int ret_;                                                                          \
                                                                                                   \
		counting = rank == victim;                                                         \
		ret_ = call;                                                                       \
		counting = false;                                                                  \
		have_all(ret_);                                                                    \
	})

static bool have_all(int ret)
{
	int good = ret == MPI_SUCCESS, all = 0, class = MPI_ERR_NO_MEM;

	if (!good)
		MPI_Error_class(ret, &class);
	GOOD(class == MPI_ERR_NO_MEM && (good || rank == victim));
	PMPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	return all;
}

static int v, sum, *all, *shares, *displs;

/* What each rank has after the starts of all requests. */
static void check(MPI_Comm comm, MPI_Request *req, const bool *made, int round)
{
	v = rank + round;
	sum = 0;
	memset(all, 0, 3 * (size_t)nranks * sizeof(*all));
	for (int r = 0; r < nranks; r++)
		all[2 * nranks + r] = 10 * rank + r + round;
	for (int i = 0; i < REQUESTS; i++) {
		if (!made[i])
			continue;
		GOOD(MPI_Start(&req[i]) == MPI_SUCCESS);
		GOOD(MPI_Wait(&req[i], MPI_STATUS_IGNORE) == MPI_SUCCESS);
	}
	GOOD(!made[0] || sum == nranks * (nranks - 1) / 2 + nranks * round);
	for (int r = 0; r < nranks; r++) {
		GOOD(!made[1] || rank || all[r] == r + round);
		GOOD(!made[2] || all[nranks + r] == 10 * r + rank + round);
	}
	try_comm(comm);
}

/* The n-th allocation fails. False: there are less. */
static bool fail_at(int n)
{
	MPI_Request req[REQUESTS] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL };
	bool made[REQUESTS];
	MPI_Datatype one;
	MPI_Comm comm;
	int gone;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Type_contiguous(1, MPI_INT, &one);
	MPI_Type_commit(&one);
	/* The library gets to know the communicator, and has nothing to do with the other ranks yet. */
	MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &req[0]);
	MPI_Wait(&req[0], MPI_STATUS_IGNORE);
	left = n;
	GOOD(TRY(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm)));
	GOOD(sum == nranks * (nranks - 1) / 2);
	for (int i = 0; i < 8; i++)
		MPI_Gatherv(&rank, 1, MPI_INT, all, shares, displs, MPI_INT, 0, comm);
	made[0] = TRY(PERSISTENT(Allreduce_init)(&v, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL,
						 &req[0]));
	made[1] = TRY(PERSISTENT(Gatherv_init)(&v, 1, one, all, shares, displs, one, 0, comm,
					       MPI_INFO_NULL, &req[1]));
	made[2] = TRY(PERSISTENT(Alltoallv_init)(all + 2 * nranks, shares, displs, MPI_INT,
						 all + nranks, shares, displs, one, comm,
						 MPI_INFO_NULL, &req[2]));
	MPI_Type_free(&one);
	for (int round = 0; round < 2; round++)
		check(comm, req, made, round);
	for (int i = 0; i < REQUESTS; i++)
		if (req[i] != MPI_REQUEST_NULL)
			GOOD(MPI_Request_free(&req[i]) == MPI_SUCCESS);
	MPI_Comm_free(&comm);
	gone = left < 0;
	PMPI_Bcast(&gone, 1, MPI_INT, victim, MPI_COMM_WORLD);
	return gone;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "first", "last" };
	bool one;

	MPI_Init(&argc, &argv);
	one = argc > 1;
	begin_tests(one ? 1 : 2);
	all = calloc(5 * (size_t)nranks, sizeof(*all));
	shares = all + 3 * nranks;
	displs = shares + nranks;
	for (int r = 0; r < nranks; r++) {
		shares[r] = 1;
		displs[r] = r;
	}
	for (int last = 0; last < 2; last++) {
		int n = 0;

		if (one && !is_asked(argc, argv, names[last]))
			continue;
		victim = last ? nranks - 1 : 0;
		while (n < MOST && fail_at(n))
			n++;
		GOOD(n >= LEAST && n < MOST);
		if (!rank)
			printf("# %d allocations\n", n);
		report("the %s rank's memory is short", names[last]);
	}
	free(all);
	return end_tests();
}

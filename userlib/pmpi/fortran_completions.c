// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MPI's functions that complete requests, in Fortran, where it does not call those of completions.c: Open MPI's,
 * and those of MPICH's `use mpi_f08`. MPI's own Fortran function does the work; what is left is to tell the errors
 * of swingcoll's persistent requests, as there.
 */
#include "pmpi/fortran.h"
#include "pmpi/requests.h"

#ifdef OPEN_MPI
#define REQUEST MPI_Fint
#define TO_C(f) PMPI_Request_f2c(f)
#define STATUS MPI_Fint
extern int mpi_fortran_statuses_ignore_;
#define IGNORED(statuses) ((statuses) == &mpi_fortran_statuses_ignore_)
#else
#define REQUEST MPI_Request
#define TO_C(f) (f)
#define STATUS MPI_Status
#define IGNORED(statuses)                                                                          \
	((const void *)(statuses) == (const void *)&MPIR_F08_MPI_STATUSES_IGNORE_OBJ)
#endif

/* One function: its parameters and arguments, whether requests may be complete, and what it returns then. */
#define COMPLETION(lower, params, args, complete, settled)                                         \
	FORTRAN_AROUND(lower, params, args, if (complete) ret = settled)

#ifdef OPEN_MPI
static int first_place(void)
{
	return 1;
}

#else
/* MPICH 4.0 counts from zero by `use mpi_f08`, as if that were C: ask it for a request that is complete. */
static int first_place(void)
{
	extern void THEIRS(waitany)(MPI_Fint *, MPI_Request *, MPI_Fint *, MPI_Status *, MPI_Fint *)
		__attribute__((weak));
	static int first = -1; /* atomic */
	MPI_Fint n = 1, place = 1, error;
	MPI_Request one;
	MPI_Status unused;

	if (__atomic_load_n(&first, __ATOMIC_RELAXED) < 0 &&
	    PMPI_Irecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &one) == MPI_SUCCESS) {
		THEIRS(waitany)(&n, &one, &place, &unused, &error);
		__atomic_store_n(&first, place, __ATOMIC_RELAXED);
	}
	return __atomic_load_n(&first, __ATOMIC_RELAXED);
}

#endif

/* As completions.c has them, for requests of Fortran. Places count from first_place(). */
static int settle_one(int ret, int n, const REQUEST *requests, int place)
{
	MPI_Request r;

	if (!pmpi_errors_left())
		return ret;
	place -= first_place();
	if (place < 0 || place >= n)
		return ret;
	r = TO_C(requests[place]);
	return pmpi_settle_one(ret, 1, &r, 0);
}

static int settle_some(int ret, int n, int ndone, const REQUEST *requests, const int *places,
		       STATUS *statuses)
{
	MPI_Request *done;

	if (!pmpi_errors_left() || ndone <= 0 || ndone > n)
		return ret;
	done = malloc((size_t)ndone * sizeof(*done));
	for (int i = 0; done && i < ndone; i++)
		done[i] = TO_C(requests[places ? places[i] - first_place() : i]);
	if (done)
		ret = pmpi_settle_some(ret, ndone, ndone, done, NULL,
				       IGNORED(statuses) ? MPI_STATUSES_IGNORE
							 : (MPI_Status *)statuses);
	free(done);
	return ret;
}

COMPLETION(wait, (REQUEST * request, STATUS *status, MPI_Fint *ierror), (request, status, ierror),
	   ret == MPI_SUCCESS, settle_one(ret, 1, request, first_place()))

COMPLETION(test, (REQUEST * request, MPI_Fint *flag, STATUS *status, MPI_Fint *ierror),
	   (request, flag, status, ierror), ret == MPI_SUCCESS && *flag,
	   settle_one(ret, 1, request, first_place()))

COMPLETION(waitany,
	   (MPI_Fint * n, REQUEST *requests, MPI_Fint *index, STATUS *status, MPI_Fint *ierror),
	   (n, requests, index, status, ierror), ret == MPI_SUCCESS,
	   settle_one(ret, *n, requests, *index))

COMPLETION(testany,
	   (MPI_Fint * n, REQUEST *requests, MPI_Fint *index, MPI_Fint *flag, STATUS *status,
	    MPI_Fint *ierror),
	   (n, requests, index, flag, status, ierror), ret == MPI_SUCCESS && *flag,
	   settle_one(ret, *n, requests, *index))

COMPLETION(waitall, (MPI_Fint * n, REQUEST *requests, STATUS *statuses, MPI_Fint *ierror),
	   (n, requests, statuses, ierror), true,
	   settle_some(ret, *n, *n, requests, NULL, statuses))

COMPLETION(testall,
	   (MPI_Fint * n, REQUEST *requests, MPI_Fint *flag, STATUS *statuses, MPI_Fint *ierror),
	   (n, requests, flag, statuses, ierror), ret != MPI_SUCCESS || *flag,
	   settle_some(ret, *n, *n, requests, NULL, statuses))

COMPLETION(waitsome,
	   (MPI_Fint * n, REQUEST *requests, MPI_Fint *done, MPI_Fint *places, STATUS *statuses,
	    MPI_Fint *ierror),
	   (n, requests, done, places, statuses, ierror), true,
	   settle_some(ret, *n, *done, requests, places, statuses))

COMPLETION(testsome,
	   (MPI_Fint * n, REQUEST *requests, MPI_Fint *done, MPI_Fint *places, STATUS *statuses,
	    MPI_Fint *ierror),
	   (n, requests, done, places, statuses, ierror), true,
	   settle_some(ret, *n, *done, requests, places, statuses))

#ifdef OPEN_MPI
FORTRAN(wait, WAIT, Wait);
FORTRAN(test, TEST, Test);
FORTRAN(waitany, WAITANY, Waitany);
FORTRAN(testany, TESTANY, Testany);
FORTRAN(waitall, WAITALL, Waitall);
FORTRAN(testall, TESTALL, Testall);
FORTRAN(waitsome, WAITSOME, Waitsome);
FORTRAN(testsome, TESTSOME, Testsome);
/* For these, `use mpi_f08` calls the names of the profiling interface. */
SPELL(fortran_test, mpi_test_f08_);
SPELL(fortran_testany, mpi_testany_f08_);
SPELL(fortran_testall, mpi_testall_f08_);
SPELL(fortran_testsome, mpi_testsome_f08_);
#endif

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What MPI's own collectives do beside their work: they handle what has come for the process. Programs rely on
 * it: after a collective the buffer of MPI_Bsend() has room again, a probe finds what was sent before, and ranks
 * that call nothing but collectives move the others' messages. swingcoll's calls do that while they wait. So
 * calls make MPI progress every ten milliseconds even if they do not wait, and functions that look for what has
 * come do it first, or look again.
 */
#include <time.h>

#include "pmpi/fortran.h"

/* Open MPI takes up to 31 messages of another rank of the node out of a queue in each. */
#define ROUNDS 8

/* Open MPI gives its CPU away in each if there are more ranks than CPUs: that must not be often. */
#define TURN_NS 10000000

unsigned int pmpi_owed;

void pmpi_take_turn(void)
{
	static uint64_t last; /* atomic */
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	if (now - __atomic_load_n(&last, __ATOMIC_RELAXED) < TURN_NS)
		return;
	__atomic_store_n(&last, now, __ATOMIC_RELAXED);
	pmpi_progress(NULL);
}

static bool catch_up(void)
{
	if (!__atomic_load_n(&pmpi_owed, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&pmpi_owed, 0, __ATOMIC_RELAXED);
	for (int i = 0; i < ROUNDS; i++)
		pmpi_progress(NULL);
	return true;
}

/* The call again, if it has found nothing, and there may be something. */
#define LOOK(ret, call)                                                                            \
	do {                                                                                       \
		ret = call;                                                                        \
		if (ret == MPI_SUCCESS && !*flag && catch_up())                                    \
			ret = call;                                                                \
	} while (0)

PMPI_PUBLIC int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	int ret;

	LOOK(ret, PMPI_Iprobe(source, tag, comm, flag, status));
	return ret;
}

PMPI_PUBLIC int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
			    MPI_Status *status)
{
	int ret;

	LOOK(ret, PMPI_Improbe(source, tag, comm, flag, message, status));
	return ret;
}

PMPI_PUBLIC int MPI_Win_test(MPI_Win win, int *flag)
{
	int ret;

	LOOK(ret, PMPI_Win_test(win, flag));
	return ret;
}

PMPI_PUBLIC int MPI_Bsend(const void *buf, int count, MPI_Datatype type, int dest, int tag,
			  MPI_Comm comm)
{
	catch_up();
	return PMPI_Bsend(buf, count, type, dest, tag, comm);
}

PMPI_PUBLIC int MPI_Ibsend(const void *buf, int count, MPI_Datatype type, int dest, int tag,
			   MPI_Comm comm, MPI_Request *request)
{
	catch_up();
	return PMPI_Ibsend(buf, count, type, dest, tag, comm, request);
}

#define FORTRAN_LOOK(lower, params, args)                                                          \
	FORTRAN_AROUND(lower, params, args,                                                        \
		       if (ret == MPI_SUCCESS && !*flag && catch_up()) THEIRS(lower) args)

FORTRAN_LOOK(iprobe,
	     (MPI_Fint * source, MPI_Fint *tag, MPI_Fint *comm, MPI_Fint *flag, void *status,
	      MPI_Fint *ierror),
	     (source, tag, comm, flag, status, ierror))

FORTRAN_LOOK(improbe,
	     (MPI_Fint * source, MPI_Fint *tag, MPI_Fint *comm, MPI_Fint *flag, MPI_Fint *message,
	      void *status, MPI_Fint *ierror),
	     (source, tag, comm, flag, message, status, ierror))

FORTRAN_LOOK(win_test, (MPI_Fint * win, MPI_Fint *flag, MPI_Fint *ierror), (win, flag, ierror))

#ifdef OPEN_MPI
FORTRAN(iprobe, IPROBE, Iprobe);
FORTRAN(improbe, IMPROBE, Improbe);
FORTRAN(win_test, WIN_TEST, Win_test);

static void fortran_bsend(void *buf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *dest, MPI_Fint *tag,
			  MPI_Fint *comm, MPI_Fint *ierror)
{
	give(ierror, MPI_Bsend(buffer(buf), *count, TYPE(type), *dest, *tag, COMM(comm)));
}
FORTRAN(bsend, BSEND, Bsend);

static void fortran_ibsend(void *buf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *dest,
			   MPI_Fint *tag, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)
{
	MPI_Request r;
	int ret = MPI_Ibsend(buffer(buf), *count, TYPE(type), *dest, *tag, COMM(comm), &r);

	give_request(request, r, ret);
	give(ierror, ret);
}
FORTRAN(ibsend, IBSEND, Ibsend);
#endif

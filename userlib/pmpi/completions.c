// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MPI's functions that complete requests, for the errors of swingcoll's persistent ones. Such a request is a
 * receive of MPI, which can fail in one way only: by a message that is too long (progress.c). MPI then says
 * MPI_ERR_TRUNCATE in a status, or in MPICH's MPI_Waitany(), and Open MPI's MPI_Waitall() forgets the errors
 * of persistent requests altogether. So what MPI says is replaced by what has happened, if the request still
 * has its handle: Open MPI may take it away when the error comes while it waits, and the status is left as it
 * is. There is nothing to do but one comparison while no error is left.
 */
#include "pmpi/entry.h"
#include "pmpi/requests.h"

/* The error handler has been called if MPI has found an error by itself. */
static int report(int ret, int error)
{
	if (ret == MPI_SUCCESS)
		PMPI_Comm_call_errhandler(MPI_COMM_WORLD, error);
	return error;
}

/* The request at this place has completed; none if there is no such place. */
static int settle_one(int ret, int n, const MPI_Request *requests, int place)
{
	int error = place >= 0 && place < n ? pmpi_take_error(requests[place]) : MPI_SUCCESS;

	return error == MPI_SUCCESS ? ret : report(ret, error);
}

/* So many have, with these places among the requests, or all. */
static int settle_some(int ret, int n, const MPI_Request *requests, const int *places,
		       MPI_Status *statuses)
{
	bool found = false;

	for (int i = 0; i < n; i++) {
		int error = pmpi_take_error(requests[places ? places[i] : i]);

		if (error == MPI_SUCCESS)
			continue;
		for (int j = 0; !found && ret == MPI_SUCCESS && j < n; j++)
			if (statuses != MPI_STATUSES_IGNORE)
				statuses[j].MPI_ERROR = MPI_SUCCESS;
		if (statuses != MPI_STATUSES_IGNORE)
			statuses[i].MPI_ERROR = error;
		found = true;
	}
	return found ? report(ret, MPI_ERR_IN_STATUS) : ret;
}

/* Requests of swingcoll that have an error are persistent, and keep their handles. */
#define ERRORS_LEFT __builtin_expect(pmpi_errors_left(), 0)

PMPI_PUBLIC int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	int ret = PMPI_Wait(request, status);

	return ERRORS_LEFT ? settle_one(ret, 1, request, 0) : ret;
}

PMPI_PUBLIC int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	int ret = PMPI_Test(request, flag, status);

	return ERRORS_LEFT ? settle_one(ret, ret != MPI_SUCCESS || *flag, request, 0) : ret;
}

PMPI_PUBLIC int MPI_Waitany(int n, MPI_Request *requests, int *index, MPI_Status *status)
{
	int ret = PMPI_Waitany(n, requests, index, status);

	return ERRORS_LEFT ? settle_one(ret, n, requests, *index) : ret;
}

PMPI_PUBLIC int MPI_Testany(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
	int ret = PMPI_Testany(n, requests, index, flag, status);

	return ERRORS_LEFT ? settle_one(ret, n, requests, *index) : ret;
}

PMPI_PUBLIC int MPI_Waitall(int n, MPI_Request *requests, MPI_Status *statuses)
{
	int ret = PMPI_Waitall(n, requests, statuses);

	return ERRORS_LEFT ? settle_some(ret, n, requests, NULL, statuses) : ret;
}

PMPI_PUBLIC int MPI_Testall(int n, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
	int ret = PMPI_Testall(n, requests, flag, statuses);

	return ERRORS_LEFT && (ret != MPI_SUCCESS || *flag)
		       ? settle_some(ret, n, requests, NULL, statuses)
		       : ret;
}

PMPI_PUBLIC int MPI_Waitsome(int n, MPI_Request *requests, int *done, int *places,
			     MPI_Status *statuses)
{
	int ret = PMPI_Waitsome(n, requests, done, places, statuses);

	return ERRORS_LEFT && *done <= n ? settle_some(ret, *done, requests, places, statuses)
					 : ret;
}

PMPI_PUBLIC int MPI_Testsome(int n, MPI_Request *requests, int *done, int *places,
			     MPI_Status *statuses)
{
	int ret = PMPI_Testsome(n, requests, done, places, statuses);

	return ERRORS_LEFT && *done <= n ? settle_some(ret, *done, requests, places, statuses)
					 : ret;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MPI's functions that complete requests, for the errors of swingcoll's persistent ones. Such a request is a
 * receive of MPI (requests.c), which succeeds in any case: an error in MPI's eyes would be one of its own, and
 * Open MPI frees persistent requests that have one. So the request is as MPI leaves it, and what has
 * happened is told here, when MPI says that it is complete. Programs without such requests pay for one
 * comparison.
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

int pmpi_settle_one(int ret, int n, const MPI_Request *requests, int place)
{
	int error = MPI_SUCCESS;

	if (pmpi_errors_left() && place >= 0 && place < n)
		error = pmpi_take_error(requests[place]);
	return error == MPI_SUCCESS ? ret : report(ret, error);
}

/* When a wait for all ends with an error of MPI's own, some requests may still be active. */
static bool is_complete(int ret, MPI_Request request)
{
	int done = 0;

	if (ret == MPI_SUCCESS)
		return true;
	return request != MPI_REQUEST_NULL &&
	       PMPI_Request_get_status(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done;
}

int pmpi_settle_some(int ret, int n, int ndone, const MPI_Request *requests, const int *places,
		     MPI_Status *statuses)
{
	bool found = false;

	if (!pmpi_errors_left() || ndone > n)
		return ret;
	for (int i = 0; i < ndone; i++) {
		MPI_Request request = requests[places ? places[i] : i];
		int error = places || is_complete(ret, request) ? pmpi_take_error(request)
								: MPI_SUCCESS;

		if (error == MPI_SUCCESS)
			continue;
		/* These are set with MPI_ERR_IN_STATUS only. */
		for (int j = 0; !found && ret == MPI_SUCCESS && j < ndone; j++)
			if (statuses != MPI_STATUSES_IGNORE)
				statuses[j].MPI_ERROR = MPI_SUCCESS;
		if (statuses != MPI_STATUSES_IGNORE)
			statuses[i].MPI_ERROR = error;
		found = true;
	}
	return found ? report(ret, MPI_ERR_IN_STATUS) : ret;
}

/* Those of this call are older than the call. */
#define NONE_PERSISTENT __builtin_expect(!pmpi_has_persistent(), 1)

PMPI_PUBLIC int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	if (NONE_PERSISTENT)
		return PMPI_Wait(request, status);
	return pmpi_settle_one(PMPI_Wait(request, status), 1, request, 0);
}

PMPI_PUBLIC int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	int ret;

	if (NONE_PERSISTENT)
		return PMPI_Test(request, flag, status);
	ret = PMPI_Test(request, flag, status);
	return ret == MPI_SUCCESS && *flag ? pmpi_settle_one(ret, 1, request, 0) : ret;
}

PMPI_PUBLIC int MPI_Waitany(int n, MPI_Request *requests, int *index, MPI_Status *status)
{
	int ret;

	if (NONE_PERSISTENT)
		return PMPI_Waitany(n, requests, index, status);
	ret = PMPI_Waitany(n, requests, index, status);
	return ret == MPI_SUCCESS ? pmpi_settle_one(ret, n, requests, *index) : ret;
}

PMPI_PUBLIC int MPI_Testany(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
	int ret;

	if (NONE_PERSISTENT)
		return PMPI_Testany(n, requests, index, flag, status);
	ret = PMPI_Testany(n, requests, index, flag, status);
	return ret == MPI_SUCCESS && *flag ? pmpi_settle_one(ret, n, requests, *index) : ret;
}

PMPI_PUBLIC int MPI_Waitall(int n, MPI_Request *requests, MPI_Status *statuses)
{
	int ret;

	if (NONE_PERSISTENT)
		return PMPI_Waitall(n, requests, statuses);
	ret = PMPI_Waitall(n, requests, statuses);
	return pmpi_settle_some(ret, n, n, requests, NULL, statuses);
}

PMPI_PUBLIC int MPI_Testall(int n, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
	int ret;

	if (NONE_PERSISTENT)
		return PMPI_Testall(n, requests, flag, statuses);
	ret = PMPI_Testall(n, requests, flag, statuses);
	return ret != MPI_SUCCESS || *flag ? pmpi_settle_some(ret, n, n, requests, NULL, statuses)
					   : ret;
}

PMPI_PUBLIC int MPI_Waitsome(int n, MPI_Request *requests, int *done, int *places,
			     MPI_Status *statuses)
{
	int ret;

	if (NONE_PERSISTENT)
		return PMPI_Waitsome(n, requests, done, places, statuses);
	*done = 0;
	ret = PMPI_Waitsome(n, requests, done, places, statuses);
	return pmpi_settle_some(ret, n, *done, requests, places, statuses);
}

PMPI_PUBLIC int MPI_Testsome(int n, MPI_Request *requests, int *done, int *places,
			     MPI_Status *statuses)
{
	int ret;

	if (NONE_PERSISTENT)
		return PMPI_Testsome(n, requests, done, places, statuses);
	*done = 0;
	ret = PMPI_Testsome(n, requests, done, places, statuses);
	return pmpi_settle_some(ret, n, *done, requests, places, statuses);
}

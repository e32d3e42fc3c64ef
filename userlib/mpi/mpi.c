// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bootstrap by MPI: MPI_Allgather() on a communicator of its own, which returns errors instead of
 * aborting.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "swingcoll_mpi.h"

#define PUBLIC __attribute__((visibility("default")))

struct by_mpi {
	struct swingcoll_bootstrap boot;
	MPI_Comm comm;
};

static int failed(const char *what, int error)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int len;

	MPI_Error_string(error, text, &len);
	return swingcoll_bootstrap_fail(-EIO, "%s: %.200s", what, text);
}

static int allgather(void *arg, const void *mine, void *all, size_t bytes)
{
	struct by_mpi *m = arg;
	int ret;

	if (bytes > INT_MAX)
		return -EMSGSIZE;
	ret = MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, m->comm);
	return ret == MPI_SUCCESS ? 0 : failed("MPI_Allgather", ret);
}

static void release(struct swingcoll_bootstrap *boot)
{
	struct by_mpi *m = boot->arg;

	MPI_Comm_free(&m->comm);
	free(m);
}

PUBLIC int swingcoll_bootstrap_mpi(struct swingcoll_bootstrap **boot, MPI_Comm mpi)
{
	struct by_mpi *m;
	int there = 0, inter = 0, ret;

	*boot = NULL;
	MPI_Initialized(&there);
	if (!there)
		return swingcoll_bootstrap_fail(-EINVAL,
						"MPI is not initialized: call MPI_Init() first");
	MPI_Comm_test_inter(mpi, &inter);
	if (inter)
		return swingcoll_bootstrap_fail(
			-EINVAL,
			"the MPI communicator is an intercommunicator: pass an intracommunicator");
	m = calloc(1, sizeof(*m));
	if (!m)
		return swingcoll_bootstrap_fail(-ENOMEM, "out of memory");
	ret = MPI_Comm_dup(mpi, &m->comm);
	if (ret != MPI_SUCCESS) {
		free(m);
		return failed("MPI_Comm_dup", ret);
	}
	MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
	m->boot.allgather = allgather;
	m->boot.arg = m;
	m->boot.release = release;
	MPI_Comm_rank(m->comm, &m->boot.rank);
	MPI_Comm_size(m->comm, &m->boot.nranks);
	*boot = &m->boot;
	return swingcoll_bootstrap_fail(0, "%s", "");
}

PUBLIC int swingcoll_comm_create_mpi(struct swingcoll_comm **comm, MPI_Comm mpi,
				     const struct swingcoll_comm_opts *opts)
{
	struct swingcoll_bootstrap *boot;
	int ret;

	if (!comm)
		return swingcoll_bootstrap_fail(-EINVAL, "comm is NULL");
	*comm = NULL;
	ret = swingcoll_bootstrap_mpi(&boot, mpi);
	if (ret)
		return ret;
	ret = swingcoll_comm_create_from(comm, boot, opts);
	swingcoll_bootstrap_free(boot);
	return ret;
}

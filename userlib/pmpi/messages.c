// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages of the library between ranks, apart from those of the program: by them it carries out what MPI
 * should when it is too late to call MPI's collective (vector.c). They all go through one communicator, as
 * MPIs have few: MPICH some 2000, and a program that needs them all must get them. So a tag says which of
 * the program's communicators a message belongs to. Its receiver chooses it, a new one each time: so nobody
 * has to agree on one, and it is free even if other threads do the same for other communicators.
 */
#include <stdlib.h>

#include "pmpi/pmpi.h"

static MPI_Comm comm = MPI_COMM_NULL; /* reports errors to us alone */

/* All ranks of MPI_COMM_WORLD are in MPI_Init(). */
void pmpi_messages_init(void)
{
	if (PMPI_Comm_dup(MPI_COMM_WORLD, &comm) == MPI_SUCCESS)
		PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

void pmpi_messages_exit(void)
{
	if (comm != MPI_COMM_NULL)
		PMPI_Comm_free(&comm);
}

/* From 1 on; 0 if all have been given out. */
static int new_tag(void)
{
	static int last; /* atomic */
	int tag = __atomic_load_n(&last, __ATOMIC_RELAXED);

	do {
		if (tag >= pmpi_progress_last_tag())
			return 0;
	} while (!__atomic_compare_exchange_n(&last, &tag, tag + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return tag + 1;
}

int pmpi_messages_meet(struct swingcoll_comm *swc, struct pmpi_peer *peers, int n, bool *met)
{
	struct pmpi_peer self = { pmpi_world.rank, comm == MPI_COMM_NULL ? 0 : new_tag() };
	int error = swingcoll_allgather(&self, peers, 2, SWINGCOLL_I32, swc);

	*met = !error;
	for (int r = 0; r < n && *met; r++)
		*met = peers[r].tag;
	return error;
}

int pmpi_messages_begin(struct pmpi_messages *m, int most)
{
	m->requests = malloc((size_t)most * sizeof(*m->requests));
	return m->requests ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

#if MPI_VERSION >= 4
#define COUNTED(name) PMPI_##name##_c
#define COUNT MPI_Count
#else
#define COUNTED(name) PMPI_##name
#define COUNT int
#endif

int pmpi_messages_send(struct pmpi_messages *m, const void *buf, MPI_Count count, MPI_Datatype type,
		       const struct pmpi_peer *to)
{
	int ret = COUNTED(Isend)(buf, (COUNT)count, type, to->rank, to->tag, comm,
				 &m->requests[m->n]);

	m->n += ret == MPI_SUCCESS;
	return ret;
}

int pmpi_messages_receive(struct pmpi_messages *m, void *buf, MPI_Count count, MPI_Datatype type,
			  const struct pmpi_peer *from, const struct pmpi_peer *self)
{
	int ret = COUNTED(Irecv)(buf, (COUNT)count, type, from->rank, self->tag, comm,
				 &m->requests[m->n]);

	m->n += ret == MPI_SUCCESS;
	return ret;
}

bool pmpi_messages_test(struct pmpi_messages *m, int *error)
{
	for (; m->next < m->n; m->next++) {
		int done = 0;
		int ret = PMPI_Test(&m->requests[m->next], &done, MPI_STATUS_IGNORE);

		if (ret == MPI_SUCCESS && !done)
			return false;
		if (*error == MPI_SUCCESS)
			*error = ret;
	}
	return true;
}

void pmpi_messages_end(struct pmpi_messages *m)
{
	free(m->requests);
}

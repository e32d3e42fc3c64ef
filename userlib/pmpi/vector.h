/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Collectives whose counts not all ranks know: see vector.c. */
#ifndef PMPI_VECTOR_H
#define PMPI_VECTOR_H

#include "pmpi/pmpi.h"

/**
 * struct pmpi_side - what a call sends or receives
 * @count: of a side that has one share
 * @counts, @displs, @large_counts, @large_displs: of a side that has one for each rank; the latter are
 *	of the functions whose names end in _c. On other ranks than root they may be anything
 * @types: of each share, whose displacements are bytes then; else NULL, and all have @type
 */
struct pmpi_side {
	void *buf;
	MPI_Count count;
	const int *counts, *displs;
	const MPI_Count *large_counts;
	const MPI_Aint *large_displs;
	MPI_Datatype type;
	const MPI_Datatype *types;
};

/* Elements of a rank's share. */
static inline MPI_Count pmpi_count_of(const struct pmpi_side *s, int r)
{
	if (s->counts)
		return s->counts[r];
	return s->large_counts ? s->large_counts[r] : s->count;
}

/* @call: without buffers, counts and types, which stand in the sides. */
struct pmpi_vector {
	struct pmpi_call call;
	struct pmpi_side send, recv;
};

/* As pmpi_offload(). */
bool pmpi_offload_vector(struct pmpi_vector *v, int *ret);

/* A nonblocking call. The arrays remain the caller's, who may not change them before its end. */
struct pmpi_steps;

/* NULL: no memory. @refused: MPI has to refuse the arguments; nothing has begun. */
struct pmpi_steps *pmpi_steps_begin(const struct pmpi_vector *v, bool *refused);
/* Its types must be there until the end. */
struct pmpi_vector *pmpi_steps_vector(struct pmpi_steps *s);
/*
 * Take the steps that can be taken. Returns -EINPROGRESS, 0, then *ret is what the call returns, or an
 * error of swingcoll. No other call of swingcoll on the communicator may come between, until the first
 * two of these, or pmpi_steps_moving(), tell that none of this one will follow.
 */
int pmpi_steps_poll(struct pmpi_steps *s, int *ret);
bool pmpi_steps_moving(const struct pmpi_steps *s);
void pmpi_steps_end(struct pmpi_steps *s);

#endif /* PMPI_VECTOR_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The MPI functions that the preload library knows, and why a call may be left to MPI. No MPI
 * header is needed here, so that unit tests can use it.
 */
#ifndef PMPI_NAMES_H
#define PMPI_NAMES_H

/*
 * Each function counts its calls under its own name; those with _c, and Open MPI's MPIX_, count with those
 * without. The persistent ones come last: they cannot be selected.
 */
#define PMPI_NAMES(X)                                                                              \
	X(ALLREDUCE, "MPI_Allreduce")                                                              \
	X(REDUCE, "MPI_Reduce")                                                                    \
	X(BCAST, "MPI_Bcast")                                                                      \
	X(BARRIER, "MPI_Barrier")                                                                  \
	X(ALLGATHER, "MPI_Allgather")                                                              \
	X(ALLGATHERV, "MPI_Allgatherv")                                                            \
	X(ALLTOALL, "MPI_Alltoall")                                                                \
	X(REDUCE_SCATTER, "MPI_Reduce_scatter")                                                    \
	X(REDUCE_SCATTER_BLOCK, "MPI_Reduce_scatter_block")                                        \
	X(GATHER, "MPI_Gather")                                                                    \
	X(GATHERV, "MPI_Gatherv")                                                                  \
	X(SCATTER, "MPI_Scatter")                                                                  \
	X(SCATTERV, "MPI_Scatterv")                                                                \
	X(ALLTOALLV, "MPI_Alltoallv")                                                              \
	X(ALLTOALLW, "MPI_Alltoallw")                                                              \
	X(SCAN, "MPI_Scan")                                                                        \
	X(EXSCAN, "MPI_Exscan")                                                                    \
	X(IALLREDUCE, "MPI_Iallreduce")                                                            \
	X(IREDUCE, "MPI_Ireduce")                                                                  \
	X(IBCAST, "MPI_Ibcast")                                                                    \
	X(IBARRIER, "MPI_Ibarrier")                                                                \
	X(IALLGATHER, "MPI_Iallgather")                                                            \
	X(IALLGATHERV, "MPI_Iallgatherv")                                                          \
	X(IALLTOALL, "MPI_Ialltoall")                                                              \
	X(IREDUCE_SCATTER, "MPI_Ireduce_scatter")                                                  \
	X(IREDUCE_SCATTER_BLOCK, "MPI_Ireduce_scatter_block")                                      \
	X(IGATHER, "MPI_Igather")                                                                  \
	X(IGATHERV, "MPI_Igatherv")                                                                \
	X(ISCATTER, "MPI_Iscatter")                                                                \
	X(ISCATTERV, "MPI_Iscatterv")                                                              \
	X(IALLTOALLV, "MPI_Ialltoallv")                                                            \
	X(IALLTOALLW, "MPI_Ialltoallw")                                                            \
	X(ISCAN, "MPI_Iscan")                                                                      \
	X(IEXSCAN, "MPI_Iexscan")                                                                  \
	X(ALLREDUCE_INIT, "MPI_Allreduce_init")                                                    \
	X(REDUCE_INIT, "MPI_Reduce_init")                                                          \
	X(BCAST_INIT, "MPI_Bcast_init")                                                            \
	X(BARRIER_INIT, "MPI_Barrier_init")                                                        \
	X(ALLGATHER_INIT, "MPI_Allgather_init")                                                    \
	X(ALLGATHERV_INIT, "MPI_Allgatherv_init")                                                  \
	X(ALLTOALL_INIT, "MPI_Alltoall_init")                                                      \
	X(REDUCE_SCATTER_INIT, "MPI_Reduce_scatter_init")                                          \
	X(REDUCE_SCATTER_BLOCK_INIT, "MPI_Reduce_scatter_block_init")                              \
	X(GATHER_INIT, "MPI_Gather_init")                                                          \
	X(GATHERV_INIT, "MPI_Gatherv_init")                                                        \
	X(SCATTER_INIT, "MPI_Scatter_init")                                                        \
	X(SCATTERV_INIT, "MPI_Scatterv_init")                                                      \
	X(ALLTOALLV_INIT, "MPI_Alltoallv_init")                                                    \
	X(ALLTOALLW_INIT, "MPI_Alltoallw_init")                                                    \
	X(SCAN_INIT, "MPI_Scan_init")                                                              \
	X(EXSCAN_INIT, "MPI_Exscan_init")

enum pmpi_name {
#define X(id, text) PMPI_##id,
	PMPI_NAMES(X)
#undef X
	PMPI_NR_NAMES
};

#define PMPI_NR_SELECTABLE PMPI_ALLREDUCE_INIT
/* The others, which make persistent requests. */
#define PMPI_PERSISTENT_NAMES (~0ull << PMPI_ALLREDUCE_INIT)

/* Why MPI carries a call out. All but the last four are the same on all ranks by themselves. */
#define PMPI_REASONS(X)                                                                            \
	X(SMALL, "small") /* below SWINGCOLL_PMPI_MIN, or MPI has been measured to be faster */    \
	X(TRIAL, "trial") /* MPI is being measured, or the communicator has had few calls */       \
	X(USER_OP, "user op")                                                                      \
	X(OP, "op") /* one of MPI's own that swingcoll does not have */                            \
	X(TYPE, "type")                                                                            \
	X(COUNTS, "counts")	/* differ too much from rank to rank, or are not known to all */   \
	X(FUNCTION, "function") /* swingcoll has no such collective */                             \
	X(COMM, "communicator")                                                                    \
	X(OFF, "off") /* by SWINGCOLL_PMPI, or persistent ones that a tool starts */               \
	X(NO_DEVICE, "no device")                                                                  \
	X(REFUSED, "buffer")	    /* the kernel could not pin the buffer of a rank */            \
	X(PERSISTENT, "persistent") /* swingcoll carries out as many at once as it can */

enum pmpi_reason {
#define X(id, text) PMPI_WHY_##id,
	PMPI_REASONS(X)
#undef X
	PMPI_NR_REASONS
};

extern const char *const pmpi_names[PMPI_NR_NAMES];
extern const char *const pmpi_reasons[PMPI_NR_REASONS];

#endif /* PMPI_NAMES_H */

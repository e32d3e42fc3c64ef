/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the overlap helper needs beyond the public calls. */
#ifndef SWC_API_FOR_OVERLAP_H
#define SWC_API_FOR_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <swingcoll.h>

/*
 * As swingcoll_iallgather() and swingcoll_ibroadcast() of @bytes bytes in disjoint buffers, but the
 * algorithm may leave out the copy of a rank's own data to its place in @recv. *left_out (which may
 * be NULL): it does, and nothing else touches that place.
 */
int swc_start_others(struct swingcoll_comm *comm, enum swingcoll_coll coll, const void *send,
		     void *recv, size_t bytes, int root, bool *left_out,
		     struct swingcoll_req **req);

/*
 * Bytes that DMA engines of this node have copied since the module was loaded, for any process; 0
 * if that is not known.
 */
uint64_t swc_engine_bytes(const struct swingcoll_comm *comm);

/* Ranks of the communicator on this node. */
uint32_t swc_comm_local_ranks(const struct swingcoll_comm *comm);

#endif /* SWC_API_FOR_OVERLAP_H */

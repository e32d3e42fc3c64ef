/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Collectives through the library, with data whose results are known: every rank computes what it sends from its
 * number, the index and a salt, and checks every element that it receives against a reference.
 */
#ifndef COLL_H
#define COLL_H

#include <swingcoll.h>

#include "testlib.h"

struct coll_case {
	int coll, dtype, op, root;
	size_t count;
	bool in_place;
};

bool coll_reduces(int coll);
bool coll_has_root(int coll);
/* Is the count that of one rank's shard, as for reduce-scatter, allgather, alltoall, gather and scatter? */
bool coll_is_sharded(int coll);

/*
 * The k-th of the cases of a collective with these counts, two for each: out of place and in place, with types and
 * roots in turn. The count of a shard is divided by share.
 */
struct coll_case coll_case_nth(int coll, const size_t *counts, unsigned int k, int nranks,
			       int share);

/* No diagnostics for calls that fail, where a test expects them. */
extern bool coll_quiet;

/* Elements in the send and in the receive buffer. */
size_t coll_send_elems(const struct coll_case *c, int nranks);
size_t coll_recv_elems(const struct coll_case *c, int nranks);

/* Fill the send buffer of a rank. */
void coll_fill(const struct coll_case *c, int nranks, int rank, void *send, uint64_t salt);
/* Check the receive buffer of a rank: 0, or -EBADMSG with a diagnostic. */
int coll_check(const struct coll_case *c, int nranks, int rank, const void *recv, uint64_t salt);
/* The blocking and the non-blocking call. */
int coll_call(const struct coll_case *c, const void *send, void *recv, struct swingcoll_comm *comm);
int coll_icall(const struct coll_case *c, const void *send, void *recv, struct swingcoll_comm *comm,
	       struct swingcoll_req **req);
/* The places of both buffers in coll_bytes() bytes of memory. */
void coll_buffers(const struct coll_case *c, int nranks, int rank, void *mem, void **send,
		  void **recv);
size_t coll_bytes(const struct coll_case *c, int nranks);
/* Fill, call and check, in coll_bytes() bytes of memory of the caller. */
int coll_run(const struct coll_case *c, void *mem, struct swingcoll_comm *comm, uint64_t salt);
const char *coll_describe(const struct coll_case *c);

#endif /* COLL_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Collectives through the library, with data whose results are known: every rank fills what it sends from
 * (rank, index), and checks every element of what it gets against a reference of its own.
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
bool coll_has_parts(int coll); /* the count is that of one rank's part */

/*
 * The @k-th of the cases of @coll with these counts, two for each: out of place and in place, the types and roots
 * in turn. @part: divide the count by so much if it is that of a part.
 */
struct coll_case coll_nth(int coll, const size_t *counts, unsigned int k, int nranks, int part);

/* No diagnostics for calls that fail: the test expects it. */
extern bool coll_quiet;

/* Elements that the send and the receive buffer of @c hold. */
size_t coll_send_elems(const struct coll_case *c, int nranks);
size_t coll_recv_elems(const struct coll_case *c, int nranks);

/* Fill @send, as rank @rank would; spoil @recv. Out of place both must be given. */
void coll_fill(const struct coll_case *c, int nranks, int rank, void *send, uint64_t salt);
/* 0, or -EBADMSG with a diagnostic. */
int coll_check(const struct coll_case *c, int nranks, int rank, const void *recv, uint64_t salt);
int coll_call(const struct coll_case *c, const void *send, void *recv, struct swingcoll_comm *comm);
int coll_icall(const struct coll_case *c, const void *send, void *recv, struct swingcoll_comm *comm,
	       struct swingcoll_req **req);
/* Where the send and the receive buffer lie in the memory at @mem, of coll_bytes(). */
void coll_place(const struct coll_case *c, int nranks, int rank, void *mem, void **send,
		void **recv);
size_t coll_bytes(const struct coll_case *c, int nranks);
/* Fill, call, check, in memory of the caller of coll_bytes() bytes. */
int coll_run(const struct coll_case *c, void *mem, struct swingcoll_comm *comm, uint64_t salt);
const char *coll_describe(const struct coll_case *c);

#endif /* COLL_H */

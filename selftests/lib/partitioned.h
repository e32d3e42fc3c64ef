/* SPDX-License-Identifier: GPL-2.0-only */
/* Partitioned collectives through the library, with data whose results are known: see coll.h. */
#ifndef PARTED_H
#define PARTED_H

#include "coll.h"

/* A partitioned collective with memory of its own. */
struct parted {
	struct coll_case c;
	int nranks;
	int n;
	size_t send_bytes, recv_bytes; /* of a partition */
	char *send, *recv;
	struct swingcoll_part *part;
};

int parted_up(struct parted *p, const struct coll_case *c, int n, struct swingcoll_comm *comm);
int parted_down(struct parted *p);
/* coll_fill(), coll_check() of partition @i. */
void parted_fill(struct parted *p, int i, int rank, uint64_t salt);
int parted_check(struct parted *p, int i, int rank, uint64_t salt);
/* All of it once, marked ready and waited for in orders that @rnd gives, and checked. */
int parted_round(struct parted *p, uint32_t rank, uint64_t salt, unsigned int *rnd);
/* 0 to n - 1 in an order that @rnd gives. */
void parted_shuffle(int *order, int n, unsigned int *rnd);

/* What ranks that are killed get: their communicator's timeout; and they count themselves when they have joined. */
struct parted_restless {
	uint32_t timeout_ms;
	uint32_t joined;
};

/*
 * Twenty times rank 0 of @nranks that run @fn, with a struct parted_restless, is killed: at any moment after all have
 * joined, or early. The others must end by themselves. 0, or 1 if one does not.
 */
int parted_kills(swct_fn fn, uint32_t nranks, struct swingcoll_id *id, unsigned int *rnd);

#endif /* PARTED_H */

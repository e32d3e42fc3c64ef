/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ranks that die at a certain step of an agreement or a shrink, and what the others must end with. Linked into tests
 * that use it only: it stands in front of send() and ioctl(), the steps that others notice.
 */
#ifndef DOOM_H
#define DOOM_H

#include <swingcoll.h>

#include "testlib.h"

#define DOOM_NEVER UINT32_MAX
/* Plus k: before it joins for the k-th time, from 0, instead of before the at-th step. */
#define DOOM_JOIN (UINT32_MAX / 2)
#define DOOM_MAX_RANKS 64

/* What a rank has seen; shared with the parent. */
struct doom_seen {
	int agreed;    /* result of the agreement */
	uint32_t flag; /* that it gave */
	uint32_t nfailed;
	uint64_t members; /* by number in the first communicator: of the last communicator */
	bool done;
};

/*
 * Agree, shrink, and check the rest by an allreduce; again if that fails. Dies before the at-th step, if there are so
 * many. 0, or 1 with a diagnostic.
 */
int doom_run(struct swingcoll_comm *comm, uint32_t at, struct doom_seen *seen);
/* Have all that are done seen the same, and are those the members? @all: by rank. 0 or 1. */
int doom_compare(const struct doom_seen *all, int n);

#endif /* DOOM_H */

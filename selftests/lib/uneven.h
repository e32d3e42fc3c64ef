/* SPDX-License-Identifier: GPL-2.0-only */
/* Gather and scatter with shards of different sizes, among them empty ones. */
#ifndef UNEVEN_H
#define UNEVEN_H

#include <swingcoll.h>

#include "testlib.h"

/**
 * struct uneven_case - one call
 * @scatter: else gather
 * @kind: how sizes differ, 0 to UNEVEN_KINDS - 1
 * @count: about the size of a shard
 * @start: by the non-blocking call
 */
struct uneven_case {
	bool scatter;
	int kind, root;
	size_t count;
	bool in_place, start;
};

enum {
	UNEVEN_SLOPE,
	UNEVEN_ONE,
	UNEVEN_HOLES,
	UNEVEN_KINDS
};

uint64_t uneven_count(const struct uneven_case *c, int nranks, int rank);
/* Fill, call and check: 0, an error of the library, or -EBADMSG with a diagnostic. */
int uneven_run(const struct uneven_case *c, struct swingcoll_comm *comm, uint32_t salt);

#endif /* UNEVEN_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Test data whose reduction is exact in any order, and the expected results. */
#ifndef PERF_PATTERN_H
#define PERF_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#include "swingcoll.h"

struct pattern {
	enum swingcoll_coll coll;
	enum swingcoll_dtype dtype;
	enum swingcoll_redop op;
	int nranks;
	size_t elem;   /* bytes of an element */
	size_t period; /* elements after which the data repeats */
	size_t used;   /* elements the tables hold: at most period */
	char *own;     /* what one rank contributes */
	char *expect;  /* the result, or another rank's contribution */
};

/* total: elements of the longest buffer. 0 or -ENOMEM. */
int pattern_init(struct pattern *p, enum swingcoll_coll coll, enum swingcoll_dtype dtype,
		 enum swingcoll_redop op, int nranks, size_t total);
void pattern_free(struct pattern *p);

/* Fill p->own with the contribution of @rank; p->expect with the reduction over all, or the data of @from. */
void pattern_own(struct pattern *p, int rank);
void pattern_expect_reduced(struct pattern *p);
void pattern_expect_from(struct pattern *p, int from);

/* Write, or compare, @n elements of a table, beginning with element @first of the whole vector. */
void pattern_fill(const struct pattern *p, const char *table, void *dst, size_t first, size_t n);
size_t pattern_wrong(const struct pattern *p, const char *table, const void *buf, size_t first,
		     size_t n);

/* An element as text, for messages. */
void pattern_show(const struct pattern *p, const void *elem, char *text, size_t size);

#endif /* PERF_PATTERN_H */

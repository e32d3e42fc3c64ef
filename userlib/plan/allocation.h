/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The division of bandwidth among dimensions that takes the least time, under linear constraints. */
#ifndef SWC_PLAN_ALLOCATION_H
#define SWC_PLAN_ALLOCATION_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/topo.h"

#define SWC_ALLOCATION_ROWS 96

/* By how much constraints but equations may be missed, in units of their largest coefficient. */
#define SWC_ALLOCATION_LOOSE 1e-8

/* Phases that take max v_i / b_i, as often as @weight says. */
struct swc_allocation_kind {
	double v[SWC_TOPO_DIMS], weight;
};

/* coefficients . b <= bound, or == bound. */
struct swc_allocation_row {
	double coefficient[SWC_TOPO_DIMS], bound;
	bool equal;
};

/**
 * struct swc_allocation - find b > 0 that makes the weighted sum of the kinds' times, and linear . b, least
 * @ndims: 1 to SWC_TOPO_DIMS
 * @kind, @nkinds: some v_i of each is positive, the largest one about 1; so are the sum of the weights and b
 * @row, @nrows: all that keeps b positive, and finite, too
 */
struct swc_allocation {
	uint32_t ndims;
	struct swc_allocation_kind *kind;
	unsigned int nkinds;
	struct swc_allocation_row row[SWC_ALLOCATION_ROWS];
	unsigned int nrows;
	double linear[SWC_TOPO_DIMS];
};

/*
 * Find the least value, to about 1e-8 of it. Rows may follow from each other.
 *
 * Return: 0 with @b, -EDOM if the rows cannot all be respected, or -ENOMEM.
 */
int swc_allocation_find(const struct swc_allocation *a, double *b);

#endif /* SWC_PLAN_ALLOCATION_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The best split of a vector among the orders in which its parts visit the dimensions. */
#ifndef SWC_PLAN_ORDERS_H
#define SWC_PLAN_ORDERS_H

#include <stdint.h>

#include "plan/topo.h"

/**
 * struct swc_order - a part of the vector
 * @dim: dimensions in the order in which its reduce-scatter visits them
 * @fraction: its share
 */
struct swc_order {
	uint8_t dim[SWC_TOPO_DIMS];
	double fraction;
};

/**
 * struct swc_orders - the split, and what it is compared with
 * @n: orders with a share, at most as many as dimensions
 * @time: the least time: bytes of a reduce-scatter that are moved per unit of rate
 * @fixed: time if all visit the dimensions as they are numbered
 * @single: time of the best single order
 * @bound: all bytes over all rates together
 */
struct swc_orders {
	uint32_t n;
	struct swc_order order[SWC_TOPO_DIMS + 1];
	double time, fixed, single, bound;
};

/*
 * Find the split for a reduce-scatter of @bytes over groups of @size members, of which each has
 * @rate in a dimension. @ndims: 1 to SWC_TOPO_DIMS; sizes are at least 1, rates more than 0.
 */
void swc_orders_find(struct swc_orders *o, const uint32_t *size, const double *rate, uint32_t ndims,
		     double bytes);

/* The time per byte that an order takes in each dimension. */
void swc_order_loads(const uint32_t *size, const double *rate, uint32_t ndims, const uint8_t *dim,
		     double *load);

/*
 * The time of the best split in closed form: the maximum over all sets of dimensions of the bytes
 * that they move together at least, over their rates together.
 */
double swc_orders_time(const uint32_t *size, const double *rate, uint32_t ndims, double bytes);

#endif /* SWC_PLAN_ORDERS_H */

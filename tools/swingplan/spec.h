/* SPDX-License-Identifier: GPL-2.0-only */
/* What the specifications of allocate and orders have in common: JSON that is read and checked. */
#ifndef SWINGPLAN_SPEC_H
#define SWINGPLAN_SPEC_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan/topo.h"

#define SPEC_PHASES 4096
#define SPEC_LINEAR 64
#define SPEC_MAX 1e18 /* of any number */

/* What a phase moves, by the number of the collective. */
enum spec_op {
	SPEC_ALLREDUCE,
	SPEC_REDUCE_SCATTER,
	SPEC_ALLGATHER,
	SPEC_ALLTOALL,
	SPEC_OPS
};

/* @v: bytes that a member moves in each dimension; @count: how often. */
struct spec_phase {
	double v[SWC_TOPO_DIMS], count;
};

/* coefficients . rates >= (1), <= (-1) or == (0) bound */
struct spec_linear {
	double coefficient[SWC_TOPO_DIMS], bound;
	int sense;
};

/**
 * struct spec - a specification; what is not given is 0
 * @op, @bytes, @rate: of orders
 * The rest is of allocate, but for the sizes.
 */
struct spec {
	uint32_t ndims, size[SWC_TOPO_DIMS];
	enum spec_op op;
	double bytes, rate[SWC_TOPO_DIMS];

	bool priced, time_cost;
	double price[SWC_TOPO_DIMS], floor[SWC_TOPO_DIMS], cap[SWC_TOPO_DIMS];
	double total, compute_ns;
	struct spec_phase *phase;
	unsigned int nphases;
	struct spec_linear linear[SPEC_LINEAR];
	unsigned int nlinear;
};

extern const char *const spec_ops[SPEC_OPS];

/* Read a file, "-" for standard input; ends the program with one line if something is wrong. */
void spec_read_orders(struct spec *s, const char *path);
void spec_read_allocate(struct spec *s, const char *path);
void spec_free(struct spec *s);

/* Bytes that a member moves in each dimension if they are visited in their order. */
void spec_volumes(enum spec_op op, double bytes, const double *groups, uint32_t ndims, double *v);

#endif /* SWINGPLAN_SPEC_H */

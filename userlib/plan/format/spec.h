/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The specifications of swingplan allocate and orders: JSON, every number of which is checked. */
#ifndef SWC_PLAN_FORMAT_SPEC_H
#define SWC_PLAN_FORMAT_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/topo.h"

#define SWC_SPEC_PHASES 4096
#define SWC_SPEC_LINEAR 64
#define SWC_SPEC_MAX 1e18 /* of any number */

/* What a phase moves, by the number of the collective. */
enum swc_spec_op {
	SWC_SPEC_ALLREDUCE,
	SWC_SPEC_REDUCE_SCATTER,
	SWC_SPEC_ALLGATHER,
	SWC_SPEC_ALLTOALL,
	SWC_SPEC_OPS
};

/* @v: bytes that a member moves in each dimension; @count: how often. */
struct swc_spec_phase {
	double v[SWC_TOPO_DIMS], count;
};

/* coefficients . rates >= (1), <= (-1) or == (0) bound */
struct swc_spec_linear {
	double coefficient[SWC_TOPO_DIMS], bound;
	int sense;
};

/**
 * struct swc_spec - a specification; what is not given is 0
 * @op, @bytes, @rate: of orders
 * The rest is of allocate, but for the sizes. @phase is owned.
 */
struct swc_spec {
	uint32_t ndims, size[SWC_TOPO_DIMS];
	enum swc_spec_op op;
	double bytes, rate[SWC_TOPO_DIMS];

	bool priced, time_cost;
	double price[SWC_TOPO_DIMS], floor[SWC_TOPO_DIMS], cap[SWC_TOPO_DIMS];
	double total, compute_ns;
	struct swc_spec_phase *phase;
	unsigned int nphases;
	struct swc_spec_linear linear[SWC_SPEC_LINEAR];
	unsigned int nlinear;
};

extern const char *const swc_spec_ops[SWC_SPEC_OPS];

/*
 * Read a specification from @bytes bytes of text. On -EINVAL @why gets one line that names the fault and what
 * would be accepted. Free with swc_spec_free() after 0 only.
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int swc_spec_parse_orders(struct swc_spec *s, const char *text, size_t bytes, char *why,
			  size_t why_bytes);
int swc_spec_parse_allocate(struct swc_spec *s, const char *text, size_t bytes, char *why,
			    size_t why_bytes);
void swc_spec_free(struct swc_spec *s);

/* Bytes that a member moves in each dimension if they are visited in their order. */
void swc_spec_volumes(enum swc_spec_op op, double bytes, const double *groups, uint32_t ndims,
		      double *v);

#endif /* SWC_PLAN_FORMAT_SPEC_H */

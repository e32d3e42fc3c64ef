/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The algorithm "forest": plans of the fastest trees on a topology. */
#ifndef SWC_PLAN_FOREST_ALGORITHM_H
#define SWC_PLAN_FOREST_ALGORITHM_H

#include "plan/plan.h"

/* Nodes that it is for, at most: more would take too long when a communicator is created. */
#define SWC_FOREST_MAX_NODES 64

/* Collectives that it offers, as bits 1 << enum swc_coll. */
#define SWC_FOREST_COLLS                                                                           \
	(1u << SWC_ALLREDUCE | 1u << SWC_REDUCE_SCATTER | 1u << SWC_ALLGATHER |                    \
	 1u << SWC_BROADCAST | 1u << SWC_REDUCE)

/* Read "forest" or "forest:PIECES"; false if it is another name. *@pieces 0: by the model. */
bool swc_forest_parse(const char *name, uint32_t *pieces);

/**
 * swc_forest_plan() - a rank's plan by trees
 * @args: as for swc_plan_build(); algo, param, ports, channels, in_place and others_only do not
 *	matter: the plan is right in place, too
 * @pieces: segments, 0 for as many as are the fastest for 64 MiB by the model
 *
 * An allreduce is by any roots where that is faster. All ranks find the same trees.
 *
 * Return: 0, -ENOMEM, or -EOPNOTSUPP with one line if it is not possible on this topology.
 */
int swc_forest_plan(const struct swc_plan_args *args, uint32_t pieces, void **plan, size_t *bytes,
		    char *why, size_t why_bytes);

/* The same for all ranks, in the time of one: @plan and @bytes by rank. Nothing is left after a failure. */
int swc_forest_plans(const struct swc_plan_args *args, uint32_t pieces, void **plan, size_t *bytes,
		     char *why, size_t why_bytes);

#endif /* SWC_PLAN_FOREST_ALGORITHM_H */

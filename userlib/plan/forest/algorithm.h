/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The algorithm "forest": plans of the fastest trees on a topology. */
#ifndef SWC_PLAN_FOREST_ALGORITHM_H
#define SWC_PLAN_FOREST_ALGORITHM_H

#include "plan/forest/trees.h"
#include "plan/plan.h"

/* Nodes that it is for, at most: more would take too long when a communicator is created. */
#define SWC_FOREST_MAX_NODES 64

/*
 * Collectives that it offers on a topology, as bits 1 << enum swc_coll. Where nodes have several ranks, an
 * allreduce is summed within each node first: each of its ranks then has a part of the vector between nodes.
 */
uint32_t swc_forest_colls(const struct swc_topo *topo);

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

/*
 * swc_forest_plan() in two parts, for several plans of one collective: @t is to be freed with
 * swc_trees_free().
 */
int swc_forest_find(struct swc_trees *t, const struct swc_topo *topo, enum swc_coll coll,
		    uint32_t root, char *why, size_t why_bytes);
int swc_forest_plan_of(const struct swc_trees *t, const struct swc_topo *topo, uint32_t pieces,
		       uint32_t rank, void **plan, size_t *bytes, char *why, size_t why_bytes);

/* The same for all ranks, in the time of one: @plan and @bytes by rank. Nothing is left after a failure. */
int swc_forest_plans(const struct swc_plan_args *args, uint32_t pieces, void **plan, size_t *bytes,
		     char *why, size_t why_bytes);

#endif /* SWC_PLAN_FOREST_ALGORITHM_H */

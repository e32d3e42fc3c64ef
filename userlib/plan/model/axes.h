/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the ranks on the axes of a torus or mesh do, where messages along a dimension depend on the coordinate
 * in it alone: from the plan of rank 0 and what the algorithm tells of each dimension, see axes.c.
 */
#ifndef SWC_PLAN_MODEL_AXES_H
#define SWC_PLAN_MODEL_AXES_H

#include "kmod/core/plan_check.h"
#include "plan/plan.h"

struct swc_axes_group;

/**
 * struct swc_axes_step - a network step of a channel
 * @group: its messages
 * @blocks: of each of them
 */
struct swc_axes_step {
	uint32_t group;
	uint32_t blocks;
};

/**
 * struct swc_axes - a computation
 * @nchannels, @nsteps, @step: network steps by channel; the same on all ranks
 * @group, @ngroups: messages of one step of a dimension
 */
struct swc_axes {
	const struct swc_topo *topo;
	uint32_t nchannels;
	uint32_t nsteps[SWC_MAX_CHANNELS];
	struct swc_axes_step *step[SWC_MAX_CHANNELS];
	struct swc_axes_group *group;
	uint32_t ngroups, room;
};

/**
 * struct swc_axes_rank - what a rank does in all, as in step_model.c
 * @reduced: blocks, by channel
 */
struct swc_axes_rank {
	uint64_t messages, blocks, conns;
	uint64_t reduced[SWC_MAX_CHANNELS];
};

/*
 * Find what there is. @view: the plan of rank 0. 0, -ENOMEM, -EOPNOTSUPP if the algorithm does not tell it
 * or some ranks leave out steps, or -EAGAIN if because of that some are ahead of others. Free with
 * swc_axes_free() in either case.
 */
int swc_axes_find(struct swc_axes *a, const struct swc_plan_args *args, const struct swc_topo *topo,
		  const struct swc_plan_view *view);
void swc_axes_free(struct swc_axes *a);

/* Ranges of blocks in a message, at most. */
uint32_t swc_axes_max_runs(const struct swc_axes *a);

/* Call @fn for each rank on the axes but rank 0. */
typedef void swc_axes_fn(void *arg, uint32_t rank, const struct swc_axes_rank *does);
void swc_axes_each(const struct swc_axes *a, swc_axes_fn *fn, void *arg);

/*
 * Add the messages of a channel's k-th network step, but those of rank 0, to the links of an axis: by how
 * much each link has more than the one below it, up and down in turn. @line: those of the first dimension;
 * @at: where each dimension begins, in pairs. Returns the longest way of a message.
 */
uint32_t swc_axes_add(const struct swc_axes *a, uint32_t chan, uint32_t k, double *line,
		      const uint32_t *at);

#endif /* SWC_PLAN_MODEL_AXES_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The load of links where the plans of ranks are alike, from the plans of a few of them; see
 * symmetry.c.
 */
#ifndef SWC_PLAN_MODEL_SYMMETRY_H
#define SWC_PLAN_MODEL_SYMMETRY_H

#include "plan/plan.h"

struct swc_term;

/**
 * struct swc_symmetric - loads of links, by step
 * @kind: how plans are alike; SWC_SYMMETRY_SAMPLE: not at all, some ranks stand for all;
 *	SWC_SYMMETRY_ODD: not quite
 * @nvisits: ranks whose plans are needed
 * @visit: by number of the visit: the rank, see swc_symmetric_rank()
 *
 * The rest belongs to symmetry.c.
 */
struct swc_symmetric {
	enum swc_symmetry kind;
	const struct swc_topo *topo;
	uint32_t nvisits, root;
	bool rooted; /* sample: ranks other than the root are alike */
	enum swc_symmetry pattern;
	const struct swc_plan_args *by_height; /* sample: of a double tree, by height */
	double alike; /* sample: how many ranks the visited one stands for */

	uint32_t nsteps;
	uint32_t stride[SWC_TOPO_DIMS];
	uint32_t *head; /* by step: the first of its terms, and one more; 0: none */
	struct swc_term *term;
	uint32_t nterms, room;
	uint32_t line_at[SWC_TOPO_DIMS + 1];
	double *line;  /* SWC_SYMMETRY_LINES: by step, link of the axes and way; differences */
	float *mean;   /* sample, odd: by step, dimension and way */
	float *single; /* by step: ring: the largest message; sample: most on a link of one rank */
	struct swc_symmetric_end *end; /* sample: by step, the links of one rank, out and in */
	uint32_t nends;
	struct swc_symmetric_route *route; /* the latest, by swc_topo_pair() */
	double ring_load; /* ring: of a block of each member, on the busiest link */
	uint32_t ring_hops;
};

/*
 * Begin, with plans that are alike as @kind says. If more than @most_ranks would have to be visited,
 * it becomes SWC_SYMMETRY_ODD or SWC_SYMMETRY_SAMPLE. With SWC_SYMMETRY_NONE the rest is of no use.
 */
void swc_symmetric_begin(struct swc_symmetric *s, const struct swc_plan_args *args,
			 const struct swc_topo *topo, enum swc_symmetry kind, uint32_t most_ranks);

/* Are loads estimates? */
bool swc_symmetric_estimates(const struct swc_symmetric *s);

/* The rank of a visit; and likewise, as what is added from now on is of this rank's plan. */
uint32_t swc_symmetric_rank(const struct swc_symmetric *s, uint32_t visit);
uint32_t swc_symmetric_visit(struct swc_symmetric *s, uint32_t visit);

/* The first dimension in which a rank's coordinate is not 0: of ranks on the axes, their axis. */
uint32_t swc_symmetric_axis(const struct swc_symmetric *s, uint32_t rank);

/* Is this rank one of those on the axes, or are all visited? */
bool swc_symmetric_visited(const struct swc_symmetric *s, uint32_t rank);

/*
 * Make room for so many steps, with no load. @args: as before; there are such plans. 0 or -ENOMEM. Free with
 * swc_symmetric_free().
 */
int swc_symmetric_open(struct swc_symmetric *s, const struct swc_plan_args *args, uint32_t nsteps);
void swc_symmetric_free(struct swc_symmetric *s);

/*
 * A message of a visited rank. @swap: the peer sends the same range back. *hops is set to the links
 * that it crosses. 0 or -ENOMEM.
 */
int swc_symmetric_add(struct swc_symmetric *s, uint32_t step, uint32_t chan, uint32_t path,
		      uint32_t from, uint32_t to, uint64_t blocks, bool swap, uint32_t *hops);

/* A message that a visited rank of a sample receives. Returns the links that it crosses. */
uint32_t swc_symmetric_receive(struct swc_symmetric *s, uint32_t step, uint32_t path, uint32_t from,
			       uint32_t to, uint64_t blocks);

/*
 * SWC_SYMMETRY_LINES, not on a switch: the links of the axes in a step, each with its two ways: by how much
 * it has more than the one below it. Dimension i begins at link @s->line_at[i].
 */
double *swc_symmetric_lines(struct swc_symmetric *s, uint32_t step);

/* The blocks on the most loaded link in a step. */
double swc_symmetric_peak(const struct swc_symmetric *s, uint32_t step);

/* For symmetry.c: count the routes of a ring, into @s->ring_load and @s->ring_hops. False if there is no memory. */
bool swc_symmetric_count_ring(struct swc_symmetric *s, const struct swc_plan_args *args);

#endif /* SWC_PLAN_MODEL_SYMMETRY_H */

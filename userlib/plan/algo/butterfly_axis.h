/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One dimension of a torus as a member sees it: which coordinates' blocks it sends along it in which step,
 * and which of them are on paths from the root. See butterfly_sets.c.
 */
#ifndef SWC_PLAN_ALGO_BUTTERFLY_AXIS_H
#define SWC_PLAN_ALGO_BUTTERFLY_AXIS_H

#include "plan/algo/butterfly_lines.h"

/* Consecutive places, or numbers. */
struct swc_stretch {
	uint32_t first, n;
};

/* Places of a line, ascending. */
struct swc_stretches {
	struct swc_stretch *stretch;
	uint32_t n, room;
};

/* Append to them. False if there is no memory. */
bool swc_stretches_add(struct swc_stretches *list, uint32_t first, uint32_t n);

/* Steps: of the plan. */
#define SWC_AXIS_ANY UINT8_MAX

/**
 * struct swc_piece - consecutive places
 * @step: in this step the member sends their blocks; its own block: the number of steps
 * @from: from this step on the paths to them are at the member's coordinate, 0 if there is no root;
 *	SWC_AXIS_ANY: they do not come here
 * @odd: the last coordinate of odd d in Swing, which has a piece of its own
 */
struct swc_piece {
	uint32_t first, n;
	uint8_t step, from;
	bool odd;
};

/**
 * struct swc_axis - a dimension
 * @me, @root: coordinates
 * @own: the place of @me
 * @by_ways: places are in the order of ways, else in that of coordinates
 * @rooted: there is a root
 * @piece: of the blocks that the member has not sent along the dimension
 * @before: rooted: by step: which coordinate paths come from in it
 * @path_first, @npaths: rooted: places with all coordinates to which paths come here
 *
 * The rest belongs to butterfly_axis.c.
 */
struct swc_axis {
	const struct swc_lines *lines;
	const struct swc_line *line;
	uint32_t dim, me, root, own;
	bool by_ways, rooted;
	struct swc_piece *piece;
	uint32_t npieces, room;
	uint32_t before[SWC_BUTTERFLY_STEPS];
	uint32_t path_first, npaths;
	uint32_t
		common; /* steps of ways that paths which come here have in common with the way to me */
	uint8_t *step, *from; /* by place, and by coordinate */
};

/* Open a dimension of lines, which have to remain. 0 or -ENOMEM; free with swc_axis_free() in either case. */
int swc_axis_open(struct swc_axis *a, const struct swc_lines *lines, uint32_t dim, bool by_ways,
		  bool rooted);
void swc_axis_free(struct swc_axis *a);

/* Find the pieces for the port that the lines are at. False if there is no memory. */
bool swc_axis_find(struct swc_axis *a, uint32_t me, uint32_t root);

/*
 * Find places of blocks; false if there is no memory. @by: SWC_AXIS_ANY, or only of those on whose paths the
 * member has been by that step.
 *
 * hold: not sent so far, as swc_axis_sent() tells
 * own: the member's own coordinate
 * send: sent to @peer in step s of this dimension
 * receive: received from @peer in it, to be asked for after swc_axis_sent(); @paths: only those on paths from
 *	there
 */
bool swc_axis_hold(const struct swc_axis *a, uint32_t by, struct swc_stretches *out);
bool swc_axis_own(const struct swc_axis *a, struct swc_stretches *out);
bool swc_axis_send(const struct swc_axis *a, uint32_t s, uint32_t peer, uint32_t by,
		   struct swc_stretches *out);
bool swc_axis_receive(const struct swc_axis *a, uint32_t s, uint32_t peer, bool paths,
		      struct swc_stretches *out);
/* What is sent in step s has been sent: leave it out from now on. */
void swc_axis_sent(struct swc_axis *a, uint32_t s);

#endif /* SWC_PLAN_ALGO_BUTTERFLY_AXIS_H */

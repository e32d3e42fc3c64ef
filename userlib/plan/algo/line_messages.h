/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What members send along a dimension in algorithms whose messages there depend on the coordinate in it alone
 * (SWC_SYMMETRY_LINES), without their plans: models need that of thousands of coordinates. Each channel takes
 * the steps of a dimension in the same order, with those of other dimensions in between.
 */
#ifndef SWC_PLAN_ALGO_LINE_MESSAGES_H
#define SWC_PLAN_ALGO_LINE_MESSAGES_H

#include "plan/plan.h"

#define SWC_LINE_PEERS 12

/**
 * struct swc_line_peers - a step of a coordinate
 * @to, @from: the coordinates that it sends to and receives from; all messages of the step have one size
 * @nreduced: how many of those that it receives are reduced
 */
struct swc_line_peers {
	uint32_t nsend, nrecv, nreduced;
	uint32_t to[SWC_LINE_PEERS], from[SWC_LINE_PEERS];
};

/**
 * struct swc_line_messages - the steps of all dimensions with more than one member
 * @nlines: how many these are
 * @mirrors: every second half of 2 * @nlines channels is mirrored; else none
 * @lines: the algorithm's; free()
 * @count: the steps of a dimension, of those that are counted
 * @peers: step @s of coordinate @x in a channel
 */
struct swc_line_messages {
	uint32_t nlines;
	bool mirrors;
	void *lines;
	uint32_t (*count)(const void *lines, uint32_t line);
	void (*peers)(void *lines, uint32_t line, uint32_t s, bool mirrored, uint32_t x,
		      struct swc_line_peers *peers);
};

/* Is channel @chan mirrored? */
static inline bool swc_line_mirrored(const struct swc_line_messages *l, uint32_t chan)
{
	return l->mirrors && chan % (2 * l->nlines) >= l->nlines;
}

typedef int swc_line_messages_fn(const struct swc_plan_args *args, const struct swc_topo *topo,
				 struct swc_line_messages *steps);

/* 0, -ENOMEM, or -EOPNOTSUPP if there are no such plans. */
swc_line_messages_fn swc_twosided_lines; /* twosided.c: of radix, too */
swc_line_messages_fn swc_ordered_lines;	 /* ordered.c */
/* The same for any algorithm; -EOPNOTSUPP if it does not tell. */
swc_line_messages_fn swc_algo_lines;

#endif /* SWC_PLAN_ALGO_LINE_MESSAGES_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Schedules of one dimension for sums that are received from both sides at once; see sides.c. Used
 * by twosided.c.
 */
#ifndef SWC_PLAN_ALGO_SIDES_H
#define SWC_PLAN_ALGO_SIDES_H

#include <stdbool.h>
#include <stdint.h>

#define SWC_SIDES_STAGES 20	/* 2^20 members */
#define SWC_SIDES_STEPS 6	/* of a stage that was searched */
#define SWC_SIDES_SHIFTS_MOST 4 /* messages that shifts receive in one step, at most */
#define SWC_SIDES_PEERS 6	/* that a member receives from, or sends to, in one step */

/* What a step adds to: nothing, the latest sum, or the sum before that. */
enum swc_sides_base {
	SWC_SIDES_NONE,
	SWC_SIDES_NOW,
	SWC_SIDES_BEFORE
};

/* A step in which all members do the same: receive from these offsets. */
struct swc_sides_shift {
	enum swc_sides_base base;
	uint32_t n, hops;
	int32_t from[SWC_SIDES_SHIFTS_MOST];
};

enum swc_sides_kind {
	SWC_SIDES_SHIFTS, /* members do the same in each step */
	SWC_SIDES_TABLE,  /* four or eight members, by table */
	SWC_SIDES_ARCS,	  /* any number of members */
};

/* A stage: rings of @n members that are @stride apart. @hops in units of the stride. */
struct swc_sides_stage {
	enum swc_sides_kind kind;
	uint32_t n, stride, steps, hops, load;
	struct swc_sides_shift shift[SWC_SIDES_STEPS];
};

/*
 * One dimension of @size members: its stages, and their steps counted through. @few: with fewer steps, of up
 * to four messages.
 */
struct swc_sides {
	uint32_t size, nstages, nsteps;
	bool few;
	struct swc_sides_stage stage[SWC_SIDES_STAGES];
};

/*
 * Find the shifts with the fewest hops for a stage of @best->n members in @steps steps; @best->steps
 * stays 0 if there are none. A step receives up to two messages, the last one up to four; if the
 * hops are more than half the ring, more messages may do better, and if so, also one step less.
 */
void swc_sides_shifts(struct swc_sides_stage *best, uint32_t steps);

/* The same with this number of steps of up to four messages. */
void swc_sides_few_shifts(struct swc_sides_stage *best, uint32_t steps);

/*
 * Find the schedule with the least time of all with ceil(log3) steps or fewer, where a step takes as long as
 * one and a half hops; of these one with the least load. @few: a step takes as long as twelve hops, as in
 * the kernel, and any may have up to four messages. 0 or -ENOMEM.
 */
int swc_sides_find(struct swc_sides *l, uint32_t size, bool few);

/* The largest distance of a message in a step. */
uint32_t swc_sides_hops(const struct swc_sides *l, uint32_t step);

enum swc_sides_base swc_sides_base(const struct swc_sides *l, uint32_t step);

/*
 * The offsets of the members that coordinate @at receives from in a step, in the order in which it
 * adds, or sends to. Returns their number.
 */
uint32_t swc_sides_peers(const struct swc_sides *l, uint32_t step, uint32_t at, bool send,
			 int64_t offset[SWC_SIDES_PEERS]);

#endif /* SWC_PLAN_ALGO_SIDES_H */

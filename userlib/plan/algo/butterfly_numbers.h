/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers of the blocks of a port such that Swing's messages have consecutive ones, or nearly so. */
#ifndef SWC_PLAN_ALGO_BUTTERFLY_NUMBERS_H
#define SWC_PLAN_ALGO_BUTTERFLY_NUMBERS_H

#include "plan/algo/butterfly_lines.h"

/**
 * struct swc_numbers - the numbers of blocks
 * @of_member: by member: the number of its block
 * @coord: by dimension: all coordinates, in the order of their numbers in this dimension alone
 * @stride: by dimension: between the members of neighbours
 * @lines: the port's
 */
struct swc_numbers {
	uint32_t *of_member;
	uint32_t *coord[SWC_TOPO_DIMS];
	uint32_t stride[SWC_TOPO_DIMS];
	const struct swc_lines *lines;
};

/* Room for the numbers. 0 or -ENOMEM; free with swc_numbers_free() in either case. */
int swc_numbers_open(struct swc_numbers *p, const struct swc_topo *topo);
void swc_numbers_free(struct swc_numbers *p);

/* Find the numbers for a port of Swing, which has to remain. */
void swc_numbers_find(struct swc_numbers *p, const struct swc_lines *lines);

/*
 * Are there as many blocks as ways? Then all sides are powers of two, each number is the way to its
 * block, the first step the highest bit, and one is found without those of all others.
 */
bool swc_numbers_separate(const struct swc_lines *lines);
uint32_t swc_numbers_one(const struct swc_lines *lines, const uint32_t *coord);

/* How many of @n ways of a line, ascending and equal in all steps before this one, do not take it. */
uint32_t swc_ways_without(const uint32_t *way, uint32_t n, uint32_t step);

#endif /* SWC_PLAN_ALGO_BUTTERFLY_NUMBERS_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers of the blocks of a port such that Swing's messages have consecutive ones, or nearly so. */
#ifndef SWC_PLAN_ALGO_BUTTERFLY_NUMBERS_H
#define SWC_PLAN_ALGO_BUTTERFLY_NUMBERS_H

#include "plan/algo/butterfly_axis.h"

/* Is given consecutive numbers; false ends the walk. */
typedef bool swc_numbers_fn(void *arg, uint32_t first, uint32_t n);

/*
 * Call @fn for the numbers of all blocks of a product, ascending. @part: by dimension, the places of the
 * blocks' coordinates. @by_ways: places are in the order of ways, and numbers are those of a port of
 * Swing; else both are in the order of coordinates and members. Numbers that follow one another may come
 * in several calls.
 */
void swc_numbers_each(const struct swc_lines *lines, bool by_ways, const struct swc_stretches *part,
		      swc_numbers_fn *fn, void *arg);

/*
 * Are there as many blocks as ways? Then all sides are powers of two, each number is the way to its
 * block, the first step the highest bit, and one is found without those of all others.
 */
bool swc_numbers_separate(const struct swc_lines *lines);
uint32_t swc_numbers_one(const struct swc_lines *lines, const uint32_t *coord);

#endif /* SWC_PLAN_ALGO_BUTTERFLY_NUMBERS_H */

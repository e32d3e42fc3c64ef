/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The order of shards in Bruck's all-to-all, and what it copies; see bruck.c. */
#ifndef SWC_PLAN_ALGO_BRUCK_H
#define SWC_PLAN_ALGO_BRUCK_H

#include <stdbool.h>
#include <stdint.h>

#define SWC_BRUCK_RADIX 4
#define SWC_BRUCK_MAX_RADIX 8

/**
 * struct swc_bruck - the shards of a member before a step, alike on all members
 * @n: members; a member always has n shards, one of each distance that they go in all
 * @radix: of the digits of distances
 * @weight: of the digit of the step
 * @first: it is the first step
 * @count: by digit: shards with that digit
 * @base: by digit: their place after the step; in the packed copy, too
 * @distance: by place: how far its shard goes in all
 * @digit: by place: of its shard
 * @next: room for the next order
 */
struct swc_bruck {
	uint32_t n, radix, weight;
	bool first;
	uint32_t count[SWC_BRUCK_MAX_RADIX], base[SWC_BRUCK_MAX_RADIX];
	uint32_t *distance, *next;
	uint8_t *digit;
};

/* Prepare the first step. 0 or -ENOMEM; free with swc_bruck_close() in any case. */
int swc_bruck_open(struct swc_bruck *k, uint32_t n, uint32_t radix);
void swc_bruck_close(struct swc_bruck *k);

/* Copy @n shards from place @from: of digit 0 to place @to, of others to place @to of the packed copy. */
typedef void swc_bruck_copy_fn(void *arg, uint32_t digit, uint32_t from, uint32_t to, uint32_t n);

/* The copies before a step that is not the first, in order. */
void swc_bruck_pack(const struct swc_bruck *k, swc_bruck_copy_fn *copy, void *arg);

/* Go on to the next step; false after the last one. */
bool swc_bruck_next(struct swc_bruck *k);

#endif /* SWC_PLAN_ALGO_BRUCK_H */

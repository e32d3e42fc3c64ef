/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pairwise coverage, for tests that walk the product of several factors (algorithm, number of ranks, collective ...).
 * The walk asks for every combination whether to run it. The long form runs all of them. The short form, which
 * SWC_TEST_SHORT=1 selects, runs a combination only if it has a pair of levels, of any two factors, that no combination
 * before has covered. So every pair that the long form covers is covered by the short one, too, by far fewer
 * combinations, and the same ones in every run and on all ranks.
 */
#ifndef PAIRS_H
#define PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#define PAIRS_FACTORS 5
#define PAIRS_LEVELS 32

struct pairs {
	bool all;
	unsigned int nfactors;
	unsigned int run, skipped; /* combinations */
	uint32_t covered[PAIRS_FACTORS][PAIRS_FACTORS][PAIRS_LEVELS];
};

/* Is the short form selected? */
bool pairs_short(void);
void pairs_init(struct pairs *p, unsigned int nfactors);
/* Is this combination to be run? One level of each factor, below PAIRS_LEVELS. */
bool pairs_due(struct pairs *p, const unsigned int *level);
/* It has been run, and has tested what it is for. */
void pairs_cover(struct pairs *p, const unsigned int *level);

#endif /* PAIRS_H */

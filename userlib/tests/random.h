/* SPDX-License-Identifier: GPL-2.0-only */
/* Random numbers for tests, from a seed that SWC_TEST_SEED repeats. */
#ifndef SWC_TESTS_RANDOM_H
#define SWC_TESTS_RANDOM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t rnd_state;

/* 0 to n - 1. */
static inline uint32_t rnd(uint32_t n)
{
	rnd_state = rnd_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rnd_state >> 33) % n;
}

/* Take the seed from SWC_TEST_SEED or the clock, and print it. */
static inline void seed_rnd(void)
{
	const char *seed = getenv("SWC_TEST_SEED");

	rnd_state = seed ? strtoull(seed, NULL, 0)
			 : (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
	printf("# SWC_TEST_SEED=%llu\n", (unsigned long long)rnd_state);
}

/* Does SWC_TEST_SHORT=1 ask for the short form? */
static inline bool short_form(void)
{
	const char *is_short = getenv("SWC_TEST_SHORT");

	return is_short && *is_short;
}

/* So many rounds of random input, or a tenth of them. */
static inline uint32_t rounds_of(uint32_t n)
{
	return short_form() ? (n + 9) / 10 : n;
}

#endif /* SWC_TESTS_RANDOM_H */

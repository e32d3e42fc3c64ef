/* SPDX-License-Identifier: GPL-2.0-only */
/* Sets of plans, texts that are files, and random numbers, for the tests of plan files. */
#ifndef SWC_TESTS_PLANSET_H
#define SWC_TESTS_PLANSET_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plan_check.h"
#include "format/plan_text.h"
#include "tap.h"

static uint64_t rnd_state;

static inline uint32_t rnd(uint32_t n)
{
	rnd_state = rnd_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rnd_state >> 33) % n;
}

/* ---- sets of plans, and texts ---- */

struct text {
	char *at;
	size_t bytes;
	FILE *f; /* while it is being written */
};

static inline void text_open(struct text *t)
{
	t->at = NULL;
	t->f = open_memstream(&t->at, &t->bytes);
	if (!t->f)
		abort();
}

static inline void text_close(struct text *t)
{
	fclose(t->f);
	t->f = NULL;
}

static inline int read_with(int (*read)(FILE *, struct swc_planset *, char *, size_t),
			    const char *text, size_t bytes, struct swc_planset *set, char *why,
			    size_t why_bytes)
{
	/* fmemopen() wants at least one byte. */
	FILE *f = bytes ? fmemopen((void *)text, bytes, "r") : fopen("/dev/null", "r");
	int ret;

	if (!f)
		abort();
	*why = 0;
	ret = read(f, set, why, why_bytes);
	fclose(f);
	return ret;
}

static inline int read_text(const char *text, struct swc_planset *set, char *why, size_t why_bytes)
{
	return read_with(swc_planfile_read, text, strlen(text), set, why, why_bytes);
}

static inline int write_text(const struct swc_planset *set, struct text *t, char *why,
			     size_t why_bytes)
{
	int ret;

	text_open(t);
	ret = swc_planfile_write(t->f, (const void *const *)set->plan, set->bytes, set->nranks, why,
				 why_bytes);
	text_close(t);
	return ret;
}

static inline int build(struct swc_planset *set, enum swc_algo algo, enum swc_coll coll,
			const struct swc_topo *topo, uint32_t nranks, uint32_t channels)
{
	int ret = 0;

	set->nranks = nranks;
	set->plan = calloc(nranks, sizeof(*set->plan));
	set->bytes = calloc(nranks, sizeof(*set->bytes));
	for (uint32_t r = 0; !ret && r < nranks; r++) {
		struct swc_plan_args a = { .coll = coll,
					   .algo = algo,
					   .param = SWC_PARAM_DEFAULT,
					   .topo = topo,
					   .nranks = nranks,
					   .rank = r,
					   .nlocal = topo ? 0 : nranks,
					   .channels = channels };

		ret = swc_plan_build(&a, &set->plan[r], &set->bytes[r], NULL, 0);
	}
	return ret;
}

static inline int verify(const struct swc_planset *set, bool in_place, const struct swc_topo *topo,
			 struct swc_verdict *v)
{
	bool *where = calloc(set->nranks, sizeof(*where));
	int ret;

	for (uint32_t r = 0; r < set->nranks; r++)
		where[r] = in_place && !(((struct swc_plan_header *)set->plan[r])->flags &
					 SWC_PLAN_NOT_IN_PLACE);
	ret = swc_plan_verify((const void *const *)set->plan, set->bytes, where, set->nranks, topo,
			      v);
	free(where);
	return ret;
}

static inline bool equal(const struct swc_planset *a, const struct swc_planset *b)
{
	for (uint32_t r = 0; r < a->nranks; r++) {
		const struct swc_plan_header *h = a->plan[r], *g = b->plan[r];
		struct swc_plan_header same = *g;

		same.family = h->family;
		if (g->family != ((struct swc_plan_header *)b->plan[0])->family ||
		    a->bytes[r] != b->bytes[r] || memcmp(h, &same, sizeof(same)) ||
		    memcmp(h + 1, g + 1, a->bytes[r] - sizeof(same)))
			return false;
	}
	return a->nranks == b->nranks;
}

/* Seed the random numbers from SWC_TEST_SEED or the clock, and say how. */
static inline void seed_rnd(void)
{
	const char *seed = getenv("SWC_TEST_SEED");

	rnd_state = seed ? strtoull(seed, NULL, 0)
			 : (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
	printf("# SWC_TEST_SEED=%llu\n", (unsigned long long)rnd_state);
}

#endif /* SWC_TESTS_PLANSET_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Sets of plans and their text, for tests. */
#ifndef SWC_TESTS_PLAN_TEXTS_H
#define SWC_TESTS_PLAN_TEXTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "plan/format/plan_text.h"
#include "tap.h"

static inline int read_text(const char *text, struct swc_plan_set *set, char *why, size_t why_bytes)
{
	*why = 0;
	return swc_plan_text_parse(text, strlen(text), set, why, why_bytes);
}

static inline int write_text(const struct swc_plan_set *set, struct swc_text *t, char *why,
			     size_t why_bytes)
{
	*t = (struct swc_text){ 0 };
	return swc_plan_text_print(t, (const void *const *)set->plan, set->bytes, set->nranks, NULL,
				   NULL, why, why_bytes);
}

static inline int build(struct swc_plan_set *set, enum swc_algo algo, enum swc_coll coll,
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

static inline int verify(const struct swc_plan_set *set, bool in_place, const struct swc_topo *topo,
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

static inline bool equal(const struct swc_plan_set *a, const struct swc_plan_set *b)
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

#endif /* SWC_TESTS_PLAN_TEXTS_H */

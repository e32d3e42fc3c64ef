/* SPDX-License-Identifier: GPL-2.0-only */
/* The plans of all ranks, for tests. */
#ifndef SWC_TESTS_PLAN_SET_H
#define SWC_TESTS_PLAN_SET_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "plan_check.h"

#define MAX_RANKS 256

struct set {
	struct swc_topo topo;
	void *plan[MAX_RANKS];
	size_t bytes[MAX_RANKS];
	bool in_place[MAX_RANKS];
	uint32_t nranks;
};

enum placing {
	OUT_OF_PLACE,
	IN_PLACE,
	MIXED
};

/* What to build; @algo as people write it. */
struct make {
	const char *topo, *algo;
	enum swc_coll coll;
	enum placing placing;
	uint32_t ports;
};

static inline int build_set(struct set *s, const struct make *m)
{
	struct swc_plan_args a = { .coll = m->coll, .topo = &s->topo, .ports = m->ports };
	char why[200] = "";
	int ret;

	memset(s, 0, sizeof(*s));
	ret = swc_topo_parse(&s->topo, m->topo, why, sizeof(why));
	s->nranks = a.nranks = ret ? 0 : s->topo.nranks;
	if (!ret && s->nranks > MAX_RANKS)
		abort();
	a.algo = (enum swc_algo)swc_algo_parse(m->algo, &a.param);
	for (uint32_t r = 0; !ret && r < s->nranks; r++) {
		a.rank = r;
		s->in_place[r] = a.in_place = m->placing == IN_PLACE ||
					      (m->placing == MIXED && r % 3 != 1);
		ret = swc_plan_build(&a, &s->plan[r], &s->bytes[r], why, sizeof(why));
	}
	if (ret)
		printf("# %s on %s: %s (%d)\n", m->algo, m->topo, why, ret);
	return ret;
}

static inline void free_set(struct set *s)
{
	for (uint32_t r = 0; r < s->nranks; r++)
		free(s->plan[r]);
	swc_topo_free(&s->topo);
}

static inline struct swc_plan_header *header(const struct set *s, uint32_t r)
{
	return s->plan[r];
}

static inline int verify_set(struct set *s, const struct make *m)
{
	struct swc_verdict v;
	int ret = swc_plan_verify((const void *const *)s->plan, s->bytes, s->in_place, s->nranks,
				  &s->topo, &v);

	if (ret && m)
		printf("# %s on %s, collective %d, placing %d, ports %u: rank %u: %s (%d)\n",
		       m->algo, m->topo, m->coll, m->placing, m->ports, v.rank,
		       ret == -EINVAL ? v.text : "", ret);
	return ret;
}

static inline struct swc_plan_view view_of(const void *plan, size_t bytes)
{
	struct swc_plan_view v;
	char why[120];

	if (swc_plan_check(plan, bytes, &v, why, sizeof(why)))
		abort();
	return v;
}

#endif /* SWC_TESTS_PLAN_SET_H */

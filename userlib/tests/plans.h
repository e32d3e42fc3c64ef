/* SPDX-License-Identifier: GPL-2.0-only */
/* The plans of all ranks of a topology, built and verified, for tests. */
#ifndef SWC_TESTS_PLANS_H
#define SWC_TESTS_PLANS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "plan/names.h"
#include "plan/plan.h"

enum placing {
	OUT_OF_PLACE,
	IN_PLACE,
	MIXED,
	PLACINGS
};

/**
 * struct set - the plans of all ranks
 * @args: of all ranks, without rank and in_place
 * @topo: owned, if the set was built from a text
 * @in_place: by rank: the plan is for, and verified with, send == recv
 * @view: by rank: the plan's tables
 * @why: what is wrong, after a failure
 */
struct set {
	struct swc_plan_args args;
	enum placing placing;
	struct swc_topo topo;
	uint32_t nranks;
	void **plan;
	size_t *bytes;
	bool *in_place;
	struct swc_plan_view *view;
	char why[240];
};

static inline void free_set(struct set *s)
{
	for (uint32_t r = 0; s->plan && r < s->nranks; r++)
		free(s->plan[r]);
	free(s->plan);
	free(s->bytes);
	free(s->in_place);
	free(s->view);
	swc_topo_free(&s->topo);
}

static inline void alloc_set(struct set *s, uint32_t nranks)
{
	s->nranks = nranks;
	s->plan = calloc(nranks, sizeof(*s->plan));
	s->bytes = calloc(nranks, sizeof(*s->bytes));
	s->in_place = calloc(nranks, sizeof(*s->in_place));
	s->view = calloc(nranks, sizeof(*s->view));
	if (!s->plan || !s->bytes || !s->in_place || !s->view)
		abort();
}

/*
 * Build the plans of all ranks, on the topology of a text; NULL: as @args say. All ranks must
 * succeed, or all must fail with the same error, which is returned. Free with free_set() in either
 * case.
 */
static inline int build_set(struct set *s, const char *topo, struct swc_plan_args args,
			    enum placing placing)
{
	int ret = 0, first = 0;

	memset(s, 0, sizeof(*s));
	if (topo) {
		ret = swc_topo_parse(&s->topo, topo, s->why, sizeof(s->why));
		if (ret)
			return ret;
		args.topo = &s->topo;
		args.nranks = s->topo.nranks;
	}
	s->args = args;
	s->placing = placing;
	alloc_set(s, args.nranks);
	for (uint32_t r = 0; r < s->nranks; r++) {
		struct swc_plan_args a = args;

		s->in_place[r] = placing == IN_PLACE || (placing == MIXED && r % 3 != 1);
		a.rank = r;
		a.in_place = s->in_place[r];
		*s->why = 0;
		ret = swc_plan_build(&a, &s->plan[r], &s->bytes[r], s->why, sizeof(s->why));
		first = r ? first : ret;
		if (ret != first) {
			printf("# rank 0 builds with %d, rank %u with %d\n", first, r, ret);
			return -EINVAL;
		}
		if (!ret)
			ret = swc_plan_check(s->plan[r], s->bytes[r], &s->view[r], s->why,
					     sizeof(s->why));
		if (ret && ret != first)
			return ret;
	}
	return ret;
}

static inline int verify_set(struct set *s)
{
	struct swc_verdict v;
	int ret = swc_plan_verify((const void *const *)s->plan, s->bytes, s->in_place, s->nranks,
				  s->args.topo, &v);

	if (ret)
		snprintf(s->why, sizeof(s->why), "rank %u: %s", v.rank,
			 ret == -EINVAL ? v.text : "no verdict");
	return ret;
}

/*
 * Verify in the placing that the plans were built for, then in the opposite one: plans for disjoint
 * buffers must be right in place unless they say otherwise, and plans for in place must be right
 * for disjoint buffers.
 */
static inline int verify_both(struct set *s)
{
	int ret = verify_set(s);

	for (uint32_t r = 0; r < s->nranks; r++)
		s->in_place[r] = !s->in_place[r] &&
				 !(s->view[r].hdr->flags & SWC_PLAN_NOT_IN_PLACE);
	return ret ? ret : verify_set(s);
}

/* Print what a set was built from, and what is wrong with it. */
static inline void print_set(const struct set *s, int error)
{
	char topo[500] = "none";

	if (s->args.topo)
		swc_topo_format(s->args.topo, topo, sizeof(topo));
	printf("# %s:%d %s, %u ranks, root %u, placing %d, ports %u, channels %u, topology %s: %s (%d)\n",
	       swc_algo_name(s->args.algo), s->args.param, swc_coll_name(s->args.coll), s->nranks,
	       s->args.root, s->placing, s->args.ports, s->args.channels, topo, s->why, error);
}

/* Build, and verify in both placings. */
static inline int check_set(const char *topo, struct swc_plan_args args, enum placing placing)
{
	struct set s;
	int ret = build_set(&s, topo, args, placing);

	if (!ret)
		ret = verify_both(&s);
	if (ret)
		print_set(&s, ret);
	free_set(&s);
	return ret;
}

/* Arguments for an algorithm by its name, such as "swing-h:2". */
static inline struct swc_plan_args args_of(const char *algo, enum swc_coll coll, uint32_t ports)
{
	struct swc_plan_args a = { .coll = coll, .ports = ports };
	int n = swc_algo_parse(algo, &a.param);

	if (n < 0)
		abort();
	a.algo = (enum swc_algo)n;
	return a;
}

static inline struct swc_plan_header *header(const struct set *s, uint32_t r)
{
	return s->plan[r];
}

/* The tables of a plan that must be valid. */
static inline struct swc_plan_view view_of(const void *plan, size_t bytes)
{
	struct swc_plan_view v;
	char why[120];

	if (swc_plan_check(plan, bytes, &v, why, sizeof(why)))
		abort();
	return v;
}

#endif /* SWC_TESTS_PLANS_H */

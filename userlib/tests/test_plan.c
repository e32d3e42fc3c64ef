// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plans of every algorithm, collective, root and number of ranks, run on symbols; and proof that
 * the verifier sees what is wrong with plans that have been spoilt. TAP on stdout.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "plan_check.h"
#include "tap.h"

#define MAX_RANKS 32

struct set {
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

static int build_set(struct set *s, enum swc_algo algo, enum swc_coll coll, uint32_t nranks,
		     uint32_t root, enum placing placing, uint32_t channels)
{
	int ret = 0;

	memset(s, 0, sizeof(*s));
	s->nranks = nranks;
	for (uint32_t r = 0; !ret && r < nranks; r++) {
		struct swc_plan_args a = { .coll = coll,
					   .algo = algo,
					   .nranks = nranks,
					   .rank = r,
					   .root = root,
					   .nlocal = nranks,
					   .channels = channels };

		s->in_place[r] = placing == IN_PLACE || (placing == MIXED && r % 3 != 1);
		a.in_place = s->in_place[r];
		ret = swc_plan_build(&a, &s->plan[r], &s->bytes[r]);
	}
	return ret;
}

static void free_set(struct set *s)
{
	for (uint32_t r = 0; r < s->nranks; r++)
		free(s->plan[r]);
}

static int verify_set(struct set *s, struct swc_verdict *v)
{
	return swc_plan_verify((const void *const *)s->plan, s->bytes, s->in_place, s->nranks, v);
}

/*
 * Plans for disjoint buffers must hold elsewhere too if they do not say otherwise, and in-place
 * ones always.
 */
static void move_buffers(struct set *s)
{
	for (uint32_t r = 0; r < s->nranks; r++) {
		const struct swc_plan_header *h = s->plan[r];

		s->in_place[r] = !s->in_place[r] && !(h->flags & SWC_PLAN_NOT_IN_PLACE);
	}
}

static int check_one(enum swc_algo algo, enum swc_coll coll, uint32_t nranks, uint32_t root,
		     enum placing placing, uint32_t channels)
{
	struct swc_verdict v;
	struct set s;
	int ret = build_set(&s, algo, coll, nranks, root, placing, channels);

	if (!ret)
		ret = verify_set(&s, &v);
	if (!ret) {
		move_buffers(&s);
		ret = verify_set(&s, &v);
	}
	if (ret)
		printf("# %s collective %d nranks %u root %u placing %d: rank %u: %s (%d)\n",
		       swc_algo_name(algo), coll, nranks, root, placing, v.rank,
		       ret == -EINVAL ? v.text : "", ret);
	free_set(&s);
	return ret;
}

static bool offers(enum swc_algo algo, enum swc_coll coll)
{
	if (coll == SWC_ALLTOALL)
		return false;
	if (algo == SWC_ALGO_RECDOUB)
		return coll == SWC_ALLREDUCE;
	if (algo == SWC_ALGO_RING)
		return coll <= SWC_ALLGATHER;
	return true;
}

static int check_algo(enum swc_algo algo, enum swc_coll coll)
{
	int bad = 0;

	for (uint32_t nranks = 1; nranks <= MAX_RANKS; nranks += nranks == 17 ? 15 : 1) {
		uint32_t roots = swc_coll_has_root(coll) ? nranks : 1;

		for (uint32_t root = 0; root < roots; root++)
			for (int placing = OUT_OF_PLACE; placing <= MIXED; placing++)
				bad |= check_one(algo, coll, nranks, root, placing, 0);
		bad |= check_one(algo, coll, nranks, 0, OUT_OF_PLACE, 3);
	}
	return bad;
}

static void test_algos(void)
{
	static const char *const colls[] = { "allreduce", "reduce_scatter", "allgather",
					     "broadcast", "reduce",	    "barrier",
					     "alltoall" };
	char name[80];

	for (int algo = 0; algo < SWC_ALGO_NR; algo++) {
		for (int coll = 0; coll < SWC_COLL_NR; coll++) {
			struct set s;

			snprintf(name, sizeof(name), "%s %s", swc_algo_name((unsigned int)algo),
				 colls[coll]);
			if (offers(algo, coll)) {
				ok(!check_algo(algo, coll), name);
				continue;
			}
			strcat(name, " is refused");
			ok(build_set(&s, algo, coll, 4, 0, OUT_OF_PLACE, 0) == -EOPNOTSUPP, name);
			free_set(&s);
		}
	}
}

/* ---- the verifier must see each of these ---- */

static struct swc_plan_xfer *xfer(struct set *s, uint32_t r, uint32_t i)
{
	struct swc_plan_view v;
	char why[100];

	if (swc_plan_check(s->plan[r], s->bytes[r], &v, why, sizeof(why)))
		abort();
	return (struct swc_plan_xfer *)&v.xfers[i];
}

static struct swc_plan_step *step(struct set *s, uint32_t r, uint32_t i)
{
	struct swc_plan_view v;
	char why[100];

	if (swc_plan_check(s->plan[r], s->bytes[r], &v, why, sizeof(why)))
		abort();
	return (struct swc_plan_step *)&v.steps[i];
}

static void no_final(struct set *s)
{
	for (uint32_t i = 0; i < ((struct swc_plan_header *)s->plan[1])->nxfers; i++)
		xfer(s, 1, i)->flags &= (uint8_t)~SWC_XFER_FINAL;
}

static void two_finals(struct set *s)
{
	xfer(s, 2, ((struct swc_plan_header *)s->plan[2])->nxfers - 1)->flags |= SWC_XFER_FINAL;
}

static void wrong_block(struct set *s)
{
	xfer(s, 0, 0)->first_block ^= 1;
}

static void add_twice(struct set *s)
{
	xfer(s, 1, 0)->rank = 2;
}

static void no_partner(struct set *s)
{
	xfer(s, 0, 0)->rank = 2;
}

static void other_order(struct set *s)
{
	struct swc_plan_xfer t = *xfer(s, 1, 0);

	*xfer(s, 1, 0) = *xfer(s, 1, 3);
	*xfer(s, 1, 3) = t;
}

/* In place, a swap that writes what the partner reads. */
static void pretend_in_place(struct set *s)
{
	for (uint32_t r = 0; r < s->nranks; r++) {
		((struct swc_plan_header *)s->plan[r])->flags = 0;
		s->in_place[r] = true;
	}
}

static void same_buffer(struct set *s)
{
	xfer(s, 0, 2)->buf = SWC_BUF_RECV;
	xfer(s, 0, 3)->operand = SWC_BUF_RECV;
}

static void other_family(struct set *s)
{
	((struct swc_plan_header *)s->plan[3])->family++;
}

/*
 * The result is copied to RECV before the others have finished reading it: SYNC and LOCAL trade
 * places.
 */
static void sync_last(struct set *s)
{
	struct swc_plan_step *second = step(s, 1, 1), *third = second + 1, sync = *second;

	*second = *third;
	*third = sync;
	third->first_xfer = ((struct swc_plan_header *)s->plan[1])->nxfers;
}

static void no_sync(struct set *s)
{
	for (uint32_t r = 0; r < s->nranks; r++) {
		struct swc_plan_header *h = s->plan[r];

		((struct swc_plan_channel *)(h + 1))->nsteps = 0;
		h->nsteps = 0;
		h->total_bytes -= sizeof(struct swc_plan_step);
		s->bytes[r] = h->total_bytes;
	}
}

static const struct {
	const char *name;
	enum swc_algo algo;
	enum swc_coll coll;
	enum placing placing;
	void (*spoil)(struct set *s);
	const char *text;
} faults[] = {
	{ "a final mark is missing", SWC_ALGO_DIRECT1, SWC_ALLREDUCE, OUT_OF_PLACE, no_final,
	  "final marks" },
	{ "a second final mark", SWC_ALGO_RING, SWC_ALLREDUCE, OUT_OF_PLACE, two_finals,
	  "final marks" },
	{ "a wrong block is sent", SWC_ALGO_RING, SWC_ALLREDUCE, OUT_OF_PLACE, wrong_block,
	  "another size" },
	{ "a contribution is missing", SWC_ALGO_DIRECT2, SWC_ALLREDUCE, OUT_OF_PLACE, add_twice,
	  "contribution" },
	{ "a message nobody waits for", SWC_ALGO_RECDOUB, SWC_ALLREDUCE, OUT_OF_PLACE, no_partner,
	  "waits for ever" },
	{ "another order of reduction", SWC_ALGO_DIRECT1, SWC_ALLREDUCE, OUT_OF_PLACE, other_order,
	  "another order" },
	{ "one shot in place without scratch", SWC_ALGO_DIRECT1, SWC_ALLREDUCE, OUT_OF_PLACE,
	  pretend_in_place, "may still be" },
	{ "a swap that writes what it sends", SWC_ALGO_RECDOUB, SWC_ALLREDUCE, IN_PLACE,
	  same_buffer, "writes what" },
	{ "plans of two families", SWC_ALGO_DIRECT2, SWC_ALLREDUCE, OUT_OF_PLACE, other_family,
	  "family" },
	{ "a result written before the barrier", SWC_ALGO_DIRECT1, SWC_ALLREDUCE, IN_PLACE,
	  sync_last, "may still be" },
	{ "a barrier without a barrier", SWC_ALGO_DIRECT2, SWC_BARRIER, OUT_OF_PLACE, no_sync,
	  "leaves the barrier" },
};

static void test_faults(void)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct swc_verdict v = { 0 };
		struct set s;
		int ret = build_set(&s, faults[i].algo, faults[i].coll, 4, 0, faults[i].placing, 0);
		char name[100];

		if (!ret) {
			faults[i].spoil(&s);
			ret = verify_set(&s, &v);
		}
		snprintf(name, sizeof(name), "verifier sees: %s", faults[i].name);
		ok(ret == -EINVAL && strstr(v.text, faults[i].text), name);
		if (ret != -EINVAL || !strstr(v.text, faults[i].text))
			printf("# %d, \"%s\"\n", ret, v.text);
		free_set(&s);
	}
}

static void test_arguments(void)
{
	struct swc_plan_args a = { .nranks = 300, .nlocal = 300, .algo = SWC_ALGO_DIRECT2 };
	size_t bytes;
	void *plan;

	ok(swc_plan_build(&a, &plan, &bytes) == -EOPNOTSUPP, "direct2 has a limit of ranks");
	a.nranks = a.nlocal = 4;
	a.nlocal = 2;
	ok(swc_plan_build(&a, &plan, &bytes) == -EOPNOTSUPP, "direct2 stays on one node");
	a.nlocal = 4;
	a.rank = 4;
	ok(swc_plan_build(&a, &plan, &bytes) == -EINVAL, "rank out of range");
	a.rank = 0;
	a.root = 1;
	ok(swc_plan_build(&a, &plan, &bytes) == -EINVAL, "root where there is none");
	ok(swc_algo_parse("ring") == SWC_ALGO_RING && swc_algo_parse("rin") == -EINVAL &&
		   !swc_algo_name(SWC_ALGO_NR),
	   "names of algorithms");
}

static void test_large(void)
{
	struct swc_plan_args a = {
		.nranks = 256, .nlocal = 256, .algo = SWC_ALGO_DIRECT2, .rank = 255
	};
	struct swc_plan_view v;
	size_t bytes = 0;
	void *plan = NULL;
	char why[100];
	int ret = swc_plan_build(&a, &plan, &bytes);

	ok(!ret && !swc_plan_check(plan, bytes, &v, why, sizeof(why)), "direct2 for 256 ranks");
	free(plan);
	plan = NULL;
	a = (struct swc_plan_args){ .nranks = 4096, .nlocal = 1, .rank = 9, .algo = SWC_ALGO_RING };
	ret = swc_plan_build(&a, &plan, &bytes);
	ok(!ret && !swc_plan_check(plan, bytes, &v, why, sizeof(why)), "ring for 4096 ranks");
	free(plan);
}

int main(void)
{
	printf("TAP version 13\n");
	test_algos();
	test_faults();
	test_arguments();
	test_large();
	return done();
}

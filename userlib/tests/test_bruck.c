// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bruck's all-to-all: every number of members and radix, proved on all ranks; one plan in full; how many
 * steps, messages and copies it takes. SWC_TEST_SEED repeats the random ones. SWC_TEST_SHORT=1: a tenth of
 * these, and one of three placings. TAP on stdout.
 */
#include "kmod/core/plan_write.h"
#include "plan/model/bruck_cost.h"
#include "plan/select/choose.h"
#include "plan/without_copies.h"
#include "plans.h"
#include "random.h"
#include "tap.h"

#define RANDOM 200

static struct swc_plan_args bruck(int32_t radix)
{
	return (struct swc_plan_args){ .coll = SWC_ALLTOALL,
				       .algo = SWC_ALGO_BRUCK,
				       .param = radix };
}

static void test_numbers(void)
{
	int bad = 0;
	char shape[40];

	for (uint32_t p = 2; p <= 64; p++)
		for (int32_t radix = 2; radix <= 8; radix++) {
			snprintf(shape, sizeof(shape), "switch:%u", p);
			for (int placing = OUT_OF_PLACE; placing <= MIXED; placing++)
				if ((p <= 20 && !short_form()) ||
				    (p + (uint32_t)radix) % 3 == (uint32_t)placing)
					bad |= check_set(shape, bruck(radix),
							 (enum placing)placing);
		}
	ok(!bad, "2 to 64 members, radix 2 to 8");
}

static void test_random(void)
{
	int bad = 0;
	char shape[60];

	for (uint32_t i = 0; i < rounds_of(RANDOM); i++) {
		uint32_t kind = rnd(4);

		if (kind == 0)
			snprintf(shape, sizeof(shape), "switch:%u", 2 + rnd(150));
		else if (kind == 1)
			snprintf(shape, sizeof(shape), "switch:%u@%urails", 2 + rnd(40),
				 2 + rnd(3));
		else if (kind == 2)
			snprintf(shape, sizeof(shape), "switch:%u*%u", 2 + rnd(12), 2 + rnd(4));
		else
			snprintf(shape, sizeof(shape), "%s:%ux%u", rnd(2) ? "torus" : "mesh",
				 1 + rnd(9), 2 + rnd(9));
		bad |= check_set(shape, bruck((int32_t)(2 + rnd(7))), (enum placing)rnd(PLACINGS));
	}
	ok(!bad, "random networks: switches, rails, nodes with several ranks, tori and meshes");
}

struct counts {
	uint32_t steps, messages, copy_steps, copies;
};

/* Of a rank's plan; false if a message after the first step has several ranges. */
static bool count(const struct swc_plan_view *v, struct counts *c)
{
	bool whole = true;

	*c = (struct counts){ 0 };
	for (uint32_t i = 0; i < v->hdr->nsteps; i++) {
		const struct swc_plan_step *s = &v->steps[i];

		if (s->kind != SWC_STEP_NET) {
			whole &= s->kind == SWC_STEP_COPY;
			c->copy_steps++;
			c->copies += s->nsend;
			continue;
		}
		for (uint32_t j = 1; j < s->nsend; j++)
			whole &= !c->steps || v->xfers[s->first_xfer + j].rank !=
						      v->xfers[s->first_xfer + j - 1].rank;
		c->messages += s->nsend;
		c->steps++;
	}
	return whole;
}

static void test_counts(void)
{
	static const struct {
		uint32_t p;
		int32_t radix;
		uint32_t steps, messages;
	} table[] = {
		{ 1024, 2, 10, 10 }, { 1024, 4, 5, 15 }, { 1024, 8, 4, 22 }, { 1000, 4, 5, 15 },
		{ 729, 3, 6, 12 },   { 64, 8, 2, 14 },	 { 65, 8, 3, 15 },
	};
	char name[100];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct swc_topo t = swc_topo_flat(table[i].p);
		struct swc_plan_args a = bruck(table[i].radix);
		struct counts c = { 0 };
		size_t bytes;
		void *plan;
		bool good;

		a.topo = &t;
		a.nranks = t.nranks;
		a.rank = 0;
		good = !swc_plan_build(&a, &plan, &bytes, NULL, 0);
		if (good) {
			struct swc_plan_view v = view_of(plan, bytes);

			good = count(&v, &c) && c.steps == table[i].steps &&
			       c.messages == table[i].messages && c.copy_steps == c.steps + 1 &&
			       c.copies < 3 * t.nranks;
			free(plan);
		}
		snprintf(name, sizeof(name),
			 "%u members, radix %d: %u steps, %u messages, %u copies in %u steps",
			 table[i].p, table[i].radix, c.steps, c.messages, c.copies, c.copy_steps);
		ok(good, name);
	}
}

/* A message that goes past the last member has two ranges in SEND; then there is one for each digit. */
static void test_whole(void)
{
	bool good = true;

	for (uint32_t p = 2; p < 100; p += 7)
		for (int32_t radix = 2; radix <= 8; radix += 3) {
			struct swc_topo t = swc_topo_flat(p);
			struct swc_plan_args a = bruck(radix);
			struct counts least = { 0 };

			a.topo = &t;
			a.nranks = p;
			for (a.rank = 0; good && a.rank < p; a.rank++) {
				struct swc_plan_view v;
				struct counts c;
				size_t bytes;
				void *plan;

				good = !swc_plan_build(&a, &plan, &bytes, NULL, 0);
				if (!good)
					break;
				v = view_of(plan, bytes);
				good = count(&v, &c) && !(v.hdr->flags & SWC_PLAN_NOT_IN_PLACE);
				least = a.rank ? least : c;
				good &= c.steps == least.steps &&
					c.messages + c.copies <= least.messages + least.copies + 1;
				free(plan);
			}
		}
	ok(good, "all members do the same, but for one range that goes on at member 0");
}

/* Of more members than a step can have copies: the last step is two. */
static void test_many_copies(void)
{
	struct swc_topo t = swc_topo_flat(SWC_MAX_COPIES + 10);
	struct swc_plan_args a = bruck(8);
	const struct swc_plan_step *s;
	struct swc_plan_view v;
	struct swc_cost cost;
	bool good = false;
	size_t bytes;
	void *plan;

	a.topo = &t;
	a.nranks = t.nranks;
	a.rank = 7;
	if (!swc_plan_build(&a, &plan, &bytes, NULL, 0)) {
		v = view_of(plan, bytes);
		s = &v.steps[v.hdr->nsteps - 2];
		good = s[0].kind == SWC_STEP_COPY && s[0].nsend == SWC_MAX_COPIES &&
		       s[1].kind == SWC_STEP_COPY && s[1].nrecv == 10;
		good &= !swc_bruck_pieces(&a, &cost) &&
			cost.copy_steps + cost.eager.steps == v.hdr->nsteps;
		free(plan);
	}
	ok(good, "more copies than one step can have");
}

/* The same in local steps, one copy each. */
static bool is_right_without(uint32_t p, int32_t radix)
{
	struct swc_topo t = swc_topo_flat(p);
	struct swc_verdict verdict;
	void *plan[64] = { NULL };
	size_t bytes[64];
	bool good = true;
	char why[200] = "";

	for (uint32_t r = 0; good && r < p; r++) {
		struct swc_plan_args a = bruck(radix);
		struct swc_plan_view before, after;
		uint32_t copies = 0, nsteps, nxfers;

		a.topo = &t;
		a.nranks = p;
		a.rank = r;
		good = !swc_plan_build(&a, &plan[r], &bytes[r], NULL, 0);
		if (!good)
			break;
		before = view_of(plan[r], bytes[r]);
		nsteps = before.hdr->nsteps;
		nxfers = before.hdr->nxfers;
		for (uint32_t i = 0; i < nsteps; i++)
			copies += before.steps[i].kind == SWC_STEP_COPY ? before.steps[i].nsend - 1u
									: 0;
		good = !swc_plan_without_copies(&plan[r], &bytes[r], why, sizeof(why));
		after = view_of(plan[r], bytes[r]);
		good &= after.hdr->nsteps == nsteps + copies && after.hdr->nxfers == nxfers;
		for (uint32_t i = 0; i < after.hdr->nsteps; i++)
			good &= after.steps[i].kind != SWC_STEP_COPY;
	}
	good = good && !swc_plan_verify((const void *const *)plan, bytes, NULL, p, NULL, &verdict);
	if (!good)
		printf("# %u members, radix %d: %s\n", p, radix, why);
	for (uint32_t r = 0; r < p; r++)
		free(plan[r]);
	return good;
}

static void test_without_copies(void)
{
	struct swc_topo t = swc_topo_flat(70000);
	struct swc_plan_args a = bruck(2);
	char why[200] = "";
	bool good = true;
	size_t bytes;
	void *plan;

	for (uint32_t p = 2; p <= 64; p += 1 + p / 4)
		for (int32_t radix = 2; radix <= 8; radix += 2)
			good &= is_right_without(p, radix);
	ok(good, "the same without copy steps, for modules that have none");
	a.topo = &t;
	a.nranks = t.nranks;
	good = !swc_plan_build(&a, &plan, &bytes, NULL, 0);
	good = good && swc_plan_without_copies(&plan, &bytes, why, sizeof(why)) == -EOPNOTSUPP &&
	       strstr(why, "no copy steps");
	ok(good, "a plan that is too long without copy steps is refused");
	if (!good)
		printf("# %s\n", why);
	free(plan);
}

/* One rank copies its two blocks to these places. */
static struct swc_plan_view two_copies(void *plan, size_t *bytes, const uint32_t to[2], bool twice)
{
	struct swc_plan_channel channel;
	struct swc_plan_step step[2];
	struct swc_plan_xfer xfer[8];
	struct swc_plan_writer w = { .channels = &channel,
				     .steps = step,
				     .xfers = xfer,
				     .max_channels = 1,
				     .max_steps = 2,
				     .max_xfers = 8 };

	swc_plan_write_begin(&w, SWC_ALLTOALL, 1, 0, 0);
	swc_plan_write_blocks(&w, 2);
	strcpy(w.hdr.name, "two");
	swc_plan_write_channel(&w);
	swc_plan_write_step(&w, SWC_STEP_COPY);
	for (uint32_t i = 0; i < 2; i++)
		swc_plan_write_send(&w, &(struct swc_plan_xfer){ .first_block = twice ? 0 : i,
								 .nblocks = 1 });
	for (uint32_t i = 0; i < 2; i++)
		swc_plan_write_recv(&w, &(struct swc_plan_xfer){ .first_block = to[i],
								 .nblocks = 1,
								 .buf = SWC_BUF_RECV });
	*bytes = swc_plan_write_bytes(&w);
	if (swc_plan_write_pack(&w, plan, *bytes))
		abort();
	return view_of(plan, *bytes);
}

static bool is_refused(const uint32_t to[2], bool twice, const bool *in_place, const char *text)
{
	const void *plans[1];
	char plan[400], why[200] = "";
	struct swc_verdict verdict;
	size_t bytes;
	int ret, keeps;

	plans[0] = plan;
	two_copies(plan, &bytes, to, twice);
	ret = swc_plan_verify(plans, &bytes, in_place, 1, NULL, &verdict);
	keeps = swc_plan_keeps_places(plans, &bytes, 1, why, sizeof(why));
	if (ret || keeps)
		printf("# \"%s\", \"%s\"\n", verdict.text, why);
	return text ? ret == -EINVAL && strstr(verdict.text, text) && keeps == -EINVAL
		    : !ret && !keeps;
}

static void test_checker(void)
{
	const bool yes = true;

	ok(is_refused((uint32_t[]){ 0, 1 }, false, NULL, NULL) &&
		   is_refused((uint32_t[]){ 0, 1 }, false, &yes, NULL),
	   "copies to the same places are right, in place, too");
	ok(is_refused((uint32_t[]){ 1, 0 }, false, NULL, "different size") &&
		   is_refused((uint32_t[]){ 0, 1 }, true, NULL, "different size"),
	   "blocks of a shard may differ in size: one is no copy of the other");
}

/* A set with one thing changed is wrong. */
static bool is_noticed(void (*change)(struct swc_plan_xfer *x, uint32_t n))
{
	struct set s;
	struct swc_verdict verdict;
	const struct swc_plan_step *step;
	bool good = !build_set(&s, "switch:5", bruck(2), OUT_OF_PLACE);

	step = &s.view[3].steps[s.view[3].hdr->nsteps - 3];
	good = good && step->kind == SWC_STEP_COPY && step->nsend == 4;
	if (good)
		change((struct swc_plan_xfer *)&s.view[3].xfers[step->first_xfer], step->nsend);
	good = good && swc_plan_verify((const void *const *)s.plan, s.bytes, s.in_place, 5, NULL,
				       &verdict) == -EINVAL;
	printf("# %s\n", good ? verdict.text : s.why);
	free_set(&s);
	return good;
}

static void swap(struct swc_plan_xfer *a, struct swc_plan_xfer *b)
{
	struct swc_plan_xfer t = *a;

	*a = *b;
	*b = t;
}

static void swap_places(struct swc_plan_xfer *x, uint32_t n)
{
	swap(&x[n], &x[n + 1]);
}

/* The second copy overwrites what the first one reads. */
static void swap_order(struct swc_plan_xfer *x, uint32_t n)
{
	swap(&x[0], &x[1]);
	swap(&x[n], &x[n + 1]);
}

static void test_damage(void)
{
	ok(is_noticed(swap_places), "another place for a copy is noticed");
	ok(is_noticed(swap_order), "so is another order of copies of a step");
}

/* Has plan @rank this text? */
static bool is_text(uint32_t p, uint32_t rank, int32_t radix, const char *expected)
{
	struct swc_topo t = swc_topo_flat(p);
	struct swc_plan_args a = bruck(radix);
	char text[2000];
	struct swc_plan_view v;
	size_t bytes, n = 0;
	void *plan;

	a.topo = &t;
	a.nranks = p;
	a.rank = rank;
	if (swc_plan_build(&a, &plan, &bytes, NULL, 0))
		return false;
	v = view_of(plan, bytes);
	for (uint32_t i = 0; i < v.hdr->nsteps; i++) {
		const struct swc_plan_step *s = &v.steps[i];

		n += (size_t)sprintf(text + n, "%s", s->kind == SWC_STEP_NET ? "net" : "copy");
		for (uint32_t j = 0; j < (uint32_t)s->nsend + s->nrecv; j++) {
			const struct swc_plan_xfer *x = &v.xfers[s->first_xfer + j];

			n += (size_t)sprintf(text + n, " %s%u:%c%u+%u%s", j < s->nsend ? ">" : "<",
					     x->rank, "SRX"[x->buf], x -> first_block, x -> nblocks,
					     x -> flags &SWC_XFER_FINAL ? "!" : "");
		}
		n += (size_t)sprintf(text + n, "\n");
	}
	free(plan);
	if (strcmp(text, expected))
		printf("# member %u of %u:\n%s", rank, p, text);
	return !strcmp(text, expected);
}

/*
 * Of 5 members, member 3: SEND, RECV and X, the scratch memory. Distances 0 1 2 3 | 4, then 0 1 4 | 2 3, then
 * 0 4 2 | 1 3.
 */
static void test_text(void)
{
	ok(is_text(5, 3, 2,
		   "copy >3:S3+2 >3:S0+2 <3:X0+2 <3:X2+2\n"
		   "net >2:S2+1 <4:X4+1\n"
		   "copy >3:X2+2 >3:X4+1 <3:R3+2 <3:X2+1\n"
		   "net >0:R3+2 <1:X3+2\n"
		   "copy >3:X1+1 >3:X2+1 >3:X3+1 >3:X4+1 <3:R3+1 <3:X1+1 <3:X2+1 <3:R4+1\n"
		   "net >4:R3+2 <2:X3+2\n"
		   "copy >3:X0+1 >3:X1+1 >3:X2+1 >3:X3+1 >3:X4+1"
		   " <3:R3+1! <3:R4+1! <3:R1+1! <3:R2+1! <3:R0+1!\n"),
	   "5 members, radix 2, member 3");
	ok(is_text(4, 2, 4,
		   "copy >2:S2+1 <2:X0+1\n"
		   "net >3:S3+1 >0:S0+1 >1:S1+1 <1:X1+1 <0:X2+1 <3:X3+1\n"
		   "copy >2:X0+1 >2:X1+1 >2:X2+1 >2:X3+1 <2:R2+1! <2:R1+1! <2:R0+1! <2:R3+1!\n"),
	   "4 members, radix 4, member 2");
}

static bool chooses(const char *topo, uint64_t bytes, enum swc_algo algo)
{
	struct swc_choices c;
	struct swc_choice got;
	struct swc_topo t;
	bool good;

	if (swc_topo_parse(&t, topo, NULL, 0))
		abort();
	swc_choices_init(&c, &t, false);
	got = swc_choices_take(&c, SWC_ALLTOALL, SWC_F32, SWC_SUM, bytes, 1);
	good = got.algo == algo;
	if (!good)
		printf("# %llu bytes on %s: %s\n", (unsigned long long)bytes, topo,
		       swc_algo_name(got.algo));
	swc_choices_free(&c);
	swc_topo_free(&t);
	return good;
}

static void test_choice(void)
{
	ok(chooses("switch:64", 1024, SWC_ALGO_BRUCK) &&
		   chooses("switch:1024", 65536, SWC_ALGO_BRUCK) &&
		   chooses("switch:1024@4rails", 65536, SWC_ALGO_BRUCK) &&
		   chooses("torus:16x16*4", 65536, SWC_ALGO_BRUCK) &&
		   chooses("mesh:9x7", 4096, SWC_ALGO_BRUCK) &&
		   chooses("switch:65536", 1 << 20, SWC_ALGO_BRUCK),
	   "auto takes it for small shards");
	ok(chooses("switch:64", 16 << 20, SWC_ALGO_ROTATE) &&
		   chooses("torus:8x8", 16 << 20, SWC_ALGO_BINE) &&
		   chooses("switch:3", 1024, SWC_ALGO_ROTATE) &&
		   chooses("switch:1*16", 1024, SWC_ALGO_DIRECT1) &&
		   chooses("switch:1048576", 1 << 20, SWC_ALGO_ROTATE),
	   "not for large ones, few members, one node, nor where its plans would be too long");
}

static void test_refusals(void)
{
	struct swc_topo t = swc_topo_flat(1u << 18);
	struct swc_plan_args a = bruck(1);
	char why[200] = "";
	size_t bytes;
	void *plan;
	bool good;

	a.nranks = 4;
	good = swc_plan_build(&a, &plan, &bytes, why, sizeof(why)) == -EOPNOTSUPP &&
	       strstr(why, "radix");
	a.param = 9;
	good &= swc_plan_build(&a, &plan, &bytes, why, sizeof(why)) == -EINVAL;
	a.param = SWC_PARAM_DEFAULT;
	a.topo = &t;
	a.nranks = t.nranks;
	good &= swc_plan_build(&a, &plan, &bytes, why, sizeof(why)) == -EOPNOTSUPP &&
		strstr(why, "bytes");
	ok(good, "a radix of 1 or 9, and plans that are too long, are refused");
}

int main(void)
{
	printf("TAP version 13\n");
	seed_rnd();
	test_numbers();
	test_random();
	test_text();
	test_counts();
	test_many_copies();
	test_whole();
	test_without_copies();
	test_checker();
	test_damage();
	test_choice();
	test_refusals();
	return done();
}

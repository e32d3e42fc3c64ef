// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random damage to plans, as text, XML or tables, ends in an error or in plans that run, never in
 * an invalid access. SWC_TEST_FUZZ_SECONDS and SWC_TEST_SEED set the time and the seed.
 * SWC_TEST_SHORT=1: half of the time, if it is not set. TAP on stdout.
 */
#include <time.h>

#include "mscclpp_programs.h"
#include "msccl_programs.h"
#include "random.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct outcome {
	unsigned long refused, wrong, right;
};

/* Accepted plans must run to a verdict. */
static void judge(const struct swc_plan_set *set, struct outcome *n)
{
	struct swc_verdict v;
	int ret = verify(set, rnd(2), NULL, &v);

	if (ret && (ret != -EINVAL || !*v.text || v.rank >= set->nranks))
		abort();
	++*(ret ? &n->wrong : &n->right);
}

/* Build small plans, so that many can be tried, which together use all features. */
static void fuzz_subject(struct swc_plan_set *set)
{
	static const struct {
		enum swc_algo algo;
		enum swc_coll coll;
	} subjects[] = {
		{ SWC_ALGO_RING, SWC_ALLREDUCE },    { SWC_ALGO_RING, SWC_REDUCE_SCATTER },
		{ SWC_ALGO_RING, SWC_ALLGATHER },    { SWC_ALGO_RECDOUB, SWC_ALLREDUCE },
		{ SWC_ALGO_DIRECT1, SWC_ALLREDUCE }, { SWC_ALGO_DIRECT2, SWC_ALLREDUCE },
		{ SWC_ALGO_DIRECT2, SWC_BROADCAST }, { SWC_ALGO_DIRECT1, SWC_REDUCE },
		{ SWC_ALGO_DIRECT2, SWC_BARRIER },   { SWC_ALGO_BRUCK, SWC_ALLTOALL },
	};
	uint32_t i = rnd(sizeof(subjects) / sizeof(subjects[0]));

	if (build(set, subjects[i].algo, subjects[i].coll, NULL, 2 + rnd(4), 1 + rnd(2)))
		abort();
}

static void damage_bytes(char *at, size_t bytes)
{
	static const uint32_t odd[] = { 0,	    1,		2,	   3,
					0xffff,	    0x10000,	1 << 24,   0x7fffffff,
					0x80000000, 0xfffffffe, 0xffffffff };
	size_t i = rnd((uint32_t)bytes);

	switch (rnd(4)) {
	case 0:
		at[i] = (char)rnd(256);
		break;
	case 1:
		at[i] ^= (char)(1 << rnd(8));
		break;
	case 2:
		at[i] = (char)(at[i] + (rnd(2) ? 1 : -1));
		break;
	default:
		memcpy(at + (i & ~3ul), &odd[rnd(sizeof(odd) / sizeof(odd[0]))], 4);
		break;
	}
}

/* Set a field of a transfer to another plausible value. */
static void damage_plan(void *plan, size_t bytes, uint32_t nranks)
{
	struct swc_plan_view v;
	struct swc_plan_xfer *x, t;
	char why[100];

	if (swc_plan_check(plan, bytes, &v, why, sizeof(why)) || !v.hdr->nxfers || !rnd(5)) {
		damage_bytes(plan, bytes);
		return;
	}
	x = (struct swc_plan_xfer *)&v.xfers[rnd(v.hdr->nxfers)];
	switch (rnd(8)) {
	case 0:
		x->rank = rnd(nranks);
		break;
	case 1:
		x->first_block = rnd(v.nblocks);
		break;
	case 2:
		x->nblocks = 1 + rnd(v.nblocks);
		break;
	case 3:
		x->buf = (uint8_t)rnd(SWC_BUF_NR);
		break;
	case 4:
		x->flags ^= (uint8_t)(1 + rnd(SWC_XFER_FLAGS_ALL));
		break;
	case 5:
		x->operand = (uint8_t)rnd(SWC_BUF_NR);
		break;
	case 6:
		x->path ^= (uint8_t)(1 << rnd(8));
		break;
	default:
		t = *x;
		*x = v.xfers[rnd(v.hdr->nxfers)];
		((struct swc_plan_xfer *)v.xfers)[rnd(v.hdr->nxfers)] = t;
		break;
	}
}

static void fuzz_binary(struct outcome *n)
{
	struct swc_plan_set set;

	fuzz_subject(&set);
	for (uint32_t i = 1 + rnd(3); i; i--) {
		uint32_t r = rnd(set.nranks);

		damage_plan(set.plan[r], set.bytes[r], set.nranks);
	}
	judge(&set, n);
	swc_plan_set_free(&set);
}

/* Change bytes, words or lines of a text, in a copy. */
static char *damage_text(const char *from, size_t *bytes)
{
	static const char *const words[] = { "0",      "1",    "2+1",	 "4294967295", "1000000000",
					     "final",  "send", "end",	 "channel",    "sync",
					     "reduce", "-1",   "#",	 "\n",	       "\"",
					     "/>",     "<tb>", "stored", "path",       "copy" };
	size_t n = *bytes, at = rnd((uint32_t)n), end = at;
	const char *with = words[rnd(sizeof(words) / sizeof(words[0]))];
	char *damaged = NULL;
	FILE *f = open_memstream(&damaged, bytes);

	if (!f)
		abort();
	switch (rnd(4)) {
	case 0: /* a byte */
		fwrite(from, 1, at, f);
		fputc((int)rnd(256), f);
		end = at + 1;
		break;
	case 1: /* replace a word */
		while (at && !strchr(" \n\"+", from[at - 1]))
			at--;
		while (end < n && !strchr(" \n\"+", from[end]))
			end++;
		fwrite(from, 1, at, f);
		fputs(with, f);
		break;
	case 2: /* drop or repeat a line */
		while (at && from[at - 1] != '\n')
			at--;
		while (end < n && from[end++] != '\n')
			;
		fwrite(from, 1, rnd(2) ? at : end, f);
		end = rnd(2) ? at : end;
		break;
	default: /* cut the rest */
		fwrite(from, 1, at, f);
		end = rnd(8) ? at : n;
		break;
	}
	fwrite(from + end, 1, n - end, f);
	fclose(f);
	return damaged;
}

static void fuzz_text(int (*parse)(const char *, size_t, struct swc_plan_set *, char *, size_t),
		      const char *from, size_t bytes, struct outcome *n)
{
	struct swc_plan_set set;
	char why[250] = "", *text = strdup(from), *exact;
	int ret;

	for (uint32_t i = 1 + rnd(2); i && bytes; i--) {
		char *next = damage_text(text, &bytes);

		free(text);
		text = next;
	}
	/* In memory of exactly its size, so that a look beyond its end is seen. */
	exact = malloc(bytes ? bytes : 1);
	if (!exact)
		abort();
	memcpy(exact, text, bytes);
	ret = parse(exact, bytes, &set, why, sizeof(why));
	if (ret && ((ret != -EINVAL && ret != -EOPNOTSUPP) || !*why || set.nranks))
		abort();
	if (ret)
		n->refused++;
	else
		judge(&set, n);
	swc_plan_set_free(&set);
	free(exact);
	free(text);
}

static void fuzz_file(struct outcome *n)
{
	struct swc_plan_set set;
	struct swc_text t;
	char why[250];

	fuzz_subject(&set);
	if (write_text(&set, &t, why, sizeof(why)))
		abort();
	fuzz_text(swc_plan_text_parse, t.at, t.used, n);
	free(t.at);
	swc_plan_set_free(&set);
}

static void fuzz_xml(struct outcome *n)
{
	struct xml x;

	switch (rnd(5)) {
	case 0:
		ring_allreduce(&x, 3, rnd(2));
		break;
	case 1:
		pairs_allreduce(&x, 3, 0);
		break;
	case 2:
		direct_alltoall(&x, 3, rnd(2));
		break;
	case 3:
		ring_reduce_scatter(&x, 3, rnd(2));
		break;
	default:
		doubling_allreduce(&x, 4);
		break;
	}
	fuzz_text(swc_msccl_parse, x.t.at, x.t.used, n);
	free(x.t.at);
}

static void fuzz_json(struct outcome *n)
{
	struct json j = { 0 };

	switch (rnd(3)) {
	case 0:
		puts_allgather(&j, 3);
		break;
	case 1:
		reads_allreduce(&j, 2 + rnd(2), 0);
		break;
	default:
		packets_allreduce(&j, 3);
		break;
	}
	fuzz_text(swc_mscclpp_parse, j.t.at, j.t.used, n);
	free(j.t.at);
}

static void test_fuzz(void)
{
	static const struct {
		const char *name;
		void (*run)(struct outcome *n);
	} kinds[] = { { "plans", fuzz_binary },
		      { "plan files", fuzz_file },
		      { "MSCCL files", fuzz_xml },
		      { "MSCCL++ files", fuzz_json } };
	const char *seconds = getenv("SWC_TEST_FUZZ_SECONDS");
	double each = (seconds ? strtod(seconds, NULL) : short_form() ? 6 : 12) / 4;
	char name[150];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct outcome n = { 0 };
		double end = now() + each;

		do
			for (int k = 0; k < 20; k++)
				kinds[i].run(&n);
		while (now() < end);
		snprintf(name, sizeof(name),
			 "damaged %s: %lu refused, %lu found wrong, %lu still correct",
			 kinds[i].name, n.refused, n.wrong, n.right);
		ok(n.refused + n.wrong > n.right, name);
	}
}

int main(void)
{
	printf("TAP version 13\n");
	seed_rnd();
	test_fuzz();
	return done();
}

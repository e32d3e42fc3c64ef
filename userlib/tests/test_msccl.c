// SPDX-License-Identifier: GPL-2.0-only
/* Programs in MSCCL's XML become correct plans, or are refused with the reason. TAP on stdout. */
#include "msccl_programs.h"

static int read_xml(const struct xml *x, struct swc_plan_set *set, char *why, size_t why_bytes)
{
	*why = 0;
	return swc_msccl_parse(x->t.at, x->t.used, set, why, why_bytes);
}

/*
 * The plans of a program must be correct out of place and, if @in_place, in place, with at most so
 * many steps and channels.
 */
static void good_xml(struct xml *x, const char *name, bool in_place, uint32_t steps,
		     uint32_t channels)
{
	struct swc_plan_set set;
	struct swc_verdict v = { 0 };
	char why[250], text[200];
	const struct swc_plan_header *h;
	struct swc_text file = { 0 };
	int ret = read_xml(x, &set, why, sizeof(why));
	uint32_t n = 0;

	snprintf(text, sizeof(text), "MSCCL: %s", name);
	if (!ret)
		ret = verify(&set, false, NULL, &v);
	if (!ret)
		ret = verify(&set, true, NULL, &v);
	h = ret ? NULL : set.plan[0];
	for (uint32_t r = 0; h && r < set.nranks; r++)
		n = n < ((struct swc_plan_header *)set.plan[r])->nsteps
			    ? ((struct swc_plan_header *)set.plan[r])->nsteps
			    : n;
	if (!ok(h && n <= steps && h->nchannels == channels &&
			!(h->flags & SWC_PLAN_ORDER_VARIES) &&
			!(h->flags & SWC_PLAN_NOT_IN_PLACE) == in_place,
		text))
		printf("# %d \"%s\" rank %u: \"%s\", %u steps, %u channels, flags %x\n", ret, why,
		       v.rank, v.text, n, h ? h->nchannels : 0, h ? h->flags : 0);
	if (!ret && (getenv("SWC_TEST_VERBOSE") || !h) &&
	    !write_text(&set, &file, why, sizeof(why)))
		fputs(file.at, stdout);
	free(file.at);
	free(x->t.at);
	swc_plan_set_free(&set);
}

/* A program must be refused, or its plans found wrong, with @what in the message. */
static void bad_xml(const char *xml, int error, const char *what)
{
	struct swc_plan_set set;
	struct swc_verdict v = { 0 };
	char why[250], name[150];
	int ret;

	*why = 0;
	ret = swc_msccl_parse(xml, strlen(xml), &set, why, sizeof(why));
	if (!ret)
		ret = verify(&set, false, NULL, &v);
	snprintf(name, sizeof(name), "MSCCL: %.100s", what);
	if (!ok(ret == error && (strstr(why, what) || strstr(v.text, what)), name))
		printf("# %d, \"%s\", \"%s\"\n", ret, why, v.text);
	swc_plan_set_free(&set);
}

#define ALGO(n, chunks, coll)                                                                      \
	"<algo name=\"x\" ngpus=\"" n "\" nchunksperloop=\"" chunks "\" coll=\"" coll "\">\n"
#define GPU(id) "<gpu id=\"" id "\" i_chunks=\"2\" o_chunks=\"2\" s_chunks=\"0\">\n"
#define TB "<tb id=\"0\" send=\"1\" recv=\"1\" chan=\"0\">\n"
#define STEP(s, type, off, dep)                                                                    \
	"<step s=\"" s "\" type=\"" type "\" srcbuf=\"i\" srcoff=\"" off                           \
	"\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" depid=\"" dep "\" deps=\"0\" hasdep=\"0\"/>\n"
#define ONE(step)                                                                                  \
	ALGO("2", "2", "allreduce") GPU("0") TB step "</tb></gpu>" GPU("1") "</gpu></algo>"

static void test_bad_xml(void)
{
	struct xml x;

	for (int spoil = 1; spoil <= 3; spoil++) {
		pairs_allreduce(&x, 4, spoil);
		if (spoil == 1)
			bad_xml(x.t.at, -EINVAL, "contribution");
		else if (spoil == 2)
			bad_xml(x.t.at, -EINVAL, "reads a chunk of scratch a second time");
		else
			bad_xml(x.t.at, -EINVAL, "contribution");
		free(x.t.at);
	}
	bad_xml("", -EINVAL, "no element found");
	bad_xml("hello", -EINVAL, "line 1: ");
	bad_xml(ALGO("2", "2", "allreduce") GPU("0"), -EINVAL, "line 3: ");
	bad_xml("<!DOCTYPE a [<!ENTITY b \"c\">]><algo/>", -EINVAL, "not a document type");
	bad_xml("<algo name=\"x\"/>", -EINVAL, "line 1: expected an attribute coll");
	bad_xml("<graph/>", -EINVAL, "expected <algo>, not <graph>");
	bad_xml(ALGO("2", "2", "custom") "</algo>", -EOPNOTSUPP, "collective 'custom'");
	bad_xml(ALGO("2", "2", "gather") "</algo>", -EOPNOTSUPP, "collective 'gather'");
	bad_xml(ALGO("2", "3", "allgather") "</algo>", -EINVAL, "multiple of 2");
	bad_xml(ALGO("1000000000", "2", "allreduce") "</algo>", -EINVAL, "ngpus");
	bad_xml(ALGO("4096", "10", "allreduce") "</algo>", -EINVAL, "gpu 0 of 4096 is missing");
	bad_xml(ALGO("2", "16777216", "allreduce") GPU("0") "</gpu>" GPU("1") "</gpu></algo>",
		-EOPNOTSUPP, "chunks in all buffers");
	bad_xml(ALGO("2", "2", "allreduce") GPU("2") "</gpu></algo>", -EINVAL,
		"line 2: expected id");
	bad_xml(ALGO("2", "2", "allreduce") GPU("0") "</gpu>" GPU("0") "</gpu></algo>", -EINVAL,
		"line 3: gpu 0 occurs twice");
	bad_xml(ALGO("2", "2", "allreduce") GPU("0") "</gpu></algo>", -EINVAL,
		"gpu 1 of 2 is missing");
	bad_xml(ONE(STEP("1", "s", "0", "-1")), -EINVAL, "line 4: expected step 0, not 1");
	bad_xml(ONE(STEP("0", "t", "0", "-1")), -EINVAL, "line 4: expected type");
	bad_xml(ONE(STEP("0", "s", "2", "-1")), -EINVAL,
		"line 4: expected srcoff within the 2 chunks");
	bad_xml(ONE(STEP("0", "s", "x", "-1")), -EINVAL, "line 4: expected srcoff, a number");
	bad_xml(ONE(STEP("0", "s", "0", "3")), -EINVAL, "line 4: there is no step 0 of tb 3");
	bad_xml(ONE(STEP("0", "cpy", "1", "-1")), -EINVAL, "moves chunk 1");
	bad_xml(ONE(STEP("0", "rrc", "1", "-1")), -EOPNOTSUPP, "line 4: waits for ever");
	bad_xml(ONE(STEP("0", "s", "1", "-1")), -EINVAL, "missing");
	bad_xml(ONE("<step s=\"0\"/>"), -EINVAL, "line 4: expected an attribute type");
	bad_xml(ONE("<step s=\"0\" type=\"nop\" depid=\"-1\" deps=\"-1\"><x/></step>"), -EINVAL,
		"nothing can be within <step>");
}

static void test_msccl(void)
{
	struct swc_plan_set set;
	struct xml x;
	char why[250];

	ring_allgather(&x, 4, false);
	if (read_xml(&x, &set, why, sizeof(why)) == -EOPNOTSUPP) {
		printf("ok %d - MSCCL # SKIP %s\n", ++tap_tests, why);
		free(x.t.at);
		return;
	}
	swc_plan_set_free(&set);
	good_xml(&x, "ring allgather", true, 4, 1);
	ring_allgather(&x, 5, true);
	good_xml(&x, "ring allgather in place", true, 5, 1);
	ring_allreduce(&x, 4, false);
	good_xml(&x, "ring allreduce both ways", true, 12, 2);
	ring_allreduce(&x, 7, true);
	good_xml(&x, "ring allreduce both ways in place", true, 24, 2);
	pairs_allreduce(&x, 4, 0);
	good_xml(&x, "allreduce between all pairs", true, 2, 1);
	pairs_allreduce(&x, 9, 0);
	good_xml(&x, "allreduce between all pairs of 9", true, 2, 1);
	doubling_allreduce(&x, 8);
	good_xml(&x, "allreduce by recursive doubling", true, 4, 1);
	ring_reduce_scatter(&x, 5, false);
	good_xml(&x, "ring reduce_scatter", true, 4, 1);
	ring_reduce_scatter(&x, 6, true);
	good_xml(&x, "ring reduce_scatter in place", true, 5, 1);
	direct_alltoall(&x, 4, false);
	good_xml(&x, "alltoall", false, 3, 1);
	direct_alltoall(&x, 4, true);
	good_xml(&x, "alltoall through scratch", false, 3, 1);
	chain_broadcast(&x, 5);
	good_xml(&x, "broadcast along a chain", true, 8, 1);
	test_bad_xml();
}

int main(void)
{
	printf("TAP version 13\n");
	test_msccl();
	return done();
}

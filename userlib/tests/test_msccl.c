// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs in MSCCL's XML and plans of MSCCL++ become correct plans, or are refused with the reason; plans are
 * printed as such XML. TAP on stdout.
 */
#include "mscclpp_programs.h"
#include "plan/names.h"
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

/* ---- plans as XML ---- */

static struct swc_topo topo_of(const char *text)
{
	struct swc_topo t;

	if (swc_topo_parse(&t, text, NULL, 0))
		abort();
	return t;
}

/* Are plans right after they were XML? */
static bool round_trip(enum swc_algo algo, enum swc_coll coll, const struct swc_topo *topo)
{
	struct swc_plan_set set, again = { 0 };
	struct swc_text text = { 0 };
	struct swc_verdict v = { 0 };
	char why[250] = "";
	int ret;

	if (build(&set, algo, coll, topo, topo->nranks, 0)) {
		swc_plan_set_free(&set);
		return true;
	}
	ret = swc_msccl_print(&text, (const void *const *)set.plan, set.nranks, NULL, NULL, why,
			      sizeof(why));
	if (!ret)
		ret = swc_msccl_parse(text.at, text.used, &again, why, sizeof(why));
	if (ret == -EOPNOTSUPP)
		ret = 0; /* without an XML parser */
	else if (!ret)
		ret = verify(&again, false, NULL, &v);
	if (ret)
		printf("# %s %s of %u: %s%s\n", swc_algo_name(algo), swc_coll_name(coll),
		       topo->nranks, why, v.text);
	free(text.at);
	swc_plan_set_free(&again);
	swc_plan_set_free(&set);
	return !ret;
}

static void test_print(void)
{
	static const char *const topos[] = { "torus:2x4", "ring:5", "mesh:2x3" };
	struct swc_text text = { 0 };
	struct swc_plan_set set;
	struct swc_topo t;
	char why[250] = "";
	bool good = true;

	for (size_t i = 0; i < sizeof(topos) / sizeof(topos[0]); i++) {
		t = topo_of(topos[i]);
		for (int algo = 0; algo < SWC_ALGO_NR; algo++)
			for (enum swc_coll coll = 0; coll < SWC_GATHER; coll++)
				if (coll != SWC_BARRIER && !swc_algo_info(algo)->one_node)
					good &= round_trip(algo, coll, &t);
		swc_topo_free(&t);
	}
	ok(good, "plans as MSCCL's XML are right when they are read again");
	t = topo_of("ring:2*2");
	if (build(&set, SWC_ALGO_RING, SWC_ALLREDUCE, &t, t.nranks, 0))
		abort();
	ok(swc_msccl_print(&text, (const void *const *)set.plan, set.nranks, NULL, NULL, why,
			   sizeof(why)) == -EINVAL &&
		   strstr(why, "memory of rank 1"),
	   "several ranks on a node are refused");
	swc_plan_set_free(&set);
	free(text.at);
}

/* ---- MSCCL++ ---- */

/*
 * The plans must be right, with at most so many steps, and so many channels; also in place, if they say so.
 */
static void good_json(struct json *j, const char *name, uint32_t steps, uint32_t channels)
{
	struct swc_plan_set set;
	struct swc_verdict v = { 0 };
	char why[250] = "", text[200];
	int ret = swc_mscclpp_parse(j->t.at, j->t.used, &set, why, sizeof(why));
	const struct swc_plan_header *h;

	snprintf(text, sizeof(text), "MSCCL++: %s", name);
	if (!ret)
		ret = verify(&set, false, NULL, &v);
	if (!ret && !(((struct swc_plan_header *)set.plan[0])->flags & SWC_PLAN_NOT_IN_PLACE))
		ret = verify(&set, true, NULL, &v);
	h = ret ? NULL : set.plan[0];
	if (!ok(h && h->nsteps <= steps && h->nchannels == channels, text))
		printf("# %d \"%s\" rank %u: \"%s\", %u steps, %u channels\n", ret, why, v.rank,
		       v.text, h ? h->nsteps : 0, h ? h->nchannels : 0);
	free(j->t.at);
	swc_plan_set_free(&set);
}

static void bad_json(const char *json, int error, const char *what)
{
	struct swc_plan_set set;
	struct swc_verdict v = { 0 };
	char why[250] = "", name[150];
	int ret = swc_mscclpp_parse(json, strlen(json), &set, why, sizeof(why));

	if (!ret)
		ret = verify(&set, false, NULL, &v);
	snprintf(name, sizeof(name), "MSCCL++: %.100s", what);
	if (!ok(ret == error && (strstr(why, what) || strstr(v.text, what)) && !strchr(why, '\n'),
		name))
		printf("# %d, \"%s\", \"%s\"\n", ret, why, v.text);
	swc_plan_set_free(&set);
}

#define PLAN(coll, gpus) "{\"collective\": \"" coll "\", \"inplace\": true, \"gpus\": [" gpus "]}"
#define CHUNKS "\"input_chunks\": 2, \"output_chunks\": 2, \"scratch_chunks\": 1"
#define WITH(chan, ops)                                                                            \
	"{\"id\": 0, " CHUNKS ", \"channels\": [{\"channel_type\": \"" chan                        \
	"\", \"connected_to\": [1]}], \"threadblocks\": [{\"id\": 3, \"channels\": "               \
	"[{\"channel_type\": \"memory\", \"channel_ids\": [0]}], \"ops\": [" ops "]}]}"
#define OTHER ", {\"id\": 1, " CHUNKS ", \"threadblocks\": []}"
#define OPS(ops) PLAN("allreduce", WITH("memory", ops) OTHER)

static void test_mscclpp(void)
{
	struct json j = { 0 };

	puts_allgather(&j, 2);
	good_json(&j, "allgather by writing", 3, 1);
	puts_allgather(&j, 5);
	good_json(&j, "allgather of 5 by writing", 3, 1);
	reads_allreduce(&j, 3, 0);
	good_json(&j, "allreduce of 3 by reading, with a pipeline and barriers", 4, 1);
	reads_allreduce(&j, 4, 0);
	good_json(&j, "allreduce of 4 by reading and writing in one", 4, 1);
	packets_allreduce(&j, 2);
	good_json(&j, "allreduce of 2 by packets", 4, 1);
	packets_allreduce(&j, 5);
	good_json(&j, "allreduce of 5 by packets, with semaphores", 8, 1);
	j.more_channels = 1;
	puts_allgather(&j, 5);
	good_json(&j, "allgather of 5, two channels between GPUs", 6, 2);
	reads_allreduce(&j, 4, 0);
	good_json(&j, "allreduce of 4 by reading, two channels between GPUs", 8, 2);
	j.more_channels = 3;
	packets_allreduce(&j, 5);
	good_json(&j, "allreduce of 5 by packets, four channels between GPUs", 32, 4);
	j.more_channels = 0;
	reads_allreduce(&j, 3, 1);
	bad_json(j.t.at, -EINVAL, "contribution");
	free(j.t.at);
	reads_allreduce(&j, 3, 2);
	bad_json(j.t.at, -EINVAL, "gpu 0, threadblock 0, operation 2: waits for ever");
	free(j.t.at);
	bad_json("", -EINVAL, "this is no JSON");
	bad_json("{\n\n\"a\": }", -EINVAL, "line 3: this is no JSON");
	bad_json("[]", -EINVAL, "expected an object");
	bad_json("{}\n{}", -EINVAL, "line 2: expected nothing behind the plan");
	bad_json("{} \n", -EINVAL, "expected collective");
	bad_json("{}", -EINVAL, "expected collective");
	bad_json(PLAN("gather", ""), -EOPNOTSUPP, "expected collective allreduce");
	bad_json(PLAN("allreduce", "{}"), -EINVAL, "expected 2 to 65536 gpus");
	bad_json(PLAN("allreduce", "1, 2"), -EINVAL, "expected input_chunks, a whole number");
	bad_json(PLAN("allreduce", "{" CHUNKS ", \"id\": 2}, {}"), -EINVAL, "expected id");
	bad_json(PLAN("allreduce", "{" CHUNKS ", \"id\": 0.5}, {}"), -EINVAL, "expected id");
	bad_json(PLAN("allreduce", "{" CHUNKS ", \"id\": 0}, {}"), -EINVAL,
		 "gpu 0: expected threadblocks, a list");
	bad_json(PLAN("allgather", "{\"id\": 0, \"input_chunks\": 1, \"output_chunks\": 3}, {}"),
		 -EINVAL, "output_chunks to be a multiple of 2");
	bad_json(PLAN("allreduce", WITH("memory", "") ", " WITH("memory", "")), -EINVAL,
		 "gpu 0 occurs twice");
	bad_json(PLAN("allreduce", WITH("switch", "") OTHER), -EOPNOTSUPP,
		 "a switch that computes");
	bad_json(PLAN("allreduce", WITH("smoke", "") OTHER), -EINVAL,
		 "memory or port, not 'smoke'");
	bad_json(OPS("{\"name\": \"glres\"}"), -EOPNOTSUPP,
		 "gpu 0, threadblock 3, operation 0: a switch that computes");
	bad_json(OPS("{\"name\": \"nop\"}, {\"name\": \"nap\"}"), -EINVAL,
		 "gpu 0, threadblock 3, operation 1: there is no operation 'nap'");
	bad_json(OPS("{\"name\": \"nop\", \"tbg_info\": {\"tb_id\": 0, \"tbg_size\": 2}}"),
		 -EOPNOTSUPP, "groups of thread blocks");
	bad_json(OPS("{\"name\": \"wait\", \"channel_type\": \"memory\", \"channel_ids\": [1]}"),
		 -EINVAL, "there is no channel 1 of this type");
	bad_json(OPS("{\"name\": \"wait\", \"channel_type\": \"port\", \"channel_ids\": [0]}"),
		 -EINVAL, "there is no channel 0 of this type");
	bad_json(OPS("{\"name\": \"wait\", \"channel_type\": \"memory\", \"channel_ids\": [0]}"),
		 -EINVAL, "waits for ever");
	bad_json(OPS("{\"name\": \"copy\", \"src_buff\": [], \"dst_buff\": []}"), -EINVAL,
		 "has 0 src_buff and 0 dst_buff");
	bad_json(OPS("{\"name\": \"copy\", \"src_buff\": [{\"type\": \"x\"}], \"dst_buff\": []}"),
		 -EINVAL, "expected type i, o or s, not 'x'");
	bad_json(
		OPS("{\"name\": \"copy\", \"src_buff\": [{\"type\": \"i\", \"index\": 1, \"size\": 2}], "
		    "\"dst_buff\": [{\"type\": \"s\", \"index\": 0, \"size\": 2}]}"),
		-EINVAL, "operation 0: expected srcoff within the 2 chunks of i of gpu 0");
	bad_json(OPS("{\"name\": \"get\", \"channel_type\": \"memory\", \"src_buff\": "
		     "[{\"buffer_id\": 0, \"index\": 0, \"size\": 1}], \"dst_buff\": []}"),
		 -EINVAL, "there is no remote buffer 0");
	bad_json(
		OPS("{\"name\": \"copy\", \"src_buff\": [{\"type\": \"s\", \"index\": 0, \"size\": 1}], "
		    "\"dst_buff\": [{\"type\": \"i\", \"index\": 0, \"size\": 1}]}"),
		-EINVAL, "reads a chunk that nothing was stored in");
}

int main(void)
{
	printf("TAP version 13\n");
	test_msccl();
	test_print();
	test_mscclpp();
	return done();
}

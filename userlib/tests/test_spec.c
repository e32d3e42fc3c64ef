// SPDX-License-Identifier: GPL-2.0-only
/*
 * What people write about networks: topologies, tuning files and the specifications of swingplan allocate and
 * orders that are wrong get one line that names the fault, and random damage to good ones is refused by one
 * line, or read as what makes sense: of topologies, what is printed again the same. In memory of exactly their
 * size. TAP on stdout.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/format/spec.h"
#include "plan/select/tuning.h"
#include "random.h"
#include "tap.h"

#define ROUNDS 4000

/* A copy whose end is the end of its memory. */
static char *copy_of(const char *text, size_t bytes)
{
	char *copy = malloc(bytes + 1);

	if (!copy)
		abort();
	memcpy(copy, text, bytes);
	copy[bytes] = 0;
	return copy;
}

/* One line, not empty, that ends in time. */
static bool is_line(const char *why, size_t room)
{
	return *why && strnlen(why, room) < room && !strchr(why, '\n');
}

static void test_faults(void)
{
	static const struct {
		const char *topo, *says;
	} faults[] = {
		{ "", "begin with" },
		{ "tours:4x4", "begin with" },
		{ "torus:", "expected a size" },
		{ "torus:-4x4", "expected a size" },
		{ "torus:4x0", "expected a size" },
		{ "torus:4x4x", "expected a size" },
		{ "torus:2x2x2x2x2x2x2x2x2", "dimensions" },
		{ "torus:1048576x2", "nodes" },
		{ "ring:4x4", "one size" },
		{ "ring:4*0", "ranks per node" },
		{ "ring:4*1,2", "each of the 4 nodes" },
		{ "ring:2*1,0", "0 ranks" },
		{ "ring:2*1048576", "more than" },
		{ "torus:4x4@-1Gbps", "not a figure" },
		{ "torus:4x4@1Gbps/-1Gbps", "not a figure" },
		{ "torus:4x4@nanGbps", "not a figure" },
		{ "torus:4x4@infGbps", "not a figure" },
		{ "torus:4x4@0x10Gbps", "not a figure" },
		{ "torus:4x4@0Gbps", "out of range" },
		{ "torus:4x4@1e-300Gbps/1Gbps", "out of range" },
		{ "torus:4x4@1e999Gbps", "out of range" },
		{ "torus:4x4@1Tbps", "not a unit" },
		{ "torus:4x4@1Gbps,2Gbps", "a second rate" },
		{ "torus:4x4@1us,2us", "a second delay" },
		{ "torus:4x4x4@1Gbps/2Gbps", "each of the 3 dimensions" },
		{ "torus:4x4@1Gbps/2Gbps/3Gbps", "each of the 2 dimensions" },
		{ "torus:4x4@1Gbps/1us", "each of the 2 dimensions" },
		{ "switch:4@1Gbps/2Gbps", "each of the 1 dimensions" },
		{ "torus:4x4@1Gbps/", "not a figure" },
		{ "torus:4x4@1Gbps,", "not a figure" },
		{ "torus:4x4 ", "nothing may follow" },
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		char *text = copy_of(faults[i].topo, strlen(faults[i].topo)), why[200] = "";
		struct swc_topo t;

		if (swc_topo_parse(&t, text, why, sizeof(why)) != -EINVAL ||
		    !is_line(why, sizeof(why)) || !strstr(why, faults[i].says)) {
			printf("# '%s': %s\n", text, why);
			good = false;
		}
		free(text);
	}
	ok(good, "wrong topologies: one line that names the fault");
}

/* Replace, insert or remove something. */
static char *damage(const char *text)
{
	static const char *const words[] = {
		"-", "0",  "x",	   "*",		 "@",	   "/",	      "nan",	     "1e999",
		",", "us", "Gbps", ":",		 "ring:",  "1048576", "\n",	     " ",
		"[", "]",  "{}",   "\"sizes\":", "1e-300", "null",    "\"\\u0000\"", "1e18"
	};
	size_t n = strlen(text), at = rnd((uint32_t)n + 1), skip = rnd(4);
	const char *word = words[rnd(sizeof(words) / sizeof(words[0]))];
	char *bad = malloc(n + strlen(word) + 2);

	if (!bad)
		abort();
	skip = skip < n - at ? skip : n - at;
	memcpy(bad, text, at);
	strcpy(bad + at, rnd(4) ? word : "");
	if (!rnd(4))
		sprintf(bad + strlen(bad), "%c", 1 + rnd(255));
	strcat(bad, text + at + skip);
	return bad;
}

static char *formatted(const struct swc_topo *t)
{
	int n = swc_topo_format(t, NULL, 0);
	char *text = n < 0 ? NULL : malloc((size_t)n + 1);

	if (!text)
		abort();
	swc_topo_format(t, text, (size_t)n + 1);
	return text;
}

static bool reads_topo(const char *from)
{
	char *text = copy_of(from, strlen(from)), why[120] = "", *first, *second;
	struct swc_topo t, u;
	int ret = swc_topo_parse(&t, text, why, sizeof(why));
	bool good;

	free(text);
	if (ret)
		return ret == -EINVAL && is_line(why, sizeof(why));
	first = formatted(&t);
	good = t.nnodes && t.nranks >= t.nnodes && !swc_topo_parse(&u, first, NULL, 0);
	if (good) {
		second = formatted(&u);
		good = !strcmp(first, second);
		free(second);
		swc_topo_free(&u);
	}
	free(first);
	swc_topo_free(&t);
	return good;
}

static bool reads_tuning(const char *from)
{
	struct swc_topo t = swc_topo_flat(2);
	char *text = copy_of(from, strlen(from)), why[120] = "";
	struct swc_tuning tuning;
	int ret = swc_tuning_parse(&tuning, text, &t, why, sizeof(why));
	bool good = ret ? ret == -EINVAL && is_line(why, sizeof(why)) : true;

	for (uint32_t i = 0; !ret && i < tuning.n; i++)
		good &= tuning.entry[i].us > 0 && tuning.entry[i].us < 1e16;
	swc_tuning_free(&tuning);
	free(text);
	return good;
}

static bool is_sane(const double *v, uint32_t n, double least)
{
	for (uint32_t i = 0; i < n; i++)
		if (!(v[i] >= least && v[i] <= SWC_SPEC_MAX))
			return false;
	return true;
}

static bool makes_sense(const struct swc_spec *s, bool orders)
{
	bool good = s->ndims && s->ndims <= SWC_TOPO_DIMS;

	for (uint32_t i = 0; good && i < s->ndims; i++)
		good = s->size[i] >= 2 && s->size[i] <= SWC_TOPO_MAX_NODES;
	if (orders)
		return good && s->op < SWC_SPEC_ALLTOALL && is_sane(&s->bytes, 1, 1) &&
		       is_sane(s->rate, s->ndims, 1e-9) && !s->phase;
	for (uint32_t i = 0; good && i < s->nphases; i++)
		for (uint32_t k = 0; k < s->ndims; k++)
			good &= s->phase[i].v[k] >= 0 && isfinite(s->phase[i].v[k]);
	for (uint32_t i = 0; good && i < s->nlinear; i++)
		good = s->linear[i].sense >= -1 && s->linear[i].sense <= 1 &&
		       isfinite(s->linear[i].bound);
	return good && s->nphases && s->nphases <= SWC_SPEC_PHASES && is_sane(&s->total, 1, 1e-9) &&
	       is_sane(s->floor, s->ndims, 0) && is_sane(s->cap, s->ndims, 1e-9) &&
	       (!s->priced || is_sane(s->price, s->ndims, 1e-9)) && (s->priced || !s->time_cost);
}

static bool reads_spec(const char *from)
{
	size_t bytes = strlen(from);
	bool good = true;

	for (int orders = 0; orders < 2; orders++) {
		char *text = malloc(bytes ? bytes : 1), why[120] = "";
		struct swc_spec s;
		int ret;

		if (!text)
			abort();
		/* Without a NUL behind it. */
		memcpy(text, from, bytes);
		ret = (orders ? swc_spec_parse_orders : swc_spec_parse_allocate)(&s, text, bytes,
										 why, sizeof(why));
		free(text);
		good &= ret ? ret == -EINVAL && is_line(why, sizeof(why)) : makes_sense(&s, orders);
		if (!ret)
			swc_spec_free(&s);
	}
	return good;
}

static void test_spec_faults(void)
{
#define START "{\"sizes\":[4,2],\"total\":9,"
#define PHASES "\"phases\":[{\"op\":\"allreduce\",\"bytes\":1}]"
	static const struct {
		const char *spec, *says;
	} faults[] = {
		{ "", "not JSON" },
		{ "{} x", "not JSON" },
		{ "[]", "expected an object" },
		{ "{}", "\"sizes\" is missing" },
		{ "{\"sizes\":[]}", "1 to 8 numbers" },
		{ "{\"sizes\":[2,2,2,2,2,2,2,2,2]}", "1 to 8 numbers" },
		{ "{\"sizes\":[2.5]}", "whole numbers" },
		{ "{\"sizes\":[1]}", "from 2 to" },
		{ "{\"sizes\":[2],\"sizes\":[3]}", "given twice" },
		{ "{\"a\\nb\":1}", "unknown key \"a?b\"" },
		{ START PHASES ",\"floor\":[5,5]}", "below the floors' 10" },
		{ START PHASES ",\"floor\":[2,0],\"cap\":[1,9]}", "cap 1 is below the floor 2" },
		{ START PHASES ",\"floor\":[1]}", "expected 2 numbers" },
		{ START PHASES ",\"prices\":[1,-1]}", "\"prices\": expected numbers" },
		{ START PHASES ",\"objective\":\"cost\"}", "\"time\" or \"time_cost\"" },
		{ START PHASES ",\"objective\":\"time_cost\"}", "\"prices\" is missing" },
		{ START PHASES ",\"linear\":[[[1,1],\"<\",1]]}", "\">=\", \"<=\" or \"==\"" },
		{ START PHASES ",\"linear\":[[[1,1],\"<=\"]]}", "[[coefficients]" },
		{ START "\"phases\":[]}", "1 to 4096 phases" },
		{ START "\"phases\":[{\"v\":[1,1],\"op\":\"allreduce\"}]}", "either \"v\"" },
		{ START "\"phases\":[{\"op\":\"scan\",\"bytes\":1}]}", "expected allreduce" },
		{ START "\"phases\":[{\"op\":\"allreduce\",\"bytes\":1,\"groups\":[8,1]}]}",
		  "a group of 8 in a dimension of 4" },
		{ START "\"phases\":[{\"op\":\"allreduce\",\"bytes\":1e999}]}",
		  "\"bytes\": expected numbers" },
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		char why[200] = "";
		struct swc_spec s;

		if (swc_spec_parse_allocate(&s, faults[i].spec, strlen(faults[i].spec), why,
					    sizeof(why)) != -EINVAL ||
		    !is_line(why, sizeof(why)) || !strstr(why, faults[i].says)) {
			printf("# '%s': %s\n", faults[i].spec, why);
			good = false;
		}
	}
	ok(good, "wrong specifications: one line that names the fault");
}

/* So many numbers and objects that they take time, or too deep. */
static void test_large_specs(void)
{
	static const char *const open[] = { "{\"sizes\":[4],\"total\":1,\"phases\":[{}", "[",
					    "{\"sizes\":[2" };
	static const char *const next[] = { ",{}", "[", ",2" };
	static const char *const end[] = { "]}", "]", "]}" };
	bool good = true;

	for (int i = 0; i < 3; i++) {
		size_t n = 1000000, one = strlen(next[i]);
		char *text = malloc(strlen(open[i]) + n * one + strlen(end[i]) + 1), *at;

		if (!text)
			abort();
		at = text + sprintf(text, "%s", open[i]);
		for (size_t k = 0; k < n; k++, at += one)
			memcpy(at, next[i], one);
		strcpy(at, end[i]);
		good &= reads_spec(text);
		free(text);
	}
	ok(good, "specifications of a million phases, brackets or sizes");
}

static void fuzz(bool (*reads)(const char *text), const char *const *texts, uint32_t n,
		 const char *name)
{
	bool good = true;

	for (int i = 0; i < ROUNDS; i++) {
		char *text = damage(texts[rnd(n)]), *more = rnd(2) ? damage(text) : NULL;

		if (!reads(more ? more : text)) {
			printf("# '%s'\n", more ? more : text);
			good = false;
		}
		free(more);
		free(text);
	}
	ok(good, name);
}

int main(void)
{
	static const char *const topos[] = { "torus:4x4", "torus:8x4x2*3@60Gbps/30Gbps/1Mbps,1us",
					     "ring:5*1,2,3,4,5@400Gbps,400ns", "switch:12*8@0.5ms",
					     "mesh:1x2x3x4x5x6x7x8@1e3Gbps" };
	static const char *const tunings[] = {
		"allreduce f32 switch:2 1024 ring 90.5 # behind\nallgather i8 torus:4x4 1 split:2 1e3\n",
		"links switch:2@4Gbps,2us\nlinks torus:4x2@4Gbps/1Gbps\n",
		"# a comment\n\nreduce bf16 switch:2\t4096 swing-h:2 0.5",
	};
	static const char *const specs[] = {
		"{\"sizes\": [4,8,4], \"prices\": [2,4,57.4], \"total\": 300, \"compute_ns\": 5e6,"
		" \"cap\": [300,300,20], \"linear\": [[[1,-1,0], \">=\", 0]], \"objective\": \"time_cost\","
		" \"phases\": [{\"op\": \"allreduce\", \"bytes\": 1e9}, {\"op\": \"alltoall\", \"bytes\":"
		" 2e8, \"count\": 4}, {\"v\": [1, 2e3, 0]}, {\"op\": \"allgather\", \"bytes\": 1e6,"
		" \"count\": 10, \"groups\": [4,8,1]}]}",
		"{\"sizes\":[4,2],\"total\":9,\"floor\":[1,2],\"phases\":[{\"op\":\"reduce_scatter\",\"bytes\":1}]}\n",
		"{\"sizes\":[7,3,5],\"bandwidth\":[13,29,5],\"op\":\"allgather\",\"bytes\":1e9}",
	};

	seed_rnd();
	test_faults();
	test_spec_faults();
	test_large_specs();
	fuzz(reads_topo, topos, sizeof(topos) / sizeof(topos[0]), "damaged topologies");
	fuzz(reads_tuning, tunings, sizeof(tunings) / sizeof(tunings[0]), "damaged tuning files");
	fuzz(reads_spec, specs, sizeof(specs) / sizeof(specs[0]), "damaged specifications");
	return done();
}

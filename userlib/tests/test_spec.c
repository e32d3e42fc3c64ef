// SPDX-License-Identifier: GPL-2.0-only
/*
 * What people write about networks: topologies and tuning files that are wrong get one line that
 * names the fault, and random damage to good ones is refused by one line, or read as what is printed
 * again the same. In memory of exactly their size. TAP on stdout.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	static const char *const words[] = { "-",     "0",	 "x",  "*",  "@",    "/",
					     "nan",   "1e999",	 ",",  "us", "Gbps", ":",
					     "ring:", "1048576", "\n", " " };
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

	seed_rnd();
	test_faults();
	fuzz(reads_topo, topos, sizeof(topos) / sizeof(topos[0]), "damaged topologies");
	fuzz(reads_tuning, tunings, sizeof(tunings) / sizeof(tunings[0]), "damaged tuning files");
	return done();
}

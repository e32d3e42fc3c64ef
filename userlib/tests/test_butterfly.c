// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recursive doubling and Swing on rings and tori of many sizes: every plan is verified on symbols,
 * in place and not; and the numbers of Swing's blocks. SWC_TEST_SHORT=1: fewer sizes above 24. TAP on stdout.
 */
#include "plan/algo/butterfly_numbers.h"
#include "plans.h"
#include "random.h"
#include "tap.h"

/* ---- verification ---- */

static bool offers(const char *algo, enum swc_coll coll)
{
	int32_t param;

	return swc_algo_info((unsigned int)swc_algo_parse(algo, &param))->colls & 1u << coll;
}

/*
 * Check all collectives of an algorithm, in mixed placing, which is verified either way round.
 * Verification with a block for every rank and port takes time: on large tori one algorithm stands
 * for all.
 */
static int check_all(const char *topo, const char *algo, uint32_t ports)
{
	int bad = 0;

	for (int coll = SWC_ALLREDUCE; coll <= SWC_ALLGATHER; coll++)
		if (offers(algo, (enum swc_coll)coll))
			bad |= check_set(topo, args_of(algo, (enum swc_coll)coll, ports), MIXED);
	return bad;
}

static void test_rings(void)
{
	static const char *const algos[] = { "recdoub", "rabenseifner", "mirrored", "mirrored:1",
					     "swing-l", "swing-b",	"swing-h" };
	static const uint32_t large[] = { 96, 100, 126, 127, 128 };
	char topo[32], name[80];

	for (size_t i = 0; i < sizeof(algos) / sizeof(algos[0]); i++) {
		int bad = 0;

		for (uint32_t p = 2; p <= 64; p++) {
			snprintf(topo, sizeof(topo), "%s:%u", p % 3 ? "ring" : "switch", p);
			if (p <= 24 || p % 8 <= 1)
				bad |= check_all(topo, algos[i], 1 + p % 2);
			else if (!short_form())
				bad |= check_set(topo, args_of(algos[i], SWC_ALLREDUCE, 1), MIXED);
			for (int placing = OUT_OF_PLACE; p <= 17 && placing <= IN_PLACE; placing++)
				bad |= check_set(topo, args_of(algos[i], SWC_ALLREDUCE, 2),
						 (enum placing)placing);
		}
		snprintf(name, sizeof(name), "%s on rings of 2 to 64", algos[i]);
		ok(!bad, name);
	}
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		int bad = 0;

		if (short_form() && large[i] < 126)
			continue;
		snprintf(topo, sizeof(topo), "ring:%u", large[i]);
		for (size_t k = 0; k < sizeof(algos) / sizeof(algos[0]); k++)
			bad |= check_all(topo, algos[k], 1);
		snprintf(name, sizeof(name), "all algorithms on %s", topo);
		ok(!bad, name);
	}
}

static const char *const powers[] = {
	"torus:4x4",   "torus:8x8",   "torus:16x4",  "torus:4x16",    "torus:2x8", "torus:2x2x2",
	"torus:4x4x4", "torus:8x4x2", "torus:2x4x8", "torus:4x4x4x2", "torus:1x8", "torus:2x1x2",
	"mesh:4x8",    "switch:16",   "ring:2",	     "ring:4",	      "ring:32",
};

static const char *const others[] = {
	"torus:4x6",   "torus:6x10",  "torus:6x6",   "torus:12x8", "torus:2x6x10",
	"torus:6x4x2", "torus:3x5",   "torus:7x8",   "torus:9x9",  "torus:5x5x3",
	"torus:11x3",  "torus:4x6x5", "torus:1x7x1", "mesh:3x4",   "torus:2x3x2",
};

static bool is_large(const char *text)
{
	struct swc_topo topo;
	bool large = !swc_topo_parse(&topo, text, NULL, 0) && topo.nnodes > 90;

	swc_topo_free(&topo);
	return large;
}

static void test_tori(void)
{
	static const char *const algos[] = { "recdoub", "rabenseifner", "mirrored",
					     "swing-l", "swing-b",	"swing-h" };
	const size_t npowers = sizeof(powers) / sizeof(powers[0]);
	const size_t nothers = sizeof(others) / sizeof(others[0]);
	char name[80];

	for (size_t i = 0; i < npowers + nothers; i++) {
		const char *topo = i < npowers ? powers[i] : others[i - npowers];
		int bad = 0;

		for (size_t k = 0; k < sizeof(algos) / sizeof(algos[0]); k++)
			if (is_large(topo) && strcmp(algos[k], "swing-b"))
				bad |= check_set(topo, args_of(algos[k], SWC_ALLREDUCE, 0), MIXED);
			else
				bad |= check_all(topo, algos[k], is_large(topo) ? 1 : 0);
		bad |= check_set(topo, args_of("swing-b", SWC_ALLREDUCE, is_large(topo) ? 0 : 3),
				 IN_PLACE);
		snprintf(name, sizeof(name), "all algorithms on %s", topo);
		ok(!bad, name);
	}
}

/* Nodes with several ranks: the node's sum is in RECV from the start. */
static void test_nodes(void)
{
	static const char *const topos[] = { "torus:2x3*2", "ring:8*2", "torus:4x4*2",
					     "ring:5*1,3,2,1,2", "ring:6*2,1,2,2,1,2" };
	int bad = 0;

	for (size_t i = 0; i < sizeof(topos) / sizeof(topos[0]); i++) {
		bad |= check_set(topos[i], args_of("swing-b", SWC_ALLREDUCE, 0), MIXED);
		bad |= check_set(topos[i], args_of("swing-l", SWC_ALLREDUCE, 0), MIXED);
		bad |= check_set(topos[i], args_of("mirrored:1", SWC_ALLREDUCE, 0), MIXED);
	}
	ok(!bad, "allreduce between nodes with several ranks");
}

/*
 * Check every number of reduce-scatter steps, and that order-varies is set exactly if the order of
 * additions varies.
 */
static int check_hybrids(const char *topo, const char *algo, uint32_t steps)
{
	int bad = 0;

	for (uint32_t j = 0; j <= steps; j++) {
		char name[32];
		struct swc_plan_args a;
		bool varies;
		struct set s;

		snprintf(name, sizeof(name), "%s:%u", algo, j);
		a = args_of(name, SWC_ALLREDUCE, 0);
		bad |= check_set(topo, a, MIXED);
		bad |= build_set(&s, topo, a, MIXED);
		varies = header(&s, 0)->flags & SWC_PLAN_ORDER_VARIES;
		for (uint32_t r = 0; r < s.nranks; r++) {
			bad |= varies != !!(header(&s, r)->flags & SWC_PLAN_ORDER_VARIES);
			header(&s, r)->flags &= ~(uint32_t)SWC_PLAN_ORDER_VARIES;
		}
		if (varies != !!verify_set(&s)) {
			printf("# %s on %s: flag is %d\n", name, topo, varies);
			bad = 1;
		}
		free_set(&s);
	}
	return bad;
}

static void test_hybrids(void)
{
	static const struct {
		const char *topo;
		uint32_t steps;
	} on[] = { { "ring:2", 1 },    { "ring:4", 2 },	     { "ring:8", 3 },
		   { "ring:16", 4 },   { "ring:64", 6 },     { "ring:13", 3 },
		   { "torus:4x4", 4 }, { "torus:8x8", 6 },   { "torus:16x4", 6 },
		   { "torus:2x8", 4 }, { "torus:4x4x4", 6 }, { "torus:8x4x2", 6 },
		   { "torus:5x9", 5 }, { "torus:3x3x3", 3 }, { "torus:1x8", 3 },
		   { "torus:8x2", 4 } };
	char name[80];

	for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++) {
		snprintf(name, sizeof(name), "hybrids with every number of steps on %s",
			 on[i].topo);
		ok(!(check_hybrids(on[i].topo, "swing-h", on[i].steps) |
		     check_hybrids(on[i].topo, "mirrored", on[i].steps)),
		   name);
	}
}

static uint32_t flags_of(const char *topo, const char *algo)
{
	struct set s;
	uint32_t flags = build_set(&s, topo, args_of(algo, SWC_ALLREDUCE, 0), OUT_OF_PLACE)
				 ? ~0u
				 : header(&s, 0)->flags;

	free_set(&s);
	return flags;
}

static void test_flags(void)
{
	struct set s;

	ok(flags_of("ring:8", "swing-l") & SWC_PLAN_ORDER_VARIES,
	   "swing-l on a ring of 8: order-varies is set");
	ok(!(flags_of("torus:4x4", "swing-l") & SWC_PLAN_ORDER_VARIES),
	   "swing-l on torus:4x4: order-varies is not set");
	ok(!(flags_of("torus:6x10", "swing-b") | flags_of("torus:8x8", "swing-b") |
	     flags_of("torus:8x8", "rabenseifner") | flags_of("torus:8x8", "mirrored:1")),
	   "swing-b, rabenseifner and mirrored:1: no flag is set");
	ok(build_set(&s, "ring:8", args_of("swing-h:4", SWC_ALLREDUCE, 0), OUT_OF_PLACE) ==
		   -EOPNOTSUPP,
	   "more reduce-scatter steps than the topology has are refused");
	free_set(&s);
}

/* ---- numbers of blocks ---- */

/* Numbers as they come, and what is wrong with them. */
struct listed {
	uint32_t *number, n, calls;
	bool bad;
};

static bool list_numbers(void *arg, uint32_t first, uint32_t n)
{
	struct listed *l = arg;

	l->calls++;
	for (uint32_t i = 0; i < n; i++) {
		l->bad |= l->n && l->number[l->n - 1] >= first + i;
		l->number[l->n++] = first + i;
	}
	return true;
}

/* Stretches of a line of d places that @take has. */
static void mark_part(struct swc_stretches *part, uint32_t d, const bool *take)
{
	part->n = 0;
	for (uint32_t i = 0; i < d; i++)
		if (take[i] && !swc_stretches_add(part, i, 1))
			abort();
}

/* Of each block alone, a number; @number: by place, row by row. */
static bool number_each(const struct swc_lines *lines, struct swc_stretches *part, uint32_t nblocks,
			uint32_t *number)
{
	bool *seen = calloc(nblocks, sizeof(*seen)), good = true;

	for (uint32_t b = 0; b < nblocks; b++) {
		struct listed l = { .number = &number[b] };
		uint32_t rest = b;

		for (uint32_t j = lines->ndims; j-- > 0; rest /= lines->line[j].d) {
			part[j].n = 0;
			swc_stretches_add(&part[j], rest % lines->line[j].d, 1);
		}
		swc_numbers_each(lines, true, part, list_numbers, &l);
		good = good && l.n == 1 && number[b] < nblocks && !seen[number[b]];
		if (good)
			seen[number[b]] = true;
	}
	free(seen);
	return good;
}

/* Do the numbers of a product of random places come in order, and are they those of its blocks? */
static bool check_product(const struct swc_lines *lines, struct swc_stretches *part,
			  uint32_t nblocks, const uint32_t *number)
{
	bool take[SWC_TOPO_DIMS][64] = { 0 }, *want = calloc(nblocks, sizeof(*want)), good;
	struct listed l = { .number = calloc(nblocks, sizeof(*l.number)) };
	uint32_t n = 0;

	for (uint32_t j = 0; j < lines->ndims; j++) {
		for (uint32_t i = 0; i < lines->line[j].d; i++)
			take[j][i] = rnd(4) > 0;
		mark_part(&part[j], lines->line[j].d, take[j]);
	}
	for (uint32_t b = 0; b < nblocks; b++) {
		bool in = true;
		uint32_t rest = b;

		for (uint32_t j = lines->ndims; j-- > 0; rest /= lines->line[j].d)
			in = in && take[j][rest % lines->line[j].d];
		want[number[b]] = in;
		n += in;
	}
	swc_numbers_each(lines, true, part, list_numbers, &l);
	good = !l.bad && l.n == n;
	for (uint32_t i = 0; i < l.n; i++)
		good = good && want[l.number[i]];
	free(want);
	free(l.number);
	return good;
}

static bool check_numbers(const char *text)
{
	struct swc_stretches part[SWC_TOPO_DIMS] = { 0 };
	struct swc_lines lines;
	struct swc_topo t;
	uint32_t *number;
	bool good = true;

	if (swc_topo_parse(&t, text, NULL, 0) || swc_lines_open(&lines, &t, true))
		return false;
	number = calloc(t.nnodes, sizeof(*number));
	for (uint32_t port = 0; port < 2 * t.ndims && good; port++) {
		swc_lines_set_port(&lines, port);
		good = number_each(&lines, part, t.nnodes, number);
		for (int i = 0; i < 20 && good; i++)
			good = check_product(&lines, part, t.nnodes, number);
	}
	for (uint32_t j = 0; j < t.ndims; j++)
		free(part[j].stretch);
	free(number);
	swc_lines_free(&lines);
	swc_topo_free(&t);
	return good;
}

static bool count_calls(void *arg, uint32_t first, uint32_t n)
{
	uint64_t *count = arg;

	(void)first;
	count[0]++;
	count[1] += n;
	return true;
}

/* What a member of a large torus sends in the first step is listed in few calls, not block by block. */
static bool lists_runs(const char *text)
{
	struct swc_stretches part[2] = { 0 };
	struct swc_axis axis[2] = { 0 };
	uint64_t count[2] = { 0 };
	struct swc_lines lines;
	struct swc_topo t;
	bool good;

	if (swc_topo_parse(&t, text, NULL, 0) || swc_lines_open(&lines, &t, true))
		return false;
	swc_lines_set_port(&lines, 0);
	good = !swc_axis_open(&axis[0], &lines, 0, true, false) &&
	       !swc_axis_open(&axis[1], &lines, 1, true, false) && swc_axis_find(&axis[0], 7, 0) &&
	       swc_axis_find(&axis[1], 5, 0) &&
	       swc_axis_send(&axis[0], 0, swc_line_peer(&lines.line[0], 7, 0, 0), SWC_AXIS_ANY,
			     &part[0]) &&
	       swc_axis_hold(&axis[1], SWC_AXIS_ANY, &part[1]);
	if (good)
		swc_numbers_each(&lines, true, part, count_calls, count);
	for (int j = 0; j < 2; j++) {
		swc_axis_free(&axis[j]);
		free(part[j].stretch);
	}
	swc_lines_free(&lines);
	swc_topo_free(&t);
	return good && count[1] == t.nnodes / 2 && count[0] <= 1000;
}

static void test_numbers(void)
{
	static const char *const topos[] = {
		"ring:36",   "ring:22",	    "ring:35",	 "torus:6x10",
		"torus:5x7", "torus:4x3x6", "torus:9x9", "torus:3x3x5"
	};
	char name[80];

	rnd_state = 17;
	for (size_t i = 0; i < sizeof(topos) / sizeof(topos[0]); i++) {
		snprintf(name, sizeof(name), "numbers of blocks on %s", topos[i]);
		ok(check_numbers(topos[i]), name);
	}
	ok(lists_runs("torus:1000x1000") && lists_runs("torus:2000x500"),
	   "messages of half a million blocks are listed in at most 1000 runs");
}

int main(void)
{
	printf("TAP version 13\n");
	test_rings();
	test_tori();
	test_nodes();
	test_hybrids();
	test_flags();
	test_numbers();
	return done();
}

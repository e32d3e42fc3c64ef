// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pure parts of the MPI preload library: its settings, and the choice by measurement. TAP on
 * stdout.
 */
#include <string.h>

#include "pmpi/choose.h"
#include "pmpi/settings.h"
#include "tap.h"

static bool parses(const char *names, const char *min, uint64_t mask, int64_t least)
{
	struct pmpi_settings s;
	char text[256];

	return !pmpi_settings_parse(&s, names, min, text, sizeof(text)) && !*text &&
	       s.mask == mask && s.min == least;
}

static bool fails(const char *names, const char *min, const char *what)
{
	struct pmpi_settings s;
	char text[256];

	return pmpi_settings_parse(&s, names, min, text, sizeof(text)) && strstr(text, what) &&
	       !s.mask;
}

static void test_settings(void)
{
	const uint64_t all = UINT64_MAX, allreduce = 1ull << PMPI_ALLREDUCE,
		       iallreduce = 1ull << PMPI_IALLREDUCE,
		       bcast = 1ull << PMPI_BCAST | 1ull << PMPI_IBCAST,
		       exscan = 1ull << PMPI_EXSCAN | 1ull << PMPI_IEXSCAN;

	ok(parses(NULL, NULL, all, PMPI_MEASURE) && parses("", "", all, PMPI_MEASURE),
	   "without variables everything is measured");
	ok(parses("off", NULL, 0, PMPI_MEASURE) && parses("OFF", "0", 0, 0), "off");
	ok(fails("allreduce_init", NULL, "no collective"), "a persistent one cannot be selected");
	ok(parses("allreduce", NULL, allreduce | iallreduce, PMPI_MEASURE),
	   "a name selects both forms");
	ok(parses("MPI_Iallreduce", NULL, iallreduce, PMPI_MEASURE), "the name of one form");
	ok(parses("exscan", NULL, exscan, PMPI_MEASURE), "the last name");
	ok(parses("MPI_Bcast,,allreduce,", NULL, bcast | allreduce | iallreduce, PMPI_MEASURE),
	   "several names");
	ok(parses(NULL, "0", all, 0) && parses(NULL, "4096", all, 4096) &&
		   parses(NULL, "64K", all, 65536) && parses(NULL, "1G", all, 1 << 30),
	   "sizes");
	ok(fails("allreduce,broadcast", NULL, "'broadcast'") && fails("all", NULL, "'all'") &&
		   fails("allreduce bcast", NULL, "allreduce bcast"),
	   "a wrong name is told");
	ok(fails(NULL, "-1", "'-1'") && fails(NULL, "4x", "'4x'") && fails(NULL, "K", "'K'") &&
		   fails(NULL, "1KB", "'1KB'") && fails(NULL, "99999999999999999999G", "G'"),
	   "a wrong size is told");
}

#define COUNTED (CHOOSE_BURST - 1)

/*
 * A trial in which the calls of a burst take so long, behind a first one that does not count. Of one side,
 * a call of each burst is disturbed, at another place.
 */
static enum choose_side try(const uint64_t swc[COUNTED], const uint64_t mpi[COUNTED],
			    enum choose_side disturbed)
{
	static struct choose c;
	struct choose_class *k;
	double times[CHOOSE_SIDES], sums[CHOOSE_SIDES] = { 0 };
	bool trial, over = false;
	int of_swc = 0, calls = 0;

	memset(&c, 0, sizeof(c));
	k = choose_find(&c, 3, 1000);
	while (!over) {
		enum choose_side side = choose_next(k, &trial);
		int i = calls % CHOOSE_BURST;
		uint64_t ns = !i ? 1000000 : side == CHOOSE_SWC ? swc[i - 1] : mpi[i - 1];

		if (!trial)
			return CHOOSE_SIDES;
		of_swc += side == CHOOSE_SWC;
		if (i && calls < CHOOSE_BURST * CHOOSE_SIDES)
			sums[side] += (double)ns;
		if (side == disturbed && i == 1 + (calls < CHOOSE_BURST * CHOOSE_SIDES))
			ns = UINT64_MAX;
		over = choose_sample(k, ns);
		calls++;
	}
	choose_times(k, times);
	if (of_swc * 2 != calls || times[CHOOSE_SWC] != sums[CHOOSE_SWC] ||
	    times[CHOOSE_MPI] != sums[CHOOSE_MPI])
		return CHOOSE_SIDES;
	choose_decide(k, times);
	if (choose_next(k, &trial) != (enum choose_side)k->side || trial)
		return CHOOSE_SIDES;
	return (enum choose_side)k->side;
}

static void test_choose(void)
{
	static const uint64_t quick[COUNTED] = { 1000, 1000, 1000 },
			      slow[COUNTED] = { 2000, 2000, 2000 },
			      uneven[COUNTED] = { 10, 10, 9000 };
	static struct choose c;

	ok(choose_find(&c, 0, 8) == choose_find(&c, 0, 15) &&
		   choose_find(&c, 0, 8) != choose_find(&c, 0, 16) &&
		   choose_find(&c, 0, 8) != choose_find(&c, 1, 8) &&
		   choose_find(&c, 0, 0) != choose_find(&c, 0, 1),
	   "classes by collective and size");
	ok(choose_find(&c, CHOOSE_COLLS - 1, UINT64_MAX) ==
		   &c.of[CHOOSE_COLLS - 1][CHOOSE_CLASSES - 1],
	   "the largest size has a class");
	ok(try(quick, slow, CHOOSE_SIDES) == CHOOSE_SWC, "swingcoll is faster");
	ok(try(slow, quick, CHOOSE_SIDES) == CHOOSE_MPI, "MPI is faster");
	ok(try(quick, quick, CHOOSE_SIDES) == CHOOSE_MPI, "a draw is left to MPI");
	ok(try(quick, slow, CHOOSE_SWC) == CHOOSE_SWC && try(slow, quick, CHOOSE_MPI) == CHOOSE_MPI,
	   "disturbed calls do not count");
	ok(try(quick, uneven, CHOOSE_SIDES) == CHOOSE_SWC &&
		   try(uneven, quick, CHOOSE_SIDES) == CHOOSE_MPI,
	   "calls that are mostly quick, but take longer together, lose");
}

/* Sizes that become known in the calls themselves: smaller ones are tried anew, once for each number of bits. */
static void test_told(void)
{
	const double faster[CHOOSE_SIDES] = { [CHOOSE_MPI] = 2, [CHOOSE_SWC] = 1 };
	struct choose_class k = { 0 };
	bool trial;

	choose_told(&k, 1000);
	choose_sample(&k, 1);
	choose_told(&k, 600);
	ok(k.calls == 1, "sizes of a trial do not disturb it");
	choose_decide(&k, faster);
	choose_told(&k, 100000);
	choose_told(&k, 512);
	ok(k.decided && k.side == CHOOSE_SWC,
	   "larger sizes, and those of the same bits, change nothing");
	choose_told(&k, 511);
	ok(!k.decided && !k.calls && choose_next(&k, &trial) == CHOOSE_SWC && trial,
	   "a smaller size begins another trial");
	choose_decide(&k, faster);
	choose_told(&k, 300);
	ok(k.decided, "which its own size does not");
	choose_told(&k, 0);
	choose_decide(&k, faster);
	choose_told(&k, 0);
	ok(k.decided, "nothing is smaller than nothing");
}

int main(void)
{
	printf("TAP version 13\n");
	test_settings();
	test_choose();
	test_told();
	return done();
}

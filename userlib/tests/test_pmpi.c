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
#define RANKS 3

/* What happens in a trial; times in ns, of the calls of a burst behind a first one that does not count. */
struct course {
	uint64_t ns[CHOOSE_SIDES][COUNTED];
	unsigned int disturbed; /* sides of which a call of every other burst is */
	int slow_rounds; /* so many, from the first, in which swingcoll takes three times as long */
};

static uint64_t time_of(const struct course *x, enum choose_side side, int calls)
{
	int i = calls % CHOOSE_BURST;
	bool second = calls / CHOOSE_BURST / CHOOSE_SIDES % 2;

	if (!i)
		return 1000000000;
	if (x->disturbed >> side & 1 && second && i == 1)
		return UINT64_MAX;
	if (side == CHOOSE_SWC && calls / CHOOSE_ROUND < x->slow_rounds)
		return 3 * x->ns[side][i - 1];
	return x->ns[side][i - 1];
}

/* The decision, and after how many rounds. All ranks take the same time. */
static enum choose_side try(const struct course *x, int *rounds)
{
	static struct choose c;
	struct choose_class *k;
	double times[CHOOSE_SIDES];
	int of_swc = 0, calls = 0;
	bool trial, over;

	memset(&c, 0, sizeof(c));
	k = choose_find(&c, 3, 1000);
	while (!k->decided) {
		enum choose_side side = choose_next(k, &trial);

		if (!trial)
			return CHOOSE_SIDES;
		of_swc += side == CHOOSE_SWC;
		over = choose_sample(k, time_of(x, side, calls));
		if (over != !(++calls % CHOOSE_ROUND))
			return CHOOSE_SIDES;
		if (!over)
			continue;
		choose_times(k, times);
		times[CHOOSE_SWC] *= RANKS;
		times[CHOOSE_MPI] *= RANKS;
		choose_decide(k, times, RANKS);
	}
	*rounds = calls / CHOOSE_ROUND;
	if (of_swc * 2 != calls || choose_next(k, &trial) != (enum choose_side)k->side || trial)
		return CHOOSE_SIDES;
	return (enum choose_side)k->side;
}

/*
 * Whether a trial ends so after so many rounds, if all calls of a burst take so long; those of the side
 * @late all together in the last one.
 */
static bool ends(uint64_t swc, uint64_t mpi, struct course x, enum choose_side late,
		 enum choose_side side, int rounds)
{
	int done = 0;

	for (int i = 0; i < COUNTED; i++) {
		x.ns[CHOOSE_SWC][i] = swc;
		x.ns[CHOOSE_MPI][i] = mpi;
		if (late != CHOOSE_SIDES)
			x.ns[late][i] = i < COUNTED - 1 ? 10 : COUNTED * x.ns[late][i];
	}
	side = side == try(&x, &done) ? side : CHOOSE_SIDES;
	if (side == CHOOSE_SIDES || done != rounds)
		printf("# %d rounds\n", done);
	return side != CHOOSE_SIDES && done == rounds;
}

static void test_choose(void)
{
	static const struct course even;
	static struct choose c;

	ok(choose_find(&c, 0, 8) == choose_find(&c, 0, 15) &&
		   choose_find(&c, 0, 8) != choose_find(&c, 0, 16) &&
		   choose_find(&c, 0, 8) != choose_find(&c, 1, 8) &&
		   choose_find(&c, 0, 0) != choose_find(&c, 0, 1),
	   "classes by collective and size");
	ok(choose_find(&c, CHOOSE_COLLS - 1, UINT64_MAX) ==
		   &c.of[CHOOSE_COLLS - 1][CHOOSE_CLASSES - 1],
	   "the largest size has a class");
	ok(ends(1000, 2100, even, CHOOSE_SIDES, CHOOSE_SWC, 1),
	   "swingcoll takes less than half: one round");
	ok(ends(1000, 1100, even, CHOOSE_SIDES, CHOOSE_SWC, CHOOSE_ROUNDS) &&
		   ends(2000, 1000, even, CHOOSE_SIDES, CHOOSE_MPI, CHOOSE_ROUNDS),
	   "the sides are close to each other: all rounds");
	ok(ends(5000, 1000, even, CHOOSE_SIDES, CHOOSE_MPI, 2), "MPI is much faster: two rounds");
	ok(ends(1000, 1000, even, CHOOSE_SIDES, CHOOSE_MPI, CHOOSE_ROUNDS),
	   "a draw is left to MPI");
	ok(ends(2 * CHOOSE_LONG_NS, CHOOSE_LONG_NS, even, CHOOSE_SIDES, CHOOSE_MPI, 1),
	   "calls are long: one round");
	ok(ends(1000, 2100, (struct course){ .disturbed = 1 << CHOOSE_SWC }, CHOOSE_SIDES,
		CHOOSE_SWC, 1) &&
		   ends(5000, 1000, (struct course){ .disturbed = 1 << CHOOSE_MPI }, CHOOSE_SIDES,
			CHOOSE_MPI, 2),
	   "disturbed bursts do not count if they are half of all");
	ok(ends(1000, 2100, (struct course){ .slow_rounds = 1 }, CHOOSE_SIDES, CHOOSE_SWC, 2) &&
		   ends(1000, 1500, (struct course){ .slow_rounds = 2 }, CHOOSE_SIDES, CHOOSE_SWC,
			CHOOSE_ROUNDS),
	   "nor do slow beginnings");
	ok(ends(1000, 3000, even, CHOOSE_MPI, CHOOSE_SWC, 1) &&
		   ends(3000, 1000, even, CHOOSE_SWC, CHOOSE_MPI, CHOOSE_ROUNDS),
	   "calls that are mostly quick, but take longer together, lose");
}

/* Most calls take long, some are quick, by turns: MPI's time is between the two, and less than the median. */
static void test_varying(void)
{
	struct choose_class k = { 0 };
	double times[CHOOSE_SIDES];
	enum choose_side side;
	bool trial;

	for (int calls = 0; !k.decided;) {
		side = choose_next(&k, &trial);
		/* Each call of a burst is quick in one of eight. */
		if (choose_sample(&k,
				  side == CHOOSE_MPI ? 3000
				  : calls / CHOOSE_BURST / CHOOSE_SIDES % 4 == calls % CHOOSE_BURST
					  ? 1000
					  : 5000)) {
			choose_times(&k, times);
			choose_decide(&k, times, 1);
		}
		calls++;
	}
	ok(k.side == CHOOSE_MPI, "quick calls among slow ones do not win");
}

/* Sizes that become known in the calls themselves: others are tried anew, once for each number of bits. */
static void test_told(void)
{
	const double faster[CHOOSE_SIDES] = { [CHOOSE_MPI] = 3, [CHOOSE_SWC] = 1 };
	struct choose_class k = { 0 };
	bool trial;

	choose_told(&k, 1000);
	choose_sample(&k, 1);
	choose_told(&k, 600);
	choose_told(&k, 5000);
	ok(k.calls == 1, "sizes of a trial do not disturb it");
	choose_decide(&k, faster, RANKS);
	choose_told(&k, 8191);
	choose_told(&k, 512);
	ok(k.decided && k.side == CHOOSE_SWC, "sizes between those of the trial change nothing");
	choose_told(&k, 511);
	ok(!k.decided && !k.calls && choose_next(&k, &trial) == CHOOSE_SWC && trial,
	   "a smaller size begins another trial");
	choose_decide(&k, faster, RANKS);
	choose_told(&k, 300);
	choose_told(&k, 8191);
	ok(k.decided, "which its own size does not");
	choose_told(&k, 8192);
	ok(!k.decided && !k.calls, "a larger size does");
	choose_decide(&k, faster, RANKS);
	choose_told(&k, 0);
	choose_decide(&k, faster, RANKS);
	choose_told(&k, 0);
	ok(k.decided, "nothing is smaller than nothing");
	choose_told(&k, UINT64_MAX);
	choose_decide(&k, faster, RANKS);
	choose_told(&k, UINT64_MAX);
	ok(k.decided, "nor larger than all");
}

int main(void)
{
	printf("TAP version 13\n");
	test_settings();
	test_choose();
	test_varying();
	test_told();
	return done();
}

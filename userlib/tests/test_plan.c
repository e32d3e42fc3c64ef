// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plans of every algorithm, collective, root and number of ranks, on many networks, are verified on
 * symbols; and the verifier finds the faults of spoilt plans. TAP on stdout.
 *
 * The networks of half of the tests are random. They print their seed; SWC_TEST_SEED repeats it.
 * SWC_TEST_SHORT=1: fewer and smaller ones, and fewer numbers of ranks above 17.
 */
#include <math.h>

#include "plan/model/walk.h"
#include "plans.h"
#include "random.h"
#include "tap.h"

#define MAX_RANKS 128
#define RANDOM_TORI 200
#define RANDOM_NODES 60

/* How many sets of plans an algorithm was asked for, refused, and built wrong. */
struct tally {
	uint32_t asked, refused, wrong;
	char why[240];
};

static void check_one(struct tally *t, const struct swc_plan_args *args, enum placing placing)
{
	struct set s;
	int ret = build_set(&s, NULL, *args, placing);

	t->asked++;
	if (ret == -EOPNOTSUPP && *s.why) {
		t->refused++;
		snprintf(t->why, sizeof(t->why), "%s", s.why);
		free_set(&s);
		return;
	}
	if (!ret)
		ret = verify_both(&s);
	if (ret) {
		t->wrong++;
		print_set(&s, ret);
	}
	free_set(&s);
}

static bool offers(enum swc_algo algo, enum swc_coll coll)
{
	return swc_algo_info(algo)->colls & 1u << coll;
}

static void report(const struct tally *t, const char *name)
{
	char text[400];

	if (t->asked && t->asked == t->refused)
		snprintf(text, sizeof(text), "%s # SKIP all are refused: %s", name, t->why);
	else
		snprintf(text, sizeof(text), "%s (%u sets of plans, %u refused)", name, t->asked,
			 t->refused);
	ok(!t->wrong, text);
}

/* The next number of ranks to try, 0 at the end. Only allreduce is tried with many. */
static uint32_t next_nranks(uint32_t n, bool many)
{
	static const uint32_t more[] = { 96, 100, 126, 127, 128, 0 };
	static const uint32_t few[] = { 31, 32, 33, 48, 63, 64, 100, 127, 128, 0 };

	if (n < (many && !short_form() ? 64 : 17))
		return n + 1;
	if (!many)
		return n == 17 ? 32 : 0;
	for (const uint32_t *next = short_form() ? few : more;; next++)
		if (*next > n || !*next)
			return *next;
}

static void check_ranks(struct tally *t, struct swc_plan_args a)
{
	bool many = a.coll == SWC_ALLREDUCE, rooted = swc_coll_has_root((uint8_t)a.coll);

	for (uint32_t n = 1; n; n = next_nranks(n, many)) {
		char shape[20], why[100];
		struct swc_topo ring;

		snprintf(shape, sizeof(shape), "ring:%u", n);
		if (swc_topo_parse(&ring, shape, why, sizeof(why)))
			abort();
		a.nranks = a.nlocal = n;
		a.channels = 0;
		for (a.root = 0; a.root<(rooted ? n : 1); a.root += n> 8 ? n / 3 : 1)
			for (int placing = 0; placing < PLACINGS; placing++)
				if (n <= 17 || placing == (int)n % PLACINGS)
					check_one(t, &a, placing);
		a.root = 0;
		if (n <= 17) {
			a.channels = 3;
			check_one(t, &a, OUT_OF_PLACE);
			a.channels = 0;
		}
		if (swc_algo_info(a.algo)->multiport) {
			a.topo = &ring;
			a.nlocal = 0;
			check_one(t, &a, n % PLACINGS);
			a.topo = NULL;
		}
	}
}

static void test_algos(void)
{
	char name[80];

	for (int algo = 0; algo < SWC_ALGO_NR; algo++) {
		for (int coll = 0; coll < SWC_COLL_NR; coll++) {
			struct swc_plan_args a = { .coll = coll,
						   .algo = algo,
						   .param = SWC_PARAM_DEFAULT,
						   .nranks = 4,
						   .nlocal = 4 };
			struct tally t = { 0 };
			struct set s;

			snprintf(name, sizeof(name), "%s %s", swc_algo_name((unsigned int)algo),
				 swc_coll_name(coll));
			if (offers(algo, coll)) {
				check_ranks(&t, a);
				report(&t, name);
				continue;
			}
			strcat(name, ": not offered, refused");
			ok(build_set(&s, NULL, a, OUT_OF_PLACE) == -EOPNOTSUPP && *s.why, name);
			free_set(&s);
		}
	}
}

/* direct2 with fewer owners than ranks, and with several shares of each. */
static void test_owners(void)
{
	static const enum swc_coll colls[] = { SWC_ALLREDUCE, SWC_REDUCE, SWC_BROADCAST };

	for (size_t i = 0; i < sizeof(colls) / sizeof(colls[0]); i++) {
		struct swc_plan_args a = { .coll = colls[i], .algo = SWC_ALGO_DIRECT2 };
		struct tally t = { 0 };
		char name[80];

		for (uint32_t n = 2; n <= 64; n++) {
			a.nranks = a.nlocal = n;
			a.root = swc_coll_has_root((uint8_t)a.coll) ? n / 3 : 0;
			for (a.param = 1; a.param < (int32_t)n;
			     a.param = a.param < 3 ? a.param + 1 : a.param * 3)
				check_one(&t, &a, (n + (uint32_t)a.param) % PLACINGS);
			a.param = (int32_t)n - 1;
			a.channels = 2;
			check_one(&t, &a, n % PLACINGS);
			a.channels = 0;
			for (a.param = (int32_t)n; a.param <= 4 * (int32_t)n; a.param += (int32_t)n)
				check_one(&t, &a, n % PLACINGS);
		}
		snprintf(name, sizeof(name), "direct2 %s, number of shares", swc_coll_name(a.coll));
		t.wrong += t.refused;
		report(&t, name);
	}
}

/* grouped with every number of groups. */
static void test_groups(void)
{
	struct swc_plan_args a = { .coll = SWC_ALLREDUCE, .algo = SWC_ALGO_GROUPED };
	struct tally t = { 0 };

	for (uint32_t n = 4; n <= 64; n++) {
		a.nranks = a.nlocal = n;
		for (uint32_t groups = 2; groups <= n / 2; groups++) {
			if (n % groups)
				continue;
			a.param = (int32_t)groups;
			for (a.channels = 0; a.channels <= 3; a.channels += 3)
				check_one(&t, &a, (n + groups + a.channels) % PLACINGS);
		}
	}
	t.wrong += t.refused;
	report(&t, "grouped allreduce");
}

/* Blocks that a plan moves between groups of ranks, in vectors. */
static double between_groups(enum swc_algo algo, int32_t param, uint32_t nranks, uint32_t size)
{
	struct swc_plan_args a = { .coll = SWC_ALLREDUCE,
				   .algo = algo,
				   .param = param,
				   .nranks = nranks,
				   .nlocal = nranks };
	struct swc_topo topo = swc_topo_flat(1);
	double sum = 0;

	topo.nlocal = topo.nranks = nranks;
	a.topo = &topo;
	for (a.rank = 0; a.rank < nranks; a.rank++) {
		struct swc_plan_view v;
		size_t bytes;
		void *plan;

		if (swc_plan_build(&a, &plan, &bytes, NULL, 0))
			abort();
		v = swc_walk_view(plan);
		for (uint32_t i = 0; i < v.hdr->nxfers; i++)
			if (v.xfers[i].rank / size != a.rank / size)
				sum += (double)v.xfers[i].nblocks / v.nblocks;
		free(plan);
	}
	return sum;
}

static void test_between_groups(void)
{
	bool good = true;

	for (uint32_t groups = 2; groups <= 8; groups *= 2) {
		double direct = between_groups(SWC_ALGO_DIRECT2, SWC_PARAM_DEFAULT, 16,
					       16 / groups);
		double grouped = between_groups(SWC_ALGO_GROUPED, (int32_t)groups, 16, 16 / groups);

		good &= fabs(direct - 32.0 * (groups - 1) / groups) < 1e-6 &&
			fabs(grouped - 2.0 * (groups - 1)) < 1e-6;
		printf("# %u groups of 16 ranks: %g vectors between them, direct2 %g\n", groups,
		       grouped, direct);
	}
	ok(good, "grouped moves only sums and results between groups");
}

/* ---- random networks ---- */

/* Make the text of a shape with up to @max nodes in 1 to 4 dimensions. */
static void random_shape(char *text, size_t bytes, uint32_t max)
{
	uint32_t ndims = 1 + rnd(4), left = max;
	size_t used = (size_t)snprintf(text, bytes, rnd(8) ? "torus:" : "mesh:");

	for (uint32_t i = 0; i < ndims; i++) {
		uint32_t d = ndims == 1 ? 2 + rnd(max - 1) : 1 + rnd(left < 16 ? left : 16);

		left /= d;
		used += (size_t)snprintf(text + used, bytes - used, "%s%u", i ? "x" : "", d);
	}
}

/* A parameter that the algorithm takes, or its own choice; few pieces, as many take long to verify. */
static int32_t random_param(int algo)
{
	char name[40];
	int32_t param = SWC_PARAM_DEFAULT;

	if (swc_algo_info((unsigned int)algo)->pieces)
		return 1 + (int32_t)rnd(4);
	snprintf(name, sizeof(name), "%s:%u", swc_algo_name((unsigned int)algo), rnd(9));
	if (swc_algo_info((unsigned int)algo)->param && rnd(2))
		swc_algo_parse(name, &param);
	return param;
}

static void check_topo(struct tally *t, int algo, enum swc_coll coll, const struct swc_topo *topo,
		       uint32_t ports)
{
	struct swc_plan_args a = { .coll = coll,
				   .algo = algo,
				   .param = random_param(algo),
				   .topo = topo,
				   .nranks = topo->nranks,
				   .ports = ports };

	if (swc_coll_has_root((uint8_t)coll))
		a.root = rnd(a.nranks);
	check_one(t, &a, rnd(PLACINGS));
}

/* Verify every algorithm that works between nodes, on random networks. */
static void test_networks(const char *what, uint32_t rounds, bool nodes)
{
	struct tally t[SWC_ALGO_NR] = { 0 };
	char text[1000], why[200], name[80];

	for (uint32_t i = 0; i < rounds; i++) {
		struct swc_topo topo;
		uint32_t ports;

		random_shape(text, 100, nodes ? 32 : short_form() ? MAX_RANKS / 2 : MAX_RANKS);
		if (nodes) {
			size_t used = strlen(text);

			if (swc_topo_parse(&topo, text, why, sizeof(why)))
				abort();
			/* One number of ranks for all nodes, or one for each. */
			for (uint32_t k = 0; k < (i % 2 ? 1 : topo.nnodes); k++)
				used += (size_t)snprintf(text + used, sizeof(text) - used, "%c%u",
							 k ? ',' : '*', 1 + rnd(MAX_RANKS / 32));
		}
		if (swc_topo_parse(&topo, text, why, sizeof(why)))
			abort();
		ports = rnd(3) ? 0 : 1 + rnd(2 * topo.ndims);
		for (int algo = 0; algo < SWC_ALGO_NR; algo++) {
			const struct swc_algo_info *info = swc_algo_info((unsigned int)algo);
			enum swc_coll coll = rnd(SWC_COLL_NR);

			if (info->one_node)
				continue;
			/*
			 * Most algorithms have few collectives, and only allreduce has a hierarchy.
			 */
			if (!(info->colls & 1u << coll) || (nodes && rnd(4)))
				coll = SWC_ALLREDUCE;
			if (info->colls & 1u << coll)
				check_topo(&t[algo], algo, coll, &topo, ports);
		}
		swc_topo_free(&topo);
	}
	for (int algo = 0; algo < SWC_ALGO_NR; algo++) {
		if (swc_algo_info((unsigned int)algo)->one_node)
			continue;
		snprintf(name, sizeof(name), "%s on %s", swc_algo_name((unsigned int)algo), what);
		report(&t[algo], name);
	}
}

/* ---- faults that the verifier must find ---- */

static struct swc_plan_xfer *xfer(struct set *s, uint32_t r, uint32_t i)
{
	return (struct swc_plan_xfer *)&s->view[r].xfers[i];
}

static struct swc_plan_step *step(struct set *s, uint32_t r, uint32_t i)
{
	return (struct swc_plan_step *)&s->view[r].steps[i];
}

static void no_final(struct set *s)
{
	for (uint32_t i = 0; i < header(s, 1)->nxfers; i++)
		xfer(s, 1, i)->flags &= (uint8_t)~SWC_XFER_FINAL;
}

static void two_finals(struct set *s)
{
	xfer(s, 2, header(s, 2)->nxfers - 1)->flags |= SWC_XFER_FINAL;
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

/* Verify plans for disjoint buffers in place: a swap writes what the partner reads. */
static void pretend_in_place(struct set *s)
{
	for (uint32_t r = 0; r < s->nranks; r++) {
		header(s, r)->flags = 0;
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
	header(s, 3)->family++;
}

/*
 * Swap SYNC and LOCAL, so that the result is copied to RECV before the others have finished reading
 * it.
 */
static void sync_last(struct set *s)
{
	struct swc_plan_step *second = step(s, 1, 1), *third = second + 1, sync = *second;

	*second = *third;
	*third = sync;
	third->first_xfer = header(s, 1)->nxfers;
}

static void no_sync(struct set *s)
{
	for (uint32_t r = 0; r < s->nranks; r++) {
		struct swc_plan_header *h = header(s, r);

		((struct swc_plan_channel *)(h + 1))->nsteps = 0;
		h->nsteps = 0;
		h->total_bytes -= sizeof(struct swc_plan_step);
		s->bytes[r] = h->total_bytes;
	}
}

/* The second channel works on the blocks of the first. */
static void two_channels(struct set *s)
{
	for (uint32_t r = 0; r < s->nranks; r++) {
		uint32_t n = header(s, r)->nxfers;

		for (uint32_t i = n / 2; i < n; i++)
			xfer(s, r, i)->first_block -= s->nranks;
	}
}

/* Networks that plans are verified on instead of the one that they were built for. */
static struct swc_topo pairs = { .kind = SWC_TOPO_SWITCH, .nnodes = 2, .nranks = 4, .nlocal = 2 };
static struct swc_topo five = { .kind = SWC_TOPO_SWITCH, .nnodes = 5, .nranks = 5, .nlocal = 1 };

static void on_pairs(struct set *s)
{
	s->args.topo = &pairs;
}

static void on_five(struct set *s)
{
	s->args.topo = &five;
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
	{ "a message without a receive", SWC_ALGO_RECDOUB, SWC_ALLREDUCE, OUT_OF_PLACE, no_partner,
	  "waits for ever" },
	{ "another order of reduction", SWC_ALGO_DIRECT1, SWC_ALLREDUCE, OUT_OF_PLACE, other_order,
	  "another order" },
	{ "direct1 in place without scratch", SWC_ALGO_DIRECT1, SWC_ALLREDUCE, OUT_OF_PLACE,
	  pretend_in_place, "may still be" },
	{ "a swap that writes what it sends", SWC_ALGO_RECDOUB, SWC_ALLREDUCE, IN_PLACE,
	  same_buffer, "writes what" },
	{ "plans of two families", SWC_ALGO_DIRECT2, SWC_ALLREDUCE, OUT_OF_PLACE, other_family,
	  "family" },
	{ "a result written before the barrier", SWC_ALGO_DIRECT1, SWC_ALLREDUCE, IN_PLACE,
	  sync_last, "may still be" },
	{ "a barrier without a barrier", SWC_ALGO_DIRECT2, SWC_BARRIER, OUT_OF_PLACE, no_sync,
	  "leaves the barrier" },
	{ "a barrier of one node", SWC_ALGO_DIRECT2, SWC_BARRIER, OUT_OF_PLACE, on_pairs,
	  "leaves the barrier" },
	{ "a local step between nodes", SWC_ALGO_DIRECT2, SWC_ALLREDUCE, OUT_OF_PLACE, on_pairs,
	  "another node" },
	{ "a rank without a plan", SWC_ALGO_RING, SWC_ALLREDUCE, OUT_OF_PLACE, on_five,
	  "ranks on the nodes" },
	{ "two channels on the same blocks", SWC_ALGO_RING, SWC_ALLREDUCE, OUT_OF_PLACE,
	  two_channels, "may still be" },
};

static void test_faults(void)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct swc_plan_args a = { .coll = faults[i].coll,
					   .algo = faults[i].algo,
					   .param = SWC_PARAM_DEFAULT,
					   .nranks = 4,
					   .nlocal = 4 };
		struct set s;
		char name[100];
		int ret;

		if (faults[i].spoil == two_channels)
			a.channels = 2;
		ret = build_set(&s, NULL, a, faults[i].placing);

		if (!ret) {
			faults[i].spoil(&s);
			ret = verify_set(&s);
		}
		snprintf(name, sizeof(name), "the verifier finds: %s", faults[i].name);
		ok(ret == -EINVAL && strstr(s.why, faults[i].text), name);
		if (ret != -EINVAL || !strstr(s.why, faults[i].text))
			printf("# %d, \"%s\"\n", ret, s.why);
		free_set(&s);
	}
}

static void test_arguments(void)
{
	struct swc_plan_args a = {
		.nranks = 300, .nlocal = 300, .algo = SWC_ALGO_DIRECT2, .param = SWC_PARAM_DEFAULT
	};
	size_t bytes;
	void *plan;

	ok(swc_plan_build(&a, &plan, &bytes, NULL, 0) == -EOPNOTSUPP,
	   "direct2 for more ranks than its limit is refused");
	a.nranks = a.nlocal = 4;
	a.nlocal = 2;
	ok(swc_plan_build(&a, &plan, &bytes, NULL, 0) == -EOPNOTSUPP,
	   "direct2 across nodes is refused");
	a.nlocal = 4;
	a.param = 6;
	ok(swc_plan_build(&a, &plan, &bytes, NULL, 0) == -EOPNOTSUPP,
	   "direct2 with more shares than ranks that are no multiple is refused");
	a.nranks = a.nlocal = 2;
	a.param = 2 * (SWC_MAX_CHANNELS + 1);
	ok(swc_plan_build(&a, &plan, &bytes, NULL, 0) == -EOPNOTSUPP,
	   "direct2 with more channels than a plan may have is refused");
	a.nranks = a.nlocal = 4;
	a.param = 0;
	ok(swc_plan_build(&a, &plan, &bytes, NULL, 0) == -EOPNOTSUPP,
	   "direct2 without shares is refused");
	a.param = SWC_PARAM_DEFAULT;
	a.rank = 4;
	ok(swc_plan_build(&a, &plan, &bytes, NULL, 0) == -EINVAL, "a rank out of range is refused");
	a.rank = 0;
	a.root = 1;
	ok(swc_plan_build(&a, &plan, &bytes, NULL, 0) == -EINVAL,
	   "a root of a collective without one is refused");
	ok(swc_algo_parse("ring", NULL) == SWC_ALGO_RING &&
		   swc_algo_parse("rin", NULL) == -EINVAL && !swc_algo_name(SWC_ALGO_NR),
	   "names of algorithms: parse, unknown name, end of the list");
}

/* Does a plan access these blocks of a rank's RECV? */
static bool accesses(const struct swc_plan_view *v, uint32_t rank, uint32_t first, uint32_t nblocks)
{
	for (uint32_t i = 0; i < v->hdr->nxfers; i++) {
		const struct swc_plan_xfer *x = &v->xfers[i];

		if (x->buf == SWC_BUF_RECV && x->rank == rank && x->first_block < first + nblocks &&
		    first < x->first_block + x->nblocks)
			return true;
	}
	return false;
}

/*
 * Plans that leave out the copy of the own shard do not access its place, and are right if it is
 * there already.
 */
static void test_others_of(struct swc_plan_args *a)
{
	bool root_only = a->coll == SWC_BROADCAST, touched = false;
	char name[200];
	struct set s;

	if (build_set(&s, NULL, *a, IN_PLACE))
		abort();
	for (uint32_t r = 0; r < a->nranks; r++) {
		uint32_t own = root_only ? a->root : r;

		touched |= accesses(&s.view[r], own,
				    root_only ? 0 : own * s.view[r].hdr->shard_blocks,
				    s.view[r].hdr->shard_blocks);
	}
	snprintf(name, sizeof(name), "%s: %s for %u ranks leaves out own shards",
		 swc_algo_name(a->algo), swc_coll_name(a->coll), a->nranks);
	ok(!touched && !verify_set(&s), name);
	free_set(&s);
}

static void test_others(void)
{
	for (uint32_t n = 2; n < 9; n++)
		for (int i = 0; i < 4; i++) {
			struct swc_plan_args a = {
				.coll = i & 1 ? SWC_BROADCAST : SWC_ALLGATHER,
				.algo = i & 2 ? SWC_ALGO_DIRECT1 : SWC_ALGO_DIRECT2,
				.param = SWC_PARAM_DEFAULT,
				.nranks = n,
				.nlocal = n,
				.root = i & 1,
				.others_only = true,
			};

			test_others_of(&a);
		}
}

static void test_large(void)
{
	struct swc_plan_args a = { .nranks = 256,
				   .nlocal = 256,
				   .algo = SWC_ALGO_DIRECT2,
				   .param = SWC_PARAM_DEFAULT,
				   .rank = 255 };
	struct swc_plan_view v;
	size_t bytes = 0;
	void *plan = NULL;
	char why[100];
	int ret = swc_plan_build(&a, &plan, &bytes, NULL, 0);

	ok(!ret && !swc_plan_check(plan, bytes, &v, why, sizeof(why)),
	   "a plan of direct2 for 256 ranks");
	free(plan);
	plan = NULL;
	a = (struct swc_plan_args){ .nranks = 4096, .nlocal = 1, .rank = 9, .algo = SWC_ALGO_RING };
	ret = swc_plan_build(&a, &plan, &bytes, NULL, 0);
	ok(!ret && !swc_plan_check(plan, bytes, &v, why, sizeof(why)),
	   "a plan of ring for 4096 ranks");
	free(plan);
	plan = NULL;
	a = (struct swc_plan_args){ .nranks = SWC_MAX_RANKS,
				    .nlocal = 1,
				    .rank = SWC_MAX_RANKS - 1,
				    .algo = SWC_ALGO_RING };
	ret = swc_plan_build(&a, &plan, &bytes, NULL, 0);
	ok(!ret && !swc_plan_check(plan, bytes, &v, why, sizeof(why)) &&
		   bytes <= SWC_MAX_PLAN_BYTES,
	   "a plan of ring for 65536 ranks");
	free(plan);
	plan = NULL;
	a.algo = SWC_ALGO_ROTATE;
	a.coll = SWC_ALLTOALL;
	ret = swc_plan_build(&a, &plan, &bytes, NULL, 0);
	ok(!ret && !swc_plan_check(plan, bytes, &v, why, sizeof(why)) &&
		   bytes <= SWC_MAX_PLAN_BYTES,
	   "a plan of rotate for 65536 ranks");
	free(plan);
}

int main(void)
{
	printf("TAP version 13\n");
	seed_rnd();
	test_algos();
	test_owners();
	test_groups();
	test_between_groups();
	test_networks("random tori", rounds_of(RANDOM_TORI), false);
	test_networks("random nodes with several ranks", rounds_of(RANDOM_NODES), true);
	test_faults();
	test_arguments();
	test_others();
	test_large();
	return done();
}

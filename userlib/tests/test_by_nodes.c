// SPDX-License-Identifier: GPL-2.0-only
/*
 * The all-to-all by nodes: every number of nodes and ranks each up to 64 ranks, proved on all ranks; how many
 * messages and connections there are between nodes; its cost and the choice. SWC_TEST_SEED repeats the random
 * ones. SWC_TEST_SHORT=1: each fourth combination of shape, segments and placing. TAP on stdout.
 */
#include <math.h>

#include "plan/model/by_nodes_cost.h"
#include "plan/select/choose.h"
#include "plan/without_copies.h"
#include "plans.h"
#include "random.h"
#include "tap.h"
#include "topos.h"

#define RANDOM 60

static struct swc_plan_args by_nodes(int32_t segments)
{
	return (struct swc_plan_args){ .coll = SWC_ALLTOALL,
				       .algo = SWC_ALGO_BY_NODES,
				       .param = segments };
}

static int check_shape(const char *shape, uint32_t nodes)
{
	static unsigned int turn;
	int bad = 0;

	for (int32_t s = 1; s == 1 || s <= (int32_t)nodes / 2; s += 1 + s / 4)
		for (int placing = OUT_OF_PLACE; placing <= MIXED; placing++, turn++)
			if (!short_form() || turn % 4 == 0)
				bad |= check_set(shape, by_nodes(s), (enum placing)placing);
	return bad;
}

static void test_numbers(void)
{
	int bad = 0, shapes = 0;
	char shape[40], name[80];

	for (uint32_t p = 4; p <= 64; p++)
		for (uint32_t local = 2; local <= p / 2; local++) {
			if (p % local)
				continue;
			snprintf(shape, sizeof(shape), "switch:%u*%u", p / local, local);
			bad |= check_shape(shape, p / local);
			shapes++;
		}
	snprintf(name, sizeof(name), "up to 64 ranks: %d shapes, all segments", shapes);
	ok(!bad && shapes > 100, name);
}

/* Of a set: messages and pairs of ranks that exchange, at most between two nodes, and of a node in all. */
struct between {
	uint32_t messages, pairs, node;
};

static bool count(const char *text, struct swc_plan_args args, struct between *most)
{
	struct set s;
	bool good = !build_set(&s, text, args, MIXED);
	uint32_t nodes = good ? s.topo.nnodes : 0, n = s.nranks;
	uint32_t *messages = calloc((size_t)nodes * nodes + 1, sizeof(*messages));
	uint32_t *pairs = calloc((size_t)nodes * nodes + 1, sizeof(*pairs));
	bool *seen = calloc((size_t)n * n + 1, sizeof(*seen));

	*most = (struct between){ 0 };
	if (!messages || !pairs || !seen)
		abort();
	for (uint32_t r = 0; good && r < n; r++)
		for (uint32_t i = 0; i < s.view[r].hdr->nsteps; i++) {
			const struct swc_plan_step *step = &s.view[r].steps[i];

			for (uint32_t k = 0; step->kind == SWC_STEP_NET && k < step->nsend; k++) {
				uint32_t to = s.view[r].xfers[step->first_xfer + k].rank;
				size_t at = (size_t)swc_topo_node_of(&s.topo, r) * nodes +
					    swc_topo_node_of(&s.topo, to);

				messages[at]++;
				pairs[at] += !seen[(size_t)r * n + to];
				seen[(size_t)r * n + to] = true;
			}
		}
	for (uint32_t a = 0; a < nodes; a++) {
		uint32_t node = 0;

		for (uint32_t b = 0; b < nodes; b++) {
			size_t at = (size_t)a * nodes + b;

			if (a == b)
				continue;
			good &= messages[at] > 0;
			node += pairs[at];
			most->messages = messages[at] > most->messages ? messages[at]
								       : most->messages;
			most->pairs = pairs[at] > most->pairs ? pairs[at] : most->pairs;
		}
		most->node = node > most->node ? node : most->node;
	}
	free(messages);
	free(pairs);
	free(seen);
	free_set(&s);
	return good;
}

static bool has_between(const char *text, int32_t segments, struct between want)
{
	struct between is;
	bool good = count(text, by_nodes(segments), &is) && is.messages == want.messages &&
		    is.pairs == want.pairs && is.node == want.node;

	if (!good)
		printf("# %s, %d segments: %u messages, %u pairs of ranks, %u of a node\n", text,
		       segments, is.messages, is.pairs, is.node);
	return good;
}

static void test_between(void)
{
	struct between is;

	ok(has_between("switch:64*8", 1, (struct between){ 1, 1, 63 }) &&
		   has_between("switch:32*4", 1, (struct between){ 1, 1, 31 }) &&
		   has_between("switch:32*4", 4, (struct between){ 1, 1, 31 }) &&
		   has_between("switch:48*8", 3, (struct between){ 1, 1, 47 }),
	   "a message and a connection for each pair of nodes");
	ok(has_between("switch:3*4", 1, (struct between){ 2, 2, 4 }) &&
		   has_between("switch:2*8", 1, (struct between){ 4, 4, 4 }) &&
		   has_between("switch:61*8", 1, (struct between){ 2, 2, 60 + 7 }),
	   "few nodes, or shares that end within a pair: several ranks for some pairs");
	ok(count("switch:3*4",
		 (struct swc_plan_args){ .coll = SWC_ALLTOALL,
					 .algo = SWC_ALGO_ROTATE,
					 .param = SWC_PARAM_DEFAULT },
		 &is) &&
		   is.messages == 16 && is.pairs == 16 && is.node == 32,
	   "all ranks with all others: 16 of 4 ranks each");
}

/* Is what each rank carries, gathers and sends even? */
static void test_even(void)
{
	static const char *const texts[] = { "switch:13*5", "switch:2*8", "switch:3*4",
					     "switch:16*4" };
	bool good = true;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct set s;

		good &= !build_set(&s, texts[i], by_nodes(1), OUT_OF_PLACE);
		for (uint32_t r = 0; good && r < s.nranks; r++) {
			uint32_t gathered = 0;

			for (uint32_t k = 0; s.view[r].steps[k].kind == SWC_STEP_LOCAL; k++)
				gathered++;
			good &= gathered == s.topo.nnodes &&
				s.view[r].hdr->window[SWC_BUF_SCRATCH].nblocks == s.nranks;
		}
		free_set(&s);
	}
	ok(good, "each rank gathers as much as its own vector");
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-5 * fabs(b) + 1e-12;
}

static bool same_cost(const struct swc_topo *t, const char *text, int32_t segments)
{
	struct swc_plan_args a = by_nodes(segments);
	struct swc_cost fast, all;
	int found, there;
	bool good;

	a.topo = t;
	a.nranks = t->nranks;
	found = swc_by_nodes_cost(&a, &fast);
	there = swc_cost_compute(&a, &all, NULL, NULL, NULL, 0);
	if (found || there)
		return found == -EOPNOTSUPP && there == -EOPNOTSUPP;
	good = fast.eager.steps == all.eager.steps && fast.eager.hops == all.eager.hops &&
	       near(fast.eager.load, all.eager.load) && near(fast.phased.load, all.phased.load) &&
	       fast.phased.steps == all.phased.steps && near(fast.psi_xi, all.psi_xi) &&
	       fast.extra == all.extra && fast.copy_steps == all.copy_steps &&
	       fast.copies == all.copies && near(fast.copied, all.copied) &&
	       fast.connections == all.connections;
	if (!good)
		printf("# %s, %d segments: %u steps, %llu hops, load %g (%g), extra %llu, copies %llu in"
		       " %llu (%g), %u connections; by plans %u, %llu, %g (%g), %llu, %llu in %llu"
		       " (%g), %u\n",
		       text, segments, fast.eager.steps, (unsigned long long)fast.eager.hops,
		       fast.eager.load, fast.phased.load, (unsigned long long)fast.extra,
		       (unsigned long long)fast.copies, (unsigned long long)fast.copy_steps,
		       fast.copied, fast.connections, all.eager.steps,
		       (unsigned long long)all.eager.hops, all.eager.load, all.phased.load,
		       (unsigned long long)all.extra, (unsigned long long)all.copies,
		       (unsigned long long)all.copy_steps, all.copied, all.connections);
	return good;
}

static bool same_costs(const char *text)
{
	struct swc_topo t = topo_of(text);
	bool good = true;

	for (int32_t s = 1; s <= 16; s += 1 + s / 3)
		good &= same_cost(&t, text, s);
	swc_topo_free(&t);
	return good;
}

static void test_costs(void)
{
	static const char *const texts[] = {
		"switch:2*2",	     "switch:2*8",	   "switch:3*4",
		"switch:4*4",	     "switch:9*2",	   "switch:16*8",
		"switch:17*4",	     "switch:40*3",	   "torus:4x4*2",
		"torus:5x3*4",	     "ring:7*3",	   "mesh:3x4*2",
		"torus:2x2x4*2",     "ring:8*4",	   "torus:1x6*5",
		"switch:9*4@2rails", "switch:12*8@8rails", "switch:5*6@4rails",
		"switch:5*1",	     "switch:3*2,1,4",	   "torus:4x4@10Gbps/40Gbps",
	};
	bool good = true;
	char text[60];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		good &= same_costs(texts[i]);
	for (int i = 0; i < RANDOM; i++) {
		if (rnd(2))
			snprintf(text, sizeof(text), "switch:%u*%u", 2 + rnd(30), 2 + rnd(7));
		else
			snprintf(text, sizeof(text), "%s:%ux%u*%u", rnd(2) ? "torus" : "mesh",
				 1 + rnd(6), 2 + rnd(5), 2 + rnd(4));
		good &= same_costs(text);
	}
	ok(good, "the cost without plans is that of all plans");
}

/* The same in local steps, one copy each. */
static void test_without_copies(void)
{
	struct set s;
	bool good = !build_set(&s, "switch:6*4", by_nodes(1), IN_PLACE);

	for (uint32_t r = 0; good && r < s.nranks; r++) {
		good = !swc_plan_without_copies(&s.plan[r], &s.bytes[r], s.why, sizeof(s.why));
		s.view[r] = view_of(s.plan[r], s.bytes[r]);
		for (uint32_t i = 0; i < s.view[r].hdr->nsteps; i++)
			good &= s.view[r].steps[i].kind != SWC_STEP_COPY;
	}
	ok(good && !verify_both(&s), "the same without copy steps");
	free_set(&s);
}

static void test_memory(void)
{
	static const int32_t segments[] = { 2, 4, 8 };
	struct set s;
	bool good = true;

	for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++) {
		good &= !build_set(&s, "switch:16*2", by_nodes(segments[i]), IN_PLACE);
		for (uint32_t r = 0; good && r < s.nranks; r++)
			good &= s.view[r].hdr->window[SWC_BUF_SCRATCH].nblocks ==
				2 * s.nranks / (uint32_t)segments[i];
		free_set(&s);
	}
	ok(good, "segments bound the scratch memory");
}

static bool is_refused(const char *text, int32_t segments)
{
	struct set s;
	int ret = build_set(&s, text, by_nodes(segments), OUT_OF_PLACE);

	free_set(&s);
	return ret == -EOPNOTSUPP && strstr(s.why, "two ranks each");
}

static void test_refusals(void)
{
	ok(is_refused("switch:8", 1) && is_refused("switch:1*8", 1) &&
		   is_refused("switch:3*2,1,4", 1) && is_refused("switch:5*2", 3) &&
		   is_refused("switch:4*2", 0) && !is_refused("switch:5*2", 2),
	   "one rank a node, one node, uneven nodes, and too many segments are refused");
}

/* @connections: that a user may have; 0: as many as the module allows by itself. */
static struct swc_choice choice_within(const char *text, uint64_t bytes, uint32_t connections)
{
	struct swc_topo t = topo_of(text);
	struct swc_choices c;
	struct swc_choice got;

	swc_choices_init(&c, &t, false);
	if (connections)
		c.connections = connections;
	got = swc_choices_take(&c, SWC_ALLTOALL, SWC_F32, SWC_SUM, bytes, 1);
	printf("# %llu bytes on %s, %u connections: %s:%d\n", (unsigned long long)bytes, text,
	       c.connections, swc_algo_name(got.algo), got.param);
	swc_choices_free(&c);
	swc_topo_free(&t);
	return got;
}

static struct swc_choice choice(const char *text, uint64_t bytes)
{
	return choice_within(text, bytes, 0);
}

static bool chooses(const char *text, uint64_t bytes, enum swc_algo algo)
{
	return choice(text, bytes).algo == algo;
}

static void test_choice(void)
{
	struct swc_choice got;

	ok(chooses("switch:64*8@100Gbps", 512 << 10, SWC_ALGO_BY_NODES) &&
		   chooses("switch:256*8@100Gbps", 1 << 20, SWC_ALGO_BY_NODES) &&
		   chooses("switch:1024*8@100Gbps", 4 << 20, SWC_ALGO_BY_NODES),
	   "auto takes it for middle shards");
	ok(chooses("switch:1024*8@100Gbps", 64 << 10, SWC_ALGO_BRUCK) &&
		   chooses("switch:64*8@100Gbps", 256 << 20, SWC_ALGO_ROTATE) &&
		   !chooses("switch:64@100Gbps", 512 << 10, SWC_ALGO_BY_NODES),
	   "not for the smallest and the largest ones, nor with one rank a node");
	got = choice("switch:1024*8@100Gbps", 64 << 20);
	ok(got.algo == SWC_ALGO_BY_NODES && got.param >= 8,
	   "large ones, too, in several segments, where each rank would have thousands of connections");
	ok(chooses("switch:16*8@100Gbps", 256 << 20, SWC_ALGO_ROTATE) &&
		   chooses("switch:1024*8@100Gbps", 1ull << 40, SWC_ALGO_ROTATE),
	   "but not of few ranks, nor if segments would be too large");
	/* All 8 ranks of a node with the 504 of others, within a quarter. */
	ok(choice_within("switch:64*8@100Gbps", 256 << 20, 4 * 8 * 504).algo == SWC_ALGO_ROTATE &&
		   choice_within("switch:64*8@100Gbps", 256 << 20, 4 * 8 * 504 - 1).algo ==
			   SWC_ALGO_BY_NODES &&
		   choice_within("switch:1024*8@100Gbps", 1 << 30, UINT32_MAX).algo ==
			   SWC_ALGO_ROTATE,
	   "how many connections are too many follows from the user's quota");
}

int main(void)
{
	printf("TAP version 13\n");
	seed_rnd();
	test_numbers();
	test_between();
	test_even();
	test_costs();
	test_without_copies();
	test_memory();
	test_refusals();
	test_choice();
	return done();
}

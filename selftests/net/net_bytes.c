// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bytes that each network card of a torus sends, own and forwarded ones, against the loads of links by the planner's
 * model, for every algorithm. So it shows that the addresses that the library pairs, the routes that packets take, and
 * the routes that the model counts are the same. Runs on every node of a cluster at once, with one rank on each:
 * tools/vm/run --topology torus:3x3.
 *
 *	net_bytes [WORD]	only algorithms with WORD in their names
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "coll.h"
#include "net.h"

#include "plan/model/routes.h"
#include "plan/plan.h"

#define BYTES (2 << 20)
#define TRIES 5 /* a busy machine sends packets twice */
#define ALL_MS 800000
#define NEAR 0.03 /* of the most loaded link */
/* Ethernet, IP, UDP and RoCE headers with the checksum, for 4096 bytes. */
#define HEADERS (1 + 58 / 4096.0)

static struct net_layout layout;
static struct swc_topo topo;
static const char *wanted = "";

struct bytes {
	double port[2 * SWC_TOPO_DIMS];
};

/* What the ports of all nodes have sent, by plus and minus port of each dimension. */
static int read_cards(struct bytes *b)
{
	for (uint32_t i = 0; i < 2 * topo.ndims; i++) {
		unsigned long long n;
		char path[80];
		FILE *f;

		snprintf(path, sizeof(path), "/sys/class/net/nic%u/statistics/tx_bytes", i);
		f = fopen(path, "r");
		if (!f || fscanf(f, "%llu", &n) != 1) {
			ksft_print_msg("%s: cannot be read\n", path);
			return -ENOENT;
		}
		fclose(f);
		b->port[i] = (double)n;
	}
	return 0;
}

/* By the plans of all ranks. An error if the algorithm has none here. */
static int expect(const struct swc_plan_args *args, struct bytes *all)
{
	struct swc_links links = swc_links_of(&topo);
	struct swc_plan_args a = *args;
	struct swc_route route = { 0 };

	memset(all, 0, topo.nnodes * sizeof(*all));
	for (a.rank = 0; a.rank < topo.nranks; a.rank++) {
		const struct swc_plan_channel *chan;
		const struct swc_plan_step *step;
		const struct swc_plan_xfer *x;
		const struct swc_plan_header *h;
		size_t bytes;
		void *plan;

		if (swc_plan_build(&a, &plan, &bytes, NULL, 0))
			return -EOPNOTSUPP;
		h = plan;
		chan = (const void *)(h + 1);
		step = (const void *)(chan + h->nchannels);
		x = (const void *)(step + h->nsteps);
		for (uint32_t c = 0; c < h->nchannels; c++)
			for (uint32_t i = 0; i < chan[c].nsteps; i++) {
				const struct swc_plan_step *s = &step[chan[c].first_step + i];

				for (uint32_t k = 0; s->kind == SWC_STEP_NET && k < s->nsend; k++) {
					const struct swc_plan_xfer *sent = &x[s->first_xfer + k];

					CHECK_EQ(swc_route_set(&route, &links, c, a.rank,
							       sent->rank),
						 0);
					for (uint32_t n = 0; n < route.n; n++)
						all[route.link[n] / 2 / topo.ndims]
							.port[route.link[n] % (2 * topo.ndims)] +=
							HEADERS * BYTES * sent->nblocks /
							h->nshards / h->shard_blocks;
				}
			}
		free(plan);
	}
	free(route.link);
	return 0;
}

/* The largest difference, as a share of the largest expected load. */
static double worst(const struct bytes *want, const struct bytes *got)
{
	double most = 0, off = 0;

	for (uint32_t n = 0; n < topo.nnodes; n++)
		for (uint32_t i = 0; i < 2 * topo.ndims; i++) {
			most = fmax(most, want[n].port[i]);
			off = fmax(off, fabs(got[n].port[i] - want[n].port[i]));
		}
	return off / most;
}

static void tell(const struct bytes *want, const struct bytes *got)
{
	for (uint32_t n = 0; n < topo.nnodes; n++)
		for (uint32_t i = 0; i < 2 * topo.ndims; i++)
			ksft_print_msg("node %u, card %u: %.0f bytes, %.0f by the model\n", n, i,
				       got[n].port[i], want[n].port[i]);
}

/* One operation: what it adds to the counters of each node. */
static int measure(struct swingcoll_bootstrap *boot, struct swingcoll_comm *comm,
		   const struct coll_case *c, void *mem, struct bytes *got)
{
	struct bytes before, after;

	CHECK_EQ(boot->allgather(boot->arg, &before, got, sizeof(before)), 0);
	CHECK_EQ(read_cards(&before), 0);
	/* No card sends before all have been read. */
	CHECK_EQ(boot->allgather(boot->arg, &before, got, sizeof(before)), 0);
	CHECK_EQ(coll_run(c, mem, comm, 1), 0);
	CHECK_EQ(boot->allgather(boot->arg, &before, got, sizeof(before)), 0);
	CHECK_EQ(read_cards(&after), 0);
	for (uint32_t i = 0; i < 2 * topo.ndims; i++)
		after.port[i] -= before.port[i];
	CHECK_EQ(boot->allgather(boot->arg, &after, got, sizeof(after)), 0);
	return 0;
}

static int one_algo(struct swingcoll_bootstrap *boot, int rank, enum swc_algo algo)
{
	/* Few pieces, whose headers are few. */
	bool pieces = swc_algo_info(algo)->pieces;
	const char *name = pieces ? "split:2" : swingcoll_algo_name((int)algo);
	struct swingcoll_comm_opts opts = { .algo = name, .timeout_ms = TESTLIB_EVENT_MS };
	bool sum = swc_algo_info(algo)->colls & 1u << SWC_ALLREDUCE;
	struct swc_plan_args args = { .coll = sum ? SWC_ALLREDUCE : SWC_ALLTOALL,
				      .algo = algo,
				      .param = pieces ? 2 : SWC_PARAM_DEFAULT,
				      .topo = &topo,
				      .nranks = topo.nranks };
	struct coll_case c = { .coll = sum ? SWINGCOLL_ALLREDUCE : SWINGCOLL_ALLTOALL,
			       .dtype = SWINGCOLL_I32,
			       .count = BYTES / 4 / (sum ? 1 : topo.nranks) };
	struct bytes *want = calloc(topo.nnodes, sizeof(*want)),
		     *got = calloc(topo.nnodes, sizeof(*got));
	struct swingcoll_comm *comm;
	double off = INFINITY;
	void *mem;

	CHECK(want && got);
	if (!strstr(name, wanted) || swc_algo_info(algo)->one_node || expect(&args, want)) {
		if (!rank)
			ksft_test_result_skip("%s: not between nodes of this topology", name);
		free(want);
		free(got);
		return 0;
	}
	mem = malloc(coll_bytes(&c, layout.nranks));
	CHECK(mem);
	CHECK_EQ(swingcoll_comm_create_from(&comm, boot, &opts), 0);
	/* The first one connects. */
	CHECK_EQ(coll_run(&c, mem, comm, 0), 0);
	for (int i = 0; i < TRIES && off > NEAR; i++) {
		CHECK_EQ(measure(boot, comm, &c, mem, got), 0);
		off = worst(want, got);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	if (!rank) {
		if (off > NEAR)
			tell(want, got);
		ksft_test_result(
			off <= NEAR,
			"%s: every card sends what the model says, within %.1f %% of %.0f KiB",
			name, off * 100, BYTES / 1024.0);
	}
	free(want);
	free(got);
	free(mem);
	return 0;
}

static int rank_fn(uint32_t i, void *arg)
{
	int rank = net_layout_rank(&layout, i);
	struct swingcoll_bootstrap *boot;

	(void)arg;
	net_set_rank_env(&layout, rank, 0);
	CHECK_EQ(swingcoll_bootstrap_auto(&boot), 0);
	for (enum swc_algo algo = 0; algo < SWC_ALGO_NR; algo++)
		CHECK_EQ(one_algo(boot, rank, algo), 0);
	swingcoll_bootstrap_free(boot);
	if (!rank)
		ksft_finished();
	return 0;
}

int main(int argc, char **argv)
{
	const char *text = getenv("SWINGCOLL_TOPO");
	bool torus;
	pid_t pid;

	if (argc > 1)
		wanted = argv[1];
	net_init();
	torus = text && !swc_topo_parse(&topo, text, NULL, 0) && topo.kind == SWC_TOPO_TORUS &&
		topo.ndims > 1 && topo.nranks == (uint32_t)net_nodes;
	if (!torus) {
		if (!net_node)
			ksft_exit_skip(
				"needs a cluster with the shape of a torus: tools/vm/run --topology torus:3x3\n");
		return 0;
	}
	if (!net_node)
		ksft_set_plan(SWC_ALGO_NR);
	net_layout(&layout, 1, 1);
	testlib_fork_ranks(&pid, 1, rank_fn, NULL);
	return net_any(testlib_wait_ranks_ms(&pid, 1, ALL_MS));
}

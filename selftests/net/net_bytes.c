// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each network card of a torus sends, own and forwarded packets, against the planner's model, for every algorithm,
 * to the byte. So it shows that the addresses that the library pairs, the routes that packets take, and the routes,
 * messages and packets that the model counts are the same. Runs on every node of a cluster at once, with one rank on
 * each: tools/vm/run --topology torus:3x3.
 *
 * A filter on each card counts the packets of RoCE. Those that the model does not count are acknowledgements and
 * messages without data, which have one size each, so bytes and packets together tell how many there are of each.
 * Vectors are so small that no message is written directly to its place, as such messages are cut at pages.
 *
 *	net_bytes [WORD]	only algorithms with WORD in their names
 */
#include <errno.h>
#include <stdlib.h>

#include "coll.h"
#include "net.h"

#include "kmod/core/blocks.h"
#include "kmod/core/wire.h"
#include "plan/model/packets.h"
#include "plan/model/routes.h"
#include "plan/plan.h"

#define BYTES (48 << 10)
#define WARM_UPS 24
#define TRIES 10 /* a busy machine sends packets twice */
#define ALL_MS 800000
/* Packets without data: acknowledgements, and the kernel's messages of a header only. */
#define ACK_BYTES 62
#define CONTROL_BYTES (58 + (int)sizeof(struct swc_wire_header))
#define MOST_PIECES 32

static struct net_layout layout;
static struct swc_topo topo;
static const char *wanted = "";

/* What a card sends. */
struct sent {
	long long packets, bytes;
};

/* By plus and minus port of each dimension. */
struct node {
	struct sent port[2 * SWC_TOPO_DIMS];
	unsigned long long
		repeated; /* events that mean that packets were sent again, by the devices */
};

/* Let the cards of this node count. */
static int add_counters(void)
{
	char cmd[300];

	for (uint32_t i = 0; i < 2 * topo.ndims; i++) {
		snprintf(
			cmd, sizeof(cmd),
			"tc qdisc add dev nic%u clsact && tc filter add dev nic%u egress protocol ip u32"
			" match ip protocol 17 0xff match ip dport 4791 0xffff action ok",
			i, i);
		if (system(cmd)) {
			ksft_print_msg("failed: %s\n", cmd);
			return -EIO;
		}
	}
	return 0;
}

static int read_counter(uint32_t card, struct sent *to)
{
	char line[200];
	FILE *f;

	snprintf(line, sizeof(line), "tc -s filter show dev nic%u egress", card);
	f = popen(line, "r");
	*to = (struct sent){ -1, -1 };
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, " Sent %lld bytes %lld pkt", &to->bytes, &to->packets);
	if (f && !pclose(f) && to->packets >= 0)
		return 0;
	ksft_print_msg("nic%u: its counter cannot be read\n", card);
	return -ENOENT;
}

static int read_events(uint32_t card, unsigned long long *sum)
{
	static const char *const names[] = { "duplicate_request", "out_of_seq_request",
					     "rcvd_rnr_err", "rcvd_seq_err",
					     "completer_retry_err" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		unsigned long long n;
		char path[120];
		FILE *f;

		snprintf(path, sizeof(path), "/sys/class/infiniband/rxe%u/ports/1/hw_counters/%s",
			 card, names[i]);
		f = fopen(path, "r");
		if (!f || fscanf(f, "%llu", &n) != 1) {
			ksft_print_msg("%s: cannot be read\n", path);
			return -ENOENT;
		}
		fclose(f);
		*sum += n;
	}
	return 0;
}

static int read_node(struct node *n)
{
	memset(n, 0, sizeof(*n));
	for (uint32_t i = 0; i < 2 * topo.ndims; i++) {
		CHECK_EQ(read_counter(i, &n->port[i]), 0);
		CHECK_EQ(read_events(i, &n->repeated), 0);
	}
	return 0;
}

/* What a message takes on a link, or @n small ones of a step to one peer, that go in one segment. */
static uint64_t packets_of(double bytes, uint32_t n, long long *wire)
{
	static const struct swc_packets roce = SWC_PACKETS_ROCE;
	uint64_t packets;

	bytes += n > 1 ? SWC_PACKETS_SIZE * n : 0;
	packets = swc_packets_count(&roce, bytes);
	*wire = (long long)swc_packets_first(&roce, bytes, packets);
	return packets;
}

/* Account for it on all links of its route. */
static int count_message(struct swc_route *route, const struct swc_links *links, uint32_t path,
			 uint32_t from, uint32_t to, double bytes, uint32_t together,
			 struct node *all)
{
	long long wire;
	uint64_t packets = packets_of(bytes, together, &wire);

	CHECK_EQ(swc_route_set(route, links, path, from, to), 0);
	for (uint32_t n = 0; n < route->n; n++) {
		struct sent *s = &all[route->link[n] / 2 / topo.ndims]
					  .port[route->link[n] % (2 * topo.ndims)];

		s->packets += (long long)packets;
		s->bytes += wire;
	}
	return 0;
}

/*
 * The sends of a step: those to one peer by one path that follow one another go in one segment while they and
 * their sizes fit into it. *ret: -E2BIG if one would be written directly.
 */
static int count_step(struct swc_route *route, const struct swc_links *links, uint32_t rank,
		      const struct swc_blocks *blocks, const struct swc_plan_xfer *x,
		      uint32_t nsend, int *ret, struct node *all)
{
	bool counted[nsend + 1];

	memset(counted, 0, sizeof(counted));
	for (uint32_t i = 0; i < nsend; i++) {
		uint64_t bytes = swc_blocks_bytes(blocks, x[i].first_block, x[i].nblocks), n;
		uint32_t together = 1;

		if (counted[i])
			continue;
		if (bytes >= SWC_WIRE_DIRECT)
			*ret = -E2BIG;
		for (uint32_t k = i + 1; k < nsend; k++) {
			if (x[k].rank != x[i].rank)
				continue;
			n = swc_blocks_bytes(blocks, x[k].first_block, x[k].nblocks);
			if (x[k].path != x[i].path ||
			    bytes + n + SWC_PACKETS_SIZE * (together + 1) > SWC_PACKETS_SHARED)
				break;
			bytes += n;
			counted[k] = true;
			together++;
		}
		CHECK_EQ(count_message(route, links, x[i].path, rank, x[i].rank, (double)bytes,
				       together, all),
			 0);
	}
	return 0;
}

/*
 * By the plans of all ranks, for vectors of @bytes. *nblocks: of a plan. An error if the algorithm has none here, or a
 * message would be written directly.
 */
static int expect(const struct swc_plan_args *args, size_t bytes, struct node *all,
		  uint32_t *nblocks)
{
	struct swc_links links = swc_links_of(&topo);
	struct swc_plan_args a = *args;
	struct swc_route route = { 0 };
	int ret = 0;

	memset(all, 0, topo.nnodes * sizeof(*all));
	for (a.rank = 0; a.rank < topo.nranks && !ret; a.rank++) {
		const struct swc_plan_channel *chan;
		const struct swc_plan_step *step;
		const struct swc_plan_xfer *x;
		const struct swc_plan_header *h;
		struct swc_blocks blocks;
		size_t size;
		void *plan;

		if (swc_plan_build(&a, &plan, &size, NULL, 0))
			return -EOPNOTSUPP;
		h = plan;
		chan = (const void *)(h + 1);
		step = (const void *)(chan + h->nchannels);
		x = (const void *)(step + h->nsteps);
		*nblocks = h->nshards * h->shard_blocks;
		CHECK_EQ(swc_blocks_init(&blocks, bytes / 4 / h->nshards, 4, h->nshards,
					 h->shard_blocks),
			 0);
		for (uint32_t c = 0; c < h->nchannels; c++)
			for (uint32_t i = 0; i < chan[c].nsteps; i++) {
				const struct swc_plan_step *s = &step[chan[c].first_step + i];

				if (s->kind == SWC_STEP_NET)
					CHECK_EQ(count_step(&route, &links, a.rank, &blocks,
							    &x[s->first_xfer], s->nsend, &ret, all),
						 0);
			}
		free(plan);
	}
	free(route.link);
	return ret;
}

/* Can what a card has sent besides be acknowledgements and messages without data? */
static bool explains(const struct sent *want, const struct sent *got)
{
	long long packets = got->packets - want->packets, each = CONTROL_BYTES - ACK_BYTES;
	long long more = got->bytes - want->bytes - packets * ACK_BYTES;

	return packets >= 0 && more >= 0 && more % each == 0 && more / each <= packets;
}

static bool all_explained(const struct node *want, const struct node *got)
{
	bool good = true;

	for (uint32_t n = 0; n < topo.nnodes; n++)
		for (uint32_t i = 0; i < 2 * topo.ndims; i++)
			good &= explains(&want[n].port[i], &got[n].port[i]);
	return good;
}

static void tell(const struct node *want, const struct node *got)
{
	for (uint32_t n = 0; n < topo.nnodes; n++)
		for (uint32_t i = 0; i < 2 * topo.ndims; i++)
			ksft_print_msg(
				"node %u, card %u: %lld packets, %lld bytes; %lld and %lld by the model\n",
				n, i, got[n].port[i].packets, got[n].port[i].bytes,
				want[n].port[i].packets, want[n].port[i].bytes);
}

/* One operation: what it adds to the counters of each node. *repeated: on any node. */
static int measure(struct swingcoll_bootstrap *boot, struct swingcoll_comm *comm,
		   const struct coll_case *c, void *mem, struct node *got,
		   unsigned long long *repeated)
{
	struct node before, after;

	CHECK_EQ(read_node(&before), 0);
	/* No card sends before all have been read. */
	CHECK_EQ(boot->allgather(boot->arg, &before, got, sizeof(before)), 0);
	CHECK_EQ(coll_run(c, mem, comm, 1), 0);
	CHECK_EQ(boot->allgather(boot->arg, &before, got, sizeof(before)), 0);
	CHECK_EQ(read_node(&after), 0);
	after.repeated -= before.repeated;
	for (uint32_t i = 0; i < 2 * topo.ndims; i++) {
		after.port[i].packets -= before.port[i].packets;
		after.port[i].bytes -= before.port[i].bytes;
	}
	CHECK_EQ(boot->allgather(boot->arg, &after, got, sizeof(after)), 0);
	*repeated = 0;
	for (uint32_t n = 0; n < topo.nnodes; n++)
		*repeated += got[n].repeated;
	return 0;
}

/*
 * Measure until no packet was sent twice, by the devices' counters, and all is explained: the
 * connections of the algorithm before may end meanwhile.
 */
static int measure_quiet(struct swingcoll_bootstrap *boot, const char *name,
			 const struct coll_case *c, const struct node *want, struct node *got,
			 unsigned long long *repeated)
{
	struct swingcoll_comm_opts opts = { .algo = name, .timeout_ms = TESTLIB_EVENT_MS };
	void *mem = malloc(coll_bytes(c, layout.nranks));
	struct swingcoll_comm *comm;
	int tries = 0;

	CHECK(mem);
	CHECK_EQ(swingcoll_comm_create_from(&comm, boot, &opts), 0);
	/* The first one connects, and connections get large receive buffers after some more. */
	for (int i = 0; i < WARM_UPS; i++)
		CHECK_EQ(coll_run(c, mem, comm, 0), 0);
	do
		CHECK_EQ(measure(boot, comm, c, mem, got, repeated), 0);
	while (++tries < TRIES && (*repeated || !all_explained(want, got)));
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	free(mem);
	return 0;
}

static void report(const char *name, size_t bytes, const struct node *want, const struct node *got,
		   unsigned long long repeated)
{
	bool good = !repeated && all_explained(want, got);

	if (!good)
		tell(want, got);
	if (repeated)
		ksft_print_msg("%s: packets were sent again in the last of %d operations\n", name,
			       TRIES);
	ksft_test_result(good, "%s: every card sends what the model says, to the byte, for %zu KiB",
			 name, bytes >> 10);
}

static int one_algo(struct swingcoll_bootstrap *boot, int rank, enum swc_algo algo, int32_t param)
{
	bool sum = swc_algo_info(algo)->colls & 1u << SWC_ALLREDUCE;
	struct swc_plan_args args = { .coll = sum ? SWC_ALLREDUCE : SWC_ALLTOALL,
				      .algo = algo,
				      .param = param,
				      .topo = &topo,
				      .nranks = topo.nranks };
	struct coll_case c = { .coll = sum ? SWINGCOLL_ALLREDUCE : SWINGCOLL_ALLTOALL,
			       .dtype = SWINGCOLL_I32 };
	struct node *want = calloc(topo.nnodes, sizeof(*want)),
		    *got = calloc(topo.nnodes, sizeof(*got));
	size_t bytes = BYTES;
	uint32_t nblocks = 0;
	char name[40];
	int ret;

	CHECK(want && got);
	snprintf(name, sizeof(name), param < 0 ? "%s" : "%s:%d", swingcoll_algo_name((int)algo),
		 param);
	ret = strstr(name, wanted) && !swc_algo_info(algo)->one_node
		      ? expect(&args, bytes, want, &nblocks)
		      : -EOPNOTSUPP;
	/* No block may be empty. */
	if (!ret && bytes < (size_t)nblocks * SWC_UNIT_BYTES) {
		bytes = (size_t)nblocks * SWC_UNIT_BYTES;
		ret = expect(&args, bytes, want, &nblocks);
	}
	CHECK(ret != -E2BIG);
	if (!ret) {
		unsigned long long repeated;

		c.count = bytes / 4 / (sum ? 1 : topo.nranks);
		CHECK_EQ(measure_quiet(boot, name, &c, want, got, &repeated), 0);
		if (!rank)
			report(name, bytes, want, got, repeated);
	} else if (!rank) {
		ksft_test_result_skip("%s: not between nodes of this topology", name);
	}
	free(want);
	free(got);
	return 0;
}

/* Of the algorithms that take a number of pieces all numbers, else the algorithm as it is. Returns how many. */
static uint32_t params_of(enum swc_algo algo, int32_t *param)
{
	uint32_t n = 0;

	param[0] = SWC_PARAM_DEFAULT;
	if (!swc_algo_info(algo)->pieces)
		return 1;
	for (int32_t pieces = 1; pieces <= MOST_PIECES; pieces *= 2)
		param[n++] = pieces;
	return n;
}

static int rank_fn(uint32_t i, void *arg)
{
	int rank = net_layout_rank(&layout, i);
	struct swingcoll_bootstrap *boot;
	int32_t param[32];

	(void)arg;
	net_set_rank_env(&layout, rank, 0);
	CHECK_EQ(swingcoll_bootstrap_auto(&boot), 0);
	CHECK_EQ(add_counters(), 0);
	for (enum swc_algo algo = 0; algo < SWC_ALGO_NR; algo++) {
		uint32_t n = params_of(algo, param);

		for (uint32_t k = 0; k < n; k++)
			CHECK_EQ(one_algo(boot, rank, algo, param[k]), 0);
	}
	swingcoll_bootstrap_free(boot);
	if (!rank)
		ksft_finished();
	return 0;
}

int main(int argc, char **argv)
{
	const char *text = getenv("SWINGCOLL_TOPO");
	int32_t param[32];
	unsigned int n = 0;
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
	for (enum swc_algo algo = 0; algo < SWC_ALGO_NR; algo++)
		n += params_of(algo, param);
	if (!net_node)
		ksft_set_plan(n);
	net_layout(&layout, 1, 1);
	testlib_fork_ranks(&pid, 1, rank_fn, NULL);
	return net_any(testlib_wait_ranks_ms(&pid, 1, ALL_MS));
}

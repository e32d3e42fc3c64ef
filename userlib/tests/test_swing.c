// SPDX-License-Identifier: GPL-2.0-only
/*
 * Properties of plans of Swing and recursive doubling: steps, hops, load of the links, sets of
 * blocks and their ranges, compared with published figures and with the rule written out; and the
 * verifier finds the faults of wrong rules. TAP on stdout.
 */
#include "kmod/core/plan_write.h"
#include "plans.h"
#include "tap.h"

/* ---- steps, hops and load of the links ---- */

/*
 * A model of the network: all messages of all ports in a step together, each on a shortest route,
 * half the way round in the direction of its port. @load is the sum over the steps of the fullest
 * link's share of the vector, times the dimensions: Psi * Xi.
 */
struct cost {
	uint32_t steps, hops;
	double load;
};

#define MODEL_STEPS 32

struct model {
	struct swc_topo topo;
	double *link; /* by step, node, dimension and direction */
	uint32_t hops[MODEL_STEPS], steps;
};

static void send_over(struct model *m, uint32_t s, uint32_t from, uint32_t to, bool back,
		      double share)
{
	uint32_t x[SWC_TOPO_DIMS], y[SWC_TOPO_DIMS], hops = 0;

	swc_topo_coords(&m->topo, from, x);
	swc_topo_coords(&m->topo, to, y);
	for (uint32_t i = 0; i < m->topo.ndims; i++) {
		uint32_t d = m->topo.dim[i], ahead = (y[i] + d - x[i]) % d;
		bool turn = 2 * ahead > d || (2 * ahead == d && back);

		for (; x[i] != y[i]; hops++) {
			size_t node = s * (size_t)m->topo.nnodes + swc_topo_node_at(&m->topo, x);

			m->link[(node * m->topo.ndims + i) * 2 + turn] += share;
			x[i] = (x[i] + (turn ? d - 1 : 1)) % d;
		}
	}
	m->hops[s] = hops > m->hops[s] ? hops : m->hops[s];
}

static void run_rank(struct model *m, const struct swc_plan_view *v)
{
	for (uint32_t c = 0; c < v->hdr->nchannels; c++) {
		uint32_t s = 0;

		for (uint32_t i = 0; i < v->channels[c].nsteps; i++) {
			const struct swc_plan_step *step = &v->steps[v->channels[c].first_step + i];
			const struct swc_plan_xfer *x = &v->xfers[step->first_xfer];

			if (step->kind != SWC_STEP_NET)
				continue;
			for (uint32_t k = 0; k < step->nsend; k++)
				send_over(m, s, v->hdr->rank, x[k].rank, c >= m->topo.ndims,
					  (double)x[k].nblocks / v->nblocks);
			s++;
		}
		m->steps = s > m->steps ? s : m->steps;
	}
}

static struct cost cost_of(const char *topo, const char *algo)
{
	struct model m = { 0 };
	struct cost cost = { 0 };
	struct swc_plan_args a = { .topo = &m.topo };
	size_t links;

	if (swc_topo_parse(&m.topo, topo, NULL, 0))
		abort();
	links = (size_t)m.topo.nnodes * m.topo.ndims * 2;
	m.link = calloc(links * MODEL_STEPS, sizeof(*m.link));
	a.algo = (enum swc_algo)swc_algo_parse(algo, &a.param);
	a.nranks = m.topo.nranks;
	for (a.rank = 0; m.link && a.rank < a.nranks; a.rank++) {
		struct swc_plan_view v;
		size_t bytes;
		void *plan;

		if (swc_plan_build(&a, &plan, &bytes, NULL, 0))
			abort();
		v = view_of(plan, bytes);
		run_rank(&m, &v);
		free(plan);
	}
	cost.steps = m.steps;
	for (uint32_t s = 0; m.link && s < m.steps; s++) {
		double most = 0;

		for (size_t i = s * links; i < (s + 1) * links; i++)
			most = m.link[i] > most ? m.link[i] : most;
		cost.load += most * m.topo.ndims;
		cost.hops += m.hops[s];
	}
	free(m.link);
	swc_topo_free(&m.topo);
	return cost;
}

static void test_costs(void)
{
	static const char *const algos[] = { "swing-b", "swing-l", "mirrored", "rabenseifner",
					     "recdoub" };
	static const struct {
		const char *topo;
		struct cost cost[5];
	} rows[] = {
		{ "ring:8",
		  { { 6, 10, 1.125 }, { 3, 5, 2.5 }, { 6, 14, 1.5 }, { 6, 14, 3 }, { 3, 7, 7 } } },
		{ "ring:64",
		  { { 12, 84, 2.11 },
		    { 6, 42, 21 },
		    { 12, 126, 3 },
		    { 12, 126, 6 },
		    { 6, 63, 63 } } },
		{ "torus:4x4",
		  { { 8, 8, 0.9375 },
		    { 4, 4, 2 },
		    { 8, 12, 1.125 },
		    { 8, 12, 4.5 },
		    { 4, 6, 12 } } },
		{ "torus:8x8",
		  { { 12, 20, 1.078 },
		    { 6, 10, 5 },
		    { 12, 28, 1.31 },
		    { 12, 28, 5.25 },
		    { 6, 14, 28 } } },
		{ "torus:16x4",
		  { { 12, 24, 1.281 },
		    { 6, 12, 10 },
		    { 12, 36, 1.625 },
		    { 12, 36, 5.5 },
		    { 6, 18, 36 } } },
		{ "torus:64x64",
		  { { 24, 168, 1.184 },
		    { 12, 84, 42 },
		    { 24, 252, 1.477 },
		    { 24, 252, 5.91 },
		    { 12, 126, 252 } } },
		{ "torus:64x16",
		  { { 20, 104, 1.221 },
		    { 10, 52, 42 },
		    { 20, 156, 1.53 },
		    { 20, 156, 5.88 },
		    { 10, 78, 156 } } },
		{ "torus:128x8",
		  { { 20, 180, 1.408 },
		    { 10, 90, 85 },
		    { 20, 268, 1.81 },
		    { 20, 268, 6.25 },
		    { 10, 134, 268 } } },
		{ "torus:256x4",
		  { { 20, 344, 1.951 },
		    { 10, 172, 170 },
		    { 20, 516, 2.63 },
		    { 20, 516, 7.5 },
		    { 10, 258, 516 } } },
		{ "torus:8x8x8",
		  { { 18, 30, 1.025 },
		    { 9, 15, 7.5 },
		    { 18, 42, 1.15 },
		    { 18, 42, 6.9 },
		    { 9, 21, 63 } } },
		{ "torus:8x8x8x8",
		  { { 24, 40, 1.007 },
		    { 12, 20, 10 },
		    { 24, 56, 1.07 },
		    { 24, 56, 8.555 },
		    { 12, 28, 112 } } },
	};
	char name[80];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int bad = 0;

		for (int k = 0; k < 5; k++) {
			struct cost want = rows[i].cost[k], got = cost_of(rows[i].topo, algos[k]);

			if (got.steps == want.steps && got.hops == want.hops &&
			    got.load > want.load * 0.995 && got.load < want.load * 1.005)
				continue;
			printf("# %s: %u steps, %u hops, load %g\n", algos[k], got.steps, got.hops,
			       got.load);
			bad = 1;
		}
		snprintf(name, sizeof(name), "steps, hops and load on %s", rows[i].topo);
		ok(!bad, name);
	}
}

/* ---- sets of blocks ---- */

/* The owner of each block: the member that completes it, where the FINAL mark is. */
static void find_owners(const struct set *s, uint32_t *owner)
{
	for (uint32_t r = 0; r < s->nranks; r++) {
		struct swc_plan_view v = s->view[r];

		for (uint32_t i = 0; i < v.hdr->nxfers; i++)
			if (v.xfers[i].flags & SWC_XFER_FINAL)
				owner[v.xfers[i].first_block] = r;
	}
}

/* The owners, as bits, of the blocks that rank r sends to a peer in network step n of a channel. */
static uint64_t sent(const struct set *s, const uint32_t *owner, uint32_t r, uint32_t chan,
		     uint32_t n, uint32_t peer)
{
	struct swc_plan_view v = s->view[r];
	const struct swc_plan_step *step = &v.steps[v.channels[chan].first_step];
	uint64_t set = 0;

	for (;; step++)
		if (step->kind == SWC_STEP_NET && !n--)
			break;
	for (uint32_t i = 0; i < step->nsend; i++) {
		const struct swc_plan_xfer *x = &v.xfers[step->first_xfer + i];

		for (uint32_t b = 0; x->rank == peer && b < x->nblocks; b++)
			set |= 1ull << owner[x->first_block + b];
	}
	return set;
}

static void test_examples(void)
{
	static const struct {
		const char *topo;
		uint32_t rank, chan, step, peer;
		uint64_t set;
	} sets[] = {
		{ "ring:8", 0, 0, 0, 1, 0x66 },	      { "ring:8", 1, 0, 0, 0, 0x99 },
		{ "ring:8", 2, 0, 0, 3, 0x99 },	      { "ring:8", 7, 0, 0, 6, 0x66 },
		{ "ring:8", 0, 0, 1, 7, 0x90 },	      { "ring:8", 7, 0, 1, 0, 0x09 },
		{ "ring:8", 1, 0, 1, 2, 0x24 },	      { "ring:8", 2, 0, 1, 1, 0x42 },
		{ "ring:8", 3, 0, 1, 4, 0x90 },	      { "ring:8", 5, 0, 1, 6, 0x42 },
		{ "ring:8", 0, 0, 2, 3, 0x08 },	      { "ring:8", 6, 0, 2, 1, 0x02 },
		{ "ring:6", 0, 0, 0, 1, 0x12 },	      { "ring:6", 1, 0, 0, 0, 0x09 },
		{ "ring:6", 2, 0, 0, 3, 0x09 },	      { "ring:6", 3, 0, 0, 2, 0x24 },
		{ "ring:6", 4, 0, 0, 5, 0x24 },	      { "ring:6", 5, 0, 0, 4, 0x12 },
		{ "ring:6", 0, 0, 1, 5, 0x24 },	      { "ring:6", 5, 0, 1, 0, 0x09 },
		{ "ring:6", 2, 0, 1, 1, 0x12 },	      { "ring:6", 4, 0, 1, 3, 0x09 },
		{ "ring:6", 0, 0, 2, 3, 0x08 },	      { "ring:6", 4, 0, 2, 1, 0x02 },
		{ "ring:7", 6, 0, 0, 0, 0x01 },	      { "ring:7", 6, 0, 0, 1, 0x02 },
		{ "ring:7", 6, 0, 0, 2, 0x04 },	      { "ring:7", 6, 0, 1, 3, 0x08 },
		{ "ring:7", 6, 0, 1, 4, 0x10 },	      { "ring:7", 6, 0, 2, 5, 0x20 },
		{ "ring:7", 0, 0, 0, 6, 0x40 },	      { "ring:7", 3, 0, 1, 6, 0x40 },
		{ "ring:7", 5, 0, 2, 6, 0x40 },	      { "ring:7", 0, 0, 0, 1, 0x12 },
		{ "ring:7", 0, 0, 1, 5, 0x24 },	      { "ring:7", 3, 0, 0, 6, 0 },
		{ "torus:4x4", 0, 0, 0, 4, 0x0ff0 },  { "torus:4x4", 0, 0, 1, 1, 0x6006 },
		{ "torus:4x4", 0, 0, 2, 12, 0x9000 }, { "torus:4x4", 0, 0, 3, 3, 0x0008 },
		{ "torus:4x4", 0, 1, 0, 1, 0x6666 },  { "torus:4x4", 0, 1, 1, 4, 0x0990 },
		{ "torus:4x4", 0, 1, 2, 3, 0x8008 },  { "torus:4x4", 0, 1, 3, 12, 0x1000 },
		{ "torus:4x4", 0, 2, 0, 12, 0xff00 }, { "torus:4x4", 0, 2, 1, 3, 0x00cc },
		{ "torus:4x4", 0, 2, 2, 4, 0x0030 },  { "torus:4x4", 0, 2, 3, 1, 0x0002 },
		{ "torus:4x4", 0, 3, 0, 3, 0xcccc },  { "torus:4x4", 0, 3, 1, 12, 0x3300 },
		{ "torus:4x4", 0, 3, 2, 1, 0x0022 },  { "torus:4x4", 0, 3, 3, 4, 0x0010 },
	};
	int bad = 0;

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		uint32_t owner[64];
		uint64_t set;
		struct set s;

		if (build_set(&s, sets[i].topo, args_of("swing-b", SWC_ALLREDUCE, 0), OUT_OF_PLACE))
			abort();
		find_owners(&s, owner);
		set = sent(&s, owner, sets[i].rank, sets[i].chan, sets[i].step, sets[i].peer);
		if (set != sets[i].set) {
			printf("# %s: rank %u channel %u step %u to %u: %#llx, not %#llx\n",
			       sets[i].topo, sets[i].rank, sets[i].chan, sets[i].step, sets[i].peer,
			       (unsigned long long)set, (unsigned long long)sets[i].set);
			bad = 1;
		}
		free_set(&s);
	}
	ok(!bad, "sets of blocks of the published examples");
}

/* ---- the rule for even rings, and wrong rules ---- */

static uint32_t log_up(uint32_t p)
{
	uint32_t n = 0;

	while (1u << n < p)
		n++;
	return n;
}

/* The rank at distance 1, -1, 3, -5... */
static uint32_t partner(uint32_t p, uint32_t r, uint32_t step)
{
	int32_t hop = 0;

	for (uint32_t i = 0; i <= step; i++)
		hop += (i % 2 ? -1 : 1) * (1 << i);
	return (uint32_t)((int32_t)(r + 64 * p) + (r % 2 ? -hop : hop)) % p;
}

enum rule {
	LAST,	  /* a block is sent in the last step in which it can be */
	EARLIEST, /* in the first */
	ALL	  /* in each */
};

/* Compute the blocks that each rank sends in each reduce-scatter step. */
static void apply(enum rule rule, uint32_t p, uint64_t sends[][64])
{
	uint64_t reach[8][64], gone[64];
	uint32_t steps = log_up(p);

	for (uint32_t r = 0; r < p; r++)
		reach[steps][r] = gone[r] = 1ull << r;
	for (uint32_t s = steps; s-- > 0;)
		for (uint32_t r = 0; r < p; r++)
			reach[s][r] = reach[s + 1][r] | reach[s + 1][partner(p, r, s)];
	for (uint32_t s = 0; s < steps; s++)
		for (uint32_t r = 0; r < p; r++) {
			uint64_t all = reach[s + 1][partner(p, r, s)] & ~(1ull << r);

			sends[s][r] = rule == LAST	 ? all & ~reach[s + 1][r]
				      : rule == EARLIEST ? all & ~gone[r]
							 : all;
			gone[r] |= all;
		}
}

static void test_rule(void)
{
	int bad = 0;

	for (uint32_t p = 2; p <= 64; p += 2) {
		uint64_t sends[8][64];
		uint32_t owner[64];
		char topo[20];
		struct set s;

		snprintf(topo, sizeof(topo), "ring:%u", p);
		apply(LAST, p, sends);
		if (build_set(&s, topo, args_of("swing-b", SWC_ALLREDUCE, 1), OUT_OF_PLACE))
			abort();
		find_owners(&s, owner);
		for (uint32_t k = 0; k < log_up(p); k++)
			for (uint32_t r = 0; r < p; r++)
				bad |= sent(&s, owner, r, 0, k, partner(p, r, k)) != sends[k][r];
		free_set(&s);
	}
	ok(!bad, "sets of blocks on all even rings up to 64");
}

static void add_copy(struct swc_plan_writer *w, enum swc_buf from, enum swc_buf to)
{
	struct swc_plan_xfer x = { .rank = w->hdr.rank, .nblocks = w->hdr.shard_blocks };

	swc_plan_write_step(w, SWC_STEP_LOCAL);
	x.buf = (uint8_t)from;
	swc_plan_write_send(w, &x);
	x.buf = (uint8_t)to;
	swc_plan_write_recv(w, &x);
}

/*
 * A plan by any rule, block by block. Sums are in RECV; what is sent is copied first, so that a
 * wrong rule makes a valid plan with a wrong result.
 */
static void *plan_by_rule(uint32_t p, uint32_t rank, uint64_t sends[][64], size_t *bytes)
{
	uint32_t steps = log_up(p), last = 0;
	struct swc_plan_channel channel;
	struct swc_plan_step step[32];
	struct swc_plan_xfer *xfers = calloc(4096, sizeof(*xfers));
	struct swc_plan_writer w = { .channels = &channel,
				     .max_channels = 1,
				     .steps = step,
				     .max_steps = 32,
				     .xfers = xfers,
				     .max_xfers = 4096 };
	void *plan;

	swc_plan_write_begin(&w, SWC_ALLREDUCE, p, rank, 0);
	swc_plan_write_blocks(&w, p);
	w.hdr.window[SWC_BUF_SCRATCH].nblocks = p;
	strcpy(w.hdr.name, "rule");
	swc_plan_write_channel(&w);
	add_copy(&w, SWC_BUF_SEND, SWC_BUF_RECV);
	for (uint32_t s = 0; s < steps; s++)
		if (sends[s][partner(p, rank, s)] >> rank & 1)
			last = s;
	for (uint32_t i = 0; i < 2 * steps; i++) {
		uint32_t s = i < steps ? i : 2 * steps - 1 - i, q = partner(p, rank, s);
		uint64_t out = i < steps ? sends[s][rank] : sends[s][q];
		uint64_t in = i < steps ? sends[s][q] : sends[s][rank];

		add_copy(&w, SWC_BUF_RECV, SWC_BUF_SCRATCH);
		swc_plan_write_step(&w, SWC_STEP_NET);
		for (uint32_t b = 0; b < p; b++) {
			struct swc_plan_xfer x = { .rank = q,
						   .first_block = b,
						   .nblocks = 1,
						   .buf = SWC_BUF_SCRATCH,
						   .flags = i < steps ? 0 : SWC_XFER_STORED };

			if (out >> b & 1)
				swc_plan_write_send(&w, &x);
		}
		for (uint32_t b = 0; b < p; b++) {
			struct swc_plan_xfer x = {
				.rank = q, .first_block = b, .nblocks = 1, .buf = SWC_BUF_RECV
			};

			if (i < steps) {
				x.operand = SWC_BUF_RECV;
				x.flags = SWC_XFER_REDUCE;
				x.flags |= b == rank && s == last ? SWC_XFER_FINAL : 0;
			}
			if (in >> b & 1)
				swc_plan_write_recv(&w, &x);
		}
		swc_plan_write_drop_empty(&w);
	}
	*bytes = swc_plan_write_bytes(&w);
	plan = malloc(*bytes);
	if (!plan || swc_plan_write_pack(&w, plan, *bytes))
		abort();
	free(xfers);
	return plan;
}

static int verify_rule(enum rule rule, uint32_t p, struct swc_verdict *v)
{
	uint64_t sends[8][64];
	struct set s = { 0 };
	int ret;

	apply(rule, p, sends);
	alloc_set(&s, p);
	for (uint32_t r = 0; r < p; r++)
		s.plan[r] = plan_by_rule(p, r, sends, &s.bytes[r]);
	ret = swc_plan_verify((const void *const *)s.plan, s.bytes, NULL, p, NULL, v);
	free_set(&s);
	return ret;
}

static void test_wrong_rules(void)
{
	static const char *const names[] = {
		"the rule of the last step is right on even rings",
		"the rule of the earliest step is found to be wrong except on powers of two",
		"the rule of all steps is found to be wrong except on powers of two",
	};

	for (int rule = LAST; rule <= ALL; rule++) {
		struct swc_verdict v = { 0 };
		int bad = 0;

		for (uint32_t p = 4; p <= 38; p += 2) {
			bool power = !(p & (p - 1));
			int ret = verify_rule((enum rule)rule, p, &v);

			bad |= ret != (rule == LAST || power ? 0 : -EINVAL);
			if (ret)
				bad |= !strstr(v.text, "contribution") && !strstr(v.text, "final");
		}
		if (rule != LAST || bad)
			printf("# %s\n", v.text);
		ok(!bad, names[rule]);
	}
}

/* ---- runs and sizes of messages ---- */

/* The largest number of ranges in a message (all that a rank sends to one peer in a step). */
static uint32_t most_runs(const char *topo, const char *algo)
{
	uint32_t most = 0;
	struct set s;

	if (build_set(&s, topo, args_of(algo, SWC_ALLREDUCE, 0), OUT_OF_PLACE))
		abort();
	for (uint32_t r = 0; r < s.nranks; r++) {
		struct swc_plan_view v = s.view[r];

		for (uint32_t i = 0; i < v.hdr->nsteps; i++) {
			const struct swc_plan_xfer *x = &v.xfers[v.steps[i].first_xfer];

			for (uint32_t k = 0, n = 0; k < v.steps[i].nsend; k++) {
				n = k && x[k].rank == x[k - 1].rank ? n + 1 : 1;
				most = n > most ? n : most;
			}
		}
	}
	free_set(&s);
	return most;
}

static const char *const powers[] = {
	"torus:4x4",   "torus:8x8",   "torus:16x4",  "torus:4x16",    "torus:2x8", "torus:2x2x2",
	"torus:4x4x4", "torus:8x4x2", "torus:2x4x8", "torus:4x4x4x2", "torus:1x8", "torus:2x1x2",
	"mesh:4x8",    "switch:16",   "ring:2",	     "ring:4",	      "ring:32",
};

static void test_runs(void)
{
	static const char *const algos[] = { "recdoub", "rabenseifner", "mirrored", "mirrored:1",
					     "swing-l", "swing-b",	"swing-h" };
	static const struct {
		const char *topo;
		uint32_t most;
	} limits[] = {
		{ "ring:6", 1 },  { "ring:12", 1 }, { "ring:24", 1 },	 { "ring:48", 1 },
		{ "ring:10", 2 }, { "ring:20", 2 }, { "torus:6x10", 4 }, { "torus:6x6", 2 }
	};
	int bad = 0;

	for (size_t i = 0; i < sizeof(powers) / sizeof(powers[0]); i++)
		for (size_t k = 0; k < sizeof(algos) / sizeof(algos[0]); k++)
			bad |= most_runs(powers[i], algos[k]) != 1;
	ok(!bad, "one range per message on powers of two");
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		bad |= most_runs(limits[i].topo, "swing-b") > limits[i].most;
	ok(!bad, "few ranges per message on other sizes");
}

static void test_sizes(void)
{
	static const struct {
		const char *topo;
		uint32_t blocks[5];
	} rings[] = { { "ring:6", { 2, 2, 1 } },
		      { "ring:10", { 2, 4, 2, 1 } },
		      { "ring:12", { 6, 2, 2, 1 } },
		      { "ring:20", { 10, 2, 4, 2, 1 } },
		      { "ring:24", { 12, 6, 2, 2, 1 } } };
	int bad = 0;

	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		uint32_t owner[64];
		struct set s;

		if (build_set(&s, rings[i].topo, args_of("swing-b", SWC_ALLREDUCE, 1), IN_PLACE))
			abort();
		find_owners(&s, owner);
		for (uint32_t r = 0; r < s.nranks; r++)
			for (uint32_t k = 0; k < log_up(s.nranks); k++)
				bad |= __builtin_popcountll(
					       sent(&s, owner, r, 0, k, partner(s.nranks, r, k))) !=
				       (int)rings[i].blocks[k];
		free_set(&s);
	}
	ok(!bad, "blocks per message on other sizes");
}

/* Network steps; odd sizes have as many as one rank less. */
static void test_steps(void)
{
	int bad = 0;

	for (uint32_t p = 2; p <= 65; p++) {
		char topo[20];
		struct cost cost;

		snprintf(topo, sizeof(topo), "ring:%u", p);
		cost = cost_of(topo, "swing-b");
		bad |= cost.steps != 2 * log_up(p < 3 ? p : p - p % 2);
		cost = cost_of(topo, "swing-l");
		bad |= cost.steps != log_up(p) + !!(p & (p - 1));
	}
	ok(!bad, "steps on rings of 2 to 65");
}

static void test_large(void)
{
	static const struct {
		const char *topo, *algo;
		uint32_t nsteps;
	} plans[] = { { "torus:1024x1024", "swing-b", 4 * 40 },
		      { "torus:1024x1024", "swing-l", 4 * 20 },
		      { "ring:20000", "swing-b", 0 } };
	char name[80];

	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		struct swc_plan_args a = { .rank = 12345 };
		struct swc_topo topo;
		struct swc_plan_view v;
		size_t bytes;
		void *plan;

		if (swc_topo_parse(&topo, plans[i].topo, NULL, 0))
			abort();
		a.topo = &topo;
		a.nranks = topo.nranks;
		a.algo = (enum swc_algo)swc_algo_parse(plans[i].algo, &a.param);
		if (swc_plan_build(&a, &plan, &bytes, NULL, 0))
			abort();
		v = view_of(plan, bytes);
		snprintf(name, sizeof(name), "%s on %s: a plan of %u steps", plans[i].algo,
			 plans[i].topo, v.hdr->nsteps);
		ok(!plans[i].nsteps || v.hdr->nsteps == plans[i].nsteps, name);
		free(plan);
		swc_topo_free(&topo);
	}
}

int main(void)
{
	printf("TAP version 13\n");
	test_costs();
	test_examples();
	test_rule();
	test_wrong_rules();
	test_runs();
	test_sizes();
	test_steps();
	test_large();
	return done();
}

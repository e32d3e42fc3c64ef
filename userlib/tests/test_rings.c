// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings, Hamiltonian cycles, buckets, circulant graphs and rotation: plans of all members are
 * verified on symbols, on many shapes, and have the steps, messages and link loads that the
 * algorithms promise. SWC_TEST_SHORT=1: without the largest torus, and one of three placings. TAP on stdout.
 */
#include "plans.h"
#include "random.h"
#include "tap.h"

/* Arguments of an algorithm with its own choice of a parameter. */
static struct swc_plan_args args(enum swc_algo algo, enum swc_coll coll)
{
	return (struct swc_plan_args){ .algo = algo, .coll = coll, .param = SWC_PARAM_DEFAULT };
}

/* ---- what plans look like ---- */

static uint32_t net_steps(const struct swc_plan_view *v, uint32_t chan)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < v->channels[chan].nsteps; i++)
		n += v->steps[v->channels[chan].first_step + i].kind == SWC_STEP_NET;
	return n;
}

/*
 * Has every message one run? No two sends, and no two receives, of a step have the same peer then.
 */
static bool one_run(const struct swc_plan_view *v)
{
	for (uint32_t i = 0; i < v->hdr->nsteps; i++) {
		const struct swc_plan_step *s = &v->steps[i];
		const struct swc_plan_xfer *x = &v->xfers[s->first_xfer];

		for (uint32_t a = 0; a < (uint32_t)s->nsend + s->nrecv; a++)
			for (uint32_t b = 0; b < a; b++)
				if ((a < s->nsend) == (b < s->nsend) && x[a].rank == x[b].rank)
					return false;
	}
	return true;
}

/*
 * Has every message at most two runs? In the second round there is one more message if the number
 * of ranks is odd.
 */
static bool two_runs(const struct swc_plan_view *v)
{
	for (uint32_t i = 0; i < v->hdr->nsteps; i++)
		if (v->steps[i].nsend > 2 + (i == 1 && v->hdr->nranks % 2) ||
		    v->steps[i].nrecv > 2 + (i == 1 && v->hdr->nranks % 2))
			return false;
	return true;
}

static uint64_t blocks_sent(const struct swc_plan_view *v)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < v->hdr->nsteps; i++) {
		const struct swc_plan_step *s = &v->steps[i];

		for (uint32_t k = 0; s->kind == SWC_STEP_NET && k < s->nsend; k++)
			n += v->xfers[s->first_xfer + k].nblocks;
	}
	return n;
}

static uint32_t log2_up(uint32_t n)
{
	uint32_t k = 0;

	while (1u << k < n)
		k++;
	return k;
}

/* Expected steps of a half (reduce-scatter or allgather). */
static uint32_t want_steps(enum swc_algo algo, const struct swc_topo *t)
{
	uint32_t n = 0;

	switch (algo) {
	case SWC_ALGO_BUCKET:
	case SWC_ALGO_BUCKET2:
		for (uint32_t i = 0; i < t->ndims; i++)
			n += algo == SWC_ALGO_BUCKET ? t->dim[i] - 1 : t->dim[i] / 2;
		return n;
	case SWC_ALGO_CIRCULANT:
		return log2_up(t->nnodes);
	default:
		return t->nnodes - 1;
	}
}

/* Expected channels if all ports are used. */
static uint32_t want_channels(enum swc_algo algo, const struct swc_topo *t)
{
	uint32_t n = 0;

	switch (algo) {
	case SWC_ALGO_RING2:
		return 2;
	case SWC_ALGO_HAMILTONIAN:
		return 4;
	case SWC_ALGO_BUCKET:
	case SWC_ALGO_BUCKET2:
		for (uint32_t i = 0; i < t->ndims; i++)
			n += 2 * (t->dim[i] > 1);
		return t->kind == SWC_TOPO_SWITCH ? 1 : n;
	default:
		return 1;
	}
}

static const char *judge_form(const struct set *s, enum swc_algo algo, enum swc_coll coll)
{
	uint32_t halves = coll == SWC_ALLREDUCE ? 2 : 1;
	uint32_t nch = want_channels(algo, &s->topo), steps = halves * want_steps(algo, &s->topo);

	for (uint32_t r = 0; r < s->nranks; r++) {
		const struct swc_plan_view *v = &s->view[r];

		if (v->hdr->nchannels != nch)
			return "wrong number of channels";
		for (uint32_t c = 0; c < nch; c++)
			if (net_steps(v, c) != steps)
				return "wrong number of steps";
		if (blocks_sent(v) != (uint64_t)halves * nch * (s->nranks - 1))
			return "wrong number of blocks sent";
		if (algo == SWC_ALGO_CIRCULANT ? !two_runs(v)
					       : coll == SWC_ALLREDUCE && !one_run(v))
			return "messages have too many runs";
		if (v->hdr->flags)
			return "unexpected flags";
	}
	return NULL;
}

/* ---- checks of one shape ---- */

static int check(const char *shape, struct swc_plan_args a, enum placing placing, bool form)
{
	struct set s;
	int ret = build_set(&s, shape, a, placing);
	const char *text = NULL;

	if (!ret)
		ret = verify_set(&s);
	if (!ret && form)
		text = judge_form(&s, a.algo, a.coll);
	if (text) {
		snprintf(s.why, sizeof(s.why), "%s", text);
		ret = -EINVAL;
	}
	if (ret)
		print_set(&s, ret);
	free_set(&s);
	return ret;
}

/*
 * Check the three collectives, in all placings on small shapes, in one placing each on large ones.
 */
static int check_halves(const char *shape, enum swc_algo algo, bool large)
{
	static uint32_t turn;
	int bad = 0;

	for (int coll = SWC_ALLREDUCE; coll <= SWC_ALLGATHER; coll++) {
		struct swc_plan_args a = args(algo, (enum swc_coll)coll);

		if (large || short_form()) {
			bad |= check(shape, a, (enum placing)((turn++ / 3 + (uint32_t)coll) % 3),
				     true);
			continue;
		}
		for (int placing = OUT_OF_PLACE; placing <= MIXED; placing++)
			bad |= check(shape, a, (enum placing)placing, true);
	}
	return bad;
}

static void test_numbers(void)
{
	static const enum swc_algo algos[] = { SWC_ALGO_RING, SWC_ALGO_RING2, SWC_ALGO_BUCKET,
					       SWC_ALGO_BUCKET2, SWC_ALGO_CIRCULANT };
	char shape[40], name[100];

	for (size_t i = 0; i < sizeof(algos) / sizeof(algos[0]); i++) {
		int bad = 0;

		for (uint32_t p = 2; p < 100; p += p < 64 ? 1 : 17) {
			struct swc_plan_args a = args(algos[i], (enum swc_coll)(p % 3));

			snprintf(shape, sizeof(shape), "%s:%u", p % 2 ? "ring" : "switch", p);
			if (p > 40)
				bad |= check(shape, a, (enum placing)(p / 3 % 3), true);
			else
				bad |= check_halves(shape, algos[i], p > 16);
			snprintf(shape, sizeof(shape), "%s:%u", p % 2 ? "switch" : "ring", p);
			if (p <= 16)
				bad |= check_halves(shape, algos[i], true);
		}
		snprintf(name, sizeof(name), "%s: 2 to 64, 81 and 98 members",
			 swc_algo_name(algos[i]));
		ok(!bad, name);
	}
}

static void test_tori(void)
{
	static const struct {
		const char *shape;
		bool large;
	} tori[] = {
		{ "torus:4x4", false },	   { "torus:8x8", true },    { "torus:16x4", true },
		{ "torus:4x16", true },	   { "torus:2x8", false },   { "torus:2x2x2", false },
		{ "torus:4x4x4", true },   { "torus:8x4x2", true },  { "torus:2x4x8", true },
		{ "torus:4x6", false },	   { "torus:6x10", true },   { "torus:6x6", true },
		{ "torus:12x8", true },	   { "torus:3x5", false },   { "torus:7x8", true },
		{ "torus:5x5x3", true },   { "torus:11x3", true },   { "torus:4x6x5", true },
		{ "torus:1x6", false },	   { "torus:3x1x2", false }, { "torus:2x1", false },
		{ "torus:2x2", false },	   { "mesh:3x4", false },    { "torus:2x2x2x2", false },
		{ "torus:3x2x2x3", true },
	};
	static const enum swc_algo algos[] = { SWC_ALGO_BUCKET, SWC_ALGO_BUCKET2 };
	char name[100];

	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < sizeof(tori) / sizeof(tori[0]); k++) {
			snprintf(name, sizeof(name), "%s: %s", swc_algo_name(algos[i]),
				 tori[k].shape);
			ok(!check_halves(tori[k].shape, algos[i], tori[k].large), name);
		}
	}
	ok(!check_halves("torus:4x6", SWC_ALGO_RING2, false),
	   "ring2: torus:4x6, members by number");
}

/* Ports and channels from the arguments. */
static void test_choices(void)
{
	static const enum swc_algo algos[] = { SWC_ALGO_RING,	     SWC_ALGO_RING2,
					       SWC_ALGO_HAMILTONIAN, SWC_ALGO_BUCKET,
					       SWC_ALGO_BUCKET2,     SWC_ALGO_CIRCULANT };
	int bad = 0;

	for (size_t i = 0; i < sizeof(algos) / sizeof(algos[0]); i++) {
		for (int coll = SWC_ALLREDUCE; coll <= SWC_ALLGATHER; coll++) {
			for (uint32_t k = 1; k <= 5; k++) {
				struct swc_plan_args a = args(algos[i], (enum swc_coll)coll);

				a.ports = k;
				bad |= check("torus:4x4", a, MIXED, false);
				a.ports = 0;
				a.channels = k;
				bad |= check("torus:6x2", a, OUT_OF_PLACE, false);
			}
		}
	}
	ok(!bad, "1 to 5 ports or channels");
}

/* Hierarchies in which some ranks have no shard. */
static void test_nodes(void)
{
	static const enum swc_algo algos[] = { SWC_ALGO_RING,	     SWC_ALGO_RING2,
					       SWC_ALGO_HAMILTONIAN, SWC_ALGO_BUCKET,
					       SWC_ALGO_BUCKET2,     SWC_ALGO_CIRCULANT };
	int bad = 0;

	for (size_t i = 0; i < sizeof(algos) / sizeof(algos[0]); i++) {
		struct swc_plan_args a = args(algos[i], SWC_ALLREDUCE);

		bad |= check("torus:2x2*3", a, MIXED, false);
		bad |= check("torus:4x2*2,1,3,1,1,2,1,1", a, OUT_OF_PLACE, false);
	}
	ok(!bad, "allreduce between nodes with several ranks");
}

/* ---- Hamiltonian cycles ---- */

static uint32_t gcd(uint32_t a, uint32_t b)
{
	return b ? gcd(b, a % b) : a;
}

/* Does a torus have two edge-disjoint Hamiltonian cycles of the kind that the algorithm makes? */
static bool offered(uint32_t r, uint32_t c)
{
	return c > 1 && r % c == 0 && gcd(r, c - 1) == 1;
}

/*
 * The member that a member sends to in all steps of a channel; the number of ranks if it is not
 * always the same.
 */
static uint32_t next_of(const struct set *s, uint32_t member, uint32_t chan)
{
	const struct swc_plan_view *v = &s->view[member];
	uint32_t next = s->nranks;

	for (uint32_t i = 0; i < v->channels[chan].nsteps; i++) {
		const struct swc_plan_step *st = &v->steps[v->channels[chan].first_step + i];
		uint32_t to = v->xfers[st->first_xfer].rank;

		if (st->nsend != 1 || (i && to != next))
			return s->nranks;
		next = to;
	}
	return next;
}

/* The dimension in which b is a's neighbour, or -1. */
static int along(const struct swc_topo *t, uint32_t a, uint32_t b)
{
	uint32_t x[SWC_TOPO_DIMS], y[SWC_TOPO_DIMS];
	int dim = -1;

	swc_topo_coords(t, a, x);
	swc_topo_coords(t, b, y);
	for (uint32_t i = 0; i < t->ndims; i++) {
		uint32_t apart = (x[i] + t->dim[i] - y[i]) % t->dim[i];

		if (!apart)
			continue;
		if (dim >= 0 || (apart != 1 && apart != t->dim[i] - 1))
			return -1;
		dim = (int)i;
	}
	return dim;
}

static const char *judge_cycles(const struct set *s)
{
	uint8_t *links = calloc((size_t)s->nranks * s->nranks, 1); /* uses between two members */
	const char *text = NULL;

	if (!links)
		abort();
	for (uint32_t chan = 0; !text && chan < 4; chan += 2) {
		uint32_t at = 0, len = 0;

		do {
			uint32_t next = next_of(s, at, chan);
			uint32_t low = next < at ? next : at, high = next < at ? at : next;
			int dim = next < s->nranks ? along(&s->topo, at, next) : -1;

			if (dim < 0) {
				text = "not a neighbour";
				break;
			}
			/* In a dimension of two there are two links between the same members. */
			if (++links[low * s->nranks + high] > 1 + (s->topo.dim[dim] == 2))
				text = "a link is used twice";
			if (next_of(s, next, chan + 1) != at)
				text = "the way back differs";
			at = next;
			len++;
		} while (at && len < s->nranks && !text);
		if (!text && (at || len != s->nranks))
			text = "not all members are on the cycle";
	}
	free(links);
	return text;
}

static void test_cycles(void)
{
	uint32_t shapes = 0, refused = 0;
	struct swc_plan_args a = args(SWC_ALGO_HAMILTONIAN, SWC_ALLREDUCE);
	int bad = 0;

	for (uint32_t r = 1; r <= 33; r++) {
		for (uint32_t c = 1; r * c <= 200; c++) {
			bool want = offered(r, c) || offered(c, r);
			const char *text = NULL;
			struct set s;
			char shape[40];
			int ret;

			if (r * c < 2)
				continue;
			snprintf(shape, sizeof(shape), "torus:%ux%u", r, c);
			ret = build_set(&s, shape, a, OUT_OF_PLACE);
			if (want && !ret)
				text = judge_cycles(&s);
			else if (ret != (want ? 0 : -EOPNOTSUPP))
				text = want ? "refused" : "not refused";
			if (text)
				printf("# %s: %s\n", shape, text);
			bad |= text != NULL;
			shapes += want;
			refused += !want;
			free_set(&s);
		}
	}
	printf("# %u shapes, %u refused\n", shapes, refused);
	ok(!bad && shapes > 20, "two edge-disjoint Hamiltonian cycles, or refused");
}

static void test_hamiltonian(void)
{
	static const char *const shapes[] = { "torus:2x2", "torus:4x4", "torus:4x2",  "torus:2x6",
					      "torus:3x9", "torus:9x3", "torus:16x4", "torus:4x8",
					      "torus:6x6", "torus:8x8", "mesh:5x5" };
	char name[100];
	struct set s;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		snprintf(name, sizeof(name), "hamiltonian: %s", shapes[i]);
		ok(!check_halves(shapes[i], SWC_ALGO_HAMILTONIAN, i > 2), name);
	}
	ok(build_set(&s, "torus:12x4", args(SWC_ALGO_HAMILTONIAN, SWC_ALLREDUCE), OUT_OF_PLACE) ==
			   -EOPNOTSUPP &&
		   strstr(s.why, "divides"),
	   "hamiltonian: 12x4 is refused with the reason");
	free_set(&s);
	ok(build_set(&s, "switch:16", args(SWC_ALGO_HAMILTONIAN, SWC_ALLREDUCE), OUT_OF_PLACE) ==
			   -EOPNOTSUPP &&
		   strstr(s.why, "two dimensions"),
	   "hamiltonian: a switch is refused with the reason");
	free_set(&s);
}

/* ---- load of links ---- */

/*
 * The load of the busiest link, in units of the D-th part of the vector, if all messages go to
 * neighbours; else -1. No dimension may be of size 2.
 */
static double busiest_link(const struct set *s)
{
	const struct swc_topo *t = &s->topo;
	uint64_t *load = calloc((size_t)s->nranks * t->ndims * 2, sizeof(*load)), most = 0;
	bool neighbours = true;

	if (!load)
		abort();
	for (uint32_t r = 0; r < s->nranks; r++) {
		const struct swc_plan_view *v = &s->view[r];
		uint32_t x[SWC_TOPO_DIMS], y[SWC_TOPO_DIMS];

		swc_topo_coords(t, r, x);
		for (uint32_t i = 0; i < v->hdr->nsteps; i++) {
			const struct swc_plan_step *st = &v->steps[i];

			for (uint32_t k = 0; st->kind == SWC_STEP_NET && k < st->nsend; k++) {
				const struct swc_plan_xfer *m = &v->xfers[st->first_xfer + k];
				int dim = along(t, r, m->rank);
				uint64_t *l;

				if (dim < 0) {
					neighbours = false;
					continue;
				}
				swc_topo_coords(t, m->rank, y);
				l = &load[(r * t->ndims + (uint32_t)dim) * 2 +
					  (y[dim] == (x[dim] + 1) % t->dim[dim])];
				*l += m->nblocks;
				most = *l > most ? *l : most;
			}
		}
	}
	free(load);
	return neighbours ? (double)most * t->ndims / s->view[0].nblocks : -1;
}

static double load_of(const char *shape, enum swc_algo algo, enum swc_coll coll)
{
	struct set s;
	double load = -2;

	if (!build_set(&s, shape, args(algo, coll), OUT_OF_PLACE))
		load = busiest_link(&s);
	free_set(&s);
	return load;
}

static bool near(double a, double b)
{
	return a > b - 0.001 && a < b + 0.001;
}

static void test_loads(void)
{
	static const struct {
		const char *shape;
		enum swc_algo algo;
		double load;
	} table[] = {
		{ "ring:8", SWC_ALGO_RING2, 0.875 },
		{ "ring:8", SWC_ALGO_BUCKET2, 0.875 },
		{ "ring:64", SWC_ALGO_RING2, 0.984 },
		{ "ring:64", SWC_ALGO_BUCKET2, 0.984 },
		{ "torus:4x4", SWC_ALGO_BUCKET, 0.9375 },
		{ "torus:4x4", SWC_ALGO_BUCKET2, 0.9375 },
		{ "torus:8x8", SWC_ALGO_BUCKET, 0.984 },
		{ "torus:8x8", SWC_ALGO_BUCKET2, 0.984 },
		{ "torus:16x4", SWC_ALGO_BUCKET, 1.172 },
		{ "torus:16x4", SWC_ALGO_BUCKET2, 1.172 },
		{ "torus:4x4x4", SWC_ALGO_BUCKET, 0.984 },
		{ "torus:4x4x4", SWC_ALGO_BUCKET2, 0.984 },
		{ "torus:7x5", SWC_ALGO_BUCKET, 1.0286 },
		{ "torus:7x5", SWC_ALGO_BUCKET2, 1.0286 },
		{ "torus:8x8x8", SWC_ALGO_BUCKET, 0.998 },
		{ "torus:8x8x8", SWC_ALGO_BUCKET2, 0.998 },
		{ "torus:16x4", SWC_ALGO_HAMILTONIAN, 0.984 },
		{ "torus:8x8", SWC_ALGO_HAMILTONIAN, 0.984 },
	};
	char name[100];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		double all, half, back;

		if (short_form() && !strcmp(table[i].shape, "torus:8x8x8"))
			continue;
		all = load_of(table[i].shape, table[i].algo, SWC_ALLREDUCE);
		half = load_of(table[i].shape, table[i].algo, SWC_REDUCE_SCATTER);
		back = load_of(table[i].shape, table[i].algo, SWC_ALLGATHER);
		snprintf(name, sizeof(name), "%s: busiest link on %s carries %.4f, %.4f in a half",
			 swc_algo_name(table[i].algo), table[i].shape, all, half);
		ok(near(all, table[i].load) && near(2 * half, all) && near(2 * back, all), name);
	}
}

/* ---- rotate ---- */

static void test_rotate(void)
{
	int bad_barrier = 0, bad_all = 0, bad_steps = 0;
	char shape[40];

	for (uint32_t p = 2; p <= 64; p++) {
		struct swc_plan_args a = args(SWC_ALGO_ROTATE, SWC_BARRIER);
		struct set s;

		snprintf(shape, sizeof(shape), "switch:%u", p);
		bad_barrier |= check(shape, a, OUT_OF_PLACE, false);
		bad_steps |= build_set(&s, shape, a, OUT_OF_PLACE) ||
			     net_steps(&s.view[p - 1], 0) != log2_up(p);
		free_set(&s);

		a.coll = SWC_ALLTOALL;
		for (int placing = OUT_OF_PLACE; placing <= MIXED; placing++)
			if (p <= 24 || p % 3 == (uint32_t)placing)
				bad_all |= check(shape, a, (enum placing)placing, false);
		a.channels = 3;
		if (p < 12)
			bad_all |= check(shape, a, MIXED, false);
		bad_steps |= build_set(&s, shape, a, IN_PLACE) ||
			     net_steps(&s.view[p - 1], 0) != (p / 2 + 1) / 2;
		free_set(&s);
	}
	ok(!bad_barrier, "rotate: barrier, 2 to 64 members");
	ok(!bad_all, "rotate: alltoall, 2 to 64 members");
	ok(!bad_steps, "rotate: number of steps");
}

/* Only network steps of a barrier may have empty messages. */
static void test_empty(void)
{
	struct swc_plan_args a = args(SWC_ALGO_ROTATE, SWC_BARRIER);
	struct swc_plan_view v;
	char why[100] = "";
	struct set s;
	bool net, local, other;

	net = !build_set(&s, "switch:3", a, OUT_OF_PLACE);
	((struct swc_plan_step *)s.view[0].steps)->kind = SWC_STEP_LOCAL;
	local = swc_plan_check(s.plan[0], s.bytes[0], &v, why, sizeof(why)) &&
		strstr(why, "blocks");
	free_set(&s);
	a.coll = SWC_ALLTOALL;
	net &= !build_set(&s, "switch:3", a, OUT_OF_PLACE);
	((struct swc_plan_xfer *)s.view[0].xfers)->nblocks = 0;
	other = swc_plan_check(s.plan[0], s.bytes[0], &v, why, sizeof(why)) &&
		strstr(why, "blocks");
	free_set(&s);
	ok(net && local && other, "empty messages outside of a barrier are refused");
}

/* Building one plan does not take time or memory of the order of the network. */
static void test_large(void)
{
	static const struct {
		const char *shape;
		enum swc_algo algo;
		enum swc_coll coll;
	} large[] = {
		{ "torus:64x64", SWC_ALGO_HAMILTONIAN, SWC_REDUCE_SCATTER },
		{ "torus:64x64", SWC_ALGO_BUCKET, SWC_ALLGATHER },
		{ "torus:1024x1024", SWC_ALGO_BUCKET2, SWC_ALLREDUCE },
		{ "switch:1048575", SWC_ALGO_CIRCULANT, SWC_ALLREDUCE },
		{ "switch:4095", SWC_ALGO_ROTATE, SWC_ALLTOALL },
		{ "switch:1048575", SWC_ALGO_ROTATE, SWC_BARRIER },
	};
	char name[100], why[200] = "";

	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		struct swc_plan_args a = { .algo = large[i].algo,
					   .coll = large[i].coll,
					   .param = -1 };
		struct swc_plan_view v;
		struct swc_topo t;
		size_t bytes = 0;
		void *plan = NULL;
		int ret = swc_topo_parse(&t, large[i].shape, why, sizeof(why));

		a.topo = &t;
		a.nranks = t.nranks;
		a.rank = t.nranks - 2;
		if (!ret)
			ret = swc_plan_build(&a, &plan, &bytes, why, sizeof(why));
		if (!ret)
			ret = swc_plan_check(plan, bytes, &v, why, sizeof(why));
		snprintf(name, sizeof(name), "%s: %s, %zu bytes", swc_algo_name(large[i].algo),
			 large[i].shape, bytes);
		if (!ok(!ret, name))
			printf("# %s\n", why);
		free(plan);
		swc_topo_free(&t);
	}
}

int main(void)
{
	printf("TAP version 13\n");
	test_numbers();
	test_tori();
	test_choices();
	test_nodes();
	test_cycles();
	test_hamiltonian();
	test_loads();
	test_rotate();
	test_empty();
	test_large();
	return done();
}

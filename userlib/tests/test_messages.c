// SPDX-License-Identifier: GPL-2.0-only
/*
 * Both ends of a message say whether it is stored as it is, and which path it takes. The algorithms
 * set both right, the verifier finds wrong ones, and the paths stand for the routes of the
 * network's model. TAP on stdout.
 */
#include "plan/model/routes.h"
#include "plan_texts.h"
#include "plans.h"
#include "tap.h"
#include "topos.h"

/* A transfer of a network step. */
struct end {
	uint32_t rank, chan;
	bool recv;
	struct swc_plan_xfer *x;
};

/* Call @fn for each transfer of network steps, until it returns false. */
static bool each_end(const struct swc_plan_set *set, bool (*fn)(const struct end *e, void *arg),
		     void *arg)
{
	for (uint32_t r = 0; r < set->nranks; r++) {
		struct swc_plan_view v = view_of(set->plan[r], set->bytes[r]);

		for (uint32_t c = 0; c < v.hdr->nchannels; c++) {
			const struct swc_plan_step *s = &v.steps[v.channels[c].first_step];

			for (uint32_t i = 0; i < v.channels[c].nsteps; i++, s++) {
				struct swc_plan_xfer *x = (void *)&v.xfers[s->first_xfer];

				for (uint32_t k = 0;
				     s->kind == SWC_STEP_NET && k < (uint32_t)s->nsend + s->nrecv;
				     k++) {
					struct end e = { r, c, k >= s->nsend, &x[k] };

					if (!fn(&e, arg))
						return false;
				}
			}
		}
	}
	return true;
}

/* ---- the verifier finds wrong marks and paths ---- */

#define MOST 40 /* transfers of a set of plans that are spoilt, one at a time */

struct spoiling {
	struct swc_plan_set *set;
	const struct swc_topo *topo;
	uint32_t every, at;
	uint32_t stored, reduced, paths; /* number of spoilt ones */
};

static bool count(const struct end *e, void *arg)
{
	uint32_t *n = arg;

	*n += !!e->x;
	return true;
}

/* Does the verifier report the fault? */
static bool found(const struct spoiling *s, const char *text, const char *more)
{
	struct swc_verdict v = { 0 };
	int ret = verify(s->set, false, s->topo, &v);
	bool good = ret == -EINVAL && strstr(v.text, text) && strstr(v.text, more);

	if (!good)
		printf("# %d \"%s\" instead of \"%s\"\n", ret, v.text, text);
	return good;
}

static bool spoil(const struct end *e, void *arg)
{
	struct spoiling *s = arg;
	bool was = e->x->flags & SWC_XFER_STORED, good;
	char text[60];

	if (s->at++ % s->every)
		return true;
	e->x->path ^= 1;
	good = found(s, "by path", "receives by path");
	e->x->path ^= 1;
	s->paths++;
	if (e->recv)
		return good;
	e->x->flags ^= SWC_XFER_STORED;
	snprintf(text, sizeof(text), "rank %u sends %s what rank %u", e->rank,
		 was ? "without the stored mark" : "as stored", e->x->rank);
	good &= found(s, text, was ? "stores" : "reduces");
	e->x->flags ^= SWC_XFER_STORED;
	++*(was ? &s->stored : &s->reduced);
	return good;
}

/* Spoil plans of every algorithm between nodes, for every collective. */
static void test_spoilt(const char *shape)
{
	struct swc_topo t = topo_of(shape);

	for (unsigned int algo = 0; algo < SWC_ALGO_NR; algo++) {
		const struct swc_algo_info *info = swc_algo_info(algo);
		bool good = true, any = false;
		uint32_t stored = 0, reduced = 0;
		char name[120];

		for (int coll = 0; coll < SWC_COLL_NR; coll++) {
			struct swc_plan_set set;
			struct swc_verdict v;
			struct spoiling s = { .set = &set, .topo = &t };
			uint32_t n = 0;

			if (info->one_node || !(info->colls & 1u << coll))
				continue;
			if (!build(&set, (enum swc_algo)algo, (enum swc_coll)coll, &t, t.nranks,
				   0)) {
				any = true;
				each_end(&set, count, &n);
				s.every = n / MOST + 1;
				good &= n && !verify(&set, false, &t, &v) &&
					each_end(&set, spoil, &s) && s.paths;
				stored += s.stored;
				reduced += s.reduced;
			}
			swc_plan_set_free(&set);
		}
		snprintf(name, sizeof(name), "%s on %s: wrong marks and paths are found",
			 info->name, shape);
		if (any && !ok(good && stored + reduced, name))
			printf("# %u stored, %u reduced\n", stored, reduced);
	}
	swc_topo_free(&t);
}

/* ---- paths and the routes of the model ---- */

struct routes {
	const struct swc_topo *topo;
	struct swc_links links;
	struct swc_route route;
	uint32_t first, others; /* messages on path 0 and on others where there are several */
};

/*
 * The links of a path, computed from the definition of paths: one dimension after the other in order, as the node
 * sees it whose path it is; and the same back, where a network has two dimensions.
 */
static uint32_t links_of(const struct swc_topo *t, uint32_t path, uint32_t from, uint32_t to,
			 uint32_t *link, uint32_t *most)
{
	uint32_t at[SWC_TOPO_DIMS], end[SWC_TOPO_DIMS], dim[SWC_TOPO_DIMS], n = 0, ndims = 0;
	bool two = false, back = false;

	swc_topo_coords(t, from, at);
	swc_topo_coords(t, to, end);
	for (uint32_t i = 0; i < t->ndims; i++)
		if (at[i] != end[i])
			dim[ndims++] = i;
	if (ndims > 1 && path % 2 != (from > to)) {
		if (t->ndims > 2)
			return 0;
		back = true;
		swc_topo_coords(t, to, at);
		swc_topo_coords(t, from, end);
	}
	for (uint32_t k = 0; k < ndims; k++) {
		uint32_t i = dim[k], up = (end[i] + t->dim[i] - at[i]) % t->dim[i];
		uint32_t down = t->dim[i] - up;
		bool tie = up == down && (!k || k == ndims - 1), go_down = up > down;

		/* Alone, path 0 goes up from the node with the lower number, and so down to it. */
		if (tie)
			go_down = ndims == 1 ? (path ? from < to : from > to) : path >= 2;
		two |= tie;
		while (at[i] != end[i]) {
			uint32_t leaves = swc_topo_node_at(t, at);

			at[i] = (at[i] + (go_down ? t->dim[i] - 1 : 1)) % t->dim[i];
			if (back)
				leaves = swc_topo_node_at(t, at);
			link[n++] = (leaves * t->ndims + i) * 2 + (go_down != back);
		}
	}
	*most = (ndims > 1 ? 2 : 1) << two;
	for (uint32_t k = 0; back && k < n / 2; k++) {
		uint32_t x = link[k];

		link[k] = link[n - 1 - k];
		link[n - 1 - k] = x;
	}
	return n;
}

static bool same_route(const struct end *e, void *arg)
{
	struct routes *r = arg;
	uint32_t peer = e->x->rank, most, link[64], n;
	uint32_t from = swc_topo_node_of(r->topo, e->recv ? peer : e->rank);
	uint32_t to = swc_topo_node_of(r->topo, e->recv ? e->rank : peer);
	bool good;

	if (swc_route_set(&r->route, &r->links, e->x->path, from, to))
		abort();
	n = links_of(r->topo, e->x->path, from, to, link, &most);
	good = n && n == r->route.n && !memcmp(link, r->route.link, n * sizeof(*link)) &&
	       most == swc_topo_npaths(r->topo, from, to) && e->x->path < most;
	if (!good)
		printf("# channel %u, node %u to %u, path %u: link %u by the path, %u by the model\n",
		       e->chan, from, to, e->x->path, link[0], r->route.link[0]);
	if (most > 1)
		++*(e->x->path ? &r->others : &r->first);
	return good;
}

static void test_routes(const char *shape, bool several)
{
	struct swc_topo t = topo_of(shape);
	struct routes r = { .topo = &t, .links = swc_links_of(&t) };
	char name[120];

	for (unsigned int algo = 0; algo < SWC_ALGO_NR; algo++) {
		const struct swc_algo_info *info = swc_algo_info(algo);
		bool good = true;

		if (info->one_node)
			continue;
		for (int coll = 0; coll < SWC_COLL_NR; coll++) {
			struct swc_plan_set set;

			/* Other collectives treat ranks of one node as nodes of their own. */
			if (!(info->colls & 1u << coll) ||
			    (coll != SWC_ALLREDUCE && t.nranks > t.nnodes))
				continue;
			if (!build(&set, (enum swc_algo)algo, (enum swc_coll)coll, &t, t.nranks, 0))
				good &= each_end(&set, same_route, &r);
			swc_plan_set_free(&set);
		}
		snprintf(name, sizeof(name), "%s on %s: paths are the model's routes", info->name,
			 shape);
		ok(good, name);
	}
	snprintf(name, sizeof(name),
		 "%s: where there are several paths, %u messages on path 0, %u on others", shape,
		 r.first, r.others);
	ok(several ? r.first && r.others : !r.first && !r.others, name);
	free(r.route.link);
	swc_topo_free(&t);
}

/* The leg of a route along a dimension, by what topo.h says. @i, @n: which of how many dimensions that differ */
static struct swc_topo_leg leg_by_words(const struct swc_topo *t, uint32_t dim, uint32_t x,
					uint32_t y, uint32_t path, bool of_sender, uint32_t i,
					uint32_t n)
{
	uint32_t up = (y + t->dim[dim] - x) % t->dim[dim], down = t->dim[dim] - up;
	bool chosen = n == 1 ? path % 2 : path >= 2 && (!i || i == n - 1);
	struct swc_topo_leg leg = { .dim = (uint8_t)dim };

	if (t->kind == SWC_TOPO_MESH)
		leg.down = y < x;
	else
		leg.down = up == down ? chosen == of_sender : down < up;
	leg.hops = leg.down ? down : up;
	return leg;
}

/* All routes by their definition, from node to node. */
static bool routes_as_defined(const struct swc_topo *t, uint32_t from, uint32_t to)
{
	uint32_t a[SWC_TOPO_DIMS], b[SWC_TOPO_DIMS], dim[SWC_TOPO_DIMS], n = 0;
	bool good = true;

	swc_topo_coords(t, from, a);
	swc_topo_coords(t, to, b);
	for (uint32_t i = 0; i < t->ndims; i++)
		if (a[i] != b[i])
			dim[n++] = i;
	for (uint32_t path = 0; path < swc_topo_npaths(t, from, to); path++) {
		struct swc_topo_leg leg[SWC_TOPO_DIMS];
		/* Of one dimension, both paths are named by the lower node. */
		bool of_sender = (n > 1 && path % 2) == (from > to);

		good &= swc_topo_route(t, path, from, to, leg) == n;
		for (uint32_t i = 0; good && i < n; i++) {
			uint32_t at = of_sender || n == 1 ? i : n - 1 - i, d = dim[at];
			struct swc_topo_leg want = leg_by_words(t, d, a[d], b[d], path, of_sender,
								at, n);

			good = leg[i].dim == want.dim && leg[i].down == want.down &&
			       leg[i].hops == want.hops;
		}
	}
	return good;
}

static void test_definition(void)
{
	static const char *const shapes[] = { "torus:2x2x2x2x2x2x2x2", "torus:3x3x3x3",
					      "torus:4x4x4x4",	       "torus:4x3x2x6",
					      "torus:1x4x1x2",	       "torus:6x6x6",
					      "mesh:3x4x2x5",	       "ring:12" };
	bool good = true;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct swc_topo t = topo_of(shapes[i]);

		for (uint32_t pair = 0; pair < t.nnodes * t.nnodes; pair++)
			good &= routes_as_defined(&t, pair / t.nnodes, pair % t.nnodes);
		swc_topo_free(&t);
	}
	ok(good, "routes on many dimensions are those of the definition");
}

/*
 * At half the way round, plain channels go up and mirrored ones down: they share no link in a step.
 */
static void test_mirrored(void)
{
	struct swc_topo t = topo_of("torus:2x8");
	bool good = true;

	/* Half the way round the second dimension is between x and x + 4. */
	for (uint32_t c = 0; c < 8; c++) {
		bool mirrored = c % 4 >= 2;

		good &= swc_topo_path(&t, c, 1, 5) == mirrored &&
			swc_topo_path(&t, c, 5, 1) == !mirrored;
		/* The first one has two members. */
		good &= swc_topo_path(&t, c, 3, 11) == mirrored &&
			swc_topo_path(&t, c, 11, 3) == !mirrored;
		/* One tie and a hop; two ties; none. */
		good &= swc_topo_path(&t, c, 3, 12) == 2u * mirrored &&
			swc_topo_path(&t, c, 12, 3) == 1 + 2u * mirrored &&
			swc_topo_path(&t, c, 3, 15) == 2u * mirrored &&
			swc_topo_path(&t, c, 15, 3) == 1 + 2u * !mirrored &&
			!swc_topo_path(&t, c, 3, 5) && !swc_topo_path(&t, c, 3, 3);
	}
	ok(good, "paths at half the way round");
	swc_topo_free(&t);
	t = topo_of("switch:4*2@4rails");
	ok(swc_topo_rails_per_rank(&t) == 2 && swc_topo_rail(&t, 0, 0, 2) == 0 &&
		   swc_topo_rail(&t, 1, 2, 0) == 1 && swc_topo_rail(&t, 0, 1, 2) == 2 &&
		   swc_topo_rail(&t, 1, 3, 5) == 3 && swc_topo_rail(&t, 1, 5, 3) == 3,
	   "a switch: the path is a rail");
	swc_topo_free(&t);
	t = topo_of("mesh:4x4");
	ok(!swc_topo_path(&t, 3, 0, 2) && !swc_topo_path(&t, 3, 2, 0) &&
		   !swc_topo_path(&t, 3, 0, 5) && swc_topo_path(&t, 3, 5, 0) == 1 &&
		   swc_topo_npaths(&t, 2, 0) == 1,
	   "a mesh: one path along a dimension, else one of each sender");
	swc_topo_free(&t);
}

/* ---- networks without a choice of paths ---- */

static bool by_channel(const struct end *e, void *arg)
{
	const struct swc_topo *t = arg;
	bool away = !t || swc_topo_node_of(t, e->rank) != swc_topo_node_of(t, e->x->rank);

	return e->x->path == (away ? e->chan : 0);
}

static bool none(const struct end *e, void *arg)
{
	(void)arg;
	return !e->x->path;
}

static void test_channels(void)
{
	struct swc_topo t = topo_of("switch:3*2,1,3"), one = topo_of("switch:1*6");
	struct swc_plan_set set;

	ok(!build(&set, SWC_ALGO_RING, SWC_ALLGATHER, &t, t.nranks, 3) &&
		   each_end(&set, by_channel, &t),
	   "a switch: the path is the channel between nodes, 0 within");
	swc_plan_set_free(&set);
	ok(!build(&set, SWC_ALGO_RING, SWC_ALLGATHER, &one, 6, 3) && each_end(&set, none, NULL),
	   "a switch of one node: no paths");
	swc_plan_set_free(&set);
	ok(!build(&set, SWC_ALGO_RING, SWC_ALLGATHER, NULL, 6, 3) && each_end(&set, none, NULL),
	   "ranks that share memory: no paths");
	swc_plan_set_free(&set);
	swc_topo_free(&t);
	swc_topo_free(&one);
}

int main(void)
{
	static const char *const tori[] = { "torus:2x2",
					    "torus:4x4",
					    "torus:2x4",
					    "ring:8",
					    "torus:3x4",
					    "ring:6",
					    "torus:2x4*2,1,1,3,2,2,1,2" };

	printf("TAP version 13\n");
	test_spoilt("torus:2x4");
	test_spoilt("torus:4x4");
	test_spoilt("switch:6");
	test_spoilt("torus:2x2*2,1,3,2");
	for (size_t i = 0; i < sizeof(tori) / sizeof(tori[0]); i++)
		test_routes(tori[i], true);
	test_routes("torus:3x5", true);
	test_routes("torus:2x3x4", true);
	test_routes("ring:7", false);
	test_definition();
	test_mirrored();
	test_channels();
	return done();
}

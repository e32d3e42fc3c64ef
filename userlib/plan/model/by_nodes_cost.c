// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The cost of an all-to-all by nodes without its plans, which are long: all nodes do the same, but for the
 * sum with which a node is its own peer. There it sends nothing, and its ranks take each shard by itself.
 */
#include "plan/model/by_nodes_cost.h"

#include <errno.h>
#include <stdlib.h>

#include "kmod/core/plan_check.h"
#include "plan/algo/by_nodes.h"
#include "plan/model/loads.h"

/* On other networks than a switch. */
#define MOST_MESSAGES (1u << 20)

/**
 * struct totals - of a local rank of a node
 * @parts: that it carries; those that it exchanges with other nodes are its messages
 * @extra: of them, but for the first of each segment
 * @copies: that transpose, and @blocks in them
 */
struct totals {
	uint64_t parts, extra, copies, blocks;
};

struct sums {
	const struct swc_topo *topo;
	struct swc_by_nodes k;
	struct totals *carried; /* by local rank, if no node were its own peer */
	uint64_t parts;
};

static void add_copies(const struct sums *u, uint32_t n, struct totals *t, int sign)
{
	if (u->k.segments > 1)
		return;
	t->copies += (uint64_t)sign * (n == 1 ? 1 : (uint64_t)n * u->k.local);
	t->blocks += (uint64_t)sign * n * u->k.local;
}

static void count_carried(struct sums *u, uint32_t local)
{
	struct totals *t = &u->carried[local];

	for (uint32_t i = 0; i < u->k.segments; i++) {
		struct swc_by_nodes_part p = { 0 };

		for (uint32_t n = 0; swc_by_nodes_next(&u->k, i, local, &p); n++) {
			t->parts++;
			t->extra += n > 0;
			add_copies(u, p.n, t, 1);
		}
	}
	u->parts += t->parts;
}

/* Of a node's ranks with a sum: how many rows this one carries, and in a segment with how many sums. */
static uint32_t rows_of(const struct sums *u, uint32_t sum, uint32_t local, uint32_t *sums)
{
	uint32_t segment = sum / u->k.sums;
	uint64_t first = (uint64_t)(sum - segment * u->k.sums) * u->k.local,
		 end = first + u->k.local;
	uint64_t mine, mine_end;

	*sums = swc_by_nodes_sums(&u->k, segment);
	mine = (uint64_t)local * *sums;
	mine_end = mine + *sums;
	first = first > mine ? first : mine;
	end = end < mine_end ? end : mine_end;
	return end > first ? (uint32_t)(end - first) : 0;
}

/* Of its own sum, a rank has no message and no copies that transpose. */
static struct totals without_own(const struct sums *u, uint32_t sum, uint32_t local)
{
	struct totals t = u->carried[local];
	uint32_t sums, rows = rows_of(u, sum, local, &sums);

	if (!rows)
		return t;
	t.parts--;
	/* If it is all that the rank has in the segment, it has no step there. */
	t.extra -= rows < sums;
	add_copies(u, rows, &t, -1);
	return t;
}

static uint32_t owners(const struct sums *u, uint32_t sum)
{
	uint32_t sums, n = 0;

	for (uint32_t j = 0; j < u->k.local; j++)
		n += rows_of(u, sum, j, &sums) > 0;
	return n;
}

/*
 * Copies in which a rank takes what is for it from the carriers of its node: one for each part, if they are
 * transposed, but for each shard of the own sum.
 */
static uint64_t takes(const struct sums *u, uint32_t sum)
{
	return u->k.segments > 1 ? (uint64_t)u->k.nodes * u->k.local
				 : u->parts - owners(u, sum) + u->k.local;
}

static void most(uint64_t *value, uint64_t is)
{
	*value = is > *value ? is : *value;
}

static void add_up_node(const struct sums *u, uint32_t node, struct swc_cost *cost)
{
	uint32_t n = u->k.nodes, sum = (uint32_t)(2ull * node % n);
	uint64_t local_steps = n + takes(u, sum), conns;
	double p = (double)n * u->k.local;

	for (uint32_t j = 0; j < u->k.local; j++) {
		struct totals t = without_own(u, sum, j);

		most(&cost->extra, t.extra);
		most(&cost->copies, local_steps + t.copies);
		most(&cost->copy_steps,
		     local_steps + (t.copies + SWC_MAX_COPIES - 1) / SWC_MAX_COPIES);
		conns = t.parts;
		if (conns > cost->connections)
			cost->connections = (uint32_t)conns;
		if ((2 * p + (double)t.blocks) / p > cost->copied)
			cost->copied = (2 * p + (double)t.blocks) / p;
	}
}

/* The plan of a rank that has everything is the longest, or nearly so. */
static bool has_plans(const struct sums *u)
{
	uint64_t steps = 4ull * u->k.segments + u->k.nodes + takes(u, 0), bytes = 0;

	for (uint32_t j = 0; j < u->k.local; j++)
		most(&bytes, sizeof(struct swc_plan_header) + sizeof(struct swc_plan_channel) +
				     (steps + 1 + u->carried[j].copies / SWC_MAX_COPIES) *
					     sizeof(struct swc_plan_step) +
				     2 *
					     (u->k.nodes + takes(u, 0) + u->carried[j].copies +
					      u->carried[j].parts) *
					     sizeof(struct swc_plan_xfer));
	return bytes <= SWC_MAX_PLAN_BYTES;
}

/* ---- links ---- */

/* Rows on the most loaded rail of a node in a segment; @own: the node's own sum, or none of the segment. */
static uint32_t rows_on_rail(const struct sums *u, uint32_t segment, uint32_t own)
{
	uint32_t row[SWC_TOPO_RAILS] = { 0 }, peak = 0, sums, first = segment * u->k.sums;

	for (uint32_t j = 0; j < u->k.local; j++) {
		uint32_t *at = &row[swc_topo_rail(u->topo, 0, j, u->k.local + j)];

		*at += swc_by_nodes_sums(&u->k, segment);
		if (own >= first && own - first < u->k.sums)
			*at -= rows_of(u, own, j, &sums);
		peak = *at > peak ? *at : peak;
	}
	return peak;
}

/* All nodes load the links of a switch alike, but for the segment in which they are their own peers. */
static void load_switch(const struct sums *u, struct swc_cost *cost)
{
	uint32_t n = u->k.nodes;

	for (uint32_t i = 0; i < u->k.segments; i++) {
		uint32_t first = i * u->k.sums, peak = 0, others = 0;

		for (uint32_t node = 0; node < n; node++) {
			uint32_t own = (uint32_t)(2ull * node % n), rows = 0;

			if (own >= first && own - first < u->k.sums)
				rows = rows_on_rail(u, i, own);
			else if (!others)
				rows = others = rows_on_rail(u, i, n);
			peak = rows > peak ? rows : peak;
		}
		cost->eager.load += (double)peak / n;
		cost->eager.hops++;
	}
}

/* A pair of nodes whose two ways are different paths has a connection for each. */
static void count_paths(const struct sums *u, uint32_t node, const bool *twice,
			struct swc_cost *cost)
{
	for (uint32_t j = 0; j < u->k.local; j++) {
		uint32_t conns = 0;

		for (uint32_t i = 0; i < u->k.segments; i++) {
			struct swc_by_nodes_part p = { 0 };

			while (swc_by_nodes_next(&u->k, i, j, &p)) {
				uint32_t peer = swc_by_nodes_peer(&u->k, p.sum, node);

				conns += peer != node ? 1u + twice[peer] : 0;
			}
		}
		cost->connections = conns > cost->connections ? conns : cost->connections;
	}
}

static int load_others(const struct sums *u, struct swc_cost *cost)
{
	uint32_t n = u->k.nodes, local = u->k.local;
	bool *twice = calloc(n, sizeof(*twice));
	struct swc_loads loads = { 0 };
	int ret = twice ? swc_loads_open(&loads, u->topo, u->k.segments) : -ENOMEM;

	cost->connections = 0;
	for (uint32_t a = 0; !ret && a < n; a++) {
		for (uint32_t sum = 0; sum < n; sum++) {
			uint32_t b = swc_by_nodes_peer(&u->k, sum, a), path;

			if (a == b)
				continue;
			path = swc_topo_path(u->topo, 0, a, b);
			twice[b] = swc_topo_path(u->topo, 0, b, a) != path;
			swc_loads_add_route(&loads, sum / u->k.sums, path, a, b,
					    (int32_t)(local * local));
		}
		count_paths(u, a, twice, cost);
	}
	for (uint32_t i = 0; !ret && i < u->k.segments; i++) {
		cost->eager.hops += loads.hops[i];
		cost->eager.load += swc_loads_peak(&loads, i) / n / local;
	}
	swc_loads_free(&loads);
	free(twice);
	return ret;
}

static int find_cost(struct sums *u, struct swc_cost *cost)
{
	uint32_t n = u->k.nodes;
	int ret = 0;

	u->carried = calloc(u->k.local, sizeof(*u->carried));
	if (!u->carried)
		return -ENOMEM;
	for (uint32_t j = 0; j < u->k.local; j++)
		count_carried(u, j);
	if (!has_plans(u))
		return -EOPNOTSUPP;
	*cost = (struct swc_cost){ .eager = { .steps = u->k.segments } };
	for (uint32_t node = 0; node < n; node++)
		add_up_node(u, node, cost);
	if (u->topo->kind == SWC_TOPO_SWITCH)
		load_switch(u, cost);
	else
		ret = load_others(u, cost);
	cost->phased = cost->eager;
	cost->psi_xi = cost->phased.load * u->topo->ndims;
	return ret;
}

int swc_by_nodes_cost(const struct swc_plan_args *args, struct swc_cost *cost)
{
	const struct swc_topo *t = args->topo;
	struct sums u = { .topo = t };
	int ret;

	if (!t || args->given || args->algo != SWC_ALGO_BY_NODES || args->coll != SWC_ALLTOALL ||
	    t->nslow || !swc_by_nodes_find(&u.k, t, args->param) ||
	    (t->kind != SWC_TOPO_SWITCH && (uint64_t)t->nnodes * t->nnodes > MOST_MESSAGES))
		return -EOPNOTSUPP;
	ret = find_cost(&u, cost);
	free(u.carried);
	return ret;
}

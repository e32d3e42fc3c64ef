// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The cost of Bruck's all-to-all without its plans, which are long: all members pack the same, and in a step
 * each sends to those at the same distances.
 */
#include "plan/model/bruck_cost.h"

#include <errno.h>
#include <stdlib.h>

#include "kmod/core/plan_check.h"
#include "plan/algo/bruck.h"
#include "plan/model/loads.h"

/* Of all ranks in all steps. */
#define MOST_MESSAGES (4u << 20)

/**
 * struct sums - a computation
 * @order: of the shards, in the step that it is at
 * @used: by distance: is there a message to the member there?
 * @copy_steps, @copies, @copied: of a rank, and the shards in them
 * @messages, @sent: of a rank, and the shards in them
 * @conns: by rank
 */
struct sums {
	const struct swc_topo *topo;
	struct swc_bruck order;
	struct swc_loads loads;
	bool *used;
	uint64_t copy_steps, copies, copied, sent;
	uint32_t steps, messages, *conns;
};

static void count_copy(void *arg, uint32_t digit, uint32_t from, uint32_t to, uint32_t n)
{
	struct sums *u = arg;

	(void)digit;
	(void)from;
	(void)to;
	u->copies++;
	u->copied += n;
}

/* Copy steps for so many copies. */
static uint64_t steps_for(uint64_t copies)
{
	return (copies + SWC_MAX_COPIES - 1) / SWC_MAX_COPIES;
}

/* The copies of the members whose own shards go on at member 0, and the messages of those where others do. */
static void count_step(struct sums *u)
{
	const struct swc_bruck *k = &u->order;
	uint64_t before = u->copies;
	bool split = false;

	if (k->first) {
		u->copies += 1 + (k->count[0] > 1);
		u->copied += k->count[0];
	} else {
		swc_bruck_pack(k, count_copy, u);
	}
	u->copy_steps += steps_for(u->copies - before);
	for (uint32_t v = 1; v < k->radix; v++) {
		u->messages += k->count[v] > 0;
		u->sent += k->count[v];
		split |= k->first && k->count[v] > 1;
	}
	u->messages += split;
}

static uint32_t path_of(const struct sums *u, uint32_t from, uint32_t to)
{
	return u->topo->kind == SWC_TOPO_SWITCH ? 0 : swc_topo_path(u->topo, 0, from, to);
}

/* What all ranks send at a distance, and the connections that it needs. */
static void send(struct sums *u, uint32_t step, uint32_t distance, uint32_t shards)
{
	uint32_t n = u->order.n;
	bool back = u->used[n - distance];

	for (uint32_t from = 0; from < n; from++) {
		uint32_t to = from + distance < n ? from + distance : from + distance - n;
		uint32_t node = swc_topo_node_of(u->topo, from), path;
		uint32_t peer = swc_topo_node_of(u->topo, to);

		if (node == peer)
			continue;
		path = path_of(u, node, peer);
		swc_loads_add_route(&u->loads, step, path, node, peer, (int32_t)shards);
		/* What comes back the same way has the same connection, and counts the other end of it. */
		u->conns[from]++;
		if (!back || path_of(u, peer, node) != path)
			u->conns[to]++;
	}
}

static void send_step(struct sums *u, uint32_t step)
{
	const struct swc_bruck *k = &u->order;

	for (uint32_t v = 1; v < k->radix; v++)
		if (k->count[v])
			send(u, step, v * k->weight, k->count[v]);
}

static bool has_plans(const struct sums *u)
{
	uint64_t copies = u->copies + u->order.n;
	uint64_t bytes = sizeof(struct swc_plan_header) + sizeof(struct swc_plan_channel) +
			 (u->copy_steps + steps_for(u->order.n) + u->steps) *
				 sizeof(struct swc_plan_step) +
			 2 * (copies + u->messages) * sizeof(struct swc_plan_xfer);

	return bytes <= SWC_MAX_PLAN_BYTES;
}

/* Before anything is sent: which distances there are, and whether it is too much. */
static int look_ahead(struct sums *u)
{
	int ret = swc_bruck_open(&u->order, u->order.n, u->order.radix);

	if (ret)
		return ret;
	do {
		count_step(u);
		for (uint32_t v = 1; v < u->order.radix; v++)
			if (u->order.count[v])
				u->used[v * u->order.weight] = true;
		u->steps++;
	} while (swc_bruck_next(&u->order));
	if (!has_plans(u) || (uint64_t)u->messages * u->order.n > MOST_MESSAGES)
		return -EOPNOTSUPP;
	return swc_loads_open(&u->loads, u->topo, u->steps);
}

static int send_all(struct sums *u)
{
	uint32_t n = u->order.n, radix = u->order.radix, step = 0;
	int ret;

	swc_bruck_close(&u->order);
	ret = swc_bruck_open(&u->order, n, radix);
	if (ret)
		return ret;
	do
		send_step(u, step++);
	while (swc_bruck_next(&u->order));
	return 0;
}

static void add_up(const struct sums *u, struct swc_cost *cost)
{
	uint32_t n = u->order.n;

	*cost = (struct swc_cost){ .eager = { .steps = u->steps },
				   .extra = u->messages - u->steps,
				   .copy_steps = u->copy_steps + steps_for(n),
				   .copies = u->copies + n,
				   .copied = (double)(u->copied + n) / n,
				   .sent = (double)u->sent / n };
}

static void add_up_loads(struct sums *u, struct swc_cost *cost)
{
	uint32_t n = u->order.n;

	for (uint32_t k = 0; k < u->steps; k++) {
		cost->eager.hops += u->loads.hops[k];
		cost->eager.load += swc_loads_peak(&u->loads, k) / n;
	}
	for (uint32_t i = 0; i < n; i++)
		if (u->conns[i] > cost->connections)
			cost->connections = u->conns[i];
	cost->phased = cost->eager;
	cost->psi_xi = cost->phased.load * u->topo->ndims;
}

static int open_sums(struct sums *u, const struct swc_plan_args *args)
{
	const struct swc_topo *t = args->topo;
	uint32_t radix = args->param == SWC_PARAM_DEFAULT ? SWC_BRUCK_RADIX : (uint32_t)args->param;

	if (!t || args->given || args->algo != SWC_ALGO_BRUCK || args->coll != SWC_ALLTOALL ||
	    t->nslow || t->nnodes < 2 || (t->nnodes != t->nranks && t->rails > 1) || radix < 2 ||
	    radix > SWC_BRUCK_MAX_RADIX)
		return -EOPNOTSUPP;
	u->topo = t;
	u->order = (struct swc_bruck){ .n = t->nranks, .radix = radix };
	u->used = calloc(t->nranks + 1ull, sizeof(*u->used));
	u->conns = calloc(t->nranks, sizeof(*u->conns));
	return u->used && u->conns ? 0 : -ENOMEM;
}

static int find_cost(const struct swc_plan_args *args, struct swc_cost *cost, bool loads)
{
	struct sums u = { 0 };
	int ret = open_sums(&u, args);

	if (!ret)
		ret = look_ahead(&u);
	if (!ret)
		add_up(&u, cost);
	if (!ret && loads)
		ret = send_all(&u);
	if (!ret && loads)
		add_up_loads(&u, cost);
	swc_bruck_close(&u.order);
	swc_loads_free(&u.loads);
	free(u.used);
	free(u.conns);
	return ret;
}

int swc_bruck_cost(const struct swc_plan_args *args, struct swc_cost *cost)
{
	return find_cost(args, cost, true);
}

int swc_bruck_pieces(const struct swc_plan_args *args, struct swc_cost *cost)
{
	return find_cost(args, cost, false);
}

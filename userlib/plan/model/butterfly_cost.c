// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The cost of butterflies without their plans. Their messages are known line by line, so all of them can be
 * sent in the time that a few plans take to build. It is the cost that the step model finds in the plans:
 * a message happens when both ends have reached it, which in a folded butterfly is not the same time on all
 * lines.
 */
#include "plan/model/butterfly_cost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "plan/algo/butterfly_rounds.h"
#include "plan/model/loads.h"

/*
 * Messages of all ports, at most. And blocks of a plan that sends sets of them, or nodes times ports: a plan
 * has at most four ranges for each, sent and received there and back, and a copy.
 */
#define MOST_MESSAGES (2u << 20)
#define MOST_BLOCKS (1u << 16)

/* A message of each line of a round. */
struct lane {
	uint32_t from, to, units, less, path, hops;
	struct swc_span span;
};

/**
 * struct sums - a computation
 * @port: that it is at
 * @times: how many there are
 * @ready: by node, when it begins its next step of the channel; @begin: of a line, its present one
 * @reduced: by node, blocks of the channel; @most_reduced: of any
 * @sent: blocks of all nodes on the channel
 * @extra: as in struct swc_cost
 * @conns: by dimension and coordinate: connections of all channels along it
 * @lane: of the round
 */
struct sums {
	const struct swc_topo *topo;
	struct swc_butterfly_rounds rounds;
	struct swc_loads loads;
	uint32_t port, times;
	uint16_t *ready, *begin;
	uint64_t *reduced, most_reduced, sent, extra;
	uint32_t *conns[SWC_TOPO_DIMS];
	struct lane *lane;
};

/* ---- lines ---- */

/* What an exchange of a round is on all lines. */
static struct lane lane_of(const struct sums *u, const struct swc_butterfly_round *round,
			   const struct swc_exchange *e)
{
	const struct swc_topo *t = u->topo;
	struct lane a = { .from = round->back ? e->to : e->from,
			  .to = round->back ? e->from : e->to,
			  .units = e->units,
			  .less = e->less,
			  .hops = 1 };
	struct swc_topo_leg leg;

	if (t->kind == SWC_TOPO_SWITCH)
		return a;
	a.path = swc_topo_path_on_line(t, u->port, round->dim, a.from, a.to, &leg);
	a.hops = leg.hops;
	a.span = swc_span_of(t, &leg, a.from);
	return a;
}

/* The messages of a line. @weight, @less: the other dimensions' factors */
static void send_line(struct sums *u, const struct swc_butterfly_round *round, uint32_t base,
		      uint32_t weight, uint32_t less)
{
	uint32_t stride = u->loads.stride[round->dim], *hops = u->loads.hops;
	bool switched = u->topo->kind == SWC_TOPO_SWITCH;

	for (uint32_t x = 0; x < u->topo->dim[round->dim]; x++)
		u->begin[x] = u->ready[base + x * stride];
	for (uint32_t i = 0; i < round->n; i++) {
		const struct lane *a = &u->lane[i];
		uint32_t blocks = (a->units * weight - a->less * less) * round->blocks;
		uint32_t from = base + a->from * stride, to = base + a->to * stride, time;

		if (!blocks)
			continue;
		time = u->begin[a->from] > u->begin[a->to] ? u->begin[a->from] : u->begin[a->to];
		u->ready[from] = (uint16_t)(time >= u->ready[from] ? time + 1 : u->ready[from]);
		u->ready[to] = (uint16_t)(time >= u->ready[to] ? time + 1 : u->ready[to]);
		hops[time] = a->hops > hops[time] ? a->hops : hops[time];
		u->times = time >= u->times ? time + 1 : u->times;
		u->reduced[to] += round->reduces ? blocks : 0;
		u->sent += blocks;
		if (switched)
			swc_loads_add_switched(&u->loads, time, a->from, a->to, (int32_t)blocks);
		else
			swc_loads_add(&u->loads, time, &a->span, base, (int32_t)blocks);
	}
}

static void send_round(struct sums *u, const struct swc_butterfly_round *round)
{
	const struct swc_topo *t = u->topo;
	uint32_t coord[SWC_TOPO_DIMS] = { 0 }, j, base = 0;

	for (uint32_t i = 0; i < round->n; i++)
		u->lane[i] = lane_of(u, round, &u->rounds.exchange[round->first + i]);
	do {
		uint32_t weight = 1, less = round->less[0] != NULL;

		for (j = 0; j < t->ndims; j++) {
			weight *= j == round->dim ? 1 : round->weight[j][coord[j]];
			less *= j == round->dim || !less ? 1 : round->less[j][coord[j]];
		}
		if (weight)
			send_line(u, round, base, weight, less);
		/* The next line. */
		for (j = t->ndims; j-- > 0; coord[j] = 0) {
			if (j == round->dim)
				continue;
			base += u->loads.stride[j];
			if (++coord[j] < t->dim[j])
				break;
			base -= coord[j] * u->loads.stride[j];
		}
	} while (j < t->ndims);
}

/* ---- connections ---- */

/**
 * struct partners - those of each coordinate of a dimension, with the paths of their messages
 * @end: by coordinate: where its partners end in @key, or how many there are
 * @fill: count first, then fill in
 */
struct partners {
	uint32_t *end, *key;
	bool fill;
};

static void add_partners(struct partners *p, const struct lane *a)
{
	if (!p->fill) {
		p->end[a->from + 1]++;
		p->end[a->to + 1]++;
		return;
	}
	p->key[p->end[a->from]++] = a->to * SWC_TOPO_PATHS + a->path;
	p->key[p->end[a->to]++] = a->from * SWC_TOPO_PATHS + a->path;
}

/* The round with the same exchanges the other way, if there is one. */
static const struct swc_butterfly_round *reverse_of(const struct sums *u,
						    const struct swc_butterfly_round *round)
{
	for (uint32_t s = 0; s < u->rounds.n; s++) {
		const struct swc_butterfly_round *other = &u->rounds.round[s];

		/* A round without exchanges begins where the next one does. */
		if (other->first == round->first && other->n == round->n &&
		    other->back != round->back)
			return other;
	}
	return NULL;
}

/* Mostly messages there and back have one path. */
static void list_partners(const struct sums *u, uint32_t dim, struct partners *p)
{
	for (uint32_t s = 0; s < u->rounds.n; s++) {
		const struct swc_butterfly_round *round = &u->rounds.round[s], *back;

		if (round->dim != dim || !round->n)
			continue;
		back = reverse_of(u, round);
		if (back && round->back)
			continue;
		for (uint32_t i = 0; i < round->n; i++) {
			const struct swc_exchange *e = &u->rounds.exchange[round->first + i];
			struct lane a = lane_of(u, round, e), b = a;

			add_partners(p, &a);
			if (back && 2 * a.hops == u->topo->dim[dim])
				b = lane_of(u, back, e);
			if (b.path != a.path)
				add_partners(p, &b);
		}
	}
}

/* Count the connections of each coordinate of a dimension on a channel, by what it exchanges on any line. */
static int count_connections(struct sums *u, uint32_t dim)
{
	uint32_t d = u->topo->dim[dim], all = 0, begin = 0;
	uint32_t *last = calloc((size_t)d * SWC_TOPO_PATHS, sizeof(*last));
	struct partners p = { .end = calloc(d + 1ull, sizeof(*p.end)) };

	for (uint32_t s = 0; s < u->rounds.n; s++)
		all += u->rounds.round[s].dim == dim ? 2 * u->rounds.round[s].n : 0;
	p.key = malloc((all + 1ull) * sizeof(*p.key));
	if (p.end && p.key && last) {
		list_partners(u, dim, &p);
		for (uint32_t x = 0; x < d; x++)
			p.end[x + 1] += p.end[x];
		p.fill = true;
		list_partners(u, dim, &p);
		for (uint32_t x = 0; x < d; begin = p.end[x++])
			for (uint32_t i = begin; i < p.end[x]; i++) {
				u->conns[dim][x] += last[p.key[i]] != x + 1;
				last[p.key[i]] = x + 1;
			}
	}
	free(p.end);
	free(p.key);
	free(last);
	return p.end && p.key && last ? 0 : -ENOMEM;
}

/* ---- adding up ---- */

static void add_up(struct sums *u, struct swc_cost *cost)
{
	const struct swc_topo *t = u->topo;
	uint32_t rails = swc_topo_rails_per_rank(t);
	double all = (double)u->rounds.nblocks * u->rounds.ports * rails;

	*cost = (struct swc_cost){ .eager = { .steps = u->times },
				   .reduced = (double)u->most_reduced / all,
				   .extra = u->extra,
				   .order_varies = u->rounds.order_varies };
	for (uint32_t k = 0; k < u->times; k++) {
		cost->eager.hops += u->loads.hops[k];
		cost->eager.load += swc_loads_peak(&u->loads, k) / all;
	}
	for (uint32_t j = 0; j < t->ndims; j++) {
		uint32_t most = 0;

		for (uint32_t x = 0; x < t->dim[j]; x++)
			most = u->conns[j][x] > most ? u->conns[j][x] : most;
		cost->connections += most * rails;
	}
	if (u->rounds.coll == SWC_ALLTOALL) {
		cost->copy_steps = 1;
		cost->copies = 1;
		cost->copied = 1 / all;
	}
	cost->phased = cost->eager;
	cost->psi_xi = cost->phased.load * t->ndims;
}

/* ---- all ---- */

static int open_sums(struct sums *u, const struct swc_topo *t)
{
	uint32_t longest = 0;
	bool good;

	u->topo = t;
	for (uint32_t j = 0; j < t->ndims; j++) {
		longest = t->dim[j] > longest ? t->dim[j] : longest;
		u->conns[j] = calloc(t->dim[j], sizeof(*u->conns[j]));
		if (!u->conns[j])
			return -ENOMEM;
	}
	u->ready = calloc(t->nnodes, sizeof(*u->ready));
	u->begin = calloc(longest, sizeof(*u->begin));
	u->reduced = calloc(t->nnodes, sizeof(*u->reduced));
	/* A coordinate has as many partners as there are others, at most. */
	u->lane = calloc(2ull * longest, sizeof(*u->lane));
	good = u->ready && u->begin && u->reduced && u->lane;
	return good ? 0 : -ENOMEM;
}

static void close_sums(struct sums *u)
{
	for (uint32_t j = 0; j < SWC_TOPO_DIMS; j++)
		free(u->conns[j]);
	swc_loads_free(&u->loads);
	free(u->ready);
	free(u->begin);
	free(u->reduced);
	free(u->lane);
	swc_butterfly_rounds_close(&u->rounds);
}

/* Is it certain that plans are not too large? */
static bool fits(const struct sums *u)
{
	uint64_t blocks = (uint64_t)u->topo->nnodes * u->rounds.ports *
			  swc_topo_rails_per_rank(u->topo);
	uint64_t bytes = sizeof(struct swc_plan_step) + 2 * sizeof(struct swc_plan_xfer);

	if (u->rounds.kind.in_ranges)
		return true;
	if (u->rounds.coll != SWC_ALLTOALL)
		return blocks <= MOST_BLOCKS;
	/* Each piece is a range of its own, and may be copied last. */
	bytes *= blocks;
	for (uint32_t s = 0; s < u->rounds.n; s++) {
		const struct swc_butterfly_round *r = &u->rounds.round[s];

		bytes += 2ull * u->rounds.exchange[r->first].units * r->blocks * u->rounds.ports *
			 sizeof(struct swc_plan_xfer);
	}
	return bytes + 65536 <= SWC_MAX_PLAN_BYTES;
}

/* The rounds of the first port tell how much there is to do. */
static int open_loads(struct sums *u)
{
	if ((uint64_t)u->rounds.n * u->topo->nnodes * u->rounds.ports > MOST_MESSAGES || !fits(u))
		return -EOPNOTSUPP;
	return swc_loads_open(&u->loads, u->topo, u->rounds.n);
}

/* In an all-to-all, where all members do the same, each block is a message. */
static void count_extra(struct sums *u)
{
	uint64_t each = u->sent / u->topo->nnodes - u->times;

	u->extra = each > u->extra ? each : u->extra;
}

static int send_port(struct sums *u)
{
	int ret = swc_butterfly_rounds_set_port(&u->rounds, u->port);

	if (!ret && !u->loads.load)
		ret = open_loads(u);
	if (ret)
		return ret;
	memset(u->ready, 0, u->topo->nnodes * sizeof(*u->ready));
	memset(u->reduced, 0, u->topo->nnodes * sizeof(*u->reduced));
	u->sent = 0;
	for (uint32_t s = 0; s < u->rounds.n; s++)
		send_round(u, &u->rounds.round[s]);
	if (u->rounds.coll == SWC_ALLTOALL)
		count_extra(u);
	for (uint32_t i = 0; i < u->topo->nnodes; i++)
		if (u->reduced[i] > u->most_reduced)
			u->most_reduced = u->reduced[i];
	for (uint32_t j = 0; j < u->topo->ndims && !ret; j++)
		ret = count_connections(u, j);
	return ret;
}

/*
 * Swing's scatter and allgather, on sides that are powers of two, put as much on the busiest link as its
 * reduce-scatter and allgather, of which one plan shows the cost; but on a mesh somewhat less.
 */
static bool like_allreduce(const struct swc_plan_args *args, struct swc_cost *cost)
{
	struct swc_plan_args a = *args;
	bool exact = args->topo->kind != SWC_TOPO_MESH;

	for (uint32_t i = 0; i < args->topo->ndims; i++)
		if (args->topo->dim[i] & (args->topo->dim[i] - 1))
			return false;
	if (args->algo != SWC_ALGO_BINE_SAG ||
	    (!exact && args->topo->nnodes * 2ull * args->topo->ndims <= MOST_BLOCKS))
		return false;
	a.coll = SWC_ALLREDUCE;
	a.algo = SWC_ALGO_SWING_B;
	a.root = 0;
	if (swc_cost_estimate(&a, 1, cost, NULL, NULL, NULL, 0) || cost->sampled)
		return false;
	cost->reduced = args->coll == SWC_REDUCE ? cost->reduced : 0;
	cost->sampled = !exact;
	return true;
}

static int count_messages(const struct swc_plan_args *args, struct swc_cost *cost)
{
	struct sums *u = calloc(1, sizeof(*u));
	int ret = -ENOMEM;

	if (!u)
		return ret;
	ret = swc_butterfly_rounds_open(&u->rounds, args);
	if (!ret && (uint64_t)args->topo->nnodes * u->rounds.ports > MOST_BLOCKS)
		ret = -EOPNOTSUPP;
	if (!ret)
		ret = open_sums(u, args->topo);
	for (; u->port < u->rounds.ports && !ret; u->port++)
		ret = send_port(u);
	if (!ret)
		add_up(u, cost);
	close_sums(u);
	free(u);
	return ret;
}

int swc_butterfly_cost(const struct swc_plan_args *args, struct swc_cost *cost)
{
	const struct swc_topo *t = args->topo;

	if (!t || args->given || args->ports || t->nslow || t->nnodes != t->nranks || t->nnodes < 2)
		return -EOPNOTSUPP;
	return like_allreduce(args, cost) ? 0 : count_messages(args, cost);
}

/*
 * Where ranges are folded, the d - m members that leave a line of d send their vectors over as many links
 * each: all of them cross the link below m, and the results come back. Each port folds its share there.
 */
double swc_butterfly_folds(const struct swc_plan_args *args)
{
	const struct swc_topo *t = args->topo;
	struct swc_butterfly k;
	double most = 0;

	if (!t || args->given || args->ports || t->nnodes != t->nranks ||
	    t->kind == SWC_TOPO_SWITCH || !swc_butterfly_find(&k, args, t) || !k.in_ranges)
		return 0;
	for (uint32_t j = 0; j < t->ndims; j++) {
		uint32_t m = 1;
		double load;

		while (2 * m <= t->dim[j])
			m *= 2;
		load = 2.0 * (t->dim[j] - m) * swc_topo_slowness(t, j);
		most = load > most ? load : most;
	}
	return most;
}

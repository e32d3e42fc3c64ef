// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The step model. Plans are built one after the other and freed again; what is kept is how much of
 * the vector crosses each link in each step. Where that is too much memory, it is done for one
 * window of steps after the other.
 *
 * That the n-th network step of a channel is the same step on all ranks is checked: the sum of a
 * hash over all sends must equal that over all receives. If it does not (trees, folded rings,
 * unequal nodes), steps get logical times in a walk through all plans: a message happens at the
 * later one of the times at which its two ends begin their steps, and the next step begins after
 * the last message of this one.
 *
 * In a Bine tree, steps are also counted in rounds: as if members without a child waited for those that
 * have one in that step. In a sample, the steps of all trees are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/model/axes.h"
#include "plan/model/model.h"
#include "plan/model/phases.h"
#include "plan/model/rounds.h"
#include "plan/model/routes.h"
#include "plan/model/step_model.h"
#include "plan/model/symmetry.h"
#include "plan/model/walk.h"

#define LOAD_BYTES (256u << 20)
#define TELL_RANKS 64 /* plans between two reports of progress */

/*
 * The largest value of a rank. On lines a value is a sum over the dimensions, of which the ranks on
 * the axes show one each: @more is by how much they exceed the first one, @base.
 */
struct peak {
	double base, more[SWC_TOPO_DIMS];
};

/**
 * struct peer - another rank in the plan of one
 * @plan: number of the plan, from 1
 * @seen, @runs: for counting messages: the last step with one, and transfers in it
 * @linked: for counting connections: by path, the last channel with one
 */
struct peer {
	uint64_t seen;
	uint32_t plan, rank;
	uint32_t runs;
	uint32_t linked[SWC_TOPO_PATHS];
};

/**
 * struct model - a computation
 * @route: by channel, as a channel often keeps its peer
 * @load: by link, then step of the window: blocks. Exact up to 2^24
 * @hops: by step of the window
 * @first, @n: the window
 * @sym: how plans are alike; unless SWC_SYMMETRY_NONE, it keeps the loads, and there is one window
 * @axes: what ranks on the axes do, if @has_axes: then only the plan of rank 0 is needed
 * @phases: of rank 0
 * @ahead: it is known that some ranks are ahead of others
 * @phased: phases begin together: a "step" below is a phase
 * @rounds: steps are rounds: those of a tree, or NULL
 * @steps: in all, as far as is known
 * @last_hops, @last_blocks: longest route and largest transfer of the last step, in the pass over
 *	the plans
 * @met_sum: hash of all sends less that of all receives
 * @messages, @sent, @conns: as in struct swc_cost; @reduced, @extra, @copy_steps, @copies, @copied: likewise,
 *	by channel
 * @peer: a hash table of the @peers places that one plan may need; those of other plans are free. Plans have few
 *	peers, which may be anywhere among a million ranks
 * @plan: number of the plan that is counted
 * @stamp: number of the step that is counted
 * @told: progress so far
 */
struct model {
	struct swc_walk walk;
	const struct swc_plan_args *args;
	struct swc_links links;
	struct swc_route route[SWC_MAX_CHANNELS];
	float *load;
	float *peak;
	uint32_t *hops;
	uint32_t first, n, steps;
	uint32_t last_hops;
	uint64_t last_blocks;
	struct swc_symmetric sym;
	struct swc_axes axes;
	bool has_axes;
	struct swc_phases phases;
	bool ahead, phased;
	const struct swc_rounds *rounds;
	uint32_t nblocks;
	uint64_t met_sum;
	struct peak messages, sent, conns, reduced[SWC_MAX_CHANNELS];
	struct peak extra[SWC_MAX_CHANNELS], copy_steps[SWC_MAX_CHANNELS];
	struct peak copies[SWC_MAX_CHANNELS], copied[SWC_MAX_CHANNELS];
	struct peer *peer;
	uint32_t peers, plan, channel;
	uint64_t stamp;
	struct swc_cost *cost;
	struct swc_timing *timing;
	swc_progress_fn *progress;
	void *arg;
	double told;
	int error;
};

/*
 * Report progress. It never goes back, so it stands still for a while if there is more work than
 * expected.
 */
static void tell(struct model *m, double done)
{
	m->told = done > m->told ? done : m->told;
	if (m->progress)
		m->progress(m->arg, m->told);
}

/* There is a message in a step. */
static void reach(struct model *m, uint32_t step)
{
	if (step < m->steps)
		return;
	m->steps = step + 1;
	m->last_hops = 0;
	m->last_blocks = 0;
}

static void add_hops(struct model *m, uint32_t step, uint32_t hops, uint64_t blocks)
{
	if (step == m->steps - 1) {
		m->last_hops = hops > m->last_hops ? hops : m->last_hops;
		m->last_blocks = blocks > m->last_blocks ? blocks : m->last_blocks;
	}
	if (hops > m->hops[step - m->first])
		m->hops[step - m->first] = hops;
}

/* Account for a message: its route, and its blocks on each link. @swap: as in symmetry.h. */
static void account(struct model *m, uint32_t step, uint32_t chan, uint32_t path, uint32_t from,
		    uint32_t to, uint64_t blocks, bool swap)
{
	const struct swc_topo *t = m->links.topo;
	struct swc_route *r = &m->route[chan];
	uint32_t hops;

	reach(m, step);
	if (step < m->first || step - m->first >= m->n || m->error)
		return;
	if (m->sym.kind != SWC_SYMMETRY_NONE) {
		m->error = swc_symmetric_add(&m->sym, step - m->first, chan, path, from, to, blocks,
					     swap, &hops);
	} else {
		m->error = swc_route_set(r, &m->links, path, swc_topo_node_of(t, from),
					 swc_topo_node_of(t, to));
		hops = r->hops;
	}
	if (m->error)
		return;
	add_hops(m, step, hops, blocks);
	step -= m->first;
	for (uint32_t i = 0; m->load && i < r->n; i++)
		m->load[(size_t)r->link[i] * m->n + step] +=
			(float)((double)blocks * swc_link_slowness(&m->links, r->link[i]));
}

/*
 * A message that a visited rank receives: in a sample, few of its senders are visited. It has the path of
 * its sender.
 */
static void account_received(struct model *m, uint32_t step, const struct swc_plan_xfer *x,
			     uint32_t me)
{
	uint32_t hops;

	if (step >= m->steps)
		m->steps = step + 1;
	if (step < m->first || step - m->first >= m->n || m->error)
		return;
	hops = swc_symmetric_receive(&m->sym, step - m->first, x->path, x->rank, me, x->nblocks);
	if (hops > m->hops[step - m->first])
		m->hops[step - m->first] = hops;
}

/* Add up a complete window, and go to the next one. */
static void close_window(struct model *m)
{
	memset(m->peak, 0, m->n * sizeof(*m->peak));
	for (uint32_t k = 0; !m->load && k < m->n; k++)
		m->peak[k] = (float)swc_symmetric_peak(&m->sym, k);
	for (uint32_t link = 0; m->load && link < m->links.n; link++) {
		const float *load = m->load + (size_t)link * m->n;

		for (uint32_t k = 0; k < m->n; k++)
			m->peak[k] = load[k] > m->peak[k] ? load[k] : m->peak[k];
	}
	for (uint32_t k = 0; k < m->n; k++) {
		m->timing->load += (double)m->peak[k] / m->nblocks;
		m->timing->hops += m->hops[k] ? (uint64_t)m->hops[k] *
							(m->phased ? m->phases.length[m->first + k]
								   : 1)
					      : 0;
	}
	if (m->first + m->n >= m->steps) {
		m->timing->last_hops = m->last_hops;
		m->timing->last_share = (double)m->last_blocks / m->nblocks;
	}
	m->first += m->n;
	memset(m->hops, 0, m->n * sizeof(*m->hops));
	if (m->load)
		memset(m->load, 0, (size_t)m->links.n * m->n * sizeof(*m->load));
	else if (m->first < m->steps && swc_symmetric_open(&m->sym, m->args, m->n))
		m->error = -ENOMEM;
}

/* Allocate a window, by the steps of the first rank's plan. */
static int open_window(struct model *m, uint32_t steps)
{
	size_t most = LOAD_BYTES / sizeof(*m->load) / m->links.n;
	bool alike = m->sym.kind != SWC_SYMMETRY_NONE;

	m->n = alike || steps < most ? steps : (uint32_t)most;
	m->n = m->n ? m->n : 1;
	m->peak = calloc(m->n, sizeof(*m->peak));
	m->hops = calloc(m->n, sizeof(*m->hops));
	if (alike)
		return m->peak && m->hops ? swc_symmetric_open(&m->sym, m->args, m->n) : -ENOMEM;
	m->load = calloc((size_t)m->links.n * m->n, sizeof(*m->load));
	return m->load && m->peak && m->hops ? 0 : -ENOMEM;
}

static uint64_t hash(uint32_t from, uint32_t to, uint32_t chan, uint32_t step)
{
	uint64_t h = ((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15;

	h = (h ^ h >> 32 ^ ((uint64_t)chan << 32 | step)) * 0xd6e8feb86659fd93;
	return h ^ h >> 32;
}

static void add_peak(const struct model *m, struct peak *p, uint32_t rank, double value)
{
	double *more = rank ? &p->more[swc_symmetric_axis(&m->sym, rank)] : NULL;

	if (m->sym.kind != SWC_SYMMETRY_LINES || !more)
		p->base = value > p->base ? value : p->base;
	else if (value - p->base > *more)
		*more = value - p->base;
}

static double peak_of(const struct peak *p)
{
	double sum = p->base;

	for (uint32_t i = 0; i < SWC_TOPO_DIMS; i++)
		sum += p->more[i];
	return sum;
}

/* Of all channels. */
static double most_of(const struct peak *p)
{
	double most = 0;

	for (uint32_t i = 0; i < SWC_MAX_CHANNELS; i++)
		most = peak_of(&p[i]) > most ? peak_of(&p[i]) : most;
	return most;
}

/* What one rank sends, and over how many connections. */
struct sent {
	uint64_t messages, blocks, conns;
};

/* Room for the peers of a plan: twice as many places, so that searches are short. */
static int open_peers(struct model *m, const struct swc_plan_view *v)
{
	uint32_t most = v->hdr->nxfers < v->hdr->nranks ? v->hdr->nxfers : v->hdr->nranks;
	uint32_t places = m->peers ? m->peers : 64;

	m->plan++;
	while (places < 2 * most)
		places *= 2;
	if (places == m->peers)
		return 0;
	free(m->peer);
	m->peer = calloc(places, sizeof(*m->peer));
	m->peers = places;
	return m->peer ? 0 : -ENOMEM;
}

static struct peer *peer_of(struct model *m, uint32_t rank)
{
	uint32_t i = (rank * 0x9e3779b1u ^ rank >> 15) & (m->peers - 1);

	while (m->peer[i].plan == m->plan && m->peer[i].rank != rank)
		i = (i + 1) & (m->peers - 1);
	if (m->peer[i].plan != m->plan)
		m->peer[i] = (struct peer){ .plan = m->plan, .rank = rank };
	return &m->peer[i];
}

/* Count the connection that a transfer of a channel needs. */
static void connect(struct model *m, uint32_t me, const struct swc_plan_xfer *x, struct sent *sent)
{
	const struct swc_topo *t = m->links.topo;
	uint32_t *last = &peer_of(m, x->rank)->linked[x->path % SWC_TOPO_PATHS];

	if (*last == m->channel || swc_topo_node_of(t, me) == swc_topo_node_of(t, x->rank))
		return;
	*last = m->channel;
	sent->conns++;
}

static void count(struct model *m, const struct swc_plan_xfer *x, struct sent *sent)
{
	struct peer *p = peer_of(m, x->rank);

	if (p->seen != m->stamp) {
		p->seen = m->stamp;
		p->runs = 0;
		sent->messages++;
	}
	if (++p->runs > m->cost->max_runs)
		m->cost->max_runs = p->runs;
	sent->blocks += x->nblocks;
}

/* The step of a transfer in the k-th network step of its channel. */
static uint32_t step_of(const struct model *m, uint32_t chan, uint32_t k, uint32_t from,
			uint32_t to, const struct swc_plan_xfer *x)
{
	if (m->rounds)
		return swc_rounds_of(m->rounds, chan, x, from, to);
	return m->phased ? m->phases.of[chan][k] : k;
}

/*
 * In a sample: the steps that a rank is not in. The scatter of a large broadcast reaches it later than the
 * root, which is visited first, and then it goes on to the end.
 */
static uint32_t missed(const struct model *m, const struct swc_plan_view *v, uint32_t chan)
{
	uint32_t n = swc_phases_net_steps(v, chan);

	return m->sym.kind == SWC_SYMMETRY_SAMPLE && m->args->algo == SWC_ALGO_BINE_SAG &&
			       m->args->coll == SWC_BROADCAST && n < m->n
		       ? m->n - n
		       : 0;
}

/* Of an all-to-all: what the messages and copies of a rank's channel cost, however small they are. */
static void walk_pieces(struct model *m, const struct swc_plan_view *v, uint32_t chan)
{
	const struct swc_plan_channel *c = &v->channels[chan];
	uint64_t extra = 0, steps = 0, copies = 0, copied = 0;

	for (uint32_t i = 0; i < c->nsteps; i++) {
		const struct swc_plan_step *s = &v->steps[c->first_step + i];

		if (s->kind == SWC_STEP_NET && s->nsend)
			extra += s->nsend - 1u;
		if (s->kind != SWC_STEP_LOCAL && s->kind != SWC_STEP_COPY)
			continue;
		steps++;
		copies += s->kind == SWC_STEP_COPY ? s->nsend : 1u;
		for (uint32_t j = 0; j < (s->kind == SWC_STEP_COPY ? s->nsend : 1u); j++)
			copied += v->xfers[s->first_xfer + j].nblocks;
	}
	add_peak(m, &m->extra[chan], v->hdr->rank, (double)extra);
	add_peak(m, &m->copy_steps[chan], v->hdr->rank, (double)steps);
	add_peak(m, &m->copies[chan], v->hdr->rank, (double)copies);
	add_peak(m, &m->copied[chan], v->hdr->rank, (double)copied / v->nblocks);
}

/* Account for one channel of a rank, as if all ranks took step k together. */
static void walk_channel(struct model *m, const struct swc_plan_view *v, uint32_t chan, bool again,
			 struct sent *sent)
{
	const struct swc_plan_channel *c = &v->channels[chan];
	uint32_t me = v->hdr->rank, k = missed(m, v, chan);
	uint64_t reduced = 0;

	m->channel++;
	for (uint32_t i = 0; i < c->nsteps; i++) {
		const struct swc_plan_step *s = &v->steps[c->first_step + i];
		const struct swc_plan_xfer *x = &v->xfers[s->first_xfer];
		const struct swc_plan_xfer *recv = x + s->nsend;

		if (s->kind != SWC_STEP_NET)
			continue;
		for (uint32_t j = 0; j < s->nsend; j++)
			account(m, step_of(m, chan, k, me, x[j].rank, &x[j]), chan, x[j].path, me,
				x[j].rank, x[j].nblocks,
				s->nrecv && recv->first_block == x[j].first_block);
		for (uint32_t j = 0; m->sym.kind == SWC_SYMMETRY_SAMPLE && j < s->nrecv; j++)
			account_received(m, step_of(m, chan, k, recv[j].rank, me, &recv[j]),
					 &recv[j], me);
		m->stamp++;
		for (uint32_t j = 0; j < s->nsend && !again; j++) {
			count(m, &x[j], sent);
			connect(m, me, &x[j], sent);
			if (swc_symmetric_visited(&m->sym, x[j].rank))
				m->met_sum += hash(me, x[j].rank, chan, k);
		}
		for (uint32_t j = 0; j < s->nrecv && !again; j++) {
			connect(m, me, &recv[j], sent);
			if (swc_symmetric_visited(&m->sym, recv[j].rank))
				m->met_sum -= hash(recv[j].rank, me, chan, k);
			reduced += recv[j].flags & SWC_XFER_REDUCE ? recv[j].nblocks : 0;
		}
		k++;
	}
	if (!again)
		add_peak(m, &m->reduced[chan], me, (double)reduced / v->nblocks);
	if (!again && v->hdr->coll == SWC_ALLTOALL)
		walk_pieces(m, v, chan);
}

static void walk_plan(struct model *m, const struct swc_plan_view *v, bool again)
{
	struct sent sent = { 0 };

	m->nblocks = v->nblocks;
	for (uint32_t chan = 0; chan < v->hdr->nchannels; chan++)
		walk_channel(m, v, chan, again, &sent);
	if (again)
		return;
	add_peak(m, &m->messages, v->hdr->rank, (double)sent.messages);
	add_peak(m, &m->sent, v->hdr->rank, (double)sent.blocks / v->nblocks);
	add_peak(m, &m->conns, v->hdr->rank, (double)sent.conns);
	m->cost->order_varies |= !!(v->hdr->flags & SWC_PLAN_ORDER_VARIES);
}

/* Account for a plan. The first one opens the window. */
static int visit(struct model *m, const struct swc_plan_view *v, bool again)
{
	int ret = 0;

	if (!m->hops) {
		ret = open_window(m, m->rounds	 ? m->rounds->n
				     : m->phased ? m->phases.n
						 : swc_phases_longest(v));
		if (!ret && !m->phased && !m->rounds)
			ret = swc_phases_find(&m->phases, v);
	}
	if (!ret && !again)
		ret = open_peers(m, v);
	if (!ret)
		walk_plan(m, v, again);
	if (!ret && !again && m->sym.kind == SWC_SYMMETRY_LINES && !v->hdr->rank) {
		ret = swc_axes_find(&m->axes, m->args, m->links.topo, v);
		m->has_axes = !ret;
		ret = ret == -EOPNOTSUPP ? 0 : ret;
	}
	return ret ? ret : m->error;
}

static void add_axes_rank(void *arg, uint32_t rank, const struct swc_axes_rank *does)
{
	struct model *m = arg;

	add_peak(m, &m->messages, rank, (double)does->messages);
	add_peak(m, &m->sent, rank, (double)does->blocks / m->nblocks);
	add_peak(m, &m->conns, rank, (double)does->conns);
	for (uint32_t chan = 0; chan < m->axes.nchannels; chan++)
		add_peak(m, &m->reduced[chan], rank, (double)does->reduced[chan] / m->nblocks);
}

/* Account for all ranks on the axes but rank 0. All of them have its steps, so they take step k together. */
static void add_axes(struct model *m, bool again)
{
	for (uint32_t chan = 0; chan < m->axes.nchannels; chan++)
		for (uint32_t k = 0; k < m->axes.nsteps[chan]; k++) {
			uint32_t step = step_of(m, chan, k, 0, 0, NULL), hops;

			reach(m, step);
			hops = swc_axes_add(&m->axes, chan, k, swc_symmetric_lines(&m->sym, step),
					    m->sym.line_at);
			add_hops(m, step, hops, m->axes.step[chan][k].blocks);
		}
	if (again)
		return;
	swc_axes_each(&m->axes, add_axes_rank, m);
	if (swc_axes_max_runs(&m->axes) > m->cost->max_runs)
		m->cost->max_runs = swc_axes_max_runs(&m->axes);
	m->met_sum = 0;
}

static int build_rank(const struct model *m, uint32_t rank, void **plan, char *why,
		      size_t why_bytes)
{
	struct swc_plan_args a = *m->args;
	size_t bytes;

	a.rank = rank;
	return swc_plan_build(&a, plan, &bytes, why, why_bytes);
}

/* Account for a rank's plan, and free it. */
static int walk_built(struct model *m, void *plan, bool again)
{
	struct swc_plan_view v = swc_walk_view(plan);
	int ret = visit(m, &v, again);

	free(plan);
	return ret;
}

static int walk_rank(struct model *m, uint32_t rank, bool again, char *why, size_t why_bytes)
{
	void *plan;
	int ret = build_rank(m, rank, &plan, why, why_bytes);

	return ret ? ret : walk_built(m, plan, again);
}

/*
 * Account for all plans that are needed, for one window. Of a sample, the last rank is last in all
 * dimensions, and where sides are odd its plan may be too large: so it is built first, to be refused soon.
 */
static int walk_plans(struct model *m, char *why, size_t why_bytes)
{
	bool again = m->first || m->phased || (m->rounds && m->sym.kind != SWC_SYMMETRY_SAMPLE);
	uint32_t visit = 0, before = m->sym.nvisits;
	void *last = NULL;
	int ret = 0;

	if (m->sym.kind == SWC_SYMMETRY_SAMPLE && before > 1 && !again)
		ret = build_rank(m, swc_symmetric_rank(&m->sym, --before), &last, why, why_bytes);
	if (ret)
		return ret;
	do {
		ret = walk_rank(m, swc_symmetric_visit(&m->sym, visit), again, why, why_bytes);
		if (visit % TELL_RANKS == TELL_RANKS - 1)
			tell(m, (m->first + (double)m->n * (visit + 1) / m->sym.nvisits) /
					(m->steps > m->n ? m->steps + m->n : m->n));
	} while (!ret && !m->has_axes && ++visit < before);
	if (!ret && m->has_axes)
		add_axes(m, again);
	if (!ret && last) {
		swc_symmetric_visit(&m->sym, before);
		return walk_built(m, last, again);
	}
	free(last);
	return ret;
}

static int in_step(struct model *m, char *why, size_t why_bytes)
{
	int ret = 0;

	close_window(m);
	while (m->first < m->steps && !ret) {
		ret = walk_plans(m, why, why_bytes);
		close_window(m);
	}
	return ret;
}

static void free_window(struct model *m)
{
	free(m->load);
	free(m->peak);
	free(m->hops);
	m->load = m->peak = NULL;
	m->hops = NULL;
	swc_symmetric_free(&m->sym);
}

/*
 * Account for all plans again, with phases that begin together. Within a phase each channel has its
 * own pace, so the link with the largest load of the whole phase counts.
 */
static int in_phases(struct model *m, char *why, size_t why_bytes)
{
	int ret;

	free_window(m);
	m->phased = true;
	m->timing = &m->cost->phased;
	*m->timing = (struct swc_timing){ 0 };
	m->first = m->steps = 0;
	ret = walk_plans(m, why, why_bytes);
	if (!ret)
		ret = in_step(m, why, why_bytes);
	for (uint32_t i = 0; i < m->phases.n; i++)
		m->timing->steps += m->phases.length[i];
	return ret;
}

/* Account for all plans of Bine trees again, in rounds. */
static int in_rounds(struct model *m, char *why, size_t why_bytes)
{
	struct swc_rounds rounds;
	int ret;

	swc_rounds_find(&rounds, m->args, m->links.topo);
	if (!rounds.n)
		return 0;
	free_window(m);
	m->rounds = &rounds;
	m->timing = &m->cost->phased;
	*m->timing = (struct swc_timing){ .steps = rounds.n };
	m->first = m->steps = 0;
	ret = walk_plans(m, why, why_bytes);
	if (!ret)
		ret = in_step(m, why, why_bytes);
	m->rounds = NULL;
	return ret;
}

static void met(struct swc_walk *w, struct swc_thread *from, struct swc_thread *to, uint32_t path,
		uint32_t nxfers, uint64_t blocks)
{
	struct model *m = (struct model *)((char *)w - offsetof(struct model, walk));
	uint32_t time = from->begin > to->begin ? from->begin : to->begin;

	account(m, time, from->chan, path, from->rank, to->rank, blocks, false);
	from->ready = time >= from->ready ? time + 1 : from->ready;
	to->ready = time >= to->ready ? time + 1 : to->ready;
	swc_walk_done(w, from, nxfers);
	swc_walk_done(w, to, nxfers);
}

static int by_times(struct model *m, char *why, size_t why_bytes)
{
	int ret = swc_walk_init(&m->walk, m->args, m->links.topo, why, why_bytes);

	for (uint32_t r = 0; m->ahead && !ret && r < m->args->nranks; r++)
		ret = visit(m, &m->walk.view[r], false);
	m->walk.met = met;
	if (ret) {
		swc_walk_free(&m->walk);
		return ret;
	}
	m->steps = 0;
	memset(m->hops, 0, m->n * sizeof(*m->hops));
	memset(m->load, 0, (size_t)m->links.n * m->n * sizeof(*m->load));
	do {
		swc_walk_rewind(&m->walk);
		swc_walk_go(&m->walk);
		ret = m->error ? m->error : swc_walk_result(&m->walk, why, why_bytes);
		close_window(m);
		tell(m, m->first < m->steps ? (double)m->first / m->steps : 1);
	} while (!ret && m->first < m->steps);
	swc_walk_free(&m->walk);
	return ret;
}

/*
 * Whether ranks take step k together is known from those that were visited with their peers. Where
 * others stand for them it is so; in a sample it is assumed, and the longest plan counts.
 */
static int run(struct model *m, char *why, size_t why_bytes)
{
	struct swc_rounds rounds = { 0 };
	bool together;
	int ret;

	if (m->sym.kind == SWC_SYMMETRY_SAMPLE)
		swc_rounds_find(&rounds, m->args, m->links.topo);
	m->rounds = rounds.n ? &rounds : NULL;
	ret = m->ahead ? 0 : walk_plans(m, why, why_bytes);
	together = !m->met_sum && !m->ahead;
	if (!ret && !together && m->sym.kind != SWC_SYMMETRY_NONE)
		return -EAGAIN;
	if (!ret)
		ret = together ? in_step(m, why, why_bytes) : by_times(m, why, why_bytes);
	m->rounds = NULL;
	m->cost->eager.steps = m->steps;
	m->cost->phased = m->cost->eager;
	if (!ret && together && m->phases.n && !swc_symmetric_estimates(&m->sym))
		ret = in_phases(m, why, why_bytes);
	if (!ret && !together && m->args->algo == SWC_ALGO_BINE &&
	    m->links.topo->nnodes == m->args->nranks)
		ret = in_rounds(m, why, why_bytes);
	return ret;
}

/*
 * What one rank has must get to all, step by step: the longest routes of the steps lead as far. A root of a mesh
 * may be in its middle.
 */
static void raise_hops(const struct model *m, struct swc_timing *t)
{
	const struct swc_topo *topo = m->links.topo;
	uint64_t least = swc_topo_diameter(topo);

	if (topo->kind == SWC_TOPO_MESH && swc_coll_has_root(m->args->coll))
		return;
	t->hops = t->hops < least ? least : t->hops;
}

int swc_step_model(const struct swc_plan_args *args, const struct swc_symmetric *sym, bool ahead,
		   struct swc_cost *cost, swc_progress_fn *progress, void *arg, char *why,
		   size_t why_bytes)
{
	struct swc_topo flat = swc_topo_flat(args->nranks);
	const struct swc_topo *topo = args->topo ? args->topo : &flat;
	struct model *m = calloc(1, sizeof(*m));
	int ret = -ENOMEM;

	*cost = (struct swc_cost){ 0 };
	if (!m)
		return ret;
	m->args = args;
	m->links = swc_links_of(topo);
	m->sym = *sym;
	/* What waits in barriers only is seen in a walk. */
	m->ahead = ahead || (sym->kind == SWC_SYMMETRY_NONE && args->algo == SWC_ALGO_BY_NODES);
	m->sym.topo = topo;
	m->cost = cost;
	m->timing = &cost->eager;
	m->progress = progress;
	m->arg = arg;
	ret = run(m, why, why ? why_bytes : 0);
	if (swc_symmetric_estimates(&m->sym)) {
		raise_hops(m, &cost->eager);
		raise_hops(m, &cost->phased);
	}
	cost->psi_xi = cost->phased.load * topo->ndims;
	cost->messages = (uint64_t)peak_of(&m->messages);
	cost->sent = peak_of(&m->sent);
	cost->connections = (uint32_t)peak_of(&m->conns);
	cost->reduced = most_of(m->reduced);
	cost->extra = (uint64_t)most_of(m->extra);
	cost->copy_steps = (uint64_t)most_of(m->copy_steps);
	cost->copies = (uint64_t)most_of(m->copies);
	cost->copied = most_of(m->copied);
	cost->sampled = swc_symmetric_estimates(&m->sym) ? m->sym.nvisits : 0;
	for (uint32_t i = 0; i < SWC_MAX_CHANNELS; i++)
		free(m->route[i].link);
	swc_phases_free(&m->phases);
	swc_axes_free(&m->axes);
	free_window(m);
	free(m->peer);
	free(m);
	return ret;
}

int swc_cost_compute(const struct swc_plan_args *args, struct swc_cost *cost,
		     swc_progress_fn *progress, void *arg, char *why, size_t why_bytes)
{
	struct swc_symmetric all = { .nvisits = args->nranks };

	return swc_step_model(args, &all, false, cost, progress, arg, why, why_bytes);
}

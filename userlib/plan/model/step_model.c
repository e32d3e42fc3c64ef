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
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/model/model.h"
#include "plan/model/routes.h"
#include "plan/model/walk.h"

#define LOAD_BYTES (256u << 20)
#define TELL_RANKS 64 /* plans between two reports of progress */

/*
 * A step in the kernel: an interrupt, a work item that handles the completion, and one that posts
 * the next message. A CPU that adds reads two vectors and writes one.
 */
#define KERNEL_STEP_NS 5000
#define KERNEL_REDUCE_GBPS 80

/**
 * struct model - a computation
 * @route: by channel, as a channel often keeps its peer
 * @load: by link, then step of the window: blocks. Exact up to 2^24
 * @hops: by step of the window
 * @first, @n: the window
 * @phase_of: by channel, then its network steps
 * @nphases: 0 if it makes no difference that they begin together
 * @length: by phase, steps of the longest channel
 * @phased: phases begin together: a "step" below is a phase
 * @steps: in all, as far as is known
 * @last_hops, @last_blocks: longest route and largest transfer of the last step, in the pass over
 *	the plans
 * @met_sum: hash of all sends less that of all receives
 * @seen, @runs: by rank, for counting messages: the last step, and transfers in it
 * @stamp: number of the step that is being counted
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
	uint32_t *phase_of[SWC_MAX_CHANNELS];
	uint32_t nphases, *length;
	bool phased;
	uint32_t nblocks;
	uint64_t met_sum;
	uint64_t *seen, stamp;
	uint32_t *runs;
	struct swc_cost *cost;
	struct swc_timing *timing;
	swc_progress_fn *progress;
	void *arg;
	double told;
	int error;
};

struct swc_network swc_network_of(const struct swc_topo *topo)
{
	return (struct swc_network){ .gbps = topo->gbps > 0 ? topo->gbps : 400,
				     .hop_ns = topo->hop_ns > 0 ? topo->hop_ns : 400,
				     .step_ns = 600 };
}

struct swc_network swc_network_in_kernel(const struct swc_topo *topo)
{
	struct swc_network net = swc_network_of(topo);

	net.step_ns = KERNEL_STEP_NS;
	net.reduce_gbps = KERNEL_REDUCE_GBPS;
	return net;
}

static double time_of(const struct swc_timing *t, double bytes, const struct swc_network *net)
{
	bool acked = net->ack_bytes > 0 && t->last_share * bytes >= net->ack_bytes;

	return t->steps * net->step_ns + (double)t->hops * net->hop_ns +
	       t->load * bytes * 8 / net->gbps + acked * t->last_hops * net->hop_ns;
}

double swc_cost_time(const struct swc_cost *cost, double bytes, const struct swc_network *net,
		     const struct swc_timing **timing)
{
	double phased = time_of(&cost->phased, bytes, net);
	double eager = time_of(&cost->eager, bytes, net);
	double reduce = net->reduce_gbps > 0 ? cost->reduced * bytes * 8 / net->reduce_gbps : 0;

	if (timing)
		*timing = eager < phased ? &cost->eager : &cost->phased;
	return (eager < phased ? eager : phased) + reduce;
}

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

/* Account for a message: its route, and its blocks on each link. */
static void account(struct model *m, uint32_t step, uint32_t chan, uint32_t from, uint32_t to,
		    uint64_t blocks)
{
	const struct swc_topo *t = m->links.topo;
	struct swc_route *r = &m->route[chan];

	if (step >= m->steps) {
		m->steps = step + 1;
		m->last_hops = 0;
		m->last_blocks = 0;
	}
	if (step < m->first || step - m->first >= m->n || m->error)
		return;
	m->error = swc_route_set(r, &m->links, chan, swc_topo_node_of(t, from),
				 swc_topo_node_of(t, to));
	if (m->error)
		return;
	if (step == m->steps - 1) {
		m->last_hops = r->hops > m->last_hops ? r->hops : m->last_hops;
		m->last_blocks = blocks > m->last_blocks ? blocks : m->last_blocks;
	}
	step -= m->first;
	if (r->hops > m->hops[step])
		m->hops[step] = r->hops;
	for (uint32_t i = 0; i < r->n; i++)
		m->load[(size_t)r->link[i] * m->n + step] += (float)blocks;
}

/* Add up a complete window, and go to the next one. */
static void close_window(struct model *m)
{
	memset(m->peak, 0, m->n * sizeof(*m->peak));
	for (uint32_t link = 0; link < m->links.n; link++) {
		const float *load = m->load + (size_t)link * m->n;

		for (uint32_t k = 0; k < m->n; k++)
			m->peak[k] = load[k] > m->peak[k] ? load[k] : m->peak[k];
	}
	for (uint32_t k = 0; k < m->n; k++) {
		m->timing->load += (double)m->peak[k] / m->nblocks;
		m->timing->hops += m->hops[k] ? (uint64_t)m->hops[k] *
							(m->phased ? m->length[m->first + k] : 1)
					      : 0;
	}
	if (m->first + m->n >= m->steps) {
		m->timing->last_hops = m->last_hops;
		m->timing->last_share = (double)m->last_blocks / m->nblocks;
	}
	m->first += m->n;
	memset(m->hops, 0, m->n * sizeof(*m->hops));
	memset(m->load, 0, (size_t)m->links.n * m->n * sizeof(*m->load));
}

/* Allocate a window, by the steps of the first rank's plan. */
static int open_window(struct model *m, uint32_t steps)
{
	size_t most = LOAD_BYTES / sizeof(*m->load) / m->links.n;

	m->n = steps < most ? steps : (uint32_t)most;
	m->n = m->n ? m->n : 1;
	m->load = calloc((size_t)m->links.n * m->n, sizeof(*m->load));
	m->peak = calloc(m->n, sizeof(*m->peak));
	m->hops = calloc(m->n, sizeof(*m->hops));
	return m->load && m->peak && m->hops ? 0 : -ENOMEM;
}

static uint64_t hash(uint32_t from, uint32_t to, uint32_t chan, uint32_t step)
{
	uint64_t h = ((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15;

	h = (h ^ h >> 32 ^ ((uint64_t)chan << 32 | step)) * 0xd6e8feb86659fd93;
	return h ^ h >> 32;
}

/* What one rank sends. */
struct sent {
	uint64_t messages, blocks;
};

static void count(struct model *m, const struct swc_plan_xfer *x, struct sent *sent)
{
	if (m->seen[x->rank] != m->stamp) {
		m->seen[x->rank] = m->stamp;
		m->runs[x->rank] = 0;
		sent->messages++;
	}
	if (++m->runs[x->rank] > m->cost->max_runs)
		m->cost->max_runs = m->runs[x->rank];
	sent->blocks += x->nblocks;
}

/* Account for one channel of a rank, as if all ranks took step k together. */
static void walk_channel(struct model *m, const struct swc_plan_view *v, uint32_t chan, bool again,
			 struct sent *sent)
{
	const struct swc_plan_channel *c = &v->channels[chan];
	uint32_t me = v->hdr->rank, k = 0;
	uint64_t reduced = 0;

	for (uint32_t i = 0; i < c->nsteps; i++) {
		const struct swc_plan_step *s = &v->steps[c->first_step + i];
		const struct swc_plan_xfer *x = &v->xfers[s->first_xfer];
		const struct swc_plan_xfer *recv = x + s->nsend;

		if (s->kind != SWC_STEP_NET)
			continue;
		for (uint32_t j = 0; j < s->nsend; j++)
			account(m, m->phased ? m->phase_of[chan][k] : k, chan, me, x[j].rank,
				x[j].nblocks);
		m->stamp++;
		for (uint32_t j = 0; j < s->nsend && !again; j++) {
			count(m, &x[j], sent);
			m->met_sum += hash(me, x[j].rank, chan, k);
		}
		for (uint32_t j = 0; j < s->nrecv && !again; j++) {
			m->met_sum -= hash(recv[j].rank, me, chan, k);
			reduced += recv[j].flags & SWC_XFER_REDUCE ? recv[j].nblocks : 0;
		}
		k++;
	}
	if ((double)reduced / v->nblocks > m->cost->reduced)
		m->cost->reduced = (double)reduced / v->nblocks;
}

static void walk_plan(struct model *m, const struct swc_plan_view *v, bool again)
{
	struct sent sent = { 0 };

	m->nblocks = v->nblocks;
	for (uint32_t chan = 0; chan < v->hdr->nchannels; chan++)
		walk_channel(m, v, chan, again, &sent);
	if (again)
		return;
	if (sent.messages > m->cost->messages)
		m->cost->messages = sent.messages;
	if ((double)sent.blocks / v->nblocks > m->cost->sent)
		m->cost->sent = (double)sent.blocks / v->nblocks;
	m->cost->order_varies |= !!(v->hdr->flags & SWC_PLAN_ORDER_VARIES);
}

/* Network steps of the longest channel. */
static uint32_t longest(const struct swc_plan_view *v)
{
	uint32_t most = 0;

	for (uint32_t chan = 0; chan < v->hdr->nchannels; chan++) {
		uint32_t n = 0;

		for (uint32_t i = 0; i < v->channels[chan].nsteps; i++)
			n += v->steps[v->channels[chan].first_step + i].kind == SWC_STEP_NET;
		most = n > most ? n : most;
	}
	return most;
}

/*
 * Is it the same transfer in another step? What is added differs from what is stored: with two
 * members in a dimension, the last reduction and the first step back have the same peers and sizes.
 */
static bool is_like(const struct swc_plan_xfer *x, const struct swc_plan_xfer *y)
{
	const uint8_t kind = SWC_XFER_REDUCE | SWC_XFER_STORED;

	return x->rank == y->rank && x->nblocks == y->nblocks && !((x->flags ^ y->flags) & kind);
}

/* Does step b have all transfers of step a, with the same peers and sizes? */
static bool is_subset(const struct swc_plan_view *v, const struct swc_plan_step *a,
		      const struct swc_plan_step *b)
{
	const struct swc_plan_xfer *x = &v->xfers[a->first_xfer], *y = &v->xfers[b->first_xfer];

	for (uint32_t i = 0; i < (uint32_t)a->nsend + a->nrecv; i++) {
		uint32_t j = i < a->nsend ? 0 : b->nsend;
		uint32_t end = i < a->nsend ? b->nsend : (uint32_t)b->nsend + b->nrecv;

		while (j < end && !is_like(&x[i], &y[j]))
			j++;
		if (j == end)
			return false;
	}
	return true;
}

/*
 * Find the phase of each network step of a channel, and the lengths of the phases. Returns their
 * number.
 */
static uint32_t find_phases(const struct swc_plan_view *v, uint32_t chan, uint32_t *phase,
			    uint32_t *length)
{
	const struct swc_plan_channel *c = &v->channels[chan];
	const struct swc_plan_step *last = NULL;
	uint32_t n = 0, k = 0;

	for (uint32_t i = 0; i < c->nsteps; i++) {
		const struct swc_plan_step *s = &v->steps[c->first_step + i];

		if (s->kind != SWC_STEP_NET)
			continue;
		/* A new phase: other peers, or another size. */
		if (!last || (!is_subset(v, last, s) && !is_subset(v, s, last)))
			n++;
		last = s;
		phase[k++] = n - 1;
		length[n - 1]++;
	}
	return n;
}

/* Find the phases in rank 0's plan; m->nphases stays 0 if they change nothing. */
static int learn_phases(struct model *m, const struct swc_plan_view *v, uint32_t steps)
{
	uint32_t *length = calloc(steps + 1, sizeof(*length)), nphases = 0;
	bool same = true, differ = false;

	m->length = calloc(steps + 1, sizeof(*m->length));
	if (!length || !m->length) {
		free(length);
		return -ENOMEM;
	}
	for (uint32_t c = 0; same && c < v->hdr->nchannels; c++) {
		uint32_t n;

		m->phase_of[c] = calloc(steps + 1, sizeof(**m->phase_of));
		if (!m->phase_of[c]) {
			free(length);
			return -ENOMEM;
		}
		memset(length, 0, steps * sizeof(*length));
		n = find_phases(v, c, m->phase_of[c], length);
		same = !c || n == nphases;
		nphases = n;
		for (uint32_t i = 0; same && i < n; i++) {
			differ |= c && length[i] != m->length[i];
			m->length[i] = length[i] > m->length[i] ? length[i] : m->length[i];
		}
	}
	m->nphases = same && differ ? nphases : 0;
	free(length);
	return 0;
}

/* Account for all plans, for one window. */
static int walk_plans(struct model *m, char *why, size_t why_bytes)
{
	struct swc_plan_args a = *m->args;
	bool again = m->first || m->phased;
	int ret = 0;

	a.rank = 0;
	do {
		struct swc_plan_view v;
		size_t bytes;
		void *plan;

		ret = swc_plan_build(&a, &plan, &bytes, why, why_bytes);
		if (ret)
			return ret;
		v = swc_walk_view(plan);
		if (!m->load) {
			ret = open_window(m, m->phased ? m->nphases : longest(&v));
			if (!ret && !m->phased)
				ret = learn_phases(m, &v, longest(&v));
		}
		if (!ret)
			walk_plan(m, &v, again);
		free(plan);
		ret = ret ? ret : m->error;
		if (a.rank % TELL_RANKS == TELL_RANKS - 1)
			tell(m, (m->first + (double)m->n * (a.rank + 1) / a.nranks) /
					(m->steps > m->n ? m->steps + m->n : m->n));
	} while (!ret && ++a.rank < a.nranks);
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
	for (uint32_t i = 0; i < m->nphases; i++)
		m->timing->steps += m->length[i];
	return ret;
}

static void met(struct swc_walk *w, struct swc_thread *from, struct swc_thread *to, uint32_t nxfers,
		uint64_t blocks)
{
	struct model *m = (struct model *)((char *)w - offsetof(struct model, walk));
	uint32_t time = from->begin > to->begin ? from->begin : to->begin;

	account(m, time, from->chan, from->rank, to->rank, blocks);
	from->ready = time >= from->ready ? time + 1 : from->ready;
	to->ready = time >= to->ready ? time + 1 : to->ready;
	swc_walk_done(w, from, nxfers);
	swc_walk_done(w, to, nxfers);
}

static int by_times(struct model *m, char *why, size_t why_bytes)
{
	int ret = swc_walk_init(&m->walk, m->args, m->links.topo, why, why_bytes);

	m->walk.met = met;
	m->steps = 0;
	memset(m->hops, 0, m->n * sizeof(*m->hops));
	memset(m->load, 0, (size_t)m->links.n * m->n * sizeof(*m->load));
	do {
		if (ret)
			break;
		swc_walk_rewind(&m->walk);
		swc_walk_go(&m->walk);
		ret = m->error ? m->error : swc_walk_result(&m->walk, why, why_bytes);
		close_window(m);
		tell(m, m->first < m->steps ? (double)m->first / m->steps : 1);
	} while (m->first < m->steps);
	swc_walk_free(&m->walk);
	return ret;
}

int swc_cost_compute(const struct swc_plan_args *args, struct swc_cost *cost,
		     swc_progress_fn *progress, void *arg, char *why, size_t why_bytes)
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
	m->cost = cost;
	m->timing = &cost->eager;
	m->progress = progress;
	m->arg = arg;
	m->seen = calloc(args->nranks + 1ull, sizeof(*m->seen));
	m->runs = calloc(args->nranks + 1ull, sizeof(*m->runs));
	if (m->seen && m->runs)
		ret = walk_plans(m, why, why ? why_bytes : 0);
	if (!ret)
		ret = m->met_sum ? by_times(m, why, why ? why_bytes : 0)
				 : in_step(m, why, why ? why_bytes : 0);
	cost->eager.steps = m->steps;
	cost->phased = cost->eager;
	if (!ret && !m->met_sum && m->nphases)
		ret = in_phases(m, why, why ? why_bytes : 0);
	cost->psi_xi = cost->phased.load * topo->ndims;
	for (uint32_t i = 0; i < SWC_MAX_CHANNELS; i++)
		free(m->route[i].link);
	for (uint32_t i = 0; i < SWC_MAX_CHANNELS; i++)
		free(m->phase_of[i]);
	free(m->length);
	free_window(m);
	free(m->seen);
	free(m->runs);
	free(m);
	return ret;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The flow model: events instead of common steps. A message (all transfers that meet at one time
 * between two ranks on a channel) begins when its sender has opened its step. It takes
 *
 *	step_ns, which messages of one step take at the same time,
 *	then as long as its bytes need on the links of its route, all of them at once,
 *	then hop_ns for each hop,
 *	and, if its memory must be kept until it is acknowledged, hop_ns for each hop again, after
 *	the step.
 *
 * A link is shared equally (processor sharing): each flow gets 1/n of it, and has the rate of the
 * worst link on its route. The share of other links that it does not use for that reason is lost,
 * so on crossing routes this is slower than max-min fairness. A step ends when what it receives has
 * arrived, and what it sends has left. If the receiver opens its step later than the sender, the
 * message is known only then, and the sender waits until then; the progress that the message would
 * have made since it began, alone on its links, counts as made. What stays within a node takes no
 * time, but its order and the barriers of the node (SYNC) are kept.
 *
 * Rates are updated only on links where a flow began or ended, once for all events of one time.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "plan/model/model.h"
#include "plan/model/routes.h"
#include "plan/model/walk.h"
#include "plan/table.h"

#define SAME_NS 1e-3 /* events this close are one */
#define TELL_EVENTS 65536

enum phase {
	STARTING,
	MOVING,
	FLYING,
};

/**
 * struct flow - a message on its way
 * @due: when the current phase ends
 * @acked: it must be acknowledged
 * @early: how long it has been on the way when it becomes known, without the time of its step
 * @left: bytes left at @since, while it moves
 * @rate: bytes per ns
 * @at: place in the heap of events
 * @seen: the last settle() that has set its rate
 */
struct flow {
	struct swc_thread *from, *to;
	uint32_t nxfers;
	enum phase phase;
	bool acked;
	double due, early, left, since, rate;
	struct swc_route route;
	uint32_t at;
	uint64_t seen;
	struct flow *next_free;
};

/* A link and the flows that share it. */
struct link {
	uint32_t n, room;
	struct flow **flow;
	bool changed;
};

struct sim {
	struct swc_walk walk;
	struct swc_links links;
	const struct swc_network *net;
	double end, block_bytes;
	struct link *link;
	uint32_t *changed, nchanged;
	uint64_t settled;
	struct flow **event; /* a heap, the next one first */
	uint32_t nevents, event_room;
	struct flow *free;
};

static void put(struct sim *s, uint32_t at, struct flow *f)
{
	s->event[at] = f;
	f->at = at;
}

/* Put an event into the heap, from a free place. */
static void sift(struct sim *s, uint32_t at, struct flow *f)
{
	while (at && s->event[(at - 1) / 2]->due > f->due) {
		put(s, at, s->event[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < s->nevents && s->event[child + 1]->due < s->event[child]->due)
			child++;
		if (child >= s->nevents || s->event[child]->due >= f->due)
			break;
		put(s, at, s->event[child]);
		at = child;
	}
	put(s, at, f);
}

static void set_due(struct sim *s, struct flow *f, double due)
{
	f->due = due;
	sift(s, f->at, f);
}

static void drop_event(struct sim *s, struct flow *f)
{
	struct flow *last = s->event[--s->nevents];

	if (last != f)
		sift(s, f->at, last);
}

static struct flow *new_flow(struct sim *s)
{
	struct flow *f = s->free;

	if (!swc_table_reserve(&s->event, s->nevents, &s->event_room, sizeof(*s->event)))
		return NULL;
	if (f)
		s->free = f->next_free;
	else
		f = calloc(1, sizeof(*f));
	return f;
}

static void met(struct swc_walk *w, struct swc_thread *from, struct swc_thread *to, uint32_t nxfers,
		uint64_t blocks)
{
	struct sim *s = (struct sim *)((char *)w - offsetof(struct sim, walk));
	uint32_t a = swc_topo_node_of(w->nodes, from->rank);
	uint32_t b = swc_topo_node_of(w->nodes, to->rank);
	struct flow *f;

	if (a == b) {
		swc_walk_done(w, from, nxfers);
		swc_walk_done(w, to, nxfers);
		return;
	}
	f = new_flow(s);
	if (!f) {
		w->error = -ENOMEM;
		return;
	}
	f->from = from;
	f->to = to;
	f->nxfers = nxfers;
	f->phase = STARTING;
	f->due = fmax(from->opened + s->net->step_ns, s->walk.now);
	f->early = fmax(s->walk.now - from->opened - s->net->step_ns, 0);
	f->left = (double)blocks * s->block_bytes;
	f->acked = s->net->ack_bytes > 0 && f->left >= s->net->ack_bytes * nxfers;
	sift(s, s->nevents++, f);
	if (swc_route_set(&f->route, &s->links, from->chan, a, b))
		w->error = -ENOMEM;
}

static struct link *touch(struct sim *s, uint32_t index)
{
	struct link *l = &s->link[index];

	if (!l->changed)
		s->changed[s->nchanged++] = index;
	l->changed = true;
	return l;
}

static void begin_moving(struct sim *s, struct flow *f)
{
	for (uint32_t i = 0; i < f->route.n; i++) {
		struct link *l = touch(s, f->route.link[i]);

		if (!swc_table_reserve(&l->flow, l->n, &l->room, sizeof(struct flow *))) {
			s->walk.error = -ENOMEM;
			return;
		}
		l->flow[l->n++] = f;
	}
}

static void end_moving(struct sim *s, const struct flow *f)
{
	for (uint32_t i = 0; i < f->route.n; i++) {
		struct link *l = touch(s, f->route.link[i]);
		uint32_t k = 0;

		while (l->flow[k] != f)
			k++;
		l->flow[k] = l->flow[--l->n];
	}
}

static void set_rate(struct sim *s, struct flow *f)
{
	double most = 1;

	for (uint32_t i = 0; i < f->route.n; i++)
		most = fmax(most, s->link[f->route.link[i]].n *
					  swc_link_slowness(&s->links, f->route.link[i]));
	f->left -= f->rate * (s->walk.now - f->since);
	f->since = s->walk.now;
	f->rate = s->net->gbps / 8 / most;
	set_due(s, f, s->walk.now + (f->left > 0 ? f->left / f->rate : 0));
}

/* Set the rates of flows on links where a flow began or ended. */
static void settle(struct sim *s)
{
	s->settled++;
	while (s->nchanged) {
		struct link *l = &s->link[s->changed[--s->nchanged]];

		l->changed = false;
		for (uint32_t i = 0; i < l->n; i++) {
			struct flow *f = l->flow[i];

			if (f->seen != s->settled)
				set_rate(s, f);
			f->seen = s->settled;
		}
	}
}

/* End a flow's phase. */
static void next_phase(struct sim *s, struct flow *f)
{
	double rate = s->net->gbps / 8, slowest = 1;

	for (uint32_t i = 0; i < f->route.n; i++)
		slowest = fmax(slowest, swc_link_slowness(&s->links, f->route.link[i]));
	rate /= slowest;
	if (f->phase == STARTING) {
		double gone = fmin(f->early * rate, f->left);

		f->left -= gone;
		f->early -= gone / rate;
	}
	if (f->phase == STARTING && f->left > 0) {
		f->phase = MOVING;
		f->since = s->walk.now;
		f->rate = 0;
		set_due(s, f, INFINITY);
		begin_moving(s, f);
		return;
	}
	if (f->phase == MOVING)
		end_moving(s, f);
	if (f->phase != FLYING) {
		f->phase = FLYING;
		swc_walk_done(&s->walk, f->from, f->nxfers);
		set_due(s, f, s->walk.now + fmax(f->route.hops * s->net->hop_ns - f->early, 0));
		return;
	}
	drop_event(s, f);
	if (f->acked)
		s->end = fmax(s->end, s->walk.now + f->route.hops * s->net->hop_ns);
	swc_walk_done(&s->walk, f->to, f->nxfers);
	f->next_free = s->free;
	s->free = f;
}

static void run(struct sim *s, swc_progress_fn *progress, void *arg)
{
	uint64_t events = 0;

	swc_walk_go(&s->walk);
	while (s->nevents && !s->walk.error) {
		s->walk.now = s->event[0]->due;
		while (s->nevents && s->event[0]->due <= s->walk.now + SAME_NS && !s->walk.error) {
			next_phase(s, s->event[0]);
			if (progress && !(++events % TELL_EVENTS))
				progress(arg, (double)s->walk.opened / (double)s->walk.nsteps);
		}
		swc_walk_go(&s->walk);
		if (!s->walk.error)
			settle(s);
	}
}

static void free_flow(struct flow *f)
{
	free(f->route.link);
	free(f);
}

static void free_sim(struct sim *s)
{
	for (uint32_t i = 0; i < s->nevents; i++)
		free_flow(s->event[i]);
	while (s->free) {
		struct flow *f = s->free;

		s->free = f->next_free;
		free_flow(f);
	}
	for (uint32_t i = 0; s->link && i < s->links.n; i++)
		free(s->link[i].flow);
	free(s->link);
	free(s->changed);
	free(s->event);
	swc_walk_free(&s->walk);
}

int swc_flow_time(const struct swc_plan_args *args, double bytes, const struct swc_network *net,
		  double *ns, swc_progress_fn *progress, void *arg, char *why, size_t why_bytes)
{
	struct swc_topo flat = swc_topo_flat(args->nranks);
	const struct swc_topo *topo = args->topo ? args->topo : &flat;
	struct sim s = { .walk.met = met, .links = swc_links_of(topo), .net = net };
	int ret;

	why_bytes = why ? why_bytes : 0;
	ret = swc_walk_init(&s.walk, args, topo, why, why_bytes);
	if (!ret) {
		s.block_bytes = bytes / s.walk.view[0].nblocks;
		s.link = calloc(s.links.n, sizeof(*s.link));
		s.changed = calloc(s.links.n, sizeof(*s.changed));
		if (!s.link || !s.changed)
			ret = -ENOMEM;
	}
	if (!ret) {
		run(&s, progress, arg);
		ret = swc_walk_result(&s.walk, why, why_bytes);
		*ns = fmax(s.walk.now, s.end);
	}
	free_sim(&s);
	return ret;
}

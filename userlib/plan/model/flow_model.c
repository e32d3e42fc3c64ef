// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The flow model: events instead of common steps, packets, and links as queues, first in first out.
 * A message (all transfers of a step of a channel from one rank to another; small ones share segments)
 * begins step_ns after its sender has opened the step; messages of one step spend that time together.
 * Before the receiver has opened its own step, only early_bytes of it are sent.
 *
 * Its packets enter the queue of the first link of their route, BURST of them at a time, the next
 * ones when these have left, as network adapters take turns among queue pairs. A link takes one
 * packet after the other at its rate; hop_ns later they enter the next queue, each when its first
 * bytes arrive there, or all of it: struct swc_packets. The rank has received the message hop_ns
 * after the last packet has left the last link. A message that must be kept until it is acknowledged
 * is over for its sender at the end of the collective, hop_ns for each hop after that:
 * acknowledgements are small, and adapters send them first. Each takes its time on the links of the way
 * back, when the message has arrived.
 *
 * A step ends when what it receives has arrived, and what it sends has left the sender. What stays
 * within a node takes no time, but its order and the barriers of the node (SYNC) are kept.
 *
 * All packets that enter a queue do so in the order of time, so a link needs no queue here: it is
 * enough to know when it becomes free. Packets of a burst follow one another on the first link, so
 * only one of them has an event on the second link. If there would be more than MOST_EVENTS, packets
 * go in groups, which cannot be interleaved: times where links are shared become rough.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan/model/model.h"
#include "plan/model/routes.h"
#include "plan/model/walk.h"
#include "plan/table.h"

#define BURST 64
#define MOST_EVENTS 2e6
#define TELL_EVENTS 65536

enum event_kind {
	SENT,	 /* the packets that the flow has queued at its first link have left it */
	ENTERED, /* a packet, or group of them, is in the queue of a later link */
	ARRIVED, /* the last packet is at the receiver */
};

/**
 * struct flow - a message on its way
 * @acked: it must be acknowledged
 * @stalled: it goes on when the receiver has opened its step
 * @bytes: of the message
 * @packets: how it is sent
 * @npackets: in all
 * @queued: packets that have entered the first queue
 * @route, @back: of the message, and of what acknowledges it
 * @refs: one until it has left the sender, one until it is over
 */
struct flow {
	struct swc_message message;
	bool acked, stalled;
	double bytes;
	struct swc_packets packets;
	uint64_t npackets, queued;
	struct swc_route route, back;
	uint32_t refs;
	struct flow *next_free, *next;
};

/**
 * struct event - something that happens to a flow
 * @order: of events at one time
 * @link: ENTERED: index into the route
 * @first: ENTERED: the first packet of the group
 * @end: ENTERED on the second link: behind the last packet of the burst
 * @began: ENTERED on the second link: when the first link would have begun with the message, had
 *	all before this burst gone just before it
 * @tail: ENTERED: when the last byte of the group has arrived
 */
struct event {
	double due;
	uint64_t order;
	struct flow *flow;
	enum event_kind kind;
	uint32_t link;
	uint64_t first, end;
	double began, tail;
};

struct sim {
	struct swc_walk walk;
	struct swc_links links;
	const struct swc_network *net;
	double end, block_bytes;
	double *free_at; /* by link */
	uint32_t group;
	uint64_t order;
	struct event *event; /* a heap, the next one first */
	uint32_t nevents, event_room;
	struct flow *free, *all;
};

static bool before(const struct event *a, const struct event *b)
{
	if (a->due < b->due || b->due < a->due)
		return a->due < b->due;
	return a->order < b->order;
}

static void push(struct sim *s, struct event e)
{
	uint32_t at = s->nevents;

	if (!swc_table_reserve(&s->event, s->nevents, &s->event_room, sizeof(*s->event))) {
		s->walk.error = -ENOMEM;
		return;
	}
	s->nevents++;
	e.order = s->order++;
	for (; at && before(&e, &s->event[(at - 1) / 2]); at = (at - 1) / 2)
		s->event[at] = s->event[(at - 1) / 2];
	s->event[at] = e;
}

static struct event pop(struct sim *s)
{
	struct event top = s->event[0], last = s->event[--s->nevents];
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < s->nevents) {
		if (child + 1 < s->nevents && before(&s->event[child + 1], &s->event[child]))
			child++;
		if (!before(&s->event[child], &last))
			break;
		s->event[at] = s->event[child];
		at = child;
	}
	s->event[at] = last;
	return top;
}

static double link_rate(const struct sim *s, uint32_t link)
{
	return s->net->gbps / 8 / swc_link_slowness(&s->links, link);
}

static double rate_of(const struct sim *s, const struct flow *f, uint32_t link)
{
	return link_rate(s, f->route.link[link]);
}

/* Bytes on a link of the first n packets. */
static double wire_bytes(const struct flow *f, uint64_t n)
{
	return swc_packets_first(&f->packets, f->bytes, n);
}

/* Of a packet so much must have arrived before it enters the next queue. */
static double held_bytes(const struct sim *s, const struct flow *f, uint64_t packet)
{
	return s->net->packets.whole ? wire_bytes(f, packet + 1) - wire_bytes(f, packet) : 0;
}

/* The delay behind a link of the route. Into a switch and out of it is one hop. */
static double delay_of(const struct sim *s, const struct flow *f, uint32_t link)
{
	return f->route.hops == f->route.n || link == f->route.n - 1 ? s->net->hop_ns : 0;
}

/* Put packets first, first + 1, ... of a burst, which @e describes, into the second queue. */
static void enter_second(struct sim *s, struct event e)
{
	const struct flow *f = e.flow;
	double rate = rate_of(s, f, 0), delay = delay_of(s, f, 0);
	uint64_t behind = e.end - e.first > s->group ? e.first + s->group : e.end;

	e.kind = ENTERED;
	e.link = 1;
	e.due = e.began + (wire_bytes(f, e.first) + held_bytes(s, f, e.first)) / rate + delay;
	e.tail = e.began + wire_bytes(f, behind) / rate + delay;
	push(s, e);
}

static void arrive(struct sim *s, struct flow *f, double left_at)
{
	push(s, (struct event){ .due = left_at + delay_of(s, f, f->route.n - 1),
				.flow = f,
				.kind = ARRIVED });
}

/* The next burst enters the first queue. */
static void queue_burst(struct sim *s, struct flow *f)
{
	uint64_t first = f->queued, end = first + (s->group > BURST ? s->group : BURST);
	double *free_at = &s->free_at[f->route.link[0]], rate = rate_of(s, f, 0);
	double began = fmax(*free_at, s->walk.now) - wire_bytes(f, first) / rate;

	end = end < f->npackets ? end : f->npackets;
	f->queued = end;
	*free_at = began + wire_bytes(f, end) / rate;
	push(s, (struct event){ .due = *free_at, .flow = f, .kind = SENT });
	if (f->route.n > 1)
		enter_second(
			s, (struct event){ .flow = f, .first = first, .end = end, .began = began });
	else if (end == f->npackets)
		arrive(s, f, *free_at);
}

/* A group of packets goes over a link behind the first one. */
static void pass_link(struct sim *s, struct event e)
{
	struct flow *f = e.flow;
	double *free_at = &s->free_at[f->route.link[e.link]], rate = rate_of(s, f, e.link);
	double delay = delay_of(s, f, e.link), began = fmax(*free_at, e.due);
	uint64_t behind = e.end - e.first > s->group ? e.first + s->group : e.end;

	/* Not before the last byte is there, or with the last packet if it is held. */
	*free_at = fmax(began + (wire_bytes(f, behind) - wire_bytes(f, e.first)) / rate,
			e.tail + held_bytes(s, f, behind - 1) / rate);
	if (e.link < f->route.n - 1)
		push(s, (struct event){
				.due = began + held_bytes(s, f, e.first) / rate + delay,
				.flow = f,
				.kind = ENTERED,
				.link = e.link + 1,
				.first = e.first,
				.end = behind,
				.tail = *free_at + delay,
			});
	else if (behind == f->npackets)
		arrive(s, f, *free_at);
	e.first = behind;
	if (e.link == 1 && behind < e.end)
		enter_second(s, e);
}

static struct flow *new_flow(struct sim *s)
{
	struct flow *f = s->free;

	if (f) {
		s->free = f->next_free;
		return f;
	}
	f = calloc(1, sizeof(*f));
	if (f) {
		f->next = s->all;
		s->all = f;
	}
	return f;
}

static void put_flow(struct sim *s, struct flow *f)
{
	if (--f->refs)
		return;
	f->next_free = s->free;
	s->free = f;
}

static struct flow *flow_of(struct swc_message *m)
{
	return (struct flow *)((char *)m - offsetof(struct flow, message));
}

/* A sender has opened its step. */
static void posted(struct swc_walk *w, struct swc_thread *from, struct swc_thread *to,
		   uint32_t path, uint32_t nxfers, uint64_t blocks)
{
	struct sim *s = (struct sim *)((char *)w - offsetof(struct sim, walk));
	uint32_t a = swc_topo_node_of(w->nodes, from->rank);
	uint32_t b = swc_topo_node_of(w->nodes, to->rank);
	struct flow *f = new_flow(s);

	if (!f) {
		w->error = -ENOMEM;
		return;
	}
	f->message = (struct swc_message){ .from = from, .to = to, .nxfers = nxfers };
	f->refs = 2;
	f->stalled = false;
	swc_walk_offer(w, &f->message);
	if (a == b) {
		f->acked = false;
		swc_walk_done(w, from, nxfers);
		put_flow(s, f);
		swc_walk_arrived(w, &f->message);
		return;
	}
	f->bytes = (double)blocks * s->block_bytes;
	f->packets = swc_packets_together(&s->net->packets, f->bytes, nxfers);
	f->npackets = swc_packets_count(&f->packets, f->bytes);
	f->queued = 0;
	f->acked = s->net->ack_bytes > 0 && f->bytes >= s->net->ack_bytes * nxfers;
	if (swc_route_set(&f->route, &s->links, path, a, b) ||
	    swc_route_set(&f->back, &s->links, path, b, a))
		w->error = -ENOMEM;
	push(s, (struct event){ .due = w->now + s->net->step_ns, .flow = f, .kind = SENT });
}

static void over(struct swc_walk *w, struct swc_message *m)
{
	put_flow((struct sim *)((char *)w - offsetof(struct sim, walk)), flow_of(m));
}

/* May a flow send its next packets? Else it goes on when the receiver has reached its step. */
static bool may_send(const struct sim *s, struct flow *f)
{
	f->stalled = !f->message.claimed &&
		     wire_bytes(f, f->queued) >= fmin(s->net->early_bytes, f->bytes);
	return !f->stalled;
}

static void wanted(struct swc_walk *w, struct swc_message *m)
{
	struct sim *s = (struct sim *)((char *)w - offsetof(struct sim, walk));
	struct flow *f = flow_of(m);

	if (f->stalled)
		queue_burst(s, f);
	f->stalled = false;
}

/* What is sent over these links later waits for it. */
static void acknowledge(struct sim *s, const struct flow *f)
{
	double bytes = swc_packets_acks(&f->packets, f->bytes);

	for (uint32_t i = 0; bytes > 0 && i < f->back.n; i++) {
		double *free_at = &s->free_at[f->back.link[i]];

		*free_at = fmax(*free_at, s->walk.now) + bytes / link_rate(s, f->back.link[i]);
	}
}

static void happen(struct sim *s, struct event e)
{
	struct flow *f = e.flow;

	if (e.kind == ENTERED) {
		pass_link(s, e);
	} else if (e.kind == ARRIVED) {
		acknowledge(s, f);
		if (f->acked)
			s->end = fmax(s->end, s->walk.now + f->route.hops * s->net->hop_ns);
		swc_walk_arrived(&s->walk, &f->message);
	} else if (f->queued == f->npackets) {
		swc_walk_done(&s->walk, f->message.from, f->message.nxfers);
		put_flow(s, f);
	} else if (may_send(s, f)) {
		queue_burst(s, f);
	}
}

static void run(struct sim *s, swc_progress_fn *progress, void *arg)
{
	uint64_t events = 0;

	swc_walk_go(&s->walk);
	while (s->nevents && !s->walk.error) {
		struct event e = pop(s);

		s->walk.now = e.due;
		happen(s, e);
		swc_walk_go(&s->walk);
		if (progress && !(++events % TELL_EVENTS))
			progress(arg, (double)s->walk.opened / (double)s->walk.nsteps);
	}
}

/* About how many events the sends of a rank are; negative without memory. */
static double count_events(const struct sim *s, uint32_t rank, struct swc_route *route)
{
	const struct swc_walk *w = &s->walk;
	const struct swc_plan_view *v = &w->view[rank];
	uint32_t node = swc_topo_node_of(w->nodes, rank);
	double events = 0;

	for (uint32_t i = 0; i < v->hdr->nsteps; i++) {
		const struct swc_plan_step *t = &v->steps[i];

		for (uint32_t j = 0; t->kind == SWC_STEP_NET && j < t->nsend; j++) {
			const struct swc_plan_xfer *x = &v->xfers[t->first_xfer + j];
			double bytes = x->nblocks * s->block_bytes, packets;

			if (swc_route_set(route, &s->links, x->path, node,
					  swc_topo_node_of(w->nodes, x->rank)))
				return -1;
			packets = (double)swc_packets_count(&s->net->packets, bytes);
			if (route->n)
				events += packets * (route->n - 1 + 1.0 / BURST) + 1;
		}
	}
	return events;
}

/* Choose how many packets go together. */
static int set_group(struct sim *s)
{
	struct swc_route route = { 0 };
	double events = 0, some = 0;

	for (uint32_t r = 0; r < s->walk.nranks && some >= 0; r++)
		events += some = count_events(s, r, &route);
	free(route.link);
	s->group = (uint32_t)fmin(fmax(ceil(events / MOST_EVENTS), 1), 1e9);
	return some < 0 ? -ENOMEM : 0;
}

static void free_sim(struct sim *s)
{
	while (s->all) {
		struct flow *f = s->all;

		s->all = f->next;
		free(f->route.link);
		free(f->back.link);
		free(f);
	}
	free(s->free_at);
	free(s->event);
	swc_walk_free(&s->walk);
}

/* Refuse networks whose plans together are too large. By the first plan: others are like it. */
static int check_bytes(const struct swc_plan_args *args, const struct swc_links *links, char *why,
		       size_t why_bytes)
{
	struct swc_plan_args a = *args;
	size_t bytes;
	void *plan;
	double all;
	int ret;

	a.rank = 0;
	ret = swc_plan_build(&a, &plan, &bytes, why, why_bytes);
	if (ret)
		return ret;
	all = (double)bytes + swc_walk_view(plan).hdr->nchannels * sizeof(struct swc_thread);
	free(plan);
	all = all * args->nranks + (double)links->n * sizeof(double);
	if (all <= SWC_FLOW_BYTES)
		return 0;
	if (why)
		snprintf(why, why_bytes, "plans of about %.0f MiB, more than %u", all / (1 << 20),
			 SWC_FLOW_BYTES >> 20);
	return -EFBIG;
}

int swc_flow_time(const struct swc_plan_args *args, double bytes, const struct swc_network *net,
		  struct swc_flow *flow, swc_progress_fn *progress, void *arg, char *why,
		  size_t why_bytes)
{
	struct swc_topo flat = swc_topo_flat(args->nranks);
	const struct swc_topo *topo = args->topo ? args->topo : &flat;
	struct sim s = { .walk = { .posted = posted, .wanted = wanted, .over = over },
			 .links = swc_links_of(topo),
			 .net = net };
	int ret;

	why_bytes = why ? why_bytes : 0;
	ret = check_bytes(args, &s.links, why, why_bytes);
	if (ret)
		return ret;
	ret = swc_walk_init(&s.walk, args, topo, why, why_bytes);
	if (!ret) {
		s.block_bytes = bytes / s.walk.view[0].nblocks;
		s.free_at = calloc(s.links.n, sizeof(*s.free_at));
		ret = s.free_at ? set_group(&s) : -ENOMEM;
	}
	if (!ret) {
		run(&s, progress, arg);
		ret = swc_walk_result(&s.walk, why, why_bytes);
		*flow = (struct swc_flow){ .ns = fmax(s.walk.now, s.end), .group = s.group };
	}
	free_sim(&s);
	return ret;
}

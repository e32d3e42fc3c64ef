// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Running an execution plan of MSCCL++ on symbols. Its operations are one-sided: a GPU writes to buffers of
 * others and reads them, and signals tell when. Here they run in one of the orders that the signals allow,
 * each as moves of chunks, which become sends and receives of both sides. If the plan is free of races, all
 * orders have the same result; whether that is right is shown by verifying the plans.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/format/mscclpp_program.h"

#define NONE SWC_MSCCL_NONE

static struct swc_mscclpp_sync *find_sync(struct swc_mscclpp_sync *s, uint32_t n, uint32_t gpu,
					  uint32_t number)
{
	while (n && (s->gpu != gpu || s->number != number)) {
		s++;
		n--;
	}
	return n ? s : NULL;
}

/* ---- waiting ---- */

static bool has_signals(const struct swc_mscclpp *p, const struct swc_mscclpp_op *o)
{
	for (uint32_t i = 0; i < o->nids; i++)
		if (!p->chan[p->id[o->first_id + i]].signals)
			return false;
	for (uint32_t i = 0; i < o->nids; i++)
		p->chan[p->id[o->first_id + i]].signals--;
	return true;
}

static bool has_semaphores(struct swc_mscclpp *p, const struct swc_mscclpp_op *o, uint32_t gpu)
{
	for (uint32_t i = 0; i < o->nids; i++)
		if (!find_sync(p->semaphore, p->nsemaphores, gpu, p->id[o->first_id + i])->count)
			return false;
	for (uint32_t i = 0; i < o->nids; i++)
		find_sync(p->semaphore, p->nsemaphores, gpu, p->id[o->first_id + i])->count--;
	return true;
}

/* The last one that comes lets all go on; a barrier is used again and again. */
static bool passes_barrier(struct swc_mscclpp *p, struct swc_mscclpp_tb *t,
			   const struct swc_mscclpp_op *o)
{
	struct swc_mscclpp_sync *b = find_sync(p->barrier, p->nbarriers, t->gpu, o->barrier);

	if (!t->waits && ++b->count < o->members) {
		t->waits = true;
		return false;
	}
	if (t->waits)
		return false;
	b->count = 0;
	for (uint32_t i = 0; i < p->ntbs; i++) {
		struct swc_mscclpp_tb *other = &p->tb[i];
		const struct swc_mscclpp_op *its = &p->op[other->first_op + other->at];

		if (other == t || other->gpu != t->gpu || !other->waits ||
		    its->barrier != o->barrier)
			continue;
		other->waits = false;
		other->at++;
	}
	return true;
}

static bool has_packets(struct swc_mscclpp *p, const struct swc_mscclpp_op *o)
{
	for (uint32_t i = 0; i < o->nsrc; i++) {
		const struct swc_mscclpp_ref *r = &p->ref[o->first_ref + i];

		if (r->at.buf == 's' && !swc_msccl_has(&p->m, &r->at, r->n))
			return false;
	}
	return true;
}

static bool ready(struct swc_mscclpp *p, struct swc_mscclpp_tb *t, const struct swc_mscclpp_op *o)
{
	if (o->does & SWC_MSCCLPP_WAIT)
		return has_signals(p, o);
	if (o->does & SWC_MSCCLPP_ACQUIRE)
		return has_semaphores(p, o, t->gpu);
	if (o->does & SWC_MSCCLPP_BARRIER)
		return passes_barrier(p, t, o);
	return !(o->does & SWC_MSCCLPP_PACKETS) || has_packets(p, o);
}

/* ---- doing ---- */

static bool same(const struct swc_mscclpp_ref *a, const struct swc_mscclpp_ref *b)
{
	return a->at.gpu == b->at.gpu && a->at.buf == b->at.buf && a->at.first == b->at.first;
}

static int move(struct swc_mscclpp *p, const struct swc_mscclpp_ref *from,
		const struct swc_mscclpp_ref *to, bool add)
{
	if (same(from, to) && !add)
		return 0;
	return swc_msccl_move(&p->m, &from->at, &to->at, to->n, add);
}

/* To the first destination, and from there to the others. The source that is there already comes first. */
static int reduce(struct swc_mscclpp *p, const struct swc_mscclpp_op *o)
{
	const struct swc_mscclpp_ref *src = &p->ref[o->first_ref], *dst = src + o->nsrc;
	uint32_t first = 0;
	int ret;

	for (uint32_t i = 0; i < o->nsrc; i++)
		first = same(&src[i], dst) ? i : first;
	ret = move(p, &src[first], dst, false);
	for (uint32_t i = 0; i < o->nsrc && !ret; i++)
		if (i != first)
			ret = move(p, &src[i], dst, true);
	for (uint32_t i = 1; i < o->ndst && !ret; i++)
		ret = move(p, dst, dst + i, false);
	return ret;
}

static int copy(struct swc_mscclpp *p, const struct swc_mscclpp_op *o)
{
	const struct swc_mscclpp_ref *src = &p->ref[o->first_ref], *dst = src + o->nsrc;
	int ret = 0;

	for (uint32_t i = 0; i < o->ndst && !ret; i++)
		ret = move(p, &src[i < o->nsrc ? i : o->nsrc - 1], dst + i, false);
	return ret;
}

static void carry_out(struct swc_mscclpp *p, const struct swc_mscclpp_tb *t,
		      const struct swc_mscclpp_op *o)
{
	if (o->does & SWC_MSCCLPP_COPY)
		copy(p, o);
	if (o->does & SWC_MSCCLPP_REDUCE)
		reduce(p, o);
	for (uint32_t i = 0; i < o->nids; i++) {
		uint32_t id = p->id[o->first_id + i];

		if (o->does & SWC_MSCCLPP_SIGNAL && p->chan[id].pair != NONE)
			p->chan[p->chan[id].pair].signals++;
		if (o->does & SWC_MSCCLPP_RELEASE)
			find_sync(p->semaphore, p->nsemaphores, t->gpu, id)->count++;
	}
}

/* ---- the whole ---- */

/*
 * The n-th channel of a GPU to another is the other end of that one's n-th channel back. Plans get as many
 * channels as there are from one GPU to another, at most.
 */
static void pair_channels(struct swc_mscclpp *p)
{
	for (uint32_t i = 0; i < p->nchans; i++) {
		struct swc_mscclpp_chan *c = &p->chan[i];
		uint32_t nth = 0, all = 1;

		for (uint32_t k = 0; k < i; k++) {
			bool also = p->chan[k].gpu == c->gpu && p->chan[k].peer == c->peer;

			all += also;
			nth += also && p->chan[k].memory == c->memory;
		}
		if (all > p->m.channels && all <= SWC_MAX_PATHS)
			p->m.channels = all;
		c->pair = NONE;
		for (uint32_t k = 0; k < p->nchans && c->pair == NONE; k++)
			if (p->chan[k].gpu == c->peer && p->chan[k].peer == c->gpu &&
			    p->chan[k].memory == c->memory && !nth--)
				c->pair = k;
	}
}

/* Put in front of what was said where it was. */
static int say_where(struct swc_mscclpp *p, const struct swc_mscclpp_tb *t)
{
	char text[200];

	snprintf(text, sizeof(text), "%s", p->m.why_bytes ? p->m.why : "");
	if (p->m.why_bytes)
		snprintf(p->m.why, p->m.why_bytes, "gpu %u, threadblock %u, operation %u: %s",
			 t->gpu, t->id, t->at, text);
	return p->m.error;
}

int swc_mscclpp_run(struct swc_mscclpp *p)
{
	bool moved;

	pair_channels(p);
	if (swc_msccl_begin(&p->m, p->moves))
		return p->m.error;
	do {
		moved = false;
		for (uint32_t i = 0; i < p->ntbs; i++) {
			struct swc_mscclpp_tb *t = &p->tb[i];

			while (t->at < t->nops && ready(p, t, &p->op[t->first_op + t->at])) {
				carry_out(p, t, &p->op[t->first_op + t->at]);
				if (p->m.error)
					return say_where(p, t);
				t->at++;
				moved = true;
			}
			if (p->m.error)
				return say_where(p, t);
		}
	} while (moved);
	for (uint32_t i = 0; i < p->ntbs; i++) {
		if (p->tb[i].at == p->tb[i].nops)
			continue;
		swc_msccl_refuse(&p->m, 0, "waits for ever");
		return say_where(p, &p->tb[i]);
	}
	return 0;
}

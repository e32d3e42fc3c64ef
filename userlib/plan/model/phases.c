// SPDX-License-Identifier: LGPL-2.1-or-later
/* Phases of a plan. Pure functions; everything belongs to the caller. */
#include "plan/model/phases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t swc_phases_net_steps(const struct swc_plan_view *v, uint32_t chan)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < v->channels[chan].nsteps; i++)
		n += v->steps[v->channels[chan].first_step + i].kind == SWC_STEP_NET;
	return n;
}

uint32_t swc_phases_longest(const struct swc_plan_view *v)
{
	uint32_t most = 0, n;

	for (uint32_t chan = 0; chan < v->hdr->nchannels; chan++) {
		n = swc_phases_net_steps(v, chan);
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

int swc_phases_find(struct swc_phases *p, const struct swc_plan_view *v)
{
	uint32_t steps = swc_phases_longest(v), n = 0;
	uint32_t *length = calloc(steps + 1, sizeof(*length));
	bool same = true, differ = false;
	int ret = 0;

	p->length = calloc(steps + 1, sizeof(*p->length));
	if (!length || !p->length)
		ret = -ENOMEM;
	for (uint32_t c = 0; !ret && same && c < v->hdr->nchannels; c++) {
		uint32_t here;

		p->of[c] = calloc(steps + 1, sizeof(**p->of));
		if (!p->of[c]) {
			ret = -ENOMEM;
			break;
		}
		memset(length, 0, steps * sizeof(*length));
		here = find_phases(v, c, p->of[c], length);
		same = !c || here == n;
		n = here;
		for (uint32_t i = 0; same && i < n; i++) {
			differ |= c && length[i] != p->length[i];
			p->length[i] = length[i] > p->length[i] ? length[i] : p->length[i];
		}
	}
	p->n = same && differ ? n : 0;
	free(length);
	return ret;
}

void swc_phases_free(struct swc_phases *p)
{
	for (uint32_t c = 0; c < SWC_MAX_CHANNELS; c++)
		free(p->of[c]);
	free(p->length);
}

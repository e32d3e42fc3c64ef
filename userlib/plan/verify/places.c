// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Do plans keep each block at its own place? Then they are right for shards of different sizes, too. Else a
 * block is stored where another one would be, which may be smaller. In the order in which messages go from
 * one rank to another on a channel, what the one sends must have the numbers that the other receives.
 */
#include <errno.h>
#include <stdlib.h>

#include "plan/plan.h"
#include "kmod/core/plan_check.h"
#include "plan/text.h"

/* Blocks that a message carries; @order: among those of a rank's plan. */
struct run {
	uint32_t chan, from, to, order, first, n;
};

static int by_message(const void *a, const void *b)
{
	const struct run *x = a, *y = b;
	const uint32_t u[] = { x->chan, x->from, x->to, x->order };
	const uint32_t v[] = { y->chan, y->from, y->to, y->order };

	for (int i = 0; i < 4; i++)
		if (u[i] != v[i])
			return u[i] < v[i] ? -1 : 1;
	return 0;
}

/* A local or copy step that moves a block elsewhere: *other gets the place. */
static bool moves(const struct swc_plan_view *v, const struct swc_plan_step *s, uint32_t *block,
		  uint32_t *other)
{
	const struct swc_plan_xfer *x = &v->xfers[s->first_xfer];

	*block = x->first_block;
	for (uint32_t i = 1; s->kind == SWC_STEP_LOCAL && i < (uint32_t)s->nsend + s->nrecv; i++) {
		*other = x[i].first_block;
		if (*other != *block)
			return true;
	}
	for (uint32_t i = 0; s->kind == SWC_STEP_COPY && i < s->nsend; i++) {
		*block = x[i].first_block;
		*other = x[s->nsend + i].first_block;
		if (*other != *block)
			return true;
	}
	return false;
}

static void list_step(const struct swc_plan_view *v, const struct swc_plan_step *s, uint32_t chan,
		      struct run *run[2], uint32_t n[2])
{
	uint32_t me = v->hdr->rank;

	for (uint32_t i = 0; s->kind == SWC_STEP_NET && i < (uint32_t)s->nsend + s->nrecv; i++) {
		const struct swc_plan_xfer *x = &v->xfers[s->first_xfer + i];
		bool recv = i >= s->nsend;

		run[recv][n[recv]] = (struct run){
			chan,	 recv ? x->rank : me, recv ? me : x->rank,
			n[recv], x->first_block,      x->nblocks
		};
		n[recv]++;
	}
}

static int refuse(char *why, size_t why_bytes, uint32_t rank, uint32_t block, uint32_t other)
{
	return swc_text_refuse(
		why, why_bytes,
		"rank %u has block %u in the place of block %u, so all shards must have "
		"one size",
		rank, block, other);
}

/* Blocks as they are sent beside those that are received. */
static int compare(struct run *const run[2], const uint32_t n[2], char *why, size_t why_bytes)
{
	uint32_t i = 0, k = 0;

	while (i < n[0] && k < n[1]) {
		struct run *s = &run[0][i], *r = &run[1][k];
		uint32_t both = s->n < r->n ? s->n : r->n;

		if (s->chan != r->chan || s->from != r->from || s->to != r->to)
			return swc_text_refuse(why, why_bytes,
					       "rank %u receives from rank %u what is not sent",
					       r->to, r->from);
		if (s->first != r->first)
			return refuse(why, why_bytes, r->to, s->first, r->first);
		s->first += both;
		r->first += both;
		s->n -= both;
		r->n -= both;
		i += !s->n;
		k += !r->n;
	}
	return 0;
}

static int list(const void *const *plans, const size_t *bytes, uint32_t nranks, struct run *run[2],
		uint32_t n[2], char *why, size_t why_bytes)
{
	for (uint32_t rank = 0; rank < nranks; rank++) {
		struct swc_plan_view v;
		int ret = swc_plan_check(plans[rank], bytes[rank], &v, why, why_bytes);

		for (uint32_t c = 0; !ret && c < v.hdr->nchannels; c++)
			for (uint32_t k = 0; !ret && k < v.channels[c].nsteps; k++) {
				const struct swc_plan_step *s =
					&v.steps[v.channels[c].first_step + k];
				uint32_t block, other;

				if (moves(&v, s, &block, &other))
					ret = refuse(why, why_bytes, rank, block, other);
				list_step(&v, s, c, run, n);
			}
		if (ret)
			return ret;
	}
	return 0;
}

int swc_plan_keeps_places(const void *const *plans, const size_t *bytes, uint32_t nranks, char *why,
			  size_t why_bytes)
{
	struct run *run[2] = { NULL };
	uint32_t n[2] = { 0 };
	uint64_t all = 1;
	int ret = 0;

	for (uint32_t r = 0; r < nranks; r++)
		all += ((const struct swc_plan_header *)plans[r])->nxfers;
	for (int i = 0; i < 2; i++) {
		run[i] = calloc(all, sizeof(**run));
		ret = run[i] ? ret : -ENOMEM;
	}
	if (!ret)
		ret = list(plans, bytes, nranks, run, n, why, why_bytes);
	for (int i = 0; !ret && i < 2; i++)
		qsort(run[i], n[i], sizeof(**run), by_message);
	if (!ret)
		ret = compare(run, n, why, why_bytes);
	free(run[0]);
	free(run[1]);
	return ret;
}

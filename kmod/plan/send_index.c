// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sends of a plan's network steps by rank: a receiver finds what is sent to it in a step of 65535 sends
 * as fast as in one of few. The table is made with the plan, and is constant.
 *
 * It has an entry per transfer. Those of a step's sends are the same sends in the order of their ranks, and
 * of the plan among those to one rank: the rank, and the send's place in the step.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "plan/send_index.h"

#define PLACE_BITS	16

static u32 rank_of(u32 entry)
{
	return entry >> PLACE_BITS;
}

static u32 place_of(u32 entry)
{
	return entry & (BIT(PLACE_BITS) - 1);
}

static int compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* Memory of the table. */
u64 swc_send_index_bytes(const struct swc_plan_view *view)
{
	return (u64)view->hdr->nxfers * sizeof(u32);
}

/**
 * swc_send_index_create() - make the table of a verified plan
 *
 * Return: to be freed with kvfree(); NULL: no memory.
 */
u32 *swc_send_index_create(const struct swc_plan_view *view)
{
	u32 *index = kvmalloc_array(view->hdr->nxfers, sizeof(*index), GFP_KERNEL_ACCOUNT), i, k;

	BUILD_BUG_ON(SWC_MAX_RANKS > 1ull << (32 - PLACE_BITS) || SWC_MAX_MESSAGES > 1u << PLACE_BITS);
	if (!index)
		return NULL;
	for (i = 0; i < view->hdr->nsteps; i++) {
		const struct swc_plan_step *s = &view->steps[i];
		u32 *sends = &index[s->first_xfer];

		if (s->kind != SWC_STEP_NET)
			continue;
		for (k = 0; k < s->nsend; k++)
			sends[k] = view->xfers[s->first_xfer + k].rank << PLACE_BITS | k;
		sort(sends, s->nsend, sizeof(*sends), compare, NULL);
		cond_resched();
	}
	return index;
}

/**
 * swc_send_index_claim() - claim the first send of a network step to @rank that nobody has claimed
 * @taken: bitmap of as many bits as the step has sends, at first zero
 *
 * Return: its place in the step; SWC_NO_SEND: there is none.
 */
u32 swc_send_index_claim(const u32 *index, const struct swc_plan_step *s, u32 rank, unsigned long *taken)
{
	const u32 *sends = &index[s->first_xfer];
	u32 low = 0, high = s->nsend, at;

	while (low < high) {
		at = low + (high - low) / 2;
		if (rank_of(sends[at]) < rank)
			low = at + 1;
		else
			high = at;
	}
	at = find_next_zero_bit(taken, s->nsend, low);
	if (at >= s->nsend || rank_of(sends[at]) != rank)
		return SWC_NO_SEND;
	__set_bit(at, taken);
	return place_of(sends[at]);
}

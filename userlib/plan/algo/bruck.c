// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * ALLTOALL in few messages, for small shards: a shard goes its distance from member to member digit by
 * digit, together with all that have the same digit. (Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient
 * algorithms for all-to-all communications in multiport message-passing systems", 1997.) With radix r there
 * are ceil(log_r p) steps, of r - 1 messages each.
 *
 * The highest digit comes first. Then what the first step sends is consecutive in SEND, and goes out from
 * there. From then on all p shards of a member are in SCRATCH. Before a step, those with a digit other than
 * 0 are packed into RECV, a message for each digit, and the others close up; what arrives fills the rest of
 * SCRATCH. So the order changes as in a stable sort by the digit, alike on all members. Shards stand
 * together in runs as long as the weight of the digit of the step before, which keeps copies few: less than
 * 2p for packing in all, and p from SCRATCH to their places at the end. One copy step has all those between
 * two exchanges.
 *
 * SEND is not read after RECV is first written, so that the plan is right in place, too.
 */
#include "plan/algo/bruck.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "plan/algo/builder.h"
#include "plan/table.h"

/* ---- the order of shards ---- */

static void find_digits(struct swc_bruck *k)
{
	memset(k->count, 0, sizeof(k->count));
	for (uint32_t i = 0; i < k->n; i++) {
		k->digit[i] = (uint8_t)(k->distance[i] / k->weight % k->radix);
		k->count[k->digit[i]]++;
	}
	for (uint32_t v = 1; v < k->radix; v++)
		k->base[v] = k->base[v - 1] + k->count[v - 1];
}

int swc_bruck_open(struct swc_bruck *k, uint32_t n, uint32_t radix)
{
	*k = (struct swc_bruck){ .n = n, .radix = radix, .weight = 1, .first = true };
	k->distance = calloc(n, sizeof(*k->distance));
	k->next = calloc(n, sizeof(*k->next));
	k->digit = calloc(n, sizeof(*k->digit));
	if (!k->distance || !k->next || !k->digit)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		k->distance[i] = i;
	while ((uint64_t)k->weight * radix < n)
		k->weight *= radix;
	find_digits(k);
	return 0;
}

void swc_bruck_close(struct swc_bruck *k)
{
	free(k->distance);
	free(k->next);
	free(k->digit);
}

static uint32_t end_of_run(const struct swc_bruck *k, uint32_t begin)
{
	uint32_t end = begin + 1;

	while (end < k->n && k->digit[end] == k->digit[begin])
		end++;
	return end;
}

/* Close up: a piece must not overlap the place that it goes to. */
static void close_up(uint32_t from, uint32_t to, uint32_t n, swc_bruck_copy_fn *copy, void *arg)
{
	uint32_t each = from - to;

	for (uint32_t done = 0; each && done < n; done += each)
		copy(arg, 0, from + done, to + done, each < n - done ? each : n - done);
}

void swc_bruck_pack(const struct swc_bruck *k, swc_bruck_copy_fn *copy, void *arg)
{
	uint32_t to[SWC_BRUCK_MAX_RADIX], end;

	memcpy(to, k->base, sizeof(to));
	for (uint32_t at = 0; at < k->n; at = end) {
		uint32_t digit = k->digit[at];

		end = end_of_run(k, at);
		if (digit)
			copy(arg, digit, at, to[digit], end - at);
		else
			close_up(at, to[digit], end - at, copy, arg);
		to[digit] += end - at;
	}
}

bool swc_bruck_next(struct swc_bruck *k)
{
	uint32_t to[SWC_BRUCK_MAX_RADIX], *was = k->distance;

	memcpy(to, k->base, sizeof(to));
	for (uint32_t i = 0; i < k->n; i++)
		k->next[to[k->digit[i]]++] = k->distance[i];
	k->distance = k->next;
	k->next = was;
	k->first = false;
	if (k->weight == 1)
		return false;
	k->weight /= k->radix;
	find_digits(k);
	return true;
}

/* ---- the plan ---- */

/* Copies until the next exchange. @failed: there was no memory for one. */
struct copies {
	struct swc_copy *at;
	uint32_t n, room;
	bool failed;
};

static void copy(struct copies *c, enum swc_buf from_buf, uint32_t from, enum swc_buf to_buf,
		 uint32_t to, uint32_t n, uint32_t flags)
{
	if (!n || c->failed)
		return;
	c->failed = !swc_table_reserve(&c->at, c->n, &c->room, sizeof(*c->at));
	if (c->failed)
		return;
	c->at[c->n++] = (struct swc_copy){ .from = from,
					   .to = to,
					   .n = n,
					   .from_buf = (uint8_t)from_buf,
					   .to_buf = (uint8_t)to_buf,
					   .flags = (uint8_t)flags };
}

static void pack(void *arg, uint32_t digit, uint32_t from, uint32_t to, uint32_t n)
{
	copy(arg, SWC_BUF_SCRATCH, from, digit ? SWC_BUF_RECV : SWC_BUF_SCRATCH, to, n, 0);
}

static void write_copies(struct swc_builder *b, struct copies *c)
{
	if (c->failed && !b->error)
		b->error = -ENOMEM;
	swc_build_copies(b, c->at, c->n);
	c->n = 0;
}

/* How many of n shards from one on are before the last member's, where they go on at member 0. */
static uint32_t before_wrap(const struct swc_builder *b, uint32_t first, uint32_t n)
{
	return n < b->n - first ? n : b->n - first;
}

static void keep_own(const struct swc_builder *b, const struct swc_bruck *k, struct copies *c)
{
	uint32_t n = before_wrap(b, b->me, k->count[0]);

	copy(c, SWC_BUF_SEND, b->me, SWC_BUF_SCRATCH, 0, n, 0);
	copy(c, SWC_BUF_SEND, 0, SWC_BUF_SCRATCH, n, k->count[0] - n, 0);
}

/* Straight from SEND, where the shards of the peer and of those after it are. */
static void exchange_first(struct swc_builder *b, const struct swc_bruck *k)
{
	for (uint32_t v = 1; v < k->radix; v++) {
		uint32_t to = (b->me + v * k->weight) % b->n;
		uint32_t n = before_wrap(b, to, k->count[v]);

		swc_build_send_stored(b, to, SWC_BUF_SEND, to, n);
		swc_build_send_stored(b, to, SWC_BUF_SEND, 0, k->count[v] - n);
	}
	for (uint32_t v = 1; v < k->radix; v++) {
		uint32_t from = (b->me + b->n - v * k->weight % b->n) % b->n;
		uint32_t n = before_wrap(b, b->me, k->count[v]);

		swc_build_recv(b, from, SWC_BUF_SCRATCH, k->base[v], n, 0);
		swc_build_recv(b, from, SWC_BUF_SCRATCH, k->base[v] + n, k->count[v] - n, 0);
	}
}

static void exchange(struct swc_builder *b, const struct swc_bruck *k)
{
	for (uint32_t v = 1; v < k->radix; v++)
		swc_build_send_stored(b, (b->me + v * k->weight) % b->n, SWC_BUF_RECV, k->base[v],
				      k->count[v]);
	for (uint32_t v = 1; v < k->radix; v++)
		swc_build_recv(b, (b->me + b->n - v * k->weight % b->n) % b->n, SWC_BUF_SCRATCH,
			       k->base[v], k->count[v], 0);
}

static void build_steps(struct swc_builder *b, struct swc_bruck *k)
{
	struct copies c = { 0 };

	do {
		if (k->first)
			keep_own(b, k, &c);
		else
			swc_bruck_pack(k, pack, &c);
		write_copies(b, &c);
		swc_build_step(b, SWC_STEP_NET);
		if (k->first)
			exchange_first(b, k);
		else
			exchange(b, k);
	} while (swc_bruck_next(k) && !b->error);
	for (uint32_t i = 0; i < b->n && !b->error; i++)
		copy(&c, SWC_BUF_SCRATCH, i, SWC_BUF_RECV, (b->me + b->n - k->distance[i]) % b->n,
		     1, SWC_XFER_FINAL);
	write_copies(b, &c);
	free(c.at);
}

int swc_bruck_build(struct swc_builder *b)
{
	uint32_t radix = b->args->param == SWC_PARAM_DEFAULT ? SWC_BRUCK_RADIX
							     : (uint32_t)b->args->param;
	uint64_t least = 2 * sizeof(struct swc_plan_xfer);
	struct swc_bruck k;

	if (radix < 2)
		return swc_build_refuse(b, "the radix is 2 to %u", SWC_BRUCK_MAX_RADIX);
	if (b->n * least > SWC_MAX_PLAN_BYTES)
		return swc_build_refuse(b, "the plan would have more than %u bytes",
					SWC_MAX_PLAN_BYTES);
	if (swc_bruck_open(&k, b->n, radix))
		b->error = -ENOMEM;
	swc_build_blocks(b, 1);
	swc_build_scratch(b, 0, b->n);
	swc_build_channel(b, 0, b->n);
	if (!b->error)
		build_steps(b, &k);
	swc_bruck_close(&k);
	return 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * GATHER and SCATTER.
 *
 * Along a tree, a message carries the shards of a member and of all below it. The members below one
 * are a box of coordinates, so on one port a message is one range of shards for each row of the box,
 * two where it wraps around. On several ports each shard is a range of its own, because a port moves
 * a part of each.
 *
 * Shards of others wait in SCRATCH, in the order of the member's box, so that it has no more than
 * those. In uneven plans they are where they are in the vector, because shards may have other sizes
 * than those whose place they would take. A member whose own shard is part of a range has that in
 * SCRATCH, too, and copies it: one copy of a shard is less than two more messages.
 *
 * The linear plan has no tree: the root exchanges with the others in turn, with a few at a time, so that
 * several messages are in flight, but never more into one member.
 */
#include "plan/algo/gather.h"

#define PEERS 4

static bool up(const struct swc_builder *b)
{
	return b->args->coll == SWC_GATHER;
}

/* The user's buffer that has whole vectors on the root, or the member's own shard elsewhere. */
static enum swc_buf user_buf(const struct swc_builder *b, bool root)
{
	return up(b) == root ? SWC_BUF_RECV : SWC_BUF_SEND;
}

static uint32_t size_of(const struct swc_box *box)
{
	uint32_t n = 1;

	for (uint32_t i = 0; i < box->ndims; i++)
		n *= box->len[i];
	return n;
}

/* The place of a member among those of the box. */
static uint32_t place_in(const struct swc_box *box, uint32_t member)
{
	uint32_t at = 0, weight = 1;

	for (uint32_t i = box->ndims; i-- > 0; member /= box->d[i]) {
		at += (member % box->d[i] + box->d[i] - box->start[i]) % box->d[i] * weight;
		weight *= box->len[i];
	}
	return at;
}

/* Does each port move its part of each shard by itself? */
static bool split(const struct swc_gather *g)
{
	return g->ports > 1;
}

/* Is the member's own shard in SCRATCH with the others? */
static bool own_in_scratch(const struct swc_gather *g)
{
	return !g->root && !split(g) && size_of(&g->mine) > 1;
}

/* Where the block of a member's shard is on this member, and of the @n - 1 members that follow. */
static enum swc_buf place(struct swc_builder *b, const struct swc_gather *g, uint32_t member,
			  uint32_t n, uint32_t *block)
{
	uint32_t at = member;

	*block = member * g->ports + g->port;
	if (g->root || (member == b->me && !own_in_scratch(g)))
		return user_buf(b, g->root);
	if (!b->args->uneven) {
		at = place_in(&g->mine, member);
		if (split(g) && at > place_in(&g->mine, b->me))
			at--;
	}
	*block = at * g->ports + g->port;
	swc_build_scratch(b, *block, n);
	return SWC_BUF_SCRATCH;
}

/* Append the transfer of the shards of @n consecutive members. */
static void transfer(struct swc_builder *b, const struct swc_gather *g, bool recv, uint32_t peer,
		     uint32_t member, uint32_t n)
{
	uint32_t block;
	enum swc_buf buf = place(b, g, member, n, &block);

	if (recv)
		swc_build_recv(b, peer, buf, block, n, buf == SWC_BUF_RECV ? SWC_XFER_FINAL : 0);
	else
		swc_build_send_stored(b, peer, buf, block, n);
}

/* Append the message of the shards of a box. Both ends cut it alike. */
static void message(struct swc_builder *b, const struct swc_gather *g, bool recv, uint32_t peer,
		    const struct swc_box *box)
{
	uint32_t last = box->ndims - 1, d = box->d[last], start = box->start[last];
	uint32_t len = box->len[last], rows = size_of(box) / len;
	uint32_t whole = start + len < d ? len : d - start;

	for (uint32_t row = 0; row < rows && !b->error; row++) {
		uint32_t first = 0, weight = d;

		for (uint32_t i = last, rest = row; i-- > 0; rest /= box->len[i]) {
			first += (box->start[i] + rest % box->len[i]) % box->d[i] * weight;
			weight *= box->d[i];
		}
		for (uint32_t k = 0; split(g) && k < len && !b->error; k++)
			transfer(b, g, recv, peer, first + (start + k) % d, 1);
		if (split(g))
			continue;
		transfer(b, g, recv, peer, first + start, whole);
		if (whole < len)
			transfer(b, g, recv, peer, first, len - whole);
	}
}

/* Copy the member's own shard between its place in the tree and the user's buffer. */
static void copy_own(struct swc_builder *b, const struct swc_gather *g)
{
	uint32_t own = b->me * g->ports + g->port, block;
	enum swc_buf buf = place(b, g, b->me, 1, &block);

	swc_build_step(b, SWC_STEP_LOCAL);
	swc_build_send(b, b->me, up(b) ? SWC_BUF_SEND : buf, up(b) ? own : block, 1);
	swc_build_recv(b, b->me, up(b) ? buf : SWC_BUF_RECV, up(b) ? block : own, 1,
		       up(b) && buf == SWC_BUF_SCRATCH ? 0 : SWC_XFER_FINAL);
}

void swc_gather_channel(struct swc_builder *b, const struct swc_gather *g)
{
	bool copies = g->root || own_in_scratch(g);

	swc_build_channel(b, g->port, (b->n - 1) * g->ports + 1);
	if (up(b)) {
		if (!g->root && copies)
			copy_own(b, g);
		swc_build_step(b, SWC_STEP_NET);
		/* The last to be served on the way down are the first to have all. */
		for (uint32_t i = g->nchildren; i-- > 0;)
			message(b, g, true, g->child[i], &g->below[i]);
		swc_build_step(b, SWC_STEP_NET);
		if (!g->root)
			message(b, g, false, g->parent, &g->mine);
	} else {
		swc_build_step(b, SWC_STEP_NET);
		if (!g->root)
			message(b, g, true, g->parent, &g->mine);
		for (uint32_t i = 0; i < g->nchildren; i++) {
			swc_build_step(b, SWC_STEP_NET);
			message(b, g, false, g->child[i], &g->below[i]);
		}
		if (!g->root && copies)
			copy_own(b, g);
	}
	if (g->root)
		copy_own(b, g);
}

int swc_linear_build(struct swc_builder *b)
{
	enum swc_buf buf = user_buf(b, b->me == b->root);
	const struct swc_gather g = { .ports = 1, .root = true };

	swc_build_blocks(b, 1);
	swc_build_channel(b, 0, b->n);
	for (uint32_t i = 1; i < b->n && !b->error; i++) {
		uint32_t at = (b->root + i) % b->n, peer = b->me == b->root ? at : b->root;

		if (b->me != b->root && b->me != at)
			continue;
		if (b->me != b->root || i % PEERS == 1)
			swc_build_step(b, SWC_STEP_NET);
		if (up(b) == (b->me == b->root))
			swc_build_recv(b, peer, buf, at, 1, SWC_XFER_FINAL);
		else
			swc_build_send_stored(b, peer, buf, at, 1);
	}
	if (b->me == b->root)
		copy_own(b, &g);
	return 0;
}

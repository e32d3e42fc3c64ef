// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Building plans: the appending of channels, steps and transfers to growing tables, and the view of a shard that
 * an algorithm has which runs between nodes. No locks; everything belongs to the caller.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "algo/builder.h"
#include "plan_check.h"

int swc_build_refuse(struct swc_builder *b, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (b->why_bytes)
		vsnprintf(b->why, b->why_bytes, fmt, args);
	va_end(args);
	return -EOPNOTSUPP;
}

uint32_t swc_build_ports(const struct swc_builder *b)
{
	uint32_t all = b->topo->kind == SWC_TOPO_SWITCH ? 1 : 2 * b->topo->ndims;

	return b->args->ports && b->args->ports < all ? b->args->ports : all;
}

/* ---- members of a hierarchy and their shards ---- */

static uint32_t owner(const struct swc_hierarchy *h, uint32_t node)
{
	return swc_topo_first(h->topo, node) + h->shard % swc_topo_local(h->topo, node);
}

static uint32_t all_shards(struct swc_hierarchy *h, uint32_t nblocks)
{
	h->shard_blocks = nblocks;
	return nblocks * h->shards;
}

/* What the algorithm takes for the contribution is the node's sum, which lies in RECV. */
static void to_shard(const struct swc_hierarchy *h, uint32_t *first, uint8_t *buf)
{
	if (first)
		*first += h->shard * h->shard_blocks;
	if (*buf == SWC_BUF_SEND)
		*buf = SWC_BUF_RECV;
}

/* ---- appending ---- */

/* Room for one more element in a table; false (and an error that sticks) if there is no memory. */
static bool grow(struct swc_builder *b, void *table, uint32_t used, uint32_t *room, size_t size)
{
	void **t = table, *p;
	uint32_t want;

	if (b->error)
		return false;
	if (used < *room)
		return true;
	want = *room ? *room * 2 : 16;
	p = reallocarray(*t, want, size);
	if (!p) {
		b->error = -ENOMEM;
		return false;
	}
	*t = p;
	*room = want;
	return true;
}

void swc_build_blocks(struct swc_builder *b, uint32_t part_blocks)
{
	struct swc_plan_header *h = &b->hdr;
	uint64_t nblocks;

	if (b->hier)
		part_blocks = all_shards(b->hier, part_blocks);
	h->nparts = swc_coll_nparts(h->coll, h->nranks);
	h->part_blocks = part_blocks;
	nblocks = (uint64_t)h->nparts * part_blocks;
	if (nblocks > SWC_PLAN_MAX_BLOCKS) {
		if (!b->error)
			b->error = swc_build_refuse(
				b, "%llu blocks: plans have %u at most; use fewer ports",
				(unsigned long long)nblocks, SWC_PLAN_MAX_BLOCKS);
		return;
	}
	for (int buf = SWC_BUF_SEND; buf <= SWC_BUF_RECV; buf++)
		h->window[buf] = swc_plan_window_of(h->coll, buf, h->rank, h->root, part_blocks,
						    (uint32_t)nblocks);
}

void swc_build_scratch(struct swc_builder *b, uint32_t first, uint32_t nblocks)
{
	struct swc_plan_window *w = &b->hdr.window[SWC_BUF_SCRATCH];
	uint8_t buf = SWC_BUF_SCRATCH;
	uint32_t end;

	if (!nblocks || (b->hier && b->hier->muted))
		return;
	if (b->hier)
		to_shard(b->hier, &first, &buf);
	if (!w->nblocks)
		w->first_block = first;
	end = w->first_block + w->nblocks;
	if (first + nblocks > end)
		end = first + nblocks;
	if (first < w->first_block)
		w->first_block = first;
	w->nblocks = end - w->first_block;
}

/* Take the last step back if it came to nothing. */
static void drop_empty_step(struct swc_builder *b)
{
	struct swc_plan_step *s;

	if (b->error || !b->hdr.nchannels || !b->chan[b->hdr.nchannels - 1].nsteps)
		return;
	s = &b->step[b->hdr.nsteps - 1];
	if (s->kind == SWC_STEP_SYNC || s->nsend || s->nrecv)
		return;
	b->hdr.nsteps--;
	b->chan[b->hdr.nchannels - 1].nsteps--;
}

void swc_build_channel(struct swc_builder *b, uint32_t first, uint32_t nblocks)
{
	if (b->hier)
		b->hier->close_channel(b);
	drop_empty_step(b);
	if (b->hdr.nchannels == SWC_MAX_CHANNELS && !b->error)
		b->error = swc_build_refuse(b, "needs more than %u channels: use fewer ports",
					    SWC_MAX_CHANNELS);
	if (!grow(b, &b->chan, b->hdr.nchannels, &b->chan_room, sizeof(*b->chan)))
		return;
	b->chan[b->hdr.nchannels++] = (struct swc_plan_channel){ .first_step = b->hdr.nsteps };
	if (b->hier)
		b->hier->open_channel(b, first, nblocks);
}

void swc_build_step(struct swc_builder *b, enum swc_step_kind kind)
{
	drop_empty_step(b);
	if (!grow(b, &b->step, b->hdr.nsteps, &b->step_room, sizeof(*b->step)))
		return;
	b->step[b->hdr.nsteps++] = (struct swc_plan_step){
		.kind = (uint8_t)kind,
		.first_xfer = b->hdr.nxfers,
	};
	b->chan[b->hdr.nchannels - 1].nsteps++;
}

/* Which way a message of the open channel takes; the same at both of its ends. */
static uint8_t path_of(const struct swc_builder *b, uint32_t from, uint32_t to)
{
	const struct swc_topo *t = b->places;

	if (!t)
		return 0;
	return (uint8_t)swc_topo_path(t, b->hdr.nchannels - 1u, swc_topo_node_of(t, from),
				      swc_topo_node_of(t, to));
}

/* Append to the open step. Empty ranges are left out; only the messages of a barrier are empty. */
static void append(struct swc_builder *b, bool recv, struct swc_plan_xfer x)
{
	struct swc_plan_step *s;
	uint16_t *count;

	if ((!x.nblocks && b->hdr.coll != SWC_BARRIER) || (b->hier && b->hier->muted))
		return;
	if (!grow(b, &b->xfer, b->hdr.nxfers, &b->xfer_room, sizeof(*b->xfer)))
		return;
	if (b->hier) {
		x.rank = owner(b->hier, x.rank);
		if (x.flags & SWC_XFER_REDUCE)
			to_shard(b->hier, NULL, &x.operand);
		to_shard(b->hier, &x.first_block, &x.buf);
	}
	s = &b->step[b->hdr.nsteps - 1];
	if (s->kind == SWC_STEP_NET)
		x.path = recv ? path_of(b, x.rank, b->args->rank)
			      : path_of(b, b->args->rank, x.rank);
	count = recv ? &s->nrecv : &s->nsend;
	if (*count == SWC_MAX_RANKS) {
		b->error = swc_build_refuse(b, "a step would need more than %u messages",
					    SWC_MAX_RANKS);
		return;
	}
	b->xfer[b->hdr.nxfers++] = x;
	++*count;
}

void swc_build_send(struct swc_builder *b, uint32_t member, enum swc_buf buf, uint32_t first,
		    uint32_t nblocks)
{
	append(b, false,
	       (struct swc_plan_xfer){ .rank = member,
				       .first_block = first,
				       .nblocks = nblocks,
				       .buf = (uint8_t)buf });
}

void swc_build_send_stored(struct swc_builder *b, uint32_t member, enum swc_buf buf, uint32_t first,
			   uint32_t nblocks)
{
	append(b, false,
	       (struct swc_plan_xfer){ .rank = member,
				       .first_block = first,
				       .nblocks = nblocks,
				       .buf = (uint8_t)buf,
				       .flags = SWC_XFER_STORED });
}

void swc_build_recv(struct swc_builder *b, uint32_t member, enum swc_buf buf, uint32_t first,
		    uint32_t nblocks, uint32_t flags)
{
	append(b, true,
	       (struct swc_plan_xfer){ .rank = member,
				       .first_block = first,
				       .nblocks = nblocks,
				       .buf = (uint8_t)buf,
				       .flags = (uint8_t)flags });
}

void swc_build_recv_reduce(struct swc_builder *b, uint32_t member, enum swc_buf buf,
			   enum swc_buf operand, uint32_t first, uint32_t nblocks, uint32_t flags)
{
	append(b, true,
	       (struct swc_plan_xfer){ .rank = member,
				       .first_block = first,
				       .nblocks = nblocks,
				       .buf = (uint8_t)buf,
				       .operand = (uint8_t)operand,
				       .flags = (uint8_t)(flags | SWC_XFER_REDUCE) });
}

void swc_build_end(struct swc_builder *b)
{
	drop_empty_step(b);
}

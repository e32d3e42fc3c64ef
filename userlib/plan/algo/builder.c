// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Building plans: append channels, steps and transfers to growing tables, and translate members and
 * blocks for algorithms that run between nodes. No locks; everything belongs to the caller.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan/algo/builder.h"
#include "kmod/core/plan_check.h"

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

/* The algorithm's contribution is the node's sum, which is in RECV. */
static void to_shard(const struct swc_hierarchy *h, uint32_t *first, uint8_t *buf)
{
	if (first)
		*first += h->shard * h->shard_blocks;
	if (*buf == SWC_BUF_SEND)
		*buf = SWC_BUF_RECV;
}

/* ---- rails ---- */

static uint32_t all_parts(struct swc_rails *r, uint32_t shard_blocks)
{
	r->shard_blocks = shard_blocks;
	return shard_blocks <= SWC_PLAN_MAX_BLOCKS ? shard_blocks * r->n : shard_blocks;
}

/* Where a block of the part is in the plan. *n: blocks from there on, less if they do not follow it. */
static uint32_t to_part(const struct swc_rails *r, uint32_t first, uint32_t *n)
{
	uint32_t shard = first / r->shard_blocks, at = first % r->shard_blocks;

	*n = *n < r->shard_blocks - at ? *n : r->shard_blocks - at;
	return (shard * r->n + r->part) * r->shard_blocks + at;
}

/* ---- appending ---- */

/*
 * Make room for whatever comes next; false if there was an error before, there is no memory, or the
 * plan is too large already: then memory for the rest is saved.
 */
static bool reserve(struct swc_builder *b)
{
	if (b->error)
		return false;
	if (swc_plan_write_bytes(&b->w) > SWC_MAX_PLAN_BYTES)
		b->error = swc_build_refuse(b, "the plan would have more than %u bytes",
					    SWC_MAX_PLAN_BYTES);
	else if (!swc_plan_tables_reserve(&b->w))
		b->error = -ENOMEM;
	return !b->error;
}

void swc_build_blocks(struct swc_builder *b, uint32_t shard_blocks)
{
	uint64_t nblocks;

	if (b->hier)
		shard_blocks = all_shards(b->hier, shard_blocks);
	if (b->rails.n)
		shard_blocks = all_parts(&b->rails, shard_blocks);
	nblocks = swc_plan_write_blocks(&b->w, shard_blocks);
	if (nblocks > SWC_PLAN_MAX_BLOCKS && !b->error)
		b->error = swc_build_refuse(b,
					    "%llu blocks: plans have at most %u: use fewer ports",
					    (unsigned long long)nblocks, SWC_PLAN_MAX_BLOCKS);
}

static void add_scratch(struct swc_builder *b, uint32_t first, uint32_t nblocks)
{
	struct swc_plan_window *w = &b->w.hdr.window[SWC_BUF_SCRATCH];
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

void swc_build_scratch(struct swc_builder *b, uint32_t first, uint32_t nblocks)
{
	uint32_t n;

	for (; b->rails.n && nblocks; first += n, nblocks -= n) {
		n = nblocks;
		add_scratch(b, to_part(&b->rails, first, &n), n);
	}
	add_scratch(b, first, nblocks);
}

void swc_build_channel(struct swc_builder *b, uint32_t first, uint32_t nblocks)
{
	if (b->hier)
		b->hier->close_channel(b);
	swc_plan_write_drop_empty(&b->w);
	if (b->w.hdr.nchannels == SWC_MAX_CHANNELS && !b->error)
		b->error = swc_build_refuse(b, "needs more than %u channels: use fewer ports",
					    SWC_MAX_CHANNELS);
	if (!reserve(b))
		return;
	swc_plan_write_channel(&b->w);
	if (b->hier)
		b->hier->open_channel(b, first, nblocks);
}

void swc_build_step(struct swc_builder *b, enum swc_step_kind kind)
{
	swc_plan_write_drop_empty(&b->w);
	if (reserve(b))
		swc_plan_write_step(&b->w, (uint8_t)kind);
}

static uint32_t find_path(const struct swc_builder *b, uint32_t chan, uint32_t from, uint32_t to)
{
	const struct swc_topo *t = b->places;
	uint32_t from_node = swc_topo_node_of(t, from), to_node = swc_topo_node_of(t, to);

	if (t->kind != SWC_TOPO_SWITCH)
		return (b->back ? swc_topo_path_back : swc_topo_path)(t, chan, from_node, to_node);
	if (from_node == to_node)
		return 0;
	/* If it is not known how many rails there are, channels take one each. */
	return t->rails ? swc_topo_rail(t, b->rails.part, from, to) : chan;
}

/* The path of a message of the open channel, the same at both ends. Mostly it is asked for again. */
static uint8_t path_of(struct swc_builder *b, uint32_t from, uint32_t to)
{
	struct swc_last_path *last = &b->last[swc_topo_pair(from, to)];
	uint32_t channels = b->w.hdr.nchannels;

	if (!b->places)
		return 0;
	if (last->channels == channels && last->from == from && last->to == to &&
	    last->back == b->back)
		return last->path;
	last->channels = channels;
	last->from = from;
	last->to = to;
	last->back = b->back;
	last->path = (uint8_t)find_path(b, channels - 1, from, to);
	return last->path;
}

/* Empty ranges are skipped; only the messages of a barrier are empty. */
static void append_range(struct swc_builder *b, bool recv, struct swc_plan_xfer x)
{
	struct swc_plan_step *s;

	if ((!x.nblocks && b->w.hdr.coll != SWC_BARRIER) || (b->hier && b->hier->muted))
		return;
	if (!reserve(b))
		return;
	if (b->hier) {
		x.rank = owner(b->hier, x.rank);
		if (x.flags & SWC_XFER_REDUCE)
			to_shard(b->hier, NULL, &x.operand);
		to_shard(b->hier, &x.first_block, &x.buf);
	}
	s = swc_plan_write_open_step(&b->w);
	if (s->kind == SWC_STEP_NET)
		x.path = recv ? path_of(b, x.rank, b->args->rank)
			      : path_of(b, b->args->rank, x.rank);
	if ((recv ? s->nrecv : s->nsend) == SWC_MAX_MESSAGES) {
		b->error = swc_build_refuse(
			b, "a step would need more than %u messages: choose another algorithm",
			SWC_MAX_MESSAGES);
		return;
	}
	if (recv)
		swc_plan_write_recv(&b->w, &x);
	else
		swc_plan_write_send(&b->w, &x);
}

/* Append to the open step. */
static void append(struct swc_builder *b, bool recv, struct swc_plan_xfer x)
{
	uint32_t first = x.first_block, left = x.nblocks;

	for (; b->rails.n && left && !b->error; first += x.nblocks, left -= x.nblocks) {
		x.nblocks = left;
		x.first_block = to_part(&b->rails, first, &x.nblocks);
		/* Several ranges of a local step would be added to one another, or copied to others. */
		if (x.nblocks < left && swc_plan_write_open_step(&b->w)->kind != SWC_STEP_NET) {
			b->error = swc_build_refuse(b, "no plan for several rails: use --ports 1");
			return;
		}
		append_range(b, recv, x);
	}
	x.first_block = first;
	x.nblocks = left;
	append_range(b, recv, x);
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

void swc_build_copies(struct swc_builder *b, const struct swc_copy *copy, uint32_t n)
{
	uint32_t now;

	for (uint32_t done = 0; done < n && !b->error; done += now) {
		now = n - done < SWC_MAX_COPIES ? n - done : SWC_MAX_COPIES;
		swc_build_step(b, SWC_STEP_COPY);
		for (const struct swc_copy *c = copy + done; c < copy + done + now; c++)
			swc_build_send(b, b->me, (enum swc_buf)c->from_buf, c->from, c->n);
		for (const struct swc_copy *c = copy + done; c < copy + done + now; c++)
			swc_build_recv(b, b->me, (enum swc_buf)c->to_buf, c->to, c->n, c->flags);
	}
}

void swc_build_end(struct swc_builder *b)
{
	swc_plan_write_drop_empty(&b->w);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One rank's part of a schedule, as a plan. Both ends of a message go through the flows in the same
 * order, so the n-th send of one is the n-th receive of the other.
 *
 * Sums are kept in RECV where a rank has one for these blocks, else in kernel memory. Blocks that are
 * on their way down are complete: they carry the mark where they come from the root of an allgather
 * or a broadcast, and those of a sum where the root has received the last part of it.
 *
 * Where nodes have several ranks, each of them (of as many as the smallest node has) takes part for a
 * part of the vector, which it first sums over its node into RECV, and writes to all ranks of the node
 * in the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/forest/schedule.h"
#include "plan/hash.h"
#include "plan/text.h"

/**
 * struct place - where a rank is in the trees of a flow
 * @up_at: steps after a segment begins until this rank sends it up
 * @down_at: until it sends it down
 * @up_child, @down_child: children, as indexes into struct writer
 */
struct place {
	uint32_t up_at, down_at;
	uint32_t up_child, nup, down_child, ndown;
};

/**
 * struct writer - a rank's plan
 * @rank: of the trees: a node where nodes have several ranks
 * @several: do nodes have several ranks?
 * @local: then, the rank's number on its node
 */
struct writer {
	const struct swc_schedule *s;
	uint32_t rank;
	bool several;
	uint32_t local;
	struct swc_plan_writer *w;
	struct place *place;
	uint32_t *child;
	bool failed;
};

static uint32_t depth_in(const struct swc_tree *t, uint32_t rank)
{
	uint32_t depth = 0;

	for (; rank != t->root; rank = t->parent[rank])
		depth++;
	return depth;
}

static uint32_t add_children(const struct swc_tree *t, uint32_t nranks, uint32_t rank, uint32_t *at)
{
	uint32_t n = 0;

	for (uint32_t v = 0; v < nranks; v++)
		if (t->parent[v] == rank && v != t->root)
			at[n++] = v;
	return n;
}

/* Children of a rank in one tree are at most nranks - 1, but in all of them hardly more than trees. */
static int find_places(struct writer *r)
{
	const struct swc_schedule *s = r->s;
	uint32_t n = 0, room = 2 * s->nflows + s->nranks;

	r->place = calloc(s->nflows + 1u, sizeof(*r->place));
	r->child = calloc(room, sizeof(*r->child));
	if (!r->place || !r->child)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nflows; i++) {
		const struct swc_flow_tree *f = &s->flow[i];
		struct place *p = &r->place[i];

		if (room - n < 2 * s->nranks) {
			uint32_t *more = reallocarray(r->child, room *= 2, sizeof(*more));

			if (!more)
				return -ENOMEM;
			r->child = more;
			i--;
			continue;
		}
		if (f->up) {
			p->up_at = f->up->depth - depth_in(f->up, r->rank);
			p->up_child = n;
			p->nup = add_children(f->up, s->nranks, r->rank, r->child + n);
			n += p->nup;
		}
		if (f->down) {
			p->down_at = (f->up ? f->up->depth : 0) + depth_in(f->down, r->rank);
			p->down_child = n;
			p->ndown = add_children(f->down, s->nranks, r->rank, r->child + n);
			n += p->ndown;
		}
	}
	return 0;
}

/* ---- transfers ---- */

/* Two links between two nodes, or those of a node to a switch, take turns. */
static uint8_t path_of(const struct writer *r, const struct swc_flow_tree *f, uint32_t piece,
		       uint32_t peer)
{
	const struct swc_topo *t = r->s->args.topo;

	if (!t)
		return 0;
	/* If it is not known how many there are, channels take one each. */
	if (t->kind == SWC_TOPO_SWITCH && !t->rails)
		return (uint8_t)(((uint64_t)(piece + 1) * r->s->parts - 1) / r->s->args.pieces *
					 r->s->groups +
				 f->group);
	if (t->kind == SWC_TOPO_SWITCH)
		return (uint8_t)((piece + (uint32_t)(f - r->s->flow) + r->local) % t->rails);
	return (uint8_t)((piece + (uint32_t)(f - r->s->flow)) % swc_topo_npaths(t, r->rank, peer));
}

/* The rank on another node that takes part for the same part of the vector. */
static uint32_t rank_at(const struct writer *r, uint32_t peer)
{
	return r->several ? swc_topo_first(r->s->args.topo, peer) + r->local : peer;
}

/* Where what a rank contributes to the trees is. */
static enum swc_buf own_buf(const struct writer *r)
{
	return r->several ? SWC_BUF_RECV : SWC_BUF_SEND;
}

static struct swc_plan_xfer xfer_of(const struct writer *r, const struct swc_flow_tree *f,
				    uint32_t piece, uint32_t peer, enum swc_buf buf)
{
	uint32_t first = r->local * r->s->shard_blocks + f->first;

	return (struct swc_plan_xfer){ .rank = rank_at(r, peer),
				       .first_block = first + piece * f->blocks,
				       .nblocks = f->blocks,
				       .buf = (uint8_t)buf,
				       .path = path_of(r, f, piece, peer) };
}

static void write_xfer(struct writer *r, bool recv, struct swc_plan_xfer x)
{
	if (r->failed || !swc_plan_tables_reserve(r->w)) {
		r->failed = true;
		return;
	}
	if (recv)
		swc_plan_write_recv(r->w, &x);
	else
		swc_plan_write_send(r->w, &x);
}

/* Where a rank's sums of this flow are. */
static enum swc_buf sums(const struct writer *r, const struct swc_flow_tree *f)
{
	bool own = r->s->args.coll == SWC_ALLREDUCE || f->up->root == r->rank;

	return own ? SWC_BUF_RECV : SWC_BUF_SCRATCH;
}

static bool is_source(const struct writer *r, const struct swc_flow_tree *f)
{
	return !f->up && f->down->root == r->rank;
}

/* Is one of the channel's segments there @at steps after it began? Then *piece is it. */
static bool piece_of(const struct swc_schedule *s, uint32_t chan, uint32_t step, uint32_t at,
		     uint32_t *piece)
{
	uint32_t part = chan / s->groups;
	uint32_t first = (uint32_t)((uint64_t)s->args.pieces * part / s->parts);
	uint32_t end = (uint32_t)((uint64_t)s->args.pieces * (part + 1) / s->parts);

	*piece = first + step - at;
	return step >= at && *piece < end;
}

static bool carries(const struct swc_schedule *s, const struct swc_flow_tree *f, uint32_t chan)
{
	return f->blocks && f->group == chan % s->groups;
}

static void write_sends(struct writer *r, uint32_t chan, uint32_t step)
{
	const struct swc_schedule *s = r->s;

	for (uint32_t i = 0; i < s->nflows; i++) {
		const struct swc_flow_tree *f = &s->flow[i];
		const struct place *p = &r->place[i];
		uint32_t piece;

		if (!carries(s, f, chan))
			continue;
		if (f->up && f->up->root != r->rank && piece_of(s, chan, step, p->up_at, &piece))
			write_xfer(r, false,
				   xfer_of(r, f, piece, f->up->parent[r->rank],
					   p->nup ? sums(r, f) : own_buf(r)));
		for (uint32_t k = 0; k < p->ndown && piece_of(s, chan, step, p->down_at, &piece);
		     k++) {
			struct swc_plan_xfer x = xfer_of(r, f, piece, r->child[p->down_child + k],
							 is_source(r, f) ? SWC_BUF_SEND
									 : SWC_BUF_RECV);

			x.flags = SWC_XFER_STORED;
			write_xfer(r, false, x);
		}
	}
}

static void write_recvs(struct writer *r, uint32_t chan, uint32_t step)
{
	const struct swc_schedule *s = r->s;

	for (uint32_t i = 0; i < s->nflows; i++) {
		const struct swc_flow_tree *f = &s->flow[i];
		const struct place *p = &r->place[i];
		struct swc_plan_xfer x;
		uint32_t piece;

		if (!carries(s, f, chan))
			continue;
		/* One step before this rank passes on what it gets. */
		for (uint32_t k = 0; k < p->nup && piece_of(s, chan, step + 1, p->up_at, &piece);
		     k++) {
			x = xfer_of(r, f, piece, r->child[p->up_child + k], sums(r, f));
			x.operand = (uint8_t)(k ? sums(r, f) : own_buf(r));
			x.flags = SWC_XFER_REDUCE;
			if (f->up->root == r->rank && k + 1 == p->nup)
				x.flags |= SWC_XFER_FINAL;
			write_xfer(r, true, x);
		}
		if (f->down && f->down->root != r->rank &&
		    piece_of(s, chan, step + 1, p->down_at, &piece)) {
			x = xfer_of(r, f, piece, f->down->parent[r->rank], SWC_BUF_RECV);
			if (!f->up && x.rank == f->down->root)
				x.flags = SWC_XFER_FINAL;
			write_xfer(r, true, x);
		}
	}
}

/* What a rank contributes to its own result, of this channel's segments. */
static void write_copy(struct writer *r, uint32_t chan)
{
	const struct swc_schedule *s = r->s;
	uint32_t first, end;

	piece_of(s, chan, 0, 0, &first);
	end = (uint32_t)((uint64_t)s->args.pieces * (chan / s->groups + 1) / s->parts);
	for (uint32_t i = 0; i < s->nflows; i++) {
		struct swc_plan_xfer x;

		if (!is_source(r, &s->flow[i]) || !carries(s, &s->flow[i], chan))
			continue;
		x = (struct swc_plan_xfer){ .rank = r->rank,
					    .first_block = s->flow[i].first +
							   first * s->flow[i].blocks,
					    .nblocks = (end - first) * s->flow[i].blocks,
					    .buf = SWC_BUF_SEND };
		if (!swc_plan_tables_reserve(r->w)) {
			r->failed = true;
			return;
		}
		swc_plan_write_step(r->w, SWC_STEP_LOCAL);
		write_xfer(r, false, x);
		x.buf = SWC_BUF_RECV;
		x.flags = SWC_XFER_FINAL;
		write_xfer(r, true, x);
	}
}

/* ---- nodes with several ranks ---- */

/* A channel's segments of a flow, from or to all ranks of the node. */
static void write_node_step(struct writer *r, const struct swc_flow_tree *f, uint32_t first,
			    uint32_t end, bool sum)
{
	const struct swc_topo *t = r->s->args.topo;
	uint32_t base = swc_topo_first(t, r->rank), n = swc_topo_local(t, r->rank);
	struct swc_plan_xfer x = { .rank = base + r->local,
				   .first_block = r->local * r->s->shard_blocks + f->first +
						  first * f->blocks,
				   .nblocks = (end - first) * f->blocks,
				   .buf = SWC_BUF_RECV };

	if (!swc_plan_tables_reserve(r->w)) {
		r->failed = true;
		return;
	}
	swc_plan_write_step(r->w, SWC_STEP_LOCAL);
	if (!sum)
		write_xfer(r, false, x);
	for (uint32_t i = 0; i < n; i++) {
		struct swc_plan_xfer y = x;

		y.rank = base + i;
		y.buf = sum ? SWC_BUF_SEND : SWC_BUF_RECV;
		if (sum || i != r->local)
			write_xfer(r, sum ? false : true, y);
	}
	if (sum)
		write_xfer(r, true, x);
}

/* Before the trees, sum over the node; behind them, write the result to its ranks. */
static void write_node(struct writer *r, uint32_t chan, bool sum)
{
	const struct swc_schedule *s = r->s;
	uint32_t first, end;

	piece_of(s, chan, 0, 0, &first);
	end = (uint32_t)((uint64_t)s->args.pieces * (chan / s->groups + 1) / s->parts);
	if (!sum && swc_topo_local(s->args.topo, r->rank) == 1)
		return;
	for (uint32_t i = 0; i < s->nflows; i++)
		if (carries(s, &s->flow[i], chan))
			write_node_step(r, &s->flow[i], first, end, sum);
}

/* A rank may not end before the others of its node have written to it. */
static void write_sync(struct writer *r)
{
	if (swc_plan_tables_reserve(r->w))
		swc_plan_write_step(r->w, SWC_STEP_SYNC);
	else
		r->failed = true;
}

static void set_scratch(struct writer *r)
{
	struct swc_plan_window *w = &r->w->hdr.window[SWC_BUF_SCRATCH];
	uint32_t first = UINT32_MAX, end = 0;

	for (uint32_t i = 0; i < r->s->nflows; i++) {
		const struct swc_flow_tree *f = &r->s->flow[i];
		uint32_t behind = f->first + f->blocks * r->s->args.pieces;

		if (!f->up || !f->blocks || !r->place[i].nup || sums(r, f) != SWC_BUF_SCRATCH)
			continue;
		first = f->first < first ? f->first : first;
		end = behind > end ? behind : end;
	}
	if (end)
		*w = (struct swc_plan_window){ first, end - first };
}

static void write_channel(struct writer *r, uint32_t chan)
{
	const struct swc_schedule *s = r->s;
	bool works = r->local < s->owners;

	if (!swc_plan_tables_reserve(r->w)) {
		r->failed = true;
		return;
	}
	swc_plan_write_channel(r->w);
	if (r->several && works)
		write_node(r, chan, true);
	for (uint32_t step = 0; works && step < s->steps && !r->failed; step++) {
		swc_plan_write_drop_empty(r->w);
		if (!swc_plan_tables_reserve(r->w)) {
			r->failed = true;
			break;
		}
		swc_plan_write_step(r->w, SWC_STEP_NET);
		write_sends(r, chan, step);
		write_recvs(r, chan, step);
	}
	swc_plan_write_drop_empty(r->w);
	write_copy(r, chan);
	if (r->several && works)
		write_node(r, chan, false);
	if (r->several)
		write_sync(r);
}

int swc_schedule_write(const struct swc_schedule *s, uint32_t rank, struct swc_plan_writer *w)
{
	const struct swc_topo *t = s->args.topo;
	struct writer r = { .s = s, .rank = rank, .w = w };
	int ret;

	if (t && t->nnodes != t->nranks) {
		r.several = true;
		r.rank = swc_topo_node_of(t, rank);
		r.local = rank - swc_topo_first(t, r.rank);
	}
	ret = find_places(&r);
	if (ret)
		goto out;
	swc_plan_write_blocks(w, s->shard_blocks * s->owners);
	set_scratch(&r);
	for (uint32_t chan = 0; chan < s->groups * s->parts && !r.failed && !ret; chan++) {
		write_channel(&r, chan);
		if (swc_plan_write_bytes(w) > SWC_MAX_PLAN_BYTES)
			ret = -EFBIG;
	}
	if (r.failed)
		ret = -ENOMEM;
out:
	free(r.place);
	free(r.child);
	return ret;
}

/* A hash of the schedule. */
static uint64_t family(const struct swc_schedule *s)
{
	uint64_t hash = SWC_HASH_START;

	hash = swc_hash_u32(hash, s->args.coll);
	hash = swc_hash_u32(hash, s->args.root);
	hash = swc_hash_u32(hash, s->args.pieces);
	hash = swc_hash_u32(hash, s->args.channels);
	hash = swc_hash_u32(hash, s->owners);
	for (uint32_t i = 0; i < s->nflows; i++) {
		const struct swc_tree *tree[] = { s->flow[i].up, s->flow[i].down };

		hash = swc_hash_u32(hash, s->flow[i].blocks);
		for (int k = 0; k < 2; k++)
			for (uint32_t v = 0; tree[k] && v < s->nranks; v++)
				hash = swc_hash_u32(hash, tree[k]->parent[v]);
	}
	return hash;
}

int swc_schedule_plan(const struct swc_schedule *s, uint32_t rank, void **plan, size_t *bytes,
		      char *why, size_t why_bytes)
{
	struct swc_plan_writer w = { 0 };
	int ret;

	swc_plan_write_begin(&w, (uint8_t)s->args.coll,
			     s->args.topo ? s->args.topo->nranks : s->nranks, rank, s->args.root);
	strcpy(w.hdr.name, "forest");
	w.hdr.family = family(s);
	ret = swc_schedule_write(s, rank, &w);
	if (!ret)
		ret = swc_plan_tables_pack(&w, plan, bytes);
	swc_plan_tables_free(&w);
	if (ret == -EFBIG)
		return swc_text_refuse(why, why_bytes,
				       "%u segments need a plan of more than %u bytes: take fewer",
				       s->args.pieces, SWC_MAX_PLAN_BYTES);
	return ret;
}

/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Writing a plan: header, channels, steps and transfers are appended to the caller's tables in the order of
 * the format, and packed into one piece of memory at the end. Nothing is allocated here, and nothing is
 * checked but the room in the tables: whether the plan makes sense is swc_plan_check()'s to say.
 *
 * The library's algorithms, its reader of plan files, KUnit and the selftests write plans with this.
 */
#ifndef SWC_CORE_PLAN_WRITE_H
#define SWC_CORE_PLAN_WRITE_H

#include "plan_check.h"

/**
 * struct swc_plan_writer - a plan being written
 * @hdr: the header; the caller may set any field but the counts
 * @channels, @steps, @xfers: the caller's tables. The caller may move them to larger memory between calls
 * @max_channels, @max_steps, @max_xfers: elements that they have room for
 * @full: something did not fit and was left out; stays set
 */
struct swc_plan_writer {
	struct swc_plan_header hdr;
	struct swc_plan_channel *channels;
	struct swc_plan_step *steps;
	struct swc_plan_xfer *xfers;
	u32 max_channels;
	u32 max_steps;
	u32 max_xfers;
	bool full;
};

/* Set the header of a plan without channels, blocks, name and family. The tables stay. */
static inline void swc_plan_write_begin(struct swc_plan_writer *w, u8 coll, u32 nranks, u32 rank,
					u32 root)
{
	struct swc_plan_header *h = &w->hdr;

	memset(h, 0, sizeof(*h));
	h->magic = SWC_PLAN_MAGIC;
	h->version = SWC_PLAN_VERSION;
	h->header_bytes = sizeof(*h);
	h->nranks = nranks;
	h->rank = rank;
	h->root = root;
	h->coll = coll;
	h->nshards = swc_coll_nshards(coll, nranks);
	w->full = false;
}

/*
 * Cut each shard into blocks, and set the windows of SEND and RECV to what the collective gives them.
 * Returns the blocks of the vector, which may be more than SWC_PLAN_MAX_BLOCKS: then no window is set.
 */
static inline u64 swc_plan_write_blocks(struct swc_plan_writer *w, u32 shard_blocks)
{
	struct swc_plan_header *h = &w->hdr;
	u64 nblocks = (u64)h->nshards * shard_blocks;
	int buf;

	h->shard_blocks = shard_blocks;
	if (nblocks > SWC_PLAN_MAX_BLOCKS)
		return nblocks;
	for (buf = SWC_BUF_SEND; buf <= SWC_BUF_RECV; buf++)
		h->window[buf] = swc_plan_window_of((enum swc_coll)h->coll, (enum swc_buf)buf, h->rank,
						    h->root, shard_blocks, (u32)nblocks);
	return nblocks;
}

/* Open the next channel. */
static inline void swc_plan_write_channel(struct swc_plan_writer *w)
{
	struct swc_plan_channel *c;

	if (w->hdr.nchannels >= w->max_channels) {
		w->full = true;
		return;
	}
	c = &w->channels[w->hdr.nchannels++];
	memset(c, 0, sizeof(*c));
	c->first_step = w->hdr.nsteps;
}

/* The open channel and the open step; NULL if there is none. */
static inline struct swc_plan_channel *swc_plan_write_open_channel(struct swc_plan_writer *w)
{
	return w->hdr.nchannels ? &w->channels[w->hdr.nchannels - 1] : NULL;
}

static inline struct swc_plan_step *swc_plan_write_open_step(struct swc_plan_writer *w)
{
	struct swc_plan_channel *c = swc_plan_write_open_channel(w);

	return c && c->nsteps ? &w->steps[w->hdr.nsteps - 1] : NULL;
}

/* Open the next step of the open channel. */
static inline void swc_plan_write_step(struct swc_plan_writer *w, u8 kind)
{
	struct swc_plan_channel *c = swc_plan_write_open_channel(w);
	struct swc_plan_step *s;

	if (!c || w->hdr.nsteps >= w->max_steps) {
		w->full = true;
		return;
	}
	s = &w->steps[w->hdr.nsteps++];
	memset(s, 0, sizeof(*s));
	s->kind = kind;
	s->first_xfer = w->hdr.nxfers;
	c->nsteps++;
}

/* Take back the open step if it is a network or local step without a transfer. */
static inline void swc_plan_write_drop_empty(struct swc_plan_writer *w)
{
	struct swc_plan_step *s = swc_plan_write_open_step(w);

	if (!s || s->kind == SWC_STEP_SYNC || s->nsend || s->nrecv)
		return;
	w->hdr.nsteps--;
	swc_plan_write_open_channel(w)->nsteps--;
}

static inline void swc_plan_write_xfer(struct swc_plan_writer *w, const struct swc_plan_xfer *x,
				       bool recv)
{
	struct swc_plan_step *s = swc_plan_write_open_step(w);

	if (!s || w->hdr.nxfers >= w->max_xfers || (recv ? s->nrecv : s->nsend) == 0xffff) {
		w->full = true;
		return;
	}
	w->xfers[w->hdr.nxfers++] = *x;
	if (recv)
		s->nrecv++;
	else
		s->nsend++;
}

/* Add a send (of a local step: a source) to the open step; all of them come before its receives. */
static inline void swc_plan_write_send(struct swc_plan_writer *w, const struct swc_plan_xfer *x)
{
	swc_plan_write_xfer(w, x, false);
}

/* Add a receive (of a local step: a destination) to the open step. */
static inline void swc_plan_write_recv(struct swc_plan_writer *w, const struct swc_plan_xfer *x)
{
	swc_plan_write_xfer(w, x, true);
}

/* Bytes of the packed plan. */
static inline size_t swc_plan_write_bytes(const struct swc_plan_writer *w)
{
	const struct swc_plan_header *h = &w->hdr;

	return sizeof(*h) + h->nchannels * sizeof(*w->channels) + h->nsteps * sizeof(*w->steps) +
	       h->nxfers * sizeof(*w->xfers);
}

/**
 * swc_plan_write_pack() - lay the plan out as the format has it
 * @w: the writer; its header gets the size
 * @out: memory for the plan
 * @bytes: size of that, at least swc_plan_write_bytes()
 *
 * Return: 0, -ENOSPC if a table was full or @out is too small, -EFBIG beyond SWC_MAX_PLAN_BYTES.
 */
static inline int swc_plan_write_pack(struct swc_plan_writer *w, void *out, size_t bytes)
{
	struct swc_plan_header *h = &w->hdr;
	size_t channels = h->nchannels * sizeof(*w->channels);
	size_t steps = h->nsteps * sizeof(*w->steps);
	size_t xfers = h->nxfers * sizeof(*w->xfers);
	size_t total = swc_plan_write_bytes(w);
	u8 *to = out;

	if (w->full || bytes < total)
		return -ENOSPC;
	if (total > SWC_MAX_PLAN_BYTES)
		return -EFBIG;
	h->total_bytes = (u32)total;
	memcpy(to, h, sizeof(*h));
	to += sizeof(*h);
	if (channels)
		memcpy(to, w->channels, channels);
	to += channels;
	if (steps)
		memcpy(to, w->steps, steps);
	to += steps;
	if (xfers)
		memcpy(to, w->xfers, xfers);
	return 0;
}

#endif /* SWC_CORE_PLAN_WRITE_H */

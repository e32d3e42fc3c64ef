// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * The plan verifier: the trust boundary between a plan from user space and the executor.
 *
 * Checks the header, then each channel with its steps, then each step with its transfers: what a later
 * check indexes has been bounded by an earlier one. A plan that passes cannot make the executor leave its
 * tables or this rank's buffers. Whether its result is right is not checked here.
 */
#include "plan_check.h"

/* Position of the verifier, for its message; -1: not reached. */
struct checker {
	struct swc_plan_view *v;
	char *why;
	size_t why_bytes;
	s64 channel, step, xfer;
};

static int refuse(struct checker *c, const char *what)
{
	if (!c->why_bytes)
		return -EINVAL;
	if (c->xfer >= 0)
		snprintf(c->why, c->why_bytes, "channel %lld, step %lld, transfer %lld: %s",
			 (long long)c->channel, (long long)c->step, (long long)c->xfer, what);
	else if (c->step >= 0)
		snprintf(c->why, c->why_bytes, "channel %lld, step %lld: %s",
			 (long long)c->channel, (long long)c->step, what);
	else if (c->channel >= 0)
		snprintf(c->why, c->why_bytes, "channel %lld: %s", (long long)c->channel, what);
	else
		snprintf(c->why, c->why_bytes, "header: %s", what);
	return -EINVAL;
}

static int check_windows(struct checker *c)
{
	const struct swc_plan_header *h = c->v->hdr;
	u32 buf;

	for (buf = 0; buf < SWC_BUF_NR; buf++) {
		const struct swc_plan_window *w = &h->window[buf];
		struct swc_plan_window own;

		if (w->nblocks > c->v->nblocks || w->first_block > c->v->nblocks - w->nblocks)
			return refuse(c, "a window is larger than the vector");
		if (buf == SWC_BUF_SCRATCH || !w->nblocks)
			continue;
		own = swc_plan_window_of(h->coll, buf, h->rank, h->root, h->shard_blocks,
					 c->v->nblocks);
		if (w->nblocks != own.nblocks || w->first_block != own.first_block)
			return refuse(c, "a window is not that of the collective's buffer");
	}
	return 0;
}

/* Printable: the name is shown in terminals and logs. */
static bool good_name(const char *name)
{
	u32 i, len = 0;

	while (len < SWC_NAME_BYTES && name[len] > ' ' && name[len] <= '~')
		len++;
	for (i = len; i < SWC_NAME_BYTES; i++)
		if (name[i])
			return false;
	return len && len < SWC_NAME_BYTES;
}

static int check_header(struct checker *c, const void *data, size_t bytes)
{
	const struct swc_plan_header *h = data;
	u64 want, nblocks;

	if (bytes < sizeof(*h))
		return refuse(c, "plan is shorter than its header");
	if (h->magic != SWC_PLAN_MAGIC)
		return refuse(c, "not a plan (wrong magic)");
	if (h->version != SWC_PLAN_VERSION || h->header_bytes != sizeof(*h))
		return refuse(c, "plan of another version");
	if (h->resv0 || h->resv1[0] || h->resv1[1])
		return refuse(c, "a reserved field is not zero");
	if (h->flags & ~SWC_PLAN_FLAGS_ALL)
		return refuse(c, "unknown flag");
	if (h->coll >= SWC_COLL_NR)
		return refuse(c, "unknown collective");
	if (!h->nranks || h->nranks > SWC_PLAN_MAX_RANKS || h->rank >= h->nranks)
		return refuse(c, "rank or number of ranks out of range");
	if (h->root >= h->nranks || (h->root && !swc_coll_has_root(h->coll)))
		return refuse(c, "root out of range");
	if (h->nshards != swc_coll_nshards(h->coll, h->nranks))
		return refuse(c, "wrong number of shards for the collective");
	nblocks = (u64)h->nshards * h->shard_blocks;
	if (!nblocks || nblocks > SWC_PLAN_MAX_BLOCKS)
		return refuse(c, "number of blocks out of range");
	if (!h->nchannels || h->nchannels > SWC_MAX_CHANNELS)
		return refuse(c, "number of channels out of range");
	if (!good_name(h->name))
		return refuse(c, "name is not printable, or not padded with zeros");

	/* 32-bit counts times small sizes: cannot overflow 64 bits. */
	want = sizeof(*h) + (u64)h->nchannels * sizeof(struct swc_plan_channel) +
	       (u64)h->nsteps * sizeof(struct swc_plan_step) +
	       (u64)h->nxfers * sizeof(struct swc_plan_xfer);
	if (want != bytes || h->total_bytes != bytes)
		return refuse(c, "size does not match the tables");

	c->v->hdr = h;
	c->v->channels = (const void *)(h + 1);
	c->v->steps = (const void *)(c->v->channels + h->nchannels);
	c->v->xfers = (const void *)(c->v->steps + h->nsteps);
	c->v->nblocks = (u32)nblocks;
	return check_windows(c);
}

static bool in_window(const struct swc_plan_view *v, u8 buf, const struct swc_plan_xfer *x)
{
	const struct swc_plan_window *w = &v->hdr->window[buf];

	return x->first_block >= w->first_block &&
	       x->first_block - w->first_block <= w->nblocks &&
	       x->nblocks <= w->nblocks - (x->first_block - w->first_block);
}

static int check_xfer(struct checker *c, const struct swc_plan_step *s, u32 i)
{
	const struct swc_plan_view *v = c->v;
	const struct swc_plan_xfer *x = &v->xfers[s->first_xfer + i];
	bool recv = i >= s->nsend, own = s->kind == SWC_STEP_NET || x->rank == v->hdr->rank;
	bool reduce = x->flags & SWC_XFER_REDUCE;
	/* The messages of a barrier are empty. */
	bool empty_ok = s->kind == SWC_STEP_NET && v->hdr->coll == SWC_BARRIER;

	c->xfer = i;
	if (x->flags & ~SWC_XFER_FLAGS_ALL)
		return refuse(c, "unknown flag set");
	if (x->rank >= v->hdr->nranks)
		return refuse(c, "rank out of range");
	if (x->buf >= SWC_BUF_NR || x->operand >= SWC_BUF_NR)
		return refuse(c, "unknown buffer");
	if ((!x->nblocks && !empty_ok) || x->nblocks > v->nblocks ||
	    x->first_block > v->nblocks - x->nblocks)
		return refuse(c, "blocks out of range");
	if (own && !in_window(v, x->buf, x))
		return refuse(c, "blocks outside the buffer's window");
	if (recv && x->buf == SWC_BUF_SEND)
		return refuse(c, "the send buffer cannot be written to");
	if (!recv && (x->flags & ~SWC_XFER_STORED))
		return refuse(c, "only what is received can be reduced or final");
	if (recv && (x->flags & SWC_XFER_STORED))
		return refuse(c, "the stored mark is for what is sent");
	if (!reduce && x->operand)
		return refuse(c, "an operand needs a reduction");

	if (s->kind == SWC_STEP_NET) {
		if (x->rank == v->hdr->rank)
			return refuse(c, "a rank cannot be its own peer");
		if (reduce && !swc_coll_reduces(v->hdr->coll))
			return refuse(c, "this collective does not reduce");
		if (reduce && !in_window(v, x->operand, x))
			return refuse(c, "operand outside the buffer's window");
	} else {
		if (x->path || (x->flags & SWC_XFER_STORED))
			return refuse(c, "a local step has neither a path nor a stored mark");
		if (reduce)
			return refuse(c, "a local step reduces its sources, not its destinations");
		if (x->flags && i != s->nsend && s->kind == SWC_STEP_LOCAL)
			return refuse(c, "only the first destination carries the final mark");
		if (s->kind == SWC_STEP_COPY && x->rank != v->hdr->rank)
			return refuse(c, "a copy step names another rank");
	}
	return 0;
}

/* Do the source and the destination of a copy fit together? Both have been checked by themselves. */
static int check_copy(struct checker *c, const struct swc_plan_step *s, u32 i)
{
	const struct swc_plan_xfer *src = &c->v->xfers[s->first_xfer + i], *dst = src + s->nsend;
	u32 apart = src->first_block > dst->first_block ? src->first_block - dst->first_block :
							  dst->first_block - src->first_block;

	c->xfer = s->nsend + i;
	if (src->nblocks != dst->nblocks)
		return refuse(c, "source and destination differ in blocks");
	if (src->buf == dst->buf && apart < src->nblocks)
		return refuse(c, "source and destination overlap");
	return 0;
}

static int check_step(struct checker *c, const struct swc_plan_step *s, u32 next_xfer)
{
	struct swc_plan_view *v = c->v;
	u32 i, n = (u32)s->nsend + s->nrecv;
	int ret;

	c->xfer = -1;
	if (s->resv[0] || s->resv[1] || s->resv[2])
		return refuse(c, "reserved field set");
	if (s->first_xfer != next_xfer || n > v->hdr->nxfers - next_xfer)
		return refuse(c, "transfers do not follow one another");

	switch (s->kind) {
	case SWC_STEP_NET:
		if (!n)
			return refuse(c, "a network step without transfers");
		break;
	case SWC_STEP_LOCAL:
		if (!s->nsend || !s->nrecv)
			return refuse(c, "a local step needs a source and a destination");
		if (s->nsend > SWC_MAX_FANIN || s->nrecv > SWC_MAX_FANIN)
			return refuse(c, "too many sources or destinations");
		if (s->nsend > 1 && !swc_coll_reduces(v->hdr->coll))
			return refuse(c, "this collective does not reduce");
		if (n > v->max_fan)
			v->max_fan = n;
		break;
	case SWC_STEP_SYNC:
		if (n)
			return refuse(c, "a barrier has no transfers");
		break;
	case SWC_STEP_COPY:
		if (!s->nsend || s->nsend != s->nrecv)
			return refuse(c, "a copy step needs a destination for each source");
		break;
	default:
		return refuse(c, "unknown kind of step");
	}

	if (s->kind == SWC_STEP_NET && s->nsend > v->max_sends)
		v->max_sends = s->nsend;
	if (s->kind == SWC_STEP_NET && s->nrecv > v->max_recvs)
		v->max_recvs = s->nrecv;
	for (i = 0; i < n; i++) {
		ret = check_xfer(c, s, i);
		if (ret)
			return ret;
	}
	for (i = 0; s->kind == SWC_STEP_COPY && i < s->nsend; i++) {
		ret = check_copy(c, s, i);
		if (ret)
			return ret;
	}
	return 0;
}

int swc_plan_check(const void *data, size_t bytes, struct swc_plan_view *view, char *why,
		   size_t why_bytes)
{
	struct checker c = { .v = view, .why = why, .why_bytes = why_bytes,
			     .channel = -1, .step = -1, .xfer = -1 };
	u32 ch, i, next_step = 0, next_xfer = 0;
	int ret;

	memset(view, 0, sizeof(*view));
	ret = check_header(&c, data, bytes);
	if (ret)
		return ret;

	/* A receive takes two sources and one destination. */
	view->max_fan = 3;
	for (ch = 0; ch < view->hdr->nchannels; ch++) {
		const struct swc_plan_channel *chan = &view->channels[ch];

		c.channel = ch;
		c.step = -1;
		c.xfer = -1;
		if (chan->first_step != next_step || chan->nsteps > view->hdr->nsteps - next_step)
			return refuse(&c, "steps do not follow one another");
		for (i = 0; i < chan->nsteps; i++) {
			const struct swc_plan_step *s = &view->steps[next_step + i];

			c.step = i;
			ret = check_step(&c, s, next_xfer);
			if (ret)
				return ret;
			next_xfer += (u32)s->nsend + s->nrecv;
		}
		next_step += chan->nsteps;
	}

	c.channel = -1;
	c.step = -1;
	c.xfer = -1;
	if (next_step != view->hdr->nsteps)
		return refuse(&c, "steps that belong to no channel");
	if (next_xfer != view->hdr->nxfers)
		return refuse(&c, "transfers that belong to no step");
	return 0;
}

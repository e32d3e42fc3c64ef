// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Building plans: the table of algorithms, and the appending of channels, steps and transfers to
 * growing tables, which are laid out as one plan in the end. No locks; everything belongs to the
 * caller.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "plan_check.h"

static const struct {
	const char *name;
	int (*build)(struct swc_builder *b);
	bool local; /* made of LOCAL and SYNC steps: all ranks on one node */
} algos[SWC_ALGO_NR] = {
	[SWC_ALGO_DIRECT1] = { "direct1", swc_direct1_build, true },
	[SWC_ALGO_DIRECT2] = { "direct2", swc_direct2_build, true },
	[SWC_ALGO_RING] = { "ring", swc_ring_build, false },
	[SWC_ALGO_RECDOUB] = { "recdoub", swc_recdoub_build, false },
};

const char *swc_algo_name(unsigned int algo)
{
	return algo < SWC_ALGO_NR ? algos[algo].name : NULL;
}

int swc_algo_parse(const char *name)
{
	for (int i = 0; i < SWC_ALGO_NR; i++)
		if (!strcmp(name, algos[i].name))
			return i;
	return -EINVAL;
}

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
	uint32_t nblocks;

	h->nparts = swc_coll_nparts(h->coll, h->nranks);
	h->part_blocks = part_blocks;
	nblocks = h->nparts * part_blocks;
	for (int buf = SWC_BUF_SEND; buf <= SWC_BUF_RECV; buf++)
		h->window[buf] = swc_plan_window_of(h->coll, buf, h->rank, h->root, part_blocks,
						    nblocks);
}

void swc_build_scratch(struct swc_builder *b, uint32_t first, uint32_t nblocks)
{
	b->hdr.window[SWC_BUF_SCRATCH].first_block = first;
	b->hdr.window[SWC_BUF_SCRATCH].nblocks = nblocks;
}

void swc_build_channel(struct swc_builder *b)
{
	if (!grow(b, &b->chan, b->hdr.nchannels, &b->chan_room, sizeof(*b->chan)))
		return;
	b->chan[b->hdr.nchannels++] = (struct swc_plan_channel){ .first_step = b->hdr.nsteps };
}

void swc_build_step(struct swc_builder *b, enum swc_step_kind kind)
{
	if (!grow(b, &b->step, b->hdr.nsteps, &b->step_room, sizeof(*b->step)))
		return;
	b->step[b->hdr.nsteps++] = (struct swc_plan_step){
		.kind = (uint8_t)kind,
		.first_xfer = b->hdr.nxfers,
	};
	b->chan[b->hdr.nchannels - 1].nsteps++;
}

/* Append to the open step. Empty ranges are not part of the format and are left out. */
static void append(struct swc_builder *b, bool recv, const struct swc_plan_xfer *x)
{
	struct swc_plan_step *s;

	if (!x->nblocks || !grow(b, &b->xfer, b->hdr.nxfers, &b->xfer_room, sizeof(*b->xfer)))
		return;
	b->xfer[b->hdr.nxfers++] = *x;
	s = &b->step[b->hdr.nsteps - 1];
	if (recv)
		s->nrecv++;
	else
		s->nsend++;
}

void swc_build_send(struct swc_builder *b, uint32_t rank, enum swc_buf buf, uint32_t first,
		    uint32_t nblocks)
{
	append(b, false,
	       &(struct swc_plan_xfer){ .rank = rank,
					.first_block = first,
					.nblocks = nblocks,
					.buf = (uint8_t)buf });
}

void swc_build_recv(struct swc_builder *b, uint32_t rank, enum swc_buf buf, uint32_t first,
		    uint32_t nblocks, uint32_t flags)
{
	append(b, true,
	       &(struct swc_plan_xfer){ .rank = rank,
					.first_block = first,
					.nblocks = nblocks,
					.buf = (uint8_t)buf,
					.flags = (uint8_t)flags });
}

void swc_build_recv_reduce(struct swc_builder *b, uint32_t rank, enum swc_buf buf,
			   enum swc_buf operand, uint32_t first, uint32_t nblocks, uint32_t flags)
{
	append(b, true,
	       &(struct swc_plan_xfer){ .rank = rank,
					.first_block = first,
					.nblocks = nblocks,
					.buf = (uint8_t)buf,
					.operand = (uint8_t)operand,
					.flags = (uint8_t)(flags | SWC_XFER_REDUCE) });
}

void swc_build_alone(struct swc_builder *b)
{
	swc_build_blocks(b, 1);
	swc_build_channel(b);
	if (b->hdr.coll == SWC_BARRIER) {
		swc_build_step(b, SWC_STEP_SYNC);
		return;
	}
	swc_build_step(b, SWC_STEP_LOCAL);
	swc_build_send(b, 0, SWC_BUF_SEND, 0, 1);
	swc_build_recv(b, 0, SWC_BUF_RECV, 0, 1, SWC_XFER_FINAL);
}

/* FNV-1a over 32-bit words, finished by a multiplicative mix. */
static uint64_t hash_words(const uint32_t *word, unsigned int n)
{
	uint64_t h = 0xcbf29ce484222325;

	for (unsigned int i = 0; i < n; i++)
		for (int shift = 0; shift < 32; shift += 8)
			h = (h ^ (word[i] >> shift & 0xff)) * 0x100000001b3;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93;
	return h ^ h >> 32;
}

/*
 * What all ranks of a family have in common. Not part of it: in_place, on which ranks may differ
 * (each algorithm exchanges the same messages and passes the same barriers either way).
 */
static uint64_t family(const struct swc_plan_args *a, const struct swc_plan_header *h)
{
	const uint32_t words[] = {
		SWC_PLAN_VERSION, a->coll,   a->algo,	     a->nranks,
		a->root,	  h->nparts, h->part_blocks, h->nchannels,
	};

	return hash_words(words, sizeof(words) / sizeof(words[0]));
}

static int finish(struct swc_builder *b, void **plan, size_t *bytes)
{
	struct swc_plan_header *h = &b->hdr;
	size_t chans = h->nchannels * sizeof(*b->chan), steps = h->nsteps * sizeof(*b->step);
	size_t xfers = h->nxfers * sizeof(*b->xfer), total = sizeof(*h) + chans + steps + xfers;
	char *p;

	if (total > SWC_MAX_PLAN_BYTES)
		return -EOPNOTSUPP;
	p = malloc(total);
	if (!p)
		return -ENOMEM;
	h->total_bytes = (uint32_t)total;
	h->family = family(b->args, h);
	memcpy(p, h, sizeof(*h));
	memcpy(p + sizeof(*h), b->chan, chans);
	memcpy(p + sizeof(*h) + chans, b->step, steps);
	if (xfers)
		memcpy(p + sizeof(*h) + chans + steps, b->xfer, xfers);
	*plan = p;
	*bytes = total;
	return 0;
}

int swc_plan_build(const struct swc_plan_args *a, void **plan, size_t *bytes)
{
	struct swc_builder b = { .args = a };
	int ret;

	if (a->coll >= SWC_COLL_NR || a->algo >= SWC_ALGO_NR || !a->nranks ||
	    a->nranks > SWC_MAX_RANKS || a->rank >= a->nranks || a->root >= a->nranks ||
	    (a->root && !swc_coll_has_root(a->coll)) || a->channels > SWC_MAX_CHANNELS)
		return -EINVAL;
	if (a->coll == SWC_ALLTOALL)
		return -EOPNOTSUPP;
	if (algos[a->algo].local && (a->nlocal != a->nranks || a->nranks > SWC_MAX_FANIN))
		return -EOPNOTSUPP;

	b.hdr = (struct swc_plan_header){
		.magic = SWC_PLAN_MAGIC,
		.version = SWC_PLAN_VERSION,
		.header_bytes = sizeof(struct swc_plan_header),
		.nranks = a->nranks,
		.rank = a->rank,
		.root = a->root,
		.coll = (uint8_t)a->coll,
	};
	strncpy(b.hdr.name, algos[a->algo].name, sizeof(b.hdr.name) - 1);
	ret = algos[a->algo].build(&b);
	if (!ret)
		ret = b.error;
	if (!ret)
		ret = finish(&b, plan, bytes);
	free(b.chan);
	free(b.step);
	free(b.xfer);
	return ret;
}

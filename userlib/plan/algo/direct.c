// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Direct algorithms: ranks of one node read and write each other's buffers, without forwarding.
 *
 * An operation starts when all ranks have called it, so the sources of a first LOCAL step are
 * valid. The SYNC behind it keeps every buffer valid until no rank accesses it. All ranks list
 * sources in rank order, so results are the same to the bit, and the same for both algorithms.
 */
#include <errno.h>

#include "plan/algo/builder.h"
#include "plan/algo/direct.h"

/* Every rank's SEND as sources, in rank order. */
static void all_sends(struct swc_builder *b, uint32_t first, uint32_t nblocks)
{
	for (uint32_t r = 0; r < b->w.hdr.nranks; r++)
		swc_build_send(b, r, SWC_BUF_SEND, first, nblocks);
}

/* Every rank's RECV as destinations. */
static void all_recvs(struct swc_builder *b, uint32_t first, uint32_t nblocks)
{
	for (uint32_t r = 0; r < b->w.hdr.nranks; r++)
		swc_build_recv(b, r, SWC_BUF_RECV, first, nblocks, r ? 0 : SWC_XFER_FINAL);
}

/* RECV of the ranks that get what rank @from has. */
static void recvs_from(struct swc_builder *b, uint32_t from, uint32_t first, uint32_t nblocks)
{
	uint32_t flags = SWC_XFER_FINAL;

	for (uint32_t r = 0; r < b->w.hdr.nranks; r++) {
		if (r == from && b->args->others_only)
			continue;
		swc_build_recv(b, r, SWC_BUF_RECV, first, nblocks, flags);
		flags = 0;
	}
}

static void copy(struct swc_builder *b, uint32_t from, uint32_t first, uint32_t nblocks)
{
	if (from == b->w.hdr.rank && b->args->others_only)
		return;
	swc_build_step(b, SWC_STEP_LOCAL);
	swc_build_send(b, from, SWC_BUF_SEND, first, nblocks);
	swc_build_recv(b, b->w.hdr.rank, SWC_BUF_RECV, first, nblocks, SWC_XFER_FINAL);
}

/*
 * One pass: each rank computes all of its own result. Every rank reads nranks vectors, so this is
 * for small ones.
 *
 * In place, ALLREDUCE and ALLTOALL must not overwrite a send buffer that others still read. They
 * collect the result in SCRATCH and copy it after the SYNC. In the other collectives no rank but
 * the writer reads, in the same step, the blocks that it writes (REDUCE_SCATTER: the others read
 * other shards; REDUCE: only root reads; BROADCAST and ALLGATHER: the copy onto itself is nothing).
 */
int swc_direct1_build(struct swc_builder *b)
{
	const struct swc_plan_args *a = b->args;
	struct swc_plan_header *h = &b->w.hdr;
	bool shared = a->coll == SWC_ALLREDUCE || a->coll == SWC_ALLTOALL;
	bool scratch = shared && a->in_place;
	enum swc_buf to = scratch ? SWC_BUF_SCRATCH : SWC_BUF_RECV;

	swc_build_blocks(b, 1);
	swc_build_channel(b, 0, b->w.hdr.shard_blocks);
	if (scratch)
		swc_build_scratch(b, 0, h->nshards);
	else if (shared)
		h->flags |= SWC_PLAN_NOT_IN_PLACE;
	switch (a->coll) {
	case SWC_ALLREDUCE:
		swc_build_step(b, SWC_STEP_LOCAL);
		all_sends(b, 0, 1);
		swc_build_recv(b, a->rank, to, 0, 1, SWC_XFER_FINAL);
		break;
	case SWC_REDUCE_SCATTER:
		swc_build_step(b, SWC_STEP_LOCAL);
		all_sends(b, a->rank, 1);
		swc_build_recv(b, a->rank, SWC_BUF_RECV, a->rank, 1, SWC_XFER_FINAL);
		break;
	case SWC_REDUCE:
		if (a->rank == a->root) {
			swc_build_step(b, SWC_STEP_LOCAL);
			all_sends(b, 0, 1);
			swc_build_recv(b, a->root, SWC_BUF_RECV, 0, 1, SWC_XFER_FINAL);
		}
		break;
	case SWC_ALLGATHER:
		/*
		 * Start with the own shard and go round, so that the ranks do not all read from
		 * one.
		 */
		for (uint32_t i = 0; i < a->nranks; i++) {
			uint32_t r = (a->rank + i) % a->nranks;

			copy(b, r, r, 1);
		}
		break;
	case SWC_ALLTOALL:
		for (uint32_t i = 0; i < a->nranks; i++) {
			uint32_t r = (a->rank + i) % a->nranks;

			swc_build_step(b, SWC_STEP_LOCAL);
			swc_build_send(b, r, SWC_BUF_SEND, a->rank, 1);
			swc_build_recv(b, a->rank, to, r, 1, SWC_XFER_FINAL);
		}
		break;
	case SWC_BROADCAST:
		copy(b, a->root, 0, 1);
		break;
	case SWC_GATHER:
		for (uint32_t i = 0; a->rank == a->root && i < a->nranks; i++)
			copy(b, (a->rank + i) % a->nranks, (a->rank + i) % a->nranks, 1);
		break;
	case SWC_SCATTER:
		copy(b, a->root, a->rank, 1);
		break;
	case SWC_BARRIER:
		break;
	default:
		return -EOPNOTSUPP;
	}
	swc_build_step(b, SWC_STEP_SYNC);
	if (scratch) {
		swc_build_step(b, SWC_STEP_LOCAL);
		swc_build_send(b, a->rank, SWC_BUF_SCRATCH, 0, h->nshards);
		swc_build_recv(b, a->rank, SWC_BUF_RECV, 0, h->nshards, 0);
	}
	return 0;
}

/* Is the vector no set of shards? */
static bool whole(const struct swc_plan_args *a)
{
	return a->coll == SWC_ALLREDUCE || a->coll == SWC_REDUCE || a->coll == SWC_BROADCAST;
}

uint32_t swc_direct2_channels(uint32_t nranks)
{
	return nranks <= 4 ? 8 : nranks <= 8 ? 4 : nranks <= 16 ? 2 : 1;
}

/*
 * How many ranks own blocks, and in how many channels each; where vectors consist of shards, each rank owns one.
 *
 * All ranks together move the same bytes by any number of owners, but each owner names up to 2p ranges: with more ranks
 * than CPUs there need not be more owners than keep the CPUs busy. A channel is the unit of work of the kernel's workers:
 * with few ranks, several channels per rank are small enough to be distributed evenly.
 */
static int direct2_shares(struct swc_builder *b, uint32_t *owners, uint32_t *nch)
{
	const struct swc_plan_args *a = b->args;
	uint32_t p = a->nranks, n = whole(a) && a->param >= 0 ? (uint32_t)a->param : p;

	*owners = n < p ? n : p;
	*nch = n < p ? 1 : whole(a) && a->param >= 0 ? n / p : swc_direct2_channels(p);
	if (a->channels)
		*nch = a->channels;
	if (a->coll == SWC_BARRIER)
		*nch = 1;
	if (!n || (n > p && n % p) || *nch > SWC_MAX_CHANNELS)
		return swc_build_refuse(
			b, "direct2 of %u ranks has fewer shares, or a multiple, up to %u times", p,
			SWC_MAX_CHANNELS);
	return 0;
}

/*
 * Rank r owns shard r (or the r-th share of the vector, if there are so many) and computes it for
 * all ranks: each source element is read once and each destination written once, by one CPU. In
 * place is safe because only the owner accesses a block, and it reads an element from all ranks
 * before it writes it. In ALLGATHER the owner is the rank that has the shard, in REDUCE_SCATTER the
 * one that gets it.
 */
int swc_direct2_build(struct swc_builder *b)
{
	const struct swc_plan_args *a = b->args;
	uint32_t owners, nch;
	int ret = direct2_shares(b, &owners, &nch);

	if (ret)
		return ret;
	swc_build_blocks(b, whole(a) ? nch * owners : nch);
	for (uint32_t c = 0; c < nch; c++) {
		uint32_t block = a->rank * nch + c;

		swc_build_channel(b, 0, b->w.hdr.shard_blocks);
		if (a->coll != SWC_BARRIER)
			swc_build_step(b, SWC_STEP_LOCAL);
		/* Others only wait until the results are there. */
		switch (a->rank < owners ? a->coll : SWC_BARRIER) {
		case SWC_ALLREDUCE:
			all_sends(b, block, 1);
			all_recvs(b, block, 1);
			break;
		case SWC_REDUCE_SCATTER:
			all_sends(b, block, 1);
			swc_build_recv(b, a->rank, SWC_BUF_RECV, block, 1, SWC_XFER_FINAL);
			break;
		case SWC_REDUCE:
			all_sends(b, block, 1);
			swc_build_recv(b, a->root, SWC_BUF_RECV, block, 1, SWC_XFER_FINAL);
			break;
		case SWC_ALLGATHER:
			swc_build_send(b, a->rank, SWC_BUF_SEND, block, 1);
			recvs_from(b, a->rank, block, 1);
			break;
		case SWC_BROADCAST:
			swc_build_send(b, a->root, SWC_BUF_SEND, block, 1);
			recvs_from(b, a->root, block, 1);
			break;
		case SWC_GATHER:
			swc_build_send(b, a->rank, SWC_BUF_SEND, block, 1);
			swc_build_recv(b, a->root, SWC_BUF_RECV, block, 1, SWC_XFER_FINAL);
			break;
		case SWC_SCATTER:
			swc_build_send(b, a->root, SWC_BUF_SEND, block, 1);
			swc_build_recv(b, a->rank, SWC_BUF_RECV, block, 1, SWC_XFER_FINAL);
			break;
		case SWC_BARRIER:
			break;
		default:
			return -EOPNOTSUPP;
		}
		swc_build_step(b, SWC_STEP_SYNC);
	}
	return 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Every member exchanges with the others in turn, at growing distance.
 *
 * ALLTOALL sends each shard straight to its member. A step is an exchange with the members at the
 * next two distances on either side: several messages in flight, but never more than SWC_ROTATE_PEERS into
 * one member. A step sends to the members that it receives from, so it is also the step in which their
 * shards of SEND become free.
 *
 * BARRIER is dissemination: in round k, send to the member 2^k further on and receive from the one
 * 2^k before. After ceil(log2 p) rounds every member has heard of every other. (Hensgen, Finkel and
 * Manber, "Two algorithms for barrier synchronization", 1988.) Its messages are empty.
 */
#include "plan/algo/rotate.h"

#include "plan/algo/builder.h"

static void barrier(struct swc_builder *b)
{
	swc_build_blocks(b, 1);
	swc_build_channel(b, 0, 1);
	for (uint32_t far = 1; far < b->n; far *= 2) {
		swc_build_step(b, SWC_STEP_NET);
		swc_build_send_stored(b, (b->me + far) % b->n, SWC_BUF_SEND, 0, 0);
		swc_build_recv(b, (b->me + b->n - far) % b->n, SWC_BUF_RECV, 0, 0, 0);
	}
}

uint32_t swc_rotate_distances(uint32_t n, uint32_t near, uint32_t *distance)
{
	uint32_t m = 0;

	for (uint32_t d = near; d < near + SWC_ROTATE_PEERS / 2 && d <= n / 2; d++) {
		distance[m++] = d;
		if (2 * d != n)
			distance[m++] = n - d;
	}
	return m;
}

static uint32_t find_peers(const struct swc_builder *b, uint32_t near, uint32_t *peer)
{
	uint32_t n = swc_rotate_distances(b->n, near, peer);

	for (uint32_t i = 0; i < n; i++)
		peer[i] = (b->me + peer[i]) % b->n;
	return n;
}

static void copy(struct swc_builder *b, enum swc_buf buf, uint32_t from, uint32_t to)
{
	swc_build_step(b, SWC_STEP_LOCAL);
	swc_build_send(b, b->me, buf, from, 1);
	swc_build_recv(b, b->me, SWC_BUF_RECV, to, 1, SWC_XFER_FINAL);
}

/*
 * In place, what arrives would overwrite what is being sent: it stays in SCRATCH, one shard for
 * each peer of a step, until the step is over.
 */
static void exchange(struct swc_builder *b, uint32_t nch, uint32_t c)
{
	uint32_t peer[SWC_ROTATE_PEERS];

	for (uint32_t near = 1; near <= b->n / 2 && !b->error; near += SWC_ROTATE_PEERS / 2) {
		uint32_t n = find_peers(b, near, peer);

		swc_build_step(b, SWC_STEP_NET);
		for (uint32_t i = 0; i < n; i++)
			swc_build_send_stored(b, peer[i], SWC_BUF_SEND, peer[i] * nch + c, 1);
		for (uint32_t i = 0; i < n; i++)
			if (b->in_place)
				swc_build_recv(b, peer[i], SWC_BUF_SCRATCH, i * nch + c, 1, 0);
			else
				swc_build_recv(b, peer[i], SWC_BUF_RECV, peer[i] * nch + c, 1,
					       SWC_XFER_FINAL);
		for (uint32_t i = 0; b->in_place && i < n; i++)
			copy(b, SWC_BUF_SCRATCH, i * nch + c, peer[i] * nch + c);
	}
	copy(b, SWC_BUF_SEND, b->me * nch + c, b->me * nch + c);
}

int swc_rotate_build(struct swc_builder *b)
{
	uint32_t nch = b->args->channels ? b->args->channels : 1;

	if (b->args->coll == SWC_BARRIER) {
		barrier(b);
		return 0;
	}
	swc_build_blocks(b, nch);
	if (b->in_place)
		swc_build_scratch(b, 0,
				  nch * (b->n > SWC_ROTATE_PEERS ? SWC_ROTATE_PEERS : b->n - 1));
	else
		b->w.hdr.flags |= SWC_PLAN_NOT_IN_PLACE;
	for (uint32_t c = 0; c < nch; c++) {
		swc_build_channel(b, c, nch * (b->n - 1) + 1);
		exchange(b, nch, c);
	}
	return 0;
}

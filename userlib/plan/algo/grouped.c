// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ranks of one node whose CPUs do not all share a cache: groups of consecutive ranks do. In direct2 each
 * rank reads a block of all p vectors and writes p results, so of the 2 p vectors that move, all but
 * those of one group go from cache to cache. Here only the sums of groups do, 2 (G - 1) vectors of G
 * groups; for that, each group writes its sum and reads the result once more.
 *
 * Three passes, with a barrier behind each. The vector has a share for each member of a group, and each
 * share a block for each group.
 *
 *	1. member j of each group adds up share j of its group, in its RECV
 *	2. member j of group g adds up block g of share j from the j-th members of all groups, and stores
 *	   it in the RECV of each of them
 *	3. member j of each group copies share j to the others of its group
 *
 * In place is safe: in the first pass share j of a group's vectors is only accessed by its member j, which
 * reads an element from all before it writes it.
 */
#include "plan/algo/builder.h"
#include "kmod/core/plan_check.h"

/* By default the fewest groups of equal size. */
static uint32_t groups_of(const struct swc_plan_args *a)
{
	uint32_t n = 2;

	if (a->param >= 0)
		return (uint32_t)a->param;
	while (n < a->nranks && a->nranks % n)
		n++;
	return n;
}

static void channel(struct swc_builder *b, uint32_t groups, uint32_t first)
{
	uint32_t me = b->me, size = b->n / groups, group = me / size, j = me % size;

	swc_build_step(b, SWC_STEP_LOCAL);
	for (uint32_t i = 0; i < size; i++)
		swc_build_send(b, group * size + i, SWC_BUF_SEND, first, groups);
	swc_build_recv(b, me, SWC_BUF_RECV, first, groups, 0);
	swc_build_step(b, SWC_STEP_SYNC);

	swc_build_step(b, SWC_STEP_LOCAL);
	for (uint32_t g = 0; g < groups; g++)
		swc_build_send(b, g * size + j, SWC_BUF_RECV, first + group, 1);
	for (uint32_t g = 0; g < groups; g++)
		swc_build_recv(b, g * size + j, SWC_BUF_RECV, first + group, 1,
			       g ? 0 : SWC_XFER_FINAL);
	swc_build_step(b, SWC_STEP_SYNC);

	swc_build_step(b, SWC_STEP_LOCAL);
	swc_build_send(b, me, SWC_BUF_RECV, first, groups);
	for (uint32_t i = 0; i < size; i++)
		if (i != j)
			swc_build_recv(b, group * size + i, SWC_BUF_RECV, first, groups, 0);
	swc_build_step(b, SWC_STEP_SYNC);
}

int swc_grouped_build(struct swc_builder *b)
{
	uint32_t groups = groups_of(b->args), size = groups ? b->n / groups : 0;
	/* A channel is the unit of work of the kernel's workers. */
	uint32_t channels = b->args->channels ? b->args->channels : b->n <= 16 ? 2 : 1;

	if (groups < 2 || size < 2 || b->n % groups)
		return swc_build_refuse(
			b, "%u ranks cannot form %u groups of the same size, of two ranks at least",
			b->n, groups);
	swc_build_blocks(b, channels * b->n);
	for (uint32_t c = 0; c < channels; c++) {
		swc_build_channel(b, 0, b->w.hdr.shard_blocks);
		channel(b, groups, (c * size + b->me % size) * groups);
	}
	return 0;
}

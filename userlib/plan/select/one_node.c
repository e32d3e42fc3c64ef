// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The choice where all ranks are on one node: by size, by ranks per CPU, and by the caches that groups of
 * ranks share.
 */
#include "plan/select/one_node.h"

#include "plan/algo/direct.h"

/*
 * On one node, up to this size it is faster if every rank reads all vectors than if it waits for
 * the others' results.
 */
#define DIRECT1_MAX_BYTES 4096
/*
 * With more ranks than CPUs, the time is the work of all ranks. direct1 reads p vectors for each of
 * p ranks; direct2 with m owners, of all ranks together, p vectors, and names 2p ranges for each
 * owner. So few owners are best; more, up to this number for each CPU, where their shares are not
 * smaller than this, so that CPUs that are slowed down get fewer shares.
 */
#define OWNERS_PER_CPU 8
#define SHARE_MIN_BYTES 2048
/*
 * A channel costs each rank the instructions of some 20 KiB of its share, and is worth it where a rank may be late. So
 * no rank has several whose blocks are smaller than this.
 */
#define CHANNEL_MIN_BYTES (32u << 10)
/*
 * Where groups of ranks share a last-level cache or a NUMA node: how many times longer it takes to move a
 * vector from one to another, and the size from which on two more barriers do not matter.
 */
#define BETWEEN_CACHES 2.0
#define GROUPS_MIN_BYTES (256u << 10)

/* The parameter of direct2. */
static int32_t shares(const struct swc_choices *c, bool crowded, uint64_t bytes)
{
	uint32_t p = c->topo->nranks, n = 1;

	while (crowded && n < OWNERS_PER_CPU && bytes >= 2ull * n * c->ncpus * SHARE_MIN_BYTES)
		n *= 2;
	if (crowded && n * c->ncpus < p)
		return (int32_t)(n * c->ncpus);
	for (n = 1; n < swc_direct2_channels(p) && bytes >= 2ull * n * p * CHANNEL_MIN_BYTES;)
		n *= 2;
	return n < swc_direct2_channels(p) ? (int32_t)(n * p) : SWC_PARAM_DEFAULT;
}

/*
 * Is grouped faster than direct2? In units of a vector that is moved within a cache, direct2 moves 2 p
 * vectors, all but the g-th part of them between caches. grouped moves as many within them, reads or writes
 * three more for each group, and 2 (g - 1) of these between caches.
 */
static bool groups_pay(const struct swc_choices *c, uint64_t bytes)
{
	double p = c->topo->nranks, g = c->ngroups, far = BETWEEN_CACHES - 1;

	if (c->ngroups < 2 || c->topo->nranks % c->ngroups || c->topo->nranks < 2 * c->ngroups ||
	    bytes < GROUPS_MIN_BYTES)
		return false;
	return 2 * p + 3 * g + far * 2 * (g - 1) < 2 * p + far * 2 * p * (g - 1) / g;
}

struct swc_choice swc_choose_on_node(const struct swc_choices *c, enum swc_coll coll,
				     uint64_t bytes)
{
	bool crowded = c->ncpus && c->ncpus < c->topo->nranks;
	struct swc_choice choice = { SWC_ALGO_DIRECT1, SWC_PARAM_DEFAULT, SWC_REASON_ONE_NODE, 0 };

	if (coll == SWC_ALLTOALL ||
	    (bytes <= DIRECT1_MAX_BYTES && !(crowded && coll == SWC_ALLREDUCE)))
		return choice;
	choice.algo = SWC_ALGO_DIRECT2;
	if (!crowded && coll == SWC_ALLREDUCE && groups_pay(c, bytes)) {
		choice.algo = SWC_ALGO_GROUPED;
		choice.param = (int32_t)c->ngroups;
	} else if (coll == SWC_ALLREDUCE || coll == SWC_REDUCE || coll == SWC_BROADCAST) {
		choice.param = shares(c, crowded, bytes);
	}
	return choice;
}

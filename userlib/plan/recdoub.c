// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Recursive doubling: in step s, ranks whose numbers differ in bit s swap their whole vectors and
 * add. log2 p steps, so it is for small vectors. Other numbers of ranks fold first: with m the
 * largest power of two, rank m + i gives its vector to rank i, sits out, and gets the result.
 * (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
 * 2005, section 4.)
 *
 * Bits: both sides of a swap compute a + b and b + a, which are equal to the bit (the reductions
 * are exactly commutative, NaN and signed zero included), so by induction all ranks of a group hold
 * the same value.
 */
#include <errno.h>

#include "build.h"

/*
 * Where the sums live. While a rank adds, its partner reads the very vector that is added to, so a
 * swap may not write the buffer that it sends from: it alternates between SCRATCH and RECV, and so
 * that the last one ends in RECV, swap i of k writes RECV if k - i is odd.
 *
 * The first swap sends from SEND (or from where the fold left its sum). In place SEND is RECV, so
 * if it would write RECV (k odd) and there was no fold, the order is turned round, starting with
 * SCRATCH, and the result is copied to RECV at the end. The fold sends nothing and so may write
 * what it reads.
 */
int swc_recdoub_build(struct swc_builder *b)
{
	const struct swc_plan_args *a = b->args;
	uint32_t m = 1, k = 0, extra;
	enum swc_buf at = SWC_BUF_SEND, to;
	bool turned;

	if (a->coll != SWC_ALLREDUCE)
		return -EOPNOTSUPP;
	if (a->nranks == 1) {
		swc_build_alone(b);
		return 0;
	}
	while (m * 2 <= a->nranks) {
		m *= 2;
		k++;
	}
	extra = a->nranks - m;
	swc_build_blocks(b, 1);
	swc_build_channel(b);

	if (a->rank >= m) {
		swc_build_step(b, SWC_STEP_NET);
		swc_build_send(b, a->rank - m, SWC_BUF_SEND, 0, 1);
		swc_build_step(b, SWC_STEP_NET);
		swc_build_recv(b, a->rank - m, SWC_BUF_RECV, 0, 1, 0);
		return 0;
	}

	turned = k % 2 && a->rank >= extra && a->in_place;
	if (k % 2 && a->rank >= extra && !a->in_place)
		b->hdr.flags |= SWC_PLAN_NOT_IN_PLACE;
	to = k % 2 && !turned ? SWC_BUF_RECV : SWC_BUF_SCRATCH;
	if (k > 1 || turned || a->rank < extra)
		swc_build_scratch(b, 0, 1);

	if (a->rank < extra) {
		at = to == SWC_BUF_RECV ? SWC_BUF_SCRATCH : SWC_BUF_RECV;
		swc_build_step(b, SWC_STEP_NET);
		swc_build_recv_reduce(b, a->rank + m, at, SWC_BUF_SEND, 0, 1, 0);
	}
	for (uint32_t bit = 1; bit < m; bit *= 2) {
		swc_build_step(b, SWC_STEP_NET);
		swc_build_send(b, a->rank ^ bit, at, 0, 1);
		swc_build_recv_reduce(b, a->rank ^ bit, to, at, 0, 1,
				      bit * 2 == m ? SWC_XFER_FINAL : 0);
		at = to;
		to = at == SWC_BUF_RECV ? SWC_BUF_SCRATCH : SWC_BUF_RECV;
	}
	if (turned) {
		swc_build_step(b, SWC_STEP_LOCAL);
		swc_build_send(b, a->rank, SWC_BUF_SCRATCH, 0, 1);
		swc_build_recv(b, a->rank, SWC_BUF_RECV, 0, 1, 0);
	}
	if (a->rank < extra) {
		swc_build_step(b, SWC_STEP_NET);
		swc_build_send(b, a->rank + m, SWC_BUF_RECV, 0, 1);
	}
	return 0;
}

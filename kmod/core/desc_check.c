// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/* Checks of what a user submits: descriptors. Pure functions on the kernel's own copy. */
#include "desc_check.h"
#include "plan_check.h"
#include "reduce.h"

int swc_desc_check(const struct swc_desc *d, u32 nranks)
{
	u64 align;

	if (d->resv0 || d->resv1 || (d->flags & ~SWC_OP_FLAGS_ALL))
		return -EINVAL;
	if (d->coll >= SWC_COLL_NR || d->dtype >= SWC_DTYPE_NR)
		return -EINVAL;
	if (d->root >= nranks || (d->root && !swc_coll_has_root(d->coll)))
		return -EINVAL;
	if (swc_coll_reduces(d->coll)) {
		if (d->redop >= SWC_REDOP_NR)
			return -EINVAL;
		if (!swc_reduce_supported(d->dtype, d->redop))
			return -EOPNOTSUPP;
	} else if (d->redop) {
		return -EINVAL;
	}
	if (d->counts && (d->count || !swc_coll_takes_counts(d->coll)))
		return -EINVAL;
	if (d->coll == SWC_BARRIER &&
	    (d->count || d->send || d->recv || d->send_region || d->recv_region || d->dtype))
		return -EINVAL;

	align = swc_dtype_size(d->dtype) - 1;
	if ((d->send | d->recv) & align)
		return -EINVAL;
	return 0;
}

int swc_partitioned_check(const struct swc_partitioned_init *init, u32 nranks)
{
	u64 last = (u64)init->partitions - 1, bytes;

	if (init->resv[0] || init->resv[1] || init->handle || init->map_bytes)
		return -EINVAL;
	if (init->desc.flags || init->desc.counts)
		return -EINVAL;
	if (!init->partitions || init->partitions > SWC_MAX_PARTITIONS)
		return -EINVAL;
	/* The last partition starts within the address space, and so do the others. */
	if (check_mul_overflow(last, (u64)init->send_stride, &bytes) ||
	    check_add_overflow(bytes, (u64)init->desc.send, &bytes) ||
	    check_mul_overflow(last, (u64)init->recv_stride, &bytes) ||
	    check_add_overflow(bytes, (u64)init->desc.recv, &bytes))
		return -EINVAL;
	return swc_desc_check(&init->desc, nranks);
}

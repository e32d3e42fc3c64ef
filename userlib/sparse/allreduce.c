// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * swingcoll_allreduce(). It stands here, above the dense call of src/api, because it is sparse by choice
 * on communicators with SWINGCOLL_SPARSE_AUTO.
 */
#include "sparse/sparse.h"
#include "src/priv.h"

/*
 * Short vectors are always dense. Programs have many kinds of these, which would displace what is known
 * of the long ones.
 */
static bool is_short(size_t count, enum swingcoll_dtype dtype)
{
	size_t size = swingcoll_dtype_size(dtype);

	return !size || count < SWC_SPARSE_AUTO_MIN / size;
}

static __attribute__((noinline)) int choose_allreduce(const void *send, void *recv, size_t count,
						      enum swingcoll_dtype dtype,
						      enum swingcoll_redop op,
						      struct swingcoll_comm *comm)
{
	if (is_short(count, dtype))
		return swc_allreduce(send, recv, count, dtype, op, comm);
	return swingcoll_sparse_allreduce(send, recv, count, dtype, op, SWINGCOLL_SPARSE_MODE_AUTO,
					  comm);
}

SWC_PUBLIC int swingcoll_allreduce(const void *send, void *recv, size_t count,
				   enum swingcoll_dtype dtype, enum swingcoll_redop op,
				   struct swingcoll_comm *comm)
{
	if (!comm || !comm->sparse_auto)
		return swc_allreduce(send, recv, count, dtype, op, comm);
	return choose_allreduce(send, recv, count, dtype, op, comm);
}

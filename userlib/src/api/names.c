// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Names of types, operations, collectives and algorithms, for people and command lines. Pure.
 */
#include <errno.h>
#include <string.h>

#include "priv.h"
#include "reduce.h"

/* The public numbers are the kernel's. */
_Static_assert((int)SWINGCOLL_F64 == (int)SWC_F64 && (int)SWINGCOLL_I8 == (int)SWC_I8, "types");
_Static_assert((int)SWINGCOLL_BXOR == (int)SWC_BXOR && (int)SWINGCOLL_AVG == (int)SWC_AVG, "ops");
_Static_assert((int)SWINGCOLL_ALLTOALL == (int)SWC_ALLTOALL &&
		       (int)SWINGCOLL_ALLREDUCE == (int)SWC_ALLREDUCE,
	       "collectives");

static const char *const colls[] = {
	[SWINGCOLL_ALLREDUCE] = "allreduce", [SWINGCOLL_REDUCE_SCATTER] = "reduce_scatter",
	[SWINGCOLL_ALLGATHER] = "allgather", [SWINGCOLL_BROADCAST] = "broadcast",
	[SWINGCOLL_REDUCE] = "reduce",	     [SWINGCOLL_BARRIER] = "barrier",
	[SWINGCOLL_ALLTOALL] = "alltoall",
};

#define NCOLLS (sizeof(colls) / sizeof(colls[0]))

SWC_PUBLIC size_t swingcoll_dtype_size(enum swingcoll_dtype dtype)
{
	return swc_dtype_size((enum swc_dtype)dtype);
}

SWC_PUBLIC const char *swingcoll_dtype_name(enum swingcoll_dtype dtype)
{
	return swc_dtype_name((enum swc_dtype)dtype);
}

SWC_PUBLIC const char *swingcoll_redop_name(enum swingcoll_redop op)
{
	return swc_redop_name((enum swc_redop)op);
}

SWC_PUBLIC const char *swingcoll_coll_name(enum swingcoll_coll coll)
{
	return (unsigned int)coll < NCOLLS ? colls[coll] : "?";
}

SWC_PUBLIC int swingcoll_dtype_parse(const char *name)
{
	for (int i = 0; i < SWC_DTYPE_NR; i++)
		if (!strcmp(name, swc_dtype_name((enum swc_dtype)i)))
			return i;
	return -EINVAL;
}

SWC_PUBLIC int swingcoll_redop_parse(const char *name)
{
	for (int i = 0; i < SWC_REDOP_NR; i++)
		if (!strcmp(name, swc_redop_name((enum swc_redop)i)))
			return i;
	return -EINVAL;
}

SWC_PUBLIC int swingcoll_coll_parse(const char *name)
{
	for (size_t i = 0; i < NCOLLS; i++)
		if (!strcmp(name, colls[i]))
			return (int)i;
	return -EINVAL;
}

SWC_PUBLIC int swingcoll_supported(enum swingcoll_dtype dtype, enum swingcoll_redop op)
{
	return swc_reduce_supported((enum swc_dtype)dtype, (enum swc_redop)op);
}

SWC_PUBLIC const char *swingcoll_algo_name(int index)
{
	return index < 0 ? NULL : swc_algo_name((unsigned int)index);
}

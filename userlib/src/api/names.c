// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Names of types, reductions, collectives and algorithms, for people and command lines. Pure.
 */
#include <errno.h>
#include <string.h>

#include "kmod/core/reduce.h"
#include "plan/names.h"
#include "src/priv.h"

/* The public values are those of the ABI. */
_Static_assert((int)SWINGCOLL_F64 == (int)SWC_F64 && (int)SWINGCOLL_I8 == (int)SWC_I8, "types");
_Static_assert((int)SWINGCOLL_BXOR == (int)SWC_BXOR && (int)SWINGCOLL_AVG == (int)SWC_AVG, "ops");
_Static_assert((int)SWINGCOLL_SCATTER == (int)SWC_SCATTER &&
		       (int)SWINGCOLL_ALLREDUCE == (int)SWC_ALLREDUCE,
	       "collectives");

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
	const char *name = swc_coll_name(coll);

	return name ? name : "?";
}

SWC_PUBLIC int swingcoll_dtype_parse(const char *name)
{
	return swc_dtype_parse(name);
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
	return swc_coll_parse(name);
}

SWC_PUBLIC int swingcoll_supported(enum swingcoll_dtype dtype, enum swingcoll_redop op)
{
	return swc_reduce_supported((enum swc_dtype)dtype, (enum swc_redop)op);
}

SWC_PUBLIC const char *swingcoll_algo_name(int index)
{
	return index < 0 ? NULL : swc_algo_name((unsigned int)index);
}

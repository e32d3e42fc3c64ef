// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of collectives, element types, buffers and steps. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <linux/swingcoll.h>

#include "kmod/core/reduce.h"
#include "plan/names.h"

static const char *const colls[SWC_COLL_NR] = {
	[SWC_ALLREDUCE] = "allreduce", [SWC_REDUCE_SCATTER] = "reduce_scatter",
	[SWC_ALLGATHER] = "allgather", [SWC_BROADCAST] = "broadcast",
	[SWC_REDUCE] = "reduce",       [SWC_BARRIER] = "barrier",
	[SWC_ALLTOALL] = "alltoall",   [SWC_GATHER] = "gather",
	[SWC_SCATTER] = "scatter",
};

const char *const swc_buf_names[SWC_BUF_NR] = {
	[SWC_BUF_SEND] = "send",
	[SWC_BUF_RECV] = "recv",
	[SWC_BUF_SCRATCH] = "scratch",
};

const char *const swc_step_names[SWC_STEP_COPY + 1] = {
	[SWC_STEP_NET] = "net",
	[SWC_STEP_LOCAL] = "local",
	[SWC_STEP_SYNC] = "sync",
	[SWC_STEP_COPY] = "copy",
};

const char *swc_coll_name(unsigned int coll)
{
	return coll < SWC_COLL_NR ? colls[coll] : NULL;
}

int swc_coll_parse(const char *name)
{
	for (int i = 0; i < SWC_COLL_NR; i++)
		if (!strcmp(name, colls[i]))
			return i;
	return -EINVAL;
}

int swc_dtype_parse(const char *name)
{
	for (int i = 0; i < SWC_DTYPE_NR; i++)
		if (!strcmp(name, swc_dtype_name((enum swc_dtype)i)))
			return i;
	return -EINVAL;
}

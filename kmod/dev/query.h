/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_QUERY_H
#define SWC_QUERY_H

#include "swingcoll.h"

int swc_query_comm(struct swc_comm_query *q);
int swc_query_trace(struct swc_ctx *ctx, struct swc_trace_query *q);
int swc_query_stats(struct swc_stats *s);
void swc_debugfs_init(void);
void swc_debugfs_exit(void);

#endif /* SWC_QUERY_H */

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_QUERY_H
#define SWC_QUERY_H

#include "swingcoll.h"

int swc_query_comm(void __user *arg);
int swc_query_stats(void __user *arg);
void swc_debugfs_init(void);
void swc_debugfs_exit(void);

#endif /* SWC_QUERY_H */

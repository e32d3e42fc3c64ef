/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_JOIN_H
#define SWC_JOIN_H

#include "exec/task.h"

int swc_comm_join(struct swc_ctx *ctx, struct swc_comm_join *join);

#endif /* SWC_JOIN_H */

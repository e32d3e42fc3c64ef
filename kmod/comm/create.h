/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_COMM_CREATE_H
#define SWC_COMM_CREATE_H

#include "comm/comm.h"

int swc_comm_create(struct swc_ctx *ctx, struct swc_comm_create *join);

#endif /* SWC_COMM_CREATE_H */

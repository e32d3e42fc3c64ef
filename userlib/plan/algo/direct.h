/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Owners of blocks on one node; see direct.c. */
#ifndef SWC_PLAN_ALGO_DIRECT_H
#define SWC_PLAN_ALGO_DIRECT_H

#include <stdint.h>

/* Channels of direct2 among so many ranks, if its parameter does not tell. */
uint32_t swc_direct2_channels(uint32_t nranks);

#endif /* SWC_PLAN_ALGO_DIRECT_H */

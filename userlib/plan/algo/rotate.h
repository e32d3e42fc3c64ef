/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The steps of an all-to-all by rotate; see rotate.c. */
#ifndef SWC_PLAN_ALGO_ROTATE_H
#define SWC_PLAN_ALGO_ROTATE_H

#include <stdint.h>

/* Members that a step exchanges with, at most; steps are for every second distance. */
#define SWC_ROTATE_PEERS 4

/* How far the members of a step are, of the distances near and near + 1 either way. Returns how many. */
uint32_t swc_rotate_distances(uint32_t n, uint32_t near, uint32_t *distance);

#endif /* SWC_PLAN_ALGO_ROTATE_H */

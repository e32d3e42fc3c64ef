/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Phases of a plan: runs of network steps of a channel with the same peers and sizes. */
#ifndef SWC_PLAN_MODEL_PHASES_H
#define SWC_PLAN_MODEL_PHASES_H

#include "kmod/core/plan_check.h"

/**
 * struct swc_phases - the phases of all channels
 * @n: phases, if all channels have as many and their lengths differ; else 0
 * @of: by channel, then its network steps: the phase
 * @length: by phase, steps of the longest channel
 */
struct swc_phases {
	uint32_t n;
	uint32_t *of[SWC_MAX_CHANNELS];
	uint32_t *length;
};

/* Network steps of a channel, and of the longest one. */
uint32_t swc_phases_net_steps(const struct swc_plan_view *v, uint32_t chan);
uint32_t swc_phases_longest(const struct swc_plan_view *v);

/* Find the phases in a plan. 0 or -ENOMEM; free with swc_phases_free() in either case. */
int swc_phases_find(struct swc_phases *p, const struct swc_plan_view *v);
void swc_phases_free(struct swc_phases *p);

#endif /* SWC_PLAN_MODEL_PHASES_H */

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_STEPS_H
#define SWC_STEPS_H

#include "exec/offload.h"

enum swc_walk swc_step_local(struct swc_run *run, const struct swc_plan_step *s);
enum swc_walk swc_step_sync(struct swc_run *run);
enum swc_walk swc_step_net(struct swc_run *run, const struct swc_plan_step *s);
enum swc_walk swc_step_fence(struct swc_run *run);
bool swc_step_gathers(struct swc_run *run);
bool swc_step_fence_passed(const struct swc_run *run);
enum swc_walk swc_step_broken(struct swc_run *run, u32 peer, const char *what);

#endif /* SWC_STEPS_H */

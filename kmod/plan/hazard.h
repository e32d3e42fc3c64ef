/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_HAZARD_H
#define SWC_HAZARD_H

#include "plan/plan_conn.h"

int swc_hazards_find(const struct swc_comm *comm, const struct swc_plan_view *v, struct swc_plan_net *pnet);

#endif /* SWC_HAZARD_H */

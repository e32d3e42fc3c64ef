/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_PLAN_H
#define SWC_PLAN_H

#include <linux/kref.h>

#include "core/plan_check.h"
#include "plan/plan_conn.h"
#include "swingcoll.h"

struct swc_account;

/* A verified plan. References: the member's handle table, and each request that uses it. */
struct swc_plan {
	struct kref ref;
	u32 handle;
	struct swc_plan_view view;
	u32 *send_index;		/* NULL if there are no network steps with sends */
	struct swc_plan_net *net;	/* NULL if all members are on this node */
	void *data;
	struct swc_account *account;
	u64 charged;			/* bytes of memory charged to @account */
};

int swc_plan_load(struct swc_member *member, struct swc_plan_load *load);
int swc_plan_unload(struct swc_member *member, u32 handle);
void swc_plan_unload_all(struct swc_member *member);
struct swc_plan *swc_plan_get(struct swc_member *member, u32 handle);
void swc_plan_put(struct swc_plan *plan);

#endif /* SWC_PLAN_H */

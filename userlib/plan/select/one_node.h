/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The choice where all ranks are on one node; see one_node.c. */
#ifndef SWC_PLAN_SELECT_ONE_NODE_H
#define SWC_PLAN_SELECT_ONE_NODE_H

#include "plan/select/choose.h"

/* The algorithm for a collective on @bytes bytes. */
struct swc_choice swc_choose_on_node(const struct swc_choices *c, enum swc_coll coll,
				     uint64_t bytes);

#endif /* SWC_PLAN_SELECT_ONE_NODE_H */

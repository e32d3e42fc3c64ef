/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Plans for modules that have no copy steps. */
#ifndef SWC_PLAN_WITHOUT_COPIES_H
#define SWC_PLAN_WITHOUT_COPIES_H

#include <stddef.h>

/**
 * swc_plan_without_copies() - write each copy of copy steps as a local step of its own
 * @plan: a valid plan; another one takes its place, unless it has no copy steps
 * @why: gets one line on -EOPNOTSUPP
 *
 * What the plan does, and its messages, stay the same: other ranks need not do this.
 *
 * Return: 0, -EINVAL if the plan is not valid, -EOPNOTSUPP if it would be too long, -ENOMEM. *plan is the
 * caller's to free in any case.
 */
int swc_plan_without_copies(void **plan, size_t *bytes, char *why, size_t why_bytes);

#endif /* SWC_PLAN_WITHOUT_COPIES_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Execution plans of MSCCL++ in JSON, as plans. */
#ifndef SWC_PLAN_FORMAT_MSCCLPP_H
#define SWC_PLAN_FORMAT_MSCCLPP_H

#include "plan/format/plan_text.h"

/**
 * swc_mscclpp_parse() - make the plans of all ranks from an execution plan of MSCCL++
 * @json: the text
 * @bytes: its length
 * @set: out: the plans, for swc_plan_set_free(); empty if this fails
 * @why: one line on what is wrong, where, and what was expected
 *
 * Return: 0, -ENOMEM, -EINVAL, or -EOPNOTSUPP for what plans cannot express: switches that compute, groups
 * of thread blocks that share an operation.
 */
int swc_mscclpp_parse(const char *json, size_t bytes, struct swc_plan_set *set, char *why,
		      size_t why_bytes);

#endif /* SWC_PLAN_FORMAT_MSCCLPP_H */

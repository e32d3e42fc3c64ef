/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Algorithms in the XML that MSCCL reads, as plans. */
#ifndef SWC_PLAN_FORMAT_MSCCL_H
#define SWC_PLAN_FORMAT_MSCCL_H

#include "plan/format/plan_text.h"

/**
 * swc_msccl_parse() - make the plans of all ranks from an algorithm in MSCCL's XML
 * @xml: the text
 * @bytes: its length
 * @set: out: the plans, for swc_plan_set_free(); empty if this fails
 * @why: one line on what is wrong, where, and what was expected
 *
 * Return: 0, -ENOMEM, -EINVAL, or -EOPNOTSUPP for what plans cannot express, or if this library was
 * built without an XML parser.
 */
int swc_msccl_parse(const char *xml, size_t bytes, struct swc_plan_set *set, char *why,
		    size_t why_bytes);

/*
 * Print the plans of all ranks as an algorithm in MSCCL's XML, out of place. @text is the caller's also
 * after a failure. Return: 0, -ENOMEM, or -EINVAL with one line for what MSCCL cannot express.
 */
int swc_msccl_print(struct swc_text *text, const void *const *plans, uint32_t nranks,
		    swc_text_progress *progress, void *arg, char *why, size_t why_bytes);

#endif /* SWC_PLAN_FORMAT_MSCCL_H */

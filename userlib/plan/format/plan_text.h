/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Plans as text: the plans of all ranks of one algorithm, for algorithms that are not built here,
 * and for looking at those that are. swingcoll-plan(5) describes the format. Reading and writing
 * files is src/files.h's.
 */
#ifndef SWC_PLAN_FORMAT_PLAN_TEXT_H
#define SWC_PLAN_FORMAT_PLAN_TEXT_H

#include "plan/plan.h"
#include "plan/text.h"

/**
 * struct swc_plan_set - all ranks' plans of one algorithm
 * @nranks: number of plans
 * @plan: by rank; each has passed swc_plan_check(), but none has been verified. Owned.
 * @bytes: their sizes
 */
struct swc_plan_set {
	uint32_t nranks;
	void **plan;
	size_t *bytes;
};

void swc_plan_set_free(struct swc_plan_set *set);

/*
 * The functions below return 0, -ENOMEM or -EINVAL. On -EINVAL @why gets one line that names the
 * fault, where it is, and what was expected.
 */

/*
 * Print the plans of all ranks, as from swc_plan_build(). @text is the caller's also after a
 * failure.
 */
int swc_plan_text_print(struct swc_text *text, const void *const *plans, const size_t *bytes,
			uint32_t nranks, swc_text_progress *progress, void *arg, char *why,
			size_t why_bytes);

/*
 * Read all plans. Their family is a hash of what the text says, comments and blanks aside. @set is
 * empty if this fails, else it is to be freed with swc_plan_set_free().
 */
int swc_plan_text_parse(const char *text, size_t text_bytes, struct swc_plan_set *set, char *why,
			size_t why_bytes);

/*
 * Read one rank's plan, in the memory that this one takes; the whole text is read and checked all
 * the same. *plan is the caller's, to be freed with free().
 */
int swc_plan_text_parse_rank(const char *text, size_t text_bytes, uint32_t nranks, uint32_t rank,
			     void **plan, size_t *bytes, char *why, size_t why_bytes);

#endif /* SWC_PLAN_FORMAT_PLAN_TEXT_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Plans as text: all ranks' plans of one algorithm in one file, for algorithms that are not built here, and for
 * looking at those that are. The format is described in swingcoll-plan(5).
 */
#ifndef SWC_PLAN_PLANFILE_H
#define SWC_PLAN_PLANFILE_H

#include <stdio.h>

#include "plan.h"

/**
 * struct swc_planset - all ranks' plans of one algorithm
 * @nranks: number of plans
 * @plan: by rank; each has passed swc_plan_check(), but none has been verified. Owned.
 * @bytes: their sizes
 */
struct swc_planset {
	uint32_t nranks;
	void **plan;
	size_t *bytes;
};

void swc_planset_free(struct swc_planset *set);

/*
 * All of the following return 0, -ENOMEM, -EINVAL, or -errno of reading and writing. @why gets, except with
 * -ENOMEM, one line that names the fault, where it is, and what was expected.
 */

/* Write the plans of all ranks, as from swc_plan_build(). */
int swc_planfile_write(FILE *f, const void *const *plans, const size_t *bytes, uint32_t nranks,
		       char *why, size_t why_bytes);

/*
 * Read all plans. Their family is a hash of what the file says, comments and blanks aside. @set is empty if
 * this fails, else for swc_planset_free().
 */
int swc_planfile_read(FILE *f, struct swc_planset *set, char *why, size_t why_bytes);

/*
 * The same for one rank's plan only, in the memory that this one takes; the whole file is read and checked all
 * the same. *plan is the caller's, to be freed with free().
 */
int swc_planfile_rank(const char *path, uint32_t nranks, uint32_t rank, void **plan, size_t *bytes,
		      char *why, size_t why_bytes);

/*
 * Make plans of an algorithm in the XML that MSCCL reads. -EOPNOTSUPP, with the reason, for what plans cannot
 * express or if this library was built without an XML parser.
 */
int swc_msccl_read(FILE *f, struct swc_planset *set, char *why, size_t why_bytes);

/* Collectives as these files call them, "reduce_scatter"; -EINVAL and NULL for what is none. */
int swc_planfile_coll(const char *name);
const char *swc_planfile_coll_name(unsigned int coll);

#endif /* SWC_PLAN_PLANFILE_H */

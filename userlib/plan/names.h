/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of collectives, element types, buffers and steps, as files and command lines have them. */
#ifndef SWC_PLAN_NAMES_H
#define SWC_PLAN_NAMES_H

#include <linux/swingcoll.h>
#include <linux/swingcoll_plan.h>

/* "send" of SWC_BUF_SEND, by enum swc_buf. */
extern const char *const swc_buf_names[SWC_BUF_NR];
/* "net" of SWC_STEP_NET, by enum swc_step_kind. */
extern const char *const swc_step_names[SWC_STEP_COPY + 1];

/* "reduce_scatter" for an enum swc_coll; NULL for any other number. */
const char *swc_coll_name(unsigned int coll);
/* The enum swc_coll of a name, or -EINVAL. */
int swc_coll_parse(const char *name);
/* The enum swc_dtype of a name such as "f32", or -EINVAL. */
int swc_dtype_parse(const char *name);

#endif /* SWC_PLAN_NAMES_H */

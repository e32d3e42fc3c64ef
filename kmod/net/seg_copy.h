/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_NET_SEG_COPY_H
#define SWC_NET_SEG_COPY_H

#include "net.h"

/* Memory that copies for one communicator take; zeroed at first. */
struct swc_seg_copy_usage {
	atomic_long_t bytes;
};

struct swc_net_seg *swc_seg_copy(const struct swc_net_seg *seg, struct swc_seg_copy_usage *usage);
void swc_seg_copy_free(struct swc_net_seg *seg, struct swc_seg_copy_usage *usage);

#endif /* SWC_NET_SEG_COPY_H */

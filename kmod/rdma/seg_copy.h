/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_RDMA_UNEXPECTED_H
#define SWC_RDMA_UNEXPECTED_H

#include "net.h"

/* Memory that copies for one communicator take; zeroed at first. */
struct swc_unexpected_usage {
	atomic_long_t bytes;
};

struct swc_net_seg *swc_unexpected_copy(const struct swc_net_seg *seg, struct swc_unexpected_usage *usage);
void swc_unexpected_free(struct swc_net_seg *seg, struct swc_unexpected_usage *usage);

#endif /* SWC_RDMA_UNEXPECTED_H */

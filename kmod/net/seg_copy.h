/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_NET_SEG_COPY_H
#define SWC_NET_SEG_COPY_H

#include "net.h"

struct swc_account;

/**
 * struct swc_seg_copy_usage - what copies for one communicator take
 * @account: whose it is
 * @bytes: of memory; 0 at first
 */
struct swc_seg_copy_usage {
	struct swc_account *account;
	atomic_long_t bytes;
};

struct swc_net_seg *swc_seg_copy(const struct swc_net_seg *seg, struct swc_seg_copy_usage *usage);
void swc_seg_copy_free(struct swc_net_seg *seg, struct swc_seg_copy_usage *usage);

#endif /* SWC_NET_SEG_COPY_H */

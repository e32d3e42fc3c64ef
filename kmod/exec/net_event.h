/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_NEWS_H
#define SWC_NEWS_H

#include "exec/task.h"

struct swc_dma_item;

void swc_news_early(struct swc_op *op, struct list_head *odd);
void swc_news_odd(struct swc_comm *comm, struct list_head *odd);
void swc_news_deliver(struct swc_comm *comm, struct swc_seg *seg);
void swc_news_sent(struct swc_out *out, int error, bool nested);
void swc_news_moved(const struct swc_dma_item *items, u32 n);
void swc_news_written(struct swc_landing *landing);
void swc_news_landed(struct swc_landing *landing, int error);
void swc_news_wants(struct swc_comm *comm, u32 src, const struct swc_wire_msg *msg);
void swc_news_differs(struct swc_comm *comm, u32 src, const struct swc_wire_msg *msg);

#endif /* SWC_NEWS_H */

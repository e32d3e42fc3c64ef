/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_DMA_EVENT_H
#define SWC_DMA_EVENT_H

#include "dma.h"

/* For swc_dma_init(). */
void swc_dma_event_done(const struct swc_dma_item *items, u32 n);

#endif /* SWC_DMA_EVENT_H */

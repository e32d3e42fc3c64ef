/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_COMPLETION_RING_H
#define SWC_COMPLETION_RING_H

#include <linux/mm_types.h>
#include <linux/poll.h>

#include "swingcoll.h"

struct swc_account;

struct swc_ring *swc_ring_create(unsigned int entries, struct swc_account *account);
void swc_ring_close(struct swc_ring *ring);
void swc_ring_drop_memory(struct swc_ring *ring);
void swc_ring_destroy(struct swc_ring *ring);
int swc_ring_reserve(struct swc_ring *ring);
void swc_ring_unreserve(struct swc_ring *ring);
void swc_ring_post(struct swc_ring *ring, const struct swc_completion *entry);
int swc_ring_wait(struct swc_ring *ring, u32 tail, u32 timeout_ms);
__poll_t swc_ring_poll(struct swc_ring *ring, struct file *file, poll_table *wait);
int swc_ring_mmap(struct swc_ring *ring, struct vm_area_struct *vma, bool user_side);

#endif /* SWC_COMPLETION_RING_H */

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_SLOT_WAIT_H
#define SWC_SLOT_WAIT_H

#include "comm/comm.h"

int swc_slot_wait(struct swc_member *member, const struct swc_slot_wait *wait);
void swc_slot_wake(struct swc_comm *comm);
int swc_slots_mmap(struct swc_comm *comm, struct vm_area_struct *vma);
int swc_state_mmap(struct swc_comm *comm, struct vm_area_struct *vma);

#endif /* SWC_SLOT_WAIT_H */

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_MEMLOCK_H
#define SWC_MEMLOCK_H

#include <linux/mm_types.h>

int swc_memlock_charge(struct mm_struct *mm, u64 npages);
bool swc_memlock_is_short(struct mm_struct *mm, u64 npages);
void swc_memlock_uncharge(struct mm_struct *mm, u64 npages);

#endif /* SWC_MEMLOCK_H */

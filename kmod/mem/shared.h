/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_SHARED_H
#define SWC_SHARED_H

#include <linux/kref.h>

#include "swingcoll.h"

struct mm_struct;
struct swc_account;
struct vm_area_struct;

/**
 * struct swc_shared - memory shared by the kernel and processes
 *
 * The object that it was allocated for has a reference, and so has each mapping: it stays charged until the
 * last mapping has gone, even if the object is freed before.
 *
 * @ref: references
 * @mem: page-aligned; zero at first
 * @npages: its size
 * @account: charged for the pages; NULL: none
 * @mm: address space charged for the pages (RLIMIT_MEMLOCK), pinned by mmgrab(); NULL: none
 */
struct swc_shared {
	struct kref ref;
	void *mem;
	u32 npages;
	struct swc_account *account;
	struct mm_struct *mm;
};

struct swc_shared *swc_shared_alloc(size_t bytes, struct swc_account *account, struct mm_struct *mm);
void swc_shared_put(struct swc_shared *shared);
int swc_shared_mmap(struct swc_shared *shared, struct vm_area_struct *vma);
int swc_shared_mmap_ro(struct swc_shared *shared, struct vm_area_struct *vma);

#endif /* SWC_SHARED_H */

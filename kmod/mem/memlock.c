// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages that are pinned or held for a process, against its RLIMIT_MEMLOCK.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "mem/memlock.h"

/* Is @npages more than the limit of the caller? */
static bool exceeds_limit(u64 npages)
{
	return npages > rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT && !capable(CAP_IPC_LOCK);
}

/**
 * swc_memlock_charge() - count pages that are held for a process against its RLIMIT_MEMLOCK
 *
 * Counts like the RDMA core does, against the limit of the caller. Undone by swc_memlock_uncharge() with the
 * same mm.
 *
 * Return: 0, or -ENOMEM.
 */
int swc_memlock_charge(struct mm_struct *mm, u64 npages)
{
	if (exceeds_limit(atomic64_add_return(npages, &mm->pinned_vm))) {
		swc_memlock_uncharge(mm, npages);
		return -ENOMEM;
	}
	return 0;
}

/* Would swc_memlock_charge() refuse @npages now? For messages. */
bool swc_memlock_is_short(struct mm_struct *mm, u64 npages)
{
	return exceeds_limit(atomic64_read(&mm->pinned_vm) + npages);
}

void swc_memlock_uncharge(struct mm_struct *mm, u64 npages)
{
	atomic64_sub(npages, &mm->pinned_vm);
}

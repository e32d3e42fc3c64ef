// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory shared by the kernel and processes: rings, state pages, slots, progress of partitions.
 *
 * All of it counts in the memory cgroup of the process that made it and in the account of its user, and most
 * of it against RLIMIT_MEMLOCK, as long as it exists.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "mem/account.h"
#include "mem/memlock.h"
#include "mem/shared.h"

static void shared_free(struct kref *ref)
{
	struct swc_shared *s = container_of(ref, struct swc_shared, ref);

	vfree(s->mem);
	if (s->mm) {
		swc_memlock_uncharge(s->mm, s->npages);
		mmdrop(s->mm);
	}
	if (s->account) {
		swc_account_uncharge(s->account, SWC_QUOTA_MEMORY, (u64)s->npages << PAGE_SHIFT);
		swc_account_put(s->account);
	}
	kfree(s);
}

/**
 * swc_shared_alloc() - allocate shared memory, zeroed
 * @bytes: rounded up to whole pages
 * @account: to be charged; or NULL
 * @mm: address space of the caller, to be charged; or NULL
 *
 * Return: memory with one reference; ERR_PTR(-ENOMEM); ERR_PTR(-EDQUOT).
 */
struct swc_shared *swc_shared_alloc(size_t bytes, struct swc_account *account, struct mm_struct *mm)
{
	struct swc_shared *s = kzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!s)
		return ERR_PTR(-ENOMEM);
	kref_init(&s->ref);
	s->npages = DIV_ROUND_UP(bytes, PAGE_SIZE);
	ret = swc_account_charge(account, SWC_QUOTA_MEMORY, (u64)s->npages << PAGE_SHIFT);
	if (ret)
		goto err;
	s->account = swc_account_hold(account);
	ret = -ENOMEM;
	if (mm) {
		if (swc_memlock_charge(mm, s->npages))
			goto err;
		s->mm = mm;
		mmgrab(mm);
	}
	s->mem = __vmalloc((unsigned long)s->npages << PAGE_SHIFT,
			   GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	if (s->mem)
		return s;
err:
	shared_free(&s->ref);
	return ERR_PTR(ret);
}

/* May be NULL. */
void swc_shared_put(struct swc_shared *shared)
{
	if (shared)
		kref_put(&shared->ref, shared_free);
}

/* The mapping has been copied by fork, or split. */
static void vma_open(struct vm_area_struct *vma)
{
	struct swc_shared *s = vma->vm_private_data;

	kref_get(&s->ref);
}

static void vma_close(struct vm_area_struct *vma)
{
	swc_shared_put(vma->vm_private_data);
}

static const struct vm_operations_struct vm_ops = {
	.open = vma_open,
	.close = vma_close,
};

/**
 * swc_shared_mmap() - map shared memory from its first page on
 *
 * Return: 0; -EINVAL for a private mapping, or for one larger than the memory; -ENOMEM.
 */
int swc_shared_mmap(struct swc_shared *shared, struct vm_area_struct *vma)
{
	unsigned long i, n = vma_pages(vma);
	int ret = 0;

	if (!(vma->vm_flags & VM_MAYSHARE) || n > shared->npages)
		return -EINVAL;
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, 0);
	for (i = 0; i < n && !ret; i++)
		ret = vm_insert_page(vma, vma->vm_start + (i << PAGE_SHIFT),
				     vmalloc_to_page(shared->mem + (i << PAGE_SHIFT)));
	if (ret)
		return ret;
	kref_get(&shared->ref);
	vma->vm_private_data = shared;
	vma->vm_ops = &vm_ops;
	return 0;
}

/**
 * swc_shared_mmap_ro() - the same for memory that processes only read; -EPERM for a writable mapping
 */
int swc_shared_mmap_ro(struct swc_shared *shared, struct vm_area_struct *vma)
{
	if (vma->vm_flags & VM_WRITE)
		return -EPERM;
	vm_flags_mod(vma, 0, VM_MAYWRITE);
	return swc_shared_mmap(shared, vma);
}

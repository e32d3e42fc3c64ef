/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every difference between the supported kernels (6.1, 6.12, 7.3), in the newest one's shape.
 * LINUX_VERSION_CODE appears in no other file.
 */
#ifndef SWC_COMPAT_H
#define SWC_COMPAT_H

#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/version.h>

#ifndef CONFIG_64BIT
#error "swingcoll needs a 64-bit kernel: pinned pages are reached through the linear map"
#endif
#ifdef CONFIG_HIGHMEM
#error "swingcoll needs a kernel without HIGHMEM"
#endif

#include <linux/mm.h>
#include <linux/uaccess.h>

/* linux/io_uring/cmd.h: split off in 6.7. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

/* The command payload of an SQE. 6.1 hands over the payload itself. */
static inline const void *swc_compat_cmd_payload(struct io_uring_cmd *cmd)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
	/* The macro checks the size against its 128-byte form. */
	return cmd->sqe->cmd;
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	return io_uring_sqe_cmd(cmd->sqe);
#else
	return cmd->cmd;
#endif
}

/* io_uring_cmd_done32(): since 6.18; before, the done call took both words. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
static inline void io_uring_cmd_done32(struct io_uring_cmd *cmd, s32 ret, u64 res2,
				       unsigned int issue_flags)
{
	io_uring_cmd_done(cmd, ret, res2, issue_flags);
}
#endif

/*
 * SWC_DECLARE_TASK_WORK(name), SWC_TASK_WORK(name): declares, and defines, the task-work callback name(); its
 * body is name_body(cmd, issue_flags). The arguments of the callback changed in 6.19.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define SWC_DECLARE_TASK_WORK(name)							\
static void name(struct io_tw_req tw_req, io_tw_token_t tw)
#define SWC_TASK_WORK(name)								\
static void name(struct io_tw_req tw_req, io_tw_token_t tw)				\
{											\
	name##_body(io_uring_cmd_from_tw(tw_req), IO_URING_CMD_TASK_WORK_ISSUE_FLAGS);	\
}
#else
#define SWC_DECLARE_TASK_WORK(name)							\
static void name(struct io_uring_cmd *cmd, unsigned int issue_flags)
#define SWC_TASK_WORK(name)								\
static void name(struct io_uring_cmd *cmd, unsigned int issue_flags)			\
{											\
	name##_body(cmd, issue_flags);							\
}
#endif

/* Cancellation of commands: since 6.7. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
#define SWC_HAVE_CMD_CANCEL 1
static inline bool swc_compat_is_cancel(unsigned int issue_flags)
{
	return issue_flags & IO_URING_F_CANCEL;
}
#else
#define SWC_HAVE_CMD_CANCEL 0
static inline bool swc_compat_is_cancel(unsigned int issue_flags)
{
	return false;
}

static inline void io_uring_cmd_mark_cancelable(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
}
#endif

/* vm_flags_mod(): since 6.3. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/* FPU sections under one name: linux/fpu.h since 6.10; before, x86 and arm64 had their own. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0) && defined(CONFIG_ARCH_HAS_KERNEL_FPU_SUPPORT)
#include <linux/fpu.h>
#define SWC_HAVE_FPU 1
#elif defined(CONFIG_X86) || defined(CONFIG_UML)
#include <asm/fpu/api.h>
#define SWC_HAVE_FPU 1
#elif defined(CONFIG_ARM64)
#include <asm/neon.h>
#define SWC_HAVE_FPU 1
static inline void kernel_fpu_begin(void)
{
	kernel_neon_begin();
}

static inline void kernel_fpu_end(void)
{
	kernel_neon_end();
}
#else
#error "swingcoll has no FPU sections for this architecture"
#endif
#ifdef CONFIG_ARM64
#include <asm/sysreg.h>
#endif

/*
 * Begin an FPU section that rounds to nearest even and keeps subnormals. x86 sets that itself; arm64 leaves
 * what the last process on this CPU has set. The registers of that process are saved by then, this one
 * included, and loaded again before it goes on.
 */
static inline void swc_fpu_begin(void)
{
	kernel_fpu_begin();
#ifdef CONFIG_ARM64
	write_sysreg(0, fpcr);
#endif
}

static inline void swc_fpu_end(void)
{
	kernel_fpu_end();
}

/* State of BLAKE2s: renamed in 6.19. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define swc_compat_blake2s	blake2s_ctx
#else
#define swc_compat_blake2s	blake2s_state
#endif

/*
 * Grow a table of @n elements of @size bytes to @room elements, charged to the caller. Return: the table,
 * or NULL, and the old one stays. Until 6.12 kvrealloc() wanted the old size.
 */
static inline void *swc_kvgrow(void *table, size_t n, size_t room, size_t size)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	return kvrealloc(table, array_size(room, size), GFP_KERNEL_ACCOUNT);
#else
	return kvrealloc(table, array_size(n, size), array_size(room, size), GFP_KERNEL_ACCOUNT);
#endif
}

/*
 * SWC_UBUF_OPS(name, fn): what zero-copy sends call when a reference on their struct ubuf_info goes; a table
 * since 6.10. swc_compat_ubuf_init(ubuf, name): one reference.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define SWC_UBUF_OPS(name, fn)	static const struct ubuf_info_ops name = { .complete = fn }
#define swc_compat_ubuf_init(ubuf, name) ({						\
	(ubuf)->ops = &(name);								\
	(ubuf)->flags = SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN;			\
	refcount_set(&(ubuf)->refcnt, 1);						\
})
#else
#define SWC_UBUF_OPS(name, fn)								\
static void (*const name)(struct sk_buff *skb, struct ubuf_info *ubuf, bool success) = fn
#define swc_compat_ubuf_init(ubuf, name) ({						\
	(ubuf)->callback = name;							\
	(ubuf)->flags = SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN;			\
	refcount_set(&(ubuf)->refcnt, 1);						\
})
#endif

/*
 * swc_compat_hold_net(sk): a socket of the kernel gets a reference on its network namespace, as those of
 * processes have. A function since 6.15, and in 6.12's later versions.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0) || \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 40) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0))
#define swc_compat_hold_net(sk)	sk_net_refcnt_upgrade(sk)
#else
#define swc_compat_hold_net(sk) ({							\
	(sk)->sk_net_refcnt = 1;							\
	get_net_track(sock_net(sk), &(sk)->ns_tracker, GFP_KERNEL);			\
	sock_inuse_add(sock_net(sk), 1);						\
})
#endif

/* Addresses of kernel_bind() and kernel_connect(): of another type since 6.19. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define SWC_SOCKADDR(addr)	((struct sockaddr_unsized *)(addr))
#else
#define SWC_SOCKADDR(addr)	((struct sockaddr *)(addr))
#endif

#endif /* SWC_COMPAT_H */

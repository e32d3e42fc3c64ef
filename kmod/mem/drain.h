/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Drain to zero: objects of a kind are counted in an atomic_t, and teardown waits until none is left.
 *
 * percpu_ref would cost an RCU grace period at every teardown, and these counts are not contended.
 */
#ifndef SWC_DRAIN_H
#define SWC_DRAIN_H

#include <linux/atomic.h>
#include <linux/wait_bit.h>

/* The waiter may free @count as soon as it is zero: only its address is used after that. */
static inline void swc_drain_put(atomic_t *count)
{
	if (atomic_dec_and_test(count))
		wake_up_var(count);
}

static inline void swc_drain_wait(atomic_t *count)
{
	/* Acquire pairs with the decrement: what was done before it is visible. */
	wait_var_event(count, !atomic_read_acquire(count));
}

/* Return: 0, or -ERESTARTSYS if the caller is being killed. */
static inline int swc_drain_wait_killable(atomic_t *count)
{
	return wait_var_event_killable(count, !atomic_read_acquire(count));
}

#endif /* SWC_DRAIN_H */

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shared slots: memory through which the members of a communicator on this node exchange small messages.
 *
 * The members alone give it meaning, and they can only hurt each other. The kernel does what user space
 * cannot: it sleeps on a word of that memory until it changes, the communicator is aborted, or time is up.
 */
#include <linux/nospec.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>

#include "comm/comm.h"
#include "mem/shared.h"
#include "comm/slot_wait.h"
#include "trace.h"

/* Is the wait over? *ret: its result. */
static bool slot_done(struct swc_comm *comm, const u32 *word, const struct swc_slot_wait *wait, int *ret)
{
	/* Pairs with the full barrier of wake_up: the waker wrote the word before. */
	if (smp_load_acquire(word) != wait->value) {
		*ret = 0;
		return true;
	}
	/* Pairs with swc_comm_abort(): the reason was there before. */
	if (smp_load_acquire(&comm->state_page->aborted)) {
		*ret = READ_ONCE(comm->error);
		return true;
	}
	/* The rank that should change the word has left, so the word never changes. */
	if (wait->suspect < 0 ? READ_ONCE(comm->nleft) :
	    READ_ONCE(comm->member[array_index_nospec(wait->suspect, comm->nranks)].state) >
	    SWC_MEMBER_JOINED) {
		*ret = -ECONNRESET;
		return true;
	}
	return false;
}

/**
 * swc_slot_wait() - sleep until a word of the slots is no longer @wait->value
 *
 * Return: 0; -EINTR on a signal: the caller knows what is left of its time; an error of the communicator,
 * which is aborted when time is up.
 */
int swc_slot_wait(struct swc_member *member, const struct swc_slot_wait *wait)
{
	struct swc_comm *comm = member->comm;
	u32 timeout_ms = wait->timeout_ms ?: comm->timeout_ms;
	u64 waited_ms = (u64)wait->waited_ms + timeout_ms;
	const u32 *word;
	int ret = 0;
	long left;

	if (!comm->slots || (wait->offset & 3) ||
	    (u64)wait->offset + sizeof(*word) > comm->slot_bytes ||
	    wait->suspect < -1 || wait->suspect >= (s64)comm->nranks)
		return -EINVAL;
	word = comm->slots + array_index_nospec(wait->offset, comm->slot_bytes);
	swc_stat_inc(SWC_STAT_SLOT_SLEEPS);
	left = wait_event_interruptible_timeout(comm->slot_wq,
						slot_done(comm, word, wait, &ret),
						msecs_to_jiffies(timeout_ms));
	/* A signal; but a fast timer would always send one: the last millisecond is not interrupted. */
	if (left < 0 && !slot_done(comm, word, wait, &ret)) {
		if (timeout_ms > 1)
			return -EINTR;
		left = 0;
	}
	if (left)
		return ret;
	swc_stat_inc(SWC_STAT_TIMEOUTS);
	if (wait->suspect >= 0) {
		u32 suspect = array_index_nospec(wait->suspect, comm->nranks);
		const struct swc_member *late = &comm->member[suspect];

		swc_comm_abort(comm, -ETIMEDOUT, wait->suspect, 0,
			       "small message: " SWC_RANK_FMT " waited %llu ms for " SWC_MEMBER_FMT,
			       SWC_RANK_ARGS(member), waited_ms, SWC_MEMBER_ARGS(late));
	} else {
		swc_comm_abort(comm, -ETIMEDOUT, -1, 0,
			       "small message: " SWC_RANK_FMT " waited %llu ms; slot_max -1 tells for whom",
			       SWC_RANK_ARGS(member), waited_ms);
	}
	return READ_ONCE(comm->error);
}

void swc_slot_wake(struct swc_comm *comm)
{
	swc_stat_inc(SWC_STAT_SLOT_WAKES);
	wake_up_all(&comm->slot_wq);
}

int swc_slots_mmap(struct swc_comm *comm, struct vm_area_struct *vma)
{
	if (!comm->slots)
		return -EINVAL;
	return swc_shared_mmap(comm->slot_mem, vma);
}

int swc_state_mmap(struct swc_comm *comm, struct vm_area_struct *vma)
{
	return swc_shared_mmap_ro(comm->state_mem, vma);
}

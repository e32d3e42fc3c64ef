/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Small blocking collectives through memory that all ranks of a node share, without system calls.
 * The protocol and the proof that it is right are in slots.c, and for sleeping in slots_wait.c.
 */
#ifndef SWC_SHM_SLOTS_H
#define SWC_SHM_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/swingcoll.h>

/**
 * struct swc_slots_env - how a rank sleeps and wakes others: the kernel's part of the protocol
 * @wait: sleep until the 32-bit word at @offset of the shared memory is not @value, at most
 *	@timeout_ms (0: the communicator's deadline); @suspect is the rank that should change it, and
 *	@waited_ms how long it has been awaited already. 0, -EINTR, or an error of the communicator.
 *	May return early
 * @wake: wake all sleepers, which look at their words again
 * @fail: end the communicator because of rank @other, with the error that this returns: -EPROTO, it has
 *	called another collective, which cannot be mended; -ECONNRESET, it has left, and this rank is far ahead
 */
struct swc_slots_env {
	int (*wait)(void *arg, uint32_t offset, uint32_t value, uint32_t timeout_ms, int suspect,
		    uint32_t waited_ms);
	void (*wake)(void *arg);
	int (*fail)(void *arg, int error, uint32_t other);
};

#define SWC_SLOT_PIECES 8

/* What a blocking call does while it waits, at least every millisecond; @call NULL: nothing. */
struct swc_wait_hook {
	void (*call)(void *arg);
	void *arg;
};

/**
 * struct swc_slots - one rank's view of the shared memory of its communicator
 *
 * Not locked: comm->order covers every call, so that operations get their numbers in the order in
 * which they are submitted.
 *
 * @base: the memory; NULL: no slots
 * @bytes: its size
 * @nranks, @rank: of the communicator
 * @max_bytes: largest contribution of one rank
 * @timeout_ms: deadline of an operation; UINT32_MAX: none
 * @eager: ranks do not wait for others in whose place they could do nothing; see slots.c
 * @hook: what a waiting rank does again and again, or NULL: then it sleeps in the kernel
 * @next: number of the next collective on this communicator
 * @met: all ranks have published every collective below this
 * @owed: all eager collectives of this rank are below this
 * @last_use: by parity and piece, collective that last used this rank's data slot, plus one; 0: never
 * @crowded: there are more ranks than CPUs, by @state
 * @spin_ns: how long to spin without yielding, learned
 * @look_ns: how long to poll before sleeping, learned from @wake_ns
 * @wake_ns: average time that a wake-up takes
 * @state: the kernel's page that says whether the communicator is alive
 * @env, @arg: see above
 */
struct swc_slots {
	char *base;
	size_t bytes;
	uint32_t nranks;
	uint32_t rank;
	size_t max_bytes;
	uint32_t timeout_ms;
	bool eager;
	const struct swc_wait_hook *hook;
	uint64_t next;
	uint64_t met;
	uint64_t owed;
	uint64_t last_use[2][SWC_SLOT_PIECES];
	bool crowded;
	uint64_t spin_ns;
	uint64_t look_ns;
	uint64_t wake_ns;
	const struct swc_comm_state *state;
	const struct swc_slots_env *env;
	void *arg;
};

/* One collective; fields as in struct swc_desc. @bytes: what one rank contributes. */
struct swc_slots_op {
	enum swc_coll coll;
	enum swc_dtype dtype;
	enum swc_redop redop;
	uint32_t root;
	const void *send;
	void *recv;
	uint64_t count;
	size_t bytes;
};

#define SWC_SLOTS_FALLBACK 1

/*
 * Set the geometry for @nranks ranks and contributions of up to @max_bytes, less if that would need
 * too much memory. Returns the size of the shared memory, which depends on these two arguments
 * only.
 */
size_t swc_slots_plan(struct swc_slots *s, uint32_t nranks, uint32_t rank, size_t max_bytes);

/*
 * Use the mapped memory, which is zeroed before the first rank; @state and @eager must be set. -EPROTO if
 * another rank uses another layout, or is eager and this one is not.
 */
int swc_slots_attach(struct swc_slots *s, void *base);

/*
 * Run one collective. 0: done. SWC_SLOTS_FALLBACK: submit it to the kernel, as all other ranks
 * will. Else a negative errno.
 */
int swc_slots_run(struct swc_slots *s, const struct swc_slots_op *op);

/*
 * Publish that this rank's next collective goes through the kernel. Waits for ranks that are far behind in
 * eager collectives. -EAGAIN: too many are in flight, which cannot happen once swc_slots_may_pass() has
 * returned 0. Cannot be undone: call it only when the kernel has the collective.
 */
int swc_slots_may_pass(struct swc_slots *s);
int swc_slots_pass(struct swc_slots *s);

/* Publish that this rank takes part in no further collective. */
void swc_slots_leave(struct swc_slots *s);

#endif /* SWC_SHM_SLOTS_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes plans in the format of the uapi, good and bad ones: nothing is checked. Call testlib_plan_init(), add
 * channels, steps and transfers in order, then testlib_plan_pack(); testlib_plan_free() ends it.
 */
#ifndef TESTLIB_PLAN_H
#define TESTLIB_PLAN_H

#include <linux/swingcoll.h>
#include <stddef.h>
#include <stdint.h>

/* Tests may change the header and the tables before testlib_plan_pack(), and the packed bytes after it. */
struct testlib_plan {
	struct swc_plan_header h;
	struct swc_plan_channel *chan;
	struct swc_plan_step *step;
	struct swc_plan_xfer *xfer;
	void *data; /* the packed plan */
	size_t bytes;
};

/* A header with windows as the collective needs them; shard_blocks: blocks of each shard. */
void testlib_plan_init(struct testlib_plan *p, int coll, uint32_t nranks, uint32_t rank,
		       uint32_t root, uint32_t shard_blocks);
void testlib_plan_channel(struct testlib_plan *p);
/* A step of the last channel; kind: SWC_STEP_*. */
void testlib_plan_step(struct testlib_plan *p, int kind);
/* A source of the last step. In a NET step: a send for a receive that reduces. */
void testlib_plan_send(struct testlib_plan *p, uint32_t rank, int buf, uint32_t first, uint32_t n);
/* In a NET step: a send for a receive that only stores. */
void testlib_plan_send_stored(struct testlib_plan *p, uint32_t rank, int buf, uint32_t first,
			      uint32_t n);
/* A destination of the last step; operand: the buffer to reduce with; flags: SWC_XFER_*. */
void testlib_plan_recv(struct testlib_plan *p, uint32_t rank, int buf, uint32_t first, uint32_t n,
		       int operand, uint32_t flags);
/* Put the tables together in data; may be called again after a change. */
void testlib_plan_pack(struct testlib_plan *p);
void testlib_plan_free(struct testlib_plan *p);

/* Packed plans. Allreduce on one node: a LOCAL step into scratch, a SYNC, a copy; so it is right in place, too. */
void testlib_plan_direct(struct testlib_plan *p, uint32_t nranks, uint32_t rank);
/* Allreduce around a ring, in NET steps. */
void testlib_plan_ring(struct testlib_plan *p, uint32_t nranks, uint32_t rank);
/* A plan of one rank that needs a block of scratch memory for each vector, and no buffers. */
void testlib_plan_scratch(struct testlib_plan *p);
/* A barrier: one SYNC step. */
void testlib_plan_barrier(struct testlib_plan *p, uint32_t nranks, uint32_t rank);
/* The longest one that the module accepts: nothing but SYNC steps. */
#define TESTLIB_LONGEST_STEPS ((SWC_MAX_PLAN_BYTES - 256) / sizeof(struct swc_plan_step))
void testlib_plan_longest(struct testlib_plan *p, uint32_t nranks, uint32_t rank);

#endif /* TESTLIB_PLAN_H */

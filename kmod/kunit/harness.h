/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the suites share: a builder of plans, communicators of kernel threads without user memory, and
 * operations on them. Buffers are scratch regions with handles, so that everything from swc_part_create()
 * on is the module's own code.
 */
#ifndef SWC_KUNIT_HARNESS_H
#define SWC_KUNIT_HARNESS_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/socket.h>

#include "comm/comm.h"
#include "mem/context.h"
#include "exec/worker.h"
#include "exec/operation.h"
#include "exec/request.h"
#include "plan/plan.h"
#include "mem/region.h"
#include "exec/match.h"

/* Since 6.3. */
#ifndef KUNIT_CASE_SLOW
#define KUNIT_CASE_SLOW KUNIT_CASE
#endif

#define SWC_T_RANKS	8
#define SWC_T_CHANNELS	8
#define SWC_T_STEPS	128
#define SWC_T_XFERS	512

/* A plan under construction; swc_t_pack() makes the bytes of it. */
struct swc_t_plan {
	struct swc_plan_header hdr;
	struct swc_plan_channel channels[SWC_T_CHANNELS];
	struct swc_plan_step steps[SWC_T_STEPS];
	struct swc_plan_xfer xfers[SWC_T_XFERS];
};

struct swc_t_plan *swc_t_plan(struct kunit *test, u8 coll, u32 nranks, u32 rank, u32 part_blocks);
void swc_t_channel(struct swc_t_plan *p);
void swc_t_step(struct swc_t_plan *p, u8 kind);
void swc_t_send(struct swc_t_plan *p, u32 rank, u32 block, u32 n, u8 buf);
void swc_t_send_stored(struct swc_t_plan *p, u32 rank, u32 block, u32 n, u8 buf);
void swc_t_recv(struct swc_t_plan *p, u32 rank, u32 block, u32 n, u8 buf, u8 operand, u8 flags);
void swc_t_path(struct swc_t_plan *p, u8 path);
void *swc_t_pack(struct kunit *test, struct swc_t_plan *p, u32 *bytes);

/* Ready-made allreduce plans. */
typedef struct swc_t_plan *(*swc_t_planner)(struct kunit *test, u32 nranks, u32 rank);

struct swc_t_plan *swc_t_direct(struct kunit *test, u32 nranks, u32 rank);
struct swc_t_plan *swc_t_ring(struct kunit *test, u32 nranks, u32 rank);
struct swc_t_plan *swc_t_ring3(struct kunit *test, u32 nranks, u32 rank);	/* three channels */
struct swc_t_plan *swc_t_staged(struct kunit *test, u32 nranks, u32 rank);	/* scratch, barrier */
/* One of two ranks gives its vector to the other, which need not be there yet. */
struct swc_t_plan *swc_t_gift_of_0(struct kunit *test, u32 nranks, u32 rank);
struct swc_t_plan *swc_t_gift_of_1(struct kunit *test, u32 nranks, u32 rank);
/* Rank 0 does not say that its large message is stored: the plans do not meet, and time tells. */
struct swc_t_plan *swc_t_gift_unmarked(struct kunit *test, u32 nranks, u32 rank);

struct swc_t_comm;

struct swc_t_rank {
	struct swc_t_comm *comm;
	struct swc_ctx ctx;
	struct swc_member *member;
	u32 handle;
	u32 rank;
	int joined;
	struct completion join_done;
};

/* Ranks on several nodes, all of them in this kernel: each node gets a struct swc_comm of its own. */
struct swc_t_layout {
	u32 nnodes;
	u32 npaths;		/* between any two nodes, all by the same address */
	bool ipv6;
	u32 node[SWC_T_RANKS];
};

struct swc_t_comm {
	struct kunit *test;
	u32 nranks;
	u32 timeout_ms;
	u8 id[SWC_ID_BYTES];
	struct mm_struct *mm;
	s64 pinned;
	const struct swc_t_layout *on;	/* NULL: one node */
	struct mm_struct *user_mm;	/* has the tables of nodes and paths, */
	unsigned long tables;		/* here */
	struct swc_t_rank rank[SWC_T_RANKS];
};

/* All ranks join from threads of their own. swc_t_comm_end() checks that nothing is left behind. */
struct swc_t_comm *swc_t_comm(struct kunit *test, u32 nranks, u32 timeout_ms);
struct swc_t_comm *swc_t_comm_on(struct kunit *test, u32 nranks, u32 timeout_ms,
				 const struct swc_t_layout *on);
void swc_t_comm_end(struct swc_t_comm *c);
struct swc_comm *swc_t_the(struct swc_t_comm *c);
struct swc_comm *swc_t_of(struct swc_t_comm *c, u32 rank);
void swc_t_addr(struct sockaddr_storage *addr, bool ipv6);

/* The plan's handle; the region's handle. */
u32 swc_t_load(struct swc_t_comm *c, u32 rank, struct swc_t_plan *plan);
u32 swc_t_buffer(struct swc_t_comm *c, u32 rank, u64 bytes);
void *swc_t_at(struct swc_region *region, u64 offset);
struct swc_region *swc_t_region(struct swc_t_comm *c, u32 rank, u32 handle);

/* How one part ended. */
struct swc_t_done {
	struct completion done;
	atomic_t calls;
	int result;
	int culprit;
};

int swc_t_submit(struct swc_t_comm *c, u32 rank, const struct swc_desc *desc, struct swc_t_done *done,
		 bool inline_ok);
/* -ETIME instead of the result if it takes more than two minutes, longer than any deadline. */
int swc_t_result(struct swc_t_done *done);

/* A whole allreduce of u64: one descriptor and one buffer pair per rank, filled and checkable. */
struct swc_t_job {
	struct swc_t_comm *c;
	u64 count;
	struct swc_desc desc[SWC_T_RANKS];
	struct swc_t_done done[SWC_T_RANKS];
};

/* What rank gives. */
u64 swc_t_job_value(u32 rank, u64 i);
struct swc_t_job *swc_t_job_new(struct kunit *test);
void swc_t_job_init(struct swc_t_job *job, struct swc_t_comm *c, swc_t_planner planner, u64 count,
		    bool in_place);
/* For one rank only: the others load no plans. */
void swc_t_job_init_for(struct swc_t_job *job, struct swc_t_comm *c, u32 rank, swc_t_planner planner,
			u64 count);
void swc_t_job_fill(struct swc_t_job *job);
int swc_t_job_submit(struct swc_t_job *job, u32 rank, bool inline_ok);
void swc_t_job_expect(struct swc_t_job *job, int result);
void swc_t_job_check_sum(struct swc_t_job *job);
/* A whole operation; @first is the rank that submits first. */
void swc_t_job_run(struct swc_t_job *job, u32 first, bool inline_ok);

/*
 * Have mappings of memory for devices refused: three of four out of the next @n; all, if it is negative.
 * swc_t_maps_refused(): so many have been.
 */
void swc_t_refuse_maps(int n);
int swc_t_maps_refused(void);
/* The n-th from now on, which leaves 0 here. */
extern atomic_t swc_t_refuse_map;

extern struct kunit_suite swc_plan_suite, swc_blocks_suite, swc_desc_suite, swc_reduce_suite;
extern struct kunit_suite swc_move_suite, swc_ring_suite, swc_exec_suite, swc_op_suite, swc_life_suite;
extern struct kunit_suite swc_wire_suite, swc_links_suite, swc_lies_suite, swc_net_suite, swc_ends_suite;
extern struct kunit_suite swc_dma_suite, swc_dma_faults_suite, swc_dma_pool_suite;

#endif /* SWC_KUNIT_HARNESS_H */

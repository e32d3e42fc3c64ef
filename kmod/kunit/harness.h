/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the suites share: plans, communicators of kernel threads without user memory, and operations on them.
 * Buffers are scratch regions with handles, so that everything from swc_req_create() on is the module's code.
 */
#ifndef SWC_KUNIT_HARNESS_H
#define SWC_KUNIT_HARNESS_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/socket.h>

#include "comm/comm.h"
#include "core/plan_write.h"
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

/* Deadline where none is expected to pass, in ms: no machine is that slow. */
#define SWC_T_NO_DEADLINE	120000
/* A wait of the test itself ends after this many ms, longer than any deadline. */
#define SWC_T_HANG	300000

#define SWC_T_RANKS	8
#define SWC_T_CHANNELS	8
#define SWC_T_STEPS	128
#define SWC_T_XFERS	2048

/*
 * Plans: swc_t_plan() makes a writer with room for this much, and the blocks of the collective;
 * swc_t_pack() makes the bytes that user space would hand in.
 */
struct swc_plan_writer *swc_t_plan(struct kunit *test, u8 coll, u32 nranks, u32 rank, u32 shard_blocks);
void swc_t_send(struct swc_plan_writer *p, u32 rank, u32 block, u32 n, u8 buf);
void swc_t_send_stored(struct swc_plan_writer *p, u32 rank, u32 block, u32 n, u8 buf);
void swc_t_recv(struct swc_plan_writer *p, u32 rank, u32 block, u32 n, u8 buf, u8 operand, u8 flags);
/* One copy of a copy step; all of them are written with this, one after the other. */
void swc_t_copy(struct swc_plan_writer *p, u8 from, u32 from_block, u8 to, u32 to_block, u32 n, u8 flags);
void swc_t_path(struct swc_plan_writer *p, u8 path);
void *swc_t_pack(struct kunit *test, struct swc_plan_writer *p, u32 *bytes);

/* Complete allreduce plans of one rank. */
typedef struct swc_plan_writer *(*swc_t_planner)(struct kunit *test, u32 nranks, u32 rank);

struct swc_plan_writer *swc_t_direct(struct kunit *test, u32 nranks, u32 rank);
struct swc_plan_writer *swc_t_ring(struct kunit *test, u32 nranks, u32 rank);
struct swc_plan_writer *swc_t_ring3(struct kunit *test, u32 nranks, u32 rank);	/* three channels */
/* One step: rank 0 sends so many blocks to rank 1. */
#define SWC_T_MESSAGES	40u
struct swc_plan_writer *swc_t_messages(struct kunit *test, u32 nranks, u32 rank);
struct swc_plan_writer *swc_t_staged(struct kunit *test, u32 nranks, u32 rank);	/* scratch, barrier */
struct swc_plan_writer *swc_t_copied(struct kunit *test, u32 nranks, u32 rank);	/* in copy steps */
/* How often swc_t_copied() copies the vector. */
#define SWC_T_COPIED	3
/* One of two ranks sends its vector to the other, which need not have called yet. */
struct swc_plan_writer *swc_t_send_from_0(struct kunit *test, u32 nranks, u32 rank);
struct swc_plan_writer *swc_t_send_from_1(struct kunit *test, u32 nranks, u32 rank);
/* The same in SWC_T_PARTS messages of one step, which the other rank takes in two steps. */
#define SWC_T_PARTS	4
struct swc_plan_writer *swc_t_send_parts(struct kunit *test, u32 nranks, u32 rank);
/* Rank 0 does not mark its large message SWC_XFER_STORED: rank 1 waits for it until the deadline. */
struct swc_plan_writer *swc_t_send_unmarked(struct kunit *test, u32 nranks, u32 rank);

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

/* Each rank joins from its own thread. swc_t_comm_end() checks that everything was freed. */
struct swc_t_comm *swc_t_comm(struct kunit *test, u32 nranks, u32 timeout_ms);
struct swc_t_comm *swc_t_comm_on(struct kunit *test, u32 nranks, u32 timeout_ms,
				 const struct swc_t_layout *on);
void swc_t_comm_end(struct swc_t_comm *c);
struct swc_comm *swc_t_first_comm(struct swc_t_comm *c);
struct swc_comm *swc_t_rank_comm(struct swc_t_comm *c, u32 rank);
/* By which nodes are connected; RDMA unless a suite changes it. */
extern enum swc_transport_kind swc_t_transport;
void swc_t_addr(struct sockaddr_storage *addr, bool ipv6);

/* They return a plan handle and a region handle. */
u32 swc_t_load(struct swc_t_comm *c, u32 rank, struct swc_plan_writer *plan);
u32 swc_t_buffer(struct swc_t_comm *c, u32 rank, u64 bytes);
void *swc_t_extents_at(const struct swc_extents *extents, u64 offset);
u64 swc_t_extents_bytes(const struct swc_extents *extents);
void *swc_t_at(struct swc_region *region, u64 offset);
struct swc_region *swc_t_region(struct swc_t_comm *c, u32 rank, u32 handle);

/* How one request completed; @calls: how often. */
struct swc_t_done {
	struct completion done;
	atomic_t calls;
	int result;
	int culprit;
};

int swc_t_submit(struct swc_t_comm *c, u32 rank, const struct swc_desc *desc, struct swc_t_done *done,
		 bool inline_ok);
/* Let so much time pass for the time slices of all workers. */
void swc_t_slice_pass(u64 ns);

/* Waits. -ETIME instead of the result after SWC_T_HANG. */
int swc_t_result(struct swc_t_done *done);

/* A whole allreduce of u64: one descriptor and one buffer pair per rank, filled and checkable. */
struct swc_t_job {
	struct swc_t_comm *c;
	u64 count;
	struct swc_desc desc[SWC_T_RANKS];
	struct swc_t_done done[SWC_T_RANKS];
};

/* Element @i of what @rank sends. */
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
 * Let mappings of memory for devices fail: three of four, until @ms after the first of them; all, if @ms is
 * negative. A connection that is refused tries again every second, and gives up after some: not by count,
 * because where several take turns, one of them may get all refusals. swc_t_maps_refused(): how many have
 * failed since.
 */
void swc_t_refuse_maps(int ms);
int swc_t_maps_refused(void);
/* n: the n-th mapping from now on fails; 0: it has. */
extern atomic_t swc_t_refuse_map;

extern struct kunit_suite swc_plan_check_suite, swc_blocks_suite, swc_desc_check_suite, swc_reduce_suite;
extern struct kunit_suite swc_account_suite, swc_user_suite;
extern struct kunit_suite swc_wire_suite, swc_region_suite, swc_reduce_copy_suite, swc_completion_ring_suite;
extern struct kunit_suite swc_worker_suite, swc_operation_suite, swc_comm_teardown_suite, swc_plan_conn_suite;
extern struct kunit_suite swc_dma_suite, swc_dma_faults_suite, swc_dma_pool_suite, swc_dma_calibrate_suite;
extern struct kunit_suite swc_dma_job_suite, swc_dma_cost_suite, swc_recorder_suite;
extern struct kunit_suite swc_adversary_suite, swc_net_suite, swc_net_tcp_suite;
extern struct kunit_suite swc_net_leave_suite, swc_net_teardown_suite;
extern struct kunit_suite swc_net_rndv_suite, swc_net_rndv_tcp_suite;
extern struct kunit_suite swc_seg_copy_suite, swc_failover_suite, swc_path_suite;
extern struct kunit_suite swc_replay_suite, swc_cq_suite;
extern struct kunit_suite swc_waiter_tcp_suite, swc_send_index_suite;

#endif /* SWC_KUNIT_HARNESS_H */

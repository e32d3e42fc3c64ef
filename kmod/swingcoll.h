/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What every file of the module shares: who calls whom, the lock order, and the counters.
 *
 * Calls go one way:
 *
 *	chrdev, ioctl, uring  ->  submit, join  ->  deadline  ->  comm  ->  op  ->  part
 *			submit, news  ->  exec  ->  steps  ->  ready  ->  part
 *			comm  ->  net		steps  ->  move, dma, net
 *			part  ->  region, plan, ring, fault		plan  ->  links  ->  net
 *			comm, parted, ring  ->  shared
 *
 * net.h is the face of rdma/, dma.h of dma/. Upward go only completions (part hands itself, finished, to the
 * function that its submitter left there) and news from other nodes and from engines (struct swc_net_ops and
 * swc_dma_init(), filled in by main.c).
 *
 * Locks, outermost first. None is held over a call that can sleep, but for the mutexes.
 *
 *	listeners_mutex		who hears other nodes (rdma/cm.c)
 *	swc_comms_mutex		list of communicators (comm.c, join.c)
 *	net->lock, conn->lock	connections (rdma/rdma.h); with none of the following
 *	comm->lock		members, sequence numbers, window of operations, status
 *	op->lock		parts, runs, who is running (submit.c, op.c, exec.c, ready.c, steps.c,
 *				carry.c, news.c)
 *	ch->submit, ch->lock	DMA channels (dma/dma.h); with none of the others
 *	ctx->lock		region cache (region.c); xarrays have their own
 *	ring->lock		producer side of a completion ring
 */
#ifndef SWC_SWINGCOLL_H
#define SWC_SWINGCOLL_H

#include <linux/percpu.h>
#include <linux/swingcoll.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct swc_ctx;
struct swc_comm;
struct swc_member;
struct swc_op;
struct swc_part;
struct swc_parted;
struct swc_plan;
struct swc_region;
struct swc_ring;

/* Executes runs and late releases; unbound, so that workers spread over CPUs. */
extern struct workqueue_struct *swc_wq, *swc_urgent_wq;

struct swc_stats_cpu {
	u64 v[SWC_STAT_NR];
};

DECLARE_PER_CPU(struct swc_stats_cpu, swc_stats);

#define swc_stat_add(which, n)	this_cpu_add(swc_stats.v[which], n)
#define swc_stat_inc(which)	this_cpu_inc(swc_stats.v[which])

u64 swc_stat_read(enum swc_stat which);

/* Limits, module parameters of main.c. */
extern unsigned int swc_max_regions;
extern unsigned int swc_max_plans;
/* Plans per rank and communicator, whatever is said. */
#define SWC_PLANS_MOST	0xffffu
extern unsigned int swc_max_comms;
extern unsigned int swc_ring_entries;

#ifdef SWC_KUNIT
/* The tests' way to have a mapping of memory for a device fail. */
bool swc_t_map_refused(void);
#else
static inline bool swc_t_map_refused(void)
{
	return false;
}
#endif

#endif /* SWC_SWINGCOLL_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all files of the module share: its words, the map of calls, the lock order, limits and counters.
 *
 * Words:
 *	context		one open of /dev/swingcoll, bound to the process that opened it
 *	communicator	a group of processes that call collectives in the same order
 *	member, rank	one process of a communicator, on any node; its number there
 *	request		one rank's call of a collective (a submission), until its completion
 *	operation	the requests of this node's ranks for one collective, under one number
 *	matching	putting a request into the operation of its sequence number
 *	partition	one piece of a partitioned operation; itself an operation
 *	plan		what one rank does for one collective by one algorithm, for any vector size
 *	channel		a sequence of steps of a plan; channels progress independently
 *	step		messages with peers (NET), copies and reductions of members' buffers (LOCAL), copies
 *			within a rank's buffers (COPY), or a barrier (SYNC)
 *	shard, block	a rank's share of the vector; a piece of a shard, the unit that plans name
 *	task		the progress of a request through one channel
 *	worker		a context that executes tasks: a submitter, a process that waits, a work item
 *	region		pinned user memory, or scratch memory, that operations read and write
 *	extents		memory as physically contiguous stretches: a region's, or that of receive buffers
 *	message		what one send of a step transfers; between nodes in one or more segments
 *	unexpected	a segment that arrives before its operation has started on this node
 *	rendezvous	(rndv) the sender writes into the receiver's memory once that is ready (RTR)
 *	receive buffer	(rx_buf) memory of a connection, into which other messages arrive; credits count it
 *	slot		memory that the ranks of a node share for small messages, without the kernel
 *	tombstone	what a node remembers of a communicator that has ended, for peers that connect late
 *	offload		to give a copy to a DMA engine
 *	account		what a user has of limited resources: communicators, connections, kernel memory
 *	watchdog	aborts a communicator whose operation has passed its deadline
 *	recorder	keeps the last events of a communicator, and outlives it
 *
 * Map of calls:
 *	main -> dev, exec, comm, plan, mem, rdma, tcp, dma, core, net, globals
 *	dev -> exec, comm, plan, mem, net, core, globals
 *	exec -> comm, plan, mem, dma, net, core, globals
 *	comm -> plan, mem, net, core, globals
 *	plan -> mem, net, core, globals
 *	rdma -> net, mem, core, globals
 *	tcp -> net, mem, core, globals
 *	net -> mem, core, globals
 *	dma -> mem, core, globals
 *	mem -> core, globals
 *	core
 *	globals
 *
 * A room is a folder, or a file of this one. No circle of calls between files. Upward calls go through
 * pointers: tables of functions that main.c fills (struct swc_net_ops, struct swc_comm_ops,
 * swc_dma_init()), and callbacks in objects (swc_req.complete, swc_waiter.complete). Calls from net to a
 * transport go through struct swc_transport.
 *
 * Locks, outermost first. None but the mutexes is held over a call that can sleep.
 *
 *	listeners_mutex, devs_mutex	listening ports, devices (net/listen.c, rdma/device.c)
 *	swc_comms_mutex			tables of communicators (comm/comm.c, comm/create.c)
 *	creations_lock			communicators that are being made (comm/create.c); with no other
 *	users_mutex			users and their work queues (comm/user.c)
 *	recorders_mutex			recordings, also of ended communicators (comm/recorder.c)
 *	partitioned->mutex		start, end and free of rounds (exec/partitioned.c)
 *	plan_net->lock			opening of a plan's connections (plan/plan_conn.c)
 *	nets_mutex			nets that hear of network cards (net/cards.c); under the kernel's RTNL
 *	cq->lock			completions of an RDMA connection; their handlers take what follows
 *	net->lock, conn->lock		connections (net/conn.h); with none of the following
 *	partitioned->lock		waiters for partitions (exec/partitioned.c); likewise
 *	comm->lock			members, sequence numbers, window of operations, status
 *	op->lock			requests and tasks of an operation (exec/)
 *	chan->submit, chan->lock	DMA channels (dma/engine.h); with none of the others
 *	cache->lock			region cache (mem/region_cache.c); xarrays have locks of their own
 *	ctx->freeing_lock		regions that nothing refers to (mem/region.c)
 *	ring->lock			producer side of a completion ring (mem/completion_ring.c)
 *	accounts.xa_lock		table of accounts (mem/account.c)
 */
#ifndef SWC_SWINGCOLL_H
#define SWC_SWINGCOLL_H

#include <linux/errno.h>
#include <linux/percpu.h>
#include <linux/swingcoll.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct swc_ctx;
struct swc_comm;
struct swc_member;
struct swc_op;
struct swc_req;
struct swc_partitioned;
struct swc_plan;
struct swc_region;
struct swc_ring;

/*
 * Housekeeping: swc_wq for what must come in time and is soon done (deadlines, engines, aborts), swc_free_wq
 * for freeing, which may take long. Operations run on the queues of their users (comm/user.h). This waits for
 * them in two places only: who stops an engine, for the task that submits to it (dma/chan.c), and who frees
 * the last communicator of a user, for work items that are just returning.
 */
extern struct workqueue_struct *swc_wq, *swc_free_wq;

struct swc_stats_cpu {
	u64 v[SWC_STAT_NR];
};

DECLARE_PER_CPU(struct swc_stats_cpu, swc_stats);

#define swc_stat_add(which, n)	this_cpu_add(swc_stats.v[which], n)
#define swc_stat_inc(which)	this_cpu_inc(swc_stats.v[which])

u64 swc_stat_read(enum swc_stat which);

/* Limits: module parameters of globals.c. */
extern unsigned int swc_max_regions;
extern unsigned int swc_max_plans;
extern unsigned int swc_max_comms;
extern unsigned int swc_ring_entries;
/* By enum swc_quota: how much a user may have (mem/account.c); memory in MiB, 0: half of the machine's. */
extern unsigned int swc_user_limit[SWC_QUOTA_NR];
extern unsigned int swc_trace_records;
extern unsigned int swc_trace_keep;
extern unsigned int swc_trace_keep_user;
extern unsigned int swc_trace_keep_s;
/* The most that max_plans may be: a CQE has 16 bits for the plan handle. */
#define SWC_PLANS_MOST	0xffffu

/*
 * May a communicator be aborted with this errno? Those from 512 on are internal to the kernel: ERESTARTSYS
 * would restart system calls. Others tell callers to call again, which they would do for ever.
 */
static inline bool swc_may_abort_with(u32 error)
{
	return error && error < 512 && error != EINTR && error != EAGAIN && error != EBUSY && error != ETIME;
}

int swc_param_check(const char *name, u32 value, u32 least, u32 most);
int swc_limits_check(void);

#ifdef SWC_KUNIT
/* Lets a test make a mapping of memory for a device fail. */
bool swc_t_map_refused(void);
#else
static inline bool swc_t_map_refused(void)
{
	return false;
}
#endif

#endif /* SWC_SWINGCOLL_H */

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_PLAN_CONN_H
#define SWC_PLAN_CONN_H

#include <linux/mutex.h>

#include "core/plan_check.h"
#include "swingcoll.h"

struct swc_conn;
struct swc_net;

/* A connection that a plan needs: the messages with one peer, on one channel and path. */
struct swc_plan_conn {
	u32 peer;
	u16 channel;
	u16 path;
	struct swc_conn *conn;	/* once open */
};

/**
 * struct swc_plan_net - what a plan needs of the network
 *
 * Made with the plan, constant but for the connections, which swc_plan_net_open() opens on first use.
 *
 * @lock: guards @open and the opening
 * @open: all connections are there
 * @ordinal: by transfer: how many transfers in the same direction with the same peer precede it on the
 *	channel
 * @conn_of: by transfer: index into @conns, or SWC_NO_CONN: the peer is on this node
 * @fence: by step: the messages of the channel's steps before this one must have left their memory when the
 *	step begins to write, because it overwrites what they carry
 * @free_from: by step: from the beginning of this step on, the channel does not use the memory that the step
 *	receives into, so peers may write into it as soon as @fence allows it
 * @send_window: a task may be so many steps ahead of its messages
 * @rndv_window: memory is offered for so many steps, the current one included
 * @max_sends, @max_recvs: by channel: the most of a network step
 * @nconns: entries of @conns
 */
struct swc_plan_net {
	struct mutex lock;
	bool open;
	u32 *ordinal;
	u32 *conn_of;
	u32 *fence;
	u32 *free_from;
	u32 send_window;
	u32 rndv_window;
	u32 max_sends[SWC_MAX_CHANNELS];
	u32 max_recvs[SWC_MAX_CHANNELS];
	u32 nconns;
	struct swc_plan_conn conns[];
};

#define SWC_NO_CONN		U32_MAX
#define SWC_MAX_SEND_WINDOW	8
#define SWC_MAX_RNDV_WINDOW	4

struct swc_plan_net *swc_plan_net_create(const struct swc_comm *comm, const struct swc_plan_view *view);
u64 swc_plan_net_bytes(const struct swc_plan_view *view);
int swc_plan_net_open(struct swc_plan_net *pnet, struct swc_net *net, u32 me);
void swc_plan_net_free(struct swc_plan_net *pnet);

#endif /* SWC_PLAN_CONN_H */

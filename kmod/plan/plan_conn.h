/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_LINKS_H
#define SWC_LINKS_H

#include <linux/mutex.h>

#include "core/plan_check.h"
#include "swingcoll.h"

struct swc_conn;
struct swc_net;

/* One way in or out of a plan: the messages with one peer, on one channel and path. */
struct swc_link {
	u32 peer;
	u16 channel;
	u16 path;
	struct swc_conn *conn;	/* once open */
};

/**
 * struct swc_links - what connects a plan to other nodes
 *
 * Made with the plan, constant but for the connections, which swc_links_open() makes on first use.
 *
 * @lock: guards @open and the opening
 * @open: all connections are there
 * @ordinal: by transfer: how many transfers in the same direction with the same peer precede it on the
 *	channel
 * @link: by transfer: index into @links, or SWC_NO_LINK: the peer is on this node
 * @fence: by step: the messages of the channel's steps before this one must have left their memory when the
 *	step begins to write, because it overwrites what they carry
 * @early: by step: the memory that the step receives into is not used by the channel from the beginning of
 *	this step on until then, so others may write into it as soon as @fence allows it
 * @ahead: a run may be so many steps ahead of its messages
 * @kept: memory is offered for so many steps, with the current one
 * @nlinks: entries of @links
 */
struct swc_links {
	struct mutex lock;
	bool open;
	u32 *ordinal;
	u32 *link;
	u32 *fence;
	u32 *early;
	u32 ahead;
	u32 kept;
	u32 nlinks;
	struct swc_link links[];
};

#define SWC_NO_LINK	U32_MAX
#define SWC_MAX_AHEAD	8
#define SWC_MAX_KEPT	4

struct swc_links *swc_links_make(const struct swc_comm *comm, const struct swc_plan_view *view);
int swc_links_open(struct swc_links *links, struct swc_net *net, u32 me);
void swc_links_free(struct swc_links *links);

#endif /* SWC_LINKS_H */

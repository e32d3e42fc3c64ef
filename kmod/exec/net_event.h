/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_NET_EVENT_H
#define SWC_NET_EVENT_H

#include "exec/operation.h"

/* match.c: an operation starts. */
void swc_net_event_take_unexpected(struct swc_op *op, struct list_head *unmatched);
void swc_net_event_refuse(struct swc_comm *comm, struct list_head *unmatched);

/* For struct swc_net_ops. */
void swc_net_event_drop_unexpected(struct swc_comm *comm);
void swc_net_event_segment(struct swc_comm *comm, struct swc_net_seg *seg);
void swc_net_event_sent(struct swc_send *send, int error, bool nested);
void swc_net_event_rndv_done(struct swc_rndv *rndv);
void swc_net_event_rndv_closed(struct swc_rndv *rndv, int error);
void swc_net_event_rts(struct swc_comm *comm, u32 src, const struct swc_wire_msg *msg);
void swc_net_event_mismatch(struct swc_comm *comm, u32 src, const struct swc_wire_msg *msg);

#endif /* SWC_NET_EVENT_H */

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_COMM_H
#define SWC_COMM_H

#include <linux/mutex.h>

#include "exec/task.h"

int swc_comm_leave(struct swc_ctx *ctx, u32 handle);
void swc_comm_abort(struct swc_comm *comm, int error, int culprit, u64 seq, const char *fmt, ...)
	__printf(5, 6);
void swc_comms_drain(void);
struct swc_comm *swc_comm_by_name(const u8 *name, u32 rank);
void swc_comm_lost(struct swc_comm *comm, int error, int culprit, u64 seq, const char *text);
void swc_comm_peer_left(struct swc_comm *comm, u32 rank, u64 seq);
void swc_comm_peer_came(struct swc_comm *comm, u32 rank, u64 n);
struct swc_member *swc_member_get(struct swc_ctx *ctx, u32 handle);
void swc_member_died(struct swc_member *member, const char *how);
void swc_comm_note_gone(struct swc_comm *comm, u64 seq);
void swc_comms_of_ctx_died(struct swc_ctx *ctx, const char *how);
void swc_comms_of_ctx_drop(struct swc_ctx *ctx);

/* join.c looks for one and adds another, all under the mutex. */
extern struct list_head swc_comms;
extern struct mutex swc_comms_mutex;
bool swc_comm_set_status(struct swc_comm *comm, int from, int to);
void swc_comm_free(struct work_struct *work);

/* query.c goes through all communicators under the mutex of comm.c. */
struct swc_comm *swc_comm_after(u64 *cursor);
bool swc_comm_visible(const struct swc_comm *comm);

#endif /* SWC_COMM_H */

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_PARTED_H
#define SWC_PARTED_H

#include "swingcoll.h"

struct swc_comm;
struct swc_part_init;
struct vm_area_struct;

/**
 * struct swc_waiter - somebody who waits for partitions and does not sleep
 *
 * @node: in parted->waiters, or unhashed; under parted->lock
 * @parted: what it waits for, with a reference; NULL when it has been told
 * @result: when it is told, as swc_parted_wait() returns it
 */
struct swc_waiter {
	struct hlist_node node;
	struct swc_parted *parted;
	int result;
};

int swc_parted_create(struct swc_ctx *ctx, struct swc_part_init *init);
struct swc_parted *swc_parted_get(struct swc_ctx *ctx, u32 handle);
void swc_parted_put(struct swc_parted *parted);
int swc_parted_start(struct swc_parted *parted);
int swc_parted_kick(struct swc_parted *parted);
int swc_parted_wait(struct swc_parted *parted, u32 partition, u32 timeout_ms);
int swc_parted_watch(struct swc_waiter *waiter, u32 partition);
bool swc_parted_unwatch(struct swc_waiter *waiter);
int swc_parted_free(struct swc_ctx *ctx, u32 handle);
int swc_parted_mmap(struct swc_parted *parted, struct vm_area_struct *vma);
void swc_parteds_drop(struct swc_ctx *ctx);
void swc_parteds_ended(struct swc_comm *comm);

/* uring.c: tells a waiter; any context. */
void swc_uring_waited(struct swc_waiter *waiter);

#endif /* SWC_PARTED_H */

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_PARTITIONED_H
#define SWC_PARTITIONED_H

#include "swingcoll.h"

struct swc_comm;
struct swc_partitioned_init;
struct vm_area_struct;

/**
 * struct swc_waiter - waits for partitions without sleeping
 *
 * @node: in partitioned->waiters, or unhashed (node.pprev is NULL); under partitioned->lock
 * @result: once it is unhashed: for @complete, as swc_partitioned_wait() returns it. The struct has to fit
 *	into the 32 bytes that io_uring gives a command.
 * @partitioned: what it waits for, with a reference; NULL when it has been completed
 * @complete: completes the wait; any context, under partitioned->lock
 */
struct swc_waiter {
	union {
		struct hlist_node node;
		int result;	/* in the place of node.next */
	};
	struct swc_partitioned *partitioned;
	void (*complete)(struct swc_waiter *waiter);
};

int swc_partitioned_create(struct swc_ctx *ctx, struct swc_partitioned_init *init);
struct swc_partitioned *swc_partitioned_get(struct swc_ctx *ctx, u32 handle);
void swc_partitioned_put(struct swc_partitioned *partitioned);
int swc_partitioned_start(struct swc_partitioned *partitioned);
int swc_partitioned_kick(struct swc_partitioned *partitioned);
int swc_partitioned_wait(struct swc_partitioned *partitioned, u32 partition, u32 timeout_ms);
int swc_partitioned_add_waiter(struct swc_waiter *waiter, u32 partition);
bool swc_partitioned_del_waiter(struct swc_waiter *waiter);
int swc_partitioned_free(struct swc_ctx *ctx, u32 handle);
int swc_partitioned_mmap(struct swc_partitioned *partitioned, struct vm_area_struct *vma);
void swc_partitioned_drop_all(struct swc_ctx *ctx);

#endif /* SWC_PARTITIONED_H */

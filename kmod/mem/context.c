// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts: who may call, and the count of users that decides when a context that has ended is cleaned up.
 */
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "mem/context.h"
#include "mem/region.h"

/**
 * swc_ctx_init() - initialise a zeroed context, all but its owner and its ring
 * @clean: work function: frees all that the context owns
 */
void swc_ctx_init(struct swc_ctx *ctx, work_func_t clean)
{
	xa_init_flags(&ctx->members, XA_FLAGS_ALLOC1);
	xa_init_flags(&ctx->partitioned_ops, XA_FLAGS_ALLOC1);
	swc_region_ctx_init(ctx);
	atomic_set(&ctx->users, 1);
	init_completion(&ctx->idle);
	INIT_WORK(&ctx->clean_work, clean);
}

/**
 * swc_ctx_enter() - begin a call
 *
 * Return: 0, and the call ends with swc_ctx_put(); -EPERM if the caller is not the process that opened the
 * device, or has executed another program since; -EBADF if the context has ended.
 */
int swc_ctx_enter(struct swc_ctx *ctx)
{
	if (current->mm != ctx->mm || task_tgid(current) != ctx->owner)
		return -EPERM;
	if (!atomic_inc_not_zero(&ctx->users))
		return -EBADF;
	if (!swc_ctx_has_ended(ctx))
		return 0;
	swc_ctx_put(ctx);
	return -EBADF;
}

/**
 * swc_ctx_put() - a user is gone; does not sleep
 */
void swc_ctx_put(struct swc_ctx *ctx)
{
	if (!atomic_dec_and_test(&ctx->users))
		return;
	queue_work(swc_free_wq, &ctx->clean_work);
	/* Last: the release may free the context as soon as it sees this. */
	complete(&ctx->idle);
}

/**
 * swc_ctx_set_ended() - let no call begin any more
 *
 * Return: true for the first caller, who puts the context's own use when it has aborted the communicators.
 */
bool swc_ctx_set_ended(struct swc_ctx *ctx)
{
	return !xchg(&ctx->ended, 1);
}

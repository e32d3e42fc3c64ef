// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loading plans: one copy from user space, one verification, then read-only until the last reference is put.
 * Plans belong to a member; its handle table has a lock of its own.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "comm/comm.h"
#include "compat.h"
#include "mem/account.h"
#include "mem/context.h"
#include "mem/handle.h"
#include "mem/region.h"
#include "plan/plan.h"
#include "plan/send_index.h"
#include "trace.h"

static void plan_release(struct kref *ref)
{
	struct swc_plan *plan = container_of(ref, struct swc_plan, ref);

	swc_plan_net_free(plan->net);
	kvfree(plan->send_index);
	kvfree(plan->data);
	swc_account_uncharge(plan->account, SWC_QUOTA_MEMORY, plan->charged);
	swc_account_put(plan->account);
	kfree(plan);
}

void swc_plan_put(struct swc_plan *plan)
{
	if (plan)
		kref_put(&plan->ref, plan_release);
}

/* @n bytes more of the memory of the loader, whose context is @ctx, for as long as the plan exists. */
static int plan_charge(struct swc_plan *plan, struct swc_ctx *ctx, u64 n)
{
	int ret = swc_region_charge_memory(ctx, plan->account, n);

	if (!ret)
		plan->charged += n;
	return ret;
}

static struct swc_plan *plan_copy(const struct swc_plan_load *load, struct swc_ctx *ctx)
{
	struct swc_plan *plan = kzalloc(sizeof(*plan), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!plan)
		return ERR_PTR(-ENOMEM);
	kref_init(&plan->ref);
	plan->account = swc_account_hold(ctx->account);
	ret = plan_charge(plan, ctx, sizeof(*plan) + load->bytes);
	if (ret)
		goto err_put;
	ret = -ENOMEM;
	plan->data = kvmalloc(load->bytes, GFP_KERNEL_ACCOUNT);
	if (!plan->data)
		goto err_put;
	ret = -EFAULT;
	if (copy_from_user(plan->data, u64_to_user_ptr(load->data), load->bytes))
		goto err_put;
	return plan;

err_put:
	swc_plan_put(plan);
	return ERR_PTR(ret);
}

/* Do local steps name only ranks of this node? */
static int local_steps_fit(const struct swc_plan_view *v, const struct swc_comm *comm, char *why)
{
	u32 i, k;

	for (i = 0; i < v->hdr->nsteps; i++) {
		const struct swc_plan_step *s = &v->steps[i];

		if (s->kind != SWC_STEP_LOCAL)
			continue;
		for (k = s->first_xfer; k < s->first_xfer + s->nsend + s->nrecv; k++) {
			if (swc_comm_is_local(comm, v->xfers[k].rank))
				continue;
			snprintf(why, SWC_TEXT_BYTES,
				 "step %u: a local step names rank %u, which is on another node", i,
				 v->xfers[k].rank);
			return -EINVAL;
		}
	}
	return 0;
}

/* Refuse now what could not be opened later: a plan that needs more connections than its user may have. */
static int conns_fit(const struct swc_plan *plan, const struct swc_comm *comm)
{
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < plan->net->nconns; i++) {
		const struct swc_plan_conn *conn = &plan->net->conns[i];

		bytes += swc_net_conn_bytes(comm->net, comm->rank_node[conn->peer], conn->path);
	}
	return swc_account_check(comm->account, SWC_QUOTA_CONNS, plan->net->nconns) ?:
	       swc_account_check(comm->account, SWC_QUOTA_MEMORY, bytes);
}

/* Have what receivers on this node find sends by. */
static int index_sends(struct swc_plan *plan, struct swc_ctx *ctx, char *why)
{
	int ret;

	if (!plan->view.max_sends)
		return 0;
	ret = plan_charge(plan, ctx, swc_send_index_bytes(&plan->view));
	if (ret) {
		swc_account_explain(plan->account, why, SWC_TEXT_BYTES);
		return ret;
	}
	plan->send_index = swc_send_index_create(&plan->view);
	return plan->send_index ? 0 : -ENOMEM;
}

/* Is the plan for this rank of this communicator? */
static int plan_fits(struct swc_plan *plan, const struct swc_member *member, char *why)
{
	const struct swc_plan_header *h = plan->view.hdr;
	const struct swc_comm *comm = member->comm;
	int ret;

	if (h->nranks != comm->nranks || h->rank != member->rank) {
		snprintf(why, SWC_TEXT_BYTES,
			 "header: plan of rank %u of %u, but this is rank %u of %u",
			 h->rank, h->nranks, member->rank, comm->nranks);
		return -EINVAL;
	}
	if (!comm->net)
		return 0;
	ret = local_steps_fit(&plan->view, comm, why);
	if (ret)
		return ret;
	ret = plan_charge(plan, member->ctx, swc_plan_net_bytes(&plan->view));
	if (ret) {
		swc_account_explain(plan->account, why, SWC_TEXT_BYTES);
		return ret;
	}
	plan->net = swc_plan_net_create(comm, &plan->view);
	if (IS_ERR(plan->net)) {
		ret = PTR_ERR(plan->net);
		plan->net = NULL;
	} else {
		ret = conns_fit(plan, comm);
		if (ret)
			swc_account_explain(comm->account, why, SWC_TEXT_BYTES);
	}
	if (ret == -EHOSTUNREACH)
		snprintf(why, SWC_TEXT_BYTES,
			 "a peer is on a node to which the communicator was given no path");
	return ret;
}

/**
 * swc_plan_load() - copy, verify and keep a plan for one member
 * @member: the member
 * @load: arguments; the handle or the reason of a refusal is filled in
 *
 * Return: 0 or the errors of struct swc_plan_load.
 */
int swc_plan_load(struct swc_member *member, struct swc_plan_load *load)
{
	struct swc_plan *plan;
	int ret;

	if (load->bytes < sizeof(struct swc_plan_header) || load->bytes > SWC_MAX_PLAN_BYTES) {
		snprintf(load->text, sizeof(load->text), "header: a plan has %zu to %u bytes",
			 sizeof(struct swc_plan_header), SWC_MAX_PLAN_BYTES);
		return -EINVAL;
	}
	if (atomic_inc_return(&member->nplans) > swc_max_plans) {
		ret = -ENOSPC;
		goto err_count;
	}
	plan = plan_copy(load, member->ctx);
	if (IS_ERR(plan)) {
		ret = PTR_ERR(plan);
		if (ret == -EDQUOT)
			swc_account_explain(member->ctx->account, load->text, sizeof(load->text));
		goto err_count;
	}
	ret = swc_plan_check(plan->data, load->bytes, &plan->view, load->text, sizeof(load->text));
	if (!ret)
		ret = plan_fits(plan, member, load->text);
	if (!ret)
		ret = index_sends(plan, member->ctx, load->text);
	if (ret) {
		swc_stat_inc(SWC_STAT_PLANS_REFUSED);
		goto err_put;
	}
	/* Another thread may guess the handle and unload the plan at once: keep a reference until the end. */
	kref_get(&plan->ref);
	ret = xa_alloc(&member->plans, &plan->handle, plan, XA_LIMIT(1, SWC_PLANS_MOST),
		       GFP_KERNEL_ACCOUNT);
	if (ret) {
		swc_plan_put(plan);
		goto err_put;
	}
	load->plan = plan->handle;
	swc_stat_inc(SWC_STAT_PLANS_LOADED);
	trace_swc_plan_load(member, plan);
	swc_plan_put(plan);
	return 0;

err_put:
	swc_plan_put(plan);
err_count:
	atomic_dec(&member->nplans);
	return ret;
}

int swc_plan_unload(struct swc_member *member, u32 handle)
{
	struct swc_plan *plan = xa_erase(&member->plans, handle);

	if (!plan)
		return -ENOENT;
	atomic_dec(&member->nplans);
	swc_plan_put(plan);
	return 0;
}

void swc_plan_unload_all(struct swc_member *member)
{
	struct swc_plan *plan;
	unsigned long handle;

	xa_for_each(&member->plans, handle, plan) {
		swc_plan_unload(member, handle);
		cond_resched();
	}
}

static void get_ref(void *object)
{
	kref_get(&((struct swc_plan *)object)->ref);
}

struct swc_plan *swc_plan_get(struct swc_member *member, u32 handle)
{
	return swc_handle_get(&member->plans, handle, get_ref);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which algorithm, and the plans that the kernel already has: a small table per communicator, made
 * on first use. Under comm->order. Every rank must choose alike, so the choice depends on nothing
 * but what all ranks know; whether the call is in place is not part of it, only of which variant of
 * the plan is loaded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan_check.h"
#include "priv.h"

/*
 * Up to here it is quicker that every rank reads everything than that it waits for others' results.
 */
#define DIRECT1_MAX_BYTES 4096

static enum swc_algo choose(const struct swingcoll_comm *comm, uint64_t bytes)
{
	(void)comm;
	return bytes <= DIRECT1_MAX_BYTES ? SWC_ALGO_DIRECT1 : SWC_ALGO_DIRECT2;
}

static void move_to_front(struct swc_plans *plans, unsigned int i)
{
	struct swc_loaded_plan e = plans->entry[i];

	memmove(plans->entry + 1, plans->entry, i * sizeof(e));
	plans->entry[0] = e;
}

static void unload(struct swingcoll_comm *comm, const struct swc_loaded_plan *e)
{
	for (int i = 0; i < 2; i++) {
		struct swc_plan_unload u = { .comm = comm->handle, .plan = e->handle[i] };

		if (u.plan && (!i || u.plan != e->handle[0]))
			swc_context_ioctl(comm->ctx, SWC_IOC_PLAN_UNLOAD, &u);
	}
}

/* The entry for a plan, empty if it is new; the least recently used one makes room. */
static struct swc_loaded_plan *lookup(struct swingcoll_comm *comm, enum swc_coll coll,
				      enum swc_algo algo, uint32_t root)
{
	struct swc_plans *p = &comm->plans;
	unsigned int i;

	for (i = 0; i < p->n; i++) {
		struct swc_loaded_plan *e = &p->entry[i];

		if (e->coll == coll && e->algo == algo && e->root == root) {
			if (i)
				move_to_front(p, i);
			return p->entry;
		}
	}
	if (p->n == SWC_PLANS_CACHED)
		unload(comm, &p->entry[--p->n]);
	p->entry[p->n] = (struct swc_loaded_plan){ .coll = (uint8_t)coll,
						   .algo = (uint8_t)algo,
						   .root = root };
	move_to_front(p, p->n++);
	return p->entry;
}

static int load(struct swingcoll_comm *comm, struct swc_loaded_plan *e, bool in_place)
{
	struct swc_plan_args args = {
		.coll = e->coll,
		.algo = e->algo,
		.nranks = comm->nranks,
		.rank = comm->rank,
		.root = e->root,
		.nlocal = comm->nranks,
		.in_place = in_place,
	};
	struct swc_plan_load l = { .comm = comm->handle };
	bool only_disjoint;
	size_t bytes;
	void *plan;
	int ret = swc_plan_build(&args, &plan, &bytes);

	if (ret)
		return ret;
	l.bytes = (uint32_t)bytes;
	l.data = (uintptr_t)plan;
	ret = swc_context_ioctl(comm->ctx, SWC_IOC_PLAN_LOAD, &l);
	/* The kernel has no room: forget all others. */
	if (ret == -ENOSPC && comm->plans.n > 1) {
		while (comm->plans.n > 1)
			unload(comm, &comm->plans.entry[--comm->plans.n]);
		ret = swc_context_ioctl(comm->ctx, SWC_IOC_PLAN_LOAD, &l);
	}
	only_disjoint = ((struct swc_plan_header *)plan)->flags & SWC_PLAN_NOT_IN_PLACE;
	free(plan);
	if (ret) {
		l.text[sizeof(l.text) - 1] = 0;
		return swc_comm_fail(comm, ret, "loading the plan %s: %s", swc_algo_name(args.algo),
				     ret == -EINVAL ? l.text : swingcoll_strerror(ret));
	}
	if (l.plan < sizeof(comm->plans.algo_of))
		__atomic_store_n(&comm->plans.algo_of[l.plan], (uint8_t)(e->algo + 1),
				 __ATOMIC_RELAXED);
	e->handle[in_place] = l.plan;
	if (!in_place && !only_disjoint)
		e->handle[1] = l.plan;
	return 0;
}

static int get(struct swingcoll_comm *comm, enum swc_coll coll, enum swc_algo algo, uint32_t root,
	       bool in_place, uint32_t *handle)
{
	struct swc_loaded_plan *e = lookup(comm, coll, algo, root);
	int ret = 0;

	/* The variant for disjoint buffers first: mostly it serves both. */
	if (!e->handle[0])
		ret = load(comm, e, false);
	if (!ret && !e->handle[in_place])
		ret = load(comm, e, in_place);
	*handle = e->handle[in_place];
	return ret;
}

int swc_plans_get(struct swingcoll_comm *comm, enum swc_coll coll, uint32_t root, bool in_place,
		  uint64_t bytes, uint32_t *handle)
{
	enum swc_algo algo = comm->algo >= 0 ? (enum swc_algo)comm->algo : choose(comm, bytes);
	int ret;

	if (!swc_coll_has_root((uint8_t)coll))
		root = 0;
	ret = get(comm, coll, algo, root, in_place, handle);
	/* Not every algorithm has every collective. */
	if (ret == -EOPNOTSUPP)
		ret = get(comm, coll, SWC_ALGO_DIRECT2, root, in_place, handle);
	return ret;
}

/* The kernel hands out the lowest free handle, so they stay well below the table's size. */
const char *swc_plans_algo(const struct swc_plans *plans, uint32_t handle)
{
	uint8_t algo = 0;

	if (handle < sizeof(plans->algo_of))
		algo = __atomic_load_n(&plans->algo_of[handle], __ATOMIC_RELAXED);
	return algo ? swc_algo_name(algo - 1u) : "?";
}

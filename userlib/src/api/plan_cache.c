// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The plans of a communicator: choice of the algorithm, and a small table of the plans that the
 * kernel has, filled on first use. Every rank must choose alike, so the choice depends only on what
 * all ranks know. Whether a call is in place is not part of it: that selects which variant of the
 * plan is loaded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "kmod/core/reduce.h"
#include "plan/forest/algorithm.h"
#include "plan/without_copies.h"
#include "src/files.h"
#include "src/priv.h"

#define FILE_PREFIX "file:"

/* ---- options ---- */

static int init_topo(struct swc_topo *topo, const char *text, uint32_t nranks, char *why,
		     size_t why_bytes)
{
	int ret;

	if (text) {
		ret = swc_file_topo(topo, text, why, why_bytes);
		if (ret || topo->nranks == nranks)
			return ret;
		snprintf(why, why_bytes, "topology %s has %u ranks, the communicator %u", text,
			 topo->nranks, nranks);
		return -EINVAL;
	}
	*topo = swc_topo_flat(1);
	topo->nlocal = topo->nranks = nranks;
	return 0;
}

static void describe_algos(const char *algo, char *why, size_t why_bytes)
{
	const char *name;
	int used;

	for (int i = 0; (name = swc_algo_name(i)); i++) {
		size_t len = strlen(name);

		if (strncmp(algo, name, len) || algo[len] != ':')
			continue;
		if (swc_algo_info(i)->param)
			snprintf(why, why_bytes, "algorithm %s: the number behind the colon is %s",
				 algo, swc_algo_info(i)->param);
		else
			snprintf(why, why_bytes, "algorithm %s: %s takes no number", algo, name);
		return;
	}
	used = snprintf(why, why_bytes,
			"unknown algorithm %.15s: choose auto, file:PATH, forest or", algo);
	for (int i = 0; (name = swc_algo_name(i)) && used >= 0 && (size_t)used < why_bytes; i++)
		used += snprintf(why + used, why_bytes - (size_t)used, " %s", name);
}

/* Measured figures of links replace those of the topology. */
static int read_tuning(struct swc_plans *p, const char *path, struct swc_tuning *tuning, char *why,
		       size_t why_bytes)
{
	int ret = swc_file_tuning(tuning, path, &p->topo, why, why_bytes);

	return ret ? ret : swc_tuning_links(tuning, &p->topo);
}

int swc_plans_init(struct swc_plans *p, const struct swingcoll_comm_opts *o, uint32_t nranks,
		   uint32_t nlocal, char *why, size_t why_bytes)
{
	const char *algo = o && o->algo ? o->algo : "auto";
	int ret = init_topo(&p->topo, o ? o->topo : NULL, nranks, why, why_bytes);
	struct swc_tuning tuning = { 0 };
	uint32_t pieces;

	if (ret)
		return ret;
	if (!strncmp(algo, FILE_PREFIX, strlen(FILE_PREFIX))) {
		p->pick = SWC_PICK_FILE;
		p->file = strdup(algo + strlen(FILE_PREFIX));
		return p->file ? 0 : -ENOMEM;
	}
	if (swc_forest_parse(algo, &pieces)) {
		p->pick = SWC_PICK_FOREST;
		p->param = (int32_t)pieces;
	} else if (strcmp(algo, "auto")) {
		ret = swc_algo_parse(algo, &p->param);
		if (ret < 0) {
			describe_algos(algo, why, why_bytes);
			return ret;
		}
		p->pick = SWC_PICK_ALGO;
		p->algo = (enum swc_algo)ret;
		/* split depends on the rates of links. */
		ret = o->tuning && swc_algo_info(p->algo)->pieces
			      ? read_tuning(p, o->tuning, &tuning, why, why_bytes)
			      : 0;
		swc_tuning_free(&tuning);
		return ret;
	}
	if (o && o->tuning)
		ret = read_tuning(p, o->tuning, &tuning, why, why_bytes);
	swc_choices_init(&p->choices, &p->topo, o && o->flags & SWINGCOLL_ALLOW_REORDER);
	p->choices.nlocal = nlocal;
	p->choices.tuning = tuning;
	return ret;
}

/* ---- names ---- */

struct swc_name {
	struct swc_name *next;
	char text[SWC_NAME_BYTES];
};

static const char *keep_name(struct swc_plans *p, const char *text)
{
	struct swc_name *n;

	for (n = p->names; n; n = n->next)
		if (!strncmp(n->text, text, sizeof(n->text) - 1))
			return n->text;
	n = calloc(1, sizeof(*n));
	if (!n)
		return "?";
	memcpy(n->text, text, strnlen(text, sizeof(n->text) - 1));
	n->next = p->names;
	p->names = n;
	return n->text;
}

void swc_plans_free(struct swc_plans *p)
{
	while (p->names) {
		struct swc_name *n = p->names;

		p->names = n->next;
		free(n);
	}
	swc_choices_free(&p->choices);
	swc_topo_free(&p->topo);
	free(p->file);
}

/* The kernel assigns the lowest free handle, so handles stay well below the table's size. */
const char *swc_plans_algo(const struct swc_plans *p, uint32_t handle)
{
	const char *name = NULL;

	if (handle < sizeof(p->name_of) / sizeof(p->name_of[0]))
		name = __atomic_load_n(&p->name_of[handle], __ATOMIC_ACQUIRE);
	return name ? name : "?";
}

/* ---- the table ---- */

static void move_to_front(struct swc_plans *plans, unsigned int i)
{
	struct swc_loaded_plan e = plans->entry[i];

	memmove(plans->entry + 1, plans->entry, i * sizeof(e));
	plans->entry[0] = e;
}

static void unload(struct swingcoll_comm *comm, const struct swc_loaded_plan *e)
{
	for (int i = 0; i < SWC_VARIANTS; i++) {
		struct swc_plan_unload u = { .comm = comm->handle, .plan = e->handle[i] };

		if (u.plan && (!i || u.plan != e->handle[SWC_DISJOINT]))
			swc_context_ioctl(comm->ctx, SWC_IOC_PLAN_UNLOAD, &u);
	}
}

/*
 * Unload all entries but the first @n. The kernel takes a plan by its handle when it gets the operation,
 * and gives the handle of an unloaded plan to the next one: so what other threads have queued goes first.
 */
static int unload_all_but(struct swingcoll_comm *comm, unsigned int n)
{
	int ret = swc_reaper_push(comm->reaper);

	while (!ret && comm->plans.n > n)
		unload(comm, &comm->plans.entry[--comm->plans.n]);
	return ret;
}

/*
 * The entry for a plan becomes the first; it is empty if it is new, and then replaces the least recently
 * used one if the table is full.
 */
static int lookup(struct swingcoll_comm *comm, const struct swc_loaded_plan *key)
{
	struct swc_plans *p = &comm->plans;
	unsigned int i;
	int ret;

	for (i = 0; i < p->n; i++) {
		struct swc_loaded_plan *e = &p->entry[i];

		if (e->coll == key->coll && e->algo == key->algo && e->uneven == key->uneven &&
		    e->param == key->param && e->ports == key->ports && e->root == key->root) {
			if (i)
				move_to_front(p, i);
			return 0;
		}
	}
	ret = p->n == SWC_PLANS_CACHED ? unload_all_but(comm, p->n - 1) : 0;
	if (ret)
		return ret;
	p->entry[p->n] = *key;
	move_to_front(p, p->n++);
	return 0;
}

/* ---- loading ---- */

/* Read this rank's plan from the communicator's plan file, if that is for this collective. */
static int read_plan(const struct swingcoll_comm *comm, const struct swc_loaded_plan *e,
		     void **plan, size_t *bytes, char *why, size_t why_bytes)
{
	const struct swc_plan_header *h;
	int ret = swc_file_plan(comm->plans.file, comm->nranks, comm->rank, e->uneven, plan, bytes,
				why, why_bytes);

	if (ret)
		return ret;
	h = *plan;
	if (h->coll == e->coll && h->root == e->root)
		return 0;
	snprintf(why, why_bytes, "%s is for %s with root %u, not for %s with root %u",
		 comm->plans.file, swingcoll_coll_name((enum swingcoll_coll)h->coll), h->root,
		 swingcoll_coll_name((enum swingcoll_coll)e->coll), e->root);
	free(*plan);
	*plan = NULL;
	return -EOPNOTSUPP;
}

/* The plan of a forest, or why there is none. */
static int build_forest(struct swingcoll_comm *comm, const struct swc_plan_args *args, void **plan,
			size_t *bytes, char *why, size_t why_bytes)
{
	const struct swc_trees *t = swc_choices_trees(&comm->plans.choices, args->coll, args->root);

	if (!t)
		return swc_forest_plan(args, 0, plan, bytes, why, why_bytes);
	return swc_forest_plan_of(t, args->topo, (uint32_t)args->param, args->rank, plan, bytes,
				  why, why_bytes);
}

static int build(struct swingcoll_comm *comm, const struct swc_loaded_plan *e,
		 enum swc_variant variant, void **plan, size_t *bytes, char *why, size_t why_bytes)
{
	struct swc_plan_args args = {
		.coll = e->coll,
		.algo = e->algo,
		.param = e->param,
		.topo = &comm->plans.topo,
		.nranks = comm->nranks,
		.rank = comm->rank,
		.ports = e->ports,
		.root = e->root,
		.nlocal = comm->nlocal,
		.in_place = variant == SWC_IN_PLACE,
		.others_only = variant == SWC_OTHERS,
		.uneven = e->uneven,
	};

	if (e->algo == SWC_ALGO_FOREST && comm->plans.pick != SWC_PICK_FILE)
		return build_forest(comm, &args, plan, bytes, why, why_bytes);
	if (e->algo == SWC_ALGO_NR) {
		int ret = read_plan(comm, e, plan, bytes, why, why_bytes);

		if (ret != -EOPNOTSUPP || e->coll != SWC_BARRIER)
			return ret;
		/* A barrier beside the file's collective has no data that a plan could move better. */
		args.algo = swc_choices_fallback(&comm->plans.topo, e->coll);
	}
	return swc_plan_build(&args, plan, bytes, why, why_bytes);
}

static int load_in_kernel(struct swingcoll_comm *comm, const void *plan, size_t bytes,
			  struct swc_plan_load *l)
{
	int ret;

	l->comm = comm->handle;
	l->bytes = (uint32_t)bytes;
	l->data = (uintptr_t)plan;
	ret = swc_context_ioctl(comm->ctx, SWC_IOC_PLAN_LOAD, l);
	/*
	 * The kernel has no room: unload all other plans of this communicator, unless the caller may have
	 * operations for them that it has not submitted.
	 */
	if ((ret == -ENOSPC || ret == -EDQUOT) && comm->plans.n > 1 && !comm->plans.prepared &&
	    !unload_all_but(comm, 1))
		ret = swc_context_ioctl(comm->ctx, SWC_IOC_PLAN_LOAD, l);
	l->text[sizeof(l->text) - 1] = 0;
	return ret;
}

static int load(struct swingcoll_comm *comm, struct swc_loaded_plan *e, enum swc_variant variant)
{
	struct swc_plan_load l = { 0 };
	const struct swc_plan_header *h;
	void *plan = NULL;
	size_t bytes;
	int ret = build(comm, e, variant, &plan, &bytes, l.text, sizeof(l.text));
	bool given = e->algo == SWC_ALGO_NR, file = given && comm->plans.file, built = !ret;

	if (built && !(comm->ctx->info.features & SWC_FEATURE_COPY))
		ret = swc_plan_without_copies(&plan, &bytes, l.text, sizeof(l.text));
	if (!ret)
		ret = load_in_kernel(comm, plan, bytes, &l);
	if (ret) {
		const char *why = *l.text ? l.text : swingcoll_strerror(ret);

		free(plan);
		/* What is wrong with a file begins with its path. */
		if (file && !built)
			return swc_comm_fail(comm, ret, "plan file %s", why);
		return swc_comm_fail(comm, ret, "plan %s: %s",
				     file    ? comm->plans.file
				     : given ? "forest"
					     : swc_algo_name(e->algo),
				     why);
	}
	h = plan;
	if (l.plan < sizeof(comm->plans.name_of) / sizeof(comm->plans.name_of[0]))
		__atomic_store_n(&comm->plans.name_of[l.plan], keep_name(&comm->plans, h->name),
				 __ATOMIC_RELEASE);
	e->order_varies = h->flags & SWC_PLAN_ORDER_VARIES;
	e->handle[variant] = l.plan;
	if (variant == SWC_DISJOINT && !(h->flags & SWC_PLAN_NOT_IN_PLACE))
		e->handle[SWC_IN_PLACE] = l.plan;
	free(plan);
	return 0;
}

/* ---- choosing ---- */

/* Segments of a forest; 1 if there is none, which is told when its plan is built. */
static int32_t forest_pieces(struct swc_plans *p, const struct swc_desc *d, uint64_t bytes)
{
	const struct swc_trees *t = NULL;

	if (swc_forest_colls(&p->topo) & 1u << d->coll)
		t = swc_choices_trees(&p->choices, d->coll, d->root);
	return t ? (int32_t)swc_choices_pieces(&p->choices, t, bytes) : 1;
}

static void choose(struct swc_plans *p, const struct swc_desc *d, uint64_t bytes,
		   struct swc_loaded_plan *key)
{
	enum swc_algo algo = p->algo;
	struct swc_choice choice;
	uint32_t colls;

	key->param = SWC_PARAM_DEFAULT;
	switch (p->pick) {
	case SWC_PICK_AUTO:
		choice = swc_choices_take(&p->choices, d->coll, d->dtype, d->redop, bytes, 1);
		algo = choice.algo;
		key->param = choice.param;
		/* A measured forest may be without a number of segments. */
		if (algo == SWC_ALGO_FOREST && choice.param == SWC_PARAM_DEFAULT)
			key->param = forest_pieces(p, d, bytes);
		break;
	case SWC_PICK_FILE:
		algo = SWC_ALGO_NR;
		break;
	default:
		if (p->pick == SWC_PICK_FOREST) {
			algo = SWC_ALGO_FOREST;
			colls = swc_forest_colls(&p->topo);
			key->param = p->param ? p->param : forest_pieces(p, d, bytes);
		} else {
			key->param = p->param;
			colls = swc_algo_info(algo)->colls;
		}
		if (colls & 1u << d->coll)
			break;
		algo = swc_choices_fallback(&p->topo, d->coll);
		key->param = SWC_PARAM_DEFAULT;
	}
	key->algo = (uint8_t)algo;
	key->ports = swc_choices_ports(&p->topo, bytes);
}

int swc_plans_get(struct swingcoll_comm *comm, struct swc_desc *d, enum swc_variant *wanted,
		  uint64_t bytes)
{
	struct swc_loaded_plan key = { .coll = d->coll, .uneven = d->counts, .root = d->root };
	struct swc_loaded_plan *e = comm->plans.entry;
	enum swc_variant variant;
	int ret;

	choose(&comm->plans, d, bytes, &key);
	ret = lookup(comm, &key);
	if (ret)
		return ret;
	/* Between nodes, a rank may pass on its own data from their place in the receive buffer. */
	if (*wanted == SWC_OTHERS &&
	    (key.algo == SWC_ALGO_NR || !swc_algo_info(key.algo)->one_node))
		*wanted = SWC_DISJOINT;
	variant = *wanted;
	/* The plan for disjoint buffers first: mostly it is right in place too. */
	if (variant == SWC_IN_PLACE && !e->handle[SWC_DISJOINT])
		ret = load(comm, e, SWC_DISJOINT);
	if (!ret && !e->handle[variant])
		ret = load(comm, e, variant);
	if (ret)
		return ret;
	if (e->order_varies && swc_reduce_order_matters(d->dtype, d->redop) &&
	    !(comm->flags & SWINGCOLL_ALLOW_REORDER))
		return swc_comm_fail(
			comm, -EOPNOTSUPP,
			"%s may give ranks results that differ in their last bits: create the "
			"communicator with SWINGCOLL_ALLOW_REORDER, or choose another algorithm",
			swc_plans_algo(&comm->plans, e->handle[variant]));
	d->plan = e->handle[variant];
	return 0;
}

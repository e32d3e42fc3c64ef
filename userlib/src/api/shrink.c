// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Going on without some ranks. All that a new communicator needs is known to every survivor: who is left, where,
 * and by which ways. So nothing is exchanged; the survivors must only agree on who is left.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/bootstrap.h"
#include "priv.h"

/* The ranks that are left. */
struct survivors {
	bool *gone; /* by old rank */
	uint32_t nranks;
	uint32_t rank;	     /* the caller's new one */
	uint32_t nnodes;     /* of those that are left */
	uint32_t nlocal;     /* on the caller's node */
	bool in_order;	     /* numbered node by node, as many on each */
	uint32_t *node_of;   /* by old node: the new number, or UINT32_MAX */
	uint32_t *rank_node; /* by new rank */
};

static uint32_t old_node(const struct swingcoll_comm *comm, uint32_t rank)
{
	return comm->place.rank_node ? comm->place.rank_node[rank] : 0;
}

/* Number what is left; ranks and nodes keep their order. */
static void count(const struct swingcoll_comm *comm, struct survivors *s)
{
	uint32_t mine = old_node(comm, comm->rank), first = 0, run = 0;

	for (uint32_t n = 0; n < comm->nnodes; n++)
		s->node_of[n] = UINT32_MAX;
	s->in_order = true;
	for (uint32_t r = 0; r < comm->nranks; r++) {
		uint32_t node = old_node(comm, r);

		if (s->gone[r])
			continue;
		if (r == comm->rank)
			s->rank = s->nranks;
		if (s->node_of[node] == UINT32_MAX) {
			/* The run of the node before is over; all runs must be as long as the first. */
			if (s->nnodes == 1)
				first = run;
			s->in_order &= s->nnodes < 2 || run == first;
			run = 0;
			s->node_of[node] = s->nnodes++;
		}
		s->in_order &= s->node_of[node] == s->nnodes - 1;
		run++;
		s->nlocal += node == mine;
		s->rank_node[s->nranks++] = s->node_of[node];
	}
	s->in_order &= s->nnodes < 2 || run == first;
}

/* The ways to the nodes that are left, under their new numbers. */
static struct swc_node_path *keep_paths(const struct swingcoll_comm *comm,
					const struct survivors *s, uint32_t *npaths)
{
	struct swc_node_path *paths = calloc(comm->place.npaths, sizeof(*paths));

	*npaths = 0;
	for (uint32_t i = 0; paths && i < comm->place.npaths; i++) {
		uint32_t node = s->node_of[comm->place.paths[i].node];

		if (node == UINT32_MAX)
			continue;
		paths[*npaths] = comm->place.paths[i];
		paths[(*npaths)++].node = node;
	}
	return paths;
}

/*
 * The new id follows from the old one, so it is as secret; from who is left, so that those who disagree do not
 * meet; and from how often that was done before.
 */
static void derive_id(struct swingcoll_comm *comm, const struct survivors *s,
		      struct swingcoll_id *id)
{
	uint64_t hash[2] = { SWC_HASH_START, ~SWC_HASH_START };
	unsigned int times = __atomic_add_fetch(&comm->shrinks, 1, __ATOMIC_RELAXED);
	char text[16];

	snprintf(text, sizeof(text), "%u", times);
	for (int k = 0; k < 2; k++) {
		hash[k] = swc_boot_hash(hash[k], text);
		for (uint32_t r = 0; r < comm->nranks; r++)
			hash[k] = swc_boot_hash(hash[k], s->gone[r] ? "x" : "o");
	}
	for (int i = 0; i < SWINGCOLL_ID_BYTES; i++)
		id->bytes[i] = comm->id.bytes[i] ^ ((unsigned char *)hash)[i];
}

static int join_rest(struct swingcoll_comm *comm, const struct survivors *s,
		     struct swingcoll_comm **out)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = comm->slots.timeout_ms,
					    .flags = comm->flags };
	struct swc_place place = { .nnodes = s->nnodes,
				   .nlocal = s->nlocal,
				   .rank_node = s->rank_node };
	struct swc_node_path *paths = NULL;
	struct swingcoll_id id;
	char topo[48], why[SWC_TEXT_BYTES] = "";
	int ret;

	derive_id(comm, s, &id);
	if (s->nnodes > 1) {
		paths = keep_paths(comm, s, &place.npaths);
		if (!paths)
			return -ENOMEM;
		place.paths = paths;
		if (s->in_order)
			snprintf(topo, sizeof(topo), "switch:%u*%u", s->nnodes,
				 s->nranks / s->nnodes);
		else
			snprintf(topo, sizeof(topo), "switch:%u", s->nranks);
		opts.topo = topo;
	}
	ret = swc_comm_create(out, &id, (int)s->nranks, (int)s->rank, &opts,
			      s->nnodes > 1 ? &place : NULL, why, sizeof(why));
	free(paths);
	if (ret)
		swc_comm_fail(comm, ret, "shrinking to %u ranks: %s", s->nranks,
			      *why ? why : swingcoll_strerror(ret));
	return ret;
}

/* Who is to go: those named, or the rank at fault. */
static int mark(struct swingcoll_comm *comm, const int *exclude, int n, bool *gone)
{
	int culprit = -1;

	if (!n) {
		swingcoll_comm_error(comm, NULL, 0, &culprit);
		if (culprit < 0)
			return swc_comm_fail(
				comm, -EINVAL,
				"shrinking: no single rank is at fault: say which to exclude");
		exclude = &culprit;
		n = 1;
	}
	for (int i = 0; i < n; i++) {
		if (exclude[i] < 0 || exclude[i] >= (int)comm->nranks)
			return swc_comm_fail(comm, -EINVAL,
					     "shrinking: there is no rank %d: 0 to %u are",
					     exclude[i], comm->nranks - 1);
		gone[exclude[i]] = true;
	}
	if (gone[comm->rank])
		return swc_comm_fail(comm, -EINVAL, "shrinking: rank %u cannot exclude itself",
				     comm->rank);
	return 0;
}

SWC_PUBLIC int swingcoll_comm_shrink(struct swingcoll_comm *comm, const int *exclude, int nexclude,
				     struct swingcoll_comm **out)
{
	struct survivors s = { 0 };
	int saved = errno, ret = -ENOMEM;

	if (!comm || !out || nexclude < 0 || (nexclude && !exclude))
		return -EINVAL;
	*out = NULL;
	if (comm->forked)
		return -EBADF;
	s.gone = calloc(comm->nranks, sizeof(*s.gone));
	s.node_of = calloc(comm->nnodes, sizeof(*s.node_of));
	s.rank_node = calloc(comm->nranks, sizeof(*s.rank_node));
	if (s.gone && s.node_of && s.rank_node) {
		ret = mark(comm, exclude, nexclude, s.gone);
		if (!ret) {
			count(comm, &s);
			ret = join_rest(comm, &s, out);
		}
	}
	free(s.gone);
	free(s.node_of);
	free(s.rank_node);
	errno = saved;
	return ret;
}

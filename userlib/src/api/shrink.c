// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Communicators without some ranks of an old one. Every remaining rank knows all that the new
 * communicator needs: which ranks remain, on which nodes, and the paths between them. So nothing is
 * exchanged; the ranks must only agree on the list.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/hash.h"
#include "src/priv.h"

/* The ranks that remain. */
struct remaining {
	bool *excluded; /* by old rank */
	uint32_t nranks;
	uint32_t rank;	     /* the caller's new rank */
	uint32_t nnodes;     /* that they are on */
	uint32_t nlocal;     /* on the caller's node */
	bool in_order;	     /* numbered node by node, with as many on each */
	uint32_t *node_of;   /* by old node: the new number, or UINT32_MAX */
	uint32_t *rank_node; /* by new rank */
};

static uint32_t old_node(const struct swingcoll_comm *comm, uint32_t rank)
{
	return comm->place.rank_node ? comm->place.rank_node[rank] : 0;
}

/* Number the remaining ranks and their nodes, in their old order. */
static void count(const struct swingcoll_comm *comm, struct remaining *s)
{
	uint32_t mine = old_node(comm, comm->rank), first = 0, run = 0;

	for (uint32_t n = 0; n < comm->nnodes; n++)
		s->node_of[n] = UINT32_MAX;
	s->in_order = true;
	for (uint32_t r = 0; r < comm->nranks; r++) {
		uint32_t node = old_node(comm, r);

		if (s->excluded[r])
			continue;
		if (r == comm->rank)
			s->rank = s->nranks;
		if (s->node_of[node] == UINT32_MAX) {
			/*
			 * The ranks of the node before are complete; all nodes must have as many as
			 * the first.
			 */
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

/* The paths to the remaining nodes, under their new numbers. */
static struct swc_node_path *keep_paths(const struct swingcoll_comm *comm,
					const struct remaining *s, uint32_t *npaths)
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
 * Derive the new id from the old one, so that it is as secret; from the list of excluded ranks, so
 * that ranks with different lists do not meet; and from the number of calls before this one.
 */
static void derive_id(struct swingcoll_comm *comm, const struct remaining *s,
		      struct swingcoll_id *id)
{
	uint64_t hash[2] = { SWC_HASH_START, ~SWC_HASH_START };
	unsigned int times = __atomic_add_fetch(&comm->shrinks, 1, __ATOMIC_RELAXED);
	char text[16];

	snprintf(text, sizeof(text), "%u", times);
	for (int k = 0; k < 2; k++) {
		hash[k] = swc_hash_text(hash[k], text);
		for (uint32_t r = 0; r < comm->nranks; r++)
			hash[k] = swc_hash_text(hash[k], s->excluded[r] ? "x" : "o");
	}
	for (int i = 0; i < SWINGCOLL_ID_BYTES; i++)
		id->bytes[i] = comm->id.bytes[i] ^ ((unsigned char *)hash)[i];
}

static int create_smaller(struct swingcoll_comm *comm, const struct remaining *s,
			  struct swingcoll_comm **out)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = comm->timeout_ms,
					    .op_timeout_ms = comm->op_timeout_ms,
					    .progress = comm->hook.call,
					    .progress_arg = comm->hook.arg,
					    .flags = comm->flags };
	struct swc_place place = { .nnodes = s->nnodes,
				   .nlocal = s->nlocal,
				   .rank_node = s->rank_node };
	struct swc_node_path *paths = NULL;
	struct swingcoll_id id;
	char topo[64], why[SWC_TEXT_BYTES] = "";
	uint32_t rails = comm->plans.topo.rails;
	int ret, len;

	derive_id(comm, s, &id);
	if (s->nnodes > 1) {
		paths = keep_paths(comm, s, &place.npaths);
		if (!paths)
			return -ENOMEM;
		place.paths = paths;
		if (s->in_order)
			len = snprintf(topo, sizeof(topo), "switch:%u*%u", s->nnodes,
				       s->nranks / s->nnodes);
		else
			len = snprintf(topo, sizeof(topo), "switch:%u", s->nranks);
		if (rails)
			snprintf(topo + len, sizeof(topo) - (size_t)len, "@%urails", rails);
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

/* Mark the ranks to exclude: the list, or the rank at fault. */
static int mark(struct swingcoll_comm *comm, const int *exclude, int n, bool *excluded)
{
	int culprit = -1;

	if (!n) {
		swingcoll_comm_error(comm, NULL, 0, &culprit);
		if (culprit < 0)
			return swc_comm_fail(
				comm, -EINVAL,
				"shrinking: no rank is known to be at fault: pass the ranks to exclude");
		exclude = &culprit;
		n = 1;
	}
	for (int i = 0; i < n; i++) {
		if (exclude[i] < 0 || exclude[i] >= (int)comm->nranks)
			return swc_comm_fail(comm, -EINVAL,
					     "shrinking: there is no rank %d: ranks are 0 to %u",
					     exclude[i], comm->nranks - 1);
		excluded[exclude[i]] = true;
	}
	if (excluded[comm->rank])
		return swc_comm_fail(comm, -EINVAL, "shrinking: rank %u cannot exclude itself",
				     comm->rank);
	return 0;
}

SWC_PUBLIC int swingcoll_comm_shrink(struct swingcoll_comm *comm, const int *exclude, int nexclude,
				     struct swingcoll_comm **out)
{
	struct remaining s = { 0 };
	int saved = errno, ret = -ENOMEM;

	if (!comm || !out || nexclude < 0 || (nexclude && !exclude))
		return -EINVAL;
	*out = NULL;
	if (comm->forked)
		return -EBADF;
	s.excluded = calloc(comm->nranks, sizeof(*s.excluded));
	s.node_of = calloc(comm->nnodes, sizeof(*s.node_of));
	s.rank_node = calloc(comm->nranks, sizeof(*s.rank_node));
	if (s.excluded && s.node_of && s.rank_node) {
		ret = mark(comm, exclude, nexclude, s.excluded);
		if (!ret) {
			count(comm, &s);
			ret = create_smaller(comm, &s, out);
		}
	}
	free(s.excluded);
	free(s.node_of);
	free(s.rank_node);
	errno = saved;
	return ret;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Communicators without some ranks of an old one. The remaining ranks agree on who remains. Every one of
 * them then knows all that the new communicator needs: the ranks, on which nodes they are, and the paths
 * between them. They create it and agree on how that went: if a rank has died meanwhile, or could not
 * create it, they drop it and begin again, without those that are gone. So all return with the same
 * communicator, or all with an error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/hash.h"
#include "src/agree/consensus.h"
#include "src/priv.h"

/* The ranks that remain. */
struct remaining {
	bool *excluded; /* by old rank */
	uint32_t nranks;
	uint32_t rank;		      /* the caller's new rank */
	uint32_t nnodes;	      /* that they are on */
	uint32_t nlocal;	      /* on the caller's node */
	bool in_order;		      /* numbered node by node, with as many on each */
	uint32_t *node_of;	      /* by old node: the new number, or UINT32_MAX */
	uint32_t *rank_node;	      /* by new rank */
	int32_t *pid;		      /* likewise */
	char (*host)[SWC_HOST_BYTES]; /* by new node */
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
		if (comm->place.host) {
			memcpy(s->host[s->node_of[node]], comm->place.host[node], SWC_HOST_BYTES);
			s->pid[s->nranks] = comm->place.pid[r];
		}
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
 * Derive the new id from the old one, so that it is as secret; from the list of excluded ranks; and from
 * the number of the agreement on that, as an id must not be used again.
 */
static void derive_id(const struct swingcoll_comm *comm, const struct remaining *s,
		      struct swingcoll_id *id)
{
	uint64_t hash[2] = { SWC_HASH_START, ~SWC_HASH_START };
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)comm->agreements);
	for (int k = 0; k < 2; k++) {
		hash[k] = swc_hash_text(hash[k], text);
		for (uint32_t r = 0; r < comm->nranks; r++)
			hash[k] = swc_hash_text(hash[k], s->excluded[r] ? "x" : "o");
	}
	for (int i = 0; i < SWINGCOLL_ID_BYTES; i++)
		id->bytes[i] = comm->id.bytes[i] ^ ((unsigned char *)hash)[i];
}

/* The module does not know of a rank that has died before it has joined: @join_ms bounds the wait for it. */
static int create_smaller(struct swingcoll_comm *comm, const struct remaining *s, uint32_t join_ms,
			  struct swingcoll_comm **out)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = comm->timeout_ms,
					    .op_timeout_ms = comm->op_timeout_ms,
					    .progress = comm->hook.call,
					    .progress_arg = comm->hook.arg,
					    .flags = comm->flags };
	struct swc_place place = { .nnodes = s->nnodes,
				   .nlocal = s->nlocal,
				   .rank_node = s->rank_node,
				   .conns = comm->place.conns,
				   .host = s->host,
				   .pid = s->pid };
	struct swc_node_path *paths = NULL;
	struct swc_peers peers;
	struct swingcoll_id id;
	char topo[64], why[SWC_TEXT_BYTES] = "";
	uint32_t rails = comm->plans.topo.rails;
	int ret, len;

	derive_id(comm, s, &id);
	ret = swc_peers_without(&peers, &comm->peers, comm->nranks, s->excluded);
	if (ret)
		return ret;
	if (s->nnodes > 1) {
		paths = keep_paths(comm, s, &place.npaths);
		if (!paths) {
			swc_peers_free(&peers);
			return -ENOMEM;
		}
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
	ret = swc_comm_create(out, &id, (int)s->nranks, (int)s->rank, &opts, join_ms,
			      s->nnodes > 1 ? &place : NULL, &peers, why, sizeof(why));
	free(paths);
	if (ret)
		swc_comm_fail(comm, ret, "shrinking to %u ranks: %s", s->nranks,
			      *why ? why : swingcoll_strerror(ret));
	return ret;
}

/* Mark the ranks to exclude: the list, or the rank at fault. */
static int mark(struct swingcoll_comm *comm, const int *exclude, int n, uint64_t *gone)
{
	int culprit = -1;

	if (!n) {
		swingcoll_comm_error(comm, NULL, 0, &culprit);
		if (culprit < 0 || culprit == (int)comm->rank)
			return 0;
		exclude = &culprit;
		n = 1;
	}
	for (int i = 0; i < n; i++) {
		if (exclude[i] < 0 || exclude[i] >= (int)comm->nranks)
			return swc_comm_fail(comm, -EINVAL,
					     "shrinking: there is no rank %d: ranks are 0 to %u",
					     exclude[i], comm->nranks - 1);
		if (exclude[i] == (int)comm->rank)
			return swc_comm_fail(comm, -EINVAL,
					     "shrinking: rank %u cannot exclude itself",
					     comm->rank);
		swc_set_add(gone, (uint32_t)exclude[i]);
	}
	return 0;
}

/* ---- attempts ---- */

/* What the ranks tell each other of an attempt to create the communicator: the AND of these. */
#define CREATED 1u
#define TRY_AGAIN 2u

/*
 * The first attempt waits for this part of the deadline until all ranks of the node have joined. They come from
 * an agreement, at about the same time, unless they die. Were it longer, several that die one after the other
 * would take up the deadline.
 */
#define JOIN_PART 64

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static uint32_t left_ms(uint64_t deadline)
{
	uint64_t now = now_ms();

	return now < deadline ? (uint32_t)(deadline - now) : 0;
}

/* Create the communicator of those that are not gone. */
static int attempt(struct swingcoll_comm *comm, const uint64_t *gone, uint32_t join_ms,
		   struct swingcoll_comm **out)
{
	struct remaining s = { 0 };
	int ret = -ENOMEM;

	s.excluded = calloc(comm->nranks, sizeof(*s.excluded));
	s.node_of = calloc(comm->nnodes, sizeof(*s.node_of));
	s.rank_node = calloc(comm->nranks, sizeof(*s.rank_node));
	s.pid = calloc(comm->nranks, sizeof(*s.pid));
	s.host = calloc(comm->nnodes, sizeof(*s.host));
	if (s.excluded && s.node_of && s.rank_node && s.pid && s.host) {
		for (uint32_t r = 0; r < comm->nranks; r++)
			s.excluded[r] = swc_set_has(gone, r);
		count(comm, &s);
		ret = create_smaller(comm, &s, join_ms, out);
	}
	free(s.excluded);
	free(s.node_of);
	free(s.rank_node);
	free(s.pid);
	free(s.host);
	return ret;
}

/* @gone: whom this rank excludes; @before: room for another set. */
static int shrink(struct swingcoll_comm *comm, uint64_t *gone, uint64_t *before,
		  struct swingcoll_comm **out)
{
	size_t bytes = swc_set_words(comm->nranks) * sizeof(*gone);
	uint64_t deadline = now_ms() + comm->timeout_ms;
	uint32_t join_ms = comm->timeout_ms / JOIN_PART + 1, flag = 0;
	int ret = swc_comm_agree(comm, comm->timeout_ms, &flag, gone), created;

	while (!ret) {
		memcpy(before, gone, bytes);
		created = attempt(comm, gone, join_ms, out);
		flag = !created				? CREATED | TRY_AGAIN
		       : swingcoll_comm_failed(created) ? TRY_AGAIN
							: 0;
		ret = swc_comm_agree(comm, left_ms(deadline), &flag, gone);
		if (!ret && flag & CREATED && !memcmp(before, gone, bytes))
			return 0;
		swingcoll_comm_destroy(*out);
		*out = NULL;
		/* Nobody has died: some may have been late, as on a machine with too much to do. */
		if (!ret && !memcmp(before, gone, bytes))
			join_ms = join_ms < comm->timeout_ms / 2 ? 2 * join_ms : comm->timeout_ms;
		/* Who is the same on all ranks: this one's error, or that another one has failed. */
		if (!ret && !(flag & TRY_AGAIN))
			ret = created ? created
				      : swc_comm_fail(
						comm, -ECANCELED,
						"shrinking: another rank could not create the communicator");
	}
	return ret;
}

SWC_PUBLIC int swingcoll_comm_shrink(struct swingcoll_comm *comm, const int *exclude, int nexclude,
				     struct swingcoll_comm **out)
{
	int saved = errno, ret = -ENOMEM;
	uint64_t *sets;

	if (!comm || !out || nexclude < 0 || (nexclude && !exclude))
		return -EINVAL;
	*out = NULL;
	if (comm->forked)
		return -EBADF;
	sets = calloc(2 * swc_set_words(comm->nranks), sizeof(*sets));
	if (sets) {
		ret = mark(comm, exclude, nexclude, sets);
		if (!ret) {
			pthread_mutex_lock(&comm->agreeing);
			ret = shrink(comm, sets, sets + swc_set_words(comm->nranks), out);
			pthread_mutex_unlock(&comm->agreeing);
		}
	}
	free(sets);
	errno = saved;
	return ret;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Agreement of the ranks of a communicator, also of one that has failed: swingcoll_comm_agree(), and what
 * shrink.c needs. How it works is in ../agree.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "src/agree/consensus.h"
#include "src/agree/session.h"
#include "src/priv.h"

static uint32_t node_of(const struct swingcoll_comm *comm, uint32_t rank)
{
	return comm->place.rank_node ? comm->place.rank_node[rank] : 0;
}

/*
 * The addresses that the module uses, with the port of the rank's endpoint. Both ends: where a node has
 * several, not every one of them reaches every other.
 */
static socklen_t address(void *arg, uint32_t rank, unsigned int k, struct sockaddr_storage *sa,
			 struct sockaddr_storage *local)
{
	const struct swingcoll_comm *comm = arg;
	const struct swc_peers *p = &comm->peers;
	uint32_t node = node_of(comm, rank);

	if (node == node_of(comm, comm->rank))
		return k ? 0 : swc_endpoint_name((void *)sa, p->key, p->origin[rank]);
	for (uint32_t i = 0; i < comm->place.npaths; i++) {
		const struct swc_node_path *path = &comm->place.paths[i];

		if (path->node != node || k--)
			continue;
		memset(sa, 0, sizeof(*sa));
		memcpy(sa, path->remote, sizeof(path->remote));
		memcpy(local, path->local, sizeof(path->local));
		/* The port is at the same place for both families. */
		((struct sockaddr_in *)sa)->sin_port = htons(p->port[rank]);
		((struct sockaddr_in *)local)->sin_port = 0;
		return sa->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						 : sizeof(struct sockaddr_in);
	}
	return 0;
}

/* Is a rank of this node a member for the module? Not known for communicators of other users: no. */
static bool lives(void *arg, uint32_t rank)
{
	const struct swingcoll_comm *comm = arg;
	struct swc_member_info *members = calloc(comm->nlocal, sizeof(*members));
	struct swc_comm_query q = { 0 };
	bool found = false;

	while (members && !found) {
		q.max_members = comm->nlocal;
		q.members = (uintptr_t)members;
		if (swc_context_ioctl(comm->ctx, SWC_IOC_COMM_QUERY, &q))
			break;
		if (q.nranks != comm->nranks || q.nlocal != comm->nlocal ||
		    memcmp(q.id_prefix, comm->id.bytes, sizeof(q.id_prefix)) != 0)
			continue;
		for (uint32_t i = 0; i < q.nlocal; i++)
			found |= members[i].rank == rank && members[i].state == SWC_MEMBER_JOINED;
	}
	free(members);
	return found;
}

/* A line for the error of an agreement. */
static void explain(struct swingcoll_comm *comm, int error, uint32_t rank, uint32_t timeout_ms)
{
	switch (error) {
	case -ETIMEDOUT:
		swc_comm_fail(comm, error, "agreement: rank %u has not answered within %u ms", rank,
			      timeout_ms);
		break;
	case -ECONNABORTED:
		swc_comm_fail(comm, error, "agreement: rank %u goes on without this rank", rank);
		break;
	case -EHOSTUNREACH:
		swc_comm_fail(
			comm, error,
			"agreement: rank %u lives, but cannot be reached: ranks of one node need the same network namespace",
			rank);
		break;
	case -EMFILE:
		swc_comm_fail(
			comm, error,
			"agreement: too many open files: it needs one for each rank (ulimit -n)");
		break;
	default:
		swc_comm_fail(comm, error, "agreement: %s", swingcoll_strerror(error));
	}
}

int swc_comm_agree(struct swingcoll_comm *comm, uint32_t timeout_ms, uint32_t *flag, uint64_t *gone)
{
	size_t words = swc_set_words(comm->nranks);
	struct swc_session_env env = { .peers = &comm->peers,
				       .nranks = comm->nranks,
				       .rank = comm->rank,
				       .key = comm->id.bytes,
				       .number = comm->agreements++,
				       .timeout_ms = timeout_ms,
				       .progress = comm->hook.call,
				       .progress_arg = comm->hook.arg,
				       .address = address,
				       .lives = lives,
				       .arg = comm };
	uint32_t rank;
	int ret;

	for (size_t w = 0; w < words; w++)
		gone[w] |= comm->gone[w];
	ret = swc_session_run(&env, flag, gone, &rank);
	if (ret)
		explain(comm, ret, rank, timeout_ms);
	pthread_mutex_lock(&comm->text_lock);
	if (!ret)
		memcpy(comm->gone, gone, words * sizeof(*gone));
	comm->agreement_failed = ret;
	pthread_mutex_unlock(&comm->text_lock);
	return ret;
}

/* The lowest rank that is in one set only, SWC_AGREE_NOBODY: they are equal. */
static uint32_t first_new(uint32_t n, const uint64_t *before, const uint64_t *now)
{
	for (uint32_t r = 0; r < n; r++)
		if (swc_set_has(now, r) && !swc_set_has(before, r))
			return r;
	return SWC_AGREE_NOBODY;
}

static int agree(struct swingcoll_comm *comm, int *flag)
{
	size_t words = swc_set_words(comm->nranks);
	uint64_t *sets = calloc(2 * words, sizeof(*sets));
	uint32_t value = (uint32_t)*flag, rank;
	int ret;

	if (!sets)
		return -ENOMEM;
	pthread_mutex_lock(&comm->agreeing);
	memcpy(sets + words, comm->gone, words * sizeof(*sets));
	ret = swc_comm_agree(comm, comm->timeout_ms, &value, sets);
	pthread_mutex_unlock(&comm->agreeing);
	if (!ret) {
		*flag = (int)value;
		rank = first_new(comm->nranks, sets + words, sets);
		if (rank != SWC_AGREE_NOBODY)
			ret = swc_comm_fail(comm, -ECONNRESET,
					    "agreement: rank %u has died or left", rank);
	}
	free(sets);
	return ret;
}

SWC_PUBLIC int swingcoll_comm_agree(struct swingcoll_comm *comm, int *flag)
{
	int saved = errno, ret;

	if (!comm || !flag)
		return -EINVAL;
	if (comm->forked)
		return -EBADF;
	ret = agree(comm, flag);
	errno = saved;
	return ret;
}

SWC_PUBLIC int swingcoll_comm_get_failed(struct swingcoll_comm *comm, int *ranks, int max)
{
	int n = 0;

	if (!comm || max < 0 || (max && !ranks))
		return -EINVAL;
	if (comm->forked)
		return -EBADF;
	pthread_mutex_lock(&comm->text_lock);
	for (uint32_t r = 0; r < comm->nranks; r++) {
		if (!swc_set_has(comm->gone, r))
			continue;
		if (n < max)
			ranks[n] = (int)r;
		n++;
	}
	pthread_mutex_unlock(&comm->text_lock);
	return n;
}

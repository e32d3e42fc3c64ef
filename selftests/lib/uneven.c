// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>

#include "uneven.h"

/* Behind each buffer, to show what is written beyond its end. */
#define GUARD 16
#define UNTOUCHED 0x5a5a5a5au

uint64_t uneven_count(const struct uneven_case *c, int nranks, int rank)
{
	switch (c->kind) {
	case UNEVEN_SLOPE:
		return c->count * (rank + 1) / nranks;
	case UNEVEN_ONE:
		return rank == nranks / 2 ? c->count : 0;
	default:
		return rank % 3 == 1 ? 0 : c->count + rank % 3;
	}
}

/* Element i of the shard of a rank. */
static uint32_t element(uint32_t salt, int rank, size_t i)
{
	return (salt + 1) * 2654435761u + rank * 40503u + i * 97u;
}

static int call(const struct uneven_case *c, const uint32_t *send, uint32_t *recv,
		const uint64_t *counts, struct swingcoll_comm *comm)
{
	struct swingcoll_req *req;
	int ret;

	if (!c->start)
		return c->scatter ? swingcoll_scatterv(send, recv, counts, SWINGCOLL_U32, c->root,
						       comm)
				  : swingcoll_gatherv(send, recv, counts, SWINGCOLL_U32, c->root,
						      comm);
	ret = c->scatter
		      ? swingcoll_iscatterv(send, recv, counts, SWINGCOLL_U32, c->root, comm, &req)
		      : swingcoll_igatherv(send, recv, counts, SWINGCOLL_U32, c->root, comm, &req);
	return ret ? ret : swingcoll_wait(req, NULL);
}

static int check_shard(const struct uneven_case *c, const uint32_t *at, uint32_t salt, int rank,
		       uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (at[i] != element(salt, rank, i)) {
			ksft_print_msg(
				"%sv, root %d, kind %d, count %zu: shard %d: element %llu is %x, not %x\n",
				c->scatter ? "scatter" : "gather", c->root, c->kind, c->count, rank,
				(unsigned long long)i, at[i], element(salt, rank, i));
			return -EBADMSG;
		}
	return 0;
}

/* A buffer of n elements. */
static uint32_t *buffer(uint64_t n)
{
	uint32_t *p = malloc((n + GUARD) * sizeof(*p));

	for (uint64_t i = 0; i < n + GUARD; i++)
		p[i] = UNTOUCHED;
	return p;
}

static int check_guard(const uint32_t *p, uint64_t n)
{
	for (uint64_t i = n; i < n + GUARD; i++)
		if (p[i] != UNTOUCHED) {
			ksft_print_msg("element %llu behind the buffer was written\n",
				       (unsigned long long)(i - n));
			return -EBADMSG;
		}
	return 0;
}

int uneven_run(const struct uneven_case *c, struct swingcoll_comm *comm, uint32_t salt)
{
	int n = swingcoll_comm_size(comm), rank = swingcoll_comm_rank(comm), ret;
	uint64_t counts[n], start[n + 1];
	uint32_t *all = NULL, *own, *at;

	start[0] = 0;
	for (int r = 0; r < n; r++) {
		counts[r] = uneven_count(c, n, r);
		start[r + 1] = start[r] + counts[r];
	}
	if (rank == c->root)
		all = buffer(start[n]);
	own = buffer(counts[rank]);
	at = c->in_place && all ? all + start[rank] : own;
	if (!c->scatter)
		for (uint64_t i = 0; i < counts[rank]; i++)
			at[i] = element(salt, rank, i);
	for (int r = 0; c->scatter && all && r < n; r++)
		for (uint64_t i = 0; i < counts[r]; i++)
			all[start[r] + i] = element(salt, r, i);
	ret = call(c, c->scatter ? all : at, c->scatter ? at : all, counts, comm);
	/* The receiving side, and that the sending side is unchanged. */
	if (!ret)
		ret = check_shard(c, at, salt, rank, counts[rank]);
	for (int r = 0; !ret && all && r < n; r++)
		ret = check_shard(c, all + start[r], salt, r, counts[r]);
	if (!ret)
		ret = check_guard(own, counts[rank]);
	if (!ret && all)
		ret = check_guard(all, start[n]);
	free(all);
	free(own);
	return ret;
}

// SPDX-License-Identifier: GPL-2.0-only
#include <swingcoll.h>

#include "parted.h"

int parted_up(struct parted *p, const struct coll_case *c, int n, struct swingcoll_comm *comm)
{
	size_t size = swingcoll_dtype_size(c->dtype);
	int nranks = swingcoll_comm_size(comm);

	*p = (struct parted){ .c = *c, .nranks = nranks, .n = n };
	p->send_bytes = coll_send_elems(c, nranks) * size;
	p->recv_bytes = coll_recv_elems(c, nranks) * size;
	p->recv = calloc(n, p->recv_bytes + 1);
	p->send = c->in_place ? p->recv : calloc(n, p->send_bytes + 1);
	switch (c->coll) {
	case SWINGCOLL_REDUCE_SCATTER:
		return swingcoll_preduce_scatter_init(p->send, p->recv, n, c->count, c->dtype,
						      c->op, comm, &p->part);
	case SWINGCOLL_ALLGATHER:
		return swingcoll_pallgather_init(p->send, p->recv, n, c->count, c->dtype, comm,
						 &p->part);
	default:
		return swingcoll_pallreduce_init(p->send, p->recv, n, c->count, c->dtype, c->op,
						 comm, &p->part);
	}
}

int parted_down(struct parted *p)
{
	int ret = swingcoll_pfree(p->part);

	if (p->send != p->recv)
		free(p->send);
	free(p->recv);
	return ret;
}

void parted_fill(struct parted *p, int i, int rank, uint64_t salt)
{
	coll_fill(&p->c, p->nranks, rank, p->send + i * p->send_bytes, salt * 4099 + i);
}

int parted_check(struct parted *p, int i, int rank, uint64_t salt)
{
	return coll_check(&p->c, p->nranks, rank, p->recv + i * p->recv_bytes, salt * 4099 + i);
}

void parted_shuffle(int *order, int n, unsigned int *rnd)
{
	for (int i = 0; i < n; i++) {
		int k = rand_r(rnd) % (i + 1);

		order[i] = order[k];
		order[k] = i;
	}
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Dense vectors of bf16 by the code of their exponents. Coded values do not add up, so each rank is the
 * owner of a share of the elements: all send it its share in code, by an all-to-all, it adds up what it
 * decodes, in the order of the ranks, and an allgather brings the coded sums to all. A rank whose values the
 * code cannot hold sends one that says so. The owners pass that on with their sums, so that every rank knows
 * after the allgather, and all run the dense allreduce; send buffers are not written before.
 */
#include <errno.h>

#include "kmod/core/reduce.h"
#include "sparse/exponents.h"
#include "sparse/sparse.h"
#include "src/priv.h"

/* Shares begin at whole blocks of the code. */
#define SHARE_UNIT 64
/* An all-to-all among more would be of small messages. */
#define MOST_RANKS 64

struct shares {
	struct swc_sparse *s;
	const struct swc_sparse_call *c;
	uint64_t each; /* elements of a share, but for the last */
	uint64_t code; /* bytes of its code */
	char *mine, *theirs;
	uint16_t *values;
};

static uint64_t elements_of(const struct shares *p, uint32_t rank)
{
	uint64_t first = rank * p->each;

	if (first >= p->c->count)
		return 0;
	return p->c->count - first < p->each ? p->c->count - first : p->each;
}

/* The all-to-all and the allgather: a code for each rank. */
static int exchange(struct shares *p, enum swingcoll_coll coll)
{
	struct swingcoll_comm *comm = p->s->comm;
	uint64_t start = swc_sparse_now();
	int ret = coll == SWINGCOLL_ALLTOALL
			  ? swingcoll_alltoall(p->mine, p->theirs, p->code, SWINGCOLL_U8, comm)
			  : swingcoll_allgather(p->mine, p->theirs, p->code, SWINGCOLL_U8, comm);

	p->s->waited_ns += swc_sparse_now() - start;
	p->s->last.rounds++;
	return ret;
}

static bool all_held(const struct shares *p)
{
	bool held = true;

	for (uint32_t r = 0; r < p->s->comm->nranks; r++)
		held &= swc_exponents_held(p->theirs + r * p->code);
	return held;
}

static int send_shares(struct shares *p)
{
	const uint16_t *v = p->c->send;

	for (uint32_t r = 0; r < p->s->comm->nranks; r++)
		swc_exponents_encode(v + r * p->each, elements_of(p, r), p->mine + r * p->code);
	return exchange(p, SWINGCOLL_ALLTOALL);
}

/* Add up the own share, and code the sums. */
static int add_up(struct shares *p)
{
	swc_reduce_fn reduce = swc_reduce_get((enum swc_dtype)p->c->dtype,
					      (enum swc_redop)p->c->op);
	uint32_t nranks = p->s->comm->nranks;
	uint64_t n = elements_of(p, p->s->comm->rank);
	const void *src[MOST_RANKS];
	void *dst = p->values;
	int ret = 0;

	if (!all_held(p)) {
		swc_exponents_none(p->mine);
		return 0;
	}
	for (uint32_t r = 0; !ret && r < nranks; r++) {
		src[r] = p->values + r * p->each;
		ret = swc_exponents_decode(p->theirs + r * p->code, n, p->values + r * p->each);
	}
	if (ret)
		return ret;
	reduce(&dst, 1, src, nranks, n, nranks);
	swc_exponents_encode(p->values, n, p->mine);
	return 0;
}

static int receive_sums(struct shares *p)
{
	uint16_t *v = p->c->recv;
	int ret = 0;

	for (uint32_t r = 0; !ret && r < p->s->comm->nranks; r++)
		ret = swc_exponents_decode(p->theirs + r * p->code, elements_of(p, r),
					   v + r * p->each);
	return ret;
}

static uint64_t share_of(const struct swc_sparse *s, uint64_t count)
{
	uint64_t nranks = s->comm->nranks, each = (count + nranks - 1) / nranks;

	return (each + SHARE_UNIT - 1) / SHARE_UNIT * SHARE_UNIT;
}

uint64_t swc_sparse_coded_bytes(const struct swc_sparse *s, uint64_t count)
{
	uint64_t each = share_of(s, count);

	if (s->comm->nranks > MOST_RANKS || each > SWC_EXPONENTS_MOST)
		return 0;
	return swc_exponents_bytes(each) * s->comm->nranks;
}

int swc_sparse_coded(struct swc_sparse *s, const struct swc_sparse_call *c, bool *held)
{
	uint64_t nranks = s->comm->nranks;
	struct shares p = { .s = s, .c = c };
	int ret;

	p.each = share_of(s, c->count);
	p.code = swc_exponents_bytes(p.each);
	ret = swc_sparse_reserve(s, 2 * nranks * p.code + nranks * p.each * c->size);
	if (ret)
		return ret;
	p.mine = s->memory;
	p.theirs = p.mine + nranks * p.code;
	p.values = (uint16_t *)(p.theirs + nranks * p.code);
	s->last.mode = SWINGCOLL_SPARSE_MODE_CODED;
	s->last.reduced_bytes += nranks * p.code;
	ret = send_shares(&p);
	if (!ret)
		ret = add_up(&p);
	if (!ret)
		ret = exchange(&p, SWINGCOLL_ALLGATHER);
	if (ret)
		return ret;
	*held = all_held(&p);
	return *held ? receive_sums(&p) : 0;
}

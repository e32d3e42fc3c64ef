// SPDX-License-Identifier: LGPL-2.1-or-later
/* The state that a communicator keeps for sparse allreduces: memory, what calls have shown, figures. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "sparse/sparse.h"
#include "src/priv.h"

uint64_t swc_sparse_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void release(void *attached)
{
	struct swc_sparse *s = attached;

	if (s->memory)
		munmap(s->memory, s->bytes);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int swc_sparse_enter(struct swingcoll_comm *comm, struct swc_sparse **out)
{
	struct swc_sparse *s;
	int busy = 0;

	if (!comm)
		return -EINVAL;
	if (comm->forked)
		return -EBADF;
	pthread_mutex_lock(&comm->order);
	s = comm->attached;
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (s) {
			s->comm = comm;
			s->codec = swc_sparse_codec_best();
			pthread_mutex_init(&s->lock, NULL);
			comm->release = release;
			/* Pairs with the acquire in swc_sparse_look(). */
			__atomic_store_n(&comm->attached, s, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&comm->order);
	if (!s)
		return -ENOMEM;
	/* Pairs with the release in swc_sparse_leave(). */
	if (!__atomic_compare_exchange_n(&s->busy, &busy, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return -EBUSY;
	*out = s;
	return 0;
}

void swc_sparse_leave(struct swc_sparse *s)
{
	__atomic_store_n(&s->busy, 0, __ATOMIC_RELEASE);
}

int swc_sparse_look(struct swingcoll_comm *comm, struct swc_sparse **s)
{
	if (!comm)
		return -EINVAL;
	if (comm->forked)
		return -EBADF;
	/* Without comm->order, which a collective may hold while it waits for other ranks. */
	*s = __atomic_load_n(&comm->attached, __ATOMIC_ACQUIRE);
	return 0;
}

struct swc_sparse_kind *swc_sparse_kind_of(struct swc_sparse *s, const struct swc_sparse_call *c)
{
	struct swc_sparse_kind *kind;

	for (int i = 0; i < SWC_SPARSE_KINDS; i++) {
		kind = &s->kind[i];
		if (kind->used && kind->count == c->count && kind->dtype == c->dtype &&
		    kind->op == c->op && kind->mode == c->mode)
			return kind;
	}
	kind = &s->kind[s->next_kind++ % SWC_SPARSE_KINDS];
	*kind = (struct swc_sparse_kind){
		.count = c->count, .dtype = c->dtype, .op = c->op, .mode = c->mode, .used = true
	};
	return kind;
}

int swc_sparse_reserve(struct swc_sparse *s, size_t bytes)
{
	void *p;

	if (s->bytes >= bytes)
		return 0;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	if (s->memory)
		munmap(s->memory, s->bytes);
	s->memory = p;
	s->bytes = bytes;
	return 0;
}

int swc_sparse_reduce(struct swc_sparse *s, void *v, uint64_t n, enum swingcoll_dtype dtype,
		      enum swingcoll_redop op)
{
	uint64_t start = swc_sparse_now();
	int ret;

	if (!n)
		return 0;
	ret = swc_allreduce(v, v, n, dtype, op, s->comm);
	s->waited_ns += swc_sparse_now() - start;
	s->last.reduced_bytes += n * swingcoll_dtype_size(dtype);
	s->last.rounds++;
	return ret;
}

int swc_sparse_start(struct swc_sparse_queue *q, void *v, uint64_t n, enum swingcoll_dtype dtype,
		     enum swingcoll_redop op)
{
	struct swc_sparse *s = q->s;
	struct swingcoll_req *req = NULL;
	uint64_t start = swc_sparse_now();
	int ret = 0;

	if (n && q->blocking)
		ret = swc_allreduce(v, v, n, dtype, op, s->comm);
	else if (n)
		ret = swingcoll_iallreduce(v, v, n, dtype, op, s->comm, &req);
	/* The program has operations in flight, too: wait for one of our own, if there is any. */
	while (ret == -EAGAIN && q->finished < q->started) {
		ret = swc_sparse_finish(q, q->finished + 1);
		start = swc_sparse_now();
		if (!ret)
			ret = swingcoll_iallreduce(v, v, n, dtype, op, s->comm, &req);
	}
	if (!ret)
		q->req[q->started++] = req;
	s->waited_ns += swc_sparse_now() - start;
	s->last.reduced_bytes += n * swingcoll_dtype_size(dtype);
	return ret;
}

int swc_sparse_finish(struct swc_sparse_queue *q, unsigned int n)
{
	uint64_t start = swc_sparse_now();
	int ret = 0, err;

	for (; q->finished < n; q->finished++) {
		err = q->req[q->finished] ? swingcoll_wait(q->req[q->finished], NULL) : 0;
		if (!ret)
			ret = err;
	}
	q->s->waited_ns += swc_sparse_now() - start;
	return ret;
}

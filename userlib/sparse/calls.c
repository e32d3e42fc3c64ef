// SPDX-License-Identifier: LGPL-2.1-or-later
/* The public calls of the sparse allreduce: checks, the automatic choice, lists, and threads. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/blocks.h"
#include "sparse/sparse.h"
#include "src/priv.h"
#include "src/thread.h"

static const char *const names[] = { "auto", "dense", "pack", "sketch", "pack-rows", "coded" };
#define MODES (sizeof(names) / sizeof(names[0]))

SWC_PUBLIC const char *swingcoll_sparse_name(uint32_t mode)
{
	return (mode & 15) < MODES ? names[mode & 15] : NULL;
}

SWC_PUBLIC int swingcoll_sparse_parse(const char *text, uint32_t *mode)
{
	const char *colon = strchr(text, ':');
	char *end;
	long width;

	if (colon) {
		if (strncmp(text, "rows:", 5) && strncmp(text, "pack-rows:", 10))
			return -EINVAL;
		if (colon[1] < '1' || colon[1] > '9')
			return -EINVAL;
		width = strtol(colon + 1, &end, 10);
		if (*end || width >= 1l << 28)
			return -EINVAL;
		*mode = SWINGCOLL_SPARSE_MODE_ROWS(width);
		return 0;
	}
	for (uint32_t i = 0; i < MODES; i++)
		if (i != SWINGCOLL_SPARSE_MODE_PACK_ROWS && !strcmp(text, names[i])) {
			*mode = i;
			return 0;
		}
	return -EINVAL;
}

/* All that every rank must find alike is checked before anything is sent. */
static int check(struct swingcoll_comm *comm, const struct swc_sparse_call *c)
{
	const struct swingcoll_call call = { .coll = SWINGCOLL_ALLREDUCE,
					     .dtype = c->dtype,
					     .op = c->op,
					     .send = c->send,
					     .recv = c->recv,
					     .count = c->count };
	struct swc_coll_op op;
	uint32_t mode = c->mode & 15;
	int ret = swc_coll_prepare(comm, &call, &op);

	if (ret)
		return ret;
	if (mode >= MODES || (mode == SWINGCOLL_SPARSE_MODE_PACK_ROWS) != !!(c->mode >> 4))
		return swc_comm_fail(comm, -EINVAL,
				     "sparse allreduce: mode %#x does not exist: they are "
				     "auto, dense, pack, sketch, coded, and rows with a width",
				     c->mode);
	if (mode == SWINGCOLL_SPARSE_MODE_CODED && c->dtype != SWINGCOLL_BF16)
		return swc_comm_fail(comm, -EINVAL,
				     "sparse allreduce: coded is for bf16, not for %s",
				     swingcoll_dtype_name(c->dtype));
	if (mode == SWINGCOLL_SPARSE_MODE_SKETCH &&
	    (c->op != SWINGCOLL_SUM || c->dtype > SWINGCOLL_U64))
		return swc_comm_fail(comm, -EINVAL,
				     "sparse allreduce: sketch is for sums of integers, "
				     "not for %s of %s: use pack",
				     swingcoll_redop_name(c->op), swingcoll_dtype_name(c->dtype));
	return 0;
}

static int choose(struct swc_sparse *s, const struct swc_sparse_call *c,
		  struct swc_sparse_kind *kind)
{
	enum swc_sparse_choice choice = SWC_SPARSE_CHOICE_DENSE;
	struct swc_sparse_vote vote;
	uint64_t start;
	int ret;

	if (c->count * c->size < SWC_SPARSE_AUTO_MIN || swingcoll_comm_size(s->comm) == 1 ||
	    swc_sparse_auto_skip(&kind->choice))
		return swc_sparse_run(s, c, SWINGCOLL_SPARSE_MODE_DENSE, kind);
	swc_sparse_auto_vote(&kind->choice, c->send, c->count, c->size, &vote);
	ret = swc_sparse_reduce(s, &vote, sizeof(vote) / 8, SWINGCOLL_U64, SWINGCOLL_BOR);
	if (ret)
		return ret;
	choice = swc_sparse_auto_decide(&kind->choice, &vote, c->count, c->size);
	start = swc_sparse_now();
	ret = swc_sparse_run(s, c,
			     choice == SWC_SPARSE_CHOICE_PACK ? SWINGCOLL_SPARSE_MODE_PACK
							      : SWINGCOLL_SPARSE_MODE_DENSE,
			     kind);
	if (!ret)
		swc_sparse_auto_ran(&kind->choice, choice, swc_sparse_now() - start,
				    s->last.reduced_bytes - sizeof(vote));
	return ret;
}

/* Dense or coded, by measured times. On one node, memory is always faster than the code. */
static int choose_coded(struct swc_sparse *s, const struct swc_sparse_call *c,
			struct swc_sparse_kind *kind)
{
	uint64_t time[SWC_SPARSE_TIME_WORDS], bytes, dense = c->count * c->size, start;
	enum swc_sparse_choice choice;
	bool held = true;
	int ret;

	bytes = swc_sparse_coded_bytes(s, c->count);
	if (dense < SWC_SPARSE_AUTO_MIN || !bytes || swingcoll_comm_nodes(s->comm) == 1 ||
	    swc_sparse_auto_skip(&kind->choice))
		return swc_sparse_run(s, c, SWINGCOLL_SPARSE_MODE_DENSE, kind);
	swc_sparse_auto_vote_time(&kind->choice, time);
	ret = swc_sparse_reduce(s, time, SWC_SPARSE_TIME_WORDS, SWINGCOLL_U64, SWINGCOLL_BOR);
	if (ret)
		return ret;
	choice = swc_sparse_auto_decide_time(&kind->choice, time, bytes, dense);
	start = swc_sparse_now();
	if (choice == SWC_SPARSE_CHOICE_PACK) {
		ret = swc_sparse_coded(s, c, &held);
		if (ret)
			return ret;
		if (!held)
			swc_sparse_auto_pause(&kind->choice);
	}
	if (choice == SWC_SPARSE_CHOICE_DENSE || !held)
		ret = swc_sparse_run(s, c, SWINGCOLL_SPARSE_MODE_DENSE, kind);
	if (!ret && held)
		swc_sparse_auto_ran(&kind->choice, choice, swc_sparse_now() - start,
				    choice == SWC_SPARSE_CHOICE_PACK ? bytes : dense);
	return ret;
}

static void begin(struct swc_sparse *s, uint64_t dense_bytes)
{
	s->waited_ns = 0;
	s->last = (struct swingcoll_sparse_result){ .dense_bytes = dense_bytes };
}

static void end(struct swc_sparse *s, uint64_t start, int error)
{
	struct swingcoll_sparse_total *t = &s->total;

	s->last.time_ns = swc_sparse_now() - start;
	s->last.codec_ns = s->last.time_ns - s->waited_ns;
	pthread_mutex_lock(&s->lock);
	s->ran = true;
	s->shown = s->last;
	if (!error) {
		t->calls++;
		t->dense_calls += s->last.mode == SWINGCOLL_SPARSE_MODE_DENSE;
		t->reduced_bytes += s->last.reduced_bytes;
		t->dense_bytes += s->last.dense_bytes;
		t->time_ns += s->last.time_ns;
		t->codec_ns += s->last.codec_ns;
	}
	pthread_mutex_unlock(&s->lock);
	if (!error)
		swc_comm_sparse_note(s->comm, s->last.dense_bytes, s->last.reduced_bytes);
}

/* A call that has the state. */
static int run(struct swc_sparse *s, const struct swc_sparse_call *c)
{
	struct swc_sparse_kind *kind = swc_sparse_kind_of(s, c);
	const struct swc_sparse_auto before = kind->choice;
	uint64_t start = swc_sparse_now();
	int ret;

	begin(s, c->count * c->size);
	if (c->mode == SWINGCOLL_SPARSE_MODE_AUTO)
		ret = choose(s, c, kind);
	else if (c->mode == SWINGCOLL_SPARSE_MODE_CODED)
		ret = choose_coded(s, c, kind);
	else
		ret = swc_sparse_run(s, c, c->mode, kind);
	/* Nothing has started. If the program calls again, this rank must still choose as the others do. */
	if (ret == -EAGAIN)
		kind->choice = before;
	end(s, start, ret);
	return ret;
}

SWC_PUBLIC int swingcoll_sparse_allreduce(const void *send, void *recv, size_t count,
					  enum swingcoll_dtype dtype, enum swingcoll_redop op,
					  uint32_t mode, struct swingcoll_comm *comm)
{
	const struct swc_sparse_call c = {
		send, recv, count, dtype, op, mode, (unsigned int)swingcoll_dtype_size(dtype)
	};
	struct swc_sparse *s;
	int ret = check(comm, &c);

	if (!ret)
		ret = swc_sparse_enter(comm, &s);
	if (ret)
		return ret;
	ret = run(s, &c);
	swc_sparse_leave(s);
	return ret;
}

SWC_PUBLIC int swingcoll_sparse_auto(struct swingcoll_comm *comm, int on)
{
	struct swc_sparse *s;
	int ret = swc_sparse_enter(comm, &s);

	if (ret)
		return ret;
	comm->sparse_auto = on;
	swc_sparse_leave(s);
	return 0;
}

/* ---- in a thread ---- */

struct swingcoll_sparse_req {
	struct swc_sparse *s;
	struct swc_sparse_call call;
	pthread_t thread;
	int done; /* atomic */
	int error;
};

static void *thread_main(void *arg)
{
	struct swingcoll_sparse_req *req = arg;

	req->error = run(req->s, &req->call);
	/* Pairs with the acquire in swingcoll_sparse_test(). */
	__atomic_store_n(&req->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Before the communicator ends: the thread of a call that nobody has waited for uses it. */
static void settle(void *attached)
{
	struct swc_sparse *s = attached;

	if (s->pending)
		swingcoll_sparse_wait(s->pending);
}

SWC_PUBLIC int swingcoll_isparse_allreduce(const void *send, void *recv, size_t count,
					   enum swingcoll_dtype dtype, enum swingcoll_redop op,
					   uint32_t mode, struct swingcoll_comm *comm,
					   struct swingcoll_sparse_req **out)
{
	struct swingcoll_sparse_req *req;
	int ret;

	if (!out)
		return -EINVAL;
	*out = NULL;
	req = calloc(1, sizeof(*req));
	if (!req)
		return -ENOMEM;
	req->call = (struct swc_sparse_call){
		send, recv, count, dtype, op, mode, (unsigned int)swingcoll_dtype_size(dtype)
	};
	ret = check(comm, &req->call);
	if (!ret)
		ret = swc_sparse_enter(comm, &req->s);
	if (ret)
		goto err_free;
	comm->settle = settle;
	ret = swc_thread_create(&req->thread, thread_main, req);
	if (ret)
		goto err_leave;
	req->s->pending = req;
	*out = req;
	return 0;

err_leave:
	swc_sparse_leave(req->s);
err_free:
	free(req);
	return ret;
}

SWC_PUBLIC int swingcoll_sparse_wait(struct swingcoll_sparse_req *req)
{
	int ret;

	if (!req)
		return -EINVAL;
	if (req->s->comm->forked)
		return -EBADF;
	pthread_join(req->thread, NULL);
	ret = req->error;
	req->s->pending = NULL;
	swc_sparse_leave(req->s);
	free(req);
	return ret;
}

SWC_PUBLIC int swingcoll_sparse_test(struct swingcoll_sparse_req *req)
{
	if (!req)
		return -EINVAL;
	if (req->s->comm->forked)
		return -EBADF;
	if (!__atomic_load_n(&req->done, __ATOMIC_ACQUIRE))
		return -EINPROGRESS;
	return swingcoll_sparse_wait(req);
}

/* ---- lists ---- */

static int check_list(struct swingcoll_comm *comm, const struct swingcoll_sparse_list *list,
		      size_t rows, size_t width, unsigned int size)
{
	size_t elements;

	if (!width || __builtin_mul_overflow(rows, width, &elements) ||
	    elements > SWC_MAX_VECTOR_BYTES / size)
		return swc_comm_fail(comm, -EINVAL,
				     "sparse allreduce: a matrix of %zu rows of %zu elements: "
				     "they must not be empty, and 64 TiB is the most",
				     rows, width);
	for (size_t i = 0; i < list->n; i++)
		if (list->row[i] >= rows || (i && list->row[i] <= list->row[i - 1]))
			return swc_comm_fail(comm, -EINVAL,
					     "sparse allreduce: entry %zu of the list is row %llu: "
					     "rows must ascend, and there are %zu",
					     i, (unsigned long long)list->row[i], rows);
	return 0;
}

/* The rows of the union: those of the list, and zeros for others. */
static void fill_list(const struct swingcoll_sparse_list *list, const uint64_t *index,
		      uint64_t words, size_t row_bytes, struct swingcoll_sparse_list *out)
{
	char *to = out->values;
	size_t mine = 0, n = 0;

	for (uint64_t w = 0; w < words; w++)
		for (uint64_t bits = index[w]; bits; bits &= bits - 1, to += row_bytes) {
			uint64_t row = w * 64 + (unsigned int)__builtin_ctzll(bits);

			out->row[n++] = row;
			if (mine < list->n && list->row[mine] == row)
				memcpy(to, (const char *)list->values + mine++ * row_bytes,
				       row_bytes);
			else
				memset(to, 0, row_bytes);
		}
	out->n = n;
}

static int run_list(struct swc_sparse *s, const struct swingcoll_sparse_list *list, size_t rows,
		    size_t width, enum swingcoll_dtype dtype, enum swingcoll_redop op,
		    struct swingcoll_sparse_list *out)
{
	uint64_t words = swc_sparse_words(rows), *index, n;
	size_t row_bytes = width * swingcoll_dtype_size(dtype);
	int ret = swc_sparse_reserve(s, words * 8);

	if (ret)
		return ret;
	s->last.mode = SWINGCOLL_SPARSE_MODE_PACK_ROWS;
	index = (uint64_t *)s->memory;
	memset(index, 0, words * 8);
	for (size_t i = 0; i < list->n; i++)
		index[list->row[i] / 64] |= 1ull << list->row[i] % 64;
	ret = swc_sparse_reduce(s, index, words, SWINGCOLL_U64, SWINGCOLL_BOR);
	if (!ret)
		ret = swc_sparse_count(index, rows, &n);
	if (ret || !n)
		return ret;
	out->row = malloc(n * sizeof(*out->row));
	out->values = malloc(n * row_bytes);
	if (!out->row || !out->values)
		return -ENOMEM;
	fill_list(list, index, words, row_bytes, out);
	s->last.elements = n * width;
	return swc_sparse_reduce(s, out->values, n * width, dtype, op);
}

SWC_PUBLIC int swingcoll_sparse_allreduce_list(const struct swingcoll_sparse_list *list,
					       size_t rows, size_t width,
					       enum swingcoll_dtype dtype, enum swingcoll_redop op,
					       struct swingcoll_comm *comm,
					       struct swingcoll_sparse_list *result)
{
	const struct swc_sparse_call none = { .dtype = dtype,
					      .op = op,
					      .mode = SWINGCOLL_SPARSE_MODE_PACK };
	struct swc_sparse *s;
	uint64_t start = swc_sparse_now();
	int ret;

	if (!list || !result)
		return -EINVAL;
	*result = (struct swingcoll_sparse_list){ 0 };
	ret = check(comm, &none);
	if (!ret)
		ret = check_list(comm, list, rows, width,
				 (unsigned int)swingcoll_dtype_size(dtype));
	if (!ret)
		ret = swc_sparse_enter(comm, &s);
	if (ret)
		return ret;
	begin(s, rows * width * swingcoll_dtype_size(dtype));
	ret = run_list(s, list, rows, width, dtype, op, result);
	end(s, start, ret);
	swc_sparse_leave(s);
	if (ret)
		swingcoll_sparse_list_free(result);
	return ret;
}

SWC_PUBLIC void swingcoll_sparse_list_free(struct swingcoll_sparse_list *list)
{
	free(list->row);
	free(list->values);
	*list = (struct swingcoll_sparse_list){ 0 };
}

SWC_PUBLIC int swingcoll_sparse_last(struct swingcoll_comm *comm,
				     struct swingcoll_sparse_result *result)
{
	struct swc_sparse *s;
	int ret = result ? swc_sparse_look(comm, &s) : -EINVAL;

	if (ret)
		return ret;
	*result = (struct swingcoll_sparse_result){ 0 };
	if (!s)
		return -ENODATA;
	pthread_mutex_lock(&s->lock);
	*result = s->shown;
	ret = s->ran ? 0 : -ENODATA;
	pthread_mutex_unlock(&s->lock);
	return ret;
}

SWC_PUBLIC int swingcoll_sparse_total(struct swingcoll_comm *comm,
				      struct swingcoll_sparse_total *total)
{
	struct swc_sparse *s;
	int ret = total ? swc_sparse_look(comm, &s) : -EINVAL;

	if (ret)
		return ret;
	*total = (struct swingcoll_sparse_total){ 0 };
	if (!s)
		return 0;
	pthread_mutex_lock(&s->lock);
	*total = s->total;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

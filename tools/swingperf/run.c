// SPDX-License-Identifier: GPL-2.0-only
/*
 * One rank of swingperf: its communicator and buffers, the collective calls, and one row of the table
 * (measure, then check every element). A failed call is reported here, once, with what the library knows
 * about it.
 */
#include "swingperf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define POISON 0xa5

static size_t elem(const struct perf_rank *r)
{
	return swingcoll_dtype_size(r->opt->dtype);
}

static int failed(struct perf_rank *r, const char *what, int err)
{
	/* --tune tries all algorithms, possible or not. */
	if (err == -EOPNOTSUPP && r->opt->tune)
		return err;
	return team_error(r->team, r->comm, what, err);
}

/* ------------------------------------------------------------------ the operation */

static void addresses(const struct perf_rank *r, unsigned int buf, char **send, char **recv)
{
	size_t shard = (size_t)r->team->rank * r->count * elem(r);

	*send = r->send[buf];
	*recv = r->recv[buf];
	if (!r->in_place)
		return;
	*send = r->recv[buf];
	if (r->opt->coll == SWINGCOLL_REDUCE_SCATTER || r->opt->coll == SWINGCOLL_SCATTER)
		*recv += shard;
	else if (r->opt->coll == SWINGCOLL_ALLGATHER || r->opt->coll == SWINGCOLL_GATHER)
		*send += shard;
}

static int call_blocking(struct perf_rank *r, const void *send, void *recv)
{
	const struct perf_options *o = r->opt;

	switch (o->coll) {
	case SWINGCOLL_ALLREDUCE:
		return swingcoll_allreduce(send, recv, r->count, o->dtype, o->op, r->comm);
	case SWINGCOLL_REDUCE_SCATTER:
		return swingcoll_reduce_scatter(send, recv, r->count, o->dtype, o->op, r->comm);
	case SWINGCOLL_ALLGATHER:
		return swingcoll_allgather(send, recv, r->count, o->dtype, r->comm);
	case SWINGCOLL_BROADCAST:
		return swingcoll_broadcast(send, recv, r->count, o->dtype, o->root, r->comm);
	case SWINGCOLL_REDUCE:
		return swingcoll_reduce(send, recv, r->count, o->dtype, o->op, o->root, r->comm);
	case SWINGCOLL_BARRIER:
		return swingcoll_barrier(r->comm);
	case SWINGCOLL_ALLTOALL:
		return swingcoll_alltoall(send, recv, r->count, o->dtype, r->comm);
	case SWINGCOLL_GATHER:
		return swingcoll_gather(send, recv, r->count, o->dtype, o->root, r->comm);
	case SWINGCOLL_SCATTER:
		return swingcoll_scatter(send, recv, r->count, o->dtype, o->root, r->comm);
	}
	return -EINVAL;
}

static int call_start(struct perf_rank *r, const void *send, void *recv, struct swingcoll_req **q)
{
	const struct perf_options *o = r->opt;

	switch (o->coll) {
	case SWINGCOLL_ALLREDUCE:
		return swingcoll_iallreduce(send, recv, r->count, o->dtype, o->op, r->comm, q);
	case SWINGCOLL_REDUCE_SCATTER:
		return swingcoll_ireduce_scatter(send, recv, r->count, o->dtype, o->op, r->comm, q);
	case SWINGCOLL_ALLGATHER:
		return swingcoll_iallgather(send, recv, r->count, o->dtype, r->comm, q);
	case SWINGCOLL_BROADCAST:
		return swingcoll_ibroadcast(send, recv, r->count, o->dtype, o->root, r->comm, q);
	case SWINGCOLL_REDUCE:
		return swingcoll_ireduce(send, recv, r->count, o->dtype, o->op, o->root, r->comm,
					 q);
	case SWINGCOLL_BARRIER:
		return swingcoll_ibarrier(r->comm, q);
	case SWINGCOLL_ALLTOALL:
		return swingcoll_ialltoall(send, recv, r->count, o->dtype, r->comm, q);
	case SWINGCOLL_GATHER:
		return swingcoll_igather(send, recv, r->count, o->dtype, o->root, r->comm, q);
	case SWINGCOLL_SCATTER:
		return swingcoll_iscatter(send, recv, r->count, o->dtype, o->root, r->comm, q);
	}
	return -EINVAL;
}

static int wait_req(struct perf_rank *r, unsigned int buf)
{
	int ret;

	if (!r->req[buf])
		return 0;
	ret = swingcoll_wait(r->req[buf], NULL);
	r->req[buf] = NULL;
	return ret;
}

static int op_start(void *arg, unsigned int buf)
{
	struct perf_rank *r = arg;
	char *send, *recv;
	int ret;

	addresses(r, buf, &send, &recv);
	if (!r->opt->nonblocking)
		return call_blocking(r, send, recv);
	ret = wait_req(r, buf);
	return ret ? ret : call_start(r, send, recv, &r->req[buf]);
}

static int op_drain(void *arg)
{
	struct perf_rank *r = arg;
	unsigned int i;
	int ret = 0, err;

	for (i = 0; r->opt->nonblocking && i < r->opt->rule.buffers; i++) {
		err = wait_req(r, i);
		if (!ret)
			ret = err;
	}
	return ret;
}

/*
 * Ranks on several nodes leave the bootstrap's exchange one after the other, perhaps further apart than an
 * operation takes; a barrier after it lets them start together.
 */
static int op_sync(void *arg)
{
	struct perf_rank *r = arg;
	int ret = team_barrier(r->team);

	return ret || r->team->sh ? ret : swingcoll_barrier(r->comm);
}

static int op_max(void *arg, double *v)
{
	return team_max(((struct perf_rank *)arg)->team, v);
}

static const struct perf_ops loop_ops = {
	.start = op_start,
	.drain = op_drain,
	.sync = op_sync,
	.max = op_max,
};

/* ------------------------------------------------------------------ checking */

/* Elements that this rank sends. */
static size_t sent_elems(const struct perf_rank *r)
{
	switch (r->opt->coll) {
	case SWINGCOLL_REDUCE_SCATTER:
	case SWINGCOLL_ALLTOALL:
		return r->total;
	case SWINGCOLL_BROADCAST:
		return r->team->rank == r->opt->root ? r->count : 0;
	case SWINGCOLL_SCATTER:
		return r->team->rank == r->opt->root ? r->total : 0;
	case SWINGCOLL_BARRIER:
		return 0;
	default:
		return r->count;
	}
}

static void fill(struct perf_rank *r, struct pattern *p, unsigned int buf)
{
	char *send, *recv;

	addresses(r, buf, &send, &recv);
	memset(r->recv[buf], POISON, r->total * p->elem);
	pattern_fill(p, p->own, send, 0, sent_elems(r));
}

static size_t compare(struct perf_rank *r, struct pattern *p, const char *table, const char *buf,
		      size_t first, size_t n, bool *reported)
{
	size_t wrong = pattern_wrong(p, table, buf, first, n), i;
	char got[64], want[64];

	if (!wrong || *reported)
		return wrong;
	*reported = true;
	for (i = 0; i < n; i++)
		if (pattern_wrong(p, table, buf + i * p->elem, first + i, 1))
			break;
	pattern_show(p, buf + i * p->elem, got, sizeof(got));
	pattern_show(p, table + (first + i) % p->period * p->elem, want, sizeof(want));
	fprintf(stderr,
		"swingperf: rank %d: wrong result: %s %s, count %zu, %s, element %zu: %s, not %s "
		"(%zu of %zu wrong)\n",
		r->team->rank, swingcoll_coll_name(r->opt->coll),
		swingcoll_dtype_name(r->opt->dtype), r->count,
		r->in_place ? "in place" : "out of place", first + i, got, want, wrong, n);
	return wrong;
}

/* Wrong elements after one operation; out of place the data sent must be unchanged, too. */
static size_t check_buf(struct perf_rank *r, struct pattern *p, unsigned int buf, bool *reported)
{
	int rank = r->team->rank, from;
	char *send, *recv;
	size_t wrong = 0;

	addresses(r, buf, &send, &recv);
	switch (r->opt->coll) {
	case SWINGCOLL_REDUCE_SCATTER:
		pattern_expect_reduced(p);
		wrong += compare(r, p, p->expect, recv, (size_t)rank * r->count, r->count,
				 reported);
		break;
	case SWINGCOLL_GATHER:
		if (rank != r->opt->root)
			break;
		/* fall through */
	case SWINGCOLL_ALLGATHER:
		for (from = 0; from < p->nranks; from++) {
			pattern_expect_from(p, from);
			wrong += compare(r, p, p->expect,
					 r->recv[buf] + (size_t)from * r->count * p->elem, 0,
					 r->count, reported);
		}
		break;
	case SWINGCOLL_ALLTOALL:
		for (from = 0; from < p->nranks; from++) {
			pattern_expect_from(p, from);
			wrong += compare(r, p, p->expect,
					 r->recv[buf] + (size_t)from * r->count * p->elem,
					 (size_t)rank * r->count, r->count, reported);
		}
		break;
	case SWINGCOLL_SCATTER:
		pattern_expect_from(p, r->opt->root);
		wrong += compare(r, p, p->expect, recv, (size_t)rank * r->count, r->count,
				 reported);
		break;
	case SWINGCOLL_BROADCAST:
		pattern_expect_from(p, r->opt->root);
		wrong += compare(r, p, p->expect, recv, 0, r->count, reported);
		break;
	case SWINGCOLL_REDUCE:
		if (rank != r->opt->root)
			break;
		/* fall through */
	case SWINGCOLL_ALLREDUCE:
		pattern_expect_reduced(p);
		wrong += compare(r, p, p->expect, recv, 0, r->count, reported);
		break;
	case SWINGCOLL_BARRIER:
		break;
	}
	if (!r->in_place)
		wrong += compare(r, p, p->own, send, 0, sent_elems(r), reported);
	return wrong;
}

static int check_row(struct perf_rank *r, struct perf_row *row)
{
	struct pattern p;
	bool reported = false;
	unsigned int i;
	int ret;

	ret = pattern_init(&p, r->opt->coll, r->opt->dtype, r->opt->op, r->team->nranks, r->total);
	if (ret)
		return ret;
	pattern_own(&p, r->team->rank);
	for (i = 0; i < r->opt->rule.buffers; i++)
		fill(r, &p, i);
	for (i = 0; !ret && i < r->opt->rule.buffers; i++)
		ret = op_start(r, i);
	if (!ret)
		ret = op_drain(r);
	for (i = 0; !ret && i < r->opt->rule.buffers; i++)
		row->wrong += check_buf(r, &p, i, &reported);
	pattern_free(&p);
	return ret;
}

/* ------------------------------------------------------------------ a row */

/*
 * Data for measuring: zeros, which every operation maps to zeros. Thousands of operations in place must not
 * end in infinities, whose arithmetic may be slower.
 */
static void fill_zero(struct perf_rank *r)
{
	unsigned int i;

	for (i = 0; i < r->opt->rule.buffers; i++) {
		memset(r->send[i], 0, r->total * elem(r));
		memset(r->recv[i], 0, r->total * elem(r));
	}
}

/* @what: is told in words. */
static void set_size(struct perf_rank *r, size_t bytes, bool in_place, char what[160])
{
	size_t nshards = perf_has_shards(r->opt) ? (size_t)r->team->nranks : 1;

	r->in_place = in_place;
	r->count = r->opt->coll == SWINGCOLL_BARRIER ? 0 : bytes / elem(r) / nshards;
	r->total = r->count * nshards;
	snprintf(what, 160, "%s of %zu x %s, %s", swingcoll_coll_name(r->opt->coll), r->count,
		 swingcoll_dtype_name(r->opt->dtype), in_place ? "in place" : "out of place");
}

int perf_rank_own(struct perf_rank *r, size_t bytes, double *us, size_t *measured)
{
	char what[160];
	int ret;

	set_size(r, bytes, false, what);
	*measured = r->total * elem(r);
	fill_zero(r);
	ret = perf_measure_own(&loop_ops, r, &r->opt->rule, us);
	return ret ? failed(r, what, ret) : 0;
}

int perf_rank_row(struct perf_rank *r, size_t bytes, bool in_place, struct perf_row *row)
{
	char what[160];
	int ret;

	memset(row, 0, sizeof(*row));
	set_size(r, bytes, in_place, what);
	row->in_place = in_place;
	row->count = r->count;
	row->bytes = r->total * elem(r);

	fill_zero(r);
	ret = perf_measure(&loop_ops, r, &r->opt->rule, &row->t);
	row->algo = swingcoll_comm_algo(r->comm);
	if (!ret && r->opt->check)
		ret = check_row(r, row);
	if (!ret)
		ret = team_sum(r->team, &row->wrong);
	return ret ? failed(r, what, ret) : 0;
}

/* ------------------------------------------------------------------ a run */

int perf_rank_open(struct perf_rank *r)
{
	const struct perf_options *o = r->opt;
	struct swingcoll_comm_opts copts = {
		.timeout_ms = o->timeout_ms,
		.flags = (o->reorder ? SWINGCOLL_ALLOW_REORDER : 0) |
			 (o->urgent ? SWINGCOLL_URGENT : 0),
		.algo = o->algo,
		.topo = o->topo,
		.tuning = o->tuning,
		.slot_max = o->slot_max,
		.use_io_uring = o->use_io_uring,
	};
	unsigned int i;
	int ret;

	team_bind(r->team, o->cpus, o->ncpus);
	for (i = 0; i < o->rule.buffers; i++) {
		r->send[i] = perf_alloc(o->max_bytes, 2 * r->team->rank);
		r->recv[i] = perf_alloc(o->max_bytes, 2 * r->team->rank + 1);
		if (!r->send[i] || !r->recv[i])
			return failed(r, "buffers", -ENOMEM);
	}
	if (r->team->boot)
		ret = swingcoll_comm_create_from(&r->comm, r->team->boot, &copts);
	else
		ret = swingcoll_comm_create(&r->comm, &r->team->id, r->team->nranks, r->team->rank,
					    &copts);
	if (ret) {
		r->comm = NULL;
		return failed(r, "joining the communicator", ret);
	}
	if (r->team->boot && !r->team->sh && swingcoll_comm_nodes(r->comm) == 1)
		ret = team_share(r->team);
	return ret ? failed(r, "meeting the other ranks", ret) : 0;
}

int perf_rank_open_number(struct perf_rank *r, unsigned int number)
{
	struct swingcoll_id id = r->team->id;
	int ret;

	for (unsigned int i = 0; i < 4; i++)
		r->team->id.bytes[i] ^= (unsigned char)(number >> 8 * i);
	ret = perf_rank_open(r);
	r->team->id = id;
	return ret;
}

void perf_rank_close(struct perf_rank *r)
{
	swingcoll_comm_destroy(r->comm);
}

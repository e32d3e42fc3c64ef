// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingperf --sparse: times sparse allreduces by their modes, counts the bytes that rank 0 sends, checks
 * every element against a sum that each rank computes itself, and prints a hash of the result.
 */
#include "swingperf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/device.h"
#include "common/hash.h"
#include "common/json.h"
#include "swingcoll_sparse.h"

#define MAX_MODES 4

/* A rank, and the mode that is measured. */
struct sparse_rank {
	struct perf_rank *r;
	uint32_t mode;
	void *expected;
	uint64_t set; /* elements of the union */
};

struct sparse_row {
	struct perf_time t;
	struct swingcoll_sparse_result result;
	double sent;  /* bytes */
	bool counted; /* on the way out of this node */
	uint64_t wrong;
	uint64_t hash;
};

static bool is_integer(enum swingcoll_dtype dtype)
{
	return dtype <= SWINGCOLL_U64;
}

bool perf_sparse_mode_fits(const struct perf_options *opt)
{
	uint32_t mode;

	return !swingcoll_sparse_parse(opt->mode, &mode) &&
	       (mode != SWINGCOLL_SPARSE_MODE_SKETCH || is_integer(opt->dtype)) &&
	       (mode != SWINGCOLL_SPARSE_MODE_CODED || opt->dtype == SWINGCOLL_BF16);
}

static unsigned int modes(const struct perf_options *opt, uint32_t mode[MAX_MODES])
{
	unsigned int n = 0;

	if (opt->mode) {
		swingcoll_sparse_parse(opt->mode, &mode[n]);
		return 1;
	}
	mode[n++] = SWINGCOLL_SPARSE_MODE_DENSE;
	mode[n++] = SWINGCOLL_SPARSE_MODE_PACK;
	if (opt->input.overlap == SPARSE_ROWS)
		mode[n++] = SWINGCOLL_SPARSE_MODE_ROWS(opt->input.width);
	if (is_integer(opt->dtype))
		mode[n++] = SWINGCOLL_SPARSE_MODE_SKETCH;
	else if (opt->dtype == SWINGCOLL_BF16)
		mode[n++] = SWINGCOLL_SPARSE_MODE_CODED;
	return n;
}

/* ------------------------------------------------------------------ data */

/* Add a whole number from -8 to 7: sums of up to 32 ranks are exact. */
static void add_bf16(const struct perf_options *opt, uint64_t rank, uint64_t i, uint16_t *v)
{
	int small = (int)(sparse_int(&opt->input, rank, i) & 15) - 8;
	uint32_t bits = (uint32_t)*v << 16;
	float f;

	memcpy(&f, &bits, 4);
	f += (float)(small ? small : 1);
	memcpy(&bits, &f, 4);
	*v = (uint16_t)(bits >> 16);
}

/* Add the value of a rank to element i. Integers wrap around, as in the library. */
static void add_value(const struct perf_options *opt, uint64_t rank, uint64_t i, void *v)
{
	size_t size = swingcoll_dtype_size(opt->dtype);
	uint64_t old = 0, bits;

	if (opt->dtype == SWINGCOLL_F32) {
		((float *)v)[i] += sparse_float(&opt->input, rank, i);
	} else if (opt->dtype == SWINGCOLL_F64) {
		((double *)v)[i] += sparse_float(&opt->input, rank, i);
	} else if (opt->dtype == SWINGCOLL_BF16) {
		add_bf16(opt, rank, i, (uint16_t *)v + i);
	} else {
		bits = sparse_int(&opt->input, rank, i);
		if (size < 4 && !(bits & ((1ull << 8 * size) - 1)))
			bits = 1;
		memcpy(&old, (char *)v + i * size, size);
		old += bits;
		memcpy((char *)v + i * size, &old, size);
	}
}

/* What this rank sends, and what all should receive. */
static void fill(struct sparse_rank *s)
{
	const struct perf_options *opt = s->r->opt;
	size_t bytes = s->r->count * swingcoll_dtype_size(opt->dtype);
	int nranks = s->r->team->nranks;

	memset(s->r->send[0], 0, bytes);
	memset(s->expected, 0, bytes);
	s->set = 0;
	for (uint64_t i = 0; i < s->r->count; i++) {
		bool any = false;

		for (int rank = 0; rank < nranks; rank++) {
			if (!sparse_is_set(&opt->input, (uint64_t)rank, i))
				continue;
			any = true;
			add_value(opt, (uint64_t)rank, i, s->expected);
			if (rank == s->r->team->rank)
				add_value(opt, (uint64_t)rank, i, s->r->send[0]);
		}
		s->set += any;
	}
}

static uint64_t count_wrong(const struct sparse_rank *s)
{
	size_t size = swingcoll_dtype_size(s->r->opt->dtype);
	uint64_t wrong = 0;

	if (!s->r->opt->check)
		return 0;
	for (size_t i = 0; i < s->r->count; i++)
		wrong += memcmp(s->r->recv[0] + i * size, (char *)s->expected + i * size, size) !=
			 0;
	return wrong;
}

/* ------------------------------------------------------------------ a row */

static int op_start(void *arg, unsigned int buf)
{
	struct sparse_rank *s = arg;
	const struct perf_options *o = s->r->opt;

	(void)buf;
	return swingcoll_sparse_allreduce(s->r->send[0], s->r->recv[0], s->r->count, o->dtype,
					  o->op, s->mode, s->r->comm);
}

static int op_sync(void *arg)
{
	struct sparse_rank *s = arg;
	int ret = team_barrier(s->r->team);

	return ret || s->r->team->sh ? ret : swingcoll_barrier(s->r->comm);
}

static int op_max(void *arg, double *v)
{
	return team_max(((struct sparse_rank *)arg)->r->team, v);
}

/* Bytes that the module has sent to other nodes, for any process of this one. */
static uint64_t bytes_out(void)
{
	uint64_t v[SWC_STAT_NR] = { 0 };
	int fd = device_open();

	if (fd < 0)
		return 0;
	device_stats(fd, v, SWC_STAT_NR);
	close(fd);
	return v[SWC_STAT_BYTES_SENT];
}

/*
 * One call between two readings of the counter. On one node nothing goes out: the bytes that were really
 * reduced count as the ranks of a ring send them.
 */
static int count_bytes(struct sparse_rank *s, struct sparse_row *row)
{
	double p = s->r->team->nranks;
	uint64_t before;
	int ret = op_sync(s);

	if (ret)
		return ret;
	before = bytes_out();
	ret = op_sync(s);
	if (!ret)
		ret = op_start(s, 0);
	if (!ret)
		ret = op_sync(s);
	if (ret)
		return ret;
	row->sent = (double)(bytes_out() - before);
	row->counted = swingcoll_comm_nodes(s->r->comm) > 1;
	swingcoll_sparse_last(s->r->comm, &row->result);
	if (!row->counted)
		row->sent = (double)row->result.reduced_bytes * 2 * (p - 1) / p;
	else /* ranks of a node share the counter */
		row->sent *= swingcoll_comm_nodes(s->r->comm) / p;
	return op_sync(s);
}

static int measure(struct sparse_rank *s, struct sparse_row *row)
{
	static const struct perf_ops ops = { .start = op_start, .sync = op_sync, .max = op_max };
	size_t bytes = s->r->count * swingcoll_dtype_size(s->r->opt->dtype);
	int ret = perf_measure(&ops, s, &s->r->opt->rule, &row->t);

	memset(s->r->recv[0], 0xa5, bytes);
	if (!ret)
		ret = count_bytes(s, row);
	row->wrong = count_wrong(s);
	row->hash = hash_bytes(s->r->recv[0], bytes);
	return ret ? ret : team_sum(s->r->team, &row->wrong);
}

/* ------------------------------------------------------------------ output */

static void print_header(const struct perf_rank *r)
{
	if (r->team->rank || r->opt->format != PERF_TABLE)
		return;
	printf("# swingperf %s, sparse allreduce, %d ranks on %d nodes, %s, density %g, seed %llu\n",
	       swingcoll_version(), r->team->nranks, swingcoll_comm_nodes(r->comm),
	       swingcoll_dtype_name(r->opt->dtype), r->opt->input.density,
	       (unsigned long long)r->opt->input.seed);
	printf("#     count       union  mode       sent (B)    time (us)   codec (us)  wrong  FNV-1a of the result\n");
}

static void print_row(const struct sparse_rank *s, const struct sparse_row *row)
{
	const struct perf_options *opt = s->r->opt;
	const char *mode = swingcoll_sparse_name(row->result.mode);
	char hash[20];
	cJSON *o;

	if (s->r->team->rank)
		return;
	snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)row->hash);
	if (opt->format == PERF_TABLE) {
		printf("%11zu %11llu  %-9s %10.0f %12.1f %12.1f %6llu  %s\n", s->r->count,
		       (unsigned long long)s->set, mode, row->sent, row->t.time_us,
		       (double)row->result.codec_ns * 1e-3, (unsigned long long)row->wrong, hash);
		fflush(stdout);
		return;
	}
	o = json_new_record();
	cJSON_AddStringToObject(o, "mode", mode);
	cJSON_AddStringToObject(o, "asked", swingcoll_sparse_name(s->mode));
	cJSON_AddNumberToObject(o, "ranks", s->r->team->nranks);
	cJSON_AddStringToObject(o, "dtype", swingcoll_dtype_name(opt->dtype));
	cJSON_AddNumberToObject(o, "density", opt->input.density);
	cJSON_AddNumberToObject(o, "count", (double)s->r->count);
	cJSON_AddNumberToObject(o, "union", (double)s->set);
	cJSON_AddNumberToObject(o, "bytes_sent", row->sent);
	cJSON_AddStringToObject(o, "bytes_from", row->counted ? "counter" : "ring");
	cJSON_AddNumberToObject(o, "reduced_bytes", (double)row->result.reduced_bytes);
	cJSON_AddNumberToObject(o, "rounds", row->result.rounds);
	cJSON_AddNumberToObject(o, "time_ns", row->t.time_us * 1e3);
	cJSON_AddNumberToObject(o, "codec_ns", (double)row->result.codec_ns);
	cJSON_AddNumberToObject(o, "wrong", (double)row->wrong);
	cJSON_AddStringToObject(o, "fnv1a64", hash);
	json_add_time(o, &row->t);
	perf_print_record(opt, o);
}

int perf_sparse(struct perf_rank *r, uint64_t *wrong)
{
	size_t size = swingcoll_dtype_size(r->opt->dtype);
	struct sparse_rank s = { .r = r, .expected = malloc(r->opt->max_bytes) };
	uint32_t mode[MAX_MODES];
	unsigned int n = modes(r->opt, mode);
	int ret = s.expected ? 0 : -ENOMEM;

	print_header(r);
	for (size_t i = 0; !ret && i < r->opt->nsizes; i++) {
		r->count = r->opt->sizes[i] / size;
		fill(&s);
		for (unsigned int m = 0; !ret && m < n; m++) {
			struct sparse_row row = { 0 };

			s.mode = mode[m];
			ret = measure(&s, &row);
			*wrong += row.wrong;
			if (!ret)
				print_row(&s, &row);
		}
	}
	free(s.expected);
	return ret ? team_error(r->team, r->comm, "sparse allreduce", ret) : 0;
}

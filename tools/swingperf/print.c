// SPDX-License-Identifier: GPL-2.0-only
/* swingperf's output: the columns of nccl-tests, or a record per measurement, as JSON or as a line of CSV. */
#include "swingperf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/json.h"

static bool op_reduces(const struct perf_options *opt)
{
	return opt->coll == SWINGCOLL_ALLREDUCE || opt->coll == SWINGCOLL_REDUCE ||
	       opt->coll == SWINGCOLL_REDUCE_SCATTER;
}

static const char *redop_text(const struct perf_options *opt)
{
	return op_reduces(opt) ? swingcoll_redop_name(opt->op) : "none";
}

static int root_or_minus(const struct perf_options *opt)
{
	bool rooted = opt->coll == SWINGCOLL_BROADCAST || opt->coll == SWINGCOLL_REDUCE ||
		      opt->coll == SWINGCOLL_GATHER || opt->coll == SWINGCOLL_SCATTER;

	return rooted ? opt->root : -1;
}

static double algbw(const struct perf_row *row)
{
	return row->t.time_us > 0 ? (double)row->bytes / row->t.time_us * 1e-3 : 0;
}

double perf_busbw(const struct perf_options *opt, int nranks, const struct perf_row *row)
{
	double n = nranks, factor = 1;

	if (opt->coll == SWINGCOLL_ALLREDUCE)
		factor = 2 * (n - 1) / n;
	else if (perf_has_shards(opt))
		factor = (n - 1) / n;
	return algbw(row) * factor;
}

/* However many nodes have numbers of ranks of their own. */
static char *whole_topo(const struct swingcoll_comm *comm)
{
	int bytes = swingcoll_comm_topo(comm, NULL, 0);
	char *text = bytes < 0 ? NULL : malloc((size_t)bytes + 1);

	if (!text || swingcoll_comm_topo(comm, text, (size_t)bytes + 1) != bytes) {
		fprintf(stderr, "swingperf: no memory for the name of the topology\n");
		exit(1);
	}
	return text;
}

char *perf_topo_text(const struct swingcoll_comm *comm)
{
	char *text = whole_topo(comm);

	text[strcspn(text, "@")] = 0;
	return text;
}

static void print_columns(const struct perf_options *opt)
{
	bool one = opt->in_place_only || opt->out_of_place_only || opt->coll == SWINGCOLL_BARRIER;
	const char *half = "     time   algbw   busbw #wrong";
	const char *units = "     (us)  (GB/s)  (GB/s)       ";

	printf("#%64s%s%s\n", "", opt->in_place_only ? "in-place" : "out-of-place",
	       one ? "" : "                       in-place");
	printf("#       size         count      type   redop    root%s%s%s\n", half,
	       one ? "" : half, opt->nccl ? "" : "  algorithm");
	printf("#        (B)    (elements)                          %s%s\n", units,
	       one ? "" : units);
}

void perf_print_header(const struct perf_rank *r)
{
	const struct perf_options *opt = r->opt;
	struct utsname u;

	if (opt->format != PERF_TABLE)
		return;
	uname(&u);
	printf("# swingperf %s, Linux %s, %d ranks %s, %s, algorithm %s, %s calls\n",
	       swingcoll_version(), u.release, r->team->nranks,
	       r->team->forked ? "forked" : "of a launcher", swingcoll_coll_name(opt->coll),
	       opt->algo ? opt->algo : "auto", opt->nonblocking ? "non-blocking" : "blocking");
	if (swingcoll_comm_nodes(r->comm) > 1) {
		char *topo = whole_topo(r->comm);

		printf("# nodes: %d, topology %s\n", swingcoll_comm_nodes(r->comm), topo);
		free(topo);
	}
	if (opt->rule.buffers == 1)
		printf("# buffers: always the same pair, so small sizes are in the caches (--buffers)\n");
	else
		printf("# buffers: %u pairs in rotation\n", opt->rule.buffers);
	printf("# time: median of %u repeats of the mean; checking: %s\n", opt->rule.repeats,
	       opt->check ? "every element" : "off");
	printf("#\n");
	print_columns(opt);
	fflush(stdout);
}

static void print_half(const struct perf_options *opt, int nranks, const struct perf_row *row)
{
	double t = row->t.time_us;

	printf("  %7.*f %7.3f %7.3f",
	       t >= 10000 ? 0
	       : t >= 100 ? 1
			  : 2,
	       t, algbw(row), perf_busbw(opt, nranks, row));
	if (opt->check)
		printf(" %6llu", (unsigned long long)row->wrong);
	else
		printf(" %6s", "N/A");
}

void perf_print_record(const struct perf_options *opt, cJSON *record)
{
	static bool begun;

	if (opt->format == PERF_CSV)
		json_csv(stdout, record, !begun);
	else
		json_record(stdout, record);
	begun = true;
}

static cJSON *new_record(const struct perf_rank *r, const struct perf_row *row)
{
	const struct perf_options *opt = r->opt;
	cJSON *o = json_new_record();
	char *topo = perf_topo_text(r->comm);

	cJSON_AddStringToObject(o, "op", swingcoll_coll_name(opt->coll));
	cJSON_AddNumberToObject(o, "bytes", (double)row->bytes);
	cJSON_AddNumberToObject(o, "count", (double)row->count);
	cJSON_AddStringToObject(o, "dtype", swingcoll_dtype_name(opt->dtype));
	cJSON_AddStringToObject(o, "redop", redop_text(opt));
	cJSON_AddNumberToObject(o, "root", root_or_minus(opt));
	cJSON_AddStringToObject(o, "asked", opt->algo ? opt->algo : "auto");
	cJSON_AddStringToObject(o, "algo", row->algo);
	cJSON_AddStringToObject(o, "topo", topo);
	free(topo);
	cJSON_AddNumberToObject(o, "ranks", r->team->nranks);
	cJSON_AddBoolToObject(o, "inplace", row->in_place);
	cJSON_AddBoolToObject(o, "nonblocking", opt->nonblocking);
	cJSON_AddNumberToObject(o, "buffers", opt->rule.buffers);
	json_add_time(o, &row->t);
	cJSON_AddNumberToObject(o, "algbw_gbs", algbw(row));
	cJSON_AddNumberToObject(o, "busbw_gbs", perf_busbw(opt, r->team->nranks, row));
	if (opt->check)
		cJSON_AddNumberToObject(o, "errors", (double)row->wrong);
	else
		cJSON_AddNullToObject(o, "errors");
	return o;
}

/* With --compare, records are what is compared, and only the comparison is printed as such. */
static void add_record(const struct perf_rank *r, const struct perf_row *row)
{
	if (!row)
		return;
	if (r->records)
		cJSON_AddItemToArray(r->records, new_record(r, row));
	else if (r->opt->format != PERF_TABLE)
		perf_print_record(r->opt, new_record(r, row));
}

void perf_print_row(const struct perf_rank *r, const struct perf_row *out,
		    const struct perf_row *in)
{
	const struct perf_row *any = out ? out : in;
	const struct perf_options *opt = r->opt;

	add_record(r, out);
	add_record(r, in);
	if (opt->format != PERF_TABLE)
		return;
	printf("%12zu  %12zu  %8s  %6s  %6d", any->bytes, any->count,
	       opt->nccl ? perf_nccl_dtype(opt->dtype) : swingcoll_dtype_name(opt->dtype),
	       redop_text(opt), root_or_minus(opt));
	if (out)
		print_half(opt, r->team->nranks, out);
	if (in)
		print_half(opt, r->team->nranks, in);
	printf(opt->nccl ? "\n" : "  %s\n", any->algo);
	fflush(stdout);
}

void perf_print_footer(const struct perf_options *opt, uint64_t wrong, double busbw_mean)
{
	if (opt->format != PERF_TABLE)
		return;
	printf("# wrong elements: ");
	if (opt->check)
		printf("%llu %s\n", (unsigned long long)wrong, wrong ? "FAILED" : "OK");
	else
		printf("not checked\n");
	printf("# mean bus bandwidth: %.3f GB/s\n", busbw_mean);
}

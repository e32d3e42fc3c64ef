// SPDX-License-Identifier: GPL-2.0-only
/*
 * The frame of the programs that swingcoll is compared with: the same loop, buffers and statistics as
 * swingperf's, and the same records.
 */
#include "bench/peer.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "common/json.h"

#define MAX_RANKS 64
/* The data repeats after a prime number of elements. */
#define PERIOD 1021

static const struct cli_option no_options[] = { { 0 } };

void peer_parse(struct peer_options *opt, const char *prog, int *nranks, int argc, char **argv)
{
	static const char *const dtypes[] = { "i32", "f32", NULL };
	char usage[128];
	struct cli cli = {
		.prog = prog, .usage = usage, .options = no_options, .argc = argc, .argv = argv
	};

	snprintf(usage, sizeof(usage), "%s%s i32|f32 BUFFERS TIME_MS BYTES...\n", prog,
		 nranks ? " RANKS" : "");
	*opt = (struct peer_options){ .rule = { .warmup = 3, .repeats = 5 } };
	while (cli_next(&cli) != CLI_END)
		;
	if (nranks) {
		cli_operand(&cli, "RANKS");
		*nranks = (int)cli_number(&cli, 2, MAX_RANKS);
	}
	cli_operand(&cli, "DTYPE");
	opt->is_float = cli_choice(&cli, dtypes);
	cli_operand(&cli, "BUFFERS");
	opt->rule.buffers = (unsigned int)cli_number(&cli, 1, PEER_MAX_BUFFERS);
	cli_operand(&cli, "TIME_MS");
	opt->rule.budget_s = cli_real(&cli, 0.001, 3.6e6) * 1e-3;
	do {
		cli_operand(&cli, "BYTES");
		if (opt->nsizes == PEER_MAX_SIZES)
			cli_fail(&cli, "more than %d sizes", PEER_MAX_SIZES);
		opt->sizes[opt->nsizes++] = cli_size(&cli, 4, 1ull << 32);
	} while (cli_has_operand(&cli));
}

/* Small integers, whose sums are exact in both types. */
static unsigned long check(struct peer *p, const struct perf_ops *ops)
{
	float *sf = p->send[0], *rf = p->recv[0];
	int32_t *si = p->send[0], *ri = p->recv[0];
	unsigned long wrong = 0;

	for (size_t i = 0; i < p->count; i++) {
		if (p->opt->is_float)
			sf[i] = (float)(i % PERIOD) + (float)p->rank;
		else
			si[i] = (int32_t)(i % PERIOD) + p->rank;
	}
	if (ops->start(p, 0))
		return 1;
	for (size_t i = 0; i < p->count; i++) {
		int want = (int)(i % PERIOD) * p->nranks + p->nranks * (p->nranks - 1) / 2;

		wrong += p->opt->is_float ? rf[i] != (float)want : ri[i] != want;
	}
	return wrong;
}

static void print(const struct peer *p, size_t bytes, const struct perf_time *t, double wrong)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "op", "allreduce");
	cJSON_AddNumberToObject(o, "bytes", (double)bytes);
	cJSON_AddNumberToObject(o, "count", (double)p->count);
	cJSON_AddStringToObject(o, "dtype", p->opt->is_float ? "f32" : "i32");
	cJSON_AddStringToObject(o, "redop", "sum");
	cJSON_AddNumberToObject(o, "ranks", p->nranks);
	cJSON_AddBoolToObject(o, "inplace", false);
	json_add_time(o, t);
	cJSON_AddNumberToObject(o, "errors", wrong);
	json_record(stdout, o);
}

int peer_run(struct peer *p, const struct perf_ops *ops)
{
	const struct peer_options *opt = p->opt;
	size_t most = 0;
	double bad = 0;

	for (size_t i = 0; i < opt->nsizes; i++)
		most = opt->sizes[i] > most ? opt->sizes[i] : most;
	for (unsigned int i = 0; i < opt->rule.buffers; i++) {
		p->send[i] = perf_alloc(most, 2 * (unsigned int)p->rank);
		p->recv[i] = perf_alloc(most, 2 * (unsigned int)p->rank + 1);
		if (!p->send[i] || !p->recv[i]) {
			fprintf(stderr, "rank %d: no memory for buffers of %zu bytes\n", p->rank,
				most);
			return 2;
		}
	}
	for (size_t i = 0; i < opt->nsizes; i++) {
		struct perf_time t;
		double wrong;

		p->count = opt->sizes[i] / 4;
		memset(p->send[0], 0, opt->sizes[i]);
		if (perf_measure(ops, p, &opt->rule, &t))
			return 2;
		/* On the rank with most of them. */
		wrong = (double)check(p, ops);
		if (ops->max(p, &wrong))
			return 2;
		bad += wrong;
		if (!p->rank)
			print(p, opt->sizes[i], &t, wrong);
	}
	return bad > 0;
}

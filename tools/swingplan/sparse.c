// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingplan sparse: what a sparse allreduce moves and how long it takes on a ring, by each mode, and up
 * to which density a mode sends less than the dense vector.
 */
#include "swingplan.h"

#include <math.h>
#include <stdio.h>

#include "sparse/exponents.h"
#include "swingcoll.h"

/* Measured on one core: scan of the vector, pack and unpack of a value, of a value by sketch. */
#define SCAN_GBPS 24
#define PACK_NS 4
#define SKETCH_NS 60
/* Likewise, bytes of bf16 in a ns: to and from the code of exponents. */
#define ENCODE_GBYTES 6.4
#define DECODE_GBYTES 15
/* Elements of the union for each cell of a sketch. */
#define LOAD 0.75
#define DEFAULT_GBPS 400
#define DEFAULT_STEP_NS 600

enum mode {
	DENSE,
	PACK,
	PACK_ROWS,
	SKETCH,
	CODED,
	MODES
};

static const char *const mode_name[MODES] = { "dense", "pack", "pack-rows", "sketch", "coded" };

struct estimate {
	double reduced; /* bytes */
	double sent;	/* by a rank */
	unsigned int rounds;
	double time_ns;
	bool lossless;
	double union_even; /* density of the union from which on it sends more than dense; NAN: none */
	double local_even; /* the same as density of a rank */
};

/* The density of a rank at which the union has this one. */
static double local_of(const struct plan_options *opt, double set)
{
	struct sparse_input in = opt->input;
	double low = 0, high = 1;

	for (int i = 0; i < 60; i++) {
		in.density = (low + high) / 2;
		if (sparse_union(&in, opt->nranks) < set)
			low = in.density;
		else
			high = in.density;
	}
	return low;
}

static struct estimate estimate(const struct plan_options *opt, enum mode mode)
{
	double n = (double)opt->count,
	       size = (double)swingcoll_dtype_size((enum swingcoll_dtype)opt->dtype);
	double set = sparse_union(&opt->input, opt->nranks), p = opt->nranks;
	double index = n / 8 / (mode == PACK_ROWS ? (double)opt->input.width : 1);
	double gbps = opt->net.gbps < 0 ? DEFAULT_GBPS : opt->net.gbps;
	double step = opt->net.step_ns < 0 ? DEFAULT_STEP_NS : opt->net.step_ns;
	double load = mode == SKETCH ? LOAD : 1, codec = 0;
	struct estimate e = { .rounds = 1, .lossless = true, .union_even = NAN, .local_even = NAN };

	e.reduced = n * size;
	if (mode == CODED) {
		/* An all-to-all and an allgather. Each rank codes the vector and its sums, and decodes as much. */
		e.reduced = (double)swc_exponents_bytes(opt->count);
		codec = n * size * ((1 + 1 / p) / ENCODE_GBYTES + 2 / DECODE_GBYTES);
	} else if (mode != DENSE) {
		e.reduced = index + n * set * size / load;
		e.rounds = mode == SKETCH ? 1 : 2;
		e.lossless = mode != SKETCH || opt->dtype <= SWC_U64;
		e.union_even = load * (1 - index / n / size);
		e.local_even = local_of(opt, e.union_even);
		codec = n * size * 8 / SCAN_GBPS + n * set * (mode == SKETCH ? SKETCH_NS : PACK_NS);
	}
	e.sent = e.reduced * 2 * (p - 1) / p;
	e.time_ns = e.rounds * 2 * (p - 1) * step + e.sent * 8 / gbps + codec;
	return e;
}

static void print_json(const struct plan_options *opt, const struct estimate *e,
		       const enum mode *mode, unsigned int n, unsigned int best)
{
	cJSON *all = cJSON_CreateArray(), *o;

	for (unsigned int i = 0; i < n; i++) {
		o = cJSON_CreateObject();
		cJSON_AddStringToObject(o, "mode", mode_name[mode[i]]);
		cJSON_AddNumberToObject(o, "union_density", sparse_union(&opt->input, opt->nranks));
		cJSON_AddNumberToObject(o, "reduced_bytes", e[i].reduced);
		cJSON_AddNumberToObject(o, "bytes_per_rank", e[i].sent);
		cJSON_AddNumberToObject(o, "rounds", e[i].rounds);
		cJSON_AddNumberToObject(o, "time_ns", e[i].time_ns);
		cJSON_AddBoolToObject(o, "lossless", e[i].lossless);
		cJSON_AddBoolToObject(o, "chosen", i == best);
		json_add_real(o, "break_even_union", e[i].union_even);
		json_add_real(o, "break_even_local", e[i].local_even);
		cJSON_AddItemToArray(all, o);
	}
	json_document(stdout, all);
}

static void print(const struct plan_options *opt, const struct estimate *e, const enum mode *mode,
		  unsigned int n, unsigned int best)
{
	char reduced[NUMBER_TEXT], sent[NUMBER_TEXT], time[NUMBER_TEXT];

	printf("union of %u ranks: %.4g %%\n", opt->nranks,
	       100 * sparse_union(&opt->input, opt->nranks));
	printf("%-10s %12s %12s %7s %12s  %s\n", "mode", "reduced", "sent a rank", "rounds", "time",
	       "less than dense up to");
	for (unsigned int i = 0; i < n; i++) {
		printf("%-10s %12s %12s %7u %12s", mode_name[mode[i]],
		       number_bytes(e[i].reduced, reduced), number_bytes(e[i].sent, sent),
		       e[i].rounds, number_ns(e[i].time_ns, time));
		if (!isnan(e[i].union_even))
			printf("  %.2f %% of the union, %.2f %% of a rank", 100 * e[i].union_even,
			       100 * e[i].local_even);
		printf("%s%s\n", e[i].lossless ? "" : "  (integers only)",
		       i == best ? "  <- fastest" : "");
	}
}

int sparse_run(const struct plan_options *opt)
{
	struct estimate e[MODES];
	enum mode mode[MODES];
	unsigned int n = 0, best = 0;

	for (enum mode m = DENSE; m < MODES; m++) {
		if (m == PACK_ROWS && opt->input.overlap != SPARSE_ROWS)
			continue;
		if (m == CODED && opt->dtype != SWC_BF16)
			continue;
		mode[n] = m;
		e[n] = estimate(opt, m);
		if (e[n].lossless && e[n].time_ns < e[best].time_ns)
			best = n;
		n++;
	}
	if (opt->json)
		print_json(opt, e, mode, n, best);
	else
		print(opt, e, mode, n, best);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingplan figures: compares families of algorithms on a set of tori, for two networks: one with the figures
 * of the simulations in the Swing paper (De Sensi et al., NSDI 2024), and one where only links and hops take
 * time. Writes tables as text and as JSON; tools/bench/plot draws them.
 */
#include "swingplan.h"

#include "plan/select/choose.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
	const char *name;
	struct swc_network net;
} presets[] = {
	{ "paper", { .gbps = 400, .hop_ns = 400, .step_ns = 600 } },
	{ "simple", { .gbps = 400, .hop_ns = 100, .step_ns = 0 } },
};

static const char *const tori[] = { "torus:4x4",   "torus:8x8",	  "torus:16x4",
				    "torus:64x64", "torus:128x8", "torus:8x8x8" };

#define NPRESETS (sizeof(presets) / sizeof(presets[0]))
#define NTORI (sizeof(tori) / sizeof(tori[0]))

enum family {
	SWING,
	ONE_PORT,
	MIRRORED,
	BUCKET,
	BUCKET2,
	RINGS,
	HYBRID,
	TWOSIDED,
	AUTO,
	FAMILIES
};

static const char *const family_names[FAMILIES] = {
	"swing", "one-port-rd", "mirrored-rd", "bucket", "bucket2",
	"rings", "hybrid",	"twosided",    "auto",
};

/* The best times at one size, by family and of some sets. NAN if none is possible. */
struct row {
	double ns[FAMILIES];
	double classic;		     /* recdoub, rabenseifner, bucket, hamiltonian */
	double known;		     /* of the classics and Swing */
	double envelope;	     /* of all */
	char chosen[PLAN_ALGO_TEXT]; /* by the library */
};

static int family_of(const struct swc_topo *topo, enum swc_algo algo)
{
	switch (algo) {
	case SWC_ALGO_SWING_L:
	case SWC_ALGO_SWING_B:
		return SWING;
	case SWC_ALGO_RECDOUB:
	case SWC_ALGO_RABENSEIFNER:
		return ONE_PORT;
	case SWC_ALGO_MIRRORED:
		return MIRRORED;
	case SWC_ALGO_BUCKET:
		return BUCKET;
	case SWC_ALGO_BUCKET2:
		return BUCKET2;
	case SWC_ALGO_HAMILTONIAN:
		return RINGS;
	case SWC_ALGO_RING2:
		return plan_is_classic(topo, algo) ? RINGS : -1;
	case SWC_ALGO_SWING_H:
		return HYBRID;
	case SWC_ALGO_TWOSIDED:
	case SWC_ALGO_RADIX:
		return TWOSIDED;
	default:
		return -1;
	}
}

static struct row row_of(struct swc_choices *c, double bytes)
{
	struct row r = { .classic = NAN, .envelope = NAN };
	struct swc_choice ch = swc_choices_take(c, SWC_ALLREDUCE, SWC_F32, SWC_SUM, (uint64_t)bytes,
						SWC_CHOICES_BEST);

	for (int k = 0; k < FAMILIES; k++)
		r.ns[k] = NAN;
	for (unsigned int i = 0; i < c->coll[SWC_ALLREDUCE].n; i++) {
		const struct swc_candidate *cand = &c->coll[SWC_ALLREDUCE].cand[i];
		double ns = swc_cost_time(&cand->cost, bytes, &c->net, NULL);
		int k = family_of(c->topo, cand->algo);

		if (k >= 0)
			r.ns[k] = fmin(r.ns[k], ns);
		if (plan_is_classic(c->topo, cand->algo))
			r.classic = fmin(r.classic, ns);
		r.envelope = fmin(r.envelope, ns);
	}
	r.known = fmin(r.classic, r.ns[SWING]);
	r.ns[AUTO] = ch.ns;
	plan_algo_text(ch.algo, ch.param, r.chosen);
	return r;
}

/* How much longer @b takes than @a, in percent. */
static double gain(double a, double b)
{
	return (b / a - 1) * 100;
}

/* ------------------------------------------------------------------ output */

struct out {
	const char *dir;
	FILE *text;
	cJSON *json;
	bool quiet; /* only JSON on standard output */
};

__attribute__((format(printf, 2, 3))) static void say(struct out *out, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(out->text, fmt, args);
	va_end(args);
	if (out->quiet)
		return;
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
}

static void print_table(struct out *out, const struct plan_options *opt, const struct row *rows,
			const char *preset, const struct swc_network *net)
{
	char text[NUMBER_TEXT];

	say(out, "\n%s, %s: %g Gbit/s a link, %g ns a hop, %g ns a step; times in us\n%10s",
	    opt->topo_text, preset, net->gbps, net->hop_ns, net->step_ns, "size");
	for (int k = 0; k < FAMILIES; k++)
		say(out, " %11s", family_names[k]);
	say(out, "  %-13s %9s %9s\n", "auto is", "swing +%", "all +%");
	for (unsigned int s = 0; s < opt->nsizes; s++) {
		const struct row *r = &rows[s];

		say(out, "%10s", number_bytes(opt->sizes[s], text));
		for (int k = 0; k < FAMILIES; k++)
			if (isnan(r->ns[k]))
				say(out, " %11s", "-");
			else
				say(out, " %11.*f", r->ns[k] < 1e5 ? 2 : 0, r->ns[k] / 1000);
		say(out, "  %-13s", r->chosen);
		if (isnan(r->ns[SWING]) || isnan(r->classic))
			say(out, " %9s", "-");
		else
			say(out, " %9.1f", gain(r->ns[SWING], r->classic));
		say(out, " %9.1f\n", gain(r->envelope, r->known));
	}
}

static void add_json(struct out *out, const struct plan_options *opt, const struct row *rows,
		     const char *preset, const struct swc_network *net)
{
	for (unsigned int s = 0; s < opt->nsizes; s++) {
		const struct row *r = &rows[s];
		cJSON *o = cJSON_CreateObject(), *times;

		cJSON_AddStringToObject(o, "topo", opt->topo_text);
		cJSON_AddStringToObject(o, "op", "allreduce");
		cJSON_AddStringToObject(o, "model", "step");
		cJSON_AddStringToObject(o, "preset", preset);
		cJSON_AddNumberToObject(o, "link_gbps", net->gbps);
		cJSON_AddNumberToObject(o, "hop_ns", net->hop_ns);
		cJSON_AddNumberToObject(o, "step_ns", net->step_ns);
		cJSON_AddNumberToObject(o, "bytes", opt->sizes[s]);
		times = cJSON_AddObjectToObject(o, "time_ns");
		for (int k = 0; k < FAMILIES; k++)
			json_add_real(times, family_names[k], r->ns[k]);
		cJSON_AddStringToObject(o, "auto", r->chosen);
		json_add_real(o, "swing_gain_percent", gain(r->ns[SWING], r->classic));
		json_add_real(o, "all_gain_percent", gain(r->envelope, r->known));
		cJSON_AddItemToArray(out->json, o);
	}
}

static void one_torus(struct out *out, const struct plan_options *opt)
{
	struct row *rows = calloc(opt->nsizes, sizeof(*rows));
	unsigned int n;
	struct entry *e = plan_entries(opt, SWC_ALLREDUCE, &n);
	struct swc_choices c;

	if (!rows)
		plan_no_memory();
	plan_costs(opt, e, n);
	plan_chooser(&c, opt, SWC_ALLREDUCE, e, n);
	for (size_t i = 0; i < NPRESETS; i++) {
		c.net = presets[i].net;
		for (unsigned int s = 0; s < opt->nsizes; s++)
			rows[s] = row_of(&c, opt->sizes[s]);
		print_table(out, opt, rows, presets[i].name, &c.net);
		add_json(out, opt, rows, presets[i].name, &c.net);
	}
	fflush(stdout);
	swc_choices_free(&c);
	free(e);
	free(rows);
}

static FILE *open_in(const char *dir, const char *name)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (!f)
		plan_bad("--out %s: %s: %s", dir, name, strerror(errno));
	return f;
}

static void write_json(struct out *out)
{
	FILE *f = open_in(out->dir, "figures.json");

	if (out->quiet)
		json_document(stdout, cJSON_Duplicate(out->json, true));
	json_document(f, out->json);
	if (fclose(f))
		plan_bad("--out %s: figures.json: %s", out->dir, strerror(errno));
}

int figures_run(const struct plan_options *opt)
{
	struct out out = { .dir = opt->out, .json = cJSON_CreateArray(), .quiet = opt->json };
	struct plan_options here = *opt;

	if (mkdir(out.dir, 0777) && errno != EEXIST)
		plan_bad("--out %s: %s", out.dir, strerror(errno));
	out.text = open_in(out.dir, "figures.txt");
	say(&out,
	    "# allreduce by the step model. Families show their best member: swing: swing-l, swing-b;\n"
	    "# one-port-rd: recdoub, rabenseifner; mirrored-rd: mirrored:J; hybrid: swing-h:J.\n"
	    "# swing +%%: gain of swing over the best classic: recdoub, rabenseifner, bucket, hamiltonian,\n"
	    "# and ring2 on a ring. all +%%: gain of the best algorithm over the best of swing and classics.\n");
	here.algos = "all";
	here.reorder = true;
	if (opt->topo_text) {
		one_torus(&out, &here);
	} else {
		for (size_t i = 0; i < NTORI; i++) {
			fprintf(stderr, "figures: %s (%zu of %zu)\n", tori[i], i + 1, NTORI);
			here.topo_text = (char *)tori[i];
			if (swc_topo_parse(&here.topo, tori[i], NULL, 0))
				plan_no_memory();
			one_torus(&out, &here);
			swc_topo_free(&here.topo);
		}
	}
	if (fclose(out.text))
		plan_bad("--out %s: figures.txt: %s", out.dir, strerror(errno));
	write_json(&out);
	fprintf(stderr, "figures: written: %s/figures.txt, %s/figures.json\n", out.dir, out.dir);
	return 0;
}

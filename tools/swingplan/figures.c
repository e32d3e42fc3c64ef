// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingplan figures: the algorithms' families beside each other on a set of tori, for two networks: one with
 * the figures of the simulations in the Swing paper, and one where only links and hops cost something.
 * Tables as text and JSON, and for each torus and network a picture of the times and one of the gains.
 */
#include "swingplan.h"

#include "select/choose.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
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

/* The best times at one size, by family, and the best of some sets. NAN where there is none. */
struct row {
	double ns[FAMILIES];
	double classic;	 /* recdoub, rabenseifner, bucket, hamiltonian */
	double known;	 /* of the classics and Swing */
	double envelope; /* of all */
	char chosen[24]; /* by the library */
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
		return TWOSIDED;
	default:
		return -1;
	}
}

/* The algorithms with their costs as the library's chooser knows them. */
static struct swc_choices chooser(const struct plan_options *opt, const struct entry *e,
				  unsigned int n)
{
	struct swc_candidate *cand = calloc(n, sizeof(*cand));
	struct swc_choices c;
	unsigned int known = 0;

	if (!cand)
		plan_no_memory();
	for (unsigned int i = 0; i < n; i++)
		if (!e[i].ret)
			cand[known++] = (struct swc_candidate){
				.algo = e[i].algo,
				.param = e[i].param,
				.steps = e[i].cost.eager.steps,
				.order_varies = e[i].cost.order_varies,
				.known = true,
				.cost = e[i].cost
			};
	swc_choices_init(&c, &opt->topo, true);
	c.coll[SWC_ALLREDUCE].cand = cand;
	c.coll[SWC_ALLREDUCE].n = known;
	return c;
}

static struct row row_of(struct swc_choices *c, double bytes)
{
	struct row r = { .classic = NAN, .envelope = NAN };
	struct swc_choice ch = swc_choices_take(c, SWC_ALLREDUCE, SWC_F32, SWC_SUM, (uint64_t)bytes,
						true);

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
	snprintf(r.chosen, sizeof(r.chosen), ch.param >= 0 ? "%s:%d" : "%s", swc_algo_name(ch.algo),
		 ch.param);
	return r;
}

/* How much longer b takes than a, in percent. */
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
	char text[PLAN_TEXT];

	say(out, "\n%s, %s: %g Gbit/s a link, %g ns a hop, %g ns a step; times in us\n%10s",
	    opt->topo_text, preset, net->gbps, net->hop_ns, net->step_ns, "size");
	for (int k = 0; k < FAMILIES; k++)
		say(out, " %11s", family_names[k]);
	say(out, "  %-13s %9s %9s\n", "auto is", "swing +%", "all +%");
	for (unsigned int s = 0; s < opt->nsizes; s++) {
		const struct row *r = &rows[s];

		say(out, "%10s", plan_bytes_text(opt->sizes[s], text));
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

static void add_number(cJSON *o, const char *name, double v)
{
	if (isnan(v))
		cJSON_AddNullToObject(o, name);
	else
		cJSON_AddNumberToObject(o, name, v);
}

static void add_json(struct out *out, const struct plan_options *opt, const struct row *rows,
		     const char *preset)
{
	for (unsigned int s = 0; s < opt->nsizes; s++) {
		const struct row *r = &rows[s];
		cJSON *o = cJSON_CreateObject(), *times;

		cJSON_AddStringToObject(o, "topo", opt->topo_text);
		cJSON_AddStringToObject(o, "preset", preset);
		cJSON_AddNumberToObject(o, "bytes", opt->sizes[s]);
		times = cJSON_AddObjectToObject(o, "time_ns");
		for (int k = 0; k < FAMILIES; k++)
			add_number(times, family_names[k], r->ns[k]);
		cJSON_AddStringToObject(o, "auto", r->chosen);
		add_number(o, "swing_gain_percent", gain(r->ns[SWING], r->classic));
		add_number(o, "all_gain_percent", gain(r->envelope, r->known));
		cJSON_AddItemToArray(out->json, o);
	}
}

static void draw(struct out *out, const struct plan_options *opt, const struct row *rows,
		 const char *preset, const struct swc_network *net, bool gains)
{
	double *y = calloc((size_t)FAMILIES * opt->nsizes, sizeof(*y));
	struct series series[FAMILIES];
	char title[160], path[512];
	struct plot p = {
		.title = title,
		.y_label = gains ? "gain over the best classic (%)" : "time",
		.log_y = !gains,
		.sizes = opt->sizes,
		.nsizes = opt->nsizes,
		.series = series,
	};
	int ret;

	if (!y)
		plan_no_memory();
	for (int k = 0; k < FAMILIES; k++) {
		struct series *c = &series[p.nseries];

		c->name = family_names[k];
		c->y = y + (size_t)p.nseries * opt->nsizes;
		for (unsigned int s = 0; s < opt->nsizes; s++)
			c->y[s] = gains ? gain(rows[s].ns[k], rows[s].classic) : rows[s].ns[k];
		/* Possible at one size is possible at all. */
		p.nseries += !isnan(c->y[0]);
	}
	snprintf(title, sizeof(title), "allreduce on %s, %g Gbit/s, %g ns a hop, %g ns a step",
		 opt->topo_text, net->gbps, net->hop_ns, net->step_ns);
	snprintf(path, sizeof(path), "%s/%s-%s-%s.svg", out->dir, opt->topo_text, preset,
		 gains ? "gain" : "time");
	for (char *s = path + strlen(out->dir); *s; s++)
		*s = *s == ':' || *s == '*' || *s == ',' || *s == '@' ? '-' : *s;
	ret = plot_write(&p, path);
	if (ret)
		plan_bad("%s: %s", path, strerror(-ret));
	free(y);
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
	c = chooser(opt, e, n);
	for (size_t i = 0; i < NPRESETS; i++) {
		c.net = presets[i].net;
		for (unsigned int s = 0; s < opt->nsizes; s++)
			rows[s] = row_of(&c, opt->sizes[s]);
		print_table(out, opt, rows, presets[i].name, &c.net);
		add_json(out, opt, rows, presets[i].name);
		draw(out, opt, rows, presets[i].name, &c.net, false);
		draw(out, opt, rows, presets[i].name, &c.net, true);
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
	char *text = cJSON_Print(out->json);

	if (!text)
		plan_no_memory();
	fprintf(f, "%s\n", text);
	free(text);
	if (fclose(f))
		plan_bad("--out %s: figures.json: %s", out->dir, strerror(errno));
	if (out->quiet)
		plan_print_json(out->json);
	else
		cJSON_Delete(out->json);
}

int figures_run(const struct plan_options *opt)
{
	struct out out = { .dir = opt->out, .json = cJSON_CreateArray(), .quiet = opt->json };
	struct plan_options here = *opt;

	if (mkdir(out.dir, 0777) && errno != EEXIST)
		plan_bad("--out %s: %s", out.dir, strerror(errno));
	out.text = open_in(out.dir, "figures.txt");
	say(&out,
	    "# allreduce by the step model. swing: the better of swing-l and swing-b; one-port-rd: of\n"
	    "# recdoub and rabenseifner; mirrored-rd, hybrid: of all mirrored:J, swing-h:J.\n"
	    "# swing +%%: gain of swing over the best classic: recdoub, rabenseifner, bucket, hamiltonian\n"
	    "# (on a ring also ring2). all +%%: gain of the best of all over the best of swing and classics.\n");
	here.algos = "all";
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
	fprintf(stderr, "figures: tables and pictures are in %s\n", out.dir);
	return 0;
}

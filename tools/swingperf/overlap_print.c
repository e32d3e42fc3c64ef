// SPDX-License-Identifier: GPL-2.0-only
/* The report of swingperf overlap: a table, or JSON objects. Rank 0 only. */
#include "overlap.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* What is to be reached: of the model's speed-ups, of hiding, of the choice. */
#define NEAR 0.1
#define HIDDEN 0.95
#define HITS 0.81
#define REGRET 0.03

static const char *dma_text(const struct ov_rank *r)
{
	static const char *const texts[] = { "CPU copies", "DMA", "as the module is set" };

	return texts[r->dma];
}

static bool wants_table(const struct ov_rank *r)
{
	return r->opt->json != stdout;
}

static void put_json(const struct ov_rank *r, cJSON *o)
{
	char *text = cJSON_PrintUnformatted(o);

	if (text)
		fprintf(r->opt->json, "%s\n", text);
	fflush(r->opt->json);
	free(text);
	cJSON_Delete(o);
}

void ov_print_header(const struct ov_rank *r)
{
	struct utsname u;

	if (!wants_table(r))
		return;
	uname(&u);
	printf("# swingperf overlap %s, Linux %s, %d ranks forked on %ld CPUs, f32\n",
	       swingcoll_version(), u.release, r->team->nranks, sysconf(_SC_NPROCESSORS_ONLN));
	printf("# products: %s, one thread per rank; their times %s%s\n", ov_blas_name(),
	       !r->opt->table		     ? "are measured each time"
	       : access(r->opt->table, F_OK) ? "will be kept in "
					     : "are in ",
	       r->opt->table ? r->opt->table : "");
	printf("# shapes scaled to %.3g Mflop, %u pieces; times: median of %u, schedules in turn, of the "
	       "slowest rank\n",
	       r->mflop, r->opt->pieces, r->opt->repeats);
	fflush(stdout);
}

void ov_print_figures(const struct ov_rank *r)
{
	struct swingcoll_overlap_figures f = { 0 };
	cJSON *o;

	swingcoll_overlap_figures(r->overlap, &f);
	if (wants_table(r)) {
		printf("#\n# by %s: allgather %.0f us + bytes / %.4g MB/s; a product on all ranks at once "
		       "takes %.2f times its time on one\n",
		       dma_text(r), f.start_s * 1e6, f.bytes_per_s * 1e-6, f.crowd);
		printf("# contention loss: products %.2f during transfers, transfers %.2f during "
		       "products\n",
		       f.product_slowdown, f.transfer_slowdown);
		printf("# ms, predicted then measured; * best, > chosen; rows/cols: decomposition "
		       "loss; c/g: transfer / product\n");
		printf("#%4s %7s %6s %6s %5s %5s %5s", "", "M", "N", "K", "rows", "cols", "c/g");
		for (int k = SWINGCOLL_OVERLAP_SERIAL; k < OV_SCHEDULES; k++)
			printf(" %17s", swingcoll_overlap_name((enum swingcoll_overlap_schedule)k));
		printf(" noise hidden  cpu\n");
		fflush(stdout);
	}
	if (!r->opt->json)
		return;
	o = cJSON_CreateObject();
	cJSON_AddStringToObject(o, "figures", dma_text(r));
	cJSON_AddNumberToObject(o, "ranks", r->team->nranks);
	cJSON_AddNumberToObject(o, "start_us", f.start_s * 1e6);
	cJSON_AddNumberToObject(o, "gbs", f.bytes_per_s * 1e-9);
	cJSON_AddNumberToObject(o, "crowd", f.crowd);
	cJSON_AddNumberToObject(o, "contention_product", f.product_slowdown);
	cJSON_AddNumberToObject(o, "contention_transfer", f.transfer_slowdown);
	put_json(r, o);
}

/* Of the time that serial sleeps for its transfer, the share that the choice does not. */
static double hidden(const struct ov_row *row)
{
	double serial = row->wait[SWINGCOLL_OVERLAP_SERIAL];

	return serial > 0 ? 1 - row->wait[row->choice] / serial : 0;
}

/* Could all of it be hidden? Not where the transfer takes longer than the product. */
static bool can_hide(const struct ov_row *row)
{
	double serial = row->wait[SWINGCOLL_OVERLAP_SERIAL];

	return serial > 0 && serial <= row->median[SWINGCOLL_OVERLAP_SERIAL] - serial;
}

/*
 * What is lost by a choice. The best of half of the rounds is compared with by the other half, and the other way
 * round: the least of several noisy times, compared with itself, looks better than it is.
 */
static double regret(const struct ov_row *row, enum swingcoll_overlap_schedule choice)
{
	double sum = 0;

	for (unsigned int h = 0; h < 2; h++) {
		int best = SWINGCOLL_OVERLAP_SERIAL;

		for (int k = best + 1; k < OV_SCHEDULES; k++)
			if (row->half[h][k] < row->half[h][best])
				best = k;
		sum += row->half[!h][choice] / row->half[!h][best] - 1;
	}
	return sum / 2;
}

/* Of two ranks the other one's rows are one product per piece, by either of these. */
static bool is_same(const struct ov_rank *r, enum swingcoll_overlap_schedule a,
		    enum swingcoll_overlap_schedule b)
{
	return a == b ||
	       (r->team->nranks == 2 &&
		(a == SWINGCOLL_OVERLAP_ROWS_OWN || a == SWINGCOLL_OVERLAP_ROWS_SEPARATE) &&
		(b == SWINGCOLL_OVERLAP_ROWS_OWN || b == SWINGCOLL_OVERLAP_ROWS_SEPARATE));
}

/* What a shape shows of the choice, and of the model that it comes from. */
struct verdict {
	bool hit;
	double regret;
	double speedup, predicted; /* of the choice over serial */
	double error;		   /* of the prediction */
	bool can_hide;
	double hidden;
	bool serial_best;
};

static struct verdict judge(const struct ov_rank *r, const struct ov_row *row)
{
	const double *p = row->forecast.time_s, *m = row->median;
	int serial = SWINGCOLL_OVERLAP_SERIAL, choice = (int)row->choice;
	struct verdict v = {
		.hit = is_same(r, row->choice, row->best),
		.regret = regret(row, row->choice),
		.speedup = m[serial] / m[choice],
		.predicted = p[serial] / p[choice],
		.can_hide = can_hide(row),
		.hidden = hidden(row),
		.serial_best = (int)row->best == serial,
	};

	v.error = fabs(v.predicted / v.speedup - 1);
	/* Nor where it is best not to. */
	v.can_hide &= !(v.serial_best && v.hit);
	return v;
}

static void print_json(const struct ov_rank *r, const struct ov_row *row)
{
	cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "schedules");
	struct verdict v = judge(r, row);

	cJSON_AddStringToObject(o, "shape", row->shape->name);
	cJSON_AddStringToObject(o, "moved_by", dma_text(r));
	cJSON_AddNumberToObject(o, "m", (double)row->m);
	cJSON_AddNumberToObject(o, "n", (double)row->n);
	cJSON_AddNumberToObject(o, "k", (double)row->k);
	cJSON_AddNumberToObject(o, "dil_rows", row->forecast.dil_rows);
	cJSON_AddNumberToObject(o, "dil_columns", row->forecast.dil_columns);
	cJSON_AddNumberToObject(o, "gather_us", row->forecast.gather_s * 1e6);
	cJSON_AddNumberToObject(o, "product_us", row->forecast.product_s * 1e6);
	for (int k = SWINGCOLL_OVERLAP_SERIAL; k < OV_SCHEDULES; k++) {
		cJSON *s = cJSON_CreateObject();

		cJSON_AddStringToObject(s, "name",
					swingcoll_overlap_name((enum swingcoll_overlap_schedule)k));
		cJSON_AddNumberToObject(s, "predicted_us", row->forecast.time_s[k] * 1e6);
		cJSON_AddNumberToObject(s, "time_us", row->median[k] * 1e6);
		cJSON_AddNumberToObject(s, "iqr_us", row->iqr[k] * 1e6);
		cJSON_AddNumberToObject(s, "wait_us", row->wait[k] * 1e6);
		cJSON_AddItemToArray(list, s);
	}
	cJSON_AddStringToObject(o, "best", swingcoll_overlap_name(row->best));
	cJSON_AddStringToObject(o, "choice", swingcoll_overlap_name(row->choice));
	cJSON_AddStringToObject(o, "model", swingcoll_overlap_name(row->model));
	cJSON_AddNumberToObject(o, "regret", v.regret);
	cJSON_AddNumberToObject(o, "regret_model", regret(row, row->model));
	cJSON_AddNumberToObject(o, "hidden", v.hidden);
	cJSON_AddBoolToObject(o, "can_hide", v.can_hide);
	cJSON_AddBoolToObject(o, "hit", v.hit);
	cJSON_AddNumberToObject(o, "speedup", v.speedup);
	cJSON_AddNumberToObject(o, "speedup_predicted", v.predicted);
	cJSON_AddNumberToObject(o, "noise", row->noise);
	cJSON_AddNumberToObject(o, "cpu", row->cpu);
	cJSON_AddNumberToObject(o, "cpu_rank0", row->own);
	cJSON_AddNumberToObject(o, "errors", (double)row->wrong);
	put_json(r, o);
}

void ov_print_row(const struct ov_rank *r, const struct ov_row *row)
{
	if (r->opt->json)
		print_json(r, row);
	if (!wants_table(r))
		return;
	printf("%5s %7zu %6zu %6zu %5.2f %5.2f %5.2f", row->shape->name, row->m, row->n, row->k,
	       row->forecast.dil_rows, row->forecast.dil_columns,
	       row->forecast.gather_s / row->forecast.product_s);
	for (int k = SWINGCOLL_OVERLAP_SERIAL; k < OV_SCHEDULES; k++)
		printf(" %7.2f %7.2f%c%c", row->forecast.time_s[k] * 1e3, row->median[k] * 1e3,
		       k == (int)row->best ? '*' : ' ', k == (int)row->choice ? '>' : ' ');
	printf(" %4.0f%% %5.0f%% %3.0f%%%s\n", row->noise * 100, hidden(row) * 100, row->cpu * 100,
	       row->wrong ? "  WRONG" : "");
	fflush(stdout);
}

struct sum {
	unsigned int hits, near;
	double regret, worst;
};

static struct sum sum_up(const struct ov_rank *r, const struct ov_row *row, unsigned int n,
			 bool model)
{
	struct sum s = { 0 };

	for (unsigned int i = 0; i < n; i++) {
		enum swingcoll_overlap_schedule choice = model ? row[i].model : row[i].choice;
		double x = regret(&row[i], choice);

		s.hits += is_same(r, choice, row[i].best);
		s.near += row[i].median[choice] - row[i].median[row[i].best] <=
			  row[i].iqr[row[i].best];
		s.regret += x / n;
		s.worst = x > s.worst ? x : s.worst;
	}
	return s;
}

static void print_sum(const char *who, const struct sum *s, unsigned int n)
{
	printf("# %s: best in %u of %u (%.0f %%), within the noise of the best in %u, mean regret %.1f %%, "
	       "worst %.0f %%\n",
	       who, s->hits, n, 100. * s->hits / n, s->near, s->regret * 100, s->worst * 100);
}

static void print_verdict(const struct ov_row *row, const struct verdict *v)
{
	printf("# %5s: %s %s%s%s, regret %.1f %%; speed-up %.2f, predicted %.2f%s",
	       row->shape->name, swingcoll_overlap_name(row->choice),
	       v->hit ? "is the best" : "chosen, but ",
	       v->hit ? "" : swingcoll_overlap_name(row->best), v->hit ? "" : " is the best",
	       v->regret * 100, v->speedup, v->predicted,
	       v->error <= NEAR ? "" : " (more than 10 % off)");
	if (v->can_hide)
		printf("; hidden %.0f %%%s", v->hidden * 100,
		       v->hidden >= HIDDEN ? "" : " (less than 95 %)");
	puts("");
}

/* All shapes together. */
struct reached {
	unsigned int near, nhide, hidden, serial, serial_chosen;
	double least_hidden;
};

static struct reached judge_all(const struct ov_rank *r, const struct ov_row *row, unsigned int n)
{
	struct reached all = { .least_hidden = 1 };

	for (unsigned int i = 0; i < n; i++) {
		struct verdict v = judge(r, &row[i]);

		if (wants_table(r))
			print_verdict(&row[i], &v);
		all.near += v.error <= NEAR;
		all.nhide += v.can_hide;
		all.hidden += v.can_hide && v.hidden >= HIDDEN;
		if (v.can_hide)
			all.least_hidden = fmin(all.least_hidden, v.hidden);
		all.serial += v.serial_best;
		all.serial_chosen += v.serial_best && v.hit;
	}
	return all;
}

static const char *met(bool yes)
{
	return yes ? "reached" : "NOT reached";
}

static void print_reached(const struct reached *a, const struct sum *choice, unsigned int n)
{
	printf("# to reach: the best chosen in more than %.0f %%: %s; mean regret under %.0f %%: %s\n",
	       HITS * 100, met(choice->hits > HITS * n), REGRET * 100,
	       met(choice->regret < REGRET));
	printf("# to reach: speed-ups within 10 %% of the model: %u of %u, %s\n", a->near, n,
	       met(a->near == n));
	if (a->nhide)
		printf("# to reach: 95 %% hidden where the transfer is no longer than the product: %u of %u, "
		       "least %.0f %%, %s\n",
		       a->hidden, a->nhide, a->least_hidden * 100, met(a->hidden == a->nhide));
	if (a->serial)
		printf("# to reach: serial chosen where it is the best: %u of %u, %s\n",
		       a->serial_chosen, a->serial, met(a->serial_chosen == a->serial));
	else
		printf("# serial is the best nowhere among these\n");
}

static void sum_json(cJSON *o, const char *name, const struct sum *s, unsigned int n)
{
	cJSON *p = cJSON_AddObjectToObject(o, name);

	cJSON_AddNumberToObject(p, "hit_rate", (double)s->hits / n);
	cJSON_AddNumberToObject(p, "within_noise", (double)s->near / n);
	cJSON_AddNumberToObject(p, "mean_regret", s->regret);
	cJSON_AddNumberToObject(p, "worst_regret", s->worst);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median of |predicted / measured - 1|, of times or of speed-ups over serial. */
static double model_error(const struct ov_row *row, unsigned int n, bool speedup)
{
	double *v = calloc((size_t)n * OV_SCHEDULES, sizeof(*v)), result;
	unsigned int count = 0;

	if (!v)
		return 0;
	for (unsigned int i = 0; i < n; i++) {
		const double *predicted = row[i].forecast.time_s, *measured = row[i].median;
		int serial = SWINGCOLL_OVERLAP_SERIAL;

		for (int k = serial + speedup; k < OV_SCHEDULES; k++) {
			double e = predicted[k] / measured[k];

			if (speedup)
				e = predicted[serial] / measured[serial] / e;
			v[count++] = fabs(e - 1);
		}
	}
	qsort(v, count, sizeof(*v), compare);
	result = v[count / 2];
	free(v);
	return result;
}

void ov_print_summary(const struct ov_rank *r, const struct ov_row *row, unsigned int n)
{
	struct sum choice = sum_up(r, row, n, false), model = sum_up(r, row, n, true);
	double gain = 0, best = 0, hid = 0, cpu = 0, noise = 0, error = model_error(row, n, false);
	double gain_error = model_error(row, n, true);
	struct reached reached = judge_all(r, row, n);
	unsigned int nhide = 0;
	struct ov_engines engines = ov_dma_engines();
	uint64_t wrong = 0;
	cJSON *o;

	engines.bytes -= r->before.bytes;
	engines.by_cpu -= r->before.by_cpu;
	engines.failed -= r->before.failed;
	for (unsigned int i = 0; i < n; i++) {
		gain += row[i].median[SWINGCOLL_OVERLAP_SERIAL] / row[i].median[row[i].choice] / n;
		best += row[i].median[SWINGCOLL_OVERLAP_SERIAL] / row[i].median[row[i].best] / n;
		hid += can_hide(&row[i]) ? hidden(&row[i]) : 0;
		nhide += can_hide(&row[i]);
		cpu = row[i].cpu > cpu ? row[i].cpu : cpu;
		noise += row[i].noise / n;
		wrong += row[i].wrong;
	}
	hid /= nhide ? nhide : 1;
	if (r->opt->json) {
		o = cJSON_CreateObject();
		cJSON_AddStringToObject(o, "summary", dma_text(r));
		cJSON_AddNumberToObject(o, "shapes", n);
		sum_json(o, "choice", &choice, n);
		sum_json(o, "model", &model, n);
		cJSON_AddNumberToObject(o, "speedup", gain);
		cJSON_AddNumberToObject(o, "speedup_best", best);
		cJSON_AddNumberToObject(o, "hidden", hid);
		cJSON_AddNumberToObject(o, "hidden_shapes", nhide);
		cJSON_AddNumberToObject(o, "hidden_reached", reached.hidden);
		cJSON_AddNumberToObject(o, "speedup_reached", reached.near);
		cJSON_AddNumberToObject(o, "serial_best", reached.serial);
		cJSON_AddNumberToObject(o, "serial_chosen", reached.serial_chosen);
		cJSON_AddNumberToObject(o, "model_error", error);
		cJSON_AddNumberToObject(o, "model_error_speedup", gain_error);
		cJSON_AddNumberToObject(o, "noise", noise);
		cJSON_AddNumberToObject(o, "cpu_most", cpu);
		cJSON_AddNumberToObject(o, "engine_bytes", (double)engines.bytes);
		cJSON_AddNumberToObject(o, "cpu_bytes", (double)engines.by_cpu);
		cJSON_AddNumberToObject(o, "engine_failures", (double)engines.failed);
		cJSON_AddNumberToObject(o, "paper_hit_rate", 0.81);
		cJSON_AddNumberToObject(o, "paper_loss_of_a_miss", 0.14);
		cJSON_AddNumberToObject(o, "errors", (double)wrong);
		put_json(r, o);
	}
	if (!wants_table(r))
		return;
	printf("# by %s, %u shapes:\n", dma_text(r), n);
	print_sum("choice, after its trials", &choice, n);
	print_sum("model alone, no trials  ", &model, n);
	printf("# FiCCO's heuristic, no trials, on 8 GPUs (arXiv 2512.10236): best in 81 %%, about 14 %% lost by "
	       "a miss; another machine, other schedules\n");
	printf("# speed-up over serial: choice %.3f, best %.3f on average; in %u shapes whose transfer is no longer "
	       "than the product, the choice hides %.0f %% of serial's waiting\n",
	       gain, best, nhide, hid * 100);
	printf("# model: half of its times are within %.0f %%, of its speed-ups within %.0f %%; noise "
	       "(interquartile range) %.0f %% of the median\n",
	       error * 100, gain_error * 100, noise * 100);
	/* It is meant for transfers that leave the CPUs to the products. */
	if (r->dma == OV_DMA_ALWAYS)
		print_reached(&reached, &choice, n);
	printf("# copied by DMA engines: %.1f MB (%llu of their jobs failed), by CPUs: %.1f MB\n",
	       (double)engines.bytes * 1e-6, (unsigned long long)engines.failed,
	       (double)engines.by_cpu * 1e-6);
	printf("# CPUs busy: up to %.0f %%%s\n", cpu * 100,
	       cpu > 0.8
		       ? ": transfers and products compete for them; this says little of a machine with "
			 "CPUs to spare"
		       : "");
	printf("# wrong elements: %llu %s\n", (unsigned long long)wrong, wrong ? "FAILED" : "OK");
	fflush(stdout);
}

// SPDX-License-Identifier: GPL-2.0-only
/* The report of swingperf overlap: a table, JSON objects, or both. */
#include "overlap.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/json.h"

static const char *dma_text(const struct ov_rank *r)
{
	static const char *const texts[] = { "CPU copies", "DMA", "as the module is set" };

	return texts[r->dma];
}

static bool wants_table(const struct ov_rank *r)
{
	return r->opt->json != stdout;
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
	if (r->opt->target_ms > 0)
		printf("# shapes scaled to %.3g Mflop\n", r->mflop);
	printf("# %u pieces; times: median of %u, schedules in turn, slowest rank\n",
	       r->opt->pieces, r->opt->repeats);
	fflush(stdout);
}

void ov_print_figures(const struct ov_rank *r)
{
	struct swingcoll_overlap_figures f = { 0 };
	cJSON *o;

	swingcoll_overlap_figures(r->overlap, &f);
	if (wants_table(r)) {
		printf("#\n# %s: allgather %.0f us + bytes / %.4g MB/s; a product on all ranks at once "
		       "takes %.2f times as long as on one\n",
		       dma_text(r), f.start_s * 1e6, f.bytes_per_s * 1e-6, f.crowd);
		printf("# contention: products take %.2f times as long during transfers, transfers %.2f "
		       "times as long during products\n",
		       f.product_slowdown, f.transfer_slowdown);
		printf("# ms, predicted and measured; *: best, >: chosen; rows, cols: factor by which "
		       "pieces slow the product down; c/g: transfer / product\n");
		printf("#%7s %7s %6s %6s %5s %5s %5s", "", "M", "N", "K", "rows", "cols", "c/g");
		for (int k = SWINGCOLL_OVERLAP_SERIAL; k < OV_SCHEDULES; k++)
			printf(" %17s", swingcoll_overlap_name((enum swingcoll_overlap_schedule)k));
		printf(" noise hidden  cpu\n");
		fflush(stdout);
	}
	if (!r->opt->json)
		return;
	o = json_new_record();
	cJSON_AddStringToObject(o, "figures", dma_text(r));
	cJSON_AddNumberToObject(o, "ranks", r->team->nranks);
	cJSON_AddNumberToObject(o, "start_us", f.start_s * 1e6);
	cJSON_AddNumberToObject(o, "gbs", f.bytes_per_s * 1e-9);
	cJSON_AddNumberToObject(o, "crowd", f.crowd);
	cJSON_AddNumberToObject(o, "contention_product", f.product_slowdown);
	cJSON_AddNumberToObject(o, "contention_transfer", f.transfer_slowdown);
	json_record(r->opt->json, o);
}

/* Share of the time for which serial waits that the choice does not wait. */
static double hidden(const struct ov_row *row)
{
	double serial = row->wait[SWINGCOLL_OVERLAP_SERIAL];

	return serial > 0 ? 1 - row->wait[row->choice] / serial : 0;
}

/* Whether all of that time can be hidden: the transfer takes no longer than the product. */
static bool can_hide(const struct ov_row *row)
{
	double serial = row->wait[SWINGCOLL_OVERLAP_SERIAL];

	return serial > 0 && serial <= row->median[SWINGCOLL_OVERLAP_SERIAL] - serial;
}

static double speedup(const struct ov_row *row, enum swingcoll_overlap_schedule schedule)
{
	return row->median[SWINGCOLL_OVERLAP_SERIAL] / row->median[schedule];
}

static void print_json(const struct ov_rank *r, const struct ov_row *row)
{
	cJSON *o = json_new_record(), *list = cJSON_AddArrayToObject(o, "schedules");
	const double *predicted = row->forecast.time_s;

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
		cJSON_AddNumberToObject(s, "even_us", row->half[0][k] * 1e6);
		cJSON_AddNumberToObject(s, "odd_us", row->half[1][k] * 1e6);
		cJSON_AddNumberToObject(s, "iqr_us", row->iqr[k] * 1e6);
		cJSON_AddNumberToObject(s, "wait_us", row->wait[k] * 1e6);
		cJSON_AddItemToArray(list, s);
	}
	cJSON_AddStringToObject(o, "best", swingcoll_overlap_name(row->best));
	cJSON_AddStringToObject(o, "choice", swingcoll_overlap_name(row->choice));
	cJSON_AddStringToObject(o, "model", swingcoll_overlap_name(row->model));
	cJSON_AddNumberToObject(o, "hidden", hidden(row));
	cJSON_AddBoolToObject(o, "can_hide", can_hide(row));
	cJSON_AddNumberToObject(o, "speedup", speedup(row, row->choice));
	cJSON_AddNumberToObject(o, "speedup_predicted",
				predicted[SWINGCOLL_OVERLAP_SERIAL] / predicted[row->choice]);
	cJSON_AddNumberToObject(o, "noise", row->noise);
	cJSON_AddNumberToObject(o, "cpu", row->cpu);
	cJSON_AddNumberToObject(o, "cpu_rank0", row->own);
	cJSON_AddNumberToObject(o, "errors", (double)row->wrong);
	json_record(r->opt->json, o);
}

void ov_print_row(const struct ov_rank *r, const struct ov_row *row)
{
	if (r->opt->json)
		print_json(r, row);
	if (!wants_table(r))
		return;
	printf("%8s %7zu %6zu %6zu %5.2f %5.2f %5.2f", row->shape->name, row->m, row->n, row->k,
	       row->forecast.dil_rows, row->forecast.dil_columns,
	       row->forecast.gather_s / row->forecast.product_s);
	for (int k = SWINGCOLL_OVERLAP_SERIAL; k < OV_SCHEDULES; k++)
		printf(" %7.2f %7.2f%c%c", row->forecast.time_s[k] * 1e3, row->median[k] * 1e3,
		       k == (int)row->best ? '*' : ' ', k == (int)row->choice ? '>' : ' ');
	printf(" %4.0f%% %5.0f%% %3.0f%%%s\n", row->noise * 100, hidden(row) * 100, row->cpu * 100,
	       row->wrong ? "  WRONG" : "");
	fflush(stdout);
}

void ov_print_summary(const struct ov_rank *r, const struct ov_row *row, unsigned int n)
{
	double gain = 0, best = 0, hid = 0, cpu = 0, noise = 0;
	struct ov_engines engines = ov_dma_engines();
	unsigned int nhide = 0;
	uint64_t wrong = 0;
	cJSON *o;

	engines.bytes -= r->before.bytes;
	engines.by_cpu -= r->before.by_cpu;
	engines.failed -= r->before.failed;
	for (unsigned int i = 0; i < n; i++) {
		gain += speedup(&row[i], row[i].choice) / n;
		best += speedup(&row[i], row[i].best) / n;
		hid += can_hide(&row[i]) ? hidden(&row[i]) : 0;
		nhide += can_hide(&row[i]);
		cpu = row[i].cpu > cpu ? row[i].cpu : cpu;
		noise += row[i].noise / n;
		wrong += row[i].wrong;
	}
	hid /= nhide ? nhide : 1;
	if (r->opt->json) {
		o = json_new_record();
		cJSON_AddStringToObject(o, "summary", dma_text(r));
		cJSON_AddNumberToObject(o, "shapes", n);
		cJSON_AddNumberToObject(o, "speedup", gain);
		cJSON_AddNumberToObject(o, "speedup_best", best);
		cJSON_AddNumberToObject(o, "hidden", hid);
		cJSON_AddNumberToObject(o, "hidden_shapes", nhide);
		cJSON_AddNumberToObject(o, "noise", noise);
		cJSON_AddNumberToObject(o, "cpu_most", cpu);
		cJSON_AddNumberToObject(o, "engine_bytes", (double)engines.bytes);
		cJSON_AddNumberToObject(o, "cpu_bytes", (double)engines.by_cpu);
		cJSON_AddNumberToObject(o, "engine_failures", (double)engines.failed);
		cJSON_AddNumberToObject(o, "errors", (double)wrong);
		json_record(r->opt->json, o);
	}
	if (!wants_table(r))
		return;
	printf("# %s, mean of %u shapes: %.3f times as fast as serial by the library's choice, %.3f by "
	       "the best schedule; noise %.0f %%\n",
	       dma_text(r), n, gain, best, noise * 100);
	if (nhide)
		printf("# in %u shapes whose transfer takes no longer than the product, the choice hides "
		       "%.0f %% of the time that serial waits\n",
		       nhide, hid * 100);
	printf("# copied by DMA engines: %.1f MB (%llu of their jobs failed), by CPUs: %.1f MB\n",
	       (double)engines.bytes * 1e-6, (unsigned long long)engines.failed,
	       (double)engines.by_cpu * 1e-6);
	printf("# CPUs busy: up to %.0f %%%s\n", cpu * 100,
	       cpu > 0.8
		       ? ": transfers and products compete for them; with spare CPUs more is hidden"
		       : "");
	printf("# wrong elements: %llu %s\n", (unsigned long long)wrong, wrong ? "FAILED" : "OK");
	fflush(stdout);
}

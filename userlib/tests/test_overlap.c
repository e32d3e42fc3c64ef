// SPDX-License-Identifier: GPL-2.0-only
/*
 * The overlap helper without a device: pipeline model, interpolation, cutting, candidates, file of
 * times. TAP on stdout.
 */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "overlap/overlap.h"
#include "tap.h"

static bool near(double a, double b, double tolerance)
{
	return fabs(a - b) <= tolerance * fabs(b);
}

/* Gain over serial of equal steps, with transfers r times as long as products. */
static double gain(double r, unsigned int steps, double dil, double cil_g, double cil_c)
{
	struct swc_ov_step step[SWC_OV_PIECES];

	for (unsigned int i = 0; i < steps; i++)
		step[i] = (struct swc_ov_step){ r / steps, dil / steps };
	return (1 + r) / swc_ov_pipeline(step, steps, cil_g, cil_c, true);
}

static void test_pipeline(void)
{
	/* T_comm / T_gemm; without losses; DIL and CIL of products 1.10, CIL of transfers 1.05. */
	static const double known[4][3] = {
		{ 0.25, 1.21, 1.01 }, { 0.5, 1.41, 1.18 }, { 1, 1.78, 1.49 }, { 2, 1.41, 1.33 }
	};
	const struct swc_ov_step two[] = { { 0, 4 }, { 3, 2 }, { 3, 2 } };
	const struct swc_ov_step one[] = { { 5, 7 } };

	for (int i = 0; i < 4; i++) {
		const double *k = known[i];

		ok(fabs(gain(k[0], 8, 1, 1, 1) - k[1]) < 0.005, "the closed model without losses");
		ok(fabs(gain(k[0], 8, 1.1, 1.1, 1.05) - k[2]) < 0.005,
		   "the closed model with losses");
	}
	ok(near(gain(1, 64, 1, 1, 1), 2 / (1 + 1. / 64), 1e-12),
	   "many steps approach the ideal gain");
	ok(swc_ov_pipeline(one, 1, 3, 3, false) == 12, "one step has no contention");
	/* Work 0-4 and transfers 0-3, 3-6: 4-6, 6-8. */
	ok(near(swc_ov_pipeline(two, 3, 1, 1, false), 8, 1e-12),
	   "pipeline with the own shard first");
	/*
	 * Transfers 0-4.5, 4.5-9; products at half speed until 9: the first 0-8, half of the second
	 * 8-9, its other 1.5 by 10.5, the third by 12.5.
	 */
	ok(near(swc_ov_pipeline(two, 3, 2, 1.5, false), 12.5, 1e-12),
	   "contention ends with the last transfer");
	ok(near(swc_ov_pipeline(two, 3, 2, 1.5, true), 16, 1e-12), "contention throughout");
	ok(swc_ov_pipeline(two, 0, 1, 1, false) == 0, "no step takes no time");
}

/* Rates that are a product of powers: interpolation in logarithms is exact for them. */
static void fill(struct swc_ov_rates *r, double pm, double pn, double pk)
{
	for (int a = 0; a < SWC_OV_GRID; a++)
		for (int b = 0; b < SWC_OV_GRID; b++)
			for (int c = 0; c < SWC_OV_GRID; c++)
				r->log_rate[a][b][c] = log(1e9) + pm * log(swc_ov_grid[a]) +
						       pn * log(swc_ov_grid[b]) +
						       pk * log(swc_ov_grid[c]);
}

static void test_products(void)
{
	struct swc_ov_shape s = {
		.m = 256, .n = 64, .k = 128, .elem = 4, .nranks = 2, .pieces = 4
	};
	struct swc_ov_curve curve = { { 1000, 2000, 10000 }, { 5, 7, 15 } };
	struct swc_ov_rates r;
	double whole;

	fill(&r, 0.5, 0, 0.25);
	whole = 2. * 256 * 64 * 128 / (1e9 * pow(256, 0.5) * pow(128, 0.25));
	ok(near(swc_ov_product(&r, 256, 64, 128), whole, 1e-9),
	   "product times are interpolated between the points");
	ok(near(swc_ov_product(&r, 8, 8, 512), 65536 / (1e9 * pow(8, 0.5) * pow(512, 0.25)), 1e-9),
	   "product times at the points");
	ok(near(swc_ov_product(&r, 2048, 64, 128), 4 * swc_ov_product(&r, 512, 64, 128), 1e-9) &&
		   near(swc_ov_product(&r, 2, 64, 128), swc_ov_product(&r, 8, 64, 128) / 4, 1e-9),
	   "beyond the grid the rate is constant");
	ok(swc_ov_product(&r, 0, 64, 128) == 0, "an empty product takes no time");
	ok(near(swc_ov_dil(&r, &s, 4, false), pow(4, 0.5), 1e-9) &&
		   near(swc_ov_dil(&r, &s, 4, true), pow(4, 0.25), 1e-9),
	   "decomposition loss by rows and by columns");
	ok(near(swc_ov_dil(&r, &s, 1, false), 1, 1e-12), "no decomposition loss in one piece");
	fill(&r, 0, 0, 0);
	ok(near(swc_ov_dil(&r, &s, 8, false), 1, 1e-9),
	   "no decomposition loss if the rate is constant");
	ok(near(swc_ov_curve_at(&curve, 1500), 6, 1e-12) &&
		   near(swc_ov_curve_at(&curve, 20000), 25, 1e-12) &&
		   near(swc_ov_curve_at(&curve, 500), 4, 1e-12),
	   "transfer times between and beyond the points");
	ok(swc_ov_curve_at(&curve, 0) == 0, "an empty transfer takes no time");
}

/* Shards cover A without gaps, and pieces cover shards. */
static void test_cuts(void)
{
	struct swc_ov_shape s = { .n = 1, .elem = 4 };
	bool rows_good = true, cuts_good = true;

	for (s.m = 1; s.m < 40; s.m++)
		for (s.nranks = 1; s.nranks < 9; s.nranks++) {
			size_t next = 0;

			for (unsigned int r = 0; r < s.nranks; r++) {
				size_t row, rows;

				swc_ov_rows(s.m, s.nranks, r, &row, &rows);
				rows_good &= row == next && rows <= swc_ov_most_rows(&s) &&
					     rows + 1 >= swc_ov_most_rows(&s);
				next = row + rows;
			}
			rows_good &= next == s.m;
		}
	ok(rows_good, "shards cover the rows without gaps");
	s.nranks = 3;
	for (s.m = 1; s.m < 40; s.m++)
		for (s.k = 1; s.k < 20; s.k++)
			for (s.pieces = 1; s.pieces < 12; s.pieces++) {
				unsigned int n = swc_ov_transfers(SWINGCOLL_OVERLAP_ROWS, &s), i;
				size_t row = 0, col = 0;

				for (i = 0; i < n; i++) {
					struct swc_ov_cut c = swc_ov_cut(SWINGCOLL_OVERLAP_ROWS, &s,
									 i);

					cuts_good &= c.row == row && c.rows && !c.col &&
						     c.cols == s.k;
					row += c.rows;
				}
				n = swc_ov_transfers(SWINGCOLL_OVERLAP_COLUMNS, &s);
				for (i = 0; i < n; i++) {
					struct swc_ov_cut c = swc_ov_cut(SWINGCOLL_OVERLAP_COLUMNS,
									 &s, i);

					cuts_good &= c.col == col && c.cols && !c.row &&
						     c.rows == swc_ov_most_rows(&s);
					col += c.cols;
				}
				cuts_good &= row == swc_ov_most_rows(&s) && col == s.k;
			}
	ok(cuts_good, "pieces cover shards without gaps");
}

static bool is_list(const uint8_t *list, unsigned int n, int a, int b, int c)
{
	return n == 3 && list[0] == a && list[1] == b && list[2] == c;
}

static void test_candidates(void)
{
	uint8_t list[SWINGCOLL_OVERLAP_SCHEDULES];
	unsigned int n;

	n = swc_ov_candidates((double[]){ 0, 9, 4, 5, 3, 6, 7 }, list);
	ok(is_list(list, n, SWINGCOLL_OVERLAP_SERIAL, SWINGCOLL_OVERLAP_ROWS_OWN,
		   SWINGCOLL_OVERLAP_SHARD),
	   "candidates: serial and the best two others");
	n = swc_ov_candidates((double[]){ 0, 1, 4, 5, 3, 6, 7 }, list);
	ok(is_list(list, n, SWINGCOLL_OVERLAP_SERIAL, SWINGCOLL_OVERLAP_ROWS_OWN,
		   SWINGCOLL_OVERLAP_SHARD),
	   "candidates: the best two others, even if serial is the best");
	n = swc_ov_candidates((double[]){ 0, 9, 4.1, 5.1, 4.6, 4.9, 4 }, list);
	ok(n == 5 && list[1] == SWINGCOLL_OVERLAP_COLUMNS && list[2] == SWINGCOLL_OVERLAP_SHARD &&
		   list[3] == SWINGCOLL_OVERLAP_ROWS_OWN &&
		   list[4] == SWINGCOLL_OVERLAP_ROWS_SEPARATE,
	   "candidates: all that are close to the best, in order");
	n = swc_ov_candidates(NULL, list);
	ok(n == 6 && list[0] == 1 && list[5] == 6, "candidates: all without a forecast");
}

/* Forecasts of schedules against sums by hand, with all rates and bandwidths 1. */
static void test_predictions(void)
{
	struct swc_ov_shape s = { .m = 64, .n = 32, .k = 16, .elem = 4, .nranks = 4, .pieces = 4 };
	struct swc_ov_figures f = {
		.gather = { { { 1, 2, 3 }, { 1, 2, 3 } }, { { 1, 2, 3 }, { 1, 2, 3 } } },
		.broadcast = { { { 1, 2, 3 }, { 1, 2, 3 } }, { { 1, 2, 3 }, { 1, 2, 3 } } },
		.crowd = 1,
		.cil_g = 1,
		.cil_c = 1,
	};
	const double product = 2. * 64 * 32 * 16, shard = 16 * 16 * 4;

	memset(&f.rates, 0, sizeof(f.rates));
	ok(near(swc_ov_predict(SWINGCOLL_OVERLAP_SERIAL, &s, &f), product + shard, 1e-9),
	   "serial: the whole transfer and the whole product");
	ok(near(swc_ov_predict(SWINGCOLL_OVERLAP_ROWS, &s, &f), product + shard / 4, 1e-9),
	   "rows: all transfers but the first are hidden");
	ok(near(swc_ov_predict(SWINGCOLL_OVERLAP_COLUMNS, &s, &f), product + shard / 4, 1e-9),
	   "columns: all transfers but the first are hidden");
	ok(near(swc_ov_predict(SWINGCOLL_OVERLAP_ROWS_OWN, &s, &f), product, 1e-9),
	   "rows, own shard first: all transfers are hidden");
	ok(near(swc_ov_predict(SWINGCOLL_OVERLAP_SHARD, &s, &f), product, 1e-9),
	   "shards: all transfers are hidden");
	f.crowd = 2;
	ok(near(swc_ov_predict(SWINGCOLL_OVERLAP_ROWS_SEPARATE, &s, &f), 2 * product, 1e-9),
	   "ranks that share CPUs: products take longer");
	f.crowd = 1;
	f.copy = 4;
	ok(near(swc_ov_predict(SWINGCOLL_OVERLAP_ROWS, &s, &f),
		product + shard / 4 + 64 * 32 + 16 * 16, 1e-9),
	   "rows: results and own rows are copied");
	s.nranks = 2;
	ok(near(swc_ov_predict(SWINGCOLL_OVERLAP_ROWS_OWN, &s, &f), product, 1e-9),
	   "rows, own shard first, two ranks: nothing is copied");
	s.nranks = 4;
	f.copy = 0.5;
	ok(near(swc_ov_predict(SWINGCOLL_OVERLAP_SERIAL, &s, &f), product + 2 * shard, 1e-9),
	   "serial waits for the copy of the own shard if that takes longer");
	f.copy = 0;
	f.handling = 1e6;
	ok(near(swc_ov_predict(SWINGCOLL_OVERLAP_ROWS_SEPARATE, &s, &f), product + 4e6, 1e-9) &&
		   near(swc_ov_predict(SWINGCOLL_OVERLAP_SERIAL, &s, &f), product + shard + 1e6,
			1e-9),
	   "handling of each transfer takes time");
	f.handling = 0;
	for (int i = 0; i < SWC_OV_POINTS; i++)
		f.gather[0].s[i] = 1000 * (f.gather[1].s[i] *= 1000);
	/* The first transfer takes 10^6, further ones 10^3 per byte. */
	ok(near(swc_ov_predict(SWINGCOLL_OVERLAP_ROWS, &s, &f),
		1e6 * shard / 4 + 1e3 * shard * 3 / 4 + product / 4, 1e-9),
	   "long transfers hide all products but the last");
	s.nranks = 1;
	ok(near(swc_ov_predict(SWINGCOLL_OVERLAP_SHARD, &s, &f), product, 1e-9),
	   "one rank: the product only");
}

static void write_text(const char *path, const char *text, const char *mode)
{
	FILE *f = fopen(path, mode);

	if (!f || fputs(text, f) < 0 || fclose(f))
		abort();
}

static void test_table(void)
{
	static const char *const faults[] = { "product f32 8 8 8\n", "product f33 8 8 8 1\n",
					      "product f32 8 8 8 1 1\n", "produce f32 8 8 8 1\n",
					      "product f32 8 8 8 -1\n" };
	char path[] = "/tmp/swingcoll-overlap-XXXXXX";
	int fd = mkstemp(path), bad = 0;
	struct swc_ov_rates a, b;
	double far = 0;
	char why[200];

	if (fd < 0 || close(fd))
		abort();
	memset(&b, 0, sizeof(b));
	fill(&a, 0.3, -0.2, 0.1);
	ok(swc_ov_table_read(&b, path, SWINGCOLL_F32, why, sizeof(why)) == -ENODATA,
	   "file of times: an empty one has no data");
	write_text(path, "# a comment\n\nproduct f32 8 8 8 17 # more\nproduct f32 9 9 9 1\n", "w");
	ok(swc_ov_table_read(&b, path, SWINGCOLL_F32, why, sizeof(why)) == -ENODATA,
	   "file of times: one with some points is incomplete");
	ok(!swc_ov_table_append(&a, path, SWINGCOLL_F32) &&
		   !swc_ov_table_read(&b, path, SWINGCOLL_F32, why, sizeof(why)),
	   "file of times: written and read");
	for (int i = 0; i < 64; i++)
		far = fmax(far, fabs((&a.log_rate[0][0][0])[i] - (&b.log_rate[0][0][0])[i]));
	ok(far < 0.02, "file of times: the same times, rounded");
	if (setlocale(LC_ALL, "de_DE.UTF-8"))
		ok(!swc_ov_table_read(&b, path, SWINGCOLL_F32, why, sizeof(why)) &&
			   !swc_ov_table_append(&b, path, SWINGCOLL_F32) &&
			   !swc_ov_table_read(&b, path, SWINGCOLL_F32, why, sizeof(why)),
		   "decimal points");
	else
		ok(1, "decimal points # SKIP there is no locale de_DE.UTF-8 with decimal commas");
	setlocale(LC_ALL, "C");
	ok(swc_ov_table_read(&b, path, SWINGCOLL_F64, why, sizeof(why)) == -ENODATA,
	   "file of times: other types have no data");
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		write_text(path, "product f32 8 8 8 1\n", "w");
		write_text(path, faults[i], "a");
		bad += swc_ov_table_read(&b, path, SWINGCOLL_F32, why, sizeof(why)) == -EINVAL &&
		       strstr(why, "line 2: expected product") && strstr(why, path);
	}
	ok(bad == 5, "file of times: invalid lines are refused");
	unlink(path);
	ok(swc_ov_table_read(&b, path, SWINGCOLL_F32, why, sizeof(why)) == -ENODATA,
	   "file of times: a file that does not exist has no data");
	ok(swc_ov_table_append(&a, "/nowhere/at/all", SWINGCOLL_F32) == -ENOENT,
	   "file of times: a folder that does not exist is an error");
}

/* Sizes beyond what fits in 64 bits must not wrap around into a forecast of little. */
static void test_forecast(void)
{
	struct swingcoll_overlap ov = {
		.nranks = 4, .pieces = 8, .trials = 3, .dtype = SWINGCOLL_F32, .known = true
	};
	struct swingcoll_overlap_forecast f;

	fill(&ov.figures.rates, 0, 0, 0);
	ov.figures.crowd = ov.figures.cil_g = ov.figures.cil_c = 1;
	for (int i = 0; i < 2; i++)
		ov.figures.gather[i] = ov.figures.broadcast[i] = (struct swc_ov_curve){
			{ 4096, 65536, 262144 }, { 1, 2, 5 }
		};
	ok(!swingcoll_overlap_forecast(&ov, 512, 512, 512, SWINGCOLL_F32, &f) && f.gather_s > 4,
	   "forecast");
	ok(swingcoll_overlap_forecast(&ov, (size_t)1 << 34, 1, (size_t)1 << 30, SWINGCOLL_F32,
				      &f) == -EOVERFLOW,
	   "forecast: not of what is larger than memory can be");
}

static void test_names(void)
{
	bool good = true;

	for (int i = 0; i < SWINGCOLL_OVERLAP_SCHEDULES; i++)
		good &= swingcoll_overlap_parse(swingcoll_overlap_name(i)) == i;
	ok(good && !swingcoll_overlap_name(SWINGCOLL_OVERLAP_SCHEDULES) &&
		   swingcoll_overlap_parse("rows") == -EINVAL &&
		   swingcoll_overlap_parse(NULL) == -EINVAL,
	   "names of schedules");
}

int main(void)
{
	printf("TAP version 13\n");
	test_pipeline();
	test_products();
	test_cuts();
	test_candidates();
	test_predictions();
	test_table();
	test_forecast();
	test_names();
	return done();
}

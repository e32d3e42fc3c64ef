// SPDX-License-Identifier: GPL-2.0-only
/*
 * The split among orders of dimensions: golden values, and on random networks its time is that of
 * the closed form, its shares load no dimension for longer, and no more orders than dimensions have
 * one. TAP on stdout.
 */
#include <math.h>

#include "plan/orders.h"
#include "random.h"
#include "tap.h"

/* The time of the shares: how long the slowest dimension is busy. Negative if they are no split. */
static double time_of(const struct swc_orders *o, const uint32_t *size, const double *rate,
		      uint32_t ndims, double bytes)
{
	double busy[SWC_TOPO_DIMS] = { 0 }, sum = 0, most = 0;

	for (uint32_t i = 0; i < o->n; i++) {
		double left = bytes * o->order[i].fraction;
		uint32_t seen = 0;

		sum += o->order[i].fraction;
		for (uint32_t k = 0; k < ndims; k++) {
			uint32_t dim = o->order[i].dim[k];

			seen |= 1u << dim;
			busy[dim] += left * (1 - 1.0 / size[dim]) / rate[dim];
			left /= size[dim];
		}
		if (seen != (1u << ndims) - 1 || !(o->order[i].fraction > 0))
			return -1;
	}
	for (uint32_t i = 0; i < ndims; i++)
		most = fmax(most, busy[i]);
	return o->n <= ndims && fabs(sum - 1) < 1e-9 ? most : -1;
}

static void test_golden(void)
{
	static const struct {
		uint32_t ndims, size[3];
		double rate[3], bytes, fixed, single, time, bound; /* GB/s, ms */
	} rows[] = {
		{ 2, { 4, 2 }, { 10, 40 }, 2e9, 150, 75, 75, 35 },
		{ 3, { 8, 2, 2 }, { 10, 30, 20 }, 2e9, 175, 43.75, 43.75, 32.2917 },
		{ 2, { 4, 4 }, { 50, 50 }, 16e8, 24, 24, 15, 15 },
		{ 3, { 8, 4, 4 }, { 60, 30, 10 }, 2e9, 29.1667, 29.1667, 19.84375, 19.84375 },
		{ 3, { 4, 2, 2 }, { 100 / 3.0, 100 / 3.0, 100 / 3.0 }, 2e9, 45, 30, 18.75, 18.75 },
		{ 2, { 4, 4 }, { 80, 20 }, 2e9, 18.75, 18.75, 18.75, 18.75 },
		{ 1, { 5 }, { 10 }, 1e9, 80, 80, 80, 80 },
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct swc_orders o;

		swc_orders_find(&o, rows[i].size, rows[i].rate, rows[i].ndims, rows[i].bytes);
		if (fabs(o.fixed / 1e6 - rows[i].fixed) < 1e-3 &&
		    fabs(o.single / 1e6 - rows[i].single) < 1e-3 &&
		    fabs(o.time / 1e6 - rows[i].time) < 1e-3 &&
		    fabs(o.bound / 1e6 - rows[i].bound) < 1e-3)
			continue;
		printf("# row %zu: %g %g %g %g\n", i, o.fixed / 1e6, o.single / 1e6, o.time / 1e6,
		       o.bound / 1e6);
		good = false;
	}
	ok(good, "golden values");
}

static void test_random(void)
{
	double worst = 0;

	for (int i = 0; i < 1000; i++) {
		uint32_t ndims = 1 + rnd(i % 50 ? 4 : SWC_TOPO_DIMS), size[SWC_TOPO_DIMS];
		double rate[SWC_TOPO_DIMS], want, took;
		struct swc_orders o;

		for (uint32_t k = 0; k < ndims; k++) {
			size[k] = 2 + rnd(i % 7 ? 8 : 1000);
			rate[k] = i % 5 ? 1 + rnd(1000) : 10;
		}
		swc_orders_find(&o, size, rate, ndims, 1e9);
		want = swc_orders_time(size, rate, ndims, 1e9);
		took = time_of(&o, size, rate, ndims, 1e9);
		worst = fmax(worst, fmax(fabs(o.time / want - 1), fabs(took / want - 1)));
	}
	printf("# at most %g from the closed form\n", worst);
	ok(worst < 1e-6, "1000 random networks: the time of the closed form");
}

int main(void)
{
	printf("TAP version 13\n");
	seed_rnd();
	test_golden();
	test_random();
	return done();
}

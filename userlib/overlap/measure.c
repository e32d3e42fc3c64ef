// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Measurements for the model: the times of products by size, once per machine; the times of
 * transfers by size, what products lose when all ranks compute, and what products and transfers
 * lose to each other, once per handle. Collective; the number of collectives depends on nothing
 * that may differ between ranks. All ranks take rank 0's figures.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "overlap/overlap.h"
#include "src/api/for_overlap.h"
#include "src/priv.h"

#define REPEATS 9
/*
 * A product is measured for this long, at least PRODUCT_RUNS times unless that takes LONG_S, at
 * most PRODUCT_MOST times.
 */
#define PRODUCT_S 2e-3
#define PRODUCT_RUNS 3
#define PRODUCT_MOST 99
#define LONG_S 20e-3
/*
 * A product that would take longer is not measured but gets the rate of smaller ones, because the
 * other ranks wait.
 */
#define TOO_LONG_S 100e-3
/*
 * Bytes of one rank in the measured transfers: the least, and the most if that does not take too
 * long.
 */
#define LEAST_BYTES 4096u
#define MOST_BYTES (1u << 20)
#define GATHERED_BYTES (24u << 20)
#define TRANSFER_S 5e-3
/* Transfers in flight at once, where a transfer behind another one is timed. */
#define BURST 3
/*
 * Size of the products that contention is measured with: short compared with the largest transfer.
 */
#define BESIDE 64

typedef int (*product_fn)(void *arg, size_t m, size_t n, size_t k);

/* ---- time ---- */

double swc_ov_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double swc_ov_median(double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

/* ---- products ---- */

/* The median, because a product among others is not as fast as the fastest one. */
static int time_product(const struct swingcoll_overlap_opts *o, size_t m, size_t n, size_t k,
			double *s)
{
	double begin = swc_ov_now(), t = begin, v[PRODUCT_MOST];
	unsigned int i;

	for (i = 0; i < PRODUCT_MOST && t - begin < (i < PRODUCT_RUNS ? LONG_S : PRODUCT_S); i++) {
		double last = t;
		int ret = o->product(o->arg, m, n, k);

		if (ret)
			return ret < 0 ? ret : -EINVAL;
		t = swc_ov_now();
		v[i] = t - last;
	}
	*s = fmax(swc_ov_median(v, i), 1e-9);
	return 0;
}

/*
 * The best rate of products that are smaller in one dimension; false if there is no such product.
 */
static bool smaller(const struct swc_ov_rates *r, int a, int b, int c, double *log_rate)
{
	*log_rate = -INFINITY;
	if (a)
		*log_rate = fmax(*log_rate, r->log_rate[a - 1][b][c]);
	if (b)
		*log_rate = fmax(*log_rate, r->log_rate[a][b - 1][c]);
	if (c)
		*log_rate = fmax(*log_rate, r->log_rate[a][b][c - 1]);
	return a || b || c;
}

static int time_products(const struct swingcoll_overlap_opts *o, struct swc_ov_rates *rates)
{
	for (int i = 0; i < SWC_OV_GRID * SWC_OV_GRID * SWC_OV_GRID; i++) {
		int a = i / (SWC_OV_GRID * SWC_OV_GRID), b = i / SWC_OV_GRID % SWC_OV_GRID;
		int c = i % SWC_OV_GRID, ret;
		size_t m = swc_ov_grid[a], n = swc_ov_grid[b], k = swc_ov_grid[c];
		double *log_rate = &rates->log_rate[a][b][c], s;
		double log_flop = log(2 * (double)m * (double)n * (double)k);

		if (smaller(rates, a, b, c, log_rate) && log_flop - *log_rate > log(TOO_LONG_S))
			continue;
		ret = time_product(o, m, n, k, &s);
		if (ret)
			return ret;
		*log_rate = log_flop - log(s);
	}
	return 0;
}

/*
 * On rank 0: read the products' times from the file, or measure them. A file that cannot be written
 * only costs time.
 */
static int get_products(struct swingcoll_comm *comm, const struct swingcoll_overlap_opts *o,
			struct swc_ov_rates *rates)
{
	char why[SWC_TEXT_BYTES] = "";
	int ret = -ENODATA;

	if (o->table)
		ret = swc_ov_table_read(rates, o->table, o->dtype, why, sizeof(why));
	if (ret && ret != -ENODATA)
		return swc_comm_fail(comm, ret, "%s", why);
	if (!ret)
		return 0;
	ret = time_products(o, rates);
	if (!ret && o->table)
		swc_ov_table_append(rates, o->table, o->dtype);
	return ret;
}

/* ---- transfers ---- */

struct transfer {
	struct swingcoll_overlap *ov;
	bool broadcast;
	size_t bytes;
};

/* Start transfer i, to a place of its own. */
static int start(const struct transfer *t, unsigned int i, struct swingcoll_req **req)
{
	struct swingcoll_overlap *ov = t->ov;
	char *to = ov->gathered.base + i * t->bytes * ov->nranks;

	return swc_start_others(ov->comm, t->broadcast ? SWINGCOLL_BROADCAST : SWINGCOLL_ALLGATHER,
				ov->packed.base, to, t->bytes, 0, NULL, req);
}

static double thread_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Seconds of n transfers in flight at once. *own: CPU time of this thread in that. */
static int burst(const struct transfer *t, unsigned int n, double *s, double *own)
{
	struct swingcoll_req *req[BURST] = { NULL };
	int ret = swingcoll_barrier(t->ov->comm);
	double begin = swc_ov_now(), begin_own = thread_now();

	for (unsigned int i = 0; !ret && i < n; i++)
		ret = start(t, i, &req[i]);
	for (unsigned int i = 0; i < n; i++) {
		int err = req[i] ? swingcoll_wait(req[i], NULL) : 0;

		ret = ret ? ret : err;
	}
	*s = swc_ov_now() - begin;
	*own = thread_now() - begin_own;
	return ret;
}

/*
 * Time one transfer alone, and each further one behind it, whose start-up is hidden. The first
 * burst pins memory.
 */
static int time_transfer(const struct transfer *t, double *first, double *more)
{
	double one[REPEATS], all[REPEATS], s, own;
	int ret = burst(t, BURST, &s, &own);

	for (int i = 0; !ret && i < REPEATS; i++) {
		ret = burst(t, 1, &one[i], &own);
		if (!ret)
			ret = burst(t, BURST, &all[i], &own);
	}
	if (ret)
		return ret;
	*first = swc_ov_median(one, REPEATS);
	*more = (swc_ov_median(all, REPEATS) - *first) / (BURST - 1);
	if (*more > *first)
		*more = *first;
	if (*more < *first / BURST / 2)
		*more = *first / BURST / 2;
	return 0;
}

static size_t limit_bytes(const struct swingcoll_overlap *ov)
{
	size_t bytes = GATHERED_BYTES / BURST / ov->nranks;

	return bytes > MOST_BYTES	  ? MOST_BYTES
	       : bytes < 16 * LEAST_BYTES ? 16 * LEAST_BYTES
					  : bytes;
}

/* Find the largest transfer that takes a reasonable time; rank 0 decides. */
static int find_most(struct swingcoll_overlap *ov, size_t *most)
{
	struct transfer t = { .ov = ov, .bytes = 16 * LEAST_BYTES };
	double s = 0, own;
	int ret;

	do {
		*most = t.bytes;
		ret = burst(&t, 1, &s, &own);
		if (!ret)
			ret = swingcoll_broadcast(&s, &s, 1, SWINGCOLL_F64, 0, ov->comm);
		t.bytes *= 2;
	} while (!ret && s < TRANSFER_S && t.bytes <= limit_bytes(ov));
	return ret;
}

/* Time transfers by size. @curve[0]: of the first transfer, @curve[1]: of one behind another. */
static int time_curves(struct swingcoll_overlap *ov, bool broadcast, size_t most,
		       struct swc_ov_curve *curve)
{
	size_t bytes[SWC_OV_POINTS] = { LEAST_BYTES, most / 4, most };
	int ret = 0;

	for (int i = 0; !ret && i < SWC_OV_POINTS; i++) {
		struct transfer t = { .ov = ov, .broadcast = broadcast, .bytes = bytes[i] };

		curve[0].bytes[i] = curve[1].bytes[i] = (double)bytes[i];
		ret = time_transfer(&t, &curve[0].s[i], &curve[1].s[i]);
	}
	/* A smaller transfer does not take longer: that is noise. */
	for (int i = SWC_OV_POINTS - 2; !ret && i >= 0; i--)
		for (int k = 0; k < 2; k++)
			curve[k].s[i] = fmin(curve[k].s[i], curve[k].s[i + 1]);
	return ret;
}

/* CPU time to start and finish a transfer, by small ones. */
static int time_handling(struct swingcoll_overlap *ov, double *s)
{
	const struct transfer t = { .ov = ov, .bytes = 1 };
	double v[REPEATS], all;
	int ret = 0;

	for (int i = 0; !ret && i < REPEATS; i++) {
		ret = burst(&t, BURST, &all, &v[i]);
		v[i] /= BURST;
	}
	if (!ret)
		*s = swc_ov_median(v, REPEATS);
	return ret;
}

static double time_copy(struct swingcoll_overlap *ov)
{
	double v[REPEATS];
	size_t bytes = limit_bytes(ov);

	for (int i = 0; i < REPEATS; i++) {
		double begin = swc_ov_now();

		memcpy(ov->packed.base, ov->gathered.base, bytes);
		v[i] = swc_ov_now() - begin;
	}
	return (double)bytes / (swc_ov_median(v, REPEATS) + 1e-9);
}

/* ---- contention ---- */

/* Time products on all ranks during a transfer, and that transfer. */
static int beside(const struct transfer *t, const struct swingcoll_overlap_opts *o, double *product,
		  double *transfer, int *error)
{
	double begin = swc_ov_now(), first = INFINITY, work = 0;
	struct swingcoll_result result = { 0 };
	struct swingcoll_req *req;
	int ret, n = 0;

	ret = start(t, 0, &req);
	if (ret)
		return ret;
	do {
		if (!*error && n < 1000)
			*error = o->product(o->arg, BESIDE, BESIDE, BESIDE);
		n++;
		work = swc_ov_now() - begin;
		/* A product that ends after the transfer counts only if it is the only one. */
		ret = *error || n == 1000 ? swingcoll_wait(req, &result)
					  : swingcoll_test(req, &result);
		if (ret == -EINPROGRESS || n == 1)
			first = work / n;
	} while (ret == -EINPROGRESS);
	*product = first;
	*transfer = (double)result.time_ns * 1e-9;
	return ret;
}

/* Time a transfer without products, then products without a transfer. */
static int alone(const struct transfer *t, const struct swingcoll_overlap_opts *o, double *product,
		 double *transfer, int *error)
{
	struct swingcoll_result result = { 0 };
	struct swingcoll_req *req;
	double begin;
	int ret, n = 0;

	ret = start(t, 0, &req);
	if (!ret)
		ret = swingcoll_wait(req, &result);
	*transfer = (double)result.time_ns * 1e-9;
	if (!ret)
		ret = swingcoll_barrier(t->ov->comm);
	begin = swc_ov_now();
	while (!ret && !*error && (n < PRODUCT_RUNS || swc_ov_now() - begin < PRODUCT_S)) {
		*error = o->product(o->arg, BESIDE, BESIDE, BESIDE);
		n++;
	}
	*product = (swc_ov_now() - begin) / (n ? n : 1);
	return ret;
}

/*
 * Contention as ratios of medians; the two measurements alternate. Times of products include the
 * time in which a rank had no CPU, which is part of the loss.
 */
static int time_contention(struct swingcoll_overlap *ov, const struct swingcoll_overlap_opts *o,
			   size_t most, int *error)
{
	const struct transfer t = { .ov = ov, .bytes = most };
	double pa[REPEATS], pb[REPEATS], ta[REPEATS], tb[REPEATS], one;
	struct swc_ov_figures *f = &ov->figures;
	int ret = 0;

	for (int i = 0; !ret && i < REPEATS; i++) {
		ret = alone(&t, o, &pa[i], &ta[i], error);
		if (!ret)
			ret = swingcoll_barrier(ov->comm);
		if (!ret)
			ret = beside(&t, o, &pb[i], &tb[i], error);
		if (!ret)
			ret = swingcoll_barrier(ov->comm);
	}
	if (ret)
		return ret;
	one = swc_ov_product(&f->rates, BESIDE, BESIDE, BESIDE);
	f->crowd = one > 0 ? swc_ov_median(pa, REPEATS) / one : 1;
	f->cil_g = swc_ov_median(pb, REPEATS) / (swc_ov_median(pa, REPEATS) + 1e-9);
	f->cil_c = swc_ov_median(tb, REPEATS) / (swc_ov_median(ta, REPEATS) + 1e-9);
	/* A gain is noise. */
	f->crowd = f->crowd < 1 ? 1 : f->crowd;
	f->cil_g = f->cil_g < 1 ? 1 : f->cil_g;
	f->cil_c = f->cil_c < 1 ? 1 : f->cil_c;
	return 0;
}

/* ---- all measurements ---- */

/* The least value of all ranks: an error if one has one, 0 if one has 0. */
static int agree(struct swingcoll_overlap *ov, int *value)
{
	int32_t v = *value;
	int ret = swingcoll_allreduce(&v, &v, 1, SWINGCOLL_I32, SWINGCOLL_MIN, ov->comm);

	*value = v;
	return ret;
}

int swc_ov_measure(struct swingcoll_overlap *ov, const struct swingcoll_overlap_opts *opts)
{
	struct swc_ov_figures *f = &ov->figures;
	int have = opts->product != NULL, error, ret;
	size_t most = 0;

	*f = (struct swc_ov_figures){ .crowd = 1, .cil_g = 1, .cil_c = 1 };
	error = swc_ov_reserve(&ov->gathered, BURST * limit_bytes(ov) * ov->nranks);
	if (!error)
		error = swc_ov_reserve(&ov->packed, limit_bytes(ov));
	/* The other ranks sleep in agree() meanwhile. */
	if (!error && have && !ov->rank)
		error = get_products(ov->comm, opts, &f->rates);
	ret = agree(ov, &error);
	if (!ret)
		ret = agree(ov, &have);
	if (ret || error)
		return ret ? ret : error;
	ov->known = have;
	if (!have)
		return 0;
	ret = swingcoll_broadcast(&f->rates, &f->rates, sizeof(f->rates) / sizeof(double),
				  SWINGCOLL_F64, 0, ov->comm);
	if (!ret)
		ret = find_most(ov, &most);
	if (!ret)
		ret = time_curves(ov, false, most, f->gather);
	if (!ret)
		ret = time_curves(ov, true, most, f->broadcast);
	if (!ret)
		ret = time_handling(ov, &f->handling);
	f->copy = time_copy(ov);
	if (!ret)
		ret = time_contention(ov, opts, most, &error);
	if (error > 0)
		error = -EINVAL;
	if (!ret)
		ret = agree(ov, &error);
	if (!ret)
		ret = swingcoll_broadcast(f, f, sizeof(*f) / sizeof(double), SWINGCOLL_F64, 0,
					  ov->comm);
	return ret ? ret : error;
}

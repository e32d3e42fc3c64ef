// SPDX-License-Identifier: GPL-2.0-only
/*
 * The measurement loop of swingperf and of the programs that it is compared with. It decides how often an
 * operation runs and condenses the times; it knows neither the operation nor the way ranks meet. All ranks
 * take the same decisions because they decide by maxima over the ranks only.
 */
#include "common/perfloop.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/clock.h"

#define MAX_ITERS 1000000u
#define MAX_REPEATS 64u
#define MAX_SINGLES 256u

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double perf_quantile(double *v, size_t n, double q)
{
	double pos;
	size_t i;

	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), cmp_double);
	pos = q * (double)(n - 1);
	i = (size_t)pos;
	if (i + 1 >= n)
		return v[n - 1];
	return v[i] + (pos - (double)i) * (v[i + 1] - v[i]);
}

/* Pages and cache lines; an odd number of pages, so that offsets differ modulo any power of two. */
#define STAGGER_BYTES (17 * 4096 + 1024)
#define STAGGER_PLACES 32

/* Large buffers begin in a huge page, as those of frameworks do; otherwise parts of them use small pages. */
#define HUGE_BYTES (2u << 20)

void *perf_alloc(size_t bytes, unsigned int number)
{
	size_t skip = (size_t)(number % STAGGER_PLACES) * STAGGER_BYTES;
	size_t align = bytes < HUGE_BYTES ? 0 : HUGE_BYTES;
	char *p;

	bytes += skip + 1;
	if (align)
		bytes = (bytes + align - 1) / align * align;
	p = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (align)
		p += align - (uintptr_t)p % align;
	memset(p, 0, bytes);
	return p + skip;
}

struct run {
	const struct perf_ops *ops;
	void *arg;
	unsigned int buffers;
	unsigned int next_buf;
};

static int run_ops(struct run *r, unsigned long n)
{
	unsigned long i;
	int ret;

	for (i = 0; i < n; i++) {
		ret = r->ops->start(r->arg, r->next_buf);
		if (ret)
			return ret;
		if (++r->next_buf == r->buffers)
			r->next_buf = 0;
	}
	return r->ops->drain ? r->ops->drain(r->arg) : 0;
}

/*
 * *mean: seconds per operation, on the slowest rank. One operation runs before the clock: ranks leave the
 * barrier one after the other, on a network perhaps further apart than an operation takes.
 */
static int timed_batch(struct run *r, unsigned long n, double *mean)
{
	double t0;
	int ret;

	ret = r->ops->sync(r->arg);
	if (!ret)
		ret = run_ops(r, 1);
	if (ret)
		return ret;
	t0 = clock_now();
	ret = run_ops(r, n);
	if (ret)
		return ret;
	*mean = (clock_now() - t0) / (double)n;
	return r->ops->max(r->arg, mean);
}

/* Very slow operations run once only. */
static int warm_up(struct run *r, const struct perf_rule *rule)
{
	double mean;
	int ret;

	if (!rule->warmup)
		return 0;
	ret = timed_batch(r, 1, &mean);
	if (ret || mean >= rule->budget_s)
		return ret;
	return run_ops(r, rule->warmup - 1);
}

/*
 * Batches grow until one takes a twentieth of the budget, twice in a row: another program may have delayed a
 * single one. *mean: of the quicker of the two.
 */
static int calibrate(struct run *r, const struct perf_rule *rule, double *mean)
{
	const double enough = rule->budget_s / 20;
	double again;
	unsigned long n;
	int ret;

	for (n = 1; n < MAX_ITERS / 4; n *= 4) {
		ret = timed_batch(r, n, mean);
		if (ret || *mean >= rule->budget_s)
			return ret;
		if (*mean * (double)n < enough)
			continue;
		ret = timed_batch(r, n, &again);
		if (ret)
			return ret;
		if (again < *mean)
			*mean = again;
		if (*mean * (double)n >= enough)
			return 0;
	}
	return 0;
}

static int choose_iters(struct run *r, const struct perf_rule *rule, struct perf_time *out)
{
	unsigned int repeats = rule->repeats ? rule->repeats : 1;
	double mean, want;
	int ret;

	if (repeats > MAX_REPEATS)
		repeats = MAX_REPEATS;
	out->repeats = repeats;
	out->iters = rule->iters;
	if (rule->iters)
		return 0;
	ret = calibrate(r, rule, &mean);
	if (ret)
		return ret;
	want = rule->budget_s / (mean > 1e-9 ? mean : 1e-9);
	if (want < repeats) {
		/* Too slow for the budget: one operation per repeat, and at least two repeats. */
		out->iters = 1;
		out->repeats = want < 2 ? 2 : (unsigned int)want;
		if (out->repeats > repeats)
			out->repeats = repeats;
		return 0;
	}
	want /= repeats;
	out->iters = want > MAX_ITERS ? MAX_ITERS : (unsigned long)want;
	return 0;
}

/* Single operations, each timed by itself, show the spread that a mean hides. */
static int measure_singles(struct run *r, const struct perf_rule *rule, struct perf_time *out)
{
	double t[MAX_SINGLES], t0, expect = out->time_us * 1e-6;
	unsigned int i, n = MAX_SINGLES;
	int ret;

	if (expect * n > rule->budget_s / 4)
		n = (unsigned int)(rule->budget_s / 4 / expect);
	if (n < 8) {
		/* Too few for a percentile: the caller uses the repeats. */
		return 1;
	}
	ret = r->ops->sync(r->arg);
	for (i = 0; !ret && i < n; i++) {
		t0 = clock_now();
		ret = run_ops(r, 1);
		t[i] = (clock_now() - t0) * 1e6;
	}
	if (ret)
		return ret < 0 ? ret : -1;
	out->min_us = perf_quantile(t, n, 0);
	out->median_us = perf_quantile(t, n, 0.5);
	out->p99_us = perf_quantile(t, n, 0.99);
	return 0;
}

int perf_measure(const struct perf_ops *ops, void *arg, const struct perf_rule *rule,
		 struct perf_time *out)
{
	struct run r = { .ops = ops, .arg = arg, .buffers = rule->buffers ? rule->buffers : 1 };
	double t[MAX_REPEATS], cpu, busy, ops_done;
	unsigned int i;
	int ret;

	memset(out, 0, sizeof(*out));
	ret = warm_up(&r, rule);
	if (ret)
		return ret;
	ret = choose_iters(&r, rule, out);
	if (ret)
		return ret;

	cpu = clock_process_cpu();
	busy = clock_all_cpus_busy();
	for (i = 0; i < out->repeats; i++) {
		ret = timed_batch(&r, out->iters, &t[i]);
		if (ret)
			return ret;
		t[i] *= 1e6;
	}
	/* Including the one before each batch. */
	ops_done = ((double)out->iters + 1) * out->repeats;
	out->cpu_us = (clock_process_cpu() - cpu) * 1e6 / ops_done;
	out->busy_us = (clock_all_cpus_busy() - busy) * 1e6 / ops_done;
	out->time_us = perf_quantile(t, out->repeats, 0.5);
	out->iqr_us = perf_quantile(t, out->repeats, 0.75) - perf_quantile(t, out->repeats, 0.25);

	ret = measure_singles(&r, rule, out);
	if (ret < 0)
		return ret;
	if (ret) {
		out->min_us = perf_quantile(t, out->repeats, 0);
		out->median_us = out->time_us;
		out->p99_us = perf_quantile(t, out->repeats, 1);
	}
	ret = ops->max(arg, &out->cpu_us);
	if (!ret)
		ret = ops->max(arg, &out->busy_us);
	if (!ret)
		ret = ops->max(arg, &out->min_us);
	if (!ret)
		ret = ops->max(arg, &out->median_us);
	if (!ret)
		ret = ops->max(arg, &out->p99_us);
	return ret;
}

int perf_measure_own(const struct perf_ops *ops, void *arg, const struct perf_rule *rule,
		     double *us)
{
	unsigned int repeats = rule->repeats < MAX_REPEATS ? rule->repeats : MAX_REPEATS;
	struct run r = { .ops = ops, .arg = arg, .buffers = rule->buffers };
	double own[MAX_REPEATS], mean = 0, t0;
	unsigned long n = rule->iters;
	int ret = timed_batch(&r, 1, &mean);

	if (!n)
		n = mean > 0 ? (unsigned long)(rule->budget_s / repeats / mean) : MAX_SINGLES;
	n = n < 1 ? 1 : n > MAX_SINGLES ? MAX_SINGLES : n;
	for (unsigned int i = 0; !ret && i < repeats; i++) {
		ret = ops->sync(arg);
		if (!ret)
			ret = run_ops(&r, 1);
		t0 = clock_now();
		if (!ret)
			ret = run_ops(&r, n);
		own[i] = (clock_now() - t0) / (double)n;
	}
	*us = ret ? 0 : perf_quantile(own, repeats, 0.5) * 1e6;
	return ret;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The measurement loop of swingperf and of the MPI comparison. It decides how often an operation runs
 * and condenses the times; it knows neither the operation nor the way the ranks meet. All ranks take
 * the same decisions because they decide on maxima over the ranks only.
 */
#include "common/perfloop.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MAX_ITERS 1000000u
#define MAX_REPEATS 64u
#define MAX_SINGLES 256u

double perf_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static double cpu_now(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (double)ru.ru_utime.tv_sec + (double)ru.ru_stime.tv_sec +
	       ((double)ru.ru_utime.tv_usec + (double)ru.ru_stime.tv_usec) * 1e-6;
}

/* Whatever for: kernel threads and interrupts too. To 10 ms, for all CPUs together. */
static double busy_now(void)
{
	unsigned long long user, nice, system, idle, wait;
	double busy = 0;
	FILE *f = fopen("/proc/stat", "re");

	if (f &&
	    fscanf(f, "cpu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait) == 5)
		busy = perf_now() * (double)sysconf(_SC_NPROCESSORS_ONLN) -
		       (double)(idle + wait) / (double)sysconf(_SC_CLK_TCK);
	if (f)
		fclose(f);
	return busy;
}

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

/* Pages and lines; odd, so that the places differ in any power of two of pages. */
#define STAGGER_BYTES (17 * 4096 + 1024)
#define STAGGER_PLACES 32

/* Large buffers begin in a huge page, as those of frameworks do: else parts of them are in small ones. */
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
 * *mean: seconds per operation, on the slowest rank. One operation goes before: the ranks leave the barrier one
 * after the other, on a network that is far apart by more than an operation takes.
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
	t0 = perf_now();
	ret = run_ops(r, n);
	if (ret)
		return ret;
	*mean = (perf_now() - t0) / (double)n;
	return r->ops->max(r->arg, mean);
}

/* Very slow operations are not worth more than one. */
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
 * Batches grow until one takes a twentieth of the budget, twice: a single one may have met with something
 * else that ran on this machine. *mean: of the quicker one.
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
		/* Slower than the budget allows: one each, and at least two to have a median. */
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

/* Single operations, each with its own clock reading: the spread that a mean hides. */
static int measure_singles(struct run *r, const struct perf_rule *rule, struct perf_time *out)
{
	double t[MAX_SINGLES], t0, expect = out->time_us * 1e-6;
	unsigned int i, n = MAX_SINGLES;
	int ret;

	if (expect * n > rule->budget_s / 4)
		n = (unsigned int)(rule->budget_s / 4 / expect);
	if (n < 8) {
		/* Too few to speak of a percentile: the repeats have to do. */
		return 1;
	}
	ret = r->ops->sync(r->arg);
	for (i = 0; !ret && i < n; i++) {
		t0 = perf_now();
		ret = run_ops(r, 1);
		t[i] = (perf_now() - t0) * 1e6;
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

	cpu = cpu_now();
	busy = busy_now();
	for (i = 0; i < out->repeats; i++) {
		ret = timed_batch(&r, out->iters, &t[i]);
		if (ret)
			return ret;
		t[i] *= 1e6;
	}
	/* With the one before each batch. */
	ops_done = ((double)out->iters + 1) * out->repeats;
	out->cpu_us = (cpu_now() - cpu) * 1e6 / ops_done;
	out->busy_us = (busy_now() - busy) * 1e6 / ops_done;
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

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limit that memory traffic sets to an allreduce on one node: one pass that reads VECTORS vectors, adds their
 * integers and writes as many vectors, by THREADS threads that each have a share and do not synchronise. No
 * allreduce of vectors that exceed the caches is faster. Ordinary and streaming stores are tried; one JSON object
 * per size has the better time.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "common/cli.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/perfloop.h"

#define MAX_VECTORS 16
#define MAX_THREADS 64
#define MAX_SIZES 256

static uint32_t *src[MAX_VECTORS], *dst[MAX_VECTORS];
static int nvec = 2, nthreads = 2;

struct worker {
	pthread_t thread;
	int index;
	size_t first, n; /* 32-bit elements */
	unsigned long passes;
	int streaming;
	double seconds;
};

static _Atomic int waiting;

#if defined(__x86_64__)
/* n is a multiple of 32 elements, everything is aligned to 64 bytes. */
__attribute__((target("avx2"), always_inline)) static inline void pass_n(size_t first, size_t n,
									 int streaming, int vectors)
{
	size_t i, end = first + n;
	int v;

	for (i = first; i < end; i += 32) {
		__m256i a = _mm256_load_si256((void *)(src[0] + i));
		__m256i b = _mm256_load_si256((void *)(src[0] + i + 8));
		__m256i c = _mm256_load_si256((void *)(src[0] + i + 16));
		__m256i d = _mm256_load_si256((void *)(src[0] + i + 24));

		for (v = 1; v < vectors; v++) {
			a = _mm256_add_epi32(a, _mm256_load_si256((void *)(src[v] + i)));
			b = _mm256_add_epi32(b, _mm256_load_si256((void *)(src[v] + i + 8)));
			c = _mm256_add_epi32(c, _mm256_load_si256((void *)(src[v] + i + 16)));
			d = _mm256_add_epi32(d, _mm256_load_si256((void *)(src[v] + i + 24)));
		}
		for (v = 0; v < vectors; v++) {
			if (streaming) {
				_mm256_stream_si256((void *)(dst[v] + i), a);
				_mm256_stream_si256((void *)(dst[v] + i + 8), b);
				_mm256_stream_si256((void *)(dst[v] + i + 16), c);
				_mm256_stream_si256((void *)(dst[v] + i + 24), d);
			} else {
				_mm256_store_si256((void *)(dst[v] + i), a);
				_mm256_store_si256((void *)(dst[v] + i + 8), b);
				_mm256_store_si256((void *)(dst[v] + i + 16), c);
				_mm256_store_si256((void *)(dst[v] + i + 24), d);
			}
		}
	}
	if (streaming)
		_mm_sfence();
}

/* The common numbers of vectors as constants, so that the compiler unrolls the loops. */
__attribute__((target("avx2"))) static void pass_avx2(size_t first, size_t n, int streaming)
{
	if (nvec == 2)
		pass_n(first, n, streaming, 2);
	else if (nvec == 4)
		pass_n(first, n, streaming, 4);
	else
		pass_n(first, n, streaming, nvec);
}
#endif

static void pass_plain(size_t first, size_t n)
{
	size_t i;
	int v;

	for (i = first; i < first + n; i++) {
		uint32_t sum = src[0][i];

		for (v = 1; v < nvec; v++)
			sum += src[v][i];
		for (v = 0; v < nvec; v++)
			dst[v][i] = sum;
	}
}

static int have_avx2(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("avx2");
#else
	return 0;
#endif
}

static void pass(const struct worker *w)
{
#if defined(__x86_64__)
	if (have_avx2() && w->n % 32 == 0) {
		pass_avx2(w->first, w->n, w->streaming);
		return;
	}
#endif
	pass_plain(w->first, w->n);
	/* Keep the compiler from merging passes. */
	atomic_signal_fence(memory_order_seq_cst);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned long i;
	cpu_set_t set;
	double t0;

	CPU_ZERO(&set);
	CPU_SET(w->index, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set); /* if allowed */
	atomic_fetch_sub(&waiting, 1);
	while (atomic_load(&waiting))
		sched_yield();
	t0 = clock_now();
	for (i = 0; i < w->passes; i++)
		pass(w);
	w->seconds = clock_now() - t0;
	return NULL;
}

/* Microseconds per pass, of the slowest thread. */
static double run(size_t bytes, unsigned long passes, int streaming)
{
	struct worker w[MAX_THREADS] = { 0 };
	size_t n = bytes / 4, part = (n / (size_t)nthreads + 31) & ~(size_t)31, first = 0;
	double worst = 0;
	int i;

	atomic_store(&waiting, nthreads);
	for (i = 0; i < nthreads; i++) {
		w[i].index = i;
		w[i].first = first;
		w[i].n = n - first < part || i == nthreads - 1 ? n - first : part;
		w[i].passes = passes;
		w[i].streaming = streaming;
		first += w[i].n;
		errno = pthread_create(&w[i].thread, NULL, work, &w[i]);
		if (errno) {
			fprintf(stderr, "traffic: cannot start thread %d: %s\n", i,
				strerror(errno));
			exit(2);
		}
	}
	for (i = 0; i < nthreads; i++) {
		pthread_join(w[i].thread, NULL);
		if (w[i].seconds > worst)
			worst = w[i].seconds;
	}
	return worst * 1e6 / (double)passes;
}

static double best(size_t bytes, double budget_s, int *streaming)
{
	double t[5], once, result = 0;
	unsigned long passes;
	int s, i;

	*streaming = 0;
	for (s = 0; s < 2; s++) {
		once = run(bytes, 1, s);
		for (passes = 1; once * (double)passes < budget_s * 1e6 / 20; passes *= 4)
			once = run(bytes, passes * 4, s);
		passes = (unsigned long)(budget_s * 1e6 / 10 / once) + 1;
		for (i = 0; i < 5; i++)
			t[i] = run(bytes, passes, s);
		once = perf_quantile(t, 5, 0.5);
		if (!s || once < result) {
			result = once;
			*streaming = s;
		}
	}
	return result;
}

static void print(size_t bytes, int streaming, double time_us)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "bytes", (double)bytes);
	cJSON_AddNumberToObject(o, "vectors", nvec);
	cJSON_AddNumberToObject(o, "threads", nthreads);
	cJSON_AddBoolToObject(o, "avx2", have_avx2());
	cJSON_AddBoolToObject(o, "streaming", streaming);
	cJSON_AddNumberToObject(o, "time_us", time_us);
	json_record(stdout, o);
}

int main(int argc, char **argv)
{
	static const struct cli_option no_options[] = { { 0 } };
	struct cli cli = { .prog = "traffic",
			   .usage = "traffic VECTORS THREADS TIME_MS BYTES...\n",
			   .options = no_options,
			   .argc = argc,
			   .argv = argv };
	size_t sizes[MAX_SIZES], n = 0, max = 0;
	double budget_s;

	while (cli_next(&cli) != CLI_END)
		;
	cli_operand(&cli, "VECTORS");
	nvec = (int)cli_number(&cli, 1, MAX_VECTORS);
	cli_operand(&cli, "THREADS");
	nthreads = (int)cli_number(&cli, 1, MAX_THREADS);
	cli_operand(&cli, "TIME_MS");
	budget_s = cli_real(&cli, 0.001, 3.6e6) * 1e-3;
	do {
		cli_operand(&cli, "BYTES");
		if (n == MAX_SIZES)
			cli_fail(&cli, "more than %d sizes", MAX_SIZES);
		sizes[n] = cli_size(&cli, 4, 1ull << 40);
		max = sizes[n] > max ? sizes[n] : max;
		n++;
	} while (cli_has_operand(&cli));
	for (int i = 0; i < nvec; i++) {
		src[i] = perf_alloc(max, 2 * (unsigned int)i);
		dst[i] = perf_alloc(max, 2 * (unsigned int)i + 1);
		if (!src[i] || !dst[i])
			cli_fail(&cli, "no memory for %d vectors of %zu bytes", 2 * nvec, max);
	}
	for (size_t i = 0; i < n; i++) {
		int streaming;
		double t = best(sizes[i], budget_s, &streaming);

		print(sizes[i], streaming, t);
	}
	return 0;
}

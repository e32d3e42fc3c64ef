// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory-traffic limit of an allreduce on one node: one pass that reads n vectors and writes n
 * vectors, adding integers on the way, with t threads that each own a part and never meet. Nobody can
 * be faster than that if the vectors do not fit into the caches. Ordinary and streaming stores are both
 * tried and the better one is printed. Prints one JSON object per size.
 */
#include "common/perfloop.h"

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

#define MAX_VECTORS 16
#define MAX_THREADS 64

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

/* The usual numbers of vectors as constants, so that the compiler unrolls. */
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
	/* The compiler must not merge passes. */
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
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set); /* where allowed */
	atomic_fetch_sub(&waiting, 1);
	while (atomic_load(&waiting))
		sched_yield();
	t0 = perf_now();
	for (i = 0; i < w->passes; i++)
		pass(w);
	w->seconds = perf_now() - t0;
	return NULL;
}

/* Microseconds per pass of the slowest thread; negative errno if a thread cannot be started. */
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

int main(int argc, char **argv)
{
	double budget_s = 0.2, t;
	int i, streaming;
	size_t max = 0;

	if (argc < 5) {
		fprintf(stderr, "Usage: traffic VECTORS THREADS TIME_MS BYTES...\n");
		return 2;
	}
	nvec = atoi(argv[1]);
	nthreads = atoi(argv[2]);
	budget_s = atof(argv[3]) * 1e-3;
	if (nvec < 1 || nvec > MAX_VECTORS || nthreads < 1 || nthreads > MAX_THREADS ||
	    budget_s <= 0) {
		fprintf(stderr, "traffic: 1 to %d vectors, 1 to %d threads, a positive time\n",
			MAX_VECTORS, MAX_THREADS);
		return 2;
	}
	for (i = 4; i < argc; i++)
		if (strtoull(argv[i], NULL, 10) > max)
			max = strtoull(argv[i], NULL, 10);
	for (i = 0; i < nvec; i++) {
		src[i] = perf_alloc(max, 2 * i);
		dst[i] = perf_alloc(max, 2 * i + 1);
		if (!src[i] || !dst[i]) {
			fprintf(stderr, "traffic: no memory for %d vectors of %zu bytes\n",
				2 * nvec, max);
			return 2;
		}
	}
	for (i = 4; i < argc; i++) {
		size_t bytes = strtoull(argv[i], NULL, 10);

		t = best(bytes, budget_s, &streaming);
		printf("{\"bytes\":%zu,\"vectors\":%d,\"threads\":%d,\"avx2\":%s,\"streaming\":%s,"
		       "\"time_us\":%.4f}\n",
		       bytes, nvec, nthreads, have_avx2() ? "true" : "false",
		       streaming ? "true" : "false", t);
		fflush(stdout);
	}
	return 0;
}

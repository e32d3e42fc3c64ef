// SPDX-License-Identifier: GPL-2.0-only
/*
 * Products by a BLAS library, loaded when it is needed: if swingperf were linked to OpenBLAS, that would start
 * its threads whatever swingperf does.
 */
#include "overlap.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/perfloop.h"

#define DEFAULT_BLAS "libopenblas.so.0"
/* Largest side that ov_blas_product() is asked for. */
#define MAX_SIDE 512

/* As in cblas.h. */
#define ROW_MAJOR 101
#define NO_TRANS 111
typedef void (*sgemm_fn)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
			 const float *a, int lda, const float *b, int ldb, float beta, float *c,
			 int ldc);

static sgemm_fn sgemm;
static const char *(*get_config)(void);
static const char *opened;
static float *scratch[3];

int ov_blas_open(const char *path)
{
	void (*set_threads)(int);
	void *so;

	/* One thread per rank, by the variables of the common BLAS libraries. */
	setenv("OPENBLAS_NUM_THREADS", "1", 1);
	setenv("OMP_NUM_THREADS", "1", 1);
	setenv("BLIS_NUM_THREADS", "1", 1);
	setenv("MKL_NUM_THREADS", "1", 1);
	opened = path ? path : DEFAULT_BLAS;
	so = dlopen(opened, RTLD_NOW | RTLD_LOCAL);
	if (so)
		*(void **)&sgemm = dlsym(so, "cblas_sgemm");
	if (!sgemm) {
		fprintf(stderr, "swingperf overlap: %s\n  next: %s\n", dlerror(),
			path ? "name a shared library with cblas_sgemm by --blas"
			     : "apt-get install libopenblas-dev, or name another BLAS by --blas");
		return -1;
	}
	*(void **)&set_threads = dlsym(so, "openblas_set_num_threads");
	if (set_threads)
		set_threads(1);
	*(void **)&get_config = dlsym(so, "openblas_get_config");
	for (int i = 0; i < 3; i++) {
		scratch[i] = calloc(MAX_SIDE * MAX_SIDE, sizeof(float));
		if (!scratch[i])
			return -1;
	}
	return 0;
}

const char *ov_blas_name(void)
{
	return get_config ? get_config() : opened;
}

void ov_blas_multiply(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
		      float *c, bool accumulate)
{
	sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, (int)m, (int)n, (int)k, 1, a, (int)lda, b, (int)n,
	      accumulate, c, (int)n);
}

int ov_blas_product(void *arg, size_t m, size_t n, size_t k)
{
	(void)arg;
	ov_blas_multiply(m, n, k, scratch[0], k, scratch[1], scratch[2], false);
	return 0;
}

double ov_blas_mflops(void)
{
	const size_t side = 160;
	double t[7];

	for (int i = -1; i < 7; i++) {
		double begin = clock_now();

		ov_blas_product(NULL, side, side, side);
		if (i >= 0)
			t[i] = clock_now() - begin;
	}
	return 2e-6 * (double)(side * side * side) / perf_quantile(t, 7, 0.5);
}

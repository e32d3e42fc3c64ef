/* SPDX-License-Identifier: GPL-2.0-only */
/* swingperf overlap: times an allgather that is overlapped with the product that consumes it. */
#ifndef SWINGPERF_OVERLAP_H
#define SWINGPERF_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/team.h"
#include "swingcoll_overlap.h"

#define OV_MAX_SHAPES 256
#define OV_MAX_CPUS 1024
#define OV_SCHEDULES SWINGCOLL_OVERLAP_SCHEDULES

/* C (m x n) = A (m x k) x B. */
struct ov_shape {
	char name[16];
	double m, n, k; /* before scaling */
};

enum ov_dma {
	OV_DMA_NEVER,
	OV_DMA_ALWAYS,
	OV_DMA_AS_IS, /* the module's setting stays */
};

struct ov_options {
	struct ov_shape shape[OV_MAX_SHAPES];
	unsigned int nshapes;
	double target_ms; /* time of one product; 0: shapes are not scaled */
	unsigned int repeats;
	unsigned int pieces;
	unsigned int trials; /* 0: the library's default */
	bool use[3];	     /* by enum ov_dma */
	bool must;	     /* DMA was asked for: without an engine that is an error */
	int rate_mbps;
	const char *table; /* NULL: the default, or none after start-up */
	const char *blas;
	FILE *json; /* NULL: none; stdout: instead of the table */
	bool bind;
	bool urgent;
};

/* Results of a shape, in seconds, of the slowest rank. */
struct ov_row {
	const struct ov_shape *shape;
	size_t m, n, k;
	struct swingcoll_overlap_forecast forecast;
	double median[OV_SCHEDULES], iqr[OV_SCHEDULES];
	double half[2][OV_SCHEDULES]; /* medians of the even and of the odd rounds */
	double wait[OV_SCHEDULES];    /* median time of waiting for pieces */
	enum swingcoll_overlap_schedule best, model, choice;
	double noise; /* mean of iqr / median */
	double cpu;   /* busy share of all CPUs */
	double own;   /* CPU time of this rank / time */
	uint64_t wrong;
};

/* The module's counters, which include those of other programs. */
struct ov_engines {
	uint64_t bytes;	 /* copied by engines */
	uint64_t by_cpu; /* bytes copied by CPUs */
	uint64_t failed; /* jobs that engines failed to do, and CPUs did */
};

/* One rank. */
struct ov_rank {
	const struct ov_options *opt;
	struct team *team;
	struct swingcoll_comm *comm;
	struct swingcoll_overlap *overlap;
	enum ov_dma dma;
	struct ov_engines before; /* counters before this way of moving data */
	double mflop;		  /* of a product that takes target_ms */
};

/* overlap_args.c */
void ov_parse(struct ov_options *opt, struct team *team, int argc, char **argv);

/* overlap_blas.c */
/* Load the library, before ranks are forked. 0, or -1 after a message. */
int ov_blas_open(const char *path);
const char *ov_blas_name(void);
/* C = A x B, or C += A x B; row order. */
void ov_blas_multiply(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
		      float *c, bool accumulate);
/* For swingcoll_overlap_opts. */
int ov_blas_product(void *arg, size_t m, size_t n, size_t k);
/* Speed of a product of medium size, in 10^6 floating-point operations per second. */
double ov_blas_mflops(void);

/* overlap_dma.c */
/* Whether this user may set how the module moves data. */
bool ov_dma_can_set(void);
/* Collective; 0, 1 if there is no engine, or a negative errno after a message. */
int ov_dma_set(struct ov_rank *r, enum ov_dma dma);
struct ov_engines ov_dma_engines(void);
/* Remember the module's settings before ranks are forked, and restore them after they have ended. */
void ov_dma_save(void);
void ov_dma_restore(void);

/* overlap_shape.c; 0 or a negative errno. */
int ov_measure(struct ov_rank *r, const struct ov_shape *shape, struct ov_row *row);

/* overlap_print.c; rank 0 prints */
void ov_print_header(const struct ov_rank *r);
void ov_print_figures(const struct ov_rank *r);
void ov_print_row(const struct ov_rank *r, const struct ov_row *row);
void ov_print_summary(const struct ov_rank *r, const struct ov_row *row, unsigned int n);

/* overlap.c: the verb; the exit status */
int perf_overlap(int argc, char **argv);

#endif /* SWINGPERF_OVERLAP_H */

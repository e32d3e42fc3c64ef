/* SPDX-License-Identifier: GPL-2.0-only */
/* swingperf overlap: an allgather overlapped with the product that consumes it. */
#ifndef SWINGPERF_OVERLAP_H
#define SWINGPERF_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/team.h"
#include "swingcoll.h"

#define OV_MAX_SHAPES 256
#define OV_SCHEDULES SWINGCOLL_OVERLAP_SCHEDULES

/* C (m x n) = A (m x k) x B. */
struct ov_shape {
	char name[16];
	double m, n, k; /* as given; scaled unless @fixed */
	bool fixed;
};

enum ov_dma {
	OV_DMA_NEVER,
	OV_DMA_ALWAYS,
	OV_DMA_AS_IS, /* nothing is set */
};

struct ov_options {
	struct ov_shape shape[OV_MAX_SHAPES];
	unsigned int nshapes;
	double target_ms; /* of one product */
	unsigned int repeats;
	unsigned int pieces;
	unsigned int trials; /* 0: the library's */
	unsigned int seed;
	bool use[3]; /* by enum ov_dma */
	bool must;   /* what is to be used was asked for: an error if it cannot be */
	int rate_mbps;
	const char *table; /* NULL: the default; "none" */
	const char *blas;
	FILE *json; /* stdout: in place of the table */
	bool bind;
	bool urgent;
};

/* What was measured of a shape; seconds, of the slowest rank. */
struct ov_row {
	const struct ov_shape *shape;
	size_t m, n, k;
	struct swingcoll_overlap_forecast forecast;
	double median[OV_SCHEDULES], iqr[OV_SCHEDULES];
	double half[2][OV_SCHEDULES]; /* medians of the even and of the odd rounds */
	double wait[OV_SCHEDULES];    /* asleep for pieces, median */
	enum swingcoll_overlap_schedule best, model, choice;
	double noise; /* mean of iqr / median */
	double cpu;   /* of all CPUs, busy share */
	double own;   /* of the ranks' own time, share on a CPU */
	uint64_t wrong;
};

/* Of the module's counters, for all its users. */
struct ov_engines {
	uint64_t bytes;	 /* that they have copied */
	uint64_t by_cpu; /* that CPUs have */
	uint64_t failed; /* jobs of engines, whose work the CPU did */
};

/* One rank. */
struct ov_rank {
	const struct ov_options *opt;
	struct team *team;
	struct swingcoll_comm *comm;
	struct swingcoll_overlap *overlap;
	enum ov_dma dma;
	struct ov_engines before; /* this way of moving data */
	double mflop;		  /* of a product that takes target_ms */
};

/* overlap_args.c */
void ov_parse(struct ov_options *opt, struct team *team, int argc, char **argv);

/* overlap_blas.c */
/* 0, or it has been said what is missing. Once, before ranks are forked. */
int ov_blas_open(const char *path);
const char *ov_blas_name(void);
/* C = A x B, or C += A x B; row order. */
void ov_blas_multiply(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
		      float *c, bool accumulate);
/* For swingcoll_overlap_opts. */
int ov_blas_product(void *arg, size_t m, size_t n, size_t k);
/* 10^6 floating point operations per second of a product of middling size. */
double ov_blas_mflops(void);

/* overlap_dma.c */
/* Whether the module lets us say how data is moved. */
bool ov_dma_can_set(void);
/* Collective; 0, 1 if there is no engine to be had, or an error that has been said. */
int ov_dma_set(struct ov_rank *r, enum ov_dma dma);
struct ov_engines ov_dma_engines(void);
/* Remember how things are, before there are ranks, and put them back whatever became of those. */
void ov_dma_save(void);
void ov_dma_restore(void);

/* overlap_shape.c; 0 or a negative errno. */
int ov_measure(struct ov_rank *r, const struct ov_shape *shape, struct ov_row *row);

/* overlap_print.c; all for rank 0 */
void ov_print_header(const struct ov_rank *r);
void ov_print_figures(const struct ov_rank *r);
void ov_print_row(const struct ov_rank *r, const struct ov_row *row);
void ov_print_summary(const struct ov_rank *r, const struct ov_row *row, unsigned int n);

/* overlap.c: the verb; the exit status */
int perf_overlap(int argc, char **argv);

#endif /* SWINGPERF_OVERLAP_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Schedules that overlap an allgather with the product that consumes it: how they cut the matrix,
 * and the time that a model forecasts for them. Pure functions; measure.c measures, transfer.c runs
 * schedules.
 */
#ifndef SWC_OVERLAP_MODEL_H
#define SWC_OVERLAP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <swingcoll_overlap.h>

/* Largest and default number of pieces that a shard is cut into. */
#define SWC_OV_PIECES 64
#define SWC_OV_DEFAULT_PIECES 8
/* Sizes of the measured products: each of the three dimensions takes each of these. */
#define SWC_OV_GRID 4
extern const size_t swc_ov_grid[SWC_OV_GRID];

/**
 * struct swc_ov_shape - the product of a call
 *
 * C (@m x @n) = A (@m x @k) x B, A cut by rows over @nranks ranks.
 * @elem: bytes of an element
 * @pieces: most pieces of a shard
 */
struct swc_ov_shape {
	size_t m, n, k;
	size_t elem;
	unsigned int nranks;
	unsigned int pieces;
};

/* Rows of A that a rank has: m / nranks, and one more on the first m % nranks ranks. */
void swc_ov_rows(size_t m, unsigned int nranks, unsigned int rank, size_t *row, size_t *rows);
/* Rows of the largest shard. */
size_t swc_ov_most_rows(const struct swc_ov_shape *s);

/* What a transfer takes of each shard: rows, counted in the largest shard, and columns. */
struct swc_ov_cut {
	size_t row, rows;
	size_t col, cols;
};

/* Number of transfers of a schedule, and what transfer i takes. SHARD has one for each rank. */
unsigned int swc_ov_transfers(enum swingcoll_overlap_schedule schedule,
			      const struct swc_ov_shape *s);
struct swc_ov_cut swc_ov_cut(enum swingcoll_overlap_schedule schedule, const struct swc_ov_shape *s,
			     unsigned int i);
/* Is the rank's own shard multiplied while the first transfers are on the way? */
bool swc_ov_own_first(enum swingcoll_overlap_schedule schedule);

/* Logarithms of flop/s at the points of the grid, [m][n][k]. */
struct swc_ov_rates {
	double log_rate[SWC_OV_GRID][SWC_OV_GRID][SWC_OV_GRID];
};

/* Seconds of a transfer by bytes of one rank: linear between the points and beyond the last. */
#define SWC_OV_POINTS 3
struct swc_ov_curve {
	double bytes[SWC_OV_POINTS];
	double s[SWC_OV_POINTS];
};

/**
 * struct swc_ov_figures - what the model knows of the machine and the communicator
 * @rates: of products, one rank alone
 * @gather, @broadcast: of transfers, with nothing else going on: [0] of the first, [1] of one that
 *	starts while another is on the way
 * @crowd: factor by which a product takes longer when all ranks compute
 * @cil_g, @cil_c: contention loss: factor by which a product takes longer during a transfer (all
 *	ranks computing in either case), and a transfer during products
 * @handling: seconds of the caller's thread to start a transfer and to wait for it
 * @copy: bytes per second of copies between buffers of one rank
 */
struct swc_ov_figures {
	struct swc_ov_rates rates;
	struct swc_ov_curve gather[2], broadcast[2];
	double crowd;
	double cil_g, cil_c;
	double handling;
	double copy;
};

/*
 * Seconds of one product. Rates are interpolated in the logarithms of the sizes, and constant
 * outside the grid.
 */
double swc_ov_product(const struct swc_ov_rates *rates, double m, double n, double k);
double swc_ov_curve_at(const struct swc_ov_curve *curve, double bytes);

/*
 * Decomposition loss: time of @cuts equal pieces over that of the whole; pieces of rows or of
 * columns of A.
 */
double swc_ov_dil(const struct swc_ov_rates *rates, const struct swc_ov_shape *s, unsigned int cuts,
		  bool columns);

/*
 * One step of a pipeline: a transfer, and the work that needs it and all before it. Seconds; either
 * may be 0.
 */
struct swc_ov_step {
	double comm;
	double comp;
};

/**
 * swc_ov_pipeline() - time of a pipeline with two stages
 * @throughout: all steps suffer from contention, as in the closed model: step i's transfer ends at
 *	c_i = c_(i-1) + comm_i cil_c, its work starts at max(c_i, g_(i-1)) and takes comp_i cil_g.
 *	Otherwise work suffers only until the last transfer ends, and transfers only from the first
 *	work on.
 */
double swc_ov_pipeline(const struct swc_ov_step *step, unsigned int n, double cil_g, double cil_c,
		       bool throughout);

/* Forecast of a schedule's time in seconds. */
double swc_ov_predict(enum swingcoll_overlap_schedule schedule, const struct swc_ov_shape *s,
		      const struct swc_ov_figures *f);

/*
 * Schedules worth a trial: serial, then the best two others by the model and those that are close
 * to the best; all of them if there is no forecast (@predicted NULL). @out gets them by number.
 * Returns how many.
 */
unsigned int swc_ov_candidates(const double *predicted, uint8_t *out);

#endif /* SWC_OVERLAP_MODEL_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Schedules that overlap an allgather with the product that consumes it: how they cut the matrix, and what time
 * a model gives them. Pure functions; measuring is in src/overlap_measure.c, moving in src/overlap_move.c.
 */
#ifndef SWC_PLAN_OVERLAP_MODEL_H
#define SWC_PLAN_OVERLAP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <swingcoll.h>

/* Most pieces that a shard is cut into. */
#define SWC_OV_PIECES 64
#define SWC_OV_DEFAULT_PIECES 8
/* Where products are measured: each of the three dimensions takes each of these sizes. */
#define SWC_OV_GRID 4
extern const size_t swc_ov_grid[SWC_OV_GRID];

/**
 * struct swc_ov_shape - what is to be done
 *
 * C (@m x @n) = A (@m x @k) x B, A cut by rows over @nranks ranks.
 * @pieces: how often a shard is cut, at most
 */
struct swc_ov_shape {
	size_t m, n, k;
	size_t elem;
	unsigned int nranks;
	unsigned int pieces;
};

/* Rows of one rank: the first m % nranks ranks have one more than the others. */
void swc_ov_rows(size_t m, unsigned int nranks, unsigned int rank, size_t *row, size_t *rows);
/* Rows of the largest shard. */
size_t swc_ov_most_rows(const struct swc_ov_shape *s);

/* Piece of each shard: rows within the shard (the largest one's), columns. */
struct swc_ov_cut {
	size_t row, rows;
	size_t col, cols;
};

/* Transfers of a schedule. SHARD: one for each rank. */
unsigned int swc_ov_transfers(enum swingcoll_overlap_schedule schedule,
			      const struct swc_ov_shape *s);
struct swc_ov_cut swc_ov_cut(enum swingcoll_overlap_schedule schedule, const struct swc_ov_shape *s,
			     unsigned int i);
/* The rank's own shard is multiplied while the first transfers are under way. */
bool swc_ov_own_first(enum swingcoll_overlap_schedule schedule);

/* Log of flop/s at the points of the grid, [m][n][k]. */
struct swc_ov_rates {
	double log_rate[SWC_OV_GRID][SWC_OV_GRID][SWC_OV_GRID];
};

/* Time of a transfer by bytes of one rank: linear between and behind the points. */
#define SWC_OV_POINTS 3
struct swc_ov_curve {
	double bytes[SWC_OV_POINTS];
	double s[SWC_OV_POINTS];
};

/**
 * struct swc_ov_figures - what the model knows of machine and communicator
 * @rates: of products, one rank alone
 * @gather, @broadcast: of transfers, nothing else going on: of the first, and of each behind it, which starts while
 *	that is under way
 * @crowd: how much longer a product takes when all ranks compute
 * @cil_g, @cil_c: contention loss: how much longer a product takes during a transfer (all ranks computing in
 *	either case), and a transfer during products
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

/* Seconds of one product. Rates are interpolated in the logarithms of the sizes; outside the grid its edge counts. */
double swc_ov_product(const struct swc_ov_rates *rates, double m, double n, double k);
double swc_ov_curve_at(const struct swc_ov_curve *curve, double bytes);

/* Decomposition loss: time of @cuts equal pieces over that of the whole; pieces of rows or of columns of A. */
double swc_ov_dil(const struct swc_ov_rates *rates, const struct swc_ov_shape *s, unsigned int cuts,
		  bool columns);

/* One step of a pipeline: a transfer, and the work that needs it and all before. Seconds; either may be 0. */
struct swc_ov_step {
	double comm;
	double comp;
};

/**
 * swc_ov_pipeline() - time of a pipeline with two stages
 * @throughout: all steps suffer from contention, as in the closed model: step i's transfer ends at
 *	c_i = c_(i-1) + comm_i cil_c, its work starts at max(c_i, g_(i-1)) and takes comp_i cil_g. Otherwise work
 *	suffers only until the last transfer ends, and transfers only from the first work on.
 */
double swc_ov_pipeline(const struct swc_ov_step *step, unsigned int n, double cil_g, double cil_c,
		       bool throughout);

/* Seconds that the model gives a schedule. */
double swc_ov_predict(enum swingcoll_overlap_schedule schedule, const struct swc_ov_shape *s,
		      const struct swc_ov_figures *f);

/*
 * Schedules worth a trial: serial, then by the model the best two others and those that are close to the best;
 * all if there is no prediction (NULL). By number of schedule. Returns how many.
 */
unsigned int swc_ov_candidates(const double *predicted, uint8_t *out);

#endif /* SWC_PLAN_OVERLAP_MODEL_H */

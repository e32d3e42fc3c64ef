/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An allgather overlapped with the matrix product that consumes it: C = A x B, where each rank has
 * some rows of A (m x k) and all of B (k x n), and wants all of C (m x n). The library moves A in
 * pieces and calls back for each piece; the product is the caller's, with any BLAS. See
 * swingcoll_overlap(3).
 *
 * Matrices are row-major. A rank's shard of A is the rows that swingcoll_overlap_rows() names,
 * without gaps between rows.
 *
 * Calls return 0 or a negative errno, as in swingcoll.h. A handle is for one thread at a time.
 */
#ifndef SWINGCOLL_OVERLAP_H
#define SWINGCOLL_OVERLAP_H

#include <stddef.h>
#include <stdint.h>

#include <swingcoll.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In which pieces A arrives, and what is multiplied at once. */
enum swingcoll_overlap_schedule {
	SWINGCOLL_OVERLAP_AUTO,		 /* the fastest, found out by trials */
	SWINGCOLL_OVERLAP_SERIAL,	 /* the whole allgather, then one product */
	SWINGCOLL_OVERLAP_SHARD,	 /* one rank's shard after the other, the own one first */
	SWINGCOLL_OVERLAP_ROWS,		 /* some rows of all ranks at a time */
	SWINGCOLL_OVERLAP_ROWS_OWN,	 /* the same, but first the own shard as a whole */
	SWINGCOLL_OVERLAP_ROWS_SEPARATE, /* the same, one product per rank */
	SWINGCOLL_OVERLAP_COLUMNS, /* some columns of all ranks at a time; products accumulate */
};
#define SWINGCOLL_OVERLAP_SCHEDULES 7

/* A range of rows of A, and of C. */
struct swingcoll_overlap_range {
	size_t row;
	size_t rows;
};

/*
 * A piece of A that has arrived: rows x cols elements at a, lda elements from row to row. Its
 * columns are columns col to col + cols - 1 of A. Its rows are those of the nruns runs, in that
 * order: neighbours in the piece may be far apart in A. Valid until the consumer returns.
 */
struct swingcoll_overlap_piece {
	const void *a;
	size_t lda;
	size_t rows;
	size_t col;
	size_t cols;
	int accumulate; /* 0: rows of C = piece x rows col and up of B; 1: rows of C += that */
	unsigned int nruns;
	const struct swingcoll_overlap_range *run;
};

/* A handle: one rank's, for one communicator. */
struct swingcoll_overlap;

/*
 * Options. Zero the struct and set what is wanted. They must be equal on all ranks, except arg.
 *
 * table	file with the times of products on this machine. Rank 0 reads it, and appends them
 *		if it lacks them. NULL: no file, the times are measured for each handle
 * product	computes one product of that size (up to 512 in each dimension) on any numbers, to
 *		be timed. Returns 0 or a negative errno. NULL: nothing is measured, and every
 *		schedule is tried
 * arg		its first argument
 * dtype	element type of the timed products; for other types the model gives no forecast, and
 *		every schedule is tried
 * pieces	number of pieces that a shard is cut into, at most 64; 0: 8
 * trials	trials of each candidate schedule before those far behind the best are dropped, at
 *		most 15; 0: 3
 */
struct swingcoll_overlap_opts {
	const char *table;
	int (*product)(void *arg, size_t m, size_t n, size_t k);
	void *arg;
	enum swingcoll_dtype dtype;
	uint32_t pieces;
	uint32_t trials;
	uint32_t reserved[8]; /* 0 */
};

/*
 * One product. m, n, k and dtype are equal on all ranks, and so is schedule. shard is this rank's
 * shard of A; it is read only, and may be NULL if this rank has no rows. consume is called in the
 * calling thread for each piece and returns 0 or a negative errno. If it fails it is not called
 * again, the transfers still complete, and swingcoll_overlap_run() returns its error; the
 * communicator remains usable.
 */
struct swingcoll_overlap_call {
	size_t m, n, k;
	enum swingcoll_dtype dtype;
	enum swingcoll_overlap_schedule schedule;
	const void *shard;
	int (*consume)(void *arg, const struct swingcoll_overlap_piece *piece);
	void *arg;
	uint32_t reserved[8]; /* 0 */
};

/* How a call went on this rank. */
struct swingcoll_overlap_result {
	enum swingcoll_overlap_schedule schedule; /* that ran */
	int trial;				  /* 1: it was a trial of that schedule */
	uint64_t time_ns;			  /* of the call */
	uint64_t wait_ns;			  /* of that, asleep until a piece arrived */
};

/* What was measured when the handle was made, the same on all ranks. */
struct swingcoll_overlap_figures {
	double start_s;		  /* allgather: start-up time in seconds */
	double bytes_per_s;	  /* allgather: rate, in bytes of one rank's shard */
	double crowd;		  /* time of a product on all ranks at once / on one rank alone */
	double product_slowdown;  /* contention loss: product during a transfer / without one */
	double transfer_slowdown; /* contention loss: transfer during products / without them */
};

/* The model's forecast for a shape; times in seconds. */
struct swingcoll_overlap_forecast {
	double time_s[SWINGCOLL_OVERLAP_SCHEDULES]; /* by schedule; [AUTO]: 0 */
	double gather_s;			    /* the whole allgather alone */
	double product_s; /* the whole product alone, all ranks computing */
	double dil_rows; /* decomposition loss: time of a product in pieces of rows / in one piece */
	double dil_columns; /* the same in pieces of columns */
};

/*
 * Create a handle. Collective: all ranks of comm call it alike. Blocks as long as measuring takes,
 * typically well below a second. *overlap belongs to the caller until swingcoll_overlap_destroy(),
 * which must come before comm is destroyed.
 */
int swingcoll_overlap_create(struct swingcoll_overlap **overlap, struct swingcoll_comm *comm,
			     const struct swingcoll_overlap_opts *opts);
/* Free the handle. NULL is allowed. Not collective. */
void swingcoll_overlap_destroy(struct swingcoll_overlap *overlap);

/*
 * Gather and consume. Collective: all ranks call it alike, and it takes the place of some
 * collectives in the order of the communicator's. Blocks until all pieces are consumed. With AUTO
 * the first calls of a shape are trials, which do their work as any other call; then the fastest
 * schedule stays. result may be NULL. After any error but the consumer's own, abort the
 * communicator.
 */
int swingcoll_overlap_run(struct swingcoll_overlap *overlap,
			  const struct swingcoll_overlap_call *call,
			  struct swingcoll_overlap_result *result);

/* Rows of A that a rank has: m / nranks, and one more on the first m % nranks ranks. */
void swingcoll_overlap_rows(size_t m, int nranks, int rank, struct swingcoll_overlap_range *rows);

/*
 * Measured figures, and the forecast for a shape. -ENODATA: without a product of that type nothing
 * was measured.
 */
int swingcoll_overlap_figures(const struct swingcoll_overlap *overlap,
			      struct swingcoll_overlap_figures *figures);
int swingcoll_overlap_forecast(const struct swingcoll_overlap *overlap, size_t m, size_t n,
			       size_t k, enum swingcoll_dtype dtype,
			       struct swingcoll_overlap_forecast *forecast);

/*
 * Names of schedules, such as "rows-grouped"; NULL for an unknown value. The parser returns the
 * value or -EINVAL.
 */
const char *swingcoll_overlap_name(enum swingcoll_overlap_schedule schedule);
int swingcoll_overlap_parse(const char *name);

#ifdef __cplusplus
}
#endif

#endif /* SWINGCOLL_OVERLAP_H */

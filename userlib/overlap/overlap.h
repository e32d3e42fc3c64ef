/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the overlap helper share: the handle, measuring, running a schedule. */
#ifndef SWC_OVERLAP_OVERLAP_H
#define SWC_OVERLAP_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "overlap/model.h"

/*
 * Most transfers in flight where CPUs move the data: more would share the CPUs, and the next piece
 * would arrive later.
 */
#define SWC_OV_AHEAD_CPU 3
/* The same where DMA engines move it, one transfer after the other, while the ranks multiply. */
#define SWC_OV_AHEAD 16

/* Most trials of a schedule. */
#define SWC_OV_TRIALS 15

/**
 * struct swc_ov_learned - what trials have shown for a shape
 * @candidate, @ncandidates: schedules still in question, fewer with every round of trials
 * @time: of the trials of each; in no order
 * @rounds: completed rounds, each with one trial of every candidate
 * @turn: the candidate that is tried next
 * @decided: the trials are over: it is the first candidate
 */
struct swc_ov_learned {
	struct swc_ov_learned *next;
	size_t m, n, k;
	enum swingcoll_dtype dtype;
	uint8_t candidate[SWINGCOLL_OVERLAP_SCHEDULES];
	unsigned int ncandidates;
	double time[SWINGCOLL_OVERLAP_SCHEDULES][SWC_OV_TRIALS];
	unsigned int rounds;
	unsigned int turn;
	bool decided;
};

/* Memory of the handle that transfers use. It grows. */
struct swc_ov_buffer {
	char *base;
	size_t bytes;
	bool registered;
};

/**
 * struct swingcoll_overlap - one rank's handle
 *
 * For one thread at a time, because the order of calls is that of the collectives in them.
 *
 * @dtype: of the products that were timed
 * @known: @figures are valid; they are rank 0's, on all ranks
 * @engines: by schedule: DMA engines moved the data the last time
 * @gathered: pieces as they arrive
 * @packed: data to send that is not contiguous in the caller's shard
 */
struct swingcoll_overlap {
	struct swingcoll_comm *comm;
	unsigned int nranks;
	unsigned int rank;
	unsigned int pieces;
	unsigned int trials;
	enum swingcoll_dtype dtype;
	bool known;
	struct swc_ov_figures figures;
	bool engines[SWINGCOLL_OVERLAP_SCHEDULES];
	struct swc_ov_learned *learned;
	struct swc_ov_buffer gathered;
	struct swc_ov_buffer packed;
};

static inline struct swc_ov_shape swc_ov_shape_of(const struct swingcoll_overlap *ov, size_t m,
						  size_t n, size_t k, size_t elem)
{
	return (struct swc_ov_shape){
		.m = m, .n = n, .k = k, .elem = elem, .nranks = ov->nranks, .pieces = ov->pieces
	};
}

/* buffer.c: make a buffer at least so large; its contents are lost if it grows. 0 or -ENOMEM. */
int swc_ov_reserve(struct swc_ov_buffer *b, size_t bytes);
void swc_ov_release(struct swc_ov_buffer *b);

/* measure.c */
/* Seconds; only differences mean anything. */
double swc_ov_now(void);
/* The median; sorts @v. */
double swc_ov_median(double *v, unsigned int n);
/*
 * Collective: fill ov->figures, on all ranks alike. ov->known is false if a rank has no product to
 * measure with.
 */
int swc_ov_measure(struct swingcoll_overlap *ov, const struct swingcoll_overlap_opts *opts);

/*
 * rates_file.c: times of products of one type on this machine. 0, -ENODATA if the file lacks some,
 * or an error, for which @why gets a line.
 */
int swc_ov_table_read(struct swc_ov_rates *rates, const char *path, enum swingcoll_dtype dtype,
		      char *why, size_t why_bytes);
int swc_ov_table_append(const struct swc_ov_rates *rates, const char *path,
			enum swingcoll_dtype dtype);

/*
 * transfer.c: run one call by a schedule. Returns the error of the transfers. *consumer: the
 * consumer's error. *wait_s: seconds asleep.
 */
int swc_ov_transfer(struct swingcoll_overlap *ov, const struct swingcoll_overlap_call *call,
		    enum swingcoll_overlap_schedule schedule, int *consumer, double *wait_s);

#endif /* SWC_OVERLAP_OVERLAP_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the overlap helper share: the handle, measuring, moving. */
#ifndef SWC_OVERLAP_HANDLE_H
#define SWC_OVERLAP_HANDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"

/* Transfers in flight, at most, where CPUs move the data: more would share the CPUs and come later. */
#define SWC_OV_AHEAD_CPU 3
/* And where engines do: one behind the other, while the ranks multiply. */
#define SWC_OV_AHEAD 16

/* Trials of a schedule, at most. */
#define SWC_OV_TRIALS 15

/**
 * struct swc_ov_learned - what is known of a shape
 * @candidate, @ncandidates: schedules in question, fewer with every round of trials
 * @time: of the trials of each; in no order
 * @rounds: in which all of them had their turn
 * @turn: whose is next
 * @decided: the first candidate it is
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

/* Memory of the handle that transfers use; grows. */
struct swc_ov_buffer {
	char *base;
	size_t bytes;
	bool registered;
};

/**
 * struct swingcoll_overlap - one rank's handle
 *
 * For one thread at a time, as the order of calls is that of the collectives in them.
 *
 * @dtype: of the products that were timed
 * @figures: valid if @known; of rank 0, on all ranks
 * @engines: by schedule: engines moved the data the last time
 * @gathered: pieces as they come
 * @packed: what is sent, where it does not lie in one run in the caller's shard
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

/* overlap_buffer.c: at least so many bytes, whatever is in them; 0 or -ENOMEM. */
int swc_ov_reserve(struct swc_ov_buffer *b, size_t bytes);
void swc_ov_release(struct swc_ov_buffer *b);

/* overlap_measure.c */
/* Seconds; only differences mean anything. */
double swc_ov_now(void);
/* Sorts. */
double swc_ov_median(double *v, unsigned int n);
/* Fill ov->figures, on all ranks alike; ov->known false if there is nothing to measure with. */
int swc_ov_measure(struct swingcoll_overlap *ov, const struct swingcoll_overlap_opts *opts);

/* overlap_table.c: times of products of one type on this machine. 0, -ENODATA (not all are there), or an error. */
int swc_ov_table_read(struct swc_ov_rates *rates, const char *path, enum swingcoll_dtype dtype);
int swc_ov_table_append(const struct swc_ov_rates *rates, const char *path,
			enum swingcoll_dtype dtype);

/*
 * overlap_move.c: one call by a schedule. *consumer: the consumer's error. Returns that of the transfers.
 * *wait_s: time asleep.
 */
int swc_ov_move(struct swingcoll_overlap *ov, const struct swingcoll_overlap_call *call,
		enum swingcoll_overlap_schedule schedule, int *consumer, double *wait_s);

#endif /* SWC_OVERLAP_HANDLE_H */

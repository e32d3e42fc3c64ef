/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Dense or packed, or coded? By a sample of the union's density and by measured times. All ranks must decide
 * alike: they reduce one small message by OR, in which each rank marks which of some places, the same
 * on all ranks, are not zero, and how long its last call took, in unary, so that the OR is the
 * longest time of any rank. After that the decision is arithmetic on numbers that all ranks have. They are
 * of type double: it relies on -ffp-contract=off, as fused operations round differently, and not all
 * machines have them. Pure.
 */
#ifndef SWC_SPARSE_AUTO_H
#define SWC_SPARSE_AUTO_H

#include <stdbool.h>
#include <stdint.h>

/* Vectors below so many bytes are always dense. */
#define SWC_SPARSE_AUTO_MIN (256u << 10)

#define SWC_SPARSE_SAMPLES 4096
#define SWC_SPARSE_TIME_WORDS 18 /* unary numbers to 1152: 32 steps an octave, up to 2^41 ns */

struct swc_sparse_vote {
	uint64_t place[SWC_SPARSE_SAMPLES / 64];
	uint64_t time[SWC_SPARSE_TIME_WORDS];
};

enum swc_sparse_choice {
	SWC_SPARSE_CHOICE_DENSE,
	SWC_SPARSE_CHOICE_PACK,
};

/**
 * struct swc_sparse_auto - what is known for one kind of call
 * @skip, @pause: calls to run dense without a vote, and how many the next time
 * @last, @last_ns: how the last call ran and how long it took here, if @fresh
 * @last_bytes: what it reduced
 * @best_ns: agreed time of both, the least of some trials; 0: unknown
 * @bytes: reduced bytes of the time for pack
 * @trials: times seen of both
 */
struct swc_sparse_auto {
	uint32_t skip, pause;
	bool fresh;
	enum swc_sparse_choice last;
	uint64_t last_ns, last_bytes;
	uint64_t best_ns[2], bytes;
	uint32_t trials[2];
};

/* Is this call dense without a vote? */
bool swc_sparse_auto_skip(struct swc_sparse_auto *a);
/* Fill this rank's message. */
void swc_sparse_auto_vote(const struct swc_sparse_auto *a, const void *v, uint64_t count,
			  unsigned int size, struct swc_sparse_vote *vote);
/* Only the time of the last call. */
void swc_sparse_auto_vote_time(const struct swc_sparse_auto *a,
			       uint64_t time[SWC_SPARSE_TIME_WORDS]);
/* Decide by the OR of all messages, and learn the times in it. */
enum swc_sparse_choice swc_sparse_auto_decide(struct swc_sparse_auto *a,
					      const struct swc_sparse_vote *vote, uint64_t count,
					      unsigned int size);
/* The same by times alone, for a code of @bytes instead of pack. */
enum swc_sparse_choice swc_sparse_auto_decide_time(struct swc_sparse_auto *a,
						   const uint64_t time[SWC_SPARSE_TIME_WORDS],
						   uint64_t bytes, uint64_t dense);
/* The vector could not be coded: run some calls dense. */
void swc_sparse_auto_pause(struct swc_sparse_auto *a);
/* The call is done. */
void swc_sparse_auto_ran(struct swc_sparse_auto *a, enum swc_sparse_choice choice, uint64_t ns,
			 uint64_t bytes);

#endif /* SWC_SPARSE_AUTO_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which of MPI and swingcoll carries a call out, by measurement. Pure: it knows neither MPI nor
 * swingcoll.
 *
 * The calls of a communicator fall into classes: by collective and the way in which shares are
 * given, and by the number of bits of the size. The first calls of a class are a trial: bursts of
 * some calls each go to swingcoll and to MPI in turn, and each rank measures how long they keep it.
 * After a round of bursts the ranks add up what a burst of each side takes them. If it is plain by then
 * which sum is smaller, it decides for good, else another round follows. So the ranks need to agree on
 * nothing else: all steps follow from the number of calls, which MPI makes equal on all ranks, and from
 * the sums, which are equal by the exchange.
 *
 * Bursts, not single calls, since MPI's rooted collectives return before all ranks have come: what
 * they cost shows only when several of them follow each other. The sum over the ranks, since what
 * spares one rank time may cost another one.
 *
 * What counts is the lower median of a side's bursts: so what disturbs less than half of them from
 * outside does not count. Not the median of calls: where ranks wait for a processor, a call often takes
 * ten times as long as the next, by turns, and the median is of either kind. Nor the quickest of calls
 * or bursts: there the side wins whose times vary more.
 */
#ifndef PMPI_CHOOSE_H
#define PMPI_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#define CHOOSE_COLLS 32
/* Collectives of MPI only. The last four have one class each, as their sizes are not known before. */
#define CHOOSE_PREFIXES 27
#define CHOOSE_GATHERV 28
#define CHOOSE_SCATTERV 29
#define CHOOSE_ALLTOALLV 30
#define CHOOSE_ALLTOALLW 31
#define CHOOSE_CLASSES 48
#define CHOOSE_BURST 4	/* calls of one burst; the first of each is not counted */
#define CHOOSE_BURSTS 4 /* of a round: two for each side */
#define CHOOSE_ROUND (CHOOSE_BURST * CHOOSE_BURSTS)
#define CHOOSE_ROUNDS 4 /* at most */
/* Of calls that take longer on average, one round must do. */
#define CHOOSE_LONG_NS 1000000

enum choose_side {
	CHOOSE_MPI,
	CHOOSE_SWC,
	CHOOSE_SIDES
};

/*
 * @calls: of the trial, so far
 * @side: if decided
 * @small, @large: how small and how large calls have been, of choose_told()
 * @burst: ns that the present burst has taken so far
 * @ns: the quicker bursts of each side, the quickest first
 */
struct choose_class {
	uint8_t calls;
	bool decided;
	uint8_t side;
	uint8_t small, large;
	uint32_t burst;
	uint32_t ns[CHOOSE_SIDES][CHOOSE_ROUNDS];
};

struct choose {
	struct choose_class of[CHOOSE_COLLS][CHOOSE_CLASSES];
};

/* The class of a call; @coll: below CHOOSE_COLLS. */
struct choose_class *choose_find(struct choose *c, unsigned int coll, uint64_t bytes);

/* Who carries the next call of the class out. *trial: its time is wanted. */
enum choose_side choose_next(const struct choose_class *k, bool *trial);

/*
 * Enter the time of the call that choose_next() was asked for. True: a round is over, and
 * choose_decide() must follow.
 */
bool choose_sample(struct choose_class *k, uint64_t ns);

/*
 * For a class whose calls have unknown sizes: that of the one that runs has become known, on all
 * ranks. If it is smaller or larger than all so far, another trial begins with the next call. That
 * happens once for each number of bits at most.
 */
void choose_told(struct choose_class *k, uint64_t bytes);

/* What a burst of each side takes this rank, in ns, to be added up over all ranks. */
void choose_times(const struct choose_class *k, double ns[CHOOSE_SIDES]);
/*
 * The decision by these sums over so many ranks, or another round. The first calls that a communicator
 * leaves to swingcoll are slow, as they touch new memory, and what disturbs a rank may last for a round:
 * MPI needs more than one to be taken for the faster side.
 */
void choose_decide(struct choose_class *k, const double sums[CHOOSE_SIDES], int nranks);

#endif /* PMPI_CHOOSE_H */

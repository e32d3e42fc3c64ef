/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What slots.c and slots_wait.c share: the head of the shared memory, and what a rank waits for. slots.c
 * calls slots_wait.c, which calls nothing of slots.c.
 *
 * Layout of the shared memory:
 *
 *	header			layout, which ranks have left
 *	record[RECORDS]		one per collective, by number modulo RECORDS:
 *		meeting		how many ranks sleep on this record, and the outcome (see "Few CPUs" in slots.c)
 *		cell[nranks]	each rank's announcement, with room for a small contribution
 *	data[2][nranks]		contributions that do not fit into a cell, by parity of the number; small
 *				ones in one of eight pieces, by turns
 *	sum[2]			sums that do not fit into the meeting, likewise
 *
 * Who writes: slots_wait.c writes `sleepers` and `woken_at` of a meeting, and of struct swc_slots @spin_ns,
 * @look_ns and @wake_ns, which swc_slots_plan() has cleared. slots.c writes all the rest, and no other file
 * looks into data and sum.
 */
#ifndef SWC_SHM_SLOTS_PRIV_H
#define SWC_SHM_SLOTS_PRIV_H

#include <errno.h>

#include "src/shm/slots.h"

#define SWC_SLOTS_LINE 128 /* two cache lines: they are fetched in pairs */
#define SWC_SLOTS_RECORDS 128

struct swc_slots_header {
	uint64_t layout; /* set by the first rank, compared by the others */
	char pad0[SWC_SLOTS_LINE - 8];
	uint32_t left[SWC_MAX_LOCAL_RANKS];
};

struct swc_slots_meeting {
	uint32_t sleepers; /* ranks that sleep or are about to */
	uint32_t arrived;  /* ranks that have published; this and the rest with few CPUs only */
	uint64_t woken_at; /* CLOCK_MONOTONIC in ns, when sleepers were last woken */
	uint32_t outcome;  /* k + 1: all have published; the word that sleepers wait on */
	uint32_t agreed;   /* all have called the same collective, through the slots */
	char sum[SWC_SLOTS_LINE - 24];
};

struct swc_slots_cell {
	uint32_t number; /* k + 1 of the collective; the word that sleepers wait on */
	uint32_t resv;
	uint64_t signature;
	char data[SWC_SLOTS_LINE - 16];
};

_Static_assert(sizeof(struct swc_slots_cell) == SWC_SLOTS_LINE, "cells share no line");
_Static_assert(sizeof(struct swc_slots_meeting) == SWC_SLOTS_LINE, "cells follow the meeting");
_Static_assert(sizeof(struct swc_slots_header) % SWC_SLOTS_LINE == 0, "records start on a line");

static inline struct swc_slots_header *swc_slots_header(const struct swc_slots *s)
{
	return (struct swc_slots_header *)s->base;
}

static inline char *swc_slots_record(const struct swc_slots *s, uint64_t k)
{
	return s->base + sizeof(struct swc_slots_header) +
	       (k % SWC_SLOTS_RECORDS) * SWC_SLOTS_LINE * (s->nranks + 1ull);
}

static inline struct swc_slots_meeting *swc_slots_meeting(const struct swc_slots *s, uint64_t k)
{
	return (struct swc_slots_meeting *)swc_slots_record(s, k);
}

static inline struct swc_slots_cell *swc_slots_cell_in(char *record, uint32_t rank)
{
	return (struct swc_slots_cell *)(record + SWC_SLOTS_LINE * (rank + 1ull));
}

static inline struct swc_slots_cell *swc_slots_cell(const struct swc_slots *s, uint64_t k,
						    uint32_t rank)
{
	return swc_slots_cell_in(swc_slots_record(s, k), rank);
}

/* Does a word that ranks publish say so of collective k? */
static inline bool swc_slots_says(const uint32_t *word, uint64_t k)
{
	/* Pairs with the releases in publish() and conclude(): what was written before is visible. */
	return (int32_t)(__atomic_load_n(word, __ATOMIC_ACQUIRE) - (uint32_t)(k + 1)) >= 0;
}

static inline bool swc_slots_has_published(const struct swc_slots *s, uint64_t k, uint32_t rank)
{
	return swc_slots_says(&swc_slots_cell(s, k, rank)->number, k);
}

/*
 * What a rank waits for: that the ranks from `late` to before `end` publish k, and with @concluded that
 * the outcome is there, after them.
 */
struct swc_slots_awaited {
	uint64_t k;
	char *record; /* of k */
	uint32_t late;
	uint32_t end;
	bool concluded;
};

/* All ranks. */
static inline struct swc_slots_awaited swc_slots_await_all(const struct swc_slots *s, uint64_t k)
{
	return (struct swc_slots_awaited){
		.k = k, .record = swc_slots_record(s, k), .end = s->nranks, .concluded = s->crowded
	};
}

/*
 * Move w->late to the first rank that is missing; false: none is. Until the outcome is there it is the
 * last rank that is missing.
 */
static inline bool swc_slots_is_missing(struct swc_slots_awaited *w)
{
	if (w->concluded &&
	    swc_slots_says(&((struct swc_slots_meeting *)w->record)->outcome, w->k)) {
		w->late = w->end;
		return false;
	}
	while (w->late < w->end &&
	       swc_slots_says(&swc_slots_cell_in(w->record, w->late)->number, w->k))
		w->late++;
	if (w->concluded && w->late == w->end)
		w->late--;
	return w->late < w->end;
}

static inline bool swc_slots_have_all_published(const struct swc_slots *s, uint64_t k)
{
	struct swc_slots_awaited w = swc_slots_await_all(s, k);

	return !swc_slots_is_missing(&w);
}

static inline int swc_slots_aborted(const struct swc_slots *s)
{
	int error;

	if (!__atomic_load_n(&s->state->aborted, __ATOMIC_ACQUIRE))
		return 0;
	error = s->state->error;
	return error < 0 ? error : -ECONNABORTED;
}

/* ---- slots_wait.c ---- */

/* Before the first call of the others. */
void swc_slots_wait_init(struct swc_slots *s);

/*
 * Some are missing: wait until none is. Polls or yields for a while, then sleeps. 0, an error, or
 * SWC_SLOTS_FALLBACK if a rank has left that is waited for.
 */
int swc_slots_wait_missing(struct swc_slots *s, struct swc_slots_awaited *w);

/* Wait until none is missing; likewise. */
static inline int swc_slots_wait_for(struct swc_slots *s, struct swc_slots_awaited w)
{
	return swc_slots_is_missing(&w) ? swc_slots_wait_missing(s, &w) : 0;
}

/* Wait until all have published k; likewise. */
static inline int swc_slots_meet(struct swc_slots *s, uint64_t k)
{
	int ret = swc_slots_wait_for(s, swc_slots_await_all(s, k));

	if (!ret && s->met <= k)
		s->met = k + 1;
	return ret;
}

uint32_t swc_slots_who_left(const struct swc_slots *s, uint64_t k);

/* Wake the ranks that sleep on a record which all have published. */
void swc_slots_wake(struct swc_slots *s, uint64_t k);

#endif /* SWC_SHM_SLOTS_PRIV_H */

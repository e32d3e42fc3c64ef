/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The machine that runs plans on symbols: shared by verify.c, which runs them, cells.c, which has
 * the contents of their buffers, and pairs.c, which finds the transfers that meet. The idea is
 * explained in verify.c.
 */
#ifndef SWC_PLAN_VERIFY_CELLS_H
#define SWC_PLAN_VERIFY_CELLS_H

#include "plan/plan.h"
#include "kmod/core/plan_check.h"

#define SWC_VERIFY_NONE UINT32_MAX
#define SWC_VERIFY_MANY UINT8_MAX

/* The value of a cell: a sum of contributions to one block. */
struct swc_verify_value {
	uint32_t refs;	/* cells and messages that have it; while it is free, the next free one */
	uint32_t block; /* block of the vector this is part of */
	uint32_t ncontrib;  /* ranks that contributed */
	uint32_t one;	    /* the rank, if it is a single one */
	uint32_t finals;    /* FINAL marks passed */
	uint64_t order;	    /* hash of the tree of operations */
	uint64_t contrib[]; /* the ranks, as bits, if there are several */
};

struct swc_verify_cell {
	uint32_t
		value; /* number of the value; 0: the rank's own contribution in SEND, or never written */
	uint8_t written; /* 1 + the channel that wrote it */
	uint8_t read;	 /* 1 + the channel that reads it, SWC_VERIFY_MANY if there are several */
};

/* The steps of the running channel that accessed a cell; for channels that need clocks. */
struct swc_verify_touches {
	uint32_t writer, write_step;
	uint32_t readers; /* since the last write */
};

/* A transfer and the one that it meets. */
struct swc_verify_link {
	uint32_t other; /* the transfer in the peer's plan, or SWC_VERIFY_NONE */
	uint32_t
		at; /* of a send in an open step: where its values begin in the thread's messages */
	bool done;
};

/* One rank on the running channel. */
struct swc_verify_thread {
	uint32_t rank;
	uint32_t at, nsteps; /* steps done, and in all */
	uint32_t left;	     /* transfers of the open step that are not done yet */
	uint32_t next_recv;  /* the first receive of the open step that may not be done yet */
	bool posted;	     /* step @at is open */
	uint32_t *message;   /* values that the open step sends */
	uint32_t room, used;
	/*
	 * By rank: 1 if it has begun, and 1 for each of its steps that is over, as far as this
	 * thread can know; and the same at the end of the open step.
	 */
	uint32_t *clock, *next;
};

/*
 * A table that grows, and is used again. Elements have numbers from 1 on. @free: the first free one; the
 * first 32 bits of a free one are the number of the next.
 */
struct swc_verify_pool {
	char *at;
	size_t bytes; /* of an element */
	uint32_t used, room, free;
};

struct swc_verify_machine {
	uint32_t nranks, nblocks, shard_blocks, words;
	uint8_t coll;
	const bool *in_place;
	const struct swc_topo *nodes;
	struct swc_plan_view *view;	    /* by rank */
	struct swc_verify_link **link;	    /* by rank, then transfer */
	struct swc_verify_cell *cell;	    /* SEND of all ranks, then RECV, then SCRATCH */
	uint64_t *first_cell[SWC_BUF_NR];   /* by rank: cell of block 0, had the window one */
	struct swc_verify_touches *touches; /* by cell, if any channel needs them */
	struct swc_verify_pool values, readers;

	uint32_t chan; /* running */
	bool clocks;   /* the channel needs clocks */
	struct swc_verify_thread *thread;
	uint32_t *clock; /* the threads' */
	uint32_t *queue; /* ranks that may go on */
	uint32_t queued;
	uint32_t *in_sync; /* by node: ranks that wait in a barrier */
	uint64_t
		*met; /* BARRIER: bits by rank, then rank: the one knows that the other has begun */
	struct swc_verdict *verdict;
	int error;
};

/* Report a fault; the first one counts. */
void __attribute__((format(printf, 3, 4)))
swc_verify_fault(struct swc_verify_machine *m, uint32_t rank, const char *fmt, ...);

/* A fault of the thread's open step. */
#define STEP_FAULT(m, t, fmt, ...)                                                                 \
	swc_verify_fault(m, (t)->rank, "channel %u step %u: " fmt, (m)->chan, (t)->at,             \
			 ##__VA_ARGS__)

/* Allocate zeroed memory. NULL and m->error after a failure, or if there was an error before. */
void *swc_verify_alloc(struct swc_verify_machine *m, uint64_t n, size_t size);
/* Make room for element @used of a table. false and m->error as above. */
bool swc_verify_grow(struct swc_verify_machine *m, void *table, uint64_t used, uint32_t *room,
		     size_t size);

/* The steps of a rank on a channel. */
static inline const struct swc_plan_step *
swc_verify_steps(const struct swc_verify_machine *m, uint32_t rank, uint32_t chan, uint32_t *nsteps)
{
	const struct swc_plan_view *v = &m->view[rank];

	*nsteps = v->channels[chan].nsteps;
	return v->steps + v->channels[chan].first_step;
}

/* The open step of a thread. */
static inline const struct swc_plan_step *swc_verify_step_of(const struct swc_verify_machine *m,
							     const struct swc_verify_thread *t)
{
	const struct swc_plan_view *v = &m->view[t->rank];

	return &v->steps[v->channels[m->chan].first_step + t->at];
}

static inline bool swc_verify_in_window(const struct swc_plan_view *v, uint8_t buf, uint32_t block)
{
	const struct swc_plan_window *w = &v->hdr->window[buf];

	return block >= w->first_block && block - w->first_block < w->nblocks;
}

static inline struct swc_verify_value *swc_verify_value(const struct swc_verify_machine *m,
							uint32_t v)
{
	return (struct swc_verify_value *)(m->values.at + v * m->values.bytes);
}

static inline bool swc_verify_has_rank(const struct swc_verify_value *x, uint32_t rank)
{
	return x->ncontrib == 1 ? x->one == rank : x->contrib[rank / 64] >> rank % 64 & 1;
}

/*
 * Values, by number; 0 is none. Take a reference, drop one; make a rank's own contribution, with a
 * reference for the caller.
 */
uint32_t swc_verify_hold(struct swc_verify_machine *m, uint32_t v);
void swc_verify_drop(struct swc_verify_machine *m, uint32_t v);
uint32_t swc_verify_contribution(struct swc_verify_machine *m, uint32_t rank, uint32_t block);
/* a op b. Consumes the caller's reference to a, not that to b. */
uint32_t swc_verify_reduce(struct swc_verify_machine *m, const struct swc_verify_thread *t,
			   uint32_t va, uint32_t vb);
/*
 * The value after it has passed the transfer's FINAL mark, if it has one. Consumes the caller's
 * reference.
 */
uint32_t swc_verify_mark_final(struct swc_verify_machine *m, const struct swc_plan_xfer *x,
			       uint32_t v);

/* The cell of a block in a rank's buffer. */
uint64_t swc_verify_cell_at(const struct swc_verify_machine *m, uint32_t rank, uint8_t buf,
			    uint32_t block);
/* Does a rank's buffer have all blocks of the transfer? Reports a fault if not. */
bool swc_verify_check_range(struct swc_verify_machine *m, const struct swc_verify_thread *t,
			    const struct swc_plan_xfer *x, uint8_t buf, uint32_t rank);
/* Note that the thread's step writes the cell; reports a fault if another step may access it. */
void swc_verify_touch_write(struct swc_verify_machine *m, const struct swc_verify_thread *t,
			    uint64_t at);
/*
 * Read a cell in the thread's step: its value, with a reference for the caller; 0 and a fault if it
 * has none.
 */
uint32_t swc_verify_load(struct swc_verify_machine *m, const struct swc_verify_thread *t,
			 uint32_t rank, uint8_t buf, uint32_t block);
/* Put a value into a cell, which gets the caller's reference. */
void swc_verify_store(struct swc_verify_machine *m, uint64_t at, uint32_t v);

void swc_verify_setup_cells(struct swc_verify_machine *m);

/* pairs.c: find the transfers of a channel that meet, and set their links. */
void swc_verify_pair(struct swc_verify_machine *m, uint32_t chan);

#endif /* SWC_PLAN_VERIFY_CELLS_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The machine that plans are run on: what verify.c, which runs them, and verify_cells.c, which keeps what is in
 * their buffers, share. The idea is explained in verify.c.
 */
#ifndef SWC_PLAN_VERIFY_CELLS_H
#define SWC_PLAN_VERIFY_CELLS_H

#include "plan.h"
#include "plan_check.h"

#define SWC_VERIFY_NONE UINT32_MAX
#define SWC_VERIFY_MANY UINT8_MAX

/* What a cell holds: a sum of contributions to one block. */
struct swc_verify_value {
	uint32_t refs;	   /* cells and messages that hold it; the next free one while it is free */
	uint32_t block;	   /* block of the vector this is part of */
	uint32_t ncontrib; /* ranks that contributed */
	uint32_t one;	   /* the rank, if it is one */
	uint32_t finals;   /* FINAL marks passed */
	uint64_t order;	   /* hash of the tree of operations */
	uint64_t contrib[]; /* the ranks, as bits, if they are several */
};

struct swc_verify_cell {
	uint32_t value;	 /* number of the value; 0: SEND's own contribution, or never stored */
	uint8_t written; /* 1 + the channel that wrote it */
	uint8_t read;	 /* 1 + the channel that reads it, SWC_VERIFY_MANY if there are several */
};

/* Which steps of the running channel touched a cell; kept beside channels that need clocks. */
struct swc_verify_touches {
	uint32_t writer, write_step;
	uint32_t readers; /* since the last write */
};

/* What is known of a transfer beside the plan. */
struct swc_verify_link {
	uint32_t other; /* transfer in the peer's plan that it meets, or SWC_VERIFY_NONE */
	uint32_t at;	/* of an open send: where its values begin in the thread's messages */
	bool done;
};

/* One rank on the running channel. */
struct swc_verify_thread {
	uint32_t rank;
	uint32_t at, nsteps;  /* steps done, and in all */
	uint32_t left;	      /* transfers of the open step that are not done */
	uint32_t next_reduce; /* of it, the first transfer that may still be a reducing receive */
	bool posted;	      /* the step at `at` has begun */
	uint32_t *message;    /* values that the open step sends */
	uint32_t room, used;
	/*
	 * By rank: 1 for having begun, and 1 for each step that is over, as far as this one can know;
	 * and the same at the end of the open step.
	 */
	uint32_t *clock, *next;
};

/* A table that grows. */
struct swc_verify_pool {
	char *at;
	uint32_t used, room, free;
};

struct swc_verify_machine {
	uint32_t nranks, nblocks, part_blocks, words;
	uint8_t coll;
	const bool *in_place;
	const struct swc_topo *nodes;
	struct swc_plan_view *view;	    /* by rank */
	struct swc_verify_link **link;	    /* by rank, then transfer */
	struct swc_verify_cell *cell;	    /* SEND of all ranks, then RECV, then SCRATCH */
	uint64_t *first_cell[SWC_BUF_NR];   /* by rank: cell of block 0, had the window one */
	struct swc_verify_touches *touches; /* by cell, if any channel needs them */
	struct swc_verify_pool values, readers;
	size_t value_bytes;

	uint32_t chan; /* running */
	bool clocks;   /* it needs */
	struct swc_verify_thread *thread;
	uint32_t *clock; /* the threads' */
	uint32_t *queue; /* ranks that may go on */
	uint32_t queued;
	uint32_t *in_sync; /* by node: ranks that wait in a barrier */
	uint64_t *met;	   /* BARRIER: bits by rank, then rank: knows that the other has begun */
	struct swc_verdict *verdict;
	int error;
};

/* The first fault counts. */
void __attribute__((format(printf, 3, 4)))
swc_verify_fault(struct swc_verify_machine *m, uint32_t rank, const char *fmt, ...);

/* A fault of the thread's open step. */
#define STEP_FAULT(m, t, fmt, ...)                                                                 \
	swc_verify_fault(m, (t)->rank, "channel %u step %u: " fmt, (m)->chan, (t)->at,             \
			 ##__VA_ARGS__)

/* Zeroed memory. An error sticks. */
void *swc_verify_alloc(struct swc_verify_machine *m, uint64_t n, size_t size);
/* Make room for element `used` of a table. */
bool swc_verify_grow(struct swc_verify_machine *m, void *table, uint64_t used, uint32_t *room,
		     size_t size);

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
	return (struct swc_verify_value *)(m->values.at + v * m->value_bytes);
}

static inline bool swc_verify_has_rank(const struct swc_verify_value *x, uint32_t rank)
{
	return x->ncontrib == 1 ? x->one == rank : x->contrib[rank / 64] >> rank % 64 & 1;
}

/*
 * Values, by number; 0 is none. One more holder, one less; a rank's own contribution, held for the caller.
 */
uint32_t swc_verify_hold(struct swc_verify_machine *m, uint32_t v);
void swc_verify_drop(struct swc_verify_machine *m, uint32_t v);
uint32_t swc_verify_contribution(struct swc_verify_machine *m, uint32_t rank, uint32_t block);
/* a op b; takes over the caller's hold on a, but not that on b. */
uint32_t swc_verify_reduce(struct swc_verify_machine *m, const struct swc_verify_thread *t,
			   uint32_t va, uint32_t vb);
/* The value once it has passed the transfer's FINAL mark, if there is one. Takes over the hold. */
uint32_t swc_verify_mark_final(struct swc_verify_machine *m, const struct swc_plan_xfer *x,
			       uint32_t v);

/* The cell of a block that the rank's buffer holds. */
uint64_t swc_verify_cell_at(const struct swc_verify_machine *m, uint32_t rank, uint8_t buf,
			    uint32_t block);
/* Does the rank's buffer hold all blocks of the transfer? */
bool swc_verify_check_range(struct swc_verify_machine *m, const struct swc_verify_thread *t,
			    const struct swc_plan_xfer *x, uint8_t buf, uint32_t rank);
/* The thread's step writes the cell. */
void swc_verify_touch_write(struct swc_verify_machine *m, const struct swc_verify_thread *t,
			    uint64_t at);
/* The thread's step reads the cell: its value, held for the caller; 0 and a fault if there is none. */
uint32_t swc_verify_load(struct swc_verify_machine *m, const struct swc_verify_thread *t,
			 uint32_t rank, uint8_t buf, uint32_t block);
/* Put a value into a cell, which takes over the caller's hold. */
void swc_verify_store(struct swc_verify_machine *m, uint64_t at, uint32_t v);

void swc_verify_setup_cells(struct swc_verify_machine *m);

#endif /* SWC_PLAN_VERIFY_CELLS_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A walk through the plans of all ranks in which sends meet receives, for the models of model.h.
 */
#ifndef SWC_PLAN_MODEL_WALK_H
#define SWC_PLAN_MODEL_WALK_H

#include "kmod/core/plan_check.h"
#include "plan/plan.h"

/*
 * The tables of a plan that swc_plan_build() has made; it is not checked. The view has no maxima.
 */
struct swc_plan_view swc_walk_view(const void *plan);

/* The transfers of an open step with one peer in one direction. */
struct swc_half {
	uint32_t peer;
	bool recv;
	uint32_t left;	  /* that have not met their counterparts */
	uint32_t next;	  /* in the plan, the first transfer that may be one of them */
	uint32_t claimed; /* that have been offered; the rest of left has not */
	uint32_t path;	  /* of all of them */
	uint64_t blocks;
};

/**
 * struct swc_message - what a thread sends to another in a step, if messages are posted
 * @nxfers: transfers
 * @claimed: of which the receiver has opened the step
 * @arrived: all of it is there
 * @next: offered to the same receiver
 */
struct swc_message {
	struct swc_thread *from, *to;
	uint32_t nxfers, claimed;
	bool arrived;
	struct swc_message *next;
};

/**
 * struct swc_thread - one rank on one channel
 * @at: number of steps opened
 * @left: transfers of the open network step that are not done
 * @half: those transfers, by peer and direction
 * @offered: messages for later steps, in the order in which they were posted
 * @begin: logical time of the open network step
 * @ready: logical time of the next one, as far as is known
 * @opened: @now of the walk when that step was opened
 */
struct swc_thread {
	uint32_t rank, chan;
	uint32_t at, left;
	uint32_t nhalves, room;
	struct swc_half *half;
	struct swc_message *offered;
	uint32_t begin, ready;
	double opened;
};

/**
 * struct swc_walk - a walk through the plans of all ranks
 * @met: called when the next @nxfers transfers between two threads have met, @blocks in all, which
 *	take the same path; it calls swc_walk_done() for both, at once or later
 * @posted: if set, called instead when a thread opens a step, once for each peer that it sends to;
 *	it calls swc_walk_offer(), and swc_walk_done() for the sender and swc_walk_arrived(), at
 *	once or later
 * @wanted: the receiver of a posted message has opened its step, later than it was offered
 * @over: a posted message has arrived, and the steps that it is for have been opened
 * @now: time, for callers that keep one
 * @nodes: which ranks wait for one another in SYNC steps
 * @opened: steps opened, of @nsteps in all
 * @ended: threads that have ended, of @nthreads
 */
struct swc_walk {
	void (*met)(struct swc_walk *w, struct swc_thread *from, struct swc_thread *to,
		    uint32_t path, uint32_t nxfers, uint64_t blocks);
	void (*posted)(struct swc_walk *w, struct swc_thread *from, struct swc_thread *to,
		       uint32_t path, uint32_t nxfers, uint64_t blocks);
	void (*wanted)(struct swc_walk *w, struct swc_message *m);
	void (*over)(struct swc_walk *w, struct swc_message *m);
	double now;
	const struct swc_topo *nodes;
	uint32_t nranks, nchannels, nthreads;
	struct swc_plan_view *view;
	struct swc_thread *thread;
	uint32_t *queue, head, queued;
	uint32_t *in_sync;
	uint32_t ended;
	uint64_t opened, nsteps;
	int error;
};

/* Build all plans. 0, or what swc_plan_build() returns; swc_walk_free() in either case. */
int swc_walk_init(struct swc_walk *w, const struct swc_plan_args *args,
		  const struct swc_topo *nodes, char *why, size_t why_bytes);
void swc_walk_free(struct swc_walk *w);
/* Set all threads to their first step. */
void swc_walk_rewind(struct swc_walk *w);
/* Continue as far as possible. */
void swc_walk_go(struct swc_walk *w);
/* Transfers of a thread's open step are done. */
void swc_walk_done(struct swc_walk *w, struct swc_thread *t, uint32_t nxfers);
/* Tell the receiver of a message. @m is the caller's; it must remain until it is over. */
void swc_walk_offer(struct swc_walk *w, struct swc_message *m);
/* A message has arrived. Those between two threads must arrive in order. */
void swc_walk_arrived(struct swc_walk *w, struct swc_message *m);
/*
 * After the last swc_walk_go(): 0, -ENOMEM, or -EINVAL if a thread waits for ever, or if something
 * was posted that nobody receives.
 */
int swc_walk_result(const struct swc_walk *w, char *why, size_t why_bytes);

#endif /* SWC_PLAN_MODEL_WALK_H */

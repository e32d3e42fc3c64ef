/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the models of model.h share: the ways of messages through a network, and a walk through the plans of
 * all ranks in which sends meet receives.
 */
#ifndef SWC_PLAN_NETWORK_H
#define SWC_PLAN_NETWORK_H

#include "plan.h"
#include "plan_check.h"

/**
 * struct swc_links - the links of a network
 * @topo: the network
 * @n: links. On a torus or mesh, link (node * ndims + dimension) * 2 + way leads up (way 0) or down; on a
 *	switch, node * 2 into it and node * 2 + 1 out of it
 * @stride: between the numbers of neighbours along a dimension
 */
struct swc_links {
	const struct swc_topo *topo;
	uint32_t n;
	uint32_t stride[SWC_TOPO_DIMS];
};

/**
 * struct swc_route - how a message goes; begin with zeros
 * @from, @to: nodes
 * @mirrored: the channel takes the other way where both are equally long
 * @hops: of its delay: one on a switch, else @n; 0 within a node
 * @n: links that it crosses
 * @link: them. Owned
 */
struct swc_route {
	uint32_t from, to;
	bool mirrored;
	uint32_t hops;
	uint32_t n, room;
	uint32_t *link;
};

struct swc_links swc_links_of(const struct swc_topo *topo);

/*
 * Set the route of a message on a channel; quick if it is the same as before. It is the one that the path of
 * swc_topo_path() stands for: at half the way round, the first half of the channels go up, the others, which
 * mirror them, down; where that is so in several dimensions, up from the node with the lower number. 0 or -ENOMEM.
 */
int swc_route_set(struct swc_route *r, const struct swc_links *l, uint32_t chan, uint32_t from,
		  uint32_t to);

/* The parts of a plan that swc_plan_build() has made. */
struct swc_plan_view swc_plan_parts(const void *plan);

/* All that an open step exchanges with one peer in one direction. */
struct swc_half {
	uint32_t peer;
	bool recv;
	uint32_t left; /* transfers that have not met their counterparts */
	uint32_t next; /* in the plan, the first that may be one of them */
};

/**
 * struct swc_thread - one rank on one channel
 * @at: steps opened
 * @left: transfers of the open network step that are not done
 * @half: what is in them
 * @begin: logical time of the open network step
 * @ready: logical time of the next one, as far as is known
 * @opened: @now of the walk when that step was opened
 */
struct swc_thread {
	uint32_t rank, chan;
	uint32_t at, left;
	uint32_t nhalves, room;
	struct swc_half *half;
	uint32_t begin, ready;
	double opened;
};

/**
 * struct swc_walk - a walk through the plans of all ranks
 * @met: told when the next @nxfers transfers between two threads have met, @blocks in all; calls
 *	swc_walk_done(), now or later
 * @now: for who keeps time
 * @nodes: which ranks wait for one another in SYNC steps
 * @opened: steps opened, of @nsteps in all
 * @ended: threads at their end, of @nthreads
 */
struct swc_walk {
	void (*met)(struct swc_walk *w, struct swc_thread *from, struct swc_thread *to,
		    uint32_t nxfers, uint64_t blocks);
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

/* Build all plans. 0 or what swc_plan_build() returns; swc_walk_free() in any case. */
int swc_walk_init(struct swc_walk *w, const struct swc_plan_args *args,
		  const struct swc_topo *nodes, char *why, size_t why_bytes);
void swc_walk_free(struct swc_walk *w);
/* Put all threads at their beginning. */
void swc_walk_rewind(struct swc_walk *w);
/* Go on as far as possible. */
void swc_walk_go(struct swc_walk *w);
/* Transfers of a thread's open step are done. */
void swc_walk_done(struct swc_walk *w, struct swc_thread *t, uint32_t nxfers);
/* After the last swc_walk_go(): 0, -ENOMEM, or -EINVAL if a thread waits for ever. */
int swc_walk_result(const struct swc_walk *w, char *why, size_t why_bytes);

#endif /* SWC_PLAN_NETWORK_H */

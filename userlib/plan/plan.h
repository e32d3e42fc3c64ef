/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Plans: which rank moves which blocks, when and to whom, as data for the kernel.
 *
 * Everything in this folder is a pure function of its arguments: no I/O, no globals. The same
 * objects serve the library, the planning tool and the tests. The format is that of
 * uapi/linux/swingcoll.h.
 */
#ifndef SWC_PLAN_PLAN_H
#define SWC_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/swingcoll.h>

enum swc_algo {
	SWC_ALGO_DIRECT1, /* one shot: every rank reads all and computes its own result */
	SWC_ALGO_DIRECT2, /* two shots in one pass: every block has an owner who serves all */
	SWC_ALGO_RING,	  /* reduce-scatter and allgather round a ring */
	SWC_ALGO_RECDOUB, /* recursive doubling with the whole vector */
	SWC_ALGO_NR
};

/**
 * struct swc_plan_args - what a plan is made from
 * @coll: collective
 * @algo: algorithm
 * @nranks: of the communicator
 * @rank: whose part
 * @root: of SWC_BROADCAST and SWC_REDUCE, else 0
 * @nlocal: ranks on this node; LOCAL steps need all of them here
 * @in_place: the plan must be right for send == recv. It then is for disjoint buffers too;
 *	the reverse does not hold when the plan says SWC_PLAN_NOT_IN_PLACE. Ranks may differ in
 *	this.
 * @channels: channels to spread over, 0 for the algorithm's own choice
 */
struct swc_plan_args {
	enum swc_coll coll;
	enum swc_algo algo;
	uint32_t nranks;
	uint32_t rank;
	uint32_t root;
	uint32_t nlocal;
	bool in_place;
	uint32_t channels;
};

/**
 * swc_plan_build() - make one rank's plan
 *
 * *plan is the caller's, to be freed with free().
 *
 * Return: 0, -EINVAL, -ENOMEM, or -EOPNOTSUPP if the algorithm does not offer the collective (or
 * not for so many ranks, or not across nodes).
 */
int swc_plan_build(const struct swc_plan_args *args, void **plan, size_t *bytes);

/* "direct2"; NULL past the end. */
const char *swc_algo_name(unsigned int algo);
/* -EINVAL for an unknown name. */
int swc_algo_parse(const char *name);

struct swc_verdict {
	uint32_t rank;	/* where the first fault was found */
	char text[200]; /* what it is */
};

/**
 * swc_plan_verify() - run all ranks' plans on symbols and judge the outcome
 * @plans: by rank, as from swc_plan_build()
 * @bytes: their sizes
 * @in_place: by rank, whether send and receive buffer are the same memory; NULL: nowhere
 * @nranks: number of plans
 * @verdict: filled on failure
 *
 * Shows that every block of every result holds each contribution exactly once, passed one FINAL
 * mark, and is reduced in the same order on all ranks unless the plans say that this varies; that
 * nothing is left waiting; and that no step reads or writes what another may be writing at the same
 * time.
 *
 * Return: 0, -EINVAL with a verdict, or -ENOMEM.
 */
int swc_plan_verify(const void *const *plans, const size_t *bytes, const bool *in_place,
		    uint32_t nranks, struct swc_verdict *verdict);

#endif /* SWC_PLAN_PLAN_H */

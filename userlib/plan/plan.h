/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Plans: which rank moves which blocks, when and to which rank, as data for the kernel. The format
 * is that of uapi/linux/swingcoll_plan.h.
 *
 * Everything in this folder is a pure function of its arguments: no I/O, no globals. The same
 * objects serve the library, swingplan and the tests.
 */
#ifndef SWC_PLAN_PLAN_H
#define SWC_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/swingcoll.h>

#include "plan/topo.h"

/* Algorithms; swc_algo_info() describes them. */
enum swc_algo {
	SWC_ALGO_DIRECT1,
	SWC_ALGO_DIRECT2,
	SWC_ALGO_RING,
	SWC_ALGO_RING2,
	SWC_ALGO_HAMILTONIAN,
	SWC_ALGO_BUCKET,
	SWC_ALGO_BUCKET2,
	SWC_ALGO_SPLIT,
	SWC_ALGO_RECDOUB,
	SWC_ALGO_RABENSEIFNER,
	SWC_ALGO_MIRRORED,
	SWC_ALGO_SWING_L,
	SWC_ALGO_SWING_B,
	SWC_ALGO_SWING_H,
	SWC_ALGO_TWOSIDED,
	SWC_ALGO_RADIX,
	SWC_ALGO_ORDERED,
	SWC_ALGO_CIRCULANT,
	SWC_ALGO_TREE,
	SWC_ALGO_DTREE,
	SWC_ALGO_ROTATE,
	SWC_ALGO_BINE,
	SWC_ALGO_BINE_SAG,
	SWC_ALGO_LINEAR,
	SWC_ALGO_GROUPED,
	SWC_ALGO_BRUCK,
	SWC_ALGO_BY_NODES,
	SWC_ALGO_NR,
	/* Not of the table: plan/forest/algorithm.h makes its plans. The parameter is the segments. */
	SWC_ALGO_FOREST = SWC_ALGO_NR,
};

/**
 * struct swc_algo_info - description of an algorithm
 * @name: "swing-b"
 * @text: one line on what it does
 * @param: meaning of the number behind a colon ("swing-h:2"), NULL if it takes none
 * @colls: collectives it offers, as bits 1 << enum swc_coll
 * @one_node: consists of LOCAL and SYNC steps: all ranks must be on one node
 * @multiport: uses all links of a node of a torus unless told otherwise
 * @serial: visits every member one after the other: as many steps as members less one, twice for
 *	ALLREDUCE
 * @hybrid: for ALLREDUCE the number is how many reduce-scatter steps or stages there are, from 0 on
 * @pieces: the number is how many pieces a channel takes its share in
 * @radix: the number is a radix, from 2 on
 * @messages: the number is how many messages a member receives in a step, at most: 4
 * @segments: the number is how many segments there are, one after the other, to save memory
 */
struct swc_algo_info {
	const char *name;
	const char *text;
	const char *param;
	uint32_t colls;
	bool one_node;
	bool multiport;
	bool hybrid;
	bool serial;
	bool pieces;
	bool radix;
	bool messages;
	bool segments;
};

/* The most numbers that swc_algo_param() gives. */
#define SWC_ALGO_PARAMS 21

/*
 * The numbers that should be tried for a collective, until one has no plan: *param becomes the i-th
 * of them, SWC_PARAM_DEFAULT if the algorithm takes none there. False past the last.
 */
bool swc_algo_param(enum swc_algo algo, enum swc_coll coll, uint32_t i, int32_t *param);

/* NULL past the end. */
const struct swc_algo_info *swc_algo_info(unsigned int algo);

/* What the plans of different ranks have in common; see model/symmetry.c. */
enum swc_symmetry {
	SWC_SYMMETRY_NONE,
	SWC_SYMMETRY_SHIFT, /* each rank does as rank 0, further along each dimension */
	SWC_SYMMETRY_SWING, /* ranks with an odd coordinate send the other way */
	SWC_SYMMETRY_XOR,   /* ranks exchange with the one whose coordinate has one other bit */
	SWC_SYMMETRY_RING,  /* ranks send one block to the same peer in all steps of a channel */
	SWC_SYMMETRY_LINES, /* messages along a dimension depend on the coordinate in it */
	SWC_SYMMETRY_ODD,   /* for estimates: nearly as SWING, but where a side is odd */
	SWC_SYMMETRY_SAMPLE /* nothing; for models that look at some ranks only */
};

struct swc_plan_args;

/* @topo: that of @args, or the flat one if it has none. */
enum swc_symmetry swc_algo_symmetry(const struct swc_plan_args *args, const struct swc_topo *topo);

/* The same on a torus whose sides suit the algorithm. On others, most ranks do as there. */
enum swc_symmetry swc_algo_pattern(const struct swc_plan_args *args);

/**
 * struct swc_plan_args - what a plan is made from
 * @coll: collective
 * @algo: algorithm
 * @param: its parameter, SWC_PARAM_DEFAULT for its own choice
 * @topo: the network; NULL for a switch with a link to each rank. Where nodes have several ranks,
 *	ALLREDUCE goes through the node's memory first and last, and @algo runs on the network
 *	between; other collectives treat every rank as a node of its own on a switch
 * @nranks: of the communicator
 * @rank: that the plan is for
 * @root: of SWC_BROADCAST, SWC_REDUCE, SWC_GATHER and SWC_SCATTER, else 0
 * @nlocal: ranks that share this node's memory; 0: as @topo says
 * @in_place: the plan must be right for send == recv. It is right for disjoint buffers then, too; a
 *	plan for disjoint buffers is right in place unless it says SWC_PLAN_NOT_IN_PLACE. Ranks may
 *	differ in this
 * @others_only: the copy of the rank's own shard (ALLGATHER) or of root's vector (BROADCAST) to
 *	RECV may be left out; algorithms need not leave it out. Ranks may differ in this
 * @uneven: GATHER and SCATTER: the plan must be right for shards of different sizes, too. Alike on
 *	all ranks, though plans for shards of equal size exchange the same messages
 * @channels: channels to spread over, 0 for the algorithm's own choice
 * @ports: links of a node to use at once, 0 for all that the topology has and the algorithm can use
 * @given, @given_bytes: by rank: plans that there are, such as from a file, or NULL. They are taken as
 *	they are, whatever @algo, @param, @channels and @ports say
 */
struct swc_plan_args {
	enum swc_coll coll;
	enum swc_algo algo;
	int32_t param;
	const struct swc_topo *topo;
	uint32_t nranks;
	uint32_t rank;
	uint32_t root;
	uint32_t nlocal;
	bool in_place;
	bool others_only;
	bool uneven;
	uint32_t channels;
	uint32_t ports;
	const void *const *given;
	const size_t *given_bytes;
};

#define SWC_PARAM_DEFAULT (-1)

/**
 * swc_plan_build() - make one rank's plan
 *
 * *plan is the caller's, to be freed with free(). @why may be NULL; otherwise it gets, on -EINVAL
 * and -EOPNOTSUPP, one line that names the fault and what would be accepted.
 *
 * Return: 0, -EINVAL, -ENOMEM, or -EOPNOTSUPP if the algorithm does not offer the collective (or
 * not for so many ranks, on this topology, or across nodes).
 */
int swc_plan_build(const struct swc_plan_args *args, void **plan, size_t *bytes, char *why,
		   size_t why_bytes);

/* "direct2"; NULL past the end. */
const char *swc_algo_name(unsigned int algo);
/*
 * Read "swing-h:3", or "swing-h" with *param SWC_PARAM_DEFAULT; @param may be NULL. Returns the
 * enum swc_algo, or -EINVAL for an unknown name, or for a number that the algorithm does not take.
 */
int swc_algo_parse(const char *name, int32_t *param);

/* What is wrong with a set of plans. */
struct swc_verdict {
	uint32_t rank;	/* where the first fault was found */
	char text[200]; /* what it is */
};

/**
 * swc_plan_verify() - run all ranks' plans on symbols and check the result
 * @plans: by rank, as from swc_plan_build()
 * @bytes: their sizes
 * @in_place: by rank, whether send and receive buffer are the same memory; NULL: on no rank
 * @nranks: number of plans
 * @nodes: which ranks share memory: LOCAL and SYNC steps concern the ranks of one node. NULL: all
 *	ranks are on one node
 * @verdict: filled on -EINVAL
 *
 * Proves that every block of every result has each contribution exactly once, has passed one FINAL
 * mark, and is reduced in the same order on all ranks unless the plans say that the order varies;
 * that no step waits for ever; and that no step reads or writes what another may be writing at the
 * same time.
 *
 * Return: 0, -EINVAL with a verdict, or -ENOMEM.
 */
int swc_plan_verify(const void *const *plans, const size_t *bytes, const bool *in_place,
		    uint32_t nranks, const struct swc_topo *nodes, struct swc_verdict *verdict);

/*
 * Does each block stay at its own place in all buffers? Then plans that are right for shards of one size are
 * right for others, too. 0, -ENOMEM, or -EINVAL and a line about a block that does not.
 */
int swc_plan_keeps_places(const void *const *plans, const size_t *bytes, uint32_t nranks, char *why,
			  size_t why_bytes);

#endif /* SWC_PLAN_PLAN_H */

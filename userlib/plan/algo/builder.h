/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The builder that algorithms use: append channels, steps and transfers in the order of the format.
 */
#ifndef SWC_PLAN_BUILD_H
#define SWC_PLAN_BUILD_H

#include "plan.h"

/**
 * struct swc_hierarchy - what stands between the algorithm of the network and the plan, see hierarchy.c
 * @topo: topology with all ranks
 * @node: of the rank that the plan is for
 * @shards: of the vector
 * @shard: that the algorithm is running for; members are its owners
 * @shard_blocks: blocks per shard
 * @muted: this rank has no shard in the group: only channels and barriers count
 * @open: a channel is open
 * @first, @nblocks: blocks of the open channel, as the algorithm counts them
 * @open_channel: called when a channel has been opened
 * @close_channel: called before the next one is
 */
struct swc_builder;

struct swc_hierarchy {
	const struct swc_topo *topo;
	uint32_t node;
	uint32_t shards;
	uint32_t shard;
	uint32_t shard_blocks;
	bool muted;
	bool open;
	uint32_t first, nblocks;
	void (*open_channel)(struct swc_builder *b, uint32_t first, uint32_t nblocks);
	void (*close_channel)(struct swc_builder *b);
};

/**
 * struct swc_builder - a plan in the making
 * @args: what is being built; algorithms use the fields below where they say the same
 * @topo: shape of the network among the members; topo->nnodes == n
 * @places: where the ranks are, which gives messages their paths; NULL: all on one node
 * @n: members of the algorithm, at least 2. They are the nodes of the topology: all ranks, or one of each
 *	node where the ranks of a node work together (see hierarchy.c). Algorithms know members only
 * @me: the member this plan is for
 * @root: member, of SWC_BROADCAST and SWC_REDUCE, else 0
 * @in_place: the plan must be right if SEND and RECV are the same memory
 * @hdr: header so far; algorithms may set flags
 * @error: first failure; sticky, so that algorithms need not look after each call
 *
 * The rest belongs to build.c, hierarchy.c and algos.c.
 */
struct swc_builder {
	const struct swc_plan_args *args;
	const struct swc_topo *topo, *places;
	uint32_t n, me, root;
	bool in_place;
	struct swc_plan_header hdr;
	int error;

	char *why;
	size_t why_bytes;
	struct swc_plan_channel *chan;
	struct swc_plan_step *step;
	struct swc_plan_xfer *xfer;
	uint32_t chan_room, step_room, xfer_room;
	struct swc_hierarchy *hier;
};

/*
 * Cut each part into @part_blocks blocks; sets the SEND and RECV windows. Before any transfer.
 * ALLREDUCE, BROADCAST and REDUCE have one part; in REDUCE_SCATTER and ALLGATHER, part r (blocks
 * r * part_blocks and on) is that of member r; in ALLTOALL, part r of SEND goes to member r and part r of
 * RECV came from it.
 */
void swc_build_blocks(struct swc_builder *b, uint32_t part_blocks);

/* Give the plan scratch for these blocks (kernel memory as large as they are). */
void swc_build_scratch(struct swc_builder *b, uint32_t first, uint32_t nblocks);

/*
 * Open the next channel. Its transfers touch no blocks but [first, first + nblocks); in ALLREDUCE those of
 * all channels together are the vector, each once.
 */
void swc_build_channel(struct swc_builder *b, uint32_t first, uint32_t nblocks);
/* Open the next step of the channel. A network step without a transfer is taken back. */
void swc_build_step(struct swc_builder *b, enum swc_step_kind kind);

/* Add to the open step; all sends (sources) come before all receives (destinations). */
void swc_build_send(struct swc_builder *b, uint32_t member, enum swc_buf buf, uint32_t first,
		    uint32_t nblocks);
/* A message that meets swc_build_recv(), not swc_build_recv_reduce(). */
void swc_build_send_stored(struct swc_builder *b, uint32_t member, enum swc_buf buf, uint32_t first,
			   uint32_t nblocks);
void swc_build_recv(struct swc_builder *b, uint32_t member, enum swc_buf buf, uint32_t first,
		    uint32_t nblocks, uint32_t flags);
/* A receive that stores operand redop arrived. */
void swc_build_recv_reduce(struct swc_builder *b, uint32_t member, enum swc_buf buf,
			   enum swc_buf operand, uint32_t first, uint32_t nblocks, uint32_t flags);

/* The algorithm cannot do this: one line that says what it can do. For `return`: -EOPNOTSUPP. */
int __attribute__((format(printf, 2, 3)))
swc_build_refuse(struct swc_builder *b, const char *fmt, ...);

/* No more is to come: tidy up. */
void swc_build_end(struct swc_builder *b);

/* Ports to use: those of the topology (2 per dimension of a torus or mesh, else 1), or args->ports if fewer. */
uint32_t swc_build_ports(const struct swc_builder *b);

/*
 * Algorithms: append to an empty builder. Return 0 or -EOPNOTSUPP; other errors stick in the
 * builder. They are called only for collectives that their swc_algo_info() names.
 */
typedef int swc_build_fn(struct swc_builder *b);

swc_build_fn swc_direct1_build, swc_direct2_build;		     /* direct.c */
swc_build_fn swc_ring_build, swc_ring2_build, swc_hamiltonian_build; /* ring.c */
swc_build_fn swc_bucket_build, swc_bucket2_build;		     /* bucket.c */
swc_build_fn swc_recdoub_build, swc_rabenseifner_build;		     /* butterfly.c */
swc_build_fn swc_mirrored_build;
swc_build_fn swc_swing_l_build, swc_swing_b_build, swc_swing_h_build;
swc_build_fn swc_twosided_build;	      /* twosided.c */
swc_build_fn swc_circulant_build;	      /* circulant.c */
swc_build_fn swc_tree_build, swc_dtree_build; /* tree.c */
swc_build_fn swc_rotate_build;		      /* rotate.c */

/* hierarchy.c: run @build among nodes with several ranks each. */
int swc_hierarchy_build(struct swc_builder *b, swc_build_fn *build);

#endif /* SWC_PLAN_BUILD_H */

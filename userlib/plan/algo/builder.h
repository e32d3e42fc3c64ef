/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The builder that algorithms use: they append channels, steps and transfers in the order of the
 * format.
 */
#ifndef SWC_PLAN_ALGO_BUILDER_H
#define SWC_PLAN_ALGO_BUILDER_H

#include "plan/plan.h"
#include "plan/plan_tables.h"

/**
 * struct swc_hierarchy - between the algorithm of the network and the plan, see hierarchy.c
 * @topo: topology with all ranks
 * @node: of the rank that the plan is for
 * @shards: number of shards of the vector
 * @shard: the shard that the algorithm runs for; members are its owners
 * @shard_blocks: blocks per shard
 * @muted: this rank has no shard in the group: only channels and barriers are appended
 * @open: a channel is open
 * @first, @nblocks: blocks of the open channel, as the algorithm counts them
 * @open_channel: called when a channel has been opened
 * @close_channel: called before the next one is opened
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
 * struct swc_rails - on a switch with several rails, the algorithm runs once for each part of all shards
 * @n: parts of a shard; 0: shards are whole
 * @part: the one that the algorithm runs for, or the group of a hierarchy: by that, messages take a
 *	rail, see swc_topo_rail()
 * @shard_blocks: blocks of a part
 */
struct swc_rails {
	uint32_t n;
	uint32_t part;
	uint32_t shard_blocks;
};

/**
 * struct swc_builder - a plan that is being built
 * @args: what is built; algorithms use the fields below instead where there are such
 * @topo: shape of the network among the members; topo->nnodes == n
 * @places: where the ranks are, from which messages get their paths; NULL: all on one node
 * @n: members of the algorithm, at least 2. They are the nodes of @topo: all ranks, or one rank of
 *	each node where the ranks of a node work together (see hierarchy.c). Algorithms know members
 *	only
 * @me: the member this plan is for
 * @root: member, of collectives that have one, else 0
 * @back: messages of the open channel go back the way of those from their receiver, see swc_topo_path_back()
 * @in_place: the plan must be right if SEND and RECV are the same memory
 * @w: the plan so far; algorithms may set flags in its header
 * @error: first failure; it stays, so that algorithms need not check each call
 *
 * The rest belongs to builder.c, hierarchy.c and algos.c.
 */
struct swc_builder {
	const struct swc_plan_args *args;
	const struct swc_topo *topo, *places;
	uint32_t n, me, root;
	bool back, in_place;
	struct swc_plan_writer w;
	int error;

	char *why;
	size_t why_bytes;
	struct swc_hierarchy *hier;
	struct swc_rails rails;
	struct swc_last_path {
		uint32_t channels, from, to;
		bool back;
		uint8_t path;
	} last[SWC_TOPO_PAIRS]; /* path_of() */
};

/*
 * Cut each shard into @shard_blocks blocks, and set the SEND and RECV windows. Called before any
 * transfer. ALLREDUCE, BROADCAST and REDUCE have one shard; in REDUCE_SCATTER and ALLGATHER, shard
 * r (blocks r * shard_blocks and up) belongs to member r, as in GATHER and SCATTER; in ALLTOALL,
 * shard r of SEND goes to member r and shard r of RECV comes from it.
 */
void swc_build_blocks(struct swc_builder *b, uint32_t shard_blocks);

/* Give the plan scratch memory for these blocks: kernel memory of their size. */
void swc_build_scratch(struct swc_builder *b, uint32_t first, uint32_t nblocks);

/*
 * Open the next channel. Its transfers touch no blocks but [first, first + nblocks); in ALLREDUCE
 * those of all channels together are the vector, each once.
 */
void swc_build_channel(struct swc_builder *b, uint32_t first, uint32_t nblocks);
/*
 * Open the next step of the channel. A network or local step that stays without transfers is
 * dropped.
 */
void swc_build_step(struct swc_builder *b, enum swc_step_kind kind);

/* Add to the open step; all sends (sources) come before all receives (destinations). */
void swc_build_send(struct swc_builder *b, uint32_t member, enum swc_buf buf, uint32_t first,
		    uint32_t nblocks);
/* A send whose receive at the other end is swc_build_recv(), not swc_build_recv_reduce(). */
void swc_build_send_stored(struct swc_builder *b, uint32_t member, enum swc_buf buf, uint32_t first,
			   uint32_t nblocks);
void swc_build_recv(struct swc_builder *b, uint32_t member, enum swc_buf buf, uint32_t first,
		    uint32_t nblocks, uint32_t flags);
/* A receive that stores operand redop arrived. */
void swc_build_recv_reduce(struct swc_builder *b, uint32_t member, enum swc_buf buf,
			   enum swc_buf operand, uint32_t first, uint32_t nblocks, uint32_t flags);

/**
 * struct swc_copy - a copy between the member's own buffers
 * @from, @to: blocks
 * @n: how many
 * @from_buf, @to_buf: enum swc_buf
 * @flags: SWC_XFER_FINAL or 0
 */
struct swc_copy {
	uint32_t from, to, n;
	uint8_t from_buf, to_buf, flags;
};

/* Copy steps for all of these, one copy after the other. There is no open step afterwards. */
void swc_build_copies(struct swc_builder *b, const struct swc_copy *copy, uint32_t n);

/*
 * The algorithm cannot do this: write one line that says what it can do. For `return`: -EOPNOTSUPP.
 */
int __attribute__((format(printf, 2, 3)))
swc_build_refuse(struct swc_builder *b, const char *fmt, ...);

/* End the plan: nothing more is appended. */
void swc_build_end(struct swc_builder *b);

/*
 * Number of ports to use: those of the topology (2 per dimension of a torus or mesh, else 1), or
 * args->ports if fewer. The rails of a switch are not the algorithm's concern.
 */
uint32_t swc_build_ports(const struct swc_builder *b);

/*
 * An algorithm appends to an empty builder. Returns 0 or -EOPNOTSUPP; other errors stay in the
 * builder. It is called only for collectives that its swc_algo_info() names.
 */
typedef int swc_build_fn(struct swc_builder *b);

swc_build_fn swc_direct1_build, swc_direct2_build;		     /* direct.c */
swc_build_fn swc_grouped_build;					     /* grouped.c */
swc_build_fn swc_ring_build, swc_ring2_build, swc_hamiltonian_build; /* ring.c */
swc_build_fn swc_bucket_build, swc_bucket2_build;		     /* bucket.c */
swc_build_fn swc_split_build;					     /* split.c */
swc_build_fn swc_butterfly_build;				     /* butterfly.c */
swc_build_fn swc_twosided_build;				     /* twosided.c: radix, too */
swc_build_fn swc_ordered_build;					     /* ordered.c */
swc_build_fn swc_circulant_build;				     /* circulant.c */
swc_build_fn swc_tree_build, swc_dtree_build;			     /* tree.c */
swc_build_fn swc_rotate_build;					     /* rotate.c */
swc_build_fn swc_bruck_build;					     /* bruck.c */
swc_build_fn swc_by_nodes_build;				     /* by_nodes.c */
swc_build_fn swc_linear_build;					     /* gather.c */
swc_build_fn swc_bine_build;					     /* bine.c */

/* hierarchy.c: run an algorithm among nodes with several ranks each, for @rails rails of each rank. */
int swc_hierarchy_build(struct swc_builder *b, swc_build_fn *build, uint32_t rails);

#endif /* SWC_PLAN_ALGO_BUILDER_H */

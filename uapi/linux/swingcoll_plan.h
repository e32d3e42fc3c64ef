/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * swingcoll: the format of plans, which SWC_IOC_PLAN_LOAD takes. Programs include <linux/swingcoll.h>.
 *
 * A plan says what one rank does for one collective (with one root) by one algorithm, for vectors of any
 * size.
 *
 * Blocks. The vector consists of nshards shards of equal element count (nranks for REDUCE_SCATTER, ALLGATHER,
 * ALLTOALL, GATHER and SCATTER, else 1), and each shard of shard_blocks blocks. A shard of E elements of s
 * bytes has U = ceil(E * s / 64) units of 64 bytes. With q = U / shard_blocks and r = U % shard_blocks, block
 * k of the shard begins at unit k * q + min(k, r) and ends where block k + 1 begins, not behind element E.
 * Blocks may be empty. Blocks are numbered through all shards. With swc_desc.counts, shards have different E,
 * and two transfers are of the same size for certain only if they name the same blocks.
 *
 * Buffers. SEND and RECV are the rank's buffers, SCRATCH is kernel memory. Each holds a window of consecutive
 * blocks (first_block, nblocks); the first byte of the buffer is the first byte of first_block.
 *
 * Channels progress independently; the steps of one channel run in order.
 *
 * SWC_STEP_NET: nsend sends, then nrecv receives, all concurrent. The step ends when every send has
 *	been taken and every receive is done. A receive without SWC_XFER_REDUCE stores the blocks that
 *	arrive in buf; with it, it stores (the same blocks of operand) redop (the blocks that arrive) in
 *	buf. A receive that reduces is done after all receives listed before it, so it may use what they
 *	stored. The i-th send from a to b on a channel matches the i-th receive of b from a on that
 *	channel; both must be of the same size.
 * SWC_STEP_LOCAL: on members of this node. The nsend sources are reduced in the order listed, and the
 *	result is stored in all nrecv destinations, in one pass; with one source it is a copy. All
 *	ranges must be of equal size.
 * SWC_STEP_SYNC: a barrier over all members of this node on this channel.
 * SWC_STEP_COPY: nsend copies between this rank's own buffers: the i-th source is stored in the i-th
 *	destination, one after the other. Both must be of equal size, and must not overlap in one
 *	buffer. Needs SWC_FEATURE_COPY; a local step for each copy does the same in more time.
 *
 * SWC_XFER_REDUCE marks a receive of a NET step that reduces.
 *
 * SWC_XFER_FINAL marks a receive, the first destination of a local step, or any destination of a copy step,
 * that completes a block; SWC_AVG divides there. Each block of the result must pass exactly one FINAL.
 *
 * SWC_XFER_STORED marks a send whose matching receive has no SWC_XFER_REDUCE. Between nodes a large
 * message is then written straight into the buffer of the receiver. The mark must be correct: the kernel
 * cannot check it.
 */
#ifndef _UAPI_LINUX_SWINGCOLL_PLAN_H
#define _UAPI_LINUX_SWINGCOLL_PLAN_H

#include <linux/types.h>

#define SWC_PLAN_MAGIC		0x50435753u	/* "SWCP" */
#define SWC_PLAN_VERSION	1

/* Fixed limits. */
#define SWC_MAX_PLAN_BYTES	(8u << 20)
#define SWC_PLAN_MAX_RANKS	(1u << 20)	/* ranks of a plan */
#define SWC_PLAN_MAX_BLOCKS	(1u << 24)	/* blocks of the vector of a plan */
#define SWC_MAX_CHANNELS	64	/* of a plan */
#define SWC_MAX_MESSAGES	65535	/* sends, and receives, of one network step */
#define SWC_MAX_FANIN		256	/* sources, and destinations, of one local step */
#define SWC_MAX_COPIES		65535	/* of one copy step */
#define SWC_NAME_BYTES		16	/* of the name of an algorithm, with the terminating NUL */

enum swc_buf { SWC_BUF_SEND, SWC_BUF_RECV, SWC_BUF_SCRATCH, SWC_BUF_NR };

enum swc_step_kind { SWC_STEP_NET = 1, SWC_STEP_LOCAL = 2, SWC_STEP_SYNC = 3, SWC_STEP_COPY = 4 };

#define SWC_XFER_REDUCE		(1u << 0)
#define SWC_XFER_FINAL		(1u << 1)
#define SWC_XFER_STORED		(1u << 2)
#define SWC_XFER_FLAGS_ALL	(SWC_XFER_REDUCE | SWC_XFER_FINAL | SWC_XFER_STORED)

/*
 * SWC_PLAN_NOT_IN_PLACE: the plan is correct only when send and receive buffer are disjoint; operations in
 *	place are refused.
 * SWC_PLAN_ORDER_VARIES: ranks may reduce in different orders, so that the last bits of float results may
 *	differ between ranks. Refused for SUM, PROD and AVG of floats on communicators without
 *	SWC_COMM_F_ALLOW_REORDER.
 */
#define SWC_PLAN_NOT_IN_PLACE	(1u << 0)
#define SWC_PLAN_ORDER_VARIES	(1u << 1)
#define SWC_PLAN_FLAGS_ALL	(SWC_PLAN_NOT_IN_PLACE | SWC_PLAN_ORDER_VARIES)

struct swc_plan_window {
	__u32 first_block;
	__u32 nblocks;
};

/**
 * struct swc_plan_header - start of a plan
 * @magic: SWC_PLAN_MAGIC
 * @version: SWC_PLAN_VERSION
 * @header_bytes: sizeof(struct swc_plan_header)
 * @total_bytes: size of header, channels, steps and transfers together, at most SWC_MAX_PLAN_BYTES
 * @flags: SWC_PLAN_*
 * @nranks: size of the communicator
 * @rank: the rank that executes this plan
 * @root: as in the descriptor
 * @nshards: 1 or @nranks, see above
 * @shard_blocks: blocks per shard, at least 1; nshards * shard_blocks is at most SWC_PLAN_MAX_BLOCKS
 * @nsteps: steps of all channels together
 * @nxfers: transfers of all steps together
 * @nchannels: 1 to SWC_MAX_CHANNELS
 * @coll: enum swc_coll
 * @resv0: must be 0
 * @family: a hash of the parameters: equal on all ranks if and only if their plans belong together
 * @window: by enum swc_buf; nblocks may be 0
 * @name: algorithm, for messages: 1 to 15 printable characters, padded with NUL
 * @resv1: must be 0
 *
 * Followed by nchannels struct swc_plan_channel, nsteps struct swc_plan_step, nxfers struct swc_plan_xfer.
 * Channels own consecutive steps and steps own consecutive transfers, in order and without gaps.
 */
struct swc_plan_header {
	__u32 magic;
	__u16 version;
	__u16 header_bytes;
	__u32 total_bytes;
	__u32 flags;
	__u32 nranks;
	__u32 rank;
	__u32 root;
	__u32 nshards;
	__u32 shard_blocks;
	__u32 nsteps;
	__u32 nxfers;
	__u16 nchannels;
	__u8  coll;
	__u8  resv0;
	__u64 family;
	struct swc_plan_window window[SWC_BUF_NR];
	char  name[SWC_NAME_BYTES];
	__u64 resv1[2];
};

struct swc_plan_channel {
	__u32 first_step;
	__u32 nsteps;
};

struct swc_plan_step {
	__u8  kind;		/* enum swc_step_kind */
	__u8  resv[3];
	__u16 nsend;		/* sends (NET, at most SWC_MAX_MESSAGES) or sources (LOCAL, SWC_MAX_FANIN;
				 * COPY, SWC_MAX_COPIES)
				 */
	__u16 nrecv;		/* receives or destinations, up to the same numbers; COPY: nsend */
	__u32 first_xfer;
};

struct swc_plan_xfer {
	__u32 rank;		/* peer (NET) or owner of the buffer (LOCAL; COPY: this rank) */
	__u32 first_block;
	__u32 nblocks;		/* 0 only in NET steps of a BARRIER */
	__u8  buf;		/* enum swc_buf */
	__u8  operand;		/* enum swc_buf, of receives with SWC_XFER_REDUCE; else 0 */
	__u8  flags;		/* SWC_XFER_* */
	__u8  path;		/* NET: path to the node of the peer, modulo the number of paths; else 0 */
};

#endif /* _UAPI_LINUX_SWINGCOLL_PLAN_H */

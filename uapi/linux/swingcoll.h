/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * swingcoll: collective communication carried out by the Linux kernel.
 *
 * This is the whole contract between the module and user space: the control ioctls, the io_uring commands,
 * the descriptor of a collective (the payload of one of them, or of SWC_IOC_SUBMIT), the plan format, and
 * the layout of the mapped completion ring. One layout serves 32- and 64-bit callers. Every reserved
 * field and every undefined flag bit must be zero and is refused with -EINVAL otherwise.
 */
#ifndef _UAPI_LINUX_SWINGCOLL_H
#define _UAPI_LINUX_SWINGCOLL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define SWC_DEVICE_PATH		"/dev/swingcoll"
#define SWC_ABI_VERSION		1

/* Fixed limits. Those a module parameter can lower are reported by SWC_IOC_INFO. */
#define SWC_MAX_RANKS		4096	/* members of one communicator */
#define SWC_MAX_LOCAL_RANKS	256	/* of them on one node */
#define SWC_MAX_INFLIGHT	64	/* operations in flight per communicator and rank */
#define SWC_MAX_PLAN_BYTES	(8u << 20)
#define SWC_PLAN_MAX_RANKS	(1u << 20)	/* that a plan may be for */
#define SWC_PLAN_MAX_BLOCKS	(1u << 24)	/* of the vector */
#define SWC_MAX_CHANNELS	64
#define SWC_MAX_FANIN		256	/* sources, or destinations, of one local step */
#define SWC_MAX_SLOT_BYTES	(16u << 20)
#define SWC_MAX_PATHS		16	/* between two nodes */
#define SWC_MAX_PARTITIONS	4096	/* of a partitioned operation */
#define SWC_ID_BYTES		16
#define SWC_NAME_BYTES		16
#define SWC_TEXT_BYTES		256

/* ------------------------------------------------------------------ vocabulary */

enum swc_dtype {
	SWC_I8, SWC_U8, SWC_I16, SWC_U16, SWC_I32, SWC_U32, SWC_I64, SWC_U64,
	SWC_F16, SWC_BF16, SWC_F32, SWC_F64,
	SWC_DTYPE_NR
};

/* SWC_AVG is SWC_SUM divided by the number of ranks at the end (integers truncate toward zero). */
enum swc_redop {
	SWC_SUM, SWC_PROD, SWC_MIN, SWC_MAX, SWC_AVG, SWC_BAND, SWC_BOR, SWC_BXOR,
	SWC_REDOP_NR
};

/*
 * Meaning of swc_desc.count, always in elements:
 *
 * collective      count               send buffer       receive buffer
 * ALLREDUCE       of the vector       count             count
 * REDUCE_SCATTER  received per rank   nranks * count    count
 * ALLGATHER       sent per rank       count             nranks * count
 * BROADCAST       of the vector       count (root)      count
 * REDUCE          of the vector       count             count (root)
 * BARRIER         0                   none              none
 * ALLTOALL        sent to each rank   nranks * count    nranks * count
 */
enum swc_coll {
	SWC_ALLREDUCE, SWC_REDUCE_SCATTER, SWC_ALLGATHER, SWC_BROADCAST, SWC_REDUCE, SWC_BARRIER,
	SWC_ALLTOALL,
	SWC_COLL_NR
};

/* ------------------------------------------------------------------ descriptor */

/*
 * swc_desc.flags
 *
 * SWC_OP_WAITING: the caller is going to sleep until this operation is done. The kernel may then run
 *	steps in the caller's own context instead of waking a worker. Never required, never unsafe.
 * SWC_OP_RING: post the completion to the mapped completion ring too (an entry is reserved at
 *	submission; -EBUSY when the ring is full). Implied by SWC_IOC_SUBMIT.
 */
#define SWC_OP_WAITING		(1u << 0)
#define SWC_OP_RING		(1u << 1)
#define SWC_OP_FLAGS_ALL	(SWC_OP_WAITING | SWC_OP_RING)

/**
 * struct swc_desc - one collective operation, as one rank submits it
 * @comm: communicator handle from SWC_IOC_COMM_JOIN
 * @plan: plan handle from SWC_IOC_PLAN_LOAD; it must be of the same collective (and root)
 * @send: address of the send buffer, or byte offset into @send_region if that is not 0
 * @recv: address of the receive buffer, or byte offset into @recv_region if that is not 0
 * @count: elements, see enum swc_coll
 * @send_region: region handle from SWC_IOC_MEM_REG, or 0: the pages are registered on first use
 * @recv_region: likewise
 * @coll: enum swc_coll
 * @dtype: enum swc_dtype
 * @redop: enum swc_redop; must be 0 for collectives that do not reduce
 * @resv0: must be 0
 * @flags: SWC_OP_*
 * @root: root rank of BROADCAST and REDUCE, else 0
 * @timeout_ms: deadline in milliseconds from submission; 0 takes the communicator's
 * @user_data: copied to the completion ring entry
 * @resv1: must be 0
 *
 * Buffers must be aligned to the element size. Send and receive buffer may be the same memory (each
 * block at the same address in both) or disjoint; partial overlap is refused. A buffer that the
 * collective does not use on this rank may be 0. Both must stay untouched until the completion.
 *
 * Order: the k-th operation submitted by each rank of a communicator is one collective. If collective,
 * type, operation, count, root or plan family differ between ranks, all of them get -EPROTO. A rank whose
 * buffers cannot be pinned (-EFAULT, -ENOMEM) or overlap (-EINVAL) has taken its place in that order all the
 * same: it gets that error as its completion, and the other ranks get -ECANCELED. Whatever else is wrong
 * with a descriptor is refused before, and is as if it had not been submitted.
 */
struct swc_desc {
	__u32 comm;
	__u32 plan;
	__u64 send;
	__u64 recv;
	__u64 count;
	__u32 send_region;
	__u32 recv_region;
	__u8  coll;
	__u8  dtype;
	__u8  redop;
	__u8  resv0;
	__u32 flags;
	__u32 root;
	__u32 timeout_ms;
	__u64 user_data;
	__u64 resv1[2];
};

/*
 * Completion by CQE: res is 0 or a negative errno. On rings with 32-byte CQEs big_cqe[0] holds one more
 * word. On success: nanoseconds from submission to completion in the low 40 bits, the plan handle in
 * the 16 above. On error: the rank at fault plus one in the low 32 bits, 0 if no single rank is.
 */
#define SWC_CQE_TIME_NS(w)	((w) & ((1ull << 40) - 1))
#define SWC_CQE_PLAN(w)		((__u32)((w) >> 40) & 0xffff)
#define SWC_CQE_CULPRIT(w)	((__s32)((w) & 0xffffffffu) - 1)	/* -1: none */

/* ------------------------------------------------------------------ completion ring */

/**
 * struct swc_completion - one entry of the completion ring
 * @user_data: as submitted
 * @seq: number of the operation on its communicator, from 0
 * @bytes: bytes of the vector (all blocks)
 * @wait_ns: from submission until every rank of this node had arrived
 * @run_ns: from then until completion
 * @res: 0 or a negative errno
 * @comm: communicator handle
 * @plan: plan handle
 * @culprit: rank at fault on error, or -1
 * @resv: 0
 */
struct swc_completion {
	__u64 user_data;
	__u64 seq;
	__u64 bytes;
	__u64 wait_ns;
	__u64 run_ns;
	__s32 res;
	__u32 comm;
	__u32 plan;
	__s32 culprit;
	__u64 resv;
};

/*
 * The ring is two mappings. SWC_MMAP_RING is read-only: this header, then entries from byte 128 on.
 * SWC_MMAP_RING_USER is one writable page with the consumer's side. Entry i is at index i & (entries - 1).
 * Consume: read tail with acquire, read entries head..tail-1, store head with release.
 */
struct swc_ring_header {
	__u32 tail;		/* written by the kernel */
	__u32 resv0[15];
	__u32 entries;		/* constant, a power of two */
	__u32 resv1[15];
};

struct swc_ring_user {
	__u32 head;		/* written by the consumer */
	__u32 resv[15];
};

#define SWC_RING_ENTRIES_OFFSET	128

/*
 * mmap(2) offsets on the device. SLOTS and STATE carry a communicator handle.
 *
 * SWC_MMAP_PROGRESS carries the handle of a partitioned operation: writable, struct swc_progress.
 * SWC_MMAP_STATE: one read-only page, struct swc_comm_state.
 * SWC_MMAP_SLOTS: writable memory shared by the members on this node, zeroed, of the slot_bytes given
 *	at join. The kernel never reads it but for the words that SWC_IOC_SLOT_WAIT names.
 */
#define SWC_MMAP_RING		(1ull << 48)
#define SWC_MMAP_RING_USER	(2ull << 48)
#define SWC_MMAP_STATE(comm)	((3ull << 48) | ((__u64)(comm) << 16))
#define SWC_MMAP_SLOTS(comm)	((4ull << 48) | ((__u64)(comm) << 16))
#define SWC_MMAP_PROGRESS(part)	((5ull << 48) | ((__u64)(part) << 16))

struct swc_comm_state {
	__u32 aborted;		/* 0 while live, else 1 */
	__s32 error;		/* why: a negative errno */
	__s32 culprit;		/* rank at fault or -1 */
	__u32 resv;
};

/* ------------------------------------------------------------------ plans */

/*
 * A plan is one rank's part of one algorithm, for one collective (and root), free of sizes.
 *
 * Blocks. The vector is cut into nparts parts of equal element count (nranks for REDUCE_SCATTER,
 * ALLGATHER and ALLTOALL, else 1); each part into part_blocks blocks. A part of E elements of s bytes is
 * U = ceil(E * s / 64) units of 64 bytes; block k of it covers units k*q + min(k, r) to the next block's
 * start, with q = U / part_blocks and r = U % part_blocks, clipped to E. Blocks may be empty.
 *
 * Buffers. SEND and RECV are the rank's own, SCRATCH is kernel memory. Each holds a window of
 * consecutive blocks (first_block, nblocks); the buffer's first byte is the first block's first byte.
 *
 * Channels progress independently; steps of one channel run in order.
 *
 * SWC_STEP_NET: nsend sends, then nrecv receives, all concurrent; the step ends when every send has
 *	been taken and every receive is done. A receive without SWC_XFER_REDUCE stores what arrives in
 *	(buf, blocks); with it, it stores (operand, same blocks) redop arrived. Receives that reduce
 *	are done in the order listed. The i-th send of a to b on a channel meets the i-th receive of b
 *	from a on that channel; both must be of the same size.
 * SWC_STEP_LOCAL: members of this node. nsend sources are reduced in the order listed and stored to
 *	nrecv destinations, in one pass; with one source, a copy. All ranges must be of equal size.
 * SWC_STEP_SYNC: a barrier over all members of this node on this channel.
 *
 * SWC_XFER_STORED marks a send that the peer stores as it is: its receive has no SWC_XFER_REDUCE. Between
 * nodes a large one is then written straight into the peer's buffer. It must say what the peer's plan does.
 *
 * SWC_XFER_FINAL marks a receive, or the first destination of a local step, whose result is complete;
 * SWC_AVG divides there. A block that is complete must pass exactly one FINAL.
 */
#define SWC_PLAN_MAGIC		0x50435753u	/* "SWCP" */
#define SWC_PLAN_VERSION	1

enum swc_buf { SWC_BUF_SEND, SWC_BUF_RECV, SWC_BUF_SCRATCH, SWC_BUF_NR };

enum swc_step_kind { SWC_STEP_NET = 1, SWC_STEP_LOCAL = 2, SWC_STEP_SYNC = 3 };

#define SWC_XFER_REDUCE		(1u << 0)
#define SWC_XFER_FINAL		(1u << 1)
#define SWC_XFER_STORED		(1u << 2)
#define SWC_XFER_FLAGS_ALL	(SWC_XFER_REDUCE | SWC_XFER_FINAL | SWC_XFER_STORED)

/*
 * SWC_PLAN_NOT_IN_PLACE: the plan is right only when send and receive buffer are disjoint; in-place
 *	operations are refused.
 * SWC_PLAN_ORDER_VARIES: ranks may reduce in different orders, so float results may differ in their last
 *	bits from rank to rank. Refused for SUM, PROD and AVG of floats on communicators without
 *	SWC_JOIN_ALLOW_REORDER.
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
 * @total_bytes: header, channels, steps and transfers together
 * @flags: SWC_PLAN_*
 * @nranks: of the communicator
 * @rank: whose part this is
 * @root: as in the descriptor
 * @nparts: 1 or @nranks, see above
 * @part_blocks: blocks per part, at least 1; nparts * part_blocks is at most SWC_PLAN_MAX_BLOCKS
 * @nsteps: steps of all channels together
 * @nxfers: transfers of all steps together
 * @nchannels: 1 to SWC_MAX_CHANNELS
 * @coll: enum swc_coll
 * @resv0: must be 0
 * @family: equal on all ranks exactly if their plans belong together (a hash of the parameters)
 * @window: by enum swc_buf; nblocks may be 0
 * @name: algorithm, 1 to 15 printable characters, NUL-padded, for people
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
	__u32 nparts;
	__u32 part_blocks;
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
	__u16 nsend;		/* sends (NET, up to SWC_MAX_RANKS) or sources (LOCAL, to SWC_MAX_FANIN) */
	__u16 nrecv;		/* receives (NET) or destinations (LOCAL), likewise */
	__u32 first_xfer;
};

struct swc_plan_xfer {
	__u32 rank;		/* peer (NET) or owner of the buffer (LOCAL) */
	__u32 first_block;
	__u32 nblocks;		/* 0 only in NET steps of a BARRIER */
	__u8  buf;		/* enum swc_buf */
	__u8  operand;		/* enum swc_buf, receives with SWC_XFER_REDUCE; else 0 */
	__u8  flags;		/* SWC_XFER_* */
	__u8  path;		/* NET: which way to the peer's node, modulo as many as there are; else 0 */
};

/* ------------------------------------------------------------------ control */

#define SWC_FEATURE_LOCAL	(1ull << 0)	/* transport between members of one node */
#define SWC_FEATURE_CANCEL	(1ull << 1)	/* io_uring can cancel commands (6.7 and later) */
#define SWC_FEATURE_SLOTS	(1ull << 2)	/* shared slots for small messages */
#define SWC_FEATURE_RDMA	(1ull << 3)	/* transport between nodes by RDMA verbs */

struct swc_info {
	__u32 abi_version;
	__u32 desc_bytes;
	__u64 features;
	__u32 max_ranks;
	__u32 max_local_ranks;
	__u32 max_inflight;
	__u32 max_plan_bytes;
	__u32 max_regions;
	__u32 max_plans;
	__u32 ring_entries;
	__u32 rdma_port;		/* that other nodes connect to; 0 without SWC_FEATURE_RDMA */
	char  reduce[SWC_NAME_BYTES];	/* reduction kernels in use: avx512, avx2, neon, scalar */
	__u64 resv1[4];
};

/*
 * SWC_JOIN_ANY_USER: (creator and joiner) members of other users who hold the id may join.
 * SWC_JOIN_ALLOW_REORDER: plans marked SWC_PLAN_ORDER_VARIES may be used for floats.
 * SWC_JOIN_URGENT: what kernel threads do for the communicator comes before what they do for others, and
 *	before most of what else runs on the CPUs.
 */
#define SWC_JOIN_ANY_USER	(1u << 0)
#define SWC_JOIN_ALLOW_REORDER	(1u << 1)
#define SWC_JOIN_URGENT		(1u << 2)
#define SWC_JOIN_FLAGS_ALL	(SWC_JOIN_ANY_USER | SWC_JOIN_ALLOW_REORDER | SWC_JOIN_URGENT)

/**
 * struct swc_node_path - one way from this node to another
 * @node: the other node
 * @path: number of this way between the two nodes, the same on both of them, from 0 without gaps
 * @local: address to leave from, struct sockaddr_in or sockaddr_in6; its port is ignored
 * @remote: the other node's address on this way, and the port it listens on (its swc_info.rdma_port)
 */
struct swc_node_path {
	__u32 node;
	__u32 path;
	__u8  local[28];
	__u8  remote[28];
};

/**
 * struct swc_comm_join - become one rank of a communicator
 * @id: 128 random bits that all members share; who knows them, may join
 * @nranks: members in all, 1 to SWC_MAX_RANKS
 * @rank: 0 to nranks - 1, each exactly once
 * @flags: SWC_JOIN_*; equal on all members
 * @timeout_ms: how long to wait for the others, and the default deadline of operations; 0 is 30000
 * @slot_bytes: size of the shared slot memory, equal on all members of a node; 0 for none
 * @nnodes: nodes, or 0 or 1: all members are on this one, and the next three must be 0
 * @rank_node: address of __u32[nranks]: the node of each rank, 0 to nnodes - 1; of which @rank's is this one
 * @paths: address of struct swc_node_path[npaths]: at least one to every node that plans name. Of several
 *	members on a node the first one's table is used.
 * @npaths: entries of @paths
 * @comm: out: handle, valid in the calling context
 * @resv: must be 0
 *
 * Blocks (killable) until all ranks of this node have joined; other nodes are connected to when an operation
 * first needs them. Errors: -EEXIST rank taken, -EACCES another user's communicator, -EPROTO members
 * disagree, -ETIMEDOUT not all came, -ENOSPC a limit is reached, -EOPNOTSUPP several nodes, but no RDMA in
 * this kernel; and the communicator's own error if all came but it was aborted before this rank woke.
 *
 * On a communicator of several nodes every operation that fails aborts the communicator. Nodes remember for a
 * while that one has ended, to tell those that come late: its id must not be used again.
 */
struct swc_comm_join {
	__u8  id[SWC_ID_BYTES];
	__u32 nranks;
	__u32 rank;
	__u32 flags;
	__u32 timeout_ms;
	__u32 slot_bytes;
	__u32 nnodes;
	__u64 rank_node;
	__u64 paths;
	__u32 npaths;
	__u32 comm;
	__u32 resv[2];
};

/**
 * struct swc_comm_ref - names a communicator, to leave or to abort it
 * @comm: handle
 * @error: abort: positive errno the members shall see, 0 for ECONNABORTED; leave: 0
 * @resv: must be 0
 *
 * Leaving while operations of this rank are in flight gives -EBUSY. When a rank leaves, operations
 * that the others submit after that fail with -ECONNRESET.
 */
struct swc_comm_ref {
	__u32 comm;
	__u32 error;
	__u64 resv;
};

/**
 * struct swc_comm_error - the last failure on a communicator, in words
 * @comm: handle
 * @error: out: negative errno, 0 if there was none
 * @culprit: out: rank at fault or -1
 * @aborted: out: 1 if the communicator is aborted
 * @seq: out: operation that failed
 * @text: out: one line that says who and what
 */
struct swc_comm_error {
	__u32 comm;
	__s32 error;
	__s32 culprit;
	__u32 aborted;
	__u64 seq;
	char  text[SWC_TEXT_BYTES];
};

/**
 * struct swc_plan_load - hand a plan to the kernel, which verifies and keeps it
 * @comm: communicator handle
 * @bytes: size of the plan
 * @data: address of struct swc_plan_header
 * @plan: out: handle, 1 to 65535, valid for this rank of this communicator
 * @text: out: why the plan was refused (-EINVAL)
 */
struct swc_plan_load {
	__u32 comm;
	__u32 bytes;
	__u64 data;
	__u32 plan;
	__u32 resv;
	char  text[SWC_TEXT_BYTES];
};

struct swc_plan_unload {
	__u32 comm;
	__u32 plan;
};

/**
 * struct swc_mem_reg - pin memory so that operations can use it without looking it up
 * @addr: start address
 * @bytes: length
 * @flags: must be 0
 * @region: out: handle
 *
 * The pages stay the caller's and stay pinned until SWC_IOC_MEM_UNREG or close. They count against
 * RLIMIT_MEMLOCK (-ENOMEM). Unmapping the memory meanwhile is safe but makes the region useless.
 */
struct swc_mem_reg {
	__u64 addr;
	__u64 bytes;
	__u32 flags;
	__u32 region;
};

struct swc_mem_unreg {
	__u32 region;
	__u32 resv;
};

/**
 * struct swc_ring_wait - sleep until the completion ring holds something new
 * @tail: the tail the caller has seen; returns at once if it has moved
 * @timeout_ms: 0 for ever; -ETIME when it runs out
 */
struct swc_ring_wait {
	__u32 tail;
	__u32 timeout_ms;
};

/**
 * struct swc_slot_wait - sleep until a word of the shared slot memory changes
 * @comm: handle
 * @offset: byte offset of the 32-bit word
 * @value: returns at once if the word is not this
 * @timeout_ms: 0 takes the communicator's deadline
 * @suspect: rank the caller is waiting for, or -1; named in the error if the time runs out, and waiting
 *	ends with -ECONNRESET when it leaves
 * @resv: must be 0
 *
 * When the time runs out the communicator is aborted with -ETIMEDOUT. Errors of an aborted
 * communicator are returned as such.
 */
struct swc_slot_wait {
	__u32 comm;
	__u32 offset;
	__u32 value;
	__u32 timeout_ms;
	__s32 suspect;
	__u32 resv;
};

struct swc_slot_wake {
	__u32 comm;
	__u32 resv;
};

/* ------------------------------------------------------------------ partitioned operations */

/**
 * struct swc_part_init - make a collective that runs in partitions, as often as wanted
 * @desc: partition 0, as it would be submitted by itself. Its buffers must be registered: @send_region and
 *	@recv_region, if the collective uses them. @flags must be 0.
 * @partitions: 1 to SWC_MAX_PARTITIONS
 * @send_stride: bytes from one partition's send buffer to the next one's
 * @recv_stride: likewise for receive buffers
 * @handle: out: valid in the calling context
 * @map_bytes: out: what SWC_MMAP_PROGRESS(handle) maps
 * @resv: must be 0
 *
 * Each partition is a collective of its own, of @desc.count elements, that begins when all members have
 * marked it ready; members may do that in different orders. Between them other collectives may run on the
 * same communicator, but SWC_IOC_PART_START has its place in the members' order of submissions, as if all
 * partitions were submitted there one after the other.
 */
struct swc_part_init {
	struct swc_desc desc;
	__u32 partitions;
	__u32 handle;
	__u64 send_stride;
	__u64 recv_stride;
	__u64 map_bytes;
	__u64 resv[2];
};

/**
 * struct swc_part_ref - names a partitioned operation, and a partition of it
 * @handle: from SWC_IOC_PART_INIT
 * @partition: WAIT: which, or SWC_ALL_PARTITIONS; else 0
 * @timeout_ms: WAIT: 0 for ever, -ETIME when it runs out; else 0
 * @resv: must be 0
 *
 * START begins a round: -EBUSY while the last one is not done, -EAGAIN while too many partitions of others
 * are not ready (4 * SWC_MAX_PARTITIONS on a communicator). KICK looks at what has been marked ready. WAIT
 * sleeps until partitions are done and returns 0 or the first error of the round; -EINVAL if none was
 * started. FREE: -EBUSY while a round is not done.
 *
 * SWC_CMD_PART_WAIT is WAIT as an io_uring command that sleeps nowhere: the CQE comes when partitions of the
 * round that is going on at submission are done, with what WAIT returns; @timeout_ms must be 0. Any number of
 * them can be in flight. A round is not done before all of them that are in flight have got their result.
 * IORING_OP_ASYNC_CANCEL does not find commands (no kernel's does): they end with -ECANCELED when the ring or
 * its task goes, if the kernel has SWC_FEATURE_CANCEL. Without that they end with the round or the
 * communicator; a ring's end, and an execve() by the task that submitted, wait for them.
 */
struct swc_part_ref {
	__u32 handle;
	__u32 partition;
	__u32 timeout_ms;
	__u32 resv;
};

#define SWC_ALL_PARTITIONS	0xffffffffu

/**
 * struct swc_progress - the shared memory of a partitioned operation
 * @flags: SWC_PROGRESS_*, written by the kernel
 * @error: of this round: the first, a negative errno, or 0; written by the kernel before @done
 * @round: number of the last round that was started, from 1; written by the kernel
 * @entries: of the queue, a power of two
 * @queue: byte offset of __u32 queue[entries]
 * @done: byte offset of __u32 done[partitions]
 * @tail: entries of the queue that producers have taken so far, all rounds together; starts as 0
 *
 * Mark partition i ready: t = tail++ (atomically), then store i + 1 to queue[t % entries] with release, then
 * a full barrier, and SWC_IOC_PART_KICK if @flags has SWC_PROGRESS_KICK. Each exactly once in a round.
 * Partition i is done when done[i] (read with acquire) is the round's number; then look at @error.
 */
struct swc_progress {
	__u32 flags;
	__s32 error;
	__u32 round;
	__u32 entries;
	__u32 queue;
	__u32 done;
	__u32 resv0[10];
	__u32 tail;
	__u32 resv1[15];
};

/* The kernel does not look at the queue by itself. */
#define SWC_PROGRESS_KICK	(1u << 0)

/* ------------------------------------------------------------------ looking in */

enum swc_member_state { SWC_MEMBER_EMPTY, SWC_MEMBER_JOINED, SWC_MEMBER_LEFT, SWC_MEMBER_DEAD };

struct swc_member_info {
	__u32 rank;
	__u32 pid;		/* in the pid namespace of the reader, 0 if not visible there */
	__u32 state;		/* enum swc_member_state */
	__u32 inflight;		/* operations submitted and not complete */
	__u64 submitted;	/* operations submitted so far, = number of the next one */
	__u64 idle_ns;		/* since its last submission */
	char  comm[16];		/* command name */
};

enum swc_comm_status { SWC_COMM_FORMING, SWC_COMM_LIVE, SWC_COMM_ABORTED };

/**
 * struct swc_comm_query - look at communicators, one after the other
 * @cursor: in: 0 to begin, else what the last call returned; out: for the next call
 * @max_members: room at @members
 * @members: address of struct swc_member_info[], or 0
 * @nranks: out
 * @nlocal: out: members on this node, as many are written as there is room
 * @status: out: enum swc_comm_status
 * @uid: out: owner, in the reader's user namespace
 * @id_prefix: out: first four bytes of the id (the rest is the secret)
 * @inflight: out: operations in flight
 * @oldest_ns: out: age of the oldest
 * @oldest_seq: out: its number
 * @completed: out: operations completed
 * @failed: out: of them with an error
 * @bytes: out: bytes of their vectors
 * @error: out: last failure, negative errno or 0
 * @culprit: out: its rank or -1
 * @text: out: its line
 * @algo: out: algorithm of the oldest operation in flight, or else of the last one that ended
 *
 * Shows communicators of the caller's user, all to CAP_SYS_ADMIN. -ENOENT after the last.
 */
struct swc_comm_query {
	__u64 cursor;
	__u32 max_members;
	__u32 resv0;
	__u64 members;
	__u32 nranks;
	__u32 nlocal;
	__u32 status;
	__u32 uid;
	__u8  id_prefix[4];
	__u32 inflight;
	__u64 oldest_ns;
	__u64 oldest_seq;
	__u64 completed;
	__u64 failed;
	__u64 bytes;
	__s32 error;
	__s32 culprit;
	char  text[SWC_TEXT_BYTES];
	char  algo[SWC_NAME_BYTES];
};

/* Counters since load. New ones are added at the end; @count says how many the kernel has. */
enum swc_stat {
	SWC_STAT_OPS_SUBMITTED, SWC_STAT_OPS_COMPLETED, SWC_STAT_OPS_FAILED, SWC_STAT_BYTES,
	SWC_STAT_STEPS_LOCAL, SWC_STAT_STEPS_NET, SWC_STAT_BYTES_REDUCED, SWC_STAT_BYTES_COPIED,
	SWC_STAT_RUN_INLINE, SWC_STAT_RUN_TASK, SWC_STAT_RUN_WORKER,
	SWC_STAT_COMMS_CREATED, SWC_STAT_COMMS_ABORTED, SWC_STAT_TIMEOUTS, SWC_STAT_MISMATCHES,
	SWC_STAT_PLANS_LOADED, SWC_STAT_PLANS_REFUSED,
	SWC_STAT_REGIONS_PINNED, SWC_STAT_REGIONS_UNPINNED, SWC_STAT_PAGES_PINNED, SWC_STAT_PAGES_UNPINNED,
	SWC_STAT_CACHE_HITS, SWC_STAT_CACHE_MISSES, SWC_STAT_CACHE_DROPS,
	SWC_STAT_SLOT_SLEEPS, SWC_STAT_SLOT_WAKES,
	SWC_STAT_CONTEXTS_OPENED, SWC_STAT_CONTEXTS_CLOSED,
	SWC_STAT_CONNS_OPENED, SWC_STAT_CONNS_CLOSED, SWC_STAT_CONNS_REFUSED,
	SWC_STAT_MSGS_SENT, SWC_STAT_MSGS_RECEIVED, SWC_STAT_BYTES_SENT, SWC_STAT_BYTES_RECEIVED,
	SWC_STAT_BYTES_DIRECT, SWC_STAT_CREDIT_STALLS,
	SWC_STAT_DMA_CHANS_TAKEN, SWC_STAT_DMA_CHANS_GIVEN, SWC_STAT_DMA_JOBS, SWC_STAT_DMA_BYTES,
	SWC_STAT_DMA_FALLBACKS,
	SWC_STAT_EARLY_OFFERS,
	SWC_STAT_DMA_PREPARED,
	SWC_STAT_SEGS_SPILLED, SWC_STAT_SPILLS_REFUSED,
	SWC_STAT_NR
};

struct swc_stats {
	__u32 max;		/* in: room at values */
	__u32 count;		/* out: counters the kernel has */
	__u64 values;		/* address of __u64[max] */
};

#define SWC_IOC_MAGIC		0xC5

#define SWC_IOC_INFO		_IOR(SWC_IOC_MAGIC, 0x00, struct swc_info)
#define SWC_IOC_COMM_JOIN	_IOWR(SWC_IOC_MAGIC, 0x01, struct swc_comm_join)
#define SWC_IOC_COMM_LEAVE	_IOW(SWC_IOC_MAGIC, 0x02, struct swc_comm_ref)
#define SWC_IOC_COMM_ABORT	_IOW(SWC_IOC_MAGIC, 0x03, struct swc_comm_ref)
#define SWC_IOC_COMM_ERROR	_IOWR(SWC_IOC_MAGIC, 0x04, struct swc_comm_error)
#define SWC_IOC_PLAN_LOAD	_IOWR(SWC_IOC_MAGIC, 0x05, struct swc_plan_load)
#define SWC_IOC_PLAN_UNLOAD	_IOW(SWC_IOC_MAGIC, 0x06, struct swc_plan_unload)
#define SWC_IOC_MEM_REG		_IOWR(SWC_IOC_MAGIC, 0x07, struct swc_mem_reg)
#define SWC_IOC_MEM_UNREG	_IOW(SWC_IOC_MAGIC, 0x08, struct swc_mem_unreg)
#define SWC_IOC_SUBMIT		_IOW(SWC_IOC_MAGIC, 0x09, struct swc_desc)
#define SWC_IOC_RING_WAIT	_IOW(SWC_IOC_MAGIC, 0x0a, struct swc_ring_wait)
#define SWC_IOC_SLOT_WAIT	_IOW(SWC_IOC_MAGIC, 0x0b, struct swc_slot_wait)
#define SWC_IOC_SLOT_WAKE	_IOW(SWC_IOC_MAGIC, 0x0c, struct swc_slot_wake)
#define SWC_IOC_COMM_QUERY	_IOWR(SWC_IOC_MAGIC, 0x0d, struct swc_comm_query)
#define SWC_IOC_STATS		_IOWR(SWC_IOC_MAGIC, 0x0e, struct swc_stats)

#define SWC_IOC_PART_INIT	_IOWR(SWC_IOC_MAGIC, 0x0f, struct swc_part_init)
#define SWC_IOC_PART_START	_IOW(SWC_IOC_MAGIC, 0x10, struct swc_part_ref)
#define SWC_IOC_PART_KICK	_IOW(SWC_IOC_MAGIC, 0x11, struct swc_part_ref)
#define SWC_IOC_PART_WAIT	_IOW(SWC_IOC_MAGIC, 0x12, struct swc_part_ref)
#define SWC_IOC_PART_FREE	_IOW(SWC_IOC_MAGIC, 0x13, struct swc_part_ref)

/*
 * cmd_op of IORING_OP_URING_CMD; the SQE's payload is the struct. COLLECTIVE takes a ring with 128-byte SQEs
 * and 32-byte CQEs, PART_WAIT any.
 */
#define SWC_CMD_COLLECTIVE	_IOW(SWC_IOC_MAGIC, 0x80, struct swc_desc)
#define SWC_CMD_PART_WAIT	_IOW(SWC_IOC_MAGIC, 0x81, struct swc_part_ref)

#endif /* _UAPI_LINUX_SWINGCOLL_H */

/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * swingcoll: collective communication carried out by the Linux kernel.
 *
 * This, with the plan format in swingcoll_plan.h and the queries in swingcoll_query.h, which it includes, is
 * the whole contract between the module and user space: the ioctls, the io_uring commands, the descriptor of
 * a collective (the payload of an io_uring command, or the argument of SWC_IOC_SUBMIT), and the layout of
 * mapped memory. Callers are 64-bit processes: others cannot name the offsets of mappings, and their ioctls
 * fail with -ENOTTY. Reserved fields and undefined flag bits must be zero; calls that break this fail with
 * -EINVAL.
 *
 * A file belongs to the process that opened it. When that exits, executes another program or closes its last
 * descriptor, communicators, pinned memory and all else that the file stands for end, whoever still holds it.
 *
 * Calls fail with -EPERM in any other process, even if it shares the opener's address space, with -EBADF if
 * the opener has closed its last descriptor before (a message or a ring of io_uring may still hold the file;
 * poll() reports POLLERR and POLLHUP then), with -ENOENT for a handle that does not exist in the file, with
 * -EFAULT for arguments that cannot be read or written, with -ENOMEM if the kernel has no memory, and with
 * -EDQUOT if the user may have no more of something (enum swc_quota); so does open().
 */
#ifndef _UAPI_LINUX_SWINGCOLL_H
#define _UAPI_LINUX_SWINGCOLL_H

#include <linux/ioctl.h>
#include <linux/swingcoll_plan.h>
#include <linux/swingcoll_query.h>
#include <linux/types.h>

#define SWC_DEVICE_PATH		"/dev/swingcoll"
#define SWC_ABI_VERSION		1

/* Fixed limits, but for those of plans. SWC_IOC_INFO reports the limits that module parameters set. */
#define SWC_MAX_RANKS		65536	/* members of one communicator */
#define SWC_MAX_LOCAL_RANKS	256	/* members of one communicator on one node */
#define SWC_MAX_INFLIGHT	64	/* operations in flight per communicator and rank */
#define SWC_MAX_SLOT_BYTES	(16u << 20)	/* shared slot memory of one communicator */
#define SWC_MAX_PATHS		16	/* network paths between two nodes */
#define SWC_MAX_PARTITIONS	4096	/* partitions of a partitioned operation */
#define SWC_ID_BYTES		16

/* ------------------------------------------------------------------ types, operations, collectives */

enum swc_dtype {
	SWC_I8, SWC_U8, SWC_I16, SWC_U16, SWC_I32, SWC_U32, SWC_I64, SWC_U64,
	SWC_F16, SWC_BF16, SWC_F32, SWC_F64,
	SWC_DTYPE_NR
};

/* SWC_AVG is SWC_SUM, divided by the number of ranks at the end (integers truncate toward zero). */
enum swc_redop {
	SWC_SUM, SWC_PROD, SWC_MIN, SWC_MAX, SWC_AVG, SWC_BAND, SWC_BOR, SWC_BXOR,
	SWC_REDOP_NR
};

/*
 * What swc_desc.count counts, and the sizes of the buffers; all in elements of swc_desc.dtype:
 *
 * collective      count               send buffer           receive buffer
 * ALLREDUCE       of the vector       count                 count
 * REDUCE_SCATTER  received per rank   nranks * count        count
 * ALLGATHER       sent per rank       count                 nranks * count
 * BROADCAST       of the vector       count (root)          count
 * REDUCE          of the vector       count                 count (root)
 * BARRIER         0                   none                  none
 * ALLTOALL        sent to each rank   nranks * count        nranks * count
 * GATHER          sent per rank       count                 nranks * count (root)
 * SCATTER         received per rank   nranks * count (root) count
 */
enum swc_coll {
	SWC_ALLREDUCE, SWC_REDUCE_SCATTER, SWC_ALLGATHER, SWC_BROADCAST, SWC_REDUCE, SWC_BARRIER,
	SWC_ALLTOALL, SWC_GATHER, SWC_SCATTER,
	SWC_COLL_NR
};

/* ------------------------------------------------------------------ descriptor */

/*
 * swc_desc.flags
 *
 * SWC_OP_WAITING: the caller will sleep until this operation completes. The kernel may then run steps in the
 *	caller's context instead of waking a kernel worker. A hint: always safe, never required.
 * SWC_OP_RING: post the completion to the mapped completion ring, too. An entry is reserved at submission,
 *	which fails with -EBUSY when the ring is full. Implied by SWC_IOC_SUBMIT.
 */
#define SWC_OP_WAITING		(1u << 0)
#define SWC_OP_RING		(1u << 1)
#define SWC_OP_FLAGS_ALL	(SWC_OP_WAITING | SWC_OP_RING)

/**
 * struct swc_desc - one collective operation, as one rank submits it
 * @comm: communicator handle from SWC_IOC_COMM_CREATE
 * @plan: plan handle from SWC_IOC_PLAN_LOAD, of a plan for the same collective and root
 * @send: address of the send buffer, or its byte offset in @send_region if that is not 0
 * @recv: address of the receive buffer, or its byte offset in @recv_region if that is not 0
 * @count: elements, see enum swc_coll
 * @send_region: region handle from SWC_IOC_MEM_REG; 0: the pages are registered on first use, and cached
 * @recv_region: as @send_region
 * @coll: enum swc_coll
 * @dtype: enum swc_dtype
 * @redop: enum swc_redop; must be 0 for collectives that do not reduce
 * @resv0: must be 0
 * @flags: SWC_OP_*
 * @root: root rank of BROADCAST, REDUCE, GATHER and SCATTER, else 0
 * @timeout_ms: deadline, in milliseconds from submission; 0: that of the communicator. When it passes, the
 *	communicator is aborted with -ETIMEDOUT.
 * @user_data: copied to the completion ring entry
 * @counts: GATHER and SCATTER: address of __u64[nranks], the elements of each rank's shard, read at
 *	submission. @count must be 0 then; shards follow one another without gaps. 0: all have @count
 *	elements. Must be 0 for other collectives, and for partitioned operations
 * @resv1: must be 0
 *
 * Buffers must be aligned to the element size. Send and receive buffer may be the same memory (each block at
 * the same address in both) or disjoint, and must not overlap otherwise. A buffer that the collective
 * does not use on this rank may be 0. The kernel owns both from submission until completion: the caller
 * must not write to either, nor read the receive buffer.
 *
 * Submission does not block for other ranks; it may sleep to pin memory. It fails with -EINVAL (descriptor,
 * alignment, plan of another collective), -EFAULT (@counts cannot be read), -EOVERFLOW (size), -EAGAIN
 * (SWC_MAX_INFLIGHT operations in flight), -ECONNABORTED (communicator aborted) or -ECONNRESET (a member has
 * left), without any effect. With -ENOMEM (no memory) or -EDQUOT (a limit of the user) it also has no effect
 * if it was an ioctl; in an io_uring the next ones may be behind it, and would be taken for it, so it aborts
 * the communicator.
 *
 * Order: the k-th operations that the ranks of a communicator submit are one collective. If collective, type,
 * reduction, count, counts, root or plan family differ between ranks, it fails on all of them with -EPROTO.
 * A rank whose buffers cannot be used (-ENOENT: no such region, -EFAULT: no such memory, -ENOMEM: cannot be
 * pinned, -EDQUOT: a limit of the user on their tables or on scratch memory, -EINVAL: they overlap) keeps its
 * place in that order: it gets that error as its completion, and the other ranks get -ECANCELED.
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
	__u64 counts;
	__u64 resv1;
};

/*
 * Completion by CQE: res is 0 or a negative errno, and big_cqe[0] is one more word w. On success: nanoseconds
 * from submission to completion in the low 40 bits, the plan handle in the 16 bits above. On error: the
 * rank at fault plus one in the low 32 bits, or 0 if no single rank is at fault.
 */
#define SWC_CQE_TIME_NS(w)	((w) & ((1ull << 40) - 1))
#define SWC_CQE_PLAN(w)		((__u32)((w) >> 40) & 0xffff)
#define SWC_CQE_CULPRIT(w)	((__s32)((w) & 0xffffffffu) - 1)	/* -1: none */

/* ------------------------------------------------------------------ completion ring */

/**
 * struct swc_completion - one entry of the completion ring
 * @user_data: from the descriptor
 * @seq: sequence number of the operation on its communicator, from 0
 * @bytes: size of the vector (all blocks) in bytes
 * @wait_ns: nanoseconds from submission until every rank of this node had submitted
 * @run_ns: nanoseconds from then until completion
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
 * The completion ring, one per open file, is two mappings. SWC_MMAP_RING is read-only: this header, then the
 * entries from byte SWC_RING_ENTRIES_OFFSET on. SWC_MMAP_RING_USER is one writable page: struct
 * swc_ring_user. Entry i is at index i & (entries - 1). The kernel produces; one consumer reads tail with
 * acquire, reads the entries head to tail - 1, and stores head with release. poll() reports POLLIN when
 * the ring is not empty.
 */
struct swc_ring_header {
	__u32 tail;		/* written by the kernel: entries posted so far */
	__u32 resv0[15];
	__u32 entries;		/* constant, a power of two */
	__u32 resv1[15];
};

struct swc_ring_user {
	__u32 head;		/* written by the consumer: entries consumed so far */
	__u32 resv[15];
};

#define SWC_RING_ENTRIES_OFFSET	128

/*
 * Offsets for mmap(2) on the device; mappings are shared.
 *
 * SWC_MMAP_RING, SWC_MMAP_RING_USER: the completion ring, see struct swc_ring_header.
 * SWC_MMAP_STATE: by communicator handle; one read-only page, struct swc_comm_state.
 * SWC_MMAP_SLOTS: by communicator handle; writable, zeroed memory that the members on this node share, of
 *	swc_comm_create.slot_bytes. The kernel reads only the words that SWC_IOC_SLOT_WAIT names.
 * SWC_MMAP_PROGRESS: by handle of a partitioned operation; writable, struct swc_progress.
 */
#define SWC_MMAP_RING		(1ull << 48)
#define SWC_MMAP_RING_USER	(2ull << 48)
#define SWC_MMAP_STATE(comm)	((3ull << 48) | ((__u64)(comm) << 16))
#define SWC_MMAP_SLOTS(comm)	((4ull << 48) | ((__u64)(comm) << 16))
#define SWC_MMAP_PROGRESS(handle)	((5ull << 48) | ((__u64)(handle) << 16))

/* The CPUs on which a member might run when it joined: the lowest and the highest number. */
struct swc_member_cpus {
	__u16 first;
	__u16 last;
};

struct swc_comm_state {
	__u32 aborted;		/* 0 while live, else 1 */
	__s32 error;		/* once aborted: why, a negative errno */
	__s32 culprit;		/* once aborted: the rank at fault, or -1 */
	__u32 ncpus;		/* CPUs on which the members on this node may run, together; constant */
	__u32 resv[12];
	struct swc_member_cpus cpus[256]; /* of members on this node, by rank, below 256; constant */
};

/* ------------------------------------------------------------------ control */

#define SWC_FEATURE_LOCAL	(1ull << 0)	/* transport between members of one node */
#define SWC_FEATURE_CANCEL	(1ull << 1)	/* io_uring can cancel commands (6.7 and later) */
#define SWC_FEATURE_SLOTS	(1ull << 2)	/* shared slots for small messages */
#define SWC_FEATURE_RDMA	(1ull << 3)	/* transport between nodes by RDMA verbs */
#define SWC_FEATURE_TCP		(1ull << 4)	/* transport between nodes by TCP */
#define SWC_FEATURE_TLS		(1ull << 5)	/* transport between nodes by encrypted TCP */
#define SWC_FEATURE_COPY	(1ull << 6)	/* plans may have SWC_STEP_COPY */

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
	__u32 rdma_port;		/* listens for other nodes; 0 without SWC_FEATURE_RDMA */
	char  reduce[SWC_NAME_BYTES];	/* reduction kernels in use: avx512, avx2, neon, scalar */
	__u32 tcp_port;			/* likewise; 0 without SWC_FEATURE_TCP */
	__u32 tls_port;			/* likewise; 0 without SWC_FEATURE_TLS */
	__u64 resv1[3];
};

/*
 * SWC_COMM_F_ANY_USER: processes of any user that know the id may join; otherwise only those of the user that
 *	created the communicator.
 * SWC_COMM_F_ALLOW_REORDER: plans marked SWC_PLAN_ORDER_VARIES may be used for floats.
 * SWC_COMM_F_URGENT: kernel workers of the communicator run at nice -20, before those of other
 *	communicators and most other processes. Needs CAP_SYS_NICE in the initial user namespace, or an
 *	RLIMIT_NICE of 40, of every member.
 */
#define SWC_COMM_F_ANY_USER	(1u << 0)
#define SWC_COMM_F_ALLOW_REORDER	(1u << 1)
#define SWC_COMM_F_URGENT		(1u << 2)
#define SWC_COMM_F_ALL	(SWC_COMM_F_ANY_USER | SWC_COMM_F_ALLOW_REORDER | SWC_COMM_F_URGENT)

/* How messages travel on a path between two nodes: by RDMA verbs, by TCP, by TCP encrypted with TLS 1.3. */
enum swc_transport_kind {
	SWC_TRANSPORT_RDMA,
	SWC_TRANSPORT_TCP,
	SWC_TRANSPORT_TLS,
	SWC_TRANSPORT_NR
};

/**
 * struct swc_node_path - a network path from this node to another
 * @node: the other node
 * @path: number of the path between the two nodes, the same on both, from 0 without gaps
 * @transport: enum swc_transport_kind, the same on both
 * @local: address of this node, a struct sockaddr_in or sockaddr_in6; its port is ignored
 * @remote: address of the other node, and the port that it listens on (its swc_info.rdma_port,
 *	tcp_port or tls_port)
 */
struct swc_node_path {
	__u32 node;
	__u16 path;
	__u16 transport;
	__u8  local[28];
	__u8  remote[28];
};

/**
 * struct swc_comm_create - become one rank of a communicator
 * @id: 128 random bits that all members share; a process that knows them may join
 * @nranks: number of members, 1 to SWC_MAX_RANKS
 * @rank: 0 to nranks - 1, each exactly once
 * @flags: SWC_COMM_F_*; equal on all members
 * @timeout_ms: how long to wait for other ranks, and the default deadline of operations, in milliseconds;
 *	0 is 30000
 * @slot_bytes: size of the shared slot memory, equal on all members of a node; 0: none
 * @nnodes: number of nodes; 0 or 1: all members are on this node, and the next three fields must be 0
 * @rank_node: address of __u32[nranks]: the node of each rank, 0 to nnodes - 1; that of @rank is this node
 * @paths: address of struct swc_node_path[npaths]: at least one to every node that plans name; sorted by
 *	node, and for each node by number. The kernel uses the table of the member of this node that joins
 *	first.
 * @npaths: entries of @paths
 * @comm: out: handle, valid in this open file
 * @join_ms: in: how long to wait for the other ranks of this node, if that is not @timeout_ms; 0: it is
 * @njoined: out with -ETIMEDOUT: how many ranks of this node have joined, this one included
 * @missing: in: 0; out with -ETIMEDOUT: the lowest rank of this node that has not joined
 *
 * The first member to join creates the communicator. Blocks (killable) until all ranks of this node have
 * joined; connections to other nodes are made when an operation first needs them. Errors: -EEXIST the
 * rank has joined already, -EACCES the communicator is another user's, -EPERM SWC_COMM_F_URGENT without the
 * right to it, -EPROTO members disagree on the arguments, -ETIMEDOUT not all ranks joined, -ENOSPC a limit
 * is reached, -EOPNOTSUPP a path's transport is not in this kernel, -EADDRINUSE the port at which a transport
 * listens is in use; and the error of the communicator, if it was aborted before this call returned.
 *
 * On a communicator of several nodes every operation that fails aborts the communicator. Nodes remember an id
 * for some time after its communicator has ended, to reject late members: an id must not be used again.
 */
struct swc_comm_create {
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
	union {
		__u32 join_ms;
		__u32 njoined;
	};
	__u32 missing;
};

/**
 * struct swc_comm_ref - names the communicator to leave or to abort
 * @comm: handle
 * @error: ABORT: the error that the members get, a positive errno below 512, but not EINTR, EAGAIN, EBUSY
 *	or ETIME, at which callers call again; 0: ECONNABORTED. LEAVE: 0
 * @other: ABORT: 0, or 1 + the rank because of which the caller aborts. ECONNRESET: it has left, and is at
 *	fault. EPROTO: it has called another collective than the caller. LEAVE: 0
 * @resv: must be 0
 *
 * LEAVE fails with -EBUSY while operations of this rank are in flight. Operations that other ranks submit
 * after a rank has left fail with -ECONNRESET. ABORT fails all operations in flight on all ranks; it
 * cannot be undone.
 */
struct swc_comm_ref {
	__u32 comm;
	__u32 error;
	__u32 other;
	__u32 resv;
};

/**
 * struct swc_comm_error - the last error of a communicator
 * @comm: handle
 * @error: out: a negative errno; 0: no error so far
 * @culprit: out: rank at fault, or -1
 * @aborted: out: 1 if the communicator is aborted, else 0
 * @seq: out: sequence number of the operation that failed
 * @text: out: one line for people, with ranks and processes
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
 * struct swc_plan_load - give a plan to the kernel, which checks and copies it
 * @comm: communicator handle
 * @bytes: size of the plan
 * @data: address of the plan (struct swc_plan_header)
 * @plan: out: handle, 1 to 65535, valid for this rank of this communicator
 * @resv: must be 0
 * @text: out: after -EINVAL, -EHOSTUNREACH and -EDQUOT: why the plan was refused, one line for people
 *
 * -EINVAL: the plan is not valid, or not for this communicator. -EHOSTUNREACH: it names a rank of a node to
 * which there is no path. -ENOSPC: too many plans (swc_info.max_plans). -EDQUOT: the user may not have the
 * memory, or so many connections as the plan needs.
 */
struct swc_plan_load {
	__u32 comm;
	__u32 bytes;
	__u64 data;
	__u32 plan;
	__u32 resv;
	char  text[SWC_TEXT_BYTES];
};

/* Operations in flight keep the plan until they complete. */
struct swc_plan_unload {
	__u32 comm;
	__u32 plan;
};

/**
 * struct swc_mem_reg - pin memory, so that operations can name it by a handle
 * @addr: start address
 * @bytes: length
 * @flags: must be 0
 * @region: out: handle, valid in this open file
 *
 * The pages stay pinned until SWC_IOC_MEM_UNREG or close(), or until the operations that use them then have
 * completed. They count against RLIMIT_MEMLOCK (-ENOMEM), and the table of them, up to 32 bytes per page,
 * counts as kernel memory of the user (-EDQUOT). Unmapping the memory meanwhile is safe, but operations go on
 * using the old pages. -ENOSPC: too many regions (swc_info.max_regions).
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
 * struct swc_ring_wait - sleep until the completion ring has new entries
 * @tail: the tail that the caller has read; returns at once if the tail differs
 * @timeout_ms: in milliseconds; 0: no limit. -ETIME when it expires.
 *
 * A call with a time-out is not restarted after a signal, as its time would begin anew: -EINTR. That may
 * come without a signal, too, if io_uring has work for the task.
 */
struct swc_ring_wait {
	__u32 tail;
	__u32 timeout_ms;
};

/**
 * struct swc_slot_wait - sleep until a word of the shared slot memory changes
 * @comm: communicator handle
 * @offset: byte offset of the 32-bit word in the slot memory, a multiple of 4
 * @value: the value that the caller has read; returns at once if the word differs
 * @timeout_ms: in milliseconds; 0: the deadline of the communicator. When it expires, the communicator
 *	is aborted with -ETIMEDOUT.
 * @suspect: rank that is expected to change the word: it is named in the error if the time expires, and the
 *	call fails with -ECONNRESET when it leaves. -1: any; the call then fails with -ECONNRESET once any
 *	member of this node has left
 * @waited_ms: how long the caller has waited before, for the text of the error, in milliseconds
 *
 * If the communicator is aborted, the call fails with the error of the communicator. -EINTR: a signal has
 * been handled. The call is never restarted, so a timer that fires again and again does not put off its end.
 */
struct swc_slot_wait {
	__u32 comm;
	__u32 offset;
	__u32 value;
	__u32 timeout_ms;
	__s32 suspect;
	__u32 waited_ms;
};

/* Wakes all callers of SWC_IOC_SLOT_WAIT on the communicator, which read their words again. */
struct swc_slot_wake {
	__u32 comm;
	__u32 resv;
};

/* ------------------------------------------------------------------ partitioned operations */

/**
 * struct swc_partitioned_init - make a collective that runs in partitions, any number of times
 * @desc: partition 0, as it would be submitted by itself. The buffers that the collective uses must be
 *	registered (@desc.send_region, @desc.recv_region), and @desc.flags must be 0.
 * @partitions: 1 to SWC_MAX_PARTITIONS
 * @handle: out: valid in this open file
 * @send_stride: bytes from the send buffer of a partition to that of the next
 * @recv_stride: bytes from the receive buffer of a partition to that of the next
 * @map_bytes: out: size of the mapping SWC_MMAP_PROGRESS(handle)
 * @resv: must be 0
 *
 * Each partition is a collective of @desc.count elements, which begins when all members have marked it ready;
 * members may do that in different orders. Other collectives may run on the communicator meanwhile, but
 * SWC_IOC_PARTITIONED_START has its place in the order of submissions, as if all partitions were
 * submitted there one after the other. -ENOSPC: too many partitioned operations in this open file.
 */
struct swc_partitioned_init {
	struct swc_desc desc;
	__u32 partitions;
	__u32 handle;
	__u64 send_stride;
	__u64 recv_stride;
	__u64 map_bytes;
	__u64 resv[2];
};

/**
 * struct swc_partitioned_ref - names a partitioned operation, or a partition of it
 * @handle: from SWC_IOC_PARTITIONED_INIT
 * @partition: WAIT: number of the partition, or SWC_ALL_PARTITIONS; else 0
 * @timeout_ms: WAIT: in milliseconds, 0: no limit; -ETIME when it expires. Else 0
 * @resv: must be 0
 *
 * START begins a round. It fails with -EBUSY while the last round is not done, and with -EAGAIN while
 * this rank has too many partitions on the communicator that are not ready (4 * SWC_MAX_PARTITIONS). KICK
 * lets the kernel read the queue of ready partitions. WAIT sleeps until the partition is done, or all
 * are; it returns 0 or the first error of the round, -EINVAL if no round was started, and -EINTR as
 * SWC_IOC_RING_WAIT does. FREE fails with -EBUSY while a round is not done.
 *
 * SWC_CMD_PARTITIONED_WAIT is WAIT as an io_uring command; @timeout_ms must be 0. No thread sleeps: the
 * CQE comes when the partition, or all partitions, of the round that is current at submission are done,
 * with the result of WAIT. More than 4 * SWC_MAX_PARTITIONS in flight for an operation get -EAGAIN.
 * IORING_OP_ASYNC_CANCEL does not find io_uring commands on any kernel. On kernels with SWC_FEATURE_CANCEL
 * they end with -ECANCELED when the ring is closed or the task exits. On others they end with the round or
 * the communicator, and closing the ring, or an execve() of the task that submitted them, waits for that.
 */
struct swc_partitioned_ref {
	__u32 handle;
	__u32 partition;
	__u32 timeout_ms;
	__u32 resv;
};

#define SWC_ALL_PARTITIONS	0xffffffffu

/**
 * struct swc_progress - the shared memory of a partitioned operation
 * @flags: SWC_PROGRESS_*; written by the kernel
 * @error: the first error of this round, a negative errno, or 0; written by the kernel before done[]
 * @round: number of the last round that was started, from 1; written by the kernel
 * @entries: entries of the queue, a power of two; constant
 * @queue: byte offset of __u32 queue[entries]; constant
 * @done: byte offset of __u32 done[partitions]; constant
 * @tail: entries of the queue that producers have taken in all rounds; written by producers, starts at 0
 *
 * To mark partition i ready: t = tail++ (atomically); store i + 1 to queue[t % entries] with release; a full
 * barrier; SWC_IOC_PARTITIONED_KICK if @flags has SWC_PROGRESS_KICK. Each partition must be marked
 * exactly once in a round. Partition i is done when done[i], read with acquire, is the number of the
 * round; then @error is valid for it.
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

/* The kernel does not read the queue without SWC_IOC_PARTITIONED_KICK. */
#define SWC_PROGRESS_KICK	(1u << 0)

/* ------------------------------------------------------------------ sparse collectives */

/**
 * struct swc_sparse_note - a sparse collective has ended, for the counters
 * @comm: communicator handle
 * @resv: must be 0
 * @bytes: size of its vector, added to SWC_STAT_SPARSE_BYTES
 * @reduced_bytes: size of the vectors that were reduced in its place, added to SWC_STAT_SPARSE_BYTES_REDUCED
 *
 * To the kernel these vectors are ordinary ones, so the caller says what they were for. Both sizes are at
 * most 2^46. Does not block. Fails with -EINVAL (reserved field, size) or -ENOENT (no such communicator).
 */
struct swc_sparse_note {
	__u32 comm;
	__u32 resv;
	__u64 bytes;
	__u64 reduced_bytes;
};

/* ------------------------------------------------------------------ ioctls and io_uring commands */

#define SWC_IOC_MAGIC		0xC5

#define SWC_IOC_INFO		_IOR(SWC_IOC_MAGIC, 0x00, struct swc_info)
#define SWC_IOC_COMM_CREATE	_IOWR(SWC_IOC_MAGIC, 0x01, struct swc_comm_create)
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

#define SWC_IOC_PARTITIONED_INIT	_IOWR(SWC_IOC_MAGIC, 0x0f, struct swc_partitioned_init)
#define SWC_IOC_PARTITIONED_START	_IOW(SWC_IOC_MAGIC, 0x10, struct swc_partitioned_ref)
#define SWC_IOC_PARTITIONED_KICK	_IOW(SWC_IOC_MAGIC, 0x11, struct swc_partitioned_ref)
#define SWC_IOC_PARTITIONED_WAIT	_IOW(SWC_IOC_MAGIC, 0x12, struct swc_partitioned_ref)
#define SWC_IOC_PARTITIONED_FREE	_IOW(SWC_IOC_MAGIC, 0x13, struct swc_partitioned_ref)
#define SWC_IOC_USER_QUERY	_IOWR(SWC_IOC_MAGIC, 0x14, struct swc_user_query)
#define SWC_IOC_TRACE		_IOWR(SWC_IOC_MAGIC, 0x15, struct swc_trace_query)
#define SWC_IOC_SPARSE_NOTE	_IOW(SWC_IOC_MAGIC, 0x16, struct swc_sparse_note)

/*
 * cmd_op of IORING_OP_URING_CMD; the payload of the SQE is the struct. COLLECTIVE needs a ring with
 * 128-byte SQEs and 32-byte CQEs, PARTITIONED_WAIT takes any ring.
 */
#define SWC_CMD_COLLECTIVE	_IOW(SWC_IOC_MAGIC, 0x80, struct swc_desc)
#define SWC_CMD_PARTITIONED_WAIT	_IOW(SWC_IOC_MAGIC, 0x81, struct swc_partitioned_ref)

#endif /* _UAPI_LINUX_SWINGCOLL_H */

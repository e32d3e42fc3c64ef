/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * swingcoll: queries. What the module tells about communicators, users and itself, for tools that watch them;
 * collectives need none of it. Programs include <linux/swingcoll.h>, which has the ioctls that take these
 * structs, and says what is common to all calls.
 *
 * SWC_IOC_COMM_QUERY: the state of communicators and their members.
 * SWC_IOC_USER_QUERY: what users have, and may have.
 * SWC_IOC_TRACE: the last events of a communicator.
 * SWC_IOC_STATS: counters of the module.
 */
#ifndef _UAPI_LINUX_SWINGCOLL_QUERY_H
#define _UAPI_LINUX_SWINGCOLL_QUERY_H

#include <linux/swingcoll_plan.h>
#include <linux/types.h>

#define SWC_TEXT_BYTES		256	/* of a line for people, with the terminating NUL */

/* ------------------------------------------------------------------ communicators */

enum swc_member_state { SWC_MEMBER_EMPTY, SWC_MEMBER_JOINED, SWC_MEMBER_LEFT, SWC_MEMBER_DEAD };

struct swc_member_info {
	__u32 rank;
	__u32 pid;		/* in the pid namespace of the reader, 0 if not visible there */
	__u32 state;		/* enum swc_member_state */
	__u32 inflight;		/* operations submitted and not complete */
	__u64 submitted;	/* operations submitted so far: the sequence number of the next one */
	__u64 idle_ns;		/* nanoseconds since its last submission */
	char  comm[16];		/* command name; '?' for bytes that are not printable ASCII */
};

enum swc_comm_status { SWC_COMM_FORMING, SWC_COMM_LIVE, SWC_COMM_ABORTED };

/**
 * struct swc_comm_query - get the state of one communicator after the other
 * @cursor: in: 0 for the first, else what the last call returned; out: for the next call, and the number of
 *	this communicator, see struct swc_trace_query
 * @max_members: entries of @members
 * @resv0: must be 0
 * @members: address of struct swc_member_info[@max_members], or 0; out: the members on this node, by rank
 * @nranks: out: members
 * @nlocal: out: members on this node; of them min(@max_members, @nlocal) are written
 * @status: out: enum swc_comm_status
 * @uid: out: owner, in the user namespace of the caller
 * @id_prefix: out: first four bytes of the id (the rest is secret)
 * @inflight: out: operations in flight
 * @oldest_ns: out: age of the oldest operation in flight, in nanoseconds
 * @oldest_seq: out: its sequence number
 * @completed: out: operations that have completed without an error
 * @failed: out: operations that have failed
 * @bytes: out: size of the vectors of completed operations, in bytes
 * @error: out: last error, a negative errno, or 0
 * @culprit: out: rank at fault, or -1
 * @text: out: that error in one line for people
 * @algo: out: algorithm of the oldest operation in flight, or else of the last one that ended
 *
 * Returns communicators of the caller's user, or all with CAP_SYS_ADMIN. -ENOENT after the last.
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

/* ------------------------------------------------------------------ users */

/*
 * What one user may have on this machine at a time; module parameters set the limits. Calls that would exceed
 * one fail with -EDQUOT. CONTEXTS: open files, of the user that opened them. COMMS, CONNS: communicators
 * and their connections to other nodes, of the user that created them. MEMORY: bytes of kernel memory for
 * all of these, for completion rings, slots, plans, operations with their scratch memory, and the tables of
 * pinned buffers; not their pages.
 */
enum swc_quota { SWC_QUOTA_CONTEXTS, SWC_QUOTA_COMMS, SWC_QUOTA_CONNS, SWC_QUOTA_MEMORY, SWC_QUOTA_NR };

struct swc_quota_use {
	__u64 used;
	__u64 most;		/* the most that was used at a time, since the user has had anything */
	__u64 limit;
	__u64 refused;		/* requests that would have exceeded the limit */
};

/**
 * struct swc_user_query - get what one user after the other has
 * @cursor: in: 0 for the first, else what the last call returned; out: for the next call
 * @uid: out: the user, in the user namespace of the caller
 * @resv: must be 0
 * @quota: out: by enum swc_quota
 *
 * Returns the caller's user, or with CAP_SYS_ADMIN all users that have anything. -ENOENT after the last.
 */
struct swc_user_query {
	__u64 cursor;
	__u32 uid;
	__u32 resv;
	struct swc_quota_use quota[SWC_QUOTA_NR];
};

/* ------------------------------------------------------------------ events */

/**
 * enum swc_trace_type - what happened; @rank is the rank concerned unless another one is named
 * @SWC_TRACE_JOIN: the rank has joined; @arg: the pid that it sees itself, and 1 in bit 32 if that is in
 *	another pid namespace than the reader's
 * @SWC_TRACE_LEAVE: the rank has left after @seq operations
 * @SWC_TRACE_DIED: the rank has gone without leaving, after @seq operations
 * @SWC_TRACE_SUBMIT: the rank has called operation @seq; @arg: size of the vector in bytes; @channel: enum
 *	swc_coll
 * @SWC_TRACE_START: likewise, as the last rank of this node: the operation begins
 * @SWC_TRACE_STEP: the rank begins or continues a step; @arg: step, and enum swc_step_kind above bit 32. Not
 *	recorded if it is the last one to come to a barrier.
 * @SWC_TRACE_SEGMENT: data of another node has arrived for the rank; @arg: source rank, and bytes above bit
 *	32
 * @SWC_TRACE_PLACED: a message has been written into the rank's memory; @arg: source rank, and step above
 *	bit 32
 * @SWC_TRACE_SENT: a message of the rank has left its memory; @arg: peer, and step above bit 32
 * @SWC_TRACE_COMPLETE: operation @seq completed for the rank; @arg: 0 or a negative errno as __s32, and the
 *	rank at fault or -1 above bit 32
 * @SWC_TRACE_ERROR: an error that left the communicator alive; @rank: at fault; @arg: negative errno
 * @SWC_TRACE_ABORT: the communicator was aborted; likewise
 * @SWC_TRACE_PATH_LEFT: a connection of the rank leaves a path, because the path is lost or the connection
 *	returns to its own path; @arg: peer, and path above bit 32; @seq: 0
 * @SWC_TRACE_PATH_TAKEN: such a connection continues on a path; likewise
 */
enum swc_trace_type {
	SWC_TRACE_JOIN = 1, SWC_TRACE_LEAVE, SWC_TRACE_DIED, SWC_TRACE_SUBMIT, SWC_TRACE_START,
	SWC_TRACE_STEP, SWC_TRACE_SEGMENT, SWC_TRACE_PLACED, SWC_TRACE_SENT, SWC_TRACE_COMPLETE,
	SWC_TRACE_ERROR, SWC_TRACE_ABORT, SWC_TRACE_PATH_LEFT, SWC_TRACE_PATH_TAKEN,
	SWC_TRACE_NR
};

/* swc_trace_record.rank of an event of no particular rank, and of the last of SWC_MAX_RANKS ranks. */
#define SWC_TRACE_NO_RANK	0xffff

/**
 * struct swc_trace_record - an event of a communicator
 * @ns: CLOCK_MONOTONIC
 * @seq: number of the operation concerned
 * @arg: see enum swc_trace_type
 * @index: low half of the record's number, from 0
 * @rank: rank, or SWC_TRACE_NO_RANK
 * @type: enum swc_trace_type
 * @channel: channel of the step, of the segment, or of the message; or see enum swc_trace_type
 *
 * Numbers are in the order in which events are recorded, which is nearly that of their times.
 */
struct swc_trace_record {
	__u64 ns;
	__u64 seq;
	__u64 arg;
	__u32 index;
	__u16 rank;
	__u8  type;
	__u8  channel;
};

/*
 * swc_trace_query.flags
 *
 * SWC_TRACE_ENDED: the communicator has ended; nothing is recorded any more.
 * SWC_TRACE_FAILED: @error, @culprit and @text are valid. Set for a communicator that was aborted, and for
 *	one that ended after an error.
 * SWC_TRACE_ABORTED: it was aborted.
 */
#define SWC_TRACE_ENDED		(1u << 0)
#define SWC_TRACE_FAILED	(1u << 1)
#define SWC_TRACE_ABORTED	(1u << 2)

/**
 * struct swc_trace_query - read the last events of a communicator, which may have ended
 * @comm: a handle of this file, or 0: by number
 * @max_records: entries of @records
 * @number: in: 0 with a handle, else the least number wanted; out: number of the communicator
 * @first: in: number of the first record wanted; out: where to go on, @written if there are no more
 * @records: address of struct swc_trace_record[@max_records], or 0 with @max_records 0
 * @count: out: records that were copied. Those that were overwritten before, or are just being written, are
 *	left out.
 * @flags: out: SWC_TRACE_*
 * @written: out: records so far; the last @capacity are kept
 * @ended_ns: out: nanoseconds since the communicator ended, 0 if it has not
 * @now_ns: out: CLOCK_MONOTONIC
 * @capacity: out: records that are kept
 * @nranks: out: members
 * @uid: out: owner, in the user namespace of the caller
 * @error: out: its failure, a negative errno
 * @culprit: out: rank at fault, or -1
 * @resv: must be 0
 * @text: out: the failure in one line for people
 *
 * All but the first five are ignored on input, except @resv. The owner of the communicator may read, and
 * CAP_SYS_ADMIN. -ENOENT: there is none; the caller may not read it; it ended too long ago; or recording is
 * off (module parameter trace_records).
 */
struct swc_trace_query {
	__u32 comm;
	__u32 max_records;
	__u64 number;
	__u64 first;
	__u64 records;
	__u32 count;
	__u32 flags;
	__u64 written;
	__u64 ended_ns;
	__u64 now_ns;
	__u32 capacity;
	__u32 nranks;
	__u32 uid;
	__s32 error;
	__s32 culprit;
	__u32 resv;
	char  text[SWC_TEXT_BYTES];
};

/* ------------------------------------------------------------------ counters */

/* Counters since the module was loaded. New ones are added at the end; swc_stats.count is their number. */
enum swc_stat {
	SWC_STAT_OPS_SUBMITTED, SWC_STAT_OPS_COMPLETED, SWC_STAT_OPS_FAILED, SWC_STAT_BYTES,
	SWC_STAT_STEPS_LOCAL, SWC_STAT_STEPS_NET, SWC_STAT_BYTES_REDUCED, SWC_STAT_BYTES_COPIED,
	SWC_STAT_WORKER_INLINE, SWC_STAT_WORKER_TASK, SWC_STAT_WORKER_KTHREAD,
	SWC_STAT_COMMS_CREATED, SWC_STAT_COMMS_ABORTED, SWC_STAT_TIMEOUTS, SWC_STAT_MISMATCHES,
	SWC_STAT_PLANS_LOADED, SWC_STAT_PLANS_REFUSED,
	SWC_STAT_REGIONS_PINNED, SWC_STAT_REGIONS_UNPINNED, SWC_STAT_PAGES_PINNED, SWC_STAT_PAGES_UNPINNED,
	SWC_STAT_CACHE_HITS, SWC_STAT_CACHE_MISSES, SWC_STAT_CACHE_DROPS,
	SWC_STAT_SLOT_SLEEPS, SWC_STAT_SLOT_WAKES,
	SWC_STAT_CONTEXTS_OPENED, SWC_STAT_CONTEXTS_CLOSED,
	SWC_STAT_CONNS_OPENED, SWC_STAT_CONNS_CLOSED, SWC_STAT_CONNS_REFUSED,
	SWC_STAT_MSGS_SENT, SWC_STAT_MSGS_RECEIVED, SWC_STAT_BYTES_SENT, SWC_STAT_BYTES_RECEIVED,
	SWC_STAT_BYTES_DIRECT, SWC_STAT_CREDIT_STALLS,
	SWC_STAT_DMA_CHANS_ACQUIRED, SWC_STAT_DMA_CHANS_RELEASED, SWC_STAT_DMA_JOBS, SWC_STAT_DMA_BYTES,
	SWC_STAT_DMA_FALLBACKS,
	SWC_STAT_RTR_EARLY,
	SWC_STAT_DMA_PREPARED,
	SWC_STAT_UNEXPECTED_BUFFERED, SWC_STAT_UNEXPECTED_REFUSED,
	SWC_STAT_WORKER_EVENT,
	SWC_STAT_SPARSE_BYTES, SWC_STAT_SPARSE_BYTES_REDUCED,
	SWC_STAT_CONNS_RESUMED, SWC_STAT_BYTES_RESENT,
	SWC_STAT_NR
};

struct swc_stats {
	__u32 max;		/* in: entries of values */
	__u32 count;		/* out: counters of the kernel */
	__u64 values;		/* address of __u64[max] */
};

#endif /* _UAPI_LINUX_SWINGCOLL_QUERY_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libswingcoll: collective communication carried out by the Linux kernel.
 *
 * Every call that returns int returns 0 or a negative errno, unless it says otherwise, and leaves
 * errno alone:
 *
 *	-EINVAL		an argument is out of range, or buffers overlap in a way that the collective
 *			does not allow
 *	-ENODEV, -EACCES	no /dev/swingcoll, or no permission to use it (swingctl doctor says
 *				what to do)
 *	-ENOMEM		out of memory, or the locked-memory limit (RLIMIT_MEMLOCK) is reached
 *	-EFAULT		a buffer is not memory of this process, or not writable
 *	-ETIMEDOUT	the deadline has passed; swingcoll_comm_error() names the rank that was late
 *	-ECONNRESET	a member died or left
 *	-ECONNABORTED	the communicator was aborted; it can only be passed to swingcoll_comm_agree() or
 *			swingcoll_comm_shrink(), or destroyed
 *	-ECANCELED	another rank's buffers were refused; swingcoll_comm_error() says whose and
 *			why
 *	-EPROTO		the ranks called different collectives, or with different counts or types
 *	-EAGAIN		64 collectives are in flight: wait for one first
 *	-EOPNOTSUPP	the algorithm asked for cannot do this; swingcoll_comm_error() says what it
 *			can do
 *	-EOVERFLOW	the vector is larger than 64 TiB
 *	-EBADF		the communicator belongs to the parent of this process (see Fork)
 *
 * Threads: calls on different communicators are independent. Calls on one communicator may come
 * from several threads. The order in which they are made is the order of the collectives and must
 * be the same on all ranks, so threads that share a communicator must agree on an order.
 *
 * Fork: a child inherits no communicator, request or registration; it must create communicators of
 * its own.
 *
 * Ownership: objects are opaque. What a call returns through a pointer belongs to the caller until
 * the call that is named for freeing it. Texts (const char *) that calls return are never freed by
 * the caller.
 */
#ifndef SWINGCOLL_H
#define SWINGCOLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header; swingcoll_version() has that of the library that runs. */
#define SWINGCOLL_VERSION_MAJOR 0
#define SWINGCOLL_VERSION_MINOR 1
#define SWINGCOLL_VERSION_PATCH 0

#define SWINGCOLL_ID_BYTES 16

/*
 * The id of a communicator: plain bytes that rank 0 makes and all ranks must have before they
 * create the communicator. A process that knows them may join, so they are a secret among the
 * ranks.
 */
struct swingcoll_id {
	unsigned char bytes[SWINGCOLL_ID_BYTES];
};

/* Element types. F16 is IEEE 754 binary16, BF16 the upper half of F32. */
enum swingcoll_dtype {
	SWINGCOLL_I8,
	SWINGCOLL_U8,
	SWINGCOLL_I16,
	SWINGCOLL_U16,
	SWINGCOLL_I32,
	SWINGCOLL_U32,
	SWINGCOLL_I64,
	SWINGCOLL_U64,
	SWINGCOLL_F16,
	SWINGCOLL_BF16,
	SWINGCOLL_F32,
	SWINGCOLL_F64,
};

/*
 * Reductions. AVG is SUM divided by the number of ranks; BAND, BOR and BXOR are for integer types
 * only.
 */
enum swingcoll_redop {
	SWINGCOLL_SUM,
	SWINGCOLL_PROD,
	SWINGCOLL_MIN,
	SWINGCOLL_MAX,
	SWINGCOLL_AVG,
	SWINGCOLL_BAND,
	SWINGCOLL_BOR,
	SWINGCOLL_BXOR,
};

/* Collectives, for struct swingcoll_call and the names below. */
enum swingcoll_coll {
	SWINGCOLL_ALLREDUCE,
	SWINGCOLL_REDUCE_SCATTER,
	SWINGCOLL_ALLGATHER,
	SWINGCOLL_BROADCAST,
	SWINGCOLL_REDUCE,
	SWINGCOLL_BARRIER,
	SWINGCOLL_ALLTOALL,
	SWINGCOLL_GATHER,
	SWINGCOLL_SCATTER,
};

/* One rank's handle of a communicator. */
struct swingcoll_comm;
/* A collective in flight, of one rank. */
struct swingcoll_req;

/*
 * Options of a communicator. Zero the struct and set what is wanted. They must be equal on all
 * ranks, except use_io_uring and progress. Texts are copied.
 *
 * timeout_ms	deadline of the creation and of each operation, in milliseconds; 0: 30000
 * op_timeout_ms	deadline of each operation, if it is another; SWINGCOLL_NO_DEADLINE: none, only a
 *		rank that dies or leaves ends the wait for it; 0: timeout_ms
 * flags	SWINGCOLL_ANY_USER, SWINGCOLL_ALLOW_REORDER, SWINGCOLL_URGENT or SWINGCOLL_TRY_URGENT,
 *		SWINGCOLL_SPARSE_AUTO, SWINGCOLL_EAGER
 * algo		NULL or "auto"; the name of an algorithm (swingcoll_algo_name()), with a number as
 *		in "swing-h:2" if it takes one; "file:PATH" for a plan file, see
 *		swingcoll-plan(5); or "forest", the fastest trees for large vectors on topo, with
 *		a number of segments as in "forest:64" or without
 * slot_max	largest payload in bytes that goes through the slots (shared memory, for ranks of
 *		one node); 0: 128 KiB / nranks, or none if algo names one; -1: none
 * use_io_uring	0: io_uring if it is allowed, else ioctl; 1: io_uring or failure; -1: ioctl
 * topo		shape of the network, such as "torus:4x4*8", or "@FILE", see swingcoll-topology(7);
 *		NULL: all ranks are on one node, or, with a bootstrap, what that finds
 * tuning	file of measured times that corrects the automatic choice, as swingperf --tune
 *		writes it; NULL: none
 * progress	NULL, or a function that blocking calls and swingcoll_wait() call again and again
 *		while they wait, at least every millisecond, for example to let another library
 *		progress. It runs in the waiting thread and must not call this library, except
 *		swingcoll_test(). A rank then polls for small messages instead of sleeping
 * progress_arg	its argument
 */
struct swingcoll_comm_opts {
	uint32_t timeout_ms;
	uint32_t flags;
	const char *algo;
	int64_t slot_max;
	int32_t use_io_uring;
	uint32_t reserved0; /* 0 */
	const char *topo;
	const char *tuning;
	void (*progress)(void *arg);
	void *progress_arg;
	uint32_t op_timeout_ms;
	uint32_t reserved[3]; /* 0 */
};

#define SWINGCOLL_NO_DEADLINE UINT32_MAX

#define SWINGCOLL_ANY_USER (1u << 0) /* members may belong to different users */
#define SWINGCOLL_ALLOW_REORDER                                                                    \
	(1u << 1) /* float results may differ in their last bits between ranks */
#define SWINGCOLL_URGENT                                                                           \
	(1u << 2) /* runs before the collectives of other communicators; -EPERM without the right */
#define SWINGCOLL_TRY_URGENT (1u << 16) /* likewise if this process has the right, else not */
#define SWINGCOLL_SPARSE_AUTO                                                                      \
	(1u << 17) /* swingcoll_allreduce() sends only what is not zero where that is faster: see
		      swingcoll_sparse_allreduce(3), whose rules then hold */
#define SWINGCOLL_EAGER                                                                            \
	(1u << 18) /* blocking broadcast, scatter, reduce and gather need not wait for other ranks
		      if the buffers can be used again: they then match blocking calls only */

/* The outcome of a finished collective. */
struct swingcoll_result {
	int error;	  /* 0 or a negative errno, the same that the call returns */
	int culprit;	  /* rank at fault, or -1 if none is known */
	uint64_t time_ns; /* from submission to completion; 0 if it went through the slots */
	const char *algo; /* algorithm that ran; "slots" for small messages. Valid as long as the
			     communicator */
};

/* The version of the library, such as "0.1.0". */
const char *swingcoll_version(void);

/* Text for a negative errno that a call has returned, or for 0; never NULL. */
const char *swingcoll_strerror(int error);

/*
 * Whether a communicator can only be passed to swingcoll_comm_agree() or swingcoll_comm_shrink(), or
 * destroyed, by the error of a collective or of a wait for one: -ECONNRESET, -ECONNABORTED,
 * -ETIMEDOUT, -EIO and -ENODEV. Survivors of one failure may get different ones of these, so test
 * with this and not for one of them. After another error of an operation, such as -EPROTO, a
 * communicator of one node stays usable; on several nodes it fails, too, and the next collective
 * returns -ECONNABORTED.
 */
bool swingcoll_comm_failed(int error);

/* Make a new random id. */
int swingcoll_unique_id(struct swingcoll_id *id);

/*
 * Create a communicator of ranks on one node. All nranks ranks call it with the same id; rank is 0
 * to nranks - 1. Blocks until all have called it or the deadline passes. opts NULL: defaults. *comm
 * belongs to the caller until swingcoll_comm_destroy(); it is NULL after a failure. -EEXIST:
 * another process has this rank.
 */
int swingcoll_comm_create(struct swingcoll_comm **comm, const struct swingcoll_id *id, int nranks,
			  int rank, const struct swingcoll_comm_opts *opts);

/*
 * Check options for so many ranks, without creating anything: 0, or what swingcoll_comm_create()
 * would return, with one line of at most size bytes in text that names the fault and what would be
 * accepted. Whether an algorithm can do a collective shows only when that is called.
 */
int swingcoll_opts_check(const struct swingcoll_comm_opts *opts, int nranks, char *text,
			 size_t size);

/*
 * Bootstrap: a way to exchange a few bytes between all ranks before there is a communicator. Ranks
 * on several nodes tell each other by it who they are, on which node they run, and which addresses
 * the node has.
 *
 * rank, nranks	 this process, and how many there are
 * allgather	 an exchange: mine points to bytes bytes of this rank, all to room for nranks *
 *		 bytes, to be filled in the order of the ranks. All ranks call it alike; it blocks
 *		 until all have. Returns 0 or a negative errno
 * arg		 its first argument
 * release	 called by swingcoll_bootstrap_free(); may be NULL
 */
struct swingcoll_bootstrap {
	int rank;
	int nranks;
	int (*allgather)(void *arg, const void *mine, void *all, size_t bytes);
	void *arg;
	void (*release)(struct swingcoll_bootstrap *boot);
};

/*
 * Create a communicator of all ranks of boot, on one node or many. All ranks call it; it blocks
 * until all have. Either all ranks succeed or none, with the same error as far as the exchange
 * still works; swingcoll_bootstrap_error() then says what was wrong, and where. boot is not used
 * after the return. *comm as for swingcoll_comm_create().
 */
int swingcoll_comm_create_from(struct swingcoll_comm **comm, const struct swingcoll_bootstrap *boot,
			       const struct swingcoll_comm_opts *opts);

/*
 * Bootstraps that come with the library. _env: by TCP to a root that the environment names
 * (SWINGCOLL_ROOT and others, see swingcoll(7)). _auto: the same if the environment names a root,
 * else by PMIx if a launcher offers it, else one rank. *boot belongs to the caller until
 * swingcoll_bootstrap_free(), which takes NULL too. It may serve for several communicators, one
 * after the other, and for exchanges of the caller's own.
 */
int swingcoll_bootstrap_env(struct swingcoll_bootstrap **boot);
int swingcoll_bootstrap_auto(struct swingcoll_bootstrap **boot);
void swingcoll_bootstrap_free(struct swingcoll_bootstrap *boot);

/*
 * Whether a launcher has started this process, by the environment; nothing is connected. Returns 1 if so:
 * *from is then the name of the variable that tells, *rank and *nranks are what it tells, or -1 and 0 if
 * only the bootstrap can tell (PMIx). Returns 0 without a launcher, or a negative errno if the variables
 * contradict each other, which swingcoll_bootstrap_error() describes.
 */
int swingcoll_bootstrap_launcher(const char **from, int *rank, int *nranks);

/* A bootstrap, swingcoll_comm_create_from() and swingcoll_bootstrap_free() in one. */
int swingcoll_comm_create_env(struct swingcoll_comm **comm, const struct swingcoll_comm_opts *opts);
int swingcoll_comm_create_auto(struct swingcoll_comm **comm,
			       const struct swingcoll_comm_opts *opts);

/*
 * One line on why the last of the calls above, or swingcoll_comm_create(), failed in this thread;
 * "" if none has. Valid until the next of them.
 */
const char *swingcoll_bootstrap_error(void);
/* For bootstraps of the caller's own: set that line, as printf() does. Returns error. */
int swingcoll_bootstrap_fail(int error, const char *format, ...)
#ifdef __GNUC__
	__attribute__((format(printf, 2, 3)))
#endif
	;
/*
 * For bootstraps of the caller's own: how long an exchange may take, in milliseconds:
 * SWINGCOLL_BOOT_TIMEOUT (seconds), or 120 s. -EINVAL: the variable is not a number from 1 to
 * 86400.
 */
int swingcoll_bootstrap_timeout(uint32_t *timeout_ms);

/*
 * Wait for this rank's operations in flight (they end by their deadline at the latest), leave the
 * communicator, free it. It is freed in any case; the return value tells of an error on the way.
 * NULL is allowed. Not collective.
 */
int swingcoll_comm_destroy(struct swingcoll_comm *comm);

/*
 * End all operations of all members with -ECONNABORTED, those in flight and all later ones. Any
 * thread; does not block.
 */
int swingcoll_comm_abort(struct swingcoll_comm *comm);

/*
 * Agree on a flag, although ranks die before or meanwhile, and also when the communicator has failed: *flag
 * becomes the bitwise AND of the flags of the ranks that take part, the same on all of them. Collective
 * among the ranks that live: all call this and swingcoll_comm_shrink() in the same
 * order, one thread of a rank at a time; other collectives may run. Blocks until all have called it, died or
 * left, at most until timeout_ms of the communicator.
 *
 * 0: all ranks took part that did in the agreements before. -ECONNRESET: some did not, and *flag is valid as
 * well; this acknowledges their failure, so the next agreement returns 0 if no others fail. Like *flag, it is
 * the same on all ranks. -ETIMEDOUT: a live rank did not call it in time; others may get another result.
 * -ECONNABORTED: other ranks go on without this one.
 */
int swingcoll_comm_agree(struct swingcoll_comm *comm, int *flag);
/*
 * The ranks whose failure the agreements so far have acknowledged, those in shrinks included: writes at most
 * max of them, in ascending order, and returns how many there are, which may be more than max. After the same
 * calls the same on all ranks.
 */
int swingcoll_comm_get_failed(struct swingcoll_comm *comm, int *ranks, int max);

/*
 * Create a smaller communicator, of the ranks that live and that no rank excludes. All of them call this,
 * and agree on who they are: also if they have noticed different failures, or ranks die meanwhile, all get
 * the same communicator, or all an error. They keep their order in *out. A live rank that is to be left out
 * must be in the list of nexclude ranks of at least one rank; it need not call this, and gets -ECONNABORTED
 * if it does. An empty list excludes the rank at fault of the last failure. comm may have been aborted, and
 * remains to be destroyed. Options: those of comm, except algorithm and topology, which are chosen as if none
 * had been named. Blocks until the remaining ranks have called it, at most until timeout_ms of comm:
 * -ETIMEDOUT. *out belongs to the caller until swingcoll_comm_destroy().
 */
int swingcoll_comm_shrink(struct swingcoll_comm *comm, const int *exclude, int nexclude,
			  struct swingcoll_comm **out);

/*
 * Create a larger communicator, of the ranks of comm and of nnew newcomers, for example in the place of ranks
 * that a shrink has dropped. All ranks of comm call _grow alike, in the order of its collectives; they keep
 * their numbers in *out. Newcomers call _join, from any node, at the same time: newcomer which, of 0 to nnew -
 * 1, gets the rank after those of comm and of the newcomers before it; with nnew 0, which and nnew are what the
 * environment tells as rank and number of ranks. root: HOST:PORT, an address of rank 0 of comm and a free port
 * there; NULL: SWINGCOLL_ROOT. All give the same options, which may be others than those of comm. Blocks
 * until all have called it, at most for SWINGCOLL_BOOT_TIMEOUT. Either all succeed, or none as far as they
 * can still tell each other; swingcoll_bootstrap_error() then says what was wrong. comm stays usable if only
 * newcomers have failed, and remains to be destroyed. *out belongs to the caller until
 * swingcoll_comm_destroy().
 */
int swingcoll_comm_grow(struct swingcoll_comm *comm, const char *root, int nnew,
			const struct swingcoll_comm_opts *opts, struct swingcoll_comm **out);
int swingcoll_comm_join(const char *root, int nnew, int which,
			const struct swingcoll_comm_opts *opts, struct swingcoll_comm **out);

/* This rank, and the number of ranks. */
int swingcoll_comm_rank(const struct swingcoll_comm *comm);
int swingcoll_comm_size(const struct swingcoll_comm *comm);
/* Number of nodes that the ranks are on. */
int swingcoll_comm_nodes(const struct swingcoll_comm *comm);
/* The node of a rank, from 0; -EINVAL if there is no such rank. */
int swingcoll_comm_rank_node(const struct swingcoll_comm *comm, int rank);
/*
 * The topology that plans are made for, as text of at most size bytes. Returns the full length, as
 * snprintf() does.
 */
int swingcoll_comm_topo(const struct swingcoll_comm *comm, char *text, size_t size);

/*
 * One line on the last failure: which rank, and what. Writes at most size bytes, NUL included; text
 * may be NULL. Returns the error, 0 if there was none. *culprit, if not NULL, is the rank at fault
 * or -1.
 */
int swingcoll_comm_error(struct swingcoll_comm *comm, char *text, size_t size, int *culprit);

/*
 * Algorithm of the last collective that succeeded on this communicator, by any call; "slots" for
 * small messages, "?" before the first. Valid as long as the communicator.
 */
const char *swingcoll_comm_algo(const struct swingcoll_comm *comm);

/*
 * Blocking collectives. Counts are in elements, and the same on all ranks. Buffers are disjoint or
 * in place as each line says; any other overlap is -EINVAL. Buffers are aligned to their element
 * type.
 *
 * allreduce	  recv[i] = op over ranks of send[i], i < count, on every rank. In place:
 *		  send == recv
 * reduce_scatter recv[i] = op over ranks of send[rank * count + i], i < count; send has
 *		  nranks * count elements. In place: recv == send + rank * count elements
 * allgather	  recv[r * count + i] = send of rank r [i]; recv has nranks * count elements. In
 *		  place: send == recv + rank * count elements
 * broadcast	  recv[i] = send[i] of root; send is read on root only, and may be NULL elsewhere.
 *		  In place: send == recv
 * reduce	  recv[i] on root = op over ranks of send[i]; recv is not used elsewhere and may be
 *		  NULL. In place: send == recv
 * barrier	  returns when every rank has called it
 * alltoall	  recv[r * count + i] = send[rank * count + i] of rank r, i < count; both have
 *		  nranks * count elements. In place: send == recv
 * gather	  recv[r * count + i] on root = send of rank r [i], i < count; recv has nranks * count
 *		  elements there, is not used elsewhere and may be NULL. In place, on root: send ==
 *		  recv + root * count elements
 * scatter	  recv[i] = send[rank * count + i] of root, i < count; send has nranks * count
 *		  elements there, is not used elsewhere and may be NULL. In place, on root: recv ==
 *		  send + root * count elements
 */
int swingcoll_allreduce(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
			enum swingcoll_redop op, struct swingcoll_comm *comm);
int swingcoll_reduce_scatter(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
			     enum swingcoll_redop op, struct swingcoll_comm *comm);
int swingcoll_allgather(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
			struct swingcoll_comm *comm);
int swingcoll_broadcast(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
			int root, struct swingcoll_comm *comm);
int swingcoll_reduce(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
		     enum swingcoll_redop op, int root, struct swingcoll_comm *comm);
int swingcoll_barrier(struct swingcoll_comm *comm);
int swingcoll_alltoall(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
		       struct swingcoll_comm *comm);
int swingcoll_gather(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
		     int root, struct swingcoll_comm *comm);
int swingcoll_scatter(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
		      int root, struct swingcoll_comm *comm);

/*
 * Gather and scatter with a count for each rank. counts has one for each rank, and is the same on all:
 * a rank that does not know the others' gets them by another collective first. On root, the shards
 * follow one another without gaps, so that of rank r begins with element counts[0] + ... +
 * counts[r - 1]. In place as above, at the place of root's shard. The array is read during the call.
 */
int swingcoll_gatherv(const void *send, void *recv, const uint64_t *counts,
		      enum swingcoll_dtype dtype, int root, struct swingcoll_comm *comm);
int swingcoll_scatterv(const void *send, void *recv, const uint64_t *counts,
		       enum swingcoll_dtype dtype, int root, struct swingcoll_comm *comm);

/*
 * The same, without waiting. *req must be passed to swingcoll_wait(), or to swingcoll_test() until
 * that returns something else than -EINPROGRESS. The buffers belong to the operation until then. At
 * most 64 operations are in flight per communicator; one more is refused with -EAGAIN.
 */
int swingcoll_iallreduce(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
			 enum swingcoll_redop op, struct swingcoll_comm *comm,
			 struct swingcoll_req **req);
int swingcoll_ireduce_scatter(const void *send, void *recv, size_t count,
			      enum swingcoll_dtype dtype, enum swingcoll_redop op,
			      struct swingcoll_comm *comm, struct swingcoll_req **req);
int swingcoll_iallgather(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
			 struct swingcoll_comm *comm, struct swingcoll_req **req);
int swingcoll_ibroadcast(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
			 int root, struct swingcoll_comm *comm, struct swingcoll_req **req);
int swingcoll_ireduce(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
		      enum swingcoll_redop op, int root, struct swingcoll_comm *comm,
		      struct swingcoll_req **req);
int swingcoll_ibarrier(struct swingcoll_comm *comm, struct swingcoll_req **req);
int swingcoll_ialltoall(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
			struct swingcoll_comm *comm, struct swingcoll_req **req);
int swingcoll_igather(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
		      int root, struct swingcoll_comm *comm, struct swingcoll_req **req);
int swingcoll_iscatter(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
		       int root, struct swingcoll_comm *comm, struct swingcoll_req **req);
int swingcoll_igatherv(const void *send, void *recv, const uint64_t *counts,
		       enum swingcoll_dtype dtype, int root, struct swingcoll_comm *comm,
		       struct swingcoll_req **req);
int swingcoll_iscatterv(const void *send, void *recv, const uint64_t *counts,
			enum swingcoll_dtype dtype, int root, struct swingcoll_comm *comm,
			struct swingcoll_req **req);

/*
 * Sleep until the operation is done, free the request, return the operation's error. result may be
 * NULL.
 */
int swingcoll_wait(struct swingcoll_req *req, struct swingcoll_result *result);

/*
 * Return -EINPROGRESS while the operation runs; the request stays valid. Otherwise free the request
 * and return as swingcoll_wait() does. Does not block, and makes a system call only if there is
 * something to collect.
 */
int swingcoll_test(struct swingcoll_req *req, struct swingcoll_result *result);

/*
 * Partitioned collectives, in the way of MPI 4: a large operation whose data is produced and used
 * in partitions. *p is persistent: made once, started as often as wanted, freed by
 * swingcoll_pfree() before the communicator is destroyed. Its buffers are pinned as long as it
 * lives. All ranks call _init alike; it does not wait for the others.
 *
 * The buffers hold the partitions one after the other, and partition i is a collective of count
 * elements by itself:
 * pallreduce	   elements i * count and up of both buffers
 * preduce_scatter nranks * count elements from send + i * nranks * count to count elements at
 *		   recv + i * count
 * pallgather	   count elements from send + i * count to nranks * count elements at
 *		   recv + i * nranks * count
 * Only pallreduce may be in place. There are 1 to 4096 partitions.
 *
 * swingcoll_pstart()	begin a round. The round has one place in the order of the collectives, the
 *			same on all ranks, as if all partitions were called there. -EBUSY: the last
 *			round is not done
 * swingcoll_pready()	the data of a partition is complete; the caller does not touch it until the
 *			partition is done. From any thread, in any order, once per round. Makes a
 *			system call only if the kernel sleeps. The kernel runs a partition when all
 *			ranks have marked it ready
 * swingcoll_parrived()	1 if a partition is done, 0 if not, or an error; makes no system call
 * swingcoll_pwait()	sleep until a partition, or SWINGCOLL_ALL_PARTITIONS, are done; 0 or the
 *			first error
 */
struct swingcoll_partitioned;

#define SWINGCOLL_ALL_PARTITIONS (-1)

int swingcoll_pallreduce_init(const void *send, void *recv, int partitions, size_t count,
			      enum swingcoll_dtype dtype, enum swingcoll_redop op,
			      struct swingcoll_comm *comm, struct swingcoll_partitioned **p);
int swingcoll_preduce_scatter_init(const void *send, void *recv, int partitions, size_t count,
				   enum swingcoll_dtype dtype, enum swingcoll_redop op,
				   struct swingcoll_comm *comm, struct swingcoll_partitioned **p);
int swingcoll_pallgather_init(const void *send, void *recv, int partitions, size_t count,
			      enum swingcoll_dtype dtype, struct swingcoll_comm *comm,
			      struct swingcoll_partitioned **p);
int swingcoll_pstart(struct swingcoll_partitioned *p);
int swingcoll_pready(struct swingcoll_partitioned *p, int partition);
int swingcoll_parrived(struct swingcoll_partitioned *p, int partition);
int swingcoll_pwait(struct swingcoll_partitioned *p, int partition);
/* Free; -EBUSY, and nothing is freed, while a round is not done. NULL is allowed. */
int swingcoll_pfree(struct swingcoll_partitioned *p);

/*
 * Register memory: pin it ahead of use, for all communicators of this process. Optional: the kernel
 * registers other buffers on first use and drops that when they are unmapped. addr need not be
 * aligned to pages. -ENOMEM: see RLIMIT_MEMLOCK. Unregister by the same addr, before the memory is
 * unmapped; -EINVAL if there is no such registration.
 */
int swingcoll_mem_register(void *addr, size_t bytes);
int swingcoll_mem_unregister(void *addr);

/*
 * Names for people and command lines: "f32", "sum", "allreduce"; "?" for an unknown value. Parsers
 * return the value or -EINVAL. swingcoll_dtype_size() is in bytes, 0 for an unknown type.
 */
size_t swingcoll_dtype_size(enum swingcoll_dtype dtype);
const char *swingcoll_dtype_name(enum swingcoll_dtype dtype);
const char *swingcoll_redop_name(enum swingcoll_redop op);
const char *swingcoll_coll_name(enum swingcoll_coll coll);
int swingcoll_dtype_parse(const char *name);
int swingcoll_redop_parse(const char *name);
int swingcoll_coll_parse(const char *name);
/* 1 if the pair makes sense (bit operations are for integers only), else 0. */
int swingcoll_supported(enum swingcoll_dtype dtype, enum swingcoll_redop op);
/* Names of the algorithms, by index from 0; NULL after the last. */
const char *swingcoll_algo_name(int index);

/*
 * Collectives in the caller's own io_uring (set up with IORING_SETUP_SQE128 | IORING_SETUP_CQE32).
 *
 * swingcoll_prep() fills a 128-byte SQE for a non-blocking collective; the caller sets user_data
 * and submits it. The order of submission is the order of the collectives. swingcoll_cqe_result()
 * reads the CQE: it returns the operation's error and fills result, which may be NULL. The
 * communicator must outlive both. Fields of struct swingcoll_call are the arguments of the blocking
 * call; root is 0 where there is none. With counts, SWINGCOLL_GATHER is gatherv and SWINGCOLL_SCATTER
 * scatterv, count is 0, and the array must stay as it is until the operation has completed.
 */
struct io_uring_sqe;
struct io_uring_cqe;

struct swingcoll_call {
	enum swingcoll_coll coll;
	enum swingcoll_dtype dtype;
	enum swingcoll_redop op;
	int root;
	const void *send;
	void *recv;
	size_t count;
	uint32_t timeout_ms; /* 0: the communicator's */
	uint32_t reserved;   /* 0 */
	const uint64_t *counts;
};

int swingcoll_prep(struct io_uring_sqe *sqe, struct swingcoll_comm *comm,
		   const struct swingcoll_call *call);
int swingcoll_cqe_result(struct swingcoll_comm *comm, const struct io_uring_cqe *cqe,
			 struct swingcoll_result *result);

/*
 * swingcoll_pwait() in the caller's own io_uring: fill an SQE (64 bytes are enough) whose CQE comes
 * when a partition, or SWINGCOLL_ALL_PARTITIONS, of the current round are done; its res is 0 or the
 * first error. Any number of them may be in flight, in any order. The caller sets user_data and
 * submits before the next round begins.
 */
int swingcoll_prep_pwait(struct io_uring_sqe *sqe, struct swingcoll_partitioned *p, int partition);

#ifdef __cplusplus
}
#endif

#endif /* SWINGCOLL_H */

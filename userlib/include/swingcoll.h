/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libswingcoll: collective communication carried out by the Linux kernel.
 *
 * Every call returns 0 or a negative errno and leaves errno alone:
 *
 *	-EINVAL		an argument is wrong
 *	-ENODEV, -EACCES	no /dev/swingcoll, or no right to it (swingctl doctor says what to do)
 *	-ENOMEM		memory, or the locked-memory limit, is used up
 *	-EFAULT		a buffer is not (writable) memory
 *	-ETIMEDOUT	the deadline passed; swingcoll_comm_error() names who was late
 *	-ECONNRESET	a member died or left
 *	-ECONNABORTED	the communicator was aborted; only destroy is left to do
 *	-ECANCELED	another rank's buffers were refused; swingcoll_comm_error() tells whose and why
 *	-EPROTO		the ranks called different collectives, or with different counts or types
 *	-EAGAIN		64 collectives are in flight: wait for one first
 *	-EOPNOTSUPP	the algorithm asked for cannot do this; swingcoll_comm_error() says what it can
 *	-EOVERFLOW	the vector is larger than 64 TiB
 *	-EBADF		the communicator belongs to the process that this one was forked from
 *
 * Threads: calls on different communicators are independent. Calls on one communicator may come from
 * several threads; the order in which they are made is the order of the collectives and must be the same
 * on all ranks, so threads that share a communicator must agree on it among themselves.
 *
 * Fork: a child inherits nothing; it must create communicators of its own.
 */
#ifndef SWINGCOLL_H
#define SWINGCOLL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SWINGCOLL_ID_BYTES 16

/* Names a communicator. Plain bytes; whoever knows them may join. Hand it round by any means. */
struct swingcoll_id {
	unsigned char bytes[SWINGCOLL_ID_BYTES];
};

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

enum swingcoll_coll {
	SWINGCOLL_ALLREDUCE,
	SWINGCOLL_REDUCE_SCATTER,
	SWINGCOLL_ALLGATHER,
	SWINGCOLL_BROADCAST,
	SWINGCOLL_REDUCE,
	SWINGCOLL_BARRIER,
	SWINGCOLL_ALLTOALL,
};

/* One rank's membership in a communicator. */
struct swingcoll_comm;
/* A collective in flight. */
struct swingcoll_req;

/*
 * Options of a communicator; zero the struct and set what is wanted. They must be equal on all ranks,
 * except use_io_uring.
 */
struct swingcoll_comm_opts {
	uint32_t timeout_ms; /* deadline of creation and of each operation; 0: 30000 */
	uint32_t flags;	     /* SWINGCOLL_ANY_USER, SWINGCOLL_ALLOW_REORDER, SWINGCOLL_URGENT */
	const char
		*algo; /* NULL or "auto"; an algorithm's name (swingcoll_algo_name()), with a number
				as in "swing-h:2" if it takes one; or "file:PATH", see
				swingcoll-plan(5) */
	int64_t slot_max;     /* largest payload in bytes that goes through the shared slots;
				0: 128 KiB / nranks, or none if algo names one; -1: none */
	int32_t use_io_uring; /* 0: if allowed, else ioctl; 1: must; -1: never */
	uint32_t reserved0;   /* 0 */
	const char *topo;     /* shape of the network, such as "torus:4x4*8", or "@FILE", see
				 swingcoll-topology(7);
				 NULL: all ranks on one node; with a bootstrap, what that finds */
	const char *tuning;   /* file of measured times that corrects the automatic choice, as
				 swingperf --tune writes it; NULL: none */
	uint32_t reserved[8]; /* 0 */
};

#define SWINGCOLL_ANY_USER (1u << 0)	  /* members may belong to different users */
#define SWINGCOLL_ALLOW_REORDER (1u << 1) /* float results may differ in last bits between ranks */
#define SWINGCOLL_URGENT (1u << 2)	  /* comes before the collectives of other communicators */

/* What is known of a finished collective. */
struct swingcoll_result {
	int error;	  /* 0 or a negative errno, the same that the call returns */
	int culprit;	  /* rank at fault, or -1 */
	uint64_t time_ns; /* from submission to completion; 0 if it went through the slots */
	const char *algo; /* algorithm that ran; "slots" for small messages. Static, or lives as
			     long as the communicator */
};

const char *swingcoll_version(void);

/* Text for a (negative) error, never NULL, static. */
const char *swingcoll_strerror(int error);

/* A new random id. */
int swingcoll_unique_id(struct swingcoll_id *id);

/*
 * Join a communicator of nranks ranks as rank. Blocks until all have come or the time is up.
 * opts NULL: defaults. *comm is the caller's until swingcoll_comm_destroy().
 */
int swingcoll_comm_create(struct swingcoll_comm **comm, const struct swingcoll_id *id, int nranks,
			  int rank, const struct swingcoll_comm_opts *opts);

/*
 * Whether options make sense for so many ranks, without joining anything: 0, or what
 * swingcoll_comm_create() would return, with one line in text that names the fault and what would be
 * accepted. Whether an algorithm can do a collective shows only when it is called.
 */
int swingcoll_opts_check(const struct swingcoll_comm_opts *opts, int nranks, char *text,
			 size_t size);

/*
 * Bootstrap: a communicator over several nodes needs more than an id. The ranks tell each other who
 * they are, on which node, and by which addresses that is reached, and all that takes is one way to
 * exchange a few bytes between them.
 *
 * rank, nranks	 who calls
 * allgather	 mine points to bytes bytes of this rank, all to room for nranks * bytes, in the order of
 *		 the ranks; blocks until all are there. All ranks call it alike. 0 or a negative errno
 * arg		 its first argument
 * release	 NULL, or what swingcoll_bootstrap_free() calls
 */
struct swingcoll_bootstrap {
	int rank;
	int nranks;
	int (*allgather)(void *arg, const void *mine, void *all, size_t bytes);
	void *arg;
	void (*release)(struct swingcoll_bootstrap *boot);
};

/*
 * Join a communicator of all ranks of boot, on one node or many. Blocks until all have come; either all
 * ranks succeed or none, with the same error as far as that can be told. swingcoll_bootstrap_error()
 * then says what was wrong, and where. boot is not used after the return.
 */
int swingcoll_comm_create_from(struct swingcoll_comm **comm, const struct swingcoll_bootstrap *boot,
			       const struct swingcoll_comm_opts *opts);

/*
 * Bootstraps: by TCP to a root that the environment names (SWINGCOLL_ROOT and others, see
 * swingcoll(7)); and by whatever the launcher offers: that, PMIx, or nothing but one rank if there is
 * no launcher. *boot is the caller's until swingcoll_bootstrap_free(), and may serve for several
 * communicators, one after the other, and for exchanges of the caller's own.
 */
int swingcoll_bootstrap_env(struct swingcoll_bootstrap **boot);
int swingcoll_bootstrap_auto(struct swingcoll_bootstrap **boot);
void swingcoll_bootstrap_free(struct swingcoll_bootstrap *boot);

/* The same and swingcoll_comm_create_from() in one. */
int swingcoll_comm_create_env(struct swingcoll_comm **comm, const struct swingcoll_comm_opts *opts);
int swingcoll_comm_create_auto(struct swingcoll_comm **comm,
			       const struct swingcoll_comm_opts *opts);

/* One line on why the last of the calls above failed in this thread; "" if none has. Never NULL. */
const char *swingcoll_bootstrap_error(void);
/* For bootstraps of the caller's own: set that line. Returns error. */
int swingcoll_bootstrap_fail(int error, const char *format, ...)
#ifdef __GNUC__
	__attribute__((format(printf, 2, 3)))
#endif
	;
/*
 * For those too: how long an exchange may take, by SWINGCOLL_BOOT_TIMEOUT or else 120 s. -EINVAL: the variable is no
 * such number.
 */
int swingcoll_bootstrap_timeout(uint32_t *timeout_ms);

/*
 * Wait for this rank's operations in flight (they end by their deadline at the latest), leave, free.
 * Always frees; the return value tells of an error on the way. NULL is allowed.
 */
int swingcoll_comm_destroy(struct swingcoll_comm *comm);

/* Fail all operations of all members with -ECONNABORTED, now and for ever. Any thread. */
int swingcoll_comm_abort(struct swingcoll_comm *comm);

/*
 * Go on without some ranks. Every rank that is left calls this with the same list of ranks to
 * exclude, as often as all others; the ranks keep their order in *out. An empty list excludes the
 * rank at fault of the last failure, which after an abort is the same on all ranks unless several
 * failed at once. comm may have been aborted; it stays to be destroyed. Options: those of comm but
 * for algorithm and topology, which are chosen as if none had been named. Blocks until the ranks of
 * this node have come; ranks elsewhere are waited for by the first collective. Ranks that disagree
 * on the list never meet: -ETIMEDOUT.
 */
int swingcoll_comm_shrink(struct swingcoll_comm *comm, const int *exclude, int nexclude,
			  struct swingcoll_comm **out);

int swingcoll_comm_rank(const struct swingcoll_comm *comm);
int swingcoll_comm_size(const struct swingcoll_comm *comm);
/* Nodes that the ranks are on. */
int swingcoll_comm_nodes(const struct swingcoll_comm *comm);
/* The topology that plans are made for, as text. Like snprintf(): returns the length it needs. */
int swingcoll_comm_topo(const struct swingcoll_comm *comm, char *text, size_t size);

/*
 * One line on the last failure: who and what. Writes at most size bytes with the NUL. Returns the
 * error (0 if there was none); *culprit, if not NULL, is the rank at fault or -1.
 */
int swingcoll_comm_error(struct swingcoll_comm *comm, char *text, size_t size, int *culprit);

/*
 * Algorithm of the last collective that ended well on this communicator, through whatever call; "slots" for
 * small messages, "?" before the first. Static, or lives as long as the communicator.
 */
const char *swingcoll_comm_algo(const struct swingcoll_comm *comm);

/*
 * Blocking collectives. Counts are in elements. send == recv is in place; partial overlap is refused.
 *
 * allreduce	  recv[i] = op over ranks of send[i], i < count, on every rank
 * reduce_scatter recv[i] = op over ranks of send[rank * count + i], i < count; in place:
 *		  recv == send + rank * count elements
 * allgather	  recv[r * count + i] = send of rank r [i]; in place: send == recv + rank * count
 * broadcast	  recv[i] = send[i] of root; send is read on root only; on root recv == send is usual
 * reduce	  recv[i] on root; recv is not used elsewhere and may be NULL
 * barrier	  returns when every rank has called it
 * alltoall	  recv[r * count + i] = send[rank * count + i] of rank r, i < count
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

/*
 * The same, returning at once. *req must be given to swingcoll_wait(), or to swingcoll_test() until that
 * says done. Buffers belong to the operation until then. At most 64 are in flight per communicator;
 * one more gives -EAGAIN.
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

/* Sleep until done, free the request, return its error. result may be NULL. */
int swingcoll_wait(struct swingcoll_req *req, struct swingcoll_result *result);

/*
 * Returns -EINPROGRESS while the operation runs (the request stays valid). Otherwise frees the request
 * and returns as swingcoll_wait() does. Makes no system call unless there is something to collect.
 */
int swingcoll_test(struct swingcoll_req *req, struct swingcoll_result *result);

/*
 * Partitioned collectives, in the way of MPI 4: a large operation whose data is made, and used, piece by
 * piece. *part is persistent: made once, started as often as wanted, freed by swingcoll_pfree() before the
 * communicator is destroyed. It pins its buffers for as long as it lives.
 *
 * The buffers hold the partitions one after the other, and partition i is a collective of count elements
 * by itself: for pallreduce it is elements i * count and up of both; for preduce_scatter it sends
 * nranks * count elements from send + i * nranks * count and gets count at recv + i * count; for pallgather
 * the other way round. Only pallreduce may be in place. At most 4096 partitions.
 *
 * swingcoll_pstart()	begin a round. It has a place in the order of the collectives, the same on all
 *			ranks, as if all partitions were called there. -EBUSY while the last round is not done
 * swingcoll_pready()	the data of a partition is there, and is not touched any more until it is done. Any
 *			thread, any order, once in a round; makes a system call only if the kernel sleeps.
 *			The partition runs, without the caller, when all ranks have marked it ready
 * swingcoll_parrived()	1 if a partition is done, 0 if not, or an error; makes no system call
 * swingcoll_pwait()	sleep until a partition, or SWINGCOLL_ALL_PARTITIONS, are done; 0 or the first error
 */
struct swingcoll_part;

#define SWINGCOLL_ALL_PARTITIONS (-1)

int swingcoll_pallreduce_init(const void *send, void *recv, int partitions, size_t count,
			      enum swingcoll_dtype dtype, enum swingcoll_redop op,
			      struct swingcoll_comm *comm, struct swingcoll_part **part);
int swingcoll_preduce_scatter_init(const void *send, void *recv, int partitions, size_t count,
				   enum swingcoll_dtype dtype, enum swingcoll_redop op,
				   struct swingcoll_comm *comm, struct swingcoll_part **part);
int swingcoll_pallgather_init(const void *send, void *recv, int partitions, size_t count,
			      enum swingcoll_dtype dtype, struct swingcoll_comm *comm,
			      struct swingcoll_part **part);
int swingcoll_pstart(struct swingcoll_part *part);
int swingcoll_pready(struct swingcoll_part *part, int partition);
int swingcoll_parrived(struct swingcoll_part *part, int partition);
int swingcoll_pwait(struct swingcoll_part *part, int partition);
/* Also while a round is not done: then nothing is freed, -EBUSY. NULL is allowed. */
int swingcoll_pfree(struct swingcoll_part *part);

/*
 * Pin memory ahead of use. Optional: buffers are otherwise registered on first use and the kernel keeps
 * that record true when they are unmapped. Process-wide. -ENOMEM: see RLIMIT_MEMLOCK.
 */
int swingcoll_mem_register(void *addr, size_t bytes);
int swingcoll_mem_unregister(void *addr);

/* Names for people and command lines: "f32", "sum", "allreduce"; parsers return -EINVAL. */
size_t swingcoll_dtype_size(enum swingcoll_dtype dtype);
const char *swingcoll_dtype_name(enum swingcoll_dtype dtype);
const char *swingcoll_redop_name(enum swingcoll_redop op);
const char *swingcoll_coll_name(enum swingcoll_coll coll);
int swingcoll_dtype_parse(const char *name);
int swingcoll_redop_parse(const char *name);
int swingcoll_coll_parse(const char *name);
/* 1 if the pair makes sense (bit operations are for integers only), else 0. */
int swingcoll_supported(enum swingcoll_dtype dtype, enum swingcoll_redop op);
/* Algorithms by index from 0, NULL after the last. */
const char *swingcoll_algo_name(int index);

/*
 * The caller's own io_uring (set up with IORING_SETUP_SQE128 | IORING_SETUP_CQE32).
 *
 * swingcoll_prep() fills a 128-byte SQE for a non-blocking collective; the caller sets user_data and
 * submits. The order of submission is the order of the collective. swingcoll_cqe_result() reads the
 * CQE. The communicator must outlive both. struct swingcoll_call: as the arguments above; root is 0
 * where there is none.
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
	uint32_t timeout_ms;  /* 0: the communicator's */
	uint32_t reserved[3]; /* 0 */
};

int swingcoll_prep(struct io_uring_sqe *sqe, struct swingcoll_comm *comm,
		   const struct swingcoll_call *call);
int swingcoll_cqe_result(struct swingcoll_comm *comm, const struct io_uring_cqe *cqe,
			 struct swingcoll_result *result);

/*
 * swingcoll_pwait() in the caller's own io_uring, of any kind: fills an SQE whose CQE comes when a partition,
 * or SWINGCOLL_ALL_PARTITIONS, of the round that is going on are done; its res is 0 or the first error. Any
 * number of them may be in flight, in any order; a 64-byte SQE is enough. The caller sets user_data and
 * submits before the next round begins.
 */
int swingcoll_prep_pwait(struct io_uring_sqe *sqe, struct swingcoll_part *part, int partition);

/*
 * An allgather and the product that consumes it, overlapped: C = A x B, where each rank has some rows of A
 * (m x k) and all of B (k x n), and wants all of C. The library moves A in pieces and calls back for each; the
 * product is the caller's, with any BLAS. See swingcoll_overlap(3).
 *
 * Matrices lie in row order. A shard is that of swingcoll_overlap_rows(), without gaps between rows.
 */

/* In what pieces A comes, and what is multiplied at once. */
enum swingcoll_overlap_schedule {
	SWINGCOLL_OVERLAP_AUTO,
	SWINGCOLL_OVERLAP_SERIAL,	 /* everything, then one product */
	SWINGCOLL_OVERLAP_SHARD,	 /* one rank's shard after the other, the own one first */
	SWINGCOLL_OVERLAP_ROWS,		 /* some rows of all ranks at a time */
	SWINGCOLL_OVERLAP_ROWS_OWN,	 /* the same, but first the own shard as a whole */
	SWINGCOLL_OVERLAP_ROWS_SEPARATE, /* the same, one product per rank */
	SWINGCOLL_OVERLAP_COLUMNS,	 /* some columns of all ranks at a time; products add up */
};
#define SWINGCOLL_OVERLAP_SCHEDULES 7

/* Rows of C, and of A. */
struct swingcoll_overlap_range {
	size_t row;
	size_t rows;
};

/*
 * A part of A that is there: rows x cols elements at a, lda elements from row to row, columns col to
 * col + cols - 1 of A. Its rows are, in this order, those of the runs: rows of A that are neighbours here may
 * be far apart there. Valid until the consumer returns.
 */
struct swingcoll_overlap_piece {
	const void *a;
	size_t lda;
	size_t rows;
	size_t col;
	size_t cols;
	int accumulate; /* 0: C's rows = piece x B's rows col...; 1: C's rows += that */
	unsigned int nruns;
	const struct swingcoll_overlap_range *run;
};

struct swingcoll_overlap;

/*
 * Options; zero the struct and set what is wanted. They must be equal on all ranks, except arg.
 *
 * table	file with the times of products on this machine; read by rank 0, and written if it lacks
 *		them. NULL: none, they are measured each time
 * product	makes one product of that size (up to 512 each), on any numbers, to be timed. 0 or a
 *		negative errno. NULL: nothing is measured, and every schedule is tried
 * arg		its first argument
 * dtype	its type; of products of another type the model says nothing, and every schedule is tried
 * pieces	that a shard is cut into, at most 64; 0: 8
 * trials	times that each schedule in question is tried, at most 15, before those far behind the best are
 *		dropped; 0: 3
 */
struct swingcoll_overlap_opts {
	const char *table;
	int (*product)(void *arg, size_t m, size_t n, size_t k);
	void *arg;
	enum swingcoll_dtype dtype;
	uint32_t pieces;
	uint32_t trials;
	uint32_t reserved[8]; /* 0 */
};

/*
 * One product. consume is called in the calling thread; if it fails, it is not called again, the transfers go
 * on to their end, and its error is returned: the communicator is as good as before.
 */
struct swingcoll_overlap_call {
	size_t m, n, k;
	enum swingcoll_dtype dtype;
	enum swingcoll_overlap_schedule schedule; /* AUTO: the best */
	const void *shard;			  /* not written */
	int (*consume)(void *arg, const struct swingcoll_overlap_piece *piece);
	void *arg;
	uint32_t reserved[8]; /* 0 */
};

struct swingcoll_overlap_result {
	enum swingcoll_overlap_schedule schedule; /* that ran */
	int trial;				  /* 1: to find out how good it is */
	uint64_t time_ns;			  /* on this rank */
	uint64_t wait_ns;			  /* of that, asleep until a piece came */
};

/* What was measured when the handle was made, the same on all ranks. */
struct swingcoll_overlap_figures {
	double start_s;		  /* allgather: start-up time, */
	double bytes_per_s;	  /* and rate in bytes of one rank */
	double crowd;		  /* product on all ranks at once / on one alone */
	double product_slowdown;  /* contention loss: product during a transfer / without */
	double transfer_slowdown; /* transfer during products / without */
};

/* What the model says of a shape; seconds. */
struct swingcoll_overlap_forecast {
	double time_s[SWINGCOLL_OVERLAP_SCHEDULES]; /* by schedule; [AUTO]: 0 */
	double gather_s;			    /* the whole allgather alone */
	double product_s;   /* the whole product alone, all ranks computing */
	double dil_rows;    /* decomposition loss: time of the pieces of a product / of it whole */
	double dil_columns; /* the same, cut by columns */
};

/*
 * Make a handle for a communicator, on all ranks alike; blocks for as long as measuring takes, well below a
 * second on a machine of today. *overlap is the caller's until swingcoll_overlap_destroy(), which must come
 * before that of the communicator.
 */
int swingcoll_overlap_create(struct swingcoll_overlap **overlap, struct swingcoll_comm *comm,
			     const struct swingcoll_overlap_opts *opts);
/* NULL is allowed. Not collective. */
void swingcoll_overlap_destroy(struct swingcoll_overlap *overlap);

/*
 * Gather and consume, on all ranks alike; counts as some collectives on the communicator. Blocks until all
 * is consumed. With AUTO the first calls of a shape are trials (and do their work as any other), then the
 * quickest stays. result may be NULL. After an error other than the consumer's abort the communicator.
 */
int swingcoll_overlap_run(struct swingcoll_overlap *overlap,
			  const struct swingcoll_overlap_call *call,
			  struct swingcoll_overlap_result *result);

/* Rows of A that a rank has: the first m % nranks ranks have one more. */
void swingcoll_overlap_rows(size_t m, int nranks, int rank, struct swingcoll_overlap_range *rows);

/* -ENODATA: no product, or none of that type, so nothing was measured. */
int swingcoll_overlap_figures(const struct swingcoll_overlap *overlap,
			      struct swingcoll_overlap_figures *figures);
int swingcoll_overlap_forecast(const struct swingcoll_overlap *overlap, size_t m, size_t n,
			       size_t k, enum swingcoll_dtype dtype,
			       struct swingcoll_overlap_forecast *forecast);

/* "rows-grouped"; NULL for what is none. The parser returns -EINVAL. */
const char *swingcoll_overlap_name(enum swingcoll_overlap_schedule schedule);
int swingcoll_overlap_parse(const char *name);

#ifdef __cplusplus
}
#endif

#endif /* SWINGCOLL_H */

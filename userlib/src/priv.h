/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of the library share. Nothing here is visible outside.
 *
 * Rooms are folders of userlib/; core is kmod/core. Calls between files go down these arrows only,
 * and no files call each other in a circle. (Tables of functions, as struct swc_submit_ops, lead
 * back up.)
 *
 * Map of calls:
 *	overlap -> sparse, src/api, src, plan
 *	sparse -> src/api, src, core
 *	src/bootstrap -> src/api, src/submit, src/agree, src, plan
 *	src/api -> src/submit, src/shm, src/agree, src, plan/select, plan/algo, plan/forest, plan, core
 *	src/submit -> src/agree, src
 *	src/shm -> core
 *	src/agree -> src
 *	src -> plan/format, plan/select, plan/verify, plan
 *	plan/select -> plan/forest, plan/model, plan/algo, plan, core
 *	plan/format -> plan/verify, plan, core
 *	plan/model -> plan/algo, plan
 *	plan/verify -> plan, core
 *	plan/algo -> plan, core
 *	plan/forest -> plan/model, plan, core
 *	plan -> core
 *	core
 *
 * Locks, outermost first: comm->order, reaper->lock, the context's lock (submit/context.c). No lock
 * is held while a thread sleeps for an operation, except comm->order during one that goes through
 * the slots (api/coll.c). comm->agreeing is held during an agreement, and outside of all others.
 */
#ifndef SWC_PRIV_H
#define SWC_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/swingcoll.h>
#include <swingcoll.h>

#include "plan/select/choose.h"
#include "plan/plan.h"
#include "src/agree/endpoint.h"
#include "src/public.h"
#include "src/shm/slots.h"

struct io_uring_cqe;
struct io_uring_sqe;

/* ---- submit/context.c, api/mem.c ---- */

/**
 * struct swc_context - this process's open file of the device
 *
 * Made by the first swc_context_get(), freed with the last put. There is one per process: memory is
 * pinned and counted once, whatever the number of communicators. In the child of a fork the copy is
 * dead (fd -1).
 */
struct swc_context {
	int fd;
	unsigned int refs;	      /* context lock */
	struct swingcoll_comm *comms; /* context lock */
	struct swc_info info;
	struct swc_ring *ring; /* ioctl submission: the shared completion ring; context lock */
};

int swc_context_get(struct swc_context **ctx);
void swc_context_put(struct swc_context *ctx);
/* Connections to other nodes that the user of this process may have on this node, by the quotas. */
uint32_t swc_context_conns(const struct swc_context *ctx);
/* Enter a communicator into the context's list, so that a fork marks it. */
void swc_context_link(struct swingcoll_comm *comm);
void swc_context_unlink(struct swingcoll_comm *comm);
/* ioctl that returns a negative errno and leaves errno alone. */
int swc_context_ioctl(const struct swc_context *ctx, unsigned long cmd, void *arg);
void *swc_context_mmap(const struct swc_context *ctx, uint64_t offset, size_t bytes, bool write);
void swc_context_munmap(void *p, size_t bytes);

/* Put buffers into a descriptor: as region and offset if they are registered, else as addresses. */
void swc_mem_resolve(struct swc_desc *desc, const void *send, uint64_t send_bytes, const void *recv,
		     uint64_t recv_bytes);

/* ---- requests and their completion: submit/reaper.c ---- */

/**
 * struct swingcoll_req - an operation that the kernel has
 *
 * One of the communicator's pool. Taken under comm->order, returned by the caller that reads the
 * outcome. The reaper fills it, and does not touch it after setting @done.
 */
struct swingcoll_req {
	struct swingcoll_comm *comm;
	int done;
	int error;
	int culprit;
	uint64_t time_ns;
	const char *algo;
	uint64_t *counts; /* room for the sizes of shards; NULL until needed */
};

/**
 * struct swc_reaper - collects completions for all waiting threads
 *
 * At most one thread has the role of the reaper (@busy) at any time. It alone reads completions and
 * sleeps for them; the others sleep on @cond. So a waiter does not keep others from submitting, and
 * does not consume a completion that another thread is asleep for.
 *
 * @collect: complete the requests whose completions have arrived; true if there were any. Called by
 *	the reaper only, without @lock
 * @sleep: sleep until there are more, or, unless @ms is 0, for so many milliseconds. 0 or -EINTR: go
 *	on; any other error is final. Called as @collect
 * @push: submit to the kernel what is queued, which @sleep may have missed; NULL if nothing is ever
 *	queued
 */
struct swc_reaper {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool busy;
	unsigned int waiters;
	int error; /* final */
	bool (*collect)(struct swc_reaper *r);
	int (*sleep)(struct swc_reaper *r, unsigned int ms);
	int (*push)(struct swc_reaper *r);
};

void swc_reaper_init(struct swc_reaper *r);
void swc_reaper_destroy(struct swc_reaper *r);
/*
 * Sleep until a request is done. 0, or the reaper's final error. @hook, which may be NULL, is called
 * without locks.
 */
int swc_reaper_wait(struct swc_reaper *r, struct swingcoll_req *req,
		    const struct swc_wait_hook *hook);
/* Submit to the kernel what is queued. */
int swc_reaper_push(struct swc_reaper *r);
/* Collect the completions that have arrived, unless another thread is the reaper. */
void swc_reaper_poll(struct swc_reaper *r);
void swc_req_complete(struct swingcoll_req *req, int error, int culprit, uint64_t time_ns);

/* ---- submission: submit/uring.c, submit/ioctl.c ---- */

/**
 * struct swc_submit_ops - a way to submit operations to the kernel
 * @open: for one communicator; sets comm->submitter and comm->reaper
 * @close: nothing is in flight
 * @queue: queue an operation behind the others. Under comm->order. After an error the kernel does
 *	not have it. comm->reaper submits what is queued: by its push, or before it sleeps
 * @forked: in the child of a fork: close file descriptors, touch nothing else
 */
struct swc_submit_ops {
	const char *name;
	int (*open)(struct swingcoll_comm *comm);
	void (*close)(struct swingcoll_comm *comm);
	int (*queue)(struct swingcoll_comm *comm, const struct swc_desc *desc,
		     struct swingcoll_req *req);
	void (*forked)(struct swingcoll_comm *comm);
};

extern const struct swc_submit_ops swc_submit_uring;
extern const struct swc_submit_ops swc_submit_ioctl;

/*
 * Fill an SQE except user_data: 128 bytes for a collective, 64 or 128 for the wait for a partition.
 */
void swc_uring_fill(struct io_uring_sqe *sqe, int fd, const struct swc_desc *desc);
void swc_uring_fill_wait(struct io_uring_sqe *sqe, int fd, const struct swc_partitioned_ref *ref);
/* Error of a 32-byte CQE, and its second result word. */
int swc_uring_read(const struct io_uring_cqe *cqe, uint64_t *word);

/* ---- api/plan_cache.c ---- */

/* What the options of a communicator ask for. */
enum swc_pick {
	SWC_PICK_AUTO,
	SWC_PICK_ALGO,
	SWC_PICK_FILE,
	SWC_PICK_FOREST,
};

/*
 * What a plan is made for. One for SWC_DISJOINT is right in place too, unless it says
 * SWC_PLAN_NOT_IN_PLACE.
 */
enum swc_variant {
	SWC_DISJOINT, /* buffers apart */
	SWC_IN_PLACE,
	SWC_OTHERS, /* the rank's own data is not copied: @others_only of swc_plan_args */
	SWC_VARIANTS
};

/* A loaded plan: the first six fields are its key. */
struct swc_loaded_plan {
	uint8_t coll;
	uint8_t algo; /* enum swc_algo; SWC_ALGO_NR: the communicator's plan file, or a forest */
	bool uneven;  /* right for shards of different sizes */
	int32_t param;
	uint32_t ports; /* as in struct swc_plan_args */
	uint32_t root;
	bool order_varies;
	uint32_t handle
		[SWC_VARIANTS]; /* 0: not loaded; equal where one plan serves several variants */
};

/* Plans that a communicator keeps loaded; the most recently used entry is first. */
#define SWC_PLANS_CACHED 64

/**
 * struct swc_plans - the plans of a communicator
 *
 * Under comm->order, except @name_of, which any thread may read.
 *
 * @pick, @algo, @param, @file: what was asked for; of a forest, @param is its number of segments
 * @topo: shape of the network; one node unless the options or the bootstrap say otherwise
 * @choices: the candidates for the automatic choice, and the trees of forests
 * @prepared: swingcoll_prep() has been used, so operations that the caller has not submitted may name plans:
 *	then only a full table unloads one, which is older than they can be
 * @names: every name ever used, so that results can point at them
 * @name_of: name by handle
 */
struct swc_plans {
	enum swc_pick pick;
	enum swc_algo algo;
	int32_t param;
	char *file;
	struct swc_topo topo;
	struct swc_choices choices;
	struct swc_loaded_plan entry[SWC_PLANS_CACHED];
	unsigned int n;
	bool prepared;
	struct swc_name *names;
	const char *name_of[256];
};

/*
 * Take the options, for @nranks ranks of which @nlocal are on this node. 0, or a negative errno and
 * a line in @why that names the fault and what would be accepted.
 */
int swc_plans_init(struct swc_plans *plans, const struct swingcoll_comm_opts *opts, uint32_t nranks,
		   uint32_t nlocal, char *why, size_t why_bytes);
void swc_plans_free(struct swc_plans *plans);

/*
 * Put into d->plan the handle of the plan for an operation of @bytes bytes; make and load it if it
 * is new. *variant: SWC_OTHERS becomes SWC_DISJOINT if the algorithm copies the rank's own data
 * anyway.
 */
int swc_plans_get(struct swingcoll_comm *comm, struct swc_desc *d, enum swc_variant *variant,
		  uint64_t bytes);
/* Name of the algorithm of a loaded plan, "?" if it is not known. Any thread. */
const char *swc_plans_algo(const struct swc_plans *plans, uint32_t handle);

/* ---- api/coll.c ---- */

/* A collective whose arguments have been checked. */
struct swc_coll_op {
	struct swc_slots_op slots;
	struct swc_desc desc; /* without plan and flags; for the kernel */
	enum swc_variant variant;
	const uint64_t *counts; /* the caller's, NULL without */
	uint64_t bytes;		/* of the vector */
	uint64_t send_bytes, recv_bytes;
};

/* Check a call. 0, or the error that the call returns. */
int swc_coll_prepare(struct swingcoll_comm *comm, const struct swingcoll_call *call,
		     struct swc_coll_op *op);
/*
 * Tell the module the sizes of a sparse collective, for swingctl stats. A module that has no such counters
 * refuses it, which is no error of the call.
 */
void swc_comm_sparse_note(const struct swingcoll_comm *comm, uint64_t bytes, uint64_t reduced);

/* A blocking allreduce of the whole vectors. swingcoll_allreduce() itself is in sparse/allreduce.c. */
int swc_allreduce(const void *send, void *recv, size_t count, enum swingcoll_dtype dtype,
		  enum swingcoll_redop op, struct swingcoll_comm *comm);

/* ---- api/submission.c ---- */

/*
 * Is a request free? The pool has as many as the kernel allows in flight. Under comm->order, as the next
 * function.
 */
bool swc_submission_has_room(const struct swingcoll_comm *comm);
/*
 * Submit a collective, wait for it, and return its outcome. Releases comm->order. @announced: the other
 * ranks know from the slots that this collective has been called.
 */
int swc_submission_wait(struct swingcoll_comm *comm, struct swc_coll_op *op, bool announced);
/* Submit a collective. Takes and releases comm->order. 0, or a negative errno; *req is set if 0. */
int swc_submission_start(struct swingcoll_comm *comm, struct swc_coll_op *op,
			 struct swingcoll_req **req);

/* ---- api/comm.c ---- */

#define SWC_POOL 64

/* Of the name of a host, with the terminating null byte. */
#define SWC_HOST_BYTES 64

/**
 * struct swc_place - where the ranks are, if they are on several nodes
 * @nnodes: number of nodes, at least 2
 * @nlocal: ranks on this node
 * @rank_node: node of each rank
 * @paths, @npaths: paths from this node to the others
 * @conns: connections that a member's user may have on its node, at least
 * @host: name of each node
 * @pid: of each rank, as it sees itself
 */
struct swc_place {
	uint32_t nnodes;
	uint32_t nlocal;
	const uint32_t *rank_node;
	const struct swc_node_path *paths;
	uint32_t npaths;
	uint32_t conns;
	const char (*host)[SWC_HOST_BYTES];
	const int32_t *pid;
};

/**
 * struct swingcoll_comm - one rank of a communicator
 *
 * @peers: how agreements reach the other ranks
 * @agreeing: held during an agreement; guards the next two
 * @agreements: number of the next one
 * @gone: the ranks that took no part in the last one, swc_set_words() words; written under @text_lock, too
 * @order: held from the choice of an operation's number to its submission: the order in which
 *	threads get it is the order of the collectives
 * @req, @busy: the pool of requests, and a bit for each that is in use; bits are set under @order
 *	only
 */
struct swingcoll_comm {
	struct swc_context *ctx;
	struct swingcoll_comm *next, **prev; /* context lock */
	struct swingcoll_id id;
	struct swc_place place; /* empty if all ranks are on this node */
	struct swc_peers peers;
	pthread_mutex_t agreeing;
	uint64_t agreements;
	uint64_t *gone;
	uint32_t handle;
	uint32_t nranks;
	uint32_t rank;
	uint32_t flags;	   /* SWINGCOLL_* */
	bool forked;	   /* this process is a fork's child: the communicator is the parent's */
	uint64_t slot_max; /* largest contribution that goes through the slots, 0: none */
	uint32_t nnodes;
	uint32_t nlocal; /* ranks on this node */
	const struct swc_comm_state *state;
	uint32_t timeout_ms;	/* of the creation */
	uint32_t op_timeout_ms; /* of an operation; 0: the same */
	struct swc_wait_hook hook;

	pthread_mutex_t order;
	struct swc_slots slots;
	struct swc_plans plans;
	const char *last_algo; /* of the last collective that succeeded; atomic */

	const struct swc_submit_ops *submit;
	void *submitter;
	struct swc_reaper *reaper;
	uint64_t busy;
	struct swingcoll_req req[SWC_POOL];

	pthread_mutex_t text_lock;
	int local_error; /* a failure before the kernel had the operation */
	char local_text[SWC_TEXT_BYTES];
	bool agreement_failed; /* the last one: local_text comes after the kernel's */
	bool debug_printed;    /* the events before the failure; atomic */

	/*
	 * Of the sparse allreduce, set under @order, and read atomically without it. settle(), if it is set,
	 * ends what uses this communicator; release() frees it.
	 */
	void *attached;
	void (*settle)(void *attached);
	void (*release)(void *attached);
	/* swingcoll_allreduce() may be sparse. Does not change while a collective runs. */
	bool sparse_auto;
};

/* The algorithm of the last collective that has ended well. Any thread. */
static inline void swc_submission_note(struct swingcoll_comm *comm, const char *algo)
{
	__atomic_store_n(&comm->last_algo, algo, __ATOMIC_RELAXED);
}

#define SWC_DEFAULT_TIMEOUT_MS 30000

/* Check flags, numbers and reserved fields of options: 0, or -EINVAL and @text names the one at fault. */
int swc_comm_check_opts(const struct swingcoll_comm_opts *opts, char *text, size_t size);
/*
 * swingcoll_comm_create(), with ranks on several nodes unless @place is NULL. @peers NULL: all are here,
 * and none has an endpoint yet; else its content is taken over, on failure, too. @join_ms: how long to wait
 * for the other ranks of this node, if that is not the deadline; 0: it is. @why, if not NULL, gets a line on
 * some failures and stays unchanged on others.
 */
int swc_comm_create(struct swingcoll_comm **comm, const struct swingcoll_id *id, int nranks,
		    int rank, const struct swingcoll_comm_opts *opts, uint32_t join_ms,
		    const struct swc_place *place, struct swc_peers *peers, char *why,
		    size_t why_bytes);

/* ---- api/agree.c ---- */

/*
 * Agree with the other ranks, within so many milliseconds: on the AND of the flags of all that take part,
 * and on who does not. Those in comm->gone and those that anyone has in @gone do not. 0, and *gone is what
 * comm->gone becomes; or a negative errno, with a line for swingcoll_comm_error(). Holds comm->agreeing.
 */
int swc_comm_agree(struct swingcoll_comm *comm, uint32_t timeout_ms, uint32_t *flag,
		   uint64_t *gone);

/* ---- api/debug.c ---- */

/* Read SWINGCOLL_DEBUG. */
void swc_debug_init(void);
/*
 * Print the events before the failure, if @error says that the communicator has failed and
 * SWINGCOLL_DEBUG wants them. The first call of a communicator does. Returns error.
 */
int swc_debug_failed(struct swingcoll_comm *comm, int error);

/* ---- api/errors.c ---- */

/* Remember a failure for swingcoll_comm_error(). Returns error. */
int swc_comm_fail(struct swingcoll_comm *comm, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- api/hosts.c ---- */

/*
 * Append to an error text of at most @size bytes where the ranks are that it names: their hosts and pids. Nothing, unless
 * @place is of several nodes.
 */
void swc_hosts_append(const struct swc_place *place, uint32_t nranks, char *text, size_t size);

#endif /* SWC_PRIV_H */

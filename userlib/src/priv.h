/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of the library share. Nothing here is visible outside.
 *
 * Locks, outermost first: comm->order, reaper->lock, the context's lock (context.c). No lock is
 * held while a thread sleeps for an operation, but for comm->order during one that goes through the
 * slots (coll.c).
 */
#ifndef SWC_PRIV_H
#define SWC_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/swingcoll.h>
#include <swingcoll.h>

#include "select/choose.h"
#include "plan.h"
#include "shm/slots.h"

#define SWC_PUBLIC __attribute__((visibility("default")))

struct io_uring_cqe;
struct io_uring_sqe;

/* ---- context.c, mem.c ---- */

/**
 * struct swc_context - this process at the device
 *
 * Made by the first swc_context_get(), gone with the last put. One per process: memory is pinned
 * and counted once, whatever the number of communicators. After a fork the child's copy is dead (fd
 * -1).
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
/* So that a fork finds the communicator. */
void swc_context_link(struct swingcoll_comm *comm);
void swc_context_unlink(struct swingcoll_comm *comm);
/* ioctl that returns a negative errno and leaves errno alone. */
int swc_context_ioctl(const struct swc_context *ctx, unsigned long cmd, void *arg);
void *swc_context_mmap(const struct swc_context *ctx, uint64_t offset, size_t bytes, bool write);
void swc_context_munmap(void *p, size_t bytes);

/* Put buffers into a descriptor: as registered region and offset where there is one. */
void swc_mem_resolve(struct swc_desc *desc, const void *send, uint64_t send_bytes, const void *recv,
		     uint64_t recv_bytes);

/* ---- requests and their completion: reap.c ---- */

/**
 * struct swingcoll_req - an operation that the kernel has
 *
 * One of the communicator's pool. Taken under comm->order, given back by whoever learns the
 * outcome. Filled by the reaper, which does not touch it after setting @done.
 */
struct swingcoll_req {
	struct swingcoll_comm *comm;
	int done;
	int error;
	int culprit;
	uint64_t time_ns;
	const char *algo;
};

/**
 * struct swc_reaper - collects completions for all threads that wait
 *
 * At any time one thread at most has the role of the reaper (@busy): it alone reads completions, or
 * sleeps for them. The others sleep on @cond. So a waiter neither keeps others from submitting, nor
 * eats what somebody else is asleep for.
 *
 * @collect: complete the requests whose completions are there; true if there were any. Only by the reaper, without @lock.
 * @sleep: until there are more. 0 or -EINTR: go on; another error is final. Likewise.
 * @push: get to the kernel what is queued and what @sleep may have missed; NULL if nothing ever is
 */
struct swc_reaper {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool busy;
	unsigned int waiters;
	int error; /* final */
	bool (*collect)(struct swc_reaper *r);
	int (*sleep)(struct swc_reaper *r);
	int (*push)(struct swc_reaper *r);
};

void swc_reaper_init(struct swc_reaper *r);
void swc_reaper_destroy(struct swc_reaper *r);
/* Sleep until req is done. 0, or the reaper's final error. */
int swc_reaper_wait(struct swc_reaper *r, struct swingcoll_req *req);
/* See to it that what is queued gets to the kernel. */
int swc_reaper_push(struct swc_reaper *r);
/* Collect what is there, unless somebody else is at it. */
void swc_reaper_poll(struct swc_reaper *r);
void swc_req_complete(struct swingcoll_req *req, int error, int culprit, uint64_t time_ns);

/* ---- submission: submit_uring.c, submit_ioctl.c ---- */

/**
 * struct swc_submit_ops - a way to hand operations to the kernel
 * @open: per communicator; sets comm->submitter and comm->reaper
 * @close: nothing is in flight
 * @queue: put the operation in order behind the others. Under comm->order. An error means
 *	that the kernel does not have it. What is queued gets to the kernel by comm->reaper: by its
 *	push, or on its way to sleep.
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

/* Fill an SQE but for user_data: one of 128 bytes with a collective, any with the wait for a partition. */
void swc_uring_fill(struct io_uring_sqe *sqe, int fd, const struct swc_desc *desc);
void swc_uring_fill_wait(struct io_uring_sqe *sqe, int fd, const struct swc_part_ref *ref);
/* Error of a 32-byte CQE, and its second result word. */
int swc_uring_read(const struct io_uring_cqe *cqe, uint64_t *word);

/* ---- plans.c ---- */

/* What the caller of swingcoll_comm_create() wants to see at work. */
enum swc_pick {
	SWC_PICK_AUTO,
	SWC_PICK_ALGO,
	SWC_PICK_FILE,
};

/* What a plan may count on; one for SWC_DISJOINT is right for the others too, unless it says SWC_PLAN_NOT_IN_PLACE. */
enum swc_variant {
	SWC_DISJOINT, /* buffers apart */
	SWC_IN_PLACE,
	SWC_OTHERS, /* what is the rank's own is not moved: @others_only of swc_plan_args */
	SWC_VARIANTS
};

/* A plan that the kernel has. The first four say which. */
struct swc_loaded_plan {
	uint8_t coll;
	uint8_t algo; /* enum swc_algo; SWC_ALGO_NR: of the communicator's file */
	int32_t param;
	uint32_t root;
	bool order_varies;
	uint32_t handle[SWC_VARIANTS]; /* 0: not loaded; the same where one serves several */
};

/* A small table, the most recently used entry first. */
#define SWC_PLANS_CACHED 64

/**
 * struct swc_plans - the plans of a communicator
 *
 * Under comm->order, but for @name_of, which anyone may read.
 *
 * @pick, @algo, @param, @file: what was asked for
 * @topo: shape of the network; @flat unless told otherwise
 * @choices: what is known of the candidates for the automatic choice
 * @names: every name ever used, so that results can point at them
 * @name_of: by handle
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
	struct swc_name *names;
	const char *name_of[256];
};

/*
 * Take over the options, for nranks ranks of which nlocal are on this node. Otherwise @why says what is
 * wrong with them.
 */
int swc_plans_init(struct swc_plans *plans, const struct swingcoll_comm_opts *opts, uint32_t nranks,
		   uint32_t nlocal, char *why, size_t why_bytes);
void swc_plans_free(struct swc_plans *plans);

/*
 * Put into d->plan the handle of the plan for an operation of so many bytes, made and loaded if need be.
 * *variant: SWC_OTHERS becomes SWC_DISJOINT where the algorithm moves what is the rank's own all the same.
 */
int swc_plans_get(struct swingcoll_comm *comm, struct swc_desc *d, enum swc_variant *variant,
		  uint64_t bytes);
/* Name of the algorithm behind a handle, "?" if it is not known. Any thread. */
const char *swc_plans_algo(const struct swc_plans *plans, uint32_t handle);

/* ---- coll.c ---- */

/* A collective that has been checked. */
struct swc_coll_op {
	struct swc_desc desc; /* all but plan and flags */
	struct swc_slots_op slots;
	enum swc_variant variant;
	uint64_t bytes; /* of the vector */
	uint64_t send_bytes, recv_bytes;
};

int swc_coll_prepare(struct swingcoll_comm *comm, const struct swingcoll_call *call,
		     struct swc_coll_op *op);
/*
 * As swingcoll_iallgather() and swingcoll_ibroadcast() of bytes in buffers apart, but what a rank itself sends need
 * not come to its recv. *left_out, which may be NULL: it will not; nobody touches its place there.
 */
int swc_start_others(struct swingcoll_comm *comm, enum swingcoll_coll coll, const void *send,
		     void *recv, size_t bytes, int root, bool *left_out,
		     struct swingcoll_req **req);

/* ---- comm.c ---- */

#define SWC_POOL 64

/**
 * struct swc_place - where the ranks are, if on several nodes
 * @nnodes: nodes, at least 2
 * @nlocal: ranks on this one
 * @rank_node: node of each rank
 * @paths, @npaths: ways from this node to the others
 */
struct swc_place {
	uint32_t nnodes;
	uint32_t nlocal;
	const uint32_t *rank_node;
	const struct swc_node_path *paths;
	uint32_t npaths;
};

/**
 * struct swingcoll_comm - one rank of a communicator
 *
 * @order: held from the choice of an operation's number to its submission: the order in which
 *	threads get it is the order of the collectives
 * @reqs, @busy: the pool of requests and a bit for each that is taken; bits are set under
 *	@order only
 */
struct swingcoll_comm {
	struct swc_context *ctx;
	struct swingcoll_comm *next, **prev; /* context lock */
	struct swingcoll_id id;
	struct swc_place place; /* empty if all ranks are on this node */
	unsigned int shrinks;	/* so often a smaller one was made; atomic */
	uint32_t handle;
	uint32_t nranks;
	uint32_t rank;
	uint32_t flags;	   /* SWINGCOLL_* */
	bool forked;	   /* belongs to our parent */
	uint64_t slot_max; /* largest contribution for the slots, 0: none */
	uint32_t nnodes;
	uint32_t nlocal; /* ranks on this node */
	const struct swc_comm_state *state;

	pthread_mutex_t order;
	struct swc_slots slots;
	struct swc_plans plans;
	const char *last_algo; /* of the last collective that ended well; atomic */

	const struct swc_submit_ops *submit;
	void *submitter;
	struct swc_reaper *reaper;
	uint64_t busy;
	struct swingcoll_req req[SWC_POOL];

	pthread_mutex_t text_lock;
	int local_error; /* a failure that the kernel knows nothing of */
	char local_text[SWC_TEXT_BYTES];
};

#define SWC_DEFAULT_TIMEOUT_MS 30000

/* Whether the numbers among the options are in range. */
int swc_comm_check_opts(const struct swingcoll_comm_opts *opts);
/*
 * swingcoll_comm_create(), with ranks on several nodes unless @place is NULL. @why, if not NULL, gets a
 * line on some failures and stays as it is on others.
 */
int swc_comm_create(struct swingcoll_comm **comm, const struct swingcoll_id *id, int nranks,
		    int rank, const struct swingcoll_comm_opts *opts, const struct swc_place *place,
		    char *why, size_t why_bytes);

/* Remember a failure for swingcoll_comm_error(). Returns error. */
int swc_comm_fail(struct swingcoll_comm *comm, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* SWC_PRIV_H */

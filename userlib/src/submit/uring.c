// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Submission by io_uring: one small ring per communicator. A blocking collective is one system
 * call.
 *
 * The submission queue is filled under comm->order. The next thread that enters the kernel submits
 * all that is queued, in order, its own or not. The completion queue belongs to the reaper.
 * liburing sets the rings up; the tail of the submission queue is written here, because liburing
 * assumes that one thread submits and waits.
 */
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/descriptors.h"
#include "src/priv.h"

#define ENTRIES 64 /* as many as may be in flight; the completion queue has twice that */

struct uring {
	struct swc_reaper reaper; /* first */
	struct io_uring ring;
	bool fixed_file;
};

static void fill(struct io_uring_sqe *sqe, int fd, unsigned long cmd_op, const void *payload,
		 size_t bytes)
{
	memset(sqe, 0, offsetof(struct io_uring_sqe, cmd));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = (uint32_t)cmd_op;
	memcpy(sqe->cmd, payload, bytes);
}

void swc_uring_fill(struct io_uring_sqe *sqe, int fd, const struct swc_desc *desc)
{
	_Static_assert(sizeof(*desc) == 80, "payload of a 128-byte SQE");
	fill(sqe, fd, SWC_CMD_COLLECTIVE, desc, sizeof(*desc));
}

void swc_uring_fill_wait(struct io_uring_sqe *sqe, int fd, const struct swc_partitioned_ref *ref)
{
	_Static_assert(sizeof(*ref) == 16, "payload of a 64-byte SQE");
	fill(sqe, fd, SWC_CMD_PARTITIONED_WAIT, ref, sizeof(*ref));
}

int swc_uring_read(const struct io_uring_cqe *cqe, uint64_t *word)
{
	*word = cqe->big_cqe[0];
	return cqe->res;
}

/* Entries of the submission queue that the kernel has not consumed. */
static unsigned int pending(const struct uring *u)
{
	unsigned int tail = __atomic_load_n(u->ring.sq.ktail, __ATOMIC_ACQUIRE);

	return tail - __atomic_load_n(u->ring.sq.khead, __ATOMIC_ACQUIRE);
}

/*
 * Submit what is queued, and sleep for a completion if @wait is 1, at most @ms milliseconds unless
 * that is 0. Transient errors become -EINTR.
 */
static int enter(struct uring *u, unsigned int wait, unsigned int ms)
{
	struct __kernel_timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	struct io_uring_getevents_arg arg = { .sigmask_sz = _NSIG / 8, .ts = (uintptr_t)&ts };
	unsigned int flags = wait ? IORING_ENTER_GETEVENTS : 0;
	int ret;

	if (ms)
		ret = io_uring_enter2((unsigned int)u->ring.ring_fd, pending(u), wait,
				      flags | IORING_ENTER_EXT_ARG, (sigset_t *)&arg, sizeof(arg));
	else
		ret = io_uring_enter((unsigned int)u->ring.ring_fd, pending(u), wait, flags, NULL);
	if (ret >= 0)
		return 0;
	if (ret == -ETIME)
		return -EINTR;
	if (ret == -EAGAIN || ret == -EBUSY)
		usleep(100); /* the kernel is short of memory */
	return ret == -EAGAIN || ret == -EBUSY ? -EINTR : ret;
}

static bool collect(struct swc_reaper *r)
{
	struct uring *u = (struct uring *)r;
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;

	io_uring_for_each_cqe(&u->ring, head, cqe)
	{
		struct swingcoll_req *req = (void *)(uintptr_t)cqe->user_data;
		uint64_t word;
		int error = swc_uring_read(cqe, &word);

		n++;
		if (error)
			swc_req_complete(req, error, SWC_CQE_CULPRIT(word), 0);
		else
			swc_req_complete(req, 0, -1, SWC_CQE_TIME_NS(word));
	}
	if (n)
		io_uring_cq_advance(&u->ring, n);
	return n;
}

static int sleep_once(struct swc_reaper *r, unsigned int ms)
{
	return enter((struct uring *)r, 1, ms);
}

static int push(struct swc_reaper *r)
{
	struct uring *u = (struct uring *)r;
	int ret = 0;

	while (pending(u) && (!ret || ret == -EINTR))
		ret = enter(u, 0, 0);
	return ret == -EINTR ? 0 : ret;
}

static int uring_open(struct swingcoll_comm *comm)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 };
	struct uring *u = calloc(1, sizeof(*u));
	int saved = errno, ret;

	if (!u)
		return -ENOMEM;
	ret = io_uring_queue_init_params(ENTRIES, &u->ring, &p);
	if (ret) {
		free(u);
		errno = saved;
		return ret;
	}
	/* Programs that run with standard streams closed open others in their place. */
	u->ring.ring_fd = u->ring.enter_ring_fd = swc_descriptor_move(u->ring.ring_fd);
	if (u->ring.ring_fd < 0) {
		ret = -errno;
		io_uring_queue_exit(&u->ring);
		free(u);
		errno = saved;
		return ret;
	}
	io_uring_ring_dontfork(&u->ring);
	/* A fixed file saves a reference per operation; it works without. */
	u->fixed_file = !io_uring_register_files(&u->ring, &comm->ctx->fd, 1);
	/* Newer liburing asks for a ring without the array, in which entry i is at index i. */
	for (unsigned int i = 0; u->ring.sq.array && i < p.sq_entries; i++)
		u->ring.sq.array[i] = i;
	swc_reaper_init(&u->reaper);
	u->reaper.collect = collect;
	u->reaper.sleep = sleep_once;
	u->reaper.push = push;
	comm->submitter = u;
	comm->reaper = &u->reaper;
	errno = saved;
	return 0;
}

static void uring_close(struct swingcoll_comm *comm)
{
	struct uring *u = comm->submitter;
	int saved = errno;

	/*
	 * In the child of a fork, the condition variable may have waiters for ever: threads that do
	 * not exist, and pthread_cond_destroy() would wait for them.
	 */
	if (!comm->forked) {
		io_uring_queue_exit(&u->ring);
		swc_reaper_destroy(&u->reaper);
	}
	free(u);
	errno = saved;
}

static int uring_queue(struct swingcoll_comm *comm, const struct swc_desc *desc,
		       struct swingcoll_req *req)
{
	struct uring *u = comm->submitter;
	struct io_uring_sq *sq = &u->ring.sq;
	unsigned int tail = *sq->ktail; /* only this function writes it, under comm->order */
	struct io_uring_sqe *sqe = &sq->sqes[(tail & (ENTRIES - 1)) * 2];

	/*
	 * There are as many entries as requests: the queue is full only if the kernel consumes
	 * none.
	 */
	if (pending(u) >= ENTRIES)
		return -EAGAIN;
	swc_uring_fill(sqe, u->fixed_file ? 0 : comm->ctx->fd, desc);
	if (u->fixed_file)
		sqe->flags = IOSQE_FIXED_FILE;
	sqe->user_data = (uintptr_t)req;
	__atomic_store_n(sq->ktail, tail + 1, __ATOMIC_RELEASE);
	return 0;
}

static void uring_forked(struct swingcoll_comm *comm)
{
	struct uring *u = comm->submitter;

	close(u->ring.ring_fd);
}

const struct swc_submit_ops swc_submit_uring = {
	.name = "io_uring",
	.open = uring_open,
	.close = uring_close,
	.queue = uring_queue,
	.forked = uring_forked,
};

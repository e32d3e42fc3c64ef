/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls of the library for the Python package, which record their outcome before they return to the
 * interpreter.
 *
 * CPython runs handlers of signals between two instructions, so also between a call and the
 * assignment of its result. If a handler raises, as for KeyboardInterrupt, the result is lost; but a
 * request that has been waited for must not be waited for again, nor freed memory be freed. All
 * functions run without the interpreter's lock, and may be called from any thread. cffi zeroes the
 * structs, which is how Linux initializes a mutex and a condition variable.
 *
 * In the child of a fork, a thread that does not exist there may hold the lock of what the parent made. So it
 * is not taken: calls end with -EBADF, as the library's own do.
 */
#ifndef SWC_PY_CALLS_H
#define SWC_PY_CALLS_H

#include <pthread.h>
#include <stddef.h>
#include <swingcoll.h>

/* Of the process: forks since the first one has loaded this. What it makes has this number. */
unsigned int swc_py_generation(void);

/* A collective in flight. lock is held by the thread that waits, and guards req, error and culprit. */
struct swc_py_request {
	struct swingcoll_req *req; /* set by the call that starts it, NULL once it is done */
	int error;
	int culprit;
	void *move_to; /* where the result goes after a success, if the library leaves it elsewhere */
	const void *move_from;
	size_t move_bytes; /* 0: nowhere */
	unsigned int generation;
	pthread_mutex_t lock;
};

/* swingcoll_wait(), once: later calls return the same error. */
int swc_py_wait(struct swc_py_request *r);
/* swingcoll_test() likewise; -EINPROGRESS also while another thread waits. */
int swc_py_test(struct swc_py_request *r);

/* A partitioned collective. lock guards the rest. */
struct swc_py_partitioned {
	struct swingcoll_partitioned *p; /* NULL once it is freed */
	unsigned int generation;
	int partitions;
	int unmarked; /* how many of the round this rank has not marked */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* one is marked, or the round has changed */
	unsigned char lacks[];	/* 1 for each of these */
};

/* As those of swingcoll.h; -EINVAL after it is freed. */
int swc_py_pstart(struct swc_py_partitioned *p);
int swc_py_pready(struct swc_py_partitioned *p, int partition);
/*
 * Wait at most timeout_ms for marks of this rank: 1 if a partition, or SWINGCOLL_ALL_PARTITIONS, are
 * marked or the communicator has failed, else 0.
 */
int swc_py_pmarked(struct swc_py_partitioned *p, int partition, int timeout_ms);
/* swingcoll_pfree(), once: later calls return 0. */
int swc_py_pfree(struct swc_py_partitioned *p);

/* swingcoll_comm_destroy(), once. */
void swc_py_destroy(struct swingcoll_comm **comm);

#endif

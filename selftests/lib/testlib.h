/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all tests share: the device through its uapi alone, plans of their own (plan.h), processes as ranks
 * (process.h), the module's counters, and io_uring. Functions return 0 or a negative errno unless they say otherwise.
 */
#ifndef TESTLIB_H
#define TESTLIB_H

#include <liburing.h>
#include <linux/swingcoll.h>
#include <stdint.h>
#include <sys/types.h>

#include "ksft.h"
#include "plan.h"
#include "process.h"

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#endif

/* ------------------------------------------------------------------ device */

/* One open of the device with its completion ring. */
struct testlib_ctx {
	int fd;
	const struct swc_ring_header *ring;
	const struct swc_completion *entry;
	struct swc_ring_user *user;
	size_t ring_bytes;
};

/* End the program with SKIP without the device; testlib_require_root(): or if the user is not root. */
void testlib_require_device(void);
void testlib_require_root(void);
int testlib_open(struct testlib_ctx *c);
void testlib_close(struct testlib_ctx *c);
int testlib_ioctl(int fd, unsigned long cmd, void *arg);
/* Ends the program if there is no answer. */
struct swc_info testlib_info(void);

/* A random communicator id; children forked after the call share it. */
void testlib_new_id(uint8_t id[SWC_ID_BYTES]);
/* Create a communicator as one of its ranks. The result for a bad call: *comm is whatever the kernel wrote. */
int testlib_comm_create(int fd, const uint8_t *id, uint32_t nranks, uint32_t rank,
			uint32_t timeout_ms, uint32_t *comm);
int testlib_comm_leave(int fd, uint32_t comm);
int testlib_comm_error(int fd, uint32_t comm, struct swc_comm_error *e);
/* Wait until ranks 0 to n - 1 are members; they may still wait for others in COMM_CREATE. */
bool testlib_wait_members(const uint8_t *id, uint32_t n);
/* Load a packed plan; plan and text (SWC_TEXT_BYTES) may be NULL. */
int testlib_plan_load(int fd, uint32_t comm, const void *data, size_t bytes, uint32_t *plan,
		      char *text);
/* Load a packed plan and free its memory. */
int testlib_plan_install(int fd, uint32_t comm, struct testlib_plan *p, uint32_t *plan);

int testlib_submit(int fd, const struct swc_desc *d);
/* Take the next entry of the completion ring. -ETIME after timeout_ms. */
int testlib_ring_next(struct testlib_ctx *c, struct swc_completion *out, uint32_t timeout_ms);
/* Submit by ioctl and wait: the operation's result, or the submission's error. out may be NULL. */
int testlib_submit_wait(struct testlib_ctx *c, const struct swc_desc *d,
			struct swc_completion *out);

/* The module's counters: the first n of enum swc_stat, or one of them (all ones if that fails). */
int testlib_stats(uint64_t *v, unsigned int n);
uint64_t testlib_stat(unsigned int which);
/*
 * Wait until all pages are unpinned, all regions and connections released, and all contexts closed but so many.
 * Returns 0, or 1 with a diagnostic if something stays.
 */
int testlib_wait_released(unsigned int contexts);

/* ------------------------------------------------------------------ ranks */

/* A member with the plan of a direct allreduce. */
struct testlib_rank {
	struct testlib_ctx c;
	uint32_t comm, plan;
	uint32_t nranks, rank;
};

/* Open the device, create the communicator, load the plan. */
int testlib_rank_open(struct testlib_rank *r, const uint8_t *id, uint32_t nranks, uint32_t rank,
		      uint32_t timeout_ms);
/* The last two of them, for a device that is open. */
int testlib_rank_join(struct testlib_rank *r, const uint8_t *id, uint32_t nranks, uint32_t rank,
		      uint32_t timeout_ms);
/* Leave and close. */
void testlib_rank_close(struct testlib_rank *r);
/* A communicator of one rank with a new id. Ends the program if that fails. */
void testlib_single_rank(struct testlib_rank *r, uint8_t id[SWC_ID_BYTES]);
/* The descriptor of an allreduce, sum, by r->plan. */
struct swc_desc testlib_allreduce_desc(const struct testlib_rank *r, const void *send, void *recv,
				       uint64_t count, int dtype);
/* Run an allreduce of count u32 and check every element; -EBADMSG if one is wrong. */
int testlib_check_allreduce(struct testlib_rank *r, uint64_t count);

/* ------------------------------------------------------------------ test programs */

/* A test without arguments; fn returns 0 if it passes. */
struct testlib_test {
	const char *name;
	int (*fn)(void);
};

/* Print the TAP plan, run all tests, and print a result for each. */
void testlib_run_tests(const struct testlib_test *test, unsigned int n);
/*
 * Run fn when this process ends by exit(), SIGTERM or SIGINT, and not in its children: to restore what the test has
 * changed of the machine. Once per program.
 */
void testlib_at_end(void (*fn)(void));
/* The text of a setting such as a file of /proc/sys. False if there is none, or it cannot be written. */
bool testlib_read_text(const char *path, char *text, size_t bytes);
bool testlib_write_text(const char *path, const char *text);
/* All calls of the device by ioctl(). */
#define TESTLIB_CALLS 23
extern const unsigned long testlib_call[TESTLIB_CALLS];
/* Is the test meant by the arguments, words of names of tests? Without arguments, all are. */
bool testlib_is_asked(int argc, char **argv, const char *name);
/* A number from the environment, or the default. */
unsigned int testlib_env(const char *name, unsigned int dflt);
/* Likewise for a seed: a random one without the variable. The caller prints it. */
unsigned int testlib_env_seed(const char *name);

/* ------------------------------------------------------------------ io_uring */

#define TESTLIB_URING_BIG (IORING_SETUP_SQE128 | IORING_SETUP_CQE32)

int testlib_uring_init(struct io_uring *ring, unsigned int entries, unsigned int flags);
/* Prepare a collective, or the wait for a partition. NULL if the submission queue is full. */
struct io_uring_sqe *testlib_uring_prep(struct io_uring *ring, int fd, const struct swc_desc *d,
					uint64_t user_data);
struct io_uring_sqe *testlib_uring_prep_wait(struct io_uring *ring, int fd,
					     const struct swc_partitioned_ref *ref,
					     uint64_t user_data);
/* The next CQE; the caller marks it as seen. -ETIME after timeout_ms. */
int testlib_uring_next(struct io_uring *ring, struct io_uring_cqe **cqe, uint32_t timeout_ms);
/* Take the next CQE: returns res; *word gets the first big_cqe word (0 on rings without). -ETIME after timeout_ms. */
int testlib_uring_wait(struct io_uring *ring, uint64_t *user_data, uint64_t *word,
		       uint32_t timeout_ms);

/* ------------------------------------------------------------------ checks */

/* In a function that returns 0 or 1: return 1 with a diagnostic unless the condition holds. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			ksft_print_msg("%s:%d: %s\n", __FILE__, __LINE__, #cond);                  \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

#define CHECK_EQ(what, want)                                                                       \
	do {                                                                                       \
		long long got_ = (long long)(what), want_ = (long long)(want);                     \
		if (got_ != want_) {                                                               \
			ksft_print_msg("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #what, \
				       got_, want_);                                               \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

#endif /* TESTLIB_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests share: the device through its public face, small plans of their own, processes as
 * ranks, and the module's counters. Calls return 0 or a negative errno.
 */
#ifndef SWCT_H
#define SWCT_H

#include <liburing.h>
#include <linux/swingcoll.h>
#include <stdint.h>
#include <sys/types.h>

#include "ksft.h"

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#endif

/* One open of the device with its completion ring. */
struct swct_ctx {
	int fd;
	const struct swc_ring_header *ring;
	const struct swc_completion *entry;
	struct swc_ring_user *user;
	size_t ring_bytes;
};

/* Exits with SKIP if there is no device. */
void swct_need_device(void);
/* Also exits with SKIP if not root. */
void swct_need_root(void);
int swct_open(struct swct_ctx *c);
void swct_close(struct swct_ctx *c);
int swct_ioctl(int fd, unsigned long cmd, void *arg);

/* A fresh id; the same for all children made after the call. */
void swct_id(uint8_t id[SWC_ID_BYTES]);
int swct_join(int fd, const uint8_t *id, uint32_t nranks, uint32_t rank, uint32_t timeout_ms,
	      uint32_t *comm);
int swct_leave(int fd, uint32_t comm);
/* Wait until ranks 0 to n - 1 have taken their places, and may sleep in their joins. */
bool swct_joined(const uint8_t *id, uint32_t n);
int swct_error(int fd, uint32_t comm, struct swc_comm_error *e);
int swct_submit(int fd, const struct swc_desc *d);
/* The next entry of the completion ring, consumed. -ETIME after timeout_ms. */
int swct_next(struct swct_ctx *c, struct swc_completion *out, uint32_t timeout_ms);
/* Submit by ioctl and wait; the operation's result, or the submission's error. */
int swct_run(struct swct_ctx *c, const struct swc_desc *d, struct swc_completion *out);

int swct_stats(uint64_t *v, unsigned int n);
uint64_t swct_stat(unsigned int which);

/* Plans. */
struct swct_plan {
	struct swc_plan_header h;
	struct swc_plan_channel *chan;
	struct swc_plan_step *step;
	struct swc_plan_xfer *xfer;
	void *data; /* after swct_plan_pack() */
	size_t bytes;
};

void swct_plan_init(struct swct_plan *p, int coll, uint32_t nranks, uint32_t rank, uint32_t root,
		    uint32_t part_blocks);
void swct_plan_channel(struct swct_plan *p);
void swct_plan_step(struct swct_plan *p, int kind);
void swct_plan_send(struct swct_plan *p, uint32_t rank, int buf, uint32_t first, uint32_t n);
/* In network steps, for a receive that does not reduce. */
void swct_plan_send_stored(struct swct_plan *p, uint32_t rank, int buf, uint32_t first, uint32_t n);
void swct_plan_recv(struct swct_plan *p, uint32_t rank, int buf, uint32_t first, uint32_t n,
		    int operand, uint32_t flags);
void swct_plan_pack(struct swct_plan *p);
void swct_plan_free(struct swct_plan *p);
int swct_plan_load(int fd, uint32_t comm, const void *data, size_t bytes, uint32_t *plan,
		   char *text);
/* Allreduce: one LOCAL step and a SYNC; through scratch, so right in place. */
void swct_plan_direct(struct swct_plan *p, uint32_t nranks, uint32_t rank);
/* Allreduce round a ring, in NET steps. */
void swct_plan_ring(struct swct_plan *p, uint32_t nranks, uint32_t rank);
void swct_plan_barrier(struct swct_plan *p, uint32_t nranks, uint32_t rank);

/* The usual start of a rank: open, join, load the direct allreduce. */
struct swct_rank {
	struct swct_ctx c;
	uint32_t comm, plan;
	uint32_t nranks, rank;
};

int swct_rank_up(struct swct_rank *r, const uint8_t *id, uint32_t nranks, uint32_t rank,
		 uint32_t timeout_ms);
void swct_rank_down(struct swct_rank *r);
/* A communicator of one under a fresh id; without it the program ends. */
void swct_alone(struct swct_rank *r, uint8_t id[SWC_ID_BYTES]);
/* An allreduce of f32 (or what @dtype says), sum, by r->plan. */
struct swc_desc swct_allreduce(const struct swct_rank *r, const void *send, void *recv,
			       uint64_t count, int dtype);
/* A whole allreduce of u32 with checked results: 0, or a negative errno (-EBADMSG: wrong result). */
int swct_sound(struct swct_rank *r, uint64_t count);

/* Ranks as processes: fork nranks children that run fn and exit with its return value (0: good). */
typedef int (*swct_fn)(uint32_t rank, void *arg);
void swct_fork(pid_t *pid, uint32_t nranks, swct_fn fn, void *arg);
/* Wait; kills what is left after timeout_ms. Number of children that failed. */
int swct_reap(pid_t *pid, uint32_t nranks, uint32_t timeout_ms);
/* Both. */
int swct_ranks(uint32_t nranks, uint32_t timeout_ms, swct_fn fn, void *arg);
/* Fork one, wait; its exit status, 256 + signal, -1 on time-out. */
int swct_child(int (*fn)(void *arg), void *arg, uint32_t timeout_ms);

/* The tests of a program that need nothing but its globals: the plan, and a result for each. */
struct swct_test {
	const char *name;
	int (*fn)(void); /* 0: good */
};

void swct_tests(const struct swct_test *test, unsigned int n);

/* Memory that parent and children share. */
void *swct_shared(size_t bytes);
uint64_t swct_ms(void);
void swct_sleep_ms(unsigned int ms);

/* io_uring. */
int swct_uring_init(struct io_uring *ring, unsigned int entries, unsigned int flags);
struct io_uring_sqe *swct_uring_prep(struct io_uring *ring, int fd, const struct swc_desc *d,
				     uint64_t user_data);
struct io_uring_sqe *swct_uring_prep_wait(struct io_uring *ring, int fd,
					  const struct swc_part_ref *ref, uint64_t user_data);
/* Next CQE, for the caller to mark as seen. -ETIME after timeout_ms. */
int swct_uring_next(struct io_uring *ring, struct io_uring_cqe **cqe, uint32_t timeout_ms);
/* Next CQE, consumed: res; *word its second word. -ETIME after timeout_ms. */
int swct_uring_wait(struct io_uring *ring, uint64_t *user_data, uint64_t *word,
		    uint32_t timeout_ms);

/* In a child: say what went wrong and where. */
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

#endif /* SWCT_H */

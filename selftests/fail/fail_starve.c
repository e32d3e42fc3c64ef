// SPDX-License-Identifier: GPL-2.0-only
/*
 * A user whose operations are many, long and without a deadline keeps the CPUs busy. Operations, deadlines, ends of
 * processes and memory of other users must not wait for him.
 *
 * What is promised within milliseconds or a second gets PROMPT_MS here. Without isolation it takes as long as the
 * attack, which only ends with the test.
 */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "testlib.h"

#define ATTACKER 65534
#define OTHER 65533
/* Each with as many operations as may be in flight: more than a work queue runs at once. */
#define COMMS 5
#define ENDLESS_MS UINT32_MAX
#define DEADLINE_MS 1000
#define PROMPT_MS 10000
#define OPS 20
#define LIMIT (1ul << 20)

/* Shared by parent and children. */
struct progress {
	unsigned int attacking;
	unsigned int submitted;
};

static struct progress *progress;
static uint8_t id[SWC_ID_BYTES];

/* Only root can open the device: c is open. */
static int become(uid_t uid)
{
	CHECK(!setgroups(0, NULL) && !setgid(uid) && !setuid(uid));
	/* The change of the user has cleared it. */
	CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
	return 0;
}

/* ------------------------------------------------------------------ the attacker */

static int long_plan(int fd, uint32_t comm, uint32_t *plan)
{
	struct testlib_plan p;

	testlib_plan_longest(&p, 1, 0);
	return testlib_plan_install(fd, comm, &p, plan);
}

/* No SWC_OP_WAITING: kernel threads execute the plans. */
static int attack(uint32_t rank, void *arg)
{
	struct swc_desc d[COMMS];
	struct testlib_ctx c;

	(void)rank, (void)arg;
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(become(ATTACKER), 0);
	for (int i = 0; i < COMMS; i++) {
		uint8_t own[SWC_ID_BYTES];

		d[i] = (struct swc_desc){ .coll = SWC_BARRIER,
					  .timeout_ms = ENDLESS_MS,
					  .user_data = i };
		testlib_new_id(own);
		CHECK_EQ(testlib_comm_create(c.fd, own, 1, 0, PROMPT_MS, &d[i].comm), 0);
		CHECK_EQ(long_plan(c.fd, d[i].comm, &d[i].plan), 0);
	}
	for (int k = 0; k < SWC_MAX_INFLIGHT; k++)
		for (int i = 0; i < COMMS; i++)
			CHECK_EQ(testlib_submit(c.fd, &d[i]), 0);
	testlib_count(&progress->attacking);
	for (;;) {
		struct swc_completion done;

		CHECK_EQ(testlib_ring_next(&c, &done, ENDLESS_MS), 0);
		CHECK_EQ(done.res, 0);
		CHECK_EQ(testlib_submit(c.fd, &d[done.user_data]), 0);
	}
}

/* ------------------------------------------------------------------ other users */

/* Have all processes ended, successfully or by SIGKILL? Those that have not remain in pid. */
static bool ended(pid_t *pid, int n, uint64_t limit_ms)
{
	uint64_t start = testlib_now_ms();
	int left = n, bad = 0, status;

	do {
		for (int i = 0; i < n; i++) {
			if (!pid[i] || waitpid(pid[i], &status, WNOHANG) != pid[i])
				continue;
			pid[i] = 0;
			left--;
			bad += WIFEXITED(status) ? WEXITSTATUS(status)
						 : WTERMSIG(status) != SIGKILL;
		}
		testlib_sleep_ms(2);
	} while (left && testlib_now_ms() - start < limit_ms);
	ksft_print_msg("%d of %d processes ended within %llu ms\n", n - left, n,
		       (unsigned long long)(testlib_now_ms() - start));
	return !left && !bad;
}

static int operations(uint32_t rank, void *arg)
{
	uint32_t send[4] = { 1, 2, 3, 4 }, recv[4];
	uint64_t v[SWC_STAT_NR];
	struct testlib_rank r;
	struct swc_desc d;

	(void)arg;
	CHECK_EQ(testlib_rank_open(&r, id, 2, rank, PROMPT_MS), 0);
	d = testlib_allreduce_desc(&r, send, recv, 4, SWC_U32);
	d.timeout_ms = PROMPT_MS;
	for (int i = 0; i < OPS; i++) {
		CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
		CHECK_EQ(recv[3], 8);
	}
	CHECK_EQ(testlib_stats(v, SWC_STAT_NR), 0);
	testlib_rank_close(&r);
	return 0;
}

/* Rank 1 never calls the operation. */
static int missing_rank(uint32_t rank, void *arg)
{
	uint64_t start = testlib_now_ms();
	struct testlib_rank r;
	struct swc_desc d;

	(void)arg;
	CHECK_EQ(testlib_rank_open(&r, id, 2, rank, PROMPT_MS), 0);
	d = testlib_allreduce_desc(&r, NULL, NULL, 0, SWC_U32);
	d.timeout_ms = DEADLINE_MS;
	if (!rank) {
		start = testlib_now_ms();
		CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), -ETIMEDOUT);
		CHECK(testlib_now_ms() - start >= DEADLINE_MS);
		testlib_count(&progress->submitted);
	} else {
		CHECK(testlib_wait_count(&progress->submitted, 1));
	}
	return 0;
}

/* Several operations have begun when the process closes the device; all wait for kernel threads, or for rank 1. */
static int busy(uint32_t rank, void *arg)
{
	bool closes = arg;
	static uint32_t v[4];
	struct testlib_rank r;
	struct swc_desc d;

	CHECK_EQ(testlib_rank_open(&r, id, 2, rank, PROMPT_MS), 0);
	d = testlib_allreduce_desc(&r, v, v, 4, SWC_U32);
	d.timeout_ms = ENDLESS_MS;
	for (int i = 0; i < OPS + !rank; i++)
		CHECK_EQ(testlib_submit(r.c.fd, &d), 0);
	testlib_count(&progress->submitted);
	CHECK(testlib_wait_count(&progress->submitted, 2));
	while (!closes)
		pause();
	testlib_close(&r.c);
	return 0;
}

static int reg(int fd, void *at, size_t bytes, uint32_t *handle)
{
	struct swc_mem_reg m = { .addr = (uintptr_t)at, .bytes = bytes };
	int ret = testlib_ioctl(fd, SWC_IOC_MEM_REG, &m);

	*handle = m.region;
	return ret;
}

/* At the limit, a registration waits until memory that has been released is not accounted for any more. */
static int memory(uint32_t rank, void *arg)
{
	struct rlimit limit = { LIMIT, LIMIT };
	struct testlib_ctx c;
	uint32_t handle, more;
	char *p = mmap(NULL, 2 * LIMIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)rank, (void)arg;
	CHECK(p != MAP_FAILED);
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(become(OTHER), 0);
	for (int i = 0; i < OPS; i++) {
		struct swc_mem_unreg m;

		CHECK_EQ(reg(c.fd, p, LIMIT, &handle), 0);
		CHECK_EQ(reg(c.fd, p + LIMIT, 4096, &more), -ENOMEM);
		m = (struct swc_mem_unreg){ .region = handle };
		CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_MEM_UNREG, &m), 0);
	}
	testlib_close(&c);
	return 0;
}

/* ------------------------------------------------------------------ all of it */

static bool run(pid_t *pid, int n, testlib_rank_fn fn, void *arg, uint64_t limit_ms)
{
	testlib_new_id(id);
	progress->submitted = 0;
	testlib_fork_ranks(pid, n, fn, arg);
	return ended(pid, n, limit_ms);
}

static bool killed(pid_t *pid)
{
	testlib_new_id(id);
	progress->submitted = 0;
	testlib_fork_ranks(pid, 2, busy, NULL);
	if (!testlib_wait_count(&progress->submitted, 2))
		return false;
	for (int i = 0; i < 2; i++)
		kill(pid[i], SIGKILL);
	return ended(pid, 2, PROMPT_MS);
}

int main(void)
{
	pid_t attacker, pid[9] = {};

	ksft_print_header();
	testlib_require_root();
	ksft_set_plan(7);
	progress = testlib_shared_alloc(sizeof(*progress));
	testlib_fork_ranks(&attacker, 1, attack, NULL);
	if (!testlib_wait_count(&progress->attacking, 1))
		ksft_exit_fail_msg("cannot set up\n");
	ksft_test_result(run(pid, 2, operations, NULL, OPS * PROMPT_MS / 4), "operations complete");
	ksft_test_result(run(pid + 2, 2, missing_rank, NULL, DEADLINE_MS + PROMPT_MS),
			 "an operation of a missing rank ends at its deadline");
	ksft_test_result(run(pid + 4, 2, busy, (void *)1, PROMPT_MS), "the device is closed");
	ksft_test_result(killed(pid + 6), "killed processes end");
	ksft_test_result(run(pid + 8, 1, memory, NULL, PROMPT_MS),
			 "memory is registered and released");
	kill(attacker, SIGKILL);
	ksft_test_result(ended(&attacker, 1, PROMPT_MS), "the attacker ends when it is killed");
	/* All that hung goes on now. */
	testlib_wait_ranks(pid, ARRAY_SIZE(pid));
	ksft_test_result(!testlib_wait_released(0), "everything is released");
	ksft_finished();
}

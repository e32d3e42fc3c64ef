// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "victim.h"

#define DEADLINE_MS 1000
#define OPS 20
#define LIMIT (1ul << 20)
#define RANKS 2
/* Processes that may hang at a time. */
#define MOST_PROCESSES 64

const char *const victim_name[VICTIM_NR] = {
	[VICTIM_OPERATES] = "operations complete",
	[VICTIM_MISSES] = "an operation of a missing rank ends at its deadline",
	[VICTIM_CLOSES] = "the device is closed",
	[VICTIM_DIES] = "killed processes end",
	[VICTIM_REGISTERS] = "memory is registered and released",
};

/* Shared with the ranks. */
static struct progress {
	unsigned int submitted;
	uint64_t since, took; /* in us */
} * progress;

static uint8_t id[SWC_ID_BYTES];
static pid_t processes[MOST_PROCESSES];
static int nprocesses;

static uint64_t now_us(void)
{
	return testlib_now_ns() / 1000;
}

int victim_become(uid_t uid)
{
	CHECK(!setgroups(0, NULL) && !setgid(uid) && !setuid(uid));
	/* The change of the user has cleared it. */
	CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
	return 0;
}

bool victim_ended(pid_t *pid, int n, uint64_t limit_ms)
{
	uint64_t start = testlib_now_ms();
	int left = n, bad = 0, status;

	for (;;) {
		for (int i = 0; i < n; i++) {
			if (!pid[i] || waitpid(pid[i], &status, WNOHANG) != pid[i])
				continue;
			pid[i] = 0;
			left--;
			bad += WIFEXITED(status) ? WEXITSTATUS(status)
						 : WTERMSIG(status) != SIGKILL;
		}
		if (!left || testlib_now_ms() - start >= limit_ms)
			break;
		testlib_sleep_ms(1);
	}
	if (left)
		ksft_print_msg("%d of %d processes have not ended after %llu ms\n", left, n,
			       (unsigned long long)limit_ms);
	return !left && !bad;
}

/* ------------------------------------------------------------------ ranks */

static int join(struct testlib_rank *r, uint32_t rank)
{
	CHECK_EQ(testlib_open(&r->c), 0);
	CHECK_EQ(victim_become(VICTIM_UID), 0);
	return testlib_rank_join(r, id, RANKS, rank, VICTIM_PROMPT_MS);
}

static int operates(uint32_t rank, void *arg)
{
	uint32_t send[4] = { 1, 2, 3, 4 }, recv[4];
	uint64_t v[SWC_STAT_NR], start;
	struct testlib_rank r;
	struct swc_desc d;

	(void)arg;
	CHECK_EQ(join(&r, rank), 0);
	d = testlib_allreduce_desc(&r, send, recv, 4, SWC_U32);
	d.timeout_ms = VICTIM_PROMPT_MS;
	for (int i = 0; i < OPS; i++) {
		start = now_us();
		CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
		CHECK_EQ(recv[3], 8);
		if (!rank && now_us() - start > progress->took)
			progress->took = now_us() - start;
	}
	CHECK_EQ(testlib_stats(v, SWC_STAT_NR), 0);
	testlib_rank_close(&r);
	return 0;
}

/* Rank 1 never calls the operation. */
static int misses(uint32_t rank, void *arg)
{
	struct testlib_rank r;
	struct swc_desc d;
	uint64_t start;

	(void)arg;
	CHECK_EQ(join(&r, rank), 0);
	d = testlib_allreduce_desc(&r, NULL, NULL, 0, SWC_U32);
	d.timeout_ms = DEADLINE_MS;
	if (rank) {
		CHECK(testlib_wait_count(&progress->submitted, 1));
		return 0;
	}
	start = now_us();
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), -ETIMEDOUT);
	CHECK(now_us() - start >= DEADLINE_MS * 1000);
	progress->took = now_us() - start - DEADLINE_MS * 1000;
	testlib_count(&progress->submitted);
	return 0;
}

/* Several operations have begun when the process goes; all wait for kernel threads, or for rank 1. */
static int busy(uint32_t rank, void *arg)
{
	bool closes = arg;
	static uint32_t v[4];
	struct testlib_rank r;
	struct swc_desc d;

	CHECK_EQ(join(&r, rank), 0);
	d = testlib_allreduce_desc(&r, v, v, 4, SWC_U32);
	d.timeout_ms = VICTIM_ENDLESS_MS;
	for (int i = 0; i < OPS + !rank; i++)
		CHECK_EQ(testlib_submit(r.c.fd, &d), 0);
	testlib_count(&progress->submitted);
	CHECK(testlib_wait_count(&progress->submitted, RANKS));
	while (!closes)
		pause();
	progress->since = now_us();
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
static int registers(uint32_t rank, void *arg)
{
	struct rlimit limit = { LIMIT, LIMIT };
	struct testlib_ctx c;
	uint32_t handle, more;
	char *p = mmap(NULL, 2 * LIMIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)rank, (void)arg;
	CHECK(p != MAP_FAILED);
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(victim_become(VICTIM_UID), 0);
	for (int i = 0; i < OPS; i++) {
		uint64_t start = now_us();
		struct swc_mem_unreg m;

		CHECK_EQ(reg(c.fd, p, LIMIT, &handle), 0);
		CHECK_EQ(reg(c.fd, p + LIMIT, 4096, &more), -ENOMEM);
		m = (struct swc_mem_unreg){ .region = handle };
		CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_MEM_UNREG, &m), 0);
		if (now_us() - start > progress->took)
			progress->took = now_us() - start;
	}
	testlib_close(&c);
	return 0;
}

/* ------------------------------------------------------------------ actions */

void victim_init(void)
{
	progress = testlib_shared_alloc(sizeof(*progress));
}

static bool run(pid_t *pid, enum victim_action action)
{
	static const testlib_rank_fn fn[VICTIM_NR] = {
		[VICTIM_OPERATES] = operates,	[VICTIM_MISSES] = misses,
		[VICTIM_CLOSES] = busy,		[VICTIM_DIES] = busy,
		[VICTIM_REGISTERS] = registers,
	};
	int n = action == VICTIM_REGISTERS ? 1 : RANKS;
	uint64_t limit = VICTIM_PROMPT_MS;

	testlib_fork_ranks(pid, n, fn[action], (void *)(uintptr_t)(action == VICTIM_CLOSES));
	if (action == VICTIM_OPERATES)
		limit = OPS * VICTIM_PROMPT_MS / 4;
	if (action == VICTIM_DIES) {
		if (!testlib_wait_count(&progress->submitted, RANKS))
			return false;
		progress->since = now_us();
		for (int i = 0; i < RANKS; i++)
			kill(pid[i], SIGKILL);
	}
	return victim_ended(pid, n, limit + (action == VICTIM_MISSES ? DEADLINE_MS : 0));
}

bool victim_run(enum victim_action action, uint64_t *took_us)
{
	pid_t *pid = processes + nprocesses;
	bool good;

	if (nprocesses + RANKS > MOST_PROCESSES)
		ksft_exit_fail_msg("too many processes hang\n");
	testlib_new_id(id);
	memset(progress, 0, sizeof(*progress));
	good = run(pid, action);
	*took_us = progress->since ? now_us() - progress->since : progress->took;
	if (pid[0] || pid[1])
		nprocesses += RANKS;
	return good;
}

void victim_wait(void)
{
	testlib_wait_ranks(processes, nprocesses);
	nprocesses = 0;
}

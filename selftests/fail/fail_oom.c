// SPDX-License-Identifier: GPL-2.0-only
/*
 * A rank that the OOM killer has killed: the others read that in the error, for it is not the job's user who must look
 * for a kill, but its memory limit that is too low. Each victim is in a memory cgroup of its own.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testlib.h"

#define N 3
#define VICTIM 1
#define LIMIT (32ul << 20)
#define GROUPS "/sys/fs/cgroup"
#define GROUP GROUPS "/swc-oom"

static uint8_t id[SWC_ID_BYTES];
static uint32_t small[1000];

static int put(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");
	int ret = f && fputs(text, f) >= 0 ? 0 : -errno;

	return f && fclose(f) ? -errno : ret;
}

/* Return: 0; a negative errno: the kernel has no memory cgroups of version 2. */
static int make_group(void)
{
	char limit[32];
	int ret;

	if (access(GROUPS "/cgroup.controllers", F_OK) && mount("none", GROUPS, "cgroup2", 0, NULL))
		return -errno;
	ret = put(GROUPS "/cgroup.subtree_control", "+memory");
	if (!ret && mkdir(GROUP, 0755) && errno != EEXIST)
		ret = -errno;
	snprintf(limit, sizeof(limit), "%lu", LIMIT);
	if (!ret)
		ret = put(GROUP "/memory.max", limit);
	/* Only exists where there is swap. */
	put(GROUP "/memory.swap.max", "0");
	return ret;
}

/* Use more memory than the cgroup has. */
static int victim(void)
{
	char pid[16], *p;

	snprintf(pid, sizeof(pid), "%d", getpid());
	CHECK_EQ(put(GROUP "/cgroup.procs", pid), 0);
	p = mmap(NULL, 4 * LIMIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	/* For those who read the kernel's log: the report to come is no trouble. */
	CHECK_EQ(put("/dev/kmsg", "swingcoll test: expecting the OOM killer\n"), 0);
	memset(p, 1, 4 * LIMIT);
	ksft_print_msg("%lu MiB fit into a cgroup of %lu MiB\n", 4 * LIMIT >> 20, LIMIT >> 20);
	return 1;
}

static int member(uint32_t rank, void *arg)
{
	bool uring = *(bool *)arg;
	struct swc_completion done;
	struct swc_comm_error e;
	struct io_uring ring;
	struct testlib_rank r;
	struct swc_desc d;

	CHECK_EQ(testlib_rank_open(&r, id, N, rank, 2 * TESTLIB_EVENT_MS), 0);
	CHECK_EQ(testlib_uring_init(&ring, 16, TESTLIB_URING_BIG), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 100), 0);
	d = testlib_allreduce_desc(&r, small, small, 1000, SWC_U32);
	if (rank == VICTIM && uring) {
		/* In flight when the process ends, which cancels it. */
		testlib_uring_prep(&ring, r.c.fd, &d, 1);
		CHECK_EQ(io_uring_submit(&ring), 1);
	}
	if (rank == VICTIM)
		return victim();
	if (!rank) {
		CHECK_EQ(testlib_submit(r.c.fd, &d), 0);
		CHECK_EQ(testlib_ring_next(&r.c, &done, 2 * TESTLIB_EVENT_MS), 0);
		CHECK_EQ(done.res, -ECONNRESET);
	}
	/* The other survivor submits nothing, so the victim's operations stay in flight. */
	do {
		testlib_sleep_ms(1);
		CHECK_EQ(testlib_comm_error(r.c.fd, r.comm, &e), 0);
	} while (!e.aborted);
	CHECK_EQ(e.error, -ECONNRESET);
	CHECK_EQ(e.culprit, VICTIM);
	if (strncmp(e.text, "rank 1 (pid ", 12) ||
	    !strstr(e.text, ") was killed by the OOM killer")) {
		ksft_print_msg("%s\n", e.text);
		return 1;
	}
	return 0;
}

static int killed(bool uring)
{
	pid_t pid[N];
	bool dead;

	testlib_new_id(id);
	testlib_fork_ranks(pid, N, member, &uring);
	dead = testlib_was_killed(&pid[VICTIM]);
	CHECK_EQ(testlib_wait_ranks(pid, N), 0);
	CHECK(dead);
	return 0;
}

int main(void)
{
	int ret;

	ksft_print_header();
	testlib_require_device();
	testlib_require_root();
	ret = make_group();
	if (ret)
		ksft_exit_skip("no memory cgroup at " GROUP ": %s\n", strerror(-ret));
	ksft_set_plan(3);
	ksft_test_result(!killed(false), "killed by the OOM killer");
	ksft_test_result(!killed(true), "killed by the OOM killer, with operations in flight");
	ksft_test_result(!testlib_wait_released(0), "everything is released");
	rmdir(GROUP);
	ksft_finished();
}

// SPDX-License-Identifier: GPL-2.0-only
/* Creating a communicator where a rank has too little memory for the slots, or has closed its standard streams. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <swingcoll.h>

#include "testlib.h"

#define SLOT_MAX (16 << 20)

static struct swingcoll_id id;

/* So many bytes more than the process has. */
static int limit_memory(rlim_t more)
{
	struct rlimit limit;
	unsigned long pages;
	FILE *f = fopen("/proc/self/statm", "re");

	CHECK(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = pages * (rlim_t)getpagesize() + more;
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
	return 0;
}

/* The kernel has made it on both ranks when rank 1 finds that it cannot map the slots. */
static int without_memory(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .slot_max = SLOT_MAX, .timeout_ms = TESTLIB_EVENT_MS };
	struct swingcoll_comm *comm;
	char text[256];
	int culprit, ret;

	(void)arg;
	if (rank) {
		if (limit_memory(SLOT_MAX / 2))
			return 1;
		CHECK_EQ(swingcoll_comm_create(&comm, &id, 2, 1, &opts), -ENOMEM);
		return 0;
	}
	ret = swingcoll_comm_create(&comm, &id, 2, 0, &opts);
	/* It may be told while it still maps its own. */
	if (ret == -ECONNABORTED)
		return 0;
	CHECK_EQ(ret, 0);
	CHECK_EQ(swingcoll_barrier(comm), -ECONNABORTED);
	CHECK_EQ(swingcoll_comm_error(comm, text, sizeof(text), &culprit), -ECONNABORTED);
	CHECK_EQ(culprit, 1);
	return swingcoll_comm_destroy(comm) != 0;
}

/* What is opened next in their place is the program's. */
static int without_streams(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .use_io_uring = *(int *)arg };
	struct swingcoll_comm *comm;
	int value = 1;

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		close(fd);
	if (swingcoll_comm_create(&comm, &id, 2, rank, &opts))
		return 1;
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (open("/dev/null", O_RDWR) != fd)
			return 2;
	if (swingcoll_allreduce(&value, &value, 1, SWINGCOLL_I32, SWINGCOLL_SUM, comm) ||
	    value != 2)
		return 3;
	return swingcoll_comm_destroy(comm) ? 4 : 0;
}

int main(void)
{
	int with = 0, without = -1;

	ksft_print_header();
	testlib_require_device();
	ksft_set_plan(3);
	swingcoll_unique_id(&id);
	ksft_test_result(!testlib_run_ranks(2, without_memory, NULL),
			 "a rank cannot map the slots: the other one is told");
	swingcoll_unique_id(&id);
	ksft_test_result(!testlib_run_ranks(2, without_streams, &with),
			 "standard streams are closed, io_uring");
	swingcoll_unique_id(&id);
	ksft_test_result(!testlib_run_ranks(2, without_streams, &without),
			 "standard streams are closed, ioctl");
	ksft_finished();
}

// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "quota.h"

static const char *const names[SWC_QUOTA_NR] = { "user_contexts", "user_comms", "user_conns",
						 "user_memory_mib" };
static char before[SWC_QUOTA_NR][32];

/* ------------------------------------------------------------------ parameters */

static int parameter(int which, char *text, size_t bytes, bool set)
{
	char path[128];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/module/swingcoll/parameters/%s", names[which]);
	fd = open(path, set ? O_WRONLY : O_RDONLY);
	if (fd < 0)
		return -errno;
	n = set ? write(fd, text, strlen(text)) : read(fd, text, bytes - 1);
	close(fd);
	if (!set && n >= 0)
		text[n] = '\0';
	return n > 0 ? 0 : -EIO;
}

int quota_set_limit(int which, unsigned int n)
{
	char text[32];

	snprintf(text, sizeof(text), "%u", n);
	return parameter(which, text, sizeof(text), true);
}

static void restore(void)
{
	for (int i = 0; i < SWC_QUOTA_NR; i++)
		parameter(i, before[i], sizeof(before[i]), true);
}

/* ------------------------------------------------------------------ users */

int quota_become_nobody(void)
{
	struct stat st;

	CHECK_EQ(stat(SWC_DEVICE_PATH, &st), 0);
	CHECK(!setgroups(1, &st.st_gid) && !setgid(QUOTA_NOBODY) && !setuid(QUOTA_NOBODY));
	return 0;
}

int quota_query(int fd, uint32_t uid, struct swc_user_query *u)
{
	int ret;

	memset(u, 0, sizeof(*u));
	while (!(ret = testlib_ioctl(fd, SWC_IOC_USER_QUERY, u)))
		if (u->uid == uid)
			return 0;
	return ret;
}

int quota_wait_used(int fd, uint32_t uid, int which, uint64_t n)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;
	struct swc_user_query u;
	int ret;

	do {
		ret = quota_query(fd, uid, &u);
		if ((ret ? 0 : u.quota[which].used) == n)
			return 0;
		testlib_sleep_ms(5);
	} while (testlib_now_ms() < limit);
	ksft_print_msg("%s of user %u: %llu, not %llu\n", names[which], uid,
		       (unsigned long long)u.quota[which].used, (unsigned long long)n);
	return 1;
}

/* A communicator is no longer counted before its plans and slots are freed. */
int quota_wait_alone(int fd)
{
	uint64_t ring, page = (uint64_t)getpagesize();
	struct swc_info info = testlib_info();

	CHECK_EQ(quota_wait_used(fd, 0, SWC_QUOTA_COMMS, 0), 0);
	CHECK_EQ(quota_wait_used(fd, 0, SWC_QUOTA_CONNS, 0), 0);
	CHECK_EQ(quota_wait_used(fd, 0, SWC_QUOTA_CONTEXTS, 1), 0);
	ring = SWC_RING_ENTRIES_OFFSET + info.ring_entries * sizeof(struct swc_completion);
	CHECK_EQ(quota_wait_used(fd, 0, SWC_QUOTA_MEMORY, (ring + page - 1) / page * page + page),
		 0);
	return 0;
}

int quota_work_of_nobody(void *arg)
{
	struct testlib_rank r;
	uint8_t id[SWC_ID_BYTES];

	(void)arg;
	if (quota_become_nobody())
		return 1;
	testlib_new_id(id);
	CHECK_EQ(testlib_rank_open(&r, id, 1, 0, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 1000), 0);
	testlib_rank_close(&r);
	return 0;
}

int quota_nothing_left(void)
{
	struct testlib_ctx c;

	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(quota_wait_alone(c.fd), 0);
	CHECK_EQ(quota_wait_used(c.fd, QUOTA_NOBODY, SWC_QUOTA_MEMORY, 0), 0);
	testlib_close(&c);
	return 0;
}

/* ------------------------------------------------------------------ tests */

const char *quota_lacks_rdma(void)
{
	struct swc_info info = testlib_info();

	return info.features & SWC_FEATURE_RDMA ? NULL : "no RDMA in this kernel";
}

void quota_run(const struct quota_test *test, unsigned int n)
{
	ksft_print_header();
	testlib_require_root();
	for (int i = 0; i < SWC_QUOTA_NR; i++)
		if (parameter(i, before[i], sizeof(before[i]), false))
			ksft_exit_fail_msg("cannot read the module parameter %s\n", names[i]);
	testlib_at_end(restore);
	ksft_set_plan(n);
	for (unsigned int i = 0; i < n; i++) {
		const char *lacks = test[i].lacks ? test[i].lacks() : NULL;

		if (lacks)
			ksft_test_result_skip("%s: %s", test[i].name, lacks);
		else
			ksft_test_result(!test[i].fn(), "%s", test[i].name);
		restore();
	}
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limits of users: each refuses what would exceed it and says which it is, in no other user's way, and what is given
 * back can be had again. Those of communicators between nodes: mem_quota_net.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>

#include "quota.h"
#include "swingcoll.h"

#define MIB (1ull << 20)

static int create(int fd, uint32_t slot_bytes, uint32_t *comm)
{
	struct swc_comm_create j = { .nranks = 1,
				     .slot_bytes = slot_bytes,
				     .timeout_ms = TESTLIB_EVENT_MS };
	int ret;

	testlib_new_id(j.id);
	ret = testlib_ioctl(fd, SWC_IOC_COMM_CREATE, &j);
	*comm = j.comm;
	return ret;
}

/* ------------------------------------------------------------------ contexts */

static int contexts_of_nobody(void *arg)
{
	struct testlib_ctx c[4];
	struct swc_user_query u;

	(void)arg;
	if (quota_become_nobody())
		return 1;
	for (int i = 0; i < 3; i++)
		CHECK_EQ(testlib_open(&c[i]), 0);
	CHECK_EQ(testlib_open(&c[3]), -EDQUOT);
	CHECK(strstr(swingcoll_strerror(-EDQUOT), "swingctl status"));
	CHECK_EQ(quota_query(c[0].fd, QUOTA_NOBODY, &u), 0);
	CHECK_EQ(u.quota[SWC_QUOTA_CONTEXTS].used, 3);
	CHECK_EQ(u.quota[SWC_QUOTA_CONTEXTS].most, 3);
	CHECK_EQ(u.quota[SWC_QUOTA_CONTEXTS].limit, 3);
	CHECK_EQ(u.quota[SWC_QUOTA_CONTEXTS].refused, 1);
	/* Root has some, and they are not this user's to see. */
	CHECK_EQ(quota_query(c[0].fd, 0, &u), -ENOENT);
	testlib_close(&c[1]);
	CHECK_EQ(quota_wait_used(c[0].fd, QUOTA_NOBODY, SWC_QUOTA_CONTEXTS, 2), 0);
	CHECK_EQ(testlib_open(&c[1]), 0);
	for (int i = 0; i < 3; i++)
		testlib_close(&c[i]);
	return 0;
}

static uint32_t *stage;

/* A user namespace of nobody's, in which nobody is root, and another user id is user 1. */
static int contexts_of_namespace(uint32_t rank, void *arg)
{
	struct testlib_ctx c[4];
	struct swc_user_query u;

	(void)rank;
	(void)arg;
	if (quota_become_nobody())
		return 1;
	CHECK_EQ(unshare(CLONE_NEWUSER), 0);
	testlib_count(stage);
	CHECK(testlib_wait_count(stage, 2));
	CHECK_EQ(testlib_open(&c[0]), 0);
	CHECK_EQ(setuid(1), 0);
	CHECK_EQ(testlib_open(&c[1]), 0);
	CHECK_EQ(testlib_open(&c[2]), 0);
	CHECK_EQ(testlib_open(&c[3]), -EDQUOT);
	CHECK_EQ(quota_query(c[1].fd, 0, &u), 0);
	CHECK_EQ(u.quota[SWC_QUOTA_CONTEXTS].used, 3);
	CHECK_EQ(quota_query(c[1].fd, 1, &u), -ENOENT);
	for (int i = 0; i < 3; i++)
		testlib_close(&c[i]);
	return 0;
}

static int make_namespace(void *arg)
{
	(void)arg;
	return quota_become_nobody() || unshare(CLONE_NEWUSER);
}

static int namespaces(void)
{
	static const char map[] = "0 65534 1\n1 100000 1\n";
	char path[64];
	pid_t pid;
	int fd;

	stage = testlib_shared_alloc(sizeof(*stage));
	CHECK_EQ(quota_set_limit(SWC_QUOTA_CONTEXTS, 3), 0);
	testlib_fork_ranks(&pid, 1, contexts_of_namespace, NULL);
	CHECK(testlib_wait_count(stage, 1));
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	fd = open(path, O_WRONLY);
	CHECK_EQ(write(fd, map, sizeof(map) - 1), sizeof(map) - 1);
	close(fd);
	testlib_count(stage);
	return testlib_wait_ranks(&pid, 1);
}

static int contexts(void)
{
	struct testlib_ctx c;

	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(quota_set_limit(SWC_QUOTA_CONTEXTS, 3), 0);
	CHECK_EQ(testlib_run_child(contexts_of_nobody, NULL), 0);
	CHECK_EQ(quota_wait_used(c.fd, QUOTA_NOBODY, SWC_QUOTA_CONTEXTS, 0), 0);
	testlib_close(&c);
	return 0;
}

/* ------------------------------------------------------------------ communicators */

static int comms(void)
{
	uint32_t comm[4], more;
	struct testlib_ctx c, d;

	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(testlib_open(&d), 0);
	CHECK_EQ(quota_wait_used(c.fd, 0, SWC_QUOTA_COMMS, 0), 0);
	CHECK_EQ(quota_set_limit(SWC_QUOTA_COMMS, 4), 0);
	/* One limit for all open files. */
	for (int i = 0; i < 4; i++)
		CHECK_EQ(create(i & 1 ? d.fd : c.fd, 0, &comm[i]), 0);
	CHECK_EQ(create(c.fd, 0, &more), -EDQUOT);
	CHECK_EQ(create(d.fd, 0, &more), -EDQUOT);
	CHECK_EQ(testlib_comm_leave(c.fd, comm[0]), 0);
	CHECK_EQ(quota_wait_used(c.fd, 0, SWC_QUOTA_COMMS, 3), 0);
	CHECK_EQ(create(d.fd, 0, &more), 0);
	testlib_close(&d);
	CHECK_EQ(quota_wait_used(c.fd, 0, SWC_QUOTA_COMMS, 1), 0);
	testlib_close(&c);
	return 0;
}

/* ------------------------------------------------------------------ memory */

static int plans_of(struct testlib_rank *r)
{
	struct swc_plan_unload un = { .comm = r->comm };
	char text[SWC_TEXT_BYTES] = "";
	struct swc_user_query u;
	struct testlib_plan p;
	uint64_t empty;
	uint32_t plan;
	int n = 0, ret;

	testlib_plan_longest(&p, 1, 0);
	CHECK_EQ(quota_query(r->c.fd, 0, &u), 0);
	empty = u.quota[SWC_QUOTA_MEMORY].used;
	while (!(ret = testlib_plan_load(r->c.fd, r->comm, p.data, p.bytes, &plan, text)) &&
	       n < 100) {
		un.plan = plan;
		n++;
	}
	CHECK_EQ(ret, -EDQUOT);
	CHECK(strstr(text, "user_memory_mib"));
	CHECK(strstr(text, "may have 64 MiB"));
	CHECK_EQ(n, (64 * MIB - empty) / p.bytes);
	CHECK_EQ(testlib_ioctl(r->c.fd, SWC_IOC_PLAN_UNLOAD, &un), 0);
	CHECK_EQ(testlib_plan_load(r->c.fd, r->comm, p.data, p.bytes, &plan, NULL), 0);
	testlib_plan_free(&p);
	return testlib_run_child(quota_work_of_nobody, NULL);
}

/*
 * Operations in an io_uring without room for the first: none behind it may take its place, so the communicator ends.
 */
static int in_a_ring(struct testlib_rank *r, const struct swc_desc *d)
{
	int res[2] = { 0, 0 };
	struct swc_comm_error e;
	struct io_uring ring;
	uint64_t which, word;

	CHECK_EQ(testlib_uring_init(&ring, 4, TESTLIB_URING_BIG), 0);
	for (int i = 0; i < 2; i++)
		CHECK(testlib_uring_prep(&ring, r->c.fd, d, i));
	CHECK_EQ(io_uring_submit(&ring), 2);
	for (int i = 0; i < 2; i++) {
		int ret = testlib_uring_wait(&ring, &which, &word, TESTLIB_EVENT_MS);

		CHECK(which < 2);
		res[which] = ret;
	}
	io_uring_queue_exit(&ring);
	CHECK_EQ(res[0], -EDQUOT);
	CHECK(res[1] == -EDQUOT || res[1] == -ECONNABORTED);
	CHECK_EQ(testlib_comm_error(r->c.fd, r->comm, &e), 0);
	CHECK_EQ(e.error, -EDQUOT);
	CHECK_EQ(e.culprit, 0);
	CHECK(strstr(e.text, "user_memory_mib"));
	CHECK(e.aborted);
	return 0;
}

static int memory(void)
{
	uint8_t id[SWC_ID_BYTES];
	struct swc_comm_error e;
	uint32_t comm = 0, more, n = 0;
	struct testlib_rank r;
	struct testlib_ctx c;
	struct swc_desc d;

	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(quota_set_limit(SWC_QUOTA_MEMORY, 64), 0);
	testlib_single_rank(&r, id);
	CHECK_EQ(plans_of(&r), 0);
	testlib_rank_close(&r);
	CHECK_EQ(quota_wait_alone(c.fd), 0);
	/* Slots likewise: three times 16 MiB fit beside the open files. */
	for (; n < 100 && !create(c.fd, 16 * MIB, &more); n++)
		comm = more;
	CHECK_EQ(n, 3);
	CHECK_EQ(create(c.fd, 16 * MIB, &more), -EDQUOT);
	CHECK_EQ(testlib_comm_leave(c.fd, comm), 0);
	CHECK_EQ(quota_wait_used(c.fd, 0, SWC_QUOTA_COMMS, 2), 0);
	testlib_single_rank(&r, id);
	/* No room for operations. */
	CHECK_EQ(quota_set_limit(SWC_QUOTA_MEMORY, 1), 0);
	d = testlib_allreduce_desc(&r, id, id, 1, SWC_U8);
	CHECK_EQ(testlib_submit(r.c.fd, &d), -EDQUOT);
	CHECK_EQ(testlib_comm_error(r.c.fd, r.comm, &e), 0);
	CHECK_EQ(e.error, -EDQUOT);
	CHECK(strstr(e.text, "user_memory_mib"));
	CHECK(!e.aborted);
	CHECK_EQ(quota_set_limit(SWC_QUOTA_MEMORY, 64), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 1), 0);
	testlib_rank_close(&r);
	/* The memory of that operation would be there for the next one: another communicator. */
	testlib_single_rank(&r, id);
	CHECK_EQ(quota_set_limit(SWC_QUOTA_MEMORY, 1), 0);
	d = testlib_allreduce_desc(&r, id, id, 1, SWC_U8);
	CHECK_EQ(in_a_ring(&r, &d), 0);
	CHECK_EQ(quota_set_limit(SWC_QUOTA_MEMORY, 64), 0);
	testlib_rank_close(&r);
	testlib_close(&c);
	return 0;
}

/* Submit, and expect a refusal of the buffers that names the limit and leaves the communicator as it is. */
static int expect_refused(struct testlib_rank *r, const struct swc_desc *d, uint64_t *refused)
{
	struct swc_comm_error e;
	struct swc_user_query u;

	CHECK_EQ(testlib_submit_wait(&r->c, d, NULL), -EDQUOT);
	CHECK_EQ(testlib_comm_error(r->c.fd, r->comm, &e), 0);
	CHECK_EQ(e.error, -EDQUOT);
	CHECK_EQ(e.culprit, 0);
	CHECK(strstr(e.text, "user_memory_mib"));
	CHECK(!e.aborted);
	CHECK_EQ(quota_query(r->c.fd, 0, &u), 0);
	CHECK_EQ(u.quota[SWC_QUOTA_MEMORY].refused, ++*refused);
	return 0;
}

/* Scratch memory of an operation, for as long as it runs. */
static int scratch(void)
{
	uint64_t before, refused;
	struct swc_user_query u;
	struct testlib_rank r;
	struct testlib_plan p;
	uint8_t id[SWC_ID_BYTES];
	struct testlib_ctx c;
	struct swc_desc d;

	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(quota_wait_alone(c.fd), 0);
	testlib_single_rank(&r, id);
	testlib_plan_scratch(&p);
	CHECK_EQ(testlib_plan_install(r.c.fd, r.comm, &p, &r.plan), 0);
	CHECK_EQ(quota_set_limit(SWC_QUOTA_MEMORY, 16), 0);
	d = testlib_allreduce_desc(&r, NULL, NULL, 1, SWC_U8);
	/* The first operation leaves what the next ones use again. */
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
	CHECK_EQ(quota_query(c.fd, 0, &u), 0);
	before = u.quota[SWC_QUOTA_MEMORY].used - getpagesize();
	refused = u.quota[SWC_QUOTA_MEMORY].refused;
	d.count = 16 * MIB;
	CHECK_EQ(expect_refused(&r, &d, &refused), 0);
	/* What was refused, and what has completed, can be had again: each time most of what there is. */
	d.count = 12 * MIB;
	for (int i = 0; i < 5; i++)
		CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
	CHECK_EQ(quota_query(c.fd, 0, &u), 0);
	CHECK(u.quota[SWC_QUOTA_MEMORY].most >= before - MIB + d.count);
	CHECK_EQ(u.quota[SWC_QUOTA_MEMORY].refused, refused);
	CHECK_EQ(testlib_run_child(quota_work_of_nobody, NULL), 0);
	testlib_rank_close(&r);
	CHECK_EQ(quota_wait_alone(c.fd), 0);
	testlib_close(&c);
	return 0;
}

#define PAGES 32768u
#define BUFFERS 16u /* of so many pages, each a page further on */

/* So many pages, each of them the same one: no two of them follow each other in memory. */
static char *scattered(size_t pages)
{
	size_t page = (size_t)getpagesize();
	int fd = memfd_create("mem_quota", 0);
	char *p;

	if (fd < 0 || ftruncate(fd, (off_t)page))
		return NULL;
	p = mmap(NULL, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < pages && p != MAP_FAILED; i++)
		if (mmap(p + i * page, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 0) == MAP_FAILED)
			p = MAP_FAILED;
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

/* An operation of one rank that pins a receive buffer, and does nothing with it. */
static int load_pinning(struct testlib_rank *r)
{
	struct testlib_plan p;

	testlib_plan_init(&p, SWC_ALLREDUCE, 1, 0, 0, 1);
	p.h.window[SWC_BUF_SEND].nblocks = 0;
	testlib_plan_channel(&p);
	testlib_plan_step(&p, SWC_STEP_SYNC);
	testlib_plan_pack(&p);
	return testlib_plan_install(r->c.fd, r->comm, &p, &r->plan);
}

/* At the limit, tables that only the cache holds give way to a plan. */
static int gives_way(struct testlib_rank *r, struct swc_desc d, uint64_t refused)
{
	struct swc_user_query u;
	struct testlib_plan p;
	uint64_t limit;
	uint32_t plan;

	testlib_plan_longest(&p, 1, 0);
	CHECK_EQ(quota_query(r->c.fd, 0, &u), 0);
	limit = (u.quota[SWC_QUOTA_MEMORY].used + p.bytes) / MIB + 2;
	CHECK_EQ(quota_set_limit(SWC_QUOTA_MEMORY, limit), 0);
	for (unsigned int i = 0; i < BUFFERS; i++) {
		CHECK_EQ(testlib_submit_wait(&r->c, &d, NULL), 0);
		d.recv += (uint64_t)getpagesize();
	}
	CHECK_EQ(quota_query(r->c.fd, 0, &u), 0);
	CHECK(u.quota[SWC_QUOTA_MEMORY].used + p.bytes > limit * MIB);
	CHECK_EQ(testlib_plan_load(r->c.fd, r->comm, p.data, p.bytes, &plan, NULL), 0);
	CHECK_EQ(quota_query(r->c.fd, 0, &u), 0);
	CHECK_EQ(u.quota[SWC_QUOTA_MEMORY].refused, refused);
	testlib_plan_free(&p);
	return 0;
}

/* Tables of pinned buffers: one entry for each stretch of pages that follow each other in memory. */
static int tables(void)
{
	uint64_t page = (uint64_t)getpagesize(), before, refused, table = 2 * 16 * PAGES;
	char *p = scattered(PAGES + BUFFERS);
	struct swc_mem_reg reg = { .addr = (uintptr_t)p, .bytes = PAGES * page };
	struct swc_mem_unreg un = { 0 };
	uint8_t id[SWC_ID_BYTES];
	struct swc_user_query u;
	struct testlib_rank r;
	struct testlib_ctx c;
	struct swc_desc d;

	CHECK(p);
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(quota_wait_alone(c.fd), 0);
	testlib_single_rank(&r, id);
	CHECK_EQ(load_pinning(&r), 0);
	d = testlib_allreduce_desc(&r, NULL, p, 0, SWC_U8);
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
	CHECK_EQ(quota_query(c.fd, 0, &u), 0);
	before = u.quota[SWC_QUOTA_MEMORY].used;
	refused = u.quota[SWC_QUOTA_MEMORY].refused;
	/* By handle, until the registration ends. */
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg), 0);
	CHECK_EQ(quota_query(c.fd, 0, &u), 0);
	CHECK(u.quota[SWC_QUOTA_MEMORY].used > before + 16 * PAGES);
	CHECK(u.quota[SWC_QUOTA_MEMORY].used <= before + table + page);
	un.region = reg.region;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_UNREG, &un), 0);
	CHECK_EQ(quota_wait_used(c.fd, 0, SWC_QUOTA_MEMORY, before), 0);
	/* No room for a table: what the attempt had is uncharged. */
	CHECK_EQ(quota_set_limit(SWC_QUOTA_MEMORY, 1), 0);
	CHECK(table >= MIB && before < MIB);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg), -EDQUOT);
	refused++;
	CHECK_EQ(quota_wait_used(c.fd, 0, SWC_QUOTA_MEMORY, before), 0);
	d.count = PAGES * page;
	CHECK_EQ(expect_refused(&r, &d, &refused), 0);
	CHECK_EQ(quota_wait_used(c.fd, 0, SWC_QUOTA_MEMORY, before), 0);
	/* Room for one: it stays in the cache, and gives way to the next one, which is not the same. */
	CHECK_EQ(quota_set_limit(SWC_QUOTA_MEMORY, 2), 0);
	for (unsigned int i = 0; i < 4; i++) {
		d.recv = (uintptr_t)p + i % 2 * page;
		CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
		CHECK_EQ(quota_query(c.fd, 0, &u), 0);
		CHECK(u.quota[SWC_QUOTA_MEMORY].used > before + 16 * PAGES);
	}
	CHECK_EQ(u.quota[SWC_QUOTA_MEMORY].refused, refused);
	d.recv = (uintptr_t)p;
	CHECK_EQ(gives_way(&r, d, refused), 0);
	CHECK_EQ(testlib_run_child(quota_work_of_nobody, NULL), 0);
	testlib_rank_close(&r);
	CHECK_EQ(quota_wait_alone(c.fd), 0);
	testlib_close(&c);
	munmap(p, (PAGES + BUFFERS) * page);
	return 0;
}

static const char *lacks_namespaces(void)
{
	return testlib_run_child(make_namespace, NULL) ? "users may make none here" : NULL;
}

int main(void)
{
	static const struct quota_test test[] = {
		{ "open files", contexts },
		{ "open files of all users of a user namespace", namespaces, lacks_namespaces },
		{ "communicators", comms },
		{ "memory of plans, slots and operations", memory },
		{ "scratch memory", scratch },
		{ "tables of pinned buffers", tables },
		{ "at the end nothing is charged", quota_nothing_left },
	};

	quota_run(test, ARRAY_SIZE(test));
	ksft_finished();
}

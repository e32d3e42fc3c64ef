// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limits of users: each refuses what would exceed it and says which it is, in no other user's way, and what is given
 * back can be had again. Changes the module's parameters user_*, and restores them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "swingcoll.h"
#include "testlib.h"

#define NOBODY 65534
#define MIB (1ull << 20)

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

static int set_limit(int which, unsigned int n)
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

/* An ordinary user with the group of the device; opens nothing. */
static int become_nobody(void)
{
	struct stat st;

	CHECK_EQ(stat(SWC_DEVICE_PATH, &st), 0);
	CHECK(!setgroups(1, &st.st_gid) && !setgid(NOBODY) && !setuid(NOBODY));
	return 0;
}

/* What the user has; -ENOENT: nothing. */
static int query(int fd, uint32_t uid, struct swc_user_query *u)
{
	int ret;

	memset(u, 0, sizeof(*u));
	while (!(ret = testlib_ioctl(fd, SWC_IOC_USER_QUERY, u)))
		if (u->uid == uid)
			return 0;
	return ret;
}

/* Wait until the user has so many; what is given back is freed by work items. */
static int wait_used(int fd, uint32_t uid, int which, uint64_t n)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;
	struct swc_user_query u;
	int ret;

	do {
		ret = query(fd, uid, &u);
		if ((ret ? 0 : u.quota[which].used) == n)
			return 0;
		testlib_sleep_ms(5);
	} while (testlib_now_ms() < limit);
	ksft_print_msg("%s of user %u: %llu, not %llu\n", names[which], uid,
		       (unsigned long long)u.quota[which].used, (unsigned long long)n);
	return 1;
}

/*
 * Wait until user 0 has one open file with its ring, and nothing else: a communicator is no longer counted before its
 * plans and slots are freed.
 */
static int wait_alone(int fd)
{
	uint64_t ring, page = (uint64_t)getpagesize();
	struct swc_info info = testlib_info();

	CHECK_EQ(wait_used(fd, 0, SWC_QUOTA_COMMS, 0), 0);
	CHECK_EQ(wait_used(fd, 0, SWC_QUOTA_CONNS, 0), 0);
	CHECK_EQ(wait_used(fd, 0, SWC_QUOTA_CONTEXTS, 1), 0);
	ring = SWC_RING_ENTRIES_OFFSET + info.ring_entries * sizeof(struct swc_completion);
	CHECK_EQ(wait_used(fd, 0, SWC_QUOTA_MEMORY, (ring + page - 1) / page * page + page), 0);
	return 0;
}

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
	if (become_nobody())
		return 1;
	for (int i = 0; i < 3; i++)
		CHECK_EQ(testlib_open(&c[i]), 0);
	CHECK_EQ(testlib_open(&c[3]), -EDQUOT);
	CHECK(strstr(swingcoll_strerror(-EDQUOT), "swingctl status"));
	CHECK_EQ(query(c[0].fd, NOBODY, &u), 0);
	CHECK_EQ(u.quota[SWC_QUOTA_CONTEXTS].used, 3);
	CHECK_EQ(u.quota[SWC_QUOTA_CONTEXTS].most, 3);
	CHECK_EQ(u.quota[SWC_QUOTA_CONTEXTS].limit, 3);
	CHECK_EQ(u.quota[SWC_QUOTA_CONTEXTS].refused, 1);
	/* Root has some, and they are not this user's to see. */
	CHECK_EQ(query(c[0].fd, 0, &u), -ENOENT);
	testlib_close(&c[1]);
	CHECK_EQ(wait_used(c[0].fd, NOBODY, SWC_QUOTA_CONTEXTS, 2), 0);
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
	if (become_nobody())
		return 1;
	CHECK_EQ(unshare(CLONE_NEWUSER), 0);
	testlib_count(stage);
	CHECK(testlib_wait_count(stage, 2));
	CHECK_EQ(testlib_open(&c[0]), 0);
	CHECK_EQ(setuid(1), 0);
	CHECK_EQ(testlib_open(&c[1]), 0);
	CHECK_EQ(testlib_open(&c[2]), 0);
	CHECK_EQ(testlib_open(&c[3]), -EDQUOT);
	CHECK_EQ(query(c[1].fd, 0, &u), 0);
	CHECK_EQ(u.quota[SWC_QUOTA_CONTEXTS].used, 3);
	CHECK_EQ(query(c[1].fd, 1, &u), -ENOENT);
	for (int i = 0; i < 3; i++)
		testlib_close(&c[i]);
	return 0;
}

static int make_namespace(void *arg)
{
	(void)arg;
	return become_nobody() || unshare(CLONE_NEWUSER);
}

static int namespaces(void)
{
	static const char map[] = "0 65534 1\n1 100000 1\n";
	char path[64];
	pid_t pid;
	int fd;

	stage = testlib_shared_alloc(sizeof(*stage));
	CHECK_EQ(set_limit(SWC_QUOTA_CONTEXTS, 3), 0);
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
	CHECK_EQ(set_limit(SWC_QUOTA_CONTEXTS, 3), 0);
	CHECK_EQ(testlib_run_child(contexts_of_nobody, NULL), 0);
	CHECK_EQ(wait_used(c.fd, NOBODY, SWC_QUOTA_CONTEXTS, 0), 0);
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
	CHECK_EQ(wait_used(c.fd, 0, SWC_QUOTA_COMMS, 0), 0);
	CHECK_EQ(set_limit(SWC_QUOTA_COMMS, 4), 0);
	/* One limit for all open files. */
	for (int i = 0; i < 4; i++)
		CHECK_EQ(create(i & 1 ? d.fd : c.fd, 0, &comm[i]), 0);
	CHECK_EQ(create(c.fd, 0, &more), -EDQUOT);
	CHECK_EQ(create(d.fd, 0, &more), -EDQUOT);
	CHECK_EQ(testlib_comm_leave(c.fd, comm[0]), 0);
	CHECK_EQ(wait_used(c.fd, 0, SWC_QUOTA_COMMS, 3), 0);
	CHECK_EQ(create(d.fd, 0, &more), 0);
	testlib_close(&d);
	CHECK_EQ(wait_used(c.fd, 0, SWC_QUOTA_COMMS, 1), 0);
	testlib_close(&c);
	return 0;
}

/* Root has used up all, and another user works. */
static int work_of_nobody(void *arg)
{
	struct testlib_rank r;
	uint8_t id[SWC_ID_BYTES];

	(void)arg;
	if (become_nobody())
		return 1;
	testlib_new_id(id);
	CHECK_EQ(testlib_rank_open(&r, id, 1, 0, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 1000), 0);
	testlib_rank_close(&r);
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
	CHECK_EQ(query(r->c.fd, 0, &u), 0);
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
	return testlib_run_child(work_of_nobody, NULL);
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
	CHECK_EQ(set_limit(SWC_QUOTA_MEMORY, 64), 0);
	testlib_single_rank(&r, id);
	CHECK_EQ(plans_of(&r), 0);
	testlib_rank_close(&r);
	CHECK_EQ(wait_alone(c.fd), 0);
	/* Slots likewise: three times 16 MiB fit beside the open files. */
	for (; n < 100 && !create(c.fd, 16 * MIB, &more); n++)
		comm = more;
	CHECK_EQ(n, 3);
	CHECK_EQ(create(c.fd, 16 * MIB, &more), -EDQUOT);
	CHECK_EQ(testlib_comm_leave(c.fd, comm), 0);
	CHECK_EQ(wait_used(c.fd, 0, SWC_QUOTA_COMMS, 2), 0);
	testlib_single_rank(&r, id);
	/* No room for operations. */
	CHECK_EQ(set_limit(SWC_QUOTA_MEMORY, 1), 0);
	d = testlib_allreduce_desc(&r, id, id, 1, SWC_U8);
	CHECK_EQ(testlib_submit(r.c.fd, &d), -EDQUOT);
	CHECK_EQ(testlib_comm_error(r.c.fd, r.comm, &e), 0);
	CHECK_EQ(e.error, -EDQUOT);
	CHECK(strstr(e.text, "user_memory_mib"));
	CHECK(!e.aborted);
	CHECK_EQ(set_limit(SWC_QUOTA_MEMORY, 64), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 1), 0);
	testlib_rank_close(&r);
	/* The memory of that operation would be there for the next one: another communicator. */
	testlib_single_rank(&r, id);
	CHECK_EQ(set_limit(SWC_QUOTA_MEMORY, 1), 0);
	d = testlib_allreduce_desc(&r, id, id, 1, SWC_U8);
	CHECK_EQ(in_a_ring(&r, &d), 0);
	CHECK_EQ(set_limit(SWC_QUOTA_MEMORY, 64), 0);
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
	CHECK_EQ(query(r->c.fd, 0, &u), 0);
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
	CHECK_EQ(wait_alone(c.fd), 0);
	testlib_single_rank(&r, id);
	testlib_plan_scratch(&p);
	CHECK_EQ(testlib_plan_install(r.c.fd, r.comm, &p, &r.plan), 0);
	CHECK_EQ(set_limit(SWC_QUOTA_MEMORY, 16), 0);
	d = testlib_allreduce_desc(&r, NULL, NULL, 1, SWC_U8);
	/* The first operation leaves what the next ones use again. */
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
	CHECK_EQ(query(c.fd, 0, &u), 0);
	before = u.quota[SWC_QUOTA_MEMORY].used - getpagesize();
	refused = u.quota[SWC_QUOTA_MEMORY].refused;
	d.count = 16 * MIB;
	CHECK_EQ(expect_refused(&r, &d, &refused), 0);
	/* What was refused, and what has completed, can be had again: each time most of what there is. */
	d.count = 12 * MIB;
	for (int i = 0; i < 5; i++)
		CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
	CHECK_EQ(query(c.fd, 0, &u), 0);
	CHECK(u.quota[SWC_QUOTA_MEMORY].most >= before - MIB + d.count);
	CHECK_EQ(u.quota[SWC_QUOTA_MEMORY].refused, refused);
	CHECK_EQ(testlib_run_child(work_of_nobody, NULL), 0);
	testlib_rank_close(&r);
	CHECK_EQ(wait_alone(c.fd), 0);
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
	CHECK_EQ(query(r->c.fd, 0, &u), 0);
	limit = (u.quota[SWC_QUOTA_MEMORY].used + p.bytes) / MIB + 2;
	CHECK_EQ(set_limit(SWC_QUOTA_MEMORY, limit), 0);
	for (unsigned int i = 0; i < BUFFERS; i++) {
		CHECK_EQ(testlib_submit_wait(&r->c, &d, NULL), 0);
		d.recv += (uint64_t)getpagesize();
	}
	CHECK_EQ(query(r->c.fd, 0, &u), 0);
	CHECK(u.quota[SWC_QUOTA_MEMORY].used + p.bytes > limit * MIB);
	CHECK_EQ(testlib_plan_load(r->c.fd, r->comm, p.data, p.bytes, &plan, NULL), 0);
	CHECK_EQ(query(r->c.fd, 0, &u), 0);
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
	CHECK_EQ(wait_alone(c.fd), 0);
	testlib_single_rank(&r, id);
	CHECK_EQ(load_pinning(&r), 0);
	d = testlib_allreduce_desc(&r, NULL, p, 0, SWC_U8);
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
	CHECK_EQ(query(c.fd, 0, &u), 0);
	before = u.quota[SWC_QUOTA_MEMORY].used;
	refused = u.quota[SWC_QUOTA_MEMORY].refused;
	/* By handle, until the registration ends. */
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg), 0);
	CHECK_EQ(query(c.fd, 0, &u), 0);
	CHECK(u.quota[SWC_QUOTA_MEMORY].used > before + 16 * PAGES);
	CHECK(u.quota[SWC_QUOTA_MEMORY].used <= before + table + page);
	un.region = reg.region;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_UNREG, &un), 0);
	CHECK_EQ(wait_used(c.fd, 0, SWC_QUOTA_MEMORY, before), 0);
	/* No room for a table: what the attempt had is uncharged. */
	CHECK_EQ(set_limit(SWC_QUOTA_MEMORY, 1), 0);
	CHECK(table >= MIB && before < MIB);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg), -EDQUOT);
	refused++;
	CHECK_EQ(wait_used(c.fd, 0, SWC_QUOTA_MEMORY, before), 0);
	d.count = PAGES * page;
	CHECK_EQ(expect_refused(&r, &d, &refused), 0);
	CHECK_EQ(wait_used(c.fd, 0, SWC_QUOTA_MEMORY, before), 0);
	/* Room for one: it stays in the cache, and gives way to the next one, which is not the same. */
	CHECK_EQ(set_limit(SWC_QUOTA_MEMORY, 2), 0);
	for (unsigned int i = 0; i < 4; i++) {
		d.recv = (uintptr_t)p + i % 2 * page;
		CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
		CHECK_EQ(query(c.fd, 0, &u), 0);
		CHECK(u.quota[SWC_QUOTA_MEMORY].used > before + 16 * PAGES);
	}
	CHECK_EQ(u.quota[SWC_QUOTA_MEMORY].refused, refused);
	d.recv = (uintptr_t)p;
	CHECK_EQ(gives_way(&r, d, refused), 0);
	CHECK_EQ(testlib_run_child(work_of_nobody, NULL), 0);
	testlib_rank_close(&r);
	CHECK_EQ(wait_alone(c.fd), 0);
	testlib_close(&c);
	munmap(p, (PAGES + BUFFERS) * page);
	return 0;
}

#define NODES 2048
#define MANY_PATHS ((NODES - 1) * SWC_MAX_PATHS)

enum order {
	IN_ORDER,
	WRONG_PATHS,
	WRONG_NODES,
};

/* Rank 0 of many nodes, with the most paths to each. */
static int create_of_many(int fd, struct swc_node_path *path, uint32_t *node, enum order order,
			  uint32_t *comm)
{
	struct swc_comm_create j = { .nranks = NODES,
				     .nnodes = NODES,
				     .npaths = MANY_PATHS,
				     .rank_node = (uintptr_t)node,
				     .paths = (uintptr_t)path,
				     .timeout_ms = TESTLIB_EVENT_MS };
	int ret;

	for (uint32_t i = 0; i < MANY_PATHS; i++) {
		struct sockaddr_in *a = (void *)path[i].local, *b = (void *)path[i].remote;

		path[i] = (struct swc_node_path){ .node = 1 + i / SWC_MAX_PATHS,
						  .path = i % SWC_MAX_PATHS,
						  .transport = SWC_TRANSPORT_TCP };
		a->sin_family = b->sin_family = AF_INET;
		a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		b->sin_addr.s_addr = htonl(0xc0000202); /* 192.0.2.2, for documentation */
		b->sin_port = htons(18575);
	}
	if (order == WRONG_PATHS) {
		path[100].path++;
		path[101].path--;
	}
	for (uint32_t i = 0; i < SWC_MAX_PATHS && order == WRONG_NODES; i++) {
		path[i].node++;
		path[SWC_MAX_PATHS + i].node--;
	}
	for (uint32_t i = 0; i < NODES; i++)
		node[i] = i;
	testlib_new_id(j.id);
	ret = testlib_ioctl(fd, SWC_IOC_COMM_CREATE, &j);
	*comm = j.comm;
	return ret;
}

/* The table of paths is the greatest part of a communicator of many nodes. */
static int paths(void)
{
	uint64_t bytes = MANY_PATHS * sizeof(struct swc_node_path), before;
	struct swc_node_path *path = malloc(bytes);
	uint32_t *node = malloc(NODES * sizeof(*node)), comm;
	struct swc_user_query u;
	struct testlib_ctx c;

	CHECK(path && node);
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(wait_alone(c.fd), 0);
	CHECK_EQ(set_limit(SWC_QUOTA_MEMORY, 64), 0);
	CHECK_EQ(create_of_many(c.fd, path, node, WRONG_PATHS, &comm), -EINVAL);
	CHECK_EQ(create_of_many(c.fd, path, node, WRONG_NODES, &comm), -EINVAL);
	CHECK_EQ(query(c.fd, 0, &u), 0);
	before = u.quota[SWC_QUOTA_MEMORY].used;
	CHECK_EQ(create_of_many(c.fd, path, node, IN_ORDER, &comm), 0);
	CHECK_EQ(query(c.fd, 0, &u), 0);
	CHECK(u.quota[SWC_QUOTA_MEMORY].used > before + bytes);
	CHECK_EQ(testlib_comm_leave(c.fd, comm), 0);
	CHECK_EQ(wait_used(c.fd, 0, SWC_QUOTA_MEMORY, before), 0);
	CHECK_EQ(set_limit(SWC_QUOTA_MEMORY, 2), 0);
	CHECK_EQ(create_of_many(c.fd, path, node, IN_ORDER, &comm), -EDQUOT);
	testlib_close(&c);
	free(path);
	free(node);
	return 0;
}

/* ------------------------------------------------------------------ connections */

#define PATHS 8

/* Rank 0 of two nodes, the other of which has addresses that nobody has. */
static int create_alone(int fd, uint32_t *comm)
{
	static uint32_t node[2] = { 0, 1 };
	struct swc_node_path path[2 * PATHS] = { 0 };
	struct swc_comm_create j = { .nranks = 2,
				     .nnodes = 2,
				     .npaths = 2 * PATHS,
				     .rank_node = (uintptr_t)node,
				     .paths = (uintptr_t)path,
				     .timeout_ms = TESTLIB_EVENT_MS };
	int ret;

	for (uint32_t i = 0; i < 2 * PATHS; i++) {
		struct sockaddr_in *a = (void *)path[i].local, *b = (void *)path[i].remote;

		path[i].node = 1;
		path[i].path = i;
		a->sin_family = b->sin_family = AF_INET;
		a->sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, for documentation */
		b->sin_addr.s_addr = htonl(0xc0000202 + i);
		b->sin_port = htons(18574);
	}
	testlib_new_id(j.id);
	ret = testlib_ioctl(fd, SWC_IOC_COMM_CREATE, &j);
	*comm = j.comm;
	return ret;
}

/* A barrier with one empty message by each of the paths from the first on, on each channel. */
static int load_conns(int fd, uint32_t comm, uint32_t channels, uint32_t first, uint32_t *plan,
		      char *text)
{
	struct testlib_plan p;
	int ret;

	testlib_plan_init(&p, SWC_BARRIER, 2, 0, 0, 1);
	for (uint32_t ch = 0; ch < channels; ch++) {
		testlib_plan_channel(&p);
		for (uint32_t i = 0; i < PATHS; i++) {
			testlib_plan_step(&p, SWC_STEP_NET);
			testlib_plan_send(&p, 1, SWC_BUF_SEND, 0, 0);
			p.xfer[p.h.nxfers - 1].path = (uint8_t)(first + i);
		}
	}
	testlib_plan_pack(&p);
	ret = testlib_plan_load(fd, comm, p.data, p.bytes, plan, text);
	testlib_plan_free(&p);
	return ret;
}

static int conns(void)
{
	char text[SWC_TEXT_BYTES] = "";
	struct swc_comm_error e;
	struct swc_user_query u;
	struct testlib_ctx c;
	struct swc_desc d = { .coll = SWC_BARRIER };
	struct swc_comm_ref ref = { 0 };
	uint32_t comm;
	uint64_t used;

	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(wait_alone(c.fd), 0);
	CHECK_EQ(create_alone(c.fd, &comm), 0);
	/* 512 connections in one plan: refused when it is loaded. */
	CHECK_EQ(set_limit(SWC_QUOTA_CONNS, 511), 0);
	CHECK_EQ(load_conns(c.fd, comm, 64, 0, &d.plan, text), -EDQUOT);
	CHECK(strstr(text, "user_conns"));
	CHECK(strstr(text, "may have 511 connections"));
	CHECK_EQ(query(c.fd, 0, &u), 0);
	CHECK_EQ(u.quota[SWC_QUOTA_CONNS].used, 0);
	CHECK(u.quota[SWC_QUOTA_CONNS].refused > 0);
	/* So it is for the memory that they need, about 90 MiB. */
	CHECK_EQ(set_limit(SWC_QUOTA_CONNS, 1024), 0);
	CHECK_EQ(set_limit(SWC_QUOTA_MEMORY, 32), 0);
	CHECK_EQ(load_conns(c.fd, comm, 64, 0, &d.plan, text), -EDQUOT);
	CHECK(strstr(text, "user_memory_mib"));
	/* 64 are opened by the first operation; the next one needs other 64, for which there is no room. */
	CHECK_EQ(set_limit(SWC_QUOTA_CONNS, 100), 0);
	CHECK_EQ(load_conns(c.fd, comm, 8, 0, &d.plan, text), 0);
	d.comm = comm;
	CHECK_EQ(query(c.fd, 0, &u), 0);
	used = u.quota[SWC_QUOTA_MEMORY].used;
	CHECK_EQ(testlib_submit(c.fd, &d), 0);
	CHECK_EQ(query(c.fd, 0, &u), 0);
	CHECK_EQ(u.quota[SWC_QUOTA_CONNS].used, 64);
	CHECK(u.quota[SWC_QUOTA_MEMORY].used > used + 64 * 65536);
	CHECK_EQ(testlib_submit(c.fd, &d), 0);
	CHECK_EQ(load_conns(c.fd, comm, 8, PATHS, &d.plan, text), 0);
	CHECK_EQ(testlib_submit(c.fd, &d), -EDQUOT);
	CHECK_EQ(testlib_comm_error(c.fd, comm, &e), 0);
	CHECK_EQ(e.error, -EDQUOT);
	CHECK(strstr(e.text, "may have 100 connections"));
	CHECK_EQ(query(c.fd, 0, &u), 0);
	CHECK_EQ(u.quota[SWC_QUOTA_CONNS].used, 100);
	ref.comm = comm;
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_COMM_ABORT, &ref), 0);
	CHECK_EQ(testlib_run_child(work_of_nobody, NULL), 0);
	testlib_close(&c);
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(wait_used(c.fd, 0, SWC_QUOTA_CONNS, 0), 0);
	testlib_close(&c);
	return 0;
}

/*
 * Records of messages, some 110 bytes each: of 64 channels, one sends the most messages that a step may have. Its
 * records fit below the limit, as many for each channel would not.
 */
static int records(void)
{
	struct swc_desc d = { .coll = SWC_BARRIER };
	char text[SWC_TEXT_BYTES] = "";
	struct swc_comm_ref ref = { 0 };
	struct swc_user_query u;
	struct testlib_plan p;
	struct testlib_ctx c;
	uint64_t before;
	uint32_t comm;

	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(wait_alone(c.fd), 0);
	CHECK_EQ(create_alone(c.fd, &comm), 0);
	testlib_plan_init(&p, SWC_BARRIER, 2, 0, 0, 1);
	for (uint32_t ch = 0; ch < SWC_MAX_CHANNELS; ch++) {
		testlib_plan_channel(&p);
		testlib_plan_step(&p, ch ? SWC_STEP_SYNC : SWC_STEP_NET);
		for (uint32_t i = 0; !ch && i < SWC_MAX_MESSAGES; i++)
			testlib_plan_send(&p, 1, SWC_BUF_SEND, 0, 0);
	}
	testlib_plan_pack(&p);
	CHECK_EQ(testlib_plan_load(c.fd, comm, p.data, p.bytes, &d.plan, text), 0);
	testlib_plan_free(&p);
	CHECK_EQ(query(c.fd, 0, &u), 0);
	before = u.quota[SWC_QUOTA_MEMORY].used;
	CHECK_EQ(set_limit(SWC_QUOTA_MEMORY, (unsigned int)(before / MIB) + 64), 0);
	d.comm = comm;
	CHECK_EQ(testlib_submit(c.fd, &d), 0);
	CHECK_EQ(query(c.fd, 0, &u), 0);
	CHECK(u.quota[SWC_QUOTA_MEMORY].used > before + 64 * SWC_MAX_MESSAGES);
	ref.comm = comm;
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_COMM_ABORT, &ref), 0);
	testlib_close(&c);
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(wait_alone(c.fd), 0);
	testlib_close(&c);
	return 0;
}

static int nothing_left(void)
{
	struct testlib_ctx c;

	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(wait_alone(c.fd), 0);
	CHECK_EQ(wait_used(c.fd, NOBODY, SWC_QUOTA_MEMORY, 0), 0);
	testlib_close(&c);
	return 0;
}

int main(void)
{
	static const struct {
		const char *name;
		int (*fn)(void);
		bool rdma;
	} test[] = {
		{ "open files", contexts, false },
		{ "open files of all users of a user namespace", namespaces, false },
		{ "communicators", comms, false },
		{ "memory of plans, slots and operations", memory, false },
		{ "scratch memory", scratch, false },
		{ "tables of pinned buffers", tables, false },
		{ "memory of paths to many nodes", paths, false },
		{ "connections", conns, true },
		{ "records of messages", records, true },
		{ "at the end nothing is charged", nothing_left, false },
	};
	struct swc_info info;

	ksft_print_header();
	testlib_require_root();
	info = testlib_info();
	for (int i = 0; i < SWC_QUOTA_NR; i++)
		if (parameter(i, before[i], sizeof(before[i]), false))
			ksft_exit_fail_msg("cannot read the module parameter %s\n", names[i]);
	testlib_at_end(restore);
	ksft_set_plan(ARRAY_SIZE(test));
	for (unsigned int i = 0; i < ARRAY_SIZE(test); i++) {
		if (test[i].rdma && !(info.features & SWC_FEATURE_RDMA)) {
			ksft_test_result_skip("%s: no RDMA in this kernel", test[i].name);
			continue;
		}
		if (test[i].fn == namespaces && testlib_run_child(make_namespace, NULL)) {
			ksft_test_result_skip("%s: users may make none here", test[i].name);
			continue;
		}
		ksft_test_result(!test[i].fn(), "%s", test[i].name);
		restore();
	}
	ksft_finished();
}

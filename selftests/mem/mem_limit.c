// SPDX-License-Identifier: GPL-2.0-only
/* RLIMIT_MEMLOCK of an ordinary user, and the memory cgroup: limits hold, errors explain them, memory is released. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <swingcoll.h>

#include "testlib.h"

#define LIMIT (1ul << 20)
#define POOR_ROUNDS 20
#define RW (PROT_READ | PROT_WRITE)

static struct testlib_rank r;

static int become_nobody(void)
{
	struct rlimit limit = { LIMIT, LIMIT };
	uint8_t id[SWC_ID_BYTES];

	testlib_new_id(id);
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	/* Only root can open the device; limits apply when memory is used. */
	CHECK_EQ(testlib_rank_open(&r, id, 1, 0, 5000), 0);
	CHECK(!setgroups(0, NULL) && !setgid(65534) && !setuid(65534));
	return 0;
}

static int reg(void *at, size_t bytes, uint32_t *handle)
{
	struct swc_mem_reg m = { .addr = (uintptr_t)at, .bytes = bytes };
	int ret = testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &m);

	*handle = m.region;
	return ret;
}

static int unreg(uint32_t handle)
{
	struct swc_mem_unreg m = { .region = handle };

	return testlib_ioctl(r.c.fd, SWC_IOC_MEM_UNREG, &m);
}

/* Released memory is accounted for a moment longer: call fn until it is not refused. */
static int once_released(int (*fn)(void *arg), void *arg)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;
	int ret;

	while ((ret = fn(arg)) == -ENOMEM && testlib_now_ms() < limit)
		testlib_sleep_ms(5);
	return ret;
}

struct reg_args {
	void *at;
	size_t bytes;
	uint32_t *handle;
};

static int reg_fn(void *arg)
{
	struct reg_args *a = arg;

	return reg(a->at, a->bytes, a->handle);
}

static int reg_soon(void *at, size_t bytes, uint32_t *handle)
{
	struct reg_args a = { at, bytes, handle };

	return once_released(reg_fn, &a);
}

static int explicit_regions(void *arg)
{
	char *p = mmap(NULL, 4 * LIMIT, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t h, more;

	(void)arg;
	if (become_nobody())
		return 1;
	CHECK_EQ(reg(p, 2 * LIMIT, &h), -ENOMEM);
	CHECK_EQ(reg(p, LIMIT + 1, &h), -ENOMEM);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(reg_soon(p, LIMIT, &h), 0);
		CHECK_EQ(reg(p + LIMIT, 1, &more), -ENOMEM);
		CHECK_EQ(unreg(h), 0);
	}
	CHECK_EQ(reg_soon(p, LIMIT / 2, &h), 0);
	CHECK_EQ(reg_soon(p + LIMIT, LIMIT / 2, &more), 0);
	CHECK_EQ(unreg(h), 0);
	CHECK_EQ(unreg(more), 0);
	/* A registration that fails half-way, for the second half is not mapped, is not accounted for. */
	munmap(p + LIMIT / 2, LIMIT / 2);
	for (int i = 0; i < 20; i++)
		CHECK(reg(p, LIMIT, &h) < 0);
	CHECK_EQ(reg_soon(p + LIMIT, LIMIT, &h), 0);
	return 0;
}

static int implicit(void *arg)
{
	char *p = mmap(NULL, 16 * LIMIT, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct swc_comm_error e;
	struct swc_desc d;

	(void)arg;
	if (become_nobody())
		return 1;
	memset(p, 1, 16 * LIMIT);
	d = testlib_allreduce_desc(&r, p, p, 2 * LIMIT, SWC_U8);
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), -ENOMEM);
	CHECK_EQ(testlib_comm_error(r.c.fd, r.comm, &e), 0);
	CHECK_EQ(e.error, -ENOMEM);
	CHECK(strstr(e.text, "RLIMIT_MEMLOCK"));
	CHECK(strstr(e.text, "1024 KiB"));
	CHECK_EQ(e.aborted, 0);
	/* Each buffer fits alone; the cache releases old ones for the next. */
	for (int i = 0; i < 16; i++) {
		d = testlib_allreduce_desc(&r, p + i * LIMIT, p + i * LIMIT, LIMIT / 4, SWC_U8);
		CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
	}
	return 0;
}

static int run_desc(void *arg)
{
	return testlib_submit_wait(&r.c, arg, NULL);
}

/* A plan that needs scratch memory and no buffers. */
static int scratch(void *arg)
{
	struct testlib_plan p;
	struct swc_desc d;

	(void)arg;
	if (become_nobody())
		return 1;
	testlib_plan_scratch(&p);
	CHECK_EQ(testlib_plan_install(r.c.fd, r.comm, &p, &r.plan), 0);
	d = testlib_allreduce_desc(&r, NULL, NULL, 64 * LIMIT, SWC_U8);
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), -ENOMEM);
	d.count = LIMIT / 2;
	for (int i = 0; i < 20; i++)
		CHECK_EQ(once_released(run_desc, &d), 0);
	return 0;
}

static int create(uint32_t slot_bytes, uint32_t *comm)
{
	struct swc_comm_create j = { .nranks = 1, .slot_bytes = slot_bytes, .timeout_ms = 1000 };
	int ret;

	testlib_new_id(j.id);
	ret = testlib_ioctl(r.c.fd, SWC_IOC_COMM_CREATE, &j);
	*comm = j.comm;
	return ret;
}

struct create_args {
	uint32_t slot_bytes;
	uint32_t *comm;
};

static int create_fn(void *arg)
{
	struct create_args *a = arg;

	return create(a->slot_bytes, a->comm);
}

static int create_soon(uint32_t slot_bytes, uint32_t *comm)
{
	struct create_args a = { slot_bytes, comm };

	return once_released(create_fn, &a);
}

/* Slots are accounted for until the last part of them is unmapped, even after their communicator has ended. */
static int mapped(void *arg)
{
	uint32_t comm, more;
	char *p;

	(void)arg;
	if (become_nobody())
		return 1;
	CHECK_EQ(create(2 * LIMIT, &comm), -ENOMEM);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(create_soon(LIMIT, &comm), 0);
		p = mmap(NULL, LIMIT, RW, MAP_SHARED, r.c.fd, SWC_MMAP_SLOTS(comm));
		CHECK(p != MAP_FAILED);
		CHECK_EQ(testlib_comm_leave(r.c.fd, comm), 0);
		/* A hole makes two mappings of one. */
		munmap(p + LIMIT / 2, 4096);
		testlib_sleep_ms(20);
		CHECK_EQ(create(4096, &more), -ENOMEM);
		munmap(p, LIMIT / 2);
		CHECK_EQ(create(4096, &more), -ENOMEM);
		p[LIMIT - 1] = 1;
		munmap(p + LIMIT / 2 + 4096, LIMIT / 2 - 4096);
	}
	CHECK_EQ(create_soon(LIMIT, &comm), 0);
	return 0;
}

/* One number of memory.stat, or -1. */
static long cgroup_stat(const char *dir, const char *name)
{
	char path[128], line[128], is[64];
	long value = -1, n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/memory.stat", dir);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %ld", is, &n) == 2 && !strcmp(is, name))
			value = n;
	if (f)
		fclose(f);
	return value;
}

static int put(const char *dir, const char *file, const char *text)
{
	char path[128];
	int fd, bad;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return 1;
	bad = write(fd, text, strlen(text)) < 0;
	close(fd);
	return bad;
}

#define NO_CGROUP 4

static int in_cgroup(const char *dir)
{
	uint64_t limit;
	long before;
	uint32_t comm;
	char *p;

	CHECK_EQ(testlib_open(&r.c), 0);
	before = cgroup_stat(dir, "vmalloc");
	CHECK_EQ(create(8 * LIMIT, &comm), 0);
	p = mmap(NULL, 8 * LIMIT, RW, MAP_SHARED, r.c.fd, SWC_MMAP_SLOTS(comm));
	CHECK(p != MAP_FAILED);
	CHECK(cgroup_stat(dir, "vmalloc") >= before + (long)(8 * LIMIT));
	CHECK_EQ(testlib_comm_leave(r.c.fd, comm), 0);
	testlib_sleep_ms(20);
	CHECK(cgroup_stat(dir, "vmalloc") >= before + (long)(8 * LIMIT));
	munmap(p, 8 * LIMIT);
	/* The kernel updates the numbers with a delay, and leaves out small differences. */
	limit = testlib_now_ms() + TESTLIB_EVENT_MS;
	while (cgroup_stat(dir, "vmalloc") > before + (long)LIMIT && testlib_now_ms() < limit)
		testlib_sleep_ms(10);
	CHECK(cgroup_stat(dir, "vmalloc") <= before + (long)LIMIT);
	testlib_close(&r.c);
	return 0;
}

/* Root has no limit of its own, but its slots are charged to its memory cgroup. */
static int cgroup(void *arg)
{
	char top[] = "/tmp/swingcoll-cgroup-XXXXXX", dir[64];
	int ret = NO_CGROUP;

	(void)arg;
	CHECK(mkdtemp(top));
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", top, "cgroup2", 0, NULL))
		goto out;
	snprintf(dir, sizeof(dir), "%s/swingcoll-%d", top, getpid());
	if (!put(top, "cgroup.subtree_control", "+memory") && !mkdir(dir, 0755) &&
	    !put(dir, "cgroup.procs", "0") && cgroup_stat(dir, "vmalloc") >= 0)
		ret = in_cgroup(dir);
	put(top, "cgroup.procs", "0");
	rmdir(dir);
	umount2(top, MNT_DETACH);
out:
	rmdir(top);
	return ret;
}

/*
 * Slots are charged to the rank that comes first. If that may not have them, the other one may, and makes the
 * communicator of both. Neither waits for the other: so often that each has come first.
 */
static int poor_rank(uint32_t rank, void *arg)
{
	const struct swingcoll_comm_opts opts = { .timeout_ms = 10000 };
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];
	struct rlimit none = { 0, 0 };
	struct swingcoll_comm *comm;
	struct swingcoll_id *ids = arg;

	if (!rank) {
		CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
		CHECK_EQ(syscall(SYS_capget, &head, caps), 0);
		caps[0].effective &= ~(1u << CAP_IPC_LOCK);
		CHECK_EQ(syscall(SYS_capset, &head, caps), 0);
	}
	for (int i = 0; i < POOR_ROUNDS; i++) {
		CHECK_EQ(swingcoll_comm_create(&comm, &ids[i], 2, (int)rank, &opts), 0);
		CHECK_EQ(swingcoll_barrier(comm), 0);
		CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	}
	return 0;
}

static int poor(void)
{
	struct swingcoll_id ids[POOR_ROUNDS];

	for (int i = 0; i < POOR_ROUNDS; i++)
		CHECK_EQ(swingcoll_unique_id(&ids[i]), 0);
	return testlib_run_ranks(2, poor_rank, ids);
}

int main(void)
{
	int ret;

	ksft_print_header();
	testlib_require_root();
	ksft_set_plan(6);
	ksft_test_result(!testlib_run_child(explicit_regions, NULL), "registered regions");
	ksft_test_result(!testlib_run_child(implicit, NULL),
			 "buffers by address, and the error text");
	ksft_test_result(!testlib_run_child(scratch, NULL), "scratch memory of plans");
	ksft_test_result(!testlib_run_child(mapped, NULL), "slots that are mapped after the end");
	ksft_test_result(!poor(),
			 "a rank that may not have the slots joins another one's communicator");
	ret = testlib_run_child(cgroup, NULL);
	if (ret == NO_CGROUP)
		ksft_test_result_skip("memory cgroup: no memory controller");
	else
		ksft_test_result(!ret, "memory cgroup");
	ksft_finished();
}

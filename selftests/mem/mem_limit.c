// SPDX-License-Identifier: GPL-2.0-only
/* RLIMIT_MEMLOCK for an ordinary user, and the memory cgroup: kept, explained, and given back. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "testlib.h"

#define LIMIT (1ul << 20)
#define RW (PROT_READ | PROT_WRITE)

static struct swct_rank r;

static int become_nobody(void)
{
	struct rlimit limit = { LIMIT, LIMIT };
	uint8_t id[SWC_ID_BYTES];

	swct_id(id);
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	/* The node is root's; the descriptor is taken along, the limits are those of the moment of use. */
	CHECK_EQ(swct_rank_up(&r, id, 1, 0, 5000), 0);
	CHECK(!setgroups(0, NULL) && !setgid(65534) && !setuid(65534));
	return 0;
}

static int reg(void *at, size_t bytes, uint32_t *handle)
{
	struct swc_mem_reg m = { .addr = (uintptr_t)at, .bytes = bytes };
	int ret = swct_ioctl(r.c.fd, SWC_IOC_MEM_REG, &m);

	*handle = m.region;
	return ret;
}

static int unreg(uint32_t handle)
{
	struct swc_mem_unreg m = { .region = handle };

	return swct_ioctl(r.c.fd, SWC_IOC_MEM_UNREG, &m);
}

/* Pages come back a moment after the call. */
static int reg_soon(void *at, size_t bytes, uint32_t *handle)
{
	int ret = -ENOMEM;

	for (int i = 0; i < 200 && ret == -ENOMEM; i++) {
		ret = reg(at, bytes, handle);
		if (ret)
			swct_sleep_ms(10);
	}
	return ret;
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
	/* What failed half-way is not counted: the second half is not there. */
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
	d = swct_allreduce(&r, p, p, 2 * LIMIT, SWC_U8);
	CHECK_EQ(swct_run(&r.c, &d, NULL), -ENOMEM);
	CHECK_EQ(swct_error(r.c.fd, r.comm, &e), 0);
	CHECK_EQ(e.error, -ENOMEM);
	CHECK(strstr(e.text, "RLIMIT_MEMLOCK"));
	CHECK(strstr(e.text, "1024 KiB"));
	CHECK_EQ(e.aborted, 0);
	/* Each fits by itself; the cache makes room for the next. */
	for (int i = 0; i < 16; i++) {
		d = swct_allreduce(&r, p + i * LIMIT, p + i * LIMIT, LIMIT / 4, SWC_U8);
		CHECK_EQ(swct_run(&r.c, &d, NULL), 0);
	}
	return 0;
}

/* A plan that asks for scratch without end, with no buffers of its own. */
static int scratch(void *arg)
{
	struct swct_plan p;
	struct swc_desc d;

	(void)arg;
	if (become_nobody())
		return 1;
	swct_plan_init(&p, SWC_ALLREDUCE, 1, 0, 0, 1);
	p.h.window[SWC_BUF_SEND].nblocks = 0;
	p.h.window[SWC_BUF_RECV].nblocks = 0;
	p.h.window[SWC_BUF_SCRATCH].nblocks = 1;
	swct_plan_channel(&p);
	swct_plan_step(&p, SWC_STEP_SYNC);
	swct_plan_pack(&p);
	CHECK_EQ(swct_plan_load(r.c.fd, r.comm, p.data, p.bytes, &r.plan, NULL), 0);
	d = swct_allreduce(&r, NULL, NULL, 64 * LIMIT, SWC_U8);
	CHECK_EQ(swct_run(&r.c, &d, NULL), -ENOMEM);
	d.count = LIMIT / 2;
	for (int i = 0; i < 20; i++) {
		int ret;

		do
			ret = swct_run(&r.c, &d, NULL);
		while (ret == -ENOMEM && i++ < 200);
		CHECK_EQ(ret, 0);
	}
	return 0;
}

static int join(uint32_t slot_bytes, uint32_t *comm)
{
	struct swc_comm_join j = { .nranks = 1, .slot_bytes = slot_bytes, .timeout_ms = 1000 };
	int ret;

	swct_id(j.id);
	ret = swct_ioctl(r.c.fd, SWC_IOC_COMM_JOIN, &j);
	*comm = j.comm;
	return ret;
}

static int join_soon(uint32_t slot_bytes, uint32_t *comm)
{
	int ret = -ENOMEM;

	for (int i = 0; i < 200 && ret == -ENOMEM; i++) {
		ret = join(slot_bytes, comm);
		if (ret)
			swct_sleep_ms(10);
	}
	return ret;
}

/* Slots that outlive their communicator count for as long as anybody maps them, any part of them. */
static int mapped(void *arg)
{
	uint32_t comm, more;
	char *p;

	(void)arg;
	if (become_nobody())
		return 1;
	CHECK_EQ(join(2 * LIMIT, &comm), -ENOMEM);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(join_soon(LIMIT, &comm), 0);
		p = mmap(NULL, LIMIT, RW, MAP_SHARED, r.c.fd, SWC_MMAP_SLOTS(comm));
		CHECK(p != MAP_FAILED);
		CHECK_EQ(swct_leave(r.c.fd, comm), 0);
		/* A hole: two mappings now. */
		munmap(p + LIMIT / 2, 4096);
		swct_sleep_ms(20);
		CHECK_EQ(join(4096, &more), -ENOMEM);
		munmap(p, LIMIT / 2);
		CHECK_EQ(join(4096, &more), -ENOMEM);
		p[LIMIT - 1] = 1;
		munmap(p + LIMIT / 2 + 4096, LIMIT / 2 - 4096);
	}
	CHECK_EQ(join_soon(LIMIT, &comm), 0);
	return 0;
}

/* One number of a cgroup's statistics; -1: not there. */
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
	long before;
	uint32_t comm;
	char *p;

	CHECK_EQ(swct_open(&r.c), 0);
	before = cgroup_stat(dir, "vmalloc");
	CHECK_EQ(join(8 * LIMIT, &comm), 0);
	p = mmap(NULL, 8 * LIMIT, RW, MAP_SHARED, r.c.fd, SWC_MMAP_SLOTS(comm));
	CHECK(p != MAP_FAILED);
	CHECK(cgroup_stat(dir, "vmalloc") >= before + (long)(8 * LIMIT));
	CHECK_EQ(swct_leave(r.c.fd, comm), 0);
	swct_sleep_ms(20);
	CHECK(cgroup_stat(dir, "vmalloc") >= before + (long)(8 * LIMIT));
	munmap(p, 8 * LIMIT);
	/* The kernel adds up small differences when it likes to: the completion ring's, before. */
	for (int i = 0; i < 500 && cgroup_stat(dir, "vmalloc") > before + (long)LIMIT; i++)
		swct_sleep_ms(10);
	CHECK(cgroup_stat(dir, "vmalloc") <= before + (long)LIMIT);
	swct_close(&r.c);
	return 0;
}

/* No limit of its own holds for root; what the kernel makes for it counts in its memory cgroup. */
static int cgroup(void *arg)
{
	char top[] = "/tmp/swct-cgroup-XXXXXX", dir[64];
	int ret = NO_CGROUP;

	(void)arg;
	CHECK(mkdtemp(top));
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", top, "cgroup2", 0, NULL))
		goto out;
	snprintf(dir, sizeof(dir), "%s/swct-%d", top, getpid());
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

int main(void)
{
	int ret;

	ksft_print_header();
	swct_need_root();
	ksft_set_plan(5);
	ksft_test_result(!swct_child(explicit_regions, NULL, 20000), "explicit registrations");
	ksft_test_result(!swct_child(implicit, NULL, 20000),
			 "buffers by address, with an explanation");
	ksft_test_result(!swct_child(scratch, NULL, 20000), "scratch memory of plans");
	ksft_test_result(!swct_child(mapped, NULL, 20000), "slots that are still mapped");
	ret = swct_child(cgroup, NULL, 20000);
	if (ret == NO_CGROUP)
		ksft_test_result_skip("memory cgroup: no controller to be had");
	else
		ksft_test_result(!ret, "memory cgroup");
	ksft_finished();
}

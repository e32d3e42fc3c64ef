// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cache of buffers that are given by address: an operation always uses the pages that the process has there now,
 * whatever has happened to the mapping since the last operation.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "testlib.h"

#define BYTES (64ul << 10)
#define COUNT (BYTES / 4)
#define RW (PROT_READ | PROT_WRITE)

static struct testlib_rank r;
static uint32_t *a, *b;
static uint32_t round_nr;

static uint32_t *fresh(void *at)
{
	void *p = mmap(at, BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* An allreduce of one rank: b becomes a copy of a. */
static int check_copy(const uint32_t *from, uint32_t *to)
{
	struct swc_desc d = testlib_allreduce_desc(&r, from, to, COUNT, SWC_U32);
	uint32_t salt = ++round_nr * 1000003;

	for (uint32_t i = 0; i < COUNT; i++)
		((uint32_t *)from)[i] = salt + i;
	memset(to, 0, BYTES);
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
	for (uint32_t i = 0; i < COUNT; i++)
		CHECK_EQ(to[i], salt + i);
	return 0;
}

static int hits(void)
{
	uint64_t hit = testlib_stat(SWC_STAT_CACHE_HITS), miss;

	CHECK_EQ(check_copy(a, b), 0);
	miss = testlib_stat(SWC_STAT_CACHE_MISSES);
	hit = testlib_stat(SWC_STAT_CACHE_HITS);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(check_copy(a, b), 0);
	CHECK_EQ(testlib_stat(SWC_STAT_CACHE_HITS), hit + 10);
	CHECK_EQ(testlib_stat(SWC_STAT_CACHE_MISSES), miss);
	return 0;
}

static int unmapped(void)
{
	uint64_t drops = testlib_stat(SWC_STAT_CACHE_DROPS);

	for (int i = 0; i < 4; i++) {
		CHECK_EQ(check_copy(a, b), 0);
		munmap(i & 1 ? a : b, BYTES);
		CHECK(fresh(i & 1 ? a : b));
		CHECK_EQ(check_copy(a, b), 0);
	}
	CHECK(testlib_stat(SWC_STAT_CACHE_DROPS) > drops);
	/* And with nothing mapped there. */
	struct swc_desc d = testlib_allreduce_desc(&r, a, b, COUNT, SWC_U32);

	munmap(a, BYTES);
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), -EFAULT);
	CHECK(fresh(a));
	return check_copy(a, b);
}

static int replaced(void)
{
	CHECK_EQ(check_copy(a, b), 0);
	CHECK(fresh(a)); /* mapped over */
	CHECK(fresh(b));
	return check_copy(a, b);
}

static int part_replaced(void)
{
	CHECK_EQ(check_copy(a, b), 0);
	CHECK(mmap((char *)b + 8192, 4096, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
	      MAP_FAILED);
	return check_copy(a, b);
}

static int remapped(void)
{
	uint32_t *old = b, *moved;

	CHECK_EQ(check_copy(a, b), 0);
	moved = mremap(b, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)fresh(NULL));
	CHECK(moved != MAP_FAILED);
	CHECK_EQ(check_copy(a, moved), 0);
	CHECK(fresh(old));
	CHECK_EQ(check_copy(a, old), 0);
	CHECK_EQ(check_copy(old, moved), 0);
	munmap(moved, BYTES);
	return 0;
}

static int dontneed(void)
{
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(check_copy(a, b), 0);
		CHECK_EQ(madvise(i & 1 ? a : b, BYTES, MADV_DONTNEED), 0);
		CHECK_EQ(check_copy(a, b), 0);
		CHECK_EQ(madvise((char *)b + 4096, 4096, MADV_DONTNEED), 0);
		CHECK_EQ(check_copy(a, b), 0);
	}
	return 0;
}

static int child_write(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < COUNT; i++) {
		a[i] = 0xdead;
		b[i] = 0xbeef;
	}
	return 0;
}

/* After fork the parent keeps its own pages, whichever of the two writes first. */
static int forked(void)
{
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(check_copy(a, b), 0);
		CHECK_EQ(testlib_run_child(child_write, NULL), 0);
		CHECK_EQ(check_copy(a, b), 0);
	}
	/* A child that is alive during the operations. */
	fflush(stdout);
	pid_t pid = fork();

	if (!pid) {
		for (;;)
			testlib_sleep_ms(1000);
	}
	int ret = check_copy(a, b) || check_copy(b, a) || check_copy(a, b);

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return ret;
}

static int protected(void)
{
	struct swc_desc d = testlib_allreduce_desc(&r, a, b, COUNT, SWC_U32);

	CHECK_EQ(check_copy(a, b), 0);
	CHECK_EQ(mprotect(b, BYTES, PROT_NONE), 0);
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), -EFAULT);
	CHECK_EQ(mprotect(b, BYTES, PROT_READ), 0);
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), -EFAULT);
	CHECK_EQ(mprotect(b, BYTES, RW), 0);
	CHECK_EQ(check_copy(a, b), 0);
	CHECK_EQ(mprotect((char *)a + 4096, 4096, PROT_NONE), 0);
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), -EFAULT);
	CHECK_EQ(mprotect((char *)a + 4096, 4096, RW), 0);
	return check_copy(a, b);
}

/* A registered region keeps the pages that it has pinned, even after they are unmapped. */
static int region_unmapped(void)
{
	struct swc_mem_reg reg = { .bytes = BYTES };
	struct swc_mem_unreg un;
	struct swc_desc d;
	uint32_t *p = fresh(NULL);

	for (uint32_t i = 0; i < COUNT; i++)
		p[i] = 41;
	reg.addr = (uintptr_t)p;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg), 0);
	munmap(p, BYTES);
	CHECK(fresh(p));
	for (uint32_t i = 0; i < COUNT; i++)
		p[i] = 42;
	d = testlib_allreduce_desc(&r, NULL, b, COUNT, SWC_U32);
	d.send_region = reg.region;
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
	CHECK_EQ(b[0], 41);
	un = (struct swc_mem_unreg){ .region = reg.region };
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_UNREG, &un), 0);
	munmap(p, BYTES);
	return check_copy(a, b);
}

/* More buffers than the cache has entries: all work, and old entries are released. */
static int many(void)
{
	enum {
		N = 600
	};
	char *room = mmap(NULL, N * 4096ul, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t v[SWC_STAT_NR], until;

	CHECK(room != MAP_FAILED);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < N; i++) {
			uint32_t *p = (uint32_t *)(room + i * 4096ul);
			struct swc_desc d = testlib_allreduce_desc(&r, p, b, 8, SWC_U32);

			p[7] = i + round;
			CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
			CHECK_EQ(b[7], i + round);
		}
	munmap(room, N * 4096ul);
	until = testlib_now_ms() + TESTLIB_EVENT_MS;
	do {
		CHECK_EQ(testlib_stats(v, SWC_STAT_NR), 0);
		testlib_sleep_ms(10);
	} while (v[SWC_STAT_REGIONS_PINNED] - v[SWC_STAT_REGIONS_UNPINNED] > 16 &&
		 testlib_now_ms() < until);
	CHECK(v[SWC_STAT_REGIONS_PINNED] - v[SWC_STAT_REGIONS_UNPINNED] <= 16);
	return check_copy(a, b);
}

/* ------------------------------------------------------------------ first use under signals */

static void ignore(int sig)
{
	(void)sig;
}

/* The first use of an address space takes the locks of all its mappings: many, so that signals interrupt it. */
static int first_use(uint32_t rank, void *arg)
{
	struct sigaction sa = { .sa_handler = ignore, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, off = { 0 };
	struct swc_completion done;
	struct testlib_rank alone;
	uint8_t id[SWC_ID_BYTES];
	struct swc_desc d;
	char *p;

	(void)rank;
	(void)arg;
	p = mmap(NULL, 4000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	for (int i = 1; i < 4000; i += 2)
		CHECK_EQ(mprotect(p + i * 4096, 4096, PROT_READ), 0);
	testlib_single_rank(&alone, id);
	d = testlib_allreduce_desc(&alone, p, p, 100, SWC_F32);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	CHECK_EQ(testlib_submit(alone.c.fd, &d), 0);
	setitimer(ITIMER_REAL, &off, NULL);
	CHECK_EQ(testlib_ring_next(&alone.c, &done, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(done.res, 0);
	testlib_rank_close(&alone);
	return 0;
}

static int first_use_under_signals(void)
{
	for (int i = 0; i < 10; i++)
		if (testlib_run_ranks(1, first_use, NULL))
			return 1;
	return 0;
}

int main(void)
{
	static const struct testlib_test test[] = {
		{ "repeated use hits the cache", hits },
		{ "munmap and mmap at the same address", unmapped },
		{ "a new mapping over the old one", replaced },
		{ "a new mapping over one page", part_replaced },
		{ "mremap", remapped },
		{ "MADV_DONTNEED", dontneed },
		{ "fork", forked },
		{ "mprotect", protected },
		{ "a registered region that is unmapped", region_unmapped },
		{ "more buffers than the cache holds", many },
		{ "first use under a storm of signals", first_use_under_signals },
	};
	uint8_t id[SWC_ID_BYTES];

	ksft_print_header();
	testlib_require_root();
	testlib_single_rank(&r, id);
	a = fresh(NULL);
	b = fresh(NULL);
	if (!a || !b)
		ksft_exit_fail_msg("cannot set up\n");
	testlib_run_tests(test, ARRAY_SIZE(test));
	ksft_finished();
}

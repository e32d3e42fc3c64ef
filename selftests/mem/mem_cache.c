// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers by address: the pages that an operation touches are always those that the process sees, whatever
 * has become of the address since the last operation.
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

static struct swct_rank r;
static uint32_t *a, *b;
static uint32_t round_nr;

static uint32_t *fresh(void *at)
{
	void *p = mmap(at, BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* A communicator of one: b becomes a copy of a. */
static int copies(const uint32_t *from, uint32_t *to)
{
	struct swc_desc d = swct_allreduce(&r, from, to, COUNT, SWC_U32);
	uint32_t salt = ++round_nr * 1000003;

	for (uint32_t i = 0; i < COUNT; i++)
		((uint32_t *)from)[i] = salt + i;
	memset(to, 0, BYTES);
	CHECK_EQ(swct_run(&r.c, &d, NULL), 0);
	for (uint32_t i = 0; i < COUNT; i++)
		CHECK_EQ(to[i], salt + i);
	return 0;
}

static int hits(void)
{
	uint64_t hit = swct_stat(SWC_STAT_CACHE_HITS), miss;

	CHECK_EQ(copies(a, b), 0);
	miss = swct_stat(SWC_STAT_CACHE_MISSES);
	hit = swct_stat(SWC_STAT_CACHE_HITS);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(copies(a, b), 0);
	CHECK_EQ(swct_stat(SWC_STAT_CACHE_HITS), hit + 10);
	CHECK_EQ(swct_stat(SWC_STAT_CACHE_MISSES), miss);
	return 0;
}

static int unmapped(void)
{
	uint64_t drops = swct_stat(SWC_STAT_CACHE_DROPS);

	for (int i = 0; i < 4; i++) {
		CHECK_EQ(copies(a, b), 0);
		munmap(i & 1 ? a : b, BYTES);
		CHECK(fresh(i & 1 ? a : b));
		CHECK_EQ(copies(a, b), 0);
	}
	CHECK(swct_stat(SWC_STAT_CACHE_DROPS) > drops);
	/* And without anything there. */
	struct swc_desc d = swct_allreduce(&r, a, b, COUNT, SWC_U32);

	munmap(a, BYTES);
	CHECK_EQ(swct_run(&r.c, &d, NULL), -EFAULT);
	CHECK(fresh(a));
	return copies(a, b);
}

static int replaced(void)
{
	CHECK_EQ(copies(a, b), 0);
	CHECK(fresh(a)); /* mapped over */
	CHECK(fresh(b));
	return copies(a, b);
}

static int part_replaced(void)
{
	CHECK_EQ(copies(a, b), 0);
	CHECK(mmap((char *)b + 8192, 4096, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
	      MAP_FAILED);
	return copies(a, b);
}

static int remapped(void)
{
	uint32_t *old = b, *moved;

	CHECK_EQ(copies(a, b), 0);
	moved = mremap(b, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)fresh(NULL));
	CHECK(moved != MAP_FAILED);
	CHECK_EQ(copies(a, moved), 0);
	CHECK(fresh(old));
	CHECK_EQ(copies(a, old), 0);
	CHECK_EQ(copies(old, moved), 0);
	munmap(moved, BYTES);
	return 0;
}

static int dontneed(void)
{
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(copies(a, b), 0);
		CHECK_EQ(madvise(i & 1 ? a : b, BYTES, MADV_DONTNEED), 0);
		CHECK_EQ(copies(a, b), 0);
		CHECK_EQ(madvise((char *)b + 4096, 4096, MADV_DONTNEED), 0);
		CHECK_EQ(copies(a, b), 0);
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

/* After fork the parent keeps its own pages, in whatever order the two write. */
static int forked(void)
{
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(copies(a, b), 0);
		CHECK_EQ(swct_child(child_write, NULL, 5000), 0);
		CHECK_EQ(copies(a, b), 0);
	}
	/* A child that stays. */
	fflush(stdout);
	pid_t pid = fork();

	if (!pid) {
		for (;;)
			swct_sleep_ms(1000);
	}
	int ret = copies(a, b) || copies(b, a) || copies(a, b);

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return ret;
}

static int protected(void)
{
	struct swc_desc d = swct_allreduce(&r, a, b, COUNT, SWC_U32);

	CHECK_EQ(copies(a, b), 0);
	CHECK_EQ(mprotect(b, BYTES, PROT_NONE), 0);
	CHECK_EQ(swct_run(&r.c, &d, NULL), -EFAULT);
	CHECK_EQ(mprotect(b, BYTES, PROT_READ), 0);
	CHECK_EQ(swct_run(&r.c, &d, NULL), -EFAULT);
	CHECK_EQ(mprotect(b, BYTES, RW), 0);
	CHECK_EQ(copies(a, b), 0);
	CHECK_EQ(mprotect((char *)a + 4096, 4096, PROT_NONE), 0);
	CHECK_EQ(swct_run(&r.c, &d, NULL), -EFAULT);
	CHECK_EQ(mprotect((char *)a + 4096, 4096, RW), 0);
	return copies(a, b);
}

/* An explicit region holds the pages it pinned: unmapping is safe, and useless. */
static int region_unmapped(void)
{
	struct swc_mem_reg reg = { .bytes = BYTES };
	struct swc_mem_unreg un;
	struct swc_desc d;
	uint32_t *p = fresh(NULL);

	for (uint32_t i = 0; i < COUNT; i++)
		p[i] = 41;
	reg.addr = (uintptr_t)p;
	CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg), 0);
	munmap(p, BYTES);
	CHECK(fresh(p));
	for (uint32_t i = 0; i < COUNT; i++)
		p[i] = 42;
	d = swct_allreduce(&r, NULL, b, COUNT, SWC_U32);
	d.send_region = reg.region;
	CHECK_EQ(swct_run(&r.c, &d, NULL), 0);
	CHECK_EQ(b[0], 41);
	un = (struct swc_mem_unreg){ .region = reg.region };
	CHECK_EQ(swct_ioctl(r.c.fd, SWC_IOC_MEM_UNREG, &un), 0);
	munmap(p, BYTES);
	return copies(a, b);
}

/* More buffers than the cache has entries: old ones go, all work. */
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
			struct swc_desc d = swct_allreduce(&r, p, b, 8, SWC_U32);

			p[7] = i + round;
			CHECK_EQ(swct_run(&r.c, &d, NULL), 0);
			CHECK_EQ(b[7], i + round);
		}
	munmap(room, N * 4096ul);
	until = swct_ms() + 3000;
	do {
		CHECK_EQ(swct_stats(v, SWC_STAT_NR), 0);
		swct_sleep_ms(10);
	} while (v[SWC_STAT_REGIONS_PINNED] - v[SWC_STAT_REGIONS_UNPINNED] > 16 &&
		 swct_ms() < until);
	CHECK(v[SWC_STAT_REGIONS_PINNED] - v[SWC_STAT_REGIONS_UNPINNED] <= 16);
	return copies(a, b);
}

/* ------------------------------------------------------------------ first use under signals */

static void ignore(int sig)
{
	(void)sig;
}

/* A first use takes all locks of the address space: many mappings, for signals to come in between. */
static int rained_on(uint32_t rank, void *arg)
{
	struct sigaction sa = { .sa_handler = ignore, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, off = { 0 };
	struct swc_completion done;
	struct swct_rank alone;
	uint8_t id[SWC_ID_BYTES];
	struct swc_desc d;
	char *p;

	(void)rank;
	(void)arg;
	p = mmap(NULL, 4000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	for (int i = 1; i < 4000; i += 2)
		CHECK_EQ(mprotect(p + i * 4096, 4096, PROT_READ), 0);
	swct_alone(&alone, id);
	d = swct_allreduce(&alone, p, p, 100, SWC_F32);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	CHECK_EQ(swct_submit(alone.c.fd, &d), 0);
	setitimer(ITIMER_REAL, &off, NULL);
	CHECK_EQ(swct_next(&alone.c, &done, 10000), 0);
	CHECK_EQ(done.res, 0);
	swct_rank_down(&alone);
	return 0;
}

static int first_use_under_signals(void)
{
	for (int i = 0; i < 10; i++)
		if (swct_ranks(1, 30000, rained_on, NULL))
			return 1;
	return 0;
}

int main(void)
{
	static const struct swct_test test[] = {
		{ "hits are hits", hits },
		{ "munmap and mmap at the same address", unmapped },
		{ "mapped over", replaced },
		{ "a page in the middle replaced", part_replaced },
		{ "mremap", remapped },
		{ "MADV_DONTNEED", dontneed },
		{ "fork", forked },
		{ "mprotect", protected },
		{ "explicit region, unmapped", region_unmapped },
		{ "more buffers than the cache holds", many },
		{ "first use while signals come", first_use_under_signals },
	};
	uint8_t id[SWC_ID_BYTES];

	ksft_print_header();
	swct_need_root();
	swct_alone(&r, id);
	a = fresh(NULL);
	b = fresh(NULL);
	if (!a || !b)
		ksft_exit_fail_msg("cannot set up\n");
	swct_tests(test, ARRAY_SIZE(test));
	ksft_finished();
}

// SPDX-License-Identifier: GPL-2.0-only
/* Kinds of memory as buffers: small and huge pages, private and shared, files, odd addresses, registered regions. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "coll.h"

#define NRANKS 3
#define COUNT 600011 /* of f32: more than a huge page */
#define BYTES (6ul << 20)
#define RW (PROT_READ | PROT_WRITE)

#define HUGE_PAGES "/proc/sys/vm/nr_hugepages"

static struct swingcoll_id id;
static char huge_before[32];

static void *plain(void)
{
	return mmap(NULL, BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void *thp(void)
{
	char *p = mmap(NULL, BYTES + (2ul << 20), RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return p;
	p += -(uintptr_t)p & ((2ul << 20) - 1);
	if (madvise(p, BYTES, MADV_HUGEPAGE))
		return MAP_FAILED;
	/* The second of three in small pages. */
	madvise(p + (2ul << 20), 2ul << 20, MADV_NOHUGEPAGE);
	return p;
}

static void *hugetlb(void)
{
	return mmap(NULL, BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
}

static void *shared(void)
{
	return mmap(NULL, BYTES, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void *memfd(void)
{
	int fd = memfd_create("swingcoll", 0);
	void *p;

	if (fd < 0 || ftruncate(fd, BYTES))
		return MAP_FAILED;
	p = mmap(NULL, BYTES, RW, MAP_SHARED, fd, 0);
	close(fd);
	return p;
}

/* A private mapping of a file: pages become anonymous when they are written. */
static void *private_file(void)
{
	int fd = memfd_create("swingcoll", 0);
	void *p;

	if (fd < 0 || ftruncate(fd, BYTES))
		return MAP_FAILED;
	p = mmap(NULL, BYTES, RW, MAP_PRIVATE, fd, 0);
	close(fd);
	return p;
}

/* Blocks of 64 KiB in reverse order. */
static void *scattered(void)
{
	int fd = memfd_create("swingcoll", 0);
	char *p = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t n = BYTES / 65536;

	if (fd < 0 || ftruncate(fd, BYTES) || p == MAP_FAILED)
		return MAP_FAILED;
	for (size_t i = 0; i < n; i++)
		if (mmap(p + i * 65536, 65536, RW, MAP_SHARED | MAP_FIXED, fd,
			 (n - 1 - i) * 65536) == MAP_FAILED)
			return MAP_FAILED;
	close(fd);
	return p;
}

/* In bits of an address that the hardware ignores, which Linux allows for 64-bit Arm. */
#ifdef __aarch64__
#define TAG (0x2aul << 56)
#else
#define TAG 0ul
#endif

static void *tagged(void)
{
	void *p = plain();

	if (p == MAP_FAILED || prctl(PR_SET_TAGGED_ADDR_CTRL, PR_TAGGED_ADDR_ENABLE, 0, 0, 0))
		return MAP_FAILED;
	return (char *)p + TAG;
}

struct kind {
	const char *name;
	void *(*get)(void);
	unsigned int shift; /* bytes off the page */
	bool reg;	    /* registered */
	bool needs_hugetlb;
};

static const struct kind kinds[] = {
	{ "small pages", plain, 0, false, false },
	{ "4 bytes off the page", plain, 4, false, false },
	{ "last element of a page", plain, 4092, false, false },
	{ "transparent huge pages", thp, 0, false, false },
	{ "transparent huge pages, odd address", thp, 12, false, false },
	{ "hugetlb pages", hugetlb, 0, false, true },
	{ "hugetlb pages, odd address", hugetlb, 8, false, true },
	{ "shared anonymous", shared, 0, false, false },
	{ "memfd", memfd, 0, false, false },
	{ "private file mapping", private_file, 0, false, false },
	{ "scattered pages, odd address", scattered, 20, false, false },
	{ "registered", plain, 0, true, false },
	{ "registered, odd address", plain, 36, true, false },
	{ "registered transparent huge pages", thp, 4, true, false },
	{ "registered hugetlb pages", hugetlb, 4, true, true },
	{ "registered memfd", memfd, 4, true, false },
	{ "tagged addresses", tagged, 4, false, false },
	{ "registered tagged addresses", tagged, 4, true, false },
};

static int run(uint32_t rank, void *arg)
{
	static const char *const algos[] = { "direct2", "ring", "recdoub" };
	const struct kind *k = arg;
	char *base = k->get(), *mem = base + k->shift;
	struct coll_case c = { .coll = SWINGCOLL_ALLREDUCE,
			       .dtype = SWINGCOLL_F32,
			       .count = COUNT };
	struct swingcoll_comm *comm;

	CHECK(base != MAP_FAILED);
	if (k->reg)
		CHECK_EQ(swingcoll_mem_register(mem, BYTES - k->shift), 0);
	for (unsigned int a = 0; a < ARRAY_SIZE(algos); a++) {
		struct swingcoll_comm_opts opts = { .algo = algos[a], .slot_max = -1 };
		struct swingcoll_id own = id;

		own.bytes[0] += a;
		c.in_place = a != 1;
		/* Most time goes into filling and checking. */
		c.count = a ? COUNT / 7 : COUNT;
		CHECK_EQ(swingcoll_comm_create(&comm, &own, NRANKS, rank, &opts), 0);
		CHECK_EQ(coll_run(&c, mem, comm, a), 0);
		c.count /= 100;
		CHECK_EQ(coll_run(&c, mem, comm, a + 1), 0);
		CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	}
	if (k->reg)
		CHECK_EQ(swingcoll_mem_unregister(mem), 0);
	return 0;
}

/* Memory that is not in the kernel's direct map must be refused. Returns -1 if this kernel has none. */
static int secret(void)
{
	uint32_t buf[4] = { 0 };
	struct testlib_rank r;
	struct swc_desc d;
	uint8_t rid[SWC_ID_BYTES];
	int fd = syscall(SYS_memfd_secret, 0);
	void *p;

	if (fd < 0)
		return -1;
	CHECK_EQ(ftruncate(fd, 4096), 0);
	p = mmap(NULL, 4096, RW, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -1;
	*(int *)p = 1;
	testlib_new_id(rid);
	CHECK_EQ(testlib_rank_open(&r, rid, 1, 0, 1000), 0);
	d = testlib_allreduce_desc(&r, p, buf, 4, SWC_U32);
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), -EFAULT);
	testlib_rank_close(&r);
	return 0;
}

static void restore(void)
{
	testlib_write_text(HUGE_PAGES, huge_before);
}

/* So many huge pages more than there are. */
static bool reserve_huge(int n)
{
	char text[32];

	if (!testlib_read_text(HUGE_PAGES, huge_before, sizeof(huge_before)))
		return false;
	testlib_at_end(restore);
	n += atoi(huge_before);
	snprintf(text, sizeof(text), "%d", n);
	return testlib_write_text(HUGE_PAGES, text) &&
	       testlib_read_text(HUGE_PAGES, text, sizeof(text)) && atoi(text) >= n;
}

int main(void)
{
	bool huge;
	int ret;

	ksft_print_header();
	testlib_require_root();
	ksft_set_plan(ARRAY_SIZE(kinds) + 1);
	huge = reserve_huge(NRANKS * BYTES / (2 << 20));
	for (unsigned int k = 0; k < ARRAY_SIZE(kinds); k++) {
		if (kinds[k].needs_hugetlb && !huge) {
			ksft_test_result_skip("%s: cannot reserve 9 huge pages", kinds[k].name);
			continue;
		}
		if (kinds[k].get == thp && access("/sys/kernel/mm/transparent_hugepage", F_OK)) {
			ksft_test_result_skip("%s: not in this kernel", kinds[k].name);
			continue;
		}
		if (kinds[k].get == tagged && !TAG) {
			ksft_test_result_skip("%s: not on this architecture", kinds[k].name);
			continue;
		}
		swingcoll_unique_id(&id);
		ksft_test_result(!testlib_run_ranks(NRANKS, run, (void *)&kinds[k]), "%s",
				 kinds[k].name);
	}
	ret = secret();
	if (ret < 0)
		ksft_test_result_skip("secret memory: no memfd_secret in this kernel");
	else
		ksft_test_result(!ret, "secret memory is refused");
	ksft_finished();
}

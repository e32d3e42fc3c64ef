// SPDX-License-Identifier: GPL-2.0-only
/* Mappings: offsets and lengths, and read-only pages that cannot be made writable. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "testlib.h"

#define RW (PROT_READ | PROT_WRITE)

static struct testlib_rank r;

static int map(uint64_t offset, size_t bytes, int prot, int flags)
{
	void *p = mmap(NULL, bytes, prot, flags, r.c.fd, offset);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, bytes);
	return 0;
}

static int offsets(void)
{
	CHECK_EQ(map(SWC_MMAP_RING, 4096, PROT_READ, MAP_SHARED), 0);
	CHECK_EQ(map(SWC_MMAP_RING_USER, 4096, RW, MAP_SHARED), 0);
	CHECK_EQ(map(SWC_MMAP_STATE(r.comm), 4096, PROT_READ, MAP_SHARED), 0);
	CHECK_EQ(map(0, 4096, PROT_READ, MAP_SHARED), -EINVAL);
	CHECK_EQ(map(4096, 4096, PROT_READ, MAP_SHARED), -EINVAL);
	CHECK_EQ(map(SWC_MMAP_RING + 4096, 4096, PROT_READ, MAP_SHARED), -EINVAL);
	CHECK_EQ(map(SWC_MMAP_RING + (1ull << 32), 4096, PROT_READ, MAP_SHARED), -EINVAL);
	CHECK_EQ(map(SWC_MMAP_RING_USER + 4096, 4096, RW, MAP_SHARED), -EINVAL);
	CHECK_EQ(map(6ull << 48, 4096, PROT_READ, MAP_SHARED), -EINVAL);
	CHECK_EQ(map(SWC_MMAP_PROGRESS(77), 4096, RW, MAP_SHARED), -ENOENT);
	CHECK_EQ(map(SWC_MMAP_PROGRESS(77) + 4096, 4096, RW, MAP_SHARED), -EINVAL);
	CHECK_EQ(map(SWC_MMAP_STATE(r.comm) + 4096, 4096, PROT_READ, MAP_SHARED), -EINVAL);
	CHECK_EQ(map(SWC_MMAP_STATE(r.comm + 77), 4096, PROT_READ, MAP_SHARED), -ENOENT);
	CHECK_EQ(map(SWC_MMAP_STATE(0), 4096, PROT_READ, MAP_SHARED), -ENOENT);
	CHECK_EQ(map(SWC_MMAP_SLOTS(r.comm + 77), 4096, RW, MAP_SHARED), -ENOENT);
	CHECK_EQ(map(SWC_MMAP_SLOTS(r.comm), 4096, RW, MAP_SHARED), -EINVAL); /* has no slots */
	return 0;
}

static int lengths(void)
{
	size_t ring = (r.c.ring_bytes + 4095) & ~4095ul;

	CHECK_EQ(map(SWC_MMAP_RING, ring, PROT_READ, MAP_SHARED), 0);
	CHECK_EQ(map(SWC_MMAP_RING, ring + 4096, PROT_READ, MAP_SHARED), -EINVAL);
	CHECK_EQ(map(SWC_MMAP_RING_USER, 8192, RW, MAP_SHARED), -EINVAL);
	CHECK_EQ(map(SWC_MMAP_STATE(r.comm), 8192, PROT_READ, MAP_SHARED), -EINVAL);
	return 0;
}

static sigjmp_buf env;

static void on_segv(int sig)
{
	(void)sig;
	siglongjmp(env, 1);
}

static int write_faults(volatile uint32_t *p)
{
	struct sigaction sa = { .sa_handler = on_segv };
	int faulted = 0;

	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	if (sigsetjmp(env, 1))
		faulted = 1;
	else
		*p = 1;
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	return faulted;
}

static int read_only(uint64_t offset)
{
	void *p;

	CHECK_EQ(map(offset, 4096, RW, MAP_SHARED), -EPERM);
	CHECK_EQ(map(offset, 4096, RW, MAP_PRIVATE), -EPERM);
	CHECK_EQ(map(offset, 4096, PROT_WRITE, MAP_SHARED), -EPERM);
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, r.c.fd, offset);
	CHECK(p != MAP_FAILED);
	CHECK(mprotect(p, 4096, RW) == -1);
	CHECK_EQ(errno, EACCES);
	CHECK(write_faults(p));
	munmap(p, 4096);
	return 0;
}

static int ring_ro(void)
{
	return read_only(SWC_MMAP_RING);
}

static int state_ro(void)
{
	return read_only(SWC_MMAP_STATE(r.comm));
}

static int slots(void)
{
	struct swc_comm_create j = { .nranks = 1, .slot_bytes = 10000, .timeout_ms = 1000 };
	uint32_t *a, *b;

	testlib_new_id(j.id);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_CREATE, &j), 0);
	CHECK_EQ(map(SWC_MMAP_SLOTS(j.comm), 12288, RW, MAP_PRIVATE), -EINVAL);
	CHECK_EQ(map(SWC_MMAP_SLOTS(j.comm), 16384, RW, MAP_SHARED), -EINVAL);
	a = mmap(NULL, 12288, RW, MAP_SHARED, r.c.fd, SWC_MMAP_SLOTS(j.comm));
	b = mmap(NULL, 12288, RW, MAP_SHARED, r.c.fd, SWC_MMAP_SLOTS(j.comm));
	CHECK(a != MAP_FAILED && b != MAP_FAILED);
	for (int i = 0; i < 3072; i++)
		CHECK_EQ(a[i], 0);
	a[2500] = 9;
	CHECK_EQ(b[2500], 9);
	CHECK_EQ(testlib_comm_leave(r.c.fd, j.comm), 0);
	a[2500] = 10;
	CHECK_EQ(b[2500], 10);
	CHECK_EQ(map(SWC_MMAP_SLOTS(j.comm), 4096, RW, MAP_SHARED), -ENOENT);
	munmap(a, 12288);
	munmap(b, 12288);
	return 0;
}

/* Mappings keep the context alive after close(). */
static int after_close(void)
{
	struct testlib_ctx c;

	CHECK_EQ(testlib_open(&c), 0);
	close(c.fd);
	CHECK_EQ(c.ring->tail, 0);
	CHECK(c.ring->entries > 0);
	c.user->head = 5;
	munmap((void *)c.ring, c.ring_bytes);
	munmap(c.user, 4096);
	return 0;
}

static int state_shows_abort(void)
{
	struct swc_comm_ref ref = { .error = EIO };
	const struct swc_comm_state *s;
	uint8_t id[SWC_ID_BYTES];

	testlib_new_id(id);
	CHECK_EQ(testlib_comm_create(r.c.fd, id, 1, 0, 1000, &ref.comm), 0);
	s = mmap(NULL, 4096, PROT_READ, MAP_SHARED, r.c.fd, SWC_MMAP_STATE(ref.comm));
	CHECK(s != MAP_FAILED);
	CHECK_EQ(s->aborted, 0);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_ABORT, &ref), 0);
	CHECK_EQ(s->aborted, 1);
	CHECK_EQ(s->error, -EIO);
	CHECK_EQ(s->culprit, 0);
	CHECK_EQ(testlib_comm_leave(r.c.fd, ref.comm), 0);
	CHECK_EQ(s->aborted, 1);
	return 0;
}

static cpu_set_t all_cpus;

/* Rank 0 may run on the first CPU only, the last rank on all others, or on the same one. */
static int joins_bound(uint32_t rank, void *arg)
{
	uint32_t nranks = *(uint32_t *)arg, comm;
	int first = 0, count = CPU_COUNT(&all_cpus);
	const struct swc_comm_state *s;
	struct testlib_ctx c;
	uint8_t *id = (uint8_t *)arg + sizeof(nranks);
	cpu_set_t mine = all_cpus;

	while (!CPU_ISSET(first, &all_cpus))
		first++;
	if (rank && count > 1) {
		CPU_CLR(first, &mine);
	} else {
		CPU_ZERO(&mine);
		CPU_SET(first, &mine);
	}
	CHECK_EQ(sched_setaffinity(0, sizeof(mine), &mine), 0);
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(testlib_comm_create(c.fd, id, nranks, rank, TESTLIB_EVENT_MS, &comm), 0);
	s = mmap(NULL, 4096, PROT_READ, MAP_SHARED, c.fd, SWC_MMAP_STATE(comm));
	CHECK(s != MAP_FAILED);
	CHECK_EQ(s->ncpus, nranks > 1 ? (uint32_t)count : 1);
	for (int i = 0, last = -1; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &mine))
			continue;
		CHECK(last >= 0 || s->cpus[rank].first == i);
		last = i;
		CHECK(s->cpus[rank].last >= i);
		CHECK(CPU_COUNT(&mine) > 1 || s->cpus[rank].last == i);
	}
	CHECK_EQ(testlib_comm_leave(c.fd, comm), 0);
	testlib_close(&c);
	return 0;
}

static int state_counts_cpus(void)
{
	struct {
		uint32_t nranks;
		uint8_t id[SWC_ID_BYTES];
	} arg;

	CHECK_EQ(sched_getaffinity(0, sizeof(all_cpus), &all_cpus), 0);
	for (arg.nranks = 1; arg.nranks < 3; arg.nranks++) {
		testlib_new_id(arg.id);
		CHECK_EQ(testlib_run_ranks(arg.nranks, joins_bound, &arg), 0);
	}
	return 0;
}

int main(void)
{
	static const struct testlib_test test[] = {
		{ "offsets: the known ones are mapped, others refused", offsets },
		{ "lengths beyond the object are refused", lengths },
		{ "the completion ring cannot be written", ring_ro },
		{ "the state page cannot be written", state_ro },
		{ "slots: shared only, zeroed, mapped beyond the membership", slots },
		{ "mappings are valid after close()", after_close },
		{ "the state page shows an abort", state_shows_abort },
		{ "the state page counts the CPUs that all members may use", state_counts_cpus },
	};
	uint8_t id[SWC_ID_BYTES];

	ksft_print_header();
	testlib_require_device();
	testlib_single_rank(&r, id);
	testlib_run_tests(test, ARRAY_SIZE(test));
	ksft_finished();
}

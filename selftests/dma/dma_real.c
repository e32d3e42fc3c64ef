// SPDX-License-Identifier: GPL-2.0-only
/*
 * A DMA engine of this machine with its own driver: it copies, results are right, and its channels are released. What
 * engines can do wrong is tested by dma.sh.
 *
 * All transfers have multiples of 4 bytes: QEMU's model of the bcm2835 never completes one of 2, unlike the hardware.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "partitioned.h"

#define KNOB "/sys/module/swingcoll/parameters/dma"
#define CLASS "/sys/class/dma"
#define NRANKS 3
#define BENCH_RANKS 2
#define BENCH_BYTES (16u << 20)
#define BENCH_TIMES 8

static struct swingcoll_id id;
static unsigned int nchannels;
static char driver[64];

static int read_line(const char *path, char *line, size_t max)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, line, max - 1);

	if (fd >= 0)
		close(fd);
	line[n < 0 ? 0 : n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return n < 0 ? -1 : 0;
}

static int set_mode(const char *mode)
{
	int fd = open(KNOB, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, mode, strlen(mode));

	if (fd >= 0)
		close(fd);
	return n < 0 ? -errno : 0;
}

/* Count all channels, and those in use; note their driver. */
static unsigned int count_channels(unsigned int *in_use)
{
	DIR *dir = opendir(CLASS);
	struct dirent *entry;
	unsigned int n = 0;
	char path[512], line[256];

	*in_use = 0;
	while (dir && (entry = readdir(dir))) {
		ssize_t len;

		if (*entry->d_name == '.')
			continue;
		snprintf(path, sizeof(path), CLASS "/%s/in_use", entry->d_name);
		if (!read_line(path, line, sizeof(line)))
			*in_use += atoi(line) > 0;
		snprintf(path, sizeof(path), CLASS "/%s/device/driver", entry->d_name);
		len = readlink(path, line, sizeof(line) - 1);
		line[len < 0 ? 0 : len] = '\0';
		snprintf(driver, sizeof(driver), "%s", basename(line));
		n++;
	}
	if (dir)
		closedir(dir);
	return n;
}

/* Interrupts so far on lines of /proc/interrupts that contain a name; -1 without such a line. */
static long long interrupts(const char *name)
{
	FILE *f = fopen("/proc/interrupts", "re");
	long long sum = -1;
	char line[4096];

	while (f && fgets(line, sizeof(line), f)) {
		char *at = strchr(line, ':'), *end;

		if (!at || !strstr(at, name))
			continue;
		if (sum < 0)
			sum = 0;
		for (at++;; at = end) {
			long long n = strtoll(at, &end, 10);

			if (end == at)
				break;
			sum += n;
		}
	}
	if (f)
		fclose(f);
	return sum;
}

/* CPU time so far without idle time, of all CPUs, in ms. */
static uint64_t busy_ms(void)
{
	unsigned long long user = 0, nice = 0, sys = 0, idle = 0, iowait = 0, irq = 0, softirq = 0;
	char line[512];

	if (read_line("/proc/stat", line, sizeof(line)) ||
	    sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &sys, &idle,
		   &iowait, &irq, &softirq) != 7)
		return 0;
	return (user + nice + sys + irq + softirq) * 1000 / sysconf(_SC_CLK_TCK);
}

/* ------------------------------------------------------------------ ranks */

struct job {
	const struct coll_case *c;
	unsigned int n;
	const char *algo;
};

static int work(uint32_t rank, void *arg)
{
	const struct job *j = arg;
	struct swingcoll_comm_opts opts = { .algo = j->algo, .slot_max = -1, .timeout_ms = 30000 };
	struct swingcoll_comm *comm;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, &opts), 0);
	for (unsigned int i = 0; i < j->n; i++) {
		void *mem = malloc(coll_bytes(&j->c[i], NRANKS));

		CHECK(mem);
		CHECK_EQ(coll_run(&j->c[i], mem, comm, i), 0);
		free(mem);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static int work_in_partitions(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .slot_max = -1, .timeout_ms = 30000 };
	const struct job *j = arg;
	struct swingcoll_comm *comm;
	unsigned int rnd = rank;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, &opts), 0);
	for (unsigned int i = 0; i < j->n; i++) {
		struct partitioned p;

		CHECK_EQ(partitioned_open(&p, &j->c[i], 3, comm), 0);
		for (int round = 0; round < 2; round++)
			CHECK_EQ(partitioned_round(&p, rank, round, &rnd), 0);
		CHECK_EQ(partitioned_close(&p), 0);
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static int run_by(testlib_rank_fn fn, const struct coll_case *c, unsigned int n, const char *algo)
{
	struct job j = { c, n, algo };

	swingcoll_unique_id(&id);
	return testlib_run_ranks(NRANKS, fn, &j);
}

static int run(const struct coll_case *c, unsigned int n, const char *algo)
{
	return run_by(work, c, n, algo);
}

static const struct coll_case small = { .coll = SWINGCOLL_ALLGATHER,
					.dtype = SWINGCOLL_I32,
					.count = 100000 };

/*
 * The engine copies bytes, and the CPU has to repeat no copy. An engine that a busy machine has left idle for some
 * seconds is released; then the next use only makes the module look for it.
 */
static int run_moved_by(testlib_rank_fn fn, const struct coll_case *c, unsigned int n,
			const char *algo)
{
	uint64_t jobs = testlib_stat(SWC_STAT_DMA_JOBS), bytes = testlib_stat(SWC_STAT_DMA_BYTES);
	uint64_t fallbacks = testlib_stat(SWC_STAT_DMA_FALLBACKS);
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;

	do
		CHECK_EQ(run_by(fn, c, n, algo), 0);
	while (testlib_stat(SWC_STAT_DMA_BYTES) == bytes && testlib_now_ms() < limit);
	jobs = testlib_stat(SWC_STAT_DMA_JOBS) - jobs;
	bytes = testlib_stat(SWC_STAT_DMA_BYTES) - bytes;
	ksft_print_msg("%llu bytes in %llu copies by %s\n", (unsigned long long)bytes,
		       (unsigned long long)jobs, driver);
	CHECK(bytes > 0);
	CHECK_EQ(testlib_stat(SWC_STAT_DMA_FALLBACKS), fallbacks);
	return 0;
}

static int run_moved(const struct coll_case *c, unsigned int n, const char *algo)
{
	return run_moved_by(work, c, n, algo);
}

static bool all_released(uint64_t unused)
{
	(void)unused;
	return testlib_stat(SWC_STAT_DMA_CHANS_RELEASED) ==
	       testlib_stat(SWC_STAT_DMA_CHANS_ACQUIRED);
}

static bool any_acquired(uint64_t before)
{
	return testlib_stat(SWC_STAT_DMA_CHANS_ACQUIRED) != before;
}

static bool wait_channels(bool (*cond)(uint64_t arg), uint64_t arg, uint64_t limit_ms)
{
	uint64_t limit = testlib_now_ms() + limit_ms;

	while (!cond(arg)) {
		if (testlib_now_ms() > limit)
			return false;
		testlib_sleep_ms(20);
	}
	return true;
}

/* Forbid engines: all channels are released. */
static bool release(void)
{
	set_mode("never");
	return wait_channels(all_released, 0, TESTLIB_EVENT_MS);
}

/*
 * The first use only makes the module look for an engine, in the background. Returns how many channels it has taken.
 * That none can be used is known only after a while.
 */
static uint64_t take(void)
{
	uint64_t before = testlib_stat(SWC_STAT_DMA_CHANS_ACQUIRED);

	if (set_mode("always") || run(&small, 1, NULL))
		return 0;
	wait_channels(any_acquired, before, TESTLIB_EVENT_MS / 2);
	return testlib_stat(SWC_STAT_DMA_CHANS_ACQUIRED) - before;
}

/* ------------------------------------------------------------------ tests */

static int copies(void)
{
	static const int colls[] = { SWINGCOLL_ALLGATHER, SWINGCOLL_BROADCAST, SWINGCOLL_ALLTOALL };
	static const size_t counts[] = { 1, 64, 1021, 200003, 400000 };
	struct coll_case c[ARRAY_SIZE(colls) * ARRAY_SIZE(counts) * 2];
	unsigned int n = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(c); i++) {
		int coll = colls[i % ARRAY_SIZE(colls)];

		c[n++] = (struct coll_case){ .coll = coll,
					     .dtype = i % 2 ? SWINGCOLL_I32 : SWINGCOLL_F64,
					     .count = counts[i / 2 % ARRAY_SIZE(counts)],
					     .in_place = coll != SWINGCOLL_ALLTOALL && i & 1 };
	}
	return run_moved(c, n, NULL);
}

static int sums(void)
{
	struct coll_case c[2 * (SWINGCOLL_F64 + 1)];

	for (unsigned int i = 0; i < ARRAY_SIZE(c); i++)
		c[i] = (struct coll_case){ .coll = SWINGCOLL_ALLREDUCE,
					   .dtype = i / 2,
					   .op = SWINGCOLL_SUM,
					   .count = swingcoll_dtype_size(i / 2) < 4 ? NRANKS * 24004
										    : 70001,
					   .in_place = i & 1 };
	return run_moved(c, ARRAY_SIZE(c), "ring");
}

static int partitions(void)
{
	static const struct coll_case c[] = {
		{ .coll = SWINGCOLL_ALLGATHER, .dtype = SWINGCOLL_I32, .count = 100000 },
		{ .coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_F32, .count = NRANKS * 40000 },
	};

	return run_moved_by(work_in_partitions, c, ARRAY_SIZE(c), NULL);
}

static void raises_interrupts(void)
{
	long long before, after;
	int ret;

	/* The driver requests an interrupt for each channel that is in use. */
	ret = run_moved(&small, 1, NULL);
	before = interrupts("DMA IRQ");
	if (!ret && before < 0) {
		ksft_test_result_skip("interrupts: %s has none of that name", driver);
		return;
	}
	ret |= run_moved(&small, 1, NULL);
	after = interrupts("DMA IRQ");
	ksft_test_result(!ret && after > before, "%lld interrupts by the engine", after - before);
}

/* Not a test: how much CPU time an allgather takes. */
static int bench_rank(uint32_t rank, void *mode)
{
	const struct coll_case c = { .coll = SWINGCOLL_ALLGATHER,
				     .dtype = SWINGCOLL_I32,
				     .count = BENCH_BYTES / BENCH_RANKS / 4 };
	struct swingcoll_comm_opts opts = { .slot_max = -1, .timeout_ms = 30000 };
	void *mem = malloc(coll_bytes(&c, BENCH_RANKS)), *send, *recv;
	struct swingcoll_comm *comm;
	uint64_t cpu = 0, wall = 0;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, BENCH_RANKS, rank, &opts), 0);
	coll_buffers(&c, BENCH_RANKS, rank, mem, &send, &recv);
	memset(mem, rank, coll_bytes(&c, BENCH_RANKS));
	for (int i = 0; i <= BENCH_TIMES; i++) {
		if (i == 1) {
			wall = testlib_now_ms();
			cpu = busy_ms();
		}
		CHECK_EQ(coll_call(&c, send, recv, comm), 0);
	}
	CHECK_EQ(swingcoll_barrier(comm), 0);
	if (!rank)
		ksft_print_msg(
			"allgather of %u MiB, %d ranks, dma=%s: %.1f ms of CPU time, %.1f ms\n",
			BENCH_BYTES >> 20, BENCH_RANKS, (const char *)mode,
			(double)(busy_ms() - cpu) / BENCH_TIMES,
			(double)(testlib_now_ms() - wall) / BENCH_TIMES);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static void bench(char *mode)
{
	swingcoll_unique_id(&id);
	testlib_run_ranks(BENCH_RANKS, bench_rank, mode);
}

static int forbidden(void)
{
	uint64_t bytes = testlib_stat(SWC_STAT_DMA_BYTES);

	CHECK_EQ(set_mode("never"), 0);
	CHECK_EQ(run(&small, 1, NULL), 0);
	CHECK_EQ(testlib_stat(SWC_STAT_DMA_BYTES), bytes);
	return 0;
}

static int channels_released(unsigned int in_use_before)
{
	unsigned int in_use;

	CHECK(release());
	count_channels(&in_use);
	CHECK_EQ(in_use, in_use_before);
	return 0;
}

int main(void)
{
	unsigned int before, in_use;
	uint64_t taken;
	char mode[32];

	ksft_print_header();
	testlib_require_root();
	if (read_line(KNOB, mode, sizeof(mode)))
		ksft_exit_skip("this kernel has no DMA engines\n");
	/* Another user may have taken channels before. */
	release();
	nchannels = count_channels(&before);
	if (!nchannels) {
		set_mode(mode);
		ksft_exit_skip("no DMA engine here: nothing in " CLASS "\n");
	}
	taken = take();
	count_channels(&in_use);
	/* This driver is known to copy memory. */
	if (!taken && strcmp(driver, "bcm2835-dma")) {
		set_mode(mode);
		ksft_exit_skip("none of the %u DMA channels of %s copies memory\n", nchannels,
			       driver);
	}
	ksft_set_plan(7);
	ksft_test_result(taken && in_use == before + taken, "%llu of %u channels of %s are taken",
			 (unsigned long long)taken, nchannels, driver);
	ksft_test_result(!copies(), "copies by the engine");
	ksft_test_result(!partitions(), "partitioned collectives");
	ksft_test_result(!sums(), "sums by the CPU, copies by the engine");
	raises_interrupts();
	bench("always");
	ksft_test_result(!forbidden(), "never: no engine is used");
	bench("never");
	ksft_test_result(!channels_released(before), "all channels are released");
	set_mode(mode);
	ksft_finished();
}

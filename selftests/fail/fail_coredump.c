// SPDX-License-Identifier: GPL-2.0-only
/*
 * A member that dumps core, to a program that reads nothing until it is told to: the others hear of the death while the
 * dump goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "testlib.h"

#define N 2
#define PATTERN "/proc/sys/kernel/core_pattern"
#define DUMP_BYTES (1 << 20) /* more than the pipe to the program takes */

static uint8_t id[SWC_ID_BYTES];
static char fifo[64], program[64], before[129];

static void restore(void)
{
	testlib_write_text(PATTERN, before);
	unlink(program);
	unlink(fifo);
}

/*
 * A copy of this program that no user can replace: the kernel starts it as root whoever dumps core. In the first folder
 * from which programs can be started. False if there is none.
 */
static bool copy_program(void)
{
	static const char *const dirs[] = { "/run", "/dev/shm", "/tmp" };
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = -1;
	struct statvfs fs;
	ssize_t n = -1;

	for (unsigned int i = 0; i < ARRAY_SIZE(dirs) && to < 0; i++) {
		if (statvfs(dirs[i], &fs) || fs.f_flag & ST_NOEXEC)
			continue;
		snprintf(program, sizeof(program), "%s/swc-dump-%d", dirs[i], getpid());
		to = open(program, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	}
	while (from >= 0 && to >= 0 && (n = sendfile(to, from, NULL, 1 << 20)) > 0)
		;
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return !n;
}

/* What the kernel starts for the dump: waits until somebody opens the pipe, and then takes what there is. */
static int dump(const char *path)
{
	static char buf[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && read(STDIN_FILENO, buf, sizeof(buf)) > 0)
		;
	return 0;
}

/* The program waits: let it go on. */
static int release_dump(void)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;
	int fd;

	while ((fd = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0) {
		CHECK_EQ(errno, ENXIO);
		CHECK(testlib_now_ms() < limit);
		testlib_sleep_ms(1);
	}
	close(fd);
	return 0;
}

static int rank_fn(uint32_t rank, void *arg)
{
	static uint32_t buf[1000];
	struct swc_comm_error e;
	struct testlib_rank r;
	struct swc_desc d;

	(void)arg;
	CHECK_EQ(testlib_rank_open(&r, id, N, rank, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 100), 0);
	if (rank) {
		char *mem = malloc(DUMP_BYTES);

		memset(mem, 1, DUMP_BYTES);
		asm volatile("" : : "r"(mem) : "memory");
		abort();
	}
	d = testlib_allreduce_desc(&r, buf, buf, 1000, SWC_U32);
	CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), -ECONNRESET);
	CHECK_EQ(testlib_comm_error(r.c.fd, r.comm, &e), 0);
	CHECK_EQ(e.culprit, 1);
	if (!strstr(e.text, "was killed by signal 6")) {
		ksft_print_msg("%s\n", e.text);
		return 1;
	}
	testlib_rank_close(&r);
	return 0;
}

static int dumps_core(void)
{
	pid_t pid[N], victim;
	int bad, status;

	testlib_new_id(id);
	testlib_fork_ranks(pid, N, rank_fn, NULL);
	victim = pid[1];
	pid[1] = 0;
	bad = testlib_wait_ranks(pid, N);
	/* The dump has not ended. */
	CHECK_EQ(waitpid(victim, &status, WNOHANG), 0);
	bad |= release_dump();
	CHECK_EQ(waitpid(victim, &status, 0), victim);
	CHECK(WIFSIGNALED(status) && WCOREDUMP(status));
	return bad;
}

int main(int argc, char **argv)
{
	static const struct testlib_test tests[] = {
		{ "others hear of a member that dumps core", dumps_core },
	};
	char pattern[136];

	if (argc == 3 && !strcmp(argv[1], "dump"))
		return dump(argv[2]);
	ksft_print_header();
	testlib_require_device();
	testlib_require_root();
	if (!testlib_read_text(PATTERN, before, sizeof(before)))
		ksft_exit_skip("needs %s\n", PATTERN);
	testlib_at_end(restore);
	snprintf(fifo, sizeof(fifo), "/tmp/swc-coredump-%d", getpid());
	if (!copy_program() || mkfifo(fifo, 0600))
		ksft_exit_skip("needs a folder for a program, and /tmp\n");
	snprintf(pattern, sizeof(pattern), "|%s dump %s", program, fifo);
	if (!testlib_write_text(PATTERN, pattern))
		ksft_exit_skip("%s cannot be written\n", PATTERN);
	testlib_run_tests(tests, ARRAY_SIZE(tests));
	ksft_finished();
}

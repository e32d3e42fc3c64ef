// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "testlib.h"

uint64_t testlib_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

uint64_t testlib_now_ms(void)
{
	return testlib_now_ns() / 1000000;
}

void testlib_sleep_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

void *testlib_shared_alloc(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	return p;
}

/* ------------------------------------------------------------------ events */

void testlib_count(unsigned int *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL);
}

bool testlib_wait_count(const unsigned int *counter, unsigned int n)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;
	unsigned int now;

	while ((now = __atomic_load_n(counter, __ATOMIC_ACQUIRE)) < n) {
		if (testlib_now_ms() > limit) {
			ksft_print_msg("waited in vain for %u processes, %u came\n", n, now);
			return false;
		}
		testlib_sleep_ms(1);
	}
	return true;
}

bool testlib_meet(unsigned int *counter, unsigned int n)
{
	testlib_count(counter);
	return testlib_wait_count(counter, n);
}

/* The letter that /proc shows for a thread, or '?'. Names of tests contain no parentheses. */
static char thread_state(pid_t tid)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	if (f)
		fclose(f);
	return state;
}

bool testlib_wait_asleep(pid_t tid)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;
	char state;

	while ((state = thread_state(tid)) != 'S') {
		if (state == '?' || state == 'Z' || testlib_now_ms() > limit) {
			ksft_print_msg("thread %d does not sleep, its state is %c\n", tid, state);
			return false;
		}
		testlib_sleep_ms(1);
	}
	return true;
}

/* ------------------------------------------------------------------ processes */

static pid_t fork_child(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		ksft_exit_fail_msg("fork: %s\n", strerror(errno));
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

void testlib_fork_ranks(pid_t *pid, uint32_t nranks, testlib_rank_fn fn, void *arg)
{
	for (uint32_t r = 0; r < nranks; r++) {
		pid[r] = fork_child();
		if (!pid[r])
			_exit(fn(r, arg));
	}
}

/* Like waitpid(); false if the child has not ended by the limit. */
static bool wait_until(pid_t pid, int *status, uint64_t limit)
{
	unsigned int nap = 1;
	pid_t got;

	while (!(got = waitpid(pid, status, WNOHANG))) {
		if (testlib_now_ms() > limit)
			return false;
		testlib_sleep_ms(nap);
		nap = nap < 16 ? nap * 2 : nap;
	}
	if (got < 0)
		*status = W_EXITCODE(255, 0);
	return true;
}

int testlib_wait_ranks_ms(pid_t *pid, uint32_t nranks, uint64_t limit_ms)
{
	uint64_t limit = testlib_now_ms() + limit_ms;
	int failed = 0, status;
	bool hung = false;

	for (uint32_t r = 0; r < nranks; r++) {
		if (pid[r] <= 0)
			continue;
		if (!wait_until(pid[r], &status, hung ? UINT64_MAX : limit)) {
			ksft_print_msg(
				"rank %u has not ended in %llu ms: killing it and the rest\n", r,
				(unsigned long long)limit_ms);
			for (uint32_t i = r; i < nranks; i++)
				if (pid[i] > 0)
					kill(pid[i], SIGKILL);
			hung = true;
			wait_until(pid[r], &status, UINT64_MAX);
		}
		pid[r] = 0;
		if (WIFSIGNALED(status) && !hung)
			ksft_print_msg("rank %u: signal %d\n", r, WTERMSIG(status));
		failed += !WIFEXITED(status) || WEXITSTATUS(status);
	}
	return failed;
}

int testlib_wait_ranks(pid_t *pid, uint32_t nranks)
{
	return testlib_wait_ranks_ms(pid, nranks, TESTLIB_HANG_MS);
}

int testlib_wait_child(pid_t *pid)
{
	int status = 0;
	bool hung = !wait_until(*pid, &status, testlib_now_ms() + TESTLIB_HANG_MS);

	if (hung) {
		ksft_print_msg("process %d has not ended in %d ms: killing it\n", *pid,
			       TESTLIB_HANG_MS);
		kill(*pid, SIGKILL);
		wait_until(*pid, &status, UINT64_MAX);
	}
	*pid = 0;
	if (hung)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

bool testlib_was_killed(pid_t *pid)
{
	return testlib_wait_child(pid) == 256 + SIGKILL;
}

int testlib_run_ranks(uint32_t nranks, testlib_rank_fn fn, void *arg)
{
	pid_t pid[SWC_MAX_LOCAL_RANKS];

	testlib_fork_ranks(pid, nranks, fn, arg);
	return testlib_wait_ranks(pid, nranks);
}

int testlib_run_child(int (*fn)(void *arg), void *arg)
{
	pid_t pid = fork_child();

	if (!pid)
		_exit(fn(arg));
	return testlib_wait_child(&pid);
}

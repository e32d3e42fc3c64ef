// SPDX-License-Identifier: GPL-2.0-only
/* File descriptors of the library: their numbers, and the limit of open files. TAP on stdout. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/descriptors.h"
#include "tap.h"

static rlim_t limit(void)
{
	struct rlimit l;

	return getrlimit(RLIMIT_NOFILE, &l) ? 0 : l.rlim_cur;
}

static void set_limit(rlim_t n)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l))
		_exit(1);
	l.rlim_cur = n;
	if (setrlimit(RLIMIT_NOFILE, &l))
		_exit(1);
}

/* In a process of its own, as it closes standard output, and lowers its hard limit. */
static bool passes(bool (*test)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(!test());
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool moves(void)
{
	int high = open("/dev/null", O_RDWR), low[2];

	if (high <= STDERR_FILENO || swc_descriptor_move(high) != high)
		return false;
	errno = ENFILE;
	if (swc_descriptor_move(-1) != -1 || errno != ENFILE)
		return false;
	close(STDOUT_FILENO);
	low[0] = open("/dev/null", O_RDWR);
	low[1] = swc_descriptor_move(low[0]);
	/* The number is free again, and the new one is not inherited. */
	if (low[0] != STDOUT_FILENO || low[1] <= STDERR_FILENO || fcntl(low[0], F_GETFD) != -1 ||
	    fcntl(low[1], F_GETFD) != FD_CLOEXEC)
		return false;
	set_limit((rlim_t)low[1] + 1);
	low[0] = open("/dev/null", O_RDWR);
	return low[0] == STDOUT_FILENO && swc_descriptor_move(low[0]) == -1 && errno == EMFILE &&
	       fcntl(low[0], F_GETFD) == -1;
}

static bool restores(void)
{
	set_limit(100);
	return !swc_descriptors_allow(100) && limit() == 100 && swc_descriptors_allow(200) &&
	       limit() == 200 && (swc_descriptors_restore(), limit() == 100);
}

static bool stops_at_hard_limit(void)
{
	struct rlimit l = { 100, 150 };

	return !setrlimit(RLIMIT_NOFILE, &l) && swc_descriptors_allow(200) && limit() == 150 &&
	       (swc_descriptors_restore(), limit() == 100) && (set_limit(150), true) &&
	       !swc_descriptors_allow(200);
}

/* Also if another one needs more after that. */
static bool keeps_program_limit(void)
{
	set_limit(100);
	if (!swc_descriptors_allow(200))
		return false;
	set_limit(250);
	swc_descriptors_restore();
	if (limit() != 250 || !swc_descriptors_allow(300))
		return false;
	set_limit(280);
	if (!swc_descriptors_allow(300))
		return false;
	swc_descriptors_restore();
	if (limit() != 300)
		return false;
	swc_descriptors_restore();
	return limit() == 280;
}

/* The first to raise it is the first to end. */
static bool counts_users(void)
{
	set_limit(100);
	if (!swc_descriptors_allow(200) || !swc_descriptors_allow(150) ||
	    !swc_descriptors_allow(300) || swc_descriptors_allow(50) || limit() != 300)
		return false;
	swc_descriptors_restore();
	swc_descriptors_restore();
	if (limit() != 300)
		return false;
	swc_descriptors_restore();
	return limit() == 100;
}

int main(void)
{
	printf("TAP version 13\n");
	fflush(stdout);
	ok(passes(moves), "descriptors get no number of a standard file");
	ok(passes(restores), "the limit of open files is raised and set back");
	ok(passes(stops_at_hard_limit), "it is raised to the hard limit at most");
	ok(passes(keeps_program_limit), "a limit that the program has set since stays");
	ok(passes(counts_users), "the limit stays until nobody needs it");
	return done();
}

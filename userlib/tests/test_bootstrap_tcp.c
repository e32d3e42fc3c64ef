// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bootstrap by TCP between forked processes on the loopback: reading the environment, exchanges,
 * wrong and foreign connections, ranks that end. TAP on stdout.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/bootstrap/tcp.h"
#include "tap.h"

#define RANKS 8

static const char *const variables[] = {
	"SWINGCOLL_ROOT",
	"SWINGCOLL_RANK",
	"SWINGCOLL_NRANKS",
	"SWINGCOLL_NODE",
	"SWINGCOLL_JOB",
	"SWINGCOLL_NNODES",
	"OMPI_COMM_WORLD_RANK",
	"OMPI_COMM_WORLD_SIZE",
	"PMI_RANK",
	"PMI_SIZE",
	"SLURM_PROCID",
	"SLURM_NTASKS",
	"RANK",
	"WORLD_SIZE",
	"MASTER_ADDR",
	"MASTER_PORT",
	"PMIX_NAMESPACE",
	"SWINGCOLL_BOOT_TIMEOUT",
	"SWINGCOLL_SECRET",
	"SWINGCOLL_SECRET_FILE",
};

static void clear_env(void)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
}

static void set_number(const char *name, int v)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", v);
	setenv(name, text, 1);
}

static bool fails(int error, const char *word)
{
	struct swc_boot_env env;

	if (swc_boot_env_read(&env) == error && strstr(swingcoll_bootstrap_error(), word))
		return true;
	printf("# %s\n", swingcoll_bootstrap_error());
	return false;
}

static bool reads(int rank, int nranks, const char *host, const char *port)
{
	struct swc_boot_env env;

	return !swc_boot_env_read(&env) && env.rank == rank && env.nranks == nranks &&
	       !strcmp(env.host, host) && !strcmp(env.port, port);
}

static bool launched(const char *variable, int rank, int nranks)
{
	int r = -2, n = -2;
	const char *from;

	return swingcoll_bootstrap_launcher(&from, &r, &n) == 1 && !strcmp(from, variable) &&
	       r == rank && n == nranks;
}

static void test_launcher(void)
{
	const char *from;
	int rank, nranks;

	clear_env();
	ok(!swingcoll_bootstrap_launcher(&from, &rank, &nranks), "no launcher found");
	setenv("PMIX_NAMESPACE", "job", 1);
	ok(launched("PMIX_NAMESPACE", -1, 0), "a launcher found by PMIx");
	setenv("SLURM_PROCID", "3", 1);
	setenv("SLURM_NTASKS", "4", 1);
	ok(launched("SLURM_PROCID", 3, 4), "a launcher found by its rank");
	setenv("SWINGCOLL_NODE", "1", 1);
	ok(swingcoll_bootstrap_launcher(&from, &rank, &nranks) == -EINVAL,
	   "a launcher with half a pair of variables");
	clear_env();
}

static void test_env(void)
{
	struct swingcoll_bootstrap *boot;
	char out[4] = "";

	clear_env();
	ok(reads(0, 0, "", ""), "no launcher");
	ok(!swingcoll_bootstrap_auto(&boot) && boot->nranks == 1 &&
		   !boot->allgather(boot->arg, "abc", out, 4) && !strcmp(out, "abc"),
	   "no launcher: one rank");
	swingcoll_bootstrap_free(boot);
	setenv("PMIX_NAMESPACE", "", 1);
	ok(!swingcoll_bootstrap_auto(&boot) && boot->nranks == 1,
	   "a variable of PMIx that is empty: no launcher");
	swingcoll_bootstrap_free(boot);
	setenv("SLURM_PROCID", "3", 1);
	setenv("SLURM_NTASKS", "4", 1);
	setenv("SWINGCOLL_ROOT", "[fd00::1]:29400", 1);
	ok(reads(3, 4, "fd00::1", "29400"), "rank from Slurm, IPv6 root");
	setenv("OMPI_COMM_WORLD_RANK", "2", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
	setenv("SWINGCOLL_ROOT", "node1:1", 1);
	ok(reads(2, 3, "node1", "1"), "mpirun in a batch script: mpirun's rank counts");
	setenv("RANK", "1", 1);
	setenv("WORLD_SIZE", "9", 1);
	setenv("MASTER_ADDR", "m", 1);
	setenv("MASTER_PORT", "29500", 1);
	ok(reads(1, 9, "node1", "1"), "rank from torchrun, root from SWINGCOLL_ROOT");
	unsetenv("SWINGCOLL_ROOT");
	ok(reads(1, 9, "m", "29501"), "root from torchrun: the port after MASTER_PORT");
	setenv("SWINGCOLL_NODE", "1", 1);
	setenv("SWINGCOLL_NNODES", "2", 1);
	ok(reads(1, 2, "", ""), "rank from SWINGCOLL_NODE");
	ok(swingcoll_bootstrap_auto(&boot) == -EINVAL &&
		   strstr(swingcoll_bootstrap_error(), "SWINGCOLL_ROOT=HOST:PORT is not set"),
	   "launcher without a root: the message names SWINGCOLL_ROOT");
	setenv("SWINGCOLL_RANK", "2", 1);
	ok(fails(-EINVAL, "SWINGCOLL_NRANKS is not"), "half a pair of variables");
	setenv("SWINGCOLL_NRANKS", "2", 1);
	ok(fails(-EINVAL, "SWINGCOLL_RANK=2: set it to a number from 0 to 1"), "rank out of range");
	clear_env();
	setenv("SWINGCOLL_ROOT", "fd00::1:29400", 1);
	ok(fails(-EINVAL, "HOST:PORT"), "root: IPv6 without brackets");
	setenv("SWINGCOLL_ROOT", "a:0", 1);
	ok(fails(-EINVAL, "HOST:PORT"), "root: port 0");
	setenv("SWINGCOLL_ROOT", "a:1x", 1);
	ok(fails(-EINVAL, "HOST:PORT"), "root: port is not a number");
	clear_env();
	setenv("SWINGCOLL_SECRET", "short", 1);
	ok(fails(-EINVAL, "less than 16 characters"), "a secret that is too short");
	clear_env();
}

/* A port that is free now, and not in the range of ports that outgoing connections get. */
static int free_port(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	for (int port = 10000 + getpid() % 20000; port < 32768; port++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		bool taken;

		sa.sin_port = htons((uint16_t)port);
		taken = fd < 0 || bind(fd, (void *)&sa, sizeof(sa));
		close(fd);
		if (!taken)
			return port;
	}
	exit(2);
}

static void use_root(const char *host, int port, int nranks, int timeout_s)
{
	char root[64];

	clear_env();
	snprintf(root, sizeof(root), "%s:%d", host, port);
	setenv("SWINGCOLL_ROOT", root, 1);
	set_number("SWINGCOLL_NRANKS", nranks);
	set_number("SWINGCOLL_BOOT_TIMEOUT", timeout_s);
}

/* Exchange data of several sizes, and check all of it. */
static int exchange(struct swingcoll_bootstrap *boot)
{
	static const size_t sizes[] = { 1, 8, 700, 100000 };
	int bad = 0;

	for (size_t s = 0; !bad && s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		size_t n = sizes[s];
		char *mine = malloc(n), *all = malloc(n * (size_t)boot->nranks);

		memset(mine, 'a' + boot->rank, n);
		bad = boot->allgather(boot->arg, mine, all, n);
		for (size_t i = 0; !bad && i < n * (size_t)boot->nranks; i++)
			bad = all[i] != (char)('a' + (int)(i / n));
		free(mine);
		free(all);
	}
	return bad;
}

static int connected[2]; /* a pipe: a rank writes when rank 0 has accepted it */

/* Report that rank 0 has accepted this rank, for await_connected(). */
static int report_and_exchange(struct swingcoll_bootstrap *boot)
{
	if (write(connected[1], "", 1) != 1)
		return -EIO;
	return exchange(boot);
}

static bool await_connected(void)
{
	struct pollfd p = { .fd = connected[0], .events = POLLIN };
	char c;

	return poll(&p, 1, 60000) == 1 && read(connected[0], &c, 1) == 1;
}

static int first_closed = STDERR_FILENO + 1; /* ranks close the standard files from this on */

static rlim_t more_files = RLIM_INFINITY; /* ranks may open so many more */

static void limit_files(void)
{
	int next = dup(0);
	struct rlimit l = { (rlim_t)next + more_files, (rlim_t)next + more_files };

	close(next);
	if (more_files != RLIM_INFINITY && setrlimit(RLIMIT_NOFILE, &l))
		_exit(1);
}

static void close_standard(void)
{
	for (int fd = first_closed; fd <= STDERR_FILENO; fd++)
		close(fd);
}

/* What the program prints must not get into a connection. */
static int print_and_exchange(struct swingcoll_bootstrap *boot)
{
	for (int fd = first_closed; fd <= STDERR_FILENO; fd++)
		if (write(fd, "text", 4) >= 0)
			return -EBADFD;
	return exchange(boot);
}

/* Start a rank that runs @then and expects an error (0: none) with @word in its text. */
static pid_t start(int rank, int error, const char *word, int (*then)(struct swingcoll_bootstrap *))
{
	struct swingcoll_bootstrap *boot;
	pid_t pid = fork();
	int ret;

	if (pid)
		return pid;
	alarm(60);
	limit_files();
	close_standard();
	set_number("SWINGCOLL_RANK", rank);
	ret = swingcoll_bootstrap_env(&boot);
	if (!ret && then) {
		ret = then(boot);
		if (!error || ret >= 0)
			swingcoll_bootstrap_free(boot);
	}
	if (ret != error || (error && !strstr(swingcoll_bootstrap_error(), word))) {
		printf("# rank %d: %d, \"%s\"; expected %d, \"%s\"\n", rank, ret,
		       swingcoll_bootstrap_error(), error, word ? word : "");
		fflush(stdout);
		_exit(1);
	}
	_exit(0);
}

static bool succeeded(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool all_succeeded(int n)
{
	bool good = true;

	while (n--)
		good &= succeeded(-1);
	return good;
}

static int connect_to(int port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)port) };
	const struct timespec pause = { .tv_nsec = 10000000 };
	int fd = -1;

	for (int i = 0; i < 500; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (!connect(fd, (void *)&sa, sizeof(sa)))
			return fd;
		close(fd);
		nanosleep(&pause, NULL);
	}
	return -1;
}

/* Has the other end closed the connection without sending anything? */
static bool closed(int fd)
{
	char c;
	ssize_t n = recv(fd, &c, 1, 0);

	close(fd);
	return n <= 0;
}

static void test_tcp(void)
{
	int port = free_port(), fd[3];
	bool good;

	use_root("127.0.0.1", port, RANKS, 20);
	/* Rank 0 last, so that the others must try again. */
	for (int i = RANKS; i-- > 0;)
		start(i, 0, NULL, exchange);
	ok(all_succeeded(RANKS), "8 ranks exchange data; rank 0 starts last");

	use_root("localhost", port, 3, 20);
	for (int i = 0; i < 3; i++)
		start(i, 0, NULL, exchange);
	ok(all_succeeded(3), "root by name, on a port that was just used");

	use_root("[::1]", port, 3, 20);
	for (int i = 0; i < 3; i++)
		start(i, 0, NULL, exchange);
	ok(all_succeeded(3), "root by IPv6");

	use_root("127.0.0.1", port, RANKS, 20);
	start(0, 0, NULL, exchange);
	for (int i = 0; i < 3; i++)
		fd[i] = connect_to(port);
	good = write(fd[0], "GET / HTTP/1.0\r\n\r\n", 18) == 18;
	good &= write(fd[1], "swc", 3) == 3; /* part of a greeting */
	for (int i = 1; i < RANKS; i++)
		start(i, 0, NULL, exchange);
	good &= closed(fd[0]);
	ok(all_succeeded(RANKS) && good,
	   "a foreign connection is closed; silent ones delay no rank");
	good = closed(fd[1]) && closed(fd[2]);
	ok(good, "silent connections are closed when all ranks are connected");
}

static int leave(struct swingcoll_bootstrap *boot)
{
	(void)boot;
	return 0;
}

static bool stop;

static void *stop_when_connected(void *arg)
{
	(void)arg;
	if (await_connected())
		__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	return NULL;
}

/* Rank 0, which another thread tells to give up when rank 1 has come. */
static pid_t start_stopped(void)
{
	struct swingcoll_bootstrap *boot;
	struct swc_boot_env env;
	pthread_t thread;
	pid_t pid = fork();
	int ret;

	if (pid)
		return pid;
	alarm(60);
	set_number("SWINGCOLL_RANK", 0);
	ret = swc_boot_env_read(&env);
	env.stop = &stop;
	if (!ret)
		ret = pthread_create(&thread, NULL, stop_when_connected, NULL);
	if (!ret)
		ret = swc_boot_tcp(&boot, &env);
	pthread_join(thread, NULL);
	_exit(ret != -ECANCELED);
}

static void test_tcp_errors(void)
{
	int port = free_port();
	bool good;

	use_root("127.0.0.1", port, 3, 10);
	start(0, 0, NULL, exchange);
	start(1, 0, NULL, report_and_exchange);
	good = await_connected();
	good &= succeeded(
		start(1, -EEXIST, "rank 1 is connected already, from 127.0.0.1", exchange));
	start(2, 0, NULL, exchange);
	ok(all_succeeded(3) && good, "a second rank 1 is rejected, and the others succeed");

	use_root("127.0.0.1", port, 3, 10);
	start(0, 0, NULL, exchange);
	start(1, 0, NULL, exchange);
	setenv("SWINGCOLL_JOB", "other", 1);
	good = succeeded(start(2, -EPROTO, "another job", exchange));
	unsetenv("SWINGCOLL_JOB");
	set_number("SWINGCOLL_NRANKS", 4);
	good &= succeeded(start(2, -EPROTO, "one of 4 ranks, rank 0 as one of 3", exchange));
	set_number("SWINGCOLL_NRANKS", 3);
	start(2, 0, NULL, exchange);
	ok(all_succeeded(3) && good, "ranks of another job or another size are rejected");

	use_root("127.0.0.1", port, 4, 4);
	start(0, -ETIMEDOUT, "2 of 4 ranks did not connect to 127.0.0.1", exchange);
	start(2, -ETIMEDOUT, "rank 1, 3", exchange);
	ok(all_succeeded(2), "missing ranks: the error on all ranks names them");

	use_root("127.0.0.1", port, 3, 40);
	start_stopped();
	start(1, -ECANCELED, "its communicator has failed", report_and_exchange);
	ok(all_succeeded(2), "rank 0 gives up: the error on ranks that have come says so");

	use_root("127.0.0.1", port, 4, 1);
	start(2, -ETIMEDOUT, "no rank 0 at 127.0.0.1", exchange);
	ok(all_succeeded(1), "no rank 0: an error that names its address");

	use_root("127.0.0.1", port, 3, 10);
	start(0, -ECONNRESET, "rank 2 (127.0.0.1) has closed", exchange);
	start(1, -ECONNRESET, "rank 2 (127.0.0.1) has closed", exchange);
	start(2, 0, NULL, leave);
	ok(all_succeeded(3), "a rank that leaves: the error on all ranks names it");

	use_root("127.0.0.1", port, 3, 10);
	start(0, 0, NULL, leave);
	start(1, -ECONNRESET, "rank 0", exchange);
	start(2, -ECONNRESET, "rank 0", exchange);
	ok(all_succeeded(3), "rank 0 leaves: an error on all ranks");
}

static int end_early(struct swingcoll_bootstrap *boot)
{
	(void)boot;
	_exit(0);
}

/* Rank 1 connects while rank 0 is stopped, and resets the connection once it has greeted. */
static bool greet_and_reset(pid_t root, int port, uint32_t nranks)
{
	const struct greeting g = { .magic = SWC_SOCKET_MAGIC,
				    .rank = 1,
				    .nranks = nranks,
				    .job = swc_hash_text(SWC_HASH_START, "") };
	const struct linger reset = { .l_onoff = 1 };
	int fd = connect_to(port), status;
	bool good = !kill(root, SIGSTOP) && waitpid(root, &status, WUNTRACED) == root &&
		    WIFSTOPPED(status);

	good &= write(fd, &g, sizeof(g)) == sizeof(g);
	good &= !setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	return !kill(root, SIGCONT) && good;
}

static void test_tcp_reset(void)
{
	int port = free_port();
	pid_t root;
	bool good;

	use_root("127.0.0.1", port, 2, 10);
	root = start(0, 0, NULL, exchange);
	good = greet_and_reset(root, port, 2);
	start(1, 0, NULL, exchange);
	ok(all_succeeded(2) && good, "a connection that is reset when its rank is accepted");

	use_root("127.0.0.1", port, 3, 10);
	root = start(0, 0, NULL, exchange);
	good = succeeded(start(1, 0, NULL, end_early));
	good &= greet_and_reset(root, port, 3);
	start(2, 0, NULL, report_and_exchange);
	good &= await_connected();
	start(1, 0, NULL, exchange);
	ok(all_succeeded(3) && good, "the same of a rank that was connected before");
}

/* Rank 0 of a program that raises its limit of open files further than the bootstrap has. */
static pid_t start_raising(void)
{
	struct rlimit l, now = { 0 };
	struct swingcoll_bootstrap *boot;
	pid_t pid = fork();

	if (pid)
		return pid;
	alarm(60);
	set_number("SWINGCOLL_RANK", 0);
	if (getrlimit(RLIMIT_NOFILE, &l))
		_exit(1);
	l.rlim_cur = 100;
	if (setrlimit(RLIMIT_NOFILE, &l) || swingcoll_bootstrap_env(&boot) || exchange(boot) ||
	    getrlimit(RLIMIT_NOFILE, &now) || now.rlim_cur <= 100)
		_exit(1);
	l.rlim_cur = now.rlim_cur + 1;
	if (setrlimit(RLIMIT_NOFILE, &l))
		_exit(1);
	swingcoll_bootstrap_free(boot);
	_exit(getrlimit(RLIMIT_NOFILE, &now) || now.rlim_cur != l.rlim_cur);
}

/* Rank 0 may open files for listening and three connections. */
static void test_tcp_files(void)
{
	int port = free_port(), fd;
	bool good = true;

	use_root("127.0.0.1", port, 4, 8);
	more_files = 4;
	start(0, 0, NULL, exchange);
	more_files = RLIM_INFINITY;
	fd = connect_to(port);
	for (int i = 1; i < 4; i++)
		start(i, 0, NULL, exchange);
	good = all_succeeded(4);
	ok(closed(fd) && good, "a silent connection gives way to a rank if there are no files");

	use_root("127.0.0.1", port, 5, 8);
	more_files = 4;
	start(0, -EMFILE, "the last 1 of 5 ranks", exchange);
	more_files = RLIM_INFINITY;
	for (int i = 1; i < 4; i++)
		start(i, -EMFILE, "raise ulimit -n", report_and_exchange);
	for (int i = 1; i < 4; i++)
		good &= await_connected();
	fd = connect_to(port);
	good &= all_succeeded(4);
	close(fd);
	ok(good, "no files for all ranks: the error says so on all that have connected");

	use_root("127.0.0.1", port, 2, 20);
	start_raising();
	start(1, 0, NULL, exchange);
	ok(all_succeeded(2), "the limit of open files that the program sets meanwhile stays");
}

static void test_tcp_again(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int port = free_port(), fd, peer, one = 1;
	bool good;

	use_root("127.0.0.1", port, 3, 10);
	start(0, 0, NULL, exchange);
	good = succeeded(start(1, 0, NULL, end_early));
	start(1, 0, NULL, report_and_exchange);
	good &= await_connected();
	start(2, 0, NULL, exchange);
	ok(all_succeeded(3) && good, "a rank that has ended is accepted again");

	use_root("127.0.0.1", port, 3, 10);
	sa.sin_port = htons((uint16_t)port);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	good = !bind(fd, (void *)&sa, sizeof(sa)) && !listen(fd, 1);
	start(1, -EPROTO, "is not rank 0", exchange);
	peer = accept(fd, NULL, NULL);
	good &= write(peer, "SSH-2.0-OpenSSH_9.2p1\r\n", 23) == 23;
	good &= all_succeeded(1);
	start(0, -EADDRINUSE, "cannot listen at 127.0.0.1", exchange);
	good &= all_succeeded(1);
	ok(good, "another program listens at the root's port");
	close(peer);
	close(fd);
}

#define SECRET "a secret of the tests"
#define OTHER "a secret of somebody else"

static int connect_only(struct swingcoll_bootstrap *boot)
{
	(void)boot;
	return swingcoll_bootstrap_fail(-EIO, "accepted");
}

static void test_secret(void)
{
	int port = free_port();
	bool good;

	use_root("127.0.0.1", port, RANKS, 20);
	setenv("SWINGCOLL_SECRET", SECRET, 1);
	for (int i = RANKS; i-- > 0;)
		start(i, 0, NULL, exchange);
	ok(all_succeeded(RANKS), "8 ranks with the same secret exchange data");

	use_root("127.0.0.1", port, 3, 20);
	setenv("SWINGCOLL_SECRET", SECRET, 1);
	start(0, 0, NULL, exchange);
	start(1, 0, NULL, exchange);
	setenv("SWINGCOLL_SECRET", OTHER, 1);
	good = succeeded(start(2, -EACCES, "rank 2: rank 0 at 127.0.0.1", connect_only));
	good &= succeeded(start(2, -EACCES, "another secret", connect_only));
	unsetenv("SWINGCOLL_SECRET");
	good &= succeeded(start(2, -EACCES, "has a secret, rank 2 has none", connect_only));
	setenv("SWINGCOLL_SECRET", SECRET, 1);
	setenv("SWINGCOLL_JOB", "other", 1);
	good &= succeeded(start(2, -EPROTO, "another job", connect_only));
	unsetenv("SWINGCOLL_JOB");
	start(2, 0, NULL, exchange);
	ok(all_succeeded(3) && good, "ranks with another secret, or none, are not accepted");

	use_root("127.0.0.1", port, 2, 20);
	start(0, 0, NULL, exchange);
	setenv("SWINGCOLL_SECRET", SECRET, 1);
	good = succeeded(start(1, -EACCES, "has no secret, rank 1 has one", connect_only));
	unsetenv("SWINGCOLL_SECRET");
	start(1, 0, NULL, exchange);
	ok(all_succeeded(2) && good, "a rank with a secret does not trust a rank 0 without one");

	use_root("127.0.0.1", port, 2, 4);
	setenv("SWINGCOLL_SECRET", SECRET, 1);
	start(0, -ETIMEDOUT, "rank 1; rank 1 at 127.0.0.1 does not know the secret", exchange);
	setenv("SWINGCOLL_SECRET", OTHER, 1);
	start(1, -EACCES, "another secret", connect_only);
	ok(all_succeeded(2), "the error of rank 0 says who does not know the secret");

	/* Rank 0 prints that rank 1 does not know the secret, at once. */
	for (first_closed = STDERR_FILENO; first_closed >= 0; first_closed -= STDERR_FILENO) {
		use_root("127.0.0.1", port, 2, 20);
		setenv("SWINGCOLL_SECRET", SECRET, 1);
		start(0, 0, NULL, print_and_exchange);
		setenv("SWINGCOLL_SECRET", OTHER, 1);
		good = succeeded(start(1, -EACCES, "another secret", connect_only));
		setenv("SWINGCOLL_SECRET", SECRET, 1);
		start(1, 0, NULL, print_and_exchange);
		ok(all_succeeded(2) && good,
		   first_closed ? "standard error is closed: no connection takes its place"
				: "all standard files are closed");
	}
	first_closed = STDERR_FILENO + 1;
}

/* A message of rank 0: the error in its header, and up to @bytes of what follows. */
static int receive(int fd, void *data, size_t bytes)
{
	struct {
		char magic[8];
		int32_t error;
		uint32_t bytes;
	} h;

	if (recv(fd, &h, sizeof(h), MSG_WAITALL) != sizeof(h) || h.bytes > bytes ||
	    recv(fd, data, h.bytes, MSG_WAITALL) != (ssize_t)h.bytes)
		return 1;
	return h.error;
}

/* What somebody who has recorded the connection of rank 1 can do: send the same again. */
static void test_replay(void)
{
	struct {
		char magic[8];
		uint32_t rank, nranks;
		uint64_t job;
		uint32_t has_secret, resv;
		uint8_t nonce[16];
	} greeting = { .magic = "swcboot4",
		       .rank = 1,
		       .nranks = 2,
		       .job = swc_hash_text(SWC_HASH_START, ""),
		       .has_secret = 1 };
	struct swc_secret secret;
	uint8_t both[sizeof(greeting) + 16], challenge[2][32], proof[16];
	char text[256], why[256];
	int port = free_port(), fd, ret[2];

	use_root("127.0.0.1", port, 2, 20);
	setenv("SWINGCOLL_SECRET", SECRET, 1);
	start(0, 0, NULL, exchange);
	fd = connect_to(port);
	/* The first time it is rank 1 itself, which knows the secret, but then leaves. */
	ret[0] = write(fd, &greeting, sizeof(greeting)) == sizeof(greeting)
			 ? receive(fd, challenge[0], sizeof(challenge[0]))
			 : 1;
	swc_secret_read(&secret, why, sizeof(why));
	memcpy(both, &greeting, sizeof(greeting));
	memcpy(both + sizeof(greeting), challenge[0], 16);
	swc_secret_mac(&secret, "rank", both, sizeof(both), proof);
	close(fd);
	fd = connect_to(port);
	if (write(fd, &greeting, sizeof(greeting)) != sizeof(greeting) ||
	    receive(fd, challenge[1], sizeof(challenge[1])) ||
	    write(fd, proof, sizeof(proof)) != sizeof(proof))
		ret[0] = 1;
	memset(text, 0, sizeof(text));
	ret[1] = receive(fd, text, sizeof(text) - 1);
	close(fd);
	start(1, 0, NULL, exchange);
	ok(all_succeeded(2) && !ret[0] && ret[1] == -EACCES &&
		   memcmp(challenge[0], challenge[1], 32) != 0,
	   "a proof that was recorded is not accepted again");
}

/* Without the device, creation fails on all ranks with the same text. */
static int create(struct swingcoll_bootstrap *boot)
{
	struct swingcoll_comm *comm;
	int ret;

	if (!access(SWC_DEVICE_PATH, F_OK))
		return swingcoll_bootstrap_fail(-EINVAL, "topology ring");
	ret = swingcoll_comm_create_from(&comm, boot, NULL);
	if (ret == -ENODEV && strstr(swingcoll_bootstrap_error(), "rank 0 ("))
		swingcoll_bootstrap_fail(ret, "as expected");
	return ret;
}

static int create_with_wrong_topo(struct swingcoll_bootstrap *boot)
{
	struct swingcoll_comm_opts opts = { .topo = boot->rank ? NULL : "rang:4" };
	struct swingcoll_comm *comm;

	return swingcoll_comm_create_from(&comm, boot, &opts);
}

static void test_create(void)
{
	int port = free_port();

	if (access(SWC_DEVICE_PATH, F_OK)) {
		use_root("127.0.0.1", port, 3, 10);
		for (int i = 0; i < 3; i++)
			start(i, -ENODEV, "as expected", create);
		ok(all_succeeded(3), "no device: the error on all ranks names rank 0");
	}
	use_root("127.0.0.1", port, 3, 10);
	for (int i = 0; i < 3; i++)
		start(i, -EINVAL, "begin with ring:N", create_with_wrong_topo);
	ok(all_succeeded(3), "wrong options on one rank: all ranks fail with the same reason");
}

int main(void)
{
	printf("TAP version 13\n");
	if (pipe(connected))
		return 1;
	test_env();
	test_launcher();
	test_tcp();
	test_tcp_errors();
	test_tcp_again();
	test_tcp_files();
	test_tcp_reset();
	test_secret();
	test_replay();
	test_create();
	return done();
}

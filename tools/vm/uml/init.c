// SPDX-License-Identifier: GPL-2.0-only
/*
 * The first process inside User-Mode Linux, built and started by uml/run: lays a tmpfs over the host's
 * files, loads modules, runs the job under a time limit, unloads, asks kmemleak and powers off.
 * Answers to the host are files in BOX/share, a writable hostfs mount. C and static, because starting
 * a program takes 0.1 s in there, and a script would start forty.
 *
 * The kernel's command line passes as environment: SWC_BOX (folder of this run), SWC_TIMEOUT (seconds),
 * SWC_MERGED (stderr goes where stdout goes), SWC_LEAKS (ask kmemleak), SWC_OUT (folder for /out).
 * BOX/modules has one line for each module: file, blank, parameters. BOX/job is a bash script.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KMEMLEAK "/sys/kernel/debug/kmemleak"

static char box[256];
static char loaded[16][64];
static int n_loaded;

static void power_off(void)
{
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/* fmt and what follows become a path; the result lives until the second next call */
static char *path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *path(const char *fmt, ...)
{
	static char names[2][1024];
	static int turn;
	char *name = names[turn ^= 1];
	va_list args;

	va_start(args, fmt);
	vsnprintf(name, sizeof(names[0]), fmt, args);
	va_end(args);
	return name;
}

static int put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND, 0644);
	int failed = fd < 0 || write(fd, text, strlen(text)) < 0;

	if (fd >= 0)
		close(fd);
	return failed ? -1 : 0;
}

static void give_up(const char *what, const char *which)
{
	char line[1280];

	snprintf(line, sizeof(line), "uml: inside the guest: %s %s: %s\n", what, which,
		 strerror(errno));
	put("/dev/kmsg", line);
	put(path("%s/share/err", box), line);
	power_off();
}

static void attach(const char *type, const char *dir, const char *options)
{
	mkdir(dir, 0755);
	if (mount(type, dir, type, 0, options))
		give_up("cannot mount", dir);
}

static void lay_out_files(void)
{
	char options[1024], *root = path("%s/new/root", box);
	const char *out = getenv("SWC_OUT");
	char dir[1024];

	snprintf(dir, sizeof(dir), "%s/new", box);
	attach("tmpfs", dir, "mode=755");
	mkdir(path("%s/new/upper", box), 0755);
	mkdir(path("%s/new/work", box), 0755);
	snprintf(dir, sizeof(dir), "%s/new/root", box);
	snprintf(options, sizeof(options), "lowerdir=/,upperdir=%s/new/upper,workdir=%s/new/work",
		 box, box);
	attach("overlay", dir, options);
	root = dir;
	attach("hostfs", path("%s%s/share", root, box), path("%s/share", box));
	attach("proc", path("%s/proc", root), NULL);
	attach("sysfs", path("%s/sys", root), NULL);
	attach("devtmpfs", path("%s/dev", root), "mode=755");
	attach("tmpfs", path("%s/dev/shm", root), "mode=1777");
	attach("devpts", path("%s/dev/pts", root), "mode=620,ptmxmode=666");
	attach("debugfs", path("%s/sys/kernel/debug", root), NULL);
	attach("tracefs", path("%s/sys/kernel/tracing", root), NULL);
	attach("cgroup2", path("%s/sys/fs/cgroup", root), NULL);
	if (out)
		attach("hostfs", path("%s/out", root), out);
	mkdir(path("%s%s/old", root, box), 0755);
	if (chdir(root) || syscall(SYS_pivot_root, ".", path(".%s/old", box)) || chdir("/"))
		give_up("cannot change the root to", root);
	umount2(path("%s/old", box), MNT_DETACH);
	if (symlink("/proc/self/fd", "/dev/fd") || symlink("fd/0", "/dev/stdin") ||
	    symlink("fd/1", "/dev/stdout") || symlink("fd/2", "/dev/stderr"))
		give_up("cannot fill", "/dev");
}

static void load_modules(void)
{
	FILE *list = fopen(path("%s/modules", box), "r");
	char line[2048], *params, *name, *p;

	while (list && n_loaded < 16 && fgets(line, sizeof(line), list)) {
		int fd;

		line[strcspn(line, "\n")] = '\0';
		params = strchr(line, ' ');
		if (params)
			*params++ = '\0';
		fd = open(line, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || syscall(SYS_finit_module, fd, params ? params : "", 0))
			give_up("cannot load (the kernel log has more)", line);
		close(fd);
		name = strrchr(line, '/') + 1;
		snprintf(loaded[n_loaded], sizeof(loaded[0]), "%.*s", (int)strcspn(name, "."),
			 name);
		for (p = loaded[n_loaded++]; *p; p++)
			if (*p == '-')
				*p = '_';
	}
	if (list)
		fclose(list);
}

static pid_t start_job(void)
{
	static char *const argv[] = { "bash", NULL, NULL };
	const char *err = getenv("SWC_MERGED") ? "out" : "err";
	pid_t pid = fork();
	sigset_t none;
	char *args[3];

	if (pid)
		return pid;
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	close(0);
	close(1);
	close(2);
	if (open("/dev/null", O_RDONLY) != 0 ||
	    open(path("%s/share/out", box), O_WRONLY | O_APPEND) != 1 ||
	    open(path("%s/share/%s", box, err), O_WRONLY | O_APPEND) != 2)
		_exit(125);
	memcpy(args, argv, sizeof(args));
	args[1] = path("%s/job", box);
	execv("/bin/bash", args);
	_exit(125);
}

/* Returns the exit status as a shell would, or -1 if the time is up. */
static int wait_for(pid_t job, time_t seconds)
{
	struct timespec now, end, left;
	sigset_t child;
	int status;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	for (;;) {
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid == job)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		if (pid > 0)
			continue;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec >= end.tv_sec)
			return -1;
		left = (struct timespec){ .tv_sec = end.tv_sec - now.tv_sec };
		sigtimedwait(&child, NULL, &left);
	}
}

/* Returns whether kmemleak knows of leaks; they are then in share/leaks. */
static int scan(void)
{
	char text[4096];
	ssize_t n;
	int in, any = 0;

	usleep(300000);
	/* an object must look unreferenced twice to be reported */
	put(KMEMLEAK, "scan");
	put(KMEMLEAK, "scan");
	in = open(KMEMLEAK, O_RDONLY);
	while (in >= 0 && (n = read(in, text, sizeof(text) - 1)) > 0) {
		text[n] = '\0';
		put(path("%s/share/leaks", box), text);
		any = 1;
	}
	if (in >= 0)
		close(in);
	return any;
}

static void unload_modules(void)
{
	while (n_loaded--) {
		char line[160];
		int tries = 0;

		while (syscall(SYS_delete_module, loaded[n_loaded], O_NONBLOCK) &&
		       errno != ENOENT) {
			if (++tries == 50) {
				snprintf(
					line, sizeof(line),
					"testbed: BUG: %s is still in use after every process has ended",
					loaded[n_loaded]);
				put("/dev/kmsg", line);
				break;
			}
			usleep(100000);
		}
	}
}

int main(void)
{
	int leaks = getenv("SWC_LEAKS") != NULL, n, status;
	char line[64];
	sigset_t child;

	snprintf(box, sizeof(box), "%s", getenv("SWC_BOX"));
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	lay_out_files();
	if (sethostname("node0", 5))
		give_up("cannot set", "the host name");
	load_modules();

	status = wait_for(start_job(), atol(getenv("SWC_TIMEOUT")));
	if (status < 0) {
		put("/dev/kmsg", "testbed: time is up; blocked tasks and held locks:");
		put("/proc/sysrq-trigger", "w");
		put("/proc/sysrq-trigger", "d");
		put(path("%s/share/status", box), "timeout\n");
		power_off();
	}
	/* what the job left running, by pid 1 to everybody else */
	kill(-1, SIGKILL);
	do
		n = waitpid(-1, NULL, 0);
	while (n > 0);

	/* once with the modules, for readable stack traces, once without, for what only they pointed to */
	n = n_loaded;
	leaks = leaks && !scan();
	unload_modules();
	if (leaks && n > 0)
		scan();
	snprintf(line, sizeof(line), "exit %d\n", status);
	put(path("%s/share/status", box), line);
	power_off();
}

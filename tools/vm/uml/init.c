// SPDX-License-Identifier: GPL-2.0-only
/*
 * The first process inside User-Mode Linux, built and started by uml/run: puts a tmpfs over the host's
 * files, sets up a network with an RDMA device, loads modules, runs the job under a time limit, unloads the
 * modules, runs kmemleak and powers off. Results for the host are files in BOX/share, a writable hostfs mount.
 * In C and static, because starting a program takes 0.1 s in there, and a script would start forty.
 *
 * The kernel passes its command line as environment: SWC_BOX (folder of this run), SWC_TIMEOUT (seconds),
 * SWC_MERGED (stderr goes to stdout), SWC_LEAKS (run kmemleak), SWC_OUT (folder for /out).
 * BOX/modules has one line for each module: file, blank, parameters. BOX/job is a bash script.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rdma/rdma_netlink.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KMEMLEAK "/sys/kernel/debug/kmemleak"

static char box[256];
static char loaded[16][64];
static int n_loaded;
static time_t end_at; /* when the time is up */

static void power_off(void)
{
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/* Formats a path. The result is valid until the second call after this one. */
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

/* ------ network: 10.0.0.1 and fd00::1 on dummy0, with rxe0; the module's tests use these addresses */

static int interface(int fd, const char *name, const char *addr)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct ifreq req = { .ifr_mtu = 9000 }; /* so that rxe needs few packets */

	strcpy(req.ifr_name, name);
	if (ioctl(fd, SIOCSIFMTU, &req))
		return -1;
	memcpy(&in.sin_addr, addr, sizeof(in.sin_addr));
	memcpy(&req.ifr_addr, &in, sizeof(in));
	if (ioctl(fd, SIOCSIFADDR, &req))
		return -1;
	req.ifr_flags = IFF_UP | IFF_RUNNING;
	return ioctl(fd, SIOCSIFFLAGS, &req);
}

/* As in <linux/ipv6.h>, which conflicts with <netinet/in.h>. */
struct ifreq6 {
	struct in6_addr addr;
	unsigned int prefix;
	int index;
};

static int add_ipv6(const char *name)
{
	struct ifreq6 req = { .addr = { { { 0xfd, [15] = 1 } } }, .prefix = 64 };
	int ret, fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	req.index = (int)if_nametoindex(name);
	ret = ioctl(fd, SIOCSIFADDR, &req);
	close(fd);
	return ret;
}

static char *add_attr(char *at, unsigned short type, const char *text)
{
	struct nlattr a = { .nla_len = (unsigned short)(NLA_HDRLEN + strlen(text) + 1),
			    .nla_type = type };

	memcpy(at, &a, sizeof(a));
	strcpy(at + NLA_HDRLEN, text);
	return at + NLA_ALIGN(a.nla_len);
}

/* Like `rdma link add rxe0 type rxe netdev dummy0`. */
static int add_rxe(void)
{
	char text[256] = { 0 }, *end = text + NLMSG_HDRLEN;
	struct nlmsghdr h = { .nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK),
			      .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	struct nlmsgerr ack;

	if (fd < 0)
		return -1;
	end = add_attr(end, RDMA_NLDEV_ATTR_DEV_NAME, "rxe0");
	end = add_attr(end, RDMA_NLDEV_ATTR_LINK_TYPE, "rxe");
	end = add_attr(end, RDMA_NLDEV_ATTR_NDEV_NAME, "dummy0");
	h.nlmsg_len = (unsigned int)(end - text);
	memcpy(text, &h, sizeof(h));
	if (send(fd, text, h.nlmsg_len, 0) < 0 ||
	    recv(fd, text, sizeof(text), 0) < (ssize_t)(NLMSG_HDRLEN + sizeof(ack)))
		return -1;
	close(fd);
	memcpy(&ack, text + NLMSG_HDRLEN, sizeof(ack));
	errno = -ack.error;
	return ack.error ? -1 : 0;
}

static void make_network(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || interface(fd, "lo", "\x7f\0\0\1") || interface(fd, "dummy0", "\x0a\0\0\1") ||
	    add_ipv6("dummy0"))
		give_up("cannot bring up", "dummy0");
	close(fd);
	if (add_rxe())
		give_up("cannot make", "rxe0");
}

/* ------ */

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

static void time_is_up(void)
{
	put("/dev/kmsg", "testbed: time is up; blocked tasks and held locks:");
	put("/proc/sysrq-trigger", "w");
	put("/proc/sysrq-trigger", "d");
	put(path("%s/share/status", box), "timeout\n");
	power_off();
}

/* Returns the exit status as a shell does; does not return if the time is up. */
static int wait_for(pid_t job)
{
	struct timespec now, left;
	sigset_t child;
	int status;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid == job)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		if (pid > 0)
			continue;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec >= end_at)
			time_is_up();
		left = (struct timespec){ .tv_sec = end_at - now.tv_sec };
		sigtimedwait(&child, NULL, &left);
	}
}

/* Loads in a process of its own, since the module's tests run then, and may hang. Returns an errno. */
static int load(const char *file, const char *params)
{
	pid_t pid = fork();
	int fd;

	if (!pid) {
		fd = open(file, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || syscall(SYS_finit_module, fd, params, 0))
			_exit(errno);
		_exit(0);
	}
	return pid < 0 ? errno : wait_for(pid);
}

static void load_modules(void)
{
	FILE *list = fopen(path("%s/modules", box), "r");
	char line[2048], *params, *name, *p;

	while (list && n_loaded < 16 && fgets(line, sizeof(line), list)) {
		line[strcspn(line, "\n")] = '\0';
		params = strchr(line, ' ');
		if (params)
			*params++ = '\0';
		errno = load(line, params ? params : "");
		if (errno)
			give_up("cannot load (the kernel log has more)", line);
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

/* Returns whether kmemleak has found leaks; they are then in share/leaks. */
static int scan(void)
{
	char text[4096];
	ssize_t n;
	int in, any = 0;

	usleep(300000);
	/* kmemleak reports an object only if two scans find it unreferenced */
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
	struct timespec now;
	char line[64];
	sigset_t child;

	snprintf(box, sizeof(box), "%s", getenv("SWC_BOX"));
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	lay_out_files();
	if (sethostname("node0", 5))
		give_up("cannot set", "the host name");
	make_network();
	clock_gettime(CLOCK_MONOTONIC, &now);
	end_at = now.tv_sec + atol(getenv("SWC_TIMEOUT"));
	load_modules();

	status = wait_for(start_job());
	/* end all processes that the job has left */
	kill(-1, SIGKILL);
	do
		n = waitpid(-1, NULL, 0);
	while (n > 0);

	/* scan with the modules, for readable stack traces, and without, for objects that only they point to */
	n = n_loaded;
	leaks = leaks && !scan();
	unload_modules();
	if (leaks && n > 0)
		scan();
	snprintf(line, sizeof(line), "exit %d\n", status);
	put(path("%s/share/status", box), line);
	power_off();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * A context ends with its process, whoever else holds the file or the address space: the other members get an error,
 * and its memory is released.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testlib.h"

#define DEADLINE_MS (2 * TESTLIB_EVENT_MS) /* not to be reached */
#define REGION (4ul << 20)
#define SENDERS 8

static uint8_t id[SWC_ID_BYTES];
static uint32_t small[1000];
static char stack[64 << 10];

/* Shared by all processes. */
static struct shared {
	pid_t holder;	    /* 0: not yet */
	int holder_ret;	    /* of its call */
	pid_t survivor;	    /* once it waits, or is about to */
	unsigned int ready; /* counts both */
	unsigned int done;
} * shared;

/* What shares something with the victim, and lives on. */
enum holder {
	NOBODY,
	FORKED,
	VFORKED,
	SHARES_MM,
	SHARES_ALL,
};

enum end {
	KILL,
	EXEC,
	EXEC_CLOSES,
	CLOSE,
};

static const struct job {
	const char *name;
	enum holder holder;
	enum end end;
	const char *
		how; /* exec: newer kernels close descriptors before they change the address space */
} jobs[] = {
	{ "killed, a child has the descriptor", FORKED, KILL, "was killed by signal 9" },
	{ "killed, a child of vfork lives", VFORKED, KILL, "was killed by signal 9" },
	{ "killed, a child shares the memory", SHARES_MM, KILL, "was killed by signal 9" },
	{ "killed, a child shares memory and descriptors", SHARES_ALL, KILL,
	  "was killed by signal 9" },
	{ "exec that keeps the descriptor", NOBODY, EXEC, "has executed another program" },
	{ "exec, a child has the descriptor", FORKED, EXEC_CLOSES, "has " },
	{ "exec, a child shares the memory", SHARES_MM, EXEC_CLOSES, "has " },
	{ "closes, but keeps a mapping", NOBODY, CLOSE, "has closed the device" },
	{ "closes, a child has the descriptor", FORKED, CLOSE, "has closed the device" },
	{ "closes, a child shares the memory", SHARES_MM, CLOSE, "has closed the device" },
};

static struct testlib_rank r;

/* In the child. Calls are for the process that opened the device. */
static int hold(void *arg)
{
	struct swc_info info;

	(void)arg;
	alarm(TESTLIB_HANG_MS / 1000);
	shared->holder_ret = testlib_ioctl(r.c.fd, SWC_IOC_INFO, &info);
	shared->holder = getpid();
	testlib_count(&shared->ready);
	for (;;)
		pause();
	return 0;
}

static void *vfork_thread(void *arg)
{
	if (!vfork())
		hold(arg);
	return NULL;
}

static int make_holder(enum holder holder)
{
	int flags = SIGCHLD | CLONE_VM | (holder == SHARES_ALL ? CLONE_FILES : 0);
	pthread_t thread;
	pid_t pid;

	switch (holder) {
	case NOBODY:
		testlib_count(&shared->ready);
		return 0;
	case FORKED:
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			hold(NULL);
		break;
	case VFORKED:
		CHECK_EQ(pthread_create(&thread, NULL, vfork_thread, NULL), 0);
		break;
	default:
		CHECK(clone(hold, stack + sizeof(stack), flags, NULL) >= 0);
	}
	return 0;
}

static int victim(const struct job *j)
{
	struct swc_mem_reg m = { .bytes = REGION };
	void *at = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	m.addr = (uintptr_t)at;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &m), 0);
	CHECK_EQ(make_holder(j->holder), 0);
	CHECK(testlib_wait_count(&shared->ready, 2));
	CHECK(testlib_wait_asleep(shared->survivor));
	if (j->holder) {
		CHECK_EQ(shared->holder_ret, -EPERM);
		CHECK(testlib_wait_asleep(shared->holder));
	}
	switch (j->end) {
	case KILL:
		kill(getpid(), SIGKILL);
		break;
	case EXEC:
		CHECK_EQ(fcntl(r.c.fd, F_SETFD, 0), 0);
		/* fallthrough */
	case EXEC_CLOSES:
		execl("/bin/sleep", "sleep", "600", NULL);
		return 1;
	case CLOSE:
		CHECK_EQ(close(r.c.fd), 0);
	}
	for (;;)
		pause();
}

static int member(uint32_t rank, void *arg)
{
	const struct job *j = arg;
	struct swc_completion c;
	struct swc_comm_error e;
	struct swc_desc d;

	CHECK_EQ(testlib_rank_open(&r, id, 2, rank, DEADLINE_MS), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 100), 0);
	if (rank)
		return victim(j);
	d = testlib_allreduce_desc(&r, small, small, 1000, SWC_U32);
	CHECK_EQ(testlib_submit(r.c.fd, &d), 0);
	shared->survivor = getpid();
	testlib_count(&shared->ready);
	CHECK_EQ(testlib_ring_next(&r.c, &c, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(c.res, -ECONNRESET);
	CHECK_EQ(c.culprit, 1);
	CHECK_EQ(testlib_comm_error(r.c.fd, r.comm, &e), 0);
	if (!strstr(e.text, "rank 1") || !strstr(e.text, j->how)) {
		ksft_print_msg("the error is \"%s\"\n", e.text);
		return 1;
	}
	return 0;
}

static int run(const struct job *j)
{
	pid_t pid[2], victim;
	int bad;

	memset(shared, 0, sizeof(*shared));
	testlib_new_id(id);
	testlib_fork_ranks(pid, 2, member, (void *)j);
	victim = pid[1];
	bad = testlib_wait_ranks(pid, 1);
	/* All memory is released, while the context is open still. */
	bad |= testlib_wait_released(1);
	kill(victim, SIGKILL);
	waitpid(victim, NULL, 0);
	if (shared->holder)
		kill(shared->holder, SIGKILL);
	return bad | testlib_wait_released(0);
}

/* ------------------------------------------------------------------ several descriptors of the owner */

static int go_on(void)
{
	CHECK_EQ(testlib_check_allreduce(&r, 100), 0);
	return 0;
}

/* A thread with descriptors of its own, which it closes. */
static void *own_table(void *arg)
{
	int *ret = arg;

	*ret = unshare(CLONE_FILES) || close(r.c.fd);
	return NULL;
}

static int some_closed(uint32_t rank, void *arg)
{
	struct swc_completion c;
	pthread_t thread;
	int first, ret;

	(void)arg;
	CHECK_EQ(testlib_rank_open(&r, id, 2, rank, DEADLINE_MS), 0);
	CHECK_EQ(go_on(), 0);
	if (!rank) {
		struct swc_desc d = testlib_allreduce_desc(&r, small, small, 1000, SWC_U32);

		CHECK_EQ(go_on(), 0);
		CHECK_EQ(go_on(), 0);
		CHECK_EQ(go_on(), 0);
		CHECK_EQ(testlib_submit(r.c.fd, &d), 0);
		shared->survivor = getpid();
		testlib_count(&shared->ready);
		CHECK_EQ(testlib_ring_next(&r.c, &c, TESTLIB_EVENT_MS), 0);
		CHECK_EQ(c.res, -ECONNRESET);
		testlib_count(&shared->done);
		return 0;
	}
	CHECK_EQ(make_holder(FORKED), 0);
	/* One of two. */
	first = r.c.fd;
	r.c.fd = dup(first);
	CHECK(r.c.fd >= 0);
	CHECK_EQ(close(first), 0);
	CHECK_EQ(go_on(), 0);
	/* The one in another table. */
	CHECK_EQ(pthread_create(&thread, NULL, own_table, &ret), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(ret, 0);
	CHECK_EQ(go_on(), 0);
	/* By dup2() from itself. */
	CHECK_EQ(dup2(r.c.fd, first), first);
	CHECK_EQ(dup2(first, r.c.fd), r.c.fd);
	CHECK_EQ(close(first), 0);
	CHECK_EQ(go_on(), 0);
	CHECK(testlib_wait_count(&shared->ready, 2));
	CHECK(testlib_wait_asleep(shared->survivor));
	CHECK_EQ(close(r.c.fd), 0);
	CHECK(testlib_wait_count(&shared->done, 1));
	return 0;
}

static int run_some_closed(void)
{
	int bad;

	memset(shared, 0, sizeof(*shared));
	testlib_new_id(id);
	bad = testlib_run_ranks(2, some_closed, NULL);
	if (shared->holder)
		kill(shared->holder, SIGKILL);
	return bad | testlib_wait_released(0);
}

/* ------------------------------------------------------------------ descriptors in messages */

static int send_fd(int socket, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(socket, &m, 0) == 1 ? 0 : -errno;
}

static int receive_fd(int socket)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	int fd;

	if (recvmsg(socket, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		return -EBADMSG;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* Pin memory in several ways, send the descriptor, and die. */
static int sender(uint32_t rank, void *arg)
{
	struct swc_mem_reg m = { .bytes = REGION };
	void *at = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)rank;
	CHECK(at != MAP_FAILED);
	testlib_single_rank(&r, id);
	CHECK_EQ(testlib_check_allreduce(&r, 100), 0);
	m.addr = (uintptr_t)at;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &m), 0);
	CHECK_EQ(send_fd(*(int *)arg, r.c.fd), 0);
	return 0;
}

static int collected(void *arg)
{
	struct swc_info info;
	int s[2], fd;

	(void)arg;
	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
	CHECK_EQ(testlib_run_ranks(SENDERS, sender, &s[0]), 0);
	CHECK_EQ(testlib_wait_released(SENDERS), 0);
	fd = receive_fd(s[1]);
	CHECK(fd >= 0);
	CHECK_EQ(testlib_ioctl(fd, SWC_IOC_INFO, &info), -EPERM);
	close(fd);
	close(s[0]);
	close(s[1]);
	return testlib_wait_released(0);
}

/* The owner closes its descriptor while a message has it: the context it gets back has ended. */
static int comes_back(void *arg)
{
	struct pollfd state = { .events = POLLIN };
	struct swc_info info;
	int s[2];

	(void)arg;
	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, s), 0);
	testlib_single_rank(&r, id);
	CHECK_EQ(send_fd(s[0], r.c.fd), 0);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_INFO, &info), 0);
	CHECK_EQ(close(r.c.fd), 0);
	r.c.fd = receive_fd(s[1]);
	CHECK(r.c.fd >= 0);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_INFO, &info), -EBADF);
	state.fd = r.c.fd;
	CHECK_EQ(poll(&state, 1, 0), 1);
	CHECK((state.revents & (POLLERR | POLLHUP)) == (POLLERR | POLLHUP));
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, r.c.fd, SWC_MMAP_RING) == MAP_FAILED);
	CHECK_EQ(errno, EBADF);
	return 0;
}

int main(void)
{
	ksft_print_header();
	testlib_require_device();
	ksft_set_plan(ARRAY_SIZE(jobs) + 3);
	shared = testlib_shared_alloc(sizeof(*shared));
	for (unsigned int i = 0; i < ARRAY_SIZE(jobs); i++)
		ksft_test_result(!run(&jobs[i]), "%s", jobs[i].name);
	ksft_test_result(!run_some_closed(),
			 "the owner closes some of its descriptors, then the last one");
	ksft_test_result(!testlib_run_child(collected, NULL),
			 "descriptors of dead processes hold no memory");
	ksft_test_result(!testlib_run_child(comes_back, NULL),
			 "a context whose descriptor was closed has ended");
	ksft_finished();
}

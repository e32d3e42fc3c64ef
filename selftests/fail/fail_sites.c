// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every place of the module that calls what can fail for want of memory fails, one after the other: the allocations that
 * its call makes, and faults of user memory. First the first time, then always. Meanwhile two ranks run all kinds of
 * calls on one node, and over the network, both ends of which are this machine. They succeed with the right results or
 * get one of few errors, and end; nothing is left behind. Counts the places that were reached.
 *
 *	fail_sites FILE		places: an offset in the module's text, a space, and what it is, in each line
 *
 * tools/vm/fault-sites makes the file, and runs this on the User-Mode-Linux kernel, whose clock jumps while all sleep.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testlib.h"

#define N 2
#define SMALL 1000
#define LARGE 300000 /* elements: the receiver's memory is written */
#define PARTITIONS 3
#define DEADLINE_MS 4000
#define ADDRESS "10.0.0.1" /* of the machine's RDMA device */
#define MANY 1000000000
#define NOBODY 65534
#define CLEAN 42 /* exit status of a rank that got an error that it may get */

static const char *const kinds[] = { "failslab", "fail_page_alloc", "fail_usercopy" };

/* How the ranks are connected. */
enum way {
	LOCAL,
	RDMA,
	TCP,
	WAYS
};
static const char *const way_name[] = { "one node", "RDMA", "TCP" };

static uint8_t id[SWC_ID_BYTES];
static struct swc_info info;

/* ------------------------------------------------------------------ fault injection */

static int put(const char *kind, const char *knob, const char *text)
{
	char path[128];
	int fd, ret = 0;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", kind, knob);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		ret = -errno;
	if (fd >= 0)
		close(fd);
	return ret;
}

static int put_number(const char *knob, uint64_t value)
{
	char text[32];
	int ret = 0;

	snprintf(text, sizeof(text), "%" PRIu64, value);
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds) && !ret; i++)
		ret = put(kinds[i], knob, text);
	return ret;
}

static long failures_left(const char *kind)
{
	char path[128], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/times", kind);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	close(fd);
	return atol(text);
}

static int prepare(void)
{
	int ret = put_number("probability", 0);

	ret = ret ?: put_number("interval", 1);
	ret = ret ?: put_number("verbose", 0);
	ret = ret ?: put_number("stacktrace-depth", 32);
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		put(kinds[i], "task-filter", "N");
		put(kinds[i], "ignore-gfp-wait", "N");
		put(kinds[i], "ignore-gfp-highmem", "N");
	}
	put("fail_page_alloc", "min-order", "0");
	return ret;
}

/* Let what the call does that returns to @address fail so many times, of each kind. */
static int arm(uint64_t address, long times)
{
	int ret;

	ret = put_number("require-start", address);
	ret = ret ?: put_number("require-end", address + 1);
	ret = ret ?: put_number("times", times);
	return ret ?: put_number("probability", 100);
}

/* Failures that there were. */
static long disarm(long times)
{
	long n = 0;

	put_number("probability", 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++)
		n += times - failures_left(kinds[i]);
	return n;
}

/* ------------------------------------------------------------------ ranks */

static bool is_clean(int error)
{
	switch (error) {
	case -ENOMEM:
	case -EFAULT:
	case -ECANCELED:
	case -ECONNRESET:
	case -ECONNABORTED:
	case -ETIMEDOUT:
	case -EIO:
	/* What the kernel's sockets say for want of memory, when one is made or bound. */
	case -ENFILE:
	case -EADDRINUSE:
		return true;
	}
	return false;
}

/* Give up after an error; a rank closes all by its end. */
#define TRY(what)                                                                                  \
	do {                                                                                       \
		int try_ = (what);                                                                 \
		if (is_clean(try_))                                                                \
			return CLEAN;                                                              \
		if (try_) {                                                                        \
			ksft_print_msg("%s:%d: %s is %d\n", __FILE__, __LINE__, #what, try_);      \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static int create(struct testlib_rank *r, enum way way, uint32_t rank)
{
	uint32_t rank_node[N] = { 0, 1 };
	struct swc_node_path path = { .node = !rank,
				      .transport = way == TCP ? SWC_TRANSPORT_TCP
							      : SWC_TRANSPORT_RDMA };
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct swc_comm_create c = {
		.nranks = N, .rank = rank, .timeout_ms = DEADLINE_MS, .slot_bytes = 4096
	};
	int ret;

	memcpy(c.id, id, sizeof(id));
	if (way != LOCAL) {
		inet_pton(AF_INET, ADDRESS, &addr.sin_addr);
		memcpy(path.local, &addr, sizeof(addr));
		addr.sin_port = htons(way == TCP ? info.tcp_port : info.rdma_port);
		memcpy(path.remote, &addr, sizeof(addr));
		c.nnodes = N;
		c.rank_node = (uintptr_t)rank_node;
		c.paths = (uintptr_t)&path;
		c.npaths = 1;
	}
	ret = testlib_ioctl(r->c.fd, SWC_IOC_COMM_CREATE, &c);
	r->comm = c.comm;
	r->nranks = N;
	r->rank = rank;
	return ret;
}

static int install(struct testlib_rank *r, void (*make)(struct testlib_plan *, uint32_t, uint32_t))
{
	struct testlib_plan p;

	make(&p, N, r->rank);
	return testlib_plan_install(r->c.fd, r->comm, &p, &r->plan);
}

static int by_uring(struct testlib_rank *r)
{
	static uint32_t buf[SMALL];
	struct swc_desc d = testlib_allreduce_desc(r, buf, buf, SMALL, SWC_U32);
	struct io_uring ring;
	int ret = testlib_uring_init(&ring, 8, TESTLIB_URING_BIG);

	for (uint32_t i = 0; i < SMALL; i++)
		buf[i] = i + r->rank;
	if (!ret && !testlib_uring_prep(&ring, r->c.fd, &d, 1))
		ret = -EBADMSG;
	if (!ret && io_uring_submit(&ring) != 1)
		ret = -EBADMSG;
	ret = ret ?: testlib_uring_wait(&ring, NULL, NULL, TESTLIB_EVENT_MS);
	for (uint32_t i = 0; i < SMALL && !ret; i++)
		ret = buf[i] == 2 * i + 1 ? 0 : -EBADMSG;
	io_uring_queue_exit(&ring);
	return ret;
}

static int by_partitions(struct testlib_rank *r)
{
	static uint32_t send[PARTITIONS * SMALL], recv[PARTITIONS * SMALL];
	struct swc_partitioned_init init = {
		.desc = testlib_allreduce_desc(r, send, recv, SMALL, SWC_U32),
		.partitions = PARTITIONS,
		.send_stride = SMALL * 4,
		.recv_stride = SMALL * 4,
	};
	struct swc_partitioned_ref ref = { 0 }, all = { .partition = SWC_ALL_PARTITIONS,
							.timeout_ms = TESTLIB_EVENT_MS };
	struct swc_progress *p;
	uint32_t *queue;
	int ret;

	for (uint32_t i = 0; i < PARTITIONS * SMALL; i++)
		send[i] = i + r->rank;
	ret = testlib_ioctl(r->c.fd, SWC_IOC_PARTITIONED_INIT, &init);
	if (ret)
		return ret;
	ref.handle = all.handle = init.handle;
	p = mmap(NULL, init.map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->c.fd,
		 SWC_MMAP_PROGRESS(ref.handle));
	if (p == MAP_FAILED)
		return -errno;
	ret = testlib_ioctl(r->c.fd, SWC_IOC_PARTITIONED_START, &ref);
	if (ret)
		return ret;
	queue = (uint32_t *)((char *)p + p->queue);
	for (uint32_t i = 0; i < PARTITIONS; i++)
		__atomic_store_n(&queue[p->tail++ & (p->entries - 1)], i + 1, __ATOMIC_RELEASE);
	ret = testlib_ioctl(r->c.fd, SWC_IOC_PARTITIONED_KICK, &ref);
	ret = ret ?: testlib_ioctl(r->c.fd, SWC_IOC_PARTITIONED_WAIT, &all);
	for (uint32_t i = 0; i < PARTITIONS * SMALL && !ret; i++)
		ret = recv[i] == 2 * i + 1 ? 0 : -EBADMSG;
	return ret ?: testlib_ioctl(r->c.fd, SWC_IOC_PARTITIONED_FREE, &ref);
}

/* The ranks differ. Between nodes that ends the communicator. */
static int mismatch(struct testlib_rank *r)
{
	static uint32_t buf[SMALL + 1];
	struct swc_desc d = testlib_allreduce_desc(r, buf, buf, SMALL + r->rank, SWC_U32);
	int ret = testlib_submit_wait(&r->c, &d, NULL);

	return ret == -EPROTO ? 0 : ret ?: -EBADMSG;
}

static int look(struct testlib_rank *r)
{
	struct swc_member_info members[N];
	struct swc_comm_query q = { .max_members = N, .members = (uintptr_t)members };
	struct swc_trace_record records[8];
	struct swc_trace_query t = { .comm = r->comm,
				     .max_records = 8,
				     .records = (uintptr_t)records };
	struct swc_user_query u = { 0 };
	struct swc_comm_error e = { .comm = r->comm };
	struct swc_info i;
	uint64_t v[SWC_STAT_NR];
	struct swc_stats s = { .max = SWC_STAT_NR, .values = (uintptr_t)v };
	int ret;

	ret = testlib_ioctl(r->c.fd, SWC_IOC_COMM_QUERY, &q);
	ret = ret ?: testlib_ioctl(r->c.fd, SWC_IOC_TRACE, &t);
	ret = ret ?: testlib_ioctl(r->c.fd, SWC_IOC_USER_QUERY, &u);
	ret = ret ?: testlib_ioctl(r->c.fd, SWC_IOC_COMM_ERROR, &e);
	ret = ret ?: testlib_ioctl(r->c.fd, SWC_IOC_STATS, &s);
	return ret ?: testlib_ioctl(r->c.fd, SWC_IOC_INFO, &i);
}

static int memory(struct testlib_rank *r)
{
	static char buf[1 << 16];
	struct swc_mem_reg m = { .addr = (uintptr_t)buf, .bytes = sizeof(buf) };
	struct swc_mem_unreg un = { 0 };
	void *slots;
	int ret = testlib_ioctl(r->c.fd, SWC_IOC_MEM_REG, &m);

	un.region = m.region;
	ret = ret ?: testlib_ioctl(r->c.fd, SWC_IOC_MEM_UNREG, &un);
	slots = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r->c.fd,
		     SWC_MMAP_SLOTS(r->comm));
	return ret ?: slots == MAP_FAILED ? -errno : 0;
}

static int member(uint32_t rank, void *arg)
{
	enum way way = *(enum way *)arg;
	struct testlib_rank r = { 0 };

	/* Another user than the one who looks at the counters: the account goes with the ranks. */
	CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
	TRY(testlib_open(&r.c));
	TRY(create(&r, way, rank));
	TRY(memory(&r));
	TRY(look(&r));
	if (way == LOCAL) {
		TRY(install(&r, testlib_plan_direct));
		TRY(testlib_check_allreduce(&r, SMALL));
		TRY(testlib_check_allreduce(&r, LARGE));
	}
	TRY(install(&r, testlib_plan_ring));
	TRY(testlib_check_allreduce(&r, SMALL));
	TRY(testlib_check_allreduce(&r, LARGE));
	TRY(by_uring(&r));
	TRY(by_partitions(&r));
	TRY(mismatch(&r));
	TRY(look(&r));
	TRY(testlib_comm_leave(r.c.fd, r.comm));
	testlib_close(&r.c);
	return 0;
}

/* ------------------------------------------------------------------ one place */

struct place {
	uint64_t offset;
	char name[128];
	long failures;
};

/* Nothing is charged to the ranks' user any more, so its communicators and listeners are gone, too. */
static bool nothing_charged(void)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;
	int fd = open(SWC_DEVICE_PATH, O_RDWR | O_CLOEXEC), ret;
	struct swc_user_query q;

	do {
		testlib_sleep_ms(1);
		q = (struct swc_user_query){ .cursor = NOBODY };
		ret = testlib_ioctl(fd, SWC_IOC_USER_QUERY, &q);
	} while (!ret && q.uid == NOBODY && testlib_now_ms() < limit);
	close(fd);
	if (!ret && q.uid == NOBODY)
		ksft_print_msg("something is still charged\n");
	return ret == -ENOENT || (!ret && q.uid != NOBODY);
}

/* All that the ranks do, while the place fails so many times. False if something is wrong. */
static bool run(struct place *p, uint64_t text, enum way way, long times)
{
	pid_t pid[N];
	bool good = true;
	long failed = 0;

	testlib_new_id(id);
	if (p && arm(text + p->offset, times))
		return false;
	testlib_fork_ranks(pid, N, member, &way);
	for (int i = 0; i < N; i++) {
		int status = testlib_wait_child(&pid[i]);

		good &= !status || (p && status == CLEAN);
	}
	if (p)
		failed = disarm(times);
	if (p)
		p->failures += failed;
	good &= !testlib_wait_released(0) && nothing_charged();
	if (!good)
		ksft_print_msg("%s, %ld failures: %s\n", way_name[way], failed,
			       p ? p->name : "without failures");
	return good;
}

static int read_places(const char *path, struct place **places)
{
	FILE *f = fopen(path, "re");
	char line[256];
	int n = 0;

	*places = NULL;
	while (f && fgets(line, sizeof(line), f)) {
		struct place p = { 0 };

		if (sscanf(line, "%" SCNx64 " %127[^\n]", &p.offset, p.name) != 2)
			continue;
		*places = realloc(*places, (n + 1) * sizeof(p));
		(*places)[n++] = p;
	}
	if (f)
		fclose(f);
	return n;
}

static void tell(const char *line)
{
	FILE *f = fopen("/dev/kmsg", "we");

	if (f) {
		fputs(line, f);
		fclose(f);
	}
}

static uint64_t text_of_module(void)
{
	FILE *f = fopen("/sys/module/swingcoll/sections/.text", "re");
	uint64_t text = 0;

	if (f) {
		if (fscanf(f, "%" SCNx64, &text) != 1)
			text = 0;
		fclose(f);
	}
	return text;
}

int main(int argc, char **argv)
{
	uint64_t text = text_of_module();
	unsigned int reached = 0, bad = 0;
	struct place *places;
	long failures = 0;
	int n;

	ksft_print_header();
	testlib_require_device();
	testlib_require_root();
	if (argc != 2)
		ksft_exit_skip("usage: fail_sites FILE; tools/vm/fault-sites makes it\n");
	if (!text || prepare())
		ksft_exit_skip("this kernel injects no failures by their place\n");
	n = read_places(argv[1], &places);
	info = testlib_info();
	if (chmod(SWC_DEVICE_PATH, 0666))
		ksft_exit_fail_msg("%s: %s\n", SWC_DEVICE_PATH, strerror(errno));
	ksft_set_plan(WAYS + 1);
	for (enum way way = 0; way < WAYS; way++)
		ksft_test_result(run(NULL, 0, way, 0), "%s: works without failures", way_name[way]);
	/* For those who read the kernel's log. */
	tell("swingcoll test: allocations fail from now on\n");
	for (int i = 0; i < n; i++) {
		for (enum way way = 0; way < WAYS; way++) {
			long before = places[i].failures;

			bad += !run(&places[i], text, way, 1);
			/* Only if it is on the way. */
			if (places[i].failures > before)
				bad += !run(&places[i], text, way, MANY);
		}
		reached += !!places[i].failures;
		failures += places[i].failures;
		if (!places[i].failures)
			ksft_print_msg("not reached: %s\n", places[i].name);
	}
	tell("swingcoll test: no allocation fails any more\n");
	ksft_print_msg("%d places that can fail, %u reached, %ld failures\n", n, reached, failures);
	ksft_test_result(n && !bad, "every failure ends well");
	ksft_finished();
}

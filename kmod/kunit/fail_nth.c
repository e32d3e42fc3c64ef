// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program for the User-Mode-Linux test kernel: makes every call of the device fail at its first, second,
 * ... chance (slab, page allocation, copy from or to user), until it succeeds without. A call that failed
 * must have done nothing, and work when it is repeated, or, where buffers could not be pinned, have told all
 * ranks so; the guest's checkers look for what leaked. tools/vm/kunit runs it behind the suites. Alone:
 *
 *	tools/vm/uml/run --append kunit.enable=0 --module build/modules/uml/src/swingcoll.ko -- \
 *		build/modules/uml/nth_fail
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/swingcoll.h>

#define RANKS	2
#define COUNT	20000
#define MOST	400

struct rank {
	int fd;
	__u32 comm, plan;
	__u64 *send, *recv;
	struct swc_ring_header *ring;
	struct swc_ring_user *user;
};

static struct rank ranks[RANKS];
static unsigned char id[SWC_ID_BYTES];
static int fail_fd, tests, failed, joined[RANKS];

static void put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0) {
		printf("Bail out! %s: %s\n", file, strerror(errno));
		exit(1);
	}
	close(fd);
}

static void result(int good, const char *name, int rounds)
{
	printf("%sok %d - %s, %d places\n", good ? "" : "not ", ++tests, name, rounds);
	failed += !good;
}

static void arm(int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", n);
	/* What is still armed may hit this call. */
	while (pwrite(fail_fd, text, strlen(text), 0) < 0)
		if (errno != EFAULT && errno != ENOMEM)
			abort();
}

/* Whether the failure that was armed has happened. Reading may be what fails: then it has not, before. */
static int happened(void)
{
	char text[16] = "";
	ssize_t got = pread(fail_fd, text, sizeof(text) - 1, 0);
	int yes = got > 0 && atoi(text) == 0;

	arm(0);
	return yes;
}

/*
 * Repeats call() with the n-th chance failing. It returns 0 or a negative errno; what it did it undoes
 * itself, unarmed. A call may also succeed in spite of a failure.
 */
static void sweep(const char *name, int (*call)(int n))
{
	int n, ret, hit, good = 1, refused = 0;

	for (n = 1; n < MOST; n++) {
		ret = call(n);
		hit = ret >> 16;
		ret = (short)ret;
		if (ret) {
			refused++;
			if (!hit || (ret != -ENOMEM && ret != -EFAULT && ret != -EINTR)) {
				printf("# %s: place %d (%s): %s\n", name, n, hit ? "failed" : "not reached",
				       strerror(-ret));
				good = 0;
			}
		}
		if (!hit)
			break;
	}
	printf("# %s: refused %d times of %d\n", name, refused, n - 1);
	result(good && n < MOST && refused, name, n - 1);
}

/* The armed part of a call: its result, and in the upper half whether the failure happened. */
#define ARMED(n, expr) ({							\
	int ret_, hit_;								\
	arm(n);									\
	ret_ = (expr) < 0 ? -errno : 0;						\
	hit_ = happened();							\
	(int)((unsigned int)hit_ << 16 | (unsigned short)ret_);		\
})

/* The same, when something else has gone wrong. */
#define FAILED(ret, err)	(((ret) & ~0xffff) | (unsigned short)(err))

static int try_open(int n)
{
	int fd = -1, ret = ARMED(n, fd = open(SWC_DEVICE_PATH, O_RDWR));

	if (fd >= 0)
		close(fd);
	return ret;
}

static int try_join(int n)
{
	struct swc_comm_join join = { .nranks = 1, .slot_bytes = 4096 };
	struct swc_comm_ref ref = { 0 };
	int ret;

	memset(join.id, 0x11, sizeof(join.id));
	ret = ARMED(n, ioctl(ranks[0].fd, SWC_IOC_COMM_JOIN, &join));
	if (!(short)ret) {
		ref.comm = join.comm;
		if (ioctl(ranks[0].fd, SWC_IOC_COMM_LEAVE, &ref))
			return FAILED(ret, -EIO);
	}
	return ret;
}

/* Copy to scratch memory, wait for all, reduce all scratch memories. */
static void *make_plan(int rank, __u32 *bytes)
{
	static struct {
		struct swc_plan_header h;
		struct swc_plan_channel c;
		struct swc_plan_step s[3];
		struct swc_plan_xfer x[2 + RANKS + 1];
	} p;
	/* Without the padding at the end. */
	const __u32 plan_bytes = offsetof(typeof(p), x) + sizeof(p.x);
	int i;

	memset(&p, 0, sizeof(p));
	p.h = (struct swc_plan_header) {
		.magic = SWC_PLAN_MAGIC, .version = SWC_PLAN_VERSION, .header_bytes = sizeof(p.h),
		.total_bytes = plan_bytes, .nranks = RANKS, .rank = rank, .nparts = 1, .part_blocks = 1,
		.nsteps = 3, .nxfers = 3 + RANKS, .nchannels = 1, .family = 7, .name = "staged",
		.window = { { 0, 1 }, { 0, 1 }, { 0, 1 } },
	};
	p.c.nsteps = 3;
	p.s[0] = (struct swc_plan_step) { .kind = SWC_STEP_LOCAL, .nsend = 1, .nrecv = 1 };
	p.s[1] = (struct swc_plan_step) { .kind = SWC_STEP_SYNC, .first_xfer = 2 };
	p.s[2] = (struct swc_plan_step) {
		.kind = SWC_STEP_LOCAL, .nsend = RANKS, .nrecv = 1, .first_xfer = 2,
	};
	p.x[0] = (struct swc_plan_xfer) { .rank = rank, .nblocks = 1, .buf = SWC_BUF_SEND };
	p.x[1] = (struct swc_plan_xfer) { .rank = rank, .nblocks = 1, .buf = SWC_BUF_SCRATCH };
	for (i = 0; i < RANKS; i++)
		p.x[2 + i] = (struct swc_plan_xfer) { .rank = i, .nblocks = 1, .buf = SWC_BUF_SCRATCH };
	p.x[2 + RANKS] = (struct swc_plan_xfer) {
		.rank = rank, .nblocks = 1, .buf = SWC_BUF_RECV, .flags = SWC_XFER_FINAL,
	};
	*bytes = plan_bytes;
	return &p;
}

static int try_plan(int n)
{
	struct swc_plan_load load = { .comm = ranks[0].comm };
	struct swc_plan_unload unload;
	int ret;

	load.data = (uintptr_t)make_plan(0, &load.bytes);
	ret = ARMED(n, ioctl(ranks[0].fd, SWC_IOC_PLAN_LOAD, &load));
	if (!(short)ret) {
		unload = (struct swc_plan_unload) { load.comm, load.plan };
		if (ioctl(ranks[0].fd, SWC_IOC_PLAN_UNLOAD, &unload))
			return FAILED(ret, -EIO);
	}
	return ret;
}

static int try_reg(int n)
{
	struct swc_mem_reg reg = { .addr = (uintptr_t)ranks[0].send + 8, .bytes = 100000 };
	struct swc_mem_unreg unreg = { 0 };
	int ret = ARMED(n, ioctl(ranks[0].fd, SWC_IOC_MEM_REG, &reg));

	if (!(short)ret) {
		unreg.region = reg.region;
		if (ioctl(ranks[0].fd, SWC_IOC_MEM_UNREG, &unreg))
			return FAILED(ret, -EIO);
	}
	return ret;
}

static int submit(int r)
{
	struct swc_desc d = {
		.comm = ranks[r].comm, .plan = ranks[r].plan, .send = (uintptr_t)ranks[r].send,
		.recv = (uintptr_t)ranks[r].recv, .count = COUNT, .coll = SWC_ALLREDUCE, .dtype = SWC_U64,
		.flags = SWC_OP_WAITING,
	};

	return ioctl(ranks[r].fd, SWC_IOC_SUBMIT, &d);
}

/* Fresh memory: nothing of it is registered. */
static __u64 *fresh(__u64 *old, __u64 value)
{
	__u64 *p;
	int i;

	if (old)
		munmap(old, COUNT * 8);
	p = mmap(NULL, COUNT * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		abort();
	for (i = 0; i < COUNT; i++)
		p[i] = value + i;
	return p;
}

static int completion_of(int r)
{
	const struct swc_completion *e = (const void *)((char *)ranks[r].ring + SWC_RING_ENTRIES_OFFSET);
	struct swc_ring_wait wait = { .tail = ranks[r].user->head, .timeout_ms = 20000 };
	int res;

	if (ioctl(ranks[r].fd, SWC_IOC_RING_WAIT, &wait))
		return -errno;
	res = e[ranks[r].user->head & (ranks[r].ring->entries - 1)].res;
	__atomic_store_n(&ranks[r].user->head, ranks[r].user->head + 1, __ATOMIC_RELEASE);
	return res;
}

/* Both ranks' results are in @res. */
static int complete(int res[RANKS])
{
	int r;

	for (r = 0; r < RANKS; r++)
		res[r] = completion_of(r);
	return res[0] || res[1] ? -EIO : 0;
}

/*
 * Rank @victim's submission fails at one place. Either it has not been made, and is repeated, or its
 * buffers are refused, which both ranks are told; then the next one must be right.
 */
static int try_submit(int n, int victim)
{
	int ret, r, i, err, res[RANKS];

	for (r = 0; r < RANKS; r++) {
		ranks[r].send = fresh(ranks[r].send, 1000 * r);
		ranks[r].recv = fresh(ranks[r].recv, 0);
	}
	if (victim && submit(0))
		return (unsigned short)-EIO;
	ret = ARMED(n, submit(victim));
	if ((short)ret && submit(victim))
		return FAILED(ret, -EIO);
	if (!victim && submit(1))
		return FAILED(ret, -EIO);
	err = complete(res);
	if (!(short)ret && (res[victim] == -ENOMEM || res[victim] == -EFAULT) &&
	    res[!victim] == -ECANCELED) {
		ret = FAILED(ret, res[victim]);
		err = submit(0) || submit(1) ? -EIO : complete(res);
	}
	if (err) {
		printf("# rank %d as victim: results %d and %d\n", victim, res[0], res[1]);
		return FAILED(ret, -EIO);
	}
	for (r = 0; r < RANKS; r++)
		for (i = 0; i < COUNT; i++)
			if (ranks[r].recv[i] != 1000ull + 2 * i)
				return FAILED(ret, -EILSEQ);
	return ret;
}

static int try_submit_first(int n)
{
	return try_submit(n, 0);
}

static int try_submit_last(int n)
{
	return try_submit(n, 1);
}

#define PARTS	3

static int part_init(int r, struct swc_part_ref *ref)
{
	struct swc_part_init init = {
		.desc = {
			.comm = ranks[r].comm, .plan = ranks[r].plan, .send = (uintptr_t)ranks[r].send,
			.recv = (uintptr_t)ranks[r].recv, .count = COUNT / PARTS, .coll = SWC_ALLREDUCE,
			.dtype = SWC_U64,
		},
		.partitions = PARTS, .send_stride = COUNT / PARTS * 8, .recv_stride = COUNT / PARTS * 8,
	};
	int ret = ioctl(ranks[r].fd, SWC_IOC_PART_INIT, &init);

	*ref = (struct swc_part_ref) { .handle = init.handle };
	return ret;
}

static int try_part_init(int n)
{
	struct swc_part_ref ref;
	int ret = ARMED(n, part_init(0, &ref));

	if (!(short)ret && ioctl(ranks[0].fd, SWC_IOC_PART_FREE, &ref))
		return FAILED(ret, -EIO);
	return ret;
}

/* Mark all ready, and wait: 0 or a negative errno. */
static int part_run(int r, struct swc_part_ref ref)
{
	struct swc_progress *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ranks[r].fd,
				      SWC_MMAP_PROGRESS(ref.handle));
	__u32 *queue, i;

	if (p == MAP_FAILED)
		return -errno;
	queue = (void *)((char *)p + p->queue);
	for (i = 0; i < PARTS; i++)
		__atomic_store_n(&queue[p->tail++ & (p->entries - 1)], i + 1, __ATOMIC_RELEASE);
	munmap(p, 4096);
	return ioctl(ranks[r].fd, SWC_IOC_PART_KICK, &ref) ? -errno : 0;
}

static int part_wait(int r, struct swc_part_ref ref)
{
	ref.partition = SWC_ALL_PARTITIONS;
	ref.timeout_ms = 20000;
	return ioctl(ranks[r].fd, SWC_IOC_PART_WAIT, &ref) ? -errno : 0;
}

/* Likewise of a round of partitions: nothing has begun, or the partitions that lack something are told. */
static int try_part_start(int n)
{
	struct swc_part_ref ref[RANKS];
	int ret, r, i, res[RANKS];

	for (r = 0; r < RANKS; r++) {
		ranks[r].send = fresh(ranks[r].send, 1000 * r);
		ranks[r].recv = fresh(ranks[r].recv, 0);
		if (part_init(r, &ref[r]))
			return (unsigned short)-EIO;
	}
	ret = ARMED(n, ioctl(ranks[0].fd, SWC_IOC_PART_START, &ref[0]));
	if ((short)ret && ioctl(ranks[0].fd, SWC_IOC_PART_START, &ref[0]))
		return FAILED(ret, -EIO);
	if (ioctl(ranks[1].fd, SWC_IOC_PART_START, &ref[1]) || part_run(0, ref[0]) || part_run(1, ref[1]))
		return FAILED(ret, -EIO);
	for (r = 0; r < RANKS; r++)
		res[r] = part_wait(r, ref[r]);
	if (!(short)ret && (res[0] == -ENOMEM || res[0] == -EFAULT) && res[1] == -ECANCELED)
		ret = FAILED(ret, res[0]);
	else if (res[0] || res[1])
		ret = FAILED(ret, -EIO);
	for (i = 0; i < COUNT / PARTS * PARTS && !res[0]; i++)
		if (ranks[0].recv[i] != 1000ull + 2 * i || ranks[1].recv[i] != ranks[0].recv[i])
			ret = FAILED(ret, -EILSEQ);
	for (r = 0; r < RANKS; r++)
		if (ioctl(ranks[r].fd, SWC_IOC_PART_FREE, &ref[r]))
			return FAILED(ret, -EIO);
	return ret;
}

static int try_query(int n)
{
	struct swc_member_info members[4];
	struct swc_comm_query q = { .max_members = 4, .members = (uintptr_t)members };

	return ARMED(n, ioctl(ranks[0].fd, SWC_IOC_COMM_QUERY, &q));
}

static int try_mmap(int n)
{
	void *p = MAP_FAILED;
	int ret = ARMED(n, (p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, ranks[0].fd,
				     SWC_MMAP_STATE(ranks[0].comm))) == MAP_FAILED ? -1 : 0);

	if (p != MAP_FAILED)
		munmap(p, 4096);
	return ret;
}

static void *join_thread(void *arg)
{
	struct rank *r = arg;
	struct swc_comm_join join = { .nranks = RANKS, .rank = (__u32)(r - ranks), .timeout_ms = 20000 };

	memcpy(join.id, id, sizeof(id));
	joined[r - ranks] = ioctl(r->fd, SWC_IOC_COMM_JOIN, &join) ? -errno : 1;
	r->comm = join.comm;
	return NULL;
}

static void set_up(void)
{
	pthread_t threads[RANKS];
	struct swc_info info;
	int r;

	memset(id, 0x42, sizeof(id));
	for (r = 0; r < RANKS; r++) {
		ranks[r].fd = open(SWC_DEVICE_PATH, O_RDWR);
		pthread_create(&threads[r], NULL, join_thread, &ranks[r]);
	}
	for (r = 0; r < RANKS; r++)
		pthread_join(threads[r], NULL);
	for (r = 0; r < RANKS; r++) {
		struct swc_plan_load load = { .comm = ranks[r].comm };

		load.data = (uintptr_t)make_plan(r, &load.bytes);
		if (joined[r] != 1 || ioctl(ranks[r].fd, SWC_IOC_PLAN_LOAD, &load) ||
		    ioctl(ranks[r].fd, SWC_IOC_INFO, &info)) {
			printf("Bail out! rank %d: join %d, %s %s\n", r, joined[r], strerror(errno),
			       load.text);
			exit(1);
		}
		ranks[r].plan = load.plan;
		ranks[r].ring = mmap(NULL, SWC_RING_ENTRIES_OFFSET +
				     info.ring_entries * sizeof(struct swc_completion), PROT_READ,
				     MAP_SHARED, ranks[r].fd, SWC_MMAP_RING);
		ranks[r].user = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ranks[r].fd,
				     SWC_MMAP_RING_USER);
		if (ranks[r].ring == MAP_FAILED || ranks[r].user == MAP_FAILED) {
			printf("Bail out! mmap: %s\n", strerror(errno));
			exit(1);
		}
		ranks[r].send = fresh(NULL, 0);
		ranks[r].recv = fresh(NULL, 0);
	}
}

/* Everything that was pinned is given back when the contexts are closed. */
static void balance(void)
{
	__u64 v[SWC_STAT_NR];
	struct swc_stats s = { .max = SWC_STAT_NR, .values = (uintptr_t)v };
	int r, fd;

	for (r = 0; r < RANKS; r++) {
		munmap(ranks[r].ring, SWC_RING_ENTRIES_OFFSET +
		       ranks[r].ring->entries * sizeof(struct swc_completion));
		munmap(ranks[r].user, 4096);
		close(ranks[r].fd);
	}
	fd = open(SWC_DEVICE_PATH, O_RDWR);
	if (fd < 0 || ioctl(fd, SWC_IOC_STATS, &s)) {
		result(0, "balance", 0);
		return;
	}
	printf("# regions pinned %llu, unpinned %llu; pages %llu, %llu; contexts %llu, %llu\n",
	       v[SWC_STAT_REGIONS_PINNED], v[SWC_STAT_REGIONS_UNPINNED], v[SWC_STAT_PAGES_PINNED],
	       v[SWC_STAT_PAGES_UNPINNED], v[SWC_STAT_CONTEXTS_OPENED], v[SWC_STAT_CONTEXTS_CLOSED]);
	result(v[SWC_STAT_REGIONS_PINNED] > 0 &&
	       v[SWC_STAT_REGIONS_PINNED] == v[SWC_STAT_REGIONS_UNPINNED] &&
	       v[SWC_STAT_PAGES_PINNED] == v[SWC_STAT_PAGES_UNPINNED] &&
	       v[SWC_STAT_CONTEXTS_OPENED] == v[SWC_STAT_CONTEXTS_CLOSED] + 1, "balance", 0);
	close(fd);
}

int main(void)
{
	setbuf(stdout, NULL);
	put("/sys/kernel/debug/failslab/ignore-gfp-wait", "N");
	put("/sys/kernel/debug/failslab/verbose", "0");
	put("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N");
	put("/sys/kernel/debug/fail_page_alloc/min-order", "0");
	put("/sys/kernel/debug/fail_page_alloc/verbose", "0");
	put("/sys/kernel/debug/fail_usercopy/verbose", "0");
	fail_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	if (fail_fd < 0) {
		printf("1..0 # SKIP no /proc/thread-self/fail-nth: run under tools/vm/uml/run\n");
		return 4;
	}
	printf("TAP version 13\n");
	set_up();
	sweep("open", try_open);
	sweep("join", try_join);
	sweep("plan load", try_plan);
	sweep("register", try_reg);
	sweep("submit first", try_submit_first);
	sweep("submit last", try_submit_last);
	sweep("partitions", try_part_init);
	sweep("start partitions", try_part_start);
	sweep("query", try_query);
	sweep("mmap", try_mmap);
	balance();
	printf("1..%d\n", tests);
	return failed != 0;
}

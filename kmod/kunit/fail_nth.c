// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program for the User-Mode-Linux test kernel: makes every call of the device fail at its first,
 * second, ... injection point (slab, page allocation, copy from or to user), until it succeeds before the
 * next one. A call that failed must have had no effect and succeed when it is repeated, or, where buffers
 * could not be pinned, must have failed the operation on all ranks. The guest's checkers find leaks.
 * tools/vm/kunit runs it after the suites. Alone:
 *
 *	tools/vm/uml/run --append kunit.enable=0 --module build/modules/uml/src/swingcoll.ko -- \
 *		build/modules/uml/fail_nth
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/swingcoll.h>

#include "plan_write.h"

#define RANKS	2
#define COUNT	20000
#define MAX_POINTS	400
/* Longer than any machine needs, in ms. */
#define HANG	120000

struct rank {
	int fd;
	__u32 comm, plan;
	__u64 *send, *recv;
	struct swc_ring_header *ring;
	struct swc_ring_user *user;
};

static struct rank ranks[RANKS];
static unsigned char id[SWC_ID_BYTES];
static int fail_fd, tests, failed, created[RANKS];

static void put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0) {
		printf("Bail out! %s: %s\n", file, strerror(errno));
		exit(1);
	}
	close(fd);
}

static void result(int good, const char *name, int points)
{
	printf("%sok %d - %s, %d injection points\n", good ? "" : "not ", ++tests, name, points);
	failed += !good;
}

static void arm(int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", n);
	/* A failure that is still armed may hit this call. */
	while (pwrite(fail_fd, text, strlen(text), 0) < 0)
		if (errno != EFAULT && errno != ENOMEM)
			abort();
}

/* Has the armed failure happened? If it hits this read, it has not happened before. */
static int happened(void)
{
	char text[16] = "";
	ssize_t got = pread(fail_fd, text, sizeof(text) - 1, 0);
	int yes = got > 0 && atoi(text) == 0;

	arm(0);
	return yes;
}

/*
 * Repeats call(n), which lets the n-th injection point of one call fail and returns what ARMED() returns.
 * call() undoes the effects of its call itself. A call may succeed in spite of a failure.
 */
static void sweep(const char *name, int (*call)(int n))
{
	int n, ret, hit, good = 1, failures = 0;

	for (n = 1; n < MAX_POINTS; n++) {
		ret = call(n);
		hit = ret >> 16;
		ret = (short)ret;
		if (ret) {
			failures++;
			if (!hit || (ret != -ENOMEM && ret != -EFAULT && ret != -EINTR)) {
				printf("# %s: point %d (%s): %s\n", name, n, hit ? "injected" : "not reached",
				       strerror(-ret));
				good = 0;
			}
		}
		if (!hit)
			break;
	}
	printf("# %s: failed %d times of %d\n", name, failures, n - 1);
	result(good && n < MAX_POINTS && failures, name, n - 1);
}

/* A call with failure @n armed: its result, and in the upper half whether the failure happened. */
#define ARMED(n, expr) ({							\
	int ret_, hit_;								\
	arm(n);									\
	ret_ = (expr) < 0 ? -errno : 0;						\
	hit_ = happened();							\
	(int)((unsigned int)hit_ << 16 | (unsigned short)ret_);		\
})

/* The same, with another error: something else went wrong. */
#define FAILED(ret, err)	(((ret) & ~0xffff) | (unsigned short)(err))

static int try_open(int n)
{
	int fd = -1, ret = ARMED(n, fd = open(SWC_DEVICE_PATH, O_RDWR));

	if (fd >= 0)
		close(fd);
	return ret;
}

static int try_create(int n)
{
	struct swc_comm_create create = { .nranks = 1, .slot_bytes = 4096 };
	struct swc_comm_ref ref = { 0 };
	int ret;

	memset(create.id, 0x11, sizeof(create.id));
	ret = ARMED(n, ioctl(ranks[0].fd, SWC_IOC_COMM_CREATE, &create));
	if (!(short)ret) {
		ref.comm = create.comm;
		if (ioctl(ranks[0].fd, SWC_IOC_COMM_LEAVE, &ref))
			return FAILED(ret, -EIO);
	}
	return ret;
}

#define XFERS	(2 + RANKS + 1)

/* Copy to scratch memory; a barrier; reduce the scratch memory of all ranks. */
static void *make_plan(int rank, __u32 *bytes)
{
	static struct swc_plan_channel channels[1];
	static struct swc_plan_step steps[3];
	static struct swc_plan_xfer xfers[XFERS];
	static __u8 plan[sizeof(struct swc_plan_header) + sizeof(channels) + sizeof(steps) + sizeof(xfers)];
	struct swc_plan_writer w = {
		.channels = channels, .max_channels = 1, .steps = steps, .max_steps = 3,
		.xfers = xfers, .max_xfers = XFERS,
	};
	struct swc_plan_xfer x = { .nblocks = 1 };
	int buf;

	swc_plan_write_begin(&w, SWC_ALLREDUCE, RANKS, rank, 0);
	/* One block, which all buffers hold. */
	w.hdr.shard_blocks = 1;
	for (buf = 0; buf < SWC_BUF_NR; buf++)
		w.hdr.window[buf].nblocks = 1;
	w.hdr.family = 7;
	memcpy(w.hdr.name, "staged", sizeof("staged"));
	swc_plan_write_channel(&w);
	swc_plan_write_step(&w, SWC_STEP_LOCAL);
	x.rank = rank;
	x.buf = SWC_BUF_SEND;
	swc_plan_write_send(&w, &x);
	x.buf = SWC_BUF_SCRATCH;
	swc_plan_write_recv(&w, &x);
	swc_plan_write_step(&w, SWC_STEP_SYNC);
	swc_plan_write_step(&w, SWC_STEP_LOCAL);
	for (x.rank = 0; x.rank < RANKS; x.rank++)
		swc_plan_write_send(&w, &x);
	x.rank = rank;
	x.buf = SWC_BUF_RECV;
	x.flags = SWC_XFER_FINAL;
	swc_plan_write_recv(&w, &x);
	*bytes = swc_plan_write_bytes(&w);
	if (swc_plan_write_pack(&w, plan, sizeof(plan)))
		abort();
	return plan;
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

/* New memory, no page of which is registered. */
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
	struct swc_ring_wait wait = { .tail = ranks[r].user->head, .timeout_ms = HANG };
	int res;

	if (ioctl(ranks[r].fd, SWC_IOC_RING_WAIT, &wait))
		return -errno;
	res = e[ranks[r].user->head & (ranks[r].ring->entries - 1)].res;
	__atomic_store_n(&ranks[r].user->head, ranks[r].user->head + 1, __ATOMIC_RELEASE);
	return res;
}

/* Waits for both ranks; @res gets their results. */
static int complete(int res[RANKS])
{
	int r;

	for (r = 0; r < RANKS; r++)
		res[r] = completion_of(r);
	return res[0] || res[1] ? -EIO : 0;
}

/*
 * The submission of rank @victim fails at point @n. Either it has no effect, and is repeated; or its
 * buffers are refused, the operation fails on both ranks, and the next one must succeed.
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

#define PARTITIONS	3

static int partitioned_init(int r, struct swc_partitioned_ref *ref)
{
	struct swc_partitioned_init init = {
		.desc = {
			.comm = ranks[r].comm, .plan = ranks[r].plan, .send = (uintptr_t)ranks[r].send,
			.recv = (uintptr_t)ranks[r].recv, .count = COUNT / PARTITIONS, .coll = SWC_ALLREDUCE,
			.dtype = SWC_U64,
		},
		.partitions = PARTITIONS,
		.send_stride = COUNT / PARTITIONS * 8, .recv_stride = COUNT / PARTITIONS * 8,
	};
	int ret = ioctl(ranks[r].fd, SWC_IOC_PARTITIONED_INIT, &init);

	*ref = (struct swc_partitioned_ref) { .handle = init.handle };
	return ret;
}

static int try_partitioned_init(int n)
{
	struct swc_partitioned_ref ref;
	int ret = ARMED(n, partitioned_init(0, &ref));

	if (!(short)ret && ioctl(ranks[0].fd, SWC_IOC_PARTITIONED_FREE, &ref))
		return FAILED(ret, -EIO);
	return ret;
}

/* Mark all partitions ready. Return: 0 or a negative errno. */
static int run_partitions(int r, struct swc_partitioned_ref ref)
{
	struct swc_progress *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ranks[r].fd,
				      SWC_MMAP_PROGRESS(ref.handle));
	__u32 *queue, i;

	if (p == MAP_FAILED)
		return -errno;
	queue = (void *)((char *)p + p->queue);
	for (i = 0; i < PARTITIONS; i++)
		__atomic_store_n(&queue[p->tail++ & (p->entries - 1)], i + 1, __ATOMIC_RELEASE);
	munmap(p, 4096);
	return ioctl(ranks[r].fd, SWC_IOC_PARTITIONED_KICK, &ref) ? -errno : 0;
}

static int wait_partitions(int r, struct swc_partitioned_ref ref)
{
	ref.partition = SWC_ALL_PARTITIONS;
	ref.timeout_ms = HANG;
	return ioctl(ranks[r].fd, SWC_IOC_PARTITIONED_WAIT, &ref) ? -errno : 0;
}

/* Likewise for a round of partitions: the call has no effect, or the partitions without buffers fail. */
static int try_partitioned_start(int n)
{
	struct swc_partitioned_ref ref[RANKS];
	int ret, r, i, res[RANKS];

	for (r = 0; r < RANKS; r++) {
		ranks[r].send = fresh(ranks[r].send, 1000 * r);
		ranks[r].recv = fresh(ranks[r].recv, 0);
		if (partitioned_init(r, &ref[r]))
			return (unsigned short)-EIO;
	}
	ret = ARMED(n, ioctl(ranks[0].fd, SWC_IOC_PARTITIONED_START, &ref[0]));
	if ((short)ret && ioctl(ranks[0].fd, SWC_IOC_PARTITIONED_START, &ref[0]))
		return FAILED(ret, -EIO);
	if (ioctl(ranks[1].fd, SWC_IOC_PARTITIONED_START, &ref[1]) || run_partitions(0, ref[0]) ||
	    run_partitions(1, ref[1]))
		return FAILED(ret, -EIO);
	for (r = 0; r < RANKS; r++)
		res[r] = wait_partitions(r, ref[r]);
	if (!(short)ret && (res[0] == -ENOMEM || res[0] == -EFAULT) && res[1] == -ECANCELED)
		ret = FAILED(ret, res[0]);
	else if (res[0] || res[1])
		ret = FAILED(ret, -EIO);
	for (i = 0; i < COUNT / PARTITIONS * PARTITIONS && !res[0]; i++)
		if (ranks[0].recv[i] != 1000ull + 2 * i || ranks[1].recv[i] != ranks[0].recv[i])
			ret = FAILED(ret, -EILSEQ);
	for (r = 0; r < RANKS; r++)
		if (ioctl(ranks[r].fd, SWC_IOC_PARTITIONED_FREE, &ref[r]))
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

static void *create_thread(void *arg)
{
	struct rank *r = arg;
	struct swc_comm_create create = { .nranks = RANKS, .rank = (__u32)(r - ranks), .timeout_ms = HANG };

	memcpy(create.id, id, sizeof(id));
	created[r - ranks] = ioctl(r->fd, SWC_IOC_COMM_CREATE, &create) ? -errno : 1;
	r->comm = create.comm;
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
		pthread_create(&threads[r], NULL, create_thread, &ranks[r]);
	}
	for (r = 0; r < RANKS; r++)
		pthread_join(threads[r], NULL);
	for (r = 0; r < RANKS; r++) {
		struct swc_plan_load load = { .comm = ranks[r].comm };

		load.data = (uintptr_t)make_plan(r, &load.bytes);
		if (created[r] != 1 || ioctl(ranks[r].fd, SWC_IOC_PLAN_LOAD, &load) ||
		    ioctl(ranks[r].fd, SWC_IOC_INFO, &info)) {
			printf("Bail out! rank %d: create %d, %s %s\n", r, created[r], strerror(errno),
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

/* All regions and pages are unpinned when the contexts are closed. */
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
	sweep("create", try_create);
	sweep("plan load", try_plan);
	sweep("register", try_reg);
	sweep("submit first", try_submit_first);
	sweep("submit last", try_submit_last);
	sweep("partitioned init", try_partitioned_init);
	sweep("partitioned start", try_partitioned_start);
	sweep("query", try_query);
	sweep("mmap", try_mmap);
	balance();
	printf("1..%d\n", tests);
	return failed != 0;
}

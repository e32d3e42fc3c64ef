// SPDX-License-Identifier: GPL-2.0-only
/* ioctls: reserved fields and unknown bits are refused, limits hold. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "testlib.h"

static struct testlib_rank r; /* a communicator of one rank */
static uint8_t id[SWC_ID_BYTES];

/* Each size is part of the interface, even where no call has the structure. */
#define SIZE(name, bytes)                                                                          \
	{                                                                                          \
#name, sizeof(struct name), bytes                                                  \
	}

static int sizes(void)
{
	static const struct {
		const char *name;
		size_t is, want;
	} all[] = {
		SIZE(swc_desc, 80),
		SIZE(swc_completion, 64),
		SIZE(swc_ring_header, 128),
		SIZE(swc_ring_user, 64),
		SIZE(swc_member_cpus, 4),
		SIZE(swc_comm_state, 1088),
		SIZE(swc_info, 96),
		SIZE(swc_node_path, 64),
		SIZE(swc_comm_create, 72),
		SIZE(swc_comm_ref, 16),
		SIZE(swc_comm_error, 280),
		SIZE(swc_plan_load, 280),
		SIZE(swc_plan_unload, 8),
		SIZE(swc_mem_reg, 24),
		SIZE(swc_mem_unreg, 8),
		SIZE(swc_ring_wait, 8),
		SIZE(swc_slot_wait, 24),
		SIZE(swc_slot_wake, 8),
		SIZE(swc_partitioned_init, 128),
		SIZE(swc_partitioned_ref, 16),
		SIZE(swc_progress, 128),
		SIZE(swc_sparse_note, 24),
		SIZE(swc_plan_window, 8),
		SIZE(swc_plan_header, 112),
		SIZE(swc_plan_channel, 8),
		SIZE(swc_plan_step, 12),
		SIZE(swc_plan_xfer, 16),
		SIZE(swc_member_info, 48),
		SIZE(swc_comm_query, 368),
		SIZE(swc_quota_use, 32),
		SIZE(swc_user_query, 144),
		SIZE(swc_trace_record, 32),
		SIZE(swc_trace_query, 344),
		SIZE(swc_stats, 16),
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].is != all[i].want) {
			ksft_print_msg("struct %s: %zu bytes, not %zu\n", all[i].name, all[i].is,
				       all[i].want);
			return 1;
		}
	return 0;
}

static int numbers(void)
{
	static const uint32_t all[][2] = {
		{ SWC_IOC_INFO, 0x8060c500 },
		{ SWC_IOC_COMM_CREATE, 0xc048c501 },
		{ SWC_IOC_COMM_LEAVE, 0x4010c502 },
		{ SWC_IOC_COMM_ABORT, 0x4010c503 },
		{ SWC_IOC_COMM_ERROR, 0xc118c504 },
		{ SWC_IOC_PLAN_LOAD, 0xc118c505 },
		{ SWC_IOC_PLAN_UNLOAD, 0x4008c506 },
		{ SWC_IOC_MEM_REG, 0xc018c507 },
		{ SWC_IOC_MEM_UNREG, 0x4008c508 },
		{ SWC_IOC_SUBMIT, 0x4050c509 },
		{ SWC_IOC_RING_WAIT, 0x4008c50a },
		{ SWC_IOC_SLOT_WAIT, 0x4018c50b },
		{ SWC_IOC_SLOT_WAKE, 0x4008c50c },
		{ SWC_IOC_COMM_QUERY, 0xc170c50d },
		{ SWC_IOC_STATS, 0xc010c50e },
		{ SWC_IOC_PARTITIONED_INIT, 0xc080c50f },
		{ SWC_IOC_PARTITIONED_START, 0x4010c510 },
		{ SWC_IOC_PARTITIONED_KICK, 0x4010c511 },
		{ SWC_IOC_PARTITIONED_WAIT, 0x4010c512 },
		{ SWC_IOC_PARTITIONED_FREE, 0x4010c513 },
		{ SWC_IOC_USER_QUERY, 0xc090c514 },
		{ SWC_IOC_TRACE, 0xc158c515 },
		{ SWC_IOC_SPARSE_NOTE, 0x4018c516 },
		{ SWC_CMD_COLLECTIVE, 0x4050c580 },
		{ SWC_CMD_PARTITIONED_WAIT, 0x4010c581 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++)
		CHECK_EQ(all[i][0], all[i][1]);
	return 0;
}

static int info(void)
{
	struct swc_info i;
	const char *zero = (const char *)i.resv1;

	memset(&i, 0xff, sizeof(i));
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_INFO, &i), 0);
	CHECK_EQ(i.abi_version, SWC_ABI_VERSION);
	CHECK_EQ(i.desc_bytes, sizeof(struct swc_desc));
	CHECK(i.features & SWC_FEATURE_LOCAL);
	CHECK(i.features & SWC_FEATURE_COPY);
	CHECK_EQ(!i.rdma_port, !(i.features & SWC_FEATURE_RDMA));
	CHECK_EQ(!i.tcp_port, !(i.features & SWC_FEATURE_TCP));
	CHECK_EQ(!i.tls_port, !(i.features & SWC_FEATURE_TLS));
	for (size_t k = 0; k < sizeof(i.resv1); k++)
		CHECK(!zero[k]);
	CHECK(i.reduce[0] && !i.reduce[SWC_NAME_BYTES - 1]);
	CHECK_EQ(r.c.ring->entries, i.ring_entries);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_INFO, NULL), -EFAULT);
	return 0;
}

static int unknown(void)
{
	char room[4096] = { 0 };

	CHECK_EQ(testlib_ioctl(r.c.fd, _IO(SWC_IOC_MAGIC, 0x7f), room), -ENOTTY);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_CMD_COLLECTIVE, room), -ENOTTY);
	CHECK_EQ(testlib_ioctl(r.c.fd, TCGETS, room), -ENOTTY);
	/* The size is part of the call: another size is another call. */
	CHECK_EQ(testlib_ioctl(r.c.fd, _IOW(SWC_IOC_MAGIC, 0x09, char[72]), room), -ENOTTY);
	CHECK_EQ(testlib_ioctl(r.c.fd, _IOW(SWC_IOC_MAGIC, 0x03, char[24]), room), -ENOTTY);
	return 0;
}

static int faults(void)
{
	for (unsigned int i = 0; i < TESTLIB_CALLS; i++)
		CHECK_EQ(testlib_ioctl(r.c.fd, testlib_call[i], (void *)8), -EFAULT);
	return 0;
}

static int create_with(struct swc_comm_create *j, int want)
{
	uint8_t fresh[SWC_ID_BYTES];
	int ret;

	testlib_new_id(fresh);
	memcpy(j->id, fresh, sizeof(fresh));
	j->timeout_ms = 50;
	ret = testlib_ioctl(r.c.fd, SWC_IOC_COMM_CREATE, j);
	if (!ret)
		testlib_comm_leave(r.c.fd, j->comm);
	CHECK_EQ(ret, want);
	return 0;
}

#define CREATE(want, ...)                                                                          \
	do {                                                                                       \
		struct swc_comm_create j = { .nranks = 1 };                                        \
		__VA_ARGS__;                                                                       \
		if (create_with(&j, want)) {                                                       \
			ksft_print_msg("with %s\n", #__VA_ARGS__);                                 \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static int create(void)
{
	CREATE(0, (void)0);
	CREATE(0, j.slot_bytes = 100);
	CREATE(0, j.flags = SWC_COMM_F_ALL);
	CREATE(-ETIMEDOUT, j.nranks = 2);
	CREATE(-EINVAL, j.nranks = 0);
	CREATE(-EINVAL, j.nranks = SWC_MAX_RANKS + 1);
	CREATE(-EINVAL, j.nranks = ~0u);
	CREATE(-EINVAL, j.rank = 1);
	CREATE(-EINVAL, j.rank = ~0u);
	for (int b = 3; b < 32; b++)
		CREATE(-EINVAL, j.flags = 1u << b);
	CREATE(-EINVAL, j.slot_bytes = SWC_MAX_SLOT_BYTES + 1);
	CREATE(-EINVAL, j.nnodes = 2);
	CREATE(-EINVAL, j.rank_node = 1);
	CREATE(-EINVAL, j.paths = 1);
	CREATE(-EINVAL, j.npaths = 1);
	CREATE(-EINVAL, j.missing = 1);
	return 0;
}

/* The last of the most ranks, each on a node of its own. */
static int most_ranks(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct swc_node_path path = { .node = 0, .transport = SWC_TRANSPORT_TCP };
	uint32_t *node = malloc(SWC_MAX_RANKS * sizeof(*node));
	struct swc_comm_query q = { 0 };
	struct swc_comm_create j;
	struct swc_info info = testlib_info();

	CHECK(node);
	for (uint32_t i = 0; i < SWC_MAX_RANKS; i++)
		node[i] = SWC_MAX_RANKS - 1 - i;
	any.sin_port = htons(info.tcp_port);
	memcpy(path.local, &any, sizeof(any));
	memcpy(path.remote, &any, sizeof(any));
	path.node = node[0];
	j = (struct swc_comm_create){ .nranks = SWC_MAX_RANKS,
				      .rank = SWC_MAX_RANKS - 1,
				      .nnodes = SWC_MAX_RANKS,
				      .rank_node = (uintptr_t)node,
				      .paths = (uintptr_t)&path,
				      .npaths = 1,
				      .timeout_ms = 1000 };
	testlib_new_id(j.id);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_CREATE, &j),
		 info.features & SWC_FEATURE_TCP ? 0 : -EOPNOTSUPP);
	while (info.features & SWC_FEATURE_TCP && q.nranks != SWC_MAX_RANKS)
		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_QUERY, &q), 0);
	if (info.features & SWC_FEATURE_TCP) {
		CHECK_EQ(q.nlocal, 1);
		CHECK_EQ(testlib_comm_leave(r.c.fd, j.comm), 0);
	}
	testlib_new_id(j.id);
	j.comm = 0;
	node[0] = SWC_MAX_RANKS;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_CREATE, &j), -EINVAL);
	free(node);
	return 0;
}

static int limit_comms(void)
{
	uint8_t fresh[SWC_ID_BYTES];
	uint32_t comm[300];
	int n = 0, ret;

	do {
		testlib_new_id(fresh);
		ret = testlib_comm_create(r.c.fd, fresh, 1, 0, 1000, &comm[n]);
	} while (!ret && ++n < 300);
	while (n > 0)
		CHECK_EQ(testlib_comm_leave(r.c.fd, comm[--n]), 0);
	CHECK_EQ(ret, -ENOSPC);
	return 0;
}

static int refs(void)
{
	struct swc_comm_ref ref = { .comm = r.comm, .resv = 1 };
	struct swc_comm_error e;

	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_LEAVE, &ref), -EINVAL);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_ABORT, &ref), -EINVAL);
	ref = (struct swc_comm_ref){ .comm = r.comm, .error = 1 };
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_LEAVE, &ref), -EINVAL);
	ref = (struct swc_comm_ref){ .comm = r.comm, .other = 1 };
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_LEAVE, &ref), -EINVAL);
	ref.error = 4096;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_ABORT, &ref), -EINVAL);
	/* No such rank. */
	ref = (struct swc_comm_ref){ .comm = r.comm, .error = ECONNRESET, .other = UINT32_MAX };
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_ABORT, &ref), -EINVAL);
	ref = (struct swc_comm_ref){ .comm = r.comm + 1000 };
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_LEAVE, &ref), -ENOENT);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_ABORT, &ref), -ENOENT);
	CHECK_EQ(testlib_comm_error(r.c.fd, r.comm + 1000, &e), -ENOENT);
	CHECK_EQ(testlib_comm_error(r.c.fd, 0, &e), -ENOENT);
	CHECK_EQ(testlib_comm_error(r.c.fd, r.comm, &e), 0);
	CHECK_EQ(e.error, 0);
	CHECK_EQ(e.culprit, -1);
	CHECK_EQ(e.aborted, 0);
	return 0;
}

static int abort_errors(void)
{
	uint8_t fresh[SWC_ID_BYTES];
	/* Restart codes of the kernel are not errors for users; others ask callers to call again. */
	static const uint32_t unfit[] = { 512, EINTR, EAGAIN, EBUSY, ETIME };
	struct swc_comm_ref ref = { 0 };
	struct swc_comm_error e;

	testlib_new_id(fresh);
	CHECK_EQ(testlib_comm_create(r.c.fd, fresh, 1, 0, 1000, &ref.comm), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(unfit); i++) {
		ref.error = unfit[i];
		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_ABORT, &ref), -EINVAL);
	}
	ref.error = ENOSPC;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_ABORT, &ref), 0);
	ref.error = EIO; /* the first error stays */
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_ABORT, &ref), 0);
	CHECK_EQ(testlib_comm_error(r.c.fd, ref.comm, &e), 0);
	CHECK_EQ(e.error, -ENOSPC);
	CHECK_EQ(e.aborted, 1);
	CHECK_EQ(e.culprit, 0);
	CHECK(e.text[0]);
	CHECK_EQ(testlib_comm_leave(r.c.fd, ref.comm), 0);
	return 0;
}

static int sparse_note(void)
{
	struct swc_sparse_note note = { .comm = r.comm, .resv = 1 };
	uint64_t before[SWC_STAT_NR], after[SWC_STAT_NR];

	CHECK_EQ(testlib_stats(before, SWC_STAT_NR), 0);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SPARSE_NOTE, &note), -EINVAL);
	note = (struct swc_sparse_note){ .comm = r.comm, .bytes = (1ull << 46) + 1 };
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SPARSE_NOTE, &note), -EINVAL);
	note = (struct swc_sparse_note){ .comm = r.comm, .reduced_bytes = ~0ull };
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SPARSE_NOTE, &note), -EINVAL);
	note = (struct swc_sparse_note){ .comm = r.comm + 1000 };
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SPARSE_NOTE, &note), -ENOENT);
	note = (struct swc_sparse_note){ .comm = r.comm, .bytes = 1000, .reduced_bytes = 10 };
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SPARSE_NOTE, &note), 0);
	CHECK_EQ(testlib_stats(after, SWC_STAT_NR), 0);
	CHECK_EQ(after[SWC_STAT_SPARSE_BYTES] - before[SWC_STAT_SPARSE_BYTES], 1000);
	CHECK_EQ(after[SWC_STAT_SPARSE_BYTES_REDUCED] - before[SWC_STAT_SPARSE_BYTES_REDUCED], 10);
	return 0;
}

static int memory(void)
{
	static char page[8192];
	struct swc_mem_reg reg = { .addr = (uintptr_t)page, .bytes = sizeof(page) };
	struct swc_mem_unreg un = { 0 };

	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg), 0);
	un.region = reg.region;
	un.resv = 1;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_UNREG, &un), -EINVAL);
	un.resv = 0;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_UNREG, &un), 0);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_UNREG, &un), -ENOENT);
	un.region = 0;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_UNREG, &un), -ENOENT);
	for (int b = 0; b < 32; b++) {
		reg.flags = 1u << b;
		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg), -EINVAL);
	}
	reg.flags = 0;
	reg.bytes = 0;
	CHECK(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg) < 0);
	reg.bytes = ~0ull;
	CHECK(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg) < 0);
	reg.addr = 0;
	reg.bytes = 4096;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg), -EFAULT);
	reg.addr = 0xffff888000000000ull;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg), -EFAULT);
	/* Sizes whose page tables would be absurd: refused without a warning in the kernel log. */
	reg.addr = 4096;
	for (int b = 36; b < 47; b++) {
		reg.bytes = (1ull << b) - 4096;
		CHECK(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg) < 0);
	}
	/* Read-only memory cannot be a buffer. */
	reg.addr = (uintptr_t)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.bytes = 4096;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg), -EFAULT);
	munmap((void *)(uintptr_t)reg.addr, 4096);
	return 0;
}

/* The limit holds, and unregistering makes room again. */
static int limit_regions(void)
{
	static char page[4096];
	struct swc_mem_reg reg = { .addr = (uintptr_t)page, .bytes = 64 };
	struct swc_info i;
	uint32_t n = 0, *handle;
	int ret;

	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_INFO, &i), 0);
	handle = calloc(i.max_regions + 1, sizeof(*handle));
	while (n <= i.max_regions) {
		ret = testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg);
		if (ret)
			break;
		handle[n++] = reg.region;
	}
	for (uint32_t k = 0; k < n; k++) {
		struct swc_mem_unreg un = { .region = handle[k] };

		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_UNREG, &un), 0);
	}
	free(handle);
	CHECK_EQ(ret, -ENOSPC);
	CHECK_EQ(n, i.max_regions);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_REG, &reg), 0);
	struct swc_mem_unreg un = { .region = reg.region };

	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_MEM_UNREG, &un), 0);
	return 0;
}

static uint32_t *waited_for;
static int nalarms;

/* A call that is restarted each time ends all the same, and the test fails. */
static void on_alarm(int signal)
{
	(void)signal;
	if (++nalarms == 100)
		*waited_for += 1;
}

/* A timer whose handler has SA_RESTART does not begin the wait anew. */
static int interrupted(struct swc_slot_wait *w, uint32_t *word)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval often = { .it_value.tv_usec = 20000, .it_interval.tv_usec = 20000 };
	struct itimerval never = { 0 };
	int ret;

	waited_for = word;
	CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	ret = testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, w);
	CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
	CHECK_EQ(ret, -EINTR);
	return 0;
}

static int slots(void)
{
	uint8_t fresh[SWC_ID_BYTES];
	struct swc_comm_create j = { .nranks = 1, .slot_bytes = 4096, .timeout_ms = 2000 };
	struct swc_slot_wake wake = { .resv = 1 };
	struct swc_comm_error e;
	struct swc_slot_wait w;
	uint32_t *word;

	testlib_new_id(fresh);
	memcpy(j.id, fresh, sizeof(fresh));
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_CREATE, &j), 0);
	word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r.c.fd, SWC_MMAP_SLOTS(j.comm));
	CHECK(word != MAP_FAILED);
	for (int i = 0; i < 1024; i++)
		CHECK_EQ(word[i], 0);
	word[3] = 5;
	w = (struct swc_slot_wait){ .comm = j.comm, .offset = 12, .value = 4, .suspect = -1 };
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, &w), 0);
	w.offset = 13;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, &w), -EINVAL);
	w.offset = 4096;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, &w), -EINVAL);
	w.offset = ~3u;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, &w), -EINVAL);
	w.offset = 12;
	w.suspect = 1;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, &w), -EINVAL);
	w.suspect = -2;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, &w), -EINVAL);
	w.suspect = -1;
	w.comm = r.comm; /* has no slots */
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, &w), -EINVAL);
	w.comm = 9999;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, &w), -ENOENT);
	wake.comm = j.comm;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAKE, &wake), -EINVAL);
	wake.resv = 0;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAKE, &wake), 0);
	w = (struct swc_slot_wait){
		.comm = j.comm, .offset = 12, .value = 5, .timeout_ms = 20000, .suspect = 0
	};
	CHECK_EQ(interrupted(&w, &word[3]), 0);
	/* The time-out ends the communicator. */
	w.timeout_ms = 20;
	w.waited_ms = 4000;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, &w), -ETIMEDOUT);
	CHECK_EQ(testlib_comm_error(r.c.fd, j.comm, &e), 0);
	CHECK(strstr(e.text, "waited 4020 ms"));
	w.timeout_ms = 20000;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SLOT_WAIT, &w), -ETIMEDOUT);
	CHECK_EQ(testlib_comm_leave(r.c.fd, j.comm), 0);
	/* The mapping stays valid after the membership. */
	word[3] = 7;
	munmap(word, 4096);
	return 0;
}

static int query(void)
{
	struct swc_comm_query q = { .resv0 = 1 };
	struct swc_member_info m[4];
	uint64_t values[SWC_STAT_NR + 4];
	struct swc_stats s = { .max = 2, .values = (uintptr_t)values };
	int seen = 0, ret;

	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_QUERY, &q), -EINVAL);
	memset(&q, 0, sizeof(q));
	q.max_members = 4;
	q.members = (uintptr_t)m;
	while (!(ret = testlib_ioctl(r.c.fd, SWC_IOC_COMM_QUERY, &q))) {
		if (memcmp(q.id_prefix, id, 4))
			continue;
		seen++;
		CHECK_EQ(q.nranks, 1);
		CHECK_EQ(q.status, SWC_COMM_LIVE);
		CHECK_EQ(m[0].pid, getpid());
		CHECK_EQ(m[0].state, SWC_MEMBER_JOINED);
	}
	CHECK_EQ(ret, -ENOENT);
	CHECK_EQ(seen, 1);
	memset(values, 0xee, sizeof(values));
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_STATS, &s), 0);
	CHECK_EQ(s.count, SWC_STAT_NR);
	CHECK(values[2] == 0xeeeeeeeeeeeeeeeeull);
	return 0;
}

/* ------------------------------------------------------------------ operations in queries */

struct counted {
	uint8_t id[SWC_ID_BYTES];
	unsigned int submitted, over;
};

/* The state of the communicator when so many of its operations have ended. */
static int query_after(int fd, const uint8_t *of, uint64_t ended, struct swc_comm_query *q)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;

	do {
		memset(q, 0, sizeof(*q));
		do
			CHECK_EQ(testlib_ioctl(fd, SWC_IOC_COMM_QUERY, q), 0);
		while (memcmp(q->id_prefix, of, sizeof(q->id_prefix)));
		CHECK(testlib_now_ms() < limit);
	} while (q->completed + q->failed != ended);
	return 0;
}

/* Rank 0 looks at an operation that rank 1 has not called yet, at its end, and at one that fails. */
static int counted_rank(uint32_t rank, void *arg)
{
	static uint32_t buf[1000];
	struct counted *s = arg;
	struct swc_completion done;
	struct swc_comm_query q;
	struct testlib_rank w;
	struct swc_desc d;
	uint64_t start, waited = 0;

	CHECK_EQ(testlib_rank_open(&w, s->id, 2, rank, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(testlib_check_allreduce(&w, 1000), 0);
	CHECK_EQ(query_after(w.c.fd, s->id, 1, &q), 0);
	CHECK_EQ(q.completed, 1);
	CHECK_EQ(q.bytes, 4000);
	d = testlib_allreduce_desc(&w, buf, buf, 500, SWC_U32);
	if (rank)
		CHECK(testlib_wait_count(&s->submitted, 1));
	CHECK_EQ(testlib_submit(w.c.fd, &d), 0);
	start = testlib_now_ns();
	if (!rank) {
		CHECK_EQ(query_after(w.c.fd, s->id, 1, &q), 0);
		CHECK_EQ(q.inflight, 1);
		CHECK_EQ(q.oldest_seq, 1);
		CHECK(q.oldest_ns > 0 && q.oldest_ns < 1000000ull * TESTLIB_EVENT_MS);
		CHECK(!strcmp(q.algo, "selftest"));
		waited = testlib_now_ns() - start;
		testlib_count(&s->submitted);
	}
	CHECK_EQ(testlib_ring_next(&w.c, &done, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(done.res, 0);
	CHECK_EQ(done.seq, 1);
	CHECK_EQ(done.bytes, 2000);
	CHECK(done.wait_ns >= waited);
	CHECK_EQ(query_after(w.c.fd, s->id, 2, &q), 0);
	CHECK_EQ(q.completed, 2);
	CHECK_EQ(q.bytes, 6000);
	d.count = 400 + rank;
	CHECK_EQ(testlib_submit_wait(&w.c, &d, NULL), -EPROTO);
	CHECK_EQ(query_after(w.c.fd, s->id, 3, &q), 0);
	CHECK_EQ(q.completed, 2);
	CHECK_EQ(q.failed, 1);
	CHECK_EQ(q.inflight, 0);
	CHECK_EQ(q.bytes, 6000);
	CHECK(testlib_meet(&s->over, 2));
	testlib_rank_close(&w);
	return 0;
}

static int query_operations(void)
{
	struct counted *s = testlib_shared_alloc(sizeof(*s));

	testlib_new_id(s->id);
	return testlib_run_ranks(2, counted_rank, s);
}

/* A context belongs to the address space that opened it. */
static int foreign(void *arg)
{
	char room[512] = { 0 };
	struct swc_desc d = { 0 };
	struct io_uring ring;

	(void)arg;
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_INFO, room), -EPERM);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_SUBMIT, room), -EPERM);
	CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_COMM_CREATE, room), -EPERM);
	CHECK_EQ(testlib_ioctl(r.c.fd, 0x1234, room), -EPERM);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, r.c.fd, SWC_MMAP_RING) == MAP_FAILED);
	CHECK_EQ(errno, EPERM);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, r.c.fd, SWC_MMAP_STATE(r.comm)) ==
	      MAP_FAILED);
	CHECK_EQ(errno, EPERM);
	CHECK_EQ(testlib_uring_init(&ring, 4, TESTLIB_URING_BIG), 0);
	testlib_uring_prep(&ring, r.c.fd, &d, 1);
	CHECK_EQ(io_uring_submit(&ring), 1);
	CHECK_EQ(testlib_uring_wait(&ring, NULL, NULL, TESTLIB_EVENT_MS), -EPERM);
	io_uring_queue_exit(&ring);
	return 0;
}

static int other_mm(void)
{
	CHECK_EQ(testlib_run_child(foreign, NULL), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 100), 0);
	return 0;
}

int main(void)
{
	static const struct testlib_test test[] = {
		{ "sizes of the structs", sizes },
		{ "numbers of the calls", numbers },
		{ "SWC_IOC_INFO", info },
		{ "unknown calls: ENOTTY", unknown },
		{ "bad argument pointers: EFAULT", faults },
		{ "create: every field out of range", create },
		{ "create: the most ranks", most_ranks },
		{ "create: limit of memberships", limit_comms },
		{ "leave, abort and error: arguments", refs },
		{ "abort: the error given by the caller", abort_errors },
		{ "registration: arguments, and sizes without bounds", memory },
		{ "registration: limit of handles", limit_regions },
		{ "slots: arguments, time-out, lifetime of the mapping", slots },
		{ "queries and counters", query },
		{ "queries: operations in flight, completed and failed", query_operations },
		{ "notes about sparse collectives", sparse_note },
		{ "calls from another address space are refused", other_mm },
	};

	ksft_print_header();
	testlib_require_root();
	testlib_single_rank(&r, id);
	testlib_run_tests(test, ARRAY_SIZE(test));
	ksft_finished();
}

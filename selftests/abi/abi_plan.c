// SPDX-License-Identifier: GPL-2.0-only
/* The plan loader: a plan with one wrong field is refused with a reason; limits; the rank that a plan is for. */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "testlib.h"

static struct testlib_ctx c;
static uint32_t comm;

/* The plan of rank 1 of 3: all kinds of steps, two channels, all buffers. */
static void base(struct testlib_plan *p)
{
	testlib_plan_init(p, SWC_ALLREDUCE, 3, 1, 0, 4);
	p->h.window[SWC_BUF_SCRATCH] = (struct swc_plan_window){ 1, 2 };
	testlib_plan_channel(p);
	testlib_plan_step(p, SWC_STEP_LOCAL);
	testlib_plan_send(p, 1, SWC_BUF_SEND, 0, 1);
	testlib_plan_send(p, 2, SWC_BUF_SEND, 0, 1);
	testlib_plan_recv(p, 1, SWC_BUF_RECV, 0, 1, 0, SWC_XFER_FINAL);
	testlib_plan_recv(p, 0, SWC_BUF_RECV, 0, 1, 0, 0);
	testlib_plan_step(p, SWC_STEP_SYNC);
	testlib_plan_channel(p);
	testlib_plan_step(p, SWC_STEP_NET);
	testlib_plan_send(p, 2, SWC_BUF_SEND, 1, 2);
	testlib_plan_recv(p, 0, SWC_BUF_SCRATCH, 1, 2, SWC_BUF_SEND, SWC_XFER_REDUCE);
	testlib_plan_step(p, SWC_STEP_NET);
	testlib_plan_recv(p, 0, SWC_BUF_RECV, 3, 1, 0, 0);
}

static int load(struct testlib_plan *p, size_t bytes, int want)
{
	struct swc_plan_unload un = { .comm = comm };
	char text[SWC_TEXT_BYTES];
	int ret = testlib_plan_load(c.fd, comm, p->data, bytes, &un.plan, text);

	if (!ret)
		CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_PLAN_UNLOAD, &un), 0);
	CHECK_EQ(ret, want);
	if (ret == -EINVAL) {
		CHECK(memchr(text, 0, sizeof(text)));
		CHECK(strlen(text) > 8);
	}
	return 0;
}

/* Pack the plan between two changes; loading it must fail. */
#define REFUSED(text, before, after)                                                               \
	do {                                                                                       \
		struct testlib_plan p_, *p = &p_;                                                  \
		int ret_;                                                                          \
		base(p);                                                                           \
		before;                                                                            \
		testlib_plan_pack(p);                                                              \
		after;                                                                             \
		ret_ = load(p, p->bytes, -EINVAL);                                                 \
		testlib_plan_free(p);                                                              \
		if (ret_) {                                                                        \
			ksft_print_msg("accepted: %s\n", text);                                    \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

/* One wrong field in the tables, or in the packed header. */
#define BAD(...) REFUSED(#__VA_ARGS__, (({ __VA_ARGS__; })), (void)0)
#define BAD_BYTES(...)                                                                             \
	REFUSED(#__VA_ARGS__, (void)0, (({                                                         \
			struct swc_plan_header *h = p->data;                                       \
			__VA_ARGS__;                                                               \
		})))

static int good(void)
{
	struct testlib_plan p;
	int ret;

	base(&p);
	testlib_plan_pack(&p);
	ret = load(&p, p.bytes, 0);
	testlib_plan_free(&p);
	return ret;
}

static int header(void)
{
	BAD(p->h.magic ^= 1);
	BAD(p->h.version = 0);
	BAD(p->h.version = 2);
	BAD(p->h.header_bytes -= 8);
	BAD(p->h.header_bytes += 8);
	BAD_BYTES(h->total_bytes--);
	BAD_BYTES(h->total_bytes = ~0u);
	for (int b = 2; b < 32; b++)
		BAD(p->h.flags = 1u << b);
	BAD(p->h.nranks = 0);
	BAD(p->h.nranks = 2);
	BAD(p->h.nranks = 4);
	BAD(p->h.nranks = SWC_MAX_RANKS + 1);
	BAD(p->h.nranks = ~0u);
	BAD(p->h.rank = 0);
	BAD(p->h.rank = 2);
	BAD(p->h.rank = 3);
	BAD(p->h.rank = ~0u);
	BAD(p->h.root = 1);
	BAD(p->h.root = ~0u);
	BAD(p->h.nshards = 0);
	BAD(p->h.nshards = 3);
	BAD(p->h.nshards = ~0u);
	BAD(p->h.shard_blocks = 0);
	BAD(p->h.shard_blocks = 3);
	BAD(p->h.shard_blocks = (1u << 24) + 1);
	BAD(p->h.shard_blocks = ~0u);
	BAD_BYTES(h->nsteps++);
	BAD_BYTES(h->nsteps = ~0u);
	BAD_BYTES(h->nxfers--);
	BAD_BYTES(h->nxfers = ~0u);
	BAD_BYTES(h->nchannels = 0);
	BAD_BYTES(h->nchannels = 1);
	BAD_BYTES(h->nchannels = SWC_MAX_CHANNELS + 1);
	BAD_BYTES(h->nchannels = 0xffff);
	BAD(p->h.coll = SWC_COLL_NR);
	BAD(p->h.coll = 255);
	BAD(p->h.coll = SWC_BROADCAST); /* has steps that reduce */
	BAD(p->h.coll = SWC_BARRIER);
	BAD(p->h.coll = SWC_GATHER); /* has other windows */
	BAD(p->h.coll = SWC_SCATTER);
	BAD(p->h.resv0 = 1);
	BAD(p->h.resv1[0] = 1);
	BAD(p->h.resv1[1] = 1);
	BAD(memset(p->h.name, 'x', SWC_NAME_BYTES));
	for (int w = 0; w < SWC_BUF_NR; w++) {
		BAD(p->h.window[w].nblocks = 5);
		BAD(p->h.window[w].nblocks = ~0u);
		BAD(p->h.window[w].first_block = ~0u);
		BAD(p->h.window[w].first_block = 4);
		BAD(p->h.window[w].nblocks = 0); /* steps use it */
	}
	BAD(p->h.window[SWC_BUF_SEND].first_block = 1; p->h.window[SWC_BUF_SEND].nblocks = 3);
	BAD(p->h.window[SWC_BUF_RECV].nblocks = 3);
	return 0;
}

static int channels(void)
{
	for (int i = 0; i < 2; i++) {
		BAD(p->chan[i].first_step++);
		BAD(p->chan[i].first_step = ~0u);
		BAD(p->chan[i].nsteps++);
		BAD(p->chan[i].nsteps--);
		BAD(p->chan[i].nsteps = ~0u);
	}
	BAD(p->chan[1].first_step = 0);
	BAD(p->chan[0].nsteps = 0);
	return 0;
}

static int steps(void)
{
	for (uint32_t i = 0; i < 4; i++) {
		BAD(p->step[i].kind = 0);
		BAD(p->step[i].kind = 5);
		BAD(p->step[i].kind = 255);
		BAD(p->step[i].resv[0] = 1);
		BAD(p->step[i].resv[1] = 1);
		BAD(p->step[i].resv[2] = 1);
		BAD(p->step[i].nsend++);
		BAD(p->step[i].nsend = 0xffff);
		BAD(p->step[i].nrecv++);
		BAD(p->step[i].nrecv = 0xffff);
		BAD(p->step[i].first_xfer++);
		BAD(p->step[i].first_xfer = ~0u);
	}
	BAD(p->step[0].nsend--);
	BAD(p->step[0].kind = SWC_STEP_SYNC);
	BAD(p->step[1].kind = SWC_STEP_NET);
	BAD(p->step[1].kind = SWC_STEP_LOCAL);
	BAD(p->step[0].nsend = 0; p->step[0].nrecv = 4);
	BAD(p->step[0].nsend = 4; p->step[0].nrecv = 0);
	BAD(testlib_plan_step(p, SWC_STEP_LOCAL); for (int i = 0; i <= SWC_MAX_FANIN; i++)
		    testlib_plan_send(p, i % 3, SWC_BUF_SEND, 0, 1);
	    testlib_plan_recv(p, 1, SWC_BUF_RECV, 0, 1, 0, 0));
	BAD(testlib_plan_step(p, SWC_STEP_LOCAL); testlib_plan_send(p, 1, SWC_BUF_SEND, 0, 1);
	    for (int i = 0; i <= SWC_MAX_FANIN; i++)
		    testlib_plan_recv(p, i % 3, SWC_BUF_RECV, 0, 1, 0, 0));
	return 0;
}

/* A copy step behind the others, on the second channel: blocks 0 and 3 of SEND to each other's place. */
static void add_copies(struct testlib_plan *p)
{
	testlib_plan_step(p, SWC_STEP_COPY);
	testlib_plan_send(p, 1, SWC_BUF_SEND, 0, 1);
	testlib_plan_send(p, 1, SWC_BUF_SEND, 3, 1);
	testlib_plan_recv(p, 1, SWC_BUF_RECV, 3, 1, 0, 0);
	testlib_plan_recv(p, 1, SWC_BUF_RECV, 0, 1, 0, SWC_XFER_FINAL);
}

#define BAD_COPIES(change) BAD(add_copies(p); change)

static int copies(void)
{
	struct testlib_plan p;
	int ret;

	base(&p);
	add_copies(&p);
	testlib_plan_pack(&p);
	ret = load(&p, p.bytes, 0);
	testlib_plan_free(&p);
	if (ret)
		return ret;
	BAD(testlib_plan_step(p, SWC_STEP_COPY));
	BAD(testlib_plan_step(p, SWC_STEP_COPY); testlib_plan_send(p, 1, SWC_BUF_SEND, 0, 1));
	BAD(testlib_plan_step(p, SWC_STEP_COPY); testlib_plan_recv(p, 1, SWC_BUF_RECV, 0, 1, 0, 0));
	/* Not one destination for each source. */
	BAD_COPIES(testlib_plan_recv(p, 1, SWC_BUF_RECV, 1, 1, 0, 0));
	BAD_COPIES(p->step[4].nsend = 1; p->step[4].nrecv = 3);
	for (uint32_t i = 7; i < 11; i++) {
		BAD_COPIES(p->xfer[i].rank = 0); /* a rank of this node, but not this one */
		BAD_COPIES(p->xfer[i].rank = 3);
		BAD_COPIES(p->xfer[i].nblocks = 0);
		BAD_COPIES(p->xfer[i].nblocks = 2);
		BAD_COPIES(p->xfer[i].first_block = 4);
		BAD_COPIES(p->xfer[i].first_block = ~0u);
		BAD_COPIES(p->xfer[i].buf = SWC_BUF_SCRATCH); /* blocks 1 and 2 */
		BAD_COPIES(p->xfer[i].buf = SWC_BUF_NR);
		BAD_COPIES(p->xfer[i].operand = SWC_BUF_RECV);
		BAD_COPIES(p->xfer[i].path = 1);
		BAD_COPIES(p->xfer[i].flags = SWC_XFER_REDUCE);
		BAD_COPIES(p->xfer[i].flags = SWC_XFER_STORED);
	}
	BAD_COPIES(p->xfer[7].flags = SWC_XFER_FINAL);
	BAD_COPIES(p->xfer[9].buf = SWC_BUF_SEND);
	/* Onto itself, and onto a part of itself. */
	BAD_COPIES(p->xfer[7].buf = SWC_BUF_RECV; p->xfer[7].first_block = 3);
	BAD(testlib_plan_step(p, SWC_STEP_COPY); testlib_plan_send(p, 1, SWC_BUF_RECV, 1, 2);
	    testlib_plan_recv(p, 1, SWC_BUF_RECV, 2, 2, 0, 0));
	return 0;
}

static int xfers(void)
{
	for (uint32_t i = 0; i < 7; i++) {
		BAD(p->xfer[i].rank = 3);
		BAD(p->xfer[i].rank = ~0u);
		BAD(p->xfer[i].nblocks = 0);
		BAD(p->xfer[i].nblocks = 5);
		BAD(p->xfer[i].nblocks = ~0u);
		BAD(p->xfer[i].first_block = 4);
		BAD(p->xfer[i].first_block = ~0u);
		BAD(p->xfer[i].first_block = ~0u - p->xfer[i].nblocks + 1);
		BAD(p->xfer[i].buf = SWC_BUF_NR);
		BAD(p->xfer[i].buf = 255);
		BAD(p->xfer[i].operand = SWC_BUF_NR);
		BAD(p->xfer[i].operand = 255);
		for (int b = 3; b < 8; b++)
			BAD(p->xfer[i].flags |= 1u << b);
	}
	/* Sources and sends: no flags, no operand. */
	for (int k = 0; k < 3; k++) {
		static const int send[] = { 0, 1, 4 };

		BAD(p->xfer[send[k]].flags = SWC_XFER_FINAL);
		BAD(p->xfer[send[k]].flags = SWC_XFER_REDUCE);
		BAD(p->xfer[send[k]].operand = SWC_BUF_RECV);
	}
	/* SWC_XFER_STORED and paths are only for sends to another rank. */
	for (int k = 0; k < 7; k++) {
		if (k != 4)
			BAD(p->xfer[k].flags |= SWC_XFER_STORED);
		if (k < 4) {
			BAD(p->xfer[k].path = 1);
			BAD(p->xfer[k].path = 255);
		}
	}
	BAD(p->xfer[2].buf = SWC_BUF_SEND); /* a destination */
	BAD(p->xfer[3].buf = SWC_BUF_SEND);
	BAD(p->xfer[6].buf = SWC_BUF_SEND);
	BAD(p->xfer[2].flags |= SWC_XFER_REDUCE);
	BAD(p->xfer[3].flags |= SWC_XFER_FINAL); /* not the first destination */
	BAD(p->xfer[2].operand = SWC_BUF_RECV);
	BAD(p->xfer[6].operand = SWC_BUF_RECV);
	BAD(p->xfer[4].rank = 1); /* its own rank */
	BAD(p->xfer[5].rank = 1);
	/* Outside the scratch window, which is blocks 1 and 2. */
	BAD(p->xfer[5].first_block = 0);
	BAD(p->xfer[5].first_block = 2);
	BAD(p->xfer[5].operand = SWC_BUF_SCRATCH; p->xfer[5].buf = SWC_BUF_RECV;
	    p->xfer[5].first_block = 0);
	BAD(p->xfer[0].buf = SWC_BUF_SCRATCH);
	BAD(p->xfer[2].buf = SWC_BUF_SCRATCH);
	return 0;
}

static int sizes(void)
{
	struct testlib_plan p;
	size_t bytes;
	char *big;

	base(&p);
	testlib_plan_pack(&p);
	for (bytes = 0; bytes < p.bytes; bytes++)
		CHECK(!load(&p, bytes, -EINVAL));
	big = calloc(1, SWC_MAX_PLAN_BYTES + 16);
	memcpy(big, p.data, p.bytes);
	free(p.data);
	p.data = big;
	CHECK(!load(&p, p.bytes + 1, -EINVAL));
	CHECK(!load(&p, SWC_MAX_PLAN_BYTES, -EINVAL));
	CHECK(!load(&p, SWC_MAX_PLAN_BYTES + 1, -EINVAL));
	CHECK(!load(&p, ~0u, -EINVAL));
	/* More transfers than fit into 32 bits of bytes: the size must not wrap. */
	((struct swc_plan_header *)big)->nxfers = 0x10000000;
	CHECK(!load(&p, p.bytes, -EINVAL));
	testlib_plan_free(&p);
	return 0;
}

static int arguments(void)
{
	struct swc_plan_load l = { .comm = comm, .resv = 1 };
	struct swc_plan_unload un = { .comm = comm };
	struct testlib_plan p;

	base(&p);
	testlib_plan_pack(&p);
	l.data = (uintptr_t)p.data;
	l.bytes = p.bytes;
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_PLAN_LOAD, &l), -EINVAL);
	l.resv = 0;
	l.comm = 777;
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_PLAN_LOAD, &l), -ENOENT);
	l.comm = comm;
	l.data = 8;
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_PLAN_LOAD, &l), -EFAULT);
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_PLAN_UNLOAD, &un), -ENOENT);
	un.plan = 60000;
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_PLAN_UNLOAD, &un), -ENOENT);
	un.plan = ~0u;
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_PLAN_UNLOAD, &un), -ENOENT);
	un.comm = 777;
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_PLAN_UNLOAD, &un), -ENOENT);
	testlib_plan_free(&p);
	return 0;
}

static int limit(void)
{
	struct swc_plan_unload un = { .comm = comm };
	struct swc_info info;
	struct testlib_plan p;
	uint32_t n = 0, *handle;
	int ret;

	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_INFO, &info), 0);
	handle = calloc(info.max_plans + 1, sizeof(*handle));
	base(&p);
	testlib_plan_pack(&p);
	do
		ret = testlib_plan_load(c.fd, comm, p.data, p.bytes, &handle[n], NULL);
	while (!ret && n++ <= info.max_plans);
	for (uint32_t i = 0; i < n; i++) {
		CHECK(handle[i] >= 1 && handle[i] <= 65535);
		un.plan = handle[i];
		CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_PLAN_UNLOAD, &un), 0);
	}
	free(handle);
	CHECK_EQ(ret, -ENOSPC);
	CHECK_EQ(n, info.max_plans);
	CHECK(!load(&p, p.bytes, 0));
	testlib_plan_free(&p);
	return 0;
}

/* Rank 1 runs the tests; the other members only exist. */
static uint8_t id[SWC_ID_BYTES];
static unsigned int *done;

static int idle(uint32_t rank, void *arg)
{
	(void)arg;
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(testlib_comm_create(c.fd, id, 3, rank ? 2 : 0, TESTLIB_EVENT_MS, &comm), 0);
	while (!__atomic_load_n(done, __ATOMIC_ACQUIRE))
		testlib_sleep_ms(20);
	return 0;
}

int main(void)
{
	static const struct testlib_test test[] = {
		{ "a good plan is accepted", good },
		{ "header fields", header },
		{ "channel fields", channels },
		{ "step fields", steps },
		{ "transfer fields", xfers },
		{ "copy steps", copies },
		{ "truncated and oversized plans", sizes },
		{ "arguments of load and unload", arguments },
		{ "the limit of plans", limit },
		{ "a good plan is accepted after all that", good },
	};
	pid_t pid[2];

	ksft_print_header();
	testlib_require_device();
	testlib_new_id(id);
	done = testlib_shared_alloc(sizeof(*done));
	testlib_fork_ranks(pid, 2, idle, NULL);
	if (testlib_open(&c) || testlib_comm_create(c.fd, id, 3, 1, TESTLIB_EVENT_MS, &comm))
		ksft_exit_fail_msg("cannot create the communicator\n");
	testlib_run_tests(test, ARRAY_SIZE(test));
	testlib_count(done);
	testlib_wait_ranks(pid, 2);
	ksft_finished();
}

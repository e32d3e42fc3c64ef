// SPDX-License-Identifier: GPL-2.0-only
/* RLIMIT_MEMLOCK for an ordinary user: kept, explained, and given back. */
#include <errno.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "swct.h"

#define LIMIT (1ul << 20)
#define RW (PROT_READ | PROT_WRITE)

static struct swct_rank r;

static int become_nobody(void)
{
	struct rlimit limit = { LIMIT, LIMIT };
	uint8_t id[SWC_ID_BYTES];

	swct_id(id);
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	/* The node is root's; the descriptor is taken along, the limits are those of the moment of use. */
	CHECK_EQ(swct_rank_up(&r, id, 1, 0, 5000), 0);
	CHECK(!setgroups(0, NULL) && !setgid(65534) && !setuid(65534));
	return 0;
}

static int reg(void *at, size_t bytes, uint32_t *handle)
{
	struct swc_mem_reg m = { .addr = (uintptr_t)at, .bytes = bytes };
	int ret = swct_ioctl(r.c.fd, SWC_IOC_MEM_REG, &m);

	*handle = m.region;
	return ret;
}

static int unreg(uint32_t handle)
{
	struct swc_mem_unreg m = { .region = handle };

	return swct_ioctl(r.c.fd, SWC_IOC_MEM_UNREG, &m);
}

/* Pages come back a moment after the call. */
static int reg_soon(void *at, size_t bytes, uint32_t *handle)
{
	int ret = -ENOMEM;

	for (int i = 0; i < 200 && ret == -ENOMEM; i++) {
		ret = reg(at, bytes, handle);
		if (ret)
			swct_sleep_ms(10);
	}
	return ret;
}

static int explicit_regions(void *arg)
{
	char *p = mmap(NULL, 4 * LIMIT, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t h, more;

	(void)arg;
	if (become_nobody())
		return 1;
	CHECK_EQ(reg(p, 2 * LIMIT, &h), -ENOMEM);
	CHECK_EQ(reg(p, LIMIT + 1, &h), -ENOMEM);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(reg_soon(p, LIMIT, &h), 0);
		CHECK_EQ(reg(p + LIMIT, 1, &more), -ENOMEM);
		CHECK_EQ(unreg(h), 0);
	}
	CHECK_EQ(reg_soon(p, LIMIT / 2, &h), 0);
	CHECK_EQ(reg_soon(p + LIMIT, LIMIT / 2, &more), 0);
	CHECK_EQ(unreg(h), 0);
	CHECK_EQ(unreg(more), 0);
	/* What failed half-way is not counted: the second half is not there. */
	munmap(p + LIMIT / 2, LIMIT / 2);
	for (int i = 0; i < 20; i++)
		CHECK(reg(p, LIMIT, &h) < 0);
	CHECK_EQ(reg_soon(p + LIMIT, LIMIT, &h), 0);
	return 0;
}

static int implicit(void *arg)
{
	char *p = mmap(NULL, 16 * LIMIT, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct swc_comm_error e;
	struct swc_desc d;

	(void)arg;
	if (become_nobody())
		return 1;
	memset(p, 1, 16 * LIMIT);
	d = swct_allreduce(&r, p, p, 2 * LIMIT, SWC_U8);
	CHECK_EQ(swct_run(&r.c, &d, NULL), -ENOMEM);
	CHECK_EQ(swct_error(r.c.fd, r.comm, &e), 0);
	CHECK_EQ(e.error, -ENOMEM);
	CHECK(strstr(e.text, "RLIMIT_MEMLOCK"));
	CHECK(strstr(e.text, "1024 KiB"));
	CHECK_EQ(e.aborted, 0);
	/* Each fits by itself; the cache makes room for the next. */
	for (int i = 0; i < 16; i++) {
		d = swct_allreduce(&r, p + i * LIMIT, p + i * LIMIT, LIMIT / 4, SWC_U8);
		CHECK_EQ(swct_run(&r.c, &d, NULL), 0);
	}
	return 0;
}

/* A plan that asks for scratch without end, with no buffers of its own. */
static int scratch(void *arg)
{
	struct swct_plan p;
	struct swc_desc d;

	(void)arg;
	if (become_nobody())
		return 1;
	swct_plan_init(&p, SWC_ALLREDUCE, 1, 0, 0, 1);
	p.h.window[SWC_BUF_SEND].nblocks = 0;
	p.h.window[SWC_BUF_RECV].nblocks = 0;
	p.h.window[SWC_BUF_SCRATCH].nblocks = 1;
	swct_plan_channel(&p);
	swct_plan_step(&p, SWC_STEP_SYNC);
	swct_plan_pack(&p);
	CHECK_EQ(swct_plan_load(r.c.fd, r.comm, p.data, p.bytes, &r.plan, NULL), 0);
	d = swct_allreduce(&r, NULL, NULL, 64 * LIMIT, SWC_U8);
	CHECK_EQ(swct_run(&r.c, &d, NULL), -ENOMEM);
	d.count = LIMIT / 2;
	for (int i = 0; i < 20; i++) {
		int ret;

		do
			ret = swct_run(&r.c, &d, NULL);
		while (ret == -ENOMEM && i++ < 200);
		CHECK_EQ(ret, 0);
	}
	return 0;
}

int main(void)
{
	ksft_print_header();
	swct_need_root();
	ksft_set_plan(3);
	ksft_test_result(!swct_child(explicit_regions, NULL, 20000), "explicit registrations");
	ksft_test_result(!swct_child(implicit, NULL, 20000),
			 "buffers by address, with an explanation");
	ksft_test_result(!swct_child(scratch, NULL, 20000), "scratch memory of plans");
	ksft_finished();
}

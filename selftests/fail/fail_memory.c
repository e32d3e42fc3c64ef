// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that is missing on one rank while it calls a collective of a communicator without a deadline: the other rank
 * would wait for it for ever, so it must be told. Each allocation of the library fails in turn.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "swingcoll.h"
#include "testlib.h"

#define NRANKS 2
#define COUNT 100000
#define MOST 1000

/* ------------------------------------------------------------------ allocations of the library */

/* The C library's own. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static __thread bool counting;
static int left; /* allocations until one fails; negative: it has */

static bool fails(const void *caller)
{
	Dl_info at, here;

	/* The library is a part of this program, the C library is not. */
	if (!counting || !dladdr(caller, &at) || !dladdr(&left, &here) ||
	    at.dli_fbase != here.dli_fbase)
		return false;
	if (left--)
		return false;
	errno = ENOMEM;
	return true;
}

#define FAILS fails(__builtin_extract_return_addr(__builtin_return_address(0)))

/* They stand in front of the C library's. */
void *malloc(size_t bytes)
{
	return FAILS ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	return FAILS ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
	return FAILS ? NULL : __libc_realloc(old, bytes);
}

/* ------------------------------------------------------------------ calls */

static struct swingcoll_id id;
static uint32_t *outcome; /* shared: of each rank, 1 + the errno */
static bool blocking;

static int call(struct swingcoll_comm *comm, uint32_t *v)
{
	struct swingcoll_req *req;
	int ret;

	if (blocking)
		return swingcoll_allreduce(v, v, COUNT, SWINGCOLL_U32, SWINGCOLL_SUM, comm);
	ret = swingcoll_iallreduce(v, v, COUNT, SWINGCOLL_U32, SWINGCOLL_SUM, comm, &req);
	return ret ? ret : swingcoll_wait(req, NULL);
}

/* The n-th allocation of rank 0 fails. */
static int rank_main(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = TESTLIB_EVENT_MS,
					    .op_timeout_ms = SWINGCOLL_NO_DEADLINE };
	struct swingcoll_comm *comm;
	static uint32_t v[COUNT];
	int ret;

	left = *(int *)arg;
	v[COUNT - 1] = rank + 1;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, &opts), 0);
	/* Rank 0 must not end it while the other one is joining. */
	CHECK_EQ(swingcoll_barrier(comm), 0);
	counting = !rank;
	ret = call(comm, v);
	counting = false;
	CHECK(!ret || ret == -ECONNABORTED);
	CHECK(ret || v[COUNT - 1] == NRANKS * (NRANKS + 1) / 2);
	outcome[rank] = 1 - ret;
	/* This one has had all the allocations that there are. */
	if (!rank && left >= 0)
		outcome[NRANKS] = 1;
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static void test(const char *name)
{
	int n, nfailed = 0, bad = 0;

	for (n = 0; n < MOST && !bad && !outcome[NRANKS]; n++) {
		swingcoll_unique_id(&id);
		bad = testlib_run_ranks(NRANKS, rank_main, &n);
		if (outcome[0] != outcome[1]) {
			ksft_print_msg(
				"allocation %d: one rank has succeeded, or has another error\n", n);
			bad = 1;
		}
		nfailed += outcome[0] > 1;
	}
	outcome[NRANKS] = 0;
	ksft_print_msg("%s: %d of %d allocations end the communicator\n", name, nfailed, n - 1);
	ksft_test_result(!bad && n < MOST && nfailed, "%s: an allocation of one rank fails\n",
			 name);
}

int main(void)
{
	ksft_print_header();
	testlib_require_device();
	ksft_set_plan(2);
	outcome = testlib_shared_alloc((NRANKS + 1) * sizeof(*outcome));
	test("nonblocking");
	blocking = true;
	test("blocking");
	ksft_finished();
}

// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/swingcoll.h>

#include "doom.h"

/* Steps that are left, while @counting, and those that join. */
static uint32_t left = DOOM_NEVER, joins_left = DOOM_NEVER;
static bool counting;

static void count(uint32_t *n)
{
	if (counting && *n != DOOM_NEVER && !(*n)--)
		raise(SIGKILL);
}

ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
	count(&left);
	return sendto(fd, data, bytes, flags, NULL, 0);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	count(&left);
	if (request == SWC_IOC_COMM_CREATE)
		count(&joins_left);
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

static int shrink(struct swingcoll_comm **comm)
{
	struct swingcoll_comm *rest;
	char text[256];
	int ret;

	counting = true;
	ret = swingcoll_comm_shrink(*comm, NULL, 0, &rest);
	counting = false;
	if (ret) {
		swingcoll_comm_error(*comm, text, sizeof(text), NULL);
		ksft_print_msg("shrinking: %s: %s\n", swingcoll_strerror(ret), text);
		return 1;
	}
	CHECK_EQ(swingcoll_comm_destroy(*comm), 0);
	*comm = rest;
	return 0;
}

int doom_run(struct swingcoll_comm *comm, uint32_t at, struct doom_seen *seen)
{
	int me = swingcoll_comm_rank(comm), n = swingcoll_comm_size(comm), ret;
	int flag = ~(1 << me % 31), failed[DOOM_MAX_RANKS];
	uint64_t mine = 1ull << me, members = 0;
	char text[256];

	if (at < DOOM_JOIN)
		left = at;
	else if (at != DOOM_NEVER)
		joins_left = at - DOOM_JOIN;
	counting = true;
	ret = swingcoll_comm_agree(comm, &flag);
	counting = false;
	if (ret && ret != -ECONNRESET) {
		swingcoll_comm_error(comm, text, sizeof(text), NULL);
		ksft_print_msg("rank %d: agreement: %s: %s\n", me, swingcoll_strerror(ret), text);
		return 1;
	}
	seen->agreed = ret;
	seen->flag = (uint32_t)flag;
	seen->nfailed = (uint32_t)swingcoll_comm_get_failed(comm, failed, n);
	CHECK_EQ(ret == 0, seen->nfailed == 0);
	/* What has not failed has taken part. */
	for (int r = 0, k = 0; r < n && r < 31; r++) {
		bool is_failed = k < (int)seen->nfailed && failed[k] == r;

		k += is_failed;
		CHECK_EQ(flag >> r & 1, is_failed);
	}
	do {
		if (shrink(&comm))
			return 1;
		ret = swingcoll_allreduce(&mine, &members, 1, SWINGCOLL_U64, SWINGCOLL_BOR, comm);
		if (!ret)
			ret = swingcoll_barrier(comm);
	} while (swingcoll_comm_failed(ret));
	CHECK_EQ(ret, 0);
	CHECK_EQ(__builtin_popcountll(members), swingcoll_comm_size(comm));
	seen->members = members;
	seen->done = true;
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

int doom_compare(const struct doom_seen *all, int n)
{
	const struct doom_seen *first = NULL;
	uint64_t done = 0;

	for (int r = 0; r < n; r++) {
		if (!all[r].done)
			continue;
		done |= 1ull << r;
		if (!first)
			first = &all[r];
		CHECK_EQ(all[r].agreed, first->agreed);
		CHECK_EQ(all[r].flag, first->flag);
		CHECK_EQ(all[r].nfailed, first->nfailed);
		CHECK_EQ(all[r].members, first->members);
	}
	CHECK(first);
	CHECK_EQ(first->members, done);
	return 0;
}

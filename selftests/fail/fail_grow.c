// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replacements join a communicator: ranks die, the others shrink, newcomers come, and the sum is that of all; and
 * newcomers that do not come or want something else leave the communicator as it was. One node.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <swingcoll.h>

#include "testlib.h"

#define N 4
#define ROUNDS 3
#define COUNT 3000

static struct swingcoll_id id;
static char root[32];
static unsigned int *created;

/* A port that is free, which the kernel does not give to others at once. */
static void choose_root(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (void *)&sa, len) || getsockname(fd, (void *)&sa, &len))
		ksft_exit_fail_msg("no port: %s\n", strerror(errno));
	close(fd);
	snprintf(root, sizeof(root), "127.0.0.1:%u", ntohs(sa.sin_port));
}

/* Every rank gives its number plus one. */
static int sum_is_right(struct swingcoll_comm *comm)
{
	uint32_t n = (uint32_t)swingcoll_comm_size(comm);
	static uint32_t v[COUNT];

	for (int i = 0; i < COUNT; i++)
		v[i] = (uint32_t)swingcoll_comm_rank(comm) + 1;
	CHECK_EQ(swingcoll_allreduce(v, v, COUNT, SWINGCOLL_U32, SWINGCOLL_SUM, comm), 0);
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ(v[i], n * (n + 1) / 2);
	return 0;
}

static int grow(struct swingcoll_comm *comm, int nnew, const struct swingcoll_comm_opts *opts,
		struct swingcoll_comm **out)
{
	int ret = swingcoll_comm_grow(comm, root, nnew, opts, out);

	if (ret)
		ksft_print_msg("rank %d: %s\n", swingcoll_comm_rank(comm),
			       swingcoll_bootstrap_error());
	return ret;
}

/* ------------------------------------------------------------------ replacements */

/* In each round the last two ranks die, and two newcomers take their numbers. */
static int lives(struct swingcoll_comm *comm, int round)
{
	const struct swingcoll_comm_opts opts = { .timeout_ms = TESTLIB_EVENT_MS };
	struct swingcoll_comm *rest, *more;
	int me = swingcoll_comm_rank(comm), one = 1;

	for (; round < ROUNDS; round++) {
		CHECK_EQ(sum_is_right(comm), 0);
		CHECK_EQ(swingcoll_barrier(comm), 0);
		if (me >= N - 2)
			raise(SIGKILL);
		CHECK_EQ(swingcoll_comm_agree(comm, &one), -ECONNRESET);
		CHECK_EQ(swingcoll_comm_shrink(comm, NULL, 0, &rest), 0);
		CHECK_EQ(swingcoll_comm_destroy(comm), 0);
		CHECK_EQ(swingcoll_comm_size(rest), N - 2);
		CHECK_EQ(grow(rest, 2, &opts, &more), 0);
		CHECK_EQ(swingcoll_comm_destroy(rest), 0);
		comm = more;
		CHECK_EQ(swingcoll_comm_rank(comm), me);
		CHECK_EQ(swingcoll_comm_size(comm), N);
	}
	CHECK_EQ(sum_is_right(comm), 0);
	CHECK_EQ(swingcoll_barrier(comm), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* The first N processes begin; each two after them replace the two before. */
static int replaced_rank(uint32_t i, void *arg)
{
	const struct swingcoll_comm_opts opts = { .timeout_ms = TESTLIB_EVENT_MS };
	struct swingcoll_comm *comm;
	int round = i < N ? 0 : 1 + (int)(i - N) / 2, which = (int)(i - N) % 2;

	(void)arg;
	if (i < N) {
		CHECK_EQ(swingcoll_comm_create(&comm, &id, N, i, &opts), 0);
		return lives(comm, 0);
	}
	/* Those of different rounds use the same address: one round after the other. */
	CHECK(testlib_wait_count(created, 2 * (round - 1)));
	if (swingcoll_comm_join(root, 2, which, &opts, &comm)) {
		ksft_print_msg("newcomer %u: %s\n", i, swingcoll_bootstrap_error());
		return 1;
	}
	testlib_count(created);
	CHECK_EQ(swingcoll_comm_rank(comm), N - 2 + which);
	return lives(comm, round);
}

static int replaced(void)
{
	pid_t pid[N + 2 * ROUNDS];
	int bad = 0;

	choose_root();
	*created = 0;
	swingcoll_unique_id(&id);
	testlib_fork_ranks(pid, ARRAY_SIZE(pid), replaced_rank, NULL);
	for (int i = 2; i < N + 2 * ROUNDS; i++) {
		/* All but the first two and the last two die. */
		if (i < N - 2 || i >= N + 2 * ROUNDS - 2)
			continue;
		if (!testlib_was_killed(&pid[i])) {
			ksft_print_msg("process %d was not killed\n", i);
			bad = 1;
		}
		pid[i] = 0;
	}
	return testlib_wait_ranks(pid, ARRAY_SIZE(pid)) || bad;
}

/* ------------------------------------------------------------------ failures */

/* With other options than the members: all get the same error, and the communicator goes on. */
static int differs_rank(uint32_t i, void *arg)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = TESTLIB_EVENT_MS };
	struct swingcoll_comm *comm, *more;

	(void)arg;
	if (i == 2) {
		opts.flags = SWINGCOLL_ALLOW_REORDER;
		CHECK_EQ(swingcoll_comm_join(root, 1, 0, &opts, &more), -EPROTO);
		CHECK(!more && strstr(swingcoll_bootstrap_error(), "options"));
		return 0;
	}
	CHECK_EQ(swingcoll_comm_create(&comm, &id, 2, i, &opts), 0);
	CHECK_EQ(swingcoll_comm_grow(comm, root, 1, &opts, &more), -EPROTO);
	CHECK(!more && strstr(swingcoll_bootstrap_error(), "rank 2"));
	CHECK_EQ(sum_is_right(comm), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static int differs(void)
{
	choose_root();
	swingcoll_unique_id(&id);
	return testlib_run_ranks(3, differs_rank, NULL);
}

/* A newcomer does not come. The members have shorter deadlines, which do not pass. */
static int missing_rank(uint32_t i, void *arg)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = TESTLIB_EVENT_MS, .op_timeout_ms = 2000 };
	struct swingcoll_comm_opts more_opts = { .timeout_ms = 100 };
	struct swingcoll_comm *comm, *more;

	(void)arg;
	setenv("SWINGCOLL_BOOT_TIMEOUT", "3", 1);
	CHECK_EQ(swingcoll_comm_create(&comm, &id, 2, i, &opts), 0);
	CHECK_EQ(swingcoll_comm_grow(comm, root, 1, &more_opts, &more), -ETIMEDOUT);
	CHECK(strstr(swingcoll_bootstrap_error(), "1 of 2 ranks did not connect"));
	CHECK(strstr(swingcoll_bootstrap_error(), "newcomer 0"));
	CHECK_EQ(sum_is_right(comm), 0);
	/* Nobody says where rank 0 is. */
	unsetenv("SWINGCOLL_ROOT");
	CHECK_EQ(swingcoll_comm_grow(comm, NULL, 1, NULL, &more), -EINVAL);
	CHECK(strstr(swingcoll_bootstrap_error(), "SWINGCOLL_ROOT"));
	CHECK_EQ(swingcoll_comm_grow(comm, root, 0, NULL, &more), -EINVAL);
	CHECK_EQ(swingcoll_comm_join(root, 1, 1, NULL, &more), -EINVAL);
	CHECK_EQ(sum_is_right(comm), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static int missing(void)
{
	choose_root();
	swingcoll_unique_id(&id);
	return testlib_run_ranks(2, missing_rank, NULL);
}

int main(void)
{
	static const struct testlib_test tests[] = {
		{ "newcomers replace ranks that have died", replaced },
		{ "a newcomer with other options", differs },
		{ "a newcomer that does not come", missing },
	};

	ksft_print_header();
	testlib_require_device();
	created = testlib_shared_alloc(sizeof(*created));
	testlib_run_tests(tests, ARRAY_SIZE(tests));
	ksft_finished();
}

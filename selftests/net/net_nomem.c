// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocations fail at random while ranks of several nodes connect and run allreduces: those that the module makes, in
 * system calls and in its work items, and those that RDMA core and driver make for it. Each call succeeds with the right
 * result or fails with an error of few; nothing is left behind, and then all works again. Runs on every node of a cluster
 * at once, on kernels with fault injection: tools/vm/run --nodes 2 --kernel 6.12-kasan.
 *
 *	net_nomem [WORD]	only cases with WORD in their names
 *
 * NET_NOMEM_SECONDS: for each case, 20 if not set.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "net_ranks.h"

#define DEADLINE_MS 5000
#define ROUNDS 8
#define STARTED 1	/* net_shared->started: the communicator exists, */
#define DONE 2		/* and all operations succeeded */
#define MOST_SETS 1000	/* of ranks, in which something fails in the end */
#define MOST 1000000000 /* failures, more than there will be */

/* Kinds of allocations that can fail, folders of debugfs. */
static const char *const kinds[] = { "failslab", "fail_page_alloc" };

/* What a case lets fail: so many in 1000. */
struct nomem {
	struct net_load load;
	int kind, permille;
};

/* ------------------------------------------------------------------ fault injection */

static int knob_open(const char *kind, const char *knob, int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", kind, knob);
	return open(path, flags | O_CLOEXEC);
}

static int put_text(const char *kind, const char *knob, const char *text)
{
	int fd = knob_open(kind, knob, O_WRONLY), ret = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0) {
		ksft_print_msg("%s/%s: %s\n", kind, knob, strerror(errno));
		ret = -errno;
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

static int put(const char *kind, const char *knob, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return put_text(kind, knob, text);
}

static long get(const char *kind, const char *knob)
{
	char text[32] = "";
	int fd = knob_open(kind, knob, O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		ksft_exit_fail_msg("%s/%s: %s\n", kind, knob, strerror(errno));
	close(fd);
	return atol(text);
}

/* Where the module's code is. */
static int find_module(uint64_t *start, uint64_t *end)
{
	unsigned long long bytes, at;
	char line[256], name[64];
	int ret = -ENOENT;
	FILE *f = fopen("/proc/modules", "re");

	while (f && ret && fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %llu %*s %*s %*s %llx", name, &bytes, &at) == 3 &&
		    !strcmp(name, "swingcoll") && at) {
			*start = at;
			*end = at + bytes;
			ret = 0;
		}
	if (f)
		fclose(f);
	return ret;
}

/* Where the function is whose failures the kernel warns of, with a trace: all that vmalloc() allocates. */
static int find_vmalloc(uint64_t *start, uint64_t *end)
{
	static const char function[] = "__vmalloc_node_range";
	unsigned long long at;
	char line[256], name[128];
	FILE *f = fopen("/proc/kallsyms", "re");

	*start = *end = 0;
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %*s %127s", &at, name) != 2)
			continue;
		if (!strncmp(name, function, strlen(function)) && !strchr(name, '.'))
			*start = at;
		else if (*start && at > *start && (!*end || at < *end))
			*end = at;
	}
	if (f)
		fclose(f);
	return *end ? 0 : -ENOENT;
}

/* Only what the module calls fails: its code is on the stack. */
static int aim(const char *kind)
{
	uint64_t start, end, vmalloc, vmalloc_end;

	if (find_module(&start, &end) || find_vmalloc(&vmalloc, &vmalloc_end)) {
		ksft_print_msg("/proc/modules or /proc/kallsyms does not tell where code is\n");
		return -ENOENT;
	}
	return put(kind, "probability", 0) ?:
	       put(kind, "require-start", start) ?:
	       put(kind, "require-end", end) ?:
	       put(kind, "reject-start", vmalloc) ?:
	       put(kind, "reject-end", vmalloc_end) ?:
	       put(kind, "stacktrace-depth", 32) ?:
	       put(kind, "verbose", 0) ?:
	       put(kind, "interval", 1) ?:
	       put_text(kind, "ignore-gfp-wait", "N");
}

/* One of so many allocations fails, which one is left to chance: other work of the machine counts too. */
static int start(const struct nomem *n)
{
	const char *kind = kinds[n->kind];

	return aim(kind) ?: put(kind, "times", MOST) ?:
	       put(kind, "interval", 1000 / n->permille) ?:
	       put(kind, "probability", 100);
}

/* Returns how many have failed. */
static long stop(const struct nomem *n)
{
	const char *kind = kinds[n->kind];

	put(kind, "probability", 0);
	return MOST - get(kind, "times");
}

/* ------------------------------------------------------------------ ranks */

/* Memory was short here, or the communicator had to end because it was short elsewhere. */
static bool is_expected(int error)
{
	switch (error) {
	case -ENOMEM:
	case -ETIMEDOUT:
	case -ECONNRESET:
	case -ECONNABORTED:
		return true;
	}
	return false;
}

/* The communicator exists before anything fails; the first round connects. */
static int nomem_rank(uint32_t i, void *arg)
{
	const struct nomem *n = arg;
	char text[256];
	struct net_rank w;
	int ret = 0;

	CHECK_EQ(net_rank_open(&w, i, DEADLINE_MS, &n->load), 0);
	__atomic_store_n(&net_shared->started[i], STARTED, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&net_shared->go, __ATOMIC_ACQUIRE))
		testlib_sleep_ms(2);
	for (int round = 0; round < ROUNDS && !ret; round++)
		ret = net_run_round(&w, round);
	swingcoll_comm_error(w.comm, text, sizeof(text), NULL);
	if (ret && !is_expected(ret))
		ksft_print_msg("rank %d: %s: %s\n", w.rank, swingcoll_strerror(ret), text);
	CHECK_EQ(net_rank_close(&w), 0);
	if (!ret)
		net_shared->started[i] = DONE;
	return ret && !is_expected(ret);
}

/* Ranks of this node; adds up how many allocations failed, and how many ranks got through. */
static int run_set(const struct nomem *n, long *failures, int *through)
{
	pid_t pid[NET_LOCAL_RANKS];
	int bad;

	memset(net_shared->started, 0, sizeof(net_shared->started));
	net_shared->go = 0;
	testlib_fork_ranks(pid, NET_LOCAL_RANKS, nomem_rank, (void *)n);
	bad = net_any(!net_all_started(pid)) || start(n);
	__atomic_store_n(&net_shared->go, 1, __ATOMIC_RELEASE);
	bad |= testlib_wait_ranks(pid, NET_LOCAL_RANKS);
	*failures += stop(n);
	for (int i = 0; i < NET_LOCAL_RANKS; i++)
		*through += net_shared->started[i] == DONE;
	net_step++;
	return bad;
}

static int run(const struct nomem *n)
{
	uint64_t until = testlib_now_ms() + testlib_env("NET_NOMEM_SECONDS", 20) * 1000ull;
	long failures = 0;
	int bad = 0, sets = 0, through = 0;

	while (sets < MOST_SETS && !net_any(bad) &&
	       net_any(!failures || testlib_now_ms() < until)) {
		bad = run_set(n, &failures, &through);
		sets++;
	}
	ksft_print_msg("node %d: %ld allocations failed, %d of %d ranks got through\n", net_node,
		       failures, through, sets * NET_LOCAL_RANKS);
	return bad || !failures;
}

/* ------------------------------------------------------------------ cases */

static const struct nomem small_objects = { { 3000, 2 }, 0, 10 };
static const struct nomem small_pages = { { 3000, 2 }, 1, 50 };
static const struct nomem large_objects = { { 300000, 2 }, 0, 10 };
static const struct nomem large_pages = { { 300000, 2 }, 1, 50 };
static const struct nomem often = { { 30000, 0 }, 0, 200 };

static int run_small_objects(void)
{
	return run(&small_objects);
}

static int run_small_pages(void)
{
	return run(&small_pages);
}

static int run_large_objects(void)
{
	return run(&large_objects);
}

static int run_large_pages(void)
{
	return run(&large_pages);
}

static int run_often(void)
{
	return run(&often);
}

static const struct testlib_test tests[] = {
	{ "small messages, objects", run_small_objects },
	{ "small messages, pages", run_small_pages },
	{ "large messages, objects", run_large_objects },
	{ "large messages, pages", run_large_pages },
	{ "one of five objects", run_often },
};

static void cases(void)
{
	net_cases(tests, ARRAY_SIZE(tests));
}

int main(int argc, char **argv)
{
	for (unsigned int k = 0; k < ARRAY_SIZE(kinds); k++) {
		int fd = knob_open(kinds[k], "require-start", O_RDONLY);

		if (fd < 0) {
			if (!atoi(getenv("SWINGCOLL_NODE") ?: "0"))
				ksft_print_header();
			ksft_exit_skip(
				"needs a kernel with fault injection: tools/vm/run --kernel 6.12-kasan\n");
		}
		close(fd);
	}
	return net_main(argc, argv, cases);
}

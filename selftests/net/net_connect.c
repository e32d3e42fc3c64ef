// SPDX-License-Identifier: GPL-2.0-only
/*
 * How the ranks of a job find and connect to each other: nodes that disagree on the secret, jobs without a secret, many
 * communicators at once, IPv6, network namespaces, and RDMA devices that do not connect. After each case all resources
 * are released and a new communicator works. Runs on every node of a cluster at once.
 *
 *	net_connect [WORD]	only cases with WORD in their names
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net_ranks.h"

/* ------------------------------------------------------------------ another secret */

/* The ranks of the last node have another secret: they learn that at once, the others at their deadline. */
static int stranger_rank(uint32_t i, void *arg)
{
	int rank = net_layout_rank(&net_cluster, i), ret;
	bool stranger = net_node == net_nodes - 1;
	char byte = 0, all[NET_MAX_NODES * NET_LOCAL_RANKS];
	struct swingcoll_bootstrap *boot;

	(void)arg;
	net_set_rank_env(&net_cluster, rank, net_step);
	setenv("SWINGCOLL_BOOT_TIMEOUT", "10", 1);
	if (stranger)
		setenv("SWINGCOLL_SECRET", NET_SECRET " or not", 1);
	ret = swingcoll_bootstrap_env(&boot);
	/* Rank 0 has accepted this rank, but then misses others. */
	if (!ret)
		ret = boot->allgather(boot->arg, &byte, all, 1);
	if (ret == (stranger ? -EACCES : -ETIMEDOUT) &&
	    strstr(swingcoll_bootstrap_error(),
		   stranger ? "has another secret" : "does not know the secret"))
		return 0;
	ksft_print_msg("rank %d: %d, %s\n", rank, ret, swingcoll_bootstrap_error());
	return 1;
}

static int stranger(void)
{
	return net_any(testlib_run_ranks(NET_LOCAL_RANKS, stranger_rank, NULL));
}

/* ------------------------------------------------------------------ no secret */

/* How many lines of the file name the variable that gives a secret. */
static int warnings(int fd)
{
	char text[4096];
	ssize_t bytes = pread(fd, text, sizeof(text) - 1, 0);
	int n = 0;

	text[bytes > 0 ? bytes : 0] = 0;
	for (char *at = text; (at = strstr(at, "set SWINGCOLL_SECRET_FILE")); at++)
		n++;
	return n;
}

/* Only rank 0 knows that other hosts take part. It says so once, and not if there is a secret. */
static int warned_rank(uint32_t i, void *arg)
{
	const int *given = arg;
	int rank = net_layout_rank(&net_cluster, i), want = !rank && !*given;
	int file = memfd_create("stderr", MFD_CLOEXEC), was = dup(STDERR_FILENO), ret, got;
	struct swingcoll_bootstrap *boot;

	CHECK(file >= 0 && was >= 0);
	net_set_rank_env(&net_cluster, rank, net_step);
	if (!*given)
		unsetenv("SWINGCOLL_SECRET");
	dup2(file, STDERR_FILENO);
	ret = swingcoll_bootstrap_env(&boot);
	dup2(was, STDERR_FILENO);
	CHECK_EQ(ret, 0);
	swingcoll_bootstrap_free(boot);
	got = warnings(file);
	if (got != want)
		ksft_print_msg("rank %d, %s secret: %d warnings, not %d\n", rank,
			       *given ? "with a" : "without a", got, want);
	close(file);
	close(was);
	return got != want;
}

static int warned(void)
{
	int bad = 0;

	for (int given = 0; given < 2; given++)
		bad |= net_any(testlib_run_ranks(NET_LOCAL_RANKS, warned_rank, &given));
	return bad;
}

/* ------------------------------------------------------------------ many at once */

#define JOBS 4
#define JOB_COMMS 4

/* Each rank belongs to one job and creates its communicators, with their connections, at once. */
static int storm_rank(uint32_t k, void *arg)
{
	/* The plan that is chosen has few connections: all of them count against the limits of one user. */
	struct swingcoll_comm_opts opts = { .timeout_ms = TESTLIB_EVENT_MS };
	int rank = net_layout_rank(&net_cluster, k % NET_LOCAL_RANKS), n = net_cluster.nranks;
	struct coll_case c = {
		.coll = SWINGCOLL_ALLREDUCE, .dtype = SWINGCOLL_I32, .count = 501, .in_place = true
	};
	struct swingcoll_comm *comm[JOB_COMMS];
	struct swingcoll_req *req[JOB_COMMS];
	struct swingcoll_bootstrap *boot;
	void *mem[JOB_COMMS];
	int ret;

	(void)arg;
	net_set_rank_env(&net_cluster, rank, net_step);
	net_set_root_offset(2 + k / NET_LOCAL_RANKS);
	ret = swingcoll_bootstrap_auto(&boot);
	if (ret)
		ksft_print_msg("rank %d: %s\n", rank, swingcoll_bootstrap_error());
	CHECK_EQ(ret, 0);
	for (int i = 0; i < JOB_COMMS; i++) {
		ret = swingcoll_comm_create_from(&comm[i], boot, &opts);
		if (ret)
			ksft_print_msg("rank %d: %s\n", rank, swingcoll_bootstrap_error());
		CHECK_EQ(ret, 0);
		mem[i] = malloc(coll_bytes(&c, n));
		coll_fill(&c, n, rank, mem[i], i);
	}
	swingcoll_bootstrap_free(boot);
	for (int i = 0; i < JOB_COMMS; i++)
		CHECK_EQ(coll_icall(&c, mem[i], mem[i], comm[i], &req[i]), 0);
	for (int i = 0; i < JOB_COMMS; i++) {
		ret = swingcoll_wait(req[i], NULL);
		if (ret) {
			char text[256];

			swingcoll_comm_error(comm[i], text, sizeof(text), NULL);
			ksft_print_msg("job %d, rank %d: %s\n", k / NET_LOCAL_RANKS, rank, text);
		}
		CHECK_EQ(ret, 0);
		CHECK_EQ(coll_check(&c, n, rank, mem[i], i), 0);
	}
	for (int i = 0; i < JOB_COMMS; i++)
		CHECK_EQ(swingcoll_comm_destroy(comm[i]), 0);
	return 0;
}

static int storm(void)
{
	return net_any(testlib_run_ranks(JOBS * NET_LOCAL_RANKS, storm_rank, NULL));
}

/* ------------------------------------------------------------------ IPv6 */

/* An IPv6 address of the interface with this IPv4 address, and the name of the interface. */
static bool other_address(const char *ipv4, char *ipv6, char *card)
{
	struct ifaddrs *all, *i, *k;
	struct in_addr in;
	bool found = false;

	if (inet_pton(AF_INET, ipv4, &in) != 1 || getifaddrs(&all))
		return false;
	for (i = all; i && !found; i = i->ifa_next) {
		const struct sockaddr_in *a = (void *)i->ifa_addr;

		if (!a || a->sin_family != AF_INET || a->sin_addr.s_addr != in.s_addr)
			continue;
		for (k = all; k && !found; k = k->ifa_next) {
			const struct sockaddr_in6 *b = (void *)k->ifa_addr;

			if (!b || b->sin6_family != AF_INET6 || strcmp(k->ifa_name, i->ifa_name) ||
			    IN6_IS_ADDR_LINKLOCAL(&b->sin6_addr))
				continue;
			inet_ntop(AF_INET6, &b->sin6_addr, ipv6, INET6_ADDRSTRLEN);
			snprintf(card, IF_NAMESIZE, "%s", i->ifa_name);
			found = true;
		}
	}
	freeifaddrs(all);
	return found;
}

/* Bytes that this node has received by IPv6, on these interfaces. */
static uint64_t ipv6_bytes(char card[][IF_NAMESIZE], int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++) {
		char path[64], name[64];
		unsigned long long value;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/net/dev_snmp6/%s", card[i]);
		f = fopen(path, "r");
		while (f && fscanf(f, "%63s %llu", name, &value) == 2)
			if (!strcmp(name, "Ip6InOctets"))
				sum += value;
		if (f)
			fclose(f);
	}
	return sum;
}

static const struct net_steady by_ipv6 = { { 100001, 2 }, 3, 0 };

static int ipv6(void)
{
	static char root[NET_MAX_NODES][INET6_ADDRSTRLEN];
	char addrs[16 * INET6_ADDRSTRLEN] = "", mine[INET6_ADDRSTRLEN] = "",
			text[INET6_ADDRSTRLEN + 16];
	char card[16][IF_NAMESIZE], *list, *old_list, *old_root;
	uint64_t least = 4ull * by_ipv6.load.count * by_ipv6.rounds, got;
	int n = 0, bad = 0;

	CHECK(getenv("SWINGCOLL_ADDRS"));
	list = strdup(getenv("SWINGCOLL_ADDRS"));
	old_list = strdup(list);
	old_root = strdup(getenv("SWINGCOLL_ROOT"));
	for (char *a = strtok(list, ","); a && n < 16; a = strtok(NULL, ","), n++) {
		if (!other_address(a, mine, card[n])) {
			ksft_print_msg("no IPv6 address beside %s\n", a);
			bad = 1;
		}
		snprintf(addrs + strlen(addrs), sizeof(addrs) - strlen(addrs), "%s%s", n ? "," : "",
			 mine);
	}
	/* A link that was down has lost its IPv6 addresses. */
	if (net_any(bad)) {
		free(list);
		free(old_list);
		free(old_root);
		return KSFT_SKIP;
	}
	/* All nodes meet at the first address of node 0. */
	snprintf(mine, sizeof(mine), "%.*s", (int)strcspn(addrs, ","), addrs);
	net_allgather(mine, root, sizeof(mine));
	snprintf(text, sizeof(text), "[%s]%s", root[0], strrchr(old_root, ':'));
	setenv("SWINGCOLL_ROOT", text, 1);
	setenv("SWINGCOLL_ADDRS", addrs, 1);
	got = ipv6_bytes(card, n);
	bad |= testlib_run_ranks(NET_LOCAL_RANKS, net_steady_rank, (void *)&by_ipv6);
	got = ipv6_bytes(card, n) - got;
	setenv("SWINGCOLL_ROOT", old_root, 1);
	setenv("SWINGCOLL_ADDRS", old_list, 1);
	if (got < least) {
		ksft_print_msg("node %d has received %llu bytes by IPv6, not %llu\n", net_node,
			       (unsigned long long)got, (unsigned long long)least);
		bad = 1;
	}
	free(list);
	free(old_list);
	free(old_root);
	return net_any(bad);
}

/* ------------------------------------------------------------------ network namespaces */

/*
 * The ranks of the last node enter a network namespace without interfaces before they create the communicator. Their
 * sockets are older and still work, but RDMA connections must not use devices of another namespace.
 */
static int isolated_rank(uint32_t i, void *arg)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = 3000 };
	int rank = net_layout_rank(&net_cluster, i), value = 1, culprit, ret;
	bool inside = net_node == net_nodes - 1;
	struct swingcoll_bootstrap *boot;
	struct swingcoll_comm *comm;
	char text[256];

	(void)arg;
	net_set_rank_env(&net_cluster, rank, net_step);
	CHECK_EQ(swingcoll_bootstrap_auto(&boot), 0);
	if (inside)
		CHECK_EQ(unshare(CLONE_NEWNET), 0);
	CHECK_EQ(swingcoll_comm_create_from(&comm, boot, &opts), 0);
	ret = swingcoll_allreduce(&value, &value, 1, SWINGCOLL_I32, SWINGCOLL_SUM, comm);
	swingcoll_comm_error(comm, text, sizeof(text), &culprit);
	if (ret != -ETIMEDOUT || culprit < 0 ||
	    net_layout_node(&net_cluster, culprit) == net_node) {
		ksft_print_msg("rank %d: %d, rank at fault %d: %s\n", rank, ret, culprit, text);
		return 1;
	}
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	swingcoll_bootstrap_free(boot);
	return 0;
}

static int isolated(void)
{
	return net_any(testlib_run_ranks(NET_LOCAL_RANKS, isolated_rank, NULL));
}

/* ------------------------------------------------------------------ devices of two kinds */

/* Where only RDMA is allowed, ranks of nodes whose devices do not connect learn that at once. */
static int unlike_rank(uint32_t i, void *arg)
{
	struct swingcoll_comm_opts opts = { .timeout_ms = NET_TIMEOUT_MS };
	int rank = net_layout_rank(&net_cluster, i), ret;
	struct swingcoll_comm *comm;
	const char *text;

	(void)arg;
	net_set_rank_env(&net_cluster, rank, net_step);
	setenv("SWINGCOLL_TRANSPORT", "rdma", 1);
	ret = swingcoll_comm_create_auto(&comm, &opts);
	text = swingcoll_bootstrap_error();
	if (ret == -EOPNOTSUPP && strstr(text, "RoCE devices") && strstr(text, "iWARP devices"))
		return 0;
	ksft_print_msg("rank %d: %d, %s\n", rank, ret, text);
	return 1;
}

static int unlike(void)
{
	bool iwarp = net_is_iwarp();

	/* Both are asked on all nodes: each question is a meeting of the nodes. */
	if (!(net_any(iwarp) & net_any(!iwarp))) {
		ksft_print_msg(
			"all nodes have RDMA devices of one kind, or none: tools/vm/run --rdma siw,rxe\n");
		return KSFT_SKIP;
	}
	return net_any(testlib_run_ranks(NET_LOCAL_RANKS, unlike_rank, NULL));
}

/* ------------------------------------------------------------------ all cases */

static const struct testlib_test tests[] = {
	{ "a node with another secret", stranger },
	{ "a job without a secret", warned },
	{ "many communicators connect at once", storm },
	{ "IPv6", ipv6 },
	{ "a network namespace without interfaces", isolated },
	{ "RDMA devices of two kinds", unlike },
};

static void cases(void)
{
	net_cases(tests, ARRAY_SIZE(tests));
}

int main(int argc, char **argv)
{
	return net_main(argc, argv, cases);
}

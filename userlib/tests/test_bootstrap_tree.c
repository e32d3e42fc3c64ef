// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bootstrap by TCP with many ranks: places in the tree, packed messages, exchanges, a rank that dies, ranks that cannot
 * reach each other; and 4096 ranks, with the bytes that pass through rank 0. SWC_TEST_SHORT=1: 600. TAP on stdout.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "random.h"
#include "src/bootstrap/pack.h"
#include "src/bootstrap/tcp.h"
#include "tap.h"

/* ---- places ---- */

/* Every rank but 0 is a child of its parent, with the same ranks below it. Returns the number of levels, or -1. */
static int check_tree(int nranks)
{
	int levels = 0;

	for (int rank = 0; rank < nranks; rank++) {
		struct tree t, up;
		int end = rank + 1, found = 0;

		swc_tcp_tree_place(&t, nranks, rank);
		levels = rank ? levels : t.height;
		if (t.nchildren > TREE_CHILDREN || t.up != -1 || t.used)
			return -1;
		for (int i = 0; i < t.nchildren; i++) {
			if (t.child[i].first != end || t.child[i].fd != -1)
				return -1;
			end = t.child[i].end;
		}
		if (t.end != end || (!rank && (t.parent != -1 || end != nranks)))
			return -1;
		if (!rank)
			continue;
		if (t.parent < 0 || t.parent >= rank)
			return -1;
		swc_tcp_tree_place(&up, nranks, t.parent);
		for (int i = 0; i < up.nchildren; i++)
			found += up.child[i].first == rank && up.child[i].end == t.end;
		if (found != 1 || t.height >= up.height)
			return -1;
	}
	return levels;
}

static void test_places(void)
{
	bool good = true;

	for (int n = 1; n <= 300; n++)
		good &= check_tree(n) >= 0;
	ok(good, "trees of 1 to 300 ranks fit together");
	ok(check_tree(4096) == 4, "4096 ranks are 4 levels below rank 0");
	ok(check_tree(SWC_MAX_RANKS) <= 6, "65536 ranks are at most 6 levels below rank 0");
}

/* ---- packing ---- */

/* Records of @bytes in all, @share percent of whose bytes are not zero, or, of all but the first, not as before. */
static bool pack_one(size_t bytes, size_t record, uint32_t share)
{
	uint8_t *data = calloc(bytes + 1, 1), *back = malloc(bytes + 1);
	uint8_t *packed = malloc(swc_pack_bound(bytes) + 1);
	size_t n;
	bool good;

	for (size_t i = 0; i < bytes; i++) {
		uint8_t other = rnd(100) < share ? (uint8_t)rnd(256) : 0;

		data[i] = i < record ? other : data[i - record] ^ other;
	}
	n = swc_pack(packed, data, bytes, record);
	back[bytes] = 0x5a;
	good = n <= swc_pack_bound(bytes) && !swc_unpack(back, bytes, record, packed, n) &&
	       !memcmp(back, data, bytes) && back[bytes] == 0x5a;
	packed[n] = 0;
	good &= swc_unpack(back, bytes, record, packed, n + 1) == -EPROTO;
	if (n)
		good &= swc_unpack(back, bytes, record, packed, n - 1) == -EPROTO;
	free(data);
	free(back);
	free(packed);
	return good;
}

static void test_pack(void)
{
	uint8_t same[8 * 160], packed[2000];
	bool good = true;

	for (size_t bytes = 0; bytes < 300; bytes++)
		for (uint32_t share = 0; share <= 100; share += 20)
			good &= pack_one(bytes, bytes, share) &&
				pack_one(bytes, 1 + rnd(300), share) &&
				pack_one(10 * bytes, bytes, share / 10);
	ok(good,
	   "records of 0 to 299 bytes are packed and unpacked, and a byte too many or too few is refused");
	memset(same, 7, sizeof(same));
	ok(swc_pack(packed, same, sizeof(same), 160) == 20 + 160,
	   "8 equal records of 160 bytes take as many and 20");
}

/* ---- ranks as processes ---- */

static struct swc_boot_env job(int rank, int nranks, int port, uint32_t timeout_ms)
{
	struct swc_boot_env env = {
		.rank = rank, .nranks = nranks, .host = "127.0.0.1", .timeout_ms = timeout_ms
	};

	snprintf(env.port, sizeof(env.port), "%d", port);
	snprintf(env.root, sizeof(env.root), "127.0.0.1:%d", port);
	return env;
}

/* A port that is free now, and not in the range of ports that outgoing connections get. */
static int free_port(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	for (int port = 10000 + getpid() % 20000; port < 32768; port++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		bool taken;

		sa.sin_port = htons((uint16_t)port);
		taken = fd < 0 || bind(fd, (void *)&sa, sizeof(sa));
		close(fd);
		if (!taken)
			return port;
	}
	exit(2);
}

static int exchange(struct swingcoll_bootstrap *boot)
{
	static const size_t sizes[] = { 1, 8, 700, 10001 };
	int bad = 0;

	for (size_t s = 0; !bad && s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		size_t n = sizes[s];
		char *mine = malloc(n), *all = malloc(n * (size_t)boot->nranks);

		memset(mine, boot->rank % 100, n);
		bad = boot->allgather(boot->arg, mine, all, n);
		for (size_t i = 0; !bad && i < n * (size_t)boot->nranks; i++)
			bad = all[i] != (char)((int)(i / n) % 100);
		free(mine);
		free(all);
	}
	return bad;
}

struct many {
	int nranks;
	int port;
	bool secret;
	int victim;    /* the rank that dies after the first exchange, or -1 */
	int unlisting; /* the rank that may not open another file for listening, or -1 */
	bool tree;     /* the exchanges go through a tree */
};

/* What a rank finds, as its exit status: 0 is right. */
static int run_rank(const struct many *m, int rank)
{
	struct swc_boot_env env = job(rank, m->nranks, m->port, 30000);
	struct swingcoll_bootstrap *boot;
	char name[32];
	int ret;

	alarm(120);
	if (m->secret) {
		env.secret.given = true;
		memset(env.secret.key, 7, sizeof(env.secret.key));
	}
	if (rank == m->unlisting) {
		int next = dup(0);
		struct rlimit one_more = { (rlim_t)next + 1, (rlim_t)next + 1 };

		close(next);
		setrlimit(RLIMIT_NOFILE, &one_more);
	}
	ret = swc_boot_tcp(&boot, &env);
	if (ret || ((struct tcp *)boot->arg)->tree.used != m->tree) {
		printf("# rank %d: %d %s\n", rank, ret, swingcoll_bootstrap_error());
		return 1;
	}
	ret = exchange(boot);
	if (ret) {
		printf("# rank %d: exchange: %d %s\n", rank, ret, swingcoll_bootstrap_error());
		return 2;
	}
	if (m->victim >= 0) {
		if (rank == m->victim)
			raise(SIGKILL);
		ret = exchange(boot);
		snprintf(name, sizeof(name), "rank %d (", m->victim);
		if (ret != -ECONNRESET || !strstr(swingcoll_bootstrap_error(), name)) {
			printf("# rank %d: %d %s\n", rank, ret, swingcoll_bootstrap_error());
			return 3;
		}
		if (boot->allgather(boot->arg, "", name, 0) != -ECONNRESET)
			return 4;
	}
	swingcoll_bootstrap_free(boot);
	return 0;
}

static bool run_ranks(const struct many *m)
{
	bool good = true;
	int status;

	fflush(stdout);
	for (int rank = 0; rank < m->nranks; rank++) {
		if (!fork()) {
			if (m->unlisting >= 0)
				freopen("/dev/null", "w", stderr);
			status = run_rank(m, rank);
			fflush(stdout);
			_exit(status);
		}
	}
	for (int rank = 0; rank < m->nranks; rank++) {
		wait(&status);
		good &= WIFEXITED(status) ? !WEXITSTATUS(status)
					  : m->victim >= 0 && WTERMSIG(status) == SIGKILL;
	}
	return good;
}

static void test_processes(void)
{
	struct many m = {
		.nranks = 100, .port = free_port(), .victim = -1, .unlisting = -1, .tree = true
	};
	struct many star = { .nranks = 64, .port = m.port, .victim = -1, .unlisting = -1 };
	struct tree t = { .parent = 0 };

	ok(run_ranks(&m), "100 ranks exchange data by a tree");
	ok(run_ranks(&star), "64 do so through rank 0");
	m.secret = true;
	ok(run_ranks(&m), "100 ranks with a secret");
	/* Not below rank 0 itself, which would be the first to notice. */
	for (m.victim = 1; !t.parent || t.nchildren;)
		swc_tcp_tree_place(&t, m.nranks, ++m.victim);
	ok(run_ranks(&m), "a leaf dies: all are told which");
	m.victim = 1;
	swc_tcp_tree_place(&t, m.nranks, m.victim);
	ok(t.nchildren && run_ranks(&m), "a rank with others below it dies: likewise");
	m.victim = -1;
	m.unlisting = 1;
	m.tree = false;
	ok(run_ranks(&m),
	   "a rank cannot be reached by those below it: all exchange through rank 0");
}

/* ---- thousands of ranks, as threads ---- */

static __thread bool counted; /* rank 0 */
static atomic_ullong count_bytes;

static ssize_t count(ssize_t n)
{
	if (counted && n > 0)
		count_bytes += (unsigned long long)n;
	return n;
}

/* In place of the C library's. */
ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
	return count(syscall(SYS_sendto, fd, data, bytes, flags, NULL, 0));
}

ssize_t recv(int fd, void *data, size_t bytes, int flags)
{
	return count(syscall(SYS_recvfrom, fd, data, bytes, flags, NULL, NULL));
}

static struct {
	int nranks;
	int port;
	char *records; /* where all ranks receive the same */
	char *outcomes;
	atomic_int bad;
} big;

/* As swingcoll_comm_create_from() describes a rank on one of nodes with 8 ranks and 4 addresses each. */
static void describe(struct swc_boot_record *r, int rank, int nranks)
{
	*r = (struct swc_boot_record){ .magic = SWC_BOOT_MAGIC,
				       .version = SWC_BOOT_VERSION,
				       .abi = 1,
				       .rank = (uint32_t)rank,
				       .nranks = (uint32_t)nranks,
				       .port = { 18574, 18575 },
				       .topo = 0x123456789abcdef,
				       .options = 0xfedcba987654321,
				       .secret = 0x1122334455667788,
				       .node = 0x9e3779b97f4a7c15 * (uint64_t)(rank / 8 + 1),
				       .pid = 4000 + rank,
				       .naddrs = 4,
				       .timeout_ms = 30000 };
	for (int i = 0; i < 4; i++) {
		uint8_t a[4] = { 10, (uint8_t)i, (uint8_t)(rank >> 11), (uint8_t)(rank >> 3) };

		r->addr[i] = (struct swc_boot_addr){ .family = AF_INET, .speed = 2000 };
		memcpy(r->addr[i].bytes, a, sizeof(a));
	}
	snprintf(r->host, sizeof(r->host), "node%04d.cluster.example", rank / 8);
}

static void *big_rank(void *arg)
{
	int rank = (int)(intptr_t)arg, ret;
	struct swc_boot_env env = job(rank, big.nranks, big.port, 300000);
	struct swingcoll_bootstrap *boot;
	struct swc_boot_record mine, last;
	char outcome[SWC_BOOT_TEXT + 8] = "";

	counted = !rank;
	describe(&mine, rank, big.nranks);
	ret = swc_boot_tcp(&boot, &env);
	if (!ret) {
		ret = boot->allgather(boot->arg, &mine, big.records, sizeof(mine));
		describe(&last, big.nranks - 1, big.nranks);
		big.bad += !ret && memcmp(big.records + sizeof(last) * (size_t)(big.nranks - 1),
					  &last, sizeof(last)) != 0;
	}
	if (!ret)
		ret = boot->allgather(boot->arg, outcome, big.outcomes, sizeof(outcome));
	if (ret) {
		printf("# rank %d: %d %s\n", rank, ret, swingcoll_bootstrap_error());
		big.bad++;
	} else {
		swingcoll_bootstrap_free(boot);
	}
	return NULL;
}

static void *map(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void test_thousands(void)
{
	int nranks = short_form() ? 600 : 4096, started = 0;
	size_t bytes = sizeof(struct swc_boot_record), outcome = SWC_BOOT_TEXT + 8;
	pthread_t *thread = calloc((size_t)nranks, sizeof(*thread));
	/* Both ends of all connections are in this process. */
	struct rlimit files = { 0 };
	struct timespec a, b;
	pthread_attr_t attr;
	char text[160];
	double s;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_max < (rlim_t)nranks * 9 / 2) {
		snprintf(text, sizeof(text), "# SKIP %d ranks need a limit of %d open files",
			 nranks, nranks * 9 / 2);
		ok(true, text);
		free(thread);
		return;
	}
	big.nranks = nranks;
	big.port = free_port();
	big.records = map(bytes * (size_t)nranks);
	big.outcomes = map(outcome * (size_t)nranks);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 512 << 10);
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (; started < nranks; started++)
		if (pthread_create(&thread[started], &attr, big_rank, (void *)(intptr_t)started))
			break;
	for (int i = 0; i < started && started == nranks; i++)
		pthread_join(thread[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &b);
	s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
	printf("# %d ranks in %.1f s: %.2f MB through rank 0; as a star that is %.0f MB\n", nranks,
	       s, (double)count_bytes / 1e6,
	       (double)(bytes + outcome) * nranks * (double)(nranks - 1) / 1e6);
	snprintf(text, sizeof(text), "%d ranks bootstrap with at most %d MB through rank 0", nranks,
		 nranks * 50 / 4096);
	ok(started == nranks && !big.bad &&
		   count_bytes <= (unsigned long long)nranks * 50000000 / 4096,
	   text);
	free(thread);
}

int main(void)
{
	printf("TAP version 13\n");
	seed_rnd();
	test_places();
	test_pack();
	test_processes();
	test_thousands();
	return done();
}

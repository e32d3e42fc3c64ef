// SPDX-License-Identifier: GPL-2.0-only
/* What the records of all ranks tell: nodes, the topology and its figures, other options. TAP on stdout. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/bootstrap/bootstrap.h"
#include "tap.h"

#define MAX_NODES 64

static struct swc_boot_record rec[MAX_NODES];

/* Of every node: the speeds of its addresses, as digits, in Gbit/s. */
static const char *speeds = "0";
/* All nodes with this letter have no RDMA. */
static char without_rdma;

/* One letter per rank names its node. */
static void make_records(const char *where)
{
	for (uint32_t i = 0; where[i]; i++) {
		rec[i] = (struct swc_boot_record){ .magic = SWC_BOOT_MAGIC,
						   .version = SWC_BOOT_VERSION,
						   .abi = 1,
						   .rank = i,
						   .nranks = (uint32_t)strlen(where),
						   .port = { 4791, 4792 },
						   .conns = 100 + (i + 2) % 4,
						   .node = (uint64_t)where[i],
						   .pid = (int)i + 100,
						   .naddrs = (uint32_t)strlen(speeds),
						   .host = "host" };
		for (uint32_t k = 0; speeds[k]; k++) {
			rec[i].addr[k].family = AF_INET;
			rec[i].addr[k].speed = (uint16_t)((speeds[k] - '0') * 10);
		}
		if (where[i] == without_rdma)
			rec[i].port[SWC_TRANSPORT_RDMA] = 0;
	}
}

static bool numbered(const char *where, const char *want, bool in_order)
{
	struct swc_world w;
	bool good;
	char why[256];

	make_records(where);
	good = !swc_world_init(&w, rec, (uint32_t)strlen(where), why, sizeof(why));
	for (uint32_t i = 0; good && where[i]; i++)
		good = w.rank_node[i] == (uint32_t)(want[i] - '0');
	good = good && w.in_order == in_order;
	swc_world_free(&w);
	return good;
}

/* Ranks 0 to 3 may have 102, 103, 100 and 101 connections. */
static bool least_conns(const char *where, uint32_t want)
{
	struct swc_world w;
	char why[256];
	bool good;

	make_records(where);
	good = !swc_world_init(&w, rec, (uint32_t)strlen(where), why, sizeof(why)) &&
	       w.conns == want;
	swc_world_free(&w);
	return good;
}

/* Does an option's topology become @want, or fail with @why_not in the message? */
static bool shaped(const char *where, const char *text, const char *want, const char *why_not)
{
	struct swc_world w;
	struct swc_topo t;
	char why[256] = "", got[128] = "";
	bool good;
	int ret;

	make_records(where);
	ret = swc_world_init(&w, rec, (uint32_t)strlen(where), why, sizeof(why));
	if (!ret)
		ret = swc_world_topo(&w, text, &t, why, sizeof(why));
	if (!ret) {
		swc_topo_format(&t, got, sizeof(got));
		swc_topo_free(&t);
	}
	good = want ? !ret && !strcmp(got, want) : ret && strstr(why, why_not);
	if (!good)
		printf("# %s %s: %d %s %s\n", where, text ? text : "-", ret, got, why);
	swc_world_free(&w);
	return good;
}

static bool shaped_with(const char *rails, const char *where, const char *text, const char *want)
{
	bool good;

	speeds = rails;
	good = shaped(where, text, want, NULL);
	speeds = "0";
	return good;
}

/* Without RDMA on nodes with this letter. */
static bool shaped_by_tcp(char letter, const char *rails, const char *where, const char *text,
			  const char *want)
{
	bool good;

	without_rdma = letter;
	good = shaped_with(rails, where, text, want);
	without_rdma = 0;
	return good;
}

static bool refused(int error, const char *word)
{
	struct swc_world w;
	char why[256] = "";
	int ret = swc_world_init(&w, rec, rec->nranks, why, sizeof(why));

	swc_world_free(&w);
	if (ret == error && strstr(why, word))
		return true;
	printf("# %d, %s\n", ret, why);
	return false;
}

/* Ranks on nodes with any hashes, in turn: rank i on node i modulo @nnodes. */
static bool numbers_many(uint32_t nranks, uint32_t nnodes)
{
	struct swc_boot_record *many = calloc(nranks, sizeof(*many));
	struct swc_world w;
	char why[256];
	bool good;

	for (uint32_t i = 0; i < nranks; i++)
		many[i] = (struct swc_boot_record){ .magic = SWC_BOOT_MAGIC,
						    .version = SWC_BOOT_VERSION,
						    .rank = i,
						    .nranks = nranks,
						    .port = { 4791, 4792 },
						    .node = (i % nnodes + 1) *
							    0x9e3779b97f4a7c15ull,
						    .naddrs = 1 };
	good = !swc_world_init(&w, many, nranks, why, sizeof(why)) && w.nnodes == nnodes;
	for (uint32_t i = 0; good && i < nranks; i++)
		good = w.rank_node[i] == i % nnodes;
	swc_world_free(&w);
	free(many);
	return good;
}

static void test_world(void)
{
	ok(numbers_many(SWC_MAX_RANKS, SWC_MAX_RANKS), "65536 ranks on as many nodes");
	ok(numbers_many(SWC_MAX_RANKS, 8192), "65536 ranks on 8192 nodes, in turn");
	ok(numbered("aabb", "0011", true) && numbered("baba", "0101", false) &&
		   numbered("a", "0", true) && numbered("zyxz", "0120", false) &&
		   numbered("abbbc", "01112", true),
	   "nodes are numbered by their lowest ranks");
	ok(least_conns("a", 102) && least_conns("ab", 102) && least_conns("aabb", 100),
	   "all ranks count with the connections that the one with the least may have");
	ok(shaped("aabb", NULL, "switch:2*2", NULL) && shaped("abc", NULL, "switch:3", NULL) &&
		   shaped("aab", NULL, "switch:2*2,1", NULL) &&
		   shaped("abab", NULL, "switch:4", NULL),
	   "without a topology: a switch; each rank is a node if ranks are not numbered node by node");
	ok(shaped_with("00", "ab", NULL, "switch:2@2rails") &&
		   shaped_with("1111", "aabb", NULL, "switch:2*2@1Gbps,4rails") &&
		   shaped_with("11", "abab", "switch:4@25Gbps", "switch:4@25Gbps,2rails") &&
		   shaped_with("111", "ab", "switch:2@2rails", "switch:2@1Gbps,2rails") &&
		   shaped_with("12", "ab", NULL, "switch:2@2Gbps,1rails") &&
		   shaped_with("1414", "ab", NULL, "switch:2@4Gbps,2rails") &&
		   shaped_with("04", "ab", NULL, "switch:2@4Gbps,1rails") &&
		   shaped_with("11", "aa", NULL, "switch:1*2") &&
		   shaped_with("1111", "abcd", "torus:2x2", "torus:2x2"),
	   "a switch gets as many rails as nodes have addresses of the same speed, with that as rate");
	ok(shaped_by_tcp('b', "0", "abc", NULL, "switch:3@tcp") &&
		   shaped_by_tcp('a', "00", "aab", NULL, "switch:2*2,1@tcp,2rails") &&
		   shaped_by_tcp('b', "9", "ab", NULL, "switch:2@9Gbps,tcp") &&
		   shaped_by_tcp('b', "D", "ab", NULL, "switch:2@20Gbps,tcp") &&
		   shaped_by_tcp('b', "X", "ab", NULL, "switch:2@tcp") &&
		   shaped_with("X", "ab", NULL, "switch:2@40Gbps") &&
		   shaped_by_tcp('b', "X", "ab", "switch:2@100Gbps", "switch:2@100Gbps,tcp") &&
		   shaped_by_tcp('c', "99", "abc", "ring:3", "ring:3@tcp") &&
		   shaped_by_tcp('d', "9", "abc", NULL, "switch:3@9Gbps"),
	   "TCP between any nodes is told, with the rate if that is what limits");
	ok(shaped("aabbccdd", "torus:2x2", "torus:2x2*2", NULL) &&
		   shaped("aabbccdd", "torus:2x2*2", "torus:2x2*2", NULL) &&
		   shaped("aabccd", "torus:2x2@100Gbps", "torus:2x2*2,1,2,1@100Gbps", NULL) &&
		   shaped("abcd", "torus:2x2", "torus:2x2", NULL),
	   "a topology gets the real number of ranks per node");
	ok(shaped("abcdabcd", "torus:2x2", NULL, "--map-by slot") &&
		   shaped("abcdabcd", "torus:2x2*2", NULL, "rank 4 is on the node of rank 0"),
	   "ranks that are not numbered node by node are refused");
	ok(shaped("aabb", "torus:2x2", "torus:2x2", NULL) &&
		   shaped("abab", "ring:4", "ring:4", NULL),
	   "a topology with one rank per node fits any placement");
	ok(shaped("aabbb", "ring:3", NULL, "5 ranks on 2 nodes") &&
		   shaped("aaab", "ring:2*2", NULL, "other numbers") &&
		   shaped("aabb", "ring", NULL, "topology"),
	   "a topology that does not fit is refused");

	make_records("aabb");
	memset(rec[2].port, 0, sizeof(rec[2].port));
	ok(refused(-EOPNOTSUPP, "rank 2 (host, pid 102): ranks are on 2 nodes"),
	   "several nodes: a node without transports is refused");
	make_records("aabb");
	for (int i = 0; i < 4; i++) {
		memset(rec[i].port, 0, sizeof(rec[i].port));
		rec[i].port[SWC_TRANSPORT_TLS] = 4793;
	}
	ok(refused(-EPERM, "tls needs a secret"), "encryption without a secret is refused");
	for (int i = 0; i < 4; i++)
		rec[i].secret = 7;
	ok(refused(0, ""), "encryption with a secret is not");
	make_records("aaaa");
	memset(rec[2].port, 0, sizeof(rec[2].port));
	rec[2].naddrs = 0;
	ok(numbered("aaaa", "0000", true), "one node: RDMA and addresses are not needed");
	make_records("aabb");
	rec[2].naddrs = 0;
	strcpy(rec[2].text, "no device");
	ok(refused(-EADDRNOTAVAIL, "no device"),
	   "several nodes: a node without addresses is refused");
	make_records("aabb");
	rec[1].error = -ENODEV;
	strcpy(rec[1].text, "no module");
	ok(refused(-ENODEV, "rank 1 (host, pid 101): no module"),
	   "an error of one rank is an error on all");
	make_records("aabb");
	rec[3].topo = 1;
	ok(refused(-EPROTO, "topology"), "different topologies are refused");
	make_records("aabb");
	rec[3].secret = 1;
	ok(refused(-EACCES, "rank 3 (host, pid 103): its secret is not that of rank 0"),
	   "different secrets are refused");
	make_records("aabb");
	rec[3].options = 1;
	ok(refused(-EPROTO, "options"), "different options are refused");
	make_records("aabb");
	for (int i = 0; i < 4; i++)
		rec[i].timeout_ms = i == 2 ? 500 : 30000;
	ok(refused(-EPROTO,
		   "rank 2 (host, pid 102): its timeout_ms is 500, that of rank 0 is 30000"),
	   "different deadlines are refused");
	make_records("aabb");
	rec[3].version++;
	ok(refused(-EPROTO, "rank 3 uses another version"),
	   "another version of the record is refused");
	make_records("aabb");
	rec[3].rank = 2;
	ok(refused(-EPROTO, "in the order of the ranks"), "records in a wrong order are refused");
}

/* ---- options ---- */

/* A bootstrap's exchange that only keeps what the rank has sent. */
static int keep(void *arg, const void *mine, void *all, size_t bytes)
{
	(void)all;
	if (bytes == sizeof(struct swc_boot_record))
		memcpy(arg, mine, bytes);
	return -EIO;
}

/* The record of one of two ranks that has such a tuning file; NULL: none. */
static void describe_tuning(struct swc_boot_record *r, int rank, const char *content)
{
	char path[] = "/tmp/swcXXXXXX";
	struct swingcoll_bootstrap boot = {
		.rank = rank, .nranks = 2, .allgather = keep, .arg = r
	};
	struct swingcoll_comm_opts opts = { .tuning = content ? path : NULL };
	struct swingcoll_comm *comm;
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f || (content && fputs(content, f) < 0) || fclose(f))
		abort();
	swingcoll_comm_create_from(&comm, &boot, &opts);
	unlink(path);
	/* Without the module, that is its error. */
	r->error = 0;
	r->abi = SWC_ABI_VERSION;
}

static bool same_tuning(const char *a, const char *b)
{
	struct swc_boot_record r[2] = { 0 };
	struct swc_world w;
	char why[256] = "";
	int ret;

	describe_tuning(&r[0], 0, a);
	describe_tuning(&r[1], 1, b);
	ret = swc_world_init(&w, r, 2, why, sizeof(why));
	swc_world_free(&w);
	if (ret)
		printf("# %d %s\n", ret, why);
	return ret != -EPROTO || !strstr(why, "tuning");
}

static void test_tuning(void)
{
	static const char old[] = "links switch:2@10Gbps\n", new[] = "links switch:2@11Gbps\n";
	struct swc_boot_record r = { 0 };
	struct swingcoll_bootstrap boot = { .nranks = 2, .allgather = keep, .arg = &r };
	struct swingcoll_comm_opts opts = { .tuning = "/nope/tuning" };
	struct swingcoll_comm *comm;

	ok(same_tuning(old, old) && same_tuning(NULL, NULL),
	   "tuning files of different names and equal contents");
	ok(!same_tuning(old, new) && !same_tuning(old, NULL) && !same_tuning(NULL, old),
	   "tuning files that differ are refused, and the line says so");
	ok(swingcoll_comm_create_from(&comm, &boot, &opts) && r.error == -ENOENT &&
		   strstr(r.text, "/nope/tuning"),
	   "a tuning file that is not there: the record says so");
}

int main(void)
{
	printf("TAP version 13\n");
	test_world();
	test_tuning();
	return done();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * What crosses the network: no address of the kernel's memory, and no data of the ranks if it is to be encrypted. Each
 * node records all packets while collectives run that connect nodes, send small messages, and write into each other's
 * memory. Then it searches their bytes for addresses of its linear map and of its kernel image, whose places /proc/kcore
 * tells, and for the data, which must be there without encryption. Runs on every node of a cluster at once.
 */
#include <arpa/inet.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "net_ranks.h"

#define SMALL 100
#define LARGE 1000000 /* elements: parts of them are written into the memory of ranks */
#define TIMEOUT_MS TESTLIB_EVENT_MS
#define ROCE_PORT 4791		/* of RDMA over UDP */
#define RECORD_BYTES (64 << 20) /* more than all packets take */
#define MAX_RANGES 64

struct range {
	uint64_t first, last;
};

static uint32_t tcp_port; /* 0: RDMA over UDP */
static struct range range[MAX_RANGES];
static int nranges;

/* ------------------------------------------------------------------ the kernel's memory */

/*
 * Those segments that have physical addresses. The others are not memory, but space for it, which is so large that random
 * bytes would often be found in it.
 */
static int find_ranges(void)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;
	int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	nranges = 0;
	if (pread(fd, &e, sizeof(e), 0) != sizeof(e))
		e.e_phnum = 0;
	for (int i = 0; i < e.e_phnum && nranges < MAX_RANGES; i++) {
		if (pread(fd, &p, sizeof(p), e.e_phoff + i * sizeof(p)) != sizeof(p))
			break;
		if (p.p_type == PT_LOAD && p.p_paddr != (Elf64_Addr)-1 && p.p_memsz)
			range[nranges++] = (struct range){ p.p_vaddr, p.p_vaddr + p.p_memsz - 1 };
	}
	close(fd);
	return nranges ? 0 : -ENOENT;
}

static bool is_kernel_address(uint64_t v)
{
	for (int i = 0; i < nranges; i++)
		if (v >= range[i].first && v <= range[i].last)
			return true;
	return false;
}

/* The first address among these bytes, at any offset and in either byte order; 0: there is none. */
static uint64_t find_address(const uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i + sizeof(uint64_t) <= bytes; i++) {
		uint64_t v;

		memcpy(&v, data + i, sizeof(v));
		if (is_kernel_address(v))
			return v;
		if (is_kernel_address(__builtin_bswap64(v)))
			return __builtin_bswap64(v);
	}
	return 0;
}

/* ------------------------------------------------------------------ the data of the ranks */

/* Some equal elements that are those of a rank or a sum of them, at any offset? */
static bool find_data(const uint8_t *data, size_t bytes)
{
	uint32_t v[8];

	for (size_t i = 0; i + sizeof(v) <= bytes; i++) {
		memcpy(v, data + i, sizeof(v));
		if (v[0] && v[0] < 256 && !memcmp(v, v + 1, sizeof(v) - sizeof(*v)))
			return true;
	}
	return false;
}

/* ------------------------------------------------------------------ packets */

static int record_start(void)
{
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL)),
	    bytes = RECORD_BYTES;

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes))) {
		close(fd);
		return -errno;
	}
	return fd < 0 ? -errno : fd;
}

/* The payload of a packet over IPv4, of RDMA over UDP or TCP or of another transport by TCP; NULL: another packet. */
static const uint8_t *payload(const uint8_t *packet, size_t *bytes)
{
	uint8_t want = tcp_port ? IPPROTO_TCP : IPPROTO_UDP;
	const struct iphdr *ip = (const void *)packet;
	const struct tcphdr *tcp;
	const struct udphdr *udp;
	size_t before;

	if (*bytes < sizeof(*ip) || ip->version != 4 || ip->protocol != want)
		return NULL;
	/* Both begin with their ports. */
	udp = (const void *)(packet + ip->ihl * 4);
	tcp = (const void *)udp;
	before = ip->ihl * 4 + sizeof(*udp);
	if (*bytes < before)
		return NULL;
	if (want == IPPROTO_UDP) {
		if (ntohs(udp->dest) != ROCE_PORT)
			return NULL;
	} else {
		if (*bytes < ip->ihl * 4 + sizeof(*tcp) ||
		    (ntohs(tcp->dest) != tcp_port && ntohs(tcp->source) != tcp_port))
			return NULL;
		before = ip->ihl * 4 + tcp->doff * 4;
		if (*bytes < before)
			return NULL;
	}
	*bytes -= before;
	return packet + before;
}

/* Search all packets recorded: 0, or 1 after a diagnostic. */
static int record_search(int fd)
{
	struct tpacket_stats lost = { 0 };
	socklen_t len = sizeof(lost);
	static uint8_t packet[65536 + 64];
	uint64_t npackets = 0, total = 0, found;
	bool readable = false;
	ssize_t n;

	while ((n = recv(fd, packet, sizeof(packet), MSG_DONTWAIT)) >= 0) {
		size_t bytes = n;
		const uint8_t *data = payload(packet, &bytes);

		if (!data)
			continue;
		npackets++;
		total += bytes;
		readable |= find_data(data, bytes);
		found = find_address(data, bytes);
		if (found) {
			ksft_print_msg(
				"node %d: a packet of %zu bytes contains the kernel address %#llx\n",
				net_node, bytes, (unsigned long long)found);
			return 1;
		}
	}
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &lost, &len), 0);
	CHECK_EQ(lost.tp_drops, 0);
	/* All that the ranks wrote to other nodes is among them. */
	CHECK(npackets);
	CHECK(total >= LARGE * sizeof(uint32_t));
	if (readable != (net_transport() != SWC_TRANSPORT_TLS)) {
		ksft_print_msg("node %d: data in clear was %sfound\n", net_node,
			       readable ? "" : "not ");
		return 1;
	}
	return 0;
}

/* ------------------------------------------------------------------ ranks */

/* No byte of the data is one that addresses begin with. */
static int sums(struct swingcoll_comm *comm, int rank, int n, size_t count)
{
	uint32_t *v = malloc(count * sizeof(*v));
	uint32_t want = n * (n + 1) / 2;
	int bad;

	CHECK(v);
	for (size_t i = 0; i < count; i++)
		v[i] = rank + 1;
	bad = swingcoll_allreduce(v, v, count, SWINGCOLL_U32, SWINGCOLL_SUM, comm);
	for (size_t i = 0; i < count && !bad; i++)
		bad = v[i] != want;
	free(v);
	return bad;
}

static int rank_fn(uint32_t i, void *arg)
{
	int rank = net_layout_rank(&net_cluster, i), n = net_cluster.nranks;
	struct swingcoll_comm *comm;

	(void)arg;
	CHECK_EQ(net_comm_create(&comm, rank, TIMEOUT_MS), 0);
	CHECK_EQ(sums(comm, rank, n, SMALL), 0);
	CHECK_EQ(sums(comm, rank, n, LARGE), 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static int searched(void)
{
	uint64_t direct = testlib_stat(SWC_STAT_BYTES_DIRECT);
	int fd = record_start(), ret = find_ranges(), bad = 0;

	tcp_port = net_transport() != SWC_TRANSPORT_RDMA || net_is_iwarp() ? net_port() : 0;
	if (fd < 0 || ret)
		ksft_print_msg("node %d: no packet socket (%d) or no /proc/kcore (%d)\n", net_node,
			       fd < 0 ? fd : 0, ret);
	if (net_any(fd < 0 || ret)) {
		if (fd >= 0)
			close(fd);
		return KSFT_SKIP;
	}
	bad = net_any(testlib_run_ranks(NET_LOCAL_RANKS, rank_fn, NULL));
	if (!bad)
		bad = record_search(fd);
	close(fd);
	if (testlib_stat(SWC_STAT_BYTES_DIRECT) == direct) {
		ksft_print_msg("node %d: no peer has written into its memory\n", net_node);
		bad = 1;
	}
	return net_any(bad);
}

static const struct testlib_test tests[] = {
	{ "no address of the kernel crosses the network, and no data that is to be encrypted",
	  searched },
};

static void cases(void)
{
	net_cases(tests, ARRAY_SIZE(tests));
}

int main(int argc, char **argv)
{
	return net_main(argc, argv, cases);
}

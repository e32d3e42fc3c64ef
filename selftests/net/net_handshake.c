// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handshakes by hand: bad connection requests, forged refusals, and nodes that disagree on the nodes of ranks. After
 * each case all resources are released and a new communicator works. Runs on every node of a cluster at once.
 *
 *	net_handshake [WORD]	only cases with WORD in their names
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net_ranks.h"

/* ------------------------------------------------------------------ bad connection requests */

/* The first message of the wire protocol, from its documentation in kmod/core/wire.h. */
struct hello {
	uint32_t magic;
	uint16_t version;
	uint8_t channel, path;
	uint8_t name[8];
	uint32_t places;
	uint16_t src, dst;
	uint32_t attempt;
	uint16_t rx_bufs, rx_buf_kib;
	uint8_t nonce[8], mac[16];
};

struct reject {
	uint32_t magic;
	uint16_t version, reason;
	uint32_t error, culprit;
	uint8_t mac[16];
};

#define HELLO_MAGIC 0x57435753u
#define HELLO_VERSION 11
enum {
	REASON_UNKNOWN = 1,
	REASON_VERSION = 3,
	REASON_BAD = 4,
	REASON_ENDED = 6
};

#define EVENT_ADDR_RESOLVED 0
#define EVENT_ROUTE_RESOLVED 2
#define EVENT_CONNECT_REQUEST 4
#define EVENT_REJECTED 8
#define STATUS_CONSUMER 28

static int ucm(int fd, uint32_t cmd, const void *in, uint16_t in_bytes, uint16_t out_bytes)
{
	char buf[1024];
	struct rdma_ucm_cmd_hdr h = { .cmd = cmd, .in = in_bytes, .out = out_bytes };

	memcpy(buf, &h, sizeof(h));
	memcpy(buf + sizeof(h), in, in_bytes);
	return write(fd, buf, sizeof(h) + in_bytes) < 0 ? -errno : 0;
}

static int ucm_event(int fd, struct rdma_ucm_event_resp *e)
{
	struct rdma_ucm_get_event get = { .response = (uintptr_t)e };
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, TESTLIB_EVENT_MS) != 1)
		return -ETIMEDOUT;
	memset(e, 0, sizeof(*e));
	return ucm(fd, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), sizeof(*e));
}

/* The same by TCP. */
static int request_tcp(const struct hello *hello, const struct sockaddr_in *to, struct reject *r)
{
	struct timeval limit = { .tv_sec = TESTLIB_EVENT_MS / 1000 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ret = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (const void *)to, sizeof(*to)) ||
	    send(fd, hello, sizeof(*hello), MSG_NOSIGNAL) != sizeof(*hello))
		ret = -errno;
	else if (recv(fd, r, sizeof(*r), MSG_WAITALL) != sizeof(*r))
		ret = -EPROTO;
	close(fd);
	return ret;
}

/*
 * The same by iWARP, which carries it in a frame of MPA (RFC 5044). User space cannot connect there without a queue
 * pair, so it speaks TCP.
 */
struct mpa_frame {
	char key[16];
	uint16_t flags, bytes; /* big-endian */
};

#define MPA_REJECT 0x2000
#define MPA_VERSION 1

static int request_iwarp(const struct hello *hello, const struct sockaddr_in *to, struct reject *r)
{
	struct {
		struct mpa_frame frame;
		struct hello hello;
	} out = { { "MPA ID Req Frame", htons(MPA_VERSION), htons(sizeof(*hello)) }, *hello };
	struct {
		struct mpa_frame frame;
		struct reject reject;
	} in;
	struct timeval limit = { .tv_sec = TESTLIB_EVENT_MS / 1000 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ret = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (const void *)to, sizeof(*to)) ||
	    send(fd, &out, sizeof(out), MSG_NOSIGNAL) != sizeof(out))
		ret = -errno;
	else if (recv(fd, &in, sizeof(in), MSG_WAITALL) != sizeof(in) ||
		 memcmp(in.frame.key, "MPA ID Rep Frame", sizeof(in.frame.key)) ||
		 !(ntohs(in.frame.flags) & MPA_REJECT) ||
		 ntohs(in.frame.bytes) != sizeof(in.reject))
		ret = -EPROTO;
	*r = in.reject;
	close(fd);
	return ret;
}

/* Request a connection: the reason why it is rejected, or a negative errno. */
static int request(const struct hello *hello, uint32_t port, struct reject *r)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	uint32_t id;
	struct rdma_ucm_create_id create = { .uid = 1, /* events come only for ids with one */
					     .response = (uintptr_t)&id,
					     .ps = RDMA_PS_TCP,
					     .qp_type = IB_UVERBS_QPT_RC };
	struct rdma_ucm_resolve_ip addr = { .timeout_ms = TESTLIB_EVENT_MS };
	struct rdma_ucm_resolve_route route = { .timeout_ms = TESTLIB_EVENT_MS };
	struct rdma_ucm_connect conn = { .conn_param = { .qp_num = 0xfffff0, /* does not exist */
							 .private_data_len = sizeof(*hello),
							 .responder_resources = 1,
							 .initiator_depth = 1,
							 .retry_count = 3,
							 .valid = 1 } };
	struct rdma_ucm_event_resp e = { 0 };
	int fd, ret;

	inet_pton(AF_INET, net_root_address(), &to.sin_addr);
	if (net_transport() != SWC_TRANSPORT_RDMA)
		return request_tcp(hello, &to, r);
	if (net_is_iwarp())
		return request_iwarp(hello, &to, r);
	fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = ucm(fd, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), sizeof(id));
	addr.id = route.id = conn.id = id;
	memcpy(&addr.dst_addr, &to, sizeof(to));
	memcpy(conn.conn_param.private_data, hello, sizeof(*hello));
	if (!ret)
		ret = ucm(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &addr, sizeof(addr), 0);
	if (!ret)
		ret = ucm_event(fd, &e);
	if (!ret && e.event == EVENT_ADDR_RESOLVED)
		ret = ucm(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0);
	if (!ret)
		ret = ucm_event(fd, &e);
	if (!ret && e.event == EVENT_ROUTE_RESOLVED)
		ret = ucm(fd, RDMA_USER_CM_CMD_CONNECT, &conn, sizeof(conn), 0);
	if (!ret)
		ret = ucm_event(fd, &e);
	close(fd);
	if (ret) {
		ksft_print_msg("a request failed after event %u, status %d\n", e.event,
			       (int)e.status);
		return ret;
	}
	if (e.event != EVENT_REJECTED || e.status != STATUS_CONSUMER) {
		ksft_print_msg("a request got event %u, status %u\n", e.event, e.status);
		return -EPROTO;
	}
	memcpy(r, e.param.conn.private_data, sizeof(*r));
	return 0;
}

static int bad_requests(uint32_t port)
{
	static const struct hello good = { .magic = HELLO_MAGIC,
					   .version = HELLO_VERSION,
					   .name = "nobody",
					   .src = 0,
					   .dst = 1,
					   .attempt = 1,
					   .rx_bufs = 16,
					   .rx_buf_kib = 32 };
	struct hello h;
	struct reject r;

	for (int i = 0; i < 24; i++) {
		int want = REASON_BAD;

		h = good;
		switch (i % 6) {
		case 0: /* an unknown name */
			getrandom(h.name, sizeof(h.name), 0);
			want = REASON_UNKNOWN;
			break;
		case 1: /* an older and a newer version */
			h.version = i & 8 ? 0 : 0x7fff;
			want = REASON_VERSION;
			break;
		case 2: /* random bytes after magic and version */
			getrandom((char *)&h + 6, sizeof(h) - 6, 0);
			h.src = 4;
			h.dst = 4;
			break;
		case 3: /* random bytes */
			getrandom(&h, sizeof(h), 0);
			h.magic |= 1u << 31;
			break;
		case 4:
			memset(&h, 0, sizeof(h));
			break;
		case 5:
			h.rx_buf_kib = 0xffff;
			break;
		}
		CHECK_EQ(request(&h, port, &r), 0);
		CHECK_EQ(r.magic, HELLO_MAGIC);
		CHECK_EQ(r.version, HELLO_VERSION);
		CHECK_EQ(r.reason, want);
	}
	return 0;
}

/* More than a node keeps; some with a part of a request, and some that are closed at once. */
#define IDLE_SOCKETS 400

/* Connect and ask for nothing: others are answered all the same. The sockets stay open until this process ends. */
static int idle_sockets(uint32_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	uint32_t magic = HELLO_MAGIC;

	inet_pton(AF_INET, net_root_address(), &to.sin_addr);
	for (int i = 0; i < IDLE_SOCKETS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		CHECK(fd >= 0);
		CHECK_EQ(connect(fd, (const void *)&to, sizeof(to)), 0);
		if (i % 3 == 1)
			CHECK_EQ(send(fd, &magic, sizeof(magic), MSG_NOSIGNAL), sizeof(magic));
		if (i % 3 == 2)
			close(fd);
	}
	return 0;
}

static int send_requests(void *arg)
{
	uint32_t port = *(uint32_t *)arg;

	if (net_transport() != SWC_TRANSPORT_RDMA && idle_sockets(port))
		return 1;
	return bad_requests(port);
}

static const struct net_steady undisturbed = { { 3001, 2 }, .rounds = 10, .until_stop = true };

/* All other nodes send bad requests to node 0 while a communicator works. */
static int requests(void)
{
	uint64_t refused = testlib_stat(SWC_STAT_CONNS_REFUSED);
	uint32_t port = net_port();
	pid_t pid[NET_LOCAL_RANKS];
	int bad;

	memset(net_shared, 0, sizeof(*net_shared));
	testlib_fork_ranks(pid, NET_LOCAL_RANKS, net_steady_rank, (void *)&undisturbed);
	bad = net_any(!net_all_started(pid));
	if (!bad && net_node)
		bad = testlib_run_child(send_requests, &port);
	/* A node listens only while it has a communicator: it stays until all requests are answered. */
	bad = net_any(bad);
	__atomic_store_n(&net_shared->stop, 1, __ATOMIC_RELEASE);
	bad |= testlib_wait_ranks(pid, NET_LOCAL_RANKS);
	/* All of them are refused. */
	bad |= net_any(bad);
	if (!net_node) {
		refused = testlib_stat(SWC_STAT_CONNS_REFUSED) - refused;
		if (refused < 24) {
			ksft_print_msg("%llu requests refused\n", (unsigned long long)refused);
			bad = 1;
		}
	}
	return bad;
}

/* ------------------------------------------------------------------ nodes of ranks */

struct place {
	uint8_t id[SWC_ID_BYTES];
	char address[64];
	uint32_t port;
};

static struct place place[NET_MAX_NODES];

static void set_address(void *to, const char *text, uint32_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &in.sin_addr);
	memcpy(to, &in, sizeof(in));
}

/* Create a communicator of two nodes, with a path to a port of another one; the error of the call. */
static int create_by_hand(struct testlib_rank *r, const uint32_t *where, int other, uint32_t port,
			  uint32_t timeout_ms)
{
	struct swc_node_path path = { .node = !where[r->rank],
				      .transport = (uint16_t)net_transport() };
	struct swc_comm_create create = { .nranks = r->nranks,
					  .rank = r->rank,
					  .timeout_ms = timeout_ms,
					  .nnodes = 2,
					  .rank_node = (uintptr_t)where,
					  .paths = (uintptr_t)&path,
					  .npaths = 1 };
	int ret;

	memcpy(create.id, place[0].id, sizeof(create.id));
	set_address(path.local, place[net_node].address, 0);
	set_address(path.remote, place[other].address, port);
	CHECK_EQ(testlib_open(&r->c), 0);
	ret = testlib_ioctl(r->c.fd, SWC_IOC_COMM_CREATE, &create);
	r->comm = create.comm;
	return ret;
}

/* Call an allreduce, which is to fail. */
static int allreduce_by_hand(struct testlib_rank *r, int *ret, struct swc_comm_error *e)
{
	static uint32_t buf[1000];
	struct testlib_plan p;
	struct swc_desc d;

	testlib_plan_ring(&p, r->nranks, r->rank);
	CHECK_EQ(testlib_plan_install(r->c.fd, r->comm, &p, &r->plan), 0);
	d = testlib_allreduce_desc(r, buf, buf, 1000, SWC_U32);
	*ret = testlib_submit_wait(&r->c, &d, NULL);
	CHECK_EQ(testlib_comm_error(r->c.fd, r->comm, e), 0);
	return 0;
}

/* Node 0 and the last node both claim ranks 0 and 1, and that the other has ranks 2 and 3. */
static int crossed_rank(uint32_t rank, void *arg)
{
	int here = net_node ? 1 : 0, other = net_node ? 0 : net_nodes - 1, ret;
	uint32_t where[4] = { here, here, !here, !here };
	struct testlib_rank r = { .nranks = 4, .rank = rank };
	struct swc_comm_error e;

	(void)arg;
	ret = create_by_hand(&r, where, other, place[other].port, NET_TIMEOUT_MS);
	/* The kernel may have found out before this rank is back. */
	if (ret == -EPROTO) {
		testlib_close(&r.c);
		net_shared->started[rank] = 1;
		return 0;
	}
	CHECK_EQ(ret, 0);
	CHECK_EQ(allreduce_by_hand(&r, &ret, &e), 0);
	CHECK(ret == -EPROTO || ret == -ECONNABORTED);
	CHECK_EQ(e.error, -EPROTO);
	CHECK(e.culprit >= 0);
	if (!strstr(e.text, "table of nodes")) {
		ksft_print_msg("%s\n", e.text);
		return 1;
	}
	/* Until the ranks of the other node have their error, too: they ask this one. */
	net_shared->started[rank] = 1;
	while (!__atomic_load_n(&net_shared->go, __ATOMIC_ACQUIRE))
		testlib_sleep_ms(2);
	testlib_rank_close(&r);
	return 0;
}

/* Fill in @place, on all nodes. */
static int collect_places(void)
{
	struct place mine = { 0 };
	const char *addrs = getenv("SWINGCOLL_ADDRS");

	CHECK(addrs);
	/* With several rails only the library knows which address of a node belongs to which rail. */
	if (strchr(addrs, ','))
		return KSFT_SKIP;
	mine.port = net_port();
	testlib_new_id(mine.id);
	snprintf(mine.address, sizeof(mine.address), "%.*s", (int)strcspn(addrs, ","), addrs);
	net_allgather(&mine, place, sizeof(mine));
	return 0;
}

static int crossed(void)
{
	pid_t pid[2];
	int bad = collect_places();

	if (bad)
		return bad;
	if (net_node && net_node != net_nodes - 1)
		return net_any(false);
	memset(net_shared, 0, sizeof(*net_shared));
	testlib_fork_ranks(pid, 2, crossed_rank, NULL);
	bad = net_any(!net_all_started(pid));
	__atomic_store_n(&net_shared->go, 1, __ATOMIC_RELEASE);
	return testlib_wait_ranks(pid, 2) | bad;
}

/* ------------------------------------------------------------------ the end of a listener */

#define LISTENERS 100

/* Connect to this node, and close at once or after a part of a request. False: nobody listens. */
static bool connect_here(uint32_t port, uint32_t nwords)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	uint32_t part[4] = { HELLO_MAGIC };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool connected;

	inet_pton(AF_INET, place[net_node].address, &to.sin_addr);
	connected = !connect(fd, (const void *)&to, sizeof(to));
	if (connected)
		send(fd, part, nwords * sizeof(*part), MSG_NOSIGNAL);
	close(fd);
	return connected;
}

/* Communicators come and go on this node, each with the only listener, while sockets do. */
static int listener(void)
{
	uint32_t where[2] = { 0, 1 };
	int bad = net_transport() == SWC_TRANSPORT_RDMA ? KSFT_SKIP : collect_places(),
	    other = !net_node;
	pid_t pid;

	if (bad)
		return bad;
	pid = fork();
	CHECK(pid >= 0);
	for (uint32_t i = 0; !pid; i++)
		connect_here(place[net_node].port, i % 4);
	for (int i = 0; i < LISTENERS && !bad; i++) {
		struct testlib_rank r = { .nranks = 2, .rank = 0 };

		testlib_new_id(place[0].id);
		bad = create_by_hand(&r, where, other, place[other].port, NET_TIMEOUT_MS);
		testlib_close(&r.c);
		for (int k = 0; k < 5000 && connect_here(place[net_node].port, 0); k++)
			testlib_sleep_ms(2);
	}
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	return net_any(bad);
}

/* ------------------------------------------------------------------ forged refusals */

#define FORGER_PORT 18577

static const uint16_t reasons[] = { REASON_ENDED, REASON_BAD, REASON_VERSION };

static struct reject forged_reject(uint32_t i)
{
	struct reject r = { .magic = HELLO_MAGIC,
			    .version = HELLO_VERSION,
			    .reason = reasons[i % ARRAY_SIZE(reasons)],
			    .error = EIO,
			    .culprit = 1 };

	getrandom(r.mac, sizeof(r.mac), 0);
	return r;
}

static int forge_tcp(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, (const void *)at, sizeof(*at)), 0);
	CHECK_EQ(listen(fd, 16), 0);
	net_shared->started[0] = 1;
	for (uint32_t i = 0;; i++) {
		struct reject r = forged_reject(i);
		struct hello h;
		int to = accept(fd, NULL, NULL);

		CHECK(to >= 0);
		CHECK_EQ(recv(to, &h, sizeof(h), MSG_WAITALL), sizeof(h));
		CHECK_EQ(send(to, &r, sizeof(r), MSG_NOSIGNAL), sizeof(r));
		close(to);
		net_shared->started[1] = (int)i + 1;
	}
}

/* Refuse all requests to a port of this node, without knowing the id: never returns if it works. */
static int forge(void *arg)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(FORGER_PORT) };
	uint32_t id;
	struct rdma_ucm_create_id create = {
		.uid = 1, .response = (uintptr_t)&id, .ps = RDMA_PS_TCP, .qp_type = IB_UVERBS_QPT_RC
	};
	struct rdma_ucm_bind_ip bind = { 0 };
	struct rdma_ucm_listen listen = { .backlog = 16 };
	struct rdma_ucm_reject reject = { .private_data_len = sizeof(struct reject) };
	struct rdma_ucm_event_resp e;
	struct reject r;
	int fd, ret;

	(void)arg;
	inet_pton(AF_INET, place[net_node].address, &at.sin_addr);
	if (net_transport() != SWC_TRANSPORT_RDMA)
		return forge_tcp(&at);
	fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_EQ(ucm(fd, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), sizeof(id)), 0);
	bind.id = listen.id = id;
	memcpy(&bind.addr, &at, sizeof(at));
	CHECK_EQ(ucm(fd, RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind), 0), 0);
	CHECK_EQ(ucm(fd, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0), 0);
	net_shared->started[0] = 1;
	for (uint32_t i = 0; !(ret = ucm_event(fd, &e)); i++) {
		if (e.event != EVENT_CONNECT_REQUEST)
			continue;
		r = forged_reject(i);
		reject.id = e.id;
		memcpy(reject.private_data, &r, sizeof(r));
		CHECK_EQ(ucm(fd, RDMA_USER_CM_CMD_REJECT, &reject, sizeof(reject), 0), 0);
		net_shared->started[1] = (int)i + 1;
	}
	return ret;
}

/* Rank 0 connects to the forger instead of rank 1, until its deadline. */
static int refused_rank(void *arg)
{
	uint32_t where[2] = { 0, 1 };
	struct testlib_rank r = { .nranks = 2 };
	struct swc_comm_error e;
	int ret;

	(void)arg;
	CHECK_EQ(create_by_hand(&r, where, net_nodes - 1, FORGER_PORT, 5000), 0);
	CHECK_EQ(allreduce_by_hand(&r, &ret, &e), 0);
	if (ret != -ETIMEDOUT || e.culprit != 1 ||
	    (!strstr(e.text, "has ended there") && !strstr(e.text, "invalid") &&
	     !strstr(e.text, "version"))) {
		ksft_print_msg("%d: %s\n", ret, e.text);
		return 1;
	}
	testlib_rank_close(&r);
	return 0;
}

static int forged(void)
{
	bool last = net_node == net_nodes - 1;
	pid_t pid = 0;
	int bad = 0;

	if (collect_places() == KSFT_SKIP)
		return KSFT_SKIP;
	memset(net_shared, 0, sizeof(*net_shared));
	if (last) {
		pid = fork();
		if (!pid)
			_exit(forge(NULL) != 0);
		while (!__atomic_load_n(&net_shared->started[0], __ATOMIC_ACQUIRE) &&
		       !waitpid(pid, NULL, WNOHANG))
			testlib_sleep_ms(2);
		bad = !net_shared->started[0];
	}
	bad = net_any(bad);
	if (!bad && !net_node)
		bad = testlib_run_child(refused_rank, NULL);
	bad = net_any(bad);
	if (last) {
		/* One would end the communicator if it counted. */
		if (net_shared->started[1] < 2) {
			ksft_print_msg("%d requests refused\n", net_shared->started[1]);
			bad = 1;
		}
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return net_any(bad);
}

/* ------------------------------------------------------------------ all cases */

static const struct testlib_test tests[] = {
	{ "bad connection requests", requests },
	{ "nodes disagree on the nodes of ranks", crossed },
	{ "listeners end while sockets come and go", listener },
	{ "forged refusals", forged },
};

static void cases(void)
{
	net_cases(tests, ARRAY_SIZE(tests));
}

int main(int argc, char **argv)
{
	return net_main(argc, argv, cases);
}

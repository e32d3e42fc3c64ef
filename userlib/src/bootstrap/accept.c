// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bootstrap by TCP, on rank 0 and the parents of a tree: listening, and accepting other ranks. Whoever
 * connects has to greet, and with a secret to prove that it knows that (tcp.c).
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/bootstrap/tcp.h"
#include "src/descriptors.h"

#define GREETING_MS 10000 /* for a connection to send its greeting */

/**
 * struct unknown - a connection that is not accepted yet
 * @have: bytes of @g, then of @proof
 * @challenged: the greeting is complete, the proof is awaited
 */
struct unknown {
	int fd;
	size_t have;
	uint64_t deadline;
	bool challenged;
	struct greeting g;
	struct challenge c;
	uint8_t proof[SWC_SECRET_MAC];
};

/* ---- listening ---- */

static int open_listener(const struct addrinfo *ai)
{
	const int one = 1, no = 0;
	int fd, ret;

	fd = swc_descriptor_move(
		socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (ai->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (!bind(fd, ai->ai_addr, ai->ai_addrlen) && !listen(fd, SOMAXCONN))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

/*
 * Listen at the address itself if that is an address of this node; at all addresses if it is a
 * name, which on its own node may mean the loopback, or the address of a gateway.
 */
static int listen_at(const struct swc_boot_env *env, const char *host, int flags, int *fd)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV };
	struct addrinfo *list, *ai;

	if (getaddrinfo(host, env->port, &hints, &list))
		return -EADDRNOTAVAIL;
	/* IPv6 first: at all addresses, it accepts IPv4 too. */
	*fd = -EADDRNOTAVAIL;
	for (ai = list; ai && *fd < 0; ai = ai->ai_next)
		if (ai->ai_family == AF_INET6)
			*fd = open_listener(ai);
	for (ai = list; ai && *fd < 0 && *fd != -EADDRINUSE; ai = ai->ai_next)
		if (ai->ai_family == AF_INET)
			*fd = open_listener(ai);
	freeaddrinfo(list);
	return *fd < 0 ? *fd : 0;
}

int swc_tcp_listen(struct tcp *t, const struct swc_boot_env *env)
{
	int ret = listen_at(env, env->host, AI_NUMERICHOST, &t->listener);

	if (ret == -EADDRNOTAVAIL)
		ret = listen_at(env, NULL, AI_PASSIVE, &t->listener);
	if (!ret)
		return 0;
	t->listener = -1;
	return swingcoll_bootstrap_fail(ret, "rank 0 cannot listen at %s: %s%s", env->root,
					strerror(-ret),
					ret == -EADDRINUSE
						? ": another program or job does; choose "
						  "another port"
						: "");
}

/* For the children of a tree: at any port. 0 or a negative errno. */
int swc_tcp_listen_anywhere(struct tcp *t)
{
	const struct swc_boot_env any = { .port = "0" };
	int ret = listen_at(&any, NULL, AI_PASSIVE, &t->listener);

	if (ret)
		t->listener = -1;
	return ret;
}

/* ---- the secret ---- */

/* Of one end of a connection. @label: which. */
void swc_tcp_prove(const struct tcp *t, const char *label, const struct greeting *g,
		   const uint8_t *nonce, uint8_t *mac)
{
	struct {
		struct greeting g;
		uint8_t nonce[NONCE];
	} both = { .g = *g };

	memcpy(both.nonce, nonce, NONCE);
	swc_secret_mac(&t->secret, label, &both, sizeof(both), mac);
}

int swc_tcp_random_nonce(uint8_t *nonce)
{
	if (getrandom(nonce, NONCE, 0) == NONCE)
		return 0;
	return swingcoll_bootstrap_fail(-EIO, "no random numbers from the kernel");
}

/* Rank 0: ask for a proof, and give one. False: the connection is of no use. */
static bool challenge(const struct tcp *t, struct unknown *it)
{
	if (swc_tcp_random_nonce(it->c.nonce))
		return false;
	swc_tcp_prove(t, "rank 0", &it->g, it->c.nonce, it->c.mac);
	it->challenged = true;
	it->have = 0;
	/* It fits into the socket's buffer. */
	return !swc_socket_send(it->fd, 0, &it->c, sizeof(it->c), 0);
}

/* For the error of rank 0, and at once. */
static void note_secret(struct tcp *t, int fd, uint32_t rank)
{
	char there[64];

	if (*t->note)
		return;
	snprintf(
		t->note, sizeof(t->note),
		SWC_TCP_RANK
		" at %s does not know the secret: check SWINGCOLL_SECRET_FILE or SWINGCOLL_SECRET there",
		SWC_TCP_RANK_ARGS(t, rank), swc_socket_peer_name(fd, there, sizeof(there)));
	fprintf(stderr, "swingcoll: %s\n", t->note);
}

/* ---- rank 0: accepting the other ranks ---- */

/* Where the connection of a rank belongs that is to connect to this one; NULL: it is not to. */
static int *place_of(struct tcp *t, uint32_t rank)
{
	if (!t->boot.rank)
		return rank && rank < (uint32_t)t->nfds ? &t->fd[rank] : NULL;
	for (int i = 0; i < t->tree.nchildren; i++)
		if ((uint32_t)t->tree.child[i].first == rank)
			return &t->tree.child[i].fd;
	return NULL;
}

/* The missing ranks as text: "3, 5, 6, ..." */
static void missing(struct tcp *t, char *text, size_t bytes)
{
	size_t used = 0;
	int n = 0;

	*text = 0;
	for (int i = 1; i < t->boot.nranks; i++) {
		const int *fd = place_of(t, (uint32_t)i);

		if (!fd || *fd >= 0)
			continue;
		if (n < 8)
			used += (size_t)snprintf(text + used, bytes - used, "%s%d", n ? ", " : "",
						 i - t->grows);
		else if (n == 8)
			snprintf(text + used, bytes - used, ", ...");
		n++;
	}
}

static void __attribute__((format(printf, 3, 4))) reject(int fd, int error, const char *fmt, ...)
{
	char text[SWC_SOCKET_TEXT];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/*
	 * It fits into the socket's buffer; if it does not, the other end only sees the connection
	 * closed.
	 */
	swc_socket_send(fd, error, text, strlen(text), 0);
	close(fd);
}

/* Has a connection ended? Its rank may have been started again. */
static bool has_ended(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0;
}

/*
 * Make a connection that of its rank, or reject it. With a secret, the rank has proven to know it if
 * the greeting says that it has one and is of this job. Returns the change of the number of ranks that are
 * connected: 1 if the rank was missing, -1 if it was not and is now.
 */
static int admit(struct tcp *t, int fd, const struct greeting *g)
{
	int *place = place_of(t, g->rank);
	char there[64];

	if (g->job != t->job) {
		reject(fd, -EPROTO,
		       "rank 0 at %.100s belongs to another job: set the same SWINGCOLL_JOB, or choose another port",
		       t->root);
	} else if (!g->has_secret != !t->secret.given) {
		if (t->secret.given)
			note_secret(t, fd, g->rank);
		reject(fd, -EACCES,
		       "rank 0 at %.100s has %s secret, rank %u has %s: set SWINGCOLL_SECRET_FILE or SWINGCOLL_SECRET on all hosts or on none",
		       t->root, t->secret.given ? "a" : "no", g->rank,
		       g->has_secret ? "one" : "none");
	} else if (g->nranks != (uint32_t)t->boot.nranks) {
		reject(fd, -EPROTO,
		       "rank %u was started as one of %u ranks, rank 0 as one of %d: use the same number",
		       g->rank, g->nranks, t->boot.nranks);
	} else if (!place || g->to != (uint32_t)t->boot.rank) {
		reject(fd, -EEXIST,
		       "there is no rank %u to connect to rank %d: start each rank once", g->rank,
		       t->boot.rank);
	} else if (*place >= 0 && !has_ended(*place)) {
		reject(fd, -EEXIST,
		       SWC_TCP_RANK " is connected already, from %s: start each rank once",
		       SWC_TCP_RANK_ARGS(t, g->rank),
		       swc_socket_peer_name(*place, there, sizeof(there)));
	} else {
		bool before = *place >= 0;

		swc_socket_close(place);
		swc_socket_no_delay(fd);
		if (swc_socket_send(fd, 0, NULL, 0, swc_socket_now_ms() + GREETING_MS))
			close(fd);
		else
			*place = fd;
		return (*place >= 0) - before;
	}
	return 0;
}

/* Remove entry i; the last one takes its place. */
static void drop(struct unknown *s, int *n, int i)
{
	s[i] = s[--*n];
}

static void close_oldest(struct unknown *s, int *n)
{
	int oldest = 0;

	for (int i = 1; i < *n; i++)
		if (s[i].deadline < s[oldest].deadline)
			oldest = i;
	close(s[oldest].fd);
	drop(s, n, oldest);
}

/* @left: ranks that are not connected yet. 0, or -EMFILE and a message. */
static int accept_one(const struct tcp *t, struct unknown *s, int *n, int left)
{
	int fd = swc_descriptor_move(
		accept4(t->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));

	if (fd < 0 && errno != EMFILE && errno != ENFILE)
		return 0;
	/* A rank whose connection is closed before it is accepted connects again. */
	if (*n == MAX_UNKNOWN || (fd < 0 && *n))
		close_oldest(s, n);
	else if (fd < 0)
		return swingcoll_bootstrap_fail(
			-EMFILE,
			"rank %d cannot accept the last %d of %d ranks: %s: raise ulimit -n there, one for each rank",
			t->boot.rank, left, t->boot.nranks, strerror(errno));
	if (fd >= 0)
		s[(*n)++] = (struct unknown){ .fd = fd,
					      .deadline = swc_socket_now_ms() + GREETING_MS };
	return 0;
}

/* Has the rank proven that it knows the secret? If not, it gets to know. */
static bool check_proof(struct tcp *t, const struct unknown *it)
{
	uint8_t mac[SWC_SECRET_MAC];

	swc_tcp_prove(t, "rank", &it->g, it->c.nonce, mac);
	if (swc_secret_equal(mac, it->proof))
		return true;
	note_secret(t, it->fd, it->g.rank);
	reject(it->fd, -EACCES, "rank %u has another secret than rank 0 at %.100s", it->g.rank,
	       t->root);
	return false;
}

/* Read more of a greeting or proof. Returns the change of the number of ranks that are connected. */
static int read_greeting(struct tcp *t, struct unknown *s, int *n, int i)
{
	struct unknown *it = &s[i];
	size_t want = it->challenged ? sizeof(it->proof) : sizeof(it->g), compared;
	char *to = it->challenged ? (char *)it->proof : (char *)&it->g;
	ssize_t got = recv(it->fd, to + it->have, want - it->have, 0);
	int connected = 0;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	it->have += got > 0 ? (size_t)got : 0;
	compared = it->challenged || it->have > sizeof(it->g.magic) ? sizeof(it->g.magic)
								    : it->have;
	if (got <= 0 || memcmp(it->g.magic, SWC_SOCKET_MAGIC, compared)) {
		close(it->fd);
	} else if (it->have < want) {
		return 0;
	} else if (!it->challenged && t->secret.given && it->g.has_secret && it->g.job == t->job) {
		if (challenge(t, it))
			return 0;
		close(it->fd);
	} else if (!it->challenged || check_proof(t, it)) {
		connected = admit(t, it->fd, &it->g);
	}
	drop(s, n, i);
	return connected;
}

static bool is_stopped(const struct tcp *t)
{
	return t->stop && __atomic_load_n(t->stop, __ATOMIC_RELAXED);
}

/*
 * Accept all ranks that are to connect to this one. 0; -ETIMEDOUT, -ECANCELED or -EMFILE, with a message.
 */
int swc_tcp_gather_ranks(struct tcp *t, uint32_t timeout_ms)
{
	uint64_t start = swc_socket_now_ms(), deadline = start + timeout_ms;
	int awaited = t->boot.rank ? t->tree.nchildren : t->nfds - 1;
	bool told = t->boot.rank; /* of a tree, which is no condition */
	struct unknown s[MAX_UNKNOWN];
	int n = 0, left = awaited, ret = 0;
	char who[96];

	while (!ret && left && swc_socket_left_ms(deadline) && !is_stopped(t)) {
		struct pollfd p[MAX_UNKNOWN + 1] = { { .fd = t->listener, .events = POLLIN } };
		int polled = n;

		for (int i = 0; i < n; i++)
			p[i + 1] = (struct pollfd){ .fd = s[i].fd, .events = POLLIN };
		poll(p, (nfds_t)polled + 1,
		     swc_socket_left_ms(deadline) < 200 ? swc_socket_left_ms(deadline) : 200);
		/* From the back, as the last entry takes the place of one that is removed. */
		for (int i = polled; i-- > 0;) {
			if (p[i + 1].revents) {
				left -= read_greeting(t, s, &n, i);
			} else if (!swc_socket_left_ms(s[i].deadline)) {
				close(s[i].fd);
				drop(s, &n, i);
			}
		}
		if (left && p[0].revents)
			ret = accept_one(t, s, &n, left);
		if (!told && swc_socket_now_ms() - start > NOTICE_MS && left) {
			missing(t, who, sizeof(who));
			fprintf(stderr, "swingcoll: waiting for %d of %d ranks at %s: %s %s\n",
				left, t->boot.nranks, t->root, swc_tcp_word(t, 1), who);
			told = true;
		}
	}
	while (n)
		close(s[--n].fd);
	if (ret || !left)
		return ret;
	if (is_stopped(t))
		return swingcoll_bootstrap_fail(-ECANCELED,
						"rank 0 has given up: its communicator has failed");
	missing(t, who, sizeof(who));
	return swingcoll_bootstrap_fail(
		-ETIMEDOUT, "%d of %d ranks did not connect to %.100s within %u s: %s %s%s%s", left,
		t->boot.nranks, t->root, timeout_ms / 1000, swc_tcp_word(t, 1), who,
		*t->note ? "; " : "", t->note);
}

/* Once, if other hosts take part without a secret. */
void swc_tcp_warn_without_secret(const struct tcp *t)
{
	static atomic_flag warned = ATOMIC_FLAG_INIT;

	if (t->secret.given)
		return;
	for (int i = 1; i < t->nfds; i++) {
		if (!swc_socket_is_remote(t->fd[i]))
			continue;
		if (!atomic_flag_test_and_set(&warned))
			fprintf(stderr,
				"swingcoll: the ranks of several hosts share no secret, so any host of this network can join or read the job's id: set SWINGCOLL_SECRET_FILE, see swingcoll(7)\n");
		return;
	}
}

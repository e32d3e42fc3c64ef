// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bootstrap by TCP: rank 0 listens at a known address, the others connect to it and stay connected,
 * and an exchange goes through rank 0, the hub of a star. Every message has a header with an error
 * (socket.h), so that rank 0 can tell all ranks what it learns of one.
 *
 * Any host may connect to an open port. A connection that does not begin with the greeting is
 * closed, and one that sends nothing does not keep others waiting. With a secret both sides prove
 * that they know it before rank 0 accepts the connection; without one, nothing keeps out a host that
 * knows the protocol.
 *
 *	rank -> 0	greeting
 *	0 -> rank	challenge, with mac = MAC("rank 0", greeting, challenge.nonce)	} with
 *	rank -> 0	MAC("rank", greeting, challenge.nonce)				} a secret
 *	0 -> rank	empty message: accepted
 *
 * The MACs are by the secret. Both nonces are random: a recorded proof fits no other connection. What
 * follows is neither authenticated nor encrypted: it has nothing that must be kept from others (see
 * swc_secret_derive_id()), and a change of it makes the communicator fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/socket.h"

#define NOTICE_MS 5000	  /* after so long, print which ranks are missing */
#define GREETING_MS 10000 /* for a connection to send its greeting */
#define MAX_UNKNOWN 64	  /* connections that are not accepted yet */
#define NONCE 16

struct greeting {
	char magic[8];
	uint32_t rank;
	uint32_t nranks;
	uint64_t job;
	uint32_t has_secret;
	uint32_t resv;
	uint8_t nonce[NONCE];
};

struct challenge {
	uint8_t nonce[NONCE];
	uint8_t mac[SWC_SECRET_MAC];
};

/**
 * struct unknown - a connection that rank 0 has not accepted yet
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

/**
 * struct tcp - this rank's connections
 * @boot: the bootstrap that the caller gets
 * @fd: on rank 0, the connections by rank; on others, fd[0] is the connection to rank 0. -1: none
 * @listener: on rank 0, while ranks are missing; else -1
 * @secret: of the job
 * @note: on rank 0: who could not prove to know the secret, for the error
 * @limit: the limit of open files before it was raised; rlim_max 0: it was not
 */
struct tcp {
	struct swingcoll_bootstrap boot;
	uint64_t job;
	struct swc_secret secret;
	char note[160];
	char root[272];
	uint32_t timeout_ms;
	int *fd;
	int nfds;
	int listener;
	struct rlimit limit;
};

/* ---- listening ---- */

static int open_listener(const struct addrinfo *ai)
{
	int one = 1, fd, ret;

	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
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

static int start_listening(struct tcp *t, const struct swc_boot_env *env)
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

/* ---- the secret ---- */

/* Of one end of a connection. @label: which. */
static void prove(const struct tcp *t, const char *label, const struct greeting *g,
		  const uint8_t *nonce, uint8_t *mac)
{
	struct {
		struct greeting g;
		uint8_t nonce[NONCE];
	} both = { .g = *g };

	memcpy(both.nonce, nonce, NONCE);
	swc_secret_mac(&t->secret, label, &both, sizeof(both), mac);
}

static int random_nonce(uint8_t *nonce)
{
	if (getrandom(nonce, NONCE, 0) == NONCE)
		return 0;
	return swingcoll_bootstrap_fail(-EIO, "no random numbers from the kernel");
}

/* Rank 0: ask for a proof, and give one. False: the connection is of no use. */
static bool challenge(const struct tcp *t, struct unknown *it)
{
	if (random_nonce(it->c.nonce))
		return false;
	prove(t, "rank 0", &it->g, it->c.nonce, it->c.mac);
	it->challenged = true;
	it->have = 0;
	/* It fits into the socket's buffer. */
	return !swc_socket_send(it->fd, 0, &it->c, sizeof(it->c), 0);
}

/* Another rank: check rank 0's proof, and answer. */
static int answer_challenge(const struct tcp *t, int fd, const struct greeting *g,
			    uint64_t deadline)
{
	uint8_t mac[SWC_SECRET_MAC];
	struct challenge c;
	bool same;
	int ret = swc_socket_recv(fd, &c, sizeof(c), deadline);

	if (ret)
		return ret;
	prove(t, "rank 0", g, c.nonce, mac);
	same = swc_secret_equal(mac, c.mac);
	/* A wrong answer tells rank 0 why this rank will be missing. */
	memset(mac, 0, sizeof(mac));
	if (same)
		prove(t, "rank", g, c.nonce, mac);
	ret = swc_socket_transfer(fd, mac, sizeof(mac), true, deadline);
	if (same)
		return ret;
	return swingcoll_bootstrap_fail(
		-EACCES,
		"rank %d: rank 0 at %.100s has another secret: give all hosts the same SWINGCOLL_SECRET_FILE or SWINGCOLL_SECRET",
		t->boot.rank, t->root);
}

/* For the error of rank 0, and at once. */
static void note_secret(struct tcp *t, int fd, uint32_t rank)
{
	char there[64];

	if (*t->note)
		return;
	snprintf(
		t->note, sizeof(t->note),
		"rank %u at %s does not know the secret: check SWINGCOLL_SECRET_FILE or SWINGCOLL_SECRET there",
		rank, swc_socket_peer_name(fd, there, sizeof(there)));
	fprintf(stderr, "swingcoll: %s\n", t->note);
}

/* ---- rank 0: accepting the other ranks ---- */

/* The missing ranks as text: "3, 5, 6, ..." */
static const char *missing(const struct tcp *t, char *text, size_t bytes)
{
	size_t used = 0;
	int told = 0;

	*text = 0;
	for (int i = 1; i < t->nfds; i++) {
		if (t->fd[i] >= 0)
			continue;
		if (told++ == 8) {
			snprintf(text + used, bytes - used, ", ...");
			break;
		}
		used += (size_t)snprintf(text + used, bytes - used, "%s%d", told > 1 ? ", " : "",
					 i);
	}
	return text;
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
 * the greeting says that it has one and is of this job. True if the rank was missing.
 */
static bool admit(struct tcp *t, int fd, const struct greeting *g)
{
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
	} else if (g->nranks != (uint32_t)t->nfds) {
		reject(fd, -EPROTO,
		       "rank %u was started as one of %u ranks, rank 0 as one of %d: use the same number",
		       g->rank, g->nranks, t->nfds);
	} else if (!g->rank || g->rank >= g->nranks) {
		reject(fd, -EEXIST,
		       "there is no rank %u to connect to rank 0: start each rank once", g->rank);
	} else if (t->fd[g->rank] >= 0 && has_ended(t->fd[g->rank])) {
		close(t->fd[g->rank]);
		swc_socket_no_delay(fd);
		t->fd[g->rank] = fd;
		swc_socket_send(fd, 0, NULL, 0, swc_socket_now_ms() + GREETING_MS);
	} else if (t->fd[g->rank] >= 0) {
		reject(fd, -EEXIST, "rank %u is connected already, from %s: start each rank once",
		       g->rank, swc_socket_peer_name(t->fd[g->rank], there, sizeof(there)));
	} else {
		swc_socket_no_delay(fd);
		t->fd[g->rank] = fd;
		return !swc_socket_send(fd, 0, NULL, 0, swc_socket_now_ms() + GREETING_MS);
	}
	return false;
}

/* Remove entry i; the last one takes its place. */
static void drop(struct unknown *s, int *n, int i)
{
	s[i] = s[--*n];
}

static void accept_one(const struct tcp *t, struct unknown *s, int *n)
{
	int fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), oldest = 0;

	if (fd < 0)
		return;
	if (*n == MAX_UNKNOWN) {
		for (int i = 1; i < *n; i++)
			if (s[i].deadline < s[oldest].deadline)
				oldest = i;
		close(s[oldest].fd);
		drop(s, n, oldest);
	}
	s[(*n)++] = (struct unknown){ .fd = fd, .deadline = swc_socket_now_ms() + GREETING_MS };
}

/* Has the rank proven that it knows the secret? If not, it gets to know. */
static bool check_proof(struct tcp *t, const struct unknown *it)
{
	uint8_t mac[SWC_SECRET_MAC];

	prove(t, "rank", &it->g, it->c.nonce, mac);
	if (swc_secret_equal(mac, it->proof))
		return true;
	note_secret(t, it->fd, it->g.rank);
	reject(it->fd, -EACCES, "rank %u has another secret than rank 0 at %.100s", it->g.rank,
	       t->root);
	return false;
}

/* Read more of a greeting or proof. Returns 1 if a missing rank has connected, else 0. */
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

static int gather_ranks(struct tcp *t)
{
	uint64_t start = swc_socket_now_ms(), deadline = start + t->timeout_ms;
	struct unknown s[MAX_UNKNOWN];
	int n = 0, there = 1, ret = 0;
	bool told = false;
	char who[96];

	while (there < t->nfds && swc_socket_left_ms(deadline)) {
		struct pollfd p[MAX_UNKNOWN + 1] = { { .fd = t->listener, .events = POLLIN } };
		int polled = n;

		for (int i = 0; i < n; i++)
			p[i + 1] = (struct pollfd){ .fd = s[i].fd, .events = POLLIN };
		poll(p, (nfds_t)polled + 1,
		     swc_socket_left_ms(deadline) < 200 ? swc_socket_left_ms(deadline) : 200);
		/* From the back, as the last entry takes the place of one that is removed. */
		for (int i = polled; i-- > 0;) {
			if (p[i + 1].revents) {
				there += read_greeting(t, s, &n, i);
			} else if (!swc_socket_left_ms(s[i].deadline)) {
				close(s[i].fd);
				drop(s, &n, i);
			}
		}
		if (p[0].revents)
			accept_one(t, s, &n);
		if (!told && swc_socket_now_ms() - start > NOTICE_MS && there < t->nfds) {
			fprintf(stderr, "swingcoll: waiting for %d of %d ranks at %s: rank %s\n",
				t->nfds - there, t->nfds, t->root, missing(t, who, sizeof(who)));
			told = true;
		}
	}
	while (n)
		close(s[--n].fd);
	if (there < t->nfds)
		ret = swingcoll_bootstrap_fail(
			-ETIMEDOUT,
			"%d of %d ranks did not connect to %.100s within %u s: rank %s%s%s",
			t->nfds - there, t->nfds, t->root, t->timeout_ms / 1000,
			missing(t, who, sizeof(who)), *t->note ? "; " : "", t->note);
	return ret;
}

/* Once, if other hosts take part without a secret. */
static void warn_without_secret(const struct tcp *t)
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

/* ---- the other ranks: connecting to rank 0 ---- */

/* Connect. 0, or a negative errno: the caller tries again. */
static int connect_one(const struct addrinfo *ai, uint64_t deadline, int *out)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, ai->ai_addr, ai->ai_addrlen)) {
		ret = -errno;
		if (ret == -EINPROGRESS) {
			ret = -ETIMEDOUT;
			if (poll(&p, 1,
				 swc_socket_left_ms(deadline) < 5000 ? swc_socket_left_ms(deadline)
								     : 5000) > 0) {
				getsockopt(fd, SOL_SOCKET, SO_ERROR, &ret, &len);
				ret = -ret;
			}
		}
	}
	if (ret)
		close(fd);
	else
		*out = fd;
	return ret;
}

/*
 * One attempt: connect, send the greeting, receive the answer. -EAGAIN if rank 0 may still start;
 * *why then says what happened. A port that closes the connection without an answer may be another
 * program's, which rank 0 replaces.
 */
static int try_root(struct tcp *t, const struct swc_boot_env *env, uint64_t deadline,
		    const char **why)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct greeting g = { .magic = SWC_SOCKET_MAGIC,
			      .rank = (uint32_t)t->boot.rank,
			      .nranks = (uint32_t)t->boot.nranks,
			      .job = t->job,
			      .has_secret = t->secret.given };
	struct addrinfo *list;
	int ret = getaddrinfo(env->host, env->port, &hints, &list), fd = -1;

	if (ret) {
		*why = gai_strerror(ret);
		return -EAGAIN;
	}
	ret = -EAGAIN;
	for (const struct addrinfo *ai = list; ai && ret; ai = ai->ai_next) {
		ret = connect_one(ai, deadline, &fd);
		if (ret)
			*why = strerror(-ret);
	}
	freeaddrinfo(list);
	if (ret)
		return -EAGAIN;
	swc_socket_no_delay(fd);
	ret = random_nonce(g.nonce);
	if (!ret)
		ret = swc_socket_transfer(fd, &g, sizeof(g), true, deadline);
	if (!ret && t->secret.given)
		ret = answer_challenge(t, fd, &g, deadline);
	if (!ret)
		ret = swc_socket_recv(fd, NULL, 0, deadline);
	if (!ret) {
		t->fd[0] = fd;
		return 0;
	}
	close(fd);
	if (ret == -ECONNRESET || ret == -ETIMEDOUT) {
		*why = ret == -ETIMEDOUT ? "no answer" : "it closed the connection";
		return -EAGAIN;
	}
	if (ret == -EPROTO && !*swingcoll_bootstrap_error())
		swingcoll_bootstrap_fail(
			ret, "the program that listens at %s is not rank 0: choose another port",
			env->root);
	return ret;
}

static int connect_root(struct tcp *t, const struct swc_boot_env *env)
{
	uint64_t start = swc_socket_now_ms(), deadline = start + t->timeout_ms;
	long pause_ms = 20;
	const char *why = "no answer";
	bool told = false;
	int ret;

	swingcoll_bootstrap_fail(0, "%s", "");
	while ((ret = try_root(t, env, deadline, &why)) == -EAGAIN) {
		struct timespec ts = { .tv_nsec = pause_ms * 1000000 };

		if (!swc_socket_left_ms(deadline))
			return swingcoll_bootstrap_fail(-ETIMEDOUT,
							"rank %d: no rank 0 at %s within %u s: %s",
							t->boot.rank, env->root,
							t->timeout_ms / 1000, why);
		if (!told && swc_socket_now_ms() - start > NOTICE_MS) {
			fprintf(stderr, "swingcoll: rank %d: waiting for rank 0 at %s: %s\n",
				t->boot.rank, env->root, why);
			told = true;
		}
		nanosleep(&ts, NULL);
		/* Later attempts of different ranks at different times. */
		pause_ms = pause_ms * 2 > 400 ? 300 + t->boot.rank % 200 : pause_ms * 2;
	}
	return ret;
}

/* ---- exchange ---- */

/*
 * Send the reason to all ranks, which otherwise would only see that rank 0 has closed the
 * connection.
 */
static int fail_all(struct tcp *t, int error)
{
	const char *text = swingcoll_bootstrap_error();

	for (int i = 1; i < t->nfds; i++) {
		if (t->fd[i] >= 0)
			swc_socket_send(t->fd[i], error, text, strnlen(text, SWC_SOCKET_TEXT - 1),
					swc_socket_now_ms() + 1000);
		swc_socket_close(&t->fd[i]);
	}
	return error;
}

static int lost(const struct tcp *t, int rank, int error)
{
	char there[64];

	if (*swingcoll_bootstrap_error())
		return error;
	swc_socket_peer_name(t->fd[rank ? rank : 0], there, sizeof(there));
	if (error == -ETIMEDOUT)
		return swingcoll_bootstrap_fail(error, "rank %d (%s) sent nothing for %u s", rank,
						there, t->timeout_ms / 1000);
	if (error == -ECONNRESET)
		return swingcoll_bootstrap_fail(error, "rank %d (%s) has closed the connection",
						rank, there);
	return swingcoll_bootstrap_fail(error, "rank %d (%s): %s", rank, there, strerror(-error));
}

static int allgather_root(struct tcp *t, const void *mine, char *all, size_t bytes)
{
	uint64_t deadline = swc_socket_now_ms() + t->timeout_ms;
	size_t total = bytes * (size_t)t->nfds;
	int ret = 0;

	memcpy(all, mine, bytes);
	for (int i = 1; i < t->nfds; i++) {
		if (t->fd[i] < 0)
			return swingcoll_bootstrap_fail(-ECONNRESET,
							"an earlier exchange has failed");
		ret = swc_socket_recv(t->fd[i], all + bytes * (size_t)i, bytes, deadline);
		if (ret)
			return fail_all(t, lost(t, i, ret));
	}
	for (int i = 1; i < t->nfds; i++) {
		ret = swc_socket_send(t->fd[i], 0, all, total, deadline);
		if (ret)
			return fail_all(t, lost(t, i, ret));
	}
	return 0;
}

/*
 * Rank 0 answers when all ranks have sent, or at its deadline; the deadline of the others is a
 * little later.
 */
static int allgather(void *arg, const void *mine, void *all, size_t bytes)
{
	struct tcp *t = arg;
	size_t total = bytes * (size_t)t->boot.nranks;
	uint64_t deadline = swc_socket_now_ms() + t->timeout_ms + 2000;
	int saved = errno, ret;

	swingcoll_bootstrap_fail(0, "%s", "");
	if (total > UINT32_MAX) {
		ret = -EMSGSIZE;
	} else if (!t->boot.rank) {
		ret = allgather_root(t, mine, all, bytes);
	} else if (t->fd[0] < 0) {
		ret = swingcoll_bootstrap_fail(-ECONNRESET, "an earlier exchange has failed");
	} else {
		ret = swc_socket_send(t->fd[0], 0, mine, bytes, deadline);
		/* Rank 0 may have sent the reason before it closed the connection. */
		if (!ret || ret == -ECONNRESET)
			ret = swc_socket_recv(t->fd[0], all, total, deadline);
		if (ret) {
			ret = lost(t, 0, ret);
			swc_socket_close(&t->fd[0]);
		}
	}
	errno = saved;
	return ret;
}

/* ---- creation and release ---- */

static void release(struct swingcoll_bootstrap *boot)
{
	struct tcp *t = boot->arg;

	for (int i = 0; i < t->nfds; i++)
		swc_socket_close(&t->fd[i]);
	swc_socket_close(&t->listener);
	if (t->limit.rlim_max)
		setrlimit(RLIMIT_NOFILE, &t->limit);
	free(t->fd);
	explicit_bzero(t, sizeof(*t));
	free(t);
}

void swc_boot_tcp_min_timeout(struct swingcoll_bootstrap *boot, uint32_t timeout_ms)
{
	struct tcp *t = boot->arg;

	if (boot->release == release && t->timeout_ms < timeout_ms)
		t->timeout_ms = timeout_ms;
}

/* A connection to every rank may need more files than a process may open by default. */
static void allow_files(struct tcp *t)
{
	rlim_t need = (rlim_t)t->nfds + MAX_UNKNOWN + 256;
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= need)
		return;
	t->limit = l;
	l.rlim_cur = need < l.rlim_max ? need : l.rlim_max;
	setrlimit(RLIMIT_NOFILE, &l);
}

int swc_boot_tcp(struct swingcoll_bootstrap **boot, const struct swc_boot_env *env)
{
	struct tcp *t = calloc(1, sizeof(*t));
	int ret = 0;

	if (!t)
		return -ENOMEM;
	t->boot = (struct swingcoll_bootstrap){ .rank = env->rank,
						.nranks = env->nranks,
						.allgather = allgather,
						.arg = t,
						.release = release };
	t->job = env->job;
	t->secret = env->secret;
	t->timeout_ms = env->timeout_ms;
	snprintf(t->root, sizeof(t->root), "%s", env->root);
	t->listener = -1;
	t->nfds = env->rank ? 1 : env->nranks;
	t->fd = malloc((size_t)t->nfds * sizeof(*t->fd));
	if (!t->fd) {
		free(t);
		return -ENOMEM;
	}
	for (int i = 0; i < t->nfds; i++)
		t->fd[i] = -1;
	if (env->rank) {
		ret = connect_root(t, env);
	} else if (env->nranks > 1) {
		allow_files(t);
		ret = start_listening(t, env);
		if (!ret)
			ret = gather_ranks(t);
		if (ret)
			fail_all(t, ret);
		else
			warn_without_secret(t);
		swc_socket_close(&t->listener);
	}
	if (ret)
		release(&t->boot);
	else
		*boot = &t->boot;
	return ret;
}

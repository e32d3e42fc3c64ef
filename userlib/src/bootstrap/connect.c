// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bootstrap by TCP: connecting to rank 0, and to other ranks.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "src/bootstrap/tcp.h"
#include "src/descriptors.h"

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
	swc_tcp_prove(t, "rank 0", g, c.nonce, mac);
	same = swc_secret_equal(mac, c.mac);
	/* A wrong answer tells rank 0 why this rank will be missing. */
	memset(mac, 0, sizeof(mac));
	if (same)
		swc_tcp_prove(t, "rank", g, c.nonce, mac);
	ret = swc_socket_transfer(fd, mac, sizeof(mac), true, deadline);
	if (same)
		return ret;
	return swingcoll_bootstrap_fail(
		-EACCES,
		SWC_TCP_RANK
		": rank 0 at %.100s has another secret: give all hosts the same SWINGCOLL_SECRET_FILE or SWINGCOLL_SECRET",
		SWC_TCP_RANK_ARGS(t, t->boot.rank), t->root);
}

/* Wait until the connection is there, or not. 0, or a negative errno; signals do not shorten it. */
static int await_connection(int fd, uint64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int n, ret = 0;

	do {
		n = poll(&p, 1, swc_socket_left_ms(deadline));
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? -errno : -ETIMEDOUT;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &ret, &len);
	return -ret;
}

/* Connect. 0, or a negative errno: the caller tries again. */
static int connect_one(const struct addrinfo *ai, uint64_t deadline, int *out)
{
	int fd = swc_descriptor_move(
		socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	uint64_t soon = swc_socket_now_ms() + 5000;
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, ai->ai_addr, ai->ai_addrlen)) {
		ret = -errno;
		if (ret == -EINPROGRESS)
			ret = await_connection(fd, soon < deadline ? soon : deadline);
	}
	if (ret)
		close(fd);
	else
		*out = fd;
	return ret;
}

/* Greet the rank @to on a new connection; 0 if it accepts. */
static int greet(struct tcp *t, int to, int fd, uint64_t deadline)
{
	struct greeting g = { .magic = SWC_SOCKET_MAGIC,
			      .rank = (uint32_t)t->boot.rank,
			      .nranks = (uint32_t)t->boot.nranks,
			      .job = t->job,
			      .has_secret = t->secret.given,
			      .to = (uint32_t)to };
	int ret = swc_tcp_random_nonce(g.nonce);

	if (!ret)
		ret = swc_socket_transfer(fd, &g, sizeof(g), true, deadline);
	if (!ret && t->secret.given)
		ret = answer_challenge(t, fd, &g, deadline);
	return ret ? ret : swc_socket_recv(fd, NULL, 0, deadline);
}

/*
 * One attempt: connect to one of the addresses, send the greeting, receive the answer. -EAGAIN if the
 * rank may still start; *why then says what happened. A port that closes the connection without an
 * answer may be another program's, which the rank replaces.
 */
int swc_tcp_connect_rank(struct tcp *t, int to, const struct addrinfo *list, uint64_t deadline,
			 int *fd, const char **why)
{
	int ret = -EAGAIN;

	for (const struct addrinfo *ai = list; ai && ret; ai = ai->ai_next) {
		ret = connect_one(ai, deadline, fd);
		if (ret)
			*why = strerror(-ret);
	}
	if (ret)
		return -EAGAIN;
	swc_socket_no_delay(*fd);
	ret = greet(t, to, *fd, deadline);
	if (!ret)
		return 0;
	close(*fd);
	*fd = -1;
	if (ret == -ECONNRESET || ret == -ETIMEDOUT) {
		*why = ret == -ETIMEDOUT ? "no answer" : "it closed the connection";
		return -EAGAIN;
	}
	return ret;
}

static int try_root(struct tcp *t, const struct swc_boot_env *env, uint64_t deadline,
		    const char **why)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *list;
	int ret = getaddrinfo(env->host, env->port, &hints, &list);

	if (ret) {
		*why = gai_strerror(ret);
		return -EAGAIN;
	}
	ret = swc_tcp_connect_rank(t, 0, list, deadline, &t->fd[0], why);
	freeaddrinfo(list);
	if (ret == -EPROTO && !*swingcoll_bootstrap_error())
		swingcoll_bootstrap_fail(
			ret, "the program that listens at %s is not rank 0: choose another port",
			env->root);
	return ret;
}

int swc_tcp_connect_root(struct tcp *t, const struct swc_boot_env *env)
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
							SWC_TCP_RANK
							": no rank 0 at %s within %u s: %s",
							SWC_TCP_RANK_ARGS(t, t->boot.rank),
							env->root, t->timeout_ms / 1000, why);
		if (!told && swc_socket_now_ms() - start > NOTICE_MS) {
			fprintf(stderr,
				"swingcoll: " SWC_TCP_RANK ": waiting for rank 0 at %s: %s\n",
				SWC_TCP_RANK_ARGS(t, t->boot.rank), env->root, why);
			told = true;
		}
		nanosleep(&ts, NULL);
		/* Later attempts of different ranks at different times. */
		pause_ms = pause_ms * 2 > 400 ? 300 + t->boot.rank % 200 : pause_ms * 2;
	}
	return ret;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One agreement by sockets. Between two ranks there are up to two connections, one made by each: a member
 * connects to its leader, a leader to members that have not come yet. A rank's messages go by one of them,
 * as long as that lives.
 *
 * A rank is lost when it closes a connection, when its host refuses one, or when its host has not answered
 * for SILENCE_MS; the kernel of a live host answers for a process that does something else. After
 * other errors of a connection, such as a network adapter that fails, it is made again by another address.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/agree/consensus.h"
#include "src/agree/session.h"
#include "src/descriptors.h"

#define SILENCE_MS 9000 /* as the module's between nodes */
#define ATTEMPT_MS 2000 /* at least, to connect to one of several addresses */
#define OTHER_FILES 256 /* of the process, for its limit */
#define CALL_MS 50	/* for a member to come by itself */
#define TICK_MS 20
#define RETRIES 20 /* of connections that are closed before the other end has said who it is */

enum {
	OUTGOING,
	INCOMING,
	CONNS
};

/* A connection. @hello: the other end has said who it is. @have: bytes of the message in @in. */
struct conn {
	int fd;
	bool connecting;
	bool hello;
	size_t have;
	char *in;
	struct pollfd *polled;
};

/**
 * struct link - what leads to another rank
 * @used: the connection that this rank's messages go by; CONNS: none yet
 * @out, @out_bytes, @out_room: what is to be sent
 * @wanted: there is something to send, or its death must be noticed
 * @lost: it is gone
 * @address: number of the address to try next
 * @connect_at: when; 0: this rank has not tried yet
 * @attempt_ends: when the attempt under way has failed
 * @silent_since: since when all attempts have failed; 0: none has
 * @turned_away: connections that were closed before their hello
 */
struct link {
	struct conn conn[CONNS];
	int used;
	char *out;
	size_t out_bytes, out_room;
	bool wanted;
	bool lost;
	unsigned int address;
	uint64_t connect_at, attempt_ends, silent_since;
	unsigned int turned_away;
};

struct session {
	const struct swc_session_env *env;
	struct swc_agree *agree;
	size_t msg_bytes;
	struct link *link;
	struct pollfd *poll;
	int error;
	uint32_t at; /* the rank concerned */
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void fail(struct session *s, int error, uint32_t rank)
{
	if (!s->error) {
		s->error = error;
		s->at = rank;
	}
}

/* ---- connections ---- */

static void close_conn(struct conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->in);
	*c = (struct conn){ .fd = -1 };
}

static void close_link(struct link *l)
{
	close_conn(&l->conn[OUTGOING]);
	close_conn(&l->conn[INCOMING]);
	free(l->out);
	l->out = NULL;
	l->out_bytes = l->out_room = 0;
	l->used = CONNS;
	l->wanted = false;
}

static void lose(struct session *s, uint32_t rank)
{
	close_link(&s->link[rank]);
	s->link[rank].lost = true;
	swc_agree_lost(s->agree, rank);
}

static bool append(struct session *s, struct link *l, const void *data, size_t bytes)
{
	if (l->out_bytes + bytes > l->out_room) {
		size_t room = 2 * (l->out_bytes + bytes);
		char *more = realloc(l->out, room);

		if (!more) {
			fail(s, -ENOMEM, SWC_SESSION_NO_RANK);
			return false;
		}
		l->out = more;
		l->out_room = room;
	}
	memcpy(l->out + l->out_bytes, data, bytes);
	l->out_bytes += bytes;
	return true;
}

/* Of consensus.c. */
static void queue(void *arg, uint32_t to, const struct swc_agree_msg *msg)
{
	struct session *s = arg;
	struct link *l = &s->link[to];

	if (l->lost || !append(s, l, msg, s->msg_bytes))
		return;
	if (!l->wanted && !l->connect_at)
		l->connect_at = now_ms() + (msg->kind == SWC_AGREE_CALL ? CALL_MS : 0);
	l->wanted = true;
}

/* Begin to use a connection: this rank's messages go by it, the hello first. */
static void use(struct session *s, uint32_t rank, int which)
{
	struct link *l = &s->link[rank];
	struct swc_hello h = swc_hello_make(s->env->peers->key, s->env->key, s->env->rank, rank,
					    s->env->number);
	char *queued = l->out;
	size_t bytes = l->out_bytes;

	l->out = NULL;
	l->out_bytes = l->out_room = 0;
	if (append(s, l, &h, sizeof(h)) && bytes)
		append(s, l, queued, bytes);
	free(queued);
	l->used = which;
}

/* A connection does not work, its rank may live. What was under way is sent again by another one. */
static void reconnect(struct session *s, uint32_t rank, int which)
{
	struct link *l = &s->link[rank];
	bool used = l->used == which;

	close_conn(&l->conn[which]);
	if (!used)
		return;
	l->used = CONNS;
	l->out_bytes = 0;
	if (l->conn[!which].fd >= 0 && !l->conn[!which].connecting)
		use(s, rank, !which);
	else
		l->connect_at = now_ms();
	swc_agree_resend(s->agree, rank);
}

/*
 * The other end has closed a connection. If it has not said yet who it is, it may live, and have had too many
 * connections of strangers: if it does not, another attempt is refused.
 */
static void closed(struct session *s, uint32_t rank, int which)
{
	struct link *l = &s->link[rank];

	if (l->used == which && !l->conn[which].hello && l->turned_away++ < RETRIES) {
		reconnect(s, rank, which);
		l->connect_at = now_ms() + TICK_MS;
	} else {
		lose(s, rank);
	}
}

/* An error of a socket. */
static void broken(struct session *s, uint32_t rank, int which, int error)
{
	struct link *l = &s->link[rank];

	if (error == ECONNRESET || error == EPIPE)
		closed(s, rank, which);
	else if (!l->conn[which].connecting)
		reconnect(s, rank, which);
	else
		l->attempt_ends = 0;
}

static int open_conn(struct conn *c, int fd, size_t msg_bytes)
{
	size_t bytes = msg_bytes > sizeof(struct swc_hello) ? msg_bytes : sizeof(struct swc_hello);

	close_conn(c);
	*c = (struct conn){ .fd = fd, .in = malloc(bytes) };
	return c->in ? 0 : -ENOMEM;
}

/* The kernel notices that the other host is silent, whatever this process waits for. */
static void watch(int fd)
{
	const int one = 1, idle = 1, count = SILENCE_MS / 1000 - 1;
	const unsigned int silence = SILENCE_MS;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof(silence));
}

/* ---- connecting ---- */

/* Its host has refused, or has no such name. */
static void refused(struct session *s, uint32_t rank, bool here, uint64_t now)
{
	struct link *l = &s->link[rank];

	if (!here || !s->env->lives || !s->env->lives(s->env->arg, rank))
		lose(s, rank);
	else if (now - l->silent_since >= SILENCE_MS)
		fail(s, -EHOSTUNREACH, rank);
	else
		l->connect_at = now + TICK_MS; /* it is about to end */
}

/* An attempt has failed: try the next address, until the rank has been silent for too long. */
static void try_next(struct session *s, uint32_t rank, uint64_t now, unsigned int naddrs)
{
	struct link *l = &s->link[rank];
	uint64_t limit = naddrs * ATTEMPT_MS > SILENCE_MS ? naddrs * ATTEMPT_MS : SILENCE_MS;

	close_conn(&l->conn[OUTGOING]);
	l->address++;
	l->connect_at = now + TICK_MS;
	if (now - l->silent_since >= limit)
		lose(s, rank);
}

static unsigned int count_addresses(const struct session *s, uint32_t rank)
{
	struct sockaddr_storage sa, local = { 0 };
	unsigned int n = 0;

	while (s->env->address(s->env->arg, rank, n, &sa, &local))
		n++;
	return n ? n : 1;
}

static void connected(struct session *s, uint32_t rank)
{
	struct link *l = &s->link[rank];

	l->conn[OUTGOING].connecting = false;
	l->silent_since = 0;
	watch(l->conn[OUTGOING].fd);
	if (l->used == CONNS)
		use(s, rank, OUTGOING);
}

static void attempt(struct session *s, uint32_t rank, uint64_t now)
{
	unsigned int n = count_addresses(s, rank);
	struct link *l = &s->link[rank];
	struct sockaddr_storage sa, local = { 0 };
	socklen_t len = s->env->address(s->env->arg, rank, l->address % n, &sa, &local);
	int fd = -1;

	if (len)
		fd = swc_descriptor_move(
			socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (!l->silent_since)
		l->silent_since = now;
	if (fd < 0) {
		fail(s, len ? -errno : -EHOSTUNREACH, rank);
		return;
	}
	if (open_conn(&l->conn[OUTGOING], fd, s->msg_bytes)) {
		fail(s, -ENOMEM, SWC_SESSION_NO_RANK);
	} else if (local.ss_family && bind(fd, (void *)&local, len)) {
		try_next(s, rank, now, n);
	} else if (!connect(fd, (void *)&sa, len)) {
		connected(s, rank);
	} else if (errno == EINPROGRESS) {
		l->conn[OUTGOING].connecting = true;
		l->attempt_ends = now + (SILENCE_MS / n > ATTEMPT_MS ? SILENCE_MS / n : ATTEMPT_MS);
	} else if (errno == EAGAIN) {
		/* Many wait for it to accept. It lives. */
		close_conn(&l->conn[OUTGOING]);
		l->silent_since = 0;
		l->connect_at = now + TICK_MS;
	} else if (errno == ECONNREFUSED || errno == ENOENT) {
		close_conn(&l->conn[OUTGOING]);
		refused(s, rank, sa.ss_family == AF_UNIX, now);
	} else {
		try_next(s, rank, now, n);
	}
}

/* Is the connection made? */
static void check_connecting(struct session *s, uint32_t rank, uint64_t now)
{
	struct link *l = &s->link[rank];
	struct conn *c = &l->conn[OUTGOING];
	socklen_t len = sizeof(int);
	int error = 0;

	if (c->polled && c->polled->revents) {
		getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
		if (!error)
			connected(s, rank);
		else if (error == ECONNREFUSED)
			lose(s, rank);
		else
			try_next(s, rank, now, count_addresses(s, rank));
	} else if (now >= l->attempt_ends) {
		try_next(s, rank, now, count_addresses(s, rank));
	}
}

/* Connect to those that are needed, and take the connections that others have made. */
static void make_links(struct session *s, uint64_t now)
{
	uint32_t from;
	int fd, ret = swc_endpoint_accept(s->env->peers->ep);

	if (ret)
		fail(s, ret, SWC_SESSION_NO_RANK);
	while ((fd = swc_endpoint_take(s->env->peers->ep, s->env->key, s->env->rank, s->env->number,
				       &from)) >= 0) {
		struct link *l = from < s->env->nranks ? &s->link[from] : NULL;

		if (!l || from == s->env->rank) {
			close(fd);
			continue;
		}
		l->lost = false;
		if (open_conn(&l->conn[INCOMING], fd, s->msg_bytes)) {
			fail(s, -ENOMEM, SWC_SESSION_NO_RANK);
			return;
		}
		watch(fd);
		l->conn[INCOMING].hello = true;
		if (l->conn[OUTGOING].connecting)
			close_conn(&l->conn[OUTGOING]);
		if (l->used == INCOMING) {
			/* The one before does not work any more. */
			l->out_bytes = 0;
			use(s, from, INCOMING);
			swc_agree_resend(s->agree, from);
		} else if (l->used == CONNS) {
			use(s, from, INCOMING);
		}
		/* Before this rank returns and closes the connection, which would look like its death. */
		swc_agree_refuse(s->agree, from);
	}
	for (uint32_t r = 0; r < s->env->nranks && !s->error; r++) {
		struct link *l = &s->link[r];

		if (l->lost || r == s->env->rank)
			continue;
		if (!l->wanted && swc_agree_awaits(s->agree, r)) {
			l->wanted = true;
			l->connect_at = now;
		}
		if (l->conn[OUTGOING].fd >= 0 && l->conn[OUTGOING].connecting)
			check_connecting(s, r, now);
		else if (l->wanted && l->used == CONNS && now >= l->connect_at)
			attempt(s, r, now);
	}
}

/* ---- messages ---- */

static void flush(struct session *s, uint32_t rank)
{
	struct link *l = &s->link[rank];

	while (l->used != CONNS && l->out_bytes) {
		ssize_t n = send(l->conn[l->used].fd, l->out, l->out_bytes, MSG_NOSIGNAL);

		if (n < 0) {
			if (errno != EAGAIN && errno != EINTR)
				broken(s, rank, l->used, errno);
			return;
		}
		l->out_bytes -= (size_t)n;
		memmove(l->out, l->out + n, l->out_bytes);
	}
}

/* A hello or a message is complete. False: it is wrong. */
static bool take(struct session *s, uint32_t rank, struct conn *c)
{
	const struct swc_agree_msg *msg = (void *)c->in;
	const struct swc_hello *h = (void *)c->in;

	c->have = 0;
	if (c->hello)
		return msg->from == rank && swc_agree_receive(s->agree, msg);
	c->hello = true;
	return h->from == rank && swc_hello_is_for(h, s->env->key, s->env->rank, s->env->number);
}

static void receive(struct session *s, uint32_t rank, int which)
{
	struct link *l = &s->link[rank];
	struct conn *c = &l->conn[which];

	while (c->fd >= 0 && !s->error) {
		size_t want = c->hello ? s->msg_bytes : sizeof(struct swc_hello);
		ssize_t n = recv(c->fd, c->in + c->have, want - c->have, 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			broken(s, rank, which, errno);
			return;
		}
		if (!n) {
			closed(s, rank, which);
			return;
		}
		c->have += (size_t)n;
		/* Another program listens at the port of a rank that has died. */
		if (c->have == want && !take(s, rank, c)) {
			lose(s, rank);
			return;
		}
	}
}

/* ---- running ---- */

/* Wait for something to do. */
static void wait_for_events(struct session *s, uint64_t now, uint64_t deadline)
{
	int listeners[2], timeout = s->env->progress ? 1 : TICK_MS;
	nfds_t n = 0;

	swc_endpoint_listeners(s->env->peers->ep, listeners);
	for (int k = 0; k < 2; k++)
		if (listeners[k] >= 0)
			s->poll[n++] = (struct pollfd){ .fd = listeners[k], .events = POLLIN };
	for (uint32_t r = 0; r < s->env->nranks; r++) {
		struct link *l = &s->link[r];

		for (int k = 0; k < CONNS; k++) {
			struct conn *c = &l->conn[k];
			short events = c->connecting ? POLLOUT : POLLIN;

			c->polled = NULL;
			if (c->fd < 0)
				continue;
			if (l->used == k && l->out_bytes)
				events |= POLLOUT;
			c->polled = &s->poll[n];
			s->poll[n++] = (struct pollfd){ .fd = c->fd, .events = events };
		}
	}
	if (deadline - now < (uint64_t)timeout)
		timeout = (int)(deadline - now);
	poll(s->poll, n, timeout);
	if (s->env->progress)
		s->env->progress(s->env->progress_arg);
}

static void step(struct session *s, uint64_t deadline)
{
	uint64_t now = now_ms();

	wait_for_events(s, now, deadline);
	for (uint32_t r = 0; r < s->env->nranks && !s->error; r++) {
		for (int k = 0; k < CONNS; k++) {
			struct conn *c = &s->link[r].conn[k];

			if (c->fd >= 0 && !c->connecting && c->polled && c->polled->revents)
				receive(s, r, k);
		}
	}
	make_links(s, now_ms());
	for (uint32_t r = 0; r < s->env->nranks && !s->error; r++)
		flush(s, r);
}

/* Is anything still to be sent? */
static bool is_flushed(const struct session *s)
{
	for (uint32_t r = 0; r < s->env->nranks; r++)
		if (s->link[r].out_bytes)
			return false;
	return true;
}

static void run(struct session *s, uint64_t deadline)
{
	swc_agree_start(s->agree);
	while (!s->error && swc_agree_state(s->agree) < SWC_AGREE_DONE && now_ms() < deadline)
		step(s, deadline);
	swc_agree_expire(s->agree);
	/*
	 * The others get the last messages even if this process ends then. Those to hosts that are silent
	 * are given up in time.
	 */
	deadline = now_ms() + SILENCE_MS;
	while (!s->error && swc_agree_state(s->agree) >= SWC_AGREE_DONE && !is_flushed(s) &&
	       now_ms() < deadline)
		step(s, deadline);
}

static int result(const struct session *s, uint32_t *flag, uint64_t *gone, uint32_t *rank)
{
	*rank = s->at;
	switch (swc_agree_state(s->agree)) {
	case SWC_AGREE_DONE:
		*flag = swc_agree_flag(s->agree);
		memcpy(gone, swc_agree_gone(s->agree),
		       swc_set_words(s->env->nranks) * sizeof(*gone));
		return 0;
	case SWC_AGREE_OUT:
		*rank = swc_agree_excluder(s->agree);
		return -ECONNABORTED;
	default:
		if (s->error)
			return s->error;
		*rank = swc_agree_missing(s->agree);
		return -ETIMEDOUT;
	}
}

int swc_session_run(const struct swc_session_env *env, uint32_t *flag, uint64_t *gone,
		    uint32_t *rank)
{
	struct session s = { .env = env,
			     .msg_bytes = swc_agree_msg_bytes(env->nranks),
			     .at = SWC_SESSION_NO_RANK };
	bool more_files;
	int ret = -ENOMEM;

	*rank = SWC_SESSION_NO_RANK;
	s.link = calloc(env->nranks, sizeof(*s.link));
	s.poll = calloc(CONNS * (size_t)env->nranks + 2, sizeof(*s.poll));
	s.agree = swc_agree_new(env->nranks, env->rank, *flag, gone, queue, &s);
	if (s.link && s.poll && s.agree) {
		for (uint32_t r = 0; r < env->nranks; r++) {
			s.link[r].conn[OUTGOING].fd = s.link[r].conn[INCOMING].fd = -1;
			s.link[r].used = CONNS;
		}
		/* A leader may need more files than a process may open by default. */
		more_files = swc_descriptors_allow((rlim_t)CONNS * env->nranks + OTHER_FILES);
		run(&s, now_ms() + env->timeout_ms);
		ret = result(&s, flag, gone, rank);
		for (uint32_t r = 0; r < env->nranks; r++)
			close_link(&s.link[r]);
		if (more_files)
			swc_descriptors_restore();
	}
	swc_agree_free(s.agree);
	free(s.poll);
	free(s.link);
	return ret;
}

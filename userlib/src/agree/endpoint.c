// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Listening sockets of a rank, and connections that nobody has asked for yet. Ranks of the same node
 * connect by an abstract name, others by TCP. Anyone may connect: a connection is used only after a hello
 * with a MAC by the communicator's id. One that says something else is closed at once, and one that says
 * nothing after some time, or when there are too many of them. One that is for an agreement that this rank
 * has not begun waits here; a MAC by the key of the endpoints tells it from a stranger's.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/agree/endpoint.h"
#include "src/blake2s.h"
#include "src/descriptors.h"

#define MAGIC "swcagre2"
#define MAX_SILENT 128 /* connections whose hello is not complete */
#define MAX_ACCEPT 512 /* at once */
#define HELLO_S 10     /* for a hello, and to take a connection that the other end closes */

/* A connection that nobody has taken; older ones are first. @have: bytes of its hello. @since: in seconds. */
struct arrival {
	int fd;
	time_t since;
	size_t have;
	struct swc_hello hello;
};

/**
 * struct swc_endpoint - see the header
 * @lock: guards all below; a leaf
 * @key: of the names, and of the doors of hellos; valid with @fd[0]
 * @fd: listening sockets: of this node's names, of TCP; -1: none
 * @arrivals, @n, @room: connections
 */
struct swc_endpoint {
	pthread_mutex_t lock;
	unsigned int refs;
	uint8_t key[SWC_HELLO_KEY];
	int fd[2];
	uint16_t port;
	struct arrival *arrivals;
	unsigned int n, room;
};

/* ---- hello ---- */

static void mac(const uint8_t *key, const char *label, const void *data, size_t bytes, uint8_t *out)
{
	struct swc_blake2s hash;

	swc_blake2s_init(&hash, 16, key, SWC_HELLO_KEY);
	swc_blake2s_update(&hash, label, strlen(label) + 1);
	swc_blake2s_update(&hash, data, bytes);
	swc_blake2s_final(&hash, out);
}

static void add_door(struct swc_hello *h, const uint8_t *door)
{
	mac(door, "door", h, offsetof(struct swc_hello, door), h->door);
}

struct swc_hello swc_hello_make(const uint8_t *door, const uint8_t *key, uint32_t from, uint32_t to,
				uint64_t number)
{
	struct swc_hello h = { .magic = MAGIC, .from = from, .to = to, .number = number };

	mac(key, "agreement", &h, offsetof(struct swc_hello, mac), h.mac);
	add_door(&h, door);
	return h;
}

/* In constant time. */
static bool is_equal(const void *a, const void *b, size_t bytes)
{
	volatile uint8_t differ = 0;

	for (size_t i = 0; i < bytes; i++)
		differ |= ((const uint8_t *)a)[i] ^ ((const uint8_t *)b)[i];
	return !differ;
}

bool swc_hello_is_for(const struct swc_hello *h, const uint8_t *key, uint32_t to, uint64_t number)
{
	uint8_t want[sizeof(h->mac)];

	/* Most that wait are for another agreement. */
	if (memcmp(h->magic, MAGIC, sizeof(h->magic)) || h->to != to || h->number != number)
		return false;
	mac(key, "agreement", h, offsetof(struct swc_hello, mac), want);
	return is_equal(h->mac, want, sizeof(want));
}

/* Does it come from a rank that knows these endpoints? */
static bool passes(const struct swc_hello *h, const uint8_t *door)
{
	struct swc_hello want = *h;

	add_door(&want, door);
	return is_equal(h, &want, sizeof(want));
}

/* ---- listening ---- */

static int listen_at(int family, const void *sa, socklen_t len)
{
	int fd = swc_descriptor_move(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	const int no = 0;
	int ret;

	if (fd < 0)
		return -errno;
	/* The sysctl bindv6only must not keep IPv4 out: its ranks would take this one for dead. */
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (!bind(fd, sa, len) && !listen(fd, SOMAXCONN))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

static struct swc_endpoint *make(void)
{
	struct swc_endpoint *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	pthread_mutex_init(&ep->lock, NULL);
	ep->refs = 1;
	ep->fd[0] = ep->fd[1] = -1;
	return ep;
}

int swc_endpoint_open(struct swc_endpoint **out)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	struct sockaddr_in any4 = { .sin_family = AF_INET };
	struct swc_endpoint *ep = make();
	socklen_t len = sizeof(any);
	int fd;

	if (!ep)
		return -ENOMEM;
	/* That of IPv6 accepts IPv4 too. */
	fd = listen_at(AF_INET6, &any, sizeof(any));
	if (fd < 0)
		fd = listen_at(AF_INET, &any4, sizeof(any4));
	if (fd < 0) {
		swc_endpoint_put(ep);
		return fd;
	}
	ep->fd[1] = fd;
	/* The port is at the same place in both. */
	getsockname(fd, (void *)&any, &len);
	ep->port = ntohs(any.sin6_port);
	*out = ep;
	return 0;
}

uint16_t swc_endpoint_port(const struct swc_endpoint *ep)
{
	return ep->port;
}

socklen_t swc_endpoint_name(struct sockaddr_un *sa, const uint8_t *key, uint32_t rank)
{
	uint8_t name[16];
	int len;

	mac(key, "endpoint", &rank, sizeof(rank), name);
	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	len = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, "swingcoll-");
	for (size_t i = 0; i < sizeof(name); i++)
		len += snprintf(sa->sun_path + 1 + len, sizeof(sa->sun_path) - 1 - (size_t)len,
				"%02x", name[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int swc_endpoint_bind(struct swc_endpoint **out, const uint8_t *key, uint32_t rank, bool remote)
{
	struct swc_endpoint *ep = *out ? *out : make();
	struct sockaddr_un sa;
	socklen_t len = swc_endpoint_name(&sa, key, rank);

	*out = ep;
	if (!ep)
		return -ENOMEM;
	memcpy(ep->key, key, sizeof(ep->key));
	if (!remote) {
		close_fd(&ep->fd[1]);
		ep->port = 0;
	}
	ep->fd[0] = listen_at(AF_UNIX, &sa, len);
	if (ep->fd[0] >= 0)
		return 0;
	/* The name is that of this rank, so another process has the rank. */
	return ep->fd[0] == -EADDRINUSE ? -EEXIST : ep->fd[0];
}

struct swc_endpoint *swc_endpoint_get(struct swc_endpoint *ep)
{
	pthread_mutex_lock(&ep->lock);
	ep->refs++;
	pthread_mutex_unlock(&ep->lock);
	return ep;
}

static void close_all(struct swc_endpoint *ep)
{
	close_fd(&ep->fd[0]);
	close_fd(&ep->fd[1]);
	for (unsigned int i = 0; i < ep->n; i++)
		close(ep->arrivals[i].fd);
	ep->n = 0;
}

void swc_endpoint_put(struct swc_endpoint *ep)
{
	unsigned int left;

	if (!ep)
		return;
	pthread_mutex_lock(&ep->lock);
	left = --ep->refs;
	pthread_mutex_unlock(&ep->lock);
	if (left)
		return;
	close_all(ep);
	pthread_mutex_destroy(&ep->lock);
	free(ep->arrivals);
	free(ep);
}

/* Another thread of the parent may have held the lock: a new one. */
void swc_endpoint_forked(struct swc_endpoint *ep)
{
	if (!ep)
		return;
	pthread_mutex_init(&ep->lock, NULL);
	close_all(ep);
}

void swc_endpoint_listeners(const struct swc_endpoint *ep, int fd[2])
{
	memcpy(fd, ep->fd, sizeof(ep->fd));
}

/* ---- arrivals ---- */

static void drop(struct swc_endpoint *ep, unsigned int i)
{
	ep->n--;
	memmove(ep->arrivals + i, ep->arrivals + i + 1, (ep->n - i) * sizeof(*ep->arrivals));
}

static bool is_silent(const struct arrival *a)
{
	return a->have < sizeof(a->hello);
}

/* Read more of the hello. False: the connection is of no use. */
static bool read_hello(const struct swc_endpoint *ep, struct arrival *a)
{
	size_t compared;
	ssize_t got;

	if (!is_silent(a))
		return true;
	got = recv(a->fd, (char *)&a->hello + a->have, sizeof(a->hello) - a->have, 0);
	if (got <= 0)
		return got < 0 && (errno == EAGAIN || errno == EINTR);
	a->have += (size_t)got;
	if (!is_silent(a))
		return passes(&a->hello, ep->key);
	compared = a->have < sizeof(a->hello.magic) ? a->have : sizeof(a->hello.magic);
	return !memcmp(a->hello.magic, MAGIC, compared);
}

/* Has the other end closed? Data may still be there. */
static bool has_ended(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0;
}

static time_t now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/*
 * Those that say nothing get some time. So does one that nobody takes: it may be for an agreement that has
 * ended, or that this rank will begin, and then it connects by itself.
 */
static bool is_of_use(const struct swc_endpoint *ep, struct arrival *a)
{
	if (!read_hello(ep, a))
		return false;
	return now_s() - a->since <= HELLO_S || (!is_silent(a) && !has_ended(a->fd));
}

static void clean(struct swc_endpoint *ep)
{
	for (unsigned int i = ep->n; i-- > 0;) {
		if (is_of_use(ep, &ep->arrivals[i]))
			continue;
		close(ep->arrivals[i].fd);
		drop(ep, i);
	}
}

/* Close the oldest connection that says nothing, if there are at least so many. */
static bool evict(struct swc_endpoint *ep, unsigned int least)
{
	unsigned int n = 0, oldest = 0;

	for (unsigned int i = ep->n; i-- > 0;) {
		if (!is_silent(&ep->arrivals[i]))
			continue;
		n++;
		oldest = i;
	}
	if (!n || n < least)
		return false;
	close(ep->arrivals[oldest].fd);
	drop(ep, oldest);
	return true;
}

static int add(struct swc_endpoint *ep, int fd)
{
	struct arrival *a;

	if (ep->n == ep->room) {
		unsigned int room = ep->room ? 2 * ep->room : 16;
		struct arrival *more = realloc(ep->arrivals, room * sizeof(*more));

		if (!more) {
			close(fd);
			return -ENOMEM;
		}
		ep->arrivals = more;
		ep->room = room;
	}
	a = &ep->arrivals[ep->n++];
	*a = (struct arrival){ .fd = fd, .since = now_s() };
	/* A rank sends its hello at once: it is there already, and strangers cannot drive the rank out. */
	if (!read_hello(ep, a)) {
		close(fd);
		ep->n--;
	} else if (is_silent(a)) {
		evict(ep, MAX_SILENT);
	}
	return 0;
}

/* More than fit wait in the socket's queue. */
static int accept_some(struct swc_endpoint *ep, int listener)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && listener >= 0 && i < MAX_ACCEPT; i++) {
		int fd = swc_descriptor_move(
			accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));

		if (fd >= 0) {
			ret = add(ep, fd);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
			/* It may be strangers that have the files, or agreements of other threads. */
			if (!evict(ep, 1))
				return ep->n ? 0 : -errno;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			break;
		}
	}
	return ret;
}

int swc_endpoint_accept(struct swc_endpoint *ep)
{
	int ret;

	pthread_mutex_lock(&ep->lock);
	clean(ep);
	ret = accept_some(ep, ep->fd[0]);
	if (!ret)
		ret = accept_some(ep, ep->fd[1]);
	pthread_mutex_unlock(&ep->lock);
	return ret;
}

int swc_endpoint_take(struct swc_endpoint *ep, const uint8_t *key, uint32_t to, uint64_t number,
		      uint32_t *from)
{
	int fd = -1;

	pthread_mutex_lock(&ep->lock);
	for (unsigned int i = 0; i < ep->n && fd < 0; i++) {
		const struct arrival *a = &ep->arrivals[i];

		if (is_silent(a) || !swc_hello_is_for(&a->hello, key, to, number))
			continue;
		fd = a->fd;
		*from = a->hello.from;
		drop(ep, i);
	}
	pthread_mutex_unlock(&ep->lock);
	return fd;
}

/* ---- peers ---- */

int swc_peers_init(struct swc_peers *p, const uint8_t *key, uint32_t nranks, uint32_t rank,
		   struct swc_endpoint **ep, const uint16_t *port)
{
	int ret;

	*p = (struct swc_peers){ .ep = ep ? *ep : NULL };
	if (ep)
		*ep = NULL;
	memcpy(p->key, key, sizeof(p->key));
	p->origin = calloc(nranks, sizeof(*p->origin));
	p->port = calloc(nranks, sizeof(*p->port));
	ret = p->origin && p->port ? swc_endpoint_bind(&p->ep, key, rank, port) : -ENOMEM;
	if (ret) {
		swc_peers_free(p);
		return ret;
	}
	for (uint32_t r = 0; r < nranks; r++)
		p->origin[r] = r;
	if (port)
		memcpy(p->port, port, nranks * sizeof(*port));
	return 0;
}

int swc_peers_without(struct swc_peers *p, const struct swc_peers *all, uint32_t nranks,
		      const bool *excluded)
{
	uint32_t n = 0;

	*p = (struct swc_peers){ .ep = swc_endpoint_get(all->ep) };
	memcpy(p->key, all->key, sizeof(p->key));
	p->origin = calloc(nranks, sizeof(*p->origin));
	p->port = calloc(nranks, sizeof(*p->port));
	if (!p->origin || !p->port) {
		swc_peers_free(p);
		return -ENOMEM;
	}
	for (uint32_t r = 0; r < nranks; r++) {
		if (excluded[r])
			continue;
		p->origin[n] = all->origin[r];
		p->port[n++] = all->port[r];
	}
	return 0;
}

void swc_peers_free(struct swc_peers *p)
{
	swc_endpoint_put(p->ep);
	free(p->origin);
	free(p->port);
	*p = (struct swc_peers){ 0 };
}

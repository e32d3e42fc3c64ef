// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages of the bootstrap on non-blocking TCP sockets, with deadlines. Every message has a header
 * with an error, in place of data that cannot be sent.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <swingcoll.h>

#include "src/bootstrap/pack.h"
#include "src/bootstrap/socket.h"

/* In front of data, or of a line of text if @error. */
struct header {
	char magic[8];
	int32_t error;
	uint32_t bytes;
};

uint64_t swc_socket_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

int swc_socket_left_ms(uint64_t deadline)
{
	uint64_t now = swc_socket_now_ms();

	return now >= deadline ? 0 : deadline - now > 1000000 ? 1000000 : (int)(deadline - now);
}

/* ---- bytes ---- */

/*
 * Send or receive all of it by the deadline, on a non-blocking socket. -ECONNRESET: the other end
 * has closed.
 */
int swc_socket_transfer(int fd, void *data, size_t bytes, bool out, uint64_t deadline)
{
	char *at = data;

	while (bytes) {
		ssize_t n = out ? send(fd, at, bytes, MSG_NOSIGNAL) : recv(fd, at, bytes, 0);
		struct pollfd p = { .fd = fd, .events = out ? POLLOUT : POLLIN };

		if (n > 0) {
			at += n;
			bytes -= (size_t)n;
			continue;
		}
		if (!n || (n < 0 && (errno == EPIPE || errno == ECONNRESET)))
			return -ECONNRESET;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (!swc_socket_left_ms(deadline))
			return -ETIMEDOUT;
		if (errno == EAGAIN)
			poll(&p, 1, swc_socket_left_ms(deadline));
	}
	return 0;
}

int swc_socket_send(int fd, int error, const void *data, size_t bytes, uint64_t deadline)
{
	struct header h = { .magic = SWC_SOCKET_MAGIC, .error = error, .bytes = (uint32_t)bytes };
	int ret = swc_socket_transfer(fd, &h, sizeof(h), true, deadline);

	return ret ? ret : swc_socket_transfer(fd, (void *)data, bytes, true, deadline);
}

/* The header of a message, or -EPROTO. With an error in it, that is the result, with its text. */
static int recv_header(int fd, struct header *h, uint64_t deadline)
{
	char text[SWC_SOCKET_TEXT];
	int ret = swc_socket_transfer(fd, h, sizeof(*h), false, deadline);

	if (ret)
		return ret;
	if (memcmp(h->magic, SWC_SOCKET_MAGIC, sizeof(h->magic)) ||
	    (h->error && h->bytes >= sizeof(text)))
		return -EPROTO;
	if (!h->error)
		return 0;
	memset(text, 0, sizeof(text));
	if (swc_socket_transfer(fd, text, h->bytes, false, deadline))
		snprintf(text, sizeof(text), "rank 0 reported an error without a text");
	return swingcoll_bootstrap_fail(h->error < 0 ? h->error : -EPROTO, "%s", text);
}

int swc_socket_recv(int fd, void *data, size_t bytes, uint64_t deadline)
{
	struct header h;
	int ret = recv_header(fd, &h, deadline);

	if (!ret && h.bytes != bytes)
		ret = -EPROTO;
	return ret ? ret : swc_socket_transfer(fd, data, bytes, false, deadline);
}

int swc_socket_pack(struct swc_packed *p, const void *data, size_t n, size_t record)
{
	p->data = malloc(swc_pack_bound(n * record));
	if (!p->data)
		return -ENOMEM;
	p->bytes = swc_pack(p->data, data, n * record, record);
	return 0;
}

int swc_socket_send_packed(int fd, const void *data, size_t n, size_t record, uint64_t deadline)
{
	struct swc_packed p;
	int ret = swc_socket_pack(&p, data, n, record);

	if (ret)
		return ret;
	ret = swc_socket_send(fd, 0, p.data, p.bytes, deadline);
	free(p.data);
	return ret;
}

int swc_socket_recv_packed(int fd, void *data, size_t n, size_t record, struct swc_packed *kept,
			   uint64_t deadline)
{
	struct swc_packed p = { 0 };
	struct header h;
	int ret = recv_header(fd, &h, deadline);

	if (!ret && h.bytes > swc_pack_bound(n * record))
		ret = -EPROTO;
	if (!ret) {
		p.bytes = h.bytes;
		p.data = malloc(p.bytes + 1);
		ret = p.data ? swc_socket_transfer(fd, p.data, p.bytes, false, deadline) : -ENOMEM;
	}
	if (!ret)
		ret = swc_unpack(data, n * record, record, p.data, p.bytes);
	if (!ret && kept)
		*kept = p;
	else
		free(p.data);
	return ret;
}

/* ---- sockets ---- */

void swc_socket_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void swc_socket_no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

const char *swc_socket_peer_name(int fd, char *text, size_t bytes)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	char host[64];

	if (getpeername(fd, (void *)&sa, &len) ||
	    getnameinfo((void *)&sa, len, host, sizeof(host), NULL, 0, NI_NUMERICHOST))
		snprintf(host, sizeof(host), "?");
	snprintf(text, bytes, "%s", host);
	return text;
}

static bool is_loopback(const char *name)
{
	return !strncmp(name, "127.", 4) || !strcmp(name, "::1") ||
	       !strncmp(name, "::ffff:127.", 11);
}

bool swc_socket_is_loopback(int fd)
{
	char there[64];

	return is_loopback(swc_socket_peer_name(fd, there, sizeof(there)));
}

/* Is the other end on another host? */
bool swc_socket_is_remote(int fd)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	char there[64], here[64];

	swc_socket_peer_name(fd, there, sizeof(there));
	return !is_loopback(there) &&
	       (getsockname(fd, (void *)&sa, &len) ||
		getnameinfo((void *)&sa, len, here, sizeof(here), NULL, 0, NI_NUMERICHOST) ||
		strcmp(here, there) != 0);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bootstrap by TCP, with many ranks: an exchange by a tree. Each rank sends what its own subtree has
 * to the rank above and gets the whole from there, so rank 0 sends the whole a few times instead of
 * once to each rank. The ranks of a subtree have consecutive numbers, and so are mostly on
 * neighbouring nodes.
 *
 * All ranks are connected to rank 0 first, which tells each where its parent listens:
 *
 *	rank -> 0	the port at which it listens, if ranks are below it
 *	0 -> rank	the address of its parent
 *	rank -> parent	greeting and proofs as with rank 0, from the top of the tree to its bottom
 *	rank -> 0	whether it is connected with its parent and all below
 *	0 -> rank	whether all are: then they use the tree, else rank 0 stays the hub of a star
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/bootstrap/tcp.h"

#define JOIN_MS 20000 /* for the ranks of a tree to connect */
/* A rank waits so much longer than those below it, to hear from them whom they miss. */
#define LEVEL_MS 500

/* The address of a parent; port 0: there is none. */
struct parent_at {
	uint32_t bytes;
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
};

/* How a rank has joined the tree: 0 or a negative errno, with a reason. */
struct joined {
	int32_t error;
	char why[60];
};

/* ---- places ---- */

static int height(int nranks)
{
	int levels = 0;

	for (; nranks > 1; levels++)
		nranks = (nranks - 1 + TREE_CHILDREN - 1) / TREE_CHILDREN;
	return levels;
}

/* Divide the ranks below @first evenly. Returns the number of subtrees. */
static int divide(struct subtree *child, int first, int end)
{
	int below = end - first - 1, n = below < TREE_CHILDREN ? below : TREE_CHILDREN;

	for (int i = 0, at = first + 1; i < n; i++) {
		int size = below / n + (i < below % n);

		child[i] = (struct subtree){ .first = at, .end = at + size, .fd = -1 };
		at += size;
	}
	return n;
}

void swc_tcp_tree_place(struct tree *tree, int nranks, int rank)
{
	int at = 0, end = nranks;

	*tree = (struct tree){ .parent = -1, .up = -1 };
	tree->nchildren = divide(tree->child, at, end);
	while (at != rank) {
		const struct subtree *s = tree->child;

		while (rank >= s->end)
			s++;
		tree->parent = at;
		at = s->first;
		end = s->end;
		tree->nchildren = divide(tree->child, at, end);
	}
	tree->end = end;
	tree->height = height(end - rank);
}

/* ---- joining: rank 0 ---- */

int swc_tcp_used_up(void)
{
	return swingcoll_bootstrap_fail(
		-ECONNRESET,
		"an earlier exchange has failed: free this bootstrap and create another");
}

int swc_tcp_lost(const struct tcp *t, int fd, int rank, int error)
{
	char there[64];

	if (*swingcoll_bootstrap_error())
		return error;
	swc_socket_peer_name(fd, there, sizeof(there));
	if (error == -ETIMEDOUT)
		return swingcoll_bootstrap_fail(
			error,
			SWC_TCP_RANK
			" (%s) sent nothing for %u s: is it running? If it is slow, raise SWINGCOLL_BOOT_TIMEOUT",
			SWC_TCP_RANK_ARGS(t, rank), there, t->timeout_ms / 1000);
	if (error == -ECONNRESET)
		return swingcoll_bootstrap_fail(error,
						SWC_TCP_RANK " (%s) has closed the connection",
						SWC_TCP_RANK_ARGS(t, rank), there);
	return swingcoll_bootstrap_fail(error, SWC_TCP_RANK " (%s): %s", SWC_TCP_RANK_ARGS(t, rank),
					there, strerror(-error));
}

/*
 * Where a rank reaches its parent: the address that rank 0 sees of it. A parent on rank 0's host may be
 * seen at the loopback; then it has the address by which the rank has reached that host.
 */
static struct parent_at parent_address(const struct tcp *t, int rank, int parent, uint32_t port)
{
	struct parent_at at = { .bytes = sizeof(at.in6) };
	socklen_t len = sizeof(at.in6);
	int ret;

	if (swc_socket_is_loopback(t->fd[parent]) && !swc_socket_is_loopback(t->fd[rank]))
		ret = getsockname(t->fd[rank], &at.sa, &len);
	else
		ret = getpeername(t->fd[parent], &at.sa, &len);
	if (ret || !port)
		return (struct parent_at){ 0 };
	at.bytes = len;
	/* A host without IPv6 has no such sockets. */
	if (at.sa.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&at.in6.sin6_addr)) {
		struct sockaddr_in in = { .sin_family = AF_INET };

		memcpy(&in.sin_addr, &at.in6.sin6_addr.s6_addr[12], sizeof(in.sin_addr));
		at.in = in;
		at.bytes = sizeof(in);
	}
	/* At the same place in both families. */
	at.in.sin_port = htons((uint16_t)port);
	return at;
}

static int tell_parents(struct tcp *t, const uint32_t *port, uint64_t deadline)
{
	for (int i = 1; i < t->nfds; i++) {
		struct parent_at at = { 0 };
		struct tree place;
		int ret;

		swc_tcp_tree_place(&place, t->nfds, i);
		if (place.parent)
			at = parent_address(t, i, place.parent, port[place.parent]);
		ret = swc_socket_send(t->fd[i], 0, &at, sizeof(at), deadline);
		if (ret)
			return swc_tcp_lost(t, t->fd[i], i, ret);
	}
	return 0;
}

/* Have all ranks joined? *used is the answer, which all get. */
static int agree_to_use(struct tcp *t, uint32_t *used, uint64_t deadline)
{
	*used = 1;
	for (int i = 1; i < t->nfds; i++) {
		struct joined j;
		int ret = swc_socket_recv(t->fd[i], &j, sizeof(j), deadline);

		if (ret)
			return swc_tcp_lost(t, t->fd[i], i, ret);
		if (j.error && *used)
			fprintf(stderr,
				"swingcoll: rank %d: %.*s; %d ranks exchange through rank 0 alone, which takes longer\n",
				i, (int)sizeof(j.why), j.why, t->nfds);
		*used &= !j.error;
	}
	for (int i = 1; i < t->nfds; i++) {
		int ret = swc_socket_send(t->fd[i], 0, used, sizeof(*used), deadline);

		if (ret)
			return swc_tcp_lost(t, t->fd[i], i, ret);
	}
	return 0;
}

static int join_root(struct tcp *t)
{
	uint64_t deadline = swc_socket_now_ms() + t->timeout_ms + JOIN_MS;
	uint32_t *port = calloc((size_t)t->nfds, sizeof(*port)), used;
	int ret = port ? 0 : -ENOMEM;

	for (int i = 1; i < t->nfds && !ret; i++) {
		ret = swc_socket_recv(t->fd[i], &port[i], sizeof(*port), deadline);
		if (ret)
			swc_tcp_lost(t, t->fd[i], i, ret);
	}
	if (!ret)
		ret = tell_parents(t, port, deadline);
	if (!ret)
		ret = agree_to_use(t, &used, deadline);
	free(port);
	if (ret || !used)
		return ret;
	for (int i = 0; i < t->tree.nchildren; i++) {
		struct subtree *s = &t->tree.child[i];

		s->fd = t->fd[s->first];
		t->fd[s->first] = -1;
	}
	for (int i = 1; i < t->nfds; i++)
		swc_socket_close(&t->fd[i]);
	t->tree.used = true;
	return 0;
}

/* ---- joining: the others ---- */

/* Connect with the parent, and then with those below. */
static void connect_family(struct tcp *t, struct parent_at *at, struct joined *j)
{
	struct tree *tree = &t->tree;
	struct addrinfo ai = { .ai_family = at->sa.sa_family,
			       .ai_socktype = SOCK_STREAM,
			       .ai_addr = &at->sa,
			       .ai_addrlen = at->bytes };
	const char *why = "no address";

	if (tree->parent) {
		j->error = !at->bytes || at->bytes > sizeof(at->in6)
				   ? -EADDRNOTAVAIL
				   : swc_tcp_connect_rank(t, tree->parent, &ai,
							  swc_socket_now_ms() + JOIN_MS, &tree->up,
							  &why);
		if (j->error)
			snprintf(j->why, sizeof(j->why), "cannot connect to rank %d: %s",
				 tree->parent, why);
	}
	if (!j->error && tree->nchildren) {
		j->error = t->listener < 0 ? -EADDRNOTAVAIL : swc_tcp_gather_ranks(t, JOIN_MS);
		if (j->error)
			snprintf(j->why, sizeof(j->why), "was not reached by all ranks below it");
	}
	/* Of use only if all have joined. */
	swingcoll_bootstrap_fail(0, "%s", "");
}

static uint32_t port_of(int fd)
{
	struct sockaddr_in6 sa = { 0 };
	socklen_t len = sizeof(sa);

	return fd < 0 || getsockname(fd, (void *)&sa, &len) ? 0 : ntohs(sa.sin6_port);
}

static int join(struct tcp *t)
{
	uint64_t deadline = swc_socket_now_ms() + t->timeout_ms + 2 * JOIN_MS;
	struct joined j = { 0 };
	struct parent_at at;
	uint32_t port, used;
	int ret;

	if (t->tree.nchildren)
		swc_tcp_listen_anywhere(t);
	port = port_of(t->listener);
	ret = swc_socket_send(t->fd[0], 0, &port, sizeof(port), deadline);
	if (!ret)
		ret = swc_socket_recv(t->fd[0], &at, sizeof(at), deadline);
	if (!ret)
		connect_family(t, &at, &j);
	swc_socket_close(&t->listener);
	if (!ret)
		ret = swc_socket_send(t->fd[0], 0, &j, sizeof(j), deadline);
	if (!ret)
		ret = swc_socket_recv(t->fd[0], &used, sizeof(used), deadline);
	if (ret)
		return swc_tcp_lost(t, t->fd[0], 0, ret);
	if (!used) {
		swc_tcp_tree_close(t);
		return 0;
	}
	if (!t->tree.parent) {
		t->tree.up = t->fd[0];
		t->fd[0] = -1;
	}
	swc_socket_close(&t->fd[0]);
	t->tree.used = true;
	return 0;
}

int swc_tcp_tree_join(struct tcp *t)
{
	swc_tcp_tree_place(&t->tree, t->boot.nranks, t->boot.rank);
	return t->boot.rank ? join(t) : join_root(t);
}

void swc_tcp_tree_close(struct tcp *t)
{
	for (int i = 0; i < t->tree.nchildren; i++)
		swc_socket_close(&t->tree.child[i].fd);
	if (t->tree.parent >= 0)
		swc_socket_close(&t->tree.up);
}

/* ---- exchange ---- */

/* Tell the reason to all that are connected, who pass it on. */
static int fail(struct tcp *t, int error)
{
	const char *text = swingcoll_bootstrap_error();
	size_t bytes = strnlen(text, SWC_SOCKET_TEXT - 1);

	for (int i = 0; i < t->tree.nchildren; i++)
		if (t->tree.child[i].fd >= 0)
			swc_socket_send(t->tree.child[i].fd, error, text, bytes,
					swc_socket_now_ms() + 1000);
	if (t->tree.up >= 0)
		swc_socket_send(t->tree.up, error, text, bytes, swc_socket_now_ms() + 1000);
	swc_tcp_tree_close(t);
	return error;
}

/* Receive what those below have. */
static int gather_below(struct tcp *t, char *all, size_t bytes, uint64_t deadline)
{
	for (int i = 0; i < t->tree.nchildren; i++) {
		const struct subtree *s = &t->tree.child[i];
		int ret = swc_socket_recv_packed(s->fd, all + bytes * (size_t)s->first,
						 (size_t)(s->end - s->first), bytes, NULL,
						 deadline);

		if (ret)
			return swc_tcp_lost(t, s->fd, s->first, ret);
	}
	return 0;
}

/* Send what this rank and those below have to the parent; receive the whole, also as it is passed on. */
static int exchange_above(struct tcp *t, char *all, size_t bytes, struct swc_packed *packed,
			  uint64_t deadline)
{
	size_t rank = (size_t)t->boot.rank, end = (size_t)t->tree.end;
	int ret = swc_socket_send_packed(t->tree.up, all + rank * bytes, end - rank, bytes,
					 deadline);

	/* It may have sent the reason before it closed the connection. */
	if (!ret || ret == -ECONNRESET)
		ret = swc_socket_recv_packed(t->tree.up, all, (size_t)t->boot.nranks, bytes, packed,
					     deadline);
	return ret ? swc_tcp_lost(t, t->tree.up, t->tree.parent, ret) : 0;
}

/* Send the whole to those below. */
static int tell_below(struct tcp *t, const struct swc_packed *all, uint64_t deadline)
{
	int ret = 0;

	for (int i = 0; i < t->tree.nchildren && !ret; i++) {
		const struct subtree *s = &t->tree.child[i];

		ret = swc_socket_send(s->fd, 0, all->data, all->bytes, deadline);
		if (ret)
			swc_tcp_lost(t, s->fd, s->first, ret);
	}
	return ret;
}

int swc_tcp_tree_allgather(struct tcp *t, const void *mine, char *all, size_t bytes)
{
	const struct tree *tree = &t->tree;
	uint64_t end = swc_socket_now_ms() + t->timeout_ms;
	uint64_t down = end + (uint64_t)(height(t->boot.nranks) + 4) * LEVEL_MS;
	struct swc_packed packed = { 0 };
	int ret;

	if ((tree->parent < 0 ? tree->child[0].fd : tree->up) < 0)
		return swc_tcp_used_up();
	memcpy(all + bytes * (size_t)t->boot.rank, mine, bytes);
	ret = gather_below(t, all, bytes, end + (uint64_t)tree->height * LEVEL_MS);
	if (!ret && tree->parent >= 0)
		ret = exchange_above(t, all, bytes, &packed, down);
	else if (!ret)
		ret = swc_socket_pack(&packed, all, (size_t)t->boot.nranks, bytes);
	if (!ret)
		ret = tell_below(t, &packed, down);
	free(packed.data);
	return ret ? fail(t, ret) : 0;
}

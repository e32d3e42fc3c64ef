// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bootstrap by TCP: rank 0 listens at a known address, the others connect to it and stay connected,
 * and an exchange goes through rank 0, the hub of a star; with many ranks, by a tree (tree.c). Every
 * message has a header with an error (socket.h), so that rank 0 can tell all ranks what it learns of
 * one.
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
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "src/bootstrap/tcp.h"
#include "src/descriptors.h"

#define STAR_RANKS 64 /* more exchange by a tree */

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

static int allgather_root(struct tcp *t, const void *mine, char *all, size_t bytes)
{
	uint64_t deadline = swc_socket_now_ms() + t->timeout_ms;
	size_t total = bytes * (size_t)t->nfds;
	int ret = 0;

	memcpy(all, mine, bytes);
	for (int i = 1; i < t->nfds; i++) {
		if (t->fd[i] < 0)
			return swc_tcp_used_up();
		ret = swc_socket_recv(t->fd[i], all + bytes * (size_t)i, bytes, deadline);
		if (ret)
			return fail_all(t, swc_tcp_lost(t, t->fd[i], i, ret));
	}
	for (int i = 1; i < t->nfds; i++) {
		ret = swc_socket_send(t->fd[i], 0, all, total, deadline);
		if (ret)
			return fail_all(t, swc_tcp_lost(t, t->fd[i], i, ret));
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
	} else if (t->tree.used) {
		ret = swc_tcp_tree_allgather(t, mine, all, bytes);
	} else if (!t->boot.rank) {
		ret = allgather_root(t, mine, all, bytes);
	} else if (t->fd[0] < 0) {
		ret = swc_tcp_used_up();
	} else {
		ret = swc_socket_send(t->fd[0], 0, mine, bytes, deadline);
		/* Rank 0 may have sent the reason before it closed the connection. */
		if (!ret || ret == -ECONNRESET)
			ret = swc_socket_recv(t->fd[0], all, total, deadline);
		if (ret) {
			ret = swc_tcp_lost(t, t->fd[0], 0, ret);
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
	swc_tcp_tree_close(t);
	swc_socket_close(&t->listener);
	if (t->more_files)
		swc_descriptors_restore();
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
	t->grows = env->grows;
	t->stop = env->stop;
	snprintf(t->root, sizeof(t->root), "%s", env->root);
	t->listener = -1;
	t->tree.parent = -1;
	t->nfds = env->rank ? 1 : env->nranks;
	t->fd = malloc((size_t)t->nfds * sizeof(*t->fd));
	if (!t->fd) {
		free(t);
		return -ENOMEM;
	}
	for (int i = 0; i < t->nfds; i++)
		t->fd[i] = -1;
	if (env->rank) {
		ret = swc_tcp_connect_root(t, env);
	} else if (env->nranks > 1) {
		/* A connection to every rank may need more files than a process may open by default. */
		t->more_files = swc_descriptors_allow((rlim_t)t->nfds + MAX_UNKNOWN + 256);
		ret = swc_tcp_listen(t, env);
		if (!ret)
			ret = swc_tcp_gather_ranks(t, t->timeout_ms);
		if (!ret)
			swc_tcp_warn_without_secret(t);
		swc_socket_close(&t->listener);
	}
	if (!ret && env->nranks > STAR_RANKS && !env->star)
		ret = swc_tcp_tree_join(t);
	if (ret && !env->rank)
		fail_all(t, ret);
	if (ret)
		release(&t->boot);
	else
		*boot = &t->boot;
	return ret;
}

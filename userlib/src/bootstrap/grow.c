// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A communicator of the ranks of another one and of newcomers, which have no other connection with them than
 * the address of rank 0. It is created as any other, from a bootstrap whose exchange goes through rank 0: the
 * members send it their bytes by the communicator, the newcomers by TCP.
 *
 *	newcomers -> 0	connect, as other ranks do to that of a job (tcp.c), numbered from 1
 *	0 -> newcomers	how many members there are
 *	each exchange:
 *	members		allgather
 *	newcomers -> 0	their bytes
 *	0 -> newcomers	all bytes
 *	members		broadcast of the newcomers' bytes
 *
 * Rank 0 may have to wait longer for newcomers than the deadline of a collective. So it waits in a thread,
 * and meanwhile broadcasts, again and again, that it does.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/bootstrap/tcp.h"
#include "src/priv.h"
#include "src/thread.h"

#define BEAT_MS 500 /* between broadcasts, at most */

/* What rank 0 broadcasts. @error: of what it has done; then with a reason. */
struct beat {
	int32_t done;
	int32_t error;
	char text[SWC_BOOT_TEXT];
};

/**
 * struct grow - a rank's part in it
 * @boot: of all ranks
 * @comm: of the members; NULL on newcomers
 * @tcp: bootstrap of rank 0 and the newcomers; NULL on other members
 * @nold: number of members
 * @nnew: number of newcomers
 * @work, @mine, @all, @bytes: for rank 0's thread: what it does, and an exchange
 * @env: likewise: to connect
 * @stop: likewise: there is no reason to wait any more
 * @error, @text: its result
 */
struct grow {
	struct swingcoll_bootstrap boot;
	struct swingcoll_comm *comm;
	struct swingcoll_bootstrap *tcp;
	uint32_t nold, nnew;
	int (*work)(struct grow *g);
	char *all;
	size_t bytes;
	struct swc_boot_env env;
	bool stop;
	int error;
	char text[SWC_BOOT_TEXT];
};

/* ---- with newcomers ---- */

static int connect_newcomers(struct grow *g)
{
	uint64_t deadline = swc_socket_now_ms() + g->env.timeout_ms;
	int ret = swc_boot_tcp(&g->tcp, &g->env);
	struct tcp *t;

	if (ret)
		return ret;
	t = g->tcp->arg;
	for (uint32_t i = 1; i <= g->nnew && !ret; i++) {
		ret = swc_socket_send(t->fd[i], 0, &g->nold, sizeof(g->nold), deadline);
		if (ret)
			swc_tcp_lost(t, t->fd[i], (int)i, ret);
	}
	return ret;
}

/* The members' bytes are in @all. */
static int exchange_with_newcomers(struct grow *g)
{
	struct tcp *t = g->tcp->arg;
	uint64_t deadline = swc_socket_now_ms() + t->timeout_ms;
	char *theirs = g->all + g->nold * g->bytes;
	int ret = 0;

	for (uint32_t i = 1; i <= g->nnew && !ret; i++) {
		ret = swc_socket_recv(t->fd[i], theirs + (i - 1) * g->bytes, g->bytes, deadline);
		if (ret)
			swc_tcp_lost(t, t->fd[i], (int)i, ret);
	}
	for (uint32_t i = 1; i <= g->nnew && !ret; i++) {
		ret = swc_socket_send_packed(t->fd[i], g->all, g->nold + g->nnew, g->bytes,
					     deadline);
		if (ret)
			swc_tcp_lost(t, t->fd[i], (int)i, ret);
	}
	return ret;
}

/* ---- among members ---- */

static void *run_work(void *arg)
{
	struct grow *g = arg;

	swingcoll_bootstrap_fail(0, "%s", "");
	g->error = g->work(g);
	snprintf(g->text, sizeof(g->text), "%s", swingcoll_bootstrap_error());
	return NULL;
}

/* Wait a little for the thread. */
static bool has_ended(pthread_t thread, uint32_t ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	return !pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until);
}

/* An error of a collective among the members. */
static int comm_failed(struct grow *g, int error)
{
	char text[SWC_BOOT_TEXT];

	swingcoll_comm_error(g->comm, text, sizeof(text), NULL);
	return swingcoll_bootstrap_fail(error, "%.*s", (int)sizeof(text) - 1, text);
}

/*
 * Rank 0 does something with newcomers, the other members wait. The same result on all of them. @work NULL:
 * rank 0 has failed already.
 */
static int let_rank_0(struct grow *g, int (*work)(struct grow *g))
{
	uint32_t limit = g->comm->slots.timeout_ms / 4, beat_ms = limit < BEAT_MS ? limit : BEAT_MS;
	struct beat b = { 0 };
	bool runs = false;
	pthread_t thread;
	int ret = 0;

	if (!g->boot.rank && work) {
		g->work = work;
		runs = !swc_thread_create(&thread, run_work, g);
		if (!runs) {
			g->error = -EAGAIN;
			snprintf(g->text, sizeof(g->text), "rank 0 cannot start a thread");
		}
	}
	while (!ret && !b.done) {
		if (!g->boot.rank && (!runs || has_ended(thread, beat_ms ? beat_ms : 1))) {
			runs = false;
			b.done = 1;
			b.error = g->error;
			memcpy(b.text, g->text, sizeof(b.text));
		}
		ret = swingcoll_broadcast(&b, &b, sizeof(b), SWINGCOLL_U8, 0, g->comm);
	}
	/* It ends by the deadline of an exchange, or at once if newcomers are still missing. */
	if (runs) {
		__atomic_store_n(&g->stop, true, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
	}
	if (ret)
		return comm_failed(g, ret);
	return b.error ? swingcoll_bootstrap_fail(b.error, "%.*s", SWC_BOOT_TEXT - 1, b.text) : 0;
}

static int allgather_members(struct grow *g, const void *mine)
{
	size_t theirs = g->nnew * g->bytes;
	int ret = swingcoll_allgather(mine, g->all, g->bytes, SWINGCOLL_U8, g->comm);

	if (ret)
		return comm_failed(g, ret);
	ret = let_rank_0(g, exchange_with_newcomers);
	if (ret)
		return ret;
	ret = swingcoll_broadcast(g->all + g->nold * g->bytes, g->all + g->nold * g->bytes, theirs,
				  SWINGCOLL_U8, 0, g->comm);
	return ret ? comm_failed(g, ret) : 0;
}

/* ---- the bootstrap of all ---- */

static int allgather(void *arg, const void *mine, void *all, size_t bytes)
{
	struct grow *g = arg;
	struct tcp *t = g->tcp ? g->tcp->arg : NULL;
	uint64_t deadline;
	int ret;

	g->all = all;
	g->bytes = bytes;
	if (g->comm)
		return allgather_members(g, mine);
	/* Rank 0's is earlier: it tells what it has waited for. */
	deadline = swc_socket_now_ms() + t->timeout_ms + 2000;
	ret = swc_socket_send(t->fd[0], 0, mine, bytes, deadline);
	if (!ret || ret == -ECONNRESET)
		ret = swc_socket_recv_packed(t->fd[0], all, g->nold + g->nnew, bytes, NULL,
					     deadline);
	return ret ? swc_tcp_lost(t, t->fd[0], 0, ret) : 0;
}

/* Of the job that rank 0 and the newcomers are. */
static int read_env(struct grow *g, const char *root, int nnew, int rank,
		    const struct swingcoll_comm_opts *opts)
{
	uint32_t creation = opts && opts->timeout_ms ? opts->timeout_ms : SWC_DEFAULT_TIMEOUT_MS;
	struct swc_boot_env *env = &g->env;
	int ret = swc_boot_env_read(env);

	if (!ret && root)
		ret = swc_boot_env_root(env, root);
	if (ret)
		return ret;
	if (!*env->host)
		return swingcoll_bootstrap_fail(
			-EINVAL,
			"newcomers need the address of rank 0: set SWINGCOLL_ROOT=HOST:PORT, or pass it");
	if (rank >= 0 && !nnew) {
		/* A newcomer that a launcher has started. */
		if (!env->nranks)
			return swingcoll_bootstrap_fail(
				-EINVAL,
				"which newcomer is it? Set SWINGCOLL_RANK and SWINGCOLL_NRANKS, or pass that");
		nnew = env->nranks;
		rank = env->rank + 1;
	}
	env->rank = rank;
	env->nranks = nnew + 1;
	env->star = true;
	env->grows = true;
	env->stop = &g->stop;
	if (env->timeout_ms < creation + 5000)
		env->timeout_ms = creation + 5000;
	g->nnew = (uint32_t)nnew;
	return 0;
}

static int create(struct grow *g, const struct swingcoll_comm_opts *opts,
		  struct swingcoll_comm **out)
{
	g->boot.nranks = (int)(g->nold + g->nnew);
	g->boot.allgather = allgather;
	g->boot.arg = g;
	return swingcoll_comm_create_from(out, &g->boot, opts);
}

static int grow(struct grow *g, const char *root, int nnew, const struct swingcoll_comm_opts *opts,
		struct swingcoll_comm **out)
{
	int ret = 0;

	/* Only rank 0 needs the address, but all must know if it has none. */
	g->nnew = (uint32_t)nnew;
	if (!g->boot.rank)
		ret = read_env(g, root, nnew, 0, opts);
	if (!g->boot.rank && ret) {
		g->error = ret;
		snprintf(g->text, sizeof(g->text), "%s", swingcoll_bootstrap_error());
	}
	ret = let_rank_0(g, ret ? NULL : connect_newcomers);
	return ret ? ret : create(g, opts, out);
}

static int finish(struct grow *g, int ret, int saved)
{
	if (g->tcp)
		swingcoll_bootstrap_free(g->tcp);
	explicit_bzero(&g->env, sizeof(g->env));
	free(g);
	errno = saved;
	return ret;
}

SWC_PUBLIC int swingcoll_comm_grow(struct swingcoll_comm *comm, const char *root, int nnew,
				   const struct swingcoll_comm_opts *opts,
				   struct swingcoll_comm **out)
{
	struct grow *g;
	int saved = errno;

	if (!comm || !out)
		return swingcoll_bootstrap_fail(-EINVAL, "%s is NULL", comm ? "out" : "comm");
	if (nnew < 1 || nnew > SWC_MAX_RANKS - (int)comm->nranks)
		return swingcoll_bootstrap_fail(-EINVAL, "nnew %d: give 1 to %d", nnew,
						SWC_MAX_RANKS - (int)comm->nranks);
	*out = NULL;
	if (comm->forked)
		return swingcoll_bootstrap_fail(-EBADF, "%s", swingcoll_strerror(-EBADF));
	g = calloc(1, sizeof(*g));
	if (!g)
		return swingcoll_bootstrap_fail(-ENOMEM, "out of memory");
	g->comm = comm;
	g->nold = comm->nranks;
	g->boot.rank = (int)comm->rank;
	swingcoll_bootstrap_fail(0, "%s", "");
	return finish(g, grow(g, root, nnew, opts, out), saved);
}

static int join(struct grow *g, const char *root, int nnew, int which,
		const struct swingcoll_comm_opts *opts, struct swingcoll_comm **out)
{
	int ret = read_env(g, root, nnew, which + 1, opts);
	char there[64];
	struct tcp *t;

	if (!ret)
		ret = swc_boot_tcp(&g->tcp, &g->env);
	if (ret)
		return ret;
	t = g->tcp->arg;
	ret = swc_socket_recv(t->fd[0], &g->nold, sizeof(g->nold),
			      swc_socket_now_ms() + t->timeout_ms);
	if (ret)
		return swc_tcp_lost(t, t->fd[0], 0, ret);
	if (!g->nold || g->nold > SWC_MAX_RANKS - g->nnew) {
		swc_socket_peer_name(t->fd[0], there, sizeof(there));
		return swingcoll_bootstrap_fail(
			-EPROTO,
			"the program at %s is rank 0 of a bootstrap, not of swingcoll_comm_grow(): check HOST:PORT",
			there);
	}
	g->boot.rank = (int)g->nold + g->env.rank - 1;
	return create(g, opts, out);
}

SWC_PUBLIC int swingcoll_comm_join(const char *root, int nnew, int which,
				   const struct swingcoll_comm_opts *opts,
				   struct swingcoll_comm **out)
{
	struct grow *g;
	int saved = errno;

	if (!out)
		return swingcoll_bootstrap_fail(-EINVAL, "out is NULL");
	if (nnew < 0 || nnew >= SWC_MAX_RANKS)
		return swingcoll_bootstrap_fail(
			-EINVAL, "nnew %d: give 1 to %d, or 0 to read it from the environment",
			nnew, SWC_MAX_RANKS - 1);
	if (which < 0 || (nnew && which >= nnew))
		return swingcoll_bootstrap_fail(-EINVAL, "which %d: give 0 to %d", which,
						nnew ? nnew - 1 : SWC_MAX_RANKS - 2);
	*out = NULL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return swingcoll_bootstrap_fail(-ENOMEM, "out of memory");
	swingcoll_bootstrap_fail(0, "%s", "");
	return finish(g, join(g, root, nnew, which, opts, out), saved);
}

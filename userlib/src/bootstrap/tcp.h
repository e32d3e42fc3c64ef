/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bootstrap by TCP, between its files, each of which calls only those below it: tcp.c creates
 * and exchanges, tree.c connects many ranks as a tree, connect.c connects to another rank, accept.c
 * accepts other ranks.
 */
#ifndef SWC_BOOTSTRAP_TCP_H
#define SWC_BOOTSTRAP_TCP_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/bootstrap/bootstrap.h"
#include "src/bootstrap/socket.h"

#define NOTICE_MS 5000	/* after so long, print which ranks are missing */
#define MAX_UNKNOWN 256 /* connections that are not accepted yet */
#define NONCE 16
#define TREE_CHILDREN 8

/* @to: the rank that is to accept the connection. */
struct greeting {
	char magic[8];
	uint32_t rank;
	uint32_t nranks;
	uint64_t job;
	uint32_t has_secret;
	uint32_t to;
	uint8_t nonce[NONCE];
};

struct challenge {
	uint8_t nonce[NONCE];
	uint8_t mac[SWC_SECRET_MAC];
};

/* Ranks of a tree, @first to below @end, whose root is the first. @fd: connection with that, -1: none. */
struct subtree {
	int first;
	int end;
	int fd;
};

/**
 * struct tree - the place of a rank among many
 * @used: exchanges go through the tree
 * @parent: the rank above it, -1: it is rank 0
 * @up: connection with that, -1: none
 * @end: its own subtree is the ranks from itself to below this
 * @child: those below it
 * @nchildren: how many
 * @height: levels below it
 */
struct tree {
	bool used;
	int parent;
	int up;
	int end;
	struct subtree child[TREE_CHILDREN];
	int nchildren;
	int height;
};

/**
 * struct tcp - this rank's connections
 * @boot: the bootstrap that the caller gets
 * @fd: on rank 0, the connections by rank; on others, fd[0] is the connection to rank 0. -1: none
 * @listener: while ranks are missing that connect to this one; else -1
 * @tree: with many ranks
 * @secret: of the job
 * @note: on rank 0: who could not prove to know the secret, for the error
 * @grows, @stop: of struct swc_boot_env
 * @more_files: the limit of open files was raised
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
	struct tree tree;
	bool grows;
	const bool *stop;
	bool more_files;
};

/* How a message names a rank: "rank 0", "rank 3" or "newcomer 2". */
#define SWC_TCP_RANK "%s %d"
#define SWC_TCP_RANK_ARGS(t, rank) swc_tcp_word(t, rank), (int)(rank) - ((t)->grows && (rank))

static inline const char *swc_tcp_word(const struct tcp *t, uint32_t rank)
{
	return t->grows && rank ? "newcomer" : "rank";
}

/* ---- accept.c ---- */

int swc_tcp_listen(struct tcp *t, const struct swc_boot_env *env);
int swc_tcp_listen_anywhere(struct tcp *t);
int swc_tcp_random_nonce(uint8_t *nonce);
void swc_tcp_prove(const struct tcp *t, const char *label, const struct greeting *g,
		   const uint8_t *nonce, uint8_t *mac);
int swc_tcp_gather_ranks(struct tcp *t, uint32_t timeout_ms);
void swc_tcp_warn_without_secret(const struct tcp *t);

/* ---- connect.c ---- */

int swc_tcp_connect_root(struct tcp *t, const struct swc_boot_env *env);
int swc_tcp_connect_rank(struct tcp *t, int to, const struct addrinfo *list, uint64_t deadline,
			 int *fd, const char **why);

/* ---- tree.c ---- */

/* Note that a bootstrap cannot be used any more. Returns -ECONNRESET. */
int swc_tcp_used_up(void);

/* Note that the connection with a rank has failed, unless there is a message already. Returns @error. */
int swc_tcp_lost(const struct tcp *t, int fd, int rank, int error);
/* The place of a rank in the tree of so many. */
void swc_tcp_tree_place(struct tree *tree, int nranks, int rank);
/*
 * All ranks are connected to rank 0: connect them as a tree as well. If some of them cannot, exchanges
 * go through rank 0 on all. 0, or a negative errno.
 */
int swc_tcp_tree_join(struct tcp *t);
int swc_tcp_tree_allgather(struct tcp *t, const void *mine, char *all, size_t bytes);
void swc_tcp_tree_close(struct tcp *t);

#endif /* SWC_BOOTSTRAP_TCP_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One agreement by sockets: connects the ranks, carries the messages of consensus.c, and finds out who is
 * lost.
 */
#ifndef SWC_AGREE_SESSION_H
#define SWC_AGREE_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "src/agree/endpoint.h"

/**
 * struct swc_session_env - what a session needs to know of the communicator
 * @peers, @nranks, @rank, @key: of it; @key is its id
 * @number: of the agreement, on all ranks the same
 * @timeout_ms: for all of it
 * @progress, @progress_arg: called again and again unless NULL, as for collectives
 * @address: write the @k-th address of a rank on another node, with the port of its endpoint. Its length; 0:
 *	there are no more. For a rank of this node, the first one is swc_endpoint_name()'s. @local is zero
 *	when it is called, and becomes the address to connect from, if that matters
 * @lives: is a rank of this node still a member? Asked if it cannot be reached
 * @arg: first argument of both
 */
struct swc_session_env {
	const struct swc_peers *peers;
	uint32_t nranks;
	uint32_t rank;
	const uint8_t *key;
	uint64_t number;
	uint32_t timeout_ms;
	void (*progress)(void *arg);
	void *progress_arg;
	socklen_t (*address)(void *arg, uint32_t rank, unsigned int k, struct sockaddr_storage *sa,
			     struct sockaddr_storage *local);
	bool (*lives)(void *arg, uint32_t rank);
	void *arg;
};

/* A rank that did not answer, or whose message excluded this one, or that cannot be reached. */
#define SWC_SESSION_NO_RANK UINT32_MAX

/**
 * swc_session_run() - agree
 * @env: see there
 * @flag: in: this rank's contribution; out: the AND
 * @gone: swc_set_words() words; in: who takes no part; out: who did not, agreed
 * @rank: out, on failure: the rank concerned, or SWC_SESSION_NO_RANK
 *
 * Return: 0; -ETIMEDOUT: @rank did not come; -ECONNABORTED: @rank has excluded this one; -EHOSTUNREACH:
 * @rank lives on this node, but in another network namespace; or -ENOMEM, -EMFILE and the like. Then other
 * ranks may have agreed, without this one or with it.
 */
int swc_session_run(const struct swc_session_env *env, uint32_t *flag, uint64_t *gone,
		    uint32_t *rank);

#endif /* SWC_AGREE_SESSION_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Agreement of the ranks of a communicator on a flag and on who is gone, although ranks die while they
 * agree. Pure: no I/O, no clock, no threads; session.c carries the messages and finds out who is lost.
 * consensus.c has the protocol and why it is right.
 */
#ifndef SWC_AGREE_CONSENSUS_H
#define SWC_AGREE_CONSENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SWC_AGREE_NOBODY UINT32_MAX

/* Sets of ranks. */
static inline size_t swc_set_words(uint32_t n)
{
	return (n + 63) / 64;
}

static inline bool swc_set_has(const uint64_t *set, uint32_t rank)
{
	return set[rank / 64] >> rank % 64 & 1;
}

static inline void swc_set_add(uint64_t *set, uint32_t rank)
{
	set[rank / 64] |= 1ull << rank % 64;
}

/* Kinds of messages; who sends them to whom is at the top of consensus.c. */
enum swc_agree_kind {
	SWC_AGREE_JOIN,
	SWC_AGREE_CALL,
	SWC_AGREE_PROPOSE,
	SWC_AGREE_ACK,
	SWC_AGREE_DECIDE,
	SWC_AGREE_GOT,
	SWC_AGREE_FINISH,
	SWC_AGREE_REFUSE,
	SWC_AGREE_KINDS
};

/**
 * struct swc_agree_msg - a message; in the machine's byte order
 * @kind: enum swc_agree_kind
 * @from: sender
 * @round: of the value: the leader that has proposed it; SWC_AGREE_NOBODY: there is no value
 * @flag: JOIN: the sender's contribution
 * @value: the value's flag
 * @zero: 0
 * @sets: who is gone for the sender, then who is gone in the value, swc_set_words() words each
 */
struct swc_agree_msg {
	uint32_t kind;
	uint32_t from;
	uint32_t round;
	uint32_t flag;
	uint32_t value;
	uint32_t zero;
	uint64_t sets[];
};

static inline size_t swc_agree_msg_bytes(uint32_t n)
{
	return sizeof(struct swc_agree_msg) + 2 * swc_set_words(n) * sizeof(uint64_t);
}

/* How an agreement stands for a rank. */
enum swc_agree_state {
	SWC_AGREE_OPEN,
	SWC_AGREE_DECIDED, /* knows the value, and waits to hear that all others do */
	SWC_AGREE_DONE,	   /* knows the value */
	SWC_AGREE_OUT	   /* others have excluded this rank */
};

struct swc_agree;

/* Queue a message for a rank. It may call nothing here. */
typedef void swc_agree_send_fn(void *arg, uint32_t to, const struct swc_agree_msg *msg);

/**
 * swc_agree_new() - begin an agreement
 * @n: number of ranks
 * @me: this one
 * @flag: its contribution
 * @gone: ranks that take no part: they are known to be dead, or are to be excluded. Not @me
 * @send: takes messages from now on
 * @arg: its first argument
 *
 * Return: to be freed with swc_agree_free(); NULL without memory.
 */
struct swc_agree *swc_agree_new(uint32_t n, uint32_t me, uint32_t flag, const uint64_t *gone,
				swc_agree_send_fn *send, void *arg);
void swc_agree_free(struct swc_agree *a);

/* Send the first messages. Then: a message has arrived. False: it is none of the protocol. */
void swc_agree_start(struct swc_agree *a);
bool swc_agree_receive(struct swc_agree *a, const struct swc_agree_msg *msg);
/* A rank has died or has closed its connection. */
void swc_agree_lost(struct swc_agree *a, uint32_t rank);
/* A connection with a rank that lives was lost, and is made again: what was under way is sent again. */
void swc_agree_resend(struct swc_agree *a, uint32_t rank);
/* A connection with a rank was made: if it is gone for this one, it must hear so, even after the decision. */
void swc_agree_refuse(struct swc_agree *a, uint32_t rank);
/* The deadline has passed. DECIDED becomes DONE. */
void swc_agree_expire(struct swc_agree *a);

/* Must the death of that rank be noticed now? */
bool swc_agree_awaits(const struct swc_agree *a, uint32_t rank);

enum swc_agree_state swc_agree_state(const struct swc_agree *a);
/* DONE: the value, the same on all ranks. */
uint32_t swc_agree_flag(const struct swc_agree *a);
const uint64_t *swc_agree_gone(const struct swc_agree *a);
/* OUT: the rank that has told this one. */
uint32_t swc_agree_excluder(const struct swc_agree *a);
/* The lowest rank whose message is awaited, SWC_AGREE_NOBODY: none. For an error. */
uint32_t swc_agree_missing(const struct swc_agree *a);

#endif /* SWC_AGREE_CONSENSUS_H */

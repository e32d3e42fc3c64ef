// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Uniform consensus with a rotating leader, after the hierarchical uniform consensus of Guerraoui and
 * Rachid ("Introduction to Reliable Distributed Programming", section 5.4), with the leader collecting
 * what all contribute.
 *
 * Each rank has a set of ranks that are gone for it. The set only grows: by ranks that it loses, and by
 * the sets in the messages that it gets. In the beginning it has those that the caller knows to be dead or
 * wants to exclude. The rank's leader is the lowest rank that is not gone. The value is a flag and a set; its
 * round is the number of the leader that has proposed it last.
 *
 *	member -> leader	JOIN: its contribution, and the value that it has adopted, if any
 *	leader -> missing ones	CALL, which tells them who is gone
 *	leader -> members	PROPOSE, when all that are not gone have joined: the adopted value of the
 *				highest round; without one, the contributions of those that have joined,
 *				by AND, and the leader's set
 *	member -> leader	ACK: it has adopted the value
 *	leader -> members	DECIDE, when all that are not gone have acknowledged
 *	member -> leader	GOT: it knows the decision
 *	leader -> members	FINISH, when all that are not gone know it
 *	any -> any		REFUSE: you are gone for me
 *
 * A rank is lost when it has died. It may also be taken for dead while it lives, when a connection fails; then
 * it hears so from the others. A rank that finds itself in the set of a message gives up (SWC_AGREE_OUT). If
 * two ranks exclude each other, the higher one does. A message from a rank that is gone is answered by REFUSE,
 * unless it is a decision.
 *
 * Uniform agreement: no two ranks get different values, not even one that dies then. Let leader L decide V.
 * All ranks that were not gone for L had adopted V by L's round. A later leader M has L in its set, and
 * proposes when all that are not gone for M have joined. Those of them that acknowledged L's proposal did so
 * before they joined M, because L is gone for them since, and so they told M of V. M proposes the value of
 * the highest round, which is L's or that of a leader between, which by induction proposed V, too. So two
 * values need an M, and ranks that joined it, that were all gone for L when L decided, although they live:
 * false suspicions. A single one, of two ranks that lose each other, does not suffice: all others are not gone
 * for either of the two, and have to answer both, but after they joined M they refuse L. Several at once, as
 * in a network that splits, can lead to two decisions, of disjoint sets of ranks. (No algorithm that has to
 * succeed with one survivor can avoid that.)
 *
 * Validity: the flag is the AND of contributions of ranks that took part; the set has only ranks that were
 * lost or excluded by someone.
 *
 * Termination: a rank waits only for its leader, or as a leader for ranks that are not gone, and each of
 * them answers, dies, or has returned. It returns with FINISH only after all that are not gone for the
 * leader know the decision, so nobody asks it any more. It returns without FINISH if its leader is lost
 * after DECIDE, or if it has heard the decision from another member; then it has sent the decision to all
 * that are not gone, who need no leader. Each of n leaders costs at most six messages, one after the other,
 * and the time to detect its death: with f deaths 6 (f + 1) message times and f detections at most, and
 * O(n) messages for each leader, plus n^2 when a leader dies between DECIDE and FINISH. A rank that never comes
 * ends it by the caller's deadline: swc_agree_expire().
 */
#include <stdlib.h>
#include <string.h>

#include "src/agree/consensus.h"

/**
 * struct swc_agree - an agreement, as one rank sees it
 * @words: of a set
 * @leader: this rank's, SWC_AGREE_NOBODY before the start
 * @proposed: this rank leads, and has proposed
 * @round, @value, @value_gone: adopted value; @round SWC_AGREE_NOBODY: none
 * @gone: who is gone for this rank
 * @joined, @acked, @got: while it leads: who has sent these
 * @flags: contributions, of this rank and of those in @joined
 * @out: to assemble messages
 */
struct swc_agree {
	uint32_t n, me;
	size_t words;
	swc_agree_send_fn *send;
	void *arg;
	enum swc_agree_state state;
	uint32_t leader;
	uint32_t excluder;
	bool proposed;
	uint32_t round, value;
	uint64_t *value_gone, *gone, *joined, *acked, *got;
	uint32_t *flags;
	struct swc_agree_msg *out;
};

struct swc_agree *swc_agree_new(uint32_t n, uint32_t me, uint32_t flag, const uint64_t *gone,
				swc_agree_send_fn *send, void *arg)
{
	struct swc_agree *a = calloc(1, sizeof(*a));
	size_t words = swc_set_words(n);

	if (!a)
		return NULL;
	a->n = n;
	a->me = me;
	a->words = words;
	a->send = send;
	a->arg = arg;
	a->leader = a->round = a->excluder = SWC_AGREE_NOBODY;
	a->value_gone = calloc(5 * words, sizeof(uint64_t));
	a->flags = calloc(n, sizeof(*a->flags));
	a->out = calloc(1, swc_agree_msg_bytes(n));
	if (!a->value_gone || !a->flags || !a->out) {
		swc_agree_free(a);
		return NULL;
	}
	a->gone = a->value_gone + words;
	a->joined = a->gone + words;
	a->acked = a->joined + words;
	a->got = a->acked + words;
	memcpy(a->gone, gone, words * sizeof(*gone));
	a->flags[me] = flag;
	return a;
}

void swc_agree_free(struct swc_agree *a)
{
	if (!a)
		return;
	free(a->value_gone);
	free(a->flags);
	free(a->out);
	free(a);
}

/* ---- sending ---- */

static void send_to(struct swc_agree *a, uint32_t to, enum swc_agree_kind kind)
{
	struct swc_agree_msg *m = a->out;
	size_t bytes = a->words * sizeof(*m->sets);

	*m = (struct swc_agree_msg){ .kind = kind,
				     .from = a->me,
				     .round = a->round,
				     .flag = a->flags[a->me],
				     .value = a->value };
	memcpy(m->sets, a->gone, bytes);
	memcpy(m->sets + a->words, a->value_gone, bytes);
	a->send(a->arg, to, m);
}

static void send_all(struct swc_agree *a, enum swc_agree_kind kind)
{
	for (uint32_t r = 0; r < a->n; r++)
		if (r != a->me && !swc_set_has(a->gone, r))
			send_to(a, r, kind);
}

/* ---- progress ---- */

/* Are all ranks in the set that are not gone? */
static bool all_in(const struct swc_agree *a, const uint64_t *set)
{
	uint64_t last = a->n % 64 ? (1ull << a->n % 64) - 1 : UINT64_MAX;

	for (size_t w = 0; w < a->words; w++)
		if (~(set[w] | a->gone[w]) & (w == a->words - 1 ? last : UINT64_MAX))
			return false;
	return true;
}

static uint32_t lowest(const struct swc_agree *a)
{
	uint32_t r = 0;

	while (swc_set_has(a->gone, r))
		r++;
	return r;
}

/* The leader may have died before all know the decision: everyone gets it from this rank. */
static void spread(struct swc_agree *a)
{
	send_all(a, SWC_AGREE_DECIDE);
	a->state = SWC_AGREE_DONE;
}

static void follow(struct swc_agree *a, uint32_t leader)
{
	uint32_t old = a->leader;

	a->leader = leader;
	/* It may be alive, and wait for this rank. */
	if (old != SWC_AGREE_NOBODY)
		send_to(a, old, SWC_AGREE_REFUSE);
	if (leader != a->me) {
		send_to(a, leader, SWC_AGREE_JOIN);
		return;
	}
	swc_set_add(a->joined, a->me);
	send_all(a, SWC_AGREE_CALL);
}

static void propose(struct swc_agree *a)
{
	if (a->round == SWC_AGREE_NOBODY) {
		a->value = UINT32_MAX;
		for (uint32_t r = 0; r < a->n; r++)
			if (!swc_set_has(a->gone, r))
				a->value &= a->flags[r];
		memcpy(a->value_gone, a->gone, a->words * sizeof(*a->gone));
	}
	a->round = a->me;
	a->proposed = true;
	swc_set_add(a->acked, a->me);
	send_all(a, SWC_AGREE_PROPOSE);
}

static void lead(struct swc_agree *a)
{
	if (!a->proposed && all_in(a, a->joined))
		propose(a);
	if (a->proposed && a->state == SWC_AGREE_OPEN && all_in(a, a->acked)) {
		a->state = SWC_AGREE_DECIDED;
		swc_set_add(a->got, a->me);
		send_all(a, SWC_AGREE_DECIDE);
	}
	if (a->state == SWC_AGREE_DECIDED && all_in(a, a->got)) {
		send_all(a, SWC_AGREE_FINISH);
		a->state = SWC_AGREE_DONE;
	}
}

/* Do what the present state allows. */
static void advance(struct swc_agree *a)
{
	uint32_t leader = lowest(a);

	if (leader != a->leader) {
		if (a->state == SWC_AGREE_DECIDED) {
			spread(a);
			return;
		}
		follow(a, leader);
	}
	if (leader == a->me)
		lead(a);
}

void swc_agree_start(struct swc_agree *a)
{
	advance(a);
}

void swc_agree_lost(struct swc_agree *a, uint32_t rank)
{
	if (a->state >= SWC_AGREE_DONE || swc_set_has(a->gone, rank))
		return;
	swc_set_add(a->gone, rank);
	advance(a);
}

void swc_agree_expire(struct swc_agree *a)
{
	if (a->state == SWC_AGREE_DECIDED)
		spread(a);
}

/* ---- receiving ---- */

static bool is_valid(const struct swc_agree *a, const struct swc_agree_msg *m)
{
	uint64_t past = a->n % 64 ? ~0ull << a->n % 64 : 0;

	if (m->kind >= SWC_AGREE_KINDS || m->from >= a->n || m->from == a->me || m->zero ||
	    (m->round >= a->n && m->round != SWC_AGREE_NOBODY))
		return false;
	if ((m->sets[a->words - 1] | m->sets[2 * a->words - 1]) & past)
		return false;
	return !swc_set_has(m->sets, m->from);
}

static void adopt(struct swc_agree *a, const struct swc_agree_msg *m)
{
	a->round = m->round;
	a->value = m->value;
	memcpy(a->value_gone, m->sets + a->words, a->words * sizeof(*m->sets));
}

static void give_up(struct swc_agree *a, uint32_t excluder)
{
	a->state = SWC_AGREE_OUT;
	a->excluder = excluder;
}

/* The sender must hear or excludes this rank: the message is only good for that. */
static bool is_between_strangers(struct swc_agree *a, const struct swc_agree_msg *m)
{
	bool sender_gone = swc_set_has(a->gone, m->from);

	if (swc_set_has(m->sets, a->me) && (!sender_gone || m->from < a->me)) {
		give_up(a, m->from);
		return true;
	}
	/* Not as an answer to the same, which would go on for ever. */
	if (sender_gone && (m->kind != SWC_AGREE_REFUSE || swc_set_has(m->sets, a->me)))
		send_to(a, m->from, SWC_AGREE_REFUSE);
	return sender_gone;
}

static void receive_join(struct swc_agree *a, const struct swc_agree_msg *m)
{
	if (a->leader != a->me)
		return;
	if (a->proposed) {
		/* Again, after a connection was lost. */
		swc_agree_resend(a, m->from);
		return;
	}
	swc_set_add(a->joined, m->from);
	a->flags[m->from] = m->flag;
	if (m->round != SWC_AGREE_NOBODY && (a->round == SWC_AGREE_NOBODY || m->round > a->round))
		adopt(a, m);
}

static void receive_decision(struct swc_agree *a, const struct swc_agree_msg *m)
{
	if (swc_set_has(m->sets + a->words, a->me)) {
		give_up(a, m->from);
		return;
	}
	adopt(a, m);
	/* Only the one that has proposed it will send FINISH. */
	if (m->from == a->leader && m->from == m->round) {
		a->state = SWC_AGREE_DECIDED;
		send_to(a, m->from, SWC_AGREE_GOT);
	} else {
		spread(a);
	}
}

bool swc_agree_receive(struct swc_agree *a, const struct swc_agree_msg *m)
{
	if (!is_valid(a, m))
		return false;
	if (a->state >= SWC_AGREE_DONE)
		return true;
	if (m->kind == SWC_AGREE_DECIDE && a->state == SWC_AGREE_OPEN) {
		receive_decision(a, m);
		return true;
	}
	if (is_between_strangers(a, m))
		return true;
	for (size_t w = 0; w < a->words; w++)
		a->gone[w] |= m->sets[w];
	/* This may make the sender the leader, or this rank. */
	advance(a);
	if (a->state >= SWC_AGREE_DONE)
		return true;
	switch (m->kind) {
	case SWC_AGREE_JOIN:
		receive_join(a, m);
		break;
	case SWC_AGREE_PROPOSE:
		if (m->from != a->leader || a->state != SWC_AGREE_OPEN)
			break;
		adopt(a, m);
		send_to(a, m->from, SWC_AGREE_ACK);
		break;
	case SWC_AGREE_ACK:
		if (a->proposed)
			swc_set_add(a->acked, m->from);
		break;
	case SWC_AGREE_DECIDE:
		/* Again, from the leader; or the sender knows, from a leader before this rank. */
		if (m->from == a->leader)
			send_to(a, m->from, SWC_AGREE_GOT);
		swc_set_add(a->got, m->from);
		break;
	case SWC_AGREE_GOT:
		if (a->state == SWC_AGREE_DECIDED)
			swc_set_add(a->got, m->from);
		break;
	case SWC_AGREE_FINISH:
		if (a->state == SWC_AGREE_DECIDED && m->from == a->leader)
			a->state = SWC_AGREE_DONE;
		break;
	}
	if (a->state < SWC_AGREE_DONE && a->leader == a->me)
		lead(a);
	return true;
}

void swc_agree_resend(struct swc_agree *a, uint32_t rank)
{
	if (a->state >= SWC_AGREE_DONE || swc_set_has(a->gone, rank))
		return;
	if (a->leader == rank)
		send_to(a, rank, a->state == SWC_AGREE_DECIDED ? SWC_AGREE_GOT : SWC_AGREE_JOIN);
	if (a->leader != a->me)
		return;
	if (!a->proposed)
		send_to(a, rank, SWC_AGREE_CALL);
	else if (a->state == SWC_AGREE_OPEN)
		send_to(a, rank, SWC_AGREE_PROPOSE);
	else
		send_to(a, rank, SWC_AGREE_DECIDE);
}

void swc_agree_refuse(struct swc_agree *a, uint32_t rank)
{
	if (a->state != SWC_AGREE_OUT && swc_set_has(a->gone, rank))
		send_to(a, rank, SWC_AGREE_REFUSE);
}

/* ---- asking ---- */

bool swc_agree_awaits(const struct swc_agree *a, uint32_t rank)
{
	if (a->state >= SWC_AGREE_DONE || rank == a->me || swc_set_has(a->gone, rank))
		return false;
	return a->leader == a->me || a->leader == rank;
}

enum swc_agree_state swc_agree_state(const struct swc_agree *a)
{
	return a->state;
}

uint32_t swc_agree_flag(const struct swc_agree *a)
{
	return a->value;
}

const uint64_t *swc_agree_gone(const struct swc_agree *a)
{
	return a->value_gone;
}

uint32_t swc_agree_excluder(const struct swc_agree *a)
{
	return a->excluder;
}

uint32_t swc_agree_missing(const struct swc_agree *a)
{
	const uint64_t *set = a->state == SWC_AGREE_DECIDED ? a->got
			      : a->proposed		    ? a->acked
							    : a->joined;

	if (a->leader != a->me)
		return a->leader;
	for (uint32_t r = 0; r < a->n; r++)
		if (!swc_set_has(set, r) && !swc_set_has(a->gone, r))
			return r;
	return SWC_AGREE_NOBODY;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Small messages without system calls: ranks of one node exchange them through shared memory.
 *
 * Runs in the caller's thread under comm->order. Values that other ranks write are trusted, sizes
 * and offsets are never read from the shared memory. slots_priv.h has its layout, slots_wait.c tells
 * how a rank waits for others.
 *
 * Protocol. A rank numbers all its collectives, k = 0, 1, ..., through the slots or the kernel. For
 * each it publishes cell[rank] of record k: it writes its contribution, then what it is about to do
 * (the signature), then the number k + 1 with release. For a collective through the slots it then
 * waits until all cells of the record hold k + 1. Now all ranks see the same nranks signatures. If
 * they are equal, each rank computes the result, in rank order, so results are the same to the bit.
 * If not, a rank has chosen the kernel (a non-blocking call) or called another collective: then
 * each rank that came to the slots submits its collective to the kernel, which matches them. That
 * decision is the same on all ranks, and the calls of one rank reach the kernel in order, because
 * comm->order is held from publishing to submission.
 *
 * Reuse of cells. Publishing k overwrites what record k - RECORDS held. A rank reads a record only
 * until it publishes the next one (comm->order again), so it is enough that all ranks have
 * published k - RECORDS + 1. At every multiple g of STRIDE a rank checks that all have published g
 * - LEAD; so when it publishes k, with g = k - k % STRIDE, all have published at least k - (STRIDE
 * - 1) - LEAD, which is not less than k - RECORDS + 1 as STRIDE + LEAD <= RECORDS. For the same
 * reason a cell of record k never runs a whole round ahead of a rank that reads it, so a waiter
 * accepts "k + 1 or later", by signed difference. The check fails only for callers with more than
 * LEAD collectives in flight, which the kernel refuses too.
 *
 * Reuse of data slots. The slot of parity k & 1, or the piece of it, was last written for some
 * k' <= k - 2. Its readers are done when they have published k' + 1. So before writing, all ranks
 * must have published k' + 1. When collective k - 1 went through the slots and is not eager, its
 * wait has already shown more than that (@met). Otherwise the rank waits for record k' + 1. No rank
 * waits for this one to get there, since this one has published k' + 1 <= k - 1 before.
 *
 * Eager collectives (@eager). A rank of a broadcast or scatter waits only for the root's cell, the
 * root of a reduce or gather for all cells, and the others for none: they are done when they have
 * published. So those do not learn what the others have called. What they have published cannot go
 * to the kernel any more; a rank that disagrees with it ends the communicator. A rank may be many
 * collectives ahead of others: where the check at a multiple of STRIDE fails, it waits for all to
 * publish the last eager collective (@owed). That cannot be a deadlock, as it might have waited for
 * them in that collective, which blocks. Readers of a data slot wait for nobody but its writer, so
 * the wait above ends as well.
 *
 * Few CPUs. If each of p ranks reads the cells and adds the contributions of all, the work is p^2.
 * While each has a CPU of its own, p of them share it. With more ranks than CPUs (@crowded, the same
 * on all ranks) the rank that is last to publish looks at the cells for all: it finds out whether
 * they agree, computes the sum of an allreduce in the meeting, and publishes the outcome, k + 1. The
 * others wait for that one word and copy the sum. A counter tells which rank is last; that one sets
 * it back, before the outcome, so it is 0 when the record is reused. A sum slot is written by a rank
 * that has seen all publish k, so its last readers, of k' <= k - 2, are done: they have published
 * k' + 1.
 */
#include <errno.h>
#include <string.h>

#include "kmod/core/reduce.h"
#include "src/shm/slots_priv.h"

#define LAYOUT_VERSION 3
#define LINE SWC_SLOTS_LINE
#define RECORDS SWC_SLOTS_RECORDS
#define STRIDE 32
#define LEAD 64
/* Pieces of a data slot. */
#define PIECES SWC_SLOT_PIECES

_Static_assert(STRIDE + LEAD <= RECORDS, "records would be reused while they are read");
_Static_assert(LEAD >= SWC_MAX_INFLIGHT, "the check would refuse what the kernel allows");

/* Signature of a collective that goes through the kernel. Others have bit 0 clear. */
#define VIA_KERNEL 1ull

static char *data(const struct swc_slots *s, uint64_t k, uint32_t rank)
{
	return swc_slots_record(s, 0) + RECORDS * LINE * (s->nranks + 1ull) +
	       ((k & 1) * s->nranks + rank) * s->max_bytes;
}

static bool fits_cell(size_t bytes)
{
	return bytes <= sizeof(((struct swc_slots_cell *)NULL)->data);
}

static size_t piece_bytes(const struct swc_slots *s)
{
	return s->max_bytes / PIECES / LINE * LINE;
}

/* The piece of the data slot of collective k, or PIECES: the whole. */
static unsigned int piece_of(const struct swc_slots *s, uint64_t k, size_t bytes)
{
	return bytes <= piece_bytes(s) ? (unsigned int)(k / 2 % PIECES) : PIECES;
}

/* Where a rank's contribution to collective k lies. */
static char *contribution(const struct swc_slots *s, uint64_t k, uint32_t rank, size_t bytes)
{
	if (fits_cell(bytes))
		return swc_slots_cell(s, k, rank)->data;
	return data(s, k, rank) + piece_of(s, k, bytes) % PIECES * piece_bytes(s);
}

/* Where the sum of collective k lies; behind the contributions of the last rank. */
static char *sum_of(const struct swc_slots *s, uint64_t k, size_t bytes)
{
	return bytes <= sizeof(swc_slots_meeting(s, k)->sum)
		       ? swc_slots_meeting(s, k)->sum
		       : data(s, 1, s->nranks) + (k & 1) * s->max_bytes;
}

size_t swc_slots_plan(struct swc_slots *s, uint32_t nranks, uint32_t rank, size_t max_bytes)
{
	size_t fixed = sizeof(struct swc_slots_header) + RECORDS * LINE * (nranks + 1ull);
	size_t room = fixed < SWC_MAX_SLOT_BYTES
			      ? (SWC_MAX_SLOT_BYTES - fixed) / (2 * (nranks + 1ull))
			      : 0;

	max_bytes = (max_bytes + LINE - 1) / LINE * LINE;
	if (max_bytes > room)
		max_bytes = room / LINE * LINE;
	*s = (struct swc_slots){
		.nranks = nranks,
		.rank = rank,
		.max_bytes = max_bytes,
		.bytes = (fixed + 2 * (nranks + 1ull) * max_bytes + 4095) / 4096 * 4096,
	};
	return s->bytes;
}

int swc_slots_attach(struct swc_slots *s, void *base)
{
	uint64_t mine = (uint64_t)s->eager << 63 | (uint64_t)LAYOUT_VERSION << 48 |
			(uint64_t)s->nranks << 32 | s->max_bytes;
	uint64_t seen = 0;

	s->base = base;
	if (!__atomic_compare_exchange_n(&swc_slots_header(s)->layout, &seen, mine, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
	    seen != mine) {
		/* The others find this where it is in every layout, and do not wait for this rank. */
		__atomic_store_n(&swc_slots_header(s)->left[s->rank], 1, __ATOMIC_RELEASE);
		s->base = NULL;
		return -EPROTO;
	}
	/*
	 * The kernel's count: a rank's own mask does not tell, as launchers often bind each rank to
	 * one CPU.
	 */
	s->crowded = s->nranks > s->state->ncpus;
	swc_slots_wait_init(s);
	return 0;
}

/* ---- publishing ---- */

/* May collective k be published? See "Reuse of cells". */
static bool in_reach(const struct swc_slots *s, uint64_t k)
{
	return k % STRIDE || k < LEAD || s->met > k - LEAD ||
	       swc_slots_have_all_published(s, k - LEAD);
}

/* Have all ranks called this collective, through the slots? */
static bool agreed(const struct swc_slots *s, uint64_t k, uint64_t mine)
{
	for (uint32_t r = 0; r < s->nranks; r++)
		if (swc_slots_cell(s, k, r)->signature != mine)
			return false;
	return true;
}

static bool has_one_source(enum swc_coll coll)
{
	return coll == SWC_BROADCAST || coll == SWC_SCATTER;
}

static bool is_eager(const struct swc_slots *s, enum swc_coll coll)
{
	return s->eager && (has_one_source(coll) || coll == SWC_REDUCE || coll == SWC_GATHER);
}

static void reduce(struct swc_slots *s, const struct swc_slots_op *op, uint64_t k, size_t offset,
		   void *dst)
{
	swc_reduce_fn fn = swc_reduce_get(op->dtype, op->redop);
	const void *src[SWC_MAX_LOCAL_RANKS];

	for (uint32_t r = 0; r < s->nranks; r++)
		src[r] = r == s->rank ? (const char *)op->send + offset
				      : contribution(s, k, r, op->bytes) + offset;
	fn(&dst, 1, src, s->nranks, op->count, s->nranks);
}

/* This rank is the last one to publish, and concludes for all. @op NULL: it goes to the kernel. */
static void conclude(struct swc_slots *s, uint64_t k, const struct swc_slots_op *op)
{
	struct swc_slots_meeting *m = swc_slots_meeting(s, k);

	__atomic_store_n(&m->arrived, 0, __ATOMIC_RELAXED);
	m->agreed = op && !is_eager(s, op->coll) &&
		    agreed(s, k, swc_slots_cell(s, k, s->rank)->signature);
	if (m->agreed && op->coll == SWC_ALLREDUCE)
		reduce(s, op, k, 0, sum_of(s, k, op->bytes));
	__atomic_store_n(&m->outcome, (uint32_t)(k + 1), __ATOMIC_RELEASE);
	/* Pairs with the barrier in sleep_until_met(), see slots_wait.c. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&m->sleepers, __ATOMIC_RELAXED))
		swc_slots_wake(s, k);
}

/* Does a rank wait for this one alone? */
static bool is_only_source(const struct swc_slots *s, const struct swc_slots_op *op)
{
	return op && is_eager(s, op->coll) && has_one_source(op->coll) && s->rank == op->root;
}

/* @op: the collective of this signature, or NULL with VIA_KERNEL. */
static void publish(struct swc_slots *s, uint64_t k, uint64_t signature,
		    const struct swc_slots_op *op)
{
	struct swc_slots_meeting *m = swc_slots_meeting(s, k);
	struct swc_slots_cell *c = swc_slots_cell(s, k, s->rank);

	c->signature = signature;
	__atomic_store_n(&c->number, (uint32_t)(k + 1), __ATOMIC_RELEASE);
	s->next = k + 1;
	/* The last one sees the cells of all: each has added to the counter after. */
	if (s->crowded && __atomic_add_fetch(&m->arrived, 1, __ATOMIC_ACQ_REL) == s->nranks) {
		conclude(s, k, op);
		return;
	}
	/* With few CPUs the last one wakes those who wait for all. */
	if (s->crowded && !is_only_source(s, op))
		return;
	/* Pairs with the barrier in sleep_until_met(), see slots_wait.c. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&m->sleepers, __ATOMIC_RELAXED) &&
	    (is_only_source(s, op) || swc_slots_have_all_published(s, k)))
		swc_slots_wake(s, k);
}

/* Wait until the next collective may be published. -EAGAIN: too many are in flight. */
static int get_in_reach(struct swc_slots *s)
{
	int ret = 0;

	if (in_reach(s, s->next))
		return 0;
	if (s->met < s->owed)
		ret = swc_slots_meet(s, s->owed - 1);
	if (ret == SWC_SLOTS_FALLBACK)
		return s->env->fail(s->arg, -ECONNRESET, swc_slots_who_left(s, s->owed - 1));
	return ret ? ret : in_reach(s, s->next) ? 0 : -EAGAIN;
}

/* ---- collectives ---- */

/* All that must be equal on all ranks. It is exact, as the size of a slot bounds count. */
static uint64_t signature(const struct swc_slots_op *op)
{
	return (uint64_t)op->count << 32 | (uint64_t)op->root << 16 | (uint64_t)op->dtype << 12 |
	       (uint64_t)op->redop << 8 | (uint64_t)op->coll << 4;
}

static enum swc_coll coll_of(uint64_t signature)
{
	return (enum swc_coll)(signature >> 4 & 15);
}

static bool contributes(const struct swc_slots *s, const struct swc_slots_op *op)
{
	bool root_only = op->coll == SWC_BROADCAST || op->coll == SWC_SCATTER;

	return op->coll != SWC_BARRIER && (!root_only || s->rank == op->root);
}

/* Whom this rank waits for in a collective that it has published. */
static struct swc_slots_awaited sources(const struct swc_slots *s, const struct swc_slots_op *op,
					uint64_t k)
{
	struct swc_slots_awaited w = swc_slots_await_all(s, k);

	if (!is_eager(s, op->coll))
		return w;
	w.concluded = false;
	if (has_one_source(op->coll)) {
		w.late = op->root;
		w.end = op->root + 1;
	} else if (s->rank != op->root) {
		w.end = 0;
	}
	return w;
}

/*
 * All that this rank waits for have published. Is the collective theirs, too? SWC_SLOTS_FALLBACK: no,
 * it goes to the kernel.
 */
static int compare(struct swc_slots *s, const struct swc_slots_awaited *w, uint64_t mine,
		   bool eager)
{
	bool differ = false;

	if (w->concluded && swc_slots_meeting(s, w->k)->agreed)
		return 0;
	for (uint32_t r = w->late; r < w->end; r++) {
		uint64_t other = swc_slots_cell(s, w->k, r)->signature;

		if (other == mine)
			continue;
		/* It has not waited for this rank, or this one not for others: too late for the kernel. */
		if (is_eager(s, coll_of(other)) || (eager && other != VIA_KERNEL))
			return s->env->fail(s->arg, -EPROTO, r);
		differ = true;
	}
	/* A rank that leaves after an abort has published what is to go to the kernel. */
	return differ ? swc_slots_aborted(s) ?: SWC_SLOTS_FALLBACK : 0;
}

static void copy(void *to, const void *from, size_t bytes)
{
	if (bytes && to != from)
		memcpy(to, from, bytes);
}

static void compute(struct swc_slots *s, const struct swc_slots_op *op, uint64_t k)
{
	size_t bytes = op->bytes;
	const char *from;

	switch (op->coll) {
	case SWC_ALLREDUCE:
		if (s->crowded)
			copy(op->recv, sum_of(s, k, bytes), bytes);
		else
			reduce(s, op, k, 0, op->recv);
		break;
	case SWC_REDUCE_SCATTER:
		reduce(s, op, k, bytes / s->nranks * s->rank, op->recv);
		break;
	case SWC_REDUCE:
		if (s->rank == op->root)
			reduce(s, op, k, 0, op->recv);
		break;
	case SWC_ALLGATHER:
		for (uint32_t r = 0; r < s->nranks; r++)
			copy((char *)op->recv + r * bytes,
			     r == s->rank ? op->send : contribution(s, k, r, bytes), bytes);
		break;
	case SWC_GATHER:
		for (uint32_t r = 0; s->rank == op->root && r < s->nranks; r++)
			copy((char *)op->recv + r * bytes,
			     r == s->rank ? op->send : contribution(s, k, r, bytes), bytes);
		break;
	case SWC_ALLTOALL:
		bytes /= s->nranks;
		for (uint32_t r = 0; r < s->nranks; r++) {
			from = r == s->rank ? op->send : contribution(s, k, r, op->bytes);
			copy((char *)op->recv + r * bytes, from + bytes * s->rank, bytes);
		}
		break;
	case SWC_SCATTER:
		from = s->rank == op->root ? op->send : contribution(s, k, op->root, bytes);
		copy(op->recv, from + bytes / s->nranks * s->rank, bytes / s->nranks);
		break;
	case SWC_BROADCAST:
		copy(op->recv, s->rank == op->root ? op->send : contribution(s, k, op->root, bytes),
		     bytes);
		break;
	default:
		break;
	}
}

/* Number, plus one, of the last collective that used the part of the data slot which k is to use. */
static uint64_t last_use(const struct swc_slots *s, uint64_t k, unsigned int piece)
{
	const uint64_t *use = s->last_use[k & 1];
	uint64_t last = use[piece % PIECES];

	for (unsigned int i = 0; piece == PIECES && i < PIECES; i++)
		last = use[i] > last ? use[i] : last;
	return last;
}

/* Write the contribution to collective k, see "Reuse of data slots". */
static int contribute(struct swc_slots *s, const struct swc_slots_op *op, uint64_t k)
{
	unsigned int piece = piece_of(s, k, op->bytes);
	uint64_t after;
	int ret;

	if (!fits_cell(op->bytes)) {
		after = last_use(s, k, piece); /* k' + 1 */
		ret = after && s->met <= after ? swc_slots_meet(s, after) : 0;
		if (ret)
			return ret;
		for (unsigned int i = 0; i < PIECES; i++)
			if (piece == PIECES || piece == i)
				s->last_use[k & 1][i] = k + 1;
	}
	copy(contribution(s, k, s->rank, op->bytes), op->send, op->bytes);
	return 0;
}

int swc_slots_run(struct swc_slots *s, const struct swc_slots_op *op)
{
	uint64_t k = s->next, mine = signature(op);
	bool eager = is_eager(s, op->coll);
	struct swc_slots_awaited w;
	int ret = swc_slots_aborted(s);

	if (!ret)
		ret = get_in_reach(s);
	if (!ret && contributes(s, op))
		ret = contribute(s, op, k);
	/* A rank has left, so this goes to the kernel. Publish it, to keep the numbers in step. */
	if (ret == SWC_SLOTS_FALLBACK)
		publish(s, k, VIA_KERNEL, NULL);
	if (ret)
		return ret;
	publish(s, k, mine, op);
	if (eager)
		s->owed = k + 1;
	w = sources(s, op, k);
	ret = eager ? swc_slots_wait_for(s, w) : swc_slots_meet(s, k);
	if (ret)
		return ret;
	ret = compare(s, &w, mine, eager);
	if (!ret)
		compute(s, op, k);
	return ret;
}

int swc_slots_may_pass(struct swc_slots *s)
{
	return s->base ? get_in_reach(s) : 0;
}

int swc_slots_pass(struct swc_slots *s)
{
	int ret = swc_slots_may_pass(s);

	if (!ret && s->base)
		publish(s, s->next, VIA_KERNEL, NULL);
	return ret;
}

/*
 * Ranks that wait for this one must notice that it will not come. Those that poll see the flag.
 * Those that sleep are woken by the kernel when a member leaves; but they sleep on a cell, so the
 * cells of the collectives to come change as well, as many as may be overwritten.
 */
void swc_slots_leave(struct swc_slots *s)
{
	uint64_t end = s->next - s->next % STRIDE + STRIDE;

	if (!s->base)
		return;
	__atomic_store_n(&swc_slots_header(s)->left[s->rank], 1, __ATOMIC_RELEASE);
	if (in_reach(s, s->next))
		for (uint64_t k = s->next; k < end; k++)
			publish(s, k, VIA_KERNEL, NULL);
	s->env->wake(s->arg);
	s->base = NULL;
}

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

/*
 * A call of some bytes takes as long as its instructions, so what it executes is compiled for each
 * collective, with all that follows from which one it is: see run_as().
 */
#define INLINE static inline __attribute__((always_inline))
#define APART __attribute__((noinline))
#define UNLIKELY(condition) __builtin_expect(condition, 0)

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

/* Where the contributions to a collective lie. */
struct contributions {
	char *first; /* of rank 0 */
	size_t stride;
};

/* @record: of k. */
INLINE struct contributions contributions(const struct swc_slots *s, char *record, uint64_t k,
					  size_t bytes)
{
	if (fits_cell(bytes))
		return (struct contributions){ swc_slots_cell_in(record, 0)->data, LINE };
	return (struct contributions){
		data(s, k, 0) + piece_of(s, k, bytes) % PIECES * piece_bytes(s), s->max_bytes
	};
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
INLINE bool is_checked(uint64_t k)
{
	return !(k % STRIDE);
}

static bool in_reach(const struct swc_slots *s, uint64_t k)
{
	return !is_checked(k) || k < LEAD || s->met > k - LEAD ||
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

INLINE bool has_one_source(enum swc_coll coll)
{
	return coll == SWC_BROADCAST || coll == SWC_SCATTER;
}

INLINE bool is_eager(const struct swc_slots *s, enum swc_coll coll)
{
	return (has_one_source(coll) || coll == SWC_REDUCE || coll == SWC_GATHER) && s->eager;
}

static void reduce(const struct swc_slots *s, const struct swc_slots_op *op,
		   struct contributions from, size_t offset, void *dst)
{
	swc_reduce_fn fn = swc_reduce_get(op->dtype, op->redop);
	const void *src[SWC_MAX_LOCAL_RANKS];

	for (uint32_t r = 0; r < s->nranks; r++, from.first += from.stride)
		src[r] = from.first + offset;
	src[s->rank] = (const char *)op->send + offset;
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
		reduce(s, op, contributions(s, (char *)m, k, op->bytes), 0,
		       sum_of(s, k, op->bytes));
	__atomic_store_n(&m->outcome, (uint32_t)(k + 1), __ATOMIC_RELEASE);
	/* Pairs with the barrier in sleep_until_met(), see slots_wait.c. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&m->sleepers, __ATOMIC_RELAXED))
		swc_slots_wake(s, k);
}

/* Does a rank wait for this one alone? */
INLINE bool is_only_source(const struct swc_slots *s, enum swc_coll coll, uint32_t root)
{
	return has_one_source(coll) && is_eager(s, coll) && s->rank == root;
}

/* Ranks sleep on collective k. With few CPUs, conclude() wakes those that wait for all. */
static APART void wake(struct swc_slots *s, uint64_t k, bool only_source)
{
	if (only_source || swc_slots_have_all_published(s, k))
		swc_slots_wake(s, k);
}

/* With few CPUs: this rank has published k. Was it the last? Then this is the outcome. */
static APART bool arrive(struct swc_slots *s, uint64_t k, const struct swc_slots_op *op)
{
	/* The last one sees the cells of all: each has added to the counter after. */
	if (__atomic_add_fetch(&swc_slots_meeting(s, k)->arrived, 1, __ATOMIC_ACQ_REL) != s->nranks)
		return false;
	conclude(s, k, op);
	return true;
}

/* @op: the collective of this signature, or NULL with VIA_KERNEL. @only_source: see there. @record: of k */
INLINE void publish(struct swc_slots *s, char *record, uint64_t k, uint64_t signature,
		    const struct swc_slots_op *op, bool only_source)
{
	struct swc_slots_cell *c = swc_slots_cell_in(record, s->rank);

	c->signature = signature;
	__atomic_store_n(&c->number, (uint32_t)(k + 1), __ATOMIC_RELEASE);
	s->next = k + 1;
	if (s->crowded && (arrive(s, k, op) || !only_source))
		return;
	/* Pairs with the barrier in sleep_until_met(), see slots_wait.c. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (UNLIKELY(__atomic_load_n(&((struct swc_slots_meeting *)record)->sleepers,
				     __ATOMIC_RELAXED)))
		wake(s, k, only_source);
}

static APART void publish_via_kernel(struct swc_slots *s, uint64_t k)
{
	publish(s, swc_slots_record(s, k), k, VIA_KERNEL, NULL, false);
}

/* Wait until the next collective may be published. -EAGAIN: too many are in flight. */
static APART int get_in_reach(struct swc_slots *s)
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

INLINE bool contributes(const struct swc_slots *s, enum swc_coll coll, uint32_t root)
{
	return coll != SWC_BARRIER && (!has_one_source(coll) || s->rank == root);
}

/* Whom this rank waits for in a collective that it has published. */
INLINE struct swc_slots_awaited sources(const struct swc_slots *s, char *record, uint64_t k,
					enum swc_coll coll, uint32_t root)
{
	struct swc_slots_awaited w = {
		.k = k, .record = record, .end = s->nranks, .concluded = s->crowded
	};

	if (!is_eager(s, coll))
		return w;
	w.concluded = false;
	if (has_one_source(coll)) {
		w.late = root;
		w.end = root + (s->rank != root);
	} else if (s->rank != root) {
		w.end = 0;
	}
	return w;
}

/*
 * All that this rank waits for have published, but not all the same. SWC_SLOTS_FALLBACK: it goes to the
 * kernel.
 */
static APART int disagree(struct swc_slots *s, const struct swc_slots_awaited *w, uint64_t mine,
			  bool eager)
{
	for (uint32_t r = w->late; r < w->end; r++) {
		uint64_t other = swc_slots_cell_in(w->record, r)->signature;

		if (other == mine)
			continue;
		/* It has not waited for this rank, or this one not for others: too late for the kernel. */
		if (is_eager(s, coll_of(other)) || (eager && other != VIA_KERNEL))
			return s->env->fail(s->arg, -EPROTO, r);
	}
	/* A rank that leaves after an abort has published what is to go to the kernel. */
	return swc_slots_aborted(s) ?: SWC_SLOTS_FALLBACK;
}

/* Have all that this rank waits for called this collective, through the slots? Not yet, or no: settle() */
INLINE bool have_called(struct swc_slots_awaited w, uint64_t mine)
{
	struct swc_slots_meeting *m = (struct swc_slots_meeting *)w.record;

	if (w.concluded)
		return swc_slots_says(&m->outcome, w.k) && m->agreed;
	for (uint32_t r = w.late; r < w.end; r++) {
		struct swc_slots_cell *c = swc_slots_cell_in(w.record, r);

		if (!swc_slots_says(&c->number, w.k) || c->signature != mine)
			return false;
	}
	return true;
}

/* Wait until they have. */
static APART int settle(struct swc_slots *s, struct swc_slots_awaited w, uint64_t mine, bool eager)
{
	int ret = swc_slots_wait_for(s, w);

	if (ret)
		return ret;
	if (!eager)
		s->met = w.k + 1;
	return have_called(w, mine) ? 0 : disagree(s, &w, mine, eager);
}

INLINE void copy(void *to, const void *from, size_t bytes)
{
	if (bytes && to != from)
		memcpy(to, from, bytes);
}

/* The part at @offset of each rank's contribution. */
INLINE void gather(const struct swc_slots *s, const struct swc_slots_op *op,
		   struct contributions from, size_t offset, size_t bytes)
{
	for (uint32_t r = 0; r < s->nranks; r++, from.first += from.stride)
		copy((char *)op->recv + r * bytes,
		     (r == s->rank ? (const char *)op->send : from.first) + offset, bytes);
}

INLINE void compute(const struct swc_slots *s, char *record, uint64_t k,
		    const struct swc_slots_op *op, enum swc_coll coll)
{
	struct contributions from = contributions(s, record, k, op->bytes);
	size_t bytes = op->bytes, share = bytes / s->nranks;
	const char *roots = s->rank == op->root ? op->send : from.first + op->root * from.stride;

	switch (coll) {
	case SWC_ALLREDUCE:
		if (s->crowded)
			copy(op->recv, sum_of(s, k, bytes), bytes);
		else
			reduce(s, op, from, 0, op->recv);
		break;
	case SWC_REDUCE_SCATTER:
		reduce(s, op, from, share * s->rank, op->recv);
		break;
	case SWC_REDUCE:
		if (s->rank == op->root)
			reduce(s, op, from, 0, op->recv);
		break;
	case SWC_GATHER:
		if (s->rank == op->root)
			gather(s, op, from, 0, bytes);
		break;
	case SWC_ALLGATHER:
		gather(s, op, from, 0, bytes);
		break;
	case SWC_ALLTOALL:
		gather(s, op, from, share * s->rank, share);
		break;
	case SWC_SCATTER:
		copy(op->recv, roots + share * s->rank, share);
		break;
	case SWC_BROADCAST:
		copy(op->recv, roots, bytes);
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

/* Wait until the data slot may be written, see "Reuse of data slots". */
static APART int get_data_slot(struct swc_slots *s, size_t bytes, uint64_t k)
{
	unsigned int piece = piece_of(s, k, bytes);
	uint64_t after = last_use(s, k, piece); /* k' + 1 */
	int ret = after && s->met <= after ? swc_slots_meet(s, after) : 0;

	if (ret)
		return ret;
	for (unsigned int i = 0; i < PIECES; i++)
		if (piece == PIECES || piece == i)
			s->last_use[k & 1][i] = k + 1;
	return 0;
}

/* Write the contribution to collective k. */
INLINE int contribute(struct swc_slots *s, char *record, uint64_t k, const struct swc_slots_op *op)
{
	struct contributions to = contributions(s, record, k, op->bytes);
	int ret = fits_cell(op->bytes) ? 0 : get_data_slot(s, op->bytes, k);

	if (!ret)
		copy(to.first + s->rank * to.stride, op->send, op->bytes);
	return ret;
}

/* @coll: op->coll, as a constant. */
INLINE int run_as(struct swc_slots *s, const struct swc_slots_op *op, enum swc_coll coll)
{
	uint64_t k = s->next, mine = signature(op);
	char *record = swc_slots_record(s, k);
	bool eager = is_eager(s, coll);
	struct swc_slots_awaited w;
	int ret = swc_slots_aborted(s);

	if (!ret && is_checked(k))
		ret = get_in_reach(s);
	if (!ret && contributes(s, coll, op->root))
		ret = contribute(s, record, k, op);
	/* A rank has left, so this goes to the kernel. Publish it, to keep the numbers in step. */
	if (UNLIKELY(ret == SWC_SLOTS_FALLBACK))
		publish_via_kernel(s, k);
	if (UNLIKELY(ret))
		return ret;
	publish(s, record, k, mine, op, is_only_source(s, coll, op->root));
	if (eager)
		s->owed = k + 1;
	w = sources(s, record, k, coll, op->root);
	if (UNLIKELY(!have_called(w, mine))) {
		ret = settle(s, w, mine, eager);
		if (ret)
			return ret;
	}
	if (!eager)
		s->met = k + 1;
	compute(s, record, k, op, coll);
	return 0;
}

int swc_slots_run(struct swc_slots *s, const struct swc_slots_op *op)
{
	switch (op->coll) {
	case SWC_ALLREDUCE:
		return run_as(s, op, SWC_ALLREDUCE);
	case SWC_REDUCE_SCATTER:
		return run_as(s, op, SWC_REDUCE_SCATTER);
	case SWC_ALLGATHER:
		return run_as(s, op, SWC_ALLGATHER);
	case SWC_BROADCAST:
		return run_as(s, op, SWC_BROADCAST);
	case SWC_REDUCE:
		return run_as(s, op, SWC_REDUCE);
	case SWC_BARRIER:
		return run_as(s, op, SWC_BARRIER);
	case SWC_ALLTOALL:
		return run_as(s, op, SWC_ALLTOALL);
	case SWC_GATHER:
		return run_as(s, op, SWC_GATHER);
	case SWC_SCATTER:
		return run_as(s, op, SWC_SCATTER);
	default:
		return -EINVAL;
	}
}

int swc_slots_may_pass(struct swc_slots *s)
{
	return s->base ? get_in_reach(s) : 0;
}

int swc_slots_pass(struct swc_slots *s)
{
	int ret = swc_slots_may_pass(s);

	if (!ret && s->base)
		publish_via_kernel(s, s->next);
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
			publish_via_kernel(s, k);
	s->env->wake(s->arg);
	s->base = NULL;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Small messages without system calls: ranks of one node exchange them through shared memory.
 *
 * Runs in the caller's thread under comm->order. Values that other ranks write are trusted, sizes
 * and offsets are never read from the shared memory.
 *
 * Layout:
 *
 *	struct header		layout, which ranks have left
 *	record[RECORDS]		one per collective, by number modulo RECORDS:
 *		meeting		how many ranks sleep on this record, and the outcome (see "Few CPUs")
 *		cell[nranks]	each rank's announcement, with room for a small contribution
 *	data[2][nranks]		contributions that do not fit into a cell, by parity of the number; small
 *				ones in one of eight pieces, by turns
 *	sum[2]			sums that do not fit into the meeting, likewise
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
 *
 * Sleeping. A waiter that stops polling raises `sleepers`, issues a full barrier, checks all cells
 * again, and sleeps on the first one that is missing. A rank that publishes issues a full barrier
 * and reads `sleepers`; if it is not 0, it checks whether all cells are published, and then wakes.
 * Of all ranks that publish, take the one whose barrier comes last: it sees all cells. If its
 * barrier comes after the waiter's, it sees the sleeper too and wakes it. If it comes before, the
 * waiter's second check sees all cells and it does not sleep. Between that check and the sleep the
 * cell may change: the kernel compares it once more when it queues the sleeper. So one rank wakes
 * the sleepers, once, instead of each rank that arrives. With few CPUs the rank that publishes the
 * outcome wakes, and sleepers that find all cells published wait for that word. (To wait for it from
 * the start would do, but for the deadline: then the kernel names the rank whose word is missing.)
 * For the root of an eager broadcast or scatter others wait alone, so it wakes sleepers whether or
 * not all cells are published; the argument is that of one barrier and one cell.
 *
 * A rank with a hook never sleeps on a record, since nothing would wake it for what the hook waits
 * for: it polls, and after a while naps between its looks. So it needs no wake-up, and ranks with
 * and without a hook go together.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "kmod/core/reduce.h"
#include "src/shm/slots.h"

#define LAYOUT_VERSION 3
#define LINE 128 /* two cache lines: they are fetched in pairs */
#define RECORDS 128
#define STRIDE 32
#define LEAD 64
/* Pieces of a data slot. */
#define PIECES SWC_SLOT_PIECES
/* Checks of the cells between checks of the clock and of the communicator's state. */
#define SPINS_PER_CHECK 64

/*
 * How long to poll before sleeping: several times as long as a wake-up takes. If it were less, then
 * once one rank has slept, the rank that woke it would sleep too before the first can answer, and
 * so on for ever. The time of a wake-up is measured (some 50 us on an idle machine, more than 1 ms
 * in a guest on a busy host); these are the bounds.
 *
 * Only the first part of this time is spent without yielding. Two ranks may be on one CPU, though
 * there are enough; then only sched_yield() helps, and the sooner the better. So the first part gets
 * shorter when it was in vain and longer when it was not.
 */
#define LOOKS_PER_WAKE 4
#define LOOK_MIN_NS 200000
#define LOOK_MAX_NS 1000000
#define SPIN_MAX_NS 20000
#define SPIN_MIN_NS 1000

/*
 * With more ranks than CPUs no rank spins. But the late rank may be ready to run on this CPU, and a
 * yield costs a fraction of a sleep and a wake-up: so yield a few times before sleeping.
 */
#define YIELDS 16

/* How long a rank with a hook naps between two looks: longer and longer, up to this. */
#define NAP_MIN_NS 20000
#define NAP_MAX_NS 500000

_Static_assert(STRIDE + LEAD <= RECORDS, "records would be reused while they are read");
_Static_assert(LEAD >= SWC_MAX_INFLIGHT, "the check would refuse what the kernel allows");

struct header {
	uint64_t layout; /* set by the first rank, compared by the others */
	char pad0[LINE - 8];
	uint32_t left[SWC_MAX_LOCAL_RANKS];
};

struct meeting {
	uint32_t sleepers; /* ranks that sleep or are about to */
	uint32_t arrived;  /* ranks that have published; this and the rest with few CPUs only */
	uint64_t woken_at; /* CLOCK_MONOTONIC in ns, when sleepers were last woken */
	uint32_t outcome;  /* k + 1: all have published; the word that sleepers wait on */
	uint32_t agreed;   /* all have called the same collective, through the slots */
	char sum[LINE - 24];
};

struct cell {
	uint32_t number; /* k + 1 of the collective; the word that sleepers wait on */
	uint32_t resv;
	uint64_t signature;
	char data[LINE - 16];
};

_Static_assert(sizeof(struct cell) == LINE, "cells share no line");
_Static_assert(sizeof(struct meeting) == LINE, "cells follow the meeting");
_Static_assert(sizeof(struct header) % LINE == 0, "records start on a line");

/* Signature of a collective that goes through the kernel. Others have bit 0 clear. */
#define VIA_KERNEL 1ull

static struct header *header(const struct swc_slots *s)
{
	return (struct header *)s->base;
}

static char *record(const struct swc_slots *s, uint64_t k)
{
	return s->base + sizeof(struct header) + (k % RECORDS) * LINE * (s->nranks + 1ull);
}

static struct meeting *meeting(const struct swc_slots *s, uint64_t k)
{
	return (struct meeting *)record(s, k);
}

static struct cell *cell(const struct swc_slots *s, uint64_t k, uint32_t rank)
{
	return (struct cell *)(record(s, k) + LINE * (rank + 1ull));
}

static char *data(const struct swc_slots *s, uint64_t k, uint32_t rank)
{
	return record(s, 0) + RECORDS * LINE * (s->nranks + 1ull) +
	       ((k & 1) * s->nranks + rank) * s->max_bytes;
}

static bool fits_cell(size_t bytes)
{
	return bytes <= sizeof(((struct cell *)NULL)->data);
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
		return cell(s, k, rank)->data;
	return data(s, k, rank) + piece_of(s, k, bytes) % PIECES * piece_bytes(s);
}

/* Where the sum of collective k lies; behind the contributions of the last rank. */
static char *sum_of(const struct swc_slots *s, uint64_t k, size_t bytes)
{
	return bytes <= sizeof(meeting(s, k)->sum) ? meeting(s, k)->sum
						   : data(s, 1, s->nranks) + (k & 1) * s->max_bytes;
}

size_t swc_slots_plan(struct swc_slots *s, uint32_t nranks, uint32_t rank, size_t max_bytes)
{
	size_t fixed = sizeof(struct header) + RECORDS * LINE * (nranks + 1ull);
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
	if (!__atomic_compare_exchange_n(&header(s)->layout, &seen, mine, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE) &&
	    seen != mine) {
		/* The others find this where it is in every layout, and do not wait for this rank. */
		__atomic_store_n(&header(s)->left[s->rank], 1, __ATOMIC_RELEASE);
		s->base = NULL;
		return -EPROTO;
	}
	/*
	 * The kernel's count: a rank's own mask does not tell, as launchers often bind each rank to
	 * one CPU.
	 */
	s->crowded = s->nranks > s->state->ncpus;
	s->spin_ns = SPIN_MAX_NS;
	s->look_ns = LOOK_MIN_NS;
	return 0;
}

/* ---- meeting ---- */

static bool has_published(const struct swc_slots *s, uint64_t k, uint32_t rank)
{
	/* Pairs with the release in publish(): its signature and contribution are visible. */
	uint32_t number = __atomic_load_n(&cell(s, k, rank)->number, __ATOMIC_ACQUIRE);

	return (int32_t)(number - (uint32_t)(k + 1)) >= 0;
}

/* With few CPUs: have all ranks published k, and is the outcome there? */
static bool has_outcome(const struct swc_slots *s, uint64_t k)
{
	/* Pairs with the release in conclude(): the sum and all contributions are visible. */
	uint32_t number = __atomic_load_n(&meeting(s, k)->outcome, __ATOMIC_ACQUIRE);

	return (int32_t)(number - (uint32_t)(k + 1)) >= 0;
}

/*
 * What a rank waits for: that the ranks from `late` to before `end` publish k, and with @concluded that
 * the outcome is there, after them.
 */
struct awaited {
	uint64_t k;
	uint32_t late;
	uint32_t end;
	bool concluded;
};

/* All ranks. */
static struct awaited await_all(const struct swc_slots *s, uint64_t k)
{
	return (struct awaited){ .k = k, .end = s->nranks, .concluded = s->crowded };
}

/*
 * Move w->late to the first rank that is missing; false: none is. Until the outcome is there it is the
 * last rank that is missing.
 */
static bool is_missing(const struct swc_slots *s, struct awaited *w)
{
	if (w->concluded && has_outcome(s, w->k)) {
		w->late = w->end;
		return false;
	}
	while (w->late < w->end && has_published(s, w->k, w->late))
		w->late++;
	if (w->concluded && w->late == w->end)
		w->late--;
	return w->late < w->end;
}

static bool have_all_published(const struct swc_slots *s, uint64_t k)
{
	struct awaited w = await_all(s, k);

	return !is_missing(s, &w);
}

/* May collective k be published? See "Reuse of cells". */
static bool in_reach(const struct swc_slots *s, uint64_t k)
{
	return k % STRIDE || k < LEAD || s->met > k - LEAD || have_all_published(s, k - LEAD);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

/* Wake the ranks that sleep on a record which all have published. */
static void wake(struct swc_slots *s, uint64_t k)
{
	__atomic_store_n(&meeting(s, k)->woken_at, now_ns(), __ATOMIC_RELAXED);
	s->env->wake(s->arg);
}

/* Have all ranks called this collective, through the slots? */
static bool agreed(const struct swc_slots *s, uint64_t k, uint64_t mine)
{
	for (uint32_t r = 0; r < s->nranks; r++)
		if (cell(s, k, r)->signature != mine)
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
	struct meeting *m = meeting(s, k);

	__atomic_store_n(&m->arrived, 0, __ATOMIC_RELAXED);
	m->agreed = op && !is_eager(s, op->coll) && agreed(s, k, cell(s, k, s->rank)->signature);
	if (m->agreed && op->coll == SWC_ALLREDUCE)
		reduce(s, op, k, 0, sum_of(s, k, op->bytes));
	__atomic_store_n(&m->outcome, (uint32_t)(k + 1), __ATOMIC_RELEASE);
	/* See "Sleeping": pairs with the barrier in sleep_until_met(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&m->sleepers, __ATOMIC_RELAXED))
		wake(s, k);
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
	struct meeting *m = meeting(s, k);
	struct cell *c = cell(s, k, s->rank);

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
	/* See "Sleeping": pairs with the barrier in sleep_until_met(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&m->sleepers, __ATOMIC_RELAXED) &&
	    (is_only_source(s, op) || have_all_published(s, k)))
		wake(s, k);
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

static int aborted(const struct swc_slots *s)
{
	int error;

	if (!__atomic_load_n(&s->state->aborted, __ATOMIC_ACQUIRE))
		return 0;
	error = s->state->error;
	return error < 0 ? error : -ECONNABORTED;
}

/*
 * Has a rank left without publishing k? The cell is checked after the flag: it may have published k
 * before it left.
 */
static bool gone(const struct swc_slots *s, uint64_t k, uint32_t rank)
{
	return __atomic_load_n(&header(s)->left[rank], __ATOMIC_ACQUIRE) &&
	       !has_published(s, k, rank);
}

/* A sleep that began at `since` is over: learn from it how long to poll. */
static void learn(struct swc_slots *s, uint64_t k, uint64_t since)
{
	uint64_t woken = __atomic_load_n(&meeting(s, k)->woken_at, __ATOMIC_RELAXED);
	uint64_t now = now_ns();

	if (woken < since || woken > now)
		return;
	s->wake_ns += ((int64_t)(now - woken) - (int64_t)s->wake_ns) / 4;
	s->look_ns = s->wake_ns * LOOKS_PER_WAKE;
	if (s->look_ns < LOOK_MIN_NS)
		s->look_ns = LOOK_MIN_NS;
	if (s->look_ns > LOOK_MAX_NS)
		s->look_ns = LOOK_MAX_NS;
}

/* The word that changes when rank w->late publishes, or else when the outcome is there. */
static const uint32_t *awaited_word(const struct swc_slots *s, const struct awaited *w)
{
	return w->concluded && has_published(s, w->k, w->late) ? &meeting(s, w->k)->outcome
							       : &cell(s, w->k, w->late)->number;
}

/*
 * The reason why waiting for a rank is in vain: an error, or SWC_SLOTS_FALLBACK; 0 if there is
 * none.
 */
static int in_vain(const struct swc_slots *s, const struct awaited *w)
{
	int ret = aborted(s);

	return ret ? ret : gone(s, w->k, w->late) ? SWC_SLOTS_FALLBACK : 0;
}

/* Sleep until none is missing. */
static int sleep_until_met(struct swc_slots *s, struct awaited *w)
{
	uint64_t start = now_ns(), deadline = start / 1000000 + s->timeout_ms;
	int ret = 0;

	__atomic_fetch_add(&meeting(s, w->k)->sleepers, 1, __ATOMIC_RELAXED);
	/* See "Sleeping": pairs with the barriers in publish() and conclude(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	while (!ret) {
		const uint32_t *word;
		uint32_t number;
		uint64_t now;

		if (!is_missing(s, w))
			break;
		ret = in_vain(s, w);
		if (ret)
			break;
		word = awaited_word(s, w);
		number = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		if ((int32_t)(number - (uint32_t)(w->k + 1)) >= 0)
			continue;
		now = now_ms();
		ret = s->env->wait(s->arg, (uint32_t)((const char *)word - s->base), number,
				   now < deadline ? (uint32_t)(deadline - now) : 1, (int)w->late);
		if (ret == -EINTR)
			ret = 0;
		/*
		 * A rank has left. That matters only if it is the late one, whose flag follows
		 * soon.
		 */
		if (ret == -ECONNRESET && !aborted(s)) {
			sched_yield();
			ret = now < deadline ? 0 : -ETIMEDOUT;
		}
	}
	__atomic_fetch_sub(&meeting(s, w->k)->sleepers, 1, __ATOMIC_RELAXED);
	if (!ret)
		learn(s, w->k, start);
	return ret;
}

/*
 * Both functions below wait until none is missing, for a while. They return early, with an error or
 * SWC_SLOTS_FALLBACK, if that is in vain. This one yields a few times.
 */
static int yield_some(struct swc_slots *s, struct awaited *w)
{
	for (int i = 0; i < YIELDS && is_missing(s, w); i++) {
		int ret = in_vain(s, w);

		if (ret)
			return ret;
		sched_yield();
	}
	return 0;
}

/* This one polls, at first without yielding. */
static int poll_cells(struct swc_slots *s, struct awaited *w)
{
	uint64_t start = 0, spent = 0;
	int ret;

	for (unsigned int i = 1; is_missing(s, w); i++) {
		relax();
		if (i % SPINS_PER_CHECK || !is_missing(s, w))
			continue;
		ret = in_vain(s, w);
		if (ret)
			return ret;
		if (!start)
			start = now_ns();
		else
			spent = now_ns() - start;
		if (spent >= s->look_ns)
			break;
		if (spent >= s->spin_ns)
			sched_yield();
	}
	if (spent < s->spin_ns)
		s->spin_ns = s->spin_ns * 2 < SPIN_MAX_NS ? s->spin_ns * 2 : SPIN_MAX_NS;
	else
		s->spin_ns = s->spin_ns / 2 > SPIN_MIN_NS ? s->spin_ns / 2 : SPIN_MIN_NS;
	return 0;
}

static void nap(uint64_t ns)
{
	const struct timespec pause = { .tv_nsec = (long)ns };

	nanosleep(&pause, NULL);
}

/* Time is up for rank w->late: the kernel ends the communicator and words the error. */
static int give_up(struct swc_slots *s, struct awaited *w)
{
	const uint32_t *word = awaited_word(s, w);
	uint32_t number = __atomic_load_n(word, __ATOMIC_ACQUIRE);
	int ret;

	if (!is_missing(s, w))
		return 0;
	ret = s->env->wait(s->arg, (uint32_t)((const char *)word - s->base), number, 1,
			   (int)w->late);
	/* It has left: its flag follows soon, and says whether that matters. */
	return ret == -ECONNRESET && !aborted(s) ? 0 : ret;
}

/*
 * Wait in the same way as the two functions above, but to the end, and call the hook between looks
 * from early on.
 */
static int poll_with_hook(struct swc_slots *s, struct awaited *w)
{
	uint64_t start = 0, spent = 0, pause = NAP_MIN_NS;
	int ret = 0;

	for (unsigned int i = 1; !ret && is_missing(s, w); i++) {
		if (!s->crowded && spent < s->spin_ns)
			relax();
		else if (spent < LOOK_MAX_NS)
			sched_yield();
		if (!is_missing(s, w) || (!s->crowded && spent < s->spin_ns && i % SPINS_PER_CHECK))
			continue;
		ret = in_vain(s, w);
		if (ret)
			break;
		if (!start)
			start = now_ns();
		else
			spent = now_ns() - start;
		s->hook->call(s->hook->arg);
		if (!is_missing(s, w) || spent < LOOK_MAX_NS)
			continue;
		if (s->timeout_ms != UINT32_MAX && spent / 1000000 >= s->timeout_ms)
			ret = give_up(s, w);
		else
			nap(pause);
		pause = pause * 2 < NAP_MAX_NS ? pause * 2 : NAP_MAX_NS;
	}
	return ret == -EINTR ? 0 : ret;
}

/* Wait until none is missing: poll or yield for a while, then sleep. */
static int wait_for(struct swc_slots *s, struct awaited w)
{
	int ret = 0;

	if (!is_missing(s, &w))
		return 0;
	if (s->hook)
		return poll_with_hook(s, &w);
	ret = s->crowded ? yield_some(s, &w) : poll_cells(s, &w);
	if (!ret && is_missing(s, &w))
		ret = sleep_until_met(s, &w);
	return ret;
}

/* Wait until all have published k. */
static int meet(struct swc_slots *s, uint64_t k)
{
	int ret = wait_for(s, await_all(s, k));

	if (!ret && s->met <= k)
		s->met = k + 1;
	return ret;
}

/* Wait until the next collective may be published. -EAGAIN: too many are in flight. */
static int get_in_reach(struct swc_slots *s)
{
	int ret = 0;

	if (in_reach(s, s->next))
		return 0;
	if (s->met < s->owed)
		ret = meet(s, s->owed - 1);
	if (ret == SWC_SLOTS_FALLBACK)
		return -ECONNRESET;
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
static struct awaited sources(const struct swc_slots *s, const struct swc_slots_op *op, uint64_t k)
{
	struct awaited w = await_all(s, k);

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
static int compare(struct swc_slots *s, const struct awaited *w, uint64_t mine, bool eager)
{
	bool differ = false;

	if (w->concluded && meeting(s, w->k)->agreed)
		return 0;
	for (uint32_t r = w->late; r < w->end; r++) {
		uint64_t other = cell(s, w->k, r)->signature;

		if (other == mine)
			continue;
		/* It has not waited for this rank, or this one not for others: too late for the kernel. */
		if (is_eager(s, coll_of(other)) || (eager && other != VIA_KERNEL))
			return s->env->mismatch(s->arg, r);
		differ = true;
	}
	/* A rank that leaves after an abort has published what is to go to the kernel. */
	return differ ? aborted(s) ?: SWC_SLOTS_FALLBACK : 0;
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
		ret = after && s->met <= after ? meet(s, after) : 0;
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
	struct awaited w;
	int ret = aborted(s);

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
	ret = wait_for(s, w);
	if (ret)
		return ret;
	if (!eager && s->met <= k)
		s->met = k + 1;
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
	__atomic_store_n(&header(s)->left[s->rank], 1, __ATOMIC_RELEASE);
	if (in_reach(s, s->next))
		for (uint64_t k = s->next; k < end; k++)
			publish(s, k, VIA_KERNEL, NULL);
	s->env->wake(s->arg);
	s->base = NULL;
}

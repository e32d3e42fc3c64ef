// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How a rank waits until others have published a collective, see slots.c: it polls or yields for a while,
 * learning for how long, then sleeps in the kernel.
 *
 * Runs in the caller's thread under comm->order.
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
#include <time.h>

#include "src/shm/slots_priv.h"

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

void swc_slots_wait_init(struct swc_slots *s)
{
	s->spin_ns = SPIN_MAX_NS;
	s->look_ns = LOOK_MIN_NS;
}

void swc_slots_wake(struct swc_slots *s, uint64_t k)
{
	__atomic_store_n(&swc_slots_meeting(s, k)->woken_at, now_ns(), __ATOMIC_RELAXED);
	s->env->wake(s->arg);
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

/*
 * Has a rank left without publishing k? The cell is checked after the flag: it may have published k
 * before it left.
 */
static bool gone(const struct swc_slots *s, uint64_t k, uint32_t rank)
{
	return __atomic_load_n(&swc_slots_header(s)->left[rank], __ATOMIC_ACQUIRE) &&
	       !swc_slots_has_published(s, k, rank);
}

/* The first rank that has left without publishing k; there is one. */
uint32_t swc_slots_who_left(const struct swc_slots *s, uint64_t k)
{
	uint32_t r = 0;

	while (r + 1 < s->nranks && !gone(s, k, r))
		r++;
	return r;
}

/* A sleep that began at `since` is over: learn from it how long to poll. */
static void learn(struct swc_slots *s, uint64_t k, uint64_t since)
{
	uint64_t woken = __atomic_load_n(&swc_slots_meeting(s, k)->woken_at, __ATOMIC_RELAXED);
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
static const uint32_t *awaited_word(const struct swc_slots *s, const struct swc_slots_awaited *w)
{
	return w->concluded && swc_slots_has_published(s, w->k, w->late)
		       ? &swc_slots_meeting(s, w->k)->outcome
		       : &swc_slots_cell(s, w->k, w->late)->number;
}

/*
 * The reason why waiting for a rank is in vain: an error, or SWC_SLOTS_FALLBACK; 0 if there is
 * none.
 */
static int in_vain(const struct swc_slots *s, const struct swc_slots_awaited *w)
{
	int ret = swc_slots_aborted(s);

	return ret ? ret : gone(s, w->k, w->late) ? SWC_SLOTS_FALLBACK : 0;
}

/* Sleep until none is missing. */
static int sleep_until_met(struct swc_slots *s, struct swc_slots_awaited *w)
{
	uint64_t start = now_ns(), deadline = start / 1000000 + s->timeout_ms;
	int ret = 0;

	__atomic_fetch_add(&swc_slots_meeting(s, w->k)->sleepers, 1, __ATOMIC_RELAXED);
	/* See "Sleeping": pairs with the barriers in publish() and conclude() of slots.c. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	while (!ret) {
		const uint32_t *word;
		uint32_t number;
		uint64_t now;

		if (!swc_slots_is_missing(w))
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
				   now < deadline ? (uint32_t)(deadline - now) : 1, (int)w->late,
				   (uint32_t)(now - start / 1000000));
		if (ret == -EINTR)
			ret = 0;
		/*
		 * A rank has left. That matters only if it is the late one, whose flag follows
		 * soon.
		 */
		if (ret == -ECONNRESET && !swc_slots_aborted(s)) {
			sched_yield();
			ret = now < deadline ? 0 : -ETIMEDOUT;
		}
	}
	__atomic_fetch_sub(&swc_slots_meeting(s, w->k)->sleepers, 1, __ATOMIC_RELAXED);
	if (!ret)
		learn(s, w->k, start);
	return ret;
}

/*
 * Both functions below wait until none is missing, for a while. They return early, with an error or
 * SWC_SLOTS_FALLBACK, if that is in vain. This one yields a few times.
 */
static int yield_some(struct swc_slots *s, struct swc_slots_awaited *w)
{
	for (int i = 0; i < YIELDS && swc_slots_is_missing(w); i++) {
		int ret = in_vain(s, w);

		if (ret)
			return ret;
		sched_yield();
	}
	return 0;
}

/* This one polls, at first without yielding. */
static int poll_cells(struct swc_slots *s, struct swc_slots_awaited *w)
{
	uint64_t start = 0, spent = 0;
	int ret;

	for (unsigned int i = 1; swc_slots_is_missing(w); i++) {
		relax();
		if (i % SPINS_PER_CHECK || !swc_slots_is_missing(w))
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
static int give_up(struct swc_slots *s, struct swc_slots_awaited *w)
{
	const uint32_t *word = awaited_word(s, w);
	uint32_t number = __atomic_load_n(word, __ATOMIC_ACQUIRE);
	int ret;

	if (!swc_slots_is_missing(w))
		return 0;
	ret = s->env->wait(s->arg, (uint32_t)((const char *)word - s->base), number, 1,
			   (int)w->late, s->timeout_ms);
	/* It has left: its flag follows soon, and says whether that matters. */
	return ret == -ECONNRESET && !swc_slots_aborted(s) ? 0 : ret;
}

/*
 * Wait in the same way as the two functions above, but to the end, and call the hook between looks
 * from early on.
 */
static int poll_with_hook(struct swc_slots *s, struct swc_slots_awaited *w)
{
	uint64_t start = 0, spent = 0, pause = NAP_MIN_NS;
	int ret = 0;

	for (unsigned int i = 1; !ret && swc_slots_is_missing(w); i++) {
		if (!s->crowded && spent < s->spin_ns)
			relax();
		else if (spent < LOOK_MAX_NS)
			sched_yield();
		if (!swc_slots_is_missing(w) ||
		    (!s->crowded && spent < s->spin_ns && i % SPINS_PER_CHECK))
			continue;
		ret = in_vain(s, w);
		if (ret)
			break;
		if (!start)
			start = now_ns();
		else
			spent = now_ns() - start;
		s->hook->call(s->hook->arg);
		if (!swc_slots_is_missing(w) || spent < LOOK_MAX_NS)
			continue;
		if (s->timeout_ms != UINT32_MAX && spent / 1000000 >= s->timeout_ms)
			ret = give_up(s, w);
		else
			nap(pause);
		/* A signal: look again. */
		if (ret == -EINTR)
			ret = 0;
		pause = pause * 2 < NAP_MAX_NS ? pause * 2 : NAP_MAX_NS;
	}
	return ret;
}

int swc_slots_wait_missing(struct swc_slots *s, struct swc_slots_awaited *w)
{
	int ret;

	if (s->hook)
		return poll_with_hook(s, w);
	ret = s->crowded ? yield_some(s, w) : poll_cells(s, w);
	if (!ret && swc_slots_is_missing(w))
		ret = sleep_until_met(s, w);
	return ret;
}

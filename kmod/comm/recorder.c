// SPDX-License-Identifier: GPL-2.0-only
/*
 * The flight recorder: the last events of each communicator in a ring, readable for a while after its end.
 *
 * Writers are in any context, under any lock: they take none. Readers copy what is there, and drop records
 * that are overwritten meanwhile.
 *
 * Recordings of ended communicators are kept for a time, up to a number, and up to a number per user; the
 * oldest goes first. Their memory stays charged to the user's cgroup.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "comm/recorder.h"
#include "comm/user.h"
#include "swingcoll.h"

/* Look for old recordings at least as often: the time to keep them can be changed. */
#define TRIM_LATEST	(600 * HZ)

static DEFINE_MUTEX(recorders_mutex);
static LIST_HEAD(live);
/* In the order in which they ended. */
static LIST_HEAD(ended);
static u32 nended;

static void trim_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(trim_work, trim_fn);

/* ------------------------------------------------------------------ records */

/* Record an event that happens now. */
void swc_record(struct swc_recorder *recorder, enum swc_trace_type type, u32 rank, u64 seq, u64 arg)
{
	if (recorder)
		swc_record_at(recorder, ktime_get_ns(), type, rank, 0, seq, arg);
}

/**
 * swc_recorder_read() - copy the record with number @n
 *
 * Return: false if it is not there: not written yet, or overwritten.
 */
bool swc_recorder_read(const struct swc_recorder *recorder, u64 n, struct swc_trace_record *to)
{
	const struct swc_recorder_place *p = &recorder->place[n & recorder->mask];
	u64 word;

	/* Pairs with the release of swc_record_at(). */
	word = smp_load_acquire(&p->word);
	if ((u32)word != (u32)(n + 1))
		return false;
	*to = (struct swc_trace_record){
		.ns = READ_ONCE(p->ns), .seq = READ_ONCE(p->seq), .arg = READ_ONCE(p->arg), .index = n,
		.rank = word >> 32, .type = word >> 48, .channel = word >> 56,
	};
	/* Pairs with the barrier of swc_record_at(): who has read a new field sees the word changed. */
	smp_rmb();
	return READ_ONCE(p->word) == word;
}

/* ------------------------------------------------------------------ life */

/**
 * swc_recorder_create() - make a recorder, with one reference, charged to the caller
 *
 * Return: the recorder; NULL if recording is off; an error pointer.
 */
struct swc_recorder *swc_recorder_create(kuid_t owner, u32 nranks)
{
	struct swc_recorder *recorder;

	if (!swc_trace_records)
		return NULL;
	recorder = kvzalloc(struct_size(recorder, place, swc_trace_records), GFP_KERNEL_ACCOUNT);
	if (!recorder)
		return ERR_PTR(-ENOMEM);
	kref_init(&recorder->ref);
	INIT_LIST_HEAD(&recorder->node);
	recorder->owner = owner;
	recorder->nranks = nranks;
	recorder->culprit = -1;
	recorder->mask = swc_trace_records - 1;
	return recorder;
}

static void release(struct kref *ref)
{
	kvfree(container_of(ref, struct swc_recorder, ref));
}

/* Drop a reference; sleeps. NULL is allowed. */
void swc_recorder_put(struct swc_recorder *recorder)
{
	if (recorder)
		kref_put(&recorder->ref, release);
}

/* Let readers find the recorder of a new communicator by its number, until swc_recorder_end(). */
void swc_recorder_add(struct swc_recorder *recorder, u64 number)
{
	if (!recorder)
		return;
	recorder->number = number;
	mutex_lock(&recorders_mutex);
	list_add_tail(&recorder->node, &live);
	mutex_unlock(&recorders_mutex);
}

/* Keep how the communicator failed. Only the first call counts; calls come one after the other. */
void swc_recorder_fail(struct swc_recorder *recorder, bool aborted, int error, int culprit, const char *text)
{
	if (!recorder || recorder->failed)
		return;
	recorder->aborted = aborted;
	recorder->error = error;
	recorder->culprit = culprit;
	strscpy(recorder->text, text, sizeof(recorder->text));
	/* Pairs with the reader's acquire. */
	smp_store_release(&recorder->failed, true);
}

/* ------------------------------------------------------------------ ended communicators */

static void drop(struct swc_recorder *recorder)
{
	list_del(&recorder->node);
	nended--;
	swc_recorder_put(recorder);
}

static u64 expires_at(const struct swc_recorder *recorder)
{
	return recorder->ended_at + READ_ONCE(swc_trace_keep_s) * NSEC_PER_SEC;
}

/* Drop what is too old or too much, and come back when the next one is too old. */
static void trim(void)
{
	u64 now = ktime_get_ns(), at;
	struct swc_recorder *oldest;

	lockdep_assert_held(&recorders_mutex);
	while ((oldest = list_first_entry_or_null(&ended, struct swc_recorder, node))) {
		at = expires_at(oldest);
		if (at > now && nended <= READ_ONCE(swc_trace_keep)) {
			mod_delayed_work(swc_free_wq, &trim_work,
					 min_t(u64, nsecs_to_jiffies64(at - now) + 1, TRIM_LATEST));
			return;
		}
		drop(oldest);
	}
}

/* Drop the oldest recordings of a user that has too many. */
static void trim_user(kuid_t owner)
{
	struct swc_recorder *recorder, *next;
	u32 n = 0;

	lockdep_assert_held(&recorders_mutex);
	list_for_each_entry(recorder, &ended, node)
		n += uid_eq(recorder->owner, owner);
	list_for_each_entry_safe(recorder, next, &ended, node) {
		if (n <= READ_ONCE(swc_trace_keep_user))
			return;
		if (!uid_eq(recorder->owner, owner))
			continue;
		drop(recorder);
		n--;
	}
}

static void trim_fn(struct work_struct *work)
{
	mutex_lock(&recorders_mutex);
	trim();
	mutex_unlock(&recorders_mutex);
}

/* The communicator is gone; nothing is written any more. Takes over its reference. */
void swc_recorder_end(struct swc_recorder *recorder)
{
	kuid_t owner;

	if (!recorder)
		return;
	owner = recorder->owner;
	mutex_lock(&recorders_mutex);
	recorder->ended_at = ktime_get_ns();
	list_move_tail(&recorder->node, &ended);
	nended++;
	trim_user(owner);
	trim();
	mutex_unlock(&recorders_mutex);
}

/* Free all; no communicator is left. */
void swc_recorder_exit(void)
{
	struct swc_recorder *recorder, *next;

	cancel_delayed_work_sync(&trim_work);
	WARN_ON_ONCE(!list_empty(&live));
	list_for_each_entry_safe(recorder, next, &ended, node)
		drop(recorder);
}

/* ------------------------------------------------------------------ finding */

/* May the caller read it? The rule for communicators. */
bool swc_recorder_visible(const struct swc_recorder *recorder)
{
	return swc_user_visible(recorder->owner);
}

/* The one with the least number from @number on, of those that the caller may read; NULL: none. */
static struct swc_recorder *least_from(const struct list_head *list, u64 number, struct swc_recorder *best)
{
	struct swc_recorder *recorder;

	list_for_each_entry(recorder, list, node)
		if (recorder->number >= number && (!best || recorder->number < best->number) &&
		    swc_recorder_visible(recorder))
			best = recorder;
	return best;
}

/**
 * swc_recorder_from() - the recorder of the communicator with the least number from @number on
 *
 * Of live and ended ones that the caller may read. Return: the recorder, with a reference; NULL: none.
 */
struct swc_recorder *swc_recorder_from(u64 number)
{
	struct swc_recorder *recorder;

	mutex_lock(&recorders_mutex);
	trim();
	recorder = least_from(&ended, number, least_from(&live, number, NULL));
	if (recorder)
		kref_get(&recorder->ref);
	mutex_unlock(&recorders_mutex);
	return recorder;
}

/* Nanoseconds since the communicator was freed; 0: it was not. */
u64 swc_recorder_ended_ns(const struct swc_recorder *recorder)
{
	u64 at;

	mutex_lock(&recorders_mutex);
	at = recorder->ended_at;
	mutex_unlock(&recorders_mutex);
	return at ? max_t(s64, ktime_get_ns() - at, 1) : 0;
}

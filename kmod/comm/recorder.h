/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_RECORDER_H
#define SWC_RECORDER_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/preempt.h>
#include <linux/swingcoll.h>
#include <linux/types.h>
#include <linux/uidgid.h>

/* A record as it is kept: the same content as struct swc_trace_record, but one store publishes it. */
struct swc_recorder_place {
	u64 ns;
	u64 seq;
	u64 arg;
	u64 word;	/* low half of the record's number + 1; above bit 32 rank, type and channel */
};

/**
 * struct swc_recorder - the last events of a communicator, and how it ended
 *
 * Made with the communicator, which holds a reference; outlives it in the list of ended ones. Readers hold a
 * reference each. Holds no secret: whoever may query the communicator may read all of it.
 *
 * @ref: references
 * @node: in the list of live or of ended ones; recorders_mutex
 * @number: of the communicator; constant from swc_recorder_add() on
 * @owner: user who may read; constant, likewise @nranks
 * @nranks: ranks of the communicator
 * @ended_at: ktime when the communicator was freed, 0 before; recorders_mutex
 * @failed: @error, @culprit and @text are valid, and constant
 * @aborted: the communicator was aborted; valid with @failed
 * @error, @culprit, @text: the failure of the communicator
 * @mask: number of records - 1
 * @written: records so far, and the number of the next one
 * @place: record n is in place n & mask
 */
struct swc_recorder {
	struct kref ref;
	struct list_head node;
	u64 number;
	kuid_t owner;
	u32 nranks;
	u64 ended_at;
	bool failed;
	bool aborted;
	int error;
	int culprit;
	char text[SWC_TEXT_BYTES];
	u32 mask;
	atomic64_t written;
	struct swc_recorder_place place[];
};

struct swc_recorder *swc_recorder_create(kuid_t owner, u32 nranks);
void swc_recorder_put(struct swc_recorder *recorder);
void swc_recorder_add(struct swc_recorder *recorder, u64 number);
void swc_recorder_fail(struct swc_recorder *recorder, bool aborted, int error, int culprit, const char *text);
void swc_recorder_end(struct swc_recorder *recorder);
void swc_recorder_exit(void);
bool swc_recorder_read(const struct swc_recorder *recorder, u64 n, struct swc_trace_record *to);
bool swc_recorder_visible(const struct swc_recorder *recorder);
struct swc_recorder *swc_recorder_from(u64 number);
u64 swc_recorder_ended_ns(const struct swc_recorder *recorder);

/**
 * swc_record_at() - record an event
 * @recorder: the recorder; NULL: recording is off
 * @ns: ktime of the event
 * @type, @rank, @channel, @seq, @arg: fields of struct swc_trace_record; @rank -1: no particular one
 *
 * Any context. Inline, because small operations have several events.
 */
static inline void swc_record_at(struct swc_recorder *recorder, u64 ns, enum swc_trace_type type, u32 rank,
				 u32 channel, u64 seq, u64 arg)
{
	u32 what = (u16)rank | type << 16 | channel << 24, index;
	struct swc_recorder_place *p;

	if (!recorder)
		return;
	/*
	 * Two writers have the same place only if one is held up here while the others fill the whole ring.
	 * Not even that harms more than the one record.
	 */
	preempt_disable();
	index = atomic64_fetch_inc_relaxed(&recorder->written);
	p = &recorder->place[index & recorder->mask];
	index++;
	/* No reader expects this here: the number of places is even. */
	WRITE_ONCE(p->word, (u32)~index);
	/* Pairs with the barrier of swc_recorder_read(). */
	smp_wmb();
	WRITE_ONCE(p->ns, ns);
	WRITE_ONCE(p->seq, seq);
	WRITE_ONCE(p->arg, arg);
	/* Pairs with the acquire of swc_recorder_read(). */
	smp_store_release(&p->word, index | (u64)what << 32);
	preempt_enable();
}

void swc_record(struct swc_recorder *recorder, enum swc_trace_type type, u32 rank, u64 seq, u64 arg);

#endif /* SWC_RECORDER_H */

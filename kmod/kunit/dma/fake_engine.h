/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A DMA engine for the suites: copies and xors on a work queue, is strict about what it is given, and fails
 * where a test wants it to. One at a time.
 */
#ifndef SWC_KUNIT_DMA_FAKE_H
#define SWC_KUNIT_DMA_FAKE_H

#include <linux/dmaengine.h>
#include <linux/types.h>

#define SWC_T_FAKE_CHANS	8

/* What can go wrong. */
enum swc_t_fault {
	SWC_T_FAIL_ALLOC,	/* the channel cannot be had */
	SWC_T_FAIL_PREP,	/* no descriptor, nor any later, until the fault is cleared */
	SWC_T_FAIL_SUBMIT,
	SWC_T_FAIL_TRANSFER,	/* the callback says so; half of the destination is spoilt */
	SWC_T_HANG,		/* the channel stands still until it is terminated */
	SWC_T_FAIL_TERMINATE,
	SWC_T_FAULTS,
};

/**
 * struct swc_t_fake - what a test sets and sees
 * @nchans: channels
 * @align: addresses and lengths are multiples of 1 << align
 * @max_seg: most bytes of a descriptor, 0: as many as one likes
 * @max_xor: most sources, 0: it has no xor
 * @max_descs: most descriptors of a channel at a time, 0: as many as one likes
 * @us_per_kib: how slow it is
 * @reorder: it does the newest first, and says that it has no order
 * @quiet: what has no interrupt is not told by callback, either, and its failure is only a status
 * @hoards: descriptors without an interrupt come back when somebody asks for a status, or with the next that
 *	has one
 * @stubborn: it refuses to be terminated
 * @deaf: it cannot say whether a callback is running
 * @narrow: bits that it can address, 0: all there are
 * @often: no descriptor, none submitted or a failed transfer once in so many each, at random; 0: never
 * @fault: the n-th chance from now on; 0: none
 * @transfers: carried out well, by channel
 * @bytes: of them
 * @wrong: how often it was used against its rules
 * @interrupts: of @transfers, those with an interrupt
 * @exhausted: how often @max_descs was too few
 * @overtakes: descriptors that were done before older ones
 * @held: channels that somebody has
 * @terminated: descriptors that were
 */
struct swc_t_fake {
	u32 nchans;
	u32 align;
	u32 max_seg;
	u32 max_xor;
	u32 max_descs;
	u32 us_per_kib;
	bool reorder;
	bool quiet;
	bool hoards;
	bool stubborn;
	bool deaf;
	u32 narrow;
	u32 often;
	atomic_t fault[SWC_T_FAULTS];
	atomic_t transfers[SWC_T_FAKE_CHANS];
	atomic64_t bytes;
	atomic_t wrong;
	atomic_t interrupts;
	atomic_t exhausted;
	atomic_t overtakes;
	atomic_t held;
	atomic_t terminated;
};

/* The first four, @reorder, @deaf and @narrow must not change while there is the engine. */
int swc_t_fake_add(struct swc_t_fake *fake);
void swc_t_fake_remove(struct swc_t_fake *fake);
u32 swc_t_fake_transfers(struct swc_t_fake *fake);
/* Channels that have done anything. */
u32 swc_t_fake_busy(struct swc_t_fake *fake);
/* What hangs, goes on. */
void swc_t_fake_unhang(struct swc_t_fake *fake);

#endif /* SWC_KUNIT_DMA_FAKE_H */

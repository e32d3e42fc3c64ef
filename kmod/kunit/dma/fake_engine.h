/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A DMA engine for the suites: copies and xors on a work queue, counts every use against its rules, and
 * fails where a test wants it to. One at a time.
 */
#ifndef SWC_KUNIT_DMA_FAKE_H
#define SWC_KUNIT_DMA_FAKE_H

#include <linux/dmaengine.h>
#include <linux/types.h>

#define SWC_T_FAKE_CHANS	8

enum swc_t_fault {
	SWC_T_FAIL_ALLOC,	/* the channel cannot be acquired */
	SWC_T_FAIL_PREP,	/* no descriptor, nor any later, until the fault is cleared */
	SWC_T_FAIL_SUBMIT,
	SWC_T_FAIL_TRANSFER,	/* the callback reports it; half of the destination is garbage */
	SWC_T_FAULT_HANG,		/* the channel does nothing until it is terminated */
	SWC_T_FAIL_TERMINATE,
	SWC_T_FAULTS,
};

/**
 * struct swc_t_fake - a test's view of the engine
 *
 * Set by the test; the first four, @reorder, @no_sync and @addr_bits before the engine is added:
 *
 * @nchans: channels
 * @align: addresses and lengths are multiples of 1 << align
 * @max_seg: maximum bytes of a descriptor, 0: no limit
 * @max_xor: maximum sources, 0: it has no xor
 * @max_descs: maximum descriptors of a channel at a time, 0: no limit
 * @reorder: does the newest descriptor first, and declares that it has no order
 * @status_only: no callback for descriptors without an interrupt; only their status tells of a failure
 * @lazy_free: frees descriptors without an interrupt only when a status is asked for, or with the next one
 *	that has an interrupt
 * @spoils: all transfers fail
 * @refuse_stop: refuses to be terminated
 * @no_sync: cannot tell whether a callback is running
 * @addr_bits: bits of an address, 0: 64
 * @fault_rate: no descriptor, no submission or a failed transfer once in so many each, at random; 0: never
 * @fault: countdown to a fault, 0: none
 * @preparing: called for each descriptor that is asked for
 * @moved: called for each transfer
 * @hung: called when a channel hangs, with the descriptor that is not done; atomic context
 *
 * Counted:
 *
 * @transfers: good ones, by channel
 * @bytes: of them
 * @interrupts: callbacks of descriptors with an interrupt
 * @wrong: uses against its rules
 * @exhausted: times that @max_descs was too few
 * @overtakes: descriptors done before older ones
 * @held: channels acquired
 * @terminated: descriptors dropped by terminating
 * @refused: terminations refused
 */
struct swc_t_fake {
	u32 nchans;
	u32 align;
	u32 max_seg;
	u32 max_xor;
	u32 max_descs;
	bool reorder;
	bool status_only;
	bool lazy_free;
	bool spoils;
	bool refuse_stop;
	bool no_sync;
	u32 addr_bits;
	u32 fault_rate;
	atomic_t fault[SWC_T_FAULTS];
	void (*preparing)(struct swc_t_fake *fake);
	void (*moved)(struct swc_t_fake *fake, size_t bytes);
	void (*hung)(struct swc_t_fake *fake, struct dma_async_tx_descriptor *tx);
	atomic_t transfers[SWC_T_FAKE_CHANS];
	atomic64_t bytes;
	atomic_t interrupts;
	atomic_t wrong;
	atomic_t exhausted;
	atomic_t overtakes;
	atomic_t held;
	atomic_t terminated;
	atomic_t refused;
};

int swc_t_fake_add(struct swc_t_fake *fake);
/* All channels have been released. */
void swc_t_fake_remove(struct swc_t_fake *fake);
u32 swc_t_fake_transfers(struct swc_t_fake *fake);
/* Channels that have done transfers. */
u32 swc_t_fake_nused(struct swc_t_fake *fake);
/* Channels that hang go on. */
void swc_t_fake_unhang(struct swc_t_fake *fake);

#endif /* SWC_KUNIT_DMA_FAKE_H */

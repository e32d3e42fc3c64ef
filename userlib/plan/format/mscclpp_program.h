/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An execution plan of MSCCL++: shared by the files that read it (mscclpp.c) and run it (mscclpp_run.c).
 */
#ifndef SWC_PLAN_FORMAT_MSCCLPP_PROGRAM_H
#define SWC_PLAN_FORMAT_MSCCLPP_PROGRAM_H

#include "plan/format/msccl_program.h"

/* What operations do; several at once, in this order. */
enum swc_mscclpp_does {
	SWC_MSCCLPP_WAIT = 1,	   /* for a signal on each channel */
	SWC_MSCCLPP_BARRIER = 2,   /* of thread blocks of a GPU */
	SWC_MSCCLPP_ACQUIRE = 4,   /* semaphores of a GPU */
	SWC_MSCCLPP_PACKETS = 8,   /* wait until what is read from scratch is there */
	SWC_MSCCLPP_COPY = 16,	   /* sources to destinations */
	SWC_MSCCLPP_REDUCE = 32,   /* the sum of all sources to all destinations */
	SWC_MSCCLPP_SIGNAL = 64,   /* on each channel */
	SWC_MSCCLPP_RELEASE = 128, /* semaphores of a GPU */
};

/* A part of a buffer of any GPU. */
struct swc_mscclpp_ref {
	struct swc_msccl_chunks at;
	uint32_t n;
};

/**
 * struct swc_mscclpp_op - an operation of a thread block
 * @first_ref: its sources, then its destinations
 * @first_id: channels of its GPU, or semaphores
 * @barrier, @members: number of a barrier, and of thread blocks that meet there
 */
struct swc_mscclpp_op {
	unsigned int does;
	uint32_t first_ref, nsrc, ndst;
	uint32_t first_id, nids;
	uint32_t barrier, members;
};

struct swc_mscclpp_tb {
	uint32_t gpu, id, first_op, nops;
	uint32_t at;
	bool waits; /* has come to a barrier */
};

/**
 * struct swc_mscclpp_chan - a channel to another GPU
 * @memory: of type memory, else port
 * @pair: the other end, or SWC_MSCCL_NONE
 * @signals: that have come and were not waited for
 */
struct swc_mscclpp_chan {
	uint32_t gpu, peer, pair;
	bool memory;
	uint64_t signals;
};

/* A barrier or semaphore of a GPU. */
struct swc_mscclpp_sync {
	uint32_t gpu, number;
	uint64_t count;
};

/* Numbers of channels. */
struct swc_mscclpp_numbers {
	uint32_t *at, n, room;
};

/**
 * struct swc_mscclpp - the plan; @m has GPUs and buffers
 * @of_type: the channels of the GPU that is being read, by whether they are memory
 */
struct swc_mscclpp {
	struct swc_msccl m;
	struct swc_mscclpp_tb *tb;
	struct swc_mscclpp_op *op;
	struct swc_mscclpp_ref *ref;
	struct swc_mscclpp_chan *chan;
	struct swc_mscclpp_numbers of_type[2];
	struct swc_mscclpp_sync *barrier, *semaphore;
	uint32_t *id;
	uint32_t ntbs, tb_room, nops, op_room, nrefs, ref_room, nchans, chan_room, nids, id_room;
	uint32_t nbarriers, barrier_room, nsemaphores, semaphore_room;
	uint64_t moves;
};

/* Run it on symbols. Returns m.error. */
int swc_mscclpp_run(struct swc_mscclpp *p);

#endif /* SWC_PLAN_FORMAT_MSCCLPP_PROGRAM_H */

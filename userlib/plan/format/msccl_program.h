/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program of MSCCL, between the files that read it (msccl_xml.c), run it (msccl.c) and write what it does
 * as plans (msccl_plan.c).
 */
#ifndef SWC_PLAN_MSCCL_PROGRAM_H
#define SWC_PLAN_MSCCL_PROGRAM_H

#include "format/plan_text.h"

#define SWC_MSCCL_NONE UINT32_MAX
#define SWC_MSCCL_MAX_PLACES (1u << 22) /* chunks of all buffers of all GPUs together */

enum type {
	OP_SEND = 1,
	OP_RECV = 2,
	OP_REDUCE = 4, /* what is received is added to srcbuf */
	OP_STORE = 8,  /* and stored in dstbuf */
	OP_COPY = 16,
	OP_ADD = 32,
};

struct op {
	unsigned int type;
	char srcbuf, dstbuf; /* i, o, s */
	uint32_t srcoff, dstoff, cnt;
	/* Wait until that thread block of the GPU is past the step; SWC_MSCCL_NONE: do not wait. */
	uint32_t dep_tb, dep_step;
	unsigned long line;
};

struct tb {
	uint32_t gpu, send, recv, chan; /* peers or SWC_MSCCL_NONE */
	uint32_t first_op, nops;
	uint32_t from;	    /* thread block at the other end of recv, or SWC_MSCCL_NONE */
	uint32_t at, chunk; /* the next step, and how many chunks of it are done */
	bool received;	    /* of those, the receiving half is done and the sending one has begun */
	uint32_t first_sent, nsent, ntaken; /* message chunks */
	/* Levels: the first for the step at hand, and the first behind all that was received. */
	uint32_t floor, top;
	unsigned long line;
};

struct gpu {
	bool given;
	uint32_t chunks[3]; /* of i, o, s */
	uint32_t first_tb, ntbs;
	uint32_t first_place;
};

/*
 * A block of SEND, RECV or SCRATCH of a GPU. The levels are the first on which it may be read and written: by
 * anything, and by receives that reduce, of which one step may do several.
 */
struct state {
	uint32_t users; /* places and messages */
	uint32_t read, write;
	uint32_t add_read, add_write;
	uint32_t chan; /* that touches it, or NONE for several */
	bool touched;
};

/* What will be a send and a receive, or a local step. */
struct record {
	bool local, reduce, final;
	uint32_t level, chan;
	/* Cells; the operand is the second source of a local step, or SWC_MSCCL_NONE. */
	uint32_t src, dst, operand;
	uint32_t n; /* of consecutive cells */
};

/**
 * struct swc_msccl - the program
 * @why, @why_bytes: for swc_msccl_refuse()
 * @error: the first failure; sticks
 * @name: that a plan can have
 * @nblocks, @part_blocks: the vector's blocks, one for each chunk
 * @in_place: input and output are the same memory
 * @gpu: by id
 * @tb: of all GPUs, those of one together
 * @op: of all thread blocks, those of one together
 *
 * The rest belongs to one of the files.
 */
struct swc_msccl {
	char *why;
	size_t why_bytes;
	int error;

	char name[SWC_NAME_BYTES];
	enum swc_coll coll;
	uint32_t ngpus, nblocks, part_blocks, root;
	bool in_place;
	struct gpu *gpu;
	struct tb *tb;
	struct op *op;
	uint32_t ntbs, tb_room, nops, op_room;
	/* While it is read. */
	struct XML_ParserStruct *xml;
	uint32_t open_gpu, depth;
	uint64_t nchunks;

	/* While it is run. */
	struct place *place;
	struct state *state; /* of cells */
	struct sent *sent;
	struct record *record;
	uint32_t nrecords, record_room;
};

static inline uint32_t swc_msccl_cell(const struct swc_msccl *m, uint32_t gpu, enum swc_buf buf,
				      uint32_t block)
{
	return (gpu * SWC_BUF_NR + (uint32_t)buf) * m->nblocks + block;
}

static inline uint32_t swc_msccl_gpu(const struct swc_msccl *m, uint32_t cell)
{
	return cell / m->nblocks / SWC_BUF_NR;
}

static inline enum swc_buf swc_msccl_buf(const struct swc_msccl *m, uint32_t cell)
{
	return cell / m->nblocks % SWC_BUF_NR;
}

static inline uint32_t swc_msccl_block(const struct swc_msccl *m, uint32_t cell)
{
	return cell % m->nblocks;
}

/* -EINVAL and a line of text, unless there was an error before; line 0: none in particular. */
int __attribute__((format(printf, 3, 4)))
swc_msccl_refuse(struct swc_msccl *m, unsigned long line, const char *fmt, ...);

/* Index of room for one more element of a table; NONE and an error that sticks if there is no memory. */
uint32_t swc_msccl_append(struct swc_msccl *m, void *table, uint32_t *used, uint32_t *room,
			  size_t size);

/* Read a program. Thread blocks have peers and numbers that are there; what their steps do is not checked. */
int swc_msccl_parse(struct swc_msccl *m, FILE *f);

/* Make plans of the records. */
int swc_msccl_write(struct swc_msccl *m, struct swc_planset *set);

#endif /* SWC_PLAN_MSCCL_PROGRAM_H */

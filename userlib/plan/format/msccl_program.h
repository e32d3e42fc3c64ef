/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program of MSCCL: shared by the files that read it (msccl_xml.c), run it on symbols (msccl.c)
 * and make plans of what it does (msccl_plan.c). One of MSCCL++ is run by mscclpp_run.c, which moves one
 * chunk after the other by swc_msccl_move().
 */
#ifndef SWC_PLAN_FORMAT_MSCCL_PROGRAM_H
#define SWC_PLAN_FORMAT_MSCCL_PROGRAM_H

#include "plan/format/msccl.h"

#define SWC_MSCCL_NONE UINT32_MAX
#define SWC_MSCCL_MAX_PLACES (1u << 22) /* chunks of all buffers of all GPUs together */

enum swc_msccl_type {
	SWC_MSCCL_SEND = 1,
	SWC_MSCCL_RECV = 2,
	SWC_MSCCL_REDUCE = 4, /* what is received is added to srcbuf */
	SWC_MSCCL_STORE = 8,  /* and stored in dstbuf */
	SWC_MSCCL_COPY = 16,
	SWC_MSCCL_ADD = 32,
};

struct swc_msccl_op {
	unsigned int type;
	char srcbuf, dstbuf; /* i, o, s */
	uint32_t srcoff, dstoff, cnt;
	/*
	 * Wait until thread block @dep_tb of the GPU is past step @dep_step; SWC_MSCCL_NONE: do not
	 * wait.
	 */
	uint32_t dep_tb, dep_step;
	unsigned long line;
};

struct swc_msccl_tb {
	uint32_t gpu, send, recv, chan; /* peers or SWC_MSCCL_NONE */
	uint32_t first_op, nops;
	uint32_t from;	    /* thread block that sends to this one, or SWC_MSCCL_NONE */
	uint32_t at, chunk; /* the next step, and the number of its chunks that are done */
	bool received;	    /* of the next chunk, the receiving half is done */
	uint32_t first_sent, nsent, ntaken; /* message chunks */
	/* Levels: the first for the current step, and the first behind all that was received. */
	uint32_t floor, top;
	unsigned long line;
};

struct swc_msccl_gpu_info {
	bool given;
	uint32_t chunks[3]; /* of i, o, s */
	uint32_t first_tb, ntbs;
	uint32_t first_place;
};

/*
 * A cell: a block of SEND, RECV or SCRATCH of a GPU. The levels are the first on which it may be
 * read and written: by any operation, and by receives that reduce, several of which may be in one
 * step.
 */
struct swc_msccl_cell_state {
	uint32_t users; /* places and messages that need its value */
	uint32_t read, write;
	uint32_t add_read, add_write;
	uint32_t chan; /* the channel that accesses it, or SWC_MSCCL_NONE if there are several */
	bool touched;
};

/* What becomes a send and a receive, or a local step. */
struct swc_msccl_record {
	bool local, reduce, final;
	uint32_t level, chan;
	/* Cells; the operand is the second source of a local step, or SWC_MSCCL_NONE. */
	uint32_t src, dst, operand;
	uint32_t n; /* of consecutive cells */
};

/**
 * struct swc_msccl - the program
 * @why, @why_bytes: for swc_msccl_refuse()
 * @error: the first failure; it stays
 * @name: the program's, shortened to what a plan can have
 * @nblocks, @shard_blocks: the vector's blocks, one for each chunk
 * @in_place: input and output are the same memory
 * @channels: if more than 1, what is independent takes turns among so many channels of the plans
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
	uint32_t ngpus, nblocks, shard_blocks, root, channels;
	bool in_place;
	struct swc_msccl_gpu_info *gpu;
	struct swc_msccl_tb *tb;
	struct swc_msccl_op *op;
	uint32_t ntbs, tb_room, nops, op_room;
	/* While it is read. */
	struct XML_ParserStruct *xml;
	uint32_t open_gpu, depth;
	uint64_t nchunks;

	/* While it is run. */
	struct swc_msccl_place *place;
	struct swc_msccl_cell_state *state; /* of cells */
	struct swc_msccl_sent *sent;
	uint32_t nmoved; /* by swc_msccl_move() between GPUs */
	struct swc_msccl_record *record;
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

/*
 * Refuse the program: -EINVAL and a line of text, unless there was an error before; line 0: no
 * particular line.
 */
int __attribute__((format(printf, 3, 4)))
swc_msccl_refuse(struct swc_msccl *m, unsigned long line, const char *fmt, ...);

/* The index of a new element of a table; SWC_MSCCL_NONE and m->error if there is no memory. */
uint32_t swc_msccl_append(struct swc_msccl *m, void *table, uint32_t *used, uint32_t *room,
			  size_t size);

/* Read a program. Peers and numbers of thread blocks are checked; what their steps do is not. */
int swc_msccl_parse_xml(struct swc_msccl *m, const char *xml, size_t bytes);

/* Take a name: the characters of it that a plan's name can have. */
void swc_msccl_set_name(struct swc_msccl *m, const char *name);
/* Make the table of GPUs, after coll, ngpus and nblocks are known. @chunks: where nblocks comes from. */
int swc_msccl_set_gpus(struct swc_msccl *m, unsigned long line, const char *chunks);

/* Chunks of a buffer of a GPU. */
struct swc_msccl_chunks {
	uint32_t gpu;
	char buf; /* i, o, s */
	uint32_t first;
};

/* Begin: all GPUs are there, with their chunks. @moves: that chunks will make between GPUs, at most. */
int swc_msccl_begin(struct swc_msccl *m, uint64_t moves);

/*
 * Move @n chunks, or add them to those that are there. Returns m->error: -EINVAL, or -EOPNOTSUPP if plans
 * have no room for it.
 */
int swc_msccl_move(struct swc_msccl *m, const struct swc_msccl_chunks *from,
		   const struct swc_msccl_chunks *to, uint32_t n, bool add);

/* Was something stored there that can be read? */
bool swc_msccl_has(struct swc_msccl *m, const struct swc_msccl_chunks *chunks, uint32_t n);

/* Make the plans, and free everything. */
int swc_msccl_end(struct swc_msccl *m, struct swc_plan_set *set);

/* Make plans from the records. */
int swc_msccl_make_plans(struct swc_msccl *m, struct swc_plan_set *set);

#endif /* SWC_PLAN_FORMAT_MSCCL_PROGRAM_H */

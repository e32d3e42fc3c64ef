/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the sparse allreduce share: the state of a communicator. */
#ifndef SWC_SPARSE_SPARSE_H
#define SWC_SPARSE_SPARSE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <swingcoll_sparse.h>

#include "sparse/auto.h"
#include "sparse/codec.h"

/* Kinds of calls (count, type, ...) that are remembered: of a model, the sizes of its layers. */
#define SWC_SPARSE_KINDS 64

/**
 * struct swc_sparse_kind - what is known of calls with the same arguments, the same on all ranks
 * @elements: size of the last union; @known: there was one
 */
struct swc_sparse_kind {
	uint64_t count;
	enum swingcoll_dtype dtype;
	enum swingcoll_redop op;
	uint32_t mode;
	bool used, known;
	uint64_t elements;
	struct swc_sparse_auto choice;
};

/**
 * struct swc_sparse - sparse allreduces of one communicator
 *
 * Made by the first call, freed with the communicator. Belongs to the call that has set @busy, all but
 * what @lock protects, which any thread may read meanwhile.
 *
 * @memory, @bytes: for index, packed values and peeling: address space that grows, and stays for the
 *	next call
 * @last: of the current call
 * @waited_ns: in collectives, by the current call
 * @pending: the call in a thread that has not been waited for
 * @ran, @shown, @total: how the calls that are done went
 */
struct swc_sparse {
	struct swingcoll_comm *comm;
	const struct swc_sparse_codec *codec;
	int busy;
	char *memory;
	size_t bytes;
	struct swc_sparse_kind kind[SWC_SPARSE_KINDS];
	unsigned int next_kind;
	struct swingcoll_sparse_result last;
	uint64_t waited_ns;
	struct swingcoll_sparse_req *pending;

	pthread_mutex_t lock;
	bool ran;
	struct swingcoll_sparse_result shown;
	struct swingcoll_sparse_total total;
};

/* A call, its arguments checked. */
struct swc_sparse_call {
	const void *send;
	void *recv;
	size_t count;
	enum swingcoll_dtype dtype;
	enum swingcoll_redop op;
	uint32_t mode;
	unsigned int size; /* of an element */
};

/* state.c */
uint64_t swc_sparse_now(void);
/* The state of a communicator, for one call: 0, -EBUSY, -ENOMEM. */
int swc_sparse_enter(struct swingcoll_comm *comm, struct swc_sparse **s);
void swc_sparse_leave(struct swc_sparse *s);
/* The state, whoever has it, for what @lock protects. *s: NULL if there was no call. 0 or an error. */
int swc_sparse_look(struct swingcoll_comm *comm, struct swc_sparse **s);
struct swc_sparse_kind *swc_sparse_kind_of(struct swc_sparse *s, const struct swc_sparse_call *c);
/* Memory for a call: its contents are undefined, pages cost nothing until they are written. */
int swc_sparse_reserve(struct swc_sparse *s, size_t bytes);
/* An allreduce in place that counts into @s->last and @s->waited_ns; none of 0 elements. */
int swc_sparse_reduce(struct swc_sparse *s, void *v, uint64_t n, enum swingcoll_dtype dtype,
		      enum swingcoll_redop op);

/* Bytes in whole pages. */
static inline size_t swc_sparse_pages(uint64_t bytes)
{
	return (bytes + 4095) / 4096 * 4096;
}

/* Parts of a long vector at most, and allreduces of a call: index and values of each. */
#define SWC_SPARSE_PARTS 8
#define SWC_SPARSE_QUEUE (2 * SWC_SPARSE_PARTS)

/**
 * struct swc_sparse_queue - allreduces of a call that run at the same time
 * @blocking: each runs when it is started, without a request
 * @req: in the order of their start; NULL: done
 * @started, @finished: how many
 */
struct swc_sparse_queue {
	struct swc_sparse *s;
	bool blocking;
	unsigned int started, finished;
	struct swingcoll_req *req[SWC_SPARSE_QUEUE];
};
/* Start one, in place; of 0 elements it is done at once. Counts into @s->last. */
int swc_sparse_start(struct swc_sparse_queue *q, void *v, uint64_t n, enum swingcoll_dtype dtype,
		     enum swingcoll_redop op);
/* Wait until the first @n are done. Their first error, or 0. */
int swc_sparse_finish(struct swc_sparse_queue *q, unsigned int n);

/* pack.c: by an index of rows of @width elements, and their values. */
int swc_sparse_pack(struct swc_sparse *s, const struct swc_sparse_call *c, uint64_t width,
		    struct swc_sparse_kind *kind);
/* How many parts an index of so many words goes in: one on one node, where a collective takes no time. */
unsigned int swc_sparse_parts(const struct swc_sparse *s, uint64_t words);

/* coded.c: the bytes that are exchanged for an allreduce by the code of exponents; 0: there is none. */
uint64_t swc_sparse_coded_bytes(const struct swc_sparse *s, uint64_t count);
/* Run it. If not @held, the code cannot hold some values, and @recv is as before, on all ranks. */
int swc_sparse_coded(struct swc_sparse *s, const struct swc_sparse_call *c, bool *held);

/* modes.c: run a call by a mode that is not auto. */
int swc_sparse_run(struct swc_sparse *s, const struct swc_sparse_call *c, uint32_t mode,
		   struct swc_sparse_kind *kind);

#endif /* SWC_SPARSE_SPARSE_H */

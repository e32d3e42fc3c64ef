// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The modes: which vectors are reduced by ordinary allreduces, in which order. All lengths follow from
 * the reduced index, which is the same on all ranks, so ranks need not agree on anything else.
 */
#include <errno.h>
#include <string.h>

#include "sparse/sparse.h"
#include "src/priv.h"

/* Above this load, in percent, peeling ends at once. */
#define MOST_LOAD 82

static int dense(struct swc_sparse *s, const struct swc_sparse_call *c)
{
	uint64_t start = swc_sparse_now();
	int ret = swc_allreduce(c->send, c->recv, c->count, c->dtype, c->op, s->comm);

	s->waited_ns += swc_sparse_now() - start;
	s->last.mode = SWINGCOLL_SPARSE_MODE_DENSE;
	s->last.reduced_bytes += c->count * c->size;
	s->last.rounds++;
	return ret;
}

/*
 * Reduce index and table at once, so that both share the start-up time. The index of a part goes out while
 * the next is scanned, and all of it while the table is made: of this rank's index, which therefore is
 * kept in @mine. @words: of both.
 */
static int reduce_both(struct swc_sparse *s, const struct swc_sparse_call *c, uint64_t *index,
		       uint64_t *mine, uint64_t words, void *cell, uint64_t cells)
{
	unsigned int parts = swc_sparse_parts(s, words);
	struct swc_sparse_queue q = { .s = s };
	int ret = 0, err;

	for (unsigned int k = 0; !ret && k < parts; k++) {
		uint64_t first = words * k / parts, n = words * (k + 1) / parts - first;
		uint64_t left = c->count - first * 64;

		s->codec->scan((const char *)c->send + first * 64 * c->size,
			       left < n * 64 ? left : n * 64, c->size, index + first);
		memcpy(mine + first, index + first, n * 8);
		ret = swc_sparse_start(&q, index + first, n, SWINGCOLL_U64, SWINGCOLL_BOR);
	}
	if (!ret) {
		memset(cell, 0, cells * c->size);
		swc_sparse_sketch(c->send, mine, c->count, c->size, cells, cell);
		ret = swc_sparse_start(&q, cell, cells, c->dtype, c->op);
	}
	err = swc_sparse_finish(&q, q.started);
	s->last.rounds++;
	return ret ? ret : err;
}

/* What peeling has left, which every rank knows from the index: as pack, in a second round. */
static int leftovers(struct swc_sparse *s, const struct swc_sparse_call *c, const uint64_t *index,
		     void *packed)
{
	uint64_t n;
	int ret = swc_sparse_count(index, c->count, &n);

	if (ret || !n)
		return ret;
	s->codec->pack(c->send, index, c->count, c->size, packed);
	ret = swc_sparse_reduce(s, packed, n, c->dtype, c->op);
	if (!ret)
		swc_sparse_scatter(index, c->count, c->size, packed, c->recv);
	return ret;
}

static int sketch(struct swc_sparse *s, const struct swc_sparse_call *c,
		  struct swc_sparse_kind *kind)
{
	uint64_t words = swc_sparse_words(c->count), cells, bytes, n;
	size_t at = swc_sparse_pages(words * 8), scratch;
	uint64_t *index;
	char *cell;
	int ret;

	cells = kind->known ? swc_sparse_cells(kind->elements) : 0;
	/* No union is known, or the table would be no smaller than the vector. */
	if (!cells || cells >= c->count)
		return swc_sparse_pack(s, c, 1, kind);
	scratch = at + swc_sparse_pages(c->count * c->size + SWC_SPARSE_SLACK);
	bytes = swc_sparse_peel_bytes(cells);
	if (bytes < words * 8)
		bytes = words * 8;
	ret = swc_sparse_reserve(s, scratch + bytes);
	if (ret)
		return ret;
	index = (uint64_t *)s->memory;
	cell = s->memory + at;
	s->last.mode = SWINGCOLL_SPARSE_MODE_SKETCH;
	/* Peeling needs its memory only after this rank's index. */
	ret = reduce_both(s, c, index, (uint64_t *)(s->memory + scratch), words, cell, cells);
	if (!ret)
		ret = swc_sparse_count(index, c->count, &n);
	if (ret)
		return ret;
	kind->elements = s->last.elements = n;
	/* In place, what is not in the union is zero already, and leftovers are still to be sent. */
	if (c->send != c->recv)
		memset(c->recv, 0, c->count * c->size);
	if (n * 100 <= cells * MOST_LOAD)
		ret = swc_sparse_peel(index, c->count, c->size, cells, cell, s->memory + scratch,
				      c->recv);
	return ret ? ret : leftovers(s, c, index, cell);
}

int swc_sparse_run(struct swc_sparse *s, const struct swc_sparse_call *c, uint32_t mode,
		   struct swc_sparse_kind *kind)
{
	/* One rank has nothing to add, no elements nothing to find. */
	if (swingcoll_comm_size(s->comm) == 1 || !c->count)
		return dense(s, c);
	switch (mode & 15) {
	case SWINGCOLL_SPARSE_MODE_PACK:
		return swc_sparse_pack(s, c, 1, kind);
	case SWINGCOLL_SPARSE_MODE_SKETCH:
		return sketch(s, c, kind);
	case SWINGCOLL_SPARSE_MODE_PACK_ROWS:
		return swc_sparse_pack(s, c, mode >> 4, kind);
	default:
		return dense(s, c);
	}
}

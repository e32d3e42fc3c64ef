// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Index and packed values, of elements or of rows. Between nodes, long vectors go in parts, so that the
 * link does not wait for the codec: while the index of a part is reduced, the next part is scanned; while
 * values are reduced, those of the next part are packed, and those of the part before are unpacked. All
 * ranks start the same collectives in the same order, because all that decides on them is the same.
 */
#include <errno.h>

#include "sparse/sparse.h"
#include "src/priv.h"

/* Index bytes of a part at least, so that it is worth a collective. */
#define PART_INDEX (64u << 10)
/* Values wait for those of the next part below so many bytes. */
#define LEAST_VALUES (64u << 10)

/* A call in its parts. Rows of one element are elements. */
struct parts {
	struct swc_sparse *s;
	const struct swc_sparse_call *c;
	uint64_t width; /* of rows */
	uint64_t bits;	/* of the index */
	unsigned int n;
	uint64_t *index;
	char *packed;
	uint64_t at[SWC_SPARSE_PARTS + 1]; /* where a part's values begin in packed */
};

/* Rows of one part. */
struct range {
	uint64_t first, rows;
	uint64_t element, elements;
	uint64_t *index;
};

static struct range range_of(const struct parts *p, unsigned int k)
{
	uint64_t words = swc_sparse_words(p->bits);
	uint64_t first = words * k / p->n * 64, end = words * (k + 1) / p->n * 64;
	struct range r;

	if (end > p->bits)
		end = p->bits;
	r = (struct range){ .first = first,
			    .rows = end - first,
			    .element = first * p->width,
			    .index = p->index + first / 64 };
	r.elements = r.rows * p->width;
	if (r.elements > p->c->count - r.element)
		r.elements = p->c->count - r.element;
	return r;
}

static const char *sent(const struct parts *p, const struct range *r)
{
	return (const char *)p->c->send + r->element * p->c->size;
}

static void scan(const struct parts *p, const struct range *r)
{
	if (p->width == 1)
		p->s->codec->scan(sent(p, r), r->elements, p->c->size, r->index);
	else
		swc_sparse_rows_scan(sent(p, r), r->elements, p->c->size, p->width, r->index);
}

/* Pack a part behind those before. */
static int pack(struct parts *p, const struct range *r, unsigned int k)
{
	char *to = p->packed + p->at[k] * p->c->size;
	uint64_t n;
	int ret = swc_sparse_count(r->index, r->rows, &n);

	if (ret)
		return ret;
	if (p->width == 1) {
		p->s->codec->pack(sent(p, r), r->index, r->elements, p->c->size, to);
	} else {
		n = swc_sparse_rows_values(r->index, r->elements, p->width, n);
		swc_sparse_rows_pack(sent(p, r), r->index, r->elements, p->c->size, p->width, to);
	}
	p->at[k + 1] = p->at[k] + n;
	return 0;
}

static int unpack(const struct parts *p, const struct range *r, unsigned int k)
{
	const char *from = p->packed + p->at[k] * p->c->size;
	char *to = (char *)p->c->recv + r->element * p->c->size;
	uint64_t n = p->at[k + 1] - p->at[k];

	if (p->width == 1)
		return swc_sparse_unpack(p->s->codec, r->index, r->elements, p->c->size, from, n,
					 to);
	return swc_sparse_rows_unpack(r->index, r->elements, p->c->size, p->width, from, n, to);
}

static int run(struct parts *p, struct swc_sparse_queue *q)
{
	unsigned int packed = 0, launched[SWC_SPARSE_PARTS], launches = 0;
	const struct swc_sparse_call *c = p->c;
	struct range r;
	int ret = 0;

	for (unsigned int k = 0; !ret && k < p->n; k++) {
		r = range_of(p, k);
		scan(p, &r);
		ret = swc_sparse_start(q, r.index, swc_sparse_words(r.rows), SWINGCOLL_U64,
				       SWINGCOLL_BOR);
	}
	for (unsigned int k = 0; !ret && k < p->n; k++) {
		uint64_t values;

		r = range_of(p, k);
		ret = swc_sparse_finish(q, k + 1);
		if (!ret)
			ret = pack(p, &r, k);
		values = p->at[k + 1] - p->at[packed];
		if (ret || (k + 1 < p->n && values * c->size < LEAST_VALUES))
			continue;
		ret = swc_sparse_start(q, p->packed + p->at[packed] * c->size, values, c->dtype,
				       c->op);
		packed = k + 1;
		launched[launches++] = packed;
	}
	packed = 0;
	for (unsigned int i = 0; !ret && i < launches; i++) {
		ret = swc_sparse_finish(q, p->n + i + 1);
		for (; !ret && packed < launched[i]; packed++) {
			r = range_of(p, packed);
			ret = unpack(p, &r, packed);
		}
	}
	return ret;
}

unsigned int swc_sparse_parts(const struct swc_sparse *s, uint64_t words)
{
	uint64_t n = words * 8 / PART_INDEX;

	/* On one node a collective takes no longer than the codec. */
	if (swingcoll_comm_nodes(s->comm) == 1 || n < 1)
		return 1;
	return n < SWC_SPARSE_PARTS ? (unsigned int)n : SWC_SPARSE_PARTS;
}

int swc_sparse_pack(struct swc_sparse *s, const struct swc_sparse_call *c, uint64_t width,
		    struct swc_sparse_kind *kind)
{
	struct parts p = {
		.s = s, .c = c, .width = width, .bits = swc_sparse_rows(c->count, width)
	};
	uint64_t words = swc_sparse_words(p.bits);
	size_t at = swc_sparse_pages(words * 8);
	struct swc_sparse_queue q = { .s = s };
	int ret = swc_sparse_reserve(s, at + c->count * c->size + SWC_SPARSE_SLACK), err;

	if (ret)
		return ret;
	p.n = swc_sparse_parts(s, words);
	p.index = (uint64_t *)s->memory;
	p.packed = s->memory + at;
	s->last.mode = SWINGCOLL_SPARSE_MODE_PACK;
	if ((c->mode & 15) == SWINGCOLL_SPARSE_MODE_PACK_ROWS)
		s->last.mode = SWINGCOLL_SPARSE_MODE_PACK_ROWS;
	q.blocking = p.n == 1;
	ret = run(&p, &q);
	/* None may be left that uses the memory. */
	err = swc_sparse_finish(&q, q.started);
	if (ret || err)
		return ret ? ret : err;
	kind->known = true;
	kind->elements = s->last.elements = p.at[p.n];
	s->last.rounds += p.at[p.n] ? 2 : 1;
	return 0;
}

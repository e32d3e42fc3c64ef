/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The lossless code of sparse vectors: an index with one bit for each element, set unless all bits
 * of the element are 0, and the values of the elements whose bit is set, packed in their order.
 * Element i is bit i % 64 of word i / 64; the bits beyond the last element are 0. Indices of several
 * ranks add up by OR, and values packed by the same index by any reduction. Pure: no device, no
 * communicator.
 */
#ifndef SWC_SPARSE_CODEC_H
#define SWC_SPARSE_CODEC_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes behind packed values that pack() may write and unpack() may read. */
#define SWC_SPARSE_SLACK 64

/**
 * struct swc_sparse_codec - an implementation; @size is 1, 2, 4 or 8 bytes
 * @scan: make the index of @count elements
 * @pack: copy the elements that the index names to @packed
 * @unpack: write all @count elements: packed values where the index has bits, 0 elsewhere
 */
struct swc_sparse_codec {
	const char *name;
	bool (*valid)(void);
	void (*scan)(const void *v, uint64_t count, unsigned int size, uint64_t *index);
	void (*pack)(const void *v, const uint64_t *index, uint64_t count, unsigned int size,
		     void *packed);
	void (*unpack)(const uint64_t *index, uint64_t count, unsigned int size, const void *packed,
		       void *v);
};

/* From the plainest to the fastest; NULL after the last. Not all are valid on this machine. */
extern const struct swc_sparse_codec *const swc_sparse_codecs[];
/* codec_choice.c: the fastest here, each of its functions by itself. Measured by the first call. */
const struct swc_sparse_codec *swc_sparse_codec_best(void);
/* The reference. */
extern const struct swc_sparse_codec swc_sparse_scalar;
#ifdef __x86_64__
extern const struct swc_sparse_codec swc_sparse_avx2, swc_sparse_avx512;
#endif
#ifdef __aarch64__
extern const struct swc_sparse_codec swc_sparse_neon;
#endif

static inline uint64_t swc_sparse_words(uint64_t count)
{
	return count / 64 + (count % 64 != 0);
}

/*
 * Count the bits of an index. 0, or -EPROTO if a bit stands for no element. Of what arrives from
 * other ranks, this is all that unpacking relies on.
 */
int swc_sparse_count(const uint64_t *index, uint64_t count, uint64_t *bits);

/* As unpack(), but -EPROTO, and nothing is written, unless the index names exactly @values. */
int swc_sparse_unpack(const struct swc_sparse_codec *c, const uint64_t *index, uint64_t count,
		      unsigned int size, const void *packed, uint64_t values, void *v);
/* Write only the elements that the index names. */
void swc_sparse_scatter(const uint64_t *index, uint64_t count, unsigned int size,
			const void *packed, void *v);

/*
 * Rows: one bit for each @width elements; the last row may be shorter. Bytes of the rows that an
 * index names are swc_sparse_rows_values() elements.
 */
static inline uint64_t swc_sparse_rows(uint64_t count, uint64_t width)
{
	return count / width + (count % width != 0);
}
void swc_sparse_rows_scan(const void *v, uint64_t count, unsigned int size, uint64_t width,
			  uint64_t *index);
uint64_t swc_sparse_rows_values(const uint64_t *index, uint64_t count, uint64_t width,
				uint64_t bits);
void swc_sparse_rows_pack(const void *v, const uint64_t *index, uint64_t count, unsigned int size,
			  uint64_t width, void *packed);
/* -EPROTO, and nothing is written, unless the index names rows of exactly @values elements. */
int swc_sparse_rows_unpack(const uint64_t *index, uint64_t count, unsigned int size, uint64_t width,
			   const void *packed, uint64_t values, void *v);

/* ---- sketch.c: values of unknown places in a table that adds up ---- */

/*
 * Each element is added to three cells of a table, one in each third, that its place determines.
 * Tables of several ranks add up, since integers wrap around. With the OR of the indices all ranks
 * peel the sum: a cell that only one element is left in has its value, which is then subtracted from
 * its other two cells. At loads (elements a cell) below 0.81 this ends with nothing left, nearly
 * always; what is left is known from the index alone, so all ranks know it alike.
 */

/* Cells for a union of so many elements, a multiple of three; below @load on average. */
uint64_t swc_sparse_cells(uint64_t elements);
/* Add the elements that the index names to zeroed cells. */
void swc_sparse_sketch(const void *v, const uint64_t *index, uint64_t count, unsigned int size,
		       uint64_t cells, void *cell);
/* Bytes of memory that peeling needs beside cells and index. */
uint64_t swc_sparse_peel_bytes(uint64_t cells);
/*
 * Peel: write the elements that can be recovered to @v, and take them out of the index. Destroys the
 * cells. @scratch: swc_sparse_peel_bytes(), aligned to 8. -EPROTO: a bit stands for no element.
 */
int swc_sparse_peel(uint64_t *index, uint64_t count, unsigned int size, uint64_t cells, void *cell,
		    void *scratch, void *v);

#endif /* SWC_SPARSE_CODEC_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Allreduce of vectors that are mostly zero, with the result of the dense allreduce: only what is not
 * zero on some rank travels. Zero means that all bits of an element are 0, so -0.0 is not. Nothing is
 * dropped or rounded; with more than two ranks floating-point sums may be added up in another order
 * than by swingcoll_allreduce(). See swingcoll_sparse_allreduce(3).
 *
 * Calls return 0 or a negative errno, as in swingcoll.h. Each takes the place of several collectives:
 * from its start until it is done, no other collective may be called on the communicator. After
 * -ENOMEM or -EPROTO, abort the communicator.
 */
#ifndef SWINGCOLL_SPARSE_H
#define SWINGCOLL_SPARSE_H

#include <stddef.h>
#include <stdint.h>

#include <swingcoll.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Modes, equal on all ranks.
 *
 * auto		dense or pack, whichever is faster: by the density of a sample that the ranks agree
 *		on, and the times of calls before with the same count, type and reduction
 * dense	swingcoll_allreduce()
 * pack		an index with one bit for each element is reduced by OR, then the values that it names
 * sketch	integers and sums only: index and a table of sums at once, sized by the union of the
 *		last call with that count and type; what cannot be recovered follows in a second
 *		round. The first call is as pack
 * rows		SWINGCOLL_SPARSE_MODE_ROWS(width): as pack, with one bit for each row of width
 *		elements (1 to 2^28 - 1)
 * coded	bf16 only, for vectors that are not sparse: between nodes, with half of the bits of
 *		each exponent, or dense, whichever the times of calls before show to be faster
 */
enum swingcoll_sparse_mode {
	SWINGCOLL_SPARSE_MODE_AUTO,
	SWINGCOLL_SPARSE_MODE_DENSE,
	SWINGCOLL_SPARSE_MODE_PACK,
	SWINGCOLL_SPARSE_MODE_SKETCH,
	SWINGCOLL_SPARSE_MODE_PACK_ROWS, /* without a width: only in results */
	SWINGCOLL_SPARSE_MODE_CODED,
};
#define SWINGCOLL_SPARSE_MODE_ROWS(width) (SWINGCOLL_SPARSE_MODE_PACK_ROWS | (uint32_t)(width) << 4)

/*
 * As swingcoll_allreduce(), by a mode. swingcoll_isparse_allreduce() returns at once and does the work
 * in a thread of the library; *req must be passed to swingcoll_sparse_wait(), or to
 * swingcoll_sparse_test() until that returns something else than -EINPROGRESS. Both free it and
 * return the error of the call. One call may be under way per communicator; one more is refused with
 * -EBUSY. swingcoll_comm_destroy() waits for it, and frees *req.
 */
struct swingcoll_sparse_req;

int swingcoll_sparse_allreduce(const void *send, void *recv, size_t count,
			       enum swingcoll_dtype dtype, enum swingcoll_redop op, uint32_t mode,
			       struct swingcoll_comm *comm);
int swingcoll_isparse_allreduce(const void *send, void *recv, size_t count,
				enum swingcoll_dtype dtype, enum swingcoll_redop op, uint32_t mode,
				struct swingcoll_comm *comm, struct swingcoll_sparse_req **req);
int swingcoll_sparse_wait(struct swingcoll_sparse_req *req);
int swingcoll_sparse_test(struct swingcoll_sparse_req *req);

/*
 * Switch swingcoll_allreduce() of a communicator over to the mode auto, or back: for programs that
 * call it in many places. Communicators that are created with SWINGCOLL_SPARSE_AUTO begin with it.
 * Called alike by all ranks, between collectives. The rules of this header then hold for it, too:
 * one at a time.
 */
int swingcoll_sparse_auto(struct swingcoll_comm *comm, int on);

/* Rows of a matrix that are not zero: their numbers, ascending, and their elements in that order. */
struct swingcoll_sparse_list {
	size_t n;
	uint64_t *row;
	void *values; /* n * width elements */
};

/*
 * Allreduce of a matrix of rows x width elements, of which each rank has a list of rows (width 1:
 * coordinates and values). *result gets the rows that are in some rank's list, the same on all
 * ranks; a rank without a row of the result counts as having zeros there. Its memory belongs to the
 * caller until swingcoll_sparse_list_free(). -EINVAL: the rows are not ascending, or out of range.
 */
int swingcoll_sparse_allreduce_list(const struct swingcoll_sparse_list *list, size_t rows,
				    size_t width, enum swingcoll_dtype dtype,
				    enum swingcoll_redop op, struct swingcoll_comm *comm,
				    struct swingcoll_sparse_list *result);
void swingcoll_sparse_list_free(struct swingcoll_sparse_list *list);

/* How the last call on a communicator went. From any thread, at any time, as the sums below. */
struct swingcoll_sparse_result {
	uint32_t mode;		/* that ran, enum swingcoll_sparse_mode */
	uint32_t rounds;	/* collectives one after the other */
	uint64_t elements;	/* of the union; of whole rows, with rows; 0 if dense */
	uint64_t reduced_bytes; /* length of all vectors that were reduced */
	uint64_t dense_bytes;	/* of the dense vector */
	uint64_t time_ns;
	uint64_t codec_ns; /* of that, not spent waiting for collectives */
};

/* -ENODATA: there was none. */
int swingcoll_sparse_last(struct swingcoll_comm *comm, struct swingcoll_sparse_result *result);

/*
 * All calls on a communicator that succeeded. dense_bytes - reduced_bytes is what they saved, before
 * the factor of the algorithm (2 (p - 1) / p for a ring). The counters sparse_bytes and
 * sparse_bytes_reduced of swingctl stats are these sums over all programs on the node.
 */
struct swingcoll_sparse_total {
	uint64_t calls;
	uint64_t dense_calls;	/* of these, by the mode dense or by the automatic choice of it */
	uint64_t reduced_bytes; /* length of all vectors that were reduced */
	uint64_t dense_bytes;	/* of the dense vectors */
	uint64_t time_ns;
	uint64_t codec_ns;
};

/* All 0 if there was none. */
int swingcoll_sparse_total(struct swingcoll_comm *comm, struct swingcoll_sparse_total *total);

/*
 * Modes as text: auto, dense, pack, sketch, coded, rows:W (pack-rows:W, too). The parser returns 0 or
 * -EINVAL. The name of rows has no width; NULL for an unknown value.
 */
int swingcoll_sparse_parse(const char *text, uint32_t *mode);
const char *swingcoll_sparse_name(uint32_t mode);

#ifdef __cplusplus
}
#endif

#endif /* SWINGCOLL_SPARSE_H */

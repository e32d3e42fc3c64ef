/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocking calls that have been remembered as swingcoll's: they go there at once, if their buffers are such
 * that nothing has to be copied. Everything else has been decided when the first such call was carried out,
 * in call.c.
 */
#ifndef PMPI_QUICK_H
#define PMPI_QUICK_H

#include <errno.h>

#include "pmpi/pmpi.h"

/* For the MPI function: the value of @call if @good, else, or if requests go first, nothing is tried. */
#define PMPI_QUICK(m, good, call)                                                                  \
	((good) && !__atomic_load_n(&(m)->offloaded->queue, __ATOMIC_ACQUIRE)                      \
		 ? pmpi_tried(m, call)                                                             \
		 : PMPI_UNTRIED)

/* Counts the call if there is no error. -EAGAIN: requests have to be collected first. */
static inline int pmpi_tried(struct pmpi_memo *m, int error)
{
	if (__builtin_expect(error, 0))
		return error == -EAGAIN ? PMPI_UNTRIED : error;
	m->hits++;
	pmpi_carried_out();
	return PMPI_DONE;
}

/* Bytes of so many shares. */
static inline uint64_t pmpi_quick_bytes(const struct pmpi_memo *m, int shares)
{
	return (uint64_t)m->n * m->size * (uint64_t)shares;
}

static inline bool pmpi_apart(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
	uintptr_t p = (uintptr_t)a, q = (uintptr_t)b;

	return p >= q + b_bytes || q >= p + a_bytes;
}

/* Buffers of a reduction, of so many shares that are sent for each that is received. */
static inline bool pmpi_reducible(const struct pmpi_memo *m, const void *send, const void *recv,
				  int shares)
{
	return !(((uintptr_t)send | (uintptr_t)recv) & (m->size - 1u)) &&
	       ((send == recv && shares == 1) ||
		pmpi_apart(send, pmpi_quick_bytes(m, shares), recv, pmpi_quick_bytes(m, 1)));
}

#endif /* PMPI_QUICK_H */

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Buffers. swingcoll wants elements without gaps, and aligned where they are reduced; one rank's
 * data may lie so and another's not, so each rank copies what it must, by itself: packed by MPI
 * where the type has gaps. What crosses between ranks is then the same on all: the elements of the
 * signature one after the other.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pmpi/pmpi.h"

/* Contiguous types of contiguous types: more levels than that are packed. Requests add one. */
#define MAX_LEVELS 5
/* MPI_Pack() counts bytes in an int. A test has less. */
#ifndef PMPI_PACK_BYTES
#define PMPI_PACK_BYTES (1 << 30)
#endif

bool pmpi_signature(MPI_Datatype type, MPI_Count count, uint64_t *bytes)
{
	const struct pmpi_type *simple = pmpi_type_find(type);
	MPI_Count size;

	if (simple)
		size = simple->size;
	else if (type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS ||
		 size < 0)
		return false;
	*bytes = (uint64_t)count * (uint64_t)size;
	return true;
}

/* Is it a new handle? Types of a Fortran precision or range are MPI's own, though without names. */
static bool must_free(int combiner)
{
	return combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL &&
	       combiner != MPI_COMBINER_F90_COMPLEX && combiner != MPI_COMBINER_F90_INTEGER;
}

static bool is_plain(MPI_Datatype type, int levels)
{
	int nints, naddrs, ntypes, combiner, count;
	MPI_Datatype inner;
	MPI_Aint addr;
	bool plain;

	if (pmpi_type_find(type))
		return true;
	if (!levels ||
	    PMPI_Type_get_envelope(type, &nints, &naddrs, &ntypes, &combiner) != MPI_SUCCESS ||
	    combiner != MPI_COMBINER_CONTIGUOUS || nints != 1 || naddrs || ntypes != 1 ||
	    PMPI_Type_get_contents(type, 1, 0, 1, &count, &addr, &inner) != MPI_SUCCESS)
		return false;
	plain = is_plain(inner, levels - 1);
	if (PMPI_Type_get_envelope(inner, &nints, &naddrs, &ntypes, &combiner) == MPI_SUCCESS &&
	    must_free(combiner))
		PMPI_Type_free(&inner);
	return plain;
}

bool pmpi_is_plain(MPI_Datatype type)
{
	return is_plain(type, MAX_LEVELS);
}

/* ---- packing ---- */

/* One element of so many packed bytes. */
static int make_packed(MPI_Count size, MPI_Datatype *packed)
{
	int counts[2] = { (int)(size / PMPI_PACK_BYTES), (int)(size % PMPI_PACK_BYTES) };
	MPI_Aint displs[2] = { 0, (MPI_Aint)counts[0] * PMPI_PACK_BYTES };
	MPI_Datatype types[2] = { MPI_DATATYPE_NULL, MPI_PACKED };
	int ret = PMPI_Type_contiguous(PMPI_PACK_BYTES, MPI_PACKED, &types[0]);

	if (ret != MPI_SUCCESS)
		return ret;
	ret = PMPI_Type_create_struct(2, counts, displs, types, packed);
	PMPI_Type_free(&types[0]);
	return ret == MPI_SUCCESS ? PMPI_Type_commit(packed) : ret;
}

/*
 * Each element has more bytes than MPI_Pack() counts, or begins at MPI_BOTTOM, which MPICH's refuses: MPI moves it
 * by a message to this rank itself.
 */
static int repack_by_messages(bool pack, char *buf, MPI_Count count, MPI_Datatype type,
			      char *packed, MPI_Count size)
{
	MPI_Datatype packed_type;
	MPI_Aint lb, extent;
	int ret = PMPI_Type_get_extent(type, &lb, &extent);

	if (ret == MPI_SUCCESS)
		ret = make_packed(size, &packed_type);
	if (ret != MPI_SUCCESS)
		return ret;
	for (; count && ret == MPI_SUCCESS; count--, buf += extent, packed += size)
		ret = pack ? pmpi_progress_copy(buf, type, packed, packed_type)
			   : pmpi_progress_copy(packed, packed_type, buf, type);
	PMPI_Type_free(&packed_type);
	return ret;
}

/* In pieces. The format is the same for all communicators. */
static int repack_by_mpi(bool pack, void *buf, MPI_Count count, MPI_Datatype type, char *packed)
{
	MPI_Count size, piece;
	MPI_Aint lb, extent;
	int ret = PMPI_Type_size_x(type, &size);

	if (ret == MPI_SUCCESS)
		ret = PMPI_Type_get_extent(type, &lb, &extent);
	if (ret != MPI_SUCCESS || !size || !count)
		return ret;
	if (size > PMPI_PACK_BYTES || buf == MPI_BOTTOM)
		return repack_by_messages(pack, buf, count, type, packed, size);
	piece = PMPI_PACK_BYTES / size;
	for (MPI_Count done = 0; done < count && ret == MPI_SUCCESS; done += piece) {
		int n = (int)(count - done < piece ? count - done : piece), at = 0;
		int bytes = (int)(n * size);
		char *from = (char *)buf + done * extent, *to = packed + done * size;

		if (pack)
			ret = PMPI_Pack(from, n, type, to, bytes, &at, MPI_COMM_SELF);
		else
			ret = PMPI_Unpack(to, bytes, &at, from, n, type, MPI_COMM_SELF);
	}
	return ret;
}

/* Buffers without elements may be NULL. */
static void copy_elements(void *to, const void *from, MPI_Count count, size_t size)
{
	if (count)
		memcpy(to, from, (size_t)count * size);
}

int pmpi_repack(bool pack, void *buf, MPI_Count count, MPI_Datatype type, char *packed)
{
	const struct pmpi_type *simple = pmpi_type_find(type);

	if (!simple)
		return repack_by_mpi(pack, buf, count, type, packed);
	if (count < 0)
		return MPI_ERR_COUNT;
	copy_elements(pack ? packed : buf, pack ? buf : packed, count, simple->size);
	return MPI_SUCCESS;
}

static int extent_of(MPI_Datatype type, MPI_Aint *extent)
{
	const struct pmpi_type *simple = pmpi_type_find(type);
	MPI_Aint lb;

	if (!simple)
		return PMPI_Type_get_extent(type, &lb, extent);
	*extent = (MPI_Aint)simple->size;
	return MPI_SUCCESS;
}

/* Where a rank's share lies in the receive buffer, in elements. */
static MPI_Count share_at(const struct pmpi_call *c, int r)
{
	if (c->displs)
		return c->displs[r];
	return c->large_displs ? c->large_displs[r] : r * c->recv_count;
}

/* Likewise the shares of all ranks, or that of one, at their displacements. */
static int repack_shares(bool pack, const struct pmpi_call *c, int first, int n, char *packed)
{
	MPI_Aint extent;
	int ret = extent_of(c->recv_type, &extent);

	for (int r = first; r < first + n && ret == MPI_SUCCESS; r++)
		ret = pmpi_repack(pack, (char *)c->recv + share_at(c, r) * extent,
				  c->shares ? pmpi_share(c, r) : c->recv_count, c->recv_type,
				  packed + (size_t)r * c->count);
	return ret;
}

/* ---- reductions ---- */

#define NORMALIZE(type)                                                                            \
	do {                                                                                       \
		const type *f = from;                                                              \
		type *t = to;                                                                      \
		for (size_t i = 0; i < n; i++)                                                     \
			t[i] = f[i] != 0;                                                          \
	} while (0)

/* MPI's logical operations yield 0 or 1, whatever the operands. From a copy, so it is aligned. */
static void normalize(void *to, const void *from, size_t n, size_t size)
{
	if (size == 1)
		NORMALIZE(uint8_t);
	else if (size == 2)
		NORMALIZE(uint16_t);
	else if (size == 4)
		NORMALIZE(uint32_t);
	else
		NORMALIZE(uint64_t);
}

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
	uintptr_t p = (uintptr_t)a, q = (uintptr_t)b;

	return a_bytes && b_bytes && p < q + b_bytes && q < p + a_bytes;
}

/*
 * Would the kernel pin the memory as it is? Asked only where a refusal would be the end of the
 * call. Before Linux 5.14 the answer is no.
 */
static bool is_writable(const void *p, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)p & ~(page - 1);

	return !madvise((void *)start, (uintptr_t)p + bytes - start, MADV_POPULATE_WRITE);
}

bool pmpi_must_copy(const struct pmpi_call *c, const void *p, size_t bytes)
{
	return c->keep && bytes && (bytes <= PMPI_SMALL || !is_writable(p, bytes));
}

static bool misaligned(const void *p, size_t size)
{
	return (uintptr_t)p & (size - 1);
}

/* Bytes of a rank's share of an uneven reduce-scatter. */
static size_t share_bytes(const struct pmpi_call *c, int r)
{
	return (size_t)(c->size / (uint64_t)c->recv_count * (uint64_t)pmpi_share(c, r));
}

/* The shares of an uneven reduce-scatter, each in the room of the largest. */
static int stage_uneven_reduction(struct pmpi_stage *st, const struct pmpi_call *c)
{
	const char *from = c->send == MPI_IN_PLACE ? c->recv : c->send;
	size_t n = (size_t)c->comm->size, size = swingcoll_dtype_size(c->dtype);
	char *to;

	if (!c->count)
		return MPI_SUCCESS;
	st->send = st->send_copy = to = calloc(n, c->size);
	st->recv = st->recv_copy = malloc(c->size);
	if (!to || !st->recv)
		return MPI_ERR_NO_MEM;
	for (int r = 0; r < c->comm->size; r++) {
		memcpy(to, from, share_bytes(c, r));
		to += c->size;
		from += share_bytes(c, r);
	}
	if (c->logical)
		normalize(st->send_copy, st->send_copy, n * c->count, size);
	return MPI_SUCCESS;
}

static int stage_reduction(struct pmpi_stage *st, const struct pmpi_call *c)
{
	size_t size = swingcoll_dtype_size(c->dtype), recv_bytes = c->count * size;
	bool in_place = c->send == MPI_IN_PLACE, shares = c->coll == SWINGCOLL_REDUCE_SCATTER;
	size_t send_bytes = shares ? recv_bytes * (size_t)c->comm->size : recv_bytes;

	if (c->shares)
		return stage_uneven_reduction(st, c);
	if (c->coll == SWINGCOLL_REDUCE && c->comm->rank != c->root)
		recv_bytes = 0;
	st->send = in_place ? c->recv : c->send;
	st->recv = c->recv;
	if (send_bytes && (c->logical || misaligned(st->send, size) || (in_place && shares) ||
			   (!in_place && (overlap(st->send, send_bytes, st->recv, recv_bytes) ||
					  pmpi_must_copy(c, st->send, send_bytes))))) {
		st->send_copy = malloc(send_bytes);
		if (!st->send_copy)
			return MPI_ERR_NO_MEM;
		memcpy(st->send_copy, st->send, send_bytes);
		st->send = st->send_copy;
		if (c->logical)
			normalize(st->send_copy, st->send_copy, send_bytes / size, size);
	}
	if (recv_bytes && misaligned(st->recv, size)) {
		st->recv_copy = malloc(recv_bytes);
		if (!st->recv_copy)
			return MPI_ERR_NO_MEM;
		st->recv = st->recv_copy;
	}
	return MPI_SUCCESS;
}

/* ---- movements ---- */

static int stage_broadcast(struct pmpi_stage *st, const struct pmpi_call *c)
{
	bool copy = c->comm->rank == c->root && pmpi_must_copy(c, c->recv, c->count);

	st->send = st->recv = c->recv;
	if (!c->count || (!copy && pmpi_is_plain(c->recv_type)))
		return MPI_SUCCESS;
	st->recv_copy = malloc(c->count);
	if (!st->recv_copy)
		return MPI_ERR_NO_MEM;
	st->send = st->recv = st->recv_copy;
	if (c->comm->rank != c->root)
		return MPI_SUCCESS;
	return pmpi_repack(true, c->recv, c->recv_count, c->recv_type, st->recv_copy);
}

/* Do the shares of so many ranks lie in the receive buffer as swingcoll puts them there? */
static bool shares_are_plain(const struct pmpi_call *c, int n)
{
	for (int r = 0; r < n; r++)
		if (share_at(c, r) != r * c->recv_count)
			return false;
	return pmpi_is_plain(c->recv_type);
}

/* The shares of an uneven allgather, each in the room of the largest; swingcoll gathers them in place. */
static int stage_uneven_shares(struct pmpi_stage *st, const struct pmpi_call *c)
{
	size_t own = (size_t)c->comm->rank * c->count;
	uint64_t bytes;

	if (!c->count)
		return MPI_SUCCESS;
	st->recv = st->recv_copy = malloc((size_t)c->comm->size * c->count);
	if (!st->recv_copy)
		return MPI_ERR_NO_MEM;
	st->send = (char *)st->recv_copy + own;
	if (c->send == MPI_IN_PLACE)
		return repack_shares(true, c, c->comm->rank, 1, st->recv_copy);
	if (c->send_count < 0 || !pmpi_signature(c->send_type, c->send_count, &bytes))
		return MPI_ERR_TYPE;
	if (bytes > c->count)
		return MPI_ERR_TRUNCATE;
	return pmpi_repack(true, (void *)c->send, c->send_count, c->send_type,
			   (char *)st->recv_copy + own);
}

static bool is_apart(const struct pmpi_call *c, size_t send_bytes, size_t recv_bytes)
{
	return c->send == MPI_IN_PLACE || !overlap(c->send, send_bytes, c->recv, recv_bytes);
}

int pmpi_allgather_shares(const struct pmpi_memo *m, const struct pmpi_call *c)
{
	size_t size = m->n / (size_t)c->recv_count, all = (size_t)m->offloaded->size * m->n;
	size_t own = (size_t)m->offloaded->rank * m->n;
	struct swingcoll_comm *swc = m->offloaded->swc;
	int n = m->offloaded->size, rank = m->offloaded->rank, error;
	bool in_place = c->send == MPI_IN_PLACE;
	char *room;

	if (!c->shares && shares_are_plain(c, n) && is_apart(c, m->n, all))
		return swingcoll_allgather(in_place ? (char *)c->recv + own : c->send, c->recv,
					   m->n, SWINGCOLL_U8, swc);
	room = malloc(all);
	if (!room)
		return -EAGAIN;
	copy_elements(room + own,
		      in_place ? (char *)c->recv + share_at(c, rank) * (MPI_Aint)size : c->send,
		      pmpi_share(c, rank), size);
	error = swingcoll_allgather(room + own, room, m->n, SWINGCOLL_U8, swc);
	for (int r = 0; r < n && !error; r++)
		copy_elements((char *)c->recv + share_at(c, r) * (MPI_Aint)size,
			      room + (size_t)r * m->n, pmpi_share(c, r), size);
	free(room);
	return error;
}

static int stage_shares(struct pmpi_stage *st, const struct pmpi_call *c)
{
	size_t n = (size_t)c->comm->size, recv_bytes = n * c->count;
	bool alltoall = c->coll == SWINGCOLL_ALLTOALL, in_place = c->send == MPI_IN_PLACE;
	size_t send_bytes = alltoall ? recv_bytes : c->count;
	size_t own = alltoall ? 0 : (size_t)c->comm->rank * c->count;
	MPI_Count send_count = alltoall ? (MPI_Count)n * c->send_count : c->send_count;
	bool plain;

	if (c->shares)
		return stage_uneven_shares(st, c);
	if (!c->count)
		return MPI_SUCCESS;
	plain = shares_are_plain(c, (int)n);
	st->recv = c->recv;
	if (!plain) {
		st->recv_copy = malloc(recv_bytes);
		if (!st->recv_copy)
			return MPI_ERR_NO_MEM;
		st->recv = st->recv_copy;
	}
	if (in_place) {
		st->send = (char *)st->recv + own;
		if (plain)
			return MPI_SUCCESS;
		return repack_shares(true, c, alltoall ? 0 : c->comm->rank, alltoall ? (int)n : 1,
				     st->recv_copy);
	}
	st->send = c->send;
	plain = pmpi_is_plain(c->send_type);
	if (plain && !overlap(c->send, send_bytes, st->recv, recv_bytes) &&
	    !pmpi_must_copy(c, c->send, send_bytes))
		return MPI_SUCCESS;
	st->send_copy = malloc(send_bytes);
	if (!st->send_copy)
		return MPI_ERR_NO_MEM;
	st->send = st->send_copy;
	if (!plain)
		return pmpi_repack(true, (void *)c->send, send_count, c->send_type, st->send_copy);
	memcpy(st->send_copy, c->send, send_bytes);
	return MPI_SUCCESS;
}

/* ---- prefixes ---- */

static int stage_prefix(struct pmpi_stage *st, const struct pmpi_call *c)
{
	st->send = c->send == MPI_IN_PLACE ? c->recv : c->send;
	if (!c->count)
		return MPI_SUCCESS;
	st->recv = st->recv_copy = malloc((size_t)c->comm->size * c->count);
	if (!st->recv)
		return MPI_ERR_NO_MEM;
	if (!pmpi_must_copy(c, st->send, c->count))
		return MPI_SUCCESS;
	st->send_copy = malloc(c->count);
	if (!st->send_copy)
		return MPI_ERR_NO_MEM;
	st->send = memcpy(st->send_copy, st->send, c->count);
	return MPI_SUCCESS;
}

/* From rank 0 on, as MPI defines it; each step's result takes the place of the next contribution. */
static int reduce_prefix(const struct pmpi_stage *st, const struct pmpi_call *c)
{
	int n = c->comm->rank + pmpi_is_scan(c), ret = MPI_SUCCESS;
	char *acc = st->recv_copy;

	if (!n)
		return MPI_SUCCESS;
	for (int r = 1; r < n && ret == MPI_SUCCESS; r++, acc += c->count)
		ret = PMPI_Reduce_local(acc, acc + c->count, (int)c->recv_count, c->recv_type,
					c->op);
	memcpy(c->recv, acc, c->count);
	return ret;
}

/* ---- roots ---- */

/* Root's side of a gather or scatter, as repack_shares() takes it. */
static struct pmpi_call root_side(const struct pmpi_call *c)
{
	struct pmpi_call side = *c;

	if (c->coll == SWINGCOLL_SCATTER)
		side.recv = (void *)c->send;
	side.recv_count = c->root_count;
	side.recv_type = c->root_type;
	return side;
}

/* Root's buffer of a gather, and, in place, its own share there. */
static int stage_gather_root(struct pmpi_stage *st, const struct pmpi_call *c)
{
	struct pmpi_call side = root_side(c);
	int rank = c->comm->rank;

	st->recv = c->recv;
	if (!pmpi_is_plain(c->root_type)) {
		st->recv_copy = malloc((size_t)c->comm->size * c->count);
		if (!st->recv_copy)
			return MPI_ERR_NO_MEM;
		st->recv = st->recv_copy;
	}
	if (c->send != MPI_IN_PLACE)
		return MPI_SUCCESS;
	st->send = (char *)st->recv + (size_t)rank * c->count;
	return st->recv_copy ? repack_shares(true, &side, rank, 1, st->recv_copy) : MPI_SUCCESS;
}

static int stage_gather(struct pmpi_stage *st, const struct pmpi_call *c)
{
	bool root = c->comm->rank == c->root, plain = pmpi_is_plain(c->recv_type);
	int ret = root && c->count ? stage_gather_root(st, c) : MPI_SUCCESS;

	if (ret != MPI_SUCCESS || !c->count || (root && c->send == MPI_IN_PLACE))
		return ret;
	st->send = c->send;
	if (plain && !pmpi_must_copy(c, c->send, c->count) &&
	    !(root && overlap(c->send, c->count, st->recv, (size_t)c->comm->size * c->count)))
		return MPI_SUCCESS;
	st->send_copy = malloc(c->count);
	if (!st->send_copy)
		return MPI_ERR_NO_MEM;
	st->send = st->send_copy;
	if (!plain)
		return pmpi_repack(true, (void *)c->send, c->recv_count, c->recv_type,
				   st->send_copy);
	memcpy(st->send_copy, c->send, c->count);
	return MPI_SUCCESS;
}

/* Root's buffer of a scatter. */
static int stage_scatter_root(struct pmpi_stage *st, const struct pmpi_call *c)
{
	size_t bytes = (size_t)c->comm->size * c->count;
	bool plain = pmpi_is_plain(c->root_type);
	struct pmpi_call side = root_side(c);

	st->send = c->send;
	if (plain && !pmpi_must_copy(c, c->send, bytes) &&
	    !(c->recv != MPI_IN_PLACE && overlap(c->send, bytes, c->recv, c->count)))
		return MPI_SUCCESS;
	st->send_copy = malloc(bytes);
	if (!st->send_copy)
		return MPI_ERR_NO_MEM;
	st->send = st->send_copy;
	if (!plain)
		return repack_shares(true, &side, 0, c->comm->size, st->send_copy);
	memcpy(st->send_copy, c->send, bytes);
	return MPI_SUCCESS;
}

static int stage_scatter(struct pmpi_stage *st, const struct pmpi_call *c)
{
	bool root = c->comm->rank == c->root;
	int ret = root && c->count ? stage_scatter_root(st, c) : MPI_SUCCESS;

	if (ret != MPI_SUCCESS || !c->count)
		return ret;
	st->recv = c->recv;
	if (root && c->recv == MPI_IN_PLACE) {
		/* It stays where it is. */
		st->recv = (char *)st->send + (size_t)c->comm->rank * c->count;
		return MPI_SUCCESS;
	}
	if (pmpi_is_plain(c->recv_type))
		return MPI_SUCCESS;
	st->recv_copy = malloc(c->count);
	if (!st->recv_copy)
		return MPI_ERR_NO_MEM;
	st->recv = st->recv_copy;
	return MPI_SUCCESS;
}

int pmpi_stage_begin(struct pmpi_stage *st, const struct pmpi_call *c)
{
	*st = (struct pmpi_stage){ 0 };
	switch (c->coll) {
	case SWINGCOLL_ALLREDUCE:
	case SWINGCOLL_REDUCE:
	case SWINGCOLL_REDUCE_SCATTER:
		return stage_reduction(st, c);
	case SWINGCOLL_BROADCAST:
		return stage_broadcast(st, c);
	case SWINGCOLL_ALLGATHER:
		return pmpi_is_prefix(c) ? stage_prefix(st, c) : stage_shares(st, c);
	case SWINGCOLL_ALLTOALL:
		return stage_shares(st, c);
	case SWINGCOLL_GATHER:
		return stage_gather(st, c);
	case SWINGCOLL_SCATTER:
		return stage_scatter(st, c);
	case SWINGCOLL_BARRIER:
		break;
	}
	return MPI_SUCCESS;
}

static int copy_back(const struct pmpi_stage *st, const struct pmpi_call *c)
{
	struct pmpi_call side;

	switch (c->coll) {
	case SWINGCOLL_GATHER:
		side = root_side(c);
		return repack_shares(false, &side, 0, c->comm->size, st->recv_copy);
	case SWINGCOLL_SCATTER:
		return pmpi_repack(false, c->recv, c->recv_count, c->recv_type, st->recv_copy);
	case SWINGCOLL_BROADCAST:
		if (c->comm->rank == c->root)
			return MPI_SUCCESS;
		return pmpi_repack(false, c->recv, c->recv_count, c->recv_type, st->recv_copy);
	case SWINGCOLL_ALLGATHER:
		if (pmpi_is_prefix(c))
			return reduce_prefix(st, c);
		/* fall through */
	case SWINGCOLL_ALLTOALL:
		return repack_shares(false, c, 0, c->comm->size, st->recv_copy);
	default:
		memcpy(c->recv, st->recv_copy,
		       c->shares ? share_bytes(c, c->comm->rank)
				 : c->count * swingcoll_dtype_size(c->dtype));
		return MPI_SUCCESS;
	}
}

int pmpi_stage_end(struct pmpi_stage *st, const struct pmpi_call *c, bool good)
{
	int ret = good && st->recv_copy ? copy_back(st, c) : MPI_SUCCESS;

	free(st->send_copy);
	free(st->recv_copy);
	return ret;
}

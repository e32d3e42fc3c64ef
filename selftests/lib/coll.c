// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <math.h>

#include "coll.h"

bool coll_quiet;

bool coll_reduces(int coll)
{
	return coll == SWINGCOLL_ALLREDUCE || coll == SWINGCOLL_REDUCE_SCATTER ||
	       coll == SWINGCOLL_REDUCE;
}

bool coll_has_root(int coll)
{
	return coll == SWINGCOLL_BROADCAST || coll == SWINGCOLL_REDUCE ||
	       coll == SWINGCOLL_GATHER || coll == SWINGCOLL_SCATTER;
}

bool coll_is_sharded(int coll)
{
	return coll == SWINGCOLL_REDUCE_SCATTER || coll == SWINGCOLL_ALLGATHER ||
	       coll == SWINGCOLL_ALLTOALL || coll == SWINGCOLL_GATHER || coll == SWINGCOLL_SCATTER;
}

struct coll_case coll_case_nth(int coll, const size_t *counts, unsigned int k, int nranks,
			       int share)
{
	struct coll_case c = { .coll = coll,
			       .count = counts[k / 2],
			       .in_place = k & 1,
			       .dtype = k & 2 ? SWINGCOLL_F32 : SWINGCOLL_I64 };

	if (coll == SWINGCOLL_BARRIER)
		c.count = 0;
	if (coll_is_sharded(coll))
		c.count = (c.count + share - 1) / share;
	if (coll_has_root(coll))
		c.root = k % nranks;
	return c;
}

size_t coll_send_elems(const struct coll_case *c, int nranks)
{
	bool all = c->coll == SWINGCOLL_REDUCE_SCATTER || c->coll == SWINGCOLL_ALLTOALL ||
		   c->coll == SWINGCOLL_SCATTER;

	return all ? c->count * nranks : c->count;
}

size_t coll_recv_elems(const struct coll_case *c, int nranks)
{
	bool all = c->coll == SWINGCOLL_ALLGATHER || c->coll == SWINGCOLL_ALLTOALL ||
		   c->coll == SWINGCOLL_GATHER;

	return all ? c->count * nranks : c->count;
}

/*
 * Values repeat with this period of an element's phase, which is a function of its index and the salt: so the reference
 * of a reduction is computed once per phase, and not once per element. Within a block they repeat with the
 * index, too.
 */
#define PERIOD (2 * 11)
#define BLOCK 512

static unsigned int phase(size_t i, uint64_t salt)
{
	return ((i + salt) * 7 + i / BLOCK) % PERIOD;
}

/* Small integers: sums and products of those of nine ranks are exact in every type that can represent them. */
static long value(const struct coll_case *c, int rank, unsigned int phase)
{
	unsigned int x = phase + rank * 3;
	bool is_signed = c->dtype >= SWINGCOLL_F16 || !(c->dtype & 1);

	if (c->op == SWINGCOLL_PROD)
		return 1 + x % 2;
	return is_signed ? (long)(x % 11) - 5 : (long)(x % 11);
}

static void put(void *at, int dtype, size_t i, double f, uint64_t u)
{
	switch (dtype) {
	case SWINGCOLL_I8:
	case SWINGCOLL_U8:
		((uint8_t *)at)[i] = u;
		break;
	case SWINGCOLL_I16:
	case SWINGCOLL_U16:
		((uint16_t *)at)[i] = u;
		break;
	case SWINGCOLL_I32:
	case SWINGCOLL_U32:
		((uint32_t *)at)[i] = u;
		break;
	case SWINGCOLL_I64:
	case SWINGCOLL_U64:
		((uint64_t *)at)[i] = u;
		break;
	case SWINGCOLL_F16:
		((_Float16 *)at)[i] = f;
		break;
	case SWINGCOLL_BF16: {
		float s = f;
		uint32_t bits;

		memcpy(&bits, &s, 4);
		((uint16_t *)at)[i] = bits >> 16; /* exact: the values are small */
		break;
	}
	case SWINGCOLL_F32:
		((float *)at)[i] = f;
		break;
	default:
		((double *)at)[i] = f;
	}
}

static double get_float(const void *at, int dtype, size_t i)
{
	uint32_t bits;
	float s;

	switch (dtype) {
	case SWINGCOLL_F16:
		return ((const _Float16 *)at)[i];
	case SWINGCOLL_BF16:
		bits = (uint32_t)((const uint16_t *)at)[i] << 16;
		memcpy(&s, &bits, 4);
		return s;
	case SWINGCOLL_F32:
		return ((const float *)at)[i];
	default:
		return ((const double *)at)[i];
	}
}

/* Sign- or zero-extended. */
static int64_t get_int(const void *at, int dtype, size_t i)
{
	switch (dtype) {
	case SWINGCOLL_I8:
		return ((const int8_t *)at)[i];
	case SWINGCOLL_U8:
		return ((const uint8_t *)at)[i];
	case SWINGCOLL_I16:
		return ((const int16_t *)at)[i];
	case SWINGCOLL_U16:
		return ((const uint16_t *)at)[i];
	case SWINGCOLL_I32:
		return ((const int32_t *)at)[i];
	case SWINGCOLL_U32:
		return ((const uint32_t *)at)[i];
	default:
		return ((const int64_t *)at)[i];
	}
}

/* The reference of a collective that moves data: element i of the receive buffer of a rank. */
static int64_t moved(const struct coll_case *c, int rank, size_t i, uint64_t salt)
{
	if (c->coll == SWINGCOLL_BROADCAST)
		return value(c, c->root, phase(i, salt));
	if (c->coll == SWINGCOLL_SCATTER)
		return value(c, c->root, phase(rank * c->count + i, salt));
	if (c->coll == SWINGCOLL_ALLGATHER || c->coll == SWINGCOLL_GATHER)
		return value(c, i / c->count, phase(i % c->count, salt));
	return value(c, i / c->count, phase(rank * c->count + i % c->count, salt));
}

/* The reference of a reduction, for n ranks. */
static int64_t reduced(const struct coll_case *c, int n, unsigned int phase)
{
	int64_t acc = value(c, 0, phase), v;

	for (int r = 1; r < n; r++) {
		v = value(c, r, phase);
		switch (c->op) {
		case SWINGCOLL_SUM:
		case SWINGCOLL_AVG:
			acc += v;
			break;
		case SWINGCOLL_PROD:
			acc *= v;
			break;
		case SWINGCOLL_MIN:
			acc = v < acc ? v : acc;
			break;
		case SWINGCOLL_MAX:
			acc = v > acc ? v : acc;
			break;
		case SWINGCOLL_BAND:
			acc &= v;
			break;
		case SWINGCOLL_BOR:
			acc |= v;
			break;
		case SWINGCOLL_BXOR:
			acc ^= v;
			break;
		}
	}
	return acc;
}

/* A run of elements, from the first one on, and what each phase stands for in it. */
struct run {
	int dtype;
	size_t first, n;
	uint64_t salt;
	int64_t of_phase[PERIOD];
};

/* Of what a rank sends, or, if nranks is not 0, of the reduction for so many. */
static struct run run_of(const struct coll_case *c, int rank, int nranks, size_t first, size_t n,
			 uint64_t salt)
{
	struct run r = { .dtype = c->dtype, .first = first, .n = n, .salt = salt };

	for (size_t i = 0; i < n && i < PERIOD; i++) {
		unsigned int p = n < PERIOD ? phase(first + i, salt) : i;

		r.of_phase[p] = nranks ? reduced(c, nranks, p) : value(c, rank, p);
		if (nranks && c->op == SWINGCOLL_AVG)
			r.of_phase[p] /= nranks;
	}
	return r;
}

/* Elements from the i-th one of a run on, up to the end of their block or of the run. Returns how many. */
static size_t put_block(const struct run *r, size_t i, char *at)
{
	size_t size = swingcoll_dtype_size(r->dtype), n = BLOCK - (r->first + i) % BLOCK, done;

	if (n > r->n - i)
		n = r->n - i;
	for (done = 0; done < n && done < PERIOD; done++) {
		int64_t v = r->of_phase[phase(r->first + i + done, r->salt)];

		put(at, r->dtype, done, v, v);
	}
	for (; done < n; done *= 2)
		memcpy(at + done * size, at, (done < n - done ? done : n - done) * size);
	return n;
}

static bool has_run(const struct run *r, const char *at)
{
	size_t size = swingcoll_dtype_size(r->dtype), n;
	char want[BLOCK * sizeof(uint64_t)];

	for (size_t i = 0; i < r->n; i += n) {
		n = put_block(r, i, want);
		if (memcmp(at + i * size, want, n * size))
			return false;
	}
	return true;
}

void coll_fill(const struct coll_case *c, int nranks, int rank, void *send, uint64_t salt)
{
	struct run r = run_of(c, rank, 0, 0, coll_send_elems(c, nranks), salt);
	size_t size = swingcoll_dtype_size(c->dtype);

	for (size_t i = 0; i < r.n;)
		i += put_block(&r, i, (char *)send + i * size);
}

/*
 * Has a rank received the very bytes of the reference? Nearly always, and it takes little time to find out.
 * Not for averages of floats, which are not exact.
 */
static bool has_bytes(const struct coll_case *c, int nranks, int rank, const char *recv,
		      uint64_t salt)
{
	bool all_to_all = c->coll == SWINGCOLL_ALLTOALL, from_root = coll_has_root(c->coll);
	size_t n = coll_recv_elems(c, nranks), shard = c->count * swingcoll_dtype_size(c->dtype);
	struct run r;

	if (c->op == SWINGCOLL_AVG && coll_reduces(c->coll) && c->dtype >= SWINGCOLL_F16)
		return false;
	if (coll_reduces(c->coll)) {
		bool part = c->coll == SWINGCOLL_REDUCE_SCATTER;

		r = run_of(c, 0, nranks, part ? rank * c->count : 0, n, salt);
		return has_run(&r, recv);
	}
	if (from_root && c->coll != SWINGCOLL_GATHER) {
		bool part = c->coll == SWINGCOLL_SCATTER;

		r = run_of(c, c->root, 0, part ? rank * c->count : 0, n, salt);
		return has_run(&r, recv);
	}
	for (int from = 0; from < nranks && n; from++) {
		r = run_of(c, from, 0, all_to_all ? rank * c->count : 0, c->count, salt);
		if (!has_run(&r, recv + from * shard))
			return false;
	}
	return true;
}

int coll_check(const struct coll_case *c, int nranks, int rank, const void *recv, uint64_t salt)
{
	static const double slack[] = { [SWINGCOLL_F16] = 1e-3,
					[SWINGCOLL_BF16] = 8e-3,
					[SWINGCOLL_F32] = 2e-7,
					[SWINGCOLL_F64] = 4e-16 };
	size_t n = coll_recv_elems(c, nranks);
	size_t first = c->coll == SWINGCOLL_REDUCE_SCATTER ? rank * c->count : 0;
	bool avg = c->op == SWINGCOLL_AVG && coll_reduces(c->coll);
	int64_t sum[PERIOD];
	char wrapped[8];

	if ((c->coll == SWINGCOLL_REDUCE || c->coll == SWINGCOLL_GATHER) && rank != c->root)
		return 0;
	if (has_bytes(c, nranks, rank, recv, salt))
		return 0;
	for (int p = 0; p < PERIOD; p++)
		sum[p] = coll_reduces(c->coll) ? reduced(c, nranks, p) : 0;
	for (size_t i = 0; i < n; i++) {
		int64_t want = coll_reduces(c->coll) ? sum[phase(first + i, salt)]
						     : moved(c, rank, i, salt);
		bool good;

		if (c->dtype >= SWINGCOLL_F16) {
			double got = get_float(recv, c->dtype, i);
			double exact = avg ? (double)want / nranks : (double)want;

			good = avg ? fabs(got - exact) <= fabs(exact) * slack[c->dtype]
				   : got == exact;
		} else {
			if (avg)
				want /= nranks;
			put(wrapped, c->dtype, 0, 0, want); /* wraps around as the type does */
			good = get_int(recv, c->dtype, i) == get_int(wrapped, c->dtype, 0);
		}
		if (!good) {
			if (c->dtype >= SWINGCOLL_F16)
				ksft_print_msg("%s: rank %d of %d: element %zu is %g, not %g\n",
					       coll_describe(c), rank, nranks, i,
					       get_float(recv, c->dtype, i),
					       avg ? (double)want / nranks : (double)want);
			else
				ksft_print_msg("%s: rank %d of %d: element %zu is %lld, not %lld\n",
					       coll_describe(c), rank, nranks, i,
					       (long long)get_int(recv, c->dtype, i),
					       (long long)want);
			return -EBADMSG;
		}
	}
	return 0;
}

const char *coll_describe(const struct coll_case *c)
{
	static __thread char text[128];

	snprintf(text, sizeof(text), "%s(%zu %s, %s, root %d, %s)", swingcoll_coll_name(c->coll),
		 c->count, swingcoll_dtype_name(c->dtype), swingcoll_redop_name(c->op), c->root,
		 c->in_place ? "in place" : "out of place");
	return text;
}

int coll_call(const struct coll_case *c, const void *send, void *recv, struct swingcoll_comm *comm)
{
	switch (c->coll) {
	case SWINGCOLL_ALLREDUCE:
		return swingcoll_allreduce(send, recv, c->count, c->dtype, c->op, comm);
	case SWINGCOLL_REDUCE_SCATTER:
		return swingcoll_reduce_scatter(send, recv, c->count, c->dtype, c->op, comm);
	case SWINGCOLL_ALLGATHER:
		return swingcoll_allgather(send, recv, c->count, c->dtype, comm);
	case SWINGCOLL_BROADCAST:
		return swingcoll_broadcast(send, recv, c->count, c->dtype, c->root, comm);
	case SWINGCOLL_REDUCE:
		return swingcoll_reduce(send, recv, c->count, c->dtype, c->op, c->root, comm);
	case SWINGCOLL_ALLTOALL:
		return swingcoll_alltoall(send, recv, c->count, c->dtype, comm);
	case SWINGCOLL_GATHER:
		return swingcoll_gather(send, recv, c->count, c->dtype, c->root, comm);
	case SWINGCOLL_SCATTER:
		return swingcoll_scatter(send, recv, c->count, c->dtype, c->root, comm);
	default:
		return swingcoll_barrier(comm);
	}
}

int coll_icall(const struct coll_case *c, const void *send, void *recv, struct swingcoll_comm *comm,
	       struct swingcoll_req **req)
{
	switch (c->coll) {
	case SWINGCOLL_ALLREDUCE:
		return swingcoll_iallreduce(send, recv, c->count, c->dtype, c->op, comm, req);
	case SWINGCOLL_REDUCE_SCATTER:
		return swingcoll_ireduce_scatter(send, recv, c->count, c->dtype, c->op, comm, req);
	case SWINGCOLL_ALLGATHER:
		return swingcoll_iallgather(send, recv, c->count, c->dtype, comm, req);
	case SWINGCOLL_BROADCAST:
		return swingcoll_ibroadcast(send, recv, c->count, c->dtype, c->root, comm, req);
	case SWINGCOLL_REDUCE:
		return swingcoll_ireduce(send, recv, c->count, c->dtype, c->op, c->root, comm, req);
	case SWINGCOLL_ALLTOALL:
		return swingcoll_ialltoall(send, recv, c->count, c->dtype, comm, req);
	case SWINGCOLL_GATHER:
		return swingcoll_igather(send, recv, c->count, c->dtype, c->root, comm, req);
	case SWINGCOLL_SCATTER:
		return swingcoll_iscatter(send, recv, c->count, c->dtype, c->root, comm, req);
	default:
		return swingcoll_ibarrier(comm, req);
	}
}

size_t coll_bytes(const struct coll_case *c, int nranks)
{
	return (coll_send_elems(c, nranks) + coll_recv_elems(c, nranks)) *
		       swingcoll_dtype_size(c->dtype) +
	       128;
}

void coll_buffers(const struct coll_case *c, int nranks, int rank, void *mem, void **send,
		  void **recv)
{
	size_t s = swingcoll_dtype_size(c->dtype), own = (size_t)rank * c->count * s;
	char *at = mem;

	*send = at;
	if (!c->in_place) {
		/* With an element between them, so that the two are aligned differently. */
		*recv = at + (coll_send_elems(c, nranks) + 1) * s;
		return;
	}
	*recv = at;
	if (c->coll == SWINGCOLL_REDUCE_SCATTER || c->coll == SWINGCOLL_SCATTER)
		*recv = at + own;
	if (c->coll == SWINGCOLL_ALLGATHER || c->coll == SWINGCOLL_GATHER)
		*send = at + own;
}

int coll_run(const struct coll_case *c, void *mem, struct swingcoll_comm *comm, uint64_t salt)
{
	int n = swingcoll_comm_size(comm), rank = swingcoll_comm_rank(comm), ret;
	void *send, *recv;

	coll_buffers(c, n, rank, mem, &send, &recv);
	if (!c->in_place && !coll_is_sharded(c->coll))
		memset(recv, 0x5a, coll_recv_elems(c, n) * swingcoll_dtype_size(c->dtype));
	coll_fill(c, n, rank, send, salt);
	ret = coll_call(c, send, recv, comm);
	if (ret) {
		if (ret != -EOPNOTSUPP && !coll_quiet)
			ksft_print_msg("%s: rank %d of %d: %s\n", coll_describe(c), rank, n,
				       swingcoll_strerror(ret));
		return ret;
	}
	return coll_check(c, n, rank, recv, salt);
}

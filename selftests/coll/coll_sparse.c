// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sparse allreduces give the bytes of the dense one: every mode and way of calling, by every algorithm, for every kind
 * of overlap, with 2 to 9 ranks, in place and out of place; all types and reductions; what counts as zero; the
 * automatic choice; calls that are refused. SWC_TEST_SHORT=1: all pairs of these instead of all combinations.
 */
#include <errno.h>

#include <swingcoll_sparse.h>

#include "../../tools/common/sparse_input.h"
#include "coll.h"
#include "pairs.h"

#define MAX_RANKS 9
#define MAX_ALGOS 32
#define GROUP_MS 600000 /* all algorithms with one number of ranks */
#define WIDTH 16

static struct swingcoll_id id;
static uint32_t nranks;
static unsigned int nalgos; /* the automatic choice is number 0 */
static struct pairs pairs;

struct outcome {
	struct pairs pairs;
	unsigned int total;
};

/* Ways of calling: modes, the call in a thread, and lists of rows and of elements. */
enum way {
	WAY_PACK,
	WAY_SKETCH,
	WAY_ROWS,
	WAY_AUTO,
	WAY_THREAD,
	WAY_LIST_ROWS,
	WAY_LIST,
	NWAYS,
};

static const uint32_t mode_of[NWAYS] = {
	[WAY_PACK] = SWINGCOLL_SPARSE_MODE_PACK,	[WAY_SKETCH] = SWINGCOLL_SPARSE_MODE_SKETCH,
	[WAY_ROWS] = SWINGCOLL_SPARSE_MODE_ROWS(WIDTH), [WAY_AUTO] = SWINGCOLL_SPARSE_MODE_AUTO,
	[WAY_THREAD] = SWINGCOLL_SPARSE_MODE_PACK,
};

/* Density, and where the elements are. The last three are unions of nothing, of everything, and of one rank. */
static const struct sparse_input inputs[] = {
	{ .overlap = SPARSE_INDEPENDENT, .density = 0.05 },
	{ .overlap = SPARSE_IDENTICAL, .density = 0.3 },
	{ .overlap = SPARSE_DISJOINT, .density = 0.1 },
	{ .overlap = SPARSE_ROWS, .density = 0.1, .width = WIDTH },
	{ .overlap = SPARSE_MIXED, .density = 0.2, .share = 0.5 },
	{ .overlap = SPARSE_INDEPENDENT, .density = 0 },
	{ .overlap = SPARSE_INDEPENDENT, .density = 1 },
	{ .overlap = SPARSE_INDEPENDENT, .density = 0.02 },
};
#define NINPUTS ARRAY_SIZE(inputs)
#define ONE_RANK (NINPUTS - 1)

static const size_t counts[] = { 4099, 61, 20000, 1, 640, 70001 };

static const char *algo_name(unsigned int a)
{
	return a ? swingcoll_algo_name(a - 1) : NULL;
}

/* A small whole number of any type, whose sums and products are exact in every order, and not zero. */
static void put(void *v, size_t i, int dtype, uint64_t random)
{
	static const uint16_t f16[] = { 0x3c00, 0xbc00, 0x4000, 0xc000 };  /* 1 -1 2 -2 */
	static const uint16_t bf16[] = { 0x3f80, 0xbf80, 0x4000, 0xc000 }; /* 1 -1 2 -2 */
	static const int small[] = { 1, -1, 2, -2 };
	size_t size = swingcoll_dtype_size(dtype);
	uint64_t bits = random | 1;
	unsigned int k = random >> 60 & 3;
	double d = small[k];
	float f = small[k];

	switch (dtype) {
	case SWINGCOLL_F16:
		memcpy((char *)v + i * size, &f16[k], size);
		break;
	case SWINGCOLL_BF16:
		memcpy((char *)v + i * size, &bf16[k], size);
		break;
	case SWINGCOLL_F32:
		memcpy((char *)v + i * size, &f, size);
		break;
	case SWINGCOLL_F64:
		memcpy((char *)v + i * size, &d, size);
		break;
	default: /* any bits of an integer */
		memcpy((char *)v + i * size, &bits, size);
	}
}

static void fill(const struct sparse_input *base, uint64_t seed, uint32_t rank, void *v,
		 size_t count, int dtype)
{
	struct sparse_input input = *base, *in = &input;

	in->seed = seed;
	memset(v, 0, count * swingcoll_dtype_size(dtype));
	if (base - inputs == ONE_RANK && rank)
		return;
	for (size_t i = 0; i < count; i++)
		if (sparse_is_set(in, rank, i))
			put(v, i, dtype, sparse_hash(in, 3, rank, i));
}

/* By lists: of the rows of v that are not zero, into all of out. */
static int call_list(const char *v, char *out, size_t count, size_t width, int dtype, int op,
		     struct swingcoll_comm *comm)
{
	size_t bytes = width * swingcoll_dtype_size(dtype), rows = count / width, n = 0;
	struct swingcoll_sparse_list list = { 0 }, result;
	char *none = calloc(1, bytes);
	uint64_t last = 0;
	int ret;

	list.row = malloc(rows * 8 + 8);
	list.values = malloc(rows * bytes + 8);
	for (size_t r = 0; r < rows; r++)
		if (memcmp(v + r * bytes, none, bytes)) {
			list.row[n] = r;
			memcpy((char *)list.values + n++ * bytes, v + r * bytes, bytes);
		}
	list.n = n;
	ret = swingcoll_sparse_allreduce_list(&list, rows, width, dtype, op, comm, &result);
	memset(out, 0, rows * bytes);
	for (size_t k = 0; !ret && k < result.n; k++) {
		if (result.row[k] >= rows || (k && result.row[k] <= last))
			ret = -EBADMSG;
		last = result.row[k];
		if (!ret)
			memcpy(out + last * bytes, (char *)result.values + k * bytes, bytes);
	}
	free(none);
	swingcoll_sparse_list_free(&list);
	swingcoll_sparse_list_free(&result);
	return ret;
}

static int call(enum way way, void *send, void *recv, size_t count, int dtype, int op,
		struct swingcoll_comm *comm)
{
	struct swingcoll_sparse_req *req;
	int ret;

	if (way == WAY_LIST_ROWS || way == WAY_LIST)
		return call_list(send, recv, count, way == WAY_LIST ? 1 : WIDTH, dtype, op, comm);
	if (way != WAY_THREAD)
		return swingcoll_sparse_allreduce(send, recv, count, dtype, op, mode_of[way], comm);
	ret = swingcoll_isparse_allreduce(send, recv, count, dtype, op, mode_of[way], comm, &req);
	return ret ? ret : swingcoll_sparse_wait(req);
}

/* One call, and the dense one, in the same process: the same bytes. The second call of a sketch has a table. */
static int one(enum way way, const struct sparse_input *base, size_t count, int dtype, int op,
	       bool in_place, uint32_t rank, struct swingcoll_comm *comm)
{
	struct swingcoll_sparse_result result;
	size_t bytes;
	char *send, *recv, *want;

	if (way == WAY_LIST_ROWS)
		count = count / WIDTH * WIDTH;
	bytes = count * swingcoll_dtype_size(dtype);
	send = malloc(bytes + 8);
	recv = malloc(bytes + 8);
	want = malloc(bytes + 8);
	for (int seed = 1; seed <= (way == WAY_SKETCH ? 2 : 1); seed++) {
		fill(base, seed, rank, send, count, dtype);
		CHECK_EQ(swingcoll_allreduce(send, want, count, dtype, op, comm), 0);
		memset(recv, 0xa5, bytes);
		if (in_place)
			memcpy(recv, send, bytes);
		CHECK_EQ(call(way, in_place ? recv : send, recv, count, dtype, op, comm), 0);
		if (memcmp(recv, want, bytes)) {
			ksft_print_msg(
				"rank %u of %u: way %d, input %d, count %zu, %s, %s, %s: not as dense\n",
				rank, nranks, way, (int)(base - inputs), count,
				swingcoll_dtype_name(dtype), swingcoll_redop_name(op),
				in_place ? "in place" : "out of place");
			return 1;
		}
		CHECK_EQ(swingcoll_sparse_last(comm, &result), 0);
		CHECK_EQ(result.dense_bytes, bytes);
		CHECK(result.codec_ns <= result.time_ns);
	}
	free(send);
	free(recv);
	free(want);
	return 0;
}

static int one_algo(unsigned int a, uint32_t rank, struct swingcoll_comm *comm, unsigned int *done)
{
	static const int dtypes[] = { SWINGCOLL_I32,  SWINGCOLL_F32, SWINGCOLL_I64, SWINGCOLL_U16,
				      SWINGCOLL_BF16, SWINGCOLL_I8,  SWINGCOLL_F64, SWINGCOLL_F16 };
	static const int ops[] = { SWINGCOLL_SUM, SWINGCOLL_MAX, SWINGCOLL_MIN, SWINGCOLL_AVG,
				   SWINGCOLL_PROD };

	/* All change with every step: 7 ways and 8 inputs have no common divisor. */
	for (unsigned int i = 0; i < NWAYS * NINPUTS; i++) {
		unsigned int way = i % NWAYS, input = i % NINPUTS;
		const unsigned int level[] = { a, nranks, way, input };
		int dtype = dtypes[(i / 3 + a) % ARRAY_SIZE(dtypes)];
		int op = ops[(i / 5 + a) % ARRAY_SIZE(ops)];

		if (!pairs_due(&pairs, level))
			continue;
		if (way == WAY_SKETCH) {
			op = SWINGCOLL_SUM;
			dtype = dtype > SWINGCOLL_U64 ? SWINGCOLL_I32 : dtype;
		}
		if (one(way, &inputs[input], counts[(i + a) % ARRAY_SIZE(counts)], dtype, op, i & 1,
			rank, comm))
			return 1;
		pairs_cover(&pairs, level);
		(*done)++;
	}
	return 0;
}

static int all_algos(uint32_t rank, void *arg)
{
	struct outcome *out = arg;
	unsigned int done = 0;

	for (unsigned int a = 0; a < nalgos; a++) {
		/* Sums are exact in every order, so algorithms that change it are tested, too. */
		struct swingcoll_comm_opts opts = { .algo = algo_name(a),
						    .flags = SWINGCOLL_ALLOW_REORDER,
						    .timeout_ms = TESTLIB_EVENT_MS,
						    .slot_max = a ? -1 : 0 };
		struct swingcoll_id own = id;
		struct swingcoll_comm *comm;
		uint64_t probe = 0;
		int ret;

		own.bytes[0] += a;
		CHECK_EQ(swingcoll_comm_create(&comm, &own, nranks, rank, &opts), 0);
		/* Some have no allreduce, or not for every number of ranks. */
		ret = swingcoll_allreduce(&probe, &probe, 1, SWINGCOLL_U64, SWINGCOLL_BOR, comm);
		CHECK(!ret || ret == -EOPNOTSUPP);
		if (!ret && one_algo(a, rank, comm, &done)) {
			ksft_print_msg("rank %u of %u: %s\n", rank, nranks, a ? opts.algo : "auto");
			return 1;
		}
		CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	}
	if (!rank) {
		out->total += done;
		out->pairs = pairs;
	}
	return 0;
}

/* ------------------------------------------------------------------ what counts as zero */

/* Bits of f32: -0.0 on both ranks and on one, NaN, infinities, subnormals, sums that cancel. */
static int zeros(uint32_t rank, void *arg)
{
	static const uint32_t sent[2][12] = {
		{ 0x80000000, 0x80000000, 0x7fc00000, 0x7f800000, 0x7f800000, 1, 0x3f800000, 0, 0,
		  0xff800000, 0x80000001, 0x3f800000 },
		{ 0x80000000, 0, 0, 0, 0xff800000, 1, 0xbf800000, 0, 0x3f800000, 0xff800000, 1, 0 },
	};
	struct swingcoll_sparse_result result;
	struct swingcoll_comm *comm;
	uint32_t v[1200] = { 0 }, want[1200], got[1200];

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, 2, rank, NULL), 0);
	for (int i = 0; i < 12; i++)
		v[i * 97 + 3] = sent[rank][i];
	for (int op = SWINGCOLL_SUM; op <= SWINGCOLL_AVG; op++) {
		CHECK_EQ(swingcoll_allreduce(v, want, 1200, SWINGCOLL_F32, op, comm), 0);
		CHECK_EQ(swingcoll_sparse_allreduce(v, got, 1200, SWINGCOLL_F32, op,
						    SWINGCOLL_SPARSE_MODE_PACK, comm),
			 0);
		CHECK(!memcmp(got, want, sizeof(got)));
		CHECK_EQ(swingcoll_sparse_last(comm, &result), 0);
		/* All but the one that both ranks have as +0. */
		CHECK_EQ(result.elements, 11);
		CHECK_EQ(result.rounds, 2);
	}
	CHECK_EQ(got[3], 0x80000000);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* ------------------------------------------------------------------ the automatic choice */

/*
 * After its trials the choice is the same on all ranks in every call; vectors of which nothing is zero are always
 * dense; results stay right while the density changes.
 */
static int choice(uint32_t rank, void *arg)
{
	static const double density[] = { 0.001, 0.001, 1, 0.3, 0.001 };
	struct sparse_input in = { .overlap = SPARSE_INDEPENDENT };
	struct swingcoll_sparse_result result;
	struct swingcoll_comm *comm;
	size_t count = 1 << 18;
	int32_t *send = malloc(count * 4), *want = malloc(count * 4), *got = malloc(count * 4);
	int32_t same[2];

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, 3, rank, NULL), 0);
	for (unsigned int d = 0; d < ARRAY_SIZE(density); d++) {
		in.density = density[d];
		memset(send, 0, count * 4);
		for (size_t i = 0; i < count; i++)
			if (sparse_is_set(&in, rank, i))
				send[i] = sparse_int(&in, rank, i);
		CHECK_EQ(swingcoll_allreduce(send, want, count, SWINGCOLL_I32, SWINGCOLL_SUM, comm),
			 0);
		for (int i = 0; i < 10; i++) {
			/* By itself, and by the ordinary call. */
			CHECK_EQ(swingcoll_sparse_auto(comm, i & 1), 0);
			memset(got, 0xa5, count * 4);
			if (i & 1)
				CHECK_EQ(swingcoll_allreduce(send, got, count, SWINGCOLL_I32,
							     SWINGCOLL_SUM, comm),
					 0);
			else
				CHECK_EQ(swingcoll_sparse_allreduce(
						 send, got, count, SWINGCOLL_I32, SWINGCOLL_SUM,
						 SWINGCOLL_SPARSE_MODE_AUTO, comm),
					 0);
			CHECK(!memcmp(got, want, count * 4));
			CHECK_EQ(swingcoll_sparse_last(comm, &result), 0);
			CHECK_EQ(result.dense_bytes, count * 4);
			CHECK_EQ(swingcoll_sparse_auto(comm, 0), 0);
			same[0] = result.mode;
			same[1] = -same[0];
			CHECK_EQ(swingcoll_allreduce(same, same, 2, SWINGCOLL_I32, SWINGCOLL_MAX,
						     comm),
				 0);
			CHECK(same[0] == -same[1]);
			CHECK(density[d] < 1 || result.mode == SWINGCOLL_SPARSE_MODE_DENSE);
		}
	}
	free(send);
	free(want);
	free(got);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/*
 * A communicator with the flag: the program calls swingcoll_allreduce() only. Small vectors, non-blocking calls and
 * those after it is switched off are dense; ranks of which only one has the flag get an error.
 */
static int flag(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .flags = SWINGCOLL_SPARSE_AUTO };
	struct swingcoll_sparse_result result;
	struct swingcoll_req *req;
	struct swingcoll_comm *comm;
	struct swingcoll_id other = id;
	size_t count = 1 << 17;
	int64_t *v = calloc(count, 8);
	uint64_t before[SWC_STAT_NR], after[SWC_STAT_NR], bytes, reduced;
	int packed = 0, want;

	(void)arg;
	CHECK_EQ(testlib_stats(before, SWC_STAT_NR), 0);
	CHECK_EQ(swingcoll_comm_create(&comm, &id, 2, rank, &opts), 0);
	CHECK_EQ(swingcoll_allreduce(v, v, 100, SWINGCOLL_I64, SWINGCOLL_SUM, comm), 0);
	CHECK_EQ(swingcoll_sparse_last(comm, &result), -ENODATA);
	for (int i = 0; i < 9; i++) {
		memset(v, 0, count * 8);
		v[1000 * i + rank] = i + 1;
		v[5] = -1;
		CHECK_EQ(swingcoll_allreduce(v, v, count, SWINGCOLL_I64, SWINGCOLL_SUM, comm), 0);
		for (size_t k = 0; k < count; k++) {
			want = k / 1000 == (size_t)i && k % 1000 < 2 ? i + 1 : 0;
			CHECK(v[k] == (k == 5 ? -2 : want));
		}
		CHECK_EQ(swingcoll_sparse_last(comm, &result), 0);
		packed += result.mode == SWINGCOLL_SPARSE_MODE_PACK;
		if (packed && result.mode == SWINGCOLL_SPARSE_MODE_PACK)
			CHECK_EQ(result.elements, 3);
	}
	/* It has tried both. */
	CHECK(packed >= 3);
	/* For all programs on this node: of the two ranks, this one is done. */
	CHECK_EQ(testlib_stats(after, SWC_STAT_NR), 0);
	bytes = after[SWC_STAT_SPARSE_BYTES] - before[SWC_STAT_SPARSE_BYTES];
	reduced = after[SWC_STAT_SPARSE_BYTES_REDUCED] - before[SWC_STAT_SPARSE_BYTES_REDUCED];
	CHECK(bytes >= 9 * count * 8);
	CHECK(reduced < bytes);
	CHECK_EQ(swingcoll_iallreduce(v, v, count, SWINGCOLL_I64, SWINGCOLL_SUM, comm, &req), 0);
	CHECK_EQ(swingcoll_wait(req, NULL), 0);
	CHECK_EQ(v[5], -4);
	CHECK_EQ(swingcoll_sparse_auto(comm, 0), 0);
	CHECK_EQ(swingcoll_allreduce(v, v, count, SWINGCOLL_I64, SWINGCOLL_SUM, comm), 0);
	CHECK_EQ(v[5], -8);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);

	other.bytes[0] ^= 1;
	opts.flags = rank ? SWINGCOLL_SPARSE_AUTO : 0;
	CHECK_EQ(swingcoll_comm_create(&comm, &other, 2, rank, &opts), 0);
	CHECK_EQ(swingcoll_allreduce(v, v, count, SWINGCOLL_I64, SWINGCOLL_SUM, comm), -EPROTO);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	free(v);
	return 0;
}

/* ------------------------------------------------------------------ refused */

/* Every rank refuses them before anything is sent, and the communicator stays usable. */
static int refused(uint32_t rank, void *arg)
{
	uint64_t rows[2] = { 5, 5 };
	struct swingcoll_sparse_list list = { 2, rows, rows }, result;
	struct swingcoll_sparse_req *req, *second;
	struct swingcoll_sparse_result last;
	struct swingcoll_comm *comm;
	float v[64] = { 0 };
	int ret;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, 2, rank, NULL), 0);
	CHECK_EQ(swingcoll_sparse_last(comm, &last), -ENODATA);
	CHECK_EQ(swingcoll_sparse_allreduce(v, v, 64, SWINGCOLL_F32, SWINGCOLL_SUM,
					    SWINGCOLL_SPARSE_MODE_SKETCH, comm),
		 -EINVAL);
	CHECK_EQ(swingcoll_sparse_allreduce(v, v, 64, SWINGCOLL_F32, SWINGCOLL_BOR,
					    SWINGCOLL_SPARSE_MODE_PACK, comm),
		 -EINVAL);
	CHECK_EQ(swingcoll_sparse_allreduce(v, v, 64, SWINGCOLL_F32, SWINGCOLL_SUM, 9, comm),
		 -EINVAL);
	CHECK_EQ(swingcoll_sparse_allreduce(v, v + 1, 63, SWINGCOLL_F32, SWINGCOLL_SUM,
					    SWINGCOLL_SPARSE_MODE_PACK, comm),
		 -EINVAL);
	CHECK_EQ(swingcoll_sparse_allreduce_list(&list, 10, 1, SWINGCOLL_U64, SWINGCOLL_SUM, comm,
						 &result),
		 -EINVAL);
	rows[0] = 4;
	CHECK_EQ(swingcoll_sparse_allreduce_list(&list, 5, 1, SWINGCOLL_U64, SWINGCOLL_SUM, comm,
						 &result),
		 -EINVAL);
	CHECK_EQ(swingcoll_sparse_allreduce_list(&list, 10, 0, SWINGCOLL_U64, SWINGCOLL_SUM, comm,
						 &result),
		 -EINVAL);
	/* One at a time: until it has been waited for, though it may be done. */
	CHECK_EQ(swingcoll_isparse_allreduce(v, v, 64, SWINGCOLL_F32, SWINGCOLL_SUM,
					     SWINGCOLL_SPARSE_MODE_PACK, comm, &req),
		 0);
	CHECK_EQ(swingcoll_isparse_allreduce(v, v, 64, SWINGCOLL_F32, SWINGCOLL_SUM,
					     SWINGCOLL_SPARSE_MODE_PACK, comm, &second),
		 -EBUSY);
	while ((ret = swingcoll_sparse_test(req)) == -EINPROGRESS)
		;
	CHECK_EQ(ret, 0);
	CHECK_EQ(swingcoll_sparse_last(comm, &last), 0);
	CHECK_EQ(last.elements, 0);
	CHECK_EQ(last.rounds, 1);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* A communicator is destroyed while a call that nobody has waited for goes on. */
static int never_waited_for(uint32_t rank, void *arg)
{
	struct swingcoll_sparse_req *req;
	struct swingcoll_comm *comm;
	static float v[1 << 16];

	(void)arg;
	v[rank] = 1;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, 2, rank, NULL), 0);
	if (!rank)
		CHECK_EQ(swingcoll_isparse_allreduce(v, v, 1 << 16, SWINGCOLL_F32, SWINGCOLL_SUM,
						     SWINGCOLL_SPARSE_MODE_PACK, comm, &req),
			 0);
	else
		CHECK_EQ(swingcoll_sparse_allreduce(v, v, 1 << 16, SWINGCOLL_F32, SWINGCOLL_SUM,
						    SWINGCOLL_SPARSE_MODE_PACK, comm),
			 0);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	CHECK(v[0] == 1 && v[1] == 1);
	return 0;
}

static void run(const char *name, uint32_t n, testlib_rank_fn fn)
{
	swingcoll_unique_id(&id);
	ksft_test_result(!testlib_run_ranks(n, fn, NULL), "%s", name);
}

int main(void)
{
	pid_t pid[MAX_RANKS];
	struct outcome *out;

	ksft_print_header();
	testlib_require_device();
	out = testlib_shared_alloc(sizeof(*out));
	for (nalgos = 1; algo_name(nalgos); nalgos++)
		;
	ksft_set_plan(MAX_RANKS - 1 + 6);
	run("what counts as zero", 2, zeros);
	run("the automatic choice", 3, choice);
	run("the automatic choice as a flag of the communicator", 2, flag);
	run("calls that are refused", 2, refused);
	run("a call that nobody waits for", 2, never_waited_for);
	pairs_init(&pairs, 4);
	for (nranks = 2; nranks <= MAX_RANKS; nranks++) {
		unsigned int before = out->total;
		int bad;

		swingcoll_unique_id(&id);
		testlib_fork_ranks(pid, nranks, all_algos, out);
		bad = testlib_wait_ranks_ms(pid, nranks, GROUP_MS);
		if (!bad)
			pairs = out->pairs;
		ksft_test_result(!bad && out->total > before, "%u ranks: %u sparse allreduces",
				 nranks, out->total - before);
	}
	ksft_print_msg("%u combinations run, %u left out\n", pairs.run, pairs.skipped);
	ksft_test_result(!testlib_wait_released(0), "everything is released");
	ksft_finished();
}

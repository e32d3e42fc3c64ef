// SPDX-License-Identifier: GPL-2.0-only
/* Every type with every operation: in the kernel by two algorithms, and through the shared-memory slots. */
#include <errno.h>

#include "coll.h"

#define NRANKS 3

static struct swingcoll_id id;

struct way {
	const char *name, *algo;
	int64_t slot_max;
};

static const struct way ways[] = {
	{ "one pass", "direct2", -1 },
	{ "ring", "ring", -1 },
	{ "slots", NULL, 65536 },
};

struct job {
	const struct way *way;
	int dtype;
};

static int all_ops(uint32_t rank, void *arg)
{
	const struct job *j = arg;
	struct swingcoll_comm_opts opts = { .algo = j->way->algo,
					    .slot_max = j->way->slot_max,
					    .flags = SWINGCOLL_ALLOW_REORDER,
					    .timeout_ms = 30000 };
	static const size_t counts[] = { 1, 67, 3001 };
	static uint64_t mem[NRANKS * 3001 * 2 + 64];
	struct swingcoll_comm *comm;
	int n = 0;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, NRANKS, rank, &opts), 0);
	for (int op = 0; op <= SWINGCOLL_BXOR; op++) {
		static const int colls[] = { SWINGCOLL_ALLREDUCE, SWINGCOLL_REDUCE_SCATTER,
					     SWINGCOLL_REDUCE };

		for (unsigned int k = 0; k < ARRAY_SIZE(counts); k++) {
			struct coll_case c = { .coll = colls[(op + k) % 3],
					       .dtype = j->dtype,
					       .op = op,
					       .count = counts[k],
					       .in_place = k & 1 };

			if (!swingcoll_supported(j->dtype, op)) {
				CHECK(coll_call(&c, mem, mem, comm) == -EOPNOTSUPP ||
				      coll_call(&c, mem, mem, comm) == -EINVAL);
				continue;
			}
			if (coll_run(&c, mem, comm, op))
				return 1;
			n++;
		}
	}
	CHECK_EQ(n, (j->dtype >= SWINGCOLL_F16 ? 5 : 8) * (int)ARRAY_SIZE(counts));
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* The reduction code that the module should choose on this machine, or the one that a parameter forces. */
static const char *expected_reduce(void)
{
	static char forced[SWC_NAME_BYTES];
	FILE *f = fopen("/sys/module/swingcoll/parameters/reduce", "re");

	if (f && fgets(forced, sizeof(forced), f))
		forced[strcspn(forced, "\n")] = '\0';
	if (f)
		fclose(f);
	if (*forced)
		return forced;
#if defined(__aarch64__)
	return "neon";
#elif defined(__x86_64__)
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("f16c"))
		return "scalar";
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
			       __builtin_cpu_supports("avx512dq") &&
			       __builtin_cpu_supports("avx512vl")
		       ? "avx512"
		       : "avx2";
#else
	return "scalar";
#endif
}

static int uses_expected(uint64_t reduced_before)
{
	struct swc_info info = testlib_info();

	ksft_print_msg("%llu bytes reduced in the kernel by %s\n",
		       (unsigned long long)(testlib_stat(SWC_STAT_BYTES_REDUCED) - reduced_before),
		       info.reduce);
	CHECK(testlib_stat(SWC_STAT_BYTES_REDUCED) > reduced_before);
	CHECK(!strcmp(info.reduce, expected_reduce()));
	return 0;
}

int main(void)
{
	uint64_t reduced;

	ksft_print_header();
	testlib_require_device();
	ksft_set_plan(ARRAY_SIZE(ways) * (SWINGCOLL_F64 + 1) + 1);
	reduced = testlib_stat(SWC_STAT_BYTES_REDUCED);
	for (unsigned int w = 0; w < ARRAY_SIZE(ways); w++)
		for (int t = 0; t <= SWINGCOLL_F64; t++) {
			struct job j = { &ways[w], t };

			swingcoll_unique_id(&id);
			ksft_test_result(!testlib_run_ranks(NRANKS, all_ops, &j), "%s, %s",
					 swingcoll_dtype_name(t), ways[w].name);
		}
	ksft_test_result(!uses_expected(reduced),
			 "the module reduces by the best code for this CPU");
	ksft_finished();
}

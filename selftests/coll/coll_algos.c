// SPDX-License-Identifier: GPL-2.0-only
/* Every algorithm, every collective, 1 to 9 ranks, awkward counts, in place and not. */
#include <errno.h>

#include "coll.h"

static struct swingcoll_id id;
static const char *algo;
static uint32_t nranks;
static unsigned int *ran;

static int small(uint32_t rank, void *arg)
{
	static const size_t counts[] = { 0, 1, 61, 4099 };
	struct swingcoll_comm_opts opts = { .algo = algo,
					    .timeout_ms = 30000,
					    .slot_max = algo ? -1 : 0 };
	static uint64_t mem[9 * 4099 * 2 + 4096];
	struct swingcoll_comm *comm;
	unsigned int done = 0;
	int ret;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, nranks, rank, &opts), 0);
	for (int coll = 0; coll <= SWINGCOLL_ALLTOALL; coll++)
		for (unsigned int k = 0; k < 2 * ARRAY_SIZE(counts); k++) {
			struct coll_case c = coll_nth(coll, counts, k, nranks, 1);

			ret = coll_run(&c, mem, comm, k);
			if (ret == -EOPNOTSUPP)
				continue;
			if (ret)
				return 1;
			done++;
			/* A substitute has its own turn. */
			if (algo && nranks > 1 && strcmp(swingcoll_comm_algo(comm), algo))
				break;
		}
	if (!rank)
		*ran = done;
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* More than two huge pages, not divisible by anything. */
static int large(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .algo = algo,
					    .timeout_ms = 60000,
					    .slot_max = algo ? -1 : 0 };
	struct swingcoll_comm *comm;
	unsigned int done = 0;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, nranks, rank, &opts), 0);
	for (int coll = 0; coll <= SWINGCOLL_ALLTOALL; coll++) {
		struct coll_case c = { .coll = coll,
				       .count = coll_has_parts(coll) ? 350003 : 1100003,
				       .in_place = coll & 1,
				       .dtype = SWINGCOLL_F32 };

		if (coll == SWINGCOLL_BARRIER)
			continue;
		void *mem = malloc(coll_bytes(&c, nranks));
		int ret = coll_run(&c, mem, comm, 3);

		free(mem);
		if (ret && ret != -EOPNOTSUPP)
			return 1;
		done += !ret;
	}
	if (!rank)
		*ran = done;
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

int main(void)
{
	unsigned int nalgos = 1;
	bool good;

	ksft_print_header();
	swct_need_device();
	ran = swct_shared(4096);
	while (swingcoll_algo_name(nalgos - 1))
		nalgos++;
	ksft_set_plan(nalgos * 2);
	for (unsigned int a = 0; a < nalgos; a++) {
		unsigned int total = 0;

		algo = a ? swingcoll_algo_name(a - 1) : NULL;
		good = true;
		for (nranks = 1; nranks <= 9 && good; nranks++) {
			swingcoll_unique_id(&id);
			*ran = 0;
			if (swct_ranks(nranks, 60000, small, NULL)) {
				ksft_print_msg("with %u ranks\n", nranks);
				good = false;
			}
			total += *ran;
		}
		ksft_test_result(good && total, "%s: %u collectives with 1 to 9 ranks",
				 algo ? algo : "auto", total);
		swingcoll_unique_id(&id);
		nranks = a & 1 ? 3 : 4;
		*ran = 0;
		good = !swct_ranks(nranks, 60000, large, NULL);
		ksft_test_result(good && *ran, "%s: large, %u ranks, %u collectives",
				 algo ? algo : "auto", nranks, *ran);
	}
	ksft_finished();
}

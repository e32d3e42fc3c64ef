// SPDX-License-Identifier: GPL-2.0-only
/* For shell tests: show that the module works, hold the device open, wait for ranks that do not come, or come last. */
#include "testlib.h"

static uint8_t id[SWC_ID_BYTES];

static int works(uint32_t rank, void *arg)
{
	struct testlib_rank r;

	(void)arg;
	CHECK_EQ(testlib_rank_open(&r, id, 3, rank, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(testlib_check_allreduce(&r, 20000), 0);
	/* An operation in flight, for the exit to clean up. */
	struct swc_desc d = testlib_allreduce_desc(&r, &r, &r, 1, SWC_U8);

	testlib_submit(r.c.fd, &d);
	return 0;
}

#define LATE 20
static int gate[2];

/* Rank 1 comes when rank 0 has come. */
static int late(uint32_t rank, void *arg)
{
	struct testlib_rank r;
	uint32_t v = rank, sum;
	char byte = 0;

	(void)arg;
	CHECK_EQ(testlib_rank_open(&r, id, 2, rank, TESTLIB_EVENT_MS), 0);
	for (int i = 0; i < LATE; i++) {
		struct swc_desc d = testlib_allreduce_desc(&r, &v, &sum, 1, SWC_U32);
		struct swc_completion done;

		if (rank)
			CHECK_EQ(read(gate[0], &byte, 1), 1);
		CHECK_EQ(testlib_submit(r.c.fd, &d), 0);
		if (!rank)
			CHECK_EQ(write(gate[1], &byte, 1), 1);
		CHECK_EQ(testlib_ring_next(&r.c, &done, TESTLIB_EVENT_MS), 0);
		CHECK_EQ(done.res, 0);
		CHECK_EQ(sum, 1);
	}
	testlib_rank_close(&r);
	return 0;
}

int main(int argc, char **argv)
{
	struct testlib_ctx c;

	if (argc == 2 && !strcmp(argv[1], "check")) {
		testlib_new_id(id);
		return !!testlib_run_ranks(3, works, NULL);
	}
	if (argc == 2 && !strcmp(argv[1], "late")) {
		testlib_new_id(id);
		return pipe(gate) || testlib_run_ranks(2, late, NULL);
	}
	if (argc == 2 && !strcmp(argv[1], "hold")) {
		if (testlib_open(&c))
			return 1;
		puts("open");
		fflush(stdout);
		for (;;)
			pause();
	}
	if (argc == 2 && !strcmp(argv[1], "hold-mapping")) {
		if (testlib_open(&c))
			return 1;
		close(c.fd);
		puts("open");
		fflush(stdout);
		for (;;)
			pause();
	}
	/* Nobody else joins. */
	if (argc == 2 && !strcmp(argv[1], "join")) {
		uint32_t comm;

		if (testlib_open(&c))
			return 1;
		testlib_new_id(id);
		return !!testlib_comm_create(c.fd, id, 2, 0, TESTLIB_EVENT_MS, &comm);
	}
	fprintf(stderr, "usage: helper check | late | hold | hold-mapping | join\n");
	return 2;
}

// SPDX-License-Identifier: GPL-2.0-only
/* What shell tests need: hold the device open, or show that the module works. */
#include "testlib.h"

static uint8_t id[SWC_ID_BYTES];

static int sound(uint32_t rank, void *arg)
{
	struct swct_rank r;

	(void)arg;
	CHECK_EQ(swct_rank_up(&r, id, 3, rank, 10000), 0);
	CHECK_EQ(swct_sound(&r, 20000), 0);
	/* Leave something behind for release to clean up. */
	struct swc_desc d = swct_allreduce(&r, &r, &r, 1, SWC_U8);

	swct_submit(r.c.fd, &d);
	return 0;
}

int main(int argc, char **argv)
{
	struct swct_ctx c;

	if (argc == 2 && !strcmp(argv[1], "sound")) {
		swct_id(id);
		return !!swct_ranks(3, 20000, sound, NULL);
	}
	if (argc == 2 && !strcmp(argv[1], "hold")) {
		if (swct_open(&c))
			return 1;
		puts("open");
		fflush(stdout);
		for (;;)
			pause();
	}
	if (argc == 2 && !strcmp(argv[1], "hold-mapping")) {
		if (swct_open(&c))
			return 1;
		close(c.fd);
		puts("open");
		fflush(stdout);
		for (;;)
			pause();
	}
	fprintf(stderr, "usage: helper sound | hold | hold-mapping\n");
	return 2;
}

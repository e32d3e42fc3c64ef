// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU time of the library's first choice of an algorithm on the topologies that are named: by collective, the
 * longest over sizes from 8 B to 1 GiB, each with nothing known from others.
 */
#include <stdio.h>
#include <time.h>

#include "plan/names.h"
#include "plan/select/choose.h"

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double longest(const struct swc_topo *t, enum swc_coll coll)
{
	double most = 0;

	for (uint64_t bytes = 8; bytes <= 1ull << 30; bytes *= 8) {
		struct swc_choices c;
		double ms;

		swc_choices_init(&c, t, false);
		ms = -cpu_ms();
		swc_choices_take(&c, coll, SWC_F32, SWC_SUM, bytes, 1);
		ms += cpu_ms();
		most = ms > most ? ms : most;
		swc_choices_free(&c);
	}
	return most;
}

int main(int argc, char **argv)
{
	printf("| CPU time of the first choice, ms |");
	for (unsigned int coll = 0; coll < SWC_COLL_NR; coll++)
		printf(" %s |", swc_coll_name(coll));
	printf("\n|---|---|---|---|---|---|---|---|---|---|\n");
	for (int i = 1; i < argc; i++) {
		struct swc_topo t;
		char why[200];

		if (swc_topo_parse(&t, argv[i], why, sizeof(why))) {
			fprintf(stderr, "choices: %s\n", why);
			return 2;
		}
		printf("| %s |", argv[i]);
		for (unsigned int coll = 0; coll < SWC_COLL_NR; coll++)
			printf(" %.1f |", longest(&t, (enum swc_coll)coll));
		printf("\n");
		fflush(stdout);
		swc_topo_free(&t);
	}
	return 0;
}

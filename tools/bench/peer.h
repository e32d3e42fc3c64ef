/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs that swingcoll is compared with have in common: their command line, buffers, checks and
 * output. A program adds its allreduce and its way to meet.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/perfloop.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PEER_MAX_BUFFERS 64
#define PEER_MAX_SIZES 256

/* The command line: f32|i32 BUFFERS TIME_MS BYTES... */
struct peer_options {
	bool is_float;
	struct perf_rule rule;
	size_t sizes[PEER_MAX_SIZES];
	size_t nsizes;
};

/* One rank. count elements of 4 bytes are to be summed from send[buf] to recv[buf]. */
struct peer {
	const struct peer_options *opt;
	int rank, nranks;
	void *send[PEER_MAX_BUFFERS], *recv[PEER_MAX_BUFFERS];
	size_t count;
};

/*
 * Read the command line, which begins with the number of ranks if @nranks is not NULL. Ends the program with a
 * message if an argument is wrong.
 */
void peer_parse(struct peer_options *opt, const char *prog, int *nranks, int argc, char **argv);

/*
 * Measure and check all sizes; rank 0 prints one record per size, with the members of swingperf --json. @ops get
 * @p as their argument. Return the exit status: 0, 1 if an element is wrong, 2 if a call fails.
 */
int peer_run(struct peer *p, const struct perf_ops *ops);

#ifdef __cplusplus
}
#endif

#endif /* BENCH_PEER_H */

// SPDX-License-Identifier: GPL-2.0-only
/* What coll_fortran asks of C: the layout of structs, and a process of its own for each rank. */
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "swingcoll.h"

/* Sizes and offsets, in the order in which coll_fortran has them. */
void layout_in_c(size_t *v);
void layout_in_c(size_t *v)
{
	*v++ = sizeof(struct swingcoll_comm_opts);
	*v++ = offsetof(struct swingcoll_comm_opts, algo);
	*v++ = offsetof(struct swingcoll_comm_opts, slot_max);
	*v++ = offsetof(struct swingcoll_comm_opts, use_io_uring);
	*v++ = offsetof(struct swingcoll_comm_opts, topo);
	*v++ = offsetof(struct swingcoll_comm_opts, tuning);
	*v++ = offsetof(struct swingcoll_comm_opts, op_timeout_ms);
	*v++ = sizeof(struct swingcoll_result);
	*v++ = offsetof(struct swingcoll_result, culprit);
	*v++ = offsetof(struct swingcoll_result, time_ns);
	*v++ = offsetof(struct swingcoll_result, algo);
	*v++ = sizeof(struct swingcoll_id);
}

/* Fork @nranks processes; each gets its rank, the parent -1. */
int fork_ranks(int nranks);
int fork_ranks(int nranks)
{
	for (int rank = 0; rank < nranks; rank++) {
		pid_t pid = fork();

		if (!pid)
			return rank;
		if (pid < 0)
			exit(1);
	}
	return -1;
}

void end_rank(int status);
void end_rank(int status)
{
	_exit(status);
}

/* How many children do not end with 0. */
int wait_ranks(void);
int wait_ranks(void)
{
	int status, bad = 0;

	while (wait(&status) > 0)
		bad += status != 0;
	return bad;
}

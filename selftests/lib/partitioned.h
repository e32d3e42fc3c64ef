/* SPDX-License-Identifier: GPL-2.0-only */
/* Partitioned collectives through the library, with the data of coll.h. */
#ifndef PARTITIONED_H
#define PARTITIONED_H

#include "coll.h"

/* A partitioned request with buffers of its own. */
struct partitioned {
	struct coll_case c;
	int nranks;
	int n;			       /* partitions */
	size_t send_bytes, recv_bytes; /* of each partition */
	char *send, *recv;
	struct swingcoll_partitioned *part;
};

int partitioned_open(struct partitioned *p, const struct coll_case *c, int n,
		     struct swingcoll_comm *comm);
int partitioned_close(struct partitioned *p);
/* coll_fill() and coll_check() of partition i. */
void partitioned_fill(struct partitioned *p, int i, int rank, uint64_t salt);
int partitioned_check(struct partitioned *p, int i, int rank, uint64_t salt);
/* One round: start, mark ready and wait in random orders, check. rnd: state of rand_r(). */
int partitioned_round(struct partitioned *p, uint32_t rank, uint64_t salt, unsigned int *rnd);
/* The numbers 0 to n - 1 in random order. */
void partitioned_shuffle(int *order, int n, unsigned int *rnd);

/* What the last rank does with partitions that it has not marked ready. */
enum partitioned_offence {
	NEVER_READY,
	TWICE_READY,
	DIES,
	ABORTS,
	ANOTHER_NUMBER
};

struct partitioned_failure {
	const char *name;
	enum partitioned_offence offence;
	int error; /* of all ranks */
};

/* The timeout of the communicator: to be reached by NEVER_READY alone. */
uint32_t partitioned_failure_ms(const struct partitioned_failure *f);
/* Fork ranks that run fn with the failure. Returns 0 if all succeed, or the last one has been killed if it dies. */
int partitioned_run_failure(const struct partitioned_failure *f, testlib_rank_fn fn,
			    uint32_t nranks, struct swingcoll_id *id);

/* For ranks that are killed: the timeout of their communicator; and they count themselves when it is created. */
struct partitioned_kill_state {
	bool early; /* rank 0 may be killed before that */
	uint32_t timeout_ms;
	unsigned int created;
};

/* In a rank that is not killed, with the error that ended it: 0, or 1 if the death of rank 0 cannot be the reason. */
int partitioned_check_killed(const struct partitioned_kill_state *s, int ret);

/*
 * Twenty times, or ten in the short form, fork nranks ranks that run fn with a struct partitioned_kill_state,
 * and kill rank 0: at a random moment after all have created the communicator, or in every fifth round
 * earlier. The others must end by themselves. Returns 0, or 1 if one does not.
 */
int partitioned_kill_ranks(testlib_rank_fn fn, uint32_t nranks, struct swingcoll_id *id,
			   unsigned int *rnd);

#endif /* PARTITIONED_H */

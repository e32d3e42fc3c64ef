// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <signal.h>
#include <swingcoll.h>
#include <unistd.h>

#include "pairs.h"
#include "partitioned.h"

int partitioned_open(struct partitioned *p, const struct coll_case *c, int n,
		     struct swingcoll_comm *comm)
{
	size_t size = swingcoll_dtype_size(c->dtype);
	int nranks = swingcoll_comm_size(comm);

	*p = (struct partitioned){ .c = *c, .nranks = nranks, .n = n };
	p->send_bytes = coll_send_elems(c, nranks) * size;
	p->recv_bytes = coll_recv_elems(c, nranks) * size;
	p->recv = calloc(n, p->recv_bytes + 1);
	p->send = c->in_place ? p->recv : calloc(n, p->send_bytes + 1);
	switch (c->coll) {
	case SWINGCOLL_REDUCE_SCATTER:
		return swingcoll_preduce_scatter_init(p->send, p->recv, n, c->count, c->dtype,
						      c->op, comm, &p->part);
	case SWINGCOLL_ALLGATHER:
		return swingcoll_pallgather_init(p->send, p->recv, n, c->count, c->dtype, comm,
						 &p->part);
	default:
		return swingcoll_pallreduce_init(p->send, p->recv, n, c->count, c->dtype, c->op,
						 comm, &p->part);
	}
}

int partitioned_close(struct partitioned *p)
{
	int ret = swingcoll_pfree(p->part);

	if (p->send != p->recv)
		free(p->send);
	free(p->recv);
	return ret;
}

void partitioned_fill(struct partitioned *p, int i, int rank, uint64_t salt)
{
	coll_fill(&p->c, p->nranks, rank, p->send + i * p->send_bytes, salt * 4099 + i);
}

int partitioned_check(struct partitioned *p, int i, int rank, uint64_t salt)
{
	return coll_check(&p->c, p->nranks, rank, p->recv + i * p->recv_bytes, salt * 4099 + i);
}

void partitioned_shuffle(int *order, int n, unsigned int *rnd)
{
	for (int i = 0; i < n; i++) {
		int k = rand_r(rnd) % (i + 1);

		order[i] = order[k];
		order[k] = i;
	}
}

int partitioned_round(struct partitioned *j, uint32_t rank, uint64_t salt, unsigned int *rnd)
{
	int *order = malloc(j->n * sizeof(*order));

	CHECK_EQ(swingcoll_pstart(j->part), 0);
	partitioned_shuffle(order, j->n, rnd);
	for (int i = 0; i < j->n; i++) {
		partitioned_fill(j, order[i], rank, salt);
		CHECK_EQ(swingcoll_pready(j->part, order[i]), 0);
	}
	/* Half of them one by one, in another order; then all at once. */
	partitioned_shuffle(order, j->n, rnd);
	for (int i = 0; i < j->n / 2; i++) {
		CHECK_EQ(swingcoll_pwait(j->part, order[i]), 0);
		CHECK_EQ(swingcoll_parrived(j->part, order[i]), 1);
		CHECK_EQ(partitioned_check(j, order[i], rank, salt), 0);
	}
	CHECK_EQ(swingcoll_pwait(j->part, SWINGCOLL_ALL_PARTITIONS), 0);
	for (int i = 0; i < j->n; i++) {
		CHECK_EQ(swingcoll_parrived(j->part, i), 1);
		CHECK_EQ(partitioned_check(j, i, rank, salt), 0);
	}
	free(order);
	return 0;
}

uint32_t partitioned_failure_ms(const struct partitioned_failure *f)
{
	return f->offence == NEVER_READY ? 5000 : TESTLIB_EVENT_MS;
}

int partitioned_run_failure(const struct partitioned_failure *f, testlib_rank_fn fn,
			    uint32_t nranks, struct swingcoll_id *id)
{
	pid_t pid[SWC_MAX_LOCAL_RANKS];
	bool killed = true;

	swingcoll_unique_id(id);
	testlib_fork_ranks(pid, nranks, fn, (void *)f);
	if (f->offence == DIES)
		killed = testlib_was_killed(&pid[nranks - 1]);
	return testlib_wait_ranks(pid, nranks) || !killed;
}

int partitioned_check_killed(const struct partitioned_kill_state *s, int ret)
{
	/* A survivor that leaves before this rank has seen the death ends the communicator, too. */
	if (s->early ? ret != -ETIME : ret == -ECONNRESET || ret == -ECONNABORTED)
		return 0;
	ksft_print_msg("a rank ends with %d: %s\n", ret, swingcoll_strerror(ret));
	return 1;
}

/* Kill rank 0 in one round. */
static int kill_once(testlib_rank_fn fn, uint32_t nranks, struct partitioned_kill_state *s,
		     bool early, unsigned int *rnd)
{
	pid_t pid[SWC_MAX_LOCAL_RANKS];
	bool killed;

	/* A rank that waits for one that never joins only has its deadline to end. */
	*s = (struct partitioned_kill_state){ .early = early,
					      .timeout_ms = early ? 2000 : TESTLIB_EVENT_MS };
	testlib_fork_ranks(pid, nranks, fn, s);
	if (!early && !testlib_wait_count(&s->created, nranks))
		return 1;
	usleep(rand_r(rnd) % (early ? 20000 : 60000));
	kill(pid[0], SIGKILL);
	/* In an early round rank 0 may have failed by its deadline before. */
	killed = testlib_was_killed(&pid[0]) || early;
	return testlib_wait_ranks(pid + 1, nranks - 1) || !killed;
}

int partitioned_kill_ranks(testlib_rank_fn fn, uint32_t nranks, struct swingcoll_id *id,
			   unsigned int *rnd)
{
	struct partitioned_kill_state *s = testlib_shared_alloc(sizeof(*s));

	for (int k = 0; k < (pairs_short() ? 10 : 20); k++) {
		swingcoll_unique_id(id);
		if (kill_once(fn, nranks, s, k % 5 == 4, rnd))
			return 1;
	}
	return 0;
}

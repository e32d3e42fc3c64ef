// SPDX-License-Identifier: GPL-2.0-only
#include <signal.h>
#include <swingcoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "partitioned.h"

int parted_up(struct parted *p, const struct coll_case *c, int n, struct swingcoll_comm *comm)
{
	size_t size = swingcoll_dtype_size(c->dtype);
	int nranks = swingcoll_comm_size(comm);

	*p = (struct parted){ .c = *c, .nranks = nranks, .n = n };
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

int parted_down(struct parted *p)
{
	int ret = swingcoll_pfree(p->part);

	if (p->send != p->recv)
		free(p->send);
	free(p->recv);
	return ret;
}

void parted_fill(struct parted *p, int i, int rank, uint64_t salt)
{
	coll_fill(&p->c, p->nranks, rank, p->send + i * p->send_bytes, salt * 4099 + i);
}

int parted_check(struct parted *p, int i, int rank, uint64_t salt)
{
	return coll_check(&p->c, p->nranks, rank, p->recv + i * p->recv_bytes, salt * 4099 + i);
}

void parted_shuffle(int *order, int n, unsigned int *rnd)
{
	for (int i = 0; i < n; i++) {
		int k = rand_r(rnd) % (i + 1);

		order[i] = order[k];
		order[k] = i;
	}
}

/* coll_fill() spoils the receive buffer only out of place, and whole: so fill all before the first is ready. */
int parted_round(struct parted *j, uint32_t rank, uint64_t salt, unsigned int *rnd)
{
	int *order = malloc(j->n * sizeof(*order));

	CHECK_EQ(swingcoll_pstart(j->part), 0);
	parted_shuffle(order, j->n, rnd);
	for (int i = 0; i < j->n; i++) {
		parted_fill(j, order[i], rank, salt);
		CHECK_EQ(swingcoll_pready(j->part, order[i]), 0);
	}
	/* Some one by one, in another order; the rest at once. */
	parted_shuffle(order, j->n, rnd);
	for (int i = 0; i < j->n / 2; i++) {
		CHECK_EQ(swingcoll_pwait(j->part, order[i]), 0);
		CHECK_EQ(swingcoll_parrived(j->part, order[i]), 1);
		CHECK_EQ(parted_check(j, order[i], rank, salt), 0);
	}
	CHECK_EQ(swingcoll_pwait(j->part, SWINGCOLL_ALL_PARTITIONS), 0);
	for (int i = 0; i < j->n; i++) {
		CHECK_EQ(swingcoll_parrived(j->part, i), 1);
		CHECK_EQ(parted_check(j, i, rank, salt), 0);
	}
	free(order);
	return 0;
}

int parted_kills(swct_fn fn, uint32_t nranks, struct swingcoll_id *id, unsigned int *rnd)
{
	struct parted_restless *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int bad = s == MAP_FAILED;

	for (int k = 0; k < 20 && !bad; k++) {
		uint64_t until = swct_ms() + 20000;
		bool early = k % 5 == 4, killed;
		pid_t pid[64];

		/* Who waits for one that never joins has nothing but the deadline. */
		*s = (struct parted_restless){ .timeout_ms = early ? 2000 : 20000 };
		swingcoll_unique_id(id);
		swct_fork(pid, nranks, fn, s);
		while (!early && __atomic_load_n(&s->joined, __ATOMIC_ACQUIRE) < nranks &&
		       swct_ms() < until)
			swct_sleep_ms(1);
		usleep(rand_r(rnd) % (early ? 20000 : 60000));
		kill(pid[0], SIGKILL);
		/* An early one may have been over before that, on a machine that stands still. */
		killed = swct_reap(pid, 1, 30000);
		bad = swct_reap(pid + 1, nranks - 1, 30000) || (!killed && !early);
	}
	munmap(s, sizeof(*s));
	return bad;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memos of calls about which everything is decided, which pmpi_recall() in pmpi.h finds. Each thread has its
 * own, and counts in them, so that nothing is shared on that way; the counters get what has been counted when
 * a memo is replaced, when its thread ends, and when they are printed.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/pmpi.h"

#define MEMOS (PMPI_NR_NAMES * PMPI_ROW)
#define NONE ((MPI_Comm)0) /* no communicator */

static struct pmpi_memo empty[MEMOS];
__thread struct pmpi_memo *pmpi_memos = empty;

/*
 * The memos of a thread, as long as it lives. @used: the places of those that have been entered. The
 * lock guards these, and what a memo says; its thread reads that without it, and counts hits.
 */
struct memos {
	struct pmpi_memo *of;
	struct memos *next;
	uint16_t used[MEMOS];
	unsigned int nused;
};

static __thread struct memos *mine;
static struct memos *tables;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void count_hits(struct pmpi_memo *m)
{
	if (m->hits)
		__atomic_fetch_add(m->counter, m->hits, __ATOMIC_RELAXED);
	m->hits = 0;
}

static void count_all(const struct memos *t)
{
	for (unsigned int i = 0; i < t->nused; i++)
		count_hits(&t->of[t->used[i]]);
}

void pmpi_memos_count(void)
{
	pthread_mutex_lock(&lock);
	for (struct memos *t = tables; t; t = t->next)
		count_all(t);
	pthread_mutex_unlock(&lock);
}

void pmpi_memos_forget(MPI_Comm comm)
{
	pthread_mutex_lock(&lock);
	for (struct memos *t = tables; t; t = t->next)
		for (unsigned int i = 0; i < t->nused; i++) {
			struct pmpi_memo *m = &t->of[t->used[i]];

			if (m->comm == comm)
				__atomic_store_n(&m->comm, NONE, __ATOMIC_RELAXED);
		}
	pthread_mutex_unlock(&lock);
}

static void destroy(struct memos *t)
{
	if (t)
		free(t->of);
	free(t);
}

/* A thread ends; it may still call MPI. */
static void leave(void *thread)
{
	struct memos *t = thread, **link = &tables;

	pmpi_memos = empty;
	mine = NULL;
	pthread_mutex_lock(&lock);
	count_all(t);
	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	pthread_mutex_unlock(&lock);
	destroy(t);
}

static void make_key(void)
{
	pthread_key_create(&key, leave);
}

/* Without the key nobody would count this thread's memos when it ends. */
static bool know(void)
{
	struct memos *t;

	if (mine)
		return true;
	pthread_once(&once, make_key);
	t = calloc(1, sizeof(*t));
	if (!t)
		return false;
	t->of = aligned_alloc(_Alignof(struct pmpi_memo), sizeof(empty));
	if (!t->of || pthread_setspecific(key, t)) {
		destroy(t);
		return false;
	}
	memset(t->of, 0, sizeof(empty));
	pthread_mutex_lock(&lock);
	t->next = tables;
	tables = t;
	pthread_mutex_unlock(&lock);
	mine = t;
	pmpi_memos = t->of;
	return true;
}

void pmpi_remember(const struct pmpi_call *c, bool offloaded, uint64_t *counter)
{
	uint32_t slot = (uint32_t)c->name * PMPI_ROW + pmpi_memo_slot(c->mpi, c->recv_count);
	struct pmpi_memo *m;

	if (!know())
		return;
	m = &mine->of[slot];
	pthread_mutex_lock(&lock);
	if (m->counter)
		count_hits(m);
	else
		mine->used[mine->nused++] = (uint16_t)slot;
	m->type = c->recv_type;
	m->op = c->memo;
	m->count = c->recv_count;
	m->counter = counter;
	m->offloaded = offloaded ? c->comm : NULL;
	m->n = (uint32_t)c->count;
	m->dtype = (uint8_t)c->dtype;
	m->redop = (uint8_t)c->redop;
	m->size = (uint8_t)swingcoll_dtype_size(c->dtype);
	__atomic_store_n(&m->comm, c->mpi, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memos of calls that are left to MPI, which pmpi_passes() in pmpi.h looks at. Each thread has its own,
 * and counts in them, so that nothing is shared on that way; the counters get what has been counted
 * when a memo is replaced, when its thread ends, and when they are printed.
 */
#include <pthread.h>

#include "pmpi/pmpi.h"

uint64_t pmpi_generation = PMPI_GENERATION_STEP;
__thread struct pmpi_memo pmpi_memos[PMPI_MEMOS];

/* The memos of a thread, as long as it lives. */
struct memos {
	struct pmpi_memo *of;
	struct memos *next;
};

static __thread struct memos mine;
static struct memos *tables;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void count_hits(struct pmpi_memo *m)
{
	if (m->hits)
		__atomic_fetch_add(m->fallback, m->hits, __ATOMIC_RELAXED);
	m->hits = 0;
}

static void count_all(const struct memos *t)
{
	for (int i = 0; i < PMPI_MEMOS; i++)
		count_hits(&t->of[i]);
}

void pmpi_memos_count(void)
{
	pthread_mutex_lock(&lock);
	for (struct memos *t = tables; t; t = t->next)
		count_all(t);
	pthread_mutex_unlock(&lock);
}

/* A thread ends. */
static void forget(void *thread)
{
	struct memos *t = thread, **link = &tables;

	pthread_mutex_lock(&lock);
	count_all(t);
	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	t->of = NULL; /* it may still call MPI */
	pthread_mutex_unlock(&lock);
}

static void make_key(void)
{
	pthread_key_create(&key, forget);
}

/* Without the key nobody would count this thread's memos when it ends. */
static bool know(void)
{
	if (mine.of)
		return true;
	pthread_once(&once, make_key);
	if (pthread_setspecific(key, &mine))
		return false;
	mine.of = pmpi_memos;
	pthread_mutex_lock(&lock);
	mine.next = tables;
	tables = &mine;
	pthread_mutex_unlock(&lock);
	return true;
}

void pmpi_remember(enum pmpi_name name, MPI_Comm comm, MPI_Datatype type, MPI_Count count,
		   uint64_t op, uint64_t *fallback)
{
	struct pmpi_memo *m = pmpi_memo(name, comm, count);

	if (!know())
		return;
	count_hits(m);
	*m = (struct pmpi_memo){
		.key = pmpi_memo_key(name),
		.comm = PMPI_HANDLE(comm),
		.type = PMPI_HANDLE(type),
		.op = op,
		.count = count,
		.fallback = fallback,
	};
}

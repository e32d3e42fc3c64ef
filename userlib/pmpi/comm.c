// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MPI's communicators and those of swingcoll that belong to them.
 *
 * A hash table leads from the handle to struct pmpi_comm; it is read without a lock by every call.
 * That is safe because the caller holds the handle, so nobody frees that communicator meanwhile;
 * entries of other communicators on the way stay in their bucket for ever, and are used again after
 * MPI has freed theirs, which the attribute's delete function tells us.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "pmpi/entry.h"
#include "pmpi/settings.h"

#define BUCKETS 64
/*
 * A communicator of swingcoll costs some milliseconds: it is made when so many calls, or bytes,
 * show that the program uses the one of MPI in earnest.
 */
#define EARNEST_CALLS 16u
#define EARNEST_BYTES (1 << 20)
/*
 * One that lives less than so many times as long as its creation took was made in vain. The more there
 * have been, the longer a program has to use the next one of MPI: four times as many calls for each.
 */
#define WORTH_TIMES 100
#define MOST_WASTED 6
/* How long its ranks may take to meet; all of them are in the same call. */
#define CREATE_MS 60000
#define RANKS_AT_ONCE 64

struct entry {
	MPI_Comm mpi;		/* MPI_COMM_NULL: free; atomic */
	struct pmpi_comm *comm; /* valid if mpi is */
	struct entry *next;
};

static struct entry *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for changing the table */
static int keyval = MPI_KEYVAL_INVALID;
static int wasted; /* made in vain, less those that were not; atomic */

static struct entry **bucket_of(MPI_Comm mpi)
{
	return &buckets[(uint64_t)(uintptr_t)mpi * 0x9e3779b97f4a7c15 >> 58];
}

static struct entry *find_entry(MPI_Comm mpi)
{
	struct entry *e = __atomic_load_n(bucket_of(mpi), __ATOMIC_ACQUIRE);

	while (e && __atomic_load_n(&e->mpi, __ATOMIC_ACQUIRE) != mpi)
		e = e->next;
	return e;
}

static bool enter(struct pmpi_comm *comm)
{
	struct entry **bucket = bucket_of(comm->mpi), *e;

	pthread_mutex_lock(&lock);
	for (e = *bucket; e && e->mpi != MPI_COMM_NULL; e = e->next)
		;
	if (e) {
		e->comm = comm;
		__atomic_store_n(&e->mpi, comm->mpi, __ATOMIC_RELEASE);
	} else {
		e = malloc(sizeof(*e));
		if (e) {
			*e = (struct entry){ comm->mpi, comm, *bucket };
			__atomic_store_n(bucket, e, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&lock);
	return e;
}

/* MPI frees the communicator. Requests in flight hold references of their own. */
static int deleted(MPI_Comm mpi, int key, void *value, void *extra)
{
	struct pmpi_comm *comm = value;
	struct entry *e = find_entry(mpi);

	(void)key;
	(void)extra;
	pmpi_memos_forget(mpi);
	if (e) {
		pthread_mutex_lock(&lock);
		__atomic_store_n(&e->mpi, MPI_COMM_NULL, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&lock);
	}
	pmpi_comm_put(comm);
	return MPI_SUCCESS;
}

void pmpi_comm_init(void)
{
	if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &keyval, NULL) != MPI_SUCCESS)
		keyval = MPI_KEYVAL_INVALID;
}

struct pmpi_comm *pmpi_comm_get(struct pmpi_comm *comm)
{
	__atomic_fetch_add(&comm->refs, 1, __ATOMIC_RELAXED);
	return comm;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The program has freed a communicator. */
static void count_wasted(const struct pmpi_comm *comm)
{
	bool vain = now_ns() - comm->made_ns < WORTH_TIMES * comm->cost_ns;
	int n = __atomic_load_n(&wasted, __ATOMIC_RELAXED);

	n += vain ? n < MOST_WASTED : -(n > 0);
	__atomic_store_n(&wasted, n, __ATOMIC_RELAXED);
}

static void release(struct pmpi_comm *comm)
{
	if (comm->swc && comm->choose)
		count_wasted(comm);
	swingcoll_comm_destroy(comm->swc);
	comm->swc = NULL;
	free(comm->peers);
	comm->peers = NULL;
	free(comm->choose);
	comm->choose = NULL;
}

void pmpi_comm_put(struct pmpi_comm *comm)
{
	if (__atomic_fetch_sub(&comm->refs, 1, __ATOMIC_ACQ_REL) > 1)
		return;
	for (int i = 0; i < PMPI_SLOTS; i++)
		if (comm->slots[i])
			pmpi_comm_put(comm->slots[i]);
	release(comm);
	free(comm);
}

static void turn_off(struct pmpi_comm *comm, enum pmpi_reason why)
{
	comm->off = true;
	comm->why = why;
}

/*
 * Are all ranks in MPI_COMM_WORLD? Others have not taken part in the agreement. By pieces, as nothing may
 * fail here: the ranks would differ.
 */
static bool is_in_world(MPI_Comm mpi, int size)
{
	int from[RANKS_AT_ONCE], to[RANKS_AT_ONCE];
	bool good = true;
	MPI_Group group;

	if (pmpi_world.group == MPI_GROUP_NULL || PMPI_Comm_group(mpi, &group) != MPI_SUCCESS)
		return false;
	for (int first = 0; first < size && good; first += RANKS_AT_ONCE) {
		int n = size - first < RANKS_AT_ONCE ? size - first : RANKS_AT_ONCE;

		for (int i = 0; i < n; i++)
			from[i] = first + i;
		good = PMPI_Group_translate_ranks(group, n, from, pmpi_world.group, to) ==
		       MPI_SUCCESS;
		for (int i = 0; good && i < n; i++)
			good = to[i] != MPI_UNDEFINED;
	}
	PMPI_Group_free(&group);
	return good;
}

/* ---- the end of one of MPI's ---- */

/*
 * While MPI frees a communicator, functions of the program's that delete attributes may call collectives on it.
 * These are left to MPI, as the library's attribute may be deleted before.
 */
struct dying {
	MPI_Comm mpi;
	struct dying *next;
};

static struct dying *dying; /* guarded by @lock */

static bool is_dying(MPI_Comm mpi)
{
	const struct dying *d;

	pthread_mutex_lock(&lock);
	for (d = dying; d && d->mpi != mpi; d = d->next)
		;
	pthread_mutex_unlock(&lock);
	return d;
}

static void add_dying(struct dying *d)
{
	pthread_mutex_lock(&lock);
	d->next = dying;
	dying = d;
	pthread_mutex_unlock(&lock);
}

static void remove_dying(const struct dying *d)
{
	struct dying **link = &dying;

	pthread_mutex_lock(&lock);
	while (*link != d)
		link = &(*link)->next;
	*link = d->next;
	pthread_mutex_unlock(&lock);
}

static int end_mpi(MPI_Comm *mpi, int (*end)(MPI_Comm *))
{
	struct dying d = { .mpi = *mpi };
	struct pmpi_comm *comm = NULL;
	struct entry *e;
	int ret;

	if (!pmpi_world.active || d.mpi == MPI_COMM_NULL)
		return end(mpi);
	e = find_entry(d.mpi);
	if (e && !e->comm->off) {
		comm = e->comm;
		turn_off(comm, PMPI_WHY_COMM);
	}
	add_dying(&d);
	pmpi_memos_forget(d.mpi);
	ret = end(mpi);
	remove_dying(&d);
	pmpi_memos_forget(d.mpi);
	/* It is still there. */
	if (ret != MPI_SUCCESS && comm)
		comm->off = false;
	return ret;
}

int pmpi_Comm_free(MPI_Comm *mpi)
{
	return end_mpi(mpi, PMPI_Comm_free);
}

int pmpi_Comm_disconnect(MPI_Comm *mpi)
{
	return end_mpi(mpi, PMPI_Comm_disconnect);
}

PMPI_PUBLIC int MPI_Comm_free(MPI_Comm *mpi)
{
	return pmpi_Comm_free(mpi);
}

PMPI_PUBLIC int MPI_Comm_disconnect(MPI_Comm *mpi)
{
	return pmpi_Comm_disconnect(mpi);
}

/* ---- the table ---- */

static struct pmpi_comm *make(MPI_Comm mpi)
{
	struct pmpi_comm *comm = calloc(1, sizeof(*comm));
	int inter = 0;

	if (!comm)
		return NULL;
	comm->mpi = mpi;
	comm->refs = 1;
	if (PMPI_Comm_test_inter(mpi, &inter) != MPI_SUCCESS ||
	    PMPI_Comm_size(mpi, &comm->size) != MPI_SUCCESS ||
	    PMPI_Comm_rank(mpi, &comm->rank) != MPI_SUCCESS) {
		free(comm);
		return NULL;
	}
	if (inter || comm->size == 1 || !is_in_world(mpi, comm->size))
		turn_off(comm, PMPI_WHY_COMM);
	if (!enter(comm)) {
		free(comm);
		return NULL;
	}
	/* Without it nobody would tell when the handle means another communicator. */
	if (keyval == MPI_KEYVAL_INVALID || PMPI_Comm_set_attr(mpi, keyval, comm) != MPI_SUCCESS)
		turn_off(comm, PMPI_WHY_COMM);
	return comm;
}

struct pmpi_comm *pmpi_comm_find(MPI_Comm mpi)
{
	struct entry *e = find_entry(mpi);

	if (__builtin_expect(e != NULL, 1))
		return e->comm;
	return mpi == MPI_COMM_NULL || is_dying(mpi) ? NULL : make(mpi);
}

int pmpi_comm_size(MPI_Comm mpi)
{
	struct pmpi_comm *comm = pmpi_world.active ? pmpi_comm_find(mpi) : NULL;

	return comm && !comm->off ? comm->size : 0;
}

/* ---- creation ---- */

/* The bootstrap: on the communicator itself, since all ranks are in a call on it. */
static int allgather(void *arg, const void *mine, void *all, size_t bytes)
{
	const struct pmpi_comm *comm = arg;

	if (bytes > INT_MAX)
		return -EMSGSIZE;
	return PMPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, comm->mpi) ==
			       MPI_SUCCESS
		       ? 0
		       : -EIO;
}

/* Half the limit of open files is left to the program: each communicator of swingcoll takes two. */
static bool has_descriptors(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct rlimit limit;

	if (fd < 0)
		return false;
	close(fd);
	return getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)fd < limit.rlim_cur / 2;
}

/*
 * What the ranks need beside the communicator of swingcoll: on all ranks, or none goes on. Without
 * memory on one of them alone they would choose differently from then on.
 */
static bool allocate(struct pmpi_comm *comm, bool measured)
{
	int good, all = 0;

	comm->peers = calloc((size_t)comm->size, sizeof(*comm->peers));
	if (measured)
		comm->choose = calloc(1, sizeof(*comm->choose));
	good = comm->peers && (comm->choose || !measured) && has_descriptors();
	return PMPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, comm->mpi) == MPI_SUCCESS && all;
}

/* All ranks succeed, or none. */
static void create(struct pmpi_comm *comm, bool measured)
{
	const struct swingcoll_bootstrap boot = {
		.rank = comm->rank,
		.nranks = comm->size,
		.allgather = allgather,
		.arg = comm,
	};
	const struct swingcoll_comm_opts opts = {
		.timeout_ms = CREATE_MS,
		.op_timeout_ms = SWINGCOLL_NO_DEADLINE,
		.flags = SWINGCOLL_EAGER,
		.progress = pmpi_progress,
	};
	bool met;

	if (!allocate(comm, measured))
		goto err;
	if (swingcoll_comm_create_from(&comm->swc, &boot, &opts)) {
		comm->swc = NULL;
		goto err;
	}
	/* If one rank cannot, it leaves: the others notice, and cannot either. */
	if (pmpi_messages_meet(comm->swc, comm->peers, comm->size, &met))
		goto err;
	if (!met) {
		free(comm->peers);
		comm->peers = NULL;
	}
	comm->several_nodes = swingcoll_comm_nodes(comm->swc) > 1;
	return;

err:
	release(comm);
	turn_off(comm, PMPI_WHY_COMM);
}

/* Has the program used it in earnest? All ranks find the same. */
static bool is_earnest(const struct pmpi_comm *comm)
{
	return comm->calls >= EARNEST_CALLS << 2 * comm->patience ||
	       comm->bytes >= (uint64_t)EARNEST_BYTES << 2 * comm->patience;
}

/* How many have been made in vain: the most on any rank. Once for each communicator. */
static void agree_on_patience(struct pmpi_comm *comm)
{
	int n = __atomic_load_n(&wasted, __ATOMIC_RELAXED), most = 0;

	comm->has_patience = true;
	if (PMPI_Allreduce(&n, &most, 1, MPI_INT, MPI_MAX, comm->mpi) == MPI_SUCCESS)
		comm->patience = most;
}

bool pmpi_comm_ready(struct pmpi_comm *comm, uint64_t bytes, bool create_it)
{
	bool measured = pmpi_world.min == PMPI_MEASURE;

	if (comm->swc)
		return true;
	if (comm->off)
		return false;
	comm->calls++;
	comm->bytes += bytes;
	/* Without bytes: their number is not known, and may be less than the least. */
	if (!create_it || ((measured || (pmpi_world.min && !bytes)) && !is_earnest(comm)))
		return false;
	if (measured && !comm->has_patience) {
		agree_on_patience(comm);
		if (!is_earnest(comm))
			return false;
	}
	comm->made_ns = now_ns();
	create(comm, pmpi_world.min);
	comm->cost_ns = now_ns() - comm->made_ns;
	return comm->swc;
}

/* ---- slots ---- */

static struct pmpi_comm *make_slot(const struct pmpi_comm *comm)
{
	struct pmpi_comm *slot = calloc(1, sizeof(*slot));

	if (slot) {
		slot->mpi = comm->mpi;
		slot->refs = 1;
		slot->rank = comm->rank;
		slot->size = comm->size;
	}
	return slot;
}

/*
 * As bits. If one could not be created, no other is made: the reason, such as a quota, stays. Those that are
 * there are used on.
 */
static uint64_t find_free_slots(struct pmpi_comm *comm)
{
	bool refused = false;
	uint64_t found = 0;

	for (int i = 0; i < PMPI_SLOTS; i++) {
		struct pmpi_comm *slot = comm->slots[i];

		if (!slot)
			slot = comm->slots[i] = make_slot(comm);
		if (!slot)
			continue;
		refused |= slot->off;
		if (slot->off || (refused && !slot->swc))
			continue;
		if (__atomic_load_n(&slot->refs, __ATOMIC_ACQUIRE) == 1)
			found |= UINT64_C(1) << i;
	}
	return found;
}

int pmpi_comm_find_slot(struct pmpi_comm *comm, struct pmpi_comm **slot)
{
	uint64_t found = find_free_slots(comm);
	struct pmpi_comm *first;
	int error;

	*slot = NULL;
	while ((error = swingcoll_allreduce(&found, &found, 1, SWINGCOLL_U64, SWINGCOLL_BAND,
					    comm->swc)) == -EAGAIN)
		pmpi_progress(NULL);
	if (error || !found)
		return error;
	first = comm->slots[__builtin_ctzll(found)];
	if (!first->swc)
		create(first, false);
	if (first->swc)
		*slot = first;
	return 0;
}

/* ---- end ---- */

static void leave(struct pmpi_comm *comm)
{
	pmpi_memos_forget(comm->mpi);
	swingcoll_comm_destroy(comm->swc);
	comm->swc = NULL;
	turn_off(comm, PMPI_WHY_OFF);
}

void pmpi_comm_exit(void)
{
	for (int i = 0; i < BUCKETS; i++)
		for (struct entry *e = buckets[i]; e; e = e->next) {
			if (e->mpi == MPI_COMM_NULL)
				continue;
			for (int k = 0; k < PMPI_SLOTS; k++)
				if (e->comm->slots[k])
					leave(e->comm->slots[k]);
			leave(e->comm);
		}
}

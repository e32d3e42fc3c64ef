// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Communicators: creation, destruction, abort. Creation and destruction belong to one thread; calls
 * in between may come from many, see coll.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "src/agree/consensus.h"
#include "src/api/for_overlap.h"
#include "src/env_names.h"
#include "src/files.h"
#include "src/priv.h"
#include "src/shm/caches.h"
#include "kmod/core/reduce.h"

/*
 * Through the slots every rank reads the contributions of all, so a size that pays for two ranks
 * does not pay for many: this is the sum of all contributions.
 */
#define DEFAULT_SLOT_TOTAL (128 << 10)

#define STATE_BYTES 4096
/* A rank that may not have what a communicator is charged tries so often, 10 ms apart. */
#define CHARGE_TRIES 10

_Static_assert(SWINGCOLL_ANY_USER == SWC_COMM_F_ANY_USER, "flags are the kernel's");
_Static_assert(SWINGCOLL_ALLOW_REORDER == SWC_COMM_F_ALLOW_REORDER, "flags are the kernel's");
_Static_assert(SWINGCOLL_URGENT == SWC_COMM_F_URGENT, "flags are the kernel's");
/* Flags that the kernel does not know. */
#define OWN_FLAGS (SWINGCOLL_TRY_URGENT | SWINGCOLL_SPARSE_AUTO | SWINGCOLL_EAGER)
_Static_assert(!(OWN_FLAGS & SWC_COMM_F_ALL), "the kernel has other flags");
_Static_assert(SWINGCOLL_ID_BYTES == SWC_ID_BYTES, "ids are the kernel's");
_Static_assert(SWC_POOL >= SWC_MAX_INFLIGHT, "each operation in flight needs a request");

static pthread_once_t once = PTHREAD_ONCE_INIT;

SWC_PUBLIC const char *swingcoll_version(void)
{
	return SWINGCOLL_VERSION;
}

SWC_PUBLIC int swingcoll_unique_id(struct swingcoll_id *id)
{
	int saved = errno, ret = 0;

	if (!id)
		return -EINVAL;
	if (getrandom(id->bytes, sizeof(id->bytes), 0) != (ssize_t)sizeof(id->bytes))
		ret = -errno;
	errno = saved;
	return ret;
}

/* ---- the kernel's part of the slots ---- */

static int slot_wait(void *arg, uint32_t offset, uint32_t value, uint32_t timeout_ms, int suspect,
		     uint32_t waited_ms)
{
	struct swingcoll_comm *comm = arg;
	struct swc_slot_wait w = { .comm = comm->handle,
				   .offset = offset,
				   .value = value,
				   .timeout_ms = timeout_ms,
				   .suspect = suspect,
				   .waited_ms = waited_ms };

	return swc_context_ioctl(comm->ctx, SWC_IOC_SLOT_WAIT, &w);
}

static void slot_wake(void *arg)
{
	struct swingcoll_comm *comm = arg;
	struct swc_slot_wake w = { .comm = comm->handle };

	swc_context_ioctl(comm->ctx, SWC_IOC_SLOT_WAKE, &w);
}

/* The module tells the other ranks why; if another error was first, only this rank is told. */
static int slot_fail(void *arg, int error, uint32_t other)
{
	struct swingcoll_comm *comm = arg;
	struct swc_comm_ref ref = { .comm = comm->handle,
				    .error = (uint32_t)-error,
				    .other = other + 1 };

	swc_context_ioctl(comm->ctx, SWC_IOC_COMM_ABORT, &ref);
	return error;
}

static const struct swc_slots_env kernel_slots = { .wait = slot_wait,
						   .wake = slot_wake,
						   .fail = slot_fail };

/* ---- creation ---- */

int swc_comm_check_opts(const struct swingcoll_comm_opts *o, char *text, size_t size)
{
	static const struct swingcoll_comm_opts zero;
	uint32_t unknown = o ? o->flags & ~(SWC_COMM_F_ALL | OWN_FLAGS) : 0;

	if (!o)
		return 0;
	if (unknown)
		snprintf(text, size, "options: flags has %#x, which is no flag of this version",
			 unknown);
	else if (o->slot_max < -1)
		snprintf(text, size, "options: slot_max %lld: give -1, 0 or a size",
			 (long long)o->slot_max);
	else if (o->use_io_uring < -1 || o->use_io_uring > 1)
		snprintf(text, size, "options: use_io_uring %d: give -1, 0 or 1", o->use_io_uring);
	else if (o->reserved0 || memcmp(o->reserved, zero.reserved, sizeof(zero.reserved)))
		snprintf(
			text, size,
			"options: a reserved field is not 0: set all of the struct to 0 before its fields");
	else
		return 0;
	return -EINVAL;
}

/*
 * Largest contribution that goes through the slots. Options that name an algorithm get it for small
 * messages too, unless they ask for slots as well.
 */
static uint64_t slot_max(const struct swingcoll_comm *comm, const struct swingcoll_comm_opts *o)
{
	int64_t want = o ? o->slot_max : 0;

	if (want < 0 || (!want && comm->plans.pick != SWC_PICK_AUTO) ||
	    !(comm->ctx->info.features & SWC_FEATURE_SLOTS) || comm->nranks != comm->nlocal ||
	    comm->nranks > SWC_MAX_LOCAL_RANKS)
		return 0;
	if (!want)
		want = DEFAULT_SLOT_TOTAL / comm->nranks;
	return want > SWC_MAX_SLOT_BYTES ? SWC_MAX_SLOT_BYTES : (uint64_t)want;
}

/*
 * Its memory, and the communicator itself, are charged to the rank that comes first. If that may not have
 * them, another one may, and would wait for it until the deadline: so it tries again for a while, and joins.
 * Besides, what has been freed just now is charged a little longer.
 */
static bool may_try_again(int ret, unsigned int *tries)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	if ((ret != -EDQUOT && ret != -ENOMEM) || !*tries)
		return false;
	--*tries;
	nanosleep(&pause, NULL);
	return true;
}

static int create_in_kernel(struct swingcoll_comm *comm, const struct swingcoll_id *id,
			    uint32_t timeout_ms, uint32_t join_ms, const struct swc_place *place,
			    char *why, size_t why_bytes)
{
	struct swc_comm_create c = {
		.nranks = comm->nranks,
		.rank = comm->rank,
		.flags = comm->flags & SWC_COMM_F_ALL,
		.timeout_ms = timeout_ms,
		.slot_bytes = (uint32_t)comm->slots.bytes,
	};
	bool try_urgent = comm->flags & SWINGCOLL_TRY_URGENT && !(comm->flags & SWINGCOLL_URGENT);
	unsigned int tries = comm->nlocal > 1 ? CHARGE_TRIES : 0;
	int ret;

	if (try_urgent)
		c.flags |= SWC_COMM_F_URGENT;
	memcpy(c.id, id->bytes, sizeof(c.id));
	if (place) {
		c.nnodes = place->nnodes;
		c.rank_node = (uintptr_t)place->rank_node;
		c.paths = (uintptr_t)place->paths;
		c.npaths = place->npaths;
	}
	for (;;) {
		c.join_ms = join_ms;
		ret = swc_context_ioctl(comm->ctx, SWC_IOC_COMM_CREATE, &c);
		if (ret == -EPERM && try_urgent) {
			/* The kernel has refused before it did anything. */
			c.flags &= ~SWC_COMM_F_URGENT;
			try_urgent = false;
		} else if (ret != -EINTR && !may_try_again(ret, &tries)) {
			break;
		}
	}
	comm->handle = c.comm;
	if (ret == -ETIMEDOUT && c.njoined)
		snprintf(why, why_bytes,
			 "%u of %u ranks of this node joined within %u ms: rank %u %s", c.njoined,
			 comm->nlocal, join_ms ? join_ms : timeout_ms, c.missing,
			 comm->nlocal - c.njoined > 1 ? "and others did not" : "did not");
	return ret;
}

static int leave(struct swingcoll_comm *comm)
{
	struct swc_comm_ref ref = { .comm = comm->handle };

	return swc_context_ioctl(comm->ctx, SWC_IOC_COMM_LEAVE, &ref);
}

static int map(struct swingcoll_comm *comm)
{
	void *slots;
	int ret;

	comm->state = swc_context_mmap(comm->ctx, SWC_MMAP_STATE(comm->handle), STATE_BYTES, false);
	if (!comm->state)
		return -ENOMEM;
	comm->plans.choices.ncpus = comm->state->ncpus;
	/* Looking takes time: only where it can matter. */
	if (comm->nranks == comm->nlocal && comm->nranks >= SWC_CACHES_MIN_RANKS &&
	    comm->nranks <= SWC_MAX_LOCAL_RANKS && comm->nranks <= comm->state->ncpus)
		comm->plans.choices.ngroups = swc_caches_groups("/sys", comm->state->cpus,
								comm->nranks);
	if (!comm->slots.bytes)
		return 0;
	slots = swc_context_mmap(comm->ctx, SWC_MMAP_SLOTS(comm->handle), comm->slots.bytes, true);
	if (!slots)
		return -ENOMEM;
	comm->slots.state = comm->state;
	comm->slots.env = &kernel_slots;
	comm->slots.arg = comm;
	ret = swc_slots_attach(&comm->slots, slots);
	if (ret)
		swc_context_munmap(slots, comm->slots.bytes);
	return ret;
}

static void unmap(struct swingcoll_comm *comm, void *slots)
{
	swc_context_munmap(slots, comm->slots.bytes);
	swc_context_munmap((void *)comm->state, STATE_BYTES);
}

static int open_submitter(struct swingcoll_comm *comm, int use_io_uring)
{
	int ret = -ENOSYS;

	if (use_io_uring >= 0) {
		comm->submit = &swc_submit_uring;
		ret = comm->submit->open(comm);
	}
	/*
	 * io_uring does not exist, is forbidden (sysctl, seccomp), or hits a locked-memory limit of
	 * old kernels.
	 */
	if (ret && use_io_uring <= 0) {
		comm->submit = &swc_submit_ioctl;
		ret = comm->submit->open(comm);
	}
	return ret;
}

static void *copy_of(const void *from, size_t bytes, bool *good)
{
	void *copy = malloc(bytes);

	*good &= !!copy;
	return copy ? memcpy(copy, from, bytes) : NULL;
}

/* Copy where the ranks are, for error texts and swingcoll_comm_shrink(); freed with @comm in any case. */
static int keep_place(struct swingcoll_comm *comm, const struct swc_place *place)
{
	struct swc_place *kept = &comm->place;
	bool good = true;

	*kept = *place;
	kept->rank_node = copy_of(place->rank_node, comm->nranks * sizeof(*place->rank_node),
				  &good);
	kept->paths = copy_of(place->paths, place->npaths * sizeof(*place->paths), &good);
	kept->host = copy_of(place->host, place->nnodes * sizeof(*place->host), &good);
	kept->pid = copy_of(place->pid, comm->nranks * sizeof(*place->pid), &good);
	return good ? 0 : -ENOMEM;
}

static void free_place(struct swingcoll_comm *comm)
{
	free((void *)comm->place.rank_node);
	free((void *)comm->place.paths);
	free((void *)comm->place.host);
	free((void *)comm->place.pid);
}

static void free_comm(struct swingcoll_comm *comm)
{
	if (comm->attached)
		comm->release(comm->attached);
	pthread_mutex_destroy(&comm->order);
	pthread_mutex_destroy(&comm->text_lock);
	pthread_mutex_destroy(&comm->agreeing);
	swc_plans_free(&comm->plans);
	free_place(comm);
	swc_peers_free(&comm->peers);
	free(comm->gone);
	for (int i = 0; i < SWC_POOL; i++)
		free(comm->req[i].counts);
	free(comm);
}

static int opts_check(const struct swingcoll_comm_opts *opts, int nranks, char *text, size_t size)
{
	struct swc_plans *plans;
	int ret;

	if (size)
		*text = 0;
	ret = swc_comm_check_opts(opts, text, size);
	if (ret)
		return ret;
	if (nranks < 1 || nranks > SWC_MAX_RANKS) {
		snprintf(text, size, "%d ranks: a communicator has 1 to %d", nranks, SWC_MAX_RANKS);
		return -EINVAL;
	}
	plans = calloc(1, sizeof(*plans));
	if (!plans) {
		snprintf(text, size, "out of memory");
		return -ENOMEM;
	}
	ret = swc_plans_init(plans, opts, (uint32_t)nranks, (uint32_t)nranks, text, size);
	/* Otherwise the file is read by the first collective. */
	if (!ret && plans->pick == SWC_PICK_FILE)
		ret = swc_file_plan_readable(plans->file, text, size);
	swc_plans_free(plans);
	free(plans);
	return ret;
}

SWC_PUBLIC int swingcoll_opts_check(const struct swingcoll_comm_opts *opts, int nranks, char *text,
				    size_t size)
{
	int saved = errno, ret = opts_check(opts, nranks, text, size);

	errno = saved;
	return ret;
}

/* Is this the lowest rank of its node? */
static bool is_first_here(const struct swc_place *place, int rank)
{
	if (!place)
		return !rank;
	for (int r = 0; r < rank; r++)
		if (place->rank_node[r] == place->rank_node[rank])
			return false;
	return true;
}

static int check_args(struct swingcoll_comm **out, const struct swingcoll_id *id, int nranks,
		      int rank, const struct swingcoll_comm_opts *opts, char *why, size_t why_bytes)
{
	if (out)
		*out = NULL;
	if (!out || !id)
		snprintf(why, why_bytes, "%s is NULL", out ? "id" : "the address for comm");
	else if (nranks < 1 || nranks > SWC_MAX_RANKS)
		snprintf(why, why_bytes, "%d ranks: a communicator has 1 to %d", nranks,
			 SWC_MAX_RANKS);
	else if (rank < 0 || rank >= nranks)
		snprintf(why, why_bytes, "rank %d: give 0 to %d", rank, nranks - 1);
	else
		return swc_comm_check_opts(opts, why, why_bytes);
	return -EINVAL;
}

/* What agreements need. */
static int prepare_agreements(struct swingcoll_comm *comm)
{
	comm->gone = calloc(swc_set_words(comm->nranks), sizeof(*comm->gone));
	if (!comm->gone)
		return -ENOMEM;
	if (comm->peers.ep)
		return 0;
	return swc_peers_init(&comm->peers, comm->id.bytes, comm->nranks, comm->rank, NULL, NULL);
}

int swc_comm_create(struct swingcoll_comm **out, const struct swingcoll_id *id, int nranks,
		    int rank, const struct swingcoll_comm_opts *opts, uint32_t join_ms,
		    const struct swc_place *place, struct swc_peers *peers, char *why,
		    size_t why_bytes)
{
	uint32_t timeout_ms = opts && opts->timeout_ms ? opts->timeout_ms : SWC_DEFAULT_TIMEOUT_MS;
	struct swingcoll_comm *comm;
	void *slots;
	int ret = check_args(out, id, nranks, rank, opts, why, why_bytes);

	if (ret)
		goto err_peers;
	pthread_once(&once, swc_reduce_init);
	swc_debug_init();
	/* Ranks of a node mostly have the same environment: one of them tells. */
	if (is_first_here(place, rank))
		swc_env_warn();
	comm = calloc(1, sizeof(*comm));
	if (!comm) {
		ret = -ENOMEM;
		goto err_peers;
	}
	if (peers) {
		comm->peers = *peers;
		*peers = (struct swc_peers){ 0 };
	}
	comm->nranks = (uint32_t)nranks;
	comm->rank = (uint32_t)rank;
	comm->nnodes = place ? place->nnodes : 1;
	comm->nlocal = place ? place->nlocal : comm->nranks;
	comm->flags = opts ? opts->flags : 0;
	comm->sparse_auto = comm->flags & SWINGCOLL_SPARSE_AUTO;
	comm->id = *id;
	pthread_mutex_init(&comm->order, NULL);
	pthread_mutex_init(&comm->text_lock, NULL);
	pthread_mutex_init(&comm->agreeing, NULL);
	for (int i = 0; i < SWC_POOL; i++)
		comm->req[i].comm = comm;
	ret = place ? keep_place(comm, place) : 0;
	if (!ret)
		ret = prepare_agreements(comm);
	if (!ret)
		ret = swc_plans_init(&comm->plans, opts, comm->nranks, comm->nlocal, why,
				     why_bytes);
	if (ret)
		goto err_free;
	if (place)
		comm->plans.choices.connections = place->conns;
	ret = swc_context_get(&comm->ctx);
	if (ret)
		goto err_free;
	comm->slot_max = slot_max(comm, opts);
	if (comm->slot_max) {
		swc_slots_plan(&comm->slots, comm->nranks, comm->rank, comm->slot_max);
		comm->slot_max = comm->slots.max_bytes;
	}
	comm->timeout_ms = timeout_ms;
	if (opts) {
		comm->op_timeout_ms = opts->op_timeout_ms;
		comm->hook = (struct swc_wait_hook){ .call = opts->progress,
						     .arg = opts->progress_arg };
	}
	comm->slots.timeout_ms = comm->op_timeout_ms ? comm->op_timeout_ms : timeout_ms;
	comm->slots.hook = opts && opts->progress ? &comm->hook : NULL;
	comm->slots.eager = comm->flags & SWINGCOLL_EAGER;

	ret = create_in_kernel(comm, id, timeout_ms, join_ms, place, why, why_bytes);
	if (ret)
		goto err_put;
	ret = map(comm);
	slots = comm->slots.base;
	/* The other ranks have the communicator, and without the slots nothing would tell them in time. */
	if (ret == -ENOMEM)
		swingcoll_comm_abort(comm);
	if (ret)
		goto err_unmap;
	ret = open_submitter(comm, opts ? opts->use_io_uring : 0);
	if (ret)
		goto err_unmap;
	swc_context_link(comm);
	*out = comm;
	return 0;

err_unmap:
	leave(comm);
	swc_slots_leave(&comm->slots);
	unmap(comm, slots);
err_put:
	swc_context_put(comm->ctx);
err_free:
	free_comm(comm);
	return ret;
err_peers:
	if (peers)
		swc_peers_free(peers);
	return ret;
}

SWC_PUBLIC int swingcoll_comm_create(struct swingcoll_comm **out, const struct swingcoll_id *id,
				     int nranks, int rank, const struct swingcoll_comm_opts *opts)
{
	char why[SWC_TEXT_BYTES] = "";
	int saved = errno;
	int ret = swc_comm_create(out, id, nranks, rank, opts, 0, NULL, NULL, why, sizeof(why));

	errno = saved;
	if (!ret)
		return swingcoll_bootstrap_fail(0, "%s", "");
	return swingcoll_bootstrap_fail(ret, "%s", *why ? why : swingcoll_strerror(ret));
}

/* ---- destruction ---- */

/*
 * Wait for all requests, collected or not. Operations in the caller's own io_uring are not known
 * here.
 */
static int drain(struct swingcoll_comm *comm)
{
	int ret = swc_reaper_push(comm->reaper);

	for (int i = 0; !ret && i < SWC_POOL; i++)
		if (__atomic_load_n(&comm->busy, __ATOMIC_ACQUIRE) >> i & 1)
			ret = swc_reaper_wait(comm->reaper, &comm->req[i], &comm->hook);
	return ret;
}

/* The kernel refuses to leave while operations are in flight; they end by their deadline. */
static int leave_when_idle(struct swingcoll_comm *comm)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint32_t tries = comm->slots.timeout_ms;
	int ret;

	while ((ret = leave(comm)) == -EBUSY && tries--)
		nanosleep(&pause, NULL);
	return ret;
}

SWC_PUBLIC int swingcoll_comm_destroy(struct swingcoll_comm *comm)
{
	int saved = errno, ret = 0, left;
	void *slots;

	if (!comm)
		return 0;
	slots = comm->slots.base;
	if (!comm->forked) {
		if (comm->settle)
			comm->settle(comm->attached);
		ret = drain(comm);
		/*
		 * Leave in the kernel first, then in the slots: a rank that learns from the slots
		 * that this one has left, and turns to the kernel, must find that the kernel knows.
		 */
		left = leave_when_idle(comm);
		swc_slots_leave(&comm->slots);
		if (!ret)
			ret = left;
		unmap(comm, slots);
		swc_context_unlink(comm);
	}
	comm->submit->close(comm);
	swc_context_put(comm->ctx);
	free_comm(comm);
	errno = saved;
	return ret;
}

SWC_PUBLIC int swingcoll_comm_abort(struct swingcoll_comm *comm)
{
	struct swc_comm_ref ref = { 0 };

	if (!comm)
		return -EINVAL;
	if (comm->forked)
		return -EBADF;
	ref.comm = comm->handle;
	return swc_context_ioctl(comm->ctx, SWC_IOC_COMM_ABORT, &ref);
}

SWC_PUBLIC int swingcoll_comm_rank(const struct swingcoll_comm *comm)
{
	return (int)comm->rank;
}

SWC_PUBLIC int swingcoll_comm_size(const struct swingcoll_comm *comm)
{
	return (int)comm->nranks;
}

SWC_PUBLIC int swingcoll_comm_nodes(const struct swingcoll_comm *comm)
{
	return (int)comm->nnodes;
}

SWC_PUBLIC int swingcoll_comm_rank_node(const struct swingcoll_comm *comm, int rank)
{
	if (rank < 0 || (uint32_t)rank >= comm->nranks)
		return -EINVAL;
	return comm->place.rank_node ? (int)comm->place.rank_node[rank] : 0;
}

SWC_PUBLIC int swingcoll_comm_topo(const struct swingcoll_comm *comm, char *text, size_t size)
{
	return swc_topo_format(&comm->plans.topo, text, size);
}

uint32_t swc_comm_local_ranks(const struct swingcoll_comm *comm)
{
	return comm->nlocal;
}

uint64_t swc_engine_bytes(const struct swingcoll_comm *comm)
{
	uint64_t v[SWC_STAT_NR] = { 0 };
	struct swc_stats stats = { .max = SWC_STAT_NR, .values = (uintptr_t)v };

	return swc_context_ioctl(comm->ctx, SWC_IOC_STATS, &stats) ? 0 : v[SWC_STAT_DMA_BYTES];
}

void swc_comm_sparse_note(const struct swingcoll_comm *comm, uint64_t bytes, uint64_t reduced)
{
	struct swc_sparse_note note = { .comm = comm->handle,
					.bytes = bytes,
					.reduced_bytes = reduced };

	swc_context_ioctl(comm->ctx, SWC_IOC_SPARSE_NOTE, &note);
}

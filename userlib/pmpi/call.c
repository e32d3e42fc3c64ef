// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A collective call: who carries it out, and the blocking ones. The order of the checks is that of
 * their cost: a call that is left to MPI costs a few comparisons.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "pmpi/pmpi.h"
#include "pmpi/settings.h"

/*
 * Nonblocking calls cannot be measured, for nobody knows what the program does meanwhile. Through
 * the kernel they cost some system calls: from this size on that is little.
 */
#define NONBLOCKING_LEAST (64 << 10)
/* MPI's scans move fewer bytes, in more steps: with more than so many in all they are MPI's. */
#define MOST_PREFIXES (512 << 10)
/* So often may a rank's buffer be refused before the communicator is left to MPI. */
#define MAX_REFUSED 4

uint64_t pmpi_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

#define COLLS (SWINGCOLL_SCATTER + 1)
_Static_assert(3 * COLLS <= CHOOSE_PREFIXES,
	       "each collective has classes for each way to give shares");

/* ---- decision ---- */

static bool pass(const struct pmpi_call *c, enum pmpi_reason why)
{
	pmpi_count_fallback(c->name, why);
	return false;
}

/*
 * Likewise, for a reason that stays as long as the handles mean the same. Derived types may be freed,
 * and others get their handles, which only matters if something is offloaded at all.
 */
static bool pass_always(const struct pmpi_call *c, enum pmpi_reason why)
{
	/* Calls before MPI_Init(), which are errors, say nothing of later ones. */
	if (pmpi_world.size &&
	    (!pmpi_world.active || why == PMPI_WHY_OFF || pmpi_type_find(c->recv_type)))
		pmpi_remember(c, false, &pmpi_counts[c->name].fallback[why]);
	return pass(c, why);
}

struct pmpi_shares pmpi_shares(MPI_Comm mpi, const int *counts, const MPI_Count *large_counts)
{
	struct pmpi_shares s = { PMPI_SHARES_EQUAL, 0 };
	uint64_t n = (uint64_t)pmpi_comm_size(mpi), sum = 0;
	bool negative = false;

	for (uint64_t r = 0; r < n; r++) {
		MPI_Count count = counts ? counts[r] : large_counts[r];

		negative |= count < 0;
		sum += (uint64_t)count;
		if (!r || count > s.largest)
			s.largest = count;
	}
	if (negative)
		s.kind = PMPI_SHARES_APART;
	else if ((uint64_t)s.largest * n != sum)
		s.kind = (uint64_t)s.largest * n < 2 * sum ? PMPI_SHARES_UNEVEN : PMPI_SHARES_APART;
	return s;
}

/* An error, which MPI reports, unless other ranks wait: what the other side of this rank is. */
static bool is_wrong(const struct pmpi_call *c)
{
	if (c->coll == SWINGCOLL_BROADCAST)
		return c->recv == MPI_IN_PLACE;
	return (c->coll == SWINGCOLL_ALLGATHER || c->coll == SWINGCOLL_ALLTOALL) &&
	       !pmpi_is_prefix(c) && !c->tells && c->send != MPI_IN_PLACE &&
	       (c->send_count < 0 || c->send_type == MPI_DATATYPE_NULL);
}

static bool reduces(const struct pmpi_call *c)
{
	return c->coll == SWINGCOLL_ALLREDUCE || c->coll == SWINGCOLL_REDUCE ||
	       c->coll == SWINGCOLL_REDUCE_SCATTER;
}

/* The call in swingcoll's terms. */
static bool translate(struct pmpi_call *c, enum pmpi_reason *why)
{
	const struct pmpi_type *type;
	struct pmpi_op op;
	int n;

	if (c->coll == SWINGCOLL_BARRIER || c->tells)
		return true;
	*why = PMPI_WHY_COUNTS;
	if (c->shares == PMPI_SHARES_APART)
		return false;
	*why = PMPI_WHY_TYPE;
	/* An error, which MPI reports. */
	if (c->recv_count < 0)
		return false;
	if (reduces(c) || pmpi_is_prefix(c)) {
		type = pmpi_type_find(c->recv_type);
		if (!pmpi_op_find(c->op, type, &op, why))
			return false;
		c->dtype = (enum swingcoll_dtype)type->dtype;
		c->redop = op.redop;
		c->logical = op.logical;
		c->count = (size_t)c->recv_count * type->words;
		c->size = (uint64_t)c->recv_count * type->size;
		if (reduces(c))
			return true;
		*why = PMPI_WHY_FUNCTION;
		n = pmpi_comm_size(c->mpi);
		if (n && c->size > MOST_PREFIXES / (uint64_t)n)
			return false;
	}
	if (!pmpi_signature(c->recv_type, c->recv_count, &c->size))
		return false;
	c->dtype = SWINGCOLL_U8;
	c->count = c->size;
	return true;
}

/* Half the limit is left to other calls. */
static bool is_pinnable(const struct pmpi_call *c)
{
	uint64_t shares = 2;

	if (c->coll == SWINGCOLL_ALLGATHER || c->coll == SWINGCOLL_REDUCE_SCATTER ||
	    c->coll == SWINGCOLL_GATHER || c->coll == SWINGCOLL_SCATTER)
		shares = (uint64_t)c->comm->size + 1;
	else if (c->coll == SWINGCOLL_ALLTOALL)
		shares = 2 * (uint64_t)c->comm->size;
	return c->size <= pmpi_world.pinnable / 2 / shares;
}

/*
 * Calls that are in flight at once, on all communicators, are not counted: each rank has others of them at a
 * time, so whether their memory is within the limit would not come out alike. And a refused one could not turn
 * to MPI, whose collectives may have been called meanwhile.
 */
static bool is_unlimited(void)
{
	return pmpi_world.pinnable == UINT64_MAX;
}

/*
 * Arrays of counts have classes of their own: MPI carries these calls out in other ways, and shares
 * that differ are copied here.
 */
static unsigned int coll_class(const struct pmpi_call *c)
{
	unsigned int way = c->counts || c->large_counts ? 1 + (c->shares != PMPI_SHARES_EQUAL) : 0;

	if (c->tells)
		return c->coll == SWINGCOLL_GATHER    ? CHOOSE_GATHERV
		       : c->coll == SWINGCOLL_SCATTER ? CHOOSE_SCATTERV
		       : pmpi_is_alltoallw(c)	      ? CHOOSE_ALLTOALLW
						      : CHOOSE_ALLTOALLV;
	return pmpi_is_prefix(c) ? CHOOSE_PREFIXES : way * COLLS + (unsigned int)c->coll;
}

/* Calls of which nobody knows the size are measured even if a least size is set, unless that is 0. */
static struct choose_class *find_class(const struct pmpi_call *c)
{
	if (!c->comm->choose || (pmpi_world.min != PMPI_MEASURE && !c->tells))
		return NULL;
	return choose_find(c->comm->choose, coll_class(c), c->tells ? 0 : c->size);
}

static bool choose_side(struct pmpi_call *c, enum pmpi_form form)
{
	struct choose_class *k = find_class(c);
	bool trial;

	if (!k)
		return true;
	if (form != PMPI_FORM_BLOCKING && c->tells)
		return k->decided && k->side == CHOOSE_SWC;
	if (form != PMPI_FORM_BLOCKING)
		return c->size >= NONBLOCKING_LEAST && (!k->decided || k->side == CHOOSE_SWC);
	if (choose_next(k, &trial) == CHOOSE_SWC) {
		if (trial)
			c->trial = k;
		return true;
	}
	if (trial) {
		c->trial = k;
		c->began = pmpi_now_ns();
	}
	return false;
}

bool pmpi_decide(struct pmpi_call *c, enum pmpi_form form)
{
	enum pmpi_reason why;

	if (__builtin_expect(!pmpi_world.active, 0))
		return pass_always(c, pmpi_world.why);
	if (!(pmpi_world.mask >> c->name & 1))
		return pass_always(c, PMPI_WHY_OFF);
	/*
	 * Such a request ends, or goes on, in any call of MPI's that waits, and so does one that waits until
	 * swingcoll takes it.
	 */
	if (form != PMPI_FORM_BLOCKING && !pmpi_world.engine)
		return pass_always(c, PMPI_WHY_FUNCTION);
	/* Of an intercommunicator's calls, some arguments must not be looked at. */
	c->comm = pmpi_comm_find(c->mpi);
	if (!c->comm)
		return pass(c, PMPI_WHY_COMM);
	if (c->comm->off)
		return pass_always(c, c->comm->why);
	if (is_wrong(c))
		return pass(c, PMPI_WHY_TYPE);
	if (!translate(c, &why))
		return pass_always(c, why);
	if (form != PMPI_FORM_BLOCKING && c->coll != SWINGCOLL_BARRIER && !is_unlimited())
		return pass_always(c, PMPI_WHY_REFUSED);
	if ((int64_t)c->size < pmpi_world.min && !c->tells)
		return pass_always(c, PMPI_WHY_SMALL);
	/* An error, which MPI reports. */
	if (c->root < 0 || c->root >= c->comm->size)
		return pass(c, PMPI_WHY_COUNTS);
	if (!is_pinnable(c))
		return pass_always(c, PMPI_WHY_REFUSED);
	if (!pmpi_comm_ready(c->comm, c->size, form != PMPI_FORM_NONBLOCKING))
		return pass(c, c->comm->off ? c->comm->why : PMPI_WHY_TRIAL);
	if (form != PMPI_FORM_BLOCKING && c->tells && !c->comm->peers)
		return pass_always(c, PMPI_WHY_COMM);
	if (choose_side(c, form))
		return true;
	if (c->trial)
		return pass(c, PMPI_WHY_TRIAL);
	/* What blocking calls will say of the others is not known yet. */
	return c->tells && form != PMPI_FORM_BLOCKING ? pass(c, PMPI_WHY_SMALL)
						      : pass_always(c, PMPI_WHY_SMALL);
}

void pmpi_told(struct pmpi_call *c, uint64_t largest)
{
	struct choose_class *k = find_class(c);

	c->size = largest;
	if (k)
		choose_told(k, largest);
}

void pmpi_wait_for_queue(const struct pmpi_call *c)
{
	while (__builtin_expect(__atomic_load_n(&c->comm->queue, __ATOMIC_ACQUIRE) != NULL, 0))
		pmpi_progress(NULL);
}

/* ---- trials ---- */

static void sampled(struct pmpi_call *c)
{
	double sums[CHOOSE_SIDES];
	int error;

	if (!choose_sample(c->trial, pmpi_now_ns() - c->began))
		return;
	choose_times(c->trial, sums);
	pmpi_wait_for_queue(c);
	do {
		error = swingcoll_allreduce(sums, sums, CHOOSE_SIDES, SWINGCOLL_F64, SWINGCOLL_SUM,
					    c->comm->swc);
		if (error == -EAGAIN)
			pmpi_progress(NULL);
	} while (error == -EAGAIN);
	/* The next call that swingcoll carries out fails as well, and reports it. */
	if (error)
		sums[CHOOSE_SWC] = sums[CHOOSE_MPI] = 0;
	choose_decide(c->trial, sums, c->comm->size);
}

void pmpi_passed_trial(struct pmpi_call *c)
{
	sampled(c);
}

/* ---- blocking calls ---- */

static int run(const struct pmpi_call *c, const struct pmpi_stage *st)
{
	struct swingcoll_comm *swc = c->comm->swc;

	switch (c->coll) {
	case SWINGCOLL_ALLREDUCE:
		return swingcoll_allreduce(st->send, st->recv, c->count, c->dtype, c->redop, swc);
	case SWINGCOLL_REDUCE_SCATTER:
		return swingcoll_reduce_scatter(st->send, st->recv, c->count, c->dtype, c->redop,
						swc);
	case SWINGCOLL_REDUCE:
		return swingcoll_reduce(st->send, st->recv, c->count, c->dtype, c->redop, c->root,
					swc);
	case SWINGCOLL_ALLGATHER:
		return swingcoll_allgather(st->send, st->recv, c->count, c->dtype, swc);
	case SWINGCOLL_BROADCAST:
		return swingcoll_broadcast(st->send, st->recv, c->count, c->dtype, c->root, swc);
	case SWINGCOLL_ALLTOALL:
		return swingcoll_alltoall(st->send, st->recv, c->count, c->dtype, swc);
	case SWINGCOLL_GATHER:
		return swingcoll_gather(st->send, st->recv, c->count, c->dtype, c->root, swc);
	case SWINGCOLL_SCATTER:
		return swingcoll_scatter(st->send, st->recv, c->count, c->dtype, c->root, swc);
	case SWINGCOLL_BARRIER:
		return swingcoll_barrier(swc);
	}
	return -EINVAL;
}

int pmpi_start(const struct pmpi_call *c, const struct pmpi_stage *st, struct swingcoll_req **req)
{
	struct swingcoll_comm *swc = c->comm->swc;

	switch (c->coll) {
	case SWINGCOLL_ALLREDUCE:
		return swingcoll_iallreduce(st->send, st->recv, c->count, c->dtype, c->redop, swc,
					    req);
	case SWINGCOLL_REDUCE_SCATTER:
		return swingcoll_ireduce_scatter(st->send, st->recv, c->count, c->dtype, c->redop,
						 swc, req);
	case SWINGCOLL_REDUCE:
		return swingcoll_ireduce(st->send, st->recv, c->count, c->dtype, c->redop, c->root,
					 swc, req);
	case SWINGCOLL_ALLGATHER:
		return swingcoll_iallgather(st->send, st->recv, c->count, c->dtype, swc, req);
	case SWINGCOLL_BROADCAST:
		return swingcoll_ibroadcast(st->send, st->recv, c->count, c->dtype, c->root, swc,
					    req);
	case SWINGCOLL_ALLTOALL:
		return swingcoll_ialltoall(st->send, st->recv, c->count, c->dtype, swc, req);
	case SWINGCOLL_GATHER:
		return swingcoll_igather(st->send, st->recv, c->count, c->dtype, c->root, swc, req);
	case SWINGCOLL_SCATTER:
		return swingcoll_iscatter(st->send, st->recv, c->count, c->dtype, c->root, swc,
					  req);
	case SWINGCOLL_BARRIER:
		return swingcoll_ibarrier(swc, req);
	}
	return -EINVAL;
}

/*
 * The kernel looks at all buffers before anything moves: if it cannot have one (read-only memory, a
 * file, the limit of locked memory, or for its own scratch memory that of the user), every rank gets
 * one of these errors, and all turn to MPI. On several nodes that is the end of swingcoll's
 * communicator.
 */
bool pmpi_was_refused(struct pmpi_call *c, int error)
{
	if (error != -EFAULT && error != -ENOMEM && error != -EDQUOT && error != -ECANCELED)
		return false;
	if (++c->comm->refused >= MAX_REFUSED || c->comm->several_nodes) {
		c->comm->why = PMPI_WHY_REFUSED;
		c->comm->off = true;
		pmpi_memos_forget(c->mpi);
	}
	return true;
}

int pmpi_error_class(const struct pmpi_call *c, int error)
{
	char text[512];
	int class = MPI_ERR_OTHER;

	if (error == -ENOMEM)
		class = MPI_ERR_NO_MEM;
	else if (error == -EINVAL)
		class = MPI_ERR_ARG;
#ifdef MPIX_ERR_PROC_FAILED
	/* The latter in calls that come after the death: nothing else aborts a communicator of the library's. */
	else if (error == -ECONNRESET || error == -ECONNABORTED)
		class = MPIX_ERR_PROC_FAILED;
#endif
	if (!swingcoll_comm_error(c->comm->swc, text, sizeof(text), NULL))
		snprintf(text, sizeof(text), "%s", swingcoll_strerror(error));
	fprintf(stderr, "swingcoll-pmpi: rank %d: %s: %s\n", pmpi_world.rank, pmpi_names[c->name],
		text);
	return class;
}

int pmpi_error(const struct pmpi_call *c, int error)
{
	int class = error < 0 ? pmpi_error_class(c, error) : error;

	PMPI_Comm_call_errhandler(c->mpi, class);
	return class;
}

/*
 * Does the next such call go to swingcoll, too, without a look at anything but its buffers and arrays? Then
 * nothing but the shares of an allgather is copied, and swingcoll counts the elements in 32 bits.
 */
static bool is_repeatable(const struct pmpi_call *c)
{
	return !c->keep && !c->logical && (!c->shares || c->coll == SWINGCOLL_ALLGATHER) &&
	       !pmpi_is_prefix(c) && pmpi_type_find(c->recv_type) &&
	       (c->coll == SWINGCOLL_BARRIER || c->count) && c->count <= UINT32_MAX;
}

bool pmpi_offload(struct pmpi_call *c, int *ret)
{
	struct pmpi_stage st = { 0 };
	int error = c->tried < 0 ? c->tried : 0;

	if (!pmpi_decide(c, PMPI_FORM_BLOCKING))
		return false;
	c->keep = c->comm->several_nodes;
	*ret = MPI_SUCCESS;
	if (!error) {
		pmpi_wait_for_queue(c);
		if (c->trial)
			c->began = pmpi_now_ns();
		*ret = pmpi_buffers_begin(&st, c);
		if (*ret != MPI_SUCCESS) {
			pmpi_buffers_end(&st, c, false);
			*ret = pmpi_error(c, *ret);
			return true;
		}
		/* Later calls will do without what has been done so far. */
		if (c->trial && !st.send_copy && !st.recv_copy && is_repeatable(c))
			c->began = pmpi_now_ns();
		/* -EAGAIN: requests that have not been collected. */
		while ((error = run(c, &st)) == -EAGAIN)
			pmpi_progress(NULL);
		*ret = pmpi_buffers_end(&st, c, !error);
	}
	if (!error)
		pmpi_carried_out();
	if (!error && !c->trial && c->tried == PMPI_NEW && is_repeatable(c))
		pmpi_remember(c, true, &pmpi_counts[c->name].offloaded);
	if (c->trial)
		sampled(c);
	c->trial = NULL;
	if (error && pmpi_was_refused(c, error))
		return pass(c, PMPI_WHY_REFUSED);
	pmpi_count(&pmpi_counts[c->name].offloaded);
	if (error || *ret != MPI_SUCCESS)
		*ret = pmpi_error(c, error ? error : *ret);
	return true;
}

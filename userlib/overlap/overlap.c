// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The overlap of an allgather with the product that consumes it: the handle, and the choice of a
 * schedule. Rank 0 decides which schedules are tried. Which one is the fastest follows from times
 * that all ranks share, so that all choose the same.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "overlap/overlap.h"
#include "src/public.h"

#define DEFAULT_TRIALS 3
/* Schedules close to the best get further trials, up to this many times the trials of all. */
#define MORE_TRIALS 5
/* Close: slower by at most this share, divided by the square root of the number of trials. */
#define CLOSE 0.2

/* Is A larger than memory can be? All sizes in bytes fit in a size_t otherwise. */
static bool too_large(const struct swingcoll_overlap *ov, size_t m, size_t k, size_t elem)
{
	return m > SIZE_MAX / 2 || k > SIZE_MAX / 4 / elem / (m + ov->nranks);
}

/* ---- the choice ---- */

static int predict_all(const struct swingcoll_overlap *ov, const struct swc_ov_shape *s,
		       enum swingcoll_dtype dtype, double *time_s)
{
	time_s[SWINGCOLL_OVERLAP_AUTO] = 0;
	if (!ov->known || dtype != ov->dtype)
		return -ENODATA;
	for (int i = SWINGCOLL_OVERLAP_SERIAL; i < SWINGCOLL_OVERLAP_SCHEDULES; i++)
		time_s[i] = swc_ov_predict((enum swingcoll_overlap_schedule)i, s, &ov->figures);
	return 0;
}

/*
 * All ranks take rank 0's list: the model's arithmetic may differ between machines in the last
 * bits.
 */
static int ask_rank_0(struct swingcoll_overlap *ov, struct swc_ov_learned *l)
{
	struct swc_ov_shape s = swc_ov_shape_of(ov, l->m, l->n, l->k,
						swingcoll_dtype_size(l->dtype));
	double time_s[SWINGCOLL_OVERLAP_SCHEDULES];
	uint8_t list[SWINGCOLL_OVERLAP_SCHEDULES] = { 0 };
	int ret;

	if (!ov->rank)
		swc_ov_candidates(predict_all(ov, &s, l->dtype, time_s) ? NULL : time_s, list);
	ret = swingcoll_broadcast(list, list, sizeof(list), SWINGCOLL_U8, 0, ov->comm);
	for (unsigned int i = 0; i < sizeof(list) && list[i]; i++)
		l->candidate[l->ncandidates++] = list[i];
	return ret;
}

static int learned_of(struct swingcoll_overlap *ov, const struct swingcoll_overlap_call *call,
		      struct swc_ov_learned **out)
{
	struct swc_ov_learned *l;
	int ret;

	for (l = ov->learned; l; l = l->next)
		if (l->m == call->m && l->n == call->n && l->k == call->k &&
		    l->dtype == call->dtype)
			break;
	*out = l;
	if (l)
		return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->m = call->m;
	l->n = call->n;
	l->k = call->k;
	l->dtype = call->dtype;
	ret = ask_rank_0(ov, l);
	if (ret) {
		free(l);
		return ret;
	}
	l->decided = ov->nranks == 1;
	l->next = ov->learned;
	ov->learned = *out = l;
	return 0;
}

/* Move candidate i to place @to. */
static void keep(struct swc_ov_learned *l, unsigned int i, unsigned int to)
{
	l->candidate[to] = l->candidate[i];
	if (i != to)
		memcpy(l->time[to], l->time[i], sizeof(l->time[to]));
}

/*
 * End a round. Drop the candidates that are far behind the best. Those that remain cost little more
 * than the best, and are tried until they can be told apart.
 */
static void end_round(const struct swingcoll_overlap *ov, struct swc_ov_learned *l)
{
	unsigned int most = MORE_TRIALS * ov->trials, n = 0;
	double median[SWINGCOLL_OVERLAP_SCHEDULES], limit = INFINITY;
	bool last;

	l->turn = 0;
	if (++l->rounds < ov->trials)
		return;
	last = l->rounds >= (most < SWC_OV_TRIALS ? most : SWC_OV_TRIALS);
	/* Medians, because the least time favours a schedule that was lucky once. */
	for (unsigned int i = 0; i < l->ncandidates; i++) {
		median[i] = swc_ov_median(l->time[i], l->rounds);
		limit = fmin(limit, median[i]);
	}
	limit *= last ? 1 : 1 + CLOSE / sqrt(l->rounds);
	for (unsigned int i = 0; i < l->ncandidates; i++)
		if (median[i] <= limit)
			keep(l, i, n++);
	l->ncandidates = n;
	l->decided = last || n == 1;
}

/* Note the longest time of all ranks; a trial in which a consumer failed does not count. */
static int note_trial(struct swingcoll_overlap *ov, struct swc_ov_learned *l, double s,
		      int consumer)
{
	double t = consumer ? INFINITY : s;
	int ret = swingcoll_allreduce(&t, &t, 1, SWINGCOLL_F64, SWINGCOLL_MAX, ov->comm);

	if (ret || isinf(t))
		return ret;
	/* The candidates take turns, so that other load on the machine affects all alike. */
	l->time[l->turn][l->rounds] = t;
	if (++l->turn == l->ncandidates)
		end_round(ov, l);
	return 0;
}

static int check_call(const struct swingcoll_overlap *ov, const struct swingcoll_overlap_call *call)
{
	struct swingcoll_overlap_range own;
	size_t elem;

	if (!ov || !call || !call->consume || !call->m || !call->n || !call->k)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(call->reserved) / sizeof(call->reserved[0]); i++)
		if (call->reserved[i])
			return -EINVAL;
	elem = swingcoll_dtype_size(call->dtype);
	if (!elem || (unsigned int)call->schedule >= SWINGCOLL_OVERLAP_SCHEDULES)
		return -EINVAL;
	if (too_large(ov, call->m, call->k, elem))
		return -EOVERFLOW;
	swingcoll_overlap_rows(call->m, (int)ov->nranks, (int)ov->rank, &own);
	return own.rows && !call->shard ? -EINVAL : 0;
}

SWC_PUBLIC int swingcoll_overlap_run(struct swingcoll_overlap *ov,
				     const struct swingcoll_overlap_call *call,
				     struct swingcoll_overlap_result *result)
{
	struct swc_ov_learned *l = NULL;
	struct swingcoll_overlap_result r = { 0 };
	double begin, s, wait_s = 0;
	int ret, consumer = 0;

	ret = check_call(ov, call);
	if (ret)
		return ret;
	r.schedule = call->schedule;
	if (!r.schedule) {
		ret = learned_of(ov, call, &l);
		if (ret)
			return ret;
		r.schedule = (enum swingcoll_overlap_schedule)l->candidate[l->turn];
		r.trial = !l->decided;
	}
	/* The time of a trial must not include waiting for a late rank. */
	if (r.trial)
		ret = swingcoll_barrier(ov->comm);
	if (ret)
		return ret;
	begin = swc_ov_now();
	ret = swc_ov_transfer(ov, call, r.schedule, &consumer, &wait_s);
	s = swc_ov_now() - begin;
	if (!ret && r.trial)
		ret = note_trial(ov, l, s, consumer);
	r.time_ns = (uint64_t)(s * 1e9);
	r.wait_ns = (uint64_t)(wait_s * 1e9);
	if (result)
		*result = r;
	return ret ? ret : consumer;
}

/* ---- the handle ---- */

SWC_PUBLIC int swingcoll_overlap_create(struct swingcoll_overlap **out, struct swingcoll_comm *comm,
					const struct swingcoll_overlap_opts *opts)
{
	static const struct swingcoll_overlap_opts none;
	struct swingcoll_overlap *ov;
	int saved = errno, ret;

	if (!out || !comm)
		return -EINVAL;
	*out = NULL;
	opts = opts ? opts : &none;
	for (size_t i = 0; i < sizeof(opts->reserved) / sizeof(opts->reserved[0]); i++)
		if (opts->reserved[i])
			return -EINVAL;
	if (opts->pieces > SWC_OV_PIECES || opts->trials > SWC_OV_TRIALS ||
	    !swingcoll_dtype_size(opts->dtype))
		return -EINVAL;
	ov = calloc(1, sizeof(*ov));
	if (!ov)
		return -ENOMEM;
	ov->comm = comm;
	ov->dtype = opts->dtype;
	ov->nranks = (unsigned int)swingcoll_comm_size(comm);
	ov->rank = (unsigned int)swingcoll_comm_rank(comm);
	ov->pieces = opts->pieces ? opts->pieces : SWC_OV_DEFAULT_PIECES;
	ov->trials = opts->trials ? opts->trials : DEFAULT_TRIALS;
	ret = swc_ov_measure(ov, opts);
	errno = saved;
	if (ret) {
		swingcoll_overlap_destroy(ov);
		return ret;
	}
	*out = ov;
	return 0;
}

SWC_PUBLIC void swingcoll_overlap_destroy(struct swingcoll_overlap *ov)
{
	struct swc_ov_learned *l;

	if (!ov)
		return;
	while ((l = ov->learned)) {
		ov->learned = l->next;
		free(l);
	}
	swc_ov_release(&ov->gathered);
	swc_ov_release(&ov->packed);
	free(ov);
}

SWC_PUBLIC void swingcoll_overlap_rows(size_t m, int nranks, int rank,
				       struct swingcoll_overlap_range *rows)
{
	if (nranks < 1 || rank < 0 || rank >= nranks)
		*rows = (struct swingcoll_overlap_range){ 0 };
	else
		swc_ov_rows(m, (unsigned int)nranks, (unsigned int)rank, &rows->row, &rows->rows);
}

SWC_PUBLIC int swingcoll_overlap_figures(const struct swingcoll_overlap *ov,
					 struct swingcoll_overlap_figures *figures)
{
	const struct swc_ov_curve *g;
	double s, bytes, rate;

	if (!ov || !figures)
		return -EINVAL;
	if (!ov->known)
		return -ENODATA;
	g = &ov->figures.gather[0];
	bytes = g->bytes[SWC_OV_POINTS - 1];
	s = g->s[SWC_OV_POINTS - 1] - g->s[0];
	/* If the larger transfer takes no longer, this is a lower bound. */
	rate = s > 0 ? (bytes - g->bytes[0]) / s : bytes / g->s[SWC_OV_POINTS - 1];
	*figures = (struct swingcoll_overlap_figures){
		.start_s = fmax(g->s[0] - g->bytes[0] / rate, 0),
		.bytes_per_s = rate,
		.crowd = ov->figures.crowd,
		.product_slowdown = ov->figures.cil_g,
		.transfer_slowdown = ov->figures.cil_c,
	};
	return 0;
}

SWC_PUBLIC int swingcoll_overlap_forecast(const struct swingcoll_overlap *ov, size_t m, size_t n,
					  size_t k, enum swingcoll_dtype dtype,
					  struct swingcoll_overlap_forecast *out)
{
	size_t elem = swingcoll_dtype_size(dtype);
	struct swc_ov_shape s;
	int ret;

	if (!ov || !out || !m || !n || !k || !elem)
		return -EINVAL;
	if (too_large(ov, m, k, elem))
		return -EOVERFLOW;
	s = swc_ov_shape_of(ov, m, n, k, elem);
	ret = predict_all(ov, &s, dtype, out->time_s);
	if (ret)
		return ret;
	out->gather_s = swc_ov_curve_at(&ov->figures.gather[0],
					(double)swc_ov_most_rows(&s) * (double)(k * elem));
	out->product_s = ov->figures.crowd *
			 swc_ov_product(&ov->figures.rates, (double)m, (double)n, (double)k);
	out->dil_rows = swc_ov_dil(&ov->figures.rates, &s,
				   swc_ov_transfers(SWINGCOLL_OVERLAP_ROWS, &s), false);
	out->dil_columns = swc_ov_dil(&ov->figures.rates, &s,
				      swc_ov_transfers(SWINGCOLL_OVERLAP_COLUMNS, &s), true);
	return 0;
}

/* ---- names ---- */

static const char *const names[SWINGCOLL_OVERLAP_SCHEDULES] = {
	[SWINGCOLL_OVERLAP_AUTO] = "auto",
	[SWINGCOLL_OVERLAP_SERIAL] = "serial",
	[SWINGCOLL_OVERLAP_SHARD] = "shard",
	[SWINGCOLL_OVERLAP_ROWS] = "rows-grouped",
	[SWINGCOLL_OVERLAP_ROWS_OWN] = "rows-grouped-own",
	[SWINGCOLL_OVERLAP_ROWS_SEPARATE] = "rows-separate-own",
	[SWINGCOLL_OVERLAP_COLUMNS] = "columns-grouped",
};

SWC_PUBLIC const char *swingcoll_overlap_name(enum swingcoll_overlap_schedule schedule)
{
	return (unsigned int)schedule < SWINGCOLL_OVERLAP_SCHEDULES ? names[schedule] : NULL;
}

SWC_PUBLIC int swingcoll_overlap_parse(const char *name)
{
	for (int i = 0; name && i < SWINGCOLL_OVERLAP_SCHEDULES; i++)
		if (!strcmp(name, names[i]))
			return i;
	return -EINVAL;
}

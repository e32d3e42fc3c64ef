// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Running a schedule: start the transfers, a few ahead of the one that is waited for, and pass each
 * piece to the consumer when it has arrived. All ranks start the same transfers in the same order,
 * whatever their consumers return. A rank's own data is not transferred if the algorithm can leave
 * it out: the rank copies it into a piece itself, while the other data is on the way.
 *
 * An allgather needs the same count from all ranks, so a rank with fewer rows sends meaningless
 * rows behind its own. They are removed on arrival: a piece that the consumer sees has no gaps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "overlap/overlap.h"
#include "src/api/for_overlap.h"

/* One call. */
struct job {
	struct swingcoll_overlap *ov;
	const struct swingcoll_overlap_call *call;
	enum swingcoll_overlap_schedule schedule;
	struct swc_ov_shape shape;
	size_t row, rows; /* of A that this rank has */
	unsigned int ntransfers;
	unsigned int started;
	/* Of transfer i at i % SWC_OV_AHEAD. */
	struct swingcoll_req *req[SWC_OV_AHEAD];
	bool left_out[SWC_OV_AHEAD];
	struct swingcoll_overlap_range *run; /* of the piece at hand; room for one per rank */
	int consumer;			     /* the consumer's error */
	double wait_s;
};

static size_t row_bytes(const struct job *j)
{
	return j->shape.k * j->shape.elem;
}

/* ---- where the data is ---- */

/* Bytes that one rank sends in a transfer. */
static size_t share_bytes(const struct job *j, const struct swc_ov_cut *cut)
{
	return cut->rows * cut->cols * j->shape.elem;
}

/* Where transfer i arrives: the shares of all ranks one after the other; whole shards as in A. */
static char *arrival(const struct job *j, unsigned int i, const struct swc_ov_cut *cut)
{
	size_t row, rows, most = swc_ov_most_rows(&j->shape);

	if (j->schedule == SWINGCOLL_OVERLAP_SHARD) {
		swc_ov_rows(j->shape.m, j->shape.nranks, i, &row, &rows);
		return j->ov->gathered.base + row * row_bytes(j);
	}
	return j->ov->gathered.base +
	       (cut->row * row_bytes(j) + cut->col * most * j->shape.elem) * j->shape.nranks;
}

/* ---- sending ---- */

/* Rows of a transfer that this rank has. */
static size_t rows_here(const struct job *j, const struct swc_ov_cut *cut)
{
	size_t have = j->rows > cut->row ? j->rows - cut->row : 0;

	return have < cut->rows ? have : cut->rows;
}

/* Where this rank's share is packed; NULL if it is contiguous in the shard. */
static char *packed_at(const struct job *j, const struct swc_ov_cut *cut)
{
	if (j->schedule == SWINGCOLL_OVERLAP_COLUMNS)
		return j->ov->packed.base + cut->col * swc_ov_most_rows(&j->shape) * j->shape.elem;
	return rows_here(j, cut) < cut->rows ? j->ov->packed.base : NULL;
}

static const char *in_shard(const struct job *j, const struct swc_ov_cut *cut)
{
	return (const char *)j->call->shard + cut->row * row_bytes(j) + cut->col * j->shape.elem;
}

static const char *share_to_send(const struct job *j, const struct swc_ov_cut *cut)
{
	const char *packed = packed_at(j, cut);

	return packed ? packed : in_shard(j, cut);
}

static void pack(const struct job *j, const struct swc_ov_cut *cut)
{
	size_t width = cut->cols * j->shape.elem, have = rows_here(j, cut);
	const char *from = in_shard(j, cut);
	char *to = packed_at(j, cut);

	for (size_t r = 0; to && r < have; r++)
		memcpy(to + r * width, from + r * row_bytes(j), width);
}

static int start(struct job *j, unsigned int i)
{
	struct swc_ov_cut cut = swc_ov_cut(j->schedule, &j->shape, i);
	struct swingcoll_req **req = &j->req[i % SWC_OV_AHEAD];
	struct swingcoll_comm *comm = j->ov->comm;
	size_t bytes = share_bytes(j, &cut);
	char *to = arrival(j, i, &cut);

	*req = NULL;
	/* A rank without rows has nothing to broadcast. */
	if (j->schedule == SWINGCOLL_OVERLAP_SHARD)
		return cut.rows ? swc_start_others(comm, SWINGCOLL_BROADCAST, j->call->shard, to,
						   bytes, (int)i, NULL, req)
				: 0;
	pack(j, &cut);
	return swc_start_others(comm, SWINGCOLL_ALLGATHER, share_to_send(j, &cut), to, bytes, 0,
				&j->left_out[i % SWC_OV_AHEAD], req);
}

/* Copy this rank's share to its place, if the transfer leaves it out. */
static void copy_own(const struct job *j, unsigned int i)
{
	struct swc_ov_cut cut = swc_ov_cut(j->schedule, &j->shape, i);
	size_t bytes = share_bytes(j, &cut);

	if (j->left_out[i % SWC_OV_AHEAD] && !swc_ov_own_first(j->schedule))
		memcpy(arrival(j, i, &cut) + j->ov->rank * bytes, share_to_send(j, &cut), bytes);
}

/* Start as many transfers as may be in flight, counted from the one that is waited for next. */
static int start_more(struct job *j, unsigned int next)
{
	unsigned int ahead = j->ov->engines[j->schedule] ? SWC_OV_AHEAD : SWC_OV_AHEAD_CPU;

	while (j->started < j->ntransfers && j->started < next + ahead) {
		int ret = start(j, j->started);

		/* The caller's own operations may leave no room for more. */
		if (ret == -EAGAIN && j->started > next)
			return 0;
		if (ret)
			return ret;
		j->started++;
	}
	return 0;
}

/* ---- passing pieces to the consumer ---- */

static void consume(struct job *j, const char *a, const struct swc_ov_cut *cut, unsigned int nruns)
{
	struct swingcoll_overlap_piece piece = {
		.a = a,
		.lda = cut->cols,
		.col = cut->col,
		.cols = cut->cols,
		.accumulate = cut->col > 0,
		.nruns = nruns,
		.run = j->run,
	};

	for (unsigned int i = 0; i < nruns; i++)
		piece.rows += j->run[i].rows;
	if (piece.rows && !j->consumer)
		j->consumer = j->call->consume(j->call->arg, &piece);
}

static void consume_own(struct job *j)
{
	struct swc_ov_cut whole = { .rows = j->rows, .cols = j->shape.k };

	j->run[0] = (struct swingcoll_overlap_range){ j->row, j->rows };
	consume(j, j->call->shard, &whole, 1);
}

/* The rows of A in a rank's share of a transfer. */
static struct swingcoll_overlap_range run_of(const struct job *j, const struct swc_ov_cut *cut,
					     unsigned int rank)
{
	struct swingcoll_overlap_range run;
	size_t row, rows, have;

	swc_ov_rows(j->shape.m, j->shape.nranks, rank, &row, &rows);
	have = rows > cut->row ? rows - cut->row : 0;
	run.row = row + cut->row;
	run.rows = have < cut->rows ? have : cut->rows;
	return run;
}

/* Append a run, in the list and in memory; runs that are neighbours in A become one. */
static unsigned int append(struct job *j, char *base, size_t width, size_t *rows, const char *from,
			   struct swingcoll_overlap_range run, unsigned int nruns)
{
	struct swingcoll_overlap_range *last = nruns ? &j->run[nruns - 1] : NULL;

	if (!run.rows)
		return nruns;
	if (from != base + *rows * width)
		memmove(base + *rows * width, from, run.rows * width);
	*rows += run.rows;
	if (last && last->row + last->rows == run.row) {
		last->rows += run.rows;
		return nruns;
	}
	j->run[nruns] = run;
	return nruns + 1;
}

/* The shares of all ranks as one piece. */
static void consume_grouped(struct job *j, char *base, const struct swc_ov_cut *cut)
{
	size_t width = cut->cols * j->shape.elem, rows = 0;
	unsigned int nruns = 0, n = j->shape.nranks, rank;

	for (rank = 0; rank < n; rank++)
		nruns = append(j, base, width, &rows, base + rank * cut->rows * width,
			       run_of(j, cut, rank), nruns);
	consume(j, base, cut, nruns);
}

/*
 * The shares of all other ranks as one piece. The last full share takes the place of this rank's:
 * that moves less than closing the gap. Rank 0's share is in front and leaves no gap. Shares that
 * are short occur only in the last piece, at its end.
 */
static void consume_others(struct job *j, char *base, const struct swc_ov_cut *cut)
{
	size_t width = cut->cols * j->shape.elem, rows = 0;
	unsigned int nruns = 0, n = j->shape.nranks, own = j->ov->rank, last = own ? n - 1 : 0,
		     rank;
	char *first = own ? base : base + cut->rows * width;

	while (last > own && run_of(j, cut, last).rows < cut->rows)
		last--;
	for (rank = 0; rank < n; rank++) {
		const char *from = base + rank * cut->rows * width;

		if (rank == own && last > own)
			nruns = append(j, first, width, &rows, base + last * cut->rows * width,
				       run_of(j, cut, last), nruns);
		else if (rank != own && rank != last)
			nruns = append(j, first, width, &rows, from, run_of(j, cut, rank), nruns);
	}
	consume(j, first, cut, nruns);
}

static void consume_separate(struct job *j, const char *base, const struct swc_ov_cut *cut)
{
	for (unsigned int i = 1; i < j->shape.nranks; i++) {
		unsigned int rank = (j->ov->rank + i) % j->shape.nranks;

		j->run[0] = run_of(j, cut, rank);
		consume(j, base + rank * share_bytes(j, cut), cut, 1);
	}
}

static void consume_piece(struct job *j, unsigned int i)
{
	struct swc_ov_cut cut = swc_ov_cut(j->schedule, &j->shape, i);
	char *base = arrival(j, i, &cut);

	if (j->consumer)
		return;
	switch (j->schedule) {
	case SWINGCOLL_OVERLAP_SHARD:
		if (i == j->ov->rank)
			break;
		j->run[0] = run_of(j, &cut, i);
		consume(j, base, &cut, 1);
		break;
	case SWINGCOLL_OVERLAP_ROWS_OWN:
		consume_others(j, base, &cut);
		break;
	case SWINGCOLL_OVERLAP_ROWS_SEPARATE:
		consume_separate(j, base, &cut);
		break;
	default:
		consume_grouped(j, base, &cut);
	}
}

/* ---- one call ---- */

static int wait_piece(struct job *j, unsigned int i)
{
	struct swingcoll_req *req = j->req[i % SWC_OV_AHEAD];
	double begin = swc_ov_now();
	int ret;

	j->req[i % SWC_OV_AHEAD] = NULL;
	ret = req ? swingcoll_wait(req, NULL) : 0;
	j->wait_s += swc_ov_now() - begin;
	return ret;
}

static int run_transfers(struct job *j)
{
	unsigned int i;
	int ret;

	ret = start_more(j, 0);
	if (!ret && swc_ov_own_first(j->schedule))
		consume_own(j);
	for (i = 0; !ret && i < j->ntransfers; i++) {
		copy_own(j, i);
		ret = wait_piece(j, i);
		if (ret)
			break;
		/* Start the next transfers first, so that they run during the work. */
		ret = start_more(j, i + 1);
		consume_piece(j, i);
	}
	/* After a failure the other transfers end soon; the buffers are theirs until then. */
	for (unsigned int k = 0; k < SWC_OV_AHEAD; k++)
		if (j->req[k])
			swingcoll_wait(j->req[k], NULL);
	return ret;
}

int swc_ov_transfer(struct swingcoll_overlap *ov, const struct swingcoll_overlap_call *call,
		    enum swingcoll_overlap_schedule schedule, int *consumer, double *wait_s)
{
	size_t elem = swingcoll_dtype_size(call->dtype), most;
	struct job j = { .ov = ov, .call = call, .schedule = schedule };
	uint64_t before = 0;
	bool look;
	int ret;

	j.shape = swc_ov_shape_of(ov, call->m, call->n, call->k, elem);
	swc_ov_rows(call->m, ov->nranks, ov->rank, &j.row, &j.rows);
	j.ntransfers = swc_ov_transfers(schedule, &j.shape);
	most = swc_ov_most_rows(&j.shape) * call->k * elem;
	ret = swc_ov_reserve(&ov->gathered, most * ov->nranks);
	if (!ret)
		ret = swc_ov_reserve(&ov->packed, most);
	if (ret)
		return ret;
	j.run = calloc(ov->nranks, sizeof(*j.run));
	if (!j.run)
		return -ENOMEM;
	/*
	 * Learn whether DMA engines move the data. They cannot if the memory could not be
	 * registered.
	 */
	look = ov->nranks > 1 && j.ntransfers > SWC_OV_AHEAD_CPU && ov->gathered.registered;
	if (look)
		before = swc_engine_bytes(ov->comm);
	if (ov->nranks == 1)
		consume_own(&j);
	else
		ret = run_transfers(&j);
	if (look)
		ov->engines[schedule] = swc_engine_bytes(ov->comm) - before >
					most * swc_comm_local_ranks(ov->comm) / 2;
	free(j.run);
	*consumer = j.consumer;
	*wait_s = j.wait_s;
	return ret;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Carries out a schedule: starts the transfers, a few ahead of the one that is waited for, and gives each piece
 * to the consumer when it is there. All ranks start the same transfers in the same order whatever becomes of their
 * consumers. A rank's own part is not transferred, if the algorithm can do without: where it belongs into a piece,
 * the rank puts it there itself, while the others' are under way.
 *
 * Allgather wants parts of one size, so short shards send rows without meaning behind their own, which are cut
 * out on arrival: a piece that the consumer sees has no gaps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "overlap.h"
#include "priv.h"

struct job {
	struct swingcoll_overlap *ov;
	const struct swingcoll_overlap_call *call;
	enum swingcoll_overlap_schedule schedule;
	struct swc_ov_shape shape;
	size_t row, rows; /* of this rank */
	unsigned int ntransfers;
	unsigned int started;
	/* Of transfer i at i % SWC_OV_AHEAD. */
	struct swingcoll_req *req[SWC_OV_AHEAD];
	bool left_out[SWC_OV_AHEAD];
	struct swingcoll_overlap_range *run; /* one for each rank */
	int consumer;			     /* its error */
	double wait_s;
};

static size_t row_bytes(const struct job *j)
{
	return j->shape.k * j->shape.elem;
}

/* ---- where pieces lie ---- */

/* Bytes of a rank's part of a transfer. */
static size_t part_bytes(const struct job *j, const struct swc_ov_cut *cut)
{
	return cut->rows * cut->cols * j->shape.elem;
}

/* Pieces of all ranks follow each other; shards lie as in A. */
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

/* Rows of a piece that this rank has. */
static size_t rows_here(const struct job *j, const struct swc_ov_cut *cut)
{
	size_t have = j->rows > cut->row ? j->rows - cut->row : 0;

	return have < cut->rows ? have : cut->rows;
}

/* Where what this rank sends is put together; NULL if it lies in one run in the shard. */
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

static const char *departure(const struct job *j, const struct swc_ov_cut *cut)
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
	size_t bytes = part_bytes(j, &cut);
	char *to = arrival(j, i, &cut);

	*req = NULL;
	/* Ranks without rows have nothing to broadcast. */
	if (j->schedule == SWINGCOLL_OVERLAP_SHARD)
		return cut.rows ? swc_start_others(comm, SWINGCOLL_BROADCAST, j->call->shard, to,
						   bytes, (int)i, NULL, req)
				: 0;
	pack(j, &cut);
	return swc_start_others(comm, SWINGCOLL_ALLGATHER, departure(j, &cut), to, bytes, 0,
				&j->left_out[i % SWC_OV_AHEAD], req);
}

/* This rank's part of a piece, if nothing else brings it there. */
static void put_own(const struct job *j, unsigned int i)
{
	struct swc_ov_cut cut = swc_ov_cut(j->schedule, &j->shape, i);
	size_t bytes = part_bytes(j, &cut);

	if (j->left_out[i % SWC_OV_AHEAD] && !swc_ov_own_first(j->schedule))
		memcpy(arrival(j, i, &cut) + j->ov->rank * bytes, departure(j, &cut), bytes);
}

/* So many as may be in flight, with the one that is waited for next. */
static int start_more(struct job *j, unsigned int next)
{
	unsigned int ahead = j->ov->engines[j->schedule] ? SWC_OV_AHEAD : SWC_OV_AHEAD_CPU;

	while (j->started < j->ntransfers && j->started < next + ahead) {
		int ret = start(j, j->started);

		/* The caller's own operations may leave room for only some. */
		if (ret == -EAGAIN && j->started > next)
			return 0;
		if (ret)
			return ret;
		j->started++;
	}
	return 0;
}

/* ---- consuming ---- */

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

/* The rows of A that a rank's part of a transfer holds. */
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

/* Put a run behind those before, in the list and in memory; neighbours become one. */
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

/* All ranks' parts as one piece. */
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
 * All but this rank's part, whose place the last full one takes: less to move than closing the gap. Rank 0's is
 * in front, and leaves no gap. Parts that are short come only in the last piece, and stand at the end there.
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
		consume(j, base + rank * part_bytes(j, cut), cut, 1);
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

/* ---- the whole ---- */

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
		put_own(j, i);
		ret = wait_piece(j, i);
		if (ret)
			break;
		/* The next ones first, so that they run beside the work. */
		ret = start_more(j, i + 1);
		consume_piece(j, i);
	}
	/* After a failure the rest ends soon, and the buffers are not ours before. */
	for (unsigned int k = 0; k < SWC_OV_AHEAD; k++)
		if (j->req[k])
			swingcoll_wait(j->req[k], NULL);
	return ret;
}

/* Bytes that DMA engines have copied, on this node and for whomever. */
static uint64_t engines_moved(const struct swingcoll_overlap *ov)
{
	uint64_t v[SWC_STAT_NR] = { 0 };
	struct swc_stats stats = { .max = SWC_STAT_NR, .values = (uintptr_t)v };

	return swc_context_ioctl(ov->comm->ctx, SWC_IOC_STATS, &stats) ? 0 : v[SWC_STAT_DMA_BYTES];
}

int swc_ov_move(struct swingcoll_overlap *ov, const struct swingcoll_overlap_call *call,
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
	/* What moves the data will do so the next time. Memory that may not be pinned as a whole may be in parts. */
	look = ov->nranks > 1 && j.ntransfers > SWC_OV_AHEAD_CPU && ov->gathered.registered;
	if (look)
		before = engines_moved(ov);
	if (ov->nranks == 1)
		consume_own(&j);
	else
		ret = run_transfers(&j);
	if (look)
		ov->engines[schedule] = engines_moved(ov) - before > most * ov->comm->nlocal / 2;
	free(j.run);
	*consumer = j.consumer;
	*wait_s = j.wait_s;
	return ret;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allgathers that are consumed by a product while they go on: every schedule gives exactly the product, for shapes
 * that cut evenly and for those that do not; failures of consumers and ranks come back as errors and leave
 * nothing behind.
 */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "coll.h"

#define MOST_RANKS 4

static struct swingcoll_id id;
static uint64_t *when; /* a rank died, in ms; 0: not yet */

struct shape {
	size_t m, n, k;
};

static const struct shape shapes[] = {
	{ 64, 24, 32 },					  /* even everywhere */
	{ 61, 17, 33 },					  /* nothing is */
	{ 35, 5, 3 },					  /* fewer columns than pieces */
	{ 3, 7, 19 },					  /* fewer rows than ranks */
	{ 1, 1, 1 },	{ 9, 4, 100 }, { 1030, 11, 130 }, /* large enough for pages */
};

/* Small integers, so that sums are exact in every order. */
static int a_at(size_t r, size_t c)
{
	return (int)((r * 7 + c * 13) % 11) - 5;
}

static int b_at(size_t r, size_t c)
{
	return (int)((r * 5 + c * 3) % 13) - 6;
}

/* One rank's matrices, and what its consumer has seen. */
struct work {
	struct shape s;
	int dtype;
	void *shard, *b, *c;
	unsigned char *seen; /* of A, by element: so often multiplied */
	unsigned int calls;
	unsigned int fail_at; /* the call of the consumer that fails; 0: none */
	unsigned int die_at;  /* the one that is this process's last */
	bool odd;	      /* a piece made no sense */
};

static double get(const struct work *w, const void *base, size_t i)
{
	return w->dtype == SWINGCOLL_F32 ? ((const float *)base)[i] : ((const double *)base)[i];
}

static void put(const struct work *w, void *base, size_t i, double v)
{
	if (w->dtype == SWINGCOLL_F32)
		((float *)base)[i] = (float)v;
	else
		((double *)base)[i] = v;
}

/* C's row += or = a row of the piece x B. */
static void multiply_row(struct work *w, const struct swingcoll_overlap_piece *p, size_t at,
			 size_t row)
{
	for (size_t j = 0; j < w->s.n; j++) {
		double sum = p->accumulate ? get(w, w->c, row * w->s.n + j) : 0;

		for (size_t x = 0; x < p->cols; x++)
			sum += get(w, p->a, at * p->lda + x) *
			       get(w, w->b, (p->col + x) * w->s.n + j);
		put(w, w->c, row * w->s.n + j, sum);
	}
	for (size_t x = 0; x < p->cols; x++)
		w->seen[row * w->s.k + p->col + x]++;
}

static int consume(void *arg, const struct swingcoll_overlap_piece *p)
{
	struct work *w = arg;
	size_t at = 0;

	if (++w->calls == w->fail_at)
		return -EDOM;
	if (w->calls == w->die_at) {
		__atomic_store_n(when, swct_ms(), __ATOMIC_RELEASE);
		kill(getpid(), SIGKILL);
	}
	w->odd |= !p->rows || !p->cols || p->col + p->cols > w->s.k || p->lda < p->cols ||
		  !p->nruns;
	for (unsigned int i = 0; !w->odd && i < p->nruns; i++) {
		w->odd |= !p->run[i].rows || p->run[i].row + p->run[i].rows > w->s.m;
		for (size_t r = 0; !w->odd && r < p->run[i].rows; r++)
			multiply_row(w, p, at++, p->run[i].row + r);
	}
	w->odd |= at != p->rows;
	return 0;
}

static void work_free(struct work *w)
{
	free(w->shard);
	free(w->b);
	free(w->c);
	free(w->seen);
}

static void work_init(struct work *w, const struct shape *s, int dtype, int nranks, int rank)
{
	struct swingcoll_overlap_range own;

	swingcoll_overlap_rows(s->m, nranks, rank, &own);
	*w = (struct work){ .s = *s, .dtype = dtype };
	w->shard = malloc(own.rows * s->k * 8 + 8);
	w->b = malloc(s->k * s->n * 8);
	w->c = malloc(s->m * s->n * 8);
	w->seen = calloc(s->m, s->k);
	for (size_t i = 0; i < own.rows * s->k; i++)
		put(w, w->shard, i, a_at(own.row + i / s->k, i % s->k));
	for (size_t i = 0; i < s->k * s->n; i++)
		put(w, w->b, i, b_at(i / s->n, i % s->n));
	for (size_t i = 0; i < s->m * s->n; i++)
		put(w, w->c, i, 1e9);
}

/* Every element of A was multiplied once, and C is the direct product. */
static int work_check(const struct work *w)
{
	CHECK(!w->odd);
	for (size_t i = 0; i < w->s.m * w->s.k; i++)
		CHECK_EQ(w->seen[i], 1);
	for (size_t r = 0; r < w->s.m; r++)
		for (size_t j = 0; j < w->s.n; j++) {
			int64_t sum = 0;

			for (size_t x = 0; x < w->s.k; x++)
				sum += a_at(r, x) * b_at(x, j);
			if (get(w, w->c, r * w->s.n + j) != (double)sum) {
				ksft_print_msg("C[%zu][%zu] is %g, not %lld\n", r, j,
					       get(w, w->c, r * w->s.n + j), (long long)sum);
				return 1;
			}
		}
	return 0;
}

struct job {
	int nranks;
	enum swingcoll_overlap_schedule schedule;
	int use_io_uring;
	uint32_t pieces;
};

static int run_one(struct swingcoll_overlap *ov, struct work *w,
		   enum swingcoll_overlap_schedule schedule,
		   struct swingcoll_overlap_result *result)
{
	const struct swingcoll_overlap_call call = {
		.m = w->s.m,
		.n = w->s.n,
		.k = w->s.k,
		.dtype = w->dtype,
		.schedule = schedule,
		.shard = w->shard,
		.consume = consume,
		.arg = w,
	};

	return swingcoll_overlap_run(ov, &call, result);
}

/* Ranks but @but that have rows from @first of their shard. */
static unsigned int holders(const struct work *w, int nranks, size_t first, int but)
{
	struct swingcoll_overlap_range run;
	unsigned int n = 0;

	for (int r = 0; r < nranks; r++) {
		swingcoll_overlap_rows(w->s.m, nranks, r, &run);
		n += r != but && run.rows > first;
	}
	return n;
}

/* What a schedule is known by: how often it calls. */
static int check_calls(const struct work *w, const struct job *j, int rank)
{
	size_t most = (w->s.m + j->nranks - 1) / j->nranks;
	size_t pieces = most < j->pieces ? most : j->pieces;
	unsigned int calls = holders(w, j->nranks, 0, -1) - holders(w, j->nranks, 0, rank);

	switch (j->nranks > 1 ? j->schedule : SWINGCOLL_OVERLAP_SERIAL) {
	case SWINGCOLL_OVERLAP_SHARD:
		calls = holders(w, j->nranks, 0, -1);
		break;
	case SWINGCOLL_OVERLAP_ROWS:
		calls = pieces;
		break;
	case SWINGCOLL_OVERLAP_ROWS_OWN:
		for (size_t i = 0; i < pieces; i++)
			calls += holders(w, j->nranks, most * i / pieces, rank) > 0;
		break;
	case SWINGCOLL_OVERLAP_ROWS_SEPARATE:
		for (size_t i = 0; i < pieces; i++)
			calls += holders(w, j->nranks, most * i / pieces, rank);
		break;
	case SWINGCOLL_OVERLAP_COLUMNS:
		calls = w->s.k < j->pieces ? w->s.k : j->pieces;
		break;
	default:
		calls = 1;
	}
	CHECK_EQ(w->calls, calls);
	return 0;
}

static int one_schedule(uint32_t rank, void *arg)
{
	const struct job *j = arg;
	struct swingcoll_comm_opts copts = { .use_io_uring = j->use_io_uring };
	struct swingcoll_overlap_opts opts = { .pieces = j->pieces };
	struct swingcoll_overlap_result result;
	struct swingcoll_overlap *ov;
	struct swingcoll_comm *comm;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, j->nranks, rank, &copts), 0);
	CHECK_EQ(swingcoll_overlap_create(&ov, comm, &opts), 0);
	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(shapes); i++) {
		int dtype = i & 1 ? SWINGCOLL_F32 : SWINGCOLL_F64;
		struct work w;

		work_init(&w, &shapes[i / 2], dtype, j->nranks, rank);
		CHECK_EQ(run_one(ov, &w, j->schedule, &result), 0);
		CHECK_EQ(result.schedule, j->schedule);
		CHECK(!result.trial && result.time_ns >= result.wait_ns && result.time_ns);
		if (work_check(&w) || check_calls(&w, j, rank)) {
			ksft_print_msg("%s, rank %u, %zu x %zu x %zu\n",
				       swingcoll_overlap_name(j->schedule), rank, w.s.m, w.s.n,
				       w.s.k);
			return 1;
		}
		work_free(&w);
	}
	swingcoll_overlap_destroy(ov);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* ---- the choice ---- */

static int product(void *arg, size_t m, size_t n, size_t k)
{
	static float a[512], sum[8];

	(void)arg;
	/* The time that matters, not the numbers: as many additions as the product has. */
	for (size_t i = 0; i < m * n * k / 8 / 64; i++)
		for (int x = 0; x < 8; x++)
			sum[x] += a[(i + x) % 512];
	return sum[0] > 1 ? -EDOM : 0;
}

/*
 * Trials of the same schedules on all ranks, each at least as often as asked for and each right; then one that stays.
 * On a second handle the table is read from the file.
 */
static int choose(uint32_t rank, void *arg)
{
	const char *path = arg;
	struct swingcoll_overlap_opts opts = {
		.table = path, .dtype = SWINGCOLL_F32, .product = product, .trials = 2
	};
	struct swingcoll_overlap_result result;
	struct swingcoll_overlap_forecast forecast;
	struct swingcoll_overlap_figures figures;
	struct swingcoll_overlap *ov;
	struct swingcoll_comm *comm;
	int tried[SWINGCOLL_OVERLAP_SCHEDULES] = { 0 }, kept = 0, stays = 0, schedules = 0;
	int32_t same[2];
	struct stat before, after;
	struct work w;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, MOST_RANKS, rank, NULL), 0);
	CHECK_EQ(swingcoll_overlap_create(&ov, comm, &opts), 0);
	CHECK_EQ(swingcoll_overlap_figures(ov, &figures), 0);
	CHECK(figures.start_s > 0 && figures.bytes_per_s > 0 && figures.crowd >= 1 &&
	      figures.product_slowdown >= 1 && figures.transfer_slowdown >= 1);
	CHECK_EQ(swingcoll_overlap_forecast(ov, 61, 17, 33, SWINGCOLL_F32, &forecast), 0);
	/* All six, five times as often as asked for, and some calls more. */
	for (int i = 0; i < 6 * 10 + 5 && stays < 5; i++) {
		work_init(&w, &shapes[1], SWINGCOLL_F32, MOST_RANKS, rank);
		CHECK_EQ(run_one(ov, &w, SWINGCOLL_OVERLAP_AUTO, &result), 0);
		CHECK_EQ(work_check(&w), 0);
		work_free(&w);
		same[0] = result.schedule;
		same[1] = -same[0];
		CHECK_EQ(swingcoll_allreduce(same, same, 2, SWINGCOLL_I32, SWINGCOLL_MAX, comm), 0);
		CHECK(same[0] == (int)result.schedule && same[1] == -(int)result.schedule);
		if (result.trial) {
			CHECK(!kept);
			schedules += !tried[result.schedule]++;
		} else {
			CHECK(!kept || kept == (int)result.schedule);
			kept = result.schedule;
			stays++;
		}
	}
	CHECK_EQ(stays, 5);
	CHECK(schedules >= 3 && tried[SWINGCOLL_OVERLAP_SERIAL] && tried[kept]);
	for (int i = 0; i < SWINGCOLL_OVERLAP_SCHEDULES; i++)
		CHECK(!tried[i] || (tried[i] >= 2 && tried[i] <= 10));
	swingcoll_overlap_destroy(ov);

	CHECK_EQ(stat(path, &before), 0);
	CHECK(before.st_size > 0);
	CHECK_EQ(swingcoll_overlap_create(&ov, comm, &opts), 0);
	CHECK_EQ(stat(path, &after), 0);
	CHECK_EQ(before.st_size, after.st_size);
	swingcoll_overlap_destroy(ov);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

static int run_choose(void)
{
	char path[] = "/tmp/coll_overlap-XXXXXX";
	int fd = mkstemp(path), bad;

	close(fd);
	swingcoll_unique_id(&id);
	bad = swct_ranks(MOST_RANKS, 40000, choose, path);
	unlink(path);
	return bad;
}

/* ---- failures ---- */

/*
 * The consumer of one rank fails, at every call that there is in turn, by every schedule; the others' results
 * are right, and so is what comes after, on all ranks.
 */
static int consumer_fails(uint32_t rank, void *arg)
{
	struct swingcoll_overlap *ov;
	struct swingcoll_comm *comm;
	struct work w;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, 3, rank, NULL), 0);
	CHECK_EQ(swingcoll_overlap_create(&ov, comm, NULL), 0);
	for (int s = SWINGCOLL_OVERLAP_AUTO; s < SWINGCOLL_OVERLAP_SCHEDULES; s++)
		for (unsigned int at = 0; at < 4; at++) {
			bool fails = rank == 1 && at && at <= (s < 2 ? 1u : 2u);

			work_init(&w, &shapes[1], SWINGCOLL_F32, 3, rank);
			w.fail_at = fails ? at : 0;
			CHECK_EQ(run_one(ov, &w, s, NULL), fails ? -EDOM : 0);
			CHECK(fails ? w.calls == at : !work_check(&w));
			work_free(&w);
		}
	swingcoll_overlap_destroy(ov);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* A rank dies in its consumer, in the middle of everything. */
static int rank_dies(uint32_t rank, void *arg)
{
	enum swingcoll_overlap_schedule s = *(enum swingcoll_overlap_schedule *)arg;
	struct swingcoll_overlap *ov;
	struct swingcoll_comm *comm;
	char text[256];
	struct work w;
	int ret = 0, who;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, 3, rank, NULL), 0);
	CHECK_EQ(swingcoll_overlap_create(&ov, comm, NULL), 0);
	work_init(&w, &shapes[0], SWINGCOLL_F32, 3, rank);
	w.die_at = rank == 1 ? 2 : 0;
	/* The death may come too late for the first, whose transfers were through. */
	for (int i = 0; !ret && i < 3; i++)
		ret = run_one(ov, &w, s, NULL);
	CHECK(ret == -ECONNRESET || ret == -ECONNABORTED);
	CHECK(*when && swct_ms() < *when + 15000); /* the deadline is 30 s */
	CHECK_EQ(swingcoll_comm_error(comm, text, sizeof(text), &who), -ECONNRESET);
	CHECK_EQ(who, 1);
	CHECK(run_one(ov, &w, s, NULL) < 0);
	work_free(&w);
	swingcoll_overlap_destroy(ov);
	swingcoll_comm_destroy(comm);
	return 0;
}

static int run_dies(enum swingcoll_overlap_schedule s)
{
	pid_t pid[3];

	*when = 0;
	swingcoll_unique_id(&id);
	swct_fork(pid, 3, rank_dies, &s);
	return swct_reap(pid, 1, 20000) + swct_reap(pid + 2, 1, 20000) +
	       (swct_reap(pid + 1, 1, 5000) != 1);
}

static int refusals(uint32_t rank, void *arg)
{
	struct swingcoll_overlap_opts opts = { .pieces = 65 };
	struct swingcoll_overlap_forecast f;
	struct swingcoll_overlap *ov;
	struct swingcoll_comm *comm;
	struct work w;

	(void)arg;
	CHECK_EQ(swingcoll_comm_create(&comm, &id, 1, rank, NULL), 0);
	CHECK_EQ(swingcoll_overlap_create(&ov, comm, &opts), -EINVAL);
	opts = (struct swingcoll_overlap_opts){ .reserved[3] = 1 };
	CHECK_EQ(swingcoll_overlap_create(&ov, comm, &opts), -EINVAL);
	CHECK_EQ(swingcoll_overlap_create(NULL, comm, NULL), -EINVAL);
	CHECK_EQ(swingcoll_overlap_create(&ov, comm, NULL), 0);
	CHECK_EQ(swingcoll_overlap_forecast(ov, 1, 1, 1, SWINGCOLL_F32, &f), -ENODATA);
	work_init(&w, &shapes[0], SWINGCOLL_F32, 1, 0);
	CHECK_EQ(run_one(ov, &w, SWINGCOLL_OVERLAP_SCHEDULES, NULL), -EINVAL);
	w.s.k = 0;
	CHECK_EQ(run_one(ov, &w, SWINGCOLL_OVERLAP_SERIAL, NULL), -EINVAL);
	w.s.k = SIZE_MAX / 8;
	CHECK_EQ(run_one(ov, &w, SWINGCOLL_OVERLAP_SERIAL, NULL), -EOVERFLOW);
	w.s = shapes[0];
	CHECK_EQ(run_one(ov, &w, SWINGCOLL_OVERLAP_AUTO, NULL), 0);
	CHECK_EQ(work_check(&w), 0);
	work_free(&w);
	swingcoll_overlap_destroy(ov);
	swingcoll_overlap_destroy(NULL);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* What the module holds for processes goes, soon after the last of them. The reader's own context is open. */
static int nothing_left(void)
{
	uint64_t v[SWC_STAT_NR], until = swct_ms() + 5000;

	do {
		swct_sleep_ms(20);
		CHECK_EQ(swct_stats(v, SWC_STAT_NR), 0);
	} while (v[SWC_STAT_CONTEXTS_OPENED] != v[SWC_STAT_CONTEXTS_CLOSED] + 1 &&
		 swct_ms() < until);
	CHECK_EQ(v[SWC_STAT_CONTEXTS_OPENED], v[SWC_STAT_CONTEXTS_CLOSED] + 1);
	CHECK(v[SWC_STAT_PAGES_PINNED] > 0);
	CHECK_EQ(v[SWC_STAT_PAGES_PINNED], v[SWC_STAT_PAGES_UNPINNED]);
	CHECK_EQ(v[SWC_STAT_REGIONS_PINNED], v[SWC_STAT_REGIONS_UNPINNED]);
	return 0;
}

static int run_schedule(enum swingcoll_overlap_schedule s, int nranks, uint32_t pieces, int uring)
{
	struct job j = { .nranks = nranks, .schedule = s, .pieces = pieces, .use_io_uring = uring };

	swingcoll_unique_id(&id);
	return swct_ranks(nranks, 30000, one_schedule, &j);
}

int main(void)
{
	const enum swingcoll_overlap_schedule first = SWINGCOLL_OVERLAP_SERIAL;
	const int n = SWINGCOLL_OVERLAP_SCHEDULES - first;
	enum swingcoll_overlap_schedule s;

	ksft_print_header();
	swct_need_device();
	when = swct_shared(4096);
	ksft_set_plan(3 * n + 4);
	for (s = first; s < SWINGCOLL_OVERLAP_SCHEDULES; s++)
		ksft_test_result(!run_schedule(s, MOST_RANKS, 8, 1) &&
					 !run_schedule(s, MOST_RANKS, 3, -1),
				 "%s, 4 ranks", swingcoll_overlap_name(s));
	for (s = first; s < SWINGCOLL_OVERLAP_SCHEDULES; s++)
		ksft_test_result(!run_schedule(s, 1, 8, 0) && !run_schedule(s, 2, 64, 0),
				 "%s, 1 rank and 2", swingcoll_overlap_name(s));
	ksft_test_result(!run_choose(), "all ranks choose the same");
	swingcoll_unique_id(&id);
	ksft_test_result(!swct_ranks(3, 30000, consumer_fails, NULL), "a consumer fails");
	for (s = first; s < SWINGCOLL_OVERLAP_SCHEDULES; s++)
		ksft_test_result(!run_dies(s), "%s: a rank dies", swingcoll_overlap_name(s));
	swingcoll_unique_id(&id);
	ksft_test_result(!swct_ranks(1, 10000, refusals, NULL), "what makes no sense is refused");
	ksft_test_result(!nothing_left(), "pages, regions and contexts are given back");
	ksft_finished();
}

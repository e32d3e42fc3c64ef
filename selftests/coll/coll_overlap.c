// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allgathers that a matrix product consumes while they run: every schedule gives exactly the product, for shapes that
 * divide evenly and for others; failures of consumers and of ranks become errors, and all resources are released.
 *
 * SWC_TEST_SHORT=1: all pairs of schedule, number of ranks, shape and type instead of all combinations.
 */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include <swingcoll_overlap.h>

#include "coll.h"
#include "pairs.h"

#define MOST_RANKS 4

static struct swingcoll_id id;
static uint64_t *died_ms; /* when the rank died; 0: not yet */

struct shape {
	size_t m, n, k;
};

static const struct shape shapes[] = {
	{ 64, 24, 32 },					  /* divides evenly */
	{ 61, 17, 33 },					  /* divides by nothing */
	{ 35, 5, 3 },					  /* fewer columns than pieces */
	{ 3, 7, 19 },					  /* fewer rows than ranks */
	{ 1, 1, 1 },	{ 9, 4, 100 }, { 1030, 11, 130 }, /* pieces of whole pages */
};

/* Elements of the matrices: small integers, so that sums are exact in every order. */
static int a_at(size_t r, size_t c)
{
	return (int)((r * 7 + c * 13) % 11) - 5;
}

static int b_at(size_t r, size_t c)
{
	return (int)((r * 5 + c * 3) % 13) - 6;
}

/* The matrices of one rank, and what its consumer has been called for. */
struct work {
	struct shape s;
	int dtype;
	void *shard, *b, *c;
	unsigned char *seen; /* how often each element of A has been multiplied */
	unsigned int calls;
	unsigned int fail_at; /* the consumer call that fails; 0: none */
	unsigned int die_at;  /* the consumer call that kills the process; 0: none */
	bool odd;	      /* a piece was out of range */
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

/* Multiply one row of the piece by B, into or onto a row of C. */
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
		__atomic_store_n(died_ms, testlib_now_ms(), __ATOMIC_RELEASE);
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

/* Every element of A has been multiplied once, and C is the product. */
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

/* How often each schedule runs. */
static const struct job {
	int nranks;
	int use_io_uring;
	uint32_t pieces;
} jobs[] = {
	{ 4, 1, 8 },
	{ 4, -1, 3 },
	{ 1, 0, 8 },
	{ 2, 0, 64 },
};

static enum swingcoll_overlap_schedule schedule;
static struct pairs pairs, *shared_pairs; /* shared: what rank 0 has covered */

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

/* How many ranks, without one of them, have more than first rows. */
static unsigned int holders(const struct work *w, int nranks, size_t first, int without)
{
	struct swingcoll_overlap_range run;
	unsigned int n = 0;

	for (int r = 0; r < nranks; r++) {
		swingcoll_overlap_rows(w->s.m, nranks, r, &run);
		n += r != without && run.rows > first;
	}
	return n;
}

/* Each schedule has its own number of consumer calls. */
static int check_calls(const struct work *w, const struct job *j, int rank)
{
	size_t most = (w->s.m + j->nranks - 1) / j->nranks;
	size_t pieces = most < j->pieces ? most : j->pieces;
	unsigned int calls = holders(w, j->nranks, 0, -1) - holders(w, j->nranks, 0, rank);

	switch (j->nranks > 1 ? schedule : SWINGCOLL_OVERLAP_SERIAL) {
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
	/* Both change with every step: 7 shapes and 2 types have no common divisor. */
	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(shapes); i++) {
		unsigned int shape = i % ARRAY_SIZE(shapes);
		int dtype = i & 1 ? SWINGCOLL_F32 : SWINGCOLL_F64;
		const unsigned int level[] = { schedule, j - jobs, shape, i & 1 };
		struct work w;

		if (!pairs_due(&pairs, level))
			continue;
		work_init(&w, &shapes[shape], dtype, j->nranks, rank);
		CHECK_EQ(run_one(ov, &w, schedule, &result), 0);
		CHECK_EQ(result.schedule, schedule);
		CHECK(!result.trial && result.time_ns >= result.wait_ns && result.time_ns);
		if (work_check(&w) || check_calls(&w, j, rank)) {
			ksft_print_msg("%s, rank %u, %zu x %zu x %zu\n",
				       swingcoll_overlap_name(schedule), rank, w.s.m, w.s.n, w.s.k);
			return 1;
		}
		work_free(&w);
		pairs_cover(&pairs, level);
	}
	if (!rank)
		*shared_pairs = pairs;
	swingcoll_overlap_destroy(ov);
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

/* ------------------------------------------------------------------ the choice */

static int product(void *arg, size_t m, size_t n, size_t k)
{
	static float a[512], sum[8];

	(void)arg;
	/* Only its time matters: as many additions as the product has. */
	for (size_t i = 0; i < m * n * k / 8 / 64; i++)
		for (int x = 0; x < 8; x++)
			sum[x] += a[(i + x) % 512];
	return sum[0] > 1 ? -EDOM : 0;
}

/*
 * All ranks try the same schedules, each at least as often as asked for, with right results; then all keep the same one.
 * A second handle reads the table from the file.
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
	/* There is no table yet, which leaves errno as it was. */
	errno = EXDEV;
	CHECK_EQ(swingcoll_overlap_create(&ov, comm, &opts), 0);
	CHECK_EQ(errno, EXDEV);
	CHECK_EQ(swingcoll_overlap_figures(ov, &figures), 0);
	CHECK(figures.start_s > 0 && figures.bytes_per_s > 0 && figures.crowd >= 1 &&
	      figures.product_slowdown >= 1 && figures.transfer_slowdown >= 1);
	CHECK_EQ(swingcoll_overlap_forecast(ov, 61, 17, 33, SWINGCOLL_F32, &forecast), 0);
	/* At most all six schedules, five times as often as asked for, and the calls after the choice. */
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
	bad = testlib_run_ranks(MOST_RANKS, choose, path);
	unlink(path);
	return bad;
}

/* ------------------------------------------------------------------ failures */

/*
 * The consumer of one rank fails, in each of its calls in turn, by every schedule. The results of the other ranks are
 * right, and so are the next ones on all ranks.
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

/* A rank dies in its consumer. The others are notified by an event, not by their deadline. */
static int rank_dies(uint32_t rank, void *arg)
{
	enum swingcoll_overlap_schedule s = *(enum swingcoll_overlap_schedule *)arg;
	struct swingcoll_comm_opts copts = { .timeout_ms = 2 * TESTLIB_EVENT_MS };
	struct swingcoll_overlap *ov;
	struct swingcoll_comm *comm;
	char text[256];
	struct work w;
	int ret = 0, who;

	CHECK_EQ(swingcoll_comm_create(&comm, &id, 3, rank, &copts), 0);
	CHECK_EQ(swingcoll_overlap_create(&ov, comm, NULL), 0);
	work_init(&w, &shapes[0], SWINGCOLL_F32, 3, rank);
	w.die_at = rank == 1 ? 2 : 0;
	/* The transfers of the first run may be complete before the death. */
	for (int i = 0; !ret && i < 3; i++)
		ret = run_one(ov, &w, s, NULL);
	CHECK(ret == -ECONNRESET || ret == -ECONNABORTED);
	CHECK(*died_ms && testlib_now_ms() < *died_ms + TESTLIB_EVENT_MS / 4);
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

	*died_ms = 0;
	swingcoll_unique_id(&id);
	testlib_fork_ranks(pid, 3, rank_dies, &s);
	return !testlib_was_killed(&pid[1]) | (testlib_wait_ranks(pid, 3) != 0);
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

static int all_released(void)
{
	CHECK(testlib_stat(SWC_STAT_PAGES_PINNED) > 0);
	return testlib_wait_released(0);
}

static int run_schedule(const struct job *j)
{
	int bad;

	swingcoll_unique_id(&id);
	bad = testlib_run_ranks(j->nranks, one_schedule, (void *)j);
	if (!bad)
		pairs = *shared_pairs;
	return bad;
}

int main(void)
{
	const enum swingcoll_overlap_schedule first = SWINGCOLL_OVERLAP_SERIAL;
	const int n = SWINGCOLL_OVERLAP_SCHEDULES - first;
	enum swingcoll_overlap_schedule s;

	ksft_print_header();
	testlib_require_device();
	died_ms = testlib_shared_alloc(sizeof(*died_ms));
	shared_pairs = testlib_shared_alloc(sizeof(*shared_pairs));
	pairs_init(&pairs, 4);
	ksft_set_plan((ARRAY_SIZE(jobs) + 1) * n + 4);
	for (const struct job *j = jobs; j < jobs + ARRAY_SIZE(jobs); j++)
		for (schedule = first; schedule < SWINGCOLL_OVERLAP_SCHEDULES; schedule++)
			ksft_test_result(!run_schedule(j), "%s, %d ranks%s",
					 swingcoll_overlap_name(schedule), j->nranks,
					 j->use_io_uring < 0 ? ", ioctl" : "");
	ksft_test_result(!run_choose(), "all ranks choose the same schedule");
	swingcoll_unique_id(&id);
	ksft_test_result(!testlib_run_ranks(3, consumer_fails, NULL), "a consumer fails");
	for (s = first; s < SWINGCOLL_OVERLAP_SCHEDULES; s++)
		ksft_test_result(!run_dies(s), "%s: a rank dies", swingcoll_overlap_name(s));
	swingcoll_unique_id(&id);
	ksft_test_result(!testlib_run_ranks(1, refusals, NULL), "bad arguments are refused");
	ksft_test_result(!all_released(), "pages, regions and contexts are released");
	ksft_finished();
}

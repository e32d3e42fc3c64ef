// SPDX-License-Identifier: GPL-2.0-only
/*
 * The recording of a communicator outlives it and tells what the rank at fault did last; who may read it, what is read
 * when the ring has wrapped, and how many recordings are kept.
 */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "swingcoll.h"
#include "testlib.h"

#define NOBODY 65534
#define N 3
#define OPS 3 /* that all ranks complete before one fails */
#define RECORDS 65536
#define TIMEOUT_MS 500
#define KNOBS "/sys/module/swingcoll/parameters/"

static uint8_t id[SWC_ID_BYTES];
static struct testlib_ctx c;
static struct swc_trace_record record[RECORDS];
static unsigned int *stage;

/* ------------------------------------------------------------------ reading */

static int query(struct swc_trace_query *q)
{
	q->max_records = RECORDS;
	q->records = (uintptr_t)record;
	return testlib_ioctl(c.fd, SWC_IOC_TRACE, q);
}

/* The number of the last communicator, 0: there is none. */
static uint64_t last_number(void)
{
	struct swc_trace_query q = { 0 };
	uint64_t last = 0;

	while (!testlib_ioctl(c.fd, SWC_IOC_TRACE, &q)) {
		last = q.number;
		q = (struct swc_trace_query){ .number = last + 1 };
	}
	return last;
}

/* Read a communicator that is ending: freeing it takes a while. */
static int query_ended(uint64_t number, struct swc_trace_query *q)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;

	do {
		*q = (struct swc_trace_query){ .number = number };
		CHECK_EQ(query(q), 0);
		CHECK_EQ(q->number, number);
		if (q->flags & SWC_TRACE_ENDED)
			return 0;
		testlib_sleep_ms(1);
	} while (testlib_now_ms() < limit);
	ksft_print_msg("the communicator has not ended\n");
	return 1;
}

/* The last record of a rank and type, or NULL. */
static const struct swc_trace_record *last_of(const struct swc_trace_query *q, unsigned int rank,
					      unsigned int type)
{
	for (uint32_t i = q->count; i--;)
		if (record[i].rank == rank && record[i].type == type)
			return &record[i];
	return NULL;
}

/* ------------------------------------------------------------------ failures */

enum how {
	KILL,
	TIMEOUT
};

/* All ranks do some operations; then rank 1 is missing. */
static int missing(uint32_t rank, void *arg)
{
	enum how how = *(enum how *)arg;
	static uint32_t buf[1000];
	struct swc_completion done;
	struct testlib_rank r;
	struct swc_desc d;

	CHECK_EQ(testlib_rank_open(&r, id, N, rank, TESTLIB_EVENT_MS), 0);
	for (int i = 0; i < OPS; i++)
		CHECK_EQ(testlib_check_allreduce(&r, 1000), 0);
	CHECK(testlib_meet(stage, N));
	if (rank == 1 && how == KILL) {
		CHECK(testlib_wait_count(stage, 2 * N - 1));
		kill(getpid(), SIGKILL);
	}
	if (rank == 1) {
		/* Until the others have their error. */
		CHECK(testlib_wait_count(stage, 3 * N - 2));
		return 0;
	}
	d = testlib_allreduce_desc(&r, buf, buf, 1000, SWC_U32);
	/* The deadline is rank 0's, which comes after rank 2: so no other rank is late, however slow it is. */
	if (rank == 0) {
		CHECK(testlib_wait_count(stage, N + 1));
		d.timeout_ms = how == TIMEOUT ? TIMEOUT_MS : 0;
	}
	CHECK_EQ(testlib_submit(r.c.fd, &d), 0);
	testlib_count(stage);
	CHECK_EQ(testlib_ring_next(&r.c, &done, TESTLIB_EVENT_MS), 0);
	CHECK_EQ(done.res, how == KILL ? -ECONNRESET : -ETIMEDOUT);
	testlib_count(stage);
	return 0;
}

/* The recording is there after all processes have gone, and tells the story. */
static int check_story(enum how how, uint64_t number)
{
	int error = how == KILL ? -ECONNRESET : -ETIMEDOUT;
	const struct swc_trace_record *r;
	struct swc_trace_query q;

	if (query_ended(number, &q))
		return 1;
	CHECK_EQ(q.flags, SWC_TRACE_ENDED | SWC_TRACE_FAILED | SWC_TRACE_ABORTED);
	CHECK_EQ(q.nranks, N);
	CHECK_EQ(q.error, error);
	CHECK_EQ(q.culprit, 1);
	CHECK(strstr(q.text, "rank 1"));
	CHECK(q.ended_ns > 0);
	CHECK_EQ(q.count, q.written);
	CHECK_EQ(q.first, q.written);
	for (uint32_t rank = 0; rank < N; rank++) {
		r = last_of(&q, rank, SWC_TRACE_JOIN);
		CHECK(r && r->arg);
		r = last_of(&q, rank, SWC_TRACE_STEP);
		CHECK(r && r->seq == OPS - 1);
	}
	/* What the missing rank did last. */
	r = last_of(&q, 1, SWC_TRACE_COMPLETE);
	CHECK(r && r->seq == OPS - 1 && !(int32_t)r->arg);
	for (uint32_t i = 0; i < q.count; i++)
		CHECK(record[i].rank != 1 || record[i].type == SWC_TRACE_DIED ||
		      record[i].type == SWC_TRACE_ABORT || record[i].seq < OPS);
	/* What the others wait for. */
	r = last_of(&q, 0, SWC_TRACE_SUBMIT);
	CHECK(r && r->seq == OPS && r->channel == SWC_ALLREDUCE && r->arg == 4000);
	r = last_of(&q, 0, SWC_TRACE_COMPLETE);
	CHECK(r && r->seq == OPS && (int32_t)r->arg == error && (int32_t)(r->arg >> 32) == 1);
	r = last_of(&q, 1, SWC_TRACE_ABORT);
	CHECK(r && r->seq == OPS && (int32_t)r->arg == error);
	r = last_of(&q, 1, SWC_TRACE_DIED);
	CHECK(r && r->seq == OPS);
	return 0;
}

static int story(enum how how)
{
	uint64_t number = last_number() + 1;
	pid_t pid[N];

	testlib_new_id(id);
	*stage = 0;
	testlib_fork_ranks(pid, N, missing, &how);
	if (how == KILL)
		CHECK(testlib_was_killed(&pid[1]));
	CHECK_EQ(testlib_wait_ranks(pid, N), 0);
	return check_story(how, number);
}

static int killed(void)
{
	return story(KILL);
}

static int timed_out(void)
{
	return story(TIMEOUT);
}

/* ------------------------------------------------------------------ reading */

/* Another user, with a device of its own, sees none of root's. */
static int as_nobody(void *arg)
{
	struct swc_trace_query q = { 0 };
	uint8_t own[SWC_ID_BYTES];
	uint32_t comm;

	(void)arg;
	CHECK_EQ(testlib_open(&c), 0);
	CHECK(last_number());
	CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
	/* It sees only its own, of tests that have run before or of this one. */
	for (; !query(&q); q = (struct swc_trace_query){ .number = q.number + 1 })
		CHECK_EQ(q.uid, NOBODY);
	testlib_new_id(own);
	CHECK_EQ(testlib_comm_create(c.fd, own, 1, 0, TESTLIB_EVENT_MS, &comm), 0);
	q = (struct swc_trace_query){ .comm = comm };
	CHECK_EQ(query(&q), 0);
	CHECK_EQ(q.uid, NOBODY);
	CHECK_EQ(q.flags, 0);
	CHECK_EQ(testlib_comm_leave(c.fd, comm), 0);
	q = (struct swc_trace_query){ .number = q.number };
	CHECK_EQ(query(&q), 0);
	CHECK_EQ(q.uid, NOBODY);
	return 0;
}

static int other_user(void)
{
	CHECK_EQ(testlib_run_child(as_nobody, NULL), 0);
	return 0;
}

/* A member of a communicator of another user may not read it by its handle either. */
static int guest(uint32_t rank, void *arg)
{
	struct swc_comm_create j = { .nranks = 2, .rank = rank, .flags = SWC_COMM_F_ANY_USER };
	struct swc_trace_query q = { 0 };
	struct testlib_ctx own;

	(void)arg;
	memcpy(j.id, id, sizeof(id));
	j.timeout_ms = TESTLIB_EVENT_MS;
	CHECK_EQ(testlib_open(&own), 0);
	if (rank) {
		CHECK(testlib_wait_members(id, 1));
		CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
	}
	CHECK_EQ(testlib_ioctl(own.fd, SWC_IOC_COMM_CREATE, &j), 0);
	q.comm = j.comm;
	CHECK_EQ(testlib_ioctl(own.fd, SWC_IOC_TRACE, &q), rank ? -ENOENT : 0);
	CHECK(testlib_meet(stage, 2));
	return 0;
}

/* ------------------------------------------------------------------ the library */

/* Rank 0 of two, whose peer is killed; its standard error goes to a file. */
static int debug_rank(uint32_t rank, void *arg)
{
	struct swingcoll_comm_opts opts = { .slot_max = -1 };
	struct swingcoll_comm *comm;
	struct swingcoll_id lib_id;
	float x = 1;

	memcpy(lib_id.bytes, id, sizeof(id));
	CHECK_EQ(setenv("SWINGCOLL_DEBUG", "trace", 1), 0);
	CHECK(dup2(fileno((FILE *)arg), STDERR_FILENO) >= 0);
	CHECK_EQ(swingcoll_comm_create(&comm, &lib_id, 2, (int)rank, &opts), 0);
	CHECK_EQ(swingcoll_allreduce(&x, &x, 1, SWINGCOLL_F32, SWINGCOLL_SUM, comm), 0);
	if (rank)
		kill(getpid(), SIGKILL);
	/* The first of them may be refused, as rank 1 has gone before. */
	CHECK(swingcoll_comm_failed(
		swingcoll_allreduce(&x, &x, 1, SWINGCOLL_F32, SWINGCOLL_SUM, comm)));
	/* Events are printed once. */
	CHECK(swingcoll_comm_failed(
		swingcoll_allreduce(&x, &x, 1, SWINGCOLL_F32, SWINGCOLL_SUM, comm)));
	swingcoll_comm_destroy(comm);
	return 0;
}

/* How often a word is in a file. */
static int count_word(FILE *f, const char *word)
{
	char line[512];
	int n = 0;

	rewind(f);
	while (fgets(line, sizeof(line), f))
		n += !!strstr(line, word);
	return n;
}

static int debug(void)
{
	FILE *f = tmpfile();
	pid_t pid[2];

	CHECK(f);
	testlib_new_id(id);
	testlib_fork_ranks(pid, 2, debug_rank, f);
	CHECK(testlib_was_killed(&pid[1]));
	CHECK_EQ(testlib_wait_ranks(pid, 1), 0);
	CHECK_EQ(count_word(f, "swingcoll: rank 0: rank 1 (pid"), 1);
	CHECK_EQ(count_word(f, "events of communicator"), 1);
	CHECK_EQ(count_word(f, " join "), 2);
	/* The two of the first operation; perhaps rank 0's second one. */
	CHECK(count_word(f, " allreduce, 4 bytes") >= 2);
	CHECK_EQ(count_word(f, " died "), 1);
	CHECK_EQ(count_word(f, " abort "), 1);
	fclose(f);
	return 0;
}

/* ------------------------------------------------------------------ the ring */

static int wraps(void)
{
	struct swc_trace_query q = { 0 };
	struct testlib_rank r;
	uint8_t own[SWC_ID_BYTES];

	testlib_single_rank(&r, own);
	do {
		CHECK_EQ(testlib_check_allreduce(&r, 10), 0);
		q = (struct swc_trace_query){ .comm = r.comm };
		CHECK_EQ(testlib_ioctl(r.c.fd, SWC_IOC_TRACE, &q), 0);
		CHECK_EQ(q.count, 0);
		CHECK(q.capacity <= RECORDS);
	} while (q.written < q.capacity + 10);
	q = (struct swc_trace_query){ .number = q.number };
	CHECK_EQ(query(&q), 0);
	CHECK_EQ(q.count, q.capacity);
	CHECK_EQ(q.first, q.written);
	for (uint32_t i = 0; i < q.count; i++) {
		CHECK_EQ(record[i].index, q.written - q.capacity + i);
		CHECK(record[i].type && record[i].type < SWC_TRACE_NR);
		CHECK(!i || record[i].seq >= record[i - 1].seq);
	}
	/* The last of them, in two calls. */
	q = (struct swc_trace_query){ .number = q.number,
				      .first = q.written - 5,
				      .max_records = 3,
				      .records = (uintptr_t)record };
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_TRACE, &q), 0);
	CHECK_EQ(q.count, 3);
	CHECK_EQ(q.first, q.written - 2);
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_TRACE, &q), 0);
	CHECK_EQ(q.count, 2);
	CHECK_EQ(record[1].index, q.written - 1);
	q.first = q.written + 1;
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_TRACE, &q), 0);
	CHECK_EQ(q.count, 0);
	CHECK_EQ(q.first, q.written);
	testlib_rank_close(&r);
	return 0;
}

static int refused(struct swc_trace_query q, int error)
{
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_TRACE, &q), error);
	return 0;
}

#define REFUSE(error, ...)                                                                         \
	do {                                                                                       \
		if (refused((struct swc_trace_query){ __VA_ARGS__ }, error))                       \
			return 1;                                                                  \
	} while (0)

static int arguments(void)
{
	uint64_t number = last_number();

	CHECK(number);
	REFUSE(-EINVAL, .resv = 1);
	REFUSE(-EINVAL, .comm = 1, .number = 1);
	REFUSE(-EINVAL, .max_records = 1);
	REFUSE(-EINVAL, .records = (uintptr_t)record);
	REFUSE(-ENOENT, .comm = 12345);
	REFUSE(-ENOENT, .number = number + 1000000);
	REFUSE(-EFAULT, .number = number, .max_records = 10, .records = 8);
	REFUSE(0, .number = number);
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_TRACE, (void *)8), -EFAULT);
	return 0;
}

/* ------------------------------------------------------------------ what is kept */

/* Set a module parameter. Returns its value before, or -1. */
static long knob(const char *name, long value)
{
	char path[128];
	long old = -1;
	FILE *f;

	snprintf(path, sizeof(path), KNOBS "%s", name);
	f = fopen(path, "r+e");
	if (!f || fscanf(f, "%ld", &old) != 1)
		old = -1;
	if (f)
		rewind(f);
	if (f && fprintf(f, "%ld\n", value) < 0)
		old = -1;
	if (f && fclose(f))
		old = -1;
	return old;
}

/* Make communicators, one after the other; the number of the last one. */
static uint64_t make_and_leave(int n)
{
	struct swc_trace_query q;
	uint64_t number = 0;
	uint8_t own[SWC_ID_BYTES];
	uint32_t comm;

	while (n--) {
		testlib_new_id(own);
		if (testlib_comm_create(c.fd, own, 1, 0, TESTLIB_EVENT_MS, &comm))
			return 0;
		q = (struct swc_trace_query){ .comm = comm };
		if (testlib_ioctl(c.fd, SWC_IOC_TRACE, &q))
			return 0;
		number = q.number;
		if (testlib_comm_leave(c.fd, comm))
			return 0;
		/* Until it has ended, or is not kept. */
		do {
			testlib_sleep_ms(1);
			q = (struct swc_trace_query){ .number = number };
		} while (!testlib_ioctl(c.fd, SWC_IOC_TRACE, &q) && q.number == number &&
			 !(q.flags & SWC_TRACE_ENDED));
	}
	return number;
}

static int count_kept(void)
{
	struct swc_trace_query q = { 0 };
	int n = 0;

	while (!testlib_ioctl(c.fd, SWC_IOC_TRACE, &q)) {
		n += !!(q.flags & SWC_TRACE_ENDED);
		q = (struct swc_trace_query){ .number = q.number + 1 };
	}
	return n;
}

static int keep(const char *name, long value, int want)
{
	long old = knob(name, value);
	uint64_t number = make_and_leave(5);
	int n = count_kept();
	struct swc_trace_query q = { .number = number };

	CHECK(old >= 0);
	CHECK_EQ(knob(name, old), value);
	CHECK(number);
	CHECK_EQ(n, want);
	/* The newest ones are kept. */
	if (want)
		CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_TRACE, &q), 0);
	return 0;
}

static int bounded(void)
{
	/* This drops all that there are. */
	CHECK_EQ(keep("trace_keep_s", 0, 0), 0);
	CHECK_EQ(keep("trace_keep", 3, 3), 0);
	CHECK_EQ(keep("trace_keep_user", 2, 2), 0);
	CHECK_EQ(keep("trace_keep", 0, 0), 0);
	return 0;
}

static int any_user(void)
{
	testlib_new_id(id);
	*stage = 0;
	CHECK_EQ(testlib_run_ranks(2, guest, NULL), 0);
	return 0;
}

int main(void)
{
	static const struct testlib_test test[] = {
		{ "a rank is killed: its last events can be read after the end", killed },
		{ "a deadline passes: so can those of the missing rank", timed_out },
		{ "SWINGCOLL_DEBUG=trace: the library prints the last events, once", debug },
		{ "the ring wraps: the last events are there, in order", wraps },
		{ "arguments that are refused", arguments },
		{ "another user reads its own recordings only", other_user },
		{ "nor may a member that is another user", any_user },
		{ "time, number, and number of a user bound what is kept", bounded },
	};

	ksft_print_header();
	testlib_require_root();
	CHECK(!testlib_open(&c));
	stage = testlib_shared_alloc(sizeof(*stage));
	testlib_run_tests(test, ARRAY_SIZE(test));
	ksft_finished();
}

// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "testlib.h"

struct ksft_count ksft_cnt;

/* ------------------------------------------------------------------ device */

void testlib_require_device(void)
{
	if (!access(SWC_DEVICE_PATH, R_OK | W_OK))
		return;
	/* A module that has made no device must not skip every test. */
	if (errno == ENOENT && !access("/sys/module/swingcoll", F_OK))
		ksft_exit_fail_msg("swingcoll is loaded, and %s does not exist\n", SWC_DEVICE_PATH);
	ksft_exit_skip("%s: %s (load swingcoll.ko, run as root)\n", SWC_DEVICE_PATH,
		       strerror(errno));
}

void testlib_require_root(void)
{
	if (geteuid())
		ksft_exit_skip("needs root\n");
	testlib_require_device();
}

int testlib_ioctl(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

int testlib_open(struct testlib_ctx *c)
{
	struct swc_info info;
	int ret;

	memset(c, 0, sizeof(*c));
	c->fd = open(SWC_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	if (c->fd < 0)
		return -errno;
	ret = testlib_ioctl(c->fd, SWC_IOC_INFO, &info);
	if (ret)
		return ret;
	c->ring_bytes = SWC_RING_ENTRIES_OFFSET + info.ring_entries * sizeof(struct swc_completion);
	c->ring = mmap(NULL, c->ring_bytes, PROT_READ, MAP_SHARED, c->fd, SWC_MMAP_RING);
	if (c->ring == MAP_FAILED)
		return -errno;
	c->user = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, SWC_MMAP_RING_USER);
	if (c->user == MAP_FAILED)
		return -errno;
	c->entry = (const void *)((const char *)c->ring + SWC_RING_ENTRIES_OFFSET);
	return 0;
}

void testlib_close(struct testlib_ctx *c)
{
	munmap((void *)c->ring, c->ring_bytes);
	munmap(c->user, 4096);
	close(c->fd);
}

struct swc_info testlib_info(void)
{
	struct swc_info info;
	int fd = open(SWC_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	int ret = fd < 0 ? -errno : testlib_ioctl(fd, SWC_IOC_INFO, &info);

	if (ret)
		ksft_exit_fail_msg("SWC_IOC_INFO: %s\n", strerror(-ret));
	close(fd);
	return info;
}

void testlib_new_id(uint8_t id[SWC_ID_BYTES])
{
	if (getrandom(id, SWC_ID_BYTES, 0) != SWC_ID_BYTES)
		ksft_exit_fail_msg("getrandom: %s\n", strerror(errno));
}

int testlib_comm_create(int fd, const uint8_t *id, uint32_t nranks, uint32_t rank,
			uint32_t timeout_ms, uint32_t *comm)
{
	struct swc_comm_create create = { .nranks = nranks,
					  .rank = rank,
					  .timeout_ms = timeout_ms };
	int ret;

	memcpy(create.id, id, SWC_ID_BYTES);
	ret = testlib_ioctl(fd, SWC_IOC_COMM_CREATE, &create);
	*comm = create.comm;
	return ret;
}

int testlib_comm_leave(int fd, uint32_t comm)
{
	struct swc_comm_ref ref = { .comm = comm };

	return testlib_ioctl(fd, SWC_IOC_COMM_LEAVE, &ref);
}

/* Are ranks 0 to n - 1 members of the communicator with this id? */
static bool are_members(int fd, const uint8_t *id, uint32_t n)
{
	struct swc_member_info m[SWC_MAX_LOCAL_RANKS];
	struct swc_comm_query q = { .max_members = n, .members = (uintptr_t)m };
	uint32_t members = 0;

	while (!testlib_ioctl(fd, SWC_IOC_COMM_QUERY, &q)) {
		if (memcmp(q.id_prefix, id, sizeof(q.id_prefix)) || q.nlocal < n)
			continue;
		while (members < n && m[members].state == SWC_MEMBER_JOINED)
			members++;
		return members == n;
	}
	return false;
}

bool testlib_wait_members(const uint8_t *id, uint32_t n)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;
	int fd = open(SWC_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	bool found = false;

	while (fd >= 0 && !(found = are_members(fd, id, n)) && testlib_now_ms() < limit)
		testlib_sleep_ms(1);
	if (!found)
		ksft_print_msg("ranks 0 to %u have not become members\n", n - 1);
	if (fd >= 0)
		close(fd);
	return found;
}

int testlib_comm_error(int fd, uint32_t comm, struct swc_comm_error *e)
{
	memset(e, 0, sizeof(*e));
	e->comm = comm;
	return testlib_ioctl(fd, SWC_IOC_COMM_ERROR, e);
}

int testlib_plan_load(int fd, uint32_t comm, const void *data, size_t bytes, uint32_t *plan,
		      char *text)
{
	struct swc_plan_load load = { .comm = comm, .bytes = bytes, .data = (uintptr_t)data };
	int ret = testlib_ioctl(fd, SWC_IOC_PLAN_LOAD, &load);

	if (plan)
		*plan = load.plan;
	if (text)
		memcpy(text, load.text, SWC_TEXT_BYTES);
	return ret;
}

int testlib_plan_install(int fd, uint32_t comm, struct testlib_plan *p, uint32_t *plan)
{
	int ret = testlib_plan_load(fd, comm, p->data, p->bytes, plan, NULL);

	testlib_plan_free(p);
	return ret;
}

int testlib_submit(int fd, const struct swc_desc *d)
{
	return testlib_ioctl(fd, SWC_IOC_SUBMIT, (void *)d);
}

int testlib_ring_next(struct testlib_ctx *c, struct swc_completion *out, uint32_t timeout_ms)
{
	uint32_t head = c->user->head, tail;

	while ((tail = __atomic_load_n(&c->ring->tail, __ATOMIC_ACQUIRE)) == head) {
		struct swc_ring_wait wait = { .tail = tail, .timeout_ms = timeout_ms };
		int ret = testlib_ioctl(c->fd, SWC_IOC_RING_WAIT, &wait);

		if (ret && ret != -EINTR)
			return ret;
	}
	*out = c->entry[head & (c->ring->entries - 1)];
	__atomic_store_n(&c->user->head, head + 1, __ATOMIC_RELEASE);
	return 0;
}

int testlib_submit_wait(struct testlib_ctx *c, const struct swc_desc *d, struct swc_completion *out)
{
	struct swc_completion unused;
	int ret = testlib_submit(c->fd, d);

	if (ret)
		return ret;
	if (!out)
		out = &unused;
	ret = testlib_ring_next(c, out, TESTLIB_EVENT_MS);
	return ret ? ret : out->res;
}

int testlib_stats(uint64_t *v, unsigned int n)
{
	struct swc_stats s = { .max = n, .values = (uintptr_t)v };
	int fd = open(SWC_DEVICE_PATH, O_RDWR | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	memset(v, 0, n * sizeof(*v));
	ret = testlib_ioctl(fd, SWC_IOC_STATS, &s);
	close(fd);
	return ret;
}

uint64_t testlib_stat(unsigned int which)
{
	uint64_t v[SWC_STAT_NR];

	return testlib_stats(v, SWC_STAT_NR) ? ~0ull : v[which];
}

/* Print what differs, if say. */
static bool balanced(const char *what, uint64_t plus, uint64_t minus, bool say)
{
	if (say && plus != minus)
		ksft_print_msg("%s: %llu, released %llu\n", what, (unsigned long long)plus,
			       (unsigned long long)minus);
	return plus == minus;
}

static bool released(unsigned int contexts, bool say)
{
	uint64_t v[SWC_STAT_NR];

	if (testlib_stats(v, SWC_STAT_NR))
		return false;
	/* Reading the counters takes a context of its own. */
	return balanced("pages pinned", v[SWC_STAT_PAGES_PINNED], v[SWC_STAT_PAGES_UNPINNED], say) &
	       balanced("regions", v[SWC_STAT_REGIONS_PINNED], v[SWC_STAT_REGIONS_UNPINNED], say) &
	       balanced("connections", v[SWC_STAT_CONNS_OPENED], v[SWC_STAT_CONNS_CLOSED], say) &
	       balanced("contexts", v[SWC_STAT_CONTEXTS_OPENED],
			v[SWC_STAT_CONTEXTS_CLOSED] + contexts + 1, say);
}

int testlib_wait_released(unsigned int contexts)
{
	uint64_t limit = testlib_now_ms() + TESTLIB_EVENT_MS;

	while (!released(contexts, false)) {
		if (testlib_now_ms() > limit)
			return !released(contexts, true);
		testlib_sleep_ms(5);
	}
	return 0;
}

/* ------------------------------------------------------------------ ranks */

int testlib_rank_open(struct testlib_rank *r, const uint8_t *id, uint32_t nranks, uint32_t rank,
		      uint32_t timeout_ms)
{
	int ret = testlib_open(&r->c);

	return ret ?: testlib_rank_join(r, id, nranks, rank, timeout_ms);
}

int testlib_rank_join(struct testlib_rank *r, const uint8_t *id, uint32_t nranks, uint32_t rank,
		      uint32_t timeout_ms)
{
	struct testlib_plan p;
	int ret;

	r->nranks = nranks;
	r->rank = rank;
	ret = testlib_comm_create(r->c.fd, id, nranks, rank, timeout_ms, &r->comm);
	if (ret)
		return ret;
	testlib_plan_direct(&p, nranks, rank);
	return testlib_plan_install(r->c.fd, r->comm, &p, &r->plan);
}

void testlib_rank_close(struct testlib_rank *r)
{
	testlib_comm_leave(r->c.fd, r->comm);
	testlib_close(&r->c);
}

struct swc_desc testlib_allreduce_desc(const struct testlib_rank *r, const void *send, void *recv,
				       uint64_t count, int dtype)
{
	return (struct swc_desc){ .comm = r->comm,
				  .plan = r->plan,
				  .send = (uintptr_t)send,
				  .recv = (uintptr_t)recv,
				  .count = count,
				  .coll = SWC_ALLREDUCE,
				  .dtype = dtype,
				  .redop = SWC_SUM };
}

int testlib_check_allreduce(struct testlib_rank *r, uint64_t count)
{
	uint32_t *send = malloc(count * 4 + 4), *recv = calloc(count + 1, 4);
	struct swc_desc d = testlib_allreduce_desc(r, send, recv, count, SWC_U32);
	int ret;

	for (uint64_t i = 0; i < count; i++)
		send[i] = i * 7 + r->rank * 1000003;
	ret = testlib_submit_wait(&r->c, &d, NULL);
	for (uint64_t i = 0; i < count && !ret; i++) {
		uint32_t want = i * 7 * r->nranks + 1000003 * (r->nranks * (r->nranks - 1) / 2);

		if (recv[i] != want) {
			ksft_print_msg("element %llu is %u, not %u\n", (unsigned long long)i,
				       recv[i], want);
			ret = -EBADMSG;
		}
	}
	free(send);
	free(recv);
	return ret;
}

void testlib_single_rank(struct testlib_rank *r, uint8_t id[SWC_ID_BYTES])
{
	int ret;

	testlib_new_id(id);
	ret = testlib_rank_open(r, id, 1, 0, 5000);
	if (ret)
		ksft_exit_fail_msg("cannot create a communicator of one rank: %s\n",
				   strerror(-ret));
}

void testlib_run_tests(const struct testlib_test *test, unsigned int n)
{
	ksft_set_plan(n);
	for (unsigned int t = 0; t < n; t++)
		ksft_test_result(!test[t].fn(), "%s", test[t].name);
}

const unsigned long testlib_call[TESTLIB_CALLS] = {
	SWC_IOC_INFO,
	SWC_IOC_COMM_CREATE,
	SWC_IOC_COMM_LEAVE,
	SWC_IOC_COMM_ABORT,
	SWC_IOC_COMM_ERROR,
	SWC_IOC_PLAN_LOAD,
	SWC_IOC_PLAN_UNLOAD,
	SWC_IOC_MEM_REG,
	SWC_IOC_MEM_UNREG,
	SWC_IOC_SUBMIT,
	SWC_IOC_RING_WAIT,
	SWC_IOC_SLOT_WAIT,
	SWC_IOC_SLOT_WAKE,
	SWC_IOC_COMM_QUERY,
	SWC_IOC_STATS,
	SWC_IOC_PARTITIONED_INIT,
	SWC_IOC_PARTITIONED_START,
	SWC_IOC_PARTITIONED_KICK,
	SWC_IOC_PARTITIONED_WAIT,
	SWC_IOC_PARTITIONED_FREE,
	SWC_IOC_USER_QUERY,
	SWC_IOC_TRACE,
	SWC_IOC_SPARSE_NOTE,
};

bool testlib_is_asked(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return true;
	return argc < 2;
}

static void (*at_end)(void);
static pid_t at_end_of;

static void run_at_end(void)
{
	if (getpid() == at_end_of)
		at_end();
}

static void end_by_signal(int number)
{
	run_at_end();
	signal(number, SIG_DFL);
	raise(number);
}

void testlib_at_end(void (*fn)(void))
{
	at_end = fn;
	at_end_of = getpid();
	atexit(run_at_end);
	signal(SIGTERM, end_by_signal);
	signal(SIGINT, end_by_signal);
}

bool testlib_read_text(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, bytes - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return n >= 0;
}

bool testlib_write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

unsigned int testlib_env(const char *name, unsigned int dflt)
{
	const char *text = getenv(name);

	return text && *text ? strtoul(text, NULL, 0) : dflt;
}

unsigned int testlib_env_seed(const char *name)
{
	unsigned int seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		ksft_exit_fail_msg("getrandom: %s\n", strerror(errno));
	return testlib_env(name, seed);
}

/* ------------------------------------------------------------------ io_uring */

int testlib_uring_init(struct io_uring *ring, unsigned int entries, unsigned int flags)
{
	struct io_uring_params params = { .flags = flags };

	return io_uring_queue_init_params(entries, ring, &params);
}

static struct io_uring_sqe *prep(struct io_uring *ring, int fd, uint32_t cmd_op,
				 const void *payload, size_t bytes, uint64_t user_data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		return NULL;
	memset(sqe, 0, ring->flags & IORING_SETUP_SQE128 ? 128 : 64);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = cmd_op;
	sqe->user_data = user_data;
	memcpy(sqe->cmd, payload, ring->flags & IORING_SETUP_SQE128 ? bytes : 16);
	return sqe;
}

struct io_uring_sqe *testlib_uring_prep(struct io_uring *ring, int fd, const struct swc_desc *d,
					uint64_t user_data)
{
	return prep(ring, fd, SWC_CMD_COLLECTIVE, d, sizeof(*d), user_data);
}

struct io_uring_sqe *testlib_uring_prep_wait(struct io_uring *ring, int fd,
					     const struct swc_partitioned_ref *ref,
					     uint64_t user_data)
{
	return prep(ring, fd, SWC_CMD_PARTITIONED_WAIT, ref, sizeof(*ref), user_data);
}

int testlib_uring_next(struct io_uring *ring, struct io_uring_cqe **cqe, uint32_t timeout_ms)
{
	struct __kernel_timespec t = { timeout_ms / 1000, timeout_ms % 1000 * 1000000ll };
	int ret;

	do
		ret = io_uring_wait_cqe_timeout(ring, cqe, &t);
	while (ret == -EINTR);
	return ret;
}

int testlib_uring_wait(struct io_uring *ring, uint64_t *user_data, uint64_t *word,
		       uint32_t timeout_ms)
{
	struct io_uring_cqe *cqe;
	int ret = testlib_uring_next(ring, &cqe, timeout_ms);

	if (ret)
		return ret;
	if (user_data)
		*user_data = cqe->user_data;
	if (word)
		*word = ring->flags & IORING_SETUP_CQE32 ? cqe->big_cqe[0] : 0;
	ret = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

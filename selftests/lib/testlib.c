// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>

#include "testlib.h"

struct ksft_count ksft_cnt;

/* ------------------------------------------------------------------ device */

void swct_need_device(void)
{
	if (access(SWC_DEVICE_PATH, R_OK | W_OK))
		ksft_exit_skip("%s: %s (load swingcoll.ko, run as root)\n", SWC_DEVICE_PATH,
			       strerror(errno));
}

void swct_need_root(void)
{
	if (geteuid())
		ksft_exit_skip("needs root\n");
	swct_need_device();
}

int swct_ioctl(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

int swct_open(struct swct_ctx *c)
{
	struct swc_info info;
	int ret;

	memset(c, 0, sizeof(*c));
	c->fd = open(SWC_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	if (c->fd < 0)
		return -errno;
	ret = swct_ioctl(c->fd, SWC_IOC_INFO, &info);
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

void swct_close(struct swct_ctx *c)
{
	munmap((void *)c->ring, c->ring_bytes);
	munmap(c->user, 4096);
	close(c->fd);
}

void swct_id(uint8_t id[SWC_ID_BYTES])
{
	if (getrandom(id, SWC_ID_BYTES, 0) != SWC_ID_BYTES)
		ksft_exit_fail_msg("getrandom: %s\n", strerror(errno));
}

int swct_join(int fd, const uint8_t *id, uint32_t nranks, uint32_t rank, uint32_t timeout_ms,
	      uint32_t *comm)
{
	struct swc_comm_join join = { .nranks = nranks, .rank = rank, .timeout_ms = timeout_ms };
	int ret;

	memcpy(join.id, id, SWC_ID_BYTES);
	ret = swct_ioctl(fd, SWC_IOC_COMM_JOIN, &join);
	*comm = join.comm;
	return ret;
}

int swct_leave(int fd, uint32_t comm)
{
	struct swc_comm_ref ref = { .comm = comm };

	return swct_ioctl(fd, SWC_IOC_COMM_LEAVE, &ref);
}

/* Of the communicator with this id, if anybody has made it. */
static bool have_joined(int fd, const uint8_t *id, uint32_t n)
{
	struct swc_member_info m[SWC_MAX_LOCAL_RANKS];
	struct swc_comm_query q = { .max_members = n, .members = (uintptr_t)m };
	uint32_t there = 0;

	while (!swct_ioctl(fd, SWC_IOC_COMM_QUERY, &q)) {
		if (memcmp(q.id_prefix, id, sizeof(q.id_prefix)) || q.nlocal < n)
			continue;
		while (there < n && m[there].state == SWC_MEMBER_JOINED)
			there++;
		return there == n;
	}
	return false;
}

bool swct_joined(const uint8_t *id, uint32_t n)
{
	uint64_t until = swct_ms() + 10000;
	int fd = open(SWC_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	bool there;

	do {
		there = fd >= 0 && have_joined(fd, id, n);
		swct_sleep_ms(1);
	} while (!there && swct_ms() < until);
	close(fd);
	return there;
}

int swct_error(int fd, uint32_t comm, struct swc_comm_error *e)
{
	memset(e, 0, sizeof(*e));
	e->comm = comm;
	return swct_ioctl(fd, SWC_IOC_COMM_ERROR, e);
}

int swct_submit(int fd, const struct swc_desc *d)
{
	return swct_ioctl(fd, SWC_IOC_SUBMIT, (void *)d);
}

int swct_next(struct swct_ctx *c, struct swc_completion *out, uint32_t timeout_ms)
{
	uint32_t head = c->user->head, tail;
	uint64_t until = swct_ms() + timeout_ms;

	for (;;) {
		tail = __atomic_load_n(&c->ring->tail, __ATOMIC_ACQUIRE);
		if (tail != head)
			break;
		struct swc_ring_wait wait = { .tail = tail, .timeout_ms = timeout_ms };
		int ret = swct_ioctl(c->fd, SWC_IOC_RING_WAIT, &wait);

		if (ret && ret != -EINTR)
			return ret;
		if (swct_ms() > until + 1000)
			return -ETIME;
	}
	*out = c->entry[head & (c->ring->entries - 1)];
	__atomic_store_n(&c->user->head, head + 1, __ATOMIC_RELEASE);
	return 0;
}

int swct_run(struct swct_ctx *c, const struct swc_desc *d, struct swc_completion *out)
{
	struct swc_completion mine;
	int ret = swct_submit(c->fd, d);

	if (ret)
		return ret;
	if (!out)
		out = &mine;
	ret = swct_next(c, out, 60000);
	return ret ? ret : out->res;
}

int swct_stats(uint64_t *v, unsigned int n)
{
	struct swc_stats s = { .max = n, .values = (uintptr_t)v };
	int fd = open(SWC_DEVICE_PATH, O_RDWR | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	memset(v, 0, n * sizeof(*v));
	ret = swct_ioctl(fd, SWC_IOC_STATS, &s);
	close(fd);
	return ret;
}

uint64_t swct_stat(unsigned int which)
{
	uint64_t v[SWC_STAT_NR];

	return swct_stats(v, SWC_STAT_NR) ? ~0ull : v[which];
}

/* ------------------------------------------------------------------ plans */

#define GROW(p, n)                                                                                 \
	(p = realloc(p, ((size_t)(n) + 1) * sizeof(*(p))), memset(&(p)[n], 0, sizeof(*(p))))

void swct_plan_init(struct swct_plan *p, int coll, uint32_t nranks, uint32_t rank, uint32_t root,
		    uint32_t part_blocks)
{
	struct swc_plan_header *h = &p->h;
	bool parts = coll == SWC_REDUCE_SCATTER || coll == SWC_ALLGATHER;
	uint32_t all;

	memset(p, 0, sizeof(*p));
	h->magic = SWC_PLAN_MAGIC;
	h->version = SWC_PLAN_VERSION;
	h->header_bytes = sizeof(*h);
	h->nranks = nranks;
	h->rank = rank;
	h->root = root;
	h->nparts = parts ? nranks : 1;
	h->part_blocks = part_blocks;
	h->coll = coll;
	h->family = 77 + coll;
	strcpy(h->name, "selftest");
	all = h->nparts * part_blocks;
	if (coll == SWC_BARRIER)
		return;
	h->window[SWC_BUF_SEND].nblocks = all;
	h->window[SWC_BUF_RECV].nblocks = all;
	if (coll == SWC_REDUCE_SCATTER)
		h->window[SWC_BUF_RECV] = (struct swc_plan_window){ rank * part_blocks,
								    part_blocks };
	if (coll == SWC_ALLGATHER)
		h->window[SWC_BUF_SEND] = (struct swc_plan_window){ rank * part_blocks,
								    part_blocks };
	if (coll == SWC_BROADCAST && rank != root)
		h->window[SWC_BUF_SEND].nblocks = 0;
	if (coll == SWC_REDUCE && rank != root)
		h->window[SWC_BUF_RECV].nblocks = 0;
}

void swct_plan_channel(struct swct_plan *p)
{
	GROW(p->chan, p->h.nchannels);
	p->chan[p->h.nchannels++].first_step = p->h.nsteps;
}

void swct_plan_step(struct swct_plan *p, int kind)
{
	GROW(p->step, p->h.nsteps);
	p->step[p->h.nsteps].kind = kind;
	p->step[p->h.nsteps++].first_xfer = p->h.nxfers;
	p->chan[p->h.nchannels - 1].nsteps++;
}

static struct swc_plan_xfer *add_xfer(struct swct_plan *p, uint32_t rank, int buf, uint32_t first,
				      uint32_t n)
{
	struct swc_plan_xfer *x;

	GROW(p->xfer, p->h.nxfers);
	x = &p->xfer[p->h.nxfers++];
	x->rank = rank;
	x->buf = buf;
	x->first_block = first;
	x->nblocks = n;
	return x;
}

void swct_plan_send(struct swct_plan *p, uint32_t rank, int buf, uint32_t first, uint32_t n)
{
	add_xfer(p, rank, buf, first, n);
	p->step[p->h.nsteps - 1].nsend++;
}

void swct_plan_send_stored(struct swct_plan *p, uint32_t rank, int buf, uint32_t first, uint32_t n)
{
	add_xfer(p, rank, buf, first, n)->flags = SWC_XFER_STORED;
	p->step[p->h.nsteps - 1].nsend++;
}

void swct_plan_recv(struct swct_plan *p, uint32_t rank, int buf, uint32_t first, uint32_t n,
		    int operand, uint32_t flags)
{
	struct swc_plan_xfer *x = add_xfer(p, rank, buf, first, n);

	x->operand = operand;
	x->flags = flags;
	p->step[p->h.nsteps - 1].nrecv++;
}

void swct_plan_pack(struct swct_plan *p)
{
	size_t a = p->h.nchannels * sizeof(*p->chan), b = p->h.nsteps * sizeof(*p->step),
	       c = p->h.nxfers * sizeof(*p->xfer);
	char *at;

	p->bytes = sizeof(p->h) + a + b + c;
	p->h.total_bytes = p->bytes;
	free(p->data);
	p->data = at = malloc(p->bytes);
	memcpy(at, &p->h, sizeof(p->h));
	at += sizeof(p->h);
	if (a)
		memcpy(at, p->chan, a);
	if (b)
		memcpy(at + a, p->step, b);
	if (c)
		memcpy(at + a + b, p->xfer, c);
}

void swct_plan_free(struct swct_plan *p)
{
	free(p->chan);
	free(p->step);
	free(p->xfer);
	free(p->data);
}

int swct_plan_load(int fd, uint32_t comm, const void *data, size_t bytes, uint32_t *plan,
		   char *text)
{
	struct swc_plan_load load = { .comm = comm, .bytes = bytes, .data = (uintptr_t)data };
	int ret = swct_ioctl(fd, SWC_IOC_PLAN_LOAD, &load);

	if (plan)
		*plan = load.plan;
	if (text)
		memcpy(text, load.text, SWC_TEXT_BYTES);
	return ret;
}

void swct_plan_direct(struct swct_plan *p, uint32_t nranks, uint32_t rank)
{
	swct_plan_init(p, SWC_ALLREDUCE, nranks, rank, 0, 1);
	p->h.window[SWC_BUF_SCRATCH].nblocks = 1;
	swct_plan_channel(p);
	swct_plan_step(p, SWC_STEP_LOCAL);
	for (uint32_t r = 0; r < nranks; r++)
		swct_plan_send(p, r, SWC_BUF_SEND, 0, 1);
	swct_plan_recv(p, rank, SWC_BUF_SCRATCH, 0, 1, 0, SWC_XFER_FINAL);
	swct_plan_step(p, SWC_STEP_SYNC);
	swct_plan_step(p, SWC_STEP_LOCAL);
	swct_plan_send(p, rank, SWC_BUF_SCRATCH, 0, 1);
	swct_plan_recv(p, rank, SWC_BUF_RECV, 0, 1, 0, 0);
	swct_plan_pack(p);
}

void swct_plan_ring(struct swct_plan *p, uint32_t n, uint32_t rank)
{
	uint32_t next = (rank + 1) % n, prev = (rank + n - 1) % n;

	swct_plan_init(p, SWC_ALLREDUCE, n, rank, 0, n);
	p->h.family = 1234;
	swct_plan_channel(p);
	for (uint32_t k = 0; k + 1 < n; k++) {
		uint32_t out = (rank + n - k) % n, in = (prev + n - k) % n;

		swct_plan_step(p, SWC_STEP_NET);
		swct_plan_send(p, next, k ? SWC_BUF_RECV : SWC_BUF_SEND, out, 1);
		swct_plan_recv(p, prev, SWC_BUF_RECV, in, 1, SWC_BUF_SEND,
			       SWC_XFER_REDUCE | (k + 2 == n ? SWC_XFER_FINAL : 0));
	}
	for (uint32_t k = 0; k + 1 < n; k++) {
		swct_plan_step(p, SWC_STEP_NET);
		swct_plan_send_stored(p, next, SWC_BUF_RECV, (rank + 1 + n - k) % n, 1);
		swct_plan_recv(p, prev, SWC_BUF_RECV, (prev + 1 + n - k) % n, 1, 0, 0);
	}
	swct_plan_pack(p);
}

void swct_plan_barrier(struct swct_plan *p, uint32_t nranks, uint32_t rank)
{
	swct_plan_init(p, SWC_BARRIER, nranks, rank, 0, 1);
	swct_plan_channel(p);
	swct_plan_step(p, SWC_STEP_SYNC);
	swct_plan_pack(p);
}

/* ------------------------------------------------------------------ ranks */

int swct_rank_up(struct swct_rank *r, const uint8_t *id, uint32_t nranks, uint32_t rank,
		 uint32_t timeout_ms)
{
	struct swct_plan p;
	int ret;

	r->nranks = nranks;
	r->rank = rank;
	ret = swct_open(&r->c);
	if (ret)
		return ret;
	ret = swct_join(r->c.fd, id, nranks, rank, timeout_ms, &r->comm);
	if (ret)
		return ret;
	swct_plan_direct(&p, nranks, rank);
	ret = swct_plan_load(r->c.fd, r->comm, p.data, p.bytes, &r->plan, NULL);
	swct_plan_free(&p);
	return ret;
}

void swct_rank_down(struct swct_rank *r)
{
	swct_leave(r->c.fd, r->comm);
	swct_close(&r->c);
}

struct swc_desc swct_allreduce(const struct swct_rank *r, const void *send, void *recv,
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

int swct_sound(struct swct_rank *r, uint64_t count)
{
	uint32_t *send = malloc(count * 4 + 4), *recv = calloc(count + 1, 4);
	struct swc_desc d = swct_allreduce(r, send, recv, count, SWC_U32);
	int ret;

	for (uint64_t i = 0; i < count; i++)
		send[i] = i * 7 + r->rank * 1000003;
	ret = swct_run(&r->c, &d, NULL);
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

void swct_alone(struct swct_rank *r, uint8_t id[SWC_ID_BYTES])
{
	int ret;

	swct_id(id);
	ret = swct_rank_up(r, id, 1, 0, 5000);
	if (ret)
		ksft_exit_fail_msg("cannot make a communicator of one: %s\n", strerror(-ret));
}

void swct_tests(const struct swct_test *test, unsigned int n)
{
	ksft_set_plan(n);
	for (unsigned int t = 0; t < n; t++)
		ksft_test_result(!test[t].fn(), "%s", test[t].name);
}

/* ------------------------------------------------------------------ processes */

uint64_t swct_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

void swct_sleep_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

void *swct_shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	return p;
}

void swct_fork(pid_t *pid, uint32_t nranks, swct_fn fn, void *arg)
{
	fflush(stdout);
	for (uint32_t r = 0; r < nranks; r++) {
		pid[r] = fork();
		if (pid[r] < 0)
			ksft_exit_fail_msg("fork: %s\n", strerror(errno));
		if (!pid[r]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(fn(r, arg));
		}
	}
}

int swct_reap(pid_t *pid, uint32_t nranks, uint32_t timeout_ms)
{
	uint64_t until = swct_ms() + timeout_ms;
	int failed = 0, status;
	bool late = false;

	for (uint32_t r = 0; r < nranks; r++) {
		unsigned int nap = 1;
		pid_t got;

		if (pid[r] <= 0)
			continue;
		while (!(got = waitpid(pid[r], &status, late ? 0 : WNOHANG))) {
			if (swct_ms() > until) {
				ksft_print_msg("rank %u did not end within %u ms: killing all\n", r,
					       timeout_ms);
				for (uint32_t i = r; i < nranks; i++)
					if (pid[i] > 0)
						kill(pid[i], SIGKILL);
				late = true;
				continue;
			}
			swct_sleep_ms(nap);
			nap = nap < 16 ? nap * 2 : nap;
		}
		pid[r] = 0;
		if (got < 0 || !WIFEXITED(status) || WEXITSTATUS(status)) {
			if (got >= 0 && WIFSIGNALED(status) && !late)
				ksft_print_msg("rank %u: signal %d\n", r, WTERMSIG(status));
			failed++;
		}
	}
	return failed;
}

int swct_ranks(uint32_t nranks, uint32_t timeout_ms, swct_fn fn, void *arg)
{
	pid_t pid[SWC_MAX_LOCAL_RANKS];

	swct_fork(pid, nranks, fn, arg);
	return swct_reap(pid, nranks, timeout_ms);
}

int swct_child(int (*fn)(void *arg), void *arg, uint32_t timeout_ms)
{
	uint64_t until = swct_ms() + timeout_ms;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		ksft_exit_fail_msg("fork: %s\n", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(fn(arg));
	}
	while (!waitpid(pid, &status, WNOHANG)) {
		if (swct_ms() > until) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		swct_sleep_ms(2);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* ------------------------------------------------------------------ io_uring */

int swct_uring_init(struct io_uring *ring, unsigned int entries, unsigned int flags)
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

struct io_uring_sqe *swct_uring_prep(struct io_uring *ring, int fd, const struct swc_desc *d,
				     uint64_t user_data)
{
	return prep(ring, fd, SWC_CMD_COLLECTIVE, d, sizeof(*d), user_data);
}

struct io_uring_sqe *swct_uring_prep_wait(struct io_uring *ring, int fd,
					  const struct swc_part_ref *ref, uint64_t user_data)
{
	return prep(ring, fd, SWC_CMD_PART_WAIT, ref, sizeof(*ref), user_data);
}

int swct_uring_next(struct io_uring *ring, struct io_uring_cqe **cqe, uint32_t timeout_ms)
{
	struct __kernel_timespec t = { timeout_ms / 1000, timeout_ms % 1000 * 1000000ll };
	int ret;

	do
		ret = io_uring_wait_cqe_timeout(ring, cqe, &t);
	while (ret == -EINTR);
	return ret;
}

int swct_uring_wait(struct io_uring *ring, uint64_t *user_data, uint64_t *word, uint32_t timeout_ms)
{
	struct io_uring_cqe *cqe;
	int ret = swct_uring_next(ring, &cqe, timeout_ms);

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

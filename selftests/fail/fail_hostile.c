// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two users attack the device in many ways. Operations, deadlines, ends of processes and memory of a third one must
 * not wait for them. First one attack alone: operations that are many, long and without a deadline keep the CPUs busy.
 * Then all together.
 *
 * HOSTILE_SECONDS: afterwards, random sets of attacks for so long; HOSTILE_SEED: repeat another run.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "stall.h"
#include "victim.h"

#define ATTACKER 65534
#define SECOND_ATTACKER 65532
/* Each with as many operations as may be in flight: more than a work queue runs at once. */
#define COMMS 5
#define LIMIT (1ul << 20)
#define KEPT 16

/* Counts attackers that are about to begin. */
static unsigned int *attacking;

static uint32_t rnd(uint32_t below)
{
	return rand() % below;
}

/* ------------------------------------------------------------------ attacks */

/*
 * Attackers. The device is open. An attack goes on until it is killed; where calls are refused it does not mind. It
 * returns 1 if the kernel grants what it must not.
 */
struct attack {
	const char *name;
	int (*fn)(struct testlib_ctx *c);
};

static int single(struct testlib_ctx *c, uint32_t slot_bytes, uint32_t flags, uint32_t *comm)
{
	struct swc_comm_create create = { .nranks = 1,
					  .timeout_ms = VICTIM_PROMPT_MS,
					  .slot_bytes = slot_bytes,
					  .flags = flags };
	int ret;

	testlib_new_id(create.id);
	ret = testlib_ioctl(c->fd, SWC_IOC_COMM_CREATE, &create);
	*comm = create.comm;
	return ret;
}

static int long_plan(struct testlib_ctx *c, uint32_t comm, uint32_t *plan)
{
	struct testlib_plan p;

	testlib_plan_longest(&p, 1, 0);
	return testlib_plan_install(c->fd, comm, &p, plan);
}

/* No SWC_OP_WAITING: kernel threads execute the plans. */
static int long_operations(struct testlib_ctx *c)
{
	struct swc_desc d[COMMS];

	for (int i = 0; i < COMMS; i++) {
		d[i] = (struct swc_desc){ .coll = SWC_BARRIER,
					  .timeout_ms = VICTIM_ENDLESS_MS,
					  .user_data = i };
		CHECK_EQ(single(c, 0, 0, &d[i].comm), 0);
		CHECK_EQ(long_plan(c, d[i].comm, &d[i].plan), 0);
	}
	for (int k = 0; k < SWC_MAX_INFLIGHT; k++)
		for (int i = 0; i < COMMS; i++)
			CHECK_EQ(testlib_submit(c->fd, &d[i]), 0);
	testlib_count(attacking);
	for (;;) {
		struct swc_completion done;

		CHECK_EQ(testlib_ring_next(c, &done, VICTIM_ENDLESS_MS), 0);
		CHECK_EQ(done.res, 0);
		CHECK_EQ(testlib_submit(c->fd, &d[done.user_data]), 0);
	}
}

static int memory(struct testlib_ctx *c)
{
	struct rlimit limit = { LIMIT, LIMIT };
	char *p = mmap(NULL, 4 * LIMIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct swc_mem_unreg kept[KEPT] = { 0 };

	CHECK(p != MAP_FAILED);
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	testlib_count(attacking);
	for (;;) {
		struct swc_mem_unreg *k = &kept[rnd(KEPT)];
		struct swc_mem_reg m = { .addr = (uintptr_t)p + 4096 * rnd(512),
					 .bytes = 4096 * (1 + rnd(512)) };
		int ret;

		if (k->region)
			testlib_ioctl(c->fd, SWC_IOC_MEM_UNREG, k);
		ret = testlib_ioctl(c->fd, SWC_IOC_MEM_REG, &m);
		CHECK(ret || m.bytes <= LIMIT);
		k->region = ret ? 0 : m.region;
	}
}

static int communicators(struct testlib_ctx *c)
{
	uint32_t kept[KEPT] = { 0 };

	testlib_count(attacking);
	for (;;) {
		uint32_t *k = &kept[rnd(KEPT)];

		if (*k)
			CHECK_EQ(testlib_comm_leave(c->fd, *k), 0);
		if (single(c, rnd(1 << 20) & ~63u, 0, k))
			*k = 0;
	}
}

static int plans(struct testlib_ctx *c)
{
	struct swc_plan_unload un[KEPT] = { 0 };
	uint32_t comm;

	CHECK_EQ(single(c, 0, 0, &comm), 0);
	testlib_count(attacking);
	for (;;) {
		struct swc_plan_unload *u = &un[rnd(KEPT)];

		if (u->comm)
			testlib_ioctl(c->fd, SWC_IOC_PLAN_UNLOAD, u);
		u->comm = long_plan(c, comm, &u->plan) ? 0 : comm;
	}
}

static int opens(struct testlib_ctx *c)
{
	(void)c;
	testlib_count(attacking);
	for (;;) {
		int fd[2 * KEPT];

		for (int i = 0; i < 2 * KEPT; i++)
			CHECK((fd[i] = open(SWC_DEVICE_PATH, O_RDWR)) >= 0);
		for (int i = 0; i < 2 * KEPT; i++)
			close(fd[i]);
	}
}

/* Nobody writes the word that this waits for. */
static int waits(struct testlib_ctx *c)
{
	struct swc_slot_wait wait = { .timeout_ms = 1, .suspect = -1 };
	struct swc_ring_wait ring = { .timeout_ms = 1 };
	uint32_t comm;

	testlib_count(attacking);
	for (;;) {
		CHECK_EQ(single(c, 4096, 0, &comm), 0);
		wait.comm = comm;
		ring.tail = c->user->head;
		testlib_ioctl(c->fd, SWC_IOC_SLOT_WAIT, &wait);
		testlib_ioctl(c->fd, SWC_IOC_RING_WAIT, &ring);
		testlib_comm_leave(c->fd, comm);
	}
}

static int aborts(struct testlib_ctx *c)
{
	testlib_count(attacking);
	for (;;) {
		struct swc_desc d = { .coll = SWC_BARRIER, .timeout_ms = VICTIM_ENDLESS_MS };
		struct swc_comm_ref ref = { 0 };
		struct swc_completion done;
		int n = 0;

		CHECK_EQ(single(c, 0, 0, &d.comm), 0);
		CHECK_EQ(long_plan(c, d.comm, &d.plan), 0);
		while (n < SWC_MAX_INFLIGHT && !testlib_submit(c->fd, &d))
			n++;
		ref.comm = d.comm;
		testlib_ioctl(c->fd, SWC_IOC_COMM_ABORT, &ref);
		while (n--)
			CHECK_EQ(testlib_ring_next(c, &done, VICTIM_ENDLESS_MS), 0);
		testlib_comm_leave(c->fd, d.comm);
	}
}

static int urgent(struct testlib_ctx *c)
{
	uint32_t comm;

	testlib_count(attacking);
	for (;;)
		CHECK_EQ(single(c, 0, SWC_COMM_F_URGENT, &comm), -EPERM);
}

static uint8_t pair_id[SWC_ID_BYTES];

/* With a name that would clear a terminal. */
static int dying(uint32_t rank, void *arg)
{
	static uint32_t v[1000];
	struct testlib_rank r = { 0 };
	struct swc_desc d;

	(void)arg;
	prctl(PR_SET_NAME, "\033[2J\r\n\007\033]0;x");
	if (testlib_rank_open(&r, pair_id, 2, rank, VICTIM_PROMPT_MS))
		return 0;
	d = testlib_allreduce_desc(&r, v, v, 1000, SWC_U32);
	if (!rank)
		testlib_submit(r.c.fd, &d);
	raise(SIGKILL);
	return 0;
}

/* Pairs of processes that die, and processes that outlive the owner of the descriptor that they hold. */
static int deaths(struct testlib_ctx *c)
{
	testlib_count(attacking);
	for (;;) {
		pid_t pid[2], owner;

		testlib_new_id(pair_id);
		testlib_fork_ranks(pid, 2, dying, NULL);
		for (int i = 0; i < 2; i++)
			waitpid(pid[i], NULL, 0);
		owner = fork();
		if (!owner) {
			if (testlib_open(c) || fork())
				raise(SIGKILL);
			testlib_sleep_ms(20);
			_exit(0);
		}
		waitpid(owner, NULL, 0);
	}
}

static int partitions(struct testlib_ctx *c)
{
	static float mem[4096];
	struct testlib_rank r = { .c = *c };
	uint8_t id[SWC_ID_BYTES];

	testlib_new_id(id);
	CHECK_EQ(testlib_rank_join(&r, id, 1, 0, VICTIM_PROMPT_MS), 0);
	testlib_count(attacking);
	for (;;) {
		struct swc_partitioned_init init = { .partitions = 1 + rnd(1000) };
		struct swc_partitioned_ref ref = { .partition = SWC_ALL_PARTITIONS,
						   .timeout_ms = 1 };

		init.desc = testlib_allreduce_desc(&r, mem, mem, 4, SWC_F32);
		init.send_stride = init.recv_stride = 16;
		if (testlib_ioctl(c->fd, SWC_IOC_PARTITIONED_INIT, &init))
			continue;
		ref.handle = init.handle;
		testlib_ioctl(c->fd, SWC_IOC_PARTITIONED_START, &ref);
		testlib_ioctl(c->fd, SWC_IOC_PARTITIONED_KICK, &ref);
		testlib_ioctl(c->fd, SWC_IOC_PARTITIONED_WAIT, &ref);
		testlib_ioctl(c->fd, SWC_IOC_PARTITIONED_FREE, &ref);
	}
}

static const struct attack attacks[] = {
	{ "long operations without a deadline", long_operations },
	{ "memory beyond the limit", memory },
	{ "communicators and their slots", communicators },
	{ "largest plans", plans },
	{ "descriptors", opens },
	{ "waits", waits },
	{ "aborts", aborts },
	{ "urgent communicators", urgent },
	{ "deaths, and descriptors that outlive their owner", deaths },
	{ "partitioned operations", partitions },
};

#define NATTACKS ((int)ARRAY_SIZE(attacks))
#define ALL_ATTACKS ((1u << NATTACKS) - 1)

/* ------------------------------------------------------------------ rounds */

/* The i-th attack, by either user. */
static int attack(uint32_t i, void *arg)
{
	unsigned int set = *(unsigned int *)arg;
	struct testlib_ctx c;

	if (!(set >> i & 1))
		return 0;
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(victim_become(i % 2 ? SECOND_ATTACKER : ATTACKER), 0);
	return attacks[i].fn(&c);
}

struct worst {
	uint64_t us[VICTIM_NR];
	unsigned int rounds;
};

/* All that the victim does while these attacks go on. Returns whether the attackers end well, too. */
static bool attacked(unsigned int set, bool good[VICTIM_NR], struct worst *w)
{
	pid_t pid[ARRAY_SIZE(attacks)] = { 0 };
	bool ready, ended;
	uint64_t took;

	*attacking = 0;
	testlib_fork_ranks(pid, NATTACKS, attack, &set);
	ready = testlib_wait_count(attacking, __builtin_popcount(set));
	for (int a = 0; ready && a < VICTIM_NR; a++) {
		good[a] = victim_run(a, &took);
		if (took > w->us[a])
			w->us[a] = took;
	}
	w->rounds++;
	for (int i = 0; i < NATTACKS; i++)
		kill(pid[i], SIGKILL);
	ended = victim_ended(pid, NATTACKS, VICTIM_PROMPT_MS);
	/* All that hung goes on now. */
	victim_wait();
	return ready && ended;
}

static void print_worst(const struct worst *w)
{
	static const char *const what[VICTIM_NR] = {
		[VICTIM_OPERATES] = "an operation took",
		[VICTIM_MISSES] = "a deadline was late by",
		[VICTIM_CLOSES] = "closing took",
		[VICTIM_DIES] = "after a kill, the end took",
		[VICTIM_REGISTERS] = "a registration took",
	};

	for (int a = 0; a < VICTIM_NR; a++)
		ksft_print_msg("worst of %u rounds: %s %.1f ms\n", w->rounds, what[a],
			       w->us[a] * 1e-3);
}

/* A round that fails is void if the machine stood still for so long. */
#define STALL_MS 1000

static bool all_good(const bool good[VICTIM_NR])
{
	for (int a = 0; a < VICTIM_NR; a++)
		if (!good[a])
			return false;
	return true;
}

/* A round; a second one if the first is void. */
static void test(unsigned int set, const char *name)
{
	bool good[VICTIM_NR] = { false }, ended;
	struct worst w = { 0 };
	uint64_t stall;

	stall_longest();
	ended = attacked(set, good, &w);
	stall = stall_longest();
	if (!(ended && all_good(good)) && stall > STALL_MS) {
		ksft_print_msg("%s: once more, the machine stood still for %llu ms\n", name,
			       (unsigned long long)stall);
		w = (struct worst){ 0 };
		memset(good, 0, sizeof(good));
		ended = attacked(set, good, &w);
	}
	print_worst(&w);
	for (int a = 0; a < VICTIM_NR; a++)
		ksft_test_result(good[a], "%s: %s", name, victim_name[a]);
	ksft_test_result(ended, "%s: attackers end when they are killed", name);
	ksft_test_result(!testlib_wait_released(0), "%s: everything is released", name);
}

static bool random_sets(unsigned int seconds)
{
	uint64_t start = testlib_now_ms(), said = start;
	struct worst w = { 0 };
	unsigned int voids = 0;
	bool good = true;

	while (good && testlib_now_ms() - start < seconds * 1000ull) {
		bool each[VICTIM_NR] = { false };
		unsigned int set = rnd(ALL_ATTACKS + 1);
		struct worst so_far = w;
		uint64_t stall;

		stall_longest();
		good = attacked(set, each, &w);
		good &= all_good(each);
		stall = good ? 0 : stall_longest();
		if (!good)
			ksft_print_msg("attacks: %#x; the machine stood still for %llu ms\n", set,
				       (unsigned long long)stall);
		if (stall > STALL_MS) {
			voids++;
			w = so_far;
			good = true;
		}
		if (testlib_now_ms() - said < 60000)
			continue;
		ksft_print_msg("%u rounds\n", w.rounds);
		said = testlib_now_ms();
	}
	print_worst(&w);
	if (voids)
		ksft_print_msg("%u rounds more are void: the machine stood still\n", voids);
	return good && w.rounds;
}

static struct stat dev;

static void restore(void)
{
	chmod(SWC_DEVICE_PATH, dev.st_mode & 07777);
}

int main(void)
{
	unsigned int seconds = testlib_env("HOSTILE_SECONDS", 0);
	unsigned int seed = testlib_env_seed("HOSTILE_SEED");

	ksft_print_header();
	testlib_require_device();
	testlib_require_root();
	ksft_set_plan(2 * (VICTIM_NR + 2) + 2 * !!seconds);
	ksft_print_msg("HOSTILE_SEED=%u\n", seed);
	srand(seed);
	attacking = testlib_shared_alloc(sizeof(*attacking));
	victim_init();
	stall_watch();
	/* Open to all users, for as long as the test takes. */
	if (stat(SWC_DEVICE_PATH, &dev))
		ksft_exit_fail_msg("%s: %s\n", SWC_DEVICE_PATH, strerror(errno));
	testlib_at_end(restore);
	if (chmod(SWC_DEVICE_PATH, 0666))
		ksft_exit_fail_msg("%s: %s\n", SWC_DEVICE_PATH, strerror(errno));
	test(1, "long operations");
	test(ALL_ATTACKS, "all attacks");
	if (seconds) {
		ksft_test_result(random_sets(seconds), "random attacks");
		ksft_test_result(!testlib_wait_released(0),
				 "random attacks: everything is released");
	}
	ksft_finished();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Agreement among ranks that die: the protocol on simulated connections, which deliver in order but otherwise when they
 * like, with deaths at every message and at random; and sessions of real processes. SWC_TEST_SHORT=1: a tenth of the
 * random rounds. TAP on stdout.
 */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "random.h"
#include "src/agree/consensus.h"
#include "src/agree/session.h"
#include "tap.h"

#define MOST 64
#define NEVER UINT32_MAX

/* A message under way, or at the end of a connection: NULL. */
struct item {
	struct item *next;
	struct swc_agree_msg *msg;
};

/**
 * struct rank - a simulated process
 * @dies_at: it dies before it sends its message of that number
 * @dead: it has died
 * @absent: it lives, but does not call
 * @out: it has given up
 * @deaf: by rank: the connection is lost though both live
 * @decided: it has returned with a value, maybe before it died
 */
static struct rank {
	struct swc_agree *agree;
	uint32_t flag;
	uint32_t sent, dies_at;
	bool dead, absent, out;
	bool deaf[MOST];
	bool decided;
	uint32_t value;
	uint64_t gone;
	struct item *first[MOST], **last[MOST]; /* to each rank */
} rank[MOST];

static uint32_t nranks;
static uint64_t excluded; /* by anyone */
static unsigned int delivered;
static char wrong[200];

#define WRONG(...) (*wrong ? 0 : snprintf(wrong, sizeof(wrong), __VA_ARGS__))

static void append(uint32_t from, uint32_t to, struct swc_agree_msg *msg)
{
	struct item *it = calloc(1, sizeof(*it));

	it->msg = msg;
	*rank[from].last[to] = it;
	rank[from].last[to] = &it->next;
}

/* What is under way may still arrive, or some of it; then the end. */
static void die(uint32_t r)
{
	rank[r].dead = true;
	for (uint32_t to = 0; to < nranks; to++) {
		struct item **at = &rank[r].first[to];

		while (*at && rnd(4))
			at = &(*at)->next;
		for (struct item *it = *at, *next; it; it = next) {
			next = it->next;
			free(it->msg);
			free(it);
		}
		*at = NULL;
		rank[r].last[to] = at;
		append(r, to, NULL);
	}
}

static void on_send(void *arg, uint32_t to, const struct swc_agree_msg *msg)
{
	uint32_t me = (uint32_t)((struct rank *)arg - rank);
	size_t bytes = swc_agree_msg_bytes(nranks);
	struct swc_agree_msg *copy;

	if (rank[me].dead)
		return;
	if (rank[me].sent++ == rank[me].dies_at) {
		die(me);
		return;
	}
	if (rank[me].deaf[to])
		return;
	copy = malloc(bytes);
	memcpy(copy, msg, bytes);
	append(me, to, copy);
}

static void begin(uint32_t n)
{
	nranks = n;
	excluded = 0;
	delivered = 0;
	memset(rank, 0, sizeof(rank));
	*wrong = 0;
	for (uint32_t r = 0; r < n; r++) {
		rank[r].flag = rnd(3) ? UINT32_MAX : ~(1u << rnd(32));
		rank[r].dies_at = NEVER;
		for (uint32_t to = 0; to < n; to++)
			rank[r].last[to] = &rank[r].first[to];
	}
}

static void create(uint32_t r, uint64_t gone)
{
	rank[r].agree = swc_agree_new(nranks, r, rank[r].flag, &gone, on_send, &rank[r]);
	excluded |= gone;
}

/* It may have returned. One that gives up closes its connections. */
static void note_end(uint32_t r)
{
	struct rank *k = &rank[r];

	if (swc_agree_state(k->agree) == SWC_AGREE_OUT && !k->out) {
		k->out = true;
		for (uint32_t to = 0; to < nranks; to++)
			append(r, to, NULL);
	}
	if (k->decided || swc_agree_state(k->agree) != SWC_AGREE_DONE)
		return;
	k->decided = true;
	k->value = swc_agree_flag(k->agree);
	k->gone = *swc_agree_gone(k->agree);
}

/* Deliver the next item of a random connection. False: there is none. */
static bool step(void)
{
	uint32_t start = rnd(nranks * nranks);

	for (uint32_t i = 0; i < nranks * nranks; i++) {
		uint32_t at = (start + i) % (nranks * nranks), from = at / nranks, to = at % nranks;
		struct item *it = rank[from].first[to];

		if (!it)
			continue;
		rank[from].first[to] = it->next;
		if (!it->next)
			rank[from].last[to] = &rank[from].first[to];
		delivered++;
		if (!rank[to].dead && !rank[to].absent && !rank[to].out) {
			if (!it->msg)
				swc_agree_lost(rank[to].agree, from);
			else if (!swc_agree_receive(rank[to].agree, it->msg))
				WRONG("rank %u refuses a message of rank %u", to, from);
			if (!rank[to].dead)
				note_end(to);
		}
		free(it->msg);
		free(it);
		return true;
	}
	return false;
}

/* Start all in random order among messages; run until nothing is under way. */
static void run(void)
{
	uint32_t order[MOST];

	for (uint32_t i = 0; i < nranks; i++) {
		uint32_t j = rnd(i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (uint32_t i = 0; i < nranks; i++) {
		uint32_t r = order[i];

		/* Messages wait for a rank that has not called yet. */
		if (!rank[r].dead && !rank[r].absent)
			swc_agree_start(rank[r].agree);
		if (!rank[r].dead && !rank[r].absent)
			note_end(r);
		if (i + 1 == nranks || !rnd(4))
			for (uint32_t k = rnd(2 * nranks); i + 1 == nranks || k; k--)
				if (!step())
					break;
	}
}

/* All decisions are the same and valid. With @all, each survivor has decided. */
static void check(bool all)
{
	const struct rank *first = NULL;
	uint32_t want = UINT32_MAX;

	for (uint32_t r = 0; r < nranks; r++) {
		const struct rank *k = &rank[r];

		if (!k->decided) {
			if (all && !k->dead && !k->absent && !(excluded >> r & 1))
				WRONG("rank %u has not decided, it waits for rank %d", r,
				      (int)swc_agree_missing(k->agree));
			continue;
		}
		if (!first)
			first = k;
		if (k->value != first->value || k->gone != first->gone)
			WRONG("rank %u has decided %x without %llx, rank %u %x without %llx", r,
			      k->value, (unsigned long long)k->gone, (uint32_t)(first - rank),
			      first->value, (unsigned long long)first->gone);
		if (k->gone >> r & 1)
			WRONG("rank %u has decided without itself", r);
	}
	for (uint32_t r = 0; first && r < nranks; r++) {
		if (!(first->gone >> r & 1))
			want &= rank[r].flag;
		else if (all && !rank[r].dead && !rank[r].absent && !(excluded >> r & 1))
			WRONG("rank %u is gone, but lives", r);
	}
	if (first && first->value != want)
		WRONG("the flag is %x, not %x", first->value, want);
}

static void end(void)
{
	for (uint32_t r = 0; r < nranks; r++) {
		swc_agree_free(rank[r].agree);
		for (uint32_t to = 0; to < nranks; to++)
			for (struct item *it = rank[r].first[to], *next; it; it = next) {
				next = it->next;
				free(it->msg);
				free(it);
			}
	}
}

static bool good(const char *what, uint32_t round)
{
	if (*wrong)
		printf("# %s, round %u, %u ranks: %s\n", what, round, nranks, wrong);
	return !*wrong;
}

/* Nobody dies: 6 messages for each member and at most one CALL. */
static bool without_deaths(void)
{
	for (uint32_t n = 1; n <= MOST; n++) {
		begin(n);
		for (uint32_t r = 0; r < n; r++)
			create(r, 0);
		run();
		check(true);
		if (delivered > 7 * (n - 1))
			WRONG("%u messages", delivered);
		end();
		if (!good("without deaths", n))
			return false;
	}
	return true;
}

/* One or two ranks die, each before any of its messages, in several orders of delivery. */
static bool at_every_message(uint32_t n, uint32_t ndead)
{
	uint32_t most = 8 * n, second = ndead > 1 ? n * most : 1;

	for (uint32_t i = 0; i < n * most; i++) {
		for (uint32_t j = 0; j < second; j++) {
			begin(n);
			rank[i / most].dies_at = i % most;
			if (ndead > 1 && j / most != i / most)
				rank[j / most].dies_at = j % most;
			for (uint32_t r = 0; r < n; r++)
				create(r, 0);
			run();
			check(true);
			end();
			if (!good("at every message", i * second + j))
				return false;
		}
	}
	return true;
}

/* Up to n - 1 die at random messages, some before the start, and some lists of who is known to be dead are stale. */
static bool random_deaths(uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		uint32_t n = 1 + rnd(i % 4 ? 8 : MOST), f = rnd(n);
		uint64_t before = 0;

		begin(n);
		for (uint32_t k = 0; k < f; k++) {
			uint32_t r = rnd(n);

			rank[r].dies_at = rnd(rnd(2) ? 8 : 4 * n);
			if (!rnd(3))
				before |= 1ull << r;
		}
		if (before == (n == 64 ? ~0ull : (1ull << n) - 1))
			before &= ~1ull;
		for (uint32_t r = 0; r < n; r++)
			if (before >> r & 1) {
				rank[r].dies_at = 0;
				die(r);
			}
		for (uint32_t r = 0; r < n; r++)
			create(r, rnd(2) ? 0
					 : before & ~(1ull << r) &
						   ((uint64_t)rnd(1 << 30) << 32 | rnd(1 << 30)));
		run();
		check(true);
		end();
		if (!good("random deaths", i))
			return false;
	}
	return true;
}

/* A live rank is excluded by some, and calls or does not call. The others agree to go on without it. */
static bool exclusion(uint32_t rounds)
{
	uint32_t told = 0;

	for (uint32_t i = 0; i < rounds; i++) {
		uint32_t n = 3 + rnd(8), out = rnd(n), by = (out + 1 + rnd(n - 1)) % n;
		bool comes = rnd(2);

		begin(n);
		rank[out].absent = !comes;
		for (uint32_t r = 0; r < n; r++)
			create(r, r != out && (r == by || !rnd(3)) ? 1ull << out : 0);
		run();
		check(true);
		for (uint32_t r = 0; r < n; r++)
			if (rank[r].decided && rank[r].gone != 1ull << out)
				WRONG("rank %u of %u excludes %u: gone are %llx", by, n, out,
				      (unsigned long long)rank[r].gone);
		told += swc_agree_state(rank[out].agree) == SWC_AGREE_OUT;
		if (rank[out].decided)
			WRONG("rank %u decides, but is excluded", out);
		end();
		if (!good("exclusion", i))
			return false;
	}
	/* Unless the others have returned before it asks. */
	return told > rounds / 8;
}

/*
 * The connections between two live ranks are lost, and each takes the other for dead. Nobody may decide anything else
 * than the others; that all decide is not possible.
 */
static bool false_suspicion(uint32_t rounds)
{
	uint32_t decided = 0;

	for (uint32_t i = 0; i < rounds; i++) {
		uint32_t n = 3 + rnd(8), a = rnd(rnd(2) ? n : 2), b = (a + 1 + rnd(n - 1)) % n;

		begin(n);
		for (uint32_t r = 0; r < n; r++)
			create(r, 0);
		for (uint32_t r = 0; r < n; r++)
			swc_agree_start(rank[r].agree);
		for (uint32_t m = rnd(8 * n); m; m--)
			step();
		rank[a].deaf[b] = rank[b].deaf[a] = true;
		append(a, b, NULL);
		append(b, a, NULL);
		while (step())
			;
		check(false);
		for (uint32_t r = 0; r < n; r++)
			decided += rank[r].decided;
		end();
		if (!good("false suspicion", i))
			return false;
	}
	printf("# %u decisions in %u rounds\n", decided, rounds);
	return decided > rounds;
}

/* Nothing but what the protocol has is taken. */
static bool foreign_messages(void)
{
	union {
		struct swc_agree_msg m;
		uint8_t bytes[sizeof(struct swc_agree_msg) + 2 * sizeof(uint64_t)];
	} u;
	uint32_t refused = 0;

	for (uint32_t i = 0; i < 20000; i++) {
		begin(5);
		create(1, 0);
		swc_agree_start(rank[1].agree);
		for (size_t k = 0; k < sizeof(u); k++)
			u.bytes[k] = (uint8_t)rnd(256);
		u.m.kind = rnd(10);
		u.m.from = rnd(7);
		u.m.round = rnd(7);
		u.m.zero = rnd(8) ? 0 : 1;
		u.m.sets[0] = rnd(rnd(4) ? 32 : 64);
		u.m.sets[1] = rnd(rnd(4) ? 32 : 64);
		refused += !swc_agree_receive(rank[1].agree, &u.m);
		if (swc_agree_state(rank[1].agree) == SWC_AGREE_DONE &&
		    (swc_agree_gone(rank[1].agree)[0] >> 1 & 1))
			return false;
		end();
	}
	return refused > 1000 && refused < 20000;
}

/* ---- sessions ---- */

#define PROCS 8

/* Shared with the processes. */
static struct shared {
	uint32_t flag[PROCS];
	uint64_t gone[PROCS];
	int ret[PROCS];
	int opened;
	bool standard; /* a message went to the number of a standard file */
} * shared;

static bool by_tcp, few_files, no_standard;
static uint16_t port[PROCS];
static struct swc_endpoint *open_ep[PROCS];
static uint8_t key[SWC_HELLO_KEY]; /* another one in each run, as names follow from it */
static int sends_left = -1;

/* Instead of the C library's: the process dies in its n-th call. */
ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
	if (!sends_left--)
		raise(SIGKILL);
	if (fd <= STDERR_FILENO)
		shared->standard = true;
	return sendto(fd, data, bytes, flags, NULL, 0);
}

static socklen_t address(void *arg, uint32_t to, unsigned int k, struct sockaddr_storage *sa,
			 struct sockaddr_storage *local)
{
	struct sockaddr_in *in = (void *)sa;

	(void)arg;
	(void)local;
	if (k)
		return 0;
	if (!by_tcp)
		return swc_endpoint_name((void *)sa, key, to);
	*in = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				    .sin_port = htons(port[to]) };
	return sizeof(*in);
}

static void process(uint32_t me, uint32_t n, int dies_at)
{
	struct swc_peers peers = { .ep = open_ep[me] };
	struct swc_session_env env = { .peers = &peers,
				       .nranks = n,
				       .rank = me,
				       .key = key,
				       .timeout_ms = 60000,
				       .address = address };
	uint64_t gone = 0;
	uint32_t flag = ~(1u << me), at;
	struct rlimit limit;

	memcpy(peers.key, key, sizeof(key));
	for (uint32_t r = 0; r < n; r++)
		if (r != me)
			swc_endpoint_put(open_ep[r]);
	if (few_files) {
		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = 10;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	for (int fd = 0; no_standard && fd <= STDERR_FILENO; fd++)
		close(fd);
	sends_left = dies_at;
	shared->ret[me] = swc_session_run(&env, &flag, &gone, &at);
	shared->flag[me] = flag;
	shared->gone[me] = gone;
	/* Another one at once: the connections of both may be there at the same time. */
	if (!shared->ret[me]) {
		env.number = 1;
		flag = 7;
		shared->ret[me] = swc_session_run(&env, &flag, &gone, &at);
		if (!shared->ret[me] && flag != 7)
			shared->ret[me] = -EBADMSG;
	}
	if (few_files && (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur != 10))
		shared->ret[me] = -EDOM;
	_exit(0);
}

/* @dead: a process that dies before it sends for the @dies_at-th time; -1: none. */
static bool session(uint32_t n, int dead, int dies_at)
{
	bool same = true, died = false;
	int first = -1, status;
	pid_t pid[PROCS];

	memset(shared, 0, sizeof(*shared));
	for (uint32_t r = 0; r < n; r++) {
		open_ep[r] = NULL;
		if (by_tcp && swc_endpoint_open(&open_ep[r]))
			return false;
		if (swc_endpoint_bind(&open_ep[r], key, r, by_tcp))
			return false;
		port[r] = swc_endpoint_port(open_ep[r]);
	}
	fflush(stdout);
	for (uint32_t r = 0; r < n; r++) {
		pid[r] = fork();
		if (!pid[r])
			process(r, n, (int)r == dead ? dies_at : -1);
	}
	for (uint32_t r = 0; r < n; r++)
		swc_endpoint_put(open_ep[r]);
	for (uint32_t r = 0; r < n; r++) {
		waitpid(pid[r], &status, 0);
		if (WIFSIGNALED(status) && (int)r == dead) {
			died = true;
			continue;
		}
		if (first < 0)
			first = (int)r;
		same &= WIFEXITED(status) && !shared->ret[r] &&
			shared->flag[r] == shared->flag[first] &&
			shared->gone[r] == shared->gone[first];
	}
	if (!same || (!died && shared->gone[first]))
		printf("# %u processes, rank %d dies at %d: result %d, flag %x, gone %llx\n", n,
		       dead, dies_at, shared->ret[first], shared->flag[first],
		       (unsigned long long)shared->gone[first]);
	return same && (died || !shared->gone[first]);
}

static bool sessions(void)
{
	for (uint32_t n = 1; n <= PROCS; n++)
		if (!session(n, -1, 0))
			return false;
	for (int dead = 0; dead < 3; dead++)
		for (int at = 0; at < 9; at++)
			if (!session(4, dead, at))
				return false;
	return true;
}

/* ---- strangers ---- */

static time_t clock_ahead;

/* Instead of the C library's: time can pass at once. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int ret = (int)syscall(SYS_clock_gettime, id, ts);

	ts->tv_sec += clock_ahead;
	return ret;
}

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Connect to rank 0, which accepts if too many wait, and say something. */
static int visit(struct swc_endpoint *ep, const void *text, size_t bytes)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), tries = 5;
	struct sockaddr_un sa;
	socklen_t len = swc_endpoint_name(&sa, key, 0);

	while (connect(fd, (void *)&sa, len)) {
		if (!tries--) {
			close(fd);
			return -1;
		}
		swc_endpoint_accept(ep);
	}
	if (bytes && sendto(fd, text, bytes, MSG_NOSIGNAL, NULL, 0) < 0)
		printf("# visit: %s\n", strerror(errno));
	return fd;
}

#define VISITORS 600

/* A rank gets in, however many others say nothing, or a hello without the key. */
static bool strangers(int kind)
{
	static const uint8_t other[SWC_HELLO_KEY] = "another secret!";
	struct swc_hello wrong_one = swc_hello_make(other, key, 1, 0, 9);
	struct swc_hello h = swc_hello_make(key, key, 1, 0, 5);
	struct swc_endpoint *ep = NULL;
	int fd[VISITORS], rank1, taken, before = open_files();
	uint32_t from = 7;
	bool good = true;

	if (swc_endpoint_bind(&ep, key, 0, false))
		return false;
	for (int i = 0; i < VISITORS; i++) {
		fd[i] = visit(ep, &wrong_one, kind ? sizeof(wrong_one) : 0);
		good &= fd[i] >= 0;
	}
	rank1 = visit(ep, &h, sizeof(h));
	/* At most so many at once. */
	for (int i = 0; i < 4; i++)
		good &= !swc_endpoint_accept(ep);
	good &= swc_endpoint_take(ep, key, 0, 4, &from) < 0;
	taken = swc_endpoint_take(ep, key, 0, 5, &from);
	good &= taken >= 0 && from == 1;
	/* And those that stay have few of this rank's files. */
	good &= open_files() - before < VISITORS + 3 + 200;
	for (int i = 0; i < VISITORS; i++)
		close(fd[i]);
	close(rank1);
	close(taken);
	swc_endpoint_put(ep);
	return good && open_files() == before;
}

/* Connections for agreements that this rank does not begin any more do not keep files; one that lives stays. */
static bool nobody_takes(void)
{
	struct swc_hello h = swc_hello_make(key, key, 1, 0, 5);
	struct swc_endpoint *ep = NULL;
	int before, lives, taken;
	uint32_t from;
	bool good;

	if (swc_endpoint_bind(&ep, key, 0, false))
		return false;
	before = open_files();
	lives = visit(ep, &h, sizeof(h));
	h = swc_hello_make(key, key, 1, 0, 4);
	for (int i = 0; i < 20; i++)
		close(visit(ep, &h, sizeof(h)));
	good = !swc_endpoint_accept(ep) && open_files() == before + 22;
	clock_ahead += 60;
	good &= !swc_endpoint_accept(ep) && open_files() == before + 2;
	taken = swc_endpoint_take(ep, key, 0, 5, &from);
	good &= taken >= 0;
	close(lives);
	close(taken);
	swc_endpoint_put(ep);
	return good;
}

/* That rank 0 closes a connection before its hello does not mean for rank 1 that it has died. */
static bool turned_away(void)
{
	int listeners[2], status;
	struct pollfd p = { .events = POLLIN };
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	for (uint32_t r = 0; r < 2; r++) {
		open_ep[r] = NULL;
		if (swc_endpoint_bind(&open_ep[r], key, r, false))
			return false;
	}
	swc_endpoint_listeners(open_ep[0], listeners);
	p.fd = listeners[0];
	fflush(stdout);
	for (uint32_t r = 0; r < 2; r++) {
		pid = fork();
		if (pid)
			continue;
		if (!r) {
			poll(&p, 1, -1);
			close(accept(p.fd, NULL, NULL));
		}
		process(r, 2, -1);
	}
	for (uint32_t r = 0; r < 2; r++)
		swc_endpoint_put(open_ep[r]);
	while (wait(&status) > 0)
		;
	return !shared->ret[0] && !shared->ret[1] && shared->flag[0] == ~3u &&
	       shared->flag[1] == ~3u;
}

/* A rank that was excluded hears so when it connects, also from one that has decided and does not read any more. */
static bool refusal(void)
{
	bool good;

	begin(2);
	create(0, 2);
	create(1, 0);
	swc_agree_start(rank[0].agree);
	swc_agree_start(rank[1].agree);
	good = swc_agree_state(rank[0].agree) == SWC_AGREE_DONE;
	swc_agree_refuse(rank[0].agree, 1);
	good &= rank[0].first[1] && swc_agree_receive(rank[1].agree, rank[0].first[1]->msg);
	good &= swc_agree_state(rank[1].agree) == SWC_AGREE_OUT &&
		!swc_agree_excluder(rank[1].agree);
	end();
	return good;
}

static void allow_files(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= 4096)
		return;
	l.rlim_cur = l.rlim_max < 4096 ? l.rlim_max : 4096;
	setrlimit(RLIMIT_NOFILE, &l);
}

int main(void)
{
	seed_rnd();
	snprintf((char *)key, sizeof(key), "key of %d", (int)getpid());
	allow_files();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	ok(without_deaths(), "1 to 64 ranks agree");
	ok(at_every_message(2, 1) && at_every_message(3, 1) && at_every_message(5, 1),
	   "a rank dies before any of its messages");
	ok(at_every_message(3, 2) && at_every_message(4, 2),
	   "two ranks die before any of their messages");
	ok(random_deaths(rounds_of(20000)), "up to n - 1 of 64 ranks die");
	ok(exclusion(rounds_of(5000)), "a live rank is excluded");
	ok(false_suspicion(rounds_of(20000)), "two live ranks take each other for dead");
	ok(foreign_messages(), "foreign messages");
	ok(refusal(), "an excluded rank is told after the decision");
	ok(strangers(0), "strangers that say nothing");
	ok(strangers(1), "strangers with a false hello");
	ok(nobody_takes(), "connections that nobody takes are closed");
	ok(turned_away(), "a connection that is closed before its hello");
	ok(sessions(), "processes agree by names, one dies before any of its sends");
	few_files = true;
	ok(session(PROCS, -1, 0), "the limit of open files is raised for an agreement");
	few_files = false;
	by_tcp = true;
	ok(sessions(), "processes agree by TCP, one dies before any of its sends");
	no_standard = true;
	ok(session(PROCS, -1, 0) && !shared->standard,
	   "no connection takes the number of a standard file that is closed");
	return done();
}

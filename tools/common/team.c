// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranks as processes: forked here or started by a launcher, with a barrier and a few words of shared
 * memory between them; on several nodes they exchange words by a bootstrap. Nothing here uses swingcoll's
 * collectives: a fault in what is tested must not hide behind its own coordination.
 */
#include "common/team.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/clock.h"

#define BARRIER_TIMEOUT_S 300
#define GRACE_MS 3000

struct team_shared {
	_Atomic uint32_t arrived;
	_Atomic uint32_t generation;
	_Atomic uint32_t failed;
	_Atomic uint32_t attached;
	_Atomic uint32_t reported; /* a failure that all ranks of the node see */
	union {
		double d;
		uint64_t u;
	} slot[TEAM_MAX_RANKS];
};

static void futex(_Atomic uint32_t *word, int op, uint32_t val, const struct timespec *ts)
{
	syscall(SYS_futex, word, op, val, ts, NULL, 0);
}

void team_fail(struct team *team)
{
	/* Without shared memory the others notice when this process ends. */
	if (!team->sh)
		return;
	atomic_store(&team->sh->failed, 1);
	futex(&team->sh->generation, FUTEX_WAKE, INT_MAX, NULL);
}

static const char *next_step(int err)
{
	switch (err) {
	case -ENODEV:
	case -EACCES:
	case -ENOENT:
	case -EPERM:
		return "\n  next: swingctl doctor";
	case -ENOMEM:
		return "\n  next: take smaller or fewer buffers, or raise `ulimit -l` (swingctl doctor "
		       "shows the limit)";
	case -ETIMEDOUT:
		return "\n  next: swingctl status shows which rank is late";
	}
	/* A tool does not go on with fewer ranks, since its figures would be those of another job. */
	if (swingcoll_comm_failed(err))
		return "\n  next: start all ranks again; a program can go on with the others by "
		       "swingcoll_comm_shrink()";
	return "";
}

/*
 * Has another rank of this node reported the failure? A communicator fails for all, and for the same reason; what
 * keeps a rank from joining mostly holds for all of its node, too.
 */
static bool is_reported(struct team *team, const struct swingcoll_comm *comm, int err)
{
	if (!team->sh || (comm && !swingcoll_comm_failed(err)))
		return false;
	return atomic_exchange(&team->sh->reported, 1);
}

int team_error(struct team *team, struct swingcoll_comm *comm, const char *what, int err)
{
	char why[512] = "";

	if (err == -ECANCELED)
		return err;
	if (comm) {
		swingcoll_comm_error(comm, why, sizeof(why), NULL);
	} else if (team->boot) {
		/* The message is the same on all ranks. */
		if (team->rank)
			return err;
		snprintf(why, sizeof(why), "%s", swingcoll_bootstrap_error());
	}
	if (is_reported(team, comm, err)) {
		team_fail(team);
		return err;
	}
	fprintf(stderr, "%s: rank %d: %s: %s (%d)%s%s%s\n", team->prog, team->rank, what,
		swingcoll_strerror(err), err, *why ? ": " : "", why, next_step(err));
	team_fail(team);
	return err;
}

/* A word of each rank, on any node. A rank that has left has reported why. */
static int exchange(struct team *team, const void *mine, void *all)
{
	int ret = team->boot->allgather(team->boot->arg, mine, all, sizeof(uint64_t));

	return ret == -ECONNRESET ? -ECANCELED : ret;
}

/* *v becomes the sum, *max the maximum over the ranks; either may be NULL. */
static int exchange_all(struct team *team, uint64_t *v, double *max)
{
	uint64_t *all = calloc((size_t)team->nranks, sizeof(*all)), word = v ? *v : 0;
	int ret = -ENOMEM, i;
	double d;

	if (max)
		memcpy(&word, max, sizeof(word));
	if (all)
		ret = exchange(team, &word, all);
	if (!ret && v)
		for (*v = 0, i = 0; i < team->nranks; i++)
			*v += all[i];
	for (i = 0; !ret && max && i < team->nranks; i++) {
		memcpy(&d, &all[i], sizeof(d));
		if (d > *max)
			*max = d;
	}
	free(all);
	return ret;
}

/*
 * The last rank to arrive resets the count and then advances the generation, for which the others wait: no
 * rank can enter the next round before the count is zero. Spin, then yield, then sleep, because there may
 * be more ranks than CPUs.
 */
int team_barrier(struct team *team)
{
	struct team_shared *sh = team->sh;
	double deadline = 0;
	uint32_t gen;
	int i;

	if (!team->sh)
		return exchange_all(team, NULL, NULL);
	gen = atomic_load(&sh->generation);
	if (atomic_load(&sh->failed))
		return -ECANCELED;
	if (atomic_fetch_add(&sh->arrived, 1) + 1 == (uint32_t)team->nranks) {
		atomic_store(&sh->arrived, 0);
		atomic_fetch_add(&sh->generation, 1);
		futex(&sh->generation, FUTEX_WAKE, INT_MAX, NULL);
		return 0;
	}
	for (i = 0; atomic_load(&sh->generation) == gen; i++) {
		struct timespec ts = { .tv_nsec = 100 * 1000 * 1000 };

		if (atomic_load(&sh->failed))
			return -ECANCELED;
		if (i < 200)
			continue;
		if (i < 300) {
			sched_yield();
			continue;
		}
		if (!deadline)
			deadline = clock_now() + BARRIER_TIMEOUT_S;
		else if (clock_now() > deadline)
			return -ETIMEDOUT;
		futex(&sh->generation, FUTEX_WAIT, gen, &ts);
	}
	return 0;
}

int team_max(struct team *team, double *v)
{
	struct team_shared *sh = team->sh;
	int ret, i;

	if (!team->sh)
		return exchange_all(team, NULL, v);
	sh->slot[team->rank].d = *v;
	ret = team_barrier(team);
	if (ret)
		return ret;
	for (i = 0; i < team->nranks; i++)
		if (sh->slot[i].d > *v)
			*v = sh->slot[i].d;
	return team_barrier(team);
}

int team_sum(struct team *team, uint64_t *v)
{
	struct team_shared *sh = team->sh;
	uint64_t sum = 0;
	int ret, i;

	if (!team->sh)
		return exchange_all(team, v, NULL);
	sh->slot[team->rank].u = *v;
	ret = team_barrier(team);
	if (ret)
		return ret;
	for (i = 0; i < team->nranks; i++)
		sum += sh->slot[i].u;
	*v = sum;
	return team_barrier(team);
}

/* ------------------------------------------------------------------ started by a launcher */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int read_id(struct team *team)
{
	const char *s = getenv("SWINGCOLL_ID");
	int i, hi, lo;

	for (i = 0; s && i < SWINGCOLL_ID_BYTES; i++) {
		hi = hex_digit(s[2 * i]);
		lo = hi < 0 ? -1 : hex_digit(s[2 * i + 1]);
		if (lo < 0)
			break;
		team->id.bytes[i] = (unsigned char)(hi << 4 | lo);
	}
	if (i == SWINGCOLL_ID_BYTES && !s[2 * SWINGCOLL_ID_BYTES])
		return 0;
	fprintf(stderr,
		"%s: SWINGCOLL_ID=%s: expected 32 hex digits, the same for all ranks\n"
		"  next: SWINGCOLL_ID=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')\n",
		team->prog, s ? s : "");
	return -EINVAL;
}

static int map_shared(struct team *team, int fd)
{
	void *p = mmap(NULL, sizeof(*team->sh), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	if (p == MAP_FAILED)
		return -errno;
	team->sh = p;
	return 0;
}

/* Rank 0 creates the memory, the others open it; in containers that share none they cannot. */
int team_share(struct team *team)
{
	char name[64] = "/swingperf-";
	struct swingcoll_id id = { 0 }, *ids = calloc((size_t)team->nranks, sizeof(*ids));
	struct swingcoll_bootstrap *boot = team->boot;
	uint64_t missing;
	int ret, fd = -1;

	if (!ids)
		return -ENOMEM;
	if (!team->rank)
		swingcoll_unique_id(&id);
	ret = boot->allgather(boot->arg, &id, ids, sizeof(id));
	for (size_t i = 0; i < sizeof(id.bytes); i++)
		snprintf(name + strlen(name), 3, "%02x", ids->bytes[i]);
	free(ids);
	if (!ret && !team->rank) {
		fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
		if (fd >= 0 && ftruncate(fd, sizeof(*team->sh))) {
			close(fd);
			fd = -1;
		}
	}
	/* It exists before the others open it. */
	if (!ret)
		ret = team_barrier(team);
	if (!ret && team->rank && team->nranks <= TEAM_MAX_RANKS)
		fd = shm_open(name, O_RDWR, 0600);
	missing = fd < 0;
	if (!ret)
		ret = team_sum(team, &missing);
	if (!team->rank)
		shm_unlink(name);
	if (!ret && !missing)
		return map_shared(team, fd);
	if (fd >= 0)
		close(fd);
	return ret;
}

/* A shared memory object named after the id; the last rank to attach removes the name. */
int team_attach(struct team *team)
{
	char name[64] = "/swingperf-";
	size_t at = strlen(name);
	double deadline = clock_now() + 60;
	int fd, i;

	if (team->nranks > TEAM_MAX_RANKS) {
		fprintf(stderr, "%s: %d ranks on one node: at most %d are possible\n", team->prog,
			team->nranks, TEAM_MAX_RANKS);
		return -EINVAL;
	}
	if (read_id(team))
		return -EINVAL;
	for (i = 0; i < 8; i++)
		at += (size_t)snprintf(name + at, sizeof(name) - at, "%02x", team->id.bytes[i]);
	fd = shm_open(name, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*team->sh))) {
		fprintf(stderr, "%s: /dev/shm%s: %s\n", team->prog, name, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -EIO;
	}
	if (map_shared(team, fd)) {
		fprintf(stderr, "%s: mmap of /dev/shm%s: %s\n", team->prog, name, strerror(errno));
		return -EIO;
	}
	if (atomic_fetch_add(&team->sh->attached, 1) + 1 == (uint32_t)team->nranks)
		shm_unlink(name);
	while (atomic_load(&team->sh->attached) < (uint32_t)team->nranks) {
		if (clock_now() > deadline) {
			fprintf(stderr,
				"%s: rank %d: only %u of %d ranks joined within 60 s: all must be on "
				"this node and have the same SWINGCOLL_ID\n",
				team->prog, team->rank, atomic_load(&team->sh->attached),
				team->nranks);
			shm_unlink(name);
			return -ETIMEDOUT;
		}
		usleep(1000);
	}
	return 0;
}

/* ------------------------------------------------------------------ forked here */

/* Set the bits of all CPUs that this process can be bound to, whatever it is bound to now. */
static int possible(cpu_set_t *set)
{
	cpu_set_t now;
	int ret = sched_getaffinity(0, sizeof(now), &now);

	memset(set, 0xff, sizeof(*set));
	/* The kernel drops those that do not exist or that the process may not use. */
	ret = ret ? ret : sched_setaffinity(0, sizeof(*set), set);
	ret = ret ? ret : sched_getaffinity(0, sizeof(*set), set);
	return ret ? ret : sched_setaffinity(0, sizeof(now), &now);
}

bool team_has_cpu(int cpu, char *text, size_t bytes)
{
	cpu_set_t set;
	size_t used = 0;
	int end;

	*text = 0;
	/* If the kernel does not tell, binding will. */
	if (possible(&set) || CPU_ISSET(cpu, &set))
		return true;
	for (int first = 0; first < CPU_SETSIZE; first = end + 1) {
		for (end = first; end < CPU_SETSIZE && CPU_ISSET(end, &set);)
			end++;
		if (end == first || used >= bytes)
			continue;
		used += (size_t)snprintf(text + used, bytes - used, "%s%d", used ? "," : "", first);
		if (end - first > 1 && used < bytes)
			used += (size_t)snprintf(text + used, bytes - used, "-%d", end - 1);
	}
	return false;
}

int team_cpus(int *cpus, int max)
{
	cpu_set_t allowed;
	int n = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return 0;
	for (int cpu = 0; cpu < CPU_SETSIZE && n < max; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			cpus[n++] = cpu;
	return n;
}

void team_bind(const struct team *team, const int *cpus, int n)
{
	cpu_set_t set;

	if (!n)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpus[team->rank % n], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fprintf(stderr, "%s: rank %d: cannot bind to CPU %d: %s; it runs unbound\n",
			team->prog, team->rank, cpus[team->rank % n], strerror(errno));
}

static int child_status(struct team *team, int rank, pid_t pid, int status)
{
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "%s: rank %d (pid %d) was killed by signal %d (%s)\n", team->prog,
			rank, (int)pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
		return 2;
	}
	return WEXITSTATUS(status);
}

/*
 * Collect a rank that has ended: 1; 0 if none has yet; -1 if this process has no children any more. Other children
 * are of the program that this one has replaced by exec().
 */
static int reap(struct team *team, pid_t *pids, int options, int *worst)
{
	int status, rank, ret;
	pid_t pid;

	do {
		pid = waitpid(-1, &status, options);
		if (!pid || (pid < 0 && errno != EINTR))
			return pid ? -1 : 0;
		for (rank = 0; rank < team->nranks; rank++)
			if (pids[rank] == pid)
				break;
	} while (pid < 0 || rank == team->nranks);
	pids[rank] = 0;
	ret = child_status(team, rank, pid, status);
	if (ret > *worst)
		*worst = ret;
	return 1;
}

static void end_children(struct team *team, pid_t *pids, int left, int worst)
{
	int ms, i, got = 0, ignored = worst;

	/* The others notice by the barrier or by swingcoll itself, and report what they see. */
	team_fail(team);
	for (ms = 0; left && ms < GRACE_MS; ms += 10) {
		while (left && (got = reap(team, pids, WNOHANG, &ignored)) > 0)
			left--;
		/* The pids of those that are left may be other processes by now. */
		if (got < 0)
			return;
		usleep(10000);
	}
	for (i = 0; i < team->nranks; i++)
		if (pids[i])
			kill(pids[i], SIGKILL);
	for (i = 0; i < team->nranks; i++)
		if (pids[i])
			waitpid(pids[i], NULL, 0);
}

int team_run(struct team *team, int (*body)(struct team *team, void *arg), void *arg)
{
	pid_t pids[TEAM_MAX_RANKS] = { 0 }, parent = getpid();
	int i, left, got = 1, worst = 0;

	team->forked = true;
	team->sh = mmap(NULL, sizeof(*team->sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (team->sh == MAP_FAILED) {
		fprintf(stderr, "%s: no shared memory: %s\n", team->prog, strerror(errno));
		return 2;
	}
	/* It may have been ignored by the parent: then the ranks would leave no exit status. */
	signal(SIGCHLD, SIG_DFL);
	fflush(NULL);
	for (i = 0; i < team->nranks; i++) {
		pids[i] = fork();
		if (pids[i] < 0) {
			fprintf(stderr, "%s: cannot start rank %d: fork: %s\n", team->prog, i,
				strerror(errno));
			pids[i] = 0;
			end_children(team, pids, i, 2);
			return 2;
		}
		if (!pids[i]) {
			/* If the parent died before the prctl(), its pid has changed. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(2);
			team->rank = i;
			i = cli_finish(team->prog, body(team, arg));
			fflush(NULL);
			_exit(i);
		}
	}
	/* Status 1 (wrong results) is no reason to end the others: they finish by themselves. */
	for (left = team->nranks; left && worst < 2; left--) {
		got = reap(team, pids, 0, &worst);
		if (got < 0)
			break;
	}
	/* Nobody knows how the others have ended. */
	if (got < 0)
		worst = 2;
	else if (left)
		end_children(team, pids, left, worst);
	munmap(team->sh, sizeof(*team->sh));
	return worst;
}

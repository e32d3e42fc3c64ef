// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranks as processes: forked here or started by a launcher, with a barrier and a few words of shared
 * memory between them; or on several nodes, meeting by a bootstrap. Nothing in here uses swingcoll's
 * collectives, so a fault of the thing under test cannot hide behind its own coordination.
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

#define BARRIER_TIMEOUT_S 300
#define GRACE_MS 3000

struct team_shared {
	_Atomic uint32_t arrived;
	_Atomic uint32_t generation;
	_Atomic uint32_t failed;
	_Atomic uint32_t attached;
	union {
		double d;
		uint64_t u;
	} slot[TEAM_MAX_RANKS];
};

static void futex(_Atomic uint32_t *word, int op, uint32_t val, const struct timespec *ts)
{
	syscall(SYS_futex, word, op, val, ts, NULL, 0);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

void team_fail(struct team *team)
{
	/* Without shared memory they learn of it when this process ends. */
	if (!team->sh)
		return;
	atomic_store(&team->sh->failed, 1);
	futex(&team->sh->generation, FUTEX_WAKE, INT_MAX, NULL);
}

/* A word of each rank, from wherever they are. Who is gone has said why. */
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
 * The last to arrive resets the count and then moves the generation, which is what the others wait for;
 * so nobody can enter the next round before the count is zero. Short spin, yield, then sleep: the ranks
 * may be more than the CPUs.
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
			deadline = now() + BARRIER_TIMEOUT_S;
		else if (now() > deadline)
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

static int env_int(const char *name, int *out)
{
	const char *s = getenv(name);
	char *end;
	long v;

	if (!s)
		return 0;
	errno = 0;
	v = strtol(s, &end, 10);
	if (errno || end == s || *end || v < 0 || v > INT_MAX)
		return -EINVAL;
	*out = (int)v;
	return 1;
}

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

static int env_id(struct team *team)
{
	const char *s = getenv("SWINGCOLL_ID");
	int i, hi, lo;

	if (!s) {
		fprintf(stderr,
			"%s: started by a launcher, but SWINGCOLL_ID is not set: give all ranks the "
			"same 32 hex digits,\n  SWINGCOLL_ID=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n'), "
			"or use -n to fork the ranks here\n",
			team->prog);
		return -EINVAL;
	}
	for (i = 0; i < SWINGCOLL_ID_BYTES; i++) {
		hi = hex_digit(s[2 * i]);
		lo = hi < 0 ? -1 : hex_digit(s[2 * i + 1]);
		if (lo < 0)
			break;
		team->id.bytes[i] = (unsigned char)(hi << 4 | lo);
	}
	if (i < SWINGCOLL_ID_BYTES || s[2 * SWINGCOLL_ID_BYTES]) {
		fprintf(stderr, "%s: SWINGCOLL_ID must be 32 hex digits, not \"%s\"\n", team->prog,
			s);
		return -EINVAL;
	}
	return 0;
}

int team_from_env(struct team *team)
{
	static const char *const names[][2] = {
		{ "SWINGCOLL_RANK", "SWINGCOLL_NRANKS" },
		{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
		{ "PMI_RANK", "PMI_SIZE" },
		{ "SLURM_PROCID", "SLURM_NTASKS" },
		{ "RANK", "WORLD_SIZE" },
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int have_rank = env_int(names[i][0], &team->rank);
		int have_size = env_int(names[i][1], &team->nranks);

		if (!have_rank || !have_size)
			continue;
		if (have_rank < 0 || have_size < 0 || team->rank >= team->nranks ||
		    team->nranks > TEAM_MAX_RANKS) {
			fprintf(stderr,
				"%s: %s=%s, %s=%s: expected 0 <= rank < size <= %d; correct or unset "
				"them, or use -n\n",
				team->prog, names[i][0], getenv(names[i][0]), names[i][1],
				getenv(names[i][1]), TEAM_MAX_RANKS);
			return -EINVAL;
		}
		return env_id(team) ? -EINVAL : 1;
	}
	return 0;
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

/* Rank 0 makes it, the others look whether they see it: they may be in containers that share no memory. */
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
	/* It is there before anybody looks. */
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

/* A shared memory object named after the id; the last to attach removes the name. */
int team_attach(struct team *team)
{
	char name[64] = "/swingperf-";
	size_t at = strlen(name);
	double deadline = now() + 60;
	int fd, i;

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
		if (now() > deadline) {
			fprintf(stderr,
				"%s: rank %d: only %u of %d ranks came within 60 s: are all of them on "
				"this node, with the same SWINGCOLL_ID?\n",
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

static int child_status(struct team *team, int rank, pid_t pid, int status)
{
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "%s: rank %d (pid %d) was ended by signal %d (%s)\n", team->prog,
			rank, (int)pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
		return 2;
	}
	return WEXITSTATUS(status);
}

/* Collect one child if there is one to collect; 0 if not. */
static int reap(struct team *team, pid_t *pids, int options, int *worst)
{
	int status, rank, ret;
	pid_t pid;

	do {
		pid = waitpid(-1, &status, options);
	} while (pid < 0 && errno == EINTR);
	if (pid <= 0)
		return 0;
	for (rank = 0; rank < team->nranks; rank++)
		if (pids[rank] == pid)
			break;
	if (rank == team->nranks)
		return 1;
	pids[rank] = 0;
	ret = child_status(team, rank, pid, status);
	if (ret > *worst)
		*worst = ret;
	return 1;
}

static void end_children(struct team *team, pid_t *pids, int left, int worst)
{
	int ms, i, ignored = worst;

	/* The others learn of it by the barrier or by swingcoll itself, and say what they saw. */
	team_fail(team);
	for (ms = 0; left && ms < GRACE_MS; ms += 10) {
		while (left && reap(team, pids, WNOHANG, &ignored))
			left--;
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
	int i, left, worst = 0;

	team->forked = true;
	team->sh = mmap(NULL, sizeof(*team->sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (team->sh == MAP_FAILED) {
		fprintf(stderr, "%s: no shared memory: %s\n", team->prog, strerror(errno));
		return 2;
	}
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
			/* A parent that died before the prctl is seen by its pid having changed. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(2);
			team->rank = i;
			i = body(team, arg);
			fflush(NULL);
			_exit(i);
		}
	}
	/* Status 1 (wrong results) is not a reason to end the others: they get there by themselves. */
	for (left = team->nranks; left && worst < 2; left--)
		if (!reap(team, pids, 0, &worst))
			break;
	if (left)
		end_children(team, pids, left, worst);
	munmap(team->sh, sizeof(*team->sh));
	return worst;
}

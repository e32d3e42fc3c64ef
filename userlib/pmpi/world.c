// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The agreement in MPI_Init(): do all ranks have this library, a device and the same settings? Each
 * rank tells rank 0, which replies what holds for all. By messages, and not by a collective: a
 * rank that was started without the library would take part in none, and be disturbed by all. It
 * gets no message either: rank 0 makes itself known by a name that it publishes, before it is asked. All
 * ranks are in MPI_Init() together, so a rank that says nothing for some seconds is one of those. Not all
 * launchers keep names: under others rank 0 is asked at once, and if it has no library, the program ends.
 */
#include <linux/capability.h>
#include <linux/swingcoll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pmpi/pmpi.h"
#include "pmpi/settings.h"

/* MPI guarantees tags up to 32767. */
#define TAG 32749
#define PATIENCE_S 20
#define VERSION 5

struct pmpi_world pmpi_world = { .why = PMPI_WHY_OFF };

/* What a rank wants, and what rank 0 replies. */
struct vote {
	uint32_t version;
	uint32_t device;
	uint32_t engine;
	uint32_t bad; /* its settings are wrong: then @mask is 0 */
	uint64_t mask;
	int64_t min;
	uint64_t pinnable;
};

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* Wait so long; what has not come then is cancelled. True if all has come. */
static bool wait_for(MPI_Request *req, int n, double seconds)
{
	double end = now_s() + seconds;
	int done = 0;

	while (!done && now_s() < end)
		PMPI_Testall(n, req, &done, MPI_STATUSES_IGNORE);
	for (int i = 0; !done && i < n; i++) {
		int one = 0;

		if (PMPI_Test(&req[i], &one, MPI_STATUS_IGNORE) == MPI_SUCCESS && one)
			continue;
		PMPI_Cancel(&req[i]);
		PMPI_Wait(&req[i], MPI_STATUS_IGNORE);
	}
	return done;
}

/* What all ranks can have together. */
static void combine(struct vote *all, const struct vote *v)
{
	if (v->version != all->version)
		all->mask = 0;
	all->mask &= v->mask;
	all->device &= v->device;
	all->engine &= v->engine;
	if (v->min > all->min)
		all->min = v->min;
	if (v->pinnable < all->pinnable)
		all->pinnable = v->pinnable;
}

static bool count_votes(struct vote *all)
{
	int n = pmpi_world.size - 1, missing = 0, wrong = 0;
	struct vote *votes = calloc((size_t)n, sizeof(*votes));
	MPI_Request *req = calloc((size_t)n, sizeof(*req));
	bool good = votes && req;

	for (int i = 0; good && i < n; i++)
		good = PMPI_Irecv(&votes[i], sizeof(*votes), MPI_BYTE, i + 1, TAG, MPI_COMM_WORLD,
				  &req[i]) == MPI_SUCCESS;
	if (good)
		wait_for(req, n, PATIENCE_S);
	for (int i = n; good && i--;)
		if (!votes[i].version) {
			missing = i + 1;
		} else {
			wrong = votes[i].bad ? i + 1 : wrong;
			combine(all, &votes[i]);
		}
	if (!good || missing)
		all->mask = 0;
	if (missing)
		fprintf(stderr,
			"swingcoll-pmpi: rank %d runs without this library: nothing is offloaded; "
			"start all ranks with swingctl mpi, or with the same LD_PRELOAD\n",
			missing);
	if (wrong && !all->bad)
		fprintf(stderr,
			"swingcoll-pmpi: rank %d has a wrong SWINGCOLL_PMPI or SWINGCOLL_PMPI_MIN: nothing is "
			"offloaded; give all ranks the same, see swingcoll-pmpi(7)\n",
			wrong);
	for (int i = 0; good && i < n; i++) {
		req[i] = MPI_REQUEST_NULL;
		if (votes[i].version)
			PMPI_Isend(all, sizeof(*all), MPI_BYTE, i + 1, TAG, MPI_COMM_WORLD,
				   &req[i]);
	}
	if (good)
		PMPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	free(votes);
	free(req);
	return good;
}

/* ---- the name of rank 0 ---- */

/* MPI calls the handlers of either communicator if there is no such name, and that is no error here. */
static const MPI_Comm handled[] = { MPI_COMM_WORLD, MPI_COMM_SELF };

static void return_errors(MPI_Errhandler before[2])
{
	for (int i = 0; i < 2; i++) {
		PMPI_Comm_get_errhandler(handled[i], &before[i]);
		PMPI_Comm_set_errhandler(handled[i], MPI_ERRORS_RETURN);
	}
}

static void restore_errors(MPI_Errhandler before[2])
{
	for (int i = 0; i < 2; i++) {
		PMPI_Comm_set_errhandler(handled[i], before[i]);
		PMPI_Errhandler_free(&before[i]);
	}
}

/* A launcher may have started several programs with an MPI_COMM_WORLD each. PMIx tells them apart. */
static void make_name(char name[256], int rank)
{
	const char *space = getenv("PMIX_NAMESPACE");

	snprintf(name, 256, "swingcoll-pmpi-%.100s-%d", space ? space : "", rank);
}

static bool publish(int rank)
{
	MPI_Errhandler before[2];
	char name[256];
	int ret;

	make_name(name, rank);
	return_errors(before);
	ret = PMPI_Publish_name(name, MPI_INFO_NULL, "swingcoll-pmpi");
	restore_errors(before);
	return ret == MPI_SUCCESS;
}

static void unpublish(int rank)
{
	MPI_Errhandler before[2];
	char name[256];

	make_name(name, rank);
	return_errors(before);
	PMPI_Unpublish_name(name, MPI_INFO_NULL, "swingcoll-pmpi");
	restore_errors(before);
}

static bool is_published(void)
{
	char name[256], port[MPI_MAX_PORT_NAME];
	MPI_Errhandler before[2];
	int ret;

	make_name(name, 0);
	return_errors(before);
	ret = PMPI_Lookup_name(name, MPI_INFO_NULL, port);
	restore_errors(before);
	return ret == MPI_SUCCESS;
}

/* Does the launcher keep names? Then it does for rank 0, too. */
static bool has_names(void)
{
	if (!publish(pmpi_world.rank))
		return false;
	unpublish(pmpi_world.rank);
	return true;
}

/* Has rank 0 the library? True, too, if nobody can tell. */
static bool find_rank_0(void)
{
	struct timespec pause = { .tv_nsec = 5000000 };
	double end = now_s() + PATIENCE_S;

	if (is_published() || !has_names())
		return true;
	while (!is_published()) {
		if (now_s() > end)
			return false;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 500000000)
			pause.tv_nsec *= 2;
	}
	return true;
}

/* ---- the other ranks ---- */

static bool ask_rank_0(struct vote *v)
{
	struct vote all = { 0 };
	MPI_Request req[2];

	if (!find_rank_0()) {
		if (pmpi_world.rank == 1)
			fprintf(stderr,
				"swingcoll-pmpi: rank 0 runs without this library: nothing is "
				"offloaded; start all ranks with swingctl mpi, or with the same "
				"LD_PRELOAD\n");
		return false;
	}

	PMPI_Irecv(&all, sizeof(all), MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &req[0]);
	PMPI_Isend(v, sizeof(*v), MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &req[1]);
	/* Rank 0 itself may wait for others. */
	if (!wait_for(req, 2, 2 * PATIENCE_S)) {
		/* It has got a message that the program knows nothing of. */
		if (pmpi_world.rank == 1)
			fprintf(stderr,
				"swingcoll-pmpi: rank 0 runs without this library, or does not "
				"answer: start all ranks with swingctl mpi, or with the same "
				"LD_PRELOAD\n");
		PMPI_Abort(MPI_COMM_WORLD, 1);
	}
	*v = all;
	return true;
}

static bool ask_all(struct vote *all)
{
	bool published = publish(0), good = count_votes(all);

	if (published)
		unpublish(0);
	return good;
}

/* Memory that this process may lock. */
static uint64_t pinnable(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	struct rlimit limit;

	if (!syscall(SYS_capget, &head, data) && data[0].effective >> CAP_IPC_LOCK & 1)
		return UINT64_MAX;
	return getrlimit(RLIMIT_MEMLOCK, &limit) ? 0 : limit.rlim_cur;
}

void pmpi_world_agree(uint64_t mask)
{
	const char *stats = getenv("SWINGCOLL_PMPI_STATS");
	struct pmpi_settings settings;
	struct vote v = { .version = VERSION };
	char text[256];
	int bad = pmpi_settings_parse(&settings, getenv("SWINGCOLL_PMPI"),
				      getenv("SWINGCOLL_PMPI_MIN"), text, sizeof(text));

	PMPI_Comm_rank(MPI_COMM_WORLD, &pmpi_world.rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &pmpi_world.size);
	pmpi_world.stats = stats && !strcmp(stats, "1") && !pmpi_world.rank;
	if (bad && !pmpi_world.rank)
		fprintf(stderr, "swingcoll-pmpi: %s\n", text);
	if (pmpi_world.size == 1) {
		pmpi_world.why = PMPI_WHY_COMM;
		return;
	}
	v.bad = bad;
	v.mask = settings.mask & mask;
	v.min = settings.min;
	v.device = !access(SWC_DEVICE_PATH, R_OK | W_OK);
	v.pinnable = pinnable();
	v.engine = pmpi_progress_has_engine();
	if (!(pmpi_world.rank ? ask_rank_0(&v) : ask_all(&v)))
		return;
	pmpi_world.mask = v.mask;
	pmpi_world.min = v.min;
	pmpi_world.pinnable = v.pinnable;
	pmpi_world.engine = v.engine;
	pmpi_world.active = v.mask && v.device;
	if (v.mask && !v.device)
		pmpi_world.why = PMPI_WHY_NO_DEVICE;
	if (pmpi_world.active && PMPI_Comm_group(MPI_COMM_WORLD, &pmpi_world.group) != MPI_SUCCESS)
		pmpi_world.group = MPI_GROUP_NULL;
}

void pmpi_world_end(void)
{
	if (pmpi_world.active && pmpi_world.group != MPI_GROUP_NULL)
		PMPI_Group_free(&pmpi_world.group);
	pmpi_world.active = false;
	pmpi_world.why = PMPI_WHY_OFF;
}

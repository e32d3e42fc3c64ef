// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers that the kernel does not pin, under the preload library, on several nodes: there swingcoll's communicator
 * ends with the call. Rank 0 has the buffers, and the last rank comes to the call when the others have left it. Rank 0
 * prints TAP. net_mpirun.sh runs it: with the folder of a file system on a disk for a file that is mapped, or with "limit"
 * where rank 0 may lock no memory. With "behind" and the path of swingctl the last rank misses a call before that one,
 * too, which the others have ended: then there is no way on. pmpi_faults.sh runs it on one node with "requests", with such a folder or with little
 * memory that may be locked: nonblocking and persistent calls could not turn to MPI.
 */
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "pmpi_test.h"

/* So few that MPI reduces by messages alone that are sent whether or not the receiver has come. */
#define COUNT 256

/* From now on this process may lock no memory. */
static void lock_nothing(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	const struct rlimit none = { 0 };

	GOOD(!syscall(SYS_capget, &head, data));
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	data[0].permitted &= ~(1u << CAP_IPC_LOCK);
	GOOD(!syscall(SYS_capset, &head, data));
	GOOD(!setrlimit(RLIMIT_MEMLOCK, &none));
}

static void *map_file(const char *folder, size_t bytes)
{
	char name[256];
	void *p;
	int fd;

	snprintf(name, sizeof(name), "%s/XXXXXX", folder);
	fd = mkstemp(name);
	GOOD(fd >= 0 && !unlink(name) && !ftruncate(fd, (off_t)bytes));
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	GOOD(p != MAP_FAILED);
	return p;
}

/* Until this node knows that a communicator has ended. Before that a call may find its message here, and succeed. */
static void wait_for_abort(const char *swingctl)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	char command[512];

	snprintf(command, sizeof(command), "%s status | grep -q aborted", swingctl);
	while (system(command))
		nanosleep(&pause, NULL);
}

/* All ranks but the last leave a reduction to it by MPI before it comes. behind: the path of swingctl, or NULL. */
static void test_late(int *own, const char *name, bool limit, const char *behind)
{
	int *sum = calloc(COUNT, sizeof(*sum)), token = 0, last = nranks - 1, bad_values = 0;

	for (int i = 0; i < COUNT; i++)
		own[i] = rank + i;
	if (rank == last)
		for (int r = 0; r < last; r++)
			MPI_Recv(&token, 1, MPI_INT, r, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (behind && rank == last)
		wait_for_abort(behind);
	if (behind)
		MPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (!rank && limit)
		lock_nothing();
	GOOD(MPI_Reduce(own, sum, COUNT, MPI_INT, MPI_SUM, last, MPI_COMM_WORLD) == MPI_SUCCESS);
	if (rank != last)
		MPI_Send(&token, 1, MPI_INT, last, 1, MPI_COMM_WORLD);
	for (int i = 0; rank == last && i < COUNT; i++)
		bad_values += sum[i] != nranks * (nranks - 1) / 2 + nranks * i;
	GOOD(!bad_values);
	free(sum);
	report("a reduction of %s, to which a rank comes late", name);
}

static void test_result(int *own, const char *name)
{
	int *v = calloc(COUNT, sizeof(*v)), bad_values = 0;

	for (int i = 0; i < COUNT; i++)
		v[i] = rank + i;
	GOOD(MPI_Allreduce(v, own, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
	for (int i = 0; i < COUNT; i++)
		bad_values += own[i] != nranks * (nranks - 1) / 2 + nranks * i;
	GOOD(!bad_values);
	free(v);
	report("the result of a reduction in %s", name);
}

#define REQUESTS 8
#define LARGE (512 << 10) /* elements of a request: all of them together are more than 8 MiB */

/* All are in flight at once. */
static void test_requests(int *v)
{
	MPI_Request req[REQUESTS];

	for (int i = 0; i < REQUESTS; i++)
		for (int k = 0; k < LARGE; k++)
			v[i * LARGE + k] = rank + i + k;
	for (int i = 0; i < REQUESTS; i++)
		GOOD(MPI_Iallreduce(MPI_IN_PLACE, v + i * LARGE, LARGE, MPI_INT, MPI_SUM,
				    MPI_COMM_WORLD, &req[i]) == MPI_SUCCESS);
	GOOD(MPI_Waitall(REQUESTS, req, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
	for (int i = 0; i < REQUESTS; i++)
		for (int k = 0; k < LARGE; k++)
			if (v[i * LARGE + k] != nranks * (nranks - 1) / 2 + nranks * (i + k)) {
				GOOD(!"sum");
				break;
			}
	report("%d reductions at once", REQUESTS);
}

/* Each call reads and writes such memory, in place and not. */
static void test_movements(int *v)
{
	int *to = v + LARGE, *counts = calloc(2 * (size_t)nranks, sizeof(*counts)),
	    *displs = counts + nranks;
	int share = LARGE / nranks, bad_values = 0;
	MPI_Request req[4];

	for (int k = 0; k < LARGE; k++) {
		v[k] = rank ? -1 : k;
		to[k] = k / share == rank ? rank + k : -1;
		to[LARGE + k] = 10 * rank + k;
	}
	for (int r = 0; r < nranks; r++) {
		counts[r] = share - r;
		displs[r] = r * share;
	}
	MPI_Ibcast(v, LARGE, MPI_INT, 0, MPI_COMM_WORLD, &req[0]);
	MPI_Iallgather(MPI_IN_PLACE, share, MPI_INT, to, share, MPI_INT, MPI_COMM_WORLD, &req[1]);
	MPI_Ialltoall(to + LARGE, share, MPI_INT, to + 2 * LARGE, share, MPI_INT, MPI_COMM_WORLD,
		      &req[2]);
	MPI_Igatherv(to + LARGE, share - rank, MPI_INT, to + 3 * LARGE, counts, displs, MPI_INT, 0,
		     MPI_COMM_WORLD, &req[3]);
	GOOD(MPI_Waitall(4, req, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
	for (int k = 0; k < LARGE; k++)
		bad_values += v[k] != k;
	for (int k = 0; k < nranks * share; k++) {
		int r = k / share, at = k % share;

		bad_values += to[k] != r + k || to[2 * LARGE + k] != 10 * r + rank * share + at;
		bad_values += !rank && at < share - r && to[3 * LARGE + k] != 10 * r + at;
	}
	GOOD(!bad_values);
	free(counts);
	report("nonblocking calls that move data");
}

static void test_persistent(int *v)
{
	MPI_Request req[REQUESTS];
	int bad_values = 0;

	for (int i = 0; i < REQUESTS; i++)
		PERSISTENT(Bcast_init)
	(v + i * LARGE, LARGE, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &req[i]);
	for (int round = 0; round < 2; round++) {
		for (int k = 0; k < REQUESTS * LARGE; k++)
			v[k] = rank ? -1 : k + round;
		GOOD(MPI_Startall(REQUESTS, req) == MPI_SUCCESS);
		GOOD(MPI_Waitall(REQUESTS, req, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
		for (int k = 0; k < REQUESTS * LARGE; k++)
			bad_values += v[k] != k + round;
	}
	for (int i = 0; i < REQUESTS; i++)
		MPI_Request_free(&req[i]);
	GOOD(!bad_values);
	report("%d persistent broadcasts at once", REQUESTS);
}

static int use_requests(const char *folder)
{
	size_t bytes = (size_t)REQUESTS * LARGE * sizeof(int);
	int *v = folder ? map_file(folder, bytes) : calloc(1, bytes);

	begin_tests(3);
	try_comm(MPI_COMM_WORLD);
	test_requests(v);
	test_movements(v);
	test_persistent(v);
	return end_tests();
}

int main(int argc, char **argv)
{
	const char *behind = argc > 2 && is_asked(argc, argv, "behind") ? argv[2] : NULL;
	bool limit = behind || is_asked(argc, argv, "limit");
	const char *name = limit ? "memory that cannot be locked" : "a mapped file";
	int *own;

	begin_mpi(argc, argv);
	if (is_asked(argc, argv, "requests"))
		return use_requests(argc > 2 ? argv[2] : NULL);
	begin_tests(3);
	/* The library's communicator, and connections. */
	for (int i = 0; i < 3; i++)
		try_comm(MPI_COMM_WORLD);
	own = rank || limit ? calloc(COUNT, sizeof(*own)) : map_file(argv[1], COUNT * sizeof(*own));
	test_late(own, name, limit, behind);
	test_result(own, name);
	for (int i = 0; i < 10; i++)
		try_comm(MPI_COMM_WORLD);
	report("calls after that");
	return end_tests();
}

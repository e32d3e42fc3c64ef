// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers that the kernel does not pin, under the preload library, on several nodes: there swingcoll's communicator
 * ends with the call. Rank 0 has the buffers, and the last rank comes to the call when the others have left it. Rank 0
 * prints TAP. net_mpirun.sh runs it: with the folder of a file system on a disk for a file that is mapped, or with "limit"
 * where rank 0 may lock no memory. With "behind" the last rank misses a call before that one, too, which the others have
 * ended: then there is no way on.
 */
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "pmpi_test.h"

/* So few that MPI sends them whether or not the receiver has come. */
#define COUNT 2048

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

static int *map_file(const char *folder)
{
	char name[256];
	int fd, *p;

	snprintf(name, sizeof(name), "%s/XXXXXX", folder);
	fd = mkstemp(name);
	GOOD(fd >= 0 && !unlink(name) && !ftruncate(fd, COUNT * sizeof(int)));
	p = mmap(NULL, COUNT * sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	GOOD(p != MAP_FAILED);
	return p;
}

/* All ranks but the last leave a reduction to it by MPI before it comes. */
static void test_late(int *own, const char *name, bool behind)
{
	int *sum = calloc(COUNT, sizeof(*sum)), token = 0, last = nranks - 1, bad_values = 0;

	for (int i = 0; i < COUNT; i++)
		own[i] = rank + i;
	if (rank == last)
		for (int r = 0; r < last; r++)
			MPI_Recv(&token, 1, MPI_INT, r, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (behind)
		MPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD);
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

int main(int argc, char **argv)
{
	bool limit = is_asked(argc, argv, "limit"), behind = is_asked(argc, argv, "behind");
	const char *name = limit || behind ? "memory that cannot be locked" : "a mapped file";
	int *own;

	begin_mpi(argc, argv);
	begin_tests(3);
	/* The library's communicator, and connections. */
	for (int i = 0; i < 3; i++)
		try_comm(MPI_COMM_WORLD);
	if (!rank && (limit || behind))
		lock_nothing();
	own = rank || limit || behind ? calloc(COUNT, sizeof(*own)) : map_file(argv[1]);
	test_late(own, name, behind);
	test_result(own, name);
	for (int i = 0; i < 10; i++)
		try_comm(MPI_COMM_WORLD);
	report("calls after that");
	return end_tests();
}

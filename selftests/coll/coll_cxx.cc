// SPDX-License-Identifier: GPL-2.0-only
/*
 * The public headers in C++: they compile with all warnings, the calls link, and two ranks add; the header of C++, with its
 * exceptions. Also the versions of header and library.
 */
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <sys/wait.h>
#include <unistd.h>

#include <swingcoll.h>
#include <swingcoll.hpp>
#include <swingcoll_overlap.h>
#include <swingcoll_sparse.h>

static int add(const swingcoll_id &id, int rank)
{
	swingcoll_comm_opts opts{};
	swingcoll_comm *comm = nullptr;
	swingcoll_req *req = nullptr;
	double one[2] = { 1.0 + rank, 5.0 }, sum[2] = {};
	int ret = swingcoll_comm_create(&comm, &id, 2, rank, &opts);

	if (!ret)
		ret = swingcoll_allreduce(one, sum, 2, SWINGCOLL_F64, SWINGCOLL_SUM, comm);
	if (!ret && (sum[0] != 3.0 || sum[1] != 10.0))
		ret = 1;
	if (!ret)
		ret = swingcoll_sparse_allreduce(one, sum, 2, SWINGCOLL_F64, SWINGCOLL_MAX,
						 SWINGCOLL_SPARSE_MODE_ROWS(2), comm);
	if (!ret && (sum[0] != 2.0 || sum[1] != 5.0))
		ret = 1;
	if (!ret)
		ret = swingcoll_ibroadcast(one, one, 2, SWINGCOLL_F64, 1, comm, &req);
	if (!ret)
		ret = swingcoll_wait(req, nullptr);
	if (!ret && one[0] != 2.0)
		ret = 2;
	if (ret)
		std::printf("# rank %d: %d (%s)\n", rank, ret, swingcoll_strerror(ret));
	swingcoll_comm_destroy(comm);
	return ret;
}

#define GOOD(what)                                                                                 \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			std::printf("# rank %d, line %d: failed: %s\n", rank, __LINE__, #what);    \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

/* Collectives, blocking and not; requests that end with their scope; a communicator that moves, and shrinks. */
static int use_classes(const swingcoll_id &id, int rank)
{
	std::int64_t in[4] = { rank, 1, 2, 3 }, out[8] = {};
	float half[2] = { 0.5f + rank, 2.0f };
	swingcoll::communicator first(id, 2, rank);
	swingcoll::communicator comm(std::move(first));

	GOOD(!first.get() && comm.rank() == rank && comm.size() == 2 && comm.nodes() == 1);
	comm.allreduce(in, out, 4);
	GOOD(out[0] == 1 && out[3] == 6);
	comm.allreduce(half, half, 2, SWINGCOLL_MAX);
	GOOD(half[0] == 1.5f && half[1] == 2.0f);
	comm.allgather(in, out, 4);
	GOOD(out[0] == 0 && out[4] == 1 && out[7] == 3);
	comm.reduce_scatter(in, out, 2);
	GOOD(out[0] == (rank ? 4 : 1) && out[1] == (rank ? 6 : 2));
	comm.alltoall(in, out, 2);
	GOOD(out[0] == (rank ? 2 : 0) && out[2] == (rank ? 2 : 1));
	comm.reduce(in, out, 4, 1);
	GOOD(!rank || out[0] == 1);
	comm.gather(in, out, 4, 0);
	GOOD(rank || out[4] == 1);
	comm.scatter(in, out, 2, 1);
	GOOD(out[0] == (rank ? 2 : 1));
	comm.broadcast(in, 4, 1);
	GOOD(in[0] == 1);
	{
		swingcoll::request sum = comm.iallreduce(in, out, 4), other;

		other = std::move(sum);
		GOOD(sum.test());
		while (!other.test())
			;
		GOOD(out[1] == 2);
		other = comm.iallgather(in, out, 4);
		other.wait();
		GOOD(out[1] == 1);
		comm.ibroadcast(in, 4, 0); /* its end waits */
		sum = comm.ireduce_scatter(in, out, 2);
	}
	GOOD(out[1] == (rank ? 6 : 2));
	comm.barrier();
	return 0;
}

/* A wrong argument leaves the communicator as it is; a rank that dies ends it, and is named. */
static int use_errors(const swingcoll_id &id, int rank)
{
	swingcoll::communicator comm(id, 2, rank);
	double v[2] = { 1, 2 };
	bool thrown = false;

	try {
		comm.broadcast(v, 2, 2);
	} catch (const swingcoll::error &e) {
		thrown = e.code() == std::errc::invalid_argument && !e.failed() && *e.what();
	}
	GOOD(thrown);
	comm.allreduce(v, v, 2);
	GOOD(v[1] == 4);
	if (rank)
		std::raise(SIGKILL);
	/* The reason of the second, which gets another error, is the same. */
	for (int i = 0; i < 2; i++) {
		thrown = false;
		try {
			comm.allreduce(v, v, 2);
		} catch (const swingcoll::error &e) {
			std::printf("# %s\n", e.what());
			thrown = e.failed() && e.culprit() == 1 && std::strstr(e.what(), "rank 1");
		}
		GOOD(thrown);
	}
	swingcoll::communicator alone = comm.shrink();
	alone.allreduce(v, v, 2);
	GOOD(alone.size() == 1 && v[1] == 4);
	return 0;
}

static int no_throw(int (*function)(const swingcoll_id &, int), const swingcoll_id &id, int rank)
{
	try {
		return function(id, rank);
	} catch (const std::exception &e) {
		std::printf("# rank %d: %s\n", rank, e.what());
		return 1;
	}
}

/* On two ranks, of which the second ends as it says: 0, or by a signal. */
static bool on_two(int (*function)(const swingcoll_id &, int), int end)
{
	int status = -1;
	swingcoll_id id;

	if (swingcoll_unique_id(&id))
		return false;
	std::fflush(stdout);
	pid_t child = fork();
	if (!child) {
		int ret = no_throw(function, id, 1);

		std::fflush(stdout);
		_exit(ret != 0);
	}
	bool good = !no_throw(function, id, 0);
	return waitpid(child, &status, 0) == child && status == end && good;
}

int main()
{
	char version[32];
	int number = 1, bad = 0;

	std::puts("TAP version 13");
	if (access("/dev/swingcoll", F_OK)) {
		std::puts("1..0 # SKIP swingcoll is not loaded");
		return 4;
	}
	std::puts("1..4");
	std::fflush(stdout);
	std::snprintf(version, sizeof(version), "%d.%d.%d", SWINGCOLL_VERSION_MAJOR,
		      SWINGCOLL_VERSION_MINOR, SWINGCOLL_VERSION_PATCH);
	bad += std::strcmp(version, swingcoll_version()) != 0;
	std::printf("%sok 1 header %s, library %s\n", bad ? "not " : "", version,
		    swingcoll_version());
	auto result = [&](bool good, const char *name) {
		bad += !good;
		std::printf("%sok %d %s\n", good ? "" : "not ", ++number, name);
	};
	result(on_two(add, 0), "two ranks add");
	result(on_two(use_classes, 0), "communicators and requests as objects");
	result(on_two(use_errors, SIGKILL), "errors as exceptions, with the rank at fault");
	return bad != 0;
}

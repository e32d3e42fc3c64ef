// SPDX-License-Identifier: GPL-2.0-only
/*
 * The public headers in C++: they compile with all warnings, the calls link, and two ranks add. Also the versions of header
 * and library.
 */
#include <cstdio>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

#include <swingcoll.h>
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

int main()
{
	char version[32];
	int status = 1, bad = 0;
	swingcoll_id id;

	std::puts("TAP version 13");
	if (access("/dev/swingcoll", F_OK)) {
		std::puts("1..0 # SKIP swingcoll is not loaded");
		return 4;
	}
	std::puts("1..2");
	std::fflush(stdout);
	std::snprintf(version, sizeof(version), "%d.%d.%d", SWINGCOLL_VERSION_MAJOR,
		      SWINGCOLL_VERSION_MINOR, SWINGCOLL_VERSION_PATCH);
	bad += std::strcmp(version, swingcoll_version()) != 0;
	std::printf("%sok 1 header %s, library %s\n", bad ? "not " : "", version,
		    swingcoll_version());
	std::fflush(stdout);
	if (swingcoll_unique_id(&id))
		return 1;
	pid_t child = fork();
	if (!child)
		_exit(add(id, 1) != 0);
	bool good = !add(id, 0);
	good = waitpid(child, &status, 0) == child && !status && good;
	std::printf("%sok 2 two ranks add\n", good ? "" : "not ");
	return bad || !good;
}

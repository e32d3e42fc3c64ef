// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limits of users, for communicators between nodes: paths, connections, and records of messages. The other nodes have
 * addresses that nobody has.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "quota.h"

#define MIB (1ull << 20)

/* ------------------------------------------------------------------ paths */

#define NODES 2048
#define MANY_PATHS ((NODES - 1) * SWC_MAX_PATHS)

enum order {
	IN_ORDER,
	WRONG_PATHS,
	WRONG_NODES,
};

/* Rank 0 of many nodes, with the most paths to each. */
static int create_of_many(int fd, struct swc_node_path *path, uint32_t *node, enum order order,
			  uint32_t *comm)
{
	struct swc_comm_create j = { .nranks = NODES,
				     .nnodes = NODES,
				     .npaths = MANY_PATHS,
				     .rank_node = (uintptr_t)node,
				     .paths = (uintptr_t)path,
				     .timeout_ms = TESTLIB_EVENT_MS };
	int ret;

	for (uint32_t i = 0; i < MANY_PATHS; i++) {
		struct sockaddr_in *a = (void *)path[i].local, *b = (void *)path[i].remote;

		path[i] = (struct swc_node_path){ .node = 1 + i / SWC_MAX_PATHS,
						  .path = i % SWC_MAX_PATHS,
						  .transport = SWC_TRANSPORT_TCP };
		a->sin_family = b->sin_family = AF_INET;
		a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		b->sin_addr.s_addr = htonl(0xc0000202); /* 192.0.2.2, for documentation */
		b->sin_port = htons(18575);
	}
	if (order == WRONG_PATHS) {
		path[100].path++;
		path[101].path--;
	}
	for (uint32_t i = 0; i < SWC_MAX_PATHS && order == WRONG_NODES; i++) {
		path[i].node++;
		path[SWC_MAX_PATHS + i].node--;
	}
	for (uint32_t i = 0; i < NODES; i++)
		node[i] = i;
	testlib_new_id(j.id);
	ret = testlib_ioctl(fd, SWC_IOC_COMM_CREATE, &j);
	*comm = j.comm;
	return ret;
}

/* The table of paths is the greatest part of a communicator of many nodes. */
static int paths(void)
{
	uint64_t bytes = MANY_PATHS * sizeof(struct swc_node_path), before;
	struct swc_node_path *path = malloc(bytes);
	uint32_t *node = malloc(NODES * sizeof(*node)), comm;
	struct swc_user_query u;
	struct testlib_ctx c;

	CHECK(path && node);
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(quota_wait_alone(c.fd), 0);
	CHECK_EQ(quota_set_limit(SWC_QUOTA_MEMORY, 64), 0);
	CHECK_EQ(create_of_many(c.fd, path, node, WRONG_PATHS, &comm), -EINVAL);
	CHECK_EQ(create_of_many(c.fd, path, node, WRONG_NODES, &comm), -EINVAL);
	CHECK_EQ(quota_query(c.fd, 0, &u), 0);
	before = u.quota[SWC_QUOTA_MEMORY].used;
	CHECK_EQ(create_of_many(c.fd, path, node, IN_ORDER, &comm), 0);
	CHECK_EQ(quota_query(c.fd, 0, &u), 0);
	CHECK(u.quota[SWC_QUOTA_MEMORY].used > before + bytes);
	CHECK_EQ(testlib_comm_leave(c.fd, comm), 0);
	CHECK_EQ(quota_wait_used(c.fd, 0, SWC_QUOTA_MEMORY, before), 0);
	CHECK_EQ(quota_set_limit(SWC_QUOTA_MEMORY, 2), 0);
	CHECK_EQ(create_of_many(c.fd, path, node, IN_ORDER, &comm), -EDQUOT);
	testlib_close(&c);
	free(path);
	free(node);
	return 0;
}

/* ------------------------------------------------------------------ connections */

#define PATHS 8

/* Rank 0 of two nodes, the other of which has addresses that nobody has. */
static int create_alone(int fd, uint32_t *comm)
{
	static uint32_t node[2] = { 0, 1 };
	struct swc_node_path path[2 * PATHS] = { 0 };
	struct swc_comm_create j = { .nranks = 2,
				     .nnodes = 2,
				     .npaths = 2 * PATHS,
				     .rank_node = (uintptr_t)node,
				     .paths = (uintptr_t)path,
				     .timeout_ms = TESTLIB_EVENT_MS };
	int ret;

	for (uint32_t i = 0; i < 2 * PATHS; i++) {
		struct sockaddr_in *a = (void *)path[i].local, *b = (void *)path[i].remote;

		path[i].node = 1;
		path[i].path = i;
		a->sin_family = b->sin_family = AF_INET;
		a->sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, for documentation */
		b->sin_addr.s_addr = htonl(0xc0000202 + i);
		b->sin_port = htons(18574);
	}
	testlib_new_id(j.id);
	ret = testlib_ioctl(fd, SWC_IOC_COMM_CREATE, &j);
	*comm = j.comm;
	return ret;
}

/* A barrier with one empty message by each of the paths from the first on, on each channel. */
static int load_conns(int fd, uint32_t comm, uint32_t channels, uint32_t first, uint32_t *plan,
		      char *text)
{
	struct testlib_plan p;
	int ret;

	testlib_plan_init(&p, SWC_BARRIER, 2, 0, 0, 1);
	for (uint32_t ch = 0; ch < channels; ch++) {
		testlib_plan_channel(&p);
		for (uint32_t i = 0; i < PATHS; i++) {
			testlib_plan_step(&p, SWC_STEP_NET);
			testlib_plan_send(&p, 1, SWC_BUF_SEND, 0, 0);
			p.xfer[p.h.nxfers - 1].path = (uint8_t)(first + i);
		}
	}
	testlib_plan_pack(&p);
	ret = testlib_plan_load(fd, comm, p.data, p.bytes, plan, text);
	testlib_plan_free(&p);
	return ret;
}

static int conns(void)
{
	char text[SWC_TEXT_BYTES] = "";
	struct swc_comm_error e;
	struct swc_user_query u;
	struct testlib_ctx c;
	struct swc_desc d = { .coll = SWC_BARRIER };
	struct swc_comm_ref ref = { 0 };
	uint32_t comm;
	uint64_t used;

	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(quota_wait_alone(c.fd), 0);
	CHECK_EQ(create_alone(c.fd, &comm), 0);
	/* 512 connections in one plan: refused when it is loaded. */
	CHECK_EQ(quota_set_limit(SWC_QUOTA_CONNS, 511), 0);
	CHECK_EQ(load_conns(c.fd, comm, 64, 0, &d.plan, text), -EDQUOT);
	CHECK(strstr(text, "user_conns"));
	CHECK(strstr(text, "may have 511 connections"));
	CHECK_EQ(quota_query(c.fd, 0, &u), 0);
	CHECK_EQ(u.quota[SWC_QUOTA_CONNS].used, 0);
	CHECK(u.quota[SWC_QUOTA_CONNS].refused > 0);
	/* So it is for the memory that they need, about 90 MiB. */
	CHECK_EQ(quota_set_limit(SWC_QUOTA_CONNS, 1024), 0);
	CHECK_EQ(quota_set_limit(SWC_QUOTA_MEMORY, 32), 0);
	CHECK_EQ(load_conns(c.fd, comm, 64, 0, &d.plan, text), -EDQUOT);
	CHECK(strstr(text, "user_memory_mib"));
	/* 64 are opened by the first operation; the next one needs other 64, for which there is no room. */
	CHECK_EQ(quota_set_limit(SWC_QUOTA_CONNS, 100), 0);
	CHECK_EQ(load_conns(c.fd, comm, 8, 0, &d.plan, text), 0);
	d.comm = comm;
	CHECK_EQ(quota_query(c.fd, 0, &u), 0);
	used = u.quota[SWC_QUOTA_MEMORY].used;
	CHECK_EQ(testlib_submit(c.fd, &d), 0);
	CHECK_EQ(quota_query(c.fd, 0, &u), 0);
	CHECK_EQ(u.quota[SWC_QUOTA_CONNS].used, 64);
	CHECK(u.quota[SWC_QUOTA_MEMORY].used > used + 64 * 65536);
	CHECK_EQ(testlib_submit(c.fd, &d), 0);
	CHECK_EQ(load_conns(c.fd, comm, 8, PATHS, &d.plan, text), 0);
	CHECK_EQ(testlib_submit(c.fd, &d), -EDQUOT);
	CHECK_EQ(testlib_comm_error(c.fd, comm, &e), 0);
	CHECK_EQ(e.error, -EDQUOT);
	CHECK(strstr(e.text, "may have 100 connections"));
	CHECK_EQ(quota_query(c.fd, 0, &u), 0);
	CHECK_EQ(u.quota[SWC_QUOTA_CONNS].used, 100);
	ref.comm = comm;
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_COMM_ABORT, &ref), 0);
	CHECK_EQ(testlib_run_child(quota_work_of_nobody, NULL), 0);
	testlib_close(&c);
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(quota_wait_used(c.fd, 0, SWC_QUOTA_CONNS, 0), 0);
	testlib_close(&c);
	return 0;
}

/*
 * Records of messages, some 110 bytes each: of 64 channels, one sends the most messages that a step may have. Its
 * records fit below the limit, as many for each channel would not.
 */
static int records(void)
{
	struct swc_desc d = { .coll = SWC_BARRIER };
	char text[SWC_TEXT_BYTES] = "";
	struct swc_comm_ref ref = { 0 };
	struct swc_user_query u;
	struct testlib_plan p;
	struct testlib_ctx c;
	uint64_t before;
	uint32_t comm;

	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(quota_wait_alone(c.fd), 0);
	CHECK_EQ(create_alone(c.fd, &comm), 0);
	testlib_plan_init(&p, SWC_BARRIER, 2, 0, 0, 1);
	for (uint32_t ch = 0; ch < SWC_MAX_CHANNELS; ch++) {
		testlib_plan_channel(&p);
		testlib_plan_step(&p, ch ? SWC_STEP_SYNC : SWC_STEP_NET);
		for (uint32_t i = 0; !ch && i < SWC_MAX_MESSAGES; i++)
			testlib_plan_send(&p, 1, SWC_BUF_SEND, 0, 0);
	}
	testlib_plan_pack(&p);
	CHECK_EQ(testlib_plan_load(c.fd, comm, p.data, p.bytes, &d.plan, text), 0);
	testlib_plan_free(&p);
	CHECK_EQ(quota_query(c.fd, 0, &u), 0);
	before = u.quota[SWC_QUOTA_MEMORY].used;
	CHECK_EQ(quota_set_limit(SWC_QUOTA_MEMORY, (unsigned int)(before / MIB) + 64), 0);
	d.comm = comm;
	CHECK_EQ(testlib_submit(c.fd, &d), 0);
	CHECK_EQ(quota_query(c.fd, 0, &u), 0);
	CHECK(u.quota[SWC_QUOTA_MEMORY].used > before + 64 * SWC_MAX_MESSAGES);
	ref.comm = comm;
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_COMM_ABORT, &ref), 0);
	testlib_close(&c);
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(quota_wait_alone(c.fd), 0);
	testlib_close(&c);
	return 0;
}

int main(void)
{
	static const struct quota_test test[] = {
		{ "memory of paths to many nodes", paths },
		{ "connections", conns, quota_lacks_rdma },
		{ "records of messages", records, quota_lacks_rdma },
		{ "at the end nothing is charged", quota_nothing_left },
	};

	quota_run(test, ARRAY_SIZE(test));
	ksft_finished();
}

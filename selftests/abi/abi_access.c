// SPDX-License-Identifier: GPL-2.0-only
/* Who may join: the id, the user, the flags, the rank; and who may look. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>

#include "testlib.h"

#define NOBODY 65534

static uint8_t id[SWC_ID_BYTES];
static int *go;

/* Another user with a descriptor of his own: opened while still root. */
static int join_as(struct swct_ctx *c, uid_t uid, uint32_t nranks, uint32_t rank, uint32_t flags,
		   uint32_t slot_bytes, uint32_t timeout_ms)
{
	struct swc_comm_join j = { .nranks = nranks,
				   .rank = rank,
				   .flags = flags,
				   .slot_bytes = slot_bytes,
				   .timeout_ms = timeout_ms };

	if (swct_open(c))
		return -ENODEV;
	if (uid && (setgroups(0, NULL) || setgid(uid) || setuid(uid)))
		return -ENOTSUP;
	memcpy(j.id, id, sizeof(id));
	return swct_ioctl(c->fd, SWC_IOC_COMM_JOIN, &j);
}

static void wait_go(int value)
{
	for (int i = 0; i < 2000 && __atomic_load_n(go, __ATOMIC_ACQUIRE) < value; i++)
		swct_sleep_ms(5);
}

static void say_go(int value)
{
	__atomic_store_n(go, value, __ATOMIC_RELEASE);
}

/* Nobody goes before all have seen what they came to see: a member's exit ends the communicator. */
static void part_together(int n)
{
	__atomic_add_fetch(&go[1], 1, __ATOMIC_ACQ_REL);
	for (int i = 0; i < 1000 && __atomic_load_n(&go[1], __ATOMIC_ACQUIRE) < n; i++)
		swct_sleep_ms(5);
}

/* Rank 0 waits in the join; rank 1 comes as somebody who is not wanted, then as one who is. */
static int two_users(uint32_t rank, void *arg)
{
	uint32_t flags = *(uint32_t *)arg;
	struct swct_ctx c;

	if (rank == 2) { /* the owner's second process */
		wait_go(1);
		CHECK_EQ(join_as(&c, 0, 2, 1, flags, 0, 5000), flags ? -EEXIST : 0);
		part_together(3);
	} else if (rank == 1) {
		CHECK(swct_joined(id, 1));
		CHECK_EQ(join_as(&c, NOBODY, 2, 1, flags, 0, 5000), flags ? 0 : -EACCES);
		say_go(1);
		part_together(3);
	} else {
		CHECK_EQ(join_as(&c, 0, 2, 0, flags, 0, 10000), 0);
		part_together(3);
	}
	return 0;
}

/* ANY_USER must be said by both. */
static int one_sided(uint32_t rank, void *arg)
{
	bool creator = *(int *)arg;
	struct swct_ctx c;

	if (rank) {
		CHECK(swct_joined(id, 1));
		CHECK_EQ(join_as(&c, NOBODY, 2, 1, creator ? 0 : SWC_JOIN_ANY_USER, 0, 300),
			 -EACCES);
	} else {
		CHECK_EQ(join_as(&c, 0, 2, 0, creator ? SWC_JOIN_ANY_USER : 0, 0, 3000),
			 -ETIMEDOUT);
	}
	return 0;
}

static int wrong_id(uint32_t rank, void *arg)
{
	uint64_t start = swct_ms();
	struct swct_ctx c;

	(void)arg;
	id[15] ^= rank;
	CHECK_EQ(join_as(&c, 0, 2, rank, 0, 0, 300), -ETIMEDOUT);
	CHECK(swct_ms() - start < 10000);
	return 0;
}

struct differ {
	const char *what;
	uint32_t nranks, flags, slots;
};

static const struct differ differ[] = {
	{ "number of ranks", 3, 0, 0 },
	{ "flags", 2, SWC_JOIN_ALLOW_REORDER, 0 },
	{ "urgency", 2, SWC_JOIN_URGENT, 0 },
	{ "size of the slots", 2, 0, 4096 },
};

static int disagree(uint32_t rank, void *arg)
{
	const struct differ *d = arg;
	struct swct_ctx c;

	if (rank == 0) {
		CHECK_EQ(join_as(&c, 0, 2, 0, 0, 0, 5000), 0);
		part_together(2);
	} else if (rank == 1) {
		CHECK(swct_joined(id, 1));
		CHECK_EQ(join_as(&c, 0, d->nranks, 1, d->flags, d->slots, 5000), -EPROTO);
		say_go(1);
	} else {
		wait_go(1);
		CHECK_EQ(join_as(&c, 0, 2, 1, 0, 0, 5000), 0);
		part_together(2);
	}
	return 0;
}

static int taken(uint32_t rank, void *arg)
{
	struct swct_ctx c;

	(void)arg;
	if (rank == 0) {
		CHECK_EQ(join_as(&c, 0, 2, 0, 0, 0, 5000), 0);
		part_together(2);
	} else if (rank == 1) {
		CHECK(swct_joined(id, 1));
		CHECK_EQ(join_as(&c, 0, 2, 0, 0, 0, 5000), -EEXIST);
		say_go(1);
	} else {
		wait_go(1);
		CHECK_EQ(join_as(&c, 0, 2, 1, 0, 0, 5000), 0);
		part_together(2);
	}
	return 0;
}

/* An id is free again after all have left, and after an abort. */
static int reuse(uint32_t rank, void *arg)
{
	struct swc_comm_ref ref = { 0 };
	struct swct_ctx c;

	(void)arg;
	CHECK_EQ(swct_open(&c), 0);
	for (int k = 0; k < 20; k++) {
		CHECK_EQ(swct_join(c.fd, id, 2, rank, 5000, &ref.comm), 0);
		part_together(2 * (k + 1));
		if (k & 1) {
			CHECK_EQ(swct_ioctl(c.fd, SWC_IOC_COMM_ABORT, &ref), 0);
			CHECK_EQ(swct_leave(c.fd, ref.comm), 0);
		} else {
			CHECK_EQ(swct_leave(c.fd, ref.comm), 0);
		}
		/* The other may not have left yet: its rank would be taken. */
		__atomic_add_fetch(go, 1, __ATOMIC_ACQ_REL);
		wait_go(2 * (k + 1));
	}
	return 0;
}

/* Only the own communicators are listed, all to root. */
static int look(int fd)
{
	struct swc_comm_query q = { 0 };
	int n = 0;

	while (!swct_ioctl(fd, SWC_IOC_COMM_QUERY, &q))
		n += !memcmp(q.id_prefix, id, 4);
	return n;
}

static int listing(uint32_t rank, void *arg)
{
	uint32_t comm;
	struct swct_ctx c;

	(void)arg;
	CHECK_EQ(swct_open(&c), 0);
	if (rank == 0) {
		CHECK_EQ(swct_join(c.fd, id, 1, 0, 1000, &comm), 0);
		CHECK_EQ(look(c.fd), 1);
		say_go(1);
		wait_go(2);
	} else {
		CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
		wait_go(1);
		CHECK_EQ(look(c.fd), 0);
		say_go(2);
	}
	return 0;
}

static int node_mode(void)
{
	struct stat st;

	CHECK_EQ(stat(SWC_DEVICE_PATH, &st), 0);
	CHECK(S_ISCHR(st.st_mode));
	CHECK_EQ(st.st_mode & 0777, 0660);
	return 0;
}

int main(void)
{
	uint32_t none = 0, any = SWC_JOIN_ANY_USER;
	int yes = 1, no = 0;

	ksft_print_header();
	swct_need_root();
	ksft_set_plan(9 + ARRAY_SIZE(differ));
	go = swct_shared(4096);

#define RUN(n, fn, arg, ...)                                                                       \
	do {                                                                                       \
		swct_id(id);                                                                       \
		go[0] = go[1] = 0;                                                                 \
		ksft_test_result(!swct_ranks(n, 20000, fn, (void *)(arg)), __VA_ARGS__);           \
	} while (0)

	RUN(3, two_users, &none, "another user is refused, the owner comes in");
	RUN(3, two_users, &any, "ANY_USER lets another user in");
	RUN(2, one_sided, &yes, "ANY_USER by the creator only");
	RUN(2, one_sided, &no, "ANY_USER by the joiner only");
	RUN(2, wrong_id, NULL, "ids that differ in one bit never meet");
	for (unsigned int i = 0; i < ARRAY_SIZE(differ); i++)
		RUN(3, disagree, &differ[i], "members disagree: %s", differ[i].what);
	RUN(3, taken, NULL, "a rank can be taken once");
	RUN(2, reuse, NULL, "an id can be used again");
	RUN(2, listing, NULL, "other users' communicators are not listed");
	ksft_test_result(!node_mode(), "mode of the device node");
	ksft_finished();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Access to communicators: who may join one, by id, user, flags and rank, who may list it, who may have it work at a
 * high priority, and what a member can show to those who list it.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "swingcoll.h"
#include "testlib.h"

#define NOBODY 65534

static uint8_t id[SWC_ID_BYTES];
static unsigned int *stage, *arrived; /* counters, shared by the ranks of a test */

/* Join as another user: the device is opened while still root. */
static int join_as(struct testlib_ctx *c, uid_t uid, uint32_t nranks, uint32_t rank, uint32_t flags,
		   uint32_t slot_bytes, uint32_t timeout_ms)
{
	struct swc_comm_create j = { .nranks = nranks,
				     .rank = rank,
				     .flags = flags,
				     .slot_bytes = slot_bytes,
				     .timeout_ms = timeout_ms };

	if (testlib_open(c))
		return -ENODEV;
	if (uid && (setgroups(0, NULL) || setgid(uid) || setuid(uid)))
		return -ENOTSUP;
	memcpy(j.id, id, sizeof(id));
	return testlib_ioctl(c->fd, SWC_IOC_COMM_CREATE, &j);
}

/*
 * Rank 0, root, waits for rank 1, which comes twice: as another user, and then as root. No member exits before all have
 * their results: an exit ends the communicator.
 */
static int two_users(uint32_t rank, void *arg)
{
	uint32_t flags = *(uint32_t *)arg;
	struct testlib_ctx c;

	if (rank == 2) { /* rank 1, as root */
		CHECK(testlib_wait_count(stage, 1));
		CHECK_EQ(join_as(&c, 0, 2, 1, flags, 0, TESTLIB_EVENT_MS), flags ? -EEXIST : 0);
		CHECK(testlib_meet(arrived, 3));
	} else if (rank == 1) {
		CHECK(testlib_wait_members(id, 1));
		CHECK_EQ(join_as(&c, NOBODY, 2, 1, flags, 0, TESTLIB_EVENT_MS),
			 flags ? 0 : -EACCES);
		testlib_count(stage);
		CHECK(testlib_meet(arrived, 3));
	} else {
		CHECK_EQ(join_as(&c, 0, 2, 0, flags, 0, TESTLIB_EVENT_MS), 0);
		CHECK(testlib_meet(arrived, 3));
	}
	return 0;
}

/* Rank 1 comes as another user, and only one of the two gives ANY_USER; then as root, with the flags of rank 0. */
static int one_sided(uint32_t rank, void *arg)
{
	bool creator = *(int *)arg;
	uint32_t flags = creator ? SWC_COMM_F_ANY_USER : 0;
	struct testlib_ctx c;

	if (rank == 2) {
		CHECK(testlib_wait_count(stage, 1));
		CHECK_EQ(join_as(&c, 0, 2, 1, flags, 0, TESTLIB_EVENT_MS), 0);
	} else if (rank == 1) {
		CHECK(testlib_wait_members(id, 1));
		CHECK_EQ(join_as(&c, NOBODY, 2, 1, flags ^ SWC_COMM_F_ANY_USER, 0,
				 TESTLIB_EVENT_MS),
			 -EACCES);
		testlib_count(stage);
	} else {
		CHECK_EQ(join_as(&c, 0, 2, 0, flags, 0, TESTLIB_EVENT_MS), 0);
	}
	CHECK(testlib_meet(arrived, 3));
	return 0;
}

/* Ids that differ in one bit: each rank waits alone, until its deadline. */
static int wrong_id(uint32_t rank, void *arg)
{
	uint64_t start = testlib_now_ms();
	struct testlib_ctx c;

	(void)arg;
	id[15] ^= rank;
	CHECK_EQ(join_as(&c, 0, 2, rank, 0, 0, 300), -ETIMEDOUT);
	CHECK(testlib_now_ms() - start < TESTLIB_EVENT_MS / 2);
	return 0;
}

/* What rank 1 gives when it first comes, and must not give. */
struct refusal {
	const char *name;
	uint32_t rank, nranks, flags, slots;
	int error;
};

static const struct refusal refusals[] = {
	{ "members disagree: number of ranks", 1, 3, 0, 0, -EPROTO },
	{ "members disagree: flags", 1, 2, SWC_COMM_F_ALLOW_REORDER, 0, -EPROTO },
	{ "members disagree: urgency", 1, 2, SWC_COMM_F_URGENT, 0, -EPROTO },
	{ "members disagree: size of the slots", 1, 2, 0, 4096, -EPROTO },
	{ "a rank can be taken only once", 0, 2, 0, 0, -EEXIST },
};

/* Rank 1 is refused, then comes as it should. */
static int refused(uint32_t rank, void *arg)
{
	const struct refusal *f = arg;
	struct testlib_ctx c;

	if (rank == 1) {
		CHECK(testlib_wait_members(id, 1));
		CHECK_EQ(join_as(&c, 0, f->nranks, f->rank, f->flags, f->slots, TESTLIB_EVENT_MS),
			 f->error);
		testlib_count(stage);
		return 0;
	}
	if (rank == 2)
		CHECK(testlib_wait_count(stage, 1));
	CHECK_EQ(join_as(&c, 0, 2, rank / 2, 0, 0, TESTLIB_EVENT_MS), 0);
	CHECK(testlib_meet(arrived, 2));
	return 0;
}

/* An id can be used again after all members have left, after an abort, too. */
static int reuse(uint32_t rank, void *arg)
{
	struct swc_comm_ref ref = { 0 };
	struct testlib_ctx c;

	(void)arg;
	CHECK_EQ(testlib_open(&c), 0);
	for (int k = 0; k < 20; k++) {
		CHECK_EQ(testlib_comm_create(c.fd, id, 2, rank, TESTLIB_EVENT_MS, &ref.comm), 0);
		CHECK(testlib_meet(arrived, 2 * (k + 1)));
		if (k & 1) {
			CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_COMM_ABORT, &ref), 0);
			CHECK_EQ(testlib_comm_leave(c.fd, ref.comm), 0);
		} else {
			CHECK_EQ(testlib_comm_leave(c.fd, ref.comm), 0);
		}
		/* Until the other has left, its rank is taken. */
		CHECK(testlib_meet(stage, 2 * (k + 1)));
	}
	return 0;
}

/* How many communicators with this id are listed: users see their own, root sees all. */
static int count_listed(int fd)
{
	struct swc_comm_query q = { 0 };
	int n = 0;

	while (!testlib_ioctl(fd, SWC_IOC_COMM_QUERY, &q))
		n += !memcmp(q.id_prefix, id, 4);
	return n;
}

static int listing(uint32_t rank, void *arg)
{
	uint32_t comm;
	struct testlib_ctx c;

	(void)arg;
	CHECK_EQ(testlib_open(&c), 0);
	if (rank == 0) {
		CHECK_EQ(testlib_comm_create(c.fd, id, 1, 0, 1000, &comm), 0);
		CHECK_EQ(count_listed(c.fd), 1);
		testlib_count(stage);
		CHECK(testlib_wait_count(stage, 2));
	} else {
		CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
		CHECK(testlib_wait_count(stage, 1));
		CHECK_EQ(count_listed(c.fd), 0);
		testlib_count(stage);
	}
	return 0;
}

/* Who asks for SWC_COMM_F_URGENT: the user, the limit for nice, and whether in a user namespace of its own. */
struct urgent {
	const char *name;
	uid_t uid;
	rlim_t nice;
	bool own_ns;
	int error;
};

static const struct urgent urgents[] = {
	{ "urgent: root may", 0, 0, false, 0 },
	{ "urgent: another user may not", NOBODY, 0, false, -EPERM },
	{ "urgent: a limit that permits nice -19 is too low", NOBODY, 39, false, -EPERM },
	{ "urgent: a limit that permits nice -20 is enough", NOBODY, 40, false, 0 },
	{ "urgent: root of another user namespace may not", 0, 0, true, -EPERM },
};

static int urgent(uint32_t rank, void *arg)
{
	const struct urgent *u = arg;
	struct rlimit limit = { u->nice, u->nice };
	struct testlib_ctx c;

	(void)rank;
	CHECK_EQ(setrlimit(RLIMIT_NICE, &limit), 0);
	CHECK_EQ(u->own_ns ? unshare(CLONE_NEWUSER) : 0, 0);
	CHECK_EQ(join_as(&c, u->uid, 1, 0, SWC_COMM_F_URGENT, 0, TESTLIB_EVENT_MS), u->error);
	return 0;
}

/* A user whose only right is the device. */
static int become_nobody(void)
{
	struct stat st;

	CHECK_EQ(stat(SWC_DEVICE_PATH, &st), 0);
	CHECK(!setgroups(1, &st.st_gid) && !setgid(NOBODY) && !setuid(NOBODY));
	return 0;
}

/* Rank 0 uses the library. Rank 1 gives the flags that rank 0 must have given to the kernel: it joins only then. */
static int try_urgent(uint32_t rank, void *arg)
{
	bool root = *(int *)arg;
	struct swingcoll_comm_opts opts = { .slot_max = -1, .flags = SWINGCOLL_URGENT };
	struct swingcoll_comm *comm;
	struct swingcoll_id lib_id;
	struct testlib_ctx c;

	CHECK_EQ(root ? 0 : become_nobody(), 0);
	if (rank) {
		CHECK_EQ(testlib_wait_members(id, 1), true);
		CHECK_EQ(join_as(&c, 0, 2, 1, root ? SWC_COMM_F_URGENT : 0, 0, TESTLIB_EVENT_MS),
			 0);
		CHECK(testlib_meet(arrived, 2));
		return 0;
	}
	memcpy(lib_id.bytes, id, sizeof(id));
	if (!root)
		CHECK_EQ(swingcoll_comm_create(&comm, &lib_id, 2, 0, &opts), -EPERM);
	opts.flags = SWINGCOLL_TRY_URGENT;
	CHECK_EQ(swingcoll_comm_create(&comm, &lib_id, 2, 0, &opts), 0);
	CHECK(testlib_meet(arrived, 2));
	CHECK_EQ(swingcoll_comm_destroy(comm), 0);
	return 0;
}

#define HOSTILE_NAME "a\033[31m\nb\177\233c~"
#define SHOWN_NAME "a?[31m?b??c~"

/* Only printable ASCII. */
static bool printable(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

/* All that the kernel shows of a member whose name has control characters: lists, and the text of an error. */
static int hostile_name(uint32_t rank, void *arg)
{
	struct swc_member_info m = { 0 };
	struct swc_comm_query q = { .max_members = 1, .members = (uintptr_t)&m };
	struct swc_comm_ref ref = { 0 };
	struct swc_comm_error e;
	struct testlib_ctx c;

	(void)rank;
	(void)arg;
	CHECK_EQ(prctl(PR_SET_NAME, HOSTILE_NAME), 0);
	CHECK_EQ(testlib_open(&c), 0);
	CHECK_EQ(testlib_comm_create(c.fd, id, 1, 0, 1000, &ref.comm), 0);
	CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_COMM_ABORT, &ref), 0);
	do
		CHECK_EQ(testlib_ioctl(c.fd, SWC_IOC_COMM_QUERY, &q), 0);
	while (memcmp(q.id_prefix, id, sizeof(q.id_prefix)));
	CHECK_EQ(strcmp(m.comm, SHOWN_NAME), 0);
	CHECK(strstr(q.text, SHOWN_NAME) && printable(q.text));
	CHECK_EQ(testlib_comm_error(c.fd, ref.comm, &e), 0);
	CHECK(strstr(e.text, SHOWN_NAME) && printable(e.text));
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
	uint32_t none = 0, any = SWC_COMM_F_ANY_USER;
	int yes = 1, no = 0;

	ksft_print_header();
	testlib_require_root();
	ksft_set_plan(11 + ARRAY_SIZE(refusals) + ARRAY_SIZE(urgents));
	stage = testlib_shared_alloc(sizeof(*stage));
	arrived = testlib_shared_alloc(sizeof(*arrived));

#define RUN(n, fn, arg, ...)                                                                       \
	do {                                                                                       \
		testlib_new_id(id);                                                                \
		*stage = *arrived = 0;                                                             \
		ksft_test_result(!testlib_run_ranks(n, fn, (void *)(arg)), __VA_ARGS__);           \
	} while (0)

	RUN(3, two_users, &none, "another user is refused, the owner joins");
	RUN(3, two_users, &any, "ANY_USER lets another user join");
	RUN(3, one_sided, &yes, "ANY_USER given by the creator alone");
	RUN(3, one_sided, &no, "ANY_USER given by the other member alone");
	RUN(2, wrong_id, NULL, "ids that differ in one bit are different communicators");
	for (unsigned int i = 0; i < ARRAY_SIZE(refusals); i++)
		RUN(3, refused, &refusals[i], "%s", refusals[i].name);
	RUN(2, reuse, NULL, "an id can be used again");
	RUN(2, listing, NULL, "other users' communicators are not listed");
	for (unsigned int i = 0; i < ARRAY_SIZE(urgents); i++)
		RUN(1, urgent, &urgents[i], "%s", urgents[i].name);
	RUN(2, try_urgent, &yes, "TRY_URGENT with the right is urgent");
	RUN(2, try_urgent, &no, "TRY_URGENT without the right is not urgent");
	RUN(1, hostile_name, NULL, "a command name with control characters");
	ksft_test_result(!node_mode(), "the device node has mode 0660");
	ksft_finished();
}

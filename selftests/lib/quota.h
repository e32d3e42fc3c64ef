/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The limits of users, which the module's parameters user_* set: tests change them, and find them as they were at the end.
 * The functions that return 0 or 1 have said why it is 1.
 */
#ifndef QUOTA_H
#define QUOTA_H

#include "testlib.h"

#define QUOTA_NOBODY 65534

/**
 * struct quota_test - a test, after which the limits are as before
 * @lacks: NULL, or what is missing for the test, or NULL
 */
struct quota_test {
	const char *name;
	int (*fn)(void);
	const char *(*lacks)(void);
};

/* All of main(): run the tests, as root. */
void quota_run(const struct quota_test *test, unsigned int n);
const char *quota_lacks_rdma(void);

/* 0 or a negative errno value. */
int quota_set_limit(int which, unsigned int n);
/* What the user has; -ENOENT: nothing. */
int quota_query(int fd, uint32_t uid, struct swc_user_query *u);
/* Wait until the user has so many; what is given back is freed by work items. */
int quota_wait_used(int fd, uint32_t uid, int which, uint64_t n);
/* Wait until user 0 has one open file with its ring, and nothing else. */
int quota_wait_alone(int fd);
/* At the end, nobody is charged for anything. */
int quota_nothing_left(void);

/* An ordinary user with the group of the device; opens nothing. */
int quota_become_nobody(void);
/* For testlib_run_child(): root has used up all, and that user works. */
int quota_work_of_nobody(void *arg);

#endif /* QUOTA_H */

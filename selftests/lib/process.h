/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ranks as processes, and how tests wait: for events, with limits that only a hang can reach. Limits are the same
 * everywhere and far above what any machine needs, so that no result depends on the machine's speed.
 */
#ifndef TESTLIB_PROCESS_H
#define TESTLIB_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* An event that has not come by then is not going to come. */
#define TESTLIB_EVENT_MS 60000
/* Processes that have not ended by then hang: they are killed, and the test fails. */
#define TESTLIB_HANG_MS 180000

uint64_t testlib_now_ns(void);
uint64_t testlib_now_ms(void);
void testlib_sleep_ms(unsigned int ms);
/* Zeroed memory that this process and its later children share. */
void *testlib_shared_alloc(size_t bytes);

/* Counters in shared memory, as meeting points. */
void testlib_count(unsigned int *counter);
/* Wait until *counter is at least n. False, with a diagnostic, if that does not happen. */
bool testlib_wait_count(const unsigned int *counter, unsigned int n);
/* Count this process and wait until there are n. */
bool testlib_meet(unsigned int *counter, unsigned int n);
/* Wait until a thread sleeps in the kernel. */
bool testlib_wait_asleep(pid_t tid);

/* Fork nranks children that run fn and exit with its return value; 0 is success. They die with the parent. */
typedef int (*testlib_rank_fn)(uint32_t rank, void *arg);
void testlib_fork_ranks(pid_t *pid, uint32_t nranks, testlib_rank_fn fn, void *arg);
/* Wait for children; entries that are 0 do not count. Returns how many failed or were killed. */
int testlib_wait_ranks(pid_t *pid, uint32_t nranks);
int testlib_wait_ranks_ms(pid_t *pid, uint32_t nranks, uint64_t limit_ms);
/* Wait for one child, and clear *pid: its exit status, 256 + the signal that ended it, or -1 if it hangs. */
int testlib_wait_child(pid_t *pid);
/* Likewise for a child that is killed: true if SIGKILL has ended it. */
bool testlib_was_killed(pid_t *pid);
/* Fork and wait. */
int testlib_run_ranks(uint32_t nranks, testlib_rank_fn fn, void *arg);
/* Fork one child and wait for it, as by testlib_wait_child(). */
int testlib_run_child(int (*fn)(void *arg), void *arg);

#endif /* TESTLIB_PROCESS_H */

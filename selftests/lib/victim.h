/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a user of the device does whom other users must not disturb. The caller is root; the actions run as another
 * user, with the device open.
 */
#ifndef VICTIM_H
#define VICTIM_H

#include "testlib.h"

#define VICTIM_UID 65533
/*
 * What is promised within milliseconds or a second gets this long. Without isolation it takes as long as the attack,
 * which only ends with the test.
 */
#define VICTIM_PROMPT_MS 10000
/* For operations that are not to end by themselves. */
#define VICTIM_ENDLESS_MS UINT32_MAX

enum victim_action {
	VICTIM_OPERATES, /* small operations of two ranks */
	VICTIM_MISSES, /* an operation of two ranks that one of them never calls, until its deadline */
	VICTIM_CLOSES,	  /* two ranks close the device with operations in flight */
	VICTIM_DIES,	  /* two ranks with operations in flight are killed */
	VICTIM_REGISTERS, /* memory up to the limit, again and again */
	VICTIM_NR
};

/* Names for test results. */
extern const char *const victim_name[VICTIM_NR];

void victim_init(void);
/*
 * Run an action. Returns whether it has succeeded in time. *took_us: one operation; beyond the deadline; from the call
 * or the kill to the end; or one registration. Processes that hang stay until victim_wait().
 */
bool victim_run(enum victim_action action, uint64_t *took_us);
/* Wait for processes that hung, when the attack is over. */
void victim_wait(void);

/* Become another user in a child of the test; it still dies with its parent. Returns 0 or 1. */
int victim_become(uid_t uid);

/* Have all processes ended in time, successfully or by SIGKILL? Those that have not remain in pid. */
bool victim_ended(pid_t *pid, int n, uint64_t limit_ms);

#endif /* VICTIM_H */

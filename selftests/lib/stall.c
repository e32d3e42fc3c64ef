// SPDX-License-Identifier: GPL-2.0-only
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "stall.h"
#include "testlib.h"

#define NAP_MS 10

static uint64_t *longest;

void stall_watch(void)
{
	struct sched_param first = { .sched_priority = sched_get_priority_max(SCHED_FIFO) };

	longest = testlib_shared_alloc(sizeof(*longest));
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sched_setscheduler(0, SCHED_FIFO, &first);
	for (;;) {
		uint64_t start = testlib_now_ms(), late;

		testlib_sleep_ms(NAP_MS);
		late = testlib_now_ms() - start - NAP_MS;
		if (late > __atomic_load_n(longest, __ATOMIC_RELAXED))
			__atomic_store_n(longest, late, __ATOMIC_RELAXED);
	}
}

uint64_t stall_longest(void)
{
	return __atomic_exchange_n(longest, 0, __ATOMIC_RELAXED);
}

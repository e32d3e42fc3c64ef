// SPDX-License-Identifier: GPL-2.0-only
/* The clocks by which tools measure. */
#include "common/clock.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

double clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

double clock_process_cpu(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
	       (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1e-6;
}

/* By the idle time, which the kernel measures exactly; the busy time in /proc/stat may be sampled. */
double clock_all_cpus_busy(void)
{
	unsigned long long user, nice, system, idle, iowait;
	FILE *f = fopen("/proc/stat", "re");
	double busy = 0;

	if (!f)
		return 0;
	if (fscanf(f, "cpu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait) == 5)
		busy = clock_now() * (double)sysconf(_SC_NPROCESSORS_ONLN) -
		       (double)(idle + iowait) / (double)sysconf(_SC_CLK_TCK);
	fclose(f);
	return busy;
}

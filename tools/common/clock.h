/* SPDX-License-Identifier: GPL-2.0-only */
/* Clocks, in seconds as double; only differences have a meaning. */
#ifndef TOOLS_CLOCK_H
#define TOOLS_CLOCK_H

double clock_now(void);

/* User and system time of this process. */
double clock_process_cpu(void);

/*
 * Time that CPUs were not idle, summed over all CPUs, for any reason: kernel threads and interrupts count.
 * The kernel counts idle time in units of 10 ms. 0 if there is no /proc/stat.
 */
double clock_all_cpus_busy(void);

#endif /* TOOLS_CLOCK_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The measurement loop, shared by swingperf and by the MPI programs it is compared with: the same
 * iteration rule, the same buffers, the same statistics. What is measured and how ranks meet outside
 * of it are callbacks.
 */
#ifndef PERFLOOP_H
#define PERFLOOP_H

#include <stddef.h>

/* All return 0, or an error that perf_measure() hands back untouched. */
struct perf_ops {
	int (*start)(void *arg, unsigned int buf); /* one operation on buffer set buf */
	int (*drain)(void *arg);		   /* whatever start() left in flight; or NULL */
	int (*sync)(void *arg);			   /* all ranks meet */
	int (*max)(void *arg, double *v);	   /* *v = maximum over the ranks */
};

/*
 * iters 0: as many as fit into budget_s over all repeats. A row then takes about twice the budget, or
 * four operations if one alone takes longer than the budget.
 */
struct perf_rule {
	unsigned int warmup;
	unsigned int iters;
	unsigned int repeats;
	unsigned int buffers; /* sets used in rotation, at least 1 */
	double budget_s;
};

/*
 * time_us is the figure to quote: per repeat the mean over the operations, of that the maximum over
 * the ranks, of that the median over the repeats; iqr_us is the interquartile range of the repeats.
 * The other three are of operations timed one by one (the slowest rank's).
 */
struct perf_time {
	double time_us;
	double iqr_us;
	double min_us;
	double median_us;
	double p99_us;
	double cpu_us; /* user and system time per operation, of the rank that used most */
	double busy_us; /* time that all CPUs were not idle, per operation, on the node where that is most */
	unsigned long iters;
	unsigned int repeats;
};

int perf_measure(const struct perf_ops *ops, void *arg, const struct perf_rule *rule,
		 struct perf_time *out);

double perf_now(void);

/* Quantile q of n values; sorts them. */
double perf_quantile(double *v, size_t n, double q);

/*
 * Memory aligned to 64 bytes, written once so that no page is missing; NULL if there is none. Vectors at
 * equal distances would meet in the same sets of caches and TLBs, emulated ones above all, so number
 * the vectors of a run (all ranks together): each number begins at another page and line; large ones in a huge
 * page, if there are such. It is there until the process ends.
 */
void *perf_alloc(size_t bytes, unsigned int number);

#endif /* PERFLOOP_H */

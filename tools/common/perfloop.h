/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The measurement loop, shared by swingperf and the programs that it is compared with: the same iteration
 * rule, the same buffers, the same statistics. The operation and the way ranks meet are callbacks.
 */
#ifndef PERFLOOP_H
#define PERFLOOP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All return 0, or an error that perf_measure() returns unchanged. */
struct perf_ops {
	int (*start)(void *arg, unsigned int buf); /* one operation on buffer set buf */
	int (*drain)(void *arg);	  /* complete what start() left in flight; or NULL */
	int (*sync)(void *arg);		  /* all ranks meet */
	int (*max)(void *arg, double *v); /* *v = maximum over the ranks */
};

/*
 * iters 0: as many as fit into budget_s over all repeats. A measurement then takes about twice the budget,
 * or the time of four operations if one alone takes longer than the budget.
 */
struct perf_rule {
	unsigned int warmup;
	unsigned int iters;
	unsigned int repeats;
	unsigned int buffers; /* sets used in rotation, at least 1 */
	double budget_s;
};

/*
 * time_us is the figure to quote: the median over the repeats of the maximum over the ranks of the mean over
 * the operations of a repeat; iqr_us is the interquartile range of the repeats. min_us, median_us and p99_us
 * are of operations timed one by one, each the maximum over the ranks.
 */
struct perf_time {
	double time_us;
	double iqr_us;
	double min_us;
	double median_us;
	double p99_us;
	double cpu_us;	/* user and system time per operation, of the rank with most */
	double busy_us; /* CPU time that was not idle, per operation, on the node with most */
	unsigned long iters;
	unsigned int repeats;
};

int perf_measure(const struct perf_ops *ops, void *arg, const struct perf_rule *rule,
		 struct perf_time *out);

/*
 * The median over the repeats of the mean time of an operation on this rank alone, where ranks differ. All
 * ranks run as many operations.
 */
int perf_measure_own(const struct perf_ops *ops, void *arg, const struct perf_rule *rule,
		     double *us);

/* Quantile q of n values; sorts them. */
double perf_quantile(double *v, size_t n, double q);

/*
 * Memory aligned to 64 bytes and written once, so that all pages are present; NULL if there is none. Vectors at
 * equal distances would share sets of caches and TLBs, so number the vectors of all ranks: each number begins
 * at another page and cache line, large vectors in a huge page if there are any. Never freed.
 */
void *perf_alloc(size_t bytes, unsigned int number);

#ifdef __cplusplus
}
#endif

#endif /* PERFLOOP_H */

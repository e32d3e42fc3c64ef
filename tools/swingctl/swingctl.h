/* SPDX-License-Identifier: GPL-2.0-only */
/* swingctl's commands. Each returns the exit status and has reported what is wrong. */
#ifndef SWINGCTL_H
#define SWINGCTL_H

#include <stdbool.h>
#include <stdint.h>

struct ctl {
	bool json;
	uint64_t need_memlock; /* doctor: bytes that a program will pin */
	const char *program;   /* doctor: an MPI program to look at, or NULL */
	uint64_t comm;	       /* trace: the communicator's number; 0: all */
	uint64_t last;	       /* trace: events of each */
	const char *perfetto;  /* trace: file to write, or NULL */
	bool job;	       /* status: of all nodes of a job */
	uint64_t watch_s; /* status of a job: again and again, so many seconds apart; 0: once */
};

/* 1 if something must be repaired before swingcoll works */
int ctl_doctor(const struct ctl *ctl);
int ctl_status(const struct ctl *ctl);
int ctl_job(const struct ctl *ctl);
int ctl_stats(const struct ctl *ctl);
int ctl_metrics(const struct ctl *ctl);
int ctl_info(const struct ctl *ctl);
int ctl_trace(const struct ctl *ctl);
/* Does not return if the program starts. argv[0] is the command. */
int ctl_mpi(int argc, char **argv);

#endif /* SWINGCTL_H */

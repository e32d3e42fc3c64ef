/* SPDX-License-Identifier: GPL-2.0-only */
/* swingctl doctor: what concerns MPI programs. */
#ifndef SWINGCTL_DOCTOR_MPI_H
#define SWINGCTL_DOCTOR_MPI_H

#include "swingctl/report.h"

/* The MPIs of this machine and their preload libraries, the environment, and a program, if it is not NULL. */
void doctor_check_mpi(struct report *r, const char *program);

#endif /* SWINGCTL_DOCTOR_MPI_H */

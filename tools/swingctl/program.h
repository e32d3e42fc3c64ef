/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs and the MPIs that they use, as far as files and the environment tell; nothing is run. */
#ifndef SWINGCTL_PROGRAM_H
#define SWINGCTL_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum mpi {
	OPENMPI,
	MPICH,
	NO_MPI,
};

/* By enum mpi: names that end with NULL, and libraries, whose numbers are those of the interfaces. */
extern const char *const mpi_names[];
extern const char *const mpi_libraries[];

struct program {
	char path[PATH_MAX]; /* of the program, or of its interpreter; "": there is none */
	enum mpi mpi;	     /* that it is linked with first */
	bool both;	     /* and the other one, too */
	int error;	     /* 0, or a negative errno: the file says nothing of its libraries */
};

void program_look(struct program *p, const char *name);

/* The file that execvp(3) would run. */
bool program_find(const char *name, char *path, size_t bytes);

/* The MPI whose launcher has started this process. */
enum mpi program_launcher(void);

/* The preload library for an MPI. */
bool program_find_preload(enum mpi mpi, char *path, size_t bytes);
/* What to do where there is none. */
void program_preload_advice(enum mpi mpi, char *text, size_t bytes);

#endif /* SWINGCTL_PROGRAM_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* The libraries that a program is linked with, as the dynamic linker would find them. */
#ifndef SWINGCTL_LIBRARIES_H
#define SWINGCTL_LIBRARIES_H

#include <stdbool.h>

/*
 * Call @seen with the name of each library that the file needs, and that those need, until it returns true.
 * Nothing is run. 0, or a negative errno: the file cannot be read, or is no ELF file of this machine's kind.
 */
int libraries_walk(const char *path, bool (*seen)(void *arg, const char *name), void *arg);

/* Is there a library that a program without a run path would find? */
bool libraries_find(const char *name);

#endif /* SWINGCTL_LIBRARIES_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* File descriptors of the library in a process that is the program's. */
#ifndef SWC_DESCRIPTORS_H
#define SWC_DESCRIPTORS_H

#include <stdbool.h>
#include <sys/resource.h>

/*
 * Move a new descriptor away from the numbers of standard input, output and error, which a program may
 * have closed: it, or the library, would print into a connection. Takes the result of the call that has
 * made it; -1 and errno if that has failed, or if there is no other number.
 */
int swc_descriptor_move(int fd);

/*
 * Let the process open so many files, or as many as its hard limit allows. True if that takes a higher limit
 * than the program's, which swc_descriptors_restore() sets back: after the last call that belongs to one of
 * these, unless the program has set another limit since. Threads may do this at the same time.
 */
bool swc_descriptors_allow(rlim_t need);
void swc_descriptors_restore(void);

#endif /* SWC_DESCRIPTORS_H */

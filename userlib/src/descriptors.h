/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* File descriptors of the library in a process that is the program's. */
#ifndef SWC_DESCRIPTORS_H
#define SWC_DESCRIPTORS_H

/*
 * Move a new descriptor away from the numbers of standard input, output and error, which a program may
 * have closed: it, or the library, would print into a connection. Takes the result of the call that has
 * made it; -1 and errno if that has failed, or if there is no other number.
 */
int swc_descriptor_move(int fd);

#endif /* SWC_DESCRIPTORS_H */

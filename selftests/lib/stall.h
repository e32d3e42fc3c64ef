/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest whose host gives it no processor stands still while its clock goes on, and then no time limit means anything. A
 * process that goes before all others measures that: how late it is when it has slept for a moment.
 */
#ifndef STALL_H
#define STALL_H

#include <stdint.h>

/* Begin, until this process ends. */
void stall_watch(void);
/* The longest time since the last call for which the machine stood still, in ms. */
uint64_t stall_longest(void);

#endif /* STALL_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads of the library, in the process of a program that need not know of them. */
#ifndef SWC_THREAD_H
#define SWC_THREAD_H

#include <pthread.h>

/* pthread_create() of one that gets no signals: those are for the program's own. 0 or a negative errno. */
int swc_thread_create(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif /* SWC_THREAD_H */

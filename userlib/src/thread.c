// SPDX-License-Identifier: LGPL-2.1-or-later
/* The start of the library's threads. A thread inherits the mask of signals: it is set around that. */
#include "src/thread.h"

#include <signal.h>

int swc_thread_create(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

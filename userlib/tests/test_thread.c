// SPDX-License-Identifier: GPL-2.0-only
/* The library's threads get no signals, and the caller's mask stays as it is. TAP on stdout. */
#include <signal.h>
#include <stdbool.h>

#include "src/thread.h"
#include "tap.h"

static void *look(void *arg)
{
	return pthread_sigmask(SIG_SETMASK, NULL, arg) ? arg : NULL;
}

int main(void)
{
	sigset_t there, here;
	bool all = true, same;
	pthread_t thread;
	void *failed;

	printf("TAP version 13\n");
	sigemptyset(&here);
	sigaddset(&here, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &here, NULL);
	ok(!swc_thread_create(&thread, look, &there) && !pthread_join(thread, &failed) && !failed,
	   "a thread runs");
	/* Two cannot be blocked, and of the real-time ones glibc keeps two for itself. */
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		all &= sig == SIGKILL || sig == SIGSTOP || (sig > 31 && sig < SIGRTMIN) ||
		       sigismember(&there, sig);
	ok(all, "it has all signals blocked");
	pthread_sigmask(SIG_SETMASK, NULL, &here);
	same = sigismember(&here, SIGUSR1) && !sigismember(&here, SIGUSR2) &&
	       !sigismember(&here, SIGINT);
	ok(same, "the caller has the mask that it had");
	return done();
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * File descriptors of the library; see descriptors.h. The limit of open files is the process's, and so is what
 * is known here of it, under a lock (a leaf).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "src/descriptors.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users; /* of the higher limit */
static rlim_t before, raised;

int swc_descriptor_move(int fd)
{
	int moved, error;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	error = errno;
	close(fd);
	errno = error;
	return moved;
}

bool swc_descriptors_allow(rlim_t need)
{
	struct rlimit l;
	bool higher = false;

	pthread_mutex_lock(&lock);
	if (!getrlimit(RLIMIT_NOFILE, &l)) {
		bool ours = users && l.rlim_cur == raised;

		if (need > l.rlim_max)
			need = l.rlim_max;
		if (l.rlim_cur < need) {
			before = ours ? before : l.rlim_cur;
			raised = l.rlim_cur = need;
			higher = !setrlimit(RLIMIT_NOFILE, &l);
		} else {
			/* The one that raised it may need it for less long. */
			higher = ours && before < need;
		}
		users += higher;
	}
	pthread_mutex_unlock(&lock);
	return higher;
}

void swc_descriptors_restore(void)
{
	struct rlimit l;

	pthread_mutex_lock(&lock);
	if (!--users && !getrlimit(RLIMIT_NOFILE, &l) && l.rlim_cur == raised) {
		l.rlim_cur = before;
		setrlimit(RLIMIT_NOFILE, &l);
	}
	pthread_mutex_unlock(&lock);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* File descriptors of the library; see descriptors.h. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "src/descriptors.h"

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

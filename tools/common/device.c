// SPDX-License-Identifier: GPL-2.0-only
/* Access to the module's device and to small files of the kernel. */
#include "common/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int device_open(void)
{
	int fd = open(SWC_DEVICE_PATH, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int device_open_or_explain(const char *prog)
{
	int fd = device_open();

	if (fd < 0)
		fprintf(stderr, "%s: %s: %s\n  next: swingctl doctor\n", prog, SWC_DEVICE_PATH,
			strerror(-fd));
	return fd;
}

int device_ioctl(int fd, unsigned long cmd, void *arg)
{
	int ret;

	do {
		ret = ioctl(fd, cmd, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

void device_ioctl_failed(const char *prog, const char *name, int error)
{
	fprintf(stderr, "%s: %s: %s%s\n", prog, name, strerror(-error),
		error == -ENOTTY ? "; the loaded module is older than this program: reload it"
				 : "");
}

int device_stats(int fd, uint64_t *values, uint32_t max)
{
	struct swc_stats stats = { .max = max, .values = (uintptr_t)values };
	int ret = device_ioctl(fd, SWC_IOC_STATS, &stats);

	return ret ? ret : (int)stats.count;
}

bool device_read_line(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (!f)
		return false;
	ok = fgets(text, (int)size, f);
	fclose(f);
	if (ok)
		text[strcspn(text, "\n")] = 0;
	return ok;
}

bool device_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return ok;
}

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel module as programs see it without the library: its device, its counters, and small files in
 * /sys and /proc.
 */
#ifndef TOOLS_DEVICE_H
#define TOOLS_DEVICE_H

#include <linux/swingcoll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_MODULE_DIR "/sys/module/swingcoll"

/* A file descriptor of SWC_DEVICE_PATH, or a negative errno. */
int device_open(void);
/* The same, with a message from @prog on standard error if it fails. */
int device_open_or_explain(const char *prog);

/* An ioctl, repeated if a signal interrupts it. 0 or a negative errno. */
int device_ioctl(int fd, unsigned long cmd, void *arg);
/* A message from @prog on standard error that the ioctl with this name has failed. */
void device_ioctl_failed(const char *prog, const char *name, int error);

/*
 * The module's counters, indexed by enum swc_stat. Return how many the module has,
 * which may exceed @max, or a negative errno.
 */
int device_stats(int fd, uint64_t *values, uint32_t max);

/* First line of a small file, without its newline. */
bool device_read_line(const char *path, char *text, size_t size);

/* Write to an existing file. Safe in a signal handler. */
bool device_write(const char *path, const char *text);

#endif /* TOOLS_DEVICE_H */

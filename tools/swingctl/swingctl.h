/* SPDX-License-Identifier: GPL-2.0-only */
/* swingctl's own parts. */
#ifndef SWINGCTL_H
#define SWINGCTL_H

#include <cjson/cJSON.h>
#include <linux/swingcoll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SWC_MODULE_DIR "/sys/module/swingcoll"

struct ctl {
	bool json;
	unsigned long long need_memlock; /* doctor: bytes wanted */
};

/* Subcommands: exit status 0, 1 (doctor: something must be done), 2 (error, reported). */
int ctl_doctor(const struct ctl *ctl);
int ctl_status(const struct ctl *ctl);
int ctl_stats(const struct ctl *ctl);
int ctl_info(const struct ctl *ctl);

/* The device, or a negative errno without a message. */
int ctl_open(void);
/* The same, with one. */
int ctl_open_or_say(void);

/* An ioctl: 0 or a negative errno. */
int ctl_ioctl(int fd, unsigned long cmd, void *arg);

/* First line of a small file without its newline; false if it cannot be read. */
bool ctl_read_line(const char *path, char *text, size_t size);

/* Print and free. */
void ctl_print_json(cJSON *o);

/* "1.5 GiB", "2.31 s": written to text, returned. */
const char *ctl_bytes(uint64_t bytes, char *text, size_t size);
const char *ctl_age(uint64_t ns, char *text, size_t size);

#endif /* SWINGCTL_H */

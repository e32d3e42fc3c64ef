/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_CHRDEV_H
#define SWC_CHRDEV_H

struct file;
struct io_uring_cmd;

int swc_chrdev_init(void);
void swc_chrdev_exit(void);

/* ioctl.c, uring_cmd.c: entry points for the file operations. */
long swc_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
int swc_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);

#endif /* SWC_CHRDEV_H */

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_CHRDEV_H
#define SWC_CHRDEV_H

int swc_chrdev_init(void);
void swc_chrdev_exit(void);

#endif /* SWC_CHRDEV_H */

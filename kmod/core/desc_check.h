/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
#ifndef SWC_CORE_DESC_CHECK_H
#define SWC_CORE_DESC_CHECK_H

#include <linux/swingcoll.h>

#include "types.h"

/**
 * swc_desc_check() - check all of a descriptor that can be checked without looking anything up
 * @d: the kernel's own copy
 * @nranks: of its communicator
 *
 * Return: 0; -EINVAL for unknown bits, values out of range, misaligned buffers or combinations that make no
 * sense; -EOPNOTSUPP for an operation that the type does not have.
 */
int swc_desc_check(const struct swc_desc *d, u32 nranks);

/**
 * swc_partitioned_check() - the same for a partitioned operation: its descriptor, and that of all partitions
 *
 * Return: as swc_desc_check(); -EINVAL also for a number of partitions out of range, and for strides that
 * leave the address space.
 */
int swc_partitioned_check(const struct swc_partitioned_init *init, u32 nranks);

#endif /* SWC_CORE_DESC_CHECK_H */

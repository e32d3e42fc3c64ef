/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Types and helpers that kmod/core needs, in the kernel and in user space.
 *
 * Everything under kmod/core is pure: no allocation, no I/O, no globals that change after start-up, no
 * arithmetic on plain char. It is compiled unchanged into the module, libswingcoll and the unit tests, so
 * that they agree to the bit on block sizes, verdicts and sums.
 */
#ifndef SWC_CORE_TYPES_H
#define SWC_CORE_TYPES_H

#ifdef __KERNEL__

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/overflow.h>
#include <linux/string.h>
#include <linux/types.h>

#else

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define check_add_overflow(a, b, d) __builtin_add_overflow(a, b, d)
#define check_mul_overflow(a, b, d) __builtin_mul_overflow(a, b, d)
#define le16_to_cpu(v) le16toh(v)
#define le32_to_cpu(v) le32toh(v)
#define le64_to_cpu(v) le64toh(v)
#define cpu_to_le16(v) htole16(v)
#define cpu_to_le32(v) htole32(v)
#define cpu_to_le64(v) htole64(v)

static inline u64 div64_u64_rem(u64 dividend, u64 divisor, u64 *remainder)
{
	*remainder = dividend % divisor;
	return dividend / divisor;
}

#endif /* __KERNEL__ */

#endif /* SWC_CORE_TYPES_H */

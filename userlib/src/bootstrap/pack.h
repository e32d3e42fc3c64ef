/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Data without its zeros: records of fixed size are mostly empty. Packed, they are a bit for each word
 * of 8 bytes, the first in bit 0, and then the words that are not zero. What is behind the last whole
 * word counts as one that ends with zeros.
 */
#ifndef SWC_BOOTSTRAP_PACK_H
#define SWC_BOOTSTRAP_PACK_H

#include <stddef.h>

/* The most bytes that so many take. */
size_t swc_pack_bound(size_t bytes);
/* Pack so many bytes into memory of swc_pack_bound(); returns the bytes there. */
size_t swc_pack(void *to, const void *from, size_t bytes);
/* Unpack @packed bytes to @bytes of them; -EPROTO if these are not what swc_pack() makes of so many. */
int swc_unpack(void *to, size_t bytes, const void *from, size_t packed);

#endif /* SWC_BOOTSTRAP_PACK_H */

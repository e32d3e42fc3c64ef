/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records without what each has in common with the one before it: those of a node's ranks are mostly alike, and
 * mostly empty. Packed, they are a bit for each word of 8 bytes of all records, the first in bit 0, and then
 * the words that are not zero, each after an exclusive or with what lies a record before it; the first record
 * is as it is, and so are records of less than a word. What is behind the last whole word counts as one that
 * ends with zeros.
 */
#ifndef SWC_BOOTSTRAP_PACK_H
#define SWC_BOOTSTRAP_PACK_H

#include <stddef.h>

/* The most bytes that so many take. */
size_t swc_pack_bound(size_t bytes);
/*
 * Pack @bytes of records of @record bytes each, the last of which need not be whole, into memory of swc_pack_bound().
 * Returns the bytes there.
 */
size_t swc_pack(void *to, const void *from, size_t bytes, size_t record);
/* Unpack @packed bytes to @bytes of records; -EPROTO if these are not what swc_pack() makes of so many. */
int swc_unpack(void *to, size_t bytes, size_t record, const void *from, size_t packed);

#endif /* SWC_BOOTSTRAP_PACK_H */

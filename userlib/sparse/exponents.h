/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A lossless code of bf16 values that are dense, but of like magnitude: of eight bits of exponent, four
 * are kept. Its length follows from the number of values alone, so that a collective can move it. Pure.
 */
#ifndef SWC_SPARSE_EXPONENTS_H
#define SWC_SPARSE_EXPONENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Values in one code at most: places of escapes have 32 bits. */
#define SWC_EXPONENTS_MOST UINT32_MAX

/* Bytes of the code of so many values, a multiple of 8. */
uint64_t swc_exponents_bytes(uint64_t count);
/* Returns whether the code holds the values. If too many are out of range, it only says that it does not. */
bool swc_exponents_encode(const uint16_t *v, uint64_t count, void *code);
/* Make a code that says that it holds nothing. */
void swc_exponents_none(void *code);
/* Does a code hold its values? */
bool swc_exponents_held(const void *code);
/* 0, or -EPROTO if the code is none of so many values. Any bytes are safe to decode. */
int swc_exponents_decode(const void *code, uint64_t count, uint16_t *v);

#endif /* SWC_SPARSE_EXPONENTS_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* What the training examples share. */
#ifndef TRAINER_H
#define TRAINER_H

#include <stddef.h>
#include <stdint.h>

/* The value of an option, from min to max; otherwise the program prog ends with a message. */
int trainer_number(const char *prog, const char *option, const char *value, int min, int max);

/* FNV-1a over the bytes of n weights. */
uint64_t trainer_hash(const float *w, size_t n);

#endif /* TRAINER_H */

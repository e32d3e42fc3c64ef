/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * BLAKE2s, as RFC 7693 defines it: the hash and MAC that the kernel module uses between nodes. It is
 * not libb2's, because Debian's libb2 brings the runtime of OpenMP into every process that loads it,
 * and programs that run collectives choose that themselves. No access to memory depends on data, so
 * its time does not tell anything of the key.
 */
#ifndef SWC_BLAKE2S_H
#define SWC_BLAKE2S_H

#include <stddef.h>
#include <stdint.h>

#define SWC_BLAKE2S_MAX 32 /* bytes of a hash and of a key, at most */

/**
 * struct swc_blake2s - a hash being computed
 * @h: chain value
 * @bytes: hashed so far
 * @block, @have: input that is not hashed yet
 * @out_bytes: size of the hash
 */
struct swc_blake2s {
	uint32_t h[8];
	uint64_t bytes;
	uint8_t block[64];
	size_t have;
	size_t out_bytes;
};

/* @key_bytes 0: a hash without a key. */
void swc_blake2s_init(struct swc_blake2s *s, size_t out_bytes, const void *key, size_t key_bytes);
void swc_blake2s_update(struct swc_blake2s *s, const void *data, size_t bytes);
/* Clears @s, which may have the key. */
void swc_blake2s_final(struct swc_blake2s *s, uint8_t *out);

#endif /* SWC_BLAKE2S_H */

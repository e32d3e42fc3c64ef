// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Scan, pack and unpack with NEON. Elements of two, four and eight bytes are packed and unpacked a vector
 * of 16 bytes at a time, by a permutation of its bytes that a table holds for each pattern of bits. Those
 * of one byte are packed one by one.
 */
#ifdef __aarch64__

#include <arm_neon.h>

#include "sparse/codec_few.h"

#define NONE 0xff /* a byte that becomes 0 */

/* For each pattern of lanes: the bytes of the set lanes in order; and for each lane the bytes of its rank. */
struct tables {
	uint8_t gather[256][16], spread[256][16];
};
static struct tables tables_of[4]; /* by the logarithm of the size */

static __attribute__((constructor)) void make_tables(void)
{
	for (unsigned int shift = 1; shift < 4; shift++)
		for (unsigned int m = 0; m < 1u << (16 >> shift); m++) {
			struct tables *t = &tables_of[shift];
			unsigned int size = 1u << shift, n = 0;

			memset(t->gather[m], NONE, 16);
			memset(t->spread[m], NONE, 16);
			for (unsigned int lane = 0; lane < 16u >> shift; lane++) {
				if (!(m >> lane & 1))
					continue;
				for (unsigned int b = 0; b < size; b++) {
					t->gather[m][n * size + b] = (uint8_t)(lane * size + b);
					t->spread[m][lane * size + b] = (uint8_t)(n * size + b);
				}
				n++;
			}
		}
}

/* A byte of all ones for each of 16 elements that is not zero. */
static inline __attribute__((always_inline)) uint8x16_t set_bytes(const uint8_t *v,
								  unsigned int size)
{
	uint16x8_t half[2];

	if (size == 1) {
		uint8x16_t x = vld1q_u8(v);

		return vtstq_u8(x, x);
	}
	for (unsigned int i = 0; i < 2; i++) {
		const uint8_t *p = v + i * 8 * size;

		if (size == 2) {
			uint16x8_t x = vreinterpretq_u16_u8(vld1q_u8(p));

			half[i] = vtstq_u16(x, x);
		} else if (size == 4) {
			uint32x4_t x = vreinterpretq_u32_u8(vld1q_u8(p));
			uint32x4_t y = vreinterpretq_u32_u8(vld1q_u8(p + 16));

			half[i] = vcombine_u16(vmovn_u32(vtstq_u32(x, x)),
					       vmovn_u32(vtstq_u32(y, y)));
		} else {
			uint32x2_t quarter[4];

			for (unsigned int k = 0; k < 4; k++) {
				uint64x2_t x = vreinterpretq_u64_u8(vld1q_u8(p + 16 * k));

				quarter[k] = vmovn_u64(vtstq_u64(x, x));
			}
			half[i] = vcombine_u16(vmovn_u32(vcombine_u32(quarter[0], quarter[1])),
					       vmovn_u32(vcombine_u32(quarter[2], quarter[3])));
		}
	}
	return vcombine_u8(vmovn_u16(half[0]), vmovn_u16(half[1]));
}

/* The bits of 64 elements: each byte keeps the bit of its place, and neighbours are added up three times. */
static inline __attribute__((always_inline)) uint64_t word_of(const uint8_t *v, unsigned int size)
{
	const uint8x16_t place = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
	uint8x16_t x[4];

	for (unsigned int i = 0; i < 4; i++)
		x[i] = vandq_u8(set_bytes(v + 16 * i * size, size), place);
	x[0] = vpaddq_u8(vpaddq_u8(x[0], x[1]), vpaddq_u8(x[2], x[3]));
	x[0] = vpaddq_u8(x[0], x[0]);
	return vgetq_lane_u64(vreinterpretq_u64_u8(x[0]), 0);
}

static inline __attribute__((always_inline)) void scan_size(const uint8_t *v, uint64_t words,
							    unsigned int size, uint64_t *index)
{
	for (uint64_t w = 0; w < words; w++)
		index[w] = word_of(v + w * 64 * size, size);
}

/* @shift: logarithm of the size of an element. Constant, as are those below. */
static inline __attribute__((always_inline)) char *pack_word(const char *v, uint64_t bits,
							     unsigned int shift, char *to)
{
	unsigned int lanes = 16 >> shift;

	for (; bits; bits >>= lanes, v += 16) {
		unsigned int m = (unsigned int)bits & ((1u << lanes) - 1);
		uint8x16_t x = vld1q_u8((const uint8_t *)v);

		vst1q_u8((uint8_t *)to, vqtbl1q_u8(x, vld1q_u8(tables_of[shift].gather[m])));
		to += (unsigned int)__builtin_popcount(m) << shift;
	}
	return to;
}

static inline __attribute__((always_inline)) char *
pack_shift(const char *v, const uint64_t *index, uint64_t words, unsigned int shift, char *to)
{
	for (uint64_t w = 0; w < words; w += FEW_RUN) {
		uint64_t n = words - w < FEW_RUN ? words - w : FEW_RUN;

		/* One by one if a byte is an element: in the same way. */
		if (!shift || is_few(index + w, n)) {
			to = pack_few(v + (w * 64 << shift), index + w, n, 1u << shift, to);
			continue;
		}
		for (uint64_t k = w; k < w + n; k++)
			to = pack_word(v + (k * 64 << shift), index[k], shift, to);
	}
	return to;
}

static inline __attribute__((always_inline)) const char *
unpack_shift(const uint64_t *index, uint64_t words, unsigned int shift, const char *from, char *v)
{
	unsigned int lanes = 16 >> shift;

	for (uint64_t w = 0; w < words; w++) {
		uint64_t bits = index[w];

		for (unsigned int k = 0; k < 4u << shift; k++, bits >>= lanes, v += 16) {
			unsigned int m = (unsigned int)bits & ((1u << lanes) - 1);
			uint8x16_t x = vld1q_u8((const uint8_t *)from);

			vst1q_u8((uint8_t *)v, vqtbl1q_u8(x, vld1q_u8(tables_of[shift].spread[m])));
			from += (unsigned int)__builtin_popcount(m) << shift;
		}
	}
	return from;
}

/* ---- by size ---- */

static void scan(const void *v, uint64_t count, unsigned int size, uint64_t *index)
{
	uint64_t words = count / 64;

	if (size == 1)
		scan_size(v, words, 1, index);
	else if (size == 2)
		scan_size(v, words, 2, index);
	else if (size == 4)
		scan_size(v, words, 4, index);
	else
		scan_size(v, words, 8, index);
	swc_sparse_scalar.scan((const char *)v + words * 64 * size, count % 64, size,
			       index + words);
}

static void pack(const void *v, const uint64_t *index, uint64_t count, unsigned int size,
		 void *packed)
{
	uint64_t words = count / 64;

	packed = size == 1   ? pack_shift(v, index, words, 0, packed)
		 : size == 2 ? pack_shift(v, index, words, 1, packed)
		 : size == 4 ? pack_shift(v, index, words, 2, packed)
			     : pack_shift(v, index, words, 3, packed);
	swc_sparse_scalar.pack((const char *)v + words * 64 * size, index + words, count % 64, size,
			       packed);
}

static void unpack(const uint64_t *index, uint64_t count, unsigned int size, const void *packed,
		   void *v)
{
	uint64_t words = size == 1 ? 0 : count / 64;

	packed = size <= 2   ? unpack_shift(index, words, 1, packed, v)
		 : size == 4 ? unpack_shift(index, words, 2, packed, v)
			     : unpack_shift(index, words, 3, packed, v);
	swc_sparse_scalar.unpack(index + words, count - words * 64, size, packed,
				 (char *)v + words * 64 * size);
}

static bool valid(void)
{
	return true;
}

const struct swc_sparse_codec swc_sparse_neon = {
	.name = "neon",
	.valid = valid,
	.scan = scan,
	.pack = pack,
	.unpack = unpack,
};
#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel rounds to nearest even and keeps subnormals, whatever the processes have set for themselves: sums of
 * floats have the same bits in all modes.
 */
#include <errno.h>
#include <string.h>

#include "testlib.h"

#define NRANKS 2
#define COUNT 5003
#define BYTES (COUNT * sizeof(double))

static uint8_t id[SWC_ID_BYTES];

struct mode {
	const char *name;
	uint64_t bits;
};

#if defined(__x86_64__)
#include <xmmintrin.h>

static const struct mode modes[] = {
	{ "down", 1 << 13 },
	{ "up", 2 << 13 },
	{ "toward zero", 3 << 13 },
	{ "no subnormals", 1 << 15 | 1 << 6 },
};

static void set_bits(uint64_t bits)
{
	_mm_setcsr((_mm_getcsr() & ~(3u << 13 | 1u << 15 | 1u << 6)) | bits);
}
#elif defined(__aarch64__)
static const struct mode modes[] = {
	{ "down", 2 << 22 },
	{ "up", 1 << 22 },
	{ "toward zero", 3 << 22 },
	{ "no subnormals", 1 << 24 },
};

static void set_bits(uint64_t bits)
{
	asm volatile("msr fpcr, %0" : : "r"(bits) : "memory");
}
#else
#error "how does this architecture set how it rounds?"
#endif

static const struct {
	const char *name;
	int dtype, mantissa, exponent; /* bits of them */
} types[] = {
	{ "f16", SWC_F16, 10, 5 },
	{ "bf16", SWC_BF16, 7, 8 },
	{ "f32", SWC_F32, 23, 8 },
	{ "f64", SWC_F64, 52, 11 },
};

/* Element i of a rank: in turn a subnormal, and a number of any sign between 1 and 16. */
static uint64_t element(int type, uint32_t rank, uint32_t i)
{
	uint64_t x = (rank * COUNT + i + 1) * 0x9e3779b97f4a7c15ull, exponent = 0;
	int mantissa = types[type].mantissa, bits = types[type].exponent;

	x ^= x >> 29;
	if (i & 1)
		exponent = (1ull << (bits - 1)) - 1 + (x >> 62);
	return (x >> 61 & 1) << (mantissa + bits) | exponent << mantissa |
	       (x & ((1ull << mantissa) - 1));
}

static void fill(int type, uint32_t rank, void *mem)
{
	for (uint32_t i = 0; i < COUNT; i++) {
		uint64_t x = element(type, rank, i);

		switch (types[type].dtype) {
		case SWC_F32:
			((uint32_t *)mem)[i] = x;
			break;
		case SWC_F64:
			((uint64_t *)mem)[i] = x;
			break;
		default:
			((uint16_t *)mem)[i] = x;
		}
	}
}

/* Does this process sum doubles to other bits in the mode? Otherwise, the test could not fail. */
static bool matters(const struct mode *mode)
{
	static double a[COUNT], b[COUNT];
	volatile double plain, other;
	uint32_t differ = 0;

	fill(3, 0, a);
	fill(3, 1, b);
	for (uint32_t i = 0; i < COUNT; i++) {
		volatile double x = a[i], y = b[i];

		plain = x + y;
		set_bits(mode->bits);
		other = x + y;
		set_bits(0);
		differ += memcmp((const void *)&plain, (const void *)&other, sizeof(plain)) != 0;
	}
	return differ;
}

static int sums(uint32_t rank, void *arg)
{
	const struct mode *mode = arg;
	static char send[BYTES], want[BYTES], got[BYTES];
	struct testlib_rank r;
	struct swc_desc d;

	CHECK_EQ(testlib_rank_open(&r, id, NRANKS, rank, TESTLIB_EVENT_MS), 0);
	for (int type = 0; type < (int)ARRAY_SIZE(types); type++) {
		fill(type, rank, send);
		for (int set = 0; set < 2; set++) {
			d = testlib_allreduce_desc(&r, send, set ? got : want, COUNT,
						   types[type].dtype);
			d.flags |= SWC_OP_WAITING;
			set_bits(set ? mode->bits : 0);
			CHECK_EQ(testlib_submit_wait(&r.c, &d, NULL), 0);
			set_bits(0);
		}
		if (memcmp(want, got, BYTES)) {
			ksft_print_msg("%s: other bits\n", types[type].name);
			return 1;
		}
	}
	testlib_rank_close(&r);
	return 0;
}

int main(void)
{
	ksft_print_header();
	testlib_require_device();
	ksft_set_plan(ARRAY_SIZE(modes));
	for (unsigned int i = 0; i < ARRAY_SIZE(modes); i++) {
		struct mode mode = modes[i];

		testlib_new_id(id);
		ksft_test_result(matters(&mode) && !testlib_run_ranks(NRANKS, sums, &mode),
				 "processes that round: %s", mode.name);
	}
	ksft_finished();
}

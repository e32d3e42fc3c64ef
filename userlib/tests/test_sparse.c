// SPDX-License-Identifier: GPL-2.0-only
/*
 * The codec of sparse vectors without a device: every implementation against the scalar one and
 * against plain sums, by golden hashes and by a reference in Python for other seeds; peeling; indices
 * that were damaged, whose memory ends where it must. TAP on stdout.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "random.h"
#include "sparse/codec.h"
#include "tap.h"
#include "tools/common/hash.h"
#include "tools/common/sparse_input.h"

struct golden {
	unsigned int nranks;
	uint64_t count;
	struct sparse_input in;
	bool is_float;
	uint64_t set; /* size of the union */
	uint64_t hash;
};

static const struct golden golden[] = {
	{ 4, 65536, { 1, 0.05, SPARSE_INDEPENDENT, 0, 0 }, false, 12242, 0xc4683b7fd28f453d },
	{ 3, 10007, { 9, 0.2, SPARSE_MIXED, 0, 0.5 }, false, 3650, 0xcc78951688688b4d },
	{ 5, 40000, { 2, 0.1, SPARSE_ROWS, 16, 0 }, true, 16112, 0x5141254bc36b45d9 },
	{ 2, 1000, { 1, 0.3, SPARSE_IDENTICAL, 0, 0 }, false, 318, 0xb6c327de197027d6 },
	{ 4, 20000, { 3, 0.2, SPARSE_DISJOINT, 0, 0 }, true, 16014, 0x1f6f9e6ca371b63d },
};

enum mode {
	PACK,
	ROWS,
	SKETCH
};

static uint32_t value(const struct golden *g, unsigned int rank, uint64_t i)
{
	uint32_t bits = 0;
	float f;

	if (!sparse_is_set(&g->in, rank, i))
		return 0;
	if (!g->is_float)
		return sparse_int(&g->in, rank, i);
	f = sparse_float(&g->in, rank, i);
	memcpy(&bits, &f, 4);
	return bits;
}

static void add(const struct golden *g, uint32_t *to, const uint32_t *from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		float a, b;

		if (!g->is_float) {
			to[i] += from[i];
			continue;
		}
		memcpy(&a, to + i, 4);
		memcpy(&b, from + i, 4);
		a += b;
		memcpy(to + i, &a, 4);
	}
}

static uint64_t scan(const struct golden *g, const struct swc_sparse_codec *c, enum mode mode,
		     const uint32_t *v, uint64_t *index)
{
	if (mode != ROWS) {
		c->scan(v, g->count, 4, index);
		return g->count;
	}
	swc_sparse_rows_scan(v, g->count, 4, g->in.width, index);
	return swc_sparse_rows(g->count, g->in.width);
}

/* The allreduce of all ranks in one process, by two passes as over the network. The union's size. */
static uint64_t reduce(const struct golden *g, const struct swc_sparse_codec *c, enum mode mode,
		       uint32_t *out)
{
	uint64_t n = g->count, words = swc_sparse_words(n), nbits = 0, bits = 0, values;
	uint32_t *v = malloc(n * 4), *part = calloc(1, n * 8 + 4096),
		 *sum = calloc(1, n * 8 + 4096);
	uint64_t *all = calloc(words, 8), *index = calloc(words, 8);
	void *scratch;

	for (unsigned int r = 0; r < g->nranks; r++) {
		for (uint64_t i = 0; i < n; i++)
			v[i] = value(g, r, i);
		nbits = scan(g, c, mode, v, index);
		for (uint64_t w = 0; w < swc_sparse_words(nbits); w++)
			all[w] |= index[w];
	}
	if (swc_sparse_count(all, nbits, &bits))
		bits = 0;
	values = mode == SKETCH ? swc_sparse_cells(bits)
		 : mode == ROWS ? swc_sparse_rows_values(all, n, g->in.width, bits)
				: bits;
	for (unsigned int r = 0; r < g->nranks; r++) {
		for (uint64_t i = 0; i < n; i++)
			v[i] = value(g, r, i);
		if (mode == SKETCH) {
			memset(part, 0, values * 4);
			c->scan(v, n, 4, index);
			swc_sparse_sketch(v, index, n, 4, values, part);
		} else if (mode == ROWS) {
			swc_sparse_rows_pack(v, all, n, 4, g->in.width, part);
		} else {
			c->pack(v, all, n, 4, part);
		}
		add(g, sum, part, values);
	}
	memset(out, mode == SKETCH ? 0 : 0xa5, n * 4);
	if (mode == SKETCH) {
		scratch = malloc(swc_sparse_peel_bytes(values));
		if (swc_sparse_peel(all, n, 4, values, sum, scratch, out))
			bits = 0;
		for (uint64_t w = 0; w < words; w++)
			if (all[w])
				printf("# left after peeling: %016llx\n",
				       (unsigned long long)all[w]);
		free(scratch);
	} else if (mode == ROWS) {
		bits = swc_sparse_rows_unpack(all, n, 4, g->in.width, sum, values, out) ? 0
											: values;
	} else if (swc_sparse_unpack(c, all, n, 4, sum, values, out)) {
		bits = 0;
	}
	free(v);
	free(part);
	free(sum);
	free(all);
	free(index);
	return bits;
}

static void check(const struct golden *g, const struct swc_sparse_codec *c, enum mode mode)
{
	static const char *const mode_name[] = { "pack", "pack-rows", "sketch" };
	uint32_t *out = malloc(g->count * 4);
	uint64_t set = reduce(g, c, mode, out);
	char name[120];

	snprintf(name, sizeof(name), "%s, %s: %u ranks, %llu elements, seed %llu", c->name,
		 mode_name[mode], g->nranks, (unsigned long long)g->count,
		 (unsigned long long)g->in.seed);
	ok(set == g->set && hash_bytes(out, g->count * 4) == g->hash, name);
	free(out);
}

static void check_all(const struct golden *g)
{
	for (int i = 0; swc_sparse_codecs[i]; i++) {
		const struct swc_sparse_codec *c = swc_sparse_codecs[i];

		if (!c->valid()) {
			printf("ok %d - # SKIP %s: not on this machine\n", ++tap_tests, c->name);
			continue;
		}
		check(g, c, PACK);
		if (g->in.overlap == SPARSE_ROWS)
			check(g, c, ROWS);
		if (!g->is_float)
			check(g, c, SKETCH);
	}
}

/* Other seeds, against the reference in Python. */
static void test_reference(void)
{
	static const char *const names[] = { "independent", "identical", "disjoint", "rows:%llu",
					     "mixed:0.25" };
	const char *script = "tests/sparse_reference.py";

	if (system("python3 -c 1") || access(script, R_OK)) {
		printf("ok %d - # SKIP no python3, or not run in userlib\n", ++tap_tests);
		return;
	}
	for (int i = 0; i < 10; i++) {
		struct golden g = { .nranks = 2 + rnd(8), .count = 1 + rnd(3000) };
		char overlap[40], cmd[200], hash[20] = "";
		unsigned long long set = 0;
		FILE *f;

		g.is_float = i & 1;
		g.in = (struct sparse_input){ .seed = rnd(1u << 30),
					      .density = (1 + rnd(99)) / 128.,
					      .overlap = (enum sparse_overlap)(i / 2),
					      .width = 1 + rnd(40),
					      .share = 0.25 };
		snprintf(overlap, sizeof(overlap), names[i / 2], (unsigned long long)g.in.width);
		snprintf(cmd, sizeof(cmd), "python3 %s %u %llu %.17g %s %s %llu", script, g.nranks,
			 (unsigned long long)g.count, g.in.density, overlap,
			 g.is_float ? "f32" : "i32", (unsigned long long)g.in.seed);
		f = popen(cmd, "r");
		ok(f && fscanf(f, "%llu %19s", &set, hash) == 2, cmd);
		if (f)
			pclose(f);
		g.set = set;
		g.hash = strtoull(hash, NULL, 16);
		for (int k = 0; swc_sparse_codecs[k]; k++)
			if (swc_sparse_codecs[k]->valid()) {
				check(&g, swc_sparse_codecs[k], PACK);
				if (g.in.overlap == SPARSE_ROWS)
					check(&g, swc_sparse_codecs[k], ROWS);
			}
	}
}

/*
 * Every size, density and length around the boundaries of words: packed as by the definition, and
 * unpacked to the same bytes. Buffers have no byte more than the interface says.
 */
static void test_sizes(const struct swc_sparse_codec *c)
{
	bool good = true;

	for (unsigned int size = 1; size <= 8; size *= 2)
		for (uint64_t count = 0; count < 300; count += 1 + rnd(7))
			for (uint32_t zeros = 0; zeros <= 100; zeros += 10) {
				uint64_t words = swc_sparse_words(count), bits = 0, n = 0;
				unsigned char *v = malloc(count * size),
					      *back = malloc(count * size);
				uint64_t *index = malloc(words * 8);
				unsigned char *packed;

				for (uint64_t i = 0; i < count; i++) {
					bool zero = rnd(100) < zeros;

					memset(v + i * size, 0, size);
					/* A single bit, anywhere: the sign of -0.0 too. */
					if (!zero)
						v[i * size + rnd(size)] =
							(unsigned char)(1u << rnd(8));
					n += !zero;
				}
				c->scan(v, count, size, index);
				good &= !swc_sparse_count(index, count, &bits) && bits == n;
				packed = malloc(n * size + SWC_SPARSE_SLACK);
				c->pack(v, index, count, size, packed);
				for (uint64_t i = 0, k = 0; i < count; i++)
					if (index[i / 64] >> i % 64 & 1)
						good &= !memcmp(packed + k++ * size, v + i * size,
								size);
				good &= !swc_sparse_unpack(c, index, count, size, packed, n,
							   back) &&
					!memcmp(back, v, count * size);
				free(v);
				free(back);
				free(index);
				free(packed);
			}
	ok(good, c->name);
}

/*
 * Long vectors, whose parts are empty, sparse, dense and full in turns, so that an implementation takes
 * each of its ways: the bytes of the scalar one.
 */
static void test_against_scalar(const struct swc_sparse_codec *c)
{
	static const uint32_t per_mille[] = { 0, 2, 20, 100, 500, 1000 };
	const struct swc_sparse_codec *judge = &swc_sparse_scalar;
	bool good = true;
	char name[80];

	for (int i = 0; i < 40; i++) {
		unsigned int size = 1u << i % 4;
		uint64_t count = 50000 + rnd(40000), bytes = count * size;
		uint64_t words = swc_sparse_words(count), n = 0;
		uint64_t *index = malloc(words * 8), *want = malloc(words * 8);
		unsigned char *v = calloc(count, size), *back = malloc(bytes), *packed[2];
		uint32_t density = 0;

		for (uint64_t k = 0; k < count; k++) {
			if (!rnd(16000) || !k)
				density = per_mille[rnd(6)];
			if (rnd(1000) < density)
				v[k * size + rnd(size)] = (unsigned char)(1 + rnd(255));
		}
		judge->scan(v, count, size, want);
		c->scan(v, count, size, index);
		good &= !memcmp(index, want, words * 8);
		/* The index of a union names zeros, too. */
		for (unsigned int k = rnd(1000); k; k--) {
			uint64_t at = rnd((uint32_t)count);

			index[at / 64] |= 1ull << at % 64;
		}
		good &= !swc_sparse_count(index, count, &n);
		for (int k = 0; k < 2; k++)
			packed[k] = malloc(n * size + SWC_SPARSE_SLACK);
		judge->pack(v, index, count, size, packed[0]);
		c->pack(v, index, count, size, packed[1]);
		good &= !memcmp(packed[0], packed[1], n * size);
		memset(back, 0x5a, bytes);
		c->unpack(index, count, size, packed[1], back);
		good &= !memcmp(back, v, bytes);
		free(index);
		free(want);
		free(v);
		free(back);
		free(packed[0]);
		free(packed[1]);
	}
	snprintf(name, sizeof(name), "%s: the bytes of the scalar code", c->name);
	ok(good, name);
}

/* A damaged index is refused, or names other elements; memory errors show under ASan. */
static void test_damage(void)
{
	unsigned int refused = 0, wrong = 0, rounds = 3000;

	for (unsigned int i = 0; i < rounds; i++) {
		uint64_t count = 1 + rnd(500), words = swc_sparse_words(count), n, bits, again;
		const struct swc_sparse_codec *c = swc_sparse_codec_best();
		unsigned int size = 1u << rnd(4);
		uint64_t cells = swc_sparse_cells(rnd((uint32_t)count + 1));
		uint64_t *index = malloc(words * 8);
		void *v = malloc(count * size), *packed, *scratch;
		int ret;

		for (uint64_t k = 0; k < count * size; k++)
			((unsigned char *)v)[k] = (unsigned char)(rnd(2) * rnd(256));
		c->scan(v, count, size, index);
		if (swc_sparse_count(index, count, &n))
			n = 0;
		packed = malloc((n > cells ? n : cells) * size + SWC_SPARSE_SLACK);
		c->pack(v, index, count, size, packed);
		for (unsigned int k = rnd(4); k; k--)
			index[rnd((uint32_t)words)] ^= 1ull << rnd(64);
		ret = swc_sparse_unpack(c, index, count, size, packed, n, v);
		refused += ret == -EPROTO;
		wrong += ret && ret != -EPROTO;
		memset(packed, 0x5a, cells * size);
		scratch = malloc(swc_sparse_peel_bytes(cells));
		if (!swc_sparse_count(index, count, &bits)) {
			wrong += swc_sparse_peel(index, count, size, cells, packed, scratch, v) !=
				 0;
			wrong += swc_sparse_count(index, count, &again) || again > bits;
		} else {
			wrong += swc_sparse_peel(index, count, size, cells, packed, scratch, v) !=
				 -EPROTO;
		}
		free(index);
		free(v);
		free(packed);
		free(scratch);
	}
	ok(!wrong && refused > rounds / 4, "damaged indices are refused, or peeled within bounds");
}

/* The same of rows, the last of which may be shorter. The memory of the values ends with them. */
static void test_damaged_rows(void)
{
	unsigned int refused = 0, wrong = 0, rounds = 3000;

	for (unsigned int i = 0; i < rounds; i++) {
		uint64_t count = 1 + rnd(2000), width = 1 + rnd(40), n = 0, bits = 0;
		uint64_t rows = swc_sparse_rows(count, width), words = swc_sparse_words(rows);
		unsigned int size = 1u << rnd(4), flips = rnd(4);
		uint64_t *index = malloc(words * 8);
		char *v = malloc(count * size), *packed;
		int ret;

		for (uint64_t k = 0; k < count * size; k++)
			v[k] = (char)(rnd(40) ? 0 : rnd(256));
		swc_sparse_rows_scan(v, count, size, width, index);
		if (swc_sparse_count(index, rows, &bits))
			wrong++;
		n = swc_sparse_rows_values(index, count, width, bits);
		packed = malloc(n * size);
		swc_sparse_rows_pack(v, index, count, size, width, packed);
		for (unsigned int k = flips; k; k--)
			index[rnd((uint32_t)words)] ^= 1ull << rnd(64);
		ret = swc_sparse_rows_unpack(index, count, size, width, packed, n, v);
		refused += ret == -EPROTO;
		wrong += ret && (ret != -EPROTO || !flips);
		free(index);
		free(v);
		free(packed);
	}
	ok(!wrong && refused > rounds / 4, "damaged indices of rows are refused");
}

/* Sums of three ranks come out of the table, and leftovers are the same set wherever they are peeled. */
static void test_peel(void)
{
	unsigned int incomplete = 0, wrong = 0;

	for (int i = 0; i < 200; i++) {
		uint64_t count = 1000 + rnd(20000), words = swc_sparse_words(count), bits;
		uint64_t *v = calloc(count, 8), *index = calloc(words, 8), *out = calloc(count, 8);
		uint64_t cells, *cell;
		void *scratch;

		for (uint64_t k = 0; k < count; k++)
			if (!rnd(8))
				v[k] = (uint64_t)rnd(1u << 30) << 34 | rnd(1u << 30) << 1 | 1;
		swc_sparse_codec_best()->scan(v, count, 8, index);
		if (swc_sparse_count(index, count, &bits))
			wrong++;
		/* Every other time far too small. */
		cells = swc_sparse_cells(i & 1 ? bits / 3 : bits);
		cell = calloc(cells, 8);
		for (int r = 0; r < 3; r++)
			swc_sparse_sketch(v, index, count, 8, cells, cell);
		scratch = malloc(swc_sparse_peel_bytes(cells));
		wrong += swc_sparse_peel(index, count, 8, cells, cell, scratch, out) != 0;
		for (uint64_t k = 0; k < count; k++)
			wrong += out[k] != (index[k / 64] >> k % 64 & 1 ? 0 : 3 * v[k]);
		if (swc_sparse_count(index, count, &bits))
			wrong++;
		incomplete += !(i & 1) && bits;
		wrong += i & 1 && !bits;
		free(v);
		free(index);
		free(out);
		free(cell);
		free(scratch);
	}
	printf("# %u of 100 tables of the right size left something\n", incomplete);
	ok(!wrong, "what is peeled is right, what is left is named");
	ok(incomplete < 20, "tables of the right size are mostly peeled completely");
}

static void *reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/*
 * More than 2^32 elements, of which few are not zero, so that only the index takes memory: 512 MiB. Long
 * form only.
 */
static void test_large(void)
{
	uint64_t count = (1ull << 32) + 12345, words = swc_sparse_words(count), n = 0, cells;
	const struct swc_sparse_codec *c = swc_sparse_codec_best();
	unsigned char *v = reserve(count), *out = reserve(count), *peeled = reserve(count);
	unsigned char *packed, *cell;
	uint64_t *index = reserve(words * 8), set = 0, k = 0;
	static uint64_t place[1000];
	bool good = true;
	void *scratch;

	if (!v || !out || !peeled || !index ||
	    sysconf(_SC_AVPHYS_PAGES) < (1l << 30) / sysconf(_SC_PAGESIZE)) {
		printf("ok %d - # SKIP no address space, or less than 1 GiB of free memory\n",
		       ++tap_tests);
		return;
	}
	packed = malloc(1000 + SWC_SPARSE_SLACK);
	for (unsigned int i = 0; i < 1000; i++) {
		uint64_t at = i < 4 ? (uint64_t[]){ 0, UINT32_MAX, 1ull << 32, count - 1 }[i]
				    : (uint64_t)rnd(1u << 30) * 4 + rnd(16000);

		set += !v[at];
		place[i] = at;
		v[at] = (unsigned char)(1 + rnd(255));
	}
	c->scan(v, count, 1, index);
	good &= !swc_sparse_count(index, count, &n) && n == set;
	c->pack(v, index, count, 1, packed);
	for (uint64_t w = 0; w < words; w++)
		for (uint64_t bits = index[w]; bits; bits &= bits - 1)
			good &= packed[k++] == v[w * 64 + (unsigned int)__builtin_ctzll(bits)];
	swc_sparse_scatter(index, count, 1, packed, out);
	cells = swc_sparse_cells(n);
	cell = calloc(cells, 1);
	swc_sparse_sketch(v, index, count, 1, cells, cell);
	scratch = malloc(swc_sparse_peel_bytes(cells));
	good &= !swc_sparse_peel(index, count, 1, cells, cell, scratch, peeled);
	for (unsigned int i = 0; i < 1000; i++) {
		uint64_t at = place[i];

		good &= out[at] == v[at];
		good &= index[at / 64] >> at % 64 & 1 ? !peeled[at] : peeled[at] == v[at];
	}
	ok(good && k == set, "more than 2^32 elements");
	free(cell);
	free(scratch);
	free(packed);
	munmap(v, count);
	munmap(out, count);
	munmap(peeled, count);
	munmap(index, words * 8);
}

int main(void)
{
	seed_rnd();
	for (unsigned int i = 0; i < sizeof(golden) / sizeof(*golden); i++)
		check_all(&golden[i]);
	for (int i = 0; swc_sparse_codecs[i]; i++)
		if (swc_sparse_codecs[i]->valid()) {
			test_sizes(swc_sparse_codecs[i]);
			test_against_scalar(swc_sparse_codecs[i]);
		}
	test_reference();
	test_peel();
	test_damage();
	test_damaged_rows();
	if (!getenv("SWC_TEST_SHORT") || !*getenv("SWC_TEST_SHORT"))
		test_large();
	return done();
}

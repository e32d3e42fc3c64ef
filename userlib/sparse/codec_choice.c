// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which code is fastest on this machine is measured, once in a process: what a processor can do does not
 * tell. Some take many cycles for the bit permutations that AVX2 code needs, and emulated machines run
 * plain code several times as fast as vector units. All implementations give the same bytes, so ranks need
 * not choose alike.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sparse/codec.h"

#define ELEMENTS 16384 /* of four bytes; they fit in the caches */
#define TRIES 4

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct swc_sparse_codec best;

/* A vector, of which every twelfth element or so is not zero. */
struct sample {
	uint32_t v[ELEMENTS], packed[ELEMENTS + SWC_SPARSE_SLACK / 4];
	uint64_t index[ELEMENTS / 64];
};

enum step {
	SCAN,
	PACK,
	UNPACK,
	STEPS
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void run(const struct swc_sparse_codec *c, enum step step, struct sample *s)
{
	if (step == SCAN)
		c->scan(s->v, ELEMENTS, 4, s->index);
	else if (step == PACK)
		c->pack(s->v, s->index, ELEMENTS, 4, s->packed);
	else
		c->unpack(s->index, ELEMENTS, 4, s->packed, s->v);
}

/*
 * The least time of some tries, since whatever else the machine does adds to it. Each has a vector of its
 * own: of one that it has seen before, a processor predicts every branch.
 */
static uint64_t time_of(const struct swc_sparse_codec *c, enum step step, struct sample *s)
{
	uint64_t least = UINT64_MAX, start, took;

	for (int i = 0; i < TRIES; i++) {
		start = now();
		run(c, step, &s[i]);
		took = now() - start;
		if (took < least)
			least = took;
	}
	return least;
}

static void fill(struct sample *s)
{
	uint64_t random = 1;

	for (int i = 0; i < TRIES; i++, s++) {
		for (unsigned int k = 0; k < ELEMENTS; k++) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			s->v[k] = (random >> 32) % 12 ? 0 : k + 1;
		}
		memset(s->packed, 0, sizeof(s->packed));
		swc_sparse_scalar.scan(s->v, ELEMENTS, 4, s->index);
	}
}

static void measure(void)
{
	uint64_t least[STEPS] = { UINT64_MAX, UINT64_MAX, UINT64_MAX }, took;
	struct sample *s = malloc(TRIES * sizeof(*s));

	best = swc_sparse_scalar;
	best.name = "best";
	if (!s)
		return;
	fill(s);
	for (int i = 0; swc_sparse_codecs[i]; i++) {
		const struct swc_sparse_codec *c = swc_sparse_codecs[i];

		for (enum step step = SCAN; c->valid() && step < STEPS; step++) {
			took = time_of(c, step, s);
			if (took >= least[step])
				continue;
			least[step] = took;
			if (step == SCAN)
				best.scan = c->scan;
			else if (step == PACK)
				best.pack = c->pack;
			else
				best.unpack = c->unpack;
		}
	}
	free(s);
}

const struct swc_sparse_codec *swc_sparse_codec_best(void)
{
	pthread_once(&once, measure);
	return &best;
}

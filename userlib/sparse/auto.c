// SPDX-License-Identifier: LGPL-2.1-or-later
/* The automatic choice, see auto.h. Times of both ways come from trials: the first calls of a kind. */
#include <string.h>

#include "sparse/auto.h"

#define TRIALS 3
#define MOST_PAUSE 64
/* Pack must be so much faster by its forecast: more than times are rounded and than noise is. */
#define MARGIN_PERCENT 106
/* Above this share of the dense bytes, pack is not even tried. */
#define MOST_PERCENT 90

/* Numbers from 32 on in steps of 1/32 octave, 3 % at most. */
static uint32_t time_code(uint64_t ns)
{
	uint32_t octave, code;

	if (ns < 32)
		ns = 32;
	octave = 63 - (uint32_t)__builtin_clzll(ns) - 5;
	code = octave * 32 + (uint32_t)(ns >> octave & 31) + 1;
	return code < SWC_SPARSE_TIME_WORDS * 64 ? code : SWC_SPARSE_TIME_WORDS * 64;
}

static uint64_t time_of(uint32_t code)
{
	return (32 + (uint64_t)((code - 1) & 31)) << (code - 1) / 32;
}

bool swc_sparse_auto_skip(struct swc_sparse_auto *a)
{
	if (!a->skip)
		return false;
	a->skip--;
	return true;
}

void swc_sparse_auto_vote_time(const struct swc_sparse_auto *a,
			       uint64_t time[SWC_SPARSE_TIME_WORDS])
{
	uint32_t code = a->fresh ? time_code(a->last_ns) : 0;

	memset(time, 0, SWC_SPARSE_TIME_WORDS * sizeof(*time));
	for (uint32_t k = 0; k < code; k++)
		time[k / 64] |= 1ull << k % 64;
}

/* Few enough that the sample costs little beside the vector. */
static uint64_t samples(uint64_t count)
{
	return count / 64 < SWC_SPARSE_SAMPLES ? count / 64 : SWC_SPARSE_SAMPLES;
}

void swc_sparse_auto_vote(const struct swc_sparse_auto *a, const void *v, uint64_t count,
			  unsigned int size, struct swc_sparse_vote *vote)
{
	uint64_t n = samples(count), stride = n ? count / n : 0, jitter = 1;

	memset(vote->place, 0, sizeof(vote->place));
	for (uint64_t k = 0; k < n; k++) {
		uint64_t bits = 0;

		/* One place in each stride, not always the same: vectors may be periodic. */
		jitter = jitter * 6364136223846793005ull + 1442695040888963407ull;
		memcpy(&bits, (const char *)v + (k * stride + (jitter >> 33) % stride) * size,
		       size);
		vote->place[k / 64] |= (uint64_t)(bits != 0) << k % 64;
	}
	swc_sparse_auto_vote_time(a, vote->time);
}

static uint32_t bits_of(const uint64_t *word, unsigned int n)
{
	uint32_t bits = 0;

	for (unsigned int i = 0; i < n; i++)
		bits += (uint32_t)__builtin_popcountll(word[i]);
	return bits;
}

static void learn(struct swc_sparse_auto *a, uint64_t ns)
{
	uint64_t *best = &a->best_ns[a->last];

	/* A time of pack is for its bytes: bring the old one to the new ones. */
	if (a->last == SWC_SPARSE_CHOICE_PACK) {
		if (*best && a->bytes)
			*best = (uint64_t)((double)*best * (double)a->last_bytes /
					   (double)a->bytes);
		a->bytes = a->last_bytes;
	}
	if (a->trials[a->last]++ < TRIALS)
		*best = *best && *best < ns ? *best : ns;
	else
		*best = (*best * 7 + ns) / 8;
}

/*
 * Bytes that pack would reduce now. A sample is noisy: as long as the last packed call explains it, within
 * three standard deviations, its size is the better estimate.
 */
static double forecast_bytes(const struct swc_sparse_auto *a, double set, double n, double count,
			     double dense)
{
	double expected = n * ((double)a->bytes - count / 8) / dense;
	double off = set - expected;

	if (a->bytes && off * off <= 9 * (expected + 1))
		return (double)a->bytes;
	return count / 8 + (n > 0 ? dense * set / n : 0);
}

static void learn_agreed(struct swc_sparse_auto *a, const uint64_t *time)
{
	uint32_t code = bits_of(time, SWC_SPARSE_TIME_WORDS);

	if (a->fresh && code)
		learn(a, time_of(code));
	a->fresh = false;
}

void swc_sparse_auto_pause(struct swc_sparse_auto *a)
{
	a->pause = a->pause ? a->pause * 2 : 1;
	if (a->pause > MOST_PAUSE)
		a->pause = MOST_PAUSE;
	a->skip = a->pause;
}

/* By times, with so many bytes packed. */
static enum swc_sparse_choice decide(struct swc_sparse_auto *a, double packed, double dense)
{
	bool faster;

	if (packed * 100 >= dense * MOST_PERCENT)
		faster = false;
	else if (a->trials[SWC_SPARSE_CHOICE_DENSE] < TRIALS)
		return SWC_SPARSE_CHOICE_DENSE;
	else if (a->trials[SWC_SPARSE_CHOICE_PACK] < TRIALS)
		return SWC_SPARSE_CHOICE_PACK;
	else
		faster = (double)a->best_ns[SWC_SPARSE_CHOICE_PACK] * packed * MARGIN_PERCENT <
			 (double)a->best_ns[SWC_SPARSE_CHOICE_DENSE] * (double)a->bytes * 100;
	if (faster) {
		a->pause = 0;
		return SWC_SPARSE_CHOICE_PACK;
	}
	swc_sparse_auto_pause(a);
	return SWC_SPARSE_CHOICE_DENSE;
}

enum swc_sparse_choice swc_sparse_auto_decide(struct swc_sparse_auto *a,
					      const struct swc_sparse_vote *vote, uint64_t count,
					      unsigned int size)
{
	uint32_t set = bits_of(vote->place, SWC_SPARSE_SAMPLES / 64);
	double n = (double)samples(count), dense = (double)(count * size);

	learn_agreed(a, vote->time);
	return decide(a, forecast_bytes(a, set, n, (double)count, dense), dense);
}

enum swc_sparse_choice swc_sparse_auto_decide_time(struct swc_sparse_auto *a,
						   const uint64_t time[SWC_SPARSE_TIME_WORDS],
						   uint64_t bytes, uint64_t dense)
{
	learn_agreed(a, time);
	return decide(a, (double)bytes, (double)dense);
}

void swc_sparse_auto_ran(struct swc_sparse_auto *a, enum swc_sparse_choice choice, uint64_t ns,
			 uint64_t bytes)
{
	a->fresh = true;
	a->last = choice;
	a->last_ns = ns;
	a->last_bytes = bytes;
}

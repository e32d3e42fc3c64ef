// SPDX-License-Identifier: LGPL-2.1-or-later
/* The trial of each class of calls: see choose.h. */
#include <string.h>

#include "pmpi/choose.h"

static unsigned int bits_of(uint64_t bytes)
{
	return bytes ? 64 - (unsigned int)__builtin_clzll(bytes) : 0;
}

void choose_told(struct choose_class *k, uint64_t bytes)
{
	uint8_t large = (uint8_t)(1 + bits_of(bytes)), small = (uint8_t)(66 - large);

	if (small <= k->small && large <= k->large)
		return;
	small = small > k->small ? small : k->small;
	large = large > k->large ? large : k->large;
	if (k->decided)
		*k = (struct choose_class){ 0 };
	k->small = small;
	k->large = large;
}

struct choose_class *choose_find(struct choose *c, unsigned int coll, uint64_t bytes)
{
	unsigned int bits = bits_of(bytes);

	return &c->of[coll % CHOOSE_COLLS][bits < CHOOSE_CLASSES ? bits : CHOOSE_CLASSES - 1];
}

enum choose_side choose_next(const struct choose_class *k, bool *trial)
{
	*trial = !k->decided;
	if (k->decided)
		return (enum choose_side)k->side;
	return k->calls / CHOOSE_BURST & 1 ? CHOOSE_MPI : CHOOSE_SWC;
}

/* The quickest first; the slowest is left out if there is no room. */
static void keep_burst(uint32_t *ns, uint32_t burst, int kept)
{
	int i = kept < CHOOSE_ROUNDS ? kept : CHOOSE_ROUNDS - 1;

	if (kept >= CHOOSE_ROUNDS && burst >= ns[i])
		return;
	for (; i && ns[i - 1] > burst; i--)
		ns[i] = ns[i - 1];
	ns[i] = burst;
}

bool choose_sample(struct choose_class *k, uint64_t ns)
{
	unsigned int place = k->calls % CHOOSE_BURST;
	int kept = k->calls / (CHOOSE_BURST * CHOOSE_SIDES);
	uint64_t burst = place > 1 ? k->burst : 0;
	bool trial;
	enum choose_side side = choose_next(k, &trial);

	if (!trial)
		return false;
	burst += ns < UINT32_MAX ? ns : UINT32_MAX;
	k->burst = burst < UINT32_MAX ? (uint32_t)burst : UINT32_MAX;
	if (place == CHOOSE_BURST - 1)
		keep_burst(k->ns[side], k->burst, kept);
	return !(++k->calls % CHOOSE_ROUND);
}

void choose_times(const struct choose_class *k, double ns[CHOOSE_SIDES])
{
	for (int side = 0; side < CHOOSE_SIDES; side++)
		ns[side] = k->ns[side][k->calls / CHOOSE_ROUND - 1];
}

/* Is another round worth its time? */
static bool is_plain(const struct choose_class *k, const double sums[CHOOSE_SIDES], int nranks)
{
	const double limit = 1.0 * CHOOSE_LONG_NS * CHOOSE_SIDES * (CHOOSE_BURST - 1);
	int rounds = k->calls / CHOOSE_ROUND;

	return rounds >= CHOOSE_ROUNDS || sums[CHOOSE_SWC] < 0.5 * sums[CHOOSE_MPI] ||
	       (rounds > 1 && sums[CHOOSE_SWC] > 4 * sums[CHOOSE_MPI]) ||
	       sums[CHOOSE_SWC] + sums[CHOOSE_MPI] > limit * nranks;
}

/* On a draw nothing is gained by leaving MPI: swingcoll must be ahead by 3 percent. */
void choose_decide(struct choose_class *k, const double sums[CHOOSE_SIDES], int nranks)
{
	if (!is_plain(k, sums, nranks))
		return;
	k->side = sums[CHOOSE_SWC] < 0.97 * sums[CHOOSE_MPI] ? CHOOSE_SWC : CHOOSE_MPI;
	k->decided = true;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * No gap in the envelope: a model of its own, which shares no code with the planner, computes what
 * is known to be possible on a torus, and the planner's best algorithm must not be slower by more
 * than 2 %. TAP on stdout.
 *
 * The reference knows three families. Two-sided: a member offers windows of its first i pieces from
 * the left and its first j from the right, and a search finds those with the least sum of the
 * largest distances. Mixed radices: reduce-scatter and allgather by the factors of the sides, near
 * members first. Bucket from both sides with phases that begin together. Their steps are shifts:
 * every member sends over the same offset, so a link carries the offset times the share, and no
 * route has to be followed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/select/choose.h"
#include "tap.h"

#define DIMS 4
#define STEPS 24
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A step along one dimension, and what part of the range is left behind it. */
struct step {
	int dim, hops;
	double up, down; /* distances times shares of the range */
	double left;
};

/* Steps of one dimension, or of a torus; all of them, and the time of what is known so far. */
struct steps {
	int n;
	struct step step[DIMS * STEPS];
};

struct cost {
	double steps, hops, load;
};

static double time_of(struct cost c, double bytes)
{
	return 600 * c.steps + 400 * c.hops + c.load * bytes * 8 / 400;
}

/* ---- two-sided ---- */

struct windows {
	int d, n, best, a[8], b[8];
	double best_load;
	struct step now[8], found[8];
};

/* The next step: from the left a window of i and j pieces, none if i is -1; from the right too. */
static void search(struct windows *w, int k, int hops, double load)
{
	int a = w->a[k], b = w->b[k];

	if (hops > w->best || a + b + 1 > w->d)
		return;
	if (k == w->n) {
		if (a + b + 1 == w->d && (hops < w->best || load < w->best_load)) {
			w->best = hops;
			w->best_load = load;
			memcpy(w->found, w->now, sizeof(w->now));
		}
		return;
	}
	for (int i = -1; i <= k; i++)
		for (int j = 0; j <= (i < 0 ? 0 : k); j++)
			for (int m = -1; m <= k; m++)
				for (int n = 0; n <= (m < 0 ? 0 : k); n++) {
					int s = i < 0 ? 0 : w->b[j] + a + 1;
					int t = m < 0 ? 0 : w->a[n] + b + 1;
					int far = s > t ? s : t;

					w->a[k + 1] = i < 0 ? a : s + w->a[i];
					w->b[k + 1] = m < 0 ? b : t + w->b[m];
					w->now[k] = (struct step){ 0, far, s, t, 1 };
					if (far)
						search(w, k + 1, hops + far, load + s + t);
				}
}

static void two_sided(int d, int dim, struct steps *to)
{
	struct windows w = { .d = d, .best = 1 << 20 };

	for (int reach = 1; reach < d; reach *= 3)
		w.n++;
	search(&w, 0, 0, 0);
	for (int i = 0; i < w.n; i++) {
		to->step[to->n] = w.found[i];
		to->step[to->n++].dim = dim;
	}
}

/* ---- mixed radices ---- */

/* Parts go to each of the others of a ring of f; with 2, mirrored channels balance the ways. */
static void radices(int d, int dim, struct steps *to)
{
	for (int stride = 1; stride < d;) {
		int rest = d / stride, f = 2;
		double way = 0;

		while (rest % f)
			f++;
		for (int o = 1; o < f; o++)
			way += (o <= f / 2 ? o : f - o) / 2.0 / f;
		to->step[to->n++] = (struct step){ dim, f / 2 * stride, way * stride, way * stride,
						   1.0 / f };
		stride *= f;
	}
}

/* ---- all dimensions ---- */

static int by_hops(const void *x, const void *y)
{
	const struct step *a = x, *b = y;

	return a->hops != b->hops ? a->hops - b->hops : a->dim - b->dim;
}

/*
 * All channels take the steps of the dimensions in the order of their distance; steps of equal
 * distance begin with another dimension on each channel.
 */
static struct cost align(struct steps *s, int ndims)
{
	double left[DIMS] = { 1, 1, 1, 1 };
	struct cost c = { .steps = s->n };

	qsort(s->step, (size_t)s->n, sizeof(s->step[0]), by_hops);
	for (int first = 0, end; first < s->n; first = end) {
		for (end = first; end < s->n && s->step[end].hops == s->step[first].hops;)
			end++;
		for (int k = first; k < end; k++) {
			double up[DIMS] = { 0 }, down[DIMS] = { 0 }, most = 0;

			for (int chan = 0; chan < ndims; chan++) {
				const struct step *x =
					&s->step[first + (k - first + chan) % (end - first)];

				up[x->dim] += left[chan] * x->up / ndims;
				down[x->dim] += left[chan] * x->down / ndims;
				left[chan] *= x->left;
			}
			for (int i = 0; i < ndims; i++)
				most = fmax(most, fmax(up[i], down[i]));
			c.load += most;
			c.hops += s->step[first].hops;
		}
	}
	return c;
}

/* Half of the vector each way; in phase i, channel c is in dimension c + i. */
static struct cost bucket(const int *dim, int ndims)
{
	double left[DIMS] = { 1, 1, 1, 1 };
	struct cost c = { 0 };

	for (int i = 0; i < ndims; i++) {
		double most = 0;
		int steps = 0;

		for (int chan = 0; chan < ndims; chan++) {
			int d = dim[(chan + i) % ndims];

			most = fmax(most, left[chan] * (d - 1) / d / 2 / ndims);
			left[chan] /= d;
			steps = d / 2 > steps ? d / 2 : steps;
		}
		c.load += 2 * most;
		c.steps += 2 * steps;
		c.hops += 2 * steps;
	}
	return c;
}

/* ---- the comparison ---- */

static const struct {
	const char *topo;
	int dim[DIMS];
} tori[] = {
	{ "torus:4x4", { 4, 4 } },	{ "torus:8x8", { 8, 8 } },
	{ "torus:2x8", { 2, 8 } },	{ "torus:9x3", { 9, 3 } },
	{ "torus:27x3", { 27, 3 } },	{ "torus:32x2", { 32, 2 } },
	{ "torus:6x10", { 6, 10 } },	{ "torus:16x4", { 16, 4 } },
	{ "torus:9x9", { 9, 9 } },	{ "torus:10x4x2", { 10, 4, 2 } },
	{ "torus:8x4x2", { 8, 4, 2 } }, { "torus:3x3x3", { 3, 3, 3 } },
	{ "torus:5x7", { 5, 7 } },	{ "torus:27x27", { 27, 27 } },
};

static const double sizes[] = { 32, 2 << 10, 32 << 10, 512 << 10, 16 << 20, 512 << 20 };

int main(void)
{
	static const struct swc_network net = { .gbps = 400, .hop_ns = 400, .step_ns = 600 };

	printf("TAP version 13\n");
	for (size_t i = 0; i < COUNT(tori); i++) {
		struct steps two = { 0 }, mixed = { 0 };
		struct cost known[3];
		struct swc_choices c;
		struct swc_topo t;
		bool good = true;
		int ndims = 0;
		char name[80];

		for (; ndims < DIMS && tori[i].dim[ndims]; ndims++) {
			two_sided(tori[i].dim[ndims], ndims, &two);
			radices(tori[i].dim[ndims], ndims, &mixed);
		}
		known[0] = align(&two, ndims);
		known[1] = align(&mixed, ndims);
		known[1] = (struct cost){ 2 * known[1].steps, 2 * known[1].hops,
					  2 * known[1].load };
		known[2] = bucket(tori[i].dim, ndims);
		if (swc_topo_parse(&t, tori[i].topo, NULL, 0))
			abort();
		swc_choices_init(&c, &t, true);
		c.net = net;
		for (size_t k = 0; k < COUNT(sizes); k++) {
			struct swc_choice best = swc_choices_take(&c, SWC_ALLREDUCE, SWC_F32,
								  SWC_SUM, (uint64_t)sizes[k], 1);
			double least = INFINITY;

			for (int m = 0; m < 3; m++)
				least = fmin(least, time_of(known[m], sizes[k]));
			if (best.ns <= least * 1.02)
				continue;
			printf("# %g bytes: %s:%d takes %.1f us, known are %.1f, %.1f and %.1f\n",
			       sizes[k], swc_algo_name(best.algo), best.param, best.ns / 1e3,
			       time_of(known[0], sizes[k]) / 1e3, time_of(known[1], sizes[k]) / 1e3,
			       time_of(known[2], sizes[k]) / 1e3);
			good = false;
		}
		snprintf(name, sizeof(name), "%s: %zu sizes, no better plan is known", tori[i].topo,
			 COUNT(sizes));
		ok(good, name);
		swc_choices_free(&c);
		swc_topo_free(&t);
	}
	return done();
}

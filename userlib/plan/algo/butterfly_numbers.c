// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The numbers of blocks in butterflies; see butterfly_sets.c.
 *
 * Blocks are numbered in the order of the tree along which member 0 sends them, those that are sent
 * first last. A member exchanges with one other in a step (except the last coordinate of odd d), so
 * the steps on the way to a block identify it; those of each dimension do not depend on the others:
 * the way of a block is the union of those on its lines, and only the lines' have to be sorted.
 * Blocks with the same way are in the order of members. On powers of two this makes every message
 * one run, elsewhere nearly so: a number is its block's way there, so that what a member has before a
 * step is all numbers that begin as its own.
 *
 * Blocks whose ways begin with the same steps are a box: in each dimension, consecutive places of the
 * line. They have consecutive numbers. So the numbers of a product are found from the top: a box that it
 * does not meet is left out, one that it fills is a run, and others are cut in two by their next step.
 */
#include "plan/algo/butterfly_numbers.h"

/* How much of a box's places in a dimension a product has. */
enum cover {
	COVER_NONE,
	COVER_SOME,
	COVER_ALL
};

/**
 * struct walk - through the numbers of a product
 * @first, @n: by dimension: the places of the box at hand
 * @at: by dimension: the first stretch of the product that does not end before the box
 * @cover: by dimension; @some: in how many it is COVER_SOME
 * @next: the first number of the box
 * @ended: by the caller
 */
struct walk {
	const struct swc_lines *lines;
	const struct swc_stretches *part;
	bool by_ways, ended;
	swc_numbers_fn *fn;
	void *arg;
	uint32_t first[SWC_TOPO_DIMS], n[SWC_TOPO_DIMS], at[SWC_TOPO_DIMS];
	enum cover cover[SWC_TOPO_DIMS];
	uint32_t some, next;
};

static void find_cover(struct walk *w, uint32_t dim)
{
	const struct swc_stretches *part = &w->part[dim];
	uint32_t first = w->first[dim], end = first + w->n[dim];
	const struct swc_stretch *s;

	while (w->at[dim] < part->n &&
	       part->stretch[w->at[dim]].first + part->stretch[w->at[dim]].n <= first)
		w->at[dim]++;
	s = &part->stretch[w->at[dim]];
	if (w->at[dim] == part->n || s->first >= end)
		w->cover[dim] = COVER_NONE;
	else
		w->cover[dim] = s->first <= first && s->first + s->n >= end ? COVER_ALL
									    : COVER_SOME;
}

static uint32_t size_of(const struct walk *w)
{
	uint32_t size = 1;

	for (uint32_t j = 0; j < w->lines->ndims; j++)
		size *= w->n[j];
	return size;
}

/*
 * The blocks of a box are in the order of members: their ways are equal, or differ in one dimension only.
 * @before: how many there are in front of those with these coordinates in the dimensions before j
 */
static void each_row(struct walk *w, uint32_t j, uint32_t before)
{
	const struct swc_stretches *part = &w->part[j];
	uint32_t first = w->first[j], end = first + w->n[j];

	before *= w->n[j];
	for (uint32_t i = w->at[j]; i < part->n && part->stretch[i].first < end && !w->ended; i++) {
		const struct swc_stretch *s = &part->stretch[i];
		uint32_t from = s->first > first ? s->first : first;
		uint32_t to = s->first + s->n < end ? s->first + s->n : end;

		if (j + 1 == w->lines->ndims)
			w->ended = !w->fn(w->arg, w->next + before + from - first, to - from);
		for (; j + 1 < w->lines->ndims && from < to && !w->ended; from++)
			each_row(w, j + 1, before + from - first);
	}
}

/* The step, from @s on, that tells the ways of a box apart, and how many of its dimension do not take it. */
static uint32_t next_cut(const struct walk *w, uint32_t s, uint32_t *without)
{
	uint32_t wide = 0;

	for (uint32_t j = 0; j < w->lines->ndims; j++)
		wide += w->n[j] > 1;
	for (; wide > 1 && s < w->lines->steps; s++) {
		struct swc_turn t = w->lines->turn[s];
		uint32_t n = w->n[t.dim];

		*without = swc_ways_without(w->lines->line[t.dim].way + w->first[t.dim], n, t.step);
		if (*without && *without < n)
			return s;
	}
	return w->lines->steps;
}

static void each_box(struct walk *w, uint32_t s);

/* Go on in the part of a box with these places in a dimension. */
static void enter(struct walk *w, uint32_t dim, uint32_t first, uint32_t n, uint32_t s)
{
	uint32_t old_first = w->first[dim], old_n = w->n[dim], old_at = w->at[dim];
	enum cover old_cover = w->cover[dim];

	w->first[dim] = first;
	w->n[dim] = n;
	if (old_cover == COVER_SOME)
		find_cover(w, dim);
	w->some -= w->cover[dim] != old_cover;
	if (w->cover[dim] == COVER_NONE || w->ended)
		w->next += size_of(w);
	else
		each_box(w, s);
	w->first[dim] = old_first;
	w->n[dim] = old_n;
	w->at[dim] = old_at;
	w->some += w->cover[dim] != old_cover;
	w->cover[dim] = old_cover;
}

/* The blocks' ways are equal in all steps before s: those that do not take step s come first. */
static void each_box(struct walk *w, uint32_t s)
{
	uint32_t size = size_of(w), without, dim;

	if (w->some)
		s = w->by_ways ? next_cut(w, s, &without) : w->lines->steps;
	if (!w->some) {
		w->ended = !w->fn(w->arg, w->next, size);
		w->next += size;
	} else if (s < w->lines->steps) {
		dim = w->lines->turn[s].dim;
		enter(w, dim, w->first[dim], without, s + 1);
		enter(w, dim, w->first[dim] + without, w->n[dim] - without, s + 1);
	} else {
		each_row(w, 0, 0);
		w->next += size;
	}
}

void swc_numbers_each(const struct swc_lines *lines, bool by_ways, const struct swc_stretches *part,
		      swc_numbers_fn *fn, void *arg)
{
	struct walk w = { .lines = lines, .part = part, .by_ways = by_ways, .fn = fn, .arg = arg };

	for (uint32_t j = 0; j < lines->ndims; j++) {
		w.n[j] = lines->line[j].d;
		find_cover(&w, j);
		if (w.cover[j] == COVER_NONE)
			return;
		w.some += w.cover[j] == COVER_SOME;
	}
	each_box(&w, 0);
}

bool swc_numbers_separate(const struct swc_lines *lines)
{
	uint64_t nblocks = 1;

	for (uint32_t j = 0; j < lines->ndims; j++)
		nblocks *= lines->line[j].d;
	return lines->steps && nblocks == 1ull << lines->steps;
}

uint32_t swc_numbers_one(const struct swc_lines *lines, const uint32_t *coord)
{
	uint32_t number = 0;

	for (uint32_t j = 0; j < lines->ndims; j++) {
		const struct swc_line *l = &lines->line[j];

		for (uint32_t x = 0, k; x != coord[j]; x = swc_swing_peer(l->m, x, k, l->mirror)) {
			k = swc_line_when(l, x, coord[j]);
			number |= 1u << (lines->steps - 1 - lines->turn_at[j][k]);
		}
	}
	return number;
}

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
 */
#include <errno.h>
#include <stdlib.h>

#include "plan/algo/butterfly_numbers.h"

/**
 * struct order - blocks that are to be numbered next
 * @first, @n: by dimension: the blocks' coordinates are these of the line's order
 * @next: number of the next block
 */
struct order {
	uint32_t first[SWC_TOPO_DIMS], n[SWC_TOPO_DIMS];
	uint32_t next;
};

/* Number the blocks in the order of members: their ways are equal, or differ in one dimension only. */
static void number_product(struct swc_numbers *p, struct order *o)
{
	uint32_t i[SWC_TOPO_DIMS] = { 0 }, last = p->lines->ndims - 1, member = 0, j;

	/* The dimensions behind the last one with several coordinates have one, which is added here. */
	for (j = 0; j < p->lines->ndims; j++)
		member += p->coord[j][o->first[j]] * p->stride[j];
	while (last && o->n[last] == 1)
		last--;
	do {
		const uint32_t *coord = p->coord[last] + o->first[last];
		uint32_t at = member - coord[0] * p->stride[last];

		for (uint32_t k = 0; k < o->n[last]; k++)
			p->of_member[at + coord[k] * p->stride[last]] = o->next++;
		for (j = last; j-- > 0; i[j] = 0) {
			coord = p->coord[j] + o->first[j];
			member -= coord[i[j]] * p->stride[j];
			if (++i[j] < o->n[j]) {
				member += coord[i[j]] * p->stride[j];
				break;
			}
			member += coord[0] * p->stride[j];
		}
	} while (j < last);
}

uint32_t swc_ways_without(const uint32_t *way, uint32_t n, uint32_t step)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (way[mid] >> (31 - step) & 1)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Number the blocks, whose ways are equal in all steps before s: first those that do not take step s. */
static void number_from(struct swc_numbers *p, struct order *o, uint32_t s)
{
	uint32_t wide = 0;

	for (uint32_t j = 0; j < p->lines->ndims; j++)
		wide += o->n[j] > 1;
	for (; wide > 1 && s < p->lines->steps; s++) {
		uint32_t dim = p->lines->turn[s].dim, n = o->n[dim], first = o->first[dim];
		uint32_t without = swc_ways_without(p->lines->line[dim].way + first, n,
						    p->lines->turn[s].step);

		if (!without || without == n)
			continue;
		o->n[dim] = without;
		number_from(p, o, s + 1);
		o->first[dim] = first + without;
		o->n[dim] = n - without;
		number_from(p, o, s + 1);
		o->first[dim] = first;
		o->n[dim] = n;
		return;
	}
	number_product(p, o);
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

void swc_numbers_find(struct swc_numbers *p, const struct swc_lines *lines)
{
	struct order o = { .next = 0 };

	p->lines = lines;
	for (uint32_t j = 0; j < lines->ndims; j++) {
		o.n[j] = lines->line[j].d;
		for (uint32_t i = 0; i < o.n[j]; i++)
			p->coord[j][i] = swc_line_ordered(&lines->line[j], i);
	}
	number_from(p, &o, 0);
}

int swc_numbers_open(struct swc_numbers *p, const struct swc_topo *topo)
{
	uint32_t stride = 1;
	bool ready = true;

	*p = (struct swc_numbers){ .lines = NULL };
	for (uint32_t j = topo->ndims; j-- > 0; stride *= topo->dim[j]) {
		p->stride[j] = stride;
		p->coord[j] = malloc(topo->dim[j] * sizeof(*p->coord[j]));
		ready &= p->coord[j] != NULL;
	}
	p->of_member = malloc(stride * sizeof(*p->of_member));
	return ready && p->of_member ? 0 : -ENOMEM;
}

void swc_numbers_free(struct swc_numbers *p)
{
	for (uint32_t j = 0; j < SWC_TOPO_DIMS; j++)
		free(p->coord[j]);
	free(p->of_member);
}

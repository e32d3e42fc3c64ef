/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables that grow: pointer, elements in use and room, kept by the caller. */
#ifndef SWC_PLAN_TABLE_H
#define SWC_PLAN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/**
 * swc_table_reserve() - make room for element number @used
 * @table: address of the pointer to the elements; NULL at first. The caller's, to be freed with
 *	free()
 * @used: elements in use
 * @room: elements that there is memory for; 0 at first
 * @size: bytes of an element
 *
 * New memory is not cleared. Room at least doubles, so that appending takes constant time on
 * average.
 *
 * Return: false if there is no memory; nothing has changed then.
 */
static inline bool swc_table_reserve(void *table, uint32_t used, uint32_t *room, size_t size)
{
	uint64_t want = *room ? 2 * (uint64_t)*room : 4;
	void **t = table, *p;

	if (used < *room)
		return true;
	if (want <= used)
		want = (uint64_t)used + 1;
	p = want < UINT32_MAX ? reallocarray(*t, (size_t)want, size) : NULL;
	if (!p)
		return false;
	*t = p;
	*room = (uint32_t)want;
	return true;
}

#endif /* SWC_PLAN_TABLE_H */

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What all files about MSCCL's programs need: refusing one, and tables that grow.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "msccl_program.h"

int swc_msccl_refuse(struct swc_msccl *m, unsigned long line, const char *fmt, ...)
{
	char text[200];
	va_list args;

	if (m->error)
		return m->error;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (m->why_bytes && line)
		snprintf(m->why, m->why_bytes, "line %lu: %s", line, text);
	else if (m->why_bytes)
		snprintf(m->why, m->why_bytes, "%s", text);
	return m->error = -EINVAL;
}

uint32_t swc_msccl_append(struct swc_msccl *m, void *table, uint32_t *used, uint32_t *room,
			  size_t size)
{
	void **t = table, *p;
	uint32_t want = *room * 2 + 64;

	if (m->error)
		return SWC_MSCCL_NONE;
	if (*used == *room) {
		p = reallocarray(*t, want, size);
		if (!p) {
			m->error = -ENOMEM;
			return SWC_MSCCL_NONE;
		}
		*t = p;
		*room = want;
	}
	return (*used)++;
}

/* ------------------------------------------------------------------ places and cells */

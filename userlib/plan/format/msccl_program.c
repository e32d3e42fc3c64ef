// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What all files about MSCCL's programs need: refusing a program, and growing its tables.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/format/msccl_program.h"
#include "kmod/core/plan_check.h"
#include "plan/table.h"

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
	if (!m->error && !swc_table_reserve(table, *used, room, size))
		m->error = -ENOMEM;
	return m->error ? SWC_MSCCL_NONE : (*used)++;
}

void swc_msccl_set_name(struct swc_msccl *m, const char *name)
{
	size_t n = 0;

	for (; *name && n < sizeof(m->name) - 1; name++)
		if (*name > ' ' && *name <= '~' && (n || *name != '#'))
			m->name[n++] = *name;
	if (!n)
		strcpy(m->name, "msccl");
}

int swc_msccl_set_gpus(struct swc_msccl *m, unsigned long line, const char *chunks)
{
	uint32_t nshards = swc_coll_nshards((uint8_t)m->coll, m->ngpus);

	if (!m->nblocks || m->nblocks % nshards)
		return swc_msccl_refuse(m, line, "expected %s to be a multiple of %u", chunks,
					nshards);
	m->shard_blocks = m->nblocks / nshards;
	m->gpu = calloc(m->ngpus, sizeof(*m->gpu));
	return m->error = m->gpu ? 0 : -ENOMEM;
}

// SPDX-License-Identifier: GPL-2.0-only
#include "recording.h"

#include <errno.h>
#include <stdlib.h>

#include "common/device.h"

int recording_read(int fd, uint64_t number, uint64_t last, struct recording *rec)
{
	struct swc_trace_query *q = &rec->q;
	int ret;

	*rec = (struct recording){ .q.number = number };
	ret = device_ioctl(fd, SWC_IOC_TRACE, q);
	if (ret)
		return ret;
	/* The number of records may have grown by the time they are read; the ring has no more than its places. */
	if (last > q->capacity)
		last = q->capacity;
	rec->r = calloc(last ? last : 1, sizeof(*rec->r));
	if (!rec->r)
		return -ENOMEM;
	*q = (struct swc_trace_query){
		.number = q->number,
		.first = q->written > last ? q->written - last : 0,
		.max_records = (uint32_t)last,
		.records = last ? (uintptr_t)rec->r : 0,
	};
	number = q->number;
	ret = device_ioctl(fd, SWC_IOC_TRACE, q);
	/* It may have been dropped in between: the next one has come then. */
	if (!ret && q->number != number)
		ret = -EAGAIN;
	if (ret)
		free(rec->r);
	rec->n = q->count;
	q->text[SWC_TEXT_BYTES - 1] = 0;
	return ret;
}

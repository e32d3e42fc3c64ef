/* SPDX-License-Identifier: GPL-2.0-only */
/* The recordings of communicators. */
#ifndef SWINGCTL_RECORDING_H
#define SWINGCTL_RECORDING_H

#include <linux/swingcoll.h>
#include <stddef.h>
#include <stdint.h>

/* A recording, as one call after the other returned it. */
struct recording {
	struct swc_trace_query q;
	struct swc_trace_record *r;
	size_t n;
};

/*
 * Read the last records, at most @last, of the first communicator from @number on. 0 or a negative errno; -EAGAIN:
 * it was dropped meanwhile. The caller frees rec->r.
 */
int recording_read(int fd, uint64_t number, uint64_t last, struct recording *rec);

#endif /* SWINGCTL_RECORDING_H */

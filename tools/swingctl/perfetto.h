/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recordings in the trace event format, which Perfetto (ui.perfetto.dev) and chrome://tracing read: "Trace
 * Event Format", docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
 */
#ifndef SWINGCTL_PERFETTO_H
#define SWINGCTL_PERFETTO_H

#include <cjson/cJSON.h>
#include <linux/swingcoll.h>
#include <stddef.h>
#include <stdint.h>

/* Add the events of communicator @number, in the order of their numbers, to the array of trace events. */
void perfetto_add(cJSON *events, uint64_t number, const struct swc_trace_record *r, size_t n);

#endif /* SWINGCTL_PERFETTO_H */

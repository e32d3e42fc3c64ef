// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packets of a message. Pure functions. */
#include <math.h>

#include "plan/model/packets.h"

#define PAYLOAD 4096

static double payload_of(const struct swc_packets *p)
{
	return p->payload > 0 ? p->payload : PAYLOAD;
}

/* How many parts of a size: those of n whole ones stay n if the size is a rounded fraction. */
static double parts(double bytes, double each)
{
	return fmax(ceil(bytes / each * (1 - 1e-12)), 1);
}

/* Bytes of a segment, with its header, on all its packets. */
static double segment_of(const struct swc_packets *p, double bytes)
{
	return (p->segment > 0 ? p->segment : bytes) + p->segment_header;
}

/* The segments of a message but the last, which may be shorter. */
static double full_segments(const struct swc_packets *p, double bytes)
{
	return p->segment > 0 ? parts(bytes, p->segment) - 1 : 0;
}

static double last_segment(const struct swc_packets *p, double bytes)
{
	return bytes - full_segments(p, bytes) * p->segment + p->segment_header;
}

struct swc_packets swc_packets_together(const struct swc_packets *p, double bytes, uint32_t n)
{
	struct swc_packets all = *p;
	double each = bytes / n, share;

	/* Without segments nothing is counted for a message. */
	if (n < 2 || !(p->segment > 0) || each > p->segment || !(each > 0))
		return all;
	share = fmax(floor(p->shared / (each + SWC_PACKETS_SIZE)), 1);
	share = fmin(share, n);
	all.segment = each * share;
	if (share > 1)
		all.segment_header += SWC_PACKETS_SIZE * share;
	return all;
}

uint64_t swc_packets_count(const struct swc_packets *p, double bytes)
{
	double each = parts(segment_of(p, bytes), payload_of(p));

	return (uint64_t)(full_segments(p, bytes) * each +
			  parts(last_segment(p, bytes), payload_of(p)));
}

double swc_packets_acks(const struct swc_packets *p, double bytes)
{
	return (full_segments(p, bytes) + 1) * p->ack;
}

double swc_packets_first(const struct swc_packets *p, double bytes, uint64_t n)
{
	double whole = segment_of(p, bytes), each = parts(whole, payload_of(p));
	double full = fmin(floor((double)n / each), full_segments(p, bytes));
	double rest = (double)n - full * each;
	double begun = full < full_segments(p, bytes) ? whole : last_segment(p, bytes);

	return full * whole + fmin(rest * payload_of(p), begun) + (double)n * p->header;
}

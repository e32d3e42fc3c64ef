/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Packets of a message: how many there are, and what they take on a link. A message is cut into
 * segments, each with a header in front, and each segment into packets with headers of their own.
 */
#ifndef SWC_PLAN_MODEL_PACKETS_H
#define SWC_PLAN_MODEL_PACKETS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct swc_packets - how messages are sent
 * @payload: most bytes of a packet without its headers; 0: 4096
 * @header: of a packet
 * @segment: most bytes of a segment without its header; 0: a message is one segment
 * @segment_header: of a segment
 * @whole: nodes between forward a packet when they have received all of it, as hosts and many
 *	routers do. Else when its first bytes have arrived
 */
struct swc_packets {
	double payload, header;
	double segment, segment_header;
	bool whole;
};

/* Those of the kernel's messages over RoCE v2 with IPv4, from the Ethernet header on. */
#define SWC_PACKETS_ROCE                                                                           \
	{                                                                                          \
		.payload = 4096, .header = 14 + 20 + 8 + 12 + 4, .segment = 32704,                 \
		.segment_header = 64                                                               \
	}

/* The number of packets of a message of so many bytes, at least 1. */
uint64_t swc_packets_count(const struct swc_packets *p, double bytes);

/* Bytes on a link of the first @n packets of such a message. */
double swc_packets_first(const struct swc_packets *p, double bytes, uint64_t n);

#endif /* SWC_PLAN_MODEL_PACKETS_H */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Packets of a message: how many there are, and what they take on a link. A message is cut into
 * segments, each with a header in front, and each segment into packets with headers of their own.
 * Small messages of a step to one peer share a segment, in which their sizes follow them.
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
 * @shared: most bytes of a segment that messages share, with their sizes; 0: none does
 * @ack: of the packet by which a segment is acknowledged; 0: none is
 * @whole: nodes between forward a packet when they have received all of it, as hosts and many
 *	routers do. Else when its first bytes have arrived
 */
struct swc_packets {
	double payload, header;
	double segment, segment_header, shared;
	double ack;
	bool whole;
};

#define SWC_PACKETS_SHARED (4096 - 64)
#define SWC_PACKETS_SIZE 4 /* bytes of the size of a message in such a segment */

/* Those of the kernel's messages over RoCE v2 with IPv4, from the Ethernet header on. */
#define SWC_PACKETS_ROCE                                                                           \
	{                                                                                          \
		.payload = 4096, .header = 14 + 20 + 8 + 12 + 4, .segment = 32768,                 \
		.segment_header = 64, .shared = SWC_PACKETS_SHARED, .ack = 62                      \
	}

/*
 * What @n messages of a step to one peer, of @bytes together, are sent like: as one message of so many
 * bytes, in segments of another size. They are taken for equally large.
 */
struct swc_packets swc_packets_together(const struct swc_packets *p, double bytes, uint32_t n);

/* The number of packets of a message of so many bytes, at least 1. */
uint64_t swc_packets_count(const struct swc_packets *p, double bytes);

/* Bytes on a link of what acknowledges such a message. */
double swc_packets_acks(const struct swc_packets *p, double bytes);

/* Bytes on a link of the first @n packets of such a message. */
double swc_packets_first(const struct swc_packets *p, double bytes, uint64_t n);

#endif /* SWC_PLAN_MODEL_PACKETS_H */

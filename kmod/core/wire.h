/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * What nodes say to each other. Everything that crosses the network is defined here, in little-endian.
 *
 * Connection. One reliable connection carries the messages between two ranks on one channel of their plans
 * and on one path between their nodes. The lower rank connects, with struct swc_wire_hello as private data;
 * the other accepts with struct swc_wire_accept or refuses with struct swc_wire_reject. The first message of
 * the lower rank is a PROOF; until it has come, the other side believes nothing else.
 *
 *	name = MAC(id, "swingcoll name")[8]		finds the communicator, says nothing of its id
 *	places = MAC(id, node of each rank)[4]		all ranks must say the same
 *	hello.mac  = MAC(id, hello up to the mac)
 *	accept.mac = MAC(id, hello, accept up to the mac)
 *	proof.mac  = MAC(id, hello, accept, "swingcoll proof")
 *
 * MAC is keyed BLAKE2s with 16 bytes of output, the key is the communicator's id. Both nonces are random, so
 * that neither side can be played an old handshake.
 *
 * Messages. Each is a SEND of a header and what belongs to it, into one landing slot of the receiver. DATA
 * costs the sender one credit; every header gives credits back. SWC_WIRE_SPARE receives more are for the
 * rest, which may not wait until DATA is taken: READYs and writes with immediate, no more than
 * SWC_WIRE_CHUNKS each that have not been looked at, and some short messages.
 *
 *	DATA	a segment of a message; ordinal counts the messages between the two ranks on this channel.
 *		One of a partition is copied out of its slot, if there is memory, unless
 *		somebody waits for it
 *	READY	memory for (a chunk of) a stored message of SWC_WIRE_DIRECT bytes or more, but of no
 *		partition: write it there, if it is of the same operation and size, and say so with the
 *		chunk's number as immediate
 *	WANT	a message of SWC_WIRE_DIRECT bytes or more has waited for its READY for a while. Nobody
 *		answers, but whoever has called something else learns of it
 *	CREDIT	gives credits back; seq is the number of operations that the rank has come to
 *	ASK	wants a CREDIT: how far is the rank?
 *	PROOF	see above
 *	ABORT	the communicator has ended, and why
 *	BYE	the rank has left; seq is the number of operations that it took part in
 */
#ifndef SWC_CORE_WIRE_H
#define SWC_CORE_WIRE_H

#include <linux/swingcoll.h>

#include "types.h"

#define SWC_WIRE_MAGIC		0x57435753u	/* "SWCW" */
#define SWC_WIRE_VERSION	5
#define SWC_WIRE_NAME		8
#define SWC_WIRE_NONCE		8
#define SWC_WIRE_MAC		16
#define SWC_WIRE_SPARE		16	/* receives beyond those that credits count */
#define SWC_WIRE_CHUNKS		4	/* READYs outstanding per connection and direction */
#define SWC_WIRE_DIRECT		(64u << 10)
#define SWC_WIRE_PARTITION	0x01	/* of a partitioned operation's partition */
#define SWC_WIRE_MIN_SLOTS	4
#define SWC_WIRE_MAX_SLOTS	1024
#define SWC_WIRE_MIN_SLOT	4096
#define SWC_WIRE_MAX_SLOT	(1u << 20)

struct swc_wire_hello {
	__le32 magic;
	__le16 version;
	u8     channel;
	u8     path;
	u8     name[SWC_WIRE_NAME];
	__le32 places;
	__le32 src;		/* the lower rank, who connects */
	__le32 dst;
	__le16 slots;		/* of the sender of this struct, */
	__le16 slot_kib;	/* and their size */
	u8     nonce[SWC_WIRE_NONCE];
	u8     mac[SWC_WIRE_MAC];
};

struct swc_wire_accept {
	__le32 magic;
	__le16 version;
	__le16 resv;
	__le16 slots;
	__le16 slot_kib;
	u8     nonce[SWC_WIRE_NONCE];
	u8     mac[SWC_WIRE_MAC];
};

/* Why a connection is refused. The peer tries again for some time after the first two. */
enum swc_wire_reason {
	SWC_WIRE_UNKNOWN = 1,	/* no such communicator here (yet) */
	SWC_WIRE_BUSY,		/* the connection exists, or memory is short */
	SWC_WIRE_VERSION_DIFFERS,
	SWC_WIRE_BAD,		/* makes no sense: ranks, path, sizes */
	SWC_WIRE_DENIED,	/* not proven */
	SWC_WIRE_ENDED,		/* the communicator was aborted, or all have left */
	SWC_WIRE_REASON_NR
};

struct swc_wire_reject {
	__le32 magic;
	__le16 version;		/* that the refusing side speaks */
	__le16 reason;
	/* If it has ended: as in an ABORT; 0: in order. */
	__le32 error;
	__le32 culprit;
};

enum swc_wire_kind {
	SWC_WIRE_DATA = 1, SWC_WIRE_READY, SWC_WIRE_CREDIT, SWC_WIRE_PROOF, SWC_WIRE_ABORT, SWC_WIRE_BYE,
	SWC_WIRE_ASK, SWC_WIRE_WANT, SWC_WIRE_KIND_NR
};

/*
 * Fields that a kind does not use are zero. DATA, READY and WANT carry the signature of their operation, so
 * that ranks that call different things are told apart.
 */
struct swc_wire_header {
	u8     kind;
	u8     flags;		/* DATA: SWC_WIRE_PARTITION or 0 */
	__le16 credits;		/* given back */
	__le32 ordinal;		/* DATA, READY, WANT */
	__le64 seq;		/* DATA, READY, WANT, ABORT, BYE, CREDIT */
	__le64 offset;		/* DATA, READY: of the segment in the message */
	__le64 total;		/* DATA, READY, WANT: bytes of the message */
	__le32 bytes;		/* DATA: that follow; READY: of the chunk */
	__le32 root;		/* DATA, READY, WANT from here on */
	__le64 count;
	__le64 family;
	u8     coll;
	u8     dtype;
	u8     redop;
	u8     resv1[5];
};

struct swc_wire_ready {
	__le64 addr;
	__le32 rkey;
	__le32 chunk;		/* below SWC_WIRE_CHUNKS */
};

struct swc_wire_abort {
	__le32 error;		/* positive errno */
	__le32 culprit;		/* rank plus one, 0: none */
	char   text[SWC_TEXT_BYTES];
};

/**
 * struct swc_wire_msg - a message that has been understood
 *
 * The fields are those of the header; @payload points into the message.
 */
struct swc_wire_msg {
	enum swc_wire_kind kind;
	bool partition;
	u32 credits;
	u32 ordinal;
	u64 seq;
	u64 offset;
	u64 total;
	u32 bytes;
	struct swc_desc sig;
	u64 family;
	const void *payload;
};

int swc_wire_parse(const void *data, u32 bytes, struct swc_wire_msg *msg);
int swc_wire_hello_check(const void *data, u32 bytes);
int swc_wire_accept_check(const void *data, u32 bytes);

#endif /* SWC_CORE_WIRE_H */

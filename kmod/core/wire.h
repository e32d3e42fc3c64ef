/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * The wire protocol between nodes. Everything that crosses the network is defined here, in little-endian.
 *
 * Connection. One reliable connection carries the messages between two ranks on one channel of their
 * plans and on one path between their nodes. The lower rank connects, with struct swc_wire_hello as
 * private data; the other rank accepts with struct swc_wire_accept or refuses with struct
 * swc_wire_reject. The first message of the lower rank is AUTH; the higher rank accepts no other message
 * before it.
 *
 *	name = MAC(id, "swingcoll name")[8]		finds the communicator, reveals nothing of its id
 *	places = MAC(id, node of each rank)[4]		must be the same on all ranks
 *	hello.mac  = MAC(id, hello up to the mac)
 *	accept.mac = MAC(id, hello, accept up to the mac)
 *	auth.mac   = MAC(id, hello, accept, "swingcoll proof", auth.seq)
 *	reject.mac = MAC(MAC(id, "swingcoll refusal"), hello, reject up to the mac)
 *
 * MAC is keyed BLAKE2s with 16 bytes of output; the key is the communicator's id. Both nonces are random,
 * so an old handshake cannot be replayed to either side. The lower rank numbers its requests: one that is
 * not newer than all before is refused, and a newer one ends an attempt for which AUTH has not arrived. So
 * a replayed request delays a connection by one attempt at most.
 *
 * A reject ends the communicator only if it has the right MAC. Without one (the refusing side does not
 * know the id, or anybody has forged it) the lower rank tries again until its deadline: nodes of different
 * versions notice that at the deadline only. The key of refusals is what a node keeps of a communicator
 * that has ended; it does not reveal the id.
 *
 * A stream that goes on. With several paths between two nodes, what the two ranks send each other is a
 * stream that outlives the sockets or queue pairs which carry it (tcp/stream.c, rdma/replay.c): when one
 * is lost, the lower rank connects again, by any path, with a newer hello. accept.received and auth.seq
 * tell how much of the stream each side has received, by TCP in bytes and by RDMA in messages, and the
 * other sends again from there. Handshakes and AUTH are not counted. After AUTH, the lower rank sends nothing
 * before it has received something, and the higher one sends a CREDIT when it has handled AUTH: an attempt
 * that the higher rank gives up before that takes no message of the stream along. By RDMA, an RTR whose
 * WRITTEN was not received is void: the memory is offered again. A rank gives its socket or queue pair up
 * for good before it sends another hello, so a hello that is authentic and newer than all before proves
 * that the one before it carries nothing any more; a replayed one is not newer. The higher rank cannot
 * connect: if it loses the socket first, it asks the lower one to, by a hello with src above dst and the
 * attempt's number that it has seen last. The lower rank always refuses that, and connects if this is the
 * attempt that it takes for alive.
 *
 * By TCP, hello is the first that the lower rank sends on the stream, and accept or reject the first that the
 * other rank sends; accept.resv, which is 0, tells it from a reject. Messages follow without anything between
 * them.
 *
 * By TLS, it is the same as by TCP, but all that follows accept is in records of TLS 1.3 with
 * ChaCha20-Poly1305. Each direction has its key (32 bytes) and IV (12 bytes):
 *
 *	to the higher rank: HASH(id, hello, accept, "swingcoll tls key up"), and with "swingcoll tls iv up"
 *	to the lower rank: HASH(id, hello, accept, "swingcoll tls key down"), and with "swingcoll tls iv down"
 *
 * HASH is BLAKE2s keyed with the id, with as many bytes of output. AUTH, in the first record of the lower
 * rank, is the last part of the handshake that proves it.
 *
 * Messages. Each is a header and its payload; by RDMA, a SEND into one receive buffer of the peer. DATA costs
 * the sender one credit; every header returns credits. By RDMA, SWC_WIRE_SPARE further receives are posted
 * for messages that must not wait until DATA is consumed. On iWARP, a message without a receive ends the
 * connection. So there are as many as there can be messages that the receiver has not handled, however long
 * that takes:
 *
 *	RTR, WRITTEN		SWC_WIRE_CHUNKS each: a chunk is offered again when its WRITTEN was handled,
 *				and WRITTEN is sent when its RTR was
 *	CREDIT			4: it is sent for a quarter of all credits, and those that it returns come
 *				back with DATA only (swc_policy_return())
 *	HEARTBEAT, RTS		1 in all: none is sent before the reply to the one before
 *	CREDIT as reply		1, for the same reason
 *	GROWN, ABORT, FIN	1 each in the life of a connection
 *	AUTH			0: the peer sends no RTR, hence gets no WRITTEN, before it has handled AUTH
 *	CREDIT behind AUTH	0: the higher rank's answer, if the connection can be resumed; likewise
 *	being handled		1: its receive is posted again after what it says may have been answered
 *
 * Probes that a transport sends to silent peers are not among them. By InfiniBand and RoCE they are CREDITs,
 * for which a sender may wait; on iWARP they are no messages (rdma/iwarp.c).
 *
 *	DATA	a segment of a message; ordinal counts the messages between the two ranks on this channel.
 *		The receiver copies a segment of a partition out of its receive buffer if no task waits for
 *		it and there is memory. By RDMA, SWC_WIRE_BATCH: the segment is several whole messages
 *		of one operation, no partitions, from ordinal on: offset is their number, total the bytes
 *		of all; their sizes, a __le32 each, follow them
 *	RTR	ready to receive: memory for (a chunk of) a stored message of SWC_WIRE_DIRECT bytes or more
 *		that is not a partition. If operation and size match, the sender writes the chunk there, and
 *		sends WRITTEN behind the last write; by TCP, it sends the chunk in WRITE messages
 *	WRITTEN	by RDMA only: a chunk is written; ordinal is its number. The SEND invalidates the chunk's key
 *		at the receiver, and no other message does that
 *	WRITE	by TCP only: a piece of a chunk; ordinal is the chunk's number, offset that of the piece in
 *		it. The pieces come in order
 *	RTS	request to send: a message of SWC_WIRE_DIRECT bytes or more has waited for its RTR for a
 *		while. A receiver that called another operation detects the mismatch. Asks for a CREDIT
 *	CREDIT	returns credits; seq is the number of operations that the rank has submitted.
 *		SWC_WIRE_REPLY: it is the reply to a HEARTBEAT or RTS
 *	GROWN	by RDMA: all receive buffers are larger now, of so many bytes; segments may be as large
 *	HEARTBEAT	asks for a CREDIT: how far is the rank?
 *	AUTH	see above; seq is the number of bytes or messages of the stream that were received
 *	ABORT	the communicator was aborted, and why
 *	FIN	the rank has left; seq is the number of operations that it took part in
 */
#ifndef SWC_CORE_WIRE_H
#define SWC_CORE_WIRE_H

#include <linux/swingcoll.h>

#include "signature.h"
#include "types.h"

#define SWC_WIRE_MAGIC		0x57435753u	/* "SWCW" */
#define SWC_WIRE_VERSION	11
#define SWC_WIRE_NAME		8
#define SWC_WIRE_NONCE		8
#define SWC_WIRE_MAC		16
#define SWC_WIRE_SPARE		18	/* receives beyond those that credits count: the sum above */
#define SWC_WIRE_CHUNKS		4	/* RTRs outstanding per connection and direction */
#define SWC_WIRE_DIRECT		(64u << 10)
#define SWC_WIRE_PARTITION	0x01	/* a partition of a partitioned operation */
#define SWC_WIRE_BATCH		0x02	/* several messages */
#define SWC_WIRE_REPLY		0x04
#define SWC_WIRE_RESUMABLE	0x01	/* in an accept: the stream can go on by another path */
#define SWC_WIRE_MIN_RX_BUFS	4
#define SWC_WIRE_MAX_RX_BUFS	1024
#define SWC_WIRE_MIN_RX_BUF	4096
#define SWC_WIRE_MAX_RX_BUF	(1u << 20)

struct swc_wire_hello {
	__le32 magic;
	__le16 version;
	u8     channel;
	u8     path;
	u8     name[SWC_WIRE_NAME];
	__le32 places;
	__le16 src;		/* the lower rank, which connects; above dst: it is asked to */
	__le16 dst;
	__le32 attempt;		/* number of the lower rank's request, from 1; 0: none was seen */
	__le16 rx_bufs;		/* receive buffers of the sender of this struct */
	__le16 rx_buf_kib;	/* the payload that each has room for, until GROWN */
	u8     nonce[SWC_WIRE_NONCE];
	u8     mac[SWC_WIRE_MAC];
};

struct swc_wire_accept {
	__le32 magic;
	__le16 version;
	__le16 resv;
	__le16 rx_bufs;
	__le16 rx_buf_kib;
	__le32 flags;		/* SWC_WIRE_RESUMABLE, or 0 */
	__le64 received;	/* bytes or messages of the stream */
	u8     nonce[SWC_WIRE_NONCE];
	u8     mac[SWC_WIRE_MAC];
};

/*
 * Why a connection is refused. SWC_WIRE_BAD and SWC_WIRE_ENDED with the right MAC end the communicator; in
 * all other cases the peer retries until its deadline.
 */
enum swc_wire_reason {
	SWC_WIRE_UNKNOWN = 1,	/* no such communicator here (yet) */
	SWC_WIRE_BUSY,		/* the connection exists, the request is not new, or memory is short */
	SWC_WIRE_VERSION_DIFFERS,
	SWC_WIRE_BAD,		/* malformed: ranks, path, sizes */
	SWC_WIRE_DENIED,	/* authentication failed */
	SWC_WIRE_ENDED,		/* the communicator was aborted, or all have left */
	SWC_WIRE_QUOTA,		/* the user's connections or memory are used up */
	SWC_WIRE_REASON_NR
};

struct swc_wire_reject {
	__le32 magic;
	__le16 version;		/* of the refusing side */
	__le16 reason;
	/* SWC_WIRE_ENDED: as in ABORT; 0: all ranks have left in order. */
	__le32 error;
	__le32 culprit;
	u8     mac[SWC_WIRE_MAC];	/* zero if the refusing side does not know the communicator */
};

enum swc_wire_kind {
	SWC_WIRE_DATA = 1, SWC_WIRE_RTR, SWC_WIRE_CREDIT, SWC_WIRE_AUTH, SWC_WIRE_ABORT, SWC_WIRE_FIN,
	SWC_WIRE_HEARTBEAT, SWC_WIRE_RTS, SWC_WIRE_WRITE, SWC_WIRE_WRITTEN, SWC_WIRE_GROWN, SWC_WIRE_KIND_NR
};

/*
 * Fields that a kind does not use are zero. DATA, RTR and RTS carry the signature of their operation, by
 * which ranks detect that they have called different operations.
 */
struct swc_wire_header {
	u8     kind;
	u8     flags;		/* DATA: SWC_WIRE_PARTITION, SWC_WIRE_BATCH; CREDIT: SWC_WIRE_REPLY; or 0 */
	__le16 credits;		/* returned */
	__le32 ordinal;		/* DATA, RTR, RTS, WRITE, WRITTEN */
	__le64 seq;		/* DATA, RTR, RTS, ABORT, FIN, CREDIT, AUTH */
	__le64 offset;		/* DATA, RTR: of the segment in the message; WRITE: in the chunk */
	__le64 total;		/* DATA, RTR, RTS: bytes of the message, or of several */
	__le32 bytes;		/* DATA, WRITE: payload that follows; RTR: size of the chunk; GROWN */
	__le32 root;		/* from here on: DATA, RTR, RTS */
	__le64 count;
	__le64 family;
	u8     coll;
	u8     dtype;
	u8     redop;
	u8     resv1;
	__le32 shard_blocks;
};

struct swc_wire_rtr {
	__le64 addr;		/* random, but for the part below a page; by TCP 0 */
	__le32 rkey;		/* by TCP 0 */
	__le32 chunk;		/* below SWC_WIRE_CHUNKS */
};

struct swc_wire_abort {
	__le32 error;		/* positive errno */
	__le32 culprit;		/* rank plus one, 0: none */
	char   text[SWC_TEXT_BYTES];
};

/**
 * struct swc_wire_msg - a parsed message
 *
 * The fields are those of the header, in host order; @payload points to what follows it. Of several messages
 * they are those of the first; swc_wire_next() goes on to the next one. @nmore: messages behind this one;
 * @sizes: theirs.
 */
struct swc_wire_msg {
	enum swc_wire_kind kind;
	u32 credits;
	u32 ordinal;
	u64 seq;
	u64 offset;
	u64 total;
	u32 bytes;
	struct swc_signature sig;
	const void *payload;
	bool is_reply;
	u32 nmore;
	const void *sizes;
};

s64 swc_wire_bytes(const struct swc_wire_header *h);
int swc_wire_parse(const struct swc_wire_header *h, const void *payload, u32 bytes, struct swc_wire_msg *msg);
bool swc_wire_next(struct swc_wire_msg *msg);
void swc_wire_sign(struct swc_wire_header *h, u64 seq, const struct swc_signature *sig);
int swc_wire_hello_check(const void *data, u32 bytes);
int swc_wire_accept_check(const void *data, u32 bytes);

#endif /* SWC_CORE_WIRE_H */

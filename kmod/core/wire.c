// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Parsing and checking what other nodes send. Every field is checked here before anything uses it; unknown
 * kinds and bits are refused.
 */
#include "blocks.h"
#include "wire.h"

static bool rx_bufs_ok(u32 rx_bufs, u32 rx_buf_kib)
{
	return rx_bufs >= SWC_WIRE_MIN_RX_BUFS && rx_bufs <= SWC_WIRE_MAX_RX_BUFS &&
	       rx_buf_kib >= SWC_WIRE_MIN_RX_BUF >> 10 && rx_buf_kib <= SWC_WIRE_MAX_RX_BUF >> 10;
}

/**
 * swc_wire_hello_check() - check a connection request
 *
 * Private data may arrive padded with zeros. Return: 0, or the enum swc_wire_reason to refuse it with.
 */
int swc_wire_hello_check(const void *data, u32 bytes)
{
	const struct swc_wire_hello *h = data;

	if (bytes < 8 || le32_to_cpu(h->magic) != SWC_WIRE_MAGIC)
		return SWC_WIRE_BAD;
	if (le16_to_cpu(h->version) != SWC_WIRE_VERSION)
		return SWC_WIRE_VERSION_DIFFERS;
	if (bytes < sizeof(*h))
		return SWC_WIRE_BAD;
	if (h->src == h->dst)
		return SWC_WIRE_BAD;
	/* The higher rank only asks the lower one for an attempt, perhaps for the first. */
	if (!h->attempt && le16_to_cpu(h->src) < le16_to_cpu(h->dst))
		return SWC_WIRE_BAD;
	if (h->channel >= SWC_MAX_CHANNELS || h->path >= SWC_MAX_PATHS)
		return SWC_WIRE_BAD;
	return rx_bufs_ok(le16_to_cpu(h->rx_bufs), le16_to_cpu(h->rx_buf_kib)) ? 0 : SWC_WIRE_BAD;
}

_Static_assert(SWC_MAX_RANKS <= 1 << 16, "a request has 16 bits for a rank");

/* The same for the reply. */
int swc_wire_accept_check(const void *data, u32 bytes)
{
	const struct swc_wire_accept *a = data;

	if (bytes < sizeof(*a) || le32_to_cpu(a->magic) != SWC_WIRE_MAGIC || a->resv ||
	    le32_to_cpu(a->flags) & ~SWC_WIRE_RESUMABLE)
		return SWC_WIRE_BAD;
	if (le16_to_cpu(a->version) != SWC_WIRE_VERSION)
		return SWC_WIRE_VERSION_DIFFERS;
	return rx_bufs_ok(le16_to_cpu(a->rx_bufs), le16_to_cpu(a->rx_buf_kib)) ? 0 : SWC_WIRE_BAD;
}

static int check_sig(const struct swc_signature *s)
{
	return s->coll < SWC_COLL_NR && s->dtype < SWC_DTYPE_NR && s->redop < SWC_REDOP_NR ? 0 : -EPROTO;
}

static u32 read_size(const void *at)
{
	__le32 size;

	memcpy(&size, at, sizeof(size));
	return le32_to_cpu(size);
}

/* Several messages, and their sizes behind them: make @m the first of them. */
static int unpack(struct swc_wire_msg *m)
{
	u64 n = m->offset, room = m->bytes, sum = 0;
	u32 i;

	if (n < 2 || m->sig.partitioned || n > room / sizeof(__le32) || m->total != room - n * sizeof(__le32))
		return -EPROTO;
	m->sizes = m->payload + m->total;
	for (i = 0; i < n; i++)
		sum += read_size(m->sizes + i * sizeof(__le32));
	if (sum != m->total)
		return -EPROTO;
	m->nmore = n;
	m->bytes = 0;
	m->offset = 0;
	m->ordinal--;
	swc_wire_next(m);
	return 0;
}

static int check_data(const struct swc_wire_msg *m)
{
	if (m->total > SWC_MAX_VECTOR_BYTES || m->offset > m->total || m->bytes > m->total - m->offset)
		return -EPROTO;
	/* Only an empty message has an empty segment. */
	if (!m->bytes != !m->total)
		return -EPROTO;
	return check_sig(&m->sig);
}

static int check_rtr(const struct swc_wire_msg *m)
{
	const struct swc_wire_rtr *r = m->payload;

	if (m->total > SWC_MAX_VECTOR_BYTES || m->total < SWC_WIRE_DIRECT || !m->bytes ||
	    m->offset > m->total || m->bytes > m->total - m->offset)
		return -EPROTO;
	return le32_to_cpu(r->chunk) < SWC_WIRE_CHUNKS ? check_sig(&m->sig) : -EPROTO;
}

static int check_write(const struct swc_wire_msg *m)
{
	return m->ordinal < SWC_WIRE_CHUNKS && m->bytes && m->offset < SWC_MAX_VECTOR_BYTES ? 0 : -EPROTO;
}

static int check_grown(const struct swc_wire_msg *m)
{
	return rx_bufs_ok(SWC_WIRE_MIN_RX_BUFS, m->bytes >> 10) && !(m->bytes & 1023) ? 0 : -EPROTO;
}

static int check_rts(const struct swc_wire_msg *m)
{
	return m->total > SWC_MAX_VECTOR_BYTES || m->total < SWC_WIRE_DIRECT ? -EPROTO : check_sig(&m->sig);
}

/* Fields that belong to operations are zero in all other kinds. */
static bool unused_are_zero(const struct swc_wire_msg *m)
{
	const struct swc_signature *s = &m->sig;

	if (m->kind == SWC_WIRE_DATA)
		return true;
	if (s->partitioned)
		return false;
	if (m->kind == SWC_WIRE_RTR)
		return true;
	if (m->kind == SWC_WIRE_RTS)
		return !m->offset && !m->bytes;
	if (s->root || s->count || s->coll || s->dtype || s->redop || s->family || s->shard_blocks)
		return false;
	if (m->kind == SWC_WIRE_WRITE)
		return !m->seq && !m->total;
	if ((m->ordinal && m->kind != SWC_WIRE_WRITTEN) || m->offset || m->total ||
	    (m->bytes && m->kind != SWC_WIRE_GROWN))
		return false;
	return !m->seq || m->kind == SWC_WIRE_CREDIT || m->kind == SWC_WIRE_AUTH ||
	       m->kind == SWC_WIRE_ABORT || m->kind == SWC_WIRE_FIN;
}

/**
 * swc_wire_bytes() - size of the message that a header begins
 *
 * Return: the header included; -1 if the kind is unknown.
 */
s64 swc_wire_bytes(const struct swc_wire_header *h)
{
	switch (h->kind) {
	case SWC_WIRE_DATA:
	case SWC_WIRE_WRITE:
		return sizeof(*h) + (s64)le32_to_cpu(h->bytes);
	case SWC_WIRE_RTR:
		return sizeof(*h) + sizeof(struct swc_wire_rtr);
	case SWC_WIRE_AUTH:
		return sizeof(*h) + SWC_WIRE_MAC;
	case SWC_WIRE_ABORT:
		return sizeof(*h) + sizeof(struct swc_wire_abort);
	case SWC_WIRE_CREDIT:
	case SWC_WIRE_HEARTBEAT:
	case SWC_WIRE_RTS:
	case SWC_WIRE_FIN:
	case SWC_WIRE_WRITTEN:
	case SWC_WIRE_GROWN:
		return sizeof(*h);
	default:
		return -1;
	}
}

/**
 * swc_wire_next() - go on to the next of several messages
 *
 * Return: false if this is the last one.
 */
bool swc_wire_next(struct swc_wire_msg *msg)
{
	if (!msg->nmore)
		return false;
	msg->nmore--;
	msg->payload += msg->bytes;
	msg->ordinal++;
	msg->bytes = read_size(msg->sizes);
	msg->total = msg->bytes;
	msg->sizes += sizeof(__le32);
	return true;
}

/**
 * swc_wire_sign() - note in a header which operation the message belongs to
 * @h: header of a DATA, RTR or RTS message
 * @seq: the operation's number
 * @sig: its signature
 */
void swc_wire_sign(struct swc_wire_header *h, u64 seq, const struct swc_signature *sig)
{
	h->seq = cpu_to_le64(seq);
	h->root = cpu_to_le32(sig->root);
	h->count = cpu_to_le64(sig->count);
	h->family = cpu_to_le64(sig->family);
	h->shard_blocks = cpu_to_le32(sig->shard_blocks);
	h->flags = sig->partitioned ? SWC_WIRE_PARTITION : 0;
	h->coll = sig->coll;
	h->dtype = sig->dtype;
	h->redop = sig->redop;
}

/**
 * swc_wire_parse() - parse one message
 * @h: its header, aligned to 8
 * @payload: what follows the header, which may lie elsewhere
 * @bytes: bytes received, with the header
 * @msg: filled in
 *
 * The payload of DATA and WRITE is not read, except the sizes of several messages. Return: 0, or -EPROTO
 * unless it is a complete and consistent message of this version.
 */
int swc_wire_parse(const struct swc_wire_header *h, const void *payload, u32 bytes, struct swc_wire_msg *msg)
{
	if (bytes < sizeof(*h) || h->resv1)
		return -EPROTO;
	if (h->flags & ~(SWC_WIRE_PARTITION | SWC_WIRE_BATCH | SWC_WIRE_REPLY))
		return -EPROTO;
	memset(msg, 0, sizeof(*msg));
	msg->kind = h->kind;
	msg->sig.partitioned = h->flags & SWC_WIRE_PARTITION;
	msg->is_reply = h->flags & SWC_WIRE_REPLY;
	msg->credits = le16_to_cpu(h->credits);
	msg->ordinal = le32_to_cpu(h->ordinal);
	msg->seq = le64_to_cpu(h->seq);
	msg->offset = le64_to_cpu(h->offset);
	msg->total = le64_to_cpu(h->total);
	msg->bytes = le32_to_cpu(h->bytes);
	msg->sig.coll = h->coll;
	msg->sig.dtype = h->dtype;
	msg->sig.redop = h->redop;
	msg->sig.root = le32_to_cpu(h->root);
	msg->sig.count = le64_to_cpu(h->count);
	msg->sig.family = le64_to_cpu(h->family);
	msg->sig.shard_blocks = le32_to_cpu(h->shard_blocks);
	msg->payload = payload;
	if (swc_wire_bytes(h) != (s64)bytes || !unused_are_zero(msg))
		return -EPROTO;
	if (h->flags & SWC_WIRE_BATCH && (msg->kind != SWC_WIRE_DATA || unpack(msg)))
		return -EPROTO;
	if (msg->is_reply && msg->kind != SWC_WIRE_CREDIT)
		return -EPROTO;
	switch (msg->kind) {
	case SWC_WIRE_DATA:
		return check_data(msg);
	case SWC_WIRE_RTR:
		return check_rtr(msg);
	case SWC_WIRE_RTS:
		return check_rts(msg);
	case SWC_WIRE_WRITE:
		return check_write(msg);
	case SWC_WIRE_WRITTEN:
		return msg->ordinal < SWC_WIRE_CHUNKS ? 0 : -EPROTO;
	case SWC_WIRE_GROWN:
		return check_grown(msg);
	default:
		return 0;
	}
}

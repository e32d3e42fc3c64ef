// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Understanding what other nodes say. Nothing is believed that is not checked here first; what is unknown is
 * refused.
 */
#include "blocks.h"
#include "wire.h"

static bool slots_ok(u32 slots, u32 slot_kib)
{
	return slots >= SWC_WIRE_MIN_SLOTS && slots <= SWC_WIRE_MAX_SLOTS &&
	       slot_kib >= SWC_WIRE_MIN_SLOT >> 10 && slot_kib <= SWC_WIRE_MAX_SLOT >> 10;
}

/**
 * swc_wire_hello_check() - is this private data a request of our version?
 *
 * Private data may have been padded with zeros on the way. Return: 0 or the enum swc_wire_reason to refuse
 * with.
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
	if (le32_to_cpu(h->src) >= le32_to_cpu(h->dst) || le32_to_cpu(h->dst) >= SWC_MAX_RANKS)
		return SWC_WIRE_BAD;
	if (h->channel >= SWC_MAX_CHANNELS || h->path >= SWC_MAX_PATHS)
		return SWC_WIRE_BAD;
	return slots_ok(le16_to_cpu(h->slots), le16_to_cpu(h->slot_kib)) ? 0 : SWC_WIRE_BAD;
}

/* Likewise for the answer. */
int swc_wire_accept_check(const void *data, u32 bytes)
{
	const struct swc_wire_accept *a = data;

	if (bytes < sizeof(*a) || le32_to_cpu(a->magic) != SWC_WIRE_MAGIC || a->resv)
		return SWC_WIRE_BAD;
	if (le16_to_cpu(a->version) != SWC_WIRE_VERSION)
		return SWC_WIRE_VERSION_DIFFERS;
	return slots_ok(le16_to_cpu(a->slots), le16_to_cpu(a->slot_kib)) ? 0 : SWC_WIRE_BAD;
}

static int check_sig(const struct swc_desc *d)
{
	return d->coll < SWC_COLL_NR && d->dtype < SWC_DTYPE_NR && d->redop < SWC_REDOP_NR ? 0 : -EPROTO;
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

static int check_ready(const struct swc_wire_msg *m)
{
	const struct swc_wire_ready *r = m->payload;

	if (m->total > SWC_MAX_VECTOR_BYTES || m->total < SWC_WIRE_DIRECT || !m->bytes ||
	    m->offset > m->total || m->bytes > m->total - m->offset)
		return -EPROTO;
	return le32_to_cpu(r->chunk) < SWC_WIRE_CHUNKS ? check_sig(&m->sig) : -EPROTO;
}

static int check_want(const struct swc_wire_msg *m)
{
	return m->total > SWC_MAX_VECTOR_BYTES || m->total < SWC_WIRE_DIRECT ? -EPROTO : check_sig(&m->sig);
}

/* Fields that only messages of operations have are zero in others. */
static bool unused_are_zero(const struct swc_wire_msg *m)
{
	const struct swc_desc *d = &m->sig;

	if (m->kind == SWC_WIRE_DATA)
		return true;
	if (m->partition)
		return false;
	if (m->kind == SWC_WIRE_READY)
		return true;
	if (m->kind == SWC_WIRE_WANT)
		return !m->offset && !m->bytes;
	if (d->root || d->count || d->coll || d->dtype || d->redop || m->family)
		return false;
	if (m->ordinal || m->offset || m->total || m->bytes)
		return false;
	return !m->seq || m->kind == SWC_WIRE_CREDIT || m->kind == SWC_WIRE_ABORT || m->kind == SWC_WIRE_BYE;
}

/* What must follow the header. */
static s64 payload_bytes(const struct swc_wire_msg *m)
{
	switch (m->kind) {
	case SWC_WIRE_DATA:
		return m->bytes;
	case SWC_WIRE_READY:
		return sizeof(struct swc_wire_ready);
	case SWC_WIRE_PROOF:
		return SWC_WIRE_MAC;
	case SWC_WIRE_ABORT:
		return sizeof(struct swc_wire_abort);
	case SWC_WIRE_CREDIT:
	case SWC_WIRE_ASK:
	case SWC_WIRE_WANT:
	case SWC_WIRE_BYE:
		return 0;
	default:
		return -1;
	}
}

/**
 * swc_wire_parse() - understand one message
 * @data: its first byte, aligned to 8
 * @bytes: as many as came
 * @msg: filled in
 *
 * Return: 0, or -EPROTO if it is anything but a message of this version, whole and consistent.
 */
int swc_wire_parse(const void *data, u32 bytes, struct swc_wire_msg *msg)
{
	const struct swc_wire_header *h = data;
	u32 i;

	if (bytes < sizeof(*h) || (h->flags & ~SWC_WIRE_PARTITION))
		return -EPROTO;
	for (i = 0; i < sizeof(h->resv1); i++)
		if (h->resv1[i])
			return -EPROTO;
	memset(msg, 0, sizeof(*msg));
	msg->kind = h->kind;
	msg->partition = h->flags & SWC_WIRE_PARTITION;
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
	msg->family = le64_to_cpu(h->family);
	msg->payload = h + 1;
	if (payload_bytes(msg) != (s64)bytes - (s64)sizeof(*h) || !unused_are_zero(msg))
		return -EPROTO;
	switch (msg->kind) {
	case SWC_WIRE_DATA:
		return check_data(msg);
	case SWC_WIRE_READY:
		return check_ready(msg);
	case SWC_WIRE_WANT:
		return check_want(msg);
	default:
		return 0;
	}
}

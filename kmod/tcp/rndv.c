// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rendezvous: memory that a peer writes a message into. It is offered in chunks; rx_work receives the pieces
 * of a chunk straight into it. A chunk that is complete is out of the peer's reach at once.
 */
#include "tcp/tcp.h"

/* Few chunks for a large message; the sender interleaves pieces with other messages. */
#define CHUNK_BYTES	(16u << 20)

/**
 * swc_tcp_rndv_offer() - make the next RTR that is due, in conn->tx.page; conn->lock is held
 *
 * Return: false if there is none.
 */
bool swc_tcp_rndv_offer(struct swc_tcp_conn *conn)
{
	struct swc_wire_header *h = conn->tx.page;
	struct swc_wire_rtr *rtr = (void *)(h + 1);
	struct swc_tcp_chunk *c = NULL;
	struct swc_rndv *rndv;
	u32 i, nfree = 0;

	lockdep_assert_held(&conn->base.lock);
	if (list_empty(&conn->base.rndvs))
		return false;
	for (i = 0; i < SWC_WIRE_CHUNKS; i++) {
		if (conn->chunk[i].rndv)
			continue;
		c = c ?: &conn->chunk[i];
		nfree++;
	}
	rndv = c ? swc_tx_next_rndv(&conn->base, nfree) : NULL;
	if (!rndv)
		return false;
	*c = (struct swc_tcp_chunk){ .rndv = rndv, .at = rndv->offered,
				     .bytes = min_t(u64, rndv->bytes - rndv->offered, CHUNK_BYTES) };
	swc_tx_rtr(&conn->base, h, rndv, c->bytes);
	*rtr = (struct swc_wire_rtr){ .chunk = cpu_to_le32(c - conn->chunk) };
	rndv->offered += c->bytes;
	return true;
}

/**
 * swc_tcp_rndv_begin() - a piece of a chunk comes
 * @msg: WRITE
 * @chunk: gets the chunk
 *
 * Return: 0; -EPROTO if the piece does not continue a chunk that was offered.
 */
int swc_tcp_rndv_begin(struct swc_tcp_conn *conn, const struct swc_wire_msg *msg,
		       struct swc_tcp_chunk **chunk)
{
	struct swc_tcp_chunk *c = &conn->chunk[msg->ordinal];
	int ret = -EPROTO;

	spin_lock(&conn->base.lock);
	if (c->rndv && msg->offset == c->got && msg->bytes <= c->bytes - c->got)
		ret = 0;
	spin_unlock(&conn->base.lock);
	*chunk = c;
	return ret;
}

/**
 * swc_tcp_rndv_written() - a piece of a chunk has been received; no locks held
 */
void swc_tcp_rndv_written(struct swc_tcp_conn *conn, struct swc_tcp_chunk *c, u32 bytes)
{
	struct swc_rndv *rndv = c->rndv;
	bool done = false, closed = false;

	spin_lock(&conn->base.lock);
	c->got += bytes;
	if (c->got == c->bytes) {
		done = swc_rx_written(rndv, c->bytes);
		rndv->closed += c->bytes;
		closed = rndv->closed == rndv->bytes;
		if (closed)
			list_del(&rndv->node);
		c->rndv = NULL;
	}
	spin_unlock(&conn->base.lock);
	if (done)
		swc_net_ops->rndv_done(rndv);
	if (closed)
		swc_net_ops->rndv_closed(rndv, 0);
}

/* The socket is gone. */
void swc_tcp_rndv_reset(struct swc_tcp_conn *conn)
{
	memset(conn->chunk, 0, sizeof(conn->chunk));
}

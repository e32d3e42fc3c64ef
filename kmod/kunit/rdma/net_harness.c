// SPDX-License-Identifier: GPL-2.0-only
/*
 * Setup and teardown of each test that connects nodes, and checks that several of them share.
 */
#include <linux/delay.h>

#include "rdma/rdma.h"
#include "kunit/rdma/net_harness.h"

const struct swc_t_layout swc_t_two_nodes = { 2, 1, false, { 0, 1 } };

static u64 opened, closed;
static unsigned int rx_bufs, rx_buf_kib, abort_ms, auth_ms;

int swc_t_net_init(struct kunit *test)
{
	struct ib_device *ib = ib_device_get_by_name(SWC_T_DEVICE, RDMA_DRIVER_RXE);

	/* Restored by swc_t_net_exit(). */
	rx_bufs = swc_rdma_rx_bufs;
	rx_buf_kib = swc_rdma_rx_buf_kib;
	abort_ms = swc_abort_ms;
	auth_ms = swc_auth_ms;
	/* All peers are notified of an abort, however busy the machine is. */
	swc_abort_ms = 20000;
	opened = swc_stat_read(SWC_STAT_CONNS_OPENED);
	closed = swc_stat_read(SWC_STAT_CONNS_CLOSED);
	if (!ib)
		kunit_skip(test, "NO RDMA DEVICE " SWC_T_DEVICE ": connections between nodes are NOT tested");
	ib_device_put(ib);
	return 0;
}

void swc_t_net_exit(struct kunit *test)
{
	swc_rdma_rx_bufs = rx_bufs;
	swc_rdma_rx_buf_kib = rx_buf_kib;
	swc_t_refuse_maps(0);
	swc_abort_ms = abort_ms;
	swc_auth_ms = auth_ms;
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_CONNS_OPENED) - opened,
			swc_stat_read(SWC_STAT_CONNS_CLOSED) - closed);
}

/* Likewise, with connections by TCP. */
int swc_t_tcp_init(struct kunit *test)
{
	swc_t_transport = SWC_TRANSPORT_TCP;
	return swc_t_net_init(test);
}

void swc_t_tcp_exit(struct kunit *test)
{
	swc_t_net_exit(test);
	swc_t_transport = SWC_TRANSPORT_RDMA;
}

struct swc_net *swc_t_net(struct swc_t_comm *c, u32 rank)
{
	return swc_t_rank_comm(c, rank)->net;
}

struct swc_conn *swc_t_only_conn(struct swc_t_comm *c, u32 rank)
{
	struct swc_net *net = swc_t_net(c, rank);
	struct swc_conn *conn;

	mutex_lock(&net->lock);
	KUNIT_EXPECT_TRUE(c->test, list_is_singular(&net->all));
	conn = list_first_entry(&net->all, struct swc_conn, node);
	mutex_unlock(&net->lock);
	return conn;
}

/* The other end of a connection. */
static struct swc_conn *twin(struct swc_t_comm *c, const struct swc_conn *conn)
{
	struct swc_conn *other;
	unsigned long key;

	xa_for_each(&swc_t_net(c, conn->peer)->conns, key, other)
		if (other->me == conn->peer && other->peer == conn->me &&
		    other->channel == conn->channel && other->path == conn->path)
			return other;
	return NULL;
}

/* Each credit is at the sender, or at the receiver until its next message. */
static bool credits_complete(struct swc_t_comm *c)
{
	struct swc_conn *conn, *other;
	unsigned long key;
	u32 r;

	for (r = 0; r < c->nranks; r++) {
		xa_for_each(&swc_t_net(c, r)->conns, key, conn) {
			other = twin(c, conn);
			if (!other || READ_ONCE(conn->credits) + READ_ONCE(other->to_return) !=
				      conn->peer_rx_bufs)
				return false;
		}
	}
	return true;
}

void swc_t_expect_credits(struct swc_t_comm *c)
{
	u32 i;

	for (i = 0; i < 250 && !credits_complete(c); i++)
		msleep(20);
	KUNIT_EXPECT_TRUE(c->test, credits_complete(c));
}

void swc_t_expect_sent(struct swc_t_job *job, u32 sender)
{
	struct swc_region *from = swc_t_region(job->c, sender, job->desc[sender].send_region);
	struct swc_region *to = swc_t_region(job->c, !sender, job->desc[!sender].recv_region);
	u64 i;

	for (i = 0; i < job->count; i++)
		if (*(u64 *)swc_t_at(to, i * 8) != *(u64 *)swc_t_at(from, i * 8))
			break;
	KUNIT_EXPECT_EQ(job->c->test, i, job->count);
}

int swc_t_leave(struct swc_t_comm *c, u32 rank)
{
	return swc_comm_leave(&c->rank[rank].ctx, c->rank[rank].handle);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The beginning and the end of each test that connects nodes, and what several of them look for.
 */
#include <linux/delay.h>

#include "rdma/rdma.h"
#include "net_harness.h"

const struct swc_t_layout swc_t_two_nodes = { 2, 1, false, { 0, 1 } };

static u64 opened, closed;
static unsigned int slots, slot_kib, tell_ms;

int swc_t_net_init(struct kunit *test)
{
	struct ib_device *ib = ib_device_get_by_name(SWC_T_DEVICE, RDMA_DRIVER_RXE);

	/* Put back by swc_t_net_exit(). */
	slots = swc_slots;
	slot_kib = swc_slot_kib;
	tell_ms = swc_tell_ms;
	/* Who is told what has happened must not depend on how busy the machine is. */
	swc_tell_ms = 20000;
	opened = swc_stat_read(SWC_STAT_CONNS_OPENED);
	closed = swc_stat_read(SWC_STAT_CONNS_CLOSED);
	if (!ib)
		kunit_skip(test, "NO RDMA DEVICE " SWC_T_DEVICE ": connections between nodes are NOT tested");
	ib_device_put(ib);
	return 0;
}

void swc_t_net_exit(struct kunit *test)
{
	swc_slots = slots;
	swc_slot_kib = slot_kib;
	swc_t_refuse_maps(0);
	swc_tell_ms = tell_ms;
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_CONNS_OPENED) - opened,
			swc_stat_read(SWC_STAT_CONNS_CLOSED) - closed);
}

/* The other end of a connection. */
static struct swc_conn *twin(struct swc_t_comm *c, const struct swc_conn *conn)
{
	struct swc_conn *other;
	unsigned long key;

	xa_for_each(&swc_t_of(c, conn->peer)->net->conns, key, other)
		if (other->me == conn->peer && other->peer == conn->me &&
		    other->channel == conn->channel && other->path == conn->path)
			return other;
	return NULL;
}

/* All credits are either with the sender or kept by the receiver for its next message. */
static bool at_rest(struct swc_t_comm *c)
{
	struct swc_conn *conn, *other;
	unsigned long key;
	u32 r;

	for (r = 0; r < c->nranks; r++) {
		xa_for_each(&swc_t_of(c, r)->net->conns, key, conn) {
			other = twin(c, conn);
			if (!other || READ_ONCE(conn->credits) + READ_ONCE(other->to_return) !=
				      conn->peer_slots)
				return false;
		}
	}
	return true;
}

void swc_t_expect_rest(struct swc_t_comm *c)
{
	u32 i;

	for (i = 0; i < 250 && !at_rest(c); i++)
		msleep(20);
	KUNIT_EXPECT_TRUE(c->test, at_rest(c));
}

void swc_t_expect_gift(struct swc_t_job *job, u32 giver)
{
	struct swc_region *from = swc_t_region(job->c, giver, job->desc[giver].send_region);
	struct swc_region *to = swc_t_region(job->c, !giver, job->desc[!giver].recv_region);
	u64 i;

	for (i = 0; i < job->count; i++)
		if (*(u64 *)swc_t_at(to, i * 8) != *(u64 *)swc_t_at(from, i * 8))
			break;
	KUNIT_EXPECT_EQ(job->c->test, i, job->count);
}

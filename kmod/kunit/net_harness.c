// SPDX-License-Identifier: GPL-2.0-only
/*
 * The beginning and the end of each test that connects nodes.
 */
#include "../rdma/rdma.h"
#include "net_harness.h"

const struct swc_t_layout swc_t_two_nodes = { 2, 1, false, { 0, 1 } };

static u64 opened, closed;
static unsigned int slots, slot_kib;

int swc_t_net_init(struct kunit *test)
{
	struct ib_device *ib = ib_device_get_by_name(SWC_T_DEVICE, RDMA_DRIVER_RXE);

	/* Put back by swc_t_net_exit(). */
	slots = swc_slots;
	slot_kib = swc_slot_kib;
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
	KUNIT_EXPECT_EQ(test, swc_stat_read(SWC_STAT_CONNS_OPENED) - opened,
			swc_stat_read(SWC_STAT_CONNS_CLOSED) - closed);
}

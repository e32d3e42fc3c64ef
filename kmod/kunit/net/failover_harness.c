// SPDX-License-Identifier: GPL-2.0-only
#include <linux/delay.h>

#include "kunit/net/failover_harness.h"

const struct swc_t_layout swc_t_three_paths = { 2, SWC_T_PATHS, false, { 0, 1 } };

static const enum swc_transport_kind transports[] = {
	SWC_TRANSPORT_TCP, SWC_TRANSPORT_TLS, SWC_TRANSPORT_RDMA
};

static void transport_desc(const enum swc_transport_kind *kind, char *desc)
{
	static const char *const names[] = { "RDMA", "TCP", "TLS" };

	strscpy(desc, names[*kind], KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(transport, transports, transport_desc);

const void *swc_t_transport_gen_params(const void *prev, char *desc)
{
	return transport_gen_params(prev, desc);
}

void swc_t_use_transport(struct kunit *test, enum swc_transport_kind kind)
{
	if (!swc_transport_port(kind))
		kunit_skip(test, "not in this kernel");
	swc_t_transport = kind;
}

void swc_t_use_param(struct kunit *test)
{
	swc_t_use_transport(test, *(const enum swc_transport_kind *)test->param_value);
}

void swc_t_failover_exit(struct kunit *test)
{
	swc_t_net_exit(test);
	swc_t_transport = SWC_TRANSPORT_RDMA;
}

struct swc_t_before_loss swc_t_before_loss(struct swc_t_comm *c)
{
	return (struct swc_t_before_loss){
		.resumed = swc_stat_read(SWC_STAT_CONNS_RESUMED),
		.attempt = swc_t_only_conn(c, 0)->attempt,
	};
}

/*
 * Each end counts an attempt once at most; of several, where the machine is slow, one end may have given up
 * one that the other end has counted.
 */
void swc_t_wait_resumed(struct kunit *test, struct swc_t_comm *c, const struct swc_t_before_loss *before)
{
	struct swc_t_before_loss now;
	bool good = false;
	u32 i;

	for (i = 0; i < 500 && !good; i++) {
		good = swc_stat_read(SWC_STAT_CONNS_RESUMED) >= before->resumed + 2 &&
		       READ_ONCE(swc_t_only_conn(c, 0)->state) == SWC_CONN_LIVE &&
		       READ_ONCE(swc_t_only_conn(c, 1)->state) == SWC_CONN_LIVE;
		if (!good)
			msleep(20);
	}
	KUNIT_EXPECT_TRUE(test, good);
	now = swc_t_before_loss(c);
	KUNIT_EXPECT_LE(test, now.resumed - before->resumed, 2ull * (now.attempt - before->attempt));
}

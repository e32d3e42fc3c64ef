/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the suites of connections that lose their path: two nodes with several paths, by each transport.
 */
#ifndef SWC_KUNIT_FAILOVER_HARNESS_H
#define SWC_KUNIT_FAILOVER_HARNESS_H

#include "net/conn.h"
#include "kunit/rdma/net_harness.h"

#define SWC_T_PATHS	3

/* Two nodes with a rank each, connected by all these paths. */
extern const struct swc_t_layout swc_t_three_paths;

/* Parameters of a case that runs by each transport, and the function that begins it. */
const void *swc_t_transport_gen_params(const void *prev, char *desc);
void swc_t_use_param(struct kunit *test);
/* Skips the case if the kernel does not have the transport. */
void swc_t_use_transport(struct kunit *test, enum swc_transport_kind kind);
/* For struct kunit_suite, beside swc_t_net_init(). */
void swc_t_failover_exit(struct kunit *test);

/* Before the only connection is lost: how often ends have gone on, and the number of the last attempt. */
struct swc_t_before_loss {
	u64 resumed;
	u32 attempt;
};

struct swc_t_before_loss swc_t_before_loss(struct swc_t_comm *c);
/* Both ends go on by another stream or queue pair. */
void swc_t_wait_resumed(struct kunit *test, struct swc_t_comm *c, const struct swc_t_before_loss *before);

#endif /* SWC_KUNIT_FAILOVER_HARNESS_H */

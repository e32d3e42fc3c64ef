/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the suites that connect nodes. uml/init.c makes the RDMA device; without it they are skipped.
 */
#ifndef SWC_KUNIT_NET_HARNESS_H
#define SWC_KUNIT_NET_HARNESS_H

#include "kunit/harness.h"

#define SWC_T_DEVICE	"rxe0"

struct swc_conn;
struct swc_net;

extern const struct swc_t_layout swc_t_two_nodes;

/*
 * For struct kunit_suite. Each test may set swc_rdma_rx_bufs, swc_rdma_rx_buf_kib, swc_abort_ms and
 * swc_auth_ms, and must close all connections.
 */
int swc_t_net_init(struct kunit *test);
void swc_t_net_exit(struct kunit *test);
int swc_t_tcp_init(struct kunit *test);
/* The rank leaves in order. 0 or a negative errno. */
int swc_t_leave(struct swc_t_comm *c, u32 rank);
void swc_t_tcp_exit(struct kunit *test);

/* The net of the node that a rank is on. */
struct swc_net *swc_t_net(struct swc_t_comm *c, u32 rank);
/* The only connection of a rank. It stays until the rank leaves. */
struct swc_conn *swc_t_only_conn(struct swc_t_comm *c, u32 rank);
/* All credits are returned, soon. */
void swc_t_expect_credits(struct swc_t_comm *c);
/* Of two ranks, the other has received what @sender sent. */
void swc_t_expect_sent(struct swc_t_job *job, u32 sender);

#endif /* SWC_KUNIT_NET_HARNESS_H */

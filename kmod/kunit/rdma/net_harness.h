/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the suites that connect nodes share. uml/init.c makes the device; without one they are skipped.
 */
#ifndef SWC_KUNIT_NET_HARNESS_H
#define SWC_KUNIT_NET_HARNESS_H

#include "kunit/harness.h"

#define SWC_T_DEVICE	"rxe0"

extern const struct swc_t_layout swc_t_two_nodes;

/*
 * For struct kunit_suite. Each test may set swc_slots, swc_slot_kib and swc_tell_ms, and must close all
 * connections.
 */
int swc_t_net_init(struct kunit *test);
void swc_t_net_exit(struct kunit *test);

/* All credits come back. */
void swc_t_expect_rest(struct swc_t_comm *c);
/* Of two ranks, the other has got what @giver sent. */
void swc_t_expect_gift(struct swc_t_job *job, u32 giver);

#endif /* SWC_KUNIT_NET_HARNESS_H */

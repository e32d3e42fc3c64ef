// SPDX-License-Identifier: GPL-2.0-only
/*
 * All suites of the module; they run when it is loaded (tools/vm/kunit).
 */
#include "harness.h"

kunit_test_suites(&swc_plan_suite, &swc_blocks_suite, &swc_desc_suite, &swc_reduce_suite,
		  &swc_move_suite, &swc_ring_suite, &swc_exec_suite, &swc_op_suite,
		  &swc_life_suite, &swc_wire_suite);

/* Some need both. In one list, which keeps the order: the last case of swc_ends removes the RDMA device. */
#if defined(SWC_DMA) && defined(SWC_RDMA)
kunit_test_suites(&swc_dma_suite, &swc_dma_faults_suite, &swc_dma_pool_suite,
		  &swc_links_suite, &swc_lies_suite, &swc_net_suite, &swc_ends_suite);
#endif

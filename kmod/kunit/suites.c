// SPDX-License-Identifier: GPL-2.0-only
/*
 * All suites of the module; they run when it is loaded (tools/vm/kunit).
 */
#include "kunit/harness.h"

kunit_test_suites(&swc_plan_check_suite, &swc_blocks_suite, &swc_desc_check_suite, &swc_reduce_suite,
		  &swc_account_suite, &swc_user_suite, &swc_region_suite, &swc_reduce_copy_suite,
		  &swc_completion_ring_suite,
		  &swc_worker_suite, &swc_operation_suite, &swc_comm_teardown_suite, &swc_wire_suite,
		  &swc_recorder_suite, &swc_send_index_suite);

/*
 * Some suites need RDMA and DMA. One list keeps the order: the last case of swc_net_teardown removes the RDMA
 * device.
 */
#if defined(SWC_DMA) && defined(SWC_RDMA)
kunit_test_suites(&swc_dma_suite, &swc_dma_faults_suite, &swc_dma_pool_suite,
		  &swc_dma_job_suite, &swc_dma_calibrate_suite, &swc_dma_cost_suite,
		  &swc_plan_conn_suite, &swc_seg_copy_suite, &swc_adversary_suite,
		  &swc_net_suite, &swc_net_tcp_suite, &swc_net_rndv_suite, &swc_net_rndv_tcp_suite,
		  &swc_replay_suite, &swc_failover_suite, &swc_path_suite, &swc_cq_suite,
		  &swc_waiter_tcp_suite, &swc_net_leave_suite, &swc_net_teardown_suite);
#endif

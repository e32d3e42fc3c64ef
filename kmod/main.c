// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loading and unloading of the module: the order in which its parts are set up and torn down.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/module.h>

#include "comm/comm.h"
#include "comm/recorder.h"
#include "core/reduce.h"
#include "dev/chrdev.h"
#include "dev/query.h"
#include "dma.h"
#include "exec/dma_event.h"
#include "exec/net_event.h"
#include "exec/operation.h"
#include "exec/watchdog.h"
#include "net.h"
#include "plan/plan.h"
#include "swingcoll.h"

static char *reduce = "";
module_param(reduce, charp, 0444);
MODULE_PARM_DESC(reduce, "reduction kernels: avx512, avx2, neon or scalar (default: the fastest that this machine runs)");

static int check_parameters(void)
{
	int ret = swc_limits_check() ?: swc_paths_check_parameters();

	if (ret)
		return ret;
	swc_reduce_init();
	if (!*reduce)
		return 0;
	ret = swc_reduce_force(reduce);
	if (ret)
		pr_err("reduce=%s: %s\n", reduce, ret == -EINVAL ?
		       "no such reduction kernels; give avx512, avx2, neon or scalar" :
		       "this machine cannot run them");
	return ret;
}

static const struct swc_transport *const transports[SWC_TRANSPORT_NR] = {
#ifdef SWC_RDMA
	[SWC_TRANSPORT_RDMA] = &swc_rdma_transport,
#endif
#ifdef SWC_TCP
	[SWC_TRANSPORT_TCP] = &swc_tcp_transport,
#if IS_ENABLED(CONFIG_TLS)
	[SWC_TRANSPORT_TLS] = &swc_tls_transport,
#endif
#endif
};

static const struct swc_net_ops net_ops = {
	.segment = swc_net_event_segment,
	.send_done = swc_net_event_sent,
	.rndv_done = swc_net_event_rndv_done,
	.rndv_closed = swc_net_event_rndv_closed,
	.mismatch = swc_net_event_mismatch,
	.rts = swc_net_event_rts,
	.drop_unexpected = swc_net_event_drop_unexpected,
	.get = swc_comm_net_get,
	.put = swc_comm_net_put,
	.find = swc_comm_find_net,
	.progress = swc_comm_progress,
	.peer_lost = swc_comm_peer_lost,
	.peer_left = swc_comm_peer_left,
	.peer_progress = swc_comm_peer_progress,
	.path_changed = swc_comm_path_changed,
};

static const struct swc_comm_ops comm_ops = {
	.fail = swc_ops_fail,
	.finish_failed = swc_ops_finish_failed,
	.first_from = swc_ops_first_from,
	.free = swc_ops_free,
	.unload_plans = swc_plan_unload_all,
	.watchdog = swc_watchdog_fn,
};

static int __init swc_init(void)
{
	int ret;

	ret = check_parameters();
	if (ret)
		return ret;
	swc_wq = alloc_workqueue("swingcoll", WQ_UNBOUND, 0);
	if (!swc_wq)
		return -ENOMEM;
	swc_free_wq = alloc_workqueue("swingcoll-free", WQ_UNBOUND, 0);
	ret = -ENOMEM;
	if (!swc_free_wq)
		goto err_wq;
	swc_comm_init(&comm_ops);
	swc_dma_init(swc_dma_event_done);
	ret = swc_transports_init(transports, &net_ops);
	if (ret)
		goto err_dma;
	ret = swc_cards_init();
	if (ret)
		goto err_net;
	swc_debugfs_init();
	ret = swc_chrdev_init();
	if (ret)
		goto err_chrdev;
	return 0;

err_chrdev:
	swc_debugfs_exit();
	swc_cards_exit();
err_net:
	swc_transports_stop();
err_dma:
	swc_dma_exit();
	destroy_workqueue(swc_free_wq);
err_wq:
	destroy_workqueue(swc_wq);
	return ret;
}

static void __exit swc_exit(void)
{
	/* No file is open, so no call comes in. Work items that free communicators may still run. */
	swc_chrdev_exit();
	swc_debugfs_exit();
	swc_cards_exit();
	/* Close lingering connections: each holds its communicator. */
	swc_transports_stop();
	swc_comms_drain();
	swc_dma_exit();
	/* Those work items end recordings, which wait for their time on that queue. */
	flush_workqueue(swc_free_wq);
	swc_recorder_exit();
	/* Freeing a communicator destroys the queues of its user, and waits for them. */
	destroy_workqueue(swc_free_wq);
	destroy_workqueue(swc_wq);
	/* Memory that kfree_rcu() still has to free needs no code of this module. */
}

module_init(swc_init);
module_exit(swc_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Collective communication carried out by the kernel");
MODULE_VERSION(SWC_VERSION);

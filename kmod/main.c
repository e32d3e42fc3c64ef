// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loading and unloading: parameters, the work queue, and the order in which things come and go.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/log2.h>
#include <linux/module.h>

#include "dev/chrdev.h"
#include "comm/comm.h"
#include "core/reduce.h"
#include "dma.h"
#include "exec/net_event.h"
#include "net.h"
#include "dev/query.h"
#include "swingcoll.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

struct workqueue_struct *swc_wq, *swc_urgent_wq;

unsigned int swc_max_regions = 4096;
module_param_named(max_regions, swc_max_regions, uint, 0444);
MODULE_PARM_DESC(max_regions, "explicit memory registrations per open file (default 4096)");

unsigned int swc_max_plans = 1024;
module_param_named(max_plans, swc_max_plans, uint, 0444);
MODULE_PARM_DESC(max_plans, "plans per rank and communicator (default 1024)");

unsigned int swc_max_comms = 256;
module_param_named(max_comms, swc_max_comms, uint, 0444);
MODULE_PARM_DESC(max_comms, "communicator memberships per open file (default 256)");

unsigned int swc_ring_entries = 1024;
module_param_named(ring_entries, swc_ring_entries, uint, 0444);
MODULE_PARM_DESC(ring_entries, "entries of a completion ring, a power of two (default 1024)");

static char *reduce = "";
module_param(reduce, charp, 0444);
MODULE_PARM_DESC(reduce, "reduction kernels: avx512, avx2, neon or scalar (default: the best that runs here)");

static int check_parameters(void)
{
	int ret;

	if (!is_power_of_2(swc_ring_entries) || swc_ring_entries < 8 || swc_ring_entries > 1 << 16) {
		pr_err("ring_entries=%u: give a power of two from 8 to 65536\n", swc_ring_entries);
		return -EINVAL;
	}
	if (!swc_max_comms || swc_max_comms > 1 << 16) {
		pr_err("max_comms=%u: give 1 to 65536\n", swc_max_comms);
		return -EINVAL;
	}
	if (!swc_max_plans || swc_max_plans > SWC_PLANS_MOST) {
		pr_err("max_plans=%u: give 1 to %u\n", swc_max_plans, SWC_PLANS_MOST);
		return -EINVAL;
	}
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

static const struct swc_net_ops net_ops = {
	.deliver = swc_news_deliver,
	.sent = swc_news_sent,
	.written = swc_news_written,
	.landed = swc_news_landed,
	.differs = swc_news_differs,
	.wants = swc_news_wants,
	.comm_by_name = swc_comm_by_name,
	.lost = swc_comm_lost,
	.left = swc_comm_peer_left,
	.came = swc_comm_peer_came,
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
	swc_urgent_wq = alloc_workqueue("swingcoll-urgent", WQ_UNBOUND | WQ_HIGHPRI, 0);
	ret = -ENOMEM;
	if (!swc_urgent_wq)
		goto err_wq;
	swc_dma_init(swc_news_moved);
	ret = swc_rdma_init(&net_ops);
	if (ret)
		goto err_dma;
	swc_debugfs_init();
	ret = swc_chrdev_init();
	if (ret)
		goto err_rdma;
	return 0;

err_rdma:
	swc_rdma_stop();
	swc_rdma_exit();
	swc_debugfs_exit();
err_dma:
	swc_dma_exit();
	destroy_workqueue(swc_urgent_wq);
err_wq:
	destroy_workqueue(swc_wq);
	return ret;
}

static void __exit swc_exit(void)
{
	/* No file is open any more, so nothing new comes; work items that free things may still run. */
	swc_chrdev_exit();
	swc_debugfs_exit();
	/* What lingers of connections is closed, which lets their communicators go. */
	swc_rdma_stop();
	swc_comms_drain();
	swc_dma_exit();
	destroy_workqueue(swc_urgent_wq);
	destroy_workqueue(swc_wq);
	swc_rdma_exit();
	/* Parts freed by kfree_rcu() need no code of ours. */
}

module_init(swc_init);
module_exit(swc_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Collective communication carried out by the kernel");
MODULE_VERSION("0.1.0");

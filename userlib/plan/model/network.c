// SPDX-License-Identifier: LGPL-2.1-or-later
/* Figures of networks, and times of costs on them. */
#include "plan/model/model.h"

/*
 * A step in the kernel: an interrupt, a work item that handles the completion, and one that posts
 * the next message. A CPU that adds reads two vectors and writes one.
 */
#define KERNEL_STEP_NS 5000
#define KERNEL_REDUCE_GBPS 80
/* By TCP, messages pass through both hosts' network stacks, and on cloud machines a hypervisor. */
#define TCP_STEP_NS 35000
/*
 * One more message, posted, handled and received with the others of its step; a step that copies; and each of
 * its copies.
 */
#define KERNEL_MESSAGE_NS 500
#define KERNEL_COPY_STEP_NS 200
#define KERNEL_COPY_NS 20

struct swc_network swc_network_of(const struct swc_topo *topo)
{
	return (struct swc_network){ .gbps = topo->gbps > 0 ? topo->gbps
					     : topo->tcp    ? SWC_TOPO_TCP_GBPS
							    : 400,
				     .hop_ns = topo->hop_ns > 0 ? topo->hop_ns : 400,
				     .step_ns = topo->tcp ? TCP_STEP_NS : 600 };
}

struct swc_network swc_network_in_kernel(const struct swc_topo *topo)
{
	struct swc_network net = swc_network_of(topo);

	net.step_ns = topo->tcp ? TCP_STEP_NS : KERNEL_STEP_NS;
	net.reduce_gbps = KERNEL_REDUCE_GBPS;
	net.message_ns = KERNEL_MESSAGE_NS;
	net.copy_step_ns = KERNEL_COPY_STEP_NS;
	net.copy_ns = KERNEL_COPY_NS;
	return net;
}

static double time_of(const struct swc_timing *t, double bytes, const struct swc_network *net)
{
	bool acked = net->ack_bytes > 0 && t->last_share * bytes >= net->ack_bytes;

	return t->steps * net->step_ns + (double)t->hops * net->hop_ns +
	       t->load * bytes * 8 / net->gbps + acked * t->last_hops * net->hop_ns;
}

double swc_cost_time(const struct swc_cost *cost, double bytes, const struct swc_network *net,
		     const struct swc_timing **timing)
{
	double phased = time_of(&cost->phased, bytes, net);
	double eager = time_of(&cost->eager, bytes, net);
	double moved = (cost->reduced + cost->copied) * bytes * 8;
	double reduce = net->reduce_gbps > 0 ? moved / net->reduce_gbps : 0;
	double small = (double)cost->extra * net->message_ns +
		       (double)cost->copy_steps * net->copy_step_ns +
		       (double)cost->copies * net->copy_ns;

	if (timing)
		*timing = eager < phased ? &cost->eager : &cost->phased;
	return (eager < phased ? eager : phased) + reduce + small;
}

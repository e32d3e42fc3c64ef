/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a collective costs on a network, computed from the plans of all ranks.
 *
 * The step model: all ranks take step k of each of their channels together. A step lasts as long as
 * the longest route of a message in it and the link that most bytes of it cross:
 *
 *	time = sum over steps (step_ns + hop_ns * hops + load * bytes * 8 / gbps)
 *
 * plus, if that is asked for, once more hop_ns * hops for the acknowledgements of the last step,
 * and
 *
 *	reduced * bytes * 8 / reduce_gbps
 *
 * for what a rank reduces on one channel: meanwhile the other channels use the links. In an all-to-all, where
 * shards are many and small, each further message of a step and each copy takes time, too:
 *
 *	extra * message_ns + copy_steps * copy_step_ns + copies * copy_ns + copied * bytes * 8 / reduce_gbps
 *
 * hops is the number of links of the longest route, load the share of the vector on the most loaded link.
 * Messages take the routes of the paths in the plans, see swc_topo_route(). On a switch each node has
 * one link in and one out, and a route is one hop.
 *
 * Where the channels of an algorithm have phases of different length (bucket on unequal dimensions), there
 * are two ways to count steps: all channels take their k-th step together, or they take their k-th phase
 * together and the short ones wait. Real ranks do neither, and are about as fast as the better one. What
 * else happens within a node costs nothing. (Except for reductions and copies, this is the model of the
 * Swing paper's analysis: De Sensi et al., "Swing: Short-cutting rings for higher bandwidth allreduce", NSDI
 * 2024.)
 *
 * The flow model (swc_flow_time()) has no common steps: a message begins when its sender has
 * reached it, goes in packets, and links are queues, first in first out. Where messages share links
 * or ranks have routes of different length (a ring laid over a torus), it is closer to real
 * networks.
 */
#ifndef SWC_PLAN_MODEL_MODEL_H
#define SWC_PLAN_MODEL_MODEL_H

#include "plan/model/packets.h"
#include "plan/plan.h"

/**
 * struct swc_network - figures of a network
 * @gbps: rate of a link in each direction, Gbit/s
 * @hop_ns: delay of a hop, ns
 * @step_ns: fixed cost of a step, ns
 * @ack_bytes: transfers of so many bytes and more end for their sender only when they have been
 *	acknowledged, hop_ns for each hop later: their memory is needed until then. 0: none
 * @reduce_gbps: rate at which a rank reduces or copies one vector, Gbit/s. 0: that costs nothing, as
 *	always in the flow model
 * @message_ns: of an all-to-all: fixed cost of each message of a step but the first, ns; likewise
 * @copy_step_ns: of an all-to-all: fixed cost of a step that copies, ns; likewise
 * @copy_ns: of an all-to-all: fixed cost of each copy of such a step, ns; likewise
 * @early_bytes: of the flow model: what a message may send before the receiver has reached its step
 * @packets: of the flow model; the step model has none
 */
struct swc_network {
	double gbps;
	double hop_ns;
	double step_ns;
	double ack_bytes;
	double reduce_gbps;
	double message_ns;
	double copy_step_ns;
	double copy_ns;
	double early_bytes;
	struct swc_packets packets;
};

/*
 * 400 Gbit/s, 400 ns a hop, 600 ns a step, or by TCP 25 Gbit/s and 35 us a step, except for figures that the
 * topology has.
 */
struct swc_network swc_network_of(const struct swc_topo *topo);

/* The same with the times of steps and reductions in the kernel. */
struct swc_network swc_network_in_kernel(const struct swc_topo *topo);

/**
 * struct swc_timing - one way to count the steps of a collective
 * @steps: number of network steps, one after the other
 * @hops: sum over the steps of the longest route
 * @load: sum over the steps of the largest share of the vector on one link
 * @last_hops: longest route of the last step
 * @last_share: share of the vector of its largest transfer
 */
struct swc_timing {
	uint32_t steps;
	uint64_t hops;
	double load;
	uint32_t last_hops;
	double last_share;
};

/**
 * struct swc_cost - what a collective costs, for any size
 * @phased: the phases of all channels begin together
 * @eager: no channel waits for others; mostly equal to @phased
 * @psi_xi: load of @phased in units of the least possible on a torus with all links busy, 1 /
 *	dimensions
 * @messages: that a rank sends, at most (all that goes to one peer in one step of a channel is one
 *	message)
 * @sent: that a rank sends, at most, as a share of the vector
 * @reduced: that a rank reduces in network steps of a channel, at most, as a share of the vector
 * @extra: of an all-to-all: what the kernel sends in a channel's steps beyond the first message of each, at
 *	most. It sends each range of blocks by itself
 * @copy_steps, @copies, @copied: of an all-to-all: a channel's copies from and to the rank's own buffers, at
 *	most: steps, how many, and their share of the vector
 * @max_runs: ranges of blocks in a message, at most
 * @connections: that a rank needs, at most: each of its channels has its own to each peer on
 *	another node, and two where messages to and from the peer take different paths
 * @order_varies: SWC_PLAN_ORDER_VARIES
 * @sampled: if not 0, only the plans of so many ranks were looked at: all is estimated
 */
struct swc_cost {
	struct swc_timing phased;
	struct swc_timing eager;
	double psi_xi;
	uint64_t messages;
	double sent;
	double reduced;
	uint64_t extra, copy_steps, copies;
	double copied;
	uint32_t max_runs;
	uint32_t connections;
	bool order_varies;
	uint32_t sampled;
};

/* Called now and then with the share of the work that is done, 0 to 1. May be NULL. */
typedef void swc_progress_fn(void *arg, double done);

/**
 * swc_cost_compute() - compute the cost of a collective from the plans of all ranks
 * @args: as for swc_plan_build(), without rank
 * @why: on failure, one line on what is wrong; may be NULL
 *
 * Return: 0, or what swc_plan_build() returns for the first rank that it refuses.
 */
int swc_cost_compute(const struct swc_plan_args *args, struct swc_cost *cost,
		     swc_progress_fn *progress, void *arg, char *why, size_t why_bytes);

/**
 * swc_cost_estimate() - the same with few plans
 * @most_ranks: how many plans may be built, at least 1
 *
 * Where the plans of ranks are alike, the cost is exact, from the plans of a few of them. But where ranges of
 * blocks wrap around on other ranks, they have one more: @max_runs of circulant, @extra and @copies of bruck.
 * And of more than @most_ranks or 1024 ranks, it is not exact in @max_runs and last_share of butterflies that
 * send sets of blocks. Else all plans are built if there are at most @most_ranks, or those of a sample: then
 * @cost->sampled is set.
 */
int swc_cost_estimate(const struct swc_plan_args *args, uint32_t most_ranks, struct swc_cost *cost,
		      swc_progress_fn *progress, void *arg, char *why, size_t why_bytes);

/* How many plans that builds, unless some ranks turn out to be ahead of others. */
uint32_t swc_cost_plans(const struct swc_plan_args *args, uint32_t most_ranks);

/*
 * Time in ns for a vector of so many bytes, by the step model. *timing, if not NULL: the faster way
 * to count steps.
 */
double swc_cost_time(const struct swc_cost *cost, double bytes, const struct swc_network *net,
		     const struct swc_timing **timing);

/**
 * struct swc_flow - a result of the flow model
 * @ns: when the last rank is done
 * @group: packets that took links together, 1 if each took them by itself: there were too many
 */
struct swc_flow {
	double ns;
	uint32_t group;
};

/* What the kernel sends of a message before the receiver has reached its step: slots of a connection. */
#define SWC_FLOW_EARLY (16 * 32768.0)

/* Of plans, in the flow model, which builds all of them. */
#define SWC_FLOW_BYTES (384u << 20)

/**
 * swc_flow_time() - the time of a collective by the flow model
 *
 * Return: 0, what swc_plan_build() returns, or -EFBIG if the plans need more than SWC_FLOW_BYTES.
 */
int swc_flow_time(const struct swc_plan_args *args, double bytes, const struct swc_network *net,
		  struct swc_flow *flow, swc_progress_fn *progress, void *arg, char *why,
		  size_t why_bytes);

#endif /* SWC_PLAN_MODEL_MODEL_H */

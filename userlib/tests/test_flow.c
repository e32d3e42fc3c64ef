// SPDX-License-Identifier: GPL-2.0-only
/*
 * The flow model against times that are computed by hand: packets and their headers, queues of links
 * that messages share, and chains of hops on which whole packets are forwarded or their first bytes.
 * TAP on stdout.
 *
 * Below, s is the time of a step, h that of a hop, T what a message takes on a link, and L what its
 * first packet takes.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/model/model.h"
#include "tap.h"
#include "topos.h"

#define KIB 1024.0
#define MIB (1024.0 * 1024)

/* 8 bit per ns: a byte takes 1 ns. */
static const struct swc_network bare = {
	.gbps = 8, .hop_ns = 100, .step_ns = 10, .early_bytes = INFINITY
};
static const double h = 100, s = 10;

static struct swc_flow flow_on(const struct swc_network *net, const char *topo, enum swc_coll coll,
			       const char *algo, double bytes)
{
	struct swc_topo t = topo_of(topo);
	struct swc_plan_args a = { .coll = coll, .topo = &t, .nranks = t.nranks };
	struct swc_flow f = { 0 };
	char why[200] = "";
	int ret;

	a.algo = (enum swc_algo)swc_algo_parse(algo, &a.param);
	ret = swc_flow_time(&a, bytes, net, &f, NULL, NULL, why, sizeof(why));
	if (ret)
		printf("# %s on %s: %d %s\n", algo, topo, ret, why);
	swc_topo_free(&t);
	return f;
}

static bool takes(const struct swc_network *net, const char *topo, enum swc_coll coll,
		  const char *algo, double bytes, double want)
{
	double ns = flow_on(net, topo, coll, algo, bytes).ns;

	if (fabs(ns - want) <= 1e-9 * want)
		return true;
	printf("# %s on %s: %.9g ns, not %.9g\n", algo, topo, ns, want);
	return false;
}

static bool is(double got, double want)
{
	return fabs(got - want) <= 1e-9 * want;
}

static void test_packets(void)
{
	static const struct swc_packets none, roce = SWC_PACKETS_ROCE;
	double third = MIB / 3;
	bool good = true;

	ok(swc_packets_count(&none, 0) == 1 && swc_packets_count(&none, 4096) == 1 &&
		   swc_packets_count(&none, 4097) == 2 &&
		   is(swc_packets_first(&none, 4097, 1), 4096) &&
		   is(swc_packets_first(&none, 4097, 2), 4097),
	   "without headers: packets of 4096 bytes, at least one");
	ok(swc_packets_count(&roce, 0) == 1 && is(swc_packets_first(&roce, 0, 1), 122) &&
		   swc_packets_count(&roce, 4032) == 1 && swc_packets_count(&roce, 4033) == 2 &&
		   is(swc_packets_first(&roce, 4033, 2), 4033 + 64 + 2 * 58),
	   "RoCE: 58 bytes for each packet, 64 for each message");
	/* Receive buffers have room for 32 KiB and a header. */
	ok(swc_packets_count(&roce, 32704) == 8 && swc_packets_count(&roce, 32768) == 9 &&
		   is(swc_packets_first(&roce, 32768, 8), 8 * (4096 + 58)) &&
		   is(swc_packets_first(&roce, 32768, 9), 33354) &&
		   swc_packets_count(&roce, 49152) == 9 + 5,
	   "a message of 32 KiB: one segment of 9 packets");
	for (double bytes = 1; bytes < 400000; bytes = bytes * 1.7 + 3) {
		uint64_t n = swc_packets_count(&roce, bytes);
		double segments = ceil(bytes / 32768), last = 0;

		good &= is(swc_packets_first(&roce, bytes, n),
			   bytes + 64 * segments + 58.0 * (double)n);
		for (uint64_t i = 1; i <= n; i++) {
			double now = swc_packets_first(&roce, bytes, i);

			good &= now - last > 58 && now - last <= 4096 + 58 + 1e-6;
			last = now;
		}
	}
	ok(good,
	   "all packets of a message are all its bytes and headers, none larger than a packet");
	ok(swc_packets_count(&none, 3 * third) == 256 &&
		   swc_packets_count(&none, third / 4096 * 4096) == 86,
	   "rounded fractions of vectors make no packet more");
}

/* All messages of a step to one peer, with the headers of their segments. */
static double wire_of(double bytes, uint32_t n)
{
	static const struct swc_packets roce = SWC_PACKETS_ROCE;
	struct swc_packets p = swc_packets_together(&roce, bytes, n);

	return swc_packets_first(&p, bytes, swc_packets_count(&p, bytes));
}

static void test_together(void)
{
	static const struct swc_packets none, roce = SWC_PACKETS_ROCE;
	struct swc_packets p = swc_packets_together(&none, 4096, 8);

	ok(is(swc_packets_first(&p, 4096, swc_packets_count(&p, 4096)), 4096),
	   "without headers, several messages are as one");
	ok(is(wire_of(5 * 512, 5), 5 * (512 + 4) + 64 + 58),
	   "small messages of a step to one peer: one header and one packet for all");
	ok(is(wire_of(4 * 1004, 4), 4 * (1004 + 4) + 122) &&
		   is(wire_of(4 * 1005, 4), 4 * 1005 + 3 * 4 + 122 + 3 * 4 + 122),
	   "as many as fit into a segment go together");
	ok(is(wire_of(3 * 2013, 3), 3 * (2013 + 122)) &&
		   is(wire_of(2 * 8192, 2), 2 * (8192 + 64 + 3 * 58)),
	   "larger ones have a header each");
	ok(is(swc_packets_acks(&roce, 0), 62) && is(swc_packets_acks(&roce, 32768), 62) &&
		   is(swc_packets_acks(&roce, 32769), 2 * 62),
	   "each segment is acknowledged");
}

/* Both ranks of a pair acknowledge their first message before they send the second. */
static void test_acks(void)
{
	struct swc_network net = bare;
	double wire = 1000 + 122;

	net.packets = (struct swc_packets)SWC_PACKETS_ROCE;
	net.packets.ack = 0;
	ok(takes(&net, "switch:2", SWC_ALLREDUCE, "ring", 2000, 2 * (s + wire + h)),
	   "two steps of a pair");
	net.packets.ack = 62;
	ok(takes(&net, "switch:2", SWC_ALLREDUCE, "ring", 2000, s + 62 + 2 * (wire + h)),
	   "two steps of a pair: the second waits for the link, which carries an acknowledgement");
}

/* Two ranks send into the link of the third at once: their packets take turns. */
static void test_shared(void)
{
	struct swc_network net = bare;
	double wire = 8192 + 64 + 3 * 58, first = 4096 + 58;

	ok(takes(&net, "switch:3", SWC_REDUCE, "tree", 8192, s + h + 2 * 8192),
	   "two messages on one link: the sum of their times");
	net.packets = (struct swc_packets)SWC_PACKETS_ROCE;
	ok(takes(&net, "switch:3", SWC_REDUCE, "tree", 8192, s + h + 2 * wire),
	   "two messages on one link, with headers");
	net.packets.whole = true;
	ok(takes(&net, "switch:3", SWC_REDUCE, "tree", 8192, s + h + first + 2 * wire),
	   "a switch that forwards whole packets begins a packet later");
	/* A link of half the rate in the middle of nowhere changes nothing: there is no route over it. */
	ok(takes(&bare, "torus:1x4@4Gbps/8Gbps", SWC_ALLGATHER, "ring", 4 * KIB,
		 flow_on(&bare, "ring:4", SWC_ALLGATHER, "ring", 4 * KIB).ns),
	   "slow links that no message takes");
}

/*
 * A row of three, allgather by a ring: the message from rank 2 to rank 0 takes the two links that
 * lead back. Rank 0 has it last, and sends it to rank 1.
 */
static void test_chain(void)
{
	struct swc_network net = bare;
	double T = 20 * KIB, L = 4 * KIB, wire;

	ok(takes(&net, "mesh:3", SWC_ALLGATHER, "ring", 3 * T, 2 * (s + T) + 3 * h),
	   "two hops, first bytes are forwarded: one hop more");
	net.packets.whole = true;
	ok(takes(&net, "mesh:3", SWC_ALLGATHER, "ring", 3 * T, 2 * (s + T) + 3 * h + L),
	   "two hops, whole packets are forwarded: one hop and one packet more");
	net.packets = (struct swc_packets){ .payload = 1000, .header = 25, .whole = true };
	wire = 20 * KIB + 21 * 25;
	ok(takes(&net, "mesh:3", SWC_ALLGATHER, "ring", 60 * KIB, 2 * (s + wire) + 3 * h + 1025),
	   "smaller packets with headers");
	/* Up one dimension, and on along the other, which takes four times as long. */
	net = bare;
	ok(takes(&net, "mesh:3@2Gbps", SWC_ALLGATHER, "ring", 3 * T, 2 * (s + T) + 3 * h),
	   "the rate is that of the network's figures");
}

/*
 * A row of four, recursive doubling. In its second step ranks 0 and 1 send two hops up: both messages
 * cross the link between 1 and 2, rank 1's first, as it is in the queue at once.
 */
static void test_queue(void)
{
	struct swc_network net = bare;
	double T = 20 * KIB, small = 40;

	ok(takes(&net, "mesh:4", SWC_ALLREDUCE, "recdoub", T, 2 * s + 3 * T + 2 * h),
	   "a forwarded message waits behind the node's own");
	net.packets.whole = true;
	ok(takes(&net, "mesh:4", SWC_ALLREDUCE, "recdoub", T, 2 * s + 3 * T + 2 * h),
	   "while it waits, it does not matter how it is forwarded");
	ok(takes(&net, "mesh:4", SWC_ALLREDUCE, "recdoub", small, 2 * s + 3 * small + 3 * h),
	   "a short message finds the link free, and takes its time once more if it is forwarded whole");
	net.packets.whole = false;
	ok(takes(&net, "mesh:4", SWC_ALLREDUCE, "recdoub", small, 2 * s + 2 * small + 3 * h),
	   "a short message whose first bytes are forwarded");
}

/*
 * Broadcast in a row of seven: the root sends to 4 and 2 in one step, over the same first link, and 4
 * sends on to 6 and 5 in one step.
 */
static void test_bursts(void)
{
	double T = 20 * KIB, L = 4 * KIB;

	ok(takes(&bare, "mesh:7", SWC_BROADCAST, "tree", T, 2 * s + 3 * T + 5 * h),
	   "short messages of one rank over one link: one after the other");
	/* To 4, to 2, to 4, to 2: 64 packets each time. */
	ok(takes(&bare, "mesh:7", SWC_BROADCAST, "tree", 128 * L,
		 2 * s + (3 * 64 + 2 * 128) * L + 5 * h),
	   "long messages of one rank over one link: in turns");
}

/*
 * In a row of three, rank 0 is a hop behind when rank 2 sends it the second message. Two
 * messages are 20 packets.
 */
static void test_early(void)
{
	struct swc_network net = bare;
	double T = 20 * KIB;

	net.early_bytes = 0;
	ok(takes(&net, "mesh:3", SWC_ALLGATHER, "ring", 3 * T, s + 2 * T + 4 * h),
	   "without buffers a message begins when its receiver has reached its step");
	net.early_bytes = 1;
	ok(takes(&net, "mesh:3", SWC_ALLGATHER, "ring", 3 * T, 2 * (s + T) + 3 * h),
	   "what fits into buffers goes early");
}

/*
 * A ring of four on two nodes: 1 sends to 2 and 3 to 0. What 1 sends it has from 0 at once, so it waits
 * until the last message has left.
 */
static void test_local(void)
{
	double T = 20 * KIB;

	ok(takes(&bare, "switch:2*2", SWC_ALLGATHER, "ring", 4 * T, 3 * (s + T) + h),
	   "messages within nodes take no time");
	ok(flow_on(&bare, "switch:1*4", SWC_REDUCE_SCATTER, "ring", 4 * T).group == 1 &&
		   flow_on(&bare, "switch:1*4", SWC_REDUCE_SCATTER, "ring", 4 * T).ns < 1,
	   "all ranks on one node");
}

static void test_limits(void)
{
	struct swc_topo t = topo_of("ring:65536");
	struct swc_plan_args a = { .coll = SWC_ALLGATHER,
				   .algo = SWC_ALGO_RING,
				   .param = SWC_PARAM_DEFAULT,
				   .topo = &t,
				   .nranks = t.nranks };
	struct swc_flow f = { 0 };
	char why[200] = "";

	ok(swc_flow_time(&a, MIB, &bare, &f, NULL, NULL, why, sizeof(why)) == -EFBIG &&
		   strstr(why, "MiB"),
	   "plans that are too large are refused, with their size");
	swc_topo_free(&t);
	f = flow_on(&bare, "mesh:3", SWC_ALLGATHER, "ring", 300 * KIB);
	ok(f.group == 1, "packets go one by one");
}

int main(void)
{
	test_packets();
	test_together();
	test_acks();
	test_shared();
	test_chain();
	test_queue();
	test_bursts();
	test_early();
	test_local();
	test_limits();
	return done();
}

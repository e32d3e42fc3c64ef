// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingplan forest --out: the trees as a plan file.
 *
 * With N segments on each channel, a tree of depth D takes N + D - 1 steps, each of which costs a + T / N: a is the
 * fixed cost of a step, T the time of all bytes by the forest. So the best N is the root of (D - 1) T / a. It is
 * limited such that the file has no more than about a million lines.
 */
#include "forest.h"

#include <math.h>
#include <stdlib.h>

#include "plan/forest/schedule.h"

#define DEFAULT_BYTES (64.0 * (1 << 20))
#define DEFAULT_CHANNELS 2
#define MOST_LINES 1e6

/* ns that all bytes take. */
static double time_of(const struct forest *f, const struct swc_network *net)
{
	const struct plan_options *opt = f->opt;
	double bytes = opt->for_size > 0 ? opt->for_size : DEFAULT_BYTES;
	/* Without rates of the topology, --link-gbps is that of a unit. */
	double gbps = f->unit > 0 ? f->unit : net->gbps;

	return bytes * 8 / gbps * f->time;
}

/* For at most so many channels, which share the segments of a tree in so many parts. */
static uint32_t choose_pieces(const struct forest *f, uint32_t depth, uint32_t channels,
			      uint32_t parts)
{
	struct swc_network net = f->opt->net;
	double trees = 0, n, most;

	if (!f->opt->topo_text) {
		struct swc_topo flat = swc_topo_flat(f->g.nranks);
		struct swc_network known = swc_network_of(&flat);

		net.gbps = net.gbps < 0 ? known.gbps : net.gbps;
		net.hop_ns = net.hop_ns < 0 ? known.hop_ns : net.hop_ns;
		net.step_ns = net.step_ns < 0 ? known.step_ns : net.step_ns;
	}
	for (int i = 0; i < 2; i++)
		trees += f->has[i] ? f->phase[i].forest.ntrees : 0;
	n = sqrt((depth - 1) * time_of(f, &net) / fmax(net.step_ns + net.hop_ns, 1)) * parts;
	most = fmin(MOST_LINES / 2 / trees / (f->g.nranks - 1), FOREST_PIECES);
	return (uint32_t)fmax(fmin(round(n), most), channels);
}

static void check_options(const struct plan_options *opt)
{
	if (opt->channels && opt->pieces && opt->channels > opt->pieces)
		plan_bad("--channels %u: each needs a segment, there are %u", opt->channels,
			 opt->pieces);
}

void forest_write(struct forest *f)
{
	const struct plan_options *opt = f->opt;
	struct swc_schedule_args args = {
		.coll = opt->coll,
		.root = f->root,
		.down = f->has[DOWN] ? &f->phase[DOWN] : NULL,
		.up = f->has[UP] ? &f->phase[UP] : NULL,
		.topo = opt->topo_text && !opt->members ? &opt->topo : NULL,
		.channels = opt->channels,
		.pieces = opt->pieces,
	};
	char why[SWC_TEXT_BYTES] = "out of memory";
	struct swc_plan_set set = { 0 };
	uint32_t nranks = args.topo ? args.topo->nranks : f->g.nranks;
	struct swc_schedule s;
	int ret;

	check_options(opt);
	if (!args.channels)
		args.channels = DEFAULT_CHANNELS;
	if (!opt->channels)
		args.channels = swc_schedule_channels(&args, DEFAULT_CHANNELS);
	if (!args.pieces) {
		if (swc_schedule_flows(&s, &args))
			plan_no_memory();
		args.pieces = choose_pieces(f, swc_schedule_depth(args.up, args.down),
					    args.channels, s.parts);
		swc_schedule_free(&s);
	}
	if (args.channels > args.pieces)
		args.channels = args.pieces;
	if (swc_schedule_make(&s, &args, why, sizeof(why)))
		plan_bad("%s", why);
	set.plan = calloc(nranks, sizeof(*set.plan));
	set.bytes = calloc(nranks, sizeof(*set.bytes));
	if (!set.plan || !set.bytes)
		plan_no_memory();
	for (ret = 0; !ret && set.nranks < nranks; set.nranks++)
		ret = swc_schedule_plan(&s, set.nranks, &set.plan[set.nranks],
					&set.bytes[set.nranks], why, sizeof(why));
	if (ret)
		plan_bad("%s", why);
	plan_write_set(opt, &set);
	f->pieces = args.pieces;
	f->channels = s.groups * s.parts;
	f->steps = s.steps;
	f->blocks = s.shard_blocks;
	swc_plan_set_free(&set);
	swc_schedule_free(&s);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tuning files: measured times that correct the model's choice, and measured figures of links that
 * correct the model. Text, one measurement per line, # begins a comment:
 *
 *	OPERATION TYPE TOPOLOGY BYTES ALGORITHM MICROSECONDS
 *	links TOPOLOGY@FIGURE[,FIGURE]
 *
 *	allreduce f32 torus:4x4 1048576 swing-h:2 812.5
 *	links torus:4x4@57.3Gbps/14.1Gbps,1.2us,5-6=28Gbps
 *
 * swingperf --tune writes both. Of several lines about the links of a topology the last one
 * that has a figure counts for it; with a rate it tells all slow links.
 */
#ifndef SWC_PLAN_SELECT_TUNING_H
#define SWC_PLAN_SELECT_TUNING_H

#include "plan/plan.h"

/* A measurement: one line of the file. */
struct swc_tuned {
	uint8_t coll;
	uint8_t dtype;
	uint8_t algo;
	int32_t param;
	uint64_t bytes;
	double us;
};

/*
 * @gbps, @dim_gbps, @hop_ns, @nslow, @slow: of links, as in struct swc_topo; 0: not measured. @slow is owned
 */
struct swc_tuning {
	struct swc_tuned *entry;
	uint32_t n, room;
	double gbps, dim_gbps[SWC_TOPO_DIMS], hop_ns;
	uint32_t nslow;
	struct swc_topo_slow *slow;
};

/**
 * swc_tuning_parse() - read the lines that are about a topology from the text of a tuning file
 *
 * @text is cut up. On -EINVAL @why names the line and what was expected there. Free with
 *	swc_tuning_free().
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int swc_tuning_parse(struct swc_tuning *t, char *text, const struct swc_topo *topo, char *why,
		     size_t why_bytes);
void swc_tuning_free(struct swc_tuning *t);

/* Put the measured figures of links, if there are any, into their topology. 0 or -ENOMEM. */
int swc_tuning_links(const struct swc_tuning *t, struct swc_topo *topo);

/*
 * Put rates into a topology that were measured for each of its dimensions, Gbit/s; 0: not measured,
 * because it has no links. False, and nothing changes, if none was.
 */
bool swc_tuning_rates(struct swc_topo *topo, const double gbps[SWC_TOPO_DIMS]);

/**
 * swc_tuning_slow() - put rates into a topology that were measured for each of its links
 * @link: as in struct swc_topo, in order of their ends, each once; @gbps 0: not measured
 *
 * A link is slow by its own measurement, and a dimension only if all of its links are: its rate is the
 * median of those that are at most a quarter slower than the fastest, which another one has to confirm.
 * Measurements vary, so only links that are slower than this by a tenth or more get a rate of their own, in
 * sixteenths of it; likewise dimensions, in simple proportions to the fastest one.
 *
 * Return: 0, -ENOMEM, or -EINVAL if no rate was measured; nothing changes then.
 */
int swc_tuning_slow(struct swc_topo *topo, const struct swc_topo_slow *link, uint32_t n);

/**
 * swc_tuning_best() - the fastest algorithm at the measured size nearest to @bytes
 * @usable: whether an algorithm may be used here; NULL: all
 * @arg: passed to it
 *
 * Only types of @dtype's kind count, integer or floating point. NULL if nothing was measured.
 */
const struct swc_tuned *swc_tuning_best(const struct swc_tuning *t, uint8_t coll, uint8_t dtype,
					uint64_t bytes,
					bool (*usable)(const struct swc_tuned *e, void *arg),
					void *arg);

#endif /* SWC_PLAN_SELECT_TUNING_H */

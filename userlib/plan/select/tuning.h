/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tuning files: measured times that correct the model's choice. Text, one measurement per line, # begins a
 * comment:
 *
 *	OPERATION TYPE TOPOLOGY BYTES ALGORITHM MICROSECONDS
 *	allreduce f32 torus:4x4 1048576 swing-h:2 812.5
 *
 * swingperf --tune writes them.
 */
#ifndef SWC_PLAN_TUNING_H
#define SWC_PLAN_TUNING_H

#include "plan.h"

struct swc_tuned {
	uint8_t coll;
	uint8_t dtype;
	uint8_t algo;
	int32_t param;
	uint64_t bytes;
	double us;
};

struct swc_tuning {
	struct swc_tuned *entry;
	unsigned int n;
};

/* What the reader of a tuning file takes names from: numbers of swingcoll.h, or negative. */
struct swc_tuning_names {
	int (*coll)(const char *name);
	int (*dtype)(const char *name);
};

/**
 * swc_tuning_read() - read the lines that are about a topology
 *
 * On failure @why names the line and what was expected there. Free with swc_tuning_free().
 *
 * Return: 0, -EINVAL, -ENOMEM, or -errno of reading the file.
 */
int swc_tuning_read(struct swc_tuning *t, const char *path, const struct swc_topo *topo,
		    const struct swc_tuning_names *names, char *why, size_t why_bytes);
void swc_tuning_free(struct swc_tuning *t);

/**
 * swc_tuning_best() - the quickest algorithm at the measured size nearest to @bytes
 * @usable: whether an algorithm may be used here; NULL: all
 * @arg: handed to it
 *
 * Looks only at types of @dtype's kind, integer or floating point. NULL if nothing was measured.
 */
const struct swc_tuned *swc_tuning_best(const struct swc_tuning *t, uint8_t coll, uint8_t dtype,
					uint64_t bytes,
					bool (*usable)(const struct swc_tuned *e, void *arg),
					void *arg);

#endif /* SWC_PLAN_TUNING_H */

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The table of algorithms, and the construction of one plan: choose the members, run the algorithm,
 * pack its tables.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "plan/algo/bruck.h"
#include "plan/algo/builder.h"
#include "plan/algo/by_nodes.h"
#include "plan/algo/line_messages.h"
#include "plan/hash.h"
#include "plan/number.h"

#define GATHERS (1u << SWC_GATHER | 1u << SWC_SCATTER)
#define ALL_BUT_ALLTOALL                                                                           \
	(1u << SWC_ALLREDUCE | 1u << SWC_REDUCE_SCATTER | 1u << SWC_ALLGATHER |                    \
	 1u << SWC_BROADCAST | 1u << SWC_REDUCE | 1u << SWC_BARRIER)
#define HALVES (1u << SWC_ALLREDUCE | 1u << SWC_REDUCE_SCATTER | 1u << SWC_ALLGATHER)
#define WHOLE (1u << SWC_ALLREDUCE)

static const struct {
	struct swc_algo_info info;
	swc_build_fn *build;
	int32_t max_param;
	enum swc_symmetry symmetry; /* see swc_algo_symmetry() */
	swc_line_messages_fn *lines;
} algos[SWC_ALGO_NR] = {
	[SWC_ALGO_DIRECT1] = { { "direct1",
				 "one node: every rank reads all vectors and computes its own result",
				 NULL, ALL_BUT_ALLTOALL | 1u << SWC_ALLTOALL | GATHERS, true,
				 false },
			       swc_direct1_build },
	[SWC_ALGO_DIRECT2] = { { "direct2",
				 "one node: every block has an owner that computes it for all in one pass",
				 "shares, fewer than ranks or a multiple (default: by ranks)",
				 ALL_BUT_ALLTOALL | GATHERS, true, false },
			       swc_direct2_build,
			       SWC_MAX_LOCAL_RANKS },
	[SWC_ALGO_RING] = { { "ring", "reduce-scatter and allgather round a ring, one way", NULL,
			      HALVES, false, false, false, true },
			    swc_ring_build,
			    .symmetry = SWC_SYMMETRY_SHIFT },
	[SWC_ALGO_RING2] = { { "ring2", "half the vector round the ring each way", NULL, HALVES,
			       false, true, false, true },
			     swc_ring2_build,
			     .symmetry = SWC_SYMMETRY_SHIFT },
	[SWC_ALGO_HAMILTONIAN] = { { "hamiltonian",
				     "rings both ways along two edge-disjoint cycles of a 2D torus",
				     NULL, HALVES, false, true, false, true },
				   swc_hamiltonian_build,
				   .symmetry = SWC_SYMMETRY_RING },
	[SWC_ALGO_BUCKET] = { { "bucket", "rings along each dimension in turn, on every port", NULL,
				HALVES, false, true },
			      swc_bucket_build,
			      .symmetry = SWC_SYMMETRY_SHIFT },
	[SWC_ALGO_BUCKET2] = { { "bucket2",
				 "bucket with sums moving in from both sides: half the steps", NULL,
				 HALVES, false, true },
			       swc_bucket2_build,
			       .symmetry = SWC_SYMMETRY_SHIFT },
	[SWC_ALGO_SPLIT] = { { "split",
			       "bucket2 in pieces that keep the links of all dimensions busy",
			       "pieces, 1 to 128", HALVES, false, true, false, false, true },
			     swc_split_build,
			     128,
			     SWC_SYMMETRY_SHIFT },
	[SWC_ALGO_RECDOUB] = { { "recdoub", "recursive doubling with the whole vector, one port",
				 NULL, WHOLE, false, false },
			       swc_butterfly_build,
			       .symmetry = SWC_SYMMETRY_XOR },
	[SWC_ALGO_RABENSEIFNER] = { { "rabenseifner", "recursive halving and doubling, one port",
				      NULL, HALVES, false, false },
				    swc_butterfly_build,
				    .symmetry = SWC_SYMMETRY_XOR },
	[SWC_ALGO_MIRRORED] = { { "mirrored", "recursive doubling on every port of a torus",
				  "reduce-scatter steps, 0 (whole vectors) to log2 p (the default)",
				  HALVES, false, true, true },
				swc_butterfly_build,
				20,
				SWC_SYMMETRY_XOR },
	[SWC_ALGO_SWING_L] = { { "swing-l", "Swing, whole vector each step: fewest steps", NULL,
				 WHOLE, false, true },
			       swc_butterfly_build,
			       .symmetry = SWC_SYMMETRY_SWING },
	[SWC_ALGO_SWING_B] = { { "swing-b", "Swing, reduce-scatter and allgather: fewest bytes",
				 NULL, HALVES, false, true },
			       swc_butterfly_build,
			       .symmetry = SWC_SYMMETRY_SWING },
	[SWC_ALGO_SWING_H] = { { "swing-h",
				 "Swing, reduce-scatter for some steps and whole windows in between",
				 "reduce-scatter steps, 0 (swing-l) to log2 p (swing-b)", WHOLE,
				 false, true, true },
			       swc_butterfly_build,
			       20,
			       SWC_SYMMETRY_SWING },
	[SWC_ALGO_TWOSIDED] = { { "twosided", "whole vectors from both sides at once: log3 p steps",
				  "4: up to four messages in a step, where that saves steps", WHOLE,
				  false, true, .messages = true },
				swc_twosided_build,
				4,
				.symmetry = SWC_SYMMETRY_LINES,
				.lines = swc_twosided_lines },
	[SWC_ALGO_RADIX] = { { "radix",
			       "reduce-scatter and allgather from both sides, for sides like 27",
			       "reduce-scatter stages, 0 (twosided) to the factors of all sides",
			       WHOLE, false, true, true },
			     swc_twosided_build,
			     20,
			     SWC_SYMMETRY_LINES,
			     .lines = swc_twosided_lines },
	[SWC_ALGO_ORDERED] = { { "ordered",
				 "whole vectors in log3 p steps, added in one order: same bits",
				 NULL, WHOLE, false, true },
			       swc_ordered_build,
			       .symmetry = SWC_SYMMETRY_LINES,
			       .lines = swc_ordered_lines },
	[SWC_ALGO_CIRCULANT] = { { "circulant",
				   "log2 p rounds and least bytes for any number of ranks", NULL,
				   HALVES, false, false },
				 swc_circulant_build,
				 .symmetry = SWC_SYMMETRY_SHIFT },
	[SWC_ALGO_TREE] = { { "tree", "up and down a binomial tree", NULL,
			      1u << SWC_ALLREDUCE | 1u << SWC_BROADCAST | 1u << SWC_REDUCE |
				      GATHERS,
			      false, false },
			    swc_tree_build },
	[SWC_ALGO_DTREE] = { { "dtree", "two binary trees, each with half the vector in pieces",
			       "pieces per half, 1 to 256",
			       1u << SWC_ALLREDUCE | 1u << SWC_BROADCAST | 1u << SWC_REDUCE, false,
			       false },
			     swc_dtree_build,
			     256 },
	[SWC_ALGO_ROTATE] = { { "rotate",
				"each rank exchanges with the others in turn, at growing distance",
				NULL, 1u << SWC_BARRIER | 1u << SWC_ALLTOALL, false, false },
			      swc_rotate_build,
			      .symmetry = SWC_SYMMETRY_SHIFT },
	[SWC_ALGO_BINE] = { { "bine", "trees and all-to-all with Swing's distances, on every port",
			      NULL,
			      1u << SWC_BROADCAST | 1u << SWC_REDUCE | 1u << SWC_ALLTOALL | GATHERS,
			      false, true },
			    swc_bine_build },
	[SWC_ALGO_BINE_SAG] = { { "bine-sag",
				  "large vectors: Swing's scatter and allgather, or backwards",
				  NULL, 1u << SWC_BROADCAST | 1u << SWC_REDUCE, false, true },
				swc_butterfly_build },
	[SWC_ALGO_GROUPED] = { { "grouped",
				 "one node: sums of ranks that share a cache, then of these groups",
				 "groups (default: the fewest of equal size)", WHOLE, true, false },
			       swc_grouped_build,
			       SWC_MAX_LOCAL_RANKS },
	[SWC_ALGO_BRUCK] = { { "bruck",
			       "all-to-all of small shards in log p steps: they travel together",
			       "radix, 2 to 8 (default: 4)", 1u << SWC_ALLTOALL, false, false,
			       .radix = true },
			     swc_bruck_build,
			     SWC_BRUCK_MAX_RADIX,
			     SWC_SYMMETRY_SHIFT },
	[SWC_ALGO_BY_NODES] = { { "by-nodes",
				  "all-to-all in one message for each pair of nodes with several ranks",
				  "segments, 1 (the default) to 256: more take less memory",
				  1u << SWC_ALLTOALL, false, false, .segments = true },
				swc_by_nodes_build,
				SWC_BY_NODES_MAX_SEGMENTS },
	[SWC_ALGO_LINEAR] = { { "linear", "the root exchanges with the others in turn", NULL,
				GATHERS, false, false },
			      swc_linear_build },
};

const struct swc_algo_info *swc_algo_info(unsigned int algo)
{
	return algo < SWC_ALGO_NR ? &algos[algo].info : NULL;
}

bool swc_algo_param(enum swc_algo algo, enum swc_coll coll, uint32_t i, int32_t *param)
{
	const struct swc_algo_info *info = &algos[algo].info;

	if (info->hybrid && coll == SWC_ALLREDUCE)
		*param = (int32_t)i;
	else if (info->pieces)
		*param = 1 << i;
	else if (info->segments)
		*param = i ? 2 << 2 * (i - 1) : 1;
	else if (info->messages)
		*param = !i ? SWC_PARAM_DEFAULT : i == 1 ? 4 : algos[algo].max_param + 1;
	else if (info->radix)
		*param = i < 3 ? 8 >> i
			       : algos[algo].max_param + 1; /* larger ones have shorter plans */
	else
		*param = SWC_PARAM_DEFAULT;
	return *param == SWC_PARAM_DEFAULT ? !i : *param <= algos[algo].max_param;
}

const char *swc_algo_name(unsigned int algo)
{
	return algo < SWC_ALGO_NR ? algos[algo].info.name : NULL;
}

int swc_algo_parse(const char *name, int32_t *param)
{
	size_t len = strcspn(name, ":");
	int32_t value = SWC_PARAM_DEFAULT;

	for (int i = 0; i < SWC_ALGO_NR; i++) {
		if (strlen(algos[i].info.name) != len || strncmp(name, algos[i].info.name, len))
			continue;
		if (name[len]) {
			uint64_t v;

			if (!algos[i].info.param || !param ||
			    !swc_number_parse(name + len + 1, 0, (uint64_t)algos[i].max_param, &v))
				return -EINVAL;
			value = (int32_t)v;
		}
		if (param)
			*param = value;
		return i;
	}
	return -EINVAL;
}

enum swc_symmetry swc_algo_pattern(const struct swc_plan_args *a)
{
	if (a->given || a->algo >= SWC_ALGO_NR)
		return SWC_SYMMETRY_NONE;
	return a->algo == SWC_ALGO_BINE && a->coll == SWC_ALLTOALL ? SWC_SYMMETRY_SWING
								   : algos[a->algo].symmetry;
}

/*
 * Ranks in row-major order are shifts of each other in one dimension only, where an algorithm knows
 * no other dimensions. Folds, odd rings and other collectives than allreduce make ranks differ in
 * what butterflies send.
 */
enum swc_symmetry swc_algo_symmetry(const struct swc_plan_args *a, const struct swc_topo *t)
{
	bool bine = !a->given && a->algo == SWC_ALGO_BINE && a->coll == SWC_ALLTOALL;
	enum swc_symmetry s = swc_algo_pattern(a);
	bool butterfly = s == SWC_SYMMETRY_XOR || s == SWC_SYMMETRY_SWING;
	bool in_rows = a->algo != SWC_ALGO_BUCKET && a->algo != SWC_ALGO_BUCKET2 &&
		       a->algo != SWC_ALGO_SPLIT && s == SWC_SYMMETRY_SHIFT;

	if (a->given || t->nslow)
		return SWC_SYMMETRY_NONE;
	if (t->nlocal == 1 && t->nnodes > 2 && algos[a->algo].info.serial &&
	    (t->kind == SWC_TOPO_MESH || t->ndims > 1))
		return SWC_SYMMETRY_RING;
	if (t->nlocal != 1 || (in_rows && t->ndims > 1) || s == SWC_SYMMETRY_RING)
		return SWC_SYMMETRY_NONE;
	for (uint32_t i = 0; butterfly && i < t->ndims; i++)
		if (t->dim[i] & (t->dim[i] - 1) &&
		    ((a->algo != SWC_ALGO_SWING_B && !bine) || t->dim[i] % 2))
			return SWC_SYMMETRY_NONE;
	return s;
}

int swc_algo_lines(const struct swc_plan_args *args, const struct swc_topo *topo,
		   struct swc_line_messages *steps)
{
	if (args->given || args->algo >= SWC_ALGO_NR || !algos[args->algo].lines)
		return -EOPNOTSUPP;
	return algos[args->algo].lines(args, topo, steps);
}

/* With one rank the result is a copy of its contribution. */
static void build_alone(struct swc_builder *b)
{
	swc_build_blocks(b, 1);
	swc_build_channel(b, 0, 1);
	if (b->w.hdr.coll == SWC_BARRIER) {
		swc_build_step(b, SWC_STEP_SYNC);
		return;
	}
	swc_build_step(b, SWC_STEP_LOCAL);
	swc_build_send(b, 0, SWC_BUF_SEND, 0, 1);
	swc_build_recv(b, 0, SWC_BUF_RECV, 0, 1, SWC_XFER_FINAL);
}

/*
 * The hash of what all ranks of a family have in common. in_place and others_only are not part of
 * it, because ranks may differ in them (each algorithm exchanges the same messages and passes the
 * same barriers either way).
 */
static uint64_t family(const struct swc_plan_args *a, const struct swc_topo *t,
		       const struct swc_plan_header *h)
{
	const uint32_t words[] = {
		SWC_PLAN_VERSION, a->coll,	     a->algo,	 (uint32_t)a->param,
		a->nranks,	  a->root,	     h->nshards, h->shard_blocks,
		h->nchannels,	  (uint32_t)t->kind, t->nlocal,	 t->ndims,
	};
	uint64_t hash = SWC_HASH_START;

	for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		hash = swc_hash_u32(hash, words[i]);
	for (uint32_t i = 0; i < t->ndims; i++)
		hash = swc_hash_u32(hash, t->dim[i]);
	/* The only plans that depend on rates. */
	for (uint32_t i = 0; a->algo == SWC_ALGO_SPLIT && i < t->ndims; i++)
		hash = swc_hash_u32(hash,
				    (uint32_t)(1024 * fmin(swc_topo_slowness(t, i), 1 << 21)));
	for (uint32_t i = 0; t->first && i < t->nnodes; i++)
		hash = swc_hash_u32(hash, t->first[i]);
	if (t->rails > 1)
		hash = swc_hash_u32(hash, t->rails);
	/* A final mix, so that all bits depend on all words. */
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93;
	return hash ^ hash >> 32;
}

static int finish(struct swc_builder *b, const struct swc_topo *topo, void **plan, size_t *bytes)
{
	int ret;

	b->w.hdr.family = family(b->args, topo, &b->w.hdr);
	ret = swc_plan_tables_pack(&b->w, plan, bytes);
	if (ret == -EFBIG)
		return swc_build_refuse(b, "the plan would have %zu bytes: %u is the limit",
					swc_plan_write_bytes(&b->w), SWC_MAX_PLAN_BYTES);
	return ret;
}

static int check_args(struct swc_builder *b)
{
	const struct swc_plan_args *a = b->args;
	int32_t param = a->algo < SWC_ALGO_NR && algos[a->algo].info.param
				? algos[a->algo].max_param
				: -1;

	if (a->coll >= SWC_COLL_NR || a->algo >= SWC_ALGO_NR || !a->nranks ||
	    a->nranks > SWC_PLAN_MAX_RANKS || a->rank >= a->nranks || a->root >= a->nranks ||
	    (a->root && !swc_coll_has_root(a->coll)) || a->channels > SWC_MAX_CHANNELS ||
	    (param >= 0 && (a->param < SWC_PARAM_DEFAULT || a->param > param))) {
		swc_build_refuse(b, "a collective, algorithm, number or rank is out of range");
		return -EINVAL;
	}
	if (a->topo && a->topo->nranks != a->nranks) {
		swc_build_refuse(b, "the topology has %u ranks, the communicator %u",
				 a->topo->nranks, a->nranks);
		return -EINVAL;
	}
	return 0;
}

/* Run an algorithm once for each rail that a rank uses. */
static int build_on_rails(struct swc_builder *b, swc_build_fn *build, uint32_t rails)
{
	int ret = 0;

	b->rails.n = rails > 1 ? rails : 0;
	for (; b->rails.part < rails && !ret && !b->error; b->rails.part++)
		ret = build(b);
	return ret;
}

/* Choose the members, and run the algorithm among them. */
static int build(struct swc_builder *b, const struct swc_topo *topo, struct swc_topo *flat)
{
	const struct swc_plan_args *a = b->args;
	const struct swc_algo_info *info = &algos[a->algo].info;
	bool whole_node = (a->nlocal ? a->nlocal
				     : swc_topo_local(topo, swc_topo_node_of(topo, a->rank))) ==
			  a->nranks;
	uint32_t rails;

	if (!whole_node)
		b->places = topo;
	if (a->nranks == 1) {
		build_alone(b);
		return 0;
	}
	if (!(info->colls & 1u << a->coll))
		return swc_build_refuse(
			b, "%s does not offer this collective: choose another algorithm",
			info->name);
	if (info->one_node) {
		if (!whole_node || a->nranks > SWC_MAX_FANIN)
			return swc_build_refuse(b, "%s is for up to %u ranks on one node",
						info->name, SWC_MAX_FANIN);
		return algos[a->algo].build(b);
	}
	/* Messages of a barrier are empty, and those of bruck and by-nodes few because they are whole. */
	rails = whole_node || a->coll == SWC_BARRIER || a->algo == SWC_ALGO_BRUCK ||
				a->algo == SWC_ALGO_BY_NODES || a->ports == 1
			? 1
			: swc_topo_rails_per_rank(topo);
	if (topo->nnodes == topo->nranks)
		return build_on_rails(b, algos[a->algo].build, rails);
	if (a->coll == SWC_ALLREDUCE && topo->nnodes > 1)
		return swc_hierarchy_build(b, algos[a->algo].build, rails);
	*flat = swc_topo_flat(a->nranks);
	b->topo = flat;
	return build_on_rails(b, algos[a->algo].build, rails);
}

/* A copy of a plan that there is. */
static int take_given(struct swc_builder *b, void **plan, size_t *bytes)
{
	const struct swc_plan_args *a = b->args;
	const struct swc_plan_header *h = a->given[a->rank];

	if (h->coll != a->coll || h->nranks != a->nranks || h->root != a->root) {
		swc_build_refuse(b,
				 "the plans are for another collective, root or number of ranks");
		return -EOPNOTSUPP;
	}
	if (a->in_place && h->flags & SWC_PLAN_NOT_IN_PLACE) {
		swc_build_refuse(b, "the plans are not for operations in place");
		return -EOPNOTSUPP;
	}
	*plan = malloc(a->given_bytes[a->rank]);
	if (!*plan)
		return -ENOMEM;
	memcpy(*plan, h, a->given_bytes[a->rank]);
	*bytes = a->given_bytes[a->rank];
	return 0;
}

int swc_plan_build(const struct swc_plan_args *a, void **plan, size_t *bytes, char *why,
		   size_t why_bytes)
{
	struct swc_topo flat = swc_topo_flat(a->nranks);
	const struct swc_topo *topo = a->topo ? a->topo : &flat;
	struct swc_builder b = {
		.args = a,
		.topo = topo,
		.n = a->nranks,
		.me = a->rank,
		.root = a->root,
		.in_place = a->in_place,
		.why = why,
		.why_bytes = why ? why_bytes : 0,
	};
	int ret;

	if (a->given && a->rank < a->nranks)
		return take_given(&b, plan, bytes);
	ret = check_args(&b);
	if (ret)
		return ret;
	swc_plan_write_begin(&b.w, (uint8_t)a->coll, a->nranks, a->rank, a->root);
	if (algos[a->algo].info.param && a->param >= 0)
		snprintf(b.w.hdr.name, sizeof(b.w.hdr.name), "%s:%d", algos[a->algo].info.name,
			 a->param);
	else
		strncpy(b.w.hdr.name, algos[a->algo].info.name, sizeof(b.w.hdr.name) - 1);
	ret = build(&b, topo, &flat);
	if (!ret)
		swc_build_end(&b);
	if (!ret)
		ret = b.error;
	if (!ret)
		ret = finish(&b, topo, plan, bytes);
	swc_plan_tables_free(&b.w);
	return ret;
}

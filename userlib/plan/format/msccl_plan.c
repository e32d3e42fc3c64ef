// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Plans from what a program of MSCCL does: the records of each GPU, in the order of their levels,
 * are printed as a plan file, which is parsed again; then the flags that the plans need are found
 * by verifying them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/format/msccl_program.h"
#include "kmod/core/plan_check.h"
#include "plan/names.h"

#define NONE SWC_MSCCL_NONE

/* A record as seen by one of its GPUs. */
struct view {
	uint32_t gpu, chan, level;
	enum {
		LOCALLY,
		SENDS,
		RECEIVES
	} kind;
	uint32_t record;
};

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static int compare_views(const void *a, const void *b)
{
	const struct view *x = a, *y = b;
	const uint32_t u[] = { x->gpu, x->chan, x->level, x->kind, x->record };
	const uint32_t v[] = { y->gpu, y->chan, y->level, y->kind, y->record };

	for (int i = 0; i < 5; i++)
		if (u[i] != v[i])
			return u[i] < v[i] ? -1 : 1;
	return 0;
}

static void print_range(const struct swc_msccl *m, struct swc_text *t, const char *verb,
			uint32_t rank, uint32_t cell, uint32_t n)
{
	swc_text_printf(t, "%s %u %s %u+%u", verb, rank, swc_buf_names[swc_msccl_buf(m, cell)],
			swc_msccl_block(m, cell), n);
}

static void print_view(const struct swc_msccl *m, struct swc_text *t, const struct view *v)
{
	const struct swc_msccl_record *r = &m->record[v->record];

	if (r->local) {
		print_range(m, t, "local\nfrom", v->gpu, r->src, r->n);
		if (r->reduce)
			print_range(m, t, "\nfrom", v->gpu, r->operand, r->n);
		print_range(m, t, "\nto", v->gpu, r->dst, r->n);
	} else if (v->kind == SENDS) {
		print_range(m, t, "send", swc_msccl_gpu(m, r->dst), r->src, r->n);
		if (!r->reduce)
			swc_text_printf(t, " stored");
	} else {
		print_range(m, t, "recv", swc_msccl_gpu(m, r->src), r->dst, r->n);
		if (r->reduce)
			swc_text_printf(t, " reduce %s",
					swc_buf_names[swc_msccl_buf(m, r->operand)]);
	}
	if (r->final && v->kind != SENDS)
		swc_text_printf(t, " final");
	/* The program does not know the network: its channels stand for different paths. */
	if (!r->local && v->chan)
		swc_text_printf(t, " path %u", v->chan);
	swc_text_printf(t, "\n");
}

/* The views of each GPU, in the order of its plan. */
static struct view *make_views(struct swc_msccl *m, bool split, uint32_t *nviews,
			       uint32_t *nchannels)
{
	struct view *v = calloc(2 * (size_t)m->nrecords + 1, sizeof(*v));
	uint32_t n = 0;

	*nchannels = 1;
	for (uint32_t i = 0; v && i < m->nrecords; i++) {
		const struct swc_msccl_record *r = &m->record[i];
		uint32_t chan = split ? r->chan : 0;

		if (!r->local)
			v[n++] = (struct view){ swc_msccl_gpu(m, r->src), chan, r->level, SENDS,
						i };
		v[n++] = (struct view){ swc_msccl_gpu(m, r->dst), chan, r->level,
					r->local ? LOCALLY : RECEIVES, i };
		*nchannels = larger(*nchannels, chan + 1);
	}
	*nviews = n;
	if (v)
		qsort(v, n, sizeof(*v), compare_views);
	return v;
}

static void print_windows(const struct swc_msccl *m, struct swc_text *t, uint32_t gpu)
{
	uint32_t first = NONE, end = 0;

	for (int buf = SWC_BUF_SEND; buf <= SWC_BUF_RECV; buf++) {
		struct swc_plan_window w = swc_plan_window_of(m->coll, buf, gpu, m->root,
							      m->shard_blocks, m->nblocks);

		if (w.nblocks)
			swc_text_printf(t, "window %s %u+%u\n", swc_buf_names[buf], w.first_block,
					w.nblocks);
	}
	for (uint32_t b = 0; b < m->nblocks; b++) {
		if (m->state[swc_msccl_cell(m, gpu, SWC_BUF_SCRATCH, b)].touched) {
			first = first == NONE ? b : first;
			end = b + 1;
		}
	}
	if (end)
		swc_text_printf(t, "window scratch %u+%u\n", first, end - first);
}

/* ---- channels for what has none ---- */

/* Cells that one operation accesses, by chains of parents. The operation may be in place. */
static uint32_t same_as(const struct swc_msccl *m, uint32_t *parent, uint32_t cell)
{
	if (swc_msccl_buf(m, cell) == SWC_BUF_RECV)
		cell = swc_msccl_cell(m, swc_msccl_gpu(m, cell), SWC_BUF_SEND,
				      swc_msccl_block(m, cell));
	/* Each chain is halved, so none stays long. */
	while (parent[cell] != cell)
		cell = parent[cell] = parent[parent[cell]];
	return cell;
}

static void join(const struct swc_msccl *m, uint32_t *parent, uint32_t a, uint32_t b)
{
	a = same_as(m, parent, a);
	b = same_as(m, parent, b);
	parent[larger(a, b)] = a < b ? a : b;
}

/*
 * Channels do not wait for one another, so records that share a cell, one after another, are of one channel.
 * What has no cell in common with others takes turns. 0 or -ENOMEM.
 */
static int spread(struct swc_msccl *m)
{
	uint32_t cells = 3 * m->nblocks * m->ngpus, next = 0;
	uint32_t *parent = calloc(2 * (size_t)cells, sizeof(*parent));
	uint32_t *chan = parent ? parent + cells : NULL;

	if (!parent)
		return -ENOMEM;
	for (uint32_t i = 0; i < cells; i++) {
		parent[i] = i;
		chan[i] = NONE;
	}
	for (uint32_t i = 0; i < m->nrecords; i++) {
		const struct swc_msccl_record *r = &m->record[i];

		for (uint32_t k = 0; k < r->n; k++) {
			join(m, parent, r->src, r->src + k);
			join(m, parent, r->src, r->dst + k);
			if (r->operand != NONE)
				join(m, parent, r->src, r->operand + k);
		}
	}
	for (uint32_t i = 0; i < m->nrecords; i++) {
		uint32_t root = same_as(m, parent, m->record[i].src);

		if (chan[root] == NONE)
			chan[root] = next++ % m->channels;
		m->record[i].chan = chan[root];
	}
	for (uint32_t i = 0; i < cells; i++)
		if (m->state[i].touched)
			m->state[i].chan = chan[same_as(m, parent, i)];
	free(parent);
	return 0;
}

static void print_plans(struct swc_msccl *m, struct swc_text *t)
{
	uint32_t nviews, nchannels, at = 0, highest = 0;
	bool split = true;
	struct view *v;

	for (uint32_t i = 0; i < 3 * m->nblocks * m->ngpus; i++)
		split &= !m->state[i].touched || m->state[i].chan != NONE;
	for (uint32_t i = 0; i < m->nrecords; i++)
		highest = larger(highest, m->record[i].chan);
	v = make_views(m, split && highest < SWC_MAX_CHANNELS, &nviews, &nchannels);
	if (!v) {
		m->error = -ENOMEM;
		return;
	}
	swc_text_printf(
		t,
		"swingcoll-plans 1\nname %s\ncollective %s\nranks %u\nroot %u\nshards %u\nblocks %u\n",
		m->name, swc_coll_name(m->coll), m->ngpus, m->root, m->nblocks / m->shard_blocks,
		m->shard_blocks);
	for (uint32_t g = 0; g < m->ngpus; g++) {
		swc_text_printf(t, "rank %u\n", g);
		print_windows(m, t, g);
		for (uint32_t c = 0; c < nchannels; c++) {
			uint32_t net = NONE;

			swc_text_printf(t, "channel\n");
			for (; at < nviews && v[at].gpu == g && v[at].chan == c; at++) {
				if (v[at].kind && v[at].level != net)
					swc_text_printf(t, "net\n");
				if (v[at].kind)
					net = v[at].level;
				print_view(m, t, &v[at]);
			}
		}
	}
	swc_text_printf(t, "end\n");
	free(v);
}

static bool good(const struct swc_plan_set *set, uint32_t flags, const bool *in_place)
{
	struct swc_verdict verdict;

	for (uint32_t r = 0; r < set->nranks; r++)
		((struct swc_plan_header *)set->plan[r])->flags = flags;
	return !swc_plan_verify((const void *const *)set->plan, set->bytes, NULL, set->nranks, NULL,
				&verdict) &&
	       (flags & SWC_PLAN_NOT_IN_PLACE ||
		!swc_plan_verify((const void *const *)set->plan, set->bytes, in_place, set->nranks,
				 NULL, &verdict));
}

/* Find the fewest flags with which the plans are right; none if they are wrong with all of them. */
static int find_flags(const struct swc_plan_set *set)
{
	bool *in_place = malloc(set->nranks * sizeof(*in_place));

	if (!in_place)
		return -ENOMEM;
	memset(in_place, true, set->nranks * sizeof(*in_place));
	for (uint32_t flags = 0; flags <= SWC_PLAN_FLAGS_ALL && !good(set, flags, in_place);
	     flags++)
		if (flags == SWC_PLAN_FLAGS_ALL)
			for (uint32_t r = 0; r < set->nranks; r++)
				((struct swc_plan_header *)set->plan[r])->flags = 0;
	free(in_place);
	return 0;
}

int swc_msccl_make_plans(struct swc_msccl *m, struct swc_plan_set *set)
{
	struct swc_text text = { 0 };

	if (m->channels > 1 && !m->error)
		m->error = spread(m);
	print_plans(m, &text);
	if (text.failed && !m->error)
		m->error = -ENOMEM;
	if (!m->error)
		m->error = swc_plan_text_parse(text.at, text.used, set, m->why, m->why_bytes);
	free(text.at);
	return m->error ? m->error : find_flags(set);
}

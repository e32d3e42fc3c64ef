// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a program of MSCCL does, as plans: the records of each GPU in the order of their levels are written as a plan
 * file, which is read back; and the restrictions that the plans need are found by trying them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "msccl_program.h"
#include "plan_check.h"

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

static const char *const buf_names[] = { "send", "recv", "scratch" };

static void write_range(const struct swc_msccl *m, FILE *f, const char *verb, uint32_t rank,
			uint32_t cell, uint32_t n)
{
	fprintf(f, "%s %u %s %u+%u", verb, rank, buf_names[swc_msccl_buf(m, cell)],
		swc_msccl_block(m, cell), n);
}

static void write_view(const struct swc_msccl *m, FILE *f, const struct view *v)
{
	const struct record *r = &m->record[v->record];

	if (r->local) {
		write_range(m, f, "local\nfrom", v->gpu, r->src, r->n);
		if (r->reduce)
			write_range(m, f, "\nfrom", v->gpu, r->operand, r->n);
		write_range(m, f, "\nto", v->gpu, r->dst, r->n);
	} else if (v->kind == SENDS) {
		write_range(m, f, "send", swc_msccl_gpu(m, r->dst), r->src, r->n);
		if (!r->reduce)
			fprintf(f, " stored");
	} else {
		write_range(m, f, "recv", swc_msccl_gpu(m, r->src), r->dst, r->n);
		if (r->reduce)
			fprintf(f, " reduce %s", buf_names[swc_msccl_buf(m, r->operand)]);
	}
	if (r->final && v->kind != SENDS)
		fprintf(f, " final");
	/* The program does not know the network: its channels are for different ways. */
	if (!r->local && v->chan)
		fprintf(f, " path %u", v->chan);
	fputc('\n', f);
}

/* The views of each GPU, in the order of its plan. */
static struct view *make_views(struct swc_msccl *m, bool split, uint32_t *nviews,
			       uint32_t *nchannels)
{
	struct view *v = calloc(2 * (size_t)m->nrecords + 1, sizeof(*v));
	uint32_t n = 0;

	*nchannels = 1;
	for (uint32_t i = 0; v && i < m->nrecords; i++) {
		const struct record *r = &m->record[i];
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

static void write_windows(const struct swc_msccl *m, FILE *f, uint32_t gpu)
{
	uint32_t first = NONE, end = 0;

	for (int buf = SWC_BUF_SEND; buf <= SWC_BUF_RECV; buf++) {
		struct swc_plan_window w = swc_plan_window_of(m->coll, buf, gpu, m->root,
							      m->part_blocks, m->nblocks);

		if (w.nblocks)
			fprintf(f, "window %s %u+%u\n", buf_names[buf], w.first_block, w.nblocks);
	}
	for (uint32_t b = 0; b < m->nblocks; b++) {
		if (m->state[swc_msccl_cell(m, gpu, SWC_BUF_SCRATCH, b)].touched) {
			first = first == NONE ? b : first;
			end = b + 1;
		}
	}
	if (end)
		fprintf(f, "window scratch %u+%u\n", first, end - first);
}

static void write_plans(struct swc_msccl *m, FILE *f)
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
	fprintf(f,
		"swingcoll-plans 1\nname %s\ncollective %s\nranks %u\nroot %u\nparts %u\nblocks %u\n",
		m->name, swc_planfile_coll_name(m->coll), m->ngpus, m->root,
		m->nblocks / m->part_blocks, m->part_blocks);
	for (uint32_t g = 0; g < m->ngpus; g++) {
		fprintf(f, "rank %u\n", g);
		write_windows(m, f, g);
		for (uint32_t c = 0; c < nchannels; c++) {
			uint32_t net = NONE;

			fprintf(f, "channel\n");
			for (; at < nviews && v[at].gpu == g && v[at].chan == c; at++) {
				if (v[at].kind && v[at].level != net)
					fprintf(f, "net\n");
				if (v[at].kind)
					net = v[at].level;
				write_view(m, f, &v[at]);
			}
		}
	}
	fprintf(f, "end\n");
	free(v);
}

static bool good(const struct swc_planset *set, uint32_t flags, const bool *in_place)
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

/* The fewest restrictions that the plans are right with; none if they are wrong anyway. */
static int find_flags(const struct swc_planset *set)
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

int swc_msccl_write(struct swc_msccl *m, struct swc_planset *set)
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);

	if (!f)
		return -ENOMEM;
	write_plans(m, f);
	if (fclose(f) && !m->error)
		m->error = -ENOMEM;
	f = m->error ? NULL : fmemopen(text, bytes, "r");
	if (!m->error && !f)
		m->error = -ENOMEM;
	if (f) {
		m->error = swc_planfile_read(f, set, m->why, m->why_bytes);
		fclose(f);
	}
	free(text);
	return m->error ? m->error : find_flags(set);
}

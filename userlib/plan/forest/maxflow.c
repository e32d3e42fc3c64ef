// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Maximum flow by push and relabel, highest label first (Goldberg and Tarjan, "A new approach to the
 * maximum-flow problem", 1988; Cherkassky and Goldberg, 1997, for the order and the gaps).
 *
 * Each supply is an excess of its node from the start, so that there is no source, and distant nodes
 * do not wait for near ones. Only the first phase is run: it finds the value and the cut; excesses
 * that cannot reach the sink stay where they are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/forest/maxflow.h"

#define NONE UINT32_MAX

int swc_maxflow_init(struct swc_maxflow *f, const struct swc_graph *g)
{
	uint32_t n = g->nnodes, m = g->nlinks, *at;

	*f = (struct swc_maxflow){ .n = n, .nlinks = m };
	f->capacity = calloc(m + 1u, sizeof(*f->capacity));
	f->supply = calloc(n, sizeof(*f->supply));
	f->first = calloc(n + 1u, sizeof(*f->first));
	f->to = calloc(2 * (size_t)m + 1, sizeof(*f->to));
	f->back = calloc(2 * (size_t)m + 1, sizeof(*f->back));
	f->arc = calloc(m + 1u, sizeof(*f->arc));
	f->back_arc = calloc(m + 1u, sizeof(*f->back_arc));
	f->left = calloc(2 * (size_t)m + 1, sizeof(*f->left));
	f->excess = calloc(n, sizeof(*f->excess));
	f->label = calloc(n, sizeof(*f->label));
	f->current = calloc(n, sizeof(*f->current));
	f->queue = calloc(n, sizeof(*f->queue));
	f->bucket = calloc(n + 1u, sizeof(*f->bucket));
	f->next = calloc(n, sizeof(*f->next));
	f->count = calloc(n + 1u, sizeof(*f->count));
	at = calloc(n, sizeof(*at));
	if (!f->capacity || !f->supply || !f->first || !f->to || !f->back || !f->arc ||
	    !f->back_arc || !f->left || !f->excess || !f->label || !f->current || !f->queue ||
	    !f->bucket || !f->next || !f->count || !at) {
		free(at);
		swc_maxflow_free(f);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < m; i++) {
		at[g->link[i].from]++;
		at[g->link[i].to]++;
	}
	for (uint32_t v = 0, sum = 0; v < n; v++) {
		f->first[v] = sum;
		sum += at[v];
		at[v] = f->first[v];
		f->first[v + 1] = sum;
	}
	for (uint32_t i = 0; i < m; i++) {
		uint32_t a = at[g->link[i].from]++, b = at[g->link[i].to]++;

		f->capacity[i] = g->link[i].capacity;
		f->to[a] = g->link[i].to;
		f->to[b] = g->link[i].from;
		f->back[a] = b;
		f->back[b] = a;
		f->arc[i] = a;
		f->back_arc[i] = b;
	}
	free(at);
	return 0;
}

void swc_maxflow_free(struct swc_maxflow *f)
{
	free(f->capacity);
	free(f->supply);
	free(f->first);
	free(f->to);
	free(f->back);
	free(f->arc);
	free(f->back_arc);
	free(f->left);
	free(f->excess);
	free(f->label);
	free(f->current);
	free(f->queue);
	free(f->bucket);
	free(f->next);
	free(f->count);
	*f = (struct swc_maxflow){ 0 };
}

/* Label each node with its distance to the sink, n if there is no way. */
static void measure(struct swc_maxflow *f, uint32_t sink)
{
	uint32_t head = 0, tail = 0;

	for (uint32_t v = 0; v < f->n; v++)
		f->label[v] = f->n;
	f->label[sink] = 0;
	f->queue[tail++] = sink;
	while (head < tail) {
		uint32_t v = f->queue[head++];

		for (uint32_t a = f->first[v]; a < f->first[v + 1]; a++) {
			uint32_t u = f->to[a];

			if (f->label[u] == f->n && f->left[f->back[a]] > 0) {
				f->label[u] = f->label[v] + 1;
				f->queue[tail++] = u;
			}
		}
	}
}

static void activate(struct swc_maxflow *f, uint32_t v)
{
	f->next[v] = f->bucket[f->label[v]];
	f->bucket[f->label[v]] = v;
	if (f->label[v] > f->highest)
		f->highest = f->label[v];
}

/* Labels anew, and the lists of active nodes by them. */
static void begin(struct swc_maxflow *f, uint32_t sink)
{
	measure(f, sink);
	f->highest = 0;
	for (uint32_t l = 0; l <= f->n; l++) {
		f->bucket[l] = NONE;
		f->count[l] = 0;
	}
	for (uint32_t v = 0; v < f->n; v++) {
		f->current[v] = f->first[v];
		f->count[f->label[v]]++;
		if (v != sink && f->label[v] < f->n && f->excess[v])
			activate(f, v);
	}
}

/* No node has this label any more, so those above cannot reach the sink. */
static void lift_above(struct swc_maxflow *f, uint32_t label)
{
	for (uint32_t v = 0; v < f->n; v++)
		if (f->label[v] > label && f->label[v] < f->n) {
			f->count[f->label[v]]--;
			f->label[v] = f->n;
			f->count[f->n]++;
		}
}

/* Returns the label under which the node is active again, or n. */
static uint32_t relabel(struct swc_maxflow *f, uint32_t v)
{
	uint32_t old = f->label[v], label = f->n;

	for (uint32_t a = f->first[v]; a < f->first[v + 1]; a++)
		if (f->left[a] > 0 && f->label[f->to[a]] + 1 < label)
			label = f->label[f->to[a]] + 1;
	f->count[old]--;
	f->count[label]++;
	f->label[v] = label;
	f->current[v] = f->first[v];
	if (!f->count[old])
		lift_above(f, old);
	return f->label[v];
}

/* Push the excess of a node on, until none is left or the node must be relabelled. */
static void push(struct swc_maxflow *f, uint32_t v, uint32_t sink)
{
	uint32_t a = f->current[v];

	for (; a < f->first[v + 1]; a++) {
		uint32_t u = f->to[a];
		int64_t d = f->left[a];

		if (d <= 0 || f->label[v] != f->label[u] + 1)
			continue;
		if (d > f->excess[v])
			d = f->excess[v];
		f->left[a] -= d;
		f->left[f->back[a]] += d;
		if (!f->excess[u] && u != sink)
			activate(f, u);
		f->excess[u] += d;
		f->excess[v] -= d;
		if (!f->excess[v])
			break;
	}
	f->current[v] = a;
}

/* Returns false after so many relabellings that labels should be measured again. */
static bool discharge(struct swc_maxflow *f, uint32_t v, uint32_t sink, uint32_t *relabels)
{
	for (push(f, v, sink); f->excess[v]; push(f, v, sink)) {
		if (relabel(f, v) == f->n)
			return true;
		if (++*relabels > f->n)
			return false;
	}
	return true;
}

int64_t swc_maxflow_run(struct swc_maxflow *f, uint32_t sink)
{
	uint32_t relabels = 0, v;

	memset(f->left, 0, 2 * (size_t)f->nlinks * sizeof(*f->left));
	for (uint32_t i = 0; i < f->nlinks; i++)
		f->left[f->arc[i]] = f->capacity[i];
	memcpy(f->excess, f->supply, f->n * sizeof(*f->excess));
	f->sink = sink;
	begin(f, sink);
	for (;;) {
		while (f->highest && f->bucket[f->highest] == NONE)
			f->highest--;
		if (!f->highest)
			return f->excess[sink];
		v = f->bucket[f->highest];
		f->bucket[f->highest] = f->next[v];
		if (f->label[v] != f->highest) /* lifted above a gap */
			continue;
		if (!discharge(f, v, sink, &relabels)) {
			relabels = 0;
			begin(f, sink);
		}
	}
}

void swc_maxflow_cut(struct swc_maxflow *f, bool *side)
{
	measure(f, f->sink);
	for (uint32_t v = 0; v < f->n; v++)
		side[v] = f->label[v] == f->n;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading tuning files, and choosing by them. A file may have measurements of many topologies;
 * lines of other topologies are checked like all lines and then skipped.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/forest/algorithm.h"
#include "plan/names.h"
#include "plan/number.h"
#include "plan/select/tuning.h"
#include "plan/table.h"
#include "plan/text.h"

#define FIELDS 6
#define MAX_US 1e15

static int parse_algo(const char *name, int32_t *param)
{
	uint32_t pieces;

	if (!swc_forest_parse(name, &pieces))
		return swc_algo_parse(name, param);
	*param = pieces ? (int32_t)pieces : SWC_PARAM_DEFAULT;
	return SWC_ALGO_FOREST;
}

/*
 * What was measured holds for the shape, whatever the figures of links. The whole text, however many nodes
 * have numbers of ranks of their own; NULL: no memory.
 */
static char *shape_text(const struct swc_topo *topo)
{
	struct swc_topo shape = *topo;
	char *text;
	int bytes;

	shape.gbps = shape.hop_ns = 0;
	shape.rails = shape.nslow = 0;
	shape.tcp = false;
	memset(shape.dim_gbps, 0, sizeof(shape.dim_gbps));
	bytes = swc_topo_format(&shape, NULL, 0);
	text = bytes < 0 ? NULL : malloc((size_t)bytes + 1);
	if (text && swc_topo_format(&shape, text, (size_t)bytes + 1) == bytes)
		return text;
	free(text);
	return NULL;
}

/* 1: a topology's text has this shape, 0: another one; -EINVAL: it is none, or -ENOMEM. */
static int has_shape(const char *topology, const char *shape)
{
	struct swc_topo topo;
	char *text, why[8];
	int ret = swc_topo_parse(&topo, topology, why, sizeof(why));

	if (ret)
		return ret;
	text = shape_text(&topo);
	ret = text ? !strcmp(text, shape) : -ENOMEM;
	free(text);
	swc_topo_free(&topo);
	return ret;
}

/* 1: it is of this shape, 0: of another one; or an error */
static int parse_line(char **field, const char *shape, struct swc_tuned *e, const char **expected)
{
	int v, ret;
	char *end;

	*expected = "an operation such as allreduce";
	v = swc_coll_parse(field[0]);
	if (v < 0)
		return -EINVAL;
	e->coll = (uint8_t)v;
	*expected = "an element type such as f32";
	v = swc_dtype_parse(field[1]);
	if (v < 0)
		return -EINVAL;
	e->dtype = (uint8_t)v;
	*expected = "a topology such as torus:4x4";
	ret = has_shape(field[2], shape);
	if (ret < 0)
		return ret;
	*expected = "a number of bytes";
	if (!swc_number_parse(field[3], 1, UINT64_MAX, &e->bytes))
		return -EINVAL;
	*expected = "an algorithm such as ring";
	v = parse_algo(field[4], &e->param);
	if (v < 0)
		return -EINVAL;
	e->algo = (uint8_t)v;
	*expected = "a time in microseconds";
	e->us = strtod(field[5], &end);
	return *end || end == field[5] || !(e->us > 0 && e->us <= MAX_US) ? -EINVAL : ret;
}

static int add(struct swc_tuning *t, const struct swc_tuned *e)
{
	if (!swc_table_reserve(&t->entry, t->n, &t->room, sizeof(*e)))
		return -ENOMEM;
	t->entry[t->n++] = *e;
	return 0;
}

static int take_links(struct swc_tuning *t, struct swc_topo *topo)
{
	if (topo->gbps > 0) {
		t->gbps = topo->gbps;
		memcpy(t->dim_gbps, topo->dim_gbps, sizeof(t->dim_gbps));
		free(t->slow);
		t->slow = topo->slow;
		t->nslow = topo->nslow;
		topo->slow = NULL;
		topo->nslow = 0;
	}
	if (topo->hop_ns > 0)
		t->hop_ns = topo->hop_ns;
	return topo->gbps > 0 || topo->hop_ns > 0 ? 0 : -EINVAL;
}

/* @figures: a topology with figures of its links. */
static int parse_links(struct swc_tuning *t, const char *figures, const char *shape,
		       const char **expected)
{
	struct swc_tuning other = { 0 };
	char *text, why[8];
	struct swc_topo topo;
	int ret;

	*expected = "a topology with figures of its links, such as torus:4x4@60Gbps/30Gbps";
	ret = swc_topo_parse(&topo, figures, why, sizeof(why));
	if (ret)
		return ret;
	text = shape_text(&topo);
	ret = text ? take_links(strcmp(text, shape) ? &other : t, &topo) : -ENOMEM;
	free(text);
	swc_topo_free(&topo);
	swc_tuning_free(&other);
	return ret;
}

static int parse_lines(struct swc_tuning *t, char *text, const char *topo, char *why,
		       size_t why_bytes)
{
	unsigned int number = 0;
	char *line;
	int ret = 0;

	while (!ret && (line = strsep(&text, "\n"))) {
		const char *expected = "operation, type, topology, bytes, algorithm, microseconds";
		char *field[FIELDS];
		struct swc_tuned e;
		int n = swc_text_words(line, field, FIELDS);

		number++;
		if (!n)
			continue;
		if (n == 2 && !strcmp(field[0], "links"))
			ret = parse_links(t, field[1], topo, &expected);
		else
			ret = n == FIELDS ? parse_line(field, topo, &e, &expected) : -EINVAL;
		if (ret == -EINVAL)
			swc_text_refuse(why, why_bytes, "line %u: expected %s", number, expected);
		else if (ret > 0)
			ret = add(t, &e);
	}
	return ret;
}

int swc_tuning_parse(struct swc_tuning *t, char *text, const struct swc_topo *topo, char *why,
		     size_t why_bytes)
{
	struct swc_number_locale locale;
	char *shape = shape_text(topo);
	int ret = -ENOMEM;

	*t = (struct swc_tuning){ 0 };
	if (shape && swc_number_locale_enter(&locale)) {
		ret = parse_lines(t, text, shape, why, why_bytes);
		swc_number_locale_leave(&locale);
	}
	free(shape);
	if (ret)
		swc_tuning_free(t);
	return ret;
}

void swc_tuning_free(struct swc_tuning *t)
{
	free(t->entry);
	free(t->slow);
	*t = (struct swc_tuning){ 0 };
}

int swc_tuning_links(const struct swc_tuning *t, struct swc_topo *topo)
{
	if (t->hop_ns > 0)
		topo->hop_ns = t->hop_ns;
	if (!(t->gbps > 0))
		return 0;
	topo->gbps = t->gbps;
	memcpy(topo->dim_gbps, t->dim_gbps, sizeof(topo->dim_gbps));
	return swc_topo_set_slow(topo, t->slow, t->nslow);
}

bool swc_tuning_rates(struct swc_topo *topo, const double gbps[SWC_TOPO_DIMS])
{
	double most = 0, least = INFINITY;

	for (uint32_t i = 0; i < topo->ndims; i++) {
		most = fmax(most, gbps[i]);
		least = gbps[i] > 0 ? fmin(least, gbps[i]) : least;
	}
	if (!(most > 0))
		return false;
	topo->gbps = most;
	memset(topo->dim_gbps, 0, sizeof(topo->dim_gbps));
	for (uint32_t i = 0; least < most && i < topo->ndims; i++)
		topo->dim_gbps[i] = gbps[i] > 0 ? gbps[i] : most;
	return true;
}

/* ---- rates of single links ---- */

#define ALIKE 0.9  /* of a rate: the same but for noise */
#define WHOLE 0.75 /* of the fastest links' rate: links that may make up the rate of a dimension */
#define PARTS 16

static int by_rate(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The fastest of ascending rates that another one confirms: one by itself may be an error. */
static double fastest(const double *rate, uint32_t n)
{
	for (uint32_t i = n; i-- > 1;)
		if (rate[i - 1] >= ALIKE * rate[i])
			return rate[i];
	return rate[n - 1];
}

/*
 * The rate of those links of a dimension that are not slow, 0 if none was measured: the median of all that
 * are not far behind the fastest, however few they are. @rate: room for all.
 */
static double rate_of_dim(const struct swc_topo *topo, uint32_t dim,
			  const struct swc_topo_slow *link, uint32_t n, double *rate)
{
	uint32_t have = 0, first = 0;
	double most;

	for (uint32_t i = 0; i < n; i++)
		if (link[i].gbps > 0 && swc_topo_dim(topo, link[i].from, link[i].to) == dim)
			rate[have++] = link[i].gbps;
	if (!have)
		return 0;
	qsort(rate, have, sizeof(*rate), by_rate);
	most = fastest(rate, have);
	while (have > 1 && rate[have - 1] > most)
		have--;
	while (rate[first] < WHOLE * most)
		first++;
	return rate[first + (have - first) / 2];
}

/*
 * Rates of dimensions in simple proportions to the fastest one, as measurements are not exact, and odd
 * proportions need many trees: in sixteenths of it, or if it is more than four times as fast, in quarters
 * of that.
 */
static void simplify(double gbps[SWC_TOPO_DIMS])
{
	double most = 0;

	for (uint32_t i = 0; i < SWC_TOPO_DIMS; i++)
		most = fmax(most, gbps[i]);
	for (uint32_t i = 0; i < SWC_TOPO_DIMS; i++) {
		if (gbps[i] >= ALIKE * most)
			gbps[i] = most;
		else if (gbps[i] >= most / 4)
			gbps[i] = most * round(gbps[i] / most * PARTS) / PARTS;
		else if (gbps[i] > 0)
			gbps[i] = most * 4 / round(most / gbps[i] * 4);
	}
}

/* Links that are slower than @gbps of their dimension. Returns how many. */
static uint32_t list_slow(const struct swc_topo *topo, const double *gbps,
			  const struct swc_topo_slow *link, uint32_t n, struct swc_topo_slow *slow)
{
	uint32_t have = 0;

	for (uint32_t i = 0; i < n; i++) {
		double whole = gbps[swc_topo_dim(topo, link[i].from, link[i].to)];
		double parts = fmax(round(link[i].gbps / whole * PARTS), 1);

		if (!(link[i].gbps > 0) || link[i].gbps >= ALIKE * whole)
			continue;
		slow[have] = link[i];
		slow[have++].gbps = whole * parts / PARTS;
	}
	return have;
}

int swc_tuning_slow(struct swc_topo *topo, const struct swc_topo_slow *link, uint32_t n)
{
	struct swc_topo_slow *slow = calloc(n + 1ul, sizeof(*slow));
	double *rate = calloc(n + 1ul, sizeof(*rate)), gbps[SWC_TOPO_DIMS] = { 0 };
	int ret = slow && rate ? 0 : -ENOMEM;

	for (uint32_t i = 0; !ret && i < topo->ndims; i++)
		gbps[i] = rate_of_dim(topo, i, link, n, rate);
	simplify(gbps);
	if (!ret)
		ret = swc_tuning_rates(topo, gbps) ? 0 : -EINVAL;
	if (!ret)
		ret = swc_topo_set_slow(topo, slow, list_slow(topo, gbps, link, n, slow));
	free(slow);
	free(rate);
	return ret;
}

static bool is_float(uint8_t dtype)
{
	return dtype >= SWC_F16;
}

const struct swc_tuned *swc_tuning_best(const struct swc_tuning *t, uint8_t coll, uint8_t dtype,
					uint64_t bytes,
					bool (*usable)(const struct swc_tuned *e, void *arg),
					void *arg)
{
	const struct swc_tuned *best = NULL;
	double best_far = 0;

	for (unsigned int i = 0; i < t->n; i++) {
		const struct swc_tuned *e = &t->entry[i];
		double ratio = (double)e->bytes / (bytes ? (double)bytes : 1);
		double far = ratio < 1 ? 1 / ratio : ratio;

		if (e->coll != coll || is_float(e->dtype) != is_float(dtype) ||
		    (usable && !usable(e, arg)))
			continue;
		if (!best || far < best_far || (far == best_far && e->us < best->us)) {
			best = e;
			best_far = far;
		}
	}
	return best;
}

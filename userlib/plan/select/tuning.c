// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading tuning files, and asking them. A file may hold measurements of many topologies; those of other
 * topologies are checked like all lines and then left out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "points.h"
#include "tuning.h"

#define FIELDS 6
#define TOPO_TEXT 256

static int parse_line(char **field, const struct swc_tuning_names *names, struct swc_tuned *e,
		      const char **expected)
{
	struct swc_topo topo;
	char *end, why[8];
	int v;

	*expected = "an operation such as allreduce";
	v = names->coll(field[0]);
	if (v < 0)
		return -EINVAL;
	e->coll = (uint8_t)v;
	*expected = "an element type such as f32";
	v = names->dtype(field[1]);
	if (v < 0)
		return -EINVAL;
	e->dtype = (uint8_t)v;
	*expected = "a topology such as torus:4x4";
	if (swc_topo_parse(&topo, field[2], why, sizeof(why)))
		return -EINVAL;
	swc_topo_free(&topo);
	*expected = "a number of bytes";
	e->bytes = strtoull(field[3], &end, 10);
	if (*end || *field[3] < '1' || *field[3] > '9')
		return -EINVAL;
	*expected = "an algorithm such as ring";
	v = swc_algo_parse(field[4], &e->param);
	if (v < 0)
		return -EINVAL;
	e->algo = (uint8_t)v;
	*expected = "a time in microseconds";
	e->us = strtod(field[5], &end);
	return *end || end == field[5] || !(e->us > 0) ? -EINVAL : 0;
}

/* The words of a line; 0 for an empty one, FIELDS + 1 for more than there may be. */
static int split(char *line, char **field)
{
	char *save = NULL;
	int n = 0;

	line[strcspn(line, "#\r\n")] = 0;
	for (char *w = strtok_r(line, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
		if (n == FIELDS)
			return FIELDS + 1;
		field[n++] = w;
	}
	return n;
}

static int add(struct swc_tuning *t, const struct swc_tuned *e)
{
	/* Grow at powers of two. */
	if (!(t->n & (t->n - 1))) {
		void *p = reallocarray(t->entry, t->n ? 2 * (size_t)t->n : 1, sizeof(*e));

		if (!p)
			return -ENOMEM;
		t->entry = p;
	}
	t->entry[t->n++] = *e;
	return 0;
}

static int read_lines(struct swc_tuning *t, FILE *f, const char *path, const char *topo,
		      const struct swc_tuning_names *names, char *why, size_t why_bytes)
{
	unsigned int number = 0;
	char *line = NULL;
	size_t room = 0;
	int ret = 0;

	while (!ret && getline(&line, &room, f) > 0) {
		const char *expected = "operation, type, topology, bytes, algorithm, microseconds";
		char *field[FIELDS];
		struct swc_tuned e;
		int n = split(line, field);

		number++;
		if (!n)
			continue;
		ret = n == FIELDS ? parse_line(field, names, &e, &expected) : -EINVAL;
		if (ret)
			snprintf(why, why_bytes, "%s, line %u: expected %s", path, number,
				 expected);
		else if (!strcmp(field[2], topo))
			ret = add(t, &e);
	}
	free(line);
	return ret;
}

int swc_tuning_read(struct swc_tuning *t, const char *path, const struct swc_topo *topo,
		    const struct swc_tuning_names *names, char *why, size_t why_bytes)
{
	struct swc_topo shape = *topo;
	struct swc_points points;
	char text[TOPO_TEXT];
	FILE *f = fopen(path, "re");
	int ret = -ENOMEM;

	*t = (struct swc_tuning){ 0 };
	if (!f) {
		ret = -errno;
		snprintf(why, why_bytes, "%s: %s", path, strerror(-ret));
		return ret;
	}
	/* Link figures do not change what was measured. */
	shape.gbps = shape.hop_ns = 0;
	swc_topo_format(&shape, text, sizeof(text));
	snprintf(why, why_bytes, "%s", strerror(ENOMEM));
	if (swc_points_use(&points)) {
		ret = read_lines(t, f, path, text, names, why, why_bytes);
		swc_points_restore(&points);
	}
	fclose(f);
	if (ret)
		swc_tuning_free(t);
	return ret;
}

void swc_tuning_free(struct swc_tuning *t)
{
	free(t->entry);
	*t = (struct swc_tuning){ 0 };
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

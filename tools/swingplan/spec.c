// SPDX-License-Identifier: GPL-2.0-only
/* Specifications of swingplan allocate and orders: JSON, every number of which is checked. */
#include "spec.h"

#include "swingplan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/files.h"

const char *const spec_ops[SPEC_OPS] = { "allreduce", "reduce_scatter", "allgather", "alltoall" };

static const char *from;

/* A key that is known, and not given twice. */
static const cJSON *get(const cJSON *o, const char *key, bool needed)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, key);

	if (!item && needed)
		plan_bad("--spec %s: \"%s\" is missing", from, key);
	return item;
}

static void check_keys(const cJSON *o, const char *where, const char *const *known)
{
	const cJSON *item;
	unsigned int i;

	if (!cJSON_IsObject(o))
		plan_bad("--spec %s: %s: expected an object", from, where);
	cJSON_ArrayForEach(item, o)
	{
		for (i = 0; known[i] && strcmp(known[i], item->string); i++)
			;
		if (!known[i])
			plan_bad("--spec %s: %s: unknown key \"%.40s\"", from, where, item->string);
		if (cJSON_GetObjectItemCaseSensitive(o, item->string) != item)
			plan_bad("--spec %s: %s: \"%s\" is given twice", from, where, item->string);
	}
}

static double real(const cJSON *item, const char *what, double min, double max)
{
	/* Not a number fails both comparisons. */
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= min && item->valuedouble <= max))
		plan_bad("--spec %s: \"%s\": expected numbers from %g to %g", from, what, min, max);
	return item->valuedouble;
}

/* An array with one number for each dimension. */
static void reals(const struct spec *s, const cJSON *list, const char *what, double min, double max,
		  double *to)
{
	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)s->ndims)
		plan_bad("--spec %s: \"%s\": expected %u numbers, one for each of \"sizes\"", from,
			 what, s->ndims);
	for (uint32_t i = 0; i < s->ndims; i++)
		to[i] = real(cJSON_GetArrayItem(list, (int)i), what, min, max);
}

static enum spec_op op_of(const cJSON *item)
{
	for (int i = 0; cJSON_IsString(item) && i < SPEC_OPS; i++)
		if (!strcmp(item->valuestring, spec_ops[i]))
			return (enum spec_op)i;
	plan_bad("--spec %s: \"op\": expected allreduce, reduce_scatter, allgather or alltoall",
		 from);
}

static void whole(double v, const char *what)
{
	if (v > floor(v))
		plan_bad("--spec %s: \"%s\": expected whole numbers", from, what);
}

/* The text as JSON, and the sizes. */
static cJSON *open_spec(struct spec *s, const char *path, const char *const *known)
{
	char why[SWC_TEXT_BYTES] = "out of memory", *text = NULL;
	double size[SWC_TOPO_DIMS];
	const cJSON *sizes;
	size_t bytes;
	cJSON *o;

	from = path;
	*s = (struct spec){ 0 };
	if (swc_file_read(path, &text, &bytes, why, sizeof(why)))
		plan_bad("%s", why);
	o = cJSON_ParseWithLengthOpts(text, bytes + 1, NULL, true);
	free(text);
	if (!o)
		plan_bad("--spec %s: not JSON", path);
	check_keys(o, "the specification", known);
	sizes = get(o, "sizes", true);
	s->ndims = cJSON_IsArray(sizes) ? (uint32_t)cJSON_GetArraySize(sizes) : 0;
	if (!s->ndims || s->ndims > SWC_TOPO_DIMS)
		plan_bad("--spec %s: \"sizes\": expected 1 to %d numbers", path, SWC_TOPO_DIMS);
	reals(s, sizes, "sizes", 2, SWC_TOPO_MAX_NODES, size);
	for (uint32_t i = 0; i < s->ndims; i++) {
		whole(size[i], "sizes");
		s->size[i] = (uint32_t)size[i];
	}
	return o;
}

void spec_read_orders(struct spec *s, const char *path)
{
	static const char *const known[] = { "sizes", "bandwidth", "op", "bytes", NULL };
	cJSON *o = open_spec(s, path, known);

	reals(s, get(o, "bandwidth", true), "bandwidth", 1e-9, SPEC_MAX, s->rate);
	s->op = op_of(get(o, "op", true));
	if (s->op == SPEC_ALLTOALL)
		plan_bad("--spec %s: \"op\": an alltoall moves the same in any order", path);
	s->bytes = real(get(o, "bytes", true), "bytes", 1, SPEC_MAX);
	cJSON_Delete(o);
}

void spec_volumes(enum spec_op op, double bytes, const double *groups, uint32_t ndims, double *v)
{
	double before = 1, all = 1;

	for (uint32_t i = 0; i < ndims; i++)
		all *= groups[i];
	for (uint32_t i = 0; i < ndims; before *= groups[i++]) {
		v[i] = bytes * (1 - 1 / groups[i]);
		/* An allgather ends with the vector of which a reduce-scatter makes shards. */
		if (op != SPEC_ALLTOALL)
			v[i] *= (op == SPEC_ALLREDUCE	? 2
				 : op == SPEC_ALLGATHER ? all
							: 1) /
				before;
	}
}

static void read_phase(struct spec *s, const cJSON *o, struct spec_phase *p)
{
	static const char *const known[] = { "op", "bytes", "groups", "v", "count", NULL };
	const cJSON *v, *count;
	double groups[SWC_TOPO_DIMS];

	check_keys(o, "a phase", known);
	v = get(o, "v", false);
	count = get(o, "count", false);
	p->count = count ? real(count, "count", 0, SPEC_MAX) : 1;
	if (v && (get(o, "op", false) || get(o, "bytes", false) || get(o, "groups", false)))
		plan_bad("--spec %s: a phase has either \"v\" or \"op\" and \"bytes\"", from);
	if (v) {
		reals(s, v, "v", 0, SPEC_MAX, p->v);
		return;
	}
	for (uint32_t i = 0; i < s->ndims; i++)
		groups[i] = s->size[i];
	if (get(o, "groups", false))
		reals(s, get(o, "groups", false), "groups", 1, SWC_TOPO_MAX_NODES, groups);
	for (uint32_t i = 0; i < s->ndims; i++) {
		whole(groups[i], "groups");
		if (groups[i] > s->size[i])
			plan_bad("--spec %s: \"groups\": a group of %g in a dimension of %u", from,
				 groups[i], s->size[i]);
	}
	spec_volumes(op_of(get(o, "op", true)), real(get(o, "bytes", true), "bytes", 0, SPEC_MAX),
		     groups, s->ndims, p->v);
}

static void read_phases(struct spec *s, const cJSON *list)
{
	const cJSON *item;
	int n = cJSON_GetArraySize(list);

	if (!cJSON_IsArray(list) || n < 1 || n > SPEC_PHASES)
		plan_bad("--spec %s: \"phases\": expected 1 to %d phases", from, SPEC_PHASES);
	s->phase = calloc((size_t)n, sizeof(*s->phase));
	if (!s->phase)
		plan_no_memory();
	cJSON_ArrayForEach(item, list) read_phase(s, item, &s->phase[s->nphases++]);
}

static void read_linear(struct spec *s, const cJSON *list)
{
	static const char *const senses[] = { "<=", "==", ">=" };
	const cJSON *item;

	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > SPEC_LINEAR)
		plan_bad("--spec %s: \"linear\": expected at most %d constraints", from,
			 SPEC_LINEAR);
	cJSON_ArrayForEach(item, list)
	{
		struct spec_linear *l = &s->linear[s->nlinear++];
		const cJSON *sense = cJSON_GetArrayItem(item, 1);
		int i = 0;

		if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 3)
			plan_bad("--spec %s: \"linear\": expected [[coefficients], \">=\", bound]",
				 from);
		reals(s, cJSON_GetArrayItem(item, 0), "linear", -SPEC_MAX, SPEC_MAX,
		      l->coefficient);
		while (i < 3 && !(cJSON_IsString(sense) && !strcmp(sense->valuestring, senses[i])))
			i++;
		if (i == 3)
			plan_bad("--spec %s: \"linear\": expected \">=\", \"<=\" or \"==\"", from);
		l->sense = i - 1;
		l->bound = real(cJSON_GetArrayItem(item, 2), "linear", -SPEC_MAX, SPEC_MAX);
	}
}

/* Bounds that leave nothing to choose from. */
static void check_bounds(const struct spec *s)
{
	double floors = 0, caps = 0;

	for (uint32_t i = 0; i < s->ndims; i++) {
		floors += s->floor[i];
		caps += s->cap[i];
		if (s->cap[i] < s->floor[i])
			plan_bad("--spec %s: dimension %u: the cap %g is below the floor %g", from,
				 i, s->cap[i], s->floor[i]);
	}
	if (floors > s->total * (1 + 1e-9))
		plan_bad("--spec %s: the total of %g is below the floors' %g", from, s->total,
			 floors);
	if (caps < s->total * (1 - 1e-9))
		plan_bad("--spec %s: the total of %g is above the caps' %g", from, s->total, caps);
}

void spec_read_allocate(struct spec *s, const char *path)
{
	static const char *const known[] = { "sizes", "prices", "total",  "compute_ns", "objective",
					     "floor", "cap",	"linear", "phases",	NULL };
	cJSON *o = open_spec(s, path, known);
	const cJSON *item;

	s->total = real(get(o, "total", true), "total", 1e-9, SPEC_MAX);
	item = get(o, "compute_ns", false);
	s->compute_ns = item ? real(item, "compute_ns", 0, SPEC_MAX) : 0;
	item = get(o, "objective", false);
	s->time_cost = cJSON_IsString(item) && !strcmp(item->valuestring, "time_cost");
	if (item && !s->time_cost && !(cJSON_IsString(item) && !strcmp(item->valuestring, "time")))
		plan_bad("--spec %s: \"objective\": expected \"time\" or \"time_cost\"", from);
	item = get(o, "prices", s->time_cost);
	s->priced = item;
	if (item)
		reals(s, item, "prices", 1e-9, SPEC_MAX, s->price);
	for (uint32_t i = 0; i < s->ndims; i++)
		s->cap[i] = s->total;
	item = get(o, "floor", false);
	if (item)
		reals(s, item, "floor", 0, SPEC_MAX, s->floor);
	item = get(o, "cap", false);
	if (item)
		reals(s, item, "cap", 1e-9, SPEC_MAX, s->cap);
	for (uint32_t i = 0; i < s->ndims; i++)
		s->cap[i] = fmin(s->cap[i], s->total);
	check_bounds(s);
	if (get(o, "linear", false))
		read_linear(s, get(o, "linear", false));
	read_phases(s, get(o, "phases", true));
	cJSON_Delete(o);
}

void spec_free(struct spec *s)
{
	free(s->phase);
}

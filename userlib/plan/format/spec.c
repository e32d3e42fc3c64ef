// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The parsers of the specifications of swingplan allocate and orders. The first fault ends it: each function
 * says whether it found none. Pure functions; everything belongs to the caller.
 */
#include "plan/format/spec.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const swc_spec_ops[SWC_SPEC_OPS] = { "allreduce", "reduce_scatter", "allgather",
						 "alltoall" };

/* @error: 0 so far, or what is returned. */
struct reader {
	struct swc_spec *s;
	char *why;
	size_t why_bytes;
	int error;
};

/* For `return`: false. */
static bool __attribute__((format(printf, 2, 3))) refuse(struct reader *r, const char *fmt, ...)
{
	va_list args;

	r->error = -EINVAL;
	va_start(args, fmt);
	if (r->why_bytes)
		vsnprintf(r->why, r->why_bytes, fmt, args);
	va_end(args);
	return false;
}

/* NULL if it is missing. */
static const cJSON *get(const cJSON *o, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(o, key);
}

/* Of what must be there. */
static bool needs(struct reader *r, const cJSON *o, const char *key)
{
	return get(o, key) || refuse(r, "\"%s\" is missing", key);
}

/* An unknown key, as it is told: without what would break the line. */
static void clean(char *to, size_t bytes, const char *from)
{
	snprintf(to, bytes, "%s", from);
	for (; *to; to++)
		if ((unsigned char)*to < ' ' || *to == 0x7f)
			*to = '?';
}

/* Keys that are known, and none given twice. */
static bool check_keys(struct reader *r, const cJSON *o, const char *where,
		       const char *const *known)
{
	const cJSON *item;
	char name[41];
	unsigned int i;

	if (!cJSON_IsObject(o))
		return refuse(r, "%s: expected an object", where);
	cJSON_ArrayForEach(item, o)
	{
		for (i = 0; known[i] && strcmp(known[i], item->string); i++)
			;
		clean(name, sizeof(name), item->string);
		if (!known[i])
			return refuse(r, "%s: unknown key \"%s\"", where, name);
		if (get(o, item->string) != item)
			return refuse(r, "%s: \"%s\" is given twice", where, name);
	}
	return true;
}

static bool real(struct reader *r, const cJSON *item, const char *what, double min, double max,
		 double *to)
{
	/* Not a number fails both comparisons. */
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= min && item->valuedouble <= max))
		return refuse(r, "\"%s\": expected numbers from %g to %g", what, min, max);
	*to = item->valuedouble;
	return true;
}

static bool real_of(struct reader *r, const cJSON *o, const char *key, double min, double max,
		    double *to)
{
	return needs(r, o, key) && real(r, get(o, key), key, min, max, to);
}

/* An array with one number for each dimension. */
static bool reals(struct reader *r, const cJSON *list, const char *what, double min, double max,
		  double *to)
{
	uint32_t n = r->s->ndims;

	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)n)
		return refuse(r, "\"%s\": expected %u numbers, one for each of \"sizes\"", what, n);
	for (uint32_t i = 0; i < n; i++)
		if (!real(r, cJSON_GetArrayItem(list, (int)i), what, min, max, &to[i]))
			return false;
	return true;
}

/* The same of what may be missing. */
static bool reals_if(struct reader *r, const cJSON *o, const char *key, double min, double max,
		     double *to)
{
	return !get(o, key) || reals(r, get(o, key), key, min, max, to);
}

static bool op_of(struct reader *r, const cJSON *o, enum swc_spec_op *op)
{
	const cJSON *item = get(o, "op");

	if (!needs(r, o, "op"))
		return false;
	for (int i = 0; cJSON_IsString(item) && i < SWC_SPEC_OPS; i++)
		if (!strcmp(item->valuestring, swc_spec_ops[i])) {
			*op = (enum swc_spec_op)i;
			return true;
		}
	return refuse(r, "\"op\": expected allreduce, reduce_scatter, allgather or alltoall");
}

static bool whole(struct reader *r, double v, const char *what)
{
	return !(v > floor(v)) || refuse(r, "\"%s\": expected whole numbers", what);
}

static bool read_sizes(struct reader *r, const cJSON *o)
{
	const cJSON *sizes = get(o, "sizes");
	double size[SWC_TOPO_DIMS];
	int n = cJSON_IsArray(sizes) ? cJSON_GetArraySize(sizes) : 0;

	if (!needs(r, o, "sizes"))
		return false;
	if (n < 1 || n > SWC_TOPO_DIMS)
		return refuse(r, "\"sizes\": expected 1 to %d numbers", SWC_TOPO_DIMS);
	r->s->ndims = (uint32_t)n;
	if (!reals(r, sizes, "sizes", 2, SWC_TOPO_MAX_NODES, size))
		return false;
	for (uint32_t i = 0; i < r->s->ndims; i++) {
		if (!whole(r, size[i], "sizes"))
			return false;
		r->s->size[i] = (uint32_t)size[i];
	}
	return true;
}

static bool read_orders(struct reader *r, const cJSON *o)
{
	static const char *const known[] = { "sizes", "bandwidth", "op", "bytes", NULL };
	struct swc_spec *s = r->s;

	if (!check_keys(r, o, "the specification", known) || !read_sizes(r, o) ||
	    !needs(r, o, "bandwidth") ||
	    !reals(r, get(o, "bandwidth"), "bandwidth", 1e-9, SWC_SPEC_MAX, s->rate) ||
	    !op_of(r, o, &s->op))
		return false;
	if (s->op == SWC_SPEC_ALLTOALL)
		return refuse(r, "\"op\": an alltoall moves the same in any order");
	return real_of(r, o, "bytes", 1, SWC_SPEC_MAX, &s->bytes);
}

void swc_spec_volumes(enum swc_spec_op op, double bytes, const double *groups, uint32_t ndims,
		      double *v)
{
	double before = 1, all = 1;

	for (uint32_t i = 0; i < ndims; i++)
		all *= groups[i];
	for (uint32_t i = 0; i < ndims; before *= groups[i++]) {
		v[i] = bytes * (1 - 1 / groups[i]);
		/* An allgather ends with the vector of which a reduce-scatter makes shards. */
		if (op != SWC_SPEC_ALLTOALL)
			v[i] *= (op == SWC_SPEC_ALLREDUCE   ? 2
				 : op == SWC_SPEC_ALLGATHER ? all
							    : 1) /
				before;
	}
}

static bool read_phase(struct reader *r, const cJSON *o, struct swc_spec_phase *p)
{
	static const char *const known[] = { "op", "bytes", "groups", "v", "count", NULL };
	double groups[SWC_TOPO_DIMS], bytes;
	enum swc_spec_op op;

	if (!check_keys(r, o, "a phase", known))
		return false;
	p->count = 1;
	if (get(o, "count") && !real(r, get(o, "count"), "count", 0, SWC_SPEC_MAX, &p->count))
		return false;
	if (get(o, "v") && (get(o, "op") || get(o, "bytes") || get(o, "groups")))
		return refuse(r, "a phase has either \"v\" or \"op\" and \"bytes\"");
	if (get(o, "v"))
		return reals(r, get(o, "v"), "v", 0, SWC_SPEC_MAX, p->v);
	for (uint32_t i = 0; i < r->s->ndims; i++)
		groups[i] = r->s->size[i];
	if (!reals_if(r, o, "groups", 1, SWC_TOPO_MAX_NODES, groups))
		return false;
	for (uint32_t i = 0; i < r->s->ndims; i++) {
		if (!whole(r, groups[i], "groups"))
			return false;
		if (groups[i] > r->s->size[i])
			return refuse(r, "\"groups\": a group of %g in a dimension of %u",
				      groups[i], r->s->size[i]);
	}
	if (!op_of(r, o, &op) || !real_of(r, o, "bytes", 0, SWC_SPEC_MAX, &bytes))
		return false;
	swc_spec_volumes(op, bytes, groups, r->s->ndims, p->v);
	return true;
}

static bool read_phases(struct reader *r, const cJSON *list)
{
	int n = cJSON_GetArraySize(list);
	struct swc_spec *s = r->s;
	const cJSON *item;

	if (!cJSON_IsArray(list) || n < 1 || n > SWC_SPEC_PHASES)
		return refuse(r, "\"phases\": expected 1 to %d phases", SWC_SPEC_PHASES);
	s->phase = calloc((size_t)n, sizeof(*s->phase));
	if (!s->phase) {
		r->error = -ENOMEM;
		return false;
	}
	cJSON_ArrayForEach(item,
			   list) if (!read_phase(r, item, &s->phase[s->nphases++])) return false;
	return true;
}

static bool read_constraint(struct reader *r, const cJSON *item)
{
	static const char *const senses[] = { "<=", "==", ">=" };
	struct swc_spec_linear *l = &r->s->linear[r->s->nlinear++];
	const cJSON *sense = cJSON_GetArrayItem(item, 1);
	int i = 0;

	if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 3)
		return refuse(r, "\"linear\": expected [[coefficients], \">=\", bound]");
	if (!reals(r, cJSON_GetArrayItem(item, 0), "linear", -SWC_SPEC_MAX, SWC_SPEC_MAX,
		   l->coefficient))
		return false;
	while (i < 3 && !(cJSON_IsString(sense) && !strcmp(sense->valuestring, senses[i])))
		i++;
	if (i == 3)
		return refuse(r, "\"linear\": expected \">=\", \"<=\" or \"==\"");
	l->sense = i - 1;
	return real(r, cJSON_GetArrayItem(item, 2), "linear", -SWC_SPEC_MAX, SWC_SPEC_MAX,
		    &l->bound);
}

static bool read_linear(struct reader *r, const cJSON *list)
{
	const cJSON *item;

	if (!list)
		return true;
	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > SWC_SPEC_LINEAR)
		return refuse(r, "\"linear\": expected at most %d constraints", SWC_SPEC_LINEAR);
	cJSON_ArrayForEach(item, list) if (!read_constraint(r, item)) return false;
	return true;
}

/* Bounds that leave nothing to choose from. */
static bool check_bounds(struct reader *r)
{
	const struct swc_spec *s = r->s;
	double floors = 0;

	for (uint32_t i = 0; i < s->ndims; i++) {
		floors += s->floor[i];
		if (s->cap[i] < s->floor[i])
			return refuse(r, "dimension %u: the cap %g is below the floor %g", i,
				      s->cap[i], s->floor[i]);
	}
	if (floors > s->total * (1 + 1e-9))
		return refuse(r, "the total of %g is below the floors' %g", s->total, floors);
	return true;
}

static bool read_objective(struct reader *r, const cJSON *o)
{
	const cJSON *item = get(o, "objective");
	const char *text = cJSON_IsString(item) ? item->valuestring : "";

	r->s->time_cost = !strcmp(text, "time_cost");
	if (item && !r->s->time_cost && strcmp(text, "time"))
		return refuse(r, "\"objective\": expected \"time\" or \"time_cost\"");
	r->s->priced = get(o, "prices");
	return (!r->s->time_cost || needs(r, o, "prices")) &&
	       reals_if(r, o, "prices", 1e-9, SWC_SPEC_MAX, r->s->price);
}

static bool read_allocate(struct reader *r, const cJSON *o)
{
	static const char *const known[] = { "sizes", "prices", "total",  "compute_ns", "objective",
					     "floor", "cap",	"linear", "phases",	NULL };
	struct swc_spec *s = r->s;

	if (!check_keys(r, o, "the specification", known) || !read_sizes(r, o) ||
	    !real_of(r, o, "total", 1e-9, SWC_SPEC_MAX, &s->total))
		return false;
	if (get(o, "compute_ns") &&
	    !real(r, get(o, "compute_ns"), "compute_ns", 0, SWC_SPEC_MAX, &s->compute_ns))
		return false;
	if (!read_objective(r, o))
		return false;
	for (uint32_t i = 0; i < s->ndims; i++)
		s->cap[i] = s->total;
	if (!reals_if(r, o, "floor", 0, SWC_SPEC_MAX, s->floor) ||
	    !reals_if(r, o, "cap", 1e-9, SWC_SPEC_MAX, s->cap))
		return false;
	for (uint32_t i = 0; i < s->ndims; i++)
		s->cap[i] = fmin(s->cap[i], s->total);
	return check_bounds(r) && read_linear(r, get(o, "linear")) && needs(r, o, "phases") &&
	       read_phases(r, get(o, "phases"));
}

static int parse(struct swc_spec *s, const char *text, size_t bytes,
		 bool (*read)(struct reader *r, const cJSON *o), char *why, size_t why_bytes)
{
	struct reader r = { .s = s, .why = why, .why_bytes = why ? why_bytes : 0 };
	const char *end;
	cJSON *o = cJSON_ParseWithLengthOpts(text, bytes, &end, false);

	*s = (struct swc_spec){ 0 };
	/* Nothing but white space may follow. */
	while (o && end < text + bytes && *end && strchr(" \t\r\n", *end))
		end++;
	if (!o || end < text + bytes)
		refuse(&r, "not JSON");
	else
		read(&r, o);
	cJSON_Delete(o);
	if (r.error)
		swc_spec_free(s);
	return r.error;
}

int swc_spec_parse_orders(struct swc_spec *s, const char *text, size_t bytes, char *why,
			  size_t why_bytes)
{
	return parse(s, text, bytes, read_orders, why, why_bytes);
}

int swc_spec_parse_allocate(struct swc_spec *s, const char *text, size_t bytes, char *why,
			    size_t why_bytes)
{
	return parse(s, text, bytes, read_allocate, why, why_bytes);
}

void swc_spec_free(struct swc_spec *s)
{
	free(s->phase);
	s->phase = NULL;
}

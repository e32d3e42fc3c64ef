// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Topologies: reading and printing their text, and where nodes and ranks are in them.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/number.h"
#include "plan/table.h"
#include "plan/text.h"
#include "plan/topo.h"

static const char *const kinds[] = {
	[SWC_TOPO_SWITCH] = "switch",
	[SWC_TOPO_TORUS] = "torus",
	[SWC_TOPO_MESH] = "mesh",
};

#define MIN_FIGURE 1e-9
#define MAX_FIGURE 1e12

struct reader {
	const char *at;
	char *why;
	size_t why_bytes;
};

#define refuse(r, ...) swc_text_refuse((r)->why, (r)->why_bytes, __VA_ARGS__)

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * A whole number from 1 to max, without a 0 in front, at the cursor, which moves behind it; 0 if
 * there is none.
 */
static uint32_t number(struct reader *r, uint32_t max)
{
	uint64_t v;

	return *r->at != '0' && swc_number_scan(&r->at, max, &v) ? (uint32_t)v : 0;
}

static bool skip(struct reader *r, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(r->at, word, n))
		return false;
	r->at += n;
	return true;
}

static int read_shape(struct reader *r, struct swc_topo *t)
{
	bool ring = skip(r, "ring:");

	if (ring || skip(r, "torus:"))
		t->kind = SWC_TOPO_TORUS;
	else if (skip(r, "mesh:"))
		t->kind = SWC_TOPO_MESH;
	else if (skip(r, "switch:"))
		t->kind = SWC_TOPO_SWITCH;
	else
		return refuse(
			r, "topology '%.40s': begin with ring:N, torus:AxB, mesh:AxB or switch:N",
			r->at);
	t->nnodes = 1;
	do {
		uint32_t d = number(r, SWC_TOPO_MAX_NODES);

		if (!d)
			return refuse(r, "topology: expected a size from 1 to %u at '%.20s'",
				      SWC_TOPO_MAX_NODES, r->at);
		if (t->ndims == SWC_TOPO_DIMS)
			return refuse(r, "topology: more than %d dimensions", SWC_TOPO_DIMS);
		if (d > SWC_TOPO_MAX_NODES / t->nnodes)
			return refuse(r, "topology: more than %u nodes", SWC_TOPO_MAX_NODES);
		t->dim[t->ndims++] = d;
		t->nnodes *= d;
	} while (skip(r, "x"));
	if (t->ndims > 1 && (ring || t->kind == SWC_TOPO_SWITCH))
		return refuse(r, "topology: a %s has one size", ring ? "ring" : "switch");
	return 0;
}

/* Read one number for each node; the first has been read. */
static int read_each_local(struct reader *r, struct swc_topo *t, uint32_t limit)
{
	bool differ = false;

	t->first = calloc(t->nnodes + 1, sizeof(*t->first));
	if (!t->first)
		return -ENOMEM;
	t->nranks = t->first[1] = t->nlocal;
	for (uint32_t node = 1; node < t->nnodes; node++) {
		uint32_t n;

		if (!skip(r, ",") || !digit(*r->at))
			return refuse(
				r,
				"topology: give one number of ranks per node, or one for each of the %u nodes",
				t->nnodes);
		n = number(r, limit - t->nranks);
		if (!n)
			return refuse(r,
				      "topology: a node has 0 ranks, or all together more than %u",
				      limit);
		differ |= n != t->nlocal;
		t->nranks += n;
		t->first[node + 1] = t->nranks;
	}
	if (differ)
		t->nlocal = 0;
	else
		swc_topo_free(t);
	return 0;
}

static int read_local(struct reader *r, struct swc_topo *t)
{
	uint32_t limit = SWC_TOPO_MAX_NODES;

	t->nlocal = 1;
	if (skip(r, "*")) {
		t->nlocal = number(r, limit);
		if (!t->nlocal)
			return refuse(r, "topology: expected ranks per node, 1 to %u, at '%.20s'",
				      limit, r->at);
		if (*r->at == ',')
			return read_each_local(r, t, limit);
	}
	if (t->nlocal > limit / t->nnodes)
		return refuse(r, "topology: more than %u ranks", limit);
	t->nranks = t->nlocal * t->nnodes;
	return 0;
}

/* What a figure is. */
enum figure {
	RATE,
	DELAY,
	RAILS,
};

static const char *const figure_names[] = { "rate", "delay", "number of rails" };

/* A figure: its number, in Gbit/s or ns, or of rails. */
static int read_figure(struct reader *r, double *v, enum figure *kind)
{
	static const char *const names[] = { "Gbps", "ns" };
	static const struct {
		const char *name;
		double factor;
		enum figure kind;
	} units[] = { { "Gbps", 1, RATE },  { "Mbps", 1e-3, RATE }, { "ns", 1, DELAY },
		      { "us", 1e3, DELAY }, { "ms", 1e6, DELAY },   { "rails", 1, RAILS } };
	const uint32_t nunits = sizeof(units) / sizeof(units[0]);
	const char *figure = r->at;
	uint32_t u;
	char *end;

	/* No hexadecimal numbers. */
	if (!digit(*figure) || figure[1] == 'x' || figure[1] == 'X')
		return refuse(r, "topology: '%.20s' is not a figure such as 400Gbps, 400ns or tcp",
			      figure);
	*v = strtod(figure, &end);
	r->at = end;
	for (u = 0; u < nunits && !skip(r, units[u].name); u++)
		;
	if (u == nunits)
		return refuse(
			r, "topology: '%.20s' is not a unit: use Gbps, Mbps, ns, us, ms or rails",
			r->at);
	*kind = units[u].kind;
	*v *= units[u].factor;
	/* set_rails() checks how many rails there are. */
	if (*kind != RAILS && !(*v >= MIN_FIGURE && *v <= MAX_FIGURE))
		return refuse(r, "topology: '%.20s' is out of range: %g to %g %s", figure,
			      MIN_FIGURE, MAX_FIGURE, names[*kind]);
	return 0;
}

/* The rates of further dimensions; the first has been read. */
static int read_rates(struct reader *r, struct swc_topo *t)
{
	enum figure kind = RATE;
	bool differ = false;
	uint32_t n = 1;
	int ret = 0;

	t->dim_gbps[0] = t->gbps;
	for (; !ret && kind == RATE && n < t->ndims && skip(r, "/"); n++) {
		ret = read_figure(r, &t->dim_gbps[n], &kind);
		differ |= t->dim_gbps[n] < t->dim_gbps[0] || t->dim_gbps[n] > t->dim_gbps[0];
		t->gbps = t->dim_gbps[n] > t->gbps ? t->dim_gbps[n] : t->gbps;
	}
	if (!ret && (kind != RATE || n < t->ndims || *r->at == '/'))
		return refuse(r, "topology: give one rate, or one for each of the %u dimensions",
			      t->ndims);
	if (!differ)
		memset(t->dim_gbps, 0, sizeof(t->dim_gbps));
	return ret;
}

static int set_rails(struct reader *r, struct swc_topo *t, double rails)
{
	if (t->kind != SWC_TOPO_SWITCH)
		return refuse(r, "topology: only nodes on a switch have rails");
	t->rails = rails <= SWC_TOPO_RAILS ? (uint32_t)rails : 0;
	if (t->rails < rails || !t->rails)
		return refuse(r, "topology: expected 1 to %u rails", SWC_TOPO_RAILS);
	return 0;
}

/* ---- slow links ---- */

static bool is_switch(const struct swc_topo *t)
{
	return t->kind == SWC_TOPO_SWITCH;
}

uint32_t swc_topo_dim(const struct swc_topo *t, uint32_t from, uint32_t to)
{
	uint32_t a[SWC_TOPO_DIMS], b[SWC_TOPO_DIMS], found = t->ndims;

	if (is_switch(t))
		return from == t->nnodes || to == t->nnodes ? 0 : t->ndims;
	swc_topo_coords(t, from, a);
	swc_topo_coords(t, to, b);
	for (uint32_t i = 0; i < t->ndims; i++) {
		uint32_t far = a[i] < b[i] ? b[i] - a[i] : a[i] - b[i];
		bool near = far == 1 || (t->kind == SWC_TOPO_TORUS && far + 1 == t->dim[i]);

		if (!far)
			continue;
		if (!near || found < t->ndims)
			return t->ndims;
		found = i;
	}
	return found;
}

static int by_ends(const void *a, const void *b)
{
	const struct swc_topo_slow *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static const struct swc_topo_slow *find_slow(const struct swc_topo *t, uint32_t from, uint32_t to)
{
	const struct swc_topo_slow key = { .from = from, .to = to };

	return t->nslow ? bsearch(&key, t->slow, t->nslow, sizeof(key), by_ends) : NULL;
}

double swc_topo_link_slowness(const struct swc_topo *t, uint32_t from, uint32_t to, uint32_t dim)
{
	const struct swc_topo_slow *s = find_slow(t, from, to);

	return s ? t->gbps / s->gbps : swc_topo_slowness(t, dim);
}

static int add_slow(struct reader *r, struct swc_topo *t, uint32_t from, uint32_t to, double gbps,
		    uint32_t *room)
{
	if (t->nslow == SWC_TOPO_MAX_SLOW)
		return refuse(r, "topology: more than %u links with a rate of their own",
			      SWC_TOPO_MAX_SLOW);
	if (!swc_table_reserve(&t->slow, t->nslow, room, sizeof(*t->slow)))
		return -ENOMEM;
	t->slow[t->nslow++] = (struct swc_topo_slow){ from, to, gbps };
	return 0;
}

/* The number of a node, for the end of a link; false if there is none. */
static bool read_node(struct reader *r, const struct swc_topo *t, uint32_t *node)
{
	uint64_t v;

	if (!digit(*r->at) || !swc_number_scan(&r->at, t->nnodes - 1, &v))
		return false;
	*node = (uint32_t)v;
	return true;
}

/* A-B or A>B; of a switch A, A> or >A. */
static bool read_ends(struct reader *r, const struct swc_topo *t, uint32_t *from, uint32_t *to,
		      bool *both)
{
	bool first = read_node(r, t, from);

	*both = !skip(r, ">");
	if (is_switch(t)) {
		*to = t->nnodes;
		if (first)
			return true;
		*from = t->nnodes;
		return !*both && read_node(r, t, to);
	}
	return first && (!*both || skip(r, "-")) && read_node(r, t, to);
}

/* Does a figure name a link? Rates and delays begin with a number and a unit. */
static bool names_link(const char *at)
{
	const char *end = at + strspn(at, "0123456789");

	return *end == '>' || (end != at && (*end == '-' || *end == '='));
}

static int read_slow(struct reader *r, struct swc_topo *t, uint32_t *room)
{
	const char *figure = r->at;
	enum figure kind;
	uint32_t from, to;
	bool both;
	double v;
	int ret;

	if (!read_ends(r, t, &from, &to, &both) || !skip(r, "=") ||
	    swc_topo_dim(t, from, to) == t->ndims)
		return refuse(r, "topology: '%.20s' is no link: %s", figure,
			      is_switch(t) ? "expected NODE=RATE"
					   : "expected A-B=RATE or A>B=RATE of two neighbours");
	ret = read_figure(r, &v, &kind);
	if (ret)
		return ret;
	if (kind != RATE)
		return refuse(r, "topology: '%.20s': expected a rate", figure);
	ret = add_slow(r, t, from, to, v, room);
	return ret || !both ? ret : add_slow(r, t, to, from, v, room);
}

/* Bring them into their order, and compare them with the other links. */
static int check_slow(struct reader *r, struct swc_topo *t)
{
	if (t->nslow && !(t->gbps > 0))
		return refuse(r, "topology: a link has a rate: give that of all others, too");
	if (t->nslow)
		qsort(t->slow, t->nslow, sizeof(*t->slow), by_ends);
	for (uint32_t i = 0; i < t->nslow; i++) {
		const struct swc_topo_slow *s = &t->slow[i];
		uint32_t dim = swc_topo_dim(t, s->from, s->to);

		if (i && !by_ends(s, s - 1))
			return refuse(r, "topology: a second rate of the link from %u to %u",
				      s->from, s->to);
		if (s->gbps > t->gbps / swc_topo_slowness(t, dim) * (1 + 1e-9))
			return refuse(r,
				      "topology: the link from %u to %u is faster than the others: "
				      "give the rate of the fastest, and the slower links",
				      s->from, s->to);
	}
	return 0;
}

int swc_topo_set_slow(struct swc_topo *t, const struct swc_topo_slow *slow, uint32_t n)
{
	struct swc_topo_slow *copy = n ? calloc(n, sizeof(*copy)) : NULL;

	if (n && !copy)
		return -ENOMEM;
	if (n)
		memcpy(copy, slow, n * sizeof(*copy));
	free(t->slow);
	t->slow = copy;
	t->nslow = n;
	return 0;
}

/* ---- the whole text ---- */

static int read_figures(struct reader *r, struct swc_topo *t)
{
	uint32_t room = 0;
	int ret = 0;

	if (!skip(r, "@"))
		return 0;
	do {
		const char *figure = r->at;
		double v, *to[] = { &t->gbps, &t->hop_ns };
		enum figure kind;

		if (names_link(figure)) {
			ret = read_slow(r, t, &room);
			continue;
		}
		if (skip(r, "tcp")) {
			if (t->tcp)
				return refuse(r, "topology: a second tcp");
			t->tcp = true;
			continue;
		}
		ret = read_figure(r, &v, &kind);
		if (ret)
			return ret;
		if (kind == RAILS ? t->rails > 0 : *to[kind] > 0)
			return refuse(r, "topology: a second %s: '%.20s'", figure_names[kind],
				      figure);
		if (kind == RAILS)
			ret = set_rails(r, t, v);
		else
			*to[kind] = v;
		if (kind == RATE && *r->at == '/')
			ret = read_rates(r, t);
	} while (!ret && skip(r, ","));
	return ret ? ret : check_slow(r, t);
}

/* The fastest rate of the dimensions, and none of their own if all have it. */
static void compare_rates(struct swc_topo *t)
{
	bool differ = false;

	t->gbps = t->dim_gbps[0];
	for (uint32_t i = 1; i < t->ndims; i++) {
		differ |= t->dim_gbps[i] < t->dim_gbps[0] || t->dim_gbps[i] > t->dim_gbps[0];
		t->gbps = t->dim_gbps[i] > t->gbps ? t->dim_gbps[i] : t->gbps;
	}
	if (!differ)
		memset(t->dim_gbps, 0, sizeof(t->dim_gbps));
}

/*
 * Without the sides of 1, which have no links, it is the same network: algorithms would use ports that are not
 * there. One remains if there is but one node. The numbers of nodes stay.
 */
static void drop_sides_of_one(struct swc_topo *t)
{
	bool rates = t->dim_gbps[0] > 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->ndims; i++) {
		if (t->dim[i] == 1 && (n || i + 1 < t->ndims))
			continue;
		t->dim[n] = t->dim[i];
		t->dim_gbps[n++] = t->dim_gbps[i];
	}
	for (uint32_t i = n; i < t->ndims; i++) {
		t->dim[i] = 0;
		t->dim_gbps[i] = 0;
	}
	t->ndims = n;
	if (rates)
		compare_rates(t);
}

int swc_topo_parse(struct swc_topo *t, const char *text, char *why, size_t why_bytes)
{
	struct reader r = { text, why, why_bytes };
	struct swc_number_locale locale;
	int ret;

	memset(t, 0, sizeof(*t));
	ret = read_shape(&r, t);
	if (!ret)
		ret = read_local(&r, t);
	if (!ret && swc_number_locale_enter(&locale)) {
		ret = read_figures(&r, t);
		swc_number_locale_leave(&locale);
	} else if (!ret) {
		ret = -ENOMEM;
	}
	if (!ret && *r.at)
		ret = refuse(&r, "topology: nothing may follow '%.*s'", (int)(r.at - text), text);
	if (ret)
		swc_topo_free(t);
	else
		drop_sides_of_one(t);
	return ret;
}

int swc_topo_parse_file(struct swc_topo *t, const char *text, char *why, size_t why_bytes)
{
	memset(t, 0, sizeof(*t));
	while (*text) {
		size_t n = strcspn(text, "\n"), used = n;
		char *line;
		int ret;

		while (used && strchr(" \t\r", text[used - 1]))
			used--;
		if (!used || *text == '#') {
			text += n + (text[n] != 0);
			continue;
		}
		line = strndup(text, used);
		ret = line ? swc_topo_parse(t, line, why, why_bytes) : -ENOMEM;
		free(line);
		return ret;
	}
	return swc_text_refuse(why, why_bytes, "no line has a topology such as torus:4x4");
}

void swc_topo_free(struct swc_topo *t)
{
	free(t->first);
	t->first = NULL;
	free(t->slow);
	t->slow = NULL;
	t->nslow = 0;
}

int swc_topo_copy(struct swc_topo *copy, const struct swc_topo *t)
{
	size_t bytes = (t->nnodes + 1ul) * sizeof(*t->first);

	*copy = *t;
	copy->slow = NULL;
	copy->nslow = 0;
	copy->first = t->first ? malloc(bytes) : NULL;
	if (t->first && !copy->first)
		return -ENOMEM;
	if (t->first)
		memcpy(copy->first, t->first, bytes);
	if (!swc_topo_set_slow(copy, t->slow, t->nslow))
		return 0;
	swc_topo_free(copy);
	return -ENOMEM;
}

/* Is the link the other way as slow, so that one figure tells both? */
static bool both_ways(const struct swc_topo *t, const struct swc_topo_slow *s)
{
	const struct swc_topo_slow *back = find_slow(t, s->to, s->from);

	return back && !(back->gbps < s->gbps || back->gbps > s->gbps);
}

/* The ends of a link as they are in a topology's text; "" if the link the other way tells it. */
static const char *ends_text(const struct swc_topo *t, const struct swc_topo_slow *s, char text[32])
{
	bool both = both_ways(t, s);

	*text = 0;
	if (both && s->from > s->to)
		return text;
	if (!is_switch(t))
		snprintf(text, 32, "%u%c%u", s->from, both ? '-' : '>', s->to);
	else if (s->from < t->nnodes)
		snprintf(text, 32, "%u%s", s->from, both ? "" : ">");
	else
		snprintf(text, 32, ">%u", s->to);
	return text;
}

/* The shortest text that strtod() reads as the same number. */
static const char *figure_text(double v, char text[32])
{
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, 32, "%.*g", digits, v);
		if (strtod(text, NULL) >= v && strtod(text, NULL) <= v)
			break;
	}
	return text;
}

int swc_topo_format(const struct swc_topo *t, char *text, size_t bytes)
{
	char figure[32], ends[32], before;
	struct swc_number_locale locale;
	size_t used = 0;
	int n = 0;

	if (!swc_number_locale_enter(&locale))
		return -ENOMEM;
#define PUT(...)                                                                                   \
	do {                                                                                       \
		n = snprintf(used < bytes ? text + used : NULL, used < bytes ? bytes - used : 0,   \
			     __VA_ARGS__);                                                         \
		used += n > 0 ? (size_t)n : 0;                                                     \
	} while (0)

	PUT("%s:", t->kind == SWC_TOPO_TORUS && t->ndims == 1 ? "ring" : kinds[t->kind]);
	for (uint32_t i = 0; i < t->ndims; i++)
		PUT("%s%u", i ? "x" : "", t->dim[i]);
	if (t->first)
		for (uint32_t i = 0; i < t->nnodes; i++)
			PUT("%c%u", i ? ',' : '*', swc_topo_local(t, i));
	else if (t->nlocal > 1)
		PUT("*%u", t->nlocal);
	for (uint32_t i = 0; i < t->ndims && t->dim_gbps[0] > 0; i++)
		PUT("%c%sGbps", i ? '/' : '@', figure_text(t->dim_gbps[i], figure));
	if (t->gbps > 0 && !(t->dim_gbps[0] > 0))
		PUT("@%sGbps", figure_text(t->gbps, figure));
	before = t->gbps > 0 ? ',' : '@';
	if (t->hop_ns > 0) {
		PUT("%c%sns", before, figure_text(t->hop_ns, figure));
		before = ',';
	}
	if (t->tcp) {
		PUT("%ctcp", before);
		before = ',';
	}
	if (t->rails)
		PUT("%c%urails", before, t->rails);
	for (uint32_t i = 0; i < t->nslow; i++)
		if (*ends_text(t, &t->slow[i], ends))
			PUT(",%s=%sGbps", ends, figure_text(t->slow[i].gbps, figure));
#undef PUT
	swc_number_locale_leave(&locale);
	return (int)used;
}

struct swc_topo swc_topo_flat(uint32_t nodes)
{
	return (struct swc_topo){ .kind = SWC_TOPO_SWITCH,
				  .ndims = 1,
				  .dim = { nodes },
				  .nnodes = nodes,
				  .nranks = nodes,
				  .nlocal = 1 };
}

uint32_t swc_topo_find_node(const struct swc_topo *t, uint32_t rank)
{
	uint32_t low = 0, high = t->nnodes;

	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (t->first[mid] <= rank)
			low = mid;
		else
			high = mid;
	}
	return low;
}

void swc_topo_coords(const struct swc_topo *t, uint32_t node, uint32_t *coord)
{
	for (uint32_t i = t->ndims; i-- > 0; node /= t->dim[i])
		coord[i] = node % t->dim[i];
}

uint32_t swc_topo_node_at(const struct swc_topo *t, const uint32_t *coord)
{
	uint32_t node = 0;

	for (uint32_t i = 0; i < t->ndims; i++)
		node = node * t->dim[i] + coord[i];
	return node;
}

uint32_t swc_topo_lines(const struct swc_topo *t, uint32_t node, struct swc_topo_line *line)
{
	uint32_t coord[SWC_TOPO_DIMS], unit = t->nnodes, n = 0;

	swc_topo_coords(t, node, coord);
	for (uint32_t i = 0; i < t->ndims; i++) {
		unit /= t->dim[i];
		if (t->dim[i] > 1)
			line[n++] = (struct swc_topo_line){ t->dim[i], unit, coord[i] };
	}
	return n;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Graphs from text, line by line. Names are looked up in a hash table, so that a million lines take
 * about a second. No locks; everything belongs to the caller.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/forest/links.h"
#include "plan/hash.h"
#include "plan/number.h"
#include "plan/table.h"
#include "plan/text.h"

#define MAX_LINE 4096
#define MAX_WORDS 256
#define MAX_LINKS (1u << 22)
#define NSLOTS (2 * SWC_GRAPH_MAX_NODES)

/**
 * struct reader - a text that is being read
 * @g: nodes in order of appearance, links as they come
 * @is_switch: by node
 * @slot: a hash table of nodes, each number plus one
 */
struct reader {
	struct swc_graph *g;
	uint32_t node_room, link_room, line;
	bool is_switch[SWC_GRAPH_MAX_NODES];
	uint32_t slot[NSLOTS];
	int64_t total;
	char *why;
	size_t why_bytes;
};

#define refuse(r, format, ...)                                                                     \
	swc_text_refuse((r)->why, (r)->why_bytes, "line %u: " format, (r)->line, ##__VA_ARGS__)

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("_.:/-+@[],=", c));
}

/* The node of a name, a new one if there is none. Returns its number or an error. */
static int64_t node_of(struct reader *r, const char *name)
{
	uint32_t at = (uint32_t)swc_hash_text(SWC_HASH_START, name) % NSLOTS;
	struct swc_graph *g = r->g;
	size_t len = 0;

	for (; r->slot[at]; at = (at + 1) % NSLOTS)
		if (!strcmp(g->name[r->slot[at] - 1], name))
			return r->slot[at] - 1;
	while (is_name_char(name[len]))
		len++;
	if (name[len])
		return refuse(r,
			      "a name has byte 0x%02x: names have letters, digits and _.:/-+@[],=",
			      (unsigned char)name[len]);
	if (len > SWC_GRAPH_MAX_NAME)
		return refuse(r, "a name has more than %u bytes", SWC_GRAPH_MAX_NAME);
	if (g->nnodes == SWC_GRAPH_MAX_NODES)
		return refuse(r, "there are more than %u nodes", SWC_GRAPH_MAX_NODES);
	if (!swc_table_reserve(&g->name, g->nnodes, &r->node_room, sizeof(*g->name)))
		return -ENOMEM;
	g->name[g->nnodes] = strdup(name);
	if (!g->name[g->nnodes])
		return -ENOMEM;
	r->slot[at] = ++g->nnodes;
	return g->nnodes - 1;
}

static int add_link(struct reader *r, int64_t from, int64_t to, int64_t capacity)
{
	struct swc_graph *g = r->g;

	r->total += capacity;
	if (r->total > SWC_GRAPH_MAX_TOTAL)
		return refuse(r, "all capacities add up to more than %lld: take smaller ones",
			      (long long)SWC_GRAPH_MAX_TOTAL);
	if (g->nlinks == MAX_LINKS)
		return refuse(r, "there are more than %u links", MAX_LINKS);
	if (!swc_table_reserve(&g->link, g->nlinks, &r->link_room, sizeof(*g->link)))
		return -ENOMEM;
	g->link[g->nlinks++] = (struct swc_link){ (uint32_t)from, (uint32_t)to, capacity };
	return 0;
}

static int read_link(struct reader *r, char **word, int words)
{
	bool one_way = words > 1 && !strcmp(word[1], ">");
	int64_t a, b;
	uint64_t capacity;
	int ret;

	if (words != 3 + one_way || (one_way && !strcmp(word[2], ">")))
		return refuse(r, "expected A B CAPACITY, A > B CAPACITY or switch NAME...");
	a = node_of(r, word[0]);
	if (a < 0)
		return (int)a;
	b = node_of(r, word[1 + one_way]);
	if (b < 0)
		return (int)b;
	if (!swc_number_parse(word[words - 1], 1, SWC_GRAPH_MAX_CAPACITY, &capacity))
		return refuse(r, "'%.32s' is no capacity: expected a whole number from 1 to %u",
			      word[words - 1], SWC_GRAPH_MAX_CAPACITY);
	if (a == b)
		return refuse(r, "a link from %s to itself", word[0]);
	ret = add_link(r, a, b, (int64_t)capacity);
	if (!ret && !one_way)
		ret = add_link(r, b, a, (int64_t)capacity);
	return ret;
}

static int read_line(struct reader *r, char *line)
{
	char *word[MAX_WORDS];
	int words = swc_text_words(line, word, MAX_WORDS);

	if (!words)
		return 0;
	if (words > MAX_WORDS)
		return refuse(r, "more than %d words", MAX_WORDS);
	if (strcmp(word[0], "switch"))
		return read_link(r, word, words);
	if (words == 1)
		return refuse(r, "expected names behind 'switch'");
	for (int i = 1; i < words; i++) {
		int64_t node = node_of(r, word[i]);

		if (node < 0)
			return (int)node;
		r->is_switch[node] = true;
	}
	return 0;
}

static int read_lines(struct reader *r, const char *text, size_t bytes)
{
	const char *end = text + bytes;
	char line[MAX_LINE + 1];
	int ret = 0;

	while (!ret && text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t len = (size_t)((newline ? newline : end) - text);

		r->line++;
		if (len > MAX_LINE)
			return refuse(r, "more than %u bytes", MAX_LINE);
		if (memchr(text, 0, len))
			return refuse(r, "a zero byte: expected text");
		memcpy(line, text, len);
		line[len] = 0;
		ret = read_line(r, line);
		text += len + 1;
	}
	return ret;
}

/* Ranks get the first numbers. */
static int number_nodes(struct reader *r)
{
	struct swc_graph *g = r->g;
	uint32_t *number = calloc(g->nnodes + 1u, sizeof(*number)), at = 0;
	char **name = calloc(g->nnodes + 1u, sizeof(*name));

	if (!number || !name) {
		free(number);
		free(name);
		return -ENOMEM;
	}
	for (int switches = 0; switches < 2; switches++) {
		for (uint32_t v = 0; v < g->nnodes; v++)
			if (r->is_switch[v] == switches) {
				number[v] = at;
				name[at++] = g->name[v];
			}
		if (!switches)
			g->nranks = at;
	}
	for (uint32_t i = 0; i < g->nlinks; i++) {
		g->link[i].from = number[g->link[i].from];
		g->link[i].to = number[g->link[i].to];
	}
	free(g->name);
	g->name = name;
	free(number);
	return 0;
}

int swc_graph_parse(struct swc_graph *g, const char *text, size_t bytes, char *why,
		    size_t why_bytes)
{
	struct reader *r = calloc(1, sizeof(*r));
	int ret;

	*g = (struct swc_graph){ 0 };
	if (!r)
		return -ENOMEM;
	r->g = g;
	r->why = why;
	r->why_bytes = why_bytes;
	ret = read_lines(r, text, bytes);
	if (!ret)
		ret = number_nodes(r);
	if (!ret) {
		swc_links_sort(g);
		ret = swc_graph_check(g, why, why_bytes);
	}
	free(r);
	if (ret)
		swc_graph_free(g);
	return ret;
}

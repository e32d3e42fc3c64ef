// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Plans as text. The parser reads one line after the other and appends to the tables of the current
 * rank, so no text makes it use more memory than the text is long. It finds what is wrong with a
 * line by itself; swc_plan_check() finds the rest.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "plan/format/plan_text.h"
#include "plan/hash.h"
#include "plan/names.h"
#include "plan/number.h"
#include "plan/plan_tables.h"
#include "plan/table.h"

#define MAGIC "swingcoll-plans"
#define LINE_BYTES 200
#define MAX_WORDS 9
#define ALL_RANKS UINT32_MAX

struct flag {
	const char *name;
	uint32_t bit;
};

static const struct flag plan_flags[] = {
	{ "not-in-place", SWC_PLAN_NOT_IN_PLACE },
	{ "order-varies", SWC_PLAN_ORDER_VARIES },
	{ NULL, 0 },
};

void swc_plan_set_free(struct swc_plan_set *set)
{
	for (uint32_t r = 0; r < set->nranks; r++)
		free(set->plan[r]);
	free(set->plan);
	free(set->bytes);
	*set = (struct swc_plan_set){ 0 };
}

/* Index of a word in a table; n if it is none of them. */
static uint32_t find(const char *word, const char *const *table, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(word, table[i]))
			return i;
	return n;
}

/* ------------------------------------------------------------------ printing */

static void print_flags(struct swc_text *t, const struct flag *flag, uint32_t flags)
{
	for (; flag->name; flag++)
		if (flags & flag->bit)
			swc_text_printf(t, " %s", flag->name);
}

static void print_xfer(struct swc_text *t, const char *verb, const struct swc_plan_xfer *x)
{
	swc_text_printf(t, "\t\t\t%s %u %s %u+%u", verb, x->rank, swc_buf_names[x->buf],
			x->first_block, x->nblocks);
	if (x->flags & SWC_XFER_REDUCE)
		swc_text_printf(t, " reduce %s", swc_buf_names[x->operand]);
	if (x->flags & SWC_XFER_FINAL)
		swc_text_printf(t, " final");
	if (x->flags & SWC_XFER_STORED)
		swc_text_printf(t, " stored");
	if (x->path)
		swc_text_printf(t, " path %u", x->path);
	swc_text_printf(t, "\n");
}

static void print_step(struct swc_text *t, const struct swc_plan_step *s,
		       const struct swc_plan_xfer *x)
{
	bool net = s->kind == SWC_STEP_NET;

	swc_text_printf(t, "\t\t%s\n", swc_step_names[s->kind]);
	for (uint32_t i = 0; i < (uint32_t)s->nsend + s->nrecv; i++)
		print_xfer(t, i < s->nsend ? (net ? "send" : "from") : net ? "recv" : "to", &x[i]);
}

static void print_rank(struct swc_text *t, const struct swc_plan_view *v)
{
	swc_text_printf(t, "\nrank %u", v->hdr->rank);
	print_flags(t, plan_flags, v->hdr->flags);
	swc_text_printf(t, "\n");
	for (int buf = 0; buf < SWC_BUF_NR; buf++)
		if (v->hdr->window[buf].nblocks)
			swc_text_printf(t, "\twindow %s %u+%u\n", swc_buf_names[buf],
					v->hdr->window[buf].first_block,
					v->hdr->window[buf].nblocks);
	for (uint32_t c = 0; c < v->hdr->nchannels; c++) {
		swc_text_printf(t, "\tchannel\n");
		for (uint32_t i = 0; i < v->channels[c].nsteps; i++) {
			const struct swc_plan_step *s = &v->steps[v->channels[c].first_step + i];

			print_step(t, s, v->xfers + s->first_xfer);
		}
	}
}

static bool same_set(const struct swc_plan_header *a, const struct swc_plan_header *b)
{
	return a->nranks == b->nranks && a->coll == b->coll && a->root == b->root &&
	       a->shard_blocks == b->shard_blocks && a->nchannels == b->nchannels &&
	       a->family == b->family && !strcmp(a->name, b->name);
}

int swc_plan_text_print(struct swc_text *t, const void *const *plans, const size_t *bytes,
			uint32_t nranks, swc_text_progress *progress, void *arg, char *why,
			size_t why_bytes)
{
	const struct swc_plan_header *h = nranks ? plans[0] : NULL;
	struct swc_plan_view v;
	char text[150];

	if (!h)
		return swc_text_refuse(why, why_bytes, "there are no plans");
	for (uint32_t r = 0; r < nranks; r++) {
		if (swc_plan_check(plans[r], bytes[r], &v, text, sizeof(text)))
			return swc_text_refuse(why, why_bytes, "the plan of rank %u: %s", r, text);
		if (v.hdr->rank != r || v.hdr->nranks != nranks || !same_set(v.hdr, h))
			return swc_text_refuse(
				why, why_bytes,
				"the plan of rank %u is not of the same set as rank 0's", r);
	}
	if (h->name[0] == '#')
		return swc_text_refuse(why, why_bytes, "a name cannot begin with #");
	swc_text_printf(t,
			"# Plans of an algorithm, for all ranks; see swingcoll-plan(5).\n" MAGIC
			" 1\n"
			"name %s\n"
			"collective %s\n"
			"ranks %u\n"
			"root %u\n"
			"shards %u\n"
			"blocks %u # of each shard\n",
			h->name, swc_coll_name(h->coll), nranks, h->root, h->nshards,
			h->shard_blocks);
	for (uint32_t r = 0; r < nranks; r++) {
		swc_plan_check(plans[r], bytes[r], &v, text, sizeof(text));
		print_rank(t, &v);
		if (progress)
			progress(arg, (double)r / nranks);
	}
	swc_text_printf(t, "\nend\n");
	return t->failed ? -ENOMEM : 0;
}

/* ------------------------------------------------------------------ reading: lines */

struct reader {
	const char *at, *end; /* what is left of the text */
	unsigned long line;
	char text[LINE_BYTES + 1];
	char *word[MAX_WORDS];
	int nwords;		   /* of the line at hand, 0 at the end of the file */
	char name[SWC_NAME_BYTES]; /* zeros behind the NUL */
	uint64_t hash;
	uint32_t only; /* keep this rank's plan, or ALL_RANKS */
	int error;
	char *why;
	size_t why_bytes;

	/* The current plan. */
	struct swc_plan_writer w;
	uint16_t nchannels; /* of rank 0 */
};

static int __attribute__((format(printf, 2, 3))) refuse(struct reader *r, const char *fmt, ...)
{
	char text[200];
	va_list args;

	if (r->error)
		return r->error;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	r->error = swc_text_refuse(r->why, r->why_bytes, "line %lu: %s", r->line, text);
	return r->error;
}

/* Refuse the current line, as something else must be here. */
static int expected(struct reader *r, const char *what)
{
	if (!r->nwords)
		return refuse(r, "the file ends, but %s must follow", what);
	return refuse(r, "expected %s, not '%s%s%s'", what, r->word[0], r->nwords > 1 ? " " : "",
		      r->nwords > 1 ? r->word[1] : "");
}

static int split_line(struct reader *r)
{
	char *save = NULL, *word = strtok_r(r->text, " \t", &save);

	r->nwords = 0;
	for (; word && *word != '#'; word = strtok_r(NULL, " \t", &save)) {
		if (r->nwords == MAX_WORDS)
			return refuse(r, "expected at most %d words", MAX_WORDS);
		r->word[r->nwords++] = word;
		/* With an end, so that words do not run together. */
		r->hash = swc_hash_byte(swc_hash_text(r->hash, word), 0);
	}
	if (r->nwords)
		r->hash = swc_hash_byte(swc_hash_text(r->hash, "\n"), 0);
	return 0;
}

/* Go to the next line that is neither empty nor a comment. */
static int next_line(struct reader *r)
{
	r->nwords = 0;
	while (!r->error && !r->nwords && r->at < r->end) {
		const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
		size_t n = (size_t)((newline ? newline : r->end) - r->at);

		r->line++;
		if (n > LINE_BYTES)
			return refuse(r, "expected lines of text of at most %d bytes", LINE_BYTES);
		memcpy(r->text, r->at, n);
		r->text[n] = 0;
		r->at += n + (newline != NULL);
		for (size_t i = 0; i < n; i++)
			if ((r->text[i] < ' ' || r->text[i] > '~') && r->text[i] != '\t')
				return refuse(r, "expected printable ASCII characters and tabs");
		split_line(r);
	}
	return r->error;
}

static bool is(const struct reader *r, const char *key)
{
	return r->nwords && !strcmp(r->word[0], key);
}

static int number(struct reader *r, const char *word, const char *what, uint32_t min, uint32_t max,
		  uint32_t *n)
{
	uint64_t v;

	if (!swc_number_parse(word, min, max, &v))
		return refuse(r, "expected %s, a number from %u to %u, not '%s'", what, min, max,
			      word);
	*n = (uint32_t)v;
	return 0;
}

static int buffer(struct reader *r, const char *word, uint8_t *buf)
{
	*buf = (uint8_t)find(word, swc_buf_names, SWC_BUF_NR);
	return *buf < SWC_BUF_NR ? 0 : refuse(r, "expected send, recv or scratch, not '%s'", word);
}

/* FIRST+COUNT */
static int range(struct reader *r, const char *word, uint32_t *first, uint32_t *count)
{
	uint32_t nblocks = r->w.hdr.nshards * r->w.hdr.shard_blocks;
	const char *at = word;
	uint64_t from, n;

	if (!swc_number_scan(&at, nblocks, &from) || *at++ != '+' ||
	    !swc_number_scan(&at, nblocks - from, &n) || *at)
		return refuse(r, "expected FIRST+COUNT within %u blocks, not '%s'", nblocks, word);
	*first = (uint32_t)from;
	*count = (uint32_t)n;
	return 0;
}

/* ------------------------------------------------------------------ reading: a plan */

/*
 * Make room for whatever comes next; false if the plan is too large for the kernel, or there is no
 * memory.
 */
static bool reserve(struct reader *r)
{
	if (r->error)
		return false;
	if (swc_plan_write_bytes(&r->w) > SWC_MAX_PLAN_BYTES)
		refuse(r, "the plan of rank %u is larger than %u bytes", r->w.hdr.rank,
		       SWC_MAX_PLAN_BYTES);
	else if (!swc_plan_tables_reserve(&r->w))
		r->error = -ENOMEM;
	return !r->error;
}

static int read_window(struct reader *r)
{
	uint8_t buf;

	if (r->nwords != 3)
		return expected(r, "window BUFFER FIRST+COUNT");
	if (buffer(r, r->word[1], &buf))
		return r->error;
	if (r->w.hdr.window[buf].nblocks)
		return refuse(r, "expected one window of %s", swc_buf_names[buf]);
	return range(r, r->word[2], &r->w.hdr.window[buf].first_block,
		     &r->w.hdr.window[buf].nblocks);
}

static int check_window(struct reader *r, const struct swc_plan_xfer *x, uint8_t buf)
{
	const struct swc_plan_window *w = &r->w.hdr.window[buf];

	if (x->nblocks && (x->first_block < w->first_block || x->nblocks > w->nblocks ||
			   x->first_block - w->first_block > w->nblocks - x->nblocks))
		return refuse(r, "expected blocks within the window %u+%u of %s, not %u+%u",
			      w->first_block, w->nblocks, swc_buf_names[buf], x->first_block,
			      x->nblocks);
	return 0;
}

/* VERB RANK BUFFER FIRST+COUNT [reduce BUFFER] [final] [stored] [path N] */
static int read_xfer(struct reader *r, bool net, bool recv)
{
	const struct swc_plan_step *s = swc_plan_write_open_step(&r->w);
	int most = s->kind == SWC_STEP_NET    ? SWC_MAX_MESSAGES
		   : s->kind == SWC_STEP_COPY ? SWC_MAX_COPIES
					      : SWC_MAX_FANIN;
	struct swc_plan_xfer x = { 0 };
	uint32_t path = 0;
	int at = 4;

	if (r->nwords < 4)
		return expected(r, net ? "send or recv RANK BUFFER FIRST+COUNT"
				       : "from or to RANK BUFFER FIRST+COUNT");
	if (number(r, r->word[1], "a rank", 0, r->w.hdr.nranks - 1, &x.rank) ||
	    buffer(r, r->word[2], &x.buf) || range(r, r->word[3], &x.first_block, &x.nblocks))
		return r->error;
	if (recv && net && at + 1 < r->nwords && !strcmp(r->word[at], "reduce")) {
		if (buffer(r, r->word[at + 1], &x.operand) || check_window(r, &x, x.operand))
			return r->error;
		x.flags |= SWC_XFER_REDUCE;
		at += 2;
	}
	if (recv && at < r->nwords && !strcmp(r->word[at], "final")) {
		x.flags |= SWC_XFER_FINAL;
		at++;
	}
	if (!recv && net && at < r->nwords && !strcmp(r->word[at], "stored")) {
		x.flags |= SWC_XFER_STORED;
		at++;
	}
	if (net && at < r->nwords && !strcmp(r->word[at], "path")) {
		if (at + 1 == r->nwords)
			return refuse(r, "expected a number behind path");
		if (number(r, r->word[at + 1], "a path", 0, UINT8_MAX, &path))
			return r->error;
		x.path = (uint8_t)path;
		at += 2;
	}
	if (at < r->nwords)
		return refuse(r, "expected the end of the line, not '%s'", r->word[at]);
	if (!recv && s->nrecv)
		return refuse(r, "expected %s before %s", net ? "sends" : "sources",
			      net ? "receives" : "destinations");
	if ((recv ? s->nrecv : s->nsend) == most)
		return refuse(r, "expected at most %d of these in a step", most);
	if ((net || x.rank == r->w.hdr.rank) && check_window(r, &x, x.buf))
		return r->error;
	if (!reserve(r))
		return r->error;
	if (recv)
		swc_plan_write_recv(&r->w, &x);
	else
		swc_plan_write_send(&r->w, &x);
	return 0;
}

static int read_step(struct reader *r, enum swc_step_kind kind)
{
	bool net = kind == SWC_STEP_NET;
	const char *out = net ? "send" : "from", *in = net ? "recv" : "to";

	if (r->nwords > 1)
		return refuse(r, "expected the end of the line, not '%s'", r->word[1]);
	if (!reserve(r))
		return r->error;
	swc_plan_write_step(&r->w, (uint8_t)kind);
	next_line(r);
	while (!r->error && kind != SWC_STEP_SYNC && (is(r, out) || is(r, in))) {
		read_xfer(r, net, is(r, in));
		if (!r->error)
			next_line(r);
	}
	return r->error;
}

static int read_channel(struct reader *r)
{
	if (r->nwords > 1)
		return refuse(r, "expected the end of the line, not '%s'", r->word[1]);
	if (r->w.hdr.nchannels == SWC_MAX_CHANNELS)
		return refuse(r, "expected at most %d channels", SWC_MAX_CHANNELS);
	if (!reserve(r))
		return r->error;
	swc_plan_write_channel(&r->w);
	next_line(r);
	while (!r->error) {
		enum swc_step_kind kind = SWC_STEP_NET;

		while (kind <= SWC_STEP_COPY && !is(r, swc_step_names[kind]))
			kind++;
		if (kind > SWC_STEP_COPY)
			break;
		read_step(r, kind);
	}
	return r->error;
}

/* Check the plan, and pack it if it is wanted. */
static int pack(struct reader *r, void **plan, size_t *bytes)
{
	uint32_t rank = r->w.hdr.rank;
	struct swc_plan_view v;
	size_t size = 0;
	void *p = NULL;
	char why[150];
	int ret = swc_plan_tables_pack(&r->w, &p, &size);

	if (ret == -EFBIG)
		return refuse(r, "the plan of rank %u is larger than %u bytes", rank,
			      SWC_MAX_PLAN_BYTES);
	if (ret)
		return r->error = ret;
	if (swc_plan_check(p, size, &v, why, sizeof(why)))
		refuse(r, "in the plan of rank %u, which ends here: %s", rank, why);
	if (r->error || (r->only != ALL_RANKS && r->only != rank)) {
		free(p);
		return r->error;
	}
	*plan = p;
	*bytes = size;
	return 0;
}

/* What may come after a step, or after the beginning of a channel. */
static const char *what_may_follow(const struct swc_plan_step *step)
{
	if (step && step->kind == SWC_STEP_NET)
		return "send, recv, net, local, copy, sync, channel, rank or end";
	if (step && (step->kind == SWC_STEP_LOCAL || step->kind == SWC_STEP_COPY))
		return "from, to, net, local, copy, sync, channel, rank or end";
	return "net, local, copy, sync, channel, rank or end";
}

static int read_rank(struct reader *r, uint32_t rank, void **plan, size_t *bytes)
{
	struct swc_plan_header *h = &r->w.hdr;
	char due[30];

	snprintf(due, sizeof(due), "rank %u", rank);
	if (!is(r, "rank") || r->nwords < 2)
		return expected(r, due);
	if (number(r, r->word[1], "a rank", 0, h->nranks - 1, &h->rank))
		return r->error;
	if (h->rank != rank)
		return expected(r, due);
	h->flags = h->nsteps = h->nxfers = h->nchannels = 0;
	memset(h->window, 0, sizeof(h->window));
	for (int i = 2; i < r->nwords; i++) {
		const struct flag *f = plan_flags;

		while (f->name && strcmp(r->word[i], f->name))
			f++;
		if (!f->name)
			return refuse(r, "expected not-in-place or order-varies, not '%s'",
				      r->word[i]);
		h->flags |= f->bit;
	}
	next_line(r);
	while (!r->error && is(r, "window")) {
		read_window(r);
		if (!r->error)
			next_line(r);
	}
	if (!r->error && !is(r, "channel"))
		return expected(r, "window or channel");
	while (!r->error && is(r, "channel"))
		read_channel(r);
	if (!r->error && !is(r, "rank") && !is(r, "end"))
		return expected(r, what_may_follow(swc_plan_write_open_step(&r->w)));
	if (!rank)
		r->nchannels = h->nchannels;
	if (!r->error && r->nchannels != h->nchannels)
		return refuse(r, "expected %u channels of rank %u, as many as rank 0 has, not %u",
			      r->nchannels, rank, h->nchannels);
	return r->error ? r->error : pack(r, plan, bytes);
}

/* ------------------------------------------------------------------ reading: the file */

/* A line "KEY VALUE"; its value, or NULL. */
static const char *header(struct reader *r, const char *line)
{
	size_t key = strcspn(line, " ");

	if (next_line(r))
		return NULL;
	if (r->nwords == 2 && strlen(r->word[0]) == key && !strncmp(r->word[0], line, key))
		return r->word[1];
	expected(r, line);
	return NULL;
}

static int header_number(struct reader *r, const char *line, uint32_t min, uint32_t max,
			 uint32_t *n)
{
	const char *word = header(r, line);

	return word ? number(r, word, line, min, max, n) : r->error;
}

static int read_header(struct reader *r)
{
	struct swc_plan_header *h = &r->w.hdr;
	const char *word = header(r, MAGIC " VERSION");
	uint32_t nranks, root;
	int coll;

	if (!word)
		return r->error;
	if (strcmp(word, "1"))
		return refuse(r, "expected version 1 of the format, not '%s'", word);
	word = header(r, "name NAME");
	if (!word)
		return r->error;
	if (strlen(word) >= SWC_NAME_BYTES)
		return refuse(r, "expected a name of at most %d characters, not '%s'",
			      SWC_NAME_BYTES - 1, word);
	strcpy(r->name, word);
	word = header(r, "collective NAME");
	if (!word)
		return r->error;
	coll = swc_coll_parse(word);
	if (coll < 0)
		return refuse(
			r,
			"expected allreduce, reduce_scatter, allgather, broadcast, reduce, barrier, alltoall, gather or scatter, not '%s'",
			word);
	if (header_number(r, "ranks N", 1, SWC_PLAN_MAX_RANKS, &nranks) ||
	    header_number(r, "root N", 0, swc_coll_has_root((uint8_t)coll) ? nranks - 1 : 0, &root))
		return r->error;
	swc_plan_write_begin(&r->w, (uint8_t)coll, nranks, 0, root);
	memcpy(h->name, r->name, sizeof(h->name));
	if (header_number(r, "shards N", h->nshards, h->nshards, &h->nshards))
		return r->error;
	return header_number(r, "blocks N", 1, SWC_PLAN_MAX_BLOCKS / h->nshards, &h->shard_blocks);
}

/*
 * Space for rank r's plan; ranks come in order, so that a large number of them takes no memory by
 * itself.
 */
static int grow_set(struct swc_plan_set *set, uint32_t r, uint32_t *room)
{
	uint32_t same = *room;

	if (!swc_table_reserve(&set->plan, r, room, sizeof(*set->plan)) ||
	    !swc_table_reserve(&set->bytes, r, &same, sizeof(*set->bytes)))
		return -ENOMEM;
	return 0;
}

/* Read what follows the header. If only one rank's plan is wanted, the others are NULL. */
static int read_ranks(struct reader *r, struct swc_plan_set *set)
{
	uint32_t nranks = r->w.hdr.nranks, room = 0;

	next_line(r);
	for (uint32_t i = 0; !r->error && i < nranks; i++) {
		r->error = grow_set(set, i, &room);
		if (r->error)
			break;
		set->plan[i] = NULL;
		set->bytes[i] = 0;
		set->nranks = i + 1;
		read_rank(r, i, &set->plan[i], &set->bytes[i]);
	}
	if (!r->error && (!is(r, "end") || r->nwords > 1))
		expected(r, "end");
	if (!r->error && !next_line(r) && r->nwords)
		refuse(r, "expected nothing behind the end, not '%s'", r->word[0]);
	for (uint32_t i = 0; !r->error && i < nranks; i++)
		if (set->plan[i])
			((struct swc_plan_header *)set->plan[i])->family = r->hash;
	return r->error;
}

static int parse(const char *text, size_t text_bytes, uint32_t nranks, uint32_t only,
		 struct swc_plan_set *set, char *why, size_t why_bytes)
{
	struct reader r = {
		.at = text,
		.end = text + text_bytes,
		.hash = SWC_HASH_START,
		.only = only,
		.why = why,
		.why_bytes = why_bytes,
	};

	*set = (struct swc_plan_set){ 0 };
	if (!read_header(&r)) {
		if (only == ALL_RANKS || nranks == r.w.hdr.nranks)
			read_ranks(&r, set);
		else
			r.error = swc_text_refuse(why, why_bytes,
						  "the plans are for %u ranks, not %u",
						  r.w.hdr.nranks, nranks);
	}
	if (r.error)
		swc_plan_set_free(set);
	swc_plan_tables_free(&r.w);
	return r.error;
}

int swc_plan_text_parse(const char *text, size_t text_bytes, struct swc_plan_set *set, char *why,
			size_t why_bytes)
{
	return parse(text, text_bytes, 0, ALL_RANKS, set, why, why_bytes);
}

int swc_plan_text_parse_rank(const char *text, size_t text_bytes, uint32_t nranks, uint32_t rank,
			     void **plan, size_t *bytes, char *why, size_t why_bytes)
{
	struct swc_plan_set set;
	int ret;

	if (rank >= nranks)
		return swc_text_refuse(why, why_bytes, "there is no rank %u of %u", rank, nranks);
	ret = parse(text, text_bytes, nranks, rank, &set, why, why_bytes);
	if (ret)
		return ret;
	*plan = set.plan[rank];
	*bytes = set.bytes[rank];
	set.plan[rank] = NULL;
	swc_plan_set_free(&set);
	return 0;
}

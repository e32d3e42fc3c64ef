// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Plans as text. The reader takes one line after the other and appends to the tables of the rank at hand, so
 * nothing in a file makes it take more memory than the file is long. What a line can be wrong in by itself is
 * found there; what is left is swc_plan_check()'s.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "plan_check.h"
#include "format/plan_text.h"

#define MAGIC "swingcoll-plans"
#define LINE_BYTES 200
#define MAX_WORDS 9
#define ALL_RANKS UINT32_MAX

static const char *const coll_names[SWC_COLL_NR] = {
	[SWC_ALLREDUCE] = "allreduce", [SWC_REDUCE_SCATTER] = "reduce_scatter",
	[SWC_ALLGATHER] = "allgather", [SWC_BROADCAST] = "broadcast",
	[SWC_REDUCE] = "reduce",       [SWC_BARRIER] = "barrier",
	[SWC_ALLTOALL] = "alltoall",
};

static const char *const buf_names[SWC_BUF_NR] = { "send", "recv", "scratch" };

struct flag {
	const char *name;
	uint32_t bit;
};

static const struct flag plan_flags[] = {
	{ "not-in-place", SWC_PLAN_NOT_IN_PLACE },
	{ "order-varies", SWC_PLAN_ORDER_VARIES },
	{ NULL, 0 },
};

static int __attribute__((format(printf, 3, 4)))
say(char *why, size_t why_bytes, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (why_bytes)
		vsnprintf(why, why_bytes, fmt, args);
	va_end(args);
	return -EINVAL;
}

void swc_planset_free(struct swc_planset *set)
{
	for (uint32_t r = 0; r < set->nranks; r++)
		free(set->plan[r]);
	free(set->plan);
	free(set->bytes);
	*set = (struct swc_planset){ 0 };
}

/* Index of a word in a table; n if it is none of them. */
static uint32_t find(const char *word, const char *const *table, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(word, table[i]))
			return i;
	return n;
}

int swc_planfile_coll(const char *name)
{
	uint32_t i = find(name, coll_names, SWC_COLL_NR);

	return i < SWC_COLL_NR ? (int)i : -EINVAL;
}

const char *swc_planfile_coll_name(unsigned int coll)
{
	return coll < SWC_COLL_NR ? coll_names[coll] : NULL;
}

/* ------------------------------------------------------------------ writing */

static void write_flags(FILE *f, const struct flag *flag, uint32_t flags)
{
	for (; flag->name; flag++)
		if (flags & flag->bit)
			fprintf(f, " %s", flag->name);
}

static void write_xfer(FILE *f, const char *verb, const struct swc_plan_xfer *x)
{
	fprintf(f, "\t\t\t%s %u %s %u+%u", verb, x->rank, buf_names[x->buf], x->first_block,
		x->nblocks);
	if (x->flags & SWC_XFER_REDUCE)
		fprintf(f, " reduce %s", buf_names[x->operand]);
	if (x->flags & SWC_XFER_FINAL)
		fprintf(f, " final");
	if (x->flags & SWC_XFER_STORED)
		fprintf(f, " stored");
	if (x->path)
		fprintf(f, " path %u", x->path);
	fputc('\n', f);
}

static void write_step(FILE *f, const struct swc_plan_step *s, const struct swc_plan_xfer *x)
{
	bool net = s->kind == SWC_STEP_NET;

	fprintf(f, "\t\t%s\n", net ? "net" : s->kind == SWC_STEP_LOCAL ? "local" : "sync");
	for (uint32_t i = 0; i < (uint32_t)s->nsend + s->nrecv; i++)
		write_xfer(f, i < s->nsend ? (net ? "send" : "from") : net ? "recv" : "to", &x[i]);
}

static void write_rank(FILE *f, const struct swc_plan_view *v)
{
	fprintf(f, "\nrank %u", v->hdr->rank);
	write_flags(f, plan_flags, v->hdr->flags);
	fputc('\n', f);
	for (int buf = 0; buf < SWC_BUF_NR; buf++)
		if (v->hdr->window[buf].nblocks)
			fprintf(f, "\twindow %s %u+%u\n", buf_names[buf],
				v->hdr->window[buf].first_block, v->hdr->window[buf].nblocks);
	for (uint32_t c = 0; c < v->hdr->nchannels; c++) {
		fprintf(f, "\tchannel\n");
		for (uint32_t i = 0; i < v->channels[c].nsteps; i++) {
			const struct swc_plan_step *s = &v->steps[v->channels[c].first_step + i];

			write_step(f, s, v->xfers + s->first_xfer);
		}
	}
}

static bool same_set(const struct swc_plan_header *a, const struct swc_plan_header *b)
{
	return a->nranks == b->nranks && a->coll == b->coll && a->root == b->root &&
	       a->part_blocks == b->part_blocks && a->nchannels == b->nchannels &&
	       a->family == b->family && !strcmp(a->name, b->name);
}

int swc_planfile_write(FILE *f, const void *const *plans, const size_t *bytes, uint32_t nranks,
		       char *why, size_t why_bytes)
{
	const struct swc_plan_header *h = nranks ? plans[0] : NULL;
	struct swc_plan_view v;
	char text[150];

	if (!h)
		return say(why, why_bytes, "there are no plans");
	for (uint32_t r = 0; r < nranks; r++) {
		if (swc_plan_check(plans[r], bytes[r], &v, text, sizeof(text)))
			return say(why, why_bytes, "the plan of rank %u: %s", r, text);
		if (v.hdr->rank != r || v.hdr->nranks != nranks || !same_set(v.hdr, h))
			return say(why, why_bytes,
				   "the plan of rank %u does not belong to rank 0's", r);
	}
	if (h->name[0] == '#')
		return say(why, why_bytes, "a name cannot begin with #");
	fprintf(f,
		"# Plans of an algorithm, for all ranks; see swingcoll-plan(5).\n" MAGIC " 1\n"
		"name %s\n"
		"collective %s\n"
		"ranks %u\n"
		"root %u\n"
		"parts %u\n"
		"blocks %u # of each part\n",
		h->name, coll_names[h->coll], nranks, h->root, h->nparts, h->part_blocks);
	for (uint32_t r = 0; r < nranks; r++) {
		swc_plan_check(plans[r], bytes[r], &v, text, sizeof(text));
		write_rank(f, &v);
	}
	fprintf(f, "\nend\n");
	if (fflush(f) || ferror(f)) {
		int err = errno ? errno : EIO;

		say(why, why_bytes, "writing: %s", strerror(err));
		return -err;
	}
	return 0;
}

/* ------------------------------------------------------------------ reading: lines */

struct reader {
	FILE *f;
	unsigned long line;
	char text[LINE_BYTES + 2];
	char *word[MAX_WORDS];
	int nwords; /* of the line at hand, 0 at the end of the file */
	uint64_t hash;
	uint32_t only; /* keep this rank's plan, or ALL_RANKS */
	int error;
	char *why;
	size_t why_bytes;

	/* The plan at hand. */
	struct swc_plan_header hdr;
	struct swc_plan_channel *chan;
	struct swc_plan_step *step;
	struct swc_plan_xfer *xfer;
	uint32_t chan_room, step_room, xfer_room;
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
	r->error = say(r->why, r->why_bytes, "line %lu: %s", r->line, text);
	return r->error;
}

/* The line at hand is not what must come here. */
static int expected(struct reader *r, const char *what)
{
	if (!r->nwords)
		return refuse(r, "the file ends, but %s must follow", what);
	return refuse(r, "expected %s, not '%s%s%s'", what, r->word[0], r->nwords > 1 ? " " : "",
		      r->nwords > 1 ? r->word[1] : "");
}

/* FNV-1a over the words of the file. */
static void hash_word(struct reader *r, const char *word)
{
	do {
		r->hash = (r->hash ^ (unsigned char)*word) * 0x100000001b3;
	} while (*word++);
}

static int split_line(struct reader *r)
{
	char *save = NULL, *word = strtok_r(r->text, " \t", &save);

	r->nwords = 0;
	for (; word && *word != '#'; word = strtok_r(NULL, " \t", &save)) {
		if (r->nwords == MAX_WORDS)
			return refuse(r, "expected at most %d words", MAX_WORDS);
		r->word[r->nwords++] = word;
		hash_word(r, word);
	}
	if (r->nwords)
		hash_word(r, "\n");
	return 0;
}

/* The next line that says something. */
static int next_line(struct reader *r)
{
	r->nwords = 0;
	while (!r->error && !r->nwords) {
		size_t n;

		if (!fgets(r->text, sizeof(r->text), r->f)) {
			if (ferror(r->f)) {
				int err = errno ? errno : EIO;

				say(r->why, r->why_bytes, "reading: %s", strerror(err));
				r->error = -err;
			}
			break;
		}
		r->line++;
		n = strlen(r->text);
		if (n && r->text[n - 1] == '\n')
			r->text[--n] = 0;
		else if (!feof(r->f))
			return refuse(r, "expected lines of text of at most %d bytes", LINE_BYTES);
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

/* Digits only; the cursor moves behind them. */
static bool digits(const char **at, uint32_t max, uint32_t *n)
{
	uint64_t v = 0;
	const char *s = *at;

	while (*s >= '0' && *s <= '9' && v <= max)
		v = v * 10 + (uint64_t)(*s++ - '0');
	if (s == *at || v > max)
		return false;
	*at = s;
	*n = (uint32_t)v;
	return true;
}

static int number(struct reader *r, const char *word, const char *what, uint32_t min, uint32_t max,
		  uint32_t *n)
{
	const char *at = word;

	if (!digits(&at, max, n) || *at || *n < min)
		return refuse(r, "expected %s, a number from %u to %u, not '%s'", what, min, max,
			      word);
	return 0;
}

static int buffer(struct reader *r, const char *word, uint8_t *buf)
{
	*buf = (uint8_t)find(word, buf_names, SWC_BUF_NR);
	return *buf < SWC_BUF_NR ? 0 : refuse(r, "expected send, recv or scratch, not '%s'", word);
}

/* FIRST+COUNT */
static int range(struct reader *r, const char *word, uint32_t *first, uint32_t *count)
{
	uint32_t nblocks = r->hdr.nparts * r->hdr.part_blocks;
	const char *at = word;

	if (!digits(&at, nblocks, first) || *at++ != '+' || !digits(&at, nblocks, count) || *at ||
	    *count > nblocks - *first)
		return refuse(r, "expected FIRST+COUNT within %u blocks, not '%s'", nblocks, word);
	return 0;
}

/* ------------------------------------------------------------------ reading: a plan */

/* Room for one more element, as long as the plan is not too large for the kernel. */
static bool room_for(struct reader *r, void *table, uint32_t used, uint32_t *room, size_t size)
{
	void **t = table, *p;
	uint32_t want;

	if (used * size > SWC_MAX_PLAN_BYTES) {
		refuse(r, "the plan of rank %u is larger than %u bytes", r->hdr.rank,
		       SWC_MAX_PLAN_BYTES);
		return false;
	}
	if (used < *room)
		return true;
	want = *room * 2 + 16;
	p = reallocarray(*t, want, size);
	if (!p) {
		r->error = -ENOMEM;
		return false;
	}
	*t = p;
	*room = want;
	return true;
}

static int read_window(struct reader *r)
{
	uint8_t buf;

	if (r->nwords != 3)
		return expected(r, "window BUFFER FIRST+COUNT");
	if (buffer(r, r->word[1], &buf))
		return r->error;
	if (r->hdr.window[buf].nblocks)
		return refuse(r, "expected one window of %s", buf_names[buf]);
	return range(r, r->word[2], &r->hdr.window[buf].first_block, &r->hdr.window[buf].nblocks);
}

static int check_window(struct reader *r, const struct swc_plan_xfer *x, uint8_t buf)
{
	const struct swc_plan_window *w = &r->hdr.window[buf];

	if (x->nblocks && (x->first_block < w->first_block || x->nblocks > w->nblocks ||
			   x->first_block - w->first_block > w->nblocks - x->nblocks))
		return refuse(r, "expected blocks within the window %u+%u of %s, not %u+%u",
			      w->first_block, w->nblocks, buf_names[buf], x->first_block,
			      x->nblocks);
	return 0;
}

/* VERB RANK BUFFER FIRST+COUNT [reduce BUFFER] [final] [stored] [path N] */
static int read_xfer(struct reader *r, bool net, bool recv)
{
	struct swc_plan_step *s = &r->step[r->hdr.nsteps - 1];
	struct swc_plan_xfer x = { 0 };
	uint32_t path;
	int at = 4;

	if (r->nwords < 4)
		return expected(r, net ? "send or recv RANK BUFFER FIRST+COUNT"
				       : "from or to RANK BUFFER FIRST+COUNT");
	if (number(r, r->word[1], "a rank", 0, r->hdr.nranks - 1, &x.rank) ||
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
		return refuse(r, "nothing can follow here, but '%s' does", r->word[at]);
	if (!recv && s->nrecv)
		return refuse(r, "expected %s before %s", net ? "sends" : "sources",
			      net ? "receives" : "destinations");
	if ((recv ? s->nrecv : s->nsend) == (net ? SWC_MAX_RANKS : SWC_MAX_FANIN))
		return refuse(r, "expected at most %d of these in a step",
			      net ? SWC_MAX_RANKS : SWC_MAX_FANIN);
	if ((net || x.rank == r->hdr.rank) && check_window(r, &x, x.buf))
		return r->error;
	if (!room_for(r, &r->xfer, r->hdr.nxfers, &r->xfer_room, sizeof(x)))
		return r->error;
	r->xfer[r->hdr.nxfers++] = x;
	++*(recv ? &s->nrecv : &s->nsend);
	return 0;
}

static int read_step(struct reader *r, enum swc_step_kind kind)
{
	bool net = kind == SWC_STEP_NET;
	const char *out = net ? "send" : "from", *in = net ? "recv" : "to";

	if (r->nwords > 1)
		return refuse(r, "nothing can follow here, but '%s' does", r->word[1]);
	if (!room_for(r, &r->step, r->hdr.nsteps, &r->step_room, sizeof(*r->step)))
		return r->error;
	r->step[r->hdr.nsteps++] = (struct swc_plan_step){
		.kind = (uint8_t)kind,
		.first_xfer = r->hdr.nxfers,
	};
	r->chan[r->hdr.nchannels - 1].nsteps++;
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
		return refuse(r, "nothing can follow here, but '%s' does", r->word[1]);
	if (r->hdr.nchannels == SWC_MAX_CHANNELS)
		return refuse(r, "expected at most %d channels", SWC_MAX_CHANNELS);
	if (!room_for(r, &r->chan, r->hdr.nchannels, &r->chan_room, sizeof(*r->chan)))
		return r->error;
	r->chan[r->hdr.nchannels++] = (struct swc_plan_channel){ .first_step = r->hdr.nsteps };
	next_line(r);
	while (!r->error) {
		if (is(r, "net"))
			read_step(r, SWC_STEP_NET);
		else if (is(r, "local"))
			read_step(r, SWC_STEP_LOCAL);
		else if (is(r, "sync"))
			read_step(r, SWC_STEP_SYNC);
		else
			break;
	}
	return r->error;
}

/* The tables as one plan, if it is wanted. */
static int pack(struct reader *r, void **plan, size_t *bytes)
{
	struct swc_plan_header *h = &r->hdr;
	size_t chans = h->nchannels * sizeof(*r->chan), steps = h->nsteps * sizeof(*r->step);
	size_t xfers = h->nxfers * sizeof(*r->xfer), total = sizeof(*h) + chans + steps + xfers;
	struct swc_plan_view v;
	char why[150];
	char *p;

	if (total > SWC_MAX_PLAN_BYTES)
		return refuse(r, "the plan of rank %u is larger than %u bytes", h->rank,
			      SWC_MAX_PLAN_BYTES);
	p = malloc(total);
	if (!p)
		return r->error = -ENOMEM;
	h->total_bytes = (uint32_t)total;
	memcpy(p, h, sizeof(*h));
	memcpy(p + sizeof(*h), r->chan, chans);
	if (steps)
		memcpy(p + sizeof(*h) + chans, r->step, steps);
	if (xfers)
		memcpy(p + sizeof(*h) + chans + steps, r->xfer, xfers);
	if (swc_plan_check(p, total, &v, why, sizeof(why)))
		refuse(r, "in the plan of rank %u, which ends here: %s", h->rank, why);
	if (r->error || (r->only != ALL_RANKS && r->only != h->rank)) {
		free(p);
		return r->error;
	}
	*plan = p;
	*bytes = total;
	return 0;
}

static int read_rank(struct reader *r, uint32_t rank, void **plan, size_t *bytes)
{
	struct swc_plan_header *h = &r->hdr;
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
		return expected(r, h->nsteps && r->step[h->nsteps - 1].kind == SWC_STEP_NET
					   ? "send, recv, net, local, sync, channel, rank or end"
				   : h->nsteps && r->step[h->nsteps - 1].kind == SWC_STEP_LOCAL
					   ? "from, to, net, local, sync, channel, rank or end"
					   : "net, local, sync, channel, rank or end");
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
	struct swc_plan_header *h = &r->hdr;
	const char *word = header(r, MAGIC " VERSION");

	*h = (struct swc_plan_header){
		.magic = SWC_PLAN_MAGIC,
		.version = SWC_PLAN_VERSION,
		.header_bytes = sizeof(*h),
	};
	if (word && strcmp(word, "1"))
		return refuse(r, "expected version 1 of the format, not '%s'", word);
	word = word ? header(r, "name NAME") : NULL;
	if (word && strlen(word) >= SWC_NAME_BYTES)
		return refuse(r, "expected a name of at most %d characters, not '%s'",
			      SWC_NAME_BYTES - 1, word);
	if (word)
		memcpy(h->name, word, strlen(word));
	word = word ? header(r, "collective NAME") : NULL;
	if (word)
		h->coll = (uint8_t)find(word, coll_names, SWC_COLL_NR);
	if (word && h->coll == SWC_COLL_NR)
		return refuse(
			r,
			"expected allreduce, reduce_scatter, allgather, broadcast, reduce, barrier or alltoall, not '%s'",
			word);
	if (!word || header_number(r, "ranks N", 1, SWC_PLAN_MAX_RANKS, &h->nranks) ||
	    header_number(r, "root N", 0, swc_coll_has_root(h->coll) ? h->nranks - 1 : 0, &h->root))
		return r->error;
	h->nparts = swc_coll_nparts(h->coll, h->nranks);
	if (header_number(r, "parts N", h->nparts, h->nparts, &h->nparts))
		return r->error;
	return header_number(r, "blocks N", 1, SWC_PLAN_MAX_BLOCKS / h->nparts, &h->part_blocks);
}

/* Space for rank r's plan; ranks come in order, so that a large number of them takes no memory by itself. */
static int grow_set(struct swc_planset *set, uint32_t r, uint32_t *room)
{
	uint32_t want = *room * 2 + 16;
	void *p;

	if (r < *room)
		return 0;
	p = reallocarray(set->plan, want, sizeof(*set->plan));
	if (p)
		set->plan = p;
	else
		return -ENOMEM;
	p = reallocarray(set->bytes, want, sizeof(*set->bytes));
	if (p)
		set->bytes = p;
	else
		return -ENOMEM;
	*room = want;
	return 0;
}

/* What follows the header. Of a set for one rank, the others' plans are NULL. */
static int read_ranks(struct reader *r, struct swc_planset *set)
{
	uint32_t nranks = r->hdr.nranks, room = 0;

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
		refuse(r, "nothing can follow the end, but '%s' does", r->word[0]);
	for (uint32_t i = 0; !r->error && i < nranks; i++)
		if (set->plan[i])
			((struct swc_plan_header *)set->plan[i])->family = r->hash;
	return r->error;
}

static int read_file(FILE *f, uint32_t nranks, uint32_t only, struct swc_planset *set, char *why,
		     size_t why_bytes)
{
	struct reader r = {
		.f = f,
		.hash = 0xcbf29ce484222325,
		.only = only,
		.why = why,
		.why_bytes = why_bytes,
	};

	*set = (struct swc_planset){ 0 };
	if (!read_header(&r)) {
		if (only == ALL_RANKS || nranks == r.hdr.nranks)
			read_ranks(&r, set);
		else
			r.error = say(why, why_bytes, "the plans are for %u ranks, not %u",
				      r.hdr.nranks, nranks);
	}
	if (r.error)
		swc_planset_free(set);
	free(r.chan);
	free(r.step);
	free(r.xfer);
	return r.error;
}

int swc_planfile_read(FILE *f, struct swc_planset *set, char *why, size_t why_bytes)
{
	return read_file(f, 0, ALL_RANKS, set, why, why_bytes);
}

int swc_planfile_rank(const char *path, uint32_t nranks, uint32_t rank, void **plan, size_t *bytes,
		      char *why, size_t why_bytes)
{
	FILE *f = fopen(path, "re");
	struct swc_planset set;
	char text[250];
	int ret;

	if (!f) {
		ret = -errno;
		say(why, why_bytes, "%s: %s", path, strerror(-ret));
		return ret;
	}
	*text = 0;
	ret = rank < nranks ? read_file(f, nranks, rank, &set, text, sizeof(text))
			    : say(text, sizeof(text), "there is no rank %u of %u", rank, nranks);
	fclose(f);
	if (ret) {
		say(why, why_bytes, "%s: %s", path, text);
		return ret;
	}
	*plan = set.plan[rank];
	*bytes = set.bytes[rank];
	set.plan[rank] = NULL;
	swc_planset_free(&set);
	return 0;
}

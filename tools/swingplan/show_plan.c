// SPDX-License-Identifier: GPL-2.0-only
/*
 * The plan of a rank, as text or as JSON. Plans have up to hundreds of thousands of transfers, for which
 * printf() and a tree of JSON objects take long and much memory: so it is written piece by piece. JSON looks
 * as that of json_document().
 */
#include "swingplan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "plan/names.h"

/* ------------------------------------------------------------------ characters */

static void flush(struct show_out *o)
{
	fwrite(o->text, 1, o->n, stdout);
	o->n = 0;
}

static void add_after_flush(struct show_out *o, const char *text, size_t n)
{
	flush(o);
	if (n > sizeof(o->text)) {
		fwrite(text, 1, n, stdout);
		return;
	}
	memcpy(o->text, text, n);
	o->n = n;
}

/* Inline, so that the length of most texts is known: a plan has millions of them. */
static inline void add(struct show_out *o, const char *text, size_t n)
{
	if (n > sizeof(o->text) - o->n) {
		add_after_flush(o, text, n);
		return;
	}
	memcpy(o->text + o->n, text, n);
	o->n += n;
}

static inline void add_text(struct show_out *o, const char *text)
{
	add(o, text, strlen(text));
}

/* @width: at least so many characters, with blanks behind. */
static void add_number(struct show_out *o, uint32_t value, size_t width)
{
	char digits[16];
	size_t at = 10, end;

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	for (end = 10; end - at < width; end++)
		digits[end] = ' ';
	add(o, digits + at, end - at);
}

/* ------------------------------------------------------------------ text */

/* @what: nine characters */
static void xfer_text(struct show_out *o, const struct swc_plan_xfer *x, const char *what)
{
	add_text(o, "    ");
	add_text(o, what);
	add_text(o, " rank ");
	add_number(o, x->rank, 5);
	add_text(o, x->nblocks > 1 ? " blocks " : x->nblocks ? " block " : " no data");
	if (x->nblocks)
		add_number(o, x->first_block, 0);
	if (x->nblocks > 1) {
		add_text(o, "-");
		add_number(o, x->first_block + x->nblocks - 1, 0);
	}
	add_text(o, " of ");
	add_text(o, swc_buf_names[x->buf]);
	if (x->flags & SWC_XFER_REDUCE) {
		add_text(o, ", reduced with ");
		add_text(o, swc_buf_names[x->operand]);
	}
	add_text(o, x->flags & SWC_XFER_FINAL ? ", final" : "");
	add_text(o, x->flags & SWC_XFER_STORED ? ", stored" : "");
	if (x->path) {
		add_text(o, ", path ");
		add_number(o, x->path, 0);
	}
	add_text(o, "\n");
}

static void step_text(struct show_out *o, const struct swc_plan_view *v,
		      const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *x = v->xfers + s->first_xfer;
	bool net = s->kind == SWC_STEP_NET;

	for (int i = 0; i < s->nsend; i++)
		xfer_text(o, x++, net ? "send to  " : "read     ");
	for (int i = 0; i < s->nrecv; i++)
		xfer_text(o, x++, net ? "recv from" : "write    ");
}

void show_text(const struct swc_plan_view *v)
{
	struct show_out o = { .n = 0 };

	printf("\nplan of rank %u: %u shard%s of %u block%s, %u channel%s, %u bytes%s\n",
	       v->hdr->rank, v->hdr->nshards, v->hdr->nshards == 1 ? "" : "s", v->hdr->shard_blocks,
	       v->hdr->shard_blocks == 1 ? "" : "s", v->hdr->nchannels,
	       v->hdr->nchannels == 1 ? "" : "s", v->hdr->total_bytes,
	       v->hdr->flags & SWC_PLAN_NOT_IN_PLACE ? ", not in place" : "");
	for (uint32_t c = 0; c < v->hdr->nchannels; c++) {
		const struct swc_plan_channel *ch = &v->channels[c];

		for (uint32_t i = 0; i < ch->nsteps; i++) {
			const struct swc_plan_step *s = &v->steps[ch->first_step + i];

			add_text(&o, "  channel ");
			add_number(&o, c, 0);
			add_text(&o, " step ");
			add_number(&o, i, 0);
			add_text(&o, ": ");
			add_text(&o, swc_step_names[s->kind]);
			add_text(&o, "\n");
			step_text(&o, v, s);
		}
	}
	flush(&o);
}

/* ------------------------------------------------------------------ JSON */

static void add_line(struct show_json *j)
{
	static const char tabs[] = "\n\t\t\t\t\t\t\t\t\t\t";

	add(&j->out, tabs, 1 + j->depth);
}

static void open_part(struct show_json *j, const char *bracket)
{
	add_text(&j->out, bracket);
	j->depth++;
	j->first = true;
}

/* An object ends on a line of its own. */
static void close_part(struct show_json *j, const char *bracket)
{
	j->depth--;
	if (*bracket == '}')
		add_line(j);
	add_text(&j->out, bracket);
	j->first = false;
}

/* In front of an element of an array, and of a value of an object. */
static void element(struct show_json *j)
{
	add_text(&j->out, j->first ? "" : ", ");
	j->first = false;
}

static void key(struct show_json *j, const char *name)
{
	add_text(&j->out, j->first ? "" : ",");
	add_line(j);
	add_text(&j->out, "\"");
	add_text(&j->out, name);
	add_text(&j->out, "\":\t");
	j->first = false;
}

static void add_key_number(struct show_json *j, const char *name, uint32_t value)
{
	key(j, name);
	add_number(&j->out, value, 0);
}

static void add_key_bool(struct show_json *j, const char *name, bool value)
{
	key(j, name);
	add_text(&j->out, value ? "true" : "false");
}

/* @value: without characters that JSON escapes */
static void add_key_text(struct show_json *j, const char *name, const char *value)
{
	key(j, name);
	add_text(&j->out, "\"");
	add_text(&j->out, value);
	add_text(&j->out, "\"");
}

static void xfer_json(struct show_json *j, const struct swc_plan_xfer *x, bool net, bool recv)
{
	element(j);
	open_part(j, "{");
	add_key_number(j, "rank", x->rank);
	add_key_number(j, "first_block", x->first_block);
	add_key_number(j, "nblocks", x->nblocks);
	add_key_text(j, "buf", swc_buf_names[x->buf]);
	if (net)
		add_key_number(j, "path", x->path);
	if (net && !recv)
		add_key_bool(j, "stored", x->flags & SWC_XFER_STORED);
	if (recv && x->flags & SWC_XFER_REDUCE)
		add_key_text(j, "reduce_with", swc_buf_names[x->operand]);
	if (recv)
		add_key_bool(j, "final", x->flags & SWC_XFER_FINAL);
	close_part(j, "}");
}

static void xfers_json(struct show_json *j, const char *name, const struct swc_plan_xfer *x,
		       uint32_t n, bool net, bool recv)
{
	key(j, name);
	open_part(j, "[");
	for (uint32_t i = 0; i < n; i++)
		xfer_json(j, &x[i], net, recv);
	close_part(j, "]");
}

static void step_json(struct show_json *j, const struct swc_plan_view *v,
		      const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *x = v->xfers + s->first_xfer;
	bool net = s->kind == SWC_STEP_NET;

	element(j);
	open_part(j, "{");
	add_key_text(j, "kind", swc_step_names[s->kind]);
	xfers_json(j, "sends", x, s->nsend, net, false);
	xfers_json(j, "recvs", x + s->nsend, s->nrecv, net, true);
	close_part(j, "}");
}

static void plan_json(struct show_json *j, const struct swc_plan_view *v)
{
	open_part(j, "{");
	add_key_number(j, "rank", v->hdr->rank);
	add_key_number(j, "bytes", v->hdr->total_bytes);
	add_key_number(j, "shards", v->hdr->nshards);
	add_key_number(j, "blocks_per_shard", v->hdr->shard_blocks);
	add_key_bool(j, "in_place", !(v->hdr->flags & SWC_PLAN_NOT_IN_PLACE));
	key(j, "channels");
	open_part(j, "[");
	for (uint32_t c = 0; c < v->hdr->nchannels; c++) {
		const struct swc_plan_channel *ch = &v->channels[c];

		element(j);
		open_part(j, "[");
		for (uint32_t i = 0; i < ch->nsteps; i++)
			step_json(j, v, &v->steps[ch->first_step + i]);
		close_part(j, "]");
	}
	close_part(j, "]");
	close_part(j, "}");
}

void show_json_begin(struct show_json *j, bool many)
{
	*j = (struct show_json){ .many = many, .first = true };
	if (many)
		open_part(j, "[");
}

void show_json_entry(struct show_json *j, cJSON *cost, const struct swc_plan_view *v)
{
	element(j);
	open_part(j, "{");
	for (const cJSON *value = cost->child; value; value = value->next) {
		char *text = cJSON_PrintUnformatted(value);

		if (!text)
			plan_no_memory();
		key(j, value->string);
		add_text(&j->out, text);
		free(text);
	}
	if (v) {
		key(j, "plan");
		plan_json(j, v);
	}
	close_part(j, "}");
	cJSON_Delete(cost);
}

void show_json_end(struct show_json *j)
{
	if (j->many)
		close_part(j, "]");
	add_text(&j->out, "\n");
	flush(&j->out);
	fflush(stdout);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Plans as a program in MSCCL's XML. There, a thread block has one peer to send to and one to receive from,
 * and runs its steps in order. So each channel of a plan becomes one thread block for each peer and
 * direction, and one that counts: after each step of the plan it waits for all thread blocks that took
 * part, one after the other, and those of the next step wait for it. Local steps are its own.
 *
 * Messages are matched by pair of ranks, channel and order on both sides, so the rest is the same. The
 * program is out of place, as input and output of a plan may be.
 */
#include <errno.h>
#include <stdlib.h>

#include "kmod/core/plan_check.h"
#include "plan/format/msccl.h"
#include "plan/names.h"
#include "plan/table.h"

#define NONE UINT32_MAX

enum role {
	COUNTS,
	SENDS,
	RECEIVES,
};

struct tb {
	uint32_t chan, peer;
	enum role role;
	uint32_t nsteps;
	uint32_t touched; /* number of the plan's step that it last took part in */
};

/* @dep_tb, @dep_step: to wait for, or NONE; @needed: others wait for it */
struct step {
	uint32_t tb;
	const char *type;
	struct swc_plan_xfer src, dst;
	uint32_t dep_tb, dep_step;
	bool needed;
};

/**
 * struct printer - of one rank
 * @number: of the plan's step
 * @dep_tb, @dep_step: what the steps of thread blocks wait for now
 */
struct printer {
	struct swc_plan_view v;
	struct tb *tb;
	struct step *step;
	uint32_t ntbs, tb_room, nsteps, step_room;
	uint32_t number, dep_tb, dep_step;
	char *why;
	size_t why_bytes;
	int error;
};

static uint32_t find_tb(struct printer *p, uint32_t chan, enum role role, uint32_t peer)
{
	for (uint32_t i = 0; i < p->ntbs; i++)
		if (p->tb[i].chan == chan && p->tb[i].role == role && p->tb[i].peer == peer)
			return i;
	if (!swc_table_reserve(&p->tb, p->ntbs, &p->tb_room, sizeof(*p->tb))) {
		p->error = -ENOMEM;
		return NONE;
	}
	p->tb[p->ntbs] = (struct tb){ .chan = chan, .role = role, .peer = peer };
	return p->ntbs++;
}

/* The step's number in its thread block is known when all are there: they are printed in this order. */
static void add(struct printer *p, uint32_t tb, const char *type, const struct swc_plan_xfer *src,
		const struct swc_plan_xfer *dst)
{
	struct step s = { .tb = tb, .type = type, .dep_tb = NONE };

	if (tb == NONE || p->error)
		return;
	if (src)
		s.src = *src;
	if (dst)
		s.dst = *dst;
	/* Of one step of the plan, the first waits. */
	if (p->tb[tb].touched != p->number && p->tb[tb].role != COUNTS) {
		s.dep_tb = p->dep_tb;
		s.dep_step = p->dep_step;
	}
	p->tb[tb].touched = p->number;
	if (!swc_table_reserve(&p->step, p->nsteps, &p->step_room, sizeof(*p->step))) {
		p->error = -ENOMEM;
		return;
	}
	p->step[p->nsteps++] = s;
	p->tb[tb].nsteps++;
}

static bool overlap(const struct swc_plan_xfer *x, uint32_t buf, const struct swc_plan_xfer *y)
{
	return x->buf == buf && x->first_block < y->first_block + y->nblocks &&
	       y->first_block < x->first_block + x->nblocks;
}

/*
 * A receive that adds to what earlier receives of the same step have stored waits for those of other
 * thread blocks. @x: the receives of the step, @of: by receive, the thread block and step that it became.
 */
static void add_recv(struct printer *p, uint32_t chan, const struct swc_plan_xfer *x, uint32_t i,
		     uint32_t (*of)[2])
{
	uint32_t tb = find_tb(p, chan, RECEIVES, x[i].rank);
	bool sum = x[i].flags & SWC_XFER_REDUCE;
	struct swc_plan_xfer operand = x[i];

	for (uint32_t k = 0; sum && k < i && !p->error; k++) {
		if (!overlap(&x[k], x[i].operand, &x[i]) || of[k][0] == tb)
			continue;
		add(p, tb, "nop", NULL, NULL);
		if (p->error)
			return;
		p->step[p->nsteps - 1].dep_tb = of[k][0];
		p->step[p->nsteps - 1].dep_step = of[k][1];
	}
	operand.buf = x[i].operand;
	add(p, tb, sum ? "rrc" : "r", sum ? &operand : NULL, &x[i]);
	if (p->error)
		return;
	of[i][0] = tb;
	of[i][1] = p->tb[tb].nsteps - 1;
}

static void add_net(struct printer *p, uint32_t chan, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *x = &p->v.xfers[s->first_xfer];
	uint32_t counts = find_tb(p, chan, COUNTS, NONE),
		 (*of)[2] = calloc(s->nrecv + 1ul, sizeof(*of));

	if (!of)
		p->error = -ENOMEM;
	for (uint32_t i = 0; i < s->nsend; i++)
		add(p, find_tb(p, chan, SENDS, x[i].rank), "s", &x[i], NULL);
	for (uint32_t i = 0; i < s->nrecv && !p->error; i++)
		add_recv(p, chan, x + s->nsend, i, of);
	free(of);
	for (uint32_t i = 0; i < p->ntbs && !p->error; i++) {
		if (i == counts || p->tb[i].chan != chan || p->tb[i].touched != p->number)
			continue;
		add(p, counts, "nop", NULL, NULL);
		if (!p->error) {
			p->step[p->nsteps - 1].dep_tb = i;
			p->step[p->nsteps - 1].dep_step = p->tb[i].nsteps - 1;
		}
	}
}

static bool same(const struct swc_plan_xfer *a, const struct swc_plan_xfer *b)
{
	return a->buf == b->buf && a->first_block == b->first_block;
}

/* The sum of all sources to the first destination, and copies of it to the others. */
static void add_local(struct printer *p, uint32_t chan, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *src = &p->v.xfers[s->first_xfer], *dst = src + s->nsend;
	uint32_t counts = find_tb(p, chan, COUNTS, NONE), first = 0;

	for (uint32_t i = 0; i < s->nsend + s->nrecv; i++)
		if (src[i].rank != p->v.hdr->rank) {
			p->error = swc_text_refuse(
				p->why, p->why_bytes,
				"rank %u reads or writes memory of rank %u, which MSCCL's programs cannot",
				p->v.hdr->rank, src[i].rank);
			return;
		}
	for (uint32_t i = 0; i < s->nsend && s->nrecv; i++)
		first = same(&src[i], dst) ? i : first;
	if (s->nsend && s->nrecv && !same(&src[first], dst))
		add(p, counts, "cpy", &src[first], dst);
	for (uint32_t i = 0; i < s->nsend && s->nrecv; i++)
		if (i != first)
			add(p, counts, "re", &src[i], dst);
	for (uint32_t i = 1; i < s->nrecv; i++)
		add(p, counts, "cpy", dst, dst + i);
}

/* Each copy of a copy step, in their order. */
static void add_copies(struct printer *p, uint32_t chan, const struct swc_plan_step *s)
{
	const struct swc_plan_xfer *src = &p->v.xfers[s->first_xfer], *dst = src + s->nsend;
	uint32_t counts = find_tb(p, chan, COUNTS, NONE);

	for (uint32_t i = 0; i < s->nsend && !p->error; i++)
		add(p, counts, "cpy", &src[i], &dst[i]);
}

static void add_steps(struct printer *p)
{
	for (uint32_t c = 0; c < p->v.hdr->nchannels; c++) {
		const struct swc_plan_channel *chan = &p->v.channels[c];

		p->dep_tb = NONE;
		for (uint32_t i = 0; i < chan->nsteps && !p->error; i++) {
			const struct swc_plan_step *s = &p->v.steps[chan->first_step + i];
			uint32_t counts;

			p->number++;
			if (s->kind == SWC_STEP_NET)
				add_net(p, c, s);
			else if (s->kind == SWC_STEP_LOCAL)
				add_local(p, c, s);
			else if (s->kind == SWC_STEP_COPY)
				add_copies(p, c, s);
			counts = find_tb(p, c, COUNTS, NONE);
			if (p->error || !p->tb[counts].nsteps)
				continue;
			p->dep_tb = counts;
			p->dep_step = p->tb[counts].nsteps - 1;
		}
	}
}

/* ---- printing ---- */

static uint32_t chunks_of(const struct printer *p, enum swc_buf buf)
{
	return p->v.hdr->window[buf].nblocks;
}

/* The number of a block in its buffer. */
static uint32_t chunk(const struct printer *p, const struct swc_plan_xfer *x)
{
	return x->first_block - p->v.hdr->window[x->buf].first_block;
}

static void print_step(const struct printer *p, struct swc_text *t, const struct step *s,
		       uint32_t number)
{
	static const char letters[] = { 'i', 'o', 's' };
	uint32_t n = s->src.nblocks ? s->src.nblocks : s->dst.nblocks;
	const struct swc_plan_xfer *src = s->src.nblocks ? &s->src : &s->dst;
	const struct swc_plan_xfer *dst = s->dst.nblocks ? &s->dst : &s->src;

	swc_text_printf(
		t,
		"<step s=\"%u\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%u\" dstbuf=\"%c\" dstoff=\"%u\""
		" cnt=\"%u\" depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n",
		number, s->type, letters[src->buf], n ? chunk(p, src) : 0, letters[dst->buf],
		n ? chunk(p, dst) : 0, n, s->dep_tb == NONE ? -1 : (int)s->dep_tb,
		s->dep_tb == NONE ? -1 : (int)s->dep_step, s->needed);
}

static void mark_needed(struct printer *p)
{
	uint32_t *first = calloc(p->ntbs + 1ul, sizeof(*first)), *seen, *at;

	seen = calloc(p->ntbs + 1ul, sizeof(*seen));
	at = calloc(p->nsteps + 1ul, sizeof(*at));
	if (!first || !seen || !at) {
		p->error = -ENOMEM;
		goto out;
	}
	for (uint32_t i = 0; i < p->ntbs; i++)
		first[i + 1] = first[i] + p->tb[i].nsteps;
	for (uint32_t i = 0; i < p->nsteps; i++)
		at[first[p->step[i].tb] + seen[p->step[i].tb]++] = i;
	for (uint32_t i = 0; i < p->nsteps; i++)
		if (p->step[i].dep_tb != NONE)
			p->step[at[first[p->step[i].dep_tb] + p->step[i].dep_step]].needed = true;
out:
	free(first);
	free(seen);
	free(at);
}

static void print_gpu(struct printer *p, struct swc_text *t)
{
	swc_text_printf(t, "<gpu id=\"%u\" i_chunks=\"%u\" o_chunks=\"%u\" s_chunks=\"%u\">\n",
			p->v.hdr->rank, chunks_of(p, SWC_BUF_SEND), chunks_of(p, SWC_BUF_RECV),
			chunks_of(p, SWC_BUF_SCRATCH));
	for (uint32_t i = 0; i < p->ntbs; i++) {
		const struct tb *b = &p->tb[i];
		uint32_t number = 0;

		swc_text_printf(t, "<tb id=\"%u\" send=\"%d\" recv=\"%d\" chan=\"%u\">\n", i,
				b->role == SENDS ? (int)b->peer : -1,
				b->role == RECEIVES ? (int)b->peer : -1, b->chan);
		for (uint32_t k = 0; k < p->nsteps; k++)
			if (p->step[k].tb == i)
				print_step(p, t, &p->step[k], number++);
		swc_text_printf(t, "</tb>\n");
	}
	swc_text_printf(t, "</gpu>\n");
}

static int print_rank(struct swc_text *t, const void *plan, char *why, size_t why_bytes)
{
	const struct swc_plan_header *h = plan;
	struct printer p = { .why = why, .why_bytes = why_bytes, .number = 0, .dep_tb = NONE };

	p.error = swc_plan_check(plan, h->total_bytes, &p.v, why, why_bytes);
	if (!p.error)
		add_steps(&p);
	if (!p.error)
		mark_needed(&p);
	if (!p.error)
		print_gpu(&p, t);
	free(p.tb);
	free(p.step);
	return p.error;
}

int swc_msccl_print(struct swc_text *text, const void *const *plans, uint32_t nranks,
		    swc_text_progress *progress, void *arg, char *why, size_t why_bytes)
{
	const struct swc_plan_header *h = plans[0];
	int ret = 0;

	if (h->coll == SWC_BARRIER || h->coll >= SWC_GATHER)
		return swc_text_refuse(why, why_bytes, "MSCCL has no %s", swc_coll_name(h->coll));
	swc_text_printf(
		text,
		"<algo name=\"%s\" proto=\"Simple\" nchannels=\"%u\" nchunksperloop=\"%u\" ngpus=\"%u\""
		" coll=\"%s\" inplace=\"0\" outofplace=\"1\" minBytes=\"0\" maxBytes=\"0\" root=\"%u\">\n",
		h->name, h->nchannels, h->nshards * h->shard_blocks, nranks, swc_coll_name(h->coll),
		h->root);
	for (uint32_t r = 0; r < nranks && !ret; r++) {
		ret = print_rank(text, plans[r], why, why_bytes);
		if (progress)
			progress(arg, (double)r / nranks);
	}
	swc_text_printf(text, "</algo>\n");
	return ret ? ret : text->failed ? -ENOMEM : 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading execution plans of MSCCL++, which its language writes as JSON: "gpus" has one object for each rank,
 * with the chunks of its buffers, "channels" to other ranks, and "remote_buffers", which are buffers of
 * others; each of its "threadblocks" names those that it uses, by channel type, and its "ops" name them by
 * their place in that list.
 *
 * Operations: signal, wait, put, get, copy, and sums of several buffers (re), some of which may be others'
 * (rre), and which may go to others, too (res, rres); pws and pwsf put and signal; those that end in pkt move
 * packets, which carry flags, so readers wait for the data itself. A pipeline is a loop over parts of the
 * chunks; as plans cut chunks by themselves, it runs once.
 */
#include "plan/format/mscclpp.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kmod/core/plan_check.h"
#include "plan/format/mscclpp_program.h"
#include "plan/names.h"

#define NONE SWC_MSCCL_NONE
#define MAX_OPS (1u << 20)
#define MAX_MEMBERS 4096

/* Shorter names for what operations do. */
enum {
	WAIT = SWC_MSCCLPP_WAIT,
	PACKETS = SWC_MSCCLPP_PACKETS,
	COPY = SWC_MSCCLPP_COPY,
	REDUCE = SWC_MSCCLPP_REDUCE,
	SIGNAL = SWC_MSCCLPP_SIGNAL,
};

static const struct {
	const char *name;
	unsigned int does;
} kinds[] = {
	{ "nop", 0 },
	{ "flush", 0 },
	{ "signal", SIGNAL },
	{ "rlxsignal", SIGNAL },
	{ "wait", WAIT },
	{ "rlxwait", WAIT },
	{ "barrier", SWC_MSCCLPP_BARRIER },
	{ "sem_acquire", SWC_MSCCLPP_ACQUIRE },
	{ "sem_release", SWC_MSCCLPP_RELEASE },
	{ "put", COPY },
	{ "pws", COPY | SIGNAL },
	{ "pwsf", COPY | SIGNAL },
	{ "get", COPY },
	{ "copy", COPY },
	{ "re", REDUCE },
	{ "res", REDUCE },
	{ "rre", REDUCE },
	{ "rres", REDUCE },
	{ "ppkt", COPY },
	{ "cpkt", COPY },
	{ "rppkt", PACKETS | COPY },
	{ "upkt", PACKETS | COPY },
	{ "repkt", PACKETS | REDUCE },
	{ "respkt", PACKETS | REDUCE },
	{ "recpkt", PACKETS | REDUCE },
	{ "recspkt", PACKETS | REDUCE },
};

/**
 * struct place - where the reader is
 * @gpu, @tb, @op: NONE: not in one
 * @of_gpu, @of_tb: their objects
 */
struct place {
	uint32_t gpu, tb, op;
	const cJSON *of_gpu, *of_tb;
};

#define refuse(p, at, ...)                                                                         \
	do {                                                                                       \
		char what_[150];                                                                   \
		snprintf(what_, sizeof(what_), __VA_ARGS__);                                       \
		refuse_at(p, at, what_);                                                           \
	} while (0)

static void refuse_at(struct swc_mscclpp *p, const struct place *at, const char *what)
{
	if (at->op != NONE)
		swc_msccl_refuse(&p->m, 0, "gpu %u, threadblock %u, operation %u: %s", at->gpu,
				 at->tb, at->op, what);
	else if (at->tb != NONE)
		swc_msccl_refuse(&p->m, 0, "gpu %u, threadblock %u: %s", at->gpu, at->tb, what);
	else if (at->gpu != NONE)
		swc_msccl_refuse(&p->m, 0, "gpu %u: %s", at->gpu, what);
	else
		swc_msccl_refuse(&p->m, 0, "%s", what);
}

static void refuse_unsupported(struct swc_mscclpp *p, const struct place *at, const char *what)
{
	if (p->m.error)
		return;
	refuse_at(p, at, what);
	p->m.error = -EOPNOTSUPP;
}

/* ---- values ---- */

static const cJSON *member(const cJSON *o, const char *name)
{
	return cJSON_IsObject(o) ? cJSON_GetObjectItemCaseSensitive(o, name) : NULL;
}

static uint32_t to_number(struct swc_mscclpp *p, const struct place *at, const cJSON *v,
			  const char *name, uint32_t max)
{
	double d = cJSON_IsNumber(v) ? v->valuedouble : -1;

	if (d >= 0 && d <= max && d <= floor(d))
		return (uint32_t)d;
	refuse(p, at, "expected %s, a whole number up to %u", name, max);
	return 0;
}

static uint32_t number(struct swc_mscclpp *p, const struct place *at, const cJSON *o,
		       const char *name, uint32_t max)
{
	return to_number(p, at, member(o, name), name, max);
}

static const char *word(struct swc_mscclpp *p, const struct place *at, const cJSON *o,
			const char *name)
{
	const cJSON *v = member(o, name);

	if (cJSON_IsString(v))
		return v->valuestring;
	refuse(p, at, "expected %s, a text", name);
	return "";
}

/* An array, or NULL if there is none and that is allowed. */
static const cJSON *list(struct swc_mscclpp *p, const struct place *at, const cJSON *o,
			 const char *name, bool needed)
{
	const cJSON *v = member(o, name);

	if (cJSON_IsArray(v) || (!v && !needed))
		return v;
	refuse(p, at, "expected %s, a list", name);
	return NULL;
}

static char buffer(struct swc_mscclpp *p, const struct place *at, const cJSON *o)
{
	const char *s = word(p, at, o, "type");

	if (!p->m.error && (strlen(s) != 1 || !strchr("ios", *s)))
		refuse(p, at, "expected type i, o or s, not '%.20s'", s);
	return *s;
}

/* memory or port; false after a refusal. */
static bool is_memory(struct swc_mscclpp *p, const struct place *at, const cJSON *o,
		      const char *name)
{
	const char *s = word(p, at, o, name);

	if (!strcmp(s, "switch"))
		refuse_unsupported(p, at, "a switch that computes is not possible in plans");
	else if (!p->m.error && strcmp(s, "memory") && strcmp(s, "port"))
		refuse(p, at, "expected %s memory or port, not '%.20s'", name, s);
	return !strcmp(s, "memory");
}

#define APPEND(p, table, n, room)                                                                  \
	swc_msccl_append(&(p)->m, &(p)->table, &(p)->n, &(p)->room, sizeof(*(p)->table))

/* ---- channels and buffers of others ---- */

static void read_channels(struct swc_mscclpp *p, const struct place *at)
{
	const cJSON *c, *peer;

	p->of_type[false].n = p->of_type[true].n = 0;
	cJSON_ArrayForEach(c, list(p, at, at->of_gpu, "channels", false))
	{
		/* Some writers call it type. */
		const char *name = member(c, "channel_type") ? "channel_type" : "type";
		bool memory = is_memory(p, at, c, name);
		struct swc_mscclpp_numbers *same = &p->of_type[memory];

		cJSON_ArrayForEach(peer, list(p, at, c, "connected_to", true))
		{
			uint32_t to = to_number(p, at, peer, "a gpu in connected_to",
						p->m.ngpus - 1),
				 i, k;

			if (to == at->gpu)
				refuse(p, at, "a channel is connected to gpu %u itself", to);
			i = p->m.error ? NONE : APPEND(p, chan, nchans, chan_room);
			k = i == NONE ? NONE
				      : swc_msccl_append(&p->m, &same->at, &same->n, &same->room,
							 sizeof(*same->at));
			if (k == NONE)
				return;
			same->at[k] = i;
			p->chan[i] = (struct swc_mscclpp_chan){ .gpu = at->gpu,
								.peer = to,
								.memory = memory };
		}
	}
}

/* The n-th number in the lists @ids of those of a thread block's objects that are of the type; NONE. */
static uint32_t nth_of(struct swc_mscclpp *p, const struct place *at, const char *lists,
		       const char *type, const char *ids, bool memory, uint32_t n)
{
	const cJSON *o, *id;

	cJSON_ArrayForEach(o, list(p, at, at->of_tb, lists, false))
	{
		if (is_memory(p, at, o, type) != memory)
			continue;
		cJSON_ArrayForEach(id, list(p, at, o, ids, true)) if (!n--) return to_number(
			p, at, id, ids, NONE - 1);
	}
	return NONE;
}

/* The n-th channel of the type of a thread block, as a number of all channels. */
static uint32_t find_channel(struct swc_mscclpp *p, const struct place *at, bool memory, uint32_t n)
{
	uint32_t id = nth_of(p, at, "channels", "channel_type", "channel_ids", memory, n);

	if (id < p->of_type[memory].n)
		return p->of_type[memory].at[id];
	refuse(p, at, "there is no channel %u of this type", n);
	return 0;
}

/* A buffer of another GPU. */
static void find_remote(struct swc_mscclpp *p, const struct place *at, bool memory, uint32_t n,
			struct swc_msccl_chunks *c)
{
	uint32_t id = nth_of(p, at, "remote_buffer_refs", "access_channel_type",
			     "remote_buffer_ids", memory, n);
	const cJSON *o = id > INT32_MAX ? NULL
					: cJSON_GetArrayItem(list(p, at, at->of_gpu,
								  "remote_buffers", true),
							     (int)id);

	if (!o) {
		refuse(p, at, "there is no remote buffer %u of this type", n);
		return;
	}
	c->gpu = number(p, at, o, "rank", p->m.ngpus - 1);
	c->buf = buffer(p, at, o);
}

/* ---- operations ---- */

static uint32_t read_refs(struct swc_mscclpp *p, const struct place *at, const cJSON *op,
			  const char *name, bool memory)
{
	uint32_t n = 0, i;
	const cJSON *o;

	cJSON_ArrayForEach(o, list(p, at, op, name, true))
	{
		struct swc_mscclpp_ref r = { .at = { .gpu = at->gpu, .buf = 'i' } };

		if (member(o, "switch_channel_id"))
			refuse_unsupported(p, at,
					   "a switch that computes is not possible in plans");
		else if (member(o, "buffer_id"))
			find_remote(p, at, memory, number(p, at, o, "buffer_id", MAX_OPS), &r.at);
		else
			r.at.buf = buffer(p, at, o);
		r.at.first = number(p, at, o, "index", SWC_MSCCL_MAX_PLACES);
		r.n = number(p, at, o, "size", SWC_MSCCL_MAX_PLACES);
		i = p->m.error ? NONE : APPEND(p, ref, nrefs, ref_room);
		if (i == NONE)
			return 0;
		p->ref[i] = r;
		n++;
	}
	return n;
}

/* All parts of an operation have one size, and there are as many as it needs. */
static void check_refs(struct swc_mscclpp *p, const struct place *at,
		       const struct swc_mscclpp_op *o)
{
	const struct swc_mscclpp_ref *r = p->ref + o->first_ref;

	if (p->m.error)
		return;
	if (!o->nsrc || !o->ndst || (o->does & COPY && o->nsrc != 1 && o->nsrc != o->ndst)) {
		refuse(p, at, "has %u src_buff and %u dst_buff", o->nsrc, o->ndst);
		return;
	}
	for (uint32_t i = 0; i < o->nsrc + o->ndst; i++)
		if (r[i].n != r[0].n || !r[i].n)
			refuse(p, at, "its buffers have different sizes, or none");
	if (o->does & REDUCE && r[o->nsrc].at.gpu != at->gpu)
		refuse_unsupported(p, at, "a sum needs a first destination on its own gpu");
	p->moves += (uint64_t)(o->nsrc + o->ndst) * r->n;
}

static struct swc_mscclpp_sync *add_sync(struct swc_mscclpp *p, struct swc_mscclpp_sync **table,
					 uint32_t *n, uint32_t *room, uint32_t gpu, uint32_t number)
{
	uint32_t i = 0;

	while (i < *n && ((*table)[i].gpu != gpu || (*table)[i].number != number))
		i++;
	if (i == *n) {
		i = swc_msccl_append(&p->m, table, n, room, sizeof(**table));
		if (i == NONE)
			return NULL;
		(*table)[i] = (struct swc_mscclpp_sync){ gpu, number, 0 };
	}
	return &(*table)[i];
}

static void read_ids(struct swc_mscclpp *p, const struct place *at, const cJSON *op,
		     struct swc_mscclpp_op *o, bool memory)
{
	bool channels = o->does & (WAIT | SIGNAL);
	const char *name = channels ? "channel_ids" : "semaphore_ids";
	const cJSON *v;

	o->first_id = p->nids;
	cJSON_ArrayForEach(v, list(p, at, op, name, true))
	{
		uint32_t id = to_number(p, at, v, name, MAX_OPS), i;

		if (channels && !p->m.error)
			id = find_channel(p, at, memory, id);
		else if (!p->m.error)
			add_sync(p, &p->semaphore, &p->nsemaphores, &p->semaphore_room, at->gpu,
				 id);
		i = p->m.error ? NONE : APPEND(p, id, nids, id_room);
		if (i == NONE)
			return;
		p->id[i] = id;
		o->nids++;
	}
}

static void read_parts(struct swc_mscclpp *p, const struct place *at, const cJSON *op,
		       struct swc_mscclpp_op *o)
{
	bool remote = o->does & (WAIT | SIGNAL) || member(op, "channel_type");
	bool memory = remote && is_memory(p, at, op, "channel_type");

	if (o->does & (COPY | REDUCE)) {
		o->first_ref = p->nrefs;
		o->nsrc = read_refs(p, at, op, "src_buff", memory);
		o->ndst = read_refs(p, at, op, "dst_buff", memory);
		check_refs(p, at, o);
	}
	if (o->does & (WAIT | SIGNAL | SWC_MSCCLPP_ACQUIRE | SWC_MSCCLPP_RELEASE))
		read_ids(p, at, op, o, memory);
	if (o->does & SWC_MSCCLPP_BARRIER) {
		o->barrier = number(p, at, op, "barrier_id", MAX_OPS);
		o->members = number(p, at, op, "num_threadblocks", MAX_MEMBERS);
		if (!p->m.error)
			add_sync(p, &p->barrier, &p->nbarriers, &p->barrier_room, at->gpu,
				 o->barrier);
	}
}

static void read_ops(struct swc_mscclpp *p, struct place *at, const cJSON *from, bool inner)
{
	const cJSON *op;

	cJSON_ArrayForEach(op, list(p, at, from, "ops", true))
	{
		const char *name = word(p, at, op, "name");
		struct swc_mscclpp_op o = { 0 };
		uint32_t k = 0, i;

		at->op++;
		if (!strcmp(name, "pipeline") && !inner) {
			read_ops(p, at, op, true);
			continue;
		}
		while (k < sizeof(kinds) / sizeof(kinds[0]) && strcmp(name, kinds[k].name))
			k++;
		if (!strcmp(name, "glres"))
			refuse_unsupported(p, at,
					   "a switch that computes is not possible in plans");
		else if (k == sizeof(kinds) / sizeof(kinds[0]))
			refuse(p, at, "there is no operation '%.20s'", name);
		else if (member(op, "tbg_info") &&
			 number(p, at, member(op, "tbg_info"), "tbg_size", MAX_OPS) != 1)
			refuse_unsupported(p, at,
					   "groups of thread blocks are not possible in plans");
		if (p->m.error)
			return;
		o.does = kinds[k].does;
		read_parts(p, at, op, &o);
		if (p->nops >= MAX_OPS)
			refuse(p, at, "more than %u operations", MAX_OPS);
		i = p->m.error ? NONE : APPEND(p, op, nops, op_room);
		if (i == NONE)
			return;
		p->op[i] = o;
	}
}

static void read_threadblocks(struct swc_mscclpp *p, struct place *at)
{
	const cJSON *o;

	cJSON_ArrayForEach(o, list(p, at, at->of_gpu, "threadblocks", true))
	{
		uint32_t i = p->m.error ? NONE : APPEND(p, tb, ntbs, tb_room), first = p->nops;

		if (i == NONE)
			return;
		at->of_tb = o;
		at->tb = number(p, at, o, "id", MAX_OPS);
		at->op = NONE; /* the first is 0 */
		p->tb[i] = (struct swc_mscclpp_tb){ .gpu = at->gpu,
						    .id = at->tb,
						    .first_op = first };
		read_ops(p, at, o, false);
		p->tb[i].nops = p->nops - first;
		at->tb = at->op = NONE;
	}
}

/* ---- the plan ---- */

static void read_semaphores(struct swc_mscclpp *p, const struct place *at)
{
	uint32_t n = 0;
	const cJSON *o;

	cJSON_ArrayForEach(o, list(p, at, at->of_gpu, "semaphores", false))
	{
		uint32_t value = number(p, at, o, "init_value", MAX_OPS);
		struct swc_mscclpp_sync *s = add_sync(p, &p->semaphore, &p->nsemaphores,
						      &p->semaphore_room, at->gpu, n++);

		if (!s)
			return;
		s->count = value;
	}
}

static void read_collective(struct swc_mscclpp *p, const struct place *at, const cJSON *root)
{
	const char *s = word(p, at, root, "collective");
	int coll = swc_coll_parse(strcmp(s, "reducescatter") ? s : "reduce_scatter");

	if (p->m.error)
		return;
	if (coll >= 0 && coll < SWC_GATHER && coll != SWC_BARRIER)
		p->m.coll = (enum swc_coll)coll;
	else
		refuse_unsupported(
			p, at,
			"expected collective allreduce, allgather, reducescatter, alltoall, "
			"broadcast or reduce");
}

/* Blocks of the vector: of the buffer that has all of it. */
static void set_blocks(struct swc_mscclpp *p, const struct place *at, const cJSON *gpu)
{
	uint32_t in = number(p, at, gpu, "input_chunks", SWC_PLAN_MAX_BLOCKS);
	uint32_t out = number(p, at, gpu, "output_chunks", SWC_PLAN_MAX_BLOCKS);
	bool shard = p->m.coll == SWC_ALLGATHER;

	p->m.nblocks = shard ? out : in;
	if (!p->m.nblocks)
		p->m.nblocks = shard && in <= SWC_PLAN_MAX_BLOCKS / p->m.ngpus ? in * p->m.ngpus
			       : shard					       ? 0
									       : out;
	if (!p->m.error)
		swc_msccl_set_gpus(&p->m, 0, shard ? "output_chunks" : "input_chunks");
}

/* Input and output are one buffer in place, though chunks may be given for one of them only. */
static void read_chunks(struct swc_mscclpp *p, const struct place *at)
{
	struct swc_msccl_gpu_info *g = &p->m.gpu[at->gpu];
	bool part_in = p->m.coll == SWC_ALLGATHER, part_out = p->m.coll == SWC_REDUCE_SCATTER;

	g->chunks[0] = number(p, at, at->of_gpu, "input_chunks", SWC_PLAN_MAX_BLOCKS);
	g->chunks[1] = number(p, at, at->of_gpu, "output_chunks", SWC_PLAN_MAX_BLOCKS);
	g->chunks[2] = number(p, at, at->of_gpu, "scratch_chunks", SWC_MSCCL_MAX_PLACES);
	g->given = true;
	if (!p->m.in_place)
		return;
	g->chunks[0] = part_in ? p->m.shard_blocks : p->m.nblocks;
	g->chunks[1] = part_out ? p->m.shard_blocks : p->m.nblocks;
}

static void read_gpus(struct swc_mscclpp *p, struct place *at, const cJSON *gpus)
{
	const cJSON *o;

	cJSON_ArrayForEach(o, gpus)
	{
		uint32_t id = number(p, at, o, "id", p->m.ngpus - 1);

		at->of_gpu = o;
		if (!p->m.error && p->m.gpu[id].given)
			refuse(p, at, "gpu %u occurs twice", id);
		if (p->m.error)
			return;
		at->gpu = id;
		read_chunks(p, at);
		read_channels(p, at);
		read_semaphores(p, at);
		if (!p->m.error)
			read_threadblocks(p, at);
		at->gpu = NONE;
	}
}

static void read_plan(struct swc_mscclpp *p, const cJSON *root)
{
	struct place at = { NONE, NONE, NONE, NULL, NULL };
	const cJSON *gpus;

	if (!cJSON_IsObject(root)) {
		refuse(p, &at, "expected an object with collective and gpus");
		return;
	}
	read_collective(p, &at, root);
	gpus = list(p, &at, root, "gpus", true);
	if (p->m.error)
		return;
	swc_msccl_set_name(&p->m, cJSON_IsString(member(root, "name"))
					  ? member(root, "name")->valuestring
					  : "mscclpp");
	p->m.in_place = cJSON_IsTrue(member(root, "inplace"));
	p->m.ngpus = (uint32_t)cJSON_GetArraySize(gpus);
	if (p->m.ngpus < 2 || p->m.ngpus > SWC_MAX_RANKS) {
		refuse(p, &at, "expected 2 to %u gpus", SWC_MAX_RANKS);
		return;
	}
	set_blocks(p, &at, gpus->child);
	if (!p->m.error)
		read_gpus(p, &at, gpus);
}

/* The line of a place in the text. */
static unsigned long line_of(const char *text, const char *at)
{
	unsigned long line = 1;

	for (; text < at; text++)
		line += *text == '\n';
	return line;
}

int swc_mscclpp_parse(const char *json, size_t bytes, struct swc_plan_set *set, char *why,
		      size_t why_bytes)
{
	struct swc_mscclpp p = { .m = { .why = why, .why_bytes = why_bytes } };
	const char *end = json;
	cJSON *root = cJSON_ParseWithLengthOpts(json, bytes, &end, false);

	*set = (struct swc_plan_set){ 0 };
	/* Nothing but white space may follow. */
	while (root && end < json + bytes && *end && strchr(" \t\r\n", *end))
		end++;
	if (!root)
		swc_msccl_refuse(&p.m, line_of(json, end), "this is no JSON");
	else if (end < json + bytes)
		swc_msccl_refuse(&p.m, line_of(json, end),
				 "expected nothing behind the plan: one plan is one file");
	else
		read_plan(&p, root);
	cJSON_Delete(root);
	if (!p.m.error)
		swc_mscclpp_run(&p);
	swc_msccl_end(&p.m, set);
	free(p.tb);
	free(p.op);
	free(p.ref);
	free(p.chan);
	free(p.of_type[false].at);
	free(p.of_type[true].at);
	free(p.barrier);
	free(p.semaphore);
	free(p.id);
	return p.m.error;
}

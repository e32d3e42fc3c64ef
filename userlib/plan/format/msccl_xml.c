// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading MSCCL's XML: <algo> has a <gpu> for each rank, which has thread blocks <tb>, each of
 * which has a list of <step>s. The parser is Expat; without it there is only an error message.
 */
#include <errno.h>
#include <string.h>

#include "plan/format/msccl_program.h"

#ifndef SWC_HAVE_EXPAT

int swc_msccl_parse_xml(struct swc_msccl *m, const char *xml, size_t bytes)
{
	(void)xml;
	(void)bytes;
	swc_msccl_refuse(m, 0,
			 "built without an XML parser: install libexpat1-dev and build again");
	return m->error = -EOPNOTSUPP;
}

#else

#include <expat.h>
#include <limits.h>
#include <stdlib.h>

#include "kmod/core/plan_check.h"
#include "plan/names.h"
#include "plan/number.h"

#define NONE SWC_MSCCL_NONE
#define MAX_PLACES SWC_MSCCL_MAX_PLACES
#define MAX_CHUNKS (1u << 24) /* moved by all steps together */

static const struct {
	const char *name;
	unsigned int type;
} types[] = {
	{ "s", SWC_MSCCL_SEND },
	{ "r", SWC_MSCCL_RECV | SWC_MSCCL_STORE },
	{ "rcs", SWC_MSCCL_RECV | SWC_MSCCL_STORE | SWC_MSCCL_SEND },
	{ "rrs", SWC_MSCCL_RECV | SWC_MSCCL_REDUCE | SWC_MSCCL_SEND },
	{ "rrc", SWC_MSCCL_RECV | SWC_MSCCL_REDUCE | SWC_MSCCL_STORE },
	{ "rrcs", SWC_MSCCL_RECV | SWC_MSCCL_REDUCE | SWC_MSCCL_STORE | SWC_MSCCL_SEND },
	{ "cpy", SWC_MSCCL_COPY },
	{ "re", SWC_MSCCL_ADD },
	{ "nop", 0 },
};

static unsigned long line(const struct swc_msccl *m)
{
	return XML_GetCurrentLineNumber(m->xml);
}

static const char *attribute(const char **attr, const char *name)
{
	for (; *attr; attr += 2)
		if (!strcmp(attr[0], name))
			return attr[1];
	return NULL;
}

static const char *word(struct swc_msccl *m, const char **attr, const char *name)
{
	const char *v = attribute(attr, name);

	if (!v)
		swc_msccl_refuse(m, line(m), "expected an attribute %s", name);
	return v ? v : "";
}

/* A number from 0 to max; if @none, -1 stands for none. */
static uint32_t number(struct swc_msccl *m, const char **attr, const char *name, uint32_t max,
		       bool none)
{
	const char *s = word(m, attr, name);
	uint64_t v;

	if (none && !strcmp(s, "-1"))
		return NONE;
	if (!swc_number_parse(s, 0, max, &v)) {
		swc_msccl_refuse(m, line(m), "expected %s, a number from %d to %u, not '%.20s'",
				 name, none ? -1 : 0, max, s);
		return 0;
	}
	return (uint32_t)v;
}

static bool flag(struct swc_msccl *m, const char **attr, const char *name)
{
	return attribute(attr, name) && number(m, attr, name, 1, false);
}

static char buffer(struct swc_msccl *m, const char **attr, const char *name)
{
	const char *s = word(m, attr, name);

	if (strlen(s) == 1 && strchr("ios", *s))
		return *s;
	swc_msccl_refuse(m, line(m), "expected %s i, o or s, not '%.20s'", name, s);
	return 'i';
}

static void read_coll(struct swc_msccl *m, const char **attr)
{
	const char *s = word(m, attr, "coll");
	int coll = swc_coll_parse(strcmp(s, "reducescatter") ? s : "reduce_scatter");

	if (m->error)
		return;
	if (coll >= 0 && coll < SWC_GATHER && coll != SWC_BARRIER) {
		m->coll = (enum swc_coll)coll;
		return;
	}
	swc_msccl_refuse(
		m, line(m),
		"collective '%.20s': there are allreduce, allgather, reduce_scatter, alltoall, broadcast and reduce",
		s);
	m->error = -EOPNOTSUPP;
}

static void read_algo(struct swc_msccl *m, const char **attr)
{
	swc_msccl_set_name(m, word(m, attr, "name"));
	read_coll(m, attr);
	m->ngpus = number(m, attr, "ngpus", SWC_MAX_RANKS, false);
	m->nblocks = number(m, attr, "nchunksperloop", SWC_PLAN_MAX_BLOCKS, false);
	m->in_place = flag(m, attr, "inplace") && !flag(m, attr, "outofplace");
	if (swc_coll_has_root((uint8_t)m->coll) && attribute(attr, "root"))
		m->root = number(m, attr, "root", m->ngpus ? m->ngpus - 1 : 0, false);
	if (m->error)
		return;
	if (m->ngpus < 2) {
		swc_msccl_refuse(m, line(m), "expected ngpus of at least 2");
		return;
	}
	swc_msccl_set_gpus(m, line(m), "nchunksperloop");
}

static void read_gpu(struct swc_msccl *m, const char **attr)
{
	static const char *const names[] = { "i_chunks", "o_chunks", "s_chunks" };
	uint32_t id = number(m, attr, "id", m->ngpus - 1, false);
	struct swc_msccl_gpu_info *g;

	if (m->error)
		return;
	g = &m->gpu[id];
	if (g->given) {
		swc_msccl_refuse(m, line(m), "gpu %u occurs twice", id);
		return;
	}
	*g = (struct swc_msccl_gpu_info){ .given = true, .first_tb = m->ntbs };
	for (int i = 0; i < 3; i++)
		g->chunks[i] = number(m, attr, names[i], MAX_PLACES, false);
	m->open_gpu = id;
}

static void read_tb(struct swc_msccl *m, const char **attr)
{
	struct swc_msccl_gpu_info *g = &m->gpu[m->open_gpu];
	uint32_t id = number(m, attr, "id", g->ntbs, false), i;
	struct swc_msccl_tb t = {
		.gpu = m->open_gpu,
		.send = number(m, attr, "send", m->ngpus - 1, true),
		.recv = number(m, attr, "recv", m->ngpus - 1, true),
		.chan = number(m, attr, "chan", 1u << 16, true),
		.first_op = m->nops,
		.from = NONE,
		.line = line(m),
	};

	if (t.chan == NONE)
		t.chan = 0;
	if (t.send == t.gpu || t.recv == t.gpu)
		swc_msccl_refuse(m, line(m),
				 "expected another gpu than %u to send to and receive from", t.gpu);
	if (!m->error && id != g->ntbs)
		swc_msccl_refuse(m, line(m), "expected tb %u of gpu %u, not %u", g->ntbs, t.gpu,
				 id);
	i = swc_msccl_append(m, &m->tb, &m->ntbs, &m->tb_room, sizeof(t));
	if (i == NONE)
		return;
	m->tb[i] = t;
	g->ntbs++;
}

static void read_step(struct swc_msccl *m, const char **attr)
{
	struct swc_msccl_tb *t = &m->tb[m->ntbs - 1];
	const char *type = word(m, attr, "type");
	struct swc_msccl_op o = { .line = line(m) };
	uint32_t s = number(m, attr, "s", NONE - 1, false), i = 0;

	while (i < sizeof(types) / sizeof(types[0]) && strcmp(type, types[i].name))
		i++;
	if (i == sizeof(types) / sizeof(types[0])) {
		swc_msccl_refuse(
			m, o.line,
			"expected type s, r, rcs, rrs, rrc, rrcs, cpy, re or nop, not '%.20s'",
			type);
		return;
	}
	o.type = types[i].type;
	if (!m->error && s != t->nops)
		swc_msccl_refuse(m, o.line, "expected step %u, not %u", t->nops, s);
	o.dep_tb = number(m, attr, "depid", NONE - 1, true);
	o.dep_step = number(m, attr, "deps", NONE - 1, true);
	if (o.type) {
		o.cnt = number(m, attr, "cnt", MAX_PLACES, false);
		o.srcbuf = buffer(m, attr, "srcbuf");
		o.dstbuf = buffer(m, attr, "dstbuf");
		/* The offset of what a step does not read or write may be any number, or -1. */
		o.srcoff = number(m, attr, "srcoff", NONE - 1, true);
		o.dstoff = number(m, attr, "dstoff", NONE - 1, true);
		if (!o.cnt)
			swc_msccl_refuse(m, o.line, "expected cnt of at least 1");
	}
	if ((o.type & SWC_MSCCL_SEND && t->send == NONE) ||
	    (o.type & SWC_MSCCL_RECV && t->recv == NONE))
		swc_msccl_refuse(
			m, o.line, "step %u needs a gpu to %s, which this tb does not have", s,
			o.type & SWC_MSCCL_SEND && t->send == NONE ? "send to" : "receive from");
	m->nchunks += o.cnt;
	if (m->nchunks > MAX_CHUNKS)
		swc_msccl_refuse(m, o.line, "expected steps of no more than %u chunks in all",
				 MAX_CHUNKS);
	i = swc_msccl_append(m, &m->op, &m->nops, &m->op_room, sizeof(o));
	if (i == NONE)
		return;
	m->op[i] = o;
	t->nops++;
}

static void XMLCALL element_begins(void *data, const char *name, const char **attr)
{
	static const struct {
		const char *name;
		void (*read)(struct swc_msccl *m, const char **attr);
	} elements[] = {
		{ "algo", read_algo },
		{ "gpu", read_gpu },
		{ "tb", read_tb },
		{ "step", read_step },
	};
	struct swc_msccl *m = data;

	if (m->depth < 4 && !strcmp(name, elements[m->depth].name))
		elements[m->depth].read(m, attr);
	else if (m->depth < 4)
		swc_msccl_refuse(m, line(m), "expected <%s>, not <%.20s>", elements[m->depth].name,
				 name);
	else
		swc_msccl_refuse(m, line(m), "nothing can be within <step>, but <%.20s> is", name);
	m->depth++;
	if (m->error)
		XML_StopParser(m->xml, XML_FALSE);
}

static void XMLCALL element_ends(void *data, const char *name)
{
	(void)name;
	((struct swc_msccl *)data)->depth--;
}

/* Refuse entities: these files need none, and entities can expand without end. */
static void XMLCALL doctype(void *data, const char *name, const char *sysid, const char *pubid,
			    int internal)
{
	struct swc_msccl *m = data;

	(void)name;
	(void)sysid;
	(void)pubid;
	(void)internal;
	swc_msccl_refuse(m, line(m), "expected <algo>, not a document type");
	XML_StopParser(m->xml, XML_FALSE);
}

int swc_msccl_parse_xml(struct swc_msccl *m, const char *xml, size_t bytes)
{
	if (bytes > INT_MAX)
		return swc_msccl_refuse(m, 0, "the file is larger than %d bytes", INT_MAX);
	m->xml = XML_ParserCreate(NULL);
	if (!m->xml)
		return m->error = -ENOMEM;
	XML_SetUserData(m->xml, m);
	XML_SetElementHandler(m->xml, element_begins, element_ends);
	XML_SetStartDoctypeDeclHandler(m->xml, doctype);
	if (XML_Parse(m->xml, xml, (int)bytes, true) != XML_STATUS_OK)
		swc_msccl_refuse(m, line(m), "%s", XML_ErrorString(XML_GetErrorCode(m->xml)));
	XML_ParserFree(m->xml);
	return m->error;
}

#endif /* SWC_HAVE_EXPAT */

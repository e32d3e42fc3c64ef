// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingplan export and import: plans of all ranks to a text file and from one. Imported plans, from a plan file,
 * an algorithm in MSCCL's XML or a plan of MSCCL++, are verified on symbols first.
 */
#include "swingplan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/format/msccl.h"
#include "plan/format/mscclpp.h"
#include "plan/names.h"
#include "src/files.h"

void plan_write_set(const struct plan_options *opt, const struct swc_plan_set *set)
{
	const void *const *plans = (const void *const *)set->plan;
	char why[SWC_TEXT_BYTES] = "out of memory";
	struct progress bar = { "text", 0, 1 };
	struct swc_text text = { 0 };
	int ret = opt->msccl ? swc_msccl_print(&text, plans, set->nranks, plan_progress, &bar, why,
					       sizeof(why))
			     : swc_plan_text_print(&text, plans, set->bytes, set->nranks,
						   plan_progress, &bar, why, sizeof(why));

	/* It stays while the text goes elsewhere. */
	if (!opt->out && isatty(STDOUT_FILENO))
		plan_progress_end();
	if (ret || swc_file_write(opt->out, text.at, text.used, why, sizeof(why)))
		plan_bad("%s", why);
	plan_progress_end();
	free(text.at);
}

/* ------------------------------------------------------------------ verdict */

/* Out of place, and in place where the plans allow it. 0, or -EINVAL and @v. */
static int verify(const struct swc_plan_set *set, const struct swc_topo *topo,
		  struct swc_verdict *v)
{
	struct progress bar = { "verification", 0, 1 };
	bool *in_place = calloc(set->nranks, sizeof(*in_place));
	int ret;

	if (!in_place)
		plan_no_memory();
	plan_progress(&bar, 0);
	ret = swc_plan_verify((const void *const *)set->plan, set->bytes, in_place, set->nranks,
			      topo, v);
	plan_progress(&bar, 0.5);
	for (uint32_t r = 0; r < set->nranks; r++)
		in_place[r] = !(((struct swc_plan_header *)set->plan[r])->flags &
				SWC_PLAN_NOT_IN_PLACE);
	if (!ret)
		ret = swc_plan_verify((const void *const *)set->plan, set->bytes, in_place,
				      set->nranks, topo, v);
	free(in_place);
	plan_progress_end();
	if (ret == -ENOMEM)
		plan_no_memory();
	return ret;
}

/* The plans of all ranks in a few words. */
struct summary {
	const struct swc_plan_header *hdr;
	uint32_t steps; /* of the rank with most */
	uint32_t flags;
};

static struct summary summarize(const struct swc_plan_set *set)
{
	struct summary s = { .hdr = set->plan[0] };

	for (uint32_t r = 0; r < set->nranks; r++) {
		const struct swc_plan_header *h = set->plan[r];

		s.steps = s.steps < h->nsteps ? h->nsteps : s.steps;
		s.flags |= h->flags;
	}
	return s;
}

static void print_json(const struct summary *s, const char *path, const char *format, bool verified,
		       const struct swc_verdict *wrong)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "file", path);
	cJSON_AddStringToObject(o, "format", format);
	cJSON_AddStringToObject(o, "name", s->hdr->name);
	cJSON_AddStringToObject(o, "op", swc_coll_name(s->hdr->coll));
	cJSON_AddNumberToObject(o, "ranks", s->hdr->nranks);
	cJSON_AddNumberToObject(o, "root", s->hdr->root);
	cJSON_AddNumberToObject(o, "blocks", (double)s->hdr->nshards * s->hdr->shard_blocks);
	cJSON_AddNumberToObject(o, "channels", s->hdr->nchannels);
	cJSON_AddNumberToObject(o, "steps", s->steps);
	cJSON_AddBoolToObject(o, "in_place", !(s->flags & SWC_PLAN_NOT_IN_PLACE));
	cJSON_AddBoolToObject(o, "order_varies", s->flags & SWC_PLAN_ORDER_VARIES);
	cJSON_AddBoolToObject(o, "verified", verified && !wrong);
	if (wrong) {
		cJSON_AddNumberToObject(o, "wrong_rank", wrong->rank);
		cJSON_AddStringToObject(o, "wrong", wrong->text);
	}
	json_record(stdout, o);
}

/* ------------------------------------------------------------------ export */

/* The plans of all ranks. */
static void build(struct swc_plan_args args, struct swc_plan_set *set)
{
	struct progress bar = { "plans", 0, 1 };
	char why[SWC_TEXT_BYTES] = "out of memory";
	int ret = 0;

	set->plan = calloc(args.nranks, sizeof(*set->plan));
	set->bytes = calloc(args.nranks, sizeof(*set->bytes));
	if (!set->plan || !set->bytes)
		plan_no_memory();
	for (args.rank = 0; !ret && args.rank < args.nranks; args.rank++) {
		set->nranks = args.rank + 1;
		ret = swc_plan_build(&args, &set->plan[args.rank], &set->bytes[args.rank], why,
				     sizeof(why));
		plan_progress(&bar, (double)args.rank / args.nranks);
	}
	plan_progress_end();
	if (ret)
		plan_bad("%s for %u ranks: %s", swc_algo_name(args.algo), args.nranks, why);
}

int export_run(const struct plan_options *opt)
{
	struct swc_plan_args args = { .coll = opt->coll,
				      .algo = SWC_ALGO_RING,
				      .param = SWC_PARAM_DEFAULT,
				      .nranks = opt->nranks,
				      .root = opt->root,
				      .channels = opt->channels,
				      .ports = opt->ports,
				      .in_place = opt->in_place };
	struct swc_plan_set set = { 0 };
	struct swc_verdict verdict = { 0 };
	struct summary s;
	int wrong = 0;

	if (opt->algos)
		args.algo = plan_algo_parse(opt->algos, &args.param);
	if (opt->topo_text) {
		args.topo = &opt->topo;
		args.nranks = opt->topo.nranks;
	} else if (swc_algo_info(args.algo)->one_node) {
		args.nlocal = args.nranks;
	}
	build(args, &set);
	if (opt->json) {
		s = summarize(&set);
		wrong = verify(&set, args.topo, &verdict);
		print_json(&s, opt->out ? opt->out : "-", "plan", true, wrong ? &verdict : NULL);
	}
	if (opt->out || !opt->json)
		plan_write_set(opt, &set);
	swc_plan_set_free(&set);
	return wrong ? 1 : 0;
}

/* ------------------------------------------------------------------ import */

/* Return the format: XML begins with "<", JSON with "{", a plan file with neither. */
static const char *read_any(const char *path, struct swc_plan_set *set)
{
	char why[SWC_TEXT_BYTES] = "out of memory";
	char *text = NULL;
	size_t bytes;
	bool xml, json;
	int ret;

	if (swc_file_read(path, SWC_FILE_MAX_BYTES, &text, &bytes, why, sizeof(why)))
		plan_bad("%s", why);
	xml = bytes && *text == '<';
	json = bytes && text[strspn(text, " \t\r\n")] == '{';
	ret = (xml    ? swc_msccl_parse
	       : json ? swc_mscclpp_parse
		      : swc_plan_text_parse)(text, bytes, set, why, sizeof(why));
	if (ret)
		plan_bad("%s: %s", path, why);
	free(text);
	return xml ? "msccl" : json ? "mscclpp" : "plan";
}

int import_run(const struct plan_options *opt)
{
	struct swc_plan_set set = { 0 };
	struct swc_verdict v = { 0 };
	const char *format = read_any(opt->file, &set);
	struct summary s = summarize(&set);
	int wrong = 0;

	if (!opt->no_verify)
		wrong = verify(&set, opt->topo_text ? &opt->topo : NULL, &v);
	if (opt->json)
		print_json(&s, opt->file, format, !opt->no_verify, wrong ? &v : NULL);
	if (wrong)
		fprintf(stderr, "%s: %s: the plans are wrong: rank %u: %s\n", plan_prog, opt->file,
			v.rank, v.text);
	else
		fprintf(stderr, "%s: %s: %s %s for %u ranks, %u channels, up to %u steps; %s\n",
			plan_prog, opt->file, s.hdr->name, swc_coll_name(s.hdr->coll),
			s.hdr->nranks, s.hdr->nchannels, s.steps,
			opt->no_verify ? "NOT VERIFIED, results may be wrong" : "verified");
	if (!wrong && (opt->out || !opt->json))
		plan_write_set(opt, &set);
	swc_plan_set_free(&set);
	return wrong ? 1 : 0;
}

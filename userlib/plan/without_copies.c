// SPDX-License-Identifier: LGPL-2.1-or-later
/* Plans for modules that have no copy steps: local steps do the same; see without_copies.h. */
#include "plan/without_copies.h"

#include <errno.h>
#include <stdlib.h>

#include "plan/plan_tables.h"
#include "plan/text.h"

static bool has_copies(const struct swc_plan_view *v)
{
	for (uint32_t i = 0; i < v->hdr->nsteps; i++)
		if (v->steps[i].kind == SWC_STEP_COPY)
			return true;
	return false;
}

/* A step with @nsend sources, then @nrecv destinations. */
static bool add_step(struct swc_plan_writer *w, uint8_t kind, const struct swc_plan_xfer *x,
		     uint32_t nsend, uint32_t nrecv)
{
	if (!swc_plan_tables_reserve(w))
		return false;
	swc_plan_write_step(w, kind);
	for (uint32_t i = 0; i < nsend + nrecv; i++) {
		if (!swc_plan_tables_reserve(w))
			return false;
		if (i < nsend)
			swc_plan_write_send(w, &x[i]);
		else
			swc_plan_write_recv(w, &x[i]);
	}
	return true;
}

static bool add_copies(struct swc_plan_writer *w, const struct swc_plan_xfer *x, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct swc_plan_xfer pair[2] = { x[i], x[n + i] };

		if (!add_step(w, SWC_STEP_LOCAL, pair, 1, 1))
			return false;
	}
	return true;
}

static bool rewrite(struct swc_plan_writer *w, const struct swc_plan_view *v)
{
	bool good = true;

	for (uint32_t c = 0; good && c < v->hdr->nchannels; c++) {
		good = swc_plan_tables_reserve(w);
		if (!good)
			break;
		swc_plan_write_channel(w);
		for (uint32_t i = 0; good && i < v->channels[c].nsteps; i++) {
			const struct swc_plan_step *s = &v->steps[v->channels[c].first_step + i];
			const struct swc_plan_xfer *x = &v->xfers[s->first_xfer];

			if (s->kind == SWC_STEP_COPY)
				good = add_copies(w, x, s->nsend);
			else
				good = add_step(w, s->kind, x, s->nsend, s->nrecv);
		}
	}
	return good;
}

int swc_plan_without_copies(void **plan, size_t *bytes, char *why, size_t why_bytes)
{
	struct swc_plan_writer w = { 0 };
	struct swc_plan_view v;
	void *to = NULL;
	int ret = swc_plan_check(*plan, *bytes, &v, why, why_bytes);

	if (ret || !has_copies(&v))
		return ret;
	w.hdr = *v.hdr;
	w.hdr.nchannels = 0;
	w.hdr.nsteps = w.hdr.nxfers = 0;
	ret = rewrite(&w, &v) ? swc_plan_tables_pack(&w, &to, bytes) : -ENOMEM;
	swc_plan_tables_free(&w);
	if (ret == -EFBIG) {
		swc_text_refuse(
			why, why_bytes,
			"the module has no copy steps, and without them the plan would have more than %u "
			"bytes: use a newer module, or another algorithm",
			SWC_MAX_PLAN_BYTES);
		return -EOPNOTSUPP;
	}
	if (ret)
		return ret;
	free(*plan);
	*plan = to;
	return 0;
}

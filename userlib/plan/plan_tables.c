// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory for plans that are being written; see plan_tables.h. */
#include "plan/plan_tables.h"
#include "plan/table.h"

bool swc_plan_tables_reserve(struct swc_plan_writer *w)
{
	return swc_table_reserve(&w->channels, w->hdr.nchannels, &w->max_channels,
				 sizeof(*w->channels)) &&
	       swc_table_reserve(&w->steps, w->hdr.nsteps, &w->max_steps, sizeof(*w->steps)) &&
	       swc_table_reserve(&w->xfers, w->hdr.nxfers, &w->max_xfers, sizeof(*w->xfers));
}

int swc_plan_tables_pack(struct swc_plan_writer *w, void **plan, size_t *bytes)
{
	size_t total = swc_plan_write_bytes(w);
	void *p;
	int ret;

	if (total > SWC_MAX_PLAN_BYTES)
		return -EFBIG;
	p = malloc(total);
	if (!p)
		return -ENOMEM;
	ret = swc_plan_write_pack(w, p, total);
	if (ret) {
		free(p);
		return ret;
	}
	*plan = p;
	*bytes = total;
	return 0;
}

void swc_plan_tables_free(struct swc_plan_writer *w)
{
	free(w->channels);
	free(w->steps);
	free(w->xfers);
	w->channels = NULL;
	w->steps = NULL;
	w->xfers = NULL;
	w->max_channels = w->max_steps = w->max_xfers = 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Two places for sums; see places.h. */
#include "plan/algo/places.h"

void swc_places_begin(struct swc_places *p, struct swc_builder *b, enum swc_buf from, uint32_t last,
		      uint32_t first, uint32_t nblocks)
{
	p->now = 0;
	p->write[last] = SWC_BUF_RECV;
	p->write[!last] = SWC_BUF_SCRATCH;
	p->hold[0] = from;
	p->hold[1] = p->write[1];
	if (!last || from != SWC_BUF_SEND)
		return;
	if (!b->in_place) {
		b->w.hdr.flags |= SWC_PLAN_NOT_IN_PLACE;
		return;
	}
	swc_build_scratch(b, first, nblocks);
	swc_build_step(b, SWC_STEP_LOCAL);
	swc_build_send(b, b->me, SWC_BUF_SEND, first, nblocks);
	swc_build_recv(b, b->me, SWC_BUF_SCRATCH, first, nblocks, 0);
	p->hold[0] = SWC_BUF_SCRATCH;
}

enum swc_buf swc_places_next(const struct swc_places *p, struct swc_builder *b, uint32_t first,
			     uint32_t nblocks)
{
	enum swc_buf to = p->write[!p->now];

	if (to == SWC_BUF_SCRATCH)
		swc_build_scratch(b, first, nblocks);
	return to;
}

void swc_places_turn(struct swc_places *p)
{
	p->now = !p->now;
	p->hold[p->now] = p->write[p->now];
}

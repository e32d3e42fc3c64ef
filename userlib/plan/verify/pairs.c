// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which send meets which receive on a channel: the n-th send from a rank to another meets the n-th
 * receive there from that rank. This follows from the plans alone, so it is found before they are
 * run.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/verify/cells.h"

/* A send: transfer @xfer of rank @from. */
struct sent {
	uint32_t from, xfer;
};

/*
 * Sort the sends of a channel by receiver, then sender, then order. first[r] is where those to r
 * begin.
 */
static void sort_sends(struct swc_verify_machine *m, uint32_t chan, uint64_t *first,
		       struct sent **sent)
{
	for (int pass = 0; !m->error && pass < 2; pass++) {
		for (uint32_t r = 0; r < m->nranks; r++) {
			const struct swc_plan_xfer *x = m->view[r].xfers;
			uint32_t nsteps;
			const struct swc_plan_step *s = swc_verify_steps(m, r, chan, &nsteps);

			for (uint32_t i = 0; i < nsteps; i++) {
				for (uint32_t k = 0; s[i].kind == SWC_STEP_NET && k < s[i].nsend;
				     k++) {
					uint32_t at = s[i].first_xfer + k;

					if (pass)
						(*sent)[first[x[at].rank]++] = (struct sent){ r,
											      at };
					else
						first[x[at].rank + 1]++;
				}
			}
		}
		if (!pass) {
			for (uint32_t r = 0; r < m->nranks; r++)
				first[r + 1] += first[r];
			*sent = swc_verify_alloc(m, first[m->nranks], sizeof(**sent));
		}
	}
	/* first[r] is now the end of r's sends, where those of r + 1 begin. */
	memmove(first + 1, first, m->nranks * sizeof(*first));
	first[0] = 0;
}

static void match_receives(struct swc_verify_machine *m, uint32_t r, uint32_t chan,
			   const struct sent *sent, uint64_t first, uint64_t end, uint64_t *next)
{
	uint32_t nsteps;
	const struct swc_plan_step *s = swc_verify_steps(m, r, chan, &nsteps);

	for (uint64_t i = end; i-- > first;)
		next[sent[i].from] = i;
	for (uint32_t i = 0; i < nsteps; i++) {
		for (uint32_t k = s[i].nsend;
		     s[i].kind == SWC_STEP_NET && k < (uint32_t)s[i].nsend + s[i].nrecv; k++) {
			uint32_t at = s[i].first_xfer + k, from = m->view[r].xfers[at].rank;
			uint64_t n = next[from];

			/*
			 * A number that another receiver left in next[] is out of bounds or of
			 * another sender.
			 */
			if (n < first || n >= end || sent[n].from != from)
				continue;
			m->link[r][at].other = sent[n].xfer;
			m->link[from][sent[n].xfer].other = at;
			next[from]++;
		}
	}
}

void swc_verify_pair(struct swc_verify_machine *m, uint32_t chan)
{
	uint64_t *first = swc_verify_alloc(m, (uint64_t)m->nranks + 1, sizeof(*first));
	uint64_t *next = swc_verify_alloc(m, m->nranks, sizeof(*next));
	struct sent *sent = NULL;

	if (!m->error)
		sort_sends(m, chan, first, &sent);
	for (uint32_t r = 0; !m->error && r < m->nranks; r++)
		match_receives(m, r, chan, sent, first[r], first[r + 1], next);
	free(first);
	free(next);
	free(sent);
}

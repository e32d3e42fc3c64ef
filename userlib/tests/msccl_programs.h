/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs in MSCCL's XML, for tests. */
#ifndef SWC_TESTS_MSCCL_PROGRAMS_H
#define SWC_TESTS_MSCCL_PROGRAMS_H

#include "plan/format/msccl.h"
#include "plan_texts.h"

struct xml {
	struct swc_text t;
	int tb, step;
};

static inline void xml_open(struct xml *x, const char *coll, uint32_t n, uint32_t chunks,
			    bool in_place)
{
	*x = (struct xml){ 0 };
	swc_text_printf(
		&x->t,
		"<algo name=\"my %s\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"%u\" ngpus=\"%u\" coll=\"%s\" inplace=\"%d\" outofplace=\"%d\" minBytes=\"0\" maxBytes=\"0\">\n",
		coll, chunks, n, coll, in_place, !in_place);
}

static inline void xml_gpu(struct xml *x, uint32_t id, uint32_t i, uint32_t o, uint32_t s)
{
	swc_text_printf(&x->t,
			"%s<gpu id=\"%u\" i_chunks=\"%u\" o_chunks=\"%u\" s_chunks=\"%u\">\n",
			id ? "</gpu>\n" : "", id, i, o, s);
	x->tb = 0;
}

static inline void xml_tb(struct xml *x, int send, int recv, int chan)
{
	swc_text_printf(&x->t, "<tb id=\"%d\" send=\"%d\" recv=\"%d\" chan=\"%d\">\n", x->tb++,
			send, recv, chan);
	x->step = 0;
}

static inline int xml_dep(struct xml *x, const char *type, char src, uint32_t srcoff, char dst,
			  uint32_t dstoff, uint32_t cnt, int depid, int deps)
{
	swc_text_printf(
		&x->t,
		"<step s=\"%d\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%u\" dstbuf=\"%c\" dstoff=\"%u\" cnt=\"%u\" depid=\"%d\" deps=\"%d\" hasdep=\"1\"/>\n",
		x->step, type, src, srcoff, dst, dstoff, cnt, depid, deps);
	return x->step++;
}

static inline int xml_step(struct xml *x, const char *type, char src, uint32_t srcoff, char dst,
			   uint32_t dstoff, uint32_t cnt)
{
	return xml_dep(x, type, src, srcoff, dst, dstoff, cnt, -1, -1);
}

static inline void xml_tb_end(struct xml *x)
{
	swc_text_printf(&x->t, "</tb>\n");
}

static inline void xml_close(struct xml *x)
{
	swc_text_printf(&x->t, "</gpu>\n</algo>\n");
}

/* Two chunks per GPU travel round a ring. */
static inline void ring_allgather(struct xml *x, uint32_t n, bool in_place)
{
	xml_open(x, "allgather", n, 2 * n, in_place);
	for (uint32_t r = 0; r < n; r++) {
		xml_gpu(x, r, 2, 2 * n, 0);
		xml_tb(x, (int)((r + 1) % n), (int)((r + n - 1) % n), 0);
		xml_step(x, "s", 'i', 0, 'o', 2 * r, 2);
		for (uint32_t k = 1; k < n; k++)
			xml_step(x, k + 1 < n ? "rcs" : "r", 'o', 2 * ((r + n - k) % n), 'o',
				 2 * ((r + n - k) % n), 2);
		if (!in_place)
			xml_step(x, "cpy", 'i', 0, 'o', 2 * r, 2);
		xml_tb_end(x);
	}
	xml_close(x);
}

/*
 * The steps of a ring in each direction, each with a channel and half the chunks, sums fused with
 * sends.
 */
static inline void ring_allreduce(struct xml *x, uint32_t n, bool in_place)
{
	char out = in_place ? 'i' : 'o';

	xml_open(x, "allreduce", n, 2 * n, in_place);
	for (uint32_t r = 0; r < n; r++) {
		xml_gpu(x, r, 2 * n, 2 * n, 0);
		for (uint32_t c = 0; c < 2; c++) {
			uint32_t step = c ? 1 : n - 1; /* from chunk to chunk */

			xml_tb(x, (int)((r + n - step) % n), (int)((r + step) % n), (int)c);
			for (uint32_t k = 0; k < 2 * n - 1; k++) {
				uint32_t at = c * n + (r + k * step) % n;

				xml_step(x,
					 k == 0		 ? "s"
					 : k < n - 1	 ? "rrs"
					 : k == n - 1	 ? "rrcs"
					 : k < 2 * n - 2 ? "rcs"
							 : "r",
					 'i', at, k < n - 1 ? 'i' : out, at, 1);
			}
			xml_tb_end(x);
		}
	}
	xml_close(x);
}

/*
 * Two shots between all pairs: GPU r gets chunk r from all others into scratch, adds them up and
 * gives the sum to all. A tb for each peer, who waits for the first one's sum.
 */
static inline void pairs_allreduce(struct xml *x, uint32_t n, int spoil)
{
	xml_open(x, "allreduce", n, n, true);
	for (uint32_t r = 0; r < n; r++) {
		int sum = -1;

		xml_gpu(x, r, n, 0, n);
		for (uint32_t p = 0; p < n; p++) {
			if (p == r)
				continue;
			xml_tb(x, (int)p, (int)p, 0);
			xml_step(x, "s", 'i', p, 's', r, 1);
			xml_step(x, "r", 'i', r, 's', p, 1);
			if (x->tb == 1) {
				for (uint32_t k = 1; k < n - 1; k++)
					xml_dep(x, "nop", 'i', 0, 'i', 0, 0, (int)k, 1);
				for (uint32_t q = 0; q < n; q++)
					if (q != r && !(spoil == 1 && r == 1 && q == 0))
						sum = xml_step(x, "re", 's', q, 'i', r, 1);
				if (spoil == 2 && r == 1)
					sum = xml_step(x, "re", 's', 0, 'i', r, 1);
			}
			xml_dep(x, "s", 'i', r, 'i', r, 1, x->tb == 1 ? -1 : 0,
				x->tb == 1 ? -1 : sum);
			if (spoil != 3 || r != 2 || p != 3)
				xml_step(x, "r", 'i', p, 'i', p, 1);
			xml_tb_end(x);
		}
	}
	xml_close(x);
}

/* Recursive doubling; scratch has what arrived, and each step reads what the last one wrote. */
static inline void doubling_allreduce(struct xml *x, uint32_t n)
{
	xml_open(x, "allreduce", n, 3, true);
	for (uint32_t r = 0; r < n; r++) {
		int last = -1, tb = -1;

		xml_gpu(x, r, 3, 0, 3);
		for (uint32_t bit = 1; bit < n; bit *= 2) {
			xml_tb(x, (int)(r ^ bit), (int)(r ^ bit), 0);
			xml_dep(x, "s", 'i', 0, 's', 0, 3, tb, last);
			xml_step(x, "r", 'i', 0, 's', 0, 3);
			last = xml_step(x, "re", 's', 0, 'i', 0, 3);
			tb = x->tb - 1;
			xml_tb_end(x);
		}
	}
	xml_close(x);
}

static inline void ring_reduce_scatter(struct xml *x, uint32_t n, bool in_place)
{
	xml_open(x, "reduce_scatter", n, n, in_place);
	for (uint32_t r = 0; r < n; r++) {
		xml_gpu(x, r, n, 1, n);
		xml_tb(x, (int)((r + 1) % n), (int)((r + n - 1) % n), 0);
		xml_step(x, "s", 'i', (r + n - 1) % n, 'i', 0, 1);
		for (uint32_t k = 2; k <= n; k++)
			if (k < n && r % 2)
				xml_step(x, "rrs", 'i', (r + n - k) % n, 'i', 0, 1);
			else if (k < n) {
				xml_step(x, "rrc", 'i', (r + n - k) % n, 's', k, 1);
				xml_step(x, "s", 's', k, 'i', 0, 1);
			} else
				xml_step(x, "rrc", 'i', r, 'o', 0, 1);
		xml_tb_end(x);
	}
	xml_close(x);
}

static inline void direct_alltoall(struct xml *x, uint32_t n, bool relayed)
{
	xml_open(x, "alltoall", n, 2 * n, false);
	for (uint32_t r = 0; r < n; r++) {
		xml_gpu(x, r, 2 * n, 2 * n, 2 * n);
		for (uint32_t p = 0; p < n; p++) {
			if (p == r) {
				xml_tb(x, -1, -1, 0);
				xml_step(x, "cpy", 'i', 2 * r, 'o', 2 * r, 2);
				xml_tb_end(x);
				continue;
			}
			xml_tb(x, (int)p, (int)p, 0);
			xml_step(x, "s", 'i', 2 * p, 'o', 2 * r, 2);
			xml_step(x, "r", 'i', 2 * r, relayed ? 's' : 'o', 2 * p, 2);
			if (relayed)
				xml_step(x, "cpy", 's', 2 * p, 'o', 2 * p, 2);
			xml_tb_end(x);
		}
	}
	xml_close(x);
}

/* A chain from GPU 2. */
static inline void chain_broadcast(struct xml *x, uint32_t n)
{
	*x = (struct xml){ 0 };
	swc_text_printf(
		&x->t,
		"<?xml version=\"1.0\"?>\n<!-- a chain -->\n<algo name=\"\" ngpus=\"%u\" nchunksperloop=\"4\" coll=\"broadcast\" root=\"2\" proto=\"LL\" nchannels=\"1\">\n",
		n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t r = (2 + i) % n;

		swc_text_printf(&x->t,
				"%s<gpu id=\"%u\" i_chunks=\"4\" o_chunks=\"4\" s_chunks=\"0\">\n",
				i ? "</gpu>\n" : "", r);
		x->tb = 0;
		xml_tb(x, i + 1 < n ? (int)((r + 1) % n) : -1, i ? (int)((r + n - 1) % n) : -1, 0);
		for (uint32_t c = 0; c < 4; c++) {
			if (!i)
				xml_step(x, "cpy", 'i', c, 'o', c, 1);
			xml_step(x, !i ? "s" : i + 1 < n ? "rcs" : "r", 'o', c, 'o', c, 1);
		}
		xml_tb_end(x);
	}
	xml_close(x);
}

#endif /* SWC_TESTS_MSCCL_PROGRAMS_H */

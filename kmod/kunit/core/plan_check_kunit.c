// SPDX-License-Identifier: GPL-2.0-only
/*
 * The plan verifier: valid plans pass; each field with each kind of wrong value is refused or harmless;
 * random damage that it accepts gives a view that stays inside the plan and its windows. Plans are in memory
 * of exactly their size, so that KASAN sees any access beyond.
 */
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/sched.h>

#include "kunit/harness.h"

#define FUZZED	30000	/* plans */

static const swc_t_planner planners[] = { swc_t_direct, swc_t_ring, swc_t_ring3, swc_t_staged, swc_t_copied };

/* What the executor relies on, checked without the verifier's own code. Return: what is unsafe, or NULL. */
static const char *unsafe(const struct swc_plan_view *v, const u8 *data, u32 bytes)
{
	const struct swc_plan_header *h = v->hdr;
	u64 nblocks = (u64)h->nshards * h->shard_blocks, step = 0, xfer = 0;
	u32 ch, i, k;

	if ((const u8 *)h != data || (const u8 *)v->channels < data ||
	    (const u8 *)(v->channels + h->nchannels) > data + bytes ||
	    (const u8 *)(v->steps + h->nsteps) > data + bytes ||
	    (const u8 *)(v->xfers + h->nxfers) > data + bytes)
		return "tables";
	if (!h->nranks || h->nranks > SWC_PLAN_MAX_RANKS || h->rank >= h->nranks || h->root >= h->nranks ||
	    h->coll >= SWC_COLL_NR || h->nchannels > SWC_MAX_CHANNELS || !h->nchannels ||
	    nblocks != v->nblocks || !nblocks || nblocks > 1 << 24 || h->name[SWC_NAME_BYTES - 1])
		return "header";
	for (i = 0; i < SWC_BUF_NR; i++)
		if ((u64)h->window[i].first_block + h->window[i].nblocks > nblocks)
			return "window";
	for (ch = 0; ch < h->nchannels; ch++) {
		if (v->channels[ch].first_step != step)
			return "channel";
		step += v->channels[ch].nsteps;
		if (step > h->nsteps)
			return "steps of a channel";
	}
	for (i = 0; i < h->nsteps; i++) {
		const struct swc_plan_step *s = &v->steps[i];
		u32 n = s->nsend + s->nrecv;

		if (s->first_xfer != xfer || xfer + n > h->nxfers)
			return "transfers of a step";
		xfer += n;
		if (s->kind == SWC_STEP_NET ? s->nsend > v->max_sends || v->max_fan < 3 :
		    s->kind == SWC_STEP_LOCAL ? n > v->max_fan || !s->nsend || !s->nrecv ||
						s->nsend > SWC_MAX_FANIN || s->nrecv > SWC_MAX_FANIN :
		    s->kind == SWC_STEP_COPY ? !s->nsend || s->nsend != s->nrecv || v->max_fan < 2 :
		    s->kind != SWC_STEP_SYNC || n)
			return "step";
		for (k = 0; k < n; k++) {
			const struct swc_plan_xfer *x = &v->xfers[s->first_xfer + k];
			u64 end = (u64)x->first_block + x->nblocks;
			u32 b;

			if (x->rank >= h->nranks || x->buf >= SWC_BUF_NR || x->operand >= SWC_BUF_NR ||
			    end > nblocks)
				return "transfer";
			/* Only the messages of a barrier may be empty. */
			if (!x->nblocks && (h->coll != SWC_BARRIER || s->kind != SWC_STEP_NET))
				return "empty transfer";
			if (k >= s->nsend && x->buf == SWC_BUF_SEND)
				return "writes to the send buffer";
			if (s->kind == SWC_STEP_COPY && (x->rank != h->rank || x->nblocks != x[0].nblocks))
				return "copy";
			if (s->kind != SWC_STEP_NET && s->kind != SWC_STEP_COPY)
				continue;
			for (b = 0; b < SWC_BUF_NR; b++) {
				const struct swc_plan_window *w = &h->window[b];

				if (b != x->buf && !(b == x->operand && (x->flags & SWC_XFER_REDUCE)))
					continue;
				if (x->first_block < w->first_block ||
				    end > (u64)w->first_block + w->nblocks)
					return "own window";
			}
		}
	}
	return NULL;
}

static int check(struct kunit *test, const u8 *data, u32 bytes)
{
	struct swc_plan_view v;
	char why[SWC_TEXT_BYTES] = "";
	int ret = swc_plan_check(data, bytes, &v, why, sizeof(why));

	if (ret) {
		KUNIT_EXPECT_EQ(test, ret, -EINVAL);
		KUNIT_EXPECT_GT(test, (int)strlen(why), 10);
	} else {
		const char *what = unsafe(&v, data, bytes);

		if (what)
			KUNIT_FAIL(test, "accepted, but unsafe: %s", what);
	}
	return ret;
}

static void plan_valid(struct kunit *test)
{
	u32 i, n, r, bytes;
	u8 *data;

	for (i = 0; i < ARRAY_SIZE(planners); i++) {
		for (n = i == 1 || i == 2 ? 2 : 1; n <= 6; n++) {
			for (r = 0; r < n; r++) {
				data = swc_t_pack(test, planners[i](test, n, r), &bytes);
				KUNIT_EXPECT_EQ(test, check(test, data, bytes), 0);
			}
		}
	}
}

/* Each bit of a plan, flipped. */
static void plan_bits(struct kunit *test)
{
	u32 i, at, bit, bytes, passed = 0;
	u8 *data;

	for (i = 0; i < ARRAY_SIZE(planners); i++) {
		data = swc_t_pack(test, planners[i](test, 3, 1), &bytes);
		for (at = 0; at < bytes; at++) {
			for (bit = 0; bit < 8; bit++) {
				data[at] ^= 1 << bit;
				passed += !check(test, data, bytes);
				data[at] ^= 1 << bit;
			}
		}
		KUNIT_EXPECT_EQ(test, check(test, data, bytes), 0);
	}
	/* Changes of the name, or of blocks within a window. */
	KUNIT_EXPECT_GT(test, passed, 64);
}

/* One to four random changes. */
static void change(struct rnd_state *rnd, u8 *work, u32 bytes)
{
	static const u32 odd[] = { 0, 1, 2, 3, 0x7fff, 0x8000, 0xffff, 0x10000, 1 << 24, 0x7fffffff,
				   0x80000000, 0xfffffffe, 0xffffffff };
	u32 k, n = 1 + prandom_u32_state(rnd) % 4, at;

	for (k = 0; k < n; k++) {
		at = prandom_u32_state(rnd) % bytes;
		switch (prandom_u32_state(rnd) % 3) {
		case 0:
			work[at] = prandom_u32_state(rnd);
			break;
		case 1:
			at = min(at & ~3u, bytes - 4);
			*(u32 *)(work + at) = odd[prandom_u32_state(rnd) % ARRAY_SIZE(odd)];
			break;
		default:
			at = min(at & ~1u, bytes - 2);
			*(u16 *)(work + at) += prandom_u32_state(rnd) & 1 ? 1 : -1;
			break;
		}
	}
}

/* Random damage, the same in each run. */
static void plan_random(struct kunit *test)
{
	struct rnd_state rnd;
	u8 *data, *work;
	u32 i, n, bytes;

	prandom_seed_state(&rnd, 20260704);
	for (i = 0; i < 20000; i++) {
		if (i % 500 == 0) {
			n = i / 500;
			data = swc_t_pack(test, planners[n % ARRAY_SIZE(planners)](test, 3, n % 3), &bytes);
			work = kunit_kzalloc(test, bytes, GFP_KERNEL);
			KUNIT_ASSERT_NOT_NULL(test, work);
		}
		memcpy(work, data, bytes);
		change(&rnd, work, bytes);
		check(test, work, bytes);
	}
}

static u32 one_of(struct rnd_state *rnd, u32 n)
{
	return prandom_u32_state(rnd) % n;
}

/* Change a step, a transfer or a window to values that are nearly right, so that many plans are accepted. */
static void bend(struct rnd_state *rnd, u8 *work)
{
	struct swc_plan_header *h = (void *)work;
	struct swc_plan_channel *channels = (void *)(h + 1);
	struct swc_plan_step *steps = (void *)(channels + h->nchannels);
	struct swc_plan_xfer *xfers = (void *)(steps + h->nsteps);
	u32 nblocks = h->nshards * h->shard_blocks;
	struct swc_plan_step *s = &steps[one_of(rnd, h->nsteps)];
	struct swc_plan_xfer *x = &xfers[one_of(rnd, h->nxfers)];

	switch (one_of(rnd, 10)) {
	case 0:
		x->rank = one_of(rnd, h->nranks + 1);
		break;
	case 1:
		x->first_block = one_of(rnd, nblocks + 1);
		break;
	case 2:
		x->nblocks = one_of(rnd, nblocks + 2);
		break;
	case 3:
		x->buf = one_of(rnd, SWC_BUF_NR + 1);
		break;
	case 4:
		x->operand = one_of(rnd, SWC_BUF_NR + 1);
		break;
	case 5:
		x->flags = one_of(rnd, 5);
		break;
	case 6:
		s->kind = one_of(rnd, 6);
		break;
	case 7:
		/* Sends become receives, or the other way round. */
		s->nsend += one_of(rnd, 2) ? 1 : -1;
		s->nrecv = xfers + h->nxfers - &xfers[s->first_xfer] > 4 ? 4 - s->nsend % 4 : s->nrecv ^ 1;
		break;
	case 8:
		h->window[one_of(rnd, SWC_BUF_NR)].nblocks = one_of(rnd, nblocks + 2);
		break;
	default:
		h->window[one_of(rnd, SWC_BUF_NR)].first_block = one_of(rnd, nblocks + 1);
		break;
	}
}

/* Random changes, others in each run. */
static void plan_fuzz(struct kunit *test)
{
	u32 tried, accepted = 0;
	u64 seed = get_random_u64();
	struct rnd_state rnd;
	u8 *data = NULL, *work = NULL;
	u32 n, bytes;

	kunit_info(test, "seed %llu\n", seed);
	prandom_seed_state(&rnd, seed);
	for (tried = 0; tried < FUZZED; tried++) {
		if (tried % 500 == 0) {
			if (data) {
				kunit_kfree(test, work);
				kunit_kfree(test, data);
			}
			n = 2 + one_of(&rnd, 3);
			data = swc_t_pack(test, planners[one_of(&rnd, ARRAY_SIZE(planners))]
					  (test, n, one_of(&rnd, n)), &bytes);
			work = kunit_kzalloc(test, bytes, GFP_KERNEL);
			KUNIT_ASSERT_NOT_NULL(test, work);
			cond_resched();
		}
		memcpy(work, data, bytes);
		for (n = one_of(&rnd, 4); n; n--)
			bend(&rnd, work);
		if (one_of(&rnd, 4) == 0)
			change(&rnd, work, bytes);
		accepted += !check(test, work, bytes);
	}
	kunit_info(test, "%u of %u plans accepted\n", accepted, FUZZED);
	KUNIT_EXPECT_GT(test, accepted, FUZZED / 50u);
	KUNIT_EXPECT_LT(test, accepted, (u32)FUZZED);
}

/* A plan truncated at any byte, with its old size or the new one in the header. */
static void plan_truncated(struct kunit *test)
{
	u32 bytes, len;
	u8 *data = swc_t_pack(test, swc_t_staged(test, 3, 1), &bytes);

	for (len = 0; len < bytes; len++) {
		u8 *cut = kunit_kzalloc(test, len ?: 1, GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, cut);
		memcpy(cut, data, len);
		KUNIT_EXPECT_NE(test, check(test, cut, len), 0);
		if (len >= sizeof(struct swc_plan_header)) {
			((struct swc_plan_header *)cut)->total_bytes = len;
			KUNIT_EXPECT_NE(test, check(test, cut, len), 0);
		}
		kunit_kfree(test, cut);
	}
}

/* Another step: both blocks from SEND to each other's place in RECV. Transfers: 8-9, 10-11. */
static struct swc_plan_step *add_copies(struct swc_plan_writer *p)
{
	swc_plan_write_step(p, SWC_STEP_COPY);
	swc_t_copy(p, SWC_BUF_SEND, 0, SWC_BUF_RECV, 1, 1, 0);
	swc_t_copy(p, SWC_BUF_SEND, 1, SWC_BUF_RECV, 0, 1, SWC_XFER_FINAL);
	return &p->steps[p->hdr.nsteps - 1];
}

/*
 * Change a valid plan in the i-th way. Returns a part of the message that must refuse it. Steps of the
 * plan: 0 local copy, 1 sync, 2 local reduction of 3, 3 sync, 4 net (send, reducing receive). Transfers:
 * 0-1, -, 2-5, -, 6-7.
 */
static const char *damage(struct kunit *test, struct swc_plan_writer *p, u32 i)
{
	struct swc_plan_step *s;

	switch (i) {
	case 0:
		p->hdr.magic++;
		return "not a plan";
	case 1:
		p->hdr.version++;
		return "another version";
	case 2:
		p->hdr.header_bytes--;
		return "another version";
	case 3:
		p->hdr.resv0 = 1;
		return "reserved";
	case 4:
		p->hdr.resv1[0] = 1;
		return "reserved";
	case 5:
		p->hdr.resv1[1] = 1ull << 63;
		return "reserved";
	case 6:
		p->hdr.flags = 1u << 31;
		return "unknown flag";
	case 7:
		p->hdr.coll = SWC_COLL_NR;
		return "unknown collective";
	case 8:
		p->hdr.nranks = 0;
		return "rank or number of ranks";
	case 9:
		p->hdr.nranks = SWC_PLAN_MAX_RANKS + 1;
		return "rank or number of ranks";
	case 10:
		p->hdr.rank = 3;
		return "rank or number of ranks";
	case 11:
		p->hdr.root = 1;
		return "root";
	case 12:
		p->hdr.nshards = 3;
		return "number of shards";
	case 13:
		p->hdr.shard_blocks = 0;
		return "number of blocks";
	case 14:
		p->hdr.shard_blocks = (1 << 24) + 1;
		return "number of blocks";
	case 15:
		memset(p->hdr.name, 'x', SWC_NAME_BYTES);
		return "name";
	case 16:
		p->hdr.window[SWC_BUF_SCRATCH].nblocks = 3;
		return "window is larger";
	case 17:
		p->hdr.window[SWC_BUF_SCRATCH].first_block = 0xffffffff;
		return "window is larger";
	case 18:
		p->hdr.window[SWC_BUF_SEND].nblocks = 1;
		return "not that of the collective";
	case 19:
		p->hdr.window[SWC_BUF_RECV].nblocks = 0;
		return "outside the buffer's window";
	case 20:
		p->channels[0].first_step = 1;
		return "steps do not follow";
	case 21:
		p->channels[0].nsteps++;
		return "steps do not follow";
	case 22:
		p->channels[0].nsteps--;
		return "belong to no channel";
	case 23:
		p->steps[0].resv[2] = 1;
		return "reserved";
	case 24:
		p->steps[0].kind = 0;
		return "unknown kind";
	case 25:
		p->steps[0].kind = 5;
		return "unknown kind";
	case 26:
		p->steps[2].first_xfer++;
		return "transfers do not follow";
	case 27:
		p->steps[4].nrecv = 0xffff;
		return "transfers do not follow";
	case 28:
		p->steps[4].nrecv = 0;
		return "belong to no step";
	case 29:
		p->steps[3].kind = SWC_STEP_NET;
		return "without transfers";
	case 30:
		p->steps[3].kind = SWC_STEP_LOCAL;
		return "needs a source";
	case 31:
		p->steps[0].nsend = 2;
		p->steps[0].nrecv = 0;
		return "needs a source";
	case 32:
		p->steps[0].kind = SWC_STEP_SYNC;
		return "no transfers";
	case 33:
		p->xfers[0].flags |= 0x80;
		return "unknown flag";
	case 34:
		p->xfers[1].flags = 8;
		return "unknown flag";
	case 35:
		p->xfers[2].rank = 3;
		return "rank out of range";
	case 36:
		p->xfers[2].buf = SWC_BUF_NR;
		return "unknown buffer";
	case 37:
		p->xfers[7].operand = SWC_BUF_NR;
		return "unknown buffer";
	case 38:
		p->xfers[2].first_block = 1;
		return "blocks out of range";
	case 39:
		p->xfers[2].first_block = 0xffffffff;
		return "blocks out of range";
	case 40:
		p->xfers[2].nblocks = 0;
		return "blocks out of range";
	case 41:
		p->xfers[2].nblocks = 0xffffffff;
		return "blocks out of range";
	case 42:
		p->hdr.window[SWC_BUF_SCRATCH].nblocks = 1;
		return "outside the buffer's window";
	case 43:
		p->xfers[1].buf = SWC_BUF_SEND;
		return "cannot be written to";
	case 44:
		p->xfers[6].flags = SWC_XFER_FINAL;
		return "only what is received";
	case 45:
		p->xfers[7].flags = 0;
		p->xfers[7].operand = SWC_BUF_RECV;
		return "operand needs";
	case 46:
		p->xfers[6].rank = 1;
		return "its own peer";
	case 47:
		p->xfers[7].operand = SWC_BUF_SCRATCH;
		p->hdr.window[SWC_BUF_SCRATCH].nblocks = 1;
		p->hdr.window[SWC_BUF_SCRATCH].first_block = 1;
		p->xfers[1].first_block = 1;
		p->xfers[1].nblocks = 1;
		p->xfers[3].first_block = 1;
		p->xfers[3].nblocks = 1;
		return "operand outside";
	case 48:
		p->xfers[5].flags = SWC_XFER_REDUCE;
		return "reduces its sources";
	case 49:
		p->xfers[5].flags = 0;
		p->steps[2].nsend = 2;
		p->steps[2].nrecv = 2;
		p->xfers[5].flags = SWC_XFER_FINAL;
		return "only the first destination";
	case 50:
		p->steps[2].nsend = SWC_MAX_FANIN + 1;
		p->hdr.nxfers += SWC_MAX_FANIN;
		return "too many";
	case 51:
		p->hdr.coll = SWC_BROADCAST;
		p->hdr.root = 1;
		return "does not reduce";
	case 52:
		p->hdr.nchannels = 0;
		return "number of channels";
	case 53:
		p->xfers[7].flags |= SWC_XFER_STORED;
		return "the stored mark is for what is sent";
	case 54:
		p->xfers[6].flags = SWC_XFER_STORED | SWC_XFER_REDUCE;
		return "only what is received";
	case 55:
		p->xfers[2].flags = SWC_XFER_STORED;
		return "neither a path nor a stored mark";
	case 56:
		p->xfers[5].flags |= SWC_XFER_STORED;
		return "the stored mark is for what is sent";
	case 57:
		p->xfers[2].path = 1;
		return "neither a path";
	case 58:
		p->xfers[5].path = 0xff;
		return "neither a path";
	case 59:
		p->xfers[6].flags = 0x10;
		return "unknown flag";
	case 60: /* the local step copies, the one between ranks reduces */
		p->hdr.coll = SWC_BROADCAST;
		p->hdr.root = 1;
		p->steps[2].nsend = 1;
		p->steps[2].nrecv = 1;
		p->xfers[3] = p->xfers[5];
		p->xfers[3].flags = 0;
		p->steps[3].first_xfer = 4;
		p->steps[4].first_xfer = 4;
		p->steps[4].nrecv = 3;
		p->xfers[4] = p->xfers[6];
		p->xfers[5] = p->xfers[7];
		return "does not reduce";
	case 61:
		add_copies(p)->nrecv = 1;
		return "a destination for each source";
	case 62:
		swc_plan_write_step(p, SWC_STEP_COPY);
		return "a destination for each source";
	case 63:
		p->xfers[add_copies(p)->first_xfer].rank = 2;
		return "names another rank";
	case 64:
		p->xfers[add_copies(p)->first_xfer + 3].rank = 0;
		return "names another rank";
	case 65:
		p->xfers[add_copies(p)->first_xfer + 1].flags = SWC_XFER_FINAL;
		return "only what is received";
	case 66:
		p->xfers[add_copies(p)->first_xfer + 2].flags = SWC_XFER_REDUCE;
		return "reduces its sources";
	case 67:
		p->xfers[add_copies(p)->first_xfer].flags = SWC_XFER_STORED;
		return "neither a path nor a stored mark";
	case 68:
		p->xfers[add_copies(p)->first_xfer + 3].path = 1;
		return "neither a path";
	case 69:
		p->xfers[add_copies(p)->first_xfer + 2].operand = SWC_BUF_RECV;
		return "operand needs";
	case 70:
		p->xfers[add_copies(p)->first_xfer + 3].buf = SWC_BUF_SEND;
		return "cannot be written to";
	case 71:
		p->xfers[add_copies(p)->first_xfer + 1].nblocks = 2;
		return "blocks out of range";
	case 72:
		p->xfers[add_copies(p)->first_xfer + 1].first_block = 2;
		return "blocks out of range";
	case 73:
		p->xfers[add_copies(p)->first_xfer + 1].nblocks = 0;
		return "blocks out of range";
	case 74:
		p->xfers[add_copies(p)->first_xfer].nblocks = 2;
		return "differ in blocks";
	case 75:
		p->xfers[add_copies(p)->first_xfer].buf = SWC_BUF_RECV;
		p->xfers[p->hdr.nxfers - 2].first_block = 0;
		return "source and destination overlap";
	case 76: /* of two blocks each, one is the same */
		p->hdr.shard_blocks = 3;
		p->hdr.window[SWC_BUF_SEND].nblocks = 3;
		p->hdr.window[SWC_BUF_RECV].nblocks = 3;
		s = add_copies(p);
		p->xfers[s->first_xfer + 1] = (struct swc_plan_xfer){ 1, 0, 2, SWC_BUF_RECV };
		p->xfers[s->first_xfer + 3] = (struct swc_plan_xfer){ 1, 1, 2, SWC_BUF_RECV };
		return "source and destination overlap";
	case 77: /* the rank has no scratch memory for block 1 */
		p->hdr.window[SWC_BUF_SCRATCH].nblocks = 1;
		p->xfers[1].nblocks = 1;
		p->xfers[3].nblocks = 1;
		p->xfers[add_copies(p)->first_xfer + 1].buf = SWC_BUF_SCRATCH;
		return "outside the buffer's window";
	default:
		return NULL;
	}
}

static void plan_wrong(struct kunit *test)
{
	u32 i, bytes;

	for (i = 0; ; i++) {
		struct swc_plan_writer *p = swc_t_staged(test, 3, 1);
		char why[SWC_TEXT_BYTES] = "";
		struct swc_plan_view v;
		const char *want;
		u8 *data;

		/* After the staged steps, one step between ranks. */
		swc_plan_write_step(p, SWC_STEP_NET);
		swc_t_send(p, 2, 0, 1, SWC_BUF_SEND);
		swc_t_recv(p, 0, 0, 1, SWC_BUF_RECV, SWC_BUF_SEND, SWC_XFER_REDUCE);
		want = damage(test, p, i);
		if (!want)
			break;
		data = swc_t_pack(test, p, &bytes);
		KUNIT_EXPECT_EQ_MSG(test, swc_plan_check(data, bytes, &v, why, sizeof(why)), -EINVAL,
				    "accepted although: %s", want);
		KUNIT_EXPECT_TRUE_MSG(test, strstr(why, want), "\"%s\" instead of \"%s\"", why, want);
	}
	KUNIT_EXPECT_EQ(test, i, 78);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(plan_valid),
	KUNIT_CASE(plan_wrong),
	KUNIT_CASE(plan_bits),
	KUNIT_CASE(plan_random),
	KUNIT_CASE(plan_fuzz),
	KUNIT_CASE(plan_truncated),
	{}
};

struct kunit_suite swc_plan_check_suite = { .name = "swc_plan_check", .test_cases = cases };

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Trees: sums go up, results go down. Every sum is computed by one member, so all ranks get the
 * same bits.
 *
 * The binomial tree moves whole vectors. With members numbered from the root, v's parent is v
 * without its lowest bit, so the sums of 2^i members meet in round i. Results go down in the same
 * rounds backwards: far first.
 *
 * The double tree is two binary trees, each for one half of the vector, cut into pieces that follow
 * one another like a pipeline. A node at an odd place of a binary tree in in-order numbering is a
 * leaf, so with the second tree a mirror image (even number of nodes) or shifted by one place (odd
 * number) every node is an inner one in at most one tree. So on the way up, and again on the way
 * down, a node receives and sends at most one vector, in log p steps plus the number of pieces.
 * (Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and
 * scan", 2009.)
 */
#include "plan/algo/gather.h"
#include "plan/algo/tree_bufs.h"

static uint32_t member_of(const struct swc_builder *b, uint32_t v)
{
	return (b->root + v) % b->n;
}

static uint32_t low_bit(uint32_t v)
{
	return v & -v;
}

/* ---- binomial ---- */

/* The children of v are v + bit for the bits below the returned one. */
static uint32_t child_bits(const struct swc_builder *b, uint32_t v)
{
	uint32_t end = 1;

	while (end < b->n - v && !(v & end))
		end *= 2;
	return end;
}

/*
 * Send to the children whose subtrees are as high as that of a full one with @bit members. The
 * highest are served first and one after the other, so that they have the whole link: the sums of a
 * reduction come in this order, backwards. Only the last child, the farthest, can have a subtree that
 * is not full.
 */
static void send_down(struct swc_builder *b, uint32_t v, uint32_t end, uint32_t bit, uint32_t block)
{
	uint32_t last = end / 2, size = b->n - v - last < last ? b->n - v - last : last;

	swc_build_step(b, SWC_STEP_NET);
	if (size >= bit && size < 2 * bit)
		swc_build_send_stored(b, member_of(b, v + last), swc_tree_down(b), block, 1);
	if (bit != last)
		swc_build_send_stored(b, member_of(b, v + bit), swc_tree_down(b), block, 1);
}

static void binomial(struct swc_builder *b, uint32_t block)
{
	uint32_t v = (b->me + b->n - b->root) % b->n, end = child_bits(b, v);
	uint32_t parent = member_of(b, v - low_bit(v));
	enum swc_buf at = SWC_BUF_SEND, sum = swc_tree_sums(b);

	if (swc_tree_goes_up(b)) {
		if (end > 1 && sum == SWC_BUF_SCRATCH)
			swc_build_scratch(b, block, 1);
		swc_build_step(b, SWC_STEP_NET);
		for (uint32_t bit = 1; bit < end; bit *= 2) {
			swc_build_recv_reduce(b, member_of(b, v + bit), sum, at, block, 1,
					      !v && bit * 2 == end ? SWC_XFER_FINAL : 0);
			at = sum;
		}
		swc_build_step(b, SWC_STEP_NET);
		if (v)
			swc_build_send(b, parent, at, block, 1);
	}
	if (swc_tree_goes_down(b)) {
		swc_build_step(b, SWC_STEP_NET);
		if (v)
			swc_build_recv(b, parent, SWC_BUF_RECV, block, 1,
				       swc_tree_down_flags(b, parent));
		for (uint32_t bit = end / 2; bit; bit /= 2)
			send_down(b, v, end, bit, block);
	}
	swc_tree_copy_at_root(b, block, 1);
}

/* Below the child v + bit are the numbers from there on, as many as bit. */
static void gather(struct swc_builder *b)
{
	uint32_t v = (b->me + b->n - b->root) % b->n, end = child_bits(b, v), rest = b->n - v;
	struct swc_gather g = { .ports = 1, .root = !v, .parent = member_of(b, v - low_bit(v)) };

	g.mine = (struct swc_box){ 1, { b->n }, { b->me }, { end < rest ? end : rest } };
	for (uint32_t bit = end / 2; bit; bit /= 2) {
		uint32_t n = bit < rest - bit ? bit : rest - bit;

		g.child[g.nchildren] = member_of(b, v + bit);
		g.below[g.nchildren] = (struct swc_box){
			1, { b->n }, { g.child[g.nchildren] }, { n }
		};
		g.nchildren++;
	}
	swc_build_blocks(b, 1);
	swc_gather_channel(b, &g);
}

int swc_tree_build(struct swc_builder *b)
{
	uint32_t nch = b->args->channels ? b->args->channels : 1;

	if (swc_is_gather(b->args->coll)) {
		gather(b);
		return 0;
	}
	swc_build_blocks(b, nch);
	for (uint32_t c = 0; c < nch; c++) {
		swc_build_channel(b, c, 1);
		binomial(b, c);
	}
	return 0;
}

/* ---- double ---- */

#define DEFAULT_PIECES 4

/**
 * struct btree - one of the two trees, as one member sees it
 * @n: nodes; their places are 1 to n from left to right
 * @top: BROADCAST and REDUCE: the root is above both trees, which consist of the other members
 * @second: which tree
 * @parent, @child: members
 * @nchildren: 0 to 2
 * @depth: of this member
 */
struct btree {
	uint32_t n;
	bool top, second;
	uint32_t parent, child[2], nchildren, depth;
};

/* The place of member v, counted from the root; and the inverse, the member at a place. */
static uint32_t place_of(const struct btree *t, uint32_t v)
{
	uint32_t i = t->top ? v : v + 1;

	if (!t->second)
		return i;
	return t->n % 2 ? i % t->n + 1 : t->n + 1 - i;
}

static uint32_t at_place(const struct swc_builder *b, const struct btree *t, uint32_t i)
{
	if (t->second)
		i = t->n % 2 ? (i + t->n - 2) % t->n + 1 : t->n + 1 - i;
	return member_of(b, t->top ? i : i - 1);
}

/* The parent as in a perfect tree, skipping nodes that do not exist; 0 above the root. */
static uint32_t parent_place(const struct btree *t, uint32_t i)
{
	if (low_bit(i) == i && i > t->n / 2)
		return 0;
	do {
		uint32_t bit = low_bit(i);

		i = i & bit << 1 ? i - bit : i + bit;
	} while (i > t->n);
	return i;
}

static uint32_t root_place(const struct btree *t)
{
	uint32_t i = 1;

	while (i <= t->n / 2)
		i *= 2;
	return i;
}

static void find_relatives(const struct swc_builder *b, struct btree *t)
{
	uint32_t v = (b->me + b->n - b->root) % b->n, i, right;

	if (t->top && !v) {
		t->child[t->nchildren++] = at_place(b, t, root_place(t));
		return;
	}
	i = place_of(t, v);
	for (uint32_t up = i; up; up = parent_place(t, up))
		t->depth++;
	t->depth -= !t->top;
	t->parent = b->root;
	if (parent_place(t, i))
		t->parent = at_place(b, t, parent_place(t, i));
	right = low_bit(i) / 2;
	if (right)
		t->child[t->nchildren++] = at_place(b, t, i - right);
	while (right && right > t->n - i)
		right /= 2;
	if (right)
		t->child[t->nchildren++] = at_place(b, t, i + right);
}

/*
 * The steps of a member at depth d. In step s piece s comes up from the children and piece s - 1
 * goes up; so a parent counts one step behind its children. What the root has completed goes down
 * one step later: piece s - 2d comes from the parent and the one before it goes to the children.
 * All of these are different pieces. A collective of one direction is the same pipeline without the
 * other.
 */
static void pipeline(struct swc_builder *b, const struct btree *t, uint32_t at, uint32_t pieces)
{
	enum swc_buf sum = swc_tree_sums(b), up = t->nchildren ? sum : SWC_BUF_SEND;

	for (uint32_t s = 0; s <= pieces + 2 * t->depth; s++) {
		uint32_t down = s - 2 * t->depth; /* wraps to a large number while there is none */

		swc_build_step(b, SWC_STEP_NET);
		if (swc_tree_goes_up(b) && t->depth && s - 1 < pieces)
			swc_build_send(b, t->parent, up, at + s - 1, 1);
		for (uint32_t i = 0; swc_tree_goes_down(b) && down - 1 < pieces && i < t->nchildren;
		     i++)
			swc_build_send_stored(b, t->child[i], swc_tree_down(b), at + down - 1, 1);
		for (uint32_t i = 0; swc_tree_goes_up(b) && s < pieces && i < t->nchildren; i++)
			swc_build_recv_reduce(
				b, t->child[i], sum, i ? sum : SWC_BUF_SEND, at + s, 1,
				!t->depth && i + 1 == t->nchildren ? SWC_XFER_FINAL : 0);
		if (swc_tree_goes_down(b) && t->depth && down < pieces)
			swc_build_recv(b, t->parent, SWC_BUF_RECV, at + down, 1,
				       swc_tree_down_flags(b, t->parent));
	}
	swc_tree_copy_at_root(b, at, pieces);
}

int swc_dtree_build(struct swc_builder *b)
{
	uint32_t pieces = b->args->param < 0 ? DEFAULT_PIECES : (uint32_t)b->args->param;
	bool top = b->args->coll != SWC_ALLREDUCE;

	if (!pieces)
		return swc_build_refuse(b, "dtree needs at least one piece: dtree:1");
	swc_build_blocks(b, 2 * pieces);
	for (uint32_t i = 0; i < 2; i++) {
		struct btree t = { .n = top ? b->n - 1 : b->n, .top = top, .second = i };

		find_relatives(b, &t);
		swc_build_channel(b, i * pieces, pieces);
		if (swc_tree_goes_up(b) && t.nchildren && swc_tree_sums(b) == SWC_BUF_SCRATCH)
			swc_build_scratch(b, i * pieces, pieces);
		pipeline(b, &t, i * pieces, pieces);
	}
	return 0;
}

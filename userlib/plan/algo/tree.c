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
#include "plan/algo/tree.h"
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
static uint32_t child_bits(uint32_t n, uint32_t v)
{
	uint32_t end = 1;

	while (end < n - v && !(v & end))
		end *= 2;
	return end;
}

/*
 * The children whose subtrees are as high as that of a full one with so many members are sent to in one step.
 * The highest are served first and one after the other, so that they have the whole link: the sums of a
 * reduction come in this order, backwards. Only the last child, the farthest, can have a subtree that
 * is not full.
 */
uint32_t swc_tree_children(uint32_t n, uint32_t v, uint32_t k, uint32_t child[2])
{
	uint32_t last = child_bits(n, v) / 2, bit = last >> k, i = 0;
	uint32_t size = n - v - last < last ? n - v - last : last;

	if (k > 31 || !bit)
		return UINT32_MAX;
	if (size >= bit && size < 2 * bit)
		child[i++] = v + last;
	if (bit != last)
		child[i++] = v + bit;
	return i;
}

static void send_down(struct swc_builder *b, uint32_t v, uint32_t block)
{
	uint32_t child[2], n;

	for (uint32_t k = 0; (n = swc_tree_children(b->n, v, k, child)) != UINT32_MAX; k++) {
		swc_build_step(b, SWC_STEP_NET);
		for (uint32_t i = 0; i < n; i++)
			swc_build_send_stored(b, member_of(b, child[i]), swc_tree_down(b), block,
					      1);
	}
}

static void binomial(struct swc_builder *b, uint32_t block)
{
	uint32_t v = (b->me + b->n - b->root) % b->n, end = child_bits(b->n, v);
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
	/* The mirror image of the way up, where networks forward so: no link has more to carry. */
	if (swc_tree_goes_down(b)) {
		b->back = true;
		swc_build_step(b, SWC_STEP_NET);
		if (v)
			swc_build_recv(b, parent, SWC_BUF_RECV, block, 1,
				       swc_tree_down_flags(b, parent));
		send_down(b, v, block);
		b->back = false;
	}
	swc_tree_copy_at_root(b, block, 1);
}

/* Below the child v + bit are the numbers from there on, as many as bit. */
static void gather(struct swc_builder *b)
{
	uint32_t v = (b->me + b->n - b->root) % b->n, end = child_bits(b->n, v), rest = b->n - v;
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

/* ---- rounds of the binomial tree ---- */

static uint32_t log_of(uint32_t n)
{
	uint32_t log = 0;

	while (n >> log > 1)
		log++;
	return log;
}

uint32_t swc_tree_rounds(const struct swc_plan_args *a)
{
	uint32_t once = a->nranks > 1 ? log_of(a->nranks - 1) + 1 : 0;

	return a->coll == SWC_ALLREDUCE ? 2 * once : once;
}

/* A subtree that is not full comes with those of its height; but not shards, which are of all sizes. */
uint32_t swc_tree_round(const struct swc_plan_args *a, uint32_t from, uint32_t to)
{
	uint32_t n = a->nranks, v = (from + n - a->root) % n, w = (to + n - a->root) % n;
	bool up = v && v - low_bit(v) == w;
	uint32_t child = up ? v : w, size = low_bit(child);

	if (!swc_is_gather(a->coll) && size > n - child)
		size = n - child;
	return up ? log_of(size) : swc_tree_rounds(a) - 1 - log_of(size);
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

/* The place of member v, counted from the root, 0 above the trees; and the inverse, the member at a place. */
static uint32_t place_of(const struct btree *t, uint32_t v)
{
	uint32_t i = t->top ? v : v + 1;

	if (!t->second || !i)
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

static uint32_t depth_of(const struct btree *t, uint32_t i)
{
	uint32_t depth = !!t->top;

	/* Nodes above it in a perfect tree, those that exist. */
	for (uint32_t bit = 2 * low_bit(i); bit <= t->n; bit *= 2)
		depth += ((i & -(2 * bit)) | bit) <= t->n;
	return depth;
}

static void find_relatives(const struct swc_builder *b, struct btree *t)
{
	uint32_t v = (b->me + b->n - b->root) % b->n, i, right;

	if (t->top && !v) {
		t->child[t->nchildren++] = at_place(b, t, root_place(t));
		return;
	}
	i = place_of(t, v);
	t->depth = depth_of(t, i);
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

static uint32_t pieces_of(const struct swc_plan_args *a)
{
	return a->param < 0 ? DEFAULT_PIECES : (uint32_t)a->param;
}

/* The tree of n members, without relatives. */
static struct btree tree_of(enum swc_coll coll, uint32_t n, bool second)
{
	bool top = coll != SWC_ALLREDUCE;

	return (struct btree){ .n = n - top, .top = top, .second = second };
}

uint32_t swc_dtree_pieces(const struct swc_plan_args *a)
{
	return pieces_of(a);
}

uint32_t swc_dtree_parent(const struct swc_plan_args *a, bool second, uint32_t member,
			  uint32_t *depth)
{
	struct btree t = tree_of(a->coll, a->nranks, second);
	struct swc_builder b = { .n = a->nranks, .root = a->root };
	uint32_t i = place_of(&t, (member + a->nranks - a->root) % a->nranks);

	*depth = i ? depth_of(&t, i) : 0;
	if (i && parent_place(&t, i))
		return at_place(&b, &t, parent_place(&t, i));
	return i && t.top ? a->root : member;
}

int swc_dtree_build(struct swc_builder *b)
{
	uint32_t pieces = pieces_of(b->args);

	if (!pieces)
		return swc_build_refuse(b, "dtree needs at least one piece: dtree:1");
	swc_build_blocks(b, 2 * pieces);
	for (uint32_t i = 0; i < 2; i++) {
		struct btree t = tree_of(b->args->coll, b->n, i);

		find_relatives(b, &t);
		swc_build_channel(b, i * pieces, pieces);
		if (swc_tree_goes_up(b) && t.nchildren && swc_tree_sums(b) == SWC_BUF_SCRATCH)
			swc_build_scratch(b, i * pieces, pieces);
		pipeline(b, &t, i * pieces, pieces);
	}
	return 0;
}

/* ---- rounds of the double tree ---- */

/* Of the deepest members: those farthest left, as there the tree is full. */
static uint32_t depth_of_tree(const struct btree *t)
{
	return log_of(root_place(t)) + t->top;
}

uint32_t swc_dtree_rounds(const struct swc_plan_args *a)
{
	struct btree t = tree_of(a->coll, a->nranks, false);
	uint32_t once = depth_of_tree(&t);

	return pieces_of(a) - 1 + (a->coll == SWC_ALLREDUCE ? 2 * once : once);
}

/* A piece goes one level in a round, as soon as it is there: see pipeline(). */
uint32_t swc_dtree_round(const struct swc_plan_args *a, bool second, uint32_t block, uint32_t from,
			 uint32_t to)
{
	struct btree t = tree_of(a->coll, a->nranks, second);
	uint32_t n = a->nranks, i = place_of(&t, (from + n - a->root) % n);
	uint32_t j = place_of(&t, (to + n - a->root) % n);
	uint32_t piece = block % pieces_of(a), most = depth_of_tree(&t);

	if (i && parent_place(&t, i) == j)
		return piece + most - depth_of(&t, i);
	return piece + depth_of(&t, j) - 1 + (a->coll == SWC_ALLREDUCE ? most : 0);
}

/* ---- a sample of the double tree ---- */

/* Of a height: enough to meet members whose messages cross the end of a line, and those that do not. */
#define SAMPLE_OF_HEIGHT 6

/* Members at places that are odd multiples of a power of two. */
static uint32_t count_height(const struct btree *t, uint32_t bit)
{
	return (t->n / bit + 1) / 2;
}

static uint32_t few_of(uint32_t all)
{
	return all < SAMPLE_OF_HEIGHT ? all : SAMPLE_OF_HEIGHT;
}

/* The last place is one of a leaf in both trees if their size is odd. */
uint32_t swc_dtree_sample_size(const struct swc_plan_args *a)
{
	struct btree t = tree_of(a->coll, a->nranks, false);
	uint32_t n = 0;

	for (uint32_t bit = 2; bit <= t.n; bit *= 2)
		n += few_of(count_height(&t, bit));
	return 2 * n + t.n % 2 + t.top;
}

uint32_t swc_dtree_sample(const struct swc_plan_args *a, uint32_t i, double *alike)
{
	struct swc_builder b = { .n = a->nranks, .root = a->root };
	struct btree t = tree_of(a->coll, a->nranks, false);

	for (int second = 0; second < 2; second++) {
		t.second = second;
		for (uint32_t bit = 2; bit <= t.n; bit *= 2) {
			uint32_t all = count_height(&t, bit), few = few_of(all);
			uint32_t apart = few > 1 ? few - 1 : 1;

			*alike = (double)all / few;
			if (i < few)
				return at_place(
					&b, &t,
					(uint32_t)(2 * ((uint64_t)i * (all - 1) / apart) + 1) *
						bit);
			i -= few;
		}
	}
	*alike = 1;
	t.second = false;
	return i < t.n % 2 ? at_place(&b, &t, t.n) : a->root;
}

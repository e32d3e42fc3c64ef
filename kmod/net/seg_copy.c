// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies of segments: payload of partitions that no task waits for yet, moved out of its receive buffer so
 * that the peer can use that again. Their memory is limited for each communicator, for each user, and in all.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "mem/account.h"
#include "net/seg_copy.h"

/* Payload up to this size is allocated together with the segment; a larger one gets pages. */
#define INLINE_MAX	(PAGE_SIZE / 4)

struct copy {
	struct swc_net_seg seg;
	struct swc_extents extents;
	u32 bytes;		/* of memory, all included */
	u32 npages;
	struct swc_extent extent[];
};

/* Of all communicators. */
static atomic_long_t total_bytes;

/*
 * Account for @bytes more; false: over a limit. For all communicators that is a sixteenth of the memory, but
 * where that is less than 256 MiB, up to 256 MiB or a quarter of the memory; half of it for those of a
 * user; a quarter of it for one.
 */
static bool charge(struct swc_seg_copy_usage *usage, u32 bytes)
{
	long pages = totalram_pages(), few = min_t(long, 256 << (20 - PAGE_SHIFT), pages / 4);
	long limit = max(pages / 16, few) << PAGE_SHIFT;
	bool fits = atomic_long_add_return(bytes, &usage->bytes) <= limit / 4;

	fits &= atomic_long_add_return(bytes, &usage->account->copied) <= limit / 2;
	return (atomic_long_add_return(bytes, &total_bytes) <= limit) & fits;
}

static void copy_free(struct copy *c, struct swc_seg_copy_usage *usage)
{
	u32 i;

	for (i = 0; i < c->npages; i++)
		free_page((unsigned long)c->extent[i].kaddr);
	atomic_long_sub(c->bytes, &usage->bytes);
	atomic_long_sub(c->bytes, &usage->account->copied);
	atomic_long_sub(c->bytes, &total_bytes);
	kfree(c);
}

/* Room for @bytes of payload, in single pages: larger ones may be missing while much memory is free. */
static struct copy *copy_alloc(u32 bytes, struct swc_seg_copy_usage *usage)
{
	u32 npages = bytes > INLINE_MAX ? DIV_ROUND_UP(bytes, PAGE_SIZE) : 0, n = max(npages, 1u), i;
	gfp_t gfp = GFP_NOIO | __GFP_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN;
	struct copy *c;
	size_t size = struct_size(c, extent, n + 1);

	if (!npages)
		size = size_add(size, SMP_CACHE_BYTES + bytes);
	c = kzalloc(size, gfp);
	if (!c)
		return NULL;
	c->bytes = size + npages * PAGE_SIZE;
	c->extents.extent = c->extent;
	c->extents.nextents = n;
	c->extent[0].kaddr = PTR_ALIGN((void *)&c->extent[n + 1], SMP_CACHE_BYTES);
	swc_extents_close(&c->extents, bytes);
	if (!charge(usage, c->bytes))
		goto err;
	for (i = 0; i < npages; i++) {
		c->extent[i].kaddr = (void *)__get_free_page(gfp);
		c->extent[i].offset = i * PAGE_SIZE;
		if (!c->extent[i].kaddr)
			goto err;
		c->npages++;
	}
	return c;
err:
	copy_free(c, usage);
	return NULL;
}

/**
 * swc_seg_copy() - copy a segment out of its receive buffer
 * @seg: the segment; its payload is contiguous at @seg->msg.payload
 * @usage: of its communicator
 *
 * May sleep. Return: the copy, to be freed by swc_seg_copy_free(); NULL: no memory.
 */
struct swc_net_seg *swc_seg_copy(const struct swc_net_seg *seg, struct swc_seg_copy_usage *usage)
{
	struct copy *c = copy_alloc(seg->msg.bytes, usage);
	const struct swc_extent *e;

	if (!c) {
		swc_stat_inc(SWC_STAT_UNEXPECTED_REFUSED);
		return NULL;
	}
	c->seg = *seg;
	c->seg.msg.payload = NULL;
	c->seg.unexpected = true;
	c->seg.span.extents = &c->extents;
	c->seg.span.offset = 0;
	for (e = c->extent; e < c->extent + c->extents.nextents; e++)
		memcpy(e->kaddr, seg->msg.payload + e->offset, e[1].offset - e->offset);
	swc_stat_inc(SWC_STAT_UNEXPECTED_BUFFERED);
	return &c->seg;
}

void swc_seg_copy_free(struct swc_net_seg *seg, struct swc_seg_copy_usage *usage)
{
	copy_free(container_of(seg, struct copy, seg), usage);
}

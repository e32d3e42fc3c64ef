// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory of an overlap handle that transfers read and write: registered once, for all calls. */
#include <errno.h>
#include <sys/mman.h>

#include "overlap/overlap.h"

void swc_ov_release(struct swc_ov_buffer *b)
{
	if (b->registered)
		swingcoll_mem_unregister(b->base);
	if (b->base)
		munmap(b->base, b->bytes);
	*b = (struct swc_ov_buffer){ 0 };
}

int swc_ov_reserve(struct swc_ov_buffer *b, size_t bytes)
{
	void *p;

	if (b->bytes >= bytes)
		return 0;
	swc_ov_release(b);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	b->base = p;
	b->bytes = bytes;
	/* If it cannot be pinned as a whole, single transfers may still pin what they need. */
	b->registered = !swingcoll_mem_register(p, bytes);
	return 0;
}

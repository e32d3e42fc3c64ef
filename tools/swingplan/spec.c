// SPDX-License-Identifier: GPL-2.0-only
/* swingplan: the files with the specifications of allocate and orders. */
#include "spec.h"

#include "swingplan.h"

#include <errno.h>
#include <stdlib.h>

#include "src/files.h"

typedef int spec_parse_fn(struct swc_spec *s, const char *text, size_t bytes, char *why,
			  size_t why_bytes);

static void read_spec(struct swc_spec *s, const char *path, spec_parse_fn *parse)
{
	char why[SWC_TEXT_BYTES] = "out of memory", *text = NULL;
	size_t bytes;
	int ret;

	if (swc_file_read(path, SWC_TEXT_FILE_MAX_BYTES, &text, &bytes, why, sizeof(why)))
		plan_bad("%s", why);
	ret = parse(s, text, bytes, why, sizeof(why));
	free(text);
	if (ret == -ENOMEM)
		plan_no_memory();
	if (ret)
		plan_bad("--spec %s: %s", path, why);
}

void spec_read_orders(struct swc_spec *s, const char *path)
{
	read_spec(s, path, swc_spec_parse_orders);
}

void spec_read_allocate(struct swc_spec *s, const char *path)
{
	read_spec(s, path, swc_spec_parse_allocate);
}

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_OWNER_H
#define SWC_OWNER_H

#include <linux/types.h>

struct file;
struct swc_ctx;

void swc_owner_watch(struct swc_ctx *ctx);
void swc_owner_unwatch(struct swc_ctx *ctx);
void swc_owner_explain(const struct swc_ctx *ctx, const char *otherwise, char *text);
bool swc_owner_has_exited(const struct swc_ctx *ctx);
bool swc_owner_has_closed(const struct swc_ctx *ctx, const struct file *file);

#endif /* SWC_OWNER_H */

/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_MATCH_H
#define SWC_MATCH_H

#include "exec/operation.h"

int swc_match(struct swc_req *req, bool inline_ok);
int swc_match_reserve(struct swc_ctx *ctx, struct swc_member *member, u32 n, u64 *base);
int swc_match_reserved(struct swc_req *req, u64 seq);
int swc_match_unreserve(struct swc_member *member);

#endif /* SWC_MATCH_H */

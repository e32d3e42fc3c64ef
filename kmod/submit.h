/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SWC_SUBMIT_H
#define SWC_SUBMIT_H

#include "collective.h"

int swc_submit(struct swc_part *part, bool inline_ok);

#endif /* SWC_SUBMIT_H */

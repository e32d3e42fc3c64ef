/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers in files have decimal points, whatever the thread's language. */
#ifndef SWC_POINTS_H
#define SWC_POINTS_H

#include <locale.h>
#include <stdbool.h>

struct swc_points {
	locale_t c, old;
};

/* From here to swc_points_restore(), for this thread; false: no memory, and nothing has changed. */
bool swc_points_use(struct swc_points *p);
void swc_points_restore(struct swc_points *p);

#endif /* SWC_POINTS_H */

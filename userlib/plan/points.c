// SPDX-License-Identifier: LGPL-2.1-or-later
#include "points.h"

bool swc_points_use(struct swc_points *p)
{
	p->c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	if (p->c)
		p->old = uselocale(p->c);
	return p->c;
}

void swc_points_restore(struct swc_points *p)
{
	uselocale(p->old);
	freelocale(p->c);
}

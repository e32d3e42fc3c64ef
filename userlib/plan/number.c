// SPDX-License-Identifier: LGPL-2.1-or-later
/* Numbers as text; see number.h. */
#include "plan/number.h"

bool swc_number_scan(const char **at, uint64_t max, uint64_t *n)
{
	const char *s = *at;
	uint64_t v = 0;

	for (; *s >= '0' && *s <= '9'; s++) {
		uint64_t digit = (uint64_t)(*s - '0');

		if (v > (max - digit) / 10 || digit > max)
			return false;
		v = v * 10 + digit;
	}
	if (s == *at)
		return false;
	*at = s;
	*n = v;
	return true;
}

bool swc_number_parse(const char *word, uint64_t min, uint64_t max, uint64_t *n)
{
	uint64_t v;

	if (!swc_number_scan(&word, max, &v) || *word || v < min)
		return false;
	*n = v;
	return true;
}

bool swc_number_locale_enter(struct swc_number_locale *l)
{
	l->c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	if (l->c)
		l->old = uselocale(l->c);
	return l->c;
}

void swc_number_locale_leave(struct swc_number_locale *l)
{
	uselocale(l->old);
	freelocale(l->c);
}

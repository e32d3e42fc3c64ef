// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Texts about failures are written once and read by processes of different pid namespaces.
 */
#include "text.h"

/* The number at *@from, which moves behind its end. */
static u32 read_pid_ns(const char **from)
{
	u32 ns = 0;
	u8 c;

	while ((c = **from) && c != SWC_TEXT_NS_END) {
		ns = ns << 4 | (c <= '9' ? c - '0' : c - 'a' + 10);
		++*from;
	}
	if (c)
		++*from;
	return ns;
}

void swc_text_read(char *to, const char *from, u32 pid_ns)
{
	static const char elsewhere[] = " in another pid namespace";
	const char *end = to + SWC_TEXT_BYTES - 1, *words;
	u32 ns;

	memset(to, 0, SWC_TEXT_BYTES);
	while (*from && to < end) {
		if (*from != SWC_TEXT_NS) {
			*to++ = *from++;
			continue;
		}
		from++;
		ns = read_pid_ns(&from);
		if (!pid_ns || ns == pid_ns)
			continue;
		for (words = elsewhere; *words && to < end; words++)
			*to++ = *words;
	}
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Text in memory; see text.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/text.h"

void swc_text_printf(struct swc_text *t, const char *format, ...)
{
	va_list args;
	int n;

	while (!t->failed) {
		size_t left = t->room - t->used, want;
		char *p;

		va_start(args, format);
		n = vsnprintf(t->at ? t->at + t->used : NULL, left, format, args);
		va_end(args);
		if (n >= 0 && (size_t)n < left) {
			t->used += (size_t)n;
			return;
		}
		want = 2 * t->room + (size_t)n + 64;
		p = n < 0 ? NULL : realloc(t->at, want);
		if (!p) {
			t->failed = true;
			return;
		}
		t->at = p;
		t->room = want;
	}
}

int swc_text_words(char *line, char **word, int max)
{
	char *save = NULL;
	int n = 0;

	line[strcspn(line, "#\r\n")] = 0;
	for (char *w = strtok_r(line, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
		if (n == max)
			return max + 1;
		word[n++] = w;
	}
	return n;
}

int swc_text_refuse(char *why, size_t why_bytes, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (why_bytes)
		vsnprintf(why, why_bytes, format, args);
	va_end(args);
	/* It may quote what was read: it stays one line, and moves no cursor. */
	for (size_t i = 0; i < why_bytes && why[i]; i++)
		if ((unsigned char)why[i] < ' ' || why[i] == 127)
			why[i] = '?';
	return -EINVAL;
}

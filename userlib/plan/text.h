/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Text in memory: output that grows, lines of input cut into words, and one line on what is wrong.
 */
#ifndef SWC_PLAN_TEXT_H
#define SWC_PLAN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct swc_text - text that is being written; begin with zeros
 * @at: the text, NUL-terminated; NULL while there is none. The caller's, to be freed with free()
 * @used: its length without the NUL
 * @room: bytes of memory
 * @failed: there was no memory; stays set, and nothing more is added
 */
struct swc_text {
	char *at;
	size_t used, room;
	bool failed;
};

void __attribute__((format(printf, 2, 3)))
swc_text_printf(struct swc_text *t, const char *format, ...);

/* Called now and then with the share of a text that is written, 0 to 1. May be NULL. */
typedef void swc_text_progress(void *arg, double done);

/*
 * Cut a line into words between blanks and tabs, up to a # or the end of the line. @line is
 * changed; @word gets pointers into it. Returns their number, or max + 1 if there are more than
 * @max.
 */
int swc_text_words(char *line, char **word, int max);

/* Write one line on what is wrong into @why, unless @why_bytes is 0. For `return`: -EINVAL. */
int __attribute__((format(printf, 3, 4)))
swc_text_refuse(char *why, size_t why_bytes, const char *format, ...);

#endif /* SWC_PLAN_TEXT_H */

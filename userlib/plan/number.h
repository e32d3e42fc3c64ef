/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers as text, in files, options and environment variables: the same rules everywhere, in every
 * locale.
 */
#ifndef SWC_PLAN_NUMBER_H
#define SWC_PLAN_NUMBER_H

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Read decimal digits (no sign, no blanks) at *@at as a number of at most @max. true: *@at is
 * behind them. false: there is no digit, or the number is larger; nothing has changed.
 */
bool swc_number_scan(const char **at, uint64_t max, uint64_t *n);

/*
 * The whole of @word as a number from @min to @max; false, and nothing has changed, if it is none.
 */
bool swc_number_parse(const char *word, uint64_t min, uint64_t max, uint64_t *n);

/**
 * struct swc_number_locale - decimal points instead of a locale's commas
 *
 * strtod() and printf() follow the thread's locale; what files hold does not. Between
 * swc_number_locale_enter() and swc_number_locale_leave() numbers of this thread have points.
 */
struct swc_number_locale {
	locale_t c, old;
};

/* false: no memory, and nothing has changed. */
bool swc_number_locale_enter(struct swc_number_locale *l);
void swc_number_locale_leave(struct swc_number_locale *l);

#endif /* SWC_PLAN_NUMBER_H */

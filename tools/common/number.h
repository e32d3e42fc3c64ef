/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers, sizes and times as text: parsing with a range, and printing with units. Nothing here prints a
 * message; cli.h does that for command lines.
 */
#ifndef TOOLS_NUMBER_H
#define TOOLS_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/*
 * All of @text must be a number from @min to @max. Return 0 and the number in *@out, or -EINVAL. Sizes are
 * in bytes and take the suffixes K, M, G and T (powers of 1024, in either case, optionally followed by B or
 * iB); a fraction is accepted if the size is a whole number of bytes, as in 1.5K.
 */
int number_parse(const char *text, long long min, long long max, long long *out);
int number_parse_real(const char *text, double min, double max, double *out);
int number_parse_size(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* Room for any text below. */
#define NUMBER_TEXT 32

/* "1.5 KiB", "37.81 us": four significant digits. Return @text. */
const char *number_bytes(double bytes, char text[NUMBER_TEXT]);
const char *number_ns(double ns, char text[NUMBER_TEXT]);

#endif /* TOOLS_NUMBER_H */

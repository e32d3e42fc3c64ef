// SPDX-License-Identifier: GPL-2.0-only
/* Numbers, sizes and times as text, for command lines, environment variables and tables. */
#include "common/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int number_parse(const char *text, long long min, long long max, long long *out)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(text, &end, 10);
	if (errno || end == text || *end || isspace((unsigned char)*text) || v < min || v > max)
		return -EINVAL;
	*out = v;
	return 0;
}

int number_parse_real(const char *text, double min, double max, double *out)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(text, &end);
	if (errno || end == text || *end || isspace((unsigned char)*text) ||
	    !(v >= min && v <= max))
		return -EINVAL;
	*out = v;
	return 0;
}

/* The factor of a suffix, after which *end points behind it; 1 if there is none. */
static double suffix(char **end)
{
	static const char letters[] = "KMGT";
	const char *s = **end ? strchr(letters, toupper((unsigned char)**end)) : NULL;

	if (!s)
		return 1;
	++*end;
	if (!strcmp(*end, "B") || !strcmp(*end, "iB"))
		*end += strlen(*end);
	return (double)(1ull << 10 * (s - letters + 1));
}

int number_parse_size(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(text, &end);
	if (errno || end == text || isspace((unsigned char)*text))
		return -EINVAL;
	v *= suffix(&end);
	if (*end || !(v >= (double)min && v <= (double)max) || fabs(v - trunc(v)) > 0)
		return -EINVAL;
	*out = (uint64_t)v;
	return 0;
}

static const char *scaled(double v, double factor, const char *const *units, int n,
			  char text[NUMBER_TEXT])
{
	int i = 0;

	for (; i + 1 < n && v >= factor; i++)
		v /= factor;
	snprintf(text, NUMBER_TEXT, "%.4g %s", v, units[i]);
	return text;
}

const char *number_bytes(double bytes, char text[NUMBER_TEXT])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };

	return scaled(bytes, 1024, units, 6, text);
}

const char *number_ns(double ns, char text[NUMBER_TEXT])
{
	static const char *const units[] = { "ns", "us", "ms", "s" };

	return scaled(ns, 1000, units, 4, text);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The file with the times of products on this machine. Text, one measurement per line, # begins a
 * comment:
 *
 *	product TYPE M N K MICROSECONDS
 *	product f32 128 32 512 97.25
 *
 * Later lines override earlier ones, so new measurements are appended.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "overlap/overlap.h"
#include "plan/number.h"
#include "plan/text.h"
#include "src/files.h"

#define WORDS 6

static int grid_index(uint64_t size)
{
	for (int i = 0; i < SWC_OV_GRID; i++)
		if (swc_ov_grid[i] == size)
			return i;
	return -1;
}

/* Read a line. 1: a time of this type; 0: another valid line; -EINVAL. */
static int parse(char *line, enum swingcoll_dtype dtype, int at[3], double *us)
{
	char *word[WORDS], *end;
	int n = swc_text_words(line, word, WORDS);
	uint64_t size[3];

	if (!n)
		return 0;
	if (n != WORDS || strcmp(word[0], "product") || swingcoll_dtype_parse(word[1]) < 0)
		return -EINVAL;
	for (int i = 0; i < 3; i++)
		if (!swc_number_parse(word[2 + i], 0, UINT64_MAX, &size[i]))
			return -EINVAL;
	*us = strtod(word[5], &end);
	if (*end || !(*us > 0) || isinf(*us))
		return -EINVAL;
	if (swingcoll_dtype_parse(word[1]) != (int)dtype)
		return 0;
	for (int i = 0; i < 3; i++) {
		at[i] = grid_index(size[i]);
		if (at[i] < 0)
			return 0;
	}
	return 1;
}

int swc_ov_table_read(struct swc_ov_rates *rates, const char *path, enum swingcoll_dtype dtype,
		      char *why, size_t why_bytes)
{
	bool have[SWC_OV_GRID][SWC_OV_GRID][SWC_OV_GRID] = { 0 };
	struct swc_number_locale locale;
	char *text, *next, *line;
	int at[3] = { 0 }, n = 0;
	unsigned long number = 0;
	size_t bytes;
	double us;
	int ret = swc_file_read(path, SWC_TEXT_FILE_MAX_BYTES, &text, &bytes, why, why_bytes);

	if (ret)
		return ret == -ENOENT ? -ENODATA : ret;
	if (!swc_number_locale_enter(&locale)) {
		free(text);
		swc_text_refuse(why, why_bytes, "%s: %s", path, strerror(ENOMEM));
		return -ENOMEM;
	}
	next = text;
	while (ret >= 0 && (line = strsep(&next, "\n"))) {
		number++;
		ret = parse(line, dtype, at, &us);
		if (ret < 0)
			swc_text_refuse(
				why, why_bytes,
				"%s: line %lu: expected product TYPE M N K MICROSECONDS: "
				"correct it, or delete the file, which is then written anew",
				path, number);
		if (ret <= 0)
			continue;
		rates->log_rate[at[0]][at[1]][at[2]] = log(2e6 * (double)swc_ov_grid[at[0]] *
							   (double)swc_ov_grid[at[1]] *
							   (double)swc_ov_grid[at[2]] / us);
		n += !have[at[0]][at[1]][at[2]];
		have[at[0]][at[1]][at[2]] = true;
	}
	swc_number_locale_leave(&locale);
	free(text);
	if (ret < 0)
		return ret;
	return n == SWC_OV_GRID * SWC_OV_GRID * SWC_OV_GRID ? 0 : -ENODATA;
}

int swc_ov_table_append(const struct swc_ov_rates *rates, const char *path,
			enum swingcoll_dtype dtype)
{
	struct swc_number_locale locale;
	struct swc_text text = { 0 };
	int ret;

	if (!swc_number_locale_enter(&locale))
		return -ENOMEM;
	for (int i = 0; i < SWC_OV_GRID * SWC_OV_GRID * SWC_OV_GRID; i++) {
		int a = i / (SWC_OV_GRID * SWC_OV_GRID), b = i / SWC_OV_GRID % SWC_OV_GRID;
		int c = i % SWC_OV_GRID;
		double m = (double)swc_ov_grid[a], n = (double)swc_ov_grid[b];
		double k = (double)swc_ov_grid[c];

		swc_text_printf(&text, "product %s %.0f %.0f %.0f %.4f\n",
				swingcoll_dtype_name(dtype), m, n, k,
				2e6 * m * n * k / exp(rates->log_rate[a][b][c]));
	}
	swc_number_locale_leave(&locale);
	ret = text.failed ? -ENOMEM : swc_file_append(path, text.at, text.used, NULL, 0);
	free(text.at);
	return ret;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The file with the times of products on this machine. Text, one measurement per line, # begins a comment:
 *
 *	product TYPE M N K MICROSECONDS
 *	product f32 128 32 512 97.25
 *
 * Later lines override earlier ones, so a file is renewed by appending.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "overlap.h"
#include "points.h"

static int grid_index(unsigned long long size)
{
	for (int i = 0; i < SWC_OV_GRID; i++)
		if (swc_ov_grid[i] == size)
			return i;
	return -1;
}

/* 1: a time of this type; 0: another line that makes sense; -EINVAL. */
static int parse(char *line, enum swingcoll_dtype dtype, int at[3], double *us)
{
	unsigned long long size[3];
	char word[16], type[16], tail;
	int n;

	line[strcspn(line, "#\r\n")] = 0;
	if (!line[strspn(line, " \t")])
		return 0;
	n = sscanf(line, "%15s %15s %llu %llu %llu %lf %c", word, type, &size[0], &size[1],
		   &size[2], us, &tail);
	if (n != 6 || strcmp(word, "product") || swingcoll_dtype_parse(type) < 0 || !(*us > 0) ||
	    isinf(*us))
		return -EINVAL;
	if (swingcoll_dtype_parse(type) != (int)dtype)
		return 0;
	for (int i = 0; i < 3; i++) {
		at[i] = grid_index(size[i]);
		if (at[i] < 0)
			return 0;
	}
	return 1;
}

int swc_ov_table_read(struct swc_ov_rates *rates, const char *path, enum swingcoll_dtype dtype)
{
	bool have[SWC_OV_GRID][SWC_OV_GRID][SWC_OV_GRID] = { 0 };
	int at[3] = { 0 }, ret = 0, n = 0;
	struct swc_points points;
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	double us;

	if (!f)
		return errno == ENOENT ? -ENODATA : -errno;
	if (!swc_points_use(&points)) {
		fclose(f);
		return -ENOMEM;
	}
	while (ret >= 0 && getline(&line, &room, f) > 0) {
		ret = parse(line, dtype, at, &us);
		if (ret <= 0)
			continue;
		rates->log_rate[at[0]][at[1]][at[2]] = log(2e6 * (double)swc_ov_grid[at[0]] *
							   (double)swc_ov_grid[at[1]] *
							   (double)swc_ov_grid[at[2]] / us);
		n += !have[at[0]][at[1]][at[2]];
		have[at[0]][at[1]][at[2]] = true;
	}
	swc_points_restore(&points);
	free(line);
	fclose(f);
	if (ret < 0)
		return ret;
	return n == SWC_OV_GRID * SWC_OV_GRID * SWC_OV_GRID ? 0 : -ENODATA;
}

int swc_ov_table_append(const struct swc_ov_rates *rates, const char *path,
			enum swingcoll_dtype dtype)
{
	struct swc_points points;
	FILE *f = fopen(path, "ae");
	int ret = 0;

	if (!f)
		return -errno;
	if (!swc_points_use(&points)) {
		fclose(f);
		return -ENOMEM;
	}
	for (int i = 0; i < SWC_OV_GRID * SWC_OV_GRID * SWC_OV_GRID; i++) {
		int a = i / (SWC_OV_GRID * SWC_OV_GRID), b = i / SWC_OV_GRID % SWC_OV_GRID;
		int c = i % SWC_OV_GRID;
		double m = (double)swc_ov_grid[a], n = (double)swc_ov_grid[b];
		double k = (double)swc_ov_grid[c];

		fprintf(f, "product %s %.0f %.0f %.0f %.4f\n", swingcoll_dtype_name(dtype), m, n, k,
			2e6 * m * n * k / exp(rates->log_rate[a][b][c]));
	}
	swc_points_restore(&points);
	if (ferror(f))
		ret = -EIO;
	if (fclose(f) && !ret)
		ret = -errno;
	return ret;
}

// SPDX-License-Identifier: MIT
/*
 * Reads the optical digits from digits.csv.gz: 1797 lines of 64 pixels (0 to 16) and the digit.
 *
 * Data: E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits (1998), UCI Machine Learning
 * Repository, licence CC BY 4.0; the file used is the copy of its test set that scikit-learn carries
 * (BSD-3-Clause), installed by Debian's package python3-sklearn. It is not part of swingcoll.
 */
#include "digits.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MAX_LINES 100000
#define HELD_OUT 5

static const char *const places[] = {
	"/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz",
	"/usr/lib/python3*/*-packages/sklearn/datasets/data/digits.csv.gz",
	"/usr/local/lib/python3*/*-packages/sklearn/datasets/data/digits.csv.gz",
};

static int find(struct digits *d)
{
	size_t i;
	glob_t g;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (glob(places[i], 0, NULL, &g))
			continue;
		snprintf(d->path, sizeof(d->path), "%s", g.gl_pathv[0]);
		globfree(&g);
		return 0;
	}
	fprintf(stderr, "digits.csv.gz not found: apt-get install --no-install-recommends "
			"python3-sklearn, or name the file with --data\n");
	return -ENOENT;
}

static int parse(const char *line, struct digit *digit)
{
	const char *s = line;
	char *end;
	int i;

	for (i = 0; i <= DIGIT_PIXELS; i++) {
		long v = strtol(s, &end, 10);

		if (end == s || v < 0 || v > 16)
			return -EINVAL;
		if (i < DIGIT_PIXELS)
			digit->pixel[i] = (float)v / 16;
		else
			digit->label = (int)v;
		if (*end != (i < DIGIT_PIXELS ? ',' : '\n'))
			return -EINVAL;
		s = end + 1;
	}
	return digit->label < DIGIT_CLASSES ? 0 : -EINVAL;
}

static int read_lines(struct digits *d, gzFile f)
{
	char line[512];
	size_t n;
	int ret;

	for (n = 0; n < MAX_LINES && gzgets(f, line, sizeof(line)); n++) {
		struct digit **set = n % HELD_OUT == HELD_OUT - 1 ? &d->test : &d->train;
		size_t *used = n % HELD_OUT == HELD_OUT - 1 ? &d->ntest : &d->ntrain;
		struct digit *more = realloc(*set, (*used + 1) * sizeof(**set));

		if (!more)
			return -ENOMEM;
		*set = more;
		ret = parse(line, &more[*used]);
		if (ret) {
			fprintf(stderr,
				"%s:%zu: expected 64 numbers from 0 to 16 and a digit, with "
				"commas between them\n",
				d->path, n + 1);
			return ret;
		}
		(*used)++;
	}
	return d->ntest ? 0 : -ENODATA;
}

int digits_load(struct digits *d, const char *path)
{
	gzFile f;
	int ret;

	memset(d, 0, sizeof(*d));
	if (path)
		snprintf(d->path, sizeof(d->path), "%s", path);
	else if (find(d))
		return -ENOENT;
	errno = 0;
	f = gzopen(d->path, "rb");
	if (!f) {
		fprintf(stderr, "%s: %s\n", d->path, errno ? strerror(errno) : "out of memory");
		return -ENOENT;
	}
	ret = read_lines(d, f);
	gzclose(f);
	if (ret == -ENODATA)
		fprintf(stderr, "%s: too few lines\n", d->path);
	if (ret)
		digits_free(d);
	return ret;
}

void digits_free(struct digits *d)
{
	free(d->train);
	free(d->test);
	d->train = NULL;
	d->test = NULL;
	d->ntrain = 0;
	d->ntest = 0;
}

/* SPDX-License-Identifier: MIT */
/* The optical digits: 8x8 images of handwritten digits with their labels. */
#ifndef DIGITS_H
#define DIGITS_H

#include <stddef.h>

#define DIGIT_PIXELS 64
#define DIGIT_CLASSES 10

struct digit {
	float pixel[DIGIT_PIXELS]; /* 0 to 1 */
	int label;
};

struct digits {
	struct digit *train;
	struct digit *test;
	size_t ntrain;
	size_t ntest;
	char path[256];
};

/*
 * path NULL: the file of Debian's python3-sklearn. Every fifth image is held out for testing. Returns 0, or a
 * negative errno after a message on stderr.
 */
int digits_load(struct digits *d, const char *path);
void digits_free(struct digits *d);

#endif /* DIGITS_H */

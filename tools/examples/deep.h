/* SPDX-License-Identifier: MIT */
/*
 * A perceptron of several layers, computed one layer at a time, so that communication can go on between layers.
 * Weights and gradients of a layer are contiguous, with padding at the end.
 */
#ifndef DEEP_H
#define DEEP_H

#include <stddef.h>

#include "digits.h"

#define DEEP_LAYERS 6
#define DEEP_WIDTH 96
#define DEEP_BATCH 96 /* images of a batch, at most */

/* Where the weights of a layer begin (by output, each with its bias last); DEEP_LAYERS: where all end. */
size_t deep_first(int layer);

struct deep {
	int n; /* images */
	float act[DEEP_LAYERS + 1][DEEP_BATCH][DEEP_WIDTH];
	float delta[2][DEEP_BATCH][DEEP_WIDTH];
	int label[DEEP_BATCH];
};

void deep_init(float *w, unsigned int seed);
/* The images of a batch; at most DEEP_BATCH. */
void deep_load(struct deep *d, const struct digit *const *image, int n);
/* Layers in ascending order. */
void deep_forward(struct deep *d, const float *w, int layer);
/* After the last layer: set the errors of the backward pass; return the sum of the cross entropies. */
float deep_loss(struct deep *d);
/* Layers in descending order; stores the layer's gradient. */
void deep_backward(struct deep *d, const float *w, float *grad, int layer);
/* How many images the last layer classifies correctly. */
int deep_right(const struct deep *d);

#endif /* DEEP_H */

// SPDX-License-Identifier: MIT
/* Forward and backward pass of one layer of a perceptron, for a batch of images. */
#include "deep.h"

#include <math.h>
#include <string.h>

/* A layer is divided evenly among up to this number of ranks. */
#define PAD 64

static int inputs(int layer)
{
	return layer ? DEEP_WIDTH : DIGIT_PIXELS;
}

static int outputs(int layer)
{
	return layer == DEEP_LAYERS - 1 ? DIGIT_CLASSES : DEEP_WIDTH;
}

size_t deep_first(int layer)
{
	size_t at = 0;

	for (int l = 0; l < layer; l++)
		at += ((size_t)outputs(l) * (inputs(l) + 1) + PAD - 1) / PAD * PAD;
	return at;
}

void deep_init(float *w, unsigned int seed)
{
	memset(w, 0, deep_first(DEEP_LAYERS) * sizeof(*w));
	for (int l = 0; l < DEEP_LAYERS; l++) {
		float *row = w + deep_first(l);
		float range = sqrtf(6.0f / (float)inputs(l));

		for (int o = 0; o < outputs(l); o++, row += inputs(l) + 1) {
			for (int i = 0; i < inputs(l); i++) {
				seed = seed * 1664525u + 1013904223u;
				row[i] = range * ((float)(seed >> 8) / 8388608.0f - 1.0f);
			}
		}
	}
}

void deep_load(struct deep *d, const struct digit *const *image, int n)
{
	d->n = n;
	for (int b = 0; b < n; b++) {
		memcpy(d->act[0][b], image[b]->pixel, sizeof(image[b]->pixel));
		d->label[b] = image[b]->label;
	}
}

void deep_forward(struct deep *d, const float *w, int layer)
{
	int in = inputs(layer);
	const float *row = w + deep_first(layer);

	for (int o = 0; o < outputs(layer); o++, row += in + 1) {
		for (int b = 0; b < d->n; b++) {
			const float *x = d->act[layer][b];
			float sum = row[in];

			for (int i = 0; i < in; i++)
				sum += row[i] * x[i];
			d->act[layer + 1][b][o] = layer == DEEP_LAYERS - 1 || sum > 0 ? sum : 0;
		}
	}
}

float deep_loss(struct deep *d)
{
	float loss = 0;

	for (int b = 0; b < d->n; b++) {
		const float *y = d->act[DEEP_LAYERS][b];
		float *delta = d->delta[(DEEP_LAYERS - 1) & 1][b], max = y[0], sum = 0;

		for (int o = 1; o < DIGIT_CLASSES; o++)
			max = y[o] > max ? y[o] : max;
		for (int o = 0; o < DIGIT_CLASSES; o++)
			sum += delta[o] = expf(y[o] - max);
		for (int o = 0; o < DIGIT_CLASSES; o++)
			delta[o] = delta[o] / sum - (o == d->label[b] ? 1.0f : 0.0f);
		loss += logf(sum) - (y[d->label[b]] - max);
	}
	return loss;
}

void deep_backward(struct deep *d, const float *w, float *grad, int layer)
{
	int in = inputs(layer), out = outputs(layer);
	const float *row = w + deep_first(layer);
	float *g = grad + deep_first(layer);

	memset(g, 0, (deep_first(layer + 1) - deep_first(layer)) * sizeof(*g));
	for (int b = 0; b < d->n; b++)
		memset(d->delta[(layer + 1) & 1][b], 0, sizeof(d->delta[0][b]));
	for (int o = 0; o < out; o++, row += in + 1, g += in + 1) {
		for (int b = 0; b < d->n; b++) {
			const float *x = d->act[layer][b];
			float delta = d->delta[layer & 1][b][o],
			      *below = d->delta[(layer + 1) & 1][b];

			g[in] += delta;
			for (int i = 0; i < in; i++)
				g[i] += delta * x[i];
			for (int i = 0; layer && i < in; i++)
				below[i] += delta * row[i];
		}
	}
	/* Units with output 0 pass no error on. */
	for (int b = 0; layer && b < d->n; b++)
		for (int i = 0; i < in; i++)
			if (d->act[layer][b][i] <= 0)
				d->delta[(layer + 1) & 1][b][i] = 0;
}

int deep_right(const struct deep *d)
{
	int right = 0;

	for (int b = 0; b < d->n; b++) {
		const float *y = d->act[DEEP_LAYERS][b];
		int best = 0;

		for (int o = 1; o < DIGIT_CLASSES; o++)
			best = y[o] > y[best] ? o : best;
		right += best == d->label[b];
	}
	return right;
}

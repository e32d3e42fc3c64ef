// SPDX-License-Identifier: MIT
/*
 * Forward and backward pass of a 64-64-10 perceptron: rectified linear units, softmax, cross entropy. No
 * I/O and no state. Inputs of zero are skipped, since half of the pixels of a digit are white.
 */
#include "mlp.h"

#include <math.h>
#include <string.h>

/* Uniform in -1 to 1, by a fixed generator: every machine begins with the same weights. */
static float random_unit(unsigned int *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(*state >> 8) / (float)(1 << 23) - 1;
}

void mlp_init(float *w, unsigned int seed)
{
	const float s1 = sqrtf(6.0f / DIGIT_PIXELS), s2 = sqrtf(6.0f / MLP_HIDDEN);
	int i;

	memset(w, 0, MLP_WEIGHTS * sizeof(*w));
	for (i = MLP_W1; i < MLP_B1; i++)
		w[i] = s1 * random_unit(&seed);
	for (i = MLP_W2; i < MLP_B2; i++)
		w[i] = s2 * random_unit(&seed);
}

static void forward(const float *w, const float *x, float *hidden, float *out)
{
	int i, j;

	memcpy(hidden, w + MLP_B1, MLP_HIDDEN * sizeof(*hidden));
	for (i = 0; i < DIGIT_PIXELS; i++) {
		const float *row = w + MLP_W1 + i * MLP_HIDDEN;

		if (x[i] == 0)
			continue;
		for (j = 0; j < MLP_HIDDEN; j++)
			hidden[j] += x[i] * row[j];
	}
	memcpy(out, w + MLP_B2, DIGIT_CLASSES * sizeof(*out));
	for (j = 0; j < MLP_HIDDEN; j++) {
		const float *row = w + MLP_W2 + j * DIGIT_CLASSES;

		if (hidden[j] <= 0) {
			hidden[j] = 0;
			continue;
		}
		for (i = 0; i < DIGIT_CLASSES; i++)
			out[i] += hidden[j] * row[i];
	}
}

/* Turns out into probabilities; returns -log of the label's. */
static float softmax(float *out, int label)
{
	float max = out[0], sum = 0;
	int i;

	for (i = 1; i < DIGIT_CLASSES; i++)
		max = out[i] > max ? out[i] : max;
	for (i = 0; i < DIGIT_CLASSES; i++) {
		out[i] = expf(out[i] - max);
		sum += out[i];
	}
	for (i = 0; i < DIGIT_CLASSES; i++)
		out[i] /= sum;
	return -logf(out[label] > 1e-30f ? out[label] : 1e-30f);
}

float mlp_gradient(const float *w, const struct digit *digit, float *grad)
{
	float hidden[MLP_HIDDEN], out[DIGIT_CLASSES], dh[MLP_HIDDEN], loss;
	int i, j;

	forward(w, digit->pixel, hidden, out);
	loss = softmax(out, digit->label);
	out[digit->label] -= 1; /* the derivative with respect to the inputs of softmax */

	for (i = 0; i < DIGIT_CLASSES; i++)
		grad[MLP_B2 + i] += out[i];
	for (j = 0; j < MLP_HIDDEN; j++) {
		const float *row = w + MLP_W2 + j * DIGIT_CLASSES;
		float *g = grad + MLP_W2 + j * DIGIT_CLASSES;

		dh[j] = 0;
		if (hidden[j] == 0)
			continue;
		for (i = 0; i < DIGIT_CLASSES; i++) {
			g[i] += hidden[j] * out[i];
			dh[j] += row[i] * out[i];
		}
		grad[MLP_B1 + j] += dh[j];
	}
	for (i = 0; i < DIGIT_PIXELS; i++) {
		const float x = digit->pixel[i];
		float *g = grad + MLP_W1 + i * MLP_HIDDEN;

		if (x == 0)
			continue;
		for (j = 0; j < MLP_HIDDEN; j++)
			g[j] += x * dh[j];
	}
	return loss;
}

int mlp_classify(const float *w, const struct digit *digit)
{
	float hidden[MLP_HIDDEN], out[DIGIT_CLASSES];
	int i, best = 0;

	forward(w, digit->pixel, hidden, out);
	for (i = 1; i < DIGIT_CLASSES; i++)
		if (out[i] > out[best])
			best = i;
	return best;
}

void mlp_step(float *w, float *v, const float *grad, float scale, float rate, float momentum)
{
	int i;

	for (i = 0; i < MLP_WEIGHTS; i++) {
		v[i] = momentum * v[i] + scale * grad[i];
		w[i] -= rate * v[i];
	}
}

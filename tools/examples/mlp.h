/* SPDX-License-Identifier: MIT */
/* A perceptron with one hidden layer whose weights and gradients are flat vectors. */
#ifndef MLP_H
#define MLP_H

#include <stddef.h>

#include "digits.h"

#define MLP_HIDDEN 64

/* Layout: hidden weights by input, hidden biases, output weights by hidden unit, output biases. */
#define MLP_W1 0
#define MLP_B1 (MLP_W1 + DIGIT_PIXELS * MLP_HIDDEN)
#define MLP_W2 (MLP_B1 + MLP_HIDDEN)
#define MLP_B2 (MLP_W2 + MLP_HIDDEN * DIGIT_CLASSES)
#define MLP_WEIGHTS (MLP_B2 + DIGIT_CLASSES)

/* Small random weights, the same for the same seed. */
void mlp_init(float *w, unsigned int seed);

/* Adds the gradient of one image's cross entropy to grad; returns the cross entropy. */
float mlp_gradient(const float *w, const struct digit *digit, float *grad);

/* The most likely class. */
int mlp_classify(const float *w, const struct digit *digit);

/* Gradient descent with momentum: v = momentum v + scale grad; w -= rate v. */
void mlp_step(float *w, float *v, const float *grad, float scale, float rate, float momentum);

#endif /* MLP_H */

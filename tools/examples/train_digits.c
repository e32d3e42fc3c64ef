// SPDX-License-Identifier: MIT
/*
 * Data-parallel training by several processes: each rank takes its share of every batch, the gradients of all
 * layers are one vector that swingcoll_allreduce() sums, and all ranks take the same step. At the end the
 * weights must be identical bits on all ranks, and equal those of one process that trains alone on the same
 * batches, except for rounding (it adds in another order).
 *
 * The data is not part of this program; digits.c names its origin and licence.
 */
#include "digits.h"
#include "mlp.h"
#include "common/cli.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/team.h"
#include "swingcoll.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED 1
#define BATCH 96
#define RATE 0.05f
#define MOMENTUM 0.9f
#define WANTED_ACCURACY 93.0
#define TOLERANCE 1e-3

struct options {
	int epochs;
	int use_io_uring;
	long long slot_max;
	struct digits data;
};

/* The training of one rank; without a comm, of the whole batch. */
struct trainer {
	const struct options *opt;
	struct swingcoll_comm *comm;
	int rank;
	int nranks;
	double allreduce_s;
	unsigned long allreduces;
	float w[MLP_WEIGHTS];
	float v[MLP_WEIGHTS];
	float grad[MLP_WEIGHTS + 1]; /* the last element is the loss */
	size_t *order;
	unsigned int shuffle;
};

static int sum_floats(struct trainer *t, float *v, size_t n)
{
	double t0 = clock_now();
	int ret;

	if (!t->comm)
		return 0;
	ret = swingcoll_allreduce(v, v, n, SWINGCOLL_F32, SWINGCOLL_SUM, t->comm);
	t->allreduce_s += clock_now() - t0;
	t->allreduces++;
	return ret;
}

/* The same permutation on all ranks and in the training by one process. */
static void shuffle(struct trainer *t)
{
	size_t i, j, tmp;

	for (i = t->opt->data.ntrain - 1; i > 0; i--) {
		t->shuffle = t->shuffle * 1664525u + 1013904223u;
		j = (size_t)((unsigned long long)t->shuffle * (i + 1) >> 32);
		tmp = t->order[i];
		t->order[i] = t->order[j];
		t->order[j] = tmp;
	}
}

static int train_epoch(struct trainer *t, float *loss)
{
	const struct digits *d = &t->opt->data;
	size_t first, i;
	double sum = 0;
	int ret;

	shuffle(t);
	for (first = 0; first < d->ntrain; first += BATCH) {
		size_t end = first + BATCH < d->ntrain ? first + BATCH : d->ntrain;

		memset(t->grad, 0, sizeof(t->grad));
		for (i = first + (size_t)t->rank; i < end; i += (size_t)t->nranks)
			t->grad[MLP_WEIGHTS] += mlp_gradient(t->w, &d->train[t->order[i]], t->grad);
		ret = sum_floats(t, t->grad, MLP_WEIGHTS + 1);
		if (ret)
			return ret;
		sum += (double)t->grad[MLP_WEIGHTS];
		mlp_step(t->w, t->v, t->grad, 1.0f / (float)(end - first), RATE, MOMENTUM);
	}
	*loss = (float)(sum / (double)d->ntrain);
	return 0;
}

/* Percentage of the images held out that are classified correctly; each rank takes its share. */
static int accuracy(struct trainer *t, double *percent)
{
	const struct digits *d = &t->opt->data;
	int32_t right = 0;
	size_t i;
	int ret = 0;

	for (i = (size_t)t->rank; i < d->ntest; i += (size_t)t->nranks)
		right += mlp_classify(t->w, &d->test[i]) == d->test[i].label;
	if (t->comm)
		ret = swingcoll_allreduce(&right, &right, 1, SWINGCOLL_I32, SWINGCOLL_SUM, t->comm);
	*percent = 100.0 * right / (double)d->ntest;
	return ret;
}

static int train(struct trainer *t, double *percent, int verbose)
{
	double t0, before, epoch_s;
	float loss;
	size_t i;
	int e, ret;

	t->shuffle = SEED;
	t->order = calloc(t->opt->data.ntrain, sizeof(*t->order));
	if (!t->order)
		return -ENOMEM;
	for (i = 0; i < t->opt->data.ntrain; i++)
		t->order[i] = i;
	mlp_init(t->w, SEED);
	memset(t->v, 0, sizeof(t->v));
	for (e = 1, ret = 0; !ret && e <= t->opt->epochs; e++) {
		t0 = clock_now();
		before = t->allreduce_s;
		ret = train_epoch(t, &loss);
		epoch_s = clock_now() - t0;
		if (!ret)
			ret = accuracy(t, percent);
		if (!ret && verbose) {
			printf("epoch %2d  loss %.4f  held out %5.2f %% right  allreduce %6.1f ms of %7.1f "
			       "ms (%2.0f %%)\n",
			       e, (double)loss, *percent, (t->allreduce_s - before) * 1e3,
			       epoch_s * 1e3, 100 * (t->allreduce_s - before) / epoch_s);
			fflush(stdout);
		}
	}
	free(t->order);
	return ret;
}

/* ------------------------------------------------------------------ verdict */

static int same_everywhere(struct trainer *t, int *same)
{
	uint64_t all[TEAM_MAX_RANKS], mine = hash_bytes(t->w, sizeof(t->w));
	int i, ret;

	ret = swingcoll_allgather(&mine, all, 1, SWINGCOLL_U64, t->comm);
	*same = !ret;
	for (i = 0; !ret && i < t->nranks; i++) {
		if (all[i] == mine)
			continue;
		*same = 0;
		if (!t->rank)
			printf("rank %d has different weights: hash %016llx, rank 0 %016llx\n", i,
			       (unsigned long long)all[i], (unsigned long long)mine);
	}
	if (!t->rank && *same)
		printf("weights: identical bits on all %d ranks (hash %016llx)\n", t->nranks,
		       (unsigned long long)mine);
	return ret;
}

/* Largest difference from the weights of one process, relative to the largest weight. */
static int compare_alone(const struct trainer *t, int *like)
{
	struct trainer *alone = calloc(1, sizeof(*alone));
	double percent, max = 0, diff = 0, t0 = clock_now();
	int i, ret;

	if (!alone)
		return -ENOMEM;
	alone->opt = t->opt;
	alone->nranks = 1;
	ret = train(alone, &percent, 0);
	for (i = 0; i < MLP_WEIGHTS; i++) {
		max = fmax(max, fabs((double)alone->w[i]));
		diff = fmax(diff, fabs((double)alone->w[i] - (double)t->w[i]));
	}
	*like = !ret && diff <= TOLERANCE * max;
	printf("one process alone: %.2f %% right after %.1f s; largest difference of a weight %.1e of the "
	       "largest weight (allowed %.0e)\n",
	       percent, clock_now() - t0, diff / max, TOLERANCE);
	free(alone);
	return ret;
}

static int verdict(struct trainer *t, double percent)
{
	int same, like = 1, ret;

	ret = same_everywhere(t, &same);
	if (ret || t->rank)
		return ret ? ret : !same;
	ret = compare_alone(t, &like);
	if (ret)
		return ret;
	if (percent < WANTED_ACCURACY)
		printf("accuracy %.2f %% is below %.0f %%: more --epochs?\n", percent,
		       WANTED_ACCURACY);
	printf("%s\n", same && like && percent >= WANTED_ACCURACY ? "OK" : "FAILED");
	return !(same && like && percent >= WANTED_ACCURACY);
}

/* ------------------------------------------------------------------ a rank */

static int failed(struct team *team, struct swingcoll_comm *comm, const char *what, int err)
{
	team_error(team, comm, what, err);
	return 2;
}

static int body(struct team *team, void *arg)
{
	struct options *opt = arg;
	struct swingcoll_comm_opts copts = {
		.use_io_uring = opt->use_io_uring,
		.slot_max = opt->slot_max,
	};
	struct trainer *t = calloc(1, sizeof(*t));
	double percent = 0, t0;
	int ret;

	if (!t)
		return failed(team, NULL, "starting", -ENOMEM);
	t->opt = opt;
	t->rank = team->rank;
	t->nranks = team->nranks;
	ret = swingcoll_comm_create(&t->comm, &team->id, team->nranks, team->rank, &copts);
	if (ret) {
		free(t);
		return failed(team, NULL, "joining the communicator", ret);
	}
	t0 = clock_now();
	ret = train(t, &percent, !team->rank);
	if (!ret && !team->rank)
		printf("%lu allreduces of %d floats on %d ranks: %.0f us each, of %.1f s in all\n",
		       t->allreduces, MLP_WEIGHTS + 1, team->nranks,
		       t->allreduce_s * 1e6 / (double)t->allreduces, clock_now() - t0);
	if (!ret)
		ret = verdict(t, percent);
	if (ret < 0)
		ret = failed(team, t->comm, "training", ret);
	swingcoll_comm_destroy(t->comm);
	free(t);
	return ret;
}

static const char usage_text[] =
	"train_digits [options]\n"
	"\n"
	"Trains a 64-64-10 perceptron on the optical digits by several processes whose gradients swingcoll\n"
	"sums, and compares the result with that of one process.\n";

static const char notes_text[] =
	"Exit status: 0 if all ranks end with identical weights, the same as those of one process, and with\n"
	"more than 93 % right; 1 if not; 2 if anything failed.";

enum {
	OPT_RANKS,
	OPT_EPOCHS,
	OPT_DATA,
	OPT_IO_URING,
	OPT_SLOTS,
};

static const struct cli_option options[] = {
	{ OPT_RANKS, 'n', "ranks", "N", "processes (default 4)" },
	{ OPT_EPOCHS, 'e', "epochs", "N", "passes over the data (default 12)" },
	{ OPT_DATA, 0, "data", "FILE",
	  "digits.csv.gz (default: that of Debian's python3-sklearn)" },
	{ OPT_IO_URING, 0, "io-uring", "MODE", "auto, must or never (default auto)" },
	{ OPT_SLOTS, 0, "slots", NULL,
	  "let the library move small vectors by shared-memory slots, without the kernel" },
	{ 0 },
};

/* The path of the data, or NULL for the default. */
static const char *parse(struct options *opt, struct team *team, int argc, char **argv)
{
	static const char *const modes[] = { "auto", "must", "never", NULL };
	static const int uring[] = { 0, 1, -1 };
	struct cli cli = { .prog = team->prog,
			   .usage = usage_text,
			   .notes = notes_text,
			   .options = options,
			   .argc = argc,
			   .argv = argv };
	const char *path = NULL;
	int id;

	while ((id = cli_next(&cli)) != CLI_END)
		switch (id) {
		case OPT_RANKS:
			team->nranks = (int)cli_number(&cli, 1, BATCH);
			break;
		case OPT_EPOCHS:
			opt->epochs = (int)cli_number(&cli, 1, 1000);
			break;
		case OPT_DATA:
			path = cli.value;
			break;
		case OPT_IO_URING:
			opt->use_io_uring = uring[cli_choice(&cli, modes)];
			break;
		case OPT_SLOTS:
			opt->slot_max = 0;
			break;
		}
	cli_end(&cli);
	return path;
}

int main(int argc, char **argv)
{
	struct options opt = { .epochs = 12, .slot_max = -1 };
	struct team team = { .prog = "train_digits", .nranks = 4 };
	int ret;

	if (digits_load(&opt.data, parse(&opt, &team, argc, argv)))
		return 2;
	printf("data: %s: %zu images to train on, %zu held out (every fifth)\n"
	       "      Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, UCI Machine "
	       "Learning\n      Repository, CC BY 4.0; copy of scikit-learn, BSD-3-Clause\n"
	       "%d ranks, batches of %d, %d weights, io_uring: %s\n",
	       opt.data.path, opt.data.ntrain, opt.data.ntest, team.nranks, BATCH, MLP_WEIGHTS,
	       opt.use_io_uring > 0   ? "yes"
	       : opt.use_io_uring < 0 ? "no, ioctl"
				      : "if allowed");
	ret = swingcoll_unique_id(&team.id);
	if (ret) {
		fprintf(stderr, "train_digits: no random id: %s\n", swingcoll_strerror(ret));
		return 2;
	}
	ret = team_run(&team, body, &opt);
	digits_free(&opt.data);
	return ret;
}

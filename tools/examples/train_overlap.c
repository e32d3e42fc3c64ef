// SPDX-License-Identifier: MIT
/*
 * Four ways to sum gradients during training, on the same data, with results that are identical to the bit:
 *
 * serial	the backward pass of all layers, then the sums, one layer after the other, then the update
 * overlap	the sum of a layer begins when its gradient is complete; the update waits for all sums
 * dear		reduce-scatters during the backward pass, allgathers during the next forward pass: a layer is
 *		updated just before it is used (the order of DeAR, Zhang et al., ICDCS 2023)
 * partitioned	one partitioned allreduce of the whole gradient: a partition is ready when the backward pass
 *		has left all its layers, and a layer waits for its own partitions in the next forward pass
 *
 * The kernel computes the sums; no thread of this program does.
 */
#include "deep.h"
#include "common/cli.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/team.h"
#include "swingcoll.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED 1
#define RATE 0.02f
#define MOMENTUM 0.9f

enum way {
	SERIAL,
	OVERLAP,
	DEAR,
	PARTITIONED,
	WAYS
};

static const char *const way_names[WAYS] = { "serial", "overlap", "dear", "partitioned" };

struct options {
	int epochs;
	int partitions;
	struct digits data;
};

struct trainer {
	const struct options *opt;
	enum way way;
	struct swingcoll_comm *comm;   /* for all but allgathers */
	struct swingcoll_comm *gather; /* for allgathers, which have an order of their own */
	int rank, nranks, npartitions;
	size_t n, partition; /* floats of all partitions, with padding; of one partition */
	float *w, *v, *grad, *shard;
	struct deep deep;
	struct swingcoll_req *req[DEEP_LAYERS];
	struct swingcoll_partitioned *partitioned;
	bool summed; /* the sums of the last step have begun */
	float scale;
	double waited_s;
	unsigned long steps;
};

/* ------------------------------------------------------------------ sums */

static size_t layer_floats(int l)
{
	return deep_first(l + 1) - deep_first(l);
}

static int wait_for(struct trainer *t, struct swingcoll_req **req)
{
	double t0 = clock_now();
	int ret = *req ? swingcoll_wait(*req, NULL) : 0;

	*req = NULL;
	t->waited_s += clock_now() - t0;
	return ret;
}

static int begin_sum(struct trainer *t, int l)
{
	float *g = t->grad + deep_first(l);
	size_t shard = layer_floats(l) / (size_t)t->nranks;

	if (t->way == DEAR)
		return swingcoll_ireduce_scatter(g, t->shard + deep_first(l) / (size_t)t->nranks,
						 shard, SWINGCOLL_F32, SWINGCOLL_SUM, t->comm,
						 &t->req[l]);
	return swingcoll_iallreduce(g, g, layer_floats(l), SWINGCOLL_F32, SWINGCOLL_SUM, t->comm,
				    &t->req[l]);
}

static int begin_gather(struct trainer *t, int l)
{
	return swingcoll_iallgather(t->shard + deep_first(l) / (size_t)t->nranks,
				    t->grad + deep_first(l), layer_floats(l) / (size_t)t->nranks,
				    SWINGCOLL_F32, t->gather, &t->req[l]);
}

/* Mark the partitions for which layer @l was the last one missing: those that begin in it. */
static int mark_ready(struct trainer *t, int l)
{
	size_t first = (deep_first(l) + t->partition - 1) / t->partition;
	size_t end = l == DEEP_LAYERS - 1 ? (size_t)t->npartitions
					  : (deep_first(l + 1) + t->partition - 1) / t->partition;
	int ret = 0;

	for (size_t i = first; i < end && !ret; i++)
		ret = swingcoll_pready(t->partitioned, (int)i);
	return ret;
}

static int wait_parts(struct trainer *t, int l)
{
	double t0 = clock_now();
	int ret = 0;

	for (size_t i = deep_first(l) / t->partition; i * t->partition < deep_first(l + 1) && !ret;
	     i++)
		ret = swingcoll_pwait(t->partitioned, (int)i);
	t->waited_s += clock_now() - t0;
	return ret;
}

/* ------------------------------------------------------------------ a step */

static void update(struct trainer *t, int l)
{
	for (size_t i = deep_first(l); i < deep_first(l + 1); i++) {
		t->v[i] = MOMENTUM * t->v[i] + t->scale * t->grad[i];
		t->w[i] -= RATE * t->v[i];
	}
}

/* Wait for the sums of layer @l of the last step, and update the layer. */
static int finish_layer(struct trainer *t, int l)
{
	int ret = 0;

	if (!t->summed)
		return 0;
	if (t->way == DEAR) {
		ret = wait_for(t, &t->req[l]);
		if (!ret && l + 1 < DEEP_LAYERS)
			ret = begin_gather(t, l + 1);
	} else if (t->way == PARTITIONED) {
		ret = wait_parts(t, l);
	}
	if (!ret)
		update(t, l);
	return ret;
}

/* Wait for all sums of the last step. */
static int finish(struct trainer *t)
{
	int ret = 0;

	for (int l = 0; l < DEEP_LAYERS && !ret; l++)
		ret = finish_layer(t, l);
	if (!ret && t->way == PARTITIONED && t->summed)
		ret = swingcoll_pwait(t->partitioned, SWINGCOLL_ALL_PARTITIONS);
	t->summed = false;
	return ret;
}

static int after_backward(struct trainer *t, int l)
{
	if (t->way == PARTITIONED)
		return mark_ready(t, l);
	return t->way == SERIAL ? 0 : begin_sum(t, l);
}

/* Wait for the sums that must be complete at the end of a step. */
static int after_all(struct trainer *t)
{
	int ret = 0;

	for (int l = DEEP_LAYERS - 1; l >= 0 && !ret && t->way != PARTITIONED; l--) {
		if (t->way == SERIAL)
			ret = begin_sum(t, l);
		if (!ret)
			ret = wait_for(t, &t->req[l]);
	}
	if (!ret && t->way == DEAR)
		ret = begin_gather(t, 0);
	t->summed = true;
	if (ret || t->way == DEAR || t->way == PARTITIONED)
		return ret;
	return finish(t);
}

static int step(struct trainer *t, int batch, double *loss)
{
	int ret = 0, l;

	for (l = 0; l < DEEP_LAYERS && !ret; l++) {
		ret = finish_layer(t, l);
		if (!ret)
			deep_forward(&t->deep, t->w, l);
	}
	if (!ret && t->way == PARTITIONED) {
		if (t->summed)
			ret = swingcoll_pwait(t->partitioned, SWINGCOLL_ALL_PARTITIONS);
		if (!ret)
			ret = swingcoll_pstart(t->partitioned);
	}
	t->summed = false;
	*loss += (double)deep_loss(&t->deep);
	for (l = DEEP_LAYERS - 1; l >= 0 && !ret; l--) {
		deep_backward(&t->deep, t->w, t->grad, l);
		ret = after_backward(t, l);
	}
	t->scale = 1.0f / (float)batch;
	t->steps++;
	return ret ? ret : after_all(t);
}

static int train(struct trainer *t)
{
	const struct digits *data = &t->opt->data;
	const struct digit *image[DEEP_BATCH];
	double loss = 0;
	int ret = 0;

	for (int e = 0; e < t->opt->epochs && !ret; e++) {
		for (size_t first = 0; first + DEEP_BATCH <= data->ntrain && !ret;
		     first += DEEP_BATCH) {
			int n = 0;

			for (size_t i = first + (size_t)t->rank; i < first + DEEP_BATCH;
			     i += (size_t)t->nranks)
				image[n++] = &data->train[i];
			deep_load(&t->deep, image, n);
			ret = step(t, DEEP_BATCH, &loss);
		}
	}
	return ret ? ret : finish(t);
}

/* Percentage of the images held out that are classified correctly; each rank takes all of them. */
static double accuracy(struct trainer *t)
{
	const struct digits *data = &t->opt->data;
	const struct digit *image[DEEP_BATCH];
	int right = 0;

	for (size_t i = 0; i < data->ntest; i += DEEP_BATCH) {
		int n = 0;

		while (n < DEEP_BATCH && i + (size_t)n < data->ntest) {
			image[n] = &data->test[i + (size_t)n];
			n++;
		}
		deep_load(&t->deep, image, n);
		for (int l = 0; l < DEEP_LAYERS; l++)
			deep_forward(&t->deep, t->w, l);
		right += deep_right(&t->deep);
	}
	return 100.0 * right / (double)data->ntest;
}

/* ------------------------------------------------------------------ a rank */

static int trainer_up(struct trainer *t, struct team *team, const struct swingcoll_id *ids)
{
	/* direct2 adds in the order of the ranks, for vectors of any size. */
	struct swingcoll_comm_opts opts = { .slot_max = -1, .algo = "direct2" };
	int ret;

	t->rank = team->rank;
	t->nranks = team->nranks;
	t->npartitions = t->opt->partitions;
	t->partition = (deep_first(DEEP_LAYERS) + (size_t)t->npartitions - 1) /
		       (size_t)t->npartitions;
	t->n = t->partition * (size_t)t->npartitions;
	t->w = calloc(t->n, sizeof(float));
	t->v = calloc(t->n, sizeof(float));
	t->grad = calloc(t->n, sizeof(float));
	t->shard = calloc(t->n, sizeof(float));
	if (!t->w || !t->v || !t->grad || !t->shard)
		return -ENOMEM;
	deep_init(t->w, SEED);
	ret = swingcoll_comm_create(&t->comm, &ids[0], team->nranks, team->rank, &opts);
	/* Forward passes wait for allgathers, so these go first if this user may have that. */
	opts.flags = SWINGCOLL_TRY_URGENT;
	if (!ret)
		ret = swingcoll_comm_create(&t->gather, &ids[1], team->nranks, team->rank, &opts);
	if (!ret && t->way == PARTITIONED)
		ret = swingcoll_pallreduce_init(t->grad, t->grad, t->npartitions, t->partition,
						SWINGCOLL_F32, SWINGCOLL_SUM, t->comm,
						&t->partitioned);
	return ret;
}

static void trainer_down(struct trainer *t)
{
	swingcoll_pfree(t->partitioned);
	swingcoll_comm_destroy(t->gather);
	swingcoll_comm_destroy(t->comm);
	free(t->w);
	free(t->v);
	free(t->grad);
	free(t->shard);
}

struct outcome {
	uint64_t hash;
	double step_s, waited_s, percent;
};

static int run_way(struct team *team, struct options *opt, enum way way,
		   const struct swingcoll_id *ids, struct outcome *out)
{
	struct trainer *t = calloc(1, sizeof(*t));
	double t0;
	int ret;

	if (!t)
		return -ENOMEM;
	t->opt = opt;
	t->way = way;
	ret = trainer_up(t, team, ids);
	if (!ret)
		ret = team_barrier(team);
	t0 = clock_now();
	if (!ret)
		ret = train(t);
	out->step_s = t->steps ? (clock_now() - t0) / (double)t->steps : 0;
	out->waited_s = t->steps ? t->waited_s / (double)t->steps : 0;
	if (ret) {
		team_error(team, t->comm, way_names[way], ret);
	} else {
		out->hash = hash_bytes(t->w, deep_first(DEEP_LAYERS) * sizeof(*t->w));
		out->percent = accuracy(t);
	}
	trainer_down(t);
	free(t);
	return ret;
}

struct plan {
	struct options opt;
	struct swingcoll_id id[WAYS][2];
};

/* One way after the other; each rank compares the weights of each way with those of the serial way. */
static int body(struct team *team, void *arg)
{
	struct plan *plan = arg;
	struct outcome out[WAYS];
	uint64_t differ = 0, low;

	for (int way = 0; way < WAYS; way++) {
		if (run_way(team, &plan->opt, (enum way)way, plan->id[way], &out[way])) {
			team_fail(team);
			return 2;
		}
		differ += out[way].hash != out[0].hash;
		/* If all ranks have the same hash, the sum is n times the hash of any. */
		low = out[way].hash & 0xffffffff;
		if (team_sum(team, &low) ||
		    low != (out[way].hash & 0xffffffff) * (uint64_t)team->nranks)
			differ++;
		if (!team->rank)
			printf("%-12s %8.2f ms a step, waits %7.2f ms, hidden %4.0f %%, %.2f %% right, "
			       "weights %016llx\n",
			       way_names[way], out[way].step_s * 1e3, out[way].waited_s * 1e3,
			       100 * (1 - out[way].waited_s / out[0].waited_s), out[way].percent,
			       (unsigned long long)out[way].hash);
		fflush(stdout);
	}
	if (team_sum(team, &differ))
		return 2;
	if (!team->rank)
		printf("%s\n", differ ? "FAILED: the weights differ"
				      : "OK: identical weights on all ranks, in all four ways");
	return differ ? 1 : 0;
}

static const char usage_text[] =
	"train_overlap [options]\n"
	"\n"
	"Trains a perceptron of 6 layers on the optical digits in four ways that differ in when gradients\n"
	"are summed: serial, overlap, dear, partitioned. The results must be identical.\n";

static const char notes_text[] =
	"\"hidden\" is the share of the serial way's waiting for which the program does not wait. Ranks that share\n"
	"CPUs with the copies hide little; a DMA engine (module parameter dma) leaves them the CPUs.\n"
	"\n"
	"Exit status: 0 if all weights are identical, 1 if not, 2 if anything failed.";

enum {
	OPT_RANKS,
	OPT_EPOCHS,
	OPT_PARTITIONS,
	OPT_DATA,
};

static const struct cli_option options[] = {
	{ OPT_RANKS, 'n', "ranks", "N", "processes: 1, 2, 4, 8, 16, 32 or 64 (default 2)" },
	{ OPT_EPOCHS, 'e', "epochs", "N", "passes over the data (default 2)" },
	{ OPT_PARTITIONS, 'p', "partitions", "N",
	  "partitions of the gradient, for the partitioned way (default 32)" },
	{ OPT_DATA, 0, "data", "FILE",
	  "digits.csv.gz (default: that of Debian's python3-sklearn)" },
	{ 0 },
};

/* The path of the data, or NULL for the default. */
static const char *parse(struct options *opt, struct team *team, int argc, char **argv)
{
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
			team->nranks = (int)cli_number(&cli, 1, 64);
			/* Each layer has shards of equal size. */
			if (64 % team->nranks)
				cli_expected(&cli, "1, 2, 4, 8, 16, 32 or 64");
			break;
		case OPT_EPOCHS:
			opt->epochs = (int)cli_number(&cli, 1, 1000);
			break;
		case OPT_PARTITIONS:
			opt->partitions = (int)cli_number(&cli, 1, 4096);
			break;
		case OPT_DATA:
			path = cli.value;
			break;
		}
	cli_end(&cli);
	return path;
}

int main(int argc, char **argv)
{
	static struct plan plan = { .opt = { .epochs = 2, .partitions = 32 } };
	struct team team = { .prog = "train_overlap", .nranks = 2 };
	int ret = 0;

	if (digits_load(&plan.opt.data, parse(&plan.opt, &team, argc, argv)))
		return 2;
	for (int way = 0; way < WAYS && !ret; way++)
		for (int k = 0; k < 2 && !ret; k++)
			ret = swingcoll_unique_id(&plan.id[way][k]);
	if (ret) {
		fprintf(stderr, "train_overlap: no random id: %s\n", swingcoll_strerror(ret));
		return 2;
	}
	printf("%d ranks, %d layers, %zu weights, batches of %d\n", team.nranks, DEEP_LAYERS,
	       deep_first(DEEP_LAYERS), DEEP_BATCH);
	fflush(stdout);
	ret = team_run(&team, body, &plan);
	digits_free(&plan.opt.data);
	return ret;
}

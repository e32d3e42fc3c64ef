// SPDX-License-Identifier: MIT
/*
 * Data-parallel training of a bag-of-words model by several processes. A batch contains few of all words,
 * so few rows of the gradient are not zero: a sparse allreduce sends those only. The training runs once for
 * each mode, and must end with the same weights, bit for bit, because gradients are exchanged as whole
 * numbers, whose sums are exact.
 *
 * The data: paragraphs of text files, which the model learns to tell apart by the files' names up to the
 * first "-". Without arguments these are the licences that every Debian system has (package base-files). They
 * are read only, and not part of this program.
 */
#include "common/cli.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/team.h"
#include "swingcoll_sparse.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEXTS "/usr/share/common-licenses"
#define WORDS 65536 /* rows of weights; a word belongs to one by its hash */
#define CLASSES 16
#define WEIGHTS (WORDS * CLASSES)
#define BATCH 64
#define RATE 0.5f
#define SCALE 0x1p16f /* of gradients as whole numbers */
#define MIN_WORDS 8   /* shorter paragraphs do not count */

struct paragraph {
	uint32_t *word;
	size_t nwords;
	int label;
};

struct texts {
	struct paragraph *p;
	size_t n;
	char *name[CLASSES];
	int nclasses;
};

/* The training of one rank by one mode. */
struct trainer {
	const struct texts *texts;
	struct swingcoll_comm *comm;
	int rank, nranks;
	uint32_t mode;
	float *w;
	int32_t *grad;
	uint64_t bytes; /* reduced */
	double allreduce_s;
	unsigned long allreduces;
};

struct options {
	int epochs;
	struct texts texts;
};

/* ------------------------------------------------------------------ texts */

static void *must(void *p)
{
	if (!p) {
		fprintf(stderr, "train_words: out of memory\n");
		exit(2);
	}
	return p;
}

static int label_of(struct texts *t, const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t n = strcspn(name, "-");

	for (int i = 0; i < t->nclasses; i++)
		if (strlen(t->name[i]) == n && !strncmp(t->name[i], name, n))
			return i;
	if (t->nclasses == CLASSES) {
		fprintf(stderr, "train_words: more than %d kinds of files\n", CLASSES);
		exit(2);
	}
	t->name[t->nclasses] = must(strndup(name, n));
	return t->nclasses++;
}

static void end_paragraph(struct texts *t, struct paragraph *p)
{
	if (p->nwords >= MIN_WORDS) {
		t->p = must(realloc(t->p, (t->n + 1) * sizeof(*t->p)));
		t->p[t->n++] = *p;
	} else {
		free(p->word);
	}
	p->word = NULL;
	p->nwords = 0;
}

/* Paragraphs end at empty lines. */
static int read_file(struct texts *t, const char *path)
{
	struct paragraph p = { .label = label_of(t, path) };
	FILE *f = fopen(path, "re");
	char line[4096], word[64];

	if (!f) {
		fprintf(stderr, "train_words: %s: %s\n", path, strerror(errno));
		return -1;
	}
	while (fgets(line, sizeof(line), f)) {
		size_t before = p.nwords, n = 0;

		for (const char *c = line; *c; c++) {
			if (isalpha((unsigned char)*c) && n < sizeof(word)) {
				word[n++] = (char)tolower((unsigned char)*c);
				continue;
			}
			if (n) {
				p.word = must(realloc(p.word, (p.nwords + 1) * sizeof(*p.word)));
				p.word[p.nwords++] = (uint32_t)(hash_bytes(word, n) % WORDS);
			}
			n = 0;
		}
		if (p.nwords == before)
			end_paragraph(t, &p);
	}
	end_paragraph(t, &p);
	fclose(f);
	return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int read_folder(struct texts *t, const char *folder)
{
	struct dirent **entry;
	int n = scandir(folder, &entry, NULL, by_name), ret = 0;
	char path[512];
	struct stat st;

	if (n < 0) {
		fprintf(stderr, "train_words: %s: %s: name text files\n", folder, strerror(errno));
		return -1;
	}
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry[i]->d_name);
		/* Links are other names of the same files. */
		if (!ret && !lstat(path, &st) && S_ISREG(st.st_mode))
			ret = read_file(t, path);
		free(entry[i]);
	}
	free(entry);
	return ret;
}

/* ------------------------------------------------------------------ model */

static void probabilities(const float *w, const struct paragraph *p, int nclasses, float *prob)
{
	float max = -1e30f, sum = 0;

	for (int c = 0; c < nclasses; c++) {
		prob[c] = 0;
		for (size_t i = 0; i < p->nwords; i++)
			prob[c] += w[p->word[i] * CLASSES + (uint32_t)c];
		max = fmaxf(max, prob[c]);
	}
	for (int c = 0; c < nclasses; c++)
		sum += prob[c] = expf(prob[c] - max);
	for (int c = 0; c < nclasses; c++)
		prob[c] /= sum;
}

static int reduce(struct trainer *t)
{
	struct swingcoll_sparse_result result;
	double t0 = clock_now();
	int ret = swingcoll_sparse_allreduce(t->grad, t->grad, WEIGHTS, SWINGCOLL_I32,
					     SWINGCOLL_SUM, t->mode, t->comm);

	t->allreduce_s += clock_now() - t0;
	t->allreduces++;
	if (!ret)
		ret = swingcoll_sparse_last(t->comm, &result);
	if (!ret)
		t->bytes += result.reduced_bytes;
	return ret;
}

static bool is_held_out(size_t paragraph)
{
	return paragraph % 5 == 4;
}

static int batch(struct trainer *t, size_t first)
{
	const struct texts *x = t->texts;
	float prob[CLASSES];
	int ret;

	memset(t->grad, 0, WEIGHTS * sizeof(*t->grad));
	/* A batch is every so manyth paragraph, so that it has some of all files. */
	for (size_t k = (size_t)t->rank; k < BATCH; k += (size_t)t->nranks) {
		size_t i = first + k * (x->n / BATCH);
		const struct paragraph *p = &x->p[i];

		if (i >= x->n || is_held_out(i))
			continue;
		probabilities(t->w, p, x->nclasses, prob);
		for (int c = 0; c < x->nclasses; c++) {
			float step = (prob[c] - (float)(c == p->label)) / (float)p->nwords;

			for (size_t j = 0; j < p->nwords; j++)
				t->grad[p->word[j] * CLASSES + (uint32_t)c] += (int32_t)lrintf(
					step * SCALE);
		}
	}
	ret = reduce(t);
	for (size_t i = 0; i < WEIGHTS; i++)
		if (t->grad[i])
			t->w[i] -= RATE * (float)t->grad[i] / SCALE;
	return ret;
}

static double accuracy(const struct trainer *t)
{
	size_t right = 0, all = 0;
	float prob[CLASSES];

	for (size_t i = 0; i < t->texts->n; i++) {
		int best = 0;

		if (!is_held_out(i))
			continue;
		probabilities(t->w, &t->texts->p[i], t->texts->nclasses, prob);
		for (int c = 1; c < t->texts->nclasses; c++)
			if (prob[c] > prob[best])
				best = c;
		right += best == t->texts->p[i].label;
		all++;
	}
	return all ? 100.0 * (double)right / (double)all : 0;
}

/* Train by one mode; rank 0 prints. The hash of the weights, the same on all ranks, or an error. */
static int train(struct trainer *t, int epochs, uint64_t *hash)
{
	uint64_t all[2];
	int ret = 0;

	memset(t->w, 0, WEIGHTS * sizeof(*t->w));
	t->bytes = t->allreduces = 0;
	t->allreduce_s = 0;
	for (int e = 0; !ret && e < epochs; e++)
		for (size_t first = 0; !ret && first < t->texts->n / BATCH; first++)
			ret = batch(t, first);
	if (ret)
		return ret;
	*hash = hash_bytes(t->w, WEIGHTS * sizeof(*t->w));
	all[0] = *hash;
	all[1] = ~*hash;
	ret = swingcoll_allreduce(all, all, 2, SWINGCOLL_U64, SWINGCOLL_MIN, t->comm);
	if (!ret && all[0] != ~all[1])
		ret = -EBADMSG;
	if (!t->rank)
		printf("%-10s %6lu %14.1f %12.2f %10.2f  %016llx\n", swingcoll_sparse_name(t->mode),
		       t->allreduces, (double)t->bytes / (double)t->allreduces / 1024,
		       t->allreduce_s * 1e3 / (double)t->allreduces, accuracy(t),
		       (unsigned long long)*hash);
	return ret;
}

/* ------------------------------------------------------------------ a rank */

static int body(struct team *team, void *arg)
{
	static const uint32_t modes[] = { SWINGCOLL_SPARSE_MODE_DENSE, SWINGCOLL_SPARSE_MODE_PACK,
					  SWINGCOLL_SPARSE_MODE_ROWS(CLASSES),
					  SWINGCOLL_SPARSE_MODE_SKETCH,
					  SWINGCOLL_SPARSE_MODE_AUTO };
	const struct options *opt = arg;
	struct trainer t = { .texts = &opt->texts, .rank = team->rank, .nranks = team->nranks };
	uint64_t hash[5];
	int ret, same = 1;

	t.w = must(malloc(WEIGHTS * sizeof(*t.w)));
	t.grad = must(malloc(WEIGHTS * sizeof(*t.grad)));
	if (team->boot)
		ret = swingcoll_comm_create_from(&t.comm, team->boot, NULL);
	else
		ret = swingcoll_comm_create(&t.comm, &team->id, team->nranks, team->rank, NULL);
	if (ret) {
		team_error(team, NULL, "joining the communicator", ret);
		return 2;
	}
	if (!t.rank)
		printf("%-10s %6s %14s %12s %10s  %s\n", "mode", "calls", "KiB reduced", "ms each",
		       "% right", "weights");
	for (int m = 0; !ret && m < 5; m++) {
		t.mode = modes[m];
		ret = train(&t, opt->epochs, &hash[m]);
		same &= !ret && hash[m] == hash[0];
	}
	if (ret == -EBADMSG)
		fprintf(stderr, "train_words: rank %d: ranks have different weights\n", t.rank);
	else if (ret)
		team_error(team, t.comm, "training", ret);
	if (!ret && !t.rank)
		printf("%s\n", same ? "OK: identical weights on all ranks by all modes" : "FAILED");
	swingcoll_comm_destroy(t.comm);
	free(t.w);
	free(t.grad);
	return ret ? 2 : !same;
}

static const char usage_text[] =
	"train_words [options] [FILE...]\n"
	"\n"
	"Trains a bag-of-words model on the paragraphs of text files (default: those in\n"
	"" TEXTS ") by several processes, once for each mode of the sparse allreduce.\n";

static const char notes_text[] =
	"Ranks are forked here, or started as SWINGCOLL_ROOT, SWINGCOLL_RANK and SWINGCOLL_NRANKS say.\n"
	"Exit status: 0 if all modes end with identical weights; 1 if not; 2 if anything failed.";

enum {
	OPT_RANKS,
	OPT_EPOCHS,
};

static const struct cli_option options[] = {
	{ OPT_RANKS, 'n', "ranks", "N", "processes (default 4)" },
	{ OPT_EPOCHS, 'e', "epochs", "N", "passes over the data (default 3)" },
	{ 0 },
};

static void parse(struct options *opt, struct team *team, int argc, char **argv)
{
	struct cli cli = { .prog = team->prog,
			   .usage = usage_text,
			   .notes = notes_text,
			   .options = options,
			   .argc = argc,
			   .argv = argv };
	int id, bad = 0;

	while ((id = cli_next(&cli)) != CLI_END)
		switch (id) {
		case OPT_RANKS:
			team->nranks = (int)cli_number(&cli, 1, BATCH);
			break;
		case OPT_EPOCHS:
			opt->epochs = (int)cli_number(&cli, 1, 1000);
			break;
		}
	if (!cli_has_operand(&cli))
		bad = read_folder(&opt->texts, TEXTS);
	while (!bad && cli_has_operand(&cli))
		bad = read_file(&opt->texts, cli_operand(&cli, "FILE"));
	cli_end(&cli);
	if (bad)
		exit(2);
	if (opt->texts.n < BATCH)
		cli_fail(&cli, "%zu paragraphs of %d words: at least %d are needed", opt->texts.n,
			 MIN_WORDS, BATCH);
}

int main(int argc, char **argv)
{
	struct options opt = { .epochs = 3 };
	struct team team = { .prog = "train_words", .nranks = 4 };
	int rank, nranks, ret;
	const char *from;

	parse(&opt, &team, argc, argv);
	if (swingcoll_bootstrap_launcher(&from, &rank, &nranks) > 0) {
		ret = swingcoll_bootstrap_env(&team.boot);
		if (ret) {
			fprintf(stderr, "train_words: %s\n", swingcoll_bootstrap_error());
			return 2;
		}
		team.rank = team.boot->rank;
		team.nranks = team.boot->nranks;
	}
	if (!team.rank)
		printf("%zu paragraphs of %d kinds, every fifth held out; %d ranks, batches of %d, "
		       "%d x %d weights\n",
		       opt.texts.n, opt.texts.nclasses, team.nranks, BATCH, WORDS, CLASSES);
	fflush(stdout);
	if (team.boot) {
		ret = body(&team, &opt);
		swingcoll_bootstrap_free(team.boot);
		return ret;
	}
	ret = swingcoll_unique_id(&team.id);
	if (ret) {
		fprintf(stderr, "train_words: no random id: %s\n", swingcoll_strerror(ret));
		return 2;
	}
	return team_run(&team, body, &opt);
}

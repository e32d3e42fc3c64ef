// SPDX-License-Identifier: GPL-2.0-only
/*
 * swingplan forest --roots any: GLPK's simplex method, which goes on from the last optimum as rows are added; without
 * GLPK the library's, which takes long for hundreds of ranks.
 */
#include "forest.h"

#include <errno.h>
#include <stdlib.h>

#include "plan/forest/roots.h"
#include "plan/forest/simplex.h"

#ifndef HAVE_GLPK
static struct swc_lp *new_solver(void)
{
	return swc_simplex_new();
}

static void free_solver(struct swc_lp *lp)
{
	swc_simplex_free(lp);
}
#else
#include <glpk.h>

#define TIGHT 1e-10

struct solver {
	struct swc_lp lp;
	glp_prob *prob;
	uint32_t nvars;
	int *index;
	double *value, *row;
	bool solved;
};

static int begin(struct swc_lp *lp, uint32_t n, const double *upper, const double *gain)
{
	struct solver *s = (struct solver *)lp;

	s->nvars = n;
	s->index = calloc(n + 1u, sizeof(*s->index));
	s->value = calloc(n + 1u, sizeof(*s->value));
	s->row = calloc(n + 1u, sizeof(*s->row));
	if (!s->index || !s->value || !s->row)
		return -ENOMEM;
	glp_set_obj_dir(s->prob, GLP_MAX);
	glp_add_cols(s->prob, (int)n);
	for (uint32_t i = 0; i < n; i++) {
		glp_set_col_bnds(s->prob, (int)i + 1, GLP_DB, 0, upper[i]);
		glp_set_obj_coef(s->prob, (int)i + 1, gain[i]);
	}
	return 0;
}

/* GLPK takes a variable once in a row. */
static int add_row(struct swc_lp *lp, uint32_t n, const uint32_t *variable,
		   const double *coefficient, double bound, bool equal)
{
	struct solver *s = (struct solver *)lp;
	int row = glp_add_rows(s->prob, 1), terms = 0;

	for (uint32_t i = 0; i < n; i++)
		s->value[variable[i] + 1] += coefficient[i];
	for (uint32_t i = 0; i < n; i++) {
		double c = s->value[variable[i] + 1];

		if (c > -1e-12 && c < 1e-12)
			continue;
		s->index[++terms] = (int)variable[i] + 1;
		s->value[variable[i] + 1] = 0;
		s->row[terms] = c;
	}
	for (uint32_t i = 0; i < n; i++)
		s->value[variable[i] + 1] = 0;
	glp_set_row_bnds(s->prob, row, equal ? GLP_FX : GLP_UP, bound, bound);
	glp_set_mat_row(s->prob, row, terms, s->index, s->row);
	return 0;
}

static int solve(struct swc_lp *lp, double *value)
{
	struct solver *s = (struct solver *)lp;
	glp_smcp param;

	glp_init_smcp(&param);
	param.msg_lev = GLP_MSG_OFF;
	param.meth = s->solved ? GLP_DUALP : GLP_PRIMAL;
	param.tol_bnd = TIGHT;
	param.tol_dj = TIGHT;
	if (glp_simplex(s->prob, &param) || glp_get_status(s->prob) != GLP_OPT) {
		/* From the beginning, with the usual tolerance. */
		glp_std_basis(s->prob);
		glp_init_smcp(&param);
		param.msg_lev = GLP_MSG_OFF;
		if (glp_simplex(s->prob, &param) || glp_get_status(s->prob) != GLP_OPT)
			return -EIO;
	}
	s->solved = true;
	for (uint32_t i = 0; i < s->nvars; i++)
		value[i] = glp_get_col_prim(s->prob, (int)i + 1);
	return 0;
}

static struct swc_lp *new_solver(void)
{
	struct solver *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->lp = (struct swc_lp){ begin, add_row, solve };
	glp_term_out(GLP_OFF);
	s->prob = glp_create_prob();
	return &s->lp;
}

static void free_solver(struct swc_lp *lp)
{
	struct solver *s = (struct solver *)lp;

	glp_delete_prob(s->prob);
	free(s->index);
	free(s->value);
	free(s->row);
	free(s);
}
#endif

static void make_trees(struct forest *f, const struct swc_roots *r)
{
	struct progress bar = { "trees", 0, 1 };
	int ret = swc_phase_make_slots(&f->phase[DOWN], &r->down, false, r->weight, plan_progress,
				       &bar);

	f->has[DOWN] = !ret;
	if (!ret)
		ret = r->mirrored ? swc_phase_mirror(&f->phase[UP], &f->phase[DOWN])
				  : swc_phase_make_slots(&f->phase[UP], &r->up, true, r->weight,
							 plan_progress, &bar);
	f->has[UP] = !ret;
	plan_progress_end();
	if (ret == -ENOMEM)
		plan_no_memory();
	if (ret)
		plan_bad("no trees were found: please report this network");
}

void forest_find_any(struct forest *f)
{
	struct progress bar = { "linear program", 0, 1 };
	struct swc_lp *lp = new_solver();
	struct swc_roots r;
	int ret = lp ? swc_roots_find(&r, &f->g, lp, plan_progress, &bar) : -ENOMEM;

	plan_progress_end();
	if (ret == -ENOMEM)
		plan_no_memory();
	if (ret)
		plan_bad("the linear program was not solved: please report this network");
	f->rate = r.rate;
	f->time = 1 / r.rate;
	f->x = r.x;
	r.x = NULL;
	if (f->opt->trees || f->opt->out)
		make_trees(f, &r);
	swc_roots_free(&r);
	free_solver(lp);
}

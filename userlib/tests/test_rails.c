// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plans for nodes with several rails to a switch: right, as good as on one link with the rate of all, by the
 * model with all ranks and with those that stand for them, and balanced: what each rail of each node carries.
 * TAP on stdout.
 */
#include <math.h>

#include "plan/model/model.h"
#include "plan/select/choose.h"
#include "plans.h"
#include "tap.h"
#include "topos.h"

#define MOST_NODES 39

/* Does every node send as much by each of its rails? *total: blocks of all. */
static bool balanced(const struct set *s, uint64_t *total)
{
	uint64_t sent[MOST_NODES][SWC_TOPO_RAILS] = { 0 };
	bool good = true;

	*total = 0;
	for (uint32_t r = 0; r < s->nranks; r++) {
		const struct swc_plan_view *v = &s->view[r];
		uint32_t node = swc_topo_node_of(&s->topo, r);

		for (uint32_t i = 0; i < v->hdr->nsteps; i++) {
			const struct swc_plan_step *t = &v->steps[i];
			const struct swc_plan_xfer *x = &v->xfers[t->first_xfer];

			for (uint32_t k = 0; t->kind == SWC_STEP_NET && k < t->nsend; k++)
				if (swc_topo_node_of(&s->topo, x[k].rank) != node)
					sent[node][x[k].path] += x[k].nblocks;
		}
	}
	for (uint32_t i = 0; i < s->topo.nnodes; i++)
		for (uint32_t k = 0; k < s->topo.rails; k++) {
			good &= sent[i][k] == sent[i][0];
			*total += sent[i][k];
		}
	return good;
}

static double psi_xi(const struct swc_plan_args *a, bool all)
{
	struct swc_cost cost;
	int ret = all ? swc_cost_compute(a, &cost, NULL, NULL, NULL, 0)
		      : swc_cost_estimate(a, 512, &cost, NULL, NULL, NULL, 0);

	return ret ? -1 : cost.psi_xi;
}

/* Is a plan of ranks that have a node each as good as on one link, as fast as all rails? */
static bool as_one_link(const struct set *s, const char *text)
{
	struct swc_plan_args args = s->args;
	double all = psi_xi(&s->args, true), some = psi_xi(&s->args, false), want;
	char one[40];
	struct swc_topo alone;
	uint64_t total;
	bool even = balanced(s, &total);

	snprintf(one, sizeof(one), "%.*s", (int)strcspn(text, "@"), text);
	alone = topo_of(one);
	args.topo = &alone;
	want = psi_xi(&args, true) / s->topo.rails;
	swc_topo_free(&alone);
	if (even && total && fabs(all - want) < 1e-5 * want && fabs(all - some) < 1e-5 * all)
		return true;
	printf("# %s %s %s: psi_xi %g, by some ranks %g, %g expected%s\n", text,
	       swc_algo_name((int)s->args.algo), swc_coll_name(s->args.coll), all, some, want,
	       even ? "" : "; rails differ");
	return false;
}

/* How many plans of all algorithms there are on a topology with rails; negative if one is wrong. */
static int check(const char *text)
{
	int n = 0;

	for (enum swc_algo algo = 0; algo < SWC_ALGO_NR; algo++) {
		for (enum swc_coll coll = 0; coll < SWC_COLL_NR; coll++) {
			struct swc_plan_args args = { .algo = algo,
						      .coll = coll,
						      .param = SWC_PARAM_DEFAULT };
			struct set s;
			int ret = build_set(&s, text, args, MIXED);

			if (!ret)
				ret = verify_both(&s);
			if (ret && ret != -EOPNOTSUPP) {
				print_set(&s, ret);
				n = -1000;
			}
			/* Those of bruck are small: each goes whole, by the first rail. */
			if (!ret && coll != SWC_BARRIER && algo != SWC_ALGO_BRUCK &&
			    algo != SWC_ALGO_BY_NODES && s.topo.nlocal == 1 &&
			    !as_one_link(&s, text))
				n = -1000;
			n += !ret;
			free_set(&s);
		}
	}
	return n;
}

/* With one rank a node, they are also balanced, and as good as on one link. */
static void test_plans(void)
{
	static const char *const texts[] = {
		"switch:2@2rails",   "switch:4@4rails",	  "switch:5@3rails",
		"switch:9@16rails",  "switch:18@2rails",  "switch:39@2rails",
		"switch:3*2@4rails", "switch:4*4@2rails", "switch:3*2,1,4@2rails",
	};
	char name[80];
	int n;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		snprintf(name, sizeof(name), "%s: all plans are right", texts[i]);
		n = check(texts[i]);
		ok(n > 20, name);
		printf("# %d kinds of plans\n", n);
	}
}

static void test_hierarchy(void)
{
	static const char *const texts[] = { "switch:4*4@4rails", "switch:3*2@4rails",
					     "switch:2*8@4rails", "switch:5*1@2rails" };
	struct swc_plan_args args = { .algo = SWC_ALGO_RING2,
				      .coll = SWC_ALLREDUCE,
				      .param = SWC_PARAM_DEFAULT };
	uint64_t total;
	bool good = true;
	struct set s;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		good &= !build_set(&s, texts[i], args, OUT_OF_PLACE) && balanced(&s, &total) &&
			total;
		free_set(&s);
	}
	ok(good, "allreduce among nodes of several ranks: all rails carry the same");
}

static void test_small(void)
{
	struct swc_topo t = topo_of("switch:2@4rails"), u = topo_of("switch:2"),
			v = topo_of("torus:2x2");
	struct swc_plan_args args = { .algo = SWC_ALGO_RECDOUB,
				      .coll = SWC_ALLREDUCE,
				      .param = SWC_PARAM_DEFAULT,
				      .ports = 1 };
	struct set s;

	ok(swc_choices_ports(&t, 8) == 1 && swc_choices_ports(&t, 32767) == 1 &&
		   !swc_choices_ports(&t, 32768) && !swc_choices_ports(&u, 8) &&
		   !swc_choices_ports(&v, 8),
	   "small vectors go by one rail");
	ok(!build_set(&s, "switch:2@4rails", args, OUT_OF_PLACE) && s.view[0].hdr->nchannels == 1 &&
		   !verify_both(&s),
	   "with one port, a plan has one channel");
	free_set(&s);
}

static void test_refused(void)
{
	static const char *const figures[] = { "0",    "17",   "0.5", "1.5", "0.0000000001",
					       "1e20", "1e999" };
	bool good = true;

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		char text[64], why[120] = "";
		struct swc_topo t;

		snprintf(text, sizeof(text), "switch:4@%srails", figures[i]);
		if (swc_topo_parse(&t, text, why, sizeof(why)) != -EINVAL ||
		    !strstr(why, "1 to 16 rails")) {
			printf("# %s: %s\n", text, why);
			good = false;
		}
	}
	ok(good, "other numbers than 1 to 16 are refused");
}

int main(void)
{
	printf("TAP version 13\n");
	test_plans();
	test_hierarchy();
	test_small();
	test_refused();
	return done();
}

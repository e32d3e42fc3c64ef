/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The automatic choice of an algorithm: by measured times if there are any, else by the model.
 */
#ifndef SWC_PLAN_SELECT_CHOOSE_H
#define SWC_PLAN_SELECT_CHOOSE_H

#include "plan/forest/algorithm.h"
#include "plan/model/model.h"
#include "plan/select/tuning.h"

/**
 * struct swc_candidate - an algorithm that may be chosen
 * @steps, @hops, @load, @reduced: of the plan of rank 0, so no time can be less: steps of its
 *	longest channel; the sums over them of the longest route, and of the largest message as a
 *	share of the vector, in units of the fastest links; and what a channel reduces, likewise
 * @connections: that a rank needs at least
 * @bytes: of the shortest of the plans that were looked at, 0 if none was
 * @known, @cost: the cost, once it was needed
 * @refused: it has no plan after all
 * @least: of the latest choice: the least time for its size
 * @waits: it was not looked at
 * @ns: the time, negative if the choice did not need it
 */
struct swc_candidate {
	enum swc_algo algo;
	int32_t param;
	uint32_t steps;
	uint64_t hops;
	double load, reduced;
	uint32_t connections;
	size_t bytes;
	bool order_varies;
	bool known, refused, waits;
	struct swc_cost cost;
	double least, ns;
};

/* The most times that swc_choices_take() makes sure of. */
#define SWC_CHOICES_BEST 5

/* Why an algorithm was chosen. */
enum swc_reason {
	SWC_REASON_MEASURED, /* the fastest in the tuning file at the nearest size */
	SWC_REASON_MODEL,    /* the best by the model */
	SWC_REASON_ONE_NODE, /* all ranks on one node: by size and number of CPUs */
	SWC_REASON_ONLY,     /* no candidate: the algorithm that always works */
};

struct swc_choice {
	enum swc_algo algo;
	int32_t param;
	enum swc_reason reason;
	double ns; /* by the model or the measurement, 0 if there is none */
};

/*
 * Choices that are cached, because programs use the same few sizes again and again. A power of two.
 */
#define SWC_CHOICES_KEPT 64

/* What the module allows if it is not told otherwise: its parameter user_conns. */
#define SWC_CHOICES_CONNECTIONS 16384

/**
 * struct swc_kept_trees - the trees of a collective, found when they are first needed
 * @tried: they were looked for
 * @there: they were found
 */
struct swc_kept_trees {
	bool tried, there;
	struct swc_trees trees;
};

/**
 * struct swc_choices - the candidates on one topology
 *
 * Candidates are found, and their costs computed, when they are first needed.
 *
 * @topo: the topology; must outlive this
 * @net: its figures
 * @nlocal: ranks that share memory, as in struct swc_plan_args; set it after swc_choices_init()
 * @ncpus: CPUs that the ranks of one node share, likewise; 0: as many as ranks
 * @ngroups: groups of consecutive ranks of one node, of equal size, that share a cache; 0 or 1: none
 * @connections: that a user may have with other nodes, on each node and in all; likewise, alike on all
 *	ranks. SWC_CHOICES_CONNECTIONS after swc_choices_init()
 * @reorder: ranks may reduce in different orders
 * @forest: a forest may be chosen
 * @tuning: measured times
 * @trees: by enum swc_coll
 * @coll: candidates by enum swc_coll; @n is 0 before the first use
 * @kept: cached choices, by a hash of what they were for
 */
struct swc_choices {
	const struct swc_topo *topo;
	struct swc_network net;
	uint32_t nlocal;
	uint32_t ncpus;
	uint32_t ngroups;
	uint32_t connections;
	bool reorder;
	bool forest;
	struct swc_tuning tuning;
	struct swc_kept_trees trees[SWC_COLL_NR];
	struct {
		struct swc_candidate *cand;
		unsigned int n;
	} coll[SWC_COLL_NR];
	struct {
		bool there;
		uint8_t coll, dtype, redop;
		uint64_t bytes;
		struct swc_choice choice;
	} kept[SWC_CHOICES_KEPT];
};

void swc_choices_init(struct swc_choices *c, const struct swc_topo *topo, bool reorder);
void swc_choices_free(struct swc_choices *c);

/*
 * Choose the algorithm for a collective on @bytes bytes. It depends only on the arguments and @c,
 * so all ranks choose alike. Costs that cannot matter for this size are not computed, unless @all.
 */
struct swc_choice swc_choices_take(struct swc_choices *c, enum swc_coll coll, enum swc_dtype dtype,
				   enum swc_redop redop, uint64_t bytes, unsigned int best);

/*
 * The trees of a collective, NULL if there are none. They are kept until those of another root are asked
 * for.
 */
const struct swc_trees *swc_choices_trees(struct swc_choices *c, enum swc_coll coll, uint32_t root);

/*
 * Segments of a forest for about so many bytes: alike for sizes that are within a factor of two, so that
 * few plans serve all sizes.
 */
uint32_t swc_choices_pieces(const struct swc_choices *c, const struct swc_trees *t, uint64_t bytes);

/*
 * Ports for plans of so many bytes, as in struct swc_plan_args: one where a message for each rail of a
 * switch would take longer than it saves, else all.
 */
uint32_t swc_choices_ports(const struct swc_topo *topo, uint64_t bytes);

/*
 * May an algorithm be chosen for a vector of so many bytes? Not if it needs too much scratch memory, or too
 * many connections.
 */
bool swc_choices_has_room(const struct swc_choices *c, enum swc_coll coll, enum swc_algo algo,
			  int32_t param, uint64_t bytes);

/* An algorithm that works on any topology with any number of ranks. */
enum swc_algo swc_choices_fallback(const struct swc_topo *topo, enum swc_coll coll);

#endif /* SWC_PLAN_SELECT_CHOOSE_H */

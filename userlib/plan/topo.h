/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Topologies: the shape of the network and where the ranks are.
 *
 *	SHAPE[*LOCAL][@FIGURE[,FIGURE]...]
 *
 *	SHAPE	ring:N, torus:AxBxC, mesh:AxB (a torus without wrap-around links), switch:N (each
 *		node has one link, or rail, to a switch that is never the bottleneck)
 *	LOCAL	ranks per node: one number, or one number for each node with commas between them
 *	FIGURE	400Gbps rate of a link in each direction, or 60Gbps/30Gbps one for each dimension;
 *		400ns delay of a hop (one link and one router); 4rails links of each node to the switch;
 *		3-4=50Gbps a link that is slower than that, between two neighbours, and 3>4=50Gbps one
 *		way only; on a switch 3=50Gbps for the links of a node, 3>=50Gbps for what it sends by
 *		them, >3=50Gbps for what it receives
 *
 * Examples: "torus:4x4", "torus:4x4*8@400Gbps,400ns", "switch:3*2,1,4". A topology file has one
 * such line; empty lines and those that begin with # are skipped.
 *
 * Node numbers are row-major: the last dimension varies fastest. Ranks are numbered node by node.
 */
#ifndef SWC_PLAN_TOPO_H
#define SWC_PLAN_TOPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SWC_TOPO_DIMS 8
#define SWC_TOPO_MAX_NODES (1u << 20)
#define SWC_TOPO_RAILS 16

/* What a link carries by TCP if its rate is not known: one CPU copies all of a connection. */
#define SWC_TOPO_TCP_GBPS 25

/* Links with rates of their own, at most. */
#define SWC_TOPO_MAX_SLOW 65536

/* @from, @to: neighbours; on a switch, nnodes is the switch itself */
struct swc_topo_slow {
	uint32_t from, to;
	double gbps;
};

enum swc_topo_kind {
	SWC_TOPO_SWITCH,
	SWC_TOPO_TORUS,
	SWC_TOPO_MESH,
};

/**
 * struct swc_topo - a topology
 * @kind: shape; a ring is a torus of one dimension
 * @ndims: dimensions; a switch has one
 * @dim: sizes of the dimensions
 * @nnodes: product of the sizes
 * @nranks: ranks in all
 * @nlocal: ranks per node, 0 if nodes differ
 * @first: if nodes differ, the first rank of each node, and nranks behind the last node; else NULL.
 *	Owned.
 * @gbps: rate of a link in Gbit/s, 0 if not given; of the fastest if dimensions differ
 * @dim_gbps: rates by dimension if they differ, else 0
 * @hop_ns: delay of a hop in ns, 0 if not given
 * @tcp: messages go by TCP, where a step takes longer
 * @rails: links of each node to a switch, of @gbps each; 0 if not given: the number does not matter
 * @nslow, @slow: links, one way each, that are slower than the others of their dimension, in order
 *	of their ends. Where two links have the same ends, both are. Owned.
 */
struct swc_topo {
	enum swc_topo_kind kind;
	uint32_t ndims;
	uint32_t dim[SWC_TOPO_DIMS];
	uint32_t nnodes;
	uint32_t nranks;
	uint32_t nlocal;
	uint32_t *first;
	double gbps;
	double dim_gbps[SWC_TOPO_DIMS];
	double hop_ns;
	bool tcp;
	uint32_t rails;
	uint32_t nslow;
	struct swc_topo_slow *slow;
};

/**
 * swc_topo_parse() - read a topology from its text
 *
 * On -EINVAL @why gets one line that names the fault and what would be accepted. Free with
 * swc_topo_free().
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int swc_topo_parse(struct swc_topo *topo, const char *text, char *why, size_t why_bytes);

/* The same from the text of a topology file: its first line that is neither empty nor a comment. */
int swc_topo_parse_file(struct swc_topo *topo, const char *text, char *why, size_t why_bytes);

void swc_topo_free(struct swc_topo *topo);

/* A copy, to be freed likewise. 0 or -ENOMEM. */
int swc_topo_copy(struct swc_topo *copy, const struct swc_topo *topo);

/* Replace the slow links by a copy of @slow, which is in order. 0 or -ENOMEM. */
int swc_topo_set_slow(struct swc_topo *topo, const struct swc_topo_slow *slow, uint32_t n);

/*
 * Print a topology, such that swc_topo_parse() reads the same again. Returns the full length, as
 * snprintf(), or -ENOMEM.
 */
int swc_topo_format(const struct swc_topo *topo, char *text, size_t bytes);

/* A switch with @nodes nodes of one rank each: the topology when nothing is known. */
struct swc_topo swc_topo_flat(uint32_t nodes);

/* The first rank of a node, the number of its ranks, and the node of a rank. */
static inline uint32_t swc_topo_first(const struct swc_topo *t, uint32_t node)
{
	return t->first ? t->first[node] : node * t->nlocal;
}

static inline uint32_t swc_topo_local(const struct swc_topo *t, uint32_t node)
{
	return t->first ? t->first[node + 1] - t->first[node] : t->nlocal;
}

/* The same where each node has a number of ranks of its own. */
uint32_t swc_topo_find_node(const struct swc_topo *t, uint32_t rank);

/* Models ask for each message, and a division takes long. */
static inline uint32_t swc_topo_node_of(const struct swc_topo *t, uint32_t rank)
{
	if (t->first)
		return swc_topo_find_node(t, rank);
	return t->nlocal == 1 ? rank : rank / t->nlocal;
}

/* How many times longer a link of a dimension takes than the fastest ones. */
static inline double swc_topo_slowness(const struct swc_topo *t, uint32_t dim)
{
	return t->dim_gbps[dim] > 0 ? t->gbps / t->dim_gbps[dim] : 1;
}

/* The same of the links from one node to the next along a dimension, or to a switch or from it. */
double swc_topo_link_slowness(const struct swc_topo *t, uint32_t from, uint32_t to, uint32_t dim);

/* The dimension in which two nodes are neighbours, or ndims. A node and the switch have one, 0. */
uint32_t swc_topo_dim(const struct swc_topo *t, uint32_t from, uint32_t to);

/* Links of a node to a switch, at least 1. */
static inline uint32_t swc_topo_rails(const struct swc_topo *t)
{
	return t->rails ? t->rails : 1;
}

/* In how many parts a rank sends, so that the ranks of its node use all rails. */
uint32_t swc_topo_rails_per_rank(const struct swc_topo *t);

/*
 * Does a channel take the other direction where both ways round a dimension are equally long? The
 * second half of the channels mirror the first.
 */
static inline bool swc_topo_mirrored(const struct swc_topo *t, uint32_t chan)
{
	return chan % (2 * t->ndims) >= t->ndims;
}

/* Links between the two nodes that are farthest from each other; on a switch 1. */
uint32_t swc_topo_diameter(const struct swc_topo *t);

/**
 * struct swc_topo_leg - a part of a route: links along one dimension
 * @down: towards lower coordinates, round the end
 */
struct swc_topo_leg {
	uint8_t dim;
	bool down;
	uint32_t hops;
};

/*
 * The route of a message from one node to another on a path, leg by leg. Returns the number of legs,
 * 0 for the same node or on a switch. This is the one definition of routes: the library connects the
 * ports at the ends of it, packets take it, and the models count it.
 *
 * Networks forward a packet along one dimension after the other, in increasing order as its sender
 * sees it, the shorter way round. So where two nodes differ in several dimensions, each has a path
 * of its own: even ones are in the order of the node with the lower number, odd ones in that of the
 * other. Receipts go back by the same links, and so do messages of
 * swc_topo_path_back().
 *
 * Where both ways round the first or the last of these dimensions are equally long, there are two
 * more: on paths 2 and 3 such a dimension is crossed down as their sender sees it, on paths 0 and 1
 * up. Between them such a dimension is always crossed up, as nothing in a packet says otherwise.
 *
 * Nodes that differ in one dimension only have a path, and where both ways round are equally long
 * two: path 0 goes up from the node with the lower number, path 1 down from it. On a mesh there is but
 * one way along a dimension.
 */
uint32_t swc_topo_route(const struct swc_topo *t, uint32_t path, uint32_t from, uint32_t to,
			struct swc_topo_leg leg[SWC_TOPO_DIMS]);

/* A place in a small table for what was found out about a pair of nodes. */
#define SWC_TOPO_PAIRS 16

static inline uint32_t swc_topo_pair(uint32_t from, uint32_t to)
{
	return (from + 3 * to) * 0x9e3779b1u >> 28;
}

/* How many paths two different nodes have on a torus or mesh, and at most. */
#define SWC_TOPO_PATHS 4
uint32_t swc_topo_npaths(const struct swc_topo *t, uint32_t from, uint32_t to);

/*
 * The path, as in struct swc_plan_xfer, of a channel's messages from one node to another on a torus or
 * mesh. It is one of the sender: where both ways round a dimension are
 * equally long, up if the channel is not mirrored, else down; where that is so in the first and the
 * last dimension of the route, the reverse from the node with the higher number.
 */
uint32_t swc_topo_path(const struct swc_topo *t, uint32_t chan, uint32_t from, uint32_t to);

/*
 * The path of a channel's messages from one node to another that are to go back the way of those from the other
 * node, which is that node's path. Networks of one or two dimensions forward so. In those of more, messages would
 * take the dimensions in another order: there it is the sender's path, as above.
 */
uint32_t swc_topo_path_back(const struct swc_topo *t, uint32_t chan, uint32_t from, uint32_t to);

/*
 * The same as swc_topo_path() for nodes that differ in one dimension only, by their coordinates in it. *leg: the route on that
 * path, as swc_topo_route() has it.
 */
uint32_t swc_topo_path_on_line(const struct swc_topo *t, uint32_t chan, uint32_t dim, uint32_t from,
			       uint32_t to, struct swc_topo_leg *leg);

/*
 * The rail of messages from one rank to another on a switch, which is their path; 0 if there is but one.
 * @part: of what each rank sends, below swc_topo_rails_per_rank(). Ranks of a node take one rail after the
 * other; of the two ranks, that with the lower number decides, so that both ways are one path.
 */
uint32_t swc_topo_rail(const struct swc_topo *t, uint32_t part, uint32_t from, uint32_t to);

/* Coordinates of a node, and the node at coordinates. */
void swc_topo_coords(const struct swc_topo *t, uint32_t node, uint32_t *coord);
uint32_t swc_topo_node_at(const struct swc_topo *t, const uint32_t *coord);

/**
 * struct swc_topo_line - the nodes that differ from a node in one dimension alone, and itself
 * @size: how many
 * @unit: difference between the numbers of neighbours
 * @at: the node's coordinate
 */
struct swc_topo_line {
	uint32_t size, unit, at;
};

/* The lines of @node in the dimensions with more than one node. Returns how many. */
uint32_t swc_topo_lines(const struct swc_topo *t, uint32_t node, struct swc_topo_line *line);

#endif /* SWC_PLAN_TOPO_H */

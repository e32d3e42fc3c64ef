/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests that run on every node of a cluster at once. On each node one process, the node's, forks the ranks; those
 * of all nodes go in step, and speak to each other by TCP. Node 0 prints the results.
 */
#ifndef NET_H
#define NET_H

#include <swingcoll.h>

#include "testlib.h"

#define NET_MAX_NODES 64

extern int net_node, net_nodes;

/* How many ranks each node has. */
struct net_layout {
	int nranks;
	int first[NET_MAX_NODES + 1]; /* rank of each node, if they are numbered node by node */
	bool in_turn;		      /* they are not, but dealt out in turn: as many on each */
};

/* @even ranks on nodes 0, 2, ..., @odd on the others. */
void net_layout(struct net_layout *l, int even, int odd);
int net_layout_node(const struct net_layout *l, int rank);
int net_layout_local(const struct net_layout *l);
/* The i-th rank of this node. */
int net_layout_rank(const struct net_layout *l, int i);

/*
 * Join the other nodes; to be called first, once. Without a cluster, or a device, the program ends. Only node 0
 * goes on to print TAP.
 */
void net_start(void);
/* Once more, after some were gone; who has just started comes by net_start(). */
void net_meet(void);
/* Every node gives @bytes bytes and gets those of all. The program ends if a node is gone. */
void net_exchange(const void *mine, void *all, size_t bytes);
/* Goes on when all nodes are here. Returns true if one of them says @bad. */
bool net_together(bool bad);

/*
 * In a rank: the environment by which swingcoll_comm_create_auto() meets the others. @step tells one set of ranks
 * from the next.
 */
void net_be_rank(const struct net_layout *l, int rank, unsigned int step);

/* Have them meet @by ports further on: sets of ranks that are there at once. */
void net_move_root(int by);
/* Node 0's address, as others see it. */
const char *net_root_address(void);

#endif /* NET_H */

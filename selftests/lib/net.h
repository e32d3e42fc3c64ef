/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests that run on every node of a cluster at once. On each node one process, the node process, forks the ranks. The
 * node processes run in step and exchange data by TCP. Only node 0 prints results.
 */
#ifndef NET_H
#define NET_H

#include <swingcoll.h>

#include "testlib.h"

#define NET_MAX_NODES 256
/* Of all jobs of the tests (SWINGCOLL_SECRET). */
#define NET_SECRET "the secret of the tests"

extern int net_node, net_nodes;

/* How many ranks each node has. */
struct net_layout {
	int nranks;
	int first[NET_MAX_NODES +
		  1]; /* first rank of each node, if ranks are numbered node by node */
	bool in_turn; /* rank r is on node r mod net_nodes instead; as many on each */
};

/* So many ranks on each even and on each odd node. */
void net_layout(struct net_layout *l, int even, int odd);
/* The node of a rank. */
int net_layout_node(const struct net_layout *l, int rank);
/* How many ranks this node has. */
int net_layout_local(const struct net_layout *l);
/* The i-th rank of this node. */
int net_layout_rank(const struct net_layout *l, int i);

/*
 * Meet the other nodes; call it first and once. Ends the program with SKIP without a cluster or without the device.
 * Prints the TAP header on node 0.
 */
void net_init(void);
/* Meet again after nodes have rebooted; a node that has just started calls net_init(). */
void net_rejoin(void);
/* An allgather among node processes, of so many bytes each. Ends the program if a node is gone. */
void net_allgather(const void *mine, void *all, size_t bytes);
/* A barrier among node processes. Returns true if any of them passes true. */
bool net_any(bool bad);

/*
 * In a rank: set the environment by which swingcoll_comm_create_auto() finds the other ranks. Each set of ranks has a
 * step of its own.
 */
/* The transport of all nodes, enum swc_transport_kind, by SWINGCOLL_TRANSPORT; its port. */
int net_transport(void);
uint32_t net_port(void);
bool net_is_iwarp(void);

void net_set_rank_env(const struct net_layout *l, int rank, unsigned int step);

/* Change the port of the root by so much: for sets of ranks that exist at the same time. */
void net_set_root_offset(int by);
/* The address of node 0. */
const char *net_root_address(void);

#endif /* NET_H */

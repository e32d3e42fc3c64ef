// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The paths between nodes: which address of a node connects to which address of another. Pure
 * arithmetic on what the nodes have described, so that both ends of a pair compute the same table.
 *
 * On a torus or mesh the ends of a path are the port by which its route leaves the first node, see
 * swc_topo_route(), and the one by which it arrives at the other: the minus port if it travels in
 * plus direction. The first and the last link are what addresses can select; networks forward the
 * packets as the route says.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/bootstrap/bootstrap.h"

struct table {
	const struct swc_paths_node *nodes;
	uint32_t me;
	uint32_t transport; /* to the present node */
	struct swc_node_path *path;
	uint32_t n;
};

static void to_sockaddr(uint8_t out[28], const struct swc_boot_addr *a, uint32_t port,
			uint32_t scope)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)port),
				    .sin6_scope_id = scope };

	_Static_assert(sizeof(in6) == 28, "addresses fit");
	if (a->family == AF_INET) {
		memcpy(&in.sin_addr, a->bytes, sizeof(in.sin_addr));
		memcpy(out, &in, sizeof(in));
	} else {
		memcpy(&in6.sin6_addr, a->bytes, sizeof(in6.sin6_addr));
		memcpy(out, &in6, sizeof(in6));
	}
}

/* ---- transports ---- */

static bool have(const struct swc_paths_node *a, const struct swc_paths_node *b, uint32_t transport)
{
	return a->port[transport] && b->port[transport];
}

/* Do the RDMA devices of these addresses connect? */
static bool is_one_kind(const struct swc_boot_addr *a, const struct swc_boot_addr *b)
{
	return a->rdma == b->rdma || a->rdma == SWC_RDMA_ANY || b->rdma == SWC_RDMA_ANY;
}

/* Does a rail connect addresses @k of two nodes by this transport? */
static bool is_rail(const struct swc_paths_node *a, const struct swc_paths_node *b, uint32_t k,
		    uint32_t transport)
{
	return a->addr[k].family == b->addr[k].family &&
	       (transport != SWC_TRANSPORT_RDMA || is_one_kind(&a->addr[k], &b->addr[k]));
}

static bool all_of_one_kind(const struct swc_paths_node *a, const struct swc_paths_node *b)
{
	for (uint32_t i = 0; i < a->naddrs; i++)
		for (uint32_t k = 0; k < b->naddrs; k++)
			if (!is_one_kind(&a->addr[i], &b->addr[k]))
				return false;
	return true;
}

/* Do their RDMA devices connect them? If no rail can be used, that is not the reason. */
static bool rdma_connects(const struct swc_paths_node *a, const struct swc_paths_node *b,
			  bool routed)
{
	bool any = false;

	if (routed)
		return all_of_one_kind(a, b);
	for (uint32_t k = 0; k < a->naddrs && k < b->naddrs; k++) {
		if (is_rail(a, b, k, SWC_TRANSPORT_RDMA))
			return true;
		any |= is_rail(a, b, k, SWC_TRANSPORT_TCP);
	}
	return !any;
}

/* The first transport that both nodes have; SWC_TRANSPORT_NR: none. */
static uint32_t common_transport(const struct swc_paths_node *a, const struct swc_paths_node *b,
				 bool routed)
{
	uint32_t kind = 0;

	while (kind < SWC_TRANSPORT_NR &&
	       (!have(a, b, kind) || (kind == SWC_TRANSPORT_RDMA && !rdma_connects(a, b, routed))))
		kind++;
	return kind;
}

static const char *rdma_name(const struct swc_paths_node *node)
{
	static const char *const names[SWC_RDMA_NR] = { "other", "InfiniBand", "RoCE", "iWARP" };

	return node->addr->rdma < SWC_RDMA_NR ? names[node->addr->rdma] : names[SWC_RDMA_ANY];
}

static int no_transport(const struct swc_paths_node *a, const struct swc_paths_node *b, char *why,
			size_t why_bytes)
{
	if (have(a, b, SWC_TRANSPORT_RDMA))
		snprintf(
			why, why_bytes,
			"%s has %s devices and %s %s devices, which do not connect: unset SWINGCOLL_TRANSPORT, "
			"and TCP does, or select others by SWINGCOLL_IFACES",
			a->name, rdma_name(a), b->name, rdma_name(b));
	else
		snprintf(why, why_bytes,
			 "%s and %s have no transport in common: give both the same "
			 "SWINGCOLL_TRANSPORT, and see swingctl doctor for what their kernels have",
			 a->name, b->name);
	return -EOPNOTSUPP;
}

/* ---- paths ---- */

/*
 * Add a path from address @mine of this node to address @theirs of another. Link-local ones are
 * reached by this link.
 */
static void add(struct table *t, uint32_t node, uint32_t path, uint32_t mine, uint32_t theirs)
{
	const struct swc_paths_node *to = &t->nodes[node];
	const struct swc_boot_addr *local = &t->nodes[t->me].addr[mine];
	struct swc_node_path *p = &t->path[t->n++];

	p->node = node;
	p->path = (uint16_t)path;
	p->transport = (uint16_t)t->transport;
	to_sockaddr(p->local, local, 0, local->scope);
	to_sockaddr(p->remote, &to->addr[theirs], to->port[t->transport], local->scope);
}

/* ---- torus and mesh ---- */

/* Has a node a link along a dimension? Those of length 1 have none, and the ends of a mesh have one. */
static bool has_link(const struct swc_topo *t, const uint32_t *coord, uint32_t dim, bool down)
{
	if (t->kind == SWC_TOPO_MESH)
		return down ? coord[dim] : coord[dim] + 1 < t->dim[dim];
	return t->dim[dim] > 1;
}

/* How many links a node has before that one: those of each dimension, the plus port first. */
static uint32_t port_of(const struct swc_topo *t, uint32_t node, uint32_t dim, bool down)
{
	uint32_t coord[SWC_TOPO_DIMS], port = 0;

	swc_topo_coords(t, node, coord);
	for (uint32_t k = 0; k < 2 * dim + down; k++)
		port += has_link(t, coord, k / 2, k % 2);
	return port;
}

static bool has_ports(const struct swc_topo *t, const struct swc_paths_node *nodes, uint32_t nnodes)
{
	if (!t || t->kind == SWC_TOPO_SWITCH || t->nnodes != nnodes)
		return false;
	for (uint32_t i = 0; i < nnodes; i++)
		if (nodes[i].naddrs != port_of(t, i, t->ndims, false))
			return false;
	return true;
}

static int add_ends(struct table *t, uint32_t other, uint32_t path, uint32_t mine, uint32_t theirs,
		    char *why, size_t why_bytes)
{
	const struct swc_paths_node *a = &t->nodes[t->me], *b = &t->nodes[other];

	if (a->addr[mine].family != b->addr[theirs].family) {
		snprintf(why, why_bytes,
			 "address %u of %s and address %u of %s are the ends of one path, "
			 "but one is IPv4 and the other IPv6: set SWINGCOLL_ADDRS",
			 mine, a->name, theirs, b->name);
		return -EINVAL;
	}
	add(t, other, path, mine, theirs);
	return 0;
}

static int routed_paths(struct table *t, const struct swc_topo *topo, uint32_t other, char *why,
			size_t why_bytes)
{
	uint32_t npaths = swc_topo_npaths(topo, t->me, other);
	struct swc_topo_leg leg[SWC_TOPO_DIMS];
	int ret = 0;

	for (uint32_t path = 0; path < npaths && !ret; path++) {
		uint32_t n = swc_topo_route(topo, path, t->me, other, leg);
		const struct swc_topo_leg *last = &leg[n - 1];

		ret = add_ends(t, other, path, port_of(topo, t->me, leg->dim, leg->down),
			       port_of(topo, other, last->dim, !last->down), why, why_bytes);
	}
	return ret;
}

/* ---- rails ---- */

/* The slower end of a rail counts. */
static uint16_t speed_of(const struct swc_paths_node *a, const struct swc_paths_node *b, uint32_t k)
{
	return a->addr[k].speed < b->addr[k].speed ? a->addr[k].speed : b->addr[k].speed;
}

/* The fastest first, for plans use no more than are equally fast; else in their order. */
static int rail_paths(struct table *t, uint32_t other, char *why, size_t why_bytes)
{
	const struct swc_paths_node *a = &t->nodes[t->me], *b = &t->nodes[other];
	uint32_t rail[SWC_MAX_PATHS], n = 0;

	for (uint32_t k = 0; k < a->naddrs && k < b->naddrs; k++) {
		uint32_t i = n;

		if (!is_rail(a, b, k, t->transport))
			continue;
		for (; i && speed_of(a, b, rail[i - 1]) < speed_of(a, b, k); i--)
			rail[i] = rail[i - 1];
		rail[i] = k;
		n++;
	}
	for (uint32_t i = 0; i < n; i++)
		add(t, other, i, rail[i], rail[i]);
	if (n)
		return 0;
	snprintf(
		why, why_bytes,
		"%s and %s have no addresses of the same kind (IPv4 or IPv6) at the same place in their lists: "
		"set SWINGCOLL_ADDRS",
		a->name, b->name);
	return -EINVAL;
}

bool swc_paths_by_tcp(const struct swc_topo *topo, const struct swc_paths_node *nodes,
		      uint32_t nnodes)
{
	bool routed = has_ports(topo, nodes, nnodes);

	for (uint32_t i = 1; i < nnodes; i++)
		if (common_transport(&nodes[0], &nodes[i], routed) != SWC_TRANSPORT_RDMA)
			return true;
	return false;
}

int swc_paths_make(const struct swc_topo *topo, const struct swc_paths_node *nodes, uint32_t nnodes,
		   uint32_t me, struct swc_node_path **paths, uint32_t *npaths, char *why,
		   size_t why_bytes)
{
	bool routed = has_ports(topo, nodes, nnodes);
	uint32_t most = routed ? 4 : nodes[me].naddrs;
	struct table t = { .nodes = nodes, .me = me };
	int ret = 0;

	*paths = NULL;
	*npaths = 0;
	t.path = calloc((size_t)nnodes * most + 1, sizeof(*t.path));
	if (!t.path)
		return -ENOMEM;
	for (uint32_t i = 0; !ret && i < nnodes; i++) {
		if (i == me)
			continue;
		t.transport = common_transport(&nodes[me], &nodes[i], routed);
		if (t.transport == SWC_TRANSPORT_NR)
			ret = no_transport(&nodes[me], &nodes[i], why, why_bytes);
		else if (routed)
			ret = routed_paths(&t, topo, i, why, why_bytes);
		else
			ret = rail_paths(&t, i, why, why_bytes);
	}
	if (ret) {
		free(t.path);
		return ret;
	}
	*paths = t.path;
	*npaths = t.n;
	return 0;
}

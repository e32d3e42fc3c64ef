// SPDX-License-Identifier: GPL-2.0-only
/*
 * The paths from this node to others, as the creator of a communicator gives them.
 */
#include <linux/slab.h>
#include <linux/sort.h>
#include <net/ipv6.h>

#include "net/conn.h"

static int compare_paths(const void *a, const void *b)
{
	const struct swc_node_path *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->path < y->path ? -1 : x->path > y->path;
}

static bool is_valid_addr(const u8 *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_in *in4 = (const void *)addr;

	if (in4->sin_family == AF_INET)
		return in4->sin_addr.s_addr;
	return in6->sin6_family == AF_INET6 && !ipv6_addr_any(&in6->sin6_addr);
}

static bool is_valid_path(const struct swc_node_path *p)
{
	const struct sockaddr *local = (const void *)p->local, *remote = (const void *)p->remote;

	return p->transport < SWC_TRANSPORT_NR && is_valid_addr(p->local) && is_valid_addr(p->remote) &&
	       local->sa_family == remote->sa_family;
}

/* Sort the table, check it, and note where each node's paths begin. */
static int index_paths(struct swc_net *net, u32 npaths)
{
	const struct swc_net_params *params = &net->params;
	u32 i, node = 0;

	sort(net->path, npaths, sizeof(*net->path), compare_paths, NULL);
	for (i = 0; i < npaths; i++) {
		struct swc_node_path *p = &net->path[i];

		if (p->node >= params->nranks || p->node == params->here || p->path >= SWC_MAX_PATHS)
			return -EINVAL;
		while (node <= p->node)
			net->first_path[node++] = i;
		if (p->path != i - net->first_path[p->node] || !is_valid_path(p))
			return -EINVAL;
		/* At the same place in both families. A connection leaves from a port of its own. */
		((struct sockaddr_in *)p->local)->sin_port = 0;
	}
	while (node <= params->nranks)
		net->first_path[node++] = npaths;
	return 0;
}

/**
 * swc_paths_init() - the paths of a net
 * @net: with its params
 * @paths: to the other nodes, copied
 * @npaths: entries
 *
 * Return: 0, to be undone by swc_paths_fini(); -EINVAL if the paths are invalid; -ENOMEM.
 */
int swc_paths_init(struct swc_net *net, const struct swc_node_path *paths, u32 npaths)
{
	int ret = -ENOMEM;

	net->first_path = kvmalloc_array(net->params.nranks + 1, sizeof(*net->first_path),
					 GFP_KERNEL_ACCOUNT);
	net->path = kvmalloc_array(npaths, sizeof(*paths), GFP_KERNEL_ACCOUNT);
	if (net->first_path && net->path) {
		memcpy(net->path, paths, array_size(npaths, sizeof(*paths)));
		ret = index_paths(net, npaths);
	}
	if (ret)
		swc_paths_fini(net);
	return ret;
}

void swc_paths_fini(struct swc_net *net)
{
	kvfree(net->first_path);
	kvfree(net->path);
}

/* Number of paths to a node. */
u32 swc_net_npaths(const struct swc_net *net, u32 node)
{
	return net->first_path[node + 1] - net->first_path[node];
}

/* Memory of a connection by this path, about. */
u32 swc_net_conn_bytes(const struct swc_net *net, u32 node, u16 path)
{
	return swc_transport_get(swc_net_path(net, node, path)->transport)->conn_bytes();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The transports that are built in, found by name, and what the nets of all transports have in common: the
 * paths to other nodes, and the abort. main.c gives the list of transports; nothing here knows one of them.
 */
#include <linux/slab.h>
#include <linux/sort.h>
#include <net/ipv6.h>

#include "net.h"

const struct swc_net_ops *swc_net_ops;

static const struct swc_transport *const *transports;
static u32 ntransports;

/**
 * swc_transports_init() - start the transports
 * @list: of those that are built in; stays valid
 * @n: entries
 * @ops: receives their events; stays valid
 */
int swc_transports_init(const struct swc_transport *const *list, u32 n, const struct swc_net_ops *ops)
{
	u32 i;
	int ret;

	swc_net_ops = ops;
	transports = list;
	for (i = 0; i < n; i++) {
		ret = list[i]->init();
		if (ret) {
			swc_transports_stop();
			return ret;
		}
		ntransports++;
	}
	return 0;
}

void swc_transports_stop(void)
{
	u32 i;

	for (i = ntransports; i--;)
		transports[i]->stop();
}

/* NULL: not in this kernel. */
const struct swc_transport *swc_transport_find(const char *name)
{
	u32 i;

	for (i = 0; i < ntransports; i++)
		if (!strcmp(transports[i]->name, name))
			return transports[i];
	return NULL;
}

/* ------------------------------------------------------------------ paths */

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

	return is_valid_addr(p->local) && is_valid_addr(p->remote) && local->sa_family == remote->sa_family;
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

/* ------------------------------------------------------------------ nets */

/**
 * swc_net_init() - the common part of a transport's net
 * @net: zeroed
 * @transport: whose
 * @params: copied
 * @paths: to the other nodes, copied
 * @npaths: entries
 *
 * Return: 0, to be undone by swc_net_fini(); -EINVAL if the paths are invalid; -ENOMEM.
 */
int swc_net_init(struct swc_net *net, const struct swc_transport *transport,
		 const struct swc_net_params *params, const struct swc_node_path *paths, u32 npaths)
{
	int ret = -ENOMEM;

	net->transport = transport;
	net->params = *params;
	net->first_path = kvmalloc_array(params->nranks + 1, sizeof(*net->first_path), GFP_KERNEL_ACCOUNT);
	net->path = kvmalloc_array(npaths, sizeof(*paths), GFP_KERNEL_ACCOUNT);
	if (net->first_path && net->path) {
		memcpy(net->path, paths, array_size(npaths, sizeof(*paths)));
		ret = index_paths(net, npaths);
	}
	if (ret)
		swc_net_fini(net);
	return ret;
}

void swc_net_fini(struct swc_net *net)
{
	kvfree(net->first_path);
	kvfree(net->path);
}

/**
 * swc_net_abort() - the communicator was aborted
 *
 * Once per communicator. Does not sleep. Connections return all that they were given soon.
 */
void swc_net_abort(struct swc_net *net, const struct swc_net_abort *abort)
{
	net->abort = *abort;
	/*
	 * Pairs with the acquire of whoever reads net->abort without having been queued by the next line.
	 */
	smp_store_release(&net->aborted, true);
	net->transport->net_abort(net);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Listeners: one per transport and network namespace that has communicators of several nodes.
 */
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <net/net_namespace.h>

#include "net/conn.h"

/* Outside of all locks that a request takes: ending a listener waits for the requests that it handles. */
static DEFINE_MUTEX(listeners_mutex);
static LIST_HEAD(listeners);

static struct swc_listener *find(const struct swc_transport *transport, struct net *ns)
{
	struct swc_listener *l;

	list_for_each_entry(l, &listeners, node)
		if (l->transport == transport && net_eq(l->ns, ns))
			return l;
	return NULL;
}

static struct swc_listener *start(const struct swc_transport *transport, struct net *ns)
{
	struct swc_listener *l;

	mutex_lock(&listeners_mutex);
	l = find(transport, ns);
	if (!l) {
		l = transport->listen(transport, ns);
		if (IS_ERR(l))
			goto out;
		get_net(ns);
		list_add(&l->node, &listeners);
	}
	l->users++;
out:
	mutex_unlock(&listeners_mutex);
	return l;
}

static void stop(struct swc_listener *l)
{
	mutex_lock(&listeners_mutex);
	if (!--l->users) {
		struct net *ns = l->ns;

		list_del(&l->node);
		l->transport->unlisten(l);
		put_net(ns);
	}
	mutex_unlock(&listeners_mutex);
}

/**
 * swc_listeners_start() - accept connections in the caller's network namespace
 * @l: filled in; to be passed to swc_net_create() or swc_listeners_stop()
 * @paths, @npaths: have the transports that are needed
 *
 * Return: 0; -EINVAL if there is no such transport; -EOPNOTSUPP if this kernel does not have it;
 * -EADDRINUSE if its port is taken; -ENOMEM.
 */
int swc_listeners_start(struct swc_listeners *l, const struct swc_node_path *paths, u32 npaths)
{
	u32 i;

	*l = (struct swc_listeners){};
	for (i = 0; i < npaths; i++) {
		u32 kind = paths[i].transport;
		const struct swc_transport *transport = swc_transport_get(kind);
		struct swc_listener *started;
		int ret = 0;

		if (kind >= SWC_TRANSPORT_NR)
			ret = -EINVAL;
		else if (!transport)
			ret = -EOPNOTSUPP;
		else if (l->of[kind])
			continue;
		started = ret ? ERR_PTR(ret) : start(transport, current->nsproxy->net_ns);
		if (IS_ERR(started)) {
			swc_listeners_stop(l);
			return PTR_ERR(started);
		}
		l->of[kind] = started;
	}
	return 0;
}

void swc_listeners_stop(struct swc_listeners *l)
{
	u32 i;

	for (i = 0; i < SWC_TRANSPORT_NR; i++)
		if (l->of[i])
			stop(l->of[i]);
	*l = (struct swc_listeners){};
}
